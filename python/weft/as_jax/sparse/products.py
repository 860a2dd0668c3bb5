"""Products and sums of sparse arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import weft
import weft.numpy as wnp
from weft import lax

from ..._core.errors import not_implemented, type_error, value_error
from .bcoo import BCOO, bcoo_sum_duplicates, bcoo_update_layout, extract, full_batch
from .shapes import joined_elements
from .util import JAXSparse, SparseInfo, grid

_Numbers = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


def _numbers(dimension_numbers: Any) -> _Numbers:
    (c_x, c_y), (b_x, b_y) = dimension_numbers
    return (tuple(map(int, c_x)), tuple(map(int, c_y))), (tuple(map(int, b_x)), tuple(map(int, b_y)))


def _check(name: str, x: Any, y: Any, numbers: _Numbers) -> None:
    for kind, (xs, ys) in zip(("contracting", "batch"), numbers, strict=True):
        if [x[d] for d in xs] != [y[d] for d in ys]:
            raise type_error(
                f"{name} requires {kind} dimensions to have the same shape, got {x} and {y} along {xs}, {ys}"
            )


def bcoo_dot_general(
    lhs: Any, rhs: Any, *, dimension_numbers: Any, preferred_element_type: Any = None, **_: Any
) -> Any:
    """lax.dot_general of arrays one of which, or both, are sparse; of two sparse ones a sparse array."""
    numbers = _numbers(dimension_numbers)
    lhs, rhs = (x if isinstance(x, JAXSparse) else wnp.asarray(x) for x in (lhs, rhs))
    _check("dot_general", lhs.shape, rhs.shape, numbers)
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        out = _sparse_by_sparse(lhs, rhs, numbers)
        return out if preferred_element_type is None else out.astype(preferred_element_type)
    if isinstance(lhs, BCOO):
        out = _sparse_by_dense(lhs, rhs, numbers)
    elif isinstance(rhs, BCOO):
        (c_x, c_y), (b_x, b_y) = numbers
        out = _sparse_by_dense(rhs, lhs, ((c_y, c_x), (b_y, b_x)))
        n_batch, n_left = len(b_x), lhs.ndim - len(c_x) - len(b_x)
        left = range(out.ndim - n_left, out.ndim)
        out = out.transpose([*range(n_batch), *left, *range(n_batch, out.ndim - n_left)])
    else:
        return lax.dot_general(lhs, rhs, numbers, preferred_element_type=preferred_element_type)
    return out if preferred_element_type is None else out.astype(preferred_element_type)


def parts_dot_general(
    data: Any,
    indices: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    preferred_element_type: Any = None,
    lhs_spinfo: SparseInfo,
) -> Any:
    """... of the parts of a BCOO and an array."""
    lhs = BCOO((data, indices), shape=lhs_spinfo.shape)
    return bcoo_dot_general(
        lhs, rhs, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type
    )


def _sparse_by_dense(lhs: BCOO, rhs: Any, numbers: _Numbers) -> Any:
    """Each stored element times the slice of the other array that it meets, added where it belongs."""
    (c_x, c_y), (b_x, b_y) = numbers
    if any(d >= lhs.n_batch for d in b_x):
        raise not_implemented(
            f"bcoo_dot_general: batch dimensions {b_x} must be among the array's own {lhs.n_batch} batch dimensions"
        )
    lhs = full_batch(lhs)
    dtype = wnp.result_type(lhs.data, rhs)
    n, first_dense = lhs.n_batch, lhs.n_batch + lhs.n_sparse
    met = dict(zip((*b_x, *c_x), (*b_y, *c_y), strict=True))  # dimension of the sparse one -> of the other
    where = grid(lhs.shape[:n], 1) + [lhs.indices[..., d] for d in range(lhs.n_sparse)]
    # Gather: the slices, [*batch, nse, *contracted dense, *free of the other].
    chosen = [d for d in range(first_dense) if d in met]
    dense_c = [d for d in range(first_dense, lhs.ndim) if d in met]
    free_y = [d for d in range(rhs.ndim) if d not in met.values()]
    slices = rhs.transpose([*(met[d] for d in chosen), *(met[d] for d in dense_c), *free_y])
    head = (*lhs.shape[:n], lhs.nse)
    if chosen:
        at = tuple(wnp.broadcast_to(where[d], head) for d in chosen)
        slices = slices.at[at].get(mode="fill", fill_value=0)
    else:
        slices = wnp.broadcast_to(slices, (*head, *slices.shape))
    names = [*range(lhs.ndim + 1 + len(free_y))]  # of dimensions: those of the sparse one, nse, the others'
    of_element, of_free = lhs.ndim, names[lhs.ndim + 1 :]
    of_data = [*range(n), of_element, *range(first_dense, lhs.ndim)]
    dense_free = [d for d in range(first_dense, lhs.ndim) if d not in met]
    kept = [*range(n), of_element, *dense_free, *of_free]
    terms = wnp.einsum(
        lhs.data.astype(dtype), of_data, slices.astype(dtype), [*range(n), of_element, *dense_c, *of_free], kept
    )
    # Scatter: to the places along the free batch and sparse dimensions; what is contracted is summed.
    targets = [*b_x, *(d for d in range(first_dense) if d not in met)]
    shape = [*(lhs.shape[d] for d in targets), *terms.shape[n + 1 :]]
    if not targets:
        return terms.sum(tuple(range(n + 1)), dtype=dtype)
    at = tuple(wnp.broadcast_to(where[d], head) for d in targets)
    return wnp.zeros(shape, dtype).at[at].add(terms, mode="drop")


def _sparse_by_sparse(lhs: BCOO, rhs: BCOO, numbers: _Numbers) -> BCOO:
    """All pairs of stored elements, of which those count whose contracted places are the same."""
    (c_x, c_y), (b_x, b_y) = numbers
    if lhs.n_dense or rhs.n_dense:
        raise not_implemented("bcoo_spdot_general: dense dimensions of two sparse arrays")
    if any(d < m.n_batch for m, c in ((lhs, c_x), (rhs, c_y)) for d in c):
        raise not_implemented("bcoo_spdot_general: contraction over batch dimensions of two sparse arrays")
    if any(d >= m.n_batch for m, b in ((lhs, b_x), (rhs, b_y)) for d in b):
        raise not_implemented("bcoo_spdot_general: batch dimensions must be batch dimensions of both arrays")
    free_x = [d for d in range(lhs.n_batch) if d not in b_x]
    free_y = [d for d in range(rhs.n_batch) if d not in b_y]
    places_x = [d for d in range(lhs.n_batch, lhs.ndim) if d not in c_x]
    places_y = [d for d in range(rhs.n_batch, rhs.ndim) if d not in c_y]
    if free_y and places_x:
        raise value_error("bcoo_dot_general: cannot have unused batch dims on rhs with unused sparse dims on lhs.")
    lhs, rhs = full_batch(lhs), full_batch(rhs)
    batch = [*(lhs.shape[d] for d in (*b_x, *free_x)), *(rhs.shape[d] for d in free_y)]

    def spread(mat: BCOO, order: Sequence[int], ones: slice) -> tuple[Any, Any]:
        """(data, indices) with the batch dimensions of the result."""
        out = []
        for part in (mat.data, mat.indices):
            part = part.transpose([*order, *range(mat.n_batch, part.ndim)])
            lead = list(part.shape[: mat.n_batch])
            lead[ones] = [*lead[ones], *[1] * (len(batch) - len(lead))]
            part = part.reshape(*lead, *part.shape[mat.n_batch :])
            out.append(wnp.broadcast_to(part, (*batch, *part.shape[len(batch) :])))
        return out[0], out[1]

    end = len(b_x)
    x, at_x = spread(lhs, [*b_x, *free_x], slice(len(batch), None))
    y, at_y = spread(rhs, [*b_y, *free_y], slice(end, end))
    same = (_inside_of(at_x, lhs)[..., :, None]) & (_inside_of(at_y, rhs)[..., None, :])
    for d, e in zip(c_x, c_y, strict=True):
        same = same & (at_x[..., :, None, d - lhs.n_batch] == at_y[..., None, :, e - rhs.n_batch])
    dtype = wnp.result_type(x, y)
    data = wnp.where(same, x[..., :, None].astype(dtype) * y[..., None, :].astype(dtype), wnp.zeros((), dtype))
    sizes = [*(lhs.shape[d] for d in places_x), *(rhs.shape[d] for d in places_y)]
    head = (*batch, lhs.nse, rhs.nse)
    columns = [wnp.broadcast_to(at_x[..., :, None, d - lhs.n_batch], head) for d in places_x]
    columns += [wnp.broadcast_to(at_y[..., None, :, d - rhs.n_batch], head).astype(at_x.dtype) for d in places_y]
    places = wnp.stack(columns, axis=-1) if columns else wnp.zeros((*head, 0), at_x.dtype)
    places = wnp.where(same[..., None], places, wnp.array(sizes, at_x.dtype))
    return _joined(data, places, (*batch, *sizes), len(batch))


def _inside_of(indices: Any, mat: BCOO) -> Any:
    return (indices < wnp.array(mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse], indices.dtype)).all(-1)


def _joined(data: Any, places: Any, shape: tuple[int, ...], n_batch: int) -> BCOO:
    """A BCOO of pairs, [*batch, n, m, ...]; no more elements than there are places."""
    lead, dense = data.shape[:n_batch], data.shape[n_batch + 2 :]
    nse = data.shape[n_batch] * data.shape[n_batch + 1]
    out = BCOO(
        (data.reshape(*lead, nse, *dense), places.reshape(*lead, nse, places.shape[-1])),
        shape=shape,
    )
    size = math.prod(shape[n_batch : n_batch + out.n_sparse])
    return bcoo_sum_duplicates(out, nse=size, remove_zeros=False) if nse > size else out


def bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Any) -> Any:
    """The elements at places of a product of two arrays."""
    A, B, indices = map(wnp.asarray, (A, B, indices))
    (c_x, c_y), (b_x, b_y) = numbers = _numbers(dimension_numbers)
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    free_x = [d for d in range(A.ndim) if d not in c_x + b_x]
    free_y = [d for d in range(B.ndim) if d not in c_y + b_y]
    if n_batch or b_x or n_sparse != len(free_x) + len(free_y) or n_sparse == 0:
        return extract(indices, lax.dot_general(A, B, numbers))
    rows = (
        A.transpose([*free_x, *c_x]).at[tuple(indices[:, d] for d in range(len(free_x)))].get(mode="fill", fill_value=0)
    )
    columns = (
        B.transpose([*free_y, *c_y])
        .at[tuple(indices[:, d] for d in range(len(free_x), n_sparse))]
        .get(mode="fill", fill_value=0)
    )
    rows, columns = (
        x if x.ndim == 1 + len(c_x) else wnp.broadcast_to(x, (indices.shape[0], *x.shape)) for x in (rows, columns)
    )
    return (rows * columns).sum(tuple(range(1, rows.ndim)))


def matmul(x: Any, y: Any) -> Any:
    """x @ y; leading dimensions of a sparse array have to be batch dimensions."""
    if not all(isinstance(z, JAXSparse) or hasattr(z, "shape") for z in (x, y)):
        return NotImplemented
    x, y = (z if isinstance(z, JAXSparse) else wnp.asarray(z) for z in (x, y))
    if min(x.ndim, y.ndim) == 0:
        raise type_error("matmul: numbers have no product of matrices; use *")
    if max(x.ndim, y.ndim) <= 2:
        return _dot(x, y, (((x.ndim - 1,), (max(y.ndim - 2, 0),)), ((), ())))
    lead_x, lead_y = x.shape[:-2], y.shape[:-2]
    if lead_x and lead_y and lead_x != lead_y:
        raise not_implemented(f"matmul: leading dimensions {lead_x} and {lead_y}; expected the same, or none")
    both = tuple(range(len(lead_x))) if lead_x and lead_y else ()
    out = _dot(x, y, (((x.ndim - 1,), (max(y.ndim - 2, 0),)), (both, both)))
    if lead_y and not lead_x and x.ndim == 2:  # [rows, *lead, columns]
        order = [*range(1, 1 + len(lead_y)), 0, *range(1 + len(lead_y), out.ndim)]
        return out.transpose(order)
    return out


def _dot(x: Any, y: Any, numbers: Any) -> Any:
    if isinstance(x, JAXSparse) and not isinstance(x, BCOO):
        x = x.to_bcoo()
    if isinstance(y, JAXSparse) and not isinstance(y, BCOO):
        y = y.to_bcoo()
    return bcoo_dot_general(x, y, dimension_numbers=numbers)


def multiply(mat: BCOO, other: Any) -> Any:
    """Element by element, with broadcasting of the other array."""
    if isinstance(other, JAXSparse):
        return bcoo_multiply_sparse(mat, other if isinstance(other, BCOO) else other.to_bcoo())
    if not hasattr(other, "shape") and not np.isscalar(other):
        return NotImplemented
    return bcoo_multiply_dense(mat, other)


def bcoo_multiply_dense(sp_mat: BCOO, v: Any) -> BCOO:
    """A sparse array times one that broadcasts to its shape, element by element."""
    if wnp.ndim(v) == 0:
        return sp_mat._with(sp_mat.data * v)
    return sp_mat._with(sp_mat.data * _elements(sp_mat, v))


def _elements(mat: BCOO, v: Any) -> Any:
    """The elements that an array has, when it is broadcast, where a sparse one stores its own."""
    v = wnp.asarray(v)
    v = v.reshape([1] * (mat.ndim - v.ndim) + list(v.shape)) if v.ndim < mat.ndim else v
    if v.ndim > mat.ndim or any(a not in (1, b) for a, b in zip(v.shape, mat.shape, strict=True)):
        raise not_implemented(f"a sparse array of shape {mat.shape} and one of {v.shape}: the result would be dense")
    n, first_dense = mat.n_batch, mat.n_batch + mat.n_sparse
    lead = grid(mat.shape[:n], 1)
    where = lead + [mat.indices[..., d] for d in range(mat.n_sparse)]
    along = [d for d in range(first_dense) if v.shape[d] > 1 or mat.shape[d] == 1]
    if not along:
        return v.reshape([1] * (n + 1) + list(v.shape[first_dense:]))
    shown = v.reshape([v.shape[d] for d in (*along, *range(first_dense, v.ndim))])
    head = (*np.broadcast_shapes(*(where[d].shape for d in along)),)
    taken = shown.at[tuple(wnp.broadcast_to(where[d], head) for d in along)].get(mode="fill", fill_value=0)
    if mat.n_sparse == 0 or all(d < n for d in along):  # the same for all elements of a part
        head = (*head[:n], 1)
        taken = taken.reshape(*head, *taken.shape[len(head) :])
    return taken


def divide(mat: BCOO, other: Any) -> Any:
    """... divided by an array."""
    if isinstance(other, JAXSparse):
        raise not_implemented("sparse rule for div with a sparse denominator is not implemented.")
    divisor = other if wnp.ndim(other) == 0 else _elements(mat, other)
    if wnp.ndim(other):  # padding reads 0
        inside = _inside_of(mat.indices, mat)
        inside = inside.reshape(*inside.shape, *[1] * mat.n_dense)
        divisor = wnp.where(inside, divisor, wnp.ones((), wnp.asarray(divisor).dtype))
    return mat._with(mat.data / divisor)


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """Element by element: all pairs of stored elements, of which those count that are at the same place."""
    if lhs.ndim != rhs.ndim:
        raise not_implemented(f"bcoo_multiply_sparse: arrays of {lhs.ndim} and {rhs.ndim} dimensions")
    if lhs.n_dense != rhs.n_dense:
        raise not_implemented(f"bcoo_multiply_sparse: {lhs.n_dense} and {rhs.n_dense} dense dimensions")
    n = min(lhs.n_batch, rhs.n_batch)
    lhs, rhs = (full_batch(bcoo_update_layout(m, n_batch=n)) for m in (lhs, rhs))
    shape = np.broadcast_shapes(lhs.shape, rhs.shape)
    batch, sizes = shape[:n], shape[n : n + lhs.n_sparse]
    head = (*batch, lhs.nse, rhs.nse)
    same = wnp.broadcast_to(
        _inside_of(lhs.indices, lhs)[..., :, None] & _inside_of(rhs.indices, rhs)[..., None, :], head
    )
    columns = []
    for d in range(lhs.n_sparse):
        i, j = lhs.indices[..., :, None, d], rhs.indices[..., None, :, d].astype(lhs.indices.dtype)
        if lhs.shape[n + d] == rhs.shape[n + d]:
            same = same & (i == j)
        columns.append(wnp.broadcast_to(i if lhs.shape[n + d] == sizes[d] else j, head))
    places = wnp.stack(columns, axis=-1) if columns else wnp.zeros((*head, 0), lhs.indices.dtype)
    places = wnp.where(same[..., None], places, wnp.array(sizes, lhs.indices.dtype))
    data = wnp.expand_dims(lhs.data, n + 1) * wnp.expand_dims(rhs.data, n)
    shown = same.reshape(*same.shape, *[1] * lhs.n_dense)
    data = wnp.where(shown, data, wnp.zeros((), data.dtype))
    return _joined(data, places, tuple(shape), n)


def add(x: BCOO, y: Any) -> Any:
    """x + y: of two sparse arrays the elements of both, with another array a whole one."""
    if isinstance(y, BCOO):
        if x.shape != y.shape:
            raise not_implemented(f"the sum of sparse arrays of shapes {x.shape} and {y.shape}")
        return joined_elements([x, y])
    if isinstance(y, JAXSparse) or (not hasattr(y, "shape") and not np.isscalar(y)):
        return NotImplemented
    return x.todense() + y


def bcoo_reduce_sum(mat: BCOO, *, axes: Any) -> BCOO:
    """Sums along axes, as a sparse array."""
    axes = sorted({weft._weft.check_axis(int(a), mat.ndim, "bcoo_reduce_sum") for a in axes})
    n, first_dense = mat.n_batch, mat.n_batch + mat.n_sparse
    batch = [a for a in axes if a < n]
    if batch:
        mat = full_batch(mat)
    dense = [a - mat.n_sparse + 1 for a in axes if a >= first_dense]  # in data
    data = mat.data.sum(tuple(dense), dtype=mat.dtype) if dense else mat.data
    kept = [d for d in range(mat.n_sparse) if n + d not in axes]
    indices = mat.indices
    if len(kept) < mat.n_sparse:  # elements outside along what is summed would count
        inside = _inside_of(indices, mat)
        data = wnp.where(inside.reshape(*inside.shape, *[1] * (data.ndim - 1 - n)), data, wnp.zeros((), data.dtype))
        indices = wnp.stack([indices[..., d] for d in kept], axis=-1) if kept else indices[..., :0]
    if batch:
        order = [*(d for d in range(n) if d not in batch), *batch]
        left = n - len(batch)
        data = data.transpose([*order, *range(n, data.ndim)])
        indices = indices.transpose([*order, n, n + 1])
        nse = math.prod(mat.shape[a] for a in batch) * mat.nse
        data = data.reshape(*data.shape[:left], nse, *data.shape[n + 1 :])
        indices = indices.reshape(*indices.shape[:left], nse, indices.shape[-1])
    shape = [size for d, size in enumerate(mat.shape) if d not in axes]
    unique = mat.unique_indices and not axes
    return BCOO((data, indices), shape=shape, indices_sorted=mat.indices_sorted and not axes, unique_indices=unique)
