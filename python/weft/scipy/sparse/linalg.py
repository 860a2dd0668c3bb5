"""Solutions of linear systems by Krylov subspaces. Vectors are trees of arrays; a matrix is an array or a function."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from ... import numpy as wnp
from ... import tree
from ..._core import docs as _docs
from ..._core.errors import type_error, value_error
from ..._core.tree import jax_semantics
from ..._weft import Array
from ...control import fori_loop, while_loop
from ...flatten_util import ravel_pytree
from ...implicit import custom_linear_solve
from ...typing import NestedLike

__all__ = ["bicgstab", "cg", "gmres"]

Matrix = NestedLike | Callable[[Any], Any]


def _product(a, name: str) -> Callable[[Any], Any]:
    if callable(a):
        product: Callable[[Any], Any] = a
        return product
    if not isinstance(a, wnp.ndarray) and hasattr(a, "__matmul__") and not hasattr(a, "__array__"):
        return functools.partial(operator.matmul, a)  # an operator of one's own
    if isinstance(a, (list, tuple)) and jax_semantics():
        raise type_error(f"{name}: linear operator must be either a function or ndarray, got a {type(a).__name__}")
    matrix = wnp.asarray(a)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise value_error(f"{name}: a matrix must be square, got shape {matrix.shape}")
    return lambda x: matrix @ x


def _add(x, y, factor: Any = 1.0):
    return tree.map(lambda a, b: a + factor * b, x, y)


def _dot(x, y) -> Array:
    """The sum of conj(x) y."""
    total: Any = 0.0
    for a, b in zip(tree.leaves(x), tree.leaves(y)):
        total = total + wnp.sum(wnp.conj(a) * b)
    return wnp.asarray(total)


def _square(x) -> Array:
    return wnp.real(_dot(x, x))


def _tolerance(b, tol: Any, atol: Any) -> Array:
    return wnp.maximum(wnp.square(tol) * _square(b), wnp.square(atol))


def _cg(product, b, x0, maxiter, tol, atol, precondition):
    """Hestenes' and Stiefel's method."""
    end = _tolerance(b, tol, atol)

    def more(state):
        k, _, r, gamma, _ = state
        return ((_square(r) if precondition is not _same else wnp.real(gamma)) > end) & (k < maxiter)

    def step(state):
        k, x, r, gamma, p = state
        q = product(p)
        alpha = gamma / _dot(p, q).astype(gamma.dtype)
        x, r = _add(x, p, alpha), _add(r, q, -alpha)
        z = precondition(r)
        new = _dot(r, z).astype(gamma.dtype)
        return k + 1, x, r, new, _add(z, p, new / gamma)

    r = _add(b, product(x0), -1)
    z = precondition(r)
    return while_loop(more, step, (wnp.asarray(0, "int32"), x0, r, _dot(r, z), z))[1]


def _bicgstab(product, b, x0, maxiter, tol, atol, precondition):
    """van der Vorst's method."""
    end = _tolerance(b, tol, atol)

    def more(state):
        k, _, r, *_ = state
        return (_square(r) > end) & (k < maxiter) & (k >= 0)

    def step(state):
        k, x, r, first, alpha, omega, rho, p, q = state
        new = _dot(first, r)
        beta = new / rho * alpha / omega
        p = _add(r, _add(p, q, -omega), beta)
        turned = precondition(p)
        q = product(turned)
        alpha = new / _dot(first, q)
        s = _add(r, q, -alpha)
        early = _square(s) < end
        turned_s = precondition(s)
        t = product(turned_s)
        omega = _dot(t, s) / _dot(t, t)
        choose = lambda a, b: tree.map(lambda u, v: wnp.where(early, u, v), a, b)
        half = _add(x, turned, alpha)
        x = choose(half, _add(half, turned_s, omega))
        r = choose(s, _add(s, t, -omega))
        # Without a direction left it ends with what there is.
        broken = (omega == 0) | (alpha == 0)
        return wnp.where(broken, -11, k + 1), x, r, first, alpha, omega, new, p, q

    r = _add(b, product(x0), -1)
    one = wnp.ones((), _dot(b, b).dtype)
    return while_loop(more, step, (wnp.asarray(0, "int32"), x0, r, r, one, one, one, r, r))[1]


def _same(x):
    return x


def _gmres(product, b, x0, maxiter, tol, atol, precondition, restart):
    """Saad's and Schultz's method on the tree as one vector."""
    flat_b, back = ravel_pytree(b)
    n = flat_b.shape[0]
    m = min(restart, n)
    apply = lambda v: ravel_pytree(precondition(product(back(v))))[0].astype(flat_b.dtype)
    residual = lambda x: ravel_pytree(precondition(_add(b, product(back(x)), -1)))[0].astype(flat_b.dtype)
    norm = lambda v: wnp.sqrt(wnp.real(wnp.vdot(v, v)))
    size = norm(flat_b)
    end = wnp.maximum(tol * norm(ravel_pytree(precondition(b))[0]), atol)

    def expand(k, state):
        basis, h = state
        w = apply(basis[k])
        # Orthogonal to all before; twice, so that rounding leaves none of them.
        first = wnp.conj(basis) @ w
        w = w - first @ basis
        second = wnp.conj(basis) @ w
        w = w - second @ basis
        length = norm(w)
        safe = length > wnp.finfo(flat_b.dtype).eps * size
        w = wnp.where(safe, w / wnp.where(safe, length, 1), 0)
        column = (first + second).at[k + 1].set(wnp.where(safe, length, 0).astype(flat_b.dtype))
        return basis.at[k + 1].set(w), h.at[:, k].set(column)

    def cycle(x, r, length):
        basis = wnp.zeros((m + 1, n), flat_b.dtype).at[0].set(r / wnp.where(length == 0, 1, length))
        basis, h = fori_loop(0, m, expand, (basis, wnp.zeros((m + 1, m), flat_b.dtype)))
        target = wnp.zeros(m + 1, flat_b.dtype).at[0].set(length.astype(flat_b.dtype))
        y = wnp.linalg.lstsq(h, target)[0]
        return x + y @ basis[:m]

    def step(state):
        k, x, r, length = state
        x = cycle(x, r, length)
        r = residual(x)
        return k + 1, x, r, norm(r)

    more = lambda state: (state[0] < maxiter) & (state[3] > end)
    x, _ = ravel_pytree(x0)
    x = x.astype(flat_b.dtype)
    r = residual(x)
    return back(while_loop(more, step, (wnp.asarray(0, "int32"), x, r, norm(r)))[1])


def _solved(name, solver, A, b, x0, tol, atol, maxiter, M, symmetric: bool):
    product, precondition = _product(A, name), _same if M is None else _product(M, name)
    b = tree.map(wnp.asarray, b)
    b = tree.map(lambda v: v if wnp.issubdtype(v.dtype, wnp.inexact) else v.astype(float), b)
    x0 = tree.map(wnp.zeros_like, b) if x0 is None else tree.map(lambda x, v: wnp.asarray(x, v.dtype), x0, b)
    if tree.structure(x0) != tree.structure(b):
        raise value_error(f"{name}: x0 and b must be trees of one structure, got {x0} and {b}")
    for x, v in zip(tree.leaves(x0), tree.leaves(b)):
        if x.shape != v.shape:
            raise type_error(f"{name}: x0 and b must have the same shapes, got {x.shape} and {v.shape}")
    count = 10 * sum(v.size for v in tree.leaves(b)) if maxiter is None else maxiter
    solve = lambda matvec, rhs: solver(matvec, rhs, x0, count, tol, atol, precondition)
    # Real symmetric systems are their own transposes; of others the transposed one is solved from zero.
    again = lambda vecmat, rhs: solver(vecmat, rhs, tree.map(wnp.zeros_like, rhs), count, tol, atol, _same)
    x = custom_linear_solve(product, b, solve, transpose_solve=again, symmetric=symmetric)
    return x, None


def cg(
    A: Matrix,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Matrix | None = None,
) -> tuple[Any, None]:
    """The solution of A x = b for a Hermitian, positive definite A, by conjugate gradients.

    Derivatives are those of the solution, found by solving again.

    Returns: pair (x, None).

    Raises:
        ValueError: a matrix is not square, or trees differ.

    Source: Hestenes and Stiefel, "Methods of conjugate gradients for solving linear systems", 1952.

    Example:
        >>> weft.scipy.sparse.linalg.cg(wnp.array([[2.0, 0.0], [0.0, 4.0]]), wnp.array([2.0, 4.0]))[0]
        Array([1.        , 0.99999994], dtype=float32)
    """
    real = all(not wnp.issubdtype(wnp.asarray(v).dtype, wnp.complexfloating) for v in tree.leaves(b))
    return _solved("cg", _cg, A, b, x0, tol, atol, maxiter, M, real)


def bicgstab(
    A: Matrix,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Matrix | None = None,
) -> tuple[Any, None]:
    """The solution of A x = b, by stabilised bi-conjugate gradients.

    Derivatives are those of the solution, found by solving again.

    Returns: pair (x, None).

    Raises:
        ValueError: a matrix is not square, or trees differ.

    Source: van der Vorst, "Bi-CGSTAB", 1992.

    Example:
        >>> a = wnp.array([[2.0, 1.0], [0.0, 4.0]])
        >>> wnp.round(weft.scipy.sparse.linalg.bicgstab(a, wnp.array([2.0, 4.0]))[0], 3)
        Array([0.5, 1. ], dtype=float32)
    """
    return _solved("bicgstab", _bicgstab, A, b, x0, tol, atol, maxiter, M, False)


def gmres(
    A: Matrix,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Matrix | None = None,
    solve_method: str = "batched",
) -> tuple[Any, None]:
    """The solution of A x = b, by the smallest residual in a Krylov subspace.

    Derivatives are those of the solution, found by solving again.

    Args:
        restart: how many vectors a subspace has before a new one begins.
        solve_method: "batched" or "incremental", accepted without effect: a subspace is always made whole.

    Returns: pair (x, None).

    Raises:
        ValueError: a matrix is not square, trees differ, or there is no such solve_method.

    Source: Saad and Schultz, "GMRES", 1986.

    Example:
        >>> a = wnp.array([[2.0, 1.0], [0.0, 4.0]])
        >>> wnp.round(weft.scipy.sparse.linalg.gmres(a, wnp.array([2.0, 4.0]))[0], 3)
        Array([0.5, 1. ], dtype=float32)
    """
    if solve_method not in ("batched", "incremental"):
        raise value_error(f"gmres: solve_method must be 'batched' or 'incremental', got {solve_method!r}")
    solver = functools.partial(_gmres, restart=restart)
    return _solved("gmres", solver, A, b, x0, tol, atol, maxiter, M, False)


_docs.complete(
    globals(),
    {
        "A": "the matrix, or a function that multiplies with it.",
        "b": "a vector, or a tree of arrays as A takes it.",
        "x0": "where to begin; None: zeros.",
        "tol": "how large the residual may be, relative to b.",
        "atol": "how large it may be anyhow.",
        "maxiter": "how many steps there may be; None: ten times the number of unknowns.",
        "M": "what approximates the inverse of A, a matrix or a function; None: nothing.",
    },
)
