"""Functions that are made in a loop and outlive the step that made them.

    for i in range(3):
        fs.append(lambda: i)      # each of them is asked later, and says 2

In Python all steps have the same variables; in a converted function each step is a call with variables of its own. So
what such a function reads has to be a variable of what is around the loop. One that is called, or given to a function
that calls it (weft.cond), ends with its step and reads what the step has: it needs nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from .jumps import SCOPES, evaluated_with, own_nodes

_LOOPS = (ast.For, ast.While)
# Expressions whose value may be, or hold, the value of a part.
_PASSING = (
    ast.IfExp,
    ast.BoolOp,
    ast.BinOp,
    ast.Tuple,
    ast.List,
    ast.Dict,
    ast.Set,
    ast.Starred,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.NamedExpr,
    ast.keyword,
)


class _Function:
    """One function: where the functions inside it go. `keeps`: whether a method of this name keeps its arguments."""

    def __init__(self, function: ast.AST, keeps: Callable[[str], bool]):
        self._function, self._keeps = function, keeps
        self._parents: dict[ast.AST, ast.AST] = {}
        self.nodes = list(own_nodes(function))
        for parent in [function, *self.nodes]:
            inside = ast.iter_child_nodes(parent) if parent is function else evaluated_with(parent)
            self._parents |= dict.fromkeys(inside, parent)
        self._loads: dict[str, list[ast.AST]] = {}
        for n in self.nodes:
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load):
                self._loads.setdefault(n.id, []).append(n)
        for scope in (n for n in self.nodes if isinstance(n, SCOPES)):
            for n in ast.walk(scope):
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load):
                    self._loads.setdefault(n.id, []).append(scope)  # which goes where its scope does
        self._classes = {n.name for n in self.nodes if isinstance(n, ast.ClassDef)}
        self._known: dict[ast.AST, bool] = {}

    def loop_of(self, node: ast.AST) -> ast.AST | None:
        """The innermost loop around a node."""
        while node is not self._function:
            node = self._parents[node]
            if isinstance(node, _LOOPS):
                return node
        return None

    def outlives(self, node: ast.AST) -> bool:
        """Whether a value may be there after the step of the loop that made it."""
        if node not in self._known:
            self._known[node] = False  # for those that ask on the way
            self._known[node] = self._finds_outliving(node)
        return self._known[node]

    def _finds_outliving(self, node: ast.AST) -> bool:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return self._name_outlives(node.name, node)
        parent = self._parents[node]
        if isinstance(parent, ast.Call) and node is parent.func:
            is_class = isinstance(node, ast.Name) and node.id in self._classes
            return is_class and self.outlives(parent)  # whose methods read it
        if isinstance(parent, ast.Call):
            called = parent.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name == "partial":
                return self.outlives(parent)
            return isinstance(called, ast.Attribute) and self._keeps(name)
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            if not all(isinstance(t, ast.Name) for t in targets):
                return True
            if any(self._name_outlives(t.id, parent) for t in targets):  # type: ignore[attr-defined]
                return True
        if isinstance(parent, ast.Subscript):
            return node is parent.value and self.outlives(parent)
        return isinstance(parent, (ast.AugAssign, ast.Yield)) or (
            isinstance(parent, _PASSING) and self.outlives(parent)
        )

    def _name_outlives(self, name: str, made: ast.AST) -> bool:
        """Whether a variable is read in another step than the one that gives it its value, or its value goes on."""
        loop = self.loop_of(made)
        for use in self._loads.get(name, ()):
            inside = use is not loop and self._is_inside(use, loop)
            before = (use.lineno, use.col_offset) < (made.lineno, made.col_offset)  # type: ignore[attr-defined]
            if not inside or before or (use is not made and self.outlives(use)):
                return True
        return False

    def _is_inside(self, node: ast.AST, loop: ast.AST | None) -> bool:
        while node is not self._function:
            node = self._parents[node]
            if node is loop:
                return True
        return False


def read_later(function: ast.AST, keeps: Callable[[str], bool], free: Callable[[ast.AST], set[str]]) -> set[str]:
    """The names that functions which outlive their step of a loop take from around them."""
    kinds = (*SCOPES, ast.GeneratorExp)
    if not any(isinstance(n, _LOOPS) for n in own_nodes(function)):
        return set()
    found = _Function(function, keeps)
    inner = [n for n in found.nodes if isinstance(n, kinds) and found.loop_of(n) is not None]
    return {name for scope in inner if found.outlives(scope) for name in free(scope)}
