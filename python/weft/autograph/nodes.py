"""Small pieces of syntax trees."""

from __future__ import annotations

import ast


def load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def store(name: str) -> ast.Name:
    return ast.Name(name, ast.Store())


def is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def plain_arguments(names: list[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


def strings(names: list[str]) -> ast.expr:
    return ast.Tuple([ast.Constant(n) for n in names], ast.Load())
