"""Hashes of counters as primitives, as private modules of jax.random have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft.numpy as wnp

from .. import _weft
from ..lax import _random_bits


class Hash:
    """A hash of counters, as a primitive: bind(words of the key, words of the counter) gives words."""

    def __init__(self, name: str, key: int, hashed: Callable[..., Any]):
        self.name, self._key, self._hashed = name, key, hashed

    def bind(self, *words: Any) -> list[Any]:
        arrays = [wnp.asarray(word) for word in words]
        key: Any = arrays[: self._key]
        return list(self._hashed(key if self._key > 1 else key[0], arrays[self._key :]))


def _threefry2x32(key: Any, counter: Any) -> Any:
    return _weft.bind("threefry2x32", [*(wnp.broadcast_to(k, counter[0].shape) for k in key), *counter], {})


threefry2x32_p = Hash("threefry2x32", 2, _threefry2x32)
threefry4x32_p = Hash("threefry4x32", 4, _random_bits.threefry4x32)
philox2x32_p = Hash("philox2x32", 1, _random_bits.philox2x32)
philox4x32_p = Hash("philox4x32", 2, _random_bits.philox4x32)


def threefry_2x32(keypair: Any, count: Any) -> Any:
    """The hash of an even number of words, whose halves are counted together."""
    count = wnp.asarray(count)
    flat = count.reshape(-1)
    odd = flat.size % 2
    flat = wnp.concatenate([flat, wnp.zeros(odd, "uint32")]) if odd else flat
    half = flat.size // 2
    words = wnp.concatenate(threefry2x32_p.bind(*keypair, flat[:half], flat[half:]))
    return words[: words.size - odd].reshape(count.shape)
