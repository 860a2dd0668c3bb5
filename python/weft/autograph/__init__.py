"""Python control flow on traced values: if, for, while and the rest become cond, scan and while_loop.

@weft.jit(autograph=True)
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps

weft.autograph(f) converts a function and what it calls; weft.autograph.to_source(f) shows what became of it.
docs/control_flow.md lists the constructs.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from .._core.errors import type_error
from .errors import ConversionError, FallbackWarning, StructureError

__all__ = ["ConversionError", "FallbackWarning", "StructureError", "autograph"]


_F = TypeVar("_F", bound=Callable[..., Any])


def _function_of(function: Any, what: str) -> tuple[types.FunctionType, Any]:
    """The Python function in a callable, and the object that it is bound to."""
    holder = None
    if isinstance(function, types.MethodType):
        holder, function = function.__self__, function.__func__
    elif not isinstance(function, types.FunctionType):
        call = inspect.getattr_static(type(function), "__call__", None)
        if isinstance(call, types.FunctionType) and not isinstance(function, type):
            holder, function = function, call
    if not isinstance(function, types.FunctionType):
        raise type_error(f"{what}: expected a function written in Python, got {function!r}")
    return function, holder


def _conversion() -> types.ModuleType:
    """What converts functions, which most programs never ask for: it is read when it is needed first, and with it all
    that converted code calls. weft.jit asks only where it is told to convert (autograph=True)."""
    from . import conversion

    return conversion


def _stages() -> types.ModuleType:
    """What shows functions at the stages of their conversion."""
    from . import stages

    return stages


class _Autograph:
    """weft.autograph: a function that converts functions, with what belongs to it."""

    ConversionError = ConversionError
    FallbackWarning = FallbackWarning
    StructureError = StructureError

    def __call__(self, function: _F) -> _F:
        """A function with its Python control flow converted: what `if`, `for` and `while` do with traced values becomes
        part of the program.

        On values that are not traced it does what it always did. Functions that it calls are converted too, unless they
        belong to Weft or to an installed library. weft.jit(f, autograph=True) does the same.

        Args:
            function: the function; a decorator.

        Returns: the converted function.

        Raises:
            weft.autograph.ConversionError: there is no source, or it is a generator or an async function.

        Example:
            >>> def absolute(x):
            ...     if x < 0:
            ...         return -x
            ...     return x
            >>> weft.jit(weft.autograph(absolute))(-3.0)
            Array(3., dtype=float32, weak_type=True)
        """
        if isinstance(function, functools.partial):
            return cast(_F, functools.partial(self(function.func), *function.args, **function.keywords))
        plain, holder = _function_of(function, "autograph")
        converted = _conversion().convert(plain)
        return cast(_F, converted if holder is None else types.MethodType(converted, holder))

    def to_graph(self, function: _F) -> _F:
        """TensorFlow's name of weft.autograph itself: the converted function.

        Args:
            function: the function.

        Returns: the converted function.

        Example:
            >>> def absolute(x):
            ...     if x < 0:
            ...         return -x
            ...     return x
            >>> weft.jit(weft.autograph.to_graph(absolute))(-3.0)
            Array(3., dtype=float32, weak_type=True)
        """
        return self(function)

    def to_source(self, function: Callable[..., Any]) -> str:
        """The converted function as Python source; `ag` in it is weft.autograph.operators.

        Args:
            function: the function, converted, jitted or neither.

        Returns: str.

        Raises:
            weft.autograph.ConversionError: there is no source.

        Example:
            >>> def absolute(x):
            ...     if x < 0:
            ...         return -x
            ...     return x
            >>> "ag." in weft.autograph.to_source(absolute)
            True
        """
        while isinstance(function, functools.partial):
            function = function.func
        function = getattr(function, "_function", function)  # of a jitted function
        return _conversion().converted_text(_function_of(function, "autograph.to_source")[0])

    def do_not_convert(self, function: _F) -> _F:
        """Marks a function that converted code calls as it is.

        Args:
            function: the function; a decorator.

        Returns: the function.

        Example:
            >>> @weft.autograph.do_not_convert
            ... def helper(x):
            ...     return x + 1
            >>> helper(1)
            2
        """
        return cast(_F, _conversion().leave_alone(function))

    def unroll(self, iterable: Iterable[Any]) -> list[Any]:
        """For `for` in converted code: one copy of the body per item, whatever the body does.

        Args:
            iterable: what to go through.

        Returns: list of its items.

        Example:
            >>> [i for i in weft.autograph.unroll(range(3))]
            [0, 1, 2]
        """
        return list(iterable)

    def _attempt(self, converted: Callable, args: tuple, kwargs: dict, failed: Callable[[Exception], None]) -> Any:
        """Calls a converted function whose conversion may fail (attempts.py)."""
        return _conversion().attempt(converted, args, kwargs, failed)

    def _stage(self, function: Any, name: str, trace: Callable[[], Any] | None = None) -> str:
        """The function at a stage of its conversion (stages.py). `trace`: for "types"."""
        plain = _function_of(function, "script")[0]
        return _stages().types(plain, trace) if name == "types" else _stages().front(plain, name)

    def __repr__(self) -> str:
        return "<function weft.autograph>"


_Autograph.__doc__ = _Autograph.__call__.__doc__
autograph = _Autograph()
