"""Named scopes by which programs remember what JAX calls one equation; name stacks do not show them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import weft

from .. import _weft

_PRODUCT, _HIGH = "mixed_product", "hi_primitive"
ONE_EQUATION = "equation="  # with a name, see one_equation
_DEBUGGING = {"debug_print": "debug_print_call", "debug_callback": "debug_callback_call"}
_nothing = contextlib.nullcontext()


def one_product(args: Sequence[Any], kwargs: dict[str, Any]) -> contextlib.AbstractContextManager[Any]:
    """Around a product that converts its operands or its result, in programs."""
    dtypes = {str(x.dtype) for x in args if hasattr(x, "dtype")}
    converts = kwargs.get("preferred_element_type") is not None or len(dtypes) > 1
    return weft.named_scope(_PRODUCT) if converts else _nothing


def hi_primitive() -> contextlib.AbstractContextManager[Any]:
    """Around what a primitive on types of a library's own computes, in programs."""
    return weft.named_scope(_HIGH) if _weft.is_tracing() else _nothing


def debugging(what: str) -> contextlib.AbstractContextManager[Any]:
    """Around the call of the host that a function of jax.debug makes, in programs."""
    scope = _DEBUGGING.get(what)
    return weft.named_scope(scope) if scope is not None and _weft.is_tracing() else _nothing


def _has(steps: Sequence[Sequence[str]], scope: str) -> bool:
    return any(f"({scope})" in step or f"{scope}/" in step or f"/{scope}" in step for each in steps for step in each)


def in_product(steps: Sequence[Sequence[str]]) -> bool:
    """Whether an operation was traced as a part of such a product; transposes of products convert by themselves, in
    JAX, too."""
    return _has(steps, _PRODUCT) and not any(step == "transpose" for each in steps for step in each)


def in_hi_primitive(steps: Sequence[Sequence[str]]) -> bool:
    """Whether an operation is a part of a primitive on types of a library's own."""
    return _has(steps, _HIGH)


def name_of_callback(steps: Sequence[Sequence[str]]) -> str:
    """What JAX calls a call of the host."""
    return next((name for name, scope in _DEBUGGING.items() if _has(steps, scope)), "io_callback")


def is_hidden(part: str) -> bool:
    """Whether a part of a name stack is one of these scopes."""
    if ONE_EQUATION in part:
        return True
    return any(part == scope or f"({scope})" in part for scope in (_PRODUCT, _HIGH, *_DEBUGGING.values()))
