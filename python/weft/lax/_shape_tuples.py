"""Shapes of results, from shapes, and what paddings by name stand for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._core import docs as _docs
from .._core.errors import type_error, value_error
from ._convolution import named_padding

__all__ = [
    "conv_general_permutations",
    "conv_general_shape_tuple",
    "conv_shape_tuple",
    "conv_transpose_shape_tuple",
    "padtype_to_pads",
    "reduce_window_shape_tuple",
]

Padding = str | Sequence[tuple[int, int]]


def _windows(size: int, window: int, stride: int) -> int:
    """In how many places, a stride apart, a window fits."""
    return 0 if size < window else (size - window) // stride + 1


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: str
) -> list[tuple[int, int]]:
    """How many elements a padding by name adds below and above each dimension.

    Args:
        in_shape: the sizes that windows go over.
        window_shape: the sizes of a window.
        window_strides: the steps between windows.
        padding: "VALID", "SAME" or "SAME_LOWER".

    Returns: list of pairs.

    Raises:
        ValueError: there is no such padding.

    Example:
        >>> weft.lax.padtype_to_pads((5, 5), (3, 2), (1, 1), "SAME")
        [(1, 1), (0, 1)]
    """
    pads = named_padding(padding, in_shape, window_shape, window_strides, "padtype_to_pads")
    return [(int(low), int(high)) if isinstance(low, np.integer) else (low, high) for low, high in pads]


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Padding,
    batch_group_count: int = 1,
) -> tuple[int, ...]:
    """The shape of a convolution of images [N, C, spatial ...] with kernels [O, I, spatial ...].

    Args:
        lhs_shape: the shape of the images.
        rhs_shape: the shape of the kernels.
        strides: the steps between windows.
        pads: pairs (low, high) per spatial dimension, or their name.
        batch_group_count: into how many groups the batch is divided.

    Returns: tuple of sizes [N, O, spatial ...].

    Raises:
        TypeError: there are not as many pairs as spatial dimensions.
        ValueError: the padding takes away more than there is, or groups do not divide the batch.

    Example:
        >>> weft.lax.conv_shape_tuple((8, 3, 5), (16, 3, 3), (1,), [(1, 1)])
        (8, 16, 5)
    """
    sizes, windows = lhs_shape[2:], rhs_shape[2:]
    pairs = padtype_to_pads(sizes, windows, strides, pads) if isinstance(pads, str) else list(pads)
    if len(pairs) != len(sizes):
        raise type_error(f"conv_shape_tuple: {len(pairs)} pairs of padding for {len(sizes)} spatial dimensions")
    padded = [n + low + high for n, (low, high) in zip(sizes, pairs)]
    if any(n < 0 for n in padded):
        raise value_error(f"conv_shape_tuple: the padding {pairs} takes more than the sizes {tuple(sizes)} have")
    if lhs_shape[0] % batch_group_count:
        raise value_error(f"conv_shape_tuple: {batch_group_count} groups do not divide a batch of {lhs_shape[0]}")
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *map(_windows, padded, windows, strides))


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """In which order the dimensions stand, as those of conv_shape_tuple do.

    Args:
        dimension_numbers: three strings such as ("NHWC", "HWIO", "NHWC"): images, kernels, results.

    Returns: a tuple of places for each.

    Raises:
        TypeError: a letter is missing or there twice, or the spatial letters differ.

    Example:
        >>> weft.lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
        ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    places = []
    spatial = [c for c in dimension_numbers[1] if c not in "OI"]
    for text, first in zip(dimension_numbers, ("NC", "OI", "NC"), strict=True):
        if sorted(text) != sorted([*first, *spatial]) or len(set(text)) != len(text):
            raise type_error(
                f"conv_general_permutations: {text!r} must have '{first[0]}', '{first[1]}' and the spatial letters "
                f"{''.join(spatial)!r} once each"
            )
        places.append(tuple(text.index(c) for c in [*first, *spatial]))
    return tuple(places)


def _in_order(shape: Sequence[int], places: Sequence[int]) -> tuple[int, ...]:
    return tuple(int(shape[p]) for p in places)


def _out_of_order(shape: Sequence[int], places: Sequence[int]) -> tuple[int, ...]:
    return tuple(size for _, size in sorted(zip(places, shape)))


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: Sequence[str],
) -> tuple[int, ...]:
    """The shape of a convolution.

    Args:
        lhs_shape: the shape of the images.
        rhs_shape: the shape of the kernels.
        window_strides: the steps between windows.
        padding: pairs (low, high) per spatial dimension, or their name.
        dimension_numbers: three strings such as ("NHWC", "HWIO", "NHWC").

    Returns: tuple of sizes.

    Raises:
        TypeError: what conv_shape_tuple and conv_general_permutations refuse.

    Example:
        >>> weft.lax.conv_general_shape_tuple((8, 5, 3), (3, 3, 16), (1,), "SAME", ("NHC", "HIO", "NHC"))
        (8, 5, 16)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    shape = conv_shape_tuple(_in_order(lhs_shape, lhs), _in_order(rhs_shape, rhs), window_strides, padding)
    return _out_of_order(shape, out)


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: Sequence[str],
) -> tuple[int, ...]:
    """The shape of a transposed convolution.

    Args:
        lhs_shape: the shape of the images.
        rhs_shape: the shape of the kernels.
        window_strides: the steps between windows of the convolution that is transposed.
        padding: "SAME", "VALID" or pairs (low, high) per spatial dimension.
        dimension_numbers: three strings such as ("NHWC", "HWIO", "NHWC").

    Returns: tuple of sizes.

    Raises:
        TypeError: what conv_general_permutations refuses.
        ValueError: there is no such padding.

    Example:
        >>> weft.lax.conv_transpose_shape_tuple((8, 5, 3), (3, 3, 16), (2,), "SAME", ("NHC", "HIO", "NHC"))
        (8, 10, 16)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    images, kernels = _in_order(lhs_shape, lhs), _in_order(rhs_shape, rhs)
    if isinstance(padding, str):
        if padding not in ("SAME", "VALID"):
            raise value_error(f"conv_transpose_shape_tuple: padding must be 'SAME', 'VALID' or pairs, got {padding!r}")
        # In all: what makes sizes times strides of "SAME", and all that a window touches of "VALID".
        total = [
            k + s - 2 if padding == "SAME" else k + s - 2 + max(k - s, 0) for k, s in zip(kernels[2:], window_strides)
        ]
    else:
        total = [low + high for low, high in padding]
    spatial = [(n - 1) * s - k + 2 + p for n, k, s, p in zip(images[2:], kernels[2:], window_strides, total)]
    return _out_of_order((images[0], kernels[0], *spatial), out)


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """The shape of a reduction over windows.

    Args:
        operand_shape: the shape of the operand.
        window_dimensions: the sizes of a window.
        window_strides: the steps between windows.
        padding: pairs (low, high) per dimension.
        base_dilation: the steps between the operand's elements; None: 1.
        window_dilation: the steps between a window's elements; None: 1.

    Returns: tuple of sizes.

    Example:
        >>> weft.lax.reduce_window_shape_tuple((5, 6), (2, 2), (1, 2), [(0, 0), (1, 1)])
        (4, 4)
    """
    spread = lambda sizes, steps: [0 if n == 0 else (n - 1) * d + 1 for n, d in zip(sizes, steps or [1] * len(sizes))]
    padded = [n + low + high for n, (low, high) in zip(spread(operand_shape, base_dilation), padding)]
    return tuple(map(_windows, padded, spread(window_dimensions, window_dilation), window_strides))


_docs.complete(globals())
