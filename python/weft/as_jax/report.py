"""Which names of JAX's a program asked for that are not served, and how often.

The file that WEFT_AS_JAX_LOG names gets a line for each, "jax.numpy.place 2", when the process ends."""

from __future__ import annotations

import atexit
import collections
import os
import sys

_counts: collections.Counter[str] = collections.Counter()
_last: list[str] = []


def count(name: str, attribute: bool = False) -> None:
    """Counts a name that is not served; `attribute`: it was asked for as one of a module."""
    _counts[name] += 1
    _last[:] = [name] if attribute else []


def was_last(name: str) -> bool:
    """Whether this name was the last one that was counted, as an attribute. Asked once: `from jax import nothing` looks
    for an attribute first and then for a module."""
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
        try:
            # Processes of one job add to one file.
            with open(path, "a", encoding="utf-8") as file:
                file.writelines(f"{name} {n}\n" for name, n in _counts.most_common())
        except OSError as error:
            print(f"weft.as_jax: WEFT_AS_JAX_LOG is {path!r}; expected a file to write to: {error}", file=sys.stderr)


atexit.register(_write)
