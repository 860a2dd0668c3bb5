"""Definite assignment: which variables have a value wherever they are read, on every path that Python can take.

    while True:
        x = x * 2
        if x > 10:
            r = x
            break
    return r            # only a break leads here, and before it r is assigned

Where no path reads such a variable without a value, any number may stand in for it on the paths that do not assign it:
loops and branches can carry it.
"""

from __future__ import annotations

import ast
import dataclasses

from .jumps import SCOPES, own_nodes

# The variables that have a value at some point; None where no path leads.
_Known = frozenset[str] | None


def _either(*paths: _Known) -> _Known:
    """Where paths meet."""
    known = [p for p in paths if p is not None]
    return frozenset.intersection(*known) if known else None


@dataclasses.dataclass
class _Exits:
    """What is known at the breaks of the innermost loop."""

    breaks: list[_Known] = dataclasses.field(default_factory=list)


def definitely_assigned(function: ast.FunctionDef, names: set[str]) -> set[str]:
    """Of the variables of a function those that have a value wherever they are read."""
    flow = _Flow(names)
    flow.block(function.body, frozenset(), _Exits())
    nodes = list(own_nodes(function))
    deleted = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)}
    deleted |= {n.name for n in nodes if isinstance(n, ast.ExceptHandler) and n.name is not None}
    return names - flow.unsure - deleted


def takes_all(case: ast.match_case) -> bool:
    """Whether a case is taken wherever it is reached."""
    return case.guard is None and _matches_all(case.pattern)


def _matches_all(pattern: ast.pattern) -> bool:
    if isinstance(pattern, ast.MatchOr):
        return any(map(_matches_all, pattern.patterns))
    return isinstance(pattern, ast.MatchAs) and (pattern.pattern is None or _matches_all(pattern.pattern))


class _Flow:
    def __init__(self, names: set[str]):
        self._names = names
        self.unsure: set[str] = set()

    # --- Statements: what is known after them ---

    def block(self, stmts: list[ast.stmt], known: _Known, exits: _Exits) -> _Known:
        for s in stmts:
            if known is None:  # nothing leads here
                return None
            known = self._statement(s, known, exits)
        return known

    def _statement(self, s: ast.stmt, known: frozenset[str], exits: _Exits) -> _Known:
        if isinstance(s, ast.If):
            known = self._read(s.test, known)
            return _either(self.block(s.body, known, exits), self.block(s.orelse, known, exits))
        if isinstance(s, ast.While):
            known = self._read(s.test, known)
            inside = _Exits()
            self.block(s.body, known, inside)
            endless = isinstance(s.test, ast.Constant) and s.test.value
            return _either(*inside.breaks, self.block(s.orelse, None if endless else known, exits))
        if isinstance(s, (ast.For, ast.AsyncFor)):
            known = self._read(s.iter, known)
            inside = _Exits()
            self.block(s.body, self._assign(s.target, known), inside)
            return _either(*inside.breaks, self.block(s.orelse, known, exits))
        if isinstance(s, (ast.With, ast.AsyncWith)):
            for item in s.items:
                known = self._read(item.context_expr, known)
                if item.optional_vars is not None:
                    known = self._assign(item.optional_vars, known)
            return self.block(s.body, known, exits)
        if isinstance(s, (ast.Try, ast.TryStar)):
            end = self.block(s.body, known, exits)
            end = self.block(s.orelse, end, exits)
            handled = [self.block(h.body, self._read(h.type, known), exits) for h in s.handlers]
            after = self.block(s.finalbody, known, exits)  # may begin anywhere in the body
            end = _either(end, *handled)
            return None if end is None or after is None else end | after
        if isinstance(s, ast.Match):
            known = self._read(s.subject, known)
            ends: list[_Known] = [known]
            for case in s.cases:
                bound = {n.name for n in ast.walk(case.pattern) if isinstance(n, (ast.MatchAs, ast.MatchStar))}
                bound |= {n.rest for n in ast.walk(case.pattern) if isinstance(n, ast.MatchMapping)}
                inside_case = known | {n for n in bound if n is not None}
                if case.guard is not None:
                    inside_case = self._read(case.guard, inside_case)
                ends.append(self.block(case.body, inside_case, exits))
                if takes_all(case):
                    del ends[0]
                    break
            return _either(*ends)
        if isinstance(s, (ast.Return, ast.Raise)):
            for value in ast.iter_child_nodes(s):
                known = self._read(value, known)
            return None
        if isinstance(s, ast.Break):
            exits.breaks.append(known)
            return None
        if isinstance(s, ast.Continue):
            return None
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return self._read(s, known) | {s.name}
        if isinstance(s, (ast.Import, ast.ImportFrom)):
            return known | {a.asname or a.name.split(".")[0] for a in s.names}
        if isinstance(s, ast.Assign):
            known = self._read(s.value, known)
            for target in s.targets:
                known = self._assign(target, known)
            return known
        if isinstance(s, ast.AugAssign):
            if isinstance(s.target, ast.Name):
                self._load(s.target.id, known)
            return self._assign(s.target, self._read(s.value, known))
        for value in ast.iter_child_nodes(s):
            known = self._read(value, known)
        return known

    # --- Expressions ---

    def _load(self, name: str, known: frozenset[str]) -> None:
        if name in self._names and name not in known:
            self.unsure.add(name)

    def _assign(self, target: ast.expr, known: frozenset[str]) -> frozenset[str]:
        if isinstance(target, ast.Name):
            return known | {target.id}
        if isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                known = self._assign(part, known)
            return known
        if isinstance(target, ast.Starred):
            return self._assign(target.value, known)
        return self._read(target, known)

    def _read(self, node: ast.AST | None, known: frozenset[str]) -> frozenset[str]:
        """What is known after an expression, which reads in the order of its parts."""
        if node is None:
            return known
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                self._load(node.id, known)
            return known
        if isinstance(node, ast.NamedExpr):
            return self._read(node.value, known) | {node.target.id}
        if isinstance(node, ast.BoolOp):
            after = inside = self._read(node.values[0], known)
            for value in node.values[1:]:
                inside = self._read(value, inside)
            return after
        if isinstance(node, ast.IfExp):
            known = self._read(node.test, known)
            return self._read(node.body, known) & self._read(node.orelse, known)
        if isinstance(node, (*SCOPES, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            # Reads of inner scopes count as made here: a function that is called later finds no less.
            own = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
            own |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
            for n in ast.walk(node):
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id not in own:
                    self._load(n.id, known)
                if isinstance(n, ast.Nonlocal):
                    self.unsure |= set(n.names)
            return known
        for child in ast.iter_child_nodes(node):
            known = self._read(child, known)
        return known
