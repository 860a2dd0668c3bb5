"""Functions of matrices by Schur's form."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import numpy as wnp
from .._weft import Array
from ..compiled import jit
from ..control import fori_loop
from ..custom import custom_jvp
from ..implicit import custom_linear_solve
from .batches import of_batches
from .schur import schur


def as_complex(a: Array) -> Array:
    return a.astype(wnp.promote_types(a.dtype, "complex64"))


def _adjoint(m: Array) -> Array:
    return wnp.conj(wnp.swapaxes(m, -1, -2))


def _root_of_triangle(t: Array) -> Array:
    """Björck's and Hammarling's recurrence, column by column from the diagonal upwards."""
    n = t.shape[0]
    rows = wnp.arange(n)

    def column(j, u):
        diagonal = wnp.sqrt(t[j, j])

        def up(i, x):
            k = j - 1 - i
            inner = wnp.sum(wnp.where((rows > k) & (rows < j), u[k] * x, 0))
            below, above = u[k, k] + diagonal, t[k, j] - inner
            nothing = (below == 0) & (above == 0)  # of a singular matrix
            return x.at[k].set(wnp.where(nothing, 0, above / wnp.where(nothing, 1, below)))

        x = fori_loop(0, j, up, wnp.where(rows == j, diagonal, 0).astype(t.dtype))
        return u.at[:, j].set(x)

    out: Array = fori_loop(0, n, column, wnp.zeros_like(t))
    return out


@functools.cache
def _sqrtm() -> Callable[[Array], Array]:
    @custom_jvp
    def root(a):
        t, q = schur(a)
        return q @ of_batches(_root_of_triangle, t) @ _adjoint(q)

    @root.defjvp
    def rule(primals, tangents):
        s = root(*primals)
        return s, sylvester(s, s, tangents[0])  # from s s = a

    return root


def sqrtm(a: Array) -> Array:
    return _sqrtm()(as_complex(a))


def _columns(r: Array, s: Array, f: Array) -> Array:
    """The y with r y + y s = f, for upper triangular r and s."""
    m, n = f.shape
    eye = wnp.eye(m, dtype=f.dtype)

    def step(k, y):
        right = f[:, k] - y @ wnp.where(wnp.arange(n) < k, s[:, k], 0)
        return y.at[:, k].set(wnp.linalg.solve_triangular(r + s[k, k] * eye, right, lower=False))

    out: Array = fori_loop(0, n, step, wnp.zeros_like(f))
    return out


@functools.cache
def _sylvester() -> Callable[[Array, Array, Array], Array]:
    @custom_jvp
    def solve(a, b, c):
        (r, u), (s, v) = schur(a), schur(b)
        return u @ of_batches(_columns, r, s, _adjoint(u) @ c @ v) @ _adjoint(v)

    @solve.defjvp
    def rule(primals, tangents):
        (a, b, _), (da, db, dc) = primals, tangents
        x = solve(*primals)
        return x, again(a, b, dc - da @ x - x @ db)

    def again(a, b, c):
        """The same, as what is linear in c and can be transposed."""
        turned = lambda m: wnp.swapaxes(m, -1, -2)
        return custom_linear_solve(
            lambda x: a @ x + x @ b,
            c,
            lambda _, right: solve(a, b, right),
            transpose_solve=lambda _, right: solve(turned(a), turned(b), right),
        )

    # One program outside of jitted functions, too: its digits are those inside of them, and it takes its time.
    return jit(solve)


def sylvester(a: Array, b: Array, c: Array) -> Array:
    """The x with a x + x b = c, of complex matrices."""
    return _sylvester()(a, b, c)


def function_of_triangle(t: Array, diagonal: Array) -> tuple[Array, Array]:
    """Parlett's recurrence: (f(t), the smallest difference of eigenvalues), for upper triangular t and f of its
    diagonal."""
    n = t.shape[0]
    places = wnp.arange(n)

    def step(count, state):
        f, least = state
        # The count-th element; superdiagonal by superdiagonal.
        p, i = orders[count], starts[count]
        j = i + p
        inside = (places > i) & (places < j)
        value = t[i, j] * (f[j, j] - f[i, i])
        value = value + wnp.sum(wnp.where(inside, t[i] * f[:, j] - f[i] * t[:, j], 0))
        apart = t[j, j] - t[i, i]
        value = wnp.where(apart == 0, value, value / wnp.where(apart == 0, 1, apart))
        return f.at[i, j].set(value), wnp.minimum(least, wnp.abs(apart))

    pairs = [(p, i) for p in range(1, n) for i in range(n - p)]
    f = wnp.zeros_like(t).at[places, places].set(diagonal)
    least = wnp.abs(t[0, 0])
    if not pairs:
        return f, least
    orders, starts = (wnp.asarray(column, "int32") for column in zip(*pairs))
    out: tuple[Array, Array] = fori_loop(0, len(pairs), step, (f, least))
    return out


def funm(a: Array, function: Callable[[Array], Any]) -> tuple[Array, Array]:
    """(f(a), an estimate of its relative error) of one complex matrix."""
    t, q = schur(a)
    f, least = function_of_triangle(t, wnp.asarray(function(wnp.diagonal(t))).astype(t.dtype))
    eps = float(wnp.finfo(t.dtype).eps)
    least = wnp.where(least == 0, eps, least)
    size = wnp.max(wnp.sum(wnp.abs(wnp.triu(t, 1)), 0))
    return q @ f @ _adjoint(q), wnp.minimum(1, wnp.maximum(eps, eps / least * size))
