"""Sorting, and the largest elements."""

from __future__ import annotations

import math
from typing import Any

from .. import _weft
from .._core import docs as _docs
from .._core.errors import type_error
from .._weft import Array
from ..arguments import count
from ..typing import NestedLike

__all__ = [
    "approx_max_k",
    "approx_min_k",
    "sort",
    "sort_key_val",
    "top_k",
]


def sort(operand: NestedLike, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Arrays sorted along a dimension, stably.

    Args:
        operand: array, or a tuple of arrays of one shape that are sorted together.
        is_stable: accepted: sorting is always stable.
        num_keys: by how many of the arrays, the first one first.

    Returns: array, or a tuple of them.

    Example:
        >>> weft.lax.sort((wnp.array([3, 1, 2]), wnp.array([10, 20, 30])))
        (Array([1, 2, 3], dtype=int32), Array([20, 30, 10], dtype=int32))
    """
    del is_stable
    many = isinstance(operand, (tuple, list))
    given: Any = operand if many else (operand,)
    operands = [_weft.array(x, None, False) for x in given]
    out = _weft.bind(
        "sort", operands, {"dim": _weft.check_axis(dimension, operands[0].ndim, "sort"), "num_keys": num_keys}
    )
    return tuple(out) if many else out[0]


def sort_key_val(keys: NestedLike, values: NestedLike, dimension: int = -1, is_stable: bool = True) -> Any:
    """Keys sorted along a dimension, and values in the same order.

    Args:
        keys: array.
        values: array of the same shape.
        is_stable: accepted: sorting is always stable.

    Returns: pair of arrays.

    Example:
        >>> weft.lax.sort_key_val(wnp.array([3, 1, 2]), wnp.array([10, 20, 30]))
        (Array([1, 2, 3], dtype=int32), Array([20, 30, 10], dtype=int32))
    """
    return sort((keys, values), dimension, is_stable)


def top_k(operand: NestedLike, k: int, *, axis: int = -1) -> tuple[Array, Array]:
    """The largest elements along a dimension, in order.

    Returns: pair of arrays of size k along it: elements, and their indices (int32).

    Raises:
        ValueError: k is larger than the dimension.

    Example:
        >>> weft.lax.top_k(wnp.array([1, 7, 3]), 2)
        (Array([7, 3], dtype=int32), Array([1, 2], dtype=int32))
    """
    operand = _weft.array(operand, None, False)
    last = operand.ndim - 1
    axis = _weft.check_axis(axis, operand.ndim, "top_k")
    if axis != last:
        operand = _weft.moveaxis(operand, axis, last)
    values, places = _weft.bind("top_k", [operand], {"k": count(k, "top_k: k")})
    if axis != last:
        values, places = _weft.moveaxis(values, last, axis), _weft.moveaxis(places, last, axis)
    return values, places


# Elements that a reduction takes at once: along a dimension of several, and of the only one there is.
_LANES, _CHUNK = 128, 1024


def _how_many(size: int, rank: int, k: int, recall: float, counted: int) -> int:
    """How many elements an approximate reduction leaves along a dimension: as many as windows are needed for k elements
    to lie in different ones with the probability recall, k * exp((1 - k) / windows) of them being expected to."""
    tile = _CHUNK if rank == 1 else _LANES
    if size <= tile or not 0 < recall < 1:
        return size
    if k == 1:
        return tile
    windows = min(max(math.ceil((1 - k) / math.log(recall)), tile), size)
    halvings = ((size if counted < 0 else counted) // windows).bit_length() - 1
    if halvings <= 0:
        return size
    halvings = min(halvings, (size // tile - 1).bit_length())
    return min(size, tile * math.ceil(math.ceil(size / tile) / (1 << halvings)))


def _approx_k(
    what: str, operand: NestedLike, k: int, axis: int, recall: float, counted: int, aggregate: bool, smallest: bool
) -> list[Array]:
    operand = _weft.array(operand, None, False)
    if _weft.dtype_kind(operand.dtype) != "float":
        raise type_error(f"{what}: operand is {operand.type}; expected a floating-point dtype")
    if not aggregate:
        axis = _weft.check_axis(axis, operand.ndim, what)
        k, size = count(k, f"{what}: k"), operand.shape[axis]
        k = max(min(k, size), _how_many(size, operand.ndim, k, float(recall), int(counted))) if k <= size else k
    values, places = top_k(-operand if smallest else operand, k, axis=axis)
    return [-values if smallest else values, places]


def approx_max_k(
    operand: NestedLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """The largest elements along a dimension, in order. They are exact here.

    Returns: list of two arrays: elements, and their indices (int32).

    Raises:
        TypeError: operand is not of a floating-point dtype.
        ValueError: k is larger than the dimension.

    Example:
        >>> weft.lax.approx_max_k(wnp.array([1.0, 7.0, 3.0]), 2)
        [Array([7., 3.], dtype=float32), Array([1, 2], dtype=int32)]
    """
    return _approx_k(
        "approx_max_k",
        operand,
        k,
        reduction_dimension,
        recall_target,
        reduction_input_size_override,
        aggregate_to_topk,
        smallest=False,
    )


def approx_min_k(
    operand: NestedLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """The smallest elements along a dimension, in order. They are exact here.

    Returns: list of two arrays: elements, and their indices (int32).

    Raises:
        TypeError: operand is not of a floating-point dtype.
        ValueError: k is larger than the dimension.

    Example:
        >>> weft.lax.approx_min_k(wnp.array([1.0, 7.0, 3.0]), 2)
        [Array([1., 3.], dtype=float32), Array([0, 2], dtype=int32)]
    """
    return _approx_k(
        "approx_min_k",
        operand,
        k,
        reduction_dimension,
        recall_target,
        reduction_input_size_override,
        aggregate_to_topk,
        smallest=True,
    )


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "aggregate_to_topk": "False: the result has as many elements as an approximate reduction leaves to choose k from.",
    "recall_target": "how many of the elements must be right; all are. Without aggregation more need more elements.",
    "reduction_input_size_override": "from what size recall_target is counted.",
    "dimension": "which dimension, negative from the end.",
    "k": "how many.",
    "operand": "array of one dimension or more.",
    "reduction_dimension": "which dimension, negative from the end.",
}

_docs.complete(globals(), _PARAMETERS)
