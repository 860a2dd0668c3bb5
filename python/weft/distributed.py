"""Programs of several processes: `mpirun -n 4 python train.py`, where train.py begins with

    weft.distributed.initialize()

Then weft.devices() has the devices of all processes, and a jitted function over a mesh of them is one program that all
processes run, each its part. Arrays over such a mesh have a part in every process. See docs/parallel.md.
"""

from __future__ import annotations

import atexit
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from . import _weft
from ._core import tree as _tree
from ._core.errors import runtime_error, type_error, unexpected_tracer, value_error
from ._sharding import devices as _devices
from ._sharding.devices import Device
from ._sharding.meshes import check_mesh
from ._sharding.shardings import (
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    cuts_of,
    held_blocks,
)

__all__ = [
    "initialize",
    "is_initialized",
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
    "shutdown",
]

# What a launcher sets in the environment of each process.
_LAUNCHERS = ("OMPI_COMM_WORLD_SIZE", "PMIX_RANK")
_DEADLINE = 300.0
_MOST_SECONDS = 1e9  # 31 years; clocks count nanoseconds in 63 bits
_state: dict[str, Any] = {"initialized": False, "joined_by": None, "left": False}


def _is_joined() -> bool:
    """Whether this process is in a job: one that was forked from it is not, and must not speak for it."""
    return _state["joined_by"] == os.getpid()


def initialize(deadline: float | None = None) -> None:
    """Joins the job that this process was started in, by Open MPI (`mpirun -n 4 python train.py`) or by a Slurm that
    has it (`srun --mpi=pmix`). Without a launcher there is one process, and nothing changes. Comes before the first
    question for devices; a second call does nothing.

    From then on a process that raises ends the whole job, as does one that is killed, that does something else than
    the others, or that they have waited for in vain for `deadline`: with one message that says which.

    Args:
        deadline: for how many seconds processes wait for each other; None: what the environment variable
            WEFT_DEADLINE says, or 300.

    Returns: nothing.

    Raises:
        RuntimeError: devices were asked for before; Open MPI's library is missing; the job was left by shutdown().
        ValueError: the deadline is no positive number.

    Example:
        >>> weft.distributed.initialize()
        >>> weft.process_index(), weft.process_count()
        (0, 1)
    """
    if _state["left"]:
        raise runtime_error(
            "distributed.initialize: this process has left its job (weft.distributed.shutdown()), and cannot join one "
            "again"
        )
    if _state["initialized"]:
        return
    what = "distributed.initialize: the deadline"
    given: str | float | None = deadline
    if given is None:
        what, given = "WEFT_DEADLINE", os.environ.get("WEFT_DEADLINE") or _DEADLINE
    try:
        seconds = float(given)
    except (TypeError, ValueError, OverflowError):
        seconds = float("nan")
    if not 0 < seconds <= _MOST_SECONDS:
        raise value_error(f"{what} is {given!r}; expected a number of seconds above 0, at most {_MOST_SECONDS:.0f}")
    if any(name in os.environ for name in _LAUNCHERS):
        if _devices.devices_were_listed():
            raise runtime_error(
                "distributed.initialize() comes before everything that asks for devices: weft.devices(), meshes, "
                "shardings of arrays"
            )
        rank, size = _weft.join_job(seconds)
        _state["joined_by"] = os.getpid()
        previous = sys.excepthook
        sys.excepthook = lambda kind, error, trace: _end_job(previous, kind, error, trace)
        counts = _weft.all_gather_bytes("calls distributed.initialize", str(len(_devices.own_devices())).encode())
        _devices.set_processes(rank, [int(n) for n in counts])
        assert len(counts) == size
        atexit.register(shutdown)
    _state["initialized"] = True


def is_initialized() -> bool:
    """Whether initialize() was called.

    Returns: bool.

    Example:
        >>> weft.distributed.initialize()
        >>> weft.distributed.is_initialized()
        True
    """
    return _state["initialized"]


def shutdown() -> None:
    """Waits until all processes of the job have come here, and leaves it. Happens by itself when the program ends.
    After it nothing runs over several processes. One that does not come within the deadline ends the job.

    Returns: nothing.

    Example:
        >>> weft.distributed.shutdown()
    """
    if _is_joined():
        _state["joined_by"], _state["left"] = None, True
        _weft.leave_job()


def _end_job(
    previous: Callable[..., Any], kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """sys.excepthook: the traceback, and then the end of all processes."""
    if not _is_joined():
        previous(kind, error, trace)
        return
    rank, count = _devices.process_index(), _devices.process_count()
    who = f"rank {rank} of {count} raised {kind.__name__}"
    text = ""
    # Whatever goes wrong here (the exception's own __str__, an output that is closed), the others do not wait.
    try:
        who += _where(trace)
        text = "".join(traceback.format_exception(kind, error, trace))
        lines = str(error).splitlines()
        who += f": {lines[0] if lines else ''}"
        sys.stdout.flush()
    finally:
        _weft.end_job(who, text)


def _where(trace: TracebackType | None) -> str:
    # The user's innermost line: not one of a library's.
    paths = sysconfig.get_paths()
    own = os.path.dirname(os.path.abspath(__file__)) + os.sep
    libraries = (own, *(paths[name] + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")))
    frames = [f for f in traceback.extract_tb(trace) if not os.path.abspath(f.filename).startswith(libraries)]
    return f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def _blocks(sharding: Sharding, shape: Sequence[int], parts: Callable[[tuple[slice, ...]], Any]) -> Any:
    """An array of this shape from what `parts` gives for the slices that this process holds."""
    shape = tuple(int(n) for n in shape)
    if isinstance(sharding, NamedSharding):
        cuts_of(sharding.mesh, sharding.spec, shape, "an array")
    indices = held_blocks(sharding, shape)
    if not indices:
        raise value_error(f"this process has no device of {sharding}")
    local = sharding.shard_shape(shape)
    from . import random  # which is made of jitted functions, and these of what is here

    found: list[np.ndarray] = []
    generator = None
    for index in indices:
        given = parts(index)
        if isinstance(given, _weft.Array) and _weft.is_traced(given):
            raise unexpected_tracer(
                f"an array of shape {shape} is made of parts that are values of a function that is being traced; make "
                "it outside"
            )
        of_keys = str(getattr(given, "dtype", "")).startswith("key")
        if of_keys:
            generator = random.key_impl(given)
        part = np.asarray(random.key_data(given) if of_keys else given)
        got = tuple(given.shape) if of_keys else part.shape
        if got != local:
            raise value_error(f"the part {index} of an array of shape {shape} has shape {got}; expected {local}")
        found.append(part)
        if part.dtype != found[0].dtype:
            raise value_error(
                f"the part {index} of an array of shape {shape} has dtype {part.dtype}, the first one {found[0].dtype}"
            )
    words = found[0].shape[len(local) :]  # of keys, the others have none
    array = _weft.from_blocks(_weft.array(np.stack(found), None, True), (*shape, *words), sharding)
    return array if generator is None else random.wrap_key_data(array, impl=generator)


def make_array_from_callback(
    shape: Sequence[int], sharding: Sharding, data_callback: Callable[[tuple[slice, ...]], Any]
) -> Any:
    """An array whose parts a function gives: it is called for those that the devices of this process hold.

    Args:
        shape: of the whole array.
        sharding: how it lies.
        data_callback: gets slices of the whole array, gives that part: a NumPy array.

    Returns: array.

    Raises:
        ValueError: the sharding does not fit the shape, or a part has another shape or dtype than expected.

    Example:
        >>> rows = weft.NamedSharding(weft.make_mesh((1,), ("x",)), weft.P("x"))
        >>> weft.make_array_from_callback((3,), rows, lambda index: wnp.arange(3)[index])
        Array([0, 1, 2], dtype=int32)
    """
    return _blocks(sharding, shape, data_callback)


def _in_order_of(parts: list, sharding: Sharding) -> list:
    """Parts of an array in the order of the devices that hold them, where somebody has put each on one of these."""
    places = [None if _weft.is_traced(part) else _weft.sharding_of(part) for part in parts]
    held = {p._device.id: part for p, part in zip(places, parts) if isinstance(p, SingleDeviceSharding)}
    wanted = [d.id for d in sharding._device_list() if d.process_index == _devices.process_index()]
    return [held[i] for i in wanted] if len(held) == len(parts) and held.keys() == set(wanted) else parts


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding, arrays: Sequence[Any], *, dtype: Any = None
) -> Any:
    """An array from what each device of this process holds of it. It shares their memory. Of devices that hold the
    same, the first one's array counts.

    Args:
        shape: of the whole array.
        sharding: how it lies.
        arrays: one for each device of this process, in any order where each lies on one of them; others in the order
            of sharding.addressable_devices_indices_map(shape).
        dtype: that of the arrays; None: not checked.

    Returns: array.

    Raises:
        TypeError: arrays is no list or tuple.
        ValueError: there are more or fewer arrays than devices, or a part has another shape or dtype, lies on several
            devices, or is a value of a function that is being traced.

    Example:
        >>> rows = weft.NamedSharding(weft.make_mesh((1,), ("x",)), weft.P("x"))
        >>> weft.make_array_from_single_device_arrays((2,), rows, [wnp.ones(2)])
        Array([1., 1.], dtype=float32)
    """
    shape = tuple(int(n) for n in shape)
    if not isinstance(arrays, (list, tuple)):
        raise type_error(
            f"make_array_from_single_device_arrays: arrays must be a list or tuple, got '{type(arrays).__name__}'"
        )
    places = list(sharding.addressable_devices_indices_map(shape).values())
    if len(places) != len(arrays):
        raise value_error(
            f"make_array_from_single_device_arrays: {len(arrays)} arrays for {len(places)} devices of this process"
        )
    if not places:
        raise value_error(f"this process has no device of {sharding}")
    if isinstance(sharding, NamedSharding):
        cuts_of(sharding.mesh, sharding.spec, shape, "an array")
    local = sharding.shard_shape(shape)
    parts = _in_order_of([_weft.array(part, None, False) for part in arrays], sharding)
    for index, part in zip(places, parts):
        if _weft.is_traced(part):
            raise value_error(
                f"make_array_from_single_device_arrays: the part {index} is a value of a function that is being "
                "traced; arrays on devices are needed, whose numbers are there"
            )
        if part.sharding.num_devices != 1:
            raise value_error(
                f"make_array_from_single_device_arrays: the part {index} lies on {part.sharding.num_devices} devices; "
                "expected an array of one device"
            )
        if part.shape != local:
            raise value_error(f"the part {index} of an array of shape {shape} has shape {part.shape}; expected {local}")
        if part.dtype != parts[0].dtype:
            raise value_error(
                f"the part {index} of an array of shape {shape} has dtype {part.dtype}, the first one {parts[0].dtype}"
            )
    if dtype is not None and parts[0].dtype != _weft.dtype(dtype):
        raise value_error(
            f"make_array_from_single_device_arrays: dtype is {_weft.dtype(dtype)}, the arrays have {parts[0].dtype}"
        )
    return _weft.from_device_arrays(parts, shape, sharding)


def make_array_from_process_local_data(
    sharding: Sharding | Device | PartitionSpec, local_data: Any, global_shape: Any = None
) -> Any:
    """An array over several processes, each of which gives what its own devices hold: a batch of which every process
    has read its own rows.

    Args:
        sharding: how the whole array lies: a sharding, a device, or a PartitionSpec for the mesh around the call.
        local_data: the part of this process: of the smallest box around what its devices hold. In a dimension where it
            is as large as the whole array, it may be all of it. Or a tree of such parts.
        global_shape: of the whole array; None: in each dimension so much larger than local_data as the devices' box is
            smaller than the whole. Of a tree one for all, or a tree of them.

    Returns: array, or a tree of them.

    Raises:
        ValueError: local_data has another shape than what the devices hold.

    Example:
        >>> rows = weft.NamedSharding(weft.make_mesh((1,), ("x",)), weft.P("x"))
        >>> weft.make_array_from_process_local_data(rows, wnp.ones(2))
        Array([1., 1.], dtype=float32)
    """
    what = "make_array_from_process_local_data"
    if isinstance(sharding, Device):
        sharding = SingleDeviceSharding(sharding)
    elif isinstance(sharding, PartitionSpec):
        sharding = NamedSharding(check_mesh(None, what), sharding)
    leaves, tree = _tree.flatten(local_data)
    if isinstance(global_shape, dict):
        shapes = _tree.leaves(global_shape, is_leaf=lambda shape: isinstance(shape, (tuple, list)))
    else:
        shapes = [global_shape] * len(leaves)
    if len(shapes) != len(leaves):
        raise value_error(f"{what}: {len(shapes)} global shapes for {len(leaves)} arrays: {global_shape!r}")
    return _tree.unflatten(tree, [_from_local_data(sharding, leaf, shape) for leaf, shape in zip(leaves, shapes)])


def _from_local_data(sharding: Sharding, local_data: Any, global_shape: Sequence[int] | None) -> Any:
    data = np.asarray(local_data)
    if global_shape is None:
        # What share of each dimension the box is, from a shape that every cut divides.
        model = [1] * data.ndim
        if isinstance(sharding, NamedSharding):
            cuts = cuts_of(sharding.mesh, sharding.spec, [0] * data.ndim, "make_array_from_process_local_data")
            model = [int(np.prod([sharding.mesh.shape[a] for a in names], dtype=int)) for names in cuts]
        low, high = _box(sharding, model)
        shape = tuple(n * m // (b - a) for n, m, a, b in zip(data.shape, model, low, high))
    else:
        shape = tuple(int(n) for n in global_shape)
    low, high = _box(sharding, shape)
    offset = []
    for d, (n, a, b, whole) in enumerate(zip(data.shape, low, high, shape)):
        if n == b - a:
            offset.append(a)
        elif n == whole:
            offset.append(0)
        else:
            raise value_error(
                f"make_array_from_process_local_data: dimension {d} of local_data has size {n}; the devices of this "
                f"process hold {b - a} of {whole} there ({sharding})"
            )
    if data.ndim != len(shape):
        raise value_error(
            f"make_array_from_process_local_data: local_data has {data.ndim} dimensions, the whole {len(shape)}"
        )
    part = lambda index: data[tuple(slice(s.start - o, s.stop - o) for s, o in zip(index, offset))]
    return _blocks(sharding, shape, part)


def _box(sharding: Sharding, shape: Sequence[int]) -> tuple[list[int], list[int]]:
    """Where what this process holds of an array begins and ends, in each dimension."""
    indices = held_blocks(sharding, shape)
    if not indices:
        raise value_error(f"this process has no device of {sharding}")
    low = [min(index[d].start for index in indices) for d in range(len(shape))]
    high = [max(index[d].stop for index in indices) for d in range(len(shape))]
    return low, high
