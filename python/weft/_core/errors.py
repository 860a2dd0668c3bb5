"""The exceptions that the package's Python code raises, with the user's line in their messages:

    raise type_error(f"switch: the index must be a single integer, got {text}")

Its C++ code does the same (ir/error.h, python/native/errors.cc). What the user's own functions raise stays as it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container
from types import TracebackType
from typing import TypeVar

from .. import _weft

# The folder of weft: what is in other folders is not its own code.
PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")

_E = TypeVar("_E", bound=Exception)
_JAX_SEMANTICS = 3  # as in tracer/context.h


def is_one_of(given: object, known: Container) -> bool:
    """Whether an argument is one of those that are known; what has no hash, as a list, is none."""
    try:
        return given in known
    except TypeError:
        return False


def type_error(message: str, traceback: TracebackType | None = None) -> TypeError:
    """`traceback`: of the exception in place of which this one is raised, whose innermost line comes first."""
    line = "" if traceback is None else _innermost(traceback)
    kind = _weft.ArgumentError if _weft.setting(_JAX_SEMANTICS) else TypeError
    return kind(f"{message}\n{line}\n{_weft.user_stack()}".rstrip() if line else at_line(message))


def value_error(message: str) -> ValueError:
    return (_weft.ArgumentError if _weft.setting(_JAX_SEMANTICS) else ValueError)(at_line(message))


def sharding_type_error(message: str) -> Exception:
    """ShardingTypeError with the user's line."""
    return _weft.ShardingTypeError(at_line(message))


def index_error(message: str) -> IndexError:
    return (_weft.AxisError if _weft.setting(_JAX_SEMANTICS) else IndexError)(at_line(message))


def name_error(message: str) -> NameError:
    return NameError(_said(message))


def key_error(message: str) -> KeyError:
    return KeyError(_said(message))


def recursion_error(message: str) -> RecursionError:
    return RecursionError(_said(message))


class MissingRule(TypeError, AttributeError):
    """A function with rules of its own has none: a TypeError, and JAX's AttributeError."""


def missing_rule(message: str) -> MissingRule:
    return MissingRule(at_line(message))


def of_kind(kind: type[_E], message: str) -> _E:
    """An exception of a class of Weft's that is raised in few places."""
    return kind(at_line(message))


def in_hook(kind: type[_E], message: str) -> _E:
    """An exception of what the native module calls in the middle of an operation, which the message names."""
    stack = _weft.user_stack()
    return kind(f"{message}\n{stack}" if stack else message)


def unexpected_tracer(message: str) -> Exception:
    return _weft.UnexpectedTracerError(at_line(message))


def not_concrete(what: str, error: Exception) -> Exception:
    """What to raise in the place of a TracerError, where it is known which argument (`what`) must be known."""
    return _weft.ConcretizationTypeError(f"{what}: {error.args[0]}")


def runtime_error(message: str) -> RuntimeError:
    return RuntimeError(_said(message))


def not_implemented(message: str) -> NotImplementedError:
    return NotImplementedError(_said(message))


def foreign(error: _E) -> _E:
    """An exception of something that the package called, caught there: `raise foreign(error)`.

    It gets the line if it was raised at the call itself: by a library written in C, or by Python because a function
    does not take these arguments. If it comes from deeper, from a function of the user's, it stays as it is.
    """
    at = error.__traceback__
    while at is not None and at.tb_frame.f_code.co_filename.startswith(PACKAGE):
        at = at.tb_next
    if at is None and error.args:
        error.args = (_said(str(error.args[0])), *error.args[1:])
    return error


def _innermost(traceback: TracebackType) -> str:
    """The user's innermost line of a traceback, as user_stack() writes one; empty where there is none."""
    line = ""
    at: TracebackType | None = traceback
    while at is not None:
        code = at.tb_frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            line = f"  at {code.co_filename}:{at.tb_lineno} in {code.co_qualname}"
        at = at.tb_next
    return line


# What a message of an exception of one of Python's own classes becomes; weft.as_jax adds JAX's words. Weft's classes
# have them of themselves.
in_other_words: Callable[[str], str] = str


def _said(message: str) -> str:
    return in_other_words(at_line(message))


def at_line(message: str) -> str:
    """The message, which names the function that the user called, then the user's stack, innermost line first; as it is
    where it has one."""
    if "\n  at " in message:
        return message
    # What a user gave may have half of a surrogate pair, which UTF-8 cannot say.
    message = message.encode("utf-8", "backslashreplace").decode()
    message, stack = _weft.naming_the_call(message), _weft.user_stack()
    return f"{message}\n{stack}" if stack else message
