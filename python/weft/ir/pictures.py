"""Pictures of programs, laid out by Graphviz: weft.IR.to_svg."""

from __future__ import annotations

import collections
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .._core.errors import runtime_error, type_error, value_error
from .._core.ir_view import Literal, Operation, Value
from ..program import IR

__all__ = ["can_lay_out", "picture_of"]

_HEAD = """digraph weft {
  rankdir=TB; compound=true; nodesep=0.2; ranksep=0.35;
  fontname="Helvetica"; fontsize=11;
  node [fontname="Helvetica", fontsize=11, shape=box, style="rounded,filled", fillcolor="#eef3fb", color="#5b7db1"];
  node [margin="0.08,0.04", height=0.3];
  edge [fontname="Helvetica", fontsize=9, color="#666666", arrowsize=0.6];
"""
_DATA = 'shape=ellipse, style=filled, fillcolor="#fdf6e3", color="#b58900"'
_FOLDED = 'shape=box3d, style=filled, fillcolor="#e8e8e8", color="#888888"'
_BUFFER = 'shape=cylinder, style=filled, fillcolor="#fdf6e3", color="#b58900"'
# Of what is folded, a region of more operations than this is one box.
_SMALL = 8


def can_lay_out() -> bool:
    """Whether Graphviz is installed."""
    return shutil.which("dot") is not None


def picture_of(ir: IR, values: bool, buffers: bool, most: int | None, layout: bool) -> str:
    """The picture as SVG, or, before it is laid out, in the language of dot."""
    if most is not None and (isinstance(most, bool) or not isinstance(most, int)):
        raise type_error(f"IR.to_svg: most must be an integer or None, got {most!r}")
    if most is not None and most < 1:
        raise value_error(f"IR.to_svg: most must be 1 or more, got {most}")
    dot = _compiled(ir.stage("schedule"), ir.stage("buffers")) if buffers else _Drawing(ir, values, most).text()
    return _laid_out(dot) if layout else dot


def _laid_out(dot: str) -> str:
    program = shutil.which("dot")
    if program is None:
        raise runtime_error(
            "IR.to_svg: Graphviz's program `dot`, which lays pictures out, is not installed (Debian, Ubuntu: the "
            "package graphviz); IR.to_svg(layout=False) gives the text that it takes"
        )
    done = subprocess.run([program, "-Tsvg"], input=dot, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise runtime_error(f"IR.to_svg: dot failed: {done.stderr.strip()}")
    return done.stdout


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _counted(ops: Iterable[Operation]) -> str:
    """ "mul 3, add 2, ..." of operations, the most frequent first."""
    counts = collections.Counter(op.primitive for op in ops).most_common()
    shown = [f"{name} {n}" for name, n in counts[:4]]
    return ", ".join(shown + (["..."] if len(counts) > 4 else []))


def _inside(ops: Iterable[Operation]) -> list[Operation]:
    """The operations, and those inside them."""
    found = []
    for op in ops:
        found.append(op)
        for region in op.regions:
            found += _inside(region._view.operations)
    return found


class _Drawing:
    def __init__(self, ir: IR, values: bool, most: int | None):
        self._values, self._most = values, most
        self._lines: list[str] = []
        self._ids = 0
        self._all = len(_inside(ir._view.operations))
        self._folds = most is not None and self._all > most
        self._block(ir, "  ", self._parameters(ir, "  "))

    def text(self) -> str:
        return _HEAD + "\n".join(self._lines) + "\n}\n"

    def _node(self, indent: str, label: str, style: str = "", tooltip: str = "") -> str:
        name = f"n{self._ids}"
        self._ids += 1
        words = [f"label={_quoted(label)}", f"tooltip={_quoted(tooltip or label)}", *([style] if style else [])]
        self._lines.append(f"{indent}{name} [{', '.join(words)}];")
        return name

    def _edge(self, indent: str, source: str, target: str, label: str = "", style: str = "") -> None:
        words = ([f"label={_quoted(label)}"] if label else []) + ([style] if style else [])
        self._lines.append(f"{indent}{source} -> {target}" + (f" [{', '.join(words)}]" if words else "") + ";")

    def _parameters(self, ir: IR, indent: str) -> dict[Value, str]:
        return {p: self._node(indent, f"{p.name}\n{p.type}", _DATA) for p in ir._view.parameters}

    def _block(self, ir: IR, indent: str, made: dict[Value, str]) -> None:
        """The operations of a function. `made` says which node has a value."""
        ops = ir._view.operations
        for group in self._groups(ops):
            if len(group) == 1:
                self._operation(group[0], indent, made)
            else:
                inner = _inside(group)
                at = group[0].location
                place = f"{at.file.rpartition('/')[2]}:{at.line}" if at.line else ""
                several = any(op.location.line != at.line for op in group)
                label = f"{place}{' ...' if several else ''}\n{len(inner)} operations\n{_counted(inner)}".strip()
                node = self._node(indent, label, _FOLDED, at.stack)
                outside = {r for op in group for r in op.results}
                reads = dict.fromkeys(
                    x for op in group for x in op.operands if isinstance(x, Value) and x not in outside
                )
                self._read(reads, node, indent, made)
                used = {v for v in outside if any(u not in group for u in v.users) or v in ir._view.results}
                self._make(sorted(used, key=lambda v: v.number), node, indent, made)
        results = [r for r in ir._view.results if isinstance(r, Value)]
        end = self._node(indent, "return", 'shape=plaintext, style=""')
        self._read(results, end, indent, made)

    def _groups(self, ops: Sequence[Operation]) -> list[list[Operation]]:
        """The operations, those that share a box together: what comes from one line, then from one function, then
        whatever is next to each other, as far as it takes for `most` boxes. Each group is a stretch of the order in
        which the operations are computed, so that none waits for itself."""
        groups = [[op] for op in ops]
        if not self._folds or self._most is None:
            return groups
        keys: list[Callable[[Operation], Any]] = [
            lambda op: (op.location.file, op.location.line),
            lambda op: (op.location.file, op.location.function),
        ]
        for key in keys:
            if len(groups) <= self._most:
                return groups
            joined: list[list[Operation]] = []
            for group in groups:
                alone = self._is_most(group) or (joined and self._is_most(joined[-1]))
                if joined and not alone and key(joined[-1][-1]) == key(group[0]):
                    joined[-1] += group
                else:
                    joined.append(list(group))
            if len(joined) >= max(2, self._most // 4):  # one box for everything says nothing
                groups = joined
        size = -(-len(groups) // self._most)
        packed: list[list[list[Operation]]] = [[]]
        for group in groups:
            alone = self._is_most(group) or (packed[-1] and self._is_most(packed[-1][-1]))
            if packed[-1] and (alone or len(packed[-1]) == size):
                packed.append([])
            packed[-1].append(group)
        return [[op for group in pack for op in group] for pack in packed if pack]

    def _is_most(self, group: list[Operation]) -> bool:
        """Whether half of the program is inside this operation: that is not folded, but what is in it."""
        return len(group) == 1 and bool(group[0].regions) and 2 * len(_inside(group)) > self._all

    def _operation(self, op: Operation, indent: str, made: dict[Value, str]) -> None:
        trips = f" x {op.trips}" if op.trips is not None else ""
        label = op.primitive + trips
        shown = [f"{k}={v}" for k, v in op.attributes.items() if not op.regions and len(str(v)) < 24]
        tooltip = "\n".join(filter(None, [repr(op), op.location.stack]))
        numbers = [repr(x) for x in op.operands if isinstance(x, Literal) and len(repr(x)) < 24]
        inner = _inside([op])[1:]
        if op.regions and self._folds and len(inner) > _SMALL and not self._is_most([op]):
            text = f"{label}\n{len(inner)} operations inside\n{_counted(inner)}"
            node = self._node(indent, text, _FOLDED, tooltip)
        elif op.regions:
            node = self._cluster(op, label, tooltip, indent)
        else:
            node = self._node(indent, "\n".join([label, *shown, *numbers]), "", tooltip)
        self._read([x for x in op.operands if isinstance(x, Value)], node, indent, made)
        self._make(op.results, node, indent, made)

    def _cluster(self, op: Operation, label: str, tooltip: str, indent: str) -> str:
        """The operation with its regions around it."""
        cluster = f"cluster{self._ids}"
        self._lines.append(f"{indent}subgraph {cluster} {{")
        self._lines.append(f'{indent}  label={_quoted(label)}; style="rounded"; color="#5b7db1"; bgcolor="#fafcff";')
        node = self._node(indent + "  ", label, 'fillcolor="#d3e0f5"', tooltip)
        for i, region in enumerate(op.regions):
            self._lines.append(f"{indent}  subgraph {cluster}_{i} {{")
            self._lines.append(f'{indent}    label="region {i}"; style="rounded,dashed"; color="#999999";')
            parameters = self._parameters(region, indent + "    ")
            for inside in parameters.values():
                self._edge(indent + "    ", node, inside, style="style=dashed, arrowhead=none")
            self._block(region, indent + "    ", parameters)
            self._lines.append(f"{indent}  }}")
        self._lines.append(f"{indent}}}")
        return node

    def _read(self, operands: Iterable[Value], node: str, indent: str, made: dict[Value, str]) -> None:
        by_source: dict[str, list[Value]] = {}
        for value in operands:
            by_source.setdefault(made[value], []).append(value)
        for source, values in by_source.items():
            if self._values or values[0].definition is None:  # a node shows the type
                self._edge(indent, source, node)
                continue
            types = dict.fromkeys(str(v.type) for v in values)
            text = next(iter(types)) if len(types) == 1 else f"{len(values)} values"
            several = f" x {len(values)}" if len(types) == 1 and len(values) > 1 else ""
            self._edge(indent, source, node, text + several)

    def _make(self, results: Iterable[Value], node: str, indent: str, made: dict[Value, str]) -> None:
        for value in results:
            if not self._values:
                made[value] = node
                continue
            made[value] = self._node(indent, f"{value.name}\n{value.type}", _DATA)
            self._edge(indent, node, made[value])


# --- Compiled: steps and buffers -------------------------------------------------------------------------------------

_STEP = re.compile(r"(\d+): (?:(call|kernel|copy|run) ?([\w ]*?)) ?\(([^()]*)\)")
_BUFFER_LINE = re.compile(r"b(\d+): (.*?)(?:, steps (\d+) to (\d+))?: (%.*)")


def _compiled(schedule: str, buffers: str) -> str:
    """The graph of data and operations of compiled code: what is computed together is one operation, and values that
    share memory are one buffer."""
    kernels = _kernels(schedule)
    lines: list[str] = []
    edges: list[str] = []  # at the end: inside a cluster they would draw a buffer into it
    owner: dict[str, dict[str, str]] = {}
    frame = "0"
    for line in buffers.splitlines():
        words = line.strip()
        if words.startswith("frame "):
            frame = words.split()[1]
            owner[frame] = {}
        elif (found := _BUFFER_LINE.match(words)) is not None:
            number, what, first, last, held = found.groups()
            life = f"\nsteps {first} to {last}" if first else ""
            name = f"f{frame}b{number}"
            lines.append(f"  {name} [label={_quoted(f'b{number}: {what}{life}')}, {_BUFFER}];")
            owner[frame].update((value, name) for value in held.split())
        elif words.startswith("arena"):
            break
    depth, frame, programs = 0, "0", -1
    for line in schedule.split("\nkernels\n")[0].splitlines():
        words = line.strip()
        if words.startswith("program "):
            programs += 1
            frame = str(programs)
        opened = re.match(r"(\d+): (if|while|for|scan\w*|tape\w*)\b ?([^{]*)\{$", words)
        found = _STEP.match(words)
        if opened is not None:
            number, kind, what = opened.groups()
            depth += 1
            lines.append(f"  subgraph cluster_{frame}_{number} {{")
            lines.append(f'  label={_quoted(f"{number}: {kind} {what}".strip())}; style="rounded"; color="#5b7db1";')
        elif words == "}" and depth:
            depth -= 1
            lines.append("  }")
        elif found is not None:
            node, reads_and_writes = _step(found, frame, owner.get(frame, {}), kernels)
            lines += node
            edges += reads_and_writes
    return _HEAD + "\n".join([*lines, *edges]) + "\n}\n"


def _kernels(schedule: str) -> dict[str, str]:
    """What each kernel computes, by its name."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in schedule.split("\nkernels\n")[-1].splitlines():
        if (begins := re.match(r"(\w+) domain", line)) is not None:
            name = begins.group(1)
            found[name] = []
        elif (made := re.match(r"\s+%\d+:\w+ = (\w+)", line)) is not None and made.group(1) not in ("load", "literal"):
            found[name].append(made.group(1))
    return {name: ", ".join(ops) for name, ops in found.items()}


def _step(found: re.Match, frame: str, owner: dict[str, str], kernels: dict[str, str]) -> tuple[list[str], list[str]]:
    """The node of a step, and its edges."""
    number, kind, what, operands = found.groups()
    reads, _, writes = operands.partition("->")
    if kind == "copy":  # (-> to, from)
        to, _, reads = writes.partition(",")
        writes = to
    name = f"f{frame}s{number}"
    label = "\n".join(
        filter(None, [f"{number}: {kind if kind != 'call' else ''} {what}".strip(), kernels.get(what, "")])
    )
    source = [owner[v] for v in re.findall(r"%\d+", reads) if v in owner]
    target = [owner[v] for v in re.findall(r"%\d+", writes) if v in owner]
    if kind == "copy" and source == target:
        return [], []  # both are one buffer: nothing is copied
    edges = [f"  {s} -> {name};" for s in dict.fromkeys(source)] + [f"  {name} -> {t};" for t in dict.fromkeys(target)]
    return [f"  {name} [label={_quoted(label)}];"], edges
