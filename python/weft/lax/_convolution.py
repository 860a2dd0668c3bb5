"""Convolutions of any number of spatial dimensions."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import _weft
from .._core import docs as _docs
from .._core.errors import value_error
from .._weft import Array
from ..numpy._dtypes import summed_in
from ..typing import DTypeLike, NDArrayLike, NestedLike

__all__ = [
    "ConvDimensionNumbers",
    "conv",
    "conv_dimension_numbers",
    "conv_general_dilated",
    "conv_transpose",
    "conv_with_general_padding",
]


class ConvDimensionNumbers(NamedTuple):
    """The dimensions of a convolution's arrays by their numbers, in the place of three strings.

    Attributes:
        lhs_spec: the dimensions of the images: batch, channels, spatial ones.
        rhs_spec: those of the kernels: out channels, in channels, spatial ones.
        out_spec: those of the result: batch, channels, spatial ones.

    Example:
        >>> weft.lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC"))
        ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """The dimensions of a convolution's arrays by their numbers.

    Args:
        lhs_shape: the shape of the images.
        rhs_shape: the shape of the kernels.
        dimension_numbers: three strings, as for conv_general_dilated; None: ("NCHW", "OIHW", "NCHW").

    Returns: ConvDimensionNumbers.

    Example:
        >>> weft.lax.conv_dimension_numbers((1, 3, 8), (4, 3, 3), None).rhs_spec
        (0, 1, 2)
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if dimension_numbers is None:
        plain = tuple(range(len(lhs_shape)))
        return ConvDimensionNumbers(plain, plain, plain)
    del rhs_shape
    lhs, rhs, out = dimension_numbers
    spatial = [c for c in rhs if c not in "OI"]
    return ConvDimensionNumbers(
        tuple(lhs.index(c) for c in ["N", "C", *spatial]),
        tuple(rhs.index(c) for c in ["O", "I", *spatial]),
        tuple(out.index(c) for c in ["N", "C", *spatial]),
    )


def _as_letters(numbers: ConvDimensionNumbers) -> tuple[str, str, str]:
    def letters(spec: Sequence[int], first: str) -> str:
        of = {place: (first + "0123456789abcdef")[k] for k, place in enumerate(spec)}
        return "".join(of[place] for place in range(len(spec)))

    return letters(numbers.lhs_spec, "NC"), letters(numbers.rhs_spec, "OI"), letters(numbers.out_spec, "NC")


def named_padding(padding: str, sizes: Any, windows: Any, strides: Any, name: str) -> list[tuple[int, int]]:
    """What "VALID", "SAME" and "SAME_LOWER" stand for: elements below and above per dimension."""
    if padding.upper() not in ("VALID", "SAME", "SAME_LOWER"):
        raise value_error(f"{name}: padding must be 'VALID', 'SAME', 'SAME_LOWER' or pairs, got {padding!r}")
    pairs = []
    for size, window, stride in zip(sizes, windows, strides):
        total = builtins.max((-(-size // stride) - 1) * stride + window - size, 0) if padding.upper() != "VALID" else 0
        low = total // 2 if padding.upper() == "SAME" else total - total // 2
        pairs.append((low, total - low))
    return pairs


def conv_general_dilated(
    lhs: NDArrayLike,
    rhs: NDArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The convolution (cross-correlation, as in neural networks) of any number of spatial dimensions.

    Args:
        lhs: array of images, [batch, channels, spatial ...] unless dimension_numbers say otherwise.
        rhs: array of kernels, [out channels, in channels / feature_group_count, spatial ...].
        padding: "VALID", "SAME" (of size ceil(size / stride)), "SAME_LOWER" (an odd element goes below, not above) or a
            pair (low, high) per spatial dimension. These, strides and dilations are in the order of rhs's dimensions.
        lhs_dilation: by what factor images are spread with zeros between elements; None: 1.
        dimension_numbers: three strings such as ("NHWC", "HWIO", "NHWC"): the dimensions of lhs, rhs and the result;
            or ConvDimensionNumbers;
            None: ("NCHW", "OIHW", "NCHW").
        feature_group_count: into how many groups the channels are cut, which do not see each other.
        batch_group_count: into how many groups the batch is cut, each with its own part of the kernels.

    Returns: array of the common dtype, or of preferred_element_type, in which the sums are made then; of booleans
        whether any element of an image and that of the kernel are both true.

    Raises:
        ValueError: there is no such padding, or numbers of dimensions do not fit.
        TypeError: channels do not fit, or preferred_element_type is a narrower integer dtype than the operands'.

    Source: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016.

    Example:
        >>> weft.lax.conv_general_dilated(wnp.ones((1, 1, 4)), wnp.ones((1, 1, 3)), (1,), "SAME")
        Array([[[2., 3., 3., 2.]]], dtype=float32)
    """
    del precision
    lhs, rhs = _weft.array(lhs, None, False), _weft.array(rhs, None, False)
    if lhs.ndim != rhs.ndim:
        raise value_error(
            f"conv_general_dilated: lhs and rhs must have the same number of dimensions, got shapes {lhs.shape} and "
            f"{rhs.shape}"
        )
    n = lhs.ndim - 2
    back = None
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        dimension_numbers = _as_letters(dimension_numbers)
    if dimension_numbers is not None:
        spec_l, spec_r, spec_o = dimension_numbers
        spatial = [c for c in spec_r if c not in "OI"]  # strides, padding and dilations are in the kernels' order
        expected = [{"N", "C", *spatial}, {"O", "I", *spatial}, {"N", "C", *spatial}]
        if [set(s) for s in dimension_numbers] != expected or any(len(s) != n + 2 for s in dimension_numbers):
            raise value_error(
                f"conv_general_dilated: dimension_numbers {tuple(dimension_numbers)} must be three strings of {n + 2} "
                "different letters: N and C, O and I, N and C, and the same spatial ones"
            )
        lhs = _weft.transpose(lhs, [spec_l.index(c) for c in ["N", "C", *spatial]])
        rhs = _weft.transpose(rhs, [spec_r.index(c) for c in ["O", "I", *spatial]])
        canonical = ["N", "C", *spatial]
        back = [canonical.index(c) for c in spec_o]
    strides, ld, rd = list(window_strides), list(lhs_dilation or [1] * n), list(rhs_dilation or [1] * n)
    if isinstance(padding, str):
        images = [(size - 1) * d + 1 for size, d in zip(lhs.shape[2:], ld)]
        kernels = [(size - 1) * d + 1 for size, d in zip(rhs.shape[2:], rd)]
        padding = named_padding(padding, images, kernels, strides, "conv_general_dilated")
    elif not all(isinstance(pair, Sequence) and len(pair) == 2 for pair in padding):
        raise value_error(
            f"conv_general_dilated: padding must be a name or a pair (low, high) for each dimension, got {padding!r}"
        )
    dtype = _weft.users_result_type(lhs, rhs)
    dtype = summed_in(dtype, preferred_element_type, "conv_general_dilated")
    numbers = "int32" if dtype == "bool" else dtype  # of booleans: whether any pair are both true
    out = _weft.bind(
        "conv",
        [lhs.astype(numbers), rhs.astype(numbers)],
        {
            "strides": strides,
            "lo": [p[0] for p in padding],
            "hi": [p[1] for p in padding],
            "lhs_dilation": ld,
            "rhs_dilation": rd,
            "feature_groups": feature_group_count,
            "batch_groups": batch_group_count,
        },
    )[0]
    out = out if numbers == dtype else out != 0
    out = out if preferred_element_type is None else out.astype(preferred_element_type)
    return out if back is None else _weft.transpose(out, back)


def conv(
    lhs: NDArrayLike,
    rhs: NDArrayLike,
    window_strides: Sequence[int],
    padding: str,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The convolution of images [N, C, H, W] with kernels [O, I, H, W].

    Args:
        padding: "VALID" or "SAME".

    Returns: array [batch, out channels, spatial ...].

    Raises:
        ValueError: there is no such padding, or numbers of dimensions do not fit.

    Example:
        >>> weft.lax.conv(wnp.ones((1, 1, 4, 4)), wnp.ones((1, 1, 3, 3)), (1, 1), "VALID").shape
        (1, 1, 2, 2)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: NDArrayLike,
    rhs: NDArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The convolution of images [N, C, H, W] with kernels [O, I, H, W], with padding and dilation.

    Args:
        padding: "VALID", "SAME" or a pair (low, high) per spatial dimension.
        lhs_dilation: by what factor images are spread; None: 1.

    Returns: array [batch, out channels, spatial ...].

    Raises:
        ValueError: there is no such padding, or numbers of dimensions do not fit.

    Example:
        >>> images, kernels = wnp.ones((1, 1, 4)), wnp.ones((1, 1, 3))
        >>> weft.lax.conv_with_general_padding(images, kernels, (1,), [(1, 1)], None, (2,)).shape
        (1, 1, 2)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_transpose(
    lhs: NestedLike,
    rhs: NestedLike,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """The convolution that enlarges: images are spread by the strides first.

    Args:
        lhs: array of images, [batch, spatial ..., channels] unless dimension_numbers say otherwise.
        rhs: array of kernels, [spatial ..., in, out].
        strides: by what factor the result is larger, one per spatial dimension.
        padding: "SAME" (of size times stride), "VALID" or a pair (low, high) per spatial dimension.
        dimension_numbers: as for conv_general_dilated; None: ("NHWC", "HWIO", "NHWC") for two spatial dimensions.
        transpose_kernel: whether kernels are flipped and their channels exchanged, so that the result is the gradient
            of a convolution.
        use_consistent_padding: whether pairs in padding mean that of the convolution that this one turns around, as
            "SAME" and "VALID" do; else they are zeros around the spread images.

    Returns: array of the common dtype.

    Raises:
        ValueError: there is no such padding.

    Source: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016, chapter 4.

    Example:
        >>> weft.lax.conv_transpose(wnp.ones((1, 2, 1)), wnp.ones((2, 1, 1)), (2,), "SAME")[0, :, 0]
        Array([1., 1., 1., 1.], dtype=float32)
    """
    lhs, rhs = _weft.array(lhs, None, False), _weft.array(rhs, None, False)
    n = lhs.ndim - 2
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        dimension_numbers = _as_letters(dimension_numbers)
    if dimension_numbers is None:
        dimension_numbers = (
            ("NHC", "HIO", "NHC")
            if n == 1
            else ("NHWC", "HWIO", "NHWC")
            if n == 2
            else (
                "NHWDC",
                "HWDIO",
                "NHWDC",
            )
        )
    spatial = [i for i, c in enumerate(dimension_numbers[1]) if c not in "IO"]
    rhs_dilation = list(rhs_dilation or [1] * n)
    if isinstance(padding, str):
        pairs = []
        for i, s, d in zip(spatial, strides, rhs_dilation):
            k = (rhs.shape[i] - 1) * d + 1
            if padding.upper() == "SAME":
                total = k + s - 2
                lo = k - 1 if s > k - 1 else -(-total // 2)
            elif padding.upper() == "VALID":
                total, lo = k + s - 2 + builtins.max(k - s, 0), k - 1
            else:
                raise value_error(f"conv_transpose: padding must be 'SAME', 'VALID' or pairs, got {padding!r}")
            pairs.append((lo, total - lo))
        padding = pairs
    elif use_consistent_padding:
        sizes = [(rhs.shape[i] - 1) * d for i, d in zip(spatial, rhs_dilation)]
        padding = [(k - low, k - high) for k, (low, high) in zip(sizes, padding)]
    if transpose_kernel:
        rhs = _weft.flip(rhs, spatial)
        swap = list(range(rhs.ndim))
        i, o = dimension_numbers[1].index("I"), dimension_numbers[1].index("O")
        swap[i], swap[o] = o, i
        rhs = _weft.transpose(rhs, swap)
    return conv_general_dilated(
        lhs,
        rhs,
        [1] * n,
        padding,
        list(strides),
        rhs_dilation,
        dimension_numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "lhs": "array [batch, channels, spatial ...].",
    "rhs": "array [out channels, channels, spatial ...].",
    "rhs_dilation": "by what factor kernels are spread; None: 1.",
    "window_strides": "the step of the window, one per spatial dimension.",
}

_docs.complete(globals(), _PARAMETERS)
