"""Indices as containers: the arrays in them, and the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _weft


def index_apart(index: Any) -> tuple[list[Any], Any]:
    """The arrays in an index, and the rest of it."""
    entries = index if isinstance(index, tuple) else (index,)
    arrays, rest = [], []
    for entry in entries:
        if isinstance(entry, slice):
            bounds = (entry.start, entry.stop, entry.step)
            fixed = [None if _is_dynamic(bound) else bound for bound in bounds]
            arrays += [bound for bound in bounds if _is_dynamic(bound)]
            rest.append(("slice", *map(_is_dynamic, bounds), *fixed))
        elif _is_dynamic(entry):
            arrays.append(entry)
            rest.append(("array",))
        else:
            rest.append(("fixed", entry))
    return arrays, (isinstance(index, tuple), tuple(rest))


def _is_dynamic(entry: Any) -> bool:
    return isinstance(entry, (_weft.Array, np.ndarray, list))


def index_of(rest: Any, arrays: Any) -> Any:
    """The index of both."""
    several, entries = rest
    left, made = iter(arrays), []
    for kind, *entry in entries:
        if kind == "slice":
            made.append(slice(*(next(left) if on else bound for on, bound in zip(entry[:3], entry[3:]))))
        else:
            made.append(next(left) if kind == "array" else entry[0])
    return tuple(made) if several else made[0]
