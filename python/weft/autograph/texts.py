"""Texts with traced values in them: f-strings, print."""

from __future__ import annotations

import builtins
from typing import Any

from .. import _weft
from .. import tree as _tree
from ..callbacks import io_callback
from .errors import ConversionError, user_place
from .regions import in_region, traced


class Text:
    """An f-string with traced values, for print and assert."""

    def __init__(self, parts: list):
        self.parts = parts  # str, or (value, conversion, format specification)

    def __str__(self) -> str:
        raise ConversionError(
            f"autograph: {user_place()}: this f-string holds traced values; only print and assert can show them"
        )

    def __format__(self, spec: str) -> str:
        return str(self)


def text(*parts: Any) -> Any:
    """An f-string: a str, unless a traced value is in it."""
    if not any(isinstance(p, tuple) and _holds_traced(p[0]) for p in parts):
        return "".join(p if isinstance(p, str) else _format(*p) for p in parts)
    return Text(list(parts))


def _format(value: Any, conversion: int, spec: str) -> str:
    if conversion != -1:
        value = repr(value) if conversion == ord("r") else ascii(value) if conversion == ord("a") else str(value)
    return format(value, spec)


def _holds_traced(value: Any) -> bool:
    return any(traced(leaf) for leaf in _tree.leaves(value)) or isinstance(value, Text)


def _escape(s: str) -> str:
    return s.replace("{", "{{").replace("}", "}}")


def message_of(value: Any) -> tuple[str, list]:
    """A text with {} for the values beside it."""
    if not isinstance(value, Text):
        if not _holds_traced(value):
            return _escape(str(value)), []
        return "{}", [value] if traced(value) else _one(value)
    out, values = [], []
    for part in value.parts:
        if isinstance(part, str):
            out.append(_escape(part))
        elif _holds_traced(part[0]):
            out.append("{}")
            values += [part[0]] if traced(part[0]) else _one(part[0])
        else:
            out.append(_escape(_format(*part)))
    return "".join(out), values


def _one(value: Any) -> list:
    raise ConversionError(
        f"autograph: {user_place()}: a message holds a {type(value).__name__} with traced values; give its "
        "arrays one by one"
    )


def print_(*args: Any, sep: str | None = " ", end: str | None = "\n", file: Any = None, flush: bool = False) -> None:
    """print: of traced values, or inside traced control flow, it happens when the program runs."""
    if not in_region() and not any(_holds_traced(a) for a in args):
        builtins.print(*args, sep=sep, end=end, file=file, flush=flush)
        return
    sep = " " if sep is None else sep
    plain = end in (None, "\n") and file is None and not flush
    simple = all(traced(a) or isinstance(a, Text) or not _holds_traced(a) for a in args)
    formatted = any(
        isinstance(a, Text)
        and any(
            not isinstance(p, str) and (p[2] or p[1] != -1 or not traced(p[0])) and _holds_traced(p[0]) for p in a.parts
        )
        for a in args
    )
    if plain and simple and not formatted:
        texts, values = [], []
        for a in args:
            t, v = message_of(a)
            texts.append(t)
            values += v
        _weft.bind("debug_print", values, {"format": _escape(sep).join(texts)})
        return
    # What only Python can format is formatted by Python, from the values.
    held: list = []
    recipe = [[*a.parts] if isinstance(a, Text) else a for a in args]
    leaves, tree = _tree.flatten(recipe)
    spots = [i for i, leaf in enumerate(leaves) if traced(leaf)]
    held = [leaves[i] for i in spots]
    kept = [None if traced(leaf) else leaf for leaf in leaves]
    texts_at = [isinstance(a, Text) for a in args]

    def show(*values: Any) -> None:
        filled = list(kept)
        for i, v in zip(spots, values):
            filled[i] = v.item() if not v.shape else v
        out = _tree.unflatten(tree, filled)
        words = [
            "".join(p if isinstance(p, str) else _format(*p) for p in item) if is_text else item
            for item, is_text in zip(out, texts_at)
        ]
        builtins.print(*words, sep=sep, end=end, file=file, flush=flush)

    io_callback(show, None, *held)
