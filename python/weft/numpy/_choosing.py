"""Elements chosen by conditions, or limited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _weft
from .._core import docs as _docs
from .._core.errors import value_error
from .._weft import Array
from ..typing import ArrayLike, NestedLike
from ._dtypes import finfo, iscomplexobj
from ._elementwise import _floats, imag, isnan, real
from ._indexing import nonzero
from ._primitives import greater, less, maximum, minimum
from ._shape import _together

__all__ = [
    "clip",
    "fmax",
    "fmin",
    "heaviside",
    "nan_to_num",
    "piecewise",
    "select",
    "where",
]


def where(
    condition: NestedLike,
    x: NestedLike | None = None,
    y: NestedLike | None = None,
    *,
    size: int | None = None,
    fill_value: NestedLike | None = None,
) -> Any:
    """x where a condition holds, else y. With the condition alone: the indices where it holds, as nonzero.

    Both x and y are computed; where the one that is not chosen has an infinite derivative, the gradient is NaN: replace
    its argument by a harmless one first.

    Args:
        condition: array of booleans (or numbers: whether they are not 0).
        x: array or number that broadcasts against the condition.
        y: array or number that broadcasts against the condition.
        size: with the condition alone inside jit: how many indices the result has.
        fill_value: with size: what fills the result.

    Returns: array of the common shape and dtype; or a tuple of int32 vectors, one per dimension of the condition.

    Example:
        >>> wnp.where(wnp.array([True, False, True]), wnp.array([1, 2, 3]), 0)
        Array([1, 0, 3], dtype=int32)
        >>> wnp.where(wnp.array([True, False, True]))
        (Array([0, 2], dtype=int32),)
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    return _weft.where(condition, x, y)


def select(condlist: Sequence[NestedLike], choicelist: Sequence[NestedLike], default: NestedLike = 0) -> Array:
    """For each element the first choice whose condition holds, else a default.

    Args:
        choicelist: list of as many arrays or numbers.
        default: array or number for elements without condition that holds.

    Returns: array of the common shape and dtype.

    Raises:
        ValueError: the lists have different lengths.

    Example:
        >>> x = wnp.arange(4)
        >>> wnp.select([x < 1, x > 2], [x - 10, x * 10], -1)
        Array([-10,  -1,  -1,  30], dtype=int32)
    """
    if len(condlist) != len(choicelist):
        raise value_error(f"select: {len(condlist)} conditions for {len(choicelist)} choices")
    out: Any = default
    for condition, choice in reversed(list(zip(condlist, choicelist))):
        out = _weft.where(condition, choice, out)
    return out


def piecewise(x: NestedLike, condlist: Sequence[NestedLike], funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    """Functions chosen by conditions, element by element, by the last one that holds; all of them are computed.

    Args:
        funclist: list of functions of x or numbers, one per condition, and one more for the rest (0).
        *args: further arguments of the functions.
        **kw: further arguments of the functions.

    Returns: array of the shape and dtype of x.

    Raises:
        ValueError: there are not as many functions.

    Example:
        >>> x = wnp.array([-2.0, 3.0])
        >>> wnp.piecewise(x, [x < 0], [lambda v: -v, lambda v: v * 10])
        Array([ 2., 30.], dtype=float32)
    """
    x, n = _weft.array(x, None, False), len(condlist)
    if len(funclist) not in (n, n + 1):
        raise value_error(f"piecewise: {len(funclist)} functions for {n} conditions; expected {n} or {n + 1}")
    values = [f(x, *args, **kw) if callable(f) else _weft.array(f, x.dtype, False) for f in funclist]
    # Where several conditions hold the last one counts, as in NumPy.
    out = select(list(condlist)[::-1], values[:n][::-1], values[n] if len(values) > n else 0)
    return _weft.broadcast_to(_weft.array(out, None, False), x.shape).astype(x.dtype)


def clip(
    a: NestedLike,
    min: ArrayLike | None = None,
    max: ArrayLike | None = None,
    *,
    a_min: ArrayLike | None = None,
    a_max: ArrayLike | None = None,
) -> Array:
    """Numbers limited to an interval.

    Args:
        a: array or number of any shape.
        min: array or number: the lower end; None: none.
        max: array or number: the upper end; None: none. Wins where it is below min.
        a_min: another name of min.
        a_max: another name of max.

    Returns: array of the common shape and dtype.

    Example:
        >>> wnp.clip(wnp.array([1, 5, 9]), 2, 6)
        Array([2, 5, 6], dtype=int32)
    """
    out: Any = _weft.array(a, None, False) if isinstance(a, (list, tuple)) else a
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    for x in (a, low, high):
        if x is not None and iscomplexobj(x):
            raise value_error("clip: complex numbers have no order and cannot be clipped; clip their parts")
    if low is not None:
        out = maximum(out, low)
    if high is not None:
        out = minimum(out, high)
    return _weft.array(out, None, False)


def nan_to_num(
    x: NestedLike, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Array:
    """Numbers in place of NaN and the infinities.

    Args:
        copy: accepted, without effect: arrays never change.
        nan: what NaN becomes.
        posinf: what +infinity becomes; None: the largest finite number.
        neginf: what -infinity becomes; None: the smallest finite number.

    Returns: array of the shape and dtype of x.

    Example:
        >>> wnp.nan_to_num(wnp.array([1.0, wnp.nan, wnp.inf]), posinf=9.0)
        Array([1., 0., 9.], dtype=float32)
    """
    del copy
    x = _weft.array(x, None, False)
    if not _weft.is_inexact(x.dtype):
        return x
    if _weft.dtype_kind(x.dtype) == "complex":
        parts = [nan_to_num(part, True, nan, posinf, neginf) for part in (real(x), imag(x))]
        return _weft.bind_elementwise("complex", tuple(parts), {})
    info = finfo(x.dtype)
    high, low = float(info.max) if posinf is None else posinf, float(info.min) if neginf is None else neginf
    # Arrays take the dtype of x, as numbers do.
    as_x = lambda value: _weft.astype(value, x.dtype) if hasattr(value, "dtype") else value
    x = _weft.where(x != x, as_x(nan), x)
    x = _weft.where(x == float("inf"), as_x(high), x)
    return _weft.where(x == float("-inf"), as_x(low), x)


def heaviside(x1: NestedLike, x2: NestedLike) -> Array:
    """The step function: 0 for x1 < 0, x2 for x1 = 0, 1 for x1 > 0; NaN stays.

    Args:
        x2: array or number: the value at 0.

    Returns: array of the common shape, of a float dtype.

    Example:
        >>> wnp.heaviside(wnp.array([-1.0, 0.0, 2.0]), 0.5)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    x1, x2 = _floats(x1, x2)
    step = _weft.where(x1 < 0, 0, _weft.where(x1 > 0, 1, x2))
    return _weft.where(x1 != x1, x1, step)


def fmax(x1: NestedLike, x2: NestedLike) -> Array:
    """The larger; a NaN loses against a number.

    Args:
        x1: array of any shape.

    Returns: array of the common shape and dtype.

    Example:
        >>> wnp.fmax(wnp.array([1.0, wnp.nan]), wnp.array([0.0, 2.0]))
        Array([1., 2.], dtype=float32)
    """
    x1, x2 = _together(x1, x2)
    return _weft.where(greater(x1, x2) | isnan(x2), x1, x2)


def fmin(x1: NestedLike, x2: NestedLike) -> Array:
    """The smaller; a NaN loses against a number.

    Args:
        x1: array of any shape.

    Returns: array of the common shape and dtype.

    Example:
        >>> wnp.fmin(wnp.array([1.0, wnp.nan]), wnp.array([0.0, 2.0]))
        Array([0., 2.], dtype=float32)
    """
    x1, x2 = _together(x1, x2)
    return _weft.where(less(x1, x2) | isnan(x2), x1, x2)


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "condlist": "list of arrays of booleans.",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
