"""Patches of images, and convolutions whose kernels differ from place to place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import value_error
from .._weft import Array
from ..typing import DTypeLike, NestedLike
from ._convolution import ConvDimensionNumbers, conv_general_dilated

__all__ = ["conv_general_dilated_local", "conv_general_dilated_patches"]


def _orders(numbers: Any, rank: int, name: str) -> tuple[list[int], list[int], list[int]]:
    """For lhs, rhs and the result the places of batch (or out), channels (or in) and spatial dimensions."""
    if numbers is None:
        plain = list(range(rank))
        return plain, plain, plain
    if isinstance(numbers, ConvDimensionNumbers):
        return list(numbers.lhs_spec), list(numbers.rhs_spec), list(numbers.out_spec)
    if len(numbers) != 3 or any(not isinstance(n, str) or len(n) != rank for n in numbers):
        raise value_error(f"{name}: dimension_numbers must be three strings of {rank} letters, got {numbers!r}")
    lhs, rhs, out = numbers
    spatial = [c for c in rhs if c not in "OI"]
    try:
        return (
            [lhs.index(c) for c in ["N", "C", *spatial]],
            [rhs.index(c) for c in ["O", "I", *spatial]],
            [out.index(c) for c in ["N", "C", *spatial]],
        )
    except ValueError:
        raise value_error(f"{name}: dimension_numbers must be like ('NCHW', 'OIHW', 'NCHW'), got {numbers!r}") from None


def _inverse(order: Sequence[int]) -> list[int]:
    return [list(order).index(d) for d in range(len(order))]


def _patches(lhs: Array, filter_shape, strides, padding, lhs_dilation, rhs_dilation, dtype) -> Array:
    """[N, C, spatial ...] -> [N, C, elements of a patch, places ...]."""
    channels, elements = lhs.shape[1], math.prod(filter_shape)
    one = wnp.eye(elements, dtype=lhs.dtype).reshape((elements, 1, *filter_shape))
    kernel = wnp.tile(one, (channels,) + (1,) * (one.ndim - 1))
    out = conv_general_dilated(
        lhs,
        kernel,
        strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        feature_group_count=channels,
        preferred_element_type=dtype,
    )
    return out.reshape((out.shape[0], channels, elements, *out.shape[2:]))


def conv_general_dilated_patches(
    lhs: NestedLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """What each place of a convolution sees of images, as channels.

    Args:
        lhs: array of images, as of conv_general_dilated.
        filter_shape: the size of a patch in each spatial dimension.
        window_strides: how far patches are apart.
        padding: as of conv_general_dilated.
        lhs_dilation: as of conv_general_dilated.
        rhs_dilation: as of conv_general_dilated.
        dimension_numbers: three strings, as of conv_general_dilated.

    Returns: array as of conv_general_dilated, with channels times elements of a patch as channels: the elements of the
        first channel first.

    Raises:
        ValueError: dimension_numbers are none.

    Source: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016.

    Example:
        >>> weft.lax.conv_general_dilated_patches(wnp.arange(4.0).reshape(1, 1, 4), (2,), (1,), "VALID")
        Array([[[0., 1., 2.],
                [1., 2., 3.]]], dtype=float32)
    """
    x = _weft.array(lhs, None, False)
    order, _, out_order = _orders(dimension_numbers, x.ndim, "conv_general_dilated_patches")
    x = wnp.transpose(x, order)
    out = _patches(x, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, preferred_element_type)
    out = out.reshape((out.shape[0], out.shape[1] * out.shape[2], *out.shape[3:]))
    return wnp.transpose(out, _inverse(out_order))


def conv_general_dilated_local(
    lhs: NestedLike,
    rhs: NestedLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
) -> Array:
    """A convolution with a kernel of its own at each place.

    Args:
        lhs: array of images, as of conv_general_dilated.
        rhs: array [out channels, channels times elements of a patch, places ...], in the order of dimension_numbers.
        window_strides: how far patches are apart.
        padding: as of conv_general_dilated.
        filter_shape: the size of a patch in each spatial dimension.
        lhs_dilation: as of conv_general_dilated.
        rhs_dilation: as of conv_general_dilated.
        dimension_numbers: three strings, as of conv_general_dilated.

    Returns: array as of conv_general_dilated.

    Raises:
        ValueError: dimension_numbers are none.

    Source: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016.

    Example:
        >>> kernels = wnp.ones((1, 2, 3))
        >>> weft.lax.conv_general_dilated_local(wnp.arange(4.0).reshape(1, 1, 4), kernels, (1,), "VALID", (2,))
        Array([[[1., 3., 5.]]], dtype=float32)
    """
    x, kernels = wnp.asarray(lhs), wnp.asarray(rhs)
    order, kernel_order, out_order = _orders(dimension_numbers, x.ndim, "conv_general_dilated_local")
    patches = _patches(wnp.transpose(x, order), filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, None)
    patches = patches.reshape((patches.shape[0], patches.shape[1] * patches.shape[2], *patches.shape[3:]))
    kernels = wnp.transpose(kernels, kernel_order)
    if kernels.shape[1:] != patches.shape[1:]:
        raise value_error(
            f"conv_general_dilated_local: rhs must have the shape (out channels, *{patches.shape[1:]}) for these "
            f"images, got {kernels.shape}"
        )
    out = wnp.einsum("np...,op...->no...", patches, kernels)
    return wnp.transpose(out, _inverse(out_order))


_docs.complete(globals(), {})
