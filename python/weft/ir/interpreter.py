"""Programs computed otherwise: weft.ir.Interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from .. import _weft
from .._core import ir_view as _view
from .._core import tree as _tree
from .._core.errors import not_implemented, type_error, value_error
from .._core.ir_view import USER_PRIMITIVES, Literal, Operation
from .._core.tracing import call_name, check_callable
from ..control import cond as _cond
from ..control import scan as _scan
from ..control import switch as _switch
from ..control import while_loop as _while_loop
from ..program import IR, make_ir

_F = TypeVar("_F", bound=Callable[..., Any])


def rule(*primitives: str) -> Callable[[_F], _F]:
    """Says for which operations a method of a weft.ir.Interpreter is.

    Args:
        *primitives: names, as docs/operations.md has them, or of weft.Primitive.

    Returns: decorator of the method: (self, op, *values) -> value, or a tuple where the operation has several results.

    Raises:
        TypeError: there is no name.
        ValueError: there is no such operation (names of weft.Primitive are known once one was made).

    Example:
        >>> class Signs(weft.ir.Interpreter):
        ...     @weft.ir.rule("exp")
        ...     def exp(self, op, x):
        ...         return wnp.ones_like(x)
        >>> Signs()(lambda x: wnp.exp(x))(-3.0)
        Array(1., dtype=float32, weak_type=True)
    """
    if not primitives or not all(isinstance(name, str) for name in primitives):
        raise type_error('weft.ir.rule: expected the names of operations, as in @weft.ir.rule("mul")')
    for name in primitives:
        if not _weft.has_primitive(name) and name not in USER_PRIMITIVES:
            raise value_error(f"weft.ir.rule: there is no operation '{name}'; docs/operations.md has them all")

    def decorate(method: _F) -> _F:
        method._weft_primitives = primitives  # type: ignore[attr-defined]
        return method

    return decorate


class Interpreter:
    """Computes programs on other values than arrays: intervals, numbers with derivatives, types. A subclass says what a
    value is and has a method for each operation that it knows (weft.ir.rule); calls, branches and loops are there.

    Called with a function it gives the function of such values. What that computes are operations on arrays, so it can
    be jitted, differentiated and mapped like any function.

    A value is an array, or an object of the class `value_type`, a container of arrays (a NamedTuple). Values that are
    carried around loops and come out of branches have one structure, so lift() makes one of every array.

    Example:
        >>> from typing import NamedTuple
        >>> class Interval(NamedTuple):
        ...     low: weft.Array
        ...     high: weft.Array
        >>> class Intervals(weft.ir.Interpreter):
        ...     value_type = Interval
        ...     def lift(self, x):
        ...         return Interval(x, x)
        ...     @weft.ir.rule("add", "sub")
        ...     def add(self, op, x, y):
        ...         y = Interval(-y.high, -y.low) if op.name == "sub" else y
        ...         return Interval(x.low + y.low, x.high + y.high)
        >>> f = Intervals()(lambda x: x - x + 1)
        >>> f(Interval(wnp.array(2.0), wnp.array(3.0))).high
        Array(2., dtype=float32)
    """

    value_type: ClassVar[type | None] = None
    _rules: ClassVar[dict[str, Callable[..., Any]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._rules = dict(cls._rules)
        for method in vars(cls).values():
            for name in getattr(method, "_weft_primitives", ()):
                cls._rules[name] = method

    # What a subclass may say.

    def lift(self, x: Any) -> Any:
        """The value of a plain array: of constants, numbers in the program, and arguments that are no values yet.

        Args:
            x: the array.

        Returns: a value.

        Example:
            >>> weft.ir.Interpreter().lift(1.0)
            1.0
        """
        return x

    def primal(self, value: Any) -> Any:
        """The array for which a value stands: branches and loops decide by it, and its type is that of the program.

        Args:
            value: the value.

        Returns: array.

        Example:
            >>> weft.ir.Interpreter().primal((1.0, 2.0))
            1.0
        """
        return _tree.leaves(value)[0]

    def default(self, op: Operation, *values: Any) -> Any:
        """What an operation on values does that has no rule. By default that is an error which names it. (One without
        operands is a constant, which is lifted.)

        Args:
            op: the operation.
            *values: its operands.

        Returns: a value, or a tuple of them where the operation has several results.

        Example:
            >>> class Plain(weft.ir.Interpreter):
            ...     def default(self, op, *values):
            ...         return op.bind(*values)
            >>> Plain()(wnp.tanh)(0.0)
            Array(0., dtype=float32, weak_type=True)
        """
        raise not_implemented(
            _at(
                op,
                f"{type(self).__name__} has no rule for the operation '{op.primitive}'; give it a method with "
                f'@weft.ir.rule("{op.primitive}"), or define default()',
            )
        )

    # What it is there for.

    def __call__(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """The function of values.

        Args:
            fun: a function of arrays, or a weft.IR.

        Returns: function that takes values, or arrays to lift, in containers as `fun` does, and returns values.

        Example:
            >>> class Plain(weft.ir.Interpreter):
            ...     def default(self, op, *values):
            ...         return op.bind(*values)
            >>> weft.grad(Plain()(lambda x: x * x))(3.0)
            Array(6., dtype=float32, weak_type=True)
        """
        check_callable(fun, type(self).__name__)

        def interpreted(*args: Any, **kwargs: Any) -> Any:
            values, tree = _tree.flatten((args, kwargs), self._is_value)
            values = [self._lifted(v) for v in values]
            if isinstance(fun, IR):
                ir = fun
            else:
                plain_args, plain_kwargs = _tree.unflatten(tree, [self.primal(v) for v in values])
                ir = make_ir(fun)(*plain_args, **plain_kwargs)
            results = self._run(ir, [*values, *map(self.lift, ir.constants)])
            if ir._out_tree is None:
                return results[0] if len(results) == 1 else tuple(results)
            return _tree.unflatten(ir._out_tree, results)

        interpreted.__name__ = interpreted.__qualname__ = call_name(fun)
        return interpreted

    def run(self, ir: IR, *values: Any) -> Any:
        """A program on values, one for each parameter.

        Args:
            ir: the program: of a region, of weft.make_ir.
            *values: its arguments.

        Returns: list of the values that it returns.

        Example:
            >>> class Plain(weft.ir.Interpreter):
            ...     def default(self, op, *values):
            ...         return op.bind(*values)
            >>> Plain().run(weft.make_ir(lambda x: (x + 1, x))(1.0), 2.0)
            [Array(3., dtype=float32), 2.0]
        """
        return self._run(ir, list(values))

    def _is_value(self, x: Any) -> bool:
        return self.value_type is not None and isinstance(x, self.value_type)

    def _lifted(self, x: Any) -> Any:
        return x if self._is_value(x) or (self.value_type is None and not _weft.is_operand(x)) else self.lift(x)

    def _run(self, ir: IR, values: list) -> list:
        view = ir._view
        if len(values) != len(view.parameters):
            raise type_error(
                f"{type(self).__name__}: '{ir.__name__}' takes {len(view.parameters)} values, got {len(values)}"
            )
        env = dict(zip(view.parameters, values))
        read = lambda x: self.lift(x.array) if isinstance(x, Literal) else env[x]
        for op in view.operations:
            with op.at(type(self).__name__):
                out = self._one(op, [read(x) for x in op.operands])
            for result, value in zip(op.results, out, strict=True):
                env[result] = value
        return [read(x) for x in view.results]

    def _one(self, op: Operation, values: list) -> list:
        method = self._rules.get(op.primitive) or self._rules.get(op.name)
        if method is not None:
            try:
                out = method(self, op, *values)
            except Exception as error:
                note = f"raised by {type(self).__name__}'s rule of '{op.primitive}'"
                if not any(note in other for other in getattr(error, "__notes__", ())):
                    error.add_note(_at(op, note))
                raise
        elif (control := _CONTROL.get(_view.region_use(op.name))) is not None:
            return list(control(self, op, *values))
        elif not values and len(op.results) == 1:  # a constant
            out = self.lift(op.bind())
        else:
            out = self.default(op, *values)
        several = len(op.results) != 1
        if several and (not isinstance(out, (tuple, list)) or len(out) != len(op.results)):
            raise not_implemented(
                _at(
                    op,
                    f"{type(self).__name__}: the rule of '{op.primitive}' must return {len(op.results)} values, got "
                    f"{type(out).__name__}",
                )
            )
        if out is None and not several:
            raise type_error(
                _at(op, f"{type(self).__name__}: the rule of '{op.primitive}' must return a value, got None")
            )
        return list(out) if several else [out]

    # Calls, branches and loops. A subclass may have others: they take and return values as rules do.

    def call(self, op: Operation, *values: Any) -> Any:
        """A call of a function, and of one with rules of its own, whatever these are.

        Args:
            op: the operation.
            *values: its operands.

        Returns: tuple of values.

        Example:
            >>> class Plain(weft.ir.Interpreter):
            ...     def default(self, op, *values):
            ...         return op.bind(*values)
            >>> Plain()(weft.jit(lambda x: x + 1))(1.0)
            Array(2., dtype=float32)
        """
        # custom_linear has its backward map first.
        region = op.regions[1] if op.name == "custom_linear" and len(op.regions) > 1 else op.regions[0]
        return tuple(self._run(region, list(values)))

    def cond(self, op: Operation, *values: Any) -> Any:
        """cond and switch: the primal of the first operand chooses.

        Args:
            op: the operation.
            *values: its operands.

        Returns: tuple of values.

        Example:
            >>> class Plain(weft.ir.Interpreter):
            ...     def default(self, op, *values):
            ...         return op.bind(*values)
            >>> Plain()(lambda x: weft.cond(x > 0, wnp.sin, wnp.cos, x))(0.0)
            Array(1., dtype=float32, weak_type=True)
        """
        index, rest = self.primal(values[0]), values[1:]
        branches = [lambda *v, region=region: tuple(self._run(region, list(v))) for region in op.regions]
        if _weft.dtype_kind(_weft.abstract(index)[1]) == "bool":
            return _cond(index, branches[1], branches[0], *rest)
        return _switch(index, branches, *rest)

    def scan(self, op: Operation, *values: Any) -> Any:
        """scan, fori_loop of known length, and map: over the leading dimension of every array of the values.

        Args:
            op: the operation.
            *values: its operands: constants, carries, what is scanned.

        Returns: tuple of values: carries, what is stacked.

        Example:
            >>> class Plain(weft.ir.Interpreter):
            ...     def default(self, op, *values):
            ...         return op.bind(*values)
            >>> Plain()(lambda x: weft.fori_loop(0, 3, lambda i, c: c * x, 1.0))(2.0)
            Array(8., dtype=float32)
        """
        if op.name != "scan":
            return self._no_loop(op)
        at, carried = op.attributes["num_consts"], op.attributes["num_carry"]
        constants, carry, xs = values[:at], values[at : at + carried], values[at + carried :]

        def body(carry: tuple, x: tuple) -> tuple:
            out = self._run(op.regions[0], [*constants, *carry, *x])
            return tuple(out[:carried]), tuple(out[carried:])

        length: Any = op.trips if op.trips is not None else _weft.Dim(op._kinds["length"][1][0])
        out: tuple[tuple, tuple] = _scan(body, tuple(carry), tuple(xs), length=length, reverse=op.attributes["reverse"])
        return (*out[0], *out[1])

    def while_loop(self, op: Operation, *values: Any) -> Any:
        """while_loop: goes on as long as the primal of the condition is true.

        Args:
            op: the operation.
            *values: its operands: carries, constants.

        Returns: tuple of values: the carries.

        Example:
            >>> class Plain(weft.ir.Interpreter):
            ...     def default(self, op, *values):
            ...         return op.bind(*values)
            >>> Plain()(lambda x: weft.while_loop(lambda c: c < 10, lambda c: c * 2, x))(1.0)
            Array(16., dtype=float32)
        """
        if op.name != "while" or len(op.results) != op.attributes["num_carry"]:
            return self._no_loop(op)
        n = op.attributes["num_carry"]
        carry, constants = values[:n], values[n:]
        again = lambda c: self.primal(self._run(op.regions[0], [*c, *constants])[0])
        body = lambda c: tuple(self._run(op.regions[1], [*c, *constants]))
        return _while_loop(again, body, tuple(carry))

    def _no_loop(self, op: Operation) -> Any:
        raise not_implemented(
            _at(
                op,
                f"{type(self).__name__}: '{op.primitive}' with tapes or snapshots is what reverse mode makes of a "
                "loop, and has no interpretation; differentiate the interpreted function: weft.grad(interpreter(f))",
            )
        )


def _recursive(interpreter: Interpreter, op: Operation, *values: Any) -> Any:
    del values
    raise not_implemented(
        _at(
            op,
            f"{type(interpreter).__name__} has no rule for '{op.primitive}': functions that call themselves and "
            f'programs of several devices are interpreted by a rule of the class, @weft.ir.rule("{op.primitive}")',
        )
    )


# The method is asked of the class of the interpreter, which may have its own.
_CONTROL: dict[int, Callable[..., Any]] = {
    _view.CALL: lambda i, op, *v: i.call(op, *v),
    _view.WITH_RULES: lambda i, op, *v: i.call(op, *v),
    _view.BRANCHES: lambda i, op, *v: i.cond(op, *v),
    _view.COUNTED: lambda i, op, *v: i.scan(op, *v),
    _view.UNCOUNTED: lambda i, op, *v: i.while_loop(op, *v),
    _view.SNAPSHOTS: lambda i, op, *v: i.scan(op, *v),
    _view.RECURSIVE: _recursive,
    _view.DEVICES: _recursive,
}


def _at(op: Operation, message: str) -> str:
    """The message with the user's line that made the operation."""
    stack = op.location.stack
    return f"{message}\n{stack}" if stack else message
