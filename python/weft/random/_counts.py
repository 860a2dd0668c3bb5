"""Distributions of counts. poisson and binomial are distributed as JAX's, but not the same numbers."""

from __future__ import annotations

import math

import numpy as np

from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._weft import Array
from ..control import while_loop
from ..typing import DTypeLike, NestedLike, Shape
from ._basic import uniform
from ._keys import KEY_ERRORS, _limits, _shape, split

__all__ = [
    "binomial",
    "geometric",
    "poisson",
]


def geometric(key: Array, p: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = int) -> Array:
    """How many trials it takes to succeed once: 1, 2 ...

    Args:
        p: the probability of success, a number or an array.
        shape: the shape of the result; None: that of p.

    Returns: array of that shape.

    Source: floor(log(u) / log(1 - p)) + 1 (Devroye, "Non-uniform random variate generation", 1986, X.2).

    Example:
        >>> weft.random.geometric(weft.random.key(0), 0.3, (4,))
        Array([1, 1, 4, 3], dtype=int32)
    """
    p = wnp.asarray(p, float)
    u = uniform(key, p.shape if shape is None else shape, p.dtype)
    return (wnp.floor(wnp.log(u) / wnp.log1p(-p)) + 1).astype(dtype)


def _accepted(key, shape, dtype, propose):
    """Draws from propose(u, v) -> (candidate, whether it is accepted), for uniform u and v, until all are accepted."""

    def step(state):
        key, done, out = state
        key, k1, k2 = split(key, 3)
        candidate, accepted = propose(uniform(k1, shape, dtype), uniform(k2, shape, dtype, _limits(dtype)["tiny"]))
        return key, done | accepted, wnp.where(~done & accepted, candidate, out)

    start = (key, wnp.zeros(shape, bool), wnp.zeros(shape, dtype))
    return while_loop(lambda state: ~wnp.all(state[1]), step, start)[2]


def _by_waiting(key, shape, dtype, waiting, end):
    """How many waiting times fit before `end`: waiting(u) of a uniform u is one."""

    def step(state):
        key, time, count = state
        key, sub = split(key)
        time = time + waiting(uniform(sub, shape, dtype, _limits(dtype)["tiny"]))
        return key, time, wnp.where(time <= end, count + 1, count)

    start = (key, wnp.zeros(shape, dtype), wnp.zeros(shape, dtype))
    return while_loop(lambda state: wnp.any(state[1] <= end), step, start)[2]


def poisson(key: Array, lam: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = int) -> Array:
    """Poisson numbers: how many events of a rate there are in one unit of time. Not JAX's numbers.

    Args:
        lam: the rate, >= 0, a number or an array.
        shape: the shape of the result; None: that of lam.

    Returns: array of that shape; -1 where lam is negative, infinite or NaN.

    Source: below 10 by the waiting times of a Poisson process (Devroye, "Non-uniform random variate generation", 1986,
        X.3), above by transformed rejection (Hoermann, "The transformed rejection method for generating Poisson random
        variables", 1993, algorithm PTRS).

    Example:
        >>> weft.random.poisson(weft.random.key(0), 3.0, (5,)).shape
        (5,)
    """
    lam = _weft.promote_inexact(wnp.asarray(lam))
    kind = "float64" if lam.dtype == np.float64 else "float32"
    shape = lam.shape if shape is None else _shape(shape)
    lam = wnp.broadcast_to(lam.astype(kind), shape)
    valid, few = (lam >= 0) & (lam < math.inf), lam < 10
    k1, k2 = split(key)
    small = wnp.where(valid & few, lam, 0)
    counted = _by_waiting(k1, shape, kind, lambda u: -wnp.log(u), small)
    large = wnp.where(valid & ~few, lam, 100)
    root = wnp.sqrt(large)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse_alpha, v_r = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)

    def propose(u, v):
        u = u - 0.5
        us = 0.5 - wnp.abs(u)
        k = wnp.floor((2 * a / us + b) * u + large + 0.43)
        inside = wnp.where(k < 0, 0, k)
        # log of v inverse_alpha / (a / us^2 + b) against that of the probability, up to what cancels.
        bound = inside * wnp.log(large) - large - _log_factorial(inside)
        slow = wnp.log(v) + wnp.log(inverse_alpha) - wnp.log(a / (us * us) + b) <= bound
        return k, ((us >= 0.07) & (v <= v_r)) | ((k >= 0) & ((us >= 0.013) | (v <= us)) & slow)

    drawn = _accepted(k2, shape, kind, propose)
    return wnp.where(valid, wnp.where(few, counted, drawn), -1).astype(dtype)


def binomial(
    key: Array, n: NestedLike, p: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = float
) -> Array:
    """Binomial numbers: how many of n trials succeed. Not JAX's numbers.

    Args:
        n: the number of trials, >= 0, a number or an array.
        p: the probability of success, in [0, 1], a number or an array.
        shape: the shape of the result; None: that of n and p together.
        dtype: the dtype of the result; float: the default float dtype, as in JAX.

    Returns: array of that shape; NaN where n is negative or infinite or p is no probability (in an integer dtype: 0).

    Source: below 10 expected successes by waiting times (Devroye, "Non-uniform random variate generation", 1986, X.4),
        above by transformed rejection (Hoermann, "The generation of binomial random variates", 1993, algorithm BTRS).

    Example:
        >>> weft.random.binomial(weft.random.key(0), 10, 0.5, (5,)).shape
        (5,)
    """
    n, p = _weft.promote_inexact(wnp.asarray(n)), _weft.promote_inexact(wnp.asarray(p))
    kind = "float64" if np.float64 in (n.dtype, p.dtype) else "float32"
    shape = wnp.broadcast_shapes(n.shape, p.shape) if shape is None else _shape(shape)
    n, p = (wnp.broadcast_to(v.astype(kind), shape) for v in (n, p))
    valid = (n >= 0) & (n < math.inf) & (p >= 0) & (p <= 1)
    trials, chance = wnp.where(valid, n, 0), wnp.where(valid, p, 0)
    flipped = chance > 0.5
    rare = wnp.where(flipped, 1 - chance, chance)
    few = trials * rare < 10
    k1, k2 = split(key)
    # How many geometric waiting times, in trials, fit into n trials.
    rate = wnp.log1p(-wnp.where(few & (rare > 0), rare, 0.5))
    end = wnp.where(few & (rare > 0), trials, 0)
    counted = _by_waiting(k1, shape, kind, lambda u: wnp.floor(wnp.log(u) / rate) + 1, end)
    m, q = wnp.where(few, 1000, trials), wnp.where(few, 0.5, rare)
    spread = wnp.sqrt(m * q * (1 - q))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * q
    centre, v_r = m * q + 0.5, 0.92 - 4.2 / b
    odds, alpha, mode = q / (1 - q), (2.83 + 5.1 / b) * spread, wnp.floor((m + 1) * q)

    def propose(u, v):
        u = u - 0.5
        us = 0.5 - wnp.abs(u)
        k = wnp.floor((2 * a / us + b) * u + centre)
        possible = (k >= 0) & (k <= m)
        inside = wnp.clip(k, 0, m)
        bound = (
            (mode + 0.5) * wnp.log((mode + 1) / (odds * (m - mode + 1)))
            + (m + 1) * wnp.log((m - mode + 1) / (m - inside + 1))
            + (inside + 0.5) * wnp.log(odds * (m - inside + 1) / (inside + 1))
            + _stirling_rest(mode)
            + _stirling_rest(m - mode)
            - _stirling_rest(inside)
            - _stirling_rest(m - inside)
        )
        slow = wnp.log(v * alpha / (a / (us * us) + b)) <= bound
        return k, ((us >= 0.07) & (v <= v_r) & possible) | (possible & slow)

    drawn = wnp.where(few, counted, _accepted(k2, shape, kind, propose))
    out = wnp.where(flipped, trials - drawn, drawn)
    if _weft.is_inexact(_weft.dtype(dtype)):
        out = wnp.where(valid, out, float("nan"))
    return out.astype(dtype)


def _stirling_rest(k) -> Array:
    """log k! less its main part, log sqrt(2 pi) + (k + 1/2) log(k + 1) - (k + 1): Abramowitz & Stegun 6.1.41 for k + 1,
    exact below 10."""
    exact = [
        math.lgamma(i + 1) - (0.5 * math.log(2 * math.pi) + (i + 0.5) * math.log(i + 1) - (i + 1)) for i in range(10)
    ]
    table = _weft.array(exact, k.dtype, True)
    square = (k + 1) * (k + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
    return wnp.where(k < 10, wnp.take(table, wnp.clip(k, 0, 9).astype("int32")), series)


def _log_factorial(k) -> Array:
    return 0.5 * math.log(2 * math.pi) + (k + 0.5) * wnp.log(k + 1) - (k + 1) + _stirling_rest(k)


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "dtype": "the dtype of the result; int: the default integer dtype.",
}

_docs.complete(globals(), _PARAMETERS, errors=KEY_ERRORS)
