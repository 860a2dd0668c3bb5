"""Hypergeometric functions and others that are power series; functions of two arguments that are integrals."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import value_error
from .._special.exponential import with_slope
from .._special.incomplete import _until
from .._weft import Array
from ..custom import custom_jvp
from ..numpy._reductions import narrowed, widened
from ..symbolic_zeros import SymbolicZero
from ..typing import NestedLike
from ._floats import _float, _floats
from ._gamma import gamma, gammaln

__all__ = ["hyp1f1", "hyp2f1", "loggamma", "owens_t", "spence", "sph_harm_y"]


def _widened(*xs) -> tuple[Any, list[Array]]:
    xs = _floats(*xs)
    return xs[0].dtype, [widened(x) for x in wnp.broadcast_arrays(*xs)]


def _series(factor: Callable[[Any], Array], like: Array) -> Array:
    """1 + f(1) + f(1) f(2) + ..., until what is added twice no longer counts."""
    eps = float(wnp.finfo(like.dtype).eps)
    one = wnp.ones_like(like)

    def add(k, term, before, total):
        new = term * factor(k)
        return new, term, total + new

    small = lambda term, before, total: (
        (wnp.abs(term) + wnp.abs(before) <= 0.1 * eps * wnp.abs(total)) | ~wnp.isfinite(total)
    )
    return _until(add, (one, one, one), small)[2]


def _slope_of_series(factor: Callable[[Any], Array], slope: Callable[[Any], Array], like: Array) -> Array:
    """The derivative of _series by a parameter; slope(k): that of factor(k)."""
    eps = float(wnp.finfo(like.dtype).eps)
    one, zero = wnp.ones_like(like), wnp.zeros_like(like)

    def add(k, term, moved, before, total):
        new = moved * factor(k) + term * slope(k)
        return term * factor(k), new, moved, total + new

    small = lambda term, moved, before, total: (
        (wnp.abs(moved) + wnp.abs(before) <= 0.1 * eps * wnp.abs(total)) | ~wnp.isfinite(total)
    )
    return _until(add, (one, zero, zero, zero), small, least=2)[3]


def _moving(rate: Callable[[], Array], tangent: Any) -> Any:
    """rate() * tangent, which need not be computed where nothing moves."""
    return 0 if isinstance(tangent, SymbolicZero) else rate() * tangent


@functools.cache
def _hyp1f1() -> Callable[..., Array]:
    @functools.partial(custom_jvp, elementwise=True)
    def value(a, b, x):
        # Terms of one sign: of a negative x by Kummer's transformation, A & S 13.1.27.
        below = x < 0
        p, y = wnp.where(below, b - a, a), wnp.abs(x)
        far = y > 100
        z = wnp.where(far, 1, y)
        near = _series(lambda k: (p + k - 1) / (b + k - 1) * z / k, z)
        large = wnp.where(far, y, 200)
        tail: Any = 1.0
        for k in range(12, 0, -1):  # A & S 13.5.1
            tail = 1 + (b - p + k - 1) * (k - p) / (k * large) * tail
        whole = wnp.exp(gammaln(b) - gammaln(wnp.where(p > 0, p, 1)) + large + (p - b) * wnp.log(large)) * tail
        scaled_far = wnp.where(p > 0, whole, gamma(b) / gamma(p) * wnp.exp(large) * large ** (p - b) * tail)
        inner = wnp.where(far, scaled_far, near)
        of_e = wnp.where(below, wnp.exp(wnp.where(below, x, 0)), 1)
        # Of large negative x without the power of e, which would overflow.
        calm = gamma(b) / gamma(p) * large ** (p - b) * tail
        return wnp.where(x == 0, 1, wnp.where(below & far, calm, inner * of_e))

    def rule(primals, tangents):
        (a, b, x), (da, db, dx) = primals, tangents
        below = x < 0
        p, y = wnp.where(below, b - a, a), wnp.where(wnp.abs(x) > 100, math.nan, wnp.abs(x))
        of_e = wnp.where(below, wnp.exp(wnp.where(below, x, 0)), 1)
        factor = lambda k: (p + k - 1) / (b + k - 1) * y / k
        by_p = functools.cache(lambda: of_e * _slope_of_series(factor, lambda k: y / ((b + k - 1) * k), y))
        by_b = lambda: of_e * _slope_of_series(factor, lambda k: -factor(k) / (b + k - 1), y)
        moves = _moving(lambda: wnp.where(below, -by_p(), by_p()), da)
        moves = moves + _moving(lambda: by_b() + wnp.where(below, by_p(), 0), db)
        moves = moves + _moving(lambda: a / b * value(a + 1, b + 1, x), dx)
        return value(a, b, x), moves

    value.defjvp(rule, symbolic_zeros=True)
    return value


def hyp1f1(a: NestedLike, b: NestedLike, x: NestedLike) -> Array:
    """The confluent hypergeometric function M(a, b, x).

    Args:
        a: array or number.
        b: array or number, no whole number <= 0.
        x: array or number. Beyond 100 derivatives by a and b are NaN.

    Returns: array of the common shape, of a float dtype.

    Source: Abramowitz & Stegun 13.1.2 and 13.1.27, 13.5.1 for |x| > 100.

    Example:
        >>> weft.scipy.special.hyp1f1(1.0, 2.0, wnp.array([-1.0, 1.0]))
        Array([0.6321205, 1.7182816], dtype=float32)
    """
    dtype, (a, b, x) = _widened(a, b, x)
    return narrowed(_hyp1f1()(a, b, x), dtype)


def _is_end(a: Array) -> Array:
    """Whether a is one of 0, -1, -2 ..., with which a series has an end."""
    return (a <= 0) & (wnp.round(a) == a)


@functools.cache
def _hyp2f1() -> Callable[..., Array]:
    def series(a, b, c, z):
        return _series(lambda k: (a + k - 1) * (b + k - 1) / (c + k - 1) * z / k, z)

    @functools.partial(custom_jvp, elementwise=True)
    def value(a, b, c, x):
        # Below 0 and near 1 the transformations of A & S 15.3.4 and 15.3.6 bring x into [0, 1/2].
        below, near_1 = x < 0, (x > 0.9) & (x < 1)
        turned = x / (x - 1)
        ends = _is_end(a) | _is_end(b)  # the series does: it is a polynomial, of any x
        y = wnp.where(below, turned, wnp.where((x >= 1) & ~ends, 0, x))
        q = wnp.where(below, c - b, b)
        whole = wnp.round(c - a - b) == c - a - b
        by_rest = near_1 & ~whole & ~ends
        direct = series(a, q, c, wnp.where(by_rest, 0, y))
        direct = direct * wnp.where(below, (1 - wnp.where(below, x, 0)) ** (-a), 1)
        rest = wnp.where(by_rest, 1 - x, 0.1)
        d = wnp.where(whole, 0.5, c - a - b)
        first = gamma(c) * gamma(d) / (gamma(c - a) * gamma(c - b)) * series(a, b, 1 - d, rest)
        second = gamma(c) * gamma(-d) / (gamma(a) * gamma(b)) * rest**d * series(c - a, c - b, 1 + d, rest)
        above = c - a - b
        at_1 = gamma(c) * gamma(wnp.where(above > 0, above, 1)) / (gamma(c - a) * gamma(c - b))
        beyond = wnp.where((x == 1) & (above > 0), at_1, math.inf)
        return wnp.where((x >= 1) & ~ends, beyond, wnp.where(by_rest, first + second, direct))

    def rule(primals, tangents):
        (a, b, c, x), (da, db, dc, dx) = primals, tangents
        below = x < 0
        y = wnp.where(below, x / (x - 1), wnp.where(x >= 1, math.nan, x))
        q = wnp.where(below, c - b, b)
        log = wnp.where(below, wnp.log1p(wnp.where(below, -x, 0)), 0)
        outside = wnp.exp(-a * log)
        factor = lambda k: (a + k - 1) * (q + k - 1) / (c + k - 1) * y / k
        slope = lambda of: outside * _slope_of_series(factor, of, y)
        by_q = functools.cache(lambda: slope(lambda k: (a + k - 1) / (c + k - 1) * y / k))
        by_a = lambda: slope(lambda k: (q + k - 1) / (c + k - 1) * y / k) - log * value(a, b, c, x)
        by_c = lambda: slope(lambda k: -factor(k) / (c + k - 1))
        moves = _moving(by_a, da) + _moving(lambda: wnp.where(below, -by_q(), by_q()), db)
        moves = moves + _moving(lambda: by_c() + wnp.where(below, by_q(), 0), dc)
        moves = moves + _moving(lambda: a * b / c * value(a + 1, b + 1, c + 1, x), dx)
        return value(a, b, c, x), moves

    value.defjvp(rule, symbolic_zeros=True)
    return value


def hyp2f1(a: NestedLike, b: NestedLike, c: NestedLike, x: NestedLike) -> Array:
    """Gauss's hypergeometric function F(a, b; c; x).

    Args:
        a: array or number.
        b: array or number.
        c: array or number, no whole number <= 0.
        x: array or number; derivatives by a, b and c are NaN from 1 on.

    Returns: array of the common shape, of a float dtype; infinite above 1, where its values are complex, unless a or b
    is one of 0, -1, -2 ...: it is a polynomial then.

    Source: Abramowitz & Stegun 15.1.1, 15.3.4 below 0, 15.3.6 near 1, 15.1.20 at 1.

    Example:
        >>> weft.scipy.special.hyp2f1(1.0, 2.0, 3.0, wnp.array([-1.0, 0.5]))
        Array([0.61370564, 1.5451776 ], dtype=float32)
    """
    dtype, (a, b, c, x) = _widened(a, b, c, x)
    return narrowed(_hyp2f1()(a, b, c, x), dtype)


# 2 B_2k / (2k + 1)!: the dilogarithm of 1 - e^-u is u - u^2 / 4 + the sum of B_2k u^(2k + 1) / (2k + 1)!.
_DILOGARITHM = (
    1 / 36,
    -1 / 3600,
    1 / 211680,
    -1 / 10886400,
    1 / 526901760,
    -691 / 16999766784000,
    1 / 1120863744000,
    -3617 / 181400588328960000,
    43867 / 97072790126247936000,
)


def _dilogarithm(minus_log: Array) -> Array:
    """Li2(1 - e^-u) of |u| up to log 2."""
    u = minus_log
    square = u * u
    total: Any = 0.0
    for c in reversed(_DILOGARITHM):
        total = total * square + c
    return u - square / 4 + u * square * total


def _spence(x: Array) -> Array:
    small, large = x < 0.5, x > 2
    positive = wnp.where(x > 0, x, 1)
    log = wnp.log(positive)
    low = wnp.where(small, x, 0.25)
    # Li2(1 - x) itself; by Euler's reflection for small x; by inversion for large x.
    direct = _dilogarithm(-log * ~(small | large))
    reflected = math.pi**2 / 6 - log * wnp.log1p(-low) - _dilogarithm(-wnp.log1p(-low))
    z = wnp.where(large, x, 3)
    log_up = wnp.log(z - 1)
    # 1 / (1 - x) = 1 - e^-u with e^-u = x / (x - 1).
    inverted = -(math.pi**2) / 6 - 0.5 * log_up * log_up - _dilogarithm(wnp.log1p(-1 / z))
    at_0 = wnp.where(x == 0, math.pi**2 / 6, math.nan)
    return wnp.where(x > 0, wnp.where(small, reflected, wnp.where(large, inverted, direct)), at_0)


_spence_of = with_slope(_spence, lambda x, y: wnp.where(x == 1, -1, wnp.log(x) / (1 - wnp.where(x == 1, 2, x))))


def spence(x: NestedLike) -> Array:
    """Spence's function: the integral of log(t) / (1 - t) from 1 to x, which is the dilogarithm of 1 - x.

    Args:
        x: array or number >= 0.

    Returns: array of the shape of x, of a float dtype; NaN below 0.

    Source: Abramowitz & Stegun 27.7, with the reflections 27.7.3 and 27.7.5; Bernoulli numbers for what is left.

    Example:
        >>> weft.scipy.special.spence(wnp.array([0.0, 1.0, 3.0]))
        Array([ 1.644934 , -0.       , -1.4367464], dtype=float32)
    """
    return _spence_of(x)


def owens_t(h: NestedLike, a: NestedLike) -> Array:
    """Owen's function: the integral of exp(-h^2 (1 + x^2) / 2) / (2 pi (1 + x^2)) over x from 0 to a.

    Args:
        h: array or number.
        a: array or number that broadcasts against h.

    Returns: array of the common shape, of a float dtype.

    Source: D. B. Owen, "Tables for computing bivariate normal probabilities", 1956, with its formula 2.3 for |a| > 1;
        the integral by Gauss and Legendre's rule.

    Example:
        >>> weft.scipy.special.owens_t(0.5, wnp.array([0.5, 2.0]))
        Array([0.0644886 , 0.14158061], dtype=float32)
    """
    dtype, (h, a) = _widened(h, a)
    return narrowed(_owens()(h, a), dtype)


@functools.cache
def _legendre(count: int) -> tuple[np.ndarray, np.ndarray]:
    points, weights = np.polynomial.legendre.leggauss(count)
    return (points + 1) / 2, weights / 2


@functools.cache
def _owens() -> Callable[[Array, Array], Array]:
    erfc = lambda x: _weft.bind_elementwise("erfc", (x / math.sqrt(2),), {})

    def inner(h, a):
        points, weights = (wnp.asarray(v, h.dtype) for v in _legendre(32))
        # Past a few widths of the normal density nothing is left.
        end = wnp.minimum(a, 9 / wnp.maximum(h, 1e-6))
        x = end[..., None] * points
        f = wnp.exp(-0.5 * h[..., None] ** 2 * (1 + x * x)) / (1 + x * x)
        return end * wnp.sum(weights * f, -1) / (2 * math.pi)

    @functools.partial(custom_jvp, elementwise=True)
    def value(h, a):
        size, reach = wnp.abs(h), wnp.abs(a)
        beyond = reach > 1
        inverse = wnp.where(beyond, 1 / wnp.where(beyond, reach, 1), reach)
        scaled = wnp.where(beyond, size * wnp.where(wnp.isinf(reach), 1, reach), size)
        part = inner(wnp.where(beyond, scaled, size), inverse)
        # Q(h) / 2 + Q(ah) / 2 - Q(h) Q(ah) - T(ah, 1 / a) of upper tails Q.
        upper, upper_a = 0.5 * erfc(size), 0.5 * erfc(scaled)
        outside = 0.5 * (upper + upper_a) - upper * upper_a - part
        outside = wnp.where(wnp.isinf(reach), 0.5 * upper, outside)
        return wnp.sign(a) * wnp.where(beyond, outside, part)

    @value.defjvp
    def rule(primals, tangents):
        (h, a), (dh, da) = primals, tangents
        by_a = wnp.exp(-0.5 * h * h * (1 + a * a)) / (2 * math.pi * (1 + a * a))
        by_h = -wnp.exp(-0.5 * h * h) / (2 * math.sqrt(2 * math.pi)) * (1 - erfc(a * h))
        return value(h, a), dh * by_h + da * by_a

    return value


def loggamma(x: NestedLike) -> Array:
    """The logarithm of the gamma function, of complex numbers its principal branch.

    Returns: array of the shape of x, of a float or complex dtype; of real numbers < 0 NaN.

    Source: Abramowitz & Stegun 6.1.41 after 6.1.16; 6.1.17 left of the imaginary axis.

    Example:
        >>> weft.scipy.special.loggamma(wnp.array([1.0 + 2.0j]))
        Array([-1.8760786+0.1296463j], dtype=complex64)
    """
    z = wnp.asarray(x)
    if not wnp.issubdtype(z.dtype, wnp.complexfloating):
        z = _float(x)
        return wnp.where(z < 0, math.nan, gammaln(wnp.where(z < 0, 1, z)))
    left = wnp.real(z) < 0.5
    up = wnp.where(left, 1 - z, z)
    # Shifted to where Stirling's series has all digits; the logarithm of each factor keeps the branch.
    shifts = 8
    logs: Any = 0.0
    for k in range(shifts):
        logs = logs + wnp.log(up + k)
    w = up + shifts
    square = 1 / (w * w)
    rest: Any = 0.0
    for c in reversed([1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156]):
        rest = rest * square + c
    right = (w - 0.5) * wnp.log(w) - w + 0.5 * math.log(2 * math.pi) + rest / w - logs
    # log sin(pi z) = log of (1 - e^(2 pi i z)) and what it was divided by, above the real axis; mirrored below.
    below = wnp.imag(z) < 0
    v = wnp.where(below, wnp.conj(z), z)
    log_sine = wnp.log(1 - wnp.exp(2j * math.pi * v)) - 1j * math.pi * (v - 0.5) - math.log(2)
    log_sine = wnp.where(below, wnp.conj(log_sine), log_sine)
    return wnp.where(left, math.log(math.pi) - log_sine - right, right)


def sph_harm_y(
    n: NestedLike,
    m: NestedLike,
    theta: NestedLike,
    phi: NestedLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Array:
    """Spherical harmonics, with the phase of Condon and Shortley.

    Args:
        n: vector of degrees >= 0.
        m: vector of orders, |m| <= n.
        theta: vector of polar angles in [0, pi].
        phi: vector of azimuths.
        diff_n: must be None.
        n_max: the largest degree, needed where n is traced; None: that of n.

    Returns: array of the common shape, of a complex dtype.

    Raises:
        ValueError: diff_n is given.

    Source: Press et al., "Numerical recipes", 6.7: normalised associated Legendre functions by their recurrence.

    Example:
        >>> weft.scipy.special.sph_harm_y(wnp.array([1]), wnp.array([0]), wnp.array([0.0]), wnp.array([0.0]))
        Array([0.48860252+0.j], dtype=complex64)
    """
    if diff_n is not None:
        raise value_error("sph_harm_y: diff_n must be None: differentiate by theta and phi instead")
    last = int(np.max(np.asarray(n))) if n_max is None else int(n_max)
    n, m = wnp.asarray(n), wnp.asarray(m)
    theta, phi = _floats(theta, phi)
    n, m, theta, phi = wnp.broadcast_arrays(n, m, theta, phi)
    order = wnp.abs(m)
    # Beyond [0, pi] SciPy has the sine's size.
    cosine, sine = wnp.cos(theta), wnp.sin(theta)
    sine = wnp.where(sine < 0, -sine, sine)
    found = wnp.zeros_like(cosine)
    # P of degree = order, from one order to the next, and from there up by degrees.
    start: Array = wnp.full_like(cosine, math.sqrt(1 / (4 * math.pi)))
    for k in range(last + 1):
        if k:
            start = -math.sqrt((2 * k + 1) / (2 * k)) * sine * start
        before, at = wnp.zeros_like(cosine), start
        for degree in range(k, last + 1):
            if degree > k:
                scale = math.sqrt((4 * degree * degree - 1) / (degree * degree - k * k))
                rest = math.sqrt(((degree - 1) ** 2 - k * k) / (4 * (degree - 1) ** 2 - 1)) if degree - 1 > k else 0.0
                before, at = at, scale * (cosine * at - rest * before)
            found = wnp.where((order == k) & (n == degree), at, found)
    angle = order * phi
    value = found * (wnp.cos(angle) + 1j * wnp.sin(angle))
    sign = wnp.where(order % 2 == 0, 1, -1)
    return wnp.where(m < 0, sign * wnp.conj(value), value)


_docs.complete(globals(), {"x": "array or number of any shape."}, arrays=True)
