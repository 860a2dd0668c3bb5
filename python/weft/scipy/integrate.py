"""Integrals of samples."""

from __future__ import annotations

from .. import numpy as wnp
from .._core import docs as _docs
from .._weft import Array
from ..typing import NestedLike

__all__ = ["trapezoid"]


def trapezoid(y: NestedLike, x: NestedLike | None = None, dx: NestedLike = 1.0, axis: int = -1) -> Array:
    """The integral of a function that is linear between samples.

    Args:
        y: array of samples.
        x: where they are, a vector or an array of the shape of y; None: dx apart.
        dx: how far apart they are.

    Returns: array without the axis, of a float or complex dtype.

    Source: Abramowitz & Stegun 25.4.2.

    Example:
        >>> weft.scipy.integrate.trapezoid(wnp.array([0.0, 1.0, 4.0]))
        Array(3., dtype=float32)
    """
    return wnp.trapezoid(y, x, wnp.asarray(dx) if isinstance(dx, (list, tuple)) else dx, axis)  # type: ignore[arg-type]


_docs.complete(globals(), {}, arrays=True)
