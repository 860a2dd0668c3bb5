"""Products of vectors, matrices and batches of them."""

from __future__ import annotations

import operator
from typing import Any

from .. import _weft
from .._core import docs as _docs
from .._core.errors import index_error, type_error, value_error
from .._weft import Array
from ..numpy._dtypes import product_dtype
from ..typing import DTypeLike, NDArrayLike, NestedLike

__all__ = [
    "batch_matmul",
    "dot",
    "dot_general",
]


def dot(
    lhs: NestedLike,
    rhs: NestedLike,
    *,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The product of vectors and matrices, or over given dimensions.

    Args:
        lhs: array [m, k] or [k]; with dimension_numbers of any shape.
        rhs: array [k, n] or [k]; with dimension_numbers of any shape.
        dimension_numbers: as for dot_general; None: the last dimension of lhs and the first of rhs.

    Returns: array of the common dtype, or of preferred_element_type, in which the sums are made then.

    Raises:
        TypeError: the sizes differ, or preferred_element_type is a narrower integer dtype than the operands'.

    Example:
        >>> weft.lax.dot(wnp.array([[1, 2], [3, 4]]), wnp.array([1, 10]))
        Array([21, 43], dtype=int32)
    """
    lhs, rhs = _weft.array(lhs, None, False), _weft.array(rhs, None, False)
    if dimension_numbers is not None:
        return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)
    if preferred_element_type is not None:
        dtype = product_dtype(lhs, rhs, preferred_element_type, "dot")
        lhs, rhs = lhs.astype(dtype), rhs.astype(dtype)
    out = _weft.dot(lhs, rhs)
    return out if preferred_element_type is None else out.astype(preferred_element_type)


def dot_general(
    lhs: NDArrayLike,
    rhs: NDArrayLike,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The sum over pairs of contracting dimensions, for each pair of batch dimensions.

    Args:
        lhs: array.
        rhs: array.
        dimension_numbers: ((lhs contracting, rhs contracting), (lhs batch, rhs batch)): lists of dimensions, negative
            ones from the end.

    Returns: array of the batch dimensions, then the others of lhs, then those of rhs; of the common dtype, or of
        preferred_element_type, in which the sums are made then.

    Raises:
        TypeError: the sizes of a pair differ, preferred_element_type is a narrower integer dtype than the operands', or
            dimension_numbers is nothing of that form.
        IndexError: dimension_numbers names a dimension that an operand does not have.
        ValueError: dimension_numbers names a dimension twice, or dimensions without a partner.

    Example:
        >>> weft.lax.dot_general(wnp.ones((5, 2, 3)), wnp.ones((5, 3, 4)), (([2], [1]), ([0], [0]))).shape
        (5, 2, 4)
    """
    del precision
    lhs, rhs = _weft.array(lhs, None, False), _weft.array(rhs, None, False)
    if preferred_element_type is not None:
        dtype = product_dtype(lhs, rhs, preferred_element_type, "dot_general")
        lhs, rhs = lhs.astype(dtype), rhs.astype(dtype)
    lc, rc, lb, rb = dimensions_of(dimension_numbers, lhs.ndim, rhs.ndim, "dot_general")
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    x, y = [""] * lhs.ndim, [""] * rhs.ndim
    batch = ""
    for i, j in zip(lb, rb):
        x[i] = y[j] = next(letters)
        batch += x[i]
    for i, j in zip(lc, rc):
        x[i] = y[j] = next(letters)
    free_x = free_y = ""
    for i, c in enumerate(x):
        if not c:
            x[i] = next(letters)
            free_x += x[i]
    for i, c in enumerate(y):
        if not c:
            y[i] = next(letters)
            free_y += y[i]
    out = _weft.einsum(f"{''.join(x)},{''.join(y)}->{batch}{free_x}{free_y}", [lhs, rhs])
    return out if preferred_element_type is None else out.astype(preferred_element_type)


def dimensions_of(numbers: Any, lhs_rank: int, rhs_rank: int, what: str) -> list[list[int]]:
    """The dimensions that dimension_numbers names, counted from the front: contracting ones of lhs and rhs, batch ones
    of both. `what` is the function."""
    try:
        (lc, rc), (lb, rb) = numbers
        named = [("contracting", "lhs", lc), ("contracting", "rhs", rc), ("batch", "lhs", lb), ("batch", "rhs", rb)]
        given = [[operator.index(d) for d in axes] for _, _, axes in named]
    except (TypeError, ValueError):
        raise type_error(
            f"{what}: dimension_numbers must be ((lhs contracting, rhs contracting), (lhs batch, rhs batch)), four "
            f"lists of integers, got {numbers!r}"
        ) from None
    rank = {"lhs": lhs_rank, "rhs": rhs_rank}
    for (kind, side, _), axes in zip(named, given):
        for d in axes:
            if not -rank[side] <= d < rank[side]:
                raise index_error(
                    f"{what}: dimension_numbers: the {kind} axis {d} of {side} is out of range for an array of "
                    f"{rank[side]} dimensions"
                )
    lc, rc, lb, rb = ([d % rank[side] for d in axes] for (_, side, _), axes in zip(named, given))
    for side, contracting, batch in ("lhs", lc, lb), ("rhs", rc, rb):
        for d in contracting + batch:
            if (contracting + batch).count(d) > 1:
                raise value_error(
                    f"{what}: dimension_numbers names axis {d} of {side}, an array of {rank[side]} dimensions, twice"
                )
    for kind, left, right in ("contracting", lc, rc), ("batch", lb, rb):
        if len(left) != len(right):
            raise value_error(
                f"{what}: dimension_numbers has {len(left)} {kind} axes of lhs and {len(right)} of rhs; expected pairs"
            )
    return [lc, rc, lb, rb]


def batch_matmul(lhs: NestedLike, rhs: NestedLike, precision: Any = None) -> Array:
    """Matrix products of the last two dimensions; the others are batches.

    Args:
        lhs: array [..., m, k].
        rhs: array [..., k, n].

    Returns: array [..., m, n] of the common dtype.

    Raises:
        TypeError: the sizes differ.

    Example:
        >>> weft.lax.batch_matmul(wnp.ones((5, 2, 3)), wnp.ones((5, 3, 4))).shape
        (5, 2, 4)
    """
    del precision
    return _weft.matmul(lhs, rhs)


_docs.complete(globals())
