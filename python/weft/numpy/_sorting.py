"""Sorting and searching."""

from __future__ import annotations

from typing import Any

from .. import _weft
from .._weft import Array

__all__ = ["argsort", "searchsorted", "sort", "unique", "digitize", "lexsort"]


def sort(a, axis: int | None = -1, *, stable: bool = True, descending: bool = False) -> Array:
    """Sorted along an axis (None: flattened), NaN last."""
    del stable
    a = _weft.array(a, None, False)
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = _weft.check_axis(axis, a.ndim, "sort")
    out = _weft.bind("sort", [a], {"dim": axis, "num_keys": 1})[0]
    return _weft.flip(out, axis) if descending else out


def argsort(a, axis: int | None = -1, *, stable: bool = True, descending: bool = False) -> Array:
    """The indices that sort along an axis (None: flattened); equal elements keep their order."""
    del stable
    a = _weft.array(a, None, False)
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = _weft.check_axis(axis, a.ndim, "argsort")
    if descending:
        # Order of the reversed array, counted from the other end, keeps equal elements in their order.
        order = argsort(_weft.flip(a, axis), axis)
        return _weft.flip(a.shape[axis] - 1 - order, axis)
    index = _weft.iota(a.shape, axis, "int32")
    return _weft.bind("sort", [a, index], {"dim": axis, "num_keys": 1})[1]


def lexsort(keys, axis: int = -1) -> Array:
    """The indices that sort by several keys, the last one first."""
    keys = [_weft.array(k, None, False) for k in keys]
    axis = _weft.check_axis(axis, keys[0].ndim, "lexsort")
    index = _weft.iota(keys[0].shape, axis, "int32")
    return _weft.bind("sort", [*keys[::-1], index], {"dim": axis, "num_keys": len(keys)})[-1]


def searchsorted(a, v, side: str = "left") -> Array:
    """Where to insert v into the sorted vector a: before equal elements (left) or behind them (right)."""
    a, v = _weft.array(a, None, False), _weft.array(v, None, False)
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    before = a < v[..., None] if side == "left" else a <= v[..., None]
    return _weft.reduce("reduce_sum", before.astype("int32"), -1, False)


def digitize(x, bins, right: bool = False) -> Array:
    """The number of the bin of each element, for increasing bins."""
    return searchsorted(bins, x, "left" if right else "right")


def unique(
    ar,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    *,
    size: int | None = None,
    fill_value=None,
):
    """The sorted different elements. Values must be known (or give size= : then padded with fill_value or the
    smallest)."""
    import numpy as np

    a = _weft.array(ar, None, False)
    found: Any = np.unique(np.asarray(a), return_index, return_inverse, return_counts)  # type: ignore[call-overload]
    parts = list(found) if isinstance(found, tuple) else [found]
    if size is not None:
        n = parts[0].shape[0]
        fill = (parts[0][0] if n else 0) if fill_value is None else fill_value
        parts[0] = np.concatenate([parts[0][:size], np.full(max(size - n, 0), fill, parts[0].dtype)])
    out = [_weft.array(p if i == 0 else p.astype(np.int32), None, True) for i, p in enumerate(parts)]
    return out[0] if len(out) == 1 else tuple(out)
