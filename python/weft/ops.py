"""Reductions over segments, as jax.ops."""

from __future__ import annotations

from typing import Any

from . import _weft
from . import numpy as wnp
from ._core import docs as _docs
from ._core.errors import value_error
from ._weft import Array
from .numpy._out_sharding import lying
from .typing import NestedLike

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def _segments(name: str, update: str, data, segment_ids, num_segments, neutral) -> Array:
    data, ids = wnp.asarray(data), wnp.asarray(segment_ids)
    if ids.ndim == 1 and (data.ndim == 0 or data.shape[0] == 1):  # one row for all ids
        data = wnp.broadcast_to(data, (ids.shape[0], *data.shape[1:]))
    if ids.ndim != 1 or data.shape[0] != ids.shape[0]:
        raise value_error(f"{name}: a vector of one id per row is needed, got shapes {data.shape} and {ids.shape}")
    if num_segments is None:
        num_segments = int(wnp.max(ids)) + 1 if ids.size else 0
    # Negative ids are out of range, like those that are too large: their rows are dropped.
    ids = wnp.where(ids < 0, num_segments, ids)
    start = _weft.full((num_segments, *data.shape[1:]), neutral(data.dtype), data.dtype)
    return getattr(start.at[ids], update)(data)


def _extreme(which: str):
    def neutral(dtype):
        if _weft.dtype_kind(dtype) == "bool":
            return which == "min"
        if _weft.is_inexact(dtype):
            return float("-inf") if which == "max" else float("inf")
        return getattr(wnp.iinfo(dtype), "min" if which == "max" else "max")

    return neutral


def segment_sum(
    data: NestedLike,
    segment_ids: NestedLike,
    num_segments: int | None = None,
    *_: Any,
    out_sharding: Any = None,
    **__: Any,
) -> Array:
    """The sums of rows that have the same id.

    Args:
        *_: accepted, without effect.
        out_sharding: how the result is cut: a weft.NamedSharding, or a PartitionSpec for the mesh around the call.
        **__: accepted, without effect.

    Returns: array [num_segments, ...] of the dtype of data: row i is the sum of those with id i, 0 where there are
        none.

    Raises:
        ValueError: there is not one id per row.
        weft.TracerError: ids are traced and num_segments is not given.

    Example:
        >>> weft.ops.segment_sum(wnp.array([1, 2, 3]), wnp.array([0, 0, 2]))
        Array([3, 0, 3], dtype=int32)
    """
    if out_sharding is not None:
        return lying(out_sharding, segment_sum, data, segment_ids, num_segments)
    return _segments("segment_sum", "add", data, segment_ids, num_segments, lambda _: 0)


def segment_prod(
    data: NestedLike,
    segment_ids: NestedLike,
    num_segments: int | None = None,
    *_: Any,
    out_sharding: Any = None,
    **__: Any,
) -> Array:
    """The products of rows that have the same id.

    Args:
        *_: accepted, without effect.
        out_sharding: how the result is cut: a weft.NamedSharding, or a PartitionSpec for the mesh around the call.
        **__: accepted, without effect.

    Returns: array [num_segments, ...] of the dtype of data; 1 where there are none.

    Raises:
        ValueError: there is not one id per row.
        weft.TracerError: ids are traced and num_segments is not given.

    Example:
        >>> weft.ops.segment_prod(wnp.array([2, 3, 4]), wnp.array([0, 0, 2]))
        Array([6, 1, 4], dtype=int32)
    """
    if out_sharding is not None:
        return lying(out_sharding, segment_prod, data, segment_ids, num_segments)
    return _segments("segment_prod", "multiply", data, segment_ids, num_segments, lambda _: 1)


def segment_max(
    data: NestedLike,
    segment_ids: NestedLike,
    num_segments: int | None = None,
    *_: Any,
    out_sharding: Any = None,
    **__: Any,
) -> Array:
    """The largest of rows that have the same id.

    Args:
        *_: accepted, without effect.
        out_sharding: how the result is cut: a weft.NamedSharding, or a PartitionSpec for the mesh around the call.
        **__: accepted, without effect.

    Returns: array [num_segments, ...] of the dtype of data; -inf (the smallest integer) where there are none.

    Raises:
        ValueError: there is not one id per row.
        weft.TracerError: ids are traced and num_segments is not given.

    Example:
        >>> weft.ops.segment_max(wnp.array([1.0, 5.0, 3.0]), wnp.array([0, 0, 2]))
        Array([  5., -inf,   3.], dtype=float32)
    """
    if out_sharding is not None:
        return lying(out_sharding, segment_max, data, segment_ids, num_segments)
    return _segments("segment_max", "max", data, segment_ids, num_segments, _extreme("max"))


def segment_min(
    data: NestedLike,
    segment_ids: NestedLike,
    num_segments: int | None = None,
    *_: Any,
    out_sharding: Any = None,
    **__: Any,
) -> Array:
    """The smallest of rows that have the same id.

    Args:
        *_: accepted, without effect.
        out_sharding: how the result is cut: a weft.NamedSharding, or a PartitionSpec for the mesh around the call.
        **__: accepted, without effect.

    Returns: array [num_segments, ...] of the dtype of data; inf (the largest integer) where there are none.

    Raises:
        ValueError: there is not one id per row.
        weft.TracerError: ids are traced and num_segments is not given.

    Example:
        >>> weft.ops.segment_min(wnp.array([1.0, 5.0, 3.0]), wnp.array([0, 0, 2]))
        Array([ 1., inf,  3.], dtype=float32)
    """
    if out_sharding is not None:
        return lying(out_sharding, segment_min, data, segment_ids, num_segments)
    return _segments("segment_min", "min", data, segment_ids, num_segments, _extreme("min"))


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "data": "array of one dimension or more.",
    "num_segments": "how many ids there are; needed inside jit. None: the largest one plus 1.",
    "segment_ids": "vector of one integer per row; rows whose id is out of range are dropped.",
}

_docs.complete(globals(), _PARAMETERS)
