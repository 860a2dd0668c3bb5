"""jax.profiler: names for parts of a program. Nothing is recorded; jit(f).explain() and lower(...).stage(...) show what
a program does."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any


class TraceAnnotation(contextlib.ContextDecorator):
    """A name for what happens inside."""

    def __init__(self, name: str, **kwargs: Any):
        self.name = name

    def __enter__(self) -> TraceAnnotation:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class StepTraceAnnotation(TraceAnnotation):
    """A name for a step."""


def annotate_function(func: Callable[..., Any] | None = None, name: str | None = None, **kwargs: Any) -> Any:
    """The function itself; the name is for readers."""
    if func is None:
        return functools.partial(annotate_function, name=name, **kwargs)
    return func
