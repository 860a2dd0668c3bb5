"""Uniform and normal numbers, choices, and what takes one uniform number each."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _key_uses as _uses
from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import of_kind, type_error, value_error
from .._core.tree import jax_semantics
from .._weft import Array
from ..numpy._dtypes import same_bits
from ..typing import DTypeLike, NDArrayLike, NestedLike, Shape
from ._all_sizes import drawn_here, for_all_sizes
from ._keys import KEY_ERRORS, _limits, _parameter, _shape, bits, drawing, generators, split
from ._normal import erf_inv

__all__ = [
    "bernoulli",
    "categorical",
    "cauchy",
    "choice",
    "exponential",
    "gumbel",
    "laplace",
    "logistic",
    "normal",
    "permutation",
    "rademacher",
    "randint",
    "truncated_normal",
    "uniform",
]


def uniform(
    key: Array, shape: int | Shape = (), dtype: DTypeLike = float, minval: NestedLike = 0.0, maxval: NestedLike = 1.0
) -> Array:
    """Numbers uniform in [minval, maxval).

    Args:
        minval: the lower end, a number or an array that broadcasts to the shape.
        maxval: the upper end, a number or an array that broadcasts to the shape.

    Returns: array of that shape.

    Raises:
        TypeError: dtype is no float dtype, or key is no key.

    Example:
        >>> weft.random.uniform(weft.random.key(0), (2,))
        Array([0.947667 , 0.9785799], dtype=float32)
    """
    unit = _unit(key, shape, dtype)
    if type(minval) is float is type(maxval) and (minval, maxval) == (0.0, 1.0):
        return unit  # times 1 and plus 0, without a program for it
    low, high = (_weft.array(v, unit.dtype, False) for v in (minval, maxval))
    return _to_between()(unit, low, high)


def _unit(key: Array, shape: int | Shape, dtype: DTypeLike) -> Array:
    """Numbers uniform in [0, 1)."""
    other = drawing(key)
    if other is None:
        _uses.note("uniform", key)
        return drawn_here(_uniform01, key, _weft.dtype(dtype), _shape(shape))
    return generators().uniform01(other, _shape(shape), dtype)


def _uniform01(key: Array, dtype: DTypeLike, shape: Shape) -> Array:
    unit: Array = _weft.random_uniform01(key, shape, dtype)
    return unit


def _between(unit: Array, low: Array, high: Array | float) -> Array:
    """Compiled, so that product and sum are rounded together outside jit too (in 16 bits each for itself), which gives
    the numbers of jax.random."""
    if unit.dtype in ("float32", "float64"):
        return wnp.maximum(low, unit * (high - low) + low)
    wide = lambda x: x.astype("float32")
    product = (wide(unit) * wide(high - low)).astype(unit.dtype)
    return wnp.maximum(low, (wide(product) + wide(low)).astype(unit.dtype))


# With the roundings that are written here.
@functools.cache
def _to_between() -> Callable[..., Array]:
    return for_all_sizes(_between, "signed-zero")


@functools.cache
def _to_normal() -> Callable[..., Array]:
    return for_all_sizes(lambda unit, low: erf_inv(_between(unit, low, 1.0)) * math.sqrt(2), "signed-zero")


def normal(key: Array, shape: int | Shape = (), dtype: DTypeLike = float) -> Array:
    """Standard normal numbers, by the inverse of the error function.

    Args:
        dtype: the dtype of the result; float: the default float dtype. Of complex numbers both parts have variance 1/2.

    Returns: array of that shape.

    Raises:
        TypeError: dtype is neither float nor complex, or key is no key.

    Example:
        >>> weft.random.normal(weft.random.key(0), (2,))
        Array([1.6226422, 2.0252647], dtype=float32)
    """
    dtype = _weft.dtype(dtype)
    if _weft.dtype_kind(dtype) == "complex":
        part = "float64" if dtype == np.complex128 else "float32"
        k1, k2 = split(key)
        parts = normal(k1, shape, part), normal(k2, shape, part)
        return _weft.bind_elementwise("complex", parts, {}) / math.sqrt(2)
    if _weft.dtype_kind(dtype) != "float":
        raise type_error(f"random.normal: a float or complex dtype is needed, got {dtype}")
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype), dtype=dtype) if str(dtype) != "bfloat16" else -1 + 2**-8
    return _to_normal()(_unit(key, shape, dtype), _weft.array(low, dtype, False))


def truncated_normal(
    key: Array, lower: NestedLike, upper: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = float
) -> Array:
    """Standard normal numbers limited to an interval, by the inverse of the error function.

    Args:
        lower: the lower end, a number or an array.
        upper: the upper end, a number or an array.
        shape: the shape of the result; None: that of lower and upper together.

    Returns: array of that shape.

    Example:
        >>> weft.random.truncated_normal(weft.random.key(0), -1.0, 1.0, (2,))
        Array([0.86185926, 0.9412883 ], dtype=float32)
    """
    dtype = _weft.dtype(dtype)
    lower, upper = wnp.asarray(lower, dtype), wnp.asarray(upper, dtype)
    shape = wnp.broadcast_shapes(lower.shape, upper.shape) if shape is None else shape
    root = math.sqrt(2)
    a, b = (_weft.bind_elementwise("erf", (v / root,), {}) for v in (lower, upper))
    out = root * erf_inv(uniform(key, shape, dtype, a, b))
    inf = wnp.asarray(math.inf).astype(dtype)
    lower, upper = (_weft.bind_elementwise("stop_gradient", (v,), {}) for v in (lower, upper))
    return wnp.clip(out, wnp.nextafter(lower, inf), wnp.nextafter(upper, -inf))


def randint(key: Array, shape: Shape, minval: NestedLike, maxval: NestedLike, dtype: DTypeLike = int) -> Array:
    """Whole numbers uniform in [minval, maxval).

    Args:
        minval: the smallest, an integer or an array of them; below the dtype's smallest it is that.
        maxval: the one after the largest; where it is not above minval, minval is the result. Above the dtype's largest
            it is the one after that.
        dtype: the dtype of the result; int: the default integer dtype.

    Returns: array of that shape.

    Raises:
        TypeError: dtype is no integer dtype, or key is no key.

    Example:
        >>> weft.random.randint(weft.random.key(0), (3,), 0, 10)
        Array([9, 0, 2], dtype=int32)
    """
    integer = _weft.dtype(dtype)
    if _weft.dtype_kind(integer) not in ("signed", "unsigned"):
        raise type_error(f"random.randint: an integer dtype is needed, got {integer}")
    width = max(8 * integer.itemsize, 32)
    unsigned = f"uint{width}"
    # Narrow ones are drawn in 32 bits, in which the end of any of their ranges is a number.
    narrow = 8 * integer.itemsize < width
    limits, drawn = wnp.iinfo(integer), _weft.dtype("int32") if narrow else integer
    if integer.itemsize >= _weft.dtype(int).itemsize and jax_semantics():
        for name, value, most in (("minval", minval, limits.max), ("maxval", maxval, limits.max + 1)):
            if isinstance(value, int) and not limits.min <= value <= most:
                message = f"random.randint: {name} is {value}, which {integer} does not hold"
                raise of_kind(OverflowError, message)
    low, _ = _within(minval, limits.min, limits.max, drawn)
    high, beyond = _within(maxval, limits.min, limits.max + 1 if narrow else limits.max, drawn)
    k1, k2 = split(key)
    upper, lower = bits(k1, shape, unsigned), bits(k2, shape, unsigned)
    span = _weft.astype(high, unsigned) - _weft.astype(low, unsigned)
    if not narrow:  # the end itself is too large a number; a span of all numbers is 0 then
        span = span + _weft.array(beyond, None, False).astype(unsigned)
    span = wnp.where(high <= low, wnp.ones((), unsigned), span)
    # (upper * 2^width + lower) mod span, without wider numbers.
    factor = wnp.asarray(2 ** (width // 2), unsigned) % span
    factor = (factor * factor) % span
    offset = ((upper % span) * factor + lower % span) % span
    return (low + wnp.where(span == 0, lower, offset).astype(drawn)).astype(integer)


def _within(value, least: int, most: int, dtype) -> tuple[Array, Any]:
    """Whole numbers in a dtype, the nearest of [least, most], and whether they are beyond the latter."""
    if isinstance(value, int):
        return wnp.asarray(min(max(value, least), most), dtype), value > most
    value = wnp.asarray(value)
    if _weft.dtype_kind(value.dtype) not in ("signed", "unsigned"):
        value = value.astype(int)
    mine, beyond = wnp.iinfo(value.dtype), False
    if mine.max > most:
        beyond, value = value > most, wnp.minimum(value, most)
    if mine.min < least:
        value = wnp.maximum(value, least)
    return value.astype(dtype), beyond


def _shuffled(key, x, axis: int = 0) -> Array:
    rounds = math.ceil(3 * math.log(max(x.size, 1)) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, sub = split(key)
        x = _weft.bind("sort", [bits(sub, x.shape), x], {"dim": axis, "num_keys": 1})[1]
    return x


def permutation(key: Array, x: int | NDArrayLike, axis: int = 0, independent: bool = False) -> Array:
    """Slices in random order.

    Args:
        x: array whose slices are shuffled; or an integer n: 0 ... n-1.
        independent: whether every vector along the axis gets an order of its own.

    Returns: array of the shape and dtype of x.

    Raises:
        TypeError: x is a single number that is no integer.
        IndexError: there is no such axis.

    Example:
        >>> weft.random.permutation(weft.random.key(0), 4)
        Array([0, 1, 3, 2], dtype=int32)
    """
    x = wnp.asarray(x)
    if x.ndim == 0:
        if _weft.dtype_kind(x.dtype) not in ("signed", "unsigned"):
            raise type_error(f"random.permutation: x must be an integer or an array, got a single {x.dtype}")
        _weft.check_axis(axis, 1, "permutation")
        return _shuffled(key, wnp.arange(int(x)))
    axis = _weft.check_axis(axis, x.ndim, "permutation")
    if independent or x.ndim == 1:
        return _shuffled(key, x, axis)
    return wnp.take(x, _shuffled(key, wnp.arange(x.shape[axis])), axis)


def choice(
    key: Array,
    a: NestedLike,
    shape: int | Shape = (),
    replace: bool = True,
    p: NestedLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Random elements (or slices) of an array.

    Args:
        a: array to choose from; or an integer n: 0 ... n-1.
        replace: whether one may be chosen several times.
        p: vector of probabilities; None: all the same.

    Returns: array of that shape, followed by the other dimensions of a.

    Raises:
        ValueError: more are chosen than there are, without replacement.

    Source: without replacement and with p: the Gumbel-max trick (Kool et al., "Stochastic beams and where to find
        them", 2019).

    Example:
        >>> weft.random.choice(weft.random.key(0), wnp.array([10, 20, 30]), (2,))
        Array([20, 10], dtype=int32)
    """
    _fine(mode, "choice")
    a = wnp.asarray(a)
    axis = axis if a.ndim == 0 else _weft.check_axis(axis, a.ndim, "choice")
    n = int(a) if a.ndim == 0 else a.shape[axis]
    count = math.prod(_shape(shape))
    if n < 1 and count:
        raise value_error(f"choice: there is nothing to choose from, got {n} elements")
    if p is not None and wnp.shape(p) != (n,):
        raise value_error(f"choice: p has shape {wnp.shape(p)}; expected one probability for each of {n} elements")
    if not replace and count > n:
        raise value_error(f"choice: {count} different elements of {n}")
    p = None if p is None else _parameter(p)
    if p is None:
        index = randint(key, _shape(shape), 0, n) if replace else permutation(key, n)[:count].reshape(_shape(shape))
    elif replace:
        total = wnp.cumsum(p)
        index = wnp.searchsorted(total, total[-1] * (1 - uniform(key, shape, total.dtype)))
    else:
        scores = -gumbel(key, (n,), p.dtype, mode) - wnp.log(p)
        index = wnp.argsort(scores)[:count].reshape(_shape(shape))
    return index if a.ndim == 0 else wnp.take(a, index, axis)


def _fine(mode: str | None, name: str) -> bool:
    if mode not in (None, "low", "high"):
        raise value_error(f"random.{name}: mode must be 'low' or 'high', got {mode!r}")
    return mode == "high"


def bernoulli(key: Array, p: NestedLike = 0.5, shape: int | Shape | None = None, mode: str = "low") -> Array:
    """True with a given probability.

    Args:
        p: the probability, a number or an array.
        shape: the shape of the result; None: that of p.
        mode: "low", or "high": twice the random bits, so that probabilities far below the dtype's eps come out right.

    Returns: array of booleans.

    Example:
        >>> weft.random.bernoulli(weft.random.key(0), 0.5, (3,))
        Array([False, False,  True], dtype=bool)
    """
    p = _parameter(p)
    shape = p.shape if shape is None else _shape(shape)
    if _fine(mode, "bernoulli"):
        coarse, rest = uniform(key, (2, *shape), p.dtype)
        return rest * _limits(p.dtype)["eps"] < p - coarse
    return uniform(key, shape, p.dtype) < p


def rademacher(key: Array, shape: int | Shape = (), dtype: DTypeLike = int) -> Array:
    """-1 or 1, each with probability 1/2.

    Args:
        dtype: the dtype of the result; int: the default integer dtype.

    Returns: array of that shape.

    Example:
        >>> weft.random.rademacher(weft.random.key(0), (3,))
        Array([-1, -1,  1], dtype=int32)
    """
    return (2 * bernoulli(key, 0.5, shape).astype(dtype) - 1).astype(dtype)


def exponential(key: Array, shape: int | Shape = (), dtype: DTypeLike = float) -> Array:
    """Exponential numbers of rate 1: -log(1 - u).

    Returns: array of that shape.

    Example:
        >>> weft.random.exponential(weft.random.key(0), (2,))
        Array([2.950128 , 3.8434246], dtype=float32)
    """
    return -wnp.log1p(-uniform(key, shape, dtype))


def gumbel(key: Array, shape: int | Shape = (), dtype: DTypeLike = float, mode: str | None = None) -> Array:
    """Standard Gumbel numbers: -log(-log(u)).

    Args:
        mode: "low" (as None); "high": twice the random bits, so that large numbers come out as often as they should;
            "highest": the same, with every float32 between 0 and 1 as u.

    Returns: array of that shape.

    Example:
        >>> weft.random.gumbel(weft.random.key(0), (2,))
        Array([2.9233725, 3.8326175], dtype=float32)
    """
    dtype = _weft.dtype(dtype)
    if mode == "highest":
        if dtype == np.float32:
            return _finest_gumbel(key, _shape(shape))
        mode = "high"
    if _fine(mode, "gumbel"):
        # 1 - u is what is finely spaced near 0: that is where large numbers come from.
        coarse, rest = uniform(key, (2, *_shape(shape)), dtype)
        limits = _limits(dtype)
        fine = wnp.where(coarse >= 0.5, coarse, coarse + rest * limits["eps"] + limits["tiny"])
        return -wnp.log(-wnp.log1p(-fine))
    return -wnp.log(-wnp.log(uniform(key, shape, dtype, _limits(dtype)["tiny"], 1.0)))


def _finest_gumbel(key: Array, shape: tuple[int, ...]) -> Array:
    """Of 1 - v for 64 random bits v / 2^64, rounded down to a float32; where v is the larger, by that."""
    words = bits(key, (2, *shape), "uint32")
    high, low = words[0], words[1]
    small = high < np.uint32(1 << 31)
    # 2^64 - u, where that is the smaller one.
    opposite_low = ~low + np.uint32(1)
    opposite_high = ~high + (low == 0).astype("uint32")
    high, low = wnp.where(small, high, opposite_high), wnp.where(small, low, opposite_low)
    zeros_high, zeros_low = _weft.bind_elementwise("clz", (high,), {}), _weft.bind_elementwise("clz", (low,), {})
    none = zeros_high == 32
    moved = lambda x, n, by: _weft.bind_elementwise(by, (x, n), {})
    rest = wnp.where(
        none,
        moved(low, zeros_low, "shift_left"),
        moved(low, np.uint32(32) - zeros_high, "shift_right_logical"),
    )
    mantissa = ((moved(high, zeros_high, "shift_left") | rest) >> np.uint32(8)) & np.uint32((1 << 23) - 1)
    exponent = np.uint32(126) - wnp.where(none, np.uint32(32) + zeros_low, zeros_high)
    u = same_bits((exponent << np.uint32(23)) & np.uint32((1 << 30) - (1 << 22)) | mantissa, "float32")
    return -wnp.log(-wnp.where(small, wnp.log1p(-u), wnp.log(u)))


def categorical(
    key: Array,
    logits: NDArrayLike,
    axis: int = -1,
    shape: Shape | None = None,
    replace: bool = True,
    mode: str | None = None,
) -> Array:
    """Indices along an axis, with probabilities softmax(logits).

    Args:
        logits: array of logarithms of probabilities, up to a constant.
        shape: the shape of the result, to which that of the logits without the axis broadcasts; None: that.
        replace: whether one index may be drawn several times.

    Returns: array of int32.

    Raises:
        ValueError: the logits do not broadcast to the shape, or more indices are drawn than there are, without
            replacement.

    Source: the Gumbel-max trick (Maddison et al., "A* sampling", 2014); without replacement the largest several
        (Kool et al., "Stochastic beams and where to find them", 2019).

    Example:
        >>> weft.random.categorical(weft.random.key(0), wnp.log(wnp.array([0.1, 0.9])), shape=(5,))
        Array([1, 1, 1, 1, 1], dtype=int32)
    """
    logits = _parameter(logits)
    axis = _weft.check_axis(axis, logits.ndim, "categorical") - logits.ndim
    batch = tuple(n for d, n in enumerate(logits.shape) if d != axis + logits.ndim)
    shape = batch if shape is None else _shape(shape)
    extra, rest = shape[: len(shape) - len(batch)], shape[len(shape) - len(batch) :]
    if len(shape) < len(batch) or any(n not in (1, m) for n, m in zip(batch, rest)):
        raise value_error(f"categorical: logits of shape {batch} without axis {axis} do not broadcast to {shape}")
    if not replace:
        count = math.prod(int(n) for n in extra)
        if count > logits.shape[axis]:
            raise value_error(f"categorical: {count} different indices of {logits.shape[axis]}")
        scores = wnp.moveaxis(logits + gumbel(key, logits.shape, logits.dtype, mode), axis, -1)
        places = wnp.moveaxis(_weft.bind("top_k", [scores], {"k": count})[1], -1, 0)
        return wnp.broadcast_to(places.reshape(extra + batch), shape)
    place = axis + logits.ndim
    noise = gumbel(key, extra + rest[:place] + (logits.shape[axis],) + rest[place:], logits.dtype, mode)
    return wnp.argmax(noise + logits, axis=axis)


def laplace(key: Array, shape: int | Shape = (), dtype: DTypeLike = float) -> Array:
    """Standard Laplace numbers: sign(u) log(1 - |u|) for u uniform in (-1, 1).

    Returns: array of that shape.

    Example:
        >>> weft.random.laplace(weft.random.key(0), (2,))
        Array([-2.2569816, -3.1502788], dtype=float32)
    """
    dtype = _weft.dtype(dtype)
    u = uniform(key, shape, dtype, -1 + _limits(dtype)["eps"] / 2, 1.0)
    return wnp.sign(u) * wnp.log1p(-wnp.abs(u))


def logistic(key: Array, shape: int | Shape = (), dtype: DTypeLike = float) -> Array:
    """Standard logistic numbers: log(u) - log(1 - u).

    Returns: array of that shape.

    Example:
        >>> weft.random.logistic(weft.random.key(0), (2,))
        Array([2.8963761, 3.8217716], dtype=float32)
    """
    dtype = _weft.dtype(dtype)
    u = uniform(key, shape, dtype, _limits(dtype)["tiny"], 1.0)
    return wnp.log(u) - wnp.log1p(-u)


def cauchy(key: Array, shape: int | Shape = (), dtype: DTypeLike = float) -> Array:
    """Standard Cauchy numbers: tan(pi (u - 1/2)).

    Returns: array of that shape.

    Example:
        >>> weft.random.cauchy(weft.random.key(0), (2,))
        Array([ 6.0274944, 14.837895 ], dtype=float32)
    """
    dtype = _weft.dtype(dtype)
    u = uniform(key, shape, dtype, _limits(dtype)["eps"], 1.0)
    return wnp.tan(math.pi * (u - 0.5))


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "mode": '"low", "high" (twice the random bits: numbers up to 32 instead of 16 in float32), or None: "low".',
    "dtype": "the dtype of the result; float: the default float dtype.",
}

_docs.complete(globals(), _PARAMETERS, errors=KEY_ERRORS)
