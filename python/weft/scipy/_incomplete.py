"""Incomplete gamma and beta functions, zeta functions, Bessel functions and numbers of combinations."""

from __future__ import annotations

import fractions
import math

from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import value_error
from .._special import bessel, incomplete
from .._special import zeta as _zeta
from .._special.exponential import log_combinations
from .._weft import Array
from ..api import stop_gradient
from ..typing import NestedLike
from ._floats import _floats

__all__ = [
    "bernoulli",
    "bessel_jn",
    "betainc",
    "comb",
    "gammainc",
    "gammaincc",
    "i1",
    "i1e",
    "polygamma",
    "zeta",
]


def gammainc(a: NestedLike, x: NestedLike) -> Array:
    """The regularised lower incomplete gamma function P(a, x): the probability that a gamma number is below x.

    Args:
        a: array or number > 0.
        x: array or number >= 0 that broadcasts against a.

    Returns: array of the common shape, of a float dtype; NaN outside. Its derivative by a is that of the series or the
        continued fraction.

    Source: Abramowitz & Stegun 6.5.29 below x = a + 1, 6.5.31 above.

    Example:
        >>> weft.scipy.special.gammainc(2.0, wnp.array([1.0, 3.0]))
        Array([0.26424113, 0.8008517 ], dtype=float32)
    """
    return incomplete.igamma(a, x)


def gammaincc(a: NestedLike, x: NestedLike) -> Array:
    """The regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x), without cancellation.

    Args:
        a: array or number > 0.
        x: array or number >= 0 that broadcasts against a.

    Returns: array of the common shape, of a float dtype; NaN outside.

    Source: Abramowitz & Stegun 6.5.31 above x = a + 1, 6.5.29 below.

    Example:
        >>> weft.scipy.special.gammaincc(2.0, wnp.array([1.0, 30.0]))
        Array([7.357589e-01, 2.900862e-12], dtype=float32)
    """
    return incomplete.igammac(a, x)


def betainc(a: NestedLike, b: NestedLike, x: NestedLike) -> Array:
    """The regularised incomplete beta function I_x(a, b): the probability that a beta number is below x.

    Args:
        a: array or number > 0.
        b: array or number > 0.
        x: array or number in [0, 1].

    Returns: array of the common shape, of a float dtype; NaN outside. It has derivatives by all three.

    Source: Abramowitz & Stegun 26.5.8, and 26.5.2 where x is large.

    Example:
        >>> weft.scipy.special.betainc(2.0, 3.0, wnp.array([0.1, 0.5]))
        Array([0.0523, 0.6875], dtype=float32)
    """
    return incomplete.betainc(a, b, x)


def polygamma(n: NestedLike, x: NestedLike) -> Array:
    """The derivative of order n of digamma.

    Args:
        n: array or number, whole and >= 0; it has no derivative.
        x: array or number that broadcasts against n.

    Returns: array of the common shape, of a float dtype.

    Source: Abramowitz & Stegun 6.4.10: (-1)^(n + 1) n! zeta(n + 1, x).

    Example:
        >>> weft.scipy.special.polygamma(1, wnp.array([1.0, 2.0]))
        Array([1.644934  , 0.64493406], dtype=float32)
    """
    return _zeta.polygamma(n, x)


def zeta(x: NestedLike, q: NestedLike | None = None) -> Array:
    """The zeta function of Hurwitz: the sum of (q + k)^-x over k = 0, 1 ...

    Args:
        x: array or number > 1; inf at 1, NaN below.
        q: array or number that broadcasts against x; None: 1, for Riemann's.

    Returns: array of the common shape, of a float dtype.

    Source: Euler's and Maclaurin's formula, Abramowitz & Stegun 3.6.28, after ten terms.

    Example:
        >>> weft.scipy.special.zeta(2.0, wnp.array([1.0, 2.0]))
        Array([1.644934  , 0.64493406], dtype=float32)
    """
    return _zeta.zeta(x, 1.0 if q is None else q)


def i1e(x: NestedLike) -> Array:
    """exp(-|x|) i1(x): the modified Bessel function of order 1, scaled.

    Returns: array of the shape of x, of a float dtype.

    Source: Abramowitz & Stegun 9.6.10 for |x| <= 30 (float32: 10), 9.7.1 beyond.

    Example:
        >>> weft.scipy.special.i1e(wnp.array([1.0, 100.0]))
        Array([0.20791042, 0.03974415], dtype=float32)
    """
    return bessel.i1e(x)


def i1(x: NestedLike) -> Array:
    """The modified Bessel function of order 1.

    Returns: array of the shape of x, of a float dtype.

    Source: Abramowitz & Stegun 9.6.10.

    Example:
        >>> weft.scipy.special.i1(wnp.array([0.0, 1.0]))
        Array([0.       , 0.5651591], dtype=float32)
    """
    return bessel.i1(x)


def bessel_jn(z: NestedLike, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions of the first kind of orders 0 ... v.

    Args:
        z: array or number of any shape.
        v: the highest order.
        n_iter: the order at which the recurrence begins; more are needed for |z| above about 30.

    Returns: array [v + 1, ...] of a float dtype.

    Raises:
        ValueError: v is negative.

    Source: Abramowitz & Stegun 9.12, example 1 (Miller's algorithm).

    Example:
        >>> weft.scipy.special.bessel_jn(1.0, v=2)
        Array([0.7651977 , 0.4400506 , 0.11490348], dtype=float32)
    """
    if v < 0:
        raise value_error(f"bessel_jn: v must not be negative, got {v}")
    return bessel.bessel_jn(z, int(v), int(n_iter))


def bernoulli(n: int) -> Array:
    """The Bernoulli numbers B_0 ... B_n, with B_1 = -1/2.

    Args:
        n: the index of the last one.

    Returns: array [n + 1] of the default float dtype.

    Raises:
        ValueError: n is negative.

    Source: Abramowitz & Stegun 23.1.2, in fractions.

    Example:
        >>> weft.scipy.special.bernoulli(4)
        Array([ 1.        , -0.5       ,  0.16666667,  0.        , -0.03333334], dtype=float32)
    """
    if n < 0:
        raise value_error(f"bernoulli: n must not be negative, got {n}")
    numbers = [fractions.Fraction(1)]
    for m in range(1, n + 1):
        if m > 1 and m % 2:
            numbers.append(fractions.Fraction(0))
        else:
            total = sum((math.comb(m + 1, k) * b for k, b in enumerate(numbers)), fractions.Fraction(0))
            numbers.append(-total / (m + 1))
    return wnp.array([float(b) for b in numbers], float)


def comb(N: NestedLike, k: NestedLike, *, repetition: bool = False) -> Array:
    """The number of ways to choose k of N things: gamma(N + 1) / (gamma(k + 1) gamma(N - k + 1)), 0 where k > N.

    Args:
        N: array or number.
        k: array or number that broadcasts against N.
        repetition: whether a thing may be chosen more than once.

    Returns: array of the common shape, of a float dtype, whole where that is exact.

    Source: Abramowitz & Stegun 6.1.21.

    Example:
        >>> weft.scipy.special.comb(5, wnp.array([0, 2, 6]))
        Array([ 1., 10.,  0.], dtype=float32)
    """
    n, k = _floats(N, k)
    # Nothing can be chosen of nothing in one way.
    empty = (n == 0) & (k == 0) if repetition else False
    if repetition:
        n = n + k - 1
    possible = (k >= 0) & (n >= 0) & (k <= n)
    n1, k1 = wnp.where(possible, n, 1), wnp.where(possible, k, 0)
    value = wnp.exp(log_combinations(n1, k1))
    exact = (wnp.round(n1) == n1) & (wnp.round(k1) == k1) & (value < 0.1 / float(wnp.finfo(value.dtype).eps))
    # Rounded without its derivative's being lost.
    value = value + wnp.where(exact, stop_gradient(wnp.round(value) - value), 0)
    return wnp.where(empty, 1, wnp.where(possible, value, 0))


_PARAMETERS = {
    "x": "array or number of any shape.",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
