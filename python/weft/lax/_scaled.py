"""Products of arrays of which blocks have scales: narrow floats with the range of wide ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import type_error
from .._weft import Array
from ..typing import DTypeLike, NestedLike
from ._products import dimensions_of, dot_general

__all__ = ["scaled_dot"]


def scaled_dot(
    lhs: NestedLike,
    rhs: NestedLike,
    *,
    lhs_scale: NestedLike | None = None,
    rhs_scale: NestedLike | None = None,
    dimension_numbers: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """dot_general of two arrays after each is multiplied by its scales, one for each block along the contracting
    dimensions. Operands and scales are bfloat16 in the products, whatever their dtypes.

    Args:
        lhs: array of two dimensions or more.
        rhs: array of as many dimensions.
        lhs_scale: array of the shape of lhs but along its contracting dimensions, of which each size divides that of
            lhs by two or more; None: 1.
        rhs_scale: the same of rhs.
        dimension_numbers: as for dot_general; None: matrix products of the last two dimensions, of which the others are
            batches.
        preferred_element_type: the dtype of the result, in which sums are made; None: bfloat16.

    Returns: array of the batch dimensions, then the others of lhs, then those of rhs.

    Raises:
        TypeError: numbers of dimensions differ, sizes of a pair differ, a scale does not fit, or dimension_numbers is
            nothing of that form.
        IndexError: dimension_numbers names a dimension that an operand does not have.
        ValueError: dimension_numbers names a dimension twice, or dimensions without a partner.

    Source: Rouhani et al., "Microscaling data formats for deep learning", 2023.

    Example:
        >>> x, y = wnp.array([[1.0, 2.0, 3.0, 4.0]]).astype("float8_e4m3fn"), wnp.ones((4, 1), "float8_e4m3fn")
        >>> weft.lax.scaled_dot(x, y, lhs_scale=wnp.array([[0.5, 8.0]]), preferred_element_type="float32")
        Array([[57.5]], dtype=float32)
    """
    arrays = {"lhs": wnp.asarray(lhs), "rhs": wnp.asarray(rhs)}
    scales = {side: wnp.asarray(x) for side, x in (("lhs", lhs_scale), ("rhs", rhs_scale)) if x is not None}
    ranks = {side: x.ndim for side, x in arrays.items()}
    ranks.update({f"{side}_scale": x.ndim for side, x in scales.items()})
    if len(set(ranks.values())) > 1:
        shown = ", ".join(f"{rank} of {name}" for name, rank in ranks.items())
        raise type_error(f"scaled_dot: operands and scales must have the same number of dimensions, got {shown}")
    rank = ranks["lhs"]
    if dimension_numbers is None:
        if rank < 2:
            raise type_error(
                f"scaled_dot: without dimension_numbers the operands must have two dimensions or more, got {rank}"
            )
        batch = list(range(rank - 2))
        dimension_numbers = ([rank - 1], [rank - 2]), (batch, batch)
    left, right, left_batch, right_batch = dimensions_of(dimension_numbers, rank, rank, "scaled_dot")
    for kind, pairs in ("batch", zip(left_batch, right_batch)), ("contracting", zip(left, right)):
        for i, j in pairs:
            if arrays["lhs"].shape[i] != arrays["rhs"].shape[j]:
                raise type_error(
                    f"scaled_dot: {kind} dimension {i} of lhs has size {arrays['lhs'].shape[i]}, dimension {j} of rhs "
                    f"{arrays['rhs'].shape[j]}"
                )
    scaled = []
    for (side, x), contracting in zip(arrays.items(), (left, right)):
        # No scale is one scale for all.
        shape = [1 if d in contracting else size for d, size in enumerate(x.shape)]
        _check_scale(side, x.shape, scales[side].shape if side in scales else shape, contracting)
        x = x.astype("bfloat16")
        if side in scales:
            x = x * spread(scales[side], x.shape, contracting).astype("bfloat16")
        scaled.append(x)
    dtype = "bfloat16" if preferred_element_type is None else preferred_element_type
    return dot_general(scaled[0], scaled[1], dimension_numbers, preferred_element_type=dtype)


def spread(scale: Array, shape: Sequence[int], axes: Sequence[int]) -> Array:
    """The scale of each element of an array of a shape, along axes of blocks."""
    blocks = [scale.shape[d] if d in axes else n for d, n in enumerate(shape)]
    whole = [(n, size // n if n else 1) for n, size in zip(blocks, shape)]
    apart = scale.reshape([part for n, _ in whole for part in (n, 1)])
    return _weft.broadcast_to(apart, tuple(part for pair in whole for part in pair)).reshape(tuple(shape))


def _check_scale(side: str, shape: Sequence[int], scales: Sequence[int], contracting: Sequence[int]) -> None:
    for d, (size, count) in enumerate(zip(shape, scales)):
        if d not in contracting:
            if size != count:
                raise type_error(f"scaled_dot: dimension {d} of {side} has size {size}, of {side}_scale {count}")
        elif count == 0 or size % count:
            raise type_error(
                f"scaled_dot: the size of the contracting dimension {d} of {side} must be a multiple of that of "
                f"{side}_scale, got {size} and {count}"
            )
        elif size // count < 2:
            raise type_error(
                f"scaled_dot: {side}_scale must have a scale for two elements or more along the contracting dimension "
                f"{d} of {side}, got {count} scales for {size}"
            )


_docs.complete(globals())
