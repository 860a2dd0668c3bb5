"""Gather and scatter with dimension numbers: windows at computed places, read and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .. import _weft
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._core.names import belong_to
from .._weft import Array
from ..numpy._dtypes import taken_as
from ..numpy._places import GatherScatterMode
from ..typing import ArrayLike
from ._gather_checks import check_gather, check_scatter

__all__ = [
    "GatherDimensionNumbers",
    "GatherScatterMode",
    "ScatterDimensionNumbers",
    "gather",
    "scatter",
    "scatter_add",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_sub",
]


class GatherDimensionNumbers(NamedTuple):
    """What the dimensions of gather's arguments mean.

    Args:
        offset_dims: the dimensions of the result that are those of a window, without the collapsed and batch ones; the
            others are those of start_indices without the last.
        collapsed_slice_dims: the dimensions of a window, of size 1, that the result does not have.
        start_index_map: the dimension of the operand that each entry of an index vector is for.
        operand_batching_dims: dimensions of the operand that go along with those of start_indices.
        start_indices_batching_dims: the latter, in the same order.

    Example:
        >>> weft.lax.GatherDimensionNumbers((1,), (0,), (0,)).start_index_map
        (0,)
    """

    offset_dims: Sequence[int]
    collapsed_slice_dims: Sequence[int]
    start_index_map: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    start_indices_batching_dims: Sequence[int] = ()


class ScatterDimensionNumbers(NamedTuple):
    """What the dimensions of scatter's arguments mean.

    Args:
        update_window_dims: the dimensions of the updates that are those of a window, without the inserted and batch
            ones; the others are those of scatter_indices without the last.
        inserted_window_dims: the dimensions of a window, of size 1, that the updates do not have.
        scatter_dims_to_operand_dims: the dimension of the operand that each entry of an index vector is for.
        operand_batching_dims: dimensions of the operand that go along with those of scatter_indices.
        scatter_indices_batching_dims: the latter, in the same order.

    Example:
        >>> weft.lax.ScatterDimensionNumbers((1,), (0,), (0,)).update_window_dims
        (1,)
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


_MODES = {
    "clip": "clip",
    "fill": "fill",
    "drop": "fill",
    "promise_in_bounds": "promise",
    GatherScatterMode.CLIP: "clip",
    GatherScatterMode.FILL_OR_DROP: "fill",
    GatherScatterMode.PROMISE_IN_BOUNDS: "promise",
    GatherScatterMode.ONE_HOT: "fill",
}


def _mode(mode, default: str, what: str) -> str:
    if mode is None:
        return default
    if mode not in _MODES:
        raise value_error(
            f"{what}: there is no mode {mode!r}; the modes are 'clip', 'fill', 'drop', 'promise_in_bounds'"
        )
    return _MODES[mode]


def _indices(indices, what: str) -> Array:
    indices = _weft.array(indices, None, False)
    kind = _weft.dtype_kind(indices.dtype)
    if kind not in ("signed", "unsigned"):
        raise type_error(f"{what}: indices must be integers, got {indices.dtype}")
    # An unsigned number that does not fit the signed dtype would come out negative, and so out of bounds all the same.
    return indices.astype("int64" if indices.dtype in ("int64", "uint64", "uint32") else "int32")


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: GatherScatterMode | str | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Windows of an array at computed places. Negative indices do not count from the end.

    Args:
        start_indices: array of integers [..., k]: index vectors, where a window begins.
        dimension_numbers: what the dimensions mean.
        slice_sizes: the size of a window in each dimension of the operand.
        unique_indices: accepted, without effect.
        indices_are_sorted: accepted, without effect.
        mode: where a window sticks out "clip" (as None) moves it inside, "fill" gives fill_value, "promise_in_bounds"
            says that none does.
        fill_value: None: NaN for floats, the smallest integer, the largest unsigned one, True.

    Returns: array of the dtype of the operand.

    Raises:
        TypeError: start_indices are no integers, dimension numbers contradict each other or do not fit the shapes, or
            the operand's dtype does not hold the fill value's.
        ValueError: there is no such mode.

    Source: the operation of the same name in OpenXLA's "Operation semantics".

    Example:
        >>> x = wnp.arange(12).reshape(4, 3)
        >>> rows = weft.lax.GatherDimensionNumbers((1,), (0,), (0,))
        >>> weft.lax.gather(x, wnp.array([[2], [0]]), rows, (1, 3))
        Array([[6, 7, 8],
               [0, 1, 2]], dtype=int32)
    """
    del unique_indices, indices_are_sorted
    operand, start_indices = _weft.array(operand, None, False), _indices(start_indices, "gather")
    check_gather(operand.shape, start_indices.shape, dimension_numbers, slice_sizes)
    attrs = {
        "offset_dims": list(dimension_numbers.offset_dims),
        "collapsed_dims": list(dimension_numbers.collapsed_slice_dims),
        "start_index_map": list(dimension_numbers.start_index_map),
        "operand_batch_dims": list(dimension_numbers.operand_batching_dims),
        "indices_batch_dims": list(dimension_numbers.start_indices_batching_dims),
        "slice_sizes": list(slice_sizes),
        "mode": _mode(mode, "clip", "gather"),
    }
    out = _weft.bind("gather", [operand, start_indices], attrs)[0]
    if fill_value is None or attrs["mode"] != "fill":
        return out
    ones = _weft.full(operand.shape, True, "bool")
    inside = _weft.bind("gather", [ones, start_indices], {**attrs, "mode": "zero"})[0]
    return _weft.where(inside, out, taken_as(fill_value, out.dtype, "gather: fill_value"))


def _scatter(prim: str, what: str, operand, indices, updates, numbers: ScatterDimensionNumbers, unique, mode) -> Array:
    operand, indices = _weft.array(operand, None, False), _indices(indices, what)
    chosen = _mode(mode, "fill", what)
    updates = taken_as(updates, operand.dtype, f"{what}: updates")
    check_scatter(operand.shape, indices.shape, updates.shape, numbers)
    attrs = {
        "update_window_dims": list(numbers.update_window_dims),
        "inserted_dims": list(numbers.inserted_window_dims),
        "scatter_dims": list(numbers.scatter_dims_to_operand_dims),
        "operand_batch_dims": list(numbers.operand_batching_dims),
        "indices_batch_dims": list(numbers.scatter_indices_batching_dims),
        "mode": "drop" if chosen == "fill" else chosen,
        "unique": bool(unique),
    }
    return _weft.bind(prim, [operand, indices, updates], attrs)[0]


def _named(name: str, prim: str, what: str, example: str, sign: int = 1):
    def scattering(
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: GatherScatterMode | str | None = None,
    ) -> Array:
        del indices_are_sorted
        if sign < 0:
            updates = -_weft.array(updates, None, False)
        return _scatter(prim, name, operand, scatter_indices, updates, dimension_numbers, unique_indices, mode)

    scattering.__name__ = scattering.__qualname__ = name
    scattering.__doc__ = f"""{what} Negative indices do not count from the end.

    Args:
        operand: array of any shape.
        scatter_indices: array of integers [..., k]: index vectors, where a window begins.
        updates: array of windows, of a dtype that promotes to that of the operand.
        dimension_numbers: what the dimensions mean.
        indices_are_sorted: accepted, without effect.
        unique_indices: whether no two windows overlap, which is the caller's promise.
        mode: where a window sticks out "drop" (as None) leaves it out, "clip" moves it inside, "promise_in_bounds" says
            that none does.

    Returns: array of the shape and dtype of the operand.

    Raises:
        TypeError: scatter_indices are no integers, dimension numbers contradict each other or do not fit the shapes, or
            the operand's dtype does not hold the updates'.
        ValueError: there is no such mode.

    Source: the operation "scatter" in OpenXLA's "Operation semantics".

    Example:
        >>> rows = weft.lax.ScatterDimensionNumbers((1,), (0,), (0,))
        >>> x, places, updates = wnp.full((3, 2), 4), wnp.array([[2], [2]]), wnp.array([[1, 5], [3, 2]])
        >>> weft.lax.{name}(x, places, updates, rows)[2]
        Array([{example}], dtype=int32)
    """
    return scattering


scatter = _named("scatter", "scatter", "A copy with windows at computed places replaced, later ones winning.", "3, 2")
scatter_add = _named("scatter_add", "scatter_add", "A copy with windows added at computed places.", " 8, 11")
scatter_sub = _named("scatter_sub", "scatter_add", "A copy with windows subtracted at computed places.", " 0, -3", -1)
scatter_mul = _named("scatter_mul", "scatter_mul", "A copy multiplied by windows at computed places.", "12, 40")
scatter_min = _named("scatter_min", "scatter_min", "A copy with the smaller of elements and windows.", "1, 2")
scatter_max = _named("scatter_max", "scatter_max", "A copy with the larger of elements and windows.", "4, 5")

belong_to(globals(), GatherScatterMode)
_docs.complete(globals())
