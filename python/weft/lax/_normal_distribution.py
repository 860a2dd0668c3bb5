"""The normal distribution. Far from 0 rounding x^2, or x / sqrt(2), costs as many digits as the result changes by: what
is rounded there is made up for."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from .. import numpy as wnp
from .._weft import Array
from ..custom import custom_jvp
from ..numpy._reductions import narrowed, widened
from ._elementwise import reduce_precision
from ._primitives import erfc

__all__: list[str] = []


def normal_distribution(x: Array) -> Array:
    """The integral of the density up to x."""
    return narrowed(_distribution()(widened(x)), x.dtype)


def _high_part(x: Array) -> Array:
    """x in half of its digits, so that its square is exact."""
    return reduce_precision(x, 8, 11) if x.dtype == "float32" else reduce_precision(x, 11, 25)


@functools.cache
def _distribution() -> Callable[[Array], Array]:
    @custom_jvp
    def value(x):
        near = wnp.abs(x) < 64  # beyond are 0 and 1
        z = wnp.where(near, x, 0) / -math.sqrt(2)
        # erfc(z) decreases as exp(-z^2); (x^2 - 2 z^2) / 2 is by how much the exponent is off.
        left = wnp.where(near & (x < 0), x, 0)
        root = wnp.where(near & (x < 0), z, 0)
        x_high, z_high = _high_part(left), _high_part(root)
        x_low, z_low = left - x_high, root - z_high
        off = (x_high * x_high - 2 * (z_high * z_high)) / 2
        off = off + (x_low * (x_high + x_low / 2) - 2 * (z_low * (z_high + z_low / 2)))
        return wnp.where(near, 0.5 * erfc(z) * (1 - off), wnp.where(x > 0, 1, wnp.where(x < 0, 0, x)))

    @value.defjvp
    def rule(primals, tangents):
        return value(*primals), tangents[0] * _density()(*primals)

    return value


@functools.cache
def _density() -> Callable[[Array], Array]:
    @custom_jvp
    def value(x):
        near = wnp.clip(x, -64, 64)
        high = _high_part(near)
        exponents = -0.5 * (high * high), -0.5 * ((near - high) * (near + high))
        return wnp.exp(exponents[0]) * wnp.exp(exponents[1]) / math.sqrt(2 * math.pi)

    @value.defjvp
    def rule(primals, tangents):
        (x,) = primals
        y = value(x)
        return y, tangents[0] * (-wnp.clip(x, -64, 64) * y)

    return value
