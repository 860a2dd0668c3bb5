"""Random keys as jax._src.prng makes them: arrays of seeds become arrays of keys. `impl` names a kind of keys."""

from __future__ import annotations

from typing import Any

import weft
import weft.numpy as wnp

threefry_prng_impl = "threefry2x32"


def random_seed(seeds: Any, impl: Any = None) -> Any:
    """A key of each seed."""
    given = wnp.asarray(seeds)
    return weft.vmap(lambda seed: weft.random.key(seed, impl=impl))(given.reshape(-1)).reshape(given.shape)


def random_wrap(base_arr: Any, *, impl: Any = None) -> Any:
    """Keys of their words, which the last dimension has."""
    return weft.random.wrap_key_data(base_arr, impl=impl)


def random_unwrap(keys: Any) -> Any:
    """The words of keys."""
    return weft.random.key_data(keys)


def threefry_random_bits(key: Any, bit_width: int, shape: Any) -> Any:
    """Random bits of a key's words."""
    return weft.random.bits(random_wrap(key), tuple(shape), f"uint{bit_width}")
