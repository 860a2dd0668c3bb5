"""Element-wise functions that are made from primitives."""

from __future__ import annotations

import math

from .. import _docs, _weft
from .._weft import Array
from ._primitives import (
    arctan2,
    exp,
    exp2,
    floor_divide,
    log,
    log1p,
    maximum,
    minimum,
    multiply,
    nextafter,
    power,
    remainder,
    sin,
    sqrt,
    true_divide,
)

__all__ = [
    "abs",
    "around",
    "conj",
    "fix",
    "absolute",
    "angle",
    "bitwise_count",
    "ceil",
    "clip",
    "conjugate",
    "copysign",
    "deg2rad",
    "degrees",
    "divmod",
    "exp10",
    "fabs",
    "float_power",
    "floor",
    "fmax",
    "fmin",
    "fmod",
    "frexp",
    "gcd",
    "heaviside",
    "hypot",
    "iscomplex",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "lcm",
    "log10",
    "log2",
    "logaddexp",
    "logaddexp2",
    "logical_not",
    "nan_to_num",
    "positive",
    "rad2deg",
    "imag",
    "radians",
    "real",
    "reciprocal",
    "rint",
    "round",
    "select",
    "sign",
    "signbit",
    "sinc",
    "spacing",
    "trunc",
    "where",
    "ldexp",
    "modf",
    "piecewise",
]

_pi = math.pi


def absolute(x) -> Array:
    """|x|; of complex numbers the modulus.

    Returns: array of the shape of x, of a real dtype.

    Example:
        >>> wnp.absolute(wnp.array([-1.5, 2.0])), wnp.absolute(3 + 4j)
        (Array([1.5, 2. ], dtype=float32), Array(5., dtype=float32))
    """
    return _weft.absolute(x)


def fabs(x) -> Array:
    """|x| in floating point.

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> wnp.fabs(wnp.array([-1, 2]))
        Array([1., 2.], dtype=float32)
    """
    return _weft.absolute(_weft.promote_inexact(x))


def angle(z, deg: bool = False) -> Array:
    """The angle of complex numbers, in (-pi, pi]; of real ones 0 or pi.

    Args:
        z: array or number of any shape.
        deg: whether the result is in degrees, instead of radians.

    Returns: array of the shape of z, of a real float dtype.

    Example:
        >>> wnp.angle(wnp.array([1.0, 1j, -1.0]), deg=True)
        Array([  0.,  90., 180.], dtype=float32)
    """
    z = _weft.promote_inexact(z)
    out = arctan2(imag(z), real(z))
    return out * (180 / _pi) if deg else out


def isreal(x) -> Array:
    """Whether the imaginary part is 0.

    Returns: array of booleans of the shape of x.

    Example:
        >>> wnp.isreal(wnp.array([1 + 0j, 1j]))
        Array([ True, False], dtype=bool)
    """
    return imag(x) == 0


def iscomplex(x) -> Array:
    """Whether the imaginary part is not 0.

    Returns: array of booleans of the shape of x.

    Example:
        >>> wnp.iscomplex(wnp.array([1 + 0j, 1j]))
        Array([False,  True], dtype=bool)
    """
    return imag(x) != 0


def sign(x) -> Array:
    """-1, 0 or 1; of complex numbers x / |x|, and 0 at 0.

    Returns: array of the shape and dtype of x.

    Example:
        >>> wnp.sign(wnp.array([-2.0, 0.0, 5.0]))
        Array([-1.,  0.,  1.], dtype=float32)
    """
    x = _weft.array(x, None, False)
    if _weft.dtype_kind(x.dtype) != "complex":
        return _weft.bind_elementwise("sign", (x,), {})
    size = _weft.absolute(x)
    return _weft.where(size == 0, 0, x / _weft.where(size == 0, 1, size))


def _whole(name: str, doc: str):
    def function(x) -> Array:
        x = _weft.array(x, None, False)
        return _weft.bind_elementwise(name, (x,), {}) if _weft.is_inexact(x.dtype) else x

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


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


def bitwise_count(x) -> Array:
    """How many bits of |x| are set.

    Args:
        x: array or number of any shape, of an integer dtype.

    Returns: array of uint8 of the shape of x.

    Example:
        >>> wnp.bitwise_count(wnp.array([1, 255, -1]))
        Array([1, 8, 1], dtype=uint8)
    """
    return _weft.bind_elementwise("population_count", (_weft.absolute(x),), {}).astype("uint8")


def spacing(x) -> Array:
    """The distance from x to the next number away from 0.

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> wnp.spacing(wnp.array([1.0]))
        Array([1.1920929e-07], dtype=float32)
    """
    x = _weft.promote_inexact(x)
    away = _weft.where(x < 0, float("-inf"), float("inf")).astype(x.dtype)
    return nextafter(x, away) - x


def gcd(x1, x2) -> Array:
    """The greatest common divisor of integers, not negative.

    Returns: array of the common shape, of the common integer dtype.

    Raises:
        TypeError: an argument is not of an integer dtype.

    Source: Euclid's algorithm (Knuth, "The art of computer programming", 4.5.2, algorithm A).

    Example:
        >>> wnp.gcd(wnp.array([12, 18]), 8)
        Array([4, 2], dtype=int32)
    """
    from ..control import while_loop

    x1, x2 = _integers(x1, x2, "gcd")

    def step(state):
        a, b = state
        none = b == 0
        return _weft.where(none, a, b), _weft.where(
            none, 0, _weft.bind_elementwise("rem", (a, _weft.where(none, 1, b)), {})
        )

    more = lambda state: _weft.reduce("reduce_or", state[1] != 0, None, False)
    return while_loop(more, step, (_weft.absolute(x1), _weft.absolute(x2)))[0]


def lcm(x1, x2) -> Array:
    """The least common multiple of integers, not negative; 0 where one is 0.

    Returns: array of the common shape, of the common integer dtype.

    Raises:
        TypeError: an argument is not of an integer dtype.

    Example:
        >>> wnp.lcm(wnp.array([4, 6]), 10)
        Array([20, 30], dtype=int32)
    """
    x1, x2 = _integers(x1, x2, "lcm")
    x1, x2 = _weft.absolute(x1), _weft.absolute(x2)
    divisor = gcd(x1, x2)
    return x1 * (x2 // _weft.where(divisor == 0, 1, divisor))


def _integers(x1, x2, what: str):
    dtype = _weft.result_type(x1, x2)
    if _weft.dtype_kind(dtype) not in ("signed", "unsigned"):
        raise TypeError(f"{what}: integers are needed, got {dtype}")
    x1, x2 = _weft.astype(x1, dtype), _weft.astype(x2, dtype)
    shape = _weft.broadcast_shapes(x1.shape, x2.shape)
    return _weft.broadcast_to(x1, shape), _weft.broadcast_to(x2, shape)


def real(x) -> Array:
    """The real part; real numbers stay.

    Returns: array of the shape of x, of a real dtype.

    Example:
        >>> wnp.real(wnp.array([1 + 2j]))
        Array([1.], dtype=float32)
    """
    x = _weft.array(x, None, False)
    return _weft.bind_elementwise("real", (x,), {}) if _weft.dtype_kind(x.dtype) == "complex" else x


def imag(x) -> Array:
    """The imaginary part; 0 for real numbers.

    Returns: array of the shape of x, of a real dtype.

    Example:
        >>> wnp.imag(wnp.array([1 + 2j]))
        Array([2.], dtype=float32)
    """
    x = _weft.array(x, None, False)
    return (
        _weft.bind_elementwise("imag", (x,), {})
        if _weft.dtype_kind(x.dtype) == "complex"
        else _weft.full(x.shape, 0, x.dtype)
    )


def positive(x) -> Array:
    """+x, which is x.

    Returns: array of the shape and dtype of x.

    Example:
        >>> wnp.positive(wnp.array([1, -2]))
        Array([ 1, -2], dtype=int32)
    """
    return _weft.array(x, None, False)


def conjugate(x) -> Array:
    """The complex conjugate; real numbers stay.

    Returns: array of the shape and dtype of x.

    Example:
        >>> wnp.conjugate(wnp.array([1 + 2j]))
        Array([1.-2.j], dtype=complex64)
    """
    x = _weft.array(x, None, False)
    return _weft.bind_elementwise("conj", (x,), {}) if _weft.dtype_kind(x.dtype) == "complex" else x


def logical_not(x) -> Array:
    """Whether x is 0.

    Returns: array of booleans of the shape of x.

    Example:
        >>> wnp.logical_not(wnp.array([0, 2]))
        Array([ True, False], dtype=bool)
    """
    return _weft.logical_not(x)


def where(condition, x=None, y=None, *, size: int | None = None, fill_value=None):
    """x where a condition holds, else y. With the condition alone: the indices where it holds, as nonzero.

    Both x and y are computed; where the one that is not chosen has an infinite derivative, the gradient is NaN: replace
    its argument by a harmless one first.

    Args:
        condition: array of booleans (or numbers: whether they are not 0).
        x: array or number that broadcasts against the condition.
        y: array or number that broadcasts against the condition.
        size: with the condition alone inside jit: how many indices the result has.
        fill_value: with size: what fills the result.

    Returns: array of the common shape and dtype; or a tuple of int32 vectors, one per dimension of the condition.

    Example:
        >>> wnp.where(wnp.array([True, False, True]), wnp.array([1, 2, 3]), 0)
        Array([1, 0, 3], dtype=int32)
        >>> wnp.where(wnp.array([True, False, True]))
        (Array([0, 2], dtype=int32),)
    """
    if x is None and y is None:
        from ._indexing import nonzero

        return nonzero(condition, size=size, fill_value=fill_value)
    return _weft.where(condition, x, y)


def select(condlist, choicelist, default=0) -> Array:
    """For each element the first choice whose condition holds, else a default.

    Args:
        condlist: list of arrays of booleans.
        choicelist: list of as many arrays or numbers.
        default: array or number for elements without condition that holds.

    Returns: array of the common shape and dtype.

    Raises:
        ValueError: the lists have different lengths.

    Example:
        >>> x = wnp.arange(4)
        >>> wnp.select([x < 1, x > 2], [x - 10, x * 10], -1)
        Array([-10,  -1,  -1,  30], dtype=int32)
    """
    if len(condlist) != len(choicelist):
        raise ValueError(f"select: {len(condlist)} conditions for {len(choicelist)} choices")
    out = default
    for condition, choice in reversed(list(zip(condlist, choicelist))):
        out = _weft.where(condition, choice, out)
    return out


def piecewise(x, condlist, funclist, *args, **kw) -> Array:
    """Functions chosen by conditions, element by element; all of them are computed.

    Args:
        condlist: list of arrays of booleans.
        funclist: list of functions of x or numbers, one per condition, and one more for the rest (0).
        *args: further arguments of the functions.
        **kw: further arguments of the functions.

    Returns: array of the shape and dtype of x.

    Example:
        >>> x = wnp.array([-2.0, 3.0])
        >>> wnp.piecewise(x, [x < 0], [lambda v: -v, lambda v: v * 10])
        Array([ 2., 30.], dtype=float32)
    """
    x = _weft.array(x, None, False)
    values = [f(x, *args, **kw) if callable(f) else f for f in funclist]
    return select(
        condlist, values[: len(condlist)], values[len(condlist)] if len(values) > len(condlist) else 0
    ).astype(x.dtype)


def clip(a, min=None, max=None, *, a_min=None, a_max=None) -> Array:
    """Numbers limited to an interval.

    Args:
        a: array or number of any shape.
        min: array or number: the lower end; None: none.
        max: array or number: the upper end; None: none. Wins where it is below min.
        a_min: another name of min.
        a_max: another name of max.

    Returns: array of the common shape and dtype.

    Example:
        >>> wnp.clip(wnp.array([1, 5, 9]), 2, 6)
        Array([2, 5, 6], dtype=int32)
    """
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    if low is not None:
        a = maximum(a, low)
    if high is not None:
        a = minimum(a, high)
    return _weft.array(a, None, False)


def round(a, decimals: int = 0) -> Array:
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
    scale = 10.0**decimals
    return _weft.bind_elementwise("round", (a * scale,), {"mode": "even"}) / scale


def rint(x) -> Array:
    """The nearest whole number, halves to even; of complex ones both parts.

    Returns: array of the shape of x, of a float or complex dtype.

    Example:
        >>> wnp.rint(wnp.array([0.5, 1.5, -1.2]))
        Array([ 0.,  2., -1.], dtype=float32)
    """
    return round(_weft.promote_inexact(x))


def isnan(x) -> Array:
    """Whether x is not a number.

    Returns: array of booleans of the shape of x.

    Example:
        >>> wnp.isnan(wnp.array([1.0, wnp.nan]))
        Array([False,  True], dtype=bool)
    """
    x = _weft.array(x, None, False)
    return x != x


def isinf(x) -> Array:
    """Whether x is an infinity.

    Returns: array of booleans of the shape of x.

    Example:
        >>> wnp.isinf(wnp.array([1.0, -wnp.inf]))
        Array([False,  True], dtype=bool)
    """
    x = _weft.promote_inexact(x)
    return _weft.absolute(x) == float("inf")


def isposinf(x) -> Array:
    """Whether x is +infinity.

    Returns: array of booleans of the shape of x.

    Example:
        >>> wnp.isposinf(wnp.array([wnp.inf, -wnp.inf]))
        Array([ True, False], dtype=bool)
    """
    return _weft.promote_inexact(x) == float("inf")


def isneginf(x) -> Array:
    """Whether x is -infinity.

    Returns: array of booleans of the shape of x.

    Example:
        >>> wnp.isneginf(wnp.array([wnp.inf, -wnp.inf]))
        Array([False,  True], dtype=bool)
    """
    return _weft.promote_inexact(x) == float("-inf")


def nan_to_num(
    x, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Array:
    """Numbers in place of NaN and the infinities.

    Args:
        copy: accepted, without effect: arrays never change.
        nan: what NaN becomes.
        posinf: what +infinity becomes; None: the largest finite number.
        neginf: what -infinity becomes; None: the smallest finite number.

    Returns: array of the shape and dtype of x.

    Example:
        >>> wnp.nan_to_num(wnp.array([1.0, wnp.nan, wnp.inf]), posinf=9.0)
        Array([1., 0., 9.], dtype=float32)
    """
    del copy
    import numpy as np

    x = _weft.array(x, None, False)
    if not _weft.is_inexact(x.dtype):
        return x
    if _weft.dtype_kind(x.dtype) == "complex":
        parts = [nan_to_num(part, True, nan, posinf, neginf) for part in (real(x), imag(x))]
        return _weft.bind_elementwise("complex", tuple(parts), {})
    info = np.finfo(x.dtype)
    x = _weft.where(x != x, nan, x)
    x = _weft.where(x == float("inf"), float(info.max) if posinf is None else posinf, x)
    return _weft.where(x == float("-inf"), float(info.min) if neginf is None else neginf, x)


def log2(x) -> Array:
    """The logarithm to base 2: log(x) / log(2).

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> wnp.log2(wnp.array([1.0, 8.0]))
        Array([0., 3.], dtype=float32)
    """
    return log(x) / math.log(2)


def log10(x) -> Array:
    """The logarithm to base 10: log(x) / log(10).

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> wnp.log10(wnp.array([1.0, 100.0]))
        Array([0., 2.], dtype=float32)
    """
    return log(x) / math.log(10)


def exp10(x) -> Array:
    """10 to the power x: exp(x log 10).

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> wnp.exp10(wnp.array([0.0, 1.0]))
        Array([ 1., 10.], dtype=float32)
    """
    return exp(x * math.log(10))


def logaddexp(x1, x2) -> Array:
    """log(exp(x1) + exp(x2)) without overflow: the larger one plus log1p(exp(-|x1 - x2|)).

    Returns: array of the common shape, of a float dtype.

    Example:
        >>> wnp.logaddexp(1000.0, 1000.0)
        Array(1000.6932, dtype=float32, weak_type=True)
    """
    x1, x2 = _weft.promote_inexact(x1), _weft.promote_inexact(x2)
    top = maximum(x1, x2)
    delta = x1 - x2
    # Equal infinities have the difference NaN, and their sum is themselves.
    return _weft.where(delta != delta, x1 + x2, top + log1p(exp(-_weft.absolute(delta))))


def logaddexp2(x1, x2) -> Array:
    """log2(2^x1 + 2^x2) without overflow.

    Returns: array of the common shape, of a float dtype.

    Example:
        >>> wnp.logaddexp2(3.0, 3.0)
        Array(4., dtype=float32, weak_type=True)
    """
    return logaddexp(_weft.promote_inexact(x1) * math.log(2), _weft.promote_inexact(x2) * math.log(2)) / math.log(2)


def hypot(x1, x2) -> Array:
    """sqrt(x1^2 + x2^2) without overflow: the larger times sqrt(1 + (smaller / larger)^2).

    Returns: array of the common shape, of a float dtype.

    Example:
        >>> wnp.hypot(3.0, 4.0)
        Array(5., dtype=float32, weak_type=True)
    """
    x1, x2 = _weft.absolute(_weft.promote_inexact(x1)), _weft.absolute(_weft.promote_inexact(x2))
    big, small = maximum(x1, x2), minimum(x1, x2)
    ratio = small / _weft.where(big == 0, 1, big)
    return _weft.where(big == float("inf"), big, big * sqrt(1 + ratio * ratio))


def reciprocal(x) -> Array:
    """1 / x, in floating point.

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> wnp.reciprocal(wnp.array([2.0, 4.0]))
        Array([0.5 , 0.25], dtype=float32)
    """
    return true_divide(1, x)


def deg2rad(x) -> Array:
    """Degrees to radians.

    Args:
        x: array or number of any shape, in degrees.

    Returns: array of the shape of x, in radians.

    Example:
        >>> wnp.deg2rad(180.0)
        Array(3.1415927, dtype=float32, weak_type=True)
    """
    return multiply(x, _pi / 180)


def rad2deg(x) -> Array:
    """Radians to degrees.

    Args:
        x: array or number of any shape, in radians.

    Returns: array of the shape of x, in degrees.

    Example:
        >>> wnp.rad2deg(wnp.pi)
        Array(180., dtype=float32, weak_type=True)
    """
    return multiply(x, 180 / _pi)


radians, degrees = deg2rad, rad2deg


def sinc(x) -> Array:
    """sin(pi x) / (pi x), and 1 at 0.

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> wnp.sinc(wnp.array([0.0, 0.5]))
        Array([1.        , 0.63661975], dtype=float32)
    """
    x = _weft.promote_inexact(x) * _pi
    safe = _weft.where(x == 0, 1, x)
    return _weft.where(x == 0, 1, sin(safe) / safe)


def heaviside(x1, x2) -> Array:
    """The step function: 0 for x1 < 0, x2 for x1 = 0, 1 for x1 > 0; NaN stays.

    Args:
        x2: array or number: the value at 0.

    Returns: array of the common shape, of a float dtype.

    Example:
        >>> wnp.heaviside(wnp.array([-1.0, 0.0, 2.0]), 0.5)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    x1, x2 = _weft.promote_inexact(x1), _weft.promote_inexact(x2)
    step = _weft.where(x1 < 0, 0, _weft.where(x1 > 0, 1, x2))
    return _weft.where(x1 != x1, x1, step)


def signbit(x) -> Array:
    """Whether the sign bit is set, that of -0.0 too.

    Returns: array of booleans of the shape of x.

    Example:
        >>> wnp.signbit(wnp.array([-0.0, 1.0]))
        Array([ True, False], dtype=bool)
    """
    x = _weft.array(x, None, False)
    if _weft.dtype_kind(x.dtype) == "float":
        return copysign(1, x) < 0
    return x < 0


def copysign(x1, x2) -> Array:
    """|x1| with the sign of x2, that of zeros too.

    Returns: array of the common shape, of a float dtype.

    Example:
        >>> wnp.copysign(3.0, wnp.array([-0.0, 1.0]))
        Array([-3.,  3.], dtype=float32)
    """
    dtype = _weft.result_type(x1, x2)
    x1, x2 = _weft.promote_inexact(_weft.astype(x1, dtype)), _weft.promote_inexact(_weft.astype(x2, dtype))
    negative_ = (x2 < 0) | ((x2 == 0) & (1 / x2 < 0))
    size = _weft.absolute(x1)
    return _weft.where(negative_, -size, size)


def fmod(x1, x2) -> Array:
    """The remainder of x1 / x2 with the sign of x1; 0 for integers divided by 0.

    Returns: array of the common shape and dtype.

    Example:
        >>> wnp.fmod(wnp.array([7, -7]), 3)
        Array([ 1, -1], dtype=int32)
    """
    if _weft.is_inexact(_weft.result_type(x1, x2)):
        return _weft.bind_elementwise("rem", (x1, x2), {})
    zero = _weft.array(x2, None, False) == 0
    return _weft.where(zero, 0, _weft.bind_elementwise("rem", (x1, _weft.where(zero, 1, x2)), {}))


def divmod(x1, x2) -> tuple[Array, Array]:
    """(x1 // x2, x1 % x2).

    Returns: pair of arrays of the common shape and dtype.

    Example:
        >>> wnp.divmod(7, 3)
        (Array(2, dtype=int32, weak_type=True), Array(1, dtype=int32, weak_type=True))
    """
    return floor_divide(x1, x2), remainder(x1, x2)


def modf(x) -> tuple[Array, Array]:
    """The fractional and the whole part, both with the sign of x.

    Returns: pair of arrays of the shape of x, of a float dtype.

    Example:
        >>> wnp.modf(wnp.array([1.5, -2.25]))
        (Array([ 0.5 , -0.25], dtype=float32), Array([ 1., -2.], dtype=float32))
    """
    whole = trunc(_weft.promote_inexact(x))
    return x - whole, whole


def fmax(x1, x2) -> Array:
    """The larger; a NaN loses against a number.

    Args:
        x1: array of any shape.

    Returns: array of the common shape and dtype.

    Example:
        >>> wnp.fmax(wnp.array([1.0, wnp.nan]), wnp.array([0.0, 2.0]))
        Array([1., 2.], dtype=float32)
    """
    return _weft.where((x1 > x2) | isnan(x2), x1, x2)


def fmin(x1, x2) -> Array:
    """The smaller; a NaN loses against a number.

    Args:
        x1: array of any shape.

    Returns: array of the common shape and dtype.

    Example:
        >>> wnp.fmin(wnp.array([1.0, wnp.nan]), wnp.array([0.0, 2.0]))
        Array([0., 2.], dtype=float32)
    """
    return _weft.where((x1 < x2) | isnan(x2), x1, x2)


def float_power(x1, x2) -> Array:
    """x1 to the power x2, in floating point.

    Returns: array of the common shape, of a float dtype.

    Example:
        >>> wnp.float_power(2, -1)
        Array(0.5, dtype=float32, weak_type=True)
    """
    return power(_weft.promote_inexact(x1), _weft.promote_inexact(x2))


def ldexp(x1, x2) -> Array:
    """x1 times 2 to the power x2, in floating point.

    Args:
        x2: array or number that broadcasts against x1.

    Returns: array of the common shape, of a float dtype.

    Example:
        >>> wnp.ldexp(3.0, 2)
        Array(12., dtype=float32, weak_type=True)
    """
    return _weft.promote_inexact(x1) * exp2(x2)


def frexp(x) -> tuple[Array, Array]:
    """The mantissa m in [0.5, 1) and the exponent e with x = m 2^e.

    Returns: pair (float array, int32 array) of the shape of x.

    Example:
        >>> wnp.frexp(wnp.array([8.0, 0.75]))
        (Array([0.5 , 0.75], dtype=float32), Array([4, 0], dtype=int32))
    """
    x = _weft.promote_inexact(x)
    exponent = floor(log2(_weft.absolute(_weft.where(x == 0, 1, x)))) + 1
    return _weft.where(x == 0, x, x / exp2(exponent)), _weft.where(x == 0, 0, exponent).astype("int32")


abs, conj, fix, around = absolute, conjugate, trunc, round

_docs.complete(globals(), arrays=True)
