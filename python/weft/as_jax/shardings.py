"""Meshes and shardings as JAX shows them, and what JAX refuses of them besides."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import weft

from .._core.errors import type_error, value_error
from .._sharding.devices import OWN_KIND
from .._sharding.typing_rules import typing_rules
from ..jitted import ALSO_FORGETS
from ..mesh import AxisType, get_mesh

# The memories that JAX's CPUs have. Here they are one.
MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")


def check_memory_kind(kind: str | None, has_devices: bool = True) -> None:
    """Raises ValueError for a memory that a CPU has not."""
    if kind is None or kind in MEMORY_KINDS:
        return
    if not has_devices:
        raise value_error(f"Got invalid memory kind: {kind}. Valid memory kinds are: {', '.join(MEMORY_KINDS)}")
    raise value_error(
        "Could not find memory addressable by device cpu. Device cpu can address the following memory kinds: "
        f"{', '.join(MEMORY_KINDS)}. Got memory kind: {kind}"
    )


_parts_of_devices = weft.Sharding.devices_indices_map


@functools.lru_cache(maxsize=4096)
def common_devices_indices_map(sharding: weft.Sharding, shape: tuple[int, ...]) -> Mapping[Any, Any]:
    """Which part of an array each device has."""
    return _parts_of_devices(sharding, shape)


def _devices_indices_map(self: weft.Sharding, shape: Sequence[int]) -> Mapping[Any, Any]:
    return dict(common_devices_indices_map(self, tuple(shape)))


def _text_of_spec(spec: weft.PartitionSpec) -> str:
    dims = ", ".join(map(repr, spec)) + "," * (len(spec) == 1)
    sums = [
        f"{name}={{{', '.join(map(repr, sorted(axes)))}}}"
        for name, axes in (("unreduced", spec.unreduced), ("reduced", spec.reduced))
        if axes
    ]
    if sums:
        dims = ", ".join(map(repr, spec))
    return f"P({', '.join([dims] * bool(dims) + sums)})"


def _part_of_process(mesh: weft.Mesh, process_index: int) -> weft.Mesh:
    """The devices of a process as a mesh. Raises ValueError where they fill no box of this one."""
    own = np.array([d.process_index == process_index for d in mesh.devices.flat]).reshape(mesh.devices.shape)
    if not own.any():
        raise value_error(f"no device of the mesh {mesh} belongs to process {process_index}")
    box = tuple(slice(int(at.min()), int(at.max()) + 1) for at in np.nonzero(own))
    if not own[box].all():
        raise value_error(
            f"devices of process {process_index} do not form a subcube of the mesh, whose devices belong to the "
            f"processes {sorted({d.process_index for d in mesh.devices.flat})}"
        )
    return weft.Mesh(mesh.devices[box], mesh.axis_names, mesh.axis_types)


def _types(mesh: Any) -> str:
    return f"({', '.join(map(repr, mesh.axis_types))}{',' * (len(mesh.axis_types) == 1)})"


def _text_of_mesh(mesh: Any) -> str:
    """str(mesh)."""
    axes = [f"{name!r}: {size}" for name, size in mesh.shape.items()]
    return f"Mesh({', '.join([*axes, f'axis_types={_types(mesh)}'] if axes else [])})"


def _kind_of_devices(mesh: Any) -> Any:
    """What a mesh without devices says of them: nothing where it was made of sizes and names alone."""
    return OWN_KIND if mesh._device is None and mesh._of_devices else mesh._device


def _text_of_abstract(mesh: Any) -> str:
    axes = ", ".join(f"{name!r}: {size}" for name, size in mesh.shape.items()) if mesh.shape else "()"
    kind = _kind_of_devices(mesh)
    said = "" if kind is None else ", " + repr(kind).removeprefix(f"{type(kind).__name__}(").removesuffix(")")
    return f"AbstractMesh({axes}, axis_types={_types(mesh)}{said})"


def _repr_of_mesh(mesh: Any) -> str:
    if mesh.empty:
        return _text_of_mesh(mesh)
    return f"Mesh(axis_sizes={mesh.axis_sizes}, axis_names={mesh.axis_names}, axis_types={_types(mesh)})"


def _text_of_named(sharding: Any) -> str:
    memory = "" if sharding.memory_kind is None else f", memory_kind={sharding.memory_kind}"
    return f"NamedSharding(mesh={sharding.mesh}, spec={sharding.spec}{memory})"


def _memory_of(sharding: Any) -> str | None:
    kind: str | None = sharding.__dict__.get("_memory_kind")
    if kind is None and isinstance(sharding.mesh, weft.Mesh):
        return "device"
    return kind


def _check_named(mesh: Any, spec: Any) -> None:
    """Raises ValueError for what JAX's NamedSharding refuses."""
    types = dict(zip(mesh.axis_names, mesh.axis_types))
    if weft.PartitionSpec.UNCONSTRAINED in tuple(spec) and types and not mesh.auto_axes:
        raise value_error(
            f"{spec} cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`: types say how values lie on "
            f"{mesh}"
        )
    for what in ("unreduced", "reduced"):
        axes = getattr(spec, what)
        if missing := sorted(axes - set(types)):
            raise value_error(
                f"{what.capitalize()} axes {', '.join(missing)} is not found in mesh.axis_names={mesh.axis_names}. "
                f"Got pspec={spec} ({what.capitalize()} axes not found in mesh)"
            )
        if what == "unreduced" and any(types[name] is not AxisType.Explicit for name in axes):
            raise value_error(
                "Unreduced axes can only refer to mesh axes that is of type `Explicit`. Got unreduced axes: "
                f"{set(axes)} and mesh: {mesh}"
            )


def _named_init(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def checked(self: Any, mesh: Any, spec: Any, *, memory_kind: str | None = None, **unknown: Any) -> None:
        if isinstance(mesh, (weft.Mesh, weft.AbstractMesh)) and isinstance(spec, weft.PartitionSpec):
            _check_named(mesh, spec)
            check_memory_kind(memory_kind, isinstance(mesh, weft.Mesh))
        init(self, mesh, spec, **unknown)
        if memory_kind is not None:
            self.__dict__["_memory_kind"] = memory_kind

    return checked


def _single_init(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def checked(self: Any, device: Any, *, memory_kind: str | None = None) -> None:
        check_memory_kind(memory_kind)
        init(self, device)

    return checked


def _check_compatible(sharding: Any, shape: Sequence[int]) -> None:
    """Raises ValueError where arrays of this shape cannot lie so."""
    if len(sharding.spec) > len(shape):
        extra = " For scalars the PartitionSpec should be P()" if not shape else ""
        raise value_error(
            f"Sharding {sharding} is only valid for values of rank at least {len(sharding.spec)}, but was applied to a "
            f"value of rank {len(shape)}.{extra}"
        )
    sharding.shard_shape(tuple(shape))


def _sharding_of_type(kept: Any) -> property:
    """ShapeDtype.sharding, where a PartitionSpec alone stands for the mesh around whoever looks."""

    def get(self: weft.ShapeDtype) -> Any:
        place = kept.__get__(self)
        if not isinstance(place, weft.PartitionSpec):
            return place
        mesh = get_mesh()
        if mesh.empty:
            raise type_error(
                "When specifying PartitionSpec to `ShapeDtypeStruct`, the context mesh cannot be empty: there is no "
                f"mesh around for {place}"
            )
        return weft.NamedSharding(mesh, place)

    def put(self: weft.ShapeDtype, place: Any) -> None:
        spec = place if isinstance(place, weft.PartitionSpec) else getattr(place, "spec", ())
        if len(spec) > len(self.shape):
            raise value_error(
                f"Sharding {place} is only valid for values of rank at least {len(spec)}, but was applied to a value "
                f"of rank {len(self.shape)}"
            )
        kept.__set__(self, place)

    return property(get, put)


def _no_subclass(cls: Any, **_: Any) -> None:
    raise type_error("Subclassing `jax.P` is prohibited: jax.sharding.PartitionSpec has no subclasses")


# Meshes are one object for each of devices, names and types.
_MESHES: weakref.WeakValueDictionary[Any, weft.Mesh] = weakref.WeakValueDictionary()


def _mesh_new(cls: Any, devices: Any = None, axis_names: Any = (), axis_types: Any = None) -> Any:
    if cls is not weft.Mesh or devices is None:  # a pickle and a copy fill in what it has
        return object.__new__(cls)
    names = (axis_names,) if isinstance(axis_names, str) else axis_names
    array = np.asarray(devices, dtype=object)
    try:
        types = axis_types if axis_types is None or isinstance(axis_types, AxisType) else tuple(axis_types)
        key = tuple(names), types, array.shape, tuple(id(d) for d in array.flat)
        found = _MESHES.get(key)
    except TypeError:  # what Mesh refuses
        return object.__new__(cls)
    if found is None:
        found = _MESHES[key] = object.__new__(cls)
    return found


def _array_of(
    cls: Any, aval: Any, sharding: Any, arrays: Sequence[Any], committed: bool = True, _skip_checks: bool = False
) -> Any:
    """One array of those that devices hold: what JAX's class of arrays is called with."""
    del cls, committed, _skip_checks
    here = [d for d in sharding._device_list() if d.process_index == weft.process_index()]
    if len(arrays) != len(here):
        raise value_error(
            f"Expected {len(here)} per-device arrays (this is how many devices are addressable by the sharding), but "
            f"got {len(arrays)}"
        )
    for x in arrays:
        if x.dtype != aval.dtype:
            raise value_error(
                f"Input buffers to `Array` must have matching dtypes. Got {x.dtype}, expected {aval.dtype} for buffer: "
                f"{x}"
            )
    ids, theirs = {d.id for d in here}, [d.id for x in arrays for d in x.devices()]
    if len(set(theirs)) != len(theirs):
        raise value_error(
            "When making an array from single-device arrays, the input arrays must be from distinct devices, got "
            f"devices {theirs}"
        )
    if ids != set(theirs):
        only_here, only_there = ids - set(theirs), set(theirs) - ids
        raise value_error(
            "Addressable devices and per-device arrays devices do not match. Sharding contains devices "
            f"{only_here} that are not present in per-device arrays. Per-device arrays contain devices {only_there} "
            "that are not present in the sharding."
        )
    return weft.make_array_from_single_device_arrays(tuple(aval.shape), sharding, list(arrays))


def install() -> None:
    """From now on meshes and shardings look as JAX's do, and refuse what those refuse."""
    mesh, abstract, spec = weft.Mesh, weft.AbstractMesh, weft.PartitionSpec
    named, single = weft.NamedSharding, weft.SingleDeviceSharding
    ALSO_FORGETS.append(common_devices_indices_map.cache_clear)
    typing_rules.other_names = (int,)  # of meshes that only say where devices are
    of_types = weft.ShapeDtype.__dict__["sharding"]
    for kind, name, does in (
        (weft.ShapeDtype, "sharding", _sharding_of_type(of_types)),
        (weft.Sharding, "devices_indices_map", _devices_indices_map),
        (mesh, "__str__", _text_of_mesh),
        (mesh, "__repr__", _repr_of_mesh),
        (mesh, "__new__", _mesh_new),
        (mesh, "_local_mesh", _part_of_process),
        (abstract, "__repr__", _text_of_abstract),
        (abstract, "abstract_device", property(_kind_of_devices)),
        (spec, "__repr__", _text_of_spec),
        (spec, "__init_subclass__", classmethod(_no_subclass)),
        (named, "__repr__", _text_of_named),
        (named, "__init__", _named_init(named.__init__)),
        (named, "memory_kind", property(_memory_of)),
        (named, "check_compatible_aval", _check_compatible),
        (weft.Array, "__new__", staticmethod(_array_of)),
        (single, "__init__", _single_init(single.__init__)),
        (single, "__repr__", lambda self: f"SingleDeviceSharding(device={self._device!r}, memory_kind=device)"),
    ):
        setattr(kind, name, does)
