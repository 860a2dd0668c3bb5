"""What the kinds of sparse arrays share: the class they are of, warnings, counts, and how their places index arrays."""

from __future__ import annotations

import contextvars
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import weft
import weft.numpy as wnp

from ..._core.errors import type_error


class SparseEfficiencyError(ValueError):
    """What was asked for takes more memory than the array has now."""


class SparseEfficiencyWarning(UserWarning):
    """... and is done all the same."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """A library that Weft does not use would be slow."""


class SparseInfo(NamedTuple):
    """What is known of a sparse array beside its elements."""

    shape: tuple[int, ...]
    indices_sorted: bool = False
    unique_indices: bool = False


class JAXSparse:
    """What sparse arrays are instances of."""

    shape: tuple[int, ...]
    data: Any
    __hash__ = None  # type: ignore[assignment]  # since its elements may change
    # So that NumPy's and Weft's arrays leave `x @ sparse` to it.
    __array_priority__ = 100

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nse(self) -> int:
        """The number of elements that are stored."""
        raise NotImplementedError

    def todense(self) -> Any:
        """The whole array."""
        raise NotImplementedError

    def to_bcoo(self) -> Any:
        """The same array by coordinates."""
        raise NotImplementedError

    def transpose(self, axes: Any = None) -> Any:
        """The array with its dimensions reordered."""
        raise NotImplementedError

    @property
    def T(self) -> Any:
        return self.transpose()

    def block_until_ready(self) -> Any:
        """The array, once its elements are there."""
        weft.block_until_ready(self.data)
        return self

    def __len__(self) -> int:
        if not self.shape:
            raise type_error("len() of an array without dimensions")
        return self.shape[0]

    def _described(self) -> str:
        return f"nse={self.nse}"

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            text = f"{name}({self.dtype}{list(self.shape)}, {self._described()})"
        except (AttributeError, IndexError, TypeError, ValueError):
            return f"{name}(<invalid>)"
        return f"DynamicJaxprTracer[{text}]" if isinstance(self.data, weft.Tracer) else text


def as_array(x: Any) -> Any:
    """The array itself, by which arrays that share places are known."""
    return x if isinstance(x, weft.Array) else wnp.asarray(x)


# Whether a function is being traced that sparsify was given, and whether its values are SparseTracers.
sparsifying: contextvars.ContextVar[bool | None] = contextvars.ContextVar("weft_sparsifying", default=None)
# The name by which such a program says where an array is made whole.
WHOLE = "weft.sparse.todense"


def todense(arr: Any) -> Any:
    """The whole array of a sparse one; any other as it is."""
    if isinstance(arr, JAXSparse):
        return arr.todense()
    if sparsifying.get() is not None and isinstance(arr, weft.Tracer):
        return weft.ad_checkpoint.checkpoint_name(arr, WHOLE)
    return arr


def grid(shape: Sequence[int], more: int) -> list[Any]:
    """The places along some leading dimensions, as indices that broadcast with `more` dimensions behind them."""
    rank = len(shape) + more
    return [
        np.arange(size, dtype=np.int32).reshape([size if i == d else 1 for i in range(rank)])
        for d, size in enumerate(shape)
    ]


def split_shape(shape: Sequence[int], n_batch: int, n_dense: int) -> tuple[tuple[int, ...], ...]:
    """The sizes of batch, sparse and dense dimensions."""
    shape = tuple(int(size) for size in shape)
    end = len(shape) - n_dense
    return shape[:n_batch], shape[n_batch:end], shape[end:]


def count_stored_elements_per_batch(mat: Any, n_batch: int = 0, n_dense: int = 0) -> Any:
    """How many places of each part have an element that is not 0."""
    mask = wnp.asarray(mat) != 0
    mask = mask.any(tuple(range(mask.ndim - n_dense, mask.ndim)))
    return mask.sum(tuple(range(n_batch, mask.ndim)))


def count_stored_elements(mat: Any, n_batch: int = 0, n_dense: int = 0) -> Any:
    """How many elements have to be stored."""
    counts = count_stored_elements_per_batch(mat, n_batch, n_dense)
    return counts.max() if counts.size else 0


def rows_of(indptr: Any, nse: int) -> Any:
    """The row of each element, of where rows begin; behind the last row for what is padding."""
    flat = indptr.reshape(math.prod(indptr.shape[:-1]), indptr.shape[-1])
    at = wnp.arange(nse, dtype=indptr.dtype)
    rows = weft.vmap(lambda starts: wnp.searchsorted(starts, at, side="right"))(flat) - 1
    return rows.reshape(*indptr.shape[:-1], nse).astype(indptr.dtype)


def starts_of(rows: Any, count: int) -> Any:
    """Where rows begin, of the ascending row of each element."""
    flat = rows.reshape(math.prod(rows.shape[:-1]), rows.shape[-1])
    numbers = wnp.arange(count + 1, dtype=rows.dtype)
    starts = weft.vmap(lambda row: wnp.searchsorted(row, numbers))(flat)
    return starts.reshape(*rows.shape[:-1], count + 1).astype(rows.dtype)


def csr_to_coo(indices: Any, indptr: Any) -> tuple[Any, Any]:
    """(rows, columns) of the elements of a matrix that is stored by rows."""
    return rows_of(wnp.asarray(indptr), len(indices)), indices
