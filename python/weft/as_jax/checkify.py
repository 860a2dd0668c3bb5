"""jax.experimental.checkify: check() raises when the program runs. Transforming a function so that its errors become
values (checkify, check_error) is not there."""

from __future__ import annotations

import enum
import string
from typing import Any

import weft

from .._core import tree as _tree


class JaxRuntimeError(RuntimeError):
    """What Error.throw() raises in JAX."""


class Error:
    """Errors as values; no object of this class exists."""


class ErrorCategory(enum.Enum):
    """What is checked."""

    USER = enum.auto()
    NAN = enum.auto()
    OOB = enum.auto()
    DIV = enum.auto()


user_checks = frozenset([ErrorCategory.USER])
nan_checks = frozenset([ErrorCategory.NAN])
index_checks = frozenset([ErrorCategory.OOB])
div_checks = frozenset([ErrorCategory.DIV])
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Raises when the program runs and a condition does not hold.

    Args:
        pred: booleans, which all must hold.
        msg: what the error says; its fields are filled in by the arguments.
        *fmt_args: arrays and numbers.
        debug: accepted: the check is always there.
        **fmt_kwargs: arrays and numbers by name.

    Raises:
        RuntimeError: the condition does not hold.
    """
    del debug
    # Fields become those of weft.debug.check, one after the other.
    positional = iter(fmt_args)
    values: list[Any] = []
    text = ""
    for literal, field, _, _ in string.Formatter().parse(msg):
        text += literal
        if field is not None:
            if field == "":
                values.append(next(positional))
            else:
                values.append(fmt_kwargs[field] if field in fmt_kwargs else fmt_args[int(field)])
            text += "{}"
    weft.debug.check(pred, text, *_tree.leaves(values))


debug_check = check
