"""jax._src.util: functions of lists and of functions."""

from __future__ import annotations

import functools
import itertools
import math
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .._core.errors import value_error
from .api_util import safe_map, safe_zip

prod = math.prod
NumpyComplexWarning = np.exceptions.ComplexWarning


def tuple_insert(values: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    """The tuple with a value before the place `index`."""
    if not 0 <= index <= len(values):
        raise value_error(f"tuple_insert: index {index} is not between 0 and {len(values)}")
    return (*values[:index], value, *values[index:])


def tuple_delete(values: tuple[Any, ...], index: int) -> tuple[Any, ...]:
    """The tuple without what is at `index`."""
    if not 0 <= index < len(values):
        raise value_error(f"tuple_delete: index {index} is not between 0 and {len(values) - 1}")
    return (*values[:index], *values[index + 1 :])


def tuple_update(values: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    """The tuple with another value at `index`."""
    if not 0 <= index < len(values):
        raise value_error(f"tuple_update: index {index} is not between 0 and {len(values) - 1}")
    return (*values[:index], value, *values[index + 1 :])


def subvals(values: Iterable[Any], replaced: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """The values with some replaced by position."""
    found = list(values)
    for i, value in replaced:
        found[i] = value
    return tuple(found)


def unzip3(triples: Iterable[tuple[Any, Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """Triples taken apart."""
    found = list(triples)
    return tuple(t[0] for t in found), tuple(t[1] for t in found), tuple(t[2] for t in found)


def remaining(original: Iterable[Any], *removed: Iterable[Any]) -> list[Any]:
    """The elements that none of the others has."""
    gone = {x for values in removed for x in values}
    return [x for x in original if x not in gone]


def concatenate(lists: Iterable[Sequence[Any]]) -> list[Any]:
    """The lists after each other."""
    return list(itertools.chain.from_iterable(lists))


def foreach(f: Callable[..., Any], *args: Iterable[Any]) -> None:
    """safe_map, for what the function does."""
    safe_map(f, *args)


def curry(f: Callable[..., Any]) -> Callable[..., Any]:
    """curry(f)(a)(b) is f(a, b)."""
    return functools.wraps(f)(lambda *args, **kwargs: functools.partial(f, *args, **kwargs))


def toposort(end_nodes: Sequence[Any]) -> list[Any]:
    """Nodes with `parents`, each after its parents."""
    found: dict[int, Any] = {}

    def visit(node: Any) -> None:
        if id(node) not in found:
            for parent in node.parents:
                visit(parent)
            found[id(node)] = node

    for node in end_nodes:
        visit(node)
    return list(found.values())


def wrap_name(transform_name: str, name: str) -> str:
    """The name of a transformed function: jit(f)."""
    return f"{transform_name}({name})"


def wraps(wrapped: Any, namestr: str | None = None, docstr: str | None = None, **kwargs: Any) -> Callable[..., Any]:
    """functools.wraps, with another name and text: namestr may say {fun}, docstr {fun}, {doc} and what kwargs names."""

    def wrapper(f: Any) -> Any:
        name, doc = getattr(wrapped, "__name__", "<unnamed function>"), getattr(wrapped, "__doc__", None) or ""
        f = functools.wraps(wrapped)(f)
        f.__name__ = name if namestr is None else namestr.format(fun=name)
        f.__doc__ = doc if docstr is None else docstr.format(fun=name, doc=doc, **kwargs)
        return f

    return wrapper


def use_cpp_class(_: Any) -> Callable[[Any], Any]:
    """A decorator that leaves a class as it is: JAX puts one of C++ in its place."""
    return lambda cls: cls


def use_cpp_method(*_: Any) -> Callable[[Any], Any]:
    """A decorator that leaves a method as it is."""
    return lambda method: method


def cache(max_size: int | None = 4096, **_: Any) -> Callable[[Any], Any]:
    """A decorator: results are kept."""
    return functools.lru_cache(maxsize=max_size)


def weakref_lru_cache(f: Callable[..., Any], maxsize: int | None = 2048, **_: Any) -> Callable[..., Any]:
    """Results are kept as long as the first argument lives."""
    kept: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()

    @functools.wraps(f)
    def cached(first: Any, *args: Any, **kwargs: Any) -> Any:
        results = kept.setdefault(first, {})
        key = args, tuple(sorted(kwargs.items()))
        if key not in results:
            results[key] = f(first, *args, **kwargs)
        return results[key]

    cached.cache_clear = kept.clear  # type: ignore[attr-defined]
    return cached


class HashableFunction:
    """A function that equals another one of the same code and the same `closure`."""

    def __init__(self, f: Callable[..., Any], closure: Any):
        self.f, self.closure = f, closure

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashableFunction) and (self.f.__code__, self.closure) == (
            other.f.__code__,
            other.closure,
        )

    def __hash__(self) -> int:
        return hash((self.f.__code__, self.closure))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*args, **kwargs)


class HashablePartial:
    """A function with its first arguments, that equals another one of the same code with equal ones."""

    def __init__(self, f: Callable[..., Any], *args: Any, **kwargs: Any):
        self.f, self.args, self.kwargs = f, args, kwargs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashablePartial) and (self.f.__code__, self.args, self.kwargs) == (
            other.f.__code__,
            other.args,
            other.kwargs,
        )

    def __hash__(self) -> int:
        return hash((self.f.__code__, self.args, tuple(sorted(self.kwargs.items(), key=lambda item: item[0]))))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*self.args, *args, **self.kwargs, **kwargs)


def ceil_of_ratio(x: int, y: int) -> int:
    """The ratio, rounded up."""
    return -(-x // y)


def canonicalize_axis(axis: int, num_dims: int) -> int:
    """An axis counted from the front."""
    if not -num_dims <= axis < num_dims:
        raise value_error(f"axis {axis} is out of bounds for array of dimension {num_dims}")
    return axis % num_dims


__all__ = ["prod", "safe_map", "safe_zip", "tuple_delete", "tuple_insert", "tuple_update"]
