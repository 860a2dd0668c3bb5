"""The polar decomposition by an iteration that needs products and QR or Cholesky factors alone."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._weft import Array
from ..control import while_loop
from ..numpy import linalg as _linalg
from ..typing import NestedLike

__all__ = ["qdwh"]

# From this weight on the matrix of a Cholesky step is too badly conditioned.
_LARGEST_CHOLESKY_WEIGHT = 100


class _Weights(NamedTuple):
    """Of a step x (a + b x^2) / (1 + c x^2) on singular values x."""

    a: float
    b: float
    c: float


def qdwh(
    x: NestedLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[Any, Any] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """The polar decomposition x = u h by dynamically weighted Halley iterations: h is positive semidefinite, and u has
    orthonormal columns (but zeros of what x maps to 0).

    Args:
        x: matrix [m, n] of floats or complex numbers, m >= n.
        is_hermitian: accepted, without effect.
        max_iterations: the largest number of iterations, known when the program is traced; None: 10.
        eps: how small singular values count, beside the largest, when the weights are chosen; the iteration ends where
            a step moves u by no more than (5 eps)^(1/3). None: the spacing of the dtype's numbers at 1.
        dynamic_shape: the numbers of rows and columns that count, integers that may be traced; the rest of x counts as
            0. None: all.

    Returns: (u, h, iterations, converged): arrays [m, n] and [n, n], the number of iterations, and whether the last one
        moved u by little.

    Raises:
        ValueError: x is no matrix, or has more columns than rows.
        TypeError: max_iterations is no integer.

    Source: Nakatsukasa, Bai and Gygi, "Optimizing Halley's iteration for computing the matrix polar decomposition",
        2010.

    Example:
        >>> u, h, iterations, converged = weft.lax.linalg.qdwh(wnp.array([[0.0, -2.0], [3.0, 0.0]]))
        >>> wnp.round(h, 3), bool(converged)
        (Array([[3., 0.],
               [0., 2.]], dtype=float32), True)
    """
    del is_hermitian
    given = _weft.promote_inexact(wnp.asarray(x))
    known = given.ndim == 2 and all(isinstance(size, int) for size in given.shape)
    if given.ndim != 2 or (known and given.shape[0] < given.shape[1]):
        raise value_error(f"qdwh: x must be a matrix with as many rows as columns or more, got shape {given.shape}")
    try:
        most = 10 if max_iterations is None else operator.index(max_iterations)
    except TypeError:
        raise type_error(
            f"qdwh: max_iterations must be an integer that is known when the program is traced, got {max_iterations!r}"
        ) from None
    if dynamic_shape is not None:
        rows, columns = (_weft.iota((size,), 0, "int32") for size in given.shape)
        counts = (rows < dynamic_shape[0])[:, None] & (columns < dynamic_shape[1])
        given = wnp.where(counts, given, wnp.zeros((), given.dtype))
    dtype = given.dtype
    if dtype in ("float16", "bfloat16"):
        given = given.astype("float32")
    smallest = float(wnp.finfo(dtype).eps) if eps is None else float(eps)
    u, iterations, converged = _orthonormal(given, most, smallest)
    h = _adjoint(u) @ given
    h = (h + _adjoint(h)) / 2
    return u.astype(dtype), h.astype(dtype), iterations, converged


def _adjoint(x: Array) -> Array:
    return wnp.conj(x.T)


def _weights(smallest: float, most: int) -> list[_Weights]:
    """The weights of steps that bring singular values from `smallest` to 1, up to 1."""
    found: list[_Weights] = []
    least = smallest
    while least + 5 * smallest < 1 and len(found) < most:
        square = least * least
        d = (4 * (1 - square) / square**2) ** (1 / 3)
        root = (1 + d) ** 0.5
        a = root + (8 - 4 * d + 8 * (2 - square) / (square * root)) ** 0.5 / 2
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        least = least * (a + b * square) / (1 + c * square)
        found.append(_Weights(a, b, c))
    return found


def _orthonormal(x: Array, most: int, smallest: float) -> tuple[Array, Array, Array]:
    """(u, the number of iterations, whether they converged)."""
    # The factor does not depend on how large x is, so neither does its derivative.
    bound = wnp.sqrt(_linalg.norm(x, 1)) * wnp.sqrt(_linalg.norm(x, wnp.inf))
    bound = _weft.bind_elementwise("stop_gradient", (wnp.where(bound == 0, wnp.ones_like(bound), bound),), {})
    u = x / bound.astype(x.dtype)
    near = (5 * smallest) ** (1 / 3)
    moved = wnp.asarray(True)
    weights = _weights(smallest, most)
    for each in weights:
        if each.c > _LARGEST_CHOLESKY_WEIGHT:
            u = _by_qr(u, each)
        else:
            before, u = u, _by_cholesky(u, each)
            moved = _linalg.norm(u - before) > near

    def halley(state):
        k, u, _ = state
        new = _by_cholesky(u, _Weights(3, 1, 3))  # to what the weights tend
        return k + 1, new, _linalg.norm(new - u) > near

    count, u, moved = while_loop(
        lambda state: state[2] & (state[0] < most), halley, (wnp.asarray(len(weights)), u, moved)
    )
    # A step of Newton's and Schulz's gives back the digits that solving has cost.
    return 1.5 * u - 0.5 * u @ (_adjoint(u) @ u), count, ~moved


def _by_qr(u: Array, weights: _Weights) -> Array:
    """b / c u + (a - b / c) / sqrt(c) Q1 Q2^H, of the factor Q of sqrt(c) u above the identity. Rows and columns of
    zeros stay zeros."""
    a, b, c = weights
    identity = wnp.eye(u.shape[1], dtype=u.dtype)
    q = _linalg.qr(wnp.concatenate([c**0.5 * u, identity]))[0]
    upper, lower = q[: u.shape[0]], q[u.shape[0] :]
    return b / c * u + (a - b / c) / c**0.5 * (upper @ _adjoint(lower))


def _by_cholesky(u: Array, weights: _Weights) -> Array:
    """b / c u + (a - b / c) u (1 + c u^H u)^-1."""
    a, b, c = weights
    factor = _linalg.cholesky(wnp.eye(u.shape[1], dtype=u.dtype) + c * (_adjoint(u) @ u))
    half = _linalg.solve_triangular(factor, _adjoint(u), lower=True)
    return b / c * u + (a - b / c) * _adjoint(_linalg.solve_triangular(factor, half, lower=True, trans=2))


_docs.complete(globals(), {})
