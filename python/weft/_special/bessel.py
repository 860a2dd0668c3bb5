"""Modified Bessel functions of order 1, and those of the first kind of whole orders."""

from __future__ import annotations

import functools
from collections.abc import Callable

from .. import numpy as wnp
from .._weft import Array
from ..control import fori_loop
from ..custom import custom_jvp
from ..derivatives import jvp
from ..numpy._bessel import modified_bessel, scaled_modified_bessel
from ..numpy._reductions import narrowed, widened
from .arguments import floats


def i1e(x) -> Array:
    return _i1e()(*floats(x))


@functools.cache
def _i1e() -> Callable[[Array], Array]:
    """As one operation to those who look at programs: functions of sparse arrays apply it to what is not 0."""
    scaled = functools.partial(scaled_modified_bessel, 1)
    value = custom_jvp(scaled, elementwise=True)
    value.defjvp(lambda primals, tangents: jvp(scaled, primals, tangents))
    return value


def i1(x) -> Array:
    return modified_bessel(1, *floats(x))


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
