"""jax.checkpoint: weft.checkpoint, which outside of traced functions traces a function once, as JAX does."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import weft

from .. import _weft
from .._core import stateful
from .._core import tree as _tree
from .._core.names import wraps
from .._state.given import reachable
from ..ad_checkpoint import NO_BARRIER, checkpoint_name, ints, names_of


def _is_hashable(values: list[Any]) -> bool:
    try:
        hash(tuple(values))
    except TypeError:
        return False
    return True


def _saying_what_has_no_barrier(fun: Callable[..., Any], prevent_cse: Any) -> Callable[..., Any]:
    """The function, of whose arguments some may be merged with what was computed forwards: prevent_cse says it of each,
    or of parts of one. Their values are marked for who writes the program."""
    flags = _tree.leaves(prevent_cse) if isinstance(prevent_cse, (tuple, list, dict)) else []
    if not any(flags) or all(flags):
        return fun

    @functools.wraps(fun)
    def marked(*args: Any, **kwargs: Any) -> Any:
        of_each = _tree.prefix_leaves(prevent_cse, args, "checkpoint: prevent_cse")
        leaves, tree = _tree.flatten(args)
        leaves = [leaf if flag else checkpoint_name(leaf, NO_BARRIER) for leaf, flag in zip(leaves, of_each)]
        return fun(*_tree.unflatten(tree, leaves), **kwargs)

    return marked


def checkpoint(fun: Callable[..., Any] | None = None, **options: Any) -> Any:
    """weft.checkpoint; calls outside of traced functions share one trace for each kind of arguments."""
    if fun is None:
        weft.checkpoint(**options)  # raises for what it does not take
        return functools.partial(checkpoint, **options)
    made = weft.checkpoint(_saying_what_has_no_barrier(fun, options.get("prevent_cse")), **options)
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
