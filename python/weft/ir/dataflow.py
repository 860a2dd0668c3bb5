"""Programs as dataflow graphs with Enter, Switch, Merge, Exit and NextIteration: weft.ir.to_dataflow."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import _weft
from .._core import ir_view as _view
from .._core.errors import not_implemented, type_error, value_error
from .._core.ir_view import Literal, Operation, Value
from ..program import IR
from .loops import as_while, at_most, is_boolean

__all__ = ["Dataflow", "Frame", "Node", "to_dataflow"]

# What a node is. An operation computes when all of its inputs are there, a constant when its trigger is; the others are
# the five of control flow.
_KINDS = ("parameter", "constant", "operation", "Enter", "Switch", "Merge", "Exit", "NextIteration")
# How many inputs a node of a kind has; None: any number.
_INPUTS = {"parameter": 0, "constant": None, "operation": None, "Enter": 1, "Switch": 2, "Exit": 1, "NextIteration": 1}


class Frame:
    """Where the nodes of a loop stand: its name, that of the frame around it before it, and that frame. A run makes one
    execution of it each time that it is entered.

    Example:
        >>> f = lambda x: weft.while_loop(lambda c: c < 9, lambda c: c + x, x)
        >>> [frame.name for frame in weft.ir.to_dataflow(weft.make_ir(f)(1.0)).frames]
        ['', 'while_0']
    """

    __slots__ = ("name", "parent")

    def __init__(self, name: str, parent: Frame | None):
        self.name, self.parent = name, parent

    def __repr__(self) -> str:
        return f"Frame({self.name!r})"


class Node:
    """A node of a dataflow graph. `inputs` are pairs of a node and the number of one of its outputs; a Switch has
    output 1 where its predicate is true and 0 where it is false.

    Example:
        >>> graph = weft.ir.to_dataflow(weft.make_ir(lambda x: wnp.sin(x))(1.0))
        >>> node = graph.nodes[-1]
        >>> node.kind, node.name, [source.name for source, port in node.inputs]
        ('operation', 'sin_1', ['x'])
    """

    __slots__ = ("kind", "name", "inputs", "frame", "operation", "value", "constant", "users")

    def __init__(self, kind: str, name: str, inputs: Sequence[tuple[Node, int]], frame: Frame):
        self.kind, self.name, self.frame = kind, name, frame
        self.inputs = list(inputs)
        self.operation: Operation | None = None
        self.value: Any = None  # of a constant
        self.constant = False  # an Enter whose value is there in every iteration
        self.users: list[tuple[Node, int]] = []  # who reads an output, and as which input

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"

    def line(self) -> str:
        """The node as a line of text.

        Returns: str.

        Example:
            >>> weft.ir.to_dataflow(weft.make_ir(lambda x: wnp.sin(x))(1.0)).nodes[-1].line()
            'sin_1 = sin x'
        """
        words = [self.kind if self.operation is None else self.operation.primitive]
        if self.constant:
            words[0] += "[constant]"
        if self.kind == "constant":
            words.append(repr(self.value))
        of_variables = iter(self.inputs)
        if self.operation is not None and any(isinstance(x, Value) for x in self.operation.operands):
            for operand in self.operation.operands:
                words.append(_output_name(*next(of_variables)) if isinstance(operand, Value) else repr(operand))
        words += [_output_name(*output) for output in of_variables]
        return f"{self.name} = {' '.join(words)}"


def _output_name(node: Node, port: int) -> str:
    if node.kind == "Switch":
        return f"{node.name}:{'true' if port else 'false'}"
    several = node.operation is not None and len(node.operation.results) > 1
    return f"{node.name}:{port}" if several else node.name


_Output = tuple[Node, int]


class Dataflow:
    """A program as a graph of operations, branches and loops flat in it: weft.ir.to_dataflow makes one,
    weft.ir.Executor runs it. `nodes` stand in the order in which they were made, `results` are outputs of nodes, or
    literals.

    Example:
        >>> ir = weft.make_ir(lambda x: weft.cond(x > 0, wnp.sin, wnp.cos, x))(1.0)
        >>> print(weft.ir.to_dataflow(ir), end="")
        x = parameter
        gt_1 = gt x 0.0:f32
        x_2 = Switch x gt_1
        cos_3 = cos x_2:false
        sin_4 = sin x_2:true
        sin_5 = Merge cos_3 sin_4
        return sin_5
    """

    def __init__(self) -> None:
        self.frames = [Frame("", None)]
        self.nodes: list[Node] = []
        self.parameters: list[Node] = []
        self.results: list[_Output | Literal] = []
        self._names: set[str] = set()

    def add(
        self,
        kind: str,
        *inputs: _Output,
        frame: Frame | None = None,
        name: str = "",
        operation: Operation | None = None,
    ) -> Node:
        """Adds a node. A Merge may get its inputs later, by connect().

        Args:
            kind: "parameter", "constant", "operation", "Enter", "Switch" (data, predicate), "Merge", "Exit" or
                "NextIteration".
            *inputs: outputs of nodes, each a node and a number.
            frame: where it stands: an Enter in the frame that it enters, an Exit in the one that it leaves.
            name: what it is called; a number follows.
            operation: what an operation computes.

        Returns: weft.ir.Node.

        Raises:
            ValueError: there is no such kind, or a node of it has another number of inputs.

        Example:
            >>> graph = weft.ir.Dataflow()
            >>> x = graph.add("parameter", name="x")
            >>> graph.add("Switch", (x, 0), (x, 0), name="s")
            <Switch s_1>
        """
        if kind not in _KINDS:
            raise value_error(f"Dataflow.add: there is no node '{kind}'; there are {', '.join(_KINDS)}")
        expected = _INPUTS.get(kind)
        if expected is not None and len(inputs) != expected:
            raise value_error(f"Dataflow.add: {kind} takes {expected} inputs, got {len(inputs)}")
        base = name.lstrip("%") or "v"
        plain = kind == "parameter" and name and base not in self._names
        node = Node(kind, base if plain else f"{base}_{len(self.nodes)}", (), frame or self.frames[0])
        self._names.add(node.name)
        node.operation = operation
        self.nodes.append(node)
        for output in inputs:
            self.connect(output, node)
        if kind == "parameter":
            self.parameters.append(node)
        return node

    def connect(self, output: _Output, node: Node) -> None:
        """Makes an output a further input of a node.

        Args:
            output: a node and the number of its output.
            node: what reads it.

        Example:
            >>> graph = weft.ir.Dataflow()
            >>> merge = graph.add("Merge")
            >>> graph.connect((graph.add("parameter"), 0), merge)
            >>> len(merge.inputs)
            1
        """
        output[0].users.append((node, len(node.inputs)))
        node.inputs.append(output)

    def add_frame(self, name: str, parent: Frame) -> Frame:
        """Adds a frame, for a loop.

        Args:
            name: what it is called; a number follows, and the name of the frame around it stands before.
            parent: the frame around it.

        Returns: weft.ir.Frame.

        Example:
            >>> graph = weft.ir.Dataflow()
            >>> graph.add_frame("while", graph.frames[0])
            Frame('while_0')
        """
        above = f"{parent.name}/" if parent.name else ""
        frame = Frame(f"{above}{name}_{len(self.frames) - 1}", parent)
        self.frames.append(frame)
        return frame

    @property
    def text(self) -> str:
        """The graph as text, a line for each node.

        Example:
            >>> weft.ir.to_dataflow(weft.make_ir(lambda x: x)(1.0)).text
            'x = parameter\\nreturn x\\n'
        """
        lines = []
        for node in self.nodes:
            lines.append(node.line() + (f"    # in {node.frame.name}" if node.frame.name else ""))
        results = (repr(r) if isinstance(r, Literal) else _output_name(*r) for r in self.results)
        return "\n".join([*lines, f"return {', '.join(results)}\n"])

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Dataflow of {len(self.nodes)} nodes in {len(self.frames)} frames>"

    def verify(self) -> None:
        """Checks the graph: nodes have the inputs that they need, frames are entered and left by Enter and Exit, only a
        Merge closes a cycle, and that through a NextIteration. And no Merge has two inputs that may both be there in
        one iteration: which of them it passes on would be undefined.

        Raises:
            ValueError: the graph is wrong; the message names the node.

        Example:
            >>> graph = weft.ir.Dataflow()
            >>> x, y = (graph.add("parameter", name=name) for name in "xy")
            >>> graph.results = [(graph.add("Merge", (x, 0), (y, 0), name="m"), 0)]
            >>> try:
            ...     graph.verify()
            ... except ValueError as error:
            ...     print(str(error).partition(";")[0])
            m_2 is a Merge of x and y, which may both be there: which one it passes on is undefined
        """
        for node in self.nodes:
            self._check_inputs(node)
        conditions: dict[_Output, frozenset] = {}
        enters: dict[Frame, list[Node]] = collections.defaultdict(list)
        for node in self.nodes:
            if node.kind == "Enter":
                enters[node.frame].append(node)
        for node in self._order():
            self._find_conditions(node, conditions, enters)

    def _check_inputs(self, node: Node) -> None:
        if node.kind == "Merge" and len(node.inputs) < 2:
            raise value_error(f"{node.name} is a Merge of {len(node.inputs)} inputs, two are needed")
        if node.kind == "operation":
            assert node.operation is not None
            takes = sum(isinstance(x, Value) for x in node.operation.operands)
            if len(node.inputs) != takes and not (takes == 0 and len(node.inputs) == 1):  # the one is a trigger
                raise value_error(
                    f"Dataflow.verify: {node.name} reads {len(node.inputs)} values, {node.operation.name} takes {takes}"
                )
        for source, port in node.inputs:
            leaves = source.frame.parent if source.kind == "Exit" else source.frame
            expected = node.frame.parent if node.kind == "Enter" else node.frame
            if leaves is not expected:
                raise value_error(
                    f"{node.name} in {node.frame!r} reads {_output_name(source, port)} of {leaves!r}; values go from "
                    "one frame to another by Enter and Exit"
                )

    def _order(self) -> Iterator[Node]:
        """The nodes, each after its inputs but for what a NextIteration gives to a Merge."""
        state: dict[Node, int] = {}
        order: list[Node] = []
        for first in self.nodes:
            stack: list[tuple[Node, Iterator[_Output]]] = []
            if first not in state:
                state[first] = 1
                stack.append((first, iter(first.inputs)))
            while stack:
                node, rest = stack[-1]
                for source, _ in rest:
                    if node.kind == "Merge" and source.kind == "NextIteration":
                        continue
                    if state.get(source) == 1:
                        raise value_error(
                            f"{node.name} and {source.name} wait for each other; a cycle goes through a NextIteration "
                            "and a Merge"
                        )
                    if source not in state:
                        state[source] = 1
                        stack.append((source, iter(source.inputs)))
                        break
                else:
                    state[node] = 2
                    order.append(node)
                    stack.pop()
        return iter(order)

    def _find_conditions(
        self, node: Node, conditions: dict[_Output, frozenset], enters: dict[Frame, list[Node]]
    ) -> None:
        """Under which sides of which Switches an output is there: pairs of a predicate and its value, all of which
        hold."""
        of = lambda output: conditions[output]
        if node.kind == "Merge":
            loops = [source.kind for source, _ in node.inputs]
            if sorted(loops) == ["Enter", "NextIteration"]:
                conditions[node, 0] = of(node.inputs[loops.index("Enter")])
                return
            for i, first in enumerate(node.inputs):
                for second in node.inputs[:i]:
                    if "NextIteration" in (first[0].kind, second[0].kind) or not any(
                        (predicate, not side) in of(second) for predicate, side in of(first)
                    ):
                        raise value_error(
                            f"{node.name} is a Merge of {_output_name(*second)} and {_output_name(*first)}, which may "
                            "both be there: which one it passes on is undefined; the inputs of a Merge come from both "
                            "sides of one Switch, or from an Enter and a NextIteration"
                        )
            conditions[node, 0] = frozenset.intersection(*map(of, node.inputs))
            return
        all_of = frozenset().union(*map(of, node.inputs))
        if node.kind == "Exit":
            # Seen from outside, the loop ends: what holds is what held where it began.
            all_of = frozenset().union(*(conditions.get((e, 0), frozenset()) for e in enters[node.frame]))
        if node.kind == "Switch":
            for side in (0, 1):
                conditions[node, side] = all_of | {(node.inputs[1], bool(side))}
            return
        for port in range(max(1, len(node.operation.results) if node.operation is not None else 1)):
            conditions[node, port] = all_of


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

    def block(self, ir: IR, values: Sequence[_Held], frame: Frame, trigger: _Output | None) -> list[_Held]:
        """The operations of a function on these values. `trigger` starts what has no input: once for the program, in
        every iteration of a loop, and only in the branch that is taken."""
        env: dict[Value, _Held] = dict(zip(ir._view.parameters, values, strict=True))
        read = lambda x: x if isinstance(x, Literal) else env[x]
        for op in ir._view.operations:
            results = self._operation(op, [read(x) for x in op.operands], frame, trigger)
            env.update(zip(op.results, results, strict=True))
        return [read(x) for x in ir._view.results]

    def _operation(self, op: Operation, held: list[_Held], frame: Frame, trigger: _Output | None) -> list[_Held]:
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

    def _as_output(self, value: _Held, frame: Frame, trigger: _Output | None) -> _Output:
        if not isinstance(value, Literal):
            return value
        node = self._graph.add("constant", *([trigger] if trigger is not None else []), frame=frame, name="constant")
        node.value = value.array
        return node, 0

    def _switch(self, value: _Held, predicate: _Output, frame: Frame) -> tuple[_Held, _Held]:
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

    def _region(self, region: IR) -> Callable[[list[_Held], _Output], list[_Held]]:
        def emit(operands: list[_Held], trigger: _Output) -> list[_Held]:
            return self.block(region, operands, trigger[0].frame, trigger)

        return emit

    def _choose(self, op: Operation, index: _Output, i: int, operands: list[_Held], frame: Frame) -> list[_Held]:
        """Branches from i on: branch i where the index is at most i, the others otherwise."""
        predicate = self.block(at_most(op.operands[0], i), [index], frame, None)[0]
        rest: Callable[[list[_Held], _Output], list[_Held]]
        if i + 2 == len(op.regions):
            rest = self._region(op.regions[i + 1])
            return self._two(predicate, operands, frame, rest, self._region(op.regions[i]))
        # The index goes on to the false side with the operands.
        rest = lambda inside, trigger: self._choose(op, inside[0], i + 1, inside[1:], frame)
        first = lambda inside, trigger: self._region(op.regions[i])(inside[1:], trigger)
        return self._two(predicate, [index, *operands], frame, rest, first)

    def _two(self, predicate: _Output, operands: list[_Held], frame: Frame, on_false: Any, on_true: Any) -> list[_Held]:
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

    def _while(self, op: Operation, held: list[_Held], outer: Frame, trigger: _Output | None) -> list[_Held]:
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
