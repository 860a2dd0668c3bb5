"""Variables as values: taken apart into arrays on the way out of a region, put together on the way in."""

from __future__ import annotations

import collections
import inspect
import threading
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _weft
from .._core import tree as _tree
from .aliases import CONTAINERS, note_origin, origin
from .errors import ConversionError, StructureError, mark_as_of_construct, user_place


class Undefined:
    """What a variable holds before it has a value, or after control flow that gives it one on some paths only."""

    def __init__(self, name: str, reason: str = ""):
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_reason", reason)

    def _raise(self, *_: Any, **__: Any):
        name, reason = object.__getattribute__(self, "_name"), object.__getattribute__(self, "_reason")
        error = UnboundLocalError(
            f"variable '{name}' is read at {user_place()}, but "
            + (reason or "has no value there: nothing was assigned to it on the path that was taken")
        )
        mark_as_of_construct(error)
        raise error

    __getattr__ = __setattr__ = __call__ = __iter__ = __len__ = __getitem__ = __setitem__ = __contains__ = _raise
    __bool__ = __int__ = __float__ = __index__ = __complex__ = __array__ = __enter__ = _raise
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _raise
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _raise
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rshift__ = _raise
    __neg__ = __pos__ = __invert__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = _raise
    __eq__ = __ne__ = _raise
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<no value for '{object.__getattribute__(self, '_name')}'>"


def undefined(name: str) -> Undefined:
    return Undefined(name)


def is_undefined(value: Any) -> bool:
    return type(value) is Undefined


def read(value: Any) -> Any:
    """A variable that may have no value is read."""
    if type(value) is Undefined:
        value._raise()
    return value


# --- Attributes and containers ----------------------------------------------------------------------------------------


# The identities of places (memory.py) that a statement names itself: of an object or its dictionary, and a key.
Covered = frozenset[tuple[int, str | None]]


class _Covering(threading.local):
    places: set | None = None


_covering = _Covering()


def entry_of(get_state: Callable[[], tuple]) -> tuple[tuple, Covered]:
    """The state of a statement as it begins, and which attributes and containers it has."""
    _covering.places = set()
    try:
        return get_state(), frozenset(_covering.places)
    finally:
        _covering.places = None


def _cover_container(value: Any, places: set) -> None:
    if isinstance(value, CONTAINERS) and (id(value), None) not in places:
        places.add((id(value), None))
        for inner in value.values() if isinstance(value, dict) else value:
            _cover_container(inner, places)


def attribute(holder: Any, name: str) -> Any:
    if _covering.places is not None:
        _covering.places |= {(id(holder), name), (id(getattr(holder, "__dict__", None)), name)}
    if _has_setter(holder, name):
        return None
    found = getattr(holder, name, _MISSING)
    return Undefined(name) if found is _MISSING else found


def _has_setter(holder: Any, name: str) -> bool:
    """Whether assigning the attribute calls a function: what that changes is seen by itself (memory.py)."""
    descriptor = inspect.getattr_static(type(holder), name, None)
    return hasattr(descriptor, "__set__") and not isinstance(descriptor, types.MemberDescriptorType)


def set_attribute(holder: Any, name: str, value: Any) -> None:
    if _has_setter(holder, name):
        return
    now = getattr(holder, name, _MISSING)
    if is_undefined(value):
        if now is not _MISSING:
            delattr(holder, name)
    elif now is not value:
        setattr(holder, name, value)


_MISSING = object()


def contents(container: Any, assigned: str | None = None) -> Any:
    """A copy of what a container holds, with the containers in it; None for what is none. `assigned`: the text of a
    container that is assigned to by subscript, which must be one that can be put back."""
    if _covering.places is not None:
        _cover_container(container, _covering.places)
    if isinstance(container, CONTAINERS):
        return _copy(container)
    if assigned is not None and isinstance(container, np.ndarray):
        raise ConversionError(
            f"autograph: '{assigned}' is a NumPy array that is assigned to inside traced control flow at "
            f"{user_place()}; NumPy arrays cannot hold traced values. Use a weft array and .at[...].set(...)"
        )
    return None


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return note_origin({k: _copy(v) for k, v in value.items()}, value)
    if isinstance(value, (list, collections.deque)):
        return note_origin([_copy(v) for v in value], value)
    if isinstance(value, set):
        return note_origin(set(value), value)
    return value


def set_contents(container: Any, value: Any) -> None:
    """Puts contents back, in place."""
    if isinstance(container, dict):
        container.clear()
        for key, new in value.items():
            container[key] = _put(new)
    elif isinstance(container, (list, collections.deque)):
        container.clear()
        container.extend(map(_put, value))
    elif isinstance(container, set):
        container.clear()
        container |= value


def _put(new: Any) -> Any:
    original = origin(new)
    if original is not new:
        set_contents(original, new)
        return original
    return new


# --- Taking values apart ----------------------------------------------------------------------------------------------


class Packed:
    """A variable's value: its structure, its leaves, and which of them are arrays (or numbers)."""

    __slots__ = ("name", "undefined", "tree", "leaves", "is_array", "value")

    def __init__(self, name: str, value: Any):
        self.name, self.value = name, value
        self.undefined = is_undefined(value)
        self.tree: Any = None
        self.leaves: list = []
        if not self.undefined:
            self.leaves, self.tree = _tree.flatten(value)
        self.is_array = [_weft.is_operand(leaf) for leaf in self.leaves]

    def arrays(self) -> list:
        return [leaf for leaf, a in zip(self.leaves, self.is_array) if a]

    def paths(self) -> list[str]:
        """A name for each array: "'params'['w']"."""
        if not self.leaves:
            return []
        found = _tree.path_texts(self.tree)
        return [label(self.name) + path for path, a in zip(found, self.is_array) if a]

    def rebuild(self, arrays: list) -> Any:
        """The value with other arrays; takes them from the front of the list."""
        leaves = [arrays.pop(0) if a else leaf for leaf, a in zip(self.leaves, self.is_array)]
        return _tree.unflatten(self.tree, leaves)


def label(name: str) -> str:
    return name if " " in name else f"'{name}'"


def describe(packed: Packed) -> str:
    """What a value is, for messages."""
    if packed.undefined:
        return "nothing"
    if len(packed.leaves) == 1 and packed.is_array[0] and packed.value is packed.leaves[0]:
        return _weft.abstract(packed.leaves[0])[3]
    if packed.value is None or isinstance(packed.value, str):
        return repr(packed.value)
    types = [_weft.abstract(leaf)[3] if a else type(leaf).__name__ for leaf, a in zip(packed.leaves, packed.is_array)]
    return f"a {type(packed.value).__name__} of ({', '.join(types[:8])}{', ...' if len(types) > 8 else ''})"


def same_constant(a: Any, b: Any) -> bool:
    """Whether two values that are no arrays are the same to a program."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    try:
        return bool(a == b)
    except Exception:  # a comparison of the user's that fails
        return False


CHANGED_ELSEWHERE = ". A function that is called there changes it: return the new value from it instead"


def check_same_shape_of_state(before: Packed, after: Packed, where: str, named: bool) -> None:
    """For a loop: the structure, and what is no array, stay as they are. `named`: whether the loop itself assigns."""
    end = "" if named else CHANGED_ELSEWHERE
    variable = f"autograph: {where}: variable {label(before.name)}"
    if after.undefined:
        raise StructureError(f"{variable} has no value after one step{end}")
    if before.tree != after.tree or before.is_array != after.is_array:
        raise StructureError(
            f"{variable} is {describe(before)} on entry but {describe(after)} after one step; its structure must stay "
            f"the same in a traced loop{end}"
        )
    for old, new, array in zip(before.leaves, after.leaves, before.is_array):
        if not array and not same_constant(old, new):
            raise StructureError(
                f"{variable} holds {old!r} on entry but {new!r} after one step; only arrays and numbers can change in "
                f"a traced loop{end}"
            )
