"""Options that find out what a program does: context managers, and weft.config for the process."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from . import _weft
from ._core import options as _options
from ._core import watching as _watching
from ._core.errors import not_implemented, value_error
from ._sharding.devices import Device, default_backend, local_devices
from ._sharding.shardings import SingleDeviceSharding

__all__ = [
    "checking_leaks",
    "debug_infs",
    "debug_key_reuse",
    "default_device",
    "default_matmul_precision",
    "explain_cache_misses",
    "live_arrays",
    "log_compiles",
    "no_execution",
    "no_tracing",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "threefry_partitionable",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
]


@contextlib.contextmanager
def _nothing_changes() -> Iterator[None]:
    """What an option without effect gives: as those of the others it may stand before a function, too."""
    yield


def debug_infs(on: bool = True) -> contextlib.AbstractContextManager[None]:
    """A context manager: inside it the results of jitted functions, and of operations outside of them, are searched for
    infinities, in this thread, as debug_nans searches for NaN.

    Args:
        on: whether to.

    Returns: context manager.

    Example:
        >>> with weft.debug_infs():
        ...     try:
        ...         weft.jit(lambda x: wnp.log(x))(0.0)
        ...     except FloatingPointError as error:
        ...         print(str(error).splitlines()[0])
        'log' gives an infinity
    """
    return _options.debug_infs(on)


def debug_key_reuse(on: bool = True) -> contextlib.AbstractContextManager[None]:
    """A context manager: inside it a random key that is used twice is a weft.errors.KeyReuseError, in this thread: in
    jitted functions when they are traced (for that they are traced twice), outside of them when a function of
    weft.random gets a key that one has got before. weft.ir.check_key_reuse says what is looked at.

    Args:
        on: whether to.

    Returns: context manager.

    Example:
        >>> key = weft.random.key(0)
        >>> with weft.debug_key_reuse():
        ...     x = weft.random.normal(key)
        ...     try:
        ...         weft.random.normal(key)
        ...     except weft.errors.KeyReuseError as error:
        ...         print(str(error).partition(":")[0])
        normal
    """
    return _options.debug_key_reuse(on)


def no_tracing(on: bool = True) -> contextlib.AbstractContextManager[None]:
    """A context manager: inside it a jitted function that would be traced, and so compiled, is a RuntimeError, which
    says
    for what arguments. (Operations outside of jitted functions are not traced.)

    Args:
        on: whether to.

    Returns: context manager.

    Example:
        >>> f = weft.jit(lambda x: x + 1)
        >>> _ = f(1.0)
        >>> with weft.no_tracing():
        ...     f(2.0)
        Array(3., dtype=float32, weak_type=True)
    """
    return _options.no_tracing(on)


def no_execution(on: bool = True) -> contextlib.AbstractContextManager[None]:
    """A context manager: inside it whatever would compute something is a RuntimeError that names it; tracing and
    compiling
    is allowed.

    Args:
        on: whether to.

    Returns: context manager.

    Example:
        >>> with weft.no_execution():
        ...     weft.eval_shape(lambda x: x + 1, weft.ShapeDtype((2,), "float32"))
        ShapeDtype((2,), float32)
    """
    return _options.no_execution(on)


def checking_leaks(on: bool = True) -> contextlib.AbstractContextManager[None]:
    """A context manager: inside it a traced value that outlives its trace, in a list or an attribute, is a
    RuntimeError when
    that ends, which says where the value is. Slow.

    Args:
        on: whether to.

    Returns: context manager.

    Example:
        >>> kept = []
        >>> with weft.checking_leaks():
        ...     try:
        ...         weft.jit(lambda x: kept.append(x))(1.0)
        ...     except RuntimeError as error:
        ...         print(str(error).splitlines()[0])
        jit: '<lambda>' leaked traced values, which mean nothing after its trace:
    """
    return _options.checking_leaks(on)


def log_compiles(on: bool = True) -> contextlib.AbstractContextManager[None]:
    """A context manager: inside it the logger "weft" gets a warning for every jitted function that is traced and
    compiled,
    with the types of its arguments.

    Args:
        on: whether to.

    Returns: context manager.

    Example:
        >>> with weft.log_compiles(False):
        ...     weft.jit(lambda x: x + 1)(1.0)
        Array(2., dtype=float32, weak_type=True)
    """
    return _options.log_compiles(on)


def explain_cache_misses(on: bool = True) -> contextlib.AbstractContextManager[None]:
    """A context manager: inside it the logger "weft" gets a warning for every jitted function that is traced, which
    says in
    what the call differs from earlier ones.

    Args:
        on: whether to.

    Returns: context manager.

    Example:
        >>> with weft.explain_cache_misses(False):
        ...     weft.jit(lambda x: x + 1)(1.0)
        Array(2., dtype=float32, weak_type=True)
    """
    return _options.explain_cache_misses(on)


def numpy_rank_promotion(level: str) -> contextlib.AbstractContextManager[None]:
    """A context manager: inside it operands of different numbers of dimensions, single numbers apart, are allowed,
    warned of
    or refused where they meet in an element-wise operation.

    Args:
        level: "allow", "warn" or "raise".

    Returns: context manager.

    Raises:
        ValueError: there is no such level.

    Example:
        >>> with weft.numpy_rank_promotion("raise"):
        ...     try:
        ...         wnp.ones((2, 3)) + wnp.ones(3)
        ...     except ValueError:
        ...         print("give them as many dimensions")
        give them as many dimensions
    """
    return _options.numpy_rank_promotion(level)


def numpy_dtype_promotion(level: str) -> contextlib.AbstractContextManager[None]:
    """A context manager: inside it, where it is "strict", arrays of different dtypes are refused where they meet;
    Python's
    numbers take the dtype of an array of their kind or a wider one.

    Args:
        level: "standard" or "strict".

    Returns: context manager.

    Raises:
        ValueError: there is no such level.

    Example:
        >>> with weft.numpy_dtype_promotion("strict"):
        ...     wnp.ones(2) * 2
        Array([2., 2.], dtype=float32)
    """
    return _options.numpy_dtype_promotion(level)


def transfer_guard_host_to_device(level: str) -> contextlib.AbstractContextManager[None]:
    """A context manager: inside it Python's numbers and NumPy's arrays that become arrays are logged or refused.

    Args:
        level: "allow", "log" or "disallow", which let device_put pass, "log_explicit" or "disallow_explicit", which do
            not.

    Returns: context manager.

    Raises:
        ValueError: there is no such level.

    Example:
        >>> with weft.transfer_guard_host_to_device("allow"):
        ...     wnp.ones(2) + 1
        Array([2., 2.], dtype=float32)
    """
    return _options.transfer_guard_host_to_device(level)


def transfer_guard_device_to_host(level: str) -> contextlib.AbstractContextManager[None]:
    """A context manager: inside it what the guard does to arrays that NumPy reads is said; they lie in its memory
    already, so nothing is transferred.

    Args:
        level: "allow", "log" or "disallow", which let device_put pass, "log_explicit" or "disallow_explicit", which do
            not.

    Returns: context manager.

    Raises:
        ValueError: there is no such level.

    Example:
        >>> with weft.transfer_guard_device_to_host("allow"):
        ...     wnp.ones(2) + 1
        Array([2., 2.], dtype=float32)
    """
    return _options.transfer_guard_device_to_host(level)


def transfer_guard_device_to_device(level: str) -> contextlib.AbstractContextManager[None]:
    """A context manager: inside it what the guard does to arrays that go to another device is said; all devices share
    one memory, so nothing is transferred.

    Args:
        level: "allow", "log" or "disallow", which let device_put pass, "log_explicit" or "disallow_explicit", which do
            not.

    Returns: context manager.

    Raises:
        ValueError: there is no such level.

    Example:
        >>> with weft.transfer_guard_device_to_device("allow"):
        ...     wnp.ones(2) + 1
        Array([2., 2.], dtype=float32)
    """
    return _options.transfer_guard_device_to_device(level)


def threefry_partitionable(on: bool = True) -> contextlib.AbstractContextManager[None]:
    """A context manager: inside it, where it is off, keys of Threefry-2x32 give the numbers that jax.random gave before
    version 0.5, by split and by what draws bits: all words of a draw are hashed in pairs, one from each half of them,
    so that devices cannot draw the parts of an array each for itself as well.

    Args:
        on: whether the numbers are those of today.

    Returns: context manager.

    Example:
        >>> with weft.threefry_partitionable(False):
        ...     weft.random.bits(weft.random.key(0), (2,))
        Array([ 928981903, 3453687069], dtype=uint32)
    """
    return _options.threefry_partitionable(on)


@contextlib.contextmanager
def transfer_guard(level: str) -> Iterator[None]:
    """A context manager: transfer_guard_host_to_device, transfer_guard_device_to_host and
    transfer_guard_device_to_device at once.

    Args:
        level: "allow", "log" or "disallow", which let device_put pass, "log_explicit" or "disallow_explicit", which do
            not.

    Returns: context manager.

    Raises:
        ValueError: there is no such level.

    Example:
        >>> import numpy as np
        >>> x = wnp.ones(2)
        >>> with weft.transfer_guard("disallow"):
        ...     try:
        ...         x + np.ones(2, "float32")
        ...     except RuntimeError:
        ...         print(x + weft.device_put(np.ones(2, "float32")))
        [2. 2.]
    """
    with contextlib.ExitStack() as stack:
        for guard in _GUARDS:
            stack.enter_context(guard(level))
        yield


_GUARDS = (
    _options.transfer_guard_host_to_device,
    _options.transfer_guard_device_to_host,
    _options.transfer_guard_device_to_device,
)

# What products of matrices may be asked for. Weft computes them in the operands' own precision, which is as much or
# more.
PRECISIONS = (
    None,
    "default",
    "high",
    "highest",
    "bfloat16",
    "tensorfloat32",
    "float32",
    "ANY_F8_ANY_F8_F32",
    "ANY_F8_ANY_F8_F32_FAST_ACCUM",
    "ANY_F8_ANY_F8_ANY",
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
    "F16_F16_F16",
    "F16_F16_F32",
    "BF16_BF16_BF16",
    "BF16_BF16_F32",
    "BF16_BF16_F32_X3",
    "BF16_BF16_F32_X6",
    "BF16_BF16_F32_X9",
    "TF32_TF32_F32",
    "TF32_TF32_F32_X3",
    "F32_F32_F32",
    "F64_F64_F64",
)


def checked_precision(precision: Any) -> Any:
    """A precision of products; ValueError: there is none of that name."""
    if precision not in PRECISIONS:
        raise value_error(
            f"default_matmul_precision must be one of {', '.join(map(repr, PRECISIONS))}, got {precision!r}"
        )
    return precision


def default_matmul_precision(precision: str | None) -> contextlib.AbstractContextManager[None]:
    """A context manager: how precise products of matrices are at least. Weft computes them in the operands' own
    precision,
    which every choice is satisfied with: the names are checked, and results are the same.

    Args:
        precision: "default", "high", "highest", the name of a dtype or an algorithm, or None.

    Returns: context manager.

    Raises:
        ValueError: there is no such precision.

    Example:
        >>> with weft.default_matmul_precision("highest"):
        ...     wnp.ones((1, 2)) @ wnp.ones(2)
        Array([2.], dtype=float32)
    """
    checked_precision(precision)
    return _nothing_changes()


class _DefaultDevice(threading.local):
    """What the innermost default_device of this thread says; () outside of all."""

    said: Any = ()


_default_device = _DefaultDevice()
_of_process: list[Any] = [None]


def checked_device(device: Any) -> Any:
    """A device that can be the default one."""
    if device is None or (isinstance(device, str) and device == default_backend()):
        return device
    if isinstance(device, Device):
        if device not in local_devices():
            raise not_implemented(f"default_device: {device!r} belongs to another process")
        return device
    raise value_error(
        f"default_device must be a device, '{default_backend()}' or None, got {device!r} of type "
        f"'{type(device).__name__}'"
    )


def _say_default_device(device: Any, of_process: bool) -> None:
    is_other = isinstance(device, Device) and device != local_devices()[0]
    _weft.set_default_place(SingleDeviceSharding(device) if is_other else False if device == () else None, of_process)


def default_device_here() -> Any:
    """What default_device, or else the process, says."""
    return _of_process[0] if _default_device.said == () else _default_device.said


def set_default_device(device: Any) -> None:
    """default_device for the process."""
    _of_process[0] = checked_device(device)
    _say_default_device(device, True)


def default_device(device: Any) -> contextlib.AbstractContextManager[None]:
    """A context manager: on which device arrays are made that nobody puts anywhere, and run programs whose arguments
    nobody has put anywhere.

    Args:
        device: a weft.Device of this process; its platform's name or None for the first.

    Returns: context manager.

    Raises:
        ValueError: it is no device.
        NotImplementedError: it is another process's.

    Example:
        >>> with weft.default_device(weft.devices()[0]):
        ...     wnp.ones(2)
        Array([1., 1.], dtype=float32)
    """
    return _with_default_device(checked_device(device))


@contextlib.contextmanager
def _with_default_device(device: Any) -> Iterator[None]:
    before, _default_device.said = _default_device.said, device
    _say_default_device(device, False)
    try:
        yield
    finally:
        _default_device.said = before
        _say_default_device(before, False)


def live_arrays(platform: str | None = None) -> list[Any]:
    """The arrays that are alive: those that a container, an object or a variable of a running function holds.

    Args:
        platform: of which devices; None: all.

    Returns: list of arrays.

    Raises:
        ValueError: there is no such platform.

    Example:
        >>> x = wnp.ones(12345)
        >>> any(y is x for y in weft.live_arrays())
        True
    """
    if platform not in (None, default_backend()):
        raise value_error(f"live_arrays: there is no platform {platform!r}; there is {default_backend()!r}")
    return _watching.live_arrays()
