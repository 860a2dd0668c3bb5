"""What jax.transfer_guard says of functions that make arrays: a number that one is filled with goes to the device, as
in JAX; `arange` of one number makes what it needs there. And of arrays that go to other devices."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import weft

from .. import _weft
from .._core import options
from .._core.errors import runtime_error
from .._core.watching import transferred

_LEVEL = options.transfer_guard_host_to_device
_BETWEEN = options.transfer_guard_device_to_device
_FILLED = frozenset(
    ["empty", "eye", "full", "full_like", "identity", "ones", "ones_like", "tri", "zeros", "zeros_like"]
)


def guarded(module: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of this module and name, which transfers what JAX's does."""
    if module not in ("jax.numpy", "jax.lax") or not (name in _FILLED or name == "arange"):
        return function

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if _LEVEL.value == "allow" or _weft.is_tracing():
            return function(*args, **kwargs)
        if name in _FILLED:
            value = args[1] if name.startswith("full") and len(args) > 1 else kwargs.get("fill_value", 0)
            if not isinstance(value, weft.Array):
                transferred(value)
        elif len(args) != 1 or isinstance(args[0], weft.Array) or not kwargs.keys() <= {"dtype"}:
            return function(*args, **kwargs)
        with weft.transfer_guard_host_to_device("allow"):
            return function(*args, **kwargs)

    return called


def are_guarded() -> bool:
    """Whether arrays that go to other devices are logged or refused."""
    return _BETWEEN.value != "allow"


def between_devices(x: Any, place: Any, explicit: bool) -> None:
    """An array goes to a device, or to those of a sharding; `explicit`: by device_put. Raises RuntimeError where the
    guard refuses that."""
    level = _BETWEEN.value
    if level == "allow" or (explicit and not level.endswith("_explicit")):
        return
    if not isinstance(x, weft.Array) or _weft.is_traced(x):
        return
    there = {place} if isinstance(place, weft.Device) else getattr(place, "device_set", None)
    if there is None or there == x.devices():
        return
    ids = [sorted(device.id for device in devices) for devices in (x.devices(), there)]
    what = f"device-to-device transfer: {_weft.abstract(x)[3]} from devices {ids[0]} to {ids[1]}"
    if level.startswith("log"):
        import logging  # which most programs do not load

        logging.getLogger("weft").warning("%s", what)
        return
    remedy = "" if explicit else "; put it there before, by device_put"
    raise runtime_error(f"Disallowed {what}{remedy} (transfer_guard_device_to_device is {level!r})")
