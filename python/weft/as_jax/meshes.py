"""jax.sharding beside weft's meshes: the mesh around the code, and what describes meshes without devices."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import weft

from .._core.errors import value_error
from ..mesh import AbstractMesh, AxisType, get_abstract_mesh, get_mesh, make_mesh, set_mesh  # noqa: F401
from ..parallel import smap  # noqa: F401
from ..partitioning import reshard  # noqa: F401

use_mesh = set_mesh


@contextlib.contextmanager
def use_abstract_mesh(mesh: Any) -> Iterator[Any]:
    """Nothing: programs are traced without regard to a mesh."""
    yield mesh


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
