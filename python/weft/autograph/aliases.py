"""Containers that are one object if a traced condition holds.

    o = a if x > 0 else b      # o is a new list: its elements are chosen
    o[0] = v                   # a[0] = v if x > 0; b[0] = v otherwise

What a traced condition chooses is a copy, linked with each container that it may be. After every statement and call
that may write, `settle` compares what is linked with what it was, and writes what changed to the others, under their
conditions. What no condition can write (another length, a condition from inside a loop) is refused, unless nobody can
read the others any more.
"""

from __future__ import annotations

import collections
import gc
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from .. import _weft
from .._core import traced_calls
from .errors import ConversionError, StructureError, user_place
from .regions import truth
from .source import of_users_module

CONTAINERS = (list, dict, set, collections.deque)
LARGEST_ARRAY = 1 << 20  # larger NumPy arrays are not compared
PLAIN: tuple[type, ...] = (
    _weft.Tracer,
    _weft.Array,
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    type,
    types.ModuleType,
)
PLAIN += (types.FunctionType, types.MethodType, types.BuiltinFunctionType, range, slice, frozenset, np.generic)


def can_change(value: Any) -> bool:
    """Whether a value is one whose parts can be assigned to."""
    if isinstance(value, (*PLAIN, tuple)):
        return False
    if isinstance(value, CONTAINERS):
        return True
    if isinstance(value, np.ndarray):
        return value.flags.writeable and not value.dtype.hasobject and value.nbytes <= LARGEST_ARRAY
    kind: Any = type(value)
    return of_users_module(kind) and not getattr(getattr(kind, "__dataclass_params__", None), "frozen", False)


def parts(value: Any) -> dict:
    """What a value holds, by index, key or attribute."""
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, (list, tuple, collections.deque)):
        return dict(enumerate(value))
    if isinstance(value, set):
        return {v: v for v in value}
    if isinstance(value, np.ndarray):
        return {None: value.tobytes()}
    found = dict(getattr(value, "__dict__", ()))
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                found[name] = getattr(value, name)
    return found


def set_part(value: Any, key: Any, new: Any) -> None:
    if isinstance(value, (list, dict, collections.deque)):
        value[key] = new
    elif key in getattr(value, "__dict__", ()):
        value.__dict__[key] = new
    else:
        object.__setattr__(value, key, new)


class _Linked:
    """An object, and what it held when it was last looked at."""

    __slots__ = ("object", "was", "links")

    def __init__(self, value: Any):
        self.object, self.was, self.links = value, parts(value), []  # type: ignore[var-annotated]

    def is_still(self) -> bool:
        now = parts(self.object)
        if isinstance(self.object, np.ndarray):
            return now == self.was
        return list(now) == list(self.was) and all(v is self.was[k] for k, v in now.items())


# Traced values and the truths that they must have; None where nobody knows.
Conditions = tuple[tuple[Any, bool], ...] | None


class Link:
    """Two objects that are one if some conditions hold. `place`: where they became so. `again`: what to do instead of
    an error."""

    __slots__ = ("ends", "conditions", "name", "place", "again")

    def __init__(self, ends: tuple, conditions: Conditions, name: str, place: str, again: Callable | None = None):
        self.ends, self.conditions, self.name, self.place, self.again = ends, conditions, name, place, again

    def other(self, end: _Linked) -> _Linked:
        return self.ends[1] if self.ends[0] is end else self.ends[0]


class _Scope(threading.local):
    """The links of the function that is being traced."""

    def __init__(self) -> None:
        self.linked: dict[int, _Linked] = {}
        self.links: list[Link] = []
        self.origins: dict[int, tuple[Any, Any]] = {}  # of copies of contents
        self.inside: list[Callable[[Any], bool]] = []  # what else of autograph's own may hold an object
        self.is_writing = False
        self.writes = 0


_scope = _Scope()


def any_links() -> bool:
    return bool(_scope.links)


def linked_with(value: Any) -> list:
    """The objects that a value may be."""
    found = _scope.linked.get(id(value))
    return [] if found is None else [link.other(found).object for link in found.links]


def link(a: Any, b: Any, conditions: Conditions, name: str, place: str, again: Callable | None = None) -> None:
    """Says that two objects are one if conditions hold."""
    ends = tuple(_scope.linked.setdefault(id(v), _Linked(v)) for v in (a, b))
    new = Link(ends, conditions, name, place, again)
    _scope.links.append(new)
    for end in ends:
        end.links.append(new)


def writes() -> int:
    """How often something that is linked has changed."""
    return _scope.writes


def changing(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The objects in a value that can change, with their names; not below those that have no parts of their own."""
    if can_change(value):
        yield name, value
    if isinstance(value, (*CONTAINERS, tuple)) or (can_change(value) and not isinstance(value, np.ndarray)):
        for key, part in parts(value).items():
            if part is not value:
                yield from changing(part_name(name, value, key), part)


def part_name(name: str, value: Any, key: Any) -> str:
    return f"{name}[{key!r}]" if isinstance(value, (*CONTAINERS, tuple)) else f"{name}.{key}"


def accept() -> None:
    """What is linked holds what it should: autograph itself has written it."""
    if _scope.links and not _scope.is_writing:
        for each in _scope.linked.values():
            each.was = parts(each.object)


# --- Regions ----------------------------------------------------------------------------------------------------------


def save() -> int:
    return len(_scope.links)


Inner = list[tuple[Any, Any, Conditions]]


def restore(count: int) -> Inner:
    """Leaves a region: takes away the links that were made in it, and gives them with their objects."""
    s = _scope
    found = since(count)
    inner = s.links[count:]
    del s.links[count:]
    for old in inner:
        for end in old.ends:
            end.links.remove(old)
            if not end.links:
                s.linked.pop(id(end.object), None)
    accept()
    return found


def since(count: int) -> Inner:
    """The links that were made since."""
    return [(new.ends[0].object, new.ends[1].object, new.conditions) for new in _scope.links[count:]]


def escaping(inner: Inner, values: list) -> list:
    """The traced values on which it depends, after a region, what its results are."""
    ends = {id(end) for a, b, _ in inner for end in (a, b)}
    if not ends or not any(id(origin(part)) in ends for value in values for _, part in changing("", value)):
        return []
    return list({id(test): test for _, _, conditions in inner for test, _ in conditions or ()}.values())


# --- Copies of contents -----------------------------------------------------------------------------------------------


def note_origin(value: Any, original: Any) -> Any:
    _scope.origins[id(value)] = value, original
    return value


def forget() -> None:
    """No function is being traced any more."""
    _scope.origins.clear()


def origin(value: Any) -> Any:
    """What a value is a copy of, or itself."""
    found = _scope.origins.get(id(value))
    return value if found is None else found[1]


# --- Writing ----------------------------------------------------------------------------------------------------------


def settle() -> None:
    """Writes what changed in linked objects to those that they may be."""
    s = _scope
    if not s.links or s.is_writing:
        return
    changed = [each for each in s.linked.values() if not each.is_still()]
    if not changed:
        return
    s.is_writing = True
    s.writes += 1
    try:
        waves = [(each, _reached(each)) for each in changed]
        for each, reached in waves:
            for other in changed:
                if other is not each and other in reached and _readable(other) and _readable(each):
                    _refuse(each, reached[other], "changes here in one statement with another")
        for each, reached in waves:
            _write(each, reached)
        for each in s.linked.values():
            each.was = parts(each.object)
    finally:
        s.is_writing = False


def _reached(start: _Linked) -> dict[_Linked, list[list[Link]]]:
    """What an object may be, and over which links; it is if all links of one of the paths hold."""
    found: dict[_Linked, list[list[Link]]] = {}

    def walk(at: _Linked, path: list[Link], met: frozenset) -> None:
        for way in at.links:
            other = way.other(at)
            if id(other) not in met and _can_hold([*path, way]):
                found.setdefault(other, []).append([*path, way])
                walk(other, [*path, way], met | {id(other)})

    walk(start, [], frozenset({id(start)}))
    return found


def _can_hold(path: list[Link]) -> bool:
    signs: dict[int, bool] = {}
    conditions = [condition for way in path for condition in way.conditions or ()]
    return all(signs.setdefault(id(test), sign) == sign for test, sign in conditions)


def _write(source: _Linked, reached: dict[_Linked, list[list[Link]]]) -> None:
    now = parts(source.object)
    same_keys = list(now) == list(source.was)
    for target, paths in reached.items():
        theirs = parts(target.object)
        keys = [k for k in now if same_keys and now[k] is not source.was[k]]
        reason = None
        if not same_keys or isinstance(source.object, set):
            reason = "changes its length or its keys here"
        elif isinstance(source.object, np.ndarray) or isinstance(target.object, np.ndarray):
            reason = "changes here, and NumPy arrays cannot hold traced values"
        elif any(way.conditions is None for path in paths for way in path):
            reason = "changes here"
        elif any(k not in theirs or not _can_be_chosen(now[k], theirs[k]) for k in keys):
            reason = "changes here in what is no array, or in a shape"
        if reason is None:
            for k in keys:
                set_part(target.object, k, _select(paths, now[k], theirs[k], k))
            continue
        del theirs
        if _readable(target):
            for path in paths:
                for way in path:
                    if way.again is not None:
                        way.again()
            _refuse(source, paths, reason)


def _can_be_chosen(new: Any, old: Any) -> bool:
    return _weft.is_operand(new) and _weft.is_operand(old) and _weft.abstract(new)[0] == _weft.abstract(old)[0]


def _holds(paths: list[list[Link]]) -> Any:
    """The truth of all conditions of one of the paths."""
    result = None
    for path in paths:
        all_hold: Any = True
        for test, sign in (condition for way in path for condition in way.conditions or ()):
            holds = truth(test) if sign else ~truth(test)
            all_hold = holds if all_hold is True else all_hold & holds
        result = all_hold if result is None else result | all_hold
    return result


def _select(paths: list[list[Link]], new: Any, old: Any, key: Any) -> Any:
    first = paths[0][0].conditions or ()
    test, sign = first[0] if len(paths) == len(paths[0]) == len(first) == 1 else (_holds(paths), True)
    true, false = (new, old) if sign else (old, new)
    return choose_part(test, true, false, f"[{key!r}]")


def choose_part(test: Any, true: Any, false: Any, path: str) -> Any:
    """Set by branches.py, whose branches settle what is linked."""
    raise NotImplementedError


_COPIES = {list: "list({})", dict: "dict({})", set: "set({})", np.ndarray: "{}.copy()"}


def _refuse(source: _Linked, paths: list[list[Link]], reason: str) -> NoReturn:
    way = next((w for path in paths for w in path if w.conditions is None), paths[0][-1])
    kind: Any = type(source.object)
    name, copied = kind.__name__, _COPIES.get(kind, "copy.copy({})")
    if kind is np.ndarray:
        name = "NumPy array"
    raise StructureError(
        f"autograph: {user_place()}: a {name} {reason}, and {way.name}, which a traced condition chose at {way.place}, "
        f"may be this {name} or another one. Choose a copy there ({copied.format('a')} if ... else "
        f"{copied.format('b')}), or make a new {name} here instead of changing this one"
    )


def in_place(value: Any) -> Any:
    """What `+=` is about to change; a traced value that may be a NumPy array is a new one afterwards, where Python
    would write to that array."""
    found = _scope.linked.get(id(value))
    if found is not None and isinstance(value, _weft.Tracer):
        for target, paths in _reached(found).items():
            if isinstance(target.object, np.ndarray) and _readable(target):
                _refuse(target, paths, "would be changed in place here, which cannot hold traced values")
    return value


def _is_flag(value: Any) -> bool:
    return isinstance(value, _weft.Tracer) and not value.shape and _weft.dtype_kind(value.dtype) == "bool"


def is_(a: Any, b: Any) -> Any:
    """a is b; of a traced boolean and another, traced or not, whether they are equal, since Python has one object for
    each."""
    if (_is_flag(a) and (isinstance(b, bool) or _is_flag(b))) or (isinstance(a, bool) and _is_flag(b)):
        return a is b or a == b
    found, other = (_scope.linked.get(id(v)) for v in (a, b))
    if a is b or found is None or other is None:
        return a is b
    paths = _reached(found).get(other)
    if paths is None:
        return False
    if any(way.conditions is None for path in paths for way in path):
        _refuse(found, paths, "is compared with `is` here")
    return _holds(paths)


def is_not(a: Any, b: Any) -> Any:
    """a is not b"""
    found = is_(a, b)
    return ~found if isinstance(found, _weft.Tracer) else not found


def is_number(a: Any, b: Any) -> bool:
    """a is b, where one of them is a number that the program writes out."""
    if isinstance(a, _weft.Tracer) or isinstance(b, _weft.Tracer):
        raise ConversionError(
            f"autograph: {user_place()}: `is` asks whether a traced value and a number are one object, which only "
            "Python's own numbers can be; compare them with =="
        )
    return a is b


def is_not_number(a: Any, b: Any) -> bool:
    """a is not b, likewise."""
    return not is_number(a, b)


# --- Who can still read an object -------------------------------------------------------------------------------------


def _readable(target: _Linked) -> bool:
    return id(target.object) not in unreadable()


def unreadable() -> set[int]:
    """The linked objects to which nothing but autograph itself refers, by their numbers."""
    s = _scope
    held: collections.Counter[int] = collections.Counter()
    for each in s.linked.values():
        held[id(each.object)] += 1
        held.update(map(id, each.was.values()))
        held.update(map(id, parts(each.object).values()))
    for arguments, keywords in traced_calls.arguments():
        held.update(map(id, [*arguments, *keywords.values()]))
    found = set()
    for number, each in s.linked.items():
        count = sys.getrefcount(each.object) - 1 - held[number]
        if count > 0 and count > _held_inside(each.object):
            found.add(number)
    queue = [s.linked[number] for number in found]
    while queue:
        for part in parts(queue.pop().object).values():
            if id(part) in s.linked and id(part) not in found:
                found.add(id(part))
                queue.append(s.linked[id(part)])
    return s.linked.keys() - found


def _held_inside(value: Any) -> int:
    """How many references the records of the statements around hold, which are autograph's own."""
    if not _scope.inside:
        return 0
    return sum(any(is_own(holder) for is_own in _scope.inside) for holder in gc.get_referrers(value))


def enter(is_own: Callable[[Any], bool]) -> int:
    """Enters a region. `is_own`: whether what refers to an object is autograph's own."""
    _scope.inside.append(is_own)
    return len(_scope.links)


def leave() -> None:
    """Ends what `enter` began; `restore` takes its links away."""
    _scope.inside.pop()
