"""Arrays on devices: put there, and what each device holds of them."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _pickled, _weft
from .._core import tree as _tree
from .._core import watching
from .._core.errors import value_error
from .devices import Device, device_of_pickle, local_devices, process_index
from .meshes import Mesh, check_mesh
from .shardings import (
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    axes_in_parts,
    cuts_of,
    holds_sum,
    prefix_entries,
    renamed,
    shown_part,
    spec_axes,
)


def put(x: Any, sharding: Sharding, own: bool | None = False):
    """A concrete array with another sharding, `own`: in memory of its own (None: unless nothing has to move). Between
    processes a jitted function moves it."""
    if isinstance(x, _weft.Array) and _weft.spans(x):
        return _put_over_processes(x, sharding, own)
    x = _weft.array(x, None, False)
    if isinstance(sharding, NamedSharding):
        if not sharding.addressable_devices:
            raise value_error(f"device_put: process {process_index()} has no device of {sharding.mesh}")
        cuts_of(sharding.mesh, sharding.spec, x.shape, "device_put")
        if _is_cut_along_sum(x, sharding):
            return move_by_program(x, sharding)
    return _weft.with_sharding(x, sharding, own)


def _is_cut_along_sum(x: Any, sharding: NamedSharding) -> bool:
    """Whether an array is to be a sum in parts along axes that cut it: a device's part is its block then."""
    axes, place = axes_in_parts(sharding.mesh, sharding.spec), _weft.sharding_of(x)
    return (
        bool(axes)
        and isinstance(place, NamedSharding)
        and place.mesh.same_place(sharding.mesh)
        and any(name in axes for names in spec_axes(place.spec) for name in names)
    )


def _put_over_processes(x: Any, sharding: Sharding, own: bool | None) -> Any:
    if x.sharding == sharding:
        return _weft.with_sharding(x, sharding, own)
    if isinstance(sharding, NamedSharding):
        if sharding.mesh.same_place(x.sharding.mesh):
            return move_by_program(x, sharding)
        if (names := common_axes(x.sharding.mesh, sharding.mesh)) is not None:
            # Both cut the array over axes of one finer mesh: the first and the last step copy nothing.
            mesh, of_source, of_target = names
            finer = NamedSharding(mesh, renamed(x.sharding.spec, of_source))
            moved = move_by_program(
                _weft.with_sharding(x, finer, False), NamedSharding(mesh, renamed(sharding.spec, of_target))
            )
            return _weft.with_sharding(moved, sharding, False)
        if sharding.device_set == x.sharding.device_set:
            # In another order, or by axes that do not divide each other: every process has all of it for a moment.
            whole = move_by_program(x, NamedSharding(x.sharding.mesh, PartitionSpec()))
            return _weft.with_sharding(whole, sharding, own)
    raise value_error(
        f"device_put: an array of shape {x.shape} that spans several processes, {x.sharding}, can be moved to another "
        f"sharding on its devices; got {sharding}. multihost_utils.process_allgather brings all of it"
    )


def common_axes(a: Mesh, b: Mesh) -> tuple[Mesh, dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]] | None:
    """A mesh of the same devices whose axes both have, or parts of them, and the names of the parts: (4, 2) and (2, 4)
    are parts of (2, 2, 2). None where the devices are others or in another order, and where axes do not divide each
    other, as in (2, 3) and (3, 2)."""
    if [d.id for d in a.devices.flat] != [d.id for d in b.devices.flat]:
        return None
    # From how many devices on an index along an axis changes.
    steps = {math.prod(mesh.devices.shape[d:]) for mesh in (a, b) for d in range(len(mesh.devices.shape) + 1)}
    ordered = sorted(steps, reverse=True)
    if any(large % small for large, small in zip(ordered, ordered[1:])):
        return None
    sizes = [large // small for large, small in zip(ordered, ordered[1:])]
    fine = Mesh(a.devices.reshape(sizes), [f"axis{step}" for step in ordered[1:]])
    parts = [
        {
            name: tuple(
                f"axis{step}"
                for step in ordered[1:]
                if math.prod(mesh.devices.shape[d + 1 :]) <= step < math.prod(mesh.devices.shape[d:])
            )
            for d, name in enumerate(mesh.axis_names)
        }
        for mesh in (a, b)
    ]
    return fine, parts[0], parts[1]


def place_pickled(whole: Any, place: tuple) -> Any:
    """An array where a pickle says that it lay (weft._pickled.placed_array)."""
    if len(place) == 1:
        return put(whole, SingleDeviceSharding(device_of_pickle(place[0])))
    axes, numbers, spec = place
    found = np.array([device_of_pickle(n) for n in numbers], dtype=object).reshape([size for _, size in axes])
    return put(whole, NamedSharding(Mesh(found, [name for name, _ in axes]), PartitionSpec(*spec)))


_pickled.place_array = place_pickled


def move_by_program(x: Any, sharding: NamedSharding) -> Any:
    """Set by weft.compiled, which stands above: programs are cut as this room says."""
    raise NotImplementedError


def device_put(x: Any, device: Any = None, *, donate: bool = False, may_alias: bool | None = None) -> Any:
    """The arrays of a tree on a device, or cut over a mesh. Blocks of one sharding are copied straight into those of
    another. Traced values have no place yet: they stay as they are. Over a mesh of several processes each gives the
    same array, and keeps what its devices hold.

    Args:
        x: NumPy array, array, number or tree of them.
        device: a weft.Device, a weft.Sharding, a PartitionSpec for the mesh around the call (weft.set_mesh), or a tree
            of them (a prefix of x suffices); None: the first device.
        donate: arrays of x that are put somewhere are deleted; the result has their memory where it can.
        may_alias: whether the result may share the memory of an array in x; then neither can be donated while the other
            lives. None: an array that lies there already is the result itself.

    Returns: tree of arrays.

    Raises:
        TypeError: a leaf is no array or number, or `device` something else.
        ValueError: a sharding does not fit an array; both donate and may_alias are True.

    Example:
        >>> weft.device_put(wnp.arange(4.0), weft.devices()[0]).sharding
        SingleDeviceSharding(device=CpuDevice(id=0))
    """
    if donate and may_alias:
        raise value_error(
            "device_put: may_alias and donate cannot be True at the same time. What is given away has no second owner"
        )
    leaves, tree = _tree.flatten(x)
    places = prefix_entries(device, _is_place, x, "device_put", "a device or a sharding")
    out = []
    for leaf, place in zip(leaves, places):
        is_array = isinstance(leaf, _weft.Array) and not _weft.is_traced(leaf)
        if is_array and (place is not None or may_alias is True):
            array = leaf
        else:
            array = watching.explicitly(functools.partial(_weft.array, leaf, None, True), leaf)
        if isinstance(place, Device):
            place = SingleDeviceSharding(place)
        elif isinstance(place, PartitionSpec):
            place = NamedSharding(check_mesh(None, f"device_put: {place}"), place)
        elif isinstance(place, NamedSharding):
            place = place.on_devices("device_put")
        itself = may_alias is None or (may_alias and _tree.jax_semantics())
        if is_array and not donate and itself and _lies_there(leaf, place):
            out.append(leaf)
            continue
        if place is not None and not _weft.is_traced(array):
            if isinstance(place, SingleDeviceSharding) and not place.is_fully_addressable:
                raise value_error(f"device_put: {place._device} belongs to another process")
            if isinstance(place, NamedSharding):
                cuts_of(place.mesh, place.spec, array.shape, "device_put")
            weak = _weft.abstract(array)[2]
            array = put(array, place, False if donate else None if may_alias is None else not may_alias)
            array = _weft.with_weak([array], [True])[0] if weak else array
            if donate and is_array:
                leaf.delete()
        out.append(array)
    return _tree.unflatten(tree, out)


def _lies_there(array: Any, place: Sharding | None) -> bool:
    """Whether an array is what device_put gives of it. Where JAX's meaning is asked for, an array that nobody has put
    anywhere is another one than that which somebody put on the first device."""
    if place is None:
        return True
    return array.sharding == place and not (_tree.jax_semantics() and _weft.sharding_of(array) is None)


def _is_place(x: Any) -> bool:
    return x is None or isinstance(x, (Device, Sharding, PartitionSpec))


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
        if self.device.process_index != process_index():
            return None
        here = SingleDeviceSharding(self.device)
        sharding = _weft.sharding_of(self._array)
        if sharding is None:  # nobody has put it anywhere; JAX asks of a part what it asks of the whole
            return self._array if _tree.jax_semantics() else put(self._array, here, None)
        own = [d for d in sharding._device_list() if d.process_index == process_index()]
        block = _weft.block_of_device(self._array, own.index(self.device), here)
        return block if holds_sum(sharding, self.device) else put(_weft.full(block.shape, 0, block.dtype), here)

    def __repr__(self) -> str:
        return f"Shard(device={self.device}, index={self.index}, replica_id={self.replica_id})"


def _sharding_of(array: Any) -> Sharding:
    """Array.sharding."""
    place = _weft.sharding_of(array) or _weft.made_on(array)
    if place is None and _tree.jax_semantics() and not array.is_deleted() and _weft.is_traced(array):
        raise AttributeError(
            f"The 'sharding' attribute is not available on {array!r}, a value of a program, which its compiler places; "
            "typeof(x).sharding is what its type says"
        )
    return place or SingleDeviceSharding(local_devices()[0])


def _shards_of(array: Any) -> list[Shard]:
    """Array.addressable_shards."""
    return [shard for shard in global_shards(array) if shard.device.process_index == process_index()]


def global_shards(array: Any) -> list[Shard]:
    """What each device holds of the array, those of other processes included: their `data` is None.

    Example:
        >>> [shard.index for shard in wnp.arange(3).global_shards]
        [(slice(0, 3, None),)]
    """
    seen: dict[tuple, int] = {}
    shards = []
    for device, index in _sharding_of(array)._parts(array.shape).items():
        key = tuple((s.start, s.stop) for s in index)
        shards.append(Shard(array, device, shown_part(index, array.shape), seen.get(key, 0)))
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


def unsafe_buffer_pointer(self: Any) -> int:
    """The address of the first element, for other libraries: it is valid for as long as the array lives, and nothing
    may be written there.

    Returns: int.

    Raises:
        ValueError: the array lies on several devices.
        weft.TracerError: the array is traced.

    Example:
        >>> x = wnp.arange(3)
        >>> x.unsafe_buffer_pointer() == wnp.asarray(x).unsafe_buffer_pointer()
        True
    """
    if len(_devices_of(self)) > 1:
        raise value_error(
            "unsafe_buffer_pointer: the array lies on several devices; x.addressable_data(i) is what one of them holds"
        )
    return np.asarray(self).__array_interface__["data"][0]


def on_device_size_in_bytes(self: Any) -> int:
    """How many bytes the elements take, on all devices of this process together.

    Returns: int.

    Example:
        >>> wnp.zeros((2, 3)).on_device_size_in_bytes()
        24
    """
    return sum(shard.data.nbytes for shard in _shards_of(self))


def _is_fully_addressable(array: Any) -> bool:
    """Array.is_fully_addressable."""
    return _sharding_of(array).is_fully_addressable


def _is_fully_replicated(array: Any) -> bool:
    """Array.is_fully_replicated."""
    return _sharding_of(array).is_fully_replicated


def _devices_of(array: Any) -> set[Device]:
    """Array.devices()."""
    return set(_sharding_of(array)._device_list())


def to_device(self: Any, device: Any, *, stream: None = None) -> Any:
    """The array on a device, or cut over a mesh, as weft.device_put makes it.

    Args:
        device: a weft.Device or a weft.Sharding.
        stream: None.

    Returns: array.

    Raises:
        TypeError: `device` is something else.
        ValueError: a sharding does not fit the array; a stream is given.

    Example:
        >>> wnp.arange(3).to_device(weft.devices()[0]).sharding
        SingleDeviceSharding(device=CpuDevice(id=0))
    """
    if stream is not None:
        raise value_error(f"to_device: devices have no streams; expected stream=None, got {stream!r}")
    return device_put(self, device)


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
    return picture_of(x.shape, x.sharding, "visualize_array_sharding: the array")


def picture_of(shape: Sequence[int], sharding: Sharding, what: str) -> str:
    """Prints who holds what of an array of this shape."""
    if not 1 <= len(shape) <= 2:
        raise value_error(f"{what} has {len(shape)} dimensions; expected 1 or 2")
    holders: dict[tuple[int, int], list[int]] = {}
    for device, index in sharding._parts(shape).items():
        starts = [s.start for s in index]
        row, column = (0, starts[0]) if len(shape) == 1 else (starts[0], starts[1])
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
