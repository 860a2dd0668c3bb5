"""Indexing beyond subscripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _weft
from .._core import docs as _docs
from .._core.errors import not_implemented, type_error, value_error
from .._core.tree import jax_semantics
from .._weft import Array
from ..arguments import concrete, count
from ..arguments import sizes as _sizes
from ..typing import DTypeLike, NDArrayLike, NestedLike, Shape
from ._along import along
from ._dtypes import iinfo
from ._shape import _together

__all__ = [
    "argwhere",
    "choose",
    "compress",
    "extract",
    "fill_diagonal",
    "flatnonzero",
    "ix_",
    "nonzero",
    "put",
    "put_along_axis",
    "take",
    "take_along_axis",
    "newaxis",
    "unravel_index",
    "ravel_multi_index",
]

newaxis = None


def take(
    a: NestedLike,
    indices: NestedLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: NestedLike | None = None,
) -> Array:
    """Slices of an array at indices along an axis.

    Args:
        indices: array or number of an integer dtype, of any shape; negative ones count from the end.
        mode: what an index out of range does: "fill" (as None) gives fill_value, "clip" takes the nearest (negative
            ones count as 0), "wrap" counts around, "promise_in_bounds" says that there is none.
        unique_indices: accepted, without effect.
        indices_are_sorted: accepted, without effect.
        fill_value: None: NaN for floats, the smallest integer, the largest unsigned one, True.

    Returns: array of a's shape with the axis replaced by the shape of the indices.

    Raises:
        TypeError: indices are no integers.
        ValueError: there is no such mode.

    Example:
        >>> wnp.take(wnp.array([[1, 2], [3, 4]]), wnp.array([1, 0, 1]), axis=0)
        Array([[3, 4],
               [1, 2],
               [3, 4]], dtype=int32)
    """
    _no_out(out)
    del unique_indices, indices_are_sorted
    a, indices = _weft.array(a, None, False), _weft.array(indices, None, False)
    if _weft.is_inexact(indices.dtype):
        raise type_error(f"take: indices must be integers, got {indices.dtype}")
    indices = _comparable(indices)
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = _weft.check_axis(axis, a.ndim, "take")
    n = a.shape[axis]
    if mode == "wrap":
        return _weft.take(a, indices % n, axis, "clip")
    if mode == "clip":
        return _weft.take(a, _weft.where(indices < 0, 0, indices), axis, "clip")
    if mode not in (None, "fill", "promise_in_bounds"):
        raise value_error(
            f"take: there is no mode {mode!r}; the modes are 'fill', 'clip', 'wrap' and 'promise_in_bounds'"
        )
    if mode == "promise_in_bounds":
        return _weft.take(a, indices, axis, "clip")
    filled = _weft.take(a, indices, axis, "fill")
    if fill_value is None:
        return filled
    inside = (indices >= _first(indices, n)) & (indices < n)
    inside = inside.reshape((1,) * axis + indices.shape + (1,) * (a.ndim - axis - 1))
    return _weft.where(inside, filled, _weft.array(fill_value, a.dtype, False))


def _comparable(indices: Array) -> Array:
    """Indices of a dtype that holds sizes."""
    return indices.astype("int32") if indices.dtype.itemsize < 4 else indices


def _first(indices: Array, n: Any) -> Any:
    """The least index of n elements; unsigned ones do not count from the end, nor do they hold -n."""
    return 0 if _weft.dtype_kind(indices.dtype) == "unsigned" else -n


def _no_out(out) -> None:
    if out is not None:
        message = "out= is not supported: arrays never change"
        raise not_implemented(message) if jax_semantics() else type_error(message)


def take_along_axis(
    arr: NestedLike,
    indices: NestedLike,
    axis: int | None = -1,
    mode: str | None = None,
    fill_value: NestedLike | None = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """For each position the element whose index along the axis is given there.

    Args:
        indices: array of integers of as many dimensions as arr, whose other sizes are those of arr (or 1).
        mode: what an index out of range does: "fill" and "drop" (as None) give fill_value, all others the nearest.
        fill_value: as for take.
        wrap_negative_indices: whether negative indices count from the end (as None); otherwise they are out of range.

    Returns: array of the shape of the indices, of the dtype of arr.

    Raises:
        TypeError: indices are no integers.

    Example:
        >>> wnp.take_along_axis(wnp.array([[1, 5], [7, 3]]), wnp.array([[1], [0]]), axis=1)
        Array([[5],
               [7]], dtype=int32)
    """
    arr, indices = _weft.array(arr, None, False), _weft.array(indices, None, False)
    if _weft.is_inexact(indices.dtype):
        raise type_error(f"take_along_axis: indices must be integers, got {indices.dtype}")
    indices = _comparable(indices)
    if axis is None:
        arr, axis = arr.reshape(-1), 0
    n = arr.shape[_weft.check_axis(axis, arr.ndim, "take_along_axis")]
    wraps = wrap_negative_indices is None or bool(wrap_negative_indices)
    first = _first(indices, n) if wraps else 0
    # `along` wraps, and takes the nearest element for what is still out of range.
    out = along(arr, indices if wraps else _weft.where(indices < 0, 0, indices), axis)
    if mode not in (None, "fill", "drop"):
        return out
    if fill_value is None:
        kind = _weft.dtype_kind(arr.dtype)
        fill_value = {"bool": True, "signed": None, "unsigned": None}.get(kind, float("nan"))
        if fill_value is None:
            fill_value = iinfo(arr.dtype).min if kind == "signed" else iinfo(arr.dtype).max
    return _weft.where((indices >= first) & (indices < n), out, _weft.array(fill_value, arr.dtype, False))


def _must_copy(inplace: bool, what: str) -> None:
    if inplace:
        raise value_error(f"{what}: arrays never change; pass inplace=False and use the result, or x.at[...].set(...)")


def put_along_axis(
    arr: NestedLike,
    indices: NestedLike,
    values: NestedLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """A copy in which the elements at indices along an axis are replaced.

    Args:
        indices: array of integers of as many dimensions as arr; its others broadcast to those of arr.
        values: array or number that broadcasts to the indices.
        mode: what indices out of range do: "drop" (as None), "clip" or "promise_in_bounds".

    Returns: array of the shape and dtype of arr.

    Raises:
        ValueError: inplace is True, as by default in NumPy, or shapes do not fit.

    Example:
        >>> wnp.put_along_axis(wnp.array([[1, 5], [7, 3]]), wnp.array([[1], [0]]), 0, axis=1, inplace=False)
        Array([[1, 0],
               [0, 3]], dtype=int32)
    """
    _must_copy(inplace, "put_along_axis")
    arr, indices = _weft.array(arr, None, False), _weft.array(indices, None, False)
    if axis is None:
        return put_along_axis(arr.reshape(-1), indices, values, 0, False, mode=mode).reshape(arr.shape)
    axis = _weft.check_axis(axis, arr.ndim, "put_along_axis")
    if indices.ndim != arr.ndim:
        raise value_error(
            f"put_along_axis: indices of {indices.ndim} dimensions for an array of {arr.ndim}; expected as many"
        )
    shape = tuple(indices.shape[d] if d == axis else size for d, size in enumerate(arr.shape))
    if any(n not in (1, wanted) for n, wanted in zip(indices.shape, shape)):
        raise value_error(
            f"put_along_axis: indices of shape {indices.shape} do not broadcast to {shape}, the other dimensions of arr"
        )
    indices = _weft.broadcast_to(indices, shape)
    key = tuple(indices if d == axis else _weft.iota(shape, d, "int32") for d in range(arr.ndim))
    return arr.at[key].set(values, mode=mode)


def put(a: NestedLike, ind: NestedLike, v: NestedLike, mode: str | None = None, *, inplace: bool = True) -> Array:
    """A copy in which elements of the flattened array are replaced.

    Args:
        ind: array of integers.
        v: array or number: the values, repeated as needed.
        mode: what indices out of range do: None and "clip" take the nearest ("clip" of negative ones the first), "drop"
            drops them, "wrap" counts around.

    Returns: array of the shape and dtype of a.

    Raises:
        ValueError: inplace is True, as by default in NumPy.

    Example:
        >>> wnp.put(wnp.array([1, 2, 3]), wnp.array([0, 2]), 9, inplace=False)
        Array([9, 2, 9], dtype=int32)
    """
    _must_copy(inplace, "put")
    a, v, ind = _weft.array(a, None, False), _together(a, v)[1], _weft.array(ind, None, False).reshape(-1)
    n = ind.shape[0]
    v = v.reshape(-1)
    if v.size == 0:
        return a
    v = v[_weft.iota((n,), 0, "int32") % v.shape[0]]
    if mode == "wrap":
        ind = ind % a.size
    if mode is None:
        ind = _weft.where(ind < 0, ind + a.size, ind)
    if mode in (None, "clip"):
        ind = _weft.where(ind < 0, 0, _weft.where(ind >= a.size, a.size - 1, ind))
    return a.reshape(-1).at[ind].set(v).reshape(a.shape)


def fill_diagonal(a: NestedLike, val: NestedLike, wrap: bool = False, *, inplace: bool = True) -> Array:
    """A copy in which the main diagonal is replaced.

    Args:
        a: array of two dimensions, or of more of one size.
        val: array or number: the values, repeated as needed.
        wrap: must be False.

    Returns: array of the shape and dtype of a.

    Raises:
        ValueError: inplace is True, as by default in NumPy, or sizes do not fit.
        NotImplementedError: wrap is True.

    Example:
        >>> wnp.fill_diagonal(wnp.zeros((2, 2)), 5, inplace=False)
        Array([[5., 0.],
               [0., 5.]], dtype=float32)
    """
    _must_copy(inplace, "fill_diagonal")
    a = _weft.array(a, None, False)
    if wrap:
        raise not_implemented("fill_diagonal: wrap=True")
    if a.ndim < 2 or (a.ndim > 2 and len(set(a.shape)) > 1):
        raise value_error(f"fill_diagonal: two dimensions, or more of one size, are needed, got shape {a.shape}")
    i = _weft.iota((min(a.shape),), 0, "int32")
    val = _together(a, val)[1]
    if val.ndim:
        val = val.reshape(-1)[i % val.size]
    return a.at[(i,) * a.ndim].set(val)


def nonzero(a: NestedLike, *, size: int | None = None, fill_value: NestedLike | None = None) -> tuple[Array, ...]:
    """The indices of the elements that are not 0.

    Args:
        size: inside jit: how many indices the result has; the first ones, in row-major order.
        fill_value: with size: what fills the result, a number or a tuple of one per dimension; None: 0.

    Returns: tuple of int32 vectors, one per dimension.

    Raises:
        ValueError: the array has no dimensions.
        weft.TracerError: the array is traced and size is not given.

    Example:
        >>> wnp.nonzero(wnp.array([0, 5, 0, 7]))
        (Array([1, 3], dtype=int32),)
        >>> weft.jit(lambda x: wnp.nonzero(x, size=3, fill_value=-1))(wnp.array([0, 5, 0, 7]))
        (Array([ 1,  3, -1], dtype=int32),)
    """
    a = _weft.array(a, None, False)
    if a.ndim == 0:
        raise value_error("nonzero: an array without dimensions has no indices; use atleast_1d")
    if size is None:
        return tuple(i.astype(int) for i in _weft.nonzero(a))
    size = count(size, "nonzero: size")
    flat = (a != 0).reshape(-1)
    n = flat.shape[0]
    # Position of each hit among the hits; the others go out of bounds and are dropped.
    place = _weft.where(flat, _weft.cumulative("cumsum", flat.astype("int32"), 0, False) - 1, size)
    total = _weft.reduce("reduce_sum", flat.astype("int32"), None, False)
    at = _weft.full((size,), 0, "int32").at[place].set(_weft.iota((n,), 0, "int32"))
    out = unravel_index(at, a.shape)
    valid = _weft.iota((size,), 0, "int32") < total
    fills = fill_value if isinstance(fill_value, (tuple, list)) else [0 if fill_value is None else fill_value] * a.ndim
    return tuple(_weft.where(valid, o, f).astype(int) for o, f in zip(out, fills))


def argwhere(a: NestedLike, *, size: int | None = None, fill_value: NestedLike | None = None) -> Array:
    """The indices of the elements that are not 0, one row each.

    Args:
        size: inside jit: how many rows the result has.

    Returns: array of int32 [number, dimensions].

    Raises:
        weft.TracerError: the array is traced and size is not given.

    Example:
        >>> wnp.argwhere(wnp.array([[0, 5], [7, 0]]))
        Array([[0, 1],
               [1, 0]], dtype=int32)
    """
    a = _weft.array(a, None, False)
    places = nonzero(a.reshape(-1) if a.ndim == 0 else a, size=size, fill_value=fill_value)
    return _weft.stack(list(places), 1)[:, : a.ndim]


def flatnonzero(a: NestedLike, *, size: int | None = None, fill_value: NestedLike | None = None) -> Array:
    """The indices of the elements of the flattened array that are not 0.

    Args:
        size: inside jit: how many indices the result has.

    Returns: int32 vector.

    Raises:
        weft.TracerError: the array is traced and size is not given.

    Example:
        >>> wnp.flatnonzero(wnp.array([[0, 5], [7, 0]]))
        Array([1, 2], dtype=int32)
    """
    return nonzero(_weft.array(a, None, False).reshape(-1), size=size, fill_value=fill_value)[0]


def extract(condition: NestedLike, arr: NestedLike, *, size: int | None = None, fill_value: NestedLike = 0) -> Array:
    """The elements of an array where a condition holds.

    Args:
        condition: array of booleans of the shape of arr.
        size: inside jit: how many elements the result has.
        fill_value: with size: what fills the result.

    Returns: vector of the dtype of arr.

    Raises:
        weft.TracerError: the condition is traced and size is not given.

    Example:
        >>> x = wnp.arange(5)
        >>> wnp.extract(x % 2 == 1, x)
        Array([1, 3], dtype=int32)
    """
    return compress(_weft.array(condition, None, False).reshape(-1), arr, size=size, fill_value=fill_value)


def compress(
    condition: NestedLike,
    a: NestedLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: NestedLike = 0,
    out: None = None,
) -> Array:
    """The slices along an axis where a condition holds.

    Args:
        condition: vector of booleans, not longer than the axis.
        size: inside jit: how many slices the result has.
        fill_value: with size: what fills the result.

    Returns: array of the dtype of a.

    Raises:
        ValueError: the condition is no vector.
        weft.TracerError: the condition is traced and size is not given.

    Example:
        >>> wnp.compress(wnp.array([True, False, True]), wnp.array([1, 2, 3]))
        Array([1, 3], dtype=int32)
    """
    _no_out(out)
    a, condition = _weft.array(a, None, False), _weft.array(condition, bool, False)
    if condition.ndim != 1:
        raise value_error(f"compress: the condition must be a vector, got shape {condition.shape}")
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = _weft.check_axis(axis, a.ndim, "compress")
    (at,) = nonzero(condition, size=size, fill_value=0)
    chosen = _weft.take(a, at, axis, "clip")
    if size is None:
        return chosen
    valid = _weft.iota((size,), 0, "int32") < _weft.reduce("reduce_sum", condition.astype("int32"), None, False)
    return _weft.where(
        valid.reshape((-1,) + (1,) * (a.ndim - axis - 1)), chosen, _weft.array(fill_value, a.dtype, False)
    )


def choose(a: NestedLike, choices: Sequence[NestedLike], out: None = None, mode: str = "raise") -> Array:
    """Elements of several arrays, chosen by index.

    Args:
        a: array of integers.
        choices: arrays that broadcast against a, one per index.
        mode: what an index out of range does: "raise" raises ValueError, "clip" takes the nearest, "wrap" counts
            around.

    Returns: array of the common shape.

    Raises:
        ValueError: an index is out of range with mode "raise", or there is no such mode.
        weft.TracerError: mode is "raise" and a is traced.

    Example:
        >>> wnp.choose(wnp.array([0, 1, 1]), [wnp.array([1, 2, 3]), 10])
        Array([ 1, 10, 10], dtype=int32)
    """
    _no_out(out)
    given, a = _broadcast_all(choices), _weft.array(a, None, False)
    n, shape = len(given), _weft.broadcast_shapes(a.shape, given[0].shape)
    a, stacked = _weft.broadcast_to(a, shape), _weft.stack([_weft.broadcast_to(c, shape) for c in given], 0)
    if mode == "wrap":
        a = a % n
    elif mode == "clip":
        a = _weft.where(a < 0, 0, _weft.where(a >= n, n - 1, a))
    elif mode == "raise":
        outside = _weft.reduce("reduce_or", (a < 0) | (a >= n), None, False)
        if a.size and concrete(bool, outside, "choose: whether an index is out of range"):
            raise value_error(f"choose: an index is out of range for {n} choices")
    else:
        raise value_error(f"choose: there is no mode {mode!r}")
    return along(stacked, a[None], 0)[0]


def _broadcast_all(arrays) -> list[Array]:
    arrays = _together(*arrays)
    shape = _weft.broadcast_shapes(*(c.shape for c in arrays))
    return [_weft.broadcast_to(c, shape) for c in arrays]


def ix_(*args: Any) -> tuple[Array, ...]:
    """Index arrays that select a block of rows, columns ...

    Args:
        *args: vectors of integers, one per dimension; of booleans: which ones.

    Returns: tuple of arrays that broadcast to the block.

    Raises:
        ValueError: an argument is no vector.
        weft.TracerError: booleans are traced: how many are True is not known.

    Example:
        >>> x = wnp.arange(9).reshape(3, 3)
        >>> x[wnp.ix_(wnp.array([0, 2]), wnp.array([1, 2]))]
        Array([[1, 2],
               [7, 8]], dtype=int32)
    """
    n = len(args)
    vectors = [_weft.array(a, None, False) for a in args]
    for i, v in enumerate(vectors):
        if v.ndim != 1:
            raise value_error(f"ix_: argument {i} must be a vector, got shape {v.shape}")
        if v.dtype == bool:
            vectors[i] = _weft.nonzero(v)[0]
    return tuple(v.reshape([-1 if d == i else 1 for d in range(n)]) for i, v in enumerate(vectors))


def unravel_index(indices: NestedLike, shape: int | Shape) -> tuple[Array, ...]:
    """Indices of the flattened array as indices of each dimension.

    Args:
        indices: array or number of an integer dtype; negative ones count from the end, one out of range is
            the nearest.
        shape: the sizes of the dimensions, an integer or a tuple of them.

    Returns: tuple of arrays of the shape of the indices, one per dimension.

    Example:
        >>> wnp.unravel_index(wnp.array([1, 5]), (2, 3))
        (Array([0, 1], dtype=int32), Array([1, 2], dtype=int32))
    """
    rest, out = _weft.array(indices, None, False), []
    # Sizes may be traced: they are numbers to divide by.
    given: tuple[Any, ...] = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    sizes = given if any(map(_weft.is_traced, given)) else _sizes(shape, "unravel_index")
    for n in reversed(sizes):
        out.append(rest % n)
        rest = rest // n
    # What is left says which indices are outside: it is 0, or -1 for negative ones, but for those.
    signed = _weft.dtype_kind(rest.dtype) == "signed"
    places = [_weft.where(rest > 0, n - 1, i) for n, i in zip(sizes, reversed(out))]
    return tuple(_weft.where(rest < -1, 0, i) if signed else i for i in places)


def ravel_multi_index(
    multi_index: Sequence[NestedLike] | NDArrayLike,
    dims: Shape,
    mode: str | None = None,
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Indices of each dimension as indices of the flattened array.

    Args:
        multi_index: tuple of arrays or numbers of an integer dtype, one per dimension.
        dims: the sizes of the dimensions.
        mode: what an index out of range does: "raise" raises ValueError, "clip" takes the nearest, "wrap" counts
            around, "ignore" computes on. None: "raise" where all are known or under jax_semantics, else "ignore".
        order: "C": the last dimension counts fastest; "F": the first.
        dtype: of the result; None: the common one of the indices and the default integer dtype.

    Returns: array of the common shape.

    Raises:
        ValueError: an index is out of range with mode "raise"; or there is no such mode or order, or not one index per
            dimension.
        TypeError: an index is no integer.
        weft.TracerError: mode is "raise" and an index is traced.

    Example:
        >>> wnp.ravel_multi_index((wnp.array([0, 1]), wnp.array([1, 2])), (2, 3))
        Array([1, 5], dtype=int32)
    """
    if mode not in (None, "raise", "clip", "wrap", "ignore"):
        raise value_error(f"ravel_multi_index: mode must be 'raise', 'clip', 'wrap' or 'ignore', got {mode!r}")
    if order not in ("C", "F"):
        raise value_error(f"ravel_multi_index: order must be 'C' or 'F', got {order!r}")
    places = [_weft.array(i, None, False) for i in multi_index]
    if len(places) != len(dims):
        raise value_error(f"ravel_multi_index: {len(places)} indices for {len(dims)} dimensions")
    for i in places:
        if _weft.dtype_kind(i.dtype) not in ("signed", "unsigned"):
            raise type_error(f"ravel_multi_index: indices must be integers, got {i.dtype}")
    to = _weft.result_type(int, *places) if dtype is None else _weft.dtype(dtype)
    if mode is None:
        mode = "ignore" if any(map(_weft.is_traced, places)) and not jax_semantics() else "raise"
    out: Any = _weft.full((), 0, to)
    sizes: list[Any] = list(dims)
    for i, n in zip(*((places, sizes) if order == "C" else (places[::-1], sizes[::-1]))):
        i = i.astype(to)
        outside = mode == "raise" and i.size and _weft.reduce("reduce_or", (i < 0) | (i >= n), None, False)
        if concrete(bool, outside, "ravel_multi_index: whether an index is out of range"):
            raise value_error(f"ravel_multi_index: an index is out of range for a dimension of {n}")
        if mode == "clip":
            i = _weft.where(i < 0, 0, _weft.where(i >= n, n - 1, i))
        elif mode == "wrap":
            i = i % n
        out = out * n + i
    return out


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "axis": "the axis, negative from the end; None: of the flattened array.",
    "fill_value": "with size: what fills the result; None: 0.",
    "inplace": "must be False: arrays never change.",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
