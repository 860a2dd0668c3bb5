"""jax.experimental.sparse: arrays by the coordinates of their elements (BCOO), without batch and dense dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft.numpy as wnp

from .._core.errors import not_implemented, type_error, value_error
from ..tree_util import register_pytree_node_class

__all__ = ["BCOO", "bcoo_fromdense", "bcoo_todense", "empty", "eye", "todense"]


class JAXSparse:
    """What sparse arrays are instances of."""


@register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array: element number k is data[k], at indices[k]. What is there twice is summed; what lies outside of
    the shape is padding, and counts as 0.

    Args:
        args: (data, indices): nse elements, and their places [nse, rank].
        shape: the shape of the whole array.
    """

    n_batch = n_dense = 0

    def __init__(self, args: Any, *, shape: Any, indices_sorted: bool = False, unique_indices: bool = False):
        self.data, self.indices = map(wnp.asarray, args)
        self.shape = tuple(shape)
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices

    @property
    def nse(self) -> int:
        """The number of elements that are stored."""
        return self.data.shape[0]

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    n_sparse = ndim

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=int))

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """The elements of an array that are not 0; `nse` of them, which has to be given inside jit."""
        return bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> BCOO:
        """A matrix of SciPy's."""
        _refuse(n_batch, n_dense)
        coo = mat.tocoo()
        places = np.stack([coo.row, coo.col], axis=1).astype(index_dtype or np.int32)
        return cls((coo.data, places), shape=mat.shape)

    def todense(self) -> Any:
        """The whole array."""
        places = tuple(self.indices[:, d] for d in range(self.ndim))
        return wnp.zeros(self.shape, self.dtype).at[places].add(self.data, mode="drop")

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The same array, each place once, in ascending order."""
        del remove_zeros
        places, at = wnp.unique(
            self.indices, axis=0, return_inverse=True, size=nse or self.nse, fill_value=self._outside
        )
        data = wnp.zeros(places.shape[0], self.dtype).at[at.reshape(-1)].add(self.data)
        return BCOO((data, places), shape=self.shape, indices_sorted=True, unique_indices=True)

    @property
    def _outside(self) -> Any:
        return wnp.array(self.shape, self.indices.dtype)

    def transpose(self, axes: Any = None) -> BCOO:
        """The array with its dimensions reordered."""
        order = list(range(self.ndim))[::-1] if axes is None else [int(a) for a in axes]
        return BCOO(
            (self.data, self.indices[:, wnp.array(order)]),
            shape=tuple(self.shape[d] for d in order),
            unique_indices=self.unique_indices,
        )

    @property
    def T(self) -> BCOO:
        return self.transpose()

    def sum(self, axis: int | None = None) -> Any:
        """Sums of the elements, of the whole array or along an axis (an array that is not sparse)."""
        return self.data.sum() if axis is None else self.todense().sum(axis)

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, JAXSparse):
            return self @ other.todense()  # type: ignore[attr-defined]
        other = wnp.asarray(other)
        if self.ndim != 2 or other.ndim not in (1, 2):
            raise type_error(f"BCOO: the product of arrays of {self.ndim} and {other.ndim} dimensions is not there")
        if self.shape[1] != other.shape[0]:
            raise value_error(f"BCOO: the product of {self.shape} and {other.shape}: sizes differ")
        rows, columns = self.indices[:, 0], self.indices[:, 1]
        inside = (rows < self.shape[0]) & (columns < self.shape[1])
        data = wnp.where(inside, self.data, 0)
        taken = other[columns]
        terms = data * taken if other.ndim == 1 else data[:, None] * taken
        return wnp.zeros((self.shape[0], *other.shape[1:]), terms.dtype).at[rows].add(terms, mode="drop")

    def __rmatmul__(self, other: Any) -> Any:
        other = wnp.asarray(other)
        return (self.T @ other.T).T

    def __mul__(self, other: Any) -> BCOO:
        if wnp.ndim(other) == 0:
            factor = other
        else:
            factor = wnp.broadcast_to(other, self.shape)[tuple(self.indices[:, d] for d in range(self.ndim))]
        return BCOO((self.data * factor, self.indices), shape=self.shape)

    __rmul__ = __mul__

    def __neg__(self) -> BCOO:
        return BCOO((-self.data, self.indices), shape=self.shape)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, BCOO):
            if self.shape != other.shape:
                raise value_error(f"BCOO: the sum of {self.shape} and {other.shape}: shapes differ")
            data = wnp.concatenate([self.data, other.data])
            return BCOO((data, wnp.concatenate([self.indices, other.indices])), shape=self.shape)
        return self.todense() + other

    def __repr__(self) -> str:
        return f"BCOO({self.dtype}{list(self.shape)}, nse={self.nse})"

    def tree_flatten(self) -> Any:
        return (self.data, self.indices), (self.shape, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, static: Any, children: Any) -> BCOO:
        made = object.__new__(cls)
        made.data, made.indices = children
        made.shape, made.indices_sorted, made.unique_indices = static
        return made


def _refuse(n_batch: int, n_dense: int) -> None:
    if n_batch or n_dense:
        raise not_implemented(f"BCOO: n_batch={n_batch} and n_dense={n_dense}; dimensions are all sparse")


def bcoo_fromdense(
    mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0, n_batch: int = 0
) -> BCOO:
    """The elements of an array that are not 0."""
    _refuse(n_batch, n_dense)
    mat = wnp.asarray(mat)
    count = int((mat != 0).sum()) if nse is None else nse
    places = wnp.nonzero(mat, size=count, fill_value=mat.shape)
    data = mat.at[places].get(mode="fill", fill_value=0)
    indices = wnp.stack(places, axis=1).astype(index_dtype)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def bcoo_todense(mat: BCOO) -> Any:
    """The whole array."""
    return mat.todense()


def todense(arr: Any) -> Any:
    """The whole array of a sparse one; any other as it is."""
    return arr.todense() if isinstance(arr, JAXSparse) else arr  # type: ignore[attr-defined]


def empty(shape: Any, dtype: Any = None, index_dtype: Any = np.int32, sparse_format: str = "bcoo", **_: Any) -> BCOO:
    """A sparse array of zeros."""
    if sparse_format != "bcoo":
        raise not_implemented(f"sparse.empty: sparse_format={sparse_format!r}; there is 'bcoo'")
    return BCOO((wnp.zeros(0, dtype), wnp.zeros((0, len(shape)), index_dtype)), shape=shape)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, index_dtype: Any = np.int32, **_: Any) -> BCOO:
    """A sparse matrix with ones on a diagonal."""
    M = N if M is None else M
    count = max(0, min(N + min(k, 0), M - max(k, 0)))
    at = np.arange(count)
    places = np.stack([at - min(k, 0), at + max(k, 0)], axis=1).astype(index_dtype)
    return BCOO((wnp.ones(count, dtype), places), shape=(N, M), indices_sorted=True, unique_indices=True)
