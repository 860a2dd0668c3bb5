"""Programs of functions of references: Weft's program takes what the references hold and returns what they hold at the
end; the view says which of its arguments are references, and what happens to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._core import stateful
from .._core import tree as _tree
from .._core.errors import value_error
from .._core.shapes import ShapedArray
from ..ref import AbstractRef, Ref
from .dtypes import canonicalize_dtype
from .effects import AccumEffect, RefEffect, WriteEffect
from .jaxprs import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Var
from .ref_equations import Event, WatchedRef, get_p, swap_p, with_events
from .source_info_util import SourceInfo


class RefJaxpr(Jaxpr):
    """A program some of whose arguments are references.

    Args:
        pure: the program of arrays, whose last results are what the references hold at the end.
        uses: by the number of an argument that is a reference: what happens to it.
        events: what happened, in order, and the variables of the values of that.
    """

    def __init__(self, pure: Jaxpr, uses: dict[int, set[type[RefEffect]]], events: Any = ((), ())):
        self.pure, self.uses, self._events = pure, uses, events
        invars = list(pure.invars)
        for place in uses:
            aval = invars[place].aval
            invars[place] = Var(AbstractRef(aval), repr(invars[place]))
        effects = {kind(invars[place]) for place, kinds in uses.items() for kind in kinds}
        outs = pure.outvars[: len(pure.outvars) - len(uses)]
        refs = {place: invars[place] for place in uses}
        eqns = with_events(pure, outs, refs, *events) if events[0] else pure.eqns
        super().__init__(pure.constvars, invars, outs, eqns, effects | pure.effects)

    def discharged(self, which: Sequence[bool]) -> Jaxpr:
        """The program in which some of the references are arguments and, in the end, results."""
        outs = len(self.pure.outvars) - len(self.uses)
        ends = dict(zip(self.uses, self.pure.outvars[outs:]))
        kept = {place: kinds for place, kinds in self.uses.items() if not which[place]}
        given = [end for place, end in ends.items() if place not in kept]
        pure = self.pure.replace(outvars=[*self.pure.outvars[:outs], *given, *(ends[place] for place in kept)])
        rest = iter(self._events[1])
        values = [(event, [next(rest) for _ in event.values]) for event in self._events[0]]
        left = [(event, atoms) for event, atoms in values if event.place in kept]
        events = [event for event, _ in left], [atom for _, atoms in left for atom in atoms]
        return RefJaxpr(pure, kept, events) if kept else pure


def has_references(tree: Any) -> bool:
    """Whether there are references, or types of them, among arguments."""
    return any(isinstance(leaf, (AbstractRef, Ref)) for leaf in _tree.leaves(tree))


def traced(make_jaxpr: Callable[..., Any], fun: Callable[..., Any], args: Any, kwargs: Any) -> ClosedJaxpr:
    """The program of a function, some of whose arguments are references."""
    leaves, tree = _tree.flatten((args, kwargs))
    uses: dict[int, set[type[RefEffect]]] = {}

    events: list[Event] = []

    def pure(*values: Any) -> Any:
        events.clear()
        mine = [
            WatchedRef(v, place, events) if isinstance(leaf, (AbstractRef, Ref)) else v
            for place, (leaf, v) in enumerate(zip(leaves, values))
        ]
        inner_args, inner_kwargs = _tree.unflatten(tree, mine)
        out = fun(*inner_args, **inner_kwargs)
        uses.clear()
        uses.update((i, ref.uses) for i, ref in enumerate(mine) if isinstance(ref, WatchedRef))
        return out, [Ref._read(mine[i], "read") for i in uses], [value for event in events for value in event.values]

    closed = make_jaxpr(pure)(*map(_contents, leaves))
    of_events = sum(len(event.values) for event in events)
    count = len(closed.jaxpr.outvars) - of_events
    atoms = closed.jaxpr.outvars[count:]
    jaxpr = closed.jaxpr.replace(outvars=closed.jaxpr.outvars[:count])
    ends = jaxpr.outvars[len(jaxpr.outvars) - len(uses) :]
    for place, end in zip(uses, ends):
        # Through transforms, whose references are others.
        if end is not jaxpr.invars[place] and not uses[place] & {WriteEffect, AccumEffect}:
            uses[place].add(WriteEffect)
    return ClosedJaxpr(RefJaxpr(jaxpr, uses, (events, atoms)), closed.consts)


def captured() -> list[Ref]:
    """The references that the function of which a program was made last may use, besides its arguments."""
    return [] if stateful.references is None else stateful.references.looked_at()


def with_captured(
    whole_of: Callable[..., ClosedJaxpr], fun: Callable[..., Any], args: Any, kwargs: Any, refs: list[Ref]
) -> ClosedJaxpr:
    """The program of a function that uses references from outside: they are constants, which it reads first, and writes
    at the end. `whole_of`: gives the program of a function of arrays, for arguments."""
    pure = stateful.references.beginning_with("make_jaxpr", refs, fun)
    closed = whole_of(pure, list(map(_contents, refs)), args, kwargs)
    whole, n = closed.jaxpr, len(refs)
    outs, ends = whole.outvars[: len(whole.outvars) - n], whole.outvars[len(whole.outvars) - n :]
    known = {atom for eqn in whole.eqns for atom in eqn.invars} | set(outs)
    reads: list[JaxprEqn] = []
    writes: list[JaxprEqn] = []
    used: list[tuple[Var, Ref]] = []
    for ref, content, end in zip(refs, whole.invars, ends):
        var = Var(AbstractRef(content.aval))
        is_read = content in known or any(content is other for other in ends if other is not end)
        if is_read:
            reads.append(JaxprEqn([var], [content], get_p, {"index": ...}, SourceInfo("", "")))
        if end is not content:
            before: list[Var] = [DropVar(content.aval)]
            writes.append(JaxprEqn([var, end], before, swap_p, {"index": ...}, SourceInfo("", "")))
        if is_read or end is not content:
            used.append((var, ref))
    constvars = [*(var for var, _ in used), *whole.constvars]
    jaxpr = Jaxpr(constvars, whole.invars[n:], outs, [*reads, *whole.eqns, *writes])
    return ClosedJaxpr(jaxpr, [*(ref for _, ref in used), *closed.consts])


def _contents(leaf: Any) -> Any:
    """The type of what a reference holds; of others the type itself."""
    if isinstance(leaf, Ref):
        leaf = leaf.aval
    return leaf.inner_aval if isinstance(leaf, AbstractRef) else leaf


def discharge_state(closed: ClosedJaxpr, should_discharge: bool | Sequence[bool] = True) -> ClosedJaxpr:
    """The program with arrays in the places of references, whose last results are what these hold at the end."""
    jaxpr = closed.jaxpr
    if not isinstance(jaxpr, RefJaxpr):
        return closed
    count = len(jaxpr.invars)
    which = [should_discharge] * count if isinstance(should_discharge, bool) else list(should_discharge)
    if len(which) != count:
        raise value_error(f"discharge_state: should_discharge has {len(which)} entries for {count} arguments")
    return ClosedJaxpr(jaxpr.discharged(which), closed.consts)


def shaped_array_ref(shape: Any, dtype: Any, weak_type: bool = False) -> AbstractRef:
    """The type of references to arrays of a shape and a dtype."""
    return AbstractRef(ShapedArray(shape, canonicalize_dtype(dtype), weak_type))
