"""Matrices by rows (BCSR): the columns of the elements, and where each row begins; with batch and dense dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import weft.numpy as wnp

from ..._core.errors import not_implemented, value_error
from ...tree_util import register_pytree_node_class
from . import products, shapes
from .bcoo import BCOO, as_mapped, bcoo_sort_indices, bcoo_todense, extract, full_batch, parts_fromdense
from .util import JAXSparse, SparseInfo, as_array, count_stored_elements, rows_of, split_shape, starts_of


def bcoo_indices(indices: Any, indptr: Any, *, shape: Sequence[int]) -> Any:
    """The places of the elements of a BCSR, as a BCOO has them."""
    del shape
    indices, indptr = wnp.asarray(indices), wnp.asarray(indptr)
    rows = rows_of(indptr, indices.shape[-1]).astype(indices.dtype)
    return wnp.stack([rows, indices], axis=-1)


def bcsr_indices(indices: Any, *, shape: Sequence[int], index_dtype: Any = np.int32) -> tuple[Any, Any]:
    """(columns, where rows begin) of ascending places of a BCOO."""
    indices = wnp.asarray(indices)
    n_batch = indices.ndim - 2
    columns, rows = indices[..., 1], indices[..., 0]
    return columns.astype(index_dtype), starts_of(rows, shape[n_batch]).astype(index_dtype)


@register_pytree_node_class
class BCSR(JAXSparse):
    """A sparse array: row r has the elements data[indptr[r]:indptr[r + 1]] in the columns indices[...]. What is there
    twice is summed; what lies behind the last row is padding.

    Args:
        args: (data, indices, indptr): data [*batch, nse, *dense], columns [*batch, nse], [*batch, rows + 1].
        shape: the shape of the whole array: batch dimensions, rows, columns, dense dimensions.
        indices_sorted: in each row columns ascend.
        unique_indices: no place is there twice.
    """

    n_sparse = 2

    def __init__(self, args: Any, *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False):
        self.data, self.indices, self.indptr = map(as_array, args)
        self.shape = tuple(int(size) for size in shape)
        self.n_dense = self.data.ndim - self.indices.ndim
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        if self.n_dense < 0 or self.n_batch + 2 + self.n_dense != self.ndim:
            raise value_error(
                f"BCSR: data {self.data.shape} and indices {self.indices.shape} do not fit the shape {self.shape}"
            )

    n_batch = property(lambda self: self.indices.ndim - 1)

    @property
    def nse(self) -> int:
        return self.indices.shape[-1]

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    @property
    def _bufs(self) -> tuple[Any, ...]:
        return self.data, self.indices, self.indptr

    def _described(self) -> str:
        parts = {"nse": self.nse, "n_batch": self.n_batch, "n_dense": self.n_dense}
        return ", ".join(f"{name}={number}" for name, number in parts.items() if number or name == "nse")

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """The elements of an array that are not 0; `nse` of them, which has to be given inside jit."""
        return bcsr_fromdense(mat, nse=nse, index_dtype=index_dtype, n_batch=n_batch, n_dense=n_dense)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """The same array by rows."""
        if arr.n_sparse != 2:
            raise not_implemented(f"BCSR.from_bcoo: {arr.n_sparse} sparse dimensions; expected 2")
        arr = full_batch(arr if arr.indices_sorted else bcoo_sort_indices(arr))
        columns, starts = bcsr_indices(arr.indices, shape=arr.shape, index_dtype=arr.indices.dtype)
        return cls((arr.data, columns, starts), shape=arr.shape, indices_sorted=True, unique_indices=arr.unique_indices)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> BCSR:
        """A matrix of SciPy's."""
        if n_dense or n_batch:
            raise not_implemented(f"BCSR.from_scipy_sparse: n_batch={n_batch}, n_dense={n_dense}; both must be 0")
        mat, kind = mat.tocsr(), index_dtype or np.int32
        return cls((mat.data, mat.indices.astype(kind), mat.indptr.astype(kind)), shape=mat.shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, n_batch: int = 0, n_dense: int = 0, nse: int = 0, **kinds: Any) -> BCSR:
        return cls.from_bcoo(BCOO._empty(shape, n_batch=n_batch, n_dense=n_dense, nse=nse, **kinds))

    @classmethod
    def _eye(cls, N: int, M: int, k: int, **kinds: Any) -> BCSR:
        return cls.from_bcoo(BCOO._eye(N, M, k, **kinds))

    def to_bcoo(self) -> BCOO:
        """The same array by coordinates."""
        places = bcoo_indices(self.indices, self.indptr, shape=self.shape)
        return BCOO(
            (self.data, places),
            shape=self.shape,
            indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    def todense(self) -> Any:
        return bcoo_todense(self.to_bcoo())

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """The same array, each place once, in ascending order."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse=nse, remove_zeros=remove_zeros))

    def transpose(self, axes: Any = None) -> Any:
        raise not_implemented("BCSR.transpose: the columns of a matrix by rows are no rows; use to_bcoo().T")

    def _with(self, data: Any) -> BCSR:
        """The same places with other elements."""
        return BCSR(
            (data, self.indices, self.indptr),
            shape=self.shape,
            indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    def astype(self, dtype: Any) -> BCSR:
        """The array with elements of another dtype."""
        return self._with(self.data.astype(dtype))

    def __getitem__(self, index: Any) -> BCSR:
        return BCSR.from_bcoo(shapes.bcoo_getitem(self.to_bcoo(), index))

    def __matmul__(self, other: Any) -> Any:
        return products.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return products.matmul(other, self)

    def __neg__(self) -> BCSR:
        return self._with(-self.data)

    def __mul__(self, other: Any) -> Any:
        if wnp.ndim(other) == 0 and not isinstance(other, JAXSparse):
            return self._with(self.data * other)
        product = self.to_bcoo() * (other.to_bcoo() if isinstance(other, BCSR) else other)
        return BCSR.from_bcoo(product)

    __rmul__ = __mul__

    def tree_flatten(self) -> Any:
        return self._bufs, (self.shape, self.n_dense, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, static: Any, children: Any) -> BCSR:
        made = object.__new__(cls)
        made.data, made.indices, made.indptr = children
        shape, made.n_dense, made.indices_sorted, made.unique_indices = static
        made.shape = shape
        if hasattr(made.data, "ndim") and hasattr(made.indices, "ndim"):  # else a tree of something else
            made.shape = as_mapped(shape, made.data.shape, made.indices.shape, 2, made.n_dense)
        return made


def bcsr_parts_fromdense(
    mat: Any, *, nse: Any, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = np.int32
) -> tuple[Any, Any, Any]:
    """(data, columns, where rows begin) of the elements of an array that are not 0."""
    mat = wnp.asarray(mat)
    if len(split_shape(mat.shape, n_batch, n_dense)[1]) != 2:
        raise value_error(f"bcsr_fromdense: {mat.ndim - n_batch - n_dense} sparse dimensions; expected 2")
    data, places = parts_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return (data, *bcsr_indices(places, shape=mat.shape, index_dtype=index_dtype))


def bcsr_fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = np.int32
) -> BCSR:
    """The elements of an array that are not 0, by rows."""
    mat = wnp.asarray(mat)
    count = count_stored_elements(mat, n_batch, n_dense) if nse is None else nse
    parts = bcsr_parts_fromdense(mat, nse=count, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return BCSR(parts, shape=mat.shape, indices_sorted=True, unique_indices=True)


def bcsr_todense(mat: BCSR) -> Any:
    """The whole array."""
    return mat.todense()


def bcsr_extract(indices: Any, indptr: Any, mat: Any) -> Any:
    """The elements of an array at places that are given by rows."""
    return extract(bcoo_indices(indices, indptr, shape=wnp.shape(mat)), mat)


def bcsr_dot_general(lhs: Any, rhs: Any, *, dimension_numbers: Any, preferred_element_type: Any = None) -> Any:
    """lax.dot_general of arrays, of which those that are sparse are given by rows."""
    lhs, rhs = (x.to_bcoo() if isinstance(x, BCSR) else x for x in (lhs, rhs))
    return products.bcoo_dot_general(
        lhs, rhs, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type
    )


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """The same array, each place once."""
    return mat.sum_duplicates(nse=nse)


def bcsr_broadcast_in_dim(mat: BCSR, *, shape: Any, broadcast_dimensions: Any) -> BCSR:
    """lax.broadcast_in_dim; what is new are batch dimensions."""
    return BCSR.from_bcoo(
        shapes.bcoo_broadcast_in_dim(mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions)
    )


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """The arrays one after the other."""
    return BCSR.from_bcoo(shapes.bcoo_concatenate([mat.to_bcoo() for mat in operands], dimension=dimension))
