"""Special functions. Formulas are from Abramowitz and Stegun, "Handbook of mathematical functions", unless named."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import _docs, _weft
from .. import numpy as wnp
from .._errors import not_implemented, value_error
from .._weft import Array
from ..nn import log_softmax as _log_softmax
from ..nn import logsumexp as _logsumexp
from ..nn import sigmoid as expit
from ..nn import softmax as _softmax
from ..numpy._polynomials import _bessel_i0e, i0
from ..numpy._reductions import widened
from ..typing import ArrayLike, NestedLike

__all__ = [
    "beta",
    "betaln",
    "boxcox",
    "boxcox1p",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "expit",
    "factorial",
    "gamma",
    "gammaln",
    "gammasgn",
    "i0",
    "i0e",
    "kl_div",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "ndtri",
    "poch",
    "rel_entr",
    "softmax",
    "xlog1py",
    "xlogy",
]


def _float(x) -> Array:
    return _weft.promote_inexact(wnp.asarray(x))


def _floats(*xs) -> tuple[Array, ...]:
    """Arrays of the float dtype that the arguments have together: Python's numbers are rounded to that alone."""
    return _weft.promote_all_inexact(*[wnp.asarray(x) if isinstance(x, (list, tuple)) else x for x in xs])


def _unary(prim: str, name: str, what: str, source: str, argument: str, result: str):
    def function(x: NestedLike) -> Array:
        return _weft.bind_elementwise(prim, (_float(x),), {})

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{what}

    Returns: array of the shape of x, of a float dtype.

    Source: Abramowitz & Stegun {source}.

    Example:
        >>> weft.scipy.special.{name}(wnp.array({argument}))
        Array({result}, dtype=float32)
    """
    return function


_ERF = "The error function: 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x."
erf = _unary("erf", "erf", _ERF, "7.1.1", "[0.0, 1.0]", "[0.       , 0.8427008]")
erfc = _unary(
    "erfc", "erfc", "1 - erf(x), without cancellation.", "7.1.2", "[0.0, 3.0]", "[1.0000000e+00, 2.2090497e-05]"
)
digamma = _unary(
    "digamma", "digamma", "The derivative of gammaln.", "6.3.1", "[1.0, 2.0]", "[-0.5772157 ,  0.42278433]"
)
gammaln = _unary("lgamma", "gammaln", "The logarithm of |gamma(x)|.", "6.1", "[1.0, 5.0]", "[0.       , 3.1780539]")


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


def gamma(x: NestedLike) -> Array:
    """The gamma function: negative between odd and even negative integers, NaN at them.

    Returns: array of the shape of x, of a float dtype.

    Source: Abramowitz & Stegun 6.1.1 and 6.1.17.

    Example:
        >>> weft.scipy.special.gamma(wnp.array([5.0, 0.5]))
        Array([24.       ,  1.7724538], dtype=float32)
    """
    x = _float(x)
    return gammasgn(x) * wnp.exp(gammaln(x))


def factorial(n: NestedLike, exact: bool = False) -> Array:
    """n! = gamma(n + 1); 0 for negative n.

    Args:
        n: array or number of any shape.
        exact: must be False.

    Returns: array of the shape of n, of a float dtype.

    Raises:
        NotImplementedError: exact is True.

    Source: Abramowitz & Stegun 6.1.5.

    Example:
        >>> wnp.round(weft.scipy.special.factorial(wnp.array([3.0, 5.0])), 2)
        Array([  6., 120.], dtype=float32)
    """
    if exact:
        raise not_implemented("factorial: exact=True")
    n = _float(n)
    return wnp.where(n < 0, 0, wnp.exp(gammaln(n + 1)))


def betaln(a: NestedLike, b: NestedLike) -> Array:
    """The logarithm of the beta function: gammaln(a) + gammaln(b) - gammaln(a + b).

    Args:
        a: array or number of any shape, > 0.
        b: array or number that broadcasts against a, > 0.

    Returns: array of the common shape, of a float dtype.

    Source: Abramowitz & Stegun 6.2.2.

    Example:
        >>> weft.scipy.special.betaln(2.0, 3.0)
        Array(-2.4849067, dtype=float32, weak_type=True)
    """
    a, b = _floats(a, b)
    a, b = wnp.minimum(a, b), wnp.maximum(a, b)
    far = (b >= _FAR) & (a + b >= _FAR) & (a > -0.5 * b)
    # The gamma functions of large numbers are large, and what they differ by is not. Stirling's formulas are divided by
    # hand.
    x, y = wnp.where(far, a, _FAR), wnp.where(far, b, _FAR)
    both = x >= _FAR
    small, large = wnp.where(both, 1.0, x), wnp.where(both, x, _FAR)
    of_large = _stirling_rest(y) - _stirling_rest(x + y)
    apart = gammaln(small) + of_large + small - (y - 0.5) * wnp.log1p(small / y) - small * wnp.log(small + y)
    ratio = large / y
    together = (
        0.5 * math.log(2 * math.pi)
        - 0.5 * wnp.log(y)
        + _stirling_rest(large)
        + of_large
        + (large - 0.5) * wnp.log(ratio / (1 + ratio))
        - y * wnp.log1p(ratio)
    )
    p, q = wnp.where(far, 1.0, a), wnp.where(far, 1.0, b)
    return wnp.where(far, wnp.where(both, together, apart), gammaln(p) + gammaln(q) - gammaln(p + q))


_FAR = 8.0


def _stirling_rest(x: Array) -> Array:
    """gammaln(x) less Stirling's formula, for x >= 8 (Abramowitz & Stegun 6.1.41)."""
    terms = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400]
    square: Array = 1 / (x * x)
    total: Array | float = 0.0
    for term in reversed(terms):
        total = total * square + term
    return total / x


def beta(a: NestedLike, b: NestedLike) -> Array:
    """The beta function: gamma(a) gamma(b) / gamma(a + b).

    Args:
        b: array or number that broadcasts against a.

    Returns: array of the common shape, of a float dtype.

    Source: Abramowitz & Stegun 6.2.2.

    Example:
        >>> wnp.round(weft.scipy.special.beta(2.0, 3.0), 5)
        Array(0.08333, dtype=float32)
    """
    a, b = _floats(a, b)
    most = wnp.maximum(wnp.maximum(abs(a), abs(b)), abs(a + b))
    near = most < (20 if wnp.finfo(most.dtype).bits > 16 else 8)  # no gamma function of the three overflows
    x, y = wnp.where(near, a, 1.0), wnp.where(near, b, 1.0)
    sign = gammasgn(a) * gammasgn(b) * gammasgn(a + b)
    return wnp.where(near, gamma(x) * gamma(y) / gamma(x + y), sign * wnp.exp(betaln(a, b)))


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
    return wnp.where(left_out, 0, x * wnp.log(wnp.where(left_out, 1, y)))


def xlog1py(x: NestedLike, y: NestedLike) -> Array:
    """x log(1 + y), and 0 where x is 0. The derivative by x is log(1 + y), where that is finite at 0 too; else 0 there.

    Returns: array of the common shape, of a float dtype.

    Example:
        >>> weft.scipy.special.xlog1py(wnp.array([0.0, 2.0]), wnp.array([-1.0, 1.0]))
        Array([0.       , 1.3862944], dtype=float32)
    """
    x, y = _floats(x, y)
    left_out = (x == 0) & ((y <= -1) | (y == float("inf")))
    return wnp.where(left_out, 0, x * wnp.log1p(wnp.where(left_out, 0, y)))


def entr(x: NestedLike) -> Array:
    """The summand of entropy: -x log(x), 0 at 0, -inf below. The derivative at 0 is inf.

    Returns: array of the shape of x, of a float dtype.

    Example:
        >>> weft.scipy.special.entr(wnp.array([0.0, 0.5]))
        Array([0.       , 0.3465736], dtype=float32)
    """
    x = _float(x)
    inside = wnp.where(x <= 0, 1, x)
    # sqrt at 0: the value 0, and infinite derivatives of the signs that those of -x log(x) have.
    at_most_0 = wnp.where(x < 0, float("-inf"), wnp.sqrt(wnp.where(x == 0, wnp.abs(x), 1)))
    return wnp.where(x <= 0, at_most_0, -inside * wnp.log(inside))


def rel_entr(p: NestedLike, q: NestedLike) -> Array:
    """The summand of relative entropy: p log(p / q), 0 where p is 0 and q >= 0, inf where it is not defined.

    Returns: array of the common shape, of a float dtype.

    Example:
        >>> weft.scipy.special.rel_entr(wnp.array([0.0, 0.5]), wnp.array([0.5, 0.25]))
        Array([0.       , 0.3465736], dtype=float32)
    """
    p, q = _floats(p, q)
    both, zero = (p > 0) & (q > 0), (p == 0) & (q >= 0)
    p1, q1 = wnp.where(both, p, 1), wnp.where(both, q, 1)
    outside = wnp.where(wnp.isnan(p) | wnp.isnan(q), float("nan"), float("inf"))
    return wnp.where(both, p1 * (wnp.log(p1) - wnp.log(q1)), wnp.where(zero, 0, outside))


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


def ndtr(x: NestedLike) -> Array:
    """The distribution function of the standard normal: erfc(-x / sqrt(2)) / 2.

    Returns: array of the shape of x, of a float dtype.

    Source: Abramowitz & Stegun 26.2.2 and 7.1.2.

    Example:
        >>> weft.scipy.special.ndtr(wnp.array([0.0, 1.96]))
        Array([0.5      , 0.9750021], dtype=float32)
    """
    return 0.5 * erfc(-_float(x) / math.sqrt(2))


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
    from ..custom import custom_jvp

    @custom_jvp
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
    from ..custom import custom_jvp

    @custom_jvp
    def quantile(p):
        q = p - 0.5
        return _quantile(q, wnp.where(q < 0, p, 1 - p))

    @quantile.defjvp
    def rule(primals, tangents):
        y = quantile(*primals)
        return y, tangents[0] * (math.sqrt(2 * math.pi) * wnp.exp(y * y / 2))

    return quantile


def log_ndtr(x: NestedLike) -> Array:
    """log(ndtr(x)), without underflow.

    Returns: array of the shape of x, of a float dtype.

    Source: below -6 (float64: -15) the asymptotic series, Abramowitz & Stegun 26.2.12, with a relative error of about
        1e-7.

    Example:
        >>> weft.scipy.special.log_ndtr(wnp.array([0.0, -30.0]))
        Array([  -0.6931472, -454.32123  ], dtype=float32)
    """
    x = _float(x)
    edge = -15.0 if x.dtype == "float64" else -6.0
    tail_of_near = ndtr(wnp.where(x > edge, wnp.where(x > 0, -x, x), 0))
    near = wnp.log(wnp.where(x > 0, 1, tail_of_near))  # above 0 not looked at, nor its slope
    far = wnp.where(x > edge, edge, x)
    term, series = 1.0, 1.0
    for k in range(1, 8):
        term = -term * (2 * k - 1) / (far * far)
        series = series + term
    tail = -0.5 * far * far - wnp.log(-far) - 0.5 * math.log(2 * math.pi) + wnp.log(series)
    return wnp.where(x > 0, wnp.log1p(-tail_of_near), wnp.where(x > edge, near, tail))


def i0e(x: NestedLike) -> Array:
    """exp(-|x|) i0(x): the modified Bessel function of order 0, scaled.

    Returns: array of the shape of x, of a float dtype.

    Source: Abramowitz & Stegun 9.6.12 for |x| <= 30 (float32: 10), 9.7.1 beyond.

    Example:
        >>> weft.scipy.special.i0e(wnp.array([0.0, 100.0]))
        Array([1.        , 0.03994438], dtype=float32)
    """
    return _bessel_i0e(_float(x))


def gammasgn(x: NestedLike) -> Array:
    """The sign of the gamma function; NaN at negative integers and NaN, that of the zero at 0.

    Returns: array of the shape of x, of a float dtype.

    Source: Abramowitz & Stegun 6.1.17.

    Example:
        >>> weft.scipy.special.gammasgn(wnp.array([2.0, -0.5, -1.5]))
        Array([ 1., -1.,  1.], dtype=float32)
    """
    x = _float(x)
    below = wnp.floor(x)
    sign = wnp.where(x == 0, wnp.copysign(1, x), wnp.where((x < 0) & (below % 2 != 0), -1, 1)).astype(x.dtype)
    return wnp.where(wnp.isnan(x) | ((x < 0) & (below == x)), float("nan"), sign)


def multigammaln(a: NestedLike, d: int) -> Array:
    """The logarithm of the multivariate gamma function.

    Args:
        a: array or number > (d - 1) / 2.
        d: the number of dimensions.

    Returns: array of the shape of a, of a float dtype.

    Raises:
        ValueError: d is not positive.

    Source: Muirhead, "Aspects of multivariate statistical theory", 1982, theorem 2.1.12.

    Example:
        >>> weft.scipy.special.multigammaln(3.0, 2)
        Array(1.550195, dtype=float32, weak_type=True)
    """
    if d < 1:
        raise value_error(f"multigammaln: d must be positive, got {d}")
    a = _float(a)
    out = 0.25 * d * (d - 1) * math.log(math.pi) + 0 * a
    for j in range(d):
        out = out + gammaln(a - 0.5 * j)
    return out


def poch(z: NestedLike, m: NestedLike) -> Array:
    """The rising factorial gamma(z + m) / gamma(z).

    Args:
        z: array or number of any shape.
        m: array or number that broadcasts against z.

    Returns: array of the common shape, of a float dtype.

    Source: Abramowitz & Stegun 6.1.22.

    Example:
        >>> wnp.round(weft.scipy.special.poch(2.0, 3.0), 3)
        Array(24., dtype=float32)
    """
    a, m = _floats(z, m)
    # 1 for m = 0 by the formula itself, so that its derivatives are right there; but at poles of gamma.
    pole = (m == 0) & (a <= 0) & (wnp.floor(a) == a)
    a = wnp.where(pole, 1, a)
    return wnp.where(pole, 1, gammasgn(a + m) * gammasgn(a) * wnp.exp(gammaln(a + m) - gammaln(a)))


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
