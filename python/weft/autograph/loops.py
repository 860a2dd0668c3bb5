"""Loops: while and for, by Python as long as nothing in them is traced, else as one equation.

The variables of a loop that hold arrays are its carry, in the order in which the function first assigns them. What is
no array must stay the same from step to step.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any, NoReturn

from .. import _weft, control
from .. import numpy as wnp
from .._core import tree as _tree
from .._core.shapes import ShapeDtype
from .._core.tracing import asks_for_hash
from . import aliases, joining
from .branches import GetState, SetState, if_, zeros
from .errors import ConversionError, StructureError, is_of_users_code, mark_as_of_construct, user_place
from .memory import Grown, Memory, is_known_iterator
from .regions import reaches_traced, region, trace_region, traced, truth
from .state import Packed, Undefined, check_same_shape_of_state, entry_of, label
from .steps import Reversed, Rows, StaticRange, Steps, TracedRange, Zip, like_python, steps_of

# --- The statements ---------------------------------------------------------------------------------------------------


def while_(
    test: Callable[[], Any],
    body: Callable[[], None],
    get_state: GetState,
    set_state: SetState,
    names: tuple[str, ...],
    flags: tuple[str, ...] = (),
    guarded: tuple[str, ...] = (),
) -> None:
    """The statement `while`."""
    loop = _Loop(get_state, set_state, names, flags, guarded, "`while`")

    def staged(at_least_once: bool) -> None:
        def make(init, step, go_on, paths):
            return control.loop_while(go_on, step, init, "`while`", paths)

        loop.run(lambda _: body(), [], lambda leaves: None, make, test, at_least_once)

    first = True
    while True:
        decision = _decide(test)
        if traced(decision):
            staged(at_least_once=False)
            return
        if not decision:
            return
        if first and flags and _weft.is_tracing() and loop.flags_become_traced(body):
            staged(at_least_once=True)
            return
        first = False
        body()


def _decide(test: Callable[[], Any]) -> Any:
    """The value of a loop's test. Where it may be traced it is traced apart, so that nothing of it stays behind in the
    program before the loop."""
    if not _weft.is_tracing() or not reaches_traced(test):
        return test()
    found: list = []
    memory = Memory(test)

    def run() -> list:
        found.append(test())
        return []

    def probe(_: list) -> list:
        return memory.watch(run, [], _nothing)

    trace_region(probe, [], "loop_test", "a traced `while`")
    # What it changes was put back.
    return test() if memory.has_grown and not traced(found[0]) else found[0]


def for_(
    iterable: Any,
    body: Callable[[Any], None],
    get_state: GetState,
    set_state: SetState,
    names: tuple[str, ...],
    flags: tuple[str, ...] = (),
    guarded: tuple[str, ...] = (),
    proceed: Callable[[], Any] | None = None,
) -> None:
    """The statement `for`. Over a range or the rows of arrays it is one equation if it uses or makes a traced value;
    over everything else, and where the number behind the loop's variable is asked for, it is unrolled."""
    steps = steps_of(iterable)
    loop = _Loop(get_state, set_state, names, flags, guarded, "`for`")
    if steps is not None:
        if steps.is_traced_range or _holds_traced_array(steps):
            loop.over(steps, body, proceed)
            return
        if _weft.is_tracing() and steps.length != 0 and reaches_traced(body):
            entry = get_state()
            try:
                loop.over(steps, body, proceed)
                return
            except TypeError as error:
                # Python asks for the number behind the variable, as an index or as a key.
                if not (isinstance(error, (_weft.TracerError, StructureError)) or asks_for_hash(error)):
                    raise
                set_state(entry)
    if is_known_iterator(iterable):
        raise StructureError(
            f"autograph: {user_place()}: this `for` inside traced control flow goes over an iterator from outside; how "
            "far it has gone cannot depend on a traced value"
        )
    for item in iterable:
        if proceed is not None:
            go_on = proceed()
            if traced(go_on):
                _guarded_step(go_on, functools.partial(body, item), loop)
                continue
            if not go_on:
                return
        body(item)
        if proceed is not None and not traced(go_on := proceed()) and not go_on:
            return


def _holds_traced_array(steps: Steps) -> bool:
    if isinstance(steps, Rows):
        return traced(steps.array)
    if isinstance(steps, Zip):
        return any(map(_holds_traced_array, steps.parts))
    return isinstance(steps, Reversed) and _holds_traced_array(steps.of)


def _guarded_step(go_on: Any, body: Callable[[], None], loop: _Loop) -> None:
    """One step of an unrolled loop that a traced `break` or `return` may have left."""
    if_(go_on, body, None, loop.get_state, loop.set_state, loop.names, guarded=loop.guarded)


def _same_leaves(a: Any, b: Any) -> bool:
    return all(x is y for x, y in itertools.zip_longest(_tree.leaves(a), _tree.leaves(b)))


def _same_parts(a: Packed, b: Packed) -> bool:
    return a.tree == b.tree and all(map(operator.is_, a.leaves, b.leaves))


def _nothing() -> None:
    pass


class _Loop:
    """A loop on its way into the program."""

    def __init__(
        self,
        get_state: GetState,
        set_state: SetState,
        names: tuple[str, ...],
        flags: tuple[str, ...],
        guarded: tuple[str, ...],
        what: str,
    ):
        self.get_state, self.set_state, self.names = get_state, set_state, names
        self.flags, self.guarded, self.what = flags, guarded, what

    def flags_become_traced(self, body: Callable[[], None]) -> bool:
        """Whether one step, traced for this answer only, makes a flag depend on traced values."""
        entry = self.get_state()
        memory = Memory(body)
        found: list[bool] = []

        def run() -> list:
            self.set_state(entry)
            body()
            after = dict(zip(self.names, self.get_state()))
            found.append(any(traced(after[f]) for f in self.flags))
            return []

        def trial(_: list) -> list:
            return memory.watch(run, [], lambda: self.set_state(entry))

        try:
            trace_region(trial, [], "loop_body", "a traced " + self.what)
        finally:
            self.set_state(entry)
        return found[0]

    def over(self, steps: Steps, body: Callable[[Any], None], proceed: Callable[[], Any] | None) -> None:
        """A `for` over steps."""
        once = not steps.is_traced_range and isinstance(steps.length, int) and steps.length > 0
        unit = isinstance(steps, StaticRange) and steps.range.step == 1
        if proceed is None and not steps.is_traced_range and not unit:
            xs, tree = _tree.flatten(steps.rows())
            slices = []
            for x in xs:
                shape, dtype, weak, _ = _weft.abstract(x)
                slices.append(ShapeDtype(shape[1:], dtype, weak_type=weak))

            def scan(init, step, go_on, paths):
                return control.loop_scan(
                    lambda carry, x: (step(carry, x), None), init, xs, steps.length, False, "`for`", paths
                )[0]

            self.run(body, slices, lambda row: steps.from_row(tree.unflatten(row)), scan, None, at_least_once=once)
            return
        if proceed is None and isinstance(steps, StaticRange) and steps.range.step == 1:
            lower, upper = steps.range.start, steps.range.stop
        elif proceed is None and isinstance(steps, TracedRange) and not traced(steps.step) and steps.step == 1:
            lower, upper = steps.start, steps.stop
        else:
            self._counted(steps, body, proceed, once)
            return

        def count(init, step, go_on, paths):
            return control.loop_count(lower, upper, lambda i, c: step(c, [i]), init, what="`for`", paths=paths)

        shape, dtype = (), "int32"
        if traced(lower) or traced(upper):
            dtype = wnp.result_type(wnp.asarray(lower), wnp.asarray(upper))
        i = ShapeDtype(shape, dtype)
        self.run(body, [i], lambda leaves: like_python(leaves[0]), count, None, at_least_once=once)

    def _counted(self, steps: Steps, body: Callable[[Any], None], proceed: Any, once: bool) -> None:
        """A `for` that may stop early: a `while` with a counter."""
        length = steps.length
        i = ShapeDtype((), "int32" if not traced(length) else length.dtype)

        def count(init, step, go_on, paths):
            def test(c):
                more = c[0] < length
                going = go_on(c[1])
                return more if going is True else more & going if going is not False else False

            def one(c):
                return [c[0] + 1, step(c[1], [c[0]])]

            zero = _weft.full((), 0, i.dtype)
            return control.loop_while(test, one, [zero, init], what="`for`", paths=["the counter", *paths])[1]

        self.run(body, [i], lambda leaves: steps.item(leaves[0]), count, proceed, at_least_once=once)

    def run(
        self,
        body: Callable[[Any], None],
        item_specs: list,
        make_item: Callable[[list], Any],
        make_loop: Callable,
        test: Callable[[], Any] | None,
        at_least_once: bool,
    ) -> None:
        """Traces the loop. make_loop(carry, step, go_on, paths) -> carry is the loop itself."""
        self._body, self._test, self._item_specs, self._make_item = body, test, item_specs, make_item
        self._where, self._place = f"{self.what} at {user_place()}", user_place()
        self._late: dict[tuple, tuple] = {}  # a part of a variable, and another or an object
        self._in_place: set[int] = set()  # numbers of variables that stay one object, which the body writes to
        aliases.settle()
        with region():
            self._entry, covered = entry_of(self.get_state)
            self._memory = Memory(body, test, covered=covered)
            self._memory.entry = self._entry
            while True:
                try:
                    self._trace(make_loop, at_least_once)
                    return
                except Grown as grown:
                    if grown.memory is not self._memory:
                        raise
                    self._memory.grow()

    def _trace(self, make_loop: Callable, at_least_once: bool) -> None:
        entry, memory = self._entry, self._memory
        before = [Packed(n, v) for n, v in zip(self._labels(), [*entry, *memory.values()])]
        self._before = before
        self._carried = [not p.undefined and k not in self._in_place for k, p in enumerate(before)]
        if self.flags or not all(self._carried):
            self._settle(at_least_once)
        carried = self._carried
        paths = [path for p, c in zip(before, carried) if c for path in p.paths()]
        init = [leaf for p, c in zip(before, carried) if c for leaf in p.arrays()]
        try:
            out = list(make_loop(init, self._step, self._go_on, paths))
        except TypeError as error:
            if not is_of_users_code(error):  # but the loop's: the types of its variables differ
                mark_as_of_construct(error)
            raise
        finally:
            self.set_state(entry)
        values = []
        join = joining.Join(memory.knows)
        for k, (p, c, after) in enumerate(zip(before, carried, self._after)):
            if c:
                new = p.rebuild(out)
                if aliases.can_change(p.value) and k in self._unwritten:
                    values.append(p.value)
                else:
                    first = after.value if at_least_once else p.value
                    values.append(join.value(label(p.name), new, first, after.value))
            elif p.undefined:
                values.append(
                    Undefined(
                        p.name,
                        f"is assigned only inside the {self._where}, which may not run: assign {label(p.name)} before "
                        "the loop",
                    )
                )
            else:
                values.append(p.value)
        join.links(None, ([], self._inner_links))
        self._set(values)

    def _set(self, values: list) -> None:
        self.set_state(tuple(values[: len(self.names)]))
        self._memory.set(values[len(self.names) :])

    def _enter(self, leaves: list) -> None:
        """Gives the variables their values at the beginning of a step."""
        rest = list(leaves)
        values = [
            p.rebuild(rest) if c else False if p.name in self.flags else p.value
            for p, c in zip(self._before, self._carried)
        ]
        self._begin(values)

    def _begin(self, values: list) -> None:
        """Sets the variables at the beginning of a step: new objects, which may be those from before the loop."""
        join = joining.Join(self._memory.knows, copies=True)
        found = []
        for k, (p, value) in enumerate(zip(self._before, values)):
            if not p.undefined and value is not p.value:
                in_place = k < len(self.names) and aliases.can_change(p.value)
                join.again = functools.partial(self._write_in_place, k) if in_place else None
                value = join.value(label(p.name), value, p.value, p.value)
            found.append(value)
        self._links = aliases.save()
        self._entered = [Packed(p.name, v) if c else None for p, c, v in zip(self._before, self._carried, found)]
        join.links(None, ([], []))
        named = {name: aliases.origin(v) for name, v in self._parts(found).items()}
        for first, second in self._late.values():
            other = named.get(second) if isinstance(second, tuple) else second
            if first in named and other is not None:
                aliases.link(named[first], other, None, first[1], self._place)
        self._set(found)

    def _parts(self, values: list) -> dict[tuple, Any]:
        """The objects in the variables that can change, by the variable's number and their names."""
        carried = [(k, p) for k, (p, c) in enumerate(zip(self._before, self._carried)) if c]
        return {(k, name): v for k, p in carried for name, v in aliases.changing(label(p.name), values[k])}

    def _note_late(self, after: list, written: bool) -> None:
        """From the second step on, variables may be each other, or other objects from before the loop. If steps write
        to them, too, they are traced again with such links."""
        unreadable = aliases.unreadable() if written else ()
        entries = self._parts([p.value for p in self._before])
        found = [(name, v, aliases.origin(v)) for name, v in self._parts(after).items()]
        late: dict[tuple, tuple] = {}
        for group in joining.groups(
            [*((a, b) for a, b, _ in aliases.since(self._links)), *((v, v) for _, _, v in found)]
        ):
            names = [(name, v is not o) for name, v, o in found if any(o is g for g in group)]
            for k, (name, in_place) in enumerate(names):
                if written or in_place:
                    late |= {(name, other): (name, other) for other, _ in names[:k]}
                    was = aliases.origin(entries.get(name))
                    known = [o for o in group if o is not was and self._memory.knows(o)]
                    late |= {(name, id(o)): (name, o) for o in known if in_place or id(o) not in unreadable}
        if not self._late.keys() >= late.keys():
            self._late |= late
            self._memory.again()
            raise Grown(self._memory)

    def _write_in_place(self, k: int) -> NoReturn:
        """The body writes to an object from before the loop, which others can read, as if to its own variable."""
        self._in_place.add(k)
        self._memory.again()
        raise Grown(self._memory)

    def _watch(self, run: Callable[[], list]) -> list[Packed]:
        """The state after some code of the loop. If that turns out to change more than is known, all begins anew."""
        packs = self._memory.watch(run, list(self.names), lambda: self.set_state(self._entry))
        if self._memory.has_grown:
            raise Grown(self._memory)
        return packs

    def _step(self, leaves: list, item: Any = ()) -> list:
        writes = aliases.writes()

        def run() -> list:
            self._enter(leaves)
            self._body(self._make_item(list(item)))
            aliases.settle()
            after = list(self.get_state())
            self._note_late([*after, *self._memory.values()], aliases.writes() != writes)
            self._unwritten = {
                k
                for k, (entered, value) in enumerate(zip(self._entered, after))
                if entered is not None and value is entered.value and _same_parts(entered, Packed(entered.name, value))
            }
            return after

        out = []
        self._after = self._watch(run)
        self._inner_links = self._memory.inner_links
        for k, (p, c, after) in enumerate(zip(self._before, self._carried, self._after)):
            if k in self._in_place and after.value is not p.value:
                raise StructureError(
                    f"autograph: {self._where}: variable {label(p.name)} is another object after one step, and the "
                    "body writes to the one from before the loop, which has other names, too; do one of the two"
                )
            if c:
                check_same_shape_of_state(p, after, self._where, named=k < len(self.names))
                out += after.arrays()
        return out

    def _go_on(self, leaves: list) -> Any:
        if self._test is None:
            return True
        found: list = []
        changed: list[str] = []

        def run() -> list:
            assert self._test is not None
            self._enter(leaves)
            before = [*self.get_state(), *self._memory.values()]
            found.append(truth(self._test()))
            after = [*self.get_state(), *self._memory.values()]
            changed.extend(n for n, a, b in zip(self._labels(), before, after) if not _same_leaves(a, b))
            return []

        self._memory.watch(run, [], lambda: self.set_state(self._entry))
        changed.extend(place.label for place in self._memory.fresh)
        if changed:
            raise ConversionError(
                f"autograph: {self._where}: its test changes {label(changed[0])}, and is traced; change it in the body"
            )
        return found[0]

    def _labels(self) -> list[str]:
        return [*self.names, *self._memory.labels]

    def _settle(self, at_least_once: bool) -> None:
        """Finds, by tracing a step for it, which variables without a value before the loop are carried (and with which
        type), and which flags can be set at all."""
        before = self._before
        n = sum(len(p.arrays()) for p, c in zip(before, self._carried) if c)
        stand_ins: dict[int, tuple[Packed, list]] = {}

        def trial(tracers: list) -> list:
            def run() -> list:
                rest = list(tracers[:n])
                values = [p.rebuild(rest) if c else p.value for p, c in zip(before, self._carried)]
                self._begin(values)
                self._body(self._make_item(list(tracers[n:])))
                return list(self.get_state())

            for k, (p, after) in enumerate(zip(before, self._watch(run))):
                if p.name in self.flags:
                    self._carried[k] = after.value is not False
                elif p.undefined and not after.undefined and (at_least_once or p.name in self.guarded):
                    stand_ins[k] = after, [_weft.abstract(leaf) for leaf in after.arrays()]
            return []

        specs = [leaf for p, c in zip(before, self._carried) if c for leaf in p.arrays()] + self._item_specs
        try:
            trace_region(trial, specs, "loop_body", "a traced " + self.what)
        finally:
            self.set_state(self._entry)
        for k, (after, types) in stand_ins.items():
            before[k] = Packed(after.name, after.rebuild([zeros(t) for t in types]))
            self._carried[k] = True
