"""More distributions of one variable. loc moves them, scale stretches them; outside of their support logpdf is -inf."""

from __future__ import annotations

import math

from ... import numpy as wnp
from ..._weft import Array
from ...typing import NestedLike
from .. import special as sp
from ._described import UNIVARIATE, described
from ._distributions import _INF, _log_of_rest, _standard, unless
from ._distributions import gamma as _gamma
from ._distributions import norm as _norm

_CIRCULAR = 'Mardia and Jupp, "Directional statistics", 2000'


@described(UNIVARIATE.format(18))
class chi2:
    """The chi-square distribution with df degrees of freedom."""

    @staticmethod
    def logpdf(x: NestedLike, df: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the density: that of gamma of df / 2, twice as wide."""
        x, df, loc, scale = sp._floats(x, df, loc, scale)
        return _gamma.logpdf(x, df / 2, loc, 2 * scale)

    @staticmethod
    def cdf(x: NestedLike, df: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The distribution function."""
        x, df, loc, scale = sp._floats(x, df, loc, scale)
        return _gamma.cdf(x, df / 2, loc, 2 * scale)

    @staticmethod
    def logcdf(x: NestedLike, df: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the distribution function."""
        x, df, loc, scale = sp._floats(x, df, loc, scale)
        return _gamma.logcdf(x, df / 2, loc, 2 * scale)

    @staticmethod
    def sf(x: NestedLike, df: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The survival function: 1 - cdf, without cancellation."""
        x, df, loc, scale = sp._floats(x, df, loc, scale)
        return _gamma.sf(x, df / 2, loc, 2 * scale)

    @staticmethod
    def logsf(x: NestedLike, df: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the survival function."""
        x, df, loc, scale = sp._floats(x, df, loc, scale)
        return _gamma.logsf(x, df / 2, loc, 2 * scale)


@described(UNIVARIATE.format(24))
class gennorm:
    """The generalised normal distribution, whose density falls as exp(-|x|^beta)."""

    @staticmethod
    def logpdf(x: NestedLike, beta: NestedLike) -> Array:
        """log of the density: log(beta / 2) - gammaln(1 / beta) - |x|^beta."""
        x, beta = sp._floats(x, beta)
        return wnp.log(0.5 * beta) - sp.gammaln(1 / beta) - wnp.abs(x) ** beta

    @staticmethod
    def cdf(x: NestedLike, beta: NestedLike) -> Array:
        """The distribution function."""
        x, beta = sp._floats(x, beta)
        return 0.5 * (1 + wnp.sign(x) * sp.gammainc(1 / beta, wnp.abs(x) ** beta))


@described(UNIVARIATE.format(22))
class gumbel_r:
    """The Gumbel distribution of largest values."""

    @staticmethod
    def logpdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the density: -z - exp(-z) - log(scale)."""
        z, log_scale = _standard(x, loc, scale)
        return -z - wnp.exp(-z) - log_scale

    @staticmethod
    def logcdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the distribution function: -exp(-z)."""
        return -wnp.exp(-_standard(x, loc, scale)[0])

    @staticmethod
    def cdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The distribution function."""
        return wnp.exp(gumbel_r.logcdf(x, loc, scale))

    @staticmethod
    def logsf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the survival function."""
        return _log_of_rest(gumbel_r.logcdf(x, loc, scale))

    @staticmethod
    def sf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The survival function: 1 - cdf, without cancellation."""
        return -wnp.expm1(gumbel_r.logcdf(x, loc, scale))

    @staticmethod
    def ppf(q: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The quantile function: the inverse of cdf."""
        q, loc, scale = sp._floats(q, loc, scale)
        return loc - scale * wnp.log(-wnp.log(q))


@described(UNIVARIATE.format(22))
class gumbel_l:
    """The Gumbel distribution of smallest values."""

    @staticmethod
    def logpdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the density: z - exp(z) - log(scale)."""
        z, log_scale = _standard(x, loc, scale)
        return z - wnp.exp(z) - log_scale

    @staticmethod
    def logsf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the survival function: -exp(z)."""
        return -wnp.exp(_standard(x, loc, scale)[0])

    @staticmethod
    def sf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The survival function."""
        return wnp.exp(gumbel_l.logsf(x, loc, scale))

    @staticmethod
    def logcdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the distribution function."""
        return _log_of_rest(gumbel_l.logsf(x, loc, scale))

    @staticmethod
    def cdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The distribution function: 1 - sf, without cancellation."""
        return -wnp.expm1(gumbel_l.logsf(x, loc, scale))

    @staticmethod
    def ppf(q: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The quantile function: the inverse of cdf."""
        q, loc, scale = sp._floats(q, loc, scale)
        return loc + scale * wnp.log(-wnp.log1p(-q))


@described(UNIVARIATE.format(20))
class pareto:
    """The Pareto distribution with exponent b, of z >= 1."""

    @staticmethod
    def logpdf(x: NestedLike, b: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the density: log(b) - (b + 1) log z - log(scale)."""
        z, log_scale, b = _standard(x, loc, scale, b)
        log_z = wnp.log(wnp.where(z < 1, 1, z))
        return wnp.where(z < 1, -_INF, wnp.log(b) - (b + 1) * log_z - log_scale)

    @staticmethod
    def logsf(x: NestedLike, b: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the survival function: -b log z."""
        z, _, b = _standard(x, loc, scale, b)
        return wnp.where(z < 1, 0, -b * wnp.log(wnp.where(z < 1, 1, z)))

    @staticmethod
    def sf(x: NestedLike, b: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The survival function: 1 - cdf, without cancellation."""
        return wnp.exp(pareto.logsf(x, b, loc, scale))

    @staticmethod
    def cdf(x: NestedLike, b: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The distribution function."""
        return -wnp.expm1(pareto.logsf(x, b, loc, scale))

    @staticmethod
    def logcdf(x: NestedLike, b: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the distribution function."""
        return _log_of_rest(pareto.logsf(x, b, loc, scale))

    @staticmethod
    def ppf(q: NestedLike, b: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The quantile function: the inverse of cdf; NaN outside [0, 1]."""
        q, b, loc, scale = sp._floats(q, b, loc, scale)
        good = (q >= 0) & (q <= 1)
        return wnp.where(good, wnp.exp(-wnp.log1p(-wnp.where(good, q, 0)) / b) * scale + loc, math.nan)


def _log_mass(a: Array, b: Array) -> Array:
    """log of the probability that a standard normal number is between a and b, on the side where it is not lost."""
    right, left = a > 0, b <= 0
    low, high = wnp.where(right, -b, a), wnp.where(right, -a, b)
    apart = right | left
    near, far = sp.log_ndtr(wnp.where(apart, high, -1)), sp.log_ndtr(wnp.where(apart, low, -2))
    middle = wnp.log1p(-sp.ndtr(wnp.where(apart, -1, a)) - sp.ndtr(-wnp.where(apart, 1, b)))
    return wnp.where(apart, near + _log_of_rest(wnp.minimum(far - near, 0)), middle)


@described(UNIVARIATE.format(13))
class truncnorm:
    """The normal distribution limited to z between a and b."""

    @staticmethod
    def logpdf(x: NestedLike, a: NestedLike, b: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the density."""
        z, log_scale, a, b = _standard(x, loc, scale, a, b)
        return unless(
            (a >= b) | (wnp.asarray(scale) <= 0),
            wnp.where((z < a) | (z > b), -_INF, _norm.logpdf(z) - log_scale - _log_mass(a, b)),
        )

    @staticmethod
    def logcdf(x: NestedLike, a: NestedLike, b: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the distribution function."""
        z, _, a, b = _standard(x, loc, scale, a, b)
        inside = (z > a) & (z < b)
        value = _log_mass(a, wnp.where(inside, z, b)) - _log_mass(a, b)
        return unless((a >= b) | (wnp.asarray(scale) <= 0), wnp.where(z <= a, -_INF, wnp.where(z >= b, 0, value)))

    @staticmethod
    def cdf(x: NestedLike, a: NestedLike, b: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The distribution function."""
        return wnp.exp(truncnorm.logcdf(x, a, b, loc, scale))

    @staticmethod
    def logsf(x: NestedLike, a: NestedLike, b: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the survival function."""
        z, _, a, b = _standard(x, loc, scale, a, b)
        inside = (z > a) & (z < b)
        value = _log_mass(wnp.where(inside, z, a), b) - _log_mass(a, b)
        return unless((a >= b) | (wnp.asarray(scale) <= 0), wnp.where(z <= a, 0, wnp.where(z >= b, -_INF, value)))

    @staticmethod
    def sf(x: NestedLike, a: NestedLike, b: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The survival function: 1 - cdf, without cancellation."""
        return wnp.exp(truncnorm.logsf(x, a, b, loc, scale))


@described(_CIRCULAR)
class vonmises:
    """The von Mises distribution of angles."""

    @staticmethod
    def logpdf(x: NestedLike, kappa: NestedLike) -> Array:
        """log of the density: kappa (cos x - 1) - log(2 pi i0e(kappa))."""
        x, kappa = sp._floats(x, kappa)
        return kappa * (wnp.cos(x) - 1) - wnp.log(2 * math.pi * sp.i0e(kappa))


@described(_CIRCULAR)
class wrapcauchy:
    """The wrapped Cauchy distribution of angles in [0, 2 pi]."""

    @staticmethod
    def logpdf(x: NestedLike, c: NestedLike) -> Array:
        """log of the density: log(1 - c^2) - log(2 pi (1 + c^2 - 2 c cos x))."""
        x, c = sp._floats(x, c)
        value = wnp.log1p(-c * c) - math.log(2 * math.pi) - wnp.log1p(c * c - 2 * c * wnp.cos(x))
        return wnp.where((x >= 0) & (x <= 2 * math.pi), value, -_INF)
