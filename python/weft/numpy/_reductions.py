"""Sums, means, extrema, cumulative sums."""

from __future__ import annotations

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
    "count_nonzero",
    "cumprod",
    "cumsum",
    "cumulative_sum",
    "cumulative_prod",
    "max",
    "mean",
    "median",
    "min",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
    "prod",
    "ptp",
    "quantile",
    "percentile",
    "std",
    "sum",
    "var",
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


def all(a, axis=None, out=None, keepdims: bool = False, *, where=None) -> Array:
    """Whether all elements are true."""
    _no_out(out)
    return _weft.reduce("reduce_and", _masked(_array(a), where, True), axis, keepdims)


def any(a, axis=None, out=None, keepdims: bool = False, *, where=None) -> Array:
    """Whether one element is true."""
    _no_out(out)
    return _weft.reduce("reduce_or", _masked(_array(a), where, False), axis, keepdims)


def mean(a, axis=None, dtype=None, out=None, keepdims: bool = False, where=None) -> Array:
    """The mean over axes, in floating point; 16-bit numbers are summed in 32 bits."""
    _no_out(out)
    a = _array(a)
    if dtype is not None and _weft.dtype(dtype) not in ("float16", "bfloat16"):
        a = a.astype(dtype)
    if where is not None:
        total = sum(_weft.promote_inexact(a), axis, keepdims=keepdims, where=where)
        out = total / sum(_weft.broadcast_to(where, a.shape), axis, keepdims=keepdims).astype(total.dtype)
    else:
        out = _weft.mean(a, axis, keepdims)
    return out if dtype is None else out.astype(dtype)


def var(
    a,
    axis=None,
    dtype=None,
    out=None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where=None,
    correction: int | None = None,
) -> Array:
    """The mean squared distance from the mean; the divisor is n - ddof. where: the elements that count."""
    _no_out(out)
    a = _weft.promote_inexact(_array(a, dtype))
    if where is not None:
        where = _weft.broadcast_to(_array(where, "bool"), a.shape)
    centered = _weft.absolute(a - mean(a, axis, keepdims=True, where=where))
    if where is not None:
        centered = _weft.where(where, centered, 0)
    fewer = ddof if correction is None else correction
    if where is None and fewer == 0:
        return _weft.mean(centered * centered, axis, keepdims)
    total = _weft.reduce("reduce_sum", centered * centered, axis, keepdims)
    if where is not None:
        n = sum(where, axis, keepdims=keepdims).astype(total.dtype)
        return _weft.where(n > fewer, total / _weft.where(n > fewer, n - fewer, 1), float("nan"))
    free = _weft.count(a, axis) - fewer
    return total / free if free > 0 else total * float("nan")


def std(
    a,
    axis=None,
    dtype=None,
    out=None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where=None,
    correction: int | None = None,
) -> Array:
    """The square root of var."""
    from ._elementwise import sqrt

    return sqrt(var(a, axis, dtype, out, ddof, keepdims, where=where, correction=correction))


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


def cumulative_sum(x, *, axis: int | None = None, dtype=None, include_initial: bool = False) -> Array:
    """Partial sums along an axis (vectors need none); include_initial puts a 0 in front."""
    return _cumulative(x, axis, dtype, include_initial, "cumsum", 0)


def cumulative_prod(x, *, axis: int | None = None, dtype=None, include_initial: bool = False) -> Array:
    """Partial products along an axis (vectors need none); include_initial puts a 1 in front."""
    return _cumulative(x, axis, dtype, include_initial, "cumprod", 1)


def _cumulative(x, axis, dtype, include_initial: bool, prim: str, neutral) -> Array:
    x = _array(x, dtype)
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"cumulative_{prim[3:]}: give the axis for an array of shape {x.shape}")
        axis = 0
    out = _weft.cumulative(prim, x, axis, False)
    if not include_initial:
        return out
    before = [1 if d == _weft.check_axis(axis, x.ndim, prim) else 0 for d in range(x.ndim)]
    return _weft.pad_constant(out, before, [0] * x.ndim, _weft.full((), neutral, out.dtype))


# --- Without NaN ------------------------------------------------------------------------------------------------------


def _replace(a, value, where=None):
    """The array with `value` in place of NaN and of what `where` leaves out; and where that is."""
    a = _array(a)
    if not _weft.is_inexact(a.dtype) and where is None:
        return a, _weft.full(a.shape, False, "bool")
    bad = a != a
    if where is not None:
        bad = bad | _weft.logical_not(_weft.broadcast_to(_array(where, "bool"), a.shape))
    return _weft.where(bad, value, a), bad


def nansum(a, axis=None, dtype=None, out=None, keepdims: bool = False, initial=None, where=None) -> Array:
    """sum, NaN counted as 0."""
    return sum(_replace(a, 0, where)[0], axis, dtype, out, keepdims, initial)


def nanprod(a, axis=None, dtype=None, out=None, keepdims: bool = False, initial=None, where=None) -> Array:
    """prod, NaN counted as 1."""
    return prod(_replace(a, 1, where)[0], axis, dtype, out, keepdims, initial)


def nancumsum(a, axis: int | None = None, dtype=None, out=None) -> Array:
    """cumsum, NaN counted as 0."""
    return cumsum(_replace(a, 0)[0], axis, dtype, out)


def nancumprod(a, axis: int | None = None, dtype=None, out=None) -> Array:
    """cumprod, NaN counted as 1."""
    return cumprod(_replace(a, 1)[0], axis, dtype, out)


def nanmax(a, axis=None, out=None, keepdims: bool = False, initial=None, where=None) -> Array:
    """max of the numbers; NaN where there are none."""
    return _nan_extreme(max, a, axis, out, keepdims, initial, where, float("-inf"))


def nanmin(a, axis=None, out=None, keepdims: bool = False, initial=None, where=None) -> Array:
    """min of the numbers; NaN where there are none."""
    return _nan_extreme(min, a, axis, out, keepdims, initial, where, float("inf"))


def _nan_extreme(function, a, axis, out, keepdims, initial, where, worst) -> Array:
    a = _array(a)
    if not _weft.is_inexact(a.dtype):
        return function(a, axis, out, keepdims, initial, where)
    filled, bad = _replace(a, worst, where)
    result = function(filled, axis, out, keepdims, initial)
    return result if initial is not None else _weft.where(all(bad, axis, keepdims=keepdims), float("nan"), result)


def nanargmax(a, axis: int | None = None, out=None, keepdims: bool = False) -> Array:
    """argmax of the numbers; -1 where there are none."""
    return _nan_arg(argmax, a, axis, out, keepdims, float("-inf"))


def nanargmin(a, axis: int | None = None, out=None, keepdims: bool = False) -> Array:
    """argmin of the numbers; -1 where there are none."""
    return _nan_arg(argmin, a, axis, out, keepdims, float("inf"))


def _nan_arg(function, a, axis, out, keepdims, worst) -> Array:
    a = _array(a)
    if not _weft.is_inexact(a.dtype):
        return function(a, axis, out, keepdims)
    filled, bad = _replace(a, worst)
    return _weft.where(all(bad, axis, keepdims=keepdims), -1, function(filled, axis, out, keepdims))


def nanmean(a, axis=None, dtype=None, out=None, keepdims: bool = False, where=None) -> Array:
    """mean of the numbers."""
    _no_out(out)
    filled, bad = _replace(_weft.promote_inexact(_array(a, dtype)), 0, where)
    return sum(filled, axis, keepdims=keepdims) / sum(_weft.logical_not(bad), axis, keepdims=keepdims).astype(
        filled.dtype
    )


def nanvar(a, axis=None, dtype=None, out=None, ddof: int = 0, keepdims: bool = False, where=None) -> Array:
    """var of the numbers."""
    _no_out(out)
    a = _weft.promote_inexact(_array(a, dtype))
    centered, bad = _replace(a - nanmean(a, axis, keepdims=True, where=where), 0, where)
    free = sum(_weft.logical_not(bad), axis, keepdims=keepdims) - ddof
    total = sum(_weft.absolute(centered) ** 2, axis, keepdims=keepdims)
    return _weft.where(free <= 0, float("nan"), total / _weft.where(free <= 0, 1, free).astype(total.dtype))


def nanstd(a, axis=None, dtype=None, out=None, ddof: int = 0, keepdims: bool = False, where=None) -> Array:
    """std of the numbers."""
    from ._elementwise import sqrt

    return sqrt(nanvar(a, axis, dtype, out, ddof, keepdims, where))


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


def nanquantile(a, q, axis=None, keepdims: bool = False, method: str = "linear") -> Array:
    """quantile of the numbers; NaN where there are none."""
    from ._elementwise import ceil, clip, floor
    from ._sorting import sort

    a, q = _weft.promote_inexact(_array(a)), _weft.promote_inexact(q)
    if method not in ("linear", "lower", "higher", "nearest", "midpoint"):
        raise ValueError(f"nanquantile: there is no method {method!r}")
    axes = list(range(a.ndim)) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    axes = [_weft.check_axis(d, a.ndim, "nanquantile") for d in axes]
    kept = tuple(1 if d in axes else n for d, n in enumerate(a.shape))
    a = _weft.moveaxis(a, axes, list(range(a.ndim - len(axes), a.ndim)))
    rest = a.shape[: a.ndim - len(axes)]
    if 0 in a.shape[len(rest) :]:
        return _weft.full(q.shape + (kept if keepdims else rest), float("nan"), a.dtype)
    a = sort(a.reshape(rest + (-1,)), -1)  # NaN come last
    last = clip(sum(a == a, -1, keepdims=True) - 1, 0, None).astype(a.dtype)
    place = last * q.reshape(-1).astype(a.dtype)
    low, high = floor(place), ceil(place)
    below = _weft.take_along_axis(a, low.astype("int32"), -1)
    above = _weft.take_along_axis(a, high.astype("int32"), -1)
    share = place - low
    if method == "linear":
        out = below * (1 - share) + above * share
    elif method == "midpoint":
        out = (below + above) / 2
    else:
        up = share > 0.5 if method == "nearest" else _weft.full(share.shape, method == "higher", "bool")
        if method == "nearest":
            up = up | ((share == 0.5) & (low % 2 == 1))
        out = _weft.where(up, above, below)
    out = _weft.moveaxis(out, -1, 0).reshape(q.shape + rest)
    return out.reshape(q.shape + kept) if keepdims else out


def nanpercentile(a, q, axis=None, keepdims: bool = False, method: str = "linear") -> Array:
    """nanquantile with q in percent."""
    return nanquantile(a, _weft.promote_inexact(q) / 100, axis, keepdims, method)


def nanmedian(a, axis=None, keepdims: bool = False) -> Array:
    """The middle element of the numbers."""
    return nanquantile(a, 0.5, axis, keepdims, "midpoint")
