"""What gather and scatter with dimension numbers are made use of for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .. import _weft
from .._core import docs as _docs
from .._core.errors import value_error
from .._weft import Array
from ..control import fori_loop
from ..typing import ArrayLike, Shape
from ._gather import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers, gather, scatter_add

__all__ = ["index_take", "scatter_apply"]


def index_take(src: ArrayLike, idxs: Sequence[ArrayLike], axes: Sequence[int]) -> Array:
    """Slices of an array at places along some of its axes, stacked along a new first one. Negative places count from
    the end.

    Args:
        src: array of any shape.
        idxs: for each of the axes a vector of integers, of one length k.
        axes: the axes, in order.

    Returns: array [k, ...] of the axes that are left.

    Raises:
        ValueError: there are not as many vectors as axes, or they are none of one length.

    Example:
        >>> weft.lax.index_take(wnp.arange(6).reshape(2, 3), (wnp.array([0, -1]),), (1,))
        Array([[0, 3],
               [2, 5]], dtype=int32)
    """
    x = _weft.array(src, None, False)
    places = [_weft.array(i, None, False) for i in idxs]
    axes = [_weft.check_axis(axis, x.ndim, "index_take") for axis in axes]
    if len(places) != len(axes) or len({i.shape for i in places}) > 1 or any(i.ndim != 1 for i in places):
        raise value_error(
            f"index_take: a vector of integers for each of the axes {tuple(axes)} is needed, all of one length, got "
            f"shapes {[i.shape for i in places]}"
        )
    columns = [(i % np.array(x.shape[axis], i.dtype)).reshape((-1, 1)) for i, axis in zip(places, axes)]
    sizes = [1 if axis in axes else n for axis, n in enumerate(x.shape)]
    numbers = GatherDimensionNumbers(tuple(range(1, x.ndim - len(axes) + 1)), tuple(axes), tuple(axes))
    return gather(x, _weft.concatenate(columns, 1), numbers, sizes)


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Array], Array],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Shape = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: GatherScatterMode | str | None = None,
) -> Array:
    """A copy in which a function is applied to windows at computed places, as often as a window holds an element.

    Args:
        operand: array of any shape.
        scatter_indices: array of integers [..., k]: index vectors, where a window begins.
        func: function of arrays, element by element.
        dimension_numbers: what the dimensions mean.
        update_shape: the shape that updates would have: it says how large windows are.
        indices_are_sorted: accepted, without effect.
        unique_indices: whether no two windows overlap, which is the caller's promise.
        mode: where a window sticks out "drop" (as None) leaves it out, "clip" moves it inside, "promise_in_bounds" says
            that none does.

    Returns: array of the shape and dtype of the operand.

    Raises:
        TypeError: scatter_indices are no integers, or dimension numbers do not fit the shapes.
        ValueError: there is no such mode.

    Example:
        >>> numbers = weft.lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> places = wnp.array([[0], [2], [2]])
        >>> weft.lax.scatter_apply(wnp.array([1.0, 2.0, 3.0]), places, wnp.square, numbers, update_shape=(3,))
        Array([ 1.,  2., 81.], dtype=float32)
    """
    x = _weft.array(operand, None, False)
    ones, none = _weft.full(update_shape, 1, "int32"), _weft.full(x.shape, 0, "int32")
    times = scatter_add(
        none,
        scatter_indices,
        ones,
        dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
    )

    def apply(i: ArrayLike, x: Array) -> Array:
        return _weft.where(times > i, func(x).astype(x.dtype), x)

    if unique_indices or not x.size:
        return apply(0, x)
    most: Array = times.max()
    out: Array = fori_loop(0, most, apply, x)
    return out


_docs.complete(globals(), {})
