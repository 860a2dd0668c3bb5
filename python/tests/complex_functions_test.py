"""Compiled functions of complex numbers of 64 bits: within a unit in the last place of mpmath's in both parts, over the
plane, beside the axes and near the unit circle; and at infinities, NaN and signed zeros what the reference says."""

import itertools

import numpy as np
import pytest

import weft
import weft.numpy as wnp

mpmath = pytest.importorskip("mpmath")

ONE = {
    "abs": mpmath.fabs,
    "sqrt": mpmath.sqrt,
    "exp": mpmath.exp,
    "exp2": lambda z: mpmath.power(2, z),
    "expm1": mpmath.expm1,
    "log": mpmath.log,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
}
TWO = {"divide": lambda a, b: a / b, "power": mpmath.power}
# Arguments: the values of large powers are those of their logarithms, computed in f64.
ULPS = {"power": 1.0}


def plane(seed, count=300):
    rng = np.random.default_rng(seed)
    pair = lambda x, y: x * rng.normal(size=count) + 1j * y * rng.normal(size=count)
    near_one = np.exp(1j * rng.uniform(-4, 4, count))
    parts = [pair(1, 1) * 10.0 ** rng.integers(-8, 3, count), near_one, pair(40, 1), pair(1, 40)]
    parts += [pair(1, 1e-20), pair(1e-20, 1), pair(1, 0), pair(0, 1)]
    return np.concatenate(parts).astype("complex64")


def units(got, want):
    """How far apart they are, in units in the last place of f32, the larger of both parts."""
    worst = 0.0
    for part in (np.real, np.imag):
        g, w = part(got).astype("float64"), part(want).astype("float64")
        held = np.abs(w) < np.finfo("float32").max
        assert (np.isfinite(g) | ~held).all()
        exponent = np.frexp(np.maximum(np.abs(w), 2.0**-126))[1]
        worst = max(worst, float((np.abs(g - w) / 2.0 ** (exponent - 24.0))[held].max()))
    return worst


def exactly(function, *arrays):
    with mpmath.workprec(200):
        wide = [[mpmath.mpc(v.real, v.imag) for v in a.astype("complex128")] for a in arrays]
        return np.array([complex(function(*v)) for v in zip(*wide)])


@pytest.mark.parametrize("name", sorted(ONE))
def test_functions_of_one(name):
    z = plane(0)
    z = z[z != 0] if name == "log" else z
    got = np.asarray(weft.jit(getattr(wnp, name))(wnp.asarray(z)))
    want = exactly(ONE[name], z)
    assert units(got, want.real if name == "abs" else want) <= 0.75


@pytest.mark.parametrize("name", sorted(TWO))
def test_functions_of_two(name):
    x, y = plane(1), plane(2)[::-1]
    kept = (x != 0) & (y != 0)
    x, y = x[kept], y[kept]
    got = np.asarray(weft.jit(getattr(wnp, name))(wnp.asarray(x), wnp.asarray(y)))
    assert units(got, exactly(TWO[name], x, y)) <= ULPS.get(name, 0.75)


SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e38, -1e-40, 100.0, -200.0]


@pytest.mark.parametrize("name", sorted(ONE))
@pytest.mark.parametrize("beside", [1, 16])
def test_special_values_are_those_of_the_reference(name, beside):
    """Alone in a vector and beside ordinary numbers, which are computed as the reference does there."""
    z = np.array([complex(a, b) for a, b in itertools.product(SPECIAL, SPECIAL)]).astype("complex64")
    function = getattr(wnp, name)
    wanted = np.asarray(weft.jit(function, backend="interpreter")(wnp.asarray(z)))
    compiled = weft.jit(function)
    padding = np.ones(beside - 1, "complex64")
    got = np.array([np.asarray(compiled(wnp.asarray(np.append(v, padding))))[0] for v in z[:, None]])
    for part in (np.real, np.imag):
        g, w = part(got), part(wanted)
        np.testing.assert_allclose(g, w, 1e-6, 0)
        numbers = ~np.isnan(w)
        assert (np.signbit(g) == np.signbit(w))[numbers].all()
