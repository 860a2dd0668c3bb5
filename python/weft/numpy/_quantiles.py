"""Quantiles, with and without NaN."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence

import numpy as np

from .. import _weft
from .._core import docs as _docs
from .._core.errors import not_implemented, type_error, value_error
from .._weft import Array
from ..arguments import axes_of
from ..typing import NestedLike
from ._along import along
from ._choosing import clip
from ._creation import ones
from ._cumulative import cumsum
from ._reductions import _AXES, any, sum
from ._rounding import ceil, floor
from ._shape import _array
from ._sorting import argsort, sort

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

_METHODS = "linear", "lower", "higher", "nearest", "midpoint", "inverted_cdf"


def _share(q, whole: int, a: Array, what: str) -> tuple[Array, bool]:
    """q as parts of one, and whether one of them may be NaN."""
    if not _weft.is_operand(q):
        raise type_error(
            f"{what}: q is {q!r} of type '{type(q).__name__}'; expected an array or a number (lists: weft.numpy.array)"
        )
    traced = _weft.is_traced(q)
    may_be_nan = True
    if not traced:
        given = np.asarray(q)
        outside = given[(given < 0) | (given > whole)]
        if outside.size:
            raise value_error(f"{what}: q must be in [0, {whole}], got {outside[0]}")
        may_be_nan = (given != given).any()
    q = _weft.array(q, _weft.result_type(q, a), False)
    q = q if whole == 1 else q / whole
    return clip(q, 0, 1) if traced else q, may_be_nan


def _quantile(
    a, q, axis, keepdims: bool, method: str, what: str, skip_nan: bool, whole: int = 1, weights=None
) -> Array:
    """`whole`: what q says for the largest element."""
    a = _weft.promote_inexact(_array(a))
    if weights is not None and method != "inverted_cdf":
        raise value_error(f"{what}: weights need method='inverted_cdf', got {method!r}")
    q, may_be_nan = _share(q, whole, a, what)
    if method not in _METHODS:
        raise value_error(f"{what}: there is no method {method!r}; the methods are {', '.join(_METHODS)}")
    axes = list(range(a.ndim)) if axis is None else axes_of(axis, a.ndim, what)
    for d in axes:
        if isinstance(a.shape[d], _weft.Dim):
            raise not_implemented(
                f"{what}: axis {d} of {a.type} has the symbolic size {a.shape[d]}; how many elements there are must be "
                "known"
            )
    kept = tuple(1 if d in axes else n for d, n in enumerate(a.shape))
    behind = list(range(a.ndim - len(axes), a.ndim))
    weights = None if weights is None else _weft.moveaxis(_weights(weights, a, axes, what), axes, behind)
    a = _weft.moveaxis(a, axes, behind)
    rest, own = a.shape[: a.ndim - len(axes)], a.shape[a.ndim - len(axes) :]
    n = functools.reduce(operator.mul, own, 1)
    if n == 0:
        return _weft.full(q.shape + (kept if keepdims else rest), float("nan"), a.dtype)
    a = a.reshape((*rest, n))
    if method == "inverted_cdf":
        each = ones(a.shape, a.dtype) if weights is None else weights.reshape((*rest, n))
        out = _weighted(a, each, q.reshape(-1), skip_nan)
        return _weft.moveaxis(out, -1, 0).reshape(q.shape + (kept if keepdims else rest))
    absent = a != a
    # What is NaN has no derivative.
    a = sort(_weft.where(absent if skip_nan else any(absent, -1, keepdims=True), float("nan"), a), -1)  # NaN come last
    if skip_nan:
        last = clip(sum(a == a, -1, keepdims=True) - 1, 0, None).astype(a.dtype)
        at = lambda place: along(a, place.astype("int32"), -1)
    else:
        last = _weft.array(n - 1, a.dtype, False)
        at = lambda place: _weft.take(a, place.astype("int32"), a.ndim - 1, "clip")
    place = q.reshape(-1).astype(a.dtype) * last
    low, high = floor(place), ceil(place)
    below, above, share = at(low), at(high), place - low
    if method == "linear":
        out = _between(below, above, share)
    elif method == "midpoint":
        out = (below + above) / 2
    elif method == "nearest":
        out = _weft.where((share > 0.5) | ((share == 0.5) & (low % 2 == 1)), above, below)
    else:
        out = below if method == "lower" else above
    if may_be_nan and method != "linear":
        out = _weft.where(place == place, out, float("nan"))
    return _weft.moveaxis(out, -1, 0).reshape(q.shape + (kept if keepdims else rest))


def _weights(weights, a: Array, axes: list[int], what: str) -> Array:
    """Weights in the shape of the array."""
    weights = _array(weights).astype(a.dtype)
    if weights.ndim == 1 != a.ndim and len(axes) == 1:
        weights = weights.reshape([-1 if d == axes[0] else 1 for d in range(a.ndim)])
    elif weights.shape != a.shape:
        raise value_error(f"{what}: weights must have the shape {a.shape}, or that of one axis, got {weights.shape}")
    return _weft.broadcast_to(weights, a.shape)


def _weighted(a: Array, weights: Array, q: Array, skip_nan: bool) -> Array:
    """Of each row the first element, in ascending order, up to which there is a share of q of all weights."""
    absent = a != a
    if skip_nan:
        weights = _weft.where(absent, 0, weights)
    order = argsort(a, -1)
    a, weights = (along(x, order, -1) for x in (a, weights))
    reached = cumsum(weights, -1)
    share = _weft.where(reached == 0, -1, reached / reached[..., -1:])
    place = sum(share[..., None, :] < q.astype(a.dtype)[:, None], -1)
    out = along(a, clip(place, 0, a.shape[-1] - 1), -1)
    unknown = (q != q) if skip_nan else (q != q) | any(absent, -1, keepdims=True)
    return _weft.where(unknown, float("nan"), out)


def _between(below: Array, above: Array, share: Array) -> Array:
    """From `below` to `above` by a share in [0, 1]: never outside, and either of them where they are equal."""
    difference = above - below
    # Infinities have none. NaN takes the way of numbers.
    far = (_weft.absolute(difference) == float("inf")) | ((below == above) & (difference != difference))
    apart = _weft.where(far, 0, difference)
    inside = _weft.where(share < 0.5, below + apart * share, above - apart * (1 - share))
    # An infinity times a share of 0 is NaN.
    left_out = ~far | (share == 0)
    first, second = _weft.where(left_out, 0, below), _weft.where(left_out, 0, above)
    outside = _weft.where(share == 0, below, first * (1 - share) + second * share)
    return _weft.where(far, outside, inside)


def quantile(
    a: NestedLike,
    q: NestedLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    method: str = "linear",
    *,
    weights: NestedLike | None = None,
) -> Array:
    """Quantiles over axes, in floating point; NaN where an element is.

    Args:
        method: between two neighbours "linear" interpolates, "lower" and "higher" take one of them, "nearest" the
            nearer (the one at an even place), "midpoint" their mean. "inverted_cdf" takes the first element up to which
            there is a share of q of all.

    Returns: array of the shape of q, followed by the array's without the axes.

    Raises:
        TypeError: q is a list, or something else that is no array or number.
        ValueError: there is no such method, or a known q is outside [0, 1].
        NotImplementedError: the size of an axis is a symbol.

    Source: Hyndman and Fan, "Sample quantiles in statistical packages", 1996: "linear" is their type 7.

    Example:
        >>> wnp.quantile(wnp.array([1.0, 2.0, 4.0, 8.0]), wnp.array([0.0, 0.5, 1.0]))
        Array([1., 3., 8.], dtype=float32)
    """
    return _quantile(a, q, axis, keepdims, method, "quantile", False, 1, weights)


def percentile(
    a: NestedLike,
    q: NestedLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    method: str = "linear",
    *,
    weights: NestedLike | None = None,
) -> Array:
    """Quantiles over axes, with q in percent.

    Args:
        q: which ones, numbers of any shape in [0, 100]; NaN gives NaN, and a traced one outside counts as the nearer
            end.

    Returns: array of the shape of q, followed by the array's without the axes.

    Raises:
        TypeError: q is a list, or something else that is no array or number.
        ValueError: there is no such method, or a known q is outside [0, 100].
        NotImplementedError: the size of an axis is a symbol.

    Example:
        >>> wnp.percentile(wnp.array([1.0, 2.0, 4.0, 8.0]), 25)
        Array(1.75, dtype=float32)
    """
    return _quantile(a, q, axis, keepdims, method, "percentile", False, 100, weights)


def median(a: NestedLike, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
    """The middle element over axes (the mean of the two middle ones), in floating point; NaN where an element is.

    Returns: array without the axes.

    Raises:
        NotImplementedError: the size of an axis is a symbol.

    Example:
        >>> wnp.median(wnp.array([[1, 5, 2], [7, 3, 9]]), axis=1)
        Array([2., 7.], dtype=float32)
    """
    return _quantile(a, 0.5, axis, keepdims, "midpoint", "median", False)


def nanquantile(
    a: NestedLike,
    q: NestedLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    method: str = "linear",
    *,
    weights: NestedLike | None = None,
) -> Array:
    """Quantiles over axes, NaN left out; NaN where there are only those.

    Returns: array of the shape of q, followed by the array's without the axes.

    Raises:
        TypeError: q is a list, or something else that is no array or number.
        ValueError: there is no such method, or a known q is outside [0, 1].
        NotImplementedError: the size of an axis is a symbol.

    Source: Hyndman and Fan, "Sample quantiles in statistical packages", 1996.

    Example:
        >>> wnp.nanquantile(wnp.array([1.0, wnp.nan, 2.0, 4.0]), 0.5)
        Array(2., dtype=float32)
    """
    return _quantile(a, q, axis, keepdims, method, "nanquantile", True, 1, weights)


def nanpercentile(
    a: NestedLike,
    q: NestedLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    method: str = "linear",
    *,
    weights: NestedLike | None = None,
) -> Array:
    """Quantiles over axes, with q in percent, NaN left out; NaN where there are only those.

    Args:
        q: which ones, numbers of any shape in [0, 100]; NaN gives NaN, and a traced one outside counts as the nearer
            end.

    Returns: array of the shape of q, followed by the array's without the axes.

    Raises:
        TypeError: q is a list, or something else that is no array or number.
        ValueError: there is no such method, or a known q is outside [0, 100].
        NotImplementedError: the size of an axis is a symbol.

    Example:
        >>> wnp.nanpercentile(wnp.array([1.0, wnp.nan, 2.0, 4.0]), 50)
        Array(2., dtype=float32)
    """
    return _quantile(a, q, axis, keepdims, method, "nanpercentile", True, 100, weights)


def nanmedian(a: NestedLike, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
    """The middle number over axes (the mean of the two middle ones), NaN left out; NaN where there are only those.

    Returns: array without the axes.

    Raises:
        NotImplementedError: the size of an axis is a symbol.

    Example:
        >>> wnp.nanmedian(wnp.array([1.0, wnp.nan, 2.0, 4.0]))
        Array(2., dtype=float32)
    """
    return _quantile(a, 0.5, axis, keepdims, "midpoint", "nanmedian", True)


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "method": "between two neighbours, as for quantile.",
    "weights": 'what each element counts, an array of the shape of a or of one axis, for the method "inverted_cdf".',
    "q": "which ones, numbers of any shape in [0, 1]; NaN gives NaN, and a traced one outside counts as the nearer "
    "end.",
}

_docs.complete(globals(), _PARAMETERS | _AXES, arrays=True)
