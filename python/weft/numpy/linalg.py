"""Linear algebra: factorisations, systems of equations, norms. Leading dimensions are batches; all of it
differentiates."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .. import _docs, _weft
from .._errors import type_error, value_error
from .._weft import Array
from ..arguments import is_integer
from ..typing import ArrayLike, DTypeLike, NestedLike
from ._choosing import clip
from ._elementwise import log2
from ._factors import (
    _adjoint,
    _matrix,
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    lu_factor,
    qr,
    svd,
    svdvals,
)
from ._linalg import cross, matmul, outer, tensordot, vecdot
from ._linalg import trace as _trace
from ._matrices import diagonal as _diagonal
from ._matrices import eye
from ._primitives import exp2, sqrt
from ._reductions import max as max_of
from ._rounding import floor

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "lu_factor",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]


class SlogdetResult(NamedTuple):
    """The result of slogdet."""

    sign: Array
    logabsdet: Array


def solve_triangular(
    a: NestedLike, b: NestedLike, *, lower: bool = False, trans: int = 0, unit_diagonal: bool = False
) -> Array:
    """The x with a x = b, for triangular a.

    Args:
        a: array [..., n, n]; only one triangle is read.
        b: array [..., n] or [..., n, k].
        lower: whether a is lower triangular; otherwise upper.
        trans: 0: a itself, 1: its transpose, 2: its adjoint.
        unit_diagonal: whether the diagonal counts as 1, and is not read.

    Returns: array of the shape of b.

    Raises:
        ValueError: a is not square.
        TypeError: shapes do not fit.

    Example:
        >>> wnp.linalg.solve_triangular(wnp.array([[2.0, 1.0], [0.0, 4.0]]), wnp.array([4.0, 8.0]))
        Array([1., 2.], dtype=float32)
    """
    a, b = _matrix(a, "solve_triangular", True), _weft.promote_inexact(b)
    dtype = _weft.result_type(a, b)
    vector = b.ndim == a.ndim - 1
    b = b[..., None] if vector else b
    x = _weft.bind(
        "triangular_solve",
        [a.astype(dtype), b.astype(dtype)],
        {"left": True, "lower": lower, "transpose": trans > 0, "conjugate": trans == 2, "unit_diagonal": unit_diagonal},
    )[0]
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
    dtype = _weft.result_type(a, b)
    a, b = a.astype(dtype), b.astype(dtype)
    vector = b.ndim == 1
    b = b[:, None] if vector else b
    if a.shape[-1] != b.shape[-2]:
        raise value_error(f"solve: a of shape {a.shape} and b of shape {b.shape} do not fit")
    batch = _weft.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = _weft.broadcast_to(a, batch + a.shape[-2:]), _weft.broadcast_to(b, batch + b.shape[-2:])
    # Differentiated as a x = b, not through the factorisation, which both directions share.
    from ..implicit import custom_linear_solve

    lu, _, permutation = _weft.bind("lu", [_weft.bind_elementwise("stop_gradient", (a,), {})], {})

    def by_lu(_, b):
        rows = _weft.take_along_axis(b, _weft.broadcast_to(permutation[..., None], b.shape), -2)
        return solve_triangular(lu, solve_triangular(lu, rows, lower=True, unit_diagonal=True))

    def by_transposed_lu(_, b):
        rows = solve_triangular(lu, solve_triangular(lu, b, trans=1), lower=True, unit_diagonal=True, trans=1)
        back = permutation.argsort(-1)
        return _weft.take_along_axis(rows, _weft.broadcast_to(back[..., None], b.shape), -2)

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


def slogdet(a: NestedLike) -> SlogdetResult:
    """The sign of the determinant and the logarithm of its absolute value.

    Returns: named tuple (sign, logabsdet) of arrays [...]; the sign of a complex determinant is a number of modulus 1.

    Raises:
        ValueError: a is not square.

    Example:
        >>> wnp.linalg.slogdet(wnp.array([[-2.0, 0.0], [0.0, 1.0]]))
        SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0.6931472, dtype=float32))
    """
    return SlogdetResult(*_log_determinant()(_matrix(a, "slogdet", True)))


def _trace_of_quotient(a: Array, da: Array) -> Array:
    """The trace of a^-1 da, from the inverse: its transpose is then the gradient, and -a^-1 da a^-1 its derivative."""
    return _weft.reduce("reduce_sum", inv(a).mT * da, [-2, -1], False)


@functools.cache
def _log_determinant() -> Callable[[Array], tuple[Array, Array]]:
    """slogdet with the derivative of log(det(a)), the trace of a^-1 da: not that of the factors, which takes several
    times as many operations, at every order."""
    from ..custom import custom_jvp
    from ._primitives import log

    @custom_jvp
    def log_determinant(a):
        lu, pivots, _ = _weft.bind("lu", [a], {})
        d = _diagonal(lu, 0, -2, -1)
        size = _weft.absolute(d)
        sign = _weft.reduce("reduce_prod", d / _weft.where(size == 0, 1, size).astype(d.dtype), -1, False)
        return sign * _sign_of(pivots).astype(d.dtype), _weft.reduce("reduce_sum", log(size), -1, False)

    @log_determinant.defjvp
    def rule(primals, tangents):
        sign, size = log_determinant(*primals)
        moved = _trace_of_quotient(*primals, *tangents)
        if size.dtype == sign.dtype:
            return (sign, size), (_weft.full(sign.shape, 0, sign.dtype), moved)
        return (sign, size), (sign * (moved - moved.real.astype(sign.dtype)), moved.real)

    return log_determinant


def _sign_of(pivots: Array) -> Array:
    """1 or -1: the determinant of the permutation."""
    swaps = _weft.reduce(
        "reduce_sum", (pivots != _weft.iota((pivots.shape[-1],), 0, "int32")).astype("int32"), -1, False
    )
    return _weft.where(swaps % 2 == 1, -1, 1)


def _det_by_lu(a: Array) -> Array:
    lu, pivots, _ = _weft.bind("lu", [a], {})
    return _weft.reduce("reduce_prod", _diagonal(lu, 0, -2, -1), -1, False) * _sign_of(pivots).astype(a.dtype)


@functools.cache
def _regular_det() -> Callable[[Array], Array]:
    """The determinant of what has an inverse, with the derivative det(a) trace(a^-1 da)."""
    from ..custom import custom_jvp

    @custom_jvp
    def regular_det(a):  # a function of its own: _det_by_lu has another rule
        return _det_by_lu(a)

    @regular_det.defjvp
    def rule(primals, tangents):
        out = regular_det(*primals)
        return out, out * _trace_of_quotient(*primals, *tangents)

    return regular_det


# Derivatives up to this order are right for any rank, and all of them where the rank lacks no more.
_DEFICIENCY = 6


def _det_by_svd(a: Array) -> Array:
    """The determinant as a function that has its derivatives at a singular matrix too.

    With constants U, V, D, Z from a = U S V^H: det(a) = det(U) det(V^H) det(D) det(M - Z), where M = U^H a V D^-1 + Z
    is near the identity, D is S but for singular values that are small, and Z is diagonal and 0 but for these q. So
    det(M - Z) = det(M) det(I - M^-1 Z), and the second is the determinant of a block of q rows and columns, K, which
    is near 0: the elementary symmetric polynomial of its eigenvalues of degree q, by Newton's identities from the
    traces of its powers.
    """
    n = a.shape[-1]
    fixed = _weft.bind_elementwise("stop_gradient", (a,), {})
    u, s, vh = svd(fixed)
    largest = s[..., :1]
    small = s <= _tolerance(s.dtype) * largest
    scale = _weft.where(small, _weft.where(largest == 0, 1, largest), s)
    z = _weft.where(small, 1 - s / scale, 0)
    one, column = eye(n, dtype=a.dtype), lambda v: v.astype(a.dtype)[..., None, :]
    m = matmul(matmul(_adjoint(u), a), _adjoint(vh)) / column(scale) + one * column(z)
    block = one - solve(m, _weft.broadcast_to(one, m.shape)) * column(z)
    block = block * column(small) * small.astype(a.dtype)[..., :, None]
    count = _weft.reduce("reduce_sum", small.astype("int32"), -1, False)
    power, traces, symmetric = block, [_trace(block, 0, -2, -1)], [_weft.full(count.shape, 1, a.dtype)]
    out = _weft.where(count == 0, symmetric[0], 0)
    for k in range(1, min(n, _DEFICIENCY) + 1):
        if k > 1:
            power = matmul(power, block)
            traces.append(_trace(power, 0, -2, -1))
        total = symmetric[k - 1] * traces[0]
        for i in range(1, k):
            total = total + (-1) ** i * symmetric[k - 1 - i] * traces[i]
        symmetric.append(total / k)
        out = _weft.where(count == k, symmetric[k], out)
    constant = _det_by_lu(u) * _det_by_lu(vh) * _weft.reduce("reduce_prod", scale.astype(a.dtype), -1, False)
    out = constant * _det_by_lu(m) * out
    # The value is that of the plain determinant.
    return out + _weft.bind_elementwise("stop_gradient", (_det_by_lu(fixed) - out,), {})


def _tolerance(dtype) -> float:
    """Below this share of the largest a singular value counts as small. The Hessian's error is precision / it."""
    return 1e-7 if dtype == "float64" else 1e-3


def _balanced(a: Array) -> tuple[Array, Array]:
    """A matrix with rows and columns multiplied by powers of two, so that the numbers of each are near 1 in the mean of
    their logarithms, and the exponent of what its determinant then lacks: rows of other sizes do not make a matrix
    singular."""
    size = _weft.absolute(_weft.bind_elementwise("stop_gradient", (a,), {}))
    there = size > 0
    level = log2(_weft.where(there, size, 1))
    exponent = _weft.full(size.shape[:-2], 0, size.dtype)
    for axis in (-1, -2) * 4:  # each disturbs the other, less and less
        count = _weft.reduce("reduce_sum", there.astype(size.dtype), axis, True)
        mean = _weft.reduce("reduce_sum", level, axis, True) / _weft.where(count == 0, 1, count)
        power = clip(floor(mean + 0.5), -120, 120)
        level, a = _weft.where(there, level - power, 0), a * exp2(-power).astype(a.dtype)
        exponent = exponent + _weft.reduce("reduce_sum", power, [-2, -1], False)
    return a, exponent


@functools.cache
def _smooth_det() -> Callable[[Array], Array]:
    """The determinant, with derivatives at singular matrices: the inverse that the rule of LU has is not there."""
    from ..control import cond
    from ..custom import custom_jvp
    from ..derivatives import jvp

    def either(a):
        a, exponent = _balanced(a)
        size = _weft.absolute(_diagonal(_weft.bind("lu", [a], {})[0], 0, -2, -1))
        low, high = (_weft.reduce(f"reduce_{which}", size, -1, False) for which in ("min", "max"))
        singular = low <= _tolerance(size.dtype) * high
        # A branch may run for lanes that do not take it, so each is finite wherever the other is taken.
        safe = _weft.where(singular[..., None, None], eye(a.shape[-1], dtype=a.dtype), a)
        every = tuple(range(singular.ndim))
        anywhere = _weft.bind("reduce_or", [singular], {"dims": list(every)})[0] if every else singular
        out = cond(anywhere, lambda x, _: _det_by_svd(x), lambda _, x: _regular_det()(x), a, safe)
        half = floor(exponent / 2)  # the whole power may be too large a number
        return out * exp2(half) * exp2(exponent - half)

    smooth = custom_jvp(_det_by_lu)
    smooth.defjvp(lambda primals, tangents: jvp(either, primals, tangents))
    return smooth


def det(a: NestedLike) -> Array:
    """The determinant, by the LU factorisation; of up to three rows by expansion.

    Derivatives are right at singular matrices too: the first is the matrix of cofactors. (Orders above 6 only where the
    rank lacks at most 6. weft.jet of more than three rows is NaN there.)

    Returns: array [...].

    Raises:
        ValueError: a is not square.

    Example:
        >>> wnp.linalg.det(wnp.array([[2.0, 1.0], [1.0, 3.0]]))
        Array(5., dtype=float32)
    """
    a = _matrix(a, "det", True)
    n = a.shape[-1]
    if n not in (1, 2, 3):
        return _smooth_det()(a) if n else _det_by_lu(a)
    at = lambda i, j: a[..., i, j]
    if n == 1:
        return at(0, 0)
    minor = lambda j, k: at(n - 2, j) * at(n - 1, k) - at(n - 2, k) * at(n - 1, j)
    return minor(0, 1) if n == 2 else at(0, 0) * minor(1, 2) - at(0, 1) * minor(0, 2) + at(0, 2) * minor(0, 1)


@functools.cache
def _smooth_pinv(hermitian: bool) -> Callable[[Array, Array], Array]:
    """The pseudo-inverse of a, singular values up to a share of the largest left out. Its derivative is that among
    matrices of the same rank, where pinv is smooth, and singular vectors are not: Golub and Pereyra, "The
    differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate", 1973."""
    from ..custom import custom_jvp

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
    import numpy as np

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
    import numpy as np

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


def multi_dot(arrays: Sequence[NestedLike]) -> Array:
    """The product of several matrices, in the order that takes the fewest operations.

    Args:
        arrays: matrices whose sizes fit; the first and the last may be vectors.

    Returns: matrix, without the dimension of a vector.

    Raises:
        ValueError: there are fewer than two.
        TypeError: sizes do not fit.

    Source: dynamic programming (Cormen et al., "Introduction to algorithms", 15.2).

    Example:
        >>> wnp.linalg.multi_dot([wnp.ones((2, 3)), wnp.ones((3, 4)), wnp.ones(4)])
        Array([12., 12.], dtype=float32)
    """
    factors = [_weft.array(a, None, False) for a in arrays]
    if len(factors) < 2:
        raise value_error("multi_dot: at least two arrays are needed")
    first, last = factors[0].ndim == 1, factors[-1].ndim == 1
    if first:
        factors[0] = factors[0][None, :]
    if last:
        factors[-1] = factors[-1][:, None]
    n = len(factors)
    sizes = [a.shape[0] for a in factors] + [factors[-1].shape[1]]
    cost = {(i, i): (0, i) for i in range(n)}
    for span in range(1, n):
        for i in range(n - span):
            j = i + span
            cost[i, j] = min(
                (cost[i, k][0] + cost[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )

    def product(i: int, j: int) -> Array:
        if i == j:
            return factors[i]
        k = cost[i, j][1]
        return matmul(product(i, k), product(k + 1, j))

    out = product(0, n - 1)
    out = out[0] if first else out
    return out[..., 0] if last else out


def matrix_transpose(x: NestedLike) -> Array:
    """The last two dimensions exchanged.

    Args:
        x: array [..., m, n].

    Returns: array [..., n, m].

    Raises:
        ValueError: x has fewer than two dimensions.

    Example:
        >>> wnp.linalg.matrix_transpose(wnp.ones((5, 2, 3))).shape
        (5, 3, 2)
    """
    return _weft.array(x, None, False).mT


def diagonal(x: NestedLike, /, *, offset: int = 0) -> Array:
    """A diagonal of the last two dimensions.

    Args:
        x: array [..., m, n].

    Returns: array [..., length].

    Example:
        >>> wnp.linalg.diagonal(wnp.array([[1, 2], [3, 4]]))
        Array([1, 4], dtype=int32)
    """
    return _diagonal(x, offset, -2, -1)


def trace(x: NestedLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sum of a diagonal of the last two dimensions.

    Args:
        x: array [..., m, n].
        dtype: the dtype of the result; None: that of x.

    Returns: array [...].

    Example:
        >>> wnp.linalg.trace(wnp.array([[1, 2], [3, 4]]))
        Array(5, dtype=int32)
    """
    out = _trace(x, offset, -2, -1)
    return out if dtype is None else out.astype(dtype)


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


def matrix_rank(
    M: NestedLike, rtol: ArrayLike | None = None, *, hermitian: bool = False, tol: ArrayLike | None = None
) -> Array:
    """The number of singular values that do not count as 0.

    Args:
        M: array [..., m, n]; a vector has rank 1 unless it is 0.
        rtol: those below this share of the largest count as 0, a number or an array [...]; None: max(m, n) times the
            machine's precision.
        hermitian: whether M is symmetric or Hermitian: the absolute values of its eigenvalues take less time.
        tol: instead of rtol: those below it count as 0.

    Returns: array of int32 [...].

    Raises:
        ValueError: both rtol and tol are given, or M is not square where hermitian says so.

    Source: Golub and Van Loan, "Matrix computations", 5.4.1.

    Example:
        >>> wnp.linalg.matrix_rank(wnp.ones((3, 3)))
        Array(1, dtype=int32)
    """
    import numpy as np

    if rtol is not None and tol is not None:
        raise value_error("matrix_rank: both rtol and tol are given; expected one of them")
    a = _weft.array(M, None, False)
    if a.ndim < 2:
        return _weft.reduce("reduce_or", a != 0, None, False).astype("int32")
    s = _weft.absolute(eigvalsh(_matrix(a, "matrix_rank", True))) if hermitian else svdvals(a)
    if tol is None:
        rtol = max(a.shape[-2:]) * float(np.finfo(s.dtype).eps) if rtol is None else rtol
        tol = _weft.array(rtol, None, False) * max_of(s, -1, initial=0)
    least = _weft.array(tol, None, False)[..., None]
    return _weft.reduce("reduce_sum", (s > least).astype("int32"), -1, False)


def matrix_power(a: NestedLike, n: int) -> Array:
    """A square matrix multiplied with itself, by repeated squaring.

    Args:
        n: how often; negative: its inverse that often; 0: the identity.

    Returns: array [..., n, n].

    Raises:
        ValueError: n is negative and a is not square.

    Example:
        >>> wnp.linalg.matrix_power(wnp.array([[1, 1], [0, 1]]), 5)
        Array([[1, 5],
               [0, 1]], dtype=int32)
    """
    a = _weft.array(a, None, False)
    if not is_integer(n):
        raise type_error(f"matrix_power: the power must be an integer, got {n!r}")
    if n < 0:
        a, n = inv(a), -n
    out = None
    while n:
        if n & 1:
            out = a if out is None else matmul(out, a)
        n >>= 1
        a = matmul(a, a) if n else a
    return _weft.broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape) if out is None else out


def norm(
    x: NestedLike, ord: int | float | str | None = None, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Array:
    """The norm of vectors or matrices.

    Args:
        ord: of vectors: None or 2 (Euclidean), 1, inf, -inf, 0 (how many are not 0) or any p; of matrices: None or
            "fro", "nuc" (the sum of singular values), 1, -1, 2, -2, inf or -inf.
        axis: one axis for vectors, two for matrices; None: both of a matrix, or with ord None the flattened array.

    Returns: array without the axes, of a real float dtype.

    Raises:
        ValueError: there is no such norm, or more than two axes are given.

    Source: Golub and Van Loan, "Matrix computations", 2.2 and 2.3.

    Example:
        >>> wnp.linalg.norm(wnp.array([3.0, 4.0]))
        Array(5., dtype=float32)
    """
    x = _weft.promote_inexact(_weft.array(x, None, False))
    if axis is None:
        if ord is None:
            out = vector_norm(x.reshape(-1))
            return out.reshape((1,) * x.ndim) if keepdims else out
        axis = tuple(range(x.ndim))
    axes = (axis,) if is_integer(axis) else tuple(axis)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise value_error(f"norm: of vectors there is no norm {ord!r}; expected a number")
        return vector_norm(x, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) == 2:
        return _matrix_norm(x, axes, "fro" if ord is None else ord, keepdims)
    raise value_error(f"norm: one or two axes, got {axes}")


def vector_norm(
    x: NestedLike, *, axis: int | Sequence[int] | None = None, keepdims: bool = False, ord: int | float = 2
) -> Array:
    """The p-norm of vectors: (sum of |x|^p) ^ (1/p).

    Args:
        axis: the axis or axes along which a vector lies; None: all.
        ord: p; inf: the largest, -inf: the smallest, 0: how many are not 0.

    Returns: array without the axes, of a real float dtype.

    Example:
        >>> wnp.linalg.vector_norm(wnp.array([3.0, 4.0]), ord=1)
        Array(7., dtype=float32)
    """
    x = _weft.promote_inexact(_weft.array(x, None, False))
    size = _weft.absolute(x)
    if ord == 2:
        return sqrt(_weft.reduce("reduce_sum", size * size, axis, keepdims))
    if ord == 1:
        return _weft.reduce("reduce_sum", size, axis, keepdims)
    if ord == math.inf:
        return _largest(size, axis, keepdims)
    if ord == -math.inf:
        return _weft.reduce("reduce_min", size, axis, keepdims)
    if ord == 0:
        return _weft.reduce("reduce_sum", (size != 0).astype(size.dtype), axis, keepdims)
    return _weft.reduce("reduce_sum", size**ord, axis, keepdims) ** (1.0 / ord)


def _largest(size: Array, axis, keepdims: bool) -> Array:
    """The largest of numbers >= 0, and 0 of none. At 0 the derivative is half of what it is beside it, as in JAX."""
    return max_of(size, axis, keepdims=keepdims, initial=0)


def _matrix_norm(x, axes, order, keepdims: bool) -> Array:
    moved = _weft.moveaxis(x, axes, (-2, -1))
    size = _weft.absolute(moved)
    if order == "fro":
        out = sqrt(_weft.reduce("reduce_sum", size * size, (-2, -1), False))
    elif order == "nuc":
        out = _weft.reduce("reduce_sum", svdvals(moved), -1, False)
    elif order in (1, -1, math.inf, -math.inf, 2, -2):
        if order in (2, -2):
            each = svdvals(moved)
        else:
            each = _weft.reduce("reduce_sum", size, -2 if order in (1, -1) else -1, False)
        out = _largest(each, -1, False) if order > 0 else _weft.reduce("reduce_min", each, -1, False)
    else:
        raise value_error(f"norm: no matrix norm of order {order!r}")
    return _weft.expand_dims(out, sorted(a % x.ndim for a in axes)) if keepdims else out


def matrix_norm(x: NestedLike, *, keepdims: bool = False, ord: int | float | str = "fro") -> Array:
    """The norm of matrices.

    Args:
        x: array [..., m, n].
        ord: "fro", "nuc", 1, -1, 2, -2, inf or -inf: as for norm.

    Returns: array [...], of a real float dtype.

    Raises:
        ValueError: there is no such norm.

    Example:
        >>> wnp.linalg.matrix_norm(wnp.array([[3.0, 0.0], [0.0, 4.0]]))
        Array(5., dtype=float32)
    """
    return norm(x, ord, (-2, -1), keepdims)


def cond(x: NestedLike, p: int | float | str | None = None) -> Array:
    """The condition number: the norm of a matrix times that of its inverse.

    Args:
        x: array [..., m, n]; square unless p is None, 2 or -2.
        p: the norm, as ord of norm; None: 2. That of 2 and -2 is from the singular values.

    Returns: array [...], of a real float dtype.

    Raises:
        ValueError: there is no such norm.

    Example:
        >>> wnp.linalg.cond(wnp.array([[3.0, 0.0], [0.0, 4.0]]))
        Array(1.3333334, dtype=float32)
    """
    if p is None or p in (2, -2):
        s = svdvals(x)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return norm(x, p, (-2, -1)) * norm(inv(x), p, (-2, -1))


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "a": "array [..., n, n].",
    "offset": "which diagonal: 0 the main one, positive above it, negative below.",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
