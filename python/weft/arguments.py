"""Positions and names of arguments, as a parameter such as argnums or static_argnums says them."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._errors import type_error, value_error
from ._tracing import call_name, positions_of

if TYPE_CHECKING:
    from typing_extensions import TypeIs


def is_integer(value: Any) -> TypeIs[int]:
    """Whether it is one integer, Python's or NumPy's, where several may be given."""
    return isinstance(value, (int, np.integer))


def ints(value: int | Iterable[int] | None, what: str) -> tuple[int, ...]:
    """Positions, as the argument `what` names them: one, several, or None."""
    if value is None:
        return ()
    given = (value,) if is_integer(value) else value
    if isinstance(given, str) or not isinstance(given, Iterable) or not all(map(is_integer, given)):
        raise type_error(f"{what} is {value!r}; expected an integer or several")
    return tuple(given)


def checked_argnums(argnums: Any, what: str) -> int | tuple[int, ...]:
    """Positions of arguments, as a Python integer or a tuple of them."""
    try:
        return operator.index(argnums)
    except TypeError:
        pass
    try:
        nums = tuple(operator.index(n) for n in argnums)
    except TypeError:
        raise type_error(
            f"{what}: argnums is {argnums!r} of type '{type(argnums).__name__}'; expected an integer or a tuple of them"
        ) from None
    if not nums:
        raise value_error(f"{what}: argnums is {argnums!r}; expected at least one argument")
    return nums


def positions(argnums: int | Sequence[int], count: int, name: str, what: str) -> list[int]:
    """Where argnums points to in a call of the function `name` with `count` positional arguments."""
    nums = [argnums] if isinstance(argnums, int) else list(argnums)
    for n in nums:
        if not -count <= n < count:
            raise value_error(f"{what}: argnums has {n}, but '{name}' was called with {count} positional arguments")
    nums = [n % count for n in nums]
    for n in nums:
        if nums.count(n) > 1:
            raise value_error(f"{what}: argnums is {argnums!r}, which has argument {n} of '{name}' twice")
    return nums


def of_chosen(
    function: Callable[..., Any], args: tuple, kwargs: dict, argnums: int | Sequence[int], what: str
) -> tuple[Callable[..., Any], tuple]:
    """The function of the arguments that argnums names alone, and those arguments."""
    nums = positions(argnums, len(args), call_name(function), what)

    def called(*chosen):
        full = list(args)
        for n, a in zip(nums, chosen, strict=True):
            full[n] = a
        return function(*full, **kwargs)

    called.__name__ = called.__qualname__ = call_name(function)
    return called, tuple(args[n] for n in nums)


def by_name(
    transform: Callable[..., Any], fun: Callable[..., Any], argnums, argnames: str | Sequence[str], what: str
) -> Callable[..., Any]:
    """transform(function, argnums) with respect to arguments with these names, however they are passed."""
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
    if argnums != 0:
        raise value_error(f"{what}: got argnums={argnums!r} and argnames={argnames!r}; expected one of them")
    positions = positions_of(fun, names, what, "argnames")

    @functools.wraps(fun, updated=())
    def called(*args, **kwargs):
        places: list[Any] = [
            name if name in kwargs else position for name, position in zip(names, positions, strict=True)
        ]
        for name, place in zip(names, places, strict=True):
            if not isinstance(place, str) and place >= len(args):
                raise value_error(f"{what}: argnames has '{name}', but '{call_name(fun)}' was called without it")

        def of_named(*chosen):
            full, keywords = list(args), dict(kwargs)
            for place, value in zip(places, chosen, strict=True):
                if isinstance(place, str):
                    keywords[place] = value
                else:
                    full[place] = value
            return fun(*full, **keywords)

        of_named.__name__ = of_named.__qualname__ = call_name(fun)
        of_named.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names]
        )
        chosen = [kwargs[place] if isinstance(place, str) else args[place] for place in places]
        return transform(of_named, 0 if isinstance(argnames, str) else tuple(range(len(names))))(*chosen)

    return called
