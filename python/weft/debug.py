"""Looking into compiled code."""

from __future__ import annotations

import string

from . import _weft
from . import tree as _tree

__all__ = ["callback", "check", "print"]


def print(fmt: str, *args, ordered: bool = True, **kwargs) -> None:
    """Prints when the compiled code runs: weft.debug.print("x = {}", x). Fields are {} in order, or {name}; format
    specifications such as {:.3f} are not supported. Prints keep their order."""
    del ordered
    text, values, at = [], [], 0
    for literal, field, spec, conversion in string.Formatter().parse(fmt):
        text.append(literal.replace("{", "{{").replace("}", "}}") if "{" in literal or "}" in literal else literal)
        if field is None:
            continue
        if spec or conversion:
            raise ValueError(
                f"debug.print: the field {{{field}:{spec}}} has a format specification, which is not supported"
            )
        if field == "":
            value, at = args[at], at + 1
        elif field.isdigit():
            value = args[int(field)]
        else:
            value = kwargs[field]
        leaves = _tree.leaves(value)
        text.append(", ".join("{}" for _ in leaves) if len(leaves) != 1 else "{}")
        values += leaves
    _weft.bind("debug_print", values, {"format": "".join(text)})


def check(condition, message: str, *args) -> None:
    """Raises RuntimeError when the compiled code runs and the condition does not hold (everywhere, for an array). {}
    in the
    message stands for the next of args."""
    _weft.bind("assert", [_weft.astype(condition, "bool"), *_tree.leaves(args)], {"message": message})


def callback(function, *args, ordered: bool = True) -> None:
    """Calls function(*args) in Python when the compiled code runs; what it returns is ignored."""
    from .callbacks import io_callback

    io_callback(lambda *values: function(*values) and None, None, *args, ordered=ordered)
