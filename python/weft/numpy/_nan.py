"""Reductions that leave NaN out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _weft
from .._core import docs as _docs
from .._weft import Array
from ..typing import ArrayLike, DTypeLike, NestedLike
from ._cumulative import cumprod, cumsum
from ._moments import _as, deviating, whole_mean
from ._primitives import sqrt
from ._reductions import (
    _AXES,
    _array,
    _no_out,
    all,
    argmax,
    argmin,
    mask,
    max,
    min,
    prod,
    sum,
    widened,
)

__all__ = [
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]


def _replace(a, value, where=None, name=""):
    """The array with `value` in place of NaN and of what `where` leaves out; and where that is."""
    a = _array(a)
    if not _weft.is_inexact(a.dtype) and where is None:
        return a, _weft.full(a.shape, False, "bool")
    bad = a != a
    if where is not None:
        bad = bad | _weft.logical_not(_weft.broadcast_to(mask(where, name), a.shape))
    return _weft.where(bad, value, a), bad


def nansum(
    a: NestedLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: NestedLike | None = None,
) -> Array:
    """The sum over axes, NaN counted as 0.

    Args:
        initial: a number that is added.

    Returns: array without the axes.

    Example:
        >>> wnp.nansum(wnp.array([1.0, wnp.nan, 2.0]))
        Array(3., dtype=float32)
    """
    return sum(_replace(a, 0, where, "nansum")[0], axis, dtype, out, keepdims, initial)


def nanprod(
    a: NestedLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: NestedLike | None = None,
) -> Array:
    """The product over axes, NaN counted as 1.

    Args:
        dtype: the dtype to multiply in; None: that of the array.
        initial: a number that is multiplied with.

    Returns: array without the axes.

    Example:
        >>> wnp.nanprod(wnp.array([3.0, wnp.nan, 2.0]))
        Array(6., dtype=float32)
    """
    return prod(_replace(a, 1, where, "nanprod")[0], axis, dtype, out, keepdims, initial)


def nancumsum(a: NestedLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Partial sums along an axis, NaN counted as 0.

    Args:
        axis: the axis, negative from the end; None: of the flattened array.

    Returns: array of the shape of a (flattened for axis None).

    Example:
        >>> wnp.nancumsum(wnp.array([1.0, wnp.nan, 2.0]))
        Array([1., 1., 3.], dtype=float32)
    """
    return cumsum(_replace(a, 0)[0], axis, dtype, out)


def nancumprod(a: NestedLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Partial products along an axis, NaN counted as 1.

    Args:
        axis: the axis, negative from the end; None: of the flattened array.
        dtype: the dtype to multiply in; None: that of the array.

    Returns: array of the shape of a (flattened for axis None).

    Example:
        >>> wnp.nancumprod(wnp.array([3.0, wnp.nan, 2.0]))
        Array([3., 3., 6.], dtype=float32)
    """
    return cumprod(_replace(a, 1)[0], axis, dtype, out)


def nanmax(
    a: NestedLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: NestedLike | None = None,
) -> Array:
    """The largest number over axes, NaN left out; NaN where there are only those.

    Returns: array without the axes, of the array's dtype.

    Raises:
        ValueError: there are no elements and initial is not given.

    Example:
        >>> wnp.nanmax(wnp.array([1.0, wnp.nan, 2.0]))
        Array(2., dtype=float32)
    """
    return _nan_extreme(max, a, axis, out, keepdims, initial, where, float("-inf"))


def nanmin(
    a: NestedLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: NestedLike | None = None,
) -> Array:
    """The smallest number over axes, NaN left out; NaN where there are only those.

    Returns: array without the axes, of the array's dtype.

    Raises:
        ValueError: there are no elements and initial is not given.

    Example:
        >>> wnp.nanmin(wnp.array([1.0, wnp.nan, 2.0]))
        Array(1., dtype=float32)
    """
    return _nan_extreme(min, a, axis, out, keepdims, initial, where, float("inf"))


def _nan_extreme(function, a, axis, out, keepdims, initial, where, worst) -> Array:
    a, name = _array(a), f"nan{function.__name__}"
    if not _weft.is_inexact(a.dtype):
        return function(a, axis, out, keepdims, initial, None if where is None else mask(where, name))
    filled, bad = _replace(a, worst, where, name)
    result = function(filled, axis, out, keepdims, initial)
    return result if initial is not None else _weft.where(all(bad, axis, keepdims=keepdims), float("nan"), result)


def nanargmax(a: NestedLike, axis: int | None = None, out: None = None, keepdims: bool = False) -> Array:
    """The index of the first largest number, NaN left out; -1 where there are only those (NumPy raises ValueError).

    Args:
        axis: the axis, negative from the end; None: of the flattened array.

    Returns: array of int32 without the axis.

    Example:
        >>> wnp.nanargmax(wnp.array([1.0, wnp.nan, 2.0]))
        Array(2, dtype=int32)
    """
    return _nan_arg(argmax, a, axis, out, keepdims, float("-inf"))


def nanargmin(a: NestedLike, axis: int | None = None, out: None = None, keepdims: bool = False) -> Array:
    """The index of the first smallest number, NaN left out; -1 where there are only those (NumPy raises ValueError).

    Args:
        axis: the axis, negative from the end; None: of the flattened array.

    Returns: array of int32 without the axis.

    Example:
        >>> wnp.nanargmin(wnp.array([wnp.nan, 1.0, 2.0]))
        Array(1, dtype=int32)
    """
    return _nan_arg(argmin, a, axis, out, keepdims, float("inf"))


def _nan_arg(function, a, axis, out, keepdims, worst) -> Array:
    a = _array(a)
    if not _weft.is_inexact(a.dtype):
        return function(a, axis, out, keepdims)
    filled, bad = _replace(a, worst)
    return _weft.where(all(bad, axis, keepdims=keepdims), -1, function(filled, axis, out, keepdims))


def nanmean(
    a: NestedLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: NestedLike | None = None,
) -> Array:
    """The mean over axes, NaN left out; NaN where there are only those.

    Args:
        dtype: the dtype to compute in; None: that of the array, of integers the default float dtype.

    Returns: array without the axes.

    Raises:
        TypeError: dtype is bool.

    Example:
        >>> wnp.nanmean(wnp.array([1.0, wnp.nan, 2.0]))
        Array(1.5, dtype=float32)
    """
    _no_out(out)
    if dtype is not None and not _weft.is_inexact(dtype):
        filled, bad = _replace(a, 0, where, "nanmean")
        return whole_mean(filled, axis, dtype, keepdims, _weft.logical_not(bad), "nanmean")
    a = _weft.promote_inexact(_array(a, dtype))
    filled, bad = _replace(widened(a), 0, where, "nanmean")
    count = sum(_weft.logical_not(bad), axis, keepdims=keepdims).astype(filled.dtype)
    return (sum(filled, axis, keepdims=keepdims) / count).astype(a.dtype)


def nanvar(
    a: NestedLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: NestedLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The variance over axes, NaN left out.

    Args:
        dtype: the dtype to compute in; None: that of the array, of integers the default float dtype.
        ddof: the divisor is n - ddof for n numbers; NaN where that is not positive.
        mean: the mean, where it is known: an array that broadcasts against a, as keepdims=True gives; None: it is
            computed.

    Returns: array without the axes, of a real float dtype.

    Example:
        >>> wnp.nanvar(wnp.array([1.0, wnp.nan, 3.0]))
        Array(1., dtype=float32)
    """
    _no_out(out)
    variance, to = _variance("nanvar", a, axis, dtype, ddof, keepdims, where, mean)
    return _as(variance, to)


def _variance(name, a, axis, dtype, ddof, keepdims, where, mean) -> tuple[Array, Any]:
    """The variance, still in 32 bits where the result has fewer, and the dtype of the result."""
    a, to = deviating(a, dtype, name)
    _, bad = _replace(a, 0, where, name)
    # Of infinities the distance from the mean is NaN, which counts.
    middle = nanmean(a, axis, keepdims=True, where=where) if mean is None else _array(mean, a.dtype)
    centered = _weft.where(bad, 0, _weft.broadcast_to(a - middle, a.shape))
    free = sum(_weft.logical_not(bad), axis, keepdims=keepdims) - ddof
    total = sum(_weft.absolute(centered) ** 2, axis, keepdims=keepdims)
    return _weft.where(free <= 0, float("nan"), total / _weft.where(free <= 0, 1, free).astype(total.dtype)), to


def nanstd(
    a: NestedLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: NestedLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The standard deviation over axes, NaN left out.

    Args:
        dtype: the dtype to compute in; None: that of the array, of integers the default float dtype.
        ddof: the divisor of the variance is n - ddof for n numbers; NaN where that is not positive.
        mean: the mean, where it is known: an array that broadcasts against a, as keepdims=True gives; None: it is
            computed.

    Returns: array without the axes, of a real float dtype.

    Example:
        >>> wnp.nanstd(wnp.array([1.0, wnp.nan, 3.0]))
        Array(1., dtype=float32)
    """
    _no_out(out)
    variance, to = _variance("nanstd", a, axis, dtype, ddof, keepdims, where, mean)
    return _as(sqrt(variance), to)


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "dtype": "the dtype to sum in; None: that of the array.",
    "initial": "a number that counts as one more element.",
}

_docs.complete(globals(), _PARAMETERS | _AXES, arrays=True)
