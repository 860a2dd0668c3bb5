"""What control flow changes besides its variables.

    if x > 0:
        self.bump()        # self.n += 1, in another function

Tracing runs both branches, so what they write has to be seen and taken back. A Memory takes down all that the code of a
statement can reach: attributes, containers, variables of enclosing functions, globals. After the code has run, what
differs is put back, and becomes a Place: a variable of the statement like those that the code names itself.
"""

from __future__ import annotations

import collections
import functools
import operator
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from inspect import getattr_static
from typing import Any

import numpy as np

from .. import _weft
from . import aliases
from .aliases import CONTAINERS, LARGEST_ARRAY
from .errors import StructureError, user_place
from .source import is_users, of_users_module
from .state import Covered, Packed, Undefined, contents, is_undefined, set_contents

_MISSING: Any = object()
# Types whose values have nothing inside, by identity: classes of the user's may have no hash.
_ATOMS = frozenset(
    map(
        id,
        (type(None), bool, int, float, complex, str, bytes, range, slice, type(...), types.CodeType, np.dtype)
        + (_weft.Tracer, _weft.Array, types.BuiltinFunctionType, types.MethodDescriptorType)
        + (types.WrapperDescriptorType, Undefined),
    )
)

# How often a statement may be traced again because it changes more than was known.
_MOST_ROUNDS = 10


class Place:
    """A part of what can be reached, which is read and written as a variable is. `place`: what it is part of and how,
    (place of that, ".n"), from which the label is made when it is shown."""

    cached = False  # an attribute that functools.cached_property keeps
    refusal = ""  # why it can be no variable

    def __init__(self, holder: Any, key: Any, place: Any):
        self.holder, self.key, self.place = holder, key, place

    @property
    def label(self) -> str:
        place, parts = self.place, []
        while place is not None:
            place, part = place
            parts.append(part)
        return "".join(reversed(parts))

    @property
    def identity(self) -> tuple:
        return id(self.holder), self.key

    def now(self) -> Any:
        """What is there, itself."""
        raise NotImplementedError

    def is_still(self, old: Any) -> bool:
        """Whether what is there is what was there."""
        return self.now() is old

    def put(self, value: Any) -> None:
        """Puts it back, itself; _MISSING takes it away."""
        raise NotImplementedError

    def get(self) -> Any:
        """As the value of a variable."""
        now = self.now()
        return Undefined(self.label) if now is _MISSING else now

    def set(self, value: Any) -> None:
        self.put(_MISSING if is_undefined(value) else value)


class _Entry(Place):
    """Of a dictionary that stands for names: of attributes or globals."""

    def now(self) -> Any:
        return self.holder.get(self.key, _MISSING)

    def put(self, value: Any) -> None:
        if value is _MISSING:
            self.holder.pop(self.key, None)
        else:
            self.holder[self.key] = value


class _Slot(Place):
    """An attribute without a dictionary: of a class, or of an object with __slots__."""

    def now(self) -> Any:
        if isinstance(self.holder, type):
            return self.holder.__dict__.get(self.key, _MISSING)
        try:
            return object.__getattribute__(self.holder, self.key)
        except AttributeError:
            return _MISSING

    def put(self, value: Any) -> None:
        kind = type if isinstance(self.holder, type) else object
        if value is not _MISSING:
            kind.__setattr__(self.holder, self.key, value)
        elif self.now() is not _MISSING:
            kind.__delattr__(self.holder, self.key)


class _Cell(Place):
    """A variable of an enclosing function."""

    def now(self) -> Any:
        try:
            return self.holder.cell_contents
        except ValueError:
            return _MISSING

    def put(self, value: Any) -> None:
        if value is not _MISSING:
            self.holder.cell_contents = value
        elif self.now() is not _MISSING:
            del self.holder.cell_contents


class _Contents(Place):
    """All of a list, dict, set or deque."""

    def now(self) -> Any:
        return dict(self.holder) if isinstance(self.holder, dict) else tuple(self.holder)

    def is_still(self, old: Any) -> bool:
        if isinstance(self.holder, dict):
            return _same_entries(self.holder, old)
        return len(self.holder) == len(old) and all(map(operator.is_, self.holder, old))

    def put(self, value: Any) -> None:
        holder = self.holder
        holder.clear()
        if isinstance(holder, (dict, set)):
            holder.update(value)
        else:
            holder.extend(value)

    def get(self) -> Any:
        return contents(self.holder)

    def set(self, value: Any) -> None:
        set_contents(self.holder, value)


class _Numbers(Place):
    """A NumPy array: that it changes is all that can be said."""

    refusal = (
        "is a NumPy array that a function called inside traced control flow writes to; NumPy arrays cannot hold traced "
        "values. Use a weft array and .at[...].set"
    )

    def now(self) -> Any:
        return self.holder.tobytes()

    def is_still(self, old: Any) -> bool:
        return self.now() == old

    def put(self, value: Any) -> None:
        self.holder[...] = np.frombuffer(value, self.holder.dtype).reshape(self.holder.shape)


class _Position(Place):
    """How far an iterator has gone."""

    refusal = (
        "is an iterator from outside that is gone through inside traced control flow; how far it has gone cannot "
        "depend on a traced value"
    )

    def now(self) -> Any:
        if isinstance(self.holder, types.GeneratorType):
            return self.holder.gi_frame is None
        return operator.length_hint(self.holder, -1)

    def is_still(self, old: Any) -> bool:
        return self.now() == old

    def put(self, value: Any) -> None:
        pass


def _same_entries(a: dict, b: dict) -> bool:
    return len(a) == len(b) and all(map(operator.is_, a, b)) and all(map(operator.is_, a.values(), b.values()))


class Grown(Exception):
    """Raised inside a loop's trace: the code changes more than was known, so it is traced again."""

    def __init__(self, memory: Memory):
        self.memory = memory


class _Active(threading.local):
    def __init__(self) -> None:
        self.memories: list[Memory] = []


_active = _Active()


def is_known_iterator(value: Any) -> bool:
    """Whether something that is gone through was there before the innermost traced branch or loop."""
    return bool(_active.memories) and id(value) in _active.memories[-1].iterators


class Memory:
    """What some functions can reach, as it is now. `covered`: places that the statement takes care of by itself."""

    def __init__(self, *code: Callable | None, covered: Covered = frozenset()):
        self._covered = covered
        self._places: list[tuple[Place, Any]] = []
        self._spaces: list[tuple[type, dict, dict, Any]] = []
        self._entries: set[tuple] = set()
        self._seen: dict[int, Any] = {}
        self.iterators: set[int] = set()
        self.entry: tuple = ()  # the state of the statement
        self.inner_links: aliases.Inner = []  # those of the last run
        self.changed: list[Place] = []  # variables of the statement
        self.fresh: list[Place] = []  # found to be changed, and not among those yet
        self._grown, self._rounds = False, 0
        follow = aliases.any_links()
        queue = collections.deque((None, function) for function in code if function is not None)
        while queue:
            label, value = queue.popleft()
            if id(type(value)) in _ATOMS or id(value) in self._seen:
                continue
            self._seen[id(value)] = value  # kept, so that no other object gets its number
            queue.extend(self._inside(label, value))
            if follow:
                queue.extend((label, other) for other in aliases.linked_with(value))

    # --- Taking down: what one object holds, with labels ---

    def _inside(self, label: Any, value: Any) -> Iterable[tuple[Any, Any]]:
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, types.MethodType):
            return [(label, value.__self__), (label, value.__func__)]
        if isinstance(value, functools.partial):
            return [(label, v) for v in (value.func, *value.args, *value.keywords.values())]
        if isinstance(value, (staticmethod, classmethod)):
            return [(label, value.__func__)]
        if isinstance(value, property):
            return [(label, value.fget), (label, value.fset)]
        if isinstance(value, functools.cached_property):
            return [(label, value.func)]
        if isinstance(value, type):
            return self._class(value) if of_users_module(value) else ()
        if isinstance(value, np.ndarray):
            if value.flags.writeable and not value.dtype.hasobject and value.nbytes <= LARGEST_ARRAY:
                self._add(_Numbers(value, None, label))
            return ()
        return () if isinstance(value, types.ModuleType) else self._object(label, value)

    def _object(self, label: Any, value: Any) -> Iterable[tuple[Any, Any]]:
        kind: Any = type(value)
        if hasattr(kind, "__next__"):
            self.iterators.add(id(value))
            if isinstance(value, types.GeneratorType) or not of_users_module(kind):
                self._add(_Position(value, None, label))
        found: list[tuple[Any, Any]] = []
        if isinstance(value, CONTAINERS):
            self._add(_Contents(value, None, label))
        if isinstance(value, dict):
            found += [((label, f"[{k!r}]"), v) for k, v in value.items() if id(type(v)) not in _ATOMS]
        elif isinstance(value, (*CONTAINERS, tuple, frozenset)):
            found += [((label, f"[{i}]"), v) for i, v in enumerate(value) if id(type(v)) not in _ATOMS]
        if of_users_module(kind) or kind is types.SimpleNamespace:
            space = getattr(value, "__dict__", None)
            if type(space) is dict:
                self._spaces.append((kind, space, dict(space), label))
                found += [((label, f".{k}"), v) for k, v in space.items()]
            for base in kind.__mro__:
                slots = base.__dict__.get("__slots__", ())
                for name in (slots,) if isinstance(slots, str) else slots:
                    if name not in ("__dict__", "__weakref__"):
                        place = _Slot(value, name, (label, f".{name}"))
                        found.append((place.place, self._add(place)))
            found.append((label, kind))
        elif callable(value):  # such as a function under jit
            found.append((label, getattr_static(value, "__wrapped__", None)))
        return found

    def _class(self, value: type) -> Iterable[tuple[Any, Any]]:
        for base in filter(of_users_module, value.__mro__):
            for name, member in list(vars(base).items()):
                label = ((None, base.__name__), f".{name}")
                if not name.startswith("__") and not isinstance(member, _OF_CLASSES):
                    self._add(_Slot(base, name, label))
                if not name.startswith("__") or callable(member):
                    yield label, member

    def _function(self, function: types.FunctionType) -> Iterable[tuple[Any, Any]]:
        users = is_users(function.__code__.co_filename)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if id(cell) not in self._seen:
                self._seen[id(cell)] = cell
                place = _Cell(cell, None, (None, name))
                yield place.place, self._add(place) if users else place.now()
        if not users:  # a library's wrapper may hold a function of the user's, but does not use the user's globals
            return
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            yield None, value
        space, names = function.__globals__, _names_of(function.__code__)
        for name in names:
            found = space.get(name, _MISSING)
            if isinstance(found, types.ModuleType):
                if is_users(getattr(found, "__file__", None) or ""):
                    for inner in names:
                        if inner in found.__dict__:
                            yield self._global(found.__dict__, inner, ((None, name), f".{inner}"))
            elif found is not _MISSING:
                yield self._global(space, name, (None, name))

    def _global(self, space: dict, name: str, label: Any) -> tuple[Any, Any]:
        if (id(space), name) not in self._entries:
            self._entries.add((id(space), name))
            self._add(_Entry(space, name, label))
        return label, space[name]

    def _add(self, place: Place) -> Any:
        now = place.now()
        self._places.append((place, now))
        return now

    # --- Comparing ---

    def _differences(self) -> Iterator[tuple[Place, Any]]:
        """The places that are not as they were, with what was there."""
        for place, old in self._places:
            if not place.is_still(old):
                yield place, old
        for kind, space, before, label in self._spaces:
            if not _same_entries(space, before):
                for key in {**before, **space}:
                    old = before.get(key, _MISSING)
                    if space.get(key, _MISSING) is not old:
                        place = _Entry(space, key, (label, f".{key}"))
                        place.cached = isinstance(getattr_static(kind, key, None), functools.cached_property)
                        yield place, old

    def put_back(self) -> list[tuple[Place, Any]]:
        """Makes all be as it was; what was not."""
        differences = list(self._differences())
        for place, old in differences:
            place.put(old)
        return differences

    def watch(self, run: Callable[[], list], names: list[str], restore_variables: Callable[[], None]) -> list[Packed]:
        """Runs code. What it gives, by names, and then what is in the places that changed earlier. All is put back;
        further places that changed are kept for `grow`."""
        _active.memories.append(self)
        links = aliases.enter(self._is_own)
        try:
            values = run()
            aliases.settle()
            labels = [place.label for place in self.changed]
            packs = [Packed(n, v) for n, v in zip([*names, *labels], [*values, *self.values()])]
        finally:
            aliases.leave()
            _active.memories.pop()
            restore_variables()
            differences = self.put_back()
            self.inner_links = aliases.restore(links)
        self._add_fresh([place for place, _ in differences])
        return packs

    def _add_fresh(self, places: list[Place]) -> None:
        known = {place.identity for place in (*self.changed, *self.fresh)} | self._covered
        for place in places:
            if place.refusal:
                raise StructureError(f"autograph: {user_place()}: '{place.label}' {place.refusal}")
            if place.identity not in known and not place.cached:
                self.fresh.append(place)

    def knows(self, value: Any) -> bool:
        """Whether an object was there before: what it holds is put back."""
        return id(value) in self._seen

    def _is_own(self, holder: Any) -> bool:
        """Whether what refers to an object is a record of this statement."""
        return (
            isinstance(holder, (Place, Packed))
            or (type(holder) is tuple and len(holder) == 2 and isinstance(holder[0], Place))
            or holder is self._seen
            or holder is self.entry
            or any(holder is old for _, old in self._places)
            or any(holder is before for _, _, before, _ in self._spaces)
        )

    @property
    def has_grown(self) -> bool:
        return bool(self.fresh) or self._grown

    def again(self) -> None:
        """Has the statement traced again, though it changes nothing else."""
        self._grown = True

    def grow(self) -> bool:
        """Makes what the last runs changed variables of the statement; whether there was anything."""
        grown, self._grown = self.has_grown, False
        self._rounds += 1
        if grown and self._rounds > _MOST_ROUNDS:
            raise StructureError(
                f"autograph: {user_place()}: what is called here changes something else each time that it is traced, "
                f"now '{self.fresh[0].label}'; a traced program needs the same variables every time"
            )
        self.changed += self.fresh
        self.fresh = []
        return grown

    @property
    def labels(self) -> list[str]:
        return [place.label for place in self.changed]

    def values(self) -> list:
        return [place.get() for place in self.changed]

    def set(self, values: Iterable) -> None:
        for place, value in zip(self.changed, values):
            place.set(value)
        aliases.accept()


_OF_CLASSES = (types.FunctionType, staticmethod, classmethod, property, functools.cached_property)


# By identity, as conversion.py keeps what it made: that two code objects are equal takes Python twice as long for each
# function inside the other.
_names: dict[int, tuple[types.CodeType, tuple[str, ...]]] = {}


def _names_of(code: types.CodeType) -> tuple[str, ...]:
    """The names that code looks up in its globals or as attributes, with the functions inside it."""
    known = _names.get(id(code))
    if known is None:
        names: dict[str, None] = {}
        pending = [code]
        while pending:
            inner = pending.pop()
            names |= dict.fromkeys(inner.co_names)
            pending += [constant for constant in inner.co_consts if isinstance(constant, types.CodeType)]
        known = _names[id(code)] = code, tuple(names)
    return known[1]
