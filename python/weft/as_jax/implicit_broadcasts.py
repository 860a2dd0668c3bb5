"""What JAX's programs do not have. In them an operation on two arrays takes a number as it is, and a dimension of size
1 beside any other; Weft's are brought to one shape first. A slice of all of an array is none there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ad_checkpoint import NO_BARRIER

_OF_TWO = frozenset(
    ["add", "and", "atan2", "div", "eq", "ge", "gt", "le", "lt", "max", "min", "mul", "ne", "nextafter", "or", "pow"]
    + ["rem", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sub", "xor"]
)


def without_broadcasts(eqns: list[Any], results: Sequence[Any]) -> list[Any]:
    """The equations, in which broadcasts are left out that only operations on two arrays read."""
    wide = {id(eqn.outvars[0]): eqn for eqn in eqns if eqn.primitive.name == "broadcast_in_dim" and _adds_none(eqn)}
    if not wide:
        return eqns
    needed = {id(atom) for atom in results}
    for eqn in eqns:
        results_of = [_shape(result) for result in eqn.outvars[:1]]  # a check has none
        whole = [id(atom) not in wide and [_shape(atom)] == results_of for atom in eqn.invars]
        for i, atom in enumerate(eqn.invars):
            beside = len(whole) == 2 and whole[1 - i] and eqn.primitive.name in _OF_TWO
            if id(atom) in wide and not beside:
                needed.add(id(atom))
    for eqn in eqns:
        for i, atom in enumerate(eqn.invars):
            if id(atom) in wide and id(atom) not in needed:
                eqn.invars[i] = wide[id(atom)].invars[0]
    return [eqn for eqn in eqns if not (eqn.outvars and id(eqn.outvars[0]) in wide.keys() - needed)]


def without_what_changes_nothing(eqns: list[Any], results: list[Any]) -> list[Any]:
    """The equations without slices that take all of their operand, and without marks for who writes the program; who
    reads one reads the operand."""
    same: dict[int, Any] = {}
    kept = []
    read = lambda atom: same.get(id(atom), atom)
    for eqn in eqns:
        eqn.invars[:] = map(read, eqn.invars)
        is_slice = eqn.primitive.name == "slice" and _shape(eqn.invars[0]) == _shape(eqn.outvars[0])
        if is_slice or (eqn.primitive.name == "name" and eqn.params.get("name") == NO_BARRIER):
            same[id(eqn.outvars[0])] = eqn.invars[0]
        else:
            kept.append(eqn)
    results[:] = map(read, results)
    return kept


def _shape(atom: Any) -> tuple[Any, ...]:
    return tuple(atom.aval.shape)


def _adds_none(eqn: Any) -> bool:
    """Whether it makes an array of a number, or dimensions of size 1 longer."""
    (x,), (y,) = eqn.invars, eqn.outvars
    return not _shape(x) or (len(_shape(x)) == len(_shape(y)) and _shape(x) != _shape(y))
