"""Settings of the process, and those that `with` statements make for their thread."""

from __future__ import annotations

import contextlib
from typing import Any

from . import _weft
from ._core import options
from ._core.errors import runtime_error, value_error
from ._sharding.devices import default_backend
from .optimization import level_here, set_for_process
from .options import checked_precision, default_device_here, set_default_device


class _Config:
    """weft.config.x64 = True makes 64-bit the default for arrays made from Python numbers; existing arrays keep their
    dtype either way.

    What is set here is for all threads. Inside a `with` statement (weft.enable_x64, weft.debug_nans, weft.disable_jit)
    its thread has that instead."""

    @property
    def x64(self) -> bool:
        return _weft.setting(options.X64)

    @x64.setter
    def x64(self, on: bool) -> None:
        _weft.set_for_process(options.X64, bool(on))

    @property
    def debug_nans(self) -> bool:
        """Whether results are searched for NaN; FloatingPointError names the operation that gave one, and its line."""
        return _weft.setting(options.DEBUG_NANS)

    @debug_nans.setter
    def debug_nans(self, on: bool) -> None:
        _weft.set_for_process(options.DEBUG_NANS, bool(on))

    @property
    def optimize(self) -> str:
        """How jitted functions are optimised: "none", "fast_compile", "fast_run"; "custom" inside a weft.optimization
        with passes of its own."""
        return level_here()

    @optimize.setter
    def optimize(self, level: str) -> None:
        set_for_process(level)

    @property
    def jax_semantics(self) -> bool:
        """Whether Weft follows JAX where it differs on purpose (docs/jax_programs.md); weft.as_jax turns it on."""
        return _weft.setting(options.JAX_SEMANTICS)

    @jax_semantics.setter
    def jax_semantics(self, on: bool) -> None:
        _weft.set_for_process(options.JAX_SEMANTICS, bool(on))

    def __getattr__(self, name: str) -> Any:
        if name in OPTIONS:
            return OPTIONS[name].value
        raise AttributeError(f"config: there is no setting '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in OPTIONS:
            OPTIONS[name].set(value)
        elif name not in vars(type(self)):
            raise AttributeError(f"config: there is no setting '{name}'")
        else:
            super().__setattr__(name, value)

    @property
    def jax_enable_x64(self) -> bool:
        """JAX's name of x64."""
        return self.x64

    @property
    def jax_debug_nans(self) -> bool:
        """JAX's name of debug_nans."""
        return self.debug_nans

    @property
    def jax_disable_jit(self) -> bool:
        """Whether jitted functions and control flow run step by step in Python."""
        return _weft.setting(options.DISABLE_JIT)

    @property
    def jax_platforms(self) -> str:
        """The platform of the devices. There is one: update() accepts its name alone."""
        return default_backend()

    jax_platform_name = jax_platforms

    @property
    def jax_default_device(self) -> Any:
        """The device on which arrays are made; None: the first."""
        return default_device_here()

    @property
    def jax_transfer_guard(self) -> str:
        """What update() set for all directions; read those: transfer_guard_host_to_device ..."""
        return self.transfer_guard_host_to_device

    @property
    def jax_default_matmul_precision(self) -> str:
        """How precise products of matrices are at least: "highest", whatever update() asks for."""
        return "highest"

    def read(self, name: str):
        """JAX's spelling: config.read("jax_enable_x64")."""
        if name not in _SETTINGS and name not in OPTIONS:
            raise value_error(f"config: there is no setting '{name}'")
        return getattr(self, name)

    def update(self, name: str, value) -> None:
        """JAX's spelling: config.update("jax_enable_x64", True)."""
        if name in ("jax_enable_x64", "x64"):
            self.x64 = value
        elif name in ("jax_debug_nans", "debug_nans"):
            self.debug_nans = value
        elif name in ("jax_disable_jit", "disable_jit"):
            _weft.set_for_process(options.DISABLE_JIT, bool(value))
        elif name == "optimize":
            self.optimize = value
        elif name == "jax_semantics":
            self.jax_semantics = value
        elif name in ("jax_platforms", "jax_platform_name"):
            # The first of a list is the one that JAX takes where it is there.
            if value and str(value).split(",")[0] != self.jax_platforms:
                raise value_error(
                    f"config: {name} must be '{self.jax_platforms}', the platform there is, got {value!r}"
                )
        elif name == "jax_default_matmul_precision":
            checked_precision(value)
        elif name == "jax_default_device":
            set_default_device(value)
        elif name == "jax_transfer_guard":
            for direction in ("host_to_device", "device_to_host", "device_to_device"):
                OPTIONS[f"transfer_guard_{direction}"].set(value)
        elif name in OPTIONS:
            OPTIONS[name].set(value)
        else:
            raise value_error(f"config: there is no setting '{name}'")


# By their own names, and by JAX's.
OPTIONS: dict[str, options.Option] = {
    name: getattr(options, option)
    for option in (
        "debug_infs",
        "debug_key_reuse",
        "no_tracing",
        "no_execution",
        "checking_leaks",
        "log_compiles",
        "explain_cache_misses",
        "numpy_rank_promotion",
        "numpy_dtype_promotion",
        "threefry_partitionable",
        "transfer_guard_host_to_device",
        "transfer_guard_device_to_host",
        "transfer_guard_device_to_device",
    )
    for name in (option, "jax_check_tracer_leaks" if option == "checking_leaks" else f"jax_{option}")
}
_SETTINGS = [name for name, value in vars(_Config).items() if isinstance(value, property)]


config = _Config()


class Scope(contextlib.AbstractContextManager[None], contextlib.ContextDecorator):
    """A `with` statement, or the decorator of a function, that sets a setting for its thread. Those of one thread may
    end in any order (of generators, say): the setting is that of the one that was opened last among those that are
    open."""

    def __init__(self, setting: int, value: bool):
        self._setting, self._value = setting, bool(value)
        self._mine: list[int] = []

    def _recreate_cm(self) -> Scope:
        # One for each call of a decorated function: calls of several threads end in any order.
        return Scope(self._setting, self._value)

    def __enter__(self) -> None:
        self._mine.append(_weft.open_setting(self._setting, self._value))

    def __exit__(self, *_: object) -> None:
        if not _weft.close_setting(self._setting, self._mine.pop()):
            raise runtime_error("a `with` statement that sets a setting must end in the thread in which it began")


def disable_jit(disable: bool = True) -> contextlib.AbstractContextManager[None]:
    """A context manager: inside it jitted functions run as plain Python, operation by operation, and so do cond, scan
    and the other loops, in this thread. Where what a branch or a loop depends on is traced and has no value (under
    vmap, make_ir or eval_shape), it stays part of the program.

    Args:
        disable: whether to.

    Returns: context manager.

    Example:
        >>> @weft.jit
        ... def f(x):
        ...     print(x)
        ...     return x * 2
        >>> with weft.disable_jit():
        ...     f(wnp.array(3.0))
        3.0
        Array(6., dtype=float32, weak_type=True)
    """
    return Scope(options.DISABLE_JIT, disable)


def debug_nans(on: bool = True) -> contextlib.AbstractContextManager[None]:
    """A context manager: inside it the results of jitted functions, and of operations outside of them, are searched
    for NaN, in this thread. A program that gives one runs once more (what it prints is not repeated, callbacks are),
    to find out which operation made it.

    Args:
        on: whether to.

    Returns: context manager; a NaN raises FloatingPointError inside, with the operation and the user's line.

    Example:
        >>> with weft.debug_nans():
        ...     try:
        ...         weft.jit(lambda x: wnp.log(x) + 1)(-1.0)
        ...     except FloatingPointError as error:
        ...         print(str(error).splitlines()[0])
        'log' gives a NaN
    """
    return Scope(options.DEBUG_NANS, on)


def jax_semantics(on: bool = True) -> contextlib.AbstractContextManager[None]:
    """A context manager: inside it Weft follows JAX where it differs on purpose, in this thread.

    Args:
        on: whether to.

    Returns: context manager.

    Example:
        >>> import numpy as np
        >>> with weft.jax_semantics():
        ...     wnp.asarray(np.arange(2.0))
        Array([0., 1.], dtype=float32)
    """
    return Scope(options.JAX_SEMANTICS, on)


def enable_x64(on: bool = True) -> contextlib.AbstractContextManager[None]:
    """A context manager: inside it arrays made from Python numbers get 64 bits, in this thread.

    Args:
        on: whether to.

    Returns: context manager.

    Example:
        >>> with weft.enable_x64():
        ...     wnp.array([1.0])
        Array([1.], dtype=float64)
    """
    return Scope(options.X64, on)
