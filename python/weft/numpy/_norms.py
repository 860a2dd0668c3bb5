"""Norms of vectors and matrices, and what singular values say: the condition and the rank."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .. import _weft
from .._core import docs as _docs
from .._core.errors import value_error
from .._weft import Array
from ..arguments import is_integer
from ..typing import ArrayLike, NestedLike
from ._factors import _matrix, eigvalsh, svdvals
from ._primitives import sqrt
from ._reductions import max as max_of
from ._systems import inv

__all__ = [
    "norm",
    "vector_norm",
    "matrix_norm",
    "cond",
    "matrix_rank",
]


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
    x: NestedLike, *, axis: int | Sequence[int] | None = None, keepdims: bool = False, ord: int | float | None = 2
) -> Array:
    """The p-norm of vectors: (sum of |x|^p) ^ (1/p).

    Args:
        axis: the axis or axes along which a vector lies; None: all.
        ord: p; None: 2; inf: the largest, -inf: the smallest, 0: how many are not 0.

    Returns: array without the axes, of a real float dtype.

    Raises:
        ValueError: ord is a text: the norms of matrices have names.

    Example:
        >>> wnp.linalg.vector_norm(wnp.array([3.0, 4.0]), ord=1)
        Array(7., dtype=float32)
    """
    x = _weft.promote_inexact(_weft.array(x, None, False))
    ord = ord.item() if isinstance(ord, np.generic) else ord
    size = _weft.absolute(x)
    if isinstance(ord, str):
        raise value_error(f"vector_norm: no norm of vectors has the order {ord!r}; matrix_norm has")
    if ord is None or ord == 2:
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


_docs.complete(globals(), {"a": "array [..., n, n]."}, arrays=True)
