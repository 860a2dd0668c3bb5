"""Smallest values by the method of Broyden, Fletcher, Goldfarb and Shanno."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ... import numpy as wnp
from ..._core import docs as _docs
from ..._core.errors import type_error, value_error
from ..._weft import Array
from ...control import fori_loop, while_loop
from ...derivatives import value_and_grad
from ...typing import NestedLike
from ._line_search import line_search

__all__ = ["minimize"]


class OptimizeResults(NamedTuple):
    """What minimize found.

    Attributes:
        x: the place.
        success: whether the gradient there is small enough.
        status: 0: it is; 1: steps have run out; 3 and 5: no better step was found.
        fun: the value there.
        jac: the gradient there.
        hess_inv: an estimate of the inverse of the second derivative; None where the method keeps none.
        nfev: how often the function was evaluated.
        njev: how often its gradient was.
        nit: how many steps were made.

    Example:
        >>> found = weft.scipy.optimize.minimize(lambda x: ((x - 3.0) ** 2).sum(), wnp.zeros(2), method="BFGS")
        >>> bool(found.success), found.status
        (True, Array(0, dtype=int32, weak_type=True))
    """

    x: Array
    success: Array
    status: Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: Array
    njev: Array
    nit: Array


class _State(NamedTuple):
    done: Array
    failed: Array
    steps: Array
    evaluations: Array
    x: Array
    value: Array
    gradient: Array
    before: Array
    memory: Any


def _size(gradient: Array, norm: Any) -> Array:
    return wnp.linalg.norm(gradient, norm)


def _descend(fun, x, maxiter: int, norm, gtol, line_steps: int, direction, memory, remember, finished) -> _State:
    """Steps along direction(memory, gradient), each of which remember(memory, step, change of gradient) takes in."""
    value, gradient = fun(x)

    def more(s: _State):
        return ~s.done & ~s.failed & (s.steps < maxiter)

    def step(s: _State) -> _State:
        p = direction(s.memory, s.gradient)
        found = line_search(fun, s.x, p, s.value, s.gradient, s.before, line_steps)
        moved = found.length * p
        change = found.gradient - s.gradient
        done = (_size(found.gradient, norm) < gtol) | finished(s.value, found.value, s.steps + 1)
        return _State(
            done,
            found.failed & ~done,
            s.steps + 1,
            s.evaluations + found.evaluations,
            s.x + moved,
            found.value,
            found.gradient,
            s.value,
            remember(s.memory, moved, change),
        )

    start = _State(
        _size(gradient, norm) < gtol,
        wnp.asarray(False),
        wnp.asarray(0, "int32"),
        wnp.asarray(1, "int32"),
        x,
        value,
        gradient,
        value + wnp.linalg.norm(gradient) / 2,
        memory,
    )
    out: _State = while_loop(more, step, start)
    return out


def _never(before, value, count):
    return wnp.asarray(False)


def _bfgs(fun, x, maxiter=None, norm=wnp.inf, gtol=1e-5, line_search_maxiter=10) -> OptimizeResults:
    n = x.shape[0]
    identity = wnp.eye(n, dtype=x.dtype)

    def remember(h, step, change):
        product = wnp.dot(change, step)
        inverse = 1 / product
        left = identity - inverse * step[:, None] * change[None, :]
        updated = lambda h: left @ h @ left.T + inverse * step[:, None] * step[None, :]
        new = updated(h)
        # It takes the change to the step, unless the estimate before was so much larger that rounding has lost that:
        # then it begins anew, with one as large as the step says (Nocedal and Wright, 6.20).
        lost = wnp.linalg.norm(new @ change - step) > 0.1 * wnp.linalg.norm(step)
        new = wnp.where(lost, updated(product / wnp.dot(change, change) * identity), new)
        return wnp.where(wnp.isfinite(inverse) & wnp.isfinite(wnp.sum(new)), new, h)

    direction = lambda h, gradient: -(h @ gradient)
    maxiter = n * 200 if maxiter is None else maxiter
    s = _descend(fun, x, maxiter, norm, gtol, line_search_maxiter, direction, identity, remember, _never)
    status = wnp.where(s.done, 0, wnp.where(s.steps >= maxiter, 1, wnp.where(s.failed, 3, -1)))
    return OptimizeResults(s.x, s.done, status, s.value, s.gradient, s.memory, s.evaluations, s.evaluations, s.steps)


def _lbfgs(
    fun, x, maxiter=None, norm=wnp.inf, maxcor=10, ftol=2.220446049250313e-09, gtol=1e-05, maxls=20
) -> OptimizeResults:
    n, dtype = x.shape[0], x.dtype
    # The last steps and changes of the gradient, the newest last.
    steps = (wnp.zeros((maxcor, n), dtype), wnp.zeros((maxcor, n), dtype), wnp.zeros(maxcor, dtype))

    def remember(memory, step, change):
        product = wnp.dot(change, step)
        inverse = wnp.where(product == 0, 0, 1 / wnp.where(product == 0, 1, product))
        return tuple(wnp.roll(m, -1, 0).at[-1].set(v) for m, v in zip(memory, (step, change, inverse)))

    def direction(memory, gradient):
        s, y, rho = memory

        def backwards(i, state):
            q, alpha = state
            k = maxcor - 1 - i
            a = rho[k] * wnp.dot(s[k], q)
            return q - a * y[k], alpha.at[k].set(a)

        q, alpha = fori_loop(0, maxcor, backwards, (gradient, wnp.zeros(maxcor, dtype)))
        square = wnp.dot(y[-1], y[-1])
        q = q * wnp.where(square > 0, wnp.dot(s[-1], y[-1]) / wnp.where(square > 0, square, 1), 1)
        forwards = lambda k, q: q + s[k] * (alpha[k] - rho[k] * wnp.dot(y[k], q))
        return -fori_loop(0, maxcor, forwards, q)

    def finished(before, value, count):
        size = wnp.maximum(wnp.maximum(wnp.abs(before), wnp.abs(value)), 1)
        return wnp.abs(before - value) <= ftol * size

    maxiter = n * 1000 if maxiter is None else maxiter
    s = _descend(fun, x, maxiter, norm, gtol, maxls, direction, steps, remember, finished)
    status = wnp.where(s.done, 0, wnp.where(s.steps >= maxiter, 1, wnp.where(s.failed, 5, -1)))
    return OptimizeResults(s.x, s.done, status, s.value, s.gradient, None, s.evaluations, s.evaluations, s.steps)


_METHODS: dict[str, Callable[..., OptimizeResults]] = {
    "bfgs": _bfgs,
    "l-bfgs-experimental-do-not-rely-on-this": _lbfgs,
}


def minimize(
    fun: Callable[..., Array],
    x0: NestedLike,
    args: tuple = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """The place where a function is smallest, from a place to begin.

    Args:
        fun: function (x, *args) -> number, which has a gradient.
        x0: vector to begin with; complex ones move in both of their parts, and hess_inv is of these, real ones first.
        args: more arguments of the function.
        method: "BFGS", or "l-bfgs-experimental-do-not-rely-on-this": with limited memory.
        tol: how small the gradient has to be; None: 1e-5.
        options: of "BFGS": maxiter, norm, gtol, line_search_maxiter; of the other one: maxiter, norm, maxcor, ftol,
            gtol, maxls.

    Returns: OptimizeResults.

    Raises:
        TypeError: args is no tuple.
        ValueError: there is no such method or option, or x0 is no vector of floats.

    Source: Nocedal and Wright, "Numerical optimization", 2006, algorithms 6.1 and 7.5.

    Example:
        >>> weft.scipy.optimize.minimize(lambda x: ((x - 3.0) ** 2).sum(), wnp.zeros(2), method="BFGS").x
        Array([3., 3.], dtype=float32)
    """
    if not isinstance(args, tuple):
        raise type_error(f"minimize: args must be a tuple, got {args!r}")
    solver = _METHODS.get(str(method).lower())
    if solver is None:
        raise value_error(
            f"minimize: method must be 'BFGS' or 'l-bfgs-experimental-do-not-rely-on-this', got {method!r}"
        )
    x = wnp.asarray(x0)
    if x.ndim != 1 or not wnp.issubdtype(x.dtype, wnp.inexact):
        raise value_error(f"minimize: x0 must be a vector of floats, got {x.dtype} of shape {x.shape}")
    given = dict(options or {})
    names = solver.__code__.co_varnames[2 : solver.__code__.co_argcount]
    if unknown := sorted(set(given) - set(names)):
        raise value_error(
            f"minimize: there is no option {unknown[0]!r} of {method}; its options are {', '.join(names)}"
        )
    if tol is not None:
        given.setdefault("gtol", tol)

    def objective(x):
        return fun(x, *args)

    if not wnp.issubdtype(x.dtype, wnp.complexfloating):
        return solver(value_and_grad(objective), x, **given)

    # Complex numbers are their real and imaginary parts, side by side.
    def joined(parts: Array) -> Array:
        real, imaginary = wnp.reshape(parts, (2, -1))
        return real + 1j * imaginary

    def objective_of_parts(parts: Array) -> Array:
        return objective(joined(parts))

    parts = wnp.concatenate([wnp.real(x), wnp.imag(x)])
    found = solver(value_and_grad(objective_of_parts), parts, **given)
    return found._replace(x=joined(found.x), jac=wnp.conj(joined(found.jac)))


_docs.complete(globals(), {})
