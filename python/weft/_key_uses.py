"""Where keys are used: marks in programs that are looked at for keys used twice (ir/key_reuse.py), and what is known of
the keys outside of programs."""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from . import _weft
from ._core import options
from ._core.errors import of_kind
from .errors import KeyReuseError

_F = TypeVar("_F", bound=Callable[..., Any])

# How the text of a debug_print begins that marks the use of its operand. Transforms, branches and loops keep such an
# operation, whether anything reads its results or not, and it takes keys; programs with marks never run.
MARK = "use of a key: "


class _Here(threading.local):
    marks = False  # whether what is traced gets marks
    quiet = False  # whether what runs is part of one use, which has been noted


here = _Here()


@contextlib.contextmanager
def marks(on: bool = True) -> Iterator[None]:
    """A context manager: what is traced inside gets marks."""
    before, here.marks = here.marks, on
    try:
        yield
    finally:
        here.marks = before


def note(name: str, key: Any) -> None:
    """Notes that a function of this name uses a key. `key`: whatever was given as one."""
    if here.quiet or not (here.marks or (options.debug_key_reuse.used and options.debug_key_reuse.value)):
        return
    if not str(getattr(key, "dtype", "")).startswith("key") or not isinstance(key, (_weft.Array, _weft.Tracer)):
        return  # words, and keys of other generators, are not followed
    if here.marks:
        mark(name, key)
    elif isinstance(key, _weft.Array) and not _weft.is_tracing():
        if is_used(key):
            message = f"random.{name}: the key has been used before: split keys, and use each of them once"
            raise of_kind(KeyReuseError, message)
        number = id(key)
        _used[number] = weakref.ref(key, lambda _: _used.pop(number, None))


def mark(what: str, key: Any) -> None:
    """Puts a mark into the program that is traced."""
    _weft.bind("debug_print", [key], {"format": MARK + what + "{}"})


@contextlib.contextmanager
def one_use(name: str, key: Any) -> Iterator[None]:
    """A context manager: what is computed inside is one use of the key, and what it does with keys of its own is its
    own affair."""
    note(name, key)
    before, here.quiet = here.quiet, True
    try:
        yield
    finally:
        here.quiet = before


def another(key: Any) -> Any:
    """The same key, as one that has not been used."""
    if here.marks or (options.debug_key_reuse.used and options.debug_key_reuse.value):
        return _weft.random_wrap(_weft.random_unwrap(key)) if str(key.dtype).startswith("key") else key
    return key


def uses_key_once(fun: _F) -> _F:
    """A decorator of functions of a key: see one_use."""

    @functools.wraps(fun)
    def wrapped(key: Any, *args: Any, **kwargs: Any) -> Any:
        with one_use(fun.__name__, key):
            return fun(key, *args, **kwargs)

    return cast(_F, wrapped)


# Keys outside of programs that have been used, by the number of the object.
_used: dict[int, Any] = {}


def is_used(key: Any) -> bool:
    """Whether a key outside of programs has been used."""
    return id(key) in _used
