"""The zeta function of Hurwitz, and the derivatives of digamma that are made of it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from .. import _weft
from .. import numpy as wnp
from .._weft import Array
from ..custom import custom_jvp
from ..derivatives import jvp
from ..numpy._reductions import narrowed, widened
from .arguments import floats
from .incomplete import lgamma

# B_2k / (2k)!, k = 1 ... 12.
_BERNOULLI = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
    43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
    77683 / 14101100039391805440000,
    -236364091 / 1693824136731743669452800000,
)
_TERMS = 10


def _hurwitz(s: Array, q: Array) -> Array:
    """The sum of (q + k)^-s over k >= 0: ten terms, and the rest by Euler's and Maclaurin's formula (A & S 23.1.30 and
    23.2.9)."""
    total: Array = wnp.power(q, -s)
    for k in range(1, _TERMS):
        total = total + wnp.power(q + k, -s)
    n = q + _TERMS
    power = wnp.power(n, -s)
    total = total + power * n / (s - 1) + 0.5 * power
    rising, square = s, n * n
    power = power / n
    for k, factor in enumerate(_BERNOULLI):
        total = total + factor * rising * power
        rising = rising * (s + 2 * k + 1) * (s + 2 * k + 2)
        power = power / square
    return total


@functools.cache
def _zeta() -> Callable[[Array, Array], Array]:
    def of(s, q):
        pole = (q <= 0) & (wnp.floor(q) == q)
        good = (s > 1) & ~pole & ((q > 0) | (wnp.floor(s) == s))
        s1, q1 = wnp.where(good, s, 2), wnp.where(good, q, 1)
        special = wnp.where(s == 1, math.inf, wnp.where((s > 1) & pole, math.inf, math.nan))
        return wnp.where(good, wnp.where(s == math.inf, wnp.where(q == 1, 1, 0), _hurwitz(s1, q1)), special)

    value = custom_jvp(of, elementwise=True)

    @value.defjvp
    def rule(primals, tangents):
        (s, q), (ds, dq) = primals, tangents
        by_s = jvp(lambda s: of(s, q), (s,), (wnp.ones_like(s),))[1]
        return value(s, q), ds * by_s - dq * s * value(s + 1, q)

    return value


def zeta(s, q) -> Array:
    s, q = floats(s, q)
    dtype = s.dtype
    s, q = wnp.broadcast_arrays(widened(s), widened(q))
    return narrowed(_zeta()(s, q), dtype)


@functools.cache
def _polygamma() -> Callable[[Array, Array], Array]:
    @functools.partial(custom_jvp, elementwise=True)
    def value(n, x):
        order = wnp.where(n == 0, 1, n)
        sign = wnp.where(n % 2 == 0, -1, 1)
        high = sign * wnp.exp(lgamma(order + 1)) * _zeta()(order + 1, x)
        zero = wnp.where(n == 0, x, 1)
        return wnp.where(n == 0, _weft.bind_elementwise("digamma", (zero,), {}), high)

    @value.defjvp
    def rule(primals, tangents):
        (n, x), (_, dx) = primals, tangents
        return value(n, x), dx * value(n + 1, x)

    return value


def polygamma(n, x) -> Array:
    n, x = floats(n, x)
    dtype = x.dtype
    n, x = wnp.broadcast_arrays(widened(n), widened(x))
    return narrowed(_polygamma()(n, x), dtype)
