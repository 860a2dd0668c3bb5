"""Values and derivatives over the whole range of a dtype, against mpmath; forward against reverse mode at extremes.

A derivative of order n at x is held to a number of units in the last place of |y| + |x y'|, y the derivative and y' the
next one: the places that the value has, and those that rounding x to the dtype leaves open. What is smaller than a few
times the least normal number may be 0.
"""

import pathlib
import re

import ml_dtypes
import mpmath
import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import _weft, lax, nn
from weft.scipy import special

inf, nan = np.inf, np.nan
mp = mpmath.mp


def digits(places: int):
    return mpmath.workdps(places)


def sigmoid(x):
    return 1 / (1 + mpmath.exp(-x))


def normal(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def elu(x, alpha=1):
    return x if x > 0 else alpha * mpmath.expm1(x)


def root(x, n):
    return mpmath.sign(x) * mpmath.root(abs(x), n)


def gamma_log(x):
    return mpmath.loggamma(x)


SCALE, ALPHA = mpmath.mpf(1.0507009873554805), mpmath.mpf(1.6732632423543772)
# name: (Weft's function, mpmath's, the ends of its domain, units in the last place of orders 0, 1 and 2). Of sums of
# several exponentials the second derivative is p (1 - p), whose digits p near 1 does not have.
CASES = {
    "exp": (wnp.exp, mpmath.exp, -inf, inf, (2, 2, 2)),
    "exp2": (wnp.exp2, lambda x: mpmath.mpf(2) ** x, -inf, inf, (2, 3, 4)),
    "exp10": (wnp.exp10, lambda x: mpmath.mpf(10) ** x, -inf, inf, (2, 4, 6)),
    "expm1": (wnp.expm1, mpmath.expm1, -inf, inf, (2, 2, 2)),
    "log": (wnp.log, mpmath.log, 0, inf, (2, 2, 2)),
    "log1p": (wnp.log1p, mpmath.log1p, -1, inf, (2, 2, 3)),
    "log2": (wnp.log2, lambda x: mpmath.log(x) / mpmath.log(2), 0, inf, (2, 2, 2)),
    "log10": (wnp.log10, mpmath.log10, 0, inf, (2, 2, 2)),
    "sqrt": (wnp.sqrt, mpmath.sqrt, 0, inf, (1, 2, 3)),
    "rsqrt": (lax.rsqrt, lambda x: 1 / mpmath.sqrt(x), 0, inf, (2, 3, 3)),
    "cbrt": (wnp.cbrt, lambda x: root(x, 3), -inf, inf, (1, 3, 4)),
    "sin": (wnp.sin, mpmath.sin, -1e4, 1e4, (2, 2, 2)),
    "cos": (wnp.cos, mpmath.cos, -1e4, 1e4, (2, 2, 2)),
    "tan": (wnp.tan, mpmath.tan, -1e4, 1e4, (3, 4, 4)),
    "arcsin": (wnp.arcsin, mpmath.asin, -1, 1, (2, 2, 3)),
    "arccos": (wnp.arccos, mpmath.acos, -1, 1, (2, 2, 3)),
    "arctan": (wnp.arctan, mpmath.atan, -inf, inf, (2, 2, 3)),
    "arctan2 of y": (lambda x: wnp.arctan2(x, 1.0), mpmath.atan, -inf, inf, (2, 2, 4)),
    "arctan2 of x": (lambda x: wnp.arctan2(1.0, x), lambda x: mpmath.atan2(1, x), -inf, inf, (2, 2, 4)),
    "sinh": (wnp.sinh, mpmath.sinh, -inf, inf, (3, 3, 3)),
    "cosh": (wnp.cosh, mpmath.cosh, -inf, inf, (3, 3, 3)),
    "tanh": (wnp.tanh, mpmath.tanh, -inf, inf, (3, 3, 5)),
    "sech_squared": (lax.sech_squared, lambda x: mpmath.sech(x) ** 2, -inf, inf, (3, 5, 6)),
    "arcsinh": (wnp.arcsinh, mpmath.asinh, -inf, inf, (2, 2, 3)),
    "arccosh": (wnp.arccosh, mpmath.acosh, 1, inf, (3, 3, 3)),
    "arctanh": (wnp.arctanh, mpmath.atanh, -1, 1, (2, 2, 3)),
    "erf": (lax.erf, mpmath.erf, -inf, inf, (2, 3, 3)),
    "erfc": (lax.erfc, mpmath.erfc, -inf, inf, (2, 3, 3)),
    "ndtr": (special.ndtr, normal, -inf, inf, (2, 3, 3)),
    "log_ndtr": (special.log_ndtr,
        lambda x: mpmath.log(normal(x)) if x < 0 else mpmath.log1p(-normal(-x)), -30, inf, (8, 16, 2048)),
    "lgamma": (lax.lgamma, gamma_log, 0, inf, (3, 4, 4)),
    "digamma": (lax.digamma, mpmath.digamma, 0, inf, (4, 4, 5)),
    "trigamma": (lax.trigamma, lambda x: mpmath.psi(1, x), 0, inf, (4, 5, 6)),
    "i0": (wnp.i0, lambda x: mpmath.besseli(0, x), -300, 300, (4, 8, 12)),
    "i0e": (special.i0e, lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(0, x), -300, 300, (4, 80, 512)),
    "i1": (special.i1, lambda x: mpmath.besseli(1, x), -300, 300, (4, 8, 12)),
    "i1e": (special.i1e, lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(1, x), -300, 300, (4, 80, 512)),
    "logistic_density": (lax.logistic_density, lambda x: sigmoid(x) * sigmoid(-x), -inf, inf, (3, 5, 8)),
    "sigmoid": (nn.sigmoid, sigmoid, -inf, inf, (3, 5, 8)),
    "silu": (nn.silu, lambda x: x * sigmoid(x), -inf, inf, (4, 5, 8)),
    "log_sigmoid": (nn.log_sigmoid, lambda x: -mpmath.log1p(mpmath.exp(-x)), -inf, inf, (3, 4, 6)),
    "softplus": (nn.softplus, lambda x: mpmath.log1p(mpmath.exp(x)), -inf, inf, (3, 4, 6)),
    "elu": (nn.elu, elu, -inf, inf, (2, 2, 2)),
    "celu": (lambda x: nn.celu(x, 2.0), lambda x: x if x > 0 else 2 * mpmath.expm1(x / 2), -inf, inf, (2, 2, 3)),
    "selu": (nn.selu, lambda x: SCALE * elu(x, ALPHA), -inf, inf, (3, 3, 3)),
    "gelu": (nn.gelu,
        lambda x: x * sigmoid(mpmath.sqrt(8 / mpmath.pi) * (x + mpmath.mpf(0.044715) * x**3)), -1e4, 1e4, (4, 8, 16)),
    "exact gelu": (lambda x: nn.gelu(x, False), lambda x: x * normal(x), -inf, inf, (3, 4, 6)),
    "mish": (nn.mish, lambda x: x * mpmath.tanh(mpmath.log1p(mpmath.exp(x))), -inf, inf, (5, 8, 16)),
    "soft_sign": (nn.soft_sign, lambda x: x / (1 + abs(x)), -inf, inf, (2, 4, 6)),
    "squareplus": (nn.squareplus, lambda x: (x + mpmath.sqrt(x * x + 4)) / 2, -inf, inf, (3, 6, 10)),
    "logit": (special.logit, lambda x: mpmath.log(x / (1 - x)), 0, 1, (4, 4, 6)),
    "sinc": (wnp.sinc, lambda x: mpmath.sinc(mpmath.pi * x), -1e4, 1e4, (4, 8, 12)),
    "entr": (special.entr, lambda x: -x * mpmath.log(x), 0, inf, (2, 3, 3)),
    "rel_entr of p": (lambda x: special.rel_entr(x, 2.0), lambda x: x * mpmath.log(x / 2), 0, inf, (3, 4, 4)),
    "rel_entr of q": (lambda x: special.rel_entr(2.0, x), lambda x: 2 * mpmath.log(2 / x), 0, inf, (3, 4, 4)),
    "log1mexp": (nn.log1mexp, lambda x: mpmath.log(-mpmath.expm1(-x)), 0, inf, (3, 4, 6)),
    "xlogy": (lambda x: special.xlogy(2.0, x), lambda x: 2 * mpmath.log(x), 0, inf, (2, 2, 2)),
    "xlog1py": (lambda x: special.xlog1py(2.0, x), lambda x: 2 * mpmath.log1p(x), -1, inf, (2, 2, 3)),
    "logaddexp": (lambda x: wnp.logaddexp(x, 1.0),
        lambda x: mpmath.log(mpmath.exp(x) + mpmath.e), -1e3, 1e3, (3, 4, 6)),
    "logaddexp2": (lambda x: wnp.logaddexp2(x, 1.0),
        lambda x: mpmath.log(mpmath.mpf(2) ** x + 2) / mpmath.log(2), -1e3, 1e3, (3, 4, 6)),
    "logsumexp": (lambda x: nn.logsumexp(wnp.stack([x, 0 * x])),
        lambda x: mpmath.log1p(mpmath.exp(x)), -1e3, 1e3, (3, 4, None)),
    "log_softmax": (lambda x: nn.log_softmax(wnp.stack([x, 0 * x]))[1],
        lambda x: -mpmath.log1p(mpmath.exp(x)), -1e3, 1e3, (3, 4, None)),
    "hypot": (lambda x: wnp.hypot(x, 1.0), lambda x: mpmath.sqrt(x * x + 1), -inf, inf, (3, 4, 6)),
    "power of x": (lambda x: wnp.power(x, 2.5), lambda x: x ** mpmath.mpf(2.5), 0, inf, (2, 3, 3)),
    "power by x": (lambda x: wnp.power(2.5, x), lambda x: mpmath.mpf(2.5) ** x, -inf, inf, (2, 4, 5)),
}  # fmt: skip


def points(dtype: str, low: float, high: float) -> np.ndarray:
    info = ml_dtypes.finfo(dtype)
    sizes = list(10.0 ** np.linspace(np.log10(float(info.tiny)) + 1, np.log10(float(info.max)) - 0.5, 13))
    sizes += list(10.0 ** np.linspace(-6, 2.8, 40)) + [0.25, 0.5, 1, 1.4616, 2, 3, 12, 17, 36.5, 45, 88, 100, 200, 1e20]
    near = [1 + s * d for s in (1, -1) for d in np.logspace(np.log10(float(info.eps)) + 0.4, -1, 8)]
    sizes = np.array([s for s in sizes + near if s < info.max]).astype(info.dtype)
    x = np.unique(np.concatenate([sizes, -sizes]).astype(np.float64)).astype(info.dtype)
    return x[(x > low) & (x < high)]


def truth(function, x: float) -> list:
    """The derivatives of order 0 to 3, by differences: of 60 digits, of which the smallest steps leave 20."""
    at = mpmath.mpf(float(x))
    # As many digits as lie between 1, the step's third power, and e^-|x|.
    with digits(150 + 3 * int(abs(mpmath.log10(abs(at)))) + (340 if abs(at) > 5 else 0)):
        step = abs(at) * mpmath.mpf(10) ** -30
        f = [function(at + k * step) for k in (-2, -1, 0, 1, 2)]
        return [
            f[2],
            (f[3] - f[1]) / (2 * step),
            (f[3] - 2 * f[2] + f[1]) / step**2,
            (f[4] - 2 * f[3] + 2 * f[1] - f[0]) / (2 * step**3),
        ]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_and_derivatives(name: str, dtype: str) -> None:
    function, exact, low, high, bounds = CASES[name]
    x = points(dtype, low, high)
    info = np.finfo(dtype)
    # What mpmath takes for ever for is 0, 1 or x there.
    x = x[np.abs(x) < 1e6] if high == inf and name not in FAST else x
    truths = [truth(exact, v) for v in x]
    wrong = []
    for order, derivative in enumerate([function, weft.grad(function), weft.grad(weft.grad(function))]):
        if bounds[order] is None:
            continue
        f = weft.vmap(derivative)
        for mode, compute in (("eager", f), ("jit", weft.jit(f))):
            for v, got, exactly in zip(x, np.asarray(compute(x)), truths, strict=True):
                value, slope = exactly[order], exactly[order + 1]
                if abs(value) > 0.99 * float(info.max):
                    continue
                scale = abs(value) + abs(mpmath.mpf(float(v)) * slope)
                off = abs(mpmath.mpf(float(got)) - value) if np.isfinite(got) else mpmath.inf
                allowed = bounds[order] * float(info.eps) * scale + 4 * float(info.tiny) * max(
                    1, mpmath.mpf(float(v)) ** 2
                )
                if not off <= allowed:
                    places = off / (float(info.eps) * scale) if scale else off
                    wrong.append(
                        f"order {order} {mode} at {v!r}: {got!r}, exactly {mpmath.nstr(value, 12)}, "
                        f"{mpmath.nstr(places, 4)} places"
                    )
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong[:30])


# First derivatives of halves are made of halves outside jit, where every operation rounds: each adds up to half a unit.
HALVES = ["float16", "bfloat16"]
PLACES_OF_HALVES = 3.0
MORE_PLACES_OF_HALVES = {"i0e": 5.0}  # a difference of numbers that are nearly equal, computed in f32


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", HALVES)
def test_derivatives_of_halves(name: str, dtype: str) -> None:
    """Forward and reverse mode, outside jit and compiled, against the derivative at the half that x is."""
    function, exact, low, high, _ = CASES[name]
    info, x = ml_dtypes.finfo(dtype), points(dtype, low, high)
    x = x[np.abs(x.astype(np.float64)) < 1e6] if high == inf and name not in FAST else x
    truths = [truth(exact, v) for v in x]
    tangent = wnp.ones((), dtype)
    modes = {"forward": lambda v: weft.jvp(function, (v,), (tangent,))[1], "reverse": weft.grad(function)}
    places, wrong = MORE_PLACES_OF_HALVES.get(name, PLACES_OF_HALVES), []
    for mode, derivative in modes.items():
        for how, compute in (("eager", weft.vmap(derivative)), ("jit", weft.jit(weft.vmap(derivative)))):
            result = np.asarray(compute(wnp.asarray(x)))
            assert result.dtype == x.dtype
            for v, got, exactly in zip(x.astype(np.float64), result.astype(np.float64), truths, strict=True):
                value, slope = exactly[1], exactly[2]
                if abs(value) > 0.99 * float(info.max) or abs(exactly[0]) > 0.99 * float(info.max):
                    continue
                scale = abs(value) + abs(mpmath.mpf(v) * slope)
                off = abs(mpmath.mpf(got) - value) if np.isfinite(got) else mpmath.inf
                allowed = places * float(info.eps) * scale + 4 * float(info.tiny) * max(1, v**2)
                if not off <= allowed:
                    units = mpmath.nstr(off / (float(info.eps) * scale) if scale else off, 4)
                    wrong.append(f"{mode} {how} at {v!r}: {got!r}, exactly {mpmath.nstr(value, 12)}, {units} places")
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong[:30])


# What a function tends to, exactly: where the value rounds to its limit, the result is the limit.
LIMITS = [
    ("expm1", -1), ("tanh", 1), ("tanh", -1), ("erf", 1), ("erf", -1), ("erfc", 2), ("ndtr", 1), ("sigmoid", 1),
    ("elu", -1), ("celu", -2), ("logaddexp", 1), ("soft_sign", 1), ("soft_sign", -1),
]  # fmt: skip


@pytest.mark.parametrize("name,limit", LIMITS)
@pytest.mark.parametrize("dtype", ["float32", "float64", *HALVES])
def test_limits_are_reached(name: str, limit: int, dtype: str) -> None:
    function, exact, *_ = CASES[name]
    info = ml_dtypes.finfo(dtype)
    x = np.linspace(-100, 100, 2001)
    if name == "soft_sign":
        x = x * (float(info.max) / 300)
    x = x.astype(info.dtype)
    with digits(40):
        x = x[[abs(exact(mpmath.mpf(float(v))) - limit) < abs(limit) * float(info.eps) / 8 for v in x]]
    assert len(x) > 100
    for compute in (weft.vmap(function), weft.jit(weft.vmap(function))):
        found = np.asarray(compute(x))
        assert found.dtype == info.dtype
        np.testing.assert_array_equal(found.astype(np.float64), limit)


# Those that mpmath computes for any number.
FAST = {
    "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "cbrt", "arctan", "arctan2 of y", "arctan2 of x", "arcsinh",
    "arccosh", "soft_sign", "squareplus", "entr", "xlogy", "xlog1py", "hypot", "power of x",
}  # fmt: skip


ARITHMETIC = {"add", "sub", "mul", "div", "neg", "integer_pow"}


def differentiable() -> list[str]:
    """The element-wise primitives of docs/operations.md that have partial derivatives, and arithmetic."""
    text = pathlib.Path("docs/operations.md").read_text().split("\n## element-wise\n")[1].split("\n## ")[0]
    entries = {e.split("\n", 1)[0]: e for e in text.split("\n### ")[1:]}
    return [n for n, entry in entries.items() if "- derivative: partial derivatives" in entry or n in ARITHMETIC]


# Of another number of operands, or with an attribute.
CALLED = {
    "clamp": lambda x: lax.clamp(-1.0, x, 1.0),
    "integer_pow": lambda x: lax.integer_pow(x, 3),
    "round": wnp.round,
}


@pytest.mark.parametrize("name", differentiable())
@pytest.mark.parametrize("dtype", ["float32", "float64", *HALVES])
def test_forward_and_reverse_mode_agree_at_extremes(name: str, dtype: str) -> None:
    info = ml_dtypes.finfo(dtype)
    ends = [info.smallest_subnormal, info.tiny, info.max, 1 - float(info.eps), 1.0, 1 + float(info.eps), 0.3, 2.5, 40.0]
    ends += {"float64": [1e-150, 1e150, 1e-300, 1e300], "float16": [1e-3, 1e3]}.get(dtype, [1e-38, 1e38])
    ends = [float(e) for e in ends] + ([1e-20, 1e20] if dtype != "float16" else [])
    x = np.array([0.0, -0.0, inf, -inf, nan, *ends, *(-np.array(ends))]).astype(info.dtype)
    function = CALLED.get(name) or getattr(lax, name)
    arguments = (x,)
    if name in BINARY:
        arguments = tuple(np.stack(np.meshgrid(x, x)).reshape(2, -1))
    for i in range(len(arguments)):
        of = lambda *a, i=i: lambda v: function(*a[:i], v, *a[i + 1 :])
        forward = lambda *a, i=i, of=of: weft.jvp(of(*a), (a[i],), (wnp.ones((), a[i].dtype),))[1]
        backward = lambda *a, i=i, of=of: weft.grad(of(*a))(a[i])
        results = [
            np.asarray(compile(weft.vmap(f))(*arguments)).astype(np.float64)
            for f in (forward, backward)
            for compile in (weft.jit, lambda f: f)
        ]
        for other in results[1:]:
            np.testing.assert_allclose(other, results[0], rtol=8 * float(info.eps), atol=4 * float(info.tiny))


BINARY = {p["name"] for p in _weft.primitives() if p["num_operands"] == 2} & set(differentiable())


def test_special_cases_of_this_page_are_primitives():
    assert set(CALLED) | BINARY | ARITHMETIC <= set(differentiable())
    assert len(differentiable()) > 40
    assert all(re.fullmatch(r"[a-z0-9_]+", name) for name in differentiable())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logarithms_of_powers_are_exact(dtype: str) -> None:
    info = np.finfo(dtype)
    exponents = np.arange(int(np.log2(float(info.smallest_subnormal))), info.maxexp)
    twos = np.ldexp(np.ones(1, dtype), exponents)
    tens = np.array([10**k for k in range(23 if dtype == "float64" else 11)], dtype)
    for compute in (lambda f: f, weft.jit):
        np.testing.assert_array_equal(compute(wnp.log2)(twos), exponents.astype(dtype))
        np.testing.assert_array_equal(compute(wnp.log10)(tens), np.arange(len(tens), dtype=dtype))
        np.testing.assert_array_equal(compute(wnp.exp10)(np.arange(len(tens), dtype=dtype)), tens)


def test_complex_tanh_in_its_tails():
    z = np.array([8 + 1j, -20 + 0.5j, 60 + 2j, 0.5 + 0.25j, -1e-8 + 1e-9j])
    for order, f in (
        (1, weft.grad(wnp.tanh, holomorphic=True)),
        (2, weft.grad(weft.grad(wnp.tanh, holomorphic=True), holomorphic=True)),
    ):
        got = np.asarray(weft.vmap(f)(z))
        with digits(60):
            exact = [1 / mpmath.cosh(mpmath.mpmathify(complex(v))) ** 2 for v in z]
            exact = [
                e * (1 if order == 1 else -2 * mpmath.tanh(mpmath.mpmathify(complex(v)))) for e, v in zip(exact, z)
            ]
        np.testing.assert_allclose(got, np.array([complex(e) for e in exact]), rtol=1e-13)


def test_gradients_of_dirichlet_numbers_of_tiny_parameters():
    weights = np.float32([1, 2, 3])
    for alpha in (1e-10, 1e-18, 1e-20, 1e-30, 1e-38):
        a = np.full(3, alpha, np.float32)
        for seed in range(3):
            total = lambda a, seed=seed: (weft.random.dirichlet(weft.random.key(seed), a) * weights).sum()
            np.testing.assert_array_equal(np.asarray(weft.grad(total)(a)), 0)


@pytest.mark.parametrize("count", [1, 3, 8, 16, 33])
def test_lgamma_at_its_roots(count):
    """Exactly 0, alone and in vectors; beside them as accurate as elsewhere."""
    x = np.resize(np.float32([1, 2, np.nextafter(np.float32(2), 3), 3]), count)
    got = np.asarray(weft.jit(lax.lgamma)(wnp.asarray(x)))
    want = np.float32([0, 0, mpmath.loggamma(float(np.nextafter(np.float32(2), 3))), np.log(2)])
    np.testing.assert_allclose(got, np.resize(want, count), rtol=3e-7)
    assert (got[x <= 2] == 0).all()
