"""Patterns of operations as text, for weft.rewrite:

    log(add(1, exp(x)))      an operation on operations, numbers and names
    tanh                     an operation alone, whatever its operands

A name stands for any value, the same name for the same value; a number for an array all of whose elements it is.
Operands of operations that commute (add, mul) match in either order.
"""

from __future__ import annotations

import ast
import keyword
import re
from typing import Any, NamedTuple

from .. import _weft
from .errors import value_error
from .ir_view import USER_PRIMITIVES

# Operations that are words of Python's: `and(x, y)` is no expression, and `and_(x, y)` is one.
_WORDS_OF_PYTHON = re.compile(
    rf"\b({'|'.join(p['name'] for p in _weft.primitives() if keyword.iskeyword(p['name']))})(?=\s*\(|\s*$)"
)


class Pattern(NamedTuple):
    """`tree` as the native module takes it: an index of a name, a float, or (operation, patterns or None, the name of a
    weft.Primitive or nothing)."""

    tree: Any
    names: tuple[str, ...]

    @property
    def is_operation(self) -> bool:
        """Whether it is an operation alone, whatever its operands."""
        return self.tree[1] is None


def parse(text: str) -> Pattern:
    """The pattern that a text describes."""
    try:
        body = ast.parse(_WORDS_OF_PYTHON.sub(r"\1_", text.strip()), mode="eval").body
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
    takes = _arity(name)
    if operands is not None and takes is not None and len(operands) != takes:
        raise value_error(
            _wrong(text, f"'{name}' takes {takes} operand{'' if takes == 1 else 's'}, not {len(operands)}")
        )
    return name, operands, ""


def num_operands(pattern: Pattern) -> int | None:
    """How many operands the outermost operation takes; None where that differs, and of a weft.Primitive."""
    return _arity(pattern.tree[0])


def _arity(name: str) -> int | None:
    declared = next((p["num_operands"] for p in _weft.primitives() if p["name"] == name), -1)
    return None if declared < 0 else declared


def _wrong(text: str, why: str) -> str:
    return f"rewrite: the pattern {text!r} is none: {why}. A pattern looks like 'log(add(1, exp(x)))'"
