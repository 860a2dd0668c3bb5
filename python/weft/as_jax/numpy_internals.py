"""Functions of private modules of jax.numpy and jax.lax whose meaning is that of public ones, with other parameters."""

from __future__ import annotations

import enum
import functools
import operator
from typing import Any

import numpy as np

import weft
import weft.numpy as wnp

from .. import _weft
from .._core.errors import index_error, not_implemented, type_error, value_error
from ..numpy import _standard


def einsum_path(subscripts: Any, /, *operands: Any, optimize: Any = "auto") -> tuple[list[Any], str]:
    """weft.numpy.einsum_path, whose path has no title; of a few operands it is the best one."""
    if optimize is True or (isinstance(optimize, str) and optimize == "auto"):
        optimize = "optimal" if len(operands) <= 4 else "greedy"
    path, text = wnp.einsum_path(subscripts, *operands, optimize=optimize)
    return path[1:], text


def searchsorted(
    sorted_arr: Any,
    query: Any,
    /,
    *,
    side: str = "left",
    dimension: int = 0,
    batch_dims: int = 0,
    method: str = "scan",
    dtype: Any = "int32",
) -> Any:
    """numpy.searchsorted along a dimension, for each place of leading dimensions that both arrays share and of the
    others of the sorted one."""
    sorted_arr, query = wnp.asarray(sorted_arr), wnp.asarray(query)
    if side not in ("left", "right"):
        raise value_error(f"invalid argument side={side!r}, expected 'left' or 'right'")
    methods = ["compare_all", "scan", "scan_unrolled", "sort"]
    if method not in methods:
        raise value_error(f"invalid argument method={method!r}, expected one of {methods}")
    if not 0 <= batch_dims < sorted_arr.ndim:
        raise value_error(f"{batch_dims=} must be in range [0, {sorted_arr.ndim})")
    if not batch_dims <= dimension < sorted_arr.ndim:
        raise value_error(f"{dimension=} must be in range [{batch_dims}, {sorted_arr.ndim})")
    shared = sorted_arr.shape[:batch_dims], query.shape[:batch_dims]
    if shared[0] != shared[1]:
        raise value_error(f"batch dimension sizes must match; got {shared[0]} != {shared[1]}")
    if sorted_arr.dtype != query.dtype:
        raise value_error(f"dtypes of sorted_arr and query must match; got {sorted_arr.dtype} and {query.dtype}")
    search: Any = functools.partial(wnp.searchsorted, side=side, method=method)
    for _ in range(sorted_arr.ndim - 1 - batch_dims):
        search = weft.vmap(search, (0, None))
    for _ in range(batch_dims):
        search = weft.vmap(search)
    return search(wnp.moveaxis(sorted_arr, dimension, -1), query).astype(dtype)


def nonzero(a: Any, /, *, size: int, axes: Any = None, dtype: Any = "int32") -> tuple[Any, ...]:
    """numpy.nonzero over some axes, for each place along the others."""
    a = wnp.asarray(a)
    over = sorted(axis % a.ndim for axis in (range(a.ndim) if axes is None else axes))
    beside = [axis for axis in range(a.ndim) if axis not in over]
    find: Any = functools.partial(wnp.nonzero, size=size)
    for _ in beside:
        find = weft.vmap(find)
    return tuple(places.astype(dtype) for places in find(a.transpose(*beside, *over)))


class IndexingStrategy(enum.Enum):
    """How XLA is to compute what is indexed. Weft's compiler decides that."""

    AUTO = "auto"
    GATHER = "gather"
    SCATTER = "scatter"
    STATIC_SLICE = "static_slice"
    DYNAMIC_SLICE = "dynamic_slice"


def _check_static(shape: tuple[int, ...], index: Any) -> None:
    """Raises unless an index consists of known integers within bounds, and slices."""
    entries = index if isinstance(index, tuple) else (index,)
    counted = [e for e in entries if e is not None and e is not Ellipsis]
    if any(not isinstance(e, (int, np.integer, slice)) for e in counted):
        raise type_error(f"static_slice: indices must be static scalars or slices. Got {index!r}")
    if len(counted) > len(shape):
        raise index_error(f"Too many indices: array is {len(shape)}-dimensional, but {len(counted)} were indexed")
    axis = 0
    for entry in entries:
        if entry is Ellipsis:
            axis += len(shape) - len(counted)
        elif entry is not None:
            if not isinstance(entry, slice) and not -shape[axis] <= operator.index(entry) < shape[axis]:
                raise index_error(f"index {entry} out of bounds for axis {axis} with size {shape[axis]}")
            axis += 1


def rewriting_take(
    arr: Any,
    idx: Any,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
    fill_value: Any = None,
    normalize_indices: bool = True,
    out_sharding: Any = None,
    strategy: IndexingStrategy = IndexingStrategy.AUTO,
) -> Any:
    """arr[idx]."""
    if not isinstance(strategy, IndexingStrategy):
        raise type_error(f"Expected strategy to be IndexingStrategy; got {strategy}")
    arr = wnp.asarray(arr)
    if strategy is IndexingStrategy.STATIC_SLICE and mode is None:
        _check_static(arr.shape, idx)
    return arr.at[idx].get(
        mode=mode,
        fill_value=fill_value,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        wrap_negative_indices=normalize_indices,
        out_sharding=out_sharding,
    )


def svd(
    a: Any,
    full_matrices: bool,
    compute_uv: bool = True,
    hermitian: bool = False,
    max_iterations: int = 10,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """The singular value decomposition."""
    del max_iterations
    if subset_by_index is not None:
        raise not_implemented("svd: subset_by_index")
    return wnp.linalg.svd(a, full_matrices, compute_uv, hermitian)


def eigh(
    H: Any,
    *,
    precision: Any = None,
    termination_size: int = 256,
    n: Any = None,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
) -> tuple[Any, Any]:
    """(eigenvalues, eigenvectors) of a Hermitian matrix."""
    del precision, termination_size, sort_eigenvalues
    h = wnp.asarray(H)
    if str(h.dtype) in ("bfloat16", "float16"):
        raise not_implemented(f"Only 32-bit and 64-bit floats are supported: eigh of {h.dtype}")
    if n is not None and n != h.shape[-1]:
        raise not_implemented("eigh: n, the size of the part that counts")
    values, vectors = wnp.linalg.eigh(h)
    if subset_by_index is not None:
        start, end = subset_by_index
        values, vectors = values[..., start:end], vectors[..., start:end]
    return values, vectors


def fft_norm(s: Any, func_name: str, norm: str | None) -> Any:
    """What a Fourier transform of these lengths is multiplied by."""
    # Lengths of a narrow dtype have products beyond it.
    numbers = wnp.prod(wnp.asarray(s).astype(wnp.result_type(float)))
    inverse = func_name.startswith("i")
    if norm in (None, "backward"):
        return 1 / numbers if inverse else wnp.ones((), numbers.dtype)
    if norm not in ("ortho", "forward"):
        raise value_error(f"{func_name}: norm must be 'backward', 'ortho' or 'forward', got {norm!r}")
    factor = wnp.sqrt(numbers) if norm == "ortho" else numbers
    return factor if inverse else 1 / factor


def int_dtype_for_dim(d: Any, *, signed: bool) -> Any:
    """The integer dtype that counts up to a size."""
    return int_dtype_for_shape((d,), signed=signed)


def int_dtype_for_shape(shape: Any, *, signed: bool) -> Any:
    """The integer dtype that counts up to each of some sizes."""
    narrow = np.dtype(np.int32 if signed else np.uint32)
    if all(isinstance(d, (int, np.integer)) and d <= np.iinfo(narrow).max for d in shape):
        return narrow
    return np.dtype(np.int64 if signed else np.uint64)


def _xlogx(x: Any) -> Any:
    return wnp.asarray(weft.scipy.special.xlogy(x, x))


def _check_broadcast_shapes(name: str, shape: Any, *shapes: Any) -> tuple[int, ...]:
    """The shape of random numbers, of which their parameters' shapes are parts."""
    joint = _weft.broadcast_shapes(*shapes) if shapes else ()
    if shape is None:
        return tuple(joint)
    if tuple(_weft.broadcast_shapes(tuple(shape), joint)) != tuple(shape):
        raise value_error(f"{name}: the parameters' shapes {shapes} do not broadcast to {tuple(shape)}")
    return tuple(shape)


def _select_and_gather_add(
    tangents: Any,
    operand: Any,
    select_prim: Any,
    window_dimensions: Any,
    window_strides: Any,
    padding: Any,
    base_dilation: Any,
    window_dilation: Any,
) -> Any:
    """Of each window of the operand, the tangent at its largest element (select_prim is ge), or smallest (le)."""
    larger = select_prim.name in ("ge", "gt")
    if not larger and select_prim.name not in ("le", "lt"):
        raise not_implemented(f"select_and_gather_add: expected ge or le, got {select_prim}")

    def chosen(a: Any, b: Any) -> Any:
        first = a[0] >= b[0] if larger else a[0] <= b[0]
        return tuple(wnp.where(first, x, y) for x, y in zip(a, b))

    arrays = wnp.asarray(operand), wnp.asarray(tangents)
    kind = arrays[0].dtype
    if _weft.is_inexact(kind):
        start: Any = -np.inf if larger else np.inf
    elif kind == "bool":
        start = not larger
    else:
        start = wnp.iinfo(kind).min if larger else wnp.iinfo(kind).max
    init = wnp.asarray(start, kind), wnp.zeros((), arrays[1].dtype)
    return weft.lax.reduce_window(
        arrays, init, chosen, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )[1]


def _select_and_scatter_add(
    source: Any, operand: Any, select_prim: Any, window_dimensions: Any, window_strides: Any, padding: Any
) -> Any:
    """Each element of the source added where its window of the operand has its largest element, or its smallest."""
    ones = (1,) * len(window_dimensions)
    gather = lambda t: _select_and_gather_add(
        t, operand, select_prim, window_dimensions, window_strides, padding, ones, ones
    )
    return weft.vjp(gather, wnp.zeros_like(operand))[1](source)[0]


class _NamespaceInfo(_standard._NamespaceInfo):
    """What jax.numpy can do, as JAX says it: what holds inside of jit, too, and None for where nobody says a device."""

    def capabilities(self) -> dict[str, Any]:
        found = super().capabilities()
        return {**found, "boolean indexing": False, "data-dependent shapes": False}

    def default_device(self) -> Any:
        return None

    def devices(self) -> list[Any]:
        return [None, *super().devices()]


def __array_namespace_info__() -> _NamespaceInfo:
    """weft.numpy.__array_namespace_info__()."""
    return _NamespaceInfo()
