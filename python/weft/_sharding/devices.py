"""The devices there are, of this process and of the others of its job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from .. import _weft
from .._core.errors import value_error

PLATFORM = "cpu"  # the backend on whose devices arrays lie


class Memory(NamedTuple):
    """A memory of a device."""

    kind: str


class AbstractDevice(NamedTuple):
    """What a mesh without devices says of them.

    Example:
        >>> weft.AbstractMesh((2,), ("x",)).abstract_device.platform
        'cpu'
    """

    device_kind: str
    num_cores: int | None
    platform: str

    def __repr__(self) -> str:
        return f"AbstractDevice(device_kind={self.device_kind}, num_cores={self.num_cores}, platform={self.platform})"


OWN_KIND = AbstractDevice(PLATFORM, None, PLATFORM)


class Device:
    """One device: `id`, `platform`, `device_kind` and `process_index`. weft.devices() lists them.

    Args:
        number: its place in that list.
        process_index: the process that it belongs to.
        platform: what runs its programs.
        device_kind: which model it is.

    Example:
        >>> weft.devices()[0].platform
        'cpu'
    """

    __slots__ = ("device_kind", "id", "platform", "process_index")

    def __init__(self, number: int, process_index: int = 0, platform: str = PLATFORM, device_kind: str = PLATFORM):
        self.id, self.platform, self.device_kind, self.process_index = number, platform, device_kind, process_index

    def memory_stats(self) -> dict[str, int]:
        """What there is of its memory. Devices of one process share it.

        Returns: dict: `bytes_limit`, how much there is, and `bytes_kept`, how much Weft keeps for reuse.

        Raises:
            ValueError: it is another process's.

        Example:
            >>> weft.devices()[0].memory_stats()["bytes_limit"] > 0
            True
        """
        if self.process_index != _process[0]:
            raise value_error(
                f"memory_stats: {self!r} belongs to process {self.process_index}, this is process {_process[0]}; "
                "weft.local_devices() lists this one's"
            )
        _, _, (_, limit) = own_devices()[0]
        return {"bytes_limit": limit, "bytes_kept": _weft.kept_bytes(self.platform)}

    def addressable_memories(self) -> list[Memory]:
        """Its memories, under JAX's names: there is one.

        Returns: list of Memory, which have a `kind`.

        Example:
            >>> weft.devices()[0].addressable_memories()
            [Memory(kind='device')]
        """
        return [self.default_memory()]

    def default_memory(self) -> Memory:
        """The memory that arrays lie in.

        Returns: Memory, which has a `kind`.

        Example:
            >>> weft.devices()[0].default_memory().kind
            'device'
        """
        return Memory("device")

    @property
    def client(self) -> Client:
        """What devices of its platform have in common, under JAX's names.

        Returns: Client: `platform`, and the methods devices, local_devices, device_count, local_device_count and
            process_index.

        Example:
            >>> weft.devices()[0].client.platform
            'cpu'
        """
        return Client(self.platform)

    def __repr__(self) -> str:
        return f"{self.platform.capitalize()}Device(id={self.id})"

    def __reduce__(self):
        return device_of_pickle, (self.id,)


class Client:
    """What devices of a platform have in common, under JAX's names.

    Args:
        platform: what runs their programs.
    """

    __slots__ = ("platform",)

    def __init__(self, platform: str):
        self.platform = platform

    def devices(self) -> list[Device]:
        return devices()

    def local_devices(self) -> list[Device]:
        return local_devices()

    def device_count(self) -> int:
        return len(devices())

    def local_device_count(self) -> int:
        return len(local_devices())

    def process_index(self) -> int:
        return process_index()

    @property
    def runtime_type(self) -> str:
        return "weft"

    def __repr__(self) -> str:
        return f"Client(platform={self.platform!r})"


def device_of_pickle(number: int) -> Device:
    """The device with this number. Raises ValueError where there are not so many."""
    among = devices()
    if number >= len(among):
        raise value_error(
            f"a pickle names device {number}, but there are {len(among)} devices "
            "(WEFT_NUM_CPU_DEVICES sets the number of virtual devices of the process)"
        )
    return among[number]


_devices: list[Device] = []
_process = [0, 1]  # this one, and how many there are


# Called before the devices are counted: it may set WEFT_NUM_CPU_DEVICES.
before_counting: list[Callable[[], None]] = []


def own_devices() -> list[tuple[str, str, tuple[str, int]]]:
    """The devices of this process on which arrays lie: platform, kind, and kind and size of its memory. Raises
    ValueError where the environment asks for a number of them that is none."""
    while before_counting:
        before_counting.pop()()
    return _weft.devices_of_backend(PLATFORM)


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
    return PLATFORM  # without counting them: options may still say how many there are


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
    if backend not in (None, PLATFORM):
        raise value_error(f"devices: there is no backend {backend!r}; there is {PLATFORM!r}")
    if not _devices:
        _devices.extend(Device(i, 0, platform, kind) for i, (platform, kind, _) in enumerate(own_devices()))
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
