"""Process-wide settings."""

from __future__ import annotations

import contextlib

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

    def update(self, name: str, value) -> None:
        """JAX's spelling: config.update("jax_enable_x64", True)."""
        if name in ("jax_enable_x64", "x64"):
            self.x64 = value
        elif name in ("jax_debug_nans", "debug_nans"):
            self.debug_nans = value
        elif name in ("jax_disable_jit", "disable_jit"):
            _weft.set_disable_jit(bool(value))
        else:
            raise value_error(f"config: there is no setting '{name}'")


config = _Config()


@contextlib.contextmanager
def _set_to(name: str, value: bool):
    saved = getattr(config, name)
    setattr(config, name, value)
    try:
        yield
    finally:
        setattr(config, name, saved)


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
    return _set_to("debug_nans", on)


def enable_x64(on: bool = True) -> contextlib.AbstractContextManager[None]:
    """A context manager: inside it arrays made from Python numbers get 64 bits.

    Args:
        on: whether to.

    Returns: context manager.

    Example:
        >>> with weft.enable_x64():
        ...     wnp.array([1.0])
        Array([1.], dtype=float64)
    """
    return _set_to("x64", on)
