"""Containers of arrays as arguments and results ("pytrees"): list, tuple, dict, namedtuple, None, dataclasses and
registered classes. Everything else is a leaf.

    >>> leaves, tree = weft.tree.flatten({"w": 1, "b": [2, 3]})
    >>> leaves
    [2, 3, 1]
    >>> weft.tree.unflatten(tree, leaves) == {"w": 1, "b": [2, 3]}
    True

Dictionaries are flattened in the order of their sorted keys. Built on the library optree, in its namespace "weft".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import optree
from optree import PyTreeSpec as TreeDef

NAMESPACE = "weft"

__all__ = [
    "TreeDef",
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "register",
    "register_dataclass",
    "structure",
    "transpose",
    "unflatten",
]


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list, TreeDef]:
    """The leaves of a tree, and its structure."""
    leaves_, treedef = optree.tree_flatten(tree, is_leaf, namespace=NAMESPACE)
    for leaf in leaves_:
        if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type) and type(leaf) not in _REFUSED:
            # A dataclass is a container; it is registered when it is first met.
            try:
                register_dataclass(type(leaf))
            except ValueError:
                _REFUSED.add(type(leaf))
            return flatten(tree, is_leaf)
    return leaves_, treedef


_REFUSED: set[type] = set()


def unflatten(treedef: TreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of this structure with these leaves."""
    return treedef.unflatten(leaves)


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list:
    """The leaves of a tree."""
    return flatten(tree, is_leaf)[0]


def structure(tree: Any) -> TreeDef:
    """The structure of a tree."""
    return flatten(tree)[1]


def map(function: Callable, tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Applies a function to each leaf (and to the leaves at the same places of further trees)."""
    first, treedef = flatten(tree, is_leaf)
    others = [treedef.flatten_up_to(other) for other in rest]
    return treedef.unflatten([function(*args) for args in zip(first, *others)])


def reduce(function: Callable, tree: Any, *initial: Any) -> Any:
    """Combines the leaves from left to right."""
    import functools

    return functools.reduce(function, leaves(tree), *initial)


def all(tree: Any) -> bool:
    """Whether every leaf is true."""
    import builtins

    return builtins.all(leaves(tree))


def transpose(outer: TreeDef, inner: TreeDef, tree: Any) -> Any:
    """A tree of structure outer with trees of structure inner as leaves, turned inside out."""
    return optree.tree_transpose(outer, inner, tree)


def flatten_with_path(tree: Any) -> list[tuple[str, Any]]:
    """Pairs of a path such as "['w'][0]" and a leaf."""
    flatten(tree)  # registers dataclasses
    accessors, found, _ = optree.tree_flatten_with_accessor(tree, namespace=NAMESPACE)
    return [(accessor.codify(""), leaf) for accessor, leaf in zip(accessors, found)]


def leaves_with_path(tree: Any) -> list[tuple[str, Any]]:
    """The same as flatten_with_path."""
    return flatten_with_path(tree)


def map_with_path(function: Callable, tree: Any, *rest: Any) -> Any:
    """Like map, but function(path, leaf, ...) is also given the leaf's path, a string such as "['w'][0]"."""
    pairs = flatten_with_path(tree)
    treedef = structure(tree)
    others = [treedef.flatten_up_to(other) for other in rest]
    return treedef.unflatten([function(*pair, *more) for pair, *more in zip(pairs, *others)])


def broadcast(prefix_tree: Any, full_tree: Any) -> Any:
    """A tree of the structure of full_tree, where a leaf of prefix_tree stands for the whole subtree at its place."""
    return structure(full_tree).unflatten(prefix_leaves(prefix_tree, full_tree, "tree.broadcast: the prefix"))


def register(cls: type, flatten_function: Callable, unflatten_function: Callable) -> type:
    """Makes a class a container. flatten_function(object) -> (children, static data);
    unflatten_function(static data, children) -> object."""

    def flatten_(obj):
        children, aux = flatten_function(obj)
        return tuple(children), aux

    optree.register_pytree_node(cls, flatten_, unflatten_function, namespace=NAMESPACE)
    return cls


def register_dataclass(cls: type, data_fields: Iterable[str] | None = None, meta_fields: Iterable[str] = ()) -> type:
    """Makes a dataclass a container of its fields. Fields in meta_fields, or declared with
    dataclasses.field(metadata={"static": True}), are part of the structure and must be hashable."""
    meta = set(meta_fields) | {f.name for f in dataclasses.fields(cls) if f.metadata.get("static")}
    names = (
        tuple(data_fields)
        if data_fields is not None
        else tuple(f.name for f in dataclasses.fields(cls) if f.name not in meta)
    )
    static = tuple(f.name for f in dataclasses.fields(cls) if f.name in meta)

    def flatten_(obj) -> tuple[tuple, Hashable, tuple]:
        return tuple(getattr(obj, n) for n in names), tuple(getattr(obj, n) for n in static), names

    def unflatten_(aux, children):
        obj: Any = object.__new__(cls)
        for name, value in zip(names, children):
            object.__setattr__(obj, name, value)
        for name, value in zip(static, aux):
            object.__setattr__(obj, name, value)
        return obj

    optree.register_pytree_node(cls, flatten_, unflatten_, path_entry_type=optree.GetAttrEntry, namespace=NAMESPACE)
    return cls


def prefix_leaves(prefix: Any, tree: Any, what: str) -> list:
    """One leaf of `prefix` for every leaf of `tree`: a prefix leaf covers the whole subtree at its place.
    None is a leaf here."""
    treedef = structure(tree)
    try:
        return optree.broadcast_prefix(
            prefix, treedef.unflatten([_LEAF] * treedef.num_leaves), is_leaf=lambda x: x is None, namespace=NAMESPACE
        )
    except ValueError as error:
        raise ValueError(f"{what} is no prefix of the structure of the values: {error}") from None


class _Leaf:
    pass


_LEAF = _Leaf()
