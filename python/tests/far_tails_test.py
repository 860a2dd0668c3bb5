"""Special functions where a factor overflows, underflows or cancels and the whole does not: mpmath and SciPy."""

import mpmath
import numpy as np
import pytest

import weft
from weft import nn
from weft.scipy import special

scipy_special = pytest.importorskip("scipy.special")
inf = np.inf
KINDS = {"eager": lambda f: f, "jit": weft.jit}
kinds = pytest.mark.parametrize("kind", KINDS)
dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])


def forward(f, place=0):
    """The derivative by one operand, in forward mode."""

    def derivative(*a):
        along = lambda v: f(*a[:place], v, *a[place + 1 :])
        return weft.jvp(along, (a[place],), (np.ones((), a[place].dtype),))[1]

    return derivative


@kinds
@pytest.mark.parametrize("mode", [weft.grad, forward])
@dtypes
def test_slopes_of_products_with_logarithms_of_subnormal_numbers(kind, mode, dtype):
    tiny = np.dtype(dtype).type(1e-40 if dtype == "float32" else 1e-310)
    slope = lambda f, place: KINDS[kind](mode(f, place))
    log = np.log(float(tiny))
    close = lambda got, want: np.testing.assert_allclose(got, want, rtol=1e-6)
    close(slope(special.xlogy, 0)(tiny, tiny), log)
    close(slope(special.xlogy, 1)(tiny, tiny), 1)
    close(slope(special.entr, 0)(tiny), -log - 1)
    for place, want in enumerate([1, -1]):
        close(slope(special.rel_entr, place)(tiny, tiny), want)
        assert slope(special.kl_div, place)(tiny, tiny) == 0
    close(slope(special.xlogy, 0)(np.float32(inf), np.float32(2)), np.log(2))
    close(slope(special.xlog1py, 0)(np.float32(inf), np.float32(2)), np.log(3))


@kinds
@pytest.mark.parametrize("order", [0, 1])
def test_bessel_functions_up_to_the_largest_number(kind, order):
    """Values and two derivatives: finite to the end of the dtype, and beyond it infinite of the right sign."""
    value = [special.i0, special.i1][order]
    functions = [KINDS[kind](weft.vmap(f)) for f in (value, weft.grad(value), weft.grad(weft.grad(value)))]
    for dtype, sizes in (("float32", [80, 88, 89, 90, 91.5]), ("float64", [700, 709, 711, 713])):
        x = np.array([*sizes, *(-np.array(sizes))], dtype)
        for k, f in enumerate(functions):
            want = np.array([float(mpmath.re(mpmath.besseli(order, v, derivative=k))) for v in sizes])
            want = np.concatenate([want, (-1) ** (order + k) * want])
            np.testing.assert_allclose(f(x), want, rtol=24 * np.finfo(dtype).eps * (1 + k))
        x = np.array([100, 1000, 1e10, inf], dtype) * (1 if dtype == "float32" else 8)
        for k, f in enumerate(functions):
            np.testing.assert_array_equal(f(x), inf)
            np.testing.assert_array_equal(f(-x), inf if (order + k) % 2 == 0 else -inf)


@kinds
@dtypes
@pytest.mark.parametrize("order", [0, 1])
def test_slopes_of_scaled_bessel_functions_far_from_0(kind, dtype, order):
    f = [special.i0e, special.i1e][order]
    sizes = np.array([11, 31, 1e2, 1e4, 1e6, 1e10, 1e20] + ([1e30, 1e60] if dtype == "float64" else []), dtype)
    slopes = np.asarray(KINDS[kind](weft.vmap(weft.grad(f)))(np.concatenate([sizes, -sizes])))
    with mpmath.workdps(150):
        e = lambda n, x: mpmath.hyper([n + 0.5, 0.5 - n], [], 1 / (2 * x)) / mpmath.sqrt(2 * mpmath.pi * x)
        scaled = lambda n, x: mpmath.exp(-x) * mpmath.besseli(n, x) if x < 1e4 else e(n, x)
        exact = []
        for v in map(mpmath.mpf, map(float, sizes)):
            next_one = scaled(1, v) if order == 0 else (scaled(0, v) + scaled(2, v)) / 2
            exact.append(float(next_one - scaled(order, v)))
    sign = 1 if order else -1
    np.testing.assert_allclose(slopes, [*exact, *(sign * np.array(exact))], rtol=32 * np.finfo(dtype).eps)


def test_second_derivative_of_i1_at_0():
    x = np.array([0.0, 1e-8, -1e-3])
    for f in (special.i1, special.i1e):
        got = weft.vmap(weft.grad(weft.grad(f)))(x)
        # Of I1(x) = x / 2 + x^3 / 16: 3 x / 8; of exp(-|x|) I1(x), beside that, -sign(x) (1 - 3 |x| / 2).
        want = 3 * x / 8 if f is special.i1 else -np.sign(x) + 15 * x / 8
        np.testing.assert_allclose(got, want, rtol=3e-6, atol=1e-300)


FACTORS = [
    ([0, -40, -41.0], [1, 1, -1.0]),
    ([0, -40, -41.0], [-1, -1, 1.0]),
    ([0, 0, -41.0], [1, -1, 1.0]),
    ([5, 5, -40.0], [0.25, 0.75, 3.0]),
    ([0, -45.0], [1.0, 0.5]),
    ([5, 1e4, 2.0], [2.0, 0, 1]),
    ([0, 0.0], [1.0, -1]),
    ([-inf, -inf], [1.0, 2]),
    ([inf, 1.0], [1.0, 1]),
]


@kinds
@pytest.mark.parametrize(("a", "b"), FACTORS)
def test_sums_of_exponentials_with_factors_near_1(kind, a, b):
    a, b = np.array(a), np.array(b)
    log, sign = KINDS[kind](lambda a, b: special.logsumexp(a, b=b, return_sign=True))(a, b)
    want_log, want_sign = scipy_special.logsumexp(a, b=b, return_sign=True)
    np.testing.assert_allclose(log, want_log, rtol=1e-13)
    assert sign == want_sign
    alone = KINDS[kind](lambda a, b: special.logsumexp(a, b=b))(a, b)
    np.testing.assert_allclose(alone, want_log if want_sign >= 0 else np.nan, rtol=1e-13)
    if np.isfinite(a).all() and b.all() and want_sign > 0:
        weights = b * np.exp(a - want_log)
        np.testing.assert_allclose(weft.grad(lambda a: special.logsumexp(a, b=b))(a), weights, rtol=1e-13)
        np.testing.assert_allclose(weft.grad(lambda b: special.logsumexp(a, b=b))(b), np.exp(a - want_log), rtol=1e-13)


def test_signs_and_complex_sums_of_exponentials_near_1():
    a = np.array([0, -40, -41.0])
    log, sign = special.logsumexp(a, return_sign=True)
    want = float(mpmath.log1p(mpmath.exp(-40) + mpmath.exp(-41)))
    np.testing.assert_allclose(log, want, rtol=1e-14)
    np.testing.assert_allclose(special.logsumexp(a + 0j), want, rtol=1e-14)
    log, turned = special.logsumexp(a + 1j, return_sign=True)
    assert sign == 1 and log.dtype == "float64"
    np.testing.assert_allclose(turned, np.exp(1j), rtol=1e-15)


@kinds
@dtypes
def test_the_normal_distribution_in_its_left_tail(kind, dtype):
    least = -12.8 if dtype == "float32" else -37.0
    x = np.concatenate([np.linspace(least, -1, 61), [-0.3, -1e-20, 0.2, 3]]).astype(dtype)
    gelu = lambda x: nn.gelu(x, approximate=False)
    cases = [
        (special.ndtr, mpmath.ncdf),
        (weft.vmap(weft.grad(special.ndtr)), mpmath.npdf),
        (weft.vmap(weft.grad(weft.grad(special.ndtr))), lambda x: -x * mpmath.npdf(x)),
        (gelu, lambda x: x * mpmath.ncdf(x)),
        (weft.vmap(weft.grad(gelu)), lambda x: x * mpmath.npdf(x) + mpmath.ncdf(x)),
    ]
    for f, truth in cases:
        with mpmath.workdps(50):
            want = np.array([float(truth(mpmath.mpf(float(v)))) for v in x])
        # The slope of gelu has a root near -0.75, far from all of these points.
        np.testing.assert_allclose(KINDS[kind](f)(x), want, rtol=4 * np.finfo(dtype).eps, atol=0)


@kinds
def test_the_normal_distribution_at_its_ends(kind):
    x = np.array([-inf, -1e30, -100, 65, 1e30, inf, np.nan], np.float32)
    np.testing.assert_array_equal(KINDS[kind](special.ndtr)(x), [0, 0, 0, 1, 1, 1, np.nan])
    slope = weft.vmap(weft.grad(special.ndtr))
    np.testing.assert_array_equal(KINDS[kind](slope)(x), [0, 0, 0, 0, 0, 0, np.nan])


def test_python_numbers_stay_weak():
    """The dtype of what meets them is that of the other operand."""
    for f in (
        special.ndtr,
        special.log_ndtr,
        lambda x: weft.lax.reduce_precision(x, 8, 11),
        lambda x: weft.lax.reduce_precision(x, 8, 7),
    ):
        assert weft.jit(f)(0.5).weak_type and f(0.5).weak_type
        assert (f(0.5) * weft.numpy.ones(2, "float16")).dtype == "float16"
