"""Equations of references, as JAX's programs have them: `get`, `swap` and `addupdate`. Weft's programs have what
references hold as arguments and results; what happened to a reference while a function was traced is put back between
the equations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _weft
from .._state import scopes
from ..ref import Ref
from ..ref import addupdate as _addupdate
from ..ref import swap as _swap
from .effects import AccumEffect, ReadEffect, RefEffect, WriteEffect
from .jaxprs import DropVar, Jaxpr, JaxprEqn, Var
from .source_info_util import SourceInfo
from .user_primitives import Primitive

_EFFECTS: dict[str, type[RefEffect]] = {"read": ReadEffect, "freeze": ReadEffect, "ref.addupdate": AccumEffect}


class _RefPrimitive(Primitive):
    """An operation on a reference and an index, and on a value that is written."""

    def __init__(self, name: str, effect: type[RefEffect], run: Any):
        super().__init__(name)
        self._effect, self._run = effect, run

    def bind(self, /, ref: Any, *values: Any, index: Any = ...) -> Any:
        """The operation itself."""
        return self._run(ref, index, *values)

    def effects_of(self, operands: Any, params: Any) -> Any:
        return {self._effect(0)}


get_p = _RefPrimitive("get", ReadEffect, lambda ref, index: ref[index])
swap_p = _RefPrimitive("swap", WriteEffect, _swap)
addupdate_p = _RefPrimitive("addupdate", AccumEffect, _addupdate)


class Event:
    """What happened to a reference: which operation, at which index, what was there and what was written."""

    def __init__(self, primitive: Primitive, place: int, index: Any, before: Any, written: Any = None):
        self.primitive, self.place, self.index = primitive, place, index
        self.values = [before, *([] if written is None else [written])]


class WatchedRef(Ref):
    """A reference that knows what has been done to it.

    Args:
        place: the number of the argument that it is.
        events: gets what is done to it in the function itself, not in functions inside.
    """

    __slots__ = ("_events", "_index", "_place", "_where", "uses")

    def __init__(self, value: Any, place: int = 0, events: list[Event] | None = None):
        super().__init__(value)
        self.uses: set[type[RefEffect]] = set()
        self._events, self._place, self._where, self._index = events, place, scopes.here(), ...

    def _note(self, primitive: Primitive, *values: Any) -> None:
        if self._events is not None and scopes.here() is self._where:
            self._events.append(Event(primitive, self._place, self._index, *values))

    def __getitem__(self, index: Any) -> Any:
        part = super().__getitem__(index)
        self._index = index
        self._note(get_p, part)
        return part

    def _read(self, doing: str) -> Any:
        self.uses.add(_EFFECTS.get(doing, WriteEffect))
        self._index = ...
        return super()._read(doing)

    def _checked(self, index: Any) -> Any:
        self._index = index
        return super()._checked(index)

    def _fitting(self, value: Any, place: Any, doing: str) -> Any:
        written = super()._fitting(value, place, doing)
        self._note(addupdate_p if doing == "ref.addupdate" else swap_p, place, written)
        return written


def _is_everything(index: Any) -> bool:
    return index is Ellipsis or (isinstance(index, tuple) and all(part is Ellipsis for part in index))


def _shown(part: Any) -> str:
    if part is Ellipsis:
        return "..."
    if isinstance(part, slice):
        ends = [("" if end is None else str(end)) for end in (part.start, part.stop)]
        return ":".join([*ends, *([] if part.step is None else [str(part.step)])])
    return "_" if _weft.is_traced(part) else str(part)


def text_of_place(name: str, index: Any) -> str:
    """a[:,0]"""
    if _is_everything(index):
        return f"{name}[...]"
    parts = index if isinstance(index, tuple) else (index,)
    return f"{name}[{','.join(map(_shown, parts))}]"


def _drop_dead(eqns: Sequence[JaxprEqn], outs: Sequence[Any]) -> list[JaxprEqn]:
    wanted, kept = set(outs), []
    for eqn in reversed(eqns):
        if isinstance(eqn.primitive, _RefPrimitive) or any(v in wanted for v in eqn.outvars) or eqn.effects:
            wanted.update(eqn.invars)
            kept.append(eqn)
    return kept[::-1]


def with_events(
    pure: Jaxpr, outs: Sequence[Any], refs: dict[int, Var], events: Sequence[Event], atoms: Sequence[Any]
) -> list[JaxprEqn]:
    """The equations of a program whose references are arguments.

    Args:
        pure: the program of what they hold.
        outs: its results, without what they hold at the end.
        refs: the variables of the references, by the numbers of the arguments.
        atoms: those of the events' values, one after the other.
    """
    rest = iter(atoms)
    given = [[next(rest) for _ in event.values] for event in events]
    arguments = {v: place for place, v in enumerate(pure.invars)}
    written = {atom for values in given for atom in values[1:]}
    made: set[Any] = set()
    pending: list[tuple[JaxprEqn, Any]] = []
    for event, (before, *new) in zip(events, given):
        own = arguments.get(before) == event.place if isinstance(before, Var) else False
        computed = isinstance(before, Var) and before not in arguments
        names_it = (own or computed) and before not in made and before not in written
        if names_it:
            made.add(before)
        result = before if names_it else DropVar(before.aval)
        if event.primitive is addupdate_p:
            result = None
            made.discard(before)
        params = {"index": event.index}
        outvars = [] if result is None else [result]
        pending.append(
            (JaxprEqn([refs[event.place], *new], outvars, event.primitive, params, SourceInfo("", "")), result)
        )
    eqns: list[JaxprEqn] = []
    at = 0

    def emit(until: int) -> None:
        nonlocal at
        eqns.extend(eqn for eqn, _ in pending[at:until])
        at = max(at, until)

    for eqn in pure.eqns:
        if any(v in made for v in eqn.outvars):
            continue  # what an index makes of the whole
        emit(max((i + 1 for i, (_, result) in enumerate(pending) if result in eqn.invars), default=0))
        eqns.append(eqn)
    emit(len(pending))
    return _drop_dead(eqns, outs)
