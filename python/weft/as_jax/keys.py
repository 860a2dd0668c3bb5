"""Random keys as jax._src.prng makes them: arrays of seeds become arrays of keys. There is one kind of keys."""

from __future__ import annotations

from typing import Any

import weft
import weft.numpy as wnp

from .._core.errors import not_implemented

threefry_prng_impl = "threefry2x32"


def _check(impl: Any) -> None:
    if impl not in (None, threefry_prng_impl):
        raise not_implemented(f"random keys are of the kind 'threefry2x32', got {impl!r}")


def random_seed(seeds: Any, impl: Any = None) -> Any:
    """A key of each seed."""
    _check(impl)
    given = wnp.asarray(seeds)
    key: Any = weft.random.key
    return weft.vmap(key)(given.reshape(-1)).reshape(given.shape)


def random_wrap(base_arr: Any, *, impl: Any = None) -> Any:
    """Keys of their words, which the last dimension has."""
    _check(impl)
    return weft.random.wrap_key_data(base_arr)


def random_unwrap(keys: Any) -> Any:
    """The words of keys."""
    return weft.random.key_data(keys)


def threefry_random_bits(key: Any, bit_width: int, shape: Any) -> Any:
    """Random bits of a key's words."""
    return weft.random.bits(random_wrap(key), tuple(shape), f"uint{bit_width}")
