"""Derivatives where there is none: the table of docs/derivatives.md, against Weft and against JAX. And where branches
of a function meet that has no kink there: derivatives of every order, against mpmath.
"""

import math
import pathlib

import mpmath
import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft.scipy import special, stats

ORDER = 6
mpmath.mp.dps = 40
DOC = pathlib.Path("docs/derivatives.md")


def rows():
    text = DOC.read_text().split("<!-- the table begins -->")[1].split("<!-- the table ends -->")[0]
    for line in text.strip().splitlines()[2:]:
        expression, x, derivative, other = (cell.strip() for cell in line.strip("|").split("|"))
        yield expression.strip("`"), float(x), float(derivative), other


TABLE = list(rows())


def names(np_, **more):
    every = {name: getattr(np_, name) for name in dir(np_) if not name.startswith("__")}
    return every | more | {"inf": np.inf, "nan": np.nan, "linalg": np_.linalg}


def derivative(grad, expression, scope, x):
    return float(grad(eval(f"lambda x: {expression}", scope))(np.float32(x)))


@pytest.mark.parametrize("expression,x,expected,other", TABLE, ids=[f"{row[0]} at {row[1]}" for row in TABLE])
def test_row(expression, x, expected, other):
    scope = names(wnp, nn=weft.nn, lax=weft.lax, special=weft.scipy.special)
    got = derivative(weft.grad, expression, scope, x)
    assert got == pytest.approx(expected, rel=1e-6, nan_ok=True)
    assert derivative(lambda f: weft.jit(weft.grad(f)), expression, scope, x) == pytest.approx(
        got, rel=1e-6, nan_ok=True
    )
    forward = lambda f: lambda x: weft.jvp(f, (x,), (np.float32(1),))[1]
    assert derivative(forward, expression, scope, x) == pytest.approx(got, rel=1e-6, nan_ok=True)
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    theirs = derivative(jax.grad, expression, names(jnp, nn=jax.nn, lax=jax.lax, special=jax.scipy.special), x)
    wanted = float(other.split(",")[0]) if other else got
    assert theirs == pytest.approx(wanted, rel=1e-6, nan_ok=True), "JAX"


def test_the_table_is_long_and_has_the_promised_rows():
    functions = " ".join(row[0] for row in TABLE)
    for name in ("abs", "maximum", "nn.relu", "sqrt", "linalg.norm", "sort", "clip", "max(stack", "power", "where"):
        assert name in functions


def safe_sqrt(x):
    positive = x > 0
    return wnp.where(positive, wnp.sqrt(wnp.where(positive, x, 1.0)), 0.0)


def test_second_derivatives():
    jax = pytest.importorskip("jax")
    for f, theirs in [(wnp.cbrt, jax.numpy.cbrt), (weft.scipy.special.i0e, jax.scipy.special.i0e)]:
        for second in (weft.grad(weft.grad(f)), weft.jacfwd(weft.jacfwd(f))):
            assert float(second(0.0)) == float(jax.grad(jax.grad(theirs))(0.0))


# At points of the table, and beside them.
SECOND = {
    "nn.relu(x)": [0, np.nan, 1],
    "nn.relu6(x)": [0, 6, np.nan, 3],
    "nn.softplus(x)": [0, np.inf, np.nan],
    "lax.clamp(0.0, x, 1.0)": [0, 0.5, np.nan],
    "logaddexp(x, 1.0)": [-np.inf, 1, np.nan],
    "hypot(x, 0.0)": [0, 1, np.nan],
    "x // 0.0": [0, 1, np.inf],
    "inf // x": [0, 1],
    "special.gamma(x)": [-1, 2.5],
    "special.boxcox(x, 0.0)": [0.5, 2],
    "nanmedian(stack([x, x]))": [1, np.nan],
    "lax.cummax(stack([x, 1 + 0 * x, x * x]))[2]": [1, 2],
    "linalg.norm(stack([stack([x, 2 * x]), stack([2 * x, x + 3])]), ord=2)": [1, 2],
    "linalg.norm(stack([stack([x, 2 * x]), stack([2 * x, x + 3])]), ord=1)": [1, 3],
    "linalg.pinv(stack([stack([x, 0 * x]), stack([0 * x, 1 + 0 * x])])).sum()": [1, 2],
}


@pytest.mark.parametrize("expression", SECOND)
def test_second_derivatives_at_kinks(expression):
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    f = eval(f"lambda x: {expression}", names(wnp, nn=weft.nn, lax=weft.lax, special=special))
    g = eval(f"lambda x: {expression}", names(jnp, nn=jax.nn, lax=jax.lax, special=jax.scipy.special))
    forward = lambda h: lambda x: weft.jvp(h, (x,), (np.float32(1),))[1]
    for x in np.float32(SECOND[expression]):
        wanted = pytest.approx(float(jax.grad(jax.grad(g))(x)), rel=1e-4, abs=1e-6, nan_ok=True)
        for second in (weft.grad(weft.grad(f)), forward(forward(f)), weft.jit(forward(weft.grad(f)))):
            assert float(second(x)) == wanted


def test_pinv_where_singular_values_are_equal():
    # Among matrices of the same rank pinv is smooth there; the derivative of an inverse p is -p da p.
    rng = np.random.default_rng(0)
    q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    for a in (np.eye(3), q, q[:, :2], q[:2]):
        w, da = rng.normal(size=a.T.shape), rng.normal(size=a.shape)
        step = 1e-6
        wanted = ((np.linalg.pinv(a + step * da) - np.linalg.pinv(a - step * da)) * w).sum() / (2 * step)
        f = lambda x, w=w: (wnp.linalg.pinv(x) * f64(w)).sum()
        assert float((np.asarray(weft.grad(f)(f64(a))) * da).sum()) == pytest.approx(wanted, rel=1e-6)
        assert float(weft.jvp(weft.jit(f), (f64(a),), (f64(da),))[1]) == pytest.approx(wanted, rel=1e-6)


def test_where_and_nan():
    xs = np.array([-1.0, 0.0, 4.0], "float32")
    naive = weft.vmap(weft.grad(lambda x: wnp.where(x > 0, wnp.sqrt(x), 0.0)))(xs).tolist()
    assert naive == [0, 0, 0.25]
    as_written = weft.jit(weft.vmap(weft.grad(lambda x: wnp.sqrt(x) * wnp.where(x > 0, 1.0, 0.0))))(xs).tolist()
    assert np.isnan(as_written[0]) and np.isnan(as_written[1])  # nothing is chosen there
    for transformed in (
        weft.vmap(weft.grad(safe_sqrt)),
        weft.jit(weft.vmap(weft.grad(safe_sqrt))),
        weft.grad(lambda x: safe_sqrt(x).sum()),
        lambda x: weft.jvp(safe_sqrt, (x,), (np.ones(3, "float32"),))[1],
    ):
        assert transformed(xs).tolist() == [0, 0, 0.25]
    second = weft.vmap(weft.grad(weft.grad(safe_sqrt)))(xs).tolist()
    assert second == [0, 0, pytest.approx(-1 / 32)]
    branch = weft.grad(lambda x: weft.cond(x > 0, lambda: wnp.sqrt(x), lambda: 0.0))
    assert [float(branch(x)) for x in xs] == [0, 0, 0.25]


@pytest.mark.parametrize(
    "f,x,expected",
    [
        (lambda x: wnp.sinc(x), 0.0, 0.0),
        (lambda x: wnp.logaddexp(x, -np.inf), 0.3, 1.0),
        (lambda x: weft.nn.logsumexp(wnp.stack([x, -np.inf + 0 * x])), 0.3, 1.0),
        (lambda x: weft.nn.softplus(x), 100.0, 1.0),
        (lambda x: weft.nn.sigmoid(x), -200.0, 0.0),
        (lambda x: weft.scipy.special.xlogy(x, 0.0 * x + 1.0), 0.0, 0.0),
        (lambda x: wnp.abs(x + 0j), 0.0, 0.0),
    ],
)
def test_library_functions_are_safe(f, x, expected):
    assert float(weft.grad(f)(np.float32(x))) == pytest.approx(expected, abs=1e-6)


def f64(x):
    return wnp.array(x, dtype="float64")


def softplus(x):
    return mpmath.log(1 + mpmath.exp(x))


def box_cox(log, lmbda):
    return mpmath.expm1(lmbda * log) / lmbda if lmbda else log


def log_gamma_pdf(a, x):
    return (a - 1) * mpmath.log(x) - x - mpmath.loggamma(a)


def log_beta_pdf(a, b, x):
    log_beta = mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)
    return (a - 1) * mpmath.log(x) + (b - 1) * mpmath.log(1 - x) - log_beta


# name: function, the same in mpmath, points, highest order
FUNCTIONS = {
    "logaddexp of equal numbers": (lambda x: wnp.logaddexp(x, 1.5), lambda x: 1.5 + softplus(x - 1.5), [1.5], ORDER),
    "the other way round": (lambda x: wnp.logaddexp(1.5, x), lambda x: 1.5 + softplus(x - 1.5), [1.5], ORDER),
    "logaddexp beside": (lambda x: wnp.logaddexp(x, 1.5), lambda x: 1.5 + softplus(x - 1.5), [1.4, 1.6, -3.0, 5.0], 3),
    "logaddexp2": (
        lambda x: wnp.logaddexp2(x, 0.5),
        lambda x: mpmath.log(2**x + mpmath.sqrt(2), 2),
        [0.5],
        ORDER,
    ),
    "softplus": (weft.nn.softplus, softplus, [0.0], ORDER),
    "log_sigmoid": (weft.nn.log_sigmoid, lambda x: -softplus(-x), [0.0], ORDER),
    "mish": (weft.nn.mish, lambda x: x * mpmath.tanh(softplus(x)), [0.0], ORDER),
    "logistic.logpdf": (stats.logistic.logpdf, lambda x: -x - 2 * softplus(-x), [0.0], ORDER),
    "cumlogsumexp": (
        lambda x: weft.lax.cumlogsumexp(wnp.stack([x, f64(0.5), x]))[2],
        lambda x: mpmath.log(2 * mpmath.exp(x) + mpmath.exp(0.5)),
        [0.5],
        ORDER,
    ),
    "hypot": (lambda x: wnp.hypot(x, 1.0), lambda x: mpmath.sqrt(x * x + 1), [1.0, -1.0, 0.0], ORDER),
    "sinc": (wnp.sinc, lambda x: mpmath.sinc(mpmath.pi * x), [0.0, 1e-8, 1e-3, 0.1, 0.3, 0.32, -0.4, 2.2], ORDER),
    "i0": (wnp.i0, lambda x: mpmath.besseli(0, x), [0.0, 0.5, -0.5], ORDER),
    "xlogy": (lambda x: special.xlogy(x, f64(2.5)), lambda x: x * mpmath.log(2.5), [0.0, 1.0], 3),
    "xlogy of a function": (
        lambda x: special.xlogy(wnp.sin(x), 2.5 + x),
        lambda x: mpmath.sin(x) * mpmath.log(2.5 + x),
        [0.0],
        ORDER,
    ),
    "xlog1py": (
        lambda x: special.xlog1py(wnp.sin(x), 0.5 + x),
        lambda x: mpmath.sin(x) * mpmath.log(1.5 + x),
        [0.0],
        ORDER,
    ),
    "entr": (special.entr, lambda x: -x * mpmath.log(x), [0.5, 2.0], 3),
    "gamma.logpdf": (lambda a: stats.gamma.logpdf(f64(0.7), a), lambda a: log_gamma_pdf(a, mpmath.mpf(0.7)), [1.0], 2),
    "beta.logpdf, a": (
        lambda a: stats.beta.logpdf(f64(0.25), a, f64(2.5)),
        lambda a: log_beta_pdf(a, 2.5, mpmath.mpf(0.25)),
        [1.0],
        2,
    ),
    "beta.logpdf, b": (
        lambda b: stats.beta.logpdf(f64(0.25), f64(2.5), b),
        lambda b: log_beta_pdf(2.5, b, mpmath.mpf(0.25)),
        [1.0],
        2,
    ),
    "poch": (lambda m: special.poch(2.5, m), lambda m: mpmath.gamma(2.5 + m) / mpmath.gamma(2.5), [0.0, 1.5], 2),
    "poch by z": (lambda z: special.poch(z, 0.0), lambda z: mpmath.mpf(1), [2.5], 2),
    "boxcox": (
        lambda m: special.boxcox(f64(3.0), m),
        lambda m: box_cox(mpmath.log(3), m),
        [0.0, 1e-8, 1e-3, 0.45, 0.46, -0.4, 2.0],
        ORDER,
    ),
    "boxcox by x": (lambda x: special.boxcox(x, 0.0), mpmath.log, [0.5, 3.0], ORDER),
    "boxcox1p": (lambda m: special.boxcox1p(f64(3.0), m), lambda m: box_cox(mpmath.log(4), m), [0.0, 1e-8, 1.0], ORDER),
}


def expected(reference, x, order):
    return [float(c * math.factorial(k)) for k, c in enumerate(mpmath.taylor(reference, mpmath.mpf(x), order))]


CASES = [(name, x) for name, (_, _, points, _) in FUNCTIONS.items() for x in points]


@pytest.mark.parametrize("name,x", CASES, ids=[f"{name} at {x}" for name, x in CASES])
def test_every_order(name, x):
    f, reference, _, order = FUNCTIONS[name]
    wanted = expected(reference, x, order)
    in_double = lambda v: f(v).astype("float64")
    value, terms = weft.jet(in_double, (f64(x),), ([f64(1.0)] + [f64(0.0)] * (order - 1),))
    np.testing.assert_allclose([float(value), *map(float, terms)], wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_both_modes_of_order_2_and_3_under_jit_and_vmap(name):
    f, reference, points, highest = FUNCTIONS[name]
    xs = f64(points)
    grad = weft.grad
    forward = lambda g: lambda x: weft.jvp(g, (x,), (f64(1.0),))[1]
    wanted = np.array([expected(reference, x, 3) for x in points])
    for order, nested in [
        (1, grad(f)),
        (1, forward(f)),
        (2, grad(grad(f))),
        (2, forward(grad(f))),
        (3, forward(grad(forward(f)))),
    ]:
        if order > highest:
            continue
        for run in (weft.vmap(nested), weft.jit(weft.vmap(nested))):
            np.testing.assert_allclose(run(xs), wanted[:, order], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(nested(xs[0]), wanted[0, order], rtol=1e-8, atol=1e-10)


def test_single_precision():
    second = weft.grad(weft.grad(weft.nn.softplus))
    assert second(0.0) == pytest.approx(0.25)
    assert weft.grad(weft.grad(wnp.sinc))(0.0) == pytest.approx(-(math.pi**2) / 3, rel=1e-6)
    assert weft.grad(weft.grad(wnp.sinc))(1e-8) == pytest.approx(-(math.pi**2) / 3, rel=1e-6)
    assert weft.grad(lambda m: special.boxcox(3.0, m))(0.0) == pytest.approx(math.log(3) ** 2 / 2, rel=1e-6)


def test_a_zero_initialised_logistic_regression_has_its_hessian():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 3)), np.where(rng.random(20) < 0.5, 1.0, -1.0)

    def loss(w):
        return weft.nn.softplus(-f64(y) * (f64(x) @ w)).mean()

    wanted = x.T @ x / 4 / 20
    for hessian in (weft.hessian, lambda f: weft.jacrev(weft.jacrev(f)), lambda f: weft.jit(weft.jacfwd(weft.grad(f)))):
        np.testing.assert_allclose(hessian(loss)(wnp.zeros(3, "float64")), wanted, rtol=1e-12)


def test_hessians_of_two_arguments():
    at = lambda f, *v: np.array(weft.hessian(lambda v: f(v[0], v[1]))(f64(v)))
    for a, b in [(0.5, 0.5), (-2.0, -2.0), (0.0, 0.1)]:
        p = 1 / (1 + math.exp(b - a))
        np.testing.assert_allclose(at(wnp.logaddexp, a, b), p * (1 - p) * np.array([[1, -1], [-1, 1]]), rtol=1e-12)
    np.testing.assert_allclose(at(wnp.hypot, 3.0, 3.0), np.array([[1, -1], [-1, 1]]) * 9 / 18**1.5, rtol=1e-12)
    np.testing.assert_allclose(at(special.xlogy, 0.0, 2.0), [[0, 0.5], [0.5, 0]], rtol=1e-12)
    np.testing.assert_allclose(at(special.xlog1py, 0.0, 3.0), [[0, 0.25], [0.25, 0]], rtol=1e-12)


@pytest.mark.parametrize("x", [2.0, 0.5, 1.0])
def test_power_at_exponent_0(x):
    f = lambda v: v[0] ** v[1]
    wanted = [[0, 1 / x], [1 / x, math.log(x) ** 2]]
    np.testing.assert_allclose(weft.hessian(f)(f64([x, 0.0])), wanted, rtol=1e-12)
    np.testing.assert_allclose(weft.jacrev(weft.jacrev(f))(f64([x, 0.0])), wanted, rtol=1e-12)
    mixed = weft.grad(weft.grad(wnp.power, 0), 1)
    np.testing.assert_allclose(weft.jit(weft.vmap(mixed))(f64([x, x]), f64([0.0, 1.0])), [1 / x, 1 + math.log(x)])
    # x^w along x = w = t from (x, 0): t -> (x + t)^t.
    _, terms = weft.jet(lambda t: (x + t) ** t, (f64(0.0),), ([f64(1.0), f64(0.0)],))
    np.testing.assert_allclose(terms, [math.log(x), math.log(x) ** 2 + 2 / x], rtol=1e-12)
    assert weft.grad(wnp.power, (0, 1))(0.0, 0.0) == (0.0, 0.0)


def test_the_sampled_gradient_of_dirichlet_is_a_difference():
    x = f64([0.2, 0.3, 0.5])
    f = lambda alpha: stats.dirichlet.logpdf(x, alpha)
    # By the normaliser: digamma(3) - digamma(1) + log(x_i).
    wanted = [float(mpmath.digamma(3) - mpmath.digamma(1)) + math.log(v) for v in (0.2, 0.3, 0.5)]
    np.testing.assert_allclose(weft.grad(f)(wnp.ones(3, "float64")), wanted, rtol=1e-12)


def test_infinities_and_nan():
    inf = float("inf")
    both = weft.grad(wnp.logaddexp, (0, 1))
    assert both(inf, inf) == (1.0, 1.0)
    assert both(1.0, -inf) == (1.0, 0.0)
    assert both(-inf, 1.0) == (0.0, 1.0)
    assert both(inf, 1.0) == (1.0, 0.0)
    assert weft.grad(weft.grad(wnp.logaddexp))(1.0, -inf) == 0
    assert [float(wnp.logaddexp(a, b)) for a, b in [(inf, inf), (-inf, -inf), (-inf, inf), (inf, 2.0)]] == [
        inf,
        -inf,
        inf,
        inf,
    ]
    assert all(math.isnan(wnp.logaddexp(a, b)) for a, b in [(1.0, math.nan), (math.nan, 1.0), (math.nan, inf)])
    assert [float(special.xlogy(0.0, y)) for y in (0.0, -1.0, inf)] == [0, 0, 0]
    assert math.isnan(special.xlogy(0.0, math.nan))
    assert float(special.entr(0.0)) == 0 and float(special.entr(-1.0)) == -inf
    assert [float(special.poch(z, 0.0)) for z in (0.0, -2.0, -2.5, 3.0)] == [1, 1, 1, 1]
    assert float(special.boxcox(0.0, 0.5)) == -2 and float(special.boxcox(0.0, 0.0)) == -inf
    assert math.isnan(wnp.sinc(math.nan)) and math.isnan(special.boxcox(math.nan, 0.0))


def test_complex_logaddexp():
    for a, b in [(1 + 2j, 1 - 2j), (0.5 + 0.1j, 0.5 + 0.1j), (3 - 1j, -2 + 0.5j), (-2 + 0.5j, 3 - 1j)]:
        got = complex(wnp.logaddexp(wnp.array(a, "complex128"), wnp.array(b, "complex128")))
        assert mpmath.exp(got) == pytest.approx(mpmath.exp(a) + mpmath.exp(b), rel=1e-12)
        slope = weft.grad(wnp.logaddexp, holomorphic=True)(wnp.array(a, "complex128"), wnp.array(b, "complex128"))
        assert complex(slope) == pytest.approx(complex(1 / (1 + mpmath.exp(b - a))), rel=1e-12)
    assert complex(wnp.sinc(wnp.array(0.1j, "complex128"))) == pytest.approx(complex(mpmath.sinc(mpmath.pi * 0.1j)))


@pytest.mark.parametrize("shape, window, strides, padding", [((6,), (2,), (2,), "VALID"), ((7,), (3,), (1,), "SAME")])
@pytest.mark.parametrize("which", ["max", "min"])
def test_pooling_picks_the_first_in_the_window(which, shape, window, strides, padding):
    jax = pytest.importorskip("jax")
    init = -np.inf if which == "max" else np.inf
    weights = np.arange(1.0, 8.0, dtype="float32")[: 3 if padding == "VALID" else 7]
    reduce = lambda lax, v: lax.reduce_window(v, init, getattr(lax, which), window, strides, padding)
    pool = lambda lax: lambda v: (reduce(lax, v) * weights).sum()
    for x in (np.zeros(shape, "float32"), np.float32([1, 1, 0, 1, 1, 1, 2][: shape[0]])):
        wanted = np.asarray(jax.grad(pool(jax.lax))(x))
        for got in (weft.grad(pool(weft.lax)), weft.jit(weft.grad(pool(weft.lax))), weft.jacfwd(pool(weft.lax))):
            np.testing.assert_allclose(got(x), wanted)
    assert np.isnan(pool(weft.lax)(np.float32([0, np.nan] + [1] * (shape[0] - 2))))


def test_pooling_of_ties_in_two_dimensions():
    jax = pytest.importorskip("jax")
    x = np.random.default_rng(0).integers(0, 3, (2, 7, 7, 2)).astype("float32")
    pool = lambda lax: lambda x: (lax.reduce_window(x, -np.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME") ** 3).sum()
    np.testing.assert_allclose(weft.grad(pool(weft.lax))(x), jax.grad(pool(jax.lax))(x))
