"""Discrete Fourier transforms with explicit lengths."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from .. import _weft
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._weft import Array
from ..arguments import integer
from ..typing import NestedLike

__all__ = ["FftType", "fft"]


class FftType(enum.IntEnum):
    """The kinds of transforms: of complex numbers, their inverse, of real numbers, and its inverse.

    Example:
        >>> weft.lax.fft(wnp.ones(2, "complex64"), weft.lax.FftType.FFT, (2,)).real
        Array([2., 0.], dtype=float32)
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def fft(x: NestedLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """The discrete Fourier transform along the last dimensions, as many as there are lengths.

    Args:
        x: array; numbers are made complex, but for 'RFFT', whose are real.
        fft_type: an FftType or its name: 'FFT', 'IFFT', 'RFFT' or 'IRFFT'.
        fft_lengths: the sizes of those dimensions (of the result, for 'IRFFT', whose operand has `n // 2 + 1` elements
            along the last one).

    Returns: array of complex numbers ('IRFFT': real ones) of the shape of x, but for the last dimension of the two real
    kinds: `n // 2 + 1` elements for 'RFFT', n for 'IRFFT'.

    Raises:
        TypeError: the dtype is not that of the kind, or a size of x is not the length's.
        ValueError: there is no such kind, or there are more lengths than dimensions.

    Source: X[k] = sum over j of x[j] exp(-2 pi i j k / n); the inverse has the other sign and is divided by n.

    Example:
        >>> weft.lax.fft(wnp.array([1.0, 0.0, 0.0, 0.0]), "RFFT", (4,)).real
        Array([1., 1., 1.], dtype=float32)
    """
    names = [kind.name for kind in FftType]
    if isinstance(fft_type, str) and fft_type.upper() in names:
        fft_type = FftType[fft_type.upper()]
    if not isinstance(fft_type, FftType):
        raise value_error(f"fft: fft_type must be one of {', '.join(names)}, got {fft_type!r}")
    if not isinstance(fft_lengths, Sequence) or isinstance(fft_lengths, str):
        raise type_error(f"fft: fft_lengths must be a sequence of integers, got {fft_lengths!r}")
    lengths = [integer(n, "fft: a length") for n in fft_lengths]
    operand = _weft.array(x, None, False)
    if not lengths:
        return operand
    if fft_type is FftType.RFFT or _weft.dtype_kind(operand.dtype) != "complex":
        operand = _weft.promote_inexact(operand)
    if fft_type is not FftType.RFFT:
        wide = operand.dtype in ("float64", "complex128")
        operand = operand.astype("complex128" if wide else "complex64")
    if fft_type is not FftType.RFFT or operand.dtype in ("float32", "float64"):  # others are refused for their dtype
        _check_sizes(fft_type.name, operand.shape, tuple(lengths))
    return _weft.bind("fft", [operand], {"kind": fft_type.name.lower(), "lengths": lengths})[0]


def _check_sizes(kind: str, shape: tuple[Any, ...], lengths: tuple[int, ...]) -> None:
    if len(lengths) > len(shape):
        raise value_error(
            f"fft: {kind} of an array of shape {shape}: it has fewer dimensions than fft_lengths {lengths}"
        )
    half = kind == "IRFFT"  # the last dimension has what a real array's transform has
    found, wanted = shape[len(shape) - len(lengths) :], lengths
    if half:
        found, wanted = found[:-1], wanted[:-1]
    if all(isinstance(n, int) for n in found) and found != wanted:
        which = "but the last of fft_lengths" if half else "fft_lengths"
        raise type_error(f"fft: {kind} of an array of shape {shape}: its last sizes must be {which} {lengths}")


_docs.complete(globals())
