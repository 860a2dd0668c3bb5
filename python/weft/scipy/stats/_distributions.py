"""Distributions. loc moves them, scale stretches them; outside of their support logpdf is -inf."""

from __future__ import annotations

import math

from ... import numpy as wnp
from ..._weft import Array
from .. import special as sp

_INF = float("inf")


def _standard(x, loc, scale):
    x, loc, scale = sp._float(x), sp._float(loc), sp._float(scale)
    return (x - loc) / scale, wnp.log(scale)


class norm:
    """The normal distribution."""

    @staticmethod
    def logpdf(x, loc=0, scale=1) -> Array:
        """log of the density: -(z^2 + log(2 pi)) / 2 - log(scale)."""
        z, log_scale = _standard(x, loc, scale)
        return -0.5 * (z * z + math.log(2 * math.pi)) - log_scale

    @staticmethod
    def pdf(x, loc=0, scale=1) -> Array:
        """The density."""
        return wnp.exp(norm.logpdf(x, loc, scale))

    @staticmethod
    def cdf(x, loc=0, scale=1) -> Array:
        """The distribution function."""
        return sp.ndtr(_standard(x, loc, scale)[0])

    @staticmethod
    def logcdf(x, loc=0, scale=1) -> Array:
        """log of the distribution function."""
        return sp.log_ndtr(_standard(x, loc, scale)[0])

    @staticmethod
    def sf(x, loc=0, scale=1) -> Array:
        """1 - cdf."""
        return sp.ndtr(-_standard(x, loc, scale)[0])

    @staticmethod
    def logsf(x, loc=0, scale=1) -> Array:
        """log of sf."""
        return sp.log_ndtr(-_standard(x, loc, scale)[0])

    @staticmethod
    def ppf(q, loc=0, scale=1) -> Array:
        """The inverse of cdf."""
        return sp.ndtri(q) * scale + loc


class _Density:
    @classmethod
    def pdf(cls, *args, **kwargs) -> Array:
        """The density."""
        return wnp.exp(cls.logpdf(*args, **kwargs))  # type: ignore[attr-defined]


class uniform(_Density):
    """Uniform in [loc, loc + scale]."""

    @staticmethod
    def logpdf(x, loc=0, scale=1) -> Array:
        """log of the density."""
        z, log_scale = _standard(x, loc, scale)
        return wnp.where((z < 0) | (z > 1), -_INF, -log_scale)

    @staticmethod
    def cdf(x, loc=0, scale=1) -> Array:
        """The distribution function."""
        return wnp.clip(_standard(x, loc, scale)[0], 0, 1)


class expon(_Density):
    """Exponential."""

    @staticmethod
    def logpdf(x, loc=0, scale=1) -> Array:
        """log of the density: -z - log(scale)."""
        z, log_scale = _standard(x, loc, scale)
        return wnp.where(z < 0, -_INF, -z - log_scale)

    @staticmethod
    def cdf(x, loc=0, scale=1) -> Array:
        """The distribution function."""
        z = _standard(x, loc, scale)[0]
        return wnp.where(z < 0, 0, -wnp.expm1(-wnp.where(z < 0, 0, z)))


class gamma(_Density):
    """Gamma with shape a."""

    @staticmethod
    def logpdf(x, a, loc=0, scale=1) -> Array:
        """log of the density: (a - 1) log z - z - gammaln(a) - log(scale)."""
        z, log_scale = _standard(x, loc, scale)
        a = sp._float(a)
        return wnp.where(z < 0, -_INF, sp.xlogy(a - 1, wnp.where(z < 0, 1, z)) - z - sp.gammaln(a) - log_scale)


class beta(_Density):
    """Beta with parameters a and b."""

    @staticmethod
    def logpdf(x, a, b, loc=0, scale=1) -> Array:
        """log of the density: (a - 1) log z + (b - 1) log(1 - z) - betaln(a, b) - log(scale)."""
        z, log_scale = _standard(x, loc, scale)
        a, b = sp._float(a), sp._float(b)
        outside = (z < 0) | (z > 1)
        z = wnp.where(outside, 0.5, z)
        value = sp.xlogy(a - 1, z) + sp.xlog1py(b - 1, -z) - sp.betaln(a, b) - log_scale
        return wnp.where(outside, -_INF, value)


class laplace(_Density):
    """Laplace."""

    @staticmethod
    def logpdf(x, loc=0, scale=1) -> Array:
        """log of the density: -|z| - log(2 scale)."""
        z, log_scale = _standard(x, loc, scale)
        return -wnp.abs(z) - math.log(2) - log_scale


class logistic(_Density):
    """Logistic."""

    @staticmethod
    def logpdf(x, loc=0, scale=1) -> Array:
        """log of the density: -z - 2 log(1 + exp(-z)) - log(scale)."""
        z, log_scale = _standard(x, loc, scale)
        return -z - 2 * wnp.logaddexp(-z, 0.0) - log_scale

    @staticmethod
    def cdf(x, loc=0, scale=1) -> Array:
        """The distribution function."""
        return sp.expit(_standard(x, loc, scale)[0])


class cauchy(_Density):
    """Cauchy."""

    @staticmethod
    def logpdf(x, loc=0, scale=1) -> Array:
        """log of the density: -log(pi scale (1 + z^2))."""
        z, log_scale = _standard(x, loc, scale)
        return -math.log(math.pi) - log_scale - wnp.log1p(z * z)


class t(_Density):
    """Student's t with df degrees of freedom."""

    @staticmethod
    def logpdf(x, df, loc=0, scale=1) -> Array:
        """log of the density (Abramowitz and Stegun 26.7.1, differentiated)."""
        z, log_scale = _standard(x, loc, scale)
        df = sp._float(df)
        constant = sp.gammaln((df + 1) / 2) - sp.gammaln(df / 2) - 0.5 * wnp.log(df * math.pi)
        return constant - log_scale - (df + 1) / 2 * wnp.log1p(z * z / df)


class bernoulli:
    """0 or 1, 1 with probability p."""

    @staticmethod
    def logpmf(k, p, loc=0) -> Array:
        """log of the probability."""
        k, p = sp._float(k) - loc, sp._float(p)
        return wnp.where((k == 0) | (k == 1), sp.xlogy(k, p) + sp.xlog1py(1 - k, -p), -_INF)

    @staticmethod
    def pmf(k, p, loc=0) -> Array:
        """The probability."""
        return wnp.exp(bernoulli.logpmf(k, p, loc))


class poisson:
    """Poisson with mean mu."""

    @staticmethod
    def logpmf(k, mu, loc=0) -> Array:
        """log of the probability: k log(mu) - mu - log(k!)."""
        k, mu = sp._float(k) - loc, sp._float(mu)
        value = sp.xlogy(k, mu) - sp.gammaln(k + 1) - mu
        return wnp.where((k < 0) | (wnp.round(k) != k), -_INF, value)

    @staticmethod
    def pmf(k, mu, loc=0) -> Array:
        """The probability."""
        return wnp.exp(poisson.logpmf(k, mu, loc))


class multivariate_normal(_Density):
    """Normal vectors."""

    @staticmethod
    def logpdf(x, mean, cov, allow_singular=None) -> Array:
        """log of the density of the vectors along the last axis, from the Cholesky factor of cov."""
        del allow_singular
        x, mean, cov = sp._float(x), sp._float(mean), sp._float(cov)
        n = mean.shape[-1]
        lower = wnp.linalg.cholesky(cov)
        flat = (x - mean).reshape(-1, n)
        y = wnp.linalg.solve_triangular(lower, flat.T, lower=True)
        log_det = wnp.sum(wnp.log(wnp.diagonal(lower, axis1=-2, axis2=-1)), axis=-1)
        out = -0.5 * wnp.sum(y * y, axis=0) - n / 2 * math.log(2 * math.pi) - log_det
        return out.reshape((x - mean).shape[:-1])


class dirichlet(_Density):
    """Dirichlet."""

    @staticmethod
    def logpdf(x, alpha) -> Array:
        """log of the density: the sum of (alpha - 1) log x, minus the log of the multivariate beta function."""
        x, alpha = sp._float(x), sp._float(alpha)
        normalizer = wnp.sum(sp.gammaln(alpha), -1) - sp.gammaln(wnp.sum(alpha, -1))
        inside = wnp.all(x > 0, axis=0) & (wnp.abs(wnp.sum(x, axis=0) - 1) < 1e-6 * 10)
        weights = alpha.reshape(alpha.shape + (1,) * (x.ndim - 1)) - 1
        return wnp.where(inside, wnp.sum(sp.xlogy(weights, x), axis=0) - normalizer, -_INF)
