"""Programs that are traced for a mesh without devices, and get devices when they are compiled."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import weft

from .._core import tree as _tree
from .._core.errors import runtime_error, value_error
from .._sharding.meshes import chosen_mesh, current_mesh, mesh_around
from ..compiled import Lowered
from ..mesh import AbstractMesh, Mesh


class _OnTypes(NamedTuple):
    """How to trace a program again, for devices."""

    lower: Callable[..., Lowered]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    mesh: AbstractMesh


def _without_devices(values: Any) -> list[AbstractMesh]:
    """The meshes without devices of shardings, or of types that lie so."""
    leaves = _tree.leaves(values, is_leaf=lambda x: isinstance(x, weft.PartitionSpec))
    places = [x if isinstance(x, weft.NamedSharding) else getattr(x, "sharding", None) for x in leaves]
    return [p.mesh for p in places if isinstance(p, weft.NamedSharding) and isinstance(p.mesh, AbstractMesh)]


def _on(devices: Sequence[Any], mesh: AbstractMesh) -> Mesh:
    return Mesh(np.array(devices, dtype=object).reshape(mesh.axis_sizes), mesh.axis_names, mesh.axis_types)


def _lowered(lower: Callable[..., Lowered], args: Any, kwargs: Any, mesh: Mesh | None) -> Lowered:
    """The program, whose types without devices lie on a mesh of some."""
    if mesh is None:
        return lower(*args, **kwargs)

    def placed(x: Any) -> Any:
        if isinstance(x, weft.ShapeDtype) and _without_devices(x):
            return x.update(sharding=weft.NamedSharding(mesh, x.sharding.spec))
        return x

    with mesh_around(mesh):
        return lower(*_tree.map(placed, args), **_tree.map(placed, kwargs))


def where_types_lie(types: Any) -> contextlib.AbstractContextManager[Any]:
    """A scope in which the mesh of types is the one around, where there is none: meshes without devices mean it."""
    meshes = [getattr(x.sharding, "mesh", None) for x in _tree.leaves(types) if isinstance(x, weft.ShapeDtype)]
    mesh = next((mesh for mesh in meshes if isinstance(mesh, weft.Mesh)), None)
    return contextlib.nullcontext() if mesh is None or current_mesh() is not None else mesh_around(mesh)


def _check_around(values: Any) -> None:
    """Raises ValueError for types on meshes with axes of type Explicit that are not those of the mesh around."""
    around = chosen_mesh()
    for x in _tree.leaves(values):
        mesh = getattr(x.sharding, "mesh", None) if isinstance(x, weft.ShapeDtype) else None
        if around is not None and mesh is not None and mesh.explicit_axes and mesh.shape != around.shape:
            raise value_error(
                f"context mesh {around.abstract_mesh} should match the aval mesh {mesh.abstract_mesh} of an argument"
            )


def lowered_on(
    lower: Callable[..., Lowered], jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Lowered, bool]:
    """The program of a jitted function, and whether it is for a mesh without devices: then the first devices stand for
    them until it is compiled. Where they are too few it is of types alone."""
    _check_around((args, kwargs))
    meshes = _without_devices(((args, kwargs), jitted.__dict__.get("_shardings")))
    around = current_mesh()
    if isinstance(around, AbstractMesh) and not around.explicit_axes:
        meshes = [around]  # of which nothing but constraints and shard_maps speak
    elif not meshes or around is not None:
        return lower(*args, **kwargs), False
    mesh, there = meshes[0], weft.devices()
    given = [d for x in _tree.leaves((args, kwargs)) if isinstance(x, weft.ShapeDtype) for d in _devices_of(x)]
    for other in meshes:
        if given and other.size != len(set(given)):
            raise value_error(
                f"AbstractMesh size: {other.size} does not match the device assignment size: {len(set(given))}"
            )
    stand_in = _on(there[: mesh.size], mesh) if len(there) >= mesh.size and len(set(meshes)) == 1 else None
    made = _lowered(lower, args, kwargs, stand_in)
    made.__dict__["_on_types"] = _OnTypes(lower, args, kwargs, mesh)
    return made, True


def _devices_of(x: Any) -> list[Any]:
    place = x.sharding
    return list(place.mesh.devices.flat) if isinstance(getattr(place, "mesh", None), Mesh) else []


def for_devices(lowered: Lowered, devices: Sequence[Any] | None) -> Lowered:
    """The program for these devices; None: for those of the shardings of its arguments."""
    on_types: _OnTypes | None = lowered.__dict__.get("_on_types")
    if on_types is None:
        meshes = [place.mesh for place in lowered._shardings if place is not None and isinstance(place.mesh, Mesh)]
        if devices is not None and any(list(mesh.devices.flat) != list(devices) for mesh in meshes):
            raise value_error(
                "device_assignment passed to `.compile` must match the device_assignment calculated from array "
                f"shardings and out_shardings: {list(devices)}, and {list(meshes[0].devices.flat)}"
            )
        return lowered
    if devices is None:
        raise runtime_error(
            "device_assignment cannot be `None` during compilation: the program is for a mesh without devices, "
            f"{on_types.mesh}"
        )
    if len(devices) != on_types.mesh.size:
        raise value_error(
            f"The size of abstract mesh {on_types.mesh.size} in {on_types.mesh} must match the length of device "
            f"assignment: {len(devices)}"
        )
    return _lowered(on_types.lower, on_types.args, on_types.kwargs, _on(devices, on_types.mesh))
