"""Functions that take what they captured as arguments, as jax.closure_convert."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from . import _weft
from ._core import tree as _tree
from ._core.errors import type_error
from ._core.tracing import flat_function, trace_flat

__all__ = ["closure_convert"]

_R = TypeVar("_R")


def closure_convert(fun: Callable[..., _R], *example_args: Any) -> tuple[Callable[..., _R], list[Any]]:
    """A function that takes what it captured as arguments, for rules that differentiate with respect to it.

    Args:
        fun: the function.
        *example_args: arguments that it is traced with.

    Returns: pair (converted, values): the traced values that it captured, under jax_semantics and inside of a
        derivative those that it is taken of, and a function called converted(*args, *values).

    Raises:
        TypeError: when converted is called with arguments of another structure.

    Example:
        >>> def solve(x):
        ...     step, captured = weft.closure_convert(lambda y: x * y, 1.0)
        ...     return step(5.0, *captured)
        >>> weft.grad(solve)(2.0)
        Array(5., dtype=float32, weak_type=True)
    """
    return _converted(fun, example_args, not _tree.jax_semantics())


def with_captures(fun: Callable[..., _R], *example_args: Any) -> tuple[Callable[..., _R], list[Any]]:
    """closure_convert, of all that the function captured."""
    return _converted(fun, example_args, True)


def _converted(fun: Callable[..., _R], example_args: tuple, every: bool) -> tuple[Callable[..., _R], list[Any]]:
    flat = flat_function(fun, example_args, {})
    traced = trace_flat(flat, "closure_convert", known=False)
    captures = traced.captures
    moves = [_weft.is_traced(v) and _weft.carries_derivative(v) for v in captures]
    # As in JAX what is not part of the derivative around stays inside.
    taken = [True] * len(captures) if every or not any(moves) else moves
    values = [v for v, on in zip(captures, taken) if on]
    in_tree = flat.in_tree

    def converted(*args):
        count = len(args) - len(values)
        given = iter(args[count:])
        filled = [next(given) if on else v for v, on in zip(captures, taken)]
        leaves, tree = _tree.flatten((args[:count], {}))
        if tree != in_tree:
            raise type_error(
                f"closure_convert: '{flat.name}' was converted for "
                f"{_tree.arguments_in_words(in_tree)}, got {_tree.arguments_in_words(tree)}"
            )
        return _tree.unflatten(flat.out_tree, _weft.apply(traced.fn, leaves + filled, traced.weak_results))

    return converted, list(values)
