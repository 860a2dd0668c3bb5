"""The methods of arrays that are functions of weft.numpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.errors import type_error
from .._core.shapes import ShapedArray
from .._sharding.arrays import (
    addressable_data,
    global_shards,
    on_device_size_in_bytes,
    to_device,
    unsafe_buffer_pointer,
)
from .._weft import Array
from ..typing import DTypeLike, NestedLike
from . import _indexing, _places
from ._bits import byteswapped, viewed
from ._standard import array_namespace

_FUNCTIONS = """all any argmax argmin argpartition argsort choose clip conj conjugate cumprod cumsum diagonal dot max
mean min nonzero ptp ravel repeat round searchsorted sort squeeze std swapaxes take trace var"""


def _no_assignment(self, key, value):
    raise type_error("arrays never change: use x = x.at[index].set(value) instead of x[index] = value")


def compress(self, condition: NestedLike, axis: int | None = None) -> Array:
    """The slices along an axis where a condition holds: see weft.numpy.compress.

    Args:
        condition: vector of booleans, not longer than the axis.
        axis: the axis, negative from the end; None: of the flattened array.

    Returns: array of the same dtype.

    Raises:
        ValueError: the condition is no vector.
        weft.TracerError: the condition is traced.

    Example:
        >>> wnp.array([1, 2, 3]).compress(wnp.array([True, False, True]))
        Array([1, 3], dtype=int32)
    """
    return _indexing.compress(condition, self, axis)


def view(self, dtype: DTypeLike) -> Array:
    """The bits of the elements as another dtype. One of another width makes the last axis longer or shorter.

    Args:
        dtype: the dtype.

    Returns: array of the same shape, but for the last axis.

    Raises:
        ValueError: the last axis does not hold whole elements of that dtype.

    Example:
        >>> wnp.array([1.0]).view("int32")
        Array([1065353216], dtype=int32)
    """
    return viewed(self, dtype)


def byteswap(self) -> Array:
    """The bytes of each element in the opposite order.

    Returns: array of the same shape and dtype.

    Example:
        >>> wnp.array([1, 256], "uint16").byteswap()
        Array([256,   1], dtype=uint16)
    """
    return byteswapped(self)


_AT = """A place in the array: x.at[index].set(value) is a changed copy; x itself never changes.

The index is as in x[index], traced arrays of integers too. The methods of a place are set, add, subtract, multiply,
divide, power, min, max, apply and get. Out of bounds updates are dropped, and reads take the nearest element;
mode="fill" (or "drop"), "clip" or "promise_in_bounds" says otherwise.

Example:
    >>> wnp.zeros(3).at[1].set(5.0)
    Array([0., 5., 0.], dtype=float32)
    >>> wnp.zeros(3).at[wnp.array([0, 0, 2])].add(1.0)
    Array([2., 0., 1.], dtype=float32)
"""
_REAL = """The real part; real numbers stay.

Example:
    >>> wnp.array([1 + 2j]).real
    Array([1.], dtype=float32)
"""
_IMAG = """The imaginary part; 0 for real numbers.

Example:
    >>> wnp.array([1 + 2j]).imag
    Array([2.], dtype=float32)
"""
_AVAL = """The type: a weft.ShapedArray, as weft.typeof gives it.

Example:
    >>> wnp.ones(2).aval.shape
    (2,)
"""
_FLAT = """All elements in one dimension.

Example:
    >>> wnp.array([[1, 2], [3, 4]]).flat
    Array([1, 2, 3, 4], dtype=int32)
"""


def _at(self) -> _places._At:
    return _places._At(self)


_DEVICE = """Where the array lies: a weft.Device, or its sharding where it lies on several.

Example:
    >>> wnp.ones(2).device == weft.devices()[0]
    True
"""


def _device(self) -> Any:
    where = self.devices()
    return next(iter(where)) if len(where) == 1 else self.sharding


def _flat(self) -> Array:
    return self.ravel()


def _round(function, x: Array, n: int | None) -> Array:
    # Without digits an integer, as Python's round() gives for a float.
    return function(x, 0).astype(int) if n is None else function(x, n)


def attach(functions: Mapping[str, Any]) -> None:
    """Gives arrays their methods, other than those that are written in C++."""
    for name in _FUNCTIONS.split():
        setattr(Array, name, functions[name])
    more = {
        "addressable_data": addressable_data,
        "aval": property(ShapedArray.like, doc=_AVAL),
        "at": property(_at, doc=_AT),
        "compress": compress,
        "device": property(_device, doc=_DEVICE),
        "flat": property(_flat, doc=_FLAT),
        "flatten": functions["ravel"],
        "global_shards": property(global_shards),
        "imag": property(functions["imag"], doc=_IMAG),
        "on_device_size_in_bytes": on_device_size_in_bytes,
        "to_device": to_device,
        "unsafe_buffer_pointer": unsafe_buffer_pointer,
        "real": property(functions["real"], doc=_REAL),
        "byteswap": byteswap,
        "view": view,
        "__array_namespace__": array_namespace,
        "__contains__": lambda self, value: bool((self == value).any()),
        "__reversed__": lambda self: reversed(list(self)),
        "__round__": lambda self, n=None: _round(functions["round"], self, n),
        "__setitem__": _no_assignment,
    }
    for name, member in more.items():
        setattr(Array, name, member)
