"""Densities estimated from samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import _weft, tree_util
from ... import numpy as wnp
from ..._core.errors import not_implemented, value_error
from ..._weft import Array
from ...random import choice, multivariate_normal, split
from ...typing import NestedLike, Shape
from .. import linalg
from .. import special as sp


class gaussian_kde:
    """A density that is a normal one around each sample, with the covariance of the samples, made narrower.

    A tree, whose leaves are the arrays of its attributes.

    Args:
        dataset: array [n] or [d, n] of floats: n samples in d dimensions.
        bw_method: how much narrower: "scott" (None), "silverman", a number, or a function of the estimate.
        weights: array [n] of weights; None: all the same.

    Source: Scott, "Multivariate density estimation", 1992; Silverman, "Density estimation", 1986.

    Example:
        >>> density = weft.scipy.stats.gaussian_kde(wnp.array([1.0, 2.0, 4.0]))
        >>> density.evaluate(wnp.array([2.0]))
        Array([0.21489535], dtype=float32)
    """

    neff: Any
    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any

    def __init__(
        self,
        dataset: NestedLike,
        bw_method: str | float | Callable[[Any], Any] | None = None,
        weights: NestedLike | None = None,
    ):
        given = _weft.promote_inexact(wnp.asarray(dataset))
        if not wnp.issubdtype(given.dtype, wnp.floating):
            raise not_implemented(f"gaussian_kde: samples must be real, got {given.dtype}")
        self.dataset = wnp.atleast_2d(given)
        if self.dataset.size < 2:
            raise value_error(f"gaussian_kde: two samples or more are needed, got shape {given.shape}")
        if weights is None:
            self.weights = wnp.full(self.n, 1.0 / self.n, self.dataset.dtype)
        else:
            w = wnp.atleast_1d(wnp.asarray(weights, self.dataset.dtype))
            if w.shape != (self.n,):
                raise value_error(f"gaussian_kde: weights must have the shape ({self.n},), got {w.shape}")
            self.weights = w / wnp.sum(w)
        self.neff = 1 / wnp.sum(self.weights**2)
        factor = self._factor(bw_method)
        covariance = wnp.atleast_2d(wnp.cov(self.dataset, rowvar=True, bias=False, aweights=self.weights))
        self.covariance = covariance * factor**2
        self.inv_cov = wnp.linalg.inv(covariance) / factor**2

    def _factor(self, method):
        if method is None or method == "scott":
            return wnp.power(self.neff, -1.0 / (self.d + 4))
        if method == "silverman":
            return wnp.power(self.neff * (self.d + 2) / 4.0, -1.0 / (self.d + 4))
        if callable(method):
            return method(self)
        if isinstance(method, str):
            raise value_error(
                f"gaussian_kde: bw_method must be 'scott', 'silverman', a number or a function; {method!r}"
            )
        return wnp.asarray(method, self.dataset.dtype)

    @property
    def d(self) -> int:
        """How many dimensions samples have.

        Returns: integer.

        Example:
            >>> weft.scipy.stats.gaussian_kde(wnp.array([1.0, 2.0, 4.0])).d
            1
        """
        return int(self.dataset.shape[0])

    @property
    def n(self) -> int:
        """How many samples there are.

        Returns: integer.

        Example:
            >>> weft.scipy.stats.gaussian_kde(wnp.array([1.0, 2.0, 4.0])).n
            3
        """
        return int(self.dataset.shape[1])

    def _points(self, points, name: str) -> Array:
        p = wnp.asarray(points)
        if not wnp.issubdtype(p.dtype, wnp.floating):
            p = p.astype(self.dataset.dtype)
        p = wnp.atleast_2d(p)
        if p.shape[0] != self.d and p.shape == (1, self.d):
            p = p.reshape(self.d, 1)
        if p.ndim != 2 or p.shape[0] != self.d:
            raise value_error(f"gaussian_kde.{name}: points must have the shape ({self.d}, points), got {p.shape}")
        return p

    def evaluate(self, points: NestedLike) -> Array:
        """The density at points.

        Args:
            points: array [d, points], or [points] in one dimension.

        Returns: array [points].

        Example:
            >>> weft.scipy.stats.gaussian_kde(wnp.array([1.0, 2.0, 4.0])).evaluate(wnp.array([2.0]))
            Array([0.21489535], dtype=float32)
        """
        return wnp.exp(self._log(self._points(points, "evaluate")))

    def __call__(self, points: NestedLike) -> Array:
        return self.evaluate(points)

    def pdf(self, x: NestedLike) -> Array:
        """The density at points: evaluate.

        Args:
            x: array [d, points], or [points] in one dimension.

        Returns: array [points].

        Example:
            >>> weft.scipy.stats.gaussian_kde(wnp.array([1.0, 2.0, 4.0])).pdf(wnp.array([2.0]))
            Array([0.21489535], dtype=float32)
        """
        return self.evaluate(x)

    def logpdf(self, x: NestedLike) -> Array:
        """log of the density at points.

        Args:
            x: array [d, points], or [points] in one dimension.

        Returns: array [points].

        Example:
            >>> weft.scipy.stats.gaussian_kde(wnp.array([1.0, 2.0, 4.0])).logpdf(wnp.array([2.0]))
            Array([-1.5376041], dtype=float32)
        """
        return self._log(self._points(x, "logpdf"))

    def _log(self, points: Array) -> Array:
        lower = wnp.linalg.cholesky(self.covariance)
        white = linalg.solve_triangular(lower, self.dataset, lower=True)
        at = linalg.solve_triangular(lower, points, lower=True)
        apart = at[:, :, None] - white[:, None, :]
        log_norm = 0.5 * self.d * math.log(2 * math.pi) + wnp.sum(wnp.log(wnp.diagonal(lower)))
        return sp.logsumexp(-0.5 * wnp.sum(apart * apart, 0), axis=-1, b=self.weights) - log_norm

    def integrate_gaussian(self, mean: NestedLike, cov: NestedLike) -> Array:
        """The integral of the density times a normal one.

        Args:
            mean: array [d]: its mean.
            cov: array [d, d]: its covariance matrix.

        Returns: array of one number.

        Example:
            >>> weft.scipy.stats.gaussian_kde(wnp.array([1.0, 2.0, 4.0])).integrate_gaussian(2.0, 1.0)
            Array(0.19068018, dtype=float32)
        """
        centre: Array = wnp.atleast_1d(wnp.squeeze(wnp.asarray(mean)))
        spread: Array = wnp.atleast_2d(wnp.asarray(cov))
        if centre.shape != (self.d,) or spread.shape != (self.d, self.d):
            raise value_error(
                f"gaussian_kde.integrate_gaussian: mean and cov must have the shapes ({self.d},) and "
                f"({self.d}, {self.d}), got {centre.shape} and {spread.shape}"
            )
        return wnp.sum(self.weights * _normal(self.dataset - centre[:, None], self.covariance + spread))

    def integrate_box_1d(self, low: NestedLike, high: NestedLike) -> Array:
        """The probability of an interval, in one dimension.

        Args:
            low: the lower end.
            high: the upper end.

        Returns: array of one number.

        Example:
            >>> weft.scipy.stats.gaussian_kde(wnp.array([1.0, 2.0, 4.0])).integrate_box_1d(1.0, 3.0)
            Array(0.4113205, dtype=float32)
        """
        if self.d != 1:
            raise value_error(f"gaussian_kde.integrate_box_1d: samples have {self.d} dimensions; one is needed")
        spread = wnp.sqrt(self.covariance[0, 0])
        low, high = (wnp.squeeze(wnp.asarray(v)) for v in (low, high))
        ends = (sp.ndtr((v - self.dataset[0]) / spread) for v in (high, low))
        above, below = ends
        return wnp.sum(self.weights * (above - below))

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product of two densities.

        Args:
            other: another estimate in as many dimensions.

        Returns: array of one number.

        Example:
            >>> density = weft.scipy.stats.gaussian_kde(wnp.array([1.0, 2.0, 4.0]))
            >>> density.integrate_kde(density)
            Array(0.15771432, dtype=float32)
        """
        if other.d != self.d:
            raise value_error(f"gaussian_kde.integrate_kde: samples have {self.d} and {other.d} dimensions")
        apart = self.dataset[:, :, None] - other.dataset[:, None, :]
        parts = _normal(apart.reshape(self.d, -1), self.covariance + other.covariance).reshape(self.n, other.n)
        return wnp.einsum("i,ij,j->", self.weights, parts, other.weights)

    def resample(self, key: Array, shape: Shape = ()) -> Array:
        """Random numbers with the density.

        Args:
            key: the key that determines the numbers.
            shape: how many, a tuple.

        Returns: array [d, *shape].

        Example:
            >>> weft.scipy.stats.gaussian_kde(wnp.array([1.0, 2.0, 4.0])).resample(weft.random.key(0), (5,)).shape
            (1, 5)
        """
        k1, k2 = split(key)
        which = choice(k1, self.n, shape, p=self.weights)
        noise = multivariate_normal(k2, wnp.zeros(self.d, self.covariance.dtype), self.covariance, shape=shape)
        return wnp.take(self.dataset, which, axis=1) + wnp.moveaxis(noise, -1, 0)

    def _replace(self, leaves) -> gaussian_kde:
        for name, leaf in zip(_LEAVES, leaves, strict=True):
            setattr(self, name, leaf)
        return self


_LEAVES = ("neff", "dataset", "weights", "covariance", "inv_cov")


def _normal(apart: Array, covariance: Array) -> Array:
    """The normal density of columns."""
    lower = wnp.linalg.cholesky(covariance)
    y = linalg.solve_triangular(lower, apart, lower=True)
    log_norm = 0.5 * apart.shape[0] * math.log(2 * math.pi) + wnp.sum(wnp.log(wnp.diagonal(lower)))
    return wnp.exp(-0.5 * wnp.sum(y * y, 0) - log_norm)


tree_util.register_pytree_node(
    gaussian_kde,
    lambda kde: ([getattr(kde, name) for name in _LEAVES], None),
    lambda _, leaves: object.__new__(gaussian_kde)._replace(leaves),
)
