"""Where along an axis of devices, or of vmap, the extreme is: jax._src.lax.parallel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft.numpy as wnp
from weft import lax

from .._core import tree as _tree


def _place_of(extreme: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def place(x: Any, axis_name: Any) -> Any:
        here, count = lax.axis_index(axis_name), lax.axis_size(axis_name)
        first = lambda leaf: lax.pmin(wnp.where(leaf == extreme(leaf, axis_name), here, count), axis_name)
        return _tree.map(first, x)

    return place


pargmax = _place_of(lax.pmax)
"""The first place along the axis of the largest value."""
pargmin = _place_of(lax.pmin)
"""The first place along the axis of the smallest value."""
