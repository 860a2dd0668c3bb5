"""Functions of neural networks: activations, softmax, losses' building blocks, initialisers."""

from __future__ import annotations

import math

from . import _weft
from . import numpy as wnp
from ._weft import Array

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "initializers",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "logsumexp",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "standardize",
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


swish = silu


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


hard_swish = hard_silu


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


class initializers:
    """Initialisers: each gives a function (key, shape, dtype) -> array. Fans follow JAX: the last two axes are in and
    out."""

    @staticmethod
    def zeros(key, shape, dtype=float) -> Array:
        """Zeros."""
        del key
        return wnp.zeros(shape, dtype)

    @staticmethod
    def ones(key, shape, dtype=float) -> Array:
        """Ones."""
        del key
        return wnp.ones(shape, dtype)

    @staticmethod
    def constant(value):
        """Every element is value."""
        return lambda key, shape, dtype=float: wnp.full(shape, value, dtype)

    @staticmethod
    def normal(stddev=1e-2):
        """Normal numbers of the given deviation."""
        from . import random

        return lambda key, shape, dtype=float: random.normal(key, shape, dtype) * stddev

    @staticmethod
    def uniform(scale=1e-2):
        """Uniform in [0, scale)."""
        from . import random

        return lambda key, shape, dtype=float: random.uniform(key, shape, dtype) * scale

    @staticmethod
    def variance_scaling(scale: float, mode: str, distribution: str):
        """Variance scale / n, n the fan_in, fan_out or their mean (fan_avg); distribution "normal", "uniform" or
        "truncated_normal"."""
        from . import random

        def init(key, shape, dtype=float):
            receptive = math.prod(shape[:-2])
            fan_in, fan_out = shape[-2] * receptive, shape[-1] * receptive
            n = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[mode]
            variance = scale / n
            if distribution == "normal":
                return random.normal(key, shape, dtype) * math.sqrt(variance)
            if distribution == "uniform":
                return random.uniform(key, shape, dtype, -1.0) * math.sqrt(3 * variance)
            if distribution == "truncated_normal":
                # The deviation of a normal number limited to [-2, 2] is 0.8796...
                return random.truncated_normal(key, -2.0, 2.0, shape, dtype) * (
                    math.sqrt(variance) / 0.87962566103423978
                )
            raise ValueError(f"variance_scaling: there is no distribution {distribution!r}")

        return init

    @staticmethod
    def glorot_uniform():
        """Glorot and Bengio 2010, uniform."""
        return initializers.variance_scaling(1.0, "fan_avg", "uniform")

    @staticmethod
    def glorot_normal():
        """Glorot and Bengio 2010, truncated normal."""
        return initializers.variance_scaling(1.0, "fan_avg", "truncated_normal")

    @staticmethod
    def he_uniform():
        """He et al. 2015, uniform."""
        return initializers.variance_scaling(2.0, "fan_in", "uniform")

    @staticmethod
    def he_normal():
        """He et al. 2015, truncated normal."""
        return initializers.variance_scaling(2.0, "fan_in", "truncated_normal")

    @staticmethod
    def lecun_normal():
        """LeCun et al. 1998, truncated normal."""
        return initializers.variance_scaling(1.0, "fan_in", "truncated_normal")
