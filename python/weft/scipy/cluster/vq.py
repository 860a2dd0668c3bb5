"""Vectors beside the nearest of a few."""

from __future__ import annotations

from ... import numpy as wnp
from ..._core import docs as _docs
from ..._core.errors import value_error
from ..._weft import Array
from ...typing import NestedLike

__all__ = ["vq"]


def vq(obs: NestedLike, code_book: NestedLike, check_finite: bool = True) -> tuple[Array, Array]:
    """For each vector the nearest of a book of vectors, and how far away it is.

    Args:
        obs: array [m, n] of vectors, or [m] of numbers.
        code_book: array [k, n], or [k].

    Returns: pair (indices [m] into the book, distances [m]).

    Raises:
        ValueError: shapes do not fit.

    Source: Gersho and Gray, "Vector quantization and signal compression", 1992, 10.2.

    Example:
        >>> weft.scipy.cluster.vq.vq(wnp.array([[1.0, 1.0], [4.0, 3.0]]), wnp.array([[0.0, 0.0], [4.0, 4.0]]))
        (Array([0, 1], dtype=int32), Array([1.4142135, 1.       ], dtype=float32))
    """
    del check_finite
    obs, code_book = wnp.asarray(obs), wnp.asarray(code_book)
    dtype = wnp.result_type(obs, code_book, 1.0)
    obs, code_book = obs.astype(dtype), code_book.astype(dtype)
    if obs.ndim != code_book.ndim or obs.ndim not in (1, 2):
        raise value_error(
            f"vq: obs and code_book must both be vectors or matrices, got {obs.ndim} and {code_book.ndim}"
        )
    if obs.ndim == 1:
        obs, code_book = obs[:, None], code_book[:, None]
    if obs.shape[1] != code_book.shape[1]:
        raise value_error(f"vq: vectors have {obs.shape[1]} elements; those of code_book have {code_book.shape[1]}")
    apart = obs[:, None, :] - code_book[None, :, :]
    distance = wnp.sqrt(wnp.sum(apart * apart, -1))
    return wnp.argmin(distance, -1), wnp.min(distance, -1)


_docs.complete(globals(), {})
