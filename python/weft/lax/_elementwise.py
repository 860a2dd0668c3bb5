"""Element-wise operations that are made from primitives, or have attributes."""

from __future__ import annotations

import builtins
import enum

from .. import _weft
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._weft import Array
from ..numpy._bits import with_bits_of
from ..numpy._dtypes import finfo, iinfo, same_bits
from ..typing import DTypeLike, NestedLike

__all__ = [
    "Precision",
    "RoundingMethod",
    "abs",
    "bitcast_convert_type",
    "clamp",
    "convert_element_type",
    "integer_pow",
    "reciprocal",
    "reduce_precision",
    "round",
    "select",
    "select_n",
    "shift_right_arithmetic",
]


def abs(x: NestedLike) -> Array:
    """|x|; of complex numbers the modulus.

    Returns: array of the shape of x, of a real dtype.

    Example:
        >>> weft.lax.abs(wnp.array([-1.5, 2.0]))
        Array([1.5, 2. ], dtype=float32)
    """
    return _weft.absolute(x)


def shift_right_arithmetic(x: NestedLike, y: NestedLike) -> Array:
    """x shifted right by y bits; copies of the highest bit come in, of unsigned integers too.

    Args:
        y: array or number: how far. Beyond the width all bits are copies.

    Returns: array of the common shape.

    Raises:
        TypeError: x or y is no integer.

    Example:
        >>> weft.lax.shift_right_arithmetic(wnp.array([8, -8]), 1)
        Array([ 4, -4], dtype=int32)
        >>> weft.lax.shift_right_arithmetic(wnp.array([128], dtype="uint8"), 1)
        Array([192], dtype=uint8)
    """
    dtype = _weft.users_result_type(x, y)
    if _weft.dtype_kind(dtype) != "unsigned":
        return _weft.bind_elementwise("shift_right_arithmetic", (x, y), {})
    width, signed = iinfo(dtype).bits, _weft.dtype(dtype.name[1:])
    bits = same_bits(_weft.array(x, dtype, False), signed)
    # The highest bit of a distance is no sign.
    distance = same_bits(_weft.binary("minimum")(_weft.array(y, dtype, False), width - 1), signed)
    shifted = _weft.bind_elementwise("shift_right_arithmetic", (bits, distance), {})
    return same_bits(shifted, dtype)


def select(pred: NestedLike, on_true: NestedLike, on_false: NestedLike) -> Array:
    """For each element on_true where a condition holds, else on_false. Both are computed.

    Args:
        pred: array of booleans, or one boolean.
        on_true: array or number.
        on_false: array or number of the same shape.

    Returns: array of the common shape and dtype.

    Raises:
        TypeError: pred is no array of booleans.

    Example:
        >>> weft.lax.select(wnp.array([True, False]), wnp.array([1, 2]), wnp.array([10, 20]))
        Array([ 1, 20], dtype=int32)
    """
    kind = _weft.result_type(pred)
    if kind != "bool":
        raise type_error(f"select: pred is an array of {kind}; expected booleans (such as x != 0)")
    return _weft.where(pred, on_true, on_false)


def clamp(min: NestedLike, x: NestedLike, max: NestedLike) -> Array:
    """Numbers limited to an interval; NaN stays. The derivative of x is 1 inside and 0 from the bounds on.

    Args:
        min: array or number: the lower end.
        x: array or number of any shape.
        max: array or number: the upper end; wins where it is below min.

    Returns: array of the common shape and dtype.

    Example:
        >>> weft.lax.clamp(0, wnp.array([-1, 5, 20]), 10)
        Array([ 0,  5, 10], dtype=int32)
    """
    return _weft.bind_elementwise("clamp", (min, x, max), {})


def integer_pow(x: NestedLike, y: int) -> Array:
    """x to a known whole power, by repeated squaring.

    Args:
        y: integer; negative ones for float and complex dtypes only.

    Returns: array of the shape and dtype of x.

    Raises:
        ValueError: y is negative and x is of an integer dtype.

    Example:
        >>> weft.lax.integer_pow(wnp.array([2.0, 3.0]), 3)
        Array([ 8., 27.], dtype=float32)
    """
    return _weft.bind_elementwise("integer_pow", (x,), {"y": y})


def convert_element_type(operand: NestedLike, new_dtype: DTypeLike) -> Array:
    """Elements converted to a dtype.

    Args:
        new_dtype: the dtype. Floats become integers by truncation towards 0, limited to the integers' range, NaN
            becomes 0.

    Returns: array of the shape of the operand.

    Example:
        >>> weft.lax.convert_element_type(wnp.array([1.5, -2.5]), "int32")
        Array([ 1, -2], dtype=int32)
    """
    return _weft.astype(operand, new_dtype)


def bitcast_convert_type(operand: NestedLike, new_dtype: DTypeLike) -> Array:
    """The bits of the elements read as another dtype. Of a wider element several are made, along a new last axis; of
    narrower ones the last axis holds one, the lowest bits first.

    Args:
        new_dtype: the dtype.

    Returns: array of the shape of the operand, with a last axis more or less where the widths differ.

    Raises:
        TypeError: the last axis does not hold one element of a wider dtype.

    Example:
        >>> weft.lax.bitcast_convert_type(wnp.array([1.0]), "int32")
        Array([1065353216], dtype=int32)
    """
    return with_bits_of(_weft.array(operand, None, False), new_dtype)


class RoundingMethod(enum.IntEnum):
    """What round does with halves.

    Example:
        >>> weft.lax.round(wnp.array([0.5, 1.5]), weft.lax.RoundingMethod.TO_NEAREST_EVEN)
        Array([0., 2.], dtype=float32)
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


class Precision(enum.Enum):
    """Accepted where JAX takes it, without effect: products are computed in the precision of their operands.

    Example:
        >>> weft.lax.dot_general(wnp.ones(3), wnp.ones(3), (([0], [0]), ([], [])), precision=weft.lax.Precision.HIGHEST)
        Array(3., dtype=float32)
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    def __repr__(self) -> str:
        return f"Precision.{self.name}"


def round(x: NestedLike, rounding_method: RoundingMethod | str = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The nearest whole number.

    Args:
        rounding_method: what halves do: RoundingMethod.AWAY_FROM_ZERO (or "away"), TO_NEAREST_EVEN (or "even").

    Returns: array of the shape and dtype of x.

    Raises:
        ValueError: there is no such method.

    Example:
        >>> weft.lax.round(wnp.array([0.5, 1.5, -2.5]))
        Array([ 1.,  2., -3.], dtype=float32)
    """
    mode = rounding_method
    if isinstance(mode, int):
        mode = "even" if mode == RoundingMethod.TO_NEAREST_EVEN else "away"
    return _weft.bind_elementwise("round", (x,), {"mode": mode})


def reciprocal(x: NestedLike) -> Array:
    """1 / x.

    Returns: array of the shape and dtype of x.

    Raises:
        ValueError: x is of an integer dtype.

    Example:
        >>> weft.lax.reciprocal(wnp.array([2.0, 4.0]))
        Array([0.5 , 0.25], dtype=float32)
    """
    return integer_pow(x, -1)


def select_n(which: NestedLike, *cases: NestedLike) -> Array:
    """For each element the case that a number chooses; with booleans the first is for False.

    Args:
        which: array of booleans or integers; integers out of range are limited to it.
        *cases: arrays of one shape, two for booleans.

    Returns: array of the common shape and dtype.

    Raises:
        ValueError: there are no cases.
        TypeError: a boolean is to choose between more than two.

    Example:
        >>> weft.lax.select_n(wnp.array([0, 1, 2]), wnp.array([1, 2, 3]), wnp.array([10, 20, 30]), wnp.array([7, 8, 9]))
        Array([ 1, 20,  9], dtype=int32)
    """
    which = _weft.array(which, None, False)
    if not cases:
        raise value_error("select_n: no cases")
    if _weft.dtype_kind(which.dtype) == "bool":
        if len(cases) > 2:
            raise type_error(f"select_n: a boolean chooses between two cases, got {len(cases)}")
        return _weft.where(which, cases[1], cases[0]) if len(cases) == 2 else _weft.array(cases[0], None, False)
    out = cases[-1]
    for i in reversed(range(len(cases) - 1)):
        out = _weft.where(which <= i, cases[i], out)
    return _weft.array(out, None, False)


def reduce_precision(operand: NestedLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Numbers rounded to a narrower format and back.

    Args:
        operand: array or number of a float dtype.
        exponent_bits: of the format, such as 5 (float16) or 8 (bfloat16, float32).
        mantissa_bits: of the format, such as 10, 7 or 23, in the same order.

    Returns: array of the shape and dtype of the operand.

    Raises:
        ValueError: there is no bit of exponent, or a negative number of bits.

    Example:
        >>> weft.lax.reduce_precision(wnp.array([1.2345678]), 8, 7)
        Array([1.234375], dtype=float32)
    """
    if exponent_bits < 1 or mantissa_bits < 0:
        raise value_error(
            f"reduce_precision: one bit of exponent or more and no negative number of bits are needed, got "
            f"{exponent_bits} and {mantissa_bits}"
        )
    operand = _weft.array(operand, None, False)
    kinds = {(5, 10): "float16", (8, 7): "bfloat16", (8, 23): "float32", (11, 52): "float64"}
    if (exponent_bits, mantissa_bits) in kinds:
        rounded = operand.astype(kinds[exponent_bits, mantissa_bits]).astype(operand.dtype)
    else:
        rounded = _rounded_to(operand, exponent_bits, mantissa_bits)
    return _weft.with_weak([rounded], [operand.weak_type])[0]


def _rounded_to(x: Array, exponent_bits: int, mantissa_bits: int) -> Array:
    """In a format that no dtype has: to nearest, ties to even, by adding to the bits; what is below its normal numbers
    is 0, what is above infinite."""
    info = finfo(x.dtype)
    dropped = builtins.max(info.nmant - mantissa_bits, 0)
    bits = same_bits(x, _weft.dtype(f"uint{info.bits}"))
    if dropped:
        number = lambda value: _weft.array(value, bits.dtype, False)
        last = (bits >> number(dropped)) & number(1)
        bits = (bits + last + number((1 << (dropped - 1)) - 1)) & number(~((1 << dropped) - 1) & ((1 << info.bits) - 1))
    rounded = same_bits(bits, x.dtype)
    if exponent_bits < info.nexp:
        bias = (1 << (exponent_bits - 1)) - 1
        size = _weft.absolute(rounded)
        largest = 2.0**bias * (2 - 2.0**-mantissa_bits)
        signed = lambda value: _weft.where(x < 0, -value, value)
        rounded = _weft.where(size < 2.0 ** (1 - bias), rounded * 0, rounded)
        rounded = _weft.where(size > largest, signed(float("inf")), rounded)
    return _weft.where(_weft.absolute(x) < float("inf"), rounded, x)  # NaN stays, and infinities


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "operand": "array or number of any shape.",
}

_docs.complete(globals(), _PARAMETERS)
