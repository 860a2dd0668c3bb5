"""Keys, and the bits that they determine."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import not_implemented, type_error, value_error
from .._weft import Array
from ..arguments import sizes
from ..typing import DTypeLike, NestedLike, Shape

__all__ = [
    "PRNGKey",
    "bits",
    "clone",
    "fold_in",
    "key",
    "key_data",
    "key_impl",
    "split",
    "wrap_key_data",
]


def _shape(shape) -> tuple:
    return sizes(shape, "random")


_IMPLEMENTATION = "threefry2x32"


def _check_impl(name: str, impl: Any, dtype: Any = None) -> None:
    """Keys are those of Threefry-2x32; another generator's numbers would be other ones."""
    if impl is not None and dtype is not None:
        raise value_error(f"random.{name}: impl and dtype say the same: give one of them")
    if impl is not None and impl != _IMPLEMENTATION:
        raise not_implemented(f"random.{name}: impl must be None or '{_IMPLEMENTATION}', got {impl!r}")
    if dtype is not None and str(dtype) != "key":
        raise not_implemented(f"random.{name}: dtype must be None or that of weft's keys, got {dtype}")


def _limits(dtype) -> dict[str, float]:
    """The distance of 1 from the next number, and the smallest normal one; of bfloat16, too, which NumPy lacks."""
    kind = _weft.dtype(dtype)
    if str(kind) == "bfloat16":
        return {"eps": 2.0**-7, "tiny": 2.0**-126}
    info = np.finfo(kind)
    return {"eps": float(info.eps), "tiny": float(info.tiny)}


def _typed(key: Array) -> Array:
    """A key of dtype key, of such a one or of its words."""
    return key if str(wnp.asarray(key).dtype) == "key" else _weft.random_wrap(key)


def _parameter(value: NestedLike) -> Array:
    """A parameter whose dtype decides how numbers are drawn. NumPy's numbers have 64 bits where nobody asked for them:
    they count as Python's, so that the same program draws the same numbers whoever made its parameters."""
    given = value if isinstance(value, (np.ndarray, np.generic)) else None
    array = wnp.asarray(value)
    if not _weft.is_inexact(array.dtype) or (given is not None and given.dtype == np.float64):
        array = array.astype(float)
    return array


def key(seed: int, *, impl: str | None = None, dtype: Any = None) -> Array:
    """A key made from an integer.

    Args:
        dtype: None, or the dtype of another key.

    Returns: array without dimensions, of dtype key.

    Raises:
        TypeError: the seed is no integer.
        ValueError: both impl and dtype are given.

    Example:
        >>> weft.random.key_data(weft.random.key(42))
        Array([ 0, 42], dtype=uint32)
    """
    _check_impl("key", impl, dtype)
    return _weft.random_key(seed, True)


def PRNGKey(seed: int, *, impl: str | None = None) -> Array:
    """A key made from an integer, as two words, in JAX's older form.

    Returns: array uint32[2].

    Raises:
        TypeError: the seed is no integer.

    Example:
        >>> weft.random.PRNGKey(42)
        Array([ 0, 42], dtype=uint32)
    """
    _check_impl("PRNGKey", impl)
    return _weft.random_key(seed, False)


def key_data(keys: NestedLike) -> Array:
    """The words of keys.

    Args:
        keys: array of keys, of dtype key, or of such words.

    Returns: array uint32[..., 2].

    Raises:
        TypeError: they are no keys.

    Example:
        >>> weft.random.key_data(weft.random.key(42))
        Array([ 0, 42], dtype=uint32)
    """
    return _weft.random_unwrap(keys)


def key_impl(keys: NestedLike) -> str:
    """The name of the generator that keys are for.

    Args:
        keys: array of keys, of dtype key, or of words uint32[..., 2].

    Returns: "threefry2x32", the only one here.

    Raises:
        TypeError: they are no keys.

    Example:
        >>> weft.random.key_impl(weft.random.key(42))
        'threefry2x32'
    """
    key_data(keys)  # raises for what is no key
    return _IMPLEMENTATION


def wrap_key_data(key_bits_array: NestedLike, *, impl: str | None = None, dtype: Any = None) -> Array:
    """Keys made from words.

    Args:
        key_bits_array: array uint32[..., 2].
        dtype: None, or the dtype of another key.

    Returns: array of dtype key without the last dimension.

    Raises:
        TypeError: they are no such words.
        ValueError: both impl and dtype are given.

    Example:
        >>> weft.random.wrap_key_data(wnp.array([0, 42], "uint32")).shape
        ()
    """
    _check_impl("wrap_key_data", impl, dtype)
    return _weft.random_wrap(key_bits_array)


def split(key: Array, num: int | Shape = 2) -> Array:
    """New keys from a key, independent of each other and of it.

    Args:
        num: how many, an integer or a shape.

    Returns: array of keys [num] (for words uint32[num, 2]).

    Example:
        >>> k1, k2 = weft.random.split(weft.random.key(0))
        >>> weft.random.key_data(k1)
        Array([1797259609, 2579123966], dtype=uint32)
    """
    return _weft.random_split(key, _shape(num))


def fold_in(key: Array, data: NestedLike) -> Array:
    """A new key from a key and an integer.

    Args:
        data: integer of 32 bits, traced ones too; a Python integer is not negative.

    Returns: key.

    Raises:
        ValueError: data is a Python integer that does not fit.

    Example:
        >>> weft.random.key_data(weft.random.fold_in(weft.random.key(0), 7))
        Array([2716826189,  292468403], dtype=uint32)
    """
    if isinstance(data, int):
        if not 0 <= data < 2**32:
            raise value_error(f"random.fold_in: data must be between 0 and 2**32 - 1, got {data}")
        data = np.uint32(data)
    return _weft.random_fold_in(key, data)


def bits(key: Array, shape: int | Shape = (), dtype: DTypeLike = "uint32") -> Array:
    """Random bits.

    Args:
        dtype: the dtype of the result: uint8, uint16, uint32 or uint64.

    Returns: array of that shape.

    Raises:
        TypeError: key is no key, or dtype is not unsigned.

    Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011: Threefry-2x32 of a counter.

    Example:
        >>> weft.random.bits(weft.random.key(0), (2,))
        Array([4070199207, 4202968722], dtype=uint32)
    """
    kind = _weft.dtype(dtype)
    if _weft.dtype_kind(kind) != "unsigned" or wnp.iinfo(kind).bits < 8:
        raise type_error(f"random.bits: an unsigned 8- to 64-bit dtype is needed, got {kind}")
    return _weft.random_bits(key, 8 * kind.itemsize, _shape(shape))


def clone(key: Array) -> Array:
    """The same key, for programs that mark its reuse.

    Returns: key.

    Example:
        >>> weft.random.clone(weft.random.PRNGKey(3))
        Array([0, 3], dtype=uint32)
    """
    return wnp.asarray(key)


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "impl": 'the generator: None or "threefry2x32", the only one here.',
    "seed": "integer; 64 bits count.",
}

KEY_ERRORS = {
    "key": "TypeError: key is no key.",
    "impl": "NotImplementedError: impl or dtype is that of another generator.",
    "mode": 'ValueError: mode is neither "low" nor "high".',
}
_docs.complete(globals(), _PARAMETERS, errors=KEY_ERRORS)
