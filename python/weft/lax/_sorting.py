"""Sorting, and the largest elements."""

from __future__ import annotations

from typing import Any

from .. import _docs, _weft
from .._weft import Array
from ..typing import NestedLike

__all__ = [
    "approx_max_k",
    "approx_min_k",
    "sort",
    "sort_key_val",
    "top_k",
]


def sort(operand: NestedLike, dimension: int = -1, num_keys: int = 1) -> Any:
    """Arrays sorted along a dimension, stably.

    Args:
        operand: array, or a tuple of arrays of one shape that are sorted together.
        num_keys: by how many of the arrays, the first one first.

    Returns: array, or a tuple of them.

    Example:
        >>> weft.lax.sort((wnp.array([3, 1, 2]), wnp.array([10, 20, 30])))
        (Array([1, 2, 3], dtype=int32), Array([20, 30, 10], dtype=int32))
    """
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
    del is_stable
    return sort((keys, values), dimension, 1)


def top_k(operand: NestedLike, k: int) -> tuple[Array, Array]:
    """The largest elements of the last dimension, in order.

    Returns: pair of arrays [..., k]: elements, and their indices (int32).

    Raises:
        ValueError: k is larger than the dimension.

    Example:
        >>> weft.lax.top_k(wnp.array([1, 7, 3]), 2)
        (Array([7, 3], dtype=int32), Array([1, 2], dtype=int32))
    """
    values, places = _weft.bind("top_k", [operand], {"k": k})
    return values, places


def approx_max_k(operand: NestedLike, k: int, reduction_dimension: int = -1, **_: Any) -> list[Array]:
    """The largest elements along a dimension, in order. They are exact here.

    Args:
        **_: accepted, without effect: how exact it must be.

    Returns: list of two arrays: elements, and their indices (int32).

    Raises:
        ValueError: k is larger than the dimension.

    Example:
        >>> weft.lax.approx_max_k(wnp.array([1.0, 7.0, 3.0]), 2)
        [Array([7., 3.], dtype=float32), Array([1, 2], dtype=int32)]
    """
    operand = _weft.moveaxis(_weft.array(operand, None, False), reduction_dimension, -1)
    return [_weft.moveaxis(x, -1, reduction_dimension) for x in top_k(operand, k)]


def approx_min_k(operand: NestedLike, k: int, reduction_dimension: int = -1, **_: Any) -> list[Array]:
    """The smallest elements along a dimension, in order. They are exact here.

    Args:
        **_: accepted, without effect: how exact it must be.

    Returns: list of two arrays: elements, and their indices (int32).

    Raises:
        ValueError: k is larger than the dimension.

    Example:
        >>> weft.lax.approx_min_k(wnp.array([1.0, 7.0, 3.0]), 2)
        [Array([1., 3.], dtype=float32), Array([0, 2], dtype=int32)]
    """
    values, places = approx_max_k(-_weft.array(operand, None, False), k, reduction_dimension)
    return [-values, places]


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "dimension": "which dimension, negative from the end.",
    "k": "how many.",
    "operand": "array of one dimension or more.",
    "reduction_dimension": "which dimension, negative from the end.",
}

_docs.complete(globals(), _PARAMETERS)
