"""Devices, by the names that JAX has for them."""

from __future__ import annotations

import contextlib
from typing import Any

import weft

from .. import _weft
from .._core import tree as _tree
from .._core.errors import runtime_error, type_error, value_error
from .._sharding.committed import cut_alike
from .._sharding.meshes import check_mesh
from .._sharding.partitioning import constrain
from .._sharding.shardings import prefix_entries
from . import transfers
from .eager_shard_map import is_eager
from .layouts import AutoLayout, Format, check_layout
from .literals import arrays_in
from .monitoring import is_counted, test_event

default_backend = weft.default_backend
_backends: dict[str, Any] = {}


def is_platform(backend: Any) -> bool:
    """Whether it names the platform there is."""
    return not backend or isinstance(backend, Backend) or str(backend) == weft.default_backend()


def check_platform(backend: Any) -> None:
    """Raises RuntimeError, as JAX does, unless the platform is the one there is."""
    if is_platform(backend):
        return
    own = weft.default_backend()
    if str(backend) == "gpu":
        raise runtime_error(
            f"Unknown backend: 'gpu' requested, but no platforms that are instances of gpu are present. Platforms "
            f"present are: {own}"
        )
    if str(backend) == "tpu":
        raise runtime_error(f"Backend 'tpu' failed to initialize: Weft has none. Available backends are [{own!r}]")
    raise runtime_error(f"Unknown backend {backend}. Available backends are [{own!r}]")


class Backend:
    """What jax.extend.backend.get_backend() gives: the platform."""

    @property
    def platform(self) -> str:
        return weft.default_backend()

    platform_version = f"weft {weft.__version__}"

    def devices(self) -> list[Any]:
        return weft.devices()

    local_devices = devices

    def device_count(self) -> int:
        return weft.device_count()

    def process_index(self) -> int:
        return weft.process_index()

    def compile_and_load(self, program: Any, devices: Any, compile_options: Any = None) -> LoadedProgram:
        """A program of StableHLO, as text or as a module of jax.extend.mlir, compiled for one device."""
        del compile_options
        (device,) = devices
        with weft.enable_x64(True):  # the text says how wide its numbers are
            return LoadedProgram(weft.jit(weft.ir.from_stablehlo(str(program), "compile_and_load")), device)


class LoadedProgram:
    """What Backend.compile_and_load gives."""

    def __init__(self, program: Any, device: Any):
        self._program, self._device = program, device

    def local_devices(self) -> list[Any]:
        return [self._device]

    def execute(self, arguments: Any) -> list[Any]:
        """The results for arrays, as a list."""
        with weft.enable_x64(True):
            found = self._program(*(weft.device_put(x, self._device) for x in arguments))
        return list(found) if isinstance(found, tuple) else [found]


Client, Device = Backend, weft.Device
XlaRuntimeError = RuntimeError


def get_backend(platform: Any = None) -> Backend:
    """The platform there is; RuntimeError for another."""
    check_platform(platform)
    return Backend()


def backends() -> dict[str, Backend]:
    """The platforms there are."""
    return {weft.default_backend(): Backend()}


def clear_backends() -> None:
    """Nothing: devices stay as they are."""


def devices(backend: Any = None) -> list[Any]:
    """The devices of all processes; RuntimeError for a platform that is not there."""
    check_platform(backend)
    return weft.devices()


def local_devices(process_index: int | None = None, backend: Any = None, host_id: int | None = None) -> list[Any]:
    """The devices of a process, of this one by default."""
    check_platform(backend)
    return weft.local_devices(process_index if process_index is not None else host_id)


def device_count(backend: Any = None) -> int:
    """How many devices there are; RuntimeError for a platform that is not there."""
    check_platform(backend)
    return weft.device_count()


def local_device_count(backend: Any = None) -> int:
    """How many devices this process has; RuntimeError for a platform that is not there."""
    check_platform(backend)
    return weft.local_device_count()


def process_count(backend: Any = None) -> int:
    """How many processes there are; RuntimeError for a platform that is not there."""
    check_platform(backend)
    return weft.process_count()


def process_index(backend: Any = None) -> int:
    """The number of this process; RuntimeError for a platform that is not there."""
    check_platform(backend)
    return weft.process_index()


host_count, host_id = process_count, process_index


def process_indices(backend: Any = None) -> list[int]:
    """The numbers of all processes; RuntimeError for a platform that is not there."""
    check_platform(backend)
    return list(range(weft.process_count()))


host_ids = process_indices


def copy_to_host_async(x: Any) -> Any:
    """The tree itself: its arrays can be read where they are."""
    for leaf in weft.tree.leaves(x):
        try:
            copy = leaf.copy_to_host_async
        except AttributeError:
            continue
        copy()
    return x


# What libraries take of shardings, though it is private to JAX.
_assigned = lambda sharding: tuple(sharding._device_list())
_addressable = lambda sharding: tuple(d for d in sharding._device_list() if d.process_index == weft.process_index())
weft.Sharding._device_assignment = property(_assigned)  # type: ignore[attr-defined]
weft.Sharding._addressable_device_assignment = property(_addressable)  # type: ignore[attr-defined]


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, **options: Any) -> Any:
    """weft.device_put, which also takes a Format, whose layout has no effect, and a tree of donate."""
    del src
    if isinstance(device, weft.Device) and is_eager():
        raise value_error(
            f"device_put inside of shard_map outside of jit takes shardings, got device {device}: what a shard_map's "
            "function computes is on all devices of its mesh"
        )
    if not isinstance(donate, bool):
        leaves, tree = weft.tree.flatten(x)
        places = prefix_entries(device, _is_place, x, "device_put", "a device or a sharding")
        each = zip(leaves, places, _tree.prefix_leaves(donate, x, "device_put: donate"))
        return weft.tree.unflatten(tree, [device_put(leaf, at, donate=given, **options) for leaf, at, given in each])
    options["donate"] = donate
    x = arrays_in(x)
    counted = isinstance(device, weft.NamedSharding) and is_counted()
    if counted and any(_moves_blocks(leaf, device) for leaf in _tree.leaves(x)):
        test_event("batched_copy_array")
    if isinstance(device, Format):
        if isinstance(device.layout, AutoLayout):
            raise value_error(
                f"device_put: sharding and layout in a `Format` instance should be concrete, got {device}"
            )
        for leaf in weft.tree.leaves(x):
            check_layout(device, weft.numpy.shape(leaf), "device_put")
    place = lambda d: d.sharding if isinstance(d, Format) else d
    device = weft.tree.map(place, device, is_leaf=_is_place)
    leaves, tree = weft.tree.flatten(x)
    if device is not None and transfers.are_guarded():
        for leaf, at in zip(leaves, prefix_entries(device, _is_place, x, "device_put", "a device or a sharding")):
            transfers.between_devices(leaf, at, explicit=True)
    if device is not None and any(map(_weft.is_traced, leaves)):
        places = prefix_entries(device, _is_place, x, "device_put", "a device or a sharding")
        x = weft.tree.unflatten(tree, list(map(_in_program, leaves, places)))
    return weft.device_put(x, device, **options)


def _in_program(x: Any, place: Any) -> Any:
    """A value of a program that is put over a mesh: how it lies is said by types; where axes have none, the compiler
    decides. Outside of jit programs move nothing."""
    if (
        not _weft.is_traced(x)
        or _weft.computes_known()
        or not isinstance(place, (weft.NamedSharding, weft.PartitionSpec))
    ):
        return x
    if isinstance(place, weft.PartitionSpec):
        place = weft.NamedSharding(check_mesh(None, f"device_put: {place}"), place)
    mesh = place.mesh
    if not isinstance(mesh, weft.Mesh) or mesh.empty or any(map(_weft.axis_is_bound, mesh.axis_names)):
        return x
    return constrain(x, place, "device_put") if mesh.explicit_axes else x


def _moves_blocks(x: Any, place: weft.NamedSharding) -> bool:
    """Whether blocks go to other devices as they are."""
    own = _weft.sharding_of(x) if isinstance(x, weft.Array) and not _weft.is_traced(x) else None
    if own is None or not isinstance(place.mesh, weft.Mesh) or own.device_set == place.device_set:
        return False
    return cut_alike(own, place, x.ndim)


def make_array_from_callback(shape: Any, sharding: Any, data_callback: Any, *, dtype: Any = None) -> Any:
    """weft.make_array_from_callback, which also takes a Format, whose layout has no effect."""
    del dtype  # which the parts have
    if isinstance(sharding, Format):
        check_layout(sharding, tuple(shape), "make_array_from_callback")
        sharding = sharding.sharding
    if not isinstance(sharding, weft.Sharding):
        raise type_error(f"sharding should be an instance of `jax.sharding`. Got {sharding} of type {type(sharding)}")
    return weft.make_array_from_callback(shape, sharding, data_callback)


def batched_device_put(aval: Any, sharding: Any, xs: Any, devices: Any, committed: bool = True, **more: Any) -> Any:
    """One array of the parts that devices are to hold; with enable_x64 as wide as they are."""
    del committed
    with weft.enable_x64(True) if more.get("enable_x64") else contextlib.nullcontext():
        parts = [weft.device_put(x, device) for x, device in zip(xs, devices, strict=True)]
    return weft.make_array_from_single_device_arrays(tuple(aval.shape), sharding, parts)


def _is_place(x: Any) -> bool:
    return isinstance(x, (Format, weft.Sharding, weft.Device, weft.PartitionSpec)) or x is None


def canonicalize_platform(platform: str) -> str:
    """The name of a platform: that of one maker's GPUs for "gpu"."""
    return "cuda" if platform == "gpu" else platform
