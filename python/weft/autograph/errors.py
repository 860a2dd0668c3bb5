"""What converted code can raise, and where in the user's program it was."""

from __future__ import annotations

import collections
import os
import sys
import traceback
import types

from .. import _weft
from .._core.errors import PACKAGE
from .._core.tracing import asks_for_hash

_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep


class ConversionError(TypeError):
    """Python control flow that cannot become part of a traced program. A TypeError.

    The message names the construct, its file and line.

    Example:
        >>> try:
        ...     weft.autograph(abs)
        ... except TypeError:
        ...     print("abs is not written in Python")
        abs is not written in Python
        >>> issubclass(weft.autograph.ConversionError, TypeError)
        True
    """


class StructureError(TypeError):
    """A variable of a traced loop or branch changes in a way that arrays cannot: its structure, or a value that is no
    array. A TypeError, whose message names the variable and the line.

    Example:
        >>> issubclass(weft.autograph.StructureError, TypeError)
        True
    """


class FallbackWarning(UserWarning):
    """Python runs a function of jit(capture="script"), for it has a construct that cannot be converted: once for each
    function and construct. A UserWarning.

    Example:
        >>> issubclass(weft.autograph.FallbackWarning, UserWarning)
        True
    """


def mark_as_of_construct(error: Exception) -> None:
    """Says of an exception of a plain class that it is the control flow which cannot be converted."""
    error.of_construct = True  # type: ignore[attr-defined]


def is_of_construct(error: BaseException) -> bool:
    """Whether it says that a construct cannot be part of a traced program, where Python by itself might run it."""
    kinds = (ConversionError, StructureError, _weft.TracerError, RecursionError)
    if isinstance(error, TypeError) and asks_for_hash(error):
        return True
    return isinstance(error, kinds) or getattr(error, "of_construct", False)


def is_of_users_code(error: BaseException) -> bool:
    """Whether a line of the user's raised it, somewhere below the frame that has caught it."""
    return any(not f.f_code.co_filename.startswith(PACKAGE) for f, _ in traceback.walk_tb(error.__traceback__))


def place_of(error: BaseException) -> tuple[str, int] | None:
    """The innermost line of the user's that an exception passed."""
    frames = [(f.f_code.co_filename, line) for f, line in traceback.walk_tb(error.__traceback__)]
    users = [at for at in frames if not at[0].startswith((PACKAGE, "<frozen"))]
    return users[-1] if users else None


def _user_frame() -> types.FrameType:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_FOLDER):
        frame = frame.f_back
    return frame


def user_place() -> str:
    """file:line of the innermost frame outside this folder."""
    frame = _user_frame()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def user_function() -> str:
    """The name of the function in that frame."""
    return _user_frame().f_code.co_name


def calls_itself() -> bool:
    """Whether the user's function that runs is called from itself, over and over."""
    counts: collections.Counter[int] = collections.Counter()  # branches and loops have code of their own
    frame: types.FrameType | None = _user_frame()
    while frame is not None:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            counts[id(frame.f_code)] += 1
        frame = frame.f_back
    return max(counts.values()) >= 8
