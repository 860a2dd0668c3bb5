"""Determinants, with derivatives at singular matrices too."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from .. import _weft, control
from .._core import docs as _docs
from .._weft import Array
from ..custom import custom_jvp
from ..derivatives import jvp
from ..typing import NestedLike
from ._choosing import clip
from ._elementwise import log2
from ._factors import _adjoint, _matrix, svd
from ._linalg import matmul
from ._linalg import trace as _trace
from ._matrices import diagonal as _diagonal
from ._matrices import eye
from ._primitives import exp2, log
from ._rounding import floor
from ._systems import inv, solve

__all__ = [
    "det",
    "slogdet",
]


class SlogdetResult(NamedTuple):
    """The result of slogdet."""

    sign: Array
    logabsdet: Array


def slogdet(a: NestedLike) -> SlogdetResult:
    """The sign of the determinant and the logarithm of its absolute value.

    Returns: named tuple (sign, logabsdet) of arrays [...]; the sign of a complex determinant is a number of modulus 1.

    Raises:
        ValueError: a is not square.

    Example:
        >>> wnp.linalg.slogdet(wnp.array([[-2.0, 0.0], [0.0, 1.0]]))
        SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0.6931472, dtype=float32))
    """
    return SlogdetResult(*_log_determinant()(_matrix(a, "slogdet", True)))


def _trace_of_quotient(a: Array, da: Array) -> Array:
    """The trace of a^-1 da, from the inverse: its transpose is then the gradient, and -a^-1 da a^-1 its derivative."""
    return _weft.reduce("reduce_sum", inv(a).mT * da, [-2, -1], False)


@functools.cache
def _log_determinant() -> Callable[[Array], tuple[Array, Array]]:
    """slogdet with the derivative of log(det(a)), the trace of a^-1 da: not that of the factors, which takes several
    times as many operations, at every order."""

    @custom_jvp
    def log_determinant(a):
        lu, pivots, _ = _weft.bind("lu", [a], {})
        d = _diagonal(lu, 0, -2, -1)
        size = _weft.absolute(d)
        is_complex = d.dtype != size.dtype
        each = d / _weft.where(size == 0, 1, size) if is_complex else _weft.bind_elementwise("sign", (d,), {})
        sign = _weft.reduce("reduce_prod", each, -1, False)
        return sign * _sign_of(pivots).astype(d.dtype), _weft.reduce("reduce_sum", log(size), -1, False)

    @log_determinant.defjvp
    def rule(primals, tangents):
        sign, size = log_determinant(*primals)
        moved = _trace_of_quotient(*primals, *tangents)
        if size.dtype == sign.dtype:
            return (sign, size), (_weft.full(sign.shape, 0, sign.dtype), moved)
        return (sign, size), (sign * (moved - moved.real.astype(sign.dtype)), moved.real)

    return log_determinant


def _sign_of(pivots: Array) -> Array:
    """1 or -1: the determinant of the permutation."""
    swaps = _weft.reduce(
        "reduce_sum", (pivots != _weft.iota((pivots.shape[-1],), 0, "int32")).astype("int32"), -1, False
    )
    return _weft.where(swaps % 2 == 1, -1, 1)


def _det_by_lu(a: Array) -> Array:
    lu, pivots, _ = _weft.bind("lu", [a], {})
    return _weft.reduce("reduce_prod", _diagonal(lu, 0, -2, -1), -1, False) * _sign_of(pivots).astype(a.dtype)


@functools.cache
def _regular_det() -> Callable[[Array], Array]:
    """The determinant of what has an inverse, with the derivative det(a) trace(a^-1 da)."""

    @custom_jvp
    def regular_det(a):  # a function of its own: _det_by_lu has another rule
        return _det_by_lu(a)

    @regular_det.defjvp
    def rule(primals, tangents):
        out = regular_det(*primals)
        return out, out * _trace_of_quotient(*primals, *tangents)

    return regular_det


# Derivatives up to this order are right for any rank, and all of them where the rank lacks no more.
_DEFICIENCY = 6


def _det_by_svd(a: Array) -> Array:
    """The determinant as a function that has its derivatives at a singular matrix too.

    With constants U, V, D, Z from a = U S V^H: det(a) = det(U) det(V^H) det(D) det(M - Z), where M = U^H a V D^-1 + Z
    is near the identity, D is S but for singular values that are small, and Z is diagonal and 0 but for these q. So
    det(M - Z) = det(M) det(I - M^-1 Z), and the second is the determinant of a block of q rows and columns, K, which
    is near 0: the elementary symmetric polynomial of its eigenvalues of degree q, by Newton's identities from the
    traces of its powers.
    """
    n = a.shape[-1]
    fixed = _weft.bind_elementwise("stop_gradient", (a,), {})
    u, s, vh = svd(fixed)
    largest = s[..., :1]
    small = s <= _tolerance(s.dtype) * largest
    scale = _weft.where(small, _weft.where(largest == 0, 1, largest), s)
    z = _weft.where(small, 1 - s / scale, 0)
    one, column = eye(n, dtype=a.dtype), lambda v: v.astype(a.dtype)[..., None, :]
    m = matmul(matmul(_adjoint(u), a), _adjoint(vh)) / column(scale) + one * column(z)
    block = one - solve(m, _weft.broadcast_to(one, m.shape)) * column(z)
    block = block * column(small) * small.astype(a.dtype)[..., :, None]
    count = _weft.reduce("reduce_sum", small.astype("int32"), -1, False)
    power, traces, symmetric = block, [_trace(block, 0, -2, -1)], [_weft.full(count.shape, 1, a.dtype)]
    out = _weft.where(count == 0, symmetric[0], 0)
    for k in range(1, min(n, _DEFICIENCY) + 1):
        if k > 1:
            power = matmul(power, block)
            traces.append(_trace(power, 0, -2, -1))
        total = symmetric[k - 1] * traces[0]
        for i in range(1, k):
            total = total + (-1) ** i * symmetric[k - 1 - i] * traces[i]
        symmetric.append(total / k)
        out = _weft.where(count == k, symmetric[k], out)
    constant = _det_by_lu(u) * _det_by_lu(vh) * _weft.reduce("reduce_prod", scale.astype(a.dtype), -1, False)
    out = constant * _det_by_lu(m) * out
    # The value is that of the plain determinant.
    return out + _weft.bind_elementwise("stop_gradient", (_det_by_lu(fixed) - out,), {})


def _tolerance(dtype) -> float:
    """Below this share of the largest a singular value counts as small. The Hessian's error is precision / it."""
    return 1e-7 if dtype == "float64" else 1e-3


def _balanced(a: Array) -> tuple[Array, Array]:
    """A matrix with rows and columns multiplied by powers of two, so that the numbers of each are near 1 in the mean of
    their logarithms, and the exponent of what its determinant then lacks: rows of other sizes do not make a matrix
    singular."""
    size = _weft.absolute(_weft.bind_elementwise("stop_gradient", (a,), {}))
    there = size > 0
    level = log2(_weft.where(there, size, 1))
    exponent = _weft.full(size.shape[:-2], 0, size.dtype)
    for axis in (-1, -2) * 4:  # each disturbs the other, less and less
        count = _weft.reduce("reduce_sum", there.astype(size.dtype), axis, True)
        mean = _weft.reduce("reduce_sum", level, axis, True) / _weft.where(count == 0, 1, count)
        power = clip(floor(mean + 0.5), -120, 120)
        level, a = _weft.where(there, level - power, 0), a * exp2(-power).astype(a.dtype)
        exponent = exponent + _weft.reduce("reduce_sum", power, [-2, -1], False)
    return a, exponent


@functools.cache
def _smooth_det() -> Callable[[Array], Array]:
    """The determinant, with derivatives at singular matrices: the inverse that the rule of LU has is not there."""

    def either(a):
        a, exponent = _balanced(a)
        size = _weft.absolute(_diagonal(_weft.bind("lu", [a], {})[0], 0, -2, -1))
        low, high = (_weft.reduce(f"reduce_{which}", size, -1, False) for which in ("min", "max"))
        singular = low <= _tolerance(size.dtype) * high
        # A branch may run for lanes that do not take it, so each is finite wherever the other is taken.
        safe = _weft.where(singular[..., None, None], eye(a.shape[-1], dtype=a.dtype), a)
        every = tuple(range(singular.ndim))
        anywhere = _weft.bind("reduce_or", [singular], {"dims": list(every)})[0] if every else singular
        out = control.cond(anywhere, lambda x, _: _det_by_svd(x), lambda _, x: _regular_det()(x), a, safe)
        half = floor(exponent / 2)  # the whole power may be too large a number
        return out * exp2(half) * exp2(exponent - half)

    smooth = custom_jvp(_det_by_lu)
    smooth.defjvp(lambda primals, tangents: jvp(either, primals, tangents))
    return smooth


def det(a: NestedLike) -> Array:
    """The determinant, by the LU factorisation; of up to three rows by expansion.

    Derivatives are right at singular matrices too: the first is the matrix of cofactors. (Orders above 6 only where the
    rank lacks at most 6. weft.jet of more than three rows is NaN there.)

    Returns: array [...].

    Raises:
        ValueError: a is not square.

    Example:
        >>> wnp.linalg.det(wnp.array([[2.0, 1.0], [1.0, 3.0]]))
        Array(5., dtype=float32)
    """
    a = _matrix(a, "det", True)
    n = a.shape[-1]
    if n not in (1, 2, 3):
        return _smooth_det()(a) if n else _det_by_lu(a)
    at = lambda i, j: a[..., i, j]
    if n == 1:
        return at(0, 0)
    minor = lambda j, k: at(n - 2, j) * at(n - 1, k) - at(n - 2, k) * at(n - 1, j)
    return minor(0, 1) if n == 2 else at(0, 0) * minor(1, 2) - at(0, 1) * minor(0, 2) + at(0, 2) * minor(0, 1)


_docs.complete(globals(), {"a": "array [..., n, n]."}, arrays=True)
