"""What all jitted functions have in common: they are traced, may use references, and forget their programs."""

from __future__ import annotations

import copyreg
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _key_uses as _uses
from . import _pickled as _pickles
from . import _weft
from ._core import options, stateful, watching
from ._core import tree as _tree
from ._core.errors import of_kind, type_error
from ._core.tracing import Flat, call_name, flat_function, is_float0, trace_flat
from .arguments import licences_of

ALL: weakref.WeakSet[Any] = weakref.WeakSet()
# What clear_caches calls besides.
ALSO_FORGETS: list[Callable[[], None]] = []


def clear_caches() -> None:
    """Forgets the programs of all jitted functions, which are traced and compiled again when they are called.

    Returns: None.

    Example:
        >>> f = weft.jit(lambda x: x + 1)
        >>> _ = f(1.0)
        >>> weft.clear_caches()
        >>> len(f.explain())
        0
    """
    for jitted in list(ALL):
        jitted.clear_cache()
        jitted.__dict__.pop("_seen", None)
        state = jitted.__dict__.get("_state")
        if state is not None:
            state.inner.clear_cache()
    for forget in ALSO_FORGETS:
        forget()


def described(leaf: Any, name: str) -> str:
    try:
        _, _, weak, text = _weft.abstract(leaf)
    except OverflowError as error:
        message = str(error).split("\n", 1)[0]  # without its place, which is this one's, too
        raise of_kind(OverflowError, f"argument {name}: {message}") from None
    return f"{text}{watching.WEAK}" if weak else text


class UsesReferences(BaseException):
    """A jitted function uses references: C++ calls it through Python from now on."""


def trace_jitted(jitted: Any, flat: Flat, static: dict) -> Any:
    """The trace of a call of a jitted function; `static`: its static arguments, by position or name."""
    types = {name: described(leaf, name) for name, leaf in zip(flat.names, flat.leaves)}
    fixed = {str(name): repr(value) for name, value in static.items()}
    places = dict(zip(flat.names, map(watching.place_in_words, flat.leaves)))
    began = watching.before_tracing(jitted, jitted._function, types, fixed, places)
    traced = _traced(jitted, flat)
    if options.debug_key_reuse.used and options.debug_key_reuse.value and not options.keeps_calls.value:
        _check_keys(flat)
    watching.after_tracing(flat.name, began, types, fixed)
    return traced


def _check_keys(flat: Flat) -> None:
    from .ir.key_reuse import check_flat

    if not _uses.here.marks:
        check_flat(flat)


def _traced(jitted: Any, flat: Flat) -> Any:
    references = stateful.references
    if references is None or jitted._stateful:
        return trace_flat(flat, "jit", known=False)
    if isinstance(jitted, _weft.JitFunction) and not references.is_inner(jitted):
        if references.found_before(jitted):
            raise UsesReferences
        flat.function = references.first_trace(jitted, flat.function)
    try:
        return trace_flat(flat, "jit", known=False)
    except references.Unbound as unbound:
        if not references.found_in(jitted, unbound):
            raise
        raise UsesReferences from None


def _call_stateful(jitted: Any, args: tuple, kwargs: dict) -> Any:
    """Called from C++ for a function that uses references."""
    return stateful.references.call_jitted(jitted, args, kwargs)


def lowered(jitted: Any, args: tuple, kwargs: dict, lower: Callable[..., Any]) -> Any:
    """lower(jitted, args, kwargs); of a function that uses references a program that takes and returns what they
    hold."""
    if stateful.references is None:
        return lower(jitted, args, kwargs)
    try:
        if not jitted._stateful and not stateful.references.refs_among((args, kwargs)):
            return lower(jitted, args, kwargs)
    except UsesReferences:
        pass
    return stateful.references.lowered(jitted, args, kwargs, lower)


def _refuse(jitted, args: tuple, kwargs: dict):
    """Called from C++ where a leaf of the arguments is no array. Calls a function of references; raises TypeError,
    which names the argument, for other leaves."""
    if stateful.references is not None and stateful.references.refs_among((args, kwargs)):
        return stateful.references.call_jitted(jitted, args, kwargs)
    nums, names = jitted._static_argnums, jitted._static_argnames
    if any(map(is_float0, _tree.leaves((args, kwargs)))):
        zeros = lambda leaf: np.zeros(leaf.shape, bool) if is_float0(leaf) else leaf
        return jitted(*_tree.map(zeros, list(args)), **_tree.map(zeros, kwargs))
    positions = [i for i in range(len(args)) if i not in nums]
    dynamic, keywords = tuple(args[i] for i in positions), {k: v for k, v in kwargs.items() if k not in names}
    hint = ". Mark the argument as static (static_argnums, static_argnames) if it decides what is computed"
    flat = flat_function(jitted._function, dynamic, keywords, positions, what="jit: ", hint=hint)
    for leaf, name in zip(flat.leaves, flat.names):
        if not _weft.is_operand(leaf):  # it has a shape and a dtype alone
            raise type_error(
                f"jit: argument {name} of '{flat.name}' is {leaf!r} of type '{type(leaf).__name__}'; expected an "
                "array, a number, or a container of them. Of types alone eval_shape, make_ir and lower make programs"
            )
    raise type_error(f"jit: the arguments of '{flat.name}' are not arrays, numbers, or containers of them")


def _pickled(jitted: Any) -> Any:
    """A jitted function as the function and its options: it is traced and compiled where it is read."""
    made = jitted.__dict__
    usual = licences_of("accurate" if made["_deterministic"] else None)
    if made["_plan"] is not None or made["_licences"] != usual:
        raise type_error(
            f"jit: '{call_name(jitted._function)}' has passes of its own or a licence, and cannot be pickled"
        )
    options: dict[str, Any] = {
        name: sorted(getattr(jitted, f"_{name}"))
        for name in ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames")
    }
    options.update(zip(("in_shardings", "out_shardings"), made.get("_shardings", ())))
    options.update(deterministic=made["_deterministic"], backend=made["_backend"], inline=made["_inline"])
    function = made["__wrapped__"]
    if function is not jitted._function:
        options["autograph"] = True
    return _pickles.jitted, (function, options, bool(made.get("_is_jax")))


copyreg.pickle(_weft.JitFunction, _pickled)
