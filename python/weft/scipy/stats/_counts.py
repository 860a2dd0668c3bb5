"""Distributions of counts: outside of what is possible logpmf is -inf."""

from __future__ import annotations

from ... import numpy as wnp
from ..._weft import Array
from ...typing import NestedLike
from .. import special as sp
from ._described import DISCRETE, described
from ._distributions import _INF

_MULTIVARIATE = 'Johnson, Kotz and Balakrishnan, "Discrete multivariate distributions", chapter 35'


@described(DISCRETE.format(3))
class binom:
    """The binomial distribution: how many of n trials succeed."""

    @staticmethod
    def logpmf(k: NestedLike, n: NestedLike, p: NestedLike, loc: NestedLike = 0) -> Array:
        """log of the probability."""
        k, n, p, loc = sp._floats(k, n, p, loc)
        k = k - loc
        possible = (k >= 0) & (k <= n)
        j = wnp.where(possible, k, 0)
        ways = sp.gammaln(n + 1) - sp.gammaln(j + 1) - sp.gammaln(n - j + 1)
        return wnp.where(possible, ways + sp.xlogy(j, p) + sp.xlog1py(n - j, -p), -_INF)


@described(DISCRETE.format(6))
class betabinom:
    """The beta-binomial distribution: binomial, with a probability that is a beta number."""

    @staticmethod
    def logpmf(k: NestedLike, n: NestedLike, a: NestedLike, b: NestedLike, loc: NestedLike = 0) -> Array:
        """log of the probability."""
        k, n, a, b, loc = sp._floats(k, n, a, b, loc)
        count = wnp.floor(k) - loc
        possible = (count >= 0) & (count <= n)
        j = wnp.where(possible, count, 0)
        ways = -wnp.log1p(n) - sp.betaln(n - j + 1, j + 1)
        value = ways + sp.betaln(j + a, n - j + b) - sp.betaln(a, b)
        return wnp.where(possible, wnp.where((a > 0) & (b > 0) & (n >= 0), value, float("nan")), -_INF)


@described(DISCRETE.format(5))
class geom:
    """The geometric distribution: how many trials it takes to succeed once."""

    @staticmethod
    def logpmf(k: NestedLike, p: NestedLike, loc: NestedLike = 0) -> Array:
        """log of the probability: (k - 1) log(1 - p) + log p."""
        k, p, loc = sp._floats(k, p, loc)
        k = k - loc
        possible = k >= 1
        return wnp.where(possible, sp.xlog1py(wnp.where(possible, k, 1) - 1, -p) + wnp.log(p), -_INF)


@described(DISCRETE.format(5))
class nbinom:
    """The negative binomial distribution: how many trials fail before n succeed."""

    @staticmethod
    def logpmf(k: NestedLike, n: NestedLike, p: NestedLike, loc: NestedLike = 0) -> Array:
        """log of the probability."""
        k, n, p, loc = sp._floats(k, n, p, loc)
        k = k - loc
        possible = k >= 0
        j = wnp.where(possible, k, 0)
        ways = sp.gammaln(j + n) - sp.gammaln(n) - sp.gammaln(j + 1)
        return wnp.where(possible, ways + sp.xlogy(n, p) + sp.xlog1py(j, -p), -_INF)


@described(_MULTIVARIATE)
class multinomial:
    """The multinomial distribution: how often each outcome comes in n trials."""

    @staticmethod
    def logpmf(x: NestedLike, n: NestedLike, p: NestedLike) -> Array:
        """log of the probability."""
        (x, n), (p,) = sp._floats(x, n), sp._floats(p)  # counts, and shares
        value = sp.gammaln(n + 1) + wnp.sum(sp.xlogy(x, p) - sp.gammaln(x + 1), -1)
        return wnp.where(wnp.sum(x, -1) == n, value, -_INF)
