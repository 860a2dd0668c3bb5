"""jax.config and the context managers of its options.

Options that Weft has are Weft's (weft.config). Every other option of JAX's is accepted, keeps what it is set to, and
has no effect: it says how XLA compiles, where JAX logs, what JAX checks. Setting one to something else than JAX's
default warns
of that, once. An option that JAX does not have is an error."""

from __future__ import annotations

import contextlib
import enum
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import weft

from .. import _weft
from .._core import options
from .._core.errors import runtime_error, value_error
from .._sharding.devices import before_counting, devices_were_listed
from .._sharding.typing_rules import typing_rules
from ..config import OPTIONS
from . import precision
from .option_defaults import DEFAULTS

# Options of jax.config that are Weft's.
_OURS = frozenset(
    [
        "jax_enable_x64",
        "jax_debug_nans",
        "jax_disable_jit",
        "jax_platforms",
        "jax_platform_name",
        "jax_default_matmul_precision",
        "jax_default_device",
        "jax_transfer_guard",
        *(name for name in OPTIONS if name.startswith("jax_")),
    ]
)

# The others that JAX documents, with their defaults.
_WITHOUT_EFFECT: dict[str, Any] = {name: value for name, value in DEFAULTS.items() if name not in _OURS}


# Those of them that this package does as JAX does.
_DONE_HERE = frozenset(
    [
        "jax_allow_f16_reductions",
        "jax_check_static_indices",
        "jax_default_prng_impl",
        "jax_disable_vmap_shmap_error",
        "jax_enable_checks",
        "jax_enable_custom_prng",
        "jax_error_checking_behavior_divide",
        "jax_error_checking_behavior_nan",
        "jax_explicit_x64_dtypes",
        "jax_legacy_prng_key",
        "jax_random_seed_offset",
        "jax_traceback_filtering",
    ]
)


NUMPY_ERRORS = "jax_error_checking_behavior_"
_OF_TYPES = "jax_remove_size_one_mesh_axis_from_type"  # which meshes ask for


class ExplicitX64Mode(enum.IntEnum):
    """What a dtype of 64 bits that is asked for means where x64 is off: 32 bits, an error, or itself."""

    WARN = 1
    ERROR = 2
    ALLOW = 3


class EffortLevel(enum.Enum):
    """How much XLA does, in its options of that name, which have no effect here."""

    UNKNOWN, O0, O1, O2, O3 = 0, 9, 19, 29, 39

    @classmethod
    def _missing_(cls, value: object) -> EffortLevel | None:
        return cls.__members__.get(str(value))


# What a value of an option must be: gives the value, or raises ValueError.
_CHECKS: dict[str, Callable[[Any], Any]] = {}
_any = lambda value: value

_said: set[str] = set()


def _say_without_effect(name: str, value: Any) -> None:
    if value == _WITHOUT_EFFECT[name] or value is None or name in _said or name in _DONE_HERE or name == _OF_TYPES:
        return
    _said.add(name)
    warnings.warn(f"weft.as_jax: the option {name} has no effect in Weft", stacklevel=3)


class Config:
    """jax.config: options are attributes, read(name), and set by update(name, value)."""

    def __init__(self) -> None:
        self.__dict__["_kept"] = dict(_WITHOUT_EFFECT)

    def update(self, name: str, value: Any) -> None:
        """Sets an option; AttributeError: JAX has none of that name."""
        if name == _NUMBER_OF_DEVICES and value != self._kept[name]:
            if devices_were_listed():
                raise runtime_error(
                    "jax_num_cpu_devices config should be updated before backends are initialized i.e. before any JAX "
                    "operation is executed: the devices have been counted already"
                )
            self._kept[name] = value
            return
        if name in _OURS:
            weft.config.update(name, value)
        elif name in self._kept:
            value = _CHECKS.get(name, _any)(value)
            _say_without_effect(name, value)
            self._kept[name] = value
            if name.startswith(NUMPY_ERRORS):
                _numpy_errors_of_process()
        else:
            raise AttributeError(f"Unrecognized config option: {name}")

    def read(self, name: str) -> Any:
        """What an option is set to; AttributeError: JAX has none of that name."""
        if name in _OURS:
            return weft.config.read(name)
        scoped = getattr(_scoped, "values", {}).get(name)
        if scoped:
            return scoped[-1]
        if name in self._kept:
            return self._kept[name]
        raise AttributeError(f"Unrecognized config option: {name}")

    _read = read

    def read_global(self, name: str) -> Any:
        """What an option is set to for the process, whatever `with` statements of this thread say."""
        if name in self._kept:
            return self._kept[name]
        return OPTIONS[name].of_process if name in OPTIONS else self.read(name)

    def __getattr__(self, name: str) -> Any:
        if name == "x64_enabled":
            return weft.config.x64
        return self.read(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.update(name, value)

    @property
    def values(self) -> dict[str, Any]:
        """All options."""
        return {name: self.read(name) for name in sorted({*_OURS, *self._kept, "jax_num_cpu_devices"})}

    def parse_flags_with_absl(self) -> None:
        """Options are set by update() and by JAX_... variables of the environment; absl's flags are not read."""

    config_with_absl = complete_absl_config = parse_flags_with_absl


config = Config()

_NUMBER_OF_DEVICES = "jax_num_cpu_devices"


def _count_devices() -> None:
    """How many virtual devices there are where WEFT_NUM_CPU_DEVICES does not say: as the option says, or XLA's flag."""
    number = config.read(_NUMBER_OF_DEVICES)
    flag = re.search(r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
    if number == -1 and flag:
        number = int(flag[1])
    if number != -1:
        os.environ.setdefault("WEFT_NUM_CPU_DEVICES", str(number))


class _Scoped(threading.local):
    values: dict[str, list[Any]]


_scoped = _Scoped()


@contextlib.contextmanager
def _kept_for(name: str, value: Any) -> Iterator[None]:
    values = _scoped.__dict__.setdefault("values", {})
    values.setdefault(name, []).append(value)
    try:
        yield
    finally:
        values[name].pop()


class _Option:
    """What JAX has beside jax.config for an option: called with a value a context manager, read by .value."""

    def __init__(self, name: str, default: Any):
        self.name, self._default = name, default

    def __call__(self, new_val: Any = None) -> contextlib.AbstractContextManager[None]:
        value = _CHECKS.get(self.name, _any)(self._default if new_val is None else new_val)
        _say_without_effect(self.name, value)
        return _kept_for(self.name, value)

    @property
    def value(self) -> Any:
        return config.read(self.name)

    def get_global(self) -> Any:
        """What the process has set it to."""
        return config.read_global(self.name)

    def set_global(self, value: Any) -> None:
        """Sets it for the process."""
        config.update(self.name, value)

    def get_local(self) -> Any:
        """What it is here."""
        return self.value

    def __bool__(self) -> bool:
        return bool(self.value)


class _NumpyErrors(_Option):
    """... for an error that functions of jax.numpy note."""

    @contextlib.contextmanager
    def _with(self, value: str) -> Iterator[None]:
        from .numpy_errors import scope  # which has weft.numpy

        with _kept_for(self.name, value), scope():
            yield

    def __call__(self, new_val: Any = None) -> contextlib.AbstractContextManager[None]:
        value = _behavior("raise" if new_val is None else new_val)
        _say_without_effect(self.name, value)
        return self._with(value)


def _behavior(value: Any) -> Any:
    if value not in ("ignore", "raise"):
        raise value_error(f"new enum value must be in ['ignore', 'raise'], got {value!r}")
    return value


def _numpy_errors_of_process() -> None:
    from .numpy_errors import begin

    now = tuple(config.read(NUMPY_ERRORS + category) == "raise" for category in ("nan", "divide", "oob"))
    watches = any(now) or weft.config.numpy_rank_promotion != "allow"
    _weft.set_for_process(options.WATCH_RANKS, watches)
    if any(now):
        begin(now)


for _category in ("nan", "divide", "oob"):
    _CHECKS[NUMPY_ERRORS + _category] = _behavior
    globals()[f"error_checking_behavior_{_category}"] = _NumpyErrors(NUMPY_ERRORS + _category, "raise")


class _OwnOption(_Option):
    """... for one that Weft has."""

    def __init__(self, name: str, scope: Callable[[Any], contextlib.AbstractContextManager[None]]):
        super().__init__(name, True)
        self._scope = scope

    def __call__(self, new_val: Any = True) -> contextlib.AbstractContextManager[None]:
        return self._scope(new_val)


enable_x64 = _OwnOption("jax_enable_x64", weft.enable_x64)
debug_nans = _OwnOption("jax_debug_nans", weft.debug_nans)
for _name in [
    "checking_leaks",
    "debug_infs",
    "debug_key_reuse",
    "default_device",
    "explain_cache_misses",
    "log_compiles",
    "no_execution",
    "no_tracing",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "threefry_partitionable",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
]:
    globals()[_name] = _OwnOption(
        {"checking_leaks": "jax_check_tracer_leaks"}.get(_name, f"jax_{_name}"), getattr(weft, _name)
    )
default_matmul_precision = _OwnOption("jax_default_matmul_precision", precision.default_matmul_precision)
check_tracer_leaks = checking_leaks  # type: ignore[name-defined]  # noqa: F821


def disable_x64() -> contextlib.AbstractContextManager[None]:
    """enable_x64(False)."""
    return weft.enable_x64(False)


def __getattr__(name: str) -> Any:
    """Of every other option that JAX has an object of the same kind."""
    for option in (f"jax_{name}", name):
        if option in _OURS and hasattr(weft, name):
            return globals().setdefault(name, _OwnOption(option, getattr(weft, name)))
        if option in {*_OURS, *_WITHOUT_EFFECT}:
            default = _WITHOUT_EFFECT.get(option)
            return globals().setdefault(name, _Option(option, True if default in (None, False) else default))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# JAX gives objects to some options under their whole names.
_WHOLE = ("jax_ragged_dot_use_ragged_dot_instruction", "jax_ragged_dot_use_gpu_pallas_triton_lowering")
NAMES = sorted({*(name.removeprefix("jax_") for name in {*_OURS, *_WITHOUT_EFFECT}), *_WHOLE})


def _state(name: str, default: Any, convert: Callable[[str], Any], check: Callable[[Any], Any] = _any) -> Any:
    """A new option, called by its name in small letters; JAX's own libraries have some."""
    _CHECKS[name] = check
    given = os.environ.get(name.upper())
    config._kept[name] = default if given is None else convert(given)
    _WITHOUT_EFFECT[name] = config._kept[name]
    return _Option(name, True if default in (None, False) else default)


def _is_true(text: str) -> bool:
    return text.lower() in ("1", "true", "yes", "y", "t", "on")


def bool_state(name: str, default: bool, help: str = "", **_: Any) -> Any:
    """A new option that is on or off."""
    return _state(name, default, _is_true, bool)


def int_state(name: str, default: int, help: str = "", **_: Any) -> Any:
    """A new option that is a number."""
    return _state(name, default, int)


def float_state(name: str, default: float, help: str = "", **_: Any) -> Any:
    """A new option that is a number."""
    return _state(name, default, float)


def string_state(name: str, default: str, help: str = "", **_: Any) -> Any:
    """A new option that is a text."""
    return _state(name, default, str)


string_or_object_state = optional_string_state = string_flag = string_state
bool_flag, int_flag, float_flag = bool_state, int_state, float_state


def enum_state(name: str, enum_values: Any, default: str, help: str = "", **_: Any) -> Any:
    """A new option that is one of some words."""

    def check(value: Any) -> Any:
        if value not in (default, *enum_values):
            raise value_error(f"{name}: new enum value must be in {list(enum_values)}, got {value!r}")
        return value

    return _state(name, default, str, check)


optional_enum_state = enum_flag = enum_state


class _Flags:
    """The options as attributes, as absl's flags are."""

    def __getattr__(self, name: str) -> Any:
        return config.read(name)


FLAGS = _Flags()
parse_flags_with_absl = config_with_absl = config.parse_flags_with_absl
update, _read = config.update, config.read


def read_environment() -> None:
    """Sets what JAX_... variables of the environment say, and how many devices there are to be."""
    for variable, text in os.environ.items():
        name = variable.lower()
        if not re.fullmatch(r"jax_\w+", name) or name not in {*_OURS, *_WITHOUT_EFFECT}:
            continue
        value: Any = {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
        if name == _NUMBER_OF_DEVICES:
            value = int(text)
        if name in ("jax_platforms", "jax_platform_name") and weft.default_backend() not in text.split(","):
            continue
        config.update(name, value)
    before_counting.append(_count_devices)


typing_rules.keeps_axis = lambda size: size > 1 or not config.read(_OF_TYPES)
typing_rules.cuts_mapped = lambda: bool(config.read("jax_disable_vmap_shmap_error"))
