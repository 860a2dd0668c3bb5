"""The directions of complex numbers."""

from __future__ import annotations

from .. import _weft
from .._weft import Array


def complex_sign(x: Array) -> Array:
    """x / |x|; 0 at 0; the unit in the direction of the one infinite part, of two there is none."""
    re, im = (_weft.bind_elementwise(part, (x,), {}) for part in ("real", "imag"))
    re, im = _beside(re, im), _beside(im, re)
    size = _weft.absolute(_weft.bind_elementwise("complex", (re, im), {}))
    zero, size = size == 0, _weft.where(size == 0, 1, size)
    # Part by part: a quotient of complex numbers loses signs of zero.
    return _weft.where(zero, 0, _weft.bind_elementwise("complex", (re / size, im / size), {}))


def _beside(part: Array, other: Array) -> Array:
    """A part of a complex number that has the direction and no infinite part, or is NaN."""
    infinite = _weft.absolute(other) == float("inf")
    unit = _weft.where(infinite, float("nan"), _weft.where(part > 0, 1, -1))
    finite = _weft.where(infinite, 0, part)
    return _weft.where(_weft.absolute(part) == float("inf"), unit, finite).astype(part.dtype)
