"""The text of a program: a module of functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..program import IR
from .attributes import shape_of, tensor_of
from .body import Body, Named
from .types import tensor
from .writing_rules import REASONS, RULES

__all__ = ["write"]


def write(ir: IR, devices: int | None = None, signature: Any = None, as_printed: bool = False) -> str:
    """A module whose function `main` is the program; constants that the program captured are in it. `devices`: for how
    many it is; then what constraints say of where values lie is in the text, too. `signature`: how arguments and
    results lie. `as_printed`: as MLIR prints it, and so JAX: parameters are called %arg0, %arg1 and so on instead of by
    their names, one result has no parentheses, real numbers have an exponent."""
    return _Module(devices, signature, as_printed).text(ir)


class _Module:
    """The functions written so far."""

    rules, reasons = RULES, REASONS

    def __init__(self, devices: int | None = None, signature: Any = None, as_printed: bool = False) -> None:
        self._signature, self.as_printed = signature, as_printed
        self.meshes: dict[str, str] | None = None if devices is None else {}
        self.manual: dict[str, int] | None = None
        self.calls_host = False
        self._devices = devices or 1
        self._functions: list[str] = []
        self._called: dict[Any, str] = {}
        self._names: set[str] = set()

    def text(self, ir: IR) -> str:
        self._names.add("main")
        main = self._function(ir, "main", ir.constants)
        name = re.sub(r"\W", "_", ir.__name__) or "f"
        meshes = [f"  sdy.mesh @{said} = <[{axes}]>" for axes, said in (self.meshes or {}).items()]
        meshes += ["  sdy.mesh @maximal_mesh_0 = <[], device_ids=[0]>"] * self.calls_host
        counts = f"mhlo.num_partitions = {self._devices} : i32, mhlo.num_replicas = 1 : i32"
        said = f" attributes {{{counts}}}" if self._devices > 1 or self.as_printed else ""
        return "\n".join([f"module @{name}{said} {{", *meshes, main, *self._functions, "}", ""])

    def call(self, ir: IR, name: str) -> str:
        """The name of a function of the module for a program: one for programs that are equal."""
        if ir not in self._called:
            base = re.sub(r"[^\w.]", "_", name) or "f"
            unique, n = base, 1
            while unique in self._names:
                unique, n = f"{base}_{n}", n + 1
            self._names.add(unique)
            self._called[ir] = unique
            self._functions.append(self._function(ir, unique, ()))
        return self._called[ir]

    def _function(self, ir: IR, name: str, constants: Sequence[Any]) -> str:
        view = ir._view
        body = Body(self)
        free = view.parameters[: len(view.parameters) - len(constants)]
        # A parameter of keys is two words for each, as in JAX.
        outer = name == "main"
        arguments: list[str] = []
        argument_types: list[str] = []
        for p in free:
            keys = outer and str(p.type).startswith("key[")
            type_ = tensor_of([*p.type.shape, 2], "ui32") if keys else tensor(str(p.type))
            given = Named(body.name_of(f"arg{len(arguments)}" if self.as_printed else p.name), type_)
            place = self._signature.arguments[len(arguments)] if outer and self._signature else None
            arguments.append(f"{given.name}: {type_}{body.placed(place, len(shape_of(type_)))}")
            argument_types.append(type_)
            body.env[p] = body.op("bitcast_convert", [given], [tensor(str(p.type))])[0] if keys else given
        for p, array in zip(view.parameters[len(free) :], constants):
            body.env[p] = body.constant(array)
        body.program(view.operations)
        results = [body.read(r) for r in view.results]
        if outer:
            kinds = [str(r.type) for r in view.results]
            results = [
                body.op("bitcast_convert", [r], [tensor_of([*shape_of(r.type), 2], "ui32")])[0]
                if kind.startswith("key[")
                else r
                for r, kind in zip(results, kinds)
            ]
        types = ", ".join(r.type for r in results)
        said = types
        if outer and self._signature:
            said = ", ".join(
                r.type + body.placed(place, len(shape_of(r.type))) for r, place in zip(results, self._signature.results)
            )
            given_away = self._signature.donations(argument_types, [r.type for r in results])
            arguments = [_with_attribute(text, more) for text, more in zip(arguments, given_away)]
        back = f"    return {', '.join(r.name for r in results)} : {types}" if results else "    return"
        kind = "public" if outer else "private"
        said = said if self.as_printed and len(results) == 1 and said == types else f"({said})"
        head = f"  func.func {kind} @{name}({', '.join(arguments)}) -> {said} {{"
        lines = map(_with_exponents, body.lines) if self.as_printed else body.lines
        return "\n".join([head, *("    " + line for line in lines), back, "  }"])


_FLOATS = re.compile(r"dense<([^\">]*)> : tensor<(?:\d+x)*(f16|f32|f64)>")
_ATTRIBUTE = re.compile(r"(?<== )(-?\d+\.\d+(?:e[-+]?\d+)?)(?= : f64)")
_DECIMAL = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")


def _with_exponents(line: str) -> str:
    """The line with its real numbers as MLIR prints them: with an exponent where six digits say all."""

    def numbers(found: re.Match[str]) -> str:
        dtype = np.dtype(f"float{found[2][1:]}").type

        def number(text: re.Match[str]) -> str:
            short = f"{float(text[0]):.6e}"
            return short if dtype(short) == dtype(text[0]) else text[0]

        return found[0].replace(found[1], _DECIMAL.sub(number, found[1]), 1)

    in_f64 = lambda text: f"{float(text[0]):.6e}" if float(f"{float(text[0]):.6e}") == float(text[0]) else text[0]
    return _ATTRIBUTE.sub(in_f64, _FLOATS.sub(numbers, line))


def _with_attribute(argument: str, more: str) -> str:
    """An argument of a function with one attribute more."""
    if not more:
        return argument
    return f"{argument[:-1]}, {more}}}" if argument.endswith("}") else f"{argument} {{{more}}}"
