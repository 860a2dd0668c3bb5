"""The error function and the normal distribution's, with their inverses."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._weft import Array
from ..custom import custom_jvp
from ..lax._primitives import normal_cdf
from ..numpy._reductions import narrowed, widened
from ..typing import NestedLike
from ._floats import _float, _unary

__all__ = [
    "erf",
    "erfc",
    "erfinv",
    "log_ndtr",
    "ndtr",
    "ndtri",
]

_ERF = "The error function: 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x."
erf = _unary(__name__, "erf", "erf", _ERF, "7.1.1", "[0.0, 1.0]", "[0.       , 0.8427008]")
erfc = _unary(
    __name__,
    "erfc",
    "erfc",
    "1 - erf(x), without cancellation.",
    "7.1.2",
    "[0.0, 3.0]",
    "[1.0000000e+00, 2.2090497e-05]",
)


def ndtr(x: NestedLike) -> Array:
    """The distribution function of the standard normal: erfc(-x / sqrt(2)) / 2.

    Returns: array of the shape of x, of a float dtype.

    Source: Abramowitz & Stegun 26.2.2 and 7.1.2.

    Example:
        >>> weft.scipy.special.ndtr(wnp.array([0.0, 1.96]))
        Array([0.5      , 0.9750021], dtype=float32)
    """
    return normal_cdf(_float(x))


def ndtri(p: NestedLike) -> Array:
    """The inverse of ndtr: the number below which a standard normal one lies with probability p.

    Args:
        p: array or number in [0, 1].

    Returns: array of the shape of p, of a float dtype, accurate to a few units in the last place also where p is tiny;
        NaN outside [0, 1].

    Source: M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", 1988, PPND16.

    Example:
        >>> weft.scipy.special.ndtri(wnp.array([0.5, 0.975]))
        Array([0.       , 1.9599642], dtype=float32)
    """
    p = _float(p)
    y = _normal_quantile()(widened(p))
    return y if y.dtype == p.dtype else y.astype(p.dtype)


# PPND16: numerator and denominator, highest power first, of polynomials in what _normal_quantile says.
_CENTRAL = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457)
    + (13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
    (5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867)
    + (5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0),
)
_MIDDLE = (
    (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258)
    + (3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459)
    + (0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0),
)
_TAIL = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093)
    + (0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772),
    (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4)
    + (0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0),
)


def _quotient(coefficients, x) -> Array:
    """The quotient of two polynomials."""
    numerator, denominator = (functools.reduce(lambda sum, c: sum * x + c, c) for c in coefficients)
    return numerator / denominator


def _quantile(q, rest) -> Array:
    """PPND16 at the probability 1/2 + q; `rest` is that beyond, on the nearer side."""
    central = q * _quotient(_CENTRAL, 0.180625 - q * q)
    r = wnp.sqrt(-wnp.log(rest))
    far = wnp.minimum(r, 28.0)  # subnormal numbers end before; the polynomials are not for infinity
    size = wnp.where(r <= 5, _quotient(_MIDDLE, r - 1.6), _quotient(_TAIL, far - 5))
    size = wnp.where(rest == 0, math.inf, size)
    return wnp.where(wnp.abs(q) <= 0.425, central, wnp.copysign(size, q))


def erfinv(x: NestedLike) -> Array:
    """The inverse of erf.

    Args:
        x: array or number in [-1, 1].

    Returns: array of the shape of x, of a float dtype; NaN outside [-1, 1].

    Source: erfinv(x) is ndtri((1 + x) / 2) / sqrt(2); see ndtri.

    Example:
        >>> weft.scipy.special.erfinv(wnp.array([0.0, 0.5]))
        Array([0.       , 0.4769362], dtype=float32)
    """
    x = _float(x)
    y = _erf_inverse()(widened(x))
    return y if y.dtype == x.dtype else y.astype(x.dtype)


@functools.cache
def _erf_inverse() -> Callable[[Array], Array]:
    """erfinv of 32 or 64 bits: in one kernel with what is around it, which the primitive erf_inv is not."""

    @functools.partial(custom_jvp, elementwise=True)
    def inverse(x):
        return _quantile(x / 2, (1 - wnp.abs(x)) / 2) / math.sqrt(2)

    @inverse.defjvp
    def rule(primals, tangents):
        y = inverse(*primals)
        return y, tangents[0] * (math.sqrt(math.pi) / 2 * wnp.exp(y * y))

    return inverse


@functools.cache
def _normal_quantile() -> Callable[[Array], Array]:
    """ndtri of 32 or 64 bits. Its derivative is the inverse of the density there, not that of the polynomials."""

    @functools.partial(custom_jvp, elementwise=True)
    def quantile(p):
        q = p - 0.5
        return _quantile(q, wnp.where(q < 0, p, 1 - p))

    @quantile.defjvp
    def rule(primals, tangents):
        y = quantile(*primals)
        return y, tangents[0] * (math.sqrt(2 * math.pi) * wnp.exp(y * y / 2))

    return quantile


def log_ndtr(x: NestedLike, series_order: int = 3) -> Array:
    """log(ndtr(x)), without underflow.

    Args:
        series_order: how many terms of the series are enough for the caller, 0 to 30; there are always as many as the
            precision takes.

    Returns: array of the shape of x, of a float dtype.

    Source: below -6 (float64: -15) the asymptotic series, Abramowitz & Stegun 26.2.12, with a relative error of about
        1e-7.

    Example:
        >>> weft.scipy.special.log_ndtr(wnp.array([0.0, -30.0]))
        Array([  -0.6931472, -454.32123  ], dtype=float32)
    """
    if not isinstance(series_order, int):
        raise type_error(f"log_ndtr: series_order must be a Python integer, got {series_order!r}")
    if not 0 <= series_order <= 30:
        raise value_error(f"log_ndtr: series_order must be between 0 and 30, got {series_order}")
    given = _float(x)
    x = widened(given)
    edge = -15.0 if x.dtype == "float64" else -6.0
    tail_of_near = ndtr(wnp.where(x > edge, wnp.where(x > 0, -x, x), 0))
    near = wnp.log(wnp.where(x > 0, 1, tail_of_near))  # above 0 not looked at, nor its slope
    far = wnp.where(x > edge, edge, x)
    term, series = 1.0, 1.0
    for k in range(1, 8):
        term = -term * (2 * k - 1) / (far * far)
        series = series + term
    tail = -0.5 * far * far - wnp.log(-far) - 0.5 * math.log(2 * math.pi) + wnp.log(series)
    return narrowed(wnp.where(x > 0, wnp.log1p(-tail_of_near), wnp.where(x > edge, near, tail)), given.dtype)


_PARAMETERS = {
    "a": "array or number of any shape.",
    "p": "array or number of any shape.",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
