"""Random numbers from keys. A key determines its numbers; split it for independent ones and use each key once.

    >>> k1, k2 = weft.random.split(weft.random.key(0))
    >>> weft.random.randint(k1, (3,), 0, 10).shape
    (3,)

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
    "ball",
    "bernoulli",
    "beta",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "clone",
    "dirichlet",
    "exponential",
    "fold_in",
    "gamma",
    "geometric",
    "gumbel",
    "key",
    "key_data",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "maxwell",
    "multivariate_normal",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "randint",
    "rademacher",
    "rayleigh",
    "split",
    "t",
    "triangular",
    "truncated_normal",
    "uniform",
    "weibull_min",
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
    """Standard normal, by the inverse of the error function. Complex numbers: both parts with variance 1/2."""
    dtype = _weft.dtype(dtype)
    if _weft.dtype_kind(dtype) == "complex":
        part = "float64" if dtype == np.complex128 else "float32"
        k1, k2 = split(key)
        parts = normal(k1, shape, part), normal(k2, shape, part)
        return _weft.bind_elementwise("complex", parts, {}) / wnp.asarray(math.sqrt(2)).astype(part)
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
    width = max(8 * dtype.itemsize, 32)
    unsigned = f"uint{width}"
    low, high = wnp.asarray(minval).astype(dtype), wnp.asarray(maxval).astype(dtype)
    k1, k2 = split(key)
    upper, lower = bits(k1, shape, unsigned), bits(k2, shape, unsigned)
    span = wnp.where(high <= low, wnp.ones((), unsigned), _weft.astype(high, unsigned) - _weft.astype(low, unsigned))
    # (upper * 2^width + lower) mod span, without wider numbers.
    factor = wnp.asarray(2 ** (width // 2), unsigned) % span
    factor = (factor * factor) % span
    offset = ((upper % span) * factor + lower % span) % span
    return low + offset.astype(dtype)


def _shuffled(key, x, axis: int = 0) -> Array:
    rounds = math.ceil(3 * math.log(max(x.size, 1)) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, sub = split(key)
        x = _weft.bind("sort", [bits(sub, x.shape), x], {"dim": axis, "num_keys": 1})[1]
    return x


def permutation(key, x, axis: int = 0, independent: bool = False) -> Array:
    """The slices of x along an axis (or 0 ... x-1 for an integer) in random order; independent: every vector along the
    axis in an order of its own."""
    if isinstance(x, int) or (np.ndim(x) == 0 and not isinstance(x, Array)):
        return _shuffled(key, wnp.arange(int(x)))
    x = wnp.asarray(x)
    axis = _weft.check_axis(axis, x.ndim, "permutation")
    if independent or x.ndim == 1:
        return _shuffled(key, x, axis)
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
    return wnp.sign(u) * wnp.log1p(-wnp.abs(u))


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


def clone(key) -> Array:
    """The same key."""
    return wnp.asarray(key)


# --- Made from others by exact formulas -------------------------------------------------------------------------------


def lognormal(key, sigma=1.0, shape=None, dtype=float) -> Array:
    """exp of a normal number of deviation sigma."""
    shape = wnp.shape(sigma) if shape is None else shape
    return wnp.exp(normal(key, shape, dtype) * wnp.asarray(sigma, dtype))


def pareto(key, b, shape=None, dtype=float) -> Array:
    """Pareto with exponent b: exp(E / b) of a standard exponential E."""
    shape = wnp.shape(b) if shape is None else shape
    return wnp.exp(exponential(key, shape, dtype) / wnp.asarray(b, dtype))


def rayleigh(key, scale, shape=None, dtype=float) -> Array:
    """Rayleigh: scale sqrt(-2 log u)."""
    shape = wnp.shape(scale) if shape is None else shape
    return wnp.asarray(scale, dtype) * wnp.sqrt(-2 * wnp.log(uniform(key, shape, dtype)))


def weibull_min(key, scale, concentration, shape=(), dtype=float) -> Array:
    """Weibull: scale (-log(1 - u)) ^ (1 / concentration)."""
    return wnp.power(-wnp.log1p(-uniform(key, shape, dtype)), 1.0 / concentration) * scale


def maxwell(key, shape=(), dtype=float) -> Array:
    """The length of a vector of three standard normal numbers."""
    return wnp.linalg.vector_norm(normal(key, (*_shape(shape), 3), dtype), axis=-1)


def geometric(key, p, shape=None, dtype=int) -> Array:
    """How many trials of probability p it takes to succeed once: 1, 2 ..."""
    p = wnp.asarray(p, float)
    u = uniform(key, p.shape if shape is None else shape, p.dtype)
    return (wnp.floor(wnp.log(u) / wnp.log1p(-p)) + 1).astype(dtype)


def triangular(key, left, mode, right, shape=None, dtype=float) -> Array:
    """Triangular between left and right with its peak at mode, by the inverse distribution function."""
    left, mode, right = (wnp.asarray(v, dtype) for v in (left, mode, right))
    if shape is None:
        shape = wnp.broadcast_shapes(left.shape, mode.shape, right.shape)
    u = uniform(key, shape, dtype)
    low = left + wnp.sqrt(u * (right - left) * (mode - left))
    high = right - wnp.sqrt((1 - u) * (right - left) * (right - mode))
    return wnp.where(u < (mode - left) / (right - left), low, high)


def multivariate_normal(key, mean, cov, shape=None, dtype=None, method: str = "cholesky") -> Array:
    """Normal vectors of a mean and a covariance matrix; method: "cholesky", "eigh" or "svd"."""
    mean, cov = wnp.asarray(mean), wnp.asarray(cov)
    dtype = wnp.result_type(mean, cov, 1.0) if dtype is None else dtype
    mean, cov = mean.astype(dtype), cov.astype(dtype)
    shape = wnp.broadcast_shapes(mean.shape[:-1], cov.shape[:-2]) if shape is None else _shape(shape)
    if method == "cholesky":
        factor = wnp.linalg.cholesky(cov)
    elif method == "eigh":
        w, v = wnp.linalg.eigh(cov)
        factor = v * wnp.sqrt(w)[..., None, :]
    elif method == "svd":
        u, w, _ = wnp.linalg.svd(cov)
        factor = u * wnp.sqrt(w)[..., None, :]
    else:
        raise ValueError(f"multivariate_normal: there is no method {method!r}")
    return mean + wnp.einsum("...ij,...j->...i", factor, normal(key, shape + mean.shape[-1:], dtype))


def orthogonal(key, n: int, shape=(), dtype=float) -> Array:
    """Orthogonal n x n matrices, uniformly (Mezzadri, "How to generate random matrices from the classical compact
    groups", 2007): the Q of a normal matrix, with the signs of R's diagonal."""
    q, r = wnp.linalg.qr(normal(key, (*_shape(shape), n, n), dtype))
    d = wnp.diagonal(r, axis1=-2, axis2=-1)
    return q * (d / wnp.abs(d))[..., None, :]


# --- The gamma family. Distributed as JAX's, from the same keys, but not the same numbers. ----------------------------


def loggamma(key, a, shape=None, dtype=float) -> Array:
    """log of gamma, without underflow for small a."""
    dtype = _weft.dtype(dtype)
    a = wnp.asarray(a, dtype)
    shape = a.shape if shape is None else _shape(shape)
    a = wnp.broadcast_to(a, shape)
    # Marsaglia and Tsang, "A simple method for generating gamma variables", 2000: d v^3 for v = 1 + c x, accepted
    # against a normal number x and a uniform one; below 1, the draw for a + 1 times u^(1/a).
    from .control import while_loop

    boosted = a < 1
    d = wnp.where(boosted, a + 1, a) - 1 / 3
    c = 1 / wnp.sqrt(9 * d)
    key, last = split(key)

    def step(state):
        key, done, log_v = state
        key, k1, k2 = split(key, 3)
        x = normal(k1, shape, dtype)
        v = 1 + c * x
        cube = wnp.where(v > 0, v, 1) ** 3
        u = uniform(k2, shape, dtype, float(np.finfo(dtype).tiny))
        accepted = (v > 0) & (wnp.log(u) < 0.5 * x * x + d * (1 - cube + wnp.log(cube)))
        return key, done | accepted, wnp.where(~done & accepted, wnp.log(cube), log_v)

    start = (key, wnp.zeros(shape, bool), wnp.zeros(shape, dtype))
    log_v = while_loop(lambda state: ~wnp.all(state[1]), step, start)[2]
    boost = wnp.log(uniform(last, shape, dtype, float(np.finfo(dtype).tiny))) / wnp.where(boosted, a, 1)
    return wnp.log(d) + log_v + wnp.where(boosted, boost, 0)


def gamma(key, a, shape=None, dtype=float) -> Array:
    """Gamma with parameter a and scale 1. Has no derivative with respect to a."""
    return wnp.exp(loggamma(key, a, shape, dtype))


def beta(key, a, b, shape=None, dtype=float) -> Array:
    """Beta with parameters a and b: x / (x + y) of two gamma numbers."""
    shape = wnp.broadcast_shapes(wnp.shape(a), wnp.shape(b)) if shape is None else _shape(shape)
    k1, k2 = split(key)
    x, y = loggamma(k1, a, shape, dtype), loggamma(k2, b, shape, dtype)
    top = wnp.maximum(x, y)
    return wnp.exp(x - top) / (wnp.exp(x - top) + wnp.exp(y - top))


def dirichlet(key, alpha, shape=None, dtype=float) -> Array:
    """Dirichlet with parameters alpha along the last axis: gamma numbers divided by their sum."""
    from .nn import softmax

    alpha = wnp.asarray(alpha, dtype)
    shape = alpha.shape[:-1] if shape is None else _shape(shape)
    return softmax(loggamma(key, alpha, shape + alpha.shape[-1:], dtype))


def chisquare(key, df, shape=None, dtype=float) -> Array:
    """Chi-square with df degrees of freedom: twice a gamma number of df / 2."""
    return 2 * gamma(key, wnp.asarray(df, dtype) / 2, shape, dtype)


def t(key, df, shape=(), dtype=float) -> Array:
    """Student's t with df degrees of freedom."""
    k1, k2 = split(key)
    half = wnp.asarray(df, dtype) / 2
    return normal(k1, shape, dtype) * wnp.sqrt(half / gamma(k2, half, shape, dtype))


def ball(key, d: int, p=2, shape=(), dtype=float) -> Array:
    """Uniform in the unit ball of the p-norm in d dimensions (Barthe et al., "A probabilistic approach to the geometry
    of the l_p^n-ball", 2005)."""
    k1, k2, k3 = split(key, 3)
    shape = _shape(shape)
    g = gamma(k1, wnp.full((*shape, d), 1 / p), None, dtype)
    signs = rademacher(k2, (*shape, d), dtype)
    e = exponential(k3, shape, dtype)
    return signs * g ** (1 / p) / ((wnp.sum(g, -1) + e) ** (1 / p))[..., None]
