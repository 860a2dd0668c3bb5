"""jax.stages: the kinds of what jit(f), .lower() and .compile() give."""

from __future__ import annotations

from typing import Any

import weft

from ..compiled import Compiled, Lowered
from ..described import ArgInfo, Described
from . import jaxprs

Wrapped = type(weft.jit(lambda: None))
CompilerOptions = dict[str, Any]

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]


class Traced(Described):
    """What jit(f).trace(*args) gives: the program as jaxpr, and lower()."""

    def __init__(self, lowered: Lowered, name: str):
        self._describe(lowered)
        self._lowered, self.fun_name = lowered, name

    @property
    def jaxpr(self) -> Any:
        """A view of the program."""
        return jaxprs.closed(self._ir)

    def lower(self, **_: Any) -> Lowered:
        """The program, to be compiled."""
        return self._lowered


def with_trace(jitted: Any) -> Any:
    """A jitted function that has trace, too."""

    def trace(*args: Any, **kwargs: Any) -> Traced:
        return Traced(jitted.lower(*args, **kwargs), getattr(jitted, "__name__", "<unnamed function>"))

    jitted.__dict__["trace"] = trace
    return jitted
