"""Numbers that no key determines: of a generator that the process has."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._core.shapes import ShapeDtype
from .._weft import Array
from ..arguments import sizes
from ..callbacks import io_callback
from ..typing import ArrayLike, Shape
from ._elementwise import bitcast_convert_type
from ._programs import array_or_number, mulhi

__all__ = ["rng_uniform"]

_draws = itertools.count(1)


def _next_key(*_: Any) -> tuple[int, int]:
    """The words of a key that no call before had, and an even one: the next one is this call's, too. The processes of a
    program count alike."""
    drawn = 2 * next(_draws)
    return drawn >> 32, drawn & 0xFFFFFFFF


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Shape) -> Array:
    """Uniformly distributed numbers of a generator that the process has: each call gives others, also of a compiled
    program, each iteration of a loop, and each batch element of a vmap that maps a or b. weft.random has keys, by which
    numbers can be drawn again.

    A program asks the host for the number of the call each time it runs, and so runs in the process that made it; what
    a process draws in the same order is the same in each run.

    Args:
        a: number, the least.
        b: number of the dtype of a: all are less.
        shape: of the result.

    Returns: array of that shape and dtype; not defined where b <= a. Its derivatives by a and b are those of
        a + u (b - a), for the u that was drawn.

    Raises:
        ValueError: a and b differ in dtype, or are no numbers but arrays with dimensions.
        TypeError: they are of another dtype than integers, and floats of 16 bits and more, or no numbers at all.

    Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.

    Example:
        >>> weft.lax.rng_uniform(2.0, 3.0, (4,)).shape
        (4,)
    """
    low, high = array_or_number(a, "rng_uniform: a"), array_or_number(b, "rng_uniform: b")
    if low.dtype != high.dtype:
        raise value_error(f"rng_uniform: a and b must have one dtype, got {low.dtype} and {high.dtype}")
    if low.shape != () or high.shape != ():
        raise value_error(f"rng_uniform: a and b must be numbers, got arrays of shapes {low.shape} and {high.shape}")
    dtype, shape = low.dtype, sizes(shape, "rng_uniform")
    is_float = wnp.issubdtype(dtype, wnp.floating) and wnp.finfo(dtype).bits >= 16
    if not is_float and not wnp.issubdtype(dtype, wnp.integer):
        raise type_error(
            f"rng_uniform: a and b must be integers, or floats of 16 bits or more, got {dtype}; weft.random draws "
            "from keys"
        )
    # What the host is asked with says for which batch elements: each gets keys of its own.
    word = ShapeDtype((), "uint32")
    first, second = io_callback(_next_key, (word, word), *(_without_slope(x) for x in (low, high)))
    keys = [_weft.stack([first, second + _weft.full((), k, "uint32")], 0) for k in range(2)]
    out = _floats(low, high, shape, keys[0]) if is_float else _integers(low, high, shape, keys)
    return _weft.weak(out) if low.weak_type and high.weak_type else out


def _without_slope(x: Array) -> Array:
    return _weft.bind_elementwise("stop_gradient", (x,), {})


def _floats(low: Array, high: Array, shape: tuple[int, ...], key: Array) -> Array:
    dtype = low.dtype
    digits = wnp.finfo(dtype).nmant + 1
    width = max(32, wnp.finfo(dtype).bits)
    bits = _weft.random_bits(key, width, shape)
    unit = (bits >> (width - digits)).astype(dtype) * 2.0**-digits
    # A sum of parts, as b - a may be beyond the dtype.
    drawn = low * (1 - unit) + high * unit
    below = _weft.bind_elementwise("nextafter", (_without_slope(high), _without_slope(low)), {})
    # Not `>= high`: chains of 16 bits keep the digits of 32, and what is less may be rounded up to it.
    return wnp.where(drawn < low, low, wnp.where(drawn > below, below, drawn))


def _integers(low: Array, high: Array, shape: tuple[int, ...], keys: Sequence[Array]) -> Array:
    """Source: Lemire, "Fast random integer generation in an interval", 2019, with twice the bits in place of another
    draw."""
    dtype = low.dtype
    width = wnp.iinfo(dtype).bits
    more, less = (_weft.random_bits(key, max(32, width), shape) for key in keys)
    word = str(more.dtype)
    if width < 32:
        low, high = low.astype("int32"), high.astype("int32")
    start, end = (bitcast_convert_type(x, word) for x in (low, high))
    span = wnp.broadcast_to(end - start, shape)
    upper = mulhi(less, span)
    carry = more * span + upper < upper
    drawn = start + mulhi(more, span) + carry.astype(word)
    return bitcast_convert_type(drawn, str(low.dtype)).astype(dtype)


_docs.complete(globals(), {})
