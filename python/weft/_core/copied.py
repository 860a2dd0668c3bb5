"""Many arrays that are there, joined by copying.

A program that joins n arrays has n loops and is compiled for each n, 3 ms an array; loops of Python collect one a step.
Copying gives the same bits at once. Traced arrays, and those that lie on several devices, are joined by a program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _weft
from . import tree as _tree

# From here on a copy is faster than the call of a program that has been compiled, too.
_MANY = 4
# Programs copy larger ones with several threads.
_LARGE = 1 << 26


def _by_copying(
    items: Sequence[Any], joined: Callable[[list], Any], copy: Callable[[list[np.ndarray]], np.ndarray]
) -> Any:
    """What `joined` gives for items of which each is an array or a number of Python; None: it is to do that itself."""
    kinds: dict[Any, Any] = {}
    size = 0
    for x in items:
        if isinstance(x, _weft.Array):
            if _weft.is_traced(x) or _weft.sharding_of(x) is not None or x.is_deleted():
                return None
            dtype = x.dtype
            if not dtype.isbuiltin:  # bfloat16 and the like, keys
                return None
            kinds.setdefault((dtype, x.weak_type, x.ndim), x)
            size += x.nbytes
        elif type(x) in (bool, int, float, complex):
            kinds.setdefault((type(x), isinstance(x, int) and x.bit_length() > 31), x)
        else:
            return None
    if size > _LARGE or not any(isinstance(x, _weft.Array) for x in kinds.values()):
        return None
    some = [*kinds.values()]
    like = joined(some)  # its dtype is that of all
    if like.weak_type:
        return None
    out = copy([np.asarray(x, like.dtype) for x in items])
    out.setflags(write=False)
    made = _weft.array(out, None, False)
    return made if made.dtype == like.dtype else None  # where x64 is off, NumPy's 64 bits may become 32


def _here(items: list, axis: Any) -> bool:
    """Whether many arrays are to be joined, outside of any program."""
    many = len(items) >= _MANY and type(axis) is int and not _weft.is_tracing()
    return many and all(isinstance(x, _weft.Array) for x in items)


def stack(items: Sequence[Any], axis: Any) -> _weft.Array:
    """Arrays of one shape along a new axis."""
    items = list(items)
    out = None
    if _here(items, axis) and len({x.shape for x in items}) == 1:
        out = _by_copying(items, lambda some: _weft.stack(some, axis), lambda all: np.stack(all, axis))
    return _weft.stack(items, axis) if out is None else out


def concatenate(items: Sequence[Any], axis: Any) -> _weft.Array:
    """Arrays along an axis that they have."""
    items = list(items)
    out = None
    if _here(items, axis) and all(-x.ndim <= axis < x.ndim for x in items):
        others = {(x.shape[: axis % x.ndim], x.shape[axis % x.ndim + 1 :]) for x in items}
        if len(others) == 1:
            join = lambda some: _weft.concatenate(some, axis)
            out = _by_copying(items, join, lambda all: np.concatenate(all, axis))
    return _weft.concatenate(items, axis) if out is None else out


def array(items: Any, dtype: Any, copy: bool) -> _weft.Array:
    """An array of a number, an array or a nested list. A list of arrays of one shape is what a loop has collected."""
    if dtype is None and type(items) in (list, tuple) and len(items) >= _MANY and not _weft.is_tracing():
        first = next((x for x in items if isinstance(x, _weft.Array)), None)
        if first is not None and all((x.shape if isinstance(x, _weft.Array) else ()) == first.shape for x in items):
            found = _by_copying(items, lambda some: _weft.array(some, None, True), np.stack)
            if found is not None:
                return found
    return _weft.array(items, dtype, copy)


def without_numpy(tree: Any, numbers: tuple[type, ...] = ()) -> Any:
    """A tree in which NumPy's arrays, which a function may change where they are, and its numbers have become arrays;
    so have Python's `numbers` of these classes."""
    kinds = (np.ndarray, np.generic, *numbers)
    return _tree.map(lambda x: _weft.array(x, None, True) if isinstance(x, kinds) else x, tree)
