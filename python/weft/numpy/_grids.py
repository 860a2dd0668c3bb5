"""Grids: the coordinates and the indices of their points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _weft
from .._core import docs as _docs
from .._core.errors import value_error
from .._weft import Array
from ..typing import DTypeLike, NestedLike, Shape

__all__ = ["fromfunction", "indices", "meshgrid"]


def meshgrid(*xi: NestedLike, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> list[Array]:
    """The coordinates of a grid from those of its axes.

    Args:
        *xi: vectors of the coordinates along each axis.
        indexing: "xy": the first two axes are columns and rows; "ij": all in order.
        sparse: whether the arrays keep size 1 along the axes where they are constant.
        copy: accepted, without effect: arrays never change.

    Returns: list of one array of coordinates per axis.

    Raises:
        ValueError: there is no such indexing.

    Example:
        >>> wnp.meshgrid(wnp.array([1, 2]), wnp.array([5, 6]))
        [Array([[1, 2],
               [1, 2]], dtype=int32), Array([[5, 5],
               [6, 6]], dtype=int32)]
    """
    del copy
    if indexing not in ("xy", "ij"):
        raise value_error(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    arrays = [_weft.array(x, None, False) for x in xi]
    n = len(arrays)
    axes = list(range(n))
    if indexing == "xy" and n >= 2:
        axes[0], axes[1] = 1, 0
    out = [x.reshape((1,) * a + (-1,) + (1,) * (n - a - 1)) for x, a in zip(arrays, axes)]
    if sparse:
        return out
    shape = _weft.broadcast_shapes(*(x.shape for x in out)) if out else ()
    return [_weft.broadcast_to(x, shape) for x in out]


def indices(dimensions: Shape, dtype: DTypeLike | None = None, sparse: bool = False) -> Any:
    """The indices of a grid.

    Args:
        dimensions: the sizes of the grid.
        dtype: the dtype of the result; None: the default integer dtype.
        sparse: whether to return a tuple of arrays that broadcast instead.

    Returns: array of len(dimensions) followed by the dimensions: indices along each axis.

    Example:
        >>> wnp.indices((2, 2))[1]
        Array([[0, 1],
               [0, 1]], dtype=int32)
    """
    kind = int if dtype is None else dtype
    dims = tuple(dimensions)
    if sparse:
        n = len(dims)
        return tuple(_weft.iota(tuple(dims[d] if i == d else 1 for i in range(n)), d, kind) for d in range(n))
    if not dims:
        return _weft.full((0,), 0, kind)
    return _weft.stack([_weft.iota(dims, d, kind) for d in range(len(dims))], 0)


def fromfunction(function: Callable[..., Any], shape: Shape, dtype: DTypeLike = float, **kwargs: Any) -> Array:
    """A function called with the indices of a grid.

    Args:
        function: takes one array of indices per dimension.
        shape: the sizes of the grid.
        dtype: the dtype of the indices.
        **kwargs: further arguments of the function.

    Returns: what the function returns.

    Example:
        >>> wnp.fromfunction(lambda i, j: i + 10 * j, (2, 2), dtype=int)
        Array([[ 0, 10],
               [ 1, 11]], dtype=int32)
    """
    return function(*[_weft.iota(tuple(shape), d, dtype) for d in range(len(shape))], **kwargs)


_docs.complete(globals(), arrays=True)
