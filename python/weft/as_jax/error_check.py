"""jax._src.error_check: errors that a program notes while it runs, and that are raised when somebody asks.

    set_error_if(x <= 0, "x must be positive")     # also inside of jit, cond, scan, while_loop
    raise_if_error()

The process holds the number of the first error that was noted. Programs note one by calling the host; in those that are
exported a reference holds it, which is one more result."""

from __future__ import annotations

import json
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import numpy as np

import weft
import weft.numpy as wnp

from .. import _weft
from .._core.errors import value_error
from .export import register_pytree_node_serialization
from .traceback_util import include_frame

_NO_ERROR = int(np.iinfo(np.uint32).max)


class JaxValueError(ValueError):
    """What raise_if_error raises."""


class _Noted:
    """The error that has been noted. In a function that is being exported, a reference holds its number."""

    def __init__(self, ref: Any = None):
        self.number, self.ref = _NO_ERROR, ref

    def note(self, number: Any, failed: Any) -> None:
        """Keeps the number if it is the first and `failed`; both may be traced."""
        if self.ref is not None:
            is_first = self.ref[...] == np.uint32(_NO_ERROR)
            self.ref[...] = wnp.where(is_first & failed, number, self.ref[...])
        elif _weft.is_tracing():
            weft.cond(failed, lambda n: weft.io_callback(_note_now, None, n), lambda n: None, wnp.asarray(number))
        elif failed:
            _note_now(number)


def _note_now(number: Any) -> None:
    if _noted.number == _NO_ERROR:
        _noted.number = int(number)


_noted = _Noted()
_lock = threading.RLock()
_errors: list[tuple[str, Any]] = []  # messages with tracebacks, which are texts for programs that were read


@contextmanager
def error_checking_context() -> Iterator[None]:
    """What is noted inside is apart from what is noted outside."""
    global _noted
    before, _noted = _noted, _Noted()
    try:
        yield
    finally:
        _noted = before


def _users_stack() -> TracebackType | None:
    found: TracebackType | None = None
    frame = sys._getframe(1)
    while frame is not None:
        if include_frame(frame):
            found = TracebackType(found, frame, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return found


def set_error_if(pred: Any, /, msg: str) -> None:
    """Notes an error if any element of `pred` is true when the program runs, unless one has been noted before."""
    with _lock:
        number = np.uint32(len(_errors))
        _errors.append((msg, _users_stack()))
    _noted.note(number, wnp.any(wnp.asarray(pred)))


def raise_if_error() -> None:
    """Raises JaxValueError for the error that was noted, and forgets it; ValueError inside of a traced function."""
    if _weft.is_tracing():
        raise value_error(
            "raise_if_error() should not be called within a traced context, such as within a jitted function."
        )
    number, _noted.number = _noted.number, _NO_ERROR
    if number == _NO_ERROR:
        return
    with _lock:
        known = number < len(_errors)
        message, stack = _errors[number] if known else ("an unknown error occurred in a program that was read", None)
    if isinstance(stack, str):
        raise JaxValueError(f"{message}\nThe original traceback is shown below:\n{stack}")
    raise JaxValueError(message).with_traceback(stack)


@weft.tree_util.register_pytree_node_class
class _ErrorClass:
    """The number of the error that a program has noted, and what numbers mean."""

    def __init__(self, error_code: Any, error_list: list[tuple[str, str]]):
        self.error_code, self.error_list = error_code, error_list

    def tree_flatten(self) -> tuple[tuple[Any], str]:
        return (self.error_code,), json.dumps(self.error_list)

    @classmethod
    def tree_unflatten(cls, data: str, children: Any) -> _ErrorClass:
        return cls(children[0], [(message, stack) for message, stack in json.loads(data)])


register_pytree_node_serialization(
    _ErrorClass,
    serialized_name=f"{_ErrorClass.__module__}.{_ErrorClass.__name__}",
    serialize_auxdata=lambda data: data.encode(),
    deserialize_auxdata=lambda data: data.decode(),
)


def wrap_for_export(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its errors as a further result, for jax.export."""

    def inner(*args: Any, **kwargs: Any) -> Any:
        global _errors, _noted
        with _lock:
            before, outer, _errors = _noted, _errors, []
            try:
                _noted = _Noted(weft.new_ref(np.uint32(_NO_ERROR)))
                out = f(*args, **kwargs)
                number, noted = _noted.ref[...], _errors
            finally:
                _errors, _noted = outer, before
        said = lambda stack: "".join(traceback.format_list(traceback.extract_tb(stack))).rstrip("\n")
        return out, _ErrorClass(number, [(message, said(stack)) for message, stack in noted])

    return inner


def unwrap_from_import(f: Callable[..., Any]) -> Callable[..., Any]:
    """What wrap_for_export has made, read from an export: its errors are noted here."""

    def inner(*args: Any, **kwargs: Any) -> Any:
        out, noted = f(*args, **kwargs)
        with _lock:
            offset = len(_errors)
            _errors.extend(noted.error_list)
        _noted.note(noted.error_code + np.uint32(offset), noted.error_code != np.uint32(_NO_ERROR))
        return out

    return inner
