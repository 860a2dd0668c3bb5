"""Activation functions."""

from __future__ import annotations

import math

from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._weft import Array
from ..lax._primitives import normal_cdf
from ..numpy._reductions import as_together, narrowed, widened
from ..typing import ArrayLike, NestedLike

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "leaky_relu",
    "log_sigmoid",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "swish",
    "tanh",
]

tanh = wnp.tanh


def relu(x: NestedLike) -> Array:
    """The rectifier: max(x, 0); its derivative at 0 is 0.

    Returns: array of the shape and dtype of x.

    Source: Nair and Hinton, "Rectified linear units improve restricted Boltzmann machines", 2010.

    Example:
        >>> weft.nn.relu(wnp.array([-1.0, 2.0]))
        Array([0., 2.], dtype=float32)
    """
    x = wnp.asarray(x)
    return wnp.where(x > 0, x, _kept_nan(x, 0))


def _kept_nan(x: Array, value: ArrayLike) -> Array:
    """A value, NaN where x is NaN; without derivative."""
    return _weft.bind_elementwise("stop_gradient", (wnp.where(x != x, x, value),), {})


def relu6(x: NestedLike) -> Array:
    """The rectifier limited to 6: min(max(x, 0), 6); its derivatives at 0 and 6 are 0.

    Returns: array of the shape of x, of a float dtype.

    Source: Krizhevsky, "Convolutional deep belief networks on CIFAR-10", 2010.

    Example:
        >>> weft.nn.relu6(wnp.array([-1.0, 9.0]))
        Array([0., 6.], dtype=float32)
    """
    x = wnp.asarray(x)
    return wnp.where((x > 0) & (x < 6), x, _kept_nan(x, wnp.where(x > 0, 6.0, 0.0)))


def sigmoid(x: NestedLike) -> Array:
    """The logistic function: 1 / (1 + exp(-x)).

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> weft.nn.sigmoid(wnp.array([0.0, 2.0]))
        Array([0.5      , 0.8807971], dtype=float32)
    """
    return _weft.bind_elementwise("logistic", (x,), {})


def silu(x: NestedLike) -> Array:
    """x sigmoid(x).

    Args:
        x: array of any shape, of a float dtype.

    Returns: array of the shape and dtype of x.

    Source: Elfwing et al., "Sigmoid-weighted linear units", 2018.

    Example:
        >>> weft.nn.silu(wnp.array([0.0, 2.0]))
        Array([0.       , 1.7615942], dtype=float32)
    """
    x = wnp.asarray(x)
    return x * sigmoid(x)


def softplus(x: NestedLike) -> Array:
    """log(1 + exp(x)) without overflow.

    Returns: array of the shape of x, of a float dtype.

    Source: Dugas et al., "Incorporating second-order functional knowledge", 2001.

    Example:
        >>> weft.nn.softplus(wnp.array([0.0, 1000.0]))
        Array([6.931472e-01, 1.000000e+03], dtype=float32)
    """
    return wnp.logaddexp(x, 0.0)


def log_sigmoid(x: NestedLike) -> Array:
    """log(sigmoid(x)) without underflow: -softplus(-x).

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> weft.nn.log_sigmoid(wnp.array([0.0, -1000.0]))
        Array([-6.931472e-01, -1.000000e+03], dtype=float32)
    """
    return -softplus(-wnp.asarray(x))


def soft_sign(x: NestedLike) -> Array:
    """x / (1 + |x|).

    Args:
        x: array of any shape, of a float dtype.

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> weft.nn.soft_sign(wnp.array([-1.0, 3.0]))
        Array([-0.5 ,  0.75], dtype=float32)
    """
    x = _weft.promote_inexact(wnp.asarray(x))
    size = wnp.abs(x)
    if wnp.iscomplexobj(x):
        return x / (1 + size)
    far = size > 1
    # Beyond 1 what is missing to 1, so that derivatives do not cancel.
    rest = 1 - 1 / (1 + size)
    near = wnp.where(far, 0, x)
    return wnp.where(far, wnp.where(x < 0, -rest, rest), near / (1 + wnp.abs(near)))


def elu(x: NestedLike, alpha: ArrayLike = 1.0) -> Array:
    """The exponential linear unit: x for x > 0, alpha (exp(x) - 1) otherwise.

    Returns: array of the shape of x, of a float dtype.

    Source: Clevert et al., "Fast and accurate deep network learning by exponential linear units", 2016.

    Example:
        >>> weft.nn.elu(wnp.array([-1.0, 2.0]))
        Array([-0.63212055,  2.        ], dtype=float32)
    """
    x = wnp.asarray(x)
    return wnp.where(x > 0, x, wnp.multiply(alpha, wnp.expm1(wnp.where(x > 0, 0.0, x))))


def celu(x: NestedLike, alpha: ArrayLike = 1.0) -> Array:
    """The continuously differentiable exponential linear unit: x for x > 0, alpha (exp(x / alpha) - 1) otherwise.

    Returns: array of the shape of x, of a float dtype.

    Source: Barron, "Continuously differentiable exponential linear units", 2017.

    Example:
        >>> weft.nn.celu(wnp.array([-1.0, 2.0]), alpha=2.0)
        Array([-0.78693867,  2.        ], dtype=float32)
    """
    x = wnp.asarray(x)
    return wnp.where(x > 0, x, wnp.multiply(alpha, wnp.expm1(wnp.where(x > 0, 0.0, x) / alpha)))


def selu(x: NestedLike) -> Array:
    """The self-normalising exponential linear unit: 1.0507... elu(x, 1.6732...).

    Returns: array of the shape of x, of a float dtype.

    Source: Klambauer et al., "Self-normalizing neural networks", 2017.

    Example:
        >>> weft.nn.selu(wnp.array([-1.0, 2.0]))
        Array([-1.1113307,  2.101402 ], dtype=float32)
    """
    return 1.0507009873554805 * elu(x, 1.6732632423543772)


def leaky_relu(x: NestedLike, negative_slope: Array | float = 0.01) -> Array:
    """x for x >= 0, a small multiple of it otherwise.

    Args:
        negative_slope: the multiple.

    Returns: array of the shape of x, of a float dtype.

    Source: Maas et al., "Rectifier nonlinearities improve neural network acoustic models", 2013.

    Example:
        >>> weft.nn.leaky_relu(wnp.array([-1.0, 2.0]))
        Array([-0.01,  2.  ], dtype=float32)
    """
    x = wnp.asarray(x)
    return wnp.where(x >= 0, x, negative_slope * x)


def gelu(x: NestedLike, approximate: bool = True) -> Array:
    """The Gaussian error linear unit: x times the normal distribution function at x.

    Args:
        approximate: whether that is 0.5 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); otherwise exactly 0.5 erfc(-x /
            sqrt(2)).

    Returns: array of the shape of x, of a float dtype.

    Source: Hendrycks and Gimpel, "Gaussian error linear units", 2016.

    Example:
        >>> weft.nn.gelu(wnp.array([-1.0, 2.0]))
        Array([-0.158808 ,  1.9545977], dtype=float32)
        >>> weft.nn.gelu(wnp.array([-1.0, 2.0]), approximate=False)
        Array([-0.15865526,  1.9544997 ], dtype=float32)
    """
    x = _weft.promote_inexact(x)
    if approximate:
        # (1 + tanh(u)) / 2 is sigmoid(2 u), which keeps its digits where the sum cancels.
        wide = widened(x)  # the third power of 41 is more than the largest half
        return x * narrowed(sigmoid(math.sqrt(8 / math.pi) * (wide + 0.044715 * wide**3)), x.dtype)
    return x * normal_cdf(x)


def glu(x: NestedLike, axis: int = -1) -> Array:
    """The gated linear unit: the first half along an axis times the sigmoid of the second.

    Args:
        x: array of an even size along the axis.

    Returns: array of half that size.

    Raises:
        ValueError: the size is odd.

    Source: Dauphin et al., "Language modeling with gated convolutional networks", 2017.

    Example:
        >>> weft.nn.glu(wnp.array([1.0, 2.0, 0.0, 0.0]))
        Array([0.5, 1. ], dtype=float32)
    """
    first, second = wnp.split(x, 2, axis)
    return first * sigmoid(second)


def mish(x: NestedLike) -> Array:
    """x tanh(softplus(x)).

    Args:
        x: array of any shape, of a float dtype.

    Returns: array of the shape and dtype of x.

    Source: Misra, "Mish: a self regularized non-monotonic activation function", 2019.

    Example:
        >>> weft.nn.mish(wnp.array([0.0, 2.0]))
        Array([0.      , 1.943959], dtype=float32)
    """
    x = wnp.asarray(x)
    return x * wnp.tanh(softplus(x))


def hard_tanh(x: NestedLike) -> Array:
    """x limited to [-1, 1]; the derivatives at -1 and 1 are 1.

    Returns: array of the shape and dtype of x.

    Example:
        >>> weft.nn.hard_tanh(wnp.array([-3.0, 0.5]))
        Array([-1. ,  0.5], dtype=float32)
    """
    x = wnp.asarray(x)
    return wnp.where(x > 1, 1, wnp.where(x < -1, -1, x))


def hard_sigmoid(x: NestedLike) -> Array:
    """A piecewise linear sigmoid: relu6(x + 3) / 6.

    Args:
        x: array of any shape, of a float dtype.

    Returns: array of the shape of x, of a float dtype.

    Source: Howard et al., "Searching for MobileNetV3", 2019.

    Example:
        >>> weft.nn.hard_sigmoid(wnp.array([-3.0, 0.0, 3.0]))
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return relu6(wnp.asarray(x) + 3.0) / 6.0


def hard_silu(x: NestedLike) -> Array:
    """x hard_sigmoid(x).

    Args:
        x: array of any shape, of a float dtype.

    Returns: array of the shape of x, of a float dtype.

    Source: Howard et al., "Searching for MobileNetV3", 2019.

    Example:
        >>> weft.nn.hard_silu(wnp.array([-3.0, 1.0, 3.0]))
        Array([-0.       ,  0.6666667,  3.       ], dtype=float32)
    """
    x = wnp.asarray(x)
    return x * hard_sigmoid(x)


def identity(x: NestedLike) -> Array:
    """x itself.

    Returns: array of the shape and dtype of x.

    Example:
        >>> weft.nn.identity(wnp.array([1.0, 2.0]))
        Array([1., 2.], dtype=float32)
    """
    return wnp.asarray(x)


def squareplus(x: NestedLike, b: ArrayLike = 4) -> Array:
    """A smooth rectifier without exponentials: (x + sqrt(x^2 + b)) / 2.

    Args:
        b: how smooth: the value at 0 is sqrt(b) / 2.

    Returns: array of the shape of x, of a float dtype.

    Source: Barron, "Squareplus: a softplus-like algebraic rectifier", 2021.

    Example:
        >>> weft.nn.squareplus(wnp.array([0.0, 3.0]))
        Array([1.       , 3.3027756], dtype=float32)
    """
    x = given = wnp.asarray(x)
    if wnp.iscomplexobj(x):
        return (x + wnp.sqrt(wnp.square(x) + b)) / 2
    # Integers and a Python float make a number that is weakly typed, as their sum does.
    x = x * 1.0 if isinstance(b, float) else _weft.promote_inexact(x)
    # max(x, 0), and what is above it, by the conjugate: sums cancel. Where x^2 would overflow the root is |x|.
    size = wnp.abs(x)
    far = size > math.sqrt(float(wnp.finfo(x.dtype).max)) / 4
    root = wnp.where(far, size, wnp.sqrt(wnp.square(wnp.where(far, 0, x)) + b))
    twice = 2 * (root + size)
    above = b / wnp.where(twice == 0, 1, twice)  # b is 0 where that is
    return as_together(wnp.where(x < 0, above, x + above), given, b)


def sparse_plus(x: NestedLike) -> Array:
    """A softplus that reaches 0 and x: 0 for x <= -1, (x + 1)^2 / 4 up to 1, x beyond.

    Returns: array of the shape of x, of a float dtype.

    Source: the counterpart of sparsemax (Martins and Astudillo, "From softmax to sparsemax", 2016).

    Example:
        >>> weft.nn.sparse_plus(wnp.array([-1.0, 0.0, 1.0]))
        Array([0.  , 0.25, 1.  ], dtype=float32)
    """
    x = wnp.asarray(x)
    return wnp.where(x <= -1, 0.0, wnp.where(x >= 1, x, (x + 1.0) ** 2 / 4))


def sparse_sigmoid(x: NestedLike) -> Array:
    """The derivative of sparse_plus: (x + 1) / 2 limited to [0, 1].

    Returns: array of the shape of x, of a float dtype.

    Source: Martins and Astudillo, "From softmax to sparsemax", 2016.

    Example:
        >>> weft.nn.sparse_sigmoid(wnp.array([-2.0, 0.0, 1.0]))
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return 0.5 * wnp.clip(wnp.asarray(x) + 1.0, 0.0, 2.0)


swish, hard_swish = silu, hard_silu

# What parameters mean in several functions of this module.
_PARAMETERS = {
    "alpha": "the limit towards -infinity is -alpha.",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
