"""jax._src.jaxpr_util: which operations a program has, and how often."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from typing import Any

from .jaxprs import Jaxpr, JaxprEqn, subjaxprs


def all_eqns(jaxpr: Jaxpr) -> Iterator[tuple[Jaxpr, JaxprEqn]]:
    """(program, equation) of all equations, those inside of others, too."""
    for eqn in jaxpr.eqns:
        yield jaxpr, eqn
    for inner in subjaxprs(jaxpr):
        yield from all_eqns(inner)


def _counted(jaxpr: Jaxpr, key: Callable[[JaxprEqn], str]) -> dict[str, int]:
    return dict(collections.Counter(key(eqn) for _, eqn in all_eqns(jaxpr)))


def count_eqns(jaxpr: Jaxpr) -> int:
    """How many equations there are."""
    return sum(1 for _ in all_eqns(jaxpr))


def primitives(jaxpr: Jaxpr) -> dict[str, int]:
    """How often each primitive occurs."""
    return _counted(jaxpr, lambda eqn: eqn.primitive.name)


def primitives_by_source(jaxpr: Jaxpr) -> dict[str, int]:
    """... with the line that calls it."""
    return _counted(jaxpr, lambda eqn: f"{eqn.primitive.name} @ {eqn.source_info}")


def primitives_by_shape(jaxpr: Jaxpr) -> dict[str, int]:
    """... with the types of its results."""
    types = lambda eqn: " ".join(v.aval.str_short() for v in eqn.outvars)
    return _counted(jaxpr, lambda eqn: f"{eqn.primitive.name} :: {types(eqn)}")


def source_locations(jaxpr: Jaxpr) -> dict[Any, int]:
    """How many equations come from each line."""
    return _counted(jaxpr, lambda eqn: str(eqn.source_info))
