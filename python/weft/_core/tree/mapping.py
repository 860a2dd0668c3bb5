"""Functions of all leaves of a tree, or of several trees."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

import optree

from ..errors import foreign, type_error, value_error
from .flattening import TreeDef, flatten, leaves, structure
from .paths import flatten_with_path
from .prefixes import subtrees_of
from .registration import check_function
from .words import in_words


def map(f: Callable, tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """A function applied to each leaf (and to what stands at its place in further trees).

    Args:
        f: takes one leaf of each tree.
        tree: the tree that says what the leaves are.
        *rest: trees with the same structure, or subtrees in place of leaves.
        is_leaf: function (node) -> bool: which nodes count as leaves, too; None: none.

    Returns: tree of the results.

    Raises:
        TypeError: f is no function, or does not take as many arguments as there are trees.
        ValueError: structures differ.

    Example:
        >>> weft.tree.map(lambda x, y: x + y, {"a": 1, "b": 2}, {"a": 10, "b": 20})
        {'a': 11, 'b': 22}
    """
    check_function(f, "tree.map: f")
    first, treedef = flatten(tree, is_leaf)
    others = [subtrees_of(treedef, tree, other, "tree_map", is_leaf) for other in rest]
    try:
        results = [f(*args) for args in zip(first, *others)]
    except TypeError as error:
        raise foreign(error)  # f does not take so many
    return treedef.unflatten(results)


def map_with_path(
    f: Callable,
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """A function applied to the path of each leaf and the leaf.

    Args:
        f: takes (path, leaf, ...); a path is a tuple of keys, as of flatten_with_path.
        tree: the tree that says what the leaves are.
        *rest: trees with the same structure.
        is_leaf: function (node) -> bool: which nodes count as leaves, too; None: none.
        is_leaf_takes_path: whether is_leaf is a function (path, node) -> bool.

    Returns: tree of the results.

    Raises:
        ValueError: structures differ.

    Example:
        >>> weft.tree.map_with_path(lambda path, leaf: leaf if path[-1].key == "w" else 0 * leaf, {"b": 1, "w": 2})
        {'b': 0, 'w': 2}
    """
    pairs, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    judge = None if is_leaf_takes_path else is_leaf
    others = [subtrees_of(treedef, tree, other, "tree_map_with_path", judge) for other in rest]
    return treedef.unflatten([f(*pair, *more) for pair, *more in zip(pairs, *others)])


def flatten_up_to(treedef: TreeDef, tree: Any) -> list:
    """What stands in a tree at the places of a structure's leaves."""
    try:
        return treedef.flatten_up_to(tree)
    except ValueError as error:
        raise foreign(error)


_NOTHING: Any = object()


def reduce(
    function: Callable, tree: Any, initializer: Any = _NOTHING, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """The leaves combined from left to right.

    Args:
        function: (so far, leaf) -> value.
        tree: a tree.
        initializer: what it starts with; not given: the first leaf.
        is_leaf: function (node) -> bool: which nodes count as leaves, too; None: none.

    Returns: value.

    Raises:
        TypeError: there are no leaves and nothing to start with.

    Example:
        >>> weft.tree.reduce(lambda a, b: a + b, [1, (2, 3)])
        6
    """
    found = leaves(tree, is_leaf)
    if initializer is _NOTHING and not found:
        raise type_error("reduce: the tree has no leaves; give an initializer")
    return (
        functools.reduce(function, found) if initializer is _NOTHING else functools.reduce(function, found, initializer)
    )


def all(tree: Any, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether every leaf is true.

    Args:
        tree: a tree.
        is_leaf: function (node) -> bool: which nodes count as leaves, too; None: none.

    Returns: bool.

    Example:
        >>> weft.tree.all([True, {"a": False}])
        False
    """
    return builtins.all(leaves(tree, is_leaf))


def transpose(outer_treedef: TreeDef, inner_treedef: TreeDef | None, pytree_to_transpose: Any) -> Any:
    """A tree of trees turned inside out.

    Args:
        outer_treedef: the structure of the tree.
        inner_treedef: the structure of each of its leaves; None: that of the first one.
        pytree_to_transpose: the tree.

    Returns: tree of structure inner_treedef with trees of structure outer_treedef as leaves.

    Raises:
        ValueError: the tree has another structure.

    Example:
        >>> outer, inner = weft.tree.structure([0, 0]), weft.tree.structure({"a": 0, "b": 0})
        >>> weft.tree.transpose(outer, inner, [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
        {'a': [1, 3], 'b': [2, 4]}
    """
    parts = flatten_up_to(outer_treedef, pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = structure(parts[0] if parts else None)
    for part in parts:
        if structure(part) != inner_treedef:
            raise value_error(
                f"tree.transpose: inner_treedef is {in_words(inner_treedef)}, but a leaf of the outer tree is "
                f"{in_words(structure(part))}"
            )
    return optree.tree_transpose(outer_treedef, inner_treedef, pytree_to_transpose)
