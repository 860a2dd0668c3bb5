"""Making arrays."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from .. import _weft
from .._core import copied as _copied
from .._core import docs as _docs
from .._core import tree as _tree
from .._core.errors import not_implemented, value_error
from .._core.shapes import FLOAT0
from .._sharding.placing import lying_like, placed
from .._weft import Array
from ..arguments import concrete, count, sizes
from ..config import config
from ..typing import DTypeLike, NestedLike, Shape
from ._elementwise import sign
from ._large_integers import with_large_integers
from ._reductions import narrow

__all__ = [
    "arange",
    "array",
    "asarray",
    "astype",
    "copy",
    "empty",
    "empty_like",
    "full",
    "full_like",
    "geomspace",
    "linspace",
    "logspace",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]


def array(
    object: NestedLike,
    dtype: DTypeLike | None = None,
    copy: bool = True,
    order: str | None = None,
    ndmin: int = 0,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array with the values of a number, a nested list, a NumPy array or an array.

    Numbers and lists of them get the default dtypes (float32, int32, bool, complex64; see weft.config.x64); NumPy
    arrays keep theirs, 64-bit ones too. Lists may hold arrays, traced ones as well, which are then stacked.

    Args:
        object: the values.
        dtype: the dtype of the array; None: as above.
        copy: whether the array surely gets memory of its own; False shares NumPy's where nobody can ever write to that
            (docs/arrays.md), and that of an array.
        order: None, "K", "A" or "C": arrays are row-major.
        ndmin: how many dimensions there are at least; new ones of size 1 come in front.

    Returns: array of the shape of the values.

    Raises:
        TypeError: a value is no number.
        OverflowError: an integer does not fit the dtype.
        ValueError: the rows of a list have different lengths.
        NotImplementedError: the order is "F".

    Example:
        >>> wnp.array([[1, 2], [3, 4]])
        Array([[1, 2],
               [3, 4]], dtype=int32)
        >>> wnp.array([1, 2.5], dtype="float16")
        Array([1. , 2.5], dtype=float16)
    """
    _check_order(order, "array")
    out = _made(object, dtype, copy)
    if out.ndim < ndmin:
        out = out.reshape((1,) * (ndmin - out.ndim) + out.shape)
    return placed(out, "array", device, out_sharding)


def _made(given: Any, dtype: DTypeLike | None, copy: bool) -> Array:
    if _tree.jax_semantics() and isinstance(dtype, np.dtype) and dtype == FLOAT0:
        made: Any = np.asarray(given, FLOAT0)  # as derivatives of integers are
        return made
    if dtype is None and isinstance(given, (list, tuple)):
        given = with_large_integers(given)
    out = _copied.array(given, dtype, copy)
    if not copy or _weft.is_traced(out):
        same = isinstance(given, Array) and (given.dtype, given.weak_type) == (out.dtype, out.weak_type)
        return given if same and not copy else out
    # What is made of an array shares its memory, and arrays of the same number share one: neither could be donated.
    shares = given.dtype == out.dtype if isinstance(given, Array) else isinstance(given, (bool, int, float, complex))
    return out.copy() if shares else out


def _check_order(order: str | None, name: str) -> None:
    if order not in (None, "K", "A", "C"):
        if order == "F":
            raise not_implemented(f"{name}: order='F': arrays are row-major")
        raise value_error(f"{name}: order must be 'K', 'A', 'C' or None, got {order!r}")


def asarray(
    object: NestedLike,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array with these values. It never changes: NumPy arrays are copied, except where nobody can write to them.

    Args:
        object: a number, a nested list, a NumPy array or an array.
        dtype: the dtype of the array; None: as for array.
        order: None, "K", "A" or "C": arrays are row-major.
        copy: True: the array surely gets memory of its own; False: it surely has that of an array, or of a NumPy array
            that nobody can write to; None: it is copied where it has to be.

    Returns: array of the shape of the values; an array of that dtype itself.

    Raises:
        TypeError: a value is no number.
        OverflowError: an integer does not fit the dtype.
        ValueError: the rows of a list have different lengths; copy is False, and the memory of an array cannot be
            shared.
        NotImplementedError: the order is "F".

    Example:
        >>> wnp.asarray([1, 2, 3])
        Array([1, 2, 3], dtype=int32)
    """
    _check_order(order, "asarray")
    out = _made(object, dtype, bool(copy))
    if copy is False and not config.jax_semantics:
        _check_shared(object, out)
    return placed(out, "asarray", device, out_sharding)


def _check_shared(given: Any, out: Array) -> None:
    """Raises ValueError where an array with memory that could be shared had to be copied."""
    if isinstance(given, Array):
        # Of a traced array only the conversion is a copy; what has the same dtype is the same value.
        shared = given is out or given.dtype == out.dtype
    elif isinstance(given, np.ndarray):
        shared = bool(not _weft.is_traced(out) and out.unsafe_buffer_pointer() == given.ctypes.data)
    else:
        return  # lists and numbers have none
    if not shared:
        raise value_error(
            f"asarray: copy=False, but {type(given).__name__} of dtype {given.dtype} has to be copied for an array of "
            f"dtype {out.dtype}: dtypes must be the same, and a NumPy array one that nobody can write to (copy=None "
            "copies where it has to)"
        )


def astype(x: NestedLike, dtype: DTypeLike, /, *, copy: bool = False, device: Any = None) -> Array:
    """x converted to a dtype.

    Args:
        dtype: the new dtype. Floats become integers by truncation towards 0, limited to the integers' range, NaN
            becomes 0; complex numbers lose their imaginary part.
        copy: whether the result surely has memory of its own, where the dtype is the same.

    Returns: array of the shape of x.

    Example:
        >>> wnp.astype(wnp.array([1.5, -2.5]), "int32")
        Array([ 1, -2], dtype=int32)
    """
    out = _weft.astype(x, dtype)
    copies = copy and isinstance(x, Array) and x.dtype == out.dtype and not _weft.is_traced(out)
    return placed(out.copy() if copies else out, "astype", device)


# What arrays of random keys say their dtype is; under weft.as_jax as JAX does.
_KEYS = ("key", "key<fry>")


def full(
    shape: int | Shape,
    fill_value: NestedLike,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array full of a value.

    Args:
        dtype: the dtype of the result; None: that of the value.

    Returns: array of that shape.

    Raises:
        ValueError: a size is negative.

    Example:
        >>> wnp.full((2, 2), 7)
        Array([[7, 7],
               [7, 7]], dtype=int32, weak_type=True)
    """
    shape = sizes(shape, "full")
    if not np.isscalar(fill_value) and getattr(fill_value, "ndim", 0) > 0:
        out = _weft.broadcast_to(_weft.array(fill_value, dtype, False), shape)
    else:
        of_keys = str(getattr(fill_value, "dtype", "")) in _KEYS
        if dtype is not None and str(dtype) in _KEYS and not of_keys:  # of random keys: each of their two words
            words = _weft.full((*shape, 2), fill_value, "uint32")
            return placed(_weft.random_wrap(words), "full", device, out_sharding)
        out = _weft.full(shape, fill_value, dtype)
        out = _weft.weak(out) if dtype is None and _is_weak(fill_value) else out
    return placed(out, "full", device, out_sharding)


def _is_weak(x) -> bool:
    return x.weak_type if isinstance(x, Array) else type(x) in (int, float, complex)


def zeros(shape: int | Shape, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None) -> Array:
    """An array of zeros.

    Args:
        dtype: the dtype of the result; None: the default float dtype.

    Returns: array of that shape.

    Raises:
        ValueError: a size is negative.

    Example:
        >>> wnp.zeros((2, 3))
        Array([[0., 0., 0.],
               [0., 0., 0.]], dtype=float32)
    """
    if dtype == FLOAT0 and _tree.jax_semantics():
        made: Any = np.zeros(sizes(shape, "zeros"), FLOAT0)  # as derivatives of integers are
        return made
    out = _weft.full(sizes(shape, "zeros"), 0, float if dtype is None else dtype)
    return placed(out, "zeros", device, out_sharding)


def ones(shape: int | Shape, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None) -> Array:
    """An array of ones.

    Args:
        dtype: the dtype of the result; None: the default float dtype.

    Returns: array of that shape.

    Raises:
        ValueError: a size is negative.

    Example:
        >>> wnp.ones(3, dtype="int32")
        Array([1, 1, 1], dtype=int32)
    """
    return placed(full(sizes(shape, "ones"), 1, float if dtype is None else dtype), "ones", device, out_sharding)


empty = zeros


def full_like(
    a: NestedLike,
    fill_value: NestedLike,
    dtype: DTypeLike | None = None,
    shape: int | Shape | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array like another, full of a value. It lies on devices as that one does, if it has its shape.

    Args:
        a: array or number whose shape and dtype count.
        shape: the shape of the result; None: that of a.

    Returns: array of that shape.

    Example:
        >>> wnp.full_like(wnp.zeros((2, 2)), 7)
        Array([[7., 7.],
               [7., 7.]], dtype=float32)
    """
    if not isinstance(a, Array) and hasattr(a, "shape") and hasattr(a, "dtype"):
        dims, own = tuple(a.shape), _weft.dtype(a.dtype)  # whatever it is, its elements do not count
    else:
        dims, own, _, _ = _weft.abstract(a)
    out = full(dims if shape is None else shape, fill_value, own if dtype is None else dtype)
    out = _weft.weak(out) if dtype is None and _is_weak(a) else out
    if device is None and out_sharding is None:
        return lying_like(out, a)
    return placed(out, "full_like", device, out_sharding)


def zeros_like(
    a: NestedLike,
    dtype: DTypeLike | None = None,
    shape: int | Shape | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Zeros of the shape and dtype of an array.

    Args:
        a: array or number whose shape and dtype count.
        shape: the shape of the result; None: that of a.

    Returns: array of that shape.

    Example:
        >>> wnp.zeros_like(wnp.array([1, 2]))
        Array([0, 0], dtype=int32)
    """
    return placed(full_like(a, 0, dtype, shape), "zeros_like", device, out_sharding)


def ones_like(
    a: NestedLike,
    dtype: DTypeLike | None = None,
    shape: int | Shape | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Ones of the shape and dtype of an array.

    Args:
        a: array or number whose shape and dtype count.
        shape: the shape of the result; None: that of a.

    Returns: array of that shape.

    Example:
        >>> wnp.ones_like(wnp.array([1, 2]))
        Array([1, 1], dtype=int32)
    """
    return placed(full_like(a, 1, dtype, shape), "ones_like", device, out_sharding)


empty_like = zeros_like


def arange(
    start: Any,
    stop: Any = None,
    step: Any = None,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """start, start + step ... below stop.

    Args:
        start: the first number; with start alone, the numbers are 0, 1 ... below it. A traced number is not known here.
        stop: where it ends, itself left out. One weft.Dim is possible: arange(x.shape[0]).
        step: the difference, not 0.
        dtype: the dtype of the result; None: that of the arguments together.

    Returns: array of one dimension with ceil((stop - start) / step) elements.

    Raises:
        ValueError: the step is 0, or a bound is infinite or NaN.
        weft.TracerError: a bound is traced.
        NotImplementedError: a symbolic size is given together with start or step.

    Example:
        >>> wnp.arange(2, 10, 3)
        Array([2, 5, 8], dtype=int32)
    """
    return placed(_arange(start, stop, step, dtype), "arange", device, out_sharding)


def _arange(start: Any, stop: Any, step: Any, dtype: DTypeLike | None) -> Array:
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    if isinstance(stop, _weft.Dim):
        if (start, step) != (0, 1):
            raise not_implemented(f"arange: with the symbolic size {stop} only arange({stop}) is possible")
        return _weft.iota((stop,), 0, _weft.result_type(0) if dtype is None else dtype)
    if dtype is None:
        dtype = _weft.result_type(start, stop, step)
    if builtins.all(isinstance(v, (int, np.integer)) for v in (start, stop, step)):
        if step == 0:
            raise value_error("arange: the step must not be 0")
        n = builtins.max(0, -((int(start) - int(stop)) // int(step)))
        if (start, step) == (0, 1):
            return _weft.iota((n,), 0, dtype)
        wide = _weft.iota((n,), 0, dtype)
        return ((wide if step == 1 else wide * step) + start).astype(dtype)
    if any(isinstance(v, complex) or _weft.dtype_kind(_weft.result_type(v)) == "complex" for v in (start, stop, step)):
        if _tree.jax_semantics():
            raise value_error(f"arange: complex numbers have no order, got {start}, {stop} and {step}")
        # As NumPy: the real parts count the steps.
        ends: Any = map(complex, (start, stop, step))
        return _weft.array(np.arange(*ends), dtype, True)
    # int() and float() say what to do about traced values.
    start, stop, step = (
        v
        if isinstance(v, (int, float))
        else concrete(float if _weft.is_inexact(v.dtype) else int, v, f"arange: {name}")
        for name, v in (("start", start), ("stop", stop), ("step", step))
    )
    if not builtins.all(map(math.isfinite, (start, stop, step))):
        raise value_error(f"arange: start, stop and step must be finite, got {start}, {stop} and {step}")
    if step == 0:
        raise value_error("arange: the step must not be 0")
    if (stop - start) / step >= 2**63:
        raise value_error(f"arange: from {start} to {stop} in steps of {step} are more numbers than an array holds")
    return _weft.array(np.arange(start, stop, step), dtype, True)


def _ends(dtype, *xs) -> tuple[Array, ...]:
    """Numbers to compute with for a result of a dtype: of the one they have together, or of that where it is wider."""
    dtype = None if dtype is None else _weft.dtype(dtype)
    wide = [] if dtype is None or not _weft.is_inexact(dtype) or narrow(dtype) else [_weft.full((), 0, dtype)]
    return tuple(_weft.strong(x) for x in _weft.promote_all_inexact(*xs, *wide)[: len(xs)])


def linspace(
    start: NestedLike,
    stop: NestedLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """Evenly spaced numbers between two, in floating point.

    Args:
        stop: the last number, or an array of them; broadcasts against start.
        retstep: whether to return the step, too.
        dtype: the dtype of the result; None: that of start and stop together, in floating point. With an integer dtype
            the numbers are rounded down.

    Returns: array with num elements along the axis; with retstep the pair (array, step), whose step is NaN where
        there is none.

    Raises:
        ValueError: num is negative.

    Example:
        >>> wnp.linspace(0, 1, 5)
        Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    num = count(num, "linspace: num")
    start, stop = _ends(dtype, start, stop)
    kind = start.dtype
    n = num - 1 if endpoint else num
    shape = _weft.broadcast_shapes(start.shape, stop.shape)
    steps = _weft.iota((num,), 0, kind).reshape((num,) + (1,) * len(shape))
    # Without a second number there is none, and it is NaN whatever the shape of the ends.
    step = (stop - start) / n if n > 0 else _weft.full((), float("nan"), kind)
    # Weighted from both sides, so that both ends are exact.
    fraction = steps / builtins.max(n, 1)
    out = start * (1 - fraction) + stop * fraction if num > 1 else start
    to_integers = dtype is not None and _weft.dtype_kind(_weft.dtype(dtype)) in ("signed", "unsigned")
    if to_integers and num > 1:
        # What is rounded down must not be just below an integer.
        out = start + (stop - start) * steps / n
    out = _weft.broadcast_to(out, (num,) + tuple(shape))
    if dtype is not None:
        if to_integers and _weft.dtype_kind(kind) == "float":
            out = _weft.bind_elementwise("floor", (out,), {})
        out = out.astype(dtype)
    if axis:
        out = _weft.moveaxis(out, 0, axis)
    out = placed(out, "linspace", device)
    return (out, step) if retstep else out


def logspace(
    start: NestedLike,
    stop: NestedLike,
    num: int = 50,
    endpoint: bool = True,
    base: NestedLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Numbers whose logarithms are evenly spaced: base ** linspace(start, stop, num).

    Args:
        start: the exponent of the first number, or an array of them.
        stop: the exponent of the last number, or an array of them.
        endpoint: whether stop is the exponent of the last one, or of the one after it.
        base: the base of the powers.
        dtype: the dtype of the result; None: a float dtype.

    Returns: array with num elements along the axis.

    Example:
        >>> wnp.logspace(0, 2, 3)
        Array([  1.,  10., 100.], dtype=float32)
    """
    start, stop, base = _ends(dtype, start, stop, base)
    out = base ** linspace(start, stop, num, endpoint, axis=axis)
    return out if dtype is None else out.astype(dtype)


def geomspace(
    start: NestedLike,
    stop: NestedLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Numbers with a constant quotient between two of one sign, neither 0; a spiral between complex numbers.

    Args:
        stop: the last number, or an array of them.
        dtype: the dtype of the result; None: a float dtype.

    Returns: array with num elements along the axis; NaN where the start or the stop is 0, and between numbers of two
        signs.

    Example:
        >>> wnp.geomspace(1, 8, 4)
        Array([1., 2., 4., 8.], dtype=float32)
    """
    start, stop = _ends(dtype, start, stop)
    unit = sign(start)
    log = lambda x: _weft.bind_elementwise("log", (x / unit,), {})
    out = linspace(log(start), log(stop), num, endpoint)
    out = unit * _weft.bind_elementwise("exp", (out,), {})
    if num > 0:
        # Both ends exactly.
        shape = out.shape[1:]
        ends = [_weft.broadcast_to(start, shape)[None].astype(out.dtype)]
        if num > 1:
            ends.append(out[1 : num - 1] if endpoint else out[1:])
            if endpoint:
                ends.append(_weft.broadcast_to(stop, shape)[None].astype(out.dtype))
        out = _weft.where((start == 0) | (stop == 0), float("nan"), _weft.concatenate(ends, 0))
    out = _weft.moveaxis(out, 0, axis) if axis else out
    return out if dtype is None else out.astype(dtype)


def copy(a: NestedLike, order: str | None = None) -> Array:
    """An equal array with memory of its own.

    Args:
        order: accepted, without effect: arrays are row-major.

    Returns: array of the shape and dtype of a.

    Example:
        >>> wnp.copy(wnp.array([1, 2]))
        Array([1, 2], dtype=int32)
    """
    del order
    return _weft.array(a, None, True).copy()


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "axis": "the axis of the result along which the numbers run.",
    "dtype": "the dtype of the result; None: that of a.",
    "endpoint": "whether stop is the last one, or the one after the last.",
    "fill_value": "a number, or an array that broadcasts to the shape.",
    "num": "how many.",
    "start": "the first number, or an array of them.",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
