"""What traced control flow shares: whether something is traced, and how a piece of Python becomes a region."""

from __future__ import annotations

import contextlib
import functools
import threading
import types
from collections.abc import Callable
from typing import Any

from .. import _weft
from .._core import tree as _tree
from .errors import calls_itself, user_function, user_place

_LIMIT = 75  # Python has 1000 frames, and each takes nine


class _Depth(threading.local):
    value = 0


_depth = _Depth()


def in_region() -> bool:
    """Whether what runs now becomes part of a traced branch or loop."""
    return _depth.value > 0


class region:
    """Counts nested branches and loops: a function that calls itself in a branch would be traced without end."""

    def __enter__(self) -> None:
        if _depth.value >= _LIMIT:
            if calls_itself():
                raise RecursionError(
                    f"autograph: {user_place()}: {_LIMIT} traced branches and loops inside each other. "
                    f"'{user_function()}' calls itself under a traced condition, and is traced again at every call, "
                    "without end; write it as a loop"
                )
            raise RecursionError(
                f"autograph: {user_place()}: {_LIMIT} traced branches and loops of '{user_function()}' are inside each "
                "other, and no more can be. The `elif`s of an `if`, and what follows an early `return`, count as "
                "inside where their tests call functions: call those before and test what they return, or choose with "
                "weft.switch"
            )
        _depth.value += 1

    def __exit__(self, *_: object) -> None:
        _depth.value -= 1


def traced(value: Any) -> bool:
    return isinstance(value, _weft.Tracer)


def truth(value: Any) -> Any:
    """The truth of a value as Python's `if` takes it: a bool, or a traced one."""
    if not traced(value):
        return bool(value)
    if value.shape and value.size == 1:
        value = value.reshape(())
    return _weft.astype(value, "bool")


def trace_region(function: Callable[[list], list], specs: list, name: str, kind: str):
    """Traces function(tracers for specs) -> list of arrays."""
    with region():
        return _weft.trace(function, specs, [""] * len(specs), name, kind, [False] * len(specs))


def reaches_traced(*functions: Callable) -> bool:
    """Whether Python functions use, from around them, anything that holds a traced value."""
    seen: set[int] = set()
    return any(_reaches(f, seen, 0) for f in functions)


def _reaches(value: Any, seen: set[int], depth: int) -> bool:
    if isinstance(value, _weft.Tracer):
        return True
    if value is None or isinstance(value, (int, float, str, bytes, type, types.ModuleType, _weft.Array)):
        return False
    if id(value) in seen or depth > 8:
        return False
    seen.add(id(value))
    if isinstance(value, types.FunctionType):
        inside: list = list(value.__defaults__ or ())
        for cell in value.__closure__ or ():
            with contextlib.suppress(ValueError):  # no value yet
                inside.append(cell.cell_contents)
        return any(_reaches(v, seen, depth + 1) for v in inside)
    if isinstance(value, types.MethodType):
        return _reaches(value.__self__, seen, depth + 1) or _reaches(value.__func__, seen, depth + 1)
    if isinstance(value, functools.partial):
        return any(_reaches(v, seen, depth + 1) for v in (value.func, *value.args, *value.keywords.values()))
    if isinstance(value, (list, tuple, set, frozenset)):
        return any(_reaches(v, seen, depth + 1) for v in value)
    if isinstance(value, dict):
        return any(_reaches(v, seen, depth + 1) for v in value.values())
    leaves = _tree.leaves(value)
    if not (len(leaves) == 1 and leaves[0] is value):
        return any(_reaches(v, seen, depth + 1) for v in leaves)
    return any(_reaches(v, seen, depth + 1) for v in getattr(value, "__dict__", {}).values())
