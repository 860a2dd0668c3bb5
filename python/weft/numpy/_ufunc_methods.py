"""reduce, accumulate, at, outer and reduceat of weft.numpy.add and its like: what they do is in _ufunc.py, which is
imported when one of them is first asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _weft

_ATTRIBUTES = ("nin", "nout", "nargs", "identity", "_func")
_METHODS = ("reduce", "accumulate", "at", "outer", "reduceat")


def _ask(function: Any, name: str) -> Any:
    from ._ufunc import methods_of

    return getattr(methods_of(function), name)


def _call(function: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    return _ask(function, name)(*args, **kwargs)


for _name in (*_ATTRIBUTES, *_METHODS):
    setattr(_weft.Operation, _name, property(functools.partial(_ask, name=_name)))


def attach(function: Callable[..., Any]) -> None:
    """... of a function that is no operation of the IR's."""
    for name in _METHODS:
        setattr(function, name, functools.partial(_call, function, name))
    for name, value in {"nin": 2, "nout": 1, "nargs": 2, "identity": float("-inf"), "_func": function}.items():
        setattr(function, name, value)
