"""Reductions along dimensions and in windows, and partial sums."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from .. import _docs, _weft
from .. import tree as _tree
from .._weft import Array
from ..control import scan
from . import _primitives
from ._shapes import pad
from ._slicing import slice

__all__ = [
    "argmax",
    "argmin",
    "cumlogsumexp",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "reduce",
    "reduce_and",
    "reduce_max",
    "reduce_min",
    "reduce_or",
    "reduce_prod",
    "reduce_sum",
    "reduce_window",
]


def _reduction(name: str):
    def reduction(operand, axes) -> Array:
        return _weft.bind(name, [operand], {"dims": [_weft.check_axis(a, operand.ndim, name) for a in axes]})[0]

    reduction.__name__ = reduction.__qualname__ = name
    reduction.__doc__ = f"{name[7:]} over axes."
    return reduction


def _cumulative(name: str):
    def cumulative(operand, axis: int = 0, reverse: bool = False) -> Array:
        return _weft.cumulative(name, operand, axis, reverse)

    cumulative.__name__ = cumulative.__qualname__ = name
    cumulative.__doc__ = f"{name} along an axis."
    return cumulative


def argmax(operand, axis: int, index_dtype="int32") -> Array:
    """The index of the first largest element along an axis.

    Args:
        index_dtype: the dtype of the result.

    Returns: array without the axis.

    Raises:
        ValueError: the axis has no elements.

    Example:
        >>> weft.lax.argmax(wnp.array([1, 7, 3]), 0)
        Array(1, dtype=int32)
    """
    return _weft.argreduce("argmax", operand, axis, False).astype(index_dtype)


def argmin(operand, axis: int, index_dtype="int32") -> Array:
    """The index of the first smallest element along an axis.

    Args:
        index_dtype: the dtype of the result.

    Returns: array without the axis.

    Raises:
        ValueError: the axis has no elements.

    Example:
        >>> weft.lax.argmin(wnp.array([4, 1, 3]), 0)
        Array(1, dtype=int32)
    """
    return _weft.argreduce("argmin", operand, axis, False).astype(index_dtype)


def _combiner(computation) -> str | None:
    """Which reduction a two-argument function is, if Weft has a primitive for it."""
    from .. import numpy as wnp

    table: list[tuple[str, tuple]] = [
        ("sum", (_primitives.add, wnp.add)),
        ("prod", (_primitives.mul, wnp.multiply)),
        ("max", (_primitives.max, wnp.maximum)),
        ("min", (_primitives.min, wnp.minimum)),
        ("and", (_primitives.and_, wnp.logical_and, wnp.bitwise_and)),
        ("or", (_primitives.or_, wnp.logical_or, wnp.bitwise_or)),
    ]
    return next((name for name, functions in table if computation in functions), None)


def reduce(operands, init_values, computation: Callable, dimensions: Sequence[int]):
    """The elements along dimensions combined by an associative function.

    A sum, product, maximum, minimum, and, or (lax.add, lax.mul, lax.max, lax.min, lax.bitwise_and, lax.bitwise_or,
    their NumPy names, or a function that is traced to one of them) is one reduction; any other function is a loop over
    the elements.

    Args:
        operands: array, or a tree of arrays of one shape, which are combined together.
        init_values: what it starts with: a number, or a tree of them.
        computation: (x, y) -> z on arrays, or on trees of them.
        dimensions: along which.

    Returns: array, or a tree of them, without the dimensions.

    Example:
        >>> weft.lax.reduce(wnp.array([[1, 2], [3, 4]]), 0, weft.lax.add, (0,))
        Array([4, 6], dtype=int32)
    """
    leaves, treedef = _tree.flatten(operands)
    inits = _tree.leaves(init_values)
    name = _combiner(computation) if len(leaves) == 1 else None
    if name is not None:
        total = _weft.bind(f"reduce_{name}", [leaves[0]], {"dims": sorted(d % leaves[0].ndim for d in dimensions)})[0]
        return treedef.unflatten([computation(total, _weft.astype(inits[0], total.dtype))])
    rank = leaves[0].ndim
    dims = sorted(d % rank for d in dimensions)
    kept = [d for d in range(rank) if d not in dims]
    flat = []
    for leaf in leaves:
        moved = _weft.transpose(leaf, dims + kept)
        flat.append(_weft.reshape(moved, (-1, *moved.shape[len(dims) :])))
    start = treedef.unflatten([_weft.full(x.shape[1:], i, x.dtype) for x, i in zip(flat, inits)])
    return scan(lambda c, x: (computation(c, x), None), start, treedef.unflatten(flat))[0]


def _window_padding(padding, shape, window, strides, base, dilation) -> list[tuple[int, int]]:
    if not isinstance(padding, str):
        return [(int(lo), int(hi)) for lo, hi in padding]
    if padding.upper() == "VALID":
        return [(0, 0)] * len(shape)
    if padding.upper() != "SAME":
        raise ValueError(f"reduce_window: padding must be 'SAME', 'VALID' or pairs, got {padding!r}")
    pairs = []
    for n, w, s, b, d in zip(shape, window, strides, base, dilation):
        size, wide = (n - 1) * b + 1, (w - 1) * d + 1
        total = builtins.max((-(-size // s) - 1) * s + wide - size, 0)
        pairs.append((total // 2, total - total // 2))
    return pairs


def reduce_window(
    operand,
    init_value,
    computation: Callable,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding="VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Array:
    """The elements of every window combined by an associative function.

    Args:
        init_value: what it starts with, and what padding counts as.
        computation: (x, y) -> z on arrays, such as lax.add or lax.max.
        window_dimensions: the shape of the window, one size per dimension.
        window_strides: the step of the window; None: 1.
        padding: "VALID", "SAME" or a pair (low, high) per dimension.
        base_dilation: by what factor the array is spread; None: 1.
        window_dilation: by what factor the window is spread; None: 1.

    Returns: array of the dtype of the operand: one element per window.

    Raises:
        ValueError: there is no such padding, or there is not one size per dimension.

    Example:
        >>> weft.lax.reduce_window(wnp.array([1, 5, 2, 8]), 0, weft.lax.max, (2,), (2,))
        Array([5, 8], dtype=int32)
    """
    operand = _weft.array(operand, None, False)
    rank = operand.ndim
    window = list(window_dimensions)
    if len(window) != rank:
        raise ValueError(f"reduce_window: {len(window)} window dimensions for an array of shape {operand.shape}")
    strides = list(window_strides or [1] * rank)
    base, dilation = list(base_dilation or [1] * rank), list(window_dilation or [1] * rank)
    pairs = _window_padding(padding, operand.shape, window, strides, base, dilation)
    init = _weft.astype(init_value, operand.dtype)
    wide = pad(operand, init, [(lo, hi, b - 1) for (lo, hi), b in zip(pairs, base)])
    counts = [(n - (w - 1) * d - 1) // s + 1 for n, w, s, d in zip(wide.shape, window, strides, dilation)]
    if any(c <= 0 for c in counts):
        return _weft.full([builtins.max(c, 0) for c in counts], init_value, operand.dtype)
    out: Any = None
    for place in itertools.product(*(range(w) for w in window)):
        start = [p * d for p, d in zip(place, dilation)]
        limit = [a + (c - 1) * s + 1 for a, c, s in zip(start, counts, strides)]
        part = slice(wide, start, limit, strides)
        out = part if out is None else computation(out, part)
    return computation(out, init)


reduce_sum, reduce_prod, reduce_max = _reduction("reduce_sum"), _reduction("reduce_prod"), _reduction("reduce_max")
reduce_min, reduce_and, reduce_or = _reduction("reduce_min"), _reduction("reduce_and"), _reduction("reduce_or")
cumsum, cumprod, cummax = _cumulative("cumsum"), _cumulative("cumprod"), _cumulative("cummax")
cummin, cumlogsumexp = _cumulative("cummin"), _cumulative("cumlogsumexp")

_docs.complete(globals())
