"""Meshes over chips that stand in a torus: jax.experimental.mesh_utils of devices that say where they are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import weft

from .._core.errors import not_implemented, value_error
from ..errors import ArgumentError

TPU_V4 = "TPU v4"
TPU_7X = "TPU7x"
TPU_7 = "TPU7"

# The sizes of a torus, and for each shape of a mesh the order of its dimensions in which the devices of one process
# stay together.
CONTIGUOUS: dict[tuple[int, ...], dict[tuple[int, ...], tuple[int, ...]]] = {
    (2, 2, 1): {(2, 2): (0, 1, 2)},
    (2, 2, 4): {(4, 4): (0, 1, 2)},
    (4, 4, 4): {(16, 4): (0, 2, 1)},
    (4, 8, 8): {(64, 4): (0, 2, 1), (4, 64): (0, 2, 1)},
    (8, 8, 8): {(64, 8): (0, 2, 1)},
    (8, 16, 16): {(256, 8): (0, 2, 1), (8, 256): (0, 2, 1)},
}

# Walks over trays, of which each step goes to a neighbour: of four chips with two cores each, of 2 x 2, 4 x 2, 4 x 4
# and 2 x 2 x 2 chips.
_RING_OF_CORES = (0, 1, 2, 3, 6, 7, 4, 5)
_RING_2X2 = (0, 1, 3, 2)
_RING_4X2 = (0, 1, 2, 3, 7, 6, 5, 4)
_RING_4X4 = (0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4)
_RING_2X2X2 = (0, 1, 3, 2, 6, 7, 5, 4)
_BY_X_FIRST = (0, 4, 2, 6, 1, 5, 3, 7)


def _in_order(devices: Sequence[Any], order: Sequence[int], shape: Sequence[int]) -> np.ndarray:
    return np.asarray(devices, dtype=object)[list(order)].reshape(shape)


def _by_place(devices: Sequence[Any]) -> tuple[tuple[int, ...], list[Any]]:
    """The sizes of the box from the origin to the last device, and the devices, x changing first."""
    places = {id(d): tuple(getattr(d, "coords", (0, 0, 0))) for d in devices}
    box = tuple(n + 1 for n in max(places.values()))
    return box, sorted(devices, key=lambda d: places[id(d)][::-1])


def _cores_of_trays(shape: Sequence[int], devices: Sequence[Any]) -> np.ndarray:
    """Chips with two cores, TPU v2 and v3: rings of the eight cores of a tray."""
    if len(devices) == 8:
        return _in_order(devices, _RING_OF_CORES, shape)
    whole = np.asarray(devices, dtype=object).reshape(shape)
    return whole[..., list(_RING_OF_CORES)] if shape[-1] == 8 else whole


def _one_tray(shape: Sequence[int], devices: Sequence[Any]) -> np.ndarray | None:
    return _in_order(devices, _RING_2X2, shape) if len(devices) == 4 else None


def _flat_trays(shape: Sequence[int], devices: Sequence[Any]) -> np.ndarray | None:
    """Chips in a plane, TPU v5e and v6e."""
    box, placed = _by_place(devices)
    if box == (2, 2, 1) and len(devices) == 4:
        return _in_order(placed, _RING_2X2, shape)
    if len(devices) == 8:
        return _in_order(placed, _BY_X_FIRST if box == (2, 2, 2) else _RING_4X2, shape)
    if box == (4, 4, 1) and len(devices) == 16 == max(shape):
        return _in_order(placed, _RING_4X4, shape)
    return None


def _cube(shape: Sequence[int], devices: Sequence[Any]) -> np.ndarray | None:
    box, placed = _by_place(devices)
    return _in_order(placed, _RING_2X2X2, shape) if box == (2, 2, 2) and len(devices) == 8 else None


def _stacked_trays(shape: Sequence[int], devices: Sequence[Any]) -> np.ndarray | None:
    """Up to four trays of 2 x 2 chips with two cores each, one upon the other."""
    if len(devices) % 8 or len(devices) > 32 or max(torus_of(devices).shape[:2]) > 2:
        return None
    order = [tray + core for tray in range(0, len(devices), 8) for core in _RING_OF_CORES]
    return _in_order(devices, order, shape)


# What is known of small arrangements, by the kind of the devices; None: the general way.
_SMALL: dict[str, Callable[[Sequence[int], Sequence[Any]], np.ndarray | None]] = {
    "TPU v2": _cores_of_trays,
    "TPU v3": _cores_of_trays,
    "TPU v4 lite": _one_tray,
    "TPU v5 lite": _flat_trays,
    "TPU v5p": _cube,
    "TPU v6 lite": _flat_trays,
    TPU_7X: _stacked_trays,
    TPU_7: _stacked_trays,
    "TPU8i": _one_tray,
}


def torus_of(devices: Sequence[Any]) -> np.ndarray:
    """The devices where they stand: an array with a dimension for each coordinate; the cores of a chip are the third
    one of TPU v2 and v3, and a fourth one of later chips that show both. Raises AssertionError where they do not fill
    a box."""
    kind = devices[0].device_kind
    cores = [d.core_on_chip for d in devices]
    flat, two = kind in ("TPU v2", "TPU v3"), kind in (TPU_7X, TPU_7, "TPU8i")
    two = two or (kind == "TPU v5p" and min(cores) != max(cores))
    if not flat and not two and any(cores):
        raise AssertionError(f"devices of kind {kind} are chips, and these are cores of chips: {devices}")
    places = np.array([[*d.coords, d.core_on_chip] for d in devices])
    places -= places.min(axis=0)
    if flat and places[:, 2].any():
        raise AssertionError(f"devices of kind {kind} lie in a plane, and these do not: {devices}")
    if flat:
        places = places[:, [0, 1, 3]]
    elif not two:
        places = places[:, :3]
    found = np.full(places.max(axis=0) + 1, None, dtype=object)
    for device, place in zip(devices, places):
        found[tuple(place)] = device
    if found.size != len(devices) or any(d is None for d in found.flat):
        raise AssertionError(f"the coordinates of the devices are not a contiguous cuboid: {devices}")
    return found


def prime_factors(n: int) -> list[int]:
    """The prime factors of a number, the smallest first."""
    found, divisor = [], 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            found.append(divisor)
            n //= divisor
        divisor += 1
    return found + [n] * (n > 1)


def shares_of_axes(torus: Sequence[int], assignment: np.ndarray, logical_axis_size: int) -> Iterator[np.ndarray]:
    """How an axis of a mesh can be made of parts of the dimensions of a torus, of which `assignment` has taken some:
    the size that each gives."""
    left = np.asarray(torus) // np.prod(assignment, axis=-1)
    wanted = prime_factors(logical_axis_size)
    choices = []
    for prime in sorted(set(wanted)):
        having = [d for d, size in enumerate(left) for factor in prime_factors(int(size)) if factor == prime]
        # Each choice once, in the order in which JAX has them.
        chosen = set(itertools.combinations(having, wanted.count(prime)))
        choices.append([(prime, dims) for dims in chosen])
    for each in itertools.product(*choices):
        share = np.ones(len(left), dtype=np.int64)
        for prime, dims in each:
            for d in dims:
                share[d] *= prime
        yield share


def is_better_share(
    x: np.ndarray, y: np.ndarray, *, physical_mesh_shape: Sequence[int], assignment: np.ndarray
) -> bool:
    """Whether an axis had better be made of the parts x than of y: of whole dimensions first, and of many of them."""
    taken = np.prod(assignment, axis=-1)

    def worth(share: np.ndarray) -> tuple[int, int, int, tuple[int, ...]]:
        whole = [int(n) for n, size in zip(share, physical_mesh_shape) if n == size]
        begun = math.prod(int(n) for n, before in zip(share, taken) if before > 1)
        return math.prod(whole), sum(n > 1 for n in whole), begun, tuple(map(int, share))

    return worth(x) > worth(y)


def by_shares(torus: np.ndarray, mesh_shape: Sequence[int], assignment: np.ndarray) -> np.ndarray:
    """The devices of a torus as a mesh whose axes (columns) are made of parts of its dimensions (rows)."""
    parts = assignment.reshape(-1)
    order = np.arange(assignment.size).reshape(assignment.shape).T.reshape(-1)
    return torus.reshape(parts).transpose(order).reshape(mesh_shape)


def on_split_dimensions(torus: np.ndarray, mesh_shape: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The mesh of a torus whose dimensions may be divided among axes, and who got what of them."""
    if torus.size != math.prod(mesh_shape):
        raise value_error(f"a mesh of shape {tuple(mesh_shape)} has not as many devices as a torus of {torus.shape}")
    assignment = np.ones((torus.ndim, len(mesh_shape)), dtype=np.int64)
    for axis in reversed(range(len(mesh_shape))):  # who talks most chooses first
        best = None
        for share in shares_of_axes(torus.shape, assignment, int(mesh_shape[axis])):
            if best is None or is_better_share(share, best, physical_mesh_shape=torus.shape, assignment=assignment):
                best = share
        if best is None:
            raise value_error(
                f"axis {axis} of a mesh of shape {tuple(mesh_shape)} cannot be made of parts of a torus of "
                f"{torus.shape}, of which others have taken {assignment.tolist()}"
            )
        assignment[:, axis] = best
    return by_shares(torus, mesh_shape, assignment), assignment


def on_torus(
    torus: np.ndarray, mesh_shape: Sequence[int], *, allow_split_physical_axes: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The mesh of a torus, and what each of its axes (columns) has of each dimension (rows): whole dimensions where
    that can be, as many as possible."""
    dims_of: list[tuple[int, ...]] = [()] * len(mesh_shape)
    free = set(range(torus.ndim))
    for axis in reversed(range(len(mesh_shape))):
        if mesh_shape[axis] == 1:
            continue
        choices = (dims for count in (4, 3, 2, 1) for dims in itertools.combinations(sorted(free), count))
        fit = (dims for dims in choices if math.prod(torus.shape[d] for d in dims) == mesh_shape[axis])
        if (found := next(fit, None)) is None:
            if allow_split_physical_axes:
                return on_split_dimensions(torus, mesh_shape)
            raise not_implemented(
                f"create_device_mesh: axis {axis} of size {mesh_shape[axis]} is no product of free dimensions of the "
                f"torus {torus.shape}; allow_split_physical_axes=True divides them"
            )
        dims_of[axis] = found
        free -= set(found)
    assignment = np.ones((torus.ndim, len(mesh_shape)), dtype=np.int64)
    for axis, dims in enumerate(dims_of):
        for d in dims:
            assignment[d, axis] = torus.shape[d]
    order = [*sorted(free), *itertools.chain(*dims_of)]  # those that are free have size 1
    return torus.transpose(order).reshape(mesh_shape), assignment


def _together(torus: np.ndarray, mesh_shape: Sequence[int]) -> np.ndarray:
    """The torus, its dimensions in an order in which the devices of one process stay together in the mesh."""
    known = CONTIGUOUS.get(torus.shape)
    what = "create_device_mesh cannot create contiguous submeshes for "
    if known is None:
        raise ArgumentError(f"{what}physical mesh topology {torus.shape}")  # no line of the program is at fault
    order = known.get(tuple(n for n in mesh_shape if n != 1))
    if order is None:
        raise ArgumentError(
            f"{what}mesh_shape {tuple(mesh_shape)} and physical mesh topology {torus.shape}. "
            f"Available mesh_shapes: {list(known)}"
        )
    return torus.transpose(order)


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Devices as an array of this shape, for Mesh: those of a torus so that they have short ways along the last axes,
    others in their order."""
    listed = list(weft.devices() if devices is None else devices)
    if not all(hasattr(n, "__index__") for n in mesh_shape):
        raise value_error(f"`mesh_shape` passed to `create_device_mesh` should be a sequence of ints. Got {mesh_shape}")
    shape = tuple(int(n) for n in mesh_shape)
    if math.prod(shape) != len(listed):
        raise value_error(f"Number of devices {len(listed)} must equal the product of mesh_shape {shape}")
    last = listed[-1]
    small = _SMALL.get(getattr(last, "device_kind", ""))
    found = None if small is None else small(shape, listed)
    if found is None and last.platform == "tpu":
        torus = torus_of(listed)
        torus = _together(torus, shape) if contiguous_submeshes else torus
        found, _ = on_torus(torus, shape, allow_split_physical_axes=allow_split_physical_axes)
    return np.array(listed, dtype=object).reshape(shape) if found is None else found


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Devices as an array for Mesh, of which those of one slice, or of one process, stand together: mesh_shape of each,
    and dcn_mesh_shape of them."""
    listed = list(weft.devices() if devices is None else devices)
    by_process = process_is_granule or not hasattr(listed[0], "slice_index")
    near: dict[Any, list[Any]] = {}
    for device in listed:
        near.setdefault(device.process_index if by_process else device.slice_index, []).append(device)
    if len(near) != math.prod(dcn_mesh_shape):
        raise value_error(
            f"Number of slices {len(near)} must equal the product of dcn_mesh_shape {tuple(dcn_mesh_shape)}"
        )
    blocks = np.empty(len(near), dtype=object)
    for n, key in enumerate(sorted(near) if should_sort_granules_by_key else near):
        blocks[n] = create_device_mesh(mesh_shape, near[key], allow_split_physical_axes=allow_split_physical_axes)
    return np.block(blocks.reshape(tuple(dcn_mesh_shape)).tolist())
