"""The total order of floats, and the ends of types."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _weft, lax

__all__ = ["greatest", "least", "total_order"]


def total_order(x: Any) -> Any:
    """Integers that compare as floats do in the total order of IEEE 754; of other arrays themselves."""
    if "float" not in str(x.dtype):
        return x
    wide = {"float16": "int16", "bfloat16": "int16", "float32": "int32", "float64": "int64"}.get(str(x.dtype), "int8")
    bits = _weft.bind("bitcast", [x], {"dtype": _weft.dtype(wide)})[0]
    negative = lax.lt(bits, lax.full(bits.shape, 0, wide))
    return lax.select(negative, lax.bitwise_xor(bits, lax.full(bits.shape, np.iinfo(wide).max, wide)), bits)


def _of_nothing(name: str, dtype: Any) -> Any:
    return _weft.bind(name, [lax.full((0,), 0, dtype)], {"dims": [0]})[0]


def least(dtype: Any) -> Any:
    """What no number of the type is less than: -inf, or the least integer."""
    return _of_nothing("reduce_max", dtype)


def greatest(dtype: Any) -> Any:
    """What no number of the type is greater than."""
    return _of_nothing("reduce_min", dtype)
