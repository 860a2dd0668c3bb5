"""jax.monitoring: what happens, told to those who listen: what programs record themselves, and of Weft's own that a
jitted function has been traced or compiled, by the names that JAX has for that."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _weft
from .._core import watching

_listeners: dict[str, list[Callable[..., Any]]] = {"event": [], "duration": [], "span": [], "scalar": []}


def _tell(kind: str, *what: Any, **metadata: Any) -> None:
    for listener in list(_listeners[kind]):
        listener(*what, **metadata)


def record_event(event: str, **kwargs: Any) -> None:
    """Says that something happened."""
    _tell("event", event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: Any) -> None:
    """Says how long something took."""
    _tell("duration", event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: Any) -> None:
    """Says from when to when something went on."""
    _tell("span", event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float, **kwargs: Any) -> None:
    """Says a number."""
    _tell("scalar", event, value, **kwargs)


def register_event_listener(callback: Callable[..., Any]) -> None:
    """Has a function called with every event."""
    _listeners["event"].append(callback)


def register_event_duration_secs_listener(callback: Callable[..., Any]) -> None:
    """... with every duration."""
    _listeners["duration"].append(callback)


def register_event_time_span_listener(callback: Callable[..., Any]) -> None:
    """... with every span of time."""
    _listeners["span"].append(callback)


def register_scalar_listener(callback: Callable[..., Any]) -> None:
    """... with every number."""
    _listeners["scalar"].append(callback)


def _forget(kind: str, callback: Callable[..., Any]) -> None:
    assert callback in _listeners[kind], f"{callback!r} has not been registered"
    _listeners[kind].remove(callback)


def unregister_event_listener(callback: Callable[..., Any]) -> None:
    """Ends register_event_listener."""
    _forget("event", callback)


def unregister_event_duration_listener(callback: Callable[..., Any]) -> None:
    """Ends register_event_duration_secs_listener."""
    _forget("duration", callback)


def unregister_event_time_span_listener(callback: Callable[..., Any]) -> None:
    """Ends register_event_time_span_listener."""
    _forget("span", callback)


def unregister_scalar_listener(callback: Callable[..., Any]) -> None:
    """Ends register_scalar_listener."""
    _forget("scalar", callback)


def _counting() -> Any:
    return sys.modules["jax._src.util"].__dict__.get("test_event_listener") if "jax._src.util" in sys.modules else None


def is_counted() -> bool:
    """Whether somebody counts what test_event tells."""
    return _counting() is not None


def test_event(name: str, *args: Any) -> None:
    """Tells what JAX's own tests count to jax._src.util.test_event_listener, which they set."""
    listener = _counting()
    if listener is not None:
        listener(name, *args)


def _traced(name: str, seconds: float) -> None:
    test_event("trace_to_jaxpr")
    if not _weft.is_tracing():
        test_event("jit_cpp_cache_miss")
    record_event_duration_secs("/jax/core/compile/jaxpr_trace_duration", seconds, fun_name=name)
    _debug("Finished tracing + transforming %s for jit in %.9f sec", name, seconds)


class _Placed(threading.local):
    """What was put on devices last, to be compiled, and on which."""

    program: Any = None
    devices: tuple[int, ...] = ()


_on_devices = _Placed()
# The programs that functions have been lowered to, and for which devices: for others of as many it is the same.
_lowered: weakref.WeakKeyDictionary[Any, dict[Any, set[tuple[int, ...]]]] = weakref.WeakKeyDictionary()


class CacheInfo(NamedTuple):
    """What a cache of functools says of itself."""

    hits: int
    misses: int
    maxsize: int | None
    currsize: int


class _Lowerings:
    """jax._src.interpreters.pxla._cached_lowering_to_hlo, as far as it counts."""

    hits = misses = 0

    def cache_info(self) -> CacheInfo:
        """How often a program was lowered before, and how often not."""
        return CacheInfo(self.hits, self.misses, None, self.misses)


_cached_lowering_to_hlo = _Lowerings()


def _is_lowered(jitted: Any) -> bool:
    """Whether the function has been lowered to this program before, for other devices."""
    program, _on_devices.program = _on_devices.program, None
    if program is None:
        return False
    before = _lowered.setdefault(jitted, {}).setdefault(program, set())
    is_known = bool(before) and _on_devices.devices not in before
    before.add(_on_devices.devices)
    return is_known


def _placed(program: Any, places: list) -> None:
    place = next((place for place in places if place is not None), None)
    _on_devices.program = program
    _on_devices.devices = () if place is None else tuple(d.id for d in place._device_list())


def _compiled(jitted: Any) -> None:
    if _is_lowered(jitted):
        _cached_lowering_to_hlo.hits += 1
    else:
        _cached_lowering_to_hlo.misses += 1
        test_event("lower_jaxpr_to_module")
    for event in ("pxla_cached_compilation", "compile_after_persistent_compilation_miss"):
        test_event(event)
    name = getattr(jitted, "__name__", "")
    record_event("/jax/core/compile/backend_compile")  # listeners of events take no more than a name
    _debug("Compiling jit(%s)", name)
    _debug("Finished XLA compilation of jit(%s)", name)


def _debug(text: str, *values: Any) -> None:
    """Into JAX's log, of which programs that have not loaded Python's hear nothing."""
    if "logging" in sys.modules:
        sys.modules["logging"].getLogger("jax").debug(text, *values)


def install() -> None:
    """From now on those who listen are told what Weft traces and compiles."""
    watching.traced_listeners.append(_traced)
    watching.placed_listeners.append(_placed)
    _weft.set_compiled_hook(_compiled)


def get_event_listeners() -> list[Callable[..., Any]]:
    """Those that are told of events."""
    return list(_listeners["event"])


def get_event_duration_listeners() -> list[Callable[..., Any]]:
    """Those that are told of durations."""
    return list(_listeners["duration"])


def get_event_time_span_listeners() -> list[Callable[..., Any]]:
    """Those that are told of spans of time."""
    return list(_listeners["span"])


def get_scalar_listeners() -> list[Callable[..., Any]]:
    """Those that are told of numbers."""
    return list(_listeners["scalar"])


def clear_event_listeners() -> None:
    """Forgets all listeners."""
    for listeners in _listeners.values():
        listeners.clear()
