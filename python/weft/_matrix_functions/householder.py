"""Reflections that make zeros: QR and Hessenberg form as LAPACK packs them.

A reflection is I - tau v v^H, v = (1, ...), whose tail stands below the diagonal in place of the zeros.
Source: Golub and Van Loan, "Matrix computations", 5.1 and 7.4; LAPACK's larfg for complex numbers.
"""

from __future__ import annotations

from typing import Any

from .. import numpy as wnp
from .._weft import Array
from ..control import fori_loop


def reflection(x: Array, k: Any) -> tuple[Array, Array, Array]:
    """(v, tau, beta): (I - conj(tau) v v^H) x has beta in place k, zeros below, and is x above."""
    place = wnp.arange(x.shape[0])
    alpha = wnp.sum(wnp.where(place == k, x, 0))
    tail = wnp.where(place > k, x, 0)
    square = wnp.sum(wnp.abs(tail) ** 2)
    complex_ = wnp.issubdtype(x.dtype, wnp.complexfloating)
    flat = (square == 0) & (wnp.imag(alpha) == 0 if complex_ else True)
    size = wnp.sqrt(wnp.where(flat, 1, wnp.abs(alpha) ** 2 + square))
    beta = wnp.where(wnp.real(alpha) >= 0, -size, size)
    tau = wnp.where(flat, 0, (beta - alpha) / beta)
    denominator = wnp.where(flat, 1, alpha - beta)
    v = wnp.where(place == k, 1, tail / denominator).astype(x.dtype)
    return v, tau.astype(x.dtype), wnp.where(flat, alpha, beta).astype(x.dtype)


def packed_qr(a: Array) -> tuple[Array, Array]:
    """(packed, taus) of one matrix: r in the upper triangle, the tails of the reflections below."""
    m, n = a.shape
    count = min(m, n)
    if count == 0:
        return a, wnp.zeros(0, a.dtype)
    rows = wnp.arange(m)

    def step(k, state):
        a, taus = state
        column = a[:, k]
        v, tau, beta = reflection(column, k)
        a = a - wnp.conj(tau) * v[:, None] * (wnp.conj(v) @ a)[None, :]
        kept = wnp.where(rows < k, column, wnp.where(rows == k, beta, v))
        # Columns before this one hold tails already.
        before = wnp.arange(n)[None, :] < k
        a = wnp.where(before, state[0], a).at[:, k].set(kept)
        return a, taus.at[k].set(tau)

    out: tuple[Array, Array] = fori_loop(0, count, step, (a, wnp.zeros(count, a.dtype)))
    return out


def product(a: Array, taus: Array) -> Array:
    """The first columns, as many as a has, of the product of the reflections of one packed matrix."""
    m, n = a.shape
    rows = wnp.arange(m)
    count = taus.shape[0]
    if count == 0:
        return wnp.eye(m, n, dtype=a.dtype)

    def step(i, q):
        k = count - 1 - i
        v = wnp.where(rows == k, 1, wnp.where(rows > k, a[:, k], 0)).astype(a.dtype)
        return q - taus[k] * v[:, None] * (wnp.conj(v) @ q)[None, :]

    out: Array = fori_loop(0, count, step, wnp.eye(m, n, dtype=a.dtype))
    return out


def applied(a: Array, taus: Array, c: Array, adjoint: bool) -> Array:
    """The product q of the reflections of one packed matrix, or its adjoint, times c."""
    rows = wnp.arange(a.shape[0])
    count = taus.shape[0]
    if count == 0:
        return c

    def step(i, c):
        k = i if adjoint else count - 1 - i  # q is the first reflection times the others
        v = wnp.where(rows == k, 1, wnp.where(rows > k, a[:, k], 0)).astype(a.dtype)
        tau = wnp.conj(taus[k]) if adjoint else taus[k]
        return c - tau * v[:, None] * (wnp.conj(v) @ c)[None, :]

    out: Array = fori_loop(0, count, step, c)
    return out


def packed_hessenberg(a: Array) -> tuple[Array, Array]:
    """(packed, taus) of one square matrix: its Hessenberg form, the tails of the reflections below."""
    n = a.shape[0]
    count = max(n - 1, 0)
    # Of complex matrices the last element below the diagonal is made real, too.
    steps = count if wnp.issubdtype(a.dtype, wnp.complexfloating) else count - 1
    if steps < 1:
        return a, wnp.zeros(count, a.dtype)
    rows = wnp.arange(n)

    def step(k, state):
        a, taus = state
        column = a[:, k]
        v, tau, beta = reflection(column, k + 1)
        v = wnp.where(rows > k, v, 0)
        left = a - wnp.conj(tau) * v[:, None] * (wnp.conj(v) @ a)[None, :]
        both = left - tau * (left @ v)[:, None] * wnp.conj(v)[None, :]
        kept = wnp.where(rows <= k, column, wnp.where(rows == k + 1, beta, v))
        before = (wnp.arange(n)[None, :] < k) & (rows[:, None] > wnp.arange(n)[None, :] + 1)
        return wnp.where(before, a, both).at[:, k].set(kept), taus.at[k].set(tau)

    out: tuple[Array, Array] = fori_loop(0, steps, step, (a, wnp.zeros(count, a.dtype)))
    return out


def packed_tridiagonal(a: Array, lower: bool) -> tuple[Array, Array, Array, Array]:
    """(packed, diagonal, off-diagonal, taus) of one Hermitian matrix, of which one triangle is read: the tails of the
    reflections beside the off-diagonal of that triangle. The other triangle stays."""
    if not lower:  # counted from the other end
        packed, *rest = packed_tridiagonal(a[::-1, ::-1], True)
        d, e, taus = (x[::-1] for x in rest)
        return packed[::-1, ::-1], d, e, taus
    n = a.shape[0]
    rows = wnp.arange(n)
    below = wnp.tril(a, -1)
    whole = below + wnp.conj(below.T) + wnp.diag(wnp.real(wnp.diagonal(a)).astype(a.dtype))

    def step(k, state):
        a, packed, taus = state
        v, tau, beta = reflection(a[:, k], k + 1)
        v = wnp.where(rows > k, v, 0)
        left = a - wnp.conj(tau) * v[:, None] * (wnp.conj(v) @ a)[None, :]
        both = left - tau * (left @ v)[:, None] * wnp.conj(v)[None, :]
        kept = wnp.where(rows <= k, packed[:, k], wnp.where(rows == k + 1, beta, v))
        return both, packed.at[:, k].set(kept), taus.at[k].set(tau)

    count = max(n - 1, 0)
    taus = wnp.zeros(count, a.dtype)
    if count:
        whole, a, taus = fori_loop(0, count, step, (whole, a, taus))
    diagonal = wnp.real(wnp.diagonal(whole))
    a = wnp.where(wnp.eye(n, dtype=bool), wnp.diag(diagonal.astype(a.dtype)), a)
    return a, diagonal, wnp.real(wnp.diagonal(whole, -1)), taus


def hessenberg(a: Array) -> tuple[Array, Array]:
    """(h, q) of one square matrix: a = q h q^H, h zero below its first subdiagonal."""
    n = a.shape[0]
    packed, taus = packed_hessenberg(a)
    if n < 2:
        return packed, wnp.eye(n, dtype=a.dtype)
    rest = product(packed[1:, :-1], taus)
    q = wnp.zeros_like(a).at[0, 0].set(1).at[1:, 1:].set(rest)
    return wnp.triu(packed, -1), q
