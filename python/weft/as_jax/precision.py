"""Precisions of products (jax.lax.Precision): Weft's are computed in the precision of their operands, which satisfies
each. What a program asks for is a named scope around the product, so that equations say it, those of its derivatives,
too."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from typing import Any

import weft
from weft.lax import Precision

from .. import _weft
from .._core.errors import value_error
from ..options import PRECISIONS, checked_precision
from .hidden_scopes import is_hidden, one_product

_SCOPE = "precision="
# What else the precisions of default_matmul_precision are called.
_NAMES = {
    "default": "DEFAULT",
    "fastest": "DEFAULT",
    "bfloat16": "DEFAULT",
    "high": "HIGH",
    "bfloat16_3x": "HIGH",
    "tensorfloat32": "HIGH",
    "highest": "HIGHEST",
    "float32": "HIGHEST",
}
# Functions of products that take a precision, by module.
_PRODUCTS = {
    "jax.numpy": "dot einsum inner matmul tensordot vdot vecdot",
    "jax.numpy.linalg": "matmul multi_dot tensordot vecdot",
    "jax.lax": "batch_matmul dot dot_general",
}


def _name(precision: Any) -> str | None:
    return precision.name if isinstance(precision, Precision) else _NAMES.get(precision)


def _text(precision: Any) -> str | None:
    """A precision, or one for each operand, as the name of a scope has it; None where it says nothing."""
    each = precision if isinstance(precision, (tuple, list)) else (precision, precision)
    try:
        names = [_name(one) for one in each]
    except TypeError:  # no name of one
        return None
    return "-".join(map(str, names)) if None not in names else None


def _check(precision: Any, name: str) -> None:
    """Raises ValueError unless each text among what is asked for is the name of a precision or of an algorithm."""
    for one in precision if isinstance(precision, (tuple, list)) else (precision,):
        if isinstance(one, str) and one not in PRECISIONS and one not in _NAMES:
            raise value_error(f"{name}: precision: expected one of {', '.join(map(repr, PRECISIONS))}, got {one!r}")


def asked(precision: Any) -> contextlib.AbstractContextManager[Any]:
    """A scope in which products have this precision, unless they say another one."""
    text = _text(precision)
    return contextlib.nullcontext() if text is None else weft.named_scope(_SCOPE + text)


def default_matmul_precision(precision: str | None) -> contextlib.AbstractContextManager[Any]:
    """jax.default_matmul_precision."""
    return asked(checked_precision(precision))


def asking_precision(module: str, name: str, function: Any) -> Any:
    """A function of products, whose equations say the precision that it is called with."""
    if name not in _PRODUCTS.get(module, "").split():
        return function
    return _asking(function)


def _asking(function: Callable[..., Any]) -> Callable[..., Any]:
    parameters = list(inspect.signature(function).parameters.values())
    place = next((i for i, p in enumerate(parameters) if p.name == "precision"), len(parameters))
    by_name = place == len(parameters) or parameters[place].kind is inspect.Parameter.KEYWORD_ONLY

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        precision = kwargs.get("precision")
        if precision is None and not by_name and len(args) > place:
            precision = args[place]
        if precision is None and not _weft.is_tracing():
            return function(*args, **kwargs)
        _check(precision, function.__name__)
        with asked(precision), one_product(args, kwargs):
            return function(*args, **kwargs)

    return called


def of_steps(levels: list[list[str]]) -> Any:
    """The precision that is asked for around an operation, as equations have it, by the steps of its location."""
    for steps in levels:  # of the innermost trace first; the innermost scope of each comes last
        names = [name for step in steps for name in step.partition("(")[2].rstrip(")").split("/")]
        found = [name.removeprefix(_SCOPE).split("-") for name in names if name.startswith(_SCOPE)]
        if found:
            return tuple(Precision[name] for name in found[-1])
    return None


def without_precisions(stack: str) -> str:
    """The names of a part of a program without those of precisions and of hidden scopes."""
    kept = [part for part in stack.split("/") if _SCOPE not in part and not is_hidden(part)]
    return "/".join(kept)
