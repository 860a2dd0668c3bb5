"""Keys, and the bits that they determine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _key_uses as _uses
from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._core import options
from .._core.errors import is_one_of, of_kind, type_error, value_error
from .._core.tree import jax_semantics
from .._weft import Array
from ..arguments import sizes
from ..typing import DTypeLike, NestedLike, Shape
from ._all_sizes import drawn_here

__all__ = [
    "PRNGKey",
    "bits",
    "clone",
    "fold_in",
    "key",
    "key_data",
    "key_dtype",
    "key_impl",
    "split",
    "wrap_key_data",
]


def _shape(shape) -> tuple:
    return sizes(shape, "random")


_IMPLEMENTATION = "threefry2x32"
# What keys are of where nobody says it, and words of which that are given as keys. JAX's option sets it.
default_implementation: Callable[[], str] = lambda: _IMPLEMENTATION
# What is added to seeds, and what is told of words that are given as keys: options of JAX's set them, too.
seed_offset: Callable[[], int] = lambda: 0
words_are_given: Callable[[Any], None] | None = None


def generators() -> Any:
    """The other generators."""
    from . import _generators

    return _generators


def _implementation(name: str, impl: Any, dtype: Any = None) -> str:
    """The name of the generator that arguments ask for."""
    if impl is not None and dtype is not None:
        raise value_error(f"random.{name}: impl and dtype say the same: give one of them")
    said = impl if dtype is None else dtype
    if getattr(said, "generator", None) is not None:
        return said.generator.name
    if str(said) == "key":
        return _IMPLEMENTATION
    if dtype is not None and dtype not in IMPLEMENTATIONS:
        raise type_error(f"random.{name}: dtype must be None or that of random keys, got {dtype}")
    found = default_implementation() if said is None else said
    if found == _IMPLEMENTATION or is_one_of(found, generators().GENERATORS):
        return found
    raise value_error(f"random.{name}: impl must be one of {', '.join(IMPLEMENTATIONS)}, got {said!r}")


IMPLEMENTATIONS = (_IMPLEMENTATION, "rbg", "unsafe_rbg", "threefry4x32", "philox2x32", "philox4x32")


def other_key(key: Any) -> Any:
    """The key as one of another generator; None if it is one of Threefry-2x32, or none."""
    if getattr(key, "_generator", None) is not None:
        return key
    if words_are_given is not None:
        words_are_given(key)
    name = default_implementation()
    if name == _IMPLEMENTATION or str(getattr(key, "dtype", "")) != "uint32":
        return None
    return generators().wrap(name, key)


def drawing(key: Any) -> Any:
    """The key as one whose numbers Python makes; None if it is one of Threefry-2x32 as it is today, or none."""
    other = other_key(key)
    if other is None and options.threefry_partitionable.used and not options.threefry_partitionable.value:
        return generators().of_halves(_weft.random_unwrap(_typed(key)))
    return other


def chosen(condition: Any, key: Any, other: Any) -> Any:
    """One of two keys."""
    if getattr(key, "_generator", None) is None:
        return wnp.where(condition, key, other)
    return key._made(wnp.where(wnp.asarray(condition)[..., None], key._words, other._words))


def _like(key: Any, new: Any) -> Any:
    """New keys as the key was given: of a dtype of their own, or as words."""
    if getattr(key, "_generator", None) is not None:
        return new
    return _weft.random_wrap(new._words) if str(getattr(key, "dtype", "")).startswith("key") else new._words


def _limits(dtype) -> dict[str, float]:
    """The distance of 1 from the next number, and the smallest normal one; of bfloat16, too, which NumPy lacks."""
    kind = _weft.dtype(dtype)
    if str(kind) == "bfloat16":
        return {"eps": 2.0**-7, "tiny": 2.0**-126}
    info = np.finfo(kind)
    return {"eps": float(info.eps), "tiny": float(info.tiny)}


def _typed(key: Array) -> Array:
    """A key of dtype key, of such a one or of its words."""
    other = other_key(key)
    if other is not None:
        return other
    return key if str(wnp.asarray(key).dtype).startswith("key") else _weft.random_wrap(key)


def _parameter(value: NestedLike) -> Array:
    """A parameter whose dtype decides how numbers are drawn. NumPy's numbers have 64 bits where nobody asked for them:
    they count as Python's, so that the same program draws the same numbers whoever made its parameters."""
    given = value if isinstance(value, (np.ndarray, np.generic)) else None
    array = wnp.asarray(value)
    if not _weft.is_inexact(array.dtype) or (given is not None and given.dtype == np.float64):
        array = array.astype(float)
    return array


def _seeded(seed: Any) -> Any:
    offset = seed_offset()
    return seed + offset if offset else seed


def key_dtype(impl_spec: str | None = None) -> Any:
    """The dtype of the keys of a generator.

    Args:
        impl_spec: the generator, as impl of key.

    Returns: what key(0, impl=impl).dtype is.

    Example:
        >>> weft.random.key_dtype("rbg") == weft.random.key(0, impl="rbg").dtype
        True
    """
    return generators().dtype_of(_implementation("key_dtype", impl_spec))


def key(seed: int, *, impl: str | None = None, dtype: Any = None) -> Array:
    """A key made from an integer.

    Args:
        dtype: None, the dtype of another key, or the name of a generator, as impl.

    Returns: array without dimensions, of dtype key.

    Raises:
        TypeError: the seed is no integer.
        ValueError: both impl and dtype are given.

    Example:
        >>> weft.random.key_data(weft.random.key(42))
        Array([ 0, 42], dtype=uint32)
    """
    name = _implementation("key", impl, dtype)
    seed = _seeded(seed)
    return _weft.random_key(seed, True) if name == _IMPLEMENTATION else generators().made(name, seed)


def PRNGKey(seed: int, *, impl: str | None = None) -> Array:
    """A key made from an integer, as words, in JAX's older form.

    Returns: array uint32[2]; of another generator, as many words as its keys have. Functions take such words as keys
    of the generator that is the default.

    Raises:
        TypeError: the seed is no integer.

    Example:
        >>> weft.random.PRNGKey(42)
        Array([ 0, 42], dtype=uint32)
    """
    name = _implementation("PRNGKey", impl)
    seed = _seeded(seed)
    return _weft.random_key(seed, False) if name == _IMPLEMENTATION else generators().made(name, seed)._words


def key_data(keys: NestedLike) -> Array:
    """The words of keys.

    Args:
        keys: array of keys, of dtype key, or of such words.

    Returns: array uint32[..., 2]; of another generator, as many words as its keys have.

    Raises:
        TypeError: they are no keys.

    Example:
        >>> weft.random.key_data(weft.random.key(42))
        Array([ 0, 42], dtype=uint32)
    """
    other = other_key(keys)
    return other._words if other is not None else _weft.random_unwrap(keys)


def key_impl(keys: NestedLike) -> str:
    """The name of the generator that keys are for.

    Args:
        keys: array of keys, of dtype key, or of words uint32[..., 2].

    Returns: "threefry2x32", "rbg" …

    Raises:
        TypeError: they are no keys.

    Example:
        >>> weft.random.key_impl(weft.random.key(42))
        'threefry2x32'
    """
    other = other_key(keys)
    if other is not None:
        return other._generator.name
    key_data(keys)  # raises for what is no key
    return _IMPLEMENTATION


def wrap_key_data(key_bits_array: NestedLike, *, impl: str | None = None, dtype: Any = None) -> Array:
    """Keys made from words.

    Args:
        key_bits_array: array uint32[..., 2]; of another generator, as many words as its keys have.
        dtype: None, the dtype of another key, or the name of a generator, as impl.

    Returns: array of dtype key without the last dimension.

    Raises:
        TypeError: they are no such words.
        ValueError: both impl and dtype are given.

    Example:
        >>> weft.random.wrap_key_data(wnp.array([0, 42], "uint32")).shape
        ()
    """
    name = _implementation("wrap_key_data", impl, dtype)
    return _weft.random_wrap(key_bits_array) if name == _IMPLEMENTATION else generators().wrap(name, key_bits_array)


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
    other = drawing(key)
    if other is not None:
        return _like(key, generators().split(other, _shape(num)))
    _uses.note("split", key)
    return _weft.random_split(key, _shape(num))


def fold_in(key: Array, data: NestedLike) -> Array:
    """A new key from a key and an integer.

    Args:
        data: integer of 32 bits, traced ones too; a Python integer is not negative.

    Returns: key.

    Raises:
        OverflowError: data is a Python integer that does not fit.

    Example:
        >>> weft.random.key_data(weft.random.fold_in(weft.random.key(0), 7))
        Array([2716826189,  292468403], dtype=uint32)
    """
    if isinstance(data, int):
        if not 0 <= data < 2**32:
            raise of_kind(OverflowError, f"random.fold_in: data must be between 0 and 2**32 - 1, got {data}")
        data = np.uint32(data)
    elif jax_semantics() and wnp.issubdtype(wnp.result_type(data), wnp.floating):
        data = wnp.asarray(data).astype("uint32")
    other = other_key(key)
    return _weft.random_fold_in(key, data) if other is None else _like(key, generators().fold_in(other, data))


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
    other = drawing(key)
    if other is not None:
        return generators().bits(other, 8 * kind.itemsize, _shape(shape))
    _uses.note("bits", key)
    return drawn_here(_weft.random_bits, key, 8 * kind.itemsize, _shape(shape))


def clone(key: Array) -> Array:
    """The same key, for programs that mark its reuse.

    Returns: key.

    Example:
        >>> weft.random.clone(weft.random.PRNGKey(3))
        Array([0, 3], dtype=uint32)
    """
    if other_key(key) is not None:
        return key
    same = wnp.asarray(key)
    if same is key and not _weft.is_traced(key):
        same = key.copy()
    # Where keys are followed, another one.
    return _uses.another(same)


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "impl": 'the generator: "threefry2x32" (None, the default), "rbg", "unsafe_rbg", "threefry4x32", "philox2x32" or '
    '"philox4x32".',
    "seed": "integer; 64 bits count.",
}

KEY_ERRORS = {
    "key": "TypeError: key is no key.",
    "impl": "ValueError: there is no such generator.",
    "mode": 'ValueError: mode is neither "low" nor "high".',
}
_docs.complete(globals(), _PARAMETERS, errors=KEY_ERRORS)
