"""Where users find what the package defines."""

from __future__ import annotations

from types import FunctionType
from typing import Any


def belong_to(module: dict[str, Any], *members: Any) -> None:
    """Says of the package's classes and functions that they are of the public module which gathers them: pickles and
    help() name it, wherever they are defined. `module`: its globals()."""
    for member in members:
        if isinstance(member, (type, FunctionType)) and member.__module__.startswith("weft."):
            member.__module__ = module["__name__"]
