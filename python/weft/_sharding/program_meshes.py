"""The meshes that programs name, in constraints and functions for devices, and several of the same devices as one."""

from __future__ import annotations

from typing import Any

from .. import _weft
from .arrays import common_axes
from .meshes import AbstractMesh, Mesh, mesh_axes, mesh_devices, mesh_of
from .shardings import NamedSharding


def meshes_of(traced: Any) -> list[Mesh]:
    """Those that the constraints and shard_maps of a program name."""
    return [mesh_of(axes, numbers) for axes, numbers in _weft.meshes_of(traced)]


def _axes_as(other: Mesh, mesh: Mesh) -> dict[str, tuple[str, ...]] | None:
    """The axes of a mesh that each axis of another one is, whose devices are the same in the same order; None where one
    is no product of whole axes."""
    finer = common_axes(mesh, other)
    if finer is None:
        return None
    _, of_mesh, of_other = finer
    found: dict[str, tuple[str, ...]] = {}
    for name, parts in of_other.items():
        axes: list[str] = []
        while parts:
            axis = next((a for a, own in of_mesh.items() if own and parts[: len(own)] == own), None)
            if axis is None:
                return None
            axes.append(axis)
            parts = parts[len(of_mesh[axis]) :]
        found[name] = tuple(axes)
    return found


def on_one_mesh(traced: Any) -> Any:
    """The program, whose constraints name one mesh where they named several of the same devices in the same order."""
    named = meshes_of(traced)
    for mesh in named if len(named) > 1 else ():
        others = {other: _axes_as(other, mesh) for other in named if not other.same_place(mesh)}
        if all(names is not None for names in others.values()):
            renamed = [(mesh_axes(other), names) for other, names in others.items()]
            return _weft.with_constraints_on(traced, mesh_axes(mesh), mesh_devices(mesh), renamed)
    return traced


def lies_on(x: Any, mesh: Mesh | AbstractMesh) -> bool:
    """Whether a value is of a program, or on the devices of the mesh."""
    place = _weft.sharding_of(x) if isinstance(x, _weft.Array) and not _weft.is_traced(x) else None
    return _weft.is_traced(x) or (isinstance(place, NamedSharding) and place.mesh.same_place(mesh))
