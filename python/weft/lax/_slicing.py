"""Slices at known and at computed places."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

import numpy as np

from .. import _weft
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._weft import Array
from ..numpy._dtypes import taken_as
from ..typing import ArrayLike, NDArrayLike, NestedLike, Shape

__all__ = [
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "index_in_dim",
    "slice",
    "slice_in_dim",
]


def slice(operand: NestedLike, start_indices: Shape, limit_indices: Shape, strides: Shape | None = None) -> Array:
    """Elements start, start + stride ... below limit, in each dimension, all of them known.

    Args:
        start_indices: one per dimension.
        limit_indices: one per dimension.
        strides: one per dimension; None: 1.

    Returns: array of the dtype of the operand.

    Raises:
        IndexError: an index is out of range.

    Example:
        >>> weft.lax.slice(wnp.arange(10), (1,), (8,), (3,))
        Array([1, 4, 7], dtype=int32)
    """
    return _weft.bind(
        "slice",
        [operand],
        {
            "start": list(start_indices),
            "limit": list(limit_indices),
            "strides": list(strides) if strides else [1] * len(start_indices),
        },
    )[0]


def slice_in_dim(
    operand: NDArrayLike, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Array:
    """A slice of one dimension.

    Args:
        start_index: where it begins; negative from the end, None: at the beginning.
        limit_index: where it ends, itself left out; None: at the end.
        stride: the distance of the elements.

    Returns: array of the dtype of the operand.

    Example:
        >>> weft.lax.slice_in_dim(wnp.arange(10), 2, 8, 2)
        Array([2, 4, 6], dtype=int32)
    """
    operand = _weft.array(operand, None, False)
    axis = _weft.check_axis(axis, operand.ndim, "slice_in_dim")
    return _weft.array(operand, None, False)[
        (builtins.slice(None),) * axis + (builtins.slice(start_index, limit_index, stride),)
    ]


def index_in_dim(operand: NDArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """One known index of a dimension.

    Args:
        index: the index, negative from the end.

    Returns: array of the dtype of the operand.

    Raises:
        IndexError: the index is out of range.

    Example:
        >>> weft.lax.index_in_dim(wnp.arange(4) * 10, 2, keepdims=False)
        Array(20, dtype=int32)
    """
    operand = _weft.array(operand, None, False)
    axis = _weft.check_axis(axis, operand.ndim, "index_in_dim")
    index = int(index) if isinstance(index, bool) else index  # no mask
    out = operand[(builtins.slice(None),) * axis + (index,)]
    return _weft.expand_dims(out, axis) if keepdims else out


def _starts(start_indices, operand: Array, allow_negative, name: str) -> list:
    shape = operand.shape
    if isinstance(start_indices, (tuple, list)):
        starts = list(start_indices)
    else:
        vector = _weft.array(start_indices, None, False)
        starts = [vector[i] for i in range(vector.shape[0])] if vector.ndim == 1 else [vector]
    if len(starts) != len(shape):
        raise value_error(
            f"{name}: start_indices has {len(starts)} entries; expected one for each of {len(shape)} dimensions"
        )
    if isinstance(allow_negative, bool):
        allow_negative = [allow_negative] * len(shape)
    elif len(allow_negative) != len(shape):
        raise value_error(
            f"{name}: allow_negative_indices is one boolean, or one for each of {len(shape)} dimensions, got "
            f"{allow_negative!r}"
        )
    for start, counted in zip(starts, allow_negative):
        if not counted and isinstance(start, (int, np.integer)) and start < 0:
            raise value_error(f"{name}: start index {start} is negative, and allow_negative_indices is False")
    # 32 bits, unless a size or a given position needs more: a position beyond 32 bits must not wrap into the array.
    starts = [_weft.array(start, None, False) for start in starts]
    for d, start in enumerate(starts):
        if _weft.dtype_kind(start.dtype) not in ("signed", "unsigned"):
            raise type_error(f"{name}: start index {d} has dtype {start.dtype}; expected an integer")
    wide = any(s.dtype in ("int64", "uint64", "uint32") for s in starts) or any(_beyond_int32(n) for n in shape)
    out = []
    for d, (start, n, counted) in enumerate(zip(starts, shape, allow_negative)):
        if start.dtype == "uint64":
            start = _weft.where(start > 2**63 - 1, 2**63 - 1, start)
        negative = counted and _weft.dtype_kind(start.dtype) == "signed"
        start = start.astype("int64" if wide else "int32")
        if negative:
            size = n if isinstance(n, int) else _weft.bind("dim_size", [operand], {"dim": d})[0].astype(start.dtype)
            start = _weft.where(start < 0, start + size, start)
        out.append(start)
    return out


def _beyond_int32(n) -> bool:
    return isinstance(n, int) and n > 2**31 - 1


def dynamic_slice(
    operand: NDArrayLike,
    start_indices: Sequence[ArrayLike] | NDArrayLike,
    slice_sizes: Shape,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """A slice of known size at a computed place, which is moved inside where the slice would stick out.

    Args:
        slice_sizes: the shape of the slice.

    Returns: array of that shape, of the dtype of the operand.

    Raises:
        ValueError: the slice is larger than the array, or there is not one start index for each dimension.

    Example:
        >>> weft.lax.dynamic_slice(wnp.arange(5), (3,), (3,))
        Array([2, 3, 4], dtype=int32)
    """
    operand = _weft.array(operand, None, False)
    starts = _starts(start_indices, operand, allow_negative_indices, "dynamic_slice")
    return _weft.bind("dynamic_slice", [operand, *starts], {"sizes": list(slice_sizes)})[0]


def dynamic_update_slice(
    operand: NDArrayLike,
    update: NestedLike,
    start_indices: Sequence[ArrayLike] | NDArrayLike,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """A copy in which a block at a computed place is replaced; it is moved inside where the block would stick out.

    Args:
        update: array of as many dimensions, not larger, of the dtype of the operand, or weak.

    Returns: array of the shape and dtype of the operand.

    Raises:
        TypeError: the update has another dtype.
        ValueError: the block is larger than the array, or there is not one start index for each dimension.

    Example:
        >>> weft.lax.dynamic_update_slice(wnp.zeros(4), wnp.array([1.0, 2.0]), (1,))
        Array([0., 1., 2., 0.], dtype=float32)
    """
    operand = _weft.array(operand, None, False)
    update = taken_as(update, operand.dtype, "dynamic_update_slice: update", exact=True)
    starts = _starts(start_indices, operand, allow_negative_indices, "dynamic_update_slice")
    return _weft.bind("dynamic_update_slice", [operand, update, *starts], {})[0]


def dynamic_slice_in_dim(
    operand: NDArrayLike,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """A slice of one dimension, of known size at a computed place.

    Args:
        slice_size: the size of the slice.

    Returns: array of the dtype of the operand.

    Example:
        >>> weft.lax.dynamic_slice_in_dim(wnp.arange(5), 1, 2)
        Array([1, 2], dtype=int32)
    """
    operand = _weft.array(operand, None, False)
    axis = _weft.check_axis(axis, operand.ndim, "dynamic_slice_in_dim")
    return dynamic_slice(
        operand,
        [start_index if d == axis else 0 for d in range(operand.ndim)],
        [slice_size if d == axis else n for d, n in enumerate(operand.shape)],
        allow_negative_indices=allow_negative_indices,
    )


def dynamic_index_in_dim(
    operand: NDArrayLike,
    index: ArrayLike,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """One computed index of a dimension; out of range it takes the nearest.

    Returns: array of the dtype of the operand.

    Example:
        >>> weft.lax.dynamic_index_in_dim(wnp.arange(5) * 10, 3, keepdims=False)
        Array(30, dtype=int32)
    """
    out = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return out if keepdims else _weft.squeeze(out, axis)


def dynamic_update_slice_in_dim(
    operand: NDArrayLike,
    update: NestedLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """A copy in which a slice of one dimension at a computed place is replaced.

    Args:
        update: array that has the sizes of the operand in the other dimensions, of its dtype, or weak.

    Returns: array of the shape and dtype of the operand.

    Raises:
        TypeError: the update has another dtype.

    Example:
        >>> weft.lax.dynamic_update_slice_in_dim(wnp.zeros(4), wnp.ones(2), 1, 0)
        Array([0., 1., 1., 0.], dtype=float32)
    """
    operand = _weft.array(operand, None, False)
    axis = _weft.check_axis(axis, operand.ndim, "dynamic_update_slice_in_dim")
    starts = [start_index if d == axis else 0 for d in range(operand.ndim)]
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(
    operand: NDArrayLike,
    update: NDArrayLike,
    index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """A copy in which one computed index of a dimension is replaced.

    Args:
        update: array of the operand's shape without the dimension, or with size 1 in it, of its dtype, or weak.

    Returns: array of the shape and dtype of the operand.

    Raises:
        TypeError: the update has another dtype.

    Example:
        >>> weft.lax.dynamic_update_index_in_dim(wnp.zeros(3), 5.0, 1, 0)
        Array([0., 5., 0.], dtype=float32)
    """
    operand, update = _weft.array(operand, None, False), _weft.array(update, None, False)
    if update.ndim != operand.ndim:
        update = _weft.expand_dims(update, _weft.check_axis(axis, operand.ndim, "dynamic_update_index_in_dim"))
    return dynamic_update_slice_in_dim(operand, update, index, axis, allow_negative_indices=allow_negative_indices)


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "allow_negative_indices": "whether negative integers count from the end; else they are places before the "
    "beginning, which a known one must not be.",
    "index": "integer, traced ones too.",
    "keepdims": "whether the dimension stays, with size 1.",
    "start_index": "integer, traced ones too.",
    "start_indices": "one integer per dimension, traced ones too, or a vector of them; negative from the end.",
}

_docs.complete(globals(), _PARAMETERS)
