"""Programs as dataflow graphs with Enter, Switch, Merge, Exit and NextIteration: weft.ir.to_dataflow."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from typing import Any

from .._core.errors import value_error
from .._core.ir_view import Literal, Operation, Value

__all__ = ["Dataflow", "Frame", "Node", "Output", "output_name"]

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
                words.append(output_name(*next(of_variables)) if isinstance(operand, Value) else repr(operand))
        words += [output_name(*output) for output in of_variables]
        return f"{self.name} = {' '.join(words)}"


def output_name(node: Node, port: int) -> str:
    """What an output of a node is called."""
    if node.kind == "Switch":
        return f"{node.name}:{'true' if port else 'false'}"
    several = node.operation is not None and len(node.operation.results) > 1
    return f"{node.name}:{port}" if several else node.name


Output = tuple[Node, int]


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
        self.results: list[Output | Literal] = []
        self._names: set[str] = set()

    def add(
        self,
        kind: str,
        *inputs: Output,
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

    def connect(self, output: Output, node: Node) -> None:
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
        results = (repr(r) if isinstance(r, Literal) else output_name(*r) for r in self.results)
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
        conditions: dict[Output, frozenset] = {}
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
                    f"{node.name} in {node.frame!r} reads {output_name(source, port)} of {leaves!r}; values go from "
                    "one frame to another by Enter and Exit"
                )

    def _order(self) -> Iterator[Node]:
        """The nodes, each after its inputs but for what a NextIteration gives to a Merge."""
        state: dict[Node, int] = {}
        order: list[Node] = []
        for first in self.nodes:
            stack: list[tuple[Node, Iterator[Output]]] = []
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
        self, node: Node, conditions: dict[Output, frozenset], enters: dict[Frame, list[Node]]
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
                            f"{node.name} is a Merge of {output_name(*second)} and {output_name(*first)}, which may "
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
