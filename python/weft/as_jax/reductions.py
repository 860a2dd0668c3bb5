"""Where along an axis of devices, or of vmap, the extreme is: jax._src.lax.parallel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft.numpy as wnp
from weft import lax

from .._core import tree as _tree


def _first(extreme: Callable[[Any, Any], Any], x: Any, axis_name: Any) -> Any:
    here, count = lax.axis_index(axis_name), lax.axis_size(axis_name)
    first = lambda leaf: lax.pmin(wnp.where(leaf == extreme(leaf, axis_name), here, count), axis_name)
    return _tree.map(first, x)


def pargmax(x: Any, axis_name: Any) -> Any:
    """The first place along the axis of the largest value."""
    return _first(lax.pmax, x, axis_name)


def pargmin(x: Any, axis_name: Any) -> Any:
    """The first place along the axis of the smallest value."""
    return _first(lax.pmin, x, axis_name)
