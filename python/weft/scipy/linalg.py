"""Systems of equations under SciPy's names."""

from __future__ import annotations

import math
from typing import Any

from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import not_implemented, value_error
from .._core.names import belong_to as _belong_to
from .._weft import Array
from ..control import fori_loop
from ..derivatives import jvp
from ..numpy import linalg as _linalg
from ..numpy._factors import _adjoint, _matrix
from ..typing import NestedLike
from ._matrix_functions import (
    column_order,
    eigh_tridiagonal,
    funm,
    hessenberg,
    polar,
    qr_multiply,
    rsf2csf,
    schur,
    solve_sylvester,
    sqrtm,
)
from ._named_matrices import (
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
)

__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "circulant",
    "companion",
    "convolution_matrix",
    "det",
    "dft",
    "eigh",
    "eigh_tridiagonal",
    "expm",
    "expm_frechet",
    "fiedler",
    "fiedler_companion",
    "funm",
    "hadamard",
    "hankel",
    "helmert",
    "hessenberg",
    "hilbert",
    "inv",
    "invhilbert",
    "invpascal",
    "leslie",
    "lu",
    "lu_factor",
    "lu_solve",
    "pascal",
    "polar",
    "qr",
    "qr_multiply",
    "rsf2csf",
    "schur",
    "solve",
    "solve_sylvester",
    "solve_triangular",
    "sqrtm",
    "svd",
    "toeplitz",
]


def cholesky(a: NestedLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The Cholesky factor of a positive definite matrix, upper by default. Only that triangle is read.

    Args:
        lower: whether to give the lower triangular L with L L^H = a, instead of L^H.

    Returns: array [..., n, n].

    Raises:
        ValueError: a is not square.

    Source: Golub and Van Loan, "Matrix computations", 4.2.

    Example:
        >>> weft.scipy.linalg.cholesky(wnp.array([[4.0, 2.0], [2.0, 5.0]]))
        Array([[2., 1.],
               [0., 2.]], dtype=float32)
    """
    del overwrite_a, check_finite
    if lower:
        return _linalg.cholesky(a, symmetrize_input=False)
    # The triangle that is not asked for is not read.
    return _linalg.cholesky(_adjoint(wnp.asarray(a)), upper=True, symmetrize_input=False)


def cho_factor(
    a: NestedLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """The Cholesky factor and which one it is, for cho_solve.

    Args:
        a: array [..., n, n], positive definite.
        lower: whether it is the lower one.

    Returns: pair (factor, lower).

    Raises:
        ValueError: a is not square.

    Example:
        >>> weft.scipy.linalg.cho_factor(wnp.array([[4.0]]))
        (Array([[2.]], dtype=float32), False)
    """
    return cholesky(a, lower, overwrite_a, check_finite), lower


def cho_solve(
    c_and_lower: tuple[NestedLike, bool], b: NestedLike, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """The x with a x = b, from the Cholesky factor of a.

    Args:
        c_and_lower: what cho_factor(a) returned.

    Returns: array of the shape of b.

    Raises:
        TypeError: shapes do not fit.

    Example:
        >>> weft.scipy.linalg.cho_solve(weft.scipy.linalg.cho_factor(wnp.array([[4.0]])), wnp.array([8.0]))
        Array([2.], dtype=float32)
    """
    del overwrite_b, check_finite
    c, lower = c_and_lower
    b = solve_triangular(c, b, trans=0 if lower else 2, lower=lower)
    return solve_triangular(c, b, trans=2 if lower else 0, lower=lower)


def solve_triangular(
    a: NestedLike,
    b: NestedLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The x with op(a) x = b, for triangular a.

    Args:
        a: array [..., n, n]; only one triangle is read.
        b: array [..., n] or [..., n, k].
        trans: 0 or "N": a itself, 1 or "T": its transpose, 2 or "C": its adjoint.
        lower: whether a is lower triangular; otherwise upper.
        unit_diagonal: whether the diagonal counts as 1, and is not read.

    Returns: array of the shape of b.

    Raises:
        ValueError: a is not square.

    Example:
        >>> weft.scipy.linalg.solve_triangular(wnp.array([[2.0, 1.0], [0.0, 4.0]]), wnp.array([4.0, 8.0]))
        Array([1., 2.], dtype=float32)
    """
    del overwrite_b, check_finite
    op = {"N": 0, "T": 1, "C": 2}[trans] if isinstance(trans, str) else trans
    return _linalg.solve_triangular(a, b, lower=lower, trans=op, unit_diagonal=unit_diagonal)


def solve(
    a: NestedLike,
    b: NestedLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """The x with a x = b, for square a.

    Args:
        b: array [n] or [..., n, k].
        lower: with assume_a="pos": which triangle is read.
        assume_a: "gen", "sym", "her": any; "pos": positive definite, solved by the Cholesky factor.

    Returns: array of the shape of b.

    Raises:
        ValueError: a is not square, sizes differ, or assume_a is another one.

    Example:
        >>> weft.scipy.linalg.solve(wnp.array([[2.0, 0.0], [0.0, 4.0]]), wnp.array([2.0, 2.0]))
        Array([1. , 0.5], dtype=float32)
    """
    del overwrite_a, overwrite_b, check_finite
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise value_error(f"solve: assume_a must be 'gen', 'sym', 'her' or 'pos', got {assume_a!r}")
    if assume_a == "pos":
        return cho_solve(cho_factor(a, lower), b)
    return _linalg.solve(a, b)


def lu_factor(a: NestedLike, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """The LU factorisation with row exchanges, for lu_solve.

    Args:
        a: array [..., m, n].

    Returns: pair of lu [..., m, n] (L below the diagonal, which is 1, and U) and pivots (int32): row i was exchanged
        with row pivots[i].

    Source: Golub and Van Loan, "Matrix computations", 3.4.

    Example:
        >>> weft.scipy.linalg.lu_factor(wnp.array([[1.0, 2.0], [4.0, 4.0]]))[1]
        Array([1, 1], dtype=int32)
    """
    del overwrite_a, check_finite
    return _linalg.lu_factor(a)[:2]


def lu_solve(
    lu_and_piv: tuple[NestedLike, NestedLike],
    b: NestedLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The x with op(a) x = b, from the LU factorisation of a.

    Args:
        lu_and_piv: what lu_factor(a) returned, for one matrix.
        trans: 0: a itself, 1: its transpose, 2: its adjoint.

    Returns: array of the shape of b.

    Raises:
        ValueError: there is no such trans.

    Example:
        >>> weft.scipy.linalg.lu_solve(weft.scipy.linalg.lu_factor(wnp.array([[4.0]])), wnp.array([8.0]))
        Array([2.], dtype=float32)
    """
    del overwrite_b, check_finite
    if trans not in (0, 1, 2):
        raise value_error(f"lu_solve: trans is 0, 1 or 2, got {trans!r}")
    factors, pivots = wnp.asarray(lu_and_piv[0]), wnp.asarray(lu_and_piv[1])
    rows = wnp.arange(factors.shape[-1])
    for i in range(pivots.shape[-1]):
        other = rows[pivots[i]]
        rows = rows.at[pivots[i]].set(rows[i]).at[i].set(other)
    if trans == 0:  # P a = L U
        y = _linalg.solve_triangular(factors, wnp.take(wnp.asarray(b), rows, 0), lower=True, unit_diagonal=True)
        return _linalg.solve_triangular(factors, y)
    y = _linalg.solve_triangular(factors, b, trans=trans)
    y = _linalg.solve_triangular(factors, y, lower=True, unit_diagonal=True, trans=trans)
    return wnp.take(y, wnp.argsort(rows), 0)


def lu(
    a: NestedLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, ...]:
    """The factors of the LU factorisation: a = p l u.

    Args:
        a: array [m, n].
        permute_l: whether to give p l as one factor.

    Returns: tuple (p [m, m], l [m, k], u [k, n]) for k = min(m, n); with permute_l (p l, u).

    Source: Golub and Van Loan, "Matrix computations", 3.4.

    Example:
        >>> weft.scipy.linalg.lu(wnp.array([[1.0, 2.0], [4.0, 4.0]]))[2]
        Array([[4., 4.],
               [0., 1.]], dtype=float32)
    """
    del overwrite_a, check_finite
    a = _weft.promote_inexact(wnp.asarray(a))
    packed, _, order = _linalg.lu_factor(a)
    m, n = a.shape
    k = min(m, n)
    lower = wnp.tril(packed[:, :k], -1) + wnp.eye(m, k, dtype=a.dtype)
    upper = wnp.triu(packed[:k])
    p = (order[None, :] == wnp.arange(m)[:, None]).astype(wnp.finfo(a.dtype).dtype)
    return (p.astype(a.dtype) @ lower, upper) if permute_l else (p, lower, upper)


def block_diag(*arrs: NestedLike) -> Array:
    """Matrices along the diagonal, zeros elsewhere.

    Args:
        *arrs: matrices, vectors (as one row) or numbers.

    Returns: matrix of the common dtype.

    Example:
        >>> weft.scipy.linalg.block_diag(wnp.ones((1, 2)), 5.0)
        Array([[1., 1., 0.],
               [0., 0., 5.]], dtype=float32)
    """
    blocks = [wnp.atleast_2d(a) for a in arrs] or [wnp.zeros((1, 0))]
    kind = wnp.result_type(*blocks)
    width = sum(b.shape[1] for b in blocks)
    rows, at = [], 0
    for b in blocks:
        rows.append(wnp.pad(b.astype(kind), ((0, 0), (at, width - at - b.shape[1]))))
        at += b.shape[1]
    return wnp.concatenate(rows, 0)


def det(a: NestedLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinant: numpy.linalg.det.

    Returns: array [...].

    Raises:
        ValueError: a is not square.

    Example:
        >>> weft.scipy.linalg.det(wnp.array([[2.0, 1.0], [1.0, 3.0]]))
        Array(5., dtype=float32)
    """
    del overwrite_a, check_finite
    return _linalg.det(a)


def inv(a: NestedLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverse: numpy.linalg.inv.

    Returns: array [..., n, n].

    Raises:
        ValueError: a is not square.

    Example:
        >>> weft.scipy.linalg.inv(wnp.array([[2.0, 0.0], [0.0, 4.0]]))
        Array([[0.5 , 0.  ],
               [0.  , 0.25]], dtype=float32)
    """
    del overwrite_a, check_finite
    return _linalg.inv(a)


def toeplitz(c: NestedLike, r: NestedLike | None = None) -> Array:
    """The matrix that is constant along diagonals.

    Args:
        c: array [..., n]: the first column.
        r: array [..., m]: the first row, whose first element does not count; None: the conjugate of c.

    Returns: array [..., n, m]; the other dimensions broadcast.

    Example:
        >>> weft.scipy.linalg.toeplitz(wnp.array([1, 2, 3]))
        Array([[1, 2, 3],
               [2, 1, 2],
               [3, 2, 1]], dtype=int32)
    """
    column: Array = wnp.atleast_1d(c)
    row: Array = wnp.conjugate(column) if r is None else wnp.atleast_1d(r)
    n, m = column.shape[-1], row.shape[-1]
    batch = wnp.broadcast_shapes(column.shape[:-1], row.shape[:-1])
    column, row = wnp.broadcast_to(column, (*batch, n)), wnp.broadcast_to(row, (*batch, m))
    values = wnp.concatenate([wnp.flip(column, -1), row[..., 1:]], -1)
    return values[..., n - 1 - wnp.arange(n)[:, None] + wnp.arange(m)[None, :]]


def expm(A: NestedLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of a matrix: the Taylor polynomial of degree 18 of A / 2^s, squared s times, where s brings the
    1-norm below 1.

    Args:
        A: array [..., n, n].
        upper_triangular: accepted, without effect.
        max_squarings: s is at most 3 more, as other approximations than a Taylor polynomial need as much less.

    Returns: array [..., n, n]; NaN where the 1-norm is beyond 2^(max_squarings + 3).

    Raises:
        ValueError: A is not square.

    Source: scaling and squaring (Moler and Van Loan, "Nineteen dubious ways to compute the exponential of a matrix",
        2003).

    Example:
        >>> weft.scipy.linalg.expm(wnp.array([[0.0, 1.0], [0.0, 0.0]]))
        Array([[1., 1.],
               [0., 1.]], dtype=float32)
    """
    del upper_triangular
    a, limit = _matrix(A, "expm", True), max_squarings + 3
    norm = wnp.max(wnp.sum(wnp.abs(a), axis=-2), axis=-1, initial=0)[..., None, None]
    norm = _weft.bind_elementwise("stop_gradient", (norm,), {})
    within = norm <= 2.0**limit
    steps = wnp.clip(wnp.ceil(wnp.log2(wnp.where(within & (norm > 0), norm, 1))), 0, limit).astype("int32")
    scaled = a * wnp.ldexp(wnp.ones_like(norm), -steps)
    # The polynomial in blocks of six terms, which takes seven products (Paterson and Stockmeyer, 1973).
    eye = wnp.broadcast_to(wnp.eye(a.shape[-1], dtype=a.dtype), a.shape)
    powers = [eye, scaled]
    for k in range(2, 7):
        powers.append(powers[k // 2] @ powers[k - k // 2])
    block = lambda first: sum(powers[j] * (1 / math.factorial(first + j)) for j in range(6))
    out = block(12) + powers[6] * (1 / math.factorial(18))
    for first in (6, 0):
        out = out @ powers[6] + block(first)
    out = fori_loop(0, wnp.max(steps, initial=0), lambda k, x: wnp.where(k < steps, x @ x, x), out)
    return wnp.where(within, out, float("nan"))


def expm_frechet(A: NestedLike, E: NestedLike, *, method: str | None = None, compute_expm: bool = True) -> Any:
    """The exponential of a matrix, and its derivative in a direction.

    Args:
        A: array [..., n, n].
        E: array [..., n, n]: the direction.
        method: None, "SPS" or "blockEnlarge", accepted without effect: it is the derivative of expm.
        compute_expm: whether to give the exponential, too.

    Returns: pair of arrays [..., n, n]: the exponential and its derivative; or the latter.

    Raises:
        ValueError: shapes do not fit, or there is no such method.

    Source: Al-Mohy and Higham, "Computing the Fréchet derivative of the matrix exponential", 2009.

    Example:
        >>> weft.scipy.linalg.expm_frechet(wnp.zeros((1, 1)), wnp.ones((1, 1)))
        (Array([[1.]], dtype=float32), Array([[1.]], dtype=float32))
    """
    if method not in (None, "SPS", "blockEnlarge"):
        raise value_error(f"expm_frechet: method must be 'SPS' or 'blockEnlarge', got {method!r}")
    a, e = _weft.promote_all_inexact(wnp.asarray(A), wnp.asarray(E))
    if a.shape != e.shape or a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise value_error(f"expm_frechet: A and E must be square and of one shape, got {a.shape} and {e.shape}")
    value, slope = jvp(expm, (a,), (e,))
    return (value, slope) if compute_expm else slope


def eigh(
    a: NestedLike,
    b: None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """Eigenvalues and eigenvectors of a symmetric or Hermitian matrix.

    Args:
        b: must be None: generalised problems are not there.
        lower: which triangle is read; otherwise the upper one.
        eigvals_only: whether to give the eigenvalues alone.
        turbo: accepted, without effect.
        eigvals: must be None: all are computed.
        type: must be 1.

    Returns: pair of eigenvalues [..., n], ascending, and eigenvectors [..., n, n] as columns; or the former.

    Raises:
        ValueError: a is not square.
        NotImplementedError: b or eigvals is given, or type is not 1.

    Example:
        >>> weft.scipy.linalg.eigh(wnp.array([[2.0, 0.0], [0.0, 1.0]]), eigvals_only=True)
        Array([1., 2.], dtype=float32)
    """
    del overwrite_a, overwrite_b, turbo, check_finite
    if b is not None or eigvals is not None or type != 1:
        raise not_implemented("eigh: b, eigvals and type")
    w, v = _linalg.eigh(a, "L" if lower else "U", symmetrize_input=False)
    return w if eigvals_only else (w, v)


def svd(
    a: NestedLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """The singular value decomposition: a = u diag(s) vh.

    Args:
        a: array [..., m, n].
        full_matrices: whether u and vh are square.
        compute_uv: whether to compute u and vh, too.
        lapack_driver: accepted, without effect.

    Returns: tuple of u, s (descending) and vh; or s.

    Example:
        >>> weft.scipy.linalg.svd(wnp.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
        Array([4., 3.], dtype=float32)
    """
    del overwrite_a, check_finite, lapack_driver
    found = _linalg.svd(a, full_matrices, compute_uv)
    return tuple(found) if compute_uv else found


def qr(
    a: NestedLike,
    overwrite_a: bool = False,
    lwork: None = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """The QR factorisation: a = q r.

    Args:
        a: array [..., m, n].
        lwork: accepted, without effect.
        mode: "full": q is square; "economic": it has min(m, n) columns; "r": r alone, of as many rows as a.
        pivoting: whether the columns of a are exchanged, so that the diagonal of r descends: a[:, order] = q r.

    Returns: pair of q and r, or a tuple of r; with pivoting the order [..., n] of the columns comes last.

    Raises:
        ValueError: there is no such mode.

    Example:
        >>> [part.shape for part in weft.scipy.linalg.qr(wnp.ones((3, 2)))]
        [(3, 3), (3, 2)]
    """
    del overwrite_a, lwork, check_finite
    if mode not in ("full", "economic", "r"):
        raise value_error(f"qr: there is no mode {mode!r}; the modes are 'full', 'economic' and 'r'")
    order: tuple[Array, ...] = ()
    a = wnp.asarray(a)
    if pivoting and a.ndim >= 2:  # of vectors qr says that they are none
        a = _weft.promote_inexact(a)
        order = (column_order(a),)
        a = wnp.take_along_axis(a, order[0][..., None, :], -1)
    q, r = _linalg.qr(a, "reduced" if mode == "economic" else "complete")
    return (r, *order) if mode == "r" else (q, r, *order)


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "a": "array [..., n, n].",
    "b": "array [n] or [n, k].",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
_belong_to(globals(), eigh_tridiagonal, funm, hessenberg, polar, qr_multiply, rsf2csf, schur, solve_sylvester, sqrtm)
_belong_to(globals(), circulant, companion, convolution_matrix, dft, fiedler, fiedler_companion, hadamard, hankel)
_belong_to(globals(), helmert, hilbert, invhilbert, invpascal, leslie, pascal)
