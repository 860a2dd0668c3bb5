"""Sums, means, extrema, cumulative sums."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

from .. import _docs, _weft
from .._errors import type_error, value_error
from .._weft import Array
from ..arguments import axes_of
from ..typing import ArrayLike, DTypeLike, NestedLike

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "average",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "cumulative_sum",
    "cumulative_prod",
    "max",
    "mean",
    "min",
    "prod",
    "ptp",
    "std",
    "sum",
    "var",
]


# Reductions go over several axes.
_AXES = {"axis": "an axis or a tuple of axes, negative from the end; None: all of them."}


def _array(a, dtype=None) -> Array:
    return _weft.array(a, dtype, False)


def _masked(a, where, neutral) -> Array:
    return a if where is None else _weft.where(_array(where), a, neutral)


def widened(a: Array) -> Array:
    """Floats of 8 and 16 bits in 32: sums, squares and counts overflow where results do not."""
    return a.astype("float32") if narrow(a.dtype) else a


def narrow(dtype: Any) -> bool:
    """Whether a dtype is a float of 8 or 16 bits; a name stands for one that NumPy does not have."""
    return _weft.is_inexact(dtype) and getattr(dtype, "itemsize", 2) < 4


def _in_dtype(result: Array, dtype: DTypeLike | None) -> Array:
    """Narrow integers are added in wider ones; who names a dtype gets it."""
    return result if dtype is None else result.astype(dtype)


def _number(initial, dtype: DTypeLike) -> Array:
    """initial in the dtype of the elements."""
    number = _array(initial, dtype)
    if number.ndim:
        raise value_error(f"initial must be a number, got an array of shape {number.shape}")
    return number


def _initial(result, initial, combine):
    """initial counted as one more of the elements."""
    return result if initial is None else combine(result, _number(initial, result.dtype))


def sum(
    a: NestedLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: NestedLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The sum over axes.

    Booleans and integers of fewer than 32 bits are summed in the default integer dtype, as in JAX; 16-bit floats in 32
    bits.

    Args:
        dtype: the dtype to sum in; None: that of the array.
        initial: a number that is added, in the dtype of the sum.
        promote_integers: whether narrow integers are summed in wider ones; otherwise they wrap in their own.

    Returns: array without the axes.

    Example:
        >>> wnp.sum(wnp.array([[1, 2], [3, 4]]), axis=0)
        Array([4, 6], dtype=int32)
        >>> wnp.sum(wnp.array([1.0, 2.0, 3.0]), where=wnp.array([True, False, True]))
        Array(4., dtype=float32)
    """
    _no_out(out)
    a = _array(a, dtype)
    dtype = _dtype_of_sum(a, dtype, promote_integers)
    total = _weft.reduce("reduce_sum", _masked(a, where, 0), axis, keepdims)
    return _in_dtype(_initial(total, initial, lambda x, y: x + y), dtype)


def prod(
    a: NestedLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: NestedLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The product over axes; 1 for no elements.

    Args:
        dtype: the dtype to multiply in; None: that of the array.
        initial: a number that is multiplied with.
        promote_integers: whether narrow integers are multiplied in wider ones; otherwise they wrap in their own.

    Returns: array without the axes.

    Example:
        >>> wnp.prod(wnp.array([[1, 2], [3, 4]]), axis=1)
        Array([ 2, 12], dtype=int32)
    """
    _no_out(out)
    a = _array(a, dtype)
    dtype = _dtype_of_sum(a, dtype, promote_integers)
    product = _weft.reduce("reduce_prod", _masked(a, where, 1), axis, keepdims)
    return _in_dtype(_initial(product, initial, lambda x, y: x * y), dtype)


def _dtype_of_sum(a: Array, dtype: DTypeLike | None, promote_integers: bool) -> Any:
    """The dtype that a sum of a is asked for; None: the one that adding leads to."""
    own = dtype is None and not promote_integers and _weft.dtype_kind(a.dtype) in ("signed", "unsigned")
    return a.dtype if own else dtype


def _no_out(out) -> None:
    if out is not None:
        raise type_error("out= is not supported: arrays never change")


def _extreme(prim, combine, a, axis, keepdims, initial, where, out):
    _no_out(out)
    a = _array(a)
    if where is not None:
        if initial is None:
            raise value_error("max/min: where= needs initial=")
        a = _weft.where(_array(where), a, _number(initial, a.dtype))
    if initial is not None and a.size == 0:
        shape = _weft.reduce("reduce_sum", a, axis, keepdims).shape
        return _weft.broadcast_to(_number(initial, a.dtype), shape)
    if _weft.dtype_kind(a.dtype) == "complex":
        pair = lambda x, y: _weft.stack([x, _weft.broadcast_to(y, x.shape)], 0)
        combine = lambda x, y: _complex_extreme(prim, pair(x, y), 0, False)
        return _initial(_complex_extreme(prim, a, axis, keepdims), initial, combine)
    return _initial(_weft.reduce(prim, a, axis, keepdims), initial, combine)


def _complex_extreme(prim, a, axis, keepdims) -> Array:
    """By the real parts, and where those are equal by the imaginary ones, as NumPy has it."""
    part = lambda name: _weft.bind_elementwise(name, (a,), {})
    real, imag = part("real"), part("imag")
    top = _weft.reduce(prim, real, axis, True)
    # NaN in either part wins over all numbers.
    nan = (real != real) | (imag != imag)
    anywhere = _weft.reduce("reduce_or", nan, axis, True)
    best = _weft.where(anywhere, nan, real == top)
    beside = -math.inf if prim == "reduce_max" else math.inf
    top = _weft.where(anywhere & (top == top), _weft.reduce(prim, _weft.where(best, real, beside), axis, True), top)
    rest = _weft.reduce(prim, _weft.where(best, imag, beside), axis, True)
    # Equal elements share the derivative, both parts of it; NaN is chosen by its parts.
    chosen = best & (imag == rest)
    count = _weft.reduce("reduce_sum", chosen.astype(real.dtype), axis, True)
    shared = lambda x: _weft.reduce("reduce_sum", _weft.where(chosen, x, 0), axis, True) / _weft.where(count, count, 1)
    parts = (_weft.where(count, shared(real), top), _weft.where(count, shared(imag), rest))
    out = _weft.bind_elementwise("complex", parts, {})
    return out if keepdims else out.reshape(_weft.reduce("reduce_sum", real, axis, False).shape)


def max(
    a: NestedLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: NestedLike | None = None,
) -> Array:
    """The largest element over axes; NaN where there is one. Equal ones share the derivative.

    Returns: array without the axes, of the array's dtype.

    Raises:
        ValueError: there are no elements and initial is not given; initial is an array.

    Example:
        >>> wnp.max(wnp.array([[1, 5], [7, 3]]), axis=0)
        Array([7, 5], dtype=int32)
    """
    from ._primitives import maximum

    return _extreme("reduce_max", maximum, a, axis, keepdims, initial, where, out)


def min(
    a: NestedLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: NestedLike | None = None,
) -> Array:
    """The smallest element over axes; NaN where there is one. Equal ones share the derivative.

    Returns: array without the axes, of the array's dtype.

    Raises:
        ValueError: there are no elements and initial is not given; initial is an array.

    Example:
        >>> wnp.min(wnp.array([[1, 5], [7, 3]]), axis=0)
        Array([1, 3], dtype=int32)
    """
    from ._primitives import minimum

    return _extreme("reduce_min", minimum, a, axis, keepdims, initial, where, out)


amax, amin = max, min


def all(
    a: NestedLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: NestedLike | None = None,
) -> Array:
    """Whether all elements over axes are true (not 0); True for no elements.

    Returns: array of booleans without the axes.

    Example:
        >>> wnp.all(wnp.array([[True, False], [True, True]]), axis=1)
        Array([False,  True], dtype=bool)
    """
    _no_out(out)
    return _weft.reduce("reduce_and", _masked(_array(a), where, True), axis, keepdims)


def any(
    a: NestedLike,
    axis: int | Sequence[int] | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: NestedLike | None = None,
) -> Array:
    """Whether an element over axes is true (not 0); False for no elements.

    Returns: array of booleans without the axes.

    Example:
        >>> wnp.any(wnp.array([[True, False], [False, False]]), axis=1)
        Array([ True, False], dtype=bool)
    """
    _no_out(out)
    return _weft.reduce("reduce_or", _masked(_array(a), where, False), axis, keepdims)


def elements_over(a: Array, axis: int | Sequence[int] | None, dtype: DTypeLike) -> int | Array:
    """How many elements the axes have: a number, or where a size is symbolic a scalar array of the dtype."""
    from ..primitives import dim_size

    axes = range(a.ndim) if axis is None else axes_of(axis, a.ndim, "axis")
    sizes = [a.shape[d] if isinstance(a.shape[d], int) else dim_size(a, dim=d).astype(dtype) for d in axes]
    return functools.reduce(operator.mul, sizes) if sizes else 1


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
    if where is None:
        result = _weft.mean(a, axis, keepdims)
        return result if dtype is None else result.astype(dtype)
    a = _weft.promote_inexact(a)
    total = sum(widened(a), axis, keepdims=keepdims, where=where)
    result = total / sum(_weft.broadcast_to(where, a.shape), axis, keepdims=keepdims).astype(total.dtype)
    return _as(result, a.dtype if dtype is None else dtype)


def whole_mean(a: Array, axis, dtype: DTypeLike, keepdims: bool, where, name: str) -> Array:
    """The mean in an integer dtype."""
    if _weft.dtype_kind(dtype) == "bool":
        raise type_error(f"{name}: dtype must be a float or an integer dtype, got bool")
    counted = _weft.broadcast_to(_array(True if where is None else where, "bool"), a.shape)
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
        correction: another name of ddof; wins where it is given.

    Returns: array without the axes, of a real float dtype.

    Example:
        >>> wnp.var(wnp.array([1.0, 2.0, 3.0, 4.0]))
        Array(1.25, dtype=float32)
        >>> wnp.var(wnp.array([1.0, 2.0, 3.0, 4.0]), ddof=1)
        Array(1.6666666, dtype=float32)
    """
    _no_out(out)
    variance, to = _variance(a, axis, dtype, ddof if correction is None else correction, keepdims, where, mean)
    return _as(variance, to)


def _variance(a, axis, dtype, fewer, keepdims, where, known) -> tuple[Array, Any]:
    """The variance, still in 32 bits where the result has fewer, and the dtype of the result."""
    a, to = deviating(a, dtype, "var")
    if where is not None:
        where = _weft.broadcast_to(_array(where, "bool"), a.shape)
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
    if dtype is not None and not narrow(to):
        a = a.astype(_as_complex(a, to))
    return widened(a), _real(to)


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
        correction: another name of ddof; wins where it is given.

    Returns: array without the axes, of a real float dtype.

    Example:
        >>> wnp.std(wnp.array([1.0, 3.0]))
        Array(1., dtype=float32)
    """
    from ._primitives import sqrt

    _no_out(out)
    variance, to = _variance(a, axis, dtype, ddof if correction is None else correction, keepdims, where, mean)
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


def argmax(a: NestedLike, axis: int | None = None, out: None = None, keepdims: bool = False) -> Array:
    """The index of the first largest element; NaN counts as the largest.

    Args:
        axis: the axis, negative from the end; None: of the flattened array.

    Returns: array of int32 without the axis.

    Raises:
        ValueError: the axis has no elements.

    Example:
        >>> wnp.argmax(wnp.array([[1, 5], [7, 3]]), axis=1)
        Array([1, 0], dtype=int32)
    """
    _no_out(out)
    return _weft.argreduce("argmax", _array(a), axis, keepdims)


def argmin(a: NestedLike, axis: int | None = None, out: None = None, keepdims: bool = False) -> Array:
    """The index of the first smallest element; NaN counts as the smallest.

    Args:
        axis: the axis, negative from the end; None: of the flattened array.

    Returns: array of int32 without the axis.

    Raises:
        ValueError: the axis has no elements.

    Example:
        >>> wnp.argmin(wnp.array([[1, 5], [7, 3]]), axis=1)
        Array([0, 1], dtype=int32)
    """
    _no_out(out)
    return _weft.argreduce("argmin", _array(a), axis, keepdims)


def ptp(a: NestedLike, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
    """The range of the values over axes: largest minus smallest.

    Returns: array without the axes, of the array's dtype.

    Raises:
        ValueError: there are no elements.

    Example:
        >>> wnp.ptp(wnp.array([[1, 5], [7, 3]]), axis=0)
        Array([6, 2], dtype=int32)
    """
    return max(a, axis, keepdims=keepdims) - min(a, axis, keepdims=keepdims)


def count_nonzero(a: NestedLike, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
    """How many elements over axes are not 0; NaN is not.

    Returns: array of int32 without the axes.

    Example:
        >>> wnp.count_nonzero(wnp.array([[1, 0], [7, 3]]), axis=0)
        Array([2, 1], dtype=int32)
    """
    return sum(_array(a) != 0, axis, keepdims=keepdims)


def cumsum(a: NestedLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Partial sums along an axis.

    Args:
        axis: the axis, negative from the end; None: of the flattened array.
        dtype: the dtype to sum in; None: that of the array (booleans and narrow integers: the default integer dtype).

    Returns: array of the shape of a (flattened for axis None).

    Example:
        >>> wnp.cumsum(wnp.array([[1, 2], [3, 4]]), axis=0)
        Array([[1, 2],
               [4, 6]], dtype=int32)
    """
    _no_out(out)
    return _in_dtype(_weft.cumulative("cumsum", _array(a, dtype), axis, False), dtype)


def cumprod(a: NestedLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Partial products along an axis.

    Args:
        axis: the axis, negative from the end; None: of the flattened array.
        dtype: the dtype to multiply in; None: that of the array (booleans and narrow integers: the default integer
            dtype).

    Returns: array of the shape of a (flattened for axis None).

    Example:
        >>> wnp.cumprod(wnp.array([[1, 2], [3, 4]]), axis=1)
        Array([[ 1,  2],
               [ 3, 12]], dtype=int32)
    """
    _no_out(out)
    return _in_dtype(_weft.cumulative("cumprod", _array(a, dtype), axis, False), dtype)


def cumulative_sum(
    x: NestedLike, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Partial sums along an axis, as the array API spells them.

    Args:
        axis: the axis, negative from the end; a vector needs none.
        dtype: the dtype to sum in; None: as for sum.
        include_initial: whether a 0 comes in front, so that the axis is longer by one.

    Returns: array of the shape of x, longer by one along the axis with include_initial.

    Raises:
        ValueError: no axis is given for an array of several dimensions.

    Example:
        >>> wnp.cumulative_sum(wnp.array([1, 2, 3]), include_initial=True)
        Array([0, 1, 3, 6], dtype=int32)
    """
    x = _array(x)
    # Unlike cumsum it sums narrow integers in wider ones, as sum does.
    return _cumulative(x, axis, sum(x[:0]).dtype if dtype is None else dtype, include_initial, "cumsum", 0)


def cumulative_prod(
    x: NestedLike, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Partial products along an axis, as the array API spells them.

    Args:
        axis: the axis, negative from the end; a vector needs none.
        dtype: the dtype to multiply in; None: as for cumprod.
        include_initial: whether a 1 comes in front, so that the axis is longer by one.

    Returns: array of the shape of x, longer by one along the axis with include_initial.

    Raises:
        ValueError: no axis is given for an array of several dimensions.

    Example:
        >>> wnp.cumulative_prod(wnp.array([1, 2, 3]), include_initial=True)
        Array([1, 1, 2, 6], dtype=int32)
    """
    return _cumulative(x, axis, dtype, include_initial, "cumprod", 1)


def _cumulative(x, axis, dtype, include_initial: bool, prim: str, neutral) -> Array:
    x = _array(x, dtype)
    if axis is None:
        if x.ndim != 1:
            raise value_error(f"cumulative_{prim[3:]}: give the axis for an array of shape {x.shape}")
        axis = 0
    out = _in_dtype(_weft.cumulative(prim, x, axis, False), dtype)
    if not include_initial:
        return out
    before = [1 if d == _weft.check_axis(axis, x.ndim, prim) else 0 for d in range(x.ndim)]
    return _weft.pad_constant(out, before, [0] * x.ndim, _weft.full((), neutral, out.dtype))


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "initial": "a number that counts as one more element; needed with where, and for no elements.",
}

_docs.complete(globals(), _PARAMETERS | _AXES, arrays=True)
