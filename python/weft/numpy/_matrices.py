"""Matrices, their triangles and diagonals."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _weft
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._sharding.placing import placed
from .._weft import Array
from ..arguments import count, integer
from ..typing import DTypeLike, NDArrayLike, NestedLike
from ._creation import ones
from ._indexing import nonzero
from ._shape import shape

__all__ = [
    "diag",
    "diag_indices",
    "diag_indices_from",
    "diagflat",
    "diagonal",
    "eye",
    "identity",
    "mask_indices",
    "tri",
    "tril",
    "tril_indices",
    "tril_indices_from",
    "triu",
    "triu_indices",
    "triu_indices_from",
    "vander",
]


def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, *, device: Any = None) -> Array:
    """Ones on a diagonal of a matrix, zeros elsewhere.

    Returns: array [N, M].

    Example:
        >>> wnp.eye(2, 3, k=1)
        Array([[0., 1., 0.],
               [0., 0., 1.]], dtype=float32)
    """
    rows, columns = _places((N, N if M is None else M), "eye")
    out = (rows + _diagonal_of(rows.shape, k, "eye: k") == columns).astype(float if dtype is None else dtype)
    return placed(out, "eye", device)


def _places(shape, name: str) -> tuple[Array, Array]:
    """The row and the column of each element of a matrix."""
    shape = count(shape[0], f"{name}: N"), count(shape[1], f"{name}: M")
    return _weft.iota(shape, 0, "int32"), _weft.iota(shape, 1, "int32")


def _diagonal_of(shape: Any, k: int, what: str) -> int:
    """Which diagonal k is. All beyond the corners are alike."""
    if _weft.is_traced(k):
        if _weft.abstract(k)[0] != () or _weft.dtype_kind(_weft.abstract(k)[1]) not in ("signed", "unsigned"):
            raise type_error(f"{what} must be an integer, got {_weft.abstract(k)[3]}")
        return k
    k = integer(k, what)
    rows, columns = shape
    if isinstance(rows, int) and isinstance(columns, int):
        return builtins.max(-rows, builtins.min(k, columns))
    return k


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """The identity matrix.

    Returns: array [n, n].

    Example:
        >>> wnp.identity(2)
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Ones at and below a diagonal, zeros above.

    Returns: array [N, M].

    Example:
        >>> wnp.tri(3)
        Array([[1., 0., 0.],
               [1., 1., 0.],
               [1., 1., 1.]], dtype=float32)
    """
    rows, columns = _places((N, N if M is None else M), "tri")
    return (rows + _diagonal_of(rows.shape, k, "tri: k") >= columns).astype(float if dtype is None else dtype)


def _triangle(m, k: int, lower: bool) -> Array:
    m, name = _weft.array(m, None, False), "tril" if lower else "triu"
    if m.ndim < 2:
        raise value_error(f"{name}: two dimensions or more are needed, got shape {m.shape}")
    rows, columns = _weft.iota(m.shape[-2:], 0, "int32"), _weft.iota(m.shape[-2:], 1, "int32")
    k = _diagonal_of(rows.shape, k, f"{name}: k")
    keep = rows + k >= columns if lower else rows + k <= columns
    return _weft.where(keep, m, _weft.full((), 0, m.dtype))


def tril(m: NestedLike, k: int = 0) -> Array:
    """The lower triangle: zeros above a diagonal of the last two dimensions.

    Returns: array of the shape and dtype of m.

    Example:
        >>> wnp.tril(wnp.array([[1, 2], [3, 4]]))
        Array([[1, 0],
               [3, 4]], dtype=int32)
    """
    return _triangle(m, k, True)


def triu(m: NestedLike, k: int = 0) -> Array:
    """The upper triangle: zeros below a diagonal of the last two dimensions.

    Returns: array of the shape and dtype of m.

    Example:
        >>> wnp.triu(wnp.array([[1, 2], [3, 4]]))
        Array([[1, 2],
               [0, 4]], dtype=int32)
    """
    return _triangle(m, k, False)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, ...]:
    """The places at and below a diagonal of an n x m matrix, row by row.

    Args:
        n: the number of rows.
        m: the number of columns; None: n.

    Returns: pair of int32 vectors, rows and columns.

    Example:
        >>> wnp.tril_indices(2)
        (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return tuple(_weft.array(i, int, True) for i in np.tril_indices(n, k, m))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, ...]:
    """The places at and above a diagonal of an n x m matrix, row by row.

    Args:
        n: the number of rows.
        m: the number of columns; None: n.

    Returns: pair of int32 vectors, rows and columns.

    Example:
        >>> wnp.triu_indices(2)
        (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return tuple(_weft.array(i, int, True) for i in np.triu_indices(n, k, m))


def tril_indices_from(arr: NDArrayLike, k: int = 0) -> tuple[Array, ...]:
    """The places at and below a diagonal of a matrix, row by row.

    Returns: pair of int32 vectors, rows and columns.

    Example:
        >>> wnp.tril_indices_from(wnp.ones((2, 2)))
        (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    sizes = shape(arr)
    if len(sizes) < 2:
        raise value_error(f"tril_indices_from: a matrix is needed, got shape {sizes}")
    return tril_indices(sizes[-2], k, sizes[-1])


def triu_indices_from(arr: NDArrayLike, k: int = 0) -> tuple[Array, ...]:
    """The places at and above a diagonal of a matrix, row by row.

    Returns: pair of int32 vectors, rows and columns.

    Example:
        >>> wnp.triu_indices_from(wnp.ones((2, 2)))
        (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    sizes = shape(arr)
    if len(sizes) < 2:
        raise value_error(f"triu_indices_from: a matrix is needed, got shape {sizes}")
    return triu_indices(sizes[-2], k, sizes[-1])


def mask_indices(n: int, mask_func: Callable[..., Any], k: int = 0, *, size: int | None = None) -> tuple[Array, ...]:
    """The places of an n x n matrix that a function such as triu keeps.

    Args:
        mask_func: function (matrix, k) -> matrix, which is not 0 at those places.
        k: what it is given.
        size: how many places there are, as of nonzero, for functions whose places are not known while tracing.

    Returns: pair of int32 vectors, rows and columns.

    Example:
        >>> wnp.mask_indices(2, wnp.triu)
        (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return nonzero(mask_func(ones((n, n)), k), size=size)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The places of the main diagonal.

    Args:
        n: the size of each dimension.
        ndim: the number of dimensions.

    Returns: tuple of ndim equal int32 vectors 0 ... n-1.

    Example:
        >>> wnp.diag_indices(2)
        (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    return (_weft.iota((n,), 0, int),) * ndim


def diag_indices_from(arr: NDArrayLike) -> tuple[Array, ...]:
    """The places of the main diagonal of an array.

    Args:
        arr: array of two dimensions or more, all of one size.

    Returns: tuple of one int32 vector per dimension.

    Raises:
        ValueError: the array has one dimension, or sizes differ.

    Example:
        >>> wnp.diag_indices_from(wnp.ones((2, 2)))
        (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    sizes = shape(arr)
    if len(sizes) < 2 or len(set(sizes)) != 1:
        raise value_error(f"diag_indices_from: two or more equal dimensions are needed, got shape {sizes}")
    return diag_indices(sizes[0], len(sizes))


def diagonal(a: NestedLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """A diagonal of two dimensions, which becomes the last dimension.

    Args:
        a: array of two dimensions or more.
        offset: which diagonal: 0 the main one, positive above it, negative below.
        axis1: the axis that counts rows.
        axis2: the axis that counts columns.

    Returns: array of the other dimensions, followed by the diagonal's length.

    Raises:
        IndexError: an axis is out of range.

    Example:
        >>> wnp.diagonal(wnp.array([[1, 2], [3, 4]]))
        Array([1, 4], dtype=int32)
    """
    a = _weft.moveaxis(a, (axis1, axis2), (-2, -1))
    rows, columns = a.shape[-2:]
    offset = _diagonal_of(a.shape[-2:], offset, "diagonal: offset")
    n = builtins.max(0, builtins.min(rows, columns - offset) if offset >= 0 else builtins.min(rows + offset, columns))
    i = _weft.iota((n,), 0, "int32")
    return a[..., i + builtins.max(-offset, 0), i + builtins.max(offset, 0)]


def diag(v: NestedLike, k: int = 0) -> Array:
    """A vector as a diagonal of a matrix; or a diagonal of a matrix.

    Args:
        v: array of one or two dimensions.

    Returns: array [n + |k|, n + |k|] for a vector of n elements; a vector for a matrix.

    Raises:
        ValueError: v has another number of dimensions.

    Example:
        >>> wnp.diag(wnp.array([1, 2]))
        Array([[1, 0],
               [0, 2]], dtype=int32)
        >>> wnp.diag(wnp.array([[1, 2], [3, 4]]))
        Array([1, 4], dtype=int32)
    """
    v, k = _weft.array(v, None, False), integer(k, "diag: k")
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise value_error(f"diag: one or two dimensions are needed, got shape {v.shape}")
    n = v.shape[0] + abs(k)
    padded = _weft.pad_constant(v, [builtins.max(k, 0)], [builtins.max(-k, 0)], _weft.full((), 0, v.dtype))
    return _weft.where(
        eye(n, k=k, dtype=bool),
        padded if k >= 0 else _weft.expand_dims(_weft.pad_constant(v, [-k], [0], _weft.full((), 0, v.dtype)), 1),
        _weft.full((), 0, v.dtype),
    )


def diagflat(v: NestedLike, k: int = 0) -> Array:
    """All elements as a diagonal of a matrix.

    Args:
        v: array or number of any shape with n elements.

    Returns: array [n + |k|, n + |k|].

    Example:
        >>> wnp.diagflat(wnp.array([1, 2]), 1)
        Array([[0, 1, 0],
               [0, 0, 2],
               [0, 0, 0]], dtype=int32)
    """
    return diag(_weft.reshape(_weft.array(v, None, False), (-1,)), k)


def vander(x: NestedLike, N: int | None = None, increasing: bool = False) -> Array:
    """The Vandermonde matrix: powers of x as columns.

    Args:
        x: vector.
        N: the number of columns; None: the length of x.
        increasing: whether powers rise from left to right; otherwise they fall.

    Returns: array [length, N].

    Raises:
        ValueError: x is no vector, or N is negative.

    Example:
        >>> wnp.vander(wnp.array([2, 3]), 3)
        Array([[4, 2, 1],
               [9, 3, 1]], dtype=int32)
    """
    x = _weft.array(x, None, False)
    if x.ndim != 1:
        raise value_error(f"vander: x must be a vector, got shape {x.shape}")
    x = x.astype(int) if _weft.dtype_kind(x.dtype) == "bool" else x
    n = x.shape[0] if N is None else count(N, "vander: N")
    powers = _weft.iota((n,), 0, x.dtype)
    if not increasing:
        powers = n - 1 - powers
    return x[:, None] ** powers


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "M": "the number of columns; None: N.",
    "N": "the number of rows.",
    "arr": "array [rows, columns] whose shape counts.",
    "dtype": "the dtype of the result; None: the default float dtype.",
    "k": "which diagonal: 0 the main one, positive above it, negative below.",
    "m": "array [..., rows, columns].",
    "n": "the number of rows and columns.",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
