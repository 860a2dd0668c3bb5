"""Activation functions."""

from __future__ import annotations

import math

from .. import _weft
from .. import numpy as wnp
from .._weft import Array

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


def relu(x) -> Array:
    """max(x, 0); the derivative at 0 is 0."""
    x = wnp.asarray(x)
    return wnp.where(x > 0, x, 0)


def relu6(x) -> Array:
    """min(max(x, 0), 6)."""
    return wnp.minimum(relu(x), 6)


def sigmoid(x) -> Array:
    """1 / (1 + exp(-x))."""
    return _weft.bind_elementwise("logistic", (x,), {})


def silu(x) -> Array:
    """x * sigmoid(x)."""
    return x * sigmoid(x)


def softplus(x) -> Array:
    """log(1 + exp(x)) without overflow."""
    return wnp.logaddexp(x, 0.0)


def log_sigmoid(x) -> Array:
    """log(sigmoid(x)) without underflow."""
    return -softplus(-wnp.asarray(x))


def soft_sign(x) -> Array:
    """x / (1 + |x|)."""
    return x / (1 + wnp.abs(x))


def elu(x, alpha=1.0) -> Array:
    """x for x > 0, alpha * (exp(x) - 1) else (Clevert et al. 2015)."""
    x = wnp.asarray(x)
    return wnp.where(x > 0, x, alpha * wnp.expm1(wnp.where(x > 0, 0, x)))


def celu(x, alpha=1.0) -> Array:
    """x for x > 0, alpha * (exp(x / alpha) - 1) else (Barron 2017)."""
    x = wnp.asarray(x)
    return wnp.where(x > 0, x, alpha * wnp.expm1(wnp.where(x > 0, 0, x) / alpha))


def selu(x) -> Array:
    """The self-normalising elu (Klambauer et al. 2017)."""
    return 1.0507009873554805 * elu(x, 1.6732632423543772)


def leaky_relu(x, negative_slope=0.01) -> Array:
    """x for x >= 0, negative_slope * x else."""
    x = wnp.asarray(x)
    return wnp.where(x >= 0, x, negative_slope * x)


def gelu(x, approximate: bool = True) -> Array:
    """x times the normal distribution function (Hendrycks and Gimpel 2016); approximately, by tanh, unless told."""
    x = _weft.promote_inexact(x)
    if approximate:
        return 0.5 * x * (1 + wnp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * _weft.bind_elementwise("erfc", (-x / math.sqrt(2),), {})


def glu(x, axis: int = -1) -> Array:
    """The first half along an axis times the sigmoid of the second."""
    first, second = wnp.split(x, 2, axis)
    return first * sigmoid(second)


def mish(x) -> Array:
    """x * tanh(softplus(x))."""
    return x * wnp.tanh(softplus(x))


def hard_tanh(x) -> Array:
    """x limited to [-1, 1]."""
    return wnp.clip(x, -1, 1)


def hard_sigmoid(x) -> Array:
    """relu6(x + 3) / 6."""
    return relu6(x + 3.0) / 6.0


def hard_silu(x) -> Array:
    """x * hard_sigmoid(x)."""
    return x * hard_sigmoid(x)


def identity(x) -> Array:
    """x."""
    return wnp.asarray(x)


def squareplus(x, b=4) -> Array:
    """(x + sqrt(x^2 + b)) / 2 (Barron 2021)."""
    x = _weft.promote_inexact(x)
    return (x + wnp.sqrt(wnp.square(x) + b)) / 2


def sparse_plus(x) -> Array:
    """0 for x <= -1, (x + 1)^2 / 4 up to 1, x beyond."""
    x = wnp.asarray(x)
    return wnp.where(x <= -1, 0, wnp.where(x >= 1, x, (x + 1) ** 2 / 4))


def sparse_sigmoid(x) -> Array:
    """(x + 1) / 2 limited to [0, 1]: the derivative of sparse_plus."""
    return 0.5 * wnp.clip(wnp.asarray(x) + 1.0, 0.0, 2.0)


swish, hard_swish = silu, hard_silu
