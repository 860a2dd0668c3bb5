"""Functions of matrices, and factorisations that are made by rotations and reflections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import not_implemented, value_error
from .._matrix_functions import functions, householder
from .._matrix_functions import schur as _schur
from .._matrix_functions.batches import of_batches
from .._weft import Array
from ..control import fori_loop
from ..typing import NestedLike

__all__ = [
    "eigh_tridiagonal",
    "funm",
    "hessenberg",
    "polar",
    "qr_multiply",
    "rsf2csf",
    "schur",
    "solve_sylvester",
    "sqrtm",
]


def _square(a, name: str) -> Array:
    a = _weft.promote_inexact(wnp.asarray(a))
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise value_error(f"{name}: a must be a square matrix, or a batch of them, got shape {a.shape}")
    return a


def _real_of(x: Array, *given: Array) -> Array:
    return x if any(wnp.issubdtype(g.dtype, wnp.complexfloating) for g in given) else wnp.real(x)


def schur(a: NestedLike, output: str = "real") -> tuple[Array, Array]:
    """Schur's form: a = z t z^H, with orthonormal columns of z and triangular t.

    Args:
        output: "real": of a real matrix t is real, with 2 x 2 blocks on the diagonal for pairs of complex eigenvalues;
            "complex": both are complex.

    Returns: pair (t, z) of arrays [..., n, n]. They have no derivative.

    Raises:
        ValueError: a is not square, or there is no such output.

    Source: Golub and Van Loan, "Matrix computations", 7.5.

    Example:
        >>> t, z = weft.scipy.linalg.schur(wnp.array([[1.0, 2.0], [3.0, 4.0]]))
        >>> bool(wnp.allclose(z @ t @ z.T, wnp.array([[1.0, 2.0], [3.0, 4.0]]), atol=1e-5))
        True
    """
    if output not in ("real", "complex"):
        raise value_error(f"schur: output must be 'real' or 'complex', got {output!r}")
    a = _square(a, "schur")
    return _schur.schur(functions.as_complex(a) if output == "complex" else a)


def rsf2csf(T: NestedLike, Z: NestedLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex Schur form from the real one.

    Args:
        T: array [..., n, n], triangular but for 2 x 2 blocks.
        Z: array [..., n, n], orthogonal.

    Returns: pair (t, z) of complex arrays [..., n, n].

    Raises:
        ValueError: they are not square, or have different shapes.

    Source: Golub and Van Loan, "Matrix computations", 7.4.1.

    Example:
        >>> t, z = weft.scipy.linalg.schur(wnp.array([[0.0, 1.0], [-1.0, 0.0]]))
        >>> wnp.round(wnp.abs(weft.scipy.linalg.rsf2csf(t, z)[0]), 3)
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    del check_finite
    t, z = functions.as_complex(_square(T, "rsf2csf")), functions.as_complex(_square(Z, "rsf2csf"))
    if t.shape[-1] != z.shape[-1]:
        raise value_error(f"rsf2csf: T and Z must be matrices of one size, got shapes {t.shape} and {z.shape}")
    t, z = wnp.broadcast_arrays(t, z)
    out: tuple[Array, Array] = of_batches(_schur.complex_of_real, t, z)
    return out


def hessenberg(a: NestedLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The Hessenberg form: a = q h q^H, h zero below its first subdiagonal.

    Args:
        calc_q: whether to give q, too.

    Returns: array h [..., n, n]; with calc_q a pair (h, q).

    Raises:
        ValueError: a is not square.

    Source: Golub and Van Loan, "Matrix computations", 7.4.3.

    Example:
        >>> weft.scipy.linalg.hessenberg(wnp.array([[1.0, 2.0], [3.0, 4.0]]))
        Array([[1., 2.],
               [3., 4.]], dtype=float32)
    """
    del overwrite_a, check_finite
    h, q = of_batches(householder.hessenberg, _square(a, "hessenberg"))
    return (h, q) if calc_q else h


def sqrtm(A: NestedLike, blocksize: int = 1) -> Array:
    """The principal square root of a matrix.

    Args:
        A: array [..., n, n].
        blocksize: accepted; must be 1.

    Returns: array [..., n, n] of a complex dtype.

    Raises:
        ValueError: A is not square.
        NotImplementedError: blocksize is above 1.

    Source: Björck and Hammarling, "A Schur method for the square root of a matrix", 1983; its derivative solves
        Sylvester's equation.

    Example:
        >>> wnp.round(wnp.real(weft.scipy.linalg.sqrtm(wnp.array([[4.0, 1.0], [0.0, 9.0]]))), 3)
        Array([[2. , 0.2],
               [0. , 3. ]], dtype=float32)
    """
    if blocksize > 1:
        raise not_implemented("sqrtm: blocksize above 1")
    return functions.sqrtm(_square(A, "sqrtm"))


def funm(A: NestedLike, func: Callable[[Array], Any], disp: bool = True) -> Any:
    """A function of a matrix, of its eigenvalues: z f(t) z^H of Schur's form.

    Args:
        A: array [n, n].
        func: function of an array of numbers, element by element.
        disp: True: the function alone; False: an estimate of its relative error, too.

    Returns: array [n, n] of a complex dtype, or a pair of it and the estimate.

    Raises:
        ValueError: A is not square.

    Source: Parlett's recurrence, Golub and Van Loan, "Matrix computations", algorithm 9.1.1.

    Example:
        >>> wnp.round(wnp.real(weft.scipy.linalg.funm(wnp.array([[1.0, 1.0], [0.0, 2.0]]), wnp.square)), 3)
        Array([[1., 3.],
               [0., 4.]], dtype=float32)
    """
    a = _square(A, "funm")
    if a.ndim != 2:
        raise value_error(f"funm: A must be one matrix, got shape {a.shape}")
    value, error = functions.funm(functions.as_complex(a), func)
    return value if disp else (value, error)


def solve_sylvester(A: NestedLike, B: NestedLike, C: NestedLike, *, method: str = "schur", tol: float = 1e-8) -> Array:
    """The x with A x + x B = C.

    Args:
        A: array [..., m, m].
        B: array [..., n, n].
        C: array [..., m, n], whose batches broadcast.
        method: "schur" or "eigen", accepted without effect: it is Schur's form.
        tol: the smallest sum of an eigenvalue of A and one of B, of the largest, at which there is a solution; NaN
            beyond.

    Returns: array [..., m, n].

    Raises:
        ValueError: shapes do not fit, or there is no such method.

    Source: Bartels and Stewart, "Solution of the matrix equation AX + XB = C", 1972.

    Example:
        >>> weft.scipy.linalg.solve_sylvester(wnp.array([[2.0]]), wnp.array([[3.0]]), wnp.array([[10.0]]))
        Array([[2.]], dtype=float32)
    """
    if method not in ("schur", "eigen"):
        raise value_error(f"solve_sylvester: method must be 'schur' or 'eigen', got {method!r}")
    a, b, c = _weft.promote_all_inexact(*(wnp.asarray(v) for v in (A, B, C)))
    a, b = _square(a, "solve_sylvester"), _square(b, "solve_sylvester")
    if c.shape[-2:] != (a.shape[-1], b.shape[-1]):
        raise value_error(f"solve_sylvester: C must have the shape (..., {a.shape[-1]}, {b.shape[-1]}), got {c.shape}")
    del tol
    batch = _weft.broadcast_shapes(a.shape[:-2], b.shape[:-2], c.shape[:-2])
    a, b, c = (_weft.broadcast_to(v, (*batch, *v.shape[-2:])) for v in (a, b, c))
    x = functions.sylvester(*(functions.as_complex(v) for v in (a, b, c)))
    return _real_of(x, a, b, c)


def polar(
    a: NestedLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """The polar decomposition: a = u p, with orthonormal columns (or rows) of u and positive semidefinite p.

    Args:
        a: array [..., m, n].
        side: "right": a = u p; "left": a = p u.
        method: "qdwh" or "svd", accepted without effect: it is by singular values.
        eps: accepted, without effect.
        max_iterations: accepted, without effect.

    Returns: pair (u, p) of arrays [..., m, n] and [..., n, n] (left: [..., m, m]).

    Raises:
        ValueError: there is no such side or method.

    Source: Golub and Van Loan, "Matrix computations", 9.4.3.

    Example:
        >>> u, p = weft.scipy.linalg.polar(wnp.array([[0.0, -2.0], [3.0, 0.0]]))
        >>> wnp.round(p, 3)
        Array([[3., 0.],
               [0., 2.]], dtype=float32)
    """
    del eps, max_iterations
    if side not in ("right", "left"):
        raise value_error(f"polar: side must be 'right' or 'left', got {side!r}")
    if method not in ("qdwh", "svd"):
        raise value_error(f"polar: method must be 'qdwh' or 'svd', got {method!r}")
    a = _weft.promote_inexact(wnp.asarray(a))
    w, _, vh = wnp.linalg.svd(a, full_matrices=False)
    u = orthonormal(w @ vh)
    # Nearer to a than the sum over the singular values, whose vectors are rounded once more.
    other = wnp.conj(wnp.swapaxes(u, -1, -2))
    return u, hermitian(other @ a if side == "right" else a @ other)


def orthonormal(u: Array) -> Array:
    """u, whose singular values are nearly 1 (or 0), with the digits that rounding has left it: a step of Newton's."""
    return u + u @ (wnp.eye(u.shape[-1], dtype=u.dtype) - wnp.conj(wnp.swapaxes(u, -1, -2)) @ u) / 2


def hermitian(a: Array) -> Array:
    """The matrix without what rounding has made of it that is not Hermitian."""
    return (a + wnp.conj(wnp.swapaxes(a, -1, -2))) / 2


def column_order(a: Array) -> Array:
    """The order [..., n] of the columns in which each is the longest of the rest, without what those before it span."""
    return of_batches(_column_order, _weft.bind_elementwise("stop_gradient", (a,), {}))


def _column_order(a: Array) -> Array:
    """Source: Golub and Van Loan, "Matrix computations", 5.4.2."""
    m, n = a.shape
    rows, columns = wnp.arange(m), wnp.arange(n)

    def step(k, state):
        a, order = state
        rest = wnp.where((rows >= k)[:, None], a, 0)
        lengths = wnp.where(columns < k, -1, wnp.sum((rest * wnp.conj(rest)).real, 0))
        chosen = wnp.argmax(lengths)
        exchanged = wnp.where(columns == k, chosen, wnp.where(columns == chosen, k, columns))
        a, order = a[:, exchanged], order[exchanged]
        v = wnp.where(rows >= k, a[:, k], 0)
        head, length = v[k], wnp.sqrt(wnp.sum((v * wnp.conj(v)).real)).astype(a.dtype)
        size = wnp.abs(head).astype(a.dtype)
        v = v.at[k].add(wnp.where(size == 0, 1, head / wnp.where(size == 0, 1, size)) * length)
        square = wnp.sum((v * wnp.conj(v)).real).astype(a.dtype)
        factor = wnp.where(square == 0, 0, 2 / wnp.where(square == 0, 1, square))
        return a - factor * v[:, None] * (wnp.conj(v) @ a)[None, :], order

    return fori_loop(0, min(m, n), step, (a, columns))[1]


def qr_multiply(
    a: NestedLike,
    c: NestedLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """A product with the q of a = q r, and r.

    Args:
        a: array [..., m, n].
        c: array or vector that is multiplied.
        mode: "right": c q; "left": q c.
        pivoting: whether the columns of a are exchanged, as in qr.
        conjugate: whether q is conjugated.
        overwrite_c: accepted, without effect: arrays never change.

    Returns: pair (product, r); with pivoting also the order of the columns.

    Raises:
        ValueError: there is no such mode, or shapes do not fit.

    Source: Golub and Van Loan, "Matrix computations", 5.2.

    Example:
        >>> weft.scipy.linalg.qr_multiply(wnp.eye(2), wnp.array([1.0, 2.0]))[0].shape
        (2,)
    """
    del overwrite_a, overwrite_c
    if mode not in ("left", "right"):
        raise value_error(f"qr_multiply: mode must be 'left' or 'right', got {mode!r}")
    a, c = _weft.promote_all_inexact(wnp.asarray(a), wnp.asarray(c))
    if pivoting and a.ndim >= 2:
        order = column_order(a)
        columns = wnp.take_along_axis(a, order[..., None, :], -1)
        return (*qr_multiply(columns, c, mode, conjugate=conjugate), order)
    q, r = wnp.linalg.qr(a)
    m, k = q.shape[-2:]
    rows = c.shape[-2] if c.ndim > 1 else c.shape[0]
    if mode == "left" and rows == m and m != k:
        q, r = wnp.linalg.qr(a, "complete")
        q, r = q[..., :rows], r[..., :k, :]
    needed = q.shape[-1] if mode == "left" else q.shape[-2]
    given = rows if mode == "left" else c.shape[-1]
    if given != needed:
        raise value_error(f"qr_multiply: c has {given} elements where q has {needed}, shapes {c.shape} and {q.shape}")
    q = wnp.conj(q) if conjugate else q
    return (q @ c if mode == "left" else c @ q), r


def eigh_tridiagonal(
    d: NestedLike,
    e: NestedLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> Any:
    """Eigenvalues and eigenvectors of a symmetric (or Hermitian) tridiagonal matrix.

    Args:
        d: vector [n]: the diagonal, real.
        e: vector [n - 1]: the elements above it; those below are their conjugates.
        eigvals_only: whether eigenvalues alone are wanted.
        select: "a": all; "i": those with indices from select_range[0] to select_range[1].
        select_range: the first and the last index.
        tol: accepted, without effect.
        key: accepted, without effect.

    Returns: array of eigenvalues, ascending; or a pair of it and the eigenvectors, as columns.

    Raises:
        ValueError: shapes or select_range do not fit.
        NotImplementedError: select is "v", since the number of results would depend on values.

    Source: Golub and Van Loan, "Matrix computations", 8.3.

    Example:
        >>> weft.scipy.linalg.eigh_tridiagonal(wnp.array([1.0, 2.0]), wnp.array([0.0]), eigvals_only=True)
        Array([1., 2.], dtype=float32)
    """
    del tol, key
    d, e = _weft.promote_all_inexact(wnp.asarray(d), wnp.asarray(e))
    if d.ndim != 1 or e.shape != (d.shape[0] - 1,):
        raise value_error(
            f"eigh_tridiagonal: d must be a vector, and e one element shorter, got {d.shape} and {e.shape}"
        )
    n = d.shape[0]
    matrix = wnp.diag(d) + wnp.diag(e, 1) + wnp.diag(wnp.conj(e), -1)
    if select == "a":
        chosen = slice(None)
    elif select == "i":
        if select_range is None or not 0 <= select_range[0] <= select_range[1] < n:
            raise value_error(
                f"eigh_tridiagonal: select_range must be two indices below {n} in order, got {select_range}"
            )
        chosen = slice(int(select_range[0]), int(select_range[1]) + 1)
    elif select == "v":
        raise not_implemented("eigh_tridiagonal: select='v'; use 'i', or choose from all")
    else:
        raise value_error(f"eigh_tridiagonal: select must be 'a' or 'i', got {select!r}")
    if eigvals_only:
        return wnp.linalg.eigvalsh(matrix)[chosen]
    w, v = wnp.linalg.eigh(matrix)
    return w[chosen], v[:, chosen]


_docs.complete(globals(), {"a": "array [..., n, n]."})
