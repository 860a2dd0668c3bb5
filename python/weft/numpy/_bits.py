"""The bits of elements read as other dtypes, of other widths too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _weft
from .._core.errors import type_error, value_error
from .._weft import Array
from ..typing import DTypeLike
from ._dtypes import finfo, iinfo, same_bits


def width(dtype: Any) -> int:
    """The bits of an element."""
    kind = _weft.dtype_kind(dtype)
    if kind == "bool":
        return 8
    if kind == "complex":
        return 2 * width(finfo(dtype).dtype)
    return int((iinfo if kind in ("signed", "unsigned") else finfo)(dtype).bits)


def _parts(dtype: Any) -> int:
    return 2 if _weft.dtype_kind(dtype) == "complex" else 1


def _units(x: Array, unit: int) -> Array:
    """The bits [..., units] of each element as unsigned integers of so many bits, the lowest first."""
    if _parts(x.dtype) == 2:
        x = _weft.concatenate([_last(_weft.bind_elementwise(part, (x,), {})) for part in ("real", "imag")], x.ndim)
    else:
        x = _last(x)
    wide = width(x.dtype)
    whole = x.astype("uint8") if _weft.dtype_kind(x.dtype) == "bool" else same_bits(x, f"uint{wide}")
    if wide == unit:
        return whole
    mask = (1 << unit) - 1
    pieces = [_last(((whole >> i) & mask).astype(f"uint{unit}")) for i in range(0, wide, unit)]
    out = _weft.concatenate(pieces, whole.ndim)
    return out.reshape((*out.shape[:-2], math.prod(out.shape[-2:])))


def _last(x: Array) -> Array:
    return x.reshape((*x.shape, 1))


def _of_units(units: Array, dtype: Any) -> Array:
    """Elements [...] of their bits [..., units]."""
    parts, unit = _parts(dtype), width(units.dtype)
    wide = width(dtype) // parts
    units = units.reshape((*units.shape[:-1], parts, wide // unit))
    whole = units[..., 0].astype(f"uint{wide}")
    for i in range(1, wide // unit):
        whole = whole | (units[..., i].astype(f"uint{wide}") << (i * unit))
    if _weft.dtype_kind(dtype) == "bool":
        return whole[..., 0] != 0
    if parts == 1:
        return same_bits(whole[..., 0], dtype)
    real, imag = (same_bits(whole[..., i], f"float{wide}") for i in range(2))
    return _weft.bind_elementwise("complex", (real, imag), {})


def with_bits_of(x: Array, dtype: DTypeLike) -> Array:
    """The bits as another dtype: a wider element becomes several along a new last axis, and of narrower ones the last
    axis holds one element."""
    to = _weft.dtype(dtype)
    own, wanted = width(x.dtype), width(to)
    if "bool" not in (str(x.dtype), str(to)) and own == wanted and _parts(x.dtype) == _parts(to):
        return same_bits(x, to)
    unit = min(own // _parts(x.dtype), wanted // _parts(to))
    if own < wanted:
        ratio = wanted // own
        if x.ndim == 0 or x.shape[-1] != ratio:
            raise type_error(
                f"bitcast: {ratio} elements of {x.dtype} make one of {to}, so the last axis has that size; got shape "
                f"{x.shape}"
            )
    units = _units(x, unit)
    if own < wanted:
        return _of_units(units.reshape((*units.shape[:-2], math.prod(units.shape[-2:]))), to)
    per = wanted // unit
    units = units.reshape((*units.shape[:-1], units.shape[-1] // per, per))
    out = _of_units(units, to)
    return out.reshape(x.shape) if own == wanted else out


def viewed(x: Array, dtype: DTypeLike) -> Array:
    """... which makes the last axis longer or shorter, as numpy.ndarray.view."""
    to = _weft.dtype(dtype)
    own, wanted = width(x.dtype), width(to)
    if own == wanted:
        return with_bits_of(x, to)
    if x.ndim == 0:
        raise value_error(f"view: a number of {own} bits cannot be seen as {to}, of {wanted} bits")
    *front, last = x.shape
    if own > wanted:
        return with_bits_of(x, to).reshape((*front, last * (own // wanted)))
    ratio = wanted // own
    if last % ratio:
        raise value_error(
            f"view: the last axis has {last} elements of {x.dtype}; {ratio} make one of {to}, so it must be a multiple "
            "of it"
        )
    return with_bits_of(x.reshape((*front, last // ratio, ratio)), to)


def byteswapped(x: Array) -> Array:
    """The bytes of each element in the opposite order, as numpy.ndarray.byteswap."""
    bytes_ = np.dtype(x.dtype).itemsize // _parts(x.dtype)
    if bytes_ == 1:
        return x
    units = _units(x, 8)
    units = units.reshape((*x.shape, _parts(x.dtype), bytes_))[..., ::-1]
    return _of_units(units.reshape((*x.shape, _parts(x.dtype) * bytes_)), x.dtype)
