"""jax.sharding beside weft's meshes: the mesh around the code, and what describes meshes without devices."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import weft

from .._core.errors import value_error
from .._sharding.meshes import current_mesh


class AxisType(enum.Enum):
    """How JAX treats an axis of a mesh. Weft's compiler cuts programs over every axis (Auto)."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()


class AbstractMesh:
    """Names and sizes of axes, without devices."""

    def __init__(
        self, axis_sizes: Sequence[int] = (), axis_names: Sequence[str] | str = (), axis_types: Any = None, **_: Any
    ):
        self.axis_sizes = tuple(axis_sizes)
        self.axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        self.axis_types = tuple(axis_types or [AxisType.Auto] * len(self.axis_names))

    @property
    def shape(self) -> dict[str, int]:
        return dict(zip(self.axis_names, self.axis_sizes))

    @property
    def size(self) -> int:
        return int(np.prod(self.axis_sizes, dtype=int))

    @property
    def empty(self) -> bool:
        return not self.axis_names

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self.shape == other.shape and self.axis_names == other.axis_names

    def __hash__(self) -> int:
        return hash((self.axis_names, self.axis_sizes))

    def __repr__(self) -> str:
        return f"AbstractMesh({', '.join(f'{name!r}: {n}' for name, n in self.shape.items())})"


def get_mesh() -> Any:
    """The mesh around the code; an empty AbstractMesh where there is none."""
    return current_mesh() or AbstractMesh()


def get_abstract_mesh() -> AbstractMesh:
    """Names and sizes of the mesh around the code."""
    mesh = current_mesh()
    return AbstractMesh() if mesh is None else AbstractMesh(tuple(mesh.shape.values()), mesh.axis_names)


class set_mesh(contextlib.AbstractContextManager[Any]):
    """The mesh around the code, from the call on; in a `with` statement until its end."""

    def __init__(self, mesh: Any):
        self.mesh = mesh
        self._own = isinstance(mesh, weft.Mesh)
        if self._own:
            mesh.__enter__()

    def __enter__(self) -> Any:
        return self.mesh

    def __exit__(self, *error: Any) -> None:
        if self._own:
            self.mesh.__exit__(*error)


use_mesh = set_mesh


@contextlib.contextmanager
def use_abstract_mesh(mesh: Any) -> Iterator[Any]:
    """Nothing: programs are traced without regard to a mesh."""
    yield mesh


def make_mesh(
    axis_shapes: Sequence[int], axis_names: Sequence[str], axis_types: Any = None, *, devices: Any = None
) -> weft.Mesh:
    """A mesh of the first devices."""
    del axis_types
    return weft.make_mesh(axis_shapes, axis_names, devices=devices)


def reshard(x: Any, out_shardings: Any) -> Any:
    """The tree, placed otherwise."""
    mesh = current_mesh()
    if isinstance(out_shardings, weft.PartitionSpec) and mesh is not None:
        out_shardings = weft.NamedSharding(mesh, out_shardings)
    return weft.with_sharding_constraint(x, out_shardings)


def smap(f: Any, /, *, in_axes: Any, out_axes: Any, axis_name: str) -> Any:
    """The function over one axis of the mesh around the code."""
    spec = lambda axis: weft.P() if axis is None else weft.P(*[None] * axis, axis_name)
    of = lambda axes: tuple(map(spec, axes)) if isinstance(axes, tuple) else spec(axes)
    return weft.shard_map(f, mesh=current_mesh(), in_specs=of(in_axes), out_specs=of(out_axes))


def create_device_mesh(mesh_shape: Sequence[int], devices: Any = None, **_: Any) -> np.ndarray[Any, Any]:
    """Devices in an array of a shape, for jax.sharding.Mesh."""
    listed = list(weft.devices() if devices is None else devices)
    n = int(np.prod(mesh_shape, dtype=int))
    if n != len(listed):
        raise value_error(f"Number of devices {len(listed)} must equal the product of mesh_shape {tuple(mesh_shape)}")
    out = np.empty(n, dtype=object)
    out[:] = listed
    return out.reshape(tuple(mesh_shape))


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int], dcn_mesh_shape: Sequence[int], devices: Any = None, **_: Any
) -> np.ndarray[Any, Any]:
    """Devices in an array whose sizes are the products of both shapes."""
    return create_device_mesh([a * b for a, b in zip(mesh_shape, dcn_mesh_shape, strict=True)], devices)


class PositionalSharding:
    """JAX's older way to cut arrays; no object of this class exists."""


class _Resources:
    @property
    def physical_mesh(self) -> Any:
        return get_mesh()


class _ThreadResources:
    env = _Resources()


thread_resources = _ThreadResources()
