"""Schur's form by shifted QR steps.

Source: Golub and Van Loan, "Matrix computations", 7.5: Wilkinson's shift for complex matrices, Francis's double step
for real ones.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import numpy as wnp
from .._core.errors import not_implemented
from .._weft import Array
from ..control import cond, fori_loop, while_loop
from ..custom import custom_jvp
from .batches import of_batches
from .householder import hessenberg

_SWEEPS = 30  # for each eigenvalue, as in LAPACK


def _deflated(h: Array, hi: Array) -> tuple[Array, Array]:
    """The matrix with the negligible elements below the diagonal made 0, and where the block that ends at hi begins."""
    n = h.shape[0]
    below = wnp.abs(wnp.diagonal(h, -1))
    size = wnp.abs(wnp.diagonal(h))
    around = size[1:] + size[:-1]
    around = wnp.where(around == 0, wnp.max(wnp.abs(h)), around)
    small = below <= wnp.finfo(h.dtype).eps * around
    places = wnp.arange(1, n)
    negligible = small[:, None] & (wnp.arange(n)[None, :] == places[:, None] - 1)
    # The first row has nothing below the diagonal.
    h = wnp.concatenate([h[:1], wnp.where(negligible, 0, h[1:])])
    return h, wnp.max(wnp.where(small & (places <= hi), places, 0))


def _rotated(m: Array, k: Any, rotation: Array, left: bool) -> Array:
    """A matrix whose rows (or columns) from k on, as many as the rotation has, are turned."""
    index = k + wnp.arange(rotation.shape[0])
    if left:
        return m.at[index].set(rotation @ m[index])
    return m.at[:, index].set(m[:, index] @ wnp.conj(rotation.T))


def _givens(a: Array, b: Array) -> Array:
    """The rotation that turns (a, b) to (r, 0)."""
    size = wnp.sqrt(wnp.abs(a) ** 2 + wnp.abs(b) ** 2)
    zero = size == 0
    safe = wnp.where(zero, 1, size)
    c, s = wnp.where(zero, 1, wnp.conj(a) / safe), wnp.where(zero, 0, wnp.conj(b) / safe)
    return wnp.stack([wnp.stack([c, s]), wnp.stack([-wnp.conj(s), wnp.conj(c)])])


def _at(h: Array, i: Any, j: Any) -> Array:
    return h[i, j]


def _loop(h: Array, q: Array, sweep: Callable[..., tuple[Array, Array]], finish: Callable[..., tuple]) -> tuple:
    """Sweeps over the block at the end until all is deflated. finish(h, q, lo, hi) -> (h, q, how many are done)."""
    n = h.shape[0]

    def more(state):
        return (state[2] > 0) & (state[3] < _SWEEPS * n)

    def step(state):
        h, q, hi, total, since = state
        h, lo = _deflated(h, hi)
        h, q, done = finish(h, q, lo, hi)
        go = done == 0
        h, q = cond(go, lambda h, q: sweep(h, q, lo, hi, since), lambda h, q: (h, q), h, q)
        return h, q, hi - done, total + go, wnp.where(go, since + 1, 0)

    zero = wnp.asarray(0, "int32")
    start = (h, q, wnp.asarray(n - 1, "int32"), zero, zero)
    h, q, hi, *_ = while_loop(more, step, start)
    failed = hi > 0
    return wnp.where(failed, float("nan"), h), wnp.where(failed, float("nan"), q)


def _complex(a: Array) -> tuple[Array, Array]:
    h, q = hessenberg(a)
    n = a.shape[0]
    if n < 2:
        return h, q

    def sweep(h, q, lo, hi, since):
        a, b, c, d = _at(h, hi - 1, hi - 1), _at(h, hi - 1, hi), _at(h, hi, hi - 1), _at(h, hi, hi)
        half = (a - d) / 2
        root = wnp.sqrt(half * half + b * c)
        root = wnp.where(wnp.real(wnp.conj(half) * root) < 0, -root, root)
        divisor = half + root
        shift = d - wnp.where(divisor == 0, 0, b * c / wnp.where(divisor == 0, 1, divisor))
        # What goes round in circles is pushed out of them.
        shift = wnp.where((since > 0) & (since % 10 == 0), d + wnp.abs(c), shift)
        first = _givens(_at(h, lo, lo) - shift, _at(h, lo + 1, lo))

        def chase(k, state):
            h, q = state
            g = wnp.where(k == lo, first, _givens(_at(h, k, k - 1), _at(h, k + 1, k - 1)))
            h = _rotated(_rotated(h, k, g, True), k, g, False)
            h = wnp.where((k > lo) & _only(n, k + 1, k - 1), 0, h)
            return h, _rotated(q, k, g, False)

        return fori_loop(lo, hi, chase, (h, q))

    def finish(h, q, lo, hi):
        return h, q, (lo == hi).astype("int32")

    t, q = _loop(h, q, sweep, finish)
    return wnp.triu(t), q


def _only(n: int, i: Any, j: Any) -> Array:
    return (wnp.arange(n)[:, None] == i) & (wnp.arange(n)[None, :] == j)


def _reflector(v: Array) -> Array:
    """The reflection that turns a vector to (r, 0, ...)."""
    size = wnp.sqrt(wnp.sum(v * v))
    u = v.at[0].add(wnp.where(v[0] >= 0, size, -size))
    square = wnp.sum(u * u)
    safe = wnp.where(square == 0, 1, square)
    return wnp.eye(v.shape[0], dtype=v.dtype) - wnp.where(square == 0, 0, 2 / safe) * u[:, None] * u[None, :]


def _standard_rotation(a: Array, b: Array, c: Array, d: Array) -> Array:
    """The rotation that makes a real 2 x 2 block triangular, or its diagonal equal where eigenvalues are not real."""
    p = (a - d) / 2
    discriminant = p * p + b * c
    real = discriminant >= 0
    # An eigenvector (x, y) to the eigenvalue that is found without cancellation.
    z = p + wnp.where(p >= 0, 1, -1) * wnp.sqrt(wnp.where(real, discriminant, 0))
    x, y = z, c
    # Equal diagonal: half the angle whose tangent is (d - a) / (b + c).
    sigma = b + c
    tau = wnp.hypot(sigma, a - d)
    safe = wnp.where(tau == 0, 1, tau)
    cosine = wnp.sqrt((1 + wnp.abs(sigma) / safe) / 2)
    sine = -(p / (safe * cosine)) * wnp.where(sigma >= 0, 1, -1)
    size = wnp.hypot(x, y)
    by = wnp.where(size == 0, 1, size)
    co = wnp.where(real, wnp.where(size == 0, 1, x / by), wnp.where(tau == 0, 1, cosine))
    si = wnp.where(real, wnp.where(size == 0, 0, y / by), wnp.where(tau == 0, 0, sine))
    return wnp.stack([wnp.stack([co, si]), wnp.stack([-si, co])])


def _real(a: Array) -> tuple[Array, Array]:
    h, q = hessenberg(a)
    n = a.shape[0]
    if n < 2:
        return h, q

    def sweep(h, q, lo, hi, since):
        a, b, c, d = _at(h, hi - 1, hi - 1), _at(h, hi - 1, hi), _at(h, hi, hi - 1), _at(h, hi, hi)
        s, t = a + d, a * d - b * c
        odd = (since > 0) & (since % 10 == 0)
        push = wnp.abs(c) + wnp.abs(_at(h, hi - 1, hi - 2))
        s, t = wnp.where(odd, 1.5 * push, s), wnp.where(odd, push * push, t)
        e, f, g = _at(h, lo, lo), _at(h, lo, lo + 1), _at(h, lo + 1, lo)
        x = e * e + f * g - s * e + t
        y = g * (e + _at(h, lo + 1, lo + 1) - s)
        z = g * _at(h, lo + 2, lo + 1)

        def chase(k, state):
            h, q = state
            inner = wnp.stack([_at(h, k, k - 1), _at(h, k + 1, k - 1), _at(h, k + 2, k - 1)])
            r = _reflector(wnp.where(k == lo, wnp.stack([x, y, z]), inner))
            h = _rotated(_rotated(h, k, r, True), k, r, False)
            h = wnp.where((k > lo) & (_only(n, k + 1, k - 1) | _only(n, k + 2, k - 1)), 0, h)
            return h, _rotated(q, k, r, False)

        h, q = fori_loop(lo, hi - 1, chase, (h, q)) if n > 2 else (h, q)
        r = _reflector(wnp.stack([_at(h, hi - 1, hi - 2), _at(h, hi, hi - 2)]))
        h = _rotated(_rotated(h, hi - 1, r, True), hi - 1, r, False)
        return wnp.where(_only(n, hi, hi - 2), 0, h), _rotated(q, hi - 1, r, False)

    def finish(h, q, lo, hi):
        two = lo == hi - 1
        k = wnp.maximum(hi - 1, 0)
        r = _standard_rotation(_at(h, k, k), _at(h, k, k + 1), _at(h, k + 1, k), _at(h, k + 1, k + 1))
        r = wnp.where(two, r, wnp.eye(2, dtype=h.dtype))
        h = _rotated(_rotated(h, k, r, True), k, r, False)
        # A block with real eigenvalues is triangular now.
        size = wnp.abs(_at(h, k, k)) + wnp.abs(_at(h, k + 1, k + 1))
        low = wnp.abs(_at(h, k + 1, k)) <= 8 * wnp.finfo(h.dtype).eps * wnp.maximum(size, wnp.abs(_at(h, k, k + 1)))
        h = wnp.where(two & low & _only(n, k + 1, k), 0, h)
        return h, _rotated(q, k, r, False), wnp.where(lo == hi, 1, wnp.where(two, 2, 0)).astype("int32")

    t, q = _loop(h, q, sweep, finish)
    return wnp.triu(t, -1), q


@functools.cache
def _underivable(complex_: bool) -> Callable[[Array], Any]:
    function = custom_jvp(lambda a: of_batches(_complex if complex_ else _real, a))

    @function.defjvp
    def rule(primals, tangents):
        raise not_implemented("schur: it has no derivative; differentiate what is made of it, such as sqrtm or funm")

    return function


def schur(a: Array) -> tuple[Array, Array]:
    """(t, q) of matrices: a = q t q^H, t triangular, of real ones but for 2 x 2 blocks along the diagonal."""
    out: tuple[Array, Array] = _underivable(wnp.issubdtype(a.dtype, wnp.complexfloating))(a)
    return out


def complex_of_real(t: Array, q: Array) -> tuple[Array, Array]:
    """The complex Schur form from the real one: each 2 x 2 block is made triangular. What stands below the blocks is
    left alone."""
    n = t.shape[0]
    if n < 2:
        return t, q

    def step(i, state):
        t, q = state
        k = n - 1 - i
        a, b, c, d = _at(t, k - 1, k - 1), _at(t, k - 1, k), _at(t, k, k - 1), _at(t, k, k)
        keep = wnp.abs(c) <= wnp.finfo(t.dtype).eps * (wnp.abs(a) + wnp.abs(d))
        p = (a - d) / 2
        root = wnp.sqrt(p * p + b * c)
        root = wnp.where(wnp.real(wnp.conj(p) * root) < 0, -root, root)
        mu = p + root  # an eigenvalue less d
        size = wnp.sqrt(wnp.abs(mu) ** 2 + wnp.abs(c) ** 2)
        size = wnp.where(size == 0, 1, size)
        co, si = mu / size, c / size
        g = wnp.stack([wnp.stack([wnp.conj(co), si]), wnp.stack([-si, co])])
        g = wnp.where(keep, wnp.eye(2, dtype=t.dtype), g)
        t = wnp.where(places[None, :] >= k - 1, _rotated(t, k - 1, g, True), t)
        t = wnp.where(places[:, None] <= k, _rotated(t, k - 1, g, False), t)
        return wnp.where(_only(n, k, k - 1), 0, t), _rotated(q, k - 1, g, False)

    places = wnp.arange(n)
    out: tuple[Array, Array] = fori_loop(0, n - 1, step, (t, q))
    return out
