"""How an array lies on the devices of a mesh, or on one."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core import tree as _tree
from .._core.errors import type_error, value_error
from ..collectives import check_axis_name
from .devices import Device, process_index
from .meshes import AbstractMesh, Mesh, check_mesh, mesh_axes


class _Unconstrained:
    """PartitionSpec.UNCONSTRAINED."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self):
        return "_UNCONSTRAINED"


_UNCONSTRAINED = _Unconstrained()


class PartitionSpec(tuple):
    """How an array is cut over a mesh, dimension by dimension. Dimensions that are left out are not cut.

    Args:
        dims: for each dimension the name of an axis, a tuple of names (the first one major; of one name it is that
            name), None if it is not cut, or PartitionSpec.UNCONSTRAINED where with_sharding_constraint says nothing of
            it.
        unreduced: axes along which devices hold parts of a sum, each its own.
        reduced: axes along which values are the same, and cotangents are sums in parts.

    Raises:
        TypeError, ValueError: something is no name of an axis, or an axis is named twice.

    Example:
        >>> weft.P("data", None, ("x", "y"))
        PartitionSpec('data', None, ('x', 'y'))
        >>> weft.P("data", unreduced={"model"})
        PartitionSpec('data', unreduced={'model'})
    """

    unreduced: frozenset[str]
    reduced: frozenset[str]

    UNCONSTRAINED = _UNCONSTRAINED

    def __new__(cls, *dims: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()) -> PartitionSpec:
        checked: list[Any] = []
        for dim in dims:
            if isinstance(dim, (tuple, list)):
                for name in dim:
                    _check_name(name)
                checked.append(tuple(dim) if len(dim) > 1 else dim[0] if dim else None)
            elif dim is None or dim is _UNCONSTRAINED:
                checked.append(dim)
            else:
                checked.append(_check_name(dim))
        if not unreduced and not reduced:
            return _spec_of_dims(cls, *checked)
        spec = super().__new__(cls, checked)
        cut = {name for names in spec_axes(spec) for name in names}
        spec.unreduced = _axes_besides(unreduced, cut, "unreduced")
        spec.reduced = _axes_besides(reduced, cut | spec.unreduced, "reduced")
        return spec

    def __eq__(self, other: object) -> bool:
        # Where neither says anything of sums, a spec is its tuple.
        if not self.__dict__ and not getattr(other, "__dict__", None):
            return tuple.__eq__(self, other)
        return isinstance(other, PartitionSpec) and (tuple(self), self.unreduced, self.reduced) == (
            tuple(other),
            other.unreduced,
            other.reduced,
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((tuple(self), self.unreduced, self.reduced)) if self.__dict__ else tuple.__hash__(self)

    def __repr__(self) -> str:
        sums = [
            f"{name}={{{', '.join(map(repr, sorted(axes)))}}}"
            for name, axes in (("unreduced", self.unreduced), ("reduced", self.reduced))
            if axes
        ]
        return f"PartitionSpec({', '.join([*map(repr, self), *sums])})"

    def __reduce__(self):
        if self.__dict__:
            return _spec_of_sums, (tuple(self), self.unreduced, self.reduced)
        return PartitionSpec, tuple(self)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, PartitionSpec):
            sums = {"unreduced": self.unreduced | other.unreduced, "reduced": self.reduced | other.reduced}
            return PartitionSpec(*self, *other, **sums)
        return self._with_more("__add__", (), other)

    def __radd__(self, other: Any) -> Any:
        return self._with_more("__radd__", other, ())

    def _with_more(self, what: str, before: Any, after: Any) -> Any:
        if not isinstance(before, tuple) or not isinstance(after, tuple):
            return NotImplemented
        for name in ("unreduced", "reduced"):
            if getattr(self, name):
                raise type_error(
                    f"other {before or after} cannot be of instance `tuple` when self {self} has {name} in `{what}` of "
                    "PartitionSpec."
                )
        return PartitionSpec(*before, *self, *after)

    def update(self, **changes: Any) -> PartitionSpec:
        """The same with other unreduced= or reduced=.

        Args:
            **changes: unreduced, reduced.

        Returns: weft.PartitionSpec.

        Example:
            >>> weft.P("x").update(unreduced={"y"})
            PartitionSpec('x', unreduced={'y'})
        """
        return PartitionSpec(*self, **{"unreduced": self.unreduced, "reduced": self.reduced, **changes})


PartitionSpec.unreduced = PartitionSpec.reduced = frozenset()


@functools.lru_cache(maxsize=4096)
def _spec_of_dims(cls: type[PartitionSpec], *dims: Any) -> PartitionSpec:
    """The spec of these entries: one object, as programs that compare specs by identity need it."""
    return tuple.__new__(cls, dims)


def _check_name(name: Any) -> str:
    """The name itself. Libraries also write names of their own there that become axes of a mesh only later, which are
    any text."""
    return name if isinstance(name, str) and name else check_axis_name(name, "PartitionSpec")


def _axes_besides(names: Any, taken: Any, what: str) -> frozenset[str]:
    names = frozenset([names] if isinstance(names, str) else names)
    for name in names:
        check_axis_name(name, f"PartitionSpec: {what}")
        if name in taken:
            raise value_error(f"PartitionSpec: {what} names the axis '{name}', which is there already")
    return names


def _spec_of_sums(dims: tuple, unreduced: frozenset[str], reduced: frozenset[str]) -> PartitionSpec:
    return PartitionSpec(*dims, unreduced=unreduced, reduced=reduced)


P = PartitionSpec


def spec_axes(spec: PartitionSpec) -> list[tuple[str, ...]]:
    """The names of the axes of each dimension that a spec has an entry for."""
    return [(dim,) if isinstance(dim, str) else dim if isinstance(dim, tuple) else () for dim in spec]


def cuts_of(
    mesh: Mesh | AbstractMesh, spec: PartitionSpec, shape: Sequence[Any], what: str, *, may_be_open: bool = False
) -> list[tuple[str, ...]]:
    """The axes of every dimension of an array of this shape. Raises ValueError, beginning with `what`, where the spec
    fits neither the mesh nor the shape, and where it leaves a dimension open and may not."""
    axes = spec_axes(spec)
    if _UNCONSTRAINED in spec and not may_be_open:
        raise value_error(f"{what}: {spec} leaves a dimension open; expected axes or None for every dimension")
    if len(axes) > len(shape):
        raise value_error(f"{what}: {spec} has {len(axes)} entries for an array of shape {tuple(shape)}")
    seen: set[str] = set()
    for names in axes:
        for name in names:
            if name not in mesh.shape:
                raise value_error(f"{what}: {spec} names '{name}', which is no axis of {mesh}")
            if name in seen:
                raise value_error(f"{what}: {spec} uses the axis '{name}' twice")
            seen.add(name)
    for name in spec.unreduced | spec.reduced:
        if name not in mesh.shape:
            raise value_error(f"{what}: {spec} names '{name}', which is no axis of {mesh}")
    axes += [()] * (len(shape) - len(axes))
    for d, names in enumerate(axes):
        count = math.prod(mesh.shape[name] for name in names)
        if count > 1 and isinstance(shape[d], int) and shape[d] % count:
            raise value_error(
                f"{what}: dimension {d} of an array of shape {tuple(shape)} has size {shape[d]}, which {count} devices "
                f"cannot share evenly ({spec} on {mesh})"
            )
    return axes


def renamed(spec: PartitionSpec, names: dict[str, tuple[str, ...]]) -> PartitionSpec:
    """The same cuts, where each axis is several of another mesh, the first one major."""
    return PartitionSpec(*[tuple(new for axis in axes for new in names[axis]) for axes in spec_axes(spec)])


class Sharding:
    """How an array lies on devices: weft.SingleDeviceSharding or weft.NamedSharding.

    Example:
        >>> isinstance(wnp.arange(3).sharding, weft.Sharding)
        True
    """

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds all of it."""
        raise NotImplementedError

    def devices_indices_map(self, shape: Sequence[int]) -> dict[Device, tuple[slice, ...]]:
        """For every device, the part of an array of this shape that it holds."""
        return {device: shown_part(index, shape) for device, index in self._parts(shape).items()}

    def _parts(self, shape: Sequence[int]) -> dict[Device, tuple[slice, ...]]:
        """The same, each slice with its start and stop."""
        raise NotImplementedError

    def shard_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of one device's part of an array of this shape."""
        raise NotImplementedError

    @property
    def memory_kind(self) -> str:
        """Which memory of the devices holds it: every device has one, "device"."""
        return "device"

    @property
    def device_set(self) -> set[Device]:
        """The devices that hold a part."""
        return set(self._device_list())

    @property
    def addressable_devices(self) -> set[Device]:
        """Those that belong to this process."""
        return {d for d in self._device_list() if d.process_index == process_index()}

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether the same devices hold the same parts of every array of `ndim` dimensions that both fit."""
        if not isinstance(other, Sharding):
            raise type_error(f"is_equivalent_to: expected a sharding, got {other!r}")
        if not self._has_devices() or not other._has_devices():
            return self == other
        # A size that all cuts of both divide evenly tells all parts apart.
        shape = (math.lcm(self.num_devices, other.num_devices),) * ndim
        return self._parts(shape) == other._parts(shape)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices that hold a part belong to this process."""
        return all(d.process_index == process_index() for d in self._device_list())

    def addressable_devices_indices_map(self, shape: Sequence[int]) -> dict[Device, tuple[slice, ...]]:
        """For every device of this process, the part of an array of this shape that it holds."""
        return {d: index for d, index in self.devices_indices_map(shape).items() if d.process_index == process_index()}

    @property
    def num_devices(self) -> int:
        """How many devices hold a part."""
        return len(self._device_list())

    def _has_devices(self) -> bool:
        return True

    def _device_list(self) -> list[Device]:
        raise NotImplementedError

    # As the native module takes it: numbers of the devices, names and sizes of the axes (None: one device), axes that
    # cut each dimension, and processes.
    def _description(self) -> tuple:
        raise NotImplementedError

    def _pickled(self) -> tuple:
        """As weft._pickled.placed_array takes it."""
        raise NotImplementedError


class SingleDeviceSharding(Sharding):
    """All of an array on one device.

    Args:
        device: the device.
        memory_kind: which memory of it; there is one, "device".

    Raises:
        ValueError: it has no such memory.

    Example:
        >>> weft.SingleDeviceSharding(weft.devices()[0]).shard_shape((4, 2))
        (4, 2)
    """

    def __init__(self, device: Device, *, memory_kind: str | None = None):
        if memory_kind not in (None, self.memory_kind):
            raise value_error(
                f"SingleDeviceSharding: {device!r} has no memory {memory_kind!r}; the one it has is 'device'"
            )
        self._device = device

    @property
    def is_fully_replicated(self) -> bool:
        return True

    def _device_list(self) -> list[Device]:
        return [self._device]

    def _description(self) -> tuple:
        return [self._device.id], None, [], [process_index(), self._device.process_index], []

    def _pickled(self) -> tuple:
        return (self._device.id,)

    def _parts(self, shape: Sequence[int]) -> dict[Device, tuple[slice, ...]]:
        return {self._device: tuple(slice(0, n) for n in shape)}

    def shard_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SingleDeviceSharding) and self._device is other._device

    def __hash__(self) -> int:
        return hash(self._device.id)

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device})"


def spec_of_types(spec: PartitionSpec, mesh: Mesh | AbstractMesh) -> PartitionSpec:
    """The spec along axes of type Explicit alone."""
    said = set(mesh.explicit_axes)
    dims = [
        dim if dim is PartitionSpec.UNCONSTRAINED else tuple(name for name in names if name in said)
        for dim, names in zip(spec, spec_axes(spec))
    ]
    return PartitionSpec(*dims, unreduced=spec.unreduced & said, reduced=spec.reduced & said)


class NamedSharding(Sharding):
    """Cut over a mesh as a PartitionSpec says; the same on all devices along axes that it does not name.

    Args:
        mesh: the mesh; of a weft.AbstractMesh the devices are those of the mesh around the call that uses it.
        spec: the PartitionSpec.
        memory_kind: accepted, without effect: there is one memory.

    Raises:
        TypeError: they are something else.
        ValueError: the spec names an axis that the mesh does not have, or one twice.

    Example:
        >>> mesh = weft.make_mesh((1,), ("x",))
        >>> weft.NamedSharding(mesh, weft.P("x")).shard_shape((4, 2))
        (4, 2)
    """

    mesh: Any

    def __init__(self, mesh: Mesh | AbstractMesh, spec: PartitionSpec, *, memory_kind: str | None = None):
        del memory_kind
        if not isinstance(mesh, (Mesh, AbstractMesh)) or not isinstance(spec, PartitionSpec):
            raise type_error(f"NamedSharding: expected a mesh and a PartitionSpec, got {mesh!r} and {spec!r}")
        self.mesh, self.spec = mesh, spec
        cuts_of(self.mesh, spec, [0] * len(spec), "NamedSharding", may_be_open=True)

    def on_devices(self, what: str) -> NamedSharding:
        """The same on the mesh around the call, where this one has no devices."""
        return NamedSharding(check_mesh(self.mesh, what), self.spec) if isinstance(self.mesh, AbstractMesh) else self

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds all of it."""
        cut = [name for names in spec_axes(self.spec) for name in names]
        return all(self.mesh.shape[name] == 1 for name in [*cut, *self.spec.unreduced])

    def with_memory_kind(self, kind: str) -> NamedSharding:
        """The same in a memory of the devices.

        Args:
            kind: accepted, without effect: there is one memory.

        Returns: NamedSharding.

        Example:
            >>> sharding = weft.NamedSharding(weft.make_mesh((1,), ("x",)), weft.PartitionSpec("x"))
            >>> sharding.with_memory_kind("device") == sharding
            True
        """
        return self.update(memory_kind=kind)

    def update(self, *, mesh: Any = None, spec: Any = None, memory_kind: str | None = None) -> NamedSharding:
        """The same with another mesh or spec (a PartitionSpec, or what it is made of).

        Args:
            mesh: the mesh; None: as it is.
            spec: how dimensions are cut; None: as they are.
            memory_kind: accepted, without effect.

        Returns: weft.NamedSharding.

        Example:
            >>> weft.NamedSharding(weft.AbstractMesh((2,), ("x",)), weft.P("x")).update(spec=(None, "x")).spec
            PartitionSpec(None, 'x')
        """
        if spec is not None and not isinstance(spec, PartitionSpec):
            spec = PartitionSpec(*spec)
        return NamedSharding(
            self.mesh if mesh is None else mesh, self.spec if spec is None else spec, memory_kind=memory_kind
        )

    def with_each_dim(self, rank: int) -> NamedSharding:
        """The same with an entry of the spec for each of so many dimensions."""
        missing = rank - len(self.spec)
        if missing <= 0:
            return self
        sums = {"unreduced": self.spec.unreduced, "reduced": self.spec.reduced}
        return NamedSharding(self.mesh, PartitionSpec(*self.spec, *[None] * missing, **sums))

    def said_by_types(self) -> NamedSharding:
        """The same along axes of type Explicit alone: what types say."""
        spec = spec_of_types(self.spec, self.mesh)
        return self if spec == self.spec else NamedSharding(self.mesh, spec)

    def _has_devices(self) -> bool:
        return isinstance(self.mesh, Mesh)

    def _device_list(self) -> list[Device]:
        if isinstance(self.mesh, AbstractMesh):
            raise value_error(f"NamedSharding: {self.mesh} has no devices")
        return list(self.mesh.devices.flat)

    def _description(self) -> tuple:
        devices, cuts = [d.id for d in self._device_list()], spec_axes(self.spec)
        return devices, mesh_axes(self.mesh), cuts, processes_of(self.mesh), axes_in_parts(self.mesh, self.spec)

    def _pickled(self) -> tuple:
        return mesh_axes(self.mesh), [d.id for d in self._device_list()], tuple(self.spec)

    def _names_of(self, dim: int) -> tuple[str, ...]:
        """The axes that cut a dimension."""
        return spec_axes(self.spec)[dim] if dim < len(self.spec) else ()

    def _replicated(self) -> NamedSharding:
        """Everything on all devices of the mesh."""
        return NamedSharding(self.mesh, PartitionSpec())

    def shard_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        cuts = cuts_of(self.mesh, self.spec, shape, "NamedSharding", may_be_open=True)
        return tuple(n // math.prod(self.mesh.shape[a] for a in names) for n, names in zip(shape, cuts))

    def _parts(self, shape: Sequence[int]) -> dict[Device, tuple[slice, ...]]:
        cuts = cuts_of(self.mesh, self.spec, shape, "NamedSharding", may_be_open=True)
        block = self.shard_shape(shape)
        found: dict[Device, tuple[slice, ...]] = {}
        for at in np.ndindex(self.mesh.devices.shape):
            place = dict(zip(self.mesh.axis_names, at))
            index = []
            for names, size in zip(cuts, block):
                k = 0
                for name in names:
                    k = k * self.mesh.shape[name] + place[name]
                index.append(slice(k * size, (k + 1) * size))
            found[self.mesh.devices.item(at)] = tuple(index)
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedSharding) and self.mesh == other.mesh and self.spec == other.spec

    def __hash__(self) -> int:
        return hash((self.mesh, self.spec))

    def __repr__(self) -> str:
        return f"NamedSharding({self.mesh}, {self.spec})"


def with_open_dims(mesh: Mesh, spec: PartitionSpec) -> NamedSharding:
    """The sharding of a spec that leaves dimensions open, on a mesh of axes of any type: what a rule says of a value,
    not what programs may ask for."""
    made = NamedSharding.__new__(NamedSharding)
    made.mesh, made.spec = mesh, spec
    return made


def shown_part(index: tuple[slice, ...], shape: Sequence[int]) -> tuple[slice, ...]:
    """A part of an array; where JAX's meaning is asked for, slice(None) along dimensions that are not cut."""
    if not _tree.jax_semantics():
        return index
    return tuple(slice(None) if (s.start, s.stop) == (0, n) else s for s, n in zip(index, shape))


def axes_in_parts(mesh: Mesh, spec: PartitionSpec) -> list[str]:
    """The axes along which devices hold parts of a sum, each its own. Those of several processes do not: there the
    first device along these axes has all of it."""
    if not spec.unreduced or any(d.process_index != process_index() for d in mesh.devices.flat):
        return []
    return [name for name in mesh.axis_names if name in spec.unreduced and mesh.shape[name] > 1]


def holds_sum(sharding: Sharding, device: Device) -> bool:
    """Whether a device holds its block of an array: where the array is a sum in parts over several processes, those
    that are first along the axes of the sum do, and the others hold zeros."""
    if not isinstance(sharding, NamedSharding) or not sharding.spec.unreduced:
        return True
    if axes_in_parts(sharding.mesh, sharding.spec):
        return True
    mesh = sharding.mesh
    place = next(at for at in np.ndindex(mesh.devices.shape) if mesh.devices[at] is device)
    return all(k == 0 for name, k in zip(mesh.axis_names, place) if name in sharding.spec.unreduced)


def spans_processes(sharding: Any) -> bool:
    """Whether arrays that lie so have parts in other processes that this one has not."""
    return (
        isinstance(sharding, NamedSharding) and not sharding.is_fully_addressable and not sharding.is_fully_replicated
    )


def processes_of(mesh: Mesh) -> list[int]:
    """This process, then that of each device of the mesh, as the native module takes them."""
    return [process_index(), *(d.process_index for d in mesh.devices.flat)]


def held_blocks(sharding: Sharding, shape: Sequence[int]) -> list[tuple[slice, ...]]:
    """The parts that this process holds of an array of this shape, each once, in the order in which it keeps them."""
    found: dict[tuple, tuple[slice, ...]] = {}
    here = process_index()
    for device, index in sharding._parts(shape).items():
        if device.process_index == here:
            found.setdefault(tuple((s.start, s.stop) for s in index), index)
    return list(found.values())


def cut_by(name: str, axes: Any, what: str) -> Any:
    """The specs of arrays whose dimensions `axes` an axis of the mesh cuts; a tree of such numbers, too."""

    def spec(axis: Any) -> PartitionSpec:
        if axis is None:
            return PartitionSpec()
        if not isinstance(axis, int) or isinstance(axis, bool):
            raise type_error(f"smap: {what} must hold integers and None, got {axis!r}")
        if axis < 0:
            raise value_error(f"smap: {what} has {axis}; dimensions are counted from the front")
        return PartitionSpec(*[None] * axis, name)

    return _tree.map(spec, axes, is_leaf=lambda axis: axis is None)


class _Entry:
    """One entry of a prefix: a PartitionSpec is a tuple, and None is a container, too."""

    def __init__(self, value: Any):
        self.value = value


def check_entries(prefix: Any, is_entry: Callable[[Any], bool], what: str, expected: str) -> Any:
    """The prefix with its entries wrapped. Raises TypeError, which says what is expected, for another leaf of it."""

    def wrapped(leaf: Any) -> _Entry:
        if not is_entry(leaf):
            raise type_error(f"{what}: expected {expected}, got {leaf!r} of type '{type(leaf).__name__}'")
        return _Entry(leaf)

    return _tree.map(wrapped, prefix, is_leaf=is_entry)


def prefix_entries(prefix: Any, is_entry: Callable[[Any], bool], tree: Any, what: str, expected: str) -> list:
    """One entry of a tree, in containers of any class, for every leaf of `tree`: a prefix suffices."""
    return [entry.value for entry in _tree.prefix_leaves(check_entries(prefix, is_entry, what, expected), tree, what)]


def is_spec(node: Any) -> bool:
    """Whether it is what in_specs and out_specs say of an array."""
    return node is None or isinstance(node, PartitionSpec)


def prefix_specs(specs: Any, tree: Any, what: str) -> list:
    """One entry of a tree of PartitionSpecs for every leaf of `tree`: a prefix suffices."""
    return prefix_entries(specs, is_spec, tree, what, "PartitionSpecs")
