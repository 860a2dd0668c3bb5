"""Linear algebra: factorisations, systems of equations, norms. Leading dimensions are batches; all of it
differentiates."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _weft
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._core.names import belong_to as _belong_to
from .._weft import Array
from ..arguments import is_integer
from ..typing import DTypeLike, NestedLike
from ._determinants import SlogdetResult, det, slogdet
from ._factors import (
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
from ._norms import cond, matrix_norm, matrix_rank, norm, vector_norm
from ._systems import inv, lstsq, pinv, solve, solve_triangular, tensorinv, tensorsolve

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
        dtype: the dtype to sum in; None: as for sum.

    Returns: array [...].

    Example:
        >>> wnp.linalg.trace(wnp.array([[1, 2], [3, 4]]))
        Array(5, dtype=int32)
    """
    return _trace(x, offset, -2, -1, dtype)


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


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "a": "array [..., n, n].",
    "offset": "which diagonal: 0 the main one, positive above it, negative below.",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
_belong_to(globals(), SlogdetResult, det, slogdet)
_belong_to(globals(), cond, matrix_norm, matrix_rank, norm, vector_norm)
_belong_to(globals(), inv, lstsq, pinv, solve, solve_triangular, tensorinv, tensorsolve)
