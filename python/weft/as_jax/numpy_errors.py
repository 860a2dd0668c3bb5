"""Errors that functions of jax.numpy note while a program runs (jax_error_checking_behavior_nan and _divide = "raise"),
and that jax._src.error_check.raise_if_error() raises: a NaN in a result, a divisor that is 0.

Arrays' operators note them, too, from when one of the options is first set; before, nothing asks for them."""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import weft
import weft.numpy as wnp

from .. import _weft
from .._core import options
from .._core import tree as _tree
from .._core.errors import value_error
from ..numpy._ufunc import ufunc
from .error_check import set_error_if
from .settings import NUMPY_ERRORS, config
from .weak_types import called_by

# Functions of jax.numpy whose results may be NaN though no argument is, and those that divide by their second argument.
_NAN = frozenset(
    [
        "acos",
        "acosh",
        "add",
        "arccos",
        "arccosh",
        "arcsin",
        "arctanh",
        "asin",
        "atanh",
        "cos",
        "divide",
        "divmod",
        "float_power",
        "fmod",
        "log",
        "log10",
        "log1p",
        "log2",
        "mod",
        "pow",
        "power",
        "remainder",
        "sin",
        "sqrt",
        "subtract",
        "tan",
        "true_divide",
    ]
)
_DIVIDE = frozenset(["divide", "divmod", "floor_divide", "mod", "remainder", "true_divide"])
_OPERATORS = {
    "__add__": "add",
    "__floordiv__": "floor_divide",
    "__mod__": "mod",
    "__pow__": "power",
    "__sub__": "subtract",
    "__truediv__": "true_divide",
}


def _raises(category: str) -> bool:
    return bool(config.read(NUMPY_ERRORS + category) == "raise")


def _set_error_if_nan(pred: Any, /) -> None:
    if _raises("nan") and _weft.is_operand(pred) and _weft.dtype_kind(pred.dtype) == "float":
        set_error_if(wnp.isnan(pred), "NaN encountered")


def _set_error_if_divide_by_zero(pred: Any, /) -> None:
    if _raises("divide"):
        set_error_if(pred == 0, "Division by zero encountered")


def _set_error_if_with_category(pred: Any, /, msg: str, category: str | None = None) -> None:
    if category in ("nan", "divide"):
        raise value_error(f"{category} is deprecated: call the function that notes it")
    if category not in (None, "oob"):
        raise value_error(f"Invalid category: {category}")
    if category is None or _raises("oob"):
        set_error_if(pred, msg)


class error_checking_behavior(contextlib.AbstractContextManager["error_checking_behavior"]):
    """A `with` statement: which of these errors are noted ("raise"), and which are not ("ignore")."""

    def __init__(self, *, all: str | None = None, nan: str | None = None, divide: str | None = None, oob: Any = None):
        self._wanted = {"nan": nan or all, "divide": divide or all, "oob": oob or all}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> error_checking_behavior:
        from . import settings

        for category, behavior in self._wanted.items():
            if behavior is not None:
                option = getattr(settings, f"error_checking_behavior_{category}")
                self._stack.enter_context(option(behavior))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


_was_set = [False]  # whether one of the options has been set
_last: list[Any] = [None]  # which of them were on when a function was last traced with one


@contextlib.contextmanager
def scope() -> Iterator[None]:
    """Around what is traced while options are as they are now: other functions are traced for it than elsewhere."""
    now = tuple(map(_raises, ("nan", "divide", "oob")))
    if not any(now):
        yield
        return
    begin(now)
    # Functions that are traced here are none of those that are traced without: this setting is part of what they mean,
    # unless it is on for its own sake.
    ranks_are_watched = _weft.setting(options.WATCH_RANKS)
    if ranks_are_watched:
        weft.clear_caches()
    number = _weft.open_setting(options.WATCH_RANKS, True)
    try:
        yield
    finally:
        _weft.close_setting(options.WATCH_RANKS, number)
        if ranks_are_watched:
            weft.clear_caches()


def begin(now: Any) -> None:
    """Some of the options are on from here on."""
    if _last[0] not in (None, now):
        weft.clear_caches()
    _last[0] = now
    if not _was_set[0]:
        _was_set[0] = True
        for made in _made:
            _set_to_note(made)
        _watch_operators()


def noting(module: str, name: str, function: Any) -> Any:
    """A function of jax.numpy that notes errors."""
    if module != "jax.numpy" or name not in _NAN | _DIVIDE:
        return function
    if ufunc in type(function).__mro__:
        return called_by(function, _noting(name, function))
    return _made_noting(name, function)


class _Noting(functools.partial[Any]):
    """A function of jax.numpy that notes errors from when an option is first set. Before, a call costs as good as
    nothing more: what it calls is the function itself. It is pickled by its name."""

    __name__: str
    __wrapped__: Any

    def __reduce__(self) -> Any:
        return _of_name, (self.__name__,)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


_made: list[Any] = []


def _made_noting(name: str, function: Callable[..., Any]) -> Any:
    made: Any = functools.update_wrapper(_Noting(function), function)
    made.__name__ = name
    _made.append(made)
    if _was_set[0]:
        _set_to_note(made)
    return made


def _set_to_note(made: Any) -> None:
    made.__setstate__((_noting(made.__name__, made.__wrapped__), (), {}, made.__dict__))


def _of_name(name: str) -> Any:
    return getattr(importlib.import_module("jax.numpy"), name)


def _noting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    is_nan, divides = name in _NAN, name in _DIVIDE

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if not _was_set[0]:
            return function(*args, **kwargs)
        if divides and len(args) > 1:
            _set_error_if_divide_by_zero(args[1])
        out = function(*args, **kwargs)
        for result in _tree.leaves(out) if is_nan and out is not NotImplemented else ():
            _set_error_if_nan(result)
        return out

    return called


def _watch_operators() -> None:
    array: Any = weft.Array
    for operator, name in _OPERATORS.items():
        setattr(array, operator, _noting(name, getattr(array, operator)))
        reflected = f"__r{operator[2:]}"
        setattr(array, reflected, _reflected(name, getattr(array, reflected)))


def _reflected(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    turned = _noting(name, lambda x, y: method(y, x))
    return functools.wraps(method)(lambda self, other: turned(other, self))
