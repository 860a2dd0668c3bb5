"""`in` and `not in` of traced values: equal to one of them."""

from __future__ import annotations

import types
from typing import Any

from .. import _weft
from .._core import tree as _tree
from .._core.errors import value_error
from .regions import traced
from .texts import Text, unknown


def callee(function: Any, may_link: bool = False) -> Any:
    """Set by conversion.py, which knows how to convert."""
    raise NotImplementedError


def contains(item: Any, values: Any) -> Any:
    """item in values"""
    if isinstance(values, (_weft.Tracer, _weft.Array)) and (traced(item) or traced(values)):
        return _truth(values == item, whole=False)
    if hasattr(values, "contains"):  # a range with traced bounds
        return values.contains(item)
    own = getattr(type(values), "__contains__", None)
    if isinstance(own, types.FunctionType) and not isinstance(values, (list, tuple, set, frozenset, dict)):
        found = callee(values.__contains__)(item)
        return _truth(found) if traced(found) else bool(found)
    if isinstance(values, range) and traced(item):
        return _in_range(item, values)
    if isinstance(item, Text) and isinstance(values, str):
        unknown(item, "in")
    if not (traced(item) or _holds_traced(values)):
        return item in values
    result: Any = False
    for value in values:
        equal = value is item or value == item
        if not traced(equal):
            if equal:
                return True
            continue
        result = _truth(equal) if result is False else result | _truth(equal)
    return result


def not_contains(item: Any, values: Any) -> Any:
    """item not in values"""
    found = contains(item, values)
    return ~found if traced(found) else not found


def _holds_traced(values: Any) -> bool:
    return isinstance(values, (list, tuple, dict)) and any(map(traced, _tree.leaves(list(values))))


def _truth(equal: Any, whole: bool = True) -> Any:
    """One boolean. `whole`: of an array that is a member Python asks for its truth, which only one element has."""
    equal = _weft.astype(equal, "bool")
    if not equal.shape:
        return equal
    if whole and equal.size != 1:
        raise value_error("in: the truth of an array with more than one element is ambiguous; compare with .any()")
    return equal.any()


def _in_range(item: Any, r: range) -> Any:
    if not r:
        return False
    first, last = min(r[0], r[-1]), max(r[0], r[-1])
    inside = (item >= first) & (item <= last)
    whole = _weft.dtype_kind(item.dtype) in ("signed", "unsigned")
    return inside if abs(r.step) == 1 and whole else inside & ((item - r.start) % abs(r.step) == 0)


__all__ = ["contains", "not_contains"]
