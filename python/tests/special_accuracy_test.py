"""Special functions where they are steep or their arguments tiny, against mpmath at 50 digits."""

import math

import mpmath
import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft.scipy import special

mpmath.mp.dps = 50


def quantile(p):
    """The inverse of the normal distribution function: of a tail, by its logarithm, which is nearly a parabola."""
    p = mpmath.mpf(p)
    if p > 0.5:
        return -quantile(1 - p)
    start = mpmath.sqrt(-2 * mpmath.log(p)) if p < 0.1 else mpmath.mpf(0.5) - p
    return -mpmath.findroot(lambda x: mpmath.log(mpmath.ncdf(-x)) - mpmath.log(p), start)


def erf_inv(x):
    if abs(x) < 0.9:
        return mpmath.erfinv(x)
    # mpmath's own does not get near 1.
    return quantile((1 + mpmath.mpf(x)) / 2) / mpmath.sqrt(2)


TAILS = [5e-324, 1e-310, 1e-300, 1e-100, 1e-40, 1e-20, 1e-17, 1e-16, 1e-15, 1e-12, 1e-8, 1e-7, 1e-5, 0.001, 0.02425]
CENTRE = [0.07, 0.074, 0.075, 0.076, 0.2, 0.4999, 0.5, 0.51, 0.925, 0.95, 0.999, 1 - 1e-7, 1 - 1e-12, 1 - 2.0**-53]
NEAR_ONE = [s * (1 - d) for d in (1e-6, 1e-8, 1e-10, 1e-12, 1e-14, 3e-16, 2.0**-53) for s in (1, -1)]
NEAR_POLES = [n + s * d for n in (0, -1, -2, -7) for d in (1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 0.3) for s in (1, -1)]
GRADIENT = weft.vmap(weft.grad(special.gammaln))
CASES = {
    "ndtri": (special.ndtri, quantile, TAILS + CENTRE),
    "erf_inv": (weft.lax.erf_inv, erf_inv, [*NEAR_ONE, -0.9, 1e-300, 1e-5, 0.3, 0.49, 0.5, 0.51, 0.99]),
    "erfinv": (special.erfinv, erf_inv, [*NEAR_ONE, -0.9, 1e-300, 1e-5, 0.3, 0.49, 0.5, 0.51, 0.84, 0.86, 0.99]),
    "digamma": (weft.lax.digamma, mpmath.digamma, [*NEAR_POLES, -1 + 2.0**-53, -100.5, 0.1, 3.0, 1e5]),
    "trigamma": (weft.lax.trigamma, lambda x: mpmath.psi(1, x), [*NEAR_POLES, -1 + 2.0**-53, -100.4, 0.1, 3.0, 1e5]),
    "gradient of gammaln": (GRADIENT, mpmath.digamma, [*NEAR_POLES, 0.1, 3.0]),
    "i0e": (special.i0e, lambda x: mpmath.exp(-x) * mpmath.besseli(0, x), [0.1, 10.0, 31.0, 1e10, 1e100, 1.7e308]),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_accuracy(name, dtype):
    f, truth, points = CASES[name]
    kind = np.dtype(dtype).type
    x = np.unique(np.array(points, dtype))
    least = np.finfo(dtype).tiny
    # Where rounding to 32 bits leaves a pole, the end of the domain or nothing, there is nothing to compare.
    poles = (
        (x <= 0) & (x == np.floor(x))
        if "gamma" in name
        else np.abs(x) == (1 if name in ("erf_inv", "erfinv") else np.inf)
    )
    x = x[~poles & (x != 1)] if name == "ndtri" else x[~poles]
    x = x[np.abs(x) >= least] if dtype == "float32" else x
    wanted = np.array([kind(truth(mpmath.mpf(float(v)))) for v in x])
    places = 16 if dtype == "float64" else 6
    for compute in (f, weft.jit(f)):
        given = np.asarray(compute(x))
        assert given.dtype == dtype
        np.testing.assert_allclose(given, wanted, rtol=places * np.finfo(dtype).eps, atol=least)


SIZES = [1e-10, 0.001, 0.5, 1.5, 5.0, 7.9, 7.999, 8.0, 8.001, 25.0, 100.0, 1e5, 1e8, 1e15]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_beta_of_large_and_small_numbers(dtype):
    a, b = np.array([(a, b) for a in SIZES for b in SIZES], dtype).T
    exact = [(mpmath.mpf(float(x)), mpmath.mpf(float(y))) for x, y in zip(a, b, strict=True)]
    logarithms = [mpmath.loggamma(x) + mpmath.loggamma(y) - mpmath.loggamma(x + y) for x, y in exact]
    wanted = np.array([float(v) for v in logarithms])
    eps = np.finfo(dtype).eps
    given = np.asarray(weft.jit(special.betaln)(a, b))
    assert given.dtype == dtype
    np.testing.assert_allclose(given, wanted, rtol=16 * eps, atol=16 * eps)
    products = np.array([float(mpmath.exp(v)) for v in logarithms])
    # Of the exponential of a rounded logarithm as many digits are right as the logarithm leaves behind its point.
    kept = products > np.finfo(dtype).tiny
    given = np.asarray(weft.jit(special.beta)(a, b))
    np.testing.assert_array_less(
        np.abs(given - products)[kept] / products[kept], (16 + 2 * np.abs(wanted[kept])) * eps, err_msg=str(a)
    )
    slopes = np.asarray(weft.vmap(weft.grad(special.betaln))(a, b))
    wanted = np.array([float(mpmath.digamma(x) - mpmath.digamma(x + y)) for x, y in exact])
    largest = np.array([float(abs(mpmath.digamma(x)) + abs(mpmath.digamma(x + y))) for x, y in exact])
    np.testing.assert_array_less(np.abs(slopes - wanted) / (largest + 1), 64 * eps)


@pytest.mark.parametrize("a, b", [(-0.5, 1e5), (-7.3, 1e15), (-2.75, 10.5), (-0.5, 7.9), (-30.5, 40.0), (-5.5, 5.0)])
def test_betaln_of_a_negative_and_a_large_number(a, b):
    x, y = mpmath.mpf(a), mpmath.mpf(b)
    with mpmath.workdps(60):
        exact = mpmath.log(abs(mpmath.gamma(x) * mpmath.gammaprod([y], [x + y])))
        slope = mpmath.digamma(x) - mpmath.digamma(x + y)
    for first, second in [(a, b), (b, a)]:
        np.testing.assert_allclose(np.asarray(special.betaln(first, np.float64(second))), float(exact), rtol=1e-12)
    np.testing.assert_allclose(float(weft.grad(special.betaln)(np.float64(a), np.float64(b))), float(slope), rtol=1e-12)


def test_slopes_of_ndtri():
    x = np.array([1e-300, 1e-17, 1e-15, 0.01, 0.3, 0.9])
    y = [quantile(v) for v in x]
    density = [mpmath.npdf(v) for v in y]
    first, second = weft.vmap(weft.grad(special.ndtri)), weft.vmap(weft.grad(weft.grad(special.ndtri)))
    np.testing.assert_allclose(np.asarray(first(x)), [float(1 / d) for d in density], rtol=1e-12)
    wanted = [float(v / d**2) if d > 1e-150 else np.inf * np.sign(float(v)) for v, d in zip(y, density, strict=True)]
    np.testing.assert_allclose(np.asarray(second(x)), wanted, rtol=1e-12)


def test_ends():
    p = np.array([0.0, 1.0, -0.1, 1.1, np.nan, 0.5])
    np.testing.assert_array_equal(np.asarray(special.ndtri(p)), [-np.inf, np.inf, np.nan, np.nan, np.nan, 0])
    for dtype in ("float16", "bfloat16"):
        y = special.ndtri(wnp.array([0.5, 0.75], dtype))
        assert str(y.dtype) == dtype
        np.testing.assert_allclose(np.asarray(y.astype("float32")), [0, 0.6744898], rtol=0.004)
    assert float(wnp.i0(np.float32(3e38))) == math.inf and float(wnp.i0(np.float64(1e308))) == math.inf
    signs = np.asarray(special.gammasgn(np.array([np.nan, -0.0, 0.0, -1.0, -0.5, -1.5, 2.0])))
    np.testing.assert_array_equal(signs, [np.nan, -1, 1, np.nan, -1, 1, 1])
    np.testing.assert_array_equal(np.asarray(special.gamma(np.array([-0.0, 0.0]))), [-np.inf, np.inf])
