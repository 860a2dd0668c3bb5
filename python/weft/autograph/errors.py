"""What converted code can raise, and where in the user's program it was."""

from __future__ import annotations

import collections
import os
import sys
import types

from .._core.errors import PACKAGE

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
