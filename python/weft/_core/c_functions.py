"""Functions of shared libraries as functions of arrays."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .errors import runtime_error, type_error, value_error


class Buffer(ctypes.Structure):
    """An array as C sees it: struct { void* data; int64_t rank; const int64_t* dims; }."""

    _fields_ = [("data", ctypes.c_void_p), ("rank", ctypes.c_int64), ("dims", ctypes.POINTER(ctypes.c_int64))]


def c_function(given: Any, name: str) -> Callable[..., Any]:
    """int f(int64_t num_inputs, const Buffer* inputs, int64_t num_outputs, Buffer* outputs), which returns 0, of the
    address of a function, a function of ctypes, or a library and a symbol."""
    what = f"primitive '{name}': lower"
    signature = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_int64, ctypes.POINTER(Buffer), ctypes.c_int64, ctypes.POINTER(Buffer)
    )
    if isinstance(given, tuple):
        if len(given) != 2 or not all(isinstance(part, (str, os.PathLike)) for part in given):
            raise type_error(f"{what}: expected (library, symbol), got {given!r}")
        library, symbol = given
        try:
            loaded = ctypes.CDLL(os.fspath(library))
        except OSError as error:
            raise value_error(f"{what}: the library {os.fspath(library)!r} cannot be loaded: {error}") from None
        if not hasattr(loaded, symbol):
            raise value_error(f"{what}: the library {os.fspath(library)!r} has no symbol '{symbol}'")
        given = getattr(loaded, symbol)
    address = given if isinstance(given, int) else ctypes.cast(given, ctypes.c_void_p).value
    if not address:
        raise value_error(f"{what}: the address of the function is 0")
    function = signature(address)
    function.kept = given  # type: ignore[attr-defined]  # the library stays loaded

    def call(arrays: Sequence[np.ndarray], types: Sequence[Any]) -> list[np.ndarray]:
        inputs = [np.ascontiguousarray(a) for a in arrays]
        outputs = [np.empty(tuple(t.shape), t.dtype) for t in types]
        status = function(len(inputs), _buffers(inputs), len(outputs), _buffers(outputs))
        if status != 0:
            raise runtime_error(f"primitive '{name}': its C function returned {status}; 0 says that all is well")
        return outputs

    return call


def _buffers(arrays: Sequence[np.ndarray]) -> Any:
    list_ = (Buffer * len(arrays))()
    for buffer, a in zip(list_, arrays):
        buffer.data, buffer.rank = a.ctypes.data, a.ndim
        buffer.dims = (ctypes.c_int64 * a.ndim)(*a.shape)
    return list_


# The class from which that of every function of ctypes is derived.
_FUNCTION: type = type(ctypes.CFUNCTYPE(None)()).__mro__[1]


def is_c_function(given: Any) -> bool:
    """Whether it is what c_function takes, rather than a function in Python."""
    return isinstance(given, (int, tuple, _FUNCTION)) and not isinstance(given, bool)
