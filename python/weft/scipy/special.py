"""Special functions. Formulas are from Abramowitz and Stegun, "Handbook of mathematical functions", unless named."""

from __future__ import annotations

import math

from .. import _weft
from .. import numpy as wnp
from .._weft import Array
from ..nn import log_softmax, softmax
from ..nn import logsumexp as _logsumexp
from ..nn import sigmoid as expit
from ..numpy._polynomials import _bessel_i0e, i0

__all__ = [
    "beta",
    "betaln",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "expit",
    "factorial",
    "gamma",
    "gammaln",
    "i0",
    "i0e",
    "kl_div",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "ndtr",
    "ndtri",
    "rel_entr",
    "softmax",
    "xlog1py",
    "xlogy",
]


def _float(x) -> Array:
    return _weft.promote_inexact(wnp.asarray(x))


def _unary(prim: str, name: str, doc: str):
    def function(x) -> Array:
        return _weft.bind_elementwise(prim, (_float(x),), {})

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


erf = _unary("erf", "erf", "The error function 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x.")
erfc = _unary("erfc", "erfc", "1 - erf(x), without cancellation.")
erfinv = _unary("erf_inv", "erfinv", "The inverse of erf.")
digamma = _unary("digamma", "digamma", "The derivative of gammaln.")
gammaln = _unary("lgamma", "gammaln", "log |gamma(x)|.")


def logsumexp(a, axis=None, b=None, keepdims: bool = False, return_sign: bool = False, where=None):
    """See weft.nn.logsumexp."""
    return _logsumexp(a, axis, b, keepdims, return_sign, where)


def gamma(x) -> Array:
    """The gamma function; negative between odd and even negative integers, NaN at them."""
    x = _float(x)
    below = wnp.floor(x)
    sign = wnp.where((x < 0) & (below % 2 != 0), -1, 1).astype(x.dtype)
    value = sign * wnp.exp(gammaln(x))
    return wnp.where((x < 0) & (below == x), float("nan"), value)


def factorial(n, exact: bool = False) -> Array:
    """n! = gamma(n + 1); 0 for negative n."""
    if exact:
        raise NotImplementedError("factorial: exact=True")
    n = _float(n)
    return wnp.where(n < 0, 0, wnp.exp(gammaln(n + 1)))


def betaln(a, b) -> Array:
    """log of the beta function: gammaln(a) + gammaln(b) - gammaln(a + b)."""
    a, b = _float(a), _float(b)
    return gammaln(a) + gammaln(b) - gammaln(a + b)


def beta(a, b) -> Array:
    """The beta function gamma(a) gamma(b) / gamma(a + b)."""
    a, b = _float(a), _float(b)
    return gamma(a) * gamma(b) / gamma(a + b)


def logit(x) -> Array:
    """log(x / (1 - x)), the inverse of expit."""
    x = _float(x)
    return wnp.log(x) - wnp.log1p(-x)


def xlogy(x, y) -> Array:
    """x log(y), 0 where x is 0."""
    x, y = _float(x), _float(y)
    return wnp.where(x == 0, 0, x * wnp.log(wnp.where(x == 0, 1, y)))


def xlog1py(x, y) -> Array:
    """x log(1 + y), 0 where x is 0."""
    x, y = _float(x), _float(y)
    return wnp.where(x == 0, 0, x * wnp.log1p(wnp.where(x == 0, 0, y)))


def entr(x) -> Array:
    """-x log(x); 0 at 0, -inf below."""
    x = _float(x)
    return wnp.where(x < 0, float("-inf"), -xlogy(wnp.where(x < 0, 1, x), wnp.where(x < 0, 1, x)))


def rel_entr(p, q) -> Array:
    """p log(p / q); 0 where p is 0 and q >= 0, inf where it is not defined."""
    p, q = _float(p), _float(q)
    both, zero = (p > 0) & (q > 0), (p == 0) & (q >= 0)
    p1, q1 = wnp.where(both, p, 1), wnp.where(both, q, 1)
    return wnp.where(both, p1 * (wnp.log(p1) - wnp.log(q1)), wnp.where(zero, 0, float("inf")))


def kl_div(p, q) -> Array:
    """rel_entr(p, q) - p + q."""
    p, q = _float(p), _float(q)
    return rel_entr(p, q) - p + q


def ndtr(x) -> Array:
    """The distribution function of the standard normal: erfc(-x / sqrt(2)) / 2."""
    return 0.5 * erfc(-_float(x) / math.sqrt(2))


def ndtri(p) -> Array:
    """The inverse of ndtr."""
    return math.sqrt(2) * erfinv(2 * _float(p) - 1)


def log_ndtr(x) -> Array:
    """log(ndtr(x)). Below -6 (float64: -15) by the asymptotic series 26.2.12, with a relative error of about 1e-7."""
    x = _float(x)
    edge = -15.0 if x.dtype == "float64" else -6.0
    near = wnp.log(ndtr(wnp.where(x > edge, x, 0)))
    far = wnp.where(x > edge, edge, x)
    term, series = 1.0, 1.0
    for k in range(1, 8):
        term = -term * (2 * k - 1) / (far * far)
        series = series + term
    tail = -0.5 * far * far - wnp.log(-far) - 0.5 * math.log(2 * math.pi) + wnp.log(series)
    upper = wnp.log1p(-ndtr(-wnp.where(x > 0, x, 0)))
    return wnp.where(x > 0, upper, wnp.where(x > edge, near, tail))


def i0e(x) -> Array:
    """exp(-|x|) i0(x)."""
    return _bessel_i0e(wnp.abs(_float(x)))
