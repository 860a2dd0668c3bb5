"""jax.extend.mlir.dialects.func: the functions of a module and their calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .._core.errors import type_error
from . import mlir_ir as ir

__all__ = ["CallOp", "FuncOp", "ReturnOp", "call", "func", "return_"]


class CallOp(ir.Operation):
    """The call of a function of the module."""

    def __init__(self, callee: Any, arguments: Sequence[ir.Value], *, loc: Any = None, ip: Any = None):
        del loc, ip
        if not isinstance(callee, ir.FunctionOperation):
            raise type_error(f"func.CallOp: the function must be a FuncOp, got {callee!r}")
        self.callee = callee
        super().__init__("func.call", arguments, callee.types)

    def _lines(self, names: Any, indent: str) -> Any:
        self.attributes["callee"] = ir.FlatSymbolRefAttr.get(self.callee.symbol)  # it may have got another name since
        return super()._lines(names, indent)


class ReturnOp(ir.Operation):
    """What a function returns."""

    def __init__(self, operands: Sequence[ir.Value], **_: Any):
        super().__init__("func.return", operands, [])


class FuncOp(ir.FunctionOperation):
    """A function of a module."""

    @classmethod
    def from_py_func(cls, *types: ir.Type, name: str | None = None, results: Any = None) -> Callable[..., Any]:
        """Decorator: a function that builds what the function of the module computes of parameters of types."""
        del results  # they are those of what it returns

        def decorate(build: Callable[..., Any]) -> Callable[..., Any]:
            op = cls(name or build.__name__, types, None)
            more = {"func_op": op} if "func_op" in inspect.signature(build).parameters else {}
            with ir.InsertionPoint(op.entry_block):
                found = build(*op.arguments, **more)
                values = [] if found is None else [found] if isinstance(found, ir.Value) else list(found)
                ReturnOp(values)
            op.types = [x.type for x in values]

            def call(*operands: ir.Value) -> Any:
                called = CallOp(op, operands)
                return called.result if len(called.results) == 1 else called.results

            call.__name__ = op.symbol
            call.func_op = op  # type: ignore[attr-defined]
            return call

        return decorate


func = FuncOp.from_py_func


def call(callee: FuncOp, arguments: Sequence[ir.Value]) -> Any:
    """Calls a function of the module: its result, or the list of them."""
    op = CallOp(callee, arguments)
    return op.result if len(op.results) == 1 else op.results


def return_(operands: Sequence[ir.Value]) -> ReturnOp:
    """Ends a function."""
    return ReturnOp(operands)
