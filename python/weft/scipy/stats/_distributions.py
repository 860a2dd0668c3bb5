"""Distributions. loc moves them, scale stretches them; outside of their support logpdf is -inf."""

from __future__ import annotations

import math

from ... import numpy as wnp
from ..._core.errors import value_error
from ..._weft import Array
from ...typing import NestedLike
from .. import special as sp

_INF = float("inf")


def _standard(x, loc, scale, *shapes) -> tuple[Array, ...]:
    """(x - loc) / scale, log(scale) and the parameters of the shape, all of one dtype."""
    x, loc, scale, *converted = sp._floats(x, loc, scale, *shapes)
    return (x - loc) / scale, wnp.log(scale), *converted


# For each method arguments, and what it gives.
_EXAMPLES = {
    "norm": {
        "logpdf": ("0.0", "Array(-0.9189385, dtype=float32, weak_type=True)"),
        "cdf": ("1.96", "Array(0.9750021, dtype=float32, weak_type=True)"),
        "logcdf": ("-30.0", "Array(-454.32123, dtype=float32, weak_type=True)"),
        "sf": ("1.96", "Array(0.02499789, dtype=float32, weak_type=True)"),
        "logsf": ("30.0", "Array(-454.32123, dtype=float32, weak_type=True)"),
        "ppf": ("0.975", "Array(1.9599642, dtype=float32)"),
        "pdf": ("0.0", "Array(0.3989423, dtype=float32, weak_type=True)"),
    },
    "uniform": {
        "logpdf": ("0.5, 0.0, 2.0", "Array(-0.6931472, dtype=float32, weak_type=True)"),
        "cdf": ("0.5, 0.0, 2.0", "Array(0.25, dtype=float32, weak_type=True)"),
        "pdf": ("0.5, 0.0, 2.0", "Array(0.5, dtype=float32, weak_type=True)"),
    },
    "expon": {
        "logpdf": ("2.0", "Array(-2., dtype=float32, weak_type=True)"),
        "cdf": ("2.0", "Array(0.86466473, dtype=float32, weak_type=True)"),
        "pdf": ("2.0", "Array(0.13533528, dtype=float32, weak_type=True)"),
    },
    "gamma": {
        "logpdf": ("2.0, 3.0", "Array(-1.3068528, dtype=float32, weak_type=True)"),
        "pdf": ("2.0, 3.0", "Array(0.27067056, dtype=float32, weak_type=True)"),
    },
    "beta": {
        "logpdf": ("0.5, 2.0, 3.0", "Array(0.40546513, dtype=float32, weak_type=True)"),
        "pdf": ("0.5, 2.0, 3.0", "Array(1.5, dtype=float32, weak_type=True)"),
    },
    "laplace": {
        "logpdf": ("1.0", "Array(-1.6931472, dtype=float32, weak_type=True)"),
        "pdf": ("1.0", "Array(0.18393973, dtype=float32, weak_type=True)"),
    },
    "logistic": {
        "logpdf": ("1.0", "Array(-1.6265234, dtype=float32, weak_type=True)"),
        "cdf": ("1.0", "Array(0.7310586, dtype=float32, weak_type=True)"),
        "pdf": ("1.0", "Array(0.19661193, dtype=float32, weak_type=True)"),
    },
    "cauchy": {
        "logpdf": ("1.0", "Array(-1.837877, dtype=float32, weak_type=True)"),
        "pdf": ("1.0", "Array(0.15915495, dtype=float32, weak_type=True)"),
    },
    "t": {
        "logpdf": ("1.0, 4.0", "Array(-1.5386882, dtype=float32, weak_type=True)"),
        "pdf": ("1.0, 4.0", "Array(0.21466252, dtype=float32, weak_type=True)"),
    },
    "bernoulli": {
        "logpmf": ("1, 0.25", "Array(-1.3862944, dtype=float32, weak_type=True)"),
        "pmf": ("1, 0.25", "Array(0.25, dtype=float32, weak_type=True)"),
    },
    "poisson": {
        "logpmf": ("2, 3.0", "Array(-1.4959226, dtype=float32, weak_type=True)"),
        "pmf": ("2, 3.0", "Array(0.22404182, dtype=float32, weak_type=True)"),
    },
    "multivariate_normal": {
        "logpdf": ("wnp.zeros(2), wnp.zeros(2), wnp.eye(2)", "Array(-1.837877, dtype=float32)"),
        "pdf": ("wnp.zeros(2), wnp.zeros(2), wnp.eye(2)", "Array(0.15915495, dtype=float32)"),
    },
    "dirichlet": {
        "logpdf": ("wnp.array([0.2, 0.8]), wnp.array([1.0, 2.0])", "Array(0.47000366, dtype=float32)"),
        "pdf": ("wnp.array([0.2, 0.8]), wnp.array([1.0, 2.0])", "Array(1.6, dtype=float32)"),
    },
}
# What they take.
_PARAMETERS = {
    "x": "array or number: where.",
    "k": "array or number: where, whole numbers.",
    "q": "array or number in [0, 1]: the probability.",
    "loc": "array or number: it is subtracted from x first.",
    "scale": "array or number > 0: x is divided by it then; z is what comes out.",
    "a": "array or number > 0: the first parameter.",
    "b": "array or number > 0: the second parameter.",
    "df": "array or number > 0: degrees of freedom.",
    "p": "array or number in [0, 1]: the probability of 1.",
    "mu": "array or number >= 0: the mean.",
    "mean": "array [n]: the mean.",
    "cov": "array [n, n]: the covariance matrix, positive definite.",
    "alpha": "array [n]: the parameters, > 0.",
    "allow_singular": "accepted, without effect: a singular matrix gives NaN.",
}
_VECTORS = {
    "multivariate_normal": {"x": "array [..., n]: vectors."},
    "dirichlet": {"x": "array [n] or [n, ...]: vectors along the first axis, which add up to 1."},
}


_UNIVARIATE = 'Johnson, Kotz and Balakrishnan, "Continuous univariate distributions", chapter {}'
_MULTIVARIATE = 'Kotz, Balakrishnan and Johnson, "Continuous multivariate distributions", chapter {}'
_DISCRETE = 'Johnson, Kemp and Kotz, "Univariate discrete distributions", chapter {}'


def _described(source: str):
    """Gives a distribution pdf (or pmf) as the exponential of its logarithm, and its methods their descriptions."""

    def describe(cls):
        log_name = "logpdf" if "logpdf" in cls.__dict__ else "logpmf"
        log_density = cls.__dict__[log_name].__func__

        def density(*args, **kwargs) -> Array:
            return wnp.exp(log_density(*args, **kwargs))

        density.__name__ = log_name[3:]
        density.__wrapped__ = log_density  # type: ignore[attr-defined]  # whose signature it has
        density.__doc__ = f"The {'density' if log_name == 'logpdf' else 'probability'}: exp of {log_name}."
        setattr(cls, log_name[3:], staticmethod(density))
        parameters = _PARAMETERS | _VECTORS.get(cls.__name__, {})
        for name, member in cls.__dict__.items():
            if isinstance(member, staticmethod):
                function = member.__func__
                code = getattr(function, "__wrapped__", function).__code__
                arguments = "".join(f"    {n}: {parameters[n]}\n" for n in code.co_varnames[: code.co_argcount])
                function.__qualname__ = f"{cls.__name__}.{name}"
                function.__doc__ = (
                    f"{function.__doc__}\n\nArgs:\n{arguments}\n"
                    "Returns: array of the shape that the arguments have together, of a float dtype.\n\n"
                    f"Source: {source}.\n\n{_example(cls, name)}"
                )
        cls.__doc__ = f"{cls.__doc__}\n\n{_example(cls, log_name)}"
        return cls

    return describe


def _example(cls, name: str) -> str:
    arguments, result = _EXAMPLES[cls.__name__][name]
    return f"Example:\n    >>> weft.scipy.stats.{cls.__name__}.{name}({arguments})\n    {result}\n"


@_described(_UNIVARIATE.format(13))
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


@_described(_UNIVARIATE.format(26))
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


@_described(_UNIVARIATE.format(19))
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


@_described(_UNIVARIATE.format(17))
class gamma:
    """The gamma distribution with shape parameter a."""

    @staticmethod
    def logpdf(x: NestedLike, a: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the density: (a - 1) log z - z - gammaln(a) - log(scale)."""
        z, log_scale, a = _standard(x, loc, scale, a)
        return wnp.where(z < 0, -_INF, sp.xlogy(a - 1, wnp.where(z < 0, 1, z)) - z - sp.gammaln(a) - log_scale)


@_described(_UNIVARIATE.format(25))
class beta:
    """The beta distribution with parameters a and b."""

    @staticmethod
    def logpdf(x: NestedLike, a: NestedLike, b: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the density: (a - 1) log z + (b - 1) log(1 - z) - betaln(a, b) - log(scale)."""
        z, log_scale, a, b = _standard(x, loc, scale, a, b)
        outside = (z < 0) | (z > 1)
        z = wnp.where(outside, 0.5, z)
        value = sp.xlogy(a - 1, z) + sp.xlog1py(b - 1, -z) - sp.betaln(a, b) - log_scale
        return wnp.where(outside, -_INF, value)


@_described(_UNIVARIATE.format(24))
class laplace:
    """The Laplace distribution."""

    @staticmethod
    def logpdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the density: -|z| - log(2 scale)."""
        z, log_scale = _standard(x, loc, scale)
        return -wnp.abs(z) - math.log(2) - log_scale


@_described(_UNIVARIATE.format(23))
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


@_described(_UNIVARIATE.format(16))
class cauchy:
    """The Cauchy distribution."""

    @staticmethod
    def logpdf(x: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the density: -log(pi scale (1 + z^2))."""
        z, log_scale = _standard(x, loc, scale)
        return -math.log(math.pi) - log_scale - wnp.log1p(z * z)


@_described(_UNIVARIATE.format(28))
class t:
    """Student's t-distribution with df degrees of freedom."""

    @staticmethod
    def logpdf(x: NestedLike, df: NestedLike, loc: NestedLike = 0, scale: NestedLike = 1) -> Array:
        """log of the density (Abramowitz and Stegun 26.7.1, differentiated)."""
        z, log_scale, df = _standard(x, loc, scale, df)
        constant = sp.gammaln((df + 1) / 2) - sp.gammaln(df / 2) - 0.5 * wnp.log(df * math.pi)
        return constant - log_scale - (df + 1) / 2 * wnp.log1p(z * z / df)


@_described(_DISCRETE.format(3))
class bernoulli:
    """The Bernoulli distribution: 1 with probability p, otherwise 0."""

    @staticmethod
    def logpmf(k: NestedLike, p: NestedLike, loc: NestedLike = 0) -> Array:
        """log of the probability."""
        k, p, loc = sp._floats(k, p, loc)
        k = k - loc
        counts = (k == 0) | (k == 1) | (k != k)  # NaN stays
        return wnp.where(counts, sp.xlogy(k, p) + sp.xlog1py(1 - k, -p), -_INF)


@_described(_DISCRETE.format(4))
class poisson:
    """The Poisson distribution with mean mu."""

    @staticmethod
    def logpmf(k: NestedLike, mu: NestedLike, loc: NestedLike = 0) -> Array:
        """log of the probability: k log(mu) - mu - log(k!)."""
        k, mu, loc = sp._floats(k, mu, loc)
        k = k - loc
        value = sp.xlogy(k, mu) - sp.gammaln(k + 1) - mu
        return wnp.where((k < 0) | (wnp.round(k) != k), -_INF, value)


@_described(_MULTIVARIATE.format(45))
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


@_described(_MULTIVARIATE.format(49))
class dirichlet:
    """The Dirichlet distribution."""

    @staticmethod
    def logpdf(x: NestedLike, alpha: NestedLike) -> Array:
        """log of the density: the sum of (alpha - 1) log x, minus the log of the multivariate beta function."""
        x, alpha = sp._floats(x, alpha)
        normalizer = wnp.sum(sp.gammaln(alpha), -1) - sp.gammaln(wnp.sum(alpha, -1))
        inside = wnp.all(x > 0, axis=0) & (wnp.abs(wnp.sum(x, axis=0) - 1) < 1e-6 * 10)
        weights = alpha.reshape(alpha.shape + (1,) * (x.ndim - 1)) - 1
        return wnp.where(inside, wnp.sum(sp.xlogy(weights, x), axis=0) - normalizer, -_INF)
