"""The devices there are, of this process and of the others of its job."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from .._core.errors import value_error


class Device:
    """One device: `id`, `platform` and `device_kind` ("cpu") and `process_index`. weft.devices() lists them.

    Args:
        number: its place in that list.
        process_index: the process that it belongs to.

    Example:
        >>> weft.devices()[0].platform
        'cpu'
    """

    __slots__ = ("device_kind", "id", "platform", "process_index")

    def __init__(self, number: int, process_index: int = 0):
        self.id, self.platform, self.device_kind, self.process_index = number, "cpu", "cpu", process_index

    def __repr__(self) -> str:
        return f"CpuDevice(id={self.id})"

    def __reduce__(self):
        return device_of_pickle, (self.id,)


def device_of_pickle(number: int) -> Device:
    """The device with this number. Raises ValueError where there are not so many."""
    among = devices()
    if number >= len(among):
        raise value_error(
            f"a pickle names device {number}, but there are {len(among)} devices "
            "(WEFT_NUM_CPU_DEVICES sets the number of virtual devices of the process)"
        )
    return among[number]


_MOST_DEVICES = 4096
_devices: list[Device] = []
_process = [0, 1]  # this one, and how many there are


def own_device_count() -> int:
    """How many devices this process has, as WEFT_NUM_CPU_DEVICES says. Raises ValueError for what is no number."""
    given = os.environ.get("WEFT_NUM_CPU_DEVICES") or "1"
    if not given.isdecimal() or not 1 <= int(given) <= _MOST_DEVICES:
        raise value_error(f"WEFT_NUM_CPU_DEVICES is {given!r}; expected a number from 1 to {_MOST_DEVICES}")
    return int(given)


def devices_were_listed() -> bool:
    """Whether somebody has asked for the devices."""
    return bool(_devices)


def set_processes(rank: int, counts: Sequence[int]) -> None:
    """There are as many processes as `counts`, with so many devices each, and this is number `rank`."""
    _process[:] = [rank, len(counts)]
    _devices[:] = [Device(i, p) for i, p in enumerate(p for p, n in enumerate(counts) for _ in range(n))]


def process_index() -> int:
    """The number of this process in its job; 0 where weft.distributed.initialize() was not called.

    Returns: integer.

    Example:
        >>> weft.process_index()
        0
    """
    return _process[0]


def process_count() -> int:
    """How many processes the job has.

    Returns: integer.

    Example:
        >>> weft.process_count()
        1
    """
    return _process[1]


def default_backend() -> str:
    """The platform of the devices that arrays lie on.

    Returns: text, as Device.platform.

    Example:
        >>> weft.default_backend()
        'cpu'
    """
    return devices()[0].platform


def devices(backend: str | None = None) -> list[Device]:
    """The devices there are, in order: one, or as many virtual ones as WEFT_NUM_CPU_DEVICES says; after
    weft.distributed.initialize() those of all processes, one process after the other.

    Args:
        backend: "cpu" or None.

    Returns: list of weft.Device.

    Raises:
        ValueError: there is no such backend; WEFT_NUM_CPU_DEVICES is no number of devices.

    Example:
        >>> weft.devices()
        [CpuDevice(id=0)]
    """
    if backend not in (None, "cpu"):
        raise value_error(f"devices: there is no backend {backend!r}; there is 'cpu'")
    if not _devices:
        _devices.extend(Device(i) for i in range(own_device_count()))
    return list(_devices)


def local_devices(process_index: int | None = None) -> list[Device]:
    """The devices of one process.

    Args:
        process_index: its number; None: this one.

    Returns: list of weft.Device.

    Raises:
        ValueError: there is no such process.

    Example:
        >>> weft.local_devices()
        [CpuDevice(id=0)]
    """
    wanted = _process[0] if process_index is None else process_index
    if not 0 <= wanted < _process[1]:
        raise value_error(f"local_devices: there is no process {wanted}; there are {_process[1]}")
    return [d for d in devices() if d.process_index == wanted]


def device_count() -> int:
    """How many devices there are.

    Returns: integer.

    Example:
        >>> weft.device_count()
        1
    """
    return len(devices())


def local_device_count() -> int:
    """How many devices this process has.

    Returns: integer.

    Example:
        >>> weft.local_device_count()
        1
    """
    return len(local_devices())


def first_devices(count: int, given: Iterable[Device] | None, what: str) -> list[Device]:
    """So many devices. Raises ValueError when there are fewer."""
    among = devices() if given is None else list(given)
    if count > len(among):
        raise value_error(
            f"{what}: {count} devices are needed, but there are {len(among)} "
            "(WEFT_NUM_CPU_DEVICES sets the number of virtual devices of the process)"
        )
    return among[:count]
