"""What docstrings have in common is said here, once.

A docstring has the sections Args, Returns, Raises, Source and Example, in this order. `complete` adds to Args what a
function leaves unsaid about parameters that many functions share, and to Raises what holds for such parameters.
"""

from __future__ import annotations

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
    "device": "where the result lies, a weft.Device or a weft.Sharding; None: on the first device, or as operands do.",
    "out_sharding": "how the result is cut: a weft.NamedSharding, or a PartitionSpec for the mesh around the call.",
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


def complete(
    module: Mapping[str, Any],
    own: Mapping[str, str] | None = None,
    arrays: bool = False,
    errors: Mapping[str, str] | None = None,
) -> None:
    """Completes the docstrings of the functions of a module that are written in Python.

    Args:
        module: its globals; the names in __all__ count.
        own: what parameters mean in this module, before what they mean everywhere.
        arrays: whether its functions take arrays, and refuse what is none with TypeError.
        errors: what else an error is about in this module, by the parameters that a function has.
    """
    errors = _ERRORS | dict(errors or {})
    for name in module["__all__"]:
        function = module[name]
        if type(function) is FunctionType and function.__doc__ and function.__module__ == module["__name__"]:
            code = getattr(function, "__wrapped__", function).__code__
            count = code.co_argcount + code.co_kwonlyargcount
            names = code.co_varnames[: count + bool(code.co_flags & 4) + bool(code.co_flags & 8)]
            function.__doc__ = _with_errors(_with_arguments(function.__doc__, names, own or {}), names, arrays, errors)


# This runs at import, some hundred times: plain searches, nothing that takes texts apart.


def _with_arguments(doc: str, names: tuple[str, ...], own: Mapping[str, str]) -> str:
    before, after, given = "", "", False
    for name in names:
        if f"\n        {name}: " in doc or f"*{name}: " in doc:
            given = True
        elif text := own.get(name) or _SHARED.get(name):
            line = f"        {name}: {text}\n"
            if given:
                after += line
            else:
                before += line
    if not before and not after:
        return doc
    at = doc.find("\n\n    Returns:")
    if at < 0:
        at = len(doc.rstrip())
    if given:
        first = doc.find("\n    Args:\n") + 11
        return f"{doc[:first]}{before}{doc[first:at]}\n{after}{doc[at + 1 :]}"
    return f"{doc[:at]}\n\n    Args:\n{before}{doc[at + 1 :]}"


def _with_errors(doc: str, names: tuple[str, ...], arrays: bool, errors: Mapping[str, str]) -> str:
    lines = ""
    for name, text in errors.items():
        if name in names and text[:-1] not in doc and text not in lines:
            lines += f"        {text}\n"
    if arrays and not _ARRAYS.isdisjoint(names) and _NO_ARRAY[:-1] not in doc:
        lines += f"        {_NO_ARRAY}\n"
    if not lines:
        return doc
    at = doc.find("\n\n    Source:")
    if at < 0:
        at = doc.find("\n\n    Example:")
    title = "" if "\n    Raises:\n" in doc else "\n    Raises:\n"
    return f"{doc[:at]}\n{title}{lines}{doc[at + 1 :]}"
