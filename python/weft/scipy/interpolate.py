"""Functions that go through given values on a grid."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import numpy as wnp
from .._core.errors import value_error
from .._weft import Array
from ..typing import NestedLike

__all__ = ["RegularGridInterpolator"]


class RegularGridInterpolator:
    """A function of several variables that has given values on a grid of rows and columns, evenly spaced or not.

    Args:
        points: for each variable a vector of places, increasing.
        values: array whose first dimensions are as long as those vectors.
        method: "linear" or "nearest".
        bounds_error: must be False: nothing raises while a program runs.
        fill_value: the value outside of the grid; None: what the nearest cell says.

    Raises:
        ValueError: arguments do not fit, or bounds_error is True.

    Source: linear in each variable (Press et al., "Numerical recipes", 3.6).

    Example:
        >>> f = weft.scipy.interpolate.RegularGridInterpolator([wnp.array([0.0, 1.0, 3.0])], wnp.array([0.0, 1.0, 5.0]))
        >>> f(wnp.array([[0.5], [2.0]]))
        Array([0.5, 3. ], dtype=float32)
    """

    def __init__(
        self,
        points: Sequence[NestedLike],
        values: NestedLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: NestedLike | None = float("nan"),
    ):
        if method not in ("linear", "nearest"):
            raise value_error(f"RegularGridInterpolator: method must be 'linear' or 'nearest', got {method!r}")
        if bounds_error:
            raise value_error(
                "RegularGridInterpolator: bounds_error must be False: nothing raises while a program runs"
            )
        self.method, self.bounds_error, self.fill_value = method, bounds_error, fill_value
        self.values = wnp.asarray(values)
        self.grid = tuple(wnp.asarray(p) for p in points)
        if len(self.grid) > self.values.ndim:
            raise value_error(
                f"RegularGridInterpolator: there are {len(self.grid)} vectors of points, but values have "
                f"{self.values.ndim} dimensions"
            )
        for d, (place, given) in enumerate(zip(self.grid, points)):
            if place.ndim != 1 or place.shape[0] != self.values.shape[d] or place.shape[0] < 2:
                raise value_error(
                    f"RegularGridInterpolator: points of dimension {d} must be a vector of {self.values.shape[d]} "
                    f"elements, two or more, got shape {place.shape}"
                )
            if isinstance(given, np.ndarray) and not np.all(np.diff(given) > 0):
                raise value_error(f"RegularGridInterpolator: points of dimension {d} must increase")
        if fill_value is not None:
            fill = wnp.asarray(fill_value)
            if not wnp.can_cast(fill.dtype, self.values.dtype, "same_kind"):
                raise value_error(
                    f"RegularGridInterpolator: fill_value is {fill.dtype}, which does not become {self.values.dtype}"
                )

    def __call__(self, xi: NestedLike | Sequence[NestedLike], method: str | None = None) -> Array:
        method = self.method if method is None else method
        if method not in ("linear", "nearest"):
            raise value_error(f"RegularGridInterpolator: method must be 'linear' or 'nearest', got {method!r}")
        n = len(self.grid)
        if isinstance(xi, tuple):
            at = wnp.stack(wnp.broadcast_arrays(*[wnp.asarray(x) for x in xi]), -1)
        else:
            at = wnp.asarray(xi)
            at = at[..., None] if n == 1 and at.ndim == 1 else at
        if at.shape[-1] != n:
            raise value_error(f"RegularGridInterpolator: points have {at.shape[-1]} coordinates; the grid has {n}")
        at = at.astype(wnp.result_type(at, 1.0))
        shape, flat = at.shape[:-1], at.reshape(-1, n)
        lower, share, outside = [], [], wnp.zeros(flat.shape[:1], bool)
        for d, grid in enumerate(self.grid):
            x = flat[:, d]
            index = wnp.clip(wnp.searchsorted(grid, x) - 1, 0, grid.shape[0] - 2)
            width = grid[index + 1] - grid[index]
            lower.append(index)
            share.append((x - grid[index]) / wnp.where(width == 0, 1, width))
            outside = outside | (x < grid[0]) | (x > grid[-1])
        extra = (...,) + (None,) * (self.values.ndim - n)
        if method == "nearest":
            out = self.values[tuple(wnp.where(s <= 0.5, i, i + 1) for i, s in zip(lower, share))]
        else:
            total: Any = 0.0
            for corner in itertools.product((0, 1), repeat=n):
                weight: Any = 1.0
                for c, s in zip(corner, share):
                    weight = weight * (s if c else 1 - s)
                total = total + self.values[tuple(i + c for i, c in zip(lower, corner))] * weight[extra]
            out = total
        if self.fill_value is not None:
            out = wnp.where(outside[extra], wnp.asarray(self.fill_value).astype(out.dtype), out)
        return out.reshape(shape + self.values.shape[n:])
