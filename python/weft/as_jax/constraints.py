"""Constraints of one value, one after the other, as the one that JAX has: of a vmap, say, one is of the mapped
dimension (spmd_axis_name), and another one of the others."""

from __future__ import annotations

import collections
import re
from collections.abc import Sequence
from typing import Any

from .equation_params import Params

_DIMS = re.compile(r"shardings\(\(([^()]*)\)\)")


def _dims(params: Params) -> list[str] | None:
    """What a constraint says of each dimension, as its text has it; "?" where it says nothing. None where it speaks of
    sums, too."""
    found = _DIMS.fullmatch(str(dict.get(params, "sharding")))
    if found is None or dict.get(params, "unreduced") or dict.get(params, "reduced"):
        return None
    dims = found[1].split(",") if found[1] else []
    return ["?" if d in set(dict.get(params, "open", ())) else dim for d, dim in enumerate(dims)]


def _both(first: Params, second: Params) -> Params | None:
    """The parameters of one constraint that says what both say; None where they disagree."""
    if any(dict.get(first, name) != dict.get(second, name) for name in ("mesh", "devices")):
        return None
    one, other = _dims(first), _dims(second)
    if one is None or other is None or len(one) != len(other):
        return None
    said = [b if a == "?" else a for a, b in zip(one, other)]
    if any("?" != b != s for b, s in zip(other, said)):
        return None
    text = ",".join("-" if dim == "?" else dim for dim in said)
    open_dims = [d for d, dim in enumerate(said) if dim == "?"]
    return Params({**dict(second), "open": open_dims, "sharding": f"shardings(({text}))"})


def joined(eqns: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    """The equations, in which constraints that follow each other and agree are one."""
    uses = collections.Counter(id(v) for eqn in eqns for v in eqn.invars)
    uses.update(id(v) for v in results)
    made_by: dict[int, int] = {}
    kept: list[Any] = []
    for eqn in eqns:
        at = made_by.get(id(eqn.invars[0])) if eqn.invars else None
        if eqn.primitive.name == "sharding_constraint" and at is not None and uses[id(eqn.invars[0])] == 1:
            params = _both(kept[at].params, eqn.params)
            if params is not None:
                kept[at] = kept[at].replace(outvars=eqn.outvars, params=params)
                made_by[id(eqn.outvars[0])] = at
                continue
        if eqn.primitive.name == "sharding_constraint":
            made_by[id(eqn.outvars[0])] = len(kept)
        kept.append(eqn)
    return kept
