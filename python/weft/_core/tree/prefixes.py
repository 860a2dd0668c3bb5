"""Trees whose leaves stand for whole subtrees of another one; where and why one is no such prefix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import optree

from ... import _weft
from ..errors import foreign, value_error
from .flattening import TreeDef, flatten, leaves, structure
from .paths import KeyPath, keystr, one_level
from .registration import NAMESPACE, dictionaries

JAX_SEMANTICS = 3  # as in tracer/context.h


class Mismatch:
    """One place where a prefix has another container than the tree; `nodes`: what each of them has there."""

    def __init__(self, path: KeyPath, kind: str, nodes: tuple[Any, Any], prefix: str, tree: str, more: str = ""):
        self.path, self.kind, self.prefix, self.tree, self.more = path, kind, prefix, tree, more
        self.nodes = nodes

    def text(self, name: str) -> str:
        """In words; `name`: what the prefix is called."""
        return (
            f"pytree structure error: {self.kind} at key path\n    {name}{keystr(self.path)}\n"
            f"the prefix has there\n    {self.prefix}\nbut the whole tree\n    {self.tree}{self.more}"
        )


def mismatches(
    prefix: Any, tree: Any, is_leaf: Callable[[Any], bool] | None = None, path: KeyPath = ()
) -> Iterator[Mismatch]:
    """Where the prefix differs, outermost places first, one for each place."""
    if structure(prefix, is_leaf).is_leaf():
        return
    nodes = prefix, tree
    if type(prefix) is not type(tree):
        yield Mismatch(path, "different types", nodes, str(type(prefix)), str(type(tree)))
        return
    if prefix is None:
        return
    name = type(prefix).__name__
    (keys, children, data), (tree_keys, tree_children, tree_data) = one_level(prefix), one_level(tree)
    if len(children) != len(tree_children):
        if isinstance(prefix, (list, tuple)):
            counts = (f"{name} of length {len(children)}", f"{name} of length {len(tree_children)}")
            yield Mismatch(path, f"different lengths of {name}", nodes, *counts)
            return
        said, tree_said = ([str(getattr(key, "key", key)) for key in some] for some in (keys, tree_keys))
        alone = [key for key in dict.fromkeys([*said, *tree_said]) if (key in said) != (key in tree_said)]
        yield Mismatch(
            path,
            "different numbers of pytree children",
            nodes,
            f"{name} with the {len(said)} child keys {' '.join(said)}",
            f"{name} with the {len(tree_said)} child keys {' '.join(tree_said)}",
            f"\nso the symmetric difference on key sets is\n    {' '.join(alone)}",
        )
        return
    if data != tree_data:
        yield Mismatch(path, "different pytree metadata", nodes, f"{name} with {data}", f"{name} with {tree_data}")
        return
    for key, child, tree_child in zip(keys, children, tree_children):
        yield from mismatches(child, tree_child, is_leaf, (*path, key))


# Whether it is asked for (name of a function, tree, another tree, is_leaf): JAX's words where the second does not fit.
in_jax_words: Callable[..., str] | None = None


def _other_dictionary(shape: TreeDef, prefix: Any, tree: Any, is_leaf: Callable[..., bool] | None) -> bool:
    """Whether a tree that fits has dictionaries of other classes, or made by other functions: JAX takes none."""
    if in_jax_words is None or shape.is_leaf() or not _weft.setting(JAX_SEMANTICS):
        return False
    dictionaries.meet((prefix, tree))
    if not dictionaries.of_other_classes or structure(tree) == shape:
        return False
    may_have = "{" in (text := str(shape)) or "OrderedDict" in text
    return may_have and any(isinstance(found.nodes[0], dict) for found in mismatches(prefix, tree, is_leaf))


def subtrees_of(
    treedef: TreeDef, first: Any, other: Any, what: str, is_leaf: Callable[..., bool] | None = None
) -> list:
    """What stands in another tree at the places of the leaves of the first one, of which there is the structure.

    Raises:
        ValueError: it has another structure; `what` is the function that was called.
    """
    try:
        found = treedef.flatten_up_to(other)
        if not _other_dictionary(treedef, first, other, is_leaf):
            return found
        error = ValueError("the trees have dictionaries of different classes")
    except ValueError as raised:
        error = raised
    if in_jax_words is not None and (words := in_jax_words(what, first, other, is_leaf)):
        error.args = (f"{error}\nJAX says: {words}",)
    raise foreign(error) from None


def described(prefix: Any, tree: Any, what: str, is_leaf: Callable[[Any], bool] | None = None) -> str:
    """All mismatches in words, for the message of an error about `what`; empty where none is found."""
    name = what.rsplit(": ", 1)[-1]
    found = [mismatch.text(name) for mismatch in mismatches(prefix, tree, is_leaf)]
    return f"Mismatch details ({len(found)} found):\n" + "\n".join(found) if found else ""


def is_strict_leaf(tree: Any) -> bool:
    """Whether it is a leaf; None is a container."""
    return optree.tree_is_leaf(tree, namespace=NAMESPACE)


def broadcast(prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """A tree with the structure of another, where a leaf stands for the whole subtree at its place.

    Args:
        prefix_tree: the leaves.
        full_tree: the structure.
        is_leaf: function (node) -> bool: which nodes of prefix_tree count as leaves, too; None: none.

    Returns: tree.

    Raises:
        ValueError: the first tree is no prefix of the second.

    Example:
        >>> weft.tree.broadcast({"a": 0, "b": 1}, {"a": [5, None, 5], "b": 5})
        {'a': [0, None, 0], 'b': 1}
    """
    return structure(full_tree).unflatten(prefix_leaves(prefix_tree, full_tree, "tree.broadcast: the prefix", is_leaf))


def _is_none(x: Any) -> bool:
    return x is None


def prefix_leaves(prefix: Any, tree: Any, what: str, is_leaf: Callable[[Any], bool] | None = _is_none) -> list:
    """One leaf of `prefix` for every leaf of `tree`: a prefix leaf covers the whole subtree at its place.

    What is_leaf accepts in the prefix is a leaf there, None unless told otherwise. In the tree None is always a
    container of no leaves: it takes nothing from the prefix."""
    covers, shape = flatten(prefix, is_leaf)
    try:
        subtrees = shape.flatten_up_to(tree)
    except ValueError as error:
        raise _no_prefix(prefix, tree, what, is_leaf, _without_leaves(shape, tree) or str(error)) from None
    if _other_dictionary(shape, prefix, tree, is_leaf):
        raise _no_prefix(prefix, tree, what, is_leaf, "it has dictionaries of other classes")
    return [leaf for leaf, subtree in zip(covers, subtrees) for _ in leaves(subtree)]


def _no_prefix(prefix: Any, tree: Any, what: str, is_leaf: Callable[..., bool] | None, said: str) -> ValueError:
    where = described(prefix, tree, what, is_leaf)
    error: Any = value_error(f"{what} is no prefix of the structure of the values: {said}\n{where}".rstrip())
    error.facts = {"kind": "prefix", "what": what, "prefix": prefix, "tree": tree, "is_leaf": is_leaf}
    return error


def prefix_leaves_of(prefix: Any, treedef: Any, what: str, is_leaf: Callable[[Any], bool] | None = _is_none) -> list:
    """prefix_leaves of a tree of which there is the structure alone. For a prefix that is one leaf none is made: some
    classes of users take nothing but arrays."""
    covers, shape = flatten(prefix, is_leaf)
    if shape.is_leaf():
        return covers * treedef.num_leaves
    return prefix_leaves(prefix, treedef.unflatten([LEAF] * treedef.num_leaves), what, is_leaf)


def _without_leaves(shape: Any, tree: Any) -> str:
    """Why a structure is no prefix of a tree, without the tree's arrays; empty if a class takes no other leaves."""
    treedef = structure(tree)
    try:
        bare = treedef.unflatten([LEAF] * treedef.num_leaves)
    except Exception:  # of the class, whatever it is
        return ""
    try:
        shape.flatten_up_to(bare)
    except ValueError as error:
        return str(error).replace(repr(LEAF), "a leaf")
    return ""


# What stands for a leaf where only structure counts. Containers of libraries take an object of exactly this class for
# data, since JAX puts it there.
LEAF = object()
