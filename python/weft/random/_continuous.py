"""Distributions that are made from others by exact formulas."""

from __future__ import annotations

from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import value_error
from .._weft import Array
from ..typing import DTypeLike, NestedLike, Shape
from ._basic import exponential, normal, rademacher, uniform
from ._keys import KEY_ERRORS, _parameter, _shape, split

__all__ = [
    "double_sided_maxwell",
    "lognormal",
    "maxwell",
    "multivariate_normal",
    "orthogonal",
    "pareto",
    "rayleigh",
    "triangular",
    "wald",
    "weibull_min",
]


def lognormal(key: Array, sigma: NestedLike = 1.0, shape: int | Shape | None = None, dtype: DTypeLike = float) -> Array:
    """Exponentials of normal numbers.

    Args:
        sigma: the standard deviation of the normal numbers, a number or an array.
        shape: the shape of the result; None: that of sigma.

    Returns: array of that shape.

    Example:
        >>> weft.random.lognormal(weft.random.key(0), 0.5, (2,))
        Array([2.2508795, 2.752838 ], dtype=float32)
    """
    shape = wnp.shape(sigma) if shape is None else shape
    return wnp.exp(normal(key, shape, dtype) * wnp.asarray(sigma, dtype))


def pareto(key: Array, b: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = float) -> Array:
    """Pareto numbers >= 1: exp(E / b) of a standard exponential E.

    Args:
        b: the exponent, a number or an array.
        shape: the shape of the result; None: that of b.

    Returns: array of that shape.

    Example:
        >>> weft.random.pareto(weft.random.key(0), 3.0, (2,))
        Array([2.6734667, 3.6007476], dtype=float32)
    """
    shape = wnp.shape(b) if shape is None else shape
    return wnp.exp(exponential(key, shape, dtype) / wnp.asarray(b, dtype))


def rayleigh(key: Array, scale: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = float) -> Array:
    """Rayleigh numbers: scale sqrt(-2 log(u)).

    Args:
        scale: the scale, a number or an array.
        shape: the shape of the result; None: that of scale.

    Returns: array of that shape.

    Example:
        >>> weft.random.rayleigh(weft.random.key(0), 2.0, (2,))
        Array([0.65575665, 0.41620055], dtype=float32)
    """
    shape = wnp.shape(scale) if shape is None else shape
    return wnp.asarray(scale, dtype) * wnp.sqrt(-2 * wnp.log(uniform(key, shape, dtype)))


def weibull_min(
    key: Array, scale: Array | float, concentration: Array | float, shape: Shape = (), dtype: DTypeLike = float
) -> Array:
    """Weibull numbers: scale (-log(1 - u)) ^ (1 / concentration).

    Args:
        scale: the scale, a number or an array that broadcasts to the shape.
        concentration: the shape parameter, a number or an array that broadcasts to the shape.

    Returns: array of that shape.

    Example:
        >>> weft.random.weibull_min(weft.random.key(0), 1.0, 2.0, (2,))
        Array([1.7175937, 1.9604654], dtype=float32)
    """
    scale, concentration = wnp.asarray(scale, dtype), wnp.asarray(concentration, dtype)
    return wnp.power(-wnp.log1p(-uniform(key, shape, dtype)), 1.0 / concentration) * scale


def maxwell(key: Array, shape: int | Shape = (), dtype: DTypeLike = float) -> Array:
    """Maxwell numbers: the lengths of vectors of three standard normal numbers.

    Returns: array of that shape.

    Example:
        >>> weft.random.maxwell(weft.random.key(0), (2,))
        Array([2.6310966, 0.9910329], dtype=float32)
    """
    return wnp.linalg.vector_norm(normal(key, (*_shape(shape), 3), dtype), axis=-1)


def triangular(
    key: Array,
    left: NestedLike,
    mode: NestedLike,
    right: NestedLike,
    shape: int | Shape | None = None,
    dtype: DTypeLike = float,
) -> Array:
    """Numbers whose density is a triangle, by the inverse of the distribution function.

    Args:
        left: the lower end, a number or an array.
        mode: where the peak is.
        right: the upper end.
        shape: the shape of the result; None: that of the three together.

    Returns: array of that shape.

    Example:
        >>> weft.random.triangular(weft.random.key(0), 0.0, 1.0, 3.0, (2,))
        Array([2.4396448, 2.6415021], dtype=float32)
    """
    left, mode, right = (wnp.asarray(v, dtype) for v in (left, mode, right))
    if shape is None:
        shape = wnp.broadcast_shapes(left.shape, mode.shape, right.shape)
    u = uniform(key, shape, dtype)
    low = left + wnp.sqrt(u * (right - left) * (mode - left))
    high = right - wnp.sqrt((1 - u) * (right - left) * (right - mode))
    return wnp.where(u < (mode - left) / (right - left), low, high)


def multivariate_normal(
    key: Array,
    mean: NestedLike,
    cov: NestedLike,
    shape: int | Shape | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
) -> Array:
    """Normal vectors.

    Args:
        mean: array [..., n].
        cov: array [..., n, n]: the covariance matrix.
        shape: the shape of the result without n; None: that of the batches.
        dtype: the dtype of the result; None: that of the arguments together.
        method: how the matrix is factored: "cholesky", "eigh" or "svd".

    Returns: array shape + [n].

    Raises:
        ValueError: there is no such method, or shapes do not fit.

    Example:
        >>> weft.random.multivariate_normal(weft.random.key(0), wnp.zeros(2), wnp.eye(2))
        Array([1.6226422, 2.0252647], dtype=float32)
    """
    mean, cov = _parameter(mean), _parameter(cov)
    if mean.ndim < 1 or cov.ndim < 2 or cov.shape[-2:] != (mean.shape[-1],) * 2:
        raise value_error(
            f"multivariate_normal: mean of shape {mean.shape} and cov of shape {cov.shape}; expected (..., n) and "
            "(..., n, n)"
        )
    dtype = wnp.result_type(mean, cov, 1.0) if dtype is None else dtype
    mean, cov = mean.astype(dtype), cov.astype(dtype)
    shape = wnp.broadcast_shapes(mean.shape[:-1], cov.shape[:-2]) if shape is None else _shape(shape)
    cov = cov.astype("float32") if cov.dtype.itemsize == 2 else cov  # there are factorisations of 32 and 64 bits
    if method == "cholesky":
        factor = wnp.linalg.cholesky(cov)
    elif method == "eigh":
        w, v = wnp.linalg.eigh(cov)
        factor = v * wnp.sqrt(w)[..., None, :]
    elif method == "svd":
        u, w, _ = wnp.linalg.svd(cov)
        factor = u * wnp.sqrt(w)[..., None, :]
    else:
        raise value_error(f"multivariate_normal: there is no method {method!r}")
    return mean + wnp.einsum("...ij,...j->...i", factor.astype(dtype), normal(key, shape + mean.shape[-1:], dtype))


def orthogonal(key: Array, n: int, shape: int | Shape = (), dtype: DTypeLike = float, m: int | None = None) -> Array:
    """Random matrices with orthonormal rows or columns, whichever are fewer, uniform (by Haar's measure).

    Args:
        n: the number of rows.
        shape: the shape of the batch.
        m: the number of columns; None: n, for orthogonal (of complex dtypes unitary) matrices.

    Returns: array shape + [n, m].

    Source: Mezzadri, "How to generate random matrices from the classical compact groups", 2007.

    Example:
        >>> weft.random.orthogonal(weft.random.key(0), 3, (5,)).shape
        (5, 3, 3)
    """
    m = n if m is None else m
    q, r = wnp.linalg.qr(normal(key, (*_shape(shape), max(n, m), min(n, m)), dtype))
    d = wnp.diagonal(r, axis1=-2, axis2=-1)
    q = q * wnp.sign(d)[..., None, :]
    return wnp.swapaxes(q, -1, -2) if n < m else q


def wald(key: Array, mean: NestedLike, shape: int | Shape | None = None, dtype: DTypeLike = float) -> Array:
    """Wald (inverse Gaussian) numbers of scale 1.

    Args:
        mean: the mean, > 0, a number or an array.
        shape: the shape of the result; None: that of mean.

    Returns: array of that shape.

    Source: Michael, Schucany and Haas, "Generating random variates using transformations with multiple roots", 1976.

    Example:
        >>> weft.random.wald(weft.random.key(0), 2.0, (2,)).shape
        (2,)
    """
    mean = wnp.asarray(mean, dtype)
    shape = mean.shape if shape is None else _shape(shape)
    k1, k2 = split(key)
    y = normal(k1, shape, dtype) ** 2
    # The smaller root, without cancellation, and the larger one.
    half = mean * y / 2
    smaller = mean / (1 + half + wnp.sqrt(half * (2 + half)))
    return wnp.where(uniform(k2, shape, dtype) <= mean / (mean + smaller), smaller, mean * mean / smaller)


def double_sided_maxwell(
    key: Array, loc: NestedLike, scale: NestedLike, shape: int | Shape = (), dtype: DTypeLike = float
) -> Array:
    """Maxwell numbers with a random sign, stretched and moved.

    Args:
        loc: what is added, a number or an array.
        scale: what they are multiplied with first.
        shape: the dimensions in front of those of loc and scale together; (): those once more, as in JAX.

    Returns: array of the shape followed by that of loc and scale together.

    Example:
        >>> weft.random.double_sided_maxwell(weft.random.key(0), 0.0, 1.0, (2,)).shape
        (2,)
    """
    k1, k2 = split(key)
    loc, scale = wnp.asarray(loc, dtype), wnp.asarray(scale, dtype)
    own = wnp.broadcast_shapes(loc.shape, scale.shape)
    shape = (_shape(shape) or own) + own
    return rademacher(k2, shape, dtype) * maxwell(k1, shape, dtype) * scale + loc


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "dtype": "the dtype of the result; float: the default float dtype.",
}

_docs.complete(globals(), _PARAMETERS, errors=KEY_ERRORS)
