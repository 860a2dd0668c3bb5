"""Where users find what the package defines."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any


def belong_to(module: dict[str, Any], *members: Any) -> None:
    """Says of the package's classes and functions that they are of the public module which gathers them: pickles and
    help() name it, wherever they are defined. `module`: its globals()."""
    for member in members:
        if isinstance(member, (type, FunctionType)) and member.__module__.startswith("weft."):
            member.__module__ = module["__name__"]


def update_wrapper(wrapper: Any, wrapped: Any, updated: Sequence[str] = ()) -> Any:
    """functools.update_wrapper for what users give: of a callable object the attributes that Python takes from
    functions may be anything, a property or an object of a library's."""
    if type(wrapped).__module__.startswith("weft."):  # whose attributes say what the package does with it
        updated = ()
    texts = [name for name in ("__module__", "__name__", "__qualname__", "__doc__") if _is_text(wrapped, name)]
    functools.update_wrapper(wrapper, wrapped, texts, updated)
    return wrapper


def _is_text(x: Any, name: str) -> bool:
    value = getattr(x, name, None)
    return isinstance(value, str) or (value is None and name == "__doc__" and hasattr(x, name))


def wraps(wrapped: Any, updated: Sequence[str] = ("__dict__",)) -> Callable[[Any], Any]:
    """update_wrapper as a decorator of a function, which gets the attributes of the other one, too."""
    return lambda wrapper: update_wrapper(wrapper, wrapped, updated)


def forwarded(self: Any, name: str) -> Any:
    """__getattr__ of what wraps a function that may have rules of its own: the wrapper has its methods, too."""
    if not name.startswith("_") and "__wrapped__" in self.__dict__:
        return getattr(self.__wrapped__, name)
    raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
