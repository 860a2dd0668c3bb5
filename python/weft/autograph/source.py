"""The syntax tree of a function, found again from its code object."""

from __future__ import annotations

import ast
import functools
import linecache
import os
import sys
import sysconfig
import types
from typing import Any

from .._core.errors import PACKAGE
from .errors import ConversionError

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


LIBRARIES = tuple(
    sorted({os.path.abspath(p) + os.sep for n, p in sysconfig.get_paths().items() if "lib" in n or n == "stdlib"})
)


def is_users(file: str) -> bool:
    """Whether a file is the user's: not of Weft, of Python or of an installed library."""
    return bool(file) and not file.startswith((PACKAGE, *LIBRARIES, "<frozen"))


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE


# By identity: a metaclass of the user's may say that classes are equal, or have no hash.
_users: dict[int, tuple[Any, bool]] = {}


def of_users_module(kind: Any) -> bool:
    """Whether a user wrote a class."""
    known = _users.get(id(kind))
    if known is None:
        if len(_users) >= 4096:
            _users.clear()
        known = _users[id(kind)] = kind, _is_users_class(kind)
    return known[1]


def _is_users_class(kind: Any) -> bool:
    name = kind.__module__
    if name in ("__main__", "builtins"):  # what exec defines is in builtins, too, but was made while Python runs
        return bool(kind.__flags__ & _HEAP_TYPE)
    return is_users(getattr(sys.modules.get(name), "__file__", None) or "")


class SourceError(ConversionError):
    """There is no source to convert."""


@functools.lru_cache(maxsize=64)
def _parse(text: str) -> ast.Module:
    return ast.parse(text)


def _first_line(node: FunctionNode) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def _holds(node: FunctionNode, code: types.CodeType) -> bool:
    """Whether everything in a code object comes from inside a node."""
    first = node.lineno, node.col_offset
    last = node.end_lineno, node.end_col_offset
    for line, end_line, column, end_column in code.co_positions():
        if None in (line, end_line, column, end_column) or (line, column, end_column) == (node.lineno, 0, 0):
            continue
        if (line, column) < first or (end_line, end_column) > last:
            return False
    return True


def find_function(function: types.FunctionType) -> tuple[FunctionNode, str | None]:
    """The node of a function and the name of the class whose body it is in, if any. The node is shared: copy it before
    changing it. Raises SourceError where there is no source."""
    code = function.__code__
    name = f"'{function.__qualname__}'"
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    if not text:
        raise SourceError(f"autograph: the source of {name} is not available (looked for {code.co_filename})")
    try:
        module = _parse(text)
    except SyntaxError as error:
        raise SourceError(f"autograph: {code.co_filename} no longer parses ({error}), needed for {name}") from None
    found: list[tuple[FunctionNode, str | None]] = []

    def walk(node: ast.AST, class_name: str | None) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if child.name == code.co_name and _first_line(child) == code.co_firstlineno:
                    found.append((child, class_name))
            elif isinstance(child, ast.Lambda) and code.co_name == "<lambda>" and child.lineno == code.co_firstlineno:
                found.append((child, class_name))
            inside = isinstance(child, ast.ClassDef)
            walk(child, child.name if isinstance(child, ast.ClassDef) else class_name if not inside else None)

    walk(module, None)
    if len(found) > 1 and code.co_name == "<lambda>":
        arguments = code.co_varnames[: code.co_argcount]
        found = [
            (n, c)
            for n, c in found
            if tuple(a.arg for a in n.args.posonlyargs + n.args.args) == arguments and _holds(n, code)
        ]
        # Of one in another the inner one.
        found = sorted(found, key=lambda pair: (pair[0].end_lineno, pair[0].end_col_offset, -pair[0].col_offset))[:1]
    if len(found) != 1:
        raise SourceError(
            f"autograph: {name} was not found at {code.co_filename}:{code.co_firstlineno}"
            + ("; the file has changed since it was imported" if not found else ", or more than one function is there")
        )
    return found[0]
