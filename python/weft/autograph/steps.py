"""What a loop goes over: ranges, the rows of arrays, several of those side by side."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _weft
from .. import numpy as wnp
from .._core import tree as _tree
from .._core.errors import type_error, value_error
from .._core.shapes import ShapeDtype
from ..debug import check
from .errors import ConversionError, user_place
from .regions import trace_region, traced
from .texts import escape


class Steps:
    """A range, the rows of an array, or several of those side by side, whose items can be made for a traced index."""

    is_traced_range = False

    @property
    def length(self) -> Any:
        """An int, a symbolic dimension or a traced number."""
        raise NotImplementedError

    def item(self, i: Any) -> Any:
        raise NotImplementedError

    def rows(self) -> Any:
        """A tree of arrays whose rows are the items."""
        raise NotImplementedError

    def from_row(self, row: Any) -> Any:
        """The item, from such a row."""
        return row

    def __iter__(self) -> Iterator[Any]:
        if self.is_traced_range:
            raise ConversionError(
                f"autograph: {user_place()}: the length of this range is traced; only a `for` statement that can be "
                "converted goes over it"
            )
        return (self.item(i) for i in range(self.length))


class TracedRange(Steps):
    """range() of traced bounds."""

    is_traced_range = True

    def __init__(self, *bounds: Any):
        start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        for what, bound in (("start", start), ("stop", stop), ("step", step)):
            shape, dtype, _, text = _weft.abstract(bound)
            if shape or _weft.dtype_kind(dtype) not in ("signed", "unsigned"):
                raise type_error(f"range: {what} must be a single integer, got {text}")
        if traced(step):
            check(step != 0, escape(f"range: step must not be zero ({user_place()})"))
        elif int(step) == 0:
            raise value_error("range: step must not be zero")
        self.start, self.stop, self.step = start, stop, step

    @functools.cached_property
    def length(self) -> Any:
        """May be negative where there is nothing to go over."""
        if not traced(self.step) and self.step == 1:
            return self.stop if not traced(self.start) and self.start == 0 else self.stop - self.start
        return -((self.start - self.stop) // self.step)

    def item(self, i: Any) -> Any:
        return like_python(self.start + i * self.step)

    def contains(self, item: Any) -> Any:
        steps, rest = (item - self.start) // self.step, (item - self.start) % self.step
        return (rest == 0) & (steps >= 0) & (steps < self.length)

    def __len__(self) -> int:
        raise ConversionError(f"autograph: {user_place()}: the length of this range is traced")


class StaticRange(Steps):
    def __init__(self, r: range):
        self.range = r

    @property
    def length(self) -> int:
        return len(self.range)

    def item(self, i: Any) -> Any:
        r = self.range
        return like_python(i if (r.start, r.step) == (0, 1) else r.start + i * r.step)

    def from_row(self, row: Any) -> Any:
        return like_python(row)

    def rows(self) -> Any:
        r, steps = self.range, _weft.iota((len(self.range),), 0, "int32")
        if r.step != 1:
            steps = steps * r.step
        return steps + r.start if r.start else steps


class Rows(Steps):
    def __init__(self, array: Any):
        self.array = array
        if not _weft.abstract(array)[0]:
            raise type_error(f"iteration over a single number, {_weft.abstract(array)[3]}")

    @property
    def length(self) -> Any:
        return _weft.abstract(self.array)[0][0]

    def item(self, i: Any) -> Any:
        array = _weft.array(self.array, None, False) if isinstance(self.array, np.ndarray) else self.array
        return array[i]

    def rows(self) -> Any:
        return self.array


class Zip(Steps):
    """zip() and enumerate() over those."""

    def __init__(self, parts: list[Steps]):
        self.parts = parts
        self.is_traced_range = any(p.is_traced_range for p in parts)

    @functools.cached_property
    def length(self) -> Any:
        shortest, *lengths = [p.length for p in self.parts]
        for n in lengths:
            if traced(n) or traced(shortest):
                shortest = wnp.minimum(shortest, n)
            else:
                shortest = min(shortest, n)
        return shortest

    def item(self, i: Any) -> Any:
        return tuple(p.item(i) for p in self.parts)

    def from_row(self, row: Any) -> Any:
        return tuple(p.from_row(part) for p, part in zip(self.parts, row))

    def rows(self) -> Any:
        return tuple(_tree.map(lambda a: a[: self.length], p.rows()) for p in self.parts)


class Reversed(Steps):
    def __init__(self, of: Steps):
        self.of, self.is_traced_range = of, of.is_traced_range

    @property
    def length(self) -> Any:
        return self.of.length

    def item(self, i: Any) -> Any:
        return self.of.item(self.length - 1 - i)

    def from_row(self, row: Any) -> Any:
        return self.of.from_row(row)

    def rows(self) -> Any:
        return _tree.map(lambda a: a[::-1], self.of.rows())


def like_python(i: Any) -> Any:
    """An index with the weak type that Python's integers have."""
    if not traced(i):
        return i
    dtype = str(i.dtype)
    if dtype not in _identities:
        _identities[dtype] = trace_region(lambda leaves: leaves, [ShapeDtype((), dtype)], "index", "a traced loop")
    index = _weft.apply(_identities[dtype].fn, [i], [True])[0]
    _indices[id(index)] = index
    return index


def is_index(value: Any) -> bool:
    """Whether it is the variable of a loop over a range, which is an int in Python."""
    return _indices.get(id(value)) is value


_identities: dict[str, Any] = {}
_indices: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()  # by identity: tracers have no hash


def steps_of(iterable: Any) -> Steps | None:
    """How to go over something with a traced index; None for what only Python can go over."""
    if isinstance(iterable, Steps):
        return iterable
    if isinstance(iterable, range):
        return StaticRange(iterable)
    if isinstance(iterable, (_weft.Array, _weft.Tracer)) or (
        isinstance(iterable, np.ndarray) and _weft.is_operand(iterable)
    ):
        return Rows(iterable)
    return None
