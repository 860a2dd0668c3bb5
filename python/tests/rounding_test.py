"""Arithmetic rounds as written: no product and sum are made one (docs/ir.md, Rounding). And results of functions
down to the sign of a zero.
"""

import functools
import itertools

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import nn

inf, nan = np.inf, np.nan
FLOATS = pytest.mark.parametrize("dtype", ["float32", "float64"])
# With its rules a compiled program may round otherwise, though not worse.
AS_WRITTEN = functools.partial(weft.jit, licence="signed-zero")
COMPUTE = pytest.mark.parametrize("compute", [lambda f: f, weft.jit, AS_WRITTEN], ids=["eager", "jit", "as_written"])


def same_bits(got, wanted) -> None:
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(wanted[numbers]))


def numbers(n: int, dtype: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=n) * 2.0 ** rng.integers(-3, 4, n)).astype(dtype)


def random_expression(rng, depth: int) -> str:
    if depth == 0:
        return rng.choice(["x", "y", "z", "(0.1 * x)", "(3.0 - y)", "(z / 7.0)"])
    kind = rng.choice(["+", "-", "*", "*", "/", "-u", "sqrt", "where", "square"])
    a, b = (random_expression(rng, depth - 1) for _ in range(2))
    if kind in "+-*/":
        return f"({a} {kind} {b})"
    return {"-u": f"(-{a})", "sqrt": f"np.sqrt(abs({a}))", "where": f"np.where({a} > {b}, {a}, {b})"}.get(
        kind, f"np.square({a})"
    )


@FLOATS
@pytest.mark.parametrize("n", [5, 3000])
def test_expressions_have_the_bits_of_numpy(dtype: str, n: int) -> None:
    rng = np.random.default_rng(7)
    x, y, z = (numbers(n, dtype, seed) for seed in range(3))
    ours, theirs = [], []
    for _ in range(60):
        text = "x*y + " + random_expression(rng, 4)
        with np.errstate(all="ignore"):
            theirs.append((text, eval(text, {"np": np, "x": x, "y": y, "z": z})))
        ours.append(eval(f"lambda x, y, z: {text}", {"np": wnp}))
    together = AS_WRITTEN(lambda *a: [f(*a) for f in ours])(x, y, z)
    for f, jitted, (text, wanted) in zip(ours, together, theirs, strict=True):
        for got in (jitted, f(wnp.asarray(x), wnp.asarray(y), wnp.asarray(z))):
            np.testing.assert_array_equal(np.asarray(got), wanted, text)


@FLOATS
@COMPUTE
@pytest.mark.parametrize("n", [3, 3000])
def test_differences_of_equal_products_are_zero(dtype: str, compute, n: int) -> None:
    a = numbers(3 * n, dtype, 1).reshape(n, 3)
    b = a * np.float64(1.7).astype(dtype)  # rounded: nearly parallel
    c = a * 2
    if compute is weft.jit:
        exact = np.cross(a.astype("float64"), b.astype("float64"))
        error = lambda c: np.abs(np.asarray(c) - exact).max()
        assert error(compute(wnp.cross)(a, b)) <= error(np.cross(a, b))
    else:
        same_bits(compute(wnp.cross)(a, b), np.cross(a, b))
    assert not np.asarray(compute(wnp.cross)(a, c)).any()
    assert not np.asarray(compute(lambda x: wnp.sqrt(x * x - x * x))(a)).any()
    assert not np.asarray(compute(lambda x, y: wnp.sqrt(x * x - y * y))(a, a.copy())).any()
    det = lambda m: m[..., 0, 0] * m[..., 1, 1] - m[..., 0, 1] * m[..., 1, 0]
    m = np.stack([a[:, :2], a[:, :2] * 2], -1)
    assert not np.asarray(compute(det)(m)).any()
    assert not np.asarray(compute(weft.vmap(det))(m)).any()
    z = (a + 1j * b).astype("complex64" if dtype == "float32" else "complex128")
    assert not np.asarray(compute(lambda z: (z * wnp.conj(z)).imag)(z)).any()
    constant = np.full(5, a[0, 0])
    deviation = lambda x: wnp.sqrt(wnp.mean(x[:4] * x[:4]) - wnp.mean(x[:4]) ** 2)
    assert float(compute(deviation)(constant)) == 0
    # Of a gradient, too: d(x y - y x).
    slope = compute(weft.grad(lambda x, y: (x * y - y * x).sum()))(a, b)
    assert not np.asarray(slope).any()


@FLOATS
def test_sums_of_products_lose_no_digits(dtype: str) -> None:
    x, y = numbers(10000, dtype, 3), numbers(10000, dtype, 4)
    exact = np.sum(x.astype("longdouble") * y)
    size = np.sum(np.abs(x.astype("longdouble") * y))
    got = float(weft.jit(lambda x, y: wnp.sum(x * y))(x, y))
    assert abs(got - exact) < 20 * np.finfo(dtype).eps * size


@FLOATS
@COMPUTE
def test_signs_of_zeros_survive_arithmetic_that_does_nothing(dtype: str, compute) -> None:
    x = np.array([0.0, -0.0, 1.0, -2.5, inf, -inf, nan], dtype)
    for text in [
        "x+0.0",
        "x-0.0",
        "x+-0.0",
        "x--0.0",
        "0.0-x",
        "-0.0-x",
        "0.0+x",
        "x*1.0",
        "x/1.0",
        "x*-1.0",
        "-(-x)",
        "x*0.0",
        "x*-0.0",
        "x/-1.0",
        "x+x-x",
    ]:
        with np.errstate(invalid="ignore"):
            wanted = eval(text, {"x": x})
        got = compute(eval(f"lambda x: {text}", {}))(wnp.asarray(x))
        assert str(got.dtype) == dtype
        np.testing.assert_array_equal(np.asarray(got), wanted, text)
        known = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(np.asarray(got)[known]), np.signbit(wanted[known]), text)


ZEROS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 4.0, -4.0, 3.0, 1e-30, -1e-30, 5e-324, inf, -inf, nan]


@FLOATS
@COMPUTE
def test_remainders_and_whole_quotients(dtype: str, compute) -> None:
    x, y = np.array(list(itertools.product(ZEROS, ZEROS))).T.astype(dtype)
    with np.errstate(all="ignore"):
        same_bits(compute(wnp.remainder)(x, y), np.remainder(x, y))
        same_bits(compute(wnp.floor_divide)(x, y), np.floor_divide(x, y))
        same_bits(compute(wnp.fmod)(x, y), np.fmod(x, y))
        for got, wanted in zip(compute(wnp.divmod)(x, y), np.divmod(x, y), strict=True):
            same_bits(got, wanted)
        for number in (2.0, -2.0, 0.5):
            same_bits(compute(lambda x, n=number: x % n)(x), x % np.array(number, dtype))
            same_bits(compute(lambda x, n=number: x // n)(x), x // np.array(number, dtype))


@COMPUTE
def test_remainders_have_their_derivatives_at_multiples(compute) -> None:
    for x, y in [(4.0, 2.0), (-4.0, 2.0), (4.0, -2.0), (-4.0, -2.0), (5.0, 2.0), (-5.0, 2.0), (0.0, 3.0)]:
        slopes = compute(weft.grad(lambda x, y: x % y, (0, 1)))(x, y)
        assert [float(s) for s in slopes] == [1, -np.floor(x / y)], (x, y)
        assert float(compute(weft.grad(lambda x, y=y: x % y))(x)) == 1


@FLOATS
@COMPUTE
def test_quantiles_stay_between_their_neighbours(dtype: str, compute) -> None:
    for value in (0.1, 1 / 3, -7.7, float(np.finfo(dtype).max), 5e-324, inf, -inf):
        a = np.full(7, value, dtype)
        q = np.linspace(0, 100, 101).astype(dtype)
        same_bits(compute(wnp.percentile)(a, q), np.full(101, a[0]))
        same_bits(compute(wnp.nanpercentile)(a, q), np.full(101, a[0]))
    a = np.sort(numbers(9, dtype, 5))
    q = np.linspace(0, 1, 1001).astype(dtype)
    got = np.asarray(compute(wnp.quantile)(a, q))
    assert got.min() == a[0] and got.max() == a[-1]
    np.testing.assert_allclose(got, np.quantile(a, q), rtol=1e-5 if dtype == "float32" else 1e-13)
    far = np.array([-np.finfo(dtype).max, np.finfo(dtype).max], dtype)
    assert np.isfinite(compute(wnp.quantile)(far, q)).all()
    ends = np.array([-inf, 1, 2], dtype)
    same_bits(compute(wnp.quantile)(ends, np.array([0, 0.25, 0.5, 1], dtype)), np.array([-inf, -inf, 1, 2], dtype))


@COMPUTE
def test_small_parts_of_logarithms_of_sums_count(compute) -> None:
    a = np.array([0.0, -40.0])
    np.testing.assert_allclose(compute(nn.logsumexp)(a), np.exp(-40.0), rtol=1e-15)
    np.testing.assert_allclose(compute(nn.log_softmax)(a), [-np.exp(-40.0), -40], rtol=1e-15)
    np.testing.assert_allclose(compute(wnp.logaddexp)(*a), np.exp(-40.0), rtol=1e-15)
    rows = np.array([[0.0, -50, -inf], [3, 3, 3], [-inf, -inf, -inf], [inf, 0, 0], [nan, 0, 0], [-1e300, 1e300, 0]])
    expected = [np.exp(-50.0), 3 + np.log(3), -inf, inf, nan, 1e300]
    np.testing.assert_allclose(compute(functools.partial(nn.logsumexp, axis=1))(rows), expected, rtol=1e-15)
    # Ties are no kinks: derivatives of every order are those of the sum.
    x = np.array([1.0, 1.0, 0.0])
    p = np.exp(x) / np.exp(x).sum()
    np.testing.assert_allclose(compute(weft.grad(nn.logsumexp))(x), p, rtol=1e-14)
    np.testing.assert_allclose(compute(weft.hessian(nn.logsumexp))(x), np.diag(p) - np.outer(p, p), rtol=1e-13)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint64"])
@COMPUTE
def test_divisors_of_the_least_integer(dtype: str, compute) -> None:
    info = np.iinfo(dtype)
    values = [info.min, info.min + 1, info.max, 0, 1, 2, 6, 96, info.max // 3 * 2] + ([-1, -6, -96] if info.min else [])
    x, y = np.array(list(itertools.product(values, values)), dtype).T
    same_bits(compute(wnp.gcd)(x, y).astype("float64"), np.gcd(x, y).astype("float64"))
    fits = np.abs(x.astype(float)) * np.abs(y.astype(float)) < info.max
    same_bits(compute(wnp.lcm)(x, y)[fits].astype("float64"), np.lcm(x, y)[fits].astype("float64"))


@COMPUTE
def test_sinc_of_whole_numbers_is_zero(compute) -> None:
    for dtype in ("float32", "float64"):
        x = np.array([1, -1, 2, 3, 17, -100, 4096], dtype)
        assert not np.asarray(compute(wnp.sinc)(x)).any()
    assert float(compute(wnp.sinc)(0.0)) == 1


@COMPUTE
def test_i0_near_0(compute) -> None:
    x = np.array([1e-300, 1e-20, 1e-8, 1e-4, 0.0])
    exact = x / 2 + x**3 / 16
    for derivative in (
        weft.grad(wnp.i0),
        lambda v: weft.jvp(wnp.i0, (v,), (wnp.ones_like(v),))[1],
        weft.jacfwd(wnp.i0),
    ):
        np.testing.assert_allclose(compute(weft.vmap(derivative))(x), exact, rtol=1e-15)
