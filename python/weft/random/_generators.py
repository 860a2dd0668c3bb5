"""Other generators than Threefry-2x32, and arrays of their keys."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .. import _weft
from .. import numpy as wnp
from .._core import options
from .._core import tree as _tree
from .._core.errors import type_error, value_error
from .._core.shapes import FLOAT0
from ..custom_batching import custom_vmap
from ..lax import _random_bits as _hashes
from . import _halved


class Generator(NamedTuple):
    """How numbers are made of keys of one kind, which have `words` words of 32 bits."""

    name: str
    tag: str  # in the name of the dtype of its keys
    words: int
    seed: Callable[[Any], Any]  # [2], the upper and lower half of a seed -> [words]
    split: Callable[[Any, tuple[int, ...]], Any]  # [words], shape -> [*shape, words]
    fold_in: Callable[[Any, Any], Any]  # [words], a word -> [words]
    bits: Callable[[Any, int, tuple[int, ...]], Any]  # [words], their width, shape -> [*shape]


def _unsigned(width: int) -> str:
    return f"uint{width}"


# Each half of a key is one of Threefry-2x32; bits are those of Philox.


def _halves(key: Any) -> list[Any]:
    return [key[:2], key[2:]]


def _rbg_seed(words: Any) -> Any:
    return wnp.concatenate([words, words])


def _rbg_split(key: Any, shape: tuple[int, ...]) -> Any:
    today = options.threefry_partitionable.value
    split: Any = _weft.random_split if today else _halved.split
    return wnp.concatenate([split(half, shape) for half in _halves(key)], axis=-1)


def _rbg_fold_in(key: Any, data: Any) -> Any:
    return wnp.concatenate([_weft.random_fold_in(half, data) for half in _halves(key)])


def _stream(key: Any, shape: tuple[int, ...], dtype: str = "uint32") -> Any:
    """Bits that follow a state. Where JAX's meaning is asked for, those of mapped states follow the first of them, as
    JAX has it: programs that draw in vmap get its numbers."""
    if not (_weft.is_tracing() and _tree.jax_semantics()):
        return _hashes.rng_bit_generator(key, shape, dtype)[1]
    draw = custom_vmap(lambda state: _hashes.rng_bit_generator(state, shape, dtype)[1])

    @draw.def_vmap
    def of_the_first(axis_size: int, in_batched: Any, states: Any) -> Any:
        del in_batched
        return _stream(states[0], (axis_size, *shape), dtype), True

    return draw(key)


def _rbg_bits(key: Any, width: int, shape: tuple[int, ...]) -> Any:
    return _stream(key, shape, _unsigned(width))


def _unsafe_split(key: Any, shape: tuple[int, ...]) -> Any:
    count = math.prod(shape)
    return _stream(key, (10 * count, 4))[::10].reshape(*shape, 4)


def _unsafe_fold_in(key: Any, data: Any) -> Any:
    words = wnp.stack([wnp.zeros((), "uint32"), data])
    return key ^ _stream(_rbg_seed(words), (10, 4))[-1]


# The others hash a counter by their key.


def _of_hash(
    name: str, tag: str, words: int, width: int, hashed: Callable[..., list[Any]], seed: Callable[[Any], list[Any]]
) -> Generator:
    """Of a hash of counters of `width` words: splits count in the last words of a counter, bits in the first."""

    def counters(shape: tuple[int, ...]) -> list[Any]:
        count = math.prod(shape)
        if count >= 2**32:
            raise value_error(f"random: {count} numbers from one key; expected less than 2**32")
        low = _weft.iota((count,), 0, "uint32").reshape(shape)
        return [wnp.zeros_like(low), low]

    def of(key: Any, counter: list[Any]) -> list[Any]:
        return hashed(key[0] if words == 1 else [key[i] for i in range(words)], counter)

    def split(key: Any, shape: tuple[int, ...]) -> Any:
        counter = counters(shape)
        none = [wnp.zeros_like(counter[0])] * (width - 2)
        return wnp.stack(of(key, [*none, *counter])[:words], axis=-1)

    def fold_in(key: Any, data: Any) -> Any:
        counter = [*[wnp.zeros((), "uint32")] * (width - 1), data]
        return wnp.stack(of(key, counter)[:words])

    def bits(key: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
        counter = counters(shape)
        out = of(key, [*counter, *[wnp.zeros_like(counter[0])] * (width - 2)])
        if bit_width == 64:
            high, low = (out[0] ^ out[2], out[1] ^ out[3]) if words == 4 else (out[0], out[1])
            return (high.astype("uint64") << np.uint64(32)) | low.astype("uint64")
        mixed = out[0]
        for word in out[1:]:
            mixed = mixed ^ word
        return mixed.astype(_unsigned(bit_width))

    return Generator(name, tag, words, lambda halves: wnp.stack(seed(halves)[:words]), split, fold_in, bits)


def _zeros(count: int) -> list[Any]:
    return [wnp.zeros((), "uint32")] * count


GENERATORS = {
    made.name: made
    for made in (
        Generator("rbg", "rbg", 4, _rbg_seed, _rbg_split, _rbg_fold_in, _rbg_bits),
        Generator("unsafe_rbg", "urbg", 4, _rbg_seed, _unsafe_split, _unsafe_fold_in, _rbg_bits),
        _of_hash(
            "threefry4x32",
            "fry4",
            4,
            4,
            _hashes.threefry4x32,
            lambda halves: _hashes.threefry4x32([halves[0], halves[1], *_zeros(2)], _zeros(4)),
        ),
        _of_hash(
            "philox2x32",
            "phx2",
            1,
            2,
            _hashes.philox2x32,
            lambda halves: _hashes.philox2x32(_zeros(1)[0], [halves[0], halves[1]]),
        ),
        _of_hash(
            "philox4x32",
            "phx4",
            2,
            4,
            _hashes.philox4x32,
            lambda halves: _hashes.philox4x32(_zeros(2), [halves[0], halves[1], *_zeros(2)]),
        ),
    )
}


# Keys of which are arrays of the IR's own dtype, and whose functions are C++.
THREEFRY = Generator(
    "threefry2x32",
    "fry",
    2,
    lambda halves: halves,
    _weft.random_split,
    _weft.random_fold_in,
    lambda key, width, shape: _weft.random_bits(key, width, shape),
)

# The same keys, whose bits are those of JAX before version 0.5.
_HALVED = THREEFRY._replace(split=_halved.split, bits=_halved.bits)


def of_halves(words: Any) -> KeyArray:
    """A key of Threefry-2x32 that counts in halves."""
    return KeyArray(_HALVED, words)


class KeyDtype:
    """The dtype of keys of a generator: "key<tag>". It is equal to its text, but, as in JAX, no text itself: libraries
    take texts for NumPy's dtypes."""

    __slots__ = ("generator", "name")
    type: Any  # under weft.as_jax

    def __init__(self, generator: Generator):
        self.generator, self.name = generator, f"key<{generator.tag}>"

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, KeyDtype) else self.name == other

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def itemsize(self) -> int:
        """The bytes of a key."""
        return 4 * self.generator.words

    def __reduce__(self) -> Any:
        return _dtype_of, (self.generator.name,)


@functools.cache
def _dtype_of(name: str) -> KeyDtype:
    return KeyDtype(GENERATORS.get(name, THREEFRY))


def dtype_of(name: str) -> Any:
    """The dtype of the keys of a generator, by its name."""
    return _dtype_of(name) if name in GENERATORS else _weft.dtype("key")


def threefry_dtype() -> KeyDtype:
    """A dtype of keys of Threefry-2x32 that knows its name and size, as the others do; one object."""
    return _dtype_of(THREEFRY.name)


def _with_words(index: Any) -> tuple[Any, ...]:
    """An index of keys as one of their words."""
    places = index if isinstance(index, tuple) else (index,)
    whole = any(place is Ellipsis for place in places)
    return (*places, *([] if whole else [Ellipsis]), slice(None))


class _Places:
    """keys.at, and keys.at[index]."""

    def __init__(self, keys: KeyArray, index: Any = None):
        self._keys, self._index = keys, index

    def __getitem__(self, index: Any) -> _Places:
        return _Places(self._keys, _with_words(index))

    def get(self, **how: Any) -> KeyArray:
        """The keys there."""
        return self._keys._made(self._keys._words.at[self._index].get(**how))

    def set(self, keys: KeyArray, **how: Any) -> KeyArray:
        """All keys, with others there."""
        if not isinstance(keys, KeyArray) or keys._generator is not self._keys._generator:
            raise type_error(f"at[...].set: keys of {self._keys._generator.name} are needed, got {keys!r}")
        return self._keys._made(self._keys._words.at[self._index].set(keys._words, **how))


class KeyArray:
    """An array of keys of another generator than Threefry-2x32, which weft.random.key(impl=...) makes. It may be an
    argument and result of every transform, is indexed as arrays are, and is given to the functions of weft.random.

    Args:
        generator: the generator.
        words: array uint32[..., words].
    """

    def __init__(self, generator: Generator, words: Any):
        self._generator, self._words = generator, words

    @property
    def dtype(self) -> KeyDtype:
        return _dtype_of(self._generator.name)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._words.shape[:-1]

    @property
    def ndim(self) -> int:
        return self._words.ndim - 1

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all keys."""
        return self.size * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """The bytes of a key."""
        return self.dtype.itemsize

    @property
    def T(self) -> KeyArray:
        return self._made(self._words.transpose([*range(self.ndim)[::-1], self.ndim]))

    def _made(self, words: Any) -> KeyArray:
        return KeyArray(self._generator, words)

    def reshape(self, *shape: Any) -> KeyArray:
        """The keys in another shape."""
        sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return self._made(self._words.reshape(*sizes, self._generator.words))

    def ravel(self) -> KeyArray:
        """The keys in one dimension."""
        return self.reshape(self.size)

    flatten = ravel

    def copy(self) -> KeyArray:
        """The same keys."""
        return self._made(self._words.copy())

    def block_until_ready(self) -> KeyArray:
        """The keys, once they are there."""
        self._words.block_until_ready()
        return self

    def __getitem__(self, index: Any) -> KeyArray:
        return self._made(self._words[_with_words(index)])

    @property
    def at(self) -> _Places:
        """keys.at[index].get() and .set(other keys), with the modes that arrays have."""
        return _Places(self)

    def __len__(self) -> int:
        if not self.shape:
            raise type_error("len() of a single key")
        return self.shape[0]

    def __iter__(self) -> Iterator[KeyArray]:
        if not self.shape:
            raise type_error("iteration over a single key")
        return (self[i] for i in range(self.shape[0]))

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, KeyArray) or other._generator is not self._generator:
            return NotImplemented
        a, b = self._words, other._words
        if not (self.ndim and other.ndim):  # one key beside several, whatever numpy_rank_promotion says
            a, b = wnp.broadcast_arrays(a, b)
        return (a == b).all(-1)

    def __ne__(self, other: Any) -> Any:
        same = self.__eq__(other)
        return same if same is NotImplemented else ~same

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise type_error("numpy.asarray(): random keys are no numbers; weft.random.key_data gives the words of a key")

    def __repr__(self) -> str:
        return f"Array({tuple(self.shape)}, dtype={self.dtype}) overlaying:\n{self._words}"

    def __reduce__(self) -> Any:
        return wrap, (self._generator.name, self._words)


def _remade(name: str, parts: Any) -> Any:
    """Keys of their words; of derivatives with respect to words, which are zeros of no number, those of keys."""
    if isinstance(words := parts[0], np.ndarray) and words.dtype == FLOAT0:
        return np.zeros(words.shape[:-1], FLOAT0)
    return KeyArray(GENERATORS[name], words)


_tree.register(KeyArray, lambda keys: ((keys._words,), keys._generator.name), _remade)


def wrap(name: str, words: Any) -> KeyArray:
    """Keys of words."""
    words, generator = wnp.asarray(words), GENERATORS[name]
    if str(words.dtype) != "uint32" or words.shape[-1:] != (generator.words,):
        raise type_error(
            f"random: keys of {name} are words uint32[..., {generator.words}], got {words.dtype}{list(words.shape)}"
        )
    return KeyArray(generator, words)


def _single(key: KeyArray, name: str) -> Any:
    if key.shape:
        raise type_error(f"random.{name}: a single key is needed, got {key.dtype}{list(key.shape)}; vmap over keys")
    return key._words


def made(name: str, seed: Any) -> KeyArray:
    """A key of a seed."""
    return KeyArray(GENERATORS[name], GENERATORS[name].seed(_weft.random_key(seed, False)))


def split(key: KeyArray, shape: tuple[int, ...]) -> KeyArray:
    """New keys of a key."""
    return key._made(key._generator.split(_single(key, "split"), shape))


def fold_in(key: KeyArray, data: Any) -> KeyArray:
    """A new key of a key and a number of 32 bits."""
    return key._made(key._generator.fold_in(_single(key, "fold_in"), wnp.asarray(data).astype("uint32")))


def bits(key: KeyArray, width: int, shape: tuple[int, ...]) -> Any:
    """Bits of a key."""
    return key._generator.bits(_single(key, "bits"), width, shape)


def uniform01(key: KeyArray, shape: tuple[int, ...], dtype: Any) -> Any:
    """Numbers in [0, 1): the upper bits of integers as the mantissas of numbers in [1, 2), less 1."""
    kind = _weft.dtype(dtype)
    width = 8 * np.dtype(kind).itemsize
    mantissa = {"bfloat16": 7}.get(str(kind)) or np.finfo(kind).nmant
    drawn = 8 if mantissa < 8 else width  # of bfloat16 a byte is drawn for each
    raw = bits(key, drawn, shape) >> np.dtype(_unsigned(drawn)).type(drawn - mantissa)
    one = wnp.ones((), kind).view(_unsigned(width))
    return (raw.astype(_unsigned(width)) | one).view(kind) - wnp.ones((), kind)
