"""Patterns of operations as text, for weft.rewrite:

    log(add(1, exp(x)))      an operation on operations, numbers and names
    tanh                     an operation alone, whatever its operands

A name stands for any value, the same name for the same value; a number for an array all of whose elements it is.
Operands of operations that commute (add, mul) match in either order.
"""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from .. import _weft
from .errors import value_error
from .ir_view import USER_PRIMITIVES


class Pattern(NamedTuple):
    """`tree` as the native module takes it: an index of a name, a float, or (operation, patterns or None, the name of a
    weft.Primitive or nothing)."""

    tree: Any
    names: tuple[str, ...]


def parse(text: str) -> Pattern:
    """The pattern that a text describes."""
    try:
        body = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise value_error(_wrong(text, f"it is no expression: {error.msg}")) from None
    if isinstance(body, ast.Name):
        return Pattern(_operation(text, body.id, None), ())
    names: list[str] = []
    tree = _tree(text, body, names)
    if not isinstance(tree, tuple):
        raise value_error(_wrong(text, "it names no operation"))
    return Pattern(tree, tuple(names))


def _tree(text: str, node: ast.expr, names: list[str]) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _operation(text, node.func.id, [_tree(text, arg, names) for arg in node.args])
    if isinstance(node, ast.Name):
        if node.id not in names:
            names.append(node.id)
        return names.index(node.id)
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    number = node.operand if negative else node  # type: ignore[attr-defined]
    if isinstance(number, ast.Constant) and type(number.value) is not bool and isinstance(number.value, (int, float)):
        return -float(number.value) if negative else float(number.value)
    raise value_error(_wrong(text, f"'{ast.unparse(node)}' is no operation on patterns, no name and no number"))


def _operation(text: str, name: str, operands: list | None) -> tuple[str, list | None, str]:
    if name in USER_PRIMITIVES:
        return "primitive", operands, name
    name = name.removesuffix("_") if not _weft.has_primitive(name) else name
    if not _weft.has_primitive(name):
        raise value_error(_wrong(text, f"there is no operation '{name}'; docs/operations.md has them all"))
    return name, operands, ""


def _wrong(text: str, why: str) -> str:
    return f"rewrite: the pattern {text!r} is none: {why}. A pattern looks like 'log(add(1, exp(x)))'"
