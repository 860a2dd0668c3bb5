"""Rules that replace operations by others: weft.rewrite."""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .. import _weft
from .._core import patterns
from .._core.errors import type_error, value_error
from .._core.ir_view import Applied
from .._core.names import update_wrapper, wraps
from .._core.tracing import check_callable, ir_name
from ..program import IR, make_ir

__all__ = ["Rewrite", "rewrite"]

# After so many walks over a program a rule that still applies is taken for one that undoes itself; and after having
# applied so often for each operation that there was, but at least _MANY times: it may write more than it replaces.
_MOST_ROUNDS = 50
_MANY = 2000
# What a rule may know of a match, by keyword.
_OF_THE_MATCH = ("ops", "types")


class Applications:
    """How often rules apply, and may apply: (rule, operation, stack) of each time."""

    def __init__(self, most: int | None):
        self.most = most
        self.found: list[tuple[str, str, str]] = []

    @property
    def are_enough(self) -> bool:
        """Whether no rule may apply any more."""
        return self.most is not None and len(self.found) >= self.most


_COUNTED: contextvars.ContextVar[Applications | None] = contextvars.ContextVar("counted", default=None)


@contextlib.contextmanager
def counted(most: int | None) -> Iterator[Applications]:
    """Counts the applications of all rules that run inside, whichever pass runs them, and stops them after `most`."""
    applications = Applications(most)
    token = _COUNTED.set(applications)
    try:
        yield applications
    finally:
        _COUNTED.reset(token)


class Rewrite:
    """A rule that replaces operations by others; weft.rewrite makes one. As a pass it takes a program (weft.IR) and
    returns one; of a function it makes the function whose program is rewritten, before any derivative of it is taken.

    Attributes:
        name: what locations ("via name") and messages call it.
        applied: how often it applied when it was run last.

    Example:
        >>> @weft.rewrite("exp(log(x))")
        ... def exp_of_log(x):
        ...     return x
        >>> exp_of_log(weft.make_ir(lambda x: wnp.exp(wnp.log(x)) + 1)(2.0)).num_eqns
        1
    """

    def __init__(self, function: Callable[..., Any], pattern: str, once: bool):
        self._function, self._text, self._once = function, pattern.strip(), once
        self._pattern = patterns.parse(pattern)
        self.name = ir_name(function)
        self.applied = 0
        code = getattr(function, "__code__", None)
        self._place = f"{code.co_filename}:{code.co_firstlineno}" if code else "?"
        self._takes = self._checked()
        update_wrapper(self, function)

    def _checked(self) -> set[str]:
        """The names that the function takes beside operands: attributes, `ops`."""
        try:
            parameters = inspect.signature(self._function).parameters.values()
        except ValueError:  # of what is not written in Python
            raise type_error(
                f"rewrite: expected a function written in Python, whose parameters can be seen, got {self._function!r}"
            ) from None
        places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        words = [p for p in parameters if p.kind == p.KEYWORD_ONLY]
        needed = [p.name for p in words if p.default is p.empty and p.name not in _OF_THE_MATCH]
        names, of_pattern = [p.name for p in places], list(self._pattern.names)
        who = f"rewrite: '{self.name}' ({self._place}) takes {', '.join(names) or 'nothing'}"
        if self._pattern.is_operation:
            takes = patterns.num_operands(self._pattern)
            fewest = sum(p.default is p.empty for p in places)
            most = sys.maxsize if any(p.kind == p.VAR_POSITIONAL for p in parameters) else len(places)
            if takes is not None and not fewest <= takes <= most:
                raise type_error(f"{who}, but '{self._text}' has {takes} operand{'' if takes == 1 else 's'}")
            self._order, self._needed = None, needed
        else:
            if sorted(names) != sorted(of_pattern):
                raise type_error(f"{who}, but the names of its pattern are {', '.join(of_pattern) or 'none'}")
            if needed:
                raise type_error(
                    f"{who}, and {', '.join(needed)} by keyword, where there are {' and '.join(_OF_THE_MATCH)}"
                )
            self._order, self._needed = [of_pattern.index(n) for n in names], []
        every = any(p.kind == p.VAR_KEYWORD for p in parameters)
        return {p.name for p in words} | ({"**"} if every else set())

    def __call__(self, program: Any) -> Any:
        """The program after the rule, in all its regions, until it does not apply any more."""
        if not isinstance(program, IR):
            return _of_function(self, program)
        fn, self.applied = program._fn, 0
        records: list[Applied] = []
        most: int | None = None

        def replaced(values: list, ops: list, types: list, stack: str) -> list | None:
            out = self._replaced(values, ops, types, stack)
            if out is not None:
                records.append(self._record(ops[0][0], stack))
                if most is not None and len(records) > most:
                    raise value_error(self._endless(program, f"it has applied {len(records)} times"))
            return out

        for round_ in itertools.count():
            fn, applied = _weft.rewrite(fn, self.name, self._pattern.tree, len(self._pattern.names), replaced)
            self.applied += applied
            if not applied or self._once:
                break
            if round_ == _MOST_ROUNDS:
                found = f"after {_MOST_ROUNDS} walks it still applies, {applied} times in the last"
                raise value_error(self._endless(program, found))
            if most is None:
                most = max(_MANY, _MOST_ROUNDS * program.num_eqns)
        after = program._with(fn)
        after._applied += records
        return after

    def _endless(self, program: IR, found: str) -> str:
        return (
            f"the rewrite '{self.name}' ({self._place}) does not end on '{program.__name__}': {found}. What it writes "
            "matches its own pattern; with weft.rewrite(..., once=True) it is not asked about what it wrote"
        )

    def _record(self, operation: str, stack: str) -> Applied:
        """What is noted of an application: the pattern before, the rule's own words for what is there after."""
        names = self._pattern.names or ("...",)
        before = self._text if self._pattern.names else f"{self._text}(...)"
        file, _, function = stack.partition("\n")[0].strip().removeprefix("at ").rpartition(" in ")
        where = f"{file} ({function})" if file else ""
        return Applied(self.name, self.name, operation, stack, before, f"{self.name}({', '.join(names)})", where)

    def _replaced(self, values: list, ops: list, types: list, stack: str) -> list | None:
        """Called from C++ for a match; None: the rule does not want it."""
        applications = _COUNTED.get()
        if applications is not None and applications.are_enough:
            return None
        name, attributes, _ = ops[0]
        keywords: dict[str, Any] = {}
        if missing := [n for n in self._needed if n not in attributes]:
            there = ", ".join(attributes) or "none"
            raise type_error(self._wrong(f"takes {', '.join(missing)}; the attributes of '{name}' are {there}", stack))
        if self._order is None:
            keywords = {k: v for k, v in attributes.items() if k in self._takes or "**" in self._takes}
        if "ops" in self._takes:
            keywords["ops"] = [Matched(n, a, tuple(map(IR, r))) for n, a, r in ops]
        if "types" in self._takes:
            keywords["types"] = types
        arguments = values if self._order is None else [values[i] for i in self._order]
        try:
            out = self._function(*arguments, **keywords)
        except Exception as error:
            error.add_note(f"raised by the rewrite '{self.name}' ({self._place}) of '{name}'\n{stack}")
            raise
        if out is None or out is NotImplemented:
            return None
        results = list(out) if isinstance(out, (tuple, list)) else [out]
        if len(results) != len(types):
            raise type_error(
                self._wrong(f"gives {len(results)} values for '{name}', which has {len(types)} results", stack)
            )
        if applications is not None:
            applications.found.append((self.name, name, stack))
        return [self._fitting(r, t, i, name, stack) for i, (r, t) in enumerate(zip(results, types))]

    def _fitting(self, result: Any, wanted: Any, i: int, name: str, stack: str) -> Any:
        if isinstance(result, (bool, int, float, complex)):
            return _weft.full(wanted.shape, result, wanted.dtype)
        if not _weft.is_operand(result):
            raise type_error(self._wrong(f"gives {result!r} for result {i} of '{name}'; expected an array", stack))
        shape, dtype, weak, text = _weft.abstract(result)
        if weak and dtype != wanted.dtype:
            result = _weft.astype(result, wanted.dtype)
            shape, dtype, weak, text = _weft.abstract(result)
        if tuple(shape) != wanted.shape or dtype != wanted.dtype:
            raise type_error(
                self._wrong(f"changes a type: result {i} of '{name}' is {wanted}, and it gives {text}", stack)
            )
        return result

    def _wrong(self, what: str, stack: str) -> str:
        return f"the rewrite '{self.name}' ({self._place}) {what}" + (f"\n{stack}" if stack else "")

    def __repr__(self) -> str:
        return f"<weft.rewrite {self.name} of {self._place}>"


class Matched:
    """An operation of a pattern as it was found: `name`, `attributes`, `regions`. Rules with the keyword-only parameter
    `ops` get one for each operation of the pattern, in the order of its text."""

    def __init__(self, name: str, attributes: dict[str, Any], regions: tuple[IR, ...]):
        self.name, self.attributes, self.regions = name, attributes, regions

    def __repr__(self) -> str:
        return f"Matched({self.name!r}, {self.attributes!r})"


def _of_function(pass_: Callable[[IR], IR], fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function whose program a pass has changed: it can be transformed like any function."""
    check_callable(fun, "a pass")

    @wraps(fun)
    def changed(*args: Any, **kwargs: Any) -> Any:
        return pass_(make_ir(fun)(*args, **kwargs))(*args, **kwargs)

    return changed


def rewrite(pattern: str, *, once: bool = False) -> Callable[[Callable[..., Any]], Rewrite]:
    """A rule that replaces operations by others, wherever they stand: in loops, branches and called functions, too.

    The function that it decorates says what stands in their place, in operations on arrays, or returns None where it
    does not apply. It must give the same types. For a pattern that is an operation alone it takes that operation's
    operands, and by keyword those of its attributes that it names. For others it takes what the pattern's names stand
    for; a keyword-only parameter `ops` is a list of the operations (name, attributes, regions) in the order of the
    pattern, `types` one of the types of the results.

    What it writes has the line of what it replaces, with its name: "via my-rule". Rules run where the program is
    compiled (jit(passes=[rule, "optimize"])), on a program (rule(ir)), or on a function before its derivative is taken
    (rule(f)).

    Args:
        pattern: "tanh", or a text such as "log(add(1, exp(x)))": operations on operations, numbers and names. A name
            that occurs twice is the same value; operations that commute match in either order.
        once: whether what the rule wrote is left alone; otherwise it is applied until it does not apply any more.

    Returns: decorator, which makes a weft.ir.Rewrite of the function.

    Raises:
        ValueError: the pattern names no operation; when it runs: the rule does not end.
        TypeError: the function's parameters are not the pattern's names; when it runs: it changes a type.

    Example:
        >>> @weft.rewrite("log(add(1, exp(x)))")
        ... def softplus(x):
        ...     return wnp.logaddexp(x, 0.0)
        >>> f = softplus(lambda x: wnp.log(1 + wnp.exp(x)))
        >>> weft.grad(f)(100.0)
        Array(1., dtype=float32, weak_type=True)
    """
    if not isinstance(pattern, str):
        raise type_error(f'rewrite: expected a pattern, as in @weft.rewrite("tanh"), got {pattern!r}')

    def decorate(function: Callable[..., Any]) -> Rewrite:
        check_callable(function, "rewrite")
        return Rewrite(function, pattern, bool(once))

    return decorate
