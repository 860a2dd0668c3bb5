"""Static arguments as keys of caches: python/native/static_keys.h says which are the same."""

from __future__ import annotations

import dataclasses
import weakref
from typing import Any

from .. import _weft
from .tree import TreeDef

# By class: the names of the fields that == compares and of those that hash() reads; None: the class compares otherwise.
_names: weakref.WeakKeyDictionary[type, tuple[tuple[str, ...], tuple[str, ...]] | None] = weakref.WeakKeyDictionary()


def _names_of(cls: type) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Of classes whose == the module dataclasses or attrs has made; its code is in no file."""
    file = getattr(getattr(cls.__eq__, "__code__", None), "co_filename", "")
    if file == "<string>" and dataclasses.is_dataclass(cls):
        fields = dataclasses.fields(cls)
        return (
            tuple(f.name for f in fields if f.compare),
            tuple(f.name for f in fields if (f.compare if f.hash is None else f.hash)),
        )
    if file.startswith("<attrs generated"):
        given = getattr(cls, "__attrs_attrs__", ())
        return (
            tuple(f.name for f in given if f.eq),
            tuple(f.name for f in given if (f.eq if f.hash is None else f.hash)),
        )
    return None


def _fields_of(value: Any) -> tuple[tuple, tuple] | None:
    """Called from C++: what == of the value compares and what hash() reads, or None."""
    cls = type(value)
    try:
        names = _names[cls]
    except KeyError:
        names = _names[cls] = _names_of(cls)
    if names is None:
        return None
    return tuple(getattr(value, name) for name in names[0]), tuple(getattr(value, name) for name in names[1])


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
