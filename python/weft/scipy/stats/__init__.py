"""Densities and distribution functions, one module per distribution: norm, uniform, expon, gamma, beta, laplace,
logistic, cauchy, t, bernoulli, poisson, multivariate_normal, dirichlet."""

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

__all__ = [
    "bernoulli",
    "beta",
    "cauchy",
    "dirichlet",
    "expon",
    "gamma",
    "laplace",
    "logistic",
    "multivariate_normal",
    "norm",
    "poisson",
    "t",
    "uniform",
]
