"""Options with more than two values, and those that Python alone asks for: of the process, and of `with` statements
of a
thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from .. import _weft
from .errors import value_error

# As in tracer/context.h.
X64, DISABLE_JIT, DEBUG_NANS, JAX_SEMANTICS, DEBUG_INFS, NO_EXECUTION = range(6)
STRICT_PROMOTION, WATCH_RANKS, WATCH_TRANSFERS, KEEPS_CALLS, COUNTS_IN_HALVES = range(6, 11)
REFUSES_RANKS, WATCH_KEYS = range(11, 13)


class Option:
    """One option. `settings`: those of the native module, and for which values each is on."""

    def __init__(
        self,
        name: str,
        default: Any,
        check: Callable[[Any], Any],
        settings: Mapping[int, Callable[[Any], bool]] = MappingProxyType({}),
    ):
        self.name, self._process, self._check, self._default = name, default, check, default
        self._settings = settings
        self._local = threading.local()
        self.used = False  # whether it has ever been set: what is asked often asks this first

    @property
    def value(self) -> Any:
        """For this thread: that of its innermost `with` statement that sets it, or else of the process."""
        scopes = getattr(self._local, "scopes", None)
        return scopes[-1][1] if scopes else self._process

    @property
    def of_process(self) -> Any:
        """For the process, whatever `with` statements of this thread say."""
        return self._process

    def set(self, value: Any) -> None:
        """For the process."""
        self._process = value = self._check(value)
        self.used = True
        for setting, is_on in self._settings.items():
            _weft.set_for_process(setting, is_on(value))

    @contextlib.contextmanager
    def scope(self, value: Any) -> Iterator[None]:
        """A `with` statement. Those of one thread may end in any order."""
        self.used = True
        mine = (object(), value)
        numbers = {setting: _weft.open_setting(setting, is_on(value)) for setting, is_on in self._settings.items()}
        self._local.__dict__.setdefault("scopes", []).append(mine)
        try:
            yield
        finally:
            self._local.scopes.remove(mine)
            for setting, number in numbers.items():
                _weft.close_setting(setting, number)

    def __call__(self, value: Any) -> contextlib.AbstractContextManager[None]:
        return self.scope(self._check(value))


def one_of(name: str, *words: Any) -> Callable[[Any], Any]:
    """The check of an option that is one of some words."""

    def check(value: Any) -> Any:
        if value not in words or isinstance(value, bool) != any(value is w for w in words if isinstance(w, bool)):
            raise value_error(f"{name} must be one of {', '.join(map(repr, words))}, got {value!r}")
        return value

    return check


def switch(name: str, setting: int | None = None) -> Option:
    """An option that is on or off."""
    return Option(name, False, bool, {} if setting is None else {setting: bool})


_GUARDS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")


def _guard(name: str, watched: bool) -> Option:
    return Option(
        name,
        "allow",
        one_of(name, *_GUARDS),
        {WATCH_TRANSFERS: lambda level: level != "allow"} if watched else {},
    )


no_tracing = switch("no_tracing")
no_execution = switch("no_execution", NO_EXECUTION)
checking_leaks = switch("checking_leaks")
keeps_calls = switch("keeps_calls", KEEPS_CALLS)  # jitted functions are calls in the programs of those around them
log_compiles = switch("log_compiles")
debug_key_reuse = switch("debug_key_reuse", WATCH_KEYS)
explain_cache_misses = switch("explain_cache_misses")
debug_infs = switch("debug_infs", DEBUG_INFS)
numpy_rank_promotion = Option(
    "numpy_rank_promotion",
    "allow",
    one_of("numpy_rank_promotion", "allow", "warn", "raise"),
    {WATCH_RANKS: lambda level: level != "allow", REFUSES_RANKS: lambda level: level == "raise"},
)
numpy_dtype_promotion = Option(
    "numpy_dtype_promotion",
    "standard",
    one_of("numpy_dtype_promotion", "standard", "strict"),
    {STRICT_PROMOTION: lambda level: level == "strict"},
)
threefry_partitionable = Option("threefry_partitionable", True, bool, {COUNTS_IN_HALVES: lambda on: not on})
transfer_guard_host_to_device = _guard("transfer_guard_host_to_device", watched=True)
transfer_guard_device_to_host = _guard("transfer_guard_device_to_host", watched=False)
transfer_guard_device_to_device = _guard("transfer_guard_device_to_device", watched=False)
