"""What libraries take of jax._src.traceback_util. Weft does not shorten tracebacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_exclude_paths: list[str] = []


def register_exclusion(path: str) -> None:
    """Keeps the name of a file that is not the user's."""
    _exclude_paths.append(path)


def include_frame(frame: Any) -> bool:
    """Whether a frame's file is the user's."""
    return not any(frame.f_code.co_filename.startswith(path) for path in _exclude_paths)


def api_boundary(fun: Callable[..., Any], **_: Any) -> Callable[..., Any]:
    """The function itself."""
    return fun
