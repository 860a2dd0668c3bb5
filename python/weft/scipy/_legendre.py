"""Associated Legendre functions of all degrees and orders at once."""

from __future__ import annotations

import math

import numpy as np

from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._weft import Array
from ..control import scan
from ..derivatives import jvp
from ..typing import ArrayLike

__all__ = ["lpmn", "lpmn_values"]


def lpmn_values(m: int, n: int, z: ArrayLike, is_normalized: bool) -> Array:
    """Associated Legendre functions of the first kind with the phase of Condon and Shortley, of all orders up to m and
    degrees up to n.

    Args:
        m: the largest order, at most n.
        n: the largest degree.
        z: vector of numbers in [-1, 1], of a float dtype.
        is_normalized: whether each is multiplied by what makes spherical harmonics of it that are orthonormal on the
            sphere. Those do not overflow.

    Returns: array of shape (m + 1, n + 1, len(z)), by order and degree, of z's dtype; 0 where the order exceeds the
    degree.

    Raises:
        TypeError: z is not of 32-bit or 64-bit floats.
        ValueError: z is no vector, or m and n are not 0 <= m <= n.

    Source: Press et al., "Numerical recipes", 6.7: the recurrence over degrees.

    Example:
        >>> weft.scipy.special.lpmn_values(1, 2, wnp.array([0.5]), False)[0]
        Array([[ 1.   ],
               [ 0.5  ],
               [-0.125]], dtype=float32)
    """
    z = wnp.asarray(z)
    if z.dtype not in (np.float32, np.float64):
        raise type_error(f"lpmn_values: z is of dtype {z.dtype}; it takes float32 and float64")
    m, n = int(m), int(n)
    if z.ndim != 1 or not 0 <= m <= n:
        raise value_error(f"lpmn_values: z is of shape {z.shape}, m is {m} and n is {n}; z is a vector, 0 <= m <= n")
    of, up = _factors(m, n, is_normalized)
    # The powers of the sine: of even order polynomials, whose derivatives are finite at the poles.
    square = (1 - z) * (1 + z)
    orders = np.arange(m + 1)
    powers = wnp.power(square, wnp.asarray(orders // 2, z.dtype)[:, None])
    powers = wnp.where((orders % 2 == 1)[:, None], powers * wnp.sqrt(square), powers)

    def step(earlier, factors):
        before, last = earlier
        diagonal, by_z, by_earlier = (f[:, None] for f in factors)
        new = diagonal * powers + by_z * z * last - by_earlier * before
        return (last, new), new

    zeros = wnp.zeros_like(powers)
    _, found = scan(step, (zeros, zeros), tuple(wnp.asarray(f, z.dtype) for f in (of, *up)))
    return wnp.swapaxes(found, 0, 1)


def _factors(m: int, n: int, normalized: bool) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """By degree and order: the factor of the sine's power, where both are the same; those of z times the function one
    degree below, and of the one two degrees below, where the degree is larger."""
    degree, order = np.mgrid[: n + 1, : m + 1].astype(np.float64)
    below = degree > order
    l, k = np.where(below, degree, 1), np.where(below, order, 0)
    at = np.arange(1, m + 1)
    if normalized:
        factor = -np.sqrt((2 * at + 1) / (2 * at))
        start = math.sqrt(1 / (4 * math.pi))
        by_z = np.sqrt((4 * l * l - 1) / (l * l - k * k))
        # Of the function two degrees below, which is 0 unless the degree is larger by 2.
        far = degree > order + 1
        l, k = np.where(far, l - 1, 1), np.where(far, k, 0)
        by_earlier = np.where(far, by_z * np.sqrt((l * l - k * k) / (4 * l * l - 1)), 0)
    else:
        factor = -(2.0 * at - 1)
        start = 1.0
        by_z = (2 * l - 1) / (l - k)
        by_earlier = (l + k - 1) / (l - k)
    diagonal = np.where(degree == order, start * np.cumprod(np.concatenate([[1.0], factor])), 0)
    return diagonal, (np.where(below, by_z, 0), np.where(below, by_earlier, 0))


def lpmn(m: int, n: int, z: ArrayLike) -> tuple[Array, Array]:
    """Associated Legendre functions of the first kind, and their derivatives; see lpmn_values.

    Args:
        m: the largest order, at most n.
        n: the largest degree.
        z: vector of numbers in [-1, 1], of a float dtype.

    Returns: two arrays of shape (m + 1, n + 1, len(z)).

    Example:
        >>> weft.scipy.special.lpmn(0, 2, wnp.array([0.5]))[1][0, :, 0]
        Array([0. , 1. , 1.5], dtype=float32)
    """
    z = wnp.asarray(z)
    return jvp(lambda x: lpmn_values(m, n, x, False), (z,), (wnp.ones_like(z),))


_docs.complete(globals(), {}, arrays=True)
