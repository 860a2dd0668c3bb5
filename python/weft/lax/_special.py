"""Incomplete gamma and beta functions, zeta functions and scaled Bessel functions under lax's names."""

from __future__ import annotations

from .. import numpy as wnp
from .._core import docs as _docs
from .._special import bessel, incomplete
from .._special import zeta as _zeta
from .._weft import Array, promote_inexact
from ..numpy._bessel import scaled_modified_bessel
from ..typing import NestedLike

__all__ = [
    "bessel_i0e",
    "bessel_i1e",
    "betainc",
    "igamma",
    "igamma_grad_a",
    "igammac",
    "polygamma",
    "random_gamma_grad",
    "zeta",
]


def bessel_i0e(x: NestedLike) -> Array:
    """exp(-|x|) I_0(x): the modified Bessel function of order 0, scaled.

    Returns: array of the shape of x, of a float dtype.

    Source: Abramowitz & Stegun 9.6.12 and 9.7.1.

    Example:
        >>> weft.lax.bessel_i0e(wnp.array([0.0, 100.0]))
        Array([1.        , 0.03994438], dtype=float32)
    """
    return scaled_modified_bessel(0, promote_inexact(wnp.asarray(x)))


def bessel_i1e(x: NestedLike) -> Array:
    """exp(-|x|) I_1(x): the modified Bessel function of order 1, scaled.

    Returns: array of the shape of x, of a float dtype.

    Source: Abramowitz & Stegun 9.6.10 and 9.7.1.

    Example:
        >>> weft.lax.bessel_i1e(wnp.array([1.0, 100.0]))
        Array([0.20791042, 0.03974415], dtype=float32)
    """
    return bessel.i1e(x)


def igamma(a: NestedLike, x: NestedLike) -> Array:
    """The regularised lower incomplete gamma function; see scipy.special.gammainc.

    Returns: array of the common shape, of a float dtype.

    Source: Abramowitz & Stegun 6.5.29 and 6.5.31.

    Example:
        >>> weft.lax.igamma(2.0, wnp.array([1.0, 3.0]))
        Array([0.26424113, 0.8008517 ], dtype=float32)
    """
    return incomplete.igamma(a, x)


def igammac(a: NestedLike, x: NestedLike) -> Array:
    """The regularised upper incomplete gamma function; see scipy.special.gammaincc.

    Returns: array of the common shape, of a float dtype.

    Source: Abramowitz & Stegun 6.5.29 and 6.5.31.

    Example:
        >>> weft.lax.igammac(2.0, wnp.array([1.0, 3.0]))
        Array([0.7357589 , 0.19914828], dtype=float32)
    """
    return incomplete.igammac(a, x)


def igamma_grad_a(a: NestedLike, x: NestedLike) -> Array:
    """The derivative of igamma by its parameter.

    Returns: array of the common shape, of a float dtype.

    Source: Abramowitz & Stegun 6.5.29 and 6.5.31, differentiated.

    Example:
        >>> weft.lax.igamma_grad_a(2.0, 1.0)
        Array(-0.27619606, dtype=float32, weak_type=True)
    """
    return incomplete.igamma_grad_a(a, x)


def random_gamma_grad(a: NestedLike, sample: NestedLike) -> Array:
    """How a gamma number moves with its parameter, at the same probability.

    Args:
        sample: array or number > 0: the gamma number.

    Returns: array of the common shape, of a float dtype.

    Source: Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients", 2018.

    Example:
        >>> weft.lax.random_gamma_grad(2.0, 1.0)
        Array(0.75077873, dtype=float32, weak_type=True)
    """
    return incomplete.random_gamma_grad(a, sample)


def betainc(a: NestedLike, b: NestedLike, x: NestedLike) -> Array:
    """The regularised incomplete beta function; see scipy.special.betainc.

    Args:
        b: array or number > 0.

    Returns: array of the common shape, of a float dtype.

    Source: Abramowitz & Stegun 26.5.8.

    Example:
        >>> weft.lax.betainc(2.0, 3.0, 0.5)
        Array(0.6875, dtype=float32, weak_type=True)
    """
    return incomplete.betainc(a, b, x)


def polygamma(m: NestedLike, x: NestedLike) -> Array:
    """The derivative of order m of digamma.

    Args:
        m: array or number, whole and >= 0.

    Returns: array of the common shape, of a float dtype.

    Source: Abramowitz & Stegun 6.4.10.

    Example:
        >>> weft.lax.polygamma(1.0, 2.0)
        Array(0.64493406, dtype=float32, weak_type=True)
    """
    return _zeta.polygamma(m, x)


def zeta(x: NestedLike, q: NestedLike) -> Array:
    """The zeta function of Hurwitz.

    Args:
        x: array or number > 1.
        q: array or number.

    Returns: array of the common shape, of a float dtype.

    Source: Abramowitz & Stegun 3.6.28.

    Example:
        >>> weft.lax.zeta(2.0, 1.0)
        Array(1.644934, dtype=float32, weak_type=True)
    """
    return _zeta.zeta(x, q)


_docs.complete(globals(), {"a": "array or number > 0.", "x": "array or number of any shape."}, arrays=True)
