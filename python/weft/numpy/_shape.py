"""Shapes: reshape, transpose, join, split, repeat."""

from __future__ import annotations

import builtins

from .. import _weft
from .._weft import Array

__all__ = [
    "append",
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "column_stack",
    "concat",
    "concatenate",
    "dsplit",
    "dstack",
    "expand_dims",
    "flip",
    "fliplr",
    "flipud",
    "hsplit",
    "hstack",
    "kron",
    "matrix_transpose",
    "moveaxis",
    "ndim",
    "permute_dims",
    "ravel",
    "repeat",
    "reshape",
    "resize",
    "roll",
    "rollaxis",
    "rot90",
    "row_stack",
    "shape",
    "size",
    "split",
    "squeeze",
    "stack",
    "swapaxes",
    "tile",
    "transpose",
    "unstack",
    "vsplit",
    "vstack",
]


def shape(a) -> tuple:
    """The dimensions of an array or number."""
    return _weft.abstract(a)[0] if _weft.is_operand(a) else _weft.array(a, None, False).shape


def ndim(a) -> int:
    """The number of dimensions."""
    return len(shape(a))


def size(a, axis: int | None = None) -> int:
    """The number of elements, or of those along an axis."""
    dims = shape(a)
    if axis is not None:
        return dims[axis]
    n = 1
    for d in dims:
        n = n * d
    return n


def _array(x) -> Array:
    return _weft.array(x, None, False)


def reshape(a, shape, order: str = "C") -> Array:
    """The same elements in another shape; one dimension may be -1. order "F" counts the first index fastest.
    Raises TypeError when the numbers of elements differ."""
    if order == "F":
        shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        return transpose(_weft.reshape(transpose(_array(a)), shape[::-1]))
    return _weft.reshape(_array(a), shape)


def ravel(a, order: str = "C") -> Array:
    """All elements in one dimension."""
    return reshape(a, -1, order)


def transpose(a, axes=None) -> Array:
    """The dimensions in the order `axes`, reversed by default."""
    return _weft.transpose(_array(a), axes)


permute_dims = transpose


def matrix_transpose(x) -> Array:
    """The last two dimensions exchanged."""
    return swapaxes(x, -1, -2)


def moveaxis(a, source, destination) -> Array:
    """Dimensions moved from source to destination; the others keep their order."""
    return _weft.moveaxis(_array(a), source, destination)


def rollaxis(a, axis: int, start: int = 0) -> Array:
    """An axis moved in front of axis `start`."""
    n = ndim(a)
    axis = _weft.check_axis(axis, n, "rollaxis")
    start = start + n if start < 0 else start
    return moveaxis(a, axis, start - 1 if start > axis else start)


def swapaxes(a, axis1: int, axis2: int) -> Array:
    """Two dimensions exchanged."""
    a = _array(a)
    axes = list(range(a.ndim))
    i, j = _weft.check_axis(axis1, a.ndim, "swapaxes"), _weft.check_axis(axis2, a.ndim, "swapaxes")
    axes[i], axes[j] = axes[j], axes[i]
    return _weft.transpose(a, axes)


def expand_dims(a, axis) -> Array:
    """New dimensions of size 1 at the given axes of the result."""
    return _weft.expand_dims(_array(a), axis)


def squeeze(a, axis=None) -> Array:
    """Without dimensions of size 1 (all of them, or those given)."""
    return _weft.squeeze(_array(a), axis)


def broadcast_to(array, shape) -> Array:
    """An array stretched to a shape by NumPy's rule."""
    return _weft.broadcast_to(_array(array), shape)


def broadcast_shapes(*shapes) -> tuple:
    """The shape that arrays of these shapes have together."""
    return _weft.broadcast_shapes(*shapes)


def broadcast_arrays(*args) -> list[Array]:
    """Arrays stretched to their common shape."""
    arrays = [_array(a) for a in args]
    shape_ = _weft.broadcast_shapes(*(a.shape for a in arrays))
    return [_weft.broadcast_to(a, shape_) for a in arrays]


def concatenate(arrays, axis: int | None = 0, dtype=None) -> Array:
    """Arrays joined along an existing axis (None: flattened first)."""
    arrays = [_array(a) for a in arrays]
    if axis is None:
        arrays, axis = [a.reshape(-1) for a in arrays], 0
    out = _weft.concatenate(arrays, axis)
    return out if dtype is None else out.astype(dtype)


concat = concatenate


def append(arr, values, axis: int | None = None) -> Array:
    """Values joined behind an array."""
    return concatenate([arr, values], axis)


def stack(arrays, axis: int = 0, dtype=None) -> Array:
    """Arrays joined along a new axis."""
    out = _weft.stack([_array(a) for a in arrays], axis)
    return out if dtype is None else out.astype(dtype)


def unstack(x, axis: int = 0) -> tuple[Array, ...]:
    """The slices along an axis."""
    x = _weft.moveaxis(_array(x), axis, 0)
    return tuple(x[i] for i in range(x.shape[0]))


def atleast_1d(*arys):
    """With at least one dimension."""
    out = [a if a.ndim else a.reshape(1) for a in map(_array, arys)]
    return out[0] if len(out) == 1 else out


def atleast_2d(*arys):
    """With at least two dimensions; new ones in front."""
    out = [a.reshape((1,) * (2 - a.ndim) + a.shape) if a.ndim < 2 else a for a in map(_array, arys)]
    return out[0] if len(out) == 1 else out


def atleast_3d(*arys):
    """With at least three dimensions, as NumPy places them."""
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


def vstack(tup, dtype=None) -> Array:
    """Arrays joined as rows."""
    rows = atleast_2d(*tup)
    return concatenate(rows if isinstance(rows, list) else [rows], 0, dtype)


row_stack = vstack


def hstack(tup, dtype=None) -> Array:
    """Arrays joined along the second axis (vectors: the first)."""
    arrays = atleast_1d(*tup)
    arrays = arrays if isinstance(arrays, list) else [arrays]
    return concatenate(arrays, 0 if arrays[0].ndim == 1 else 1, dtype)


def dstack(tup, dtype=None) -> Array:
    """Arrays joined along the third axis."""
    arrays = atleast_3d(*tup)
    return concatenate(arrays if isinstance(arrays, list) else [arrays], 2, dtype)


def column_stack(tup) -> Array:
    """Vectors as columns."""
    return concatenate([a[:, None] if a.ndim == 1 else a for a in map(_array, tup)], 1)


def block(arrays) -> Array:
    """An array put together from nested lists of blocks: the innermost lists join along the last axis."""

    def depth(x) -> int:
        return 1 + builtins.max([depth(y) for y in x], default=0) if isinstance(x, list) else 0

    levels = depth(arrays)
    rank = builtins.max(levels, *[a.ndim for a in map(_array, _flat(arrays))])

    def join(x, level: int) -> Array:
        if not isinstance(x, list):
            if level != levels and levels:
                raise ValueError("block: all blocks must be nested equally deep")
            a = _array(x)
            return a.reshape((1,) * (rank - a.ndim) + a.shape)
        if not x:
            raise ValueError("block: a list is empty")
        return _weft.concatenate([join(y, level + 1) for y in x], level - levels)

    return join(arrays, 0)


def _flat(x) -> list:
    return [z for y in x for z in _flat(y)] if isinstance(x, list) else [x]


def split(ary, indices_or_sections, axis: int = 0) -> list[Array]:
    """Cuts an array along an axis: into equal parts, or before the given indices."""
    ary = _array(ary)
    axis = _weft.check_axis(axis, ary.ndim, "split")
    n = ary.shape[axis]
    if isinstance(indices_or_sections, int):
        if n % indices_or_sections:
            raise ValueError(
                f"split: {n} elements along axis {axis} do not divide into {indices_or_sections} equal parts"
            )
        return array_split(ary, indices_or_sections, axis)
    return _cut(ary, [0, *(int(i) for i in indices_or_sections), n], axis)


def _cut(ary, bounds, axis: int) -> list[Array]:
    key = (builtins.slice(None),) * axis
    return [ary[key + (builtins.slice(a, b),)] for a, b in zip(bounds[:-1], bounds[1:])]


def array_split(ary, indices_or_sections, axis: int = 0) -> list[Array]:
    """Like split, but the first parts may be longer by one."""
    ary = _array(ary)
    if not isinstance(indices_or_sections, int):
        return split(ary, indices_or_sections, axis)
    axis = _weft.check_axis(axis, ary.ndim, "array_split")
    n, k = ary.shape[axis], indices_or_sections
    bounds = [0]
    for i in range(k):
        bounds.append(bounds[-1] + n // k + (1 if i < n % k else 0))
    return _cut(ary, bounds, axis)


def vsplit(ary, indices_or_sections) -> list[Array]:
    """split along axis 0."""
    return split(ary, indices_or_sections, 0)


def hsplit(ary, indices_or_sections) -> list[Array]:
    """split along axis 1 (vectors: 0)."""
    return split(ary, indices_or_sections, 1 if ndim(ary) > 1 else 0)


def dsplit(ary, indices_or_sections) -> list[Array]:
    """split along axis 2."""
    return split(ary, indices_or_sections, 2)


def flip(m, axis=None) -> Array:
    """Elements in reverse order along axes (all by default)."""
    return _weft.flip(_array(m), axis)


def flipud(m) -> Array:
    """flip along axis 0."""
    return flip(m, 0)


def fliplr(m) -> Array:
    """flip along axis 1."""
    return flip(m, 1)


def rot90(m, k: int = 1, axes=(0, 1)) -> Array:
    """Turned by k right angles in the plane of two axes."""
    m, k = _array(m), k % 4
    if k == 0:
        return m
    if k == 2:
        return flip(m, axes)
    if k == 1:
        return swapaxes(flip(m, axes[1]), *axes)
    return flip(swapaxes(m, *axes), axes[1])


def roll(a, shift, axis=None) -> Array:
    """Elements moved along axes; those that leave at the end come in at the front."""
    a = _array(a)
    if axis is None:
        return roll(a.reshape(-1), shift, 0).reshape(a.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    if getattr(shift, "ndim", 0):
        shift = [shift[i] for i in range(len(axes))]
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    for d, s in zip(axes, shifts):
        d = _weft.check_axis(d, a.ndim, "roll")
        n = a.shape[d]
        if n == 0:
            continue
        if isinstance(s, Array) and not isinstance(s, int):
            # The shift may be traced.
            a = _weft.take(a, (_weft.iota((n,), 0, "int32") - s) % n, d, "clip")
            continue
        s = int(s) % n
        if s:
            key = (builtins.slice(None),) * d
            a = _weft.concatenate([a[key + (builtins.slice(n - s, None),)], a[key + (builtins.slice(0, n - s),)]], d)
    return a


def tile(A, reps) -> Array:
    """An array repeated as a block."""
    a, reps = _array(A), tuple(reps) if isinstance(reps, (tuple, list)) else (reps,)
    n = builtins.max(a.ndim, len(reps))
    a, reps = a.reshape((1,) * (n - a.ndim) + a.shape), (1,) * (n - len(reps)) + reps
    wide = _weft.expand_dims(a, [2 * i for i in range(n)])
    out = _weft.broadcast_to(wide, [v for r, d in zip(reps, a.shape) for v in (r, d)])
    return out.reshape([r * d for r, d in zip(reps, a.shape)])


def repeat(a, repeats, axis: int | None = None, *, total_repeat_length: int | None = None) -> Array:
    """Each element several times. Repeats that differ must be known, or total_repeat_length given: what is beyond it
    is dropped, and what is missing repeats the last element."""
    import numpy as np

    a = _array(a)
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = _weft.check_axis(axis, a.ndim, "repeat")
    n = a.shape[axis]
    if isinstance(repeats, int) and total_repeat_length is None:
        wide = _weft.expand_dims(a, axis + 1)
        dims = list(wide.shape)
        dims[axis + 1] = repeats
        return _weft.broadcast_to(wide, dims).reshape(a.shape[:axis] + (n * repeats,) + a.shape[axis + 1 :])
    if total_repeat_length is not None:
        counts = _weft.broadcast_to(_array(repeats).reshape(-1).astype("int32"), (n,))
        ends = _weft.cumulative("cumsum", counts, 0, False)
        place = _weft.iota((total_repeat_length,), 0, "int32")
        index = _weft.reduce("reduce_sum", (ends <= place[:, None]).astype("int32"), -1, False)
        return _weft.take(a, index, axis, "clip")
    known = np.asarray(repeats)
    if known.size == 1:
        return repeat(a, int(known.reshape(())), axis)
    if known.shape != (n,):
        raise ValueError(f"repeat: {known.shape} repeats for {n} elements along axis {axis}")
    index = np.repeat(np.arange(n), known)
    return _weft.take(a, _weft.array(index.astype(np.int32), None, True), axis, "clip")


def resize(a, new_shape) -> Array:
    """The elements repeated or cut to fill a shape."""
    new_shape = tuple(new_shape) if isinstance(new_shape, (tuple, list)) else (new_shape,)
    flat, n = ravel(a), 1
    for d in new_shape:
        n *= d
    times = -(-n // builtins.max(flat.shape[0], 1))
    return tile(flat, times)[:n].reshape(new_shape)


def kron(a, b) -> Array:
    """The Kronecker product."""
    a, b = _array(a), _array(b)
    n = builtins.max(a.ndim, b.ndim)
    a, b = a.reshape((1,) * (n - a.ndim) + a.shape), b.reshape((1,) * (n - b.ndim) + b.shape)
    product = _weft.expand_dims(a, [2 * i + 1 for i in range(n)]) * _weft.expand_dims(b, [2 * i for i in range(n)])
    return product.reshape([x * y for x, y in zip(a.shape, b.shape)])
