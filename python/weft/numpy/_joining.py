"""Arrays joined, cut and repeated."""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .. import _weft
from .._core import copied as _copied
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._core.tree import jax_semantics
from .._weft import Array
from ..arguments import concrete, count, integer, is_integer, sizes
from ..typing import DTypeLike, NestedLike
from ._out_sharding import lying
from ._shape import _array, _together, atleast_1d, atleast_2d, atleast_3d, ndim, ravel
from ._sorting import searchsorted

__all__ = [
    "append",
    "array_split",
    "block",
    "column_stack",
    "concat",
    "concatenate",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "kron",
    "repeat",
    "resize",
    "row_stack",
    "split",
    "stack",
    "tile",
    "unstack",
    "vsplit",
    "vstack",
]


def _arrays(arrays, name: str) -> list[Array]:
    if isinstance(arrays, str) or not isinstance(arrays, Iterable):
        raise type_error(f"{name}: expected a sequence of arrays, got {arrays!r}")
    return list(_together(*arrays))


def concatenate(arrays: Sequence[NestedLike], axis: int | None = 0, dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along an existing axis, promoted to one dtype.

    Args:
        arrays: arrays whose other sizes agree.
        axis: the axis, negative from the end; None: they are flattened first.

    Returns: array.

    Raises:
        TypeError: other sizes differ, or arrays are no sequence.
        ValueError: there are no arrays.

    Example:
        >>> wnp.concatenate([wnp.array([1, 2]), wnp.array([3.5])])
        Array([1. , 2. , 3.5], dtype=float32)
    """
    parts = _arrays(arrays, "concatenate")
    if axis is None:
        parts, axis = [a.reshape(-1) for a in parts], 0
    out = _copied.concatenate(parts, axis)
    return out if dtype is None else out.astype(dtype)


def append(arr: NestedLike, values: NestedLike, axis: int | None = None) -> Array:
    """Values joined behind an array.

    Args:
        values: array, number or nested list of numbers.
        axis: the axis, negative from the end; None: both are flattened first.

    Returns: array.

    Raises:
        TypeError: other sizes differ.

    Example:
        >>> wnp.append(wnp.array([1, 2]), 3)
        Array([1, 2, 3], dtype=int32)
    """
    return concatenate([arr, values], axis)


def stack(arrays: Sequence[NestedLike], axis: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Arrays of one shape joined along a new axis, promoted to one dtype.

    Args:
        arrays: arrays of one shape.
        axis: the axis of the result that is new.

    Returns: array of one more dimension.

    Raises:
        TypeError: shapes differ.
        ValueError: there are no arrays.

    Example:
        >>> wnp.stack([wnp.array([1, 2]), wnp.array([3, 4])], axis=1)
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    out = _copied.stack(_arrays(arrays, "stack"), axis)
    return out if dtype is None else out.astype(dtype)


def unstack(x: NestedLike, axis: int = 0) -> tuple[Array, ...]:
    """The slices along an axis.

    Returns: tuple of arrays without the axis.

    Example:
        >>> wnp.unstack(wnp.array([[1, 2], [3, 4]]))
        (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    x = _weft.moveaxis(_array(x), axis, 0)
    return tuple(x[i] for i in range(x.shape[0]))


def vstack(tup: Sequence[NestedLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined as rows: vectors count as one row each.

    Args:
        tup: arrays whose sizes but the first agree.

    Returns: array of two dimensions or more.

    Raises:
        TypeError: sizes differ.

    Example:
        >>> wnp.vstack([wnp.array([1, 2]), wnp.array([3, 4])])
        Array([[1, 2],
               [3, 4]], dtype=int32)
    """
    rows = atleast_2d(*_arrays(tup, "vstack"))
    return concatenate(rows if isinstance(rows, list) else [rows], 0, dtype)


def hstack(tup: Sequence[NestedLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along the second axis, vectors along the first.

    Returns: array.

    Raises:
        TypeError: sizes differ.

    Example:
        >>> wnp.hstack([wnp.array([1, 2]), wnp.array([3, 4])])
        Array([1, 2, 3, 4], dtype=int32)
    """
    arrays = atleast_1d(*_arrays(tup, "hstack"))
    arrays = arrays if isinstance(arrays, list) else [arrays]
    return concatenate(arrays, 0 if arrays[0].ndim == 1 else 1, dtype)


def dstack(tup: Sequence[NestedLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along the third axis.

    Returns: array of three dimensions or more.

    Raises:
        TypeError: sizes differ.

    Example:
        >>> wnp.dstack([wnp.array([1, 2]), wnp.array([3, 4])])
        Array([[[1, 3],
                [2, 4]]], dtype=int32)
    """
    arrays = atleast_3d(*_arrays(tup, "dstack"))
    return concatenate(arrays if isinstance(arrays, list) else [arrays], 2, dtype)


def column_stack(tup: Sequence[NestedLike]) -> Array:
    """Vectors (and matrices) joined as columns.

    Args:
        tup: vectors of one length, or matrices with that many rows; numbers are vectors of length 1.

    Returns: matrix.

    Raises:
        TypeError: lengths differ.

    Example:
        >>> wnp.column_stack([wnp.array([1, 2]), wnp.array([3, 4])])
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    return concatenate([a.reshape(-1, 1) if a.ndim < 2 else a for a in _arrays(tup, "column_stack")], 1)


def block(arrays: Sequence[NestedLike]) -> Array:
    """An array put together from nested lists of blocks: the innermost lists join along the last axis, those around
    them along the one before.

    Args:
        arrays: nested lists of arrays and numbers, all nested equally deep.

    Returns: array.

    Raises:
        ValueError: a list is empty, or blocks are nested unequally deep.
        TypeError: sizes differ.

    Example:
        >>> wnp.block([[wnp.eye(2), wnp.zeros((2, 1))], [wnp.ones((1, 3))]])
        Array([[1., 0., 0.],
               [0., 1., 0.],
               [1., 1., 1.]], dtype=float32)
    """

    def depth(x) -> int:
        return 1 + builtins.max([depth(y) for y in x], default=0) if isinstance(x, list) else 0

    levels = depth(arrays)
    rank = builtins.max(levels, *[a.ndim for a in map(_array, _flat(arrays))])

    def join(x, level: int) -> Array:
        if not isinstance(x, list):
            if level != levels and levels:
                raise value_error("block: all blocks must be nested equally deep")
            a = _array(x)
            return a.reshape((1,) * (rank - a.ndim) + a.shape)
        if not x:
            raise value_error("block: a list is empty")
        return _copied.concatenate([join(y, level + 1) for y in x], level - levels)

    return join(arrays, 0)


def _flat(x) -> list:
    return [z for y in x for z in _flat(y)] if isinstance(x, list) else [x]


def split(ary: NestedLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """An array cut along an axis.

    Returns: list of arrays.

    Raises:
        TypeError: indices_or_sections is neither an integer nor a sequence of integers.
        ValueError: there are less than 1 parts, or the axis does not divide into equal ones.

    Example:
        >>> wnp.split(wnp.arange(5), [2, 3])
        [Array([0, 1], dtype=int32), Array([2], dtype=int32), Array([3, 4], dtype=int32)]
    """
    ary = _array(ary)
    axis = _weft.check_axis(axis, ary.ndim, "split")
    n = ary.shape[axis]
    bounds = _cuts(indices_or_sections, "split")
    if isinstance(bounds, int):
        if n % bounds:
            raise value_error(f"split: {n} elements along axis {axis} do not divide into {bounds} equal parts")
        return array_split(ary, bounds, axis)
    return _cut(ary, [0, *bounds, n], axis)


def _cuts(indices_or_sections, name: str) -> int | list[int]:
    """A number of parts, or the indices before which an axis is cut."""
    what = f"{name}: indices_or_sections"
    each = list(indices_or_sections) if np.iterable(indices_or_sections) else [indices_or_sections]
    for given in each:
        if _weft.is_traced(given) and _weft.is_inexact(given.dtype):
            number = concrete(float, given, what)  # raises where it is not known
            if jax_semantics() and number == int(number):
                indices_or_sections = int(number)
    if np.iterable(indices_or_sections):
        return [integer(i, what) for i in each]
    parts = integer(indices_or_sections, what)
    if parts < 1:
        raise value_error(f"{what} must be at least 1, got {parts}")
    return parts


def _cut(ary, bounds, axis: int) -> list[Array]:
    key = (builtins.slice(None),) * axis
    return [ary[key + (builtins.slice(a, b),)] for a, b in zip(bounds[:-1], bounds[1:])]


def array_split(ary: NestedLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """An array cut along an axis into parts that may differ by one element, the longer ones first.

    Args:
        indices_or_sections: how many parts; or the indices before which it is cut.

    Returns: list of arrays.

    Raises:
        TypeError: indices_or_sections is neither an integer nor a sequence of integers.
        ValueError: there are less than 1 parts, or 2**31 or more.

    Example:
        >>> wnp.array_split(wnp.arange(5), 2)
        [Array([0, 1, 2], dtype=int32), Array([3, 4], dtype=int32)]
    """
    ary = _array(ary)
    k = _cuts(indices_or_sections, "array_split")
    if not isinstance(k, int):
        return split(ary, k, axis)
    axis = _weft.check_axis(axis, ary.ndim, "array_split")
    if k >= 2**31:  # no memory holds so many arrays
        raise value_error(f"array_split: indices_or_sections must be below 2**31, got {k}")
    n, bounds = ary.shape[axis], [0]
    for i in range(k):
        bounds.append(bounds[-1] + n // k + (1 if i < n % k else 0))
    return _cut(ary, bounds, axis)


def vsplit(ary: NestedLike, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """An array cut along its first axis.

    Returns: list of arrays.

    Raises:
        ValueError: the axis does not divide into equal parts.

    Example:
        >>> wnp.vsplit(wnp.array([[1, 2], [3, 4]]), 2)
        [Array([[1, 2]], dtype=int32), Array([[3, 4]], dtype=int32)]
    """
    return split(ary, indices_or_sections, 0)


def hsplit(ary: NestedLike, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """An array cut along its second axis, a vector along its first.

    Returns: list of arrays.

    Raises:
        ValueError: the axis does not divide into equal parts.

    Example:
        >>> wnp.hsplit(wnp.arange(4), 2)
        [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    return split(ary, indices_or_sections, 1 if ndim(ary) > 1 else 0)


def dsplit(ary: NestedLike, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """An array cut along its third axis.

    Returns: list of arrays.

    Raises:
        ValueError: the axis does not divide into equal parts.

    Example:
        >>> [part.shape for part in wnp.dsplit(wnp.ones((2, 3, 4)), 2)]
        [(2, 3, 2), (2, 3, 2)]
    """
    return split(ary, indices_or_sections, 2)


def tile(A: NestedLike, reps: int | Sequence[int]) -> Array:
    """An array repeated as a block.

    Args:
        A: array, number or nested list of numbers.
        reps: how often along each axis, an integer or a tuple of them.

    Returns: array of the dtype of A.

    Raises:
        ValueError: a number of repetitions is negative.

    Example:
        >>> wnp.tile(wnp.array([1, 2]), (2, 2))
        Array([[1, 2, 1, 2],
               [1, 2, 1, 2]], dtype=int32)
    """
    a, times = _array(A), sizes(reps, "tile")
    n = builtins.max(a.ndim, len(times))
    a, times = a.reshape((1,) * (n - a.ndim) + a.shape), (1,) * (n - len(times)) + times
    wide = _weft.expand_dims(a, [2 * i for i in range(n)])
    out = _weft.broadcast_to(wide, [v for r, d in zip(times, a.shape) for v in (r, d)])
    return out.reshape([r * d for r, d in zip(times, a.shape)])


def repeat(
    a: NestedLike,
    repeats: NestedLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """Each element (or slice) several times.

    Args:
        repeats: how often: an integer, or a vector of one per element. Such a vector must be known, unless
            total_repeat_length is given.
        axis: the axis, negative from the end; None: of the flattened array.
        total_repeat_length: the size of the result along the axis: what is beyond is dropped, what is missing repeats
            the last element.

    Returns: array of the dtype of a.

    Raises:
        ValueError: there are not as many repeats as elements, or one is negative.
        TypeError: repeats are no integers.
        weft.TracerError: repeats are traced and total_repeat_length is not given.

    Example:
        >>> wnp.repeat(wnp.array([1, 2]), 2)
        Array([1, 1, 2, 2], dtype=int32)
        >>> wnp.repeat(wnp.array([1, 2]), wnp.array([1, 3]))
        Array([1, 2, 2, 2], dtype=int32)
    """
    if out_sharding is not None:
        return lying(out_sharding, repeat, a, repeats=repeats, axis=axis, total_repeat_length=total_repeat_length)
    a = _array(a)
    if a.ndim == 0:
        a = a.reshape(1)
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = _weft.check_axis(axis, a.ndim, "repeat")
    n = a.shape[axis]
    if is_integer(repeats) and total_repeat_length is None:
        times = count(repeats, "repeat: repeats")
        wide = _weft.expand_dims(a, axis + 1)
        dims = list(wide.shape)
        dims[axis + 1] = times
        return _weft.broadcast_to(wide, dims).reshape(a.shape[:axis] + (n * times,) + a.shape[axis + 1 :])
    if total_repeat_length is not None:
        counts = _weft.broadcast_to(_array(repeats).reshape(-1).astype("int32"), (n,))
        ends = _weft.cumulative("cumsum", counts, 0, False)
        place = _weft.iota((total_repeat_length,), 0, "int32")
        index = searchsorted(ends, place, "right")
        return _weft.take(a, index, axis, "clip")
    known = np.asarray(repeats)
    if known.dtype.kind not in "iub":
        raise type_error(f"repeat: repeats must be integers, got {repeats!r}")
    if (known < 0).any():
        raise value_error(f"repeat: repeats must not be negative, got {repeats!r}")
    if known.size == 1:
        return repeat(a, int(known.reshape(())), axis)
    if known.shape != (n,):
        raise value_error(f"repeat: {known.shape} repeats for {n} elements along axis {axis}")
    rows = np.repeat(np.arange(n), known)
    return _weft.take(a, _weft.array(rows.astype(np.int32), None, True), axis, "clip")


def resize(a: NestedLike, new_shape: int | Sequence[int]) -> Array:
    """The elements repeated or cut to fill a shape; zeros where there are none.

    Args:
        new_shape: the shape of the result, an integer or a tuple of them.

    Returns: array of that shape, of the dtype of a.

    Example:
        >>> wnp.resize(wnp.array([1, 2, 3]), (2, 2))
        Array([[1, 2],
               [3, 1]], dtype=int32)
    """
    shape = (new_shape,) if is_integer(new_shape) else tuple(new_shape)
    flat, n = ravel(a), math.prod(shape)
    if flat.shape[0] == 0:
        return _weft.full(shape, 0, flat.dtype)
    times = -(-n // flat.shape[0])
    return tile(flat, times)[:n].reshape(shape)


def kron(a: NestedLike, b: NestedLike) -> Array:
    """The Kronecker product: each element of a times the array b.

    Args:
        b: array, number or nested list of numbers.

    Returns: array whose sizes are the products of theirs.

    Example:
        >>> wnp.kron(wnp.array([1, 10]), wnp.array([1, 2]))
        Array([ 1,  2, 10, 20], dtype=int32)
    """
    a, b = _together(a, b)
    n = builtins.max(a.ndim, b.ndim)
    a, b = a.reshape((1,) * (n - a.ndim) + a.shape), b.reshape((1,) * (n - b.ndim) + b.shape)
    product = _weft.expand_dims(a, [2 * i + 1 for i in range(n)]) * _weft.expand_dims(b, [2 * i for i in range(n)])
    return product.reshape([x * y for x, y in zip(a.shape, b.shape)])


concat, row_stack = concatenate, vstack


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "dtype": "the dtype of the result; None: that of the arrays together.",
    "indices_or_sections": "how many equal parts; or the indices before which it is cut.",
    "tup": "arrays whose other sizes agree.",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
