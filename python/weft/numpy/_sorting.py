"""Sorting and searching."""

from __future__ import annotations

from typing import Any

from .. import _weft
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._weft import Array
from ..arguments import one_of
from ..typing import DTypeLike, NestedLike
from ._along import along
from ._primitives import less, less_equal
from ._shape import _together

__all__ = [
    "argpartition",
    "argsort",
    "digitize",
    "lexsort",
    "partition",
    "searchsorted",
    "sort",
    "sort_complex",
]


def sort(
    a: NestedLike,
    axis: int | None = -1,
    *,
    kind: Any = None,
    order: str | None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """Elements sorted along an axis, stably, NaN last; complex numbers by real, then by imaginary part.

    Args:
        axis: the axis, negative from the end; None: of the flattened array.
        descending: whether the largest comes first (NaN before it).

    Returns: array of the shape and dtype of a.

    Example:
        >>> wnp.sort(wnp.array([3, 1, 2]))
        Array([1, 2, 3], dtype=int32)
    """
    del stable
    _always_stable(kind, order, "sort")
    a = _weft.array(a, None, False)
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = _weft.check_axis(axis, a.ndim, "sort")
    if _weft.dtype_kind(a.dtype) == "complex":
        out = along(a, argsort(a, axis), axis)
    else:
        out = _weft.bind("sort", [a], {"dim": axis, "num_keys": 1})[0]
    return _weft.flip(out, axis) if descending else out


def _always_stable(kind: Any, order: Any, name: str) -> None:
    # The one way of sorting keeps what each of NumPy's promises.
    one_of(kind, (None, "quicksort", "mergesort", "heapsort", "stable"), f"{name}: kind")
    if order is not None:
        raise type_error(f"{name}: order must be None, got {order!r}: elements have no fields")


def argsort(
    a: NestedLike,
    axis: int | None = -1,
    *,
    kind: Any = None,
    order: str | None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """The indices that sort along an axis; equal elements keep their order.

    Args:
        axis: the axis, negative from the end; None: of the flattened array.
        descending: whether the largest comes first.
        dtype: an integer dtype of the result; None: int32.

    Returns: array of integers of the shape of a.

    Example:
        >>> wnp.argsort(wnp.array([3, 1, 2]))
        Array([1, 2, 0], dtype=int32)
    """
    del stable
    _always_stable(kind, order, "argsort")
    if dtype is not None:
        to = _weft.dtype(dtype)
        if _weft.dtype_kind(to) not in ("signed", "unsigned"):
            raise type_error(f"argsort: dtype must be one of integers, got {to}")
        return argsort(a, axis, descending=descending).astype(to)
    a = _weft.array(a, None, False)
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = _weft.check_axis(axis, a.ndim, "argsort")
    if descending:
        # Order of the reversed array, counted from the other end, keeps equal elements in their order.
        return _weft.flip(a.shape[axis] - 1 - argsort(_weft.flip(a, axis), axis), axis)
    index = _weft.iota(a.shape, axis, "int32")
    if _weft.dtype_kind(a.dtype) == "complex":
        parts = [_weft.bind_elementwise(p, (a,), {}) for p in ("real", "imag")]
        return _weft.bind("sort", [*parts, index], {"dim": axis, "num_keys": 2})[2].astype(int)
    return _weft.bind("sort", [a, index], {"dim": axis, "num_keys": 1})[1].astype(int)


def sort_complex(a: NestedLike) -> Array:
    """Complex numbers sorted along the last axis by real, then by imaginary part.

    Returns: array of the shape of a, of a complex dtype.

    Example:
        >>> wnp.sort_complex(wnp.array([2 + 1j, 1 + 5j, 2 - 1j]))
        Array([1.+5.j, 2.-1.j, 2.+1.j], dtype=complex64)
    """
    a = sort(a)
    return a if _weft.dtype_kind(a.dtype) == "complex" else a.astype(_weft.result_type(a, 1j))


def partition(a: NestedLike, kth: int, axis: int = -1) -> Array:
    """The element that sorting would put at a place is there; smaller ones are before it, larger ones behind.

    Returns: array of the shape and dtype of a.

    Example:
        >>> wnp.partition(wnp.array([3, 1, 2]), 1)
        Array([1, 2, 3], dtype=int32)
    """
    a = _weft.array(a, None, False)
    _kth(kth, a.shape[_weft.check_axis(axis, a.ndim, "partition")])
    return sort(a, axis)


def argpartition(a: NestedLike, kth: int, axis: int = -1) -> Array:
    """The indices that partition an array.

    Returns: array of int32 of the shape of a.

    Example:
        >>> wnp.argpartition(wnp.array([3, 1, 2]), 1)
        Array([1, 2, 0], dtype=int32)
    """
    a = _weft.array(a, None, False)
    _kth(kth, a.shape[_weft.check_axis(axis, a.ndim, "argpartition")])
    return argsort(a, axis)


def _kth(kth: int, n: int) -> None:
    if not -n <= kth < n:
        raise value_error(f"partition: kth {kth} is out of range for {n} elements")


def lexsort(keys: Any, axis: int = -1) -> Array:
    """The indices that sort by several keys, the last one first.

    Args:
        keys: arrays of one shape, or an array of them.

    Returns: array of int32 of that shape.

    Raises:
        TypeError: there are no keys.

    Example:
        >>> wnp.lexsort((wnp.array([3, 1, 2]), wnp.array([0, 1, 0])))
        Array([2, 0, 1], dtype=int32)
    """
    keys = [_weft.array(k, None, False) for k in keys]
    if not keys:
        raise type_error("lexsort: at least one key is needed")
    if keys[0].ndim == 0:  # a single place, whatever the axis
        return _weft.full((), 0, int)
    axis = _weft.check_axis(axis, keys[0].ndim, "lexsort")
    index = _weft.iota(keys[0].shape, axis, "int32")
    return _weft.bind("sort", [*keys[::-1], index], {"dim": axis, "num_keys": len(keys)})[-1].astype(int)


# JAX's ways of searching, which differ in speed alone.
_METHODS = "scan", "scan_unrolled", "sort", "compare_all"


def searchsorted(
    a: NestedLike, v: NestedLike, side: str = "left", sorter: NestedLike | None = None, *, method: str = "scan"
) -> Array:
    """Where values go into a sorted vector.

    Args:
        a: the sorted vector.
        v: array or number: the values.
        side: "left": before equal elements; "right": behind them.
        sorter: the indices that sort a, where it is not sorted; None: it is.

    Returns: array of int32 of the shape of v.

    Raises:
        ValueError: a is no vector, or there is no such side or method.

    Example:
        >>> wnp.searchsorted(wnp.array([1, 3, 5]), wnp.array([0, 3, 9]))
        Array([0, 1, 3], dtype=int32)
    """
    one_of(method, _METHODS, "searchsorted: method")
    a, v = _together(a, v)
    if a.ndim != 1:
        raise value_error(f"searchsorted: a must be a vector, got shape {a.shape}")
    if side not in ("left", "right"):
        raise value_error(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    if sorter is not None:
        a = _weft.take(a, _weft.array(sorter, None, False), 0, "clip")
    n = a.shape[0]
    if not isinstance(n, int) or n <= _COUNTED:
        count = _weft.reduce("reduce_sum", _goes_before(a, v[..., None], side).astype("int32"), -1, False)
        return count.astype(int)
    # The number of elements before v, one binary digit after the other.
    count = _weft.full(v.shape, 0, "int32" if n < 2**30 else "int64")
    for digit in reversed(range(n.bit_length())):
        more = count + (1 << digit)
        element = _weft.take(a, _weft.bind_elementwise("min", (more, n), {}) - 1, 0, "promise")
        count = _weft.where((more <= n) & _goes_before(element, v, side), more, count)
    return count if n >= 2**30 else count.astype(int)


# Up to here comparing with all elements takes less time than halving.
_COUNTED = 32


def _goes_before(element, v, side: str) -> Array:
    """Whether v is to stand behind an element; NaN is behind all numbers."""
    before = (less if side == "left" else less_equal)(element, v)
    if _weft.is_inexact(element.dtype) or _weft.is_inexact(v.dtype):
        missing = v != v
        before = before | (missing & (element == element)) if side == "left" else before | missing
    return before


def digitize(x: NestedLike, bins: NestedLike, right: bool = False, *, method: str | None = None) -> Array:
    """The number of the bin of each element: i with bins[i-1] <= x < bins[i] for increasing bins.

    Args:
        x: array or number of any shape.
        bins: vector of edges, increasing or decreasing.
        right: whether bins contain their right edge instead of the left one.

    Returns: array of int32 of the shape of x.

    Raises:
        ValueError: bins are no vector, or there is no such method.

    Example:
        >>> wnp.digitize(wnp.array([0.5, 1.0, 9.0]), wnp.array([0.0, 1.0, 2.0]))
        Array([1, 2, 3], dtype=int32)
    """
    one_of(method, (None, *_METHODS), "digitize: method")
    bins = _weft.array(bins, None, False)
    if bins.ndim != 1:
        raise value_error(f"digitize: bins must be a vector, got shape {bins.shape}")
    side = "left" if right else "right"
    rising = searchsorted(bins, x, side)
    if bins.shape[0] < 2:
        return rising
    falling = bins.shape[0] - searchsorted(_weft.flip(bins, 0), x, side)
    return _weft.where(bins[-1] >= bins[0], rising, falling)


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "kind": "one of NumPy's, without effect: sorting is always stable.",
    "kth": "the place, negative from the end.",
    "method": '"scan", "scan_unrolled", "sort" or "compare_all", without effect.',
    "order": "must be None: elements have no fields.",
    "stable": "accepted: sorting is always stable.",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
