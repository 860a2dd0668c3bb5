"""Stable forms of sums of exponentials as they are written: in any order of dimensions, divided by sums of their own
rows, of others' and of both, through conversions, loops, extremes and guards. NumPy in f64 and JAX in f64 are right."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.lax as lax
import weft.numpy as wnp
import weft.scipy.special as special

SQUARE = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
V = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
MASK = np.array([[1, 1, 0, 1], [0, 1, 1, 1], [1, 1, 1, 0], [1, 0, 1, 1]], bool)

# exp(x) over sums of it. `np` is NumPy or weft.numpy. Those that divide rows by other rows' sums are no softmax, and
# are what they say.
QUOTIENTS = {
    "rows": lambda np, x: np.exp(x) / np.exp(x).sum(1, keepdims=True),
    "columns": lambda np, x: np.exp(x) / np.exp(x).sum(0),
    "all": lambda np, x: np.exp(x) / np.exp(x).sum(),
    "columns by rows": lambda np, x: np.exp(x) / np.exp(x).sum(1),
    "rows by columns": lambda np, x: np.exp(x) / np.exp(x).sum(0)[:, None],
    "transposed by columns": lambda np, x: (np.exp(x).T / np.exp(x).sum(1)).T,
    "transposed by rows": lambda np, x: (np.exp(x).T / np.exp(x).sum(1)[:, None]).T,
    "of the transposed": lambda np, x: np.exp(x).T / np.exp(x).T.sum(0),
    "of the transposed, rows": lambda np, x: np.exp(x.T) / np.exp(x.T).sum(1),
    "einsum": lambda np, x: np.einsum("ij,i->ij", np.exp(x), 1 / np.einsum("ij->i", np.exp(x))),
    "einsum of columns": lambda np, x: np.einsum("ij,j->ij", np.exp(x), 1 / np.einsum("ij->i", np.exp(x))),
    "reciprocal": lambda np, x: np.exp(x) * (1 / np.exp(x).sum(0))[:, None],
    "pairs of rows": lambda np, x: np.exp(x.reshape(2, 2, 4)) / np.exp(x.reshape(2, 2, 4)).sum((1, 2), keepdims=True),
    "flat": lambda np, x: np.exp(x).reshape(16) / np.exp(x.reshape(16)).sum(),
    "masked": lambda np, x: np.where(MASK, np.exp(x), 0) / np.where(MASK, np.exp(x), 0).sum(1, keepdims=True),
    "masked by columns": lambda np, x: np.where(MASK, np.exp(x), 0) / np.where(MASK, np.exp(x), 0).sum(0)[:, None],
    "mean": lambda np, x: (np.exp(x) * SQUARE).sum(1) / np.exp(x).sum(1),
    "mean by columns": lambda np, x: (np.exp(x) * SQUARE).sum(1) / np.exp(x).sum(0),
    "outer": lambda np, x: (np.exp(x) * SQUARE).sum(1)[:, None] / np.exp(x).sum(1)[None],
    "product": lambda np, x: (np.exp(x) @ V) / np.exp(x).sum(-1, keepdims=True),
    "product with a vector": lambda np, x: (np.exp(x) @ V[:, 0]) / np.exp(x).sum(-1),
    "product, transposed": lambda np, x: (V.T @ np.exp(x)) / np.exp(x).sum(0),
    "product by other rows": lambda np, x: (V[:, 0] @ np.exp(x)) / np.exp(x).sum(1),
    "sums": lambda np, x: np.exp(x).sum(1) / np.exp(x + SQUARE).sum(1),
    "sums of others": lambda np, x: np.exp(x).sum(0) / np.exp(x).sum(1),
    "effective size": lambda np, x: np.exp(x).sum() ** 2 / (np.exp(x) ** 2).sum(),
    "effective size of rows": lambda np, x: np.exp(x).sum(1) ** 2 / np.square(np.exp(x)).sum(1),
    "log of rows": lambda np, x: np.log(np.exp(x) / np.exp(x).sum(1, keepdims=True)),
    "log by columns": lambda np, x: np.log(np.exp(x) / np.exp(x).sum(0)[:, None]),
    "log, transposed": lambda np, x: np.log(np.exp(x).T / np.exp(x).sum(1)),
}
# All finite where the exponents are large and alike.
ALIKE = [q for q in QUOTIENTS if "masked" not in q]
# Means by weights of others do not.
ALIKE = [q for q in ALIKE if q not in ("einsum of columns", "mean by columns", "outer", "product by other rows")]


@pytest.mark.parametrize("name", QUOTIENTS)
@pytest.mark.parametrize("around", ["jit", "eager", "vmap", "scan"])
def test_quotients_are_what_they_say(name, around):
    f = QUOTIENTS[name]
    want = f(np, SQUARE.astype(np.float64))
    g = lambda x: f(wnp, x)
    run = {
        "jit": weft.jit(g),
        "eager": g,
        "vmap": lambda x: weft.jit(weft.vmap(g))(wnp.stack([x, x]))[1],
        "scan": lambda x: weft.jit(lambda x: lax.scan(lambda c, _: (c, g(c)), x, None, length=2)[1])(x)[1],
    }[around]
    np.testing.assert_allclose(run(wnp.asarray(SQUARE)), want, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", QUOTIENTS)
def test_derivatives_of_quotients(name):
    f = QUOTIENTS[name]
    weights = np.random.default_rng(2).normal(size=np.shape(f(np, SQUARE))).astype(np.float64)
    x = SQUARE.astype(np.float64)
    got = np.asarray(weft.jit(weft.grad(lambda x: (f(wnp, x) * wnp.asarray(weights, "float32")).sum()))(SQUARE))
    step = 1e-6
    for i in range(4):
        for j in range(4):
            e = np.zeros((4, 4))
            e[i, j] = step
            slope = ((f(np, x + e) - f(np, x - e)) * weights).sum() / (2 * step)
            np.testing.assert_allclose(got[i, j], slope, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.parametrize("level", [-1000.0, 1000.0])
def test_quotients_of_large_exponents(name, level):
    """They depend on differences alone."""
    f = QUOTIENTS[name]
    x = SQUARE + np.float32(level)
    exact = x.astype(np.float64) - level
    want = f(np, exact)
    np.testing.assert_allclose(weft.jit(lambda x: f(wnp, x))(x), want, rtol=2e-4, atol=1e-5)
    assert np.isfinite(np.asarray(weft.jit(weft.grad(lambda x: f(wnp, x).sum()))(x))).all()


# mean(x y) - mean(x) mean(y), as it is written, of values around 1e4.
COVARIANCES = {
    "variance": lambda np, x, y: (x * x).mean(1) - x.mean(1) ** 2,
    "covariance": lambda np, x, y: (x * y).mean(1) - x.mean(1) * y.mean(1),
    "in another order": lambda np, x, y: (y * x).mean(0) - x.mean(0) * y.mean(0),
    "sums": lambda np, x, y: ((x * y).sum(1) - x.sum(1) * y.sum(1) / 4) / 3,
    "keepdims": lambda np, x, y: (x * y).mean(1, keepdims=True) - x.mean(1, keepdims=True) * y.mean(1, keepdims=True),
    "of all": lambda np, x, y: (x * y).mean() - x.mean() * y.mean(),
}
# These are no variances.
NO_COVARIANCES = {
    "of other rows": lambda np, x, y: (x * x).mean(1)[:, None] - (x.mean(1) ** 2)[None],
    "of others": lambda np, x, y: (x * y).mean(1) - x.mean(1) * x.mean(1),
    "of columns": lambda np, x, y: (x * y).mean(1) - x.mean(0) * y.mean(0),
    "of an outer product": lambda np, x, y: (x * y).mean(1)[:, None] - x.mean(1)[:, None] * y.mean(1)[None],
}


@pytest.mark.parametrize("name", [*COVARIANCES, *NO_COVARIANCES])
def test_covariances(name):
    f, x, y = {**COVARIANCES, **NO_COVARIANCES}[name], SQUARE, SQUARE[::-1].T.copy()
    np.testing.assert_allclose(weft.jit(lambda x, y: f(wnp, x, y))(x, y), f(np, x.astype(float), y.astype(float)),
                               rtol=1e-5, atol=1e-6)  # fmt: skip
    if name in COVARIANCES:
        x, y = x + np.float32(1e4), y + np.float32(1e4)
        want = f(np, x.astype(float) - 1e4, y.astype(float) - 1e4)
        np.testing.assert_allclose(weft.jit(lambda x, y: f(wnp, x, y))(x, y), want, rtol=1e-4, atol=1e-4)


# Numbers of NumPy's are of f64, and make what they meet f64.
WIDENED = {
    "quotient": (lambda np, x, c: np.log(np.exp(x) / c(np.sqrt(2 * np.pi))), lambda x: x - np.log(np.sqrt(2 * np.pi))),
    "sum": (lambda np, x, c: np.log(np.exp(x) + c(7.389)), lambda x: np.logaddexp(x, np.log(7.389))),
    "softplus": (lambda np, x, c: np.log(c(1) + np.exp(x)), lambda x: np.logaddexp(x, 0)),
    "log1p": (lambda np, x, c: np.log1p(c(2) * np.exp(x)), lambda x: np.logaddexp(x + np.log(2), 0)),
    "sum of all": (lambda np, x, c: np.log(np.exp(x).sum() * c(2)), lambda x: np.log(2) + np.logaddexp.reduce(x)),
}


@pytest.mark.parametrize("name", WIDENED)
@pytest.mark.parametrize("level", [-1000.0, 0.5, 1000.0])
def test_logarithms_of_what_was_widened(name, level):
    f, truth = WIDENED[name]
    x = np.array([level, level - 0.25], np.float32)
    with weft.enable_x64(True):
        g = lambda x: f(wnp, x, np.float64)
        np.testing.assert_allclose(weft.jit(g)(x), truth(x.astype(float)), rtol=1e-6)
        slopes = np.asarray(weft.jit(weft.grad(lambda x: g(x).sum()))(x))
        step = 1e-4
        want = [(truth(x + step * e).sum() - truth(x - step * e).sum()) / (2 * step) for e in np.eye(2)]
        np.testing.assert_allclose(slopes, want, rtol=1e-4, atol=1e-5)


def by_while(xs):
    more, step = lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] + wnp.exp(xs[c[0]]))
    return weft.while_loop(more, step, (0, wnp.float32(0)))[1]


LOOPS = {
    "scan": lambda xs: weft.scan(lambda c, x: (c + wnp.exp(x), None), 0.0, xs)[0],
    "scan, begun": lambda xs: weft.scan(lambda c, x: (wnp.exp(x) + c, None), wnp.exp(xs[0]), xs[1:])[0],
    "fori_loop": lambda xs: weft.fori_loop(0, 5, lambda i, c: c + wnp.exp(xs[i]), 0.0),
    "while_loop": by_while,
    "scan beside another carry": lambda xs: weft.scan(
        lambda c, x: ((c[0] + wnp.exp(x + c[1]), 1.0 * c[1]), None), (0.0, 0.0 * xs[0]), xs
    )[0][0],
    "scan backwards": lambda xs: weft.scan(lambda c, x: (c + wnp.exp(x), None), 0.0, xs, reverse=True)[0],
    "python": lambda xs: sum(wnp.exp(xs[i]) for i in range(5)),
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("level", [-1000.0, 0.0, 1000.0])
def test_logarithm_of_a_sum_that_a_loop_carries(name, level):
    xs = (np.linspace(-1, 1, 5) + level).astype(np.float32)
    f = lambda xs: wnp.log(LOOPS[name](xs))
    want = np.logaddexp.reduce(xs.astype(float))
    np.testing.assert_allclose(weft.jit(f)(xs), want, rtol=1e-6)
    np.testing.assert_allclose(weft.jit(weft.vmap(f))(np.stack([xs, xs])), [want, want], rtol=1e-6)
    if name != "while_loop":
        np.testing.assert_allclose(weft.jit(weft.grad(f))(xs), np.exp(xs.astype(float) - want), rtol=1e-4)


# Logarithms of what is kept away from 0, with the value and its first two derivatives.
KEPT = {
    "maximum": (lambda x: wnp.log(wnp.maximum(1 / (1 + wnp.exp(-x)), 1e-30)), [-69.07755, 0, 0], -1000.0),
    "maximum of a sigmoid in its range": (
        lambda x: wnp.log(wnp.maximum(1 / (1 + wnp.exp(-x)), 1e-30)), [-50.0, 1.0, -1.9287498e-22], -50.0),
    "clip": (lambda x: wnp.log(wnp.clip(1 / (1 + wnp.exp(-x)), 1e-30, 1)), [-69.07755, 0, 0], -1000.0),
    "clip above": (lambda x: wnp.log(wnp.clip(wnp.exp(x), 1e-7, 2.0)), [0.6931472, 0, 0], 1000.0),
    "of softplus": (lambda x: wnp.log(wnp.maximum(1 + wnp.exp(x), 1)), [100.0, 1, 0], 100.0),
    "log2": (lambda x: wnp.log2(wnp.maximum(wnp.exp(x), 1e-30)), [144.26950, 1.442695, 0], 100.0),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_logarithms_of_what_is_kept_away_from_0(name):
    f, want, at = KEPT[name]
    for derivative, expected in zip((f, weft.grad(f), weft.grad(weft.grad(f))), want, strict=True):
        np.testing.assert_allclose(weft.jit(derivative)(at), expected, rtol=1e-5, atol=1e-30)
    negative = lambda x: wnp.log(wnp.maximum(1 - wnp.exp(x), 0.5))
    assert weft.jit(negative)(3.0) == np.log(np.float32(0.5))


def test_roots_of_products():
    for size in (1e-30, 1.0, 1e30):
        x = (np.array([1, 2, 0.5]) * size).astype(np.float32)
        for f, power in ((lambda x: wnp.prod(x) ** (1 / 3), 1 / 3), (lambda x: wnp.sqrt(wnp.prod(x)), 0.5),
                         (lambda x: wnp.cbrt(wnp.prod(x)), 1 / 3)):  # fmt: skip
            want = np.prod(x.astype(float)) ** power
            if want > 3e38 or want < 1e-37:
                continue
            np.testing.assert_allclose(weft.jit(f)(x), want, rtol=1e-5)  # 1/3 is one of f32
            np.testing.assert_allclose(weft.jit(weft.grad(f))(x), want * power / x.astype(float), rtol=2e-5)


def test_a_branch_under_vmap():
    f = lambda x: wnp.log(1 + lax.cond(x > 0, wnp.exp, lambda x: x * x, x))
    x = np.array([100.0, -2.0, 3.0], np.float32)
    want = [100.0, np.log(5.0), np.logaddexp(3.0, 0.0)]
    np.testing.assert_allclose(weft.jit(weft.vmap(f))(x), want, rtol=1e-6)
    slopes = [1.0, -4 / 5, 1 / (1 + np.exp(-3.0))]
    np.testing.assert_allclose(weft.jit(weft.vmap(weft.grad(f)))(x), slopes, rtol=1e-5)


# Functions with an infinite or no derivative at a point outside of what a choice takes.
EDGES = {
    "erfinv": (special.erfinv, [-1.0, 1.0, 2.0], 0.5),
    "ndtri": (special.ndtri, [0.0, 1.0, -1.0], 0.3),
    "erfcx": (special.erfcx, [np.inf], 1.0),
    "gammainc": (lambda x: special.gammainc(x, x), [-1.0, 0.0], 1.5),
    "gammaincc": (lambda x: special.gammaincc(1.5, x), [-1.0], 0.5),
    "betainc": (lambda x: special.betainc(0.5, 0.5, x), [-0.5, 0.0, 1.0, 2.0], 0.3),
    "expi": (special.expi, [0.0], 0.5),
    "exp1": (special.exp1, [0.0, -1.0], 0.5),
    "spence": (special.spence, [0.0, -1.0], 0.5),
    "polygamma": (lambda x: special.polygamma(1, x), [0.0, -1.0], 1.5),
    "zeta": (lambda x: special.zeta(x, 2.0), [1.0, 0.5], 2.5),
    "xlogy": (lambda x: special.xlogy(x, x), [0.0, -1.0], 0.5),
    "xlog1py": (lambda x: special.xlog1py(x, x), [-1.0, -2.0], 0.5),
    "entr": (special.entr, [0.0, -1.0], 0.5),
    "rel_entr": (lambda x: special.rel_entr(x, 2 * x), [0.0, -1.0], 0.5),
    "kl_div": (lambda x: special.kl_div(x, 2 * x), [0.0, -1.0], 0.5),
    "logit": (special.logit, [0.0, 1.0, 2.0], 0.3),
    "gammaln": (special.gammaln, [0.0, -1.0], 1.5),
    "digamma": (special.digamma, [0.0, -1.0], 1.5),
    "i0e": (special.i0e, [np.inf], 0.5),
    "arctan2": (lambda x: wnp.arctan2(x, x * x), [0.0], 0.5),
    "hypot": (lambda x: wnp.hypot(x, x), [0.0], 0.5),
    "power": (lambda x: x**x, [0.0, -1.0], 0.5),
    "remainder": (lambda x: wnp.remainder(1.0, x), [0.0], 0.3),
    "fmod": (lambda x: wnp.fmod(1.0, x), [0.0], 0.3),
}


@pytest.mark.parametrize("name", EDGES)
def test_guards_reach_functions_with_rules_of_their_own(name):
    f, edges, inside = EDGES[name]
    x = wnp.asarray([*edges, inside, inside])
    taken = wnp.asarray([False] * len(edges) + [True, False])
    total = lambda x: wnp.where(taken, f(x), 0.0).sum()
    slope = float(weft.grad(lambda x: f(x))(wnp.float32(inside)))
    second = float(weft.grad(weft.grad(lambda x: f(x)))(wnp.float32(inside)))
    want = [0.0] * len(edges) + [slope, 0.0]
    for g in (
        weft.grad(total),
        weft.jit(weft.grad(total)),
        lambda x: weft.vmap(weft.grad(total))(wnp.stack([x, x]))[1],
        weft.grad(lambda x: lax.cond(x[-1] > 0, total, lambda x: 2 * total(x), x)),
        weft.grad(lambda x: lax.scan(lambda c, _: (c + total(x), None), 0.0, None, length=1)[0]),
    ):
        np.testing.assert_allclose(g(x), want, rtol=1e-5)
    twice = weft.grad(lambda x: weft.grad(total)(x).sum())(x)
    np.testing.assert_allclose(twice, [0.0] * len(edges) + [second, 0.0], rtol=1e-4, atol=1e-6)
    tangents = weft.jvp(total, (x,), (wnp.ones(x.shape),))[1]
    np.testing.assert_allclose(tangents, slope, rtol=1e-5)


def test_guards_reach_functions_that_are_said_to_be_elementwise():
    def build(elementwise):
        f = weft.custom_jvp(lambda x: wnp.sqrt(x), elementwise=elementwise)
        f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] / (2 * f(*primals))))
        return weft.grad(lambda x: wnp.where(x > 0, f(x), 0.0).sum())

    x = wnp.asarray([0.0, 4.0])
    np.testing.assert_array_equal(build(True)(x), [0.0, 0.25])
    # What is not known of a function is not assumed: a rule may mix elements.
    assert np.isnan(build(False)(x)[0])


@pytest.mark.parametrize("mapped", [(0, None), (None, 0), (0, 0)])
@pytest.mark.parametrize("levels", [1, 2])
def test_guards_reach_operands_that_are_not_mapped(mapped, levels):
    f = weft.custom_jvp(lambda x, y: wnp.sqrt(x) * wnp.sqrt(y), elementwise=True)
    rule = lambda x, y, dx, dy: dx * wnp.sqrt(y) / (2 * wnp.sqrt(x)) + dy * wnp.sqrt(x) / (2 * wnp.sqrt(y))
    f.defjvp(lambda primals, tangents: (f(*primals), rule(*primals, *tangents)))
    guarded = lambda x, y: wnp.where((x > 0) & (y > 0), f(x, y), 0.0)
    edge = np.array([0.0, 4.0, 0.0, 9.0], np.float32)
    xs = [np.stack([edge, edge[::-1]]) if axis == 0 else edge for axis in mapped]
    if levels == 2:
        xs = [np.stack([x, x]) if axis == 0 else x for x, axis in zip(xs, mapped)]
    for _ in range(levels):
        guarded = weft.vmap(guarded, in_axes=mapped)
    slope = lambda x, y: np.where((x > 0) & (y > 0), np.sqrt(y) / (2 * np.sqrt(np.maximum(x, 1))), 0)
    for d in range(2):
        full = slope(xs[d], xs[1 - d])
        want = full.reshape(-1, *xs[d].shape).sum(0) if full.shape != xs[d].shape else full
        for g in (weft.grad(lambda *v: guarded(*v).sum(), d), weft.jit(weft.grad(lambda *v: guarded(*v).sum(), d))):
            np.testing.assert_allclose(g(*xs), want, rtol=1e-5)
