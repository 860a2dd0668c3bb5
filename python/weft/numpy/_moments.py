"""Means, variances and weighted averages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _weft
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._core.tree import jax_semantics
from .._weft import Array
from ..arguments import axes_of
from ..typing import ArrayLike, DTypeLike, NestedLike
from ._primitives import sqrt
from ._reductions import (
    _AXES,
    _PARAMETERS,
    _array,
    _no_out,
    elements_over,
    mask,
    narrow,
    shows_widening,
    sum,
    widened,
)

__all__ = [
    "average",
    "mean",
    "std",
    "var",
]


def mean(
    a: NestedLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: NestedLike | None = None,
) -> Array:
    """The mean over axes, in floating point; NaN for no elements.

    Args:
        dtype: the dtype of the result; None: that of the array, of integers the default float dtype. 16-bit floats are
            summed in 32 bits. With an integer dtype the sum and the count are integers, and the quotient is truncated.

    Returns: array without the axes.

    Raises:
        TypeError: dtype is bool.

    Example:
        >>> wnp.mean(wnp.array([[1, 2], [3, 4]]), axis=1)
        Array([1.5, 3.5], dtype=float32)
    """
    _no_out(out)
    a = _array(a)
    if dtype is not None and not _weft.is_inexact(dtype):
        return whole_mean(a, axis, dtype, keepdims, where, "mean")
    if dtype is not None and _weft.dtype(dtype) not in ("float16", "bfloat16"):
        a = a.astype(dtype)
    sizes = a.shape if axis is None else [a.shape[d] for d in axes_of(axis, a.ndim, "mean")]
    known = all(isinstance(n, int) for n in sizes)
    if where is None and known and dtype is not None and _weft.dtype(dtype) == a.dtype and shows_widening(a):
        return sum(a, axis, a.dtype, keepdims=keepdims) / math.prod(sizes)
    if where is None:
        result = _weft.mean(a, axis, keepdims)
        return result if dtype is None else result.astype(dtype)
    a, where = _weft.promote_inexact(a), mask(where, "mean")
    total = sum(widened(a), axis, keepdims=keepdims, where=where)
    result = total / sum(_weft.broadcast_to(where, a.shape), axis, keepdims=keepdims).astype(total.dtype)
    return _as(result, a.dtype if dtype is None else dtype)


def whole_mean(a: Array, axis, dtype: DTypeLike, keepdims: bool, where, name: str) -> Array:
    """The mean in an integer dtype."""
    if _weft.dtype_kind(dtype) == "bool":
        raise type_error(f"{name}: dtype must be a float or an integer dtype, got bool")
    counted = _weft.broadcast_to(mask(True if where is None else where, name), a.shape)
    n = sum(counted, axis, dtype, keepdims=keepdims)
    total = sum(a, axis, dtype, keepdims=keepdims, where=where)
    return _weft.bind_elementwise("div", (total, n), {})


def _as(x: Array, dtype: Any) -> Array:
    """x in a dtype; one that has it already stays weak."""
    return x if x.dtype == dtype else x.astype(dtype)


def var(
    a: NestedLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: NestedLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | None = None,
) -> Array:
    """The variance over axes: the mean squared distance from the mean, |x - mean|^2 for complex numbers.

    Args:
        dtype: the dtype to compute in; None: that of the array, of integers the default float dtype.
        ddof: the divisor is n - ddof; NaN where that is not positive.
        mean: the mean, where it is known: an array that broadcasts against a, as keepdims=True gives; None: it is
            computed.
        correction: another name of ddof.

    Returns: array without the axes, of a real float dtype.

    Example:
        >>> wnp.var(wnp.array([1.0, 2.0, 3.0, 4.0]))
        Array(1.25, dtype=float32)
        >>> wnp.var(wnp.array([1.0, 2.0, 3.0, 4.0]), ddof=1)
        Array(1.6666666, dtype=float32)
    """
    _no_out(out)
    variance, to = _variance(a, axis, dtype, _fewer(ddof, correction, "var"), keepdims, where, mean, "var")
    return _as(variance, to)


def _fewer(ddof: int, correction: int | None, name: str) -> int:
    if correction is not None and ddof != 0:
        raise value_error(f"{name}: ddof and correction say the same: give one of them, got {ddof} and {correction}")
    return ddof if correction is None else correction


def _variance(a, axis, dtype, fewer, keepdims, where, known, name) -> tuple[Array, Any]:
    """The variance, still in 32 bits where the result has fewer, and the dtype of the result."""
    a, to = deviating(a, dtype, "var")
    if where is not None:
        where = _weft.broadcast_to(mask(where, name), a.shape)
    middle = mean(a, axis, keepdims=True, where=where) if known is None else _array(known, a.dtype)
    centered = _weft.absolute(_weft.broadcast_to(a - middle, a.shape))
    if where is not None:
        centered = _weft.where(where, centered, 0)
    if where is None and fewer == 0:
        return _weft.mean(centered * centered, axis, keepdims), to
    total = _weft.reduce("reduce_sum", centered * centered, axis, keepdims)
    if where is None:
        n = elements_over(a, axis, total.dtype)
        if isinstance(n, int):
            return (total / (n - fewer) if n > fewer else total * float("nan")), to
    else:
        n = sum(where, axis, keepdims=keepdims).astype(total.dtype)
    return _weft.where(n > fewer, total / _weft.where(n > fewer, n - fewer, 1), float("nan")), to


def deviating(a: NestedLike, dtype: DTypeLike | None, name: str) -> tuple[Array, Any]:
    """Numbers whose variance is asked for in the dtype to compute it in, and the dtype of the result. Those of 8 and 16
    bits are too small for squares, and so for what they are made of."""
    a = _weft.promote_inexact(_array(a))
    to = _weft.dtype(a.dtype if dtype is None else dtype)
    if not _weft.is_inexact(to):
        raise value_error(f"{name}: dtype must be a float dtype, got {to}")
    if _real(to) == to and _weft.dtype_kind(a.dtype) == "complex" and dtype is not None and jax_semantics():
        raise value_error(f"{name}: dtype must be complex for complex numbers, got {to}")
    if dtype is not None and not narrow(to):
        a = a.astype(_as_complex(a, to))
    asked = dtype is not None and _weft.dtype_kind(to) == "complex" and jax_semantics()
    return widened(a), to if asked else _real(to)


def _as_complex(a, dtype):
    """The dtype, or the complex one of its precision where the array is complex."""
    return _weft.result_type(dtype, "complex64") if _weft.dtype_kind(a.dtype) == "complex" else dtype


def _real(dtype):
    return {"complex64": _weft.dtype("float32"), "complex128": _weft.dtype("float64")}.get(str(dtype), dtype)


def std(
    a: NestedLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: NestedLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | None = None,
) -> Array:
    """The standard deviation over axes: the square root of var.

    Args:
        dtype: the dtype to compute in; None: that of the array, of integers the default float dtype.
        ddof: the divisor of the variance is n - ddof; NaN where that is not positive.
        mean: the mean, where it is known: an array that broadcasts against a, as keepdims=True gives; None: it is
            computed.
        correction: another name of ddof.

    Returns: array without the axes, of a real float dtype.

    Example:
        >>> wnp.std(wnp.array([1.0, 3.0]))
        Array(1., dtype=float32)
    """
    _no_out(out)
    variance, to = _variance(a, axis, dtype, _fewer(ddof, correction, "std"), keepdims, where, mean, "std")
    return _as(sqrt(variance), to)


def average(
    a: NestedLike,
    axis: int | Sequence[int] | None = None,
    weights: NestedLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """The weighted mean over axes, in floating point.

    Args:
        weights: numbers of the shape of a, or one per element along the axis; None: all the same.
        returned: whether to return the sums of weights, too.

    Returns: array without the axes; with returned the pair (array, sums of weights).

    Raises:
        TypeError: weights of another shape are given without an axis.
        ValueError: the shape of the weights is not that of the axes.

    Example:
        >>> wnp.average(wnp.array([1.0, 2.0, 3.0]), weights=wnp.array([3.0, 1.0, 0.0]))
        Array(1.25, dtype=float32)
    """
    a = _array(a)
    axes = None if axis is None else axes_of(axis, a.ndim, "average")
    if weights is None:
        out = mean(a, axis, keepdims=keepdims)
        return (out, _weft.full(out.shape, elements_over(a, axis, out.dtype), out.dtype)) if returned else out
    weights = _array(weights)
    dtype = _weft.promote_inexact(_weft.full((), 0, _weft.result_type(a, weights))).dtype
    a, weights = widened(a.astype(dtype)), widened(weights.astype(dtype))
    if weights.shape != a.shape:
        if axes is None:
            raise type_error("average: give the axis that the weights are for")
        if weights.shape != tuple(a.shape[d] for d in axes):
            raise value_error(f"average: weights of shape {weights.shape} for axes {axes} of shape {a.shape}")
        weights = _weft.transpose(weights, sorted(range(len(axes)), key=axes.__getitem__))
        weights = weights.reshape([n if d in axes else 1 for d, n in enumerate(a.shape)])
    total = sum(_weft.broadcast_to(weights, a.shape), axis, keepdims=keepdims)
    out = _as(sum(a * weights, axis, keepdims=keepdims) / total, dtype)
    return (out, _as(total, dtype)) if returned else out


_docs.complete(globals(), _PARAMETERS | _AXES, arrays=True)
