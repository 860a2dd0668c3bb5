"""Decisions: if, conditional expressions, and, or, not, chained comparisons, assert."""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Callable
from typing import Any, NoReturn

from .. import _weft
from .._core import tree as _tree
from . import aliases, joining
from .aliases import CONTAINERS
from .errors import ConversionError, StructureError, mark_as_of_construct, user_place
from .membership import contains, not_contains
from .memory import Memory
from .regions import trace_region, traced, truth
from .state import (
    CHANGED_ELSEWHERE,
    Packed,
    Undefined,
    describe,
    entry_of,
    is_undefined,
    label,
    same_constant,
)
from .texts import message_of

GetState = Callable[[], tuple]
SetState = Callable[[tuple], None]


def _nothing() -> None:
    pass


def if_(
    test: Any,
    body: Callable[[], None],
    orelse: Callable[[], None] | None,
    get_state: GetState,
    set_state: SetState,
    names: tuple[str, ...],
    dead: tuple[str, ...] = (),
    guarded: tuple[str, ...] = (),
    returns: str | None = None,
) -> None:
    """The statement `if`. `dead`: variables that nobody reads after it; `guarded`: those that are only read where a
    flag says that they have a value; `returns`: the branch ("if", "else") after which the function has returned, so
    that nobody reads what it leaves in other variables."""
    if not traced(test):
        if test:
            body()
        elif orelse is not None:
            orelse()
        return
    aliases.settle()
    entry, covered = entry_of(get_state)
    memory = Memory(body, orelse, covered=covered)
    memory.entry = entry

    def run(branch: Callable[[], None]) -> list:
        set_state(entry)
        branch()
        after = get_state()
        return [value for name, value in zip(names, after) if name not in dead]

    live = [name for name in names if name not in dead]
    try:
        true, false = functools.partial(run, body), functools.partial(run, orelse or _nothing)
        put_back = functools.partial(set_state, entry)
        results = choose(test, true, false, live, "`if`", memory, put_back, guarded, returns)
    finally:
        set_state(entry)
    merged = dict(zip(live, results))
    set_state(tuple(merged.get(name, old) for name, old in zip(names, entry)))
    aliases.accept()


def if_chain(
    tests: tuple[Callable[[], Any], ...],
    bodies: tuple[Callable[[], None], ...],
    orelse: Callable[[], None] | None,
    get_state: GetState,
    set_state: SetState,
    names: tuple[str, ...],
    dead: tuple[str, ...] = (),
    guarded: tuple[str, ...] = (),
    returns: tuple[bool, ...] = (),
) -> None:
    """A long `if` with its `elif`s, whose tests are all evaluated first: a branch inside the other for each would be as
    deep as there are tests, this is as deep as its logarithm. `returns`: after which branches, the last one for `else`,
    the function has returned."""
    branches: list[tuple[Callable[[], None] | None, bool]] = []
    truths: list[Any] = []
    last = orelse, bool(returns) and returns[-1]
    for k, (test, body) in enumerate(zip(tests, bodies)):
        value = test()
        if traced(value):
            truths.append(truth(value))
            branches.append((body, bool(returns) and returns[k]))
        elif value:
            last = body, bool(returns) and returns[k]
            break
    branches.append(last)
    # Which branch it is: that of the first test that holds.
    chosen: Any = len(truths)
    for k in reversed(range(len(truths))):
        chosen = _weft.where(truths[k], k, chosen)

    def run(first: int, end: int) -> None:
        if end - first == 1:
            (branches[first][0] or _nothing)()
            return
        middle = (first + end) // 2
        sides = [all(r for _, r in branches[a:b]) for a, b in ((first, middle), (middle, end))]
        left, right = functools.partial(run, first, middle), functools.partial(run, middle, end)
        which = "if" if sides[0] else "else" if sides[1] else None
        if_(chosen < middle, left, right, get_state, set_state, names, dead, guarded, which)

    run(0, len(branches))


def choose(
    test: Any,
    run_true: Callable[[], list],
    run_false: Callable[[], list],
    names: list[str],
    what: str,
    memory: Memory,
    restore_variables: Callable[[], None] = _nothing,
    guarded: tuple[str, ...] = (),
    returns: str | None = None,
) -> list:
    """Traces both branches; the values of `names` after the one that is taken. What else they change is changed."""
    packs: dict[bool, list[Packed]] = {}
    inner: dict[bool, aliases.Inner] = {}
    tests: dict[bool, list] = {}

    def branch(which: bool, run: Callable[[], list]):
        def region(_: list) -> list:
            packs[which] = memory.watch(run, names, restore_variables)
            inner[which] = memory.inner_links
            tests[which] = aliases.escaping(inner[which], [p.value for p in packs[which]])
            return [leaf for p in packs[which] for leaf in p.arrays()] + list(map(truth, tests[which]))

        return trace_region(region, [], "if_body" if which else "else_body", "a traced " + what)

    while True:
        true = branch(True, run_true)
        false = branch(False, run_false)
        if not memory.grow():
            break
    merge = _Merge([*names, *memory.labels], packs[False], packs[True], guarded, what, returns, len(names), memory)
    merge.add_tests(tests[False], tests[True])
    branches = [merge.select(0, false), merge.select(1, true)]
    parts = (
        ["the `else` branch", "the `if` branch"]
        if what == "`if`"
        else [f"the {what} if it is false", f"the {what} if it is true"]
    )
    condition = test.reshape(()) if test.shape and test.size == 1 else test
    paths = merge.paths if what == "`if`" else [""] * len(merge.paths)
    try:
        out = list(_weft.cond(condition, branches, [], parts, paths, "cond"))
    except TypeError as error:
        mark_as_of_construct(error)
        raise
    values = merge.values(out)  # takes what belongs to it
    outside = {id(test): value for test, value in zip([*tests[False], *tests[True]], out)}
    values = merge.join(values, condition, (inner[False], inner[True]), outside)
    memory.set(values[len(names) :])
    return values[: len(names)]


class _Merge:
    """Which arrays of two branches are one result, and what each variable is after them."""

    def __init__(
        self,
        names: list[str],
        false: list[Packed],
        true: list[Packed],
        guarded: tuple[str, ...],
        what: str,
        returns: str | None,
        named: int,
        memory: Memory,
    ):
        """The first `named` variables are those of the statement; functions that it calls change the others."""
        self._what, self._place, self._returns, self._memory = what, user_place(), returns, memory
        self._unnamed = frozenset(names[named:])
        # Per branch: the numbers of its arrays, or the type of what stands in for an array that it does not have.
        self._picks: tuple[list, list] = ([], [])
        self._make: list[Callable[[list], Any]] = []
        self.paths: list[str] = []
        self._pairs = list(zip(names, false, true))
        self._sizes = [sum(map(sum, (p.is_array for p in packs))) for packs in (false, true)]
        at = [0, 0]
        for name, f, t in zip(names, false, true):
            numbers = []
            for k, p in enumerate((f, t)):
                n = sum(p.is_array)
                numbers.append(list(range(at[k], at[k] + n)))
                at[k] += n
            self._variable(name, (f, t), numbers, name in guarded)

    def _variable(self, name: str, pair: tuple[Packed, Packed], numbers: list[list[int]], guarded: bool) -> None:
        f, t = pair
        if f.undefined and t.undefined:
            self._make.append(_constantly(f.value))
            return
        if f.undefined or t.undefined:
            there = t if f.undefined else f
            if guarded or self._returns == ("else" if f.undefined else "if"):
                stand_in = [_weft.abstract(leaf) for leaf in there.arrays()]
                for k, p in enumerate(pair):
                    self._picks[k].extend(stand_in if p.undefined else numbers[k])
                self._finish(there)
                return
            side = "`else`" if t.undefined else "`if`"
            if "." in name:
                self._refuse(
                    name, f"'{name}' exists after the {side} branch only; assign it before, for the condition is traced"
                )
            poison = Undefined(
                name,
                f"is assigned only in the {side} branch of the `if` at {self._place}, whose condition is traced: "
                f"assign '{name}' in both branches, or before",
            )
            self._make.append(_constantly(poison))
            return
        if f.value is t.value and isinstance(f.value, CONTAINERS) and self._memory.knows(f.value):
            self._make.append(_constantly(f.value))  # the same list as before: what it holds is a variable of its own
            return
        if f.tree != t.tree:
            self._raise(name, f, t)
        mixed = []
        for old, new, a, b in zip(f.leaves, t.leaves, f.is_array, t.is_array):
            if a != b:
                self._raise(name, f, t)
            if not a and not same_constant(old, new):
                self._refuse(
                    name,
                    f"{label(name)} is {new!r} on one path and {old!r} on the other; a traced condition can only "
                    "choose between arrays and numbers",
                )
            # Python numbers that agree stay Python's.
            constant = a and isinstance(old, (bool, int, float)) and type(old) is type(new) and old == new
            mixed.append(a and not constant)
        keep = copy.copy(t)
        arrays = [i for i, a in enumerate(f.is_array) if a]
        paths = keep.paths()
        for k in range(2):
            self._picks[k].extend(numbers[k][arrays.index(i)] for i, m in enumerate(mixed) if m)
        self.paths += [paths[arrays.index(i)] for i, m in enumerate(mixed) if m]
        keep.is_array = mixed
        self._make.append(keep.rebuild)

    def _finish(self, there: Packed) -> None:
        self.paths += there.paths()
        self._make.append(there.rebuild)

    def _raise(self, name: str, f: Packed, t: Packed) -> None:
        first, second = ("the `if` branch", "the `else` branch") if self._what == "`if`" else ("one path", "the other")
        self._refuse(
            name,
            f"{label(name)} is {describe(t)} after {first} and {describe(f)} after {second}; both must have the same "
            "structure, for the condition is traced",
        )

    def _refuse(self, name: str, reason: str) -> NoReturn:
        if name in self._unnamed:
            reason += CHANGED_ELSEWHERE
        raise StructureError(f"autograph: {self._what} at {self._place}: {reason}")

    def select(self, k: int, region):
        """A branch with the results that were chosen."""
        picks = self._picks[k]
        if picks == list(range(self._sizes[k])):
            return region

        def chosen(_: list) -> list:
            out = list(_weft.apply(region.fn, region.captures, region.weak_results))
            return [out[p] if isinstance(p, int) else zeros(p) for p in picks]

        return trace_region(chosen, [], "if_body" if k else "else_body", "a traced " + self._what)

    def values(self, out: list) -> list:
        return [make(out) for make in self._make]

    def add_tests(self, *tests: list) -> None:
        """Further results: what decides, within one branch, which objects the variables are (joining.py)."""
        for k, own in enumerate(tests if any(tests) else ()):
            self._picks[k].extend(range(self._sizes[k], self._sizes[k] + len(own)))
            self._picks[1 - k].extend(_weft.abstract(_weft.full((), 0, "bool")) for _ in own)
            self._sizes[k] += len(own)
            self.paths += ["a condition"] * len(own)

    def join(
        self, values: list, test: Any, inner: tuple[aliases.Inner, aliases.Inner], outside: dict[int, Any]
    ) -> list:
        """The values as objects: those that were there before, or new ones that are linked with them."""
        join = joining.Join(self._memory.knows)
        found = []
        for (name, f, t), value in zip(self._pairs, values):
            if is_undefined(value):
                found.append(value)
                continue
            false, true = (t if f.undefined else f).value, (f if t.undefined else t).value
            found.append(join.value(label(name), value, false, true))
        join.links(test, inner, outside)
        return found


def _constantly(value: Any) -> Callable[[list], Any]:
    return lambda out: value


def zeros(abstract: tuple) -> Any:
    """A value of a type, where the number does not matter; weak where the type is."""
    shape, dtype, weak, _ = abstract
    if weak and not shape:
        return {"bool": False, "signed": 0, "unsigned": 0, "complex": 0j}.get(_weft.dtype_kind(dtype), 0.0)
    return _weft.full(shape, 0, dtype)


def if_expression(test: Any, body: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
    """body() if test else orelse()"""
    if not traced(test):
        return body() if test else orelse()
    return _either(test, body, orelse, "conditional expression")


def _either(test: Any, true: Callable[[], Any], false: Callable[[], Any], what: str) -> Any:
    return choose(test, lambda: [true()], lambda: [false()], ["the value"], what, Memory(true, false))[0]


def both(*operands: Callable[[], Any]) -> Any:
    """The truth of `a and b`, where only that is asked for."""
    first, *rest = operands
    value = truth(first())
    return and_(value, lambda: both(*rest)) if rest else value


def either(*operands: Callable[[], Any]) -> Any:
    """The truth of `a or b`."""
    first, *rest = operands
    value = truth(first())
    return or_(value, lambda: either(*rest)) if rest else value


def and_(first: Any, *rest: Callable[[], Any]) -> Any:
    """first and rest[0]() and ...: a traced operand becomes a branch, so what follows runs only if it is true."""
    if not rest:
        return first
    if not traced(first):
        return and_(rest[0](), *rest[1:]) if first else first
    return _either(first, lambda: and_(rest[0](), *rest[1:]), lambda: first, "`and`")


def or_(first: Any, *rest: Callable[[], Any]) -> Any:
    """first or rest[0]() or ..."""
    if not rest:
        return first
    if not traced(first):
        return first if first else or_(rest[0](), *rest[1:])
    return _either(first, lambda: first, lambda: or_(rest[0](), *rest[1:]), "`or`")


def not_(value: Any) -> Any:
    return ~truth(value) if traced(value) else not value


def none_of(*flags: Any) -> Any:
    """Whether no flag is set."""
    if any(f is True for f in flags):
        return False
    result: Any = True
    for flag in flags:
        if traced(flag):
            result = ~flag if result is True else result & ~flag
        elif flag:
            return False
    return result


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is": aliases.is_,
    "is not": aliases.is_not,
    "in": contains,
    "not in": not_contains,
}


def compare(first: Any, *rest: tuple[str, Callable[[], Any]]) -> Any:
    """first < b < c ...: every operand is evaluated once, and only if it is needed."""
    (sign, operand), *more = rest
    second = operand()
    result = _COMPARISONS[sign](first, second)
    return and_(result, lambda: compare(second, *more)) if more else result


def to_negated_power(base: Any, exponent: Any) -> Any:
    """base ** -n. Of Python's integers that is a float, as of traced numbers that stand for them."""
    if traced(exponent) and _is_pythons_integer(exponent) and _is_pythons_integer(base):
        base = base * 1.0
    return base**exponent


def _is_pythons_integer(value: Any) -> bool:
    if not traced(value):
        return type(value) in (int, bool)
    shape, dtype, weak, _ = _weft.abstract(value)
    return weak and not shape and _weft.dtype_kind(dtype) == "signed"


def assert_(test: Any, message: Callable[[], Any] | None, text: str) -> None:
    """The statement `assert`; of a traced value it is checked when the program runs."""
    if not traced(test):
        if not test:
            raise AssertionError(message()) if message is not None else AssertionError
        return
    parts, values = message_of(message()) if message is not None else (f"assert {text}", [])
    where = user_place().replace("{", "{{").replace("}", "}}")
    if message is None:
        parts = parts.replace("{", "{{").replace("}", "}}")
    _weft.bind("assert", [_weft.astype(test, "bool"), *_tree.leaves(values)], {"message": f"{parts} ({where})"})


def python_only(value: Any, reason: str) -> Any:
    """A value that Python decides on, where a traced one has no place."""
    if traced(value) or getattr(value, "is_traced_range", False):
        raise ConversionError(f"autograph: {user_place()}: a traced value decides here, but {reason}")
    return value


def _choose_part(test: Any, true: Any, false: Any, path: str) -> Any:
    """One part of a container, which a traced condition chooses."""
    return choose(test, lambda: [true], lambda: [false], [path], "write", Memory())[0]


aliases.choose_part = _choose_part
