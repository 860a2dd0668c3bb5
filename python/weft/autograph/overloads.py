"""Python's own functions, for traced arguments. With others they are what they always were."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

from .. import _weft
from .. import numpy as wnp
from .._core import tree as _tree
from . import joining, operators
from .branches import and_, or_
from .errors import ConversionError, StructureError, user_place
from .memory import is_known_iterator
from .regions import traced, truth
from .steps import Reversed, StaticRange, Steps, TracedRange, Zip, is_index, steps_of
from .texts import Text, format_text, join, print_, repr_, str_, unknown

_MISSING = object()


def range_(*bounds: Any) -> Any:
    return TracedRange(*bounds) if any(map(traced, bounds)) else builtins.range(*bounds)


def _has_steps(values: tuple) -> bool:
    return any(isinstance(v, (Steps, _weft.Array, _weft.Tracer)) for v in values)


def zip_(*iterables: Any, strict: bool = False) -> Any:
    parts = [steps_of(x) for x in iterables]
    if _has_steps(iterables) and all(p is not None for p in parts) and not strict:
        return Zip([p for p in parts if p is not None])
    return builtins.zip(*iterables, strict=strict)


def enumerate_(iterable: Any, start: int = 0) -> Any:
    part = steps_of(iterable)
    if _has_steps((iterable,)) and part is not None and not traced(part.length) and isinstance(part.length, int):
        return Zip([StaticRange(builtins.range(start, start + part.length)), part])
    return builtins.enumerate(iterable, start)


def reversed_(iterable: Any) -> Any:
    part = steps_of(iterable)
    if _has_steps((iterable,)) and part is not None:
        return Reversed(part)
    return builtins.reversed(iterable)


def _number(value: Any, dtype: type, kinds: tuple[str, ...]) -> Any:
    """A traced number in the dtype that Python's numbers of a type have, unless it is of such a kind already."""
    return value if _weft.dtype_kind(value.dtype) in kinds else _weft.astype(value, dtype)


def _characters(args: tuple, what: str) -> tuple:
    """The arguments of a function that reads texts."""
    for arg in args:
        if isinstance(arg, Text):
            unknown(arg, what)
    return args


def int_(*args: Any) -> Any:
    return (
        _number(args[0], int, ("signed", "unsigned"))
        if len(args) == 1 and traced(args[0])
        else builtins.int(*_characters(args, "int"))
    )


def float_(*args: Any) -> Any:
    return (
        _number(args[0], float, ("float",))
        if len(args) == 1 and traced(args[0])
        else builtins.float(*_characters(args, "float"))
    )


def bool_(*args: Any) -> Any:
    return truth(args[0]) if len(args) == 1 and traced(args[0]) else builtins.bool(*args)


def isinstance_(value: Any, kinds: Any) -> bool:
    return builtins.isinstance(0 if is_index(value) else value, kinds)


def type_(*args: Any, **kwargs: Any) -> Any:
    return builtins.int if len(args) == 1 and is_index(args[0]) else builtins.type(*args, **kwargs)


def _extreme(function: Callable, better: Callable[[Any, Any], Any]) -> Callable:
    @functools.wraps(function)
    def extreme(*args: Any, key: Any = None, default: Any = _MISSING) -> Any:
        values = list(args[0]) if len(args) == 1 else list(args)
        keys = values if key is None else list(map(operators.callee(key), values))
        if not any(map(traced, keys)):
            keywords = {} if default is _MISSING or len(args) != 1 else {"default": -1}
            at = function(builtins.range(len(values)), key=keys.__getitem__, **keywords)
            return default if at < 0 else values[at]
        best, best_key = values[0], keys[0]
        for value, its_key in builtins.zip(values[1:], keys[1:]):
            choice = better(its_key, best_key)
            best = _select(choice, value, best, function.__name__)
            best_key = best if key is None else _select(choice, its_key, best_key, function.__name__)
        return best

    return extreme


def _select(choice: Any, value: Any, other: Any, what: str) -> Any:
    """value if choice else other, of arrays and trees of them."""
    first, tree = _tree.flatten(value)
    second, other_tree = _tree.flatten(other)
    if tree != other_tree or not all(map(_weft.is_operand, first + second)):
        raise ConversionError(
            f"autograph: {user_place()}: {what}() chooses between {value!r} and {other!r} by traced values; it can "
            "choose only between arrays and numbers of one structure"
        )
    new = _tree.unflatten(tree, [wnp.where(choice, a, b) for a, b in builtins.zip(first, second)])
    return joining.chosen(choice, new, other, value)


def sorted_(iterable: Any, *, key: Any = None, reverse: bool = False) -> list:
    values = list(iterable)
    keys = values if key is None else list(map(operators.callee(key), values))
    if not any(map(traced, keys)):
        known = builtins.sorted(builtins.range(len(values)), key=keys.__getitem__, reverse=reverse)
        return [values[i] for i in known]
    leaves, trees = builtins.zip(*map(_tree.flatten, values))
    if any(t != trees[0] for t in trees) or not all(_weft.is_operand(leaf) for row in leaves for leaf in row):
        raise ConversionError(
            f"autograph: {user_place()}: sorted() by traced values moves only arrays and numbers, all of one structure"
        )
    step = -1 if reverse else 1  # what is equal keeps its order, from either end
    order = wnp.argsort(wnp.stack(keys[::step]), stable=True)[::step]
    columns = [wnp.stack(column[::step])[order] for column in builtins.zip(*leaves)]
    found = [_tree.unflatten(trees[0], [column[i] for column in columns]) for i in builtins.range(len(values))]
    for value in found:
        joining.may_be(value, values)
    return found


def sort_list(values: list, *, key: Any = None, reverse: bool = False) -> None:
    """values.sort()"""
    values[:] = sorted_(values, key=key, reverse=reverse)


def next_(iterator: Any, *default: Any) -> Any:
    if is_known_iterator(iterator):
        raise StructureError(
            f"autograph: {user_place()}: next() inside traced control flow takes an item of an iterator from outside; "
            "how far it has gone cannot depend on a traced value"
        )
    return builtins.next(iterator, *default)


def any_(iterable: Any) -> Any:
    result: Any = False
    for item in iterable:
        result = or_(result, functools.partial(truth, item)) if traced(result) else truth(item)
        if result is True:
            return True
    return result


def all_(iterable: Any) -> Any:
    result: Any = True
    for item in iterable:
        result = and_(result, functools.partial(truth, item)) if traced(result) else truth(item)
        if result is False:
            return False
    return result


max_ = _extreme(builtins.max, lambda a, b: a > b)
min_ = _extreme(builtins.min, lambda a, b: a < b)

OVERLOADS: dict[Any, Callable] = {
    builtins.print: print_,
    builtins.range: range_,
    builtins.repr: repr_,
    builtins.str: str_,
    builtins.zip: zip_,
    builtins.enumerate: enumerate_,
    builtins.reversed: reversed_,
    builtins.int: int_,
    builtins.isinstance: isinstance_,
    builtins.type: type_,
    builtins.float: float_,
    builtins.bool: bool_,
    builtins.max: max_,
    builtins.min: min_,
    builtins.sorted: sorted_,
    builtins.next: next_,
    builtins.any: any_,
    builtins.all: all_,
}

# Methods of Python's own objects.
METHODS: dict[tuple[type, str], Callable] = {
    (list, "sort"): sort_list,
    (str, "format"): format_text,
    (str, "join"): join,
}

__all__ = ["METHODS", "OVERLOADS"]
