"""Texts with traced values in them: f-strings, format, print."""

from __future__ import annotations

import builtins
import re
import string
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from .. import _weft
from .._core import tree as _tree
from .._core.errors import of_kind, type_error
from ..callbacks import io_callback
from .errors import ConversionError, user_place
from .regions import in_region, traced


class Text(str):
    """A text with traced values in it, which print and assert show when the program runs. To those that only show it it
    is a str that says what is traced. Its characters are not known: whoever asks for them (a key of a dict, a
    comparison, a length) gets a TracerError."""

    parts: list  # str, or (value, conversion, format specification)

    def __new__(cls, parts: list) -> Text:
        self = super().__new__(cls, "".join(p if isinstance(p, str) else str(p[0]) for p in parts))
        self.parts = parts
        return self

    def __add__(self, other: str) -> Text:
        return _joined([self, other])

    def __radd__(self, other: str) -> Text:
        return _joined([other, self])

    def __bool__(self) -> bool:
        return True  # a number has characters

    def __format__(self, spec: str) -> str:
        if spec:
            unknown(self, "format with a width")
        return str(self)


def unknown(value: str, what: str) -> NoReturn:
    """What is asked of a text, its characters, is not known."""
    raise of_kind(
        _weft.TracerError,
        f"{what}: the text {str(value)!r} has a traced value in it, so its characters are not known while the function "
        "is traced; print and assert can show it. Make texts that decide of static values, or go through "
        "weft.autograph.unroll(range(...))",
    )


def _refusing(name: str) -> Callable:
    def refuse(self: Text, *_: Any, **__: Any) -> NoReturn:
        unknown(self, name)

    return refuse


_KNOWN = frozenset(vars(Text)) | frozenset(("__str__", "__repr__", "__getnewargs__", "__doc__", "maketrans", "__new__"))
for _name in vars(str):
    if _name not in _KNOWN and (callable(getattr(str, _name)) and _name not in vars(object)):
        setattr(Text, _name, _refusing(_name.strip("_")))
for _name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__"):
    setattr(Text, _name, _refusing(_name.strip("_")))


def _joined(texts: Iterable[str]) -> Text:
    return Text([p for t in texts for p in (t.parts if isinstance(t, Text) else [t])])


def text(*parts: Any) -> str:
    """An f-string."""
    if not any(isinstance(p, tuple) and _holds_traced(p[0]) for p in parts):
        return "".join(p if isinstance(p, str) else _format(*p) for p in parts)
    found: list = []
    for p in parts:
        plain = isinstance(p, tuple) and isinstance(p[0], Text) and p[1] != ord("r") and not p[2]
        found += p[0].parts if plain else [p]
    return Text(found)


_PERCENT = re.compile(r"%(?:%|([-+ 0#]*\d*(?:\.\d+)?)([sradifFeEgGxXo]))")


def percent(template: str, values: Any) -> Any:
    """template % values"""
    if isinstance(template, Text):
        unknown(template, "%")
    arguments = values if isinstance(values, tuple) else (values,)
    if isinstance(values, dict) or not any(map(_holds_traced, arguments)):
        return template % values
    parts: list = []
    rest, end = list(arguments), 0
    for field in _PERCENT.finditer(template):
        parts.append(template[end : field.start()])
        end = field.end()
        if field[2] is None:
            parts.append("%")
        elif not rest:
            raise type_error("not enough arguments for format string")
        else:
            spec, kind = field[1].replace("-", "<"), field[2]
            conversion = ord(kind) if kind in "ra" else -1
            parts.append((rest.pop(0), conversion, spec + {"i": "d"}.get(kind, kind) if kind not in "sra" else spec))
    parts.append(template[end:])
    if rest or "%" in _PERCENT.sub("", template):
        raise ConversionError(f"autograph: {user_place()}: {template!r} % values that are traced; write an f-string")
    return text(*parts)


def format_text(template: str, *args: Any, **kwargs: Any) -> str:
    """template.format(*args, **kwargs)"""
    if not any(map(_holds_traced, (*args, *kwargs.values()))):
        return template.format(*args, **kwargs)
    parts: list = []
    formatter, at = string.Formatter(), 0
    for literal, field, spec, conversion in formatter.parse(template):
        parts.append(literal)
        if field is not None:
            if field == "" or field[0] in ".[":
                field, at = f"{at}{field}", at + 1
            value, _ = formatter.get_field(field, args, kwargs)
            parts.append((value, ord(conversion) if conversion else -1, (spec or "").format(*args, **kwargs)))
    return text(*parts)


def str_(*args: Any, **kwargs: Any) -> str:
    if len(args) == 1 and not kwargs and _holds_traced(args[0]):
        return args[0] if isinstance(args[0], Text) else Text([(args[0], -1, "")])
    return builtins.str(*args, **kwargs)


def repr_(value: Any) -> str:
    return Text([(value, ord("r"), "")]) if traced(value) else builtins.repr(value)


def join(separator: str, texts: Iterable[str]) -> str:
    """separator.join(texts)"""
    texts = list(texts)
    if not any(isinstance(t, Text) for t in texts):
        return separator.join(texts)
    return _joined([t for text in texts for t in (separator, text)][1:])


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
    if isinstance(value, BaseException) and len(value.args) == 1 and show is str:
        return _shown(value.args[0], str)
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
    first, last = ("{{", "}}") if isinstance(value, dict) else "()" if isinstance(value, tuple) else "[]"
    end = "," if isinstance(value, tuple) and len(value) == 1 else ""
    return first + ", ".join(texts) + end + last, values


def _is_simple(value: Any) -> bool:
    """Whether message_of can show it."""
    if type(value) in (list, tuple, dict):
        return all(map(_is_simple, value.values() if isinstance(value, dict) else value))
    return traced(value) or isinstance(value, Text) or not _holds_traced(value)


def print_(*args: Any, sep: str | None = " ", end: str | None = "\n", file: Any = None, flush: bool = False) -> None:
    """print: of traced values, or inside traced control flow, it happens when the program runs."""
    if not in_region() and not any(_holds_traced(a) for a in args):
        builtins.print(*args, sep=sep, end=end, file=file, flush=flush)
        return
    sep = " " if sep is None else sep
    plain = end in (None, "\n") and file is None and not flush
    simple = all(map(_is_simple, args))
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
