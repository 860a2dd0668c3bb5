"""Complex functions of zeros, infinities and NaN in both precisions, eager and compiled: as NumPy has them, which are
C's (C99, Annex G). Every element-wise operation of the registry that takes complex numbers is here, or said to be
without an oracle."""

import itertools

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import _weft

PARTS = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]
POINTS = np.array([complex(x, y) for x, y in itertools.product(PARTS, PARTS)])

ONE = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "conj": np.conj,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "exp2": np.exp2,
    "imag": np.imag,
    "log": np.log,
    "log1p": np.log1p,
    "neg": np.negative,
    "real": np.real,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "square": np.square,
    "stop_gradient": lambda z: z,
    "tan": np.tan,
    "tanh": np.tanh,
}
TWO = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "eq": np.equal, "ne": np.not_equal}
BY_RULES = {"div", "pow", "expm1"}  # tests of their own below
ATTRIBUTES = {"bitcast", "convert", "integer_pow"}  # no function of the numbers alone
WITHOUT_ORACLE = {"logistic", "rsqrt"}  # NumPy has none
DTYPES = ["complex64", "complex128"]


def test_every_operation_is_here():
    complex_ones = {
        p["name"] for p in _weft.primitives() if p["elementwise"] and ({"c64", "c128"} & set(p["dtypes"].split("|")))
    }
    assert complex_ones == ONE.keys() | TWO.keys() | BY_RULES | ATTRIBUTES | WITHOUT_ORACLE


def runs(function, *arrays):
    """(how, values, arguments): eager, compiled (in vectors, with what is left over), compiled for single numbers."""
    compiled = weft.jit(function)
    yield "eager", np.asarray(function(*map(wnp.asarray, arrays))), arrays
    padded = [np.append(a, np.ones(19, a.dtype)) for a in arrays]
    yield "vectors", np.asarray(compiled(*map(wnp.asarray, padded)))[: len(arrays[0])], arrays
    few = np.random.default_rng(0).permutation(len(arrays[0]))[:60]
    some = [a[few] for a in arrays]
    yield "scalars", np.array([np.asarray(compiled(*map(wnp.asarray, point))) for point in zip(*some)]), some


def assert_same(how, got, want, *arguments, signs=True):
    tolerance = 1e-6 if want.dtype in ("complex64", "float32") else 1e-14
    for part in (np.real, np.imag) if np.iscomplexobj(want) else (np.asarray,):
        g, w = part(got), part(want)
        if g.dtype != bool:
            both = ~np.isnan(g) & ~np.isnan(w)
            close = np.isclose(g, w, tolerance, tolerance, equal_nan=True)
            if signs:
                close &= ~both | (np.signbit(g) == np.signbit(w))
        else:
            close = g == w
        bad = np.flatnonzero(~close)[:5]
        assert not bad.size, (how, [(*(a[i] for a in arguments), got[i], want[i]) for i in bad])


def bound(name):
    return lambda *xs: _weft.bind_elementwise(name, list(xs), {})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ONE)
@np.errstate(all="ignore")
def test_functions_of_one(name, dtype):
    for how, got, (z,) in runs(bound(name), POINTS.astype(dtype)):
        assert_same(how, got, ONE[name](z), z)


def pairs(dtype):
    x, y = (a.ravel() for a in np.meshgrid(POINTS, POINTS))
    return x.astype(dtype), y.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TWO)
@np.errstate(all="ignore")
def test_functions_of_two(name, dtype):
    for how, got, (x, y) in runs(bound(name), *pairs(dtype)):
        assert_same(how, got, TWO[name](x, y), x, y)


def infinite(z):
    return np.isinf(z.real) | np.isinf(z.imag)


@pytest.mark.parametrize("dtype", DTYPES)
@np.errstate(all="ignore")
def test_division_by_the_rules_of_c(dtype):
    """NumPy's is NaN at many of these. A number with an infinite part is an infinity, whatever the other part is."""
    for how, got, (x, y) in runs(bound("div"), *pairs(dtype)):
        held = np.isfinite(x) & np.isfinite(y) & (y != 0)
        assert_same(how, got[held], (x / y)[held], x[held], y[held], signs=False)
        assert infinite(got[infinite(x) & np.isfinite(y)]).all(), how
        assert infinite(got[(np.isfinite(x) & (x != 0)) & (y == 0)]).all(), how
        assert (got[np.isfinite(x) & infinite(y)] == 0).all(), how
        assert np.isnan(got[(x == 0) & (y == 0)]).all(), how


@pytest.mark.parametrize("dtype", DTYPES)
@np.errstate(all="ignore")
def test_powers(dtype):
    for how, got, (x, y) in runs(bound("pow"), *pairs(dtype)):
        # NumPy's 1 / x is NaN where x is infinite. In 32 bits its powers lose what the logarithm is rounded to.
        power = np.power(x.astype("complex128"), y.astype("complex128"))
        want = np.where((y == -1) & infinite(x), 0, power).astype(dtype)
        assert_same(how, got, want, x, y, signs=False)
        assert_same(how, got[y == 1], x[y == 1], x[y == 1])


@pytest.mark.parametrize("dtype", DTYPES)
@np.errstate(all="ignore")
def test_expm1_is_the_exponential_less_one(dtype):
    """NumPy multiplies an infinity by the sine of 0."""
    for how, got, (z,) in runs(bound("expm1"), POINTS.astype(dtype)):
        want = np.where(np.isfinite(z), np.expm1(z), np.exp(z) - 1)
        assert_same(how, got, want, z, signs=False)


@pytest.mark.parametrize("dtype", DTYPES)
@np.errstate(all="ignore")
def test_signs(dtype):
    for how, got, (z,) in runs(wnp.sign, POINTS.astype(dtype)):
        assert_same(how, got, np.sign(z), z)
