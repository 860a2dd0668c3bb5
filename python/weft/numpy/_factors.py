"""Factorisations of matrices. Leading dimensions are batches; all of them differentiate."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from .. import _weft
from .._core import docs as _docs
from .._core.errors import value_error
from .._weft import Array
from ..custom import custom_jvp
from ..typing import NestedLike
from ._along import along
from ._elementwise import conjugate
from ._matrices import tril, triu

__all__ = [
    "cholesky",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "lu_factor",
    "qr",
    "svd",
    "svdvals",
]


class QRResult(NamedTuple):
    """The result of qr."""

    Q: Array
    R: Array


class EigResult(NamedTuple):
    """The result of eig."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """The result of eigh."""

    eigenvalues: Array
    eigenvectors: Array


class SVDResult(NamedTuple):
    """The result of svd."""

    U: Array
    S: Array
    Vh: Array


def _matrix(a, what: str, square: bool = False) -> Array:
    a = _weft.promote_inexact(_weft.array(a, None, False))
    if a.ndim < 2:
        raise value_error(f"{what}: a matrix is needed, got shape {a.shape}")
    if square and a.shape[-1] != a.shape[-2]:
        raise value_error(f"{what}: a square matrix is needed, got shape {a.shape}")
    return a


def _adjoint(a) -> Array:
    return conjugate(a).mT


def cholesky(a: NestedLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The Cholesky factor: the lower triangular L with L L^H = a. NaN where a is not positive definite (NumPy raises).

    Args:
        a: array [..., n, n], Hermitian and positive definite.
        upper: whether to give L^H instead.
        symmetrize_input: whether (a + a^H) / 2 is factored; otherwise the lower triangle alone is read.

    Returns: array [..., n, n].

    Raises:
        ValueError: a is not square.

    Source: Golub and Van Loan, "Matrix computations", 4.2; derivative: Murray, "Differentiation of the Cholesky
        decomposition", 2016.

    Example:
        >>> wnp.linalg.cholesky(wnp.array([[4.0, 2.0], [2.0, 5.0]]))
        Array([[2., 0.],
               [1., 2.]], dtype=float32)
    """
    a = _matrix(a, "cholesky", True)
    # The part below and the part above the diagonal count alike, and so do their derivatives.
    a = (a + _adjoint(a)) / 2 if symmetrize_input else a
    lower = _weft.bind("cholesky", [a], {})[0]
    return _adjoint(lower) if upper else lower


def lu_factor(a: NestedLike) -> tuple[Array, Array, Array]:
    """The LU factorisation with row exchanges: row i of L U is row permutation[i] of a.

    Returns: tuple of lu [..., m, n] (L below the diagonal, which is 1, and U), pivots and permutation (int32).

    Source: Golub and Van Loan, "Matrix computations", 3.4.

    Example:
        >>> lu, pivots, permutation = wnp.linalg.lu_factor(wnp.array([[1.0, 2.0], [4.0, 4.0]]))
        >>> lu, permutation
        (Array([[4.  , 4.  ],
               [0.25, 1.  ]], dtype=float32), Array([1, 0], dtype=int32))
    """
    lu, pivots, permutation = _weft.bind("lu", [_matrix(a, "lu_factor")], {})
    return lu, pivots, permutation


def qr(a: NestedLike, mode: str = "reduced") -> Any:
    """The QR factorisation: a = q r, with orthonormal columns q and an upper triangular r.

    Args:
        mode: "reduced": q [..., m, k] and r [..., k, n] for k = min(m, n); "complete": q [..., m, m] and r [..., m, n];
            "full" is an older name of "reduced"; "r": the reduced r alone.

    Returns: named tuple (Q, R), or R.

    Raises:
        ValueError: there is no such mode.

    Source: Householder reflections (Golub and Van Loan, "Matrix computations", 5.2); derivative: Walter and Lehmann,
        "Algorithmic differentiation of linear algebra functions", 2012. The columns that "complete" adds turn with
        the others, and not among themselves.

    Example:
        >>> q, r = wnp.linalg.qr(wnp.array([[3.0, 1.0], [4.0, 2.0]]))
        >>> wnp.round(wnp.abs(r), 3)
        Array([[5. , 2.2],
               [0. , 0.4]], dtype=float32)
    """
    if mode not in ("reduced", "full", "complete", "r"):
        raise value_error(f"qr: there is no mode {mode!r}; the modes are 'reduced', 'complete' and 'r'")
    q, r = _weft.bind("qr", [_matrix(a, "qr")], {})
    if mode == "complete":
        rows = q.shape[-2] - r.shape[-2]
        q, r = _complete_basis(q), _weft.pad_constant(r, [0] * r.ndim, [0] * (r.ndim - 2) + [rows, 0], 0)
    return r if mode == "r" else QRResult(q, r)


def _complex_matrix(a: NestedLike, what: str) -> Array:
    a = _matrix(a, what, True)
    wide = a.dtype in ("float64", "complex128")
    return a.astype("complex128" if wide else "complex64")


def eig(a: NestedLike) -> EigResult:
    """Eigenvalues and eigenvectors of any square matrix, complex also for real ones; NaN where a is not finite.

    Both have derivatives of any order (JAX: eigenvalues alone, of first order); those of eigenvectors are not finite
    for equal eigenvalues.

    Args:
        a: array [..., n, n].

    Returns: named tuple (eigenvalues [..., n], by ascending real and then imaginary part, those of real matrices real
        or in pairs of exact conjugates; eigenvectors [..., n, n], as columns of length 1 whose largest entry is real
        and positive), complex64 or complex128.

    Raises:
        ValueError: a is not square.

    Source: LAPACK's geev; derivative: Giles, "An extended collection of matrix derivative results", 2008, 3.1.

    Example:
        >>> values, vectors = wnp.linalg.eig(wnp.array([[2.0, 1.0], [0.0, 3.0]]))
        >>> wnp.round(values.real, 3), wnp.round(vectors.real, 3)
        (Array([2., 3.], dtype=float32), Array([[1.   , 0.707],
               [0.   , 0.707]], dtype=float32))
    """
    return EigResult(*_weft.bind("eig", [_complex_matrix(a, "eig")], {"compute_v": True}))


def eigvals(a: NestedLike) -> Array:
    """The eigenvalues of any square matrix, complex also for real ones; NaN where a is not finite.

    Args:
        a: array [..., n, n].

    Returns: array [..., n] of complex64 or complex128, by ascending real and then imaginary part; those of real
        matrices are real or in pairs of exact conjugates.

    Raises:
        ValueError: a is not square.

    Source: LAPACK's geev; derivative: Giles, "An extended collection of matrix derivative results", 2008, 3.1.

    Example:
        >>> wnp.round(wnp.linalg.eigvals(wnp.array([[0.0, 1.0], [1.0, 0.0]])).real, 3)
        Array([-1.,  1.], dtype=float32)
    """
    return _weft.bind("eig", [_complex_matrix(a, "eigvals")], {"compute_v": False})[0]


def eigh(a: NestedLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues and eigenvectors of a symmetric or Hermitian matrix.

    Args:
        a: array [..., n, n].
        UPLO: "L" (as None) or "U": the triangle that is read if the input is not symmetrized.
        symmetrize_input: whether (a + a^H) / 2 is used, as in JAX; NumPy reads one triangle.

    Returns: named tuple (eigenvalues [..., n], ascending and real; eigenvectors [..., n, n], as columns of length 1).

    Raises:
        ValueError: a is not square, or UPLO is neither "L" nor "U".

    Source: derivative: Giles, "An extended collection of matrix derivative results", 2008, 3.1; not defined where two
        eigenvalues are equal.

    Example:
        >>> wnp.linalg.eigh(wnp.array([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
        Array([1., 2.], dtype=float32)
    """
    a = _matrix(a, "eigh", True)
    if UPLO not in (None, "L", "U"):
        raise value_error(f"eigh: UPLO must be 'L' or 'U', got {UPLO!r}")
    if symmetrize_input:
        a = (a + _adjoint(a)) / 2
    else:
        a = _adjoint(triu(a)) if UPLO == "U" else tril(a)
    return EighResult(*_weft.bind("eigh", [a], {}))


def eigvalsh(a: NestedLike, UPLO: str | None = None, *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues of a symmetric or Hermitian matrix.

    Args:
        a: array [..., n, n].
        UPLO: as for eigh.
        symmetrize_input: as for eigh.

    Returns: array [..., n], ascending and real.

    Raises:
        ValueError: a is not square.

    Example:
        >>> wnp.linalg.eigvalsh(wnp.array([[2.0, 0.0], [0.0, 1.0]]))
        Array([1., 2.], dtype=float32)
    """
    return eigh(a, UPLO, symmetrize_input)[0]


def svd(a: NestedLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """The singular value decomposition: a = u diag(s) vh.

    Args:
        full_matrices: whether u and vh are square; their further vectors are any that are orthogonal to the first.
        compute_uv: whether to compute u and vh, too.
        hermitian: whether a is Hermitian: then it is made from eigenvalues and eigenvectors.

    Returns: named tuple (U [..., m, k], S [..., k] descending, Vh [..., k, n]) for k = min(m, n); or S.

    Source: derivative: Townsend, "Differentiating the singular value decomposition", 2016; not defined where two
        singular values are equal.

    Example:
        >>> wnp.linalg.svd(wnp.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
        Array([4., 3.], dtype=float32)
    """
    a = _matrix(a, "svd", hermitian)
    if hermitian:
        values, vectors = eigh(a)
        sizes = _weft.absolute(values)
        order = _weft.flip(_weft.bind("sort", [sizes, _places(sizes)], {"dim": sizes.ndim - 1, "num_keys": 1})[1], -1)
        s = along(sizes, order, -1)
        if not compute_uv:
            return s
        u = along(vectors, order[..., None, :], -1)
        signs = _weft.where(along(values, order, -1) < 0, -1, 1).astype(u.dtype)
        return SVDResult(u, s, _adjoint(u * signs[..., None, :]))
    if not compute_uv:
        return _weft.bind("svd", [a], {"compute_uv": False})[0]
    u, s, vh = _weft.bind("svd", [a], {"compute_uv": True})
    if full_matrices:
        u, vh = _complete_basis(u), _adjoint(_complete_basis(_adjoint(vh)))
    return SVDResult(u, s, vh)


def _places(x) -> Array:
    return _weft.iota(x.shape, x.ndim - 1, "int32")


@functools.cache
def _complement():
    @custom_jvp
    def added(u):
        rows, columns = u.shape[-2:]
        # Householder reflections give an orthonormal basis whatever the added columns are; its first vectors are u's.
        none = _weft.full((*u.shape[:-1], rows - columns), 0, u.dtype)
        whole = _weft.bind("qr", [_weft.concatenate([u, none], -1)], {})[0]
        if isinstance(columns, int) and columns == 0:
            return whole
        return whole[..., columns:] + 0 * u[..., :1, :1]  # NaN where u is

    @added.defjvp
    def rule(primals, tangents):
        # The added columns stay orthogonal to u's, and do not turn among themselves.
        (u,), (du,) = primals, tangents
        p = added(u)
        return p, -(u @ (_adjoint(du) @ p))

    return added


def _complete_basis(u) -> Array:
    """Orthonormal columns and further ones that make a square matrix."""
    if u.shape[-2] == u.shape[-1]:
        return u
    return _weft.concatenate([u, _complement()(u)], -1)


def svdvals(a: NestedLike) -> Array:
    """The singular values of a matrix.

    Returns: array [..., min(m, n)], descending.

    Example:
        >>> wnp.linalg.svdvals(wnp.array([[3.0, 0.0], [0.0, 4.0]]))
        Array([4., 3.], dtype=float32)
    """
    return svd(a, compute_uv=False)


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "a": "array [..., m, n].",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
