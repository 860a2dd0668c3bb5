"""What options of weft.config make of a program that is traced, or that takes what it should not."""

from __future__ import annotations

import gc
import inspect
import os
import sys
import threading
import time
import types
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .. import _weft
from . import options
from .errors import in_hook, runtime_error
from .tree import jax_semantics


def _warn(where: str, text: str, *values: Any) -> None:
    """Into the log of weft, in JAX mode into that of the module of JAX's where such words come from."""
    import logging  # which most programs do not load

    logging.getLogger(f"jax._src.{where}" if jax_semantics() else "weft").warning(text, *values)


# --- Tracing ----------------------------------------------------------------------------------------------------------


# Told of each jitted function that has been traced: (name, seconds).
traced_listeners: list[Callable[[str, float], None]] = []
# Told of each program that is about to be compiled for devices: (the program, as each of them runs it; how its results
# lie).
placed_listeners: list[Callable[[Any, list], None]] = []
# Calls of Python in programs that ask how a value lies, by number: who cuts the program over a mesh sets `sharding`.
asking_how_it_lies: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def _place(function: Any) -> str:
    code = getattr(function, "__code__", None)
    return f"'{function.__name__}' at {code.co_filename}:{code.co_firstlineno}" if code else repr(function)


def place_in_words(x: Any) -> str:
    """On which axes of a mesh an argument lies, by their types: nothing of what lies on no mesh."""
    mesh = (
        getattr(_weft.sharding_of(x), "mesh", None) if isinstance(x, _weft.Array) and not _weft.is_traced(x) else None
    )
    by_type: dict[Any, tuple[str, ...]] = {}
    for axis, kind in zip(mesh.axis_names, mesh.axis_types) if mesh is not None else ():
        by_type[kind] = (*by_type.get(kind, ()), axis)
    return f"({by_type})"


def before_tracing(
    jitted: Any, function: Any, types: dict[str, str], static: dict[str, str], places: dict[str, str]
) -> float:
    """A jitted function is traced for arguments of these types, which lie at these places. Returns when that began."""
    if options.no_tracing.value:
        raise runtime_error(
            f"jit: {_place(function)} would be traced here, for arguments {_signature(types, static)}, and "
            f"no_tracing is set"
        )
    seen = jitted.__dict__.setdefault("_seen", [])
    if options.explain_cache_misses.value:
        _warn("interpreters.partial_eval", "%s", _explained(function, types, static, places, seen))
    if len(seen) < 1000:
        seen.append((types, static, places))
    return time.perf_counter()


def after_tracing(name: str, began: float, types: dict[str, str], static: dict[str, str]) -> None:
    """It has been traced, and is compiled when it runs."""
    seconds = time.perf_counter() - began
    for listener in traced_listeners:
        listener(name, seconds)
    if options.log_compiles.value:
        _warn("dispatch", "Finished tracing %s for jit in %.6f sec", name, seconds)
        _warn("interpreters.pxla", "Compiling jit(%s) for arguments %s", name, _signature(types, static))


WEAK = " (weak)"  # after the type of a weak argument


def _signature(types: dict[str, str], static: dict[str, str]) -> str:
    words = [f"{name}: {text}" for name, text in types.items()] + [f"{name}={text}" for name, text in static.items()]
    return f"({', '.join(words)})"


# Where functions are defined that have been explained.
_EXPLAINED: set[tuple[str, int, str]] = set()


def _is_new_place(function: Any) -> bool:
    """Whether no other function of that definition has been asked for before."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return True
    place = code.co_filename, code.co_firstlineno, code.co_qualname
    new = place not in _EXPLAINED
    if len(_EXPLAINED) < 10000:
        _EXPLAINED.add(place)
    return new


def _explained(function: Any, types: dict[str, str], static: dict[str, str], places: dict[str, str], seen: list) -> str:
    where = _weft.user_stack().partition("\n")[0].strip()
    text = f"TRACING CACHE MISS {where}:\n"
    if not seen:
        text += f"  never seen function:\n    {_place(function)}"
        if not _is_new_place(function):
            text += "\n  but seen another function defined on the same line; define it outside of the loop or function"
        return text
    text += f"  for {_place(function)}\n  it has been traced for other arguments. The closest of {len(seen)}:"

    def differences(before: tuple[dict[str, str], dict[str, str], dict[str, str]]) -> list[str]:
        lines = []
        for now, then in ((types, before[0]), (static, before[1])):
            for name in sorted({*now, *then}, key=str):
                if now.get(name) != then.get(name):
                    kind = "different input types" if now is types else "different value of static args"
                    a, b = (one.get(name, "not there") for one in (now, then))
                    if now.keys() != then.keys():
                        kind = "different input pytree"
                    if now is types and a.removesuffix(WEAK) == b.removesuffix(WEAK):
                        a, b = (f"{one.removesuffix(WEAK)}{{weak_type={one.endswith(WEAK)}}}" for one in (a, b))
                        kind += "; https://docs.jax.dev/en/latest/type_promotion.html#weak-types"
                    lines.append(f"  * at {name}, now {a} and before {b} ({kind})")
        if lines or types.keys() != before[0].keys():
            return lines
        moved = [(name, f"{text}{places[name]}", f"{text}{before[2][name]}") for name, text in types.items()]
        return [f"  * at {name}, now {a} and before {b} (different input types)" for name, a, b in moved if a != b]

    closest = min((differences(before) for before in reversed(seen)), key=len)
    return "\n".join(
        [text, *(closest or ["  * a setting, a mesh, or the structure of containers (different input pytree)"])]
    )


# --- Leaks ------------------------------------------------------------------------------------------------------------


def _untracked(values: list) -> list:
    """The tuples and dictionaries of which Python's collector keeps no account, since they hold no container."""
    return [x for x in values if (type(x) is tuple or type(x) is dict) and not gc.is_tracked(x)]


def _containers() -> list:
    """All that Python keeps account of, but for frames, which hold what is being computed with."""
    return [x for x in gc.get_objects() if type(x) is not types.FrameType]


def _held(cls: type, further: Iterable[list] = ()) -> list[Any]:
    """The objects of a class that something holds, or one of the further lists, some of them more than once."""
    found, at = list[Any](), _containers()
    at.extend(further)  # a list that was there before would be in itself, and stay
    while at:
        values = gc.get_referents(*at)
        found += [x for x in values if type(x) is cls]
        at = _untracked(values)
    return found


def _holders() -> Iterator[tuple[Any, Any]]:
    """(container, what is in it)."""
    at, seen = _containers(), set[int]()
    while at:
        further = []
        for container in at:
            values = gc.get_referents(container)
            yield from ((container, item) for item in values)
            for x in _untracked(values):
                if id(x) not in seen:
                    seen.add(id(x))
                    further.append(x)
        at = further


def check_leaks(trace: int, name: str, kind: str) -> None:
    """Raises RuntimeError for values of a trace that has ended which something still holds."""

    def leaked() -> dict[int, Any]:
        held = _held(_weft.Tracer)
        return {id(x): x for x in held if _weft.trace_of(x) == trace and not _weft.is_usable(x)}

    if not leaked():
        return
    gc.collect()
    values = leaked()
    if not values:
        return
    found: dict[int, tuple[Any, Any]] = {}
    for container, item in _holders():
        if container is not values and id(item) in values:
            found.setdefault(id(item), (container, item))
    lines = []
    for container, item in found.values():
        owner = next((o for o in gc.get_referrers(container) if isinstance(o, dict) and "__name__" in o), None)
        named = [k for k, v in owner.items() if v is container] if owner is not None else []
        variable = f", which is {owner['__name__']}.{named[0]}" if owner is not None and named else ""
        lines.append(f"  {_described(item)}, in a {type(container).__name__}{variable}")
    raise runtime_error(
        f"{kind}: '{name}' leaked traced values, which mean nothing after its trace:\n"
        + "\n".join(lines)
        + "\nReturn them from the function instead of storing them outside (found since checking_leaks is set)"
    )


def _described(item: Any) -> str:
    return f"a traced {item.dtype}{list(item.shape)}"


def live_arrays() -> list[Any]:
    """The arrays of the process that something holds."""
    variables = []
    # Variables first: Python keeps a copy of them, which is then up to date.
    for frame in sys._current_frames().values():
        at: Any = frame
        while at is not None:
            if not at.f_code.co_filename.startswith(os.path.dirname(__file__)):
                variables.append(list(at.f_locals.values()))
            at = at.f_back
    del frame  # or this one would keep itself, and the arrays with it
    found = {id(item): item for item in _held(_weft.Array, variables) if not item.is_deleted()}
    return list(found.values())


# --- Operands ---------------------------------------------------------------------------------------------------------


class _Inside(threading.local):
    busy = False


_inside = _Inside()


def transferred(x: Any, explicit: bool = False) -> None:
    """A number of Python's or an array of NumPy's becomes an array; `explicit`: by device_put."""
    level = options.transfer_guard_host_to_device.value
    # What a traced function computes with is part of its program.
    if _inside.busy or level == "allow" or _weft.is_tracing() or (explicit and not level.endswith("_explicit")):
        return
    _inside.busy = True
    try:
        what = f"{type(x).__name__}{list(x.shape) if hasattr(x, 'shape') else ''}"
        if level.startswith("log"):
            _warn("dispatch", "host-to-device transfer: %s%s", what, _line())
            return
        remedy = "" if explicit else "; put it there before, by device_put"
        raise in_hook(
            RuntimeError,
            f"Disallowed host-to-device transfer: {what}{remedy} (transfer_guard_host_to_device is {level!r})",
        )
    finally:
        _inside.busy = False


def _line() -> str:
    stack = _weft.user_stack()
    return f"\n{stack}" if stack else ""


def explicitly(function: Callable[[], Any], x: Any) -> Any:
    """A transfer that was asked for."""
    if options.transfer_guard_host_to_device.value == "allow":
        return function()
    if not isinstance(x, _weft.Array):
        transferred(x, explicit=True)
    number = _weft.open_setting(options.WATCH_TRANSFERS, False)
    try:
        return function()
    finally:
        _weft.close_setting(options.WATCH_TRANSFERS, number)


def ranks_differ(what: str, shapes: list[str]) -> None:
    """Operands of different ranks meet. (Those of where and arrays of one index do by definition, as in JAX.)"""
    if what in ("where", "index arrays"):
        return
    level = options.numpy_rank_promotion.value
    needed = f"operands with shapes {' '.join(shapes)} require rank promotion"
    if level == "warn":
        warnings.warn(
            f"Following NumPy automatic rank promotion for {what} on shapes {' '.join(shapes)}: {needed}. Set "
            f"numpy_rank_promotion to 'allow' to disable this warning{_line()}",
            stacklevel=2,
        )
    elif level == "raise":
        raise in_hook(
            ValueError,
            f"{what}: operands could not be broadcast together: {needed}, and "
            "numpy_rank_promotion is 'raise'; give them as many dimensions: x[None, :], or weft.numpy.broadcast_to",
        )


_weft.set_watchers(transferred, ranks_differ)
