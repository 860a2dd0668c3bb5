"""A function at each stage of its conversion, as text.

What is shown comes from where conversion has it: the syntax tree from source.py, definitions and uses from beniget,
what statements do to variables from the conversion itself. Types are those that variables have while the converted
function is traced, line by line.
"""

from __future__ import annotations

import ast
import copy
import linecache
import sys
import textwrap
import types as python_types
from collections.abc import Callable, Iterable
from typing import Any

from .. import _weft
from .._core import watching
from . import conversion
from .analysis import Chains, parameters, stored_names, targets
from .jumps import SCOPES, own_nodes
from .source import FunctionNode, find_function
from .state import is_undefined

_CONTROLS = (ast.If, ast.For, ast.While)


def front(plain: python_types.FunctionType, name: str) -> str:
    """The function at a stage that needs no arguments."""
    if name == "converted":
        return conversion.converted_text(plain)
    if name == "source":
        return "\n".join(_lines(plain)[1]) + "\n"
    node, _ = find_function(plain)
    if name == "ast":
        return ast.dump(node, indent=2) + "\n"
    return _analysed(plain) if name == "analysed" else _ssa(plain)


def _lines(plain: python_types.FunctionType) -> tuple[int, list[str]]:
    """The number of the first line of a function, and its lines."""
    node, _ = find_function(plain)
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    text = linecache.getlines(plain.__code__.co_filename, plain.__globals__)[first - 1 : node.end_lineno]
    return first, textwrap.dedent("".join(text)).splitlines()


def _with_notes(plain: python_types.FunctionType, notes: dict[int, list[str]], last: Iterable[str] = ()) -> str:
    """The lines of a function, with notes beside them and others below."""
    first, lines = _lines(plain)
    width = max([30, *(len(line) for line in lines if len(line) <= 70)]) + 4
    out = []
    for number, line in enumerate(lines, first):
        said = notes.get(number, [])
        out.append(f"{line:<{width - 2}}  # {'; '.join(said)}" if said else line)
    return "\n".join([*out, *last]) + "\n"


# --- Definitions and uses ---------------------------------------------------------------------------------------------


class _Definitions:
    """The definitions of a function's variables, numbered in order of their places, and which of them each use sees."""

    def __init__(self, plain: python_types.FunctionType):
        found, _ = find_function(plain)
        self.node: FunctionNode = copy.deepcopy(found)
        if isinstance(self.node, ast.Lambda):
            body: ast.stmt = ast.copy_location(ast.Return(self.node.body), self.node.body)
            self.node = ast.copy_location(ast.FunctionDef("_lambda", self.node.args, [body], []), self.node)
        self.node.decorator_list = []
        chains = Chains()
        chains.visit(ast.Module([self.node], []))
        self.number: dict[ast.AST, tuple[str, int]] = {}
        self.seen_by: dict[ast.AST, list[ast.AST]] = {}
        functions = [n for n in ast.walk(self.node) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
        self._scope_of: dict[ast.AST, ast.AST] = {}
        for function in functions:
            definitions = [*chains.locals[function]]
            augmented = [n.target for n in own_nodes(function) if isinstance(n, ast.AugAssign)]
            definitions += [chains.chains[t] for t in augmented if isinstance(t, ast.Name) and t in chains.chains]
            counts: dict[str, int] = {}
            place = lambda d: (getattr(d.node, "lineno", 0), getattr(d.node, "col_offset", 0))
            for d in sorted(dict.fromkeys(definitions), key=place):
                counts[d.name()] = counts.get(d.name(), 0) + 1
                self.number[d.node] = d.name(), counts[d.name()]
                for use in d.users():
                    self.seen_by.setdefault(use.node, []).append(d.node)

    def name(self, definition: ast.AST) -> str:
        name, number = self.number[definition]
        return f"{name}.{number}"

    def uses(self, node: ast.AST) -> list[str]:
        """The definitions that a use sees, by name."""
        return sorted(self.name(d) for d in dict.fromkeys(self.seen_by.get(node, ())))


def _phi(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"phi({', '.join(names)})"


def _ssa(plain: python_types.FunctionType) -> str:
    known = _Definitions(plain)

    class Rename(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.Name:
            if node in known.number and not isinstance(node.ctx, ast.Load):
                node.id = known.name(node)
            elif names := known.uses(node):
                node.id = _phi(names)
            return node

        def visit_arg(self, node: ast.arg) -> ast.arg:
            node.arg = known.name(node) if node in known.number else node.arg
            return node

        def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
            if not isinstance(node.target, ast.Name):
                self.generic_visit(node)
                return node
            before = ast.Name(_phi(known.uses(node.target) or [node.target.id]), ast.Load())
            value = ast.BinOp(before, node.op, self.visit(node.value))
            return ast.copy_location(ast.Assign([self.visit_Name(node.target)], value), node)

        def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
            self.generic_visit(node)
            if node in known.number and node is not known.node:
                node.name = known.name(node)
            return node

    return ast.unparse(ast.fix_missing_locations(Rename().visit(known.node))) + "\n"


def _analysed(plain: python_types.FunctionType) -> str:
    known = _Definitions(plain)
    notes: dict[int, list[str]] = {}
    for word, of in (("defines", known.number), ("reads", known.seen_by)):
        by_line: dict[int, list[str]] = {}
        for n in sorted(of, key=lambda n: (getattr(n, "lineno", 0), getattr(n, "col_offset", 0))):
            texts = [known.name(n)] if word == "defines" else known.uses(n)
            by_line.setdefault(getattr(n, "lineno", 0), []).append("|".join(texts))
        for line, texts in by_line.items():
            notes.setdefault(line, []).append(f"{word} {', '.join(dict.fromkeys(texts))}")
    for line, control, facts in _controls(plain, known.node):
        notes.setdefault(line, []).append(f"this `{control}` {facts}")
    last = []
    inner = [n for n in own_nodes(known.node) if isinstance(n, SCOPES)]
    own = {*parameters(known.node), *stored_names(known.node.body)}  # type: ignore[arg-type]
    loads = {m.id for n in inner for m in ast.walk(n) if isinstance(m, ast.Name)}
    if captured_names := sorted(own & loads):
        last.append(f"# shared with functions inside: {', '.join(captured_names)}")
    last += [f"# may be one object: {', '.join(group)}" for group in _one_object(known.node)]
    return _with_notes(plain, notes, last)


def _controls(plain: python_types.FunctionType, node: ast.AST) -> Iterable[tuple[int, str, str]]:
    """What the conversion knows of each `if`, `for` and `while` of the source: line, word, facts."""
    written = {(type(n), n.lineno, n.col_offset) for n in ast.walk(node) if isinstance(n, _CONTROLS)}
    for fact in sorted(conversion.facts(plain), key=lambda f: (f.control.lineno, f.control.col_offset)):
        s = fact.control
        at = type(s), s.lineno, s.col_offset
        if at not in written:
            continue  # made for a `break` or an early `return`
        written.discard(at)
        parts = [f"stays Python's: {fact.python_only}"] if fact.python_only else []
        if not fact.python_only:
            parts.append(f"leaves {', '.join(fact.live) or 'nothing'}")
        if fact.dead:
            parts.append(f"changes {', '.join(fact.dead)}, which nobody reads after it")
        if fact.written:
            parts.append(f"writes to {', '.join(fact.written)}")
        if flags := getattr(s, "flags", ()):
            parts.append(f"ends early by {', '.join(flags)}")
        yield s.lineno, type(s).__name__.lower(), ", ".join(parts)


def _one_object(function: ast.AST) -> list[list[str]]:
    """Variables that may name one object, whatever the order in which lines run: `b = a`, `c = a if p else b`."""
    groups: list[set[str]] = []

    def join(names: set[str]) -> None:
        touched = [g for g in groups if g & names]
        for g in touched:
            groups.remove(g)
        groups.append(names.union(*touched))

    for n in own_nodes(function):
        if isinstance(n, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and n.value is not None:
            sides = n.targets if isinstance(n, ast.Assign) else [n.target]
            for target in sides:
                for one, value in _pairs(target, n.value):
                    names = {ast.unparse(v) for v in _may_be(value)}
                    if names and isinstance(one, (ast.Name, ast.Attribute, ast.Subscript)):
                        join({ast.unparse(one), *names})
    return sorted(sorted(g) for g in groups if len(g) > 1)


def _pairs(target: ast.expr, value: ast.expr) -> Iterable[tuple[ast.expr, ast.expr]]:
    if isinstance(target, (ast.Tuple, ast.List)):
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            for t, v in zip(target.elts, value.elts):
                yield from _pairs(t, v)
    else:
        yield target, value


def _may_be(value: ast.expr) -> list[ast.expr]:
    """The variables whose object an expression may be."""
    if isinstance(value, ast.IfExp):
        return _may_be(value.body) + _may_be(value.orelse)
    if isinstance(value, ast.BoolOp):
        return [v for part in value.values for v in _may_be(part)]
    if isinstance(value, ast.NamedExpr):
        return [value.target, *_may_be(value.value)]
    return [value] if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)) else []


# --- Types ------------------------------------------------------------------------------------------------------------


def types(plain: python_types.FunctionType, trace: Callable[[], Any]) -> str:
    """The source with the types that each line gives to variables while the converted function is traced. `trace`
    traces it."""
    seen = _Watched(conversion.convert(plain), find_function(plain)[0])
    seen.watch(trace)
    notes: dict[int, list[str]] = {}
    for (line, name), kinds in seen.types.items():
        notes.setdefault(line, []).append(f"{name}: {' or '.join(kinds)}")
    return _with_notes(plain, notes)


class _Watched:
    """Follows the frames of a converted function line by line, by sys.settrace."""

    def __init__(self, converted: python_types.FunctionType, node: ast.AST):
        self.types: dict[tuple[int, str], dict[str, None]] = {}
        self._outer = converted.__code__
        self._codes: set[int] = set()
        pending = [converted.__code__]
        while pending:
            code = pending.pop()
            self._codes.add(id(code))
            pending += [c for c in code.co_consts if isinstance(c, python_types.CodeType)]
        self._statement: dict[int, ast.stmt] = {}  # the innermost one of each line
        for s in sorted((n for n in ast.walk(node) if isinstance(n, ast.stmt)), key=lambda n: n.lineno):
            body = getattr(s, "body", None)
            end = max(body[0].lineno, s.lineno + 1) if body else (s.end_lineno or s.lineno) + 1
            self._statement |= dict.fromkeys(range(s.lineno, end), s)
        self._node = node
        self._names = {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
        self._names |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        self._last: dict[int, int] = {}  # the line at which each frame is

    def watch(self, trace: Callable[[], Any]) -> None:
        before = sys.gettrace()
        sys.settrace(self._call)
        try:
            trace()
        finally:
            sys.settrace(before)

    def _call(self, frame: python_types.FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if id(code) not in self._codes:
            return None
        given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount :]
        given += rest[: bool(code.co_flags & 4) + bool(code.co_flags & 8)]
        for name in given:
            if name in self._names and name in frame.f_locals:
                self._note(code.co_firstlineno, name, frame.f_locals[name])
        return self._line

    def _line(self, frame: python_types.FrameType, event: str, arg: Any) -> Any:
        if event not in ("line", "return"):
            return self._line
        line = self._last.get(id(frame))
        if line is not None:
            done = self._statement.get(line)
            if done is not None and (event == "return" or self._is_left(done, frame.f_lineno)):
                self._finished(done, frame)
        if event == "line":
            self._last[id(frame)] = frame.f_lineno
        else:
            self._last.pop(id(frame), None)
            if frame.f_code is self._outer and arg is not None:
                ends = [n.lineno for n in own_nodes(self._node) if isinstance(n, ast.Return)]
                at = max(ends, default=getattr(self._node, "end_lineno", frame.f_lineno))
                self._note(at, "result", arg)
        return self._line

    def _is_left(self, s: ast.stmt, line: int) -> bool:
        """Whether a statement has ended when this line begins."""
        if isinstance(s, _CONTROLS):
            return not s.lineno <= line <= (s.end_lineno or s.lineno)
        return self._statement.get(line) is not s

    def _finished(self, s: ast.stmt, frame: python_types.FrameType) -> None:
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Return)):
            return
        if isinstance(s, _CONTROLS):
            if frame.f_code is not self._outer and frame.f_code.co_firstlineno == s.lineno:
                return  # a part of the statement, not what is around it
            for name in stored_names([s]):
                if name in frame.f_locals and not (isinstance(s, ast.For) and name in stored_names([s.target])):
                    self._note(s.lineno, f"after it {name}", frame.f_locals[name])
            return
        header = [c for c in ast.iter_child_nodes(s) if not isinstance(c, ast.stmt)]
        for name in stored_names([s] if isinstance(s, (ast.Import, ast.ImportFrom)) else header):
            if name in frame.f_locals:
                self._note(s.lineno, name, frame.f_locals[name])
        for target in targets(s):
            base: ast.expr = target
            while isinstance(base, ast.Subscript):
                base = base.value
            if not isinstance(target, ast.Name):
                found = _value_of(base, frame.f_locals)
                if found is not None:
                    self._note(s.lineno, ast.unparse(base), found)

    def _note(self, line: int, name: str, value: Any) -> None:
        self.types.setdefault((line, name), {})[type_text(value)] = None


def _value_of(path: ast.expr, space: Any) -> Any:
    """What a name or a chain of plain attributes holds; None if that is not known without calling anything."""
    if isinstance(path, ast.Name):
        return space.get(path.id)
    if isinstance(path, ast.Attribute):
        inside = getattr(_value_of(path.value, space), "__dict__", {})
        return inside.get(path.attr)
    return None


def type_text(value: Any) -> str:
    """The type of a value, as programs have it: dtype and shape of arrays, Python's name of what is none."""
    if is_undefined(value):
        return "no value"
    if isinstance(value, (_weft.Array, _weft.Tracer)):
        _, _, weak, text = _weft.abstract(value)
        return f"{text}{watching.WEAK}" if weak else text
    if type(value) in (list, tuple, set):
        ends = "[]" if type(value) is list else "()" if type(value) is tuple else "{}"
        parts = [type_text(v) for v in list(value)[:8]]
        if len(value) > 2 and len(set(parts)) == 1:
            return f"{ends[0]}{len(value)} of {parts[0]}{ends[1]}"
        return ends[0] + ", ".join([*parts, *(["..."] if len(value) > 8 else [])]) + ends[1]
    if type(value) is dict:
        return "{" + ", ".join(f"{k!r}: {type_text(v)}" for k, v in list(value.items())[:8]) + "}"
    if value is None:
        return "None"
    return type(value).__name__
