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
import re
from collections.abc import Callable, Sequence

from . import _weft
from ._errors import type_error

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
        from .program import IR

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


# --- From a program to Python -----------------------------------------------------------------------------------------

_RESERVED = {"prim", "float"}


def _identifier(text: str, taken: set[str], fallback: str) -> str:
    word = re.sub(r"\W", "_", text, flags=re.ASCII) or fallback
    if word[0].isdigit():
        word = "_" + word
    name, n = word, 1
    while name in taken or keyword.iskeyword(name) or name in _RESERVED:
        name, n = f"{word}_{n}", n + 1
    taken.add(name)
    return name


def _letters(index: int) -> str:
    text, n = "", index + 1
    while n > 0:
        text, n = chr(ord("a") + (n - 1) % 26) + text, (n - 1) // 26
    return text


def _attribute(kind: str, value) -> str:
    if kind == "float":
        return repr(value) if value == value and abs(value) != float("inf") else f"float({str(value)!r})"
    if kind in ("bool", "int", "string", "list of ints"):
        return repr(list(value)) if kind == "list of ints" else repr(value)
    if kind in ("mesh", "list of shardings"):
        return f"prim.{kind.removeprefix('list of ')}({value!r})"
    maker = {"shape": "sizes", "list of types": "types", "dtype": "dtype", "list of strings": "names"}[kind]
    return f"prim.{maker}({', '.join(repr(item) for item in value)})"


class _Writer:
    def __init__(self, locations: bool):
        self.locations = locations
        self.lines: list[str] = ["from weft import primitives as prim"]
        self.written: dict = {}
        self.names: set[str] = set()

    def name_for(self, fn) -> str:
        return _identifier(fn.name, self.names, "f")

    def write(self, fn, own: str | None = None) -> str:
        """Writes the function after those that are its regions; returns its name, a free one unless it is given."""
        if fn in self.written:
            return self.written[fn]
        eqns, lines = fn.eqns, []
        values: dict[str, str] = {}
        # A value with the name of a region would hide it, also where the region is used before.
        regions_of = [[self.write(region) for region in e["regions"]] for e in eqns]
        taken: set[str] = {name for regions in regions_of for name in regions}
        for i, hint in enumerate(fn.param_names):
            values[f"%{i}"] = _identifier(hint, taken, "x")
        letters = 0

        def operand(text: str) -> str:
            return values[text.split(":")[0]] if text.startswith("%") else f"prim.literal({text!r})"

        for e, regions in zip(eqns, regions_of, strict=True):
            arguments = [operand(text) for text in e["operands"]]
            if regions:
                arguments.append(f"regions=[{', '.join(regions)}]")
            arguments += [f"{k}={_attribute(e['attr_kinds'][k], v)}" for k, v in e["attr_values"].items()]
            results = []
            for text in e["results"]:
                name = _letters(letters)
                while name in taken or keyword.iskeyword(name) or name in _RESERVED:
                    letters += 1
                    name = _letters(letters)
                letters += 1
                taken.add(name)
                values[text.split(":")[0]] = name
                results.append(name)
            primitive = e["name"] + ("_" if keyword.iskeyword(e["name"]) else "")
            line = f"prim.{primitive}({', '.join(arguments)})"
            if results:
                line = f"{', '.join(results)} = {line}"
            lines.append(f"    {line}" + (f"  # {e['location']}" if self.locations and e["location"] else ""))
        parameters = [values[f"%{i}"] for i in range(len(fn.param_names))]
        returned = [operand(text) for text in fn.results]
        lines.append("    return " + (returned[0] if len(returned) == 1 else f"({', '.join(returned)})"))
        name = own or self.name_for(fn)
        kinds = [
            f"prim.constant({text!r})" if is_constant else repr(text)
            for text, is_constant in zip(fn.param_types, fn.constants)
        ]
        self.lines += ["", "", f"@prim.function({', '.join(kinds)})", f"def {name}({', '.join(parameters)}):", *lines]
        self.written[fn] = name
        return name


def to_python(fn, locations: bool = False) -> tuple[str, str]:
    """(source, name): Python that defines the program as a function of that name: its own, which no region takes from
    it, with a number where Python or the source needs the name."""
    writer = _Writer(locations)
    name = writer.write(fn, writer.name_for(fn))
    return "\n".join(writer.lines) + "\n", name
