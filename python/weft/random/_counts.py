"""Distributions of counts. Equal keys give the numbers of jax.random."""

from __future__ import annotations

import math

from .. import _key_uses as _uses
from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._weft import Array
from ..control import scan, while_loop
from ..typing import DTypeLike, NestedLike, Shape
from ._basic import uniform
from ._keys import KEY_ERRORS, _parameter, _shape, split

__all__ = [
    "binomial",
    "geometric",
    "multinomial",
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
    p = _parameter(p)
    u = uniform(key, p.shape if shape is None else shape, p.dtype)
    return (wnp.floor(wnp.log(wnp.where(u == 0, 1, u)) / wnp.log1p(-p)) + 1).astype(dtype)


def _accepted(key, shape, dtype, propose):
    """The last accepted of the draws from propose(u, v) -> (candidate, whether it is accepted), for uniform u and v,
    when each element has one: as long as any has none all are drawn again, as in JAX."""

    def step(state):
        key, done, out = state
        key, k1, k2 = split(key, 3)
        candidate, accepted = propose(uniform(k1, shape, dtype), uniform(k2, shape, dtype))
        return key, done | accepted, wnp.where(accepted, candidate, out)

    start = (key, wnp.zeros(shape, bool), wnp.full(shape, -1, dtype))
    return while_loop(lambda state: ~wnp.all(state[1]), step, start)[2]


@_uses.uses_key_once
def poisson(key: Array, lam: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = int) -> Array:
    """Poisson numbers: how many events of a rate there are in one unit of time.

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
    lam = wnp.asarray(lam)
    shape = lam.shape if shape is None else _shape(shape)
    lam = wnp.broadcast_to(lam.astype("float32"), shape)
    valid, few = (lam >= 0) & (lam < math.inf), ~(lam >= 10)
    small = wnp.where(valid & few, lam, 0)

    # How many waiting times fit: the sum of their negatives is the logarithm of a product of uniform numbers.
    def wait(state):
        key, log_product, count = state
        key, sub = split(key)
        count = wnp.where(log_product > -small, count + 1, count)
        return key, log_product + wnp.log(uniform(sub, shape, "float32")), count

    start = (key, wnp.zeros(shape, "float32"), wnp.zeros(shape, "int32"))
    counted = while_loop(lambda state: wnp.any(state[1] > -small), wait, start)[2] - 1
    large = wnp.where(valid & ~few, lam, 1e5)
    log_large = wnp.log(large)
    b = 0.931 + 2.53 * wnp.sqrt(large)
    a = -0.059 + 0.02483 * b
    inverse_alpha, v_r = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)

    def propose(u, v):
        u = u - 0.5
        us = 0.5 - wnp.abs(u)
        k = wnp.floor((2 * a / us + b) * u + large + 0.43)
        refused = (k < 0) | ((us < 0.013) & (v > us))
        # log of v inverse_alpha / (a / us^2 + b) against that of the probability.
        left = wnp.log(v * inverse_alpha / (a / (us * us) + b))
        right = -large + k * log_large - _weft.bind_elementwise("lgamma", (wnp.where(k < 0, 0, k) + 1,), {})
        return k, ((us >= 0.07) & (v <= v_r)) | (~refused & (left <= right))

    drawn = _accepted(key, shape, "float32", propose)
    count = wnp.where(few, counted.astype(dtype), drawn.astype(dtype))
    return wnp.where(valid, wnp.where(lam == 0, 0, count), -1).astype(dtype)


@_uses.uses_key_once
def binomial(
    key: Array, n: NestedLike, p: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = float
) -> Array:
    """Binomial numbers: how many of n trials succeed.

    Args:
        n: the number of trials, >= 0, a number or an array.
        p: the probability of success, in [0, 1], a number or an array.
        shape: the shape of the result; None: that of n and p together.
        dtype: the dtype of the result; float: the default float dtype, as in JAX.

    Returns: array of that shape; NaN where n is negative or p is no probability, inf where n is infinite (in an integer
        dtype: 0).

    Source: below 10 expected successes by waiting times (Devroye, "Non-uniform random variate generation", 1986, X.4),
        above by transformed rejection (Hoermann, "The generation of binomial random variates", 1993, algorithm BTRS).

    Example:
        >>> weft.random.binomial(weft.random.key(0), 10, 0.5, (5,)).shape
        (5,)
    """
    p = _parameter(p)
    n = wnp.asarray(n).astype(p.dtype)
    kind = p.dtype
    shape = wnp.broadcast_shapes(n.shape, p.shape) if shape is None else _shape(shape)
    n, p = wnp.broadcast_to(n, shape), wnp.broadcast_to(p, shape)
    below = p < 0.5
    rare = wnp.where(below, p, 1 - p)
    countable, possible = n >= 0, rare >= 0
    infinite = n == math.inf
    rare = wnp.where(possible, rare, 0.01)
    few = ~countable | (n * rare <= 10)
    trials = wnp.floor(n)
    # How many geometric waiting times, in trials, fit into n trials.
    rate, end = wnp.log1p(-rare), wnp.where(few & ~infinite, trials, 0)

    def wait(state):
        key, time, count = state
        sub, key = split(key)
        count = wnp.where(time <= end, count + 1, count)
        return key, time + wnp.ceil(wnp.log(uniform(sub, shape, kind)) / rate), count

    start = (key, wnp.zeros(shape, kind), wnp.zeros(shape, kind))
    counted = while_loop(lambda state: wnp.any(state[1] <= end), wait, start)[2] - 1
    m, q = wnp.where(few | infinite, 1e4, trials), wnp.where(few | infinite, 0.5, rare)
    spread = wnp.sqrt(m * q * (1 - q))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * q
    centre, v_r = m * q + 0.5, 0.92 - 4.2 / b
    odds, alpha, mode = q / (1 - q), (2.83 + 5.1 / b) * spread, wnp.floor((m + 1) * q)

    def propose(u, v):
        u = u - 0.5
        us = 0.5 - wnp.abs(u)
        k = wnp.floor((2 * a / us + b) * u + centre)
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
        return k, ((us >= 0.07) & (v <= v_r)) | ((k >= 0) & (k <= m) & slow)

    out = wnp.where(few, counted, _accepted(key, shape, kind, propose))
    out = wnp.where(below, out, trials - out)
    if _weft.is_inexact(_weft.dtype(dtype)):
        out = wnp.where(infinite, math.inf, out)
        out = wnp.where(countable & possible, out, math.nan)
    else:
        out = wnp.where(countable & possible & ~infinite, out, 0)
    return out.astype(dtype)


def multinomial(
    key: Array,
    n: NestedLike,
    p: NestedLike,
    *,
    shape: Shape | None = None,
    dtype: DTypeLike = float,
    unroll: int | bool = 1,
) -> Array:
    """How often each of several outcomes comes in n trials.

    Args:
        n: the number of trials, a number or an array that broadcasts to the shape without its last dimension.
        p: array [..., outcomes] of probabilities that add up to 1.
        shape: the shape of the result, its last dimension that of p; None: that of p.
        unroll: how many outcomes are drawn in one step of the loop over them; True: all.

    Returns: array of that shape, whose sums over the last axis are n.

    Source: each outcome's count is binomial, given those before it (Devroye, "Non-uniform random variate generation",
        1986, XI.1).

    Example:
        >>> weft.random.multinomial(weft.random.key(0), 10, wnp.array([0.2, 0.3, 0.5])).sum()
        Array(10., dtype=float32)
    """
    p = _parameter(p)
    n = wnp.asarray(n).astype(p.dtype)
    shape = p.shape if shape is None else _shape(shape)
    n, p = wnp.broadcast_to(n, shape[:-1]), wnp.moveaxis(wnp.broadcast_to(p, shape), -1, 0)
    rest = wnp.flip(wnp.cumsum(wnp.flip(p, 0), 0), 0)
    ratios = p / wnp.where(rest == 0, 1, rest)

    def draw(remaining, given):
        ratio, key = given
        count = binomial(key, remaining, wnp.clip(ratio, 0, 1), dtype=remaining.dtype)
        return remaining - count, count

    counts = scan(draw, n, (ratios, split(key, ratios.shape[0])), unroll=unroll)[1]
    return wnp.moveaxis(counts, 0, -1).astype(dtype)


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


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "dtype": "the dtype of the result; int: the default integer dtype.",
}

_docs.complete(globals(), _PARAMETERS, errors=KEY_ERRORS)
