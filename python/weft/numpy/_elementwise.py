"""Element-wise functions that are made from primitives."""

from __future__ import annotations

import math

from .. import _weft
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._weft import Array
from ..control import while_loop
from ..typing import ArrayLike, NestedLike
from ._directions import complex_sign
from ._primitives import arctan2, exp, exp2, log, log1p, maximum, power, sin, sqrt

__all__ = [
    "abs",
    "conj",
    "absolute",
    "angle",
    "bitwise_count",
    "conjugate",
    "copysign",
    "deg2rad",
    "degrees",
    "exp10",
    "fabs",
    "float_power",
    "gcd",
    "hypot",
    "iscomplex",
    "isfinite",
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
    "positive",
    "rad2deg",
    "imag",
    "radians",
    "real",
    "reciprocal",
    "sign",
    "signbit",
    "sinc",
]

_pi = math.pi


def _floats(x1: NestedLike, x2: NestedLike) -> tuple[Array, Array]:
    """Two arguments of a function of floats: a boolean or an integer takes the dtype of a float beside it."""
    dtype, weak = _weft.weak_result_type(x1, x2)
    if not weak and _weft.is_inexact(dtype):
        return _weft.astype(x1, dtype), _weft.astype(x2, dtype)
    return _weft.promote_inexact(x1), _weft.promote_inexact(x2)


def absolute(x: NestedLike) -> Array:
    """|x|; of complex numbers the modulus.

    Returns: array of the shape of x, of a real dtype.

    Example:
        >>> wnp.absolute(wnp.array([-1.5, 2.0])), wnp.absolute(3 + 4j)
        (Array([1.5, 2. ], dtype=float32), Array(5., dtype=float32))
    """
    return _weft.absolute(x)


def fabs(x: NestedLike) -> Array:
    """|x| in floating point.

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> wnp.fabs(wnp.array([-1, 2]))
        Array([1., 2.], dtype=float32)
    """
    return _weft.absolute(_weft.promote_inexact(x))


def angle(z: NestedLike, deg: bool = False) -> Array:
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


def isreal(x: NestedLike) -> Array:
    """Whether the imaginary part is 0.

    Returns: array of booleans of the shape of x.

    Example:
        >>> wnp.isreal(wnp.array([1 + 0j, 1j]))
        Array([ True, False], dtype=bool)
    """
    return imag(x) == 0


def iscomplex(x: NestedLike) -> Array:
    """Whether the imaginary part is not 0.

    Returns: array of booleans of the shape of x.

    Example:
        >>> wnp.iscomplex(wnp.array([1 + 0j, 1j]))
        Array([False,  True], dtype=bool)
    """
    return imag(x) != 0


def sign(x: NestedLike) -> Array:
    """-1, 0 or 1; of complex numbers x / |x|, 0 at 0, and the unit in the direction of the one infinite part.

    Returns: array of the shape and dtype of x.

    Example:
        >>> wnp.sign(wnp.array([-2.0, 0.0, 5.0]))
        Array([-1.,  0.,  1.], dtype=float32)
    """
    x = _weft.array(x, None, False)
    if _weft.dtype_kind(x.dtype) != "complex":
        return _weft.bind_elementwise("sign", (x,), {})
    return complex_sign(x)


def bitwise_count(x: NestedLike) -> Array:
    """How many bits of |x| are set.

    Args:
        x: array or number of any shape, of an integer dtype or booleans.

    Returns: array of uint8 of the shape of x.

    Example:
        >>> wnp.bitwise_count(wnp.array([1, 255, -1]))
        Array([1, 8, 1], dtype=uint8)
    """
    x = _weft.absolute(x)
    bits = x.astype("uint8") if _weft.dtype_kind(x.dtype) == "bool" else x
    return _weft.bind_elementwise("population_count", (bits,), {}).astype("uint8")


def gcd(x1: NestedLike, x2: NestedLike) -> Array:
    """The greatest common divisor of integers, not negative.

    Returns: array of the common shape, of the common integer dtype; as with |x|, 2^31 of int32 is its least integer.

    Raises:
        TypeError: an argument is not of an integer dtype.

    Source: Euclid's algorithm (Knuth, "The art of computer programming", 4.5.2, algorithm A).

    Example:
        >>> wnp.gcd(wnp.array([12, 18]), 8)
        Array([4, 2], dtype=int32)
    """
    x, y = _integers(x1, x2, "gcd")

    def step(state):
        a, b = state
        none = b == 0
        return _weft.where(none, a, b), _weft.where(
            none, 0, _weft.bind_elementwise("rem", (a, _weft.where(none, 1, b)), {})
        )

    more = lambda state: _weft.reduce("reduce_or", state[1] != 0, None, False)
    return while_loop(more, step, (_magnitude(x), _magnitude(y)))[0].astype(x.dtype)


def _magnitude(x: Array) -> Array:
    """|x| as an unsigned integer, which the least integer's is not among the signed ones."""
    name = str(x.dtype)
    return _weft.absolute(x).astype(name if name.startswith("u") else "u" + name)


def lcm(x1: NestedLike, x2: NestedLike) -> Array:
    """The least common multiple of integers, not negative; 0 where one is 0.

    Returns: array of the common shape, of the common integer dtype.

    Raises:
        TypeError: an argument is not of an integer dtype.

    Example:
        >>> wnp.lcm(wnp.array([4, 6]), 10)
        Array([20, 30], dtype=int32)
    """
    a, b = _integers(x1, x2, "lcm")
    dtype = a.dtype
    a, b = _magnitude(a), _magnitude(b)
    divisor = gcd(a, b)
    return (a * (b // _weft.where(divisor == 0, 1, divisor))).astype(dtype)


def _integers(x1, x2, what: str):
    dtype = _weft.users_result_type(x1, x2)
    if _weft.dtype_kind(dtype) not in ("signed", "unsigned"):
        raise type_error(f"{what}: integers are needed, got {dtype}")
    x1, x2 = (_weft.strong(x) for x in _weft.promote_all(x1, x2))
    shape = _weft.broadcast_shapes(x1.shape, x2.shape)
    return _weft.broadcast_to(x1, shape), _weft.broadcast_to(x2, shape)


def real(x: NestedLike) -> Array:
    """The real part; real numbers stay.

    Returns: array of the shape of x, of a real dtype.

    Example:
        >>> wnp.real(wnp.array([1 + 2j]))
        Array([1.], dtype=float32)
    """
    x = _weft.array(x, None, False)
    return _weft.bind_elementwise("real", (x,), {}) if _weft.dtype_kind(x.dtype) == "complex" else x


def imag(x: NestedLike) -> Array:
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


def positive(x: NestedLike) -> Array:
    """+x, which is x.

    Returns: array of the shape and dtype of x.

    Example:
        >>> wnp.positive(wnp.array([1, -2]))
        Array([ 1, -2], dtype=int32)
    """
    return _weft.array(x, None, False)


def conjugate(x: NestedLike) -> Array:
    """The complex conjugate; real numbers stay.

    Returns: array of the shape and dtype of x.

    Example:
        >>> wnp.conjugate(wnp.array([1 + 2j]))
        Array([1.-2.j], dtype=complex64)
    """
    x = _weft.array(x, None, False)
    return _weft.bind_elementwise("conj", (x,), {}) if _weft.dtype_kind(x.dtype) == "complex" else x


def logical_not(x: NestedLike) -> Array:
    """Whether x is 0.

    Returns: array of booleans of the shape of x.

    Example:
        >>> wnp.logical_not(wnp.array([0, 2]))
        Array([ True, False], dtype=bool)
    """
    return _weft.logical_not(x)


def isnan(x: NestedLike) -> Array:
    """Whether x is not a number.

    Returns: array of booleans of the shape of x.

    Example:
        >>> wnp.isnan(wnp.array([1.0, wnp.nan]))
        Array([False,  True], dtype=bool)
    """
    x = _weft.array(x, None, False)
    return x != x


def isfinite(x: NestedLike) -> Array:
    """Whether x is neither infinite nor not a number; of complex numbers, whether both parts are.

    Returns: array of booleans of the shape of x.

    Example:
        >>> wnp.isfinite(wnp.array([1.0, wnp.nan, wnp.inf]))
        Array([ True, False, False], dtype=bool)
    """
    x = _weft.array(x, None, False)
    if _weft.dtype_kind(x.dtype) == "complex":
        return isfinite(real(x)) & isfinite(imag(x))
    return _weft.bind_elementwise("is_finite", (x,), {})


def isinf(x: NestedLike) -> Array:
    """Whether x is an infinity.

    Returns: array of booleans of the shape of x.

    Example:
        >>> wnp.isinf(wnp.array([1.0, -wnp.inf]))
        Array([False,  True], dtype=bool)
    """
    x = _weft.promote_inexact(x)
    return _weft.absolute(x) == float("inf")


def isposinf(x: NestedLike) -> Array:
    """Whether x is +infinity.

    Returns: array of booleans of the shape of x.

    Example:
        >>> wnp.isposinf(wnp.array([wnp.inf, -wnp.inf]))
        Array([ True, False], dtype=bool)
    """
    return _weft.promote_inexact(x) == float("inf")


def isneginf(x: NestedLike) -> Array:
    """Whether x is -infinity.

    Returns: array of booleans of the shape of x.

    Example:
        >>> wnp.isneginf(wnp.array([wnp.inf, -wnp.inf]))
        Array([False,  True], dtype=bool)
    """
    return _weft.promote_inexact(x) == float("-inf")


def log2(x: ArrayLike) -> Array:
    """The logarithm to base 2; of powers of 2 exact.

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> wnp.log2(wnp.array([1.0, 8.0]))
        Array([0., 3.], dtype=float32)
    """
    return _log_in_base(x, "log2", math.log(2))


def _log_in_base(x: ArrayLike, prim: str, of_base: float) -> Array:
    """The primitive of real numbers; of complex ones log(x) / of_base, part by part, so that infinities make no NaN."""
    x = _weft.promote_inexact(x)
    if _weft.dtype_kind(x.dtype) != "complex":
        return _weft.bind_elementwise(prim, (x,), {})
    x = log(x)
    return _weft.bind_elementwise("complex", (x.real / of_base, x.imag / of_base), {})


def log10(x: ArrayLike) -> Array:
    """The logarithm to base 10; of powers of 10 exact.

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> wnp.log10(wnp.array([1.0, 100.0]))
        Array([0., 2.], dtype=float32)
    """
    return _log_in_base(x, "log10", math.log(10))


def exp10(x: ArrayLike) -> Array:
    """10 to the power x.

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> wnp.exp10(wnp.array([0.0, 1.0]))
        Array([ 1., 10.], dtype=float32)
    """
    return power(10.0, _weft.promote_inexact(x))


def logaddexp(x1: NestedLike, x2: NestedLike) -> Array:
    """log(exp(x1) + exp(x2)) without overflow: the larger one plus log1p(exp(-|x1 - x2|)). Of complex numbers the
    larger one is that with the larger real part.

    Returns: array of the common shape, of a float dtype.

    Example:
        >>> wnp.logaddexp(1000.0, 1000.0)
        Array(1000.6932, dtype=float32, weak_type=True)
    """
    return _log_of_sum(x1, x2, exp, 1.0)


def _log_of_sum(x1: NestedLike, x2: NestedLike, power_of_base, log_of_base: float) -> Array:
    """The logarithm of the sum of two powers of a base."""
    x1, x2 = _floats(x1, x2)
    delta = x1 - x2
    # By the sign of the difference, not by maximum: each branch is the whole function, equal numbers included, so that
    # derivatives of every order are its own. Those of maximum are 1/2 and then 0 there.
    is_complex = _weft.dtype_kind(delta.dtype) == "complex"
    first = (delta.real if is_complex else delta) > 0
    # Equal infinities have the difference NaN, and their sum is themselves. NaN stays on the path of numbers, whose
    # derivatives then are NaN.
    unordered = (delta != delta) & (x1.real == x2.real if is_complex else x1 == x2)
    smaller = power_of_base(_weft.where(first, -delta, _weft.where(unordered, 0, delta)))
    rest = log(1 + smaller) if is_complex else log1p(smaller)
    out = _weft.where(first, x1, x2) + (rest if log_of_base == 1 else rest / log_of_base)
    out = _weft.where(unordered, x1 + x2, out)
    if not is_complex:
        return out
    # A logarithm: its imaginary part is an angle of at most half a turn, up to infinities.
    angle = out.imag
    turned = (angle + math.pi) % (2 * math.pi) - math.pi
    return out.real + 1j * _weft.where(_weft.absolute(angle) > math.pi, turned, angle)


def logaddexp2(x1: NestedLike, x2: NestedLike) -> Array:
    """log2(2^x1 + 2^x2) without overflow.

    Returns: array of the common shape, of a float dtype.

    Example:
        >>> wnp.logaddexp2(3.0, 3.0)
        Array(4., dtype=float32, weak_type=True)
    """
    x1, x2 = _floats(x1, x2)
    if _weft.dtype_kind(x1.dtype) == "complex" or _weft.dtype_kind(x2.dtype) == "complex":
        return logaddexp(x1 * math.log(2), x2 * math.log(2)) / math.log(2)
    return _log_of_sum(x1, x2, exp2, math.log(2))


def hypot(x1: NestedLike, x2: NestedLike) -> Array:
    """sqrt(x1^2 + x2^2) without overflow: the larger times sqrt(1 + (smaller / larger)^2). The
    derivative at (0, 0) is that of the larger.

    Returns: array of the common shape, of a float dtype.

    Example:
        >>> wnp.hypot(3.0, 4.0)
        Array(5., dtype=float32, weak_type=True)
    """
    x1, x2 = _floats(x1, x2)
    if _weft.dtype_kind(x1.dtype) == "complex":
        raise value_error("hypot: x1 and x2 must be real, got complex numbers; take their absolute values")
    x1, x2 = _weft.absolute(x1), _weft.absolute(x2)
    # Selected, not maximum and minimum, whose derivatives where both are equal are shares: 1/2, then 0.
    first = x1 > x2
    big, small = _weft.where(first, x1, x2), _weft.where(first, x2, x1)
    largest = maximum(x1, x2)  # NaN beside any number, unlike big
    ratio = small / _weft.where(big == 0, 1, big)
    out = _weft.where((largest == 0) | (largest == float("inf")), largest, big * sqrt(1 + ratio * ratio))
    return _weft.where((x1 == float("inf")) | (x2 == float("inf")), float("inf"), out)  # beside NaN, too


def reciprocal(x: ArrayLike) -> Array:
    """1 / x, in floating point.

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> wnp.reciprocal(wnp.array([2.0, 4.0]))
        Array([0.5 , 0.25], dtype=float32)
    """
    return 1 / _weft.promote_inexact(x)


def deg2rad(x: ArrayLike) -> Array:
    """Degrees to radians.

    Args:
        x: array or number of any shape, in degrees.

    Returns: array of the shape of x, in radians.

    Example:
        >>> wnp.deg2rad(180.0)
        Array(3.1415927, dtype=float32, weak_type=True)
    """
    return _weft.promote_inexact(x) * (_pi / 180)


def rad2deg(x: ArrayLike) -> Array:
    """Radians to degrees.

    Args:
        x: array or number of any shape, in radians.

    Returns: array of the shape of x, in degrees.

    Example:
        >>> wnp.rad2deg(wnp.pi)
        Array(180., dtype=float32, weak_type=True)
    """
    return _weft.promote_inexact(x) * (180 / _pi)


radians, degrees = deg2rad, rad2deg


def sinc(x: NestedLike) -> Array:
    """sin(pi x) / (pi x): 1 at 0, and 0 at other integers. Derivatives near 0 are those of the power series.

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> wnp.sinc(wnp.array([0.0, 0.5]))
        Array([1.        , 0.63661975], dtype=float32)
    """
    given = _weft.promote_inexact(x)
    x = given * _pi
    # Near 0 the power series: derivatives of the quotient lose the digits that cancel, one power of x for each order.
    near = _weft.absolute(x) < 1
    square = _weft.where(near, x, 0)
    square = square * square
    series: Array | float = 0.0
    # As many terms as the sixth derivative needs.
    for k in range(12 if x.dtype in ("float64", "complex128") else 7, 0, -1):
        series = square * (series + 1) / (-2 * k * (2 * k + 1))
    safe = _weft.where(near, 1, x)
    if _weft.dtype_kind(x.dtype) == "complex":
        return _weft.where(near, series + 1, sin(safe) / safe)
    # pi times what is beyond whole numbers: pi times a large number is off by more than that.
    whole = _weft.bind_elementwise("round", (given,), {"mode": "even"})
    odd = _weft.absolute(whole - 2 * _weft.bind_elementwise("trunc", (whole / 2,), {}))
    return _weft.where(near, series + 1, sin((given - whole) * _pi) * (1 - 2 * odd) / safe)


def signbit(x: NestedLike) -> Array:
    """Whether the sign bit is set, those of -0.0 and NaN too.

    Returns: array of booleans of the shape of x.

    Example:
        >>> wnp.signbit(wnp.array([-0.0, 1.0]))
        Array([ True, False], dtype=bool)
    """
    x = _weft.array(x, None, False)
    return _sign_bit(x) if _weft.dtype_kind(x.dtype) == "float" else x < 0


def _sign_bit(x) -> Array:
    """Of floats; NaN has one, too."""
    bits = {"float16": "int16", "bfloat16": "int16", "float32": "int32", "float64": "int64"}.get(str(x.dtype), "int8")
    return _weft.bind_elementwise("bitcast", (x,), {"dtype": _weft.dtype(bits)}) < 0


def copysign(x1: NestedLike, x2: NestedLike) -> Array:
    """|x1| with the sign of x2, those of zeros and NaN too.

    Returns: array of the common shape, of a float dtype.

    Example:
        >>> wnp.copysign(3.0, wnp.array([-0.0, 1.0]))
        Array([-3.,  3.], dtype=float32)
    """
    dtype = _weft.users_result_type(x1, x2)
    x1 = _weft.promote_inexact(_weft.astype(x1, dtype))
    x2 = _weft.astype(x2, x1.dtype)  # not by way of an unsigned dtype, which has no sign
    size = _weft.absolute(x1)
    return _weft.where(_sign_bit(x2), -size, size)


def float_power(x1: NestedLike, x2: NestedLike) -> Array:
    """x1 to the power x2, in floating point.

    Returns: array of the common shape, of a float dtype.

    Example:
        >>> wnp.float_power(2, -1)
        Array(0.5, dtype=float32, weak_type=True)
    """
    return power(*_floats(x1, x2))


abs, conj = absolute, conjugate

_docs.complete(globals(), arrays=True)
