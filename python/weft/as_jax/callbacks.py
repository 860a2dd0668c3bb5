"""jax.pure_callback and jax.experimental.io_callback: Weft's, with what JAX refuses and raises."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import weft

from .._core import tree as _tree
from .._core.errors import runtime_error, value_error


class _Failures:
    """The classes that exceptions of callbacks become: their own, and RuntimeError, which JAX raises. JAX's text names
    the class, and libraries look for it (equinox.error_if)."""

    def __init__(self) -> None:
        self._of: dict[type, type | None] = {}

    def _kind(self, own: type) -> type | None:
        if own not in self._of:
            name = own.__qualname__ if own.__module__ == "builtins" else f"{own.__module__}.{own.__qualname__}"

            text: Callable[..., str] = own.__str__

            def with_jax_words(error: Exception) -> str:
                said = text(error)
                first = said.partition("\n")[0]
                return f"{said}\nJAX says: INTERNAL: CpuCallback error calling callback: {name}: {first}"

            bases = (own,) if issubclass(own, RuntimeError) else (own, RuntimeError)
            try:
                made = type(own.__name__, bases, {"__module__": own.__module__, "__str__": with_jax_words})
            except TypeError:  # objects of these classes cannot be both
                made = None
            self._of[own] = made
            if made is not None:
                self._of[made] = None  # as it comes out of a callback within a callback
        return self._of[own]

    def as_runtime_error(self, error: Exception) -> Exception:
        """The exception as one that programs catch by either class."""
        kind = self._kind(type(error))
        if kind is None:
            return error
        made: Exception = kind.__new__(kind, *error.args)
        made.args = error.args
        made.__dict__.update(error.__dict__)
        made.__cause__, made.__suppress_context__ = error.__cause__, error.__suppress_context__
        return made.with_traceback(error.__traceback__)


_failures = _Failures()


def _as_jax(name: str, callback: Callable[..., Any], specs: Any) -> Callable[..., Any]:
    """The callback, whose exceptions are RuntimeErrors, too, and logged; raises ValueError for results of 64 bits."""
    for spec in weft.tree.leaves(specs):
        dtype = np.dtype(getattr(spec, "dtype", np.float32))
        if not weft.config.x64 and dtype.kind in "iufc" and dtype.itemsize // (2 if dtype.kind == "c" else 1) == 8:
            raise value_error(
                f"{name}: result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is disabled, got {spec}"
            )
    expected = weft.tree.structure(specs)

    @functools.wraps(callback)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            result = callback(*args, **kwargs)
        except Exception as error:
            import logging  # which most programs do not load

            logging.getLogger("jax._src.callback").exception("jax.%s failed", name)
            raise _failures.as_runtime_error(error) from None
        got = weft.tree.structure(result)
        if got.num_leaves != expected.num_leaves and not (result is None and specs is None):
            raise runtime_error(
                f"{name}: the callback returned {_tree.in_words(got)}, expected {_tree.in_words(expected)}"
            )
        return result

    return called


def pure_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, **kwargs: Any) -> Any:
    """weft.pure_callback; what the callback raises is a RuntimeError, too."""
    return weft.pure_callback(
        _as_jax("pure_callback", callback, result_shape_dtypes), result_shape_dtypes, *args, **kwargs
    )


def io_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, **kwargs: Any) -> Any:
    """weft.io_callback; what the callback raises is a RuntimeError, too."""
    return weft.io_callback(_as_jax("io_callback", callback, result_shape_dtypes), result_shape_dtypes, *args, **kwargs)
