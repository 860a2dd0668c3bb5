"""Matrices without batch dimensions: by coordinates (COO), by rows (CSR) and by columns (CSC)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import weft.numpy as wnp

from ..._core.errors import not_implemented, type_error, value_error
from ...tree_util import register_pytree_node_class
from .bcoo import BCOO, bcoo_fromdense
from .util import JAXSparse, as_array, count_stored_elements, csr_to_coo, starts_of


class COOInfo(NamedTuple):
    """What is known of a COO beside its elements."""

    shape: tuple[int, ...]
    rows_sorted: bool = False
    cols_sorted: bool = False


def _todense(data: Any, row: Any, col: Any, shape: Sequence[int]) -> Any:
    data = wnp.asarray(data)
    return wnp.zeros(tuple(shape), data.dtype).at[row, col].add(data, mode="drop")


def _product(data: Any, row: Any, col: Any, other: Any, shape: Sequence[int], transpose: bool) -> Any:
    """A matrix times a vector or matrix: each element times the row that it meets, added where it belongs."""
    data, row, col, other = map(wnp.asarray, (data, row, col, other))
    if transpose:
        row, col, shape = col, row, shape[::-1]
    if other.ndim not in (1, 2) or other.shape[0] != shape[1]:
        raise type_error(f"a sparse matrix of shape {tuple(shape)} times an array of shape {other.shape}")
    dtype = wnp.result_type(data, other)
    met = other.at[col].get(mode="fill", fill_value=0).astype(dtype)
    terms = data.astype(dtype).reshape(-1, *[1] * (other.ndim - 1)) * met
    return wnp.zeros((shape[0], *other.shape[1:]), dtype).at[row].add(terms, mode="drop")


def _elements(mat: Any, nse: Any, index_dtype: Any) -> tuple[Any, Any, Any]:
    mat = wnp.asarray(mat)
    if mat.ndim != 2:
        raise value_error(f"a matrix is needed, got an array of shape {mat.shape}")
    count = count_stored_elements(mat) if nse is None else nse
    of = bcoo_fromdense(mat, nse=int(count), index_dtype=index_dtype)
    return of.data, of.indices[:, 0], of.indices[:, 1]


class _Matrix(JAXSparse):
    """What the three have alike: (rows, columns) of the elements say all else."""

    _parts: tuple[str, ...]

    def __init__(self, args: Any, *, shape: Sequence[int]):
        for name, part in zip(self._parts, args, strict=True):
            setattr(self, name, as_array(part))
        self.shape = tuple(int(size) for size in shape)
        if len(self.shape) != 2:
            raise value_error(f"{type(self).__name__}: a matrix has 2 dimensions, got shape {self.shape}")

    @property
    def nse(self) -> int:
        return self.data.shape[0]

    def _rows_and_columns(self) -> tuple[Any, Any]:
        raise NotImplementedError

    def _with(self, data: Any) -> Any:
        return type(self)((data, *(getattr(self, name) for name in self._parts[1:])), shape=self.shape)

    def to_bcoo(self) -> BCOO:
        """The same matrix as a BCOO."""
        return BCOO((self.data, wnp.stack(self._rows_and_columns(), axis=1)), shape=self.shape)

    def todense(self) -> Any:
        return _todense(self.data, *self._rows_and_columns(), self.shape)

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, JAXSparse):
            raise not_implemented(f"{type(self).__name__} @ {type(other).__name__}: convert both to BCOO")
        return _product(self.data, *self._rows_and_columns(), other, self.shape, False)

    def __neg__(self) -> Any:
        return self._with(-self.data)

    def __mul__(self, other: Any) -> Any:
        if wnp.ndim(other) != 0:
            raise not_implemented(f"{type(self).__name__} * array: convert it to BCOO")
        return self._with(self.data * other)

    __rmul__ = __mul__

    def tree_flatten(self) -> Any:
        return tuple(getattr(self, name) for name in self._parts), self.shape

    @classmethod
    def tree_unflatten(cls, static: Any, children: Any) -> Any:
        made = object.__new__(cls)
        for name, part in zip(cls._parts, children, strict=True):
            setattr(made, name, part)
        made.shape = static
        return made


@register_pytree_node_class
class COO(_Matrix):
    """A matrix: element number k is data[k], in row row[k] and column col[k].

    Args:
        args: (data, row, col).
        shape: (rows, columns).
        rows_sorted: rows ascend, and columns within each.
        cols_sorted: columns ascend, and rows within each.
    """

    _parts = "data", "row", "col"

    def __init__(self, args: Any, *, shape: Sequence[int], rows_sorted: bool = False, cols_sorted: bool = False):
        super().__init__(args, shape=shape)
        self._rows_sorted, self._cols_sorted = rows_sorted, cols_sorted

    @property
    def _info(self) -> COOInfo:
        return COOInfo(self.shape, self._rows_sorted, self._cols_sorted)

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
        """The elements of a matrix that are not 0."""
        return cls(_elements(mat, nse, index_dtype), shape=wnp.shape(mat), rows_sorted=True)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = np.int32) -> COO:
        none = wnp.zeros(0, index_dtype)
        return cls((wnp.zeros(0, dtype), none, none), shape=shape, rows_sorted=True, cols_sorted=True)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = np.int32) -> COO:
        eye = BCOO._eye(N, M, k, dtype=dtype, index_dtype=index_dtype)
        parts = eye.data, eye.indices[:, 0], eye.indices[:, 1]
        return cls(parts, shape=(N, M), rows_sorted=True, cols_sorted=True)

    def _rows_and_columns(self) -> tuple[Any, Any]:
        return self.row, self.col  # type: ignore[attr-defined]

    def _sort_indices(self) -> COO:
        row, col = self._rows_and_columns()
        order = wnp.lexsort([col, row])
        return COO((self.data[order], row[order], col[order]), shape=self.shape, rows_sorted=True)

    def transpose(self, axes: Any = None) -> COO:
        _check_axes(axes)
        row, col = self._rows_and_columns()
        return COO(
            (self.data, col, row), shape=self.shape[::-1], rows_sorted=self._cols_sorted, cols_sorted=self._rows_sorted
        )

    def tree_flatten(self) -> Any:
        return (self.data, *self._rows_and_columns()), (self.shape, self._rows_sorted, self._cols_sorted)

    @classmethod
    def tree_unflatten(cls, static: Any, children: Any) -> COO:
        made = super().tree_unflatten(static[0], children)
        made._rows_sorted, made._cols_sorted = static[1:]
        return made


def _check_axes(axes: Any) -> None:
    if axes is not None and [a % 2 for a in axes] != [1, 0]:
        raise not_implemented(f"transpose of a sparse matrix by axes={axes}; expected None")


class _Compressed(_Matrix):
    """By rows, or by columns: where each begins."""

    _parts = "data", "indices", "indptr"
    indices: Any
    indptr: Any
    _by_rows: bool

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> Any:
        """The elements of a matrix that are not 0."""
        mat = wnp.asarray(mat)
        parts = csr_fromdense(mat if cls._by_rows else mat.T, nse=nse, index_dtype=index_dtype)
        return cls(parts, shape=mat.shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = np.int32) -> Any:
        lines = shape[0] if cls._by_rows else shape[1]
        parts = wnp.zeros(0, dtype), wnp.zeros(0, index_dtype), wnp.zeros(lines + 1, index_dtype)
        return cls(parts, shape=shape)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = np.int32) -> Any:
        n, m, at = (N, M, k) if cls._by_rows else (M, N, -k)
        eye = BCOO._eye(n, m, at, dtype=dtype, index_dtype=index_dtype)
        return cls((eye.data, eye.indices[:, 1], starts_of(eye.indices[:, 0], n)), shape=(N, M))

    def _rows_and_columns(self) -> tuple[Any, Any]:
        lines, across = csr_to_coo(self.indices, self.indptr)
        return (lines, across) if self._by_rows else (across, lines)


@register_pytree_node_class
class CSR(_Compressed):
    """A matrix by rows: row r has the elements data[indptr[r]:indptr[r + 1]] in the columns indices[...].

    Args:
        args: (data, indices, indptr).
        shape: (rows, columns).
    """

    _by_rows = True

    def transpose(self, axes: Any = None) -> CSC:
        _check_axes(axes)
        return CSC((self.data, self.indices, self.indptr), shape=self.shape[::-1])


@register_pytree_node_class
class CSC(_Compressed):
    """A matrix by columns: column c has the elements data[indptr[c]:indptr[c + 1]] in the rows indices[...].

    Args:
        args: (data, indices, indptr).
        shape: (rows, columns).
    """

    _by_rows = False

    def transpose(self, axes: Any = None) -> CSR:
        _check_axes(axes)
        return CSR((self.data, self.indices, self.indptr), shape=self.shape[::-1])


def csr_fromdense(mat: Any, *, nse: Any = None, index_dtype: Any = np.int32) -> tuple[Any, Any, Any]:
    """(data, columns, where rows begin)."""
    data, row, col = _elements(mat, nse, index_dtype)
    return data, col, starts_of(row, wnp.shape(mat)[0]).astype(index_dtype)


def csr_todense(data: Any, indices: Any, indptr: Any, *, shape: Sequence[int]) -> Any:
    """The whole matrix."""
    return _todense(data, *csr_to_coo(wnp.asarray(indices), indptr), shape)


def csr_product(
    data: Any, indices: Any, indptr: Any, other: Any, *, shape: Sequence[int], transpose: bool = False
) -> Any:
    """The matrix, or its transpose, times a vector or matrix."""
    return _product(data, *csr_to_coo(wnp.asarray(indices), indptr), other, shape, transpose)


def coo_fromdense(mat: Any, *, nse: Any = None, index_dtype: Any = np.int32) -> tuple[Any, Any, Any]:
    """(data, rows, columns)."""
    return _elements(mat, nse, index_dtype)


def coo_todense(data: Any, row: Any, col: Any, *, spinfo: COOInfo) -> Any:
    """The whole matrix."""
    return _todense(data, row, col, spinfo.shape)


def coo_product(data: Any, row: Any, col: Any, other: Any, *, spinfo: COOInfo, transpose: bool = False) -> Any:
    """The matrix, or its transpose, times a vector or matrix."""
    return _product(data, row, col, other, spinfo.shape, transpose)
