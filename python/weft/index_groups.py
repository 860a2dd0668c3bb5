"""Collectives within groups of the lanes or devices along an axis (axis_index_groups).

Everybody gets what all along the axis have, and takes from it what its group has: right under every transformation, and
more to send than a group needs. An axis of its own for the groups (a mesh of two axes) sends less.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _weft
from ._core.errors import not_implemented, type_error, value_error


class IndexGroups:
    """The groups of an axis, and what a lane or device knows of its own.

    Args:
        groups: lists of places along the axis, each place in one.
        names: the names of the axis, or of several, the first one major.
        what: the function that was called.
        equal: whether all groups must have the same size.

    Raises:
        TypeError: groups are no lists of integers.
        ValueError: a place is missing or there twice; sizes differ and must not.
        NotImplementedError: the size of the axes is symbolic.
    """

    def __init__(self, groups: Any, names: list[str], what: str, equal: bool):
        size = _weft.axis_size(names, what)
        if not isinstance(size, int):
            raise not_implemented(f"{what}: axis_index_groups of the axes {tuple(names)}, whose size is not known")
        try:
            listed = [[int(place) for place in group] for group in groups]
        except (TypeError, ValueError):
            raise type_error(f"{what}: axis_index_groups must be lists of integers, got {groups!r}") from None
        if sorted(place for group in listed for place in group) != list(range(size)):
            raise value_error(
                f"{what}: axis_index_groups={groups!r} must have each of the {size} places along "
                f"{', '.join(map(repr, names))} once"
            )
        if equal and len({len(group) for group in listed}) > 1:
            raise value_error(f"{what}: groups of one size are needed, got axis_index_groups={groups!r}")
        self._names, self._size = names, size
        self.count = len(listed[0])
        self.equal = len({len(group) for group in listed}) == 1
        self._member = np.zeros((size, size), bool)
        self._places = np.zeros((size, max(map(len, listed))), np.int32)
        self._own = np.zeros(size, np.int32)
        for group in listed:
            for k, place in enumerate(group):
                self._member[place, group] = True
                self._places[place, : len(group)] = group
                self._own[place] = k

    def _of_this(self, table: np.ndarray) -> Any:
        return _weft.take(_weft.array(table, None, True), _weft.axis_index(self._names), 0, "clip")

    def own_place(self) -> Any:
        """The place of this lane or device in its group."""
        return self._of_this(self._own)

    def reduced(self, prim: str, x: Any) -> Any:
        """The sum ("psum"), the largest or the smallest of the group."""
        x = _weft.array(x, None, False)
        everything = _weft.all_gather(x, self._names, 0, False)
        mine = self._of_this(self._member).reshape((self._size,) + (1,) * x.ndim)
        if prim == "psum":
            if x.dtype == "bool":
                everything = everything.astype(int)
            zero = _weft.full((), 0, everything.dtype)
            return _weft.astype(
                _weft.reduce("reduce_sum", _weft.where(mine, everything, zero), 0, False), everything.dtype
            )
        # Others count as this lane or device itself.
        return _weft.reduce(
            "reduce_max" if prim == "pmax" else "reduce_min", _weft.where(mine, everything, x), 0, False
        )

    def gathered(self, x: Any) -> Any:
        """What the members of the group have, stacked in the order of the group."""
        everything = _weft.all_gather(_weft.array(x, None, False), self._names, 0, False)
        return _weft.take(everything, self._of_this(self._places), 0, "clip")
