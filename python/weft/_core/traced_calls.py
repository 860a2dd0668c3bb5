"""The functions of the user that are being traced, and what has to happen around their calls.

Autograph links containers that a traced condition chooses (weft.autograph.aliases). At the end of a function that is
traced, what its last statements wrote to such containers is written to all that they may be, and no links stay behind.
Autograph is loaded when a function is converted, which may be in the middle of a trace, and most programs never do
that. So it is told of calls here, from the moment on when it is there; and so are references (weft._state).
"""

from __future__ import annotations

import threading
from typing import Any, Protocol

from . import stateful


class Links(Protocol):
    """What links containers."""

    def save(self) -> int:
        """How many links there are."""

    def restore(self, count: int) -> Any:
        """Takes away those that were made since there were `count`."""

    def settle(self) -> None:
        """Writes what changed in linked containers to those that they may be."""

    def forget(self) -> None:
        """No function is being traced any more."""


class _Calls(threading.local):
    """Of one thread."""

    def __init__(self) -> None:
        self.arguments: list[tuple[tuple, dict]] = []


_calls = _Calls()
_links: Links | None = None


def tell(links: Links) -> None:
    """From now on these links are told of calls that begin and end."""
    global _links
    _links = links


def arguments() -> list[tuple[tuple, dict]]:
    """Those of the functions that this thread is tracing, the innermost last."""
    return _calls.arguments


# These stand around each call, in the function that makes it: a function of ours in between would take a frame of
# Python's for every level of nesting.


def begin(args: tuple, kwargs: dict, name: str, kind: str) -> int:
    """A function is called in order to be traced. Returns what `end` takes."""
    if stateful.references is not None:
        stateful.references.begin(name, kind)
    _calls.arguments.append((args, kwargs))
    return 0 if _links is None else _links.save()


def settle() -> None:
    """It has returned."""
    if _links is not None:
        _links.settle()


def end(begun: int) -> None:
    """Its trace is over, whether it returned or raised."""
    if stateful.references is not None:
        stateful.references.end()
    _calls.arguments.pop()
    if _links is not None:
        _links.restore(begun)
        if not _calls.arguments:
            _links.forget()
