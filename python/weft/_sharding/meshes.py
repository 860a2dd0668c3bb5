"""Devices in an array whose dimensions have names."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .. import _weft
from .._core.errors import runtime_error, type_error, value_error
from ..collectives import axes_left_alone, check_axis_name
from . import devices as _devices
from .axis_types import AxisType, checked_types
from .devices import Device, process_index
from .typing_rules import typing_rules


def _checked_names(names: Any, what: str) -> tuple[str, ...]:
    names = (names,) if isinstance(names, str) else tuple(names)
    for name in names:
        if not isinstance(name, typing_rules.other_names):
            check_axis_name(name, what)
    if len(set(names)) != len(names):
        raise value_error(f"{what}: an axis is named twice in {names}")
    return names


class _Axes:
    """What meshes with and without devices have in common: names, sizes and types of axes."""

    axis_names: tuple[str, ...]
    axis_types: tuple[AxisType, ...]

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """The size of each axis."""
        raise NotImplementedError

    @property
    def shape(self) -> dict[str, int]:
        """The size of each axis, by name."""
        return dict(zip(self.axis_names, self.axis_sizes))

    @property
    def shape_tuple(self) -> tuple[tuple[str, int], ...]:
        """The names and sizes of the axes."""
        return tuple(self.shape.items())

    @property
    def size(self) -> int:
        """How many devices it has."""
        return 0 if self.empty else math.prod(self.axis_sizes)

    @property
    def empty(self) -> bool:
        """Whether it has no axes: what weft.get_abstract_mesh gives where there is no mesh."""
        return not self.axis_names

    def _of_type(self, wanted: AxisType) -> tuple[str, ...]:
        return tuple(name for name, t in zip(self.axis_names, self.axis_types) if t is wanted)

    @property
    def auto_axes(self) -> tuple[str, ...]:
        """The axes of type Auto."""
        return self._of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[str, ...]:
        """The axes of type Explicit."""
        return self._of_type(AxisType.Explicit)

    @property
    def typed_axes(self) -> tuple[str, ...]:
        """The axes of type Explicit that types name: all of them, but for an option of JAX's."""
        return tuple(name for name in self.explicit_axes if typing_rules.keeps_axis(self.shape[name]))

    @property
    def manual_axes(self) -> tuple[str, ...]:
        """The axes of type Manual."""
        return self._of_type(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether every axis is of type Auto."""
        return self.auto_axes == self.axis_names

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether every axis is of type Explicit."""
        return self.explicit_axes == self.axis_names

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether every axis is of type Manual."""
        return self.manual_axes == self.axis_names

    # Whether it says of the devices that they are those there are, as one made of a mesh of them does: JAX shows it.
    # Equality asks no such thing.
    _of_devices: bool

    def with_types(self, types: Any) -> AbstractMesh:
        """The same without devices, with these types of its axes."""
        made = AbstractMesh(self.axis_sizes, self.axis_names, types)
        made._of_devices = self._of_devices
        return made

    def _text(self) -> str:
        parts = [f"{name!r}: {size}" for name, size in self.shape.items()]
        if any(t is not AxisType.Auto for t in self.axis_types):
            parts.append(f"axis_types=({', '.join(map(repr, self.axis_types))}{',' * (len(parts) == 1)})")
        return f"{type(self).__name__}({', '.join(parts)})"

    def __repr__(self) -> str:
        return self._text()


class AbstractMesh(_Axes):
    """Names, sizes and types of axes, without devices: of types, and of functions that are traced for no devices.

    Args:
        axis_sizes: the size of each axis.
        axis_names: its name.
        axis_types: its weft.AxisType; None: Auto.
        abstract_device: what is said of the devices; None: they are those that there are.

    Raises:
        TypeError: something is no size, name or type.
        ValueError: they are not equally many, or a name is there twice.

    Example:
        >>> weft.AbstractMesh((4, 2), ("data", "model")).size
        8
    """

    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: str | Sequence[str],
        axis_types: Any = None,
        *,
        abstract_device: Any = None,
    ):
        self._device = None if abstract_device == _devices.OWN_KIND else abstract_device
        self._of_devices = abstract_device == _devices.OWN_KIND
        self.axis_names = _checked_names(axis_names, "AbstractMesh")
        self._sizes = tuple(int(n) for n in axis_sizes)
        if len(self._sizes) != len(self.axis_names):
            raise value_error(f"AbstractMesh: sizes {self._sizes} for the axes {self.axis_names}")
        self.axis_types = checked_types(axis_types, self.axis_names, "AbstractMesh")

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return self._sizes

    @property
    def abstract_device(self) -> Any:
        """What is said of the devices: their kind, the number of their cores, what runs their programs."""
        return _devices.OWN_KIND if self._device is None else self._device

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """Itself."""
        return self

    def update(
        self, axis_sizes: Any = None, axis_names: Any = None, axis_types: Any = None, **abstract_device: Any
    ) -> AbstractMesh:
        """The same with some of it changed.

        Args:
            axis_sizes: other sizes; None: the same.
            axis_names: other names; None: the same.
            axis_types: other types; None: the same.
            **abstract_device: abstract_device, of other devices.

        Returns: weft.AbstractMesh.

        Example:
            >>> weft.AbstractMesh((4,), ("x",)).update(axis_types=weft.AxisType.Manual)
            AbstractMesh('x': 4, axis_types=(Manual,))
        """
        made = AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            **{"abstract_device": self._device, **abstract_device},
        )
        made._of_devices |= self._of_devices and not abstract_device
        return made

    def update_axis_types(self, name_to_type: Mapping[str, AxisType]) -> AbstractMesh:
        """The same with other types of some axes.

        Args:
            name_to_type: a mapping of names of axes to their types.

        Returns: weft.AbstractMesh.

        Raises:
            ValueError: a name is no axis.

        Example:
            >>> weft.AbstractMesh((4, 2), ("x", "y")).update_axis_types({"x": weft.AxisType.Manual})
            AbstractMesh('x': 4, 'y': 2, axis_types=(Manual, Auto))
        """
        if missing := set(name_to_type) - set(self.axis_names):
            raise value_error(f"AbstractMesh: {sorted(missing)} are no axes of {self}")
        return self.update(
            axis_types=tuple(name_to_type.get(name, kind) for name, kind in zip(self.axis_names, self.axis_types))
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple:
        return self._sizes, self.axis_names, self.axis_types, self._device


class Mesh(_Axes, contextlib.ContextDecorator):
    """Devices in an array, each dimension of which has a name. `with mesh:` makes it the mesh that shard_map uses where
    none is given, in this thread.

    Args:
        devices: array of weft.Device, each at most once.
        axis_names: a name for each dimension: words.
        axis_types: a weft.AxisType for each; None: Auto.

    Raises:
        TypeError: something is no device or no type.
        ValueError: names do not fit the dimensions or are there twice; a device is there twice; there is none.

    Example:
        >>> mesh = weft.Mesh([[weft.devices()[0]]], ("data", "model"))
        >>> mesh.shape
        {'data': 1, 'model': 1}
    """

    def __init__(self, devices: Any, axis_names: str | Sequence[str], axis_types: Any = None):
        self.devices = np.asarray(devices, dtype=object)
        if self.devices.ndim == 0 and self.devices.item() is None:  # numpy.empty(()): no devices
            self.devices = np.empty(0, dtype=object)
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        empty = not names and self.devices.size == 0
        if self.devices.ndim != len(names) and not empty:
            raise value_error(f"Mesh: {len(names)} axis names {names} for devices in {self.devices.ndim} dimensions")
        names = _checked_names(names, "Mesh")
        for device in self.devices.flat:
            if not hasattr(device, "id"):  # somebody's own class may stand for devices that are elsewhere
                raise type_error(f"Mesh: expected devices, got {device!r} of type '{type(device).__name__}'")
        if len({d.id for d in self.devices.flat}) != self.devices.size:
            raise value_error("Mesh: a device is there twice")
        if self.devices.size == 0 and not empty:
            raise value_error("Mesh: no devices")
        self.axis_names = names
        self.axis_types = checked_types(axis_types, names, "Mesh")
        self._of_devices = not empty
        _TYPES.setdefault(self._place(), set()).add(self.axis_types)

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return self.devices.shape if self.axis_names else ()

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The same without devices."""
        return self.with_types(self.axis_types)

    @property
    def device_ids(self) -> np.ndarray:
        """The numbers of its devices, in an array of its shape."""
        return np.array([d.id for d in self.devices.flat]).reshape(self.devices.shape)

    @property
    def is_multi_process(self) -> bool:
        """Whether its devices belong to several processes."""
        return len({d.process_index for d in self.devices.flat}) > 1

    def _place(self) -> tuple:
        """Where arrays on it lie, whatever the types of its axes are."""
        return self.axis_names, self.axis_sizes, tuple(d.id for d in self.devices.flat)

    @property
    def local_devices(self) -> list[Device]:
        """Its devices that belong to this process, in the order of the mesh."""
        return [d for d in self.devices.flat if d.process_index == process_index()]

    def same_place(self, other: Mesh) -> bool:
        """Whether the same devices have the same places along the same axes, of whatever types.

        Args:
            other: a mesh.

        Returns: bool.

        Example:
            >>> mesh = weft.make_mesh((1,), ("x",))
            >>> mesh.same_place(weft.make_mesh((1,), ("x",), axis_types=weft.AxisType.Explicit))
            True
        """
        return self is other or self._place() == other._place()

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """The same with some of it changed.

        Args:
            devices: other devices; None: the same.
            axis_names: other names; None: the same.
            axis_types: other types; None: the same.

        Returns: weft.Mesh.

        Example:
            >>> weft.make_mesh((1,), ("x",)).update(axis_names=("y",))
            Mesh('y': 1)
        """
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def update_axis_types(self, name_to_type: Mapping[str, AxisType]) -> Mesh:
        """The same with other types of some axes.

        Args:
            name_to_type: a mapping of names of axes to their types.

        Returns: weft.Mesh.

        Raises:
            ValueError: a name is no axis.

        Example:
            >>> weft.make_mesh((1,), ("x",)).update_axis_types({"x": weft.AxisType.Explicit})
            Mesh('x': 1, axis_types=(Explicit,))
        """
        if missing := set(name_to_type) - set(self.axis_names):
            raise value_error(f"Mesh: {sorted(missing)} are no axes of {self}")
        return self.update(
            axis_types=tuple(name_to_type.get(name, kind) for name, kind in zip(self.axis_names, self.axis_types))
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mesh) and self.axis_types == other.axis_types and self.same_place(other)

    def __hash__(self) -> int:
        return hash((self._place(), self.axis_types))

    # The mesh that shard_map uses where none is given.
    def __enter__(self) -> Mesh:
        _around.meshes.append(self)
        _around.chosen.discard(len(_around.meshes))
        _weft.set_mesh_around(self, False)
        return self

    def __exit__(self, *_: object) -> None:
        if not any(mesh is self for mesh in _around.meshes):
            raise runtime_error("`with mesh:` must end in the thread in which it began")
        while _around.meshes.pop() is not self:  # weft.set_mesh inside of the block ends with it
            pass
        _weft.set_mesh_around(current_mesh(), chosen_mesh() is not None)


# The types of axes with which there are meshes of a place. The native module knows names and sizes alone.
_TYPES: dict[tuple, set[tuple[AxisType, ...]]] = {}


class _Around(threading.local):
    """The meshes of the `with mesh:` around what this thread runs, the innermost last; None where there is none."""

    def __init__(self) -> None:
        self.meshes: list[Any] = []
        self.chosen: set[int] = set()  # at which depths set_mesh has put one


_around = _Around()


def current_mesh() -> Mesh | None:
    """The innermost mesh of a `with mesh:` around the caller."""
    return _around.meshes[-1] if _around.meshes else None


def leave_all() -> None:
    """From now on no mesh is around the caller."""
    _around.meshes.clear()
    _around.chosen.clear()
    _weft.set_mesh_around(None, False)


def chosen_mesh() -> Mesh | None:
    """The innermost mesh around the caller, if weft.set_mesh put it there."""
    return current_mesh() if len(_around.meshes) in _around.chosen else None


class set_mesh(contextlib.AbstractContextManager[Any]):
    """The mesh around what follows in this thread, from the call on; used as `with weft.set_mesh(mesh):` until the end
    of the block. Where it is, PartitionSpecs alone say how arrays lie: device_put(x, P("x")), reshard,
    with_sharding_constraint, out_sharding=, shard_map without a mesh.

    Args:
        mesh: the mesh; None: none.

    Raises:
        TypeError: it is something else.
        ValueError: an axis of it is of type Manual.

    Example:
        >>> with weft.set_mesh(weft.make_mesh((1,), ("x",))):
        ...     weft.device_put(wnp.arange(4), weft.P("x")).sharding.spec
        PartitionSpec('x')
    """

    def __init__(self, mesh: Mesh | None):
        if isinstance(mesh, AbstractMesh) and mesh.empty:
            mesh = None
        if mesh is not None and not isinstance(mesh, Mesh):
            raise type_error(f"set_mesh: expected a weft.Mesh, got {mesh!r} of type '{type(mesh).__name__}'")
        if mesh is not None and mesh.manual_axes:
            raise value_error(
                f"set_mesh: {mesh} contains manual axes, over which functions run by shard_map, which gives them this "
                "type"
            )
        self._mesh = mesh
        _around.meshes.append(mesh)
        self._depth = len(_around.meshes)
        _around.chosen = {depth for depth in _around.chosen if depth < self._depth} | {self._depth}
        _weft.set_mesh_around(mesh, True)

    def __enter__(self) -> Mesh | None:
        return self._mesh

    def __exit__(self, *_: object) -> None:
        if len(_around.meshes) < self._depth:
            raise runtime_error("`with set_mesh(mesh):` must end in the thread in which it began")
        del _around.meshes[self._depth - 1 :]
        _around.chosen = {depth for depth in _around.chosen if depth < self._depth}
        _weft.set_mesh_around(current_mesh(), chosen_mesh() is not None)


def retyped(mesh: Mesh | AbstractMesh, names: Iterable[str], kind: AxisType) -> Mesh | AbstractMesh:
    """The mesh with another type of these axes, for the functions that run inside of something: mesh_of does not count
    it among those that there are."""
    if isinstance(mesh, AbstractMesh):
        return mesh.update_axis_types(dict.fromkeys(names, kind))
    known = _TYPES[mesh._place()]
    before = set(known)
    made = mesh.update_axis_types(dict.fromkeys(names, kind))
    known &= before
    return made


def get_mesh() -> Mesh | AbstractMesh:
    """The mesh around the call, of `with mesh:` or weft.set_mesh.

    Returns: weft.Mesh; where there is none a weft.AbstractMesh without axes.

    Example:
        >>> weft.get_mesh().empty
        True
    """
    return current_mesh() or AbstractMesh((), ())


def get_abstract_mesh() -> AbstractMesh:
    """The mesh around the call without its devices; inside of shard_map the axes over which it runs are Manual.

    Returns: weft.AbstractMesh; without axes where there is none.

    Example:
        >>> with weft.set_mesh(weft.make_mesh((1,), ("x",))):
        ...     weft.get_abstract_mesh()
        AbstractMesh('x': 1)
    """
    mesh = current_mesh()
    if mesh is None:
        return AbstractMesh((), ())
    types = [
        AxisType.Manual if _weft.axis_is_bound(name) and name not in axes_left_alone() else kind
        for name, kind in zip(mesh.axis_names, mesh.axis_types)
    ]
    return mesh.with_types(types)


@contextlib.contextmanager
def mesh_around(mesh: Mesh | AbstractMesh | None, chosen: bool = False) -> Iterator[None]:
    """Inside it this is the mesh around, as it was where what runs here was called; or none is. `chosen`: as if by
    weft.set_mesh."""
    _around.meshes.append(mesh)
    (_around.chosen.add if chosen else _around.chosen.discard)(len(_around.meshes))
    _weft.set_mesh_around(mesh, chosen)
    try:
        yield
    finally:
        _around.meshes.pop()
        _weft.set_mesh_around(current_mesh(), chosen_mesh() is not None)


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[str],
    axis_types: Any = None,
    *,
    devices: Sequence[Device] | None = None,
) -> Mesh:
    """A mesh of the first devices there are, in order.

    Args:
        axis_shapes: the size of each axis.
        axis_names: its name.
        axis_types: its weft.AxisType; None: Auto.
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
    return Mesh(np.array(given[: math.prod(shape)], dtype=object).reshape(shape), axis_names, axis_types)


def mesh_axes(mesh: Mesh | AbstractMesh) -> list[tuple[str, int]]:
    """The names and sizes of the axes, as the native module takes them."""
    for name in mesh.axis_names:
        check_axis_name(name, "a program over a mesh")
    return list(mesh.shape.items())


def mesh_devices(mesh: Mesh | AbstractMesh) -> list[int]:
    """The numbers of its devices, as the native module takes them: none where they are 0, 1, 2 ..., as those are that
    stand for the devices of a mesh without any."""
    if isinstance(mesh, AbstractMesh):
        return []
    numbers = [d.id for d in mesh.devices.flat]
    return [] if numbers == list(range(mesh.size)) else numbers


def mesh_of(axes: Sequence[tuple[str, int]], numbers: Sequence[int]) -> Mesh:
    """The mesh of these axes and devices, as the native module gives them."""
    sizes, among = [size for _, size in axes], _devices.devices()
    wanted = numbers or range(math.prod(sizes))
    if max(wanted) >= len(among):
        raise value_error(f"jit: a program names device {max(wanted)}, but there are {len(among)} devices")
    chosen = [among[i] for i in wanted]
    array, names = np.array(chosen, dtype=object).reshape(sizes), tuple(name for name, _ in axes)
    known = _TYPES.get((names, array.shape, tuple(d.id for d in chosen)), set())
    # Where meshes of several types have this place, nothing is said.
    mesh = Mesh(array, names, next(iter(known)) if len(known) == 1 else None)
    around = current_mesh()
    if around is not None and around.same_place(mesh):
        return around
    return mesh


def check_mesh(mesh: Any, what: str) -> Mesh:
    """The mesh that is given, or the one around the caller."""
    if isinstance(mesh, AbstractMesh):
        around = current_mesh()
        if around is None or around.shape_tuple != mesh.shape_tuple:
            raise value_error(f"{what}: {mesh} has no devices, and the mesh around the call has not its axes: {around}")
        mesh = around
    mesh = current_mesh() if mesh is None else mesh
    if mesh is None:
        raise value_error(
            f"{what}: no mesh is given, and there is none around the call (`with weft.set_mesh(mesh):`, `with mesh:`)"
        )
    if not isinstance(mesh, Mesh):
        raise type_error(f"{what}: mesh is {mesh!r} of type '{type(mesh).__name__}'; expected a weft.Mesh")
    return mesh
