"""Arrays by the coordinates of their elements (BCOO)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import weft
import weft.numpy as wnp

from ..._core.errors import foreign, not_implemented, type_error, value_error
from ...tree_util import register_pytree_node_class
from .util import (
    JAXSparse,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    SparseInfo,
    as_array,
    count_stored_elements,
    grid,
    split_shape,
)

# The modules that stand above this one, whose functions the methods are: the package sets it.
above: Any = None


@register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array: element number k is data[k], at indices[k]. What is there twice is summed; what lies outside of
    the shape is padding, and counts as 0.

    Args:
        args: (data, indices): data [*batch, nse, *dense], and places [*batch, nse, number of sparse dimensions]. A size
            of 1 among the batch dimensions stands for any.
        shape: the shape of the whole array: batch, sparse, dense dimensions.
        indices_sorted: the places ascend.
        unique_indices: no place is there twice.
    """

    def __init__(self, args: Any, *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False):
        self.data, self.indices = map(as_array, args)
        self.shape = tuple(int(size) for size in shape)
        self.n_dense = self.data.ndim - self.indices.ndim + 1
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        if self.indices.ndim < 2 or self.n_dense < 0 or self.n_batch + self.n_sparse + self.n_dense != self.ndim:
            raise value_error(
                f"BCOO: data {self.data.shape} and indices {self.indices.shape} do not fit the shape {self.shape}"
            )

    n_batch = property(lambda self: self.indices.ndim - 2)
    n_sparse = property(lambda self: self.indices.shape[-1])

    @property
    def nse(self) -> int:
        """The number of elements that are stored, of each part along the batch dimensions."""
        return self.indices.shape[-2]

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    def _described(self) -> str:
        parts = {"nse": self.nse, "n_batch": self.n_batch, "n_dense": self.n_dense}
        return ", ".join(f"{name}={number}" for name, number in parts.items() if number or name == "nse")

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """The elements of an array that are not 0; `nse` of them, which has to be given inside jit."""
        return bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> BCOO:
        """A matrix of SciPy's."""
        if n_dense or n_batch:
            raise not_implemented(f"BCOO.from_scipy_sparse: n_batch={n_batch}, n_dense={n_dense}; both must be 0")
        coo = mat.tocoo()
        places = np.stack([coo.row, coo.col], axis=1).astype(index_dtype or np.int32)
        return cls((coo.data, places), shape=mat.shape)

    @classmethod
    def _empty(
        cls,
        shape: Sequence[int],
        *,
        dtype: Any = None,
        index_dtype: Any = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
        nse: int = 0,
    ) -> BCOO:
        batch, sparse, dense = split_shape(shape, n_batch, n_dense)
        places = wnp.broadcast_to(wnp.array(sparse, index_dtype), (*batch, nse, len(sparse)))
        data = wnp.zeros((*batch, nse, *dense), dtype)
        return cls((data, places), shape=shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def _eye(
        cls,
        N: int,
        M: int,
        k: int,
        *,
        dtype: Any = None,
        index_dtype: Any = np.int32,
        n_batch: int = 0,
        n_dense: int = 0,
    ) -> BCOO:
        if n_batch or n_dense:
            dense = np.eye(N, M, k, dtype=bool)
            nse = int(count_stored_elements(dense, n_batch, n_dense))
            eye = wnp.asarray(dense).astype(float if dtype is None else dtype)
            return bcoo_fromdense(eye, nse=nse, index_dtype=index_dtype, n_batch=n_batch, n_dense=n_dense)
        at = np.arange(max(0, min(N + min(k, 0), M - max(k, 0))))
        places = np.stack([at - min(k, 0), at + max(k, 0)], axis=1).astype(index_dtype)
        return cls((wnp.ones(len(at), dtype), places), shape=(N, M), indices_sorted=True, unique_indices=True)

    def to_bcoo(self) -> BCOO:
        return self

    def todense(self) -> Any:
        """The whole array."""
        return bcoo_todense(self)

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
    ) -> BCOO:
        """The same array with other numbers of batch and dense dimensions."""
        return bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The same array, each place once, in ascending order."""
        return bcoo_sum_duplicates(self, nse=nse, remove_zeros=remove_zeros)

    def sort_indices(self) -> BCOO:
        """The same array, its places in ascending order."""
        return bcoo_sort_indices(self)

    def transpose(self, axes: Any = None) -> BCOO:
        """The array with its dimensions reordered, each among those of its kind."""
        return above.shapes.bcoo_transpose(self, permutation=range(self.ndim)[::-1] if axes is None else axes)

    def reshape(self, *args: Any, **kwargs: Any) -> BCOO:
        """The array in another shape; batch and sparse dimensions stay apart."""
        sizes = args[0] if len(args) == 1 and not isinstance(args[0], (int, np.integer)) else args
        if kwargs.get("order", "C") not in ("C", None):
            raise not_implemented(f"BCOO.reshape: order={kwargs['order']!r}; expected 'C'")
        known = -math.prod(int(n) for n in sizes)
        new = [self.size // known if int(n) == -1 else int(n) for n in sizes]
        return above.shapes.bcoo_reshape(self, new_sizes=tuple(new))

    def astype(self, dtype: Any) -> BCOO:
        """The array with elements of another dtype."""
        return self._with(self.data.astype(dtype))

    def sum(self, axis: Any = None, dtype: Any = None) -> Any:
        """Sums along axes, as a sparse array; of the whole array as a number."""
        of = self if dtype is None else self.astype(dtype)
        axes = range(self.ndim) if axis is None else [axis] if isinstance(axis, (int, np.integer)) else axis
        out = above.products.bcoo_reduce_sum(of, axes=axes)
        return out if out.ndim else out.todense()

    def _with(self, data: Any, indices: Any = None) -> BCOO:
        """The same places with other elements."""
        return BCOO(
            (data, self.indices if indices is None else indices),
            shape=self.shape,
            indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    def __getitem__(self, index: Any) -> BCOO:
        return above.shapes.bcoo_getitem(self, index)

    def __iter__(self) -> Iterator[BCOO]:
        if not self.shape:
            raise type_error("iteration over an array without dimensions")
        return (self[i] for i in range(self.shape[0]))

    def __matmul__(self, other: Any) -> Any:
        return above.products.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return above.products.matmul(other, self)

    def __mul__(self, other: Any) -> Any:
        return above.products.multiply(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return above.products.divide(self, other)

    def __neg__(self) -> BCOO:
        return self._with(-self.data)

    def __pos__(self) -> BCOO:
        return self

    def __abs__(self) -> BCOO:
        unique = self if self.unique_indices else bcoo_sum_duplicates(self, nse=self.nse)
        return unique._with(abs(unique.data))

    def __pow__(self, exponent: Any) -> BCOO:
        if not isinstance(exponent, (int, np.integer)):
            raise not_implemented(f"sparse rule for pow is not implemented for the exponent {exponent!r}")
        if exponent <= 0:
            raise not_implemented("sparse rule for integer_pow with non-positive exponent is not implemented.")
        unique = self if self.unique_indices else bcoo_sum_duplicates(self, nse=self.nse)
        return unique._with(unique.data**exponent)

    def __add__(self, other: Any) -> Any:
        return above.products.add(self, other)

    def __radd__(self, other: Any) -> Any:
        return above.products.add(self, other)

    def __sub__(self, other: Any) -> Any:
        return above.products.add(self, -other)

    def __rsub__(self, other: Any) -> Any:
        return above.products.add(-self, other)

    def tree_flatten(self) -> Any:
        return (self.data, self.indices), (self.shape, self.n_dense, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, static: Any, children: Any) -> BCOO:
        made = object.__new__(cls)
        made.data, made.indices = children
        shape, made.n_dense, made.indices_sorted, made.unique_indices = static
        made.shape = shape
        if hasattr(made.data, "ndim") and hasattr(made.indices, "ndim"):  # else a tree of something else
            *places, n_sparse = made.indices.shape
            made.shape = as_mapped(shape, made.data.shape, places, n_sparse, made.n_dense)
        return made


def as_mapped(
    shape: tuple[int, ...], data: Sequence[int], places: Sequence[int], n_sparse: int, n_dense: int
) -> tuple[int, ...]:
    """The shape of an array whose parts have lost, or got, leading dimensions: vmap maps them one by one. Of `data` and
    `places` the sizes: [*batch, nse, *dense] and [*batch, nse]."""
    batches = data[: len(data) - 1 - n_dense], places[:-1]
    if len(places) - 1 + n_sparse + n_dense == len(shape):
        return shape
    return (*map(max, *batches), *shape[len(shape) - n_sparse - n_dense :])


def full_batch(mat: BCOO) -> BCOO:
    """The array with all sizes of its batch dimensions written out."""
    batch, n = mat.shape[: mat.n_batch], mat.n_batch
    data = wnp.broadcast_to(mat.data, (*batch, *mat.data.shape[n:]))
    return mat._with(data, wnp.broadcast_to(mat.indices, (*batch, *mat.indices.shape[n:])))


def _places(indices: Any, shape: Sequence[int]) -> list[Any]:
    """What indexes the batch and sparse dimensions of an array of a shape, for each element."""
    n_batch = indices.ndim - 2
    batch = grid(shape[:n_batch], 1)
    return [*batch, *(indices[..., d] for d in range(indices.shape[-1]))]


def extract(indices: Any, mat: Any, assume_unique: bool | None = None) -> Any:
    """The elements of an array at places: data of a BCOO. With assume_unique=False a place that is there twice counts
    once."""
    indices, mat = wnp.asarray(indices), wnp.asarray(mat)
    n_batch, (nse, n_sparse) = indices.ndim - 2, indices.shape[-2:]
    places = _places(indices, mat.shape)
    if n_sparse == 0:  # one element for each part, whatever the number of places
        data = wnp.expand_dims(mat, n_batch)
        data = wnp.broadcast_to(data, (*data.shape[:n_batch], nse, *data.shape[n_batch + 1 :]))
    else:
        data = mat.at[tuple(places)].get(mode="fill", fill_value=0)
    if assume_unique is not False:
        return data
    first = _is_first(indices)
    first = wnp.broadcast_to(first, data.shape[: n_batch + 1])
    return wnp.where(first.reshape(*first.shape, *[1] * (data.ndim - first.ndim)), data, wnp.zeros((), data.dtype))


def _is_first(indices: Any) -> Any:
    """Whether a place is not among those before it."""
    flat = indices.reshape(math.prod(indices.shape[:-2]), *indices.shape[-2:])
    nse = flat.shape[1]

    def of_one(places: Any) -> Any:
        if places.shape[1] == 0:
            return wnp.arange(nse) == 0
        order = wnp.lexsort([places[:, d] for d in range(places.shape[1])][::-1])
        ascending = places[order]
        new = (ascending[1:] != ascending[:-1]).any(1)
        return wnp.zeros(nse, bool).at[order].set(wnp.concatenate([wnp.ones(min(nse, 1), bool), new]))

    return weft.vmap(of_one)(flat).reshape(indices.shape[:-1])


def bcoo_extract(sparr: BCOO, arr: Any, *, assume_unique: bool | None = None) -> BCOO:
    """The elements of an array at the places of a sparse one."""
    unique = sparr.unique_indices if assume_unique is None else assume_unique
    if wnp.shape(arr) != sparr.shape:
        raise value_error(f"bcoo_extract: shapes {sparr.shape} and {wnp.shape(arr)} differ")
    return sparr._with(extract(sparr.indices, arr, assume_unique=unique))


def _scattered(data: Any, indices: Any, shape: tuple[int, ...]) -> Any:
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    if n_sparse == 0:
        whole = data.sum(n_batch, dtype=data.dtype) * wnp.ones(
            [1] * (data.ndim - 1), bool if data.dtype == bool else data.dtype
        )
        return wnp.broadcast_to(whole, shape)
    batch = tuple(shape[:n_batch])
    data = wnp.broadcast_to(data, (*batch, *data.shape[n_batch:]))
    indices = wnp.broadcast_to(indices, (*batch, *indices.shape[n_batch:]))
    return wnp.zeros(shape, data.dtype).at[tuple(_places(indices, shape))].add(data, mode="drop")


def bcoo_todense(mat: BCOO) -> Any:
    """The whole array."""
    return _scattered(mat.data, mat.indices, mat.shape)


def parts_todense(data: Any, indices: Any, *, spinfo: SparseInfo) -> Any:
    """... of its parts."""
    data, indices = wnp.asarray(data), wnp.asarray(indices)
    return _scattered(data, indices, tuple(spinfo.shape))


def parts_fromdense(
    mat: Any, *, nse: Any, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = np.int32
) -> tuple[Any, Any]:
    """(data, indices) of the elements of an array that are not 0."""
    mat = wnp.asarray(mat)
    nse = int(nse)
    batch, sparse, dense = split_shape(mat.shape, n_batch, n_dense)
    mask = (mat != 0).any(tuple(range(mat.ndim - n_dense, mat.ndim)))

    def of_one(part: Any) -> Any:
        if not sparse:
            return wnp.zeros((nse, 0), index_dtype)
        return wnp.stack(wnp.nonzero(part, size=nse, fill_value=sparse), axis=1).astype(index_dtype)

    indices = weft.vmap(of_one)(mask.reshape(math.prod(batch), *sparse)).reshape(*batch, nse, len(sparse))
    data = extract(indices, mat)
    if not sparse:  # only the first is there
        first = wnp.arange(nse).reshape(nse, *[1] * len(dense)) == 0
        data = wnp.where(first, data, wnp.zeros((), data.dtype))
    return data, indices


def bcoo_fromdense(
    mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0, n_batch: int = 0
) -> BCOO:
    """The elements of an array that are not 0: where all elements along the dense dimensions are 0 there is none."""
    mat = wnp.asarray(mat)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
        raise value_error(f"bcoo_fromdense: n_batch={n_batch} and n_dense={n_dense} of {mat.ndim} dimensions")
    count = count_stored_elements(mat, n_batch, n_dense) if nse is None else nse
    parts = parts_fromdense(mat, nse=count, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return BCOO(parts, shape=mat.shape, indices_sorted=True, unique_indices=True)


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """The same array, its places in ascending order."""
    n = mat.n_batch
    keys = [mat.indices[..., d] for d in range(mat.n_sparse)]
    if mat.n_sparse == 0 or mat.nse == 0:
        order = wnp.broadcast_to(wnp.arange(mat.nse), mat.indices.shape[:-1])
    else:
        order = wnp.lexsort(keys[::-1], axis=-1)
    indices = wnp.take_along_axis(mat.indices, order[..., None], axis=n)
    batch = tuple(max(a, b) for a, b in zip(mat.data.shape[:n], mat.indices.shape[:n], strict=True))
    data = wnp.broadcast_to(mat.data, (*batch, *mat.data.shape[n:]))
    order = wnp.broadcast_to(order, (*batch, mat.nse)).reshape(*batch, mat.nse, *[1] * mat.n_dense)
    data = wnp.take_along_axis(data, order, axis=n)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=mat.unique_indices)


def bcoo_sum_duplicates(mat: BCOO, *, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
    """The same array, each place once, in ascending order; `nse` of them, which has to be given inside jit."""
    n, sizes = mat.n_batch, mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse]
    mat = bcoo_sort_indices(full_batch(_padding_last(mat)))
    parts = math.prod(mat.shape[:n])
    data = mat.data.reshape(parts, mat.nse, *mat.data.shape[n + 1 :])
    indices = mat.indices.reshape(parts, mat.nse, mat.n_sparse)
    outside = wnp.array(sizes, indices.dtype)

    def of_one(data: Any, places: Any) -> Any:
        """Sums in the first slots, a slot for each place that is kept."""
        inside = (places < outside).all(1)
        new = wnp.concatenate([wnp.ones(min(len(places), 1), bool), (places[1:] != places[:-1]).any(1)]) & inside
        slot = wnp.cumsum(new.astype("int32")) - 1
        slot = wnp.where(inside, slot, len(places))
        sums = wnp.zeros(data.shape, data.dtype).at[slot].add(data, mode="drop")
        at = wnp.broadcast_to(outside, places.shape).at[slot].set(places, mode="drop")
        kept = wnp.arange(len(places)) < new.sum()
        if remove_zeros:
            kept = kept & (sums != 0).any(tuple(range(1, data.ndim)))
        order = wnp.argsort(~kept, stable=True)
        shown = kept[order]
        sums = wnp.where(shown.reshape(-1, *[1] * (data.ndim - 1)), sums[order], wnp.zeros((), data.dtype))
        return sums, wnp.where(shown[:, None], at[order], outside), kept.sum()

    data, indices, counts = weft.vmap(of_one)(data, indices)
    if nse is None:
        nse = int(counts.max()) if parts else 0
    data, indices = _resized(data, nse, 0), _resized(indices, nse, outside)
    batch = mat.shape[:n]
    places = (data.reshape(*batch, *data.shape[1:]), indices.reshape(*batch, *indices.shape[1:]))
    return BCOO(places, shape=mat.shape, indices_sorted=True, unique_indices=True)


def _padding_last(mat: BCOO) -> BCOO:
    """All that lies outside at one place, behind all others."""
    outside = wnp.array(mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse], mat.indices.dtype)
    inside = (mat.indices < outside).all(-1, keepdims=True)
    return mat._with(mat.data, wnp.where(inside, mat.indices, outside))


def _resized(x: Any, nse: int, fill: Any) -> Any:
    """The first `nse` along dimension 1, filled up."""
    have = x.shape[1]
    if have >= nse:
        return x[:, :nse]
    more = wnp.broadcast_to(wnp.asarray(fill, x.dtype), (x.shape[0], nse - have, *x.shape[2:]))
    return wnp.concatenate([x, more], axis=1)


def bcoo_update_layout(
    mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
) -> BCOO:
    """The same array with other numbers of batch and dense dimensions. More of them take memory: on_inefficient says
    what to do then, "error", "warn" or None."""
    n_batch = mat.n_batch if n_batch is None else int(n_batch)
    n_dense = mat.n_dense if n_dense is None else int(n_dense)
    if min(n_batch, n_dense) < 0 or n_batch + n_dense > mat.ndim:
        raise value_error(f"bcoo_update_layout: n_batch={n_batch}, n_dense={n_dense} of {mat.ndim} dimensions")
    if on_inefficient not in ("error", "warn", None):
        raise value_error(f"bcoo_update_layout: on_inefficient must be 'error', 'warn' or None, got {on_inefficient!r}")
    if n_batch > mat.n_batch or n_dense > mat.n_dense:
        message = (
            f"bcoo_update_layout: n_batch {mat.n_batch} -> {n_batch}, n_dense {mat.n_dense} -> {n_dense} stores zeros"
        )
        if on_inefficient == "error":
            raise foreign(SparseEfficiencyError(f"{message}; on_inefficient=None does it all the same"))
        if on_inefficient == "warn":
            warnings.warn(message, SparseEfficiencyWarning, stacklevel=2)
    if (n_batch, n_dense) == (mat.n_batch, mat.n_dense):
        return mat
    mat = full_batch(mat)
    while mat.n_dense > n_dense:
        mat = _dense_to_sparse(mat)
    while mat.n_batch > n_batch:
        mat = _batch_to_sparse(mat)
    while mat.n_dense < n_dense:
        mat = _sparse_to_dense(mat)
    while mat.n_batch < n_batch:
        mat = _sparse_to_batch(mat)
    return mat


def _dense_to_sparse(mat: BCOO) -> BCOO:
    n, size = mat.n_batch, mat.shape[mat.n_batch + mat.n_sparse]
    batch, nse = mat.data.shape[:n], mat.nse
    data = mat.data.reshape(*batch, nse * size, *mat.data.shape[n + 2 :])
    places = wnp.broadcast_to(mat.indices[..., None, :], (*batch, nse, size, mat.n_sparse))
    more = wnp.broadcast_to(wnp.arange(size, dtype=places.dtype)[:, None], (*batch, nse, size, 1))
    places = wnp.concatenate([places, more], axis=-1).reshape(*batch, nse * size, mat.n_sparse + 1)
    return BCOO(
        (data, places),
        shape=mat.shape,
        indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )


def _batch_to_sparse(mat: BCOO) -> BCOO:
    n = mat.n_batch - 1
    batch, size, nse = mat.data.shape[:n], mat.data.shape[n], mat.nse
    data = mat.data.reshape(*batch, size * nse, *mat.data.shape[n + 2 :])
    more = wnp.broadcast_to(wnp.arange(size, dtype=mat.indices.dtype)[:, None, None], (*batch, size, nse, 1))
    places = wnp.concatenate([more, mat.indices], axis=-1).reshape(*batch, size * nse, mat.n_sparse + 1)
    return BCOO((data, places), shape=mat.shape, unique_indices=mat.unique_indices)


def _sparse_to_dense(mat: BCOO) -> BCOO:
    """Element number k gets the whole dimension, with its number at its place."""
    n, size = mat.n_batch, mat.shape[mat.n_batch + mat.n_sparse - 1]
    at = mat.indices[..., -1:].reshape(*mat.indices.shape[:-1], 1, *[1] * mat.n_dense)
    along = wnp.arange(size, dtype=at.dtype).reshape([size, *[1] * mat.n_dense])
    here = along == at
    data = wnp.where(here, wnp.expand_dims(mat.data, n + 1), wnp.zeros((), mat.data.dtype))
    return BCOO((data, mat.indices[..., :-1]), shape=mat.shape, indices_sorted=mat.indices_sorted)


def _sparse_to_batch(mat: BCOO) -> BCOO:
    """Each part along the dimension gets all places, of which those of others lie outside."""
    n, size = mat.n_batch, mat.shape[mat.n_batch]
    at, rest = mat.indices[..., :1], mat.indices[..., 1:]
    outside = wnp.array(mat.shape[n + 1 : n + mat.n_sparse], rest.dtype)
    part = wnp.arange(size, dtype=at.dtype).reshape(size, 1, 1)
    here = wnp.expand_dims(at, n) == part
    places = wnp.where(here, wnp.expand_dims(rest, n), outside)
    one = here.reshape(*here.shape[:-1], *[1] * mat.n_dense)
    data = wnp.where(one, wnp.expand_dims(mat.data, n), wnp.zeros((), mat.data.dtype))
    return BCOO((data, places), shape=mat.shape)
