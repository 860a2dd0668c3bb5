"""How XLA says that arrays are cut: tiles in an order of devices. Weft's shardings can be asked for it, and arrays may
lie so."""

from __future__ import annotations

import collections
import enum
import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import weft

from .._core.errors import runtime_error, value_error
from .._sharding.shardings import spec_axes
from .shardings import check_memory_kind


class OpShardingType(enum.Enum):
    """What the devices beyond the tiles of an array do."""

    REPLICATED = 0
    MAXIMAL = 1
    TUPLE = 2
    OTHER = 3
    MANUAL = 4
    UNKNOWN = 5
    UNREDUCED = 6


class OpSharding:
    """The message that XLA keeps of an HloSharding, as a record."""

    Type = OpShardingType

    def __init__(self) -> None:
        self.type = OpShardingType.REPLICATED
        self.tile_assignment_dimensions: list[int] = []
        self.tile_assignment_devices: list[int] = []
        self.iota_reshape_dims: list[int] = []
        self.iota_transpose_perm: list[int] = []
        self.last_tile_dims: list[OpShardingType] = []
        self.replicate_on_last_tile_dim = False
        self.tuple_shardings: list[OpSharding] = []


def _turned_text(shape: Sequence[int], perm: Sequence[int]) -> str:
    """An array of devices 0, 1, 2 ... that is turned, with as few dimensions as say it."""
    runs: list[list[int]] = []  # of dimensions that stay side by side
    for d in [d for d in perm if shape[d] != 1]:
        follows = runs and all(shape[between] == 1 for between in range(runs[-1][-1] + 1, d)) and d > runs[-1][-1]
        runs[-1].append(d) if follows else runs.append([d])
    order = sorted(runs)
    sizes = [math.prod(shape[d] for d in run) for run in order] or [1]
    turned = f"T({','.join(str(order.index(run)) for run in runs)})" * (len(runs) > 1)
    return f"<=[{','.join(map(str, sizes))}]{turned}"


class HloSharding:
    """Tiles: their number along each dimension of an array, and last along what the devices with one tile are told
    apart by; and the devices in order."""

    def __init__(
        self,
        kind: OpShardingType,
        tiles: Iterable[int] = (),
        devices: Any = (),
        subgroups: Iterable = (),
        text: str = "",
    ):
        self._kind, self._tiles = kind, list(tiles)
        self._devices, self._subgroups = [int(d) for d in np.ravel(devices)], list(subgroups)
        self._parts: tuple[HloSharding, ...] = ()
        self._text = text
        self._iota: tuple[list[int], list[int]] | None = None
        if kind is OpShardingType.OTHER:
            self._normalize()

    def _normalize(self) -> None:
        n, given = len(self._tiles) - len(self._subgroups), self._subgroups
        kept = [(size, what) for size, what in zip(self._tiles[n:], self._subgroups) if size != 1]
        self._tiles = self._tiles[:n] + [size for size, _ in kept]
        self._subgroups = [what for _, what in kept]
        own = math.prod(self._tiles[: len(self._tiles) - len(kept)])
        if own == 1 and given and len({*(self._subgroups or given)}) == 1:  # one tile, which all have
            self._kind = (self._subgroups or given)[0]
            self._tiles, self._devices, self._subgroups = [], [], []

    @classmethod
    def iota_tile(
        cls,
        dims: Sequence[int],
        reshape_dims: Sequence[int] = (),
        transpose_perm: Sequence[int] = (),
        subgroup_types: Sequence[OpShardingType] = (),
    ) -> HloSharding:
        """Devices 0, 1, 2 ... in an array of shape reshape_dims, turned, as tiles."""
        if not len(dims):
            raise runtime_error("INVALID_ARGUMENT: `dims` should not be empty.")
        if len(reshape_dims) != len(transpose_perm):
            raise runtime_error(
                "INVALID_ARGUMENT: `reshape_dims` and `transpose_perm` should have the same size, saw "
                f"[{len(reshape_dims)}] v.s. [{len(transpose_perm)}]"
            )
        if reshape_dims and math.prod(reshape_dims) != math.prod(dims):
            raise runtime_error(f"INVALID_ARGUMENT: Cannot reshape from {list(dims)} to {list(reshape_dims)}")
        if len(subgroup_types) > len(dims):
            raise runtime_error(
                f"INVALID_ARGUMENT: `subgroup_types`({len(subgroup_types)}) should not have more dimensions than "
                f"`dims`({len(dims)})."
            )
        devices: Any = np.arange(math.prod(dims))
        text = f"<=[{math.prod(dims)}]"
        if reshape_dims:
            devices = devices.reshape(reshape_dims).transpose(transpose_perm)
            text = _turned_text(reshape_dims, transpose_perm)
        made = cls(OpShardingType.OTHER, dims, devices, subgroup_types, text)
        made._iota = (list(reshape_dims), list(transpose_perm)) if reshape_dims else ([math.prod(dims)], [0])
        return made

    @classmethod
    def replicate(cls) -> HloSharding:
        """All of it on every device."""
        return cls(OpShardingType.REPLICATED)

    @classmethod
    def manual(cls) -> HloSharding:
        """What one device has."""
        return cls(OpShardingType.MANUAL)

    @classmethod
    def unreduced(cls) -> HloSharding:
        """Parts of a sum."""
        return cls(OpShardingType.UNREDUCED)

    @classmethod
    def subgroup_with_device_ordering(
        cls, tile_assignment: Any, subgroup_types: Sequence[OpShardingType] = ()
    ) -> HloSharding:
        """Tiles with the devices in this order."""
        order = np.asarray(tile_assignment)
        return cls(OpShardingType.OTHER, order.shape, order, subgroup_types)

    @classmethod
    def from_proto(cls, op: OpSharding) -> HloSharding:
        """What the record says."""
        if op.type is OpShardingType.TUPLE:
            made = cls(OpShardingType.TUPLE)
            made._parts = tuple(map(cls.from_proto, op.tuple_shardings))
            return made
        if op.type is not OpShardingType.OTHER:
            return cls(op.type)
        types = list(op.last_tile_dims) or [OpShardingType.REPLICATED] * op.replicate_on_last_tile_dim
        if op.iota_reshape_dims:
            return cls.iota_tile(op.tile_assignment_dimensions, op.iota_reshape_dims, op.iota_transpose_perm, types)
        return cls(OpShardingType.OTHER, op.tile_assignment_dimensions, op.tile_assignment_devices, types)

    def is_tiled(self) -> bool:
        """Whether there are tiles."""
        return self._kind is OpShardingType.OTHER

    def is_replicated(self) -> bool:
        """Whether every device has all of it."""
        return self._kind is OpShardingType.REPLICATED

    def is_manual(self) -> bool:
        """Whether it is what one device has."""
        return self._kind is OpShardingType.MANUAL

    def is_unreduced(self) -> bool:
        """Whether devices have parts of a sum."""
        return self._kind is OpShardingType.UNREDUCED

    def num_devices(self) -> int:
        """How many devices have a place in it; 0: any number."""
        return len(self._devices)

    def num_dimensions(self) -> int:
        """How many dimensions the tiles have."""
        return len(self._tiles)

    def tile_assignment_dimensions(self) -> list[int]:
        """How many tiles there are along each dimension; [0] where there are none."""
        return list(self._tiles) if self.is_tiled() else [0]

    def get_axis_sizes(self) -> list[int]:
        """The sizes of the smallest axes of a mesh of which each dimension of tiles is a product, major first."""
        shape, perm = self._iota or ([len(self._devices)], [0])
        left: list[list[int]] = [[] for _ in shape]
        tiles = [t for t in self._tiles if t != 1]
        for axis in perm:
            size = shape[axis]
            while size > 1 and tiles:
                part = math.gcd(size, tiles[0])
                if part == 1:
                    raise value_error(f"{self!r} has no mesh: {size} devices along {tiles[0]} tiles")
                left[axis].append(part)
                size, tiles[0] = size // part, tiles[0] // part
                if tiles[0] == 1:
                    tiles.pop(0)
        return [size for sizes in left for size in sizes]

    def tile_assignment_devices(self) -> list[int]:
        """The devices in the order of tiles."""
        return list(self._devices)

    def replicate_on_last_tile_dim(self) -> bool:
        """Whether the last dimension of tiles counts the devices that have the same tile."""
        return self._subgroups == [OpShardingType.REPLICATED]

    def subgroup_types(self) -> list[OpShardingType]:
        """What the last dimensions of tiles are, where it is not that devices have the same tile."""
        return [] if self.replicate_on_last_tile_dim() else list(self._subgroups)

    def _key(self) -> tuple:
        return self._kind, tuple(self._tiles), tuple(self._devices), tuple(self._subgroups), self._parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HloSharding) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        if self._kind is OpShardingType.TUPLE:
            return f"{{{', '.join(map(repr, self._parts))}}}"
        if self._kind is not OpShardingType.OTHER:
            return f"{{{self._kind.name.lower()}}}"
        shape = ",".join(map(str, self._tiles))
        more = " last_tile_dim_replicate" if self.replicate_on_last_tile_dim() else ""
        if not more and self._subgroups:
            more = f" last_tile_dims={{{', '.join(what.name.lower() for what in self._subgroups)}}}"
        return f"{{devices=[{shape}]{self._text or ','.join(map(str, self._devices))}{more}}}"


def is_hlo_sharding_replicated(sharding: HloSharding) -> bool:
    """Whether every device has all of an array."""
    return sharding.num_devices() == 1 or sharding.is_replicated()


def are_hlo_shardings_equal(a: HloSharding, b: HloSharding) -> bool:
    """Whether both say the same of every array."""
    return (is_hlo_sharding_replicated(a) and is_hlo_sharding_replicated(b)) or a == b


def get_num_ways_dim_sharded(sharding: HloSharding) -> tuple[list[int], int]:
    """How many tiles there are along each dimension of an array, and how many devices have each."""
    if not sharding.is_tiled():
        return [], 1
    tiles = sharding.tile_assignment_dimensions()
    return (tiles[:-1], tiles[-1]) if sharding.replicate_on_last_tile_dim() else (tiles, 1)


@functools.lru_cache(maxsize=4096)
def named_sharding_to_xla_hlo_sharding(sharding: weft.NamedSharding, num_dimensions: int) -> HloSharding:
    """The tiles of arrays of so many dimensions that lie as a NamedSharding says."""
    mesh = sharding.mesh
    places = {name: i for i, name in enumerate(mesh.axis_names)}
    tiles, order = [1] * num_dimensions, []
    for d, names in enumerate(spec_axes(sharding.spec)):
        for name in names:
            tiles[d] *= mesh.shape[name]
            order.append(places[name])
    types = []
    sums, manual = sharding.spec.unreduced, set(mesh.manual_axes)
    rest = [i for i in range(len(places)) if i not in order]
    for what, among in (
        (OpShardingType.MANUAL, [i for i in rest if mesh.axis_names[i] in manual]),
        (OpShardingType.UNREDUCED, [i for i in rest if mesh.axis_names[i] in sums]),
        (OpShardingType.REPLICATED, [i for i in rest if mesh.axis_names[i] not in sums | manual]),
    ):
        if among:
            tiles.append(math.prod(mesh.axis_sizes[i] for i in among))
            order += among
            types.append(what)
    if mesh.size == 1 or (types == [OpShardingType.REPLICATED] and len(order) == len(among)):
        return HloSharding.replicate()
    return HloSharding.iota_tile(tiles, mesh.axis_sizes, order, types)


def parse_flatten_op_sharding(sharding: HloSharding | OpSharding, mesh: Any) -> list[weft.PartitionSpec]:
    """The specs on a mesh that say the same."""
    if isinstance(sharding, OpSharding):
        sharding = HloSharding.from_proto(sharding)
    if sharding._parts:
        return [spec for part in sharding._parts for spec in parse_flatten_op_sharding(part, mesh)]
    if not sharding.is_tiled():
        return [weft.PartitionSpec()]
    order = np.reshape(sharding.tile_assignment_devices(), sharding.tile_assignment_dimensions())
    coordinates = np.array(np.unravel_index(order, mesh.axis_sizes))
    dims: list[tuple[str, ...]] = []
    for d in range(order.ndim - len(sharding._subgroups)):
        along = np.moveaxis(coordinates, d + 1, 1).reshape(len(mesh.axis_names), order.shape[d], -1)[:, :, 0]
        # The major axis changes last.
        first = [int(np.argmax(along[a] != along[a, 0])) for a in range(len(mesh.axis_names))]
        changing = sorted((a for a in range(len(first)) if first[a]), key=lambda a: -first[a])
        dims.append(tuple(mesh.axis_names[a] for a in changing))
    while dims and not dims[-1]:
        dims.pop()
    return [weft.PartitionSpec(*dims)]


def array_mapping_to_axis_resources(mapping: dict[str, int]) -> weft.PartitionSpec:
    """The spec of a mapping of axes of a mesh to the dimensions that they cut."""
    dims: dict[int, list[str]] = collections.defaultdict(list)
    for name, d in mapping.items():
        dims[d].append(name)
    return weft.PartitionSpec(*[tuple(dims[d]) for d in range(max(dims, default=-1) + 1)])


class SdyArray(NamedTuple):
    """How an array is cut, in Shardy's words: axes of a mesh with their sizes, and those that cut each dimension."""

    mesh: tuple[tuple[str, int], ...]
    dims: tuple[tuple[str, ...], ...]
    unreduced: frozenset[str] = frozenset()


def _sdy_of_named(self: weft.NamedSharding, num_dimensions: int) -> SdyArray:
    dims = [tuple(names) for names in spec_axes(self.with_each_dim(num_dimensions).spec)]
    return SdyArray(tuple(self.mesh.shape.items()), tuple(dims), self.spec.unreduced)


class GSPMDSharding(weft.NamedSharding):
    """How an array lies on devices, in XLA's words: for programs on a mesh with an axis for each dimension of tiles."""

    def __init__(self, devices: Sequence[Any], op_sharding: OpSharding | HloSharding, *, memory_kind: Any = None):
        check_memory_kind(memory_kind)
        self._devices = tuple(devices)
        made = op_sharding if isinstance(op_sharding, HloSharding) else HloSharding.from_proto(op_sharding)
        self._hlo_sharding = made

    @functools.cached_property
    def _on_mesh(self) -> tuple[weft.Mesh, weft.PartitionSpec]:
        array = np.empty(len(self._devices), dtype=object)
        array[:] = self._devices
        if self.is_fully_replicated or not self._hlo_sharding.is_tiled():
            return weft.Mesh(array, ("copies",)), weft.PartitionSpec()
        ways, copies = get_num_ways_dim_sharded(self._hlo_sharding)
        names = [f"tiles{d}" for d in range(len(ways))]
        placed = array[self._hlo_sharding.tile_assignment_devices()].reshape(*ways, copies)
        return weft.Mesh(placed, (*names, "copies")), weft.PartitionSpec(*names)

    mesh = property(lambda self: self._on_mesh[0])
    spec = property(lambda self: self._on_mesh[1])

    @classmethod
    def get_replicated(cls, device_assignment: Sequence[Any], *, memory_kind: Any = None) -> GSPMDSharding:
        """All of it on every device."""
        return cls(device_assignment, HloSharding.replicate(), memory_kind=memory_kind)

    @property
    def memory_kind(self) -> str:
        """There is one memory."""
        return "device"

    @property
    def is_fully_replicated(self) -> bool:
        return is_hlo_sharding_replicated(self._hlo_sharding)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> HloSharding:
        return self._hlo_sharding

    def _to_sdy_sharding(self, num_dimensions: int) -> SdyArray:
        ways, _ = get_num_ways_dim_sharded(self._hlo_sharding)
        ways += [1] * (num_dimensions - len(ways))
        cut = [(f"_axis_{d}", n) for d, n in enumerate(ways) if n > 1]
        return SdyArray(tuple(cut), tuple((f"_axis_{d}",) if n > 1 else () for d, n in enumerate(ways)))

    def _device_list(self) -> list[Any]:
        return list(self._devices)

    @property
    def _device_assignment(self) -> tuple[Any, ...]:
        return self._devices

    def shard_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        ways, _ = get_num_ways_dim_sharded(self._hlo_sharding)
        if self.is_fully_replicated:
            return tuple(shape)
        if len(ways) > len(shape) or any(n % k for n, k in zip(shape, ways)):
            raise value_error(f"{self!r} does not cut an array of shape {tuple(shape)} evenly")
        return tuple(n // k for n, k in itertools.zip_longest(shape, ways, fillvalue=1))

    def _parts(self, shape: Sequence[int]) -> dict[Any, tuple[slice, ...]]:
        block = self.shard_shape(shape)
        if self.is_fully_replicated:
            return {d: tuple(slice(0, n) for n in shape) for d in self._devices}
        ways, copies = get_num_ways_dim_sharded(self._hlo_sharding)
        places: Iterator[int] = iter(self._hlo_sharding.tile_assignment_devices())
        found = {}
        for at in np.ndindex(*ways):
            part = tuple(slice(i * n, (i + 1) * n) for i, n in zip(at, block))
            for _ in range(copies):
                found[self._devices[next(places)]] = part
        return {d: found[d] for d in self._devices}

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, GSPMDSharding)
            and self._devices == other._devices
            and are_hlo_shardings_equal(self._hlo_sharding, other._hlo_sharding)
        )

    def __hash__(self) -> int:
        return hash((self._devices, None if self.is_fully_replicated else self._hlo_sharding))

    def __repr__(self) -> str:
        return f"GSPMDSharding({self._hlo_sharding!r})"


def install() -> None:
    """From now on shardings say how XLA would put it."""
    named: Any = weft.NamedSharding
    named._to_xla_hlo_sharding = named_sharding_to_xla_hlo_sharding
    named._device_assignment = property(lambda self: tuple(self._device_list()))
    named._to_sdy_sharding = _sdy_of_named
    single: Any = weft.SingleDeviceSharding
    single._to_xla_hlo_sharding = lambda self, num_dimensions: HloSharding.replicate()
    single._device_assignment = property(lambda self: tuple(self._device_list()))
    mesh: Any = weft.Mesh
    mesh._flat_devices_tuple = property(lambda self: tuple(self.devices.flat))
