"""The gamma function and its relatives."""

from __future__ import annotations

import math

from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import not_implemented, value_error
from .._weft import Array
from ..typing import NestedLike
from ._floats import _float, _floats, _unary

__all__ = [
    "beta",
    "betaln",
    "digamma",
    "factorial",
    "gamma",
    "gammaln",
    "gammasgn",
    "multigammaln",
    "poch",
]

digamma = _unary(
    __name__, "digamma", "digamma", "The derivative of gammaln.", "6.3.1", "[1.0, 2.0]", "[-0.5772157 ,  0.42278433]"
)
gammaln = _unary(
    __name__, "lgamma", "gammaln", "The logarithm of |gamma(x)|.", "6.1", "[1.0, 5.0]", "[0.       , 3.1780539]"
)


def gamma(x: NestedLike) -> Array:
    """The gamma function: negative between odd and even negative integers, NaN at them; of complex numbers, too.

    Returns: array of the shape of x, of a float or complex dtype.

    Source: Abramowitz & Stegun 6.1.1 and 6.1.17; of complex numbers Lanczos, "A precision approximation of the gamma
        function", 1964, with Godfrey's coefficients.

    Example:
        >>> weft.scipy.special.gamma(wnp.array([5.0, 0.5]))
        Array([24.       ,  1.7724538], dtype=float32)
    """
    x = _float(x)
    if wnp.issubdtype(x.dtype, wnp.complexfloating):
        return _complex_gamma(x.astype("complex128")).astype(x.dtype)
    return gammasgn(x) * wnp.exp(gammaln(x))


_SHIFT = 607 / 128
_LANCZOS = (
    *(0.99999999999999709182, 57.156235665862923517, -59.597960355475491248, 14.136097974741747174),
    *(-0.49191381609762019978, 0.33994649984811888699e-4, 0.46523628927048575665e-4, -0.98374475304879564677e-4),
    *(0.15808870322491248884e-3, -0.21026444172410488319e-3, 0.21743961811521264320e-3, -0.16431810653676389022e-3),
    *(0.84418223983852743293e-4, -0.26190838401581408670e-4, 0.36899182659531622704e-5),
)


def _complex_gamma(z: Array) -> Array:
    left = wnp.real(z) < 0.5  # where it is found by reflection
    y = wnp.where(left, 1 - z, z) - 1
    series = _LANCZOS[0] + sum(c / (y + k) for k, c in enumerate(_LANCZOS) if k)
    t = y + _SHIFT + 0.5
    right = math.sqrt(2 * math.pi) * series * wnp.exp((y + 0.5) * wnp.log(t) - t)
    # pi z less the nearest multiple of pi, whose sine keeps its digits near the poles.
    n = wnp.round(wnp.real(z))
    sine = wnp.where(n % 2 == 0, 1, -1) * wnp.sin(math.pi * wnp.where(left, z - n, 0.5))
    pole = left & (sine == 0)
    reflected = math.pi / (wnp.where(pole, 1, sine) * right)
    return wnp.where(pole, complex(math.nan, math.nan), wnp.where(left, reflected, right))


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


_PARAMETERS = {
    "a": "array or number of any shape.",
    "p": "array or number of any shape.",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
