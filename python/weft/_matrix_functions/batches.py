"""Functions of matrices for batches of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..batching import vmap


def of_batches(function: Callable[..., Any], *arrays: Any, rank: int = 2) -> Any:
    """A function of matrices (of vectors: rank 1), for each of a batch that all arrays have in front."""
    batch = arrays[0].ndim - rank
    for _ in range(batch):
        function = vmap(function)
    return function(*arrays)
