"""Products of floats of 4 and 8 bits, of which each block has a scale."""

from __future__ import annotations

import dataclasses
import functools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._core.names import belong_to as _belong_to
from .._weft import Array
from ..arguments import one_of
from ..custom import custom_vjp
from ..lax._products import dimensions_of, dot_general
from ..lax._scaled import spread
from ..typing import DTypeLike, NestedLike

__all__ = ["BlockScaleConfig", "get_scaled_dot_general_config", "scaled_dot_general", "scaled_matmul"]


@dataclasses.dataclass(slots=True)
class BlockScaleConfig:
    """How scaled_dot_general makes narrow floats of an array. get_scaled_dot_general_config gives those that there are.

    Args:
        mode: "mxfp8" or "nvfp4".
        block_size: how many elements in a row along the contracting dimensions have one scale.
        data_type: the dtype that elements are rounded to.
        scale_type: the dtype of the scales.
        global_scale: float32 array of one element, by which all elements are divided first ("nvfp4"); or None.
        infer_only: accepted, without effect.

    Example:
        >>> weft.nn.get_scaled_dot_general_config("mxfp8").block_size
        32
    """

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool


def get_scaled_dot_general_config(mode: str, global_scale: NestedLike | None = None) -> BlockScaleConfig:
    """A configuration for scaled_dot_general.

    Args:
        mode: "mxfp8": float8_e4m3fn in blocks of 32, whose scales are powers of two; "nvfp4": float4_e2m1fn in blocks
            of 16, whose scales are float8_e4m3fn.
        global_scale: float32 array of one element by which "nvfp4" divides all elements first; None: 1. "mxfp8" has
            none.

    Returns: weft.nn.BlockScaleConfig.

    Raises:
        ValueError: there is no such mode.

    Source: Rouhani et al., "Microscaling data formats for deep learning", 2023; NVIDIA, "Pretraining large language
        models with NVFP4", 2025.

    Example:
        >>> weft.nn.get_scaled_dot_general_config("nvfp4", wnp.array([0.5])).block_size
        16
    """
    if one_of(mode, ("nvfp4", "mxfp8"), "get_scaled_dot_general_config: mode") == "mxfp8":
        return BlockScaleConfig("mxfp8", 32, wnp.float8_e4m3fn, wnp.float8_e8m0fnu, None, False)
    whole = wnp.ones((1,), "float32") if global_scale is None else global_scale
    return BlockScaleConfig("nvfp4", 16, wnp.float4_e2m1fn, wnp.float8_e4m3fn, whole, False)


def scaled_matmul(
    lhs: NestedLike,
    rhs: NestedLike,
    lhs_scales: NestedLike,
    rhs_scales: NestedLike,
    preferred_element_type: DTypeLike = np.float32,
) -> Array:
    """lhs rhs^T for each of a batch, after blocks along the last dimension of both are multiplied by their scales. Sums
    are made in 32 bits, and those of float64 in 64.

    Args:
        lhs: array [batch, m, k].
        rhs: array [batch, n, k].
        lhs_scales: array [batch, m, blocks]; blocks divides k.
        rhs_scales: array [batch, n, blocks].
        preferred_element_type: the dtype of the result.

    Returns: array [batch, m, n].

    Raises:
        ValueError: an array does not have three dimensions, or shapes do not fit.

    Source: Rouhani et al., "Microscaling data formats for deep learning", 2023.

    Example:
        >>> x, y = wnp.array([[[1.0, 2.0, 3.0, 4.0]]]).astype("float8_e4m3fn"), wnp.ones((1, 1, 4), "float8_e4m3fn")
        >>> weft.nn.scaled_matmul(x, y, wnp.array([[[0.5, 8.0]]]), wnp.array([[[1.0, 1.0]]]))
        Array([[[57.5]]], dtype=float32)
    """
    what = "scaled_matmul"
    given = {"lhs": lhs, "rhs": rhs, "lhs_scales": lhs_scales, "rhs_scales": rhs_scales}
    arrays = {name: wnp.asarray(x) for name, x in given.items()}
    for name, x in arrays.items():
        if x.ndim != 3:
            raise value_error(f"{what}: {name} must have three dimensions, got shape {x.shape}")
    a, b, a_scales, b_scales = arrays.values()
    if (a.shape[0], a.shape[2]) != (b.shape[0], b.shape[2]):
        raise value_error(
            f"{what}: lhs and rhs must have shapes (batch, m, k) and (batch, n, k), got {a.shape} and {b.shape}"
        )
    if a_scales.shape[2] != b_scales.shape[2]:
        raise value_error(
            f"{what}: lhs_scales and rhs_scales must have as many blocks, got shapes {a_scales.shape} and "
            f"{b_scales.shape}"
        )
    for side, x, scales in ("lhs", a, a_scales), ("rhs", b, b_scales):
        blocks = scales.shape[2]
        if scales.shape[:2] != x.shape[:2] or blocks == 0 or x.shape[2] % blocks:
            raise value_error(
                f"{what}: {side}_scales must have the shape of {side} but in the last dimension, which divides that of "
                f"{side}, got {scales.shape} and {x.shape}"
            )
    return _product(a, b, a_scales, b_scales, _weft.dtype(preferred_element_type))


def _product(a: Array, b: Array, a_scales: Array, b_scales: Array, dtype: Any) -> Array:
    """[batch, m, n] of that dtype, of [batch, m, k] and [batch, n, k]."""
    wide = "float64" if dtype == "float64" else "float32"
    scaled = [
        x.astype(wide) * spread(scales.astype(wide), x.shape, (2,)) for x, scales in ((a, a_scales), (b, b_scales))
    ]
    return _weft.einsum("bmk,bnk->bmn", scaled).astype(dtype)


def scaled_dot_general(
    lhs: NestedLike,
    rhs: NestedLike,
    dimension_numbers: Any,
    preferred_element_type: DTypeLike = np.float32,
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: str | None = None,
) -> Array:
    """dot_general of arrays that are rounded to narrow floats first, with a scale for each block along the contracting
    dimensions.

    The derivative takes the rounding as if it were none. Products of the cotangent are made in the same way: it and the
    other operand are rounded along the dimensions that these sum over; those of "nvfp4" are plain products, and
    elements that the format cannot hold have derivative 0. Global scales are constants. "nvfp4" alone has a forward
    mode.

    Args:
        lhs: array of floats.
        rhs: array of floats.
        dimension_numbers: as for dot_general.
        preferred_element_type: the dtype of the result: float32, bfloat16 or float16.
        configs: three weft.nn.BlockScaleConfig, for lhs, rhs and the cotangent; None: dot_general itself.
        implementation: must be None.

    Returns: array of the batch dimensions, then the others of lhs, then those of rhs.

    Raises:
        TypeError: preferred_element_type is another dtype, sizes of a pair differ, or dimension_numbers is nothing of
            that form.
        ValueError: the size of the contracting dimensions is no multiple of the size of a block, of the cotangent's,
            too, or a configuration's mode is none that there is.
        IndexError: dimension_numbers names a dimension that an operand does not have.

    Source: Rouhani et al., "Microscaling data formats for deep learning", 2023; NVIDIA, "Pretraining large language
        models with NVFP4", 2025.

    Example:
        >>> configs = [weft.nn.get_scaled_dot_general_config("mxfp8")] * 3
        >>> x = wnp.linspace(-1, 1, 64).reshape(2, 32)
        >>> weft.nn.scaled_dot_general(x, x, (([1], [1]), ([], [])), configs=configs).shape
        (2, 2)
    """
    if implementation is not None:
        warnings.warn("scaled_dot_general: implementation has no effect: leave it out", DeprecationWarning, 2)
    if configs is None:
        x, y = wnp.asarray(lhs), wnp.asarray(rhs)
        return dot_general(x, y, dimension_numbers, preferred_element_type=preferred_element_type)
    dtype = None if preferred_element_type is None else _weft.dtype(preferred_element_type)
    if dtype not in ("float32", "bfloat16", "float16"):
        raise type_error(
            f"scaled_dot_general: preferred_element_type must be float32, bfloat16 or float16, got {dtype}"
        )
    if len(configs) != 3:
        raise value_error(
            f"scaled_dot_general: configs must be three, for lhs, rhs and the cotangent, got {len(configs)}"
        )
    x, y = wnp.asarray(lhs), wnp.asarray(rhs)
    left, right, left_batch, right_batch = dimensions_of(dimension_numbers, x.ndim, y.ndim, "scaled_dot_general")
    for i, j in zip((*left, *left_batch), (*right, *right_batch)):
        if x.shape[i] != y.shape[j]:
            raise type_error(
                f"scaled_dot_general: dimension {i} of lhs and dimension {j} of rhs, which dimension_numbers pairs, "
                f"must have one size, got {x.shape[i]} and {y.shape[j]}"
            )
    # Pairs in the order of lhs: blocks are of neighbours there.
    order = sorted(range(len(left)), key=left.__getitem__)
    rows = _in_three(x, [left[i] for i in order], left_batch)
    columns = _in_three(y, [right[i] for i in order], right_batch)
    kept = [
        [array.shape[d] for d in range(array.ndim) if d not in (*axes, *batch)]
        for array, axes, batch in ((x, left, left_batch), (y, right, right_batch))
    ]
    scales = [config.global_scale for config in configs]
    out = _rounded_product(rows, columns, scales, dtype, tuple(_without_scale(config) for config in configs))
    return out.reshape((*(x.shape[d] for d in left_batch), *kept[0], *kept[1]))


def _in_three(x: Array, contracting: Sequence[int], batch: Sequence[int]) -> Array:
    """An array as [batch, the other dimensions, contracting]."""
    others = [d for d in range(x.ndim) if d not in (*contracting, *batch)]
    groups = [batch, others, contracting]
    moved = _weft.transpose(x, [d for group in groups for d in group])
    return moved.reshape(tuple(math.prod(x.shape[d] for d in group) for group in groups))


@dataclasses.dataclass(frozen=True)
class _Format:
    """A BlockScaleConfig without arrays."""

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any


def _without_scale(config: BlockScaleConfig) -> _Format:
    mode = one_of(config.mode, ("nvfp4", "mxfp8"), "scaled_dot_general: the mode of a configuration")
    return _Format(mode, config.block_size, _weft.dtype(config.data_type), _weft.dtype(config.scale_type))


def _largest(dtype: Any, as_dtype: Any) -> Array:
    return wnp.asarray(float(wnp.finfo(dtype).max), as_dtype)


def _rounded(x: Array, form: _Format, global_scale: Any, what: str) -> tuple[Array, Array]:
    """(elements, scales): [batch, m, k] as narrow floats, and [batch, m, blocks]; `what` k is the size of."""
    size, block = x.shape[2], form.block_size
    if size < block or size % block:
        raise value_error(
            f"scaled_dot_general: the size of {what} must be a multiple of {block}, the size of the blocks of "
            f"{form.mode!r}, got {size}"
        )
    most = _largest(form.data_type, x.dtype)
    blocks = x.reshape((*x.shape[:2], size // block, block))
    if form.mode == "mxfp8":
        exponents = _upper_exponents(wnp.max(wnp.abs(blocks), -1, keepdims=True) / most)
        scaled = blocks / _powers(exponents, x.dtype)
        scales = exponents.view(form.scale_type)
    else:
        blocks = blocks / wnp.asarray(global_scale)
        largest = wnp.max(wnp.abs(blocks), -1, keepdims=True)
        scales = wnp.clip(largest / most, 0, _largest(form.scale_type, x.dtype)).astype(form.scale_type)
        scaled = blocks / scales.astype("float32")
    elements = wnp.clip(scaled, -most, most).astype(form.data_type)
    return elements.reshape(x.shape), scales[..., 0]


def _upper_exponents(x: Array) -> Array:
    """The exponents of float8_e8m0fnu, as uint8, of the powers of two that are no smaller."""
    bits = x.astype("float32").view("uint32")
    exponent, fraction = bits >> 23, bits & 0x7FFFFF
    # Below 2^-126 an exponent of 0 says 2^-127, which is 0x400000 there.
    above = wnp.where(exponent == 0, fraction > 0x400000, fraction > 0) & (exponent != 0xFE)
    return (exponent + above.astype("uint32")).astype("uint8")


def _powers(exponents: Array, dtype: Any) -> Array:
    """The powers of two of exponents of float8_e8m0fnu; in place of 2^-127 what float16 has that is small."""
    powers = (exponents.astype("uint32") << 23).view("float32")
    least = 2.0**-15 if dtype == "float16" else 2.0**-127
    return wnp.where(exponents == 0, wnp.asarray(least, "float32"), powers).astype(dtype)


def _product_of_rounded(
    x: Array,
    y: Array,
    global_scales: Sequence[Any],
    dtype: Any,
    forms: Sequence[_Format],
    what: str,
) -> Array:
    """[batch, m, n] of [batch, m, k] and [batch, n, k], whose formats and global scales are the first two; `what` k is
    the size of."""
    (a, a_scales), (b, b_scales) = (
        _rounded(each, form, scale, what) for each, form, scale in zip((x, y), forms, global_scales)
    )
    whole = [wnp.asarray(scale) for form, scale in zip(forms[:2], global_scales) if form.mode == "nvfp4"]
    out = _product(a, b, a_scales, b_scales, _weft.dtype("float32") if whole else dtype)
    return (out * math.prod(whole)).astype(dtype) if whole else out


@functools.partial(custom_vjp, nondiff_argnums=(3, 4))
def _rounded_product(x, y, global_scales, dtype, forms):
    return _product_of_rounded(x, y, global_scales, dtype, forms, "the contracting dimensions")


def _forward(x, y, global_scales, dtype, forms):
    return _rounded_product(x, y, global_scales, dtype, forms), (x, y, global_scales)


def _backward(dtype, forms, residuals, cotangent):
    x, y, global_scales = residuals
    swapped = lambda v: wnp.swapaxes(v, 1, 2)
    gradients = []
    for k, (mine, other, g) in enumerate(((x, y, cotangent), (y, x, swapped(cotangent)))):
        if forms[2].mode == "nvfp4":
            gradient = wnp.matmul(g, other, preferred_element_type=dtype)
            limit = wnp.asarray(global_scales[k]) * _largest(forms[k].data_type, mine.dtype)
            gradient = wnp.where(wnp.abs(mine) <= limit * _largest(forms[k].scale_type, mine.dtype), gradient, 0)
        else:
            which = (2, 1 - k)
            scales, formats = [global_scales[i] for i in which], [forms[i] for i in which]
            by, alone = (("lhs", "rhs"), ("rhs", "lhs"))[k]
            what = f"the dimensions of {alone} alone, over which the derivative by {by} sums,"
            gradient = _product_of_rounded(g, swapped(other), scales, dtype, formats, what)
        gradients.append(gradient.astype(mine.dtype))
    return (*gradients, [None if scale is None else wnp.zeros_like(scale) for scale in global_scales])


_rounded_product.defvjp(_forward, _backward)

_belong_to(globals(), BlockScaleConfig)
_docs.complete(globals())
