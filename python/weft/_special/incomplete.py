"""The incomplete gamma and beta functions. Their derivatives by the parameters are those of the series and continued
fractions that compute them, run as long as the values themselves need."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from .. import _weft
from .. import numpy as wnp
from .._weft import Array
from ..control import while_loop
from ..custom import custom_jvp
from ..derivatives import jvp
from ..numpy._reductions import narrowed, widened
from ..symbolic_zeros import SymbolicZero
from .arguments import floats

_STEPS = 2000
# For derivatives by parameters: a fraction ends at once where a parameter is an integer, its derivative does not.
_STEPS_OF_DERIVATIVES = 200


def lgamma(x: Array) -> Array:
    out: Array = _weft.bind_elementwise("lgamma", (x,), {})
    return out


def stirling_rest(x: Array) -> Array:
    """gammaln(x) less Stirling's formula, for x >= 8 (Abramowitz & Stegun 6.1.41)."""
    terms = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400]
    square: Array = 1 / (x * x)
    total: Array | float = 0.0
    for term in reversed(terms):
        total = total * square + term
    return total / x


def _log1p_less_argument(m: Array) -> Array:
    """log(1 + m) - m, of small m without cancellation."""
    near = wnp.abs(m) < 0.4
    inside = wnp.where(near, m, 0)
    r = inside / (2 + inside)  # log(1 + m) is 2 artanh(r)
    square, series = r * r, 0.0
    for k in range(33, 1, -2):
        series = series * square + 1 / k
    outside = wnp.where(near, 1, m)
    return wnp.where(near, 2 * r * square * series - inside * r, wnp.log1p(outside) - outside)


def _power_of_e(a: Array, x: Array) -> Array:
    """x^a e^-x / gamma(a + 1); for large a by Stirling's formula, whose large parts are subtracted by hand."""
    far = a >= 8
    large, small = wnp.where(far, a, 8), wnp.where(far, 1, a)
    y = wnp.where(far, x, 8)
    apart = large * _log1p_less_argument((y - large) / large) - stirling_rest(large)
    return wnp.where(
        far,
        wnp.exp(apart) / wnp.sqrt(2 * math.pi * large),
        wnp.exp(small * wnp.log(x) - x - lgamma(small + 1)),
    )


def _until(step: Callable[..., Any], start: tuple, enough: Callable[..., Array], least: int = 0) -> Any:
    """The state after as many steps as all elements need, at least `least` and no more than _STEPS: step(n, *state) ->
    state."""

    def more(state):
        return (state[0] <= least) | (state[0] < _STEPS) & ~wnp.all(enough(*state[1:]))

    return while_loop(more, lambda state: (state[0] + 1, *step(*state)), (wnp.asarray(1, "int32"), *start))[1:]


def _gamma_parts(a: Array, x: Array, least: int = 0) -> tuple[Array, Array]:
    """P(a, x) and Q(a, x) for finite a, x > 0, each without cancellation on its side."""
    eps = float(wnp.finfo(x.dtype).eps)
    near = x < a + 1
    # P = x^a e^-x / gamma(a + 1) (1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ...): A & S 6.5.29.
    b, y = wnp.where(near, a, 1), wnp.where(near, x, 0.5)

    def add(n, term, total):
        term = term * y / (b + n)
        return term, total + term

    one = wnp.ones_like(x)
    series = _until(add, (one, one), lambda term, total: term <= 0.1 * eps * total, least)[1]
    # Q = x^a e^-x / gamma(a) / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...)): A & S 6.5.31, by Lentz's method.
    c, z = wnp.where(near, 1, a), wnp.where(near, 3, x)
    start = z + 1 - c

    def divide(n, above, below, value, change):
        factor = n * (c - n)
        partial = start + 2 * n
        below = 1 / (factor * below + partial)
        above = partial + factor / above
        change = above * below
        return above, below, value * change, change

    far = 1 / start
    state = (wnp.full_like(start, 1 / float(wnp.finfo(x.dtype).tiny) ** 0.5), far, far, wnp.zeros_like(far))
    fraction = _until(divide, state, lambda above, below, value, change: wnp.abs(change - 1) <= eps, least)[2]
    p, q = _power_of_e(b, y) * series, _power_of_e(c, z) * c * fraction
    return wnp.where(near, p, 1 - q), wnp.where(near, 1 - p, q)


@functools.cache
def _incomplete_gamma(upper: bool) -> Callable[[Array, Array], Array]:
    def parts(a, x, least=0):
        ordinary = (a > 0) & (x > 0) & (a < math.inf) & (x < math.inf)
        value = _gamma_parts(wnp.where(ordinary, a, 1), wnp.where(ordinary, x, 1), least)[int(upper)]
        lower_end, upper_end = (1.0, 0.0) if upper else (0.0, 1.0)
        ends = wnp.where(x == 0, lower_end, wnp.where((x == math.inf) | (a == 0), upper_end, lower_end))
        inside = ((a > 0) & (x >= 0)) | ((a == 0) & (x > 0))
        outside = ~inside | ((a == math.inf) & (x == math.inf))
        return wnp.where(ordinary, value, wnp.where(outside, math.nan, ends))

    value = custom_jvp(lambda a, x: parts(a, x), elementwise=True)

    @functools.partial(value.defjvp, symbolic_zeros=True)
    def rule(primals, tangents):
        (a, x), (da, dx) = primals, tangents
        inside = (x > 0) & (x < math.inf)
        y = wnp.where(inside, x, 1)
        density = wnp.where(inside, _power_of_e(a, y) * a / y, wnp.where(x == 0, _at_0(a), 0))
        by_a = jvp(lambda a: parts(a, y, _STEPS_OF_DERIVATIVES), (a,), (wnp.ones_like(a),))[1]
        outside = wnp.where((a > 0) & (x >= 0), 0, math.nan)
        moved = _times(wnp.where(inside, by_a, 0) + outside, da)
        return value(a, x), moved + _times((-density if upper else density) + outside, dx)

    return value


def _times(slope: Array, tangent: Any) -> Any:
    """Nothing where the argument stays: slopes may be infinite."""
    return wnp.zeros_like(slope) if isinstance(tangent, SymbolicZero) else slope * tangent


def _at_0(a: Array) -> Array:
    return wnp.where(a < 1, math.inf, wnp.where(a == 1, 1.0, 0.0))


def _of_floats(function: Callable[..., Array], *xs) -> Array:
    xs = floats(*xs)
    dtype = xs[0].dtype
    return narrowed(function(*(widened(x) for x in wnp.broadcast_arrays(*xs))), dtype)


def igamma(a, x) -> Array:
    return _of_floats(_incomplete_gamma(False), a, x)


def igammac(a, x) -> Array:
    return _of_floats(_incomplete_gamma(True), a, x)


def igamma_grad_a(a, x) -> Array:
    def slope(a, x):
        return jvp(lambda a: _incomplete_gamma(False)(a, x), (a,), (wnp.ones_like(a),))[1]

    return _of_floats(slope, a, x)


def random_gamma_grad(a, sample) -> Array:
    """How a gamma number moves with its parameter while its probability P(a, x) stays."""

    def slope(a, x):
        return -igamma_grad_a(a, x) * x / (_power_of_e(a, x) * a)

    return _of_floats(slope, a, sample)


def _log_beta(a: Array, b: Array) -> Array:
    """betaln; of large numbers by Stirling's formulas, divided by hand."""
    a, b = wnp.minimum(a, b), wnp.maximum(a, b)
    far, both = b >= 8, a >= 8
    y = wnp.where(far, b, 8)
    small, large = wnp.where(both, 1, a), wnp.where(both, a, 8)
    x = wnp.where(both, large, small)
    of_large = stirling_rest(y) - stirling_rest(x + y)
    apart = lgamma(small) + of_large + small - (y - 0.5) * wnp.log1p(small / y) - small * wnp.log(small + y)
    ratio = large / y
    together = (
        0.5 * math.log(2 * math.pi)
        - 0.5 * wnp.log(y)
        + stirling_rest(large)
        + of_large
        + (large - 0.5) * wnp.log(ratio / (1 + ratio))
        - y * wnp.log1p(ratio)
    )
    p, q = wnp.where(far, 1, a), wnp.where(far, 1, b)
    return wnp.where(far, wnp.where(both, together, apart), lgamma(p) + lgamma(q) - lgamma(p + q))


def _beta_fraction(a: Array, b: Array, x: Array, least: int = 0) -> Array:
    """I_x(a, b) for x below about (a + 1) / (a + b + 2): A & S 26.5.8, by Lentz's method, two terms a step."""
    eps, most = float(wnp.finfo(x.dtype).eps), 1 / float(wnp.finfo(x.dtype).tiny) ** 0.5

    def lentz(factor, above, below, value):
        below = 1 + factor * below
        below = 1 / wnp.where(below == 0, 1 / most, below)
        above = 1 + factor / above
        above = wnp.where(above == 0, 1 / most, above)
        return above, below, value * above * below, above * below

    def step(n, above, below, value, _):
        even = n * (b - n) * x / ((a + 2 * n - 1) * (a + 2 * n))
        above, below, value, _ = lentz(even, above, below, value)
        odd = -(a + n) * (a + b + n) * x / ((a + 2 * n) * (a + 2 * n + 1))
        return lentz(odd, above, below, value)

    first = 1 / (1 - (a + b) * x / (a + 1))
    state = (wnp.ones_like(x), first, first, wnp.zeros_like(x))
    value = _until(step, state, lambda above, below, value, change: wnp.abs(change - 1) <= eps, least)[2]
    return wnp.exp(a * wnp.log(x) + b * wnp.log1p(-x) - _log_beta(a, b)) / a * value


@functools.cache
def _incomplete_beta() -> Callable[[Array, Array, Array], Array]:
    def of(a, b, x, least=0):
        inside = (a > 0) & (b > 0) & (a < math.inf) & (b < math.inf) & (x > 0) & (x < 1)
        a1, b1, x1 = (wnp.where(inside, v, 0.5) for v in (a, b, x))
        swapped = x1 > (a1 + 1) / (a1 + b1 + 2)
        p, q, y = wnp.where(swapped, b1, a1), wnp.where(swapped, a1, b1), wnp.where(swapped, 1 - x1, x1)
        value = _beta_fraction(p, q, y, least)
        # All of the distribution is at 0, or at 1, where one parameter alone is 0 or infinite.
        left, right = (a == 0) | (b == math.inf), (b == 0) | (a == math.inf)
        both = ((a == 0) & (b == 0)) | ((a == math.inf) & (b == math.inf))
        known = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1) & ~both
        within = wnp.where(left, 1.0, wnp.where(right, 0.0, math.nan))
        ends = wnp.where(known, wnp.where(x == 0, 0.0, wnp.where(x == 1, 1.0, within)), math.nan)
        return wnp.where(inside, wnp.where(swapped, 1 - value, value), ends)

    value = custom_jvp(lambda a, b, x: of(a, b, x), elementwise=True)

    @functools.partial(value.defjvp, symbolic_zeros=True)
    def rule(primals, tangents):
        (a, b, x), (da, db, dx) = primals, tangents
        inside = (x > 0) & (x < 1)
        y = wnp.where(inside, x, 0.5)
        density = wnp.exp((a - 1) * wnp.log(y) + (b - 1) * wnp.log1p(-y) - _log_beta(a, b))
        ends = wnp.where(x == 0, _at_0(a) * b, _at_0(b) * a)
        density = wnp.where(inside, density, ends)
        by_a = jvp(lambda a: of(a, b, y, _STEPS_OF_DERIVATIVES), (a,), (wnp.ones_like(a),))[1]
        by_b = jvp(lambda b: of(a, b, y, _STEPS_OF_DERIVATIVES), (b,), (wnp.ones_like(b),))[1]
        outside = wnp.where((a > 0) & (b > 0) & (x >= 0) & (x <= 1), 0, math.nan)
        by_a, by_b = (wnp.where(inside, v, 0) + outside for v in (by_a, by_b))
        return value(a, b, x), _times(by_a, da) + _times(by_b, db) + _times(density + outside, dx)

    return value


def betainc(a, b, x) -> Array:
    return _of_floats(_incomplete_beta(), a, b, x)
