"""Systems of equations under SciPy's names."""

from __future__ import annotations

from .. import _weft
from .. import numpy as wnp
from .._weft import Array
from ..numpy import linalg as _linalg
from ..numpy.linalg import det, inv

__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "det",
    "expm",
    "inv",
    "lu",
    "lu_factor",
    "lu_solve",
    "solve",
    "solve_triangular",
    "toeplitz",
]


def cholesky(a, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The triangular factor of a positive definite matrix, upper unless lower."""
    del overwrite_a, check_finite
    if lower:
        return _linalg.cholesky(a, symmetrize_input=False)
    # The triangle that is not asked for is not read.
    return _linalg.cholesky(_linalg._adjoint(wnp.asarray(a)), upper=True, symmetrize_input=False)


def cho_factor(a, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True):
    """(factor, lower), for cho_solve."""
    return cholesky(a, lower, overwrite_a, check_finite), lower


def cho_solve(c_and_lower, b, overwrite_b: bool = False, check_finite: bool = True) -> Array:
    """The x with a x = b, from cho_factor(a)."""
    del overwrite_b, check_finite
    c, lower = c_and_lower
    b = solve_triangular(c, b, trans=0 if lower else 2, lower=lower)
    return solve_triangular(c, b, trans=2 if lower else 0, lower=lower)


def solve_triangular(
    a, b, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False, overwrite_b=False, check_finite=True
) -> Array:
    """The x with op(a) x = b for triangular a; trans 0 or "N": a, 1 or "T": its transpose, 2 or "C": its adjoint."""
    del overwrite_b, check_finite
    op = {"N": 0, "T": 1, "C": 2}[trans] if isinstance(trans, str) else trans
    return _linalg.solve_triangular(a, b, lower=lower, trans=op, unit_diagonal=unit_diagonal)


def solve(a, b, lower: bool = False, overwrite_a=False, overwrite_b=False, check_finite=True, assume_a="gen") -> Array:
    """The x with a x = b; assume_a="pos" uses a's Cholesky factor."""
    del overwrite_a, overwrite_b, check_finite
    if assume_a == "pos":
        return cho_solve(cho_factor(a, lower), b)
    return _linalg.solve(a, b)


def lu_factor(a, overwrite_a: bool = False, check_finite: bool = True):
    """(lu, pivots): row i was exchanged with row pivots[i]."""
    del overwrite_a, check_finite
    return _linalg.lu_factor(a)[:2]


def lu_solve(lu_and_piv, b, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True) -> Array:
    """The x with a x = b, from lu_factor(a)."""
    del overwrite_b, check_finite
    if trans:
        raise NotImplementedError("lu_solve: trans")
    lu, pivots = lu_and_piv
    rows = wnp.arange(lu.shape[-1])
    for i in range(pivots.shape[-1]):
        other = rows[pivots[i]]
        rows = rows.at[pivots[i]].set(rows[i]).at[i].set(other)
    b = wnp.take(wnp.asarray(b), rows, 0)
    b = _linalg.solve_triangular(lu, b, lower=True, unit_diagonal=True)
    return _linalg.solve_triangular(lu, b)


def lu(a, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True):
    """(p, l, u) with a = p l u; with permute_l (p l, u)."""
    del overwrite_a, check_finite
    a = _weft.promote_inexact(wnp.asarray(a))
    packed, _, order = _linalg.lu_factor(a)
    m, n = a.shape
    k = min(m, n)
    lower = wnp.tril(packed[:, :k], -1) + wnp.eye(m, k, dtype=a.dtype)
    upper = wnp.triu(packed[:k])
    p = (order[None, :] == wnp.arange(m)[:, None]).astype(wnp.finfo(a.dtype).dtype)
    return (p.astype(a.dtype) @ lower, upper) if permute_l else (p, lower, upper)


def block_diag(*arrs) -> Array:
    """Matrices along the diagonal, zeros elsewhere."""
    blocks = [wnp.atleast_2d(a) for a in arrs] or [wnp.zeros((1, 0))]
    kind = wnp.result_type(*blocks)
    width = sum(b.shape[1] for b in blocks)
    rows, at = [], 0
    for b in blocks:
        rows.append(wnp.pad(b.astype(kind), ((0, 0), (at, width - at - b.shape[1]))))
        at += b.shape[1]
    return wnp.concatenate(rows, 0)


def toeplitz(c, r=None) -> Array:
    """The matrix that is constant along diagonals, with first column c and first row r (the conjugate of c)."""
    c = wnp.asarray(c).reshape(-1)
    r = wnp.conjugate(c) if r is None else wnp.asarray(r).reshape(-1)
    values = wnp.concatenate([wnp.flip(c, 0), r[1:]])
    i, j = wnp.arange(c.shape[0])[:, None], wnp.arange(r.shape[0])[None, :]
    return values[c.shape[0] - 1 - i + j]


def expm(A, *, max_squarings: int = 16) -> Array:
    """The exponential of a matrix: the Taylor polynomial of degree 18 of A / 2^s, squared s times, where s (at most
    max_squarings) brings the 1-norm below 1."""
    a = _linalg._matrix(A, "expm", True)
    norm = wnp.max(wnp.sum(wnp.abs(a), axis=-2), axis=-1)[..., None, None]
    steps = wnp.clip(wnp.ceil(wnp.log2(wnp.where(norm == 0, 1, norm))), 0, max_squarings)
    scaled = a / wnp.exp2(steps).astype(a.dtype)
    eye = wnp.broadcast_to(wnp.eye(a.shape[-1], dtype=a.dtype), a.shape)
    out = eye
    for k in range(18, 0, -1):
        out = eye + scaled @ out / k
    for k in range(max_squarings):
        out = wnp.where(k < steps, out @ out, out)
    return out
