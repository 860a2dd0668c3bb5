"""Programs of StableHLO traced: text -> weft.IR."""

from __future__ import annotations

import inspect
import keyword
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from .. import _weft
from .._core.errors import not_implemented, type_error, value_error
from ..compiled import jit
from ..program import IR, ShapeDtype, make_ir
from .rules import RULES
from .syntax import Function, Op, Region, parse
from .types import TensorType

__all__ = ["Reader", "read"]

_RETURNS = {"stablehlo.return", "func.return", "return"}
_Env = Mapping[str, Any]


def read(text: str, file: str, function: str | None) -> IR:
    """The program that a text describes."""
    return Reader(parse(text, file), file).program(function)


def _signature(names: Sequence[str]) -> inspect.Signature:
    """Parameters by the names of the text, if Python can call all of them so."""
    usable = lambda name: name.isidentifier() and not keyword.iskeyword(name) and names.count(name) == 1
    given = names if all(map(usable, names)) else [f"arg{i}" for i in range(len(names))]
    return inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in given])


class Reader:
    """The functions of a text, and what tells rules of what is around an operation."""

    def __init__(self, functions: Sequence[Function], file: str):
        self.functions = {f.name: f for f in functions}
        self.file = file or "StableHLO"
        self._made_by: dict[int, tuple[Any, Op]] = {}  # with the value, so that its number stays its own
        self._jitted: dict[str, Callable[..., Any]] = {}
        self._under_way: list[str] = []
        self._failed = False

    def program(self, name: str | None) -> IR:
        """One of the functions, traced."""
        public = [f.name for f in self.functions.values() if f.public]
        chosen = name or ("main" if "main" in self.functions else public[0] if len(public) == 1 else None)
        if chosen not in self.functions:
            there = ", ".join(self.functions)
            what = f"no function '{name}'" if name else "no function 'main'; say which one by `function`"
            raise value_error(f"from_stablehlo: {self.file} has {what}; it has {there}")
        function = self.functions[chosen]
        specs = [self._spec(t, function.line) for t in function.body.types]

        def f(*args: Any) -> Any:
            out = self._results(function, args)
            return out[0] if len(out) == 1 else tuple(out)

        f.__name__ = function.name
        f.__signature__ = _signature([name.lstrip("%") for name in function.body.arguments])  # type: ignore[attr-defined]
        traced = make_ir(f)(*specs)
        return IR(traced._fn, traced._captures)

    def _spec(self, type_: Any, line: int) -> ShapeDtype:
        if not isinstance(type_, TensorType) or None in type_.shape:
            raise not_implemented(
                f"{self.file}:{line}: a parameter of type {type_}; only programs of arrays of fixed sizes are read"
            )
        return ShapeDtype(type_.shape, type_.dtype)

    def _results(self, function: Function, args: Sequence[Any]) -> list[Any]:
        if function.name in self._under_way:
            raise not_implemented(f"{self.file}:{function.line}: the function '{function.name}' calls itself")
        self._under_way.append(function.name)
        try:
            return self.run(function.body, args, {}, function)
        finally:
            self._under_way.pop()

    def call(self, name: str, args: Sequence[Any], op: Op) -> list[Any]:
        """A function of the text, as a function of the program."""
        function = self.functions.get(name)
        if function is None:
            self.fail(op, ValueError, f"calls '{name}', which the text does not define")
        if not any(map(_weft.is_traced, args)):
            return self._results(function, args)
        if name not in self._jitted:

            def called(*args: Any) -> Any:
                return tuple(self._results(function, args))

            called.__name__ = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
            self._jitted[name] = jit(called)
        return list(self._jitted[name](*args))

    def made_by(self, value: Any) -> Op | None:
        """The operation of the text that made a value."""
        return self._made_by.get(id(value), (None, None))[1]

    def run(self, region: Region, args: Sequence[Any], outside: _Env, of: Function | None = None) -> list[Any]:
        """What a region returns for arguments, inside of what is called what; the body of a function: its results."""
        env: ChainMap[str, Any] = ChainMap({}, *(outside.maps if isinstance(outside, ChainMap) else [dict(outside)]))
        if len(args) != len(region.arguments):
            line = region.ops[0].line if region.ops else 0
            raise value_error(f"{self.file}:{line}: {len(region.arguments)} arguments expected, {len(args)} given")
        env.update(zip(region.arguments, args))
        for op in region.ops:
            values = [self._read(name, env, op) for name in op.operands]
            if op.name in _RETURNS:
                self._check_returned(op, values, of)
                return values
            results = self._one(op, values, env)
            if len(results) != len(op.results) and op.results:
                self.fail(op, ValueError, f"has {len(results)} results, the text names {len(op.results)}")
            for name, value, type_ in zip(op.results, results, op.types):
                self._check(op, value, type_)
                if name in env.maps[0]:
                    self.fail(op, ValueError, f"gives {name}, which something before it is called")
                env[name] = value
                self._made_by[id(value)] = value, op
        return []

    def _check(self, op: Op, value: Any, type_: Any, does: str = "gives") -> None:
        if isinstance(type_, TensorType) and not isinstance(value, tuple):
            shape, dtype = tuple(value.shape), str(value.dtype)
            fits = len(shape) == len(type_.shape) and all(n is None or m == n for m, n in zip(shape, type_.shape))
            if not fits or dtype != type_.dtype:
                self.fail(op, ValueError, f"{does} {TensorType(shape, dtype)}, the text says {type_}")

    def _check_returned(self, op: Op, values: Sequence[Any], of: Function | None) -> None:
        said = [op.operand_types or op.types] if op.operand_types or op.types else []
        for types in [*said, *([] if of is None or of.types is None else [of.types])]:
            if len(types) != len(values):
                self.fail(op, ValueError, f"returns {len(values)} values, the text says {len(types)}")
            for value, type_ in zip(values, types):
                self._check(op, value, type_, "returns")

    def _read(self, name: str, env: _Env, op: Op) -> Any:
        found = env.get(name)
        if found is None and name.endswith("#0"):
            found = env.get(name[:-2])
        if found is None:
            self.fail(op, ValueError, f"reads {name}, which nothing before it defines")
        return found

    def _one(self, op: Op, values: list[Any], env: _Env) -> Sequence[Any]:
        rule = RULES.get(op.name) or RULES.get(f"stablehlo.{op.name}")
        if rule is None:
            self.fail(op, NotImplementedError, "is an operation that Weft has nothing for")
        try:
            out = rule(self, op, values, env)
        except (KeyError, IndexError) as error:
            if self._failed:
                raise
            self.fail(op, ValueError, f"lacks what it needs: {error}")
        except (ValueError, TypeError, NotImplementedError) as error:
            if self._failed:  # the innermost operation is what is wrong
                raise
            message = str(error).removeprefix("from_stablehlo: ")
            self.fail(op, type(error), f"is refused: {message}")
        return out if isinstance(out, list) else [out]

    def fail(self, op: Op, kind: type[Exception], what: str) -> NoReturn:
        """An error that names the line of the text."""
        self._failed = True
        message = f"{self.file}:{op.line}: {op.name} {what}"
        if issubclass(kind, NotImplementedError):
            raise not_implemented(message)
        if issubclass(kind, TypeError):
            raise type_error(message)
        raise value_error(message)
