"""Widening arrays, and inserting and deleting elements."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _weft
from .._core import docs as _docs
from .._core.errors import index_error, not_implemented, type_error, value_error
from .._weft import Array
from ..arguments import integer, is_integer, joined
from ..batching import vmap
from ..typing import NestedLike
from . import _reductions
from ._creation import linspace
from ._quantiles import median
from ._sorting import argsort

__all__ = ["delete", "insert", "pad", "packbits", "unpackbits"]


def _array(x) -> Array:
    return _weft.array(x, None, False)


def pad(array: NestedLike, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any) -> Array:
    """An array widened at its borders.

    Args:
        array: array or number of any shape.
        pad_width: how many elements: one number, a pair (before, after), such a pair per dimension, or a dictionary
            from axes to them.
        mode: "constant" (constant_values), "edge", "reflect", "symmetric", "wrap", "linear_ramp" (end_values),
            "maximum", "minimum", "mean" and "median" of an axis, or "empty", which gives zeros. A function of
            (vector, (before, after), axis, kwargs) gives the vector of the whole width back, and is called for each.
        **kwargs: of the mode: constant_values and end_values (as pad_width, 0 by default); stat_length (as pad_width):
            how many elements at each end the "maximum" ... is of, None: all; reflect_type: "even", or "odd": twice the
            edge minus what is reflected.

    Returns: array of the dtype of array.

    Raises:
        ValueError: a width is negative, a stat_length is not positive, or there is no such reflect_type.
        TypeError: the mode takes no such argument.
        NotImplementedError: there is no such mode.

    Example:
        >>> wnp.pad(wnp.array([1, 2, 3]), (1, 2), constant_values=9)
        Array([9, 1, 2, 3, 9, 9], dtype=int32)
        >>> wnp.pad(wnp.array([1, 2, 3]), 2, mode="reflect")
        Array([3, 2, 1, 2, 3, 2, 1], dtype=int32)
    """
    a = _array(array)
    if isinstance(pad_width, dict):
        pad_width = [pad_width.get(d, pad_width.get(d - a.ndim, (0, 0))) for d in range(a.ndim)]
        pad_width = [(w, w) if is_integer(w) else w for w in pad_width]
    try:
        pairs = np.broadcast_to(np.asarray(pad_width), (a.ndim, 2))
    except ValueError:
        raise value_error(
            f"pad: pad_width is {pad_width!r} for an array of shape {a.shape}; expected a number, a pair, or a pair "
            "for each dimension"
        ) from None
    widths = [(integer(lo, "pad: pad_width"), integer(hi, "pad: pad_width")) for lo, hi in pairs]
    if builtins.any(w < 0 for pair in widths for w in pair):
        raise value_error(f"pad: widths must not be negative, got {pad_width}")
    if callable(mode):
        return _by_function(a, widths, mode, kwargs)
    if not isinstance(mode, str):
        raise not_implemented(f"pad: mode {mode!r}")
    known = {
        "constant": {"constant_values"},
        "linear_ramp": {"end_values"},
        "reflect": {"reflect_type"},
        "symmetric": {"reflect_type"},
        **{name: {"stat_length"} for name in _STATISTICS},
    }.get(mode, set())
    for name in kwargs:
        if name not in known:
            raise type_error(f"pad: mode {mode!r} takes no argument '{name}'")
    if mode in ("constant", "empty"):
        values = joined(kwargs.get("constant_values", 0))
        values = values if isinstance(values, Array) else np.asarray(values)
        if values.ndim == 0:
            return _weft.pad_constant(a, [w[0] for w in widths], [w[1] for w in widths], values)
        return _by_axis(a, widths, _pairs(values, a.ndim), _constant)
    if mode == "linear_ramp":
        return _by_axis(a, widths, _pairs(kwargs.get("end_values", 0), a.ndim), _ramp)
    if mode in _STATISTICS:
        lengths = kwargs.get("stat_length")
        given = np.broadcast_to(np.asarray(-1 if lengths is None else lengths), (a.ndim, 2))
        if lengths is not None and (given < 1).any():
            raise value_error(f"pad: stat_length must be positive, got {lengths}")
        return _by_axis(a, widths, [(mode, *map(int, pair)) for pair in given], _statistic)
    reflect_type = kwargs.get("reflect_type", "even")
    if reflect_type not in ("even", "odd"):
        raise value_error(f"pad: reflect_type must be 'even' or 'odd', got {reflect_type!r}")
    if reflect_type == "odd":
        for d, (lo, hi) in enumerate(widths):
            # Both ends reflect the array as it was.
            after = _weft.slice_axis(_reflected(a, d, hi, mode), d, a.shape[d], a.shape[d] + hi, 1)
            before = _reflected(_weft.flip(a, d), d, lo, mode)
            a = _weft.concatenate([_weft.flip(before, d), after], d)
        return a
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise not_implemented(f"pad: mode {mode!r}")
    for d, (lo, hi) in enumerate(widths):
        if lo or hi:
            index = np.pad(np.arange(a.shape[d]), (lo, hi), mode=mode)  # type: ignore[call-overload]
            a = _weft.take(a, _weft.array(index.astype(np.int32), None, True), d, "clip")
    return a


def _insert_traced(a: Array, obj: Array, values: Array, axis: int) -> Array:
    """... before one place, which is not known."""
    n = a.shape[axis]
    if values.ndim < a.ndim:
        values = values.reshape((1,) * (a.ndim - values.ndim) + values.shape)
    if obj.ndim == 0:
        values = _weft.moveaxis(values, 0, axis)
    count = values.shape[axis]
    values = _weft.broadcast_to(values, _block(a, axis, count))
    place = obj.reshape(())
    place = _weft.where(place < 0, place + n, place)
    index = _weft.iota((n + count,), 0, "int32")
    source = _weft.where(index < place, index, _weft.where(index < place + count, index - place + n, index - count))
    return _weft.take(_weft.concatenate([a, values], axis), source, axis, "clip")


def _by_function(a: Array, widths: Any, function: Any, kwargs: dict[str, Any]) -> Array:
    """numpy.pad's function of (vector, widths, axis, kwargs), which gives the vector back: axis by axis."""
    a = _weft.pad_constant(a, [w[0] for w in widths], [w[1] for w in widths], 0)
    for d, width in enumerate(widths):
        rows = _weft.moveaxis(a, d, a.ndim - 1)
        flat = rows.reshape((-1, rows.shape[-1]))
        new = vmap(lambda row, width=width, d=d: function(row, width, d, kwargs))(flat)
        a = _weft.moveaxis(new.reshape(rows.shape), a.ndim - 1, d)
    return a


_STATISTICS = ("maximum", "minimum", "mean", "median")


def _reflected(a, d: int, width: int, mode: str) -> Array:
    """Widened at the end of an axis: each turn mirrors the last stretch at its edge, and goes on from there."""
    n = a.shape[d]
    if n == 0 and width:
        raise value_error(f"pad: mode {mode!r} cannot widen an empty axis {d}")
    without = 1 if mode == "reflect" and n > 1 else 0  # whether the edge itself is left out
    while width > 0:
        have, turn = a.shape[d], builtins.min(width, n - without)
        edge = _weft.slice_axis(a, d, have - 1, have, 1)
        mirrored = _weft.flip(_weft.slice_axis(a, d, have - without - turn, have - without, 1), d)
        a = _weft.concatenate([a, 2 * edge - mirrored], d)
        width -= turn
    return a


def _pairs(values, rank: int):
    values = _array(values)
    return _weft.broadcast_to(values, (rank, 2))


def _by_axis(a, widths, settings, side) -> Array:
    for d, (lo, hi) in enumerate(widths):
        if lo or hi:
            a = _weft.concatenate([side(a, d, lo, settings[d], 0), a, side(a, d, hi, settings[d], 1)], d)
    return a


def _block(a, d: int, n: int) -> tuple:
    return a.shape[:d] + (n,) + a.shape[d + 1 :]


def _constant(a, d: int, n: int, pair, which: int) -> Array:
    return _weft.broadcast_to(pair[which].astype(a.dtype), _block(a, d, n))


def _ramp(a, d: int, n: int, pair, which: int) -> Array:
    edge = a[(slice(None),) * d + ((0, -1)[which],)]
    start = pair[which].astype(edge.dtype) if _weft.is_inexact(edge.dtype) else pair[which]
    out = linspace(start, edge, n, endpoint=False, dtype=a.dtype, axis=d)
    return out if which == 0 else _weft.flip(out, d)


def _statistic(a, d: int, n: int, setting, which: int) -> Array:
    mode, length = setting[0], setting[1 + which]
    if 0 < length < a.shape[d]:
        first = 0 if which == 0 else a.shape[d] - length
        a = _weft.slice_axis(a, d, first, first + length, 1)
    if mode in ("mean", "median"):
        value = _weft.mean(a, d, True) if mode == "mean" else median(a, d, keepdims=True)
        if not _weft.is_inexact(a.dtype):
            value = _weft.bind_elementwise("round", (value,), {"mode": "even"})
        value = value.astype(a.dtype)
    else:
        value = (_reductions.max if mode == "maximum" else _reductions.min)(a, d, keepdims=True)
    return _weft.broadcast_to(value, _block(a, d, n))


def delete(arr: NestedLike, obj: NestedLike, axis: int | None = None, *, assume_unique_indices: bool = False) -> Array:
    """An array without some of its elements or slices.

    Args:
        obj: which ones: an integer, a slice, a list or an array of integers or booleans, known in any case.
        assume_unique_indices: says that no index comes twice: obj may be traced then. One number may always be.

    Returns: array of the dtype of arr.

    Raises:
        IndexError: an index is out of range.
        weft.TracerError: obj is traced and holds several indices that may be the same.

    Example:
        >>> wnp.delete(wnp.array([1, 2, 3, 4]), [0, 2])
        Array([2, 4], dtype=int32)
    """
    a = _array(arr)
    if not isinstance(obj, (slice, int, list, tuple, np.ndarray, np.generic)):
        obj = _array(obj)
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = _weft.check_axis(axis, a.ndim, "delete")
    if isinstance(obj, Array) and _weft.is_traced(obj) and (assume_unique_indices or obj.ndim == 0):
        return _delete_traced(a, obj.reshape(-1), axis)
    try:
        kept = np.delete(np.arange(a.shape[axis]), obj if isinstance(obj, (int, slice)) else np.asarray(obj))
    except IndexError as error:
        raise index_error(f"delete: {error}") from None
    except ValueError as error:
        raise value_error(f"delete: {error}") from None
    return _weft.take(a, _weft.array(kept.astype(np.int32), None, True), axis, "clip")


def _delete_traced(a: Array, places: Array, axis: int) -> Array:
    """... of different places, which are not known: each that stays moves down by as many as go before it."""
    n = a.shape[axis]
    places = _weft.where(places < 0, places + n, places)
    gone = _weft.full((n,), 0, "int32").at[places].set(1)
    order = argsort(gone)  # those that stay come first, in their order
    return _weft.take(a, order[: n - places.shape[0]], axis, "clip")


def insert(arr: NestedLike, obj: NestedLike, values: NestedLike, axis: int | None = None) -> Array:
    """An array with values before some of its elements or slices.

    Args:
        obj: before which ones: an integer, a slice, a list or an array of integers. One integer may be traced.
        values: several for one index, or one for each of several; converted to the dtype of arr.

    Returns: array of the dtype of arr.

    Raises:
        IndexError: an index is out of range.
        weft.TracerError: obj is traced and holds several indices.

    Example:
        >>> wnp.insert(wnp.array([1, 2, 3]), 1, 9)
        Array([1, 9, 2, 3], dtype=int32)
    """
    a = _array(arr)
    values = _array(values) if hasattr(values, "dtype") else _weft.array(values, a.dtype, False)
    if not isinstance(obj, (slice, int, list, tuple, np.ndarray, np.generic)):
        obj = _array(obj)
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = _weft.check_axis(axis, a.ndim, "insert")
    n = a.shape[axis]
    values = values.astype(a.dtype)
    if isinstance(obj, slice):
        places = np.arange(*obj.indices(n))
    elif isinstance(obj, Array) and _weft.is_traced(obj):
        if obj.size != 1:
            np.asarray(obj)  # which says that the values are not known
        return _insert_traced(a, obj, values, axis)
    else:
        places = np.asarray(obj)
    single = places.ndim == 0 or places.size == 1
    if values.ndim < a.ndim:
        values = values.reshape((1,) * (a.ndim - values.ndim) + values.shape)
    if single:
        if places.ndim == 0:
            values = _weft.moveaxis(values, 0, axis)
        count = values.shape[axis]
        places = np.full(count, int(places.reshape(())))
    places = np.where(places < 0, places + n, places)
    if places.size and (places.min() < 0 or places.max() > n):
        raise index_error(f"insert: index {obj} is out of range for {n} elements along axis {axis}")
    values = _weft.broadcast_to(values, _block(a, axis, len(places)))
    order = np.argsort(places, kind="stable")
    total = n + len(places)
    at = places[order] + np.arange(len(places))
    source = np.zeros(total, np.int32)
    rest = np.ones(total, bool)
    rest[at] = False
    source[at] = n + order
    source[rest] = np.arange(n)
    return _weft.take(_weft.concatenate([a, values], axis), _weft.array(source, None, True), axis, "clip")


def packbits(a: NestedLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Bits packed into bytes, eight to one; zeros are added at the end.

    Args:
        a: array of booleans or integers: whether they are not 0.

    Returns: array of uint8.

    Raises:
        TypeError: a is of a float or complex dtype.
        ValueError: there is no such order.

    Example:
        >>> wnp.packbits(wnp.array([1, 0, 0, 0, 0, 0, 0, 1, 1]))
        Array([129, 128], dtype=uint8)
    """
    if bitorder not in ("big", "little"):
        raise value_error(f"packbits: bitorder is 'big' or 'little', got {bitorder!r}")
    a = _array(a)
    if _weft.is_inexact(a.dtype):
        raise type_error(f"packbits: a must be an array of booleans or integers, got {a.dtype}")
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = _weft.check_axis(axis, a.ndim, "packbits")
    a = _weft.moveaxis((a != 0).astype("uint8"), axis, -1)
    a = _weft.pad_constant(a, [0] * a.ndim, [0] * (a.ndim - 1) + [-a.shape[-1] % 8], 0)
    a = a.reshape(a.shape[:-1] + (a.shape[-1] // 8, 8))
    place = _weft.iota((8,), 0, "uint8")
    one = _weft.full((), 1, "uint8")
    bits = a << (place if bitorder == "little" else 7 * one - place)
    return _weft.moveaxis(_weft.reduce("reduce_sum", bits, -1, False).astype("uint8"), -1, axis)


def unpackbits(a: NestedLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """Bytes taken apart into bits.

    Args:
        a: array of uint8.
        count: how many bits along the axis; None: all.

    Returns: array of uint8 0 and 1.

    Raises:
        TypeError: a is not of dtype uint8.
        ValueError: there is no such order.

    Example:
        >>> wnp.unpackbits(wnp.array([129], dtype="uint8"))
        Array([1, 0, 0, 0, 0, 0, 0, 1], dtype=uint8)
    """
    if bitorder not in ("big", "little"):
        raise value_error(f"unpackbits: bitorder is 'big' or 'little', got {bitorder!r}")
    a = _array(a)
    if a.dtype != np.uint8:
        raise type_error(f"unpackbits: uint8 is needed, got {a.dtype}")
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = _weft.check_axis(axis, a.ndim, "unpackbits")
    a = _weft.moveaxis(a, axis, -1)
    place = _weft.iota((8,), 0, "uint8")
    shifts = place if bitorder == "little" else _weft.flip(place, 0)
    bits = (a[..., None] >> shifts) & 1
    bits = bits.reshape(a.shape[:-1] + (8 * a.shape[-1],))
    if count is not None:
        n = bits.shape[-1]
        bits = (
            bits[..., :count]
            if count <= n
            else _weft.pad_constant(bits, [0] * bits.ndim, [0] * (bits.ndim - 1) + [count - n], 0)
        )
    return _weft.moveaxis(bits, -1, axis)


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "axis": "the axis, negative from the end; None: of the flattened array.",
    "bitorder": '"big": the first is the highest bit; "little": the lowest.',
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
