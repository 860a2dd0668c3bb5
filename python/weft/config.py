"""Process-wide settings."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from . import _weft
from ._errors import value_error


class _Config:
    """weft.config.x64 = True makes 64-bit the default for arrays made from Python numbers; existing arrays keep their
    dtype either way."""

    @property
    def x64(self) -> bool:
        return _weft.x64()

    @x64.setter
    def x64(self, on: bool) -> None:
        _weft.set_x64(bool(on))

    @property
    def debug_nans(self) -> bool:
        """Whether results are searched for NaN; FloatingPointError names the operation that gave one, and its line."""
        return _weft.debug_nans()

    @debug_nans.setter
    def debug_nans(self, on: bool) -> None:
        _weft.set_debug_nans(bool(on))

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
        return _weft.disable_jit()

    @property
    def jax_platforms(self) -> str:
        """The platform of the devices. There is one: update() accepts its name alone."""
        from .mesh import default_backend

        return default_backend()

    jax_platform_name = jax_platforms

    @property
    def jax_default_matmul_precision(self) -> str:
        """How precise products of matrices are at least: "highest", whatever update() asks for."""
        return "highest"

    def read(self, name: str):
        """JAX's spelling: config.read("jax_enable_x64")."""
        if name not in _SETTINGS:
            raise value_error(f"config: there is no setting '{name}'")
        return getattr(self, name)

    def update(self, name: str, value) -> None:
        """JAX's spelling: config.update("jax_enable_x64", True)."""
        if name in ("jax_enable_x64", "x64"):
            self.x64 = value
        elif name in ("jax_debug_nans", "debug_nans"):
            self.debug_nans = value
        elif name in ("jax_disable_jit", "disable_jit"):
            _weft.set_disable_jit(bool(value))
        elif name in ("jax_platforms", "jax_platform_name"):
            # The first of a list is the one that JAX takes where it is there.
            if value and str(value).split(",")[0] != self.jax_platforms:
                raise value_error(
                    f"config: {name} must be '{self.jax_platforms}', the platform there is, got {value!r}"
                )
        elif name == "jax_default_matmul_precision":
            if value not in _PRECISIONS:
                names = ", ".join(map(repr, _PRECISIONS))
                raise value_error(f"config: jax_default_matmul_precision must be one of {names}, got {value!r}")
        else:
            raise value_error(f"config: there is no setting '{name}'")


_SETTINGS = [name for name, value in vars(_Config).items() if isinstance(value, property)]
# Lower bounds, all of which products of the operands' own precision satisfy.
_PRECISIONS = [None, "default", "high", "highest", "bfloat16", "tensorfloat32", "float32"]


config = _Config()


class _Scopes:
    """The `with` statements that set a setting. Those of several threads may overlap in any order: the setting is that
    of the one that was opened last among those that are open, and what it was before them when all are closed."""

    def __init__(self, name: str):
        self._name, self._lock = name, threading.Lock()
        self._before, self._open = False, list[tuple[object, bool]]()

    @contextlib.contextmanager
    def opened(self, value: bool) -> Iterator[None]:
        mine = (object(), value)
        with self._lock:
            if not self._open:
                self._before = getattr(config, self._name)
            self._open.append(mine)
            setattr(config, self._name, value)
        try:
            yield
        finally:
            with self._lock:
                self._open.remove(mine)
                setattr(config, self._name, self._open[-1][1] if self._open else self._before)


_x64, _debug_nans = _Scopes("x64"), _Scopes("debug_nans")


def debug_nans(on: bool = True) -> contextlib.AbstractContextManager[None]:
    """A context manager: inside it the results of jitted functions, and of operations outside of them, are searched
    for NaN. A program that gives one runs once more (what it prints is not repeated, callbacks are), to find out which
    operation made it.

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
    return _debug_nans.opened(on)


def enable_x64(on: bool = True) -> contextlib.AbstractContextManager[None]:
    """A context manager: inside it arrays made from Python numbers get 64 bits, in all threads.

    Args:
        on: whether to.

    Returns: context manager.

    Example:
        >>> with weft.enable_x64():
        ...     wnp.array([1.0])
        Array([1.], dtype=float64)
    """
    return _x64.opened(on)
