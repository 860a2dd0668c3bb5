"""Random numbers from keys. A key determines its numbers; split it for independent ones and use each key once.

    key = weft.random.key(0)
    k1, k2 = weft.random.split(key)
    x = weft.random.normal(k1, (3,))

Keys are hashed by Threefry-2x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011). key() gives
keys of
a dtype of their own, PRNGKey() the same as two uint32 words; every function takes both. For the same key the bits, and
what is computed from them by exact steps (uniform, randint, permutation ...), are those of jax.random with
jax_threefry_partitionable=True.
"""

from __future__ import annotations

import math

import numpy as np

from . import _weft
from . import numpy as wnp
from ._weft import Array

__all__ = [
    "PRNGKey",
    "bernoulli",
    "bits",
    "categorical",
    "cauchy",
    "choice",
    "exponential",
    "fold_in",
    "gumbel",
    "key",
    "key_data",
    "laplace",
    "logistic",
    "normal",
    "permutation",
    "randint",
    "rademacher",
    "split",
    "truncated_normal",
    "uniform",
    "wrap_key_data",
]


def _shape(shape) -> tuple:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def key(seed) -> Array:
    """A key from an integer, of dtype `key`."""
    return _weft.random_key(seed, True)


def PRNGKey(seed) -> Array:
    """A key from an integer, as two words: uint32[2]."""
    return _weft.random_key(seed, False)


def key_data(keys) -> Array:
    """The words of keys: uint32[..., 2]."""
    return _weft.random_unwrap(keys)


def wrap_key_data(words) -> Array:
    """Keys from words."""
    return _weft.random_wrap(words)


def split(key, num=2) -> Array:
    """num new keys (or an array of them, for a shape), independent of each other."""
    return _weft.random_split(key, _shape(num))


def fold_in(key, data) -> Array:
    """A new key from a key and an integer."""
    return _weft.random_fold_in(key, data)


def bits(key, shape=(), dtype="uint32") -> Array:
    """Random bits as unsigned integers of 8, 16, 32 or 64 bits."""
    return _weft.random_bits(key, 8 * np.dtype(dtype).itemsize, _shape(shape))


def uniform(key, shape=(), dtype=float, minval=0.0, maxval=1.0) -> Array:
    """Uniform in [minval, maxval)."""
    unit = _weft.random_uniform01(key, _shape(shape), dtype)
    low, high = wnp.asarray(minval).astype(unit.dtype), wnp.asarray(maxval).astype(unit.dtype)
    return wnp.maximum(low, unit * (high - low) + low)


def normal(key, shape=(), dtype=float) -> Array:
    """Standard normal, by the inverse of the error function."""
    dtype = _weft.dtype(dtype)
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype), dtype=dtype) if str(dtype) != "bfloat16" else -1 + 2**-8
    u = uniform(key, shape, dtype, low, 1.0)
    return _weft.bind_elementwise("erf_inv", (u,), {}) * wnp.asarray(math.sqrt(2)).astype(dtype)


def truncated_normal(key, lower, upper, shape=None, dtype=float) -> Array:
    """Standard normal, limited to [lower, upper]."""
    dtype = _weft.dtype(dtype)
    lower, upper = wnp.asarray(lower).astype(dtype), wnp.asarray(upper).astype(dtype)
    shape = wnp.broadcast_shapes(lower.shape, upper.shape) if shape is None else shape
    root = math.sqrt(2)
    a, b = (_weft.bind_elementwise("erf", (v / root,), {}) for v in (lower, upper))
    out = root * _weft.bind_elementwise("erf_inv", (uniform(key, shape, dtype, a, b),), {})
    inf = wnp.asarray(math.inf).astype(dtype)
    return wnp.clip(out, wnp.nextafter(lower, inf), wnp.nextafter(upper, -inf))


def randint(key, shape, minval, maxval, dtype=int) -> Array:
    """Whole numbers in [minval, maxval)."""
    dtype = _weft.dtype(dtype)
    width = 8 * dtype.itemsize
    unsigned = f"uint{width}"
    low, high = wnp.asarray(minval).astype(dtype), wnp.asarray(maxval).astype(dtype)
    k1, k2 = split(key)
    upper, lower = bits(k1, shape, unsigned), bits(k2, shape, unsigned)
    span = wnp.where(high <= low, wnp.ones((), unsigned), _weft.astype(high - low, unsigned))
    # (upper * 2^width + lower) mod span, without wider numbers.
    factor = wnp.asarray(2 ** (width // 2), unsigned) % span
    factor = (factor * factor) % span
    offset = ((upper % span) * factor + lower % span) % span
    return low + offset.astype(dtype)


def _shuffled(key, x) -> Array:
    rounds = math.ceil(3 * math.log(max(x.size, 1)) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, sub = split(key)
        x = _weft.bind("sort", [bits(sub, x.shape), x], {"dim": 0, "num_keys": 1})[1]
    return x


def permutation(key, x, axis: int = 0, independent: bool = False) -> Array:
    """The slices of x along an axis (or 0 ... x-1 for an integer) in random order."""
    if independent:
        raise NotImplementedError("permutation: independent=True")
    if isinstance(x, int) or (np.ndim(x) == 0 and not isinstance(x, Array)):
        return _shuffled(key, wnp.arange(int(x)))
    x = wnp.asarray(x)
    if x.ndim == 1:
        return _shuffled(key, x)
    return wnp.take(x, _shuffled(key, wnp.arange(x.shape[axis])), axis)


def choice(key, a, shape=(), replace: bool = True, p=None, axis: int = 0) -> Array:
    """Random elements of a (or of 0 ... a-1), with probabilities p."""
    a = wnp.asarray(a)
    n = int(a) if a.ndim == 0 else a.shape[axis]
    count = math.prod(_shape(shape))
    if not replace and count > n:
        raise ValueError(f"choice: {count} different elements of {n}")
    if p is None:
        index = randint(key, shape, 0, n) if replace else permutation(key, n)[:count].reshape(_shape(shape))
    elif replace:
        total = wnp.cumsum(wnp.asarray(p))
        index = wnp.searchsorted(total, total[-1] * (1 - uniform(key, shape, total.dtype)))
    else:
        scores = -gumbel(key, (n,), wnp.asarray(p).dtype) - wnp.log(wnp.asarray(p))
        index = wnp.argsort(scores)[:count].reshape(_shape(shape))
    return index if a.ndim == 0 else wnp.take(a, index, axis)


def bernoulli(key, p=0.5, shape=None) -> Array:
    """True with probability p."""
    p = wnp.asarray(p)
    p = p if _weft.is_inexact(p.dtype) else p.astype(float)
    return uniform(key, p.shape if shape is None else shape, p.dtype) < p


def rademacher(key, shape=(), dtype=int) -> Array:
    """-1 or 1."""
    return (2 * bernoulli(key, 0.5, shape).astype(dtype) - 1).astype(dtype)


def exponential(key, shape=(), dtype=float) -> Array:
    """Exponential with rate 1."""
    return -wnp.log1p(-uniform(key, shape, dtype))


def gumbel(key, shape=(), dtype=float) -> Array:
    """Standard Gumbel."""
    dtype = _weft.dtype(dtype)
    return -wnp.log(-wnp.log(uniform(key, shape, dtype, float(np.finfo(dtype).tiny), 1.0)))


def categorical(key, logits, axis: int = -1, shape=None) -> Array:
    """Indices along an axis with probabilities softmax(logits)."""
    logits = wnp.asarray(logits)
    axis = _weft.check_axis(axis, logits.ndim, "categorical") - logits.ndim
    batch = tuple(n for d, n in enumerate(logits.shape) if d != axis + logits.ndim)
    shape = batch if shape is None else tuple(shape)
    extra = shape[: len(shape) - len(batch)]
    noise = gumbel(key, extra + logits.shape, logits.dtype)
    return wnp.argmax(noise + logits, axis=axis)


def laplace(key, shape=(), dtype=float) -> Array:
    """Standard Laplace."""
    dtype = _weft.dtype(dtype)
    u = uniform(key, shape, dtype, float(-1 + np.finfo(dtype).epsneg), 1.0)
    return wnp.sign(u) * -wnp.log1p(-wnp.abs(u))


def logistic(key, shape=(), dtype=float) -> Array:
    """Standard logistic."""
    dtype = _weft.dtype(dtype)
    u = uniform(key, shape, dtype, float(np.finfo(dtype).eps), 1.0)
    return wnp.log(u / (1 - u))


def cauchy(key, shape=(), dtype=float) -> Array:
    """Standard Cauchy."""
    dtype = _weft.dtype(dtype)
    u = uniform(key, shape, dtype, float(np.finfo(dtype).eps), 1.0)
    return wnp.tan(math.pi * (u - 0.5))
