"""Normalisations: numbers less their mean over their standard deviation, by layer, group, batch or root mean square."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._weft import Array
from ..arguments import axes_of, integer
from ..typing import ArrayLike, DTypeLike, NestedLike

__all__ = [
    "batch_norm",
    "group_norm",
    "layer_norm",
    "rms_norm",
    "standardize",
]


def _floats(x: NestedLike) -> Array:
    return _weft.promote_inexact(wnp.asarray(x) if isinstance(x, (list, tuple)) else x)


def _reals(x: NestedLike, name: str) -> tuple[Array, DTypeLike]:
    """Real numbers to compute with, 16-bit ones in 32 bits, and the dtype they had."""
    x = _floats(x)
    if _weft.dtype_kind(x.dtype) == "complex":
        raise type_error(f"{name}: x is {x.dtype}; real numbers are expected")
    return (x.astype("float32") if x.dtype.itemsize < 4 else x), x.dtype


def _parameter(value: ArrayLike, x: Array, axes: Sequence[int], what: str) -> Array:
    """An array of the shape of axes of x, with dimensions of size 1 for the others."""
    value = wnp.asarray(value)
    expected = tuple(x.shape[d] for d in sorted(axes))
    if value.shape != expected:
        raise value_error(f"{what} has shape {value.shape}; expected {expected}, axis {_named(axes)} of x {x.shape}")
    return wnp.reshape(value, tuple(x.shape[d] if d in axes else 1 for d in range(x.ndim)))


def _named(axes: Sequence[int]) -> str:
    return str(axes[0]) if len(axes) == 1 else str(tuple(sorted(axes)))


def _scaled(
    x: Array, dtype: DTypeLike, scale: ArrayLike | None, bias: ArrayLike | None, axes: Sequence[int], name: str
) -> Array:
    """x scale + bias along axes, in the dtype that x, which had `dtype`, and both promote to."""
    factor = None if scale is None else _parameter(scale, x, axes, f"{name}: scale")
    shift = None if bias is None else _parameter(bias, x, axes, f"{name}: bias")
    for part in (factor, shift):
        if part is not None:
            dtype = wnp.promote_types(dtype, part.dtype)
    if factor is not None:
        x = x * factor
    if shift is not None:
        x = x + shift
    return x.astype(dtype)


def _whitened(x: Array, axes: Sequence[int], epsilon: ArrayLike) -> Array:
    centered = x - wnp.mean(x, axis=tuple(axes), keepdims=True)
    return centered / wnp.sqrt(wnp.mean(centered**2, axis=tuple(axes), keepdims=True) + epsilon)


def standardize(
    x: NestedLike,
    axis: int | Sequence[int] | None = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """(x - mean) / sqrt(variance + epsilon) along axes.

    Args:
        mean: array that broadcasts against x; None: that of x along the axes.
        variance: array that broadcasts against x; None: that of x along the axes.
        epsilon: what keeps the root away from 0.
        where: booleans that broadcast against x: the elements that mean and variance are made of; None: all.
        algorithm: the variance when only the mean is given: "fast": mean(x^2) - mean^2, at least 0; "stable":
            mean((x - mean)^2). With neither given these are the same, and the second is computed.

    Returns: array of the shape of x, of a float dtype.

    Raises:
        ValueError: there is no such algorithm.

    Source: Ba et al., "Layer normalization", 2016.

    Example:
        >>> weft.nn.standardize(wnp.array([1.0, 3.0]), epsilon=0.0)
        Array([-1.,  1.], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        raise value_error(f"standardize: algorithm must be 'fast' or 'stable', got {algorithm!r}")
    x = _floats(x)
    center = wnp.mean(x, axis=axis, keepdims=True, where=where) if mean is None else _weft.promote_all(mean, x)[0]
    if variance is None and mean is not None and algorithm == "fast":
        variance = wnp.mean(x**2, axis=axis, keepdims=True, where=where) - wnp.square(center)
        variance = wnp.maximum(variance, 0)
    elif variance is None:
        variance = wnp.mean((x - center) ** 2, axis=axis, keepdims=True, where=where)
    else:
        variance = _weft.promote_all(variance, x)[0]
    return (x - center) / wnp.sqrt(wnp.add(variance, epsilon))


def layer_norm(
    x: NestedLike,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    axis: int | Sequence[int] = -1,
    epsilon: ArrayLike = 1e-5,
) -> Array:
    """(x - mean) / sqrt(variance + epsilon) scale + bias, with the mean and the variance of each example.

    Args:
        scale: array of the shape that x has along the axes; None: 1.
        bias: array of that shape; None: 0.
        axis: the axis, or a tuple of axes, whose elements one mean and one variance are made of.

    Returns: array of the shape of x, of the dtype that x, scale and bias promote to.

    Raises:
        ValueError: scale or bias has another shape.

    Source: Ba et al., "Layer normalization", 2016.

    Example:
        >>> weft.nn.layer_norm(wnp.array([[1.0, 3.0], [5.0, 5.0]]), bias=wnp.array([0.0, 1.0]), epsilon=1e-12)
        Array([[-1.,  2.],
               [ 0.,  1.]], dtype=float32)
    """
    x, dtype = _reals(x, "layer_norm")
    axes = axes_of(axis, x.ndim, "layer_norm")
    return _scaled(_whitened(x, axes, epsilon), dtype, scale, bias, axes, "layer_norm")


def rms_norm(
    x: NestedLike,
    scale: ArrayLike | None = None,
    *,
    axis: int | Sequence[int] = -1,
    epsilon: ArrayLike = 1e-6,
) -> Array:
    """x / sqrt(mean(x^2) + epsilon) scale: only the root mean square of each example.

    Args:
        scale: array of the shape that x has along the axes; None: 1.
        axis: the axis, or a tuple of axes, whose elements one mean is made of.

    Returns: array of the shape of x, of the dtype that x and scale promote to.

    Raises:
        ValueError: scale has another shape.

    Source: Zhang & Sennrich, "Root mean square layer normalization", 2019.

    Example:
        >>> weft.nn.rms_norm(wnp.array([1.0, 7.0]))
        Array([0.2, 1.4], dtype=float32)
    """
    x, dtype = _reals(x, "rms_norm")
    axes = axes_of(axis, x.ndim, "rms_norm")
    root = wnp.sqrt(wnp.mean(x**2, axis=tuple(axes), keepdims=True) + epsilon)
    return _scaled(x / root, dtype, scale, None, axes, "rms_norm")


def group_norm(
    x: NestedLike,
    groups: int,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    axis: int = -1,
    epsilon: ArrayLike = 1e-5,
) -> Array:
    """(x - mean) / sqrt(variance + epsilon) scale + bias, with the mean and the variance of each example's groups of
    channels. One group for each channel is instance normalisation.

    Args:
        x: array of two or more dimensions, the first of which counts examples.
        groups: how many groups of equally many neighbouring channels there are.
        scale: vector of a number for each channel; None: 1.
        bias: vector of a number for each channel; None: 0.
        axis: the axis of channels.

    Returns: array of the shape of x, of the dtype that x, scale and bias promote to.

    Raises:
        TypeError: the number of channels is symbolic.
        ValueError: the channels do not make that many groups, they are the first axis, or scale or bias has another
            shape.

    Source: Wu & He, "Group normalization", 2018; Ulyanov et al., "Instance normalization", 2016.

    Example:
        >>> weft.nn.group_norm(wnp.array([[1.0, 3.0, 10.0, 30.0]]), 2)
        Array([[-0.999995,  0.999995, -1.      ,  1.      ]], dtype=float32)
    """
    x, dtype = _reals(x, "group_norm")
    channels = _channels(axis, x, "group_norm")
    groups, size = integer(groups, "group_norm: groups"), x.shape[channels]
    if isinstance(size, _weft.Dim):
        raise type_error(f"group_norm: the number of channels must be known, got {size}")
    if channels == 0:
        raise value_error("group_norm: axis 0 counts examples; the channels must be another one")
    if groups < 1 or size % groups != 0:
        raise value_error(f"group_norm: {size} channels do not make {groups} groups of the same size")
    grouped = wnp.reshape(x, (*x.shape[:channels], groups, size // groups, *x.shape[channels + 1 :]))
    axes = [d for d in range(1, grouped.ndim) if d != channels]
    return _scaled(
        wnp.reshape(_whitened(grouped, axes, epsilon), x.shape), dtype, scale, bias, [channels], "group_norm"
    )


def batch_norm(
    x: NestedLike,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    axis: int = -1,
    epsilon: ArrayLike = 1e-5,
) -> Array:
    """(x - mean) / sqrt(variance + epsilon) scale + bias, with a mean and a variance for each channel.

    While a network is trained they are those of the batch; afterwards averages over many batches are given, of
    `wnp.mean(x, axes)` and `wnp.var(x, axes)`.

    Args:
        scale: vector of a number for each channel; None: 1.
        bias: vector of a number for each channel; None: 0.
        mean: vector of a number for each channel; None: the means of the batch, over all axes but that of channels.
        variance: vector of a number for each channel; None: the means of (x - mean)^2.
        axis: the axis of channels.

    Returns: array of the shape of x, of the dtype that x, scale and bias promote to.

    Raises:
        ValueError: scale, bias, mean or variance has another shape.

    Source: Ioffe & Szegedy, "Batch normalization", 2015.

    Example:
        >>> weft.nn.batch_norm(wnp.array([[1.0, 0.0], [3.0, 4.0]]), epsilon=0.0)
        Array([[-1., -1.],
               [ 1.,  1.]], dtype=float32)
    """
    x, dtype = _reals(x, "batch_norm")
    channels = _channels(axis, x, "batch_norm")
    axes = tuple(d for d in range(x.ndim) if d != channels)
    center = (
        wnp.mean(x, axis=axes, keepdims=True) if mean is None else _parameter(mean, x, [channels], "batch_norm: mean")
    )
    centered = x - center
    square = (
        wnp.mean(centered**2, axis=axes, keepdims=True)
        if variance is None
        else _parameter(variance, x, [channels], "batch_norm: variance")
    )
    return _scaled(centered / wnp.sqrt(square + epsilon), dtype, scale, bias, [channels], "batch_norm")


def _channels(axis: int, x: Array, name: str) -> int:
    return _weft.check_axis(integer(axis, f"{name}: axis"), x.ndim, name)


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "axis": "an axis or a tuple of axes, negative from the end; None: all of them.",
    "epsilon": "what keeps the root away from 0.",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
