"""Static arguments as keys of caches: python/native/static_keys.h says which are the same."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable
from typing import Any

from .. import _weft
from .tree import TreeDef

# What reads the fields that == compares, and those that hash() reads; None: the class has a hash of its own.
_Read = Callable[[Any], tuple[Any, ...]]
_Readers = tuple[_Read, _Read | None]


def _made_by(method: Any) -> str:
    """The module that has made the code of a method, which is in no file: dataclasses, attrs, or none."""
    code = getattr(method, "__code__", None)
    if getattr(code, "co_filename", "").startswith("<attrs generated"):
        return "attrs"
    return "dataclasses" if getattr(code, "co_qualname", "").startswith("__create_fn__.") else ""


def _reader(names: tuple[str, ...]) -> _Read:
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


@functools.lru_cache(1024)  # each call of a jitted function asks, for each static part of its arguments
def _readers_of(cls: Any) -> _Readers | None:
    """None: the class compares otherwise."""
    maker = _made_by(cls.__eq__)
    if maker == "dataclasses" and dataclasses.is_dataclass(cls):
        fields = dataclasses.fields(cls)
        compared = tuple(f.name for f in fields if f.compare)
        hashed = tuple(f.name for f in fields if (f.compare if f.hash is None else f.hash))
    elif maker == "attrs":
        given = getattr(cls, "__attrs_attrs__", ())
        compared = tuple(f.name for f in given if f.eq)
        hashed = tuple(f.name for f in given if (f.eq if f.hash is None else f.hash))
    else:
        return None
    reads = _reader(compared)
    if _made_by(cls.__hash__) != maker:
        return reads, None
    return reads, reads if hashed == compared else _reader(hashed)


def _fields_of(value: Any) -> tuple[tuple, tuple] | None:
    """Called from C++: what == of the value compares and what hash() reads, or None."""
    cls: Any = type(value)
    readers = _readers_of(cls)
    if readers is None:
        return None
    compare, hashed = readers
    compared = compare(value)
    if hashed is None:
        return compared, (hash(value),)
    return compared, compared if hashed is compare else hashed(value)


class Key:
    """A key of a dictionary that is equal to another one where both hold the same static values."""

    __slots__ = ("_hash", "value")

    def __init__(self, value: tuple):
        self.value, self._hash = value, _weft.static_hash(value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and _weft.same_static(self.value, other.value)


_weft.set_static_kinds(TreeDef, _fields_of)
