"""Texts with traced values in them: f-strings, print."""

from __future__ import annotations

import builtins
from collections.abc import Callable
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

    def __add__(self, other: Any) -> Text:
        return Text([*self.parts, *(other.parts if isinstance(other, Text) else ["" + other])])

    def __radd__(self, other: str) -> Text:
        return Text(["" + other, *self.parts])

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
    return any(traced(leaf) or isinstance(leaf, Text) for leaf in _tree.leaves(value))


def escape(s: str) -> str:
    return s.replace("{", "{{").replace("}", "}}")


def message_of(value: Any) -> tuple[str, list]:
    """A text with {} for the values beside it."""
    if isinstance(value, Text):
        parts = [(escape(p), []) if isinstance(p, str) else _field(*p) for p in value.parts]
        return "".join(t for t, _ in parts), [v for _, values in parts for v in values]
    return _shown(value, str)


def _field(value: Any, conversion: int, spec: str) -> tuple[str, list]:
    if traced(value):
        return ("{:" + spec + "}" if spec else "{}"), [value]
    if _holds_traced(value) and not spec:
        return _shown(value, str if conversion == -1 else repr)
    return escape(_format(value, conversion, spec)), []


def _shown(value: Any, show: Callable[[Any], str]) -> tuple[str, list]:
    """What str or repr gives for a value, which may be a list, tuple or dict with traced values in it."""
    if traced(value):
        return "{}", [value]
    if isinstance(value, Text):
        text, values = message_of(value)
        return (text if show is str else f"'{text}'"), values
    if not _holds_traced(value):
        return escape(show(value)), []
    if type(value) not in (list, tuple, dict):
        raise ConversionError(
            f"autograph: {user_place()}: a message holds a {type(value).__name__} with traced values; give its arrays "
            "one by one"
        )
    texts, values = [], []
    for part in value.items() if isinstance(value, dict) else value:
        shown = [_shown(v, repr) for v in (part if isinstance(value, dict) else (part,))]
        texts.append(": ".join(t for t, _ in shown))
        values += [v for _, more in shown for v in more]
    first, last = {list: "[]", tuple: "()", dict: ("{{", "}}")}[type(value)]
    end = "," if isinstance(value, tuple) and len(value) == 1 else ""
    return first + ", ".join(texts) + end + last, values


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
        _weft.bind("debug_print", values, {"format": escape(sep).join(texts)})
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
