"""Devices, meshes of them, and how arrays lie on them.

There is one device, the CPU, unless the environment variable WEFT_NUM_CPU_DEVICES asks for more: then the process has
that many virtual devices, which share its memory and its threads. After weft.distributed.initialize() there are those
of all processes of the job.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from . import _weft
from . import tree as _tree
from ._errors import runtime_error, type_error, value_error
from .collectives import check_axis_name

__all__ = [
    "Device",
    "Mesh",
    "NamedSharding",
    "P",
    "PartitionSpec",
    "Shard",
    "Sharding",
    "SingleDeviceSharding",
    "device_count",
    "device_put",
    "devices",
    "local_device_count",
    "local_devices",
    "make_mesh",
    "process_count",
    "process_index",
    "visualize_array_sharding",
]


class Device:
    """One device: `id`, `platform` and `device_kind` ("cpu") and `process_index`. weft.devices() lists them.

    Args:
        number: its place in that list.
        process_index: the process that it belongs to.

    Example:
        >>> weft.devices()[0].platform
        'cpu'
    """

    __slots__ = ("device_kind", "id", "platform", "process_index")

    def __init__(self, number: int, process_index: int = 0):
        self.id, self.platform, self.device_kind, self.process_index = number, "cpu", "cpu", process_index

    def __repr__(self) -> str:
        return f"CpuDevice(id={self.id})"

    def __reduce__(self):
        return device_of_pickle, (self.id,)


def device_of_pickle(number: int) -> Device:
    """The device with this number. Raises ValueError where there are not so many."""
    among = devices()
    if number >= len(among):
        raise value_error(
            f"a pickle names device {number}, but there are {len(among)} devices "
            "(WEFT_NUM_CPU_DEVICES sets the number of virtual devices of the process)"
        )
    return among[number]


_MOST_DEVICES = 4096
_devices: list[Device] = []
_process = [0, 1]  # this one, and how many there are


def own_device_count() -> int:
    """How many devices this process has, as WEFT_NUM_CPU_DEVICES says. Raises ValueError for what is no number."""
    given = os.environ.get("WEFT_NUM_CPU_DEVICES") or "1"
    if not given.isdecimal() or not 1 <= int(given) <= _MOST_DEVICES:
        raise value_error(f"WEFT_NUM_CPU_DEVICES is {given!r}; expected a number from 1 to {_MOST_DEVICES}")
    return int(given)


def devices_were_listed() -> bool:
    """Whether somebody has asked for the devices."""
    return bool(_devices)


def set_processes(rank: int, counts: Sequence[int]) -> None:
    """There are as many processes as `counts`, with so many devices each, and this is number `rank`."""
    _process[:] = [rank, len(counts)]
    _devices[:] = [Device(i, p) for i, p in enumerate(p for p, n in enumerate(counts) for _ in range(n))]


def process_index() -> int:
    """The number of this process in its job; 0 where weft.distributed.initialize() was not called.

    Returns: integer.

    Example:
        >>> weft.process_index()
        0
    """
    return _process[0]


def process_count() -> int:
    """How many processes the job has.

    Returns: integer.

    Example:
        >>> weft.process_count()
        1
    """
    return _process[1]


def default_backend() -> str:
    """The platform of the devices that arrays lie on.

    Returns: text, as Device.platform.

    Example:
        >>> weft.default_backend()
        'cpu'
    """
    return devices()[0].platform


def devices(backend: str | None = None) -> list[Device]:
    """The devices there are, in order: one, or as many virtual ones as WEFT_NUM_CPU_DEVICES says; after
    weft.distributed.initialize() those of all processes, one process after the other.

    Args:
        backend: "cpu" or None.

    Returns: list of weft.Device.

    Raises:
        ValueError: there is no such backend; WEFT_NUM_CPU_DEVICES is no number of devices.

    Example:
        >>> weft.devices()
        [CpuDevice(id=0)]
    """
    if backend not in (None, "cpu"):
        raise value_error(f"devices: there is no backend {backend!r}; there is 'cpu'")
    if not _devices:
        _devices.extend(Device(i) for i in range(own_device_count()))
    return list(_devices)


def local_devices(process_index: int | None = None) -> list[Device]:
    """The devices of one process.

    Args:
        process_index: its number; None: this one.

    Returns: list of weft.Device.

    Raises:
        ValueError: there is no such process.

    Example:
        >>> weft.local_devices()
        [CpuDevice(id=0)]
    """
    wanted = _process[0] if process_index is None else process_index
    if not 0 <= wanted < _process[1]:
        raise value_error(f"local_devices: there is no process {wanted}; there are {_process[1]}")
    return [d for d in devices() if d.process_index == wanted]


def device_count() -> int:
    """How many devices there are.

    Returns: integer.

    Example:
        >>> weft.device_count()
        1
    """
    return len(devices())


def local_device_count() -> int:
    """How many devices this process has.

    Returns: integer.

    Example:
        >>> weft.local_device_count()
        1
    """
    return len(local_devices())


class Mesh:
    """Devices in an array, each dimension of which has a name. `with mesh:` makes it the mesh that shard_map uses where
    none is given, in this thread.

    Args:
        devices: array of weft.Device, each at most once.
        axis_names: a name for each dimension: words.

    Raises:
        TypeError: something is no device.
        ValueError: names do not fit the dimensions or are there twice; a device is there twice; there is none.

    Example:
        >>> mesh = weft.Mesh([[weft.devices()[0]]], ("data", "model"))
        >>> mesh.shape
        {'data': 1, 'model': 1}
    """

    def __init__(self, devices: Any, axis_names: str | Sequence[str]):
        self.devices = np.asarray(devices, dtype=object)
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if self.devices.ndim != len(names):
            raise value_error(f"Mesh: {len(names)} axis names {names} for devices in {self.devices.ndim} dimensions")
        for name in names:
            check_axis_name(name, "Mesh")
        if len(set(names)) != len(names):
            raise value_error(f"Mesh: an axis is named twice in {names}")
        for device in self.devices.flat:
            if not isinstance(device, Device):
                raise type_error(f"Mesh: expected devices, got {device!r} of type '{type(device).__name__}'")
        if len({d.id for d in self.devices.flat}) != self.devices.size:
            raise value_error("Mesh: a device is there twice")
        if self.devices.size == 0:
            raise value_error("Mesh: no devices")
        self.axis_names = names

    @property
    def shape(self) -> dict[str, int]:
        """The size of each axis."""
        return dict(zip(self.axis_names, self.devices.shape))

    @property
    def size(self) -> int:
        """How many devices it has."""
        return self.devices.size

    @property
    def local_devices(self) -> list[Device]:
        """Its devices that belong to this process, in the order of the mesh."""
        return [d for d in self.devices.flat if d.process_index == _process[0]]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Mesh)
            and self.axis_names == other.axis_names
            and self.devices.shape == other.devices.shape
            and all(a is b for a, b in zip(self.devices.flat, other.devices.flat))
        )

    def __hash__(self) -> int:
        return hash((self.axis_names, self.devices.shape, tuple(d.id for d in self.devices.flat)))

    def __repr__(self) -> str:
        return "Mesh(" + ", ".join(f"{name!r}: {size}" for name, size in self.shape.items()) + ")"

    # The mesh that shard_map uses where none is given.
    def __enter__(self) -> Mesh:
        _around.meshes.append(self)
        _weft.set_mesh_around(self)
        return self

    def __exit__(self, *_: object) -> None:
        if not _around.meshes:
            raise runtime_error("`with mesh:` must end in the thread in which it began")
        _around.meshes.pop()
        _weft.set_mesh_around(current_mesh())


class _Around(threading.local):
    """The meshes of the `with mesh:` around what this thread runs, the innermost last."""

    def __init__(self) -> None:
        self.meshes: list[Mesh] = []


_around = _Around()


def current_mesh() -> Mesh | None:
    """The innermost mesh of a `with mesh:` around the caller."""
    return _around.meshes[-1] if _around.meshes else None


def make_mesh(
    axis_shapes: Sequence[int], axis_names: Sequence[str], *, devices: Sequence[Device] | None = None
) -> Mesh:
    """A mesh of the first devices there are, in order.

    Args:
        axis_shapes: the size of each axis.
        axis_names: its name.
        devices: the devices to take from; None: all.

    Returns: weft.Mesh.

    Raises:
        ValueError: there are not enough devices; names do not fit.

    Example:
        >>> weft.make_mesh((1,), ("x",))
        Mesh('x': 1)
    """
    shape = tuple(int(n) for n in axis_shapes)
    if any(n < 1 for n in shape):
        raise value_error(f"make_mesh: sizes of axes are 1 or more, got {shape}")
    given = _all_devices() if devices is None else list(devices)
    if math.prod(shape) > len(given):
        raise value_error(
            f"make_mesh: a mesh of shape {shape} has {math.prod(shape)} devices, but there are {len(given)} "
            "(WEFT_NUM_CPU_DEVICES sets the number of virtual devices of the process)"
        )
    return Mesh(np.array(given[: math.prod(shape)], dtype=object).reshape(shape), tuple(axis_names))


_all_devices = devices


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

    Raises:
        TypeError, ValueError: something is no name of an axis.

    Example:
        >>> weft.P("data", None, ("x", "y"))
        PartitionSpec('data', None, ('x', 'y'))
    """

    __slots__ = ()

    UNCONSTRAINED = _UNCONSTRAINED

    def __new__(cls, *dims: Any) -> PartitionSpec:
        checked: list[Any] = []
        for dim in dims:
            if isinstance(dim, (tuple, list)):
                for name in dim:
                    check_axis_name(name, "PartitionSpec")
                checked.append(tuple(dim) if len(dim) > 1 else dim[0] if dim else None)
            elif dim is None or dim is _UNCONSTRAINED:
                checked.append(dim)
            else:
                checked.append(check_axis_name(dim, "PartitionSpec"))
        return super().__new__(cls, checked)

    def __repr__(self) -> str:
        return f"PartitionSpec({', '.join(map(repr, self))})"

    def __reduce__(self):
        return PartitionSpec, tuple(self)


P = PartitionSpec


def spec_axes(spec: PartitionSpec) -> list[tuple[str, ...]]:
    """The names of the axes of each dimension that a spec has an entry for."""
    return [(dim,) if isinstance(dim, str) else dim if isinstance(dim, tuple) else () for dim in spec]


def cuts_of(
    mesh: Mesh, spec: PartitionSpec, shape: Sequence[Any], what: str, *, may_be_open: bool = False
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
    axes += [()] * (len(shape) - len(axes))
    for d, names in enumerate(axes):
        count = math.prod(mesh.shape[name] for name in names)
        if count > 1 and isinstance(shape[d], int) and shape[d] % count:
            raise value_error(
                f"{what}: dimension {d} of an array of shape {tuple(shape)} has size {shape[d]}, which {count} devices "
                f"cannot share evenly ({spec} on {mesh})"
            )
    return axes


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
        raise NotImplementedError

    def shard_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of one device's part of an array of this shape."""
        raise NotImplementedError

    @property
    def device_set(self) -> set[Device]:
        """The devices that hold a part."""
        return set(self._device_list())

    @property
    def addressable_devices(self) -> set[Device]:
        """Those that belong to this process."""
        return {d for d in self._device_list() if d.process_index == _process[0]}

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether the same devices hold the same parts of every array of `ndim` dimensions that both fit."""
        if not isinstance(other, Sharding):
            raise type_error(f"is_equivalent_to: expected a sharding, got {other!r}")
        # A size that all cuts of both divide evenly tells all parts apart.
        shape = (math.lcm(self.num_devices, other.num_devices),) * ndim
        return self.devices_indices_map(shape) == other.devices_indices_map(shape)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices that hold a part belong to this process."""
        return all(d.process_index == _process[0] for d in self._device_list())

    def addressable_devices_indices_map(self, shape: Sequence[int]) -> dict[Device, tuple[slice, ...]]:
        """For every device of this process, the part of an array of this shape that it holds."""
        return {d: index for d, index in self.devices_indices_map(shape).items() if d.process_index == _process[0]}

    @property
    def num_devices(self) -> int:
        """How many devices hold a part."""
        return len(self._device_list())

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

    Example:
        >>> weft.SingleDeviceSharding(weft.devices()[0]).shard_shape((4, 2))
        (4, 2)
    """

    def __init__(self, device: Device):
        self._device = device

    @property
    def is_fully_replicated(self) -> bool:
        return True

    def _device_list(self) -> list[Device]:
        return [self._device]

    def _description(self) -> tuple:
        return [self._device.id], None, [], [_process[0], self._device.process_index]

    def _pickled(self) -> tuple:
        return (self._device.id,)

    def devices_indices_map(self, shape: Sequence[int]) -> dict[Device, tuple[slice, ...]]:
        return {self._device: tuple(slice(0, n) for n in shape)}

    def shard_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SingleDeviceSharding) and self._device is other._device

    def __hash__(self) -> int:
        return hash(self._device.id)

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device})"


class NamedSharding(Sharding):
    """Cut over a mesh as a PartitionSpec says; the same on all devices along axes that it does not name.

    Args:
        mesh: the mesh.
        spec: the PartitionSpec.

    Raises:
        TypeError: they are something else.
        ValueError: the spec names an axis that the mesh does not have, or one twice.

    Example:
        >>> mesh = weft.make_mesh((1,), ("x",))
        >>> weft.NamedSharding(mesh, weft.P("x")).shard_shape((4, 2))
        (4, 2)
    """

    def __init__(self, mesh: Mesh, spec: PartitionSpec):
        if not isinstance(mesh, Mesh) or not isinstance(spec, PartitionSpec):
            raise type_error(f"NamedSharding: expected a mesh and a PartitionSpec, got {mesh!r} and {spec!r}")
        cuts_of(mesh, spec, [0] * len(spec), "NamedSharding", may_be_open=True)
        self.mesh, self.spec = mesh, spec

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds all of it."""
        return all(self.mesh.shape[name] == 1 for names in spec_axes(self.spec) for name in names)

    def _device_list(self) -> list[Device]:
        return list(self.mesh.devices.flat)

    def _description(self) -> tuple:
        return [d.id for d in self._device_list()], mesh_axes(self.mesh), spec_axes(self.spec), processes_of(self.mesh)

    def _pickled(self) -> tuple:
        return mesh_axes(self.mesh), [d.id for d in self._device_list()], tuple(self.spec)

    def _replicated(self) -> NamedSharding:
        """Everything on all devices of the mesh."""
        return NamedSharding(self.mesh, PartitionSpec())

    def shard_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        cuts = cuts_of(self.mesh, self.spec, shape, "NamedSharding", may_be_open=True)
        return tuple(n // math.prod(self.mesh.shape[a] for a in names) for n, names in zip(shape, cuts))

    def devices_indices_map(self, shape: Sequence[int]) -> dict[Device, tuple[slice, ...]]:
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


class Shard:
    """What one device holds of an array: `device`, `index` (slices of the whole), `replica_id` (how many devices before
    this one hold the same) and `data`. Array.addressable_shards lists those of this process, Array.global_shards all.

    Args:
        array: the whole.
        device: the device.
        index: which part.
        replica_id: how many devices before this one hold the same.

    Example:
        >>> wnp.arange(3).addressable_shards
        [Shard(device=CpuDevice(id=0), index=(slice(0, 3, None),), replica_id=0)]
    """

    __slots__ = ("_array", "device", "index", "replica_id")

    def __init__(self, array: Any, device: Device, index: tuple[slice, ...], replica_id: int):
        self._array, self.device, self.index, self.replica_id = array, device, index, replica_id

    @property
    def data(self):
        """The part as an array of its own; None where another process has it."""
        if self.device.process_index != _process[0]:
            return None
        here = SingleDeviceSharding(self.device)
        sharding = _weft.sharding_of(self._array)
        if sharding is None:
            return put(self._array, here)
        own = [d for d in sharding._device_list() if d.process_index == _process[0]]
        return _weft.block_of_device(self._array, own.index(self.device), here)

    def __repr__(self) -> str:
        return f"Shard(device={self.device}, index={self.index}, replica_id={self.replica_id})"


def spans_processes(sharding: Any) -> bool:
    """Whether arrays that lie so have parts in other processes that this one has not."""
    return (
        isinstance(sharding, NamedSharding) and not sharding.is_fully_addressable and not sharding.is_fully_replicated
    )


def processes_of(mesh: Mesh) -> list[int]:
    """This process, then that of each device of the mesh, as the native module takes them."""
    return [_process[0], *(d.process_index for d in mesh.devices.flat)]


def held_blocks(sharding: Sharding, shape: Sequence[int]) -> list[tuple[slice, ...]]:
    """The parts that this process holds of an array of this shape, each once, in the order in which it keeps them."""
    found: dict[tuple, tuple[slice, ...]] = {}
    for index in sharding.addressable_devices_indices_map(shape).values():
        found.setdefault(tuple((s.start, s.stop) for s in index), index)
    return list(found.values())


def put(x: Any, sharding: Sharding):
    """A concrete array with another sharding. Between processes a jitted function moves it."""
    if isinstance(x, _weft.Array) and _weft.spans(x):
        if x.sharding == sharding:
            return x
        if not isinstance(sharding, NamedSharding) or sharding.mesh != x.sharding.mesh:
            raise value_error(
                f"device_put: an array of shape {x.shape} that spans several processes, {x.sharding}, can be moved to "
                f"another sharding on its mesh; got {sharding}. multihost_utils.process_allgather brings all of it"
            )
        from .compiled import jit

        return jit(_identity, out_shardings=sharding)(x)
    x = _weft.array(x, None, False)
    if isinstance(sharding, NamedSharding):
        if not sharding.addressable_devices:
            raise value_error(f"device_put: process {_process[0]} has no device of {sharding.mesh}")
        cuts_of(sharding.mesh, sharding.spec, x.shape, "device_put")
    return _weft.with_sharding(x, sharding)


def _identity(x: Any) -> Any:
    return x


def device_put(x: Any, device: Any = None) -> Any:
    """The arrays of a tree on a device, or cut over a mesh. Virtual devices share their memory, so little moves. Traced
    values have no place yet: they stay as they are. Over a mesh of several processes each gives the same array, and
    keeps what its devices hold.

    Args:
        x: NumPy array, array, number or tree of them.
        device: a weft.Device, a weft.Sharding, or a tree of them (a prefix of x suffices); None: the first device.

    Returns: tree of arrays.

    Raises:
        TypeError: a leaf is no array or number, or `device` something else.
        ValueError: a sharding does not fit an array.

    Example:
        >>> weft.device_put(wnp.arange(4.0), weft.devices()[0]).sharding
        SingleDeviceSharding(device=CpuDevice(id=0))
    """
    leaves, tree = _tree.flatten(x)
    places = (
        [device] * len(leaves) if not _is_container(device) else _tree.prefix_leaves(device, x, "device_put: device")
    )
    out = []
    for leaf, place in zip(leaves, places):
        spans = isinstance(leaf, _weft.Array) and _weft.spans(leaf)
        array = leaf if spans else _weft.array(leaf, None, True)
        if isinstance(place, Device):
            place = SingleDeviceSharding(place)
        if place is not None and not isinstance(place, Sharding):
            raise type_error(
                f"device_put: expected a device or a sharding, got {place!r} of type '{type(place).__name__}'"
            )
        if place is not None and (spans or not _weft.is_traced(array)):
            if isinstance(place, SingleDeviceSharding) and not place.is_fully_addressable:
                raise value_error(f"device_put: {place._device} belongs to another process")
            if isinstance(place, NamedSharding):
                cuts_of(place.mesh, place.spec, array.shape, "device_put")
            array = put(array, place)
        out.append(array)
    return _tree.unflatten(tree, out)


def _is_container(x: Any) -> bool:
    return isinstance(x, (tuple, list, dict)) and not isinstance(x, PartitionSpec)


def _sharding_of(array: Any) -> Sharding:
    """Array.sharding."""
    return _weft.sharding_of(array) or SingleDeviceSharding(local_devices()[0])


def _shards_of(array: Any) -> list[Shard]:
    """Array.addressable_shards."""
    return [shard for shard in global_shards(array) if shard.device.process_index == _process[0]]


def global_shards(array: Any) -> list[Shard]:
    """What each device holds of the array, those of other processes included: their `data` is None.

    Example:
        >>> [shard.index for shard in wnp.arange(3).global_shards]
        [(slice(0, 3, None),)]
    """
    seen: dict[tuple, int] = {}
    shards = []
    for device, index in _sharding_of(array).devices_indices_map(array.shape).items():
        key = tuple((s.start, s.stop) for s in index)
        shards.append(Shard(array, device, index, seen.get(key, 0)))
        seen[key] = seen.get(key, 0) + 1
    return shards


def addressable_data(self: Any, index: int) -> Any:
    """What one device of this process holds of the array: x.addressable_shards[index].data.

    Args:
        index: which of these devices.

    Returns: array.

    Raises:
        IndexError: there are not so many.

    Example:
        >>> wnp.arange(3).addressable_data(0)
        Array([0, 1, 2], dtype=int32)
    """
    return _shards_of(self)[index].data


def _is_fully_addressable(array: Any) -> bool:
    """Array.is_fully_addressable."""
    return _sharding_of(array).is_fully_addressable


def _is_fully_replicated(array: Any) -> bool:
    """Array.is_fully_replicated."""
    return _sharding_of(array).is_fully_replicated


def _devices_of(array: Any) -> set[Device]:
    """Array.devices()."""
    return set(_sharding_of(array)._device_list())


def visualize_array_sharding(x: Any, *, use_color: bool = False) -> str:
    """Prints a picture of who holds what of an array.

    Args:
        x: array of one or two dimensions.
        use_color: accepted, without effect.

    Returns: the picture, a string.

    Raises:
        ValueError: the array has other dimensions.

    Example:
        >>> picture = weft.debug.visualize_array_sharding(wnp.zeros((4, 4)))
        ┌───────┐
        │ CPU 0 │
        └───────┘
    """
    del use_color
    if not 1 <= x.ndim <= 2:
        raise value_error(f"visualize_array_sharding: the array has {x.ndim} dimensions; expected 1 or 2")
    holders: dict[tuple[int, int], list[int]] = {}
    for device, index in x.sharding.devices_indices_map(x.shape).items():
        starts = [s.start for s in index]
        row, column = (0, starts[0]) if x.ndim == 1 else (starts[0], starts[1])
        holders.setdefault((row, column), []).append(device.id)
    rows, columns = sorted({r for r, _ in holders}), sorted({c for _, c in holders})
    text = {place: "CPU " + ",".join(map(str, sorted(ids))) for place, ids in holders.items()}
    width = max(map(len, text.values())) + 2
    line = lambda left, middle, right: left + middle.join(["─" * width] * len(columns)) + right
    lines = [line("┌", "┬", "┐")]
    for i, row in enumerate(rows):
        lines.append("│" + "│".join(text[row, column].center(width) for column in columns) + "│")
        lines.append(line("├", "┼", "┤") if i + 1 < len(rows) else line("└", "┴", "┘"))
    picture = "\n".join(lines)
    print(picture)
    return picture


def mesh_axes(mesh: Mesh) -> list[tuple[str, int]]:
    """The names and sizes of the axes, as the native module takes them."""
    return list(mesh.shape.items())


def mesh_devices(mesh: Mesh) -> list[int]:
    """The numbers of its devices, as the native module takes them: none where they are 0, 1, 2 ..."""
    numbers = [d.id for d in mesh.devices.flat]
    return [] if numbers == list(range(mesh.size)) else numbers


def mesh_of(axes: Sequence[tuple[str, int]], numbers: Sequence[int]) -> Mesh:
    """The mesh of these axes and devices, as the native module gives them."""
    sizes, among = [size for _, size in axes], devices()
    wanted = numbers or range(math.prod(sizes))
    if max(wanted) >= len(among):
        raise value_error(f"jit: a program names device {max(wanted)}, but there are {len(among)} devices")
    chosen = [among[i] for i in wanted]
    return Mesh(np.array(chosen, dtype=object).reshape(sizes), [name for name, _ in axes])


def check_mesh(mesh: Any, what: str) -> Mesh:
    """The mesh that is given, or the one around the caller."""
    mesh = current_mesh() if mesh is None else mesh
    if mesh is None:
        raise value_error(f"{what}: no mesh is given, and there is none around the call (`with mesh:`)")
    if not isinstance(mesh, Mesh):
        raise type_error(f"{what}: mesh is {mesh!r} of type '{type(mesh).__name__}'; expected a weft.Mesh")
    return mesh


def prefix_specs(specs: Any, tree: Any, what: str) -> list:
    """One entry of a tree of PartitionSpecs for every leaf of `tree`: a prefix suffices."""

    class Entry:  # a PartitionSpec is a tuple, which would be taken for a container
        def __init__(self, spec: Any):
            self.spec = spec

    def wrap(node: Any) -> Any:
        if node is None or isinstance(node, PartitionSpec):
            return Entry(node)
        if isinstance(node, (tuple, list)):
            kind = type(node)
            return kind(*map(wrap, node)) if hasattr(node, "_fields") else kind(map(wrap, node))
        if isinstance(node, dict):
            return type(node)((k, wrap(v)) for k, v in node.items())
        raise type_error(f"{what}: expected PartitionSpecs, got {node!r} of type '{type(node).__name__}'")

    return [entry.spec for entry in _tree.prefix_leaves(wrap(specs), tree, what)]


def first_devices(count: int, given: Iterable[Device] | None, what: str) -> list[Device]:
    """So many devices. Raises ValueError when there are fewer."""
    among = devices() if given is None else list(given)
    if count > len(among):
        raise value_error(
            f"{what}: {count} devices are needed, but there are {len(among)} "
            "(WEFT_NUM_CPU_DEVICES sets the number of virtual devices of the process)"
        )
    return among[:count]
