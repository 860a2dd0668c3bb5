"""Modified Bessel functions of order 1, and those of the first kind of whole orders."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from .. import numpy as wnp
from .._weft import Array
from ..control import fori_loop
from ..custom import custom_jvp
from ..numpy._polynomials import _bessel_i0e
from ..numpy._reductions import narrowed, widened
from .arguments import floats


def _parts(x: Array) -> tuple[Array, Array, Array]:
    """Where |x| is large; I1(x) by the power series (A & S 9.6.10), for the others; and exp(-|x|) I1(|x|) by the
    asymptotic series of A & S 9.7.1."""
    single = x.dtype == "float32"
    near_terms, far_terms, end = (26, 12, 10.0) if single else (80, 17, 30.0)
    size = wnp.abs(x)
    large = size > end
    near = wnp.where(large, 1, x)
    q: Array = near * near / 4
    total: Any = 1.0
    for k in reversed(range(1, near_terms)):
        total = 1 + total * (q * (1 / (k * (k + 1))))
    inverse = 1 / wnp.where(large, size, end)
    series: Any = 1.0
    for k in reversed(range(1, far_terms)):
        series = 1 + series * (inverse * (((2 * k - 1) ** 2 - 4) / (8 * k)))
    return large, near / 2 * total, series * wnp.sqrt(inverse / (2 * math.pi))


@functools.cache
def _scaled() -> Callable[[Array], Array]:
    @custom_jvp
    def value(x):
        large, near, far = _parts(x)
        return wnp.where(large, wnp.sign(x) * far, near * wnp.exp(-wnp.abs(wnp.where(large, 1, x))))

    @value.defjvp
    def rule(primals, tangents):
        x = primals[0]
        y = value(x)
        ratio = wnp.where(x == 0, 0.5, y / wnp.where(x == 0, 1, x))
        return y, tangents[0] * (_bessel_i0e(x) - y * wnp.sign(x) - ratio)

    return value


def i1e(x) -> Array:
    (x,) = floats(x)
    return narrowed(_scaled()(widened(x)), x.dtype)


def i1(x) -> Array:
    (x,) = floats(x)
    wide = widened(x)
    return narrowed(wnp.exp(wnp.abs(wide)) * _scaled()(wide), x.dtype)


def bessel_jn(z, v: int, n_iter: int) -> Array:
    """J_0 ... J_v, by the recurrence from order n_iter downwards, which is scaled by J_0 + 2 J_2 + 2 J_4 + ... = 1
    (Miller's algorithm, A & S 9.12, example 1)."""
    (z,) = floats(z)
    wide = widened(z)
    at_0 = wide == 0
    x = wnp.where(at_0, 1, wide)
    start = float(wnp.finfo(x.dtype).tiny) ** 0.5
    most = 1 / start
    last = max(n_iter, v + 1)
    kept = wnp.zeros((v + 1, *x.shape), x.dtype)

    def step(i, state):
        k = last - i  # of which the value is known; the one below is found
        above, at, total, kept = state
        below = 2 * k / x * at - above
        order = k - 1
        total = total + wnp.where(order % 2 == 0, wnp.where(order == 0, below, 2 * below), 0)
        rows = wnp.arange(v + 1).reshape((-1,) + (1,) * x.ndim)
        kept = wnp.where(rows == order, below, kept)
        # Small arguments make the numbers grow without end: all are made smaller together.
        scale = wnp.where(wnp.abs(below) > most, start, 1)
        return at * scale, below * scale, total * scale, kept * scale

    zeros = wnp.zeros_like(x)
    state = (zeros, wnp.full_like(x, start), zeros, kept)
    total, kept = fori_loop(0, last, step, state)[2:]
    first = (wnp.arange(v + 1) == 0).reshape((-1,) + (1,) * x.ndim)
    return narrowed(wnp.where(at_0, wnp.where(first, 1, 0), kept / total), z.dtype)
