"""Integrals of elementary functions: exponential, sine, cosine, Fresnel's, Dawson's, and error functions, scaled."""

from __future__ import annotations

from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import type_error
from .._special import exponential
from .._weft import Array
from ..typing import NestedLike
from ._floats import _float, _floats
from ._gamma import gammaln
from ._incomplete import gammaincc

__all__ = ["dawsn", "erfcx", "exp1", "expi", "expn", "fresnel", "sici", "wofz"]


def exp1(x: NestedLike) -> Array:
    """The exponential integral E_1: the integral of exp(-t) / t from x on; below 0 its real part.

    Returns: array of the shape of x, of a float dtype; inf at 0.

    Source: Abramowitz & Stegun 5.1.11 below 1, 5.1.22 above.

    Example:
        >>> weft.scipy.special.exp1(wnp.array([0.5, 2.0]))
        Array([0.55977356, 0.04890054], dtype=float32)
    """
    return exponential.exp1(x)


def expi(x: NestedLike) -> Array:
    """The exponential integral Ei: the principal value of the integral of exp(t) / t up to x.

    Returns: array of the shape of x, of a float dtype; -inf at 0.

    Source: Abramowitz & Stegun 5.1.10 below 40 (float32: 20), 5.1.51 above; -E_1(-x) below 0.

    Example:
        >>> weft.scipy.special.expi(wnp.array([0.5, 2.0]))
        Array([0.45421994, 4.954234  ], dtype=float32)
    """
    return exponential.expi(x)


def expn(n: NestedLike, x: NestedLike) -> Array:
    """The exponential integral E_n: the integral of exp(-x t) / t^n from 1 on.

    Args:
        n: array or number, whole; it has no derivative.
        x: array or number >= 0 that broadcasts against n.

    Returns: array of the common shape, of a float dtype; NaN below 0.

    Source: Abramowitz & Stegun 5.1.12 below 1, 5.1.22 above.

    Example:
        >>> weft.scipy.special.expn(2, wnp.array([0.5, 2.0]))
        Array([0.32664388, 0.03753424], dtype=float32)
    """
    orders = n if isinstance(n, Array) else wnp.asarray(n)
    if not _weft.is_traced(orders) and not bool(wnp.any(orders < 0)):
        return exponential.expn(n, x)
    n = orders
    # Below 0 it is an incomplete gamma function (DLMF 8.19.1): Gamma(1 - n, x) / x^(1 - n).
    (x,) = _floats(x)
    order = wnp.where(n < 0, 1 - n, 1).astype(x.dtype)
    below = gammaincc(order, x) * wnp.exp(gammaln(order) - order * wnp.log(x))
    return wnp.where(n < 0, below, exponential.expn(wnp.where(n < 0, 1, n), x))


def sici(x: NestedLike) -> tuple[Array, Array]:
    """The sine and cosine integrals: of sin(t) / t from 0 to x, and minus that of cos(t) / t from x on.

    Returns: pair of arrays of the shape of x, of a float dtype; the cosine integral is -inf at 0, and even: below it
        is the real part of the complex one.

    Source: Abramowitz & Stegun 5.2.14 and 5.2.16 below 2, 5.2.21 and 5.1.22 above.

    Example:
        >>> weft.scipy.special.sici(wnp.array([1.0]))
        (Array([0.946083], dtype=float32), Array([0.33740395], dtype=float32))
    """
    (x,) = _floats(x)
    if wnp.issubdtype(x.dtype, wnp.complexfloating):
        raise type_error(f"sici: x must be real, got dtype {x.dtype}")
    return exponential.sine_integral(x), exponential.cosine_integral(x)


def fresnel(x: NestedLike) -> tuple[Array, Array]:
    """Fresnel's integrals: of sin(pi t^2 / 2) and of cos(pi t^2 / 2) from 0 to x.

    Returns: pair of arrays of the shape of x, of a float dtype.

    Source: Abramowitz & Stegun 7.3.11 and 7.3.13 below 1.5, 7.3.22 and 7.1.14 above.

    Example:
        >>> weft.scipy.special.fresnel(wnp.array([1.0]))
        (Array([0.43825915], dtype=float32), Array([0.7798934], dtype=float32))
    """
    return exponential.fresnel_s(x), exponential.fresnel_c(x)


def dawsn(x: NestedLike) -> Array:
    """Dawson's integral: exp(-x^2) times the integral of exp(t^2) from 0 to x.

    Returns: array of the shape of x, of a float dtype.

    Source: G. B. Rybicki, "Dawson's integral and the sampling theorem", Computers in Physics 3, 1989.

    Example:
        >>> weft.scipy.special.dawsn(wnp.array([0.5, 10.0]))
        Array([0.42443642, 0.05025386], dtype=float32)
    """
    return exponential.dawsn(x)


def erfcx(x: NestedLike) -> Array:
    """exp(x^2) erfc(x), without underflow; of complex numbers, too.

    Returns: array of the shape of x, of a float or complex dtype.

    Source: Abramowitz & Stegun 7.1.14 above 2; of complex numbers as wofz.

    Example:
        >>> weft.scipy.special.erfcx(wnp.array([0.0, 100.0]))
        Array([1.        , 0.00564161], dtype=float32)
    """
    x = _float(x)
    if wnp.issubdtype(x.dtype, wnp.complexfloating):
        return exponential.wofz(1j * x.astype("complex128")).astype(x.dtype)
    return exponential.erfcx(x)


def wofz(z: NestedLike) -> Array:
    """The Faddeeva function exp(-z^2) erfc(-i z).

    Args:
        z: array or number of any shape, complex ones too.

    Returns: array of the shape of z, of a complex dtype.

    Source: J. A. C. Weideman, "Computation of the complex error function", SIAM J. Numer. Anal. 31, 1994.

    Example:
        >>> weft.scipy.special.wofz(wnp.array([0.0, 1.0 + 1.0j]))
        Array([1.0000001+0.j        , 0.3047442+0.20821896j], dtype=complex64)
    """
    return exponential.wofz(z)


_docs.complete(globals(), {"x": "array or number of any shape."}, arrays=True)
