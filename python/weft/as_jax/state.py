"""What JAX says of its process."""

from __future__ import annotations

import gc
import platform
import sys
from typing import Any

import numpy as np

import weft

from .table import VERSION


def live_arrays(platform: str | None = None) -> list[Any]:
    """The arrays of the process that are alive."""
    del platform
    return [x for x in gc.get_objects() if type(x) is weft.Array and not x.is_deleted()]


def clear_caches() -> None:
    """Nothing: compiled programs are kept as long as their functions."""


clear_backends = clear_caches


def set_cache_dir(path: str) -> None:
    """Nothing: compiled programs are kept where WEFT_CACHE_DIR says (docs/environment.md)."""
    del path


def reset_cache() -> None:
    """See set_cache_dir."""


def wait_for_tokens() -> None:
    """Waits until the effects of all calls have happened."""
    weft.effects_barrier()


def apply_primitive(prim: Any, /, *args: Any, **params: Any) -> Any:
    """What a primitive's lowering computes."""
    return weft.jit(lambda *xs: prim.bind(*xs, **params))(*args)


def print_environment_info(return_string: bool = False) -> str | None:
    """What the process runs on."""
    text = "\n".join(
        [
            f"jax:    {VERSION}, served by weft {weft.__version__}",
            f"numpy:  {np.__version__}",
            f"python: {sys.version}",
            f"device info: {weft.default_backend()}, {weft.device_count()} devices",
            f"platform: {platform.platform()}",
        ]
    )
    if return_string:
        return text
    print(text)
    return None
