"""Operations on complex numbers that StableHLO has and Weft's primitives do not take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import lax

__all__ = ["COMPLEX"]


def _number(x: complex, like: Any) -> Any:
    return lax.full(like.shape, x, like.dtype)


def _sign(x: Any) -> Any:
    size = lax.abs(x)
    nothing = lax.eq(size, lax.full(size.shape, 0, size.dtype))
    whole = lax.complex(size, lax.full(size.shape, 0, size.dtype))
    return lax.select(nothing, x, lax.div(x, lax.select(nothing, _number(1, whole), whole)))


def _cbrt(x: Any) -> Any:
    return lax.pow(x, _number(1 / 3, x))


def _atan2(y: Any, x: Any) -> Any:
    """-i log((x + i y) / sqrt(x^2 + y^2))."""
    i = _number(1j, x)
    length = lax.sqrt(lax.add(lax.mul(x, x), lax.mul(y, y)))
    return lax.mul(_number(-1j, x), lax.log(lax.div(lax.add(x, lax.mul(i, y)), length)))


def _chosen(less: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """By the real parts, and where these are equal by the imaginary ones."""

    def choose(x: Any, y: Any) -> Any:
        a, b = lax.real(x), lax.real(y)
        tie = lax.bitwise_and(lax.eq(a, b), less(lax.imag(x), lax.imag(y)))
        return lax.select(lax.bitwise_or(less(a, b), tie), x, y)

    return choose


COMPLEX: dict[str, Callable[..., Any]] = {
    "atan2": _atan2,
    "cbrt": _cbrt,
    "max": _chosen(lax.gt),
    "min": _chosen(lax.lt),
    "sign": _sign,
}
