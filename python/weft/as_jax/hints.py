"""What tells XLA how to compile, and changes no number: accepted, without effect."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def compute_on(compute_type: str) -> Iterator[None]:
    """Nothing: the program runs where its arrays are."""
    yield


def compute_on2(f: Callable[..., Any] | None = None, **_: Any) -> Callable[..., Any]:
    """compute_on as a decorator."""
    return (lambda f: f) if f is None else f


@contextlib.contextmanager
def _nothing() -> Iterator[None]:
    yield


def set_xla_metadata(value: Any = None, **_: Any) -> Any:
    """The value itself; without one a context manager, and a decorator."""
    return _nothing() if value is None else value


def xla_metadata_call(f: Callable[..., Any] | None = None, **_: Any) -> Callable[..., Any]:
    """The function itself, or a decorator that leaves functions as they are."""
    return (lambda g: g) if f is None else f


def scheduling_group(name: str) -> Callable[..., Any]:
    """A decorator that leaves functions as they are."""
    return xla_metadata_call(scheduling_group=name)
