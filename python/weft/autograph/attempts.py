"""Functions whose conversion may fail: what a trace that fails has changed is put back, so that Python can run them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .errors import is_of_construct
from .memory import Memory


def run(converted: Callable, args: tuple, kwargs: dict, failed: Callable[[Exception], None]) -> Any:
    """Calls a converted function in order to trace it. An exception that says that a construct cannot be converted is
    given to `failed`, and raised."""
    memory = Memory(converted)
    try:
        return converted(*args, **kwargs)
    except Exception as error:
        if is_of_construct(error):
            memory.put_back()
            failed(error)
        raise
