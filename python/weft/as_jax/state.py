"""What JAX says of its process."""

from __future__ import annotations

import functools
import platform
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import weft

from .core import own_types
from .object_refs import RefOfObject, freeze, new_ref
from .table import VERSION


def clear_backends() -> None:
    """clear_caches(): there is one backend."""
    weft.clear_caches()


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


def simple_impl(prim: Any) -> None:
    """Gives a primitive what its lowering computes as its impl."""
    prim.def_impl(functools.partial(apply_primitive, prim))


class CacheInfo(NamedTuple):
    """What a cache says of itself."""

    hits: int = 0
    misses: int = 0
    maxsize: int | None = None
    currsize: int = 0


class EmptyCache:
    """A cache of JAX's that programs ask or empty, and that Weft does not have: operations outside of jit are not
    compiled one by one, and no constants are put into programs a second time."""

    @staticmethod
    def cache_clear() -> None:
        """Nothing: it is empty."""

    @staticmethod
    def cache_info() -> CacheInfo:
        """That it is empty."""
        return CacheInfo()


def print_environment_info(return_string: bool = False) -> str | None:
    """What the process runs on."""
    text = "\n".join(
        [
            f"jax:    {VERSION}, served by weft {weft.__version__}",
            f"jaxlib: {VERSION}, served by weft {weft.__version__}",
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


def is_persistent_cache_enabled() -> bool:
    """False: JAX's cache on disk is not there; Weft has one of its own (docs/environment.md)."""
    return False


def run_state(f: Callable[[Any], None]) -> Callable[[Any], Any]:
    """(tree of arrays) -> what references that begin with them hold after f has been called with the references."""

    def run(args: Any) -> Any:
        references = weft.tree.map(new_ref, args, is_leaf=lambda x: type(x) in own_types)
        f(references)
        return weft.tree.map(freeze, references, is_leaf=lambda x: isinstance(x, (weft.Ref, RefOfObject)))

    return run
