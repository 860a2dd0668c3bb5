"""Trees taken apart into leaves, and put together."""

from __future__ import annotations

import collections
import dataclasses
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import optree
from optree import PyTreeSpec as TreeDef

from ... import _weft
from ..errors import foreign, recursion_error, type_error
from .registration import NAMESPACE, check_function, dictionaries, register_dataclass


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list, TreeDef]:
    """The leaves of a tree, and its structure.

    Args:
        tree: nested lists, tuples, dicts (in the order of their sorted keys), namedtuples, dataclasses, registered
            classes; None is an empty container, everything else a leaf.
        is_leaf: function (node) -> bool: which nodes count as leaves, too; None: none.

    Returns: pair of a list and a TreeDef.

    Raises:
        RecursionError: a container contains itself, or containers are nested too deeply.

    Example:
        >>> leaves, structure = weft.tree.flatten({"w": 1, "b": [2, 3]})
        >>> leaves
        [2, 3, 1]
    """
    if type(tree) in ARRAYS and is_leaf is None:
        return [tree], _ARRAY_TREE
    check_function(is_leaf, "tree: is_leaf", or_none=True)
    as_jax, unordered = jax_semantics(), dictionaries.unordered
    try:
        leaves_, treedef = optree.tree_flatten(tree, is_leaf, namespace=NAMESPACE)
    except RecursionError as error:
        place = inside_itself(tree)
        if place is None:
            raise foreign(error)
        raise recursion_error(f"tree: a container contains itself: what is at {place} is around that place") from None
    if as_jax:
        dictionaries.meet(tree)
        return leaves_, treedef if dictionaries.unordered == unordered else in_order_of_keys(treedef)
    for cls in {type(leaf) for leaf in leaves_}:  # few, where leaves are many: calls of jitted functions come here
        if dataclasses.is_dataclass(cls) and cls not in _REFUSED:
            # A dataclass is a container; it is registered when it is first met.
            try:
                register_dataclass(cls)
            except ValueError:
                _REFUSED.add(cls)
            return flatten(tree, is_leaf)
    return leaves_, treedef


def assembled(tree: Any, given: Iterator[TreeDef]) -> TreeDef:
    """The structure of a tree, without taking apart what is no list, tuple or dict of texts again: `given` has the
    structures of these, in order."""
    parts = lambda nodes: [assembled(node, given) for node in nodes]
    kind = type(tree)
    if (kind in _NUMBERS or isinstance(tree, _ARRAYS)) and _weft.is_operand(tree):
        return _ARRAY_TREE
    if tree is None:
        return optree.treespec_none(namespace=NAMESPACE)
    if kind is tuple:
        return optree.treespec_tuple(parts(tree), namespace=NAMESPACE)
    if kind is list:
        return optree.treespec_list(parts(tree), namespace=NAMESPACE)
    if kind is dict and all(type(key) is str for key in tree):
        keys = sorted(tree)
        return optree.treespec_dict(dict(zip(keys, parts(tree[key] for key in keys))), namespace=NAMESPACE)
    return next(given)


def are_arrays(values: Iterable) -> bool:
    """Whether each is one of Weft's arrays, and so a leaf."""
    return all(type(value) in ARRAYS for value in values)


def jax_semantics() -> bool:
    """Whether JAX's meaning is asked for: dataclasses are leaves unless they are registered, and dictionaries that are
    put together have their keys in sorted order."""
    return _weft.setting(_JAX_SEMANTICS)


_JAX_SEMANTICS = 3  # as in tracer/context.h


def in_order_of_keys(treedef: TreeDef) -> TreeDef:
    """The same structure, whose dictionaries come back with their keys in sorted order, not as they were put in."""
    if treedef.is_leaf(strict=False):
        return treedef
    before = treedef.children()
    parts = [in_order_of_keys(child) for child in before]
    if treedef.type is dict:
        _check_order(treedef.entries())
        return optree.treespec_dict(dict(zip(treedef.entries(), parts)), namespace=NAMESPACE)
    if treedef.type is collections.defaultdict:
        made: Any = treedef.unflatten([None] * treedef.num_leaves)
        factory = made.default_factory
        return optree.treespec_defaultdict(factory, dict(zip(treedef.entries(), parts)), namespace=NAMESPACE)
    if all(map(operator.is_, before, parts)):
        return treedef
    rest = iter(parts)
    return treedef.one_level().transform(f_leaf=lambda _: next(rest))  # type: ignore[union-attr]


def _check_order(keys: list[Any]) -> None:
    """Raises TypeError for keys of a dictionary that cannot be ordered."""
    try:
        sorted(keys)
    except TypeError as error:
        raise type_error(f"tree: the keys of a dictionary, {keys}, cannot be ordered: {error}") from None


_REFUSED: set[type] = set()
# By far the most common trees.
ARRAYS = (_weft.Array, _weft.Tracer)
# Leaves for certain; what only stands for an array (__weft_array__) may be a container.
_ARRAYS = (_weft.Array, np.ndarray, np.generic)
_NUMBERS = (bool, int, float, complex)  # classes that derive from these may be registered containers
_ARRAY_TREE = optree.tree_structure(0, namespace=NAMESPACE)  # type: ignore[arg-type]


def inside_itself(tree: Any) -> str | None:
    """Where a tree has a container that is around that place, too, as [0]['a'] says it; None: it has none."""

    def parts(node: Any):
        if optree.tree_is_leaf(node, namespace=NAMESPACE):
            return iter(())
        children, _, entries, _ = optree.tree_flatten_one_level(node, namespace=NAMESPACE)
        return iter([(f"[{entry!r}]", child) for entry, child in zip(entries, children)])

    # Each list has one entry per container around the place where the walk is.
    around, walks, path = [id(tree)], [parts(tree)], [""]
    done = set[int]()
    while 0 < len(walks) < _MANY:
        for text, part in walks[-1]:
            if id(part) in around:
                return "".join(path) + text
            if id(part) not in done:
                around.append(id(part))
                walks.append(parts(part))
                path.append(text)
                break
        else:
            done.add(around.pop())
            walks.pop()
            path.pop()
    return None


# More containers around each other than optree takes apart.
_MANY = 10000


def unflatten(treedef: TreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of a structure with given leaves.

    Args:
        treedef: the structure.
        leaves: as many leaves as it has.

    Returns: tree.

    Raises:
        TypeError: leaves is no sequence.
        ValueError: there are more or fewer.

    Example:
        >>> weft.tree.unflatten(weft.tree.structure([0, (0, 0)]), "abc")
        ['a', ('b', 'c')]
    """
    try:
        return treedef.unflatten(leaves)
    except TypeError:
        if isinstance(leaves, Iterable):
            raise
        raise type_error(f"tree.unflatten: leaves must be a sequence of them, got {leaves!r}") from None
    except ValueError as error:
        raise foreign(error)


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list:
    """The leaves of a tree.

    Args:
        tree: a tree.
        is_leaf: function (node) -> bool: which nodes count as leaves, too; None: none.

    Returns: list.

    Example:
        >>> weft.tree.leaves({"w": 1, "b": [2, 3]})
        [2, 3, 1]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeDef:
    """The structure of a tree.

    Args:
        tree: a tree.
        is_leaf: function (node) -> bool: which nodes count as leaves, too; None: none.

    Returns: TreeDef: comparable, hashable.

    Example:
        >>> weft.tree.structure([1, 2]) == weft.tree.structure([3, 4])
        True
    """
    return flatten(tree, is_leaf)[1]


def tuple_of(treedefs: Iterable[TreeDef]) -> TreeDef:
    """The structure of a tuple of trees of given structures."""
    return optree.treespec_tuple(treedefs, namespace=NAMESPACE)
