"""Matrices with names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _weft
from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import value_error
from .._weft import Array
from ..typing import DTypeLike, NestedLike

__all__ = [
    "circulant",
    "companion",
    "convolution_matrix",
    "dft",
    "fiedler",
    "fiedler_companion",
    "hadamard",
    "hankel",
    "helmert",
    "hilbert",
    "invhilbert",
    "invpascal",
    "leslie",
    "pascal",
]


def _vector(x, name: str, what: str) -> Array:
    x = wnp.asarray(x)
    if x.ndim < 1:
        raise value_error(f"{name}: {what} must be a vector, got a single number")
    return x


def _places(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(rows)[:, None], np.arange(columns)[None, :]


def circulant(c: NestedLike) -> Array:
    """The matrix whose columns are a vector, each turned by one place.

    Args:
        c: array [..., n]: the first column; a number is one of length 1.

    Returns: array [..., n, n].

    Source: Golub and Van Loan, "Matrix computations", 4.8.2.

    Example:
        >>> weft.scipy.linalg.circulant(wnp.array([1, 2, 3]))
        Array([[1, 3, 2],
               [2, 1, 3],
               [3, 2, 1]], dtype=int32)
    """
    c = wnp.asarray(wnp.atleast_1d(c))
    i, j = _places(c.shape[-1], c.shape[-1])
    return wnp.take(c, wnp.asarray((i - j) % max(c.shape[-1], 1), "int32"), axis=-1)


def hankel(c: NestedLike, r: NestedLike | None = None) -> Array:
    """The matrix that is constant along antidiagonals.

    Args:
        c: array [..., m]: the first column.
        r: array [..., n]: the last row, whose first element is not read; None: zeros.

    Returns: array [..., m, n].

    Raises:
        ValueError: c or r is a single number.

    Source: Golub and Van Loan, "Matrix computations", 4.7.

    Example:
        >>> weft.scipy.linalg.hankel(wnp.array([1, 2, 3]), wnp.array([3, 4]))
        Array([[1, 2],
               [2, 3],
               [3, 4]], dtype=int32)
    """
    c = _vector(c, "hankel", "c")
    r = wnp.zeros_like(c) if r is None else _vector(r, "hankel", "r")
    dtype = wnp.result_type(c, r)
    batch = np.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    c, r = (wnp.broadcast_to(x, (*batch, x.shape[-1])) for x in (c, r))
    both = wnp.concatenate([c.astype(dtype), r[..., 1:].astype(dtype)], -1)
    i, j = _places(c.shape[-1], r.shape[-1])
    return wnp.take(both, wnp.asarray(i + j, "int32"), axis=-1)


def companion(a: NestedLike) -> Array:
    """The matrix whose eigenvalues are the roots of a polynomial.

    Args:
        a: array [..., n]: the coefficients, that of the highest power first and not 0.

    Returns: array [..., n - 1, n - 1] of a float or complex dtype.

    Raises:
        ValueError: there are too few coefficients.

    Source: Golub and Van Loan, "Matrix computations", 7.4.6.

    Example:
        >>> weft.scipy.linalg.companion(wnp.array([1.0, -3.0, 2.0]))
        Array([[ 3., -2.],
               [ 1.,  0.]], dtype=float32)
    """
    a = _vector(a, "companion", "a")
    n = a.shape[-1]
    if n < 2:
        raise value_error(f"companion: two coefficients or more are needed, got {n}")
    a = _weft.promote_inexact(a)
    first = -a[..., 1:] / a[..., :1]
    rest = wnp.broadcast_to(wnp.eye(n - 2, n - 1, dtype=a.dtype), (*a.shape[:-1], n - 2, n - 1))
    return wnp.concatenate([first[..., None, :], rest], -2)


def convolution_matrix(a: NestedLike, n: int, mode: str = "full") -> Array:
    """The matrix whose product with a vector is its convolution with another one.

    Args:
        a: array [..., m]: that other one.
        n: the length of vectors.
        mode: "full", "same" or "valid", as of numpy.convolve.

    Returns: array [..., rows, n].

    Raises:
        ValueError: n or a has no elements, or there is no such mode.

    Source: Golub and Van Loan, "Matrix computations", 4.7.

    Example:
        >>> weft.scipy.linalg.convolution_matrix(wnp.array([1, 2]), 3)
        Array([[1, 0, 0],
               [2, 1, 0],
               [0, 2, 1],
               [0, 0, 2]], dtype=int32)
    """
    a = _vector(a, "convolution_matrix", "a")
    m = a.shape[-1]
    if n < 1:
        raise value_error(f"convolution_matrix: n must be positive, got {n}")
    if m < 1:
        raise value_error("convolution_matrix: a must have one element or more, got none")
    if mode not in ("full", "same", "valid"):
        raise value_error(f"convolution_matrix: mode must be 'full', 'same' or 'valid', got {mode!r}")
    i, j = _places(m + n - 1, n)
    from_a = wnp.take(a, wnp.asarray(np.clip(i - j, 0, m - 1), "int32"), axis=-1)
    full = wnp.where(wnp.asarray((i >= j) & (i - j < m)), from_a, 0).astype(a.dtype)
    if mode == "full":
        return full
    if mode == "same":
        before = min(m, n) - 1
        top, rows = before // 2 + before % 2 - before % 2, max(m, n)
        return full[..., top : top + rows, :]
    before = min(m, n) - 1
    return full[..., before : before + max(m, n) - before, :]


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the discrete Fourier transform: exp(-2 pi i j k / n).

    Args:
        n: how many rows and columns.
        scale: None; "sqrtn": divided by the root of n; "n": divided by n.
        dtype: the dtype of the result; None: the default complex dtype.

    Returns: array [n, n].

    Raises:
        ValueError: there is no such scale.

    Source: Golub and Van Loan, "Matrix computations", 1.4.

    Example:
        >>> wnp.round(weft.scipy.linalg.dft(2), 3)
        Array([[ 1.+0.j,  1.+0.j],
               [ 1.+0.j, -1.-0.j]], dtype=complex64)
    """
    factors = {None: 1.0, "sqrtn": 1 / math.sqrt(max(n, 1)), "n": 1 / max(n, 1)}
    if scale not in factors:
        raise value_error(f"dft: scale must be None, 'sqrtn' or 'n', got {scale!r}")
    if dtype is not None and not wnp.issubdtype(dtype, wnp.complexfloating):
        raise value_error(f"dft: dtype must be a complex dtype, got {dtype}")
    i, j = _places(n, n)
    matrix = np.exp(-2j * np.pi * ((i * j) % max(n, 1)) / max(n, 1)) * factors[scale]
    return wnp.asarray(matrix, complex if dtype is None else dtype)


def fiedler(a: NestedLike) -> Array:
    """The matrix of the distances between numbers: |a_i - a_j|.

    Args:
        a: array [..., n]; a number is one of length 1.

    Returns: array [..., n, n].

    Source: Higham, "Accuracy and stability of numerical algorithms", chapter 28.

    Example:
        >>> weft.scipy.linalg.fiedler(wnp.array([1.0, 4.0]))
        Array([[0., 3.],
               [3., 0.]], dtype=float32)
    """
    a = wnp.asarray(wnp.atleast_1d(a))
    return wnp.abs(a[..., :, None] - a[..., None, :])


def fiedler_companion(a: NestedLike) -> Array:
    """A matrix with five diagonals whose eigenvalues are the roots of a polynomial.

    Args:
        a: array [..., n]: the coefficients, that of the highest power first and not 0.

    Returns: array [..., n - 1, n - 1] of a float or complex dtype.

    Raises:
        ValueError: there are too few coefficients.

    Source: Fiedler, "A note on companion matrices", 2003.

    Example:
        >>> weft.scipy.linalg.fiedler_companion(wnp.array([1.0, -3.0, 2.0]))
        Array([[ 3., -2.],
               [ 1.,  0.]], dtype=float32)
    """
    a = _vector(a, "fiedler_companion", "a")
    n = a.shape[-1]
    if n < 1:
        raise value_error("fiedler_companion: a nonzero coefficient is needed, got none")
    a = _weft.promote_inexact(a)
    if n == 1:
        return wnp.zeros((*a.shape[:-1], 0, 0), a.dtype)
    b = a / a[..., :1]
    size = n - 1
    c = wnp.zeros((*a.shape[:-1], size, size), a.dtype).at[..., 0, 0].set(-b[..., 1])
    for row in range(size):
        if row % 2:  # a one, two places left of the diagonal; in the second row one place
            c = c.at[..., row, max(row - 2, 0)].set(1)
            continue
        if row:
            c = c.at[..., row, row - 1].set(-b[..., row + 1])
        if row + 1 < size:
            c = c.at[..., row, row + 1].set(-b[..., row + 2])
        if row + 2 < size:
            c = c.at[..., row, row + 2].set(1)
    return c


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Hadamard's matrix of 1 and -1 whose columns are orthogonal, by Sylvester's construction.

    Args:
        n: how many rows and columns: a power of 2.
        dtype: the dtype of the result; int: the default integer dtype.

    Returns: array [n, n].

    Raises:
        ValueError: n is no power of 2.

    Source: Golub and Van Loan, "Matrix computations", 5.1 (problems).

    Example:
        >>> weft.scipy.linalg.hadamard(2)
        Array([[ 1,  1],
               [ 1, -1]], dtype=int32)
    """
    if n < 1 or n & (n - 1):
        raise value_error(f"hadamard: n must be a power of 2, got {n}")
    h = np.ones((1, 1), np.int8)
    while h.shape[0] < n:
        h = np.block([[h, h], [h, -h]])
    return wnp.asarray(h).astype(dtype)


def helmert(n: int, full: bool = False) -> Array:
    """Helmert's orthogonal matrix, of contrasts.

    Args:
        n: how many columns.
        full: whether the first row, whose elements are all the same, is there.

    Returns: array [n - 1, n], or [n, n], of the default float dtype.

    Raises:
        ValueError: n is not positive.

    Source: Lancaster, "The Helmert matrices", 1965.

    Example:
        >>> weft.scipy.linalg.helmert(2)
        Array([[ 0.70710677, -0.70710677]], dtype=float32)
    """
    if n < 1:
        raise value_error(f"helmert: n must be positive, got {n}")
    h = np.tril(np.ones((n, n)), -1) - np.diag(np.arange(n))
    norm = np.arange(n) * np.arange(1, n + 1)
    h[0], norm[0] = 1, n
    h = h / np.sqrt(norm)[:, None]
    return wnp.asarray(h if full else h[1:], float)


def hilbert(n: int) -> Array:
    """Hilbert's matrix: 1 / (i + j + 1).

    Args:
        n: how many rows and columns.

    Returns: array [n, n] of the default float dtype.

    Source: Higham, "Accuracy and stability of numerical algorithms", 28.1.

    Example:
        >>> weft.scipy.linalg.hilbert(2)
        Array([[1.        , 0.5       ],
               [0.5       , 0.33333334]], dtype=float32)
    """
    i, j = _places(n, n)
    return wnp.asarray(1.0 / (i + j + 1), float)


def invhilbert(n: int) -> Array:
    """The inverse of Hilbert's matrix, whose elements are whole, rounded to floats.

    Args:
        n: how many rows and columns.

    Returns: array [n, n] of the default float dtype.

    Source: Choi, "Tricks or treats with the Hilbert matrix", 1983.

    Example:
        >>> weft.scipy.linalg.invhilbert(2)
        Array([[ 4., -6.],
               [-6., 12.]], dtype=float32)
    """
    ways = math.comb
    rows = [
        [
            float((-1) ** (i + j) * (i + j + 1) * ways(n + i, n - j - 1) * ways(n + j, n - i - 1) * ways(i + j, i) ** 2)
            for j in range(n)
        ]
        for i in range(n)
    ]
    return wnp.asarray(np.array(rows).reshape(n, n), float)


def _pascal_rows(n: int, kind: str | None, name: str) -> list[list[int]]:
    if kind not in (None, "symmetric", "lower", "upper"):
        raise value_error(f"{name}: kind must be 'symmetric', 'lower' or 'upper', got {kind!r}")
    if kind == "lower":
        return [[math.comb(i, j) for j in range(n)] for i in range(n)]
    if kind == "upper":
        return [[math.comb(j, i) for j in range(n)] for i in range(n)]
    return [[math.comb(i + j, i) for j in range(n)] for i in range(n)]


def pascal(n: int, kind: str | None = None) -> Array:
    """The matrix of Pascal's triangle.

    Args:
        n: how many rows and columns.
        kind: "symmetric" (None): binomial(i + j, i); "lower": binomial(i, j); "upper": its transpose.

    Returns: array [n, n] of the default float dtype.

    Raises:
        ValueError: there is no such kind.

    Source: Higham, "Accuracy and stability of numerical algorithms", 28.4.

    Example:
        >>> weft.scipy.linalg.pascal(3)
        Array([[1., 1., 1.],
               [1., 2., 3.],
               [1., 3., 6.]], dtype=float32)
    """
    return wnp.asarray(np.array(_pascal_rows(n, kind, "pascal"), np.float64).reshape(n, n), float)


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of the matrix of Pascal's triangle, whose elements are whole.

    Args:
        n: how many rows and columns.
        kind: as of pascal.

    Returns: array [n, n] of the default float dtype.

    Raises:
        ValueError: there is no such kind.

    Source: Higham, "Accuracy and stability of numerical algorithms", 28.4.

    Example:
        >>> weft.scipy.linalg.invpascal(3)
        Array([[ 3., -3.,  1.],
               [-3.,  5., -2.],
               [ 1., -2.,  1.]], dtype=float32)
    """
    signs = (-1) ** (np.arange(n)[:, None] + np.arange(n)[None, :])
    if kind in ("lower", "upper"):
        matrix: Any = signs * np.array(_pascal_rows(n, kind, "invpascal"), object).reshape(n, n)
    else:
        _pascal_rows(0, kind, "invpascal")
        lower = np.array(_pascal_rows(n, "lower", "invpascal"), object).reshape(n, n)
        matrix = signs * (lower.T @ lower)  # of L^T inverse times L inverse
    return wnp.asarray(matrix.astype(np.float64), float)


def leslie(f: NestedLike, s: NestedLike) -> Array:
    """The matrix by which a population of ages goes from one step to the next.

    Args:
        f: array [..., n]: how many each age brings forth; two or more.
        s: array [..., n - 1]: which part of each age survives.

    Returns: array [..., n, n].

    Raises:
        ValueError: shapes do not fit.

    Source: Leslie, "On the use of matrices in certain population mathematics", 1945.

    Example:
        >>> weft.scipy.linalg.leslie(wnp.array([0.0, 2.0]), wnp.array([0.5]))
        Array([[0. , 2. ],
               [0.5, 0. ]], dtype=float32)
    """
    f, s = _vector(f, "leslie", "f"), _vector(s, "leslie", "s")
    n = f.shape[-1]
    if n < 2 or s.shape[-1] != n - 1:
        raise value_error(f"leslie: f must have two elements or more, and s one less, got {n} and {s.shape[-1]}")
    dtype = wnp.result_type(f, s)
    f, s = f.astype(dtype), s.astype(dtype)
    below = wnp.concatenate([s[..., :, None] * wnp.eye(n - 1, dtype=dtype), wnp.zeros((*s.shape, 1), dtype)], -1)
    return wnp.concatenate([f[..., None, :], below], -2)


_docs.complete(globals(), {}, arrays=False)
