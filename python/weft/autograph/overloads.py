"""Python's own functions, for traced arguments. With others they are what they always were."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

from .. import _weft
from .branches import and_, not_, or_, truth
from .loops import Reversed, Steps, TracedRange, Zip, _StaticRange, steps_of
from .regions import traced
from .texts import print_

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
        return Zip([_StaticRange(builtins.range(start, start + part.length)), part])
    return builtins.enumerate(iterable, start)


def reversed_(iterable: Any) -> Any:
    part = steps_of(iterable)
    if _has_steps((iterable,)) and part is not None:
        return Reversed(part)
    return builtins.reversed(iterable)


def _number(value: Any, dtype: str, kinds: str) -> Any:
    """A traced number in another dtype, unless it is of such a kind already."""
    return value if value.dtype.kind in kinds else _weft.astype(value, dtype)


def int_(*args: Any) -> Any:
    return _number(args[0], "int32", "iu") if len(args) == 1 and traced(args[0]) else builtins.int(*args)


def float_(*args: Any) -> Any:
    return _number(args[0], "float32", "f") if len(args) == 1 and traced(args[0]) else builtins.float(*args)


def bool_(*args: Any) -> Any:
    return truth(args[0]) if len(args) == 1 and traced(args[0]) else builtins.bool(*args)


def _extreme(function: Callable, better: Callable[[Any, Any], Any]) -> Callable:
    @functools.wraps(function)
    def extreme(*args: Any, key: Any = None, default: Any = _MISSING) -> Any:
        values = args[0] if len(args) == 1 else args
        if len(args) == 1 and traced(values):
            values = list(values)
        if key is None and isinstance(values, (list, tuple)) and any(map(traced, values)):
            from .. import numpy as wnp

            best = values[0]
            for value in values[1:]:
                best = wnp.where(better(value, best), value, best)
            return best
        keywords = {} if default is _MISSING else {"default": default}
        return function(*((values,) if len(args) == 1 else args), key=key, **keywords)

    return extreme


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
    builtins.zip: zip_,
    builtins.enumerate: enumerate_,
    builtins.reversed: reversed_,
    builtins.int: int_,
    builtins.float: float_,
    builtins.bool: bool_,
    builtins.max: max_,
    builtins.min: min_,
    builtins.any: any_,
    builtins.all: all_,
}

__all__ = ["OVERLOADS", "not_"]
