"""What jax.transfer_guard says of functions that make arrays: a number that one is filled with goes to the device, as
in JAX; `arange` of one number makes what it needs there."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import weft

from .. import _weft
from .._core import options
from .._core.watching import transferred

_LEVEL = options.transfer_guard_host_to_device
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
