"""The modified Bessel functions of the first kind, of orders 0 and 1: themselves, and times exp(-|x|)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from .. import _weft
from .._weft import Array
from ..custom import custom_jvp
from ..derivatives import jvp
from ._reductions import narrowed, widened


def modified_bessel(n: int, x: Array) -> Array:
    """I_n(x); n is 0 or 1."""
    wide = widened(x)
    far, large = _beyond_series(wide)
    # Not the scaled function times exp(|x|): the derivatives of both are not small near 0, where that of I0 is.
    grown = _grown(n, 0)(large)
    return narrowed(_weft.where(far, _odd(n, wide, grown), _near(n, wide, far)), x.dtype)


def scaled_modified_bessel(n: int, x: Array) -> Array:
    """exp(-|x|) I_n(x); n is 0 or 1."""
    wide = widened(x)
    far, large = _beyond_series(wide)
    size = _weft.bind_elementwise("max", (wide, -wide), {})  # with the derivative 0 at 0
    scale = _weft.bind_elementwise("exp", (-_weft.where(far, 1, size),), {})
    # Each part has its own derivative: by the functions' recurrences it is a difference of what is nearly equal.
    return narrowed(
        _weft.where(far, _odd(n, wide, _asymptotic(n, large)), _near(n, wide, far) * scale),
        x.dtype,
    )


def _beyond_series(x: Array) -> tuple[Array, Array]:
    """Where the power series gives way to the asymptotic one; and |x| there, elsewhere the end itself."""
    end = 10 if x.dtype == "float32" else 30
    far = (x > end) | (x < -end)
    # By selection: a maximum's derivative is a product with 0 for one operand, which infinite slopes do not survive.
    return far, _weft.where(far, _weft.where(x < 0, -x, x), end)


def _odd(n: int, x: Array, y: Array) -> Array:
    """y, a function of |x|, as one of x that is odd if n is."""
    return _weft.where(x < 0, -y, y) if n else y


def _near(n: int, x: Array, far: Array) -> Array:
    """I_n(x) by the power series, where x is not far: Abramowitz & Stegun 9.6.10."""
    near = _weft.where(far, 1, x)
    # From the last term on: the terms themselves would be subnormal numbers, which take a hundred times as long.
    q: Array = near * near / 4
    total: Any = 1.0
    for k in reversed(range(1, 26 if x.dtype == "float32" else 80)):
        total = 1 + total * (q * (1 / (k * (k + n))))
    return near / 2 * total if n else total


def _asymptotic(n: int, x: Array) -> Array:
    """exp(-x) I_n(x) for large x: Abramowitz & Stegun 9.7.1."""
    inverse = 1 / x
    series: Any = 1.0
    for k in reversed(range(1, 12 if x.dtype == "float32" else 17)):
        series = 1 + series * (inverse * (((2 * k - 1) ** 2 - 4 * n * n) / (8 * k)))
    return series / (math.sqrt(2 * math.pi) * _weft.bind_elementwise("sqrt", (x,), {}))


def _factor(n: int, order: int, x: Array) -> Array:
    """The derivative of I_n(x) of that order, times exp(-x), for large x."""
    if order == 0:
        return _asymptotic(n, x)
    y, slope = jvp(lambda v: _factor(n, order - 1, v), (x,), (_weft.full(x.shape, 1, x.dtype),))
    return y + slope


@functools.cache
def _grown(n: int, order: int) -> Callable[[Array], Array]:
    """The derivative of I_n of that order, for large x. Its own is the next one: that of the product has infinities of
    both signs where the exponential is more than the largest number."""

    @functools.partial(custom_jvp, elementwise=True)
    def value(x):
        # Twice the root of exp(x), which is not finite from smaller x on than the product. Where it is not, nor is the
        # product, and the factor may be that of any x: at inf it is 0.
        root = _weft.bind_elementwise("exp", (x / 2,), {})
        return (
            _factor(n, order, _weft.bind_elementwise("min", (x, _weft.full(x.shape, 2000, x.dtype)), {})) * root * root
        )

    @value.defjvp
    def rule(primals, tangents):
        return value(*primals), tangents[0] * _grown(n, order + 1)(*primals)

    return value
