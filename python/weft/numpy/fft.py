"""Discrete Fourier transforms."""

from __future__ import annotations

import builtins
import math

import numpy as np

from .. import _weft
from .._weft import Array
from ._shape import roll

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


def _resized(a, n: int, axis: int) -> Array:
    """Cut, or widened by zeros, to n elements along an axis."""
    have = a.shape[axis]
    if have > n:
        return _weft.slice_axis(a, axis, 0, n, 1)
    if have < n:
        after = [0] * a.ndim
        after[axis] = n - have
        return _weft.pad_constant(a, [0] * a.ndim, after, _weft.full((), 0, a.dtype))
    return a


def _scale(out, lengths, norm, inverse: bool) -> Array:
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f"fft: norm must be 'backward', 'ortho' or 'forward', got {norm!r}")
    n = math.prod(lengths)
    if norm == "ortho":
        return out * math.sqrt(n) if inverse else out / math.sqrt(n)
    if norm == "forward":
        return out * n if inverse else out / n
    return out


def _transform(kind: str, a, s, axes, norm) -> Array:
    a = _weft.promote_inexact(_weft.array(a, None, False))
    is_complex = _weft.dtype_kind(a.dtype) == "complex"
    if kind != "rfft" and not is_complex:
        a = a.astype("complex128" if a.dtype == np.float64 else "complex64")
    if kind == "rfft" and is_complex:
        raise TypeError(f"rfft: real numbers are needed, got {a.dtype}")
    axes = [_weft.check_axis(d, a.ndim, "fft") for d in axes]
    if s is None:
        s = [a.shape[d] for d in axes]
        if kind == "irfft":
            s[-1] = 2 * (a.shape[axes[-1]] - 1)
    s = list(s)
    if builtins.any(n < 1 for n in s):
        raise ValueError(f"fft: lengths {s} must be positive")
    for n, d in zip(s, axes):
        a = _resized(a, n // 2 + 1 if kind == "irfft" and d == axes[-1] else n, d)
    last = list(range(a.ndim - len(axes), a.ndim))
    a = _weft.moveaxis(a, axes, last)
    out = _weft.bind("fft", [a], {"kind": kind, "lengths": s})[0]
    return _weft.moveaxis(_scale(out, s, norm, kind in ("ifft", "irfft")), last, axes)


def _one(kind):
    def transform(a, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
        return _transform(kind, a, None if n is None else [n], [axis], norm)

    return transform


def _many(kind, default=None):
    def transform(a, s=None, axes=default, norm: str | None = None) -> Array:
        if axes is None:
            rank = np.ndim(a) if not isinstance(a, Array) else a.ndim
            axes = list(range(rank if s is None else rank - len(s), rank)) if s is not None else list(range(rank))
        return _transform(kind, a, s, list(axes), norm)

    return transform


def _named(name: str, function, what: str):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{what}. Lengths cut or pad with zeros; norm is 'backward', 'ortho' or 'forward'."
    return function


fft = _named("fft", _one("fft"), "The Fourier transform along an axis")
fft2 = _named("fft2", _many("fft", (-2, -1)), "The Fourier transform over two axes")
fftn = _named("fftn", _many("fft"), "The Fourier transform over several axes")
ifft = _named("ifft", _one("ifft"), "The inverse Fourier transform along an axis")
ifft2 = _named("ifft2", _many("ifft", (-2, -1)), "The inverse Fourier transform over two axes")
ifftn = _named("ifftn", _many("ifft"), "The inverse Fourier transform over several axes")
rfft = _named("rfft", _one("rfft"), "The Fourier transform of real numbers along an axis: entries 0 ... n/2")
rfft2 = _named("rfft2", _many("rfft", (-2, -1)), "The Fourier transform of real numbers over two axes")
rfftn = _named("rfftn", _many("rfft"), "The Fourier transform of real numbers over several axes")
irfft = _named("irfft", _one("irfft"), "The inverse of rfft")
irfft2 = _named("irfft2", _many("irfft", (-2, -1)), "The inverse of rfft2")
irfftn = _named("irfftn", _many("irfft"), "The inverse of rfftn")


def hfft(a, n: int | None = None, axis: int = -1) -> Array:
    """The transform of numbers whose spectrum is real."""
    from ._elementwise import conjugate

    n = 2 * (a.shape[axis] - 1) if n is None else n
    return _transform("irfft", conjugate(a), [n], [axis], None) * n


def ihfft(a, n: int | None = None, axis: int = -1) -> Array:
    """The inverse of hfft."""
    from ._elementwise import conjugate

    n = a.shape[axis] if n is None else n
    return conjugate(_transform("rfft", a, [n], [axis], None)) / n


def fftfreq(n: int, d: float = 1.0) -> Array:
    """The frequencies of the entries of fft."""
    return _weft.array(np.fft.fftfreq(n, d), float, True)


def rfftfreq(n: int, d: float = 1.0) -> Array:
    """The frequencies of the entries of rfft."""
    return _weft.array(np.fft.rfftfreq(n, d), float, True)


def fftshift(x, axes=None) -> Array:
    """Frequency 0 moved to the middle."""
    x = _weft.array(x, None, False)
    axes = tuple(range(x.ndim)) if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    return roll(x, tuple(x.shape[a] // 2 for a in axes), axes)


def ifftshift(x, axes=None) -> Array:
    """The inverse of fftshift."""
    x = _weft.array(x, None, False)
    axes = tuple(range(x.ndim)) if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    return roll(x, tuple(-(x.shape[a] // 2) for a in axes), axes)
