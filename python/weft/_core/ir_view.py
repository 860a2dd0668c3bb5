"""Programs as Python objects: operations, the values that they make and read, types, attributes, places."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from .. import _weft
from .errors import not_implemented, value_error

# Names of weft.Primitive that were made so far.
USER_PRIMITIVES: set[str] = set()

# How an operation uses its regions, as RegionUse in ir/prim.h counts.
NONE, CALL, WITH_RULES, BRANCHES, COUNTED, UNCOUNTED, SNAPSHOTS, RECURSIVE, DEVICES = range(9)
_USES: dict[str, int] = {}


def region_use(name: str) -> int:
    """What the operation of that name does with its regions."""
    if not _USES:
        _USES.update({p["name"]: p["region_use"] for p in _weft.primitives()})
    return _USES[name]


_NAMED = "named_scope("  # as in python/native/frames.cc
_WRAPPING = frozenset(["jvp", "vmap", "transpose", "jet"])


def is_scope(step: str) -> bool:
    """Whether a step of a location is the names that the user gives to a part of the program."""
    return step.startswith(_NAMED)


def name_stack(levels: list[list[str]]) -> str:
    """The names of a part of a program, inside of the transforms that it went through: "block/jvp(norm)". `levels`: the
    steps of its location, then those of the places from which the functions around it were traced."""
    parts: list[str] = []
    for steps in levels:
        for step in steps:
            if is_scope(step):
                parts = [*step[len(_NAMED) : -1].split("/"), *parts]
            elif step in _WRAPPING:
                parts[:1] = [f"{step}({parts[0] if parts else ''})"]
    return "/".join(parts)


class Location:
    """Where an operation comes from: the user's line, and the transforms and rules that it has been through.

    `scope` is what weft.named_scope calls the part of the program, inside of the transforms: "block/jvp(norm)"; empty
    without such a name. `derivative_of` names the operation of that line whose derivative it is a part of; empty where
    it is of none.

    Example:
        >>> at = weft.make_ir(weft.grad(lambda x: wnp.sin(x)))(1.0).walk()[0].location
        >>> at.transforms, at.line > 0
        (('jvp',), True)
    """

    __slots__ = ("file", "line", "function", "transforms", "scope", "stack", "derivative_of", "_text")

    def __init__(self, origin: dict, text: str):
        self.file: str = origin["file"]
        self.line: int = origin["line"]
        self.function: str = origin["function"]
        self.transforms: tuple[str, ...] = tuple(origin["transforms"])
        named = any(is_scope(step) for level in origin["steps"] for step in level)
        self.scope: str = name_stack(origin["steps"]) if named else ""
        self.stack: str = origin["stack"]
        self.derivative_of: str = origin["derivative_of"]
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Location({self._text!r})"


class PassRecord(NamedTuple):
    """What a pass did to a program; see IR.passes.

    Attributes:
        name: the pass, as `weft opt --list` has it.
        milliseconds: how long it took.
        equations_before: how many equations it was given, those of regions included.
        equations_after: how many it left.
        text: the program that it left.

    Example:
        >>> weft.make_ir(lambda x: x + 0)(1.0).passes[0].name
        'drop-rules'
    """

    name: str
    milliseconds: float
    equations_before: int
    equations_after: int
    text: str


class Applied(NamedTuple):
    """A rule that applied.

    Attributes:
        pass_: the pass that ran it.
        rule: its name.
        operation: what it replaced.
        stack: the user's lines that this came from, innermost first.
        before: the value as an expression in letters: "log(1 + exp(x))"; empty where nobody asked.
        after: what replaced it, in the same letters; empty where a rule rewrites a whole function.
        where: the place of what it replaced, with the transforms that this had been through.

    Example:
        >>> weft.ir.Applied("simplify", "mul-one", "mul", "").rule
        'mul-one'
    """

    pass_: str
    rule: str
    operation: str
    stack: str
    before: str = ""
    after: str = ""
    where: str = ""

    @staticmethod
    def of(record: tuple[str, str, str, str, str, str, str]) -> Applied:
        """From a record of C++."""
        pass_, rule, operation, where, stack, before, after = record
        return Applied(pass_, rule, operation, stack, before, after, where)

    @property
    def line(self) -> str:
        """The user's innermost line, as "model.py:12"; empty where the program does not say.

        Example:
            >>> weft.ir.Applied("simplify", "mul-one", "mul", "  at model.py:12 in f").line
            'model.py:12'
        """
        first = self.stack.splitlines()[0] if self.stack else ""
        return first.strip().removeprefix("at ").rsplit(" in ", 1)[0]


class Trail(NamedTuple):
    """Where an operation comes from: what it is, what made it, one after the other, and the user's lines. See IR.trail.

    Attributes:
        operation: its name.
        through: the transforms and rules, first to last.
        stack: the user's lines, innermost first.
        derivative_of: the operation at the user's line that it belongs to the derivative of; empty where it is of none.
        rules: the rules among them, with what they replaced and by what. Of a line with several such operations the
            last.

    Example:
        >>> trail = weft.make_ir(weft.grad(lambda x: 2 * wnp.sin(x)))(0.5).trail()
        >>> trail.operation, trail.through, trail.derivative_of
        ('mul', ('jvp', 'transpose'), 'sin')
    """

    operation: str
    through: tuple[str, ...]
    stack: str
    derivative_of: str = ""
    rules: tuple[Applied, ...] = ()

    def __str__(self) -> str:
        of = f" in the derivative of {self.derivative_of}" if self.derivative_of not in ("", self.operation) else ""
        known = {a.rule: f": {a.before} -> {a.after}" for a in self.rules if a.before and a.after}
        lines = [self.operation + of, *(f"  by {step}{known.get(step, '')}" for step in reversed(self.through))]
        return "\n".join([*lines, *([self.stack] if self.stack else [])])


def rules_of(location: Location, applied: Iterable[Applied]) -> tuple[Applied, ...]:
    """Of the rules that applied to a program, those that made what has this location, in order."""
    text, found = str(location), dict[str, Applied]()
    for a in applied:
        made = f"{a.where}{', ' if ' via ' in a.where else ' via '}{a.rule}"
        if a.stack == location.stack and (text == made or text.startswith(made + ", ")):
            found[made] = a
    return tuple(found[made] for made in sorted(found, key=len))


class Value:
    """What an operation makes, or a parameter: one object for each in a view of a program.

    Example:
        >>> ir = weft.make_ir(lambda x: wnp.sin(x) * 2)(1.0)
        >>> x, y = ir.parameters[0], ir.results[0]
        >>> x.type, [op.name for op in x.users], y.definition.name
        (f32[], ['sin'], 'mul')
    """

    __slots__ = ("number", "type", "name", "definition", "users")

    def __init__(self, number: int, type_: Any, name: str):
        self.number = number
        self.type = type_
        self.name = name
        self.definition: Operation | None = None
        self.users: list[Operation] = []

    def __repr__(self) -> str:
        return f"{self.name}: {self.type}"


class Literal:
    """A number or a small array that stands in a program.

    Example:
        >>> weft.make_ir(lambda x: x * 2)(1.0).walk()[0].operands[1]
        2.0:f32
    """

    __slots__ = ("array", "_text")

    def __init__(self, array: Any, text: str):
        self.array, self._text = array, text

    @property
    def type(self) -> str:
        """The type, as text.

        Example:
            >>> weft.make_ir(lambda x: x * 2)(1.0).walk()[0].operands[1].type
            'f32[]'
        """
        return _weft.abstract(self.array)[3]

    def __repr__(self) -> str:
        return self._text


class Operation:
    """An operation of a program. `attributes` are its constants, `regions` the programs inside it (weft.IR), `depth`
    says inside of how many others it is, `flops` and `bytes` what it costs by itself.

    Example:
        >>> op = weft.make_ir(lambda x: x.sum(0))(wnp.ones((2, 3))).walk()[0]
        >>> op.name, op.operands, op.results, op.attributes
        ('reduce_sum', (x: f32[2,3],), (%1: f32[3],), {'dims': [0]})
        >>> op.flops, op.bytes
        (6.0, 36.0)
    """

    __slots__ = (
        "name",
        "operands",
        "results",
        "attributes",
        "regions",
        "location",
        "depth",
        "flops",
        "bytes",
        "parent",
        "_kinds",
        "_place",
    )

    name: str
    operands: tuple[Value | Literal, ...]
    results: tuple[Value, ...]
    attributes: dict[str, Any]
    regions: tuple[Any, ...]
    location: Location
    depth: int
    flops: float
    bytes: float
    parent: Operation | None
    _kinds: dict[str, tuple[str, Any]]
    _place: Any

    @property
    def primitive(self) -> str:
        """The name; of an operation that was defined by weft.Primitive, the name that it got there.

        Example:
            >>> double = weft.Primitive("double", lower=lambda x: x + x)
            >>> op = weft.make_ir(double)(1.0).walk()[0]
            >>> op.name, op.primitive
            ('primitive', 'double')
        """
        return self.attributes.get("name", self.name) if self.name == "primitive" else self.name

    @property
    def trips(self) -> int | None:
        """How often its regions run; None where only a run tells, and of operations that have none.

        Example:
            >>> ir = weft.make_ir(lambda x: weft.fori_loop(0, 10, lambda i, c: c * x, x))(1.0)
            >>> loop = ir.results[0].definition
            >>> loop.name, loop.trips
            ('scan', 10)
        """
        if region_use(self.name) != COUNTED:
            return None
        length = self._kinds["length"][1][0]
        return int(length) if length.isdigit() else None

    def bind(self, *operands: Any, regions: tuple | None = None) -> Any:
        """The operation on other operands: emitted where something is traced, computed otherwise.

        Args:
            *operands: arrays of the types that it takes.
            regions: other programs in place of its regions.

        Returns: array, or a tuple of them where it has several results or none.

        Example:
            >>> op = weft.make_ir(lambda x: x.sum(0))(wnp.ones((2, 3))).walk()[0]
            >>> op.bind(wnp.ones((4, 2)))
            Array([4., 4.], dtype=float32)
        """
        inside = [r._fn for r in (self.regions if regions is None else regions)]
        bind = lambda given: _weft.bind_program(self.name, given, self._kinds, inside)
        # A number of the program stands for an array of any shape, as an array of no dimensions does not.
        numbers = [
            isinstance(own, Literal) and not _weft.is_traced(x) and not _weft.abstract(x)[0]
            for own, x in zip(self.operands, operands)
        ]
        if any(numbers) and not all(numbers) and not _weft.is_tracing():
            arrays = [x for x, is_number in zip(operands, numbers) if not is_number]

            def with_numbers(leaves: list) -> list:
                rest = iter(leaves)
                return bind([x if is_number else next(rest) for x, is_number in zip(operands, numbers)])

            traced = _weft.trace(with_numbers, arrays, [""] * len(arrays), self.name, "bind", [False] * len(arrays))
            results = _weft.apply(traced.fn, arrays + traced.captures)
        else:
            results = bind(list(operands))
        return results[0] if len(results) == 1 else tuple(results)

    def at(self, name: str) -> Any:
        """A context manager: what is traced inside it comes from the line of this operation, through `name`.

        Args:
            name: of the rule or pass that writes.

        Returns: context manager.

        Example:
            >>> op = weft.make_ir(lambda x: wnp.sin(x))(1.0).walk()[0]
            >>> def f(x):
            ...     with op.at("my-pass"):
            ...         return x + 1
            >>> weft.make_ir(f)(1.0).walk()[0].location.transforms
            ('my-pass',)
        """
        return self._place.through(name)

    def __repr__(self) -> str:
        attributes = ", ".join(f"{name}={value!r}" for name, value in self.attributes.items())
        words = [self.name + (f"[{attributes}]" if attributes else ""), *map(_short, self.operands)]
        words += [f"({len(self.regions)} regions)"] if self.regions else []
        made = ", ".join(map(repr, self.results))
        return f"{made} = {' '.join(words)}" if made else " ".join(words)


def _short(operand: Value | Literal) -> str:
    return operand.name if isinstance(operand, Value) else repr(operand)


class View:
    """The objects of one function of a program."""

    def __init__(self, fn: Any, as_ir: Callable[[Any], Any]):
        types, names = fn.var_types, fn.param_names
        self.values = [Value(i, t, names[i] if i < len(names) and names[i] else f"%{i}") for i, t in enumerate(types)]
        self.parameters = self.values[: len(names)]
        self.operations: list[Operation] = []
        for e, (flops, accessed) in zip(fn.eqns, fn.costs):
            op = Operation()
            op.name, op.attributes = e["name"], e["attrs"]
            op.operands = tuple(
                self.values[v] if isinstance(v, int) else Literal(v, text)
                for v, text in zip(e["operand_values"], e["operands"])
            )
            op.results = tuple(self.values[v] for v in e["result_vars"])
            op.regions = tuple(as_ir(region) for region in e["regions"])
            op.location = Location(e["origin"], e["location"])
            op.depth, op.parent, op.flops, op.bytes = 0, None, flops, accessed
            kinds, values = e["attr_kinds"], e["attr_values"]
            op._kinds = {name: (kinds[name], values[name]) for name in kinds}
            op._place = e["place"]
            for value in {v for v in op.operands if isinstance(v, Value)}:
                value.users.append(op)
            for value in op.results:
                value.definition = op
            self.operations.append(op)
        self.results = [
            self.values[v] if isinstance(v, int) else Literal(v, text) for v, text in zip(fn.result_values, fn.results)
        ]


def walk(view: View, regions: bool, depth: int = 0, parent: Operation | None = None) -> Iterator[Operation]:
    """The operations in order, each before those inside it."""
    for op in view.operations:
        op.depth, op.parent = depth, parent
        yield op
        if regions:
            for region in op.regions:
                yield from walk(region._view, True, depth + 1, op)


@contextlib.contextmanager
def naming_what_bundles_refuse(operations: Callable[[], Iterable[Operation]]) -> Iterator[None]:
    """Inside, the error for a call of this process names the weft.Primitive of the program at its line, if any."""
    try:
        yield
    except NotImplementedError as error:
        message, _, stack = str(error).partition("\n")
        for op in operations() if "a function of this process" in message else ():
            if op.attributes.get("opaque") and op.location.stack == stack:
                raise not_implemented(
                    f"export: the primitive '{op.primitive}' is computed by a function of this process, its eval or a "
                    "C function, which a bundle cannot bring along; give it a lowering in operations on arrays: "
                    f"weft.Primitive('{op.primitive}', ..., lower=...)\n{stack}"
                ) from None
        raise


def cost_by_line(view: View, times: float, into: dict[tuple[str, int], tuple[float, float]]) -> None:
    """Adds what each line costs."""
    for op in view.operations:
        if op.regions:
            for region in op.regions:
                cost_by_line(region._view, times * (op.trips or 1), into)
            continue
        key = (op.location.file, op.location.line)
        flops, accessed = into.get(key, (0.0, 0.0))
        into[key] = (flops + times * op.flops, accessed + times * op.bytes)


def _views(view: View) -> Iterator[View]:
    """A view, and those of all regions."""
    yield view
    for op in walk(view, True):
        yield from (region._view for region in op.regions)


def value_of(view: View, value: Any) -> Value:
    """The value that is meant: one of the view or of a region inside, what an operation gives, or the index of a
    result."""
    if isinstance(value, Operation) and value.results:
        value = value.results[0]
    if isinstance(value, Value) and any(
        value.number < len(v.values) and v.values[value.number] is value for v in _views(view)
    ):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and -len(view.results) <= value < len(view.results):
        found = view.results[value]
        if isinstance(found, Value):
            return found
        raise value_error(f"IR.trail: result {value} is the number {found}, which no operation made")
    raise value_error(
        f"IR.trail: expected a weft.ir.Value or Operation of this program or the index of one of its "
        f"{len(view.results)} results, got {value!r}"
    )
