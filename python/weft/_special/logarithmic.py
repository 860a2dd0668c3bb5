"""Products with a logarithm. Of products of x and the logarithm's slope, 1 / y, the slopes would be infinite where y is
a subnormal number and x / y is not."""

from __future__ import annotations

import functools
from collections.abc import Callable

from .. import numpy as wnp
from .._weft import Array
from ..custom import custom_jvp
from ..symbolic_zeros import SymbolicZero


def _by_operand(value: custom_jvp, *slopes: Callable[..., Array]) -> None:
    """Gives a function its derivatives by each operand, which are looked at only where that operand varies: others may
    be infinite there."""

    def rule(primals, tangents):
        y = value(*primals)
        terms = [t * s(*primals) for s, t in zip(slopes, tangents, strict=True) if not isinstance(t, SymbolicZero)]
        return y, functools.reduce(lambda a, b: a + b, terms, wnp.zeros_like(y))

    value.defjvp(rule, symbolic_zeros=True)


@functools.cache
def x_log_y() -> Callable[[Array, Array], Array]:
    """x log(y), where that is finite."""

    @functools.partial(custom_jvp, elementwise=True)
    def value(x, y):
        return x * wnp.log(y)

    _by_operand(value, lambda x, y: wnp.log(y), lambda x, y: x / y)

    return value


@functools.cache
def x_log1p_y() -> Callable[[Array, Array], Array]:
    """x log(1 + y), where that is finite."""

    @functools.partial(custom_jvp, elementwise=True)
    def value(x, y):
        return x * wnp.log1p(y)

    _by_operand(value, lambda x, y: wnp.log1p(y), lambda x, y: x / (1 + y))

    return value


@functools.cache
def x_log_x() -> Callable[[Array], Array]:
    """x log(x) of x > 0."""

    @functools.partial(custom_jvp, elementwise=True)
    def value(x):
        return x * wnp.log(x)

    _by_operand(value, lambda x: wnp.log(x) + 1)

    return value


@functools.cache
def p_log_ratio() -> Callable[[Array, Array], Array]:
    """p log(p / q) of p and q > 0."""

    @functools.partial(custom_jvp, elementwise=True)
    def value(p, q):
        return p * (wnp.log(p) - wnp.log(q))

    _by_operand(value, lambda p, q: wnp.log(p) - wnp.log(q) + 1, lambda p, q: -(p / q))

    return value
