"""Reductions over segments, as jax.ops."""

from __future__ import annotations

from . import _weft
from . import numpy as wnp
from ._weft import Array

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def _segments(name: str, update: str, data, segment_ids, num_segments, neutral) -> Array:
    data, ids = wnp.asarray(data), wnp.asarray(segment_ids)
    if ids.ndim != 1 or data.ndim == 0 or data.shape[0] != ids.shape[0]:
        raise ValueError(f"{name}: a vector of one id per row is needed, got shapes {data.shape} and {ids.shape}")
    if num_segments is None:
        num_segments = int(wnp.max(ids)) + 1 if ids.size else 0
    # Negative ids are out of range, like those that are too large: their rows are dropped.
    ids = wnp.where(ids < 0, num_segments, ids)
    start = _weft.full((num_segments, *data.shape[1:]), neutral(data.dtype), data.dtype)
    return getattr(start.at[ids], update)(data)


def _extreme(which: str):
    def neutral(dtype):
        if _weft.dtype_kind(dtype) == "bool":
            return which == "max"
        if _weft.is_inexact(dtype):
            return float("-inf") if which == "max" else float("inf")
        return getattr(wnp.iinfo(dtype), "min" if which == "max" else "max")

    return neutral


def segment_sum(data, segment_ids, num_segments: int | None = None, *_, **__) -> Array:
    """Row i of the result is the sum of the rows of data whose id is i. Inside jit give num_segments."""
    return _segments("segment_sum", "add", data, segment_ids, num_segments, lambda _: 0)


def segment_prod(data, segment_ids, num_segments: int | None = None, *_, **__) -> Array:
    """Like segment_sum: products; 1 for ids that do not occur."""
    return _segments("segment_prod", "multiply", data, segment_ids, num_segments, lambda _: 1)


def segment_max(data, segment_ids, num_segments: int | None = None, *_, **__) -> Array:
    """Like segment_sum: the largest; -inf (the smallest integer) for ids that do not occur."""
    return _segments("segment_max", "max", data, segment_ids, num_segments, _extreme("max"))


def segment_min(data, segment_ids, num_segments: int | None = None, *_, **__) -> Array:
    """Like segment_sum: the smallest; inf (the largest integer) for ids that do not occur."""
    return _segments("segment_min", "min", data, segment_ids, num_segments, _extreme("min"))
