"""What samples say: their commonest value, ranks and the standard error of their mean."""

from __future__ import annotations

from typing import NamedTuple

from ... import numpy as wnp
from ..._core import docs as _docs
from ..._core.errors import not_implemented, value_error
from ..._weft import Array
from ...typing import NestedLike

__all__ = ["mode", "rankdata", "sem"]


class ModeResult(NamedTuple):
    """The commonest value, and how often it comes."""

    mode: Array
    count: Array  # type: ignore[assignment]  # hides the method of tuples, as in SciPy


def _check(name: str, nan_policy: str) -> None:
    if nan_policy not in ("propagate", "omit", "raise"):
        raise value_error(f"{name}: nan_policy must be 'propagate', 'omit' or 'raise', got {nan_policy!r}")
    if nan_policy == "raise" or (nan_policy == "omit" and name != "sem"):
        raise not_implemented(f"{name}: nan_policy={nan_policy!r}; remove NaNs first, or use 'propagate'")


def _flat(a, axis: int | None, keepdims: bool, name: str) -> tuple[Array, int, tuple[int, ...] | None]:
    """The array, the axis as a number from the front, and the shape of results where that is not what is left."""
    a = wnp.asarray(a)
    if axis is None:
        return a.reshape(-1), 0, (1,) * a.ndim if keepdims else None
    axis = axis + a.ndim if axis < 0 else axis
    if not 0 <= axis < a.ndim:
        raise value_error(f"{name}: axis is out of range for {a.ndim} dimensions")
    return a, axis, (*a.shape[:axis], 1, *a.shape[axis + 1 :]) if keepdims else None


def mode(a: NestedLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """The commonest value along an axis, the smallest of several, and how often it comes.

    Args:
        axis: the axis; None: all of the array as a vector.
        nan_policy: "propagate", the only one here: NaNs are values, all alike.

    Returns: pair (mode, count) of arrays without the axis.

    Raises:
        ValueError: the axis is out of range, or nan_policy is unknown.
        NotImplementedError: nan_policy is "omit" or "raise".

    Example:
        >>> weft.scipy.stats.mode(wnp.array([3, 1, 3, 1, 2]))
        ModeResult(mode=Array(1, dtype=int32), count=Array(2, dtype=int32))
    """
    _check("mode", nan_policy)
    a, axis, shape = _flat(a, axis, keepdims, "mode")
    ordered = wnp.moveaxis(wnp.sort(a, axis), axis, -1)
    # The length of the run of equals that ends at each place.
    same = ordered[..., 1:] == ordered[..., :-1]
    if wnp.issubdtype(a.dtype, wnp.inexact):
        same = same | (wnp.isnan(ordered[..., 1:]) & wnp.isnan(ordered[..., :-1]))
    place = wnp.arange(ordered.shape[-1])
    begins = wnp.concatenate([wnp.ones((*same.shape[:-1], 1), bool), ~same], -1)
    length = place - _running_max(wnp.where(begins, place, 0)) + 1
    best = wnp.argmax(length, -1)[..., None]
    value = wnp.take_along_axis(ordered, best, -1)[..., 0]
    count = wnp.take_along_axis(length, best, -1)[..., 0]
    if shape is not None:
        value, count = value.reshape(shape), count.reshape(shape)
    return ModeResult(value, count)


def _running_max(x: Array) -> Array:
    """The largest so far along the last axis."""
    shift = 1
    while shift < x.shape[-1]:
        x = wnp.concatenate([x[..., :shift], wnp.maximum(x[..., shift:], x[..., :-shift])], -1)
        shift *= 2
    return x


def rankdata(
    a: NestedLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Array:
    """The ranks of values, from 1.

    Args:
        method: what equal values get: "average", "min" or "max" of their ranks, "dense" (ranks without gaps), or
            "ordinal" (in the order in which they stand).
        axis: the axis; None: all of the array as a vector.
        nan_policy: "propagate", the only one here: where there is a NaN all ranks are NaN.

    Returns: array of the shape of a (of its vector), of the default float dtype.

    Raises:
        ValueError: there is no such method, the axis is out of range, or nan_policy is unknown.
        NotImplementedError: nan_policy is "omit" or "raise".

    Example:
        >>> weft.scipy.stats.rankdata(wnp.array([10.0, 30.0, 10.0, 20.0]))
        Array([1.5, 4. , 1.5, 3. ], dtype=float32)
    """
    _check("rankdata", nan_policy)
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise value_error(f"rankdata: method must be average, min, max, dense or ordinal, got {method!r}")
    a, axis, _ = _flat(a, axis, False, "rankdata")
    x = wnp.moveaxis(a, axis, -1)
    order = wnp.argsort(x, -1)
    back = wnp.argsort(order, -1)
    if method == "ordinal":
        ranks = back + 1
    else:
        ordered = wnp.take_along_axis(x, order, -1)
        n = x.shape[-1]
        place = wnp.arange(n)
        edge = wnp.ones((*x.shape[:-1], 1), bool)
        differs = ordered[..., 1:] != ordered[..., :-1]
        begins, ends = wnp.concatenate([edge, differs], -1), wnp.concatenate([differs, edge], -1)
        least = _running_max(wnp.where(begins, place, 0)) + 1
        most = n - wnp.flip(_running_max(wnp.flip(wnp.where(ends, n - 1 - place, 0), -1)), -1)
        if method == "dense":
            sorted_ranks = wnp.cumsum(begins.astype(int), -1)
        elif method == "average":
            sorted_ranks = (least + most).astype(float) / 2
        else:
            sorted_ranks = least if method == "min" else most
        ranks = wnp.take_along_axis(sorted_ranks, back, -1)
    ranks = ranks.astype(float)
    if wnp.issubdtype(a.dtype, wnp.inexact):
        missing = wnp.any(wnp.isnan(x), -1, keepdims=True)
        ranks = wnp.where(missing, float("nan"), ranks)
    return wnp.moveaxis(ranks, -1, axis)


def sem(
    a: NestedLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Array:
    """The standard error of the mean: the standard deviation over the root of how many there are.

    Args:
        axis: the axis; None: all of the array as a vector.
        ddof: what is subtracted from the number of values in the standard deviation.
        nan_policy: "propagate", or "omit": NaNs are left out.

    Returns: array without the axis, of a float dtype.

    Raises:
        ValueError: the axis is out of range, or nan_policy is unknown.
        NotImplementedError: nan_policy is "raise".

    Example:
        >>> weft.scipy.stats.sem(wnp.array([1.0, 2.0, 3.0, 4.0]))
        Array(0.6454972, dtype=float32)
    """
    _check("sem", nan_policy)
    a, axis, shape = _flat(a, axis, keepdims, "sem")
    if nan_policy == "omit":
        count = wnp.sum(~wnp.isnan(a), axis)
        spread, root = wnp.nanstd(a, axis, ddof=ddof), wnp.sqrt(count)
    else:
        spread, root = wnp.std(a, axis, ddof=ddof), wnp.sqrt(wnp.asarray(a.shape[axis], float))
    out = (spread / root).astype(spread.dtype)
    return out if shape is None else out.reshape(shape)


_docs.complete(globals(), {"a": "array of one dimension or more."}, arrays=True)
