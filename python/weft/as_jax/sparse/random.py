"""Random sparse arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import weft
import weft.numpy as wnp

from ..._core.errors import value_error
from .bcoo import BCOO, bcoo_sort_indices
from .util import split_shape


def random_bcoo(
    key: Any,
    shape: Sequence[int],
    *,
    dtype: Any = float,
    indices_dtype: Any = None,
    nse: float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Any] = weft.random.uniform,
    **kwds: Any,
) -> BCOO:
    """A sparse array of random elements at random places.

    Args:
        nse: how many elements each part has; below 1, the share of all.
        generator: draws elements: generator(key, shape=, dtype=, **kwds).
    """
    batch, sparse, dense = split_shape(shape, n_batch, n_dense)
    places = math.prod(sparse)
    count = math.ceil(nse * places) if 0 <= nse < 1 else int(nse)
    if count < 0 or (unique_indices and count > places):
        raise value_error(f"random_bcoo: nse={nse} of {places} places")
    key_places, key_data = weft.random.split(key)
    kind = np.int32 if indices_dtype is None else indices_dtype

    def of_one(key: Any) -> Any:
        if not sparse:
            return wnp.zeros((count, 0), kind)
        flat = weft.random.choice(key, places, shape=(count,), replace=not unique_indices)
        return wnp.stack(wnp.unravel_index(flat, sparse), axis=1).astype(kind)

    keys = weft.random.split(key_places, math.prod(batch))
    indices = weft.vmap(of_one)(keys).reshape(*batch, count, len(sparse))
    data = generator(key_data, shape=(*batch, count, *dense), dtype=dtype, **kwds)
    mat = BCOO((data, indices), shape=shape, unique_indices=unique_indices)
    return bcoo_sort_indices(mat) if sorted_indices else mat
