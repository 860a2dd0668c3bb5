"""jax.checkpoint: weft.checkpoint, which outside of traced functions traces a function once, as JAX does."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import weft

from .. import _weft
from .._core import stateful
from .._core.names import wraps
from .._state.given import reachable
from ..ad_checkpoint import ints, names_of


def _is_hashable(values: list[Any]) -> bool:
    try:
        hash(tuple(values))
    except TypeError:
        return False
    return True


def checkpoint(fun: Callable[..., Any] | None = None, **options: Any) -> Any:
    """weft.checkpoint; calls outside of traced functions share one trace for each kind of arguments."""
    if fun is None:
        weft.checkpoint(**options)  # raises for what it does not take
        return functools.partial(checkpoint, **options)
    made = weft.checkpoint(fun, **options)
    numbers = ints(options.get("static_argnums", ()), "checkpoint: static_argnums")
    names = names_of(options.get("static_argnames", ()), "checkpoint: static_argnames")
    jitted: Any = None

    @wraps(made)
    def called(*args: Any, **kwargs: Any) -> Any:
        nonlocal jitted
        if _weft.is_tracing() or (stateful.references is not None and reachable(fun, args, kwargs)):
            return made(*args, **kwargs)
        fixed = [args[n] for n in numbers if -len(args) <= n < len(args)]
        fixed += [value for name, value in kwargs.items() if name in names]
        if not _is_hashable(fixed):
            return made(*args, **kwargs)
        if jitted is None:
            jitted = weft.jit(made, static_argnums=numbers, static_argnames=names, backend="operations")
        return jitted(*args, **kwargs)

    return called


remat = checkpoint
