"""jax.monitoring: events that programs record themselves, told to those who listen. Weft records none of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


def unregister_event_listener(callback: Callable[..., Any]) -> None:
    """Ends register_event_listener."""
    _listeners["event"].remove(callback)


def unregister_event_duration_listener(callback: Callable[..., Any]) -> None:
    """Ends register_event_duration_secs_listener."""
    _listeners["duration"].remove(callback)


def unregister_event_time_span_listener(callback: Callable[..., Any]) -> None:
    """Ends register_event_time_span_listener."""
    _listeners["span"].remove(callback)


def unregister_scalar_listener(callback: Callable[..., Any]) -> None:
    """Ends register_scalar_listener."""
    _listeners["scalar"].remove(callback)


def clear_event_listeners() -> None:
    """Forgets all listeners."""
    for listeners in _listeners.values():
        listeners.clear()
