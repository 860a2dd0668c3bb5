"""Linear algebra under JAX's names: factorisations as lax spells them."""

from __future__ import annotations

from typing import Any

from .. import _weft
from .._core import docs as _docs
from .._weft import Array
from ..numpy import linalg as _linalg
from ..typing import NestedLike

__all__ = ["cholesky", "eigh", "lu", "qr", "svd", "triangular_solve"]


def cholesky(x: NestedLike, *, symmetrize_input: bool = True) -> Array:
    """The Cholesky factor: the lower triangular L with L L^H = x; NaN where x is not positive definite.

    Args:
        x: array [..., n, n], Hermitian and positive definite.
        symmetrize_input: whether (x + x^H) / 2 is factored; otherwise the lower triangle alone is read.

    Returns: array [..., n, n].

    Raises:
        ValueError: x is not square.

    Example:
        >>> weft.lax.linalg.cholesky(wnp.array([[4.0, 2.0], [2.0, 5.0]]))
        Array([[2., 0.],
               [1., 2.]], dtype=float32)
    """
    return _linalg.cholesky(x, symmetrize_input=symmetrize_input)


def triangular_solve(
    a: NestedLike,
    b: NestedLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """The x with op(a) x = b or x op(a) = b, for triangular a.

    Args:
        a: array [..., n, n]; only one triangle is read.
        b: array [..., n, k], or [..., k, n] without left_side.
        left_side: whether a stands left of x.
        lower: whether a is lower triangular; otherwise upper.
        transpose_a: whether a is transposed.
        conjugate_a: whether a is conjugated.
        unit_diagonal: whether the diagonal counts as 1, and is not read.

    Returns: array of the shape of b.

    Raises:
        TypeError: shapes do not fit.

    Example:
        >>> a, b = wnp.array([[2.0, 0.0], [1.0, 4.0]]), wnp.array([[2.0], [9.0]])
        >>> weft.lax.linalg.triangular_solve(a, b, left_side=True, lower=True)
        Array([[1.],
               [2.]], dtype=float32)
    """
    kind = _weft.result_type(a, b)
    attrs = {
        "left": left_side,
        "lower": lower,
        "transpose": transpose_a,
        "conjugate": conjugate_a,
        "unit_diagonal": unit_diagonal,
    }
    return _weft.bind("triangular_solve", [_weft.astype(a, kind), _weft.astype(b, kind)], attrs)[0]


def eigh(x: NestedLike, *, lower: bool = True, symmetrize_input: bool = True) -> tuple[Array, Array]:
    """Eigenvectors and eigenvalues of a symmetric or Hermitian matrix, in this order.

    Args:
        x: array [..., n, n].
        lower: which triangle is read, where symmetrize_input is False.
        symmetrize_input: whether (x + x^H) / 2 is used.

    Returns: pair of eigenvectors [..., n, n] as columns, and eigenvalues [..., n], ascending.

    Raises:
        ValueError: x is not square.

    Example:
        >>> weft.lax.linalg.eigh(wnp.array([[2.0, 0.0], [0.0, 1.0]]))[1]
        Array([1., 2.], dtype=float32)
    """
    w, v = _linalg.eigh(x, "L" if lower else "U", symmetrize_input)
    return v, w


def qr(x: NestedLike, *, full_matrices: bool = True) -> tuple[Array, Array]:
    """The QR factorisation: x = q r.

    Args:
        full_matrices: whether q is square; otherwise it is [..., m, min(m, n)].

    Returns: pair of q and r.

    Example:
        >>> [part.shape for part in weft.lax.linalg.qr(wnp.ones((3, 2)), full_matrices=False)]
        [(3, 2), (2, 2)]
    """
    q, r = _linalg.qr(x, "complete" if full_matrices else "reduced")
    return q, r


def svd(x: NestedLike, *, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """The singular value decomposition: x = u diag(s) vh.

    Args:
        full_matrices: whether u and vh are square.
        compute_uv: whether to compute u and vh, too.

    Returns: tuple of u, s (descending) and vh; or s.

    Example:
        >>> weft.lax.linalg.svd(wnp.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
        Array([4., 3.], dtype=float32)
    """
    out = _linalg.svd(x, full_matrices, compute_uv)
    return tuple(out) if compute_uv else out


def lu(x: NestedLike) -> tuple[Array, Array, Array]:
    """The LU factorisation with row exchanges: row i of L U is row permutation[i] of x.

    Returns: tuple of lu [..., m, n], pivots and permutation (int32).

    Example:
        >>> weft.lax.linalg.lu(wnp.array([[1.0, 2.0], [4.0, 4.0]]))[2]
        Array([1, 0], dtype=int32)
    """
    return _linalg.lu_factor(x)


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "x": "array [..., m, n].",
}

_docs.complete(globals(), _PARAMETERS)
