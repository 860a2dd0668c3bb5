"""jax.tree_util's registry, and what libraries take of jax._src.tree_util."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import optree

from .._core import tree as _tree
from .._core.errors import key_error, value_error
from ..tree_util import flatten_one_level, treedef_is_leaf
from .prefixes import detail
from .treedefs import spec_of, tree_flatten


def static(**options: Any) -> Any:
    """dataclasses.field for what is part of the structure of a tree."""
    return dataclasses.field(**{**options, "metadata": {"static": True, **(options.pop("metadata", None) or {})}})


def _is_container(x: Any) -> bool:
    return not treedef_is_leaf(_tree.structure(x))


class _Registry:
    """The containers that are known; the methods are those of jax.tree_util.default_registry."""

    @staticmethod
    def flatten(tree: Any, leaf_predicate: Callable[[Any], bool] | None = None) -> Any:
        return tree_flatten(tree, leaf_predicate)

    @staticmethod
    def flatten_one_level(tree: Any) -> Any:
        """(children, static data); None for a leaf."""
        return flatten_one_level(tree) if _is_container(tree) else None

    @staticmethod
    def register_node(cls: type, flatten: Callable[..., Any], unflatten: Callable[..., Any], *_: Any) -> None:
        _tree.register(cls, flatten, unflatten)


default_registry = none_leaf_registry = dispatch_registry = _Registry()


class _Registered:
    """Which classes are containers, as a mapping."""

    def __contains__(self, cls: object) -> bool:
        return isinstance(cls, type) and _entry(cls) is not None

    def __getitem__(self, cls: type) -> Any:
        entry = _entry(cls)
        if entry is None:
            raise key_error(f"{cls!r} is no container")
        return entry

    def get(self, cls: type, default: Any = None) -> Any:
        found = _entry(cls)
        return default if found is None else found


class _Node:
    """How a class is taken apart, and put together."""

    def __init__(self, entry: Any):
        self.to_iter = lambda x: tuple(entry.flatten_func(x)[:2])
        self.from_iter = entry.unflatten_func


class _DictNode(_Node):
    """... for dictionaries: their static data is their sorted keys, which have a hash."""

    def __init__(self) -> None:
        self.to_iter = lambda x: (tuple(x[key] for key in sorted(x)), tuple(sorted(x)))
        self.from_iter = lambda keys, children: dict(zip(keys, children))


def _entry(cls: type) -> _Node | None:
    if cls is dict:
        return _DictNode()
    entry = optree.register_pytree_node.get(cls, namespace=_tree.NAMESPACE)
    return None if entry is None else _Node(entry)


_registry = _Registered()


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a prefix, each as often as it covers leaves."""
    return _tree.leaves(_tree.broadcast(prefix_tree, full_tree, is_leaf))


def broadcast_flattened_prefix_with_treedef(leaves: Any, prefix_treedef: Any, full_treedef: Any) -> list[Any]:
    """broadcast_prefix of what has been taken apart."""
    full = _tree.unflatten(spec_of(full_treedef), [object()] * full_treedef.num_leaves)
    return broadcast_prefix(_tree.unflatten(spec_of(prefix_treedef), leaves), full)


def prefix_errors(prefix_tree: Any, full_tree: Any, is_leaf: Any = None) -> list[Callable[[str], ValueError]]:
    """Where a tree is no prefix: for each place a function of the name that the prefix has, which gives the error."""

    def error_of(mismatch: _tree.Mismatch) -> Callable[[str], ValueError]:
        return lambda name: value_error(detail(mismatch, name))

    return [error_of(mismatch) for mismatch in _tree.mismatches(prefix_tree, full_tree, is_leaf)]


def flatten_axes(name: str, treedef: Any, axis_tree: Any, **_: Any) -> list[Any]:
    """The leaves of a prefix of a structure, each as often as it covers leaves."""
    return _tree.prefix_leaves_of(axis_tree, spec_of(treedef), name)


def flatten_axis_resources(what: str, tree: Any, shardings: Any, tupled_args: bool) -> tuple[Any, ...]:
    """... of shardings."""
    return tuple(flatten_axes(what, tree, shardings))


def treedef_is_strict_leaf(treedef: Any) -> bool:
    """Whether a structure is that of a leaf."""
    return bool(spec_of(treedef).is_leaf())
