"""The total order of floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _weft, lax

__all__ = ["total_order"]


def total_order(x: Any) -> Any:
    """Integers that compare as floats do in the total order of IEEE 754; of other arrays themselves."""
    if "float" not in str(x.dtype):
        return x
    wide = {"float16": "int16", "bfloat16": "int16", "float32": "int32", "float64": "int64"}.get(str(x.dtype), "int8")
    bits = _weft.bind("bitcast", [x], {"dtype": _weft.dtype(wide)})[0]
    negative = lax.lt(bits, lax.full(bits.shape, 0, wide))
    return lax.select(negative, lax.bitwise_xor(bits, lax.full(bits.shape, np.iinfo(wide).max, wide)), bits)
