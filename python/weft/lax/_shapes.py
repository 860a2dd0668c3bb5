"""Making arrays, and changing their shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _weft
from .._core import copied as _copied
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._sharding.placing import lying_like
from .._weft import Array
from ..arguments import is_integer
from ..numpy import _joining
from ..numpy._dtypes import taken_as
from ..typing import ArrayLike, DTypeLike, NDArrayLike, NestedLike, Shape

__all__ = [
    "broadcast",
    "broadcast_in_dim",
    "broadcast_shapes",
    "broadcast_to_rank",
    "broadcasted_iota",
    "collapse",
    "concatenate",
    "dtype",
    "empty",
    "expand_dims",
    "full",
    "full_like",
    "iota",
    "pad",
    "reshape",
    "rev",
    "split",
    "squeeze",
    "stack",
    "tile",
    "transpose",
    "unstack",
]


def full(shape: int | Shape, fill_value: NestedLike, dtype: DTypeLike | None = None) -> Array:
    """An array full of a value.

    Args:
        fill_value: array or number, which broadcasts to the shape.
        dtype: the dtype of the result; None: that of the value, weakly typed where that is a Python number.

    Returns: array of that shape.

    Raises:
        ValueError: a size is negative.

    Example:
        >>> weft.lax.full((2, 2), 7.0)
        Array([[7., 7.],
               [7., 7.]], dtype=float32, weak_type=True)
    """
    out = _weft.full(shape, fill_value, dtype)
    return _weft.weak(out) if dtype is None and _weft.abstract(fill_value)[2] else out


def full_like(
    x: NestedLike, fill_value: NestedLike, dtype: DTypeLike | None = None, shape: int | Shape | None = None
) -> Array:
    """An array like another, full of a value. It lies on devices as that one does, if it has its shape.

    Args:
        x: array or number whose shape and dtype count.
        fill_value: a number.
        dtype: the dtype of the result; None: that of x.
        shape: the shape of the result; None: that of x.

    Returns: array of that shape.

    Example:
        >>> weft.lax.full_like(wnp.array([1, 2]), 7)
        Array([7, 7], dtype=int32)
    """
    dims, own, _, _ = _weft.abstract(x)
    return lying_like(_weft.full(dims if shape is None else shape, fill_value, own if dtype is None else dtype), x)


def iota(dtype: DTypeLike, size: int) -> Array:
    """0, 1 ... size - 1.

    Args:
        size: how many.

    Returns: vector.

    Raises:
        ValueError: size is negative.

    Example:
        >>> weft.lax.iota("float32", 3)
        Array([0., 1., 2.], dtype=float32)
    """
    return _weft.iota((size,), 0, dtype)


def broadcasted_iota(dtype: DTypeLike, shape: Shape, dimension: int) -> Array:
    """The indices along one dimension of a shape.

    Returns: array of that shape.

    Example:
        >>> weft.lax.broadcasted_iota("int32", (2, 3), 1)
        Array([[0, 1, 2],
               [0, 1, 2]], dtype=int32)
    """
    return _weft.iota(tuple(shape), dimension, dtype)


def reshape(operand: NestedLike, new_sizes: Shape, dimensions: Shape | None = None) -> Array:
    """The same elements in another shape, in row-major order.

    Args:
        operand: array or number.
        new_sizes: the shape of the result.
        dimensions: an order to transpose to first; None: as they are.

    Returns: array of that shape, of the dtype of the operand.

    Raises:
        TypeError: the numbers of elements differ.

    Example:
        >>> weft.lax.reshape(wnp.arange(4), (2, 2))
        Array([[0, 1],
               [2, 3]], dtype=int32)
    """
    return _weft.reshape(operand if dimensions is None else _weft.transpose(operand, dimensions), new_sizes)


def transpose(operand: NestedLike, permutation: Shape) -> Array:
    """Dimensions in another order.

    Args:
        permutation: for each dimension of the result the one it was.

    Returns: array of the dtype of the operand.

    Raises:
        ValueError: it is no permutation.

    Example:
        >>> weft.lax.transpose(wnp.ones((2, 3, 4)), (2, 0, 1)).shape
        (4, 2, 3)
    """
    return _weft.transpose(operand, permutation.tolist() if hasattr(permutation, "tolist") else permutation)


def expand_dims(array: NestedLike, dimensions: Shape) -> Array:
    """New dimensions of size 1.

    Args:
        array: array or number.
        dimensions: those of the result that are new.

    Returns: array of the dtype of the operand.

    Example:
        >>> weft.lax.expand_dims(wnp.ones(3), (0,)).shape
        (1, 3)
    """
    return _weft.expand_dims(array, dimensions)


def squeeze(array: NestedLike, dimensions: Shape) -> Array:
    """Without given dimensions of size 1.

    Args:
        array: array of any shape.
        dimensions: those that go.

    Returns: array of the dtype of the operand.

    Raises:
        ValueError: a size is not 1.

    Example:
        >>> weft.lax.squeeze(wnp.ones((1, 3)), (0,)).shape
        (3,)
    """
    return _weft.squeeze(array, dimensions)


def collapse(operand: NDArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Several neighbouring dimensions made one.

    Args:
        start_dimension: the first.
        stop_dimension: the one behind the last; None: up to the end.

    Returns: array of the dtype of the operand.

    Example:
        >>> weft.lax.collapse(wnp.ones((2, 3, 4)), 0, 2).shape
        (6, 4)
    """
    operand = _weft.array(operand, None, False)
    shape = operand.shape
    stop = len(shape) if stop_dimension is None else stop_dimension
    n = 1
    for d in shape[start_dimension:stop]:
        n = n * d
    return _weft.reshape(operand, shape[:start_dimension] + (n,) + shape[stop:])


def broadcast(operand: NestedLike, sizes: Shape) -> Array:
    """New dimensions in front, along which the array repeats.

    Args:
        operand: array or number.
        sizes: their sizes.

    Returns: array of shape sizes + that of the operand.

    Example:
        >>> weft.lax.broadcast(wnp.array([1, 2]), (2,))
        Array([[1, 2],
               [1, 2]], dtype=int32)
    """
    operand = _weft.array(operand, None, False)
    return _weft.broadcast_to(operand, tuple(sizes) + operand.shape)


def broadcast_in_dim(operand: NestedLike, shape: Shape, broadcast_dimensions: Shape) -> Array:
    """An array placed into a larger shape, along whose other dimensions it repeats.

    Args:
        shape: the shape of the result.
        broadcast_dimensions: for each dimension of the operand the one of the result that it becomes; size 1 is
            stretched.

    Returns: array of that shape, of the dtype of the operand.

    Raises:
        TypeError: a size fits neither way, or there is no such dimension.

    Example:
        >>> weft.lax.broadcast_in_dim(wnp.array([1, 2]), (2, 3), (0,))
        Array([[1, 1, 1],
               [2, 2, 2]], dtype=int32)
    """
    dims: list[Any] = list(broadcast_dimensions)
    if any(not 0 <= d < len(shape) for d in dims):
        raise type_error(
            f"broadcast_in_dim: broadcast_dimensions {dims} are not all dimensions of the shape {tuple(shape)}"
        )
    order = sorted(range(len(dims)), key=lambda i: dims[i])
    if order != list(range(len(dims))) and len(dims) == len(_weft.abstract(operand)[0]):
        operand, dims = _weft.transpose(operand, order), [dims[i] for i in order]
    return _weft.bind("broadcast", [operand], {"shape": tuple(shape), "dims": dims})[0]


def broadcast_shapes(*shapes: Shape) -> tuple:
    """The shape that arrays of these shapes have together.

    Args:
        *shapes: tuples of integers.

    Returns: tuple.

    Raises:
        TypeError: they do not broadcast, or one is no shape.

    Example:
        >>> weft.lax.broadcast_shapes((2, 1), (1, 3))
        (2, 3)
    """
    for shape in shapes:
        wrong = next((d for d in shape if not isinstance(d, _weft.Dim) and not (is_integer(d) and d >= 0)), None)
        if wrong is not None:
            raise type_error(f"broadcast_shapes: {shape!r} is no shape: {wrong!r} is no size")
    return _weft.broadcast_shapes(*shapes)


def broadcast_to_rank(x: NestedLike, rank: int) -> Array:
    """New dimensions of size 1 in front.

    Args:
        rank: how many dimensions the result has.

    Returns: array of the dtype of x.

    Example:
        >>> weft.lax.broadcast_to_rank(wnp.ones(3), 3).shape
        (1, 1, 3)
    """
    x = _weft.array(x, None, False)
    return _weft.reshape(x, (1,) * (rank - x.ndim) + x.shape)


def concatenate(operands: Sequence[NestedLike], dimension: int) -> Array:
    """Arrays joined along a dimension.

    Args:
        operands: arrays whose other sizes agree.

    Returns: array of the common dtype.

    Raises:
        TypeError: other sizes differ.
        ValueError: there are none.

    Example:
        >>> weft.lax.concatenate([wnp.array([1, 2]), wnp.array([3])], 0)
        Array([1, 2, 3], dtype=int32)
    """
    return _copied.concatenate(operands, dimension)


def split(operand: NestedLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """An array cut into parts along an axis.

    Args:
        sizes: the sizes of the parts, which fill the axis.

    Returns: list of arrays.

    Raises:
        ValueError: the sizes do not add up to the axis.

    Example:
        >>> weft.lax.split(wnp.arange(5), (2, 3))
        [Array([0, 1], dtype=int32), Array([2, 3, 4], dtype=int32)]
    """
    operand = _weft.array(operand, None, False)
    axis = _weft.check_axis(axis, operand.ndim, "split")
    if sum(sizes) != operand.shape[axis]:
        raise value_error(f"split: sizes {tuple(sizes)} do not add up to {operand.shape[axis]} along axis {axis}")
    out, at = [], 0
    for n in sizes:
        out.append(_weft.slice_axis(operand, axis, at, at + n, 1))
        at += n
    return out


def tile(operand: NestedLike, reps: Sequence[int]) -> Array:
    """An array repeated as a block.

    Args:
        operand: array or number.
        reps: how often along each dimension.

    Returns: array of the dtype of the operand.

    Example:
        >>> weft.lax.tile(wnp.array([1, 2]), (2,))
        Array([1, 2, 1, 2], dtype=int32)
    """
    return _joining.tile(operand, tuple(reps))


def rev(operand: NestedLike, dimensions: Shape) -> Array:
    """Elements in reverse order along dimensions.

    Args:
        dimensions: along which.

    Returns: array of the shape and dtype of the operand.

    Example:
        >>> weft.lax.rev(wnp.array([1, 2, 3]), (0,))
        Array([3, 2, 1], dtype=int32)
    """
    return _weft.flip(operand, dimensions)


def pad(operand: NestedLike, padding_value: NestedLike, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """An array widened by a value: at both ends, and between elements.

    Args:
        padding_value: one number, of a dtype that promotes to that of the operand.
        padding_config: per dimension a triple (low, high, interior) of how many; negative low and high cut.

    Returns: array of the dtype of the operand.

    Raises:
        TypeError: the operand's dtype does not hold the padding value's.
        ValueError: there is not one triple per dimension.

    Example:
        >>> weft.lax.pad(wnp.array([1, 2, 3]), 0, [(1, 0, 1)])
        Array([0, 1, 0, 2, 0, 3], dtype=int32)
    """
    operand = _weft.array(operand, None, False)
    low, high, interior = ([c[i] for c in padding_config] for i in range(3))
    value = taken_as(padding_value, operand.dtype, "pad: padding_value")
    return _weft.bind("pad", [operand, value], {"lo": low, "hi": high, "interior": interior})[0]


def dtype(x: NestedLike) -> Any:
    """The dtype of an array or number, or that of arrays of a type of numbers.

    Args:
        x: array, number, or what names a dtype.

    Returns: NumPy dtype.

    Example:
        >>> weft.lax.dtype(wnp.ones(2))
        dtype('float32')
    """
    if not _weft.is_operand(x) and not isinstance(x, (list, tuple)):
        return _weft.dtype(x)
    return _weft.abstract(x)[1]


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """Arrays of one shape joined along a new dimension.

    Args:
        operands: arrays of one shape.
        axis: the dimension of the result that is new.

    Returns: array of one more dimension, of the common dtype.

    Raises:
        TypeError: shapes differ.
        ValueError: there are none.

    Example:
        >>> weft.lax.stack([wnp.array([1, 2]), wnp.array([3, 4])])
        Array([[1, 2],
               [3, 4]], dtype=int32)
    """
    return _copied.stack(operands, axis)


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """The slices along a dimension.

    Args:
        axis: the dimension, negative from the end.

    Returns: tuple of arrays without it.

    Example:
        >>> weft.lax.unstack(wnp.array([[1, 2], [3, 4]]))
        (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    moved = _weft.moveaxis(_weft.array(x, None, False), axis, 0)
    return tuple(moved[i] for i in range(moved.shape[0]))


def empty(shape: int | Shape, dtype: DTypeLike) -> Array:
    """An array whose values do not matter: zeros here.

    Returns: array of that shape.

    Raises:
        ValueError: a size is negative.

    Example:
        >>> weft.lax.empty((2,), "float32").shape
        (2,)
    """
    return _weft.full((shape,) if is_integer(shape) else tuple(shape), 0, dtype)


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "dimension": "which dimension.",
    "dtype": "the dtype of the result.",
}

_docs.complete(globals(), _PARAMETERS)
