"""jax.interpreters.ad: the rules of derivatives of primitives."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import weft

from .._core.errors import type_error
from .linear_util import WrappedFun, called
from .rule_tables import RuleTable
from .rules import JVPTracer, SymbolicZero, UndefinedPrimal, Zero, is_undefined_primal
from .user_primitives import Primitive

__all__ = [
    "CustomVJPException",
    "JVPTracer",
    "SymbolicZero",
    "UndefinedPrimal",
    "Zero",
    "add_jaxvals",
    "add_tangents",
    "defbilinear",
    "defjvp",
    "defjvp2",
    "deflinear",
    "deflinear2",
    "get_primitive_transpose",
    "instantiate_zeros",
    "is_undefined_primal",
    "jvp",
    "primitive_jvps",
    "primitive_transposes",
    "zeros_like_aval",
]

_Rule = Callable[..., Any]

# What is raised where a custom_vjp function is differentiated by what it has captured.
CustomVJPException = weft.DerivativeError


def _builtin_jvp(primitive: Primitive) -> _Rule:
    def rule(primals: Any, tangents: Any, /, **params: Any) -> Any:
        moving = [i for i, t in enumerate(tangents) if not isinstance(t, Zero)]

        def of_moving(*values: Any) -> Any:
            every = list(primals)
            for i, value in zip(moving, values):
                every[i] = value
            return primitive.bind(*every, **params)

        return weft.jvp(of_moving, [primals[i] for i in moving], [tangents[i] for i in moving])

    return rule


def _builtin_transpose(primitive: Primitive) -> _Rule:
    def rule(ct: Any, /, *operands: Any, **params: Any) -> list[Any]:
        linear = [i for i, x in enumerate(operands) if is_undefined_primal(x)]

        def of_linear(*values: Any) -> Any:
            every = list(operands)
            for i, value in zip(linear, values):
                every[i] = value
            return primitive.bind(*every, **params)

        found = weft.linear_transpose(of_linear, *(operands[i].aval for i in linear))(ct)
        out: list[Any] = [None] * len(operands)
        for i, value in zip(linear, found):
            out[i] = value
        return out

    return rule


# Those of Weft's own operations follow from its transforms.
primitive_jvps = RuleTable("jvp", "ad.primitive_jvps", _builtin_jvp)
primitive_transposes = RuleTable("transpose", "ad.primitive_transposes", _builtin_transpose)


def get_primitive_transpose(primitive: Primitive) -> _Rule:
    """The rule of transposition of a primitive."""
    return primitive_transposes[primitive]


def zeros_like_aval(aval: Any) -> Any:
    """An array of zeros of a type."""
    return aval.vspace_zero() if hasattr(aval, "vspace_zero") else Zero(aval).instantiate()


def instantiate_zeros(tangent: Any) -> Any:
    """The tangent, with zeros for one that does not move."""
    if not isinstance(tangent, Zero):
        return tangent
    return tangent.instantiate() if hasattr(tangent.aval, "dtype") else tangent.aval.vspace_zero()


def add_jaxvals(x: Any, y: Any) -> Any:
    """The sum of two tangents."""
    return x + y


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents that may be Zero."""
    if isinstance(x, Zero):
        return y
    return x if isinstance(y, Zero) else add_jaxvals(x, y)


def _sum_of_parts(primitive: Primitive, rules: tuple, primals: Any, tangents: Any, value: Any, more: tuple) -> Any:
    parts = []
    for rule, t in zip(rules, tangents, strict=True):
        if rule is not None and not isinstance(t, Zero):
            parts.append(rule(t, *more, *primals))
    return functools.reduce(add_tangents, parts, Zero.from_primal_value(value))


def defjvp(primitive: Primitive, *jvprules: _Rule | None) -> None:
    """Gives a rule for each operand: (tangent, *primals, **params) -> its part of the tangent; None: it has none."""

    def rule(primals: Any, tangents: Any, /, **params: Any) -> Any:
        value = primitive.bind(*primals, **params)
        with_params = tuple(r and functools.partial(r, **params) for r in jvprules)
        return value, _sum_of_parts(primitive, with_params, primals, tangents, value, ())

    primitive_jvps[primitive] = rule


def defjvp2(primitive: Primitive, *jvprules: _Rule | None) -> None:
    """defjvp with rules that get the value, too: (tangent, value, *primals, **params)."""

    def rule(primals: Any, tangents: Any, /, **params: Any) -> Any:
        value = primitive.bind(*primals, **params)
        with_params = tuple(r and functools.partial(r, **params) for r in jvprules)
        return value, _sum_of_parts(primitive, with_params, primals, tangents, value, (value,))

    primitive_jvps[primitive] = rule


def _linear_jvp(primitive: Primitive, primals: Any, tangents: Any, /, **params: Any) -> Any:
    value = primitive.bind(*primals, **params)
    if all(isinstance(t, Zero) for t in tangents):
        still = Zero.from_primal_value
        return value, [still(v) for v in value] if primitive.multiple_results else still(value)
    return value, primitive.bind(*map(instantiate_zeros, tangents), **params)


def deflinear2(primitive: Primitive, transpose_rule: _Rule) -> None:
    """Says that a primitive is linear in all operands: (cotangent, *operands, **params) -> cotangents."""
    primitive_jvps[primitive] = functools.partial(_linear_jvp, primitive)
    primitive_transposes[primitive] = transpose_rule


def deflinear(primitive: Primitive, transpose_rule: _Rule) -> None:
    """deflinear2 with a rule that does not get the operands: (cotangent, **params) -> cotangents."""
    deflinear2(primitive, lambda ct, /, *_, **params: transpose_rule(ct, **params))


def defbilinear(primitive: Primitive, lhs_rule: _Rule, rhs_rule: _Rule) -> None:
    """Says that a primitive is linear in each of two operands: (cotangent, x, y, **params) -> that of x, of y."""
    defjvp(
        primitive,
        lambda t, x, y, /, **params: primitive.bind(t, y, **params),
        lambda t, x, y, /, **params: primitive.bind(x, t, **params),
    )

    def transpose(ct: Any, x: Any, y: Any, /, **params: Any) -> Any:
        if is_undefined_primal(x) == is_undefined_primal(y):
            raise type_error(f"'{primitive}' is transposed in one of its operands, got {x} and {y}")
        if is_undefined_primal(x):
            return lhs_rule(ct, x, y, **params), None
        return None, rhs_rule(ct, x, y, **params)

    primitive_transposes[primitive] = transpose


def jvp(fun: WrappedFun, *_: Any, **__: Any) -> WrappedFun:
    """A function of (primals, tangents), lists, that gives (values, tangents) of a wrapped function."""

    def of_both(primals: Any, tangents: Any) -> Any:
        given = [weft.numpy.zeros_like(p) if isinstance(t, Zero) else t for p, t in zip(primals, tangents)]
        given = [np.zeros(np.shape(p), bool) if _has_no_tangent(p) else t for p, t in zip(primals, given)]
        return weft.jvp(called(fun), tuple(primals), tuple(given))

    return WrappedFun(of_both, {})


def _has_no_tangent(x: Any) -> bool:
    aval = weft.typeof(x)
    return bool(aval.to_tangent_aval().dtype != aval.dtype)
