"""Bits from a state, by the counters of Philox and Threefry: what jax.lax names of XLA's generators."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._weft import Array
from ..arguments import sizes
from ..typing import DTypeLike, NestedLike, Shape
from ._programs import mulhi

__all__ = ["RandomAlgorithm", "rng_bit_generator"]

_SOURCE = 'Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011'


class RandomAlgorithm(enum.IntEnum):
    """How rng_bit_generator makes bits: by Threefry-2x32, or by Philox-4x32, which is RNG_DEFAULT too.

    Example:
        >>> state = wnp.arange(4, dtype="uint32")
        >>> weft.lax.rng_bit_generator(state, (2,), algorithm=weft.lax.RandomAlgorithm.RNG_THREE_FRY)[1].shape
        (2,)
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


def _word(value: int) -> np.uint32:
    return np.uint32(value)


def philox4x32(key: Sequence[Any], counter: Sequence[Any]) -> list[Any]:
    """The four words that 10 rounds make of a key of two and a counter of four."""
    k0, k1 = key
    x0, x1, x2, x3 = counter
    first, second = _word(0xD2511F53), _word(0xCD9E8D57)
    for i in range(10):
        if i:
            k0, k1 = k0 + _word(0x9E3779B9), k1 + _word(0xBB67AE85)
        x0, x1, x2, x3 = (
            mulhi(x2, wnp.full_like(x2, second)) ^ x1 ^ k0,
            x2 * second,
            mulhi(x0, wnp.full_like(x0, first)) ^ x3 ^ k1,
            x0 * first,
        )
    return [x0, x1, x2, x3]


def philox2x32(key: Any, counter: Sequence[Any]) -> list[Any]:
    """The two words that 10 rounds make of a key of one and a counter of two."""
    x0, x1 = counter
    factor = _word(0xD256D193)
    for i in range(10):
        key = key + _word(0x9E3779B9) if i else key
        x0, x1 = mulhi(x0, wnp.full_like(x0, factor)) ^ x1 ^ key, x0 * factor
    return [x0, x1]


# By how much words are rotated, in the rounds of Threefry-4x32 one after the other.
_ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))


def _rotated(x: Any, by: int) -> Any:
    return (x << _word(by)) | (x >> _word(32 - by))


def threefry4x32(key: Sequence[Any], counter: Sequence[Any]) -> list[Any]:
    """The four words that 20 rounds make of a key and a counter of four."""
    ks = [*key, key[0] ^ key[1] ^ key[2] ^ key[3] ^ _word(0x1BD11BDA)]
    x = [c + k for c, k in zip(counter, ks, strict=False)]
    for i in range(20):
        a, b = _ROTATIONS[i % 8]
        for into, other, by in ((0, 1, a), (2, 3, b)) if i % 2 == 0 else ((0, 3, a), (2, 1, b)):
            x[into] = x[into] + x[other]
            x[other] = _rotated(x[other], by) ^ x[into]
        if i % 4 == 3:
            n = i // 4 + 1
            x = [word + ks[(n + j) % 5] for j, word in enumerate(x)]
            x[3] = x[3] + _word(n)
    return x


def _threefry2x32(key: Sequence[Any], counter: Sequence[Any]) -> list[Any]:
    return list(_weft.bind("threefry2x32", [*(wnp.broadcast_to(k, counter[0].shape) for k in key), *counter], {}))


def _counters(state: Sequence[Any], count: int) -> tuple[Any, Any]:
    """(low, high) words of `count` numbers from the one of a state on."""
    if count < 2**32:
        index = _weft.iota((count,), 0, "uint32")
        beyond: Any = _word(0)
    else:  # in two words: rows of 2**16
        rows = _weft.iota((-(-count // 2**16), 1), 0, "uint32")
        columns = _weft.iota((1, 2**16), 1, "uint32")
        index = ((rows << _word(16)) | columns).reshape(-1)[:count]
        beyond = wnp.broadcast_to(rows >> _word(16), (rows.shape[0], 2**16)).reshape(-1)[:count]
    low, high = state[0] + index, state[1] + beyond
    return low, wnp.where(low < index, high + _word(1), high)


def rng_bit_generator(
    key: NestedLike,
    shape: Shape,
    dtype: DTypeLike = "uint32",
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
) -> tuple[Array, Array]:
    """Bits from a state, and the state that follows. weft.random has keys that are split instead.

    Args:
        key: the state, uint32[4] (or uint64[2]): a key, and the number of the first block.
        shape: of the bits.
        dtype: of the bits: uint8, uint16, uint32 or uint64.
        algorithm: Philox-4x32 (the default) or Threefry-2x32.

    Returns: (new state, array of bits of that shape).

    Raises:
        TypeError: key is no such state, or dtype is not unsigned.
        ValueError: there is no such algorithm.

    Example:
        >>> weft.lax.rng_bit_generator(wnp.arange(4, dtype="uint32"), (2,))[1]
        Array([ 895509795, 3230209149], dtype=uint32)
    """
    state = wnp.asarray(key)
    wide = str(state.dtype) == "uint64"
    if (str(state.dtype), state.shape) not in (("uint32", (4,)), ("uint64", (2,))):
        raise type_error(f"rng_bit_generator: key must be uint32[4] or uint64[2], got {state.dtype}{list(state.shape)}")
    kind = _weft.dtype(dtype)
    if _weft.dtype_kind(kind) != "unsigned" or wnp.iinfo(kind).bits < 8:
        raise type_error(f"rng_bit_generator: dtype must be uint8, uint16, uint32 or uint64, got {kind}")
    bits, size = wnp.iinfo(kind).bits, math.prod(shape := sizes(shape, "rng_bit_generator"))
    words = state.view("uint32") if wide else state
    k, at = (words[0], words[1]), (words[2], words[3])
    needed = size * (2 if bits == 64 else 1)
    try:
        algorithm = RandomAlgorithm(algorithm)
    except ValueError:
        raise value_error(f"rng_bit_generator: algorithm must be a RandomAlgorithm, got {algorithm!r}") from None
    if algorithm is RandomAlgorithm.RNG_THREE_FRY:
        # A counter's two words lie next to each other along the first even dimension, else along the longest.
        whole = [*shape, 2] if bits == 64 else list(shape) or [1]
        axis = next((d for d, n in enumerate(whole) if n % 2 == 0), whole.index(max(whole)))
        if bits == 64:
            axis = len(shape)
        half = [*whole[:axis], -(-whole[axis] // 2), *whole[axis + 1 :]]
        count = math.prod(half)
        pair = [word.reshape(half) for word in _threefry2x32(k, _counters(at, count))]
        both = wnp.stack(pair, axis=axis + 1).reshape(*half[:axis], 2 * half[axis], *half[axis + 1 :])
        flat = both[(*[slice(None)] * axis, slice(0, whole[axis]))].reshape(needed)
    else:
        count = -(-needed // 4)
        low, high = _counters(at, count)
        # The key again is the upper half of the counter, into which the lower one runs over.
        over = (high == 0) & (at[1] != 0)
        upper = k[0] + over.astype("uint32"), wnp.where(over & (k[0] == _word(2**32 - 1)), k[1] + _word(1), k[1])
        drawn = wnp.stack(philox4x32(k, (low, high, *upper)), axis=1)
        flat = drawn.reshape(4 * count)[:needed]
    if bits == 64:
        flat = flat.view("uint64")
    step, blocks = at[0] + _word(count % 2**32), at[1] + _word(count // 2**32)
    new = wnp.stack([*k, step, wnp.where(step < at[0], blocks + _word(1), blocks)])
    return (new.view("uint64") if wide else new), flat.reshape(shape).astype(kind)


_docs.complete(globals(), {})
