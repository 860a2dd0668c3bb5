"""Where the result of a function lies: device= and out_sharding= of functions that make arrays."""

from __future__ import annotations

from typing import Any

from .. import _weft
from .._core import tree as _tree
from .._core.errors import type_error, value_error
from .arrays import device_put, put
from .devices import Device
from .meshes import AbstractMesh, check_mesh, current_mesh
from .partitioning import check_said_by_types, constrain
from .shardings import NamedSharding, PartitionSpec, Sharding, spec_axes


def lying_like(x: Any, other: Any) -> Any:
    """x, which is made after another array or type: outside of programs it lies as that one does, where somebody has
    put it and the shapes are the same; on the same device in any case."""
    if differ := [axis for axis in getattr(other, "varying", ()) if _weft.axis_is_bound(axis)]:
        return _weft.pvary(x, differ)  # a type inside shard_map
    if isinstance(other, _weft.Array) and (_weft.is_traced(x) or _weft.is_traced(other)):
        return x
    place = _weft.sharding_of(other) if isinstance(other, _weft.Array) else getattr(other, "sharding", None)
    if _weft.is_traced(x) or _weft.is_tracing():
        around = current_mesh()  # whose types say how values lie
        if not isinstance(place, NamedSharding) or around is None or not _tree.jax_semantics():
            return x
        typed = place.mesh.are_all_axes_explicit and around.shape == place.mesh.shape
        return constrain(x, place, "full_like") if typed and tuple(x.shape) == tuple(other.shape) else x
    if isinstance(place, NamedSharding) and isinstance(place.mesh, AbstractMesh):
        around = current_mesh()
        place = place.on_devices("full_like") if around and around.shape == place.mesh.shape else None
    if not isinstance(place, Sharding) or not place.is_fully_addressable:
        return x
    if isinstance(place, NamedSharding):
        if tuple(x.shape) != tuple(other.shape) or place.spec.unreduced or place.spec.reduced:
            return x
        if any(_weft.axis_is_bound(axis) for axis in place.mesh.axis_names):
            return x
    return put(x, place)


def _of_rank(where: NamedSharding, rank: int) -> NamedSharding:
    """Without entries for more dimensions than there are, which cut nothing: the sharding of a type has them."""
    if len(where.spec) <= rank or any(dim is not None for dim in where.spec[rank:]):
        return where
    sums = {"unreduced": where.spec.unreduced, "reduced": where.spec.reduced}
    return NamedSharding(where.mesh, PartitionSpec(*where.spec[:rank], **sums))


def placed(x: Any, what: str, device: Any, out_sharding: Any = None) -> Any:
    """x where device= and out_sharding= of a function, `what`, say. A traced array has a place in its program only
    where it is cut over a mesh."""
    if device is None and out_sharding is None:
        return x
    if device is not None and out_sharding is not None:
        raise value_error(f"{what}: both device and out_sharding are given; expected one of them")
    name, where = ("device", device) if device is not None else ("out_sharding", out_sharding)
    if isinstance(where, PartitionSpec):
        where = NamedSharding(check_mesh(None, f"{what}: {name}"), where)
    if isinstance(where, NamedSharding):
        if out_sharding is not None:
            where = _of_rank(where, len(_weft.abstract(x)[0]))
            if where.mesh.empty and not any(spec_axes(where.spec)):
                return x  # the type of a value that lies on no mesh, which says nothing
            check_said_by_types(where, f"{what}: {name}")
        return constrain(x, where, f"{what}: {name}")
    if not isinstance(where, (Device, Sharding)):
        raise type_error(
            f"{what}: {name} is {where!r} of type '{type(where).__name__}'; expected a weft.Device or a weft.Sharding"
        )
    return device_put(x, where)
