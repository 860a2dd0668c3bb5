"""jax.experimental.sparse: arrays of which most elements are 0, by the elements that are not."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._core import tree as _tree
from ..._core.errors import value_error
from . import bcoo, products, shapes
from .bcoo import (
    BCOO,
    bcoo_extract,
    bcoo_fromdense,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    bcoo_todense,
    bcoo_update_layout,
)
from .bcsr import (
    BCSR,
    bcsr_broadcast_in_dim,
    bcsr_concatenate,
    bcsr_dot_general,
    bcsr_extract,
    bcsr_fromdense,
    bcsr_sum_duplicates,
    bcsr_todense,
)
from .derivatives import grad, jacfwd, jacobian, jacrev, value_and_grad
from .matrices import COO, CSC, CSR
from .products import (
    bcoo_dot_general,
    bcoo_dot_general_sampled,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
    bcoo_reduce_sum,
)
from .random import random_bcoo
from .shapes import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_conv_general_dilated,
    bcoo_dynamic_slice,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
    bcoo_transpose,
)
from .transform import SparseTracer, sparsify
from .util import CuSparseEfficiencyWarning, JAXSparse, SparseEfficiencyError, SparseEfficiencyWarning, todense

__all__ = [
    "BCOO",
    "BCSR",
    "COO",
    "CSC",
    "CSR",
    "CuSparseEfficiencyWarning",
    "JAXSparse",
    "SparseEfficiencyError",
    "SparseEfficiencyWarning",
    "SparseTracer",
    "bcoo_broadcast_in_dim",
    "bcoo_concatenate",
    "bcoo_conv_general_dilated",
    "bcoo_dot_general",
    "bcoo_dot_general_sampled",
    "bcoo_dynamic_slice",
    "bcoo_extract",
    "bcoo_fromdense",
    "bcoo_multiply_dense",
    "bcoo_multiply_sparse",
    "bcoo_reduce_sum",
    "bcoo_reshape",
    "bcoo_rev",
    "bcoo_slice",
    "bcoo_sort_indices",
    "bcoo_squeeze",
    "bcoo_sum_duplicates",
    "bcoo_todense",
    "bcoo_transpose",
    "bcoo_update_layout",
    "bcsr_broadcast_in_dim",
    "bcsr_concatenate",
    "bcsr_dot_general",
    "bcsr_extract",
    "bcsr_fromdense",
    "bcsr_sum_duplicates",
    "bcsr_todense",
    "coo_matrix",
    "csc_matrix",
    "csr_matrix",
    "empty",
    "eye",
    "grad",
    "jacfwd",
    "jacobian",
    "jacrev",
    "random_bcoo",
    "sparsify",
    "todense",
    "todense_p",
    "value_and_grad",
]

bcoo.above = types.SimpleNamespace(products=products, shapes=shapes)

_FORMATS: dict[str, Any] = {kind.__name__.lower(): kind for kind in (BCOO, BCSR, COO, CSC, CSR)}
coo_matrix, csc_matrix, csr_matrix = COO, CSC, CSR


def _format(name: str) -> Any:
    if name not in _FORMATS:
        raise value_error(f"sparse_format={name!r} is not recognised; expected one of {', '.join(_FORMATS)}")
    return _FORMATS[name]


def empty(
    shape: Sequence[int], dtype: Any = None, index_dtype: Any = np.int32, sparse_format: str = "bcoo", **kwds: Any
) -> Any:
    """A sparse array of zeros."""
    return _format(sparse_format)._empty(shape, dtype=dtype, index_dtype=index_dtype, **kwds)


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = None,
    index_dtype: Any = np.int32,
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> Any:
    """A sparse matrix with ones on a diagonal."""
    M = N if M is None else M
    return _format(sparse_format)._eye(N, M, k, dtype=dtype, index_dtype=index_dtype, **kwds)


class _Todense:
    """The operation of which todense is the function, of the parts of an array and its structure."""

    name = "todense"
    bind: Callable[..., Any] = staticmethod(lambda *parts, tree: todense(_tree.unflatten(tree, parts)))


todense_p = _Todense()
