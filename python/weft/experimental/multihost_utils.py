"""What programs import from jax.experimental.multihost_utils: processes of a job that tell each other arrays."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from .. import _weft
from .._core import tree as _tree
from .._core.errors import value_error
from .._sharding.arrays import device_put, put
from .._sharding.devices import process_count, process_index
from .._sharding.meshes import Mesh
from .._sharding.shardings import NamedSharding, PartitionSpec, cuts_of, prefix_specs
from ..distributed import make_array_from_process_local_data, make_array_from_single_device_arrays

__all__ = [
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "process_allgather",
    "sync_global_devices",
]


def _exchange(what: str, value: Any) -> list[Any]:
    """What every process gives."""
    if process_count() == 1:
        return [value]
    return [pickle.loads(data) for data in _weft.all_gather_bytes(what, pickle.dumps(value))]


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """All of arrays that span several processes, in each of them; of other arrays, those of all processes.

    Args:
        in_tree: array, number or tree of them. Every process calls this at the same place.
        tiled: arrays of one process are concatenated along their first dimension, not stacked. Of arrays that span
            several processes there is one anyway.

    Returns: tree of NumPy arrays.

    Raises:
        ValueError: tiled, and an array has no dimension.

    Example:
        >>> weft.experimental.multihost_utils.process_allgather(wnp.arange(2))
        array([[0, 1]], dtype=int32)
    """

    def gather(x: Any) -> np.ndarray:
        if isinstance(x, _weft.Array) and not x.is_fully_addressable:
            return np.asarray(put(x, NamedSharding(x.sharding.mesh, PartitionSpec())))
        parts = _exchange("calls process_allgather", np.asarray(x))
        if not tiled:
            return np.stack(parts)
        if parts[0].ndim == 0:
            raise value_error("process_allgather: a number cannot be concatenated; tiled=False stacks them")
        return np.concatenate(parts)

    return _tree.map(gather, in_tree)


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The arrays of one process, in all of them.

    Args:
        in_tree: array, number or tree of them, of the same structure in all processes.
        is_source: whether it is this process's; None: process 0's.

    Returns: tree of NumPy arrays.

    Raises:
        ValueError: no process or several say that they are the source.

    Example:
        >>> int(weft.experimental.multihost_utils.broadcast_one_to_all(3))
        3
    """
    source = process_index() == 0 if is_source is None else is_source
    value = _tree.map(np.asarray, in_tree) if source else None
    sources = [v for is_it, v in _exchange("calls broadcast_one_to_all", (source, value)) if is_it]
    if len(sources) != 1:
        raise value_error(f"broadcast_one_to_all: {len(sources)} processes say that they are the source; expected one")
    return sources[0]


def sync_global_devices(name: str) -> None:
    """Waits until all processes have called this with the same name.

    Args:
        name: of the place in the program.

    Returns: nothing.

    Example:
        >>> weft.experimental.multihost_utils.sync_global_devices("epoch")
    """
    _exchange(f"calls sync_global_devices({name!r})", None)


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    """The same shape and elements, where a NaN is the same as another: that is what differs from itself, in every
    dtype, bfloat16 included."""
    return a.shape == b.shape and bool(np.all((a == b) | ((a != a) & (b != b))))


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raises AssertionError unless the arrays are the same in all processes.

    Args:
        in_tree: array, number or tree of them.
        fail_message: what the error begins with.

    Returns: nothing.

    Example:
        >>> weft.experimental.multihost_utils.assert_equal(wnp.arange(3))
    """
    for mine in map(np.asarray, _tree.leaves(in_tree)):
        for process, theirs in enumerate(_exchange("calls assert_equal", mine)):
            if not _equal(mine, theirs):
                raise AssertionError(
                    f"{fail_message} processes {process_index()} and {process} differ: {mine}, {theirs}"
                )


def _leaves_with_specs(tree: Any, pspecs: Any, what: str) -> tuple[list[Any], list[Any], Any]:
    leaves, structure = _tree.flatten(tree)
    return leaves, prefix_specs(pspecs, tree, what), structure


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Arrays over a mesh of several processes, of what each process has of them.

    Args:
        local_inputs: arrays, or a tree of them: what the devices of this process are to hold.
        global_mesh: the mesh.
        pspecs: a PartitionSpec, or a tree of them (a prefix of local_inputs suffices).

    Returns: tree like local_inputs. An array that spans several processes already is itself.

    Raises:
        ValueError: an array has not the shape of what the devices hold.

    Example:
        >>> mesh = weft.make_mesh((1,), ("x",))
        >>> weft.experimental.multihost_utils.host_local_array_to_global_array(wnp.ones(2), mesh, weft.P("x")).sharding
        NamedSharding(Mesh('x': 1), PartitionSpec('x'))
    """
    leaves, specs, structure = _leaves_with_specs(local_inputs, pspecs, "host_local_array_to_global_array: pspecs")
    found = []
    for leaf, spec in zip(leaves, specs):
        place = NamedSharding(global_mesh, PartitionSpec() if spec is None else spec)
        spans = isinstance(leaf, _weft.Array) and _weft.spans(leaf)
        found.append(leaf if spans else make_array_from_process_local_data(place, np.asarray(leaf)))
    return _tree.unflatten(structure, found)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """What this process has of arrays over a mesh of several: arrays over its own devices.

    Args:
        global_inputs: arrays, or a tree of them.
        global_mesh: the mesh.
        pspecs: a PartitionSpec, or a tree of them (a prefix of global_inputs suffices).

    Returns: tree like global_inputs. An array that does not span several processes is itself.

    Raises:
        ValueError: the devices of this process are no box of the mesh.

    Example:
        >>> x, mesh = wnp.ones(2), weft.make_mesh((1,), ("x",))
        >>> weft.experimental.multihost_utils.global_array_to_host_local_array(x, mesh, weft.P("x")) is x
        True
    """
    leaves, specs, structure = _leaves_with_specs(global_inputs, pspecs, "global_array_to_host_local_array: pspecs")
    found = []
    for leaf, spec in zip(leaves, specs):
        if not isinstance(leaf, _weft.Array) or not _weft.spans(leaf):
            found.append(leaf)
            continue
        whole = device_put(leaf, NamedSharding(global_mesh, PartitionSpec() if spec is None else spec))
        place = NamedSharding(_own_part(global_mesh), whole.sharding.spec)
        parts = {shard.device: shard.data for shard in whole.addressable_shards}
        blocks = [parts[device] for device in place.mesh.devices.flat]
        cuts = cuts_of(place.mesh, place.spec, [0] * whole.ndim, "global_array_to_host_local_array")
        sizes = zip(blocks[0].shape, cuts)
        shape = tuple(n * int(np.prod([place.mesh.shape[a] for a in names], dtype=int)) for n, names in sizes)
        found.append(make_array_from_single_device_arrays(shape, place, blocks))
    return _tree.unflatten(structure, found)


def _own_part(mesh: Mesh) -> Mesh:
    """The devices of this process, in the places that they have in a mesh."""
    own = np.vectorize(lambda d: d.process_index == process_index())(mesh.devices)
    box = tuple(slice(int(at.min()), int(at.max()) + 1) for at in np.nonzero(own))
    if not own.any() or not own[box].all():
        raise value_error(f"global_array_to_host_local_array: the devices of this process are no box of {mesh}")
    return Mesh(mesh.devices[box], mesh.axis_names, mesh.axis_types)
