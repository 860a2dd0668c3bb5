"""Densities and distribution functions, one class per distribution (norm, gamma, poisson ...); and what samples say:
mode, rankdata, sem, gaussian_kde."""

from ._continuous import chi2, gennorm, gumbel_l, gumbel_r, pareto, truncnorm, vonmises, wrapcauchy
from ._counts import betabinom, binom, geom, multinomial, nbinom
from ._distributions import (
    bernoulli,
    beta,
    cauchy,
    dirichlet,
    expon,
    gamma,
    laplace,
    logistic,
    multivariate_normal,
    norm,
    poisson,
    t,
    uniform,
)
from ._kde import gaussian_kde
from ._samples import mode, rankdata, sem

__all__ = [
    "bernoulli",
    "beta",
    "betabinom",
    "binom",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "gamma",
    "gaussian_kde",
    "gennorm",
    "geom",
    "gumbel_l",
    "gumbel_r",
    "laplace",
    "logistic",
    "mode",
    "multinomial",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "rankdata",
    "sem",
    "t",
    "truncnorm",
    "uniform",
    "vonmises",
    "wrapcauchy",
]
