"""Stable forms in place of what people write: each rule against exact values over the whole range of f32 and f64, in
programs of every transform, and licences."""

from __future__ import annotations

import math
import re

import mpmath
import numpy as np
import pytest

import weft
import weft.lax
import weft.numpy as wnp
from weft import _weft

RULES = [r for r in _weft.simplify_rules() if r[2]]
mp = mpmath.mp.clone()
mp.dps = 420


def real(function):
    """A function of mpmath as one of real numbers."""

    def of(*x):
        try:
            value = function(*x)
        except (ValueError, ZeroDivisionError, OverflowError):
            return mp.nan
        return mp.nan if isinstance(value, mp.mpc) and value.imag != 0 else mp.mpf(value.real)

    return of


class Exact:
    """A number whose operations are those of mpmath, NaN where that is no real number."""

    def __init__(self, value):
        self.value = mp.mpf(value)

    def __neg__(self):
        return Exact(-self.value)

    def __pow__(self, n):
        return Exact(real(lambda v: v**n)(self.value))


def _operation(function):
    def of(self, other):
        return Exact(real(function)(exact(self), exact(other)))

    return of


def exact(x):
    return x.value if isinstance(x, Exact) else mp.mpf(x)


for _name, _function in {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "truediv": lambda x, y: x / y,
}.items():
    setattr(Exact, f"__{_name}__", _operation(_function))
    setattr(Exact, f"__r{_name}__", _operation(lambda x, y, f=_function: f(y, x)))

EXACT = {
    name: (lambda f: lambda *x: Exact(real(f)(*(exact(v) for v in x))))(function)
    for name, function in {
        "log": mp.log,
        "log2": lambda x: mp.log(x) / mp.log(2),
        "log10": lambda x: mp.log(x) / mp.log(10),
        "log1p": lambda x: mp.log(1 + x),
        "exp": mp.exp,
        "exp2": lambda x: mp.mpf(2) ** x,
        "expm1": lambda x: mp.exp(x) - 1,
        "sqrt": mp.sqrt,
        "rsqrt": lambda x: 1 / mp.sqrt(x),
        "sin": mp.sin,
        "cos": mp.cos,
        "sinh": mp.sinh,
        "cosh": mp.cosh,
        "tanh": mp.tanh,
        "erf": mp.erf,
        "erfc": mp.erfc,
        "abs": abs,
        "max": max,
        "pow": lambda x, y: x**y,
        "logistic": lambda x: 1 / (1 + mp.exp(-x)),
        "logistic_density": lambda x: mp.exp(-abs(x)) / (1 + mp.exp(-abs(x))) ** 2,
        "softplus": lambda x: mp.log(1 + mp.exp(x)) if x < 0 else x + mp.log(1 + mp.exp(-x)),
    }.items()
}


def letters(text: str) -> list[str]:
    return sorted(set(re.findall(r"\b[w-z]\b", text)))


def function_of(text: str, numbers: str, names: dict, change: float = 0.0):
    """The formula as a function of its letters; with its numbers, which have their own roundings, changed by as much
    of them."""
    constants = {k: float(v) * (1 + change) for k, v in (n.split("=") for n in numbers.split(",") if n)}
    code = compile(text, text, "eval")
    arguments = letters(text)
    return lambda *x: eval(code, {"__builtins__": {}, **names, **constants, **dict(zip(arguments, x))})


OURS = {name: getattr(weft.lax, name) for name in [*EXACT, "tan"]}
EXACT["tan"] = lambda x: Exact(mp.tan(exact(x)))


def drawn(dtype, count: int, seed: int) -> np.ndarray:
    """Numbers of all sizes and both signs, and as many of ordinary ones."""
    rng = np.random.default_rng(seed)
    limits = np.finfo(dtype)
    exponents = rng.uniform(math.log2(limits.tiny) * 0.95, math.log2(limits.max) * 0.98, count // 2)
    any_size = np.exp2(exponents) * rng.choice([-1, 1], count // 2)
    ordinary = rng.choice([0.05, 1, 5, 30, 90], count - count // 2) * rng.uniform(-1, 1, count - count // 2)
    return np.concatenate([any_size, ordinary]).astype(dtype)


def errors(rule, dtype, count: int) -> tuple[float, float, str]:
    """The largest errors in units in the last place with the rule and without, and where the former is: at a NaN, if
    there is one."""
    _, _, pattern, _, _, numbers = rule
    names = letters(pattern)
    x = [drawn(dtype, count, seed) for seed in range(len(names))]
    # So many elements that computing them in f64 would cost too much: the rule itself is measured.
    # Rules that call the C library are for few.
    repeat = 1 if re.search("erfc|asinh|acosh|atanh", rule[3]) else -(-20000 // count)
    wide = [wnp.array(np.tile(v, repeat)) for v in x]
    formula = function_of(pattern, numbers, OURS)
    with_rule, without = (np.asarray(weft.jit(formula, licence=n)(*wide))[:count] for n in ("accurate", "signed-zero"))
    truth = function_of(pattern, numbers, EXACT)
    eps = float(np.finfo(dtype).eps)
    changed = [function_of(pattern, numbers, EXACT, change) for change in (eps, -eps) if numbers]
    tiny = float(np.finfo(dtype).smallest_normal)
    worst, before, where = 0.0, 0.0, ""
    for i in range(count):
        at = [Exact(float(v[i])) for v in x]
        value = exact(truth(*at))
        if mp.isnan(value) or mp.isinf(value) or abs(value) > float(np.finfo(dtype).max):
            continue
        if abs(value) < 2 * tiny and abs(with_rule[i]) < 2 * tiny:
            continue  # derivatives of tanh are 0 there
        ulp = np.finfo(dtype).eps * max(abs(value), tiny)
        # What a change of the operands by one digit explains, or of the numbers.
        moved = mp.mpf(0)
        for other in changed:
            at_other = exact(other(*at))
            if mp.isfinite(at_other):
                moved = max(moved, abs(at_other - value))
        for k in range(len(at)):
            near = list(at)
            for sign in (1, -1):
                near[k] = Exact(at[k].value * (1 + sign * float(np.finfo(dtype).eps)))
                other = exact(truth(*near))
                if mp.isfinite(other):
                    moved = max(moved, abs(other - value))

        def error(got, value=value, ulp=ulp, moved=moved):
            return float(max(0, abs(mp.mpf(float(got)) - value) - moved) / ulp) if np.isfinite(got) else math.inf

        after, plain = error(with_rule[i]), error(without[i])
        before = max(before, plain)
        if after > worst or (np.isnan(with_rule[i]) and "NaN" not in where):
            worst, where = (
                after,
                ("NaN at " if np.isnan(with_rule[i]) else "")
                + f"{[float(v[i]) for v in x]}: {with_rule[i]}, {without[i]} without, exactly {mp.nstr(value, 12)}",
            )
    return worst, before, where


@pytest.mark.parametrize("rule", RULES, ids=[r[0] for r in RULES])
def test_each_rule_is_accurate_over_the_whole_range(rule):
    if rule[1] not in ("exact", "signed-zero", "accurate"):
        pytest.skip("a licence that is given for less")
    worst, _, where = errors(rule, np.float32, 120)
    assert worst <= 16, (rule[2], worst, where)


@pytest.mark.parametrize("rule", RULES, ids=[r[0] for r in RULES])
def test_each_rule_has_finite_derivatives(rule):
    """What a rule computes in branches that are not taken must not reach its derivative as 0 times an infinity."""
    _, licence, pattern, _, _, numbers = rule
    if licence not in ("exact", "signed-zero", "accurate"):
        pytest.skip("a licence that is given for less")
    names = letters(pattern)
    formula, truth = function_of(pattern, numbers, OURS), function_of(pattern, numbers, EXACT)
    sizes = np.array([1e-3, 0.05, 0.4, 0.9, 1.1, 3, 9, 40, 100, 700, 1e4])
    one = np.concatenate([sizes, -sizes]).astype(np.float32)
    x = [v.reshape(-1) for v in np.meshgrid(*[one] * len(names))]
    step = mp.mpf(10) ** -60
    for k in range(len(names)):
        slopes = np.asarray(weft.jit(weft.vmap(weft.grad(formula, argnums=k)))(*x))
        wrong = []
        for i in np.flatnonzero(~np.isfinite(slopes)):
            at = [Exact(float(v[i])) for v in x]
            values = []
            for side in (-1, 0, 1):
                near = list(at)
                near[k] = Exact(at[k].value * (1 + side * step))
                values.append(exact(truth(*near)))
            slope = (values[2] - values[0]) / (2 * at[k].value * step)
            if all(mp.isfinite(v) and abs(v) < 1e38 for v in (*values, slope)):
                wrong.append(f"by {names[k]} at {[float(v[i]) for v in x]}: {slopes[i]}, exactly {mp.nstr(slope, 6)}")
        assert not wrong, f"{pattern}: {len(wrong)} wrong: " + "; ".join(wrong[:5])


# Logarithms of exponentials, of other bases too.
OF_EXPONENTIALS = [r for r in RULES if r[2].startswith("log(") and re.search(r"exp|logistic|cosh|sinh", r[2])]


@pytest.mark.parametrize("base", ["log2", "log10"])
@pytest.mark.parametrize("rule", OF_EXPONENTIALS, ids=[r[0] for r in OF_EXPONENTIALS])
def test_logarithms_of_other_bases(rule, base):
    if rule[1] != "accurate":
        pytest.skip("a licence that is given for less")
    worst, _, where = errors((*rule[:2], base + rule[2][3:], *rule[3:]), np.float32, 60)
    assert worst <= 16, (rule[2], worst, where)


SOFTMAXES = {
    "quotient": lambda x: wnp.exp(x) / wnp.exp(x).sum(1, keepdims=True),
    "by a reciprocal": lambda x: wnp.exp(x) * (1 / wnp.exp(x).sum(1, keepdims=True)),
    "by a power": lambda x: wnp.exp(x) * wnp.exp(x).sum(1, keepdims=True) ** -1,
    "masked": lambda x: (lambda e: e / e.sum(1, keepdims=True))(wnp.where(x > -1e4, wnp.exp(x), 0)),
}


@pytest.mark.parametrize("name", SOFTMAXES)
def test_softmax_as_it_is_written(name):
    x = np.array([[1000, 999, -1000], [-999, -1000, -2000], [0.1, 0.2, 0.3]], np.float32)
    f = SOFTMAXES[name]
    wide = x.astype(np.float64)
    want = np.exp(wide - wide.max(1, keepdims=True))
    want /= want.sum(1, keepdims=True)
    np.testing.assert_allclose(weft.jit(f)(x), want, rtol=1e-6, atol=1e-38)
    got = weft.jit(weft.grad(lambda x: (f(x) * wnp.arange(3.0)).sum()))(x)
    slope = want * (np.arange(3) - (want * np.arange(3)).sum(1, keepdims=True))
    np.testing.assert_allclose(got, slope, rtol=1e-5, atol=1e-7)
    if name == "masked":
        x[0, 0] = x[1] = -2e4
        got = np.asarray(weft.jit(f)(x))
        np.testing.assert_allclose(got[0], [0, 1, 0], rtol=1e-6)
        slopes = np.asarray(weft.jit(weft.grad(lambda x: f(x)[0].sum()))(x))
        np.testing.assert_allclose(slopes[0], 0, atol=1e-7)


NORMS_BY_PRODUCTS = {
    "a product": (lambda np, x: np.sqrt(x @ x), 1),
    "rows": (lambda np, x: np.sqrt(np.einsum("ij,ij->i", x, x)), 2),
    "a mean": (lambda np, x: np.sqrt(np.vdot(x, x) / 7), 1),
}


@pytest.mark.parametrize("name", NORMS_BY_PRODUCTS)
def test_norms_by_products(name):
    f, rank = NORMS_BY_PRODUCTS[name]
    for size in (1e-30, 1.0, 1e30):
        x = (np.arange(1, 8) * size).astype(np.float32)
        x = np.stack([x, 2 * x]) if rank == 2 else x
        want = f(np, x.astype(np.float64))
        np.testing.assert_allclose(weft.jit(lambda x: f(wnp, x))(x), want, rtol=1e-6)
        slopes = weft.jit(weft.grad(lambda x: wnp.sum(f(wnp, x))))(x)
        wide = x.astype(np.float64)
        divisor = {1: want * (7 if name == "a mean" else 1), 2: np.asarray(want)[..., None]}[rank]
        np.testing.assert_allclose(slopes, wide / divisor, rtol=1e-5)


@pytest.mark.parametrize("axes", [(2, 1), (1, 0), (0, 0), (-1, -1)])
def test_log_sum_exp_of_sums_of_sums(axes):
    x = np.linspace(-900, 900, 24, dtype=np.float32).reshape(2, 3, 4)
    f = lambda x: wnp.log(wnp.exp(x).sum(axes[0]).sum(axes[1]))
    wide = x.astype(np.float64)
    first = wide.max()
    want = np.log(np.exp(wide - first).sum(axes[0]).sum(axes[1])) + first
    for compute in (weft.jit(f), weft.jit(weft.vmap(f, in_axes=None, axis_size=1))):
        np.testing.assert_allclose(np.asarray(compute(x)).reshape(want.shape)[np.isfinite(want)],
                                   want[np.isfinite(want)], rtol=1e-6)  # fmt: skip
    assert np.isfinite(np.asarray(weft.jit(weft.grad(lambda x: f(x).sum()))(x))).all()


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (2,), (70,)])
def test_numbers_of_any_shape_are_found(shape):
    x = wnp.full(shape, 1000.0)
    ones = (np.ones(shape, np.float32), wnp.ones(shape)) if x.size < 3 else ()  # larger ones are arguments of programs
    for one in (1.0, wnp.float32(1), *ones):
        for f in (lambda x, one=one: wnp.log(wnp.exp(x) + one), lambda x: wnp.log(wnp.exp(x) + wnp.ones_like(x))):
            np.testing.assert_array_equal(weft.jit(f)(x), x)
            np.testing.assert_array_equal(weft.jit(weft.grad(lambda x, f=f: f(x).sum()))(x), wnp.ones(shape))


def test_numbers_that_the_function_computes_are_found():
    f = lambda x: wnp.log(wnp.exp(-((x - 2) ** 2) / 8) / wnp.sqrt(2 * wnp.pi * 4))
    g = lambda x: wnp.log(wnp.exp(x) + wnp.exp(2.0))
    for x in (-1000.0, 1000.0):
        np.testing.assert_allclose(weft.jit(weft.grad(f))(x), -(x - 2) / 4, rtol=1e-6)
        np.testing.assert_allclose(weft.jit(lambda x: weft.jvp(f, (x,), (1.0,)))(x)[1], -(x - 2) / 4, rtol=1e-6)
        assert weft.jit(weft.grad(g))(x) == (x > 0)


@pytest.mark.parametrize("rule", RULES, ids=[r[0] for r in RULES])
def test_each_rule_is_accurate_in_f64(rule):
    """Or not worse than what was written, where no wider type would help, and no NaN where the truth is a number."""
    if rule[1] not in ("exact", "signed-zero", "accurate"):
        pytest.skip("a licence that is given for less")
    # As many digits as differences of the largest and the least numbers have.
    with weft.enable_x64(True), mp.workdps(700 if re.search("/x|-x|- x", rule[2]) else mp.dps):
        worst, before, where = errors(rule, np.float64, 60)
    assert worst <= max(16, before), (rule[2], worst, where)
    # y**3 and expm1(x) may both be infinite, and no other order of these operations is finite everywhere.
    assert "NaN" not in where or rule[0] == "cube-over-expm1-of-another", (rule[2], where)


def softplus(x):
    return wnp.log(1 + wnp.exp(x))


def through_scan(f):
    return lambda x: weft.lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0]


def through_cond(f):
    return lambda x: weft.lax.cond(x > 1, f, lambda y: y, x)


AROUND = {
    "as it is": lambda f: f,
    "jit": weft.jit,
    "vmap": lambda f: lambda x: weft.vmap(f)(wnp.stack([x, x]))[0],
    "scan": through_scan,
    "cond": through_cond,
    "checkpoint": weft.checkpoint,
}


@pytest.mark.parametrize("inner", AROUND)
@pytest.mark.parametrize("outer", AROUND)
def test_derivatives_are_those_of_the_stable_form(inner, outer):
    f = AROUND[inner](softplus)
    first, second = weft.grad(f), weft.grad(weft.grad(f))
    assert float(AROUND[outer](first)(100.0)) == 1
    assert float(AROUND[outer](second)(100.0)) == pytest.approx(0, abs=1e-43)
    assert float(AROUND[outer](weft.grad(AROUND[outer](weft.grad(f))))(100.0)) == pytest.approx(0, abs=1e-43)
    assert float(AROUND[outer](lambda x: weft.jvp(f, (x,), (1.0,))[1])(100.0)) == 1
    assert float(AROUND[outer](lambda x: weft.vjp(f, x)[1](1.0)[0])(100.0)) == 1


def test_jitted_values_are_those_of_the_stable_form():
    for name in ("as it is", "jit", "vmap", "scan", "cond"):
        assert float(weft.jit(AROUND[name](softplus))(100.0)) == 100, name


def test_a_licence_says_which_rules_are_used():
    assert math.isinf(weft.jit(softplus, licence="exact")(100.0))
    assert math.isinf(weft.jit(softplus, licence=("exact", "signed-zero"))(100.0))
    assert float(weft.jit(softplus, licence="accurate")(100.0)) == 100
    assert float(weft.jit(softplus, licence=["rounding"])(100.0)) == 100
    assert math.isnan(weft.jit(weft.grad(softplus), licence="exact")(100.0))
    # log(x y) is log(x) + log(y) where both are positive; by default the product is one of f64.
    y = wnp.full(40000, 1e-30)
    product = lambda x, z: wnp.log(x * z)
    assert math.isinf(weft.jit(product, licence="signed-zero")(y, y)[0])
    for licence in ("accurate", "no-nan"):
        np.testing.assert_allclose(weft.jit(product, licence=licence)(y, y)[0], -138.15511)
    assert math.isnan(weft.jit(product)(-y, y)[0])
    zero = lambda x: 0 * x
    assert math.isnan(weft.jit(zero)(math.inf))
    assert float(weft.jit(zero, licence="no-nan")(math.inf)) == 0


def test_the_outermost_jitted_function_decides():
    exactly = weft.jit(softplus, licence="exact")
    assert float(weft.jit(lambda x: exactly(x))(100.0)) == 100
    assert math.isinf(weft.jit(lambda x: weft.jit(softplus)(x), licence="exact")(100.0))
    # Not what the same function was traced as elsewhere.
    inner = weft.jit(weft.grad(softplus))
    assert float(inner(100.0)) == 1
    assert math.isnan(weft.jit(lambda x: inner(x), licence="exact")(100.0))
    assert float(weft.jit(lambda x: inner(x))(100.0)) == 1


def test_lowered_programs_have_the_licence():
    lowered = weft.jit(softplus, licence="exact").lower(1.0)
    assert "= softplus" not in lowered.stage("optimized")
    assert math.isinf(lowered.compile()(100.0))
    lowered = weft.jit(softplus).lower(1.0)
    assert "= softplus" in lowered.stage("optimized")
    assert float(lowered.compile()(100.0)) == 100


def test_a_licence_that_there_is_not_is_refused():
    with pytest.raises(
        ValueError, match="none named 'fast'; licences: exact, signed-zero, accurate, products, rounding"
    ):
        weft.jit(softplus, licence="fast")
    with pytest.raises(TypeError, match="licence is a name or several, got 3"):
        weft.jit(softplus, licence=[3])
    with pytest.raises(ValueError, match="takes no licence"):
        weft.jit(softplus, capture="auto", licence="exact")


GUARDED = {
    "log": lambda x: wnp.where(x > 0, wnp.log(x), 0),
    "sqrt": lambda x: wnp.where(x > 0, wnp.sqrt(x), 0),
    "quotient": lambda x: wnp.where(x > 0, 1 / x, 0),
    "the other branch": lambda x: wnp.where(x <= 0, 0, 1 / x),
    "nested": lambda x: wnp.where(x > 0, wnp.sqrt(wnp.log(x) + 1 / x), 0),
    "power": lambda x: wnp.where(x > 0, x**0.25, 0),
    "overflow": lambda x: wnp.where(x < 50, x, wnp.log(wnp.exp(x * x))),
    "inverse sine": lambda x: wnp.where(abs(x) < 1, wnp.arcsin(x), 0),
}


@pytest.mark.parametrize("name", GUARDED)
def test_branches_that_are_not_taken_give_no_nan(name):
    f = GUARDED[name]
    outside = wnp.array([0.0, -1.0, -3.0])
    for g in (
        weft.grad(lambda x: f(x).sum()),
        weft.jit(weft.grad(lambda x: f(x).sum())),
        weft.vmap(weft.grad(f)),
        weft.grad(lambda x: weft.grad(lambda y: f(y).sum())(x).sum()),
    ):
        assert np.isfinite(np.asarray(g(outside))).all()
    # And none of the others: at 2.
    plain = {"log": 0.5, "sqrt": 0.5 / math.sqrt(2), "quotient": -0.25, "the other branch": -0.25}
    if name in plain:
        np.testing.assert_allclose(weft.grad(f)(2.0), plain[name], rtol=1e-6)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2), (-1,)])
def test_log_sum_exp_of_any_axes(axis, keepdims):
    x = np.linspace(-200, 200, 24).reshape(2, 3, 4).astype(np.float32)
    f = weft.jit(lambda v: wnp.log(wnp.sum(wnp.exp(v), axis=axis, keepdims=keepdims)))
    wide = x.astype(np.float64)
    want = np.log(np.sum(np.exp(wide), axis=axis, keepdims=keepdims))
    np.testing.assert_allclose(f(x), want, rtol=1e-6)
    gradient = weft.grad(lambda v: wnp.log(wnp.sum(wnp.exp(v), axis=axis, keepdims=keepdims)).sum())(x)
    axes = tuple(range(3)) if axis is None else axis
    np.testing.assert_allclose(
        gradient, np.exp(wide) / np.exp(wide).sum(axis=axes, keepdims=True), rtol=1e-5, atol=1e-30
    )


def test_softmax_and_its_logarithm():
    x = np.array([[-200.0, 0.0, 200.0], [1.0, 2.0, 3.0]], np.float32)

    def softmax(v):
        return wnp.exp(v) / wnp.sum(wnp.exp(v), axis=-1, keepdims=True)

    want = np.exp(x - x.max(-1, keepdims=True))
    want /= want.sum(-1, keepdims=True)
    np.testing.assert_allclose(weft.jit(softmax)(x), want, rtol=1e-6, atol=1e-30)
    logs = weft.jit(lambda v: wnp.log(softmax(v)))(x)
    np.testing.assert_allclose(
        logs,
        x - x.max(-1, keepdims=True) - np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)),
        rtol=1e-6,
    )
    loss = weft.grad(lambda v: -wnp.log(softmax(v))[0, 0])
    np.testing.assert_allclose(loss(x), [[-1, 0, 1], [0, 0, 0]], atol=1e-6)


def test_the_variance_is_that_of_distances_from_the_mean():
    x = np.random.default_rng(0).normal(1e4, 1, (300, 64)).astype(np.float32)
    want = x.astype(np.float64).var(axis=0)
    for f in (
        lambda v: wnp.mean(v**2, axis=0) - wnp.mean(v, axis=0) ** 2,
        lambda v: wnp.mean(v * v, axis=0) - wnp.square(v.mean(axis=0)),
        lambda v: wnp.sum(v**2, axis=0) / 300 - (wnp.sum(v, axis=0) / 300) ** 2,
        lambda v: (wnp.sum(v**2, axis=0) - wnp.sum(v, axis=0) ** 2 / 300) / 300,
    ):
        np.testing.assert_allclose(weft.jit(f)(x), want, rtol=1e-4)


NORMS = {
    "norm": lambda np_, v, **k: np_.sqrt(np_.sum(v**2, **k)),
    "norm, product": lambda np_, v, **k: np_.sqrt((v * v).sum(**k)),
    "root mean square": lambda np_, v, **k: np_.sqrt(np_.mean(np_.square(v), **k)),
    "geometric mean": lambda np_, v, **k: np_.exp(np_.mean(np_.log(v), **k)),
    "geometric mean, quotient": lambda np_, v, **k: np_.exp(np_.sum(np_.log(v), **k) / 12),
}


@pytest.mark.parametrize("size", [1e-30, 1e-22, 1.0, 1e22, 1e30])
@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_norms_and_geometric_means_of_any_size(name, axis, size):
    f = NORMS[name]
    x = (size * np.random.default_rng(1).uniform(0.5, 2, (3, 4))).astype(np.float32)
    wide = x.astype(np.float64)
    want = f(np, wide, axis=axis)
    np.testing.assert_allclose(weft.jit(lambda v: f(wnp, v, axis=axis))(x), want, rtol=3e-7)
    stacked = weft.jit(weft.vmap(lambda v: f(wnp, v, axis=axis)))(np.stack([x, x, x]))
    np.testing.assert_allclose(stacked, [want, want, want], rtol=3e-7)
    whole = lambda v: f(wnp, v, axis=axis).sum()
    gradient = np.asarray(weft.jit(weft.grad(whole))(x))
    moved = (f(np, wide * (1 + 1e-6), axis=axis).sum() - f(np, wide * (1 - 1e-6), axis=axis).sum()) / 2e-6
    np.testing.assert_allclose((gradient.astype(np.float64) * wide).sum(), moved, rtol=1e-5)
    second = weft.jit(weft.grad(lambda v: (weft.grad(whole)(v) * x).sum()))(x)
    assert np.isfinite(np.asarray(second)).all()


# Few operations on one value: formula, a point, its value there.
OF_ONE_VALUE = {
    "function": (lambda x: x - wnp.sin(x), 1e-2, 1e-6 / 6 - 1e-10 / 120),
    "functions": (lambda x: wnp.sin(x) / x - wnp.cos(x), 1e-2, 1e-4 / 3 - 1e-8 / 30),
    "polynomial": (lambda x: x**3 - 3 * x**2 + 3 * x - 1, 1.0625, 0.0625**3),
    "root": (lambda x: (wnp.sqrt(x * x - 4) - x) / 2, 1e3, -2 / (1e3 + math.sqrt(1e6 - 4))),
    "quotients": (lambda x: 1 / (x + 1) - 2 / x + 1 / (x - 1), 100.0, 2 / (100.0 * 101 * 99)),
    "overflow": (lambda x: x * x / (1 + x * x), 1e22, 1.0),
    "a constant array": (lambda x: wnp.sqrt(wnp.sum((x * wnp.array([3.0, 4.0])) ** 2)), 1e25, 5e25),
}


@pytest.mark.parametrize("name", OF_ONE_VALUE)
def test_few_operations_on_one_value_are_computed_in_f64(name):
    f, at, want = OF_ONE_VALUE[name]
    np.testing.assert_allclose(weft.jit(f)(at), want, rtol=3e-7)
    # Whatever the size, under vmap, in loops and branches: one and the same number.
    many = np.full(1000, at, np.float32)
    alone = float(weft.jit(f)(at))
    assert (np.asarray(weft.jit(weft.vmap(f))(many)) == alone).all()
    assert (np.asarray(weft.jit(lambda v: weft.lax.scan(lambda c, x: (c, f(x)), 0.0, v)[1])(many)) == alone).all()
    assert float(weft.jit(lambda x: weft.lax.cond(x > 0, f, lambda x: x, x))(at)) == alone
    assert "f64" in weft.jit(f).lower(at).stage("optimized")
    for licence in ("signed-zero", "exact"):
        assert "f64" not in weft.jit(f, licence=licence).lower(at).stage("optimized")


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: x * x - y * y,  # of two values
        lambda x, y: x * y - y * 2,
        lambda x, y: x - wnp.mean(x),  # a sum over a dimension
        lambda x, y: 0.3 * x - 0.7,  # linear
        lambda x, y: (x - 3) / 7 - 1,
        lambda x, y: wnp.sin(x) * 1.01 + 0.1,  # a function and a number
        lambda x, y: x - wnp.sin(wnp.exp(x)),  # a function of a function
        lambda x, y: 1 + wnp.exp(-x * x),  # nothing can cancel
        lambda x, y: wnp.exp(x) / wnp.sum(wnp.exp(x)),
        lambda x, y: (x - x.mean()) / wnp.sqrt(x.var() + 1e-5),  # normalisations
        lambda x, y: x / wnp.sqrt(wnp.mean(x * x) + 1e-5),
        lambda x, y: weft.nn.standardize(x),
    ],
)
def test_other_operations_keep_their_type(f):
    x = np.linspace(0.5, 2, 7).astype(np.float32)
    assert "f64" not in weft.jit(f).lower(x, x).stage("optimized")


def test_all_that_cancels_is_computed_in_f64_where_that_is_asked_for():
    for f in (lambda x, y: x * y - wnp.sin(x), lambda x, y: wnp.sin(wnp.exp(x)) - y * x):
        assert "f64" in weft.jit(f, licence="rounding").lower(1.0, 2.0).stage("optimized")
        assert "f64" not in weft.jit(f).lower(1.0, 2.0).stage("optimized")
    # Nothing can cancel here.
    assert "f64" not in weft.jit(lambda x: 1 + wnp.exp(-x * x), licence="rounding").lower(1.0).stage("optimized")


@pytest.mark.parametrize(
    "part",
    [wnp.real, wnp.imag, wnp.abs, lambda z: wnp.real(z) * 2, lambda z: wnp.where(wnp.real(z) > 0, wnp.imag(z), 1)],
)
def test_parts_of_complex_numbers_beside_what_is_computed_in_f64(part):
    z = np.array([1 + 2j, -3 + 0.5j, 0.25j], np.complex64)
    f = lambda z: (part(z) - wnp.sin(part(z))) / 3
    for g in (f, lambda z: weft.grad(lambda v: f(v).sum())(z)):
        np.testing.assert_allclose(weft.jit(g, licence="rounding")(z), weft.jit(g)(z), rtol=1e-5)


def test_programs_that_compute_with_their_rounding_errors_keep_them():
    @weft.jit
    def two_sum(x, y):
        s = x + y
        z = s - x
        return s, (x - (s - z)) + (y - z)

    x, y = np.float32(1.0), np.float32(1e-9)
    s, error = two_sum(x, y)
    assert float(s) == 1 and float(error) == float(y)

    @weft.jit
    def to_whole(v):
        return (v + 12582912.0) - 12582912.0

    assert float(to_whole(2.3)) == 2

    @weft.jit
    def compensated(v):
        def step(carry, t):
            total, lost = carry
            corrected = t - lost
            new = total + corrected
            return (new, (new - total) - corrected), None

        return weft.lax.scan(step, (wnp.float32(0), wnp.float32(0)), v)[0][0]

    v = np.full(10000, 0.1, np.float32)
    assert abs(float(compensated(v)) - v.astype(np.float64).sum()) < 1e-4
