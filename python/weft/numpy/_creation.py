"""Making arrays."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from .. import _weft
from .._weft import Array

__all__ = [
    "arange",
    "array",
    "array_equal",
    "array_equiv",
    "asarray",
    "astype",
    "copy",
    "diag",
    "diag_indices",
    "diag_indices_from",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "geomspace",
    "identity",
    "indices",
    "linspace",
    "logspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tri",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
    "tril_indices",
    "tril_indices_from",
    "triu_indices",
    "triu_indices_from",
    "mask_indices",
    "diagonal",
    "diagflat",
    "vander",
    "allclose",
    "isclose",
    "fromfunction",
]


def array(object, dtype=None, copy: bool = True, ndmin: int = 0) -> Array:
    """An array with the values of a number, a (nested) list, a NumPy array or an array. Numbers and lists of them get
    the
    default dtypes (float32, int32; see weft.config.x64); NumPy arrays keep theirs. copy=False may share NumPy's memory.
    Raises TypeError for values that are no numbers."""
    out = _weft.array(object, dtype, copy)
    if out.ndim < ndmin:
        out = out.reshape((1,) * (ndmin - out.ndim) + out.shape)
    return out


def asarray(object, dtype=None, copy: bool | None = None) -> Array:
    """Like array, but shares the memory of a NumPy array where it can: do not write to it afterwards."""
    return _weft.array(object, dtype, bool(copy))


def from_dlpack(x) -> Array:
    """The array of another library, without a copy (row-major arrays in host memory)."""
    return _weft.from_dlpack(x)


def astype(x, dtype) -> Array:
    """x converted to a dtype."""
    return _weft.astype(x, dtype)


def _shape(shape):
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def full(shape, fill_value, dtype=None) -> Array:
    """An array of the given shape, full of fill_value (of its dtype unless another is given)."""
    shape = _shape(shape)
    if not np.isscalar(fill_value) and getattr(fill_value, "ndim", 0) > 0:
        return _weft.broadcast_to(_weft.array(fill_value, dtype, False), shape)
    return _weft.full(shape, fill_value, dtype)


def zeros(shape, dtype=None) -> Array:
    """An array of zeros, of the default float dtype unless another is given."""
    return _weft.full(_shape(shape), 0, float if dtype is None else dtype)


def ones(shape, dtype=None) -> Array:
    """An array of ones, of the default float dtype unless another is given."""
    return _weft.full(_shape(shape), 1, float if dtype is None else dtype)


empty = zeros


def full_like(a, fill_value, dtype=None, shape=None) -> Array:
    """An array like a (shape and dtype unless given), full of fill_value."""
    dims, own, _, _ = _weft.abstract(a)
    return full(dims if shape is None else shape, fill_value, own if dtype is None else dtype)


def zeros_like(a, dtype=None, shape=None) -> Array:
    """Zeros of the shape and dtype of a."""
    return full_like(a, 0, dtype, shape)


def ones_like(a, dtype=None, shape=None) -> Array:
    """Ones of the shape and dtype of a."""
    return full_like(a, 1, dtype, shape)


empty_like = zeros_like


def arange(start, stop=None, step=None, dtype=None) -> Array:
    """start, start + step, ... below stop; arange(n) is 0 ... n-1. Bounds must be known numbers."""
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    if isinstance(stop, _weft.Dim):
        if (start, step) != (0, 1):
            raise NotImplementedError(f"arange: with the symbolic size {stop} only arange({stop}) is possible")
        return _weft.iota((stop,), 0, _weft.result_type(0) if dtype is None else dtype)
    if dtype is None:
        dtype = _weft.result_type(start, stop, step)
    if builtins.all(isinstance(v, (int, np.integer)) for v in (start, stop, step)):
        if step == 0:
            raise ValueError("arange: the step must not be 0")
        n = builtins.max(0, -((int(start) - int(stop)) // int(step)))
        if (start, step) == (0, 1):
            return _weft.iota((n,), 0, dtype)
        wide = _weft.iota((n,), 0, dtype)
        return (wide * step + start).astype(dtype)
    # int() and float() say what to do about traced values.
    start, stop, step = (
        v if isinstance(v, (int, float)) else float(v) if _weft.is_inexact(v.dtype) else int(v)
        for v in (start, stop, step)
    )
    return _weft.array(np.arange(start, stop, step), dtype, True)


def linspace(
    start, stop, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype=None, axis: int = 0
) -> Any:
    """num evenly spaced numbers from start to stop (without stop unless endpoint)."""
    start, stop = _weft.promote_inexact(start), _weft.promote_inexact(stop)
    kind = _weft.result_type(start, stop)
    start, stop = start.astype(kind), stop.astype(kind)
    n = num - 1 if endpoint else num
    shape = _weft.broadcast_shapes(start.shape, stop.shape)
    steps = _weft.iota((num,), 0, kind).reshape((num,) + (1,) * len(shape))
    step = (stop - start) / builtins.max(n, 1)
    if num > 1 and endpoint:
        # Weighted from both sides, so that both ends are exact.
        fraction = steps / n
        out = start * (1 - fraction) + stop * fraction
    else:
        out = start + steps * step
    out = _weft.broadcast_to(out, (num,) + tuple(shape))
    if dtype is not None:
        out = out.astype(dtype)
    if axis:
        out = _weft.moveaxis(out, 0, axis)
    return (out, step) if retstep else out


def logspace(start, stop, num: int = 50, endpoint: bool = True, base=10.0, dtype=None, axis: int = 0) -> Array:
    """base ** linspace(start, stop, num)."""
    out = base ** linspace(start, stop, num, endpoint, axis=axis)
    return out if dtype is None else out.astype(dtype)


def geomspace(start, stop, num: int = 50, endpoint: bool = True, dtype=None, axis: int = 0) -> Array:
    """num numbers from start to stop with a constant quotient; both of one sign, and not 0."""
    start, stop = _weft.promote_inexact(start), _weft.promote_inexact(stop)
    sign = _weft.where(start < 0, -1, 1).astype(_weft.result_type(start, stop))
    log = lambda x: _weft.bind_elementwise("log", (x * sign,), {})
    out = linspace(log(start), log(stop), num, endpoint)
    out = sign * _weft.bind_elementwise("exp", (out,), {})
    if num > 0:
        # Both ends exactly.
        shape = out.shape[1:]
        ends = [_weft.broadcast_to(start, shape)[None].astype(out.dtype)]
        if num > 1:
            ends.append(out[1 : num - 1] if endpoint else out[1:])
            if endpoint:
                ends.append(_weft.broadcast_to(stop, shape)[None].astype(out.dtype))
        out = _weft.concatenate(ends, 0)
    out = _weft.moveaxis(out, 0, axis) if axis else out
    return out if dtype is None else out.astype(dtype)


def eye(N: int, M: int | None = None, k: int = 0, dtype=None) -> Array:
    """Ones on diagonal k of an N x M matrix, zeros elsewhere."""
    M = N if M is None else M
    rows, columns = _weft.iota((N, M), 0, "int32"), _weft.iota((N, M), 1, "int32")
    return (rows + k == columns).astype(float if dtype is None else dtype)


def identity(n: int, dtype=None) -> Array:
    """The n x n identity matrix."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype=None) -> Array:
    """Ones at and below diagonal k."""
    M = N if M is None else M
    return (_weft.iota((N, M), 0, "int32") + k >= _weft.iota((N, M), 1, "int32")).astype(
        float if dtype is None else dtype
    )


def _triangle(m, k: int, lower: bool) -> Array:
    m = _weft.array(m, None, False)
    rows, columns = _weft.iota(m.shape[-2:], 0, "int32"), _weft.iota(m.shape[-2:], 1, "int32")
    keep = rows + k >= columns if lower else rows + k <= columns
    return _weft.where(keep, m, _weft.full((), 0, m.dtype))


def tril(m, k: int = 0) -> Array:
    """m with zeros above diagonal k (of its last two dimensions)."""
    return _triangle(m, k, True)


def triu(m, k: int = 0) -> Array:
    """m with zeros below diagonal k (of its last two dimensions)."""
    return _triangle(m, k, False)


def tril_indices(n: int, k: int = 0, m: int | None = None):
    """Row and column indices at and below diagonal k."""
    return tuple(_weft.array(i.astype(np.int32), None, True) for i in np.tril_indices(n, k, m))


def triu_indices(n: int, k: int = 0, m: int | None = None):
    """Row and column indices at and above diagonal k."""
    return tuple(_weft.array(i.astype(np.int32), None, True) for i in np.triu_indices(n, k, m))


def tril_indices_from(arr, k: int = 0):
    """tril_indices for the shape of a matrix."""
    return tril_indices(arr.shape[-2], k, arr.shape[-1])


def triu_indices_from(arr, k: int = 0):
    """triu_indices for the shape of a matrix."""
    return triu_indices(arr.shape[-2], k, arr.shape[-1])


def mask_indices(n: int, mask_func, k: int = 0):
    """The indices of the elements of an n x n matrix that mask_func (such as tril) keeps."""
    from ._indexing import nonzero

    return nonzero(mask_func(ones((n, n)), k))


def diag_indices(n: int, ndim: int = 2):
    """The indices of the main diagonal."""
    return (_weft.iota((n,), 0, int),) * ndim


def diag_indices_from(arr):
    """The indices of the main diagonal of an array of two or more equal dimensions."""
    if len(set(arr.shape)) != 1 or arr.ndim < 2:
        raise ValueError(f"diag_indices_from: two or more equal dimensions are needed, got shape {arr.shape}")
    return diag_indices(arr.shape[0], arr.ndim)


def copy(a, order=None) -> Array:
    """The array with memory of its own."""
    del order
    return _weft.array(a, None, True).copy()


def diagonal(a, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonal of two dimensions, as the last dimension of the result."""
    a = _weft.moveaxis(a, (axis1, axis2), (-2, -1))
    rows, columns = a.shape[-2:]
    n = builtins.max(0, builtins.min(rows, columns - offset) if offset >= 0 else builtins.min(rows + offset, columns))
    i = _weft.iota((n,), 0, "int32")
    return a[..., i + builtins.max(-offset, 0), i + builtins.max(offset, 0)]


def diag(v, k: int = 0) -> Array:
    """A vector as the diagonal k of a matrix; or diagonal k of a matrix."""
    v = _weft.array(v, None, False)
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise ValueError(f"diag: one or two dimensions are needed, got shape {v.shape}")
    n = v.shape[0] + abs(k)
    padded = _weft.pad_constant(v, [builtins.max(k, 0)], [builtins.max(-k, 0)], _weft.full((), 0, v.dtype))
    return _weft.where(
        eye(n, k=k, dtype=bool),
        padded if k >= 0 else _weft.expand_dims(_weft.pad_constant(v, [-k], [0], _weft.full((), 0, v.dtype)), 1),
        _weft.full((), 0, v.dtype),
    )


def diagflat(v, k: int = 0) -> Array:
    """diag of the flattened input."""
    return diag(_weft.reshape(_weft.array(v, None, False), (-1,)), k)


def meshgrid(*xi, indexing: str = "xy", sparse: bool = False) -> list[Array]:
    """Coordinate matrices from coordinate vectors."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
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


def indices(dimensions, dtype=None, sparse: bool = False):
    """One array of indices per dimension, stacked; sparse: a tuple of arrays that broadcast."""
    kind = int if dtype is None else dtype
    dims = tuple(dimensions)
    if sparse:
        n = len(dims)
        return tuple(_weft.iota(tuple(dims[d] if i == d else 1 for i in range(n)), d, kind) for d in range(n))
    return _weft.stack([_weft.iota(dims, d, kind) for d in range(len(dims))], 0)


def fromfunction(function, shape, dtype=float, **kwargs) -> Array:
    """function called with the index arrays of a shape."""
    return function(*[_weft.iota(tuple(shape), d, dtype) for d in range(len(shape))], **kwargs)


def vander(x, N: int | None = None, increasing: bool = False) -> Array:
    """Powers of x as columns, highest first unless increasing."""
    x = _weft.array(x, None, False)
    n = x.shape[0] if N is None else N
    powers = _weft.iota((n,), 0, x.dtype)
    if not increasing:
        powers = n - 1 - powers
    return x[:, None] ** powers


def isclose(a, b, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    """Whether |a - b| <= atol + rtol * |b|, element by element; infinities are close to themselves."""
    a, b = _weft.promote_inexact(a), _weft.promote_inexact(b)
    finite = _weft.bind_elementwise("is_finite", (a,), {}) & _weft.bind_elementwise("is_finite", (b,), {})
    close = _weft.where(finite, _weft.absolute(a - b) <= atol + rtol * _weft.absolute(b), a == b)
    return close | ((a != a) & (b != b)) if equal_nan else close


def allclose(a, b, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    """Whether every element is close; see isclose."""
    return _weft.reduce("reduce_and", isclose(a, b, rtol, atol, equal_nan), None, False)


def array_equal(a1, a2, equal_nan: bool = False) -> Array:
    """Whether two arrays have the same shape and elements (equal_nan: NaN equal each other)."""
    a1, a2 = _weft.array(a1, None, False), _weft.array(a2, None, False)
    if a1.shape != a2.shape:
        return _weft.array(False, None, True)
    same = a1 == a2
    if equal_nan:
        same = same | ((a1 != a1) & (a2 != a2))
    return _weft.reduce("reduce_and", same, None, False)


def array_equiv(a1, a2) -> Array:
    """Whether two arrays, broadcast against each other, have the same elements; False where they do not broadcast."""
    a1, a2 = _weft.array(a1, None, False), _weft.array(a2, None, False)
    try:
        _weft.broadcast_shapes(a1.shape, a2.shape)
    except TypeError:
        return _weft.array(False, None, True)
    return _weft.reduce("reduce_and", a1 == a2, None, False)
