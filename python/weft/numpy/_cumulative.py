"""Sums and products of all elements up to each."""

from __future__ import annotations

from .. import _weft
from .._core import docs as _docs
from .._core.errors import value_error
from .._weft import Array
from ..typing import DTypeLike, NestedLike
from ._reductions import (
    _AXES,
    _PARAMETERS,
    _array,
    _in_dtype,
    _no_out,
    prod,
    sum,
)

__all__ = [
    "cumsum",
    "cumprod",
    "cumulative_sum",
    "cumulative_prod",
]


def _along(a: Array, axis: int | None) -> Array:
    """As in NumPy a number has one axis, of one element."""
    return a if a.ndim or axis is None else a.reshape(1)


def cumsum(a: NestedLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Partial sums along an axis.

    Args:
        axis: the axis, negative from the end; None: of the flattened array.
        dtype: the dtype to sum in; None: that of the array (booleans and narrow integers: the default integer dtype).

    Returns: array of the shape of a (flattened for axis None).

    Example:
        >>> wnp.cumsum(wnp.array([[1, 2], [3, 4]]), axis=0)
        Array([[1, 2],
               [4, 6]], dtype=int32)
    """
    _no_out(out)
    return _in_dtype(_weft.cumulative("cumsum", _along(_array(a, dtype), axis), axis, False), dtype)


def cumprod(a: NestedLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Partial products along an axis.

    Args:
        axis: the axis, negative from the end; None: of the flattened array.
        dtype: the dtype to multiply in; None: that of the array (booleans and narrow integers: the default integer
            dtype).

    Returns: array of the shape of a (flattened for axis None).

    Example:
        >>> wnp.cumprod(wnp.array([[1, 2], [3, 4]]), axis=1)
        Array([[ 1,  2],
               [ 3, 12]], dtype=int32)
    """
    _no_out(out)
    return _in_dtype(_weft.cumulative("cumprod", _along(_array(a, dtype), axis), axis, False), dtype)


def cumulative_sum(
    x: NestedLike, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Partial sums along an axis, as the array API spells them.

    Args:
        axis: the axis, negative from the end; a vector needs none.
        dtype: the dtype to sum in; None: as for sum.
        include_initial: whether a 0 comes in front, so that the axis is longer by one.

    Returns: array of the shape of x, longer by one along the axis with include_initial.

    Raises:
        ValueError: no axis is given for an array of several dimensions.

    Example:
        >>> wnp.cumulative_sum(wnp.array([1, 2, 3]), include_initial=True)
        Array([0, 1, 3, 6], dtype=int32)
    """
    x = _array(x)
    # Unlike cumsum it sums narrow integers in wider ones, as sum does; so does cumulative_prod.
    return _cumulative(x, axis, sum(x[:0]).dtype if dtype is None else dtype, include_initial, "cumsum", 0)


def cumulative_prod(
    x: NestedLike, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Partial products along an axis, as the array API spells them.

    Args:
        axis: the axis, negative from the end; a vector needs none.
        dtype: the dtype to multiply in; None: as for prod.
        include_initial: whether a 1 comes in front, so that the axis is longer by one.

    Returns: array of the shape of x, longer by one along the axis with include_initial.

    Raises:
        ValueError: no axis is given for an array of several dimensions.

    Example:
        >>> wnp.cumulative_prod(wnp.array([1, 2, 3]), include_initial=True)
        Array([1, 1, 2, 6], dtype=int32)
    """
    x = _array(x)
    return _cumulative(x, axis, prod(x[:0]).dtype if dtype is None else dtype, include_initial, "cumprod", 1)


def _cumulative(x, axis, dtype, include_initial: bool, prim: str, neutral) -> Array:
    x = _array(x, dtype)
    if axis is None:
        if x.ndim != 1:
            raise value_error(
                f"cumulative_{prim[3:]}: give the axis for an array of {x.ndim} dimensions, of shape {x.shape}"
            )
        axis = 0
    out = _in_dtype(_weft.cumulative(prim, x, axis, False), dtype)
    if not include_initial:
        return out
    before = [1 if d == _weft.check_axis(axis, x.ndim, prim) else 0 for d in range(x.ndim)]
    return _weft.pad_constant(out, before, [0] * x.ndim, _weft.full((), neutral, out.dtype))


_docs.complete(globals(), _PARAMETERS | _AXES, arrays=True)
