"""Differences, covariances, histograms, interpolation."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _weft
from .._core import docs as _docs
from .._core.errors import not_implemented, type_error, value_error
from .._weft import Array
from ..arguments import is_integer
from ..typing import DTypeLike, NestedLike
from ._choosing import clip, where
from ._creation import linspace
from ._cumulative import cumsum
from ._dtypes import finfo, issubdtype
from ._elementwise import conjugate, real
from ._indexing import take
from ._matrices import diagonal
from ._out_sharding import lying
from ._primitives import maximum, sqrt
from ._reductions import as_together, max, min, narrow, sum, widened
from ._shape import _together, shape
from ._sorting import argsort, searchsorted

__all__ = [
    "bincount",
    "corrcoef",
    "cov",
    "diff",
    "ediff1d",
    "gradient",
    "histogram",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
    "interp",
    "trapezoid",
    "unwrap",
]


def _array(a, dtype=None) -> Array:
    return _weft.array(a, dtype, False)


def diff(
    a: NestedLike, n: int = 1, axis: int = -1, prepend: NestedLike | None = None, append: NestedLike | None = None
) -> Array:
    """Differences of neighbours along an axis: a[i+1] - a[i]; of booleans whether they differ.

    Args:
        n: how often to take differences.
        prepend: array or number that is joined in front first; None: nothing.
        append: array or number that is joined behind first; None: nothing.

    Returns: array of the dtype of a, shorter by n along the axis.

    Raises:
        ValueError: n is negative.

    Example:
        >>> wnp.diff(wnp.array([1, 4, 9, 16]))
        Array([3, 5, 7], dtype=int32)
    """
    a = _array(a)
    axis = _weft.check_axis(axis, a.ndim, "diff")
    if n < 0:
        raise value_error(f"diff: n must not be negative, got {n}")
    if n and (prepend is not None or append is not None):
        edge = a.shape[:axis] + (1,) + a.shape[axis + 1 :]
        parts = [None if p is None else _together(p, a)[0] for p in (prepend, append)]
        wide = [p if p is None or p.ndim else _weft.broadcast_to(p, edge) for p in parts]
        a = _weft.concatenate([p for p in (wide[0], a, wide[1]) if p is not None], axis)
    key = (slice(None),) * axis
    for _ in range(n):
        if a.shape[axis] == 0:  # and stays so, however large n is
            break
        high, low = a[key + (slice(1, None),)], a[key + (slice(None, -1),)]
        a = high != low if _weft.dtype_kind(a.dtype) == "bool" else high - low
    return a


def ediff1d(ary: NestedLike, to_end: NestedLike | None = None, to_begin: NestedLike | None = None) -> Array:
    """Differences of neighbours of the flattened array.

    Args:
        to_end: numbers joined behind them; None: nothing.
        to_begin: numbers joined in front of them; None: nothing.

    Returns: vector of the dtype of the array.

    Example:
        >>> wnp.ediff1d(wnp.array([1, 4, 9]), to_begin=0)
        Array([0, 3, 5], dtype=int32)
    """
    ary = _array(ary).reshape(-1)
    parts = [_array(p, ary.dtype).reshape(-1) if p is not None else None for p in (to_begin, to_end)]
    return _weft.concatenate([p for p in (parts[0], diff(ary), parts[1]) if p is not None], 0)


def gradient(f: NestedLike, *varargs: NestedLike, axis: int | Sequence[int] | None = None) -> Any:
    """Differences along axes as an estimate of the derivative: central ones inside, one-sided ones at the ends.

    Args:
        f: array of one dimension or more, at least two elements along each axis.
        *varargs: the spacing: one number for all axes, or per axis a number or the vector of coordinates; none: 1.
        axis: the axis or axes; None: all.

    Returns: array of the shape of f in floating point; a list of them, one per axis, for several.

    Raises:
        ValueError: an axis has fewer than two elements, or coordinates do not fit.
        TypeError: there are not as many spacings as axes.

    Source: for uneven spacing h, k: (h^2 f(x+k) + (k^2 - h^2) f(x) - k^2 f(x-h)) / (h k (h + k)) (Fornberg, 1988).

    Example:
        >>> wnp.gradient(wnp.array([0.0, 1.0, 4.0, 9.0]))
        Array([1., 2., 4., 5.], dtype=float32)
    """
    f = _weft.promote_inexact(function := _array(f))
    axes = range(f.ndim) if axis is None else [axis] if is_integer(axis) else axis
    axes = [_weft.check_axis(d, f.ndim, "gradient") for d in axes]
    if len(varargs) not in (0, 1, len(axes)):
        raise type_error(f"gradient: {len(varargs)} spacings for {len(axes)} axes")
    places: list[Any] = [_array(h) if isinstance(h, (list, tuple)) else h for h in varargs or [1.0]]
    spacing = places * (len(axes) if len(places) == 1 else 1)
    out = []
    for d, apart, given in zip(axes, spacing, [_together(h, f)[0] for h in spacing]):
        if f.shape[d] < 2:
            raise value_error(f"gradient: at least 2 elements are needed along axis {d}, got {f.shape[d]}")
        key = (slice(None),) * d
        at = lambda lo, hi: f[key + (slice(lo, hi),)]  # noqa: B023
        if given.ndim:
            if given.shape != (f.shape[d],):
                raise value_error(f"gradient: {given.shape} coordinates for {f.shape[d]} elements along axis {d}")
            steps = diff(_weft.promote_inexact(given)).reshape((-1,) + (1,) * (f.ndim - d - 1))
            h, k = steps[:-1], steps[1:]
            inner = (h * h * at(2, None) + (k * k - h * h) * at(1, -1) - k * k * at(0, -2)) / (h * k * (h + k))
            first_step, last_step = steps[:1], steps[-1:]
        else:
            first_step = last_step = given
            inner = (at(2, None) - at(None, -2)) / (2 * given)
        first, last = (at(1, 2) - at(0, 1)) / first_step, (at(-1, None) - at(-2, -1)) / last_step
        out.append(as_together(_weft.concatenate([first, inner, last], d), function, apart))
    return out[0] if len(out) == 1 else out


def trapezoid(y: NestedLike, x: NestedLike | None = None, dx: Array | float = 1.0, axis: int = -1) -> Array:
    """The integral along an axis by the trapezoidal rule.

    Args:
        y: array of one dimension or more: values.
        x: the coordinates of the values, a vector or an array of the shape of y; None: dx apart.
        dx: the distance of the values, a number or an array that broadcasts against y without one element of the axis.

    Returns: array without the axis, in floating point.

    Source: Abramowitz & Stegun 25.4.1.

    Example:
        >>> wnp.trapezoid(wnp.array([0.0, 1.0, 4.0]), dx=0.5)
        Array(1.5, dtype=float32)
    """
    given = [_array(a) for a in (y, x) if a is not None]
    y = _weft.promote_inexact(given[0])
    d = _weft.check_axis(axis, y.ndim, "trapezoid")
    before = (slice(None),) * d
    pairs = y[(*before, slice(1, None))] + y[(*before, slice(None, -1))]
    if x is not None:
        x = _weft.promote_inexact(given[1])
        dx = diff(x).reshape([-1 if i == d else 1 for i in range(y.ndim)]) if x.ndim == 1 else diff(x, axis=axis)
    return as_together(0.5 * sum(pairs * dx, d), given[0], given[-1])


def unwrap(p: NestedLike, discont: float | None = None, axis: int = -1, period: float = 6.283185307179586) -> Array:
    """Angles without jumps: whole periods are added where neighbours differ by more than discont.

    Args:
        p: array of one dimension or more.
        discont: the largest difference that is no jump; None: half a period.
        period: the period.

    Returns: array of the shape of p; integers where both p and period are.

    Example:
        >>> wnp.unwrap(wnp.array([0.0, 3.0, 6.0, 9.0]), period=4.0)
        Array([ 0., -1., -2., -3.], dtype=float32)
    """
    p = _array(p)
    p = p.astype(_weft.result_type(p, period))
    axis = _weft.check_axis(axis, p.ndim, "unwrap")
    if p.shape[axis] == 0:
        return p
    step = diff(p, axis=axis)
    # An odd number of integers has no half, and no step that might go either way.
    whole = not _weft.is_inexact(p.dtype)
    half = period // 2 if whole else period / 2
    small = (step + half) % period - half
    if not whole or period % 2 == 0:
        small = where((small == -half) & (step > 0), half, small)
    correction = where(_weft.absolute(step) < (period / 2 if discont is None else discont), 0, small - step)
    rest = (slice(None),) * axis + (slice(1, None),)
    first = (slice(None),) * axis + (slice(None, 1),)
    return _weft.concatenate([p[first], p[rest] + cumsum(correction, axis)], axis)


# --- Statistics -------------------------------------------------------------------------------------------------------


def cov(
    m: NestedLike,
    y: NestedLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: NestedLike | None = None,
    aweights: NestedLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """The covariance matrix of variables.

    Args:
        m: array [variables, observations], or a vector of observations of one variable.
        bias: whether to divide by n instead of n - 1.
        ddof: the divisor is n - ddof; None: as bias says.
        fweights: vector of how often each observation counts; None: once.
        aweights: vector of the weights of observations; None: 1.
        dtype: the dtype of the result, a float or complex one; None: that of all arrays together.

    Returns: array [variables, variables] in floating point, without dimensions for one variable.

    Raises:
        ValueError: m has more than two dimensions, or dtype is no float or complex dtype.
        TypeError: fweights are no integers.

    Example:
        >>> wnp.cov(wnp.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
        Array([[ 1., -1.],
               [-1.,  1.]], dtype=float32)
    """
    given = [_array(a) for a in (m, y, aweights) if a is not None]
    x = _weft.promote_inexact(given[0])
    y = None if y is None else _weft.promote_inexact(given[1])
    aweights = None if aweights is None else given[-1]
    if dtype is None and not _weft.is_inexact(dtype := _weft.result_type(*given)):
        dtype = x.dtype
    dtype = _weft.dtype(dtype)
    if not _weft.is_inexact(dtype):
        raise value_error(f"cov: dtype must be a float or complex dtype, got {dtype}")
    if fweights is not None and _weft.is_inexact(_array(fweights).dtype):
        raise type_error(f"cov: fweights must be integers, got dtype {_array(fweights).dtype}")
    x = widened(x)
    if x.ndim > 2:
        raise value_error(f"cov: at most two dimensions, got shape {x.shape}")
    rows = lambda v: v.reshape(1, -1) if v.ndim < 2 else v if rowvar else v.T
    x = rows(x)
    if y is not None:
        x = _weft.concatenate([x, rows(widened(y))], 0)
    x = x if narrow(dtype) else x.astype(dtype)
    fewer = ddof if ddof is not None else 0 if bias else 1
    if fweights is None and aweights is None:
        x = x - _weft.mean(x, 1, True)
        return _weft.squeeze(_weft.matmul(x, conjugate(x).T) / _free(x.shape[1] - fewer), None).astype(dtype)
    w = _weft.full((x.shape[1],), 1, x.dtype)
    if fweights is not None:
        w = w * _array(fweights)
    if aweights is not None:
        w = w * aweights
    total = sum(w)
    x = x - (sum(x * w, 1) / total)[:, None]
    free = total - fewer if aweights is None or not fewer else total - fewer * sum(w * aweights) / total
    return _weft.squeeze(_weft.matmul(x * w, conjugate(x).T) / maximum(real(free), 0), None).astype(dtype)


def _free(n: Any) -> Any:
    """How many observations are left of n; none rather than a negative number, as in NumPy, for NaN."""
    return builtins.max(n, 0) if isinstance(n, (int, float)) else n


def corrcoef(x: NestedLike, y: NestedLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None) -> Array:
    """The matrix of correlation coefficients (Pearson's): covariances divided by standard deviations.

    Args:
        x: array [variables, observations], or a vector of observations of one variable.
        dtype: the dtype of the result, a float or complex one; None: that of both arrays together.

    Returns: array [variables, variables] in floating point.

    Raises:
        ValueError: x has more than two dimensions, or dtype is no float or complex dtype.

    Example:
        >>> wnp.corrcoef(wnp.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
        Array([[ 1., -1.],
               [-1.,  1.]], dtype=float32)
    """
    if dtype is not None and not _weft.is_inexact(dtype):
        raise value_error(f"corrcoef: dtype must be a float or complex dtype, got {_weft.dtype(dtype)}")
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    d = sqrt(diagonal(c))
    out = c / d[:, None] / d[None, :]
    return out if _weft.dtype_kind(out.dtype) == "complex" else clip(out, -1, 1)


def bincount(
    x: NestedLike,
    weights: NestedLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """How often each integer occurs, or the sum of its weights.

    Args:
        x: vector of integers; negative ones count as 0.
        weights: vector of weights; None: each counts once.
        minlength: how many elements the result has at least.
        length: inside jit: how many elements the result has; larger integers are left out.

    Returns: vector of the default integer dtype, or of the dtype of the weights.

    Raises:
        TypeError: x is no vector of integers.
        weft.TracerError: x is traced and length is not given.

    Example:
        >>> wnp.bincount(wnp.array([0, 2, 2, 5]))
        Array([1, 0, 2, 0, 0, 1], dtype=int32)
    """
    if out_sharding is not None:
        return lying(out_sharding, bincount, x, weights=weights, minlength=minlength, length=length)
    x = _array(x)
    if x.ndim != 1 or _weft.is_inexact(x.dtype):
        raise type_error(f"bincount: a vector of integers is needed, got {x.dtype} of shape {x.shape}")
    if length is None:
        length = builtins.max(minlength, int(max(x)) + 1 if x.size else 0)
    x = maximum(x, 0)
    if weights is None:
        return _weft.full((length,), 0, int).at[x].add(1)
    weights = _array(weights)
    return _weft.full((length,), 0, weights.dtype).at[x].add(weights)


def histogram_bin_edges(
    a: NestedLike, bins: NestedLike = 10, range: Any = None, weights: NestedLike | None = None
) -> Array:
    """The edges of the bins of histogram.

    Args:
        bins: how many equal ones; or the vector of edges itself.
        range: pair of the first and the last edge; None: the extrema of a.
        weights: array of the shape of a, whose dtype counts; None: that of a.

    Returns: vector in floating point, one more than there are bins.

    Raises:
        ValueError: there are no bins, or known edges or a known range decrease.
        NotImplementedError: bins is the name of a rule.

    Example:
        >>> wnp.histogram_bin_edges(wnp.array([0.0, 4.0]), bins=4)
        Array([0., 1., 2., 3., 4.], dtype=float32)
    """
    a = _floating(a, weights).reshape(-1)
    if not is_integer(bins):
        if isinstance(bins, str):
            raise not_implemented("histogram_bin_edges: give the number of bins or their edges")
        edges = _array(bins)
        if edges.ndim != 1:
            raise value_error(
                "histogram: bins must be an integer or a vector of edges, got an array of shape " + str(edges.shape)
            )
        if not _weft.is_traced(edges):
            known = np.asarray(edges)
            if (known[1:] < known[:-1]).any():
                raise value_error(f"histogram: the edges in bins must not decrease, got {known}")
        return edges.astype(a.dtype)
    if bins < 1:
        raise value_error(f"histogram: bins must be at least 1, got {bins}")
    if range is not None:
        low, high = (_weft.array(v, a.dtype, False) for v in range)
        if not _weft.is_traced(low) and not _weft.is_traced(high) and bool(low > high):
            raise value_error(f"histogram: range must not decrease, got {range!r}")
    elif a.size == 0:
        low, high = _weft.full((), 0, a.dtype), _weft.full((), 1, a.dtype)
    else:
        low, high = min(a), max(a)
    flat = low == high
    return linspace(_weft.where(flat, low - 0.5, low), _weft.where(flat, high + 0.5, high), bins + 1).astype(a.dtype)


def _floating(a, weights) -> Array:
    """a in floating point, promoted with its weights; complex weights leave it real."""
    a = _array(a)
    return _weft.promote_inexact(a if weights is None else a.astype(_weft.result_type(a, _array(weights).real)))


def histogram(
    a: NestedLike,
    bins: NestedLike = 10,
    range: Any = None,
    weights: NestedLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array]:
    """How many elements each bin holds, or what sum of weights. Bins contain their left edge, the last one also its
    right.

    Args:
        bins: how many equal ones; or the vector of edges.
        range: pair of the first and the last edge; None: the extrema of a. Elements outside are left out.
        weights: array of the shape of a; None: each counts once.
        density: whether counts are divided by their sum and the bins' widths.

    Returns: pair of vectors: counts, which are floats as JAX's, and edges, both of the dtype of a and weights together.

    Raises:
        ValueError: weights have another shape than a, there are no bins, or known edges or a known range decrease.
        NotImplementedError: bins is the name of a rule.

    Example:
        >>> wnp.histogram(wnp.array([0.0, 1.0, 1.5, 4.0]), bins=4)
        (Array([1., 2., 0., 1.], dtype=float32), Array([0., 1., 2., 3., 4.], dtype=float32))
    """
    a = _floating(a, weights)
    weights = _weft.full(a.shape, 1, a.dtype) if weights is None else _array(weights)
    if weights.shape != a.shape:
        raise value_error(f"histogram: weights have shape {weights.shape}; expected that of a, {a.shape}")
    kind = _weft.result_type(a, weights)
    a, weights = a.reshape(-1), weights.reshape(-1).astype(kind)
    edges = histogram_bin_edges(a, bins, range)
    n = edges.shape[0] - 1
    index = searchsorted(edges, a, side="right") - 1
    index = _weft.where(a == edges[-1], n - 1, index)
    index = _weft.where((a >= edges[0]) & (a <= edges[-1]), index, n)
    counts = _weft.full((n,), 0, kind).at[index].add(weights)
    if density:
        counts = counts / diff(edges) / sum(counts)
    return counts, edges


def histogramdd(
    sample: NestedLike,
    bins: Any = 10,
    range: Any = None,
    weights: NestedLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """How many points each cell of a grid holds, or what sum of weights.

    Args:
        sample: array [points, dimensions].
        bins: how many equal ones, for all dimensions or one per dimension; or a vector of edges per dimension.
        weights: vector of one weight per point; None: each counts once.
        density: whether counts are divided by their sum and the cells' volumes.

    Returns: pair of an array of counts and a list of vectors of edges.

    Raises:
        ValueError: a dimension has no bins, or known edges or a known range decrease.

    Example:
        >>> counts, edges = wnp.histogramdd(wnp.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]]), bins=2)
        >>> counts
        Array([[1, 0],
               [1, 1]], dtype=int32)
    """
    sample = _weft.promote_inexact(_array(sample))
    points, dims = sample.shape
    bins = [bins] * dims if is_integer(bins) else list(bins)
    ranges = [None] * dims if range is None else list(range)
    edges = [histogram_bin_edges(sample[:, d], bins[d], ranges[d]) for d in builtins.range(dims)]
    shape = tuple(e.shape[0] - 1 for e in edges)
    index, inside = [], _weft.full((points,), True, "bool")
    for d, e in enumerate(edges):
        x = sample[:, d]
        i = _weft.where(x == e[-1], shape[d] - 1, searchsorted(e, x, side="right") - 1)
        inside = inside & (x >= e[0]) & (x <= e[-1])
        index.append(i)
    index[0] = _weft.where(inside, index[0], shape[0])
    kind = _weft.default_dtype("int") if weights is None else _weft.promote_inexact(weights).dtype
    values = _weft.full((points,), 1, kind) if weights is None else _array(weights).astype(kind)
    counts = _weft.full(shape, 0, kind).at[tuple(index)].add(values)
    if density:
        total = sum(counts)
        for d, e in enumerate(edges):
            counts = counts / diff(e).reshape([-1 if i == d else 1 for i in builtins.range(dims)])
        counts = counts / total
    return counts, edges


def histogram2d(
    x: NestedLike,
    y: NestedLike,
    bins: NestedLike = 10,
    range: Any = None,
    weights: NestedLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """How many pairs each cell of a grid holds, or what sum of weights.

    Args:
        x: vector.
        y: vector of the same length.
        bins: how many equal ones, for both or one per dimension; or vectors of edges.
        weights: vector of one weight per pair; None: each counts once.
        density: whether counts are divided by their sum and the cells' areas.

    Returns: tuple of an array of counts, the edges of x and those of y.

    Raises:
        ValueError: a dimension has no bins, or known edges or a known range decrease.

    Example:
        >>> wnp.histogram2d(wnp.array([0.0, 1.0, 1.0]), wnp.array([0.0, 1.0, 0.0]), bins=2)[0]
        Array([[1, 0],
               [1, 1]], dtype=int32)
    """
    points = _weft.stack([_array(x), _array(y)], 1)
    if not isinstance(bins, (int, tuple, list)):
        bins = [bins, bins]
    counts, edges = histogramdd(points, bins, range, weights, density)
    return counts, edges[0], edges[1]


def interp(
    x: NestedLike,
    xp: NestedLike,
    fp: NestedLike,
    left: NestedLike | str | None = None,
    right: NestedLike | str | None = None,
    period: float | None = None,
) -> Array:
    """Piecewise linear interpolation through points.

    Args:
        x: array or number of any shape: where.
        xp: vector of the points' places, increasing.
        fp: vector of the points' values.
        left: the value before the first point; None: that of the first; "extrapolate": the first line goes on.
        right: the value beyond the last point; None: that of the last; "extrapolate": the last line goes on.
        period: xp counts modulo it, in any order; None: there is none.

    Returns: array of the shape of x in floating point.

    Raises:
        ValueError: xp and fp are no vectors of one length > 0, x or xp is complex, or period is not one number.

    Example:
        >>> wnp.interp(wnp.array([0.5, 1.5, 9.0]), wnp.array([0.0, 1.0, 2.0]), wnp.array([0.0, 10.0, 40.0]))
        Array([ 5., 25., 40.], dtype=float32)
    """
    (x, xp), fp = _weft.promote_all_inexact(*_together(x, xp)), _weft.promote_inexact(_array(fp))
    if xp.ndim != 1 or xp.shape != fp.shape or xp.shape[0] == 0:
        raise value_error(f"interp: xp and fp must be vectors of one length > 0, got shapes {xp.shape} and {fp.shape}")
    for side, value in (("left", left), ("right", right)):
        if isinstance(value, str) and value != "extrapolate":
            raise value_error(f"interp: the only valid string value of {side} is 'extrapolate', but got: {value!r}")
    if issubdtype(x.dtype, np.complexfloating):
        raise value_error("interp: x and xp are complex, and complex numbers have no order; expected real ones")
    if period is not None:
        if shape(period) != ():
            raise value_error(f"interp: period must be one number, got {period!r}")
        x, xp = x % period, xp % period
        xp, fp = take(xp, order := argsort(xp)), take(fp, order)
        xp = _weft.concatenate([xp[-1:] - period, xp, xp[:1] + period], 0)
        fp = _weft.concatenate([fp[-1:], fp, fp[:1]], 0)
    if (n := xp.shape[0]) == 1:
        out = _weft.broadcast_to(fp[0], x.shape)
    else:
        i = clip(searchsorted(xp, x, "right"), 1, n - 1)
        x0, x1, f0, f1 = xp[i - 1], xp[i], fp[i - 1], fp[i]
        gap, rise = x1 - x0, f1 - f0
        # Places that are this close have no slope: its square, of which the derivative is made, would be 0.
        tiny = _weft.absolute(gap) <= float(finfo(gap.dtype).tiny) ** 0.5
        share = _weft.where(tiny, 0, (x - x0) / _weft.where(tiny, 1, gap))
        out = f0 + rise * share
    if period is None and not isinstance(left, str):
        out = _weft.where(x < xp[0], fp[0] if left is None else left, out)
    if period is None and not isinstance(right, str):
        out = _weft.where(x > xp[-1], fp[-1] if right is None else right, out)
    return out


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "range": "pair of the first and the last edge per dimension; None: the extrema.",
    "rowvar": "whether variables are rows; otherwise columns.",
    "y": "further variables, in the same form; None: none.",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
