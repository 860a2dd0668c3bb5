"""Bits of keys of Threefry-2x32 as JAX made them before version 0.5: the words of a draw are counted together, and
hashed in pairs, each of one from either half of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _weft
from .. import numpy as wnp
from .._core.errors import value_error


def _hashed(key: Any, count: int) -> Any:
    """So many words. Where they are odd, a zero is hashed besides."""
    if count >= 2**32:
        raise value_error(f"random: {count} words from one key, with threefry_partitionable off; expected below 2**32")
    half = (count + 1) // 2
    first = _weft.iota((half,), 0, "uint32")
    second = first + np.uint32(half)
    if count % 2:
        second = wnp.where(second < np.uint32(count), second, np.uint32(0))
    words = [wnp.broadcast_to(key[i], (half,)) for i in range(2)]
    return wnp.concatenate(_weft.bind("threefry2x32", [*words, first, second], {}))[:count]


def split(key: Any, shape: tuple[int, ...]) -> Any:
    """[2], shape -> [*shape, 2]."""
    return _hashed(key, 2 * math.prod(shape)).reshape(*shape, 2)


def bits(key: Any, width: int, shape: tuple[int, ...]) -> Any:
    """[2], their width, shape -> [*shape]: narrow ones are parts of words, lower bits first."""
    count = math.prod(shape)
    words = _hashed(key, -(-width * count // 32))
    if width == 64:
        high, low = words[:count].astype("uint64"), words[count:].astype("uint64")
        words = high << np.uint64(32) | low
    elif width < 32:
        shifts = _weft.iota((32 // width,), 0, "uint32") * np.uint32(width)
        words = (words[:, None] >> shifts).reshape(-1)[:count].astype(f"uint{width}")
    return words.reshape(shape)
