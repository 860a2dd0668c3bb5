"""The gamma family. Equal keys give the numbers of jax.random, but for roundings."""

from __future__ import annotations

import functools
import math

import numpy as np

from .. import _key_uses as _uses
from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._weft import Array
from ..batching import vmap
from ..control import while_loop
from ..custom import custom_jvp
from ..typing import DTypeLike, NestedLike, Shape
from ._basic import exponential, normal, rademacher, uniform
from ._keys import KEY_ERRORS, _shape, _typed, chosen, split

__all__ = [
    "ball",
    "beta",
    "chisquare",
    "dirichlet",
    "f",
    "gamma",
    "generalized_normal",
    "loggamma",
    "t",
]


def loggamma(key: Array, a: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = float) -> Array:
    """Logarithms of gamma numbers, without underflow for small a.

    Args:
        shape: the shape of the result; None: that of a.

    Returns: array of that shape, -inf where a is 0, NaN where it is negative or NaN, inf where it is inf. Its
        derivative with respect to a is that of the quantile that the number is: gradients of expectations are without
        bias.

    Source: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; for derivatives Figurnov,
        Mohamed and Mnih, "Implicit reparameterization gradients", 2018.

    Example:
        >>> weft.random.loggamma(weft.random.key(0), 0.001, (2,)).shape
        (2,)
    """
    if _uses.here.marks:
        return _marked(key, a, shape, dtype)
    with _uses.one_use("gamma", key):
        return _loggamma(key, a, shape, dtype)


def _loggamma(key: Array, a: NestedLike, shape: int | Shape | None, dtype: DTypeLike) -> Array:
    kept, d, v, ends, last = _drawn(key, a, shape, dtype)
    # Of the logarithm of a uniform number in [0, 1), which may be 0, the one without any is taken.
    log_u = -_exponentials(last, kept.dtype)
    boost = wnp.where((kept < 1) & (log_u != 0), log_u / wnp.minimum(kept, 1), 0)
    return ends(_moving_logs(wnp.log(_still(d)) + wnp.log(v) + boost, v, kept, d), -math.inf)


def _marked(key: Array, a: NestedLike, shape: int | Shape | None, dtype: DTypeLike) -> Array:
    """What stands for the numbers in a program with marks, where the key is used once and what is done with the keys
    that are made of it is nobody's affair."""
    _uses.note("gamma", key)
    kind = _weft.dtype(dtype)
    given = wnp.asarray(a, kind)
    return wnp.broadcast_to(given, given.shape if shape is None else _shape(shape))


def _exponentials(keys: Array, dtype) -> Array:
    """One standard exponential number of each key."""
    return vmap(lambda key: exponential(key, (), dtype))(keys.reshape(-1)).reshape(keys.shape)


def _drawn(key, a, shape, dtype):
    """What gamma and loggamma share: the number is d v for a >= 1, and below it is boosted: d v u^(1/a) for d of a + 1.

    Returns (a, or 1 where it is no parameter, d, v, a function that puts in what there is to say of parameters at the
    ends, a key for each number's u)."""
    dtype = _weft.dtype(dtype)
    given = wnp.asarray(a, dtype)
    shape = given.shape if shape is None else _shape(shape)
    given = wnp.broadcast_to(given, shape)
    drawn = (given > 0) & (given < math.inf)  # of others no candidate would ever be accepted
    kept = wnp.where(drawn, given, 1)
    above = wnp.where(kept < 1, kept + 1, kept)
    # Each number has a key of its own, as in JAX.
    keys = split(_typed(key), math.prod(shape))
    pair = vmap(split)(keys) if keys.size else split(_typed(key), (0, 2))
    v = _of_draws(pair[:, 0], _still(above).reshape(-1), drawn.reshape(-1)).reshape(shape)

    def ends(numbers, at_0):
        limit = wnp.where(given == 0, at_0, wnp.where(given > 0, math.inf, math.nan))
        return wnp.where(drawn, numbers, limit)

    return kept, above - 1 / 3, v, ends, pair[:, 1].reshape(shape)


def _still(x: Array) -> Array:
    out: Array = _weft.bind_elementwise("stop_gradient", (x,), {})
    return out


def _of_draws(keys: Array, a: Array, drawn: Array) -> Array:
    """v of gamma numbers (a - 1/3) v for a >= 1, where `drawn`."""
    # Marsaglia and Tsang: v = (1 + c x)^3 for a normal number x, accepted against a uniform one. A key gives the
    # uniform number and a key of normal ones, of which the first with v > 0 is tried.
    d = a - 1 / 3
    c = (1 / 3) / wnp.sqrt(d)

    def one(key, x_key, u_key, fresh, d, c):
        whole = split(key, 3)
        key, x_key, u_key = (chosen(fresh, whole[i], k) for i, k in enumerate((key, x_key, u_key)))
        x_key, sub = split(x_key)
        x = normal(sub, (), a.dtype)
        v = 1 + x * c
        u = uniform(u_key, (), a.dtype)
        fresh, square, cube = v > 0, x * x, v * v * v
        safe = wnp.where(fresh, cube, 1)
        refused = (u >= 1 - 0.0331 * (square * square)) & (
            wnp.log(u) >= square * 0.5 + d * ((1 - safe) + wnp.log(safe))
        )
        return key, x_key, u_key, fresh, fresh & ~refused, cube

    def step(state):
        key, x_key, u_key, fresh, done, v = state
        key, x_key, u_key, fresh, accepted, cube = vmap(one)(key, x_key, u_key, fresh, d, c)
        return key, x_key, u_key, fresh, done | accepted, wnp.where(~done & accepted, cube, v)

    start = (keys, keys, keys, wnp.ones(a.shape, bool), ~drawn, wnp.ones(a.shape, a.dtype))
    return while_loop(lambda state: ~wnp.all(state[-2]), step, start)[-1]


def _moving_logs(logs: Array, v: Array, a: Array, d: Array) -> Array:
    """The logarithms of gamma numbers, which move with a as the quantiles that they are. Which candidate is accepted
    depends on a, so the derivative of the steps, with the candidate held fixed, is not that of the distribution."""
    # The logarithm of v for large a, whose digits the number itself has not.
    boosted = a < 1
    place = _quantile(wnp.where(boosted, logs, wnp.log(v)), a)
    return _replaced(wnp.where(boosted, place, wnp.log(d) + place), logs)


@functools.partial(custom_jvp, elementwise=True)
def _quantile(place: Array, a: Array) -> Array:
    """Where the number lies: log x for a < 1, log v of x = (a - 1/3) v for others."""
    return place


@_quantile.defjvp
def _moved_quantile(primals, tangents):
    (place, a), (_, da) = primals, tangents
    place = _quantile(place, a)
    wide = wnp.promote_types(a.dtype, "float32")
    at, b = place.astype(wide), a.astype(wide)
    boosted = b < 1
    small, large = wnp.where(boosted, b, 0.5), wnp.where(boosted, 1, b)
    of_large = _slope_of_quantile(large, wnp.where(boosted, 0, at)) - 1 / (large - 1 / 3)
    slope = wnp.where(boosted, _slope_below_1(small, wnp.where(boosted, at, 0)), of_large)
    return place, da * slope.astype(a.dtype)


@functools.partial(custom_jvp, elementwise=True)
def _replaced(moving: Array, value: Array) -> Array:
    """`value`, which moves as its equal does."""
    return value


_replaced.defjvp(lambda primals, tangents: (_replaced(*primals), tangents[0]))


@functools.partial(custom_jvp, elementwise=True)
def _exp_is(log_x: Array, x: Array) -> Array:
    """x, which is exp(log_x), computed elsewhere."""
    return x


@_exp_is.defjvp
def _moved_exp(primals, tangents):
    x = _exp_is(*primals)
    return x, tangents[0] * x


def _slope_of_quantile(a: Array, log_v: Array) -> Array:
    """The derivative of log x with respect to a >= 1 for x = (a - 1/3) v, a quantile of the gamma distribution held at
    its probability P(a, x). Accurate to 1e-12 in f64 and 2e-6 in f32, relative."""
    # It is -dP/da / (x dP/dx). With t = x e^s that is the integral of (log x - psi(a) + s) exp(a s - x (e^s - 1)) over
    # s > 0, and also of (psi(a) - log x + s) exp(-a s - x (e^-s - 1)). The one is taken whose terms are all positive.
    # Both fall faster than an exponential, so few points of Gauss and Legendre suffice, up to where they are e^-end.
    x = (a - 1 / 3) * wnp.exp(log_v)
    below = x / (a - 1 / 3) / 3 - a * wnp.expm1(log_v)  # a - x
    i = 1 / a
    j = i * i
    series = wnp.log1p(-i / 3) + i / 2 + j * (1 / 12 - j * (1 / 120 - j * (1 / 252 - j * (1 / 240 - j / 132))))
    near = wnp.minimum(a, 10)
    gap = log_v + wnp.where(
        a < 10, wnp.log(near - 1 / 3) - _weft.bind_elementwise("digamma", (near,), {}), series
    )  # log x - psi(a)
    return _integral(a, x, below, gap)


def _slope_below_1(a: Array, log_x: Array) -> Array:
    """The same for a < 1 of x itself; the largest number where it would overflow: 0 times infinity is NaN where another
    function has forgotten a number this small. Accurate to 1e-12 in f64 and 5e-6 in f32, relative."""
    wide, most = a.dtype == wnp.float64, float(wnp.finfo(a.dtype).max)
    log_x = wnp.maximum(log_x, -most)
    near = log_x < -0.7
    # Near 0 by the series P(a, x) = x^a / gamma(a) (1/a + sum of (-x)^n / (n! (a + n))), A & S 6.5.29.
    x = wnp.exp(wnp.where(near, log_x, -1))
    value, moved, power = wnp.zeros_like(x), wnp.zeros_like(x), wnp.ones_like(x)
    for n in range(1, 17 if wide else 10):
        power = power * (-x / n)
        value, moved = value + power / (a + n), moved + power / ((a + n) * (a + n))
    gap = wnp.where(near, log_x, -1) - _weft.bind_elementwise("digamma", (a + 1,), {})  # log x - psi(a) - 1 / a
    series = -wnp.exp(x) * ((gap + value) / a + gap * value - moved)
    far = wnp.where(near, 0, log_x)
    z = wnp.exp(far)
    integral = _integral(a, z, a - z, far - _weft.bind_elementwise("digamma", (a,), {}))
    return wnp.minimum(wnp.where(near, series, integral), most)


def _integral(a: Array, x: Array, below: Array, gap: Array) -> Array:
    """The integral of these terms, for below = a - x and gap = log x - psi(a)."""
    wide = a.dtype == wnp.float64
    end, points = (38.0, 32) if wide else (20.0, 16)
    upper = gap >= 0
    fixed_x, fixed_a, fixed_below = _still(x), _still(a), _still(below)
    # Bounds of where the exponent is -end: what is quadratic in it is enough for large a, the exponential for small.
    up = 2 * end / (wnp.sqrt(fixed_below**2 + 2 * end * fixed_x) - fixed_below)
    for _ in range(2):
        up = wnp.log1p((end + fixed_a * up) / fixed_x)
    down = (end + fixed_x) / fixed_a
    short = 2 * end / (wnp.sqrt(fixed_below**2 + end * fixed_x) + fixed_below)
    down = wnp.where(down <= 1.5, wnp.minimum(down, short), down)
    for _ in range(3):
        fall = fixed_a - fixed_x * wnp.exp(-down)
        down = down - (fixed_a * down + fixed_x * wnp.expm1(-down) - end) / wnp.maximum(fall, fixed_a * 1e-3)
    length = wnp.where(upper, up, down)

    nodes, weights = _gauss_legendre(points)
    sign = wnp.where(upper, 1, -1)[..., None].astype(a.dtype)
    s = length[..., None] * wnp.asarray(nodes, a.dtype)
    exponent = below[..., None] * sign * s - x[..., None] * _without_linear(sign * s, 14 if wide else 8)
    terms = wnp.asarray(weights, a.dtype) * (sign * gap[..., None] + s) * wnp.exp(exponent)
    return length * wnp.sum(terms, -1)


def _without_linear(s: Array, order: int) -> Array:
    """e^s - 1 - s, of small s without cancellation."""
    small = wnp.clip(s, -0.5, 0.5)
    series = wnp.ones_like(s)
    for k in range(order, 2, -1):
        series = 1 + small / k * series
    return wnp.where(wnp.abs(s) < 0.5, small * small / 2 * series, wnp.expm1(s) - s)


@functools.cache  # NumPy's polynomials take as long to load as everything else here
def _gauss_legendre(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights on (0, 1)."""
    points, weights = np.polynomial.legendre.leggauss(count)
    return (points + 1) / 2, weights / 2


def gamma(key: Array, a: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = float) -> Array:
    """Gamma numbers of scale 1.

    Args:
        shape: the shape of the result; None: that of a.

    Returns: array of that shape, 0 where a is 0, NaN where it is negative or NaN, inf where it is inf. Its
        derivative with respect to a is as of loggamma.

    Source: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.

    Example:
        >>> weft.random.gamma(weft.random.key(0), 3.0, (2,)).shape
        (2,)
    """
    if _uses.here.marks:
        return _marked(key, a, shape, dtype)
    with _uses.one_use("gamma", key):
        return _gamma(key, a, shape, dtype)


def _gamma(key: Array, a: NestedLike, shape: int | Shape | None, dtype: DTypeLike) -> Array:
    kept, d, v, ends, last = _drawn(key, a, shape, dtype)
    log_boost = wnp.where(kept < 1, wnp.log(1 - _uniforms(last, kept.dtype)) / wnp.minimum(kept, 1), 0)
    logs = _moving_logs(wnp.log(_still(d)) + wnp.log(v) + log_boost, v, kept, d)
    return ends(_exp_is(logs, d * v * wnp.where(kept < 1, wnp.exp(log_boost), 1)), 0)


def _uniforms(keys: Array, dtype) -> Array:
    """One number uniform in [0, 1) of each key."""
    return vmap(lambda key: uniform(key, (), dtype))(keys.reshape(-1)).reshape(keys.shape)


def beta(key: Array, a: NestedLike, b: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = float) -> Array:
    """Beta numbers: x / (x + y) of two gamma numbers.

    Args:
        a: the first parameter, > 0, a number or an array.
        b: the second parameter, > 0, a number or an array.
        shape: the shape of the result; None: that of a and b together.

    Returns: array of that shape.

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
    """Vectors of numbers that add up to 1: gamma numbers divided by their sum.

    Args:
        alpha: array [..., n] of parameters > 0.
        shape: the shape of the result without n; None: that of alpha without it.

    Returns: array shape + [n].

    Source: Devroye, "Non-uniform random variate generation", 1986, XI.4.

    Example:
        >>> weft.random.dirichlet(weft.random.key(0), wnp.ones(3), (2,)).shape
        (2, 3)
    """
    alpha = wnp.asarray(alpha, dtype)
    shape = alpha.shape[:-1] if shape is None else _shape(shape)
    logs = loggamma(key, alpha, shape + alpha.shape[-1:], dtype)
    # Of the largest each: tiny parameters give numbers that exp() would make 0.
    top = wnp.max(logs, axis=-1, keepdims=True, initial=-math.inf if 0 in logs.shape else None)
    parts = wnp.exp(logs - _weft.bind_elementwise("stop_gradient", (top,), {}))
    return parts / wnp.sum(parts, axis=-1, keepdims=True)


def chisquare(key: Array, df: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = float) -> Array:
    """Chi-square numbers: twice a gamma number of df / 2.

    Args:
        shape: the shape of the result; None: that of df.

    Returns: array of that shape.

    Example:
        >>> weft.random.chisquare(weft.random.key(0), 4.0, (2,)).shape
        (2,)
    """
    return wnp.exp(loggamma(key, wnp.asarray(df, dtype) / 2, shape, dtype)) * 2


def t(key: Array, df: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = float) -> Array:
    """Student's t: a normal number divided by the root of a chi-square number over its degrees of freedom.

    Returns: array of that shape.

    Example:
        >>> weft.random.t(weft.random.key(0), 4.0, (2,)).shape
        (2,)
    """
    k1, k2 = split(key)
    half = wnp.asarray(df, dtype) / 2
    shape = half.shape if shape is None else shape
    return normal(k1, shape, dtype) * wnp.sqrt(half / gamma(k2, half, shape, dtype))


def ball(key: Array, d: int, p: Array | float = 2, shape: Shape = (), dtype: DTypeLike = float) -> Array:
    """Points uniform in the unit ball of a p-norm.

    Args:
        d: the number of dimensions.
        p: which norm.
        shape: the shape of the result without d.

    Returns: array shape + [d].

    Source: Barthe et al., "A probabilistic approach to the geometry of the l_p^n-ball", 2005.

    Example:
        >>> bool((wnp.linalg.norm(weft.random.ball(weft.random.key(0), 3, shape=(100,)), axis=-1) <= 1).all())
        True
    """
    k1, k2 = split(key)
    shape = _shape(shape)
    p = wnp.asarray(p, dtype)
    g = generalized_normal(k1, p, (*shape, d), dtype)
    e = exponential(k2, shape, dtype)
    return g / ((wnp.sum(wnp.abs(g) ** p, -1) + e) ** (1 / p))[..., None]


def f(
    key: Array, dfnum: NestedLike, dfden: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = float
) -> Array:
    """F-distributed numbers: the quotient of two chi-square numbers over their degrees of freedom.

    Args:
        dfnum: degrees of freedom above, a number or an array.
        dfden: degrees of freedom below, a number or an array.
        shape: the shape of the result; None: that of both together.

    Returns: array of that shape.

    Example:
        >>> weft.random.f(weft.random.key(0), 3.0, 5.0, (2,)).shape
        (2,)
    """
    dfnum, dfden = wnp.asarray(dfnum, dtype), wnp.asarray(dfden, dtype)
    shape = wnp.broadcast_shapes(dfnum.shape, dfden.shape) if shape is None else _shape(shape)
    below, above = split(key)
    return chisquare(above, dfnum, shape, dtype) / dfnum / (chisquare(below, dfden, shape, dtype) / dfden)


def generalized_normal(key: Array, p: NestedLike, shape: int | Shape = (), dtype: DTypeLike = float) -> Array:
    """Numbers whose density is proportional to exp(-|x|^p).

    Args:
        p: the exponent, > 0, a number or an array that broadcasts to the shape.

    Returns: array of that shape.

    Source: |x|^p is a gamma number of 1 / p (Nadarajah, "A generalized normal distribution", 2005).

    Example:
        >>> weft.random.generalized_normal(weft.random.key(0), 2.0, (2,)).shape
        (2,)
    """
    k1, k2 = split(key)
    p = wnp.asarray(p, dtype)
    return rademacher(k2, shape, dtype) * gamma(k1, 1 / p, shape, dtype) ** (1 / p)


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "a": "the shape parameter, > 0, a number or an array.",
    "df": "degrees of freedom, a number or an array.",
    "dtype": "the dtype of the result; float: the default float dtype.",
}

_docs.complete(globals(), _PARAMETERS, errors=KEY_ERRORS)
