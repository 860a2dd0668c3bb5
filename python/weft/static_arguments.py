"""Arguments that jitted functions pass to Python as they are."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Set
from typing import Any

from . import _weft
from ._core.errors import value_error
from ._core.static import Key
from ._core.tracing import Flat, call_name, flat_function
from .arguments import ints, names_of
from .program import eval_shape

_JAX_SEMANTICS = 3  # as in tracer/context.h


def static_arguments(function, argnums, argnames, kind: str = "static") -> tuple[set[int], set[str]]:
    """Static or donated arguments by position and by name: each way of naming them covers both ways of passing; in
    JAX's mode each only its own where both are given."""
    named = names_of(argnames, f"jit: {kind}_argnames")
    completed = argnums is None or argnames is None or not _weft.setting(_JAX_SEMANTICS)
    nums, names = set(ints(argnums, f"jit: {kind}_argnums")), set(named)
    if not nums and not names:
        return nums, names
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        if not names or nums:
            return nums, names
        raise value_error(
            f"jit: {kind}_argnames names arguments of '{call_name(function)}', whose signature cannot be read "
            f"({error}); give {kind}_argnums"
        ) from None
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    varargs = any(p.kind == p.VAR_POSITIONAL for p in parameters)
    for given in list(nums):
        n = given
        if n < 0:
            nums.discard(n)
            n += len(positional)
            nums.add(n)
        if not 0 <= n < len(positional) and not varargs:
            raise value_error(
                f"jit: {kind}_argnums has {given}, but '{call_name(function)}' takes {len(positional)} positional "
                f"arguments"
            )
        if completed and 0 <= n < len(positional):
            names.add(positional[n])
    unnamed = {p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)}
    for name in named:
        if name in unnamed:
            raise value_error(
                f"jit: {kind}_argnames has '{name}', which '{call_name(function)}' takes by position alone; use "
                f"{kind}_argnums"
            )
        if name in positional:
            if completed:
                nums.add(positional.index(name))
        elif name not in {p.name for p in parameters} and not any(p.kind == p.VAR_KEYWORD for p in parameters):
            raise value_error(f"jit: {kind}_argnames has '{name}', which is no argument of '{call_name(function)}'")
    return nums, names


def static_value(argument: Any) -> Any:
    """A static argument; its number, where grad or vmap outside of jit has made it a traced value with a known one."""
    return argument.item() if _weft.is_traced(argument) else argument


def types_of_results(jitted, *args: Any, **kwargs: Any) -> Any:
    # What is static stays as it is; the others are types.
    static = {i: a for i, a in enumerate(args) if i in jitted._static_argnums}
    static_named = {k: v for k, v in kwargs.items() if k in jitted._static_argnames}

    def call(traced: list, named: dict):
        rest = iter(traced)
        return jitted(*(static[i] if i in static else next(rest) for i in range(len(args))), **named, **static_named)

    return eval_shape(
        call,
        [a for i, a in enumerate(args) if i not in static],
        {k: v for k, v in kwargs.items() if k not in static_named},
    )


def signature_of(
    function: Callable, nums: Set[int], names: Set[str], args: tuple, kwargs: dict[str, Any]
) -> tuple[Flat, Key]:
    """A call taken apart, with its static arguments in the function, and what calls for which one program is right have
    in common. `nums`, `names`: the static arguments."""
    fixed = {i: a for i, a in enumerate(args) if i in nums}
    named = {k: v for k, v in kwargs.items() if k in names}
    dynamic = tuple(a for i, a in enumerate(args) if i not in nums)
    keywords = {k: v for k, v in kwargs.items() if k not in names}

    def call(*rest: Any, **more: Any) -> Any:
        values = iter(rest)
        return function(*[fixed[i] if i in fixed else next(values) for i in range(len(args))], **more, **named)

    positions = [i for i in range(len(args)) if i not in nums]
    flat = flat_function(call, dynamic, keywords, positions, original=function)
    types = tuple(_weft.abstract(leaf)[2:] for leaf in flat.leaves)
    named_in_order = tuple(sorted(named.items(), key=lambda item: item[0]))
    try:
        return flat, Key((_weft.context_key(), flat.in_tree, types, tuple(fixed.items()), named_in_order))
    except TypeError:
        unhashable = [(at, v) for at, v in (fixed | named).items() if not _has_hash(v)]
        if not unhashable:
            raise
        at, value = unhashable[0]
        raise value_error(
            f"static argument {at!r} of '{call_name(function)}' is of type '{type(value).__name__}', which is not "
            "hashable; static arguments are part of the cache key"
        ) from None


def _has_hash(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
