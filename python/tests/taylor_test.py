"""Taylor mode: against mpmath's Taylor coefficients, JAX's jet where that works, nested jvp; conventions and errors."""

import functools
import math

import mpmath
import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft.experimental.jet import jet

ORDER = 6
mpmath.mp.dps = 40


def f64(x):
    return wnp.array(x, dtype="float64")


def derivatives(f, x, order=ORDER):
    """f and its derivatives 1 ... order at x, by jet."""
    value, terms = weft.jet(f, (f64(x),), ([f64(1.0)] + [f64(0.0)] * (order - 1),))
    return [float(value), *(float(t) for t in terms)]


ELEMENTARY = {
    "exp": (wnp.exp, mpmath.exp, 0.3),
    "exp2": (wnp.exp2, lambda x: mpmath.mpf(2) ** x, 0.3),
    "expm1": (wnp.expm1, mpmath.expm1, 0.3),
    "log": (wnp.log, mpmath.log, 0.7),
    "log1p": (wnp.log1p, lambda x: mpmath.log(1 + x), 0.7),
    "sqrt": (wnp.sqrt, mpmath.sqrt, 0.7),
    "rsqrt": (weft.lax.rsqrt, lambda x: 1 / mpmath.sqrt(x), 0.7),
    "cbrt": (wnp.cbrt, mpmath.cbrt, 0.7),
    "sin": (wnp.sin, mpmath.sin, 0.7),
    "cos": (wnp.cos, mpmath.cos, 0.7),
    "tan": (wnp.tan, mpmath.tan, 0.7),
    "arcsin": (wnp.arcsin, mpmath.asin, 0.4),
    "arccos": (wnp.arccos, mpmath.acos, 0.4),
    "arctan": (wnp.arctan, mpmath.atan, 0.4),
    "sinh": (wnp.sinh, mpmath.sinh, 0.4),
    "cosh": (wnp.cosh, mpmath.cosh, 0.4),
    "tanh": (wnp.tanh, mpmath.tanh, 0.4),
    "arcsinh": (wnp.arcsinh, mpmath.asinh, 0.4),
    "arccosh": (wnp.arccosh, mpmath.acosh, 1.4),
    "arctanh": (wnp.arctanh, mpmath.atanh, 0.4),
    "erf": (weft.lax.erf, mpmath.erf, 0.4),
    "erfc": (weft.lax.erfc, mpmath.erfc, 0.4),
    "erf_inv": (weft.lax.erf_inv, mpmath.erfinv, 0.4),
    "logistic": (weft.nn.sigmoid, lambda x: 1 / (1 + mpmath.exp(-x)), 0.4),
    "lgamma": (weft.lax.lgamma, mpmath.loggamma, 1.5),
    "digamma": (weft.lax.digamma, mpmath.digamma, 0.3),
    "digamma below 0": (weft.lax.digamma, mpmath.digamma, -1.3),
    "digamma far out": (weft.lax.digamma, mpmath.digamma, 300.5),
    "reciprocal": (lambda x: 1 / x, lambda x: 1 / x, 0.8),
    "quotient": (lambda x: wnp.sin(x) / (1 + x * x), lambda x: mpmath.sin(x) / (1 + x * x), 0.8),
    "power": (lambda x: x**2.5, lambda x: x ** mpmath.mpf(2.5), 0.8),
    "power of a number": (lambda x: 2.5**x, lambda x: mpmath.mpf(2.5) ** x, 0.8),
    "x to the x": (lambda x: x**x, lambda x: x**x, 0.8),
    "integer power": (lambda x: x**5, lambda x: x**5, 0.8),
    "square": (lambda x: wnp.square(wnp.exp(x)), lambda x: mpmath.exp(2 * x), 0.2),
    "atan2": (lambda x: wnp.arctan2(wnp.sin(x), x * x), lambda x: mpmath.atan2(mpmath.sin(x), x * x), 0.8),
    "abs": (lambda x: abs(wnp.sin(x)), lambda x: -mpmath.sin(x), -0.8),
    "max": (lambda x: wnp.maximum(wnp.sin(x), x**3), mpmath.sin, 0.8),
    "where": (lambda x: wnp.where(x > 0, wnp.sin(x), x), mpmath.sin, 0.8),
    "nested": (
        lambda x: wnp.tanh(wnp.sin(x) * wnp.exp(x)),
        lambda x: mpmath.tanh(mpmath.sin(x) * mpmath.exp(x)),
        0.3,
    ),
}


@pytest.mark.parametrize("name", ELEMENTARY)
def test_elementary_functions_have_mpmaths_coefficients(name):
    f, reference, x = ELEMENTARY[name]
    coefficients = mpmath.taylor(reference, mpmath.mpf(x), ORDER)
    expected = [float(c * math.factorial(k)) for k, c in enumerate(coefficients)]
    np.testing.assert_allclose(derivatives(f, x), expected, rtol=1e-9, atol=1e-9)


PROGRAMS = {
    "product of matrices": lambda x: (wnp.outer(wnp.sin(x), x) @ wnp.exp(x)).sum(),
    "solve": lambda x: wnp.linalg.solve(wnp.outer(x, x) + 2 * wnp.eye(3, dtype="float64"), wnp.sin(x)).sum(),
    "cholesky": lambda x: wnp.linalg.cholesky(wnp.outer(x, x) + 2 * wnp.eye(3, dtype="float64")).sum(),
    "eigh": lambda x: (wnp.linalg.eigh(wnp.outer(x, wnp.sin(x)) + wnp.diag(wnp.arange(3.0)))[0] * x).sum(),
    "scan": lambda x: weft.scan(lambda c, v: (wnp.sin(c) * v, c * v), x[0], x)[1].sum(),
    "while": lambda x: weft.while_loop(lambda v: v.sum() < 9, lambda v: v * 1.5 + wnp.sin(v), x).prod(),
    "cond": lambda x: weft.cond(x[0] > 0, lambda: wnp.exp(x).prod(), lambda: x.sum()),
    "cumulative": lambda x: wnp.cumprod(wnp.sin(x)).sum() * wnp.cumsum(x)[1],
    "sort and maximum": lambda x: (wnp.sort(wnp.sin(x)) * wnp.arange(3.0)).sum() + wnp.max(x * x) * wnp.exp(x[1]),
    "logsumexp": lambda x: weft.nn.logsumexp(x * wnp.sin(x)),
    "convolution": lambda x: wnp.convolve(wnp.sin(x), x * x).sum() * x[0],
    "gather and scatter": lambda x: (
        wnp.zeros(4, "float64").at[wnp.array([1, 1, 3])].add(x * x)[wnp.array([1, 3])].prod()
    ),
    "fft": lambda x: abs(wnp.fft.fft(wnp.sin(x))).sum() * x[2],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_nested_jvp(name):
    f = PROGRAMS[name]
    x, terms = f64([0.4, 0.9, 0.6]), [f64(v) for v in ([1.0, -0.5, 0.3], [0.2, 0.4, -0.1], [0.0, 0.7, 0.5])]
    curve = lambda t: f(x + t * terms[0] + t**2 / 2 * terms[1] + t**3 / 6 * terms[2])
    along = lambda g: lambda t: weft.jvp(g, (t,), (f64(1.0),))[1]
    zero = f64(0.0)
    expected = [curve(zero), along(curve)(zero), along(along(curve))(zero), along(along(along(curve)))(zero)]
    value, found = weft.jet(f, (x,), (terms,))
    np.testing.assert_allclose([float(v) for v in (value, *found)], [float(v) for v in expected], rtol=1e-9)


def test_under_jit_vmap_and_grad():
    def third(x):
        return weft.jet(lambda v: wnp.sin(v) * wnp.exp(v), (x,), ([f64(1.0), f64(0.0), f64(0.0)],))[1][2]

    expected = lambda x, k: float(mpmath.diff(lambda v: mpmath.sin(v) * mpmath.exp(v), x, k))
    xs = [0.1, 0.5, 0.9]
    np.testing.assert_allclose(weft.jit(third)(f64(0.5)), expected(0.5, 3), rtol=1e-9)
    np.testing.assert_allclose(weft.vmap(third)(f64(xs)), [expected(x, 3) for x in xs], rtol=1e-9)
    np.testing.assert_allclose(weft.grad(third)(f64(0.5)), expected(0.5, 4), rtol=1e-9)
    np.testing.assert_allclose(weft.jit(weft.vmap(weft.grad(third)))(f64(xs)), [expected(x, 4) for x in xs], rtol=1e-9)
    fifth = derivatives(weft.grad(lambda v: wnp.sin(v) * wnp.exp(v)), 0.5, 4)[4]
    np.testing.assert_allclose(fifth, expected(0.5, 5), rtol=1e-9)
    lanes = weft.vmap(lambda v: wnp.sin(v) * wnp.exp(v))
    _, terms = weft.jet(lanes, (f64(xs),), ([wnp.ones(3, "float64"), wnp.zeros(3, "float64")],))
    np.testing.assert_allclose(terms[1], [expected(x, 2) for x in xs], rtol=1e-9)


def test_jet_of_jet():
    inner = lambda x: weft.jet(wnp.sin, (x,), ([f64(1.0), f64(0.0)],))[1][1]  # -sin
    np.testing.assert_allclose(
        derivatives(inner, 0.4, 3), [-math.sin(0.4), -math.cos(0.4), math.sin(0.4), math.cos(0.4)]
    )


def test_conventions_are_those_of_jax():
    jax = pytest.importorskip("jax")
    from jax.experimental.jet import jet as jax_jet

    functions = [
        (lambda np_: lambda x: np_.sin(x), 1),
        (lambda np_: lambda x, y: np_.exp(x) * y, 2),
        (lambda np_: lambda x: (np_.tanh(x), x * x), 1),
        (lambda np_: lambda x: {"a": np_.log(x), "b": [x / (1 + x)]}, 1),
    ]
    for make, count in functions:
        x, series = tuple([0.7] * count), tuple([[1.0, 0.5, -0.25]] * count)
        for scaled in (True, False):
            ours = weft.jet(make(wnp), x, series, factorial_scaled=scaled)
            theirs = jax_jet(make(jax.numpy), x, series, factorial_scaled=scaled)
            assert weft.tree.structure(ours) == weft.tree.structure(jax.tree.map(float, theirs))
            np.testing.assert_allclose(
                np.array(weft.tree.leaves(ours), dtype=float), np.array(jax.tree.leaves(theirs), dtype=float), rtol=2e-5
            )


def test_results_that_do_not_vary_have_zero_terms():
    _, terms = weft.jet(lambda x: (x, 3, wnp.floor(x)), (1.5,), ((1.0, 2.0),))
    assert [float(t) for t in terms[0]] == [1.0, 2.0]
    assert [float(t) for t in terms[1]] == [0.0, 0.0]
    assert [float(t) for t in terms[2]] == [0.0, 0.0]


def test_arguments_may_be_trees_and_integers():
    f = lambda p, n: p["w"] * wnp.sin(p["b"]) * n
    _, terms = weft.jet(f, ({"w": 2.0, "b": 0.5}, 3), ([{"w": 1.0, "b": 0.0}], [0]))
    np.testing.assert_allclose(terms[0], 3 * math.sin(0.5), rtol=1e-6)


def test_integers_that_move_are_those_of_jax():
    jax = pytest.importorskip("jax")
    from jax.experimental.jet import jet as jax_jet

    whole = np.arange(3, dtype=np.int32)
    for make, primals, series in [
        (lambda np_: np_.exp, (1,), ((1, 0, 2),)),
        (lambda np_: np_.exp, (whole,), ((1 + whole, 0 * whole),)),
        (lambda np_: lambda x: np_.sin(2.0 * x), (2,), ((1, 0),)),
        (lambda np_: lambda x, n: x * n, (2.0, 3), ((1.0, 0.0), (1, 0))),
        (lambda np_: lambda x, n: x * n, (2.0, np.int32(3)), ((1.0, 0.5), (0, 1))),
    ]:
        ours, theirs = weft.jet(make(wnp), primals, series), jax_jet(make(jax.numpy), primals, series)
        for a, b in zip(weft.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-5)
    (_, terms), (_, fixed) = weft.jet(lambda n: n * n, (3,), ((1, 0),)), weft.jet(lambda n: n * n, (3,), ((0, 0),))
    assert [float(t) for t in terms] == [6, 2]  # JAX mixes dtypes here, and fails
    assert [int(t) for t in fixed] == [0, 0]
    assert weft.jet(lambda n: wnp.arange(4.0)[n], (2,), ((0,),))[0] == 2  # an index that stays is one


def test_custom_jvp_is_used_with_its_rule():
    @weft.custom_jvp
    def f(x):
        return wnp.sin(x)

    @f.defjvp
    def rule(primals, tangents):
        return f(*primals), 10 * wnp.cos(primals[0]) * tangents[0]  # not its derivative, to be recognised

    # y' = 10 cos(x) x'
    expected = [math.sin(0.4), 10 * math.cos(0.4), -10 * math.sin(0.4), -10 * math.cos(0.4)]
    np.testing.assert_allclose(derivatives(f, 0.4, 3), expected, rtol=1e-12)


@functools.cache
def power():
    @weft.jit
    def power_of(n, x):
        return weft.cond(n <= 0, lambda: 1.0 + 0 * x, lambda: x * power_of(n - 1, x))

    return power_of


def test_recursion():
    np.testing.assert_allclose(derivatives(lambda x: power()(4, x), 2.0, 5), [16, 32, 48, 48, 24, 0])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: jet(wnp.sin, (1.0, 2.0), ((1.0,),)), ValueError, "2 primals, but 1 series"),
        (lambda: jet(wnp.add, (1.0, 2.0), ((1.0,), (1.0, 2.0))), ValueError, r"different lengths: \[1, 2\]"),
        (lambda: jet(wnp.sin, (1.0,), (1.0,)), TypeError, "series of argument 0 must be a list"),
        (lambda: jet(lambda x: x, (wnp.ones(3),), ((1.0,),)), TypeError, r"term 1 of argument x is f32\[\]"),
        (lambda: jet(lambda x: x, ([1.0, 2.0],), ((1.0,),)), ValueError, "term 1 of argument 0 is an array"),
        (lambda: jet(lambda x: weft.lax.nextafter(x, x), (1.5,), ((1.0,),)), weft.DerivativeError, "nextafter"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_effects_happen_once():
    lines = []

    def f(x):
        weft.io_callback(lambda v: lines.append(float(v)), None, x)
        return wnp.sin(x)

    for wrap in (lambda g: g, weft.jit):
        lines.clear()
        value, terms = wrap(lambda x: weft.jet(f, (x,), ((1.0, 0.0),)))(0.5)
        assert float(terms[1]) == pytest.approx(-math.sin(0.5))
        assert float(value) == pytest.approx(math.sin(0.5))
        assert lines == [0.5]
