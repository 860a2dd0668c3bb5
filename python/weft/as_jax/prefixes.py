"""JAX's words for a tree that is no prefix of another one, and for a tree that does not fit another one."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Callable
from typing import Any

from .._core import tree as _tree
from .._core.tree import prefixes as _prefixes
from ..tree_util import flatten_one_level

_IsLeaf = Callable[[Any], bool] | None


def _keys(node: Any) -> tuple[list[Any], Any]:
    keys, _, _ = _tree.one_level(node)
    return [getattr(key, "key", getattr(key, "name", key)) for key in keys], flatten_one_level(node)[1]


def detail(mismatch: _tree.Mismatch, name: str) -> str:
    """What is wrong at one place; `name`: what the prefix is called."""
    prefix, tree = mismatch.nodes
    head = f"pytree structure error: {mismatch.kind} at key path\n    {name}{_tree.keystr(mismatch.path)}\n"
    there = f"{head}At that key path, the prefix pytree {name} has a subtree of type"
    if mismatch.kind == "different types":
        other = "but at the same key path the full pytree has a subtree of different type"
        return f"{there}\n    {type(prefix)}\n{other}\n    {type(tree)}."
    if isinstance(prefix, (list, tuple)):
        kind = type(prefix).__name__
        length = f"but the full pytree has a subtree of the same type but of length {len(tree)}."
        return f"{there} {kind} of length {len(prefix)}, {length}"
    same = "but at the same key path the full pytree has a subtree of the same type but with"
    (keys, data), (tree_keys, tree_data) = _keys(prefix), _keys(tree)
    if mismatch.kind == "different numbers of pytree children":
        alone = [key for key in (*keys, *tree_keys) if (key in keys) != (key in tree_keys)]
        said, tree_said, apart = (" ".join(map(str, some)) for some in (keys, tree_keys, alone))
        return (
            f"{there}\n    {type(prefix)}\nwith {len(keys)} child keys\n    {said}\n"
            f"{same} {len(tree_keys)} child keys\n    {tree_said}\n"
            f"so the symmetric difference on key sets is\n    {apart}"
        )
    apart = "\n".join(difflib.ndiff(str(data).splitlines(), str(tree_data).splitlines()))
    return (
        f"{there}\n    {type(prefix)}\nwith metadata\n    {data}\n{same} metadata\n    {tree_data}\n"
        f"so the diff in the metadata at these pytree nodes is\n{textwrap.indent(apart, '    ')}"
    )


def _details(prefix: Any, tree: Any, is_leaf: _IsLeaf, name: str) -> list[str]:
    return [detail(found, name) for found in _tree.mismatches(prefix, tree, is_leaf)]


def of_trees(what: str, first: Any, other: Any, is_leaf: _IsLeaf = None) -> str:
    """Of two trees of which the second one does not fit the first; `what` is the function that got them."""
    return next(iter(_details(first, other, is_leaf, f"{what} tree")), "")


class PytreeLeaf:
    """What stands for a leaf where only the structure of arguments is known."""


PytreeLeaf.__module__ = "jax._src.api_util"


def _without_leaves(tree: Any) -> Any:
    treedef = _tree.structure(tree)
    try:
        return treedef.unflatten([PytreeLeaf()] * treedef.num_leaves)
    except Exception:  # some classes of users take nothing but arrays
        return tree


def _of_shardings(name: str, prefix: Any, tree: Any, is_leaf: _IsLeaf) -> str:
    """Of in_shardings and out_shardings."""
    of_arguments = name.endswith("in_shardings")
    if of_arguments and (type(prefix) is not tuple or len(prefix) != len(tree)):
        got = f"the wrong length: got a tuple or list of length {len(prefix)} for an args tuple of length {len(tree)}."
        if type(prefix) is not tuple:
            got = f"not a tuple: got {type(prefix)} instead."
        alone = (
            f" Given the corresponding argument being passed, it looks like {name} might need to be wrapped in a "
            "singleton tuple."
        )
        fits = len(tree) == 1 and not any(True for _ in _tree.mismatches((prefix,), tree, is_leaf))
        return (
            f"{name} specification must be a tree prefix of the positional arguments tuple. In particular, {name} "
            "must either be a Sharding, a PartitionSpec, or a tuple of length equal to the number of positional "
            f"arguments. But {name} is {got}{alone if fits else ''}"
        )
    found = _details(prefix, tree, is_leaf, name)
    count = f"Mismatch details ({len(found)} found):\n" + "\n".join(found)
    return f"{name} specification must be a tree prefix of the corresponding value; {count}"


_OF_PMAP = {
    "in_axes": "\n\nThe 'full pytree' here is the tuple of arguments passed positionally to the pmapped function, and "
    "the value of `in_axes` must be a tree prefix of that tuple. But it was not a prefix.\n\nCheck that the value of "
    "the `in_axes` argument to `pmap` is a tree prefix of the tuple of arguments passed positionally to the pmapped "
    "function.",
    "out_axes": "\n\nThe full pytree is the output of the pmapped function. Ensure that the `out_axes` argument to "
    "`pmap` is a pytree prefix of the pmapped function's output.",
}


def of_prefix(what: str, prefix: Any, tree: Any, is_leaf: _IsLeaf) -> str:
    """Of an argument that has to be a prefix; `what` names the function and it: "vmap: in_axes"."""
    function, _, argument = what.partition(": ")
    if function == "tree.broadcast":
        return next(iter(_details(prefix, tree, is_leaf, "broadcast_prefix prefix_tree")), "")
    if function == "jit":
        return _of_shardings(f"pjit {argument}", prefix, _without_leaves(tree), is_leaf)
    name = f"{function} {argument or 'device'}"
    if function == "shard_map":
        return next(iter(_details(prefix, tree, is_leaf, name)), "")
    if function == "pmap":
        # There it is one of the arguments by position and of those by keyword.
        if argument == "in_axes":
            prefix, tree = (prefix,), (tree,)
        return next(iter(_details(prefix, tree, is_leaf, name)), "") + _OF_PMAP.get(argument, "")
    found = _details(prefix, _without_leaves(tree), is_leaf, name)
    details = "".join(f"\n  {one}" for one in found)
    return (
        f"{name} specification must be a tree prefix of the corresponding value; \n  Mismatch details ({len(found)} "
        f"found):{details}"
    )


def check_prefix(prefix: Any, tree: Any, what: str) -> None:
    """Raises ValueError unless what a call was given is a prefix of a tree, where that is all that is asked of it."""
    if prefix is not None and not _tree.structure(prefix).is_leaf():
        _tree.prefix_leaves(prefix, tree, what)


def install() -> None:
    """From now on trees that do not fit say so in JAX's words, too."""
    _prefixes.in_jax_words = of_trees
