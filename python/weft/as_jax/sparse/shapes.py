"""Sparse arrays in other shapes: reordered, reshaped, cut, joined."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import weft.numpy as wnp
from weft import lax

from ..._core.errors import index_error, not_implemented, type_error, value_error
from .bcoo import BCOO, bcoo_sum_duplicates, bcoo_update_layout, full_batch
from .util import JAXSparse, split_shape


def _ints(values: Any) -> tuple[int, ...]:
    return tuple(int(v) for v in values)


def _axes(values: Any, rank: int, name: str) -> tuple[int, ...]:
    axes = _ints(values)
    for a in axes:
        if not -rank <= a < rank:
            raise value_error(f"{name}: axis {a} of an array of {rank} dimensions")
    return tuple(a % rank for a in axes)


def bcoo_transpose(mat: BCOO, *, permutation: Any) -> BCOO:
    """The array with its dimensions reordered, each among those of its kind."""
    order = _axes(permutation, mat.ndim, "bcoo_transpose")
    if sorted(order) != list(range(mat.ndim)):
        raise value_error(f"bcoo_transpose: {order} is no permutation of {mat.ndim} dimensions")
    n, end = mat.n_batch, mat.n_batch + mat.n_sparse
    if any(d >= n for d in order[:n]) or any(not n <= d < end for d in order[n:end]):
        raise not_implemented(
            f"bcoo_transpose: {order} moves dimensions between {n} batch, {mat.n_sparse} sparse, {mat.n_dense} dense "
            "ones"
        )
    data = mat.data.transpose([*order[:n], n, *(d - mat.n_sparse + 1 for d in order[end:])])
    indices = mat.indices.transpose([*order[:n], n, n + 1])
    sparse = [d - n for d in order[n:end]]
    if sparse != list(range(mat.n_sparse)):
        indices = wnp.stack([indices[..., d] for d in sparse], axis=-1)
    return BCOO(
        (data, indices),
        shape=[mat.shape[d] for d in order],
        indices_sorted=mat.indices_sorted and sparse == sorted(sparse),
        unique_indices=mat.unique_indices,
    )


def bcoo_reshape(mat: BCOO, *, new_sizes: Any, dimensions: Any = None, sharding: Any = None) -> BCOO:
    """The array in another shape, of as many elements; batch and sparse dimensions stay apart, dense ones alone."""
    del sharding
    new = _ints(new_sizes)
    if math.prod(new) != mat.size:
        raise type_error(f"bcoo_reshape: {mat.shape} has another number of elements than {new}")
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    if (mat.indices.shape[: mat.n_batch] != mat.shape[: mat.n_batch]) or (
        mat.data.shape[: mat.n_batch] != mat.shape[: mat.n_batch]
    ):
        raise not_implemented("reshape of arrays with broadcasted batch dimensions.")
    batch, sparse, dense = split_shape(mat.shape, mat.n_batch, mat.n_dense)
    new_batch, rest = _same_product(new, batch)
    new_sparse, new_dense = _same_product(rest, sparse)
    if new_batch is None or new_sparse is None:
        raise value_error("bcoo_reshape: new shape cannot mix batch and sparse dimensions.")
    if math.prod(new_dense) != math.prod(dense):
        raise value_error("bcoo_reshape: new shape cannot mix sparse and dense dimensions.")
    n = mat.n_batch
    if sparse == new_sparse:
        indices = mat.indices
    else:
        inside = (mat.indices < wnp.array(sparse, mat.indices.dtype)).all(-1)
        flat = sum(
            (mat.indices[..., d] * math.prod(sparse[d + 1 :]) for d in range(len(sparse))),
            wnp.zeros(mat.indices.shape[:-1], mat.indices.dtype),
        )
        columns = []
        for d, size in enumerate(new_sparse):
            at = (flat // max(math.prod(new_sparse[d + 1 :]), 1)) % max(size, 1)
            columns.append(wnp.where(inside, at, wnp.array(size, flat.dtype)))
        indices = wnp.stack(columns, axis=-1) if columns else mat.indices[..., :0]
        if not columns:  # all places become one: what lies outside counts no more
            shown = inside.reshape(*inside.shape, *[1] * mat.n_dense)
            mat = mat._with(wnp.where(shown, mat.data, wnp.zeros((), mat.dtype)))
    data = mat.data.reshape(*new_batch, mat.nse, *new_dense)
    indices = indices.reshape(*new_batch, *indices.shape[n:])
    return BCOO((data, indices), shape=new, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)


def _same_product(sizes: tuple[int, ...], have: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """(the first sizes, whose product is that of `have`; the others): as many as `have` where there is a choice."""
    ends = [k for k in range(len(sizes) + 1) if math.prod(sizes[:k]) == math.prod(have)]
    if not ends:
        return None, sizes
    end = min(ends, key=lambda k: abs(k - len(have)))
    return sizes[:end], sizes[end:]


def bcoo_squeeze(mat: BCOO, *, dimensions: Any) -> BCOO:
    """The array without dimensions of size 1."""
    gone = set(_axes(dimensions, mat.ndim, "bcoo_squeeze"))
    if any(mat.shape[d] != 1 for d in gone):
        raise value_error(f"bcoo_squeeze: dimensions {sorted(gone)} of {mat.shape} are not all of size 1")
    n, end = mat.n_batch, mat.n_batch + mat.n_sparse
    batch = [d for d in range(n) if d in gone]
    columns = [d - n for d in range(n, end) if d not in gone]
    data = mat.data.squeeze((*batch, *(d - mat.n_sparse + 1 for d in range(end, mat.ndim) if d in gone)))
    indices = mat.indices
    if len(columns) < mat.n_sparse:
        inside = (indices < wnp.array(mat.shape[n:end], indices.dtype)).all(-1)
        sizes = wnp.array([mat.shape[n + d] for d in columns], indices.dtype)
        kept = wnp.stack([indices[..., d] for d in columns], axis=-1) if columns else indices[..., :0]
        indices = wnp.where(inside[..., None], kept, sizes)
        inside = inside.squeeze(tuple(batch))
        shown = inside.reshape(*inside.shape, *[1] * (data.ndim - inside.ndim))
        data = wnp.where(shown, data, wnp.zeros((), data.dtype))
    return BCOO(
        (data, indices.squeeze(tuple(batch))),
        shape=[size for d, size in enumerate(mat.shape) if d not in gone],
        indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )


def bcoo_rev(operand: BCOO, dimensions: Any) -> BCOO:
    """The array with dimensions reversed."""
    mat, dims = operand, _axes(dimensions, operand.ndim, "bcoo_rev")
    n, end = mat.n_batch, mat.n_batch + mat.n_sparse
    batch = [d for d in dims if d < n]
    data = wnp.flip(mat.data, (*batch, *(d - mat.n_sparse + 1 for d in dims if d >= end)))
    indices = wnp.flip(mat.indices, tuple(batch))
    columns = [indices[..., d] for d in range(mat.n_sparse)]
    sparse = [d - n for d in dims if n <= d < end]
    for d in sparse:
        size = mat.shape[n + d]
        columns[d] = wnp.where(columns[d] < size, size - 1 - columns[d], columns[d])
    return BCOO(
        (data, wnp.stack(columns, axis=-1) if sparse else indices),
        shape=mat.shape,
        indices_sorted=mat.indices_sorted and not sparse,
        unique_indices=mat.unique_indices,
    )


def bcoo_slice(mat: BCOO, *, start_indices: Any, limit_indices: Any, strides: Any = None) -> BCOO:
    """Every stride-th element from start to limit, along each dimension."""
    start, limit = _ints(start_indices), _ints(limit_indices)
    stride = (1,) * mat.ndim if strides is None else _ints(strides)
    if not len(start) == len(limit) == len(stride) == mat.ndim:
        raise value_error(f"bcoo_slice: {start}, {limit} and {stride} for {mat.ndim} dimensions")
    shape = tuple(len(range(*each)) for each in zip(start, limit, stride, strict=True))
    n, end = mat.n_batch, mat.n_batch + mat.n_sparse

    def cut(x: Any, dims: Sequence[int], first: int) -> Any:
        """The leading dimensions of x, of which those of size 1 may stand for any, and those of `dims` from `first`."""
        at = [slice(start[d], limit[d], stride[d]) for d in range(n)]
        lead = [
            (slice(0, min(1, shape[d]) if mat.shape[d] != 1 else None) if x.shape[d] != mat.shape[d] else at[d])
            for d in range(n)
        ]
        return x[(*lead, *[slice(None)] * (first - n), *(slice(start[d], limit[d], stride[d]) for d in dims))]

    data, indices = cut(mat.data, range(end, mat.ndim), n + 1), cut(mat.indices, [], n + 2)
    if mat.n_sparse:
        first, last, step = (wnp.array(v[n:end], indices.dtype) for v in (start, limit, stride))
        sizes = wnp.array(shape[n:end], indices.dtype)
        from_start = indices - first
        inside = ((indices >= first) & (indices < last) & (from_start % step == 0)).all(-1)
        indices = wnp.where(inside[..., None], from_start // step, sizes)
        shown = inside.reshape(*inside.shape, *[1] * (data.ndim - inside.ndim))
        data = wnp.where(shown, data, wnp.zeros((), data.dtype))
    return _no_more_than_places(BCOO((data, indices), shape=shape, unique_indices=mat.unique_indices))


def _no_more_than_places(mat: BCOO) -> BCOO:
    places = math.prod(mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse])
    return bcoo_sum_duplicates(mat, nse=places, remove_zeros=False) if mat.nse > places else mat


def bcoo_dynamic_slice(mat: BCOO, start_indices: Any, slice_sizes: Any) -> BCOO:
    """A block of a size, from a place that may be computed; it is moved inside the array."""
    sizes = _ints(slice_sizes)
    if len(sizes) != mat.ndim or len(start_indices) != mat.ndim:
        raise type_error(f"bcoo_dynamic_slice: {len(start_indices)} starts, {len(sizes)} sizes, {mat.ndim} dimensions")
    start = []
    for at, have, size in zip(start_indices, mat.shape, sizes, strict=True):
        at = wnp.asarray(at)
        start.append(wnp.clip(wnp.where(at < 0, at + have, at), 0, have - size).astype("int32"))
    mat = full_batch(mat)
    n, end, zero = mat.n_batch, mat.n_batch + mat.n_sparse, wnp.zeros((), "int32")
    dense, dense_sizes = start[end:], sizes[end:]
    data = lax.dynamic_slice(mat.data, [*start[:n], zero, *dense], [*sizes[:n], mat.nse, *dense_sizes])
    indices = lax.dynamic_slice(mat.indices, [*start[:n], zero, zero], [*sizes[:n], mat.nse, mat.n_sparse])
    if mat.n_sparse:
        first = wnp.stack(start[n:end]).astype(indices.dtype)
        length = wnp.array(sizes[n:end], indices.dtype)
        inside = ((indices >= first) & (indices < first + length)).all(-1)
        indices = wnp.where(inside[..., None], indices - first, length)
        shown = inside.reshape(*inside.shape, *[1] * (data.ndim - inside.ndim))
        data = wnp.where(shown, data, wnp.zeros((), data.dtype))
    return _no_more_than_places(BCOO((data, indices), shape=sizes, unique_indices=mat.unique_indices))


def bcoo_broadcast_in_dim(mat: BCOO, *, shape: Any, broadcast_dimensions: Any, sharding: Any = None) -> BCOO:
    """lax.broadcast_in_dim. What is new in front of the first sparse or dense dimension is a batch dimension, what is
    new behind the first dense one a dense one; all others are sparse."""
    del sharding
    shape, dims = _ints(shape), _ints(broadcast_dimensions)
    n, end = mat.n_batch, mat.n_batch + mat.n_sparse
    if len(dims) != mat.ndim:
        raise value_error(f"bcoo_broadcast_in_dim: {dims} for {mat.ndim} dimensions")
    new_batch = dims[n] if n < mat.ndim else len(shape)
    new_end = dims[end] if mat.n_dense else len(shape)
    batch, of_batch = shape[:new_batch], dims[:n]

    def lead(x: Any) -> Any:
        sizes = [1] * new_batch
        for d, to in enumerate(of_batch):
            sizes[to] = x.shape[d]
        return x.reshape(*sizes, *x.shape[n:])

    data, indices = lead(mat.data), lead(mat.indices)
    # Dense dimensions.
    inner = [1] * (len(shape) - new_end)
    for d in range(end, mat.ndim):
        inner[dims[d] - new_end] = mat.shape[d]
    data = data.reshape(*data.shape[: new_batch + 1], *inner)
    data = wnp.broadcast_to(data, (*data.shape[: new_batch + 1], *shape[new_end:]))
    data = wnp.broadcast_to(data, (*batch, *data.shape[new_batch:]))
    indices = wnp.broadcast_to(indices, (*batch, *indices.shape[new_batch:]))
    # Sparse ones: each element once for each place along what is new.
    of_sparse = {dims[d]: d - n for d in range(n, end)}
    repeated = [d for d in range(new_batch, new_end) if d not in of_sparse or mat.shape[n + of_sparse[d]] != shape[d]]
    sizes = [shape[d] for d in repeated]
    head, count = (*batch, indices.shape[new_batch]), math.prod(sizes)
    at = [
        wnp.arange(size, dtype=indices.dtype).reshape([size if i == k else 1 for i in range(len(sizes))])
        for k, size in enumerate(sizes)
    ]
    columns = []
    for d in range(new_batch, new_end):
        if d in repeated:
            column = wnp.broadcast_to(at[repeated.index(d)], (*head, *sizes))
        else:
            column = indices[..., of_sparse[d]].reshape(*head, *[1] * len(sizes))
            column = wnp.broadcast_to(column, (*head, *sizes))
        columns.append(column.reshape(*batch, head[-1] * count))
    if mat.n_sparse and any(d in of_sparse for d in repeated):  # what lay outside along such a dimension
        old = wnp.array(mat.shape[n:end], indices.dtype)
        inside = (indices < old).all(-1)
        data = wnp.where(inside.reshape(*head, *[1] * len(inner)), data, wnp.zeros((), data.dtype))
    places = wnp.stack(columns, axis=-1) if columns else indices[..., :0]
    data = wnp.broadcast_to(wnp.expand_dims(data, new_batch + 1), (*head, count, *shape[new_end:]))
    data = data.reshape(*batch, head[-1] * count, *shape[new_end:])
    return BCOO((data, places), shape=shape, unique_indices=mat.unique_indices)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """The arrays one after the other along a batch or sparse dimension."""
    operands = list(operands)
    first = operands[0]
    (dim,) = _axes([dimension], first.ndim, "bcoo_concatenate")
    for mat in operands[1:]:
        if (mat.n_batch, mat.n_dense, mat.ndim) != (first.n_batch, first.n_dense, first.ndim):
            raise not_implemented(
                "bcoo_concatenate: arrays with different numbers of batch, sparse and dense dimensions"
            )
        if any(a != b for d, (a, b) in enumerate(zip(mat.shape, first.shape, strict=True)) if d != dim):
            raise value_error(f"bcoo_concatenate: shapes {first.shape} and {mat.shape} along dimension {dim}")
    n, end = first.n_batch, first.n_batch + first.n_sparse
    shape = [*first.shape]
    shape[dim] = sum(mat.shape[dim] for mat in operands)
    if dim >= end:
        raise not_implemented("bcoo_concatenate along dense dimensions")
    if dim >= n:
        offsets = np.cumsum([0, *(mat.shape[dim] for mat in operands)])
        moved = []
        for mat, offset in zip(operands, offsets, strict=False):
            inside = (mat.indices < wnp.array(mat.shape[n:end], mat.indices.dtype)).all(-1, keepdims=True)
            step = np.zeros(mat.n_sparse, int)
            step[dim - n] = offset
            outside = wnp.array(shape[n:end], mat.indices.dtype)
            moved.append(mat._with(mat.data, wnp.where(inside, mat.indices + wnp.array(step, outside.dtype), outside)))
        return joined_elements(moved, shape)
    nse = max(mat.nse for mat in operands)
    parts = [_with_nse(full_batch(mat), nse) for mat in operands]
    return BCOO(
        (
            wnp.concatenate([mat.data for mat in parts], axis=dim),
            wnp.concatenate([mat.indices for mat in parts], axis=dim),
        ),
        shape=shape,
        indices_sorted=all(mat.indices_sorted for mat in operands),
        unique_indices=all(mat.unique_indices for mat in operands),
    )


def _with_nse(mat: BCOO, nse: int) -> BCOO:
    """The array with padding."""
    more, n = nse - mat.nse, mat.n_batch
    if more == 0:
        return mat
    outside = wnp.array(mat.shape[n : n + mat.n_sparse], mat.indices.dtype)
    places = wnp.broadcast_to(outside, (*mat.indices.shape[:n], more, mat.n_sparse))
    zeros = wnp.zeros((*mat.data.shape[:n], more, *mat.data.shape[n + 1 :]), mat.dtype)
    return mat._with(wnp.concatenate([mat.data, zeros], axis=n), wnp.concatenate([mat.indices, places], axis=n))


def joined_elements(mats: Sequence[BCOO], shape: Any = None) -> BCOO:
    """All elements of arrays, in one of a shape."""
    n, n_dense = min(mat.n_batch for mat in mats), min(mat.n_dense for mat in mats)
    mats = [full_batch(bcoo_update_layout(mat, n_batch=n, n_dense=n_dense)) for mat in mats]
    dtype = wnp.result_type(*(mat.data for mat in mats))
    data = wnp.concatenate([mat.data.astype(dtype) for mat in mats], axis=n)
    indices = wnp.concatenate([mat.indices.astype(mats[0].indices.dtype) for mat in mats], axis=n)
    return BCOO((data, indices), shape=mats[0].shape if shape is None else shape)


def _cut_to_places(mat: BCOO, at: Sequence[int]) -> BCOO:
    """The part at places along the first dimensions."""
    k = len(at)
    start = [*at, *[0] * (mat.ndim - k)]
    end = [*(i + 1 for i in at), *mat.shape[k:]]
    return bcoo_squeeze(bcoo_slice(mat, start_indices=start, limit_indices=end), dimensions=range(k))


def bcoo_getitem(mat: BCOO, index: Any) -> BCOO:
    """mat[index]: integers, slices, None, `...`, and arrays whose numbers are known."""
    items = list(index) if isinstance(index, tuple) else [index]
    items = [x if isinstance(x, (slice, int, np.integer)) or x is None or x is Ellipsis else _known(x) for x in items]
    taken = sum(x.ndim if isinstance(x, np.ndarray) and x.dtype == bool else 1 for x in items if x is not None)
    rest = mat.ndim - taken
    if any(x is Ellipsis for x in items):
        k = next(i for i, x in enumerate(items) if x is Ellipsis)
        items[k : k + 1] = [slice(None)] * (rest + 1)
    elif rest >= 0:
        items += [slice(None)] * rest
    if rest < -1 or sum(x is Ellipsis for x in items) > 1:
        raise index_error(f"too many indices for a sparse array of {mat.ndim} dimensions")
    listed: list[Any] = []
    for x in items:
        listed += list(np.nonzero(x)) if isinstance(x, np.ndarray) and x.dtype == bool else [x]
    # Slices and integers first; None and arrays after them.
    ranges: list[range] = []
    reversed_dims: list[int] = []
    gone: list[int] = []
    for x in (x for x in listed if x is not None):
        dim = len(ranges)
        size = mat.shape[dim]
        if isinstance(x, slice):
            along = range(*x.indices(size))
            if along.step < 0:
                along = along[::-1]
                reversed_dims.append(dim)
            ranges.append(along)
        elif isinstance(x, (int, np.integer)):
            if not -size <= x < size:
                raise index_error(f"index {x} is out of bounds for axis {dim} with size {size}")
            ranges.append(range(int(x) % size, int(x) % size + 1))
            gone.append(dim)
        else:
            ranges.append(range(size))
    arrays = [x for x in listed if isinstance(x, np.ndarray)]
    if arrays and gone:  # integers beside arrays broadcast with them
        listed = [np.array(x) if isinstance(x, (int, np.integer)) else x for x in listed]
        for dim in gone:
            ranges[dim] = range(mat.shape[dim])
        gone, arrays = [], [x for x in listed if isinstance(x, np.ndarray)]
    if ranges != [range(size) for size in mat.shape]:
        start, stride = [r.start for r in ranges], [r.step for r in ranges]
        limit = [max(r.start, r.stop) for r in ranges]
        mat = bcoo_slice(mat, start_indices=start, limit_indices=limit, strides=stride)
    mat = bcoo_rev(mat, dimensions=reversed_dims) if reversed_dims else mat
    mat = bcoo_squeeze(mat, dimensions=gone) if gone else mat
    left = [x for x in listed if not isinstance(x, (int, np.integer))]
    if arrays:
        return _taken(mat, left)
    if any(x is None for x in left):
        kept = [i for i, x in enumerate(left) if x is not None]
        sizes = iter(mat.shape)
        shape = [1 if x is None else next(sizes) for x in left]
        return bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=kept)
    return mat


def _known(x: Any) -> np.ndarray:
    """The numbers of an index that is an array."""
    x = np.asarray(x)
    if x.dtype != bool and x.dtype.kind not in "iu":
        raise type_error(
            f"an index must be an integer, slice, None, '...' or an array of integers or booleans, got {x.dtype}"
        )
    return x


def _taken(mat: BCOO, index: list[Any]) -> BCOO:
    """By arrays of integers, and slices that take all: one part for each place, which are joined."""
    at = [i for i, x in enumerate(index) if isinstance(x, np.ndarray)]
    places = np.broadcast_arrays(*(index[i] for i in at))
    dims, dim = [], 0
    for x in index:
        dims += [dim] if isinstance(x, np.ndarray) else []
        dim += x is not None
    order = [*dims, *(d for d in range(mat.ndim) if d not in dims)]
    mat = bcoo_update_layout(mat, n_batch=0)
    if any(d >= mat.n_sparse for d in dims):
        raise not_implemented("BCOO: arrays as an index of dense dimensions")
    mat = bcoo_transpose(mat, permutation=order)
    sizes = mat.shape[: len(dims)]
    flat = [[int(i) % size for i in p.reshape(-1)] for p, size in zip(places, sizes, strict=True)]
    parts = [_cut_to_places(mat, one) for one in zip(*flat, strict=True)]
    rest = mat.shape[len(dims) :]
    if not parts:
        out = BCOO._empty((0, *rest), dtype=mat.dtype, n_dense=mat.n_dense)
    else:
        lead = [
            bcoo_broadcast_in_dim(
                bcoo_update_layout(p, n_batch=0), shape=(1, *rest), broadcast_dimensions=range(1, 1 + len(rest))
            )
            for p in parts
        ]
        out = bcoo_concatenate([bcoo_update_layout(p, n_batch=0) for p in lead], dimension=0)
    shape = places[0].shape
    out = bcoo_reshape(out, new_sizes=(*shape, *rest))
    # Where the arrays stand next to each other the dimensions of places are there, else in front.
    together = at == list(range(at[0], at[0] + len(at)))
    kept = [(i, x) for i, x in enumerate(index) if not isinstance(x, np.ndarray)]
    before = [x for i, x in kept if together and i < at[0]]
    after = [x for i, x in kept if not (together and i < at[0])]
    k, slices = len(shape), sum(x is not None for x in before)
    out = bcoo_transpose(out, permutation=[*range(k, k + slices), *range(k), *range(k + slices, out.ndim)])
    new: list[int] = []
    kept_dims: list[int] = []
    source = iter(out.shape)
    for x in (*before, *[0] * k, *after):
        if x is not None:
            kept_dims.append(len(new))
        new.append(1 if x is None else next(source))
    if len(new) > out.ndim:
        out = bcoo_broadcast_in_dim(out, shape=new, broadcast_dimensions=kept_dims)
    return out


def bcoo_conv_general_dilated(lhs: Any, rhs: Any, *, window_strides: Any, padding: Any, **options: Any) -> BCOO:
    """lax.conv_general_dilated in one dimension with one batch and feature, of sparse arrays: all pairs of elements,
    each at the sum of their places."""
    if any(value not in (None, 1) for value in (options.get("feature_group_count"), options.get("batch_group_count"))):
        raise not_implemented("bcoo_conv_general_dilated: groups")
    if any(options.get(name) not in (None, (1,), [1]) for name in ("lhs_dilation", "rhs_dilation")):
        raise not_implemented("bcoo_conv_general_dilated: dilation")
    if lhs.ndim != 3 or lhs.shape[:2] != (1, 1) or rhs.shape[:2] != (1, 1) or tuple(window_strides) != (1,):
        raise not_implemented(
            f"bcoo_conv_general_dilated: shapes {lhs.shape} and {rhs.shape}, strides {window_strides}; there are "
            "convolutions of one dimension, one batch element and one feature, with stride 1"
        )
    size, width = lhs.shape[2], rhs.shape[2]
    if isinstance(padding, str):
        ((low, high),) = lax.padtype_to_pads((size,), (width,), (1,), padding)
    else:
        ((low, high),) = padding
    parts = []
    for x in (lhs, rhs):
        if not isinstance(x, JAXSparse):
            x = BCOO.fromdense(x, nse=x.shape[2])
        parts.append(bcoo_update_layout(x, n_batch=0, n_dense=0))
    x, y = parts
    out_size = max(0, size + low + high - width + 1)
    i, j = x.indices[:, None, 2], y.indices[None, :, 2].astype(x.indices.dtype)
    at = i - j + low
    inside = (i < size) & (j < width) & (at >= 0) & (at < out_size)
    dtype = wnp.result_type(x.data, y.data)
    data = wnp.where(inside, x.data[:, None].astype(dtype) * y.data[None, :].astype(dtype), wnp.zeros((), dtype))
    at = wnp.where(inside, at, out_size).reshape(-1, 1)
    zero = wnp.zeros_like(at)
    places = wnp.concatenate([wnp.where(at < out_size, zero, 1), wnp.where(at < out_size, zero, 1), at], axis=1)
    out = _no_more_than_places(BCOO((data.reshape(-1), places), shape=(1, 1, out_size)))
    n_batch = max((m.n_batch for m in (lhs, rhs) if isinstance(m, BCOO)), default=0)
    return bcoo_update_layout(out, n_batch=min(n_batch, 2), on_inefficient=None)
