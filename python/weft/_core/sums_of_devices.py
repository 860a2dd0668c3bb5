"""Values inside of shard_map that are parts of a sum along axes of its mesh (JAX's unreduced), or whose cotangents are
(reduced). To programs they are values that differ between devices; their types tell them apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import _weft
from .errors import value_error


class Sums(NamedTuple):
    """Axes of the mesh along which a value is a part of a sum, and along which its cotangent is."""

    unreduced: frozenset[str] = frozenset()
    reduced: frozenset[str] = frozenset()


# The axes of the mesh over which a shard_map runs here, as (name, size) each.
axes_of_mesh: Callable[[], list[tuple[str, int]]] = list


def sums_of(x: Any) -> Sums:
    """What the type of a value says of sums."""
    unreduced, reduced = _weft.sums_among_devices(x)
    return Sums(frozenset(unreduced), frozenset(reduced))


def counted_as(x: Any, sums: Sums) -> Any:
    """x, whose type says that it is such a sum, and no other."""
    axes = axes_of_mesh()
    here = {name for name, _ in axes}
    rank = len(_weft.abstract(x)[0])
    each = [sorted(names & here) for names in sums]
    return _weft.sharding_constraint(x, axes, [], [[]] * rank, list(range(rank)), *each) if axes else x


def first_has_all(x: Any, names: Sequence[str]) -> Any:
    """x as parts of a sum along axes of a mesh: the first device has all of it, and the others nothing."""
    shape, dtype, _, _ = _weft.abstract(x)
    return _weft.where(_weft.axis_index(list(names)) == 0, x, _weft.full(shape, 0, dtype))


def cast_sums(x: Any, names: Sequence[str], to: str) -> Any:
    """x as a value that differs between devices along these axes, is reduced along them, or is a sum in parts: what
    each device has, or where that is the same on all, all of it on the first."""
    before, along = sums_of(x), frozenset(names)
    states = {_state(name, x, before) for name in names}
    if len(states) > 1 and before != Sums():
        raise value_error(
            f"pcast: {', '.join(map(repr, names))}: along some of these axes the value is "
            f"{' and along others '.join(sorted(states))}; give axes along which it is one of them"
        )
    after = Sums(before.unreduced - along, before.reduced - along)
    if to == "unreduced":
        same = [name for name in names if name not in _weft.varying(x)]
        x = first_has_all(x, same) if same else x
        after = Sums(after.unreduced | along, after.reduced)
    else:
        x = _weft.pvary(x, list(names))
        if to == "reduced":
            after = Sums(after.unreduced, after.reduced | along)
    return x if after == before and to == "varying" else counted_as(x, after)


def _state(name: str, x: Any, sums: Sums) -> str:
    if name in sums.unreduced:
        return "unreduced"
    if name in sums.reduced:
        return "reduced"
    return "varying" if name in _weft.varying(x) else "the same"
