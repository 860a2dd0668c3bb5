"""What an exception of a loop, of its branches, or of arguments that do not fit others knows of the structures and
types that it speaks of: others may say it in their words."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import _weft
from . import tree as _tree
from .errors import type_error, value_error
from .tracing import LEAF_TREE


def knowing(error: Exception, **facts: Any) -> Exception:
    """The exception with what it knows."""
    error.facts = facts  # type: ignore[attr-defined]
    return error


def _kinds(traced: Any) -> list[tuple]:
    return [spec[:2] for spec in _weft.result_specs(traced)]


def trees_differ(kind: str, message: str, expected: Any, given: Any) -> Exception:
    """What to raise where a function is given another structure than it expects; `kind` says which function it is."""
    return knowing(type_error(message), kind=kind, trees=(expected, given))


def tangents_differ(what: str, expected: Any, given: Any) -> Exception:
    """... where tangents are not as the arguments; each of the trees is that of (args, kwargs)."""
    tangents, primals = _tree.arguments_in_words(given), _tree.arguments_in_words(expected)
    message = f"{what}: tangents are {tangents}, primals {primals}"
    return trees_differ(what, message, expected.children()[0], given.children()[0])


def no_prefix(message: str, what: str, prefix: Any, tree: Any) -> Exception:
    """What to raise where an argument is no prefix of a tree; `what` names the function and the argument."""
    error = value_error(message)
    return knowing(error, kind="prefix", what=what, prefix=prefix, tree=tree, is_leaf=lambda x: x is None)


def carry_differs(what: str, function: Callable[..., Any], name: str, before: Any, after: Any) -> Exception:
    """What to raise where a step of a loop returns another structure than it was given."""
    error = type_error(f"{what}: the carry is {_tree.in_words(before)}, '{name}' returns {_tree.in_words(after)}")
    return knowing(
        error, kind="carry", what=what, function=function, at=int(what == "fori_loop"), trees=(before, after)
    )


def of_result(error: Exception, kind: str, tree: Any, traced: Any) -> Exception:
    """The exception, which knows what a function returns."""
    return knowing(error, kind=kind, tree=tree, kinds=_kinds(traced))


@contextlib.contextmanager
def knowing_carry(what: str, function: Callable[..., Any], tree: Any, carry: list, traced: Any) -> Iterator[None]:
    """Has a TypeError within know the types of what is carried, before a step and after it."""
    try:
        yield
    except TypeError as error:
        kinds = [_weft.abstract(leaf)[:2] for leaf in carry], _kinds(traced)
        at = int(what == "fori_loop")
        raise knowing(error, kind="carry", what=what, function=function, at=at, trees=(tree,), kinds=kinds) from None


@contextlib.contextmanager
def knowing_branches(what: str, trees: Sequence[Any], branches: Sequence[Any]) -> Iterator[None]:
    """Has a TypeError within know the types of what each branch returns."""
    try:
        yield
    except TypeError as error:
        kinds = [_kinds(branch) for branch in branches]
        raise knowing(error, kind="branches", what=what, trees=trees, kinds=kinds) from None


@contextlib.contextmanager
def knowing_condition(condition: Any) -> Iterator[None]:
    """Has a TypeError within know the type of what a condition returns."""
    try:
        yield
    except TypeError as error:
        kinds = _kinds(condition)
        if len(kinds) == 1 and (kinds[0][0] or str(kinds[0][1]) != "bool"):
            raise of_result(error, "condition", LEAF_TREE, condition) from None
        raise
