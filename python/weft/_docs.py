"""What docstrings have in common is said here, once.

A docstring has the sections Args, Returns, Raises, Source and Example, in this order. `complete` adds to Args what a
function leaves unsaid about parameters that many functions share, and to Raises what holds for such parameters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import FunctionType
from typing import Any

# Parameters that mean the same wherever they occur.
_SHARED = {
    "a": "array, number or nested list of numbers, of any shape.",
    "x": "array or number of any shape.",
    "x1": "array or number of any shape.",
    "x2": "array or number that broadcasts against x1; both are promoted to one dtype.",
    "arr": "array or number of any shape.",
    "m": "array or number of any shape.",
    "ary": "array of one dimension or more.",
    "axis": "the axis, negative from the end.",
    "axes": "the axes, negative from the end.",
    "dtype": "the dtype of the result; None: see above.",
    "out": "must be None: arrays never change.",
    "keepdims": "whether the axes that are gone over stay, with size 1.",
    "where": "booleans that broadcast against the array: the elements that count; None: all.",
    "shape": "the dimensions of the result, an integer or a tuple of them.",
    "key": "the key that determines the numbers: of dtype key, or uint32[2].",
    "size": "how many elements the result has, an integer; needed inside jit, where values are not known.",
    "fill_value": "what fills the result up to size.",
    "mode": 'what indices out of range do: "fill", "clip" or "wrap" (see weft.numpy.take).',
    "precision": "accepted, without effect: products are computed in the precision of their operands.",
    "preferred_element_type": "the dtype of the result; None: that of the promoted operands.",
    "overwrite_a": "accepted, without effect: arrays never change.",
    "overwrite_b": "accepted, without effect: arrays never change.",
    "check_finite": "accepted, without effect: nothing is checked.",
    "loc": "the location: it is subtracted from the values first.",
    "scale": "the scale, > 0: values are divided by it first.",
    "operand": "array of any shape and dtype.",
}

_SECTIONS = ("\n    Returns:", "\n    Raises:", "\n    Source:", "\n    Example:")
_ENTRY = re.compile(r"\n        ((?:\*{0,2}\w+)(?:, \*{0,2}\w+)*): ")


# What else an error is about, by the parameters that a function has.
_ERRORS = {
    "axis": "IndexError: an axis is out of range.",
    "axes": "IndexError: an axis is out of range.",
    "out": "TypeError: out is given.",
}
_NO_ARRAY = "TypeError: an argument is no array, number or list of numbers."
_ARRAYS = frozenset(
    [
        "a",
        "x",
        "x1",
        "arr",
        "ary",
        "m",
        "v",
        "y",
        "z",
        "ar",
        "ar1",
        "a1",
        "array",
        "arrays",
        "element",
        "condition",
        "x2",
        "b",
        "p",
        "f",
        "A",
        "arys",
        "tup",
        "keys",
    ]
)


def complete(module: Mapping[str, Any], own: Mapping[str, str] | None = None, arrays: bool = False) -> None:
    """Completes the docstrings of the functions of a module that are written in Python.

    Args:
        module: its globals; the names in __all__ count.
        own: what parameters mean in this module, before what they mean everywhere.
        arrays: whether its functions take arrays, and refuse what is none with TypeError.
    """
    for name in module["__all__"]:
        function = module[name]
        if type(function) is FunctionType and function.__doc__ and function.__module__ == module["__name__"]:
            code = getattr(function, "__wrapped__", function).__code__
            count = code.co_argcount + code.co_kwonlyargcount
            names = code.co_varnames[: count + bool(code.co_flags & 4) + bool(code.co_flags & 8)]
            function.__doc__ = _with_errors(_with_arguments(function.__doc__, names, own or {}), names, arrays)


def _sections(doc: str, begin: int = 0) -> tuple[str, str]:
    """What stands before the first of the sections from `begin` on, and the rest."""
    at = min((at for at in map(doc.find, _SECTIONS[begin:]) if at >= 0), default=len(doc))
    return doc[:at].rstrip(), doc[at:].strip("\n")


def _with_arguments(doc: str, names: tuple[str, ...], own: Mapping[str, str]) -> str:
    head, rest = _sections(doc)
    head, _, given = head.partition("\n    Args:")
    parts = _ENTRY.split(given)
    said = {entry: text.rstrip() for entry, text in zip(parts[1::2], parts[2::2])}
    entries = {name.strip().lstrip("*"): entry for entry in said for name in entry.split(",")}
    lines = []
    for name in names:
        entry = entries.get(name, name)
        text = said.pop(entry, "") if name in entries else own.get(name) or _SHARED.get(name, "")
        if text:
            lines.append(f"\n        {entry}: {text}")
    return "\n\n".join(part for part in (head.rstrip(), "    Args:" + "".join(lines) if lines else "", rest) if part)


def _with_errors(doc: str, names: tuple[str, ...], arrays: bool) -> str:
    errors = [_ERRORS[name] for name in names if name in _ERRORS]
    if arrays and not _ARRAYS.isdisjoint(names):
        errors.append(_NO_ARRAY)
    errors = [e for e in dict.fromkeys(errors) if e[:-1] not in doc]
    if not errors:
        return doc
    head, rest = _sections(doc, begin=2)
    title = "" if "\n    Raises:" in head else "\n\n    Raises:"
    return f"{head}{title}" + "".join(f"\n        {e}" for e in errors) + "\n\n" + rest
