"""Small things about arrays."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

import weft
import weft.numpy as wnp

from .. import _weft
from .._core.errors import runtime_error, type_error, value_error
from .._matrix_functions import householder
from .._matrix_functions.batches import of_batches
from ..numpy._factors import QRResult
from .deprecations import dtype_of_array, of_conversion
from .layouts import format_of
from .settings import config


class Initializer(Protocol):
    """What makes the first values of weights."""

    def __call__(self, key: Any, shape: Any, dtype: Any = ...) -> Any: ...


@dataclasses.dataclass
class Slice:
    """`size` elements from `start`, one in `stride`. JAX's ds gives one; Weft's gives a slice of Python's."""

    start: Any
    size: Any
    stride: int = 1

    @classmethod
    def from_slice(cls, given: slice, size: int) -> Slice:
        """What a slice takes of a dimension of this size."""
        start, stop, step = given.indices(size)
        if step < 1:
            raise value_error(f"slice must have a step >= 1 (found: {step})")
        return cls(start, max(stop - start + step - 1, 0) // step, step)


def ds(start: Any, size: Any = None, stride: int | None = None) -> slice:
    """The slice of `size` elements from `start`, one in `stride`; ds(n) is 0 : n, and ds(None) all."""
    if start is None:
        return slice(None)
    if stride is not None and not isinstance(stride, int):
        raise value_error("Non-static stride in `dslice`")
    if size is None:
        start, size = 0, start
    return slice(start, start + size) if stride is None else slice(start, start + (size - 1) * stride + 1, stride)


def shape_as_value(shape: Any) -> Any:
    """The sizes of a shape as a vector."""
    if any(isinstance(size, weft.Dim) for size in shape):
        raise type_error(f"shape_as_value: {shape} has an open size; weft.primitives.dim_size gives one of an array")
    return wnp.asarray(np.asarray(shape, np.int32))


_INTEGERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
_FLOATS = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
SUPPORTED_DTYPES_SET = frozenset(_weft.dtype(name) for name in ["bool", *_INTEGERS, *_FLOATS])


def is_dlpack_dtype(dtype: Any) -> bool:
    """Whether DLPack carries arrays of a dtype."""
    return isinstance(_weft.dtype(dtype), np.dtype)


def qr(a: Any, mode: str = "reduced") -> Any:
    """weft.numpy.linalg.qr, which also gives reflections as LAPACK packs them: "raw", (packed, transposed; factors)."""
    if mode != "raw":
        return wnp.linalg.qr(a, mode)
    packed, taus = of_batches(householder.packed_qr, _weft.promote_inexact(wnp.asarray(a)))
    return QRResult(wnp.swapaxes(packed, -1, -2), taus)


def top_k(operand: Any, k: int, *, axis: int = -1) -> list[Any]:
    """weft.lax.top_k, whose results are a list."""
    return list(weft.lax.top_k(operand, k, axis=axis))


def slogdet(a: Any, *, method: str | None = None) -> Any:
    """weft.numpy.linalg.slogdet, which has one method: that which is asked for is looked at."""
    if method not in (None, "lu", "qr"):
        raise value_error(f"slogdet: method must be 'lu', 'qr' or None, got {method!r}")
    return wnp.linalg.slogdet(a)


def _convert_element_type(operand: Any, new_dtype: Any = None, weak_type: bool = False, sharding: Any = None) -> Any:
    x = wnp.asarray(operand)
    x = x if new_dtype is None else x.astype(new_dtype)
    x = _weft.weak(x) if weak_type else _weft.strong(x)
    return x if sharding is None else weft.device_put(x, sharding)


def _const(example: Any, value: Any) -> Any:
    return wnp.asarray(value, wnp.result_type(example))


def _delta(dtype: Any, shape: Any, axes: Any) -> Any:
    """1 where the indices along the axes are all the same, 0 elsewhere."""
    sizes = [shape[axis] for axis in axes]
    places = [
        wnp.arange(size).reshape([-1 if i == k else 1 for i in range(len(sizes))]) for k, size in enumerate(sizes)
    ]
    same = wnp.ones(sizes, bool)
    for place in places[1:]:
        same = same & (place == places[0])
    return same.astype(dtype)


def _zeros(x: Any) -> Any:
    return wnp.zeros_like(x)


def check_arraylike(name: str, *xs: Any, **_: Any) -> None:
    """Raises a TypeError unless all are numbers or arrays."""
    for x in xs:
        if not _weft.is_operand(x):
            raise type_error(f"{name} requires ndarray or scalar arguments, got {type(x)}")


def promote_dtypes(*xs: Any) -> list[Any]:
    """Arrays of the dtype that they have together."""
    return list(_weft.promote_all(*xs))


def promote_dtypes_inexact(*xs: Any) -> list[Any]:
    """... which is one of floats or complex numbers."""
    return list(_weft.promote_all_inexact(*xs))


def promote_dtypes_complex(*xs: Any) -> list[Any]:
    """... which is one of complex numbers."""
    xs = _weft.promote_all_inexact(*xs)
    return [x.astype("complex128" if x.dtype in ("float64", "complex128") else "complex64") for x in xs]


def fact(n: Any) -> Any:
    """n!, by the logarithm of the gamma function."""
    return wnp.exp(weft.lax.lgamma(n + 1.0))


class _ZeroSeries:
    """What jet of JAX's gives as the derivatives of what does not depend on its arguments; Weft's are zeros."""


zero_series = _ZeroSeries()


def _check_if_deleted(x: Any) -> None:
    if x.is_deleted():
        raise runtime_error(f"Array has been deleted with shape={x.dtype}[{','.join(map(str, x.shape))}].")


def _single_device_arrays(x: Any) -> Any:
    """What each device of this process holds; None of an array that was deleted."""
    return None if x.is_deleted() else [shard.data for shard in x.addressable_shards]


def _is_put(x: Any) -> bool:
    """Whether somebody has said where it lies."""
    return _weft.sharding_of(x) is not None


def _contains(self: Any, x: Any) -> bool:
    if self.ndim != 1:
        raise value_error(f"Array.__contains__: search array must be one-dimensional, got shape {self.shape}")
    if not _weft.is_operand(x):
        raise type_error(f"Array.__contains__: unsupported operand type {type(x).__name__}")
    if np.ndim(x):
        raise value_error(f"Array.__contains__: query value must be a scalar, got shape {np.shape(x)}")
    return bool((self == x).any())


def _named_sums(show: Callable[[Any], str]) -> Callable[[Any], str]:
    """The text of an array; of a sum in parts its type, as in JAX, where no device has its numbers."""

    @functools.wraps(show)
    def text(self: Any) -> str:
        spec = None if _weft.is_traced(self) or self.is_deleted() else getattr(_weft.sharding_of(self), "spec", None)
        if not getattr(spec, "unreduced", None):
            return show(self)
        return f"Array(shape={tuple(self.shape)}, dtype={self.dtype}, sharding={self.sharding})"

    return text


class _Capsule:
    """What has a capsule of DLPack's for NumPy, in the host's memory."""

    def __init__(self, capsule: Any):
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def dlpack_managed_tensor_to_buffer(tensor: Any, device: Any = None, stream: Any = None, copy: Any = None) -> Any:
    """The array of a capsule of DLPack's. Raises ValueError where it would have to be copied, and copy is not true."""
    del device, stream
    held = np.from_dlpack(_Capsule(tensor))
    if held.ctypes.data % held.itemsize and not copy:
        raise value_error(f"the buffer at {held.ctypes.data:#x} is not aligned to {held.itemsize} bytes")
    return weft.numpy.from_dlpack(held, copy=copy)


def _not_on_a_gpu(self: Any) -> Any:
    raise AttributeError("__cuda_array_interface__ is only defined for NVIDIA GPU buffers.")


_astype, _item = weft.Array.astype, weft.Array.item


def _as_dtype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    of_conversion(self, dtype)
    given = dtype is not None and not copy and device is None and not _weft.is_traced(self)
    if given and not _weft.abstract(self)[2] and self.dtype == _weft.dtype(dtype):
        return self
    found = _astype(self, dtype, copy)
    return found if device is None else weft.device_put(found, device)


def _element(self: Any, *index: Any) -> Any:
    """x.item(): an index may be a tuple of one number, too, which counts in the flat array."""
    (index,) = index if len(index) == 1 and isinstance(index[0], tuple) else (index,)
    return _item(self, *index)


def install() -> None:
    """From now on arrays have what JAX's have besides, though it is private there, and the option
    jax_check_static_indices counts."""
    _weft.ask_about_bounds(lambda _: config.read("jax_check_static_indices"))
    device: Any = weft.Device
    device.__str__ = lambda self: f"{self.platform}:{self.id}"
    array: Any = weft.Array
    array.__name__ = "ArrayImpl"  # in messages
    array.__contains__ = _contains
    # An array that can be deleted or given away while the other one stays.
    array.__copy__ = lambda self: self if _weft.is_traced(self) else self.copy()
    array.__deepcopy__ = lambda self, memo: self if _weft.is_traced(self) else self.copy()
    array.__repr__, array.__str__ = _named_sums(array.__repr__), _named_sums(array.__str__)
    functions: Any = type(wnp.frompyfunc(max, 2, 1))
    functions.__repr__ = lambda self: f"<jnp.ufunc '{self.__name__}'>"
    array._value = property(np.asarray)
    array.__numpy_dtype__ = property(dtype_of_array)
    array.__cuda_array_interface__ = property(_not_on_a_gpu)
    array._npy_value = property(lambda self: None)
    array.format = property(format_of)
    array.astype, array.item = _as_dtype, _element
    array.is_ready = lambda self: True
    array._check_if_deleted = _check_if_deleted
    array._committed = array.committed = property(_is_put)
    array._arrays = property(_single_device_arrays)
    array._fully_replicated_shard = lambda self: self.addressable_shards[0].data
