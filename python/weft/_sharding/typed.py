"""What types say of where values lie, along axes of a mesh of type Explicit (docs/parallel.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _weft
from .._core import shapes as _shapes
from .._core import tree as _tree
from .._core.tracing import flat_function, trace_flat
from ..collectives import axes_left_alone
from .meshes import AbstractMesh, AxisType, Mesh, current_mesh, mesh_around, mesh_axes, retyped
from .partitioning import constrain, shardings_of
from .shardings import NamedSharding, PartitionSpec, spec_axes
from .sums import Sums, counted_as, sums_of


def _described(what: Any) -> tuple | None:
    """Called from C++: a mesh, its axes, those whose types say how values lie here, and those over which a shard_map
    runs; of a sharding also the axes of each dimension, and those along which it is unreduced and reduced."""
    if isinstance(what, NamedSharding):
        mesh, spec = what.mesh, what.spec
        sums = sorted(spec.unreduced), sorted(spec.reduced)
        return mesh, mesh_axes(mesh), list(mesh.typed_axes), [], spec_axes(spec), *sums
    if not isinstance(what, (Mesh, AbstractMesh)):
        return None
    alone = axes_left_alone()
    over = [name for name in what.axis_names if name not in alone and _weft.axis_is_bound(name)]
    return what, mesh_axes(what), [name for name in what.typed_axes if name not in over], over


_weft.set_typed_hook(_described)


def mesh_here(mesh: Mesh | AbstractMesh) -> AbstractMesh:
    """The mesh without its devices, with the types that its axes have around the call: those that shard_map runs over
    are Manual."""
    around = current_mesh()
    if around is not None and around.shape == mesh.shape:
        mesh = around
    alone = axes_left_alone()
    types = [
        AxisType.Manual if _weft.axis_is_bound(name) and name not in alone else kind
        for name, kind in zip(mesh.axis_names, mesh.axis_types)
    ]
    return mesh.with_types(types)


def spec_of_dims(dims: Sequence[Sequence[str]], unreduced: Any = (), reduced: Any = ()) -> PartitionSpec:
    """A spec with an entry for each dimension."""
    each = [None if not names else names[0] if len(names) == 1 else tuple(names) for names in dims]
    return PartitionSpec(*each, unreduced=unreduced, reduced=reduced)


def typed_sharding(x: Any) -> NamedSharding | None:
    """What the type of a value says of where it lies; None where no axis of a mesh is Explicit here."""
    found = _weft.typed_layout(x)
    if found is None:
        return None
    mesh, dims, unreduced, reduced, _ = found
    return NamedSharding(mesh_here(mesh), spec_of_dims(dims, unreduced, reduced))


_shapes.typed_sharding = typed_sharding


def by_the_compiler(
    function: Callable[..., Any], args: tuple, kwargs: dict, mesh: Mesh | AbstractMesh | None, axes: Any = None
) -> Any:
    """What the function gives, inside of which the compiler says how values lie along these axes of the mesh (None: all
    of them), whatever their types are."""
    names = () if mesh is None else mesh.explicit_axes if axes is None else tuple(axes)
    if mesh is None or not any(name in mesh.explicit_axes for name in names):
        return function(*args, **kwargs)
    flat = flat_function(function, args, kwargs)
    with mesh_around(retyped(mesh, names, AxisType.Auto)):
        traced = trace_flat(flat, "auto_axes", known=True)
    results = _weft.apply(traced.fn, flat.leaves + traced.captures, traced.weak_results)
    return _tree.unflatten(flat.out_tree, results)


def by_the_program(
    function: Callable[..., Any], args: tuple, kwargs: dict, mesh: Mesh, in_shardings: Any, axes: Any = None
) -> Any:
    """What the function gives, inside of which types say how values lie along these axes of the mesh (None: all of
    them); in_shardings says it of the arguments."""
    flat = flat_function(function, args, kwargs)
    names = mesh.axis_names if axes is None else tuple(axes)
    inside = retyped(mesh, names, AxisType.Explicit)
    with mesh_around(inside):
        places = shardings_of(in_shardings, args, "explicit_axes: in_sharding")
        flat.specs = [
            leaf if place is None else _shapes.ShapeDtype.like(leaf, sharding=NamedSharding(inside, place.spec))
            for leaf, place in zip(flat.leaves, [*places, *[None] * (len(flat.leaves) - len(places))])
        ]
        traced = trace_flat(flat, "explicit_axes", known=False)
    results = _weft.apply(traced.fn, flat.leaves + traced.captures, traced.weak_results)
    return _tree.unflatten(flat.out_tree, results)


def mesh_of(values: Any) -> Mesh | None:
    """The mesh around the call, or else that of one of the values."""
    if (around := current_mesh()) is not None:
        return around
    for x in _tree.leaves(values, is_leaf=lambda x: isinstance(x, NamedSharding)):
        place = x if isinstance(x, NamedSharding) else place_of(x) if isinstance(x, _weft.Array) else None
        if place is not None and isinstance(place.mesh, Mesh):
            return place.mesh
    return None


def without_dims(sharding: Any, dims: Sequence[int], rank: int) -> Any:
    """The sharding of a value with some dimensions less: of one slice, say."""
    if not isinstance(sharding, NamedSharding):
        return sharding
    axes = [*spec_axes(sharding.spec), *[()] * (rank - len(sharding.spec))]
    kept = [names for d, names in enumerate(axes) if d not in dims]
    return NamedSharding(sharding.mesh, spec_of_dims(kept, sharding.spec.unreduced, sharding.spec.reduced))


def place_of(x: Any) -> NamedSharding | None:
    """How the type of a value says that it lies, on a mesh with devices; None where nobody said it."""
    found = _weft.typed_layout(x)
    if found is None or found[4]:
        return None
    mesh, dims, unreduced, reduced, _ = found
    around = current_mesh()
    if around is not None and around.shape == mesh.shape:
        mesh = around
    return None if isinstance(mesh, AbstractMesh) else NamedSharding(mesh, spec_of_dims(dims, unreduced, reduced))


def place_inside(place: NamedSharding | None) -> NamedSharding | None:
    """What the type of an argument says inside of a shard_map: nothing of sums along axes over which it runs, of which
    in_specs does."""
    if place is None:
        return None
    alone, spec = axes_left_alone(), place.spec
    return NamedSharding(place.mesh, spec.update(unreduced=spec.unreduced & alone, reduced=spec.reduced & alone))


def with_the_rest(spec: PartitionSpec, inside: tuple | None, rest: set[str]) -> PartitionSpec:
    """The spec of a result, with what its type inside says of the axes that the function left alone."""
    if inside is None:
        return spec
    _, dims, _, _, _ = inside
    axes = [*spec_axes(spec), *[()] * (len(dims) - len(spec))]
    cuts = [(*names, *(name for name in more if name in rest)) for names, more in zip(axes, dims)]
    if all(len(cut) == len(names) for cut, names in zip(cuts, axes)):
        return spec
    return spec_of_dims(cuts, spec.unreduced, spec.reduced)


def _of_cotangent_here(x: Any) -> Sums | frozenset[str] | None:
    """What the type of a cotangent says inside of a shard_map: sums, or the axes along which its value differs, and so
    it does, even if it is 0."""
    if (sums := sums_of(x)) != Sums():
        return Sums(sums.reduced, sums.unreduced)
    return frozenset(_weft.varying(x)) or None


def of_cotangents(primals: list) -> list[NamedSharding | Sums | frozenset[str] | None]:
    """How the cotangents of values lie, where types say it: as the values do; but along axes along which a value counts
    as reduced its cotangent is a sum in parts, and the other way round."""
    if not _weft.have_typed_layouts(primals):
        return [_of_cotangent_here(x) for x in primals]
    places: list[Any] = []
    for x in primals:
        place = place_of(x)
        if place is not None:
            spec = place.spec.update(unreduced=place.spec.reduced, reduced=place.spec.unreduced)
            place = NamedSharding(place.mesh, spec)
        places.append(place or _of_cotangent_here(x))
    return places


def lying_as(values: list, places: Sequence[NamedSharding | Sums | frozenset[str] | None], what: str) -> list:
    """The values, lying so; nothing is said of those whose place is None."""
    lying = []
    for x, place in zip(values, places):
        if isinstance(place, Sums):
            x = counted_as(x, place)
        elif isinstance(place, frozenset):
            x = _weft.pvary(x, sorted(place)) if place - set(_weft.varying(x)) else x
        elif place is not None and isinstance(x, _weft.Array) and place != place_of(x):
            x = constrain(x, place, what)
        lying.append(x)
    return lying
