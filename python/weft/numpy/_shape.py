"""Shapes: reshape, transpose, join, split, repeat."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _weft
from .._core import docs as _docs
from .._core.errors import value_error
from .._core.shapes import ShapeDtype
from .._core.tree import jax_semantics
from .._weft import Array
from ..arguments import integer, is_integer, one_of
from ..typing import NDArrayLike, NestedLike, Shape
from ._out_sharding import lying

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "expand_dims",
    "flip",
    "fliplr",
    "flipud",
    "matrix_transpose",
    "moveaxis",
    "ndim",
    "permute_dims",
    "ravel",
    "reshape",
    "roll",
    "rollaxis",
    "rot90",
    "shape",
    "size",
    "squeeze",
    "swapaxes",
    "transpose",
]


def shape(a: NestedLike) -> tuple:
    """The dimensions of an array or number.

    Returns: tuple of integers (and of weft.Dim, where a size is a symbol).

    Example:
        >>> wnp.shape(wnp.ones((2, 3))), wnp.shape(5)
        ((2, 3), ())
    """
    if _weft.is_operand(a):
        return _weft.abstract(a)[0]
    if isinstance(a, ShapeDtype):
        return a.shape
    if jax_semantics() and (a is None or isinstance(a, (str, bytes))):
        return ()  # NumPy takes them for objects; libraries ask for the shape of what is not given
    return _weft.array(a, None, False).shape


def ndim(a: NestedLike) -> int:
    """The number of dimensions.

    Returns: int.

    Example:
        >>> wnp.ndim(wnp.ones((2, 3)))
        2
    """
    return len(shape(a))


def size(a: NestedLike, axis: int | Sequence[int] | None = None) -> int:
    """The number of elements, or the size of an axis.

    Args:
        axis: the axis, negative from the end, or several: their product; None: all elements.

    Returns: int (weft.Dim, where a size is a symbol).

    Example:
        >>> wnp.size(wnp.ones((2, 3))), wnp.size(wnp.ones((2, 3)), 1)
        (6, 3)
    """
    dims = shape(a)
    if axis is not None:
        axes = axis if isinstance(axis, (tuple, list)) else (axis,)
        places = [_weft.check_axis(i, len(dims), "size") for i in axes]
        if len(set(places)) < len(places):
            raise value_error(f"size: repeated axis in {axis}")
        dims = tuple(dims[i] for i in places)
    n = 1
    for d in dims:
        n = n * d
    return n


def _array(x) -> Array:
    return _weft.array(x, None, False)


def _together(*xs) -> tuple[Array, ...]:
    """Arrays of the dtype that the arguments have together: Python's numbers are rounded to that alone."""
    return _weft.promote_all(*[x if isinstance(x, (int, float, complex)) else _array(x) for x in xs])


def reshape(
    a: NestedLike, shape: int | Shape, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None
) -> Array:
    """The same elements in another shape.

    Args:
        shape: integers; one may be -1, which stands for what remains.
        copy: True: the result surely has memory of its own; else arrays, which never change, share it where they can.

    Returns: array of that shape, of the dtype of a.

    Raises:
        TypeError: the numbers of elements differ.
        ValueError: more than one size is -1, or there is no such order.

    Example:
        >>> wnp.reshape(wnp.arange(6), (2, -1))
        Array([[0, 1, 2],
               [3, 4, 5]], dtype=int32)
    """
    if out_sharding is not None:
        return lying(out_sharding, reshape, a, shape=shape, order=order)
    if one_of(order, ("C", "F"), "reshape: order") == "F":
        sizes = (shape,) if is_integer(shape) else tuple(shape)
        out = transpose(_weft.reshape(transpose(_array(a)), sizes[::-1]))
    else:
        out = _weft.reshape(_array(a), shape)
    return out.copy() if copy else out


def ravel(
    a: NestedLike,
    order: str = "C",
    *,
    out_sharding: Any = None,
) -> Array:
    """All elements in one dimension.

    Returns: vector of the dtype of a.

    Raises:
        ValueError: there is no such order.

    Example:
        >>> wnp.ravel(wnp.array([[1, 2], [3, 4]]), order="F")
        Array([1, 3, 2, 4], dtype=int32)
    """
    if out_sharding is not None:
        return lying(out_sharding, ravel, a, order=order)
    return reshape(a, -1, one_of(order, ("C", "F"), "ravel: order"))


def transpose(a: NestedLike, axes: int | Sequence[int] | None = None) -> Array:
    """The dimensions in another order.

    Args:
        axes: for each dimension of the result the one it was; None: reversed.

    Returns: array of the dtype of a.

    Raises:
        ValueError: axes are no permutation.

    Example:
        >>> wnp.transpose(wnp.ones((2, 3, 4)), (1, 0, 2)).shape
        (3, 2, 4)
    """
    if axes is not None and not isinstance(axes, (int, tuple, list)):
        axes = axes if is_integer(axes) else [integer(axis, "transpose: axes") for axis in axes]  # an array of them
    return _weft.transpose(_array(a), axes)


permute_dims = transpose


def matrix_transpose(x: NestedLike) -> Array:
    """The last two dimensions exchanged.

    Args:
        x: array [..., rows, columns].

    Returns: array [..., columns, rows].

    Example:
        >>> wnp.matrix_transpose(wnp.ones((5, 2, 3))).shape
        (5, 3, 2)
    """
    return swapaxes(x, -1, -2)


def moveaxis(a: NestedLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """Dimensions moved to other places; the others keep their order.

    Args:
        source: the axis or axes that move.
        destination: where they go.

    Returns: array of the dtype of a.

    Raises:
        IndexError: an axis is out of range.

    Example:
        >>> wnp.moveaxis(wnp.ones((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    """
    return _weft.moveaxis(_array(a), source, destination)


def rollaxis(a: NestedLike, axis: int, start: int = 0) -> Array:
    """An axis moved in front of another.

    Args:
        start: the axis in front of which it goes.

    Returns: array of the dtype of a.

    Example:
        >>> wnp.rollaxis(wnp.ones((2, 3, 4)), 2).shape
        (4, 2, 3)
    """
    n = ndim(a)
    axis = _weft.check_axis(axis, n, "rollaxis")
    start = start + n if start < 0 else start
    return moveaxis(a, axis, start - 1 if start > axis else start)


def swapaxes(a: NestedLike, axis1: int, axis2: int) -> Array:
    """Two dimensions exchanged.

    Args:
        axis1: one axis, negative from the end.
        axis2: the other, negative from the end.

    Returns: array of the dtype of a.

    Raises:
        IndexError: an axis is out of range.

    Example:
        >>> wnp.swapaxes(wnp.ones((2, 3, 4)), 0, 2).shape
        (4, 3, 2)
    """
    a = _array(a)
    axes = list(range(a.ndim))
    i, j = _weft.check_axis(axis1, a.ndim, "swapaxes"), _weft.check_axis(axis2, a.ndim, "swapaxes")
    axes[i], axes[j] = axes[j], axes[i]
    return _weft.transpose(a, axes)


def expand_dims(a: NestedLike, axis: int | Sequence[int] | None) -> Array:
    """New dimensions of size 1.

    Args:
        axis: the axis or axes of the result that are new.

    Returns: array of the dtype of a.

    Example:
        >>> wnp.expand_dims(wnp.ones((2, 3)), (0, -1)).shape
        (1, 2, 3, 1)
    """
    return _weft.expand_dims(_array(a), axis)


def squeeze(a: NestedLike, axis: int | Sequence[int] | None = None) -> Array:
    """Without dimensions of size 1.

    Args:
        axis: the axis or axes that go; None: all of size 1.

    Returns: array of the dtype of a.

    Raises:
        ValueError: a size is not 1.

    Example:
        >>> wnp.squeeze(wnp.ones((1, 3, 1))).shape
        (3,)
    """
    return _weft.squeeze(_array(a), axis)


def broadcast_to(
    array: NestedLike,
    shape: int | Shape,
    *,
    out_sharding: Any = None,
) -> Array:
    """An array stretched to a shape by NumPy's rule: sizes are compared from the end, and 1 fits all.

    Args:
        array: array, number or nested list of numbers.
        shape: the shape of the result.

    Returns: array of that shape, of the dtype of array.

    Raises:
        TypeError: the array does not broadcast to it.

    Example:
        >>> wnp.broadcast_to(wnp.array([1, 2]), (2, 2))
        Array([[1, 2],
               [1, 2]], dtype=int32)
    """
    if out_sharding is not None:
        return lying(out_sharding, broadcast_to, array, shape=shape)
    return _weft.broadcast_to(_array(array), shape)


def broadcast_shapes(*shapes: Shape) -> tuple:
    """The shape that arrays of these shapes have together.

    Args:
        *shapes: tuples of integers.

    Returns: tuple.

    Raises:
        TypeError: they do not broadcast.

    Example:
        >>> wnp.broadcast_shapes((2, 1), (3,))
        (2, 3)
    """
    return _weft.broadcast_shapes(*shapes)


def broadcast_arrays(*args: Any) -> list[Array]:
    """Arrays stretched to their common shape.

    Args:
        *args: arrays, numbers or nested lists of numbers.

    Returns: list of arrays.

    Raises:
        TypeError: they do not broadcast.

    Example:
        >>> wnp.broadcast_arrays(wnp.array([1, 2]), 5)
        [Array([1, 2], dtype=int32), Array([5, 5], dtype=int32, weak_type=True)]
    """
    arrays = [_array(a) for a in args]
    shape_ = _weft.broadcast_shapes(*(a.shape for a in arrays))
    return [_weft.broadcast_to(a, shape_) for a in arrays]


def atleast_1d(*arys: NestedLike) -> Any:
    """Arrays with at least one dimension.

    Args:
        *arys: arrays, numbers or nested lists of numbers.

    Returns: array, or a list of them for several arguments.

    Example:
        >>> wnp.atleast_1d(5)
        Array([5], dtype=int32, weak_type=True)
    """
    out = [a if a.ndim else a.reshape(1) for a in map(_array, arys)]
    return out[0] if len(out) == 1 else out


def atleast_2d(*arys: NestedLike) -> Any:
    """Arrays with at least two dimensions; new ones of size 1 come in front.

    Args:
        *arys: arrays, numbers or nested lists of numbers.

    Returns: array, or a list of them for several arguments.

    Example:
        >>> wnp.atleast_2d(wnp.array([1, 2])).shape
        (1, 2)
    """
    out = [a.reshape((1,) * (2 - a.ndim) + a.shape) if a.ndim < 2 else a for a in map(_array, arys)]
    return out[0] if len(out) == 1 else out


def atleast_3d(*arys: NestedLike) -> Any:
    """Arrays with at least three dimensions: a vector becomes [1, n, 1], a matrix [m, n, 1].

    Args:
        *arys: arrays, numbers or nested lists of numbers.

    Returns: array, or a list of them for several arguments.

    Example:
        >>> wnp.atleast_3d(wnp.array([1, 2])).shape
        (1, 2, 1)
    """
    out = []
    for a in map(_array, arys):
        out.append(
            a.reshape(1, 1, 1)
            if a.ndim == 0
            else a.reshape(1, -1, 1)
            if a.ndim == 1
            else a[:, :, None]
            if a.ndim == 2
            else a
        )
    return out[0] if len(out) == 1 else out


def flip(m: NestedLike, axis: int | Sequence[int] | None = None) -> Array:
    """Elements in reverse order along axes.

    Args:
        axis: the axis or axes, negative from the end; None: all.

    Returns: array of the shape and dtype of m.

    Example:
        >>> wnp.flip(wnp.array([[1, 2], [3, 4]]), axis=0)
        Array([[3, 4],
               [1, 2]], dtype=int32)
    """
    return _weft.flip(_array(m), axis)


def flipud(m: NestedLike) -> Array:
    """Rows in reverse order.

    Args:
        m: array of one dimension or more.

    Returns: array of the shape and dtype of m.

    Example:
        >>> wnp.flipud(wnp.array([[1, 2], [3, 4]]))
        Array([[3, 4],
               [1, 2]], dtype=int32)
    """
    return flip(m, 0)


def fliplr(m: NestedLike) -> Array:
    """Columns in reverse order.

    Args:
        m: array of two dimensions or more.

    Returns: array of the shape and dtype of m.

    Example:
        >>> wnp.fliplr(wnp.array([[1, 2], [3, 4]]))
        Array([[2, 1],
               [4, 3]], dtype=int32)
    """
    return flip(m, 1)


def rot90(m: NestedLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """An array turned by right angles, from the first axis towards the second.

    Args:
        m: array of two dimensions or more.
        k: by how many right angles.
        axes: the plane in which it turns.

    Returns: array of the dtype of m.

    Raises:
        IndexError: m does not have such an axis.
        ValueError: the axes are the same one, or not two.

    Example:
        >>> wnp.rot90(wnp.array([[1, 2], [3, 4]]))
        Array([[2, 4],
               [1, 3]], dtype=int32)
    """
    m, k = _array(m), k % 4
    if not isinstance(axes, (tuple, list, np.ndarray)) or len(axes) != 2:
        raise value_error(f"rot90: axes must be two, got {axes!r}")
    first, second = (_weft.check_axis(d, m.ndim, "rot90") for d in axes)
    if first == second:
        raise value_error(f"rot90: axes must be different, got {axes!r} of an array of {m.ndim} dimensions")
    if k == 0:
        return m
    if k == 2:
        return flip(m, (first, second))
    if k == 1:
        return swapaxes(flip(m, second), first, second)
    return flip(swapaxes(m, first, second), second)


def roll(a: NestedLike, shift: int | Sequence[int] | NDArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """Elements moved along axes; those that leave at the end come in at the front.

    Args:
        shift: by how many places, an integer (traced ones too) or several: one per axis, or all along a single one.
        axis: the axis or axes, negative from the end; None: of the flattened array.

    Returns: array of the shape and dtype of a.

    Raises:
        ValueError: shifts and axes are several of each, and not as many.

    Example:
        >>> wnp.roll(wnp.array([1, 2, 3, 4]), 1)
        Array([4, 1, 2, 3], dtype=int32)
    """
    a = _array(a)
    if axis is None:
        return roll(a.reshape(-1), shift, 0).reshape(a.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    if hasattr(shift, "__jax_array__"):
        shift = _weft.array(shift, None, False)
    if isinstance(shift, np.ndarray):
        shift = shift.tolist()
    shifts: list[Any] = list(shift) if isinstance(shift, (tuple, list)) else [shift]
    if isinstance(shift, Array) and shift.ndim:
        if shift.ndim > 1:
            raise value_error(f"roll: shift must be a number or a vector, got shape {shift.shape}")
        shifts = [shift[i] for i in range(shift.shape[0])]
    if len(shifts) != len(axes) and len(shifts) != 1 != len(axes):
        raise value_error(f"roll: {len(shifts)} shifts for {len(axes)} axes")
    many = len(shifts) if len(axes) == 1 else len(axes)
    for d, s in zip(list(axes) * many if len(axes) == 1 else axes, shifts * many if len(shifts) == 1 else shifts):
        d = _weft.check_axis(d, a.ndim, "roll")
        n = a.shape[d]
        if n == 0:
            continue
        if isinstance(s, Array) and not isinstance(s, int):
            # The shift may be traced.
            a = _weft.take(a, (_weft.iota((n,), 0, "int32") - s) % n, d, "clip")
            continue
        s = (int(s) if isinstance(s, float) else integer(s, "roll: shift")) % n
        if s:
            key = (builtins.slice(None),) * d
            a = _weft.concatenate([a[key + (builtins.slice(n - s, None),)], a[key + (builtins.slice(0, n - s),)]], d)
    return a


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "order": '"C": the last index counts fastest; "F": the first.',
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
