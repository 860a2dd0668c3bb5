"""Whether arrays are equal, or close."""

from __future__ import annotations

from .. import _weft
from .._core import docs as _docs
from .._weft import Array
from ..typing import ArrayLike, NestedLike
from ._elementwise import isfinite
from ._shape import _together

__all__ = [
    "allclose",
    "array_equal",
    "array_equiv",
    "isclose",
]


def isclose(
    a: NestedLike, b: NestedLike, rtol: ArrayLike = 1e-5, atol: ArrayLike = 1e-8, equal_nan: bool = False
) -> Array:
    """Whether |a - b| <= atol + rtol |b|, element by element; equal infinities are close.

    Returns: array of booleans.

    Example:
        >>> wnp.isclose(wnp.array([1.0, 1.1]), 1.0, rtol=1e-3)
        Array([ True, False], dtype=bool)
    """
    if all(str(getattr(x, "dtype", "")).startswith("key") for x in (a, b)):
        return _weft.binary("equal")(a, b)  # random keys
    a, b = _weft.promote_all_inexact(a, b)
    rtol, atol = (v if isinstance(v, (int, float)) else _weft.array(v, None, False) for v in (rtol, atol))
    finite = isfinite(a) & isfinite(b)
    close = _weft.where(finite, _weft.absolute(a - b) <= atol + rtol * _weft.absolute(b), a == b)
    return close | ((a != a) & (b != b)) if equal_nan else close


def allclose(
    a: NestedLike, b: NestedLike, rtol: ArrayLike = 1e-5, atol: ArrayLike = 1e-8, equal_nan: bool = False
) -> Array:
    """Whether all elements are close: see isclose.

    Returns: array of one boolean.

    Example:
        >>> wnp.allclose(wnp.array([1.0, 2.0]), wnp.array([1.0, 2.0 + 1e-7]))
        Array(True, dtype=bool)
    """
    return _weft.reduce("reduce_and", isclose(a, b, rtol, atol, equal_nan), None, False)


def array_equal(a1: NestedLike, a2: NestedLike, equal_nan: bool = False) -> Array:
    """Whether two arrays have the same shape and elements.

    Args:
        equal_nan: whether NaN equals NaN.

    Returns: array of one boolean.

    Example:
        >>> wnp.array_equal(wnp.array([1, 2]), wnp.array([1, 2]))
        Array(True, dtype=bool)
    """
    a1, a2 = _together(a1, a2)
    if a1.shape != a2.shape:
        return _weft.array(False, None, True)
    same = a1 == a2
    if equal_nan:
        same = same | ((a1 != a1) & (a2 != a2))
    return _weft.reduce("reduce_and", same, None, False)


def array_equiv(a1: NestedLike, a2: NestedLike) -> Array:
    """Whether two arrays have the same elements after broadcasting; False where they do not broadcast.

    Returns: array of one boolean.

    Example:
        >>> wnp.array_equiv(wnp.array([1, 1]), 1)
        Array(True, dtype=bool)
    """
    a1, a2 = _together(a1, a2)
    try:
        _weft.broadcast_shapes(a1.shape, a2.shape)
    except TypeError:
        return _weft.array(False, None, True)
    return _weft.reduce("reduce_and", a1 == a2, None, False)


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "a1": "array, number or nested list of numbers.",
    "a2": "array, number or nested list of numbers.",
    "atol": "the absolute tolerance.",
    "b": "array or number that broadcasts against a.",
    "equal_nan": "whether NaN is close to NaN.",
    "rtol": "the relative tolerance.",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
