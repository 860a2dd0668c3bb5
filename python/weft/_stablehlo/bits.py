"""The bits of arrays read as elements of another type, of another width, too."""

from __future__ import annotations

from typing import Any

from .. import _weft, lax
from .types import bits_of

__all__ = ["same_bits"]


def _cast(x: Any, dtype: str) -> Any:
    return x if str(x.dtype) == dtype else _weft.bind("bitcast", [x], {"dtype": _weft.dtype(dtype)})[0]


def _complex(dtype: str) -> str | None:
    """The type of the parts of complex numbers."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype)


def _unsigned(x: Any, width: int) -> Any:
    """The bits as unsigned integers of at least 8 bits."""
    if width < 8:
        small = _weft.astype(x, "int8" if _weft.dtype_kind(x.dtype) == "signed" else "uint8")
        small = _cast(small, "uint8")
        return lax.bitwise_and(small, lax.full(small.shape, (1 << width) - 1, "uint8"))
    return _cast(x, f"uint{width}")


def _of_unsigned(bits: Any, dtype: str, width: int) -> Any:
    if width >= 8:
        return _cast(bits, dtype)
    if dtype.startswith("int"):  # the uppermost bit is the sign
        shift = lax.full(bits.shape, 8 - width, "uint8")
        moved = _cast(lax.shift_left(bits, shift), "int8")
        bits = lax.shift_right_arithmetic(moved, lax.full(moved.shape, 8 - width, "int8"))
    return _weft.astype(bits, dtype)


def same_bits(x: Any, dtype: str) -> Any:
    """The bits of x as elements of a type. Several small ones are a last dimension, the least significant one first."""
    old_parts, new_parts = _complex(str(x.dtype)), _complex(dtype)
    if str(x.dtype) == dtype:
        return x
    if old_parts is not None:
        both = [lax.expand_dims(p, (x.ndim,)) for p in (lax.real(x), lax.imag(x))]
        x = lax.concatenate(both, x.ndim)
    if new_parts is not None:
        x = same_bits(x, new_parts)
        last = x.ndim - 1
        real, imag = (lax.index_in_dim(x, k, last, False) for k in (0, 1))
        return lax.complex(real, imag)
    old, new = bits_of(str(x.dtype)), bits_of(dtype)
    bits = _unsigned(x, old)
    if old < new:
        wide = f"uint{max(new, 8)}"
        parts = lax.convert_element_type(bits, wide)
        places = lax.broadcasted_iota(wide, parts.shape, parts.ndim - 1)
        moved = lax.shift_left(parts, lax.mul(places, lax.full(parts.shape, old, wide)))
        bits = lax.reduce_or(moved, (parts.ndim - 1,))
    elif old > new:
        wide, shape = str(bits.dtype), (*bits.shape, old // new)
        spread = lax.broadcast_in_dim(bits, shape, range(bits.ndim))
        places = lax.broadcasted_iota(wide, shape, bits.ndim)
        moved = lax.shift_right_logical(spread, lax.mul(places, lax.full(shape, new, wide)))
        kept = lax.bitwise_and(moved, lax.full(shape, (1 << new) - 1, wide))
        bits = lax.convert_element_type(kept, f"uint{max(new, 8)}")
    return _of_unsigned(bits, dtype, new)
