"""Distributions. loc moves them, scale stretches them; outside of their support logpdf is -inf."""

from __future__ import annotations

import math

from ... import numpy as wnp
from ..._core.errors import value_error
from ..._weft import Array
from ...typing import NestedLike
from .. import special as sp
from ._described import DISCRETE, MULTIVARIATE, UNIVARIATE, described

_INF = float("inf")


def _standard(x, loc, scale, *shapes) -> tuple[Array, ...]:
    """(x - loc) / scale, log(scale) and the parameters of the shape, all of one dtype."""
    x, loc, scale, *converted = sp._floats(x, loc, scale, *shapes)
    return (x - loc) / scale, wnp.log(scale), *converted


def unless(invalid: Array, value: Array) -> Array:
    """NaN where parameters are none of the distribution, as in SciPy. Of parameters that are NaN the value is, and so
    are its derivatives."""
    return wnp.where(invalid, float("nan"), value)


def _log_of_rest(log_p: Array) -> Array:
    """log(1 - exp(log_p)) for log_p <= 0, without cancellation at either end."""
    near = log_p > -math.log(2)
    return wnp.where(
        near, wnp.log(-wnp.expm1(wnp.where(near, log_p, -1))), wnp.log1p(-wnp.exp(wnp.where(near, -1, log_p)))
    )


@described(UNIVARIATE.format(13))
class norm:
    """The normal distribution."""

    @staticmethod
    def logpdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the density: -(z^2 + log(2 pi)) / 2 - log(scale)."""
        z, log_scale = _standard(x, loc, scale)
        return -0.5 * (z * z + math.log(2 * math.pi)) - log_scale

    @staticmethod
    def cdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The distribution function."""
        return sp.ndtr(_standard(x, loc, scale)[0])

    @staticmethod
    def logcdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the distribution function."""
        return sp.log_ndtr(_standard(x, loc, scale)[0])

    @staticmethod
    def sf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The survival function: 1 - cdf, without cancellation."""
        return sp.ndtr(-_standard(x, loc, scale)[0])

    @staticmethod
    def logsf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the survival function."""
        return sp.log_ndtr(-_standard(x, loc, scale)[0])

    @staticmethod
    def ppf(q: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The quantile function: the inverse of cdf."""
        q, loc, scale = sp._floats(q, loc, scale)
        return sp.ndtri(q) * scale + loc

    @staticmethod
    def isf(q: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The inverse of sf."""
        q, loc, scale = sp._floats(q, loc, scale)
        return -sp.ndtri(q) * scale + loc


@described(UNIVARIATE.format(26))
class uniform:
    """The uniform distribution in [loc, loc + scale]."""

    @staticmethod
    def logpdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the density: -log(scale), -inf outside."""
        z, log_scale = _standard(x, loc, scale)
        return wnp.where((z < 0) | (z > 1), -_INF, -log_scale)

    @staticmethod
    def cdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The distribution function; its derivative is 1 / scale at both ends."""
        z = _standard(x, loc, scale)[0]
        return wnp.where(z < 0, 0, wnp.where(z > 1, 1, z))

    @staticmethod
    def ppf(q: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The quantile function: the inverse of cdf; NaN outside [0, 1]."""
        q, loc, scale = sp._floats(q, loc, scale)
        return wnp.where((q >= 0) & (q <= 1), q * scale + loc, math.nan)


@described(UNIVARIATE.format(19))
class expon:
    """The exponential distribution."""

    @staticmethod
    def logpdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the density: -z - log(scale)."""
        z, log_scale = _standard(x, loc, scale)
        return wnp.where(z < 0, -_INF, -z - log_scale)

    @staticmethod
    def cdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The distribution function."""
        z = _standard(x, loc, scale)[0]
        return wnp.where(z < 0, 0, -wnp.expm1(-wnp.where(z < 0, 0, z)))

    @staticmethod
    def logcdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the distribution function."""
        z = _standard(x, loc, scale)[0]
        return wnp.where(z < 0, -_INF, _log_of_rest(-wnp.where(z < 0, 1, z)))

    @staticmethod
    def logsf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the survival function: -z."""
        z = _standard(x, loc, scale)[0]
        return -wnp.maximum(z, 0)

    @staticmethod
    def sf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The survival function: 1 - cdf, without cancellation."""
        return wnp.exp(expon.logsf(x, loc, scale))

    @staticmethod
    def ppf(q: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The quantile function: the inverse of cdf; NaN outside [0, 1]."""
        q, loc, scale = sp._floats(q, loc, scale)
        return wnp.where((q >= 0) & (q <= 1), -wnp.log1p(-q) * scale + loc, math.nan)


@described(UNIVARIATE.format(17))
class gamma:
    """The gamma distribution with shape parameter a."""

    @staticmethod
    def logpdf(x: NestedLike, a: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the density: (a - 1) log z - z - gammaln(a) - log(scale)."""
        z, log_scale, a = _standard(x, loc, scale, a)
        return wnp.where(z < 0, -_INF, sp.xlogy(a - 1, wnp.where(z < 0, 1, z)) - z - sp.gammaln(a) - log_scale)

    @staticmethod
    def cdf(x: NestedLike, a: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The distribution function: gammainc(a, z)."""
        z, _, a = _standard(x, loc, scale, a)
        return wnp.where(z < 0, 0, sp.gammainc(a, wnp.where(z < 0, 1, z)))

    @staticmethod
    def logcdf(x: NestedLike, a: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the distribution function."""
        return wnp.log(gamma.cdf(x, a, loc, scale))

    @staticmethod
    def sf(x: NestedLike, a: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The survival function: gammaincc(a, z)."""
        z, _, a = _standard(x, loc, scale, a)
        return wnp.where(z < 0, 1, sp.gammaincc(a, wnp.where(z < 0, 1, z)))

    @staticmethod
    def logsf(x: NestedLike, a: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the survival function."""
        return wnp.log(gamma.sf(x, a, loc, scale))


def _are_none(a: Array, b: Array, scale: NestedLike) -> Array:
    return (a <= 0) | (b <= 0) | (wnp.asarray(scale) <= 0)


@described(UNIVARIATE.format(25))
class beta:
    """The beta distribution with parameters a and b."""

    @staticmethod
    def logpdf(x: NestedLike, a: NestedLike, b: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the density: (a - 1) log z + (b - 1) log(1 - z) - betaln(a, b) - log(scale)."""
        z, log_scale, a, b = _standard(x, loc, scale, a, b)
        outside = (z < 0) | (z > 1)
        z = wnp.where(outside, 0.5, z)
        value = sp.xlogy(a - 1, z) + sp.xlog1py(b - 1, -z) - sp.betaln(a, b) - log_scale
        return unless(_are_none(a, b, scale), wnp.where(outside, -_INF, value))

    @staticmethod
    def cdf(x: NestedLike, a: NestedLike, b: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The distribution function: betainc(a, b, z)."""
        z, _, a, b = _standard(x, loc, scale, a, b)
        return unless(_are_none(a, b, scale), sp.betainc(a, b, wnp.clip(z, 0, 1)))

    @staticmethod
    def logcdf(x: NestedLike, a: NestedLike, b: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the distribution function."""
        return wnp.log(beta.cdf(x, a, b, loc, scale))

    @staticmethod
    def sf(x: NestedLike, a: NestedLike, b: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The survival function: betainc(b, a, 1 - z)."""
        z, _, a, b = _standard(x, loc, scale, a, b)
        return unless(_are_none(a, b, scale), sp.betainc(b, a, 1 - wnp.clip(z, 0, 1)))

    @staticmethod
    def logsf(x: NestedLike, a: NestedLike, b: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the survival function."""
        return wnp.log(beta.sf(x, a, b, loc, scale))


@described(UNIVARIATE.format(24))
class laplace:
    """The Laplace distribution."""

    @staticmethod
    def logpdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the density: -|z| - log(2 scale)."""
        z, log_scale = _standard(x, loc, scale)
        return -wnp.abs(z) - math.log(2) - log_scale

    @staticmethod
    def cdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The distribution function."""
        z = _standard(x, loc, scale)[0]
        half = 0.5 * wnp.exp(-wnp.abs(z))
        return wnp.where(z < 0, half, 1 - half)  # of zero the modulus counts as growing


@described(UNIVARIATE.format(23))
class logistic:
    """The logistic distribution."""

    @staticmethod
    def logpdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the density: -2 log(exp(z / 2) + exp(-z / 2)) - log(scale)."""
        z, log_scale = _standard(x, loc, scale)
        return -2 * wnp.logaddexp(z / 2, -z / 2) - log_scale

    @staticmethod
    def cdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The distribution function."""
        return sp.expit(_standard(x, loc, scale)[0])

    @staticmethod
    def sf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The survival function: 1 - cdf, without cancellation."""
        return sp.expit(-_standard(x, loc, scale)[0])

    @staticmethod
    def ppf(q: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The quantile function: the inverse of cdf."""
        q, loc, scale = sp._floats(q, loc, scale)
        return sp.logit(q) * scale + loc

    @staticmethod
    def isf(q: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The inverse of sf."""
        q, loc, scale = sp._floats(q, loc, scale)
        return -sp.logit(q) * scale + loc


@described(UNIVARIATE.format(16))
class cauchy:
    """The Cauchy distribution."""

    @staticmethod
    def logpdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the density: -log(pi scale (1 + z^2))."""
        z, log_scale = _standard(x, loc, scale)
        return -math.log(math.pi) - log_scale - wnp.log1p(z * z)

    @staticmethod
    def cdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The distribution function, without cancellation below."""
        z = _standard(x, loc, scale)[0]
        return wnp.arctan2(wnp.ones_like(z), -z) / math.pi

    @staticmethod
    def logcdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the distribution function."""
        return wnp.log(cauchy.cdf(x, loc, scale))

    @staticmethod
    def sf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The survival function: 1 - cdf, without cancellation."""
        z = _standard(x, loc, scale)[0]
        return wnp.arctan2(wnp.ones_like(z), z) / math.pi

    @staticmethod
    def logsf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the survival function."""
        return wnp.log(cauchy.sf(x, loc, scale))

    @staticmethod
    def ppf(q: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The quantile function: the inverse of cdf."""
        q, loc, scale = sp._floats(q, loc, scale)
        return wnp.tan(math.pi * (q - 0.5)) * scale + loc

    @staticmethod
    def isf(q: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """The inverse of sf."""
        q, loc, scale = sp._floats(q, loc, scale)
        return wnp.tan(math.pi * (0.5 - q)) * scale + loc


@described(UNIVARIATE.format(28))
class t:
    """Student's t-distribution with df degrees of freedom."""

    @staticmethod
    def logpdf(x: NestedLike, df: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the density (Abramowitz and Stegun 26.7.1, differentiated)."""
        z, log_scale, df = _standard(x, loc, scale, df)
        constant = sp.gammaln((df + 1) / 2) - sp.gammaln(df / 2) - 0.5 * wnp.log(df * math.pi)
        return constant - log_scale - (df + 1) / 2 * wnp.log1p(z * z / df)


@described(DISCRETE.format(3))
class bernoulli:
    """The Bernoulli distribution: 1 with probability p, otherwise 0."""

    @staticmethod
    def logpmf(k: NestedLike, p: NestedLike, loc: NestedLike = 0) -> Array:
        """log of the probability."""
        k, p, loc = sp._floats(k, p, loc)
        k = k - loc
        counts = (k == 0) | (k == 1) | (k != k)  # NaN stays
        return wnp.where(counts, sp.xlogy(k, p) + sp.xlog1py(1 - k, -p), -_INF)

    @staticmethod
    def cdf(k: NestedLike, p: NestedLike) -> Array:
        """The distribution function; NaN where p is no probability."""
        k, p = sp._floats(k, p)
        value = wnp.where(k < 0, 0, wnp.where(k < 1, 1 - p, 1))
        return wnp.where((p >= 0) & (p <= 1) & (k == k), value, math.nan)

    @staticmethod
    def ppf(q: NestedLike, p: NestedLike) -> Array:
        """The quantile function; NaN where q or p is no probability."""
        q, p = sp._floats(q, p)
        good = (q >= 0) & (q <= 1) & (p >= 0) & (p <= 1)
        return wnp.where(good, (q > 1 - p).astype(q.dtype), math.nan)


@described(DISCRETE.format(4))
class poisson:
    """The Poisson distribution with mean mu."""

    @staticmethod
    def logpmf(k: NestedLike, mu: NestedLike, loc: NestedLike = 0) -> Array:
        """log of the probability: k log(mu) - mu - log(k!)."""
        k, mu, loc = sp._floats(k, mu, loc)
        k = k - loc
        value = sp.xlogy(k, mu) - sp.gammaln(k + 1) - mu
        return wnp.where((k < 0) | (wnp.round(k) != k), -_INF, value)

    @staticmethod
    def cdf(k: NestedLike, mu: NestedLike, loc: NestedLike = 0) -> Array:
        """The distribution function: gammaincc(floor(k) + 1, mu)."""
        k, mu, loc = sp._floats(k, mu, loc)
        count = wnp.floor(k - loc)
        return wnp.where(count < 0, 0, sp.gammaincc(wnp.maximum(count, 0) + 1, mu))

    @staticmethod
    def entropy(mu: NestedLike, loc: NestedLike = 0) -> Array:
        """The entropy: the sum of -p log p, beyond mu = 50 by its asymptotic series (Evans and Boersma, 1988)."""
        mu, _ = wnp.broadcast_arrays(*sp._floats(mu, loc))
        few = mu <= 50
        small, large = wnp.where(few, mu, 1), wnp.where(few, 50, mu)
        k = wnp.arange(160.0).astype(mu.dtype)
        log_p = sp.xlogy(k, small[..., None]) - sp.gammaln(k + 1) - small[..., None]
        direct = -wnp.sum(wnp.exp(log_p) * log_p, -1)
        inverse = 1 / large
        series = inverse * (1 / 12 + inverse * (1 / 24 + inverse * 19 / 360))
        far = 0.5 * wnp.log(2 * math.pi * math.e * large) - series
        return wnp.where(mu == 0, 0, wnp.where(mu >= 0, wnp.where(few, direct, far), math.nan))


@described(MULTIVARIATE.format(45))
class multivariate_normal:
    """The normal distribution of vectors."""

    @staticmethod
    def logpdf(x: NestedLike, mean: NestedLike, cov: NestedLike, allow_singular: bool | None = None) -> Array:
        """log of the density of the vectors along the last axis, from the Cholesky factor of cov."""
        del allow_singular
        x, mean, cov = sp._floats(x, mean, cov)
        if mean.ndim == 0 and cov.ndim == 0:
            return -0.5 * ((x - mean) ** 2 / cov + math.log(2 * math.pi) + wnp.log(cov))
        if mean.ndim == 0:
            raise value_error(f"multivariate_normal: mean must be a vector beside a covariance of shape {cov.shape}")
        n, d = mean.shape[-1], x - mean
        if cov.ndim == 0:
            return -0.5 * (wnp.sum(d * d, -1) / cov + n * (math.log(2 * math.pi) + wnp.log(cov)))
        if cov.shape[-2:] != (n, n):
            raise value_error(f"multivariate_normal: cov must have the shape (..., {n}, {n}), got {cov.shape}")
        lower = wnp.linalg.cholesky(cov)
        if cov.ndim == 2:
            y = wnp.linalg.solve_triangular(lower, d.reshape(-1, n).T, lower=True)
            squares = wnp.sum(y * y, axis=0).reshape(d.shape[:-1])
        else:
            batch = wnp.broadcast_shapes(d.shape[:-1], cov.shape[:-2])
            y = wnp.linalg.solve_triangular(
                wnp.broadcast_to(lower, (*batch, n, n)), wnp.broadcast_to(d, (*batch, n))[..., None], lower=True
            )
            squares = wnp.sum(y * y, axis=(-2, -1))
        log_det = wnp.sum(wnp.log(wnp.diagonal(lower, axis1=-2, axis2=-1)), axis=-1)
        return -0.5 * squares - n / 2 * math.log(2 * math.pi) - log_det


@described(MULTIVARIATE.format(49))
class dirichlet:
    """The Dirichlet distribution."""

    @staticmethod
    def logpdf(x: NestedLike, alpha: NestedLike) -> Array:
        """log of the density: the sum of (alpha - 1) log x, minus the log of the multivariate beta function."""
        x, alpha = sp._floats(x, alpha)
        if x.shape[0] + 1 == alpha.shape[0]:  # the last share is what the others leave
            x = wnp.concatenate([x, 1 - wnp.sum(x, axis=0, keepdims=True)])
        normalizer = wnp.sum(sp.gammaln(alpha), -1) - sp.gammaln(wnp.sum(alpha, -1))
        inside = wnp.all(x > 0, axis=0) & (wnp.abs(wnp.sum(x, axis=0) - 1) < 1e-6 * 10)
        weights = alpha.reshape(alpha.shape + (1,) * (x.ndim - 1)) - 1
        return wnp.where(inside, wnp.sum(sp.xlogy(weights, x), axis=0) - normalizer, -_INF)
