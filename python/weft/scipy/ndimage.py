"""Arrays between their elements."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence

from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import is_one_of, not_implemented, value_error
from .._weft import Array
from ..typing import NestedLike

__all__ = ["map_coordinates"]


def _mirrored(index: Array, size: int) -> Array:
    """Back and forth between 0 and size - 1, which each come once."""
    last = size - 1
    return wnp.zeros_like(index) if last == 0 else wnp.abs((index + last) % (2 * last) - last)


_MODES: dict[str, Callable[[Array, int], Array]] = {
    "constant": lambda index, size: index,
    "nearest": lambda index, size: wnp.clip(index, 0, size - 1),
    "wrap": lambda index, size: index % size,
    "mirror": _mirrored,
    # Ends come twice: half as fine, mirrored between elements.
    "reflect": lambda index, size: _mirrored(2 * index + 1, 2 * size + 1) // 2,
}


def _rounded(x: Array) -> Array:
    return wnp.sign(x) * wnp.floor(wnp.abs(x) + 0.5) if wnp.issubdtype(x.dtype, wnp.inexact) else x


def map_coordinates(
    input: NestedLike,
    coordinates: Sequence[NestedLike],
    order: int,
    mode: str = "constant",
    cval: NestedLike = 0.0,
) -> Array:
    """An array at places between its elements.

    Args:
        input: array of d dimensions.
        coordinates: d arrays of one shape: the places, in elements.
        order: 0: the nearest element; 1: linear between elements.
        mode: what is beyond the edges: "constant": cval; "nearest": the last element; "wrap": the array again;
            "mirror" and "reflect": the array backwards, whose edge comes once or twice.
        cval: the value for "constant".

    Returns: array of the shape of the coordinates, of the dtype of input.

    Raises:
        NotImplementedError: order is above 1.
        ValueError: there is no such mode, or not as many coordinates as dimensions.

    Source: linear interpolation in each dimension (Press et al., "Numerical recipes", 3.6).

    Example:
        >>> weft.scipy.ndimage.map_coordinates(wnp.array([1.0, 2.0, 4.0]), [wnp.array([0.5, 1.5, 7.0])], order=1)
        Array([1.5, 3. , 0. ], dtype=float32)
    """
    x, at, fill = wnp.asarray(input), [wnp.asarray(c) for c in coordinates], wnp.asarray(cval)
    if len(at) != x.ndim:
        raise value_error(
            f"map_coordinates: coordinates must be a sequence of length {x.ndim}, one a dimension, got {len(at)}"
        )
    if mode in ("grid-wrap", "grid-constant", "grid-mirror"):  # SciPy's others
        raise not_implemented(f"map_coordinates: does not yet support mode {mode!r}; there are {', '.join(_MODES)}")
    if not is_one_of(mode, _MODES):
        raise value_error(f"map_coordinates: mode must be one of {', '.join(_MODES)}, got {mode!r}")
    if order not in (0, 1):
        raise not_implemented(f"map_coordinates: order must be 0 or 1, got {order}")
    fill = fill.astype(x.dtype)
    # For each dimension the elements that count: (index, whether it is inside, weight).
    parts: list[list[tuple[Array, Array | None, Array | float]]] = []
    for place, size in zip(at, x.shape):
        if order == 0:
            nodes = [(_rounded(place), 1.0)]
        else:
            lower = wnp.floor(place)
            above = place - lower
            nodes = [(lower, 1 - above), (lower + 1, above)]
        row: list[tuple[Array, Array | None, Array | float]] = []
        for index, weight in nodes:
            index = index.astype("int32")
            inside = (index >= 0) & (index < size) if mode == "constant" else None
            row.append((wnp.clip(_MODES[mode](index, size), 0, max(size - 1, 0)), inside, weight))
        parts.append(row)
    total = None
    for chosen in itertools.product(*parts):
        value = x[tuple(index for index, _, _ in chosen)]
        masks = [inside for _, inside, _ in chosen if inside is not None]
        if masks:
            value = wnp.where(functools.reduce(operator.and_, masks), value, fill)
        weighted = functools.reduce(operator.mul, (weight for _, _, weight in chosen), value)
        total = weighted if total is None else total + weighted
    if total is None:  # without dimensions
        total = x
    if not wnp.issubdtype(x.dtype, wnp.inexact):
        total = _rounded(wnp.asarray(total))
    return wnp.asarray(total).astype(x.dtype)


_docs.complete(globals(), {})
