"""Which names of JAX's a program asked for that are not served, and how often.

The file that WEFT_AS_JAX_LOG names gets a line for each, "jax.numpy.place 2", when the process ends."""

from __future__ import annotations

import atexit
import collections
import os

_counts: collections.Counter[str] = collections.Counter()
_last: list[str] = []


def count(name: str) -> None:
    """Counts a name that is not served."""
    _counts[name] += 1
    _last[:] = [name]


def was_last(name: str) -> bool:
    """Whether this name was the last one that was counted. Asked once: `from jax import nothing` looks for an attribute
    first and then for a module."""
    if _last != [name]:
        return False
    _last.clear()
    return True


def missing() -> dict[str, int]:
    """Name -> how often it was asked for.

    Returns: dict, most frequent names first."""
    return dict(_counts.most_common())


def _write() -> None:
    path = os.environ.get("WEFT_AS_JAX_LOG")
    if path and _counts:
        # Processes of one job add to one file.
        with open(path, "a", encoding="utf-8") as file:
            file.writelines(f"{name} {n}\n" for name, n in _counts.most_common())


atexit.register(_write)
