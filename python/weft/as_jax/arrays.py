"""Small things about arrays."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

import weft
import weft.numpy as wnp

from .. import _weft
from .._core.errors import runtime_error
from .._matrix_functions import householder
from .._matrix_functions.batches import of_batches


class Initializer(Protocol):
    """What makes the first values of weights."""

    def __call__(self, key: Any, shape: Any, dtype: Any = ...) -> Any: ...


def ds(start: Any, size: int) -> Any:
    """The slice of `size` elements from `start`."""
    return slice(start, start + size)


def is_dlpack_dtype(dtype: Any) -> bool:
    """Whether DLPack carries arrays of a dtype."""
    return isinstance(_weft.dtype(dtype), np.dtype)


class Layout(NamedTuple):
    """The order of an array's dimensions in memory. Weft's is row-major; others are accepted, without effect."""

    major_to_minor: tuple[int, ...] = ()
    tiling: Any = None
    sub_byte_element_size_in_bits: int = 0


class Format(NamedTuple):
    """A layout and a sharding."""

    layout: Any = None
    sharding: Any = None


def with_layout_constraint(x: Any, layout: Any) -> Any:
    """The array: its layout is the compiler's."""
    del layout
    return x


def qr(a: Any, mode: str = "reduced") -> Any:
    """weft.numpy.linalg.qr, which also gives reflections as LAPACK packs them: "raw", (packed, transposed; factors)."""
    if mode != "raw":
        return wnp.linalg.qr(a, mode)
    packed, taus = of_batches(householder.packed_qr, _weft.promote_inexact(wnp.asarray(a)))
    return wnp.swapaxes(packed, -1, -2), taus


def _check_if_deleted(x: Any) -> None:
    if x.is_deleted():
        raise runtime_error(f"Array has been deleted with shape={x.dtype}[{','.join(map(str, x.shape))}].")


def install() -> None:
    """From now on arrays have what JAX's have besides, though it is private there."""
    array: Any = weft.Array
    array._value = property(np.asarray)
    array._npy_value = property(lambda self: None)
    array.is_ready = lambda self: True
    array._check_if_deleted = _check_if_deleted
    array._committed = property(lambda self: weft.device_count() > 1 and isinstance(self.sharding, weft.NamedSharding))
