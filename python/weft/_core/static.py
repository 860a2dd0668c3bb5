"""Static arguments as keys of caches: python/native/static_keys.h says which are the same."""

from __future__ import annotations

import dataclasses
import weakref
from typing import Any

from .. import _weft
from .tree import TreeDef

# Names of the fields that == compares, and of those that hash() reads; None: the class has a hash of its own.
_Names = tuple[tuple[str, ...], tuple[str, ...] | None]
# By class; None: the class compares otherwise.
_names: weakref.WeakKeyDictionary[type, _Names | None] = weakref.WeakKeyDictionary()


def _made_by(method: Any) -> str:
    """The module that has made the code of a method, which is in no file: dataclasses, attrs, or none."""
    code = getattr(method, "__code__", None)
    if getattr(code, "co_filename", "").startswith("<attrs generated"):
        return "attrs"
    return "dataclasses" if getattr(code, "co_qualname", "").startswith("__create_fn__.") else ""


def _names_of(cls: type) -> _Names | None:
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
    return compared, hashed if _made_by(cls.__hash__) == maker else None


def _fields_of(value: Any) -> tuple[tuple, tuple] | None:
    """Called from C++: what == of the value compares and what hash() reads, or None."""
    cls = type(value)
    try:
        names = _names[cls]
    except KeyError:
        names = _names[cls] = _names_of(cls)
    if names is None:
        return None
    compared, hashed = names
    return tuple(getattr(value, name) for name in compared), (
        (hash(value),) if hashed is None else tuple(getattr(value, name) for name in hashed)
    )


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
