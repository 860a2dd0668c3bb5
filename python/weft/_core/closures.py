"""What a function can reach beside its arguments."""

from __future__ import annotations

import functools
import itertools
import types
from collections.abc import Collection
from typing import Any

from .. import _weft

# A model in a closure may have any number of parts.
_MOST = 2000
_LEAVES = (str, bytes, int, float, complex, type, types.ModuleType, type(None))


def traced_values(*roots: Any, but: Collection[Any] = ()) -> list:
    """The traced values that these objects hold in closures, defaults, containers and attributes; not those that they
    hold by way of the objects in `but`."""
    found: list = []
    seen: dict[int, Any] = {id(item): item for item in but}
    most = len(seen) + _MOST
    pending = list(roots)
    while pending and len(seen) < most:
        item = pending.pop()
        if isinstance(item, _LEAVES) or id(item) in seen:
            continue
        seen[id(item)] = item
        if _weft.is_traced(item):
            found.append(item)
        else:
            pending.extend(itertools.islice(_parts(item), _MOST))
    return found


def reachable(cls: type, *roots: Any) -> list:
    """The objects of a class that functions can reach: those that traced_values finds, and those that they name among
    the variables of their modules."""
    found: list = []
    seen: dict[int, Any] = {}
    pending = list(roots)
    while pending and len(seen) < _MOST:
        item = pending.pop()
        if isinstance(item, _LEAVES) or id(item) in seen:
            continue
        seen[id(item)] = item
        if isinstance(item, cls):
            found.append(item)
            continue
        pending.extend(itertools.islice(_parts(item), _MOST))
        if isinstance(item, types.FunctionType):
            pending.extend(_variables(item.__code__, item.__globals__))
        elif isinstance(item, _weft.JitFunction):
            pending.append(item._function)
    return found


def _variables(code: types.CodeType, variables: dict) -> list:
    """What a function's code names in its module, unless that is a module, a class or another library's."""
    found = [variables[name] for name in code.co_names if name in variables]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found += _variables(constant, variables)
    home = variables.get("__name__")
    return [x for x in found if getattr(x, "__module__", home) == home or not callable(x)]


def _parts(item: Any):
    if isinstance(item, dict):
        yield from item.values()
    elif isinstance(item, (list, tuple, set, frozenset)):
        yield from item
    elif isinstance(item, types.MethodType):
        yield from (item.__func__, item.__self__)
    elif isinstance(item, functools.partial):
        yield from (item.func, item.args, item.keywords)
    elif isinstance(item, types.CellType):
        try:
            yield item.cell_contents
        except ValueError:  # not yet assigned
            return
    else:
        if isinstance(item, types.FunctionType):
            yield from (item.__closure__, item.__defaults__, item.__kwdefaults__)
        yield from getattr(item, "__dict__", {}).values()
