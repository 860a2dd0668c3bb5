"""jax.extend.linear_util: functions that are wrapped to be transformed step by step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = [
    "Store",
    "WrappedFun",
    "merge_linear_aux",
    "transformation",
    "transformation2",
    "transformation_with_aux",
    "transformation_with_aux2",
    "wrap_init",
]


class WrappedFun:
    """A function with parameters that are fixed."""

    def __init__(self, f: Callable[..., Any], params: dict[str, Any]):
        self.f, self.params = f, params
        while isinstance(f, functools.partial) and not hasattr(f, "__name__"):
            f = f.func
        self.__name__ = getattr(f, "__name__", "<unnamed wrapped function>")

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Calls it."""
        return self.f(*args, **self.params, **kwargs)


def wrap_init(f: Callable[..., Any], params: dict[str, Any] | None = None, **_: Any) -> WrappedFun:
    """The function, wrapped."""
    return WrappedFun(f, params or {})


def called(f: Any) -> Callable[..., Any]:
    """What calls a function, wrapped or not."""
    return f.call_wrapped if isinstance(f, WrappedFun) else f


def transformation(generator: Callable[..., Any], fun: WrappedFun | None = None, *static: Any) -> Any:
    """A generator that yields (args, kwargs), is sent the function's result and yields its own, as a function of
    functions that are wrapped."""

    def apply(f: WrappedFun, *given: Any) -> WrappedFun:
        def run(*args: Any, **kwargs: Any) -> Any:
            steps = generator(*given, *args, **kwargs)
            inner_args, inner_kwargs = next(steps)
            return steps.send(f.call_wrapped(*inner_args, **inner_kwargs))

        return WrappedFun(run, {})

    return apply if fun is None else apply(fun, *static)


def transformation_with_aux(generator: Callable[..., Any], fun: WrappedFun | None = None, *static: Any) -> Any:
    """transformation of a generator that yields (result, aux); gives the wrapped function, and what gives aux once it
    has run."""

    def apply(f: WrappedFun, *given: Any) -> tuple[WrappedFun, Callable[[], Any]]:
        aux: list[Any] = []

        def run(*args: Any, **kwargs: Any) -> Any:
            steps = generator(*given, *args, **kwargs)
            inner_args, inner_kwargs = next(steps)
            result, more = steps.send(f.call_wrapped(*inner_args, **inner_kwargs))
            aux[:] = [more]
            return result

        return WrappedFun(run, {}), lambda: aux[0]

    return apply if fun is None else apply(fun, *static)


class Store:
    """A place for what a transformation gives besides a result."""

    def __init__(self) -> None:
        self._held: list[Any] = []

    def store(self, value: Any) -> None:
        """Puts it there."""
        self._held[:] = [value]

    @property
    def val(self) -> Any:
        """What is there."""
        return self._held[0]


def transformation2(step: Callable[..., Any], fun: WrappedFun | None = None, *static: Any) -> Any:
    """A function that takes the function to call before the arguments, as a function of functions that are wrapped."""

    def apply(f: WrappedFun, *given: Any) -> WrappedFun:
        return WrappedFun(functools.partial(step, f.call_wrapped, *given), {})

    return apply if fun is None else apply(fun, *static)


def transformation_with_aux2(step: Callable[..., Any], fun: WrappedFun | None = None, *static: Any) -> Any:
    """... which takes a place for what it gives besides, too; gives the wrapped function, and what gives that."""

    def apply(f: WrappedFun, *given: Any) -> tuple[WrappedFun, Callable[[], Any]]:
        place = Store()
        return WrappedFun(functools.partial(step, f.call_wrapped, place, *given), {}), lambda: place.val

    return apply if fun is None else apply(fun, *static)


def merge_linear_aux(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[bool, Any]:
    """(True, what the first gives), or (False, what the second gives) where the first has not run."""
    try:
        return True, first()
    except IndexError:
        return False, second()
