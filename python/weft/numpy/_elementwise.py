"""Element-wise functions. Most are primitives of the IR, called straight in C++."""

from __future__ import annotations

import builtins
import math

from .. import _weft
from .._weft import Array

# NumPy's name -> primitive. Promotion and broadcasting are C++.
_UNARY = {
    "negative": "neg",
    "exp": "exp",
    "exp2": "exp2",
    "expm1": "expm1",
    "log": "log",
    "log1p": "log1p",
    "sqrt": "sqrt",
    "cbrt": "cbrt",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "square": "square",
    "isfinite": "is_finite",
    "invert": "not",
    "nextafter": "nextafter",
}
_ALIASES = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "bitwise_not": "invert",
    "abs": "absolute",
    "conj": "conjugate",
    "divide": "true_divide",
    "mod": "remainder",
    "pow": "power",
    "bitwise_invert": "invert",
    "atan2": "arctan2",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
    "fix": "trunc",
    "around": "round",
}
_BINARY = [
    "add",
    "subtract",
    "multiply",
    "true_divide",
    "floor_divide",
    "remainder",
    "power",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "right_shift",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "maximum",
    "minimum",
    "logical_and",
    "logical_or",
    "logical_xor",
    "arctan2",
]

__all__ = [
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

for _name, _prim in _UNARY.items():
    if _weft.has_primitive(_prim):
        globals()[_name] = _weft.elementwise(_prim, _name, False)
        __all__.append(_name)
for _name in _BINARY:
    globals()[_name] = _weft.binary(_name)
    __all__.append(_name)
_pi = math.pi


def absolute(x) -> Array:
    """|x|; for complex numbers the modulus."""
    return _weft.absolute(x)


def fabs(x) -> Array:
    """|x| in floating point."""
    return _weft.absolute(_weft.promote_inexact(x))


def angle(z, deg: bool = False) -> Array:
    """The angle of complex numbers, in (-pi, pi] (or degrees)."""
    z = _weft.promote_inexact(z)
    out = arctan2(imag(z), real(z))  # noqa: F821
    return out * (180 / _pi) if deg else out


def isreal(x) -> Array:
    """Whether the imaginary part is 0."""
    return imag(x) == 0


def iscomplex(x) -> Array:
    """Whether the imaginary part is not 0."""
    return imag(x) != 0


def sign(x) -> Array:
    """-1, 0 or 1; for complex numbers x / |x|, 0 at 0."""
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


floor = _whole("floor", "The largest whole number that is not above x; integers stay.")
ceil = _whole("ceil", "The smallest whole number that is not below x; integers stay.")
trunc = _whole("trunc", "The whole number next to x towards 0; integers stay.")


def bitwise_count(x) -> Array:
    """How many bits of |x| are set, as uint8."""
    return _weft.bind_elementwise("population_count", (_weft.absolute(x),), {}).astype("uint8")


def spacing(x) -> Array:
    """The distance from x to the next number away from 0."""
    x = _weft.promote_inexact(x)
    away = _weft.where(x < 0, float("-inf"), float("inf")).astype(x.dtype)
    return nextafter(x, away) - x  # noqa: F821


def gcd(x1, x2) -> Array:
    """The greatest common divisor of integers (Euclid's algorithm)."""
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
    """The least common multiple of integers."""
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
    """The real part; real numbers stay."""
    x = _weft.array(x, None, False)
    return _weft.bind_elementwise("real", (x,), {}) if _weft.dtype_kind(x.dtype) == "complex" else x


def imag(x) -> Array:
    """The imaginary part; 0 for real numbers."""
    x = _weft.array(x, None, False)
    return (
        _weft.bind_elementwise("imag", (x,), {})
        if _weft.dtype_kind(x.dtype) == "complex"
        else _weft.full(x.shape, 0, x.dtype)
    )


def positive(x) -> Array:
    """+x, which is x."""
    return _weft.array(x, None, False)


def conjugate(x) -> Array:
    """The complex conjugate; real numbers stay."""
    x = _weft.array(x, None, False)
    return _weft.bind_elementwise("conj", (x,), {}) if _weft.dtype_kind(x.dtype) == "complex" else x


def logical_not(x) -> Array:
    """Whether x is 0."""
    return _weft.logical_not(x)


def where(condition, x=None, y=None, *, size: int | None = None, fill_value=None):
    """x where the condition holds, else y. With the condition alone: the indices where it holds (see nonzero)."""
    if x is None and y is None:
        from ._indexing import nonzero

        return nonzero(condition, size=size, fill_value=fill_value)
    return _weft.where(condition, x, y)


def select(condlist, choicelist, default=0) -> Array:
    """The first choice whose condition holds, else the default."""
    if len(condlist) != len(choicelist):
        raise ValueError(f"select: {len(condlist)} conditions for {len(choicelist)} choices")
    out = default
    for condition, choice in reversed(list(zip(condlist, choicelist))):
        out = _weft.where(condition, choice, out)
    return out


def piecewise(x, condlist, funclist, *args, **kw) -> Array:
    """Functions chosen by conditions; a last function without condition is for the rest."""
    x = _weft.array(x, None, False)
    values = [f(x, *args, **kw) if callable(f) else f for f in funclist]
    return select(
        condlist, values[: len(condlist)], values[len(condlist)] if len(values) > len(condlist) else 0
    ).astype(x.dtype)


def clip(a, min=None, max=None, *, a_min=None, a_max=None) -> Array:
    """a limited to [min, max]; None is no limit."""
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    if low is not None:
        a = maximum(a, low)  # noqa: F821
    if high is not None:
        a = minimum(a, high)  # noqa: F821
    return _weft.array(a, None, False)


def round(a, decimals: int = 0) -> Array:
    """a rounded to the given number of decimals, halves to even."""
    a = _weft.array(a, None, False)
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
    """The nearest whole number, halves to even."""
    return round(_weft.promote_inexact(x))


def isnan(x) -> Array:
    """Whether x is not a number."""
    x = _weft.array(x, None, False)
    return x != x


def isinf(x) -> Array:
    """Whether x is an infinity."""
    x = _weft.promote_inexact(x)
    return _weft.absolute(x) == float("inf")


def isposinf(x) -> Array:
    """Whether x is +infinity."""
    return _weft.promote_inexact(x) == float("inf")


def isneginf(x) -> Array:
    """Whether x is -infinity."""
    return _weft.promote_inexact(x) == float("-inf")


def nan_to_num(
    x, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Array:
    """x with NaN replaced by nan, infinities by the largest finite numbers (or those given)."""
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
    """The logarithm to base 2."""
    return log(x) / math.log(2)  # noqa: F821


def log10(x) -> Array:
    """The logarithm to base 10."""
    return log(x) / math.log(10)  # noqa: F821


def exp10(x) -> Array:
    """10 ** x."""
    return exp(x * math.log(10))  # noqa: F821


def logaddexp(x1, x2) -> Array:
    """log(exp(x1) + exp(x2)) without overflow."""
    x1, x2 = _weft.promote_inexact(x1), _weft.promote_inexact(x2)
    top = maximum(x1, x2)  # noqa: F821
    delta = x1 - x2
    # Equal infinities have the difference NaN, and their sum is themselves.
    return _weft.where(delta != delta, x1 + x2, top + log1p(exp(-_weft.absolute(delta))))  # noqa: F821


def logaddexp2(x1, x2) -> Array:
    """log2(2 ** x1 + 2 ** x2) without overflow."""
    return logaddexp(_weft.promote_inexact(x1) * math.log(2), _weft.promote_inexact(x2) * math.log(2)) / math.log(2)


def hypot(x1, x2) -> Array:
    """sqrt(x1 ** 2 + x2 ** 2) without overflow."""
    x1, x2 = _weft.absolute(_weft.promote_inexact(x1)), _weft.absolute(_weft.promote_inexact(x2))
    big, small = maximum(x1, x2), minimum(x1, x2)  # noqa: F821
    ratio = small / _weft.where(big == 0, 1, big)
    return _weft.where(big == float("inf"), big, big * sqrt(1 + ratio * ratio))  # noqa: F821


def reciprocal(x) -> Array:
    """1 / x."""
    return true_divide(1, x)  # noqa: F821


def deg2rad(x) -> Array:
    """Degrees to radians."""
    return multiply(x, _pi / 180)  # noqa: F821


def rad2deg(x) -> Array:
    """Radians to degrees."""
    return multiply(x, 180 / _pi)  # noqa: F821


radians, degrees = deg2rad, rad2deg


def sinc(x) -> Array:
    """sin(pi x) / (pi x), 1 at 0."""
    x = _weft.promote_inexact(x) * _pi
    safe = _weft.where(x == 0, 1, x)
    return _weft.where(x == 0, 1, sin(safe) / safe)  # noqa: F821


def heaviside(x1, x2) -> Array:
    """0 for x1 < 0, x2 for x1 == 0, 1 for x1 > 0; NaN stays."""
    x1, x2 = _weft.promote_inexact(x1), _weft.promote_inexact(x2)
    step = _weft.where(x1 < 0, 0, _weft.where(x1 > 0, 1, x2))
    return _weft.where(x1 != x1, x1, step)


def signbit(x) -> Array:
    """Whether the sign bit is set (-0.0 too)."""
    x = _weft.array(x, None, False)
    if _weft.dtype_kind(x.dtype) == "float":
        return copysign(1, x) < 0
    return x < 0


def copysign(x1, x2) -> Array:
    """|x1| with the sign of x2, that of zeros too."""
    x1, x2 = _weft.promote_inexact(x1), _weft.promote_inexact(x2)
    negative_ = (x2 < 0) | ((x2 == 0) & (1 / x2 < 0))
    size = _weft.absolute(x1)
    return _weft.where(negative_, -size, size)


def fmod(x1, x2) -> Array:
    """The remainder with the sign of x1; 0 for integers divided by 0."""
    if _weft.is_inexact(_weft.result_type(x1, x2)):
        return _weft.bind_elementwise("rem", (x1, x2), {})
    zero = _weft.array(x2, None, False) == 0
    return _weft.where(zero, 0, _weft.bind_elementwise("rem", (x1, _weft.where(zero, 1, x2)), {}))


def divmod(x1, x2) -> tuple[Array, Array]:
    """(x1 // x2, x1 % x2)."""
    return floor_divide(x1, x2), remainder(x1, x2)  # noqa: F821


def modf(x) -> tuple[Array, Array]:
    """Fractional and whole part."""
    whole = trunc(_weft.promote_inexact(x))
    return x - whole, whole


def fmax(x1, x2) -> Array:
    """The larger; a NaN loses against a number."""
    return _weft.where((x1 > x2) | isnan(x2), x1, x2)


def fmin(x1, x2) -> Array:
    """The smaller; a NaN loses against a number."""
    return _weft.where((x1 < x2) | isnan(x2), x1, x2)


def float_power(x1, x2) -> Array:
    """x1 ** x2 in floating point."""
    return power(_weft.promote_inexact(x1), _weft.promote_inexact(x2))  # noqa: F821


def ldexp(x1, x2) -> Array:
    """x1 * 2 ** x2."""
    return _weft.promote_inexact(x1) * exp2(x2)  # noqa: F821


def frexp(x) -> tuple[Array, Array]:
    """Mantissa in [0.5, 1) and exponent of 2."""
    x = _weft.promote_inexact(x)
    exponent = floor(log2(_weft.absolute(_weft.where(x == 0, 1, x)))) + 1
    return _weft.where(x == 0, x, x / exp2(exponent)), _weft.where(x == 0, 0, exponent).astype("int32")  # noqa: F821


for _alias, _name in _ALIASES.items():
    if _name in globals():
        globals()[_alias] = globals()[_name]
        __all__.append(_alias)
del builtins
