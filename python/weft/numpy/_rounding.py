"""Whole numbers next to numbers, remainders, parts of numbers."""

from __future__ import annotations

from .. import _weft
from .._core import docs as _docs
from .._core.errors import type_error
from .._weft import Array
from ..typing import ArrayLike, NestedLike
from ._choosing import clip
from ._dtypes import finfo
from ._elementwise import imag, log2, real
from ._primitives import exp2, floor_divide, nextafter, remainder

__all__ = [
    "around",
    "ceil",
    "fix",
    "floor",
    "trunc",
    "divmod",
    "fmod",
    "frexp",
    "ldexp",
    "modf",
    "rint",
    "round",
    "spacing",
]


def _whole(name: str, doc: str):
    def function(x: NestedLike) -> Array:
        x = _weft.array(x, None, False)
        return _weft.bind_elementwise(name, (x,), {}) if _weft.is_inexact(x.dtype) else x

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def rint(x: NestedLike) -> Array:
    """The nearest whole number, halves to even; of complex ones both parts.

    Returns: array of the shape of x, of a float or complex dtype.

    Example:
        >>> wnp.rint(wnp.array([0.5, 1.5, -1.2]))
        Array([ 0.,  2., -1.], dtype=float32)
    """
    return round(_weft.promote_inexact(x))


def round(a: NestedLike, decimals: int = 0) -> Array:
    """Numbers rounded to decimals, halves to even; of complex ones both parts.

    Args:
        decimals: how many decimals; negative: to tens, hundreds ...

    Returns: array of the shape and dtype of a.

    Example:
        >>> wnp.round(wnp.array([0.5, 1.5, 2.345]), 1)
        Array([0.5, 1.5, 2.3], dtype=float32)
        >>> wnp.round(wnp.array([15, 25]), -1)
        Array([20, 20], dtype=int32)
    """
    a = _weft.array(a, None, False)
    if _weft.dtype_kind(a.dtype) == "complex":
        return _weft.bind_elementwise("complex", (round(real(a), decimals), round(imag(a), decimals)), {})
    if not _weft.is_inexact(a.dtype):
        if decimals >= 0:
            return a
        unit = 10**-decimals
        low = a // unit
        rest = a - low * unit
        up = (2 * rest > unit) | ((2 * rest == unit) & (low % 2 == 1))
        return (low + up.astype(a.dtype)) * unit
    if decimals == 0:
        return _weft.bind_elementwise("round", (a,), {"mode": "even"})
    if decimals < 0 and (decimals < -300 or 10.0**-decimals > float(finfo(a.dtype).max)):
        return a * 0.0  # the unit is larger than twice any number of the dtype
    scale = 10.0**decimals if decimals <= 300 else float("inf")
    scaled = a * scale
    rounded = _weft.bind_elementwise("round", (scaled,), {"mode": "even"}) / scale
    # Numbers that so large a factor takes beyond the dtype's range have fewer decimals than are asked for.
    return _weft.where(
        _weft.absolute(scaled) < float("inf"), rounded, _weft.bind_elementwise("stop_gradient", (a,), {})
    )


def spacing(x: NestedLike) -> Array:
    """The distance from x to the next number away from 0; of float16 to the next larger one, as in NumPy.

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> wnp.spacing(wnp.array([1.0]))
        Array([1.1920929e-07], dtype=float32)
    """
    x = _weft.promote_inexact(x)
    upwards = (x >= 0) | (x.dtype == "float16")
    away = _weft.where(upwards, float("inf"), float("-inf")).astype(x.dtype)
    return nextafter(x, away) - x


def fmod(x1: NestedLike, x2: NestedLike) -> Array:
    """The remainder of x1 / x2 with the sign of x1; 0 for integers divided by 0.

    Returns: array of the common shape and dtype.

    Example:
        >>> wnp.fmod(wnp.array([7, -7]), 3)
        Array([ 1, -1], dtype=int32)
    """
    if _weft.is_inexact(_weft.users_result_type(x1, x2)):
        return _weft.bind_elementwise("rem", (x1, x2), {})
    x1, x2 = _weft.promote_all(x1, x2)
    zero = x2 == 0
    return _weft.where(zero, 0, _weft.bind_elementwise("rem", (x1, _weft.where(zero, 1, x2)), {}))


def divmod(x1: ArrayLike, x2: ArrayLike) -> tuple[Array, Array]:
    """(x1 // x2, x1 % x2).

    Returns: pair of arrays of the common shape and dtype.

    Example:
        >>> wnp.divmod(7, 3)
        (Array(2, dtype=int32, weak_type=True), Array(1, dtype=int32, weak_type=True))
    """
    return floor_divide(x1, x2), remainder(x1, x2)


def modf(x: NestedLike) -> tuple[Array, Array]:
    """The fractional and the whole part, both with the sign of x.

    Returns: pair of arrays of the shape of x, of a float dtype.

    Example:
        >>> wnp.modf(wnp.array([1.5, -2.25]))
        (Array([ 0.5 , -0.25], dtype=float32), Array([ 1., -2.], dtype=float32))
    """
    whole = trunc(_weft.promote_inexact(x))
    return x - whole, whole


def frexp(x: NestedLike) -> tuple[Array, Array]:
    """The mantissa m in [0.5, 1) and the exponent e with x = m 2^e; 0, infinities and NaN are their own mantissas.

    Returns: pair (float array, int32 array) of the shape of x.

    Example:
        >>> wnp.frexp(wnp.array([8.0, 0.75]))
        (Array([0.5 , 0.75], dtype=float32), Array([4, 0], dtype=int32))
    """
    x = _weft.promote_inexact(x)
    ordinary = (x != 0) & (_weft.absolute(x) < float("inf"))
    safe = _weft.where(ordinary, x, 1)
    exponent = floor(log2(_weft.absolute(safe))) + 1
    mantissa = _times_power(safe, -exponent)
    # The logarithm may be off by one beside a power of two.
    size = _weft.absolute(mantissa)
    off = _weft.where(size >= 1, 1, _weft.where(size < 0.5, -1, 0))
    mantissa = _weft.where(size >= 1, mantissa / 2, _weft.where(size < 0.5, mantissa * 2, mantissa))
    return _weft.where(ordinary, mantissa, x), _weft.where(ordinary, exponent + off, 0).astype("int32")


def _times_power(x, exponent) -> Array:
    """x 2^exponent in two steps: the power alone may be too large or too small a number."""
    half = floor(exponent / 2)
    return x * exp2(half) * exp2(exponent - half)


def ldexp(x1: NestedLike, x2: ArrayLike) -> Array:
    """x1 times 2 to the power x2, rounded once.

    Args:
        x1: real array or number.
        x2: array or number of an integer dtype that broadcasts against x1.

    Returns: array of the common shape, of a float dtype.

    Raises:
        TypeError: x1 is complex, or x2 is not of an integer dtype.

    Example:
        >>> wnp.ldexp(3.0, 2)
        Array(12., dtype=float32)
        >>> wnp.ldexp(wnp.array(2.0**-100, "float32"), 220)
        Array(1.329228e+36, dtype=float32)
    """
    x = _weft.promote_inexact(x1)
    power = _weft.array(x2, None, False)
    if _weft.dtype_kind(x.dtype) == "complex":
        raise type_error(f"ldexp: x1 is {x.type}; expected real numbers")
    if _weft.is_inexact(power.dtype):
        raise type_error(f"ldexp: x2 is {power.type}; expected integers")
    dtype = x.dtype
    if dtype in ("float16", "bfloat16"):
        x = x.astype("float32")  # wide enough to round once, at the end
    least, most, digits = (-1022, 1023, 53) if x.dtype == "float64" else (-126, 127, 24)
    power = clip(power.astype(x.dtype), 3 * least, 3 * most)
    # 2^power alone may be too large or too small a number. On the way down only the last step may leave the normal
    # numbers, or the result is rounded twice (musl's scalbn does the same).
    for _ in range(2):
        step = _weft.where(power > most, most, _weft.where(power < least, least + digits, 0))
        x, power = x * exp2(step.astype(x.dtype)), power - step
    return (x * exp2(clip(power, least, most))).astype(dtype)


floor = _whole(
    "floor",
    """The largest whole number that is not above x; integers stay.

    Returns: array of the shape and dtype of x.

    Example:
        >>> wnp.floor(wnp.array([1.2, -1.2]))
        Array([ 1., -2.], dtype=float32)
    """,
)
ceil = _whole(
    "ceil",
    """The smallest whole number that is not below x; integers stay.

    Returns: array of the shape and dtype of x.

    Example:
        >>> wnp.ceil(wnp.array([1.2, -1.2]))
        Array([ 2., -1.], dtype=float32)
    """,
)
trunc = _whole(
    "trunc",
    """The whole number next to x towards 0; integers stay.

    Returns: array of the shape and dtype of x.

    Example:
        >>> wnp.trunc(wnp.array([1.7, -1.7]))
        Array([ 1., -1.], dtype=float32)
    """,
)

fix, around = trunc, round

_docs.complete(globals(), arrays=True)
