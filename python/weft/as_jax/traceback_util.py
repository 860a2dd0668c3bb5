"""Tracebacks without the frames of Weft, as the option jax_traceback_filtering says (JAX_TRACEBACK_FILTERING).

A function that calls functions of the user's is a boundary: what is raised inside of it leaves the outermost one with
the user's frames alone."""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

import weft

from .. import compiled
from .._core.errors import PACKAGE
from .effects import control_flow, of_devices
from .settings import config

_exclude_paths: list[str] = [PACKAGE]

_NOTE = (
    "--------------------\nFor simplicity, JAX has removed its internal frames from the traceback of the following "
    "exception. Set JAX_TRACEBACK_FILTERING=off to include these."
)


class UnfilteredStackTrace(Exception):
    """The cause of an exception whose traceback has been shortened: it has the whole one."""


def register_exclusion(path: str) -> None:
    """Leaves out the frames of a file, or of the files of a folder, from now on."""
    _exclude_paths.append(os.path.abspath(path))


def include_filename(filename: str) -> bool:
    """Whether a file is the user's."""
    return not os.path.abspath(filename).startswith(tuple(_exclude_paths))


def include_frame(frame: FrameType) -> bool:
    """Whether a frame's file is the user's."""
    return include_filename(frame.f_code.co_filename)


def filter_traceback(tb: TracebackType | None) -> TracebackType | None:
    """The user's frames of a traceback."""
    out = None
    for frame, line in reversed(list(traceback.walk_tb(tb))):
        if include_frame(frame):
            out = TracebackType(out, frame, frame.f_lasti, line)
    return out


def _mode() -> str:
    mode = config.read("jax_traceback_filtering") or "auto"
    if mode != "auto":
        return str(mode)
    return "tracebackhide" if "IPython" in sys.modules and sys.modules["IPython"].get_ipython() else _QUIET


_QUIET = "quiet_remove_frames"


def _shorten(error: Exception, mode: str) -> None:
    whole = error.__traceback__
    if mode == "tracebackhide":
        for frame, _ in traceback.walk_tb(whole):
            if not include_frame(frame):
                frame.f_locals["__tracebackhide__"] = True
        return
    error.__traceback__ = filter_traceback(whole)
    if mode == _QUIET:
        error.add_note(_NOTE)
        return
    said = "".join(traceback.format_exception_only(type(error), error)).strip()
    cause = UnfilteredStackTrace(
        f"{said}\n\nThe stack trace below excludes JAX-internal frames.\nThe preceding is the original exception that "
        "occurred, unmodified.\n\n--------------------"
    ).with_traceback(whole)
    cause.__cause__, cause.__context__ = error.__cause__, error.__context__
    cause.__suppress_context__ = error.__suppress_context__
    error.__cause__, error.__context__ = cause, None


def api_boundary(fun: Callable[..., Any], **_: Any) -> Callable[..., Any]:
    """The function as a boundary."""

    @functools.wraps(fun)
    def bounded(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            mode = _mode()
            if mode != "off" and not _is_inside(sys._getframe(1)):
                _shorten(error, mode)
            raise  # a bare one leaves the traceback as it was set

    made: Any = bounded
    _codes.add(made.__code__)
    return bounded


_codes = set[Any]()


def _is_inside(frame: FrameType | None) -> bool:
    """Whether a boundary is around a frame."""
    while frame is not None:
        if frame.f_code in _codes:
            return True
        frame = frame.f_back
    return False


def making_boundaries(transform: Callable[..., Any]) -> Callable[..., Any]:
    """A transform whose functions are boundaries."""

    @functools.wraps(transform)
    def made(*args: Any, **kwargs: Any) -> Any:
        result = transform(*args, **kwargs)
        return api_boundary(result) if callable(result) else result

    return made


# Functions of JAX's that call the user's, and transforms whose results do.
_CALLING = {
    "jax": "eval_shape jvp linearize linear_transpose vjp",
    "jax.lax": "associative_scan cond custom_linear_solve custom_root fori_loop map scan switch while_loop",
}
_MAKING = {"jax": "grad hessian jacfwd jacobian jacrev value_and_grad vmap"}
# What JAX calls functions of lax where it refuses effects in them.
_CONTROL_FLOW = {
    "cond": "cond",
    "switch": "cond",
    "while_loop": "while",
    "fori_loop": "while",
    "scan": "scan",
    "map": "scan",
}


def bounded(module: str, name: str, function: Any) -> Any:
    """What a module serves under a name, as a boundary where it calls functions of the user's."""
    if name in _CALLING.get(module, "").split():
        kind = _CONTROL_FLOW.get(name) if module == "jax.lax" else None
        return api_boundary(control_flow(kind, function) if kind else function)
    if (module, name) == ("jax", "pmap"):
        return of_devices(function)
    return making_boundaries(function) if name in _MAKING.get(module, "").split() else function


def install() -> None:
    """From now on jitted functions and those with rules of their own are boundaries."""
    compiled.set_hooks(api_boundary)
    for cls in (weft.custom_jvp, weft.custom_vjp):
        cls.__call__ = api_boundary(control_flow(cls.__name__, cls.__call__))  # type: ignore[method-assign]
