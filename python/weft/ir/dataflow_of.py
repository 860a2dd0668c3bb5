"""Programs with regions as dataflow graphs: weft.ir.to_dataflow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _weft
from .._core import ir_view as _view
from .._core.errors import not_implemented, type_error
from .._core.ir_view import Literal, Operation, Value
from ..program import IR
from .dataflow import Dataflow, Frame, Node, Output
from .loops import as_while, at_most, is_boolean

__all__ = ["to_dataflow"]


def to_dataflow(ir: IR) -> Dataflow:
    """The program as a dataflow graph: branches are Switch and Merge, loops are frames with Enter, Merge, Switch,
    NextIteration and Exit, calls are inlined. weft.ir.Executor runs it.

    Args:
        ir: the program.

    Returns: weft.ir.Dataflow.

    Raises:
        TypeError: it is no program.
        NotImplementedError: the program calls itself, has effects, whose order a graph does not keep, or was made by
            reverse mode of a while loop.

    Example:
        >>> ir = weft.make_ir(lambda x: weft.while_loop(lambda c: c < 10, lambda c: c * 2, x))(1.0)
        >>> graph = weft.ir.to_dataflow(ir)
        >>> sorted({node.kind for node in graph.nodes})
        ['Enter', 'Exit', 'Merge', 'NextIteration', 'Switch', 'operation', 'parameter']
        >>> weft.ir.Executor(graph).run(3.0)
        [Array(12., dtype=float32)]
    """
    if not isinstance(ir, IR):
        raise type_error(f"to_dataflow: expected a weft.IR, as weft.make_ir gives, got {ir!r}")
    graph = Dataflow()
    parameters = [(graph.add("parameter", name=p.name), 0) for p in ir._view.parameters]
    graph.results = list(_Lowering(graph).block(ir, parameters, graph.frames[0], None))
    graph.verify()
    return graph


# What stands for a value while a graph is made: an output, or a literal, which operations hold themselves.
_Held = Any


class _Lowering:
    def __init__(self, graph: Dataflow):
        self._graph = graph

    def block(self, ir: IR, values: Sequence[_Held], frame: Frame, trigger: Output | None) -> list[_Held]:
        """The operations of a function on these values. `trigger` starts what has no input: once for the program, in
        every iteration of a loop, and only in the branch that is taken."""
        env: dict[Value, _Held] = dict(zip(ir._view.parameters, values, strict=True))
        read = lambda x: x if isinstance(x, Literal) else env[x]
        for op in ir._view.operations:
            results = self._operation(op, [read(x) for x in op.operands], frame, trigger)
            env.update(zip(op.results, results, strict=True))
        return [read(x) for x in ir._view.results]

    def _operation(self, op: Operation, held: list[_Held], frame: Frame, trigger: Output | None) -> list[_Held]:
        use = _view.region_use(op.name)
        if use in (_view.CALL, _view.WITH_RULES):
            region = op.regions[1] if op.name == "custom_linear" and len(op.regions) > 1 else op.regions[0]
            return self.block(region, held, frame, trigger)
        if use == _view.BRANCHES:
            return self._branches(op, held, frame)
        if use == _view.UNCOUNTED and op.name == "while" and len(op.results) == op.attributes["num_carry"] > 0:
            return self._while(op, held, frame, trigger)
        if op.name == "scan":
            return self.block(as_while(op), held, frame, trigger)
        if use != _view.NONE or _family(op.name) == "effect":
            stack = op.location.stack
            raise not_implemented(
                f"to_dataflow: '{op.primitive}' has no dataflow form: it is an effect, calls itself, runs on several "
                "devices, or was made by reverse mode of a loop" + (f"\n{stack}" if stack else "")
            )
        # A literal may have come in from around: then it is a node that this operation reads.
        inputs = [
            self._as_output(value, frame, trigger)
            for operand, value in zip(op.operands, held)
            if isinstance(operand, Value)
        ]
        if not inputs and trigger is not None:
            inputs = [trigger]
        node = self._graph.add("operation", *inputs, frame=frame, name=op.primitive, operation=op)
        return [(node, i) for i in range(len(op.results))]

    def _as_output(self, value: _Held, frame: Frame, trigger: Output | None) -> Output:
        if not isinstance(value, Literal):
            return value
        node = self._graph.add("constant", *([trigger] if trigger is not None else []), frame=frame, name="constant")
        node.value = value.array
        return node, 0

    def _switch(self, value: _Held, predicate: Output, frame: Frame) -> tuple[_Held, _Held]:
        """The value on the false and on the true side."""
        if isinstance(value, Literal):
            return value, value
        node = self._graph.add("Switch", value, predicate, frame=frame, name=_stem(value[0]))
        return (node, 0), (node, 1)

    def _branches(self, op: Operation, held: list[_Held], frame: Frame) -> list[_Held]:
        index, operands = held[0], held[1:]
        if isinstance(index, Literal):
            at = int(np.clip(int(np.asarray(index.array)), 0, len(op.regions) - 1))
            return self.block(op.regions[at], operands, frame, None)
        if is_boolean(op.operands[0]):
            return self._two(index, operands, frame, *(self._region(r) for r in op.regions))
        return self._choose(op, index, 0, operands, frame)

    def _region(self, region: IR) -> Callable[[list[_Held], Output], list[_Held]]:
        def emit(operands: list[_Held], trigger: Output) -> list[_Held]:
            return self.block(region, operands, trigger[0].frame, trigger)

        return emit

    def _choose(self, op: Operation, index: Output, i: int, operands: list[_Held], frame: Frame) -> list[_Held]:
        """Branches from i on: branch i where the index is at most i, the others otherwise."""
        predicate = self.block(at_most(op.operands[0], i), [index], frame, None)[0]
        rest: Callable[[list[_Held], Output], list[_Held]]
        if i + 2 == len(op.regions):
            rest = self._region(op.regions[i + 1])
            return self._two(predicate, operands, frame, rest, self._region(op.regions[i]))
        # The index goes on to the false side with the operands.
        rest = lambda inside, trigger: self._choose(op, inside[0], i + 1, inside[1:], frame)
        first = lambda inside, trigger: self._region(op.regions[i])(inside[1:], trigger)
        return self._two(predicate, [index, *operands], frame, rest, first)

    def _two(self, predicate: Output, operands: list[_Held], frame: Frame, on_false: Any, on_true: Any) -> list[_Held]:
        sides = [self._switch(x, predicate, frame) for x in operands]
        # Of constants in a branch: they are there when it is taken.
        trigger = (
            sides[0] if sides and not isinstance(operands[0], Literal) else self._switch(predicate, predicate, frame)
        )
        out = []
        for side, emit in enumerate((on_false, on_true)):
            results = emit([x[side] for x in sides], trigger[side])
            out.append([self._as_output(r, frame, trigger[side]) for r in results])
        merged = []
        for no, yes in zip(*out, strict=True):
            merged.append((self._graph.add("Merge", no, yes, frame=frame, name=_stem(yes[0])), 0))
        return merged

    def _while(self, op: Operation, held: list[_Held], outer: Frame, trigger: Output | None) -> list[_Held]:
        graph, n = self._graph, op.attributes["num_carry"]
        frame = graph.add_frame("while", outer)
        merges = []
        for value in held[:n]:
            start = self._as_output(value, outer, trigger)
            enter = graph.add("Enter", start, frame=frame, name=_stem(start[0]))
            merges.append(graph.add("Merge", (enter, 0), frame=frame, name=_stem(start[0])))
        constants: list[_Held] = []
        for value in held[n:]:
            if isinstance(value, Literal):
                constants.append(value)
                continue
            enter = graph.add("Enter", value, frame=frame, name=_stem(value[0]))
            enter.constant = True
            constants.append((enter, 0))
        carried = [(merge, 0) for merge in merges]
        again = self._as_output(
            self.block(op.regions[0], [*carried, *constants], frame, carried[0])[0], frame, carried[0]
        )
        sides = [self._switch(x, again, frame) for x in carried]
        inside = [self._switch(x, again, frame)[1] for x in constants]
        results = self.block(op.regions[1], [*(side[1] for side in sides), *inside], frame, sides[0][1])
        for merge, result in zip(merges, results, strict=True):
            value = self._as_output(result, frame, sides[0][1])
            graph.connect((graph.add("NextIteration", value, frame=frame, name=_stem(merge)), 0), merge)
        return [(graph.add("Exit", side[0], frame=frame, name=_stem(side[0][0])), 0) for side in sides]


def _stem(node: Node) -> str:
    """The name without its number."""
    stem, _, number = node.name.rpartition("_")
    return stem if stem and number.isdigit() else node.name


_FAMILIES: dict[str, str] = {}


def _family(name: str) -> str:
    if not _FAMILIES:
        _FAMILIES.update({p["name"]: p["family"] for p in _weft.primitives() if p["name"] != "pure_callback"})
    return _FAMILIES.get(name, "")
