"""Partial results of an associative function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _weft
from .._core import docs as _docs
from .._core import tree as _tree
from .._core.errors import foreign, type_error, value_error
from ._shapes import pad

__all__ = [
    "associative_scan",
]


def associative_scan(fn: Callable, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All partial results of combining slices along an axis with an associative function, in about 2 log2(n) steps.

    Args:
        fn: (x, y) -> z on trees of arrays, all slices at once.
        elems: array or tree of arrays of one size along the axis.
        reverse: whether to begin at the end.
        axis: the axis, negative from the end.

    Returns: tree like elems: slice i combines those up to i.

    Raises:
        TypeError: fn is no function, or what it returns has another structure than elems.
        ValueError: sizes along the axis differ, or elems holds no arrays.

    Source: Ladner and Fischer, "Parallel prefix computation", 1980.

    Example:
        >>> weft.lax.associative_scan(weft.lax.add, wnp.array([1, 2, 3, 4]))
        Array([ 1,  3,  6, 10], dtype=int32)
    """
    if not callable(fn):
        raise type_error(f"associative_scan: fn must be a function of two slices, got {type(fn).__name__}")
    leaves, treedef = _tree.flatten(elems)
    if not leaves:
        raise value_error("associative_scan: elems holds no arrays")
    leaves = [_weft.array(leaf, None, False) for leaf in leaves]
    axis = _weft.check_axis(axis, leaves[0].ndim, "associative_scan")
    for leaf in leaves:
        if leaf.ndim <= axis or leaf.shape[axis] != leaves[0].shape[axis]:
            raise value_error(
                f"associative_scan: the arrays must have one size along axis {axis}, got the shapes "
                f"{[tuple(leaf.shape) for leaf in leaves]}"
            )
    leaves = [_weft.moveaxis(leaf, axis, 0) for leaf in leaves]
    if reverse:
        leaves = [_weft.flip(leaf, 0) for leaf in leaves]

    def combine(a: list, b: list) -> list:
        # fn takes whole arrays, as in JAX, with the axis where the caller has it.
        back = lambda xs: treedef.unflatten([_weft.moveaxis(x, 0, axis) for x in xs])
        try:
            combined = fn(back(a), back(b))
        except TypeError as error:
            raise foreign(error)  # fn does not take two
        out, tree = _tree.flatten(combined)
        if tree != treedef:
            raise type_error(
                f"associative_scan: fn returns {_tree.in_words(tree)}, the elements are {_tree.in_words(treedef)}"
            )
        return [_weft.moveaxis(x, axis, 0) for x in out]

    def run(xs: list) -> list:
        n = xs[0].shape[0]
        if n < 2:
            return xs
        pairs = combine([x[: n - 1 : 2] for x in xs], [x[1::2] for x in xs])
        odd = run(pairs)
        rest = [x[2::2] for x in xs]
        even = combine([o[: rest[0].shape[0]] for o in odd], rest) if rest[0].shape[0] else rest
        out = []
        for first, o, e in zip(xs, odd, even):
            evens = _weft.concatenate([first[:1], e.astype(first.dtype)], 0)
            places = [(0, 1, 1), (1, 0, 1)] if n % 2 == 0 else [(0, 0, 1), (1, 1, 1)]
            tail = [(0, 0, 0)] * (first.ndim - 1)
            zero = _weft.full((), 0, first.dtype)
            spread = [pad(part, zero, [place, *tail]) for part, place in zip((evens, o.astype(first.dtype)), places)]
            out.append(spread[0] | spread[1] if first.dtype == bool else spread[0] + spread[1])
        return out

    leaves = run(leaves)
    if reverse:
        leaves = [_weft.flip(leaf, 0) for leaf in leaves]
    return treedef.unflatten([_weft.moveaxis(leaf, 0, axis) for leaf in leaves])


_docs.complete(globals())
