"""jax.interpreters.partial_eval, as far as libraries use it: what of a function can be computed without some of its
arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from . import jaxprs
from .core import Tracer
from .equation_params import Params
from .linear_util import called
from .transforms import make_jaxpr

DynamicJaxprTracer = JaxprTracer = Tracer


class PartialVal(NamedTuple):
    """A value, or the type of one that is not known."""

    aval: Any
    const: Any

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """A value."""
        return cls(None, const)

    @classmethod
    def unknown(cls, aval: Any) -> PartialVal:
        """The type of a value that is not known."""
        return cls(aval, None)

    def is_known(self) -> bool:
        """Whether it is a value."""
        return self.aval is None


def trace_to_jaxpr_nounits(
    fun: Any, pvals: Sequence[PartialVal], instantiate: bool = False
) -> tuple[Any, list[PartialVal], list[Any]]:
    """The program of a function of which some arguments are unknown, and its results: values where they depend on known
    arguments alone."""
    del instantiate

    def of_unknown(*values: Any) -> Any:
        rest = iter(values)
        return called(fun)(*(next(rest) if p.aval is not None else p.const for p in pvals))

    closed = make_jaxpr(of_unknown)(*(p.aval for p in pvals if p.aval is not None))
    jaxpr = closed.jaxpr
    unknown = set(jaxpr.invars)
    known = []
    for eqn in jaxpr.eqns:
        if any(v in unknown for v in eqn.invars):
            unknown.update(eqn.outvars)
        else:
            known.append(eqn)
    outs = [v for v in jaxpr.outvars if v not in unknown]
    known = _needed(known, outs)
    values = iter(jaxprs.eval_jaxpr(jaxprs.Jaxpr(jaxpr.constvars, [], outs, known), closed.consts))
    results = [PartialVal.unknown(v.aval) if v in unknown else PartialVal.known(next(values)) for v in jaxpr.outvars]
    return jaxpr, results, closed.consts


def _needed(eqns: Sequence[jaxprs.JaxprEqn], outs: Sequence[Any]) -> list[jaxprs.JaxprEqn]:
    """The equations that values depend on, and those that have effects."""
    wanted = set(outs)
    kept = []
    for eqn in reversed(eqns):
        if any(v in wanted for v in eqn.outvars) or eqn.effects:
            wanted.update(eqn.invars)
            kept.append(eqn)
    return kept[::-1]


def trace_to_jaxpr_dynamic(fun: Any, in_avals: Sequence[Any], *_: Any, **__: Any) -> tuple[Any, list[Any], list[Any]]:
    """The program of a function of arguments of some types, the types of its results, and the arrays it captured."""
    closed = make_jaxpr(called(fun))(*in_avals)
    return closed.jaxpr, closed.jaxpr.out_avals, closed.consts


def close_jaxpr(jaxpr: jaxprs.Jaxpr) -> jaxprs.ClosedJaxpr:
    """A program without captured arrays, closed."""
    return jaxprs.ClosedJaxpr(jaxpr, ())


def convert_constvars_jaxpr(jaxpr: jaxprs.Jaxpr) -> jaxprs.Jaxpr:
    """A program whose captured arrays are its first arguments."""
    return jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])


def dce_jaxpr(
    jaxpr: jaxprs.Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[jaxprs.Jaxpr, list[bool]]:
    """The program of some results alone, and which arguments it needs."""
    outs = [v for v, used in zip(jaxpr.outvars, used_outputs, strict=True) if used]
    keep = [instantiate] * len(jaxpr.invars) if isinstance(instantiate, bool) else list(instantiate)
    new = jaxpr.replace(outvars=outs, eqns=_needed(jaxpr.eqns, outs))
    if any(eqn.params.get("regions") for eqn in new.eqns):
        new = _needed_inside(new)
        new = new.replace(eqns=[_shown_as_needed(eqn, new) for eqn in new.eqns])
    read = {v for eqn in new.eqns for v in eqn.invars} | set(new.outvars)
    used = [v in read or wanted for v, wanted in zip(new.invars, keep, strict=True)]
    return new.replace(invars=[v for v, on in zip(new.invars, used) if on]), used


def _needed_inside(jaxpr: jaxprs.Jaxpr) -> jaxprs.Jaxpr:
    """The program without what its results do not need inside of loops and branches: values that a loop only carries
    for themselves, results of branches that nobody reads."""
    count = len(jaxpr.constvars)
    closed = make_jaxpr(lambda *xs: jaxprs.eval_jaxpr(jaxpr, xs[:count], *xs[count:]))(
        *(v.aval for v in [*jaxpr.constvars, *jaxpr.invars])
    )
    if closed.consts or closed._ir is None:
        return jaxpr
    found = jaxprs.closed(closed._ir.optimized("dce")).jaxpr
    return found.replace(constvars=found.invars[:count], invars=found.invars[count:])


class _Part(jaxprs.Region):
    """A function inside of an equation, shown without what nobody reads of its results. It runs as a whole: its rules
    are of all results."""

    def __init__(self, whole: jaxprs.Region, read: Sequence[bool]):
        super().__init__(whole._fn)
        outs = [v for v, on in zip(whole.jaxpr.outvars, read) if on]
        self.jaxpr = whole.jaxpr.replace(outvars=outs, eqns=_needed(whole.jaxpr.eqns, outs))


def _shown_as_needed(eqn: jaxprs.JaxprEqn, program: jaxprs.Jaxpr) -> jaxprs.JaxprEqn:
    """A call of a function with rules of its own, some of whose results nobody reads."""
    if eqn.primitive.name not in ("custom_jvp_call", "custom_vjp_call"):
        return eqn
    known = {v for e in program.eqns for v in e.invars} | set(program.outvars)
    read = [v in known for v in eqn.outvars]
    if all(read):
        return eqn
    function, *rules = eqn.params["regions"]
    shown = eqn.replace(params=Params(eqn.params, regions=[_Part(function, read), *rules]))
    shown.steps = eqn.steps
    return shown


def dce_jaxpr_consts(
    jaxpr: jaxprs.Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[jaxprs.Jaxpr, list[bool], list[bool]]:
    """dce_jaxpr, and which captured arrays are needed."""
    new, used = dce_jaxpr(jaxpr, used_outputs, instantiate)
    read = {v for eqn in new.eqns for v in eqn.invars} | set(new.outvars)
    consts = [v in read for v in jaxpr.constvars]
    return new.replace(constvars=[v for v, on in zip(jaxpr.constvars, consts) if on]), consts, used
