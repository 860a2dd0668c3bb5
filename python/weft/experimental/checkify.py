"""Errors as values, as jax.experimental.checkify: a function made one that also returns which of its checks failed.

    error, y = weft.jit(checkify.checkify(f, errors=checkify.all_checks))(x)
    error.throw()

Outside of checkify a check raises when the program runs.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .. import _weft
from .. import numpy as wnp
from .._checks.errors import (
    BatchedError,
    Check,
    DivisionByZeroError,
    Error,
    FailedCheckError,
    JaxException,
    JaxRuntimeError,
    NaNError,
    OOBError,
)
from .._checks.interpreter import KNOWN, Checks
from .._core import stateful
from .._core import tree as _tree
from .._core.errors import of_kind, type_error
from .._core.tracing import check_callable
from ..arguments import text as _text

__all__ = [
    "BatchedError",
    "DivisionByZeroError",
    "Error",
    "FailedCheckError",
    "JaxException",
    "JaxRuntimeError",
    "NaNError",
    "OOBError",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "checkify",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]

ErrorCategory = type[JaxException]

user_checks = frozenset([FailedCheckError])
nan_checks = frozenset([NaNError])
index_checks = frozenset([OOBError])
div_checks = frozenset([DivisionByZeroError])
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks

init_error = Error(np.int32(0), {}, frozenset())


def checkify(f: Callable[..., Any], errors: Iterable[Any] = user_checks) -> Callable[..., tuple[Error, Any]]:
    """A function made one that returns (error, result).

    Works with every transform, inside and outside: jit(checkify(f)), checkify(jit(f)), vmap(checkify(f)), of which
    the error has one for each batch element, grad, and with branches and loops. What is looked for stops nothing: the
    program goes on after the first check that fails.

    Args:
        f: the function.
        errors: what is looked for: user_checks (check), nan_checks, div_checks, index_checks, or several: float_checks,
            automatic_checks, all_checks, or sets put together by `|`.

    Returns: function of the same arguments.

    Raises:
        TypeError: errors holds something else.

    Example:
        >>> from weft.experimental import checkify
        >>> f = lambda x, i: wnp.log(x)[i]
        >>> error, y = weft.jit(checkify.checkify(f, errors=checkify.all_checks))(wnp.array([1.0, 2.0]), 7)
        >>> error.get()
        'out-of-bounds indexing for array of shape (2,): index 7 is out of bounds for axis 0 with size 2. '
    """
    check_callable(f, "checkify")
    enabled = frozenset(errors)
    for kind in enabled:
        if kind not in all_checks:
            raise type_error(
                f"checkify: errors is a set like checkify.all_checks, of kinds of errors; got {kind!r} in it"
            )

    @functools.wraps(f, updated=())
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        run = lambda f, args, kwargs: Checks(enabled).checkified(f, args, kwargs)
        if stateful.references is not None:
            return stateful.references.beside("checkify", run, f, args, kwargs)
        return run(f, args, kwargs)

    return checked


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Checks a condition. In a function that checkify has made it is part of the error; elsewhere it raises when the
    program
    runs.

    Args:
        pred: one boolean, which must hold.
        msg: what the error says; its fields ({}, {x}) are filled in by the arguments.
        *fmt_args: arrays, or trees of them.
        debug: whether the check counts in checkified functions alone.
        **fmt_kwargs: arrays, or trees of them, by name.

    Returns: None.

    Raises:
        TypeError: pred is no single boolean, or an argument no array.
        KeyError, IndexError: a field of msg has no argument.
        JaxRuntimeError: outside of traced functions: the condition does not hold.
        RuntimeError: when a traced function runs that no checkify has made: likewise.

    Example:
        >>> from weft.experimental import checkify
        >>> def f(x):
        ...     checkify.check(x > 0, "not positive: {x}", x=x)
        ...     return x
        >>> checkify.checkify(f)(wnp.array(-1.0))[0].get()
        'not positive: -1.0 (`check` failed)'
    """
    what = "debug_check" if debug else "check"
    _text(msg, f"{what}: msg")
    single = isinstance(pred, (bool, np.bool_)) or (
        _weft.is_operand(pred) and _weft.abstract(pred)[0] == () and _weft.abstract(pred)[1] == np.dtype("bool")
    )
    if not single:
        raise type_error(f"{what}: pred must be one boolean, got {_described(pred)}; write pred.all()")
    numbers, tree = _tree.flatten((fmt_args, fmt_kwargs))
    for number in numbers:
        if not isinstance(number, (_weft.Array, np.ndarray, np.generic)):
            raise type_error(
                f"{what}: what fills in the message must be arrays, got {number!r} of type "
                f"'{type(number).__name__}'; put "
                "it into the message"
            )
    try:
        msg.format(*fmt_args, **fmt_kwargs)
    except LookupError as error:  # as str.format has it: of fields with names KeyError, of the others IndexError
        raise of_kind(type(error), f"{what}: {msg!r} has a field without an argument: {error}") from None
    except (TypeError, ValueError):  # a specification, which traced values do not take
        pass
    spec = tuple((tuple(_weft.abstract(n)[0]), str(_weft.abstract(n)[1])) for n in numbers)
    _emit(Check(FailedCheckError, (msg, tree), spec, _weft.user_stack()), wnp.logical_not(pred), numbers, debug)


def _described(x: Any) -> str:
    return _weft.abstract(x)[3] if _weft.is_operand(x) else f"{x!r} of type '{type(x).__name__}'"


def _emit(found: Check, failed: Any, numbers: list, debug: bool) -> None:
    if not _weft.is_tracing():
        if not debug and bool(failed):
            Error(np.int32(found.number), {found.spec: numbers}, frozenset([found])).throw()
        return
    KNOWN[found.number] = (found, debug)
    holds = wnp.logical_not(failed)
    # In a batch the numbers are batched as the condition is.
    numbers = [wnp.where(holds, n, n) for n in numbers]
    message = _message(found)
    operands = [np.True_, holds, *numbers] if debug else [holds, *numbers]
    text = "{} " * (len(operands) - 1) if debug else message
    _weft.bind("assert", operands, {"message": text.strip(), "check": found.number})


def _message(found: Check) -> str:
    """The message for programs that run as they are, whose fields are filled in in order."""
    if found.kind is not FailedCheckError:
        return str(found.kind.__name__) + " {}" * len(found.spec)
    text, tree = found.said
    places = _tree.unflatten(tree, list(range(len(found.spec))))
    order: list[int] = []
    out, at = "", 0
    for literal, field, _, _ in string.Formatter().parse(text):
        out += literal.replace("{", "{{").replace("}", "}}")
        if field is None:
            continue
        name = field.split(".")[0].split("[")[0]
        if name == "":
            chosen, at = places[0][at], at + 1
        else:
            chosen = places[1][name] if name in places[1] else places[0][int(name)]
        leaves = _tree.leaves(chosen)
        out += ", ".join("{}" for _ in leaves)
        order += leaves
    # The program fills in all numbers in their order.
    if order == list(range(len(found.spec))):
        return out
    return text.replace("{", "{{").replace("}", "}}") + ":" + " {}" * len(found.spec)


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """Checks a condition in functions that checkify has made, and nothing elsewhere.

    Args:
        pred: one boolean, which must hold.
        msg: what the error says.
        *fmt_args: arrays, or trees of them.
        **fmt_kwargs: arrays, or trees of them, by name.

    Returns: None.

    Raises:
        TypeError: pred is no single boolean, or an argument no array.
        KeyError, IndexError: a field of msg has no argument.

    Example:
        >>> from weft.experimental import checkify
        >>> def f(x):
        ...     checkify.debug_check(x > 0, "not positive")
        ...     return x
        >>> f(wnp.array(-1.0)), checkify.checkify(f)(wnp.array(-1.0))[0].get()
        (Array(-1., dtype=float32, weak_type=True), 'not positive (`check` failed)')
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raises if an error is one: the inverse of checkify. In a function that checkify has made it is part of that one's
    error.

    Args:
        error: what a checkified function returned.

    Returns: None.

    Raises:
        TypeError: it is no Error.
        JaxRuntimeError: outside of traced functions: it is an error.

    Example:
        >>> from weft.experimental import checkify
        >>> def inner(x):
        ...     checkify.check(x > 0, "not positive")
        ...     return x
        >>> def f(x):
        ...     error, y = checkify.checkify(inner)(x)
        ...     checkify.check_error(error)
        ...     return y
        >>> checkify.checkify(f)(wnp.array(-1.0))[0].get()
        'not positive (`check` failed)'
    """
    if not isinstance(error, Error):
        raise type_error(f"check_error: expected an Error, which checkify returns, got {error!r}")
    if not _weft.is_tracing() and not _weft.is_traced(error._code):
        error.throw()
        return
    code = wnp.asarray(error._code)
    for found in sorted(error._checks, key=lambda c: c.number):
        failed, numbers = code == found.number, error._payload[found.spec]
        if failed.shape:  # the last batch element that failed
            at = failed.size - 1 - wnp.argmax(failed.reshape(-1)[::-1])
            rank = len(failed.shape)
            numbers = [wnp.reshape(n, (-1, *wnp.shape(n)[rank:]))[at] for n in numbers]
            failed = failed.any()
        _emit(found, failed, list(numbers), debug=False)
