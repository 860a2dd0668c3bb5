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

from . import _docs, _weft
from . import numpy as wnp
from ._weft import Array
from .typing import DTypeLike, NestedLike, Shape

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
    """A key made from an integer.

    Args:
        seed: integer; 64 bits count.

    Returns: array without dimensions, of dtype key.

    Raises:
        TypeError: the seed is no integer.

    Example:
        >>> weft.random.key_data(weft.random.key(42))
        Array([ 0, 42], dtype=uint32)
    """
    return _weft.random_key(seed, True)


def PRNGKey(seed) -> Array:
    """A key made from an integer, as two words, in JAX's older form.

    Args:
        seed: integer; 64 bits count.

    Returns: array uint32[2].

    Raises:
        TypeError: the seed is no integer.

    Example:
        >>> weft.random.PRNGKey(42)
        Array([ 0, 42], dtype=uint32)
    """
    return _weft.random_key(seed, False)


def key_data(keys: NestedLike) -> Array:
    """The words of keys.

    Args:
        keys: array of keys, of dtype key, or of such words.

    Returns: array uint32[..., 2].

    Raises:
        TypeError: they are no keys.

    Example:
        >>> weft.random.key_data(weft.random.key(42))
        Array([ 0, 42], dtype=uint32)
    """
    return _weft.random_unwrap(keys)


def wrap_key_data(words) -> Array:
    """Keys made from words.

    Args:
        words: array uint32[..., 2].

    Returns: array of dtype key without the last dimension.

    Raises:
        TypeError: they are no such words.

    Example:
        >>> weft.random.wrap_key_data(wnp.array([0, 42], "uint32")).shape
        ()
    """
    return _weft.random_wrap(words)


def split(key: Array, num=2) -> Array:
    """New keys from a key, independent of each other and of it.

    Args:
        num: how many, an integer or a shape.

    Returns: array of keys [num] (for words uint32[num, 2]).

    Raises:
        TypeError: key is no key.

    Example:
        >>> k1, k2 = weft.random.split(weft.random.key(0))
        >>> weft.random.key_data(k1)
        Array([1797259609, 2579123966], dtype=uint32)
    """
    return _weft.random_split(key, _shape(num))


def fold_in(key: Array, data: NestedLike) -> Array:
    """A new key from a key and an integer.

    Args:
        data: integer of 32 bits, traced ones too.

    Returns: key.

    Raises:
        TypeError: key is no key.

    Example:
        >>> weft.random.key_data(weft.random.fold_in(weft.random.key(0), 7))
        Array([2716826189,  292468403], dtype=uint32)
    """
    return _weft.random_fold_in(key, data)


def bits(key: Array, shape: int | Shape = (), dtype: DTypeLike = "uint32") -> Array:
    """Random bits.

    Args:
        dtype: the dtype of the result: uint8, uint16, uint32 or uint64.

    Returns: array of that shape.

    Raises:
        TypeError: key is no key, or dtype is not unsigned.

    Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011: Threefry-2x32 of a counter.

    Example:
        >>> weft.random.bits(weft.random.key(0), (2,))
        Array([4070199207, 4202968722], dtype=uint32)
    """
    return _weft.random_bits(key, 8 * np.dtype(dtype).itemsize, _shape(shape))


def uniform(
    key: Array, shape: int | Shape = (), dtype: DTypeLike = float, minval: NestedLike = 0.0, maxval: NestedLike = 1.0
) -> Array:
    """Numbers uniform in [minval, maxval).

    Args:
        dtype: the dtype of the result; float: the default float dtype.
        minval: the lower end, a number or an array that broadcasts to the shape.
        maxval: the upper end, a number or an array that broadcasts to the shape.

    Returns: array of that shape.

    Raises:
        TypeError: dtype is no float dtype, or key is no key.

    Example:
        >>> weft.random.uniform(weft.random.key(0), (2,))
        Array([0.947667 , 0.9785799], dtype=float32)
    """
    unit = _weft.random_uniform01(key, _shape(shape), dtype)
    low, high = wnp.asarray(minval).astype(unit.dtype), wnp.asarray(maxval).astype(unit.dtype)
    return wnp.maximum(low, unit * (high - low) + low)


def normal(key: Array, shape: int | Shape = (), dtype: DTypeLike = float) -> Array:
    """Standard normal numbers, by the inverse of the error function.

    Args:
        dtype: the dtype of the result; float: the default float dtype. Of complex numbers both parts have variance 1/2.

    Returns: array of that shape.

    Raises:
        TypeError: dtype is neither float nor complex, or key is no key.

    Example:
        >>> weft.random.normal(weft.random.key(0), (2,))
        Array([1.622642 , 2.0252647], dtype=float32)
    """
    dtype = _weft.dtype(dtype)
    if _weft.dtype_kind(dtype) == "complex":
        part = "float64" if dtype == np.complex128 else "float32"
        k1, k2 = split(key)
        parts = normal(k1, shape, part), normal(k2, shape, part)
        return _weft.bind_elementwise("complex", parts, {}) / wnp.asarray(math.sqrt(2)).astype(part)
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype), dtype=dtype) if str(dtype) != "bfloat16" else -1 + 2**-8
    u = uniform(key, shape, dtype, low, 1.0)
    return _weft.bind_elementwise("erf_inv", (u,), {}) * wnp.asarray(math.sqrt(2)).astype(dtype)


def truncated_normal(
    key: Array, lower: NestedLike, upper: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = float
) -> Array:
    """Standard normal numbers limited to an interval, by the inverse of the error function.

    Args:
        lower: the lower end, a number or an array.
        upper: the upper end, a number or an array.
        shape: the shape of the result; None: that of lower and upper together.
        dtype: the dtype of the result; float: the default float dtype.

    Returns: array of that shape.

    Raises:
        TypeError: key is no key.

    Example:
        >>> weft.random.truncated_normal(weft.random.key(0), -1.0, 1.0, (2,))
        Array([0.8618594, 0.9412884], dtype=float32)
    """
    dtype = _weft.dtype(dtype)
    lower, upper = wnp.asarray(lower).astype(dtype), wnp.asarray(upper).astype(dtype)
    shape = wnp.broadcast_shapes(lower.shape, upper.shape) if shape is None else shape
    root = math.sqrt(2)
    a, b = (_weft.bind_elementwise("erf", (v / root,), {}) for v in (lower, upper))
    out = root * _weft.bind_elementwise("erf_inv", (uniform(key, shape, dtype, a, b),), {})
    inf = wnp.asarray(math.inf).astype(dtype)
    return wnp.clip(out, wnp.nextafter(lower, inf), wnp.nextafter(upper, -inf))


def randint(key, shape, minval, maxval, dtype=int) -> Array:
    """Whole numbers uniform in [minval, maxval).

    Args:
        minval: the smallest, an integer or an array of them.
        maxval: the one after the largest; where it is not above minval, minval is the result.
        dtype: the dtype of the result; int: the default integer dtype.

    Returns: array of that shape.

    Raises:
        TypeError: dtype is no integer dtype, or key is no key.

    Example:
        >>> weft.random.randint(weft.random.key(0), (3,), 0, 10)
        Array([9, 0, 2], dtype=int32)
    """
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
    """Slices in random order.

    Args:
        x: array whose slices are shuffled; or an integer n: 0 ... n-1.
        independent: whether every vector along the axis gets an order of its own.

    Returns: array of the shape and dtype of x.

    Raises:
        TypeError: key is no key.

    Example:
        >>> weft.random.permutation(weft.random.key(0), 4)
        Array([0, 1, 3, 2], dtype=int32)
    """
    if isinstance(x, int) or (np.ndim(x) == 0 and not isinstance(x, Array)):
        return _shuffled(key, wnp.arange(int(x)))
    x = wnp.asarray(x)
    axis = _weft.check_axis(axis, x.ndim, "permutation")
    if independent or x.ndim == 1:
        return _shuffled(key, x, axis)
    return wnp.take(x, _shuffled(key, wnp.arange(x.shape[axis])), axis)


def choice(
    key: Array, a: NestedLike, shape: int | Shape = (), replace: bool = True, p: NestedLike | None = None, axis: int = 0
) -> Array:
    """Random elements (or slices) of an array.

    Args:
        a: array to choose from; or an integer n: 0 ... n-1.
        replace: whether one may be chosen several times.
        p: vector of probabilities; None: all the same.

    Returns: array of that shape, followed by the other dimensions of a.

    Raises:
        ValueError: more are chosen than there are, without replacement.
        TypeError: key is no key.

    Source: without replacement and with p: the Gumbel-max trick (Kool et al., "Stochastic beams and where to find
        them", 2019).

    Example:
        >>> weft.random.choice(weft.random.key(0), wnp.array([10, 20, 30]), (2,))
        Array([20, 10], dtype=int32)
    """
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


def bernoulli(key: Array, p: NestedLike = 0.5, shape: int | Shape | None = None) -> Array:
    """True with a given probability.

    Args:
        p: the probability, a number or an array.
        shape: the shape of the result; None: that of p.

    Returns: array of booleans.

    Raises:
        TypeError: key is no key.

    Example:
        >>> weft.random.bernoulli(weft.random.key(0), 0.5, (3,))
        Array([False, False,  True], dtype=bool)
    """
    p = wnp.asarray(p)
    p = p if _weft.is_inexact(p.dtype) else p.astype(float)
    return uniform(key, p.shape if shape is None else shape, p.dtype) < p


def rademacher(key: Array, shape: int | Shape = (), dtype: DTypeLike = int) -> Array:
    """-1 or 1, each with probability 1/2.

    Args:
        dtype: the dtype of the result; int: the default integer dtype.

    Returns: array of that shape.

    Raises:
        TypeError: key is no key.

    Example:
        >>> weft.random.rademacher(weft.random.key(0), (3,))
        Array([-1, -1,  1], dtype=int32)
    """
    return (2 * bernoulli(key, 0.5, shape).astype(dtype) - 1).astype(dtype)


def exponential(key: Array, shape: int | Shape = (), dtype: DTypeLike = float) -> Array:
    """Exponential numbers of rate 1: -log(1 - u).

    Args:
        dtype: the dtype of the result; float: the default float dtype.

    Returns: array of that shape.

    Raises:
        TypeError: key is no key.

    Example:
        >>> weft.random.exponential(weft.random.key(0), (2,))
        Array([2.950128 , 3.8434246], dtype=float32)
    """
    return -wnp.log1p(-uniform(key, shape, dtype))


def gumbel(key: Array, shape: int | Shape = (), dtype: DTypeLike = float) -> Array:
    """Standard Gumbel numbers: -log(-log(u)).

    Args:
        dtype: the dtype of the result; float: the default float dtype.

    Returns: array of that shape.

    Raises:
        TypeError: key is no key.

    Example:
        >>> weft.random.gumbel(weft.random.key(0), (2,))
        Array([2.9233725, 3.8326175], dtype=float32)
    """
    dtype = _weft.dtype(dtype)
    return -wnp.log(-wnp.log(uniform(key, shape, dtype, float(np.finfo(dtype).tiny), 1.0)))


def categorical(key, logits, axis: int = -1, shape=None) -> Array:
    """Indices along an axis, with probabilities softmax(logits).

    Args:
        logits: array of logarithms of probabilities, up to a constant.
        shape: the shape of the result, which ends with that of the logits without the axis; None: that.

    Returns: array of int32.

    Raises:
        TypeError: key is no key.

    Source: the Gumbel-max trick (Maddison et al., "A* sampling", 2014).

    Example:
        >>> weft.random.categorical(weft.random.key(0), wnp.log(wnp.array([0.1, 0.9])), shape=(5,))
        Array([1, 1, 1, 1, 1], dtype=int32)
    """
    logits = wnp.asarray(logits)
    axis = _weft.check_axis(axis, logits.ndim, "categorical") - logits.ndim
    batch = tuple(n for d, n in enumerate(logits.shape) if d != axis + logits.ndim)
    shape = batch if shape is None else tuple(shape)
    extra = shape[: len(shape) - len(batch)]
    noise = gumbel(key, extra + logits.shape, logits.dtype)
    return wnp.argmax(noise + logits, axis=axis)


def laplace(key: Array, shape: int | Shape = (), dtype: DTypeLike = float) -> Array:
    """Standard Laplace numbers: sign(u) log(1 - |u|) for u uniform in (-1, 1).

    Args:
        dtype: the dtype of the result; float: the default float dtype.

    Returns: array of that shape.

    Raises:
        TypeError: key is no key.

    Example:
        >>> weft.random.laplace(weft.random.key(0), (2,))
        Array([-2.2569816, -3.1502788], dtype=float32)
    """
    dtype = _weft.dtype(dtype)
    u = uniform(key, shape, dtype, float(-1 + np.finfo(dtype).epsneg), 1.0)
    return wnp.sign(u) * wnp.log1p(-wnp.abs(u))


def logistic(key: Array, shape: int | Shape = (), dtype: DTypeLike = float) -> Array:
    """Standard logistic numbers: log(u / (1 - u)).

    Args:
        dtype: the dtype of the result; float: the default float dtype.

    Returns: array of that shape.

    Raises:
        TypeError: key is no key.

    Example:
        >>> weft.random.logistic(weft.random.key(0), (2,))
        Array([2.8963761, 3.8217716], dtype=float32)
    """
    dtype = _weft.dtype(dtype)
    u = uniform(key, shape, dtype, float(np.finfo(dtype).eps), 1.0)
    return wnp.log(u / (1 - u))


def cauchy(key: Array, shape: int | Shape = (), dtype: DTypeLike = float) -> Array:
    """Standard Cauchy numbers: tan(pi (u - 1/2)).

    Args:
        dtype: the dtype of the result; float: the default float dtype.

    Returns: array of that shape.

    Raises:
        TypeError: key is no key.

    Example:
        >>> weft.random.cauchy(weft.random.key(0), (2,))
        Array([ 6.0274944, 14.837895 ], dtype=float32)
    """
    dtype = _weft.dtype(dtype)
    u = uniform(key, shape, dtype, float(np.finfo(dtype).eps), 1.0)
    return wnp.tan(math.pi * (u - 0.5))


def clone(key: Array) -> Array:
    """The same key, for programs that mark its reuse.

    Returns: key.

    Example:
        >>> weft.random.clone(weft.random.PRNGKey(3))
        Array([0, 3], dtype=uint32)
    """
    return wnp.asarray(key)


# --- Made from others by exact formulas -------------------------------------------------------------------------------


def lognormal(key: Array, sigma: NestedLike = 1.0, shape: int | Shape | None = None, dtype: DTypeLike = float) -> Array:
    """Exponentials of normal numbers.

    Args:
        sigma: the standard deviation of the normal numbers, a number or an array.
        shape: the shape of the result; None: that of sigma.
        dtype: the dtype of the result; float: the default float dtype.

    Returns: array of that shape.

    Raises:
        TypeError: key is no key.

    Example:
        >>> weft.random.lognormal(weft.random.key(0), 0.5, (2,))
        Array([2.2508795, 2.752838 ], dtype=float32)
    """
    shape = wnp.shape(sigma) if shape is None else shape
    return wnp.exp(normal(key, shape, dtype) * wnp.asarray(sigma, dtype))


def pareto(key: Array, b: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = float) -> Array:
    """Pareto numbers >= 1: exp(E / b) of a standard exponential E.

    Args:
        b: the exponent, a number or an array.
        shape: the shape of the result; None: that of b.
        dtype: the dtype of the result; float: the default float dtype.

    Returns: array of that shape.

    Raises:
        TypeError: key is no key.

    Example:
        >>> weft.random.pareto(weft.random.key(0), 3.0, (2,))
        Array([2.6734667, 3.6007476], dtype=float32)
    """
    shape = wnp.shape(b) if shape is None else shape
    return wnp.exp(exponential(key, shape, dtype) / wnp.asarray(b, dtype))


def rayleigh(key: Array, scale: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = float) -> Array:
    """Rayleigh numbers: scale sqrt(-2 log(u)).

    Args:
        scale: the scale, a number or an array.
        shape: the shape of the result; None: that of scale.
        dtype: the dtype of the result; float: the default float dtype.

    Returns: array of that shape.

    Raises:
        TypeError: key is no key.

    Example:
        >>> weft.random.rayleigh(weft.random.key(0), 2.0, (2,))
        Array([0.65575665, 0.41620055], dtype=float32)
    """
    shape = wnp.shape(scale) if shape is None else shape
    return wnp.asarray(scale, dtype) * wnp.sqrt(-2 * wnp.log(uniform(key, shape, dtype)))


def weibull_min(key, scale, concentration, shape=(), dtype=float) -> Array:
    """Weibull numbers: scale (-log(1 - u)) ^ (1 / concentration).

    Args:
        scale: the scale, a number or an array that broadcasts to the shape.
        concentration: the shape parameter, a number or an array that broadcasts to the shape.
        dtype: the dtype of the result; float: the default float dtype.

    Returns: array of that shape.

    Raises:
        TypeError: key is no key.

    Example:
        >>> weft.random.weibull_min(weft.random.key(0), 1.0, 2.0, (2,))
        Array([1.7175937, 1.9604654], dtype=float32)
    """
    return wnp.power(-wnp.log1p(-uniform(key, shape, dtype)), 1.0 / concentration) * scale


def maxwell(key: Array, shape: int | Shape = (), dtype: DTypeLike = float) -> Array:
    """Maxwell numbers: the lengths of vectors of three standard normal numbers.

    Args:
        dtype: the dtype of the result; float: the default float dtype.

    Returns: array of that shape.

    Raises:
        TypeError: key is no key.

    Example:
        >>> weft.random.maxwell(weft.random.key(0), (2,))
        Array([2.6310966 , 0.99103296], dtype=float32)
    """
    return wnp.linalg.vector_norm(normal(key, (*_shape(shape), 3), dtype), axis=-1)


def geometric(key: Array, p: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = int) -> Array:
    """How many trials it takes to succeed once: 1, 2 ...

    Args:
        p: the probability of success, a number or an array.
        shape: the shape of the result; None: that of p.
        dtype: the dtype of the result; int: the default integer dtype.

    Returns: array of that shape.

    Raises:
        TypeError: key is no key.

    Source: floor(log(u) / log(1 - p)) + 1 (Devroye, "Non-uniform random variate generation", 1986, X.2).

    Example:
        >>> weft.random.geometric(weft.random.key(0), 0.3, (4,))
        Array([1, 1, 4, 3], dtype=int32)
    """
    p = wnp.asarray(p, float)
    u = uniform(key, p.shape if shape is None else shape, p.dtype)
    return (wnp.floor(wnp.log(u) / wnp.log1p(-p)) + 1).astype(dtype)


def triangular(
    key: Array,
    left: NestedLike,
    mode: NestedLike,
    right: NestedLike,
    shape: int | Shape | None = None,
    dtype: DTypeLike = float,
) -> Array:
    """Numbers whose density is a triangle, by the inverse of the distribution function.

    Args:
        left: the lower end, a number or an array.
        mode: where the peak is.
        right: the upper end.
        shape: the shape of the result; None: that of the three together.
        dtype: the dtype of the result; float: the default float dtype.

    Returns: array of that shape.

    Raises:
        TypeError: key is no key.

    Example:
        >>> weft.random.triangular(weft.random.key(0), 0.0, 1.0, 3.0, (2,))
        Array([2.4396448, 2.6415021], dtype=float32)
    """
    left, mode, right = (wnp.asarray(v, dtype) for v in (left, mode, right))
    if shape is None:
        shape = wnp.broadcast_shapes(left.shape, mode.shape, right.shape)
    u = uniform(key, shape, dtype)
    low = left + wnp.sqrt(u * (right - left) * (mode - left))
    high = right - wnp.sqrt((1 - u) * (right - left) * (right - mode))
    return wnp.where(u < (mode - left) / (right - left), low, high)


def multivariate_normal(
    key: Array,
    mean: NestedLike,
    cov: NestedLike,
    shape: int | Shape | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
) -> Array:
    """Normal vectors.

    Args:
        mean: array [..., n].
        cov: array [..., n, n]: the covariance matrix.
        shape: the shape of the result without n; None: that of the batches.
        dtype: the dtype of the result; None: that of the arguments together.
        method: how the matrix is factored: "cholesky", "eigh" or "svd".

    Returns: array shape + [n].

    Raises:
        ValueError: there is no such method.
        TypeError: key is no key.

    Example:
        >>> weft.random.multivariate_normal(weft.random.key(0), wnp.zeros(2), wnp.eye(2))
        Array([1.622642 , 2.0252647], dtype=float32)
    """
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


def orthogonal(key: Array, n: int, shape: int | Shape = (), dtype: DTypeLike = float) -> Array:
    """Random orthogonal matrices, uniform (by Haar's measure).

    Args:
        n: the number of rows and columns.
        shape: the shape of the batch.
        dtype: the dtype of the result; float: the default float dtype.

    Returns: array shape + [n, n].

    Raises:
        TypeError: key is no key.

    Source: Mezzadri, "How to generate random matrices from the classical compact groups", 2007.

    Example:
        >>> weft.random.orthogonal(weft.random.key(0), 3, (5,)).shape
        (5, 3, 3)
    """
    q, r = wnp.linalg.qr(normal(key, (*_shape(shape), n, n), dtype))
    d = wnp.diagonal(r, axis1=-2, axis2=-1)
    return q * (d / wnp.abs(d))[..., None, :]


# --- The gamma family. Distributed as JAX's, from the same keys, but not the same numbers. ----------------------------


def loggamma(key: Array, a: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = float) -> Array:
    """Logarithms of gamma numbers, without underflow for small a. Not JAX's numbers.

    Args:
        a: the shape parameter, > 0, a number or an array.
        shape: the shape of the result; None: that of a.
        dtype: the dtype of the result; float: the default float dtype.

    Returns: array of that shape. It has no derivative with respect to a.

    Raises:
        TypeError: key is no key.

    Source: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.

    Example:
        >>> weft.random.loggamma(weft.random.key(0), 0.001, (2,)).shape
        (2,)
    """
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


def gamma(key: Array, a: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = float) -> Array:
    """Gamma numbers of scale 1. Not JAX's numbers.

    Args:
        a: the shape parameter, > 0, a number or an array.
        shape: the shape of the result; None: that of a.
        dtype: the dtype of the result; float: the default float dtype.

    Returns: array of that shape. It has no derivative with respect to a.

    Raises:
        TypeError: key is no key.

    Source: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.

    Example:
        >>> weft.random.gamma(weft.random.key(0), 3.0, (2,)).shape
        (2,)
    """
    return wnp.exp(loggamma(key, a, shape, dtype))


def beta(key: Array, a: NestedLike, b: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = float) -> Array:
    """Beta numbers: x / (x + y) of two gamma numbers. Not JAX's numbers.

    Args:
        a: the first parameter, > 0, a number or an array.
        b: the second parameter, > 0, a number or an array.
        shape: the shape of the result; None: that of a and b together.
        dtype: the dtype of the result; float: the default float dtype.

    Returns: array of that shape.

    Raises:
        TypeError: key is no key.

    Source: Devroye, "Non-uniform random variate generation", 1986, IX.4.

    Example:
        >>> weft.random.beta(weft.random.key(0), 2.0, 3.0, (2,)).shape
        (2,)
    """
    shape = wnp.broadcast_shapes(wnp.shape(a), wnp.shape(b)) if shape is None else _shape(shape)
    k1, k2 = split(key)
    x, y = loggamma(k1, a, shape, dtype), loggamma(k2, b, shape, dtype)
    top = wnp.maximum(x, y)
    return wnp.exp(x - top) / (wnp.exp(x - top) + wnp.exp(y - top))


def dirichlet(key: Array, alpha: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = float) -> Array:
    """Vectors of numbers that add up to 1: gamma numbers divided by their sum. Not JAX's numbers.

    Args:
        alpha: array [..., n] of parameters > 0.
        shape: the shape of the result without n; None: that of alpha without it.
        dtype: the dtype of the result; float: the default float dtype.

    Returns: array shape + [n].

    Raises:
        TypeError: key is no key.

    Source: Devroye, "Non-uniform random variate generation", 1986, XI.4.

    Example:
        >>> weft.random.dirichlet(weft.random.key(0), wnp.ones(3), (2,)).shape
        (2, 3)
    """
    from .nn import softmax

    alpha = wnp.asarray(alpha, dtype)
    shape = alpha.shape[:-1] if shape is None else _shape(shape)
    return softmax(loggamma(key, alpha, shape + alpha.shape[-1:], dtype))


def chisquare(key: Array, df: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = float) -> Array:
    """Chi-square numbers: twice a gamma number of df / 2. Not JAX's numbers.

    Args:
        df: degrees of freedom, a number or an array.
        shape: the shape of the result; None: that of df.
        dtype: the dtype of the result; float: the default float dtype.

    Returns: array of that shape.

    Raises:
        TypeError: key is no key.

    Example:
        >>> weft.random.chisquare(weft.random.key(0), 4.0, (2,)).shape
        (2,)
    """
    return 2 * gamma(key, wnp.asarray(df, dtype) / 2, shape, dtype)


def t(key: Array, df: NestedLike, shape: int | Shape = (), dtype: DTypeLike = float) -> Array:
    """Student's t: a normal number divided by the root of a chi-square number over its degrees of freedom. Not JAX's
    numbers.

    Args:
        df: degrees of freedom, a number or an array.
        dtype: the dtype of the result; float: the default float dtype.

    Returns: array of that shape.

    Raises:
        TypeError: key is no key.

    Example:
        >>> weft.random.t(weft.random.key(0), 4.0, (2,)).shape
        (2,)
    """
    k1, k2 = split(key)
    half = wnp.asarray(df, dtype) / 2
    return normal(k1, shape, dtype) * wnp.sqrt(half / gamma(k2, half, shape, dtype))


def ball(key, d: int, p=2, shape=(), dtype=float) -> Array:
    """Points uniform in the unit ball of a p-norm. Not JAX's numbers.

    Args:
        d: the number of dimensions.
        p: which norm.
        shape: the shape of the result without d.
        dtype: the dtype of the result; float: the default float dtype.

    Returns: array shape + [d].

    Raises:
        TypeError: key is no key.

    Source: Barthe et al., "A probabilistic approach to the geometry of the l_p^n-ball", 2005.

    Example:
        >>> bool((wnp.linalg.norm(weft.random.ball(weft.random.key(0), 3, shape=(100,)), axis=-1) <= 1).all())
        True
    """
    k1, k2, k3 = split(key, 3)
    shape = _shape(shape)
    g = gamma(k1, wnp.full((*shape, d), 1 / p), None, dtype)
    signs = rademacher(k2, (*shape, d), dtype)
    e = exponential(k3, shape, dtype)
    return signs * g ** (1 / p) / ((wnp.sum(g, -1) + e) ** (1 / p))[..., None]


_docs.complete(globals())
