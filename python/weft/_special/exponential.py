"""Exponential integrals, sine, cosine and Fresnel integrals, Dawson's integral and the scaled error functions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _weft
from .. import numpy as wnp
from .._weft import Array
from ..custom import custom_jvp
from ..numpy._reductions import narrowed, widened
from ..typing import NestedLike
from .arguments import floats
from .incomplete import _until, lgamma

_ROOT_PI = math.sqrt(math.pi)


def with_slope(
    value: Callable[[Array], Array], slope: Callable[[Array, Array], Array]
) -> Callable[[NestedLike], Array]:
    """A function of one argument whose derivative is slope(x, value(x)), of 32 or 64 bits inside."""

    @functools.cache
    def ruled():
        function = custom_jvp(value, elementwise=True)

        @function.defjvp
        def rule(primals, tangents):
            y = function(*primals)
            return y, tangents[0] * slope(primals[0], y)

        return function

    def outer(x) -> Array:
        (x,) = floats(x)
        return narrowed(ruled()(widened(x)), x.dtype)

    return outer


def _eps(x: Array) -> float:
    return float(wnp.finfo(x.dtype).eps)


# --- E_n and Ei -------------------------------------------------------------------------------------------------------


def _en_series(n: Array, x: Array) -> Array:
    """E_n(x) for x <= 1: A & S 5.1.12."""
    order = n - 1
    start = wnp.where(order == 0, -wnp.log(x) - np.euler_gamma, 1 / wnp.where(order == 0, 1, order))

    def add(k, factor, total, psi):
        factor = -factor * x / k
        here = k == order
        apart = -factor / wnp.where(here, 1, k - order)
        at = factor * (-wnp.log(x) + psi - np.euler_gamma)
        # digamma(n) + gamma is the sum of 1 / j for j < n.
        total = total + wnp.where(here, at, apart)
        return factor, total, psi + wnp.where(k < order, 1 / (k + 1), 0)

    state = (wnp.ones_like(x), start, wnp.ones_like(x))
    enough = lambda factor, total, psi: wnp.abs(factor) <= 0.1 * _eps(x) * wnp.abs(total)
    return _until(add, state, enough)[1]


def _en_fraction(n: Array, x: Array) -> Array:
    """e^x E_n(x) for x > 1: A & S 5.1.22 in its even form, by Lentz's method."""
    first = 1 / (x + n)

    def divide(k, partial, above, below, value, change):
        factor = -k * (n - 1 + k)
        partial = partial + 2
        below = 1 / (factor * below + partial)
        above = partial + factor / above
        change = above * below
        return partial, above, below, value * change, change

    most = 1 / float(wnp.finfo(x.dtype).tiny) ** 0.5
    state = (x + n, wnp.full_like(x, most), first, first, wnp.zeros_like(x))
    return _until(divide, state, lambda p, a, b, value, change: wnp.abs(change - 1) <= _eps(x))[3]


@functools.cache
def _expn() -> Callable[[Array, Array], Array]:
    @functools.partial(custom_jvp, elementwise=True)
    def value(n, x):
        good = (x > 0) & (x < math.inf)
        near = good & (x <= 1)
        m = wnp.where(n < 1, 1, n)
        low = _en_series(m, wnp.where(near, x, 0.5))
        y = wnp.where(good & ~near, x, 2)
        high = _en_fraction(m, y) * wnp.exp(-y)
        out = wnp.where(n == 0, wnp.exp(-x) / wnp.where(x == 0, 1, x), wnp.where(near, low, high))
        at_0 = wnp.where(n <= 1, math.inf, 1 / wnp.where(n <= 1, 1, n - 1))
        return wnp.where(good, out, wnp.where(x == 0, at_0, wnp.where(x == math.inf, 0, math.nan)))

    @value.defjvp
    def rule(primals, tangents):
        (n, x), (_, dx) = primals, tangents
        of_0 = wnp.exp(-x) * (x + 1) / (x * x)  # the function of order -1
        return value(n, x), -dx * wnp.where(n == 0, of_0, value(wnp.where(n == 0, 1, n - 1), x))

    return value


def expn(n, x) -> Array:
    n, x = floats(n, x)
    dtype = x.dtype
    n, x = wnp.broadcast_arrays(widened(n), widened(x))
    return narrowed(_expn()(n, x), dtype)


def exp1(x) -> Array:
    (x,) = floats(x)
    wide = widened(x)
    # E_1(x) = -Ei(-x) below 0.
    below = wide < 0
    out = wnp.where(below, -_ei(wnp.where(below, -wide, 1)), expn(1, wnp.where(below, 1, wide)))
    return narrowed(out, x.dtype)


def _exp_over(x: Array, factor: Any = 1) -> Array:
    """exp(x) / x * factor, where exp(x) alone may overflow."""
    half = wnp.exp(x / 2)
    return half / x * factor * half


def _ei_positive(x: Array) -> Array:
    good = (x > 0) & (x < math.inf)
    end = 40.0 if x.dtype == "float64" else 20.0
    far = good & (x > end)
    y = wnp.where(good & ~far, x, 1)

    def add(k, term, total):
        term = term * y / k
        return term, total + term / k

    series = _until(add, (wnp.ones_like(x), wnp.zeros_like(x)), lambda t, s: t <= 0.1 * _eps(x) * s)[1]
    z = wnp.where(far, x, end)
    term, tail = wnp.ones_like(x), wnp.ones_like(x)
    for k in range(1, 40 if x.dtype == "float64" else 20):
        term = term * k / z
        tail = tail + term
    out = wnp.where(far, _exp_over(z, tail), np.euler_gamma + wnp.log(y) + series)
    return wnp.where(good, out, wnp.where(x == 0, -math.inf, wnp.where(x == math.inf, math.inf, math.nan)))


_ei = with_slope(_ei_positive, lambda x, y: _exp_over(x))


def expi(x) -> Array:
    (x,) = floats(x)
    wide = widened(x)
    below = wide < 0
    out = wnp.where(below, -expn(1, wnp.where(below, -wide, 1)), _ei(wnp.where(below, 1, wide)))
    return narrowed(out, x.dtype)


# --- Sine, cosine and Fresnel integrals -------------------------------------------------------------------------------


def _complex_fraction(start: Array, factors: Callable[[Any], Any]) -> Array:
    """1 / (start - f1 / (start + 2 - f2 / (start + 4 - ...))) of complex numbers, by Lentz's method."""
    most = 1 / float(wnp.finfo(start.dtype).tiny) ** 0.5
    eps = float(wnp.finfo(start.dtype).eps)

    def divide(k, partial, above, below, value, change):
        factor = -factors(k)
        partial = partial + (2 if factors(1) == 1 else 4)
        below = 1 / (factor * below + partial)
        above = partial + factor / above
        change = above * below
        return partial, above, below, value * change, change

    first = 1 / start
    state = (start, wnp.full_like(start, most), first, first, wnp.zeros_like(start))
    near = lambda p, a, b, value, change: wnp.abs(wnp.real(change) - 1) + wnp.abs(wnp.imag(change)) <= 2 * eps
    return _until(divide, state, near)[3]


def _sici(x: Array) -> tuple[Array, Array]:
    """Si and Ci of |x|."""
    size = wnp.abs(x)
    far = size > 2
    y = wnp.where(far, 1, size)

    def add(k, term, sine, cosine):
        # term is y^(2k - 1) / (2k - 1)!, signed.
        cosine = cosine - term * y / (4 * k * k)
        term = -term * y * y / ((2 * k) * (2 * k + 1))
        return term, sine + term / (2 * k + 1), cosine

    sine, cosine = _until(add, (y, y, wnp.zeros_like(y)), lambda t, s, c: wnp.abs(t) <= 0.1 * _eps(x) * s)[1:]
    z = wnp.where(far & (size < math.inf), size, 3)
    # E_1(i z) = -Ci(z) + i (Si(z) - pi / 2): A & S 5.2.21 and 5.1.22.
    kind = "complex128" if x.dtype == "float64" else "complex64"
    turned = (1j * z).astype(kind)
    fraction = _complex_fraction(1 + turned, lambda k: k * k) * wnp.exp(-turned)
    last = size == math.inf
    large_sine = wnp.where(last, math.pi / 2, wnp.imag(fraction) + math.pi / 2)
    large_cosine = wnp.where(last, 0, -wnp.real(fraction))
    safe = wnp.where(y == 0, 1, y)
    small_cosine = wnp.where(y == 0, -math.inf, np.euler_gamma + wnp.log(safe) + cosine)
    return wnp.where(far, large_sine, sine), wnp.where(far, large_cosine, small_cosine)


def _sinc(x: Array) -> Array:
    return wnp.sinc(x / math.pi)


sine_integral = with_slope(lambda x: wnp.sign(x) * _sici(x)[0], lambda x, y: _sinc(x))
# Of both signs: that of |x|, but at -inf.
cosine_integral = with_slope(
    lambda x: wnp.where(x == -math.inf, math.nan, _sici(wnp.abs(x))[1]), lambda x, y: wnp.cos(x) / x
)


def _fresnel(x: Array) -> tuple[Array, Array]:
    """S and C of |x|: the power series (A & S 7.3.11 and 7.3.13) below 1.5, the continued fraction of erfc beyond."""
    size = wnp.abs(x)
    far = size > 1.5
    y = wnp.where(far, 1, size)
    angle = math.pi / 2 * y * y

    def add(k, term, sine, cosine):
        # term is angle^(2k - 2) / (2k - 2)!, signed.
        odd = term * angle / (2 * k - 1)
        sine = sine + odd / (4 * k - 1)
        term = -odd * angle / (2 * k)
        return term, sine, cosine + term / (4 * k + 1)

    one = wnp.ones_like(y)
    state = (one, wnp.zeros_like(y), one)
    sine, cosine = _until(add, state, lambda t, s, c: wnp.abs(t) <= 0.1 * _eps(x) * wnp.abs(c))[1:]
    last = size > 1e4 if x.dtype == "float32" else size > 1e8
    z = wnp.where(far & ~last, size, 2)
    kind = "complex128" if x.dtype == "float64" else "complex64"
    square = math.pi * z * z
    start = 1 - (1j * square).astype(kind)
    fraction = _complex_fraction(start, lambda k: (2 * k - 1) * (2 * k))
    half = square / 2
    turned = wnp.cos(half) + 1j * wnp.sin(half)
    both = (0.5 + 0.5j) * (1 - turned * fraction * (1 - 1j) * z)
    both_s, both_c = wnp.where(last, 0.5, wnp.imag(both)), wnp.where(last, 0.5, wnp.real(both))
    return wnp.where(far, both_s, y * sine), wnp.where(far, both_c, y * cosine)


fresnel_s = with_slope(lambda x: wnp.sign(x) * _fresnel(x)[0], lambda x, y: wnp.sin(math.pi / 2 * x * x))
fresnel_c = with_slope(lambda x: wnp.sign(x) * _fresnel(x)[1], lambda x, y: wnp.cos(math.pi / 2 * x * x))


# --- Dawson's integral, erfcx, w(z) -----------------------------------------------------------------------------------


def _dawson(x: Array) -> Array:
    """Rybicki's sum (Computers in Physics 3, 1989): of exp(-(x - n h)^2) / n over odd n, around x."""
    h, count = 0.4 if x.dtype == "float32" else 0.2, 11 if x.dtype == "float32" else 27
    size = wnp.abs(x)
    near, far = size < 0.2, size > 1e3
    y = wnp.where(near | far, 1, size)
    even = 2 * wnp.round(y / (2 * h))
    rest = y - even * h
    total: Any = 0.0
    for n in range(1, 2 * count, 2):
        total = total + wnp.exp(-((rest - n * h) ** 2)) / (even + n) + wnp.exp(-((rest + n * h) ** 2)) / (even - n)
    square = wnp.where(near, size, 0) ** 2
    series: Any = 1.0
    for k in range(9, 0, -1):
        series = 1 - 2 * square / (2 * k + 1) * series
    inverse = 1 / wnp.where(far, size, 1)
    tail = inverse / 2 * (1 + inverse * inverse / 2)
    return wnp.sign(x) * wnp.where(near, size * series, wnp.where(far, tail, total / _ROOT_PI))


dawsn = with_slope(_dawson, lambda x, y: 1 - 2 * x * y)


def _scaled_erfc(x: Array) -> Array:
    far = x > 2
    y = wnp.where(far, 0, x)
    near = wnp.exp(y * y) * _weft.bind_elementwise("erfc", (y,), {})
    z = wnp.where(far, x, 3)
    tail: Any = z
    for k in range(60 if x.dtype == "float64" else 24, 0, -1):
        tail = z + k / 2 / tail  # A & S 7.1.14
    return wnp.where(far, 1 / (_ROOT_PI * tail), near)


erfcx = with_slope(_scaled_erfc, lambda x, y: 2 * x * y - 2 / _ROOT_PI)


@functools.cache
def _weideman(count: int) -> tuple[float, np.ndarray]:
    """L and the coefficients of Weideman, "Computation of the complex error function", SIAM J. Num. Anal. 31, 1994."""
    m = 2 * count
    scale = math.sqrt(count / math.sqrt(2))
    t = scale * np.tan(np.arange(-m + 1, m) * math.pi / m / 2)
    f = np.concatenate([[0.0], np.exp(-(t**2)) * (scale**2 + t**2)])
    a = np.real(np.fft.fft(np.fft.fftshift(f))) / (2 * m)
    return scale, np.flipud(a[1 : count + 1])


@functools.cache
def _wofz() -> Callable[[Array], Array]:
    @functools.partial(custom_jvp, elementwise=True)
    def value(z):
        scale, coefficients = _weideman(64 if z.dtype == "complex128" else 32)
        below = wnp.imag(z) < 0
        up = wnp.where(below, -z, z)
        distance = scale - 1j * up
        ratio = (scale + 1j * up) / distance
        p: Any = float(coefficients[0])
        for c in coefficients[1:]:
            p = p * ratio + float(c)
        w = 2 * p / (distance * distance) + 1 / (_ROOT_PI * distance)
        # w(z) = 2 exp(-z^2) - w(-z): A & S 7.1.11.
        safe = wnp.where(below, z, 0)
        return wnp.where(below, 2 * wnp.exp(-safe * safe) - w, w)

    @value.defjvp
    def rule(primals, tangents):
        w = value(*primals)
        return w, tangents[0] * (2j / _ROOT_PI - 2 * primals[0] * w)

    return value


def wofz(z) -> Array:
    z = wnp.asarray(z)
    if not wnp.issubdtype(z.dtype, wnp.complexfloating):
        z = z.astype(wnp.promote_types(z.dtype, "complex64"))
    return _wofz()(z)


def log_combinations(n: Array, k: Array) -> Array:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
