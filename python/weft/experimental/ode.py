"""Ordinary differential equations, as jax.experimental.ode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._core import tree as _tree
from .._core.errors import type_error, value_error
from ..batching import vmap
from ..closure_conversion import with_captures
from ..control import scan, while_loop
from ..custom import custom_vjp
from ..derivatives import vjp
from ..flatten_util import ravel_pytree

__all__ = ["odeint"]

# Dormand and Prince's tableau of order 5 with an embedded one of order 4, and Shampine's weights of the middle of
# a step.
_NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_SOLUTION = (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0)
_ERROR = (
    35 / 384 - 1951 / 21600,
    0,
    500 / 1113 - 22642 / 50085,
    125 / 192 - 451 / 720,
    -2187 / 6784 + 12231 / 42400,
    11 / 84 - 649 / 6300,
    -1 / 60,
)
_MIDDLE = (
    6025192743 / 30085553152 / 2,
    0,
    51252292925 / 65400821598 / 2,
    -2691868925 / 45128329728 / 2,
    187940372067 / 1594534317056 / 2,
    -1776094331 / 19743644256 / 2,
    11237099 / 235043384 / 2,
)


def _sum(weights, slopes):
    """The slopes [stages, n], weighted, summed."""
    return wnp.tensordot(wnp.asarray(np.array(weights), _real(slopes.dtype)).astype(slopes.dtype), slopes, 1)


def _real(dtype):
    return wnp.finfo(dtype).dtype


def _norm(x):
    return wnp.sqrt(wnp.sum((x * wnp.conj(x)).real))


def _first_step(f, t, y, slope, rtol, atol):
    """Source: Hairer, Nørsett and Wanner, "Solving Ordinary Differential Equations I", section II.4."""
    dtype = y.dtype
    scale = (atol + wnp.abs(y) * rtol).astype(dtype)
    d0, d1 = _norm(y / scale), _norm(slope / scale)
    guess = wnp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1)
    later = f(y + guess.astype(dtype) * slope, t + guess)
    d2 = _norm((later - slope) / scale) / guess
    flat = (d1 <= 1e-15) & (d2 <= 1e-15)
    step = wnp.where(flat, wnp.maximum(1e-6, guess * 1e-3), (0.01 / wnp.maximum(d1, d2)) ** (1 / 5))
    return wnp.minimum(100.0 * guess, step)


def _one_step(f, y, slope, t, dt):
    """The next value, its slope, the error, and the coefficients of the polynomial between."""
    step = dt.astype(y.dtype)
    slopes = [slope]
    for node, weights in zip(_NODES, _STAGES):
        slopes.append(f(y + step * _sum(weights, wnp.stack(slopes)), t + dt * node))
    all_slopes = wnp.stack(slopes)
    later = step * _sum(_SOLUTION, all_slopes) + y
    error = step * _sum(_ERROR, all_slopes)
    middle = y + step * _sum(_MIDDLE, all_slopes)
    first, last = step * slope, step * slopes[-1]
    coefficients = wnp.stack(
        [
            -2 * first + 2 * last - 8 * y - 8 * later + 16 * middle,
            5 * first - 3 * last + 18 * y + 14 * later - 32 * middle,
            -4 * first + last - 11 * y - 5 * later + 16 * middle,
            first,
            y,
        ]
    )
    return later, slopes[-1], error, coefficients


def _next_size(dt, ratio):
    """From the error's share of what is allowed."""
    least = wnp.where(ratio < 1, 1.0, 0.2)
    factor = wnp.minimum(10.0, wnp.maximum(ratio ** (-1 / 5) * 0.9, least))
    return wnp.where(ratio == 0, dt * 10.0, dt * factor)


def _integrate(f, rtol, atol, mxstep, hmax, y0, ts):
    """The values [times, n] of the solution that starts at y0 [n]."""
    kind = _real(y0.dtype)

    def to_time(carry, target):
        def goes_on(state):
            i, _, _, t, dt, *_ = state
            return (t < target) & (i < mxstep) & (dt > 0)

        def body(state):
            i, y, slope, t, dt, last_t, coefficients = state
            later, later_slope, error, between = _one_step(f, y, slope, t, dt)
            allowed = atol + rtol * wnp.maximum(wnp.abs(y), wnp.abs(later))
            share = error / allowed.astype(y.dtype)
            ratio = wnp.sqrt(wnp.mean((share * wnp.conj(share)).real)).astype(dt.dtype)
            size = wnp.clip(_next_size(dt, ratio), 0.0, hmax).astype(dt.dtype)
            taken = (later, later_slope, t + dt, size, t, between)
            kept = (y, slope, t, size, last_t, coefficients)
            return (i + 1, *(wnp.where(ratio <= 1, a, b) for a, b in zip(taken, kept)))

        _, *carry = while_loop(goes_on, body, (0, *carry))
        _, _, t, _, last_t, coefficients = carry
        share = ((target - last_t) / (t - last_t)).astype(y0.dtype)
        return tuple(carry), wnp.polyval(coefficients, share)

    slope = f(y0, ts[0])
    dt = wnp.clip(_first_step(f, ts[0], y0, slope, rtol, atol), 0.0, hmax).astype(wnp.result_type(kind, ts))
    time = ts[0].astype(dt.dtype)
    flat = wnp.stack([y0] * 5)
    _, ys = scan(to_time, (y0, slope, time, dt, time, flat), ts[1:])
    return wnp.concatenate([y0[None], ys])


def _solution(f, rtol, atol, mxstep, hmax) -> Callable[..., Any]:
    """(y0, ts, *args) -> the values at ts, differentiated by integrating the adjoint equation backwards."""

    @custom_vjp
    def solve(y0, ts, *args):
        return _integrate(lambda y, t: f(y, t, *args), rtol, atol, mxstep, hmax, y0, ts)

    def forward(y0, ts, *args):
        ys = solve(y0, ts, *args)
        return ys, (ys, ts, args)

    def backward(residuals, cotangents):
        ys, ts, args = residuals

        def reversed_slopes(state, minus_t, *args):
            y, y_bar, *_ = state
            slope, pull = vjp(f, y, -minus_t, *args)
            return (-slope, *pull(y_bar))

        def piece(carry, i):
            y_bar, t_bar, args_bar = carry
            at_time = wnp.vdot(wnp.conj(f(ys[i], ts[i], *args)), cotangents[i]).real.astype(ts.dtype)
            state = (ys[i], y_bar, t_bar - at_time, args_bar)
            ends = wnp.stack([-ts[i], -ts[i - 1]])
            back = odeint(reversed_slopes, state, ends, *args, rtol=rtol, atol=atol, mxstep=mxstep, hmax=hmax)
            _, y_bar, t_bar, args_bar = _tree.map(lambda x: x[1], back)
            return (y_bar + cotangents[i - 1], t_bar, args_bar), at_time

        start = (cotangents[-1], wnp.zeros((), ts.dtype), _tree.map(wnp.zeros_like, args))
        (y_bar, t_bar, args_bar), at_times = scan(piece, start, wnp.arange(ts.shape[0] - 1, 0, -1))
        return (y_bar, wnp.concatenate([t_bar[None], at_times[::-1]]), *args_bar)

    solve.defvjp(forward, backward)
    return solve


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = float("inf"),
    hmax: float = float("inf"),
) -> Any:
    """The solution of dy/dt = func(y, t, *args), by Dormand's and Prince's method of order 5 with steps as long as the
    tolerances allow. In reverse mode the adjoint equation is integrated backwards, in memory that does not grow with
    the number of steps.

    Args:
        func: (y, t, *args) -> the derivative, a tree like y.
        y0: array, number or tree of them: y at t[0].
        t: vector of floats, ascending: where the solution is asked for.
        args: arrays, numbers and trees of them that func takes.
        rtol: the error of a step that is allowed, relatively.
        atol: the error of a step that is allowed, absolutely.
        mxstep: how many steps are allowed between two of the times.
        hmax: the length of the longest step.

    Returns: like y0, with an axis more in front: one element for each of t.

    Raises:
        TypeError: t is not of floats, or an argument is no array.
        ValueError: t is no vector.

    Source: Dormand and Prince, "A family of embedded Runge-Kutta formulae", 1980; Shampine, "Some practical Runge-Kutta
    formulas", 1986; Chen and others, "Neural ordinary differential equations", 2018.

    Example:
        >>> decay = lambda y, t, rate: -rate * y
        >>> weft.experimental.ode.odeint(decay, 1.0, wnp.array([0.0, 1.0]), 2.0).round(4)
        Array([1.    , 0.1353], dtype=float32)
    """
    for x in _tree.leaves(args):
        if not _weft.is_operand(x):
            raise type_error(
                f"odeint: args must be arrays or numbers, got {x!r} of type '{type(x).__name__}'; "
                "a function may capture what is neither"
            )
    t = wnp.asarray(t)
    if _weft.dtype_kind(t.dtype) != "float":
        raise type_error(f"odeint: t must be an array of floats, but got {t.dtype}: t.astype(float)")
    if t.ndim != 1:
        raise value_error(f"odeint: t must be a vector, got an array of shape {t.shape}")
    # Of a shorter dtype than the steps have the last of them would never be short enough.
    y0 = _tree.map(_weft.promote_inexact, y0)
    flat, tree_of = ravel_pytree(y0)
    converted, captured = with_captures(func, y0, t[0], *args)
    arguments = (*args, *captured)

    def slopes(y, time, *arguments):
        value = ravel_pytree(converted(tree_of(y), time.astype(t.dtype), *arguments))[0]
        return value.astype(y.dtype)

    ys = _solution(slopes, rtol, atol, mxstep, hmax)(flat, t, *arguments)
    return vmap(tree_of)(ys)


_docs.complete(globals(), {})
