"""Integers among the axes of a collective: dimensions of the operand itself, which are reduced before the named axes.

psum(x, ("i", 0))    the sum over the lanes along "i" and over the first dimension of each lane's x
"""

from __future__ import annotations

import operator
from typing import Any

from . import _weft
from ._core.errors import value_error
from ._core.options import JAX_SEMANTICS
from .arguments import axes_of


def divided(axis_name: Any) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """What names axes, and the integers."""
    given = tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)
    dims = tuple(operator.index(axis) for axis in given if hasattr(type(axis), "__index__"))
    return tuple(axis for axis in given if not hasattr(type(axis), "__index__")), dims


def refuse_groups(dims: tuple[int, ...], groups: Any, what: str) -> None:
    """Raises where groups are given together with dimensions."""
    if dims and groups is not None:
        raise value_error(
            f"{what}: axis_index_groups are of places along named axes, but axis_name has the dimensions {dims}; "
            "reduce these by another call"
        )


def summable(x: Any) -> Any:
    """x; JAX sums booleans as integers of 32 bits, whatever the default integers are."""
    if type(x) is bool or not _weft.setting(JAX_SEMANTICS) or _weft.dtype_kind(_weft.abstract(x)[1]) != "bool":
        return x
    return _weft.astype(x, "int32")


# Of booleans.
_OF_BOOLEANS = {"reduce_max": "reduce_or", "reduce_min": "reduce_and"}


def reduced(prim: str, x: Any, dims: tuple[int, ...], what: str) -> Any:
    """x without these dimensions. Sums of booleans are integers.

    Args:
        prim: reduce_sum, reduce_max or reduce_min.
        x: array or number.
        dims: the dimensions, negative from the end.
        what: the function that was called.

    Raises:
        IndexError, ValueError: x has no such dimension; one is there twice.
    """
    x = _weft.array(x, None, False)
    along, kind = sorted(axes_of(dims, x.ndim, what)), _weft.dtype_kind(x.dtype)
    if kind == "complex" and prim != "reduce_sum":
        from .numpy._reductions import complex_extreme

        return complex_extreme(prim, x, tuple(along), False)
    if kind == "bool":
        if prim == "reduce_sum":
            x = summable(x) if _weft.setting(JAX_SEMANTICS) else _weft.astype(x, "int")
        prim = _OF_BOOLEANS.get(prim, prim)
    return _weft.bind(prim, [x], {"dims": along})[0]


def count(x: Any, dims: tuple[int, ...], what: str) -> Any:
    """How many elements are put together along these dimensions: an integer, or a weft.Dim where a size is open."""
    shape = _weft.abstract(x)[0]
    total: Any = 1
    for d in axes_of(dims, len(shape), what):
        total = total * shape[d]
    return total
