"""Runs dataflow graphs: weft.ir.Executor."""

from __future__ import annotations

import collections
import random
from collections.abc import Iterator
from typing import Any

from .._core.errors import runtime_error, type_error, value_error
from .._core.ir_view import Literal, Value
from .dataflow import Dataflow, Frame, Node, output_name

__all__ = ["ExecutionFrame", "Executor"]


class ExecutionFrame:
    """An execution of a frame: it is made when the first Enter fires, in an iteration of the execution around it.

    Attributes: `name` is unique in a run: the name of the frame, with the iterations of the frames around it;
    `iterations` has for each iteration the values of its outputs, by name; `parent` is the execution around it, and
    `parent_iteration` the iteration there.

    Example:
        >>> f = lambda x: weft.while_loop(lambda c: c < 4, lambda c: c * 2, x)
        >>> run = weft.ir.Executor(weft.ir.to_dataflow(weft.make_ir(f)(1.0)))
        >>> _ = run.run(1.0)
        >>> [(frame.name, len(frame.iterations)) for frame in run.frames]
        [('', 1), ('while_0@0', 3)]
    """

    __slots__ = (
        "frame",
        "parent",
        "parent_iteration",
        "iterations",
        "_inputs",
        "_busy",
        "_done",
        "_constants",
        "_held",
    )

    def __init__(self, frame: Frame, parent: ExecutionFrame | None, parent_iteration: int):
        self.frame, self.parent, self.parent_iteration = frame, parent, parent_iteration
        self.iterations: list[dict[str, Any]] = []
        self._inputs: list[dict[Node, dict[int, Any]]] = []  # of nodes that wait, by the number of the input
        self._busy: list[int] = []  # how much goes on in each iteration
        self._done = 0  # iterations below are over
        self._constants: list[tuple[Node, Any]] = []
        self._held: collections.deque[tuple[Node, int, Any]] = collections.deque()  # of iterations that must wait

    @property
    def name(self) -> str:
        """The name of the frame, then "@" and the iteration around it, of each frame around it, too.

        Example:
            >>> run = weft.ir.Executor(weft.ir.to_dataflow(weft.make_ir(lambda x: x)(1.0)))
            >>> _ = run.run(1.0)
            >>> run.frames[0].name
            ''
        """
        if self.parent is None:
            return ""
        above = f"{self.parent.name}/" if self.parent.name else ""
        return f"{above}{self.frame.name.rpartition('/')[2]}@{self.parent_iteration}"

    def __repr__(self) -> str:
        return f"<execution of {self.name or 'the program'}, {len(self.iterations)} iterations>"


class Executor:
    """Runs a dataflow graph by the rules of its nodes. An operation fires when all of its inputs are there; a Switch
    when data and predicate are, and passes the data on to one of its outputs; a Merge when any input is; Enter, Exit
    and NextIteration when their input is. The first Enter of a frame makes the execution of it. What does not depend on
    one another fires in any order: several iterations of a loop may be under way at once.

    After run(), `frames` has the executions of frames with all values, `fired` the names of nodes in the order in which
    they fired, each with the execution and the iteration, and `most_in_flight` how many iterations of one loop were
    under way at once.

    Args:
        graph: the graph. It is verified.
        parallel_iterations: how many iterations of a loop may be under way.
        seed: draws the order in which nodes fire that are ready; None: the one that was ready first.

    Raises:
        TypeError: it is no graph.
        ValueError: the graph is wrong, or fewer than 1 iteration may be under way.

    Example:
        >>> f = lambda x: weft.while_loop(lambda c: c < 100, lambda c: c * c, x)
        >>> weft.ir.Executor(weft.ir.to_dataflow(weft.make_ir(f)(2.0))).run(3.0)
        [Array(6561., dtype=float32, weak_type=True)]
    """

    def __init__(self, graph: Dataflow, *, parallel_iterations: int = 10, seed: int | None = None):
        if not isinstance(graph, Dataflow):
            raise type_error(f"Executor: expected a weft.ir.Dataflow, as weft.ir.to_dataflow gives, got {graph!r}")
        if isinstance(parallel_iterations, bool) or not isinstance(parallel_iterations, int) or parallel_iterations < 1:
            raise value_error(
                f"Executor: parallel_iterations must be an integer of 1 or more, got {parallel_iterations!r}"
            )
        graph.verify()
        self._graph, self._parallel, self._seed = graph, parallel_iterations, seed
        self.frames: list[ExecutionFrame] = []
        self.fired: list[tuple[str, str, int]] = []
        self.most_in_flight = 1

    def run(self, *args: Any) -> list:
        """Runs the graph.

        Args:
            *args: an array for each parameter.

        Returns: list of arrays, the results.

        Raises:
            TypeError: the number of arguments is wrong.
            RuntimeError: two values came to one Merge in one iteration, or a result never came.

        Example:
            >>> weft.ir.Executor(weft.ir.to_dataflow(weft.make_ir(lambda x: x + 1)(1.0))).run(2.0)
            [Array(3., dtype=float32)]
        """
        graph = self._graph
        if len(args) != len(graph.parameters):
            raise type_error(f"Executor: the graph takes {len(graph.parameters)} values, got {len(args)}")
        top = ExecutionFrame(graph.frames[0], None, 0)
        self.frames, self.fired, self.most_in_flight = [top], [], 1
        self._children: dict[tuple[ExecutionFrame, int, Frame], ExecutionFrame] = {}
        self._ready: list[tuple[Node, ExecutionFrame, int, dict[int, Any]]] = []
        self._next = 0
        self._draw = None if self._seed is None else random.Random(self._seed)
        self._enters = collections.Counter(node.frame for node in graph.nodes if node.kind == "Enter")
        self._begin(top)
        for node, value in zip(graph.parameters, args):
            self._emit(node, 0, value, top, 0)
        for node in graph.nodes:
            if not node.inputs and node.kind != "parameter":
                self._make_ready(node, top, 0, {})
        while (job := self._take()) is not None:
            self._fire(*job)
        return [self._result(top, output) for output in graph.results]

    def _result(self, top: ExecutionFrame, output: Any) -> Any:
        if isinstance(output, Literal):
            return output.array
        key = output_name(*output)
        if key not in top.iterations[0]:
            raise runtime_error(f"Executor: the run is over, and {key} was never computed")
        return top.iterations[0][key]

    # What is ready.

    def _make_ready(self, node: Node, where: ExecutionFrame, i: int, values: dict[int, Any]) -> None:
        where._busy[i] += 1
        self._ready.append((node, where, i, values))

    def _take(self) -> tuple[Node, ExecutionFrame, int, dict[int, Any]] | None:
        if self._next == len(self._ready):
            return None
        if self._draw is not None:
            other = self._draw.randrange(self._next, len(self._ready))
            self._ready[self._next], self._ready[other] = self._ready[other], self._ready[self._next]
        job = self._ready[self._next]
        self._next += 1
        if self._next > 1000:  # what has fired is let go
            del self._ready[: self._next]
            self._next = 0
        return job

    # Iterations.

    def _begin(self, where: ExecutionFrame) -> int:
        where.iterations.append({})
        where._inputs.append({})
        where._busy.append(0)
        self.most_in_flight = max(self.most_in_flight, len(where.iterations) - where._done)
        i = len(where.iterations) - 1
        for node, value in where._constants:
            self._emit(node, 0, value, where, i)
        return i

    def _finish(self, where: ExecutionFrame, i: int) -> None:
        """Something that went on in the iteration is over."""
        where._busy[i] -= 1
        while where._done < len(where.iterations) and where._busy[where._done] == 0:
            where._done += 1
            self._release(where)
        if where._done == len(where.iterations) and where.parent is not None:
            self._finish(where.parent, where.parent_iteration)

    def _release(self, where: ExecutionFrame) -> None:
        """Passes on what waited for an iteration to end."""
        waiting, where._held = where._held, collections.deque()
        for node, i, value in waiting:
            self._pass_on(node, value, where, i)

    def _pass_on(self, node: Node, value: Any, where: ExecutionFrame, i: int) -> None:
        """What a NextIteration gives to iteration i."""
        if i >= where._done + self._parallel:
            where._held.append((node, i, value))
            return
        if i == len(where.iterations):
            self._begin(where)
        self._emit(node, 0, value, where, i)

    # Firing.

    def _fire(self, node: Node, where: ExecutionFrame, i: int, values: dict[int, Any]) -> None:
        self.fired.append((node.name, where.name, i))
        if node.kind == "operation":
            for port, value in enumerate(_computed(node, values)):
                self._emit(node, port, value, where, i)
        elif node.kind == "constant":
            self._emit(node, 0, node.value, where, i)
        elif node.kind == "Switch":
            self._emit(node, int(bool(values[1])), values[0], where, i)
        elif node.kind == "Merge":
            (value,) = values.values()
            self._emit(node, 0, value, where, i)
        elif node.kind == "NextIteration":
            self._pass_on(node, values[0], where, i + 1)
        elif node.kind == "Exit":
            assert where.parent is not None
            self._emit(node, 0, values[0], where.parent, where.parent_iteration)
        else:
            self._enter(node, values[0], where, i)
        self._finish(where, i)

    def _enter(self, node: Node, value: Any, where: ExecutionFrame, i: int) -> None:
        key = (where, i, node.frame)
        inside = self._children.get(key)
        if inside is None:
            inside = self._children[key] = ExecutionFrame(node.frame, where, i)
            self.frames.append(inside)
            where._busy[i] += 1  # until the loop is over
            self._begin(inside)
            inside._busy[0] += self._enters[node.frame]  # until all have come
        if node.constant:
            inside._constants.append((node, value))
            for iteration in range(len(inside.iterations)):
                self._emit(node, 0, value, inside, iteration)
        else:
            self._emit(node, 0, value, inside, 0)
        self._finish(inside, 0)

    def _emit(self, node: Node, port: int, value: Any, where: ExecutionFrame, i: int) -> None:
        """An output has its value: those that read it have one of their inputs."""
        where.iterations[i][output_name(node, port)] = value
        for user, number in node.users:
            if user.inputs[number] != (node, port):
                continue
            if user.kind == "Merge":
                seen = where._inputs[i].setdefault(user, {})
                seen[number] = value
                if len(seen) > 1:
                    raise runtime_error(
                        f"Executor: two values came to the Merge {user.name} in iteration {i} of "
                        f"{where.name or 'the program'}, so which one it passes on is undefined"
                    )
                self._make_ready(user, where, i, {number: value})
                continue
            waiting = where._inputs[i].setdefault(user, {})
            waiting[number] = value
            if len(waiting) == len(user.inputs):
                self._make_ready(user, where, i, where._inputs[i].pop(user))


def _operands(node: Node, values: dict[int, Any]) -> Iterator[Any]:
    assert node.operation is not None
    given = iter([values[i] for i in sorted(values)])
    for operand in node.operation.operands:
        yield next(given) if isinstance(operand, Value) else operand.array


def _computed(node: Node, values: dict[int, Any]) -> tuple:
    assert node.operation is not None
    out = node.operation.bind(*_operands(node, values))
    return out if len(node.operation.results) != 1 else (out,)
