"""Devices in an array whose dimensions have names."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import _weft
from .._core.errors import runtime_error, type_error, value_error
from ..collectives import check_axis_name
from . import devices as _devices
from .devices import Device, process_index


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
        return [d for d in self.devices.flat if d.process_index == process_index()]

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
    """The meshes of the `with mesh:` around what this thread runs, the innermost last; None where there is none."""

    def __init__(self) -> None:
        self.meshes: list[Mesh | None] = []


_around = _Around()


def current_mesh() -> Mesh | None:
    """The innermost mesh of a `with mesh:` around the caller."""
    return _around.meshes[-1] if _around.meshes else None


@contextlib.contextmanager
def mesh_around(mesh: Mesh | None) -> Iterator[None]:
    """Inside it this is the mesh around, as it was where what runs here was called; or none is."""
    _around.meshes.append(mesh)
    _weft.set_mesh_around(mesh)
    try:
        yield
    finally:
        _around.meshes.pop()
        _weft.set_mesh_around(current_mesh())


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
    given = _devices.devices() if devices is None else list(devices)
    if math.prod(shape) > len(given):
        raise value_error(
            f"make_mesh: a mesh of shape {shape} has {math.prod(shape)} devices, but there are {len(given)} "
            "(WEFT_NUM_CPU_DEVICES sets the number of virtual devices of the process)"
        )
    return Mesh(np.array(given[: math.prod(shape)], dtype=object).reshape(shape), tuple(axis_names))


def mesh_axes(mesh: Mesh) -> list[tuple[str, int]]:
    """The names and sizes of the axes, as the native module takes them."""
    return list(mesh.shape.items())


def mesh_devices(mesh: Mesh) -> list[int]:
    """The numbers of its devices, as the native module takes them: none where they are 0, 1, 2 ..."""
    numbers = [d.id for d in mesh.devices.flat]
    return [] if numbers == list(range(mesh.size)) else numbers


def mesh_of(axes: Sequence[tuple[str, int]], numbers: Sequence[int]) -> Mesh:
    """The mesh of these axes and devices, as the native module gives them."""
    sizes, among = [size for _, size in axes], _devices.devices()
    wanted = numbers or range(math.prod(sizes))
    if max(wanted) >= len(among):
        raise value_error(f"jit: a program names device {max(wanted)}, but there are {len(among)} devices")
    chosen = [among[i] for i in wanted]
    return Mesh(np.array(chosen, dtype=object).reshape(sizes), [name for name, _ in axes])


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


def check_mesh(mesh: Any, what: str) -> Mesh:
    """The mesh that is given, or the one around the caller."""
    mesh = current_mesh() if mesh is None else mesh
    if mesh is None:
        raise value_error(f"{what}: no mesh is given, and there is none around the call (`with mesh:`)")
    if not isinstance(mesh, Mesh):
        raise type_error(f"{what}: mesh is {mesh!r} of type '{type(mesh).__name__}'; expected a weft.Mesh")
    return mesh
