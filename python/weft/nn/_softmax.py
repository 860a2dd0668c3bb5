"""Softmax and its relatives: exponentials without overflow, normalisation, one-hot vectors."""

from __future__ import annotations

import math

from .. import _weft
from .. import numpy as wnp
from .._weft import Array

__all__ = [
    "log1mexp",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "one_hot",
    "softmax",
    "standardize",
]


def logsumexp(a, axis=None, b=None, keepdims: bool = False, return_sign: bool = False, where=None):
    """log(sum(b * exp(a))) without overflow, over axes (all by default). With return_sign: (log of the size, sign)."""
    a = _weft.promote_inexact(a)
    if where is not None:
        a = wnp.where(where, a, -wnp.inf)
    top = from_finite(_max(a, axis))
    exps = wnp.exp(a - top)
    if b is not None:
        exps = exps * b
    total = wnp.sum(exps, axis=axis, keepdims=keepdims)
    shift = top if keepdims else wnp.reshape(top, total.shape)
    if return_sign:
        return wnp.log(wnp.abs(total)) + shift, wnp.sign(total)
    return wnp.log(total) + shift


def _max(x, axis):
    return wnp.max(x, axis=axis, keepdims=True, initial=-wnp.inf if 0 in x.shape else None)


def from_finite(top):
    """The shift of a stable exponential: without derivative, 0 where it is not finite."""
    return _weft.bind_elementwise("stop_gradient", (wnp.where(wnp.isfinite(top), top, 0),), {})


def softmax(x, axis=-1, where=None, initial=None) -> Array:
    """exp(x) / sum(exp(x)) along axes, without overflow."""
    del initial
    x = _weft.promote_inexact(x)
    if where is not None:
        x = wnp.where(where, x, -wnp.inf)
    top = _weft.bind_elementwise("stop_gradient", (_max(x, axis),), {})
    exps = wnp.exp(x - top)
    out = exps / wnp.sum(exps, axis=axis, keepdims=True)
    return out if where is None else wnp.where(where, out, 0)


def log_softmax(x, axis=-1, where=None) -> Array:
    """log(softmax(x)) along axes, without overflow."""
    x = _weft.promote_inexact(x)
    if where is not None:
        x = wnp.where(where, x, -wnp.inf)
    shifted = x - _weft.bind_elementwise("stop_gradient", (_max(x, axis),), {})
    return shifted - wnp.log(wnp.sum(wnp.exp(shifted), axis=axis, keepdims=True))


def logmeanexp(x, axis=None, where=None, keepdims: bool = False) -> Array:
    """log(mean(exp(x))) over axes without overflow."""
    x = _weft.promote_inexact(x)
    total = logsumexp(x, axis=axis, keepdims=keepdims, where=where)
    if where is None:
        return total - math.log(_weft.count(x, axis))
    return total - wnp.log(wnp.sum(wnp.broadcast_to(where, x.shape), axis=axis, keepdims=keepdims).astype(x.dtype))


def log1mexp(x) -> Array:
    """log(1 - exp(-x)) for x > 0 without cancellation (Maechler 2012)."""
    x = _weft.promote_inexact(x)
    c = math.log(2)
    small = x <= c
    return wnp.where(small, wnp.log(-wnp.expm1(-wnp.where(small, x, 1))), wnp.log1p(-wnp.exp(-wnp.where(small, 1, x))))


def standardize(x, axis=-1, mean=None, variance=None, epsilon=1e-5) -> Array:
    """(x - mean) / sqrt(variance + epsilon)."""
    x = _weft.promote_inexact(x)
    mean = wnp.mean(x, axis=axis, keepdims=True) if mean is None else mean
    variance = wnp.mean((x - mean) ** 2, axis=axis, keepdims=True) if variance is None else variance
    return (x - mean) / wnp.sqrt(variance + epsilon)


def one_hot(x, num_classes: int, *, dtype=float, axis: int = -1) -> Array:
    """1 at the index x along a new axis of num_classes elements, 0 elsewhere (everywhere for x out of range)."""
    x = wnp.asarray(x)
    axis = axis + x.ndim + 1 if axis < 0 else axis
    classes = _weft.iota(tuple(num_classes if d == axis else 1 for d in range(x.ndim + 1)), axis, "int32")
    return (wnp.expand_dims(x, axis) == classes).astype(dtype)
