"""Sums, means, extrema, cumulative sums."""

from __future__ import annotations

import builtins
import functools
import operator

from .. import _weft
from .._weft import Array

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "average",
    "bincount",
    "corrcoef",
    "count_nonzero",
    "cov",
    "cumprod",
    "cumsum",
    "cumulative_sum",
    "cumulative_prod",
    "diff",
    "ediff1d",
    "gradient",
    "max",
    "mean",
    "median",
    "min",
    "nanargmax",
    "nanargmin",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanstd",
    "nansum",
    "nanvar",
    "prod",
    "ptp",
    "quantile",
    "percentile",
    "std",
    "sum",
    "trapezoid",
    "var",
    "nanprod",
    "interp",
    "histogram",
]


def _array(a, dtype=None) -> Array:
    return _weft.array(a, dtype, False)


def _masked(a, where, neutral) -> Array:
    return a if where is None else _weft.where(where, a, neutral)


def _initial(result, initial, combine):
    return result if initial is None else combine(result, initial)


def sum(a, axis=None, dtype=None, out=None, keepdims: bool = False, initial=None, where=None) -> Array:
    """The sum over axes (all by default). Booleans and narrow integers are summed in the default integer type."""
    _no_out(out)
    return _initial(
        _weft.reduce("reduce_sum", _masked(_array(a, dtype), where, 0), axis, keepdims), initial, lambda x, y: x + y
    )


def prod(a, axis=None, dtype=None, out=None, keepdims: bool = False, initial=None, where=None) -> Array:
    """The product over axes (all by default)."""
    _no_out(out)
    return _initial(
        _weft.reduce("reduce_prod", _masked(_array(a, dtype), where, 1), axis, keepdims), initial, lambda x, y: x * y
    )


def _no_out(out) -> None:
    if out is not None:
        raise TypeError("out= is not supported: arrays never change")


def _extreme(prim, combine, a, axis, keepdims, initial, where, out):
    _no_out(out)
    a = _array(a)
    if where is not None:
        if initial is None:
            raise ValueError("max/min: where= needs initial=")
        a = _weft.where(where, a, initial)
    if initial is not None and a.size == 0:
        shape = _weft.reduce("reduce_sum", a, axis, keepdims).shape
        return _weft.full(shape, initial, a.dtype)
    return _initial(_weft.reduce(prim, a, axis, keepdims), initial, combine)


def max(a, axis=None, out=None, keepdims: bool = False, initial=None, where=None) -> Array:
    """The largest element over axes; NaN if there is one. Raises ValueError for no elements."""
    from ._elementwise import maximum

    return _extreme("reduce_max", maximum, a, axis, keepdims, initial, where, out)


def min(a, axis=None, out=None, keepdims: bool = False, initial=None, where=None) -> Array:
    """The smallest element over axes; NaN if there is one. Raises ValueError for no elements."""
    from ._elementwise import minimum

    return _extreme("reduce_min", minimum, a, axis, keepdims, initial, where, out)


amax, amin = max, min


def all(a, axis=None, out=None, keepdims: bool = False) -> Array:
    """Whether all elements are true."""
    _no_out(out)
    return _weft.reduce("reduce_and", _array(a), axis, keepdims)


def any(a, axis=None, out=None, keepdims: bool = False) -> Array:
    """Whether one element is true."""
    _no_out(out)
    return _weft.reduce("reduce_or", _array(a), axis, keepdims)


def mean(a, axis=None, dtype=None, out=None, keepdims: bool = False, where=None) -> Array:
    """The mean over axes, in floating point."""
    _no_out(out)
    a = _array(a, dtype)
    if where is not None:
        return sum(a, axis, keepdims=keepdims, where=where) / sum(
            _weft.broadcast_to(where, a.shape), axis, keepdims=keepdims
        )
    return _weft.mean(a, axis, keepdims)


def var(
    a, axis=None, dtype=None, out=None, ddof: int = 0, keepdims: bool = False, *, correction: int | None = None
) -> Array:
    """The mean squared distance from the mean; the divisor is n - ddof."""
    _no_out(out)
    a = _weft.promote_inexact(_array(a, dtype))
    centered = _weft.absolute(a - _weft.mean(a, axis, True))
    correction = ddof if correction is None else correction
    if correction == 0:
        return _weft.mean(centered * centered, axis, keepdims)
    free = _weft.count(a, axis) - correction
    total = _weft.reduce("reduce_sum", centered * centered, axis, keepdims)
    return total / free if free > 0 else total * float("nan")


def std(
    a, axis=None, dtype=None, out=None, ddof: int = 0, keepdims: bool = False, *, correction: int | None = None
) -> Array:
    """The square root of var."""
    from ._elementwise import sqrt

    return sqrt(var(a, axis, dtype, out, ddof, keepdims, correction=correction))


def average(a, axis=None, weights=None, returned: bool = False, keepdims: bool = False):
    """The weighted mean; with returned also the sum of weights."""
    a = _weft.promote_inexact(_array(a))
    if weights is None:
        out = mean(a, axis, keepdims=keepdims)
        return (out, _weft.full(out.shape, _weft.count(a, axis), out.dtype)) if returned else out
    weights = _array(weights)
    if weights.shape != a.shape:
        if not isinstance(axis, int):
            raise TypeError("average: give the axis that the weights are for")
        weights = weights.reshape([-1 if d == axis % a.ndim else 1 for d in range(a.ndim)])
    total = sum(_weft.broadcast_to(weights, a.shape), axis, keepdims=keepdims)
    out = sum(a * weights, axis, keepdims=keepdims) / total
    return (out, total) if returned else out


def argmax(a, axis: int | None = None, out=None, keepdims: bool = False) -> Array:
    """The index of the first largest element (of the flattened array, or along an axis)."""
    _no_out(out)
    return _weft.argreduce("argmax", _array(a), axis, keepdims)


def argmin(a, axis: int | None = None, out=None, keepdims: bool = False) -> Array:
    """The index of the first smallest element."""
    _no_out(out)
    return _weft.argreduce("argmin", _array(a), axis, keepdims)


def ptp(a, axis=None, keepdims: bool = False) -> Array:
    """Largest minus smallest."""
    return max(a, axis, keepdims=keepdims) - min(a, axis, keepdims=keepdims)


def count_nonzero(a, axis=None, keepdims: bool = False) -> Array:
    """How many elements are not 0."""
    return sum(_array(a) != 0, axis, keepdims=keepdims)


def cumsum(a, axis: int | None = None, dtype=None, out=None) -> Array:
    """Partial sums along an axis (None: of the flattened array)."""
    _no_out(out)
    return _weft.cumulative("cumsum", _array(a, dtype), axis, False)


def cumprod(a, axis: int | None = None, dtype=None, out=None) -> Array:
    """Partial products along an axis (None: of the flattened array)."""
    _no_out(out)
    return _weft.cumulative("cumprod", _array(a, dtype), axis, False)


cumulative_sum, cumulative_prod = cumsum, cumprod


def diff(a, n: int = 1, axis: int = -1) -> Array:
    """Differences of neighbours along an axis, n times."""
    a = _array(a)
    axis = _weft.check_axis(axis, a.ndim, "diff")
    key = (slice(None),) * axis
    for _ in range(n):
        high, low = a[key + (slice(1, None),)], a[key + (slice(None, -1),)]
        a = high != low if _weft.dtype_kind(a.dtype) == "bool" else high - low
    return a


def ediff1d(ary) -> Array:
    """Differences of neighbours of the flattened array."""
    return diff(_array(ary).reshape(-1))


def gradient(f, *varargs, axis=None):
    """Central differences inside, one-sided at the ends; spacing is a number per axis."""
    f = _weft.promote_inexact(_array(f))
    axes = range(f.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    axes = [_weft.check_axis(d, f.ndim, "gradient") for d in axes]
    spacing = list(varargs) * (len(axes) if len(varargs) == 1 else 1) or [1.0] * len(axes)
    out = []
    for d, h in zip(axes, spacing):
        key = (slice(None),) * d
        first = (f[key + (slice(1, 2),)] - f[key + (slice(0, 1),)]) / h
        last = (f[key + (slice(-1, None),)] - f[key + (slice(-2, -1),)]) / h
        inner = (f[key + (slice(2, None),)] - f[key + (slice(None, -2),)]) / (2 * h)
        out.append(_weft.concatenate([first, inner, last], d))
    return out[0] if len(out) == 1 else out


def trapezoid(y, x=None, dx=1.0, axis: int = -1) -> Array:
    """The integral by the trapezoidal rule."""
    y = _weft.moveaxis(_weft.promote_inexact(y), axis, -1)
    if x is not None:
        x = _weft.promote_inexact(x)
        dx = diff(x if x.ndim == 1 else _weft.moveaxis(x, axis, -1))
    return 0.5 * sum((y[..., 1:] + y[..., :-1]) * dx, -1)


# --- Without NaN ------------------------------------------------------------------------------------------------------


def _replace(a, value):
    a = _array(a)
    bad = a != a
    return _weft.where(bad, value, a), bad


def nansum(a, axis=None, keepdims: bool = False) -> Array:
    """sum, NaN counted as 0."""
    return sum(_replace(a, 0)[0], axis, keepdims=keepdims)


def nanprod(a, axis=None, keepdims: bool = False) -> Array:
    """prod, NaN counted as 1."""
    return prod(_replace(a, 1)[0], axis, keepdims=keepdims)


def nanmax(a, axis=None, keepdims: bool = False) -> Array:
    """max of the numbers; NaN where there are none."""
    filled, bad = _replace(a, float("-inf"))
    return _weft.where(all(bad, axis, keepdims=keepdims), float("nan"), max(filled, axis, keepdims=keepdims))


def nanmin(a, axis=None, keepdims: bool = False) -> Array:
    """min of the numbers; NaN where there are none."""
    filled, bad = _replace(a, float("inf"))
    return _weft.where(all(bad, axis, keepdims=keepdims), float("nan"), min(filled, axis, keepdims=keepdims))


def nanargmax(a, axis: int | None = None, keepdims: bool = False) -> Array:
    """argmax of the numbers."""
    return argmax(_replace(a, float("-inf"))[0], axis, keepdims=keepdims)


def nanargmin(a, axis: int | None = None, keepdims: bool = False) -> Array:
    """argmin of the numbers."""
    return argmin(_replace(a, float("inf"))[0], axis, keepdims=keepdims)


def nanmean(a, axis=None, keepdims: bool = False) -> Array:
    """mean of the numbers."""
    filled, bad = _replace(_weft.promote_inexact(a), 0)
    return sum(filled, axis, keepdims=keepdims) / sum(_weft.logical_not(bad), axis, keepdims=keepdims)


def nanvar(a, axis=None, ddof: int = 0, keepdims: bool = False) -> Array:
    """var of the numbers."""
    a = _weft.promote_inexact(a)
    centered, bad = _replace(a - nanmean(a, axis, True), 0)
    return sum(centered * centered, axis, keepdims=keepdims) / (
        sum(_weft.logical_not(bad), axis, keepdims=keepdims) - ddof
    )


def nanstd(a, axis=None, ddof: int = 0, keepdims: bool = False) -> Array:
    """std of the numbers."""
    from ._elementwise import sqrt

    return sqrt(nanvar(a, axis, ddof, keepdims))


# --- Order statistics -------------------------------------------------------------------------------------------------


def quantile(a, q, axis=None, keepdims: bool = False, method: str = "linear") -> Array:
    """The q-quantile (0 <= q <= 1) over axes. method: "linear", "lower", "higher", "nearest" or "midpoint"."""
    from ._elementwise import ceil, clip, floor
    from ._sorting import sort

    a, q = _weft.promote_inexact(_array(a)), _weft.promote_inexact(q)
    axes = list(range(a.ndim)) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    axes = [_weft.check_axis(d, a.ndim, "quantile") for d in axes]
    kept = [1 if d in axes else n for d, n in enumerate(a.shape)]
    a = _weft.moveaxis(a, axes, list(range(a.ndim - len(axes), a.ndim)))
    rest = a.shape[: a.ndim - len(axes)]
    if 0 in a.shape[len(rest) :]:
        return _weft.full(q.shape + (tuple(kept) if keepdims else rest), float("nan"), a.dtype)
    a = sort(a.reshape((*rest, functools.reduce(operator.mul, a.shape[len(rest) :], 1))), -1)
    n = a.shape[-1]
    place = q.astype(a.dtype) * (n - 1)
    low, high = clip(floor(place), 0, n - 1), clip(ceil(place), 0, n - 1)
    below, above = a[..., low.astype("int32")], a[..., high.astype("int32")]
    share = place - low
    if method == "linear":
        out = below * (1 - share) + above * share
    elif method == "lower":
        out = below
    elif method == "higher":
        out = above
    elif method == "nearest":
        out = _weft.where(share < 0.5, below, _weft.where(share > 0.5, above, _weft.where(low % 2 == 0, below, above)))
    elif method == "midpoint":
        out = (below + above) / 2
    else:
        raise ValueError(f"quantile: there is no method {method!r}")
    out = _weft.where(any(a != a, -1).reshape(a.shape[:-1] + (1,) * q.ndim), float("nan"), out)
    out = _weft.moveaxis(out, list(range(out.ndim - q.ndim, out.ndim)), list(range(q.ndim)))
    return out.reshape(q.shape + tuple(kept)) if keepdims else out


def percentile(a, q, axis=None, keepdims: bool = False, method: str = "linear") -> Array:
    """quantile with q in percent."""
    return quantile(a, _weft.promote_inexact(q) / 100, axis, keepdims, method)


def median(a, axis=None, keepdims: bool = False) -> Array:
    """The middle element."""
    return quantile(a, 0.5, axis, keepdims, "midpoint")


# --- Statistics -------------------------------------------------------------------------------------------------------


def cov(m, y=None, rowvar: bool = True, ddof: int | None = None, bias: bool = False) -> Array:
    """The covariance matrix; variables are rows unless rowvar is false."""
    x = _weft.promote_inexact(_array(m))
    x = x.reshape(1, -1) if x.ndim < 2 else x
    x = x if rowvar or x.shape[0] == 1 else x.T
    if y is not None:
        y = _weft.promote_inexact(_array(y))
        y = y.reshape(1, -1) if y.ndim < 2 else y
        x = _weft.concatenate([x, y if rowvar or y.shape[0] == 1 else y.T], 0)
    n = x.shape[1] - (ddof if ddof is not None else 0 if bias else 1)
    x = x - _weft.mean(x, 1, True)
    return _weft.squeeze(_weft.matmul(x, x.T) / n, None)


def corrcoef(x, y=None, rowvar: bool = True) -> Array:
    """The matrix of correlation coefficients."""
    from ._creation import diagonal
    from ._elementwise import sqrt

    c = cov(x, y, rowvar)
    if c.ndim == 0:
        return c / c
    d = sqrt(diagonal(c))
    return c / d[:, None] / d[None, :]


def bincount(x, weights=None, minlength: int = 0, *, length: int | None = None) -> Array:
    """How often each non-negative integer occurs (or the sum of its weights). Give length= inside jit."""
    x = _array(x)
    if length is None:
        length = builtins.max(minlength, int(max(x)) + 1 if x.size else 0)
    if weights is None:
        counts = _weft.full((length,), 0, int)
        return counts.at[x].add(1)
    weights = _array(weights)
    return _weft.full((length,), 0, weights.dtype).at[x].add(weights)


def histogram(a, bins: int = 10, range=None, weights=None):
    """Counts of equal bins (the last one closed), and their edges."""
    from ._creation import linspace
    from ._elementwise import clip, floor

    a = _weft.promote_inexact(_array(a)).reshape(-1)
    low, high = (min(a), max(a)) if range is None else range
    edges = linspace(low, high, bins + 1).astype(a.dtype)
    width = (edges[-1] - edges[0]) / bins
    index = clip(floor((a - edges[0]) / width), 0, bins - 1).astype("int32")
    inside = (a >= edges[0]) & (a <= edges[-1])
    index = _weft.where(inside, index, bins)
    if weights is None:
        return _weft.full((bins,), 0, int).at[index].add(1), edges
    weights = _array(weights).reshape(-1)
    return _weft.full((bins,), 0, weights.dtype).at[index].add(weights), edges


def interp(x, xp, fp, left=None, right=None) -> Array:
    """Piecewise linear interpolation through the points (xp, fp), xp increasing."""
    from ._elementwise import clip

    x, xp, fp = _weft.promote_inexact(_array(x)), _weft.promote_inexact(_array(xp)), _weft.promote_inexact(_array(fp))
    n = xp.shape[0]
    i = clip(sum((x[..., None] >= xp).astype("int32"), -1), 1, n - 1)
    x0, x1, f0, f1 = xp[i - 1], xp[i], fp[i - 1], fp[i]
    gap = x1 - x0
    out = f0 + (f1 - f0) * ((x - x0) / _weft.where(gap == 0, 1, gap))
    out = _weft.where(x < xp[0], fp[0] if left is None else left, out)
    return _weft.where(x > xp[-1], fp[-1] if right is None else right, out)
