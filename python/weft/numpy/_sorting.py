"""Sorting and searching."""

from __future__ import annotations

from .. import _weft
from .._weft import Array

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


def sort(a, axis: int | None = -1, *, kind=None, order=None, stable: bool = True, descending: bool = False) -> Array:
    """Sorted along an axis (None: flattened), NaN last (descending: first). Sorting is stable, whatever kind says."""
    del stable, kind, order
    a = _weft.array(a, None, False)
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = _weft.check_axis(axis, a.ndim, "sort")
    if _weft.dtype_kind(a.dtype) == "complex":
        order = argsort(a, axis)
        out = _weft.take_along_axis(a, order, axis)
    else:
        out = _weft.bind("sort", [a], {"dim": axis, "num_keys": 1})[0]
    return _weft.flip(out, axis) if descending else out


def argsort(a, axis: int | None = -1, *, kind=None, order=None, stable: bool = True, descending: bool = False) -> Array:
    """The indices that sort along an axis (None: flattened); equal elements keep their order."""
    del stable, kind, order
    a = _weft.array(a, None, False)
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = _weft.check_axis(axis, a.ndim, "argsort")
    if descending:
        # Order of the reversed array, counted from the other end, keeps equal elements in their order.
        order = argsort(_weft.flip(a, axis), axis)
        return _weft.flip(a.shape[axis] - 1 - order, axis)
    index = _weft.iota(a.shape, axis, "int32")
    if _weft.dtype_kind(a.dtype) == "complex":
        parts = [_weft.bind_elementwise(p, (a,), {}) for p in ("real", "imag")]
        return _weft.bind("sort", [*parts, index], {"dim": axis, "num_keys": 2})[2]
    return _weft.bind("sort", [a, index], {"dim": axis, "num_keys": 1})[1]


def sort_complex(a) -> Array:
    """Sorted along the last axis by real part, then by imaginary part, as complex numbers."""
    a = sort(a)
    return a if _weft.dtype_kind(a.dtype) == "complex" else a.astype(_weft.result_type(a, 1j))


def partition(a, kth: int, axis: int = -1) -> Array:
    """The element at place kth is the one that sorting would put there; smaller ones are before, larger ones behind."""
    a = _weft.array(a, None, False)
    _kth(kth, a.shape[_weft.check_axis(axis, a.ndim, "partition")])
    return sort(a, axis)


def argpartition(a, kth: int, axis: int = -1) -> Array:
    """The indices of partition."""
    a = _weft.array(a, None, False)
    _kth(kth, a.shape[_weft.check_axis(axis, a.ndim, "argpartition")])
    return argsort(a, axis)


def _kth(kth: int, n: int) -> None:
    if not -n <= kth < n:
        raise ValueError(f"partition: kth {kth} is out of range for {n} elements")


def lexsort(keys, axis: int = -1) -> Array:
    """The indices that sort by several keys, the last one first."""
    keys = [_weft.array(k, None, False) for k in keys]
    axis = _weft.check_axis(axis, keys[0].ndim, "lexsort")
    index = _weft.iota(keys[0].shape, axis, "int32")
    return _weft.bind("sort", [*keys[::-1], index], {"dim": axis, "num_keys": len(keys)})[-1]


def searchsorted(a, v, side: str = "left", sorter=None, *, method: str = "scan") -> Array:
    """Where to insert v into the sorted vector a: before equal elements (left) or behind them (right). sorter: the
    indices that sort a, if it is not sorted. NaN come last. method is accepted and has no effect."""
    del method
    a, v = _weft.array(a, None, False), _weft.array(v, None, False)
    if a.ndim != 1:
        raise ValueError(f"searchsorted: a must be a vector, got shape {a.shape}")
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    if sorter is not None:
        a = _weft.take(a, _weft.array(sorter, None, False), 0, "clip")
    v = v[..., None]
    before = a < v if side == "left" else a <= v
    if _weft.is_inexact(a.dtype) or _weft.is_inexact(v.dtype):
        missing = v != v
        before = before | (missing & (a == a)) if side == "left" else before | missing
    return _weft.reduce("reduce_sum", before.astype("int32"), -1, False)


def digitize(x, bins, right: bool = False, *, method: str | None = None) -> Array:
    """The number of the bin of each element, for increasing or decreasing bins."""
    del method
    bins = _weft.array(bins, None, False)
    if bins.ndim != 1:
        raise ValueError(f"digitize: bins must be a vector, got shape {bins.shape}")
    rising = searchsorted(bins, x, "left" if right else "right")
    if bins.shape[0] < 2:
        return rising
    falling = bins.shape[0] - searchsorted(_weft.flip(bins, 0), x, "right" if right else "left")
    return _weft.where(bins[-1] >= bins[0], rising, falling)
