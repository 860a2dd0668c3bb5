"""How results of a program over a mesh lie: in the words of its arguments, and as sums in parts."""

from __future__ import annotations

from typing import Any

from .. import _weft
from .._core import tree as _tree
from .meshes import Mesh
from .shardings import NamedSharding, PartitionSpec, axes_in_parts, spec_axes


def spec_of(dims: list[list[str]], each: bool = False, unreduced: Any = (), reduced: Any = ()) -> PartitionSpec:
    """`each`: an entry for each dimension, those after the last one that is cut, too."""
    while dims and not dims[-1] and not each:
        dims = dims[:-1]
    each_dim = [None if not names else names[0] if len(names) == 1 else tuple(names) for names in dims]
    return PartitionSpec(*each_dim, unreduced=unreduced, reduced=reduced)


def sums_in_parts(mesh: Mesh, cuts: list, shardings: list, said: list) -> tuple[list, list]:
    """The axes along which each argument, and each result, is a sum whose parts a program over blocks takes and gives
    as they are."""
    given = [[] if cut is None else axes_in_parts(mesh, place.spec) for cut, place in zip(cuts, shardings)]
    return given, [axes_in_parts(mesh, spec_of(dims, True, *sums)) for dims, *sums in said]


def given_through(traced: Any, shardings: list, mesh: Mesh) -> list[list[NamedSharding]]:
    """For each result that is an argument itself how that lies, if the axes of its mesh are of other types than the
    program's."""
    values = traced.fn.result_values if _tree.jax_semantics() else [None] * len(_weft.result_specs(traced))
    given = [shardings[n] if isinstance(n, int) and n < len(shardings) else None for n in values]
    same = [s if isinstance(s, NamedSharding) and s.mesh.same_place(mesh) else None for s in given]
    return [[] if s is None or s.mesh == mesh else [s] for s in same]


def as_said(place: NamedSharding, rank: int, said: list[NamedSharding]) -> NamedSharding:
    """How a result lies, in the words of an argument that lies so, too: it may name axes of size 1, and dimensions that
    are not cut."""
    cuts = _real_cuts(place, rank)
    same = (s for s in said if len(s.spec) <= rank and s.spec.unreduced == place.spec.unreduced)
    return next((s for s in same if s.spec.reduced == place.spec.reduced and _real_cuts(s, rank) == cuts), place)


def with_single_axes(cuts: list[list[str]], said: list[list[str]], mesh: Mesh) -> list[list[str]]:
    """How a result lies, with the axes of size 1 that its type names: they cut nothing."""
    return [[*(a for a in names if mesh.shape[a] == 1 and a not in own), *own] for own, names in zip(cuts, said)]


def _real_cuts(place: NamedSharding, rank: int) -> list[tuple[str, ...]]:
    axes = [tuple(name for name in names if place.mesh.shape[name] > 1) for names in spec_axes(place.spec)]
    return [*axes, *[()] * (rank - len(axes))]
