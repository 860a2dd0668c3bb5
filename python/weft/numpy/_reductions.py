"""Sums, means, extrema, cumulative sums."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

from .. import _weft
from .._core import docs as _docs
from .._core.errors import not_implemented, type_error, value_error
from .._core.tree import ARRAYS, jax_semantics
from .._weft import Array
from ..arguments import axes_of
from ..typing import ArrayLike, DTypeLike, NestedLike
from ._primitives import maximum, minimum

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "max",
    "min",
    "prod",
    "ptp",
    "sum",
]


# Reductions go over several axes.
_AXES = {"axis": "an axis or a tuple of axes, negative from the end; None: all of them."}


def _array(a, dtype=None) -> Array:
    return _weft.array(a, dtype, False)


def mask(where, name: str) -> Array:
    """A mask, which holds booleans."""
    where = _array(where)
    if where.dtype != "bool":
        raise value_error(f"{name}: where must be None or a boolean array, got {where.dtype}")
    return where


def _masked(a, where, neutral, name: str) -> Array:
    return a if where is None else _weft.where(mask(where, name), a, neutral)


def widened(a: Array) -> Array:
    """Floats of 8 and 16 bits in 32: sums, squares and counts overflow where results do not."""
    return a.astype("float32") if narrow(a.dtype) else a


def narrowed(y: Array, dtype: Any) -> Array:
    """What was computed of widened arrays, in the dtype that they had."""
    return y if y.dtype == dtype else y.astype(dtype)


def as_together(y: Array, *given: NestedLike) -> Array:
    """What was computed of arrays of which each was made floats by itself, in the dtype of the floats among them: that
    of float16 beside integers, for which it was computed in 32 bits."""
    dtype, weak = _weft.weak_result_type(*given)
    return narrowed(y, dtype) if not weak and _weft.is_inexact(dtype) else y


def shows_widening(a: Any) -> bool:
    """Whether a program is to say that narrow floats are added in 32 bits, which the operation does by itself: in JAX's
    programs those that name a dtype are not."""
    return _weft.is_traced(a) and narrow(a.dtype) and jax_semantics()


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
    plain = dtype is out is initial is where is None and promote_integers and type(a) in ARRAYS  # as most are called
    if plain and not shows_widening(a):
        return _weft.reduce("reduce_sum", a, axis, keepdims)
    _no_out(out)
    a = _array(a, dtype)
    own, dtype = a.dtype, _dtype_of_sum(a, dtype, promote_integers)
    if dtype is None and shows_widening(a):
        a, dtype = widened(a), own
    total = _weft.reduce("reduce_sum", _masked(a, where, 0, "sum"), axis, keepdims)
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
    own, dtype = a.dtype, _dtype_of_sum(a, dtype, promote_integers)
    if dtype is None and shows_widening(a):
        a, dtype = widened(a), own
    product = _weft.reduce("reduce_prod", _masked(a, where, 1, "prod"), axis, keepdims)
    return _in_dtype(_initial(product, initial, lambda x, y: x * y), dtype)


def _dtype_of_sum(a: Array, dtype: DTypeLike | None, promote_integers: bool) -> Any:
    """The dtype that a sum of a is asked for; None: the one that adding leads to."""
    own = dtype is None and not promote_integers and _weft.dtype_kind(a.dtype) in ("signed", "unsigned")
    return a.dtype if own else dtype


def _no_out(out) -> None:
    if out is not None:
        message = "out= is not supported: arrays never change"
        raise not_implemented(message) if jax_semantics() else type_error(message)


def _extreme(prim, combine, a, axis, keepdims, initial, where, out):
    _no_out(out)
    a = _array(a)
    if where is not None:
        if initial is None:
            raise value_error("max/min: where= needs initial=")
        a = _weft.where(mask(where, prim.removeprefix("reduce_")), a, _number(initial, a.dtype))
    if initial is not None and a.size == 0:
        shape = _weft.reduce("reduce_sum", a, axis, keepdims).shape
        return _weft.broadcast_to(_number(initial, a.dtype), shape)
    if _weft.dtype_kind(a.dtype) == "complex":
        pair = lambda x, y: _weft.stack([x, _weft.broadcast_to(y, x.shape)], 0)
        combine = lambda x, y: complex_extreme(prim, pair(x, y), 0, False)
        return _initial(complex_extreme(prim, a, axis, keepdims), initial, combine)
    return _initial(_weft.reduce(prim, a, axis, keepdims), initial, combine)


def complex_extreme(prim, a, axis, keepdims) -> Array:
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
    return _weft.reduce("reduce_and", _masked(_array(a), where, True, "all"), axis, keepdims)


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
    return _weft.reduce("reduce_or", _masked(_array(a), where, False, "any"), axis, keepdims)


def elements_over(a: Array, axis: int | Sequence[int] | None, dtype: DTypeLike) -> int | Array:
    """How many elements the axes have: a number, or where a size is symbolic a scalar array of the dtype."""
    axes = range(a.ndim) if axis is None else axes_of(axis, a.ndim, "axis")
    sizes = [
        a.shape[d] if isinstance(a.shape[d], int) else _weft.bind("dim_size", [a], {"dim": d})[0].astype(dtype)
        for d in axes
    ]
    return functools.reduce(operator.mul, sizes) if sizes else 1


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


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "initial": "a number that counts as one more element; needed with where, and for no elements.",
}

_docs.complete(globals(), _PARAMETERS | _AXES, arrays=True)
