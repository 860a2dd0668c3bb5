"""Special functions. Formulas are from Abramowitz and Stegun, "Handbook of mathematical functions", unless named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import numpy as wnp
from .._core import docs as _docs
from .._core.names import belong_to as _belong_to
from .._special.logarithmic import p_log_ratio, x_log1p_y, x_log_x, x_log_y
from .._weft import Array
from ..nn import log_softmax as _log_softmax
from ..nn import logsumexp as _logsumexp
from ..nn import sigmoid as expit
from ..nn import softmax as _softmax
from ..numpy._bessel import scaled_modified_bessel
from ..numpy._polynomials import i0
from ..numpy._reductions import narrowed, widened
from ..typing import ArrayLike, NestedLike
from ._floats import _float, _floats
from ._gamma import beta, betaln, digamma, factorial, gamma, gammaln, gammasgn, multigammaln, poch
from ._hypergeometric import hyp1f1, hyp2f1, loggamma, owens_t, spence, sph_harm_y
from ._incomplete import bernoulli, bessel_jn, betainc, comb, gammainc, gammaincc, i1, i1e, polygamma, zeta
from ._integrals import dawsn, erfcx, exp1, expi, expn, fresnel, sici, wofz
from ._legendre import lpmn, lpmn_values
from ._normal import erf, erfc, erfinv, log_ndtr, ndtr, ndtri

__all__ = [
    "bernoulli",
    "bessel_jn",
    "beta",
    "betainc",
    "betaln",
    "boxcox",
    "boxcox1p",
    "comb",
    "dawsn",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp1",
    "expi",
    "expit",
    "expn",
    "factorial",
    "fresnel",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "gammasgn",
    "hyp1f1",
    "hyp2f1",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "kl_div",
    "log_ndtr",
    "log_softmax",
    "loggamma",
    "logit",
    "logsumexp",
    "lpmn",
    "lpmn_values",
    "multigammaln",
    "ndtr",
    "ndtri",
    "owens_t",
    "poch",
    "polygamma",
    "rel_entr",
    "sici",
    "softmax",
    "spence",
    "sph_harm_y",
    "wofz",
    "xlog1py",
    "xlogy",
    "zeta",
]


def logsumexp(
    a: NestedLike,
    axis: int | Sequence[int] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: NestedLike | None = None,
) -> Any:
    """log(sum(b exp(a))) over axes without overflow; see weft.nn.logsumexp.

    Args:
        axis: an axis or a tuple of axes, negative from the end; None: all of them.
        b: array of factors that broadcasts against a; None: 1.
        return_sign: whether to return the logarithm of the sum's size, and its sign.

    Returns: array without the axes, of a float dtype; with return_sign a pair of them.

    Example:
        >>> weft.scipy.special.logsumexp(wnp.array([1000.0, 1000.0]))
        Array(1000.6932, dtype=float32)
    """
    return _logsumexp(a, axis, b, keepdims, return_sign, where)


def softmax(x: NestedLike, axis: int | Sequence[int] | None = None) -> Array:
    """exp(x) / sum(exp(x)) over axes, without overflow; nn.softmax with SciPy's default: all of them.

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> weft.scipy.special.softmax(wnp.zeros((2, 2)))
        Array([[0.25, 0.25],
               [0.25, 0.25]], dtype=float32)
    """
    return _softmax(x, axis)


def log_softmax(x: NestedLike, axis: int | Sequence[int] | None = None) -> Array:
    """log(softmax(x)) over axes, without overflow; nn.log_softmax with SciPy's default: all of them.

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> weft.scipy.special.log_softmax(wnp.zeros((2, 2)))
        Array([[-1.3862944, -1.3862944],
               [-1.3862944, -1.3862944]], dtype=float32)
    """
    return _log_softmax(x, axis)


def logit(x: NestedLike) -> Array:
    """log(x / (1 - x)), the inverse of expit.

    Args:
        x: array or number in (0, 1).

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> weft.scipy.special.logit(wnp.array([0.5, 0.9]))
        Array([0.       , 2.1972244], dtype=float32)
    """
    x = _float(x)
    # Near 1/2 both logarithms are alike.
    middle = wnp.abs(x - 0.5) < 0.25
    inside, outside = wnp.where(middle, x, 0.5), wnp.where(middle, 0.25, x)
    near = wnp.log1p((2 * inside - 1) / (1 - inside))
    return wnp.where(middle, near, wnp.log(outside) - wnp.log1p(-outside))


def xlogy(x: NestedLike, y: NestedLike) -> Array:
    """x log(y), and 0 where x is 0. The derivative by x is log(y), where that is finite at 0 too; else 0 there.

    Returns: array of the common shape, of a float dtype.

    Example:
        >>> weft.scipy.special.xlogy(wnp.array([0.0, 2.0]), wnp.array([0.0, 3.0]))
        Array([0.       , 2.1972246], dtype=float32)
    """
    x, y = _floats(x, y)
    # Left out is only what is not finite, so that the derivative by x is log(y) at 0 too.
    left_out = (x == 0) & ((y <= 0) | (y == float("inf")))
    return wnp.where(left_out, 0, x_log_y()(x, wnp.where(left_out, 1, y)))


def xlog1py(x: NestedLike, y: NestedLike) -> Array:
    """x log(1 + y), and 0 where x is 0. The derivative by x is log(1 + y), where that is finite at 0 too; else 0 there.

    Returns: array of the common shape, of a float dtype.

    Example:
        >>> weft.scipy.special.xlog1py(wnp.array([0.0, 2.0]), wnp.array([-1.0, 1.0]))
        Array([0.       , 1.3862944], dtype=float32)
    """
    x, y = _floats(x, y)
    left_out = (x == 0) & ((y <= -1) | (y == float("inf")))
    return wnp.where(left_out, 0, x_log1p_y()(x, wnp.where(left_out, 0, y)))


def entr(x: NestedLike) -> Array:
    """The summand of entropy: -x log(x), 0 at 0, -inf below. The derivative at 0 is inf.

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> weft.scipy.special.entr(wnp.array([0.0, 0.5]))
        Array([0.       , 0.3465736], dtype=float32)
    """
    given = _float(x)
    x = widened(given)
    inside = wnp.where(x <= 0, 1, x)
    # sqrt at 0: the value 0, and infinite derivatives of the signs that those of -x log(x) have.
    at_most_0 = wnp.where(x < 0, float("-inf"), wnp.sqrt(wnp.where(x == 0, wnp.abs(x), 1)))
    return narrowed(wnp.where(x <= 0, at_most_0, -x_log_x()(inside)), given.dtype)


def rel_entr(p: NestedLike, q: NestedLike) -> Array:
    """The summand of relative entropy: p log(p / q), 0 where p is 0 and q >= 0, inf where it is not defined.

    Returns: array of the common shape, of a float dtype.

    Example:
        >>> weft.scipy.special.rel_entr(wnp.array([0.0, 0.5]), wnp.array([0.5, 0.25]))
        Array([0.       , 0.3465736], dtype=float32)
    """
    p, q = _floats(p, q)
    dtype, p, q = p.dtype, widened(p), widened(q)
    both, zero = (p > 0) & (q > 0), (p == 0) & (q >= 0)
    p1, q1 = wnp.where(both, p, 1), wnp.where(both, q, 1)
    outside = wnp.where(wnp.isnan(p) | wnp.isnan(q), float("nan"), float("inf"))
    summand = wnp.where(both, p_log_ratio()(p1, q1), wnp.where(zero, 0, outside))
    return narrowed(summand, dtype)


def kl_div(p: NestedLike, q: NestedLike) -> Array:
    """The summand of the Kullback-Leibler divergence: rel_entr(p, q) - p + q.

    Returns: array of the common shape, of a float dtype.

    Source: Boyd and Vandenberghe, "Convex optimization", 2004, page 90.

    Example:
        >>> weft.scipy.special.kl_div(0.5, 0.25)
        Array(0.09657359, dtype=float32, weak_type=True)
    """
    p, q = _floats(p, q)
    return rel_entr(p, q) - p + q


def i0e(x: NestedLike) -> Array:
    """exp(-|x|) i0(x): the modified Bessel function of order 0, scaled.

    Returns: array of the shape of x, of a float dtype.

    Source: Abramowitz & Stegun 9.6.12 for |x| <= 30 (float32: 10), 9.7.1 beyond.

    Example:
        >>> weft.scipy.special.i0e(wnp.array([0.0, 100.0]))
        Array([1.        , 0.03994438], dtype=float32)
    """
    return scaled_modified_bessel(0, _float(x))


def _power_transform(log: Array, lmbda: Array) -> Array:
    """(exp(lmbda log) - 1) / lmbda; where lmbda log is near 0 by the power series, right in its derivatives too."""
    # Where the logarithm is the result and not finite, the rest must not see it.
    alone = (lmbda == 0) & ~wnp.isfinite(log)
    finite = wnp.where(alone, 0, log)
    u = finite * lmbda
    near = (wnp.abs(u) < 0.5) & ~alone
    inside: Array = wnp.where(near, u, 0)
    series: Array | float = 1.0
    for k in range(18, 1, -1):
        series = 1 + series * inside / k
    safe = wnp.where((lmbda == 0) | near, 1, lmbda)
    beyond = wnp.where(lmbda == 0, log, wnp.expm1(wnp.where(near, 0, u)) / safe)
    return wnp.where(near, finite * series, beyond)


def boxcox(x: NestedLike, lmbda: NestedLike) -> Array:
    """The Box-Cox transform: (x^lmbda - 1) / lmbda, and log(x) for lmbda = 0.

    Args:
        x: array or number > 0.

    Returns: array of the common shape, of a float dtype.

    Source: Box and Cox, "An analysis of transformations", 1964.

    Example:
        >>> weft.scipy.special.boxcox(wnp.array([1.0, 4.0]), 0.5)
        Array([0., 2.], dtype=float32)
    """
    x, lmbda = _floats(x, lmbda)
    return _power_transform(wnp.log(x), lmbda)


def boxcox1p(x: NestedLike, lmbda: NestedLike) -> Array:
    """The Box-Cox transform of 1 + x, without cancellation near 0.

    Args:
        x: array or number > -1.

    Returns: array of the common shape, of a float dtype.

    Source: Box and Cox, "An analysis of transformations", 1964.

    Example:
        >>> weft.scipy.special.boxcox1p(wnp.array([0.0, 3.0]), 0.5)
        Array([0., 2.], dtype=float32)
    """
    x, lmbda = _floats(x, lmbda)
    return _power_transform(wnp.log1p(x), lmbda)


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "a": "array or number of any shape.",
    "lmbda": "array or number that broadcasts against x.",
    "p": "array or number of any shape.",
    "q": "array or number that broadcasts against p.",
    "y": "array or number that broadcasts against x.",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
_belong_to(globals(), beta, betaln, digamma, factorial, gamma, gammaln, gammasgn, multigammaln, poch)
_belong_to(globals(), erf, erfc, erfinv, log_ndtr, ndtr, ndtri)
_belong_to(globals(), hyp1f1, hyp2f1, loggamma, owens_t, spence, sph_harm_y)
_belong_to(globals(), bernoulli, bessel_jn, betainc, comb, gammainc, gammaincc, i1, i1e, polygamma, zeta)
_belong_to(globals(), lpmn, lpmn_values)
_belong_to(globals(), dawsn, erfcx, exp1, expi, expn, fresnel, sici, wofz)
