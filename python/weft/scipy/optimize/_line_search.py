"""A step along a line that satisfies Wolfe's conditions.

Source: Nocedal and Wright, "Numerical optimization", 2006, algorithms 3.5 and 3.6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ... import numpy as wnp
from ..._weft import Array
from ...control import cond, while_loop

_SUFFICIENT, _CURVATURE = 1e-4, 0.9


class Step(NamedTuple):
    """What a search found: the step, the value and gradient there, whether it is good, and evaluations."""

    length: Array
    value: Array
    gradient: Array
    failed: Array
    evaluations: Array


class _State(NamedTuple):
    done: Array
    failed: Array
    tries: Array
    # The last step tried, and the end of the interval that is better.
    a: Array
    value: Array
    slope: Array
    low: Array
    low_value: Array
    low_slope: Array
    high: Array
    high_value: Array
    evaluations: Array
    found: Array
    found_value: Array
    found_gradient: Array
    zooming: Array


def _cubic(a, fa, da, b, fb, c, fc):
    """The place of the least value of the cubic through three values and a slope."""
    db, dc = b - a, c - a
    scale = (db * dc) ** 2 * (db - dc)
    first, second = fb - fa - da * db, fc - fa - da * dc
    p = (dc**2 * first - db**2 * second) / scale
    q = (-(dc**3) * first + db**3 * second) / scale
    return a + (-q + wnp.sqrt(q * q - 3 * p * da)) / (3 * p)


def _quadratic(a, fa, da, b, fb):
    d = b - a
    return a - da * d * d / (2 * (fb - fa - da * d))


def line_search(
    fun: Callable[[Array], tuple[Array, Array]],
    x: Array,
    direction: Array,
    value: Array,
    gradient: Array,
    before: Array,
    most: int,
) -> Step:
    """A step from x in a direction in which fun(x) -> (value, gradient) falls.

    Args:
        before: the value before the last step, for a first guess.
        most: how many steps of each kind are tried.
    """
    slope = wnp.vdot(wnp.conj(gradient), direction)
    along = lambda a: fun(x + a * direction)

    def tried(a):
        f, g = along(a)
        return f, g, wnp.vdot(wnp.conj(g), direction)

    guess = 1.01 * 2 * (value - before) / slope
    first = wnp.where((guess > 0) & (guess <= 1), guess, 1).astype(x.dtype)
    enough = lambda a, f: f <= value + _SUFFICIENT * a * slope
    flat = lambda s: wnp.abs(s) <= -_CURVATURE * slope
    no, zero = wnp.asarray(False), wnp.zeros((), x.dtype)

    def more(s: _State):
        return ~s.done & ~s.failed

    def keep(s: _State, condition, a, f, g) -> _State:
        return s._replace(
            done=s.done | condition,
            found=wnp.where(condition, a, s.found),
            found_value=wnp.where(condition, f, s.found_value),
            found_gradient=wnp.where(condition, g, s.found_gradient),
        )

    def widen(s: _State) -> _State:
        f, g, d = tried(s.a)
        bad = ~enough(s.a, f) | ((f >= s.value) & (s.tries > 0))
        good = ~bad & flat(d)
        turned = ~bad & ~good & (d >= 0)
        zoom = bad | turned
        # Between the step before and this one: the better is low.
        new = s._replace(
            tries=wnp.where(zoom, 0, s.tries + 1),
            evaluations=s.evaluations + 1,
            zooming=zoom,
            low=wnp.where(bad, s.low, s.a),
            low_value=wnp.where(bad, s.value, f),
            low_slope=wnp.where(bad, s.slope, d),
            high=wnp.where(bad, s.a, s.low),
            high_value=wnp.where(bad, f, s.value),
            value=f,
            slope=d,
            a=wnp.where(zoom, s.a, 2 * s.a),
            failed=~good & ~zoom & (s.tries + 1 >= most),
        )
        # While it widens, `low` is the step before.
        return keep(new, good, s.a, f, g)

    def narrow(s: _State) -> _State:
        width = wnp.abs(s.high - s.low)
        least, largest = wnp.minimum(s.low, s.high), wnp.maximum(s.low, s.high)
        by_cubic = _cubic(s.low, s.low_value, s.low_slope, s.high, s.high_value, s.a, s.value)
        usable = (s.tries > 0) & (by_cubic > least + 0.2 * width) & (by_cubic < largest - 0.2 * width)
        by_square = _quadratic(s.low, s.low_value, s.low_slope, s.high, s.high_value)
        square = (by_square > least + 0.1 * width) & (by_square < largest - 0.1 * width)
        middle = (s.low + s.high) / 2
        a = wnp.where(usable, by_cubic, wnp.where(square, by_square, middle))
        f, g, d = tried(a)
        bad = ~enough(a, f) | (f >= s.low_value)
        good = ~bad & flat(d)
        swap = ~bad & (d * (s.high - s.low) >= 0)
        new = s._replace(
            tries=s.tries + 1,
            evaluations=s.evaluations + 1,
            a=wnp.where(bad, s.high, s.low),
            value=wnp.where(bad, s.high_value, s.low_value),
            high=wnp.where(bad, a, wnp.where(swap, s.low, s.high)),
            high_value=wnp.where(bad, f, wnp.where(swap, s.low_value, s.high_value)),
            low=wnp.where(bad, s.low, a),
            low_value=wnp.where(bad, s.low_value, f),
            low_slope=wnp.where(bad, s.low_slope, d),
            failed=~good & ((s.tries + 1 >= most) | (width == 0)),
        )
        # The best so far is what a search that fails ends with.
        best = ~bad
        new = new._replace(
            found=wnp.where(best, a, s.found),
            found_value=wnp.where(best, f, s.found_value),
            found_gradient=wnp.where(best, g, s.found_gradient),
        )
        return keep(new, good, a, f, g)

    start = _State(
        no, no, wnp.asarray(0, "int32"), first, value, slope, zero, value, slope, zero, value,
        wnp.asarray(0, "int32"), zero, value, gradient, no,
    )  # fmt: skip
    end: Any = while_loop(more, lambda s: cond(s.zooming, narrow, widen, s), start)
    return Step(end.found, end.found_value, end.found_gradient, end.failed, end.evaluations)
