"""Polynomials as vectors of coefficients, highest power first; and window functions."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _weft
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._weft import Array
from ..arguments import axes_of, count
from ..typing import NestedLike
from ._bessel import modified_bessel
from ._dtypes import finfo
from ._factors import eigvals
from ._linalg import convolve, matmul
from ._matrices import vander
from ._shape import _together, atleast_1d
from .linalg import inv, lstsq, pinv

__all__ = [
    "bartlett",
    "blackman",
    "hamming",
    "hanning",
    "i0",
    "kaiser",
    "poly",
    "polyadd",
    "polyder",
    "polydiv",
    "polyfit",
    "polyint",
    "polymul",
    "polysub",
    "polyval",
    "roots",
    "trim_zeros",
]


def _array(x) -> Array:
    return _weft.array(x, None, False)


def _vector(p, what: str) -> Array:
    p = _array(p)
    if p.ndim > 1:
        raise value_error(f"{what}: coefficients are a vector, got shape {p.shape}")
    return p.reshape(-1)


def polyval(p: NestedLike, x: NestedLike, *, unroll: int = 16) -> Array:
    """A polynomial at given places, by Horner's scheme.

    Args:
        p: coefficients along the first axis; those of one power are a number, or an array that broadcasts with x.
        x: array or number of any shape.
        unroll: accepted, without effect.

    Returns: array of the shape that x and the coefficients of one power have together.

    Raises:
        TypeError: their shapes do not broadcast.

    Example:
        >>> wnp.polyval(wnp.array([1, 0, 2]), 3)
        Array(11, dtype=int32)
    """
    del unroll
    coefficients, places = _together(p, x)
    coefficients = atleast_1d(coefficients)
    y: Array = _weft.full(
        _weft.broadcast_shapes(coefficients.shape[1:], places.shape), 0, _weft.result_type(coefficients, places)
    )
    for i in range(coefficients.shape[0]):
        y = y * places + coefficients[i]
    return y


def _sum(a1, a2, sign: int, what: str) -> Array:
    a1, a2 = atleast_1d(*_together(a1, a2))
    if a1.ndim != a2.ndim:
        raise value_error(
            f"{what}: a1 and a2 must have the same number of dimensions, got shapes {a1.shape} and {a2.shape}"
        )
    n = builtins.max(a1.shape[0], a2.shape[0])
    zeros = [0] * (a1.ndim - 1)
    a1, a2 = (_weft.pad_constant(a, [n - a.shape[0], *zeros], [0, *zeros], 0) for a in (a1, a2))
    return a1 + a2 if sign > 0 else a1 - a2


def polyadd(a1: NestedLike, a2: NestedLike) -> Array:
    """The sum of two polynomials.

    Args:
        a1: coefficients along the first axis; those of one power are a number or an array.
        a2: coefficients with as many dimensions, of the same size behind the first or of one that broadcasts.

    Returns: array of coefficients, as many as the longer one has.

    Raises:
        ValueError: the numbers of dimensions differ.
        TypeError: the sizes behind the first do not broadcast.

    Example:
        >>> wnp.polyadd(wnp.array([1, 2]), wnp.array([5]))
        Array([1, 7], dtype=int32)
    """
    return _sum(a1, a2, 1, "polyadd")


def polysub(a1: NestedLike, a2: NestedLike) -> Array:
    """The difference of two polynomials.

    Args:
        a1: coefficients along the first axis; those of one power are a number or an array.
        a2: coefficients with as many dimensions, of the same size behind the first or of one that broadcasts.

    Returns: array of coefficients, as many as the longer one has.

    Raises:
        ValueError: the numbers of dimensions differ.
        TypeError: the sizes behind the first do not broadcast.

    Example:
        >>> wnp.polysub(wnp.array([1, 2]), wnp.array([5]))
        Array([ 1, -3], dtype=int32)
    """
    return _sum(a1, a2, -1, "polysub")


def polymul(a1: NestedLike, a2: NestedLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials.

    Args:
        trim_leading_zeros: whether zeros in front are left out, as numpy.polymul does: the values must be known then.

    Returns: vector of coefficients.

    Raises:
        ValueError: an argument is no vector.
        weft.TracerError: trim_leading_zeros is True and an argument is traced.

    Example:
        >>> wnp.polymul(wnp.array([1, 1]), wnp.array([1, -1]))
        Array([ 1,  0, -1], dtype=int32)
    """
    if trim_leading_zeros:
        a1, a2 = trim_zeros(a1, "f"), trim_zeros(a2, "f")
    # No coefficients are the polynomial 0.
    x, y = (
        a if a.shape[0] else _weft.full((1,), 0, a.dtype) for a in (_vector(a, "polymul") for a in _together(a1, a2))
    )
    return convolve(x, y)


def polyder(p: NestedLike, m: int = 1) -> Array:
    """A derivative of a polynomial, in floating point.

    Args:
        m: which derivative.

    Returns: vector of m fewer coefficients.

    Raises:
        ValueError: p is no vector, or m is negative.

    Example:
        >>> wnp.polyder(wnp.array([1, 2, 3]))
        Array([2., 2.], dtype=float32)
    """
    p = _weft.promote_inexact(_vector(p, "polyder"))
    if m < 0:
        raise value_error(f"polyder: m must not be negative, got {m}")
    for _ in range(m):
        n = p.shape[0]
        if n == 0:  # and stays so, however large m is
            break
        p = p[:-1] * _weft.flip(_weft.iota((n,), 0, p.dtype), 0)[:-1]
    return p


def polyint(p: NestedLike, m: int = 1, k: NestedLike | None = None) -> Array:
    """An integral of a polynomial, in floating point.

    Args:
        m: how often to integrate.
        k: vector of the m constants of integration, that of the first integration first, or one for all; None: 0.

    Returns: vector of m more coefficients.

    Raises:
        ValueError: p is no vector, m is negative, or there are not m constants.

    Example:
        >>> wnp.polyint(wnp.array([2.0, 2.0]))
        Array([1., 2., 0.], dtype=float32)
    """
    p = _weft.promote_inexact(_vector(p, "polyint"))
    constants = _vector(0 if k is None else k, "polyint")
    if m < 0:
        raise value_error(f"polyint: m must not be negative, got {m}")
    if constants.shape[0] not in (1, m):
        raise value_error(f"polyint: k must be one number or {m}, got shape {constants.shape}")
    for c in _weft.broadcast_to(constants, (m,)):
        n = p.shape[0]
        p = _weft.pad_constant(p / _weft.flip(_weft.iota((n,), 0, p.dtype) + 1, 0), [0], [1], c)
    return p


def polyfit(
    x: NestedLike,
    y: NestedLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: NestedLike | None = None,
    cov: bool | str = False,
) -> Any:
    """The polynomial with the least squared error at given points.

    Args:
        x: vector of n places.
        y: array [n] or [n, curves] of values.
        deg: the degree.
        rcond: singular values below this share of the largest count as 0; None: 10 n times the machine's precision.
        full: whether to return what is known of the system, too.
        w: vector of n weights of the residuals; None: 1.
        cov: whether to return the covariance of the coefficients, too, scaled so that the residuals have the weights'
            variance; "unscaled": as the weights say.

    Returns: array [deg + 1] or [deg + 1, curves]: coefficients, highest power first. With full a tuple of it, the sums
        of squared residuals, the rank, the singular values of the scaled matrix, and rcond; with cov a pair of it and
        an array [deg + 1, deg + 1] or [deg + 1, deg + 1, curves].

    Raises:
        TypeError: shapes do not fit.
        ValueError: the degree is negative; there are too few places for a scaled covariance.

    Source: least squares by the singular value decomposition of the Vandermonde matrix with columns scaled to length 1
        (Golub and Van Loan, "Matrix computations", 5.5).

    Example:
        >>> wnp.round(wnp.polyfit(wnp.array([0.0, 1.0, 2.0]), wnp.array([1.0, 3.0, 5.0]), 1), 3)
        Array([2., 1.], dtype=float32)
    """
    x, y = _weft.promote_inexact(_array(x)), _weft.promote_inexact(_array(y))
    if x.ndim != 1 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0]:
        raise type_error(f"polyfit: x is a vector and y has as many rows, got shapes {x.shape} and {y.shape}")
    lhs = vander(x, count(deg, "polyfit: deg") + 1)
    if w is not None:
        w = _weft.promote_inexact(_array(w))
        lhs, y = lhs * w[:, None], y * (w if y.ndim == 1 else w[:, None])
    scale = _weft.bind_elementwise("sqrt", (_weft.reduce("reduce_sum", lhs * lhs, 0, False),), {})
    scaled = lhs / scale
    if full:
        share = x.shape[0] * float(finfo(x.dtype).eps) if rcond is None else rcond
        out, residuals, rank, singular = lstsq(scaled, y, share)
        return (out / scale if y.ndim == 1 else out / scale[:, None]), residuals, rank, singular, share
    out = matmul(pinv(scaled, rcond), y)
    out = out / scale if y.ndim == 1 else out / scale[:, None]
    if not cov:
        return out
    base = inv(matmul(scaled.T, scaled)) / (scale[:, None] * scale)
    if cov != "unscaled":
        free = x.shape[0] - (int(deg) + 1)
        if free <= 0:
            raise value_error("polyfit: the number of data points must exceed order to scale the covariance matrix")
        misfit = y - matmul(lhs, out)
        factor = _weft.reduce("reduce_sum", misfit * misfit, 0, False) / free
        return out, base * factor if y.ndim == 1 else base[:, :, None] * factor
    return out, base if y.ndim == 1 else base[:, :, None]


def poly(seq_of_zeros: NestedLike) -> Array:
    """The polynomial with given zeros and leading coefficient 1, or the characteristic polynomial of a matrix.

    Args:
        seq_of_zeros: vector of zeros, or a square matrix, whose eigenvalues they are.

    Returns: vector of coefficients, highest power first, complex for a matrix; the number 1 without zeros.

    Raises:
        TypeError: the zeros are a list.
        ValueError: the zeros are neither a vector nor a square matrix.

    Example:
        >>> wnp.poly(wnp.array([1.0, 2.0]))
        Array([ 1., -3.,  2.], dtype=float32)
    """
    if not _weft.is_operand(seq_of_zeros):
        raise type_error(
            f"poly: seq_of_zeros is {seq_of_zeros!r} of type '{type(seq_of_zeros).__name__}'; expected an array or a "
            "number (lists: weft.numpy.array)"
        )
    zeros = _weft.promote_inexact(seq_of_zeros)
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1]:
        zeros = eigvals(zeros)
    zeros = _vector(zeros, "poly")
    if zeros.shape[0] == 0:
        return _weft.full((), 1, zeros.dtype)
    p = _weft.full((1,), 1, zeros.dtype)
    for i in range(zeros.shape[0]):
        p = _weft.pad_constant(p, [0], [1], 0) - zeros[i] * _weft.pad_constant(p, [1], [0], 0)
    return p


def roots(p: NestedLike, *, strip_zeros: bool = True) -> Array:
    """The zeros of a polynomial: the eigenvalues of its companion matrix.

    Args:
        p: vector of n + 1 coefficients, highest power first.
        strip_zeros: whether leading and trailing coefficients that are 0 are taken off first, which must be known then;
            inside jit pass False: leading zeros then give NaN.

    Returns: vector of n numbers, complex64 or complex128, by ascending real and then imaginary part; those that are 0
        because trailing coefficients are come last.

    Raises:
        ValueError: p is no vector.
        weft.TracerError: p is traced and strip_zeros is True.

    Source: Horn and Johnson, "Matrix analysis", 3.3.

    Example:
        >>> wnp.round(wnp.roots(wnp.array([1.0, -3.0, 2.0])).real, 3)
        Array([1., 2.], dtype=float32)
    """
    p = _weft.promote_inexact(_vector(p, "roots"))
    zeros = 0
    if strip_zeros:
        known = np.flatnonzero(np.asarray(p))
        zeros = p.shape[0] - 1 - int(known[-1]) if known.size else 0
        p = p[int(known[0]) : int(known[-1]) + 1] if known.size else p[:0]
    n = builtins.max(p.shape[0] - 1, 0)
    kind = "complex128" if p.dtype in ("float64", "complex128") else "complex64"
    if n == 0:
        return _weft.full((zeros,), 0, kind)
    row = (-p[1:] / p[0])[None, :]
    below = _weft.pad_constant(_identity(n - 1, p.dtype), [0, 0], [0, 1], 0)
    found = eigvals(_weft.concatenate([row, below], 0))
    return _weft.concatenate([found, _weft.full((zeros,), 0, kind)], 0)


def _identity(n: int, dtype) -> Array:
    return (_weft.iota((n, n), 0, "int32") == _weft.iota((n, n), 1, "int32")).astype(dtype)


def i0(x: NestedLike) -> Array:
    """The modified Bessel function of the first kind, of order 0.

    Returns: array of the shape of x, of a float dtype.

    Source: Abramowitz & Stegun 9.6.12 (the sum of (x^2/4)^k / k!^2) for |x| <= 30 (float32: 10), 9.7.1 beyond.

    Example:
        >>> wnp.i0(wnp.array([0.0, 1.0]))
        Array([1.       , 1.2660658], dtype=float32)
    """
    x = _weft.promote_inexact(_array(x))
    return modified_bessel(0, x)


def _cosines(M: int, coefficients) -> Array:
    """Sum of coefficients[k] cos(2 pi k n / (M - 1))."""
    if M <= 1:
        return _weft.full((builtins.max(M, 0),), 1, float)
    n = _weft.iota((M,), 0, float)
    out = coefficients[0] + 0 * n
    for k, c in enumerate(coefficients[1:], 1):
        out = out + c * _weft.bind_elementwise("cos", (n * (2 * math.pi * k / (M - 1)),), {})
    return out


def hanning(M: int) -> Array:
    """The Hann window: 0.5 - 0.5 cos(2 pi n / (M - 1)).

    Returns: vector of M numbers of the default float dtype.

    Source: Harris, "On the use of windows for harmonic analysis", 1978.

    Example:
        >>> wnp.hanning(5)
        Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _cosines(M, [0.5, -0.5])


def hamming(M: int) -> Array:
    """The Hamming window: 0.54 - 0.46 cos(2 pi n / (M - 1)).

    Returns: vector of M numbers of the default float dtype.

    Source: Harris, "On the use of windows for harmonic analysis", 1978.

    Example:
        >>> wnp.hamming(3)
        Array([0.08000001, 1.        , 0.08000001], dtype=float32)
    """
    return _cosines(M, [0.54, -0.46])


def blackman(M: int) -> Array:
    """The Blackman window: 0.42 - 0.5 cos(2 pi n / (M - 1)) + 0.08 cos(4 pi n / (M - 1)).

    Returns: vector of M numbers of the default float dtype.

    Source: Harris, "On the use of windows for harmonic analysis", 1978.

    Example:
        >>> wnp.round(wnp.blackman(5), 3)
        Array([-0.  ,  0.34,  1.  ,  0.34, -0.  ], dtype=float32)
    """
    return _cosines(M, [0.42, -0.5, 0.08])


def bartlett(M: int) -> Array:
    """The triangular window: 1 - |2 n / (M - 1) - 1|.

    Returns: vector of M numbers of the default float dtype.

    Source: Harris, "On the use of windows for harmonic analysis", 1978.

    Example:
        >>> wnp.bartlett(5)
        Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    if M <= 1:
        return _weft.full((builtins.max(M, 0),), 1, float)
    n = _weft.iota((M,), 0, float)
    return 1 - _weft.absolute(2 * n / (M - 1) - 1)


def kaiser(M: int, beta: Array | float) -> Array:
    """The Kaiser window: I0(beta sqrt(1 - r^2)) / I0(beta) for r from -1 to 1.

    Args:
        beta: the shape: 0 is a rectangle, larger ones are narrower.

    Returns: vector of M numbers of the default float dtype.

    Source: Harris, "On the use of windows for harmonic analysis", 1978.

    Example:
        >>> wnp.kaiser(3, 0.0)
        Array([1., 1., 1.], dtype=float32)
    """
    if M <= 1:
        return _weft.full((builtins.max(M, 0),), 1, float)
    r = 2 * _weft.iota((M,), 0, float) / (M - 1) - 1
    return i0(beta * _weft.bind_elementwise("sqrt", (1 - r * r,), {})) / i0(_weft.array(beta, float, False))


def polydiv(u: NestedLike, v: NestedLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """The quotient and the remainder of two polynomials, in floating point.

    Args:
        u: vector of coefficients, highest power first.
        v: vector of coefficients, highest power first, the first of them not 0.
        trim_leading_zeros: whether zeros in front of the remainder are left out, as numpy.polydiv does, up to its last
            number: the values must be known then. Otherwise it keeps the length of u.

    Returns: pair of vectors of coefficients.

    Raises:
        ValueError: an argument is no vector.
        weft.TracerError: trim_leading_zeros is True and an argument is traced.

    Source: long division (Knuth, "The art of computer programming", 4.6.1, algorithm D).

    Example:
        >>> wnp.polydiv(wnp.array([1.0, -3.0, 2.0]), wnp.array([1.0, -1.0]))
        (Array([ 1., -2.], dtype=float32), Array([0., 0., 0.], dtype=float32))
    """
    u, v = (_vector(a, "polydiv") for a in _together(u, v))
    kind = _weft.promote_inexact(_weft.full((), 0, _weft.result_type(u, v))).dtype
    u, v = u.astype(kind), v.astype(kind)
    steps = builtins.max(u.shape[0] - v.shape[0] + 1, 0)
    quotient = _weft.full((builtins.max(steps, 1),), 0, kind)
    for i in range(steps):
        q = u[i] / v[0]
        quotient = quotient.at[i].set(q)
        u = u.at[i : i + v.shape[0]].add(-q * v)
    if trim_leading_zeros:
        # What is as small as rounding of the numbers before counts as 0, as in NumPy.
        known = np.asarray(u)
        small = np.isclose(known.astype(np.complex128), 0, rtol=1e-14)
        nonzero = np.flatnonzero(~small)
        u = u[int(nonzero[0]) if nonzero.size else builtins.max(u.shape[0] - 1, 0) :]
    return quotient, u


def trim_zeros(filt: NestedLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Array:
    """An array without the slices of zeros at its ends; its values must be known.

    Args:
        filt: array of any shape.
        trim: the ends: "f" the front, "b" the back, "fb" both.
        axis: the axis or axes along which slices go, negative from the end; None: all.

    Returns: array of the same dtype and as many dimensions.

    Raises:
        IndexError: an axis is out of range.
        weft.TracerError: filt is traced.

    Example:
        >>> wnp.trim_zeros(wnp.array([0, 0, 1, 0, 2, 0]))
        Array([1, 0, 2], dtype=int32)
    """
    filt = _weft.array(filt, None, False)
    if not isinstance(trim, str):
        raise type_error(f"trim_zeros: trim must be 'f', 'b' or 'fb', got {trim!r}")
    axes = range(filt.ndim) if axis is None else axes_of(axis, filt.ndim, "trim_zeros")
    places, trim = np.nonzero(np.atleast_1d(np.asarray(filt))), trim.lower()
    for d in axes:
        known, n = places[d], filt.shape[d]
        first = (int(known.min()) if known.size else n) if "f" in trim else 0
        last = (int(known.max()) + 1 if known.size else 0) if "b" in trim else n
        filt = _weft.slice_axis(filt, d, first, builtins.max(first, last), 1)
    return filt


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "M": "the number of points.",
    "a1": "vector of coefficients, highest power first.",
    "a2": "vector of coefficients, highest power first.",
    "p": "vector of coefficients, highest power first.",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
