"""What a function can reach beside its arguments."""

from __future__ import annotations

import functools
import itertools
import types
from collections.abc import Callable, Collection, Iterable
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
        kind: Any = type(item)
        parts = _parts_of(kind)
        if parts is None or id(item) in seen:
            continue
        seen[id(item)] = item
        if _weft.is_traced(item):
            found.append(item)
        else:
            pending.extend(itertools.islice(parts(item), _MOST))
    return found


def reachable(cls: type, *roots: Any) -> list:
    """The objects of a class that functions can reach: those that traced_values finds, and those that they name among
    the variables of their modules."""
    found: list = []
    seen: dict[int, Any] = {}
    pending = list(roots)
    while pending and len(seen) < _MOST:
        item = pending.pop()
        kind: Any = type(item)
        parts = _parts_of(kind)
        if parts is None or id(item) in seen:
            continue
        seen[id(item)] = item
        if isinstance(item, cls):
            found.append(item)
            continue
        pending.extend(itertools.islice(parts(item), _MOST))
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


@functools.lru_cache(maxsize=512)
def _parts_of(cls: type) -> Callable[[Any], Iterable] | None:
    """What gives the objects that one of a class holds; None: it holds none. To ask each object, by isinstance, would
    run the code of classes that say themselves what attributes they have."""
    if issubclass(cls, _LEAVES):
        return None
    for base in cls.__mro__[:-1]:
        if base in _PARTS:
            return _PARTS[base]
        if "__class__" in base.__dict__:  # a proxy
            return lambda item: _PARTS.get(item.__class__, _attributes)(item)
    return _attributes


def _attributes(item: Any) -> Iterable:
    try:  # what a class says of its attributes would run its code
        return object.__getattribute__(item, "__dict__").values()
    except AttributeError:
        return ()


def _of_function(item: types.FunctionType) -> Iterable:
    return (item.__closure__, item.__defaults__, item.__kwdefaults__, *item.__dict__.values())


def _of_cell(item: types.CellType) -> Iterable:
    try:
        return (item.cell_contents,)
    except ValueError:  # not yet assigned
        return ()


def _items(item: Any) -> Iterable:
    return item


_PARTS: dict[type, Callable[[Any], Iterable]] = {
    dict: dict.values,
    list: _items,
    tuple: _items,
    set: _items,
    frozenset: _items,
    types.MethodType: lambda item: (item.__func__, item.__self__),
    functools.partial: lambda item: (item.func, item.args, item.keywords),
    types.CellType: _of_cell,
    types.FunctionType: _of_function,
}
