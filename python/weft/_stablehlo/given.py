"""What an operation of a text says: the values of its attributes, its constants, its type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _weft
from .._core.errors import not_implemented, value_error
from ..api import ensure_compile_time_eval
from .syntax import Dense, Op
from .types import TensorType, array_of

__all__ = [
    "bind",
    "constant",
    "constant_of",
    "given",
    "ints",
    "known",
    "pairs",
    "result_type",
    "shape_of_result",
    "word",
]


def bind(name: str, values: Sequence[Any], **attributes: Any) -> Any:
    """The result of an operation of ours."""
    return _weft.bind(name, list(values), attributes)[0]


def result_type(op: Op, at: int = 0) -> TensorType:
    found = op.types[at] if at < len(op.types) else None
    if not isinstance(found, TensorType):
        raise value_error(f"its result has no type that is an array's: {found}")
    if None in found.shape:
        raise not_implemented(f"a result of unknown size, {found}")
    return found


def shape_of_result(op: Op) -> tuple[int, ...]:
    """The sizes of the result, which the text says."""
    return tuple(n for n in result_type(op).shape if n is not None)


def ints(value: Any) -> list[int]:
    """The value of an attribute that is a list of integers, as `array<i64: 1>`, `[1]` or `dense<1> : tensor<1xi64>`."""
    if isinstance(value, Dense):
        return [int(n) for n in np.asarray(constant(value)).ravel()]
    return [int(n) for n in value]


def given(op: Op, *names: str, default: Any = None) -> Any:
    for name in names:
        if name in op.attributes:
            return op.attributes[name]
    if default is None:
        raise value_error(f"the attribute '{names[0]}' is missing")
    return default


def known(value: Any, what: str) -> list[int]:
    if _weft.is_traced(value):
        raise not_implemented(f"{what} must be a constant: sizes of arrays follow from it")
    return [int(n) for n in np.asarray(value).ravel()]


def word(value: Any) -> str:
    return str(value).split()[-1].strip("<>")


def constant_of(op: Op) -> int | None:
    """The integer that an operation is, if it is one."""
    if op.name != "stablehlo.constant":
        return None
    value = op.values[0] if op.values else op.attributes.get("value")
    if not isinstance(value, Dense) or value.type != TensorType((), value.type.dtype) or "int" not in value.type.dtype:
        return None
    return int(constant(value))


def constant(value: Dense) -> Any:
    """An array of the text, not as an operation; one whose elements are all one number is that number spread."""
    type_ = value.type
    sizes = tuple(n for n in type_.shape if n is not None)
    is_number = not value.content.lstrip().startswith(("[", '"')) and value.content.strip()
    splat = is_number and sizes and len(sizes) == len(type_.shape)
    with ensure_compile_time_eval():
        array = array_of(value.content, TensorType((), type_.dtype) if splat else type_, "constant")
    if not splat:
        return array
    if math.prod(sizes) > 64:
        return _weft.full(sizes, array, type_.dtype)
    with ensure_compile_time_eval():
        return _weft.full(sizes, array, type_.dtype)


def pairs(value: Any, rank: int) -> list[tuple[int, int]]:
    flat = ints(value) if isinstance(value, Dense) else [int(n) for pair in value for n in pair]
    if len(flat) == 1:
        flat = flat * (2 * rank)
    return list(zip(flat[::2], flat[1::2]))
