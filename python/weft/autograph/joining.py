"""What the variables are after a branch or a loop: objects from before it, or new ones that are linked with those.

if x > 0:
    o, p = a, c           # p is c after it; o is a new list, linked with a (if x > 0) and b (if not)
else:
    o, p = b, c
"""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from .. import _weft
from .aliases import (
    PLAIN,
    Conditions,
    Inner,
    can_change,
    changing,
    link,
    note_origin,
    origin,
    part_name,
    parts,
    set_part,
)
from .errors import user_place

_NOTHING: Mapping[int, Any] = types.MappingProxyType({})


class Join:
    """Finds what the values after a branch or loop are, for the values of its two sides: an object that is the same on
    both is itself, and a new one is linked with those that it may be. `knows`: whether an object was there before;
    `copies`: all objects are new, as at the beginning of a step."""

    def __init__(self, knows: Callable[[Any], bool], copies: bool = False):
        self._knows, self._copies = knows, copies
        self.again: Callable | None = None  # of the links of the next values
        self._agains: dict[int, Callable | None] = {}
        self._done: dict[tuple[int, int], Any] = {}
        self._sides: tuple[dict[int, tuple[Any, list]], dict[int, tuple[Any, list]]] = ({}, {})
        self._names: dict[int, str] = {}

    def value(self, name: str, new: Any, false: Any, true: Any) -> Any:
        """What stands for `new`, of which the sides had `false` and `true`."""
        if isinstance(new, PLAIN) and not isinstance(false, np.ndarray) and not isinstance(true, np.ndarray):
            return new
        before = origin(false), origin(true)
        is_one = before[0] is before[1] and self._knows(before[0]) and not (self._copies and before[0] is false)
        if is_one and (can_change(before[0]) or isinstance(before[0], np.ndarray)):
            if false is not before[0] or true is not before[1]:
                self._inner(name, new, false, true)
                return note_origin(new, before[0])
            return before[0]
        if new is false and new is true:
            return new
        if isinstance(new, tuple):
            return self._tuple(name, new, false, true)
        if not (can_change(false) or can_change(true)):
            if not isinstance(new, PLAIN):
                self._inner(name, new, false, true)
            return new
        key = id(before[0]), id(before[1])
        if key in self._done and not self._copies:
            return self._done[key]
        if new is false or new is true:  # a leaf that is equal on both sides, such as a set
            new = copy.copy(new)
        self._done[key] = new
        self._names[id(new)], self._agains[id(new)] = name, self.again
        for side, old in zip(self._sides, before):
            if can_change(old):
                side.setdefault(id(old), (old, []))[1].append(new)
        if not isinstance(new, (_weft.Tracer, set)):
            self._inner(name, new, false, true)
        return new

    def _tuple(self, name: str, new: tuple, false: tuple, true: tuple) -> tuple:
        found = [self.value(part_name(name, new, i), *each) for i, each in enumerate(zip(new, false, true))]
        if all(a is b for a, b in zip(found, new)):
            return new
        return type(new)(*found) if hasattr(new, "_fields") else type(new)(found)

    def _inner(self, name: str, new: Any, false: Any, true: Any) -> None:
        its = parts(false), parts(true)
        for key, part in parts(new).items():
            if key in its[0] and key in its[1]:
                found = self.value(part_name(name, new, key), part, its[0][key], its[1][key])
                if found is not part:
                    set_part(new, key, found)

    def links(self, test: Any, inner: tuple[Inner, Inner], outside: Mapping[int, Any] = _NOTHING) -> None:
        """Makes the links. `inner`: those within each side; `outside`: what their conditions are called after it."""
        if not (self._sides[0] or self._sides[1] or inner[0] or inner[1]):
            return
        place = user_place()
        for sign, side in enumerate(self._sides):
            here: Conditions = None if test is None else ((test, bool(sign)),)
            for old, news in side.values():
                if self._knows(old):
                    for new in news:
                        if not (sign and self._copies):
                            link(new, old, here, self._names[id(new)], place, self._agains[id(new)])
                else:
                    for k, new in enumerate(news):
                        for other in news[:k]:
                            link(new, other, here, self._names[id(new)], place)
            for a, b, conditions in _ways(inner[sign], functools.partial(self._has_image, side)):
                its: Conditions = None
                if here is not None and conditions is not None and all(id(t) in outside for t, _ in conditions):
                    its = here + tuple((outside[id(t)], truth) for t, truth in conditions)
                for x in self._images(side, a):
                    for y in self._images(side, b):
                        if x is not y and not (x is a and y is b):
                            link(x, y, its, self._names.get(id(x)) or self._names[id(y)], place)

    def _has_image(self, side: dict[int, tuple[Any, list]], old: Any) -> bool:
        return id(old) in side or self._knows(old)

    def _images(self, side: dict[int, tuple[Any, list]], old: Any) -> list:
        """What an object of one side is afterwards."""
        return [*side.get(id(old), (None, []))[1], *([old] if self._knows(old) else [])]


def _ways(inner: Inner, ends_here: Callable[[Any], bool]) -> Iterator[tuple[Any, Any, Conditions]]:
    """The paths of links from one object to another, over others that are gone."""
    ways: dict[int, list[tuple[Any, Conditions]]] = {}
    for a, b, conditions in inner:
        ways.setdefault(id(a), []).append((b, conditions))
        ways.setdefault(id(b), []).append((a, conditions))
    objects = {id(o): o for a, b, _ in inner for o in (a, b) if ends_here(o)}
    order = {number: k for k, number in enumerate(objects)}

    def walk(start: Any, at: Any, so_far: Conditions, met: frozenset) -> Iterator[tuple[Any, Any, Conditions]]:
        for other, conditions in ways[id(at)]:
            both = None if so_far is None or conditions is None else so_far + conditions
            if id(other) in met:
                continue
            if id(other) not in order:
                yield from walk(start, other, both, met | {id(other)})
            elif order[id(start)] < order[id(other)]:
                yield start, other, both

    for start in objects.values():
        yield from walk(start, start, (), frozenset({id(start)}))


def chosen(test: Any, new: Any, false: Any, true: Any) -> Any:
    """A value that a traced condition chose from two."""
    join = Join(lambda value: True)
    new = join.value("the value", new, false, true)
    join.links(test, ([], []))
    return new


def may_be(new: Any, options: Iterable) -> None:
    """A value that is one of several, by conditions that are not known."""
    for option in options:
        for (name, a), (_, b) in zip(changing("the value", new), changing("", option)):
            link(a, b, None, name, user_place())


def groups(pairs: Iterable[tuple[Any, Any]]) -> list[list]:
    """The objects that are joined by pairs."""
    found: list[list] = []
    for a, b in pairs:
        one = [g for g in found if any(o is a or o is b for o in g)]
        found = [g for g in found if not any(g is o for o in one)]
        merged = {id(o): o for g in one for o in g} | {id(a): a, id(b): b}
        found.append(list(merged.values()))
    return found
