"""The arguments of special functions, and those functions that are one operation."""

from __future__ import annotations

from .. import _weft
from .. import numpy as wnp
from .._weft import Array
from ..typing import NestedLike


def _float(x) -> Array:
    return _weft.promote_inexact(wnp.asarray(x))


def _floats(*xs) -> tuple[Array, ...]:
    """Arrays of the float dtype that the arguments have together: Python's numbers are rounded to that alone."""
    return _weft.promote_all_inexact(*[wnp.asarray(x) if isinstance(x, (list, tuple)) else x for x in xs])


def _unary(module: str, prim: str, name: str, what: str, source: str, argument: str, result: str):
    def function(x: NestedLike) -> Array:
        return _weft.bind_elementwise(prim, (_float(x),), {})

    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = f"""{what}

    Returns: array of the shape of x, of a float dtype.

    Source: Abramowitz & Stegun {source}.

    Example:
        >>> weft.scipy.special.{name}(wnp.array({argument}))
        Array({result}, dtype=float32)
    """
    return function
