"""Expressions of a function that is converted: calls, and what decides in the middle of an expression."""

from __future__ import annotations

import ast

from .analysis import expression_reason, parameters
from .jumps import locate
from .nodes import is_name, load, plain_arguments

_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


def may_choose(node: ast.AST) -> bool:
    """Whether evaluating an expression may be what chooses between containers."""
    return any(isinstance(n, (ast.Call, ast.IfExp, ast.BoolOp)) for n in ast.walk(node))


# From how many tests on an `if` is made flat, which costs that all tests are evaluated.
MANY_TESTS = 16


def _balanced(op: ast.boolop, values: list[ast.expr]) -> ast.expr:
    """`a or b or c ...` of many, with as much on the one side as on the other: what decides is the same."""
    if len(values) <= 2:
        return values[0] if len(values) == 1 else locate(ast.BoolOp(op, values), values[0])
    half = len(values) // 2
    return locate(ast.BoolOp(op, [_balanced(op, values[:half]), _balanced(op, values[half:])]), values[0])


class Expressions(ast.NodeTransformer):
    """Expressions of one function: calls, and what decides in the middle of an expression."""

    def __init__(self, ag: str, unsure: set[ast.AST], function: ast.FunctionDef):
        """`ag`: what converted code calls weft.autograph.operators; `unsure`: the variables that may have no value."""
        self._ag, self._unsure = ag, unsure
        named = parameters(function)
        self._first = named[0] if named else None

    def operator(self, name: str, args: list[ast.expr]) -> ast.Call:
        return ast.Call(ast.Attribute(load(self._ag), name, ast.Load()), args, [])

    def python_only(self, value: ast.expr, reason: str) -> ast.expr:
        return locate(self.operator("python_only", [value, ast.Constant(reason)]), value)

    def _thunk(self, value: ast.expr) -> ast.expr:
        return locate(ast.Lambda(plain_arguments([]), value), value)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load) and node in self._unsure:
            return locate(self.operator("read", [node]), node)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        if len(node.values) >= MANY_TESTS:
            flat = node
            node = locate(_balanced(flat.op, flat.values), flat)
            if hasattr(flat, "only_truth"):
                for part in ast.walk(node):
                    if isinstance(part, ast.BoolOp) and part not in flat.values:
                        part.only_truth = True  # type: ignore[attr-defined]
        reason = expression_reason(*node.values[1:])
        values = [self.visit(v) for v in node.values]
        is_and = isinstance(node.op, ast.And)
        word = "and" if is_and else "or"
        if reason is not None:
            guarded = [self.python_only(v, f"this `{word}` cannot be converted: {reason}") for v in values[:-1]]
            return locate(ast.BoolOp(node.op, [*guarded, values[-1]]), node)
        if hasattr(node, "only_truth"):
            return locate(self.operator("both" if is_and else "either", [self._thunk(v) for v in values]), node)
        call = self.operator(word + "_", [values[0], *(self._thunk(v) for v in values[1:])])
        return locate(call, node)

    def condition(self, node: ast.expr) -> ast.expr:
        """An expression of which only the truth is asked for."""
        self._only_truth(node)
        return self.visit(node)

    def _only_truth(self, node: ast.expr) -> None:
        # Where all operands are comparisons, `and` and `or` give truths anyway.
        if isinstance(node, ast.BoolOp):
            if not all(isinstance(v, (ast.Compare, ast.BoolOp)) for v in node.values):
                node.only_truth = True  # type: ignore[attr-defined]
            for value in node.values:
                self._only_truth(value)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.Not):
            self._only_truth(node.operand)
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return locate(self.operator("not_", [node.operand]), node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) == 1:
            self.generic_visit(node)
            if isinstance(node.ops[0], (ast.In, ast.NotIn)):
                name = "contains" if isinstance(node.ops[0], ast.In) else "not_contains"
                return locate(self.operator(name, [node.left, *node.comparators]), node)
            if isinstance(node.ops[0], (ast.Is, ast.IsNot)):
                name = "is_" if isinstance(node.ops[0], ast.Is) else "is_not"
                written = [v.value for v in (node.left, *node.comparators) if isinstance(v, ast.Constant)]
                if any(type(v) in (int, float, complex) for v in written):
                    name = {"is_": "is_number", "is_not": "is_not_number"}[name]
                elif not all(isinstance(v, bool) for v in written):
                    return node  # None, a text: no traced value is one
                return locate(self.operator(name, [node.left, *node.comparators]), node)
            return node
        reason = expression_reason(*node.comparators[1:])
        self.generic_visit(node)
        if reason is not None:
            return node
        pairs: list[ast.expr] = [
            ast.Tuple([ast.Constant(_OPERATORS[type(op)]), self._thunk(value)], ast.Load())
            for op, value in zip(node.ops, node.comparators)
        ]
        return locate(self.operator("compare", [node.left, *(locate(p, node) for p in pairs)]), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        reason = expression_reason(node.body, node.orelse)
        self._only_truth(node.test)
        self.generic_visit(node)
        if reason is not None:
            node.test = self.python_only(node.test, f"this conditional expression cannot be converted: {reason}")
            return node
        call = self.operator("if_expression", [node.test, self._thunk(node.body), self._thunk(node.orelse)])
        return locate(call, node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        self.generic_visit(node)
        node.ifs = [
            self.python_only(test, "the length of a comprehension cannot depend on a traced value") for test in node.ifs
        ]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        node.body = self.visit(node.body)
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [self.visit(d) if d is not None else None for d in node.args.kw_defaults]
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        self.generic_visit(node)
        if not any(isinstance(value, ast.FormattedValue) for value in node.values):
            return node
        parts: list[ast.expr] = []
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                spec = value.format_spec if value.format_spec is not None else ast.Constant("")
                parts.append(ast.Tuple([value.value, ast.Constant(value.conversion), spec], ast.Load()))
            else:
                parts.append(value)
        return locate(self.operator("text", [locate(p, node) for p in parts]), node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        of_text = isinstance(node.left, ast.JoinedStr) or (
            isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        )
        negated = isinstance(node.right, ast.UnaryOp) and not isinstance(node.right.operand, ast.Constant)
        self.generic_visit(node)
        if isinstance(node.op, ast.Mod) and of_text:
            return locate(self.operator("percent", [node.left, node.right]), node)
        if isinstance(node.op, ast.Pow) and negated:
            return locate(self.operator("to_negated_power", [node.left, node.right]), node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        function = node.func
        if isinstance(function, ast.Attribute) and is_name(function.value, self._ag):
            return node  # made by jumps.py
        if isinstance(function, ast.Name) and function.id == "super" and not node.args and self._first is not None:
            # The form without arguments looks at its own frame.
            node.args = [load("__class__"), load(self._first)]
            return locate(node, node)
        may_link = [ast.Constant(True)] if any(map(may_choose, [*node.args, *node.keywords])) else []
        self.generic_visit(node)
        node.func = locate(self.operator("callee", [node.func, *may_link]), function)
        return node
