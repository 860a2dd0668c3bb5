"""Derivatives of random numbers by the parameters of their distribution: of each number those of the quantile that it
is, and on the average those of the expectation."""

import math

import mpmath
import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import random
from weft.random import _gamma


def quantile_slope(a: float, log_v: float) -> mpmath.mpf:
    """d log x / da of x = (a - 1/3) v where P(a, x) stays what it is."""
    with mpmath.workdps(50):
        return slope_at(mpmath.mpf(a), (mpmath.mpf(a) - mpmath.mpf(1) / 3) * mpmath.exp(mpmath.mpf(log_v)))


def slope_at(a: mpmath.mpf, x: mpmath.mpf) -> mpmath.mpf:
    with mpmath.workdps(50):
        if a <= 300:
            moved = mpmath.diff(lambda b: mpmath.gammainc(b, 0, x, regularized=True), a, h=mpmath.mpf(10) ** -15)
            return -moved / (x**a * mpmath.exp(-x) / mpmath.gamma(a))
        # Too slow there: the integral of the same derivative.
        gap, width = mpmath.log(x) - mpmath.digamma(a), 1 / mpmath.sqrt(a)
        sign = 1 if gap >= 0 else -1
        ends = [k * width for k in (0, 1, 3, 6, 12, 30, 200)]
        return mpmath.quad(lambda s: (sign * gap + s) * mpmath.exp(sign * a * s - x * mpmath.expm1(sign * s)), ends)


@pytest.mark.parametrize("dtype, bound", [("float64", 1e-12), ("float32", 2e-6)])
def test_slopes_of_quantiles(dtype, bound):
    cases = []
    for a in (1.0, 1.03, 1.5, 2.0, 4.0, 9.9, 10.1, 50.0, 300.0, 1e4, 1e6):
        for z in (-6, -4, -2, -0.7, -0.1, 0, 0.1, 0.7, 2, 4, 6):
            v = 1 + z / math.sqrt(9 * (a - 1 / 3))
            if v > 1e-3:
                cases.append((np.array(a, dtype), np.array(3 * math.log(v), dtype)))
    a, log_v = map(np.array, zip(*cases))
    want = np.array([float(quantile_slope(float(p), float(q))) for p, q in cases])
    for compute in (_gamma._slope_of_quantile, weft.jit(_gamma._slope_of_quantile)):
        got = np.asarray(compute(wnp.asarray(a), wnp.asarray(log_v)), np.float64)
        off = np.abs(got / want - 1)
        assert off.max() <= bound, (off.max(), cases[off.argmax()])


@pytest.mark.parametrize("dtype, bound", [("float64", 1e-12), ("float32", 2e-6)])
def test_slopes_of_quantiles_below_1(dtype, bound):
    places = (-50.0, -10.0, -3.0, -0.71, -0.69, 0.0, 0.7, 2.0, 3.0)
    a, log_x = map(np.ravel, np.meshgrid(np.array([1e-3, 0.1, 0.5, 0.999], dtype), np.array(places, dtype)))
    with mpmath.workdps(50):
        want = np.array(
            [float(slope_at(mpmath.mpf(float(b)), mpmath.exp(mpmath.mpf(float(p))))) for b, p in zip(a, log_x)]
        )
    got = np.asarray(weft.jit(_gamma._slope_below_1)(wnp.asarray(a), wnp.asarray(log_x)), np.float64)
    assert np.abs(got / want - 1).max() <= bound


@pytest.mark.parametrize("a", [0.3, 1.0, 2.5, 40.0])
def test_second_derivatives(a):
    """Against the quantile of a and two parameters beside it."""
    key = random.key(5)
    f = lambda a: random.loggamma(key, a, dtype="float64")
    first, second = float(weft.grad(f)(np.float64(a))), float(weft.grad(weft.grad(f))(np.float64(a)))
    forward = float(weft.jvp(weft.grad(f), (np.float64(a),), (np.float64(1.0),))[1])
    assert abs(forward - second) <= 1e-10 * abs(second)
    with mpmath.workdps(40):
        x = mpmath.exp(mpmath.mpf(float(f(np.float64(a)))))
        p = mpmath.gammainc(a, 0, x, regularized=True)
        h = mpmath.mpf(10) ** -8
        root = lambda b: mpmath.findroot(
            lambda y: mpmath.gammainc(b, 0, mpmath.exp(y), regularized=True) - p, mpmath.log(x)
        )
        low, high = root(a - h), root(a + h)
        want = float((high - 2 * mpmath.log(x) + low) / h**2)
    assert abs(second - want) <= 1e-7 * max(abs(want), abs(first))


N = 40000
# name: (numbers of the parameters, what is averaged, its expectation, the parameters)
FAMILIES = {
    "gamma": (lambda k, a: random.gamma(k, a, (N,), "float64"), lambda x: x, lambda a: a, (2.3,)),
    "gamma, squared": (lambda k, a: random.gamma(k, a, (N,), "float64"), lambda x: x**2, lambda a: a * (a + 1), (1.2,)),
    "gamma, small": (lambda k, a: random.gamma(k, a, (N,), "float64"), lambda x: x, lambda a: a, (0.4,)),
    "loggamma": (lambda k, a: random.loggamma(k, a, (N,), "float64"), lambda x: x, mpmath.digamma, (0.7,)),
    "beta": (lambda k, a, b: random.beta(k, a, b, (N,), "float64"), lambda x: x, lambda a, b: a / (a + b), (0.6, 2.0)),
    "beta, squared": (
        lambda k, a, b: random.beta(k, a, b, (N,), "float64"),
        lambda x: x**2,
        lambda a, b: a * (a + 1) / ((a + b) * (a + b + 1)),
        (3.0, 1.5),
    ),
    "dirichlet": (
        lambda k, a, b, c: random.dirichlet(k, wnp.stack([a, b, c]), (N,), "float64"),
        lambda x: x[..., 0] * x[..., 1],
        lambda a, b, c: a * b / ((a + b + c) * (a + b + c + 1)),
        (0.8, 2.0, 1.3),
    ),
    "chisquare": (lambda k, d: random.chisquare(k, d, (N,), "float64"), lambda x: x**2, lambda d: d * (d + 2), (3.0,)),
    "t": (lambda k, d: random.t(k, d, (N,), "float64"), lambda x: x**2, lambda d: d / (d - 2), (9.0,)),
    "f": (
        lambda k, m, n: random.f(k, m, n, (N,), "float64"),
        lambda x: x,
        lambda m, n: n / (n - 2) + 0 * m,
        (4.0, 9.0),
    ),
    "generalized_normal": (
        lambda k, p: random.generalized_normal(k, p, (N,), "float64"),
        lambda x: x**2,
        lambda p: mpmath.gamma(3 / p) / mpmath.gamma(1 / p),
        (1.7,),
    ),
    "ball": (
        lambda k, p: random.ball(k, 3, p, (N,), "float64"),
        lambda x: wnp.sum(x**2, -1),
        # The mean of |x_1|^2 in three dimensions, by the moments of the Dirichlet distribution that it is.
        lambda p: 3 * mpmath.gamma(3 / p) / mpmath.gamma(1 / p) * mpmath.gamma(3 / p + 1) / mpmath.gamma(5 / p + 1),
        (2.5,),
    ),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_gradients_of_expectations(name):
    draw, of, expectation, parameters = FAMILIES[name]
    parameters = tuple(map(np.float64, parameters))
    numbers = lambda *p: of(draw(random.key(11), *p))
    values = np.asarray(weft.jit(numbers)(*parameters))
    slopes = weft.jit(weft.jacfwd(numbers, tuple(range(len(parameters)))))(*parameters)
    backward = weft.jit(weft.grad(lambda *p: numbers(*p).mean(), tuple(range(len(parameters)))))(*parameters)
    # Five standard errors.
    assert abs(values.mean() - float(expectation(*parameters))) <= 5 * values.std() / math.sqrt(N)
    for i, (slope, mean) in enumerate(zip(slopes, backward, strict=True)):
        slope = np.asarray(slope)
        with mpmath.workdps(30):
            want = float(mpmath.diff(expectation, parameters, tuple(int(i == k) for k in range(len(parameters)))))
        assert abs(slope.mean() - want) <= 5 * slope.std() / math.sqrt(N) + 1e-12, (slope.mean(), want)
        assert abs(float(mean) - slope.mean()) <= 1e-9 * max(1, abs(slope.mean()))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_every_dtype_and_transform(dtype):
    a = wnp.asarray([0.5, 1.0, 3.0, 20.0], dtype)
    loss = lambda a: random.gamma(random.key(2), a, None, dtype).astype("float32").sum()
    want = np.asarray(weft.grad(loss)(a), np.float32)
    assert want.dtype == np.float32 and np.isfinite(want).all() and (want > 0).all()
    near = 2 * float(wnp.finfo(dtype).eps)
    for compute in (weft.jit(weft.grad(loss)), weft.grad(weft.jit(loss)), lambda a: weft.jit(weft.jacfwd(loss))(a)):
        np.testing.assert_allclose(np.asarray(compute(a), np.float32), want, rtol=near)
    one = lambda a, k: random.gamma(random.key(k), a, None, dtype)
    lanes = weft.vmap(weft.grad(one), (0, 0))(a, wnp.arange(4))
    each = [weft.grad(one)(a[i], wnp.int32(i)) for i in range(4)]
    np.testing.assert_allclose(np.asarray(lanes, np.float32), np.asarray(each, np.float32), rtol=2 * near)
    scanned = weft.lax.scan(lambda c, v: (c, weft.grad(one)(v, 3)), 0.0, a)[1]
    np.testing.assert_allclose(
        np.asarray(scanned, np.float32), np.asarray([weft.grad(one)(v, 3) for v in a], np.float32), rtol=2 * near
    )


def test_parameters_without_a_number():
    slopes = weft.vmap(weft.grad(lambda a: random.gamma(random.key(1), a)))(wnp.array([0.0, -1.0, wnp.inf, wnp.nan]))
    assert not (np.isfinite(np.asarray(slopes)) & (np.asarray(slopes) != 0)).any()


def test_jax_agrees_on_the_slope_of_a_number():
    jax = pytest.importorskip("jax")
    a = np.array([1.0, 1.7, 3.0, 12.0, 80.0], np.float32)
    numbers = random.gamma(random.key(3), wnp.asarray(a))
    log_v = np.log(np.asarray(numbers) / (a - 1 / 3)).astype(np.float32)
    ours = np.asarray(_gamma._slope_of_quantile(wnp.asarray(a), wnp.asarray(log_v))) * np.asarray(numbers)
    theirs = np.asarray(jax.lax.random_gamma_grad(a, np.asarray(numbers)))
    np.testing.assert_allclose(ours, theirs, rtol=2e-4)


@pytest.mark.parametrize("name", ["gamma", "loggamma"])
def test_gradients_are_those_of_jax(name):
    jax = pytest.importorskip("jax")
    a = np.array([0.05, 0.3, 0.9, 1.0, 3.0, 40.0], np.float32)
    slopes = lambda m: np.asarray(m.grad(lambda a: getattr(m.random, name)(m.random.key(3), a).sum())(m.numpy.array(a)))
    np.testing.assert_allclose(slopes(weft), slopes(jax), rtol=5e-5)
