"""Products of arrays of which one dimension falls into groups of given sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import not_implemented, value_error
from .._weft import Array
from ..typing import DTypeLike, NestedLike
from ._products import dot_general

__all__ = ["RaggedDotDimensionNumbers", "ragged_dot_general"]


class RaggedDotDimensionNumbers(NamedTuple):
    """The dimensions of ragged_dot_general.

    Args:
        dot_dimension_numbers: of the products, as dot_general takes them; those of rhs count its group dimension.
        lhs_ragged_dimensions: the one dimension of lhs that falls into groups.
        rhs_group_dimensions: the one dimension of rhs that has a part for each group; none where the ragged dimension
            is contracted, or a batch dimension.

    Example:
        >>> weft.lax.RaggedDotDimensionNumbers((([1], [1]), ([], [])), [0], [0]).lhs_ragged_dimensions
        [0]
    """

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]


def ragged_dot_general(
    lhs: NestedLike,
    rhs: NestedLike,
    group_sizes: NestedLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: Array | None = None,
) -> Array:
    """Products of groups along a dimension of lhs, the ragged one. Where it is in the result, each group has its own
    part of rhs; where it is contracted, or a batch dimension, the result has a part for each group.

    Args:
        lhs: array.
        rhs: array.
        group_sizes: integers [groups], or one such vector for each place along the batch dimensions and those of the
            kind of the ragged one in front of it. What is behind all groups gives zeros.
        ragged_dot_dimension_numbers: the dimensions.
        group_offset: must be None.

    Returns: array, as of dot_general; with the groups in front where the ragged dimension is not in it.

    Raises:
        ValueError: dimensions or sizes do not fit.
        NotImplementedError: group_offset is given.

    Source: Gale et al., "MegaBlocks", 2022.

    Example:
        >>> numbers = weft.lax.RaggedDotDimensionNumbers((([0], [0]), ([], [])), [0], [])
        >>> weft.lax.ragged_dot_general(wnp.ones((3, 1)), wnp.array([[1.0], [2.0], [4.0]]), wnp.array([1, 2]), numbers)
        Array([[[1.]],
        <BLANKLINE>
               [[6.]]], dtype=float32)
    """
    name = "ragged_dot_general"
    if group_offset is not None:
        raise not_implemented(f"{name}: group_offset")
    lhs, rhs, sizes = wnp.asarray(lhs), wnp.asarray(rhs), wnp.asarray(group_sizes)
    dims, ragged_dims, group_dims = ragged_dot_dimension_numbers
    (c_x, c_y), (b_x, b_y) = (tuple(tuple(map(int, side)) for side in pair) for pair in dims)
    if len(ragged_dims) != 1:
        raise value_error(f"{name} expects exactly one lhs ragged dimension, got {tuple(ragged_dims)}")
    (ragged,) = map(int, ragged_dims)
    if not 0 <= ragged < lhs.ndim:
        raise value_error(
            f"{name} requires lhs ragged dimension numbers to be nonnegative and less than the number of axes of the "
            f"lhs value, got {ragged} for lhs of shape {lhs.shape}"
        )
    free = ragged not in (*c_x, *b_x)
    if free and len(group_dims) != 1:
        raise value_error(
            f"{name} requires exactly one rhs group dimension when lhs ragged dimension is noncontracting, got "
            f"{tuple(group_dims)}"
        )
    taken = [int(d) for d in group_dims]
    if any(d in (*c_y, *b_y) for d in taken):
        raise value_error(
            f"{name} requires rhs group dimension numbers to be distinct from contracting and batch dimensions, got "
            f"{tuple(taken)}"
        )
    if not free and taken:
        raise value_error(
            f"{name} requires zero group dimensions in the rhs when lhs ragged dimension is contracting or batch, got "
            f"{tuple(taken)}"
        )
    of_kind = c_x if ragged in c_x else [d for d in range(lhs.ndim) if d not in (*c_x, *b_x)] if free else b_x
    before = list(of_kind)[: list(of_kind).index(ragged)]
    prefix = before if ragged in b_x else [*b_x, *before]
    groups = sizes.shape[-1] if sizes.ndim else 0
    whole = (*(lhs.shape[d] for d in prefix), groups)
    if sizes.ndim == 0 or (sizes.ndim > 1 and sizes.shape != whole):
        raise value_error(f"{name}: expected group_sizes to have shape {whole}, got {sizes.shape}")
    if free and rhs.shape[taken[0]] != groups:
        raise value_error(f"{name}: expected rhs group dimension size to be {groups}, got {rhs.shape[taken[0]]}")
    # [*prefix, groups, ragged]: whether a place is in a group.
    ends = wnp.cumsum(sizes, axis=-1)[..., None]
    at = _weft.iota((lhs.shape[ragged],), 0, str(sizes.dtype))
    mine = (at >= ends - sizes[..., None]) & (at < ends)
    if sizes.ndim == 1:
        prefix = []
    order = sorted(range(len(prefix) + 1), key=lambda i: [*prefix, ragged][i])
    shown = [lhs.shape[d] if d in (*prefix, ragged) else 1 for d in range(lhs.ndim)]
    c_right, b_right = (tuple(d - (free and d > taken[0]) for d in side) for side in (c_y, b_y))
    parts = []
    for g in range(groups):
        mask = mine[..., g, :].transpose(order).reshape(shown)
        right = wnp.take(rhs, g, axis=taken[0]) if free else rhs
        left = wnp.where(mask, lhs, wnp.zeros((), lhs.dtype))
        parts.append(
            dot_general(left, right, ((c_x, c_right), (b_x, b_right)), preferred_element_type=preferred_element_type)
        )
    return wnp.sum(wnp.stack(parts), 0, dtype=parts[0].dtype) if free else wnp.stack(parts)


_docs.complete(globals(), {})
