"""jax.core.check_jaxpr: whether a program is well-formed."""

from __future__ import annotations

from typing import Any

from .._core.errors import at_line
from .jaxpr_text import text_of_equation
from .jaxprs import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    JaxprInputEffect,
    JaxprTypeError,
    Literal,
    Var,
    jaxprs_in_params,
)
from .weft_primitives import WeftPrimitive, primitive

_LINES = 60  # of a program that a message shows


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Raises JaxprTypeError unless every variable that is read has been defined before, each equation has parameters
    and results of the kinds that its operation has, and every effect is declared."""
    defined = {*jaxpr.constvars, *jaxpr.invars}
    for eqn in jaxpr.eqns:
        try:
            _check_effects(jaxpr, eqn)
            _check_read(eqn.invars, defined, str(eqn.primitive))
            _check_params(eqn)
            _check_results(eqn)
        except JaxprTypeError as error:
            if "while checking jaxpr" in str(error):
                raise
            raise JaxprTypeError(at_line(_in_context(str(error), eqn, jaxpr))) from None
        defined.update(eqn.outvars)
    _check_read(jaxpr.outvars, defined, "return")


def _in_context(message: str, eqn: JaxprEqn, jaxpr: Jaxpr) -> str:
    lines = str(jaxpr).splitlines()
    shown = lines if len(lines) <= _LINES else [*lines[: _LINES // 2], "    ...", *lines[-_LINES // 2 :]]
    of = text_of_equation(eqn, jaxpr).splitlines()
    return "\n\n".join(
        [
            message,
            "in equation:",
            "\n".join(of[:_LINES]),
            f"from source: {eqn.source_info}",
            "while checking jaxpr:",
            "\n".join(shown),
        ]
    )


def _check_effects(jaxpr: Jaxpr, eqn: JaxprEqn) -> None:
    for effect in eqn.effects:
        if effect not in jaxpr.effects and not isinstance(effect, JaxprInputEffect):
            raise JaxprTypeError(f"Equation effect not present in jaxpr effects. Equation effect: {effect}")


def _check_read(atoms: Any, defined: set[Any], by: str) -> None:
    for atom in atoms:
        if isinstance(atom, Var) and atom not in defined:
            raise JaxprTypeError(at_line(f"check_jaxpr: {atom} is read by '{by}' before it is defined"))


def _invalid(eqn: JaxprEqn, name: str, wanted: str) -> JaxprTypeError:
    value = eqn.params[name]
    return JaxprTypeError(
        f"invalid {eqn.primitive} param {name} of type {type(value).__name__}, {wanted} required: {value}"
    )


def _check_params(eqn: JaxprEqn) -> None:
    """Of what has functions inside: their kinds, and how many operands they take."""
    name = eqn.primitive.name
    if name == "cond":
        branches = eqn.params["branches"]
        if not isinstance(branches, tuple) or not all(isinstance(branch, ClosedJaxpr) for branch in branches):
            raise _invalid(eqn, "branches", "tuple of ClosedJaxpr")
        counts = [len(branch.invars) for branch in branches]
        for i, count in enumerate(counts):
            if count != counts[-1]:
                last = len(counts) - 1
                raise JaxprTypeError(f"cond branch {i} takes {count} inputs, branch {last} takes {counts[-1]}")
    if name == "scan":
        if not isinstance(eqn.params.get("reverse", False), bool):
            raise _invalid(eqn, "reverse", "bool")
        count = eqn.params.get("num_consts", 0)
        if not isinstance(count, int) or count < 0:
            raise _invalid(eqn, "num_consts", "non-negative int")
    inner = list(jaxprs_in_params(eqn.params))
    if name in ("jit", "closed_call", "checkpoint", "remat") and inner and len(inner[0].invars) != len(eqn.invars):
        raise JaxprTypeError(f"{len(eqn.invars)} operands cannot call jaxpr with {len(inner[0].invars)} inputs")
    for jaxpr in inner:
        check_jaxpr(jaxpr)


def _check_results(eqn: JaxprEqn) -> None:
    """That the results of an operation of numbers have the types that it gives them."""
    if not isinstance(eqn.primitive, WeftPrimitive) or eqn.params.get("regions") or not eqn.outvars:
        return
    if eqn.primitive is not primitive(eqn.primitive.name) or any(
        isinstance(atom, Literal) and not hasattr(atom.aval, "shape") for atom in eqn.invars
    ):
        return
    try:
        found, _ = eqn.primitive.abstract_eval(*(atom.aval for atom in eqn.invars), **eqn.params)
    except Exception:  # what it needs beside its operands is not there: an axis of a mesh, a rule
        return
    for var, kind in zip(eqn.outvars, found if isinstance(found, list) else [found]):
        if (var.aval.shape, var.aval.dtype) != (kind.shape, kind.dtype):
            short = lambda aval: aval.str_short(short_dtypes=True)
            raise JaxprTypeError(
                f"Value for variable '{var}' inconsistently typed as {short(kind)} for let-binder of type "
                f"{short(var.aval)}"
            )
