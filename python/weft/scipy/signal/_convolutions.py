"""Convolutions of arrays of any number of dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import numpy as wnp
from ..._core import docs as _docs
from ..._core.errors import value_error
from ..._weft import Array
from ...arguments import axes_of
from ...lax import conv_general_dilated
from ...typing import NestedLike

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve"]

_MODES = ("full", "same", "valid")


def _both(in1, in2, name: str, mode: str) -> tuple[Array, Array]:
    if mode not in _MODES:
        raise value_error(f"{name}: mode must be 'full', 'same' or 'valid', got {mode!r}")
    in1, in2 = wnp.asarray(in1), wnp.asarray(in2)
    if in1.ndim != in2.ndim:
        raise value_error(f"{name}: in1 and in2 must have as many dimensions, got {in1.ndim} and {in2.ndim}")
    dtype = wnp.result_type(in1, in2, 1.0)
    return in1.astype(dtype), in2.astype(dtype)


def _direct(in1: Array, in2: Array, mode: str, precision: Any) -> Array:
    """The sum of in1[k] in2[n - k] over k."""
    if 0 in in1.shape or 0 in in2.shape:
        raise value_error(f"convolve: in1 and in2 must not be empty, got shapes {in1.shape} and {in2.shape}")
    if wnp.issubdtype(in1.dtype, wnp.complexfloating):
        parts = [(wnp.real(v), wnp.imag(v)) for v in (in1, in2)]
        (a, b), (c, d) = parts
        times = lambda x, y: _direct(x, y, mode, precision)
        return times(a, c) - times(b, d) + 1j * (times(a, d) + times(b, c))
    if mode == "valid" and all(n <= m for n, m in zip(in1.shape, in2.shape)):
        in1, in2 = in2, in1
    if mode == "valid" and any(n < m for n, m in zip(in1.shape, in2.shape)):
        raise value_error(
            f"convolve: for mode 'valid' one array must be at least as large in every dimension, got shapes "
            f"{in1.shape} and {in2.shape}"
        )
    padding = {
        "full": [(n - 1, n - 1) for n in in2.shape],
        "same": [(n - 1 - (n - 1) // 2, (n - 1) // 2) for n in in2.shape],
        "valid": [(0, 0)] * in1.ndim,
    }[mode]
    # lax correlates: the kernel is reversed.
    out = conv_general_dilated(
        in1[None, None], wnp.flip(in2)[None, None], (1,) * in1.ndim, padding, precision=precision
    )
    return out[0, 0]


def _cut(full: Array, shape: Sequence[int], axes: Sequence[int]) -> Array:
    """The middle of an array, of a shape."""
    index = [slice(None)] * full.ndim
    for d in axes:
        start = (full.shape[d] - shape[d]) // 2
        index[d] = slice(start, start + shape[d])
    return full[tuple(index)]


def convolve(
    in1: NestedLike, in2: NestedLike, mode: str = "full", method: str = "auto", precision: Any = None
) -> Array:
    """The convolution of two arrays.

    Args:
        in1: array.
        in2: array of as many dimensions.
        mode: "full": all of it; "same": the middle, of the shape of in1; "valid": where both overlap wholly.
        method: "auto" or "direct": by sums of products; "fft": by Fourier transforms.

    Returns: array of a float or complex dtype.

    Raises:
        ValueError: there is no such mode or method, or dimensions do not fit.

    Example:
        >>> weft.scipy.signal.convolve(wnp.array([1.0, 2.0, 3.0]), wnp.array([0.0, 1.0, 0.5]))
        Array([0. , 1. , 2.5, 4. , 1.5], dtype=float32)
    """
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    if method not in ("auto", "direct"):
        raise value_error(f"convolve: method must be 'auto', 'direct' or 'fft', got {method!r}")
    in1, in2 = _both(in1, in2, "convolve", mode)
    return in1 * in2 if in1.ndim == 0 else _direct(in1, in2, mode, precision)


def correlate(
    in1: NestedLike, in2: NestedLike, mode: str = "full", method: str = "auto", precision: Any = None
) -> Array:
    """The cross-correlation of two arrays: convolve(in1, conj(in2) reversed).

    Args:
        in1: array.
        in2: array of as many dimensions.
        mode: as of convolve.
        method: as of convolve.

    Returns: array of a float or complex dtype.

    Raises:
        ValueError: there is no such mode or method, or dimensions do not fit.

    Example:
        >>> weft.scipy.signal.correlate(wnp.array([1.0, 2.0, 3.0]), wnp.array([0.0, 1.0, 0.5]))
        Array([0.5, 2. , 3.5, 3. , 0. ], dtype=float32)
    """
    return convolve(in1, wnp.flip(wnp.conj(wnp.asarray(in2))), mode, method, precision)


def _padded(in1: Array, in2: Array, boundary: str, fillvalue: Any, name: str) -> Array:
    if in1.ndim != 2 or in2.ndim != 2:
        raise value_error(f"{name}: in1 and in2 must have two dimensions, got {in1.ndim} and {in2.ndim}")
    modes = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}
    if boundary not in modes:
        raise value_error(f"{name}: boundary must be 'fill', 'wrap' or 'symm', got {boundary!r}")
    width = [(n - 1, n - 1) for n in in2.shape]
    if boundary == "fill":
        return wnp.pad(in1, width, "constant", constant_values=fillvalue)
    return wnp.pad(in1, width, modes[boundary])


def convolve2d(
    in1: NestedLike,
    in2: NestedLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """The convolution of two matrices.

    Args:
        in1: matrix.
        in2: matrix.
        mode: as of convolve.
        boundary: what is beyond the edges of in1: "fill": fillvalue; "wrap": in1 again; "symm": in1 mirrored.
        fillvalue: the value for "fill".

    Returns: matrix of a float or complex dtype.

    Raises:
        ValueError: there is no such mode or boundary, or an argument is no matrix.

    Example:
        >>> weft.scipy.signal.convolve2d(wnp.ones((2, 2)), wnp.ones((2, 2)))
        Array([[1., 2., 1.],
               [2., 4., 2.],
               [1., 2., 1.]], dtype=float32)
    """
    a, b = _both(in1, in2, "convolve2d", mode)
    if mode == "valid":
        if a.ndim != 2:
            raise value_error(f"convolve2d: in1 and in2 must have two dimensions, got {a.ndim} and {b.ndim}")
        return _direct(a, b, mode, precision)
    full = _direct(_padded(a, b, boundary, fillvalue, "convolve2d"), b, "valid", precision)
    return full if mode == "full" else _cut(full, a.shape, (0, 1))


def correlate2d(
    in1: NestedLike,
    in2: NestedLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """The cross-correlation of two matrices: convolve2d(in1, conj(in2) reversed).

    Args:
        in1: matrix.
        in2: matrix.
        mode: as of convolve.
        boundary: as of convolve2d.
        fillvalue: as of convolve2d.

    Returns: matrix of a float or complex dtype.

    Raises:
        ValueError: there is no such mode or boundary, or an argument is no matrix.

    Example:
        >>> weft.scipy.signal.correlate2d(wnp.ones((2, 2)), wnp.ones((2, 2)), mode="same")
        Array([[4., 2.],
               [2., 1.]], dtype=float32)
    """
    a, b = _both(in1, in2, "correlate2d", mode)
    b = wnp.flip(wnp.conj(b))
    if mode != "same":
        return convolve2d(a, b, mode, boundary, fillvalue, precision)
    full = _direct(_padded(a, b, boundary, fillvalue, "correlate2d"), b, "valid", precision)
    # The middle of a correlation leans to the other side than that of a convolution.
    index = tuple(slice(n // 2, n // 2 + m) for n, m in zip(b.shape, a.shape))
    return full[index]


def fftconvolve(in1: NestedLike, in2: NestedLike, mode: str = "full", axes: int | Sequence[int] | None = None) -> Array:
    """The convolution of two arrays by Fourier transforms.

    Args:
        in1: array.
        in2: array of as many dimensions.
        mode: as of convolve.
        axes: the axes that are convolved, or one; the others broadcast. None: all.

    Returns: array of a float or complex dtype.

    Raises:
        ValueError: there is no such mode, or dimensions do not fit.

    Example:
        >>> wnp.round(weft.scipy.signal.fftconvolve(wnp.array([1.0, 2.0, 3.0]), wnp.array([0.0, 1.0, 0.5])), 3)
        Array([0. , 1. , 2.5, 4. , 1.5], dtype=float32)
    """
    in1, in2 = _both(in1, in2, "fftconvolve", mode)
    if in1.ndim == 0:
        return in1 * in2
    chosen = tuple(range(in1.ndim)) if axes is None else axes_of(axes, in1.ndim, "fftconvolve")
    if mode == "valid":
        first = all(in1.shape[d] >= in2.shape[d] for d in chosen)
        if not first and not all(in1.shape[d] <= in2.shape[d] for d in chosen):
            raise value_error(
                f"fftconvolve: for mode 'valid' one array must be at least as large in every dimension, got shapes "
                f"{in1.shape} and {in2.shape}"
            )
        if not first:
            in1, in2 = in2, in1
    lengths = [in1.shape[d] + in2.shape[d] - 1 for d in chosen]
    if wnp.issubdtype(in1.dtype, wnp.complexfloating):
        spectrum = wnp.fft.fftn(in1, lengths, chosen) * wnp.fft.fftn(in2, lengths, chosen)
        full = wnp.fft.ifftn(spectrum, lengths, chosen)
    else:
        spectrum = wnp.fft.rfftn(in1, lengths, chosen) * wnp.fft.rfftn(in2, lengths, chosen)
        full = wnp.fft.irfftn(spectrum, lengths, chosen)
    if mode == "full":
        return full
    shape = list(full.shape)
    for d in chosen:
        shape[d] = in1.shape[d] if mode == "same" else in1.shape[d] - in2.shape[d] + 1
    return _cut(full, shape, chosen)


_docs.complete(
    globals(), {"precision": "accepted, without effect: products are computed in the precision of their operands."}
)
