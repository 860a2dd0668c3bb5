"""Softmax and its relatives: exponentials without overflow, one-hot vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._weft import Array
from ..arguments import count
from ..numpy._reductions import elements_over, mask
from ..typing import ArrayLike, DTypeLike, NestedLike

__all__ = [
    "log1mexp",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "one_hot",
    "softmax",
]


def logsumexp(
    a: NestedLike,
    axis: int | Sequence[int] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: NestedLike | None = None,
) -> Any:
    """log(sum(b exp(a))) over axes without overflow: the largest element is taken out of the sum.

    Args:
        a: array or number of any shape.
        b: array of factors that broadcasts against a; None: 1.
        return_sign: whether to return the logarithm of the sum's size, and its sign.

    Returns: array without the axes, of a float dtype; with return_sign a pair of them.

    Example:
        >>> weft.nn.logsumexp(wnp.array([1000.0, 1000.0]))
        Array(1000.6932, dtype=float32)
    """
    a = _counted(a, where, "logsumexp")
    counted = wnp.real(a) if b is None else wnp.where(wnp.asarray(b) == 0, -wnp.inf, wnp.real(a))
    top = from_counted(_max(counted, axis))
    if b is None and not return_sign and a.dtype not in ("complex64", "complex128"):
        log = _log_of_sum(a - top, axis, keepdims)
        return log + (top if keepdims else wnp.reshape(top, log.shape))
    shifted = a - top
    factors = 1 if b is None else wnp.asarray(b)
    if b is not None:
        # What does not count may be larger than all that does, and would overflow; or NaN.
        largest = float(wnp.log(wnp.finfo(shifted.dtype).max)) - 1
        shifted = wnp.where((factors == 0) & ~(wnp.real(shifted) <= largest), largest, shifted)
    first, rest = _sum_in_parts(shifted, factors, axis, keepdims)
    total = first + rest
    shift = top if keepdims else wnp.reshape(top, total.shape)
    if return_sign:
        sign = wnp.sign(total)
        turned = (wnp.real(wnp.conj(sign) * part) for part in (first, rest))
        return _log_near_1(wnp.abs(total), *turned) + shift, sign
    return _log_near_1(total, first, rest) + shift


def _sum_in_parts(shifted: Array, factors: Any, axis, keepdims: bool) -> tuple[Array, Array]:
    """The sum of factors exp(shifted), of numbers of which the largest is 0: of the largest ones, and of the rest."""
    # Each largest one counts as 1 in the sum of them, and as 0, with its derivative, in the sum of the rest. One sum
    # cannot hold both: beside a 1 the rest loses the digits that the logarithm consists of. Two take 1.2 to 1.4 times
    # as long as one (a million floats along rows, columns, and in rows of 10). As parts of one sum of complex numbers
    # they take the same; finding the place of one largest element, which would need no number, 2 to 12 times.
    largest = _weft.bind_elementwise("stop_gradient", ((shifted == 0).astype(shifted.dtype),), {})
    rest = wnp.sum(factors * (wnp.exp(shifted) - largest), axis=axis, keepdims=keepdims)
    return wnp.sum(factors * largest, axis=axis, keepdims=keepdims), rest


def _log_near_1(total: Array, first: Array, rest: Array) -> Array:
    """log(total), which is first + rest: near 1 with all digits of the rest."""
    near = wnp.abs(total - 1) < 0.5
    off = wnp.where(near, rest + (first - 1), 0)
    return wnp.where(near, wnp.log1p(off), wnp.log(wnp.where(near, 1, total)))


def _log_of_sum(shifted: Array, axis, keepdims: bool) -> Array:
    """log(sum(exp(shifted))) of numbers of which the largest is 0: near 0 with all digits of the others."""
    first, rest = _sum_in_parts(shifted, 1, axis, keepdims)
    return wnp.log1p(rest + (first - 1))


def _counted(x: NestedLike, where: NestedLike | None, name: str) -> Array:
    """In floating point, -inf for what does not count."""
    values = _weft.promote_inexact(wnp.asarray(x) if isinstance(x, (list, tuple)) else x)
    return values if where is None else wnp.where(mask(where, name), values, -wnp.inf)


def _max(x, axis):
    return wnp.max(x, axis=axis, keepdims=True, initial=-wnp.inf if 0 in x.shape else None)


def from_counted(top):
    """The shift of a stable exponential: without derivative, 0 where it is not finite."""
    return _weft.bind_elementwise("stop_gradient", (wnp.where(wnp.isfinite(top), top, 0),), {})


def softmax(
    x: NestedLike,
    axis: int | Sequence[int] | None = -1,
    where: NestedLike | None = None,
    initial: ArrayLike | None = None,
) -> Array:
    """exp(x) / sum(exp(x)) along axes, without overflow; NaN where all elements are -inf.

    Args:
        where: booleans that broadcast against x: the elements that count; the others give 0.
        initial: accepted, without effect.

    Returns: array of the shape of x, of a float dtype.

    Source: Bridle, "Probabilistic interpretation of feedforward classification network outputs", 1990.

    Example:
        >>> weft.nn.softmax(wnp.array([1.0, 1.0, 1000.0]))
        Array([0., 0., 1.], dtype=float32)
    """
    del initial
    x = _counted(x, where, "softmax")
    top = _weft.bind_elementwise("stop_gradient", (_max(x, axis),), {})
    exps = wnp.exp(x - top)
    out = exps / wnp.sum(exps, axis=axis, keepdims=True)
    return out if where is None else wnp.where(where, out, 0)


def log_softmax(x: NestedLike, axis: int | Sequence[int] | None = -1, where: NestedLike | None = None) -> Array:
    """log(softmax(x)) along axes, without overflow.

    Args:
        where: booleans that broadcast against x: the elements that count; the others give -inf.

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> weft.nn.log_softmax(wnp.array([0.0, 0.0]))
        Array([-0.6931472, -0.6931472], dtype=float32)
    """
    x = _counted(x, where, "log_softmax")
    shifted = x - _weft.bind_elementwise("stop_gradient", (_max(x, axis),), {})
    out = shifted - _log_of_sum(shifted, axis, keepdims=True)
    return out if where is None else wnp.where(where, out, -wnp.inf)


def logmeanexp(
    x: NestedLike, axis: int | Sequence[int] | None = None, where: NestedLike | None = None, keepdims: bool = False
) -> Array:
    """log(mean(exp(x))) over axes, without overflow.

    Returns: array without the axes, of a float dtype.

    Example:
        >>> weft.nn.logmeanexp(wnp.array([1000.0, 1000.0]))
        Array(1000., dtype=float32)
    """
    x = _weft.promote_inexact(x)
    total = logsumexp(x, axis=axis, keepdims=keepdims, where=where)
    if where is None:
        n = elements_over(x, axis, "float64" if x.dtype in ("float64", "complex128") else "float32")
        if not isinstance(n, int):
            return total - wnp.log(n).astype(x.dtype)
        return total - (math.log(n) if n else -math.inf)
    return total - wnp.log(wnp.sum(wnp.broadcast_to(where, x.shape), axis=axis, keepdims=keepdims).astype(x.dtype))


def log1mexp(x: NestedLike) -> Array:
    """log(1 - exp(-x)) for x > 0, without cancellation.

    Returns: array of the shape of x, of a float dtype.

    Source: Maechler, "Accurately computing log(1 - exp(-|a|))", 2012.

    Example:
        >>> weft.nn.log1mexp(wnp.array([1e-6, 50.0]))
        Array([-1.3815511e+01, -1.9287499e-22], dtype=float32)
    """
    x = _weft.promote_inexact(x)
    c = math.log(2)
    small = x <= c
    return wnp.where(small, wnp.log(-wnp.expm1(-wnp.where(small, x, 1))), wnp.log1p(-wnp.exp(-wnp.where(small, 1, x))))


def one_hot(x: NestedLike, num_classes: int, *, dtype: DTypeLike = float, axis: int = -1) -> Array:
    """Indices as vectors: 1 at the index along a new axis, 0 elsewhere; all 0 for an index out of range.

    Args:
        x: array or number of an integer dtype.
        num_classes: the size of the new axis.
        dtype: the dtype of the result; float: the default float dtype.
        axis: where the new axis is in the result.

    Returns: array of one more dimension.

    Raises:
        ValueError: the size is negative.
        IndexError: the axis is out of range.

    Example:
        >>> weft.nn.one_hot(wnp.array([0, 2]), 3)
        Array([[1., 0., 0.],
               [0., 0., 1.]], dtype=float32)
    """
    x = wnp.asarray(x)
    axis = _weft.check_axis(axis, x.ndim + 1, "one_hot")
    num_classes = count(num_classes, "one_hot: num_classes")
    classes = _weft.iota(tuple(num_classes if d == axis else 1 for d in range(x.ndim + 1)), axis, "int32")
    return (wnp.expand_dims(x, axis) == classes).astype(dtype)


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "axis": "an axis or a tuple of axes, negative from the end; None: all of them.",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
