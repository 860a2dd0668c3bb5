"""How programs are optimised: which passes run, which rules do not, passes and rules of one's own."""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from . import _weft
from ._core.errors import is_one_of, type_error, value_error
from ._core.ir_view import Applied
from ._core.tracing import ir_name
from .program import IR, PassRecord

__all__ = ["optimization", "passes", "register_pass", "rules"]

# What the words of jit(optimize=...) mean.
_LEVELS: dict[str, tuple[str, ...]] = {
    "none": (),
    "fast_compile": ("drop-rules", "inline-small", "fold", "simplify", "cse", "dce"),
    "fast_run": ("optimize",),
}
# Passes by name that Python brought.
_REGISTERED: dict[str, Callable[[IR], IR]] = {}


class Plan:
    """Passes in order, and the rules that are left out."""

    def __init__(self, passes: Sequence[str | Callable[[IR], IR]], disabled: frozenset[str]):
        self.passes, self.disabled = tuple(passes), disabled

    @functools.cached_property
    def number(self) -> int:
        """What C++ knows a function's own plan by while the function is traced."""
        number = next(_NUMBERS)
        _OWN_PLANS[number] = self
        return number

    def steps(self) -> list[tuple[str, str | Callable[[IR], IR]]]:
        """The passes one by one, as they are run: what each is called, and itself."""
        found: list[tuple[str, str | Callable[[IR], IR]]] = []
        for item in self.passes:
            known = _REGISTERED.get(item, item) if isinstance(item, str) else item
            if isinstance(known, str):
                found += [(name, name) for name in _expanded(known)]
            else:
                found.append((_name_of(item), known))
        return found

    def run(
        self,
        ir: IR,
        applied: list[Applied] | None = None,
        marks: bool = False,
        texts: bool = False,
        records: list[PassRecord] | None = None,
    ) -> IR:
        """The program after all passes. `applied` takes the rules that applied; `marks`: what they make says so in its
        location; `texts`: with expressions before and after; `records` takes what each pass did."""
        for item in self.passes:
            found = _REGISTERED.get(item, item) if isinstance(item, str) else item
            if isinstance(found, str):
                if found in self.disabled:
                    continue
                names = [n for n in _expanded(found) if n not in self.disabled]
                for some in [names] if records is None else [[n] for n in names]:
                    began, before = time.perf_counter(), ir
                    fn, rules_ = _weft.run_passes(ir._fn, some, self.disabled, marks, texts=texts)
                    ir = ir._with(fn)
                    if applied is not None:
                        applied += [Applied.of(record) for record in rules_]
                    if records is not None:
                        records.append(_record(some[0], began, before, ir))
            elif not {_name_of(item), call_name_of(found)} & self.disabled:
                began, before = time.perf_counter(), ir
                ir = run_own(found, ir, _name_of(item))
                if applied is not None and ir._applied[: len(before._applied)] == before._applied:
                    applied += ir._applied[len(before._applied) :]  # of weft.rewrite
                if records is not None:
                    records.append(_record(_name_of(item), began, before, ir))
        return ir


def _record(name: str, began: float, before: IR, after: IR) -> PassRecord:
    milliseconds = 1000 * (time.perf_counter() - began)
    return PassRecord(name, milliseconds, before.num_eqns, after.num_eqns, after.text)


_DEFAULT = Plan(("optimize",), frozenset())


def _expanded(name: str) -> list[str]:
    return _weft.default_passes() if name == "optimize" else [name]


def call_name_of(pass_: Any) -> str:
    """What a pass of the user's is called."""
    name = getattr(pass_, "name", None)
    return name if isinstance(name, str) else ir_name(pass_)


def _name_of(item: Any) -> str:
    """What a pass of a plan is called: by the name that it was registered under, or its own."""
    return item if isinstance(item, str) else call_name_of(item)


def run_own(pass_: Callable[[IR], IR], ir: IR, name: str) -> IR:
    """The program after a pass of the user's, which has to keep its type."""
    code = getattr(pass_, "__code__", None)
    who = f"the pass '{name}'" + (f" ({code.co_filename}:{code.co_firstlineno})" if code else "")
    try:
        out = pass_(ir)
    except Exception as error:
        error.add_note(f"raised by {who}, which ran over '{ir.__name__}'")
        raise
    if not isinstance(out, IR):
        raise type_error(f"{who} returned {out!r} of type '{type(out).__name__}'; a pass takes and returns a weft.IR")
    if out._fn.param_types != ir._fn.param_types or out._fn.result_types != ir._fn.result_types:
        raise type_error(
            f"{who} changed the type of '{ir.__name__}' from ({', '.join(ir._fn.param_types)}) -> "
            f"({', '.join(ir._fn.result_types)}) to ({', '.join(out._fn.param_types)}) -> "
            f"({', '.join(out._fn.result_types)}); a pass keeps parameters and results"
        )
    return out


def plan_of(what: str, optimize: str | None, passes: Any, disable: Any) -> Plan | None:
    """The plan that arguments of these names describe; None: the default."""
    if optimize is None and passes is None and disable is None:
        return None
    if optimize is not None and passes is not None:
        raise value_error(f"{what}: optimize and passes say the same; give one of them")
    if optimize is not None and not is_one_of(optimize, _LEVELS):
        raise value_error(f"{what}: optimize is one of {', '.join(map(repr, _LEVELS))}, got {optimize!r}")
    if isinstance(passes, str) or (passes is not None and not isinstance(passes, Iterable)):
        raise type_error(f"{what}: passes must be a list of passes and their names, got {passes!r}")
    items = list(passes) if passes is not None else list(_LEVELS[optimize or "fast_run"])
    known = {*_weft.pass_names(), *_REGISTERED, "optimize"}
    for item in items:
        if isinstance(item, str) and item not in known:
            raise value_error(f"{what}: passes has '{item}'; passes are {', '.join(sorted(known))}, and functions")
        if not isinstance(item, str) and not callable(item):
            raise type_error(f"{what}: passes has {item!r}; expected the name of a pass, or a function of a weft.IR")
    if isinstance(disable, str) or (disable is not None and not isinstance(disable, Iterable)):
        raise type_error(f"{what}: disable must be a list of names of rules and passes, got {disable!r}")
    disabled = list(disable or ())
    names = {*_weft.rule_names(), *_weft.pass_names(), *_REGISTERED}
    own = [_REGISTERED.get(item, item) if isinstance(item, str) else item for item in items]
    names |= {call_name_of(item) for item in own if not isinstance(item, str)}
    for name in disabled:
        if not is_one_of(name, names):
            raise value_error(
                f"{what}: disable has {name!r}, which is no rule and no pass; weft.ir.rules() and weft.ir.passes() "
                "name them"
            )
    return Plan(items, frozenset(disabled))


# Plans of `with` statements and of weft.config, by the number that C++ knows them by; 0 is the default.
_PLANS: list[Plan | None] = [None]
# Functions' own plans, as long as there are such functions.
_OWN_PLANS: weakref.WeakValueDictionary[int, Plan] = weakref.WeakValueDictionary()
_NUMBERS = itertools.count(1 << 32)


def _numbered(number: int) -> Plan | None:
    return _PLANS[number] if number < len(_PLANS) else _OWN_PLANS.get(number)


def _run_plan(plan: Plan | int, fn: Any) -> Any:
    """Called from C++ for a program that is about to be compiled."""
    found = _numbered(plan) if isinstance(plan, int) else plan
    return fn if found is None else found.run(IR(fn))._fn


def _left_out(number: int) -> frozenset[str]:
    """Called from C++ for a function that is traced by the plan of this number: the rules and passes that are left out
    where a derivative is taken. All of them, where the plan does not simplify: derivatives are as their rules write
    them."""
    plan = _numbered(number)
    if plan is None:
        return frozenset()
    if any(name in ("simplify", "stabilize") and name not in plan.disabled for name, _ in plan.steps()):
        return plan.disabled
    return plan.disabled.union(_weft.rule_names(), ["stabilize", "condense"])


_weft.set_plan_hooks(_run_plan, _left_out)


def plan_here(own: Plan | None) -> Plan | None:
    """The plan by which a function with this one of its own is compiled now."""
    return own if own is not None else _numbered(_weft.plan_around())


@contextlib.contextmanager
def being_lowered(own: Plan | None) -> Iterator[None]:
    """Inside, a function with this plan of its own is traced to be looked at."""
    before = None if own is None else _weft.set_plan_of_thread(own.number)
    _weft.being_lowered(True)
    try:
        yield
    finally:
        _weft.being_lowered(False)
        if before is not None:
            _weft.set_plan_of_thread(before)


@contextlib.contextmanager
def following(plan: Plan | None) -> Iterator[None]:
    """Inside, programs are cut over meshes as where this plan is followed; None: the default."""
    before = _weft.set_plan_of_thread(0 if plan is None else plan.number)
    try:
        yield
    finally:
        _weft.set_plan_of_thread(before)


def _number(plan: Plan | None) -> int:
    if plan is None:
        return 0
    for i, known in enumerate(_PLANS):
        if known is not None and (known.passes, known.disabled) == (plan.passes, plan.disabled):
            return i
    _PLANS.append(plan)
    return len(_PLANS) - 1


def set_for_process(optimize: str | None) -> None:
    """What weft.config.optimize = ... does."""
    _weft.set_plan_of_process(_number(plan_of("config.optimize", optimize, None, None)))


def explained_rules(traced: Any, plan: Plan | None) -> dict[str, Any]:
    """What rules do to a traced program where it is compiled by this plan:

    "rules": (rule, line) -> how often it applies, before derivatives are taken and where the program is compiled;
    "saved": rule -> (operations, bytes) that the program costs more without it there, by the cost model. Below 0 where
    a rule costs something, as some do that keep digits.
    """
    fn = traced.fn
    used = plan or _DEFAULT
    applied: list[Applied] = []
    before = [Applied.of(record) for record in traced.rules]
    flops, accessed = _weft.cost(used.run(IR(fn), applied)._fn)
    saved = {}
    for rule in sorted({a.rule for a in applied}):
        without = _weft.cost(Plan(used.passes, used.disabled | {rule}).run(IR(fn))._fn)
        saved[rule] = (without[0] - flops, without[1] - accessed)
    counts = collections.Counter((a.rule, a.line) for a in [*before, *applied])
    return {"rules": dict(counts.most_common()), "saved": saved}


def explain(jitted: Any, what: str | None = None) -> list[dict[str, Any]]:
    """Of a jitted function: what the compiled versions are (None); or "rules": which applied to each, where, how often,
    what each saves."""
    state = jitted.__dict__.get("_state")  # of a function that uses references
    if state is not None:
        jitted = state.inner
    if what is None:
        return type(jitted).explain(jitted)
    if what != "rules":
        raise value_error(f"explain: expected nothing or 'rules', got {what!r}")
    plan = plan_here(jitted._plan)
    return [{"signature": ", ".join(t.fn.param_types), **explained_rules(t, plan)} for t in jitted._programs()]


def level_here() -> str:
    """The word for how functions are optimised here; "custom" where there is none."""
    plan = _numbered(_weft.plan_around())
    if plan is None:
        return "fast_run"
    for word in _LEVELS:
        level = plan_of("config.optimize", word, None, None)
        if level is not None and (level.passes, level.disabled) == (plan.passes, plan.disabled):
            return word
    return "custom"


@contextlib.contextmanager
def optimization(
    optimize: str | None = None,
    *,
    passes: Sequence[str | Callable[[IR], IR]] | None = None,
    disable: Sequence[str] | None = None,
) -> Iterator[None]:
    """A context manager: functions that are jitted and called inside it, in this thread, are optimised like this, and
    transforms and loops that run outside of jit. A function with passes of its own (jit(passes=...)) keeps these.

    Args:
        optimize: "none", "fast_compile" or "fast_run", the default.
        passes: passes in order, names and functions of a weft.IR; "optimize" stands for the default ones.
        disable: names of rules and passes that do not run.

    Returns: context manager.

    Raises:
        ValueError: there is no such pass or rule.

    Example:
        >>> f = weft.jit(lambda x: (x + 1) * 1)
        >>> with weft.optimization("none"):
        ...     print(f.lower(1.0).as_text("optimized").count("mul"))
        1
    """
    before = _weft.set_plan_of_thread(_number(plan_of("optimization", optimize, passes, disable)))
    try:
        yield
    finally:
        _weft.set_plan_of_thread(before)


def rules() -> list[str]:
    """The names of the rules of simplification, which disable=[...] takes.

    Returns: list of str.

    Example:
        >>> "mul-one" in weft.ir.rules()
        True
    """
    return sorted(set(_weft.rule_names()))


def passes() -> list[str]:
    """The names of the passes, those of weft.register_pass among them.

    Returns: list of str.

    Example:
        >>> {"cse", "dce", "simplify"} < set(weft.ir.passes())
        True
    """
    return sorted({*_weft.pass_names(), *_REGISTERED})


def register_pass(name: str, pass_: Callable[[IR], IR] | None = None) -> Any:
    """Gives a pass a name, by which jit(passes=[...]) finds it.

    Args:
        name: the name; one that was registered before means the new pass from now on.
        pass_: a function that takes a program (weft.IR) and returns one of the same type; without it a decorator is
            returned.

    Returns: the pass.

    Raises:
        TypeError: the pass is no function.
        ValueError: the name is that of a pass of Weft's.

    Example:
        >>> @weft.register_pass("count")
        ... def count(ir):
        ...     print(ir.num_eqns, "operations")
        ...     return ir
        >>> weft.jit(lambda x: x * 2 + 1, passes=["count", "optimize"])(3.0)
        2 operations
        Array(7., dtype=float32, weak_type=True)
    """
    if not isinstance(name, str) or not name:
        raise type_error(f"register_pass: the name must be a text, got {name!r}")
    if name in _weft.pass_names() or name == "optimize":
        raise value_error(f"register_pass: '{name}' is a pass of Weft's; choose another name")

    def add(given: Callable[[IR], IR]) -> Callable[[IR], IR]:
        if not callable(given):
            raise type_error(f"register_pass: expected a function of a weft.IR, got {given!r}")
        _REGISTERED[name] = given
        return given

    return add if pass_ is None else add(pass_)
