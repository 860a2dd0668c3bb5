"""Functions of neural networks: activations, softmax, losses' building blocks, initialisers."""

from __future__ import annotations

import math

from . import _weft
from . import numpy as wnp
from ._weft import Array

__all__ = [
    "celu",
    "dot_product_attention",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "initializers",
    "leaky_relu",
    "log1mexp",
    "log_sigmoid",
    "log_softmax",
    "logmeanexp",
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
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
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


def log1mexp(x) -> Array:
    """log(1 - exp(-x)) for x > 0 without cancellation (Maechler 2012)."""
    x = _weft.promote_inexact(x)
    c = math.log(2)
    small = x <= c
    return wnp.where(small, wnp.log(-wnp.expm1(-wnp.where(small, x, 1))), wnp.log1p(-wnp.exp(-wnp.where(small, 1, x))))


def logmeanexp(x, axis=None, where=None, keepdims: bool = False) -> Array:
    """log(mean(exp(x))) over axes without overflow."""
    x = _weft.promote_inexact(x)
    total = logsumexp(x, axis=axis, keepdims=keepdims, where=where)
    if where is None:
        return total - math.log(_weft.count(x, axis))
    return total - wnp.log(wnp.sum(wnp.broadcast_to(where, x.shape), axis=axis, keepdims=keepdims).astype(x.dtype))


def dot_product_attention(
    query, key, value, bias=None, mask=None, *, scale: float | None = None, is_causal: bool = False
) -> Array:
    """softmax(scale query key^T + bias) value (Vaswani et al. 2017) for arrays [batch, length, heads, features] (batch
    may be missing). mask: True where a key counts; is_causal: keys up to the query's place. scale: 1 / sqrt(features).
    Keys and values may have fewer heads than queries (a divisor of theirs), which are then shared.

    Raises ValueError for shapes that do not fit.
    """
    query, key, value = (wnp.asarray(x) for x in (query, key, value))
    single = query.ndim == 3
    if single:
        query, key, value = query[None], key[None], value[None]
    if query.ndim != 4 or key.shape != value.shape[:3] + key.shape[3:] or query.shape[3] != key.shape[3]:
        raise ValueError(
            f"dot_product_attention: query, key and value are [batch, length, heads, features], got shapes "
            f"{query.shape}, {key.shape} and {value.shape}"
        )
    heads, shared = query.shape[2], key.shape[2]
    if heads % shared:
        raise ValueError(f"dot_product_attention: {shared} heads of keys do not divide {heads} heads of queries")
    if heads != shared:
        key, value = wnp.repeat(key, heads // shared, axis=2), wnp.repeat(value, heads // shared, axis=2)
    scale = 1 / math.sqrt(query.shape[3]) if scale is None else scale
    logits = wnp.einsum("btnh,bsnh->bnts", query, key) * scale
    if bias is not None:
        logits = logits + bias
    allowed = None if mask is None else wnp.asarray(mask, bool)
    if is_causal:
        t, s = logits.shape[-2:]
        below = wnp.arange(s)[None, :] <= wnp.arange(t)[:, None]
        allowed = below if allowed is None else allowed & below
    if allowed is not None:
        logits = wnp.where(allowed, logits, -0.7 * float(wnp.finfo(wnp.float32).max))
    weights = softmax(logits.astype("float32"), axis=-1).astype(query.dtype)
    out = wnp.einsum("bnts,bsnh->btnh", weights, value)
    return out[0] if single else out


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
    def truncated_normal(stddev=1e-2, dtype=float, lower=-2.0, upper=2.0):
        """Normal numbers limited to [lower, upper], then multiplied by stddev."""
        from . import random

        return lambda key, shape, dtype=dtype: random.truncated_normal(key, lower, upper, shape, dtype) * stddev

    @staticmethod
    def orthogonal(scale=1.0, column_axis: int = -1, dtype=float):
        """A matrix with orthonormal rows or columns, times scale (Saxe et al. 2014); further axes are flattened."""
        from . import random

        def init(key, shape, dtype=dtype):
            columns = shape[column_axis]
            rows = math.prod(shape) // columns
            tall = (rows, columns) if rows > columns else (columns, rows)
            q, r = wnp.linalg.qr(random.normal(key, tall, dtype))
            q = q * wnp.sign(wnp.diagonal(r))
            q = q if rows >= columns else q.T
            rest = tuple(n for d, n in enumerate(shape) if d != column_axis % len(shape))
            return scale * wnp.moveaxis(q.reshape((*rest, columns)), -1, column_axis)

        return init

    @staticmethod
    def variance_scaling(
        scale: float, mode: str, distribution: str, in_axis=-2, out_axis=-1, batch_axis=(), dtype=float
    ):
        """Variance scale / n, n the fan_in, fan_out or their mean (fan_avg); distribution "normal", "uniform" or
        "truncated_normal". in_axis and out_axis say which axes make up the fans; those of neither (and not of
        batch_axis) count in both."""
        from . import random

        def axes(given, rank: int) -> set[int]:
            return {a % rank for a in ((given,) if isinstance(given, int) else given)}

        def init(key, shape, dtype=dtype):
            rank = len(shape)
            if rank <= 1:
                raise ValueError(f"variance_scaling: two dimensions or more are needed, got shape {shape}")
            inside, outside, batch = axes(in_axis, rank), axes(out_axis, rank), axes(batch_axis, rank)
            size = lambda chosen: math.prod(shape[d] for d in chosen)
            receptive = math.prod(shape) // (size(inside) * size(outside) * size(batch))
            fan_in, fan_out = size(inside) * receptive, size(outside) * receptive
            fans = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}
            if mode not in fans:
                raise ValueError(f"variance_scaling: there is no mode {mode!r}; the modes are {', '.join(fans)}")
            variance = scale / fans[mode]
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
    def glorot_uniform(in_axis=-2, out_axis=-1, batch_axis=(), dtype=float):
        """Glorot and Bengio 2010, uniform."""
        return initializers.variance_scaling(1.0, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)

    @staticmethod
    def glorot_normal(in_axis=-2, out_axis=-1, batch_axis=(), dtype=float):
        """Glorot and Bengio 2010, truncated normal."""
        return initializers.variance_scaling(1.0, "fan_avg", "truncated_normal", in_axis, out_axis, batch_axis, dtype)

    @staticmethod
    def he_uniform(in_axis=-2, out_axis=-1, batch_axis=(), dtype=float):
        """He et al. 2015, uniform."""
        return initializers.variance_scaling(2.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)

    @staticmethod
    def he_normal(in_axis=-2, out_axis=-1, batch_axis=(), dtype=float):
        """He et al. 2015, truncated normal."""
        return initializers.variance_scaling(2.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)

    @staticmethod
    def lecun_uniform(in_axis=-2, out_axis=-1, batch_axis=(), dtype=float):
        """LeCun et al. 1998, uniform."""
        return initializers.variance_scaling(1.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)

    @staticmethod
    def lecun_normal(in_axis=-2, out_axis=-1, batch_axis=(), dtype=float):
        """LeCun et al. 1998, truncated normal."""
        return initializers.variance_scaling(1.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)

    xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
    kaiming_uniform, kaiming_normal = he_uniform, he_normal
