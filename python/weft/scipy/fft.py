"""Cosine transforms under SciPy's names."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .. import lax
from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import not_implemented, value_error
from .._weft import Array
from ..typing import NestedLike

__all__ = ["dct", "dctn", "idct", "idctn"]


def _check(name: str, type: int, norm: str | None) -> None:
    if type not in (2, 3):
        raise not_implemented(f"{name}: type must be 2 or 3, got {type}")
    if norm not in (None, "backward", "forward", "ortho"):
        raise value_error(f"{name}: norm must be None, 'backward', 'forward' or 'ortho', got {norm!r}")


def _sized(x: Array, n: int | None, axis: int, name: str) -> Array:
    """The vectors along an axis, moved last, cut or filled with zeros to length n."""
    x = wnp.moveaxis(x, axis, -1)
    if n is None or n == x.shape[-1]:
        return x
    if n < 1:
        raise value_error(f"{name}: n must be positive, got {n}")
    if n < x.shape[-1]:
        return x[..., :n]
    return wnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n - x.shape[-1])])


def _turns(n: int, like: Array) -> tuple[Array, Array]:
    """cos and sin of pi k / (2 n)."""
    angle = wnp.arange(n).astype(like.dtype) * (math.pi / (2 * n))
    return wnp.cos(angle), wnp.sin(angle)


def _second(x: Array) -> Array:
    """2 sum_j x_j cos(pi k (2 j + 1) / (2 n)), by one transform of x in another order."""
    n = x.shape[-1]
    spectrum = wnp.fft.fft(wnp.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], -1))
    cosine, sine = _turns(n, x)
    return 2 * (wnp.real(spectrum) * cosine + wnp.imag(spectrum) * sine)


def _inverse_of_second(y: Array) -> Array:
    n = y.shape[-1]
    cosine, sine = _turns(n, y)
    reversed_y = wnp.concatenate([wnp.zeros_like(y[..., :1]), y[..., :0:-1]], -1)
    real, imaginary = y * cosine + reversed_y * sine, y * sine - reversed_y * cosine
    v = wnp.real(wnp.fft.ifft(real + 1j * imaginary)) / 2
    half = (n + 1) // 2
    even, odd = v[..., :half], v[..., half:][..., ::-1]
    pairs = wnp.stack([even[..., : n // 2], odd], -1).reshape((*y.shape[:-1], 2 * (n // 2)))
    return pairs if n % 2 == 0 else wnp.concatenate([pairs, even[..., -1:]], -1)


def _ortho(n: int, first: float, others: float, like: Array) -> Array:
    """Factors in the dtype of an array, with all its digits."""
    return wnp.asarray(np.where(np.arange(n) == 0, first, others), like.dtype)


def _transform(x: Array, type: int, norm: str | None, inverse: bool) -> Array:
    n = x.shape[-1]
    second = (type == 2) != inverse  # the third is the inverse of the second, but for a factor
    if second:
        y = _second(x)
        if norm == "ortho":
            return y * _ortho(n, math.sqrt(1 / (4 * n)), math.sqrt(1 / (2 * n)), y)
        return y / (2 * n) if (norm == "forward") != inverse else y
    if norm == "ortho":
        return _inverse_of_second(x * _ortho(n, math.sqrt(4 * n), math.sqrt(2 * n), x))
    y = _inverse_of_second(x)
    return y if (norm == "forward") != inverse else y * (2 * n)


def _one(name: str, x, type: int, n: int | None, axis: int, norm: str | None, inverse: bool) -> Array:
    _check(name, type, norm)
    x = wnp.asarray(x)
    if wnp.issubdtype(x.dtype, wnp.complexfloating):  # it is linear
        parts = [_one(name, part, type, n, axis, norm, inverse) for part in (wnp.real(x), wnp.imag(x))]
        return lax.complex(*parts)
    given = wnp.result_type(x, 1.0)
    wide = given if given in ("float32", "float64") else wnp.dtype("float32")
    y = _transform(_sized(x.astype(wide), n, axis, name), type, norm, inverse)
    return wnp.moveaxis(y, -1, axis).astype(given)


def dct(x: NestedLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete cosine transform: 2 times the sum of x_j cos(pi k (2 j + 1) / (2 n)).

    Args:
        type: 2, or 3, its inverse but for a factor.
        n: the length to which x is cut or filled with zeros; None: as it is.
        norm: None or "backward": as above; "ortho": scaled to be orthogonal; "forward": divided by 2 n.

    Returns: array of a float dtype.

    Raises:
        NotImplementedError: type is 1 or 4.
        ValueError: x is complex, or there is no such norm.

    Source: Makhoul, "A fast cosine transform in one and two dimensions", 1980.

    Example:
        >>> weft.scipy.fft.dct(wnp.array([1.0, 2.0, 3.0]))
        Array([ 1.2000000e+01, -3.4641016e+00,  1.1920929e-07], dtype=float32)
    """
    return _one("dct", x, type, n, axis, norm, False)


def idct(x: NestedLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of dct.

    Args:
        type: as of dct.
        n: as of dct.
        norm: as of dct.

    Returns: array of a float dtype.

    Raises:
        NotImplementedError: type is 1 or 4.
        ValueError: x is complex, or there is no such norm.

    Source: Makhoul, "A fast cosine transform in one and two dimensions", 1980.

    Example:
        >>> wnp.round(weft.scipy.fft.idct(weft.scipy.fft.dct(wnp.array([1.0, 2.0, 3.0]))), 3)
        Array([1., 2., 3.], dtype=float32)
    """
    return _one("idct", x, type, n, axis, norm, True)


def _many(name: str, one, x, type, s, axes, norm) -> Array:
    x = wnp.asarray(x)
    if s is not None and len(s) > x.ndim:
        raise value_error(f"{name}: s must have at most x.ndim ({x.ndim}) elements, got {len(s)}")
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    if s is not None and len(s) != len(axes):
        raise value_error(f"{name}: s and axes must have as many elements, got {len(s)} and {len(axes)}")
    for i, axis in enumerate(axes):
        x = one(x, type, None if s is None else s[i], axis, norm)
    return x


def dctn(
    x: NestedLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """dct along several axes, one after the other.

    Args:
        type: as of dct.
        s: the length of each; None: as they are.
        axes: the axes; None: all, or the last as many as s has.
        norm: as of dct.

    Returns: array of a float dtype.

    Raises:
        ValueError: s and axes do not fit.

    Example:
        >>> weft.scipy.fft.dctn(wnp.ones((2, 2)))
        Array([[16.,  0.],
               [ 0.,  0.]], dtype=float32)
    """
    return _many("dctn", dct, x, type, s, axes, norm)


def idctn(
    x: NestedLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The inverse of dctn.

    Args:
        type: as of dct.
        s: the length of each; None: as they are.
        axes: the axes; None: all, or the last as many as s has.
        norm: as of dct.

    Returns: array of a float dtype.

    Raises:
        ValueError: s and axes do not fit.

    Example:
        >>> wnp.round(weft.scipy.fft.idctn(weft.scipy.fft.dctn(wnp.ones((2, 2)))), 3)
        Array([[1., 1.],
               [1., 1.]], dtype=float32)
    """
    return _many("idctn", idct, x, type, s, axes, norm)


_docs.complete(globals(), {}, arrays=True)
