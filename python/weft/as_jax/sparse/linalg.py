"""Equations and eigenvalues of sparse matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft
import weft.numpy as wnp

from ..._core.errors import value_error
from .matrices import csr_todense


def spsolve(data: Any, indices: Any, indptr: Any, b: Any, tol: float = 1e-6, reorder: int = 1) -> Any:
    """The solution of a x = b of a matrix by rows. It is put together in memory and solved as any matrix: `tol` and
    `reorder`, of a sparse factorisation, have no effect."""
    del tol, reorder
    n = wnp.shape(b)[0]
    return wnp.linalg.solve(csr_todense(data, indices, indptr, shape=(n, n)), b)


def lobpcg_standard(A: Any, X: Any, m: int = 100, tol: float | None = None) -> tuple[Any, Any, Any]:
    """The largest eigenvalues of a symmetric matrix, and their eigenvectors.

    Args:
        A: matrix [n, n], or a function that multiplies [n, k] by it.
        X: [n, k], where the search starts; 5 k must be below n.
        m: the largest number of steps.
        tol: a vector has been found when its residual is below 10 tol n (|A x| + |eigenvalue|); None: the dtype's
            precision.

    Returns: (eigenvalues [k], descending; eigenvectors [n, k]; the number of steps).

    Source: Knyazev, "Toward the optimal preconditioned eigensolver: locally optimal block preconditioned conjugate
    gradient method", 2001, without a preconditioner; an orthonormal basis in each step as in Duersch et al., "A robust
    and efficient implementation of LOBPCG", 2018.
    """
    X = wnp.asarray(X)
    if X.ndim != 2:
        raise value_error(f"lobpcg_standard: the search directions must be a matrix, got shape {X.shape}")
    n, k = X.shape
    if k * 5 >= n:
        raise value_error(
            f"expected search dim * 5 < matrix dim (got {k * 5}, {n}); use linalg.eigh for that many eigenvalues"
        )
    if k == 0:
        raise value_error(f"expected search dim > 0 (got {k})")
    if not wnp.issubdtype(X.dtype, wnp.floating):
        raise value_error(f"lobpcg_standard: the search directions must be floats, got {X.dtype}")
    times: Callable[[Any], Any] = A if callable(A) else lambda x: A @ x
    if not callable(A) and tuple(A.shape) != (n, n):
        raise value_error(f"lobpcg_standard: A must be ({n}, {n}), got {tuple(A.shape)}")
    image = weft.eval_shape(times, X)
    if image.dtype != X.dtype or image.shape != X.shape:
        raise value_error(
            f"lobpcg_standard: A, X must have same dtypes and A @ X the shape of X, got {image.dtype}"
            f"{list(image.shape)} and {X.dtype}{list(X.shape)}"
        )
    limit = float(wnp.finfo(X.dtype).eps) if tol is None else tol

    def unfinished(state: Any) -> Any:
        i, theta, X, AX, _ = state
        size = wnp.linalg.norm(AX - X * theta, axis=0)
        found = size < limit * 10 * n * (wnp.linalg.norm(AX, axis=0) + abs(theta))
        return (i < m) & ~found.all()

    i, theta, X, *_ = weft.while_loop(unfinished, lambda state: _step(times, state), _start(times, X))
    return theta, X, i


def lobpcg_with_history(A: Any, X: Any, m: int = 100, tol: float | None = None, debug: bool = False) -> Any:
    """lobpcg_standard; with `debug` m steps, and what was found in each: "lambda history" [m, k], and how many vectors
    were lost ("X zeros")."""
    if not debug:
        return lobpcg_standard(A, X, m, tol)
    times = lambda x: A @ x

    def record(state: Any, _: Any) -> Any:
        new = _step(times, state)
        return new, (new[1], ((new[2] * new[2]).sum(0) < 0.5).sum())

    (i, theta, X, *_), (thetas, lost) = weft.scan(record, _start(times, wnp.asarray(X)), None, length=m)
    return theta, X, i, {"lambda history": thetas, "X zeros": lost}


def _start(times: Callable[[Any], Any], X: Any) -> Any:
    """(number of steps, eigenvalues, vectors, their images, the last step's directions)."""
    X = _orthonormal(X)
    AX = times(X)
    theta, rotation = _largest(X.T @ AX, X.shape[1])
    return wnp.zeros((), "int32"), theta, X @ rotation, AX @ rotation, wnp.zeros_like(X)


def _step(times: Callable[[Any], Any], state: Any) -> Any:
    """Ritz values in the space of the vectors, their residuals and the last step's directions."""
    i, theta, X, AX, P = state
    k = X.shape[1]
    P = _against(P, X)
    R = _against(AX - X * theta, wnp.concatenate([X, P], axis=1))
    basis = wnp.concatenate([X, P, R], axis=1)
    gram = basis.T @ _in_blocks(times, basis, k)
    gram = (gram + gram.T) / 2
    # What has no direction left stands for no Ritz value.
    none = (basis * basis).sum(0) < 0.5
    gram = gram - wnp.diag(none.astype(gram.dtype)) * (1 + 2 * abs(gram).sum())
    theta, rotation = _largest(gram, k)
    X, P = basis @ rotation, basis[:, k:] @ rotation[k:]
    # Orthonormal up to the last digits, and each vector the one that it was: X (X'X)^(-1/2), to first order.
    X = X @ (1.5 * wnp.eye(k, dtype=X.dtype) - 0.5 * (X.T @ X))
    return i + 1, theta, X, times(X), P


def _in_blocks(times: Callable[[Any], Any], basis: Any, k: int) -> Any:
    """The matrix times a basis, as many columns at a time as it was given."""
    return wnp.concatenate([times(basis[:, j : j + k]) for j in range(0, basis.shape[1], k)], axis=1)


def _largest(gram: Any, k: int) -> tuple[Any, Any]:
    """The k largest eigenvalues, descending, and their vectors."""
    values, vectors = wnp.linalg.eigh(gram)
    return values[::-1][:k], vectors[:, ::-1][:, :k]


def _orthonormal(X: Any) -> Any:
    """An orthonormal basis of the columns; those that depend on the others are 0."""
    size = wnp.linalg.norm(X, axis=0)
    X = X / wnp.where(size > 0, size, 1)
    values, vectors = wnp.linalg.eigh(X.T @ X)
    kept = values > float(wnp.finfo(X.dtype).eps) * X.shape[1]
    scale = wnp.where(kept, 1 / wnp.sqrt(wnp.where(kept, values, 1)), 0)
    return X @ (vectors * scale)


def _against(X: Any, basis: Any) -> Any:
    """An orthonormal basis of what of X is orthogonal to a basis: twice, for the digits that the first time loses."""
    for _ in range(2):
        size = wnp.linalg.norm(X, axis=0)
        X = X / wnp.where(size > 0, size, 1)
        X = X - basis @ (basis.T @ X)
        X = _orthonormal(X)
    return X - basis @ (basis.T @ X)
