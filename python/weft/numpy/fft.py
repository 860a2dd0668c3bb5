"""Discrete Fourier transforms."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _weft
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._sharding.placing import placed
from .._weft import Array
from ..arguments import integer, is_integer
from ..typing import DTypeLike, NestedLike
from ._elementwise import conjugate
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
    n = math.prod(lengths)
    if norm == "ortho":
        return out * math.sqrt(n) if inverse else out / math.sqrt(n)
    if norm == "forward":
        return out * n if inverse else out / n
    return out


def _transform(name: str, kind: str, a, s, axes, norm) -> Array:
    if norm not in (None, "backward", "ortho", "forward"):
        raise value_error(f"{name}: norm must be 'backward', 'ortho' or 'forward', got {norm!r}")
    a = _weft.promote_inexact(_weft.array(a, None, False))
    is_complex = _weft.dtype_kind(a.dtype) == "complex"
    if kind != "rfft" and not is_complex:
        a = a.astype("complex128" if a.dtype == np.float64 else "complex64")
    if kind == "rfft" and is_complex:
        raise type_error(f"{name}: real numbers are needed, got {a.dtype}")
    if name[-1] == "2" and len(axes) != 2:
        raise value_error(f"{name} only supports 2 axes. Got axes = {axes}.")
    given, axes = axes, [_weft.check_axis(d, a.ndim, name) for d in axes]
    if not axes:
        return a
    if len(set(axes)) < len(axes):
        raise value_error(f"{name} does not support repeated axes. Got axes {given}.")
    if s is None:
        s = [a.shape[d] for d in axes]
        if kind == "irfft":
            s[-1] = builtins.max(2 * (s[-1] - 1), 0)
    else:
        s = [integer(n, f"{name}: a length") for n in s]
        if builtins.any(n < 1 for n in s):
            raise value_error(f"{name}: lengths {s} must be positive")
    if builtins.any(n == 0 for n in s):  # nothing along an axis that is transformed
        sizes = list(a.shape)
        for n, d in zip(s, axes):
            sizes[d] = n
        if kind == "rfft":
            sizes[axes[-1]] = s[-1] // 2 + 1
        out = _weft.full(sizes, 0, "complex128" if a.dtype in (np.float64, np.complex128) else "complex64")
        return out.real if kind == "irfft" else out
    for n, d in zip(s, axes):
        a = _resized(a, n // 2 + 1 if kind == "irfft" and d == axes[-1] else n, d)
    last = list(range(a.ndim - len(axes), a.ndim))
    a = _weft.moveaxis(a, axes, last)
    out = _weft.bind("fft", [a], {"kind": kind, "lengths": s})[0]
    return _weft.moveaxis(_scale(out, s, norm, kind in ("ifft", "irfft")), last, axes)


def _last_axes(a, s) -> range:
    """The axes that lengths are for where none are named: the last ones; without lengths all."""
    rank = a.ndim if isinstance(a, Array) else np.ndim(a)
    return range(0 if s is None else rank - len(s), rank)


def _one(kind):
    def transform(a: NestedLike, n: int | None = None, axis: int | None = -1, norm: str | None = None) -> Array:
        s = None if n is None else [n]
        return _transform(transform.__name__, kind, a, s, _last_axes(a, s) if axis is None else [axis], norm)

    return transform


def _many(kind, default=None):
    def transform(
        a: NestedLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = default, norm: str | None = None
    ) -> Array:
        name = transform.__name__
        for argument, value in (("s", s), ("axes", axes)):
            if value is not None and not isinstance(value, Sequence):
                raise type_error(f"{name}: {argument} must be a sequence of integers, got {value!r}")
        return _transform(name, kind, a, s, _last_axes(a, s) if axes is None else axes, norm)

    return transform


_SHAPES = {
    1: """n: the number of elements along the axis that are transformed: the array is cut or widened by zeros; None:
        all{of}.
        axis: the axis, negative from the end; None: all, or the last one where n is given.""",
    2: """s: the number of elements along each axis that are transformed: the array is cut or widened by zeros; None:
        all{of}.
        axes: the axes, negative from the end{last}.""",
}


def _named(name: str, function, what: str, example: str):
    """A transform of the family under its name, described."""
    axes = {"": 1, "2": 2, "n": 2}[name[-1] if name[-1] in "2n" else ""]
    real, inverse = "rfft" in name, name.startswith("i")
    of = " (2 (m - 1) of the result for m elements of the last axis)" if name.startswith("irfft") else ""
    last = "" if name[-1] == "2" else "; None: all"
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{what}.

    Args:
        a: array or number{", real" if real and not inverse else ""}, of any shape.
        {_SHAPES[axes].format(of=of, last=last)}
        norm: "backward" (as None) divides the inverse by the number of elements n, "forward" the transform, "ortho"
            both by sqrt(n).

    Returns: array of {"a float" if real and inverse else "a complex"} dtype{_HALF if real and not inverse else ""}.

    Raises:
        ValueError: a length is not positive, or there is no such norm.
        IndexError: an axis is out of range.
        TypeError: an argument is no array, number or list of numbers{
        ", or is complex" if real and not inverse else ""
    }.

    Source: Cooley and Tukey, "An algorithm for the machine calculation of complex Fourier series", 1965.

    Example:
        >>> {example}
    """
    return function


_HALF = " with n/2 + 1 elements along the last axis: the others are their conjugates"
_ROWS = "wnp.array([[1.0, 2.0], [3.0, 4.0]])"

fft = _named(
    "fft",
    _one("fft"),
    "The Fourier transform along an axis: y[k] = sum over j of a[j] exp(-2 pi i j k / n)",
    """wnp.fft.fft(wnp.array([1.0, 0.0, 0.0, 0.0]))
        Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)""",
)
fft2 = _named(
    "fft2",
    _many("fft", (-2, -1)),
    "The Fourier transform over two axes",
    f"""wnp.fft.fft2({_ROWS}).real
        Array([[10., -2.],
               [-4.,  0.]], dtype=float32)""",
)
fftn = _named(
    "fftn",
    _many("fft"),
    "The Fourier transform over several axes",
    f"""wnp.fft.fftn({_ROWS}).real
        Array([[10., -2.],
               [-4.,  0.]], dtype=float32)""",
)
ifft = _named(
    "ifft",
    _one("ifft"),
    "The inverse Fourier transform along an axis: a[j] = 1/n sum over k of y[k] exp(2 pi i j k / n)",
    """wnp.fft.ifft(wnp.fft.fft(wnp.array([1.0, 2.0, 3.0, 4.0]))).real
        Array([1., 2., 3., 4.], dtype=float32)""",
)
ifft2 = _named(
    "ifft2",
    _many("ifft", (-2, -1)),
    "The inverse Fourier transform over two axes",
    f"""wnp.fft.ifft2(wnp.fft.fft2({_ROWS})).real
        Array([[1., 2.],
               [3., 4.]], dtype=float32)""",
)
ifftn = _named(
    "ifftn",
    _many("ifft"),
    "The inverse Fourier transform over several axes",
    f"""wnp.fft.ifftn(wnp.fft.fftn({_ROWS})).real
        Array([[1., 2.],
               [3., 4.]], dtype=float32)""",
)
rfft = _named(
    "rfft",
    _one("rfft"),
    "The Fourier transform of real numbers along an axis: entries 0 ... n/2",
    """wnp.fft.rfft(wnp.array([1.0, 2.0, 3.0, 4.0])).real
        Array([10., -2., -2.], dtype=float32)""",
)
rfft2 = _named(
    "rfft2",
    _many("rfft", (-2, -1)),
    "The Fourier transform of real numbers over two axes",
    "wnp.fft.rfft2(wnp.ones((4, 6))).shape\n        (4, 4)",
)
rfftn = _named(
    "rfftn",
    _many("rfft"),
    "The Fourier transform of real numbers over several axes",
    "wnp.fft.rfftn(wnp.ones((4, 6))).shape\n        (4, 4)",
)
irfft = _named(
    "irfft",
    _one("irfft"),
    "The inverse of rfft",
    """wnp.fft.irfft(wnp.fft.rfft(wnp.array([1.0, 2.0, 3.0, 4.0])))
        Array([1., 2., 3., 4.], dtype=float32)""",
)
irfft2 = _named(
    "irfft2",
    _many("irfft", (-2, -1)),
    "The inverse of rfft2",
    "wnp.fft.irfft2(wnp.fft.rfft2(wnp.ones((4, 6)))).shape\n        (4, 6)",
)
irfftn = _named(
    "irfftn",
    _many("irfft"),
    "The inverse of rfftn",
    "wnp.fft.irfftn(wnp.fft.rfftn(wnp.ones((4, 6)))).shape\n        (4, 6)",
)


# hfft is an inverse transform that is scaled as the forward one, and ihfft the other way round.
_SWAPPED = {None: "forward", "backward": "forward", "forward": "backward"}


def hfft(a: NestedLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The Fourier transform of a signal whose spectrum is real: of the first half of a Hermitian sequence.

    Args:
        a: array [..., n/2 + 1, ...].
        n: the length of the result; None: 2 (m - 1) for m elements.
        norm: "backward" (as None): ihfft divides by the length; "ortho": both by its root; "forward": hfft does.

    Returns: array of a real float dtype with n elements along the axis.

    Raises:
        ValueError: n is not positive.

    Example:
        >>> wnp.round(wnp.fft.hfft(wnp.array([1.0, 2.0, 1.0])), 3) + 0.0
        Array([ 6.,  0., -2.,  0.], dtype=float32)
    """
    a = conjugate(_weft.array(a, None, False))
    return _transform("hfft", "irfft", a, None if n is None else [n], [axis], _SWAPPED.get(norm, norm))


def ihfft(a: NestedLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of hfft.

    Args:
        a: array of a real dtype.
        n: how many elements along the axis are used; None: all.
        norm: "backward" (as None): ihfft divides by the length; "ortho": both by its root; "forward": hfft does.

    Returns: array of a complex dtype with n/2 + 1 elements along the axis.

    Raises:
        TypeError: a is complex.

    Example:
        >>> wnp.round(wnp.fft.ihfft(wnp.array([6.0, 0.0, -2.0, 0.0])), 3).real
        Array([1., 2., 1.], dtype=float32)
    """
    a = _weft.array(a, None, False)
    out = _transform("ihfft", "rfft", a, None if n is None else [n], [axis], _SWAPPED.get(norm, norm))
    return conjugate(out)


def _check_frequencies(name: str, n: Any, d: Any) -> None:
    if isinstance(n, (list, tuple)) or np.ndim(n):
        raise value_error(f"{name}: n must be an integer, got {n}")
    if isinstance(d, (list, tuple)) or np.ndim(d):
        raise value_error(f"{name}: d must be a number, got {d}")


def fftfreq(n: int, d: float = 1.0, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """The frequencies of the entries of fft: 0, 1 ... n/2 - 1, -n/2 ... -1, divided by n d.

    Returns: vector of n numbers of the dtype.

    Example:
        >>> wnp.fft.fftfreq(4, 0.25)
        Array([ 0.,  1., -2., -1.], dtype=float32)
    """
    _check_frequencies("fftfreq", n, d)
    out = _weft.array(np.fft.fftfreq(n, d), float if dtype is None else dtype, True)
    return placed(out, "fftfreq", device)


def rfftfreq(n: int, d: float = 1.0, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """The frequencies of the entries of rfft: 0, 1 ... n/2, divided by n d.

    Returns: vector of n/2 + 1 numbers of the dtype.

    Example:
        >>> wnp.fft.rfftfreq(4, 0.25)
        Array([0., 1., 2.], dtype=float32)
    """
    _check_frequencies("rfftfreq", n, d)
    out = _weft.array(np.fft.rfftfreq(n, d), float if dtype is None else dtype, True)
    return placed(out, "rfftfreq", device)


def _shifted(x, axes, places) -> Array:
    x = _weft.array(x, None, False)
    axes = tuple(range(x.ndim)) if axes is None else (axes,) if is_integer(axes) else tuple(axes)
    return roll(x, tuple(places(x.shape[a]) for a in axes), axes)


def fftshift(x: NestedLike, axes: int | Sequence[int] | None = None) -> Array:
    """Frequency 0 moved to the middle.

    Returns: array of the shape and dtype of x.

    Example:
        >>> wnp.fft.fftshift(wnp.fft.fftfreq(4, 0.25))
        Array([-2., -1.,  0.,  1.], dtype=float32)
    """
    return _shifted(x, axes, lambda n: n // 2)


def ifftshift(x: NestedLike, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of fftshift.

    Returns: array of the shape and dtype of x.

    Example:
        >>> wnp.fft.ifftshift(wnp.array([-2.0, -1.0, 0.0, 1.0]))
        Array([ 0.,  1., -2., -1.], dtype=float32)
    """
    return _shifted(x, axes, lambda n: -(n // 2))


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "axes": "the axis or axes; None: all.",
    "dtype": "the dtype of the result; None: the default float dtype.",
    "d": "the distance of its samples (seconds, say, for a result in hertz).",
    "n": "the length of the signal.",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
