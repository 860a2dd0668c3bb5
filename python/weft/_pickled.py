"""What pickles of arrays and programs call when they are read.

Functions of this module and nothing else: an unpickler that admits only what it is told to admit can name them. (A
native function would be written as an expression for `eval`, which such an unpickler refuses.) Pickles on disk name
them, so they stay as they are.
"""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _weft
from ._core.errors import value_error

_JAX_SEMANTICS = 3  # as in tracer/context.h
_WIDE = frozenset(["f64", "c128", "i64", "u64"])


def array(dtype: str, shape: tuple[int, ...], data: bytes, weak: bool) -> _weft.Array:
    """An array of these bytes, in JAX's mode of 32 bits instead of 64 where NumPy's would be. Raises ValueError where
    they do not fit its type."""
    made = _weft._array_from_bytes(dtype, shape, data, weak)
    if dtype in _WIDE and _weft.setting(_JAX_SEMANTICS):
        return _weft.with_weak([_weft.array(np.asarray(made), None, False)], [weak])[0]
    return made


def placed_array(
    dtype: str, shape: tuple[int, ...], data: bytes, weak: bool, place: tuple[int] | tuple[list, list, tuple]
) -> _weft.Array:
    """The same array on a device, by its number, or over a mesh: its axes, the numbers of its devices, and the entries
    of a PartitionSpec. Raises ValueError where there are not so many devices."""
    return place_array(array(dtype, shape, data, weak), place)


def place_array(whole: _weft.Array, place: tuple) -> _weft.Array:
    """Set by weft._sharding.arrays, which stands above."""
    raise NotImplementedError


def program(text: str, file: str) -> _weft.Fn:
    """The function of this text of the IR. Raises ParseError."""
    return _weft.parse_fn(text, file)


def operation(spelled: str) -> _weft.Operation:
    """The operation of a name such as "wnp.tanh". Raises ValueError for any other name: what it gives may be called."""
    module, _, name = spelled.rpartition(".")
    module = "weft.numpy" if module == "wnp" else module
    found = getattr(importlib.import_module(module), name, None) if module.startswith("weft.") else None
    if not isinstance(found, _weft.Operation):
        raise value_error(f"a pickle names the operation {spelled!r}, and there is no such operation")
    return found


def jitted(function: Callable[..., Any], options: dict[str, Any], is_jax: bool) -> Any:
    """jit(function, **options), jax.jit's of weft.as_jax if `is_jax`: nothing runs until it is called."""
    module = importlib.import_module("weft.as_jax.transforms" if is_jax else "weft.compiled")
    return module.jit(function, **options)
