"""JAX's rule for loops and branches inside shard_map: types say along which axes a value differs between devices, and
have to agree. Programs make them agree by jax.lax.pcast."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _weft
from .._core.errors import type_error, value_error
from .._sharding import agreement
from . import jaxprs
from .settings import config

_ELEMENTWISE = frozenset(
    [
        "add",
        "add_any",
        "and",
        "atan2",
        "clamp",
        "complex",
        "div",
        "eq",
        "ge",
        "gt",
        "le",
        "lt",
        "max",
        "min",
        "mul",
        "ne",
        "nextafter",
        "or",
        "pow",
        "rem",
        "select_n",
        "sub",
        "xor",
    ]
)
_CONTROL = frozenset(["cond", "switch", "scan", "while_loop", "fori_loop"])


def _pcast(axes: set[str], where: str) -> str:
    names = ", ".join(map(repr, sorted(axes))) + "," * (len(axes) == 1)
    return f"applying `jax.lax.pcast(..., ({names}), to='varying')` to the {where}"


def _fixed_by(hints: list[str]) -> str:
    if len(hints) == 1:
        return f"This might be fixed by {hints[0]}."
    return "This might be fixed by:\n" + "\n".join(f"  * {hint}" for hint in hints)


def _check_carry(what: str, carry: list[Any], body: Any) -> None:
    hints = []
    for i, leaf in enumerate(carry):
        missing = set(_weft.result_varying(body, i)[0]) - set(_weft.varying(leaf))
        if missing:
            hints.append(_pcast(missing, f"initial carry component number {i}"))
    if hints:
        raise type_error(
            f"{what} body function carry input and carry output must have equal types, but what is carried differs "
            f"between devices along more axes after a step than before it. {_fixed_by(hints)}"
        )


def _check_branches(what: str, branches: list[Any], choice: list[str]) -> None:
    hints = []
    count = min(branch.num_results for branch in branches)
    for i in range(count):
        each = [set(_weft.result_varying(branch, i)[0]) - set(choice) for branch in branches]
        for n, differs in enumerate(each):
            if missing := set().union(*each) - differs:
                name = ("false_fun", "true_fun")[n] if what == "cond" else f"branches[{n}]"
                hints.append(_pcast(missing, f"output of {name}" + (f", number {i}" if count > 1 else "")))
    if hints:
        raise type_error(
            f"{what} branches must have equal output types but they differ: some results differ between devices along "
            f"axes along which those of other branches do not. {_fixed_by(hints)}"
        )


def _check_bounds(lower: Any, upper: Any, unroll: Any) -> None:
    """Raises for bounds of a loop that are arrays of two dtypes, and where what is unrolled has no length yet."""
    dtypes = [x.dtype for x in (lower, upper) if hasattr(x, "dtype") and not _weft.abstract(x)[2]]
    if len(dtypes) == 2 and dtypes[0] != dtypes[1]:
        raise type_error(
            f"lower and upper arguments to fori_loop must have equal types, got {dtypes[0]} and {dtypes[1]}"
        )
    if unroll not in (None, False, 1) and (_weft.is_traced(lower) or _weft.is_traced(upper)):
        raise value_error("Can only use `unroll` in `fori_loop` if the loop bounds are statically known.")


def _check_operands(what: str, traced: Any) -> None:
    """Raises ValueError, where the option jax_auto_pcast is off, for operands of one operation of which some differ
    between devices along other axes than others."""
    if config.read("jax_auto_pcast"):
        return
    for eqn in jaxprs.Region(traced.fn).jaxpr.eqns:
        each = [tuple(v.aval.varying) for v in eqn.invars if isinstance(v, jaxprs.Var)]
        if str(eqn.primitive) in _ELEMENTWISE and len(set(each)) > 1:
            raise value_error(
                f"{what}: Primitive {eqn.primitive} requires varying manual axes to match, but got {each}. Make them "
                "match by jax.lax.pcast(..., to='varying')"
            )


def asking(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of jax.lax, which looks whether types agree where it is control flow."""
    if name not in _CONTROL:
        return function

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if name == "fori_loop" and len(args) > 1:
            _check_bounds(args[0], args[1], kwargs.get("unroll"))
        with agreement.of_user():
            return function(*args, **kwargs)

    return called


def install() -> None:
    """From now on types have to agree."""
    agreement.check_carry, agreement.check_branches = _check_carry, _check_branches
    agreement.check_operands = _check_operands
