"""Linear algebra under JAX's names: factorisations as lax spells them."""

from __future__ import annotations

from typing import Any

from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import not_implemented, value_error
from .._core.names import belong_to as _belong_to
from .._matrix_functions import householder
from .._matrix_functions import schur as _schur
from .._matrix_functions.batches import of_batches
from .._matrix_functions.polar import qdwh
from .._weft import Array
from ..batching import vmap as _vmap
from ..control import fori_loop
from ..control import scan as _scan
from ..numpy import linalg as _linalg
from ..numpy._systems import computed_in
from ..typing import NestedLike

__all__ = [
    "cholesky",
    "cholesky_update",
    "eig",
    "eigh",
    "geqrf",
    "hessenberg",
    "householder_product",
    "lu",
    "lu_pivots_to_permutation",
    "ormqr",
    "qdwh",
    "qr",
    "schur",
    "svd",
    "symmetric_product",
    "triangular_solve",
    "tridiagonal",
    "tridiagonal_solve",
]


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
        b: array [..., n, k], or [..., k, n] without left_side; or of one dimension less than a: vectors [..., n].
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
    kind = _weft.users_result_type(a, b)
    attrs = {
        "left": left_side,
        "lower": lower,
        "transpose": transpose_a,
        "conjugate": conjugate_a,
        "unit_diagonal": unit_diagonal,
    }
    a, b = (_weft.astype(x, computed_in(kind)) for x in (a, b))
    vectors, axis = b.ndim == a.ndim - 1, -1 if left_side else -2
    x = _weft.bind("triangular_solve", [a, wnp.expand_dims(b, axis) if vectors else b], attrs)[0]
    return (wnp.squeeze(x, axis) if vectors else x).astype(kind)


def eigh(
    x: NestedLike, *, lower: bool = True, symmetrize_input: bool = True, sort_eigenvalues: bool = True
) -> tuple[Array, Array]:
    """Eigenvectors and eigenvalues of a symmetric or Hermitian matrix, in this order.

    Args:
        x: array [..., n, n].
        lower: which triangle is read, where symmetrize_input is False.
        symmetrize_input: whether (x + x^H) / 2 is used.
        sort_eigenvalues: accepted, without effect: they are sorted.

    Returns: pair of eigenvectors [..., n, n] as columns, and eigenvalues [..., n], ascending.

    Raises:
        ValueError: x is not square.

    Example:
        >>> weft.lax.linalg.eigh(wnp.array([[2.0, 0.0], [0.0, 1.0]]))[1]
        Array([1., 2.], dtype=float32)
    """
    del sort_eigenvalues
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


def eig(
    x: NestedLike, *, compute_left_eigenvectors: bool = True, compute_right_eigenvectors: bool = True
) -> list[Array]:
    """Eigenvalues and eigenvectors of any square matrix.

    Args:
        x: array [..., n, n].
        compute_left_eigenvectors: whether to give those of the adjoint, too: columns u with u^H x = w u^H.
        compute_right_eigenvectors: whether to give columns v with x v = w v.

    Returns: list of eigenvalues, then left and right eigenvectors as asked for, complex.

    Raises:
        ValueError: x is not square.

    Source: Golub and Van Loan, "Matrix computations", 7.5.

    Example:
        >>> weft.lax.linalg.eig(wnp.array([[2.0]]), compute_left_eigenvectors=False)[0]
        Array([2.+0.j], dtype=complex64)
    """
    w, v = _linalg.eig(x)
    out = [w]
    if compute_left_eigenvectors:
        # The rows of v's inverse, each of length 1.
        u = wnp.conj(wnp.swapaxes(wnp.linalg.inv(v), -1, -2))
        out.append(u / wnp.linalg.vector_norm(u, axis=-2, keepdims=True))
    if compute_right_eigenvectors:
        out.append(v)
    return out


def schur(
    x: NestedLike, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False, select_callable: Any = None
) -> tuple[Array, ...]:
    """Schur's form; see scipy.linalg.schur.

    Args:
        x: array [..., n, n].
        compute_schur_vectors: whether to give the vectors, too.
        sort_eig_vals: must be False.
        select_callable: must be None.

    Returns: pair (t, vectors), or a tuple of t.

    Raises:
        NotImplementedError: eigenvalues are to be sorted.

    Source: Golub and Van Loan, "Matrix computations", 7.5.

    Example:
        >>> weft.lax.linalg.schur(wnp.array([[2.0]]))[0]
        Array([[2.]], dtype=float32)
    """
    if sort_eig_vals or select_callable is not None:
        raise not_implemented("schur: sort_eig_vals and select_callable")
    t, q = _schur.schur(_square(x, "schur"))
    return (t, q) if compute_schur_vectors else (t,)


def _square(x, name: str) -> Array:
    x = _weft.promote_inexact(wnp.asarray(x))
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise value_error(f"{name}: a square matrix or a batch of them is needed, got shape {x.shape}")
    return x


def hessenberg(a: NestedLike) -> tuple[Array, Array]:
    """The Hessenberg form, packed with the reflections that make it.

    Args:
        a: array [..., n, n].

    Returns: pair (packed [..., n, n], taus [..., n - 1]): the form, with the tails of reflections where it is zero.

    Raises:
        ValueError: a is not square.

    Source: Golub and Van Loan, "Matrix computations", 7.4.2.

    Example:
        >>> weft.lax.linalg.hessenberg(wnp.eye(2))[1]
        Array([0.], dtype=float32)
    """
    out: tuple[Array, Array] = of_batches(householder.packed_hessenberg, _square(a, "hessenberg"))
    return out


def geqrf(a: NestedLike) -> tuple[Array, Array]:
    """The QR factorisation as LAPACK packs it.

    Args:
        a: array [..., m, n].

    Returns: pair of an array [..., m, n], which has r in its upper triangle and the tails of the reflections that make
    q below, and their factors [..., min(m, n)].

    Source: Golub and Van Loan, "Matrix computations", 5.2.

    Example:
        >>> packed, taus = weft.lax.linalg.geqrf(wnp.array([[2.0, 1.0], [0.0, 3.0]]))
        >>> packed
        Array([[2., 1.],
               [0., 3.]], dtype=float32)
    """
    a = _weft.promote_inexact(wnp.asarray(a))
    if a.ndim < 2:
        raise value_error(f"geqrf: a must have two dimensions or more, got shape {a.shape}")
    out: tuple[Array, Array] = of_batches(householder.packed_qr, a)
    return out


def tridiagonal(a: NestedLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """A symmetric or Hermitian matrix made tridiagonal by reflections, packed with these.

    Args:
        a: array [..., n, n].
        lower: which triangle is read and written.

    Returns: packed array [..., n, n], diagonal [..., n] and off-diagonal [..., n - 1], which are real, and the factors
    of the reflections [..., n - 1].

    Raises:
        ValueError: a is not square.

    Source: Golub and Van Loan, "Matrix computations", 8.3.1; LAPACK's sytrd.

    Example:
        >>> _, d, e, _ = weft.lax.linalg.tridiagonal(wnp.array([[1.0, 2.0], [2.0, 5.0]]))
        >>> d, e
        (Array([1., 5.], dtype=float32), Array([2.], dtype=float32))
    """
    function = lambda matrix: householder.packed_tridiagonal(matrix, lower)
    out: tuple[Array, Array, Array, Array] = of_batches(function, _square(a, "tridiagonal"))
    return out


def householder_product(a: NestedLike, taus: NestedLike) -> Array:
    """The product of reflections, as columns.

    Args:
        a: array [..., m, n], n <= m: the tails of reflections below the diagonal.
        taus: array [..., k]: their factors.

    Returns: array [..., m, n].

    Source: Golub and Van Loan, "Matrix computations", 5.1.6.

    Example:
        >>> weft.lax.linalg.householder_product(wnp.eye(2), wnp.zeros(2))
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    a, taus = _weft.promote_all_inexact(wnp.asarray(a), wnp.asarray(taus))
    if a.ndim < 2 or a.shape[-1] > a.shape[-2] or taus.shape[:-1] != a.shape[:-2] or taus.shape[-1] > a.shape[-1]:
        raise value_error(f"householder_product: a and taus must fit, got shapes {a.shape} and {taus.shape}")
    function = householder.product
    for _ in range(a.ndim - 2):
        function = _vmap(function)
    return function(a, taus)


def ormqr(a: NestedLike, taus: NestedLike, c: NestedLike, *, left: bool = True, transpose: bool = False) -> Array:
    """A matrix times the Q that reflections make, which is not formed.

    Args:
        a: array [..., m, n]: the tails of reflections below the diagonal, as a QR factorisation packs them.
        taus: array [..., k]: their factors.
        c: array [..., m, columns], or [..., rows, m] where left is False.
        left: whether Q c is computed; otherwise c Q.
        transpose: whether Q^H stands for Q.

    Returns: array of the shape of c.

    Raises:
        ValueError: shapes do not fit.

    Source: Golub and Van Loan, "Matrix computations", 5.1.6.

    Example:
        >>> weft.lax.linalg.ormqr(wnp.eye(2), wnp.zeros(2), wnp.array([[1.0], [2.0]]))
        Array([[1.],
               [2.]], dtype=float32)
    """
    a, taus, c = _weft.promote_all_inexact(wnp.asarray(a), wnp.asarray(taus), wnp.asarray(c))
    batch = a.shape[:-2]
    if a.ndim < 2 or taus.ndim != a.ndim - 1 or c.ndim != a.ndim or taus.shape[:-1] != batch or c.shape[:-2] != batch:
        raise value_error(f"ormqr: a, taus and c must fit, got shapes {a.shape}, {taus.shape} and {c.shape}")
    if c.shape[-2 if left else -1] != a.shape[-2] or taus.shape[-1] > min(a.shape[-2:]):
        raise value_error(f"ormqr: a, taus and c must fit, got shapes {a.shape}, {taus.shape} and {c.shape}")
    conjugated = lambda x: wnp.conj(wnp.swapaxes(x, -1, -2))
    # c Q = (Q^H c^H)^H
    function = lambda a, taus, c: householder.applied(a, taus, c, transpose if left else not transpose)
    out: Array = of_batches(function, a, taus, c if left else conjugated(c))
    return out if left else conjugated(out)


def lu_pivots_to_permutation(pivots: NestedLike, permutation_size: int) -> Array:
    """The order of rows that row exchanges lead to.

    Args:
        pivots: array [..., k] of integers: with which row each is exchanged, one after the other.
        permutation_size: how many rows there are.

    Returns: array [..., permutation_size] of int32.

    Raises:
        ValueError: there are more exchanges than rows.

    Source: Golub and Van Loan, "Matrix computations", 3.4.1.

    Example:
        >>> weft.lax.linalg.lu_pivots_to_permutation(wnp.array([2, 2, 2]), 3)
        Array([2, 0, 1], dtype=int32)
    """
    pivots = wnp.asarray(pivots).astype("int32")
    k = pivots.shape[-1]
    if k > permutation_size:
        raise value_error(f"lu_pivots_to_permutation: there are {k} pivots for {permutation_size} rows")
    order = wnp.broadcast_to(wnp.arange(permutation_size, dtype="int32"), (*pivots.shape[:-1], permutation_size))
    places = wnp.arange(permutation_size)

    def exchange(i, order):
        j = pivots[..., i][..., None]
        here = wnp.broadcast_to(order[..., i][..., None], j.shape)
        there = wnp.take_along_axis(order, j, -1)
        moved = wnp.where(places == j, here, order)
        return wnp.where(places == i, there, moved)

    return fori_loop(0, k, exchange, order) if k else order


def cholesky_update(r_matrix: NestedLike, w_vector: NestedLike) -> Array:
    """The upper Cholesky factor of r^T r + w w^T.

    Args:
        r_matrix: array [n, n], upper triangular.
        w_vector: array [n].

    Returns: array [n, n], upper triangular.

    Raises:
        ValueError: shapes do not fit.

    Source: Golub and Van Loan, "Matrix computations", 6.5.4.

    Example:
        >>> weft.lax.linalg.cholesky_update(wnp.array([[3.0]]), wnp.array([4.0]))
        Array([[5.]], dtype=float32)
    """
    r, w = _weft.promote_all_inexact(wnp.asarray(r_matrix), wnp.asarray(w_vector))
    if r.ndim != 2 or r.shape[0] != r.shape[1] or w.shape != r.shape[:1]:
        raise value_error(f"cholesky_update: r_matrix and w_vector must fit, got shapes {r.shape} and {w.shape}")
    n = r.shape[0]

    def turn(k, state):
        r, w = state
        size = wnp.hypot(r[k, k], w[k])
        safe = wnp.where(size == 0, 1, size)
        c, s = wnp.where(size == 0, 1, r[k, k] / safe), wnp.where(size == 0, 0, w[k] / safe)
        row = c * r[k] + s * w
        return r.at[k].set(row), c * w - s * r[k]

    return wnp.triu(fori_loop(0, n, turn, (r, w))[0])


def symmetric_product(
    a_matrix: NestedLike,
    c_matrix: NestedLike,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """alpha a a^T + beta c.

    Args:
        a_matrix: array [..., n, k].
        c_matrix: array [..., n, n], symmetric.
        alpha: a factor.
        beta: a factor.
        symmetrize_output: accepted, without effect: both triangles are right.

    Returns: array [..., n, n].

    Raises:
        ValueError: shapes do not fit.

    Source: Golub and Van Loan, "Matrix computations", 1.2.8.

    Example:
        >>> weft.lax.linalg.symmetric_product(wnp.array([[1.0, 2.0]]), wnp.zeros((1, 1)))
        Array([[5.]], dtype=float32)
    """
    del symmetrize_output
    a, c = _weft.promote_all_inexact(wnp.asarray(a_matrix), wnp.asarray(c_matrix))
    if a.ndim < 2 or c.shape != (*a.shape[:-1], a.shape[-2]):
        raise value_error(f"symmetric_product: a_matrix and c_matrix must fit, got shapes {a.shape} and {c.shape}")
    return alpha * (a @ wnp.swapaxes(a, -1, -2)) + beta * c


def tridiagonal_solve(
    dl: NestedLike, d: NestedLike, du: NestedLike, b: NestedLike, *, perturb_singular: bool = False
) -> Array:
    """The x with a x = b for tridiagonal a, by elimination with row exchanges.

    Args:
        dl: array [..., n]: the elements below the diagonal; the first does not count.
        d: array [..., n]: the diagonal.
        du: array [..., n]: the elements above it; the last does not count.
        b: array [..., n, k].
        perturb_singular: whether pivots below eps times the largest of them are replaced by that, so that solutions of
            singular systems are large, not infinite or NaN: for inverse iteration.

    Returns: array of the shape of b.

    Raises:
        ValueError: shapes do not fit.

    Source: Golub and Van Loan, "Matrix computations", 4.3.6 with partial pivoting, as LAPACK's gtsv.

    Example:
        >>> one = wnp.ones(2)
        >>> weft.lax.linalg.tridiagonal_solve(0 * one, 2 * one, 0 * one, wnp.array([[2.0], [4.0]]))
        Array([[1.],
               [2.]], dtype=float32)
    """
    dl, d, du, b = _weft.promote_all_inexact(*(wnp.asarray(v) for v in (dl, d, du, b)))
    if not (dl.shape == d.shape == du.shape) or b.shape[:-1] != d.shape:
        raise value_error(
            f"tridiagonal_solve: dl, d and du must have one shape (..., n), and b (..., n, k), got {dl.shape}, "
            f"{d.shape}, {du.shape} and {b.shape}"
        )
    first = lambda v: wnp.moveaxis(v, d.ndim - 1, 0)
    zero = wnp.zeros_like(first(d)[0])

    def down(state, row):
        """The row above, [pivot, next, right-hand side], and the one below it: the larger pivot goes up."""
        pivot, beside, value = state
        low, middle, up, right = row
        swap = wnp.abs(low) > wnp.abs(pivot)
        top, bottom = wnp.where(swap, low, pivot), wnp.where(swap, pivot, low)
        factor = bottom / wnp.where(top == 0, 1, top)
        upper = (top, wnp.where(swap, middle, beside), wnp.where(swap, up, zero))
        swap_, factor_ = swap[..., None], factor[..., None]
        solved = wnp.where(swap_, right, value)
        below = (
            wnp.where(swap, beside, middle) - factor * upper[1],
            wnp.where(swap, zero, up) - factor * upper[2],
            wnp.where(swap_, value, right) - factor_ * solved,
        )
        return below, (*upper, solved)

    low, rights = first(dl), first(b)
    rows = (low[1:], first(d)[1:], first(du).at[-1].set(0)[1:], rights[1:])
    # The last element above the diagonal does not count; of a single row it is the first.
    start = (first(d)[0], first(du)[0] if d.shape[-1] > 1 else zero, rights[0])
    last, upper = _scan(down, start, rows)
    ends = (last[0], zero, zero, last[2])
    pivots, next_, second, solved = (wnp.concatenate([rest, end[None]]) for rest, end in zip(upper, ends))
    if perturb_singular:
        limits = wnp.finfo(d.dtype)
        largest = wnp.max(wnp.abs(wnp.stack([pivots, next_, second])), axis=(0, 1))
        least = wnp.maximum(float(limits.eps) * largest, float(limits.tiny) * 2**10).astype(pivots.dtype)
        pivots = wnp.where(wnp.abs(pivots) < wnp.abs(least), wnp.where(pivots.real < 0, -least, least), pivots)

    def up(below, row):
        pivot, beside, beyond, value = row
        one, two = below
        x = (value - beside[..., None] * one - beyond[..., None] * two) / pivot[..., None]
        return (x, one), x

    nothing = wnp.zeros_like(solved[0])
    _, x = _scan(up, (nothing, nothing), (pivots, next_, second, solved), reverse=True)
    return wnp.moveaxis(x, 0, d.ndim - 1)


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "x": "array [..., m, n].",
}

_docs.complete(globals(), _PARAMETERS)
_belong_to(globals(), qdwh)
