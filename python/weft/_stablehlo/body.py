"""The operations of one function as lines of text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from .. import _weft
from .._core.errors import not_implemented
from .._core.ir_view import Literal, Operation, Value
from ..program import IR, ShapeDtype, make_ir
from .attributes import direction, element_of, quoted, shape_of, tensor_of
from .expansions import EXPANSIONS
from .operations import COMPARISONS, ELEMENTWISE, IDENTITIES
from .types import dense, tensor

__all__ = ["Body", "Module", "Named", "Rule"]


class Named:
    """A value of the text: its name and its type."""

    __slots__ = ("name", "type")

    def __init__(self, name: str, type_: str):
        self.name, self.type = name, type_


class Module(Protocol):
    """What a body needs of what is around it."""

    rules: dict[str, Rule]
    reasons: dict[str, str]
    meshes: dict[str, str] | None
    manual: dict[str, int] | None  # the axes of the mesh whose devices run what is written, and their sizes
    as_printed: bool  # as MLIR and JAX print programs
    calls_host: bool  # from a program for a mesh

    def call(self, ir: IR, name: str) -> str:
        """The name of a function of the module for a program: one for programs that are equal."""


_SHORT = {*ELEMENTWISE.values()}
_HOST_CALLS = frozenset(["assert", "debug_print", "io_callback", "pure_callback"])


class Body:
    """The operations of one function: its lines, and what is called what."""

    def __init__(self, module: Module):
        self.module = module
        self.lines: list[str] = []
        self.env: dict[Value, Named] = {}
        self._count = 0
        self._taken: set[str] = set()
        self._typed: dict[Value, Operation] = {}  # what types say of where values lie
        self._open: set[Value] = set()  # values of which nobody says it

    def name_of(self, wanted: str) -> str:
        base = re.sub(r"\W+", "_", wanted, flags=re.ASCII).strip("_")
        base = base if base and not base[0].isdigit() else f"arg{base}"
        name, n = f"%{base}", 1
        while name in self._taken:
            name, n = f"%{base}_{n}", n + 1
        self._taken.add(name)
        return name

    def new(self, type_: str) -> Named:
        self._count += 1
        return Named(f"%{self._count - 1}", type_)

    def read(self, value: Value | Literal) -> Named:
        return self.env[value] if isinstance(value, Value) else self.constant(value.array)

    def constant(self, array: Any, type_: str | None = None) -> Named:
        """An array in the text; a number stands for all elements of a type that is given."""
        type_ = type_ or tensor(_weft.abstract(array)[3])
        made = self.new(type_)
        self.lines.append(f"{made.name} = stablehlo.constant {dense(array)} : {type_}")
        return made

    def number(self, number: str, type_: str) -> Named:
        made = self.new(type_)
        self.lines.append(f"{made.name} = stablehlo.constant dense<{number}> : {type_}")
        return made

    def op(
        self,
        name: str,
        operands: Sequence[Named],
        types: Sequence[str],
        attributes: dict[str, str] | None = None,
        regions: Sequence[list[str]] = (),
    ) -> list[Named]:
        """Writes an operation in the generic form; element-wise ones of one type in the short one."""
        name = name if "." in name else f"stablehlo.{name}"
        made = [self.new(t) for t in types]
        head = f"{', '.join(m.name for m in made)} = " if made else ""
        given = ", ".join(o.name for o in operands)
        if name in _SHORT and not attributes and {o.type for o in operands} == {*types}:
            # Operations of chlo say both types.
            before = f"{', '.join(o.type for o in operands)} -> " if name.startswith("chlo.") else ""
            self.lines.append(f"{head}{name} {given} : {before}{types[0]}")
            return made
        inside = f" <{{{', '.join(f'{k} = {v}' for k, v in attributes.items())}}}>" if attributes else ""
        signature = f"({', '.join(o.type for o in operands)}) -> " + (
            types[0] if len(types) == 1 else f"({', '.join(types)})"
        )
        if not regions:
            self.lines.append(f'{head}"{name}"({given}){inside} : {signature}')
            return made
        self.lines.append(f'{head}"{name}"({given}){inside} ({{')
        for i, region in enumerate(regions):
            self.lines += [*(["}, {"] if i else []), *region]
        self.lines.append(f"}}) : {signature}")
        return made

    def region(self, types: Sequence[str], write: Callable[..., Sequence[Named]]) -> list[str]:
        """The lines of a region that takes these types."""
        outside, self.lines = self.lines, []
        arguments = [self.new(t) for t in types]
        results = write(*arguments)
        given = ", ".join(r.name for r in results)
        self.lines.append(f"stablehlo.return {given} : {', '.join(r.type for r in results)}")
        inside, self.lines = self.lines, outside
        head = f"^bb0({', '.join(f'{a.name}: {a.type}' for a in arguments)}):"
        return [*([head] if arguments else []), *("  " + line for line in inside)]

    def inline(self, ir: IR, operands: Sequence[Named]) -> list[Named]:
        """A program in the middle of this one."""
        view = ir._view
        self.env.update(zip(view.parameters, operands))
        self.program(view.operations)
        return [self.read(r) for r in view.results]

    def program(self, operations: Sequence[Operation]) -> None:
        if self.module.meshes is not None and self.module.manual is None:
            for op in operations:
                if "typed" in op.attributes and isinstance(op.operands[0], Value):
                    self._typed[op.operands[0]] = op
            made = (r for op in operations if "sharding" not in op.attributes for r in op.results)
            self._open.update(r for r in made if r not in self._typed)
        for op in operations:
            self.env.update(zip(op.results, self.one(op), strict=True))

    def one(self, op: Operation) -> Sequence[Named]:
        types = [tensor(str(r.type)) for r in op.results]
        if op.name in ELEMENTWISE or op.name in COMPARISONS:
            return self._elementwise(op, types)
        if "sharding" in op.attributes and self.module.meshes is not None and self.module.manual is None:
            return [self._constraint(op)]
        if op.name in IDENTITIES:
            return [self.read(op.operands[0])]
        if op.name in _HOST_CALLS and self.module.as_printed:
            return self._host_call(op, types)
        rule = self.module.rules.get(op.name)
        made = rule(self, op, types) if rule is not None else None
        if made is None and op.name in EXPANSIONS:
            made = self._composite(op, types)
        if made is None:
            stack = op.location.stack
            raise not_implemented(
                f"to_stablehlo: StableHLO has nothing for '{op.primitive}'{self.module.reasons.get(op.name, '')}"
                + (f"\n{stack}" if stack else "")
            )
        return made

    def _host_call(self, op: Operation, types: list[str]) -> Sequence[Named]:
        """A call of a function of the host, for who reads the text: no other compiler knows the function. Of several
        devices the first one makes it."""
        operands, made = [self.read(x) for x in op.operands], [self.new(t) for t in types]
        said = [f"has_side_effect = {'false' if op.name == 'pure_callback' else 'true'}"]
        if self.module.meshes is not None:
            self.module.calls_host = True
            alone = ", ".join(["<@maximal_mesh_0, []>"] * max(len(made), 1))
            said.append(f"sdy.sharding = #sdy.sharding_per_value<[{alone}]>")
        head = f"{', '.join(m.name for m in made)} = " if made else ""
        gives = types[0] if len(types) == 1 else f"({', '.join(types)})"
        self.lines.append(
            f"{head}stablehlo.custom_call @weft_{op.name}({', '.join(o.name for o in operands)}) "
            f"{{{', '.join(said)}}} : ({', '.join(o.type for o in operands)}) -> {gives}"
        )
        return made

    def mesh_of(self, text: str) -> str:
        """The name of a mesh, which the module has once."""
        meshes = self.module.meshes
        assert meshes is not None
        axes = ", ".join(f'"{name}"={size}' for name, size in re.findall(r"(\w+)=(\d+)", text))
        return meshes.setdefault(axes, f"mesh_{len(meshes)}" if meshes else "mesh")

    def placed(self, place: Any, rank: int) -> str:
        """The attribute of an argument or result that lies so, with as many dimensions."""
        if place is None:
            return ""
        mesh = self.mesh_of(",".join(f"{name}={size}" for name, size in place.mesh.shape.items()))
        dims = [[] if dim is None else [dim] if isinstance(dim, str) else list(dim) for dim in place.spec]
        dims += [[] for _ in range(rank - len(dims))]
        each = ", ".join(f"{{{', '.join(quoted(name) for name in dim)}}}" for dim in dims)
        axes = ", ".join(f'"{name}"' for name in sorted(place.spec.unreduced))
        sums = f", unreduced={{{axes}}}" if axes else ""
        return f" {{sdy.sharding = #sdy.sharding<@{mesh}, [{each}]{sums}>}}"

    def _constraint(self, op: Operation, x: Named | None = None) -> Named:
        """What is said of where a value lies, or of another one that lies as it does. Where types say it of some axes
        of the mesh, the compiler may add the others to each dimension."""
        name = self.mesh_of(str(op.attributes["mesh"]))
        inside = re.search(r"\(\((.*)\)\)", str(op.attributes["sharding"]))
        dims = inside[1].split(",") if inside is not None and inside[1] else []
        cuts = ["" if dim == "-" else ", ".join(f'"{axis}"' for axis in dim.split(".")) for dim in dims]
        axes, typed = re.findall(r"(\w+)=\d+", str(op.attributes["mesh"])), list(op.attributes.get("typed", ()))
        mixed = 0 < len(typed) < len(axes)
        open_ = [", ?" * bool(cut) or "?" if mixed or d in op.attributes["open"] else "" for d, cut in enumerate(cuts)]
        each = ", ".join(f"{{{cut}{more}}}" for cut, more in zip(cuts, open_))
        axes_of_sum = ", ".join(f'"{axis}"' for axis in op.attributes.get("unreduced", ()))
        sums = f", unreduced={{{axes_of_sum}}}" if axes_of_sum else ""
        named = {axis for dim in dims for axis in dim.split(".")} | set(op.attributes.get("unreduced", ()))
        if mixed and (whole := ", ".join(f'"{axis}"' for axis in axes if axis in typed and axis not in named)):
            sums = f", replicated={{{whole}}}{sums}"
        x = x or self.read(op.operands[0])
        made = self.new(x.type)
        self.lines.append(f"{made.name} = sdy.sharding_constraint {x.name} <@{name}, [{each}]{sums}> : {x.type}")
        return made

    # Operations by kind.

    def wide(self, op: Operation) -> list[Named]:
        """The operands of an element-wise operation; numbers as arrays."""
        shape = shape_of(tensor(str(op.results[0].type)))
        typed = self._typed.get(op.results[0]) if shape else None
        found = []
        for x in op.operands:
            if isinstance(x, Literal) and not _weft.abstract(x.array)[0]:
                number = self.constant(x.array, tensor_of(shape, element_of(tensor(x.type))))
                found.append(number if typed is None else self._constraint(typed, number))
            elif typed is not None and isinstance(x, Value) and x in self._open:
                found.append(self._constraint(typed, self.read(x)))
            else:
                found.append(self.read(x))
        return found

    def _elementwise(self, op: Operation, types: list[str]) -> Sequence[Named]:
        operands = self.wide(op)
        if op.name in ("abs", "sign") and element_of(types[0]).startswith("ui"):  # they are of signed numbers there
            return operands if op.name == "abs" else self.op("minimum", [*operands, self.number("1", types[0])], types)
        if op.name in COMPARISONS:
            return self.op("compare", operands, types, direction(COMPARISONS[op.name]))
        # It is of floats there; JAX writes products.
        if op.name == "square" and (self.module.as_printed or re.match(r"u?i", element_of(types[0]))):
            return self.op("multiply", [*operands, *operands], types)
        return self.op(ELEMENTWISE[op.name], operands, types)

    def _composite(self, op: Operation, types: list[str]) -> Sequence[Named]:
        """An operation that StableHLO lacks, by the name weft.x, with what it is made of."""
        operands = self.wide(op) if _weft_elementwise(op.name) else [self.read(x) for x in op.operands]
        specs = [
            ShapeDtype(tuple(shape_of(o.type)), _weft.abstract(x.array)[1] if isinstance(x, Literal) else x.type.dtype)
            for o, x in zip(operands, op.operands)
        ]
        itself = make_ir(lambda *x: op.bind(*x))(*specs)
        made_of = make_ir(lambda *x: EXPANSIONS[op.name](op, *x))(*specs)
        name = self.module.call(made_of, f"weft.{op.name}")
        attributes = {
            "name": quoted(f"weft.{op.name}"),
            "composite_attributes": f"{{program = {quoted(itself.text)}}}",
            "decomposition": f"@{name}",
            "version": "1 : i32",
        }
        return self.op("composite", operands, types, attributes)

    def combine(self, name: str, type_: str) -> list[str]:
        """A region that combines two elements."""
        return self.region([type_, type_], lambda x, y: self.op(ELEMENTWISE[name], [x, y], [type_]))

    def first(self, what: Any, dtype: Any, type_: str) -> Named:
        """What a reduction begins with."""
        if isinstance(what, str):
            prim = {"least": "reduce_max", "greatest": "reduce_min", "ones": "reduce_and"}[what]
            nothing = _weft.full((0,), False if dtype == "bool" else 0, dtype)
            return self.constant(_weft.bind(prim, [nothing], {"dims": [0]})[0], type_)
        return self.constant(_weft.full((), what, dtype), type_)


def _weft_elementwise(name: str) -> bool:
    if not _ELEMENTWISE:
        _ELEMENTWISE.update(p["name"] for p in _weft.primitives() if p["elementwise"])
    return name in _ELEMENTWISE


_ELEMENTWISE: set[str] = set()


# Writes an operation; None: it has no counterpart of its own.
Rule = Callable[[Body, Operation, list[str]], Sequence[Named] | None]
