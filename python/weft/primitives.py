"""Programs written equation by equation, as IR.to_python() writes them.

    from weft import primitives as prim

    @prim.function("f32[3]", "f32[]")
    def f(x, y):
        a = prim.sin(x)
        b = prim.broadcast(y, shape=prim.sizes("3"), dims=[])
        return prim.mul(a, b)

    f(x, y)             # an IR: it can be called, printed, differentiated, mapped

Every primitive of docs/operations.md is a function here: operands by position, attributes by name, regions as a list of
such functions. One that is a keyword of Python ends in "_": prim.and_. Types are checked as everywhere.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Sequence

from . import _weft
from ._core.errors import type_error
from ._core.python_text import to_python
from .program import IR

__all__ = ["constant", "dtype", "function", "literal", "mesh", "names", "shardings", "sizes", "to_python", "types"]


class _Attribute:
    """An attribute of a kind that Python has no literal for."""

    def __init__(self, kind: str, value: list | str):
        self.kind, self.value = kind, value


def sizes(*texts: str) -> _Attribute:
    """Sizes, each a number or an expression in symbols: sizes("3", "2*n")."""
    return _Attribute("shape", [str(t) for t in texts])


def types(*texts: str) -> _Attribute:
    """Types: types("f32[3]", "i32[]")."""
    return _Attribute("list of types", list(texts))


def dtype(text: str) -> _Attribute:
    """An element type: dtype("f32")."""
    return _Attribute("dtype", [text])


def names(*texts: str) -> _Attribute:
    """Strings, perhaps none: names("a", "b")."""
    return _Attribute("list of strings", list(texts))


def mesh(text: str) -> _Attribute:
    """A mesh in the text form: mesh("mesh(x=2,y=4)")."""
    return _Attribute("mesh", text)


def shardings(text: str) -> _Attribute:
    """Shardings in the text form: shardings("shardings((x,-),())")."""
    return _Attribute("list of shardings", text)


def literal(text: str):
    """The array that a literal of the text form denotes: literal("2.0:f32"), literal("[1, 2]:i32[2]")."""
    return _weft.literal(text)


class constant(str):
    """The type of a parameter that is a captured array: constant("f32[100]")."""


def function(*parameters: str) -> Callable[[Callable], object]:
    """Makes the decorated function a program with parameters of these types. The result is a weft.IR.

    Raises TypeError when an equation's operands do not fit, or when the function uses an array from outside.
    """

    def decorate(python_function: Callable):
        given = list(inspect.signature(python_function).parameters)
        if len(given) != len(parameters):
            raise type_error(
                f"'{python_function.__name__}' takes {len(given)} parameters, but {len(parameters)} types are given"
            )
        fn = _weft.trace_program(
            python_function,
            [str(p) for p in parameters],
            [isinstance(p, constant) for p in parameters],
            given,
            python_function.__name__,
        )
        return IR(fn)

    return decorate


def _kind(name: str, value) -> tuple[str, object]:
    if isinstance(value, _Attribute):
        return value.kind, value.value
    for python_type, kind in ((bool, "bool"), (int, "int"), (float, "float"), (str, "string")):
        if isinstance(value, python_type):
            return kind, value
    if isinstance(value, (list, tuple)):
        return "list of ints", list(value)
    raise type_error(f"attribute '{name}' is {value!r}; expected a number, a string, a list of integers, sizes, types")


class _Primitive:
    def __init__(self, name: str):
        self.__name__ = name

    def __call__(self, *operands, regions: Sequence = (), **attributes):
        attrs = {k: _kind(k, v) for k, v in attributes.items()}
        fns = [region._fn for region in regions]
        results = _weft.bind_program(self.__name__, list(operands), attrs, fns)
        return results[0] if len(results) == 1 else tuple(results)

    def __repr__(self) -> str:
        return f"<primitive {self.__name__}>"


def __getattr__(name: str) -> _Primitive:
    plain = name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name
    if name.startswith("__") or not _weft.has_primitive(plain):
        raise AttributeError(f"there is no primitive '{plain}'")
    return _Primitive(plain)
