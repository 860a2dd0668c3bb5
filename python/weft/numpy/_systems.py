"""Linear systems: solutions, inverses and least squares."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _weft
from .._core import docs as _docs
from .._core.errors import value_error
from .._weft import Array
from ..arguments import is_integer
from ..custom import custom_jvp
from ..implicit import custom_linear_solve
from ..typing import NestedLike
from ._along import along
from ._factors import _adjoint, _matrix, svd
from ._linalg import matmul
from ._matrices import eye

__all__ = [
    "solve_triangular",
    "solve",
    "inv",
    "pinv",
    "lstsq",
    "tensorinv",
    "tensorsolve",
]


def computed_in(dtype: Any) -> Any:
    """The dtype in which triangular systems of a dtype are solved: floats of 16 bits in 32, and rounded once."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def solve_triangular(
    a: NestedLike, b: NestedLike, *, lower: bool = False, trans: int = 0, unit_diagonal: bool = False
) -> Array:
    """The x with a x = b, for triangular a.

    Args:
        a: array [..., n, n]; only one triangle is read.
        b: array [n], [..., n] or [..., n, k].
        lower: whether a is lower triangular; otherwise upper.
        trans: 0: a itself, 1: its transpose, 2: its adjoint.
        unit_diagonal: whether the diagonal counts as 1, and is not read.

    Returns: array of the shape of b, with the batches of both.

    Raises:
        ValueError: a is not square.
        TypeError: shapes do not fit.

    Example:
        >>> wnp.linalg.solve_triangular(wnp.array([[2.0, 1.0], [0.0, 4.0]]), wnp.array([4.0, 8.0]))
        Array([1., 2.], dtype=float32)
    """
    a, b = _matrix(a, "solve_triangular", True), _weft.promote_inexact(b)
    dtype = _weft.users_result_type(a, b)
    # One vector, or one for each matrix; what has other shapes are matrices, whose batches broadcast.
    vector = b.ndim == 1 or b.shape == a.shape[:-1]
    b = b[..., None] if vector else b
    if a.shape[:-2] != b.shape[:-2]:
        batch = _weft.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a = _weft.broadcast_to(a, (*batch, *a.shape[-2:]))
        b = _weft.broadcast_to(b, (*batch, *b.shape[-2:]))
    x = _weft.bind(
        "triangular_solve",
        [a.astype(computed_in(dtype)), b.astype(computed_in(dtype))],
        {"left": True, "lower": lower, "transpose": trans > 0, "conjugate": trans == 2, "unit_diagonal": unit_diagonal},
    )[0].astype(dtype)
    return x[..., 0] if vector else x


def solve(a: NestedLike, b: NestedLike) -> Array:
    """The x with a x = b, for square a, by the LU factorisation. inf or NaN where a is singular (NumPy raises).

    Args:
        b: vector [n], or matrices of columns [..., n, k].

    Returns: array of the shape of b, with the batches of both.

    Raises:
        ValueError: a is not square, or sizes differ.

    Example:
        >>> wnp.linalg.solve(wnp.array([[2.0, 0.0], [0.0, 4.0]]), wnp.array([2.0, 2.0]))
        Array([1. , 0.5], dtype=float32)
    """
    a, b = _matrix(a, "solve", True), _weft.promote_inexact(b)
    dtype = _weft.users_result_type(a, b)
    a, b = a.astype(dtype), b.astype(dtype)
    vector = b.ndim == 1
    b = b[:, None] if vector else b
    if a.shape[-1] != b.shape[-2]:
        raise value_error(f"solve: a of shape {a.shape} and b of shape {b.shape} do not fit")
    batch = _weft.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = _weft.broadcast_to(a, batch + a.shape[-2:]), _weft.broadcast_to(b, batch + b.shape[-2:])
    # Differentiated as a x = b, not through the factorisation, which both directions share.
    lu, _, permutation = _weft.bind("lu", [_weft.bind_elementwise("stop_gradient", (a,), {})], {})

    def by_lu(_, b):
        rows = along(b, _weft.broadcast_to(permutation[..., None], b.shape), -2)
        return solve_triangular(lu, solve_triangular(lu, rows, lower=True, unit_diagonal=True))

    def by_transposed_lu(_, b):
        rows = solve_triangular(lu, solve_triangular(lu, b, trans=1), lower=True, unit_diagonal=True, trans=1)
        back = permutation.argsort(-1)
        return along(rows, _weft.broadcast_to(back[..., None], b.shape), -2)

    if _weft.is_traced(a) or _weft.is_traced(b):
        x = custom_linear_solve(lambda x: a @ x, b, by_lu, by_transposed_lu)
    else:
        x = by_lu(None, b)
    return x[..., 0] if vector else x


def inv(a: NestedLike) -> Array:
    """The inverse of a square matrix. inf or NaN where a is singular (NumPy raises).

    Returns: array [..., n, n].

    Raises:
        ValueError: a is not square.

    Example:
        >>> wnp.linalg.inv(wnp.array([[2.0, 0.0], [0.0, 4.0]]))
        Array([[0.5 , 0.  ],
               [0.  , 0.25]], dtype=float32)
    """
    a = _matrix(a, "inv", True)
    return solve(a, _weft.broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape))


@functools.cache
def _smooth_pinv(hermitian: bool) -> Callable[[Array, Array], Array]:
    """The pseudo-inverse of a, singular values up to a share of the largest left out. Its derivative is that among
    matrices of the same rank, where pinv is smooth, and singular vectors are not: Golub and Pereyra, "The
    differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate", 1973."""

    def by_svd(a, rtol):
        u, s, vh = svd(a, full_matrices=False, hermitian=hermitian)
        keep = s > rtol[..., None] * s[..., :1]
        inverse = _weft.where(keep, 1 / _weft.where(keep, s, 1), 0)
        return matmul(_adjoint(vh) * inverse[..., None, :].astype(a.dtype), _adjoint(u))

    def rule(primals, tangents):
        (a, rtol), (da, _) = primals, tangents
        p = smooth(a, rtol)
        ph, dah = _adjoint(p), _adjoint(da)
        # From the left where that makes the smaller products.
        if a.shape[-2] >= a.shape[-1]:
            outside, inside = matmul(matmul(p, ph), dah), matmul(matmul(dah, ph), p)
            dp = inside - matmul(matmul(p, a), inside) + outside - matmul(matmul(outside, a), p)
            return p, dp - matmul(matmul(p, da), p)
        outside, inside = matmul(p, matmul(ph, dah)), matmul(dah, matmul(ph, p))
        dp = inside - matmul(p, matmul(a, inside)) + outside - matmul(outside, matmul(a, p))
        return p, dp - matmul(p, matmul(da, p))

    smooth = custom_jvp(by_svd)
    smooth.defjvp(rule)
    return smooth


def pinv(
    a: NestedLike,
    rtol: NestedLike | None = None,
    hermitian: bool = False,
    *,
    rcond: NestedLike | None = None,
) -> Array:
    """The Moore-Penrose inverse, from the singular value decomposition. Its derivative is that among matrices of the
    same rank, also where singular values are equal.

    Args:
        a: array [..., m, n].
        rtol: singular values below this share of the largest count as 0, one share for each matrix; None: 10 max(m, n)
            times the machine's precision.
        hermitian: whether a is Hermitian: as for svd.
        rcond: another name of rtol.

    Returns: array [..., n, m].

    Raises:
        ValueError: both rtol and rcond are given.

    Source: Golub and Van Loan, "Matrix computations", 5.5.2.

    Example:
        >>> wnp.linalg.pinv(wnp.array([[2.0, 0.0], [0.0, 0.0]]))
        Array([[0.5, 0. ],
               [0. , 0. ]], dtype=float32)
    """
    a = _matrix(a, "pinv", hermitian)
    if rtol is not None and rcond is not None:
        raise value_error("pinv: give one of rtol and rcond, which are the same")
    rtol = rcond if rtol is None else rtol
    if rtol is None:
        rtol = 10 * max(a.shape[-2:]) * float(np.finfo(a.dtype).eps)
    if hermitian:
        a = (a + _adjoint(a)) / 2  # as svd does
    return _smooth_pinv(hermitian)(a, _weft.array(rtol, None, False))


def lstsq(
    a: NestedLike, b: NestedLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """The x that makes |a x - b| smallest, and of those the shortest.

    Args:
        a: array [m, n].
        b: array [m] or [m, k].
        rcond: singular values below this share of the largest count as 0; None: max(m, n) times the machine's
            precision.

        numpy_resid: whether the squared distances are empty for m <= n and where the rank is not full, as in NumPy.

    Returns: tuple of x ([n] or [n, k]), squared distances ([1] or [k]), rank (int32) and singular values.

    Raises:
        ValueError: shapes do not fit.
        weft.TracerError: with numpy_resid the rank is asked for, and is traced.

    Source: Golub and Van Loan, "Matrix computations", 5.5.

    Example:
        >>> a, b = wnp.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), wnp.array([1.0, 3.0, 5.0])
        >>> wnp.round(wnp.linalg.lstsq(a, b)[0], 3)
        Array([1., 2.], dtype=float32)
    """
    a, b = _matrix(a, "lstsq"), _weft.promote_inexact(b)
    if a.ndim != 2 or b.ndim not in (1, 2) or a.shape[0] != b.shape[0]:
        raise value_error(f"lstsq: a matrix and as many rows are needed, got shapes {a.shape} and {b.shape}")
    rows, columns = a.shape
    u, s, vh = svd(a, full_matrices=False)
    rcond = float(np.finfo(s.dtype).eps) * max(rows, columns) if rcond is None or rcond < 0 else rcond
    keep = s > rcond * s[:1]
    rank = _weft.reduce("reduce_sum", keep.astype("int32"), -1, False)
    inverse = _weft.where(keep, 1 / _weft.where(keep, s, 1), 0).astype(a.dtype)
    uh_b = matmul(_adjoint(u), b)
    x = matmul(_adjoint(vh), inverse * uh_b if b.ndim == 1 else inverse[:, None] * uh_b)
    if numpy_resid and (rows <= columns or int(rank) < columns):
        residuals = _weft.full((0,), 0, s.dtype)
    else:
        distance = _weft.absolute(b - matmul(a, x))
        residuals = _weft.reduce("reduce_sum", distance * distance, 0, False).reshape(-1)
    return x, residuals, rank, s


def tensorinv(a: NestedLike, ind: int = 2) -> Array:
    """The inverse of a as a linear map from its last dimensions to its first ones.

    Args:
        a: array whose first `ind` sizes have the same product as the others.
        ind: how many dimensions are the first.

    Returns: array of the last dimensions, followed by the first.

    Raises:
        ValueError: the products differ.

    Example:
        >>> wnp.linalg.tensorinv(wnp.eye(4).reshape(2, 2, 2, 2)).shape
        (2, 2, 2, 2)
    """
    a = _weft.array(a, None, False)
    rows = a.shape[:ind]
    n = math.prod(rows)
    if ind <= 0 or n != math.prod(a.shape[ind:]):
        raise value_error(f"tensorinv: the first {ind} of the dimensions {a.shape} must make a square")
    return inv(a.reshape(n, n)).reshape(a.shape[ind:] + rows)


def tensorsolve(a: NestedLike, b: NestedLike, axes: int | Sequence[int] | None = None) -> Array:
    """The x with tensordot(a, x, x.ndim) = b.

    Args:
        a: array of b's dimensions, followed by x's, of the same product.
        b: array, number or nested list of numbers.
        axes: axes of a that move to the end first; None: none.

    Returns: array x.

    Raises:
        ValueError: the products differ.

    Example:
        >>> wnp.linalg.tensorsolve(2 * wnp.eye(4).reshape(2, 2, 2, 2), wnp.ones((2, 2)))
        Array([[0.5, 0.5],
               [0.5, 0.5]], dtype=float32)
    """
    a, b = _weft.array(a, None, False), _weft.array(b, None, False)
    if axes is not None:
        last = [x % a.ndim for x in ((axes,) if is_integer(axes) else axes)]
        a = _weft.transpose(a, [d for d in range(a.ndim) if d not in last] + last)
    shape = a.shape[b.ndim :]
    return solve(a.reshape(b.size, math.prod(shape)), b.reshape(-1)).reshape(shape)


_docs.complete(globals(), {"a": "array [..., n, n]."}, arrays=True)
