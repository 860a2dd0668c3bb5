"""Stable forms through what lies between the parts of a formula: indices, one-hot rows, shapes, branches, loops and
functions that are computed again. JAX's in f64 is right."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import weft
import weft.lax as lax
import weft.nn as nn
import weft.numpy as wnp

LABELS = np.array([1, 0, 3, 2])
ONE_HOT = np.eye(5, dtype=np.float32)[LABELS]
LOGITS = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)


def plain(x):
    e = wnp.exp(x)
    return e / wnp.sum(e, axis=-1, keepdims=True)


def by_hand(x):
    e = wnp.exp(x - wnp.max(x, axis=-1, keepdims=True))
    return e / wnp.sum(e, axis=-1, keepdims=True)


def stopped(x):
    e = wnp.exp(x - lax.stop_gradient(wnp.max(x, axis=-1, keepdims=True)))
    return e / e.sum(-1, keepdims=True)


SOFTMAX = {"weft.nn": nn.softmax, "plain": plain, "by hand": by_hand, "stopped": stopped}


def picked(x):
    return jax.nn.log_softmax(x)[jnp.arange(4), LABELS]


def labels():
    return wnp.asarray(LABELS)


# Logarithms of probabilities p(x), and what they are of log_softmax.
LOSSES = {
    "indices": (lambda x, p: wnp.log(p(x)[wnp.arange(4), LABELS]), picked),
    "take_along_axis": (lambda x, p: wnp.log(wnp.take_along_axis(p(x), LABELS[:, None], 1)), picked),
    "a column": (lambda x, p: wnp.log(p(x)[:, 2]), lambda x: jax.nn.log_softmax(x)[:, 2]),
    "columns": (lambda x, p: wnp.log(p(x)[:, 1:3]), lambda x: jax.nn.log_softmax(x)[:, 1:3]),
    "an element": (lambda x, p: wnp.log(p(x)[1, 3]), lambda x: jax.nn.log_softmax(x)[1, 3]),
    "take": (
        lambda x, p: wnp.log(wnp.take(p(x), wnp.asarray([0, 2]), axis=1)),
        lambda x: jax.nn.log_softmax(x)[:, jnp.array([0, 2])],
    ),
    "dynamic_slice": (
        lambda x, p: wnp.log(lax.dynamic_slice(p(x), (1, wnp.asarray(2)), (2, 1))),
        lambda x: jax.nn.log_softmax(x)[1:3, 2:3],
    ),
    "transposed": (lambda x, p: wnp.log(p(x).T[LABELS, wnp.arange(4)]), picked),
    "flat": (lambda x, p: wnp.log(p(x).reshape(-1)[wnp.arange(4) * 5 + LABELS]), picked),
    "stacked": (
        lambda x, p: wnp.log(wnp.stack([p(x)[0], p(x)[2]])),
        lambda x: jax.nn.log_softmax(x)[jnp.array([0, 2])],
    ),
    "one-hot times": (lambda x, p: (ONE_HOT * wnp.log(p(x))).sum(-1), picked),
    "times one-hot": (lambda x, p: wnp.log((p(x) * ONE_HOT).sum(-1)), picked),
    "times nn.one_hot": (lambda x, p: wnp.log((nn.one_hot(labels(), 5).astype(x.dtype) * p(x)).sum(1)), picked),
    "where": (lambda x, p: wnp.log(wnp.where(wnp.asarray(ONE_HOT) > 0, p(x), 0.0).sum(-1)), picked),
    "masked": (
        lambda x, p: (ONE_HOT * wnp.log(wnp.where(wnp.asarray(ONE_HOT) > 0, p(x), 1.0))).sum(-1),
        picked,
    ),
    "masked, the other way": (
        lambda x, p: (ONE_HOT * wnp.log(wnp.where(wnp.asarray(ONE_HOT) == 0, 1.0, p(x)))).sum(-1),
        picked,
    ),
    "einsum": (lambda x, p: wnp.log(wnp.einsum("ij,ij->i", nn.one_hot(labels(), 5), p(x))), picked),
    "vmap, index": (lambda x, p: weft.vmap(lambda r, k: wnp.log(p(r)[k]))(x, labels()), picked),
    "vmap, index last": (lambda x, p: weft.vmap(lambda r, k: wnp.log(p(r))[k])(x, labels()), picked),
    "vmap, product": (lambda x, p: weft.vmap(lambda r, o: wnp.log(p(r) @ o))(x, wnp.asarray(ONE_HOT)), picked),
    "vmap, dot": (
        lambda x, p: weft.vmap(lambda r, k: wnp.log(wnp.dot(p(r), nn.one_hot(k, 5))))(x, labels()),
        picked,
    ),
    "scan": (lambda x, p: lax.scan(lambda c, t: (c, wnp.log(p(t[0])[t[1]])), 0.0, (x, labels()))[1], picked),
    "jit": (lambda x, p: wnp.log(weft.jit(p)(x)[wnp.arange(4), LABELS]), picked),
    "checkpoint": (lambda x, p: wnp.log(weft.checkpoint(p)(x)[wnp.arange(4), LABELS]), picked),
    "log2": (lambda x, p: wnp.log2(p(x)[wnp.arange(4), LABELS]), lambda x: picked(x) / np.log(2)),
    "log10": (lambda x, p: wnp.log10(p(x)), lambda x: jax.nn.log_softmax(x) / np.log(10)),
    "the least": (lambda x, p: wnp.log(p(x).min(-1)), lambda x: jax.nn.log_softmax(x).min(-1)),
    "entropy": (lambda x, p: p(x) * wnp.log(p(x)), lambda x: jax.nn.softmax(x) * jax.nn.log_softmax(x)),
}


@pytest.mark.parametrize("softmax", SOFTMAX)
@pytest.mark.parametrize("loss", LOSSES)
def test_logarithms_of_probabilities(loss, softmax):
    f, reference = LOSSES[loss]
    of = lambda x: f(x, SOFTMAX[softmax])
    total = lambda x: -of(x).sum()
    for scale in (1, 200, -200):
        x = LOGITS * np.float32(scale)
        with jax.enable_x64(True):
            wide = jnp.asarray(x, jnp.float64)
            value = np.asarray(reference(wide))
            slope = np.asarray(jax.grad(lambda v: -reference(v).sum())(wide))
        np.testing.assert_allclose(np.ravel(weft.jit(of)(x)), np.ravel(value), rtol=2e-5, atol=2e-5)
        for g in (weft.grad(total), weft.jit(weft.grad(total)), weft.grad(weft.jit(total))):
            np.testing.assert_allclose(g(x), slope, rtol=2e-5, atol=2e-4)
        tangent = weft.jvp(total, (x,), (LOGITS,))[1]
        np.testing.assert_allclose(tangent, (slope * LOGITS).sum(), rtol=2e-4, atol=2e-3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("loss", ["indices", "times nn.one_hot", "a column"])
def test_logarithms_of_probabilities_in_every_dtype(loss, dtype):
    f, reference = LOSSES[loss]
    with weft.enable_x64(True), jax.enable_x64(True):
        x = wnp.asarray(LOGITS * 50).astype(dtype)
        want = np.asarray(reference(jnp.asarray(np.asarray(x.astype("float64")))))
        got = np.asarray(weft.jit(lambda v: f(v, plain))(x).astype("float64"))
        slope = np.asarray(weft.grad(lambda v: f(v, plain).sum())(x).astype("float64"))
    digits = {"float16": 4e-3, "bfloat16": 4e-2, "float32": 1e-5, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(np.ravel(got), np.ravel(want), rtol=digits, atol=digits)
    assert np.isfinite(slope).all()


def test_weights_of_exponentials_may_be_anything():
    x = np.array([300.0, -300.0, 10.0], np.float32)
    f = lambda w, v: wnp.log(wnp.sum(w * wnp.exp(v)))
    for w in ([0, 1, 0], [0, 0, 2], [1, 1, 1], [0.25, 0.5, 0.25], [0, 1e-20, 1e-30]):
        weights = np.array(w, np.float32)
        with jax.enable_x64(True):
            wide = jnp.asarray(weights, jnp.float64), jnp.asarray(x, jnp.float64)
            want = jax.scipy.special.logsumexp(wide[1], b=wide[0])
            slope = jax.grad(lambda v, b=wide[0]: jax.scipy.special.logsumexp(v, b=b))(wide[1])
        np.testing.assert_allclose(weft.jit(f)(weights, x), want, rtol=1e-6)
        np.testing.assert_allclose(weft.grad(f, 1)(weights, x), slope, rtol=1e-5, atol=1e-30)
    # What is differentiated is the weight, where it is 0 too.
    near = np.array([1.0, 2.0, 3.0], np.float32)
    weights = np.array([0.0, 1.0, 0.0], np.float32)
    np.testing.assert_allclose(weft.grad(f)(weights, near), np.exp(near - 2), rtol=1e-6)
    assert np.isneginf(weft.jit(f)(np.zeros(3, np.float32), x))


def test_products_of_exponentials():
    x, y = np.array([[300.0, -300.0], [-200.0, -250.0]], np.float32), np.array([[0.5, 1], [0.5, 3]], np.float32)
    f = weft.jit(lambda a, b: wnp.log(wnp.exp(a) @ b))
    wide = x.astype(np.float64)
    largest = wide.max(1, keepdims=True)
    np.testing.assert_allclose(f(x, y), largest + np.log(np.exp(wide - largest) @ y), rtol=1e-6)
    both = weft.jit(lambda a: wnp.log(wnp.exp(a) @ wnp.exp(a)))(x)
    want = np.logaddexp.reduce(wide[:, :, None] + wide[None, :, :], axis=1)
    np.testing.assert_allclose(both, want, rtol=1e-6, atol=1e-6)
    assert np.isfinite(weft.grad(lambda a: wnp.log(wnp.exp(a) @ y).sum())(x)).all()


CHOSEN = np.array([True, False, True])
MOVES = {
    "slice": lambda v: v[1:3],
    "element": lambda v: v[0],
    "indices": lambda v: v[wnp.asarray([2, 0, 0])],
    "transposed": lambda v: v[None, :].T,
    "repeated": lambda v: wnp.broadcast_to(v, (4, 3)),
    "reversed": lambda v: v[::-1],
    "joined": lambda v: wnp.concatenate([v, v]),
    "padded": lambda v: wnp.pad(v, (1, 1), constant_values=0.5),
    "chosen": lambda v: wnp.where(wnp.asarray(CHOSEN), v, 0.5),
    "not chosen": lambda v: wnp.where(~wnp.asarray(CHOSEN), 0.5, v),
}
FORMULAS = {
    "softplus": (lambda m, x: wnp.log(1 + m(wnp.exp(x))), lambda m, x: np.logaddexp(0, x)),
    "log of logistic": (lambda m, x: wnp.log(m(nn.sigmoid(x))), lambda m, x: -np.logaddexp(0, -x)),
    "log of complement": (lambda m, x: wnp.log(1 - m(nn.sigmoid(x))), lambda m, x: -np.logaddexp(0, x)),
    "log of exp": (lambda m, x: wnp.log(m(wnp.exp(x))), lambda m, x: x),
}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("formula", FORMULAS)
def test_formulas_of_what_is_moved(formula, move):
    f, exact = FORMULAS[formula]
    x = np.array([120.0, -120.0, 0.3], np.float32)
    moved = MOVES[move]
    # The truth is moved as the value is; numbers that a move brings along go through the formula.
    fixed = {"softplus": np.log(1.5), "log of complement": np.log(0.5)}.get(formula, np.log(0.5))
    numbers = lambda v: np.where(np.isnan(v), fixed, v)
    mark = {
        "padded": lambda v: np.pad(v, (1, 1), constant_values=np.nan),
        "chosen": lambda v: np.where(CHOSEN, v, np.nan),
        "not chosen": lambda v: np.where(CHOSEN, v, np.nan),
    }.get(move, lambda v: np.asarray(moved(wnp.asarray(v.astype(np.float32)))))
    want = numbers(mark(exact(moved, x.astype(np.float64))))
    np.testing.assert_allclose(weft.jit(lambda v: f(moved, v))(x), want, rtol=1e-6, atol=1e-7)
    for g in (weft.grad, lambda h: weft.jit(weft.grad(h)), lambda h: weft.grad(lambda v: weft.grad(h)(v).sum())):
        assert np.isfinite(g(lambda v: f(moved, v).sum())(x)).all()


# What leaves the last element out, at which the formula has an infinite derivative.
LESS = {
    "slice": lambda v: v[:-1],
    "element": lambda v: v[1],
    "indices": lambda v: v[wnp.asarray([1, 0, 0])],
    "dynamic_slice": lambda v: lax.dynamic_slice(v, (wnp.argmin(v) * 0,), (2,)),
    "of a reversed": lambda v: v[::-1][1:],
    "of a joined": lambda v: wnp.concatenate([v, v])[4:6],
    "negative pad": lambda v: lax.pad(v, wnp.asarray(0, v.dtype), [(0, -1, 0)]),
    "updated": lambda v: lax.dynamic_update_slice(v, v[:1] * 0 + 0.5, (3,)),
    "nothing": lambda v: v[wnp.asarray([], dtype="int32")],
    "mask": lambda v: wnp.where(wnp.asarray([True, True, True, False]), v, 0.5),
}
SINGULAR_THERE = {
    "log": (lambda m, x: wnp.log(m(1 - x)), lambda x: -1 / (1 - x)),
    "log of a square": (lambda m, x: wnp.log(m(1 - x**2)), lambda x: -2 * x / (1 - x**2)),
    "log of a sum": (lambda m, x: wnp.log(m(1 - wnp.cumsum(x * 0 + 0.2) - (x - 0.2))), None),
    "root": (lambda m, x: wnp.sqrt(m(1 - x * x)), lambda x: -x / np.sqrt(1 - x * x)),
    "root of a difference": (lambda m, x: wnp.sqrt(m((1 - x) * (1 + x))), lambda x: -x / np.sqrt(1 - x * x)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("less", LESS)
@pytest.mark.parametrize("formula", SINGULAR_THERE)
def test_elements_that_are_left_out_have_no_derivative(formula, less, dtype):
    f, slope = SINGULAR_THERE[formula]
    with weft.enable_x64(True):
        x = np.array([0.25, 0.5, 0.125, 1.0], dtype)
        taken = weft.grad(lambda v: wnp.sum(LESS[less](v)))(x)  # how often
        for g in (weft.grad, lambda h: weft.jit(weft.grad(h)), lambda h: weft.grad(weft.jit(h))):
            found = np.asarray(g(lambda v: wnp.sum(f(LESS[less], v)))(x))
            assert np.isfinite(found).all()
            if slope is not None:
                want = np.append(slope(x[:-1].astype(float)), 0) * np.asarray(taken)
                np.testing.assert_allclose(found, want, rtol=1e-5)


# y = exp(x) here, a function of y there.
ACROSS = {
    "checkpoint inside": lambda x: wnp.log(1 + weft.checkpoint(wnp.exp)(x)),
    "checkpoint outside": lambda x: weft.checkpoint(lambda y: wnp.log(1 + y))(wnp.exp(x)),
    "jit inside": lambda x: wnp.log(1 + weft.jit(wnp.exp)(x)),
    "both branches": lambda x: wnp.log(1 + lax.cond(x.sum() > 1e3, lambda v: wnp.exp(2 * v), wnp.exp, x)),
    "one branch": lambda x: wnp.log(1 + lax.cond(x.sum() > 1e3, lambda v: v * v, wnp.exp, x)),
    "inside of branches": lambda x: (lambda y: lax.cond(x.sum() > 1e3, lambda: wnp.log(2 + y), lambda: wnp.log(1 + y)))(
        wnp.exp(x)
    ),
    "inside of three": lambda x: (
        lambda y: lax.switch(wnp.asarray(1), [lambda: y, lambda: wnp.log(1 + y), lambda: wnp.log(2 + y)])
    )(wnp.exp(x)),
    "a constant of a scan": lambda x: (
        lambda y: lax.scan(lambda c, _: (c + wnp.log(1 + y), None), wnp.zeros(3), None, length=1)[0]
    )(wnp.exp(x)),
    "slices of a scan": lambda x: lax.scan(lambda c, y: (c, wnp.log(1 + y)), 0.0, wnp.exp(x))[1],
    "results of a scan": lambda x: wnp.log(1 + lax.scan(lambda c, v: (c, wnp.exp(v)), 0.0, x)[1]),
    "results of map": lambda x: wnp.log(1 + lax.map(wnp.exp, x)),
    "fori_loop": lambda x: (lambda y: lax.fori_loop(0, 1, lambda i, c: c + wnp.log(1 + y), wnp.zeros(3)))(wnp.exp(x)),
    "nested": lambda x: (
        lambda y: lax.scan(
            lambda c, _: (lax.cond(c.sum() > 9e9, lambda: c, lambda: wnp.log(1 + y)), None),
            wnp.zeros(3),
            None,
            length=2,
        )[0]
    )(wnp.exp(x)),
}


@pytest.mark.parametrize("case", ACROSS)
def test_formulas_across_regions(case):
    f = ACROSS[case]
    x = np.array([120.0, -120.0, 0.3], np.float32)
    want = 1 / (1 + np.exp(-x.astype(np.float64)))
    np.testing.assert_allclose(weft.jit(f)(x), np.logaddexp(0, x.astype(np.float64)), rtol=1e-6, atol=1e-30)
    for g in (weft.grad(lambda v: f(v).sum()), weft.jit(weft.grad(lambda v: f(v).sum()))):
        np.testing.assert_allclose(g(x), want, rtol=1e-5, atol=1e-30)
    assert np.isfinite(weft.grad(lambda v: weft.grad(lambda u: f(u).sum())(v).sum())(x)).all()
    batch = np.stack([x, -x])
    np.testing.assert_allclose(
        weft.vmap(weft.grad(lambda v: f(v).sum()))(batch),
        [want, 1 / (1 + np.exp(x.astype(np.float64)))],
        rtol=1e-5,
        atol=1e-30,
    )


SINGULAR = {
    "sqrt": wnp.sqrt,
    "log": wnp.log,
    "reciprocal": lambda v: 1 / v,
    "x/x": lambda v: v / v,
    "power": lambda v: v**0.3,
    "rsqrt": lax.rsqrt,
    "logarithm of a product": lambda v: wnp.log(v * wnp.cosh(v)),
    "logarithm of a quotient": lambda v: wnp.log(v / wnp.cosh(v)),
}
# What an operand of an operation with regions is computed by is one function there.
ONE_FUNCTION = {"inside of branches", "slices of a scan", "predicate of a scan"}
# The value of f where x is positive, and 0 elsewhere.
GUARDS = {
    "directly": lambda f, x: wnp.where(x > 0, f(x), 0.0),
    "where in where": lambda f, x: wnp.where(x > 0, wnp.where(x < 9, f(x), 1.0), 0.0),
    "concatenate": lambda f, x: wnp.where(wnp.concatenate([x, x]) > 0, wnp.concatenate([f(x), f(x)]), 0.0),
    "stack": lambda f, x: wnp.where((x > 0)[:, None], wnp.stack([f(x), 2 * f(x)], -1), 0.0),
    "stack of elements": lambda f, x: wnp.where(x > 0, wnp.stack([f(x[i]) for i in range(4)]), 0.0),
    "stack of choices": lambda f, x: wnp.stack([wnp.where(x[i] > 0, f(x[i]), 0.0) for i in range(4)]),
    "gather": lambda f, x: wnp.where(x[wnp.asarray([1, 0, 3])] > 0, f(x)[wnp.asarray([1, 0, 3])], 0.0),
    "slice": lambda f, x: wnp.where(x[1:] > 0, f(x)[1:], 0.0),
    "dynamic_slice": lambda f, x: wnp.where(x[:3] > 0, lax.dynamic_slice(f(x), (wnp.asarray(0),), (3,)), 0.0),
    "reverse": lambda f, x: wnp.where(x[::-1] > 0, f(x)[::-1], 0.0),
    "broadcast": lambda f, x: wnp.where((x > 0)[:, None], wnp.broadcast_to(f(x)[:, None], (4, 3)), 0.0),
    "transpose": lambda f, x: wnp.where((x > 0).reshape(2, 2).T, f(x).reshape(2, 2).T, 0.0),
    "pad": lambda f, x: wnp.where(x > 0, wnp.pad(f(x), (1, 1))[1:-1], 0.0),
    "sum": lambda f, x: wnp.where((x.reshape(2, 2) > 0).all(1), f(x.reshape(2, 2)).sum(1), 0.0),
    "scatter": lambda f, x: wnp.where(x > 0, wnp.zeros(4).at[wnp.arange(4)].set(f(x)), 0.0),
    "update": lambda f, x: wnp.where(x > 0, wnp.zeros(4).at[1:3].set(f(x)[1:3]), 0.0),
    "both branches": lambda f, x: wnp.where(x > 0, lax.cond(x.sum() > 0, f, lambda v: 2 * f(v), x), 0.0),
    "one branch": lambda f, x: wnp.where(x > 0, lax.cond(x.sum() > 0, f, lambda v: v, x), 0.0),
    "inside of branches": lambda f, x: (
        lambda y: lax.cond(x.sum() > 0, lambda: wnp.where(x > 0, y, 0.0), lambda: wnp.where(x > 0, 2 * y, 0.0))
    )(f(x)),
    "results of a scan": lambda f, x: wnp.where(x > 0, lax.scan(lambda c, t: (c, f(t)), 0.0, x)[1], 0.0),
    "carry of a scan": lambda f, x: wnp.where(x > 0, lax.fori_loop(0, 2, lambda i, c: c + f(x), wnp.zeros(4)), 0.0),
    "carry that is read": lambda f, x: wnp.where(x > 0, lax.fori_loop(0, 1, lambda i, c: f(c), x), 0.0),
    "slices of a scan": lambda f, x: lax.scan(lambda c, t: (c, wnp.where(t[0] > 0, t[1], 0.0)), 0.0, (x, f(x)))[1],
    "predicate of a scan": lambda f, x: lax.scan(lambda c, t: (c, wnp.where(t[1], t[0], 0.0)), 0.0, (f(x), x > 0))[1],
    "map": lambda f, x: wnp.where(x > 0, lax.map(f, x), 0.0),
    "vmap": lambda f, x: wnp.where(x > 0, weft.vmap(f)(x), 0.0),
    "jit": lambda f, x: wnp.where(x > 0, weft.jit(f)(x), 0.0),
    "checkpoint": lambda f, x: wnp.where(x > 0, weft.checkpoint(f)(x), 0.0),
    "vmap of cond": lambda f, x: weft.vmap(lambda t: lax.cond(t > 0, f, lambda v: 0.0 * v, t))(x),
    "select": lambda f, x: wnp.select([x > 5, x > 0], [x, f(x)], 0.0),
}


@pytest.mark.parametrize(
    ("guard", "function"),
    [(g, f) for g in GUARDS for f in SINGULAR if not (g in ONE_FUNCTION and f.startswith("logarithm of"))],
)
def test_guards_hold_through_what_lies_between(guard, function):
    f, w = SINGULAR[function], GUARDS[guard]
    inside, x = np.array([2.0, 1.5, 3.0, 4.0], np.float32), np.array([0.0, -1.0, 0.0, 4.0], np.float32)
    total = lambda v: w(f, v).sum()
    for g in (
        weft.grad(total),
        weft.jit(weft.grad(total)),
        weft.grad(lambda v: weft.grad(total)(v).sum()),
        lambda v: weft.jvp(total, (v,), (wnp.ones(4),))[1],
        lambda v: weft.vmap(weft.grad(total))(wnp.stack([v, v])),
    ):
        assert np.isfinite(np.asarray(g(x))).all()
    # Where all is taken, nothing changes: as without a stable form.
    step = 1e-3
    near = np.asarray(weft.grad(total)(inside), np.float64)
    for i in range(4):
        e = np.eye(4, dtype=np.float32)[i] * np.float32(step)
        slope = (float(total(inside + e)) - float(total(inside - e))) / (2 * step)
        np.testing.assert_allclose(near[i], slope, rtol=2e-2, atol=1e-2)


@pytest.mark.parametrize("size", [1e-20, 1.0, 1e20])
@pytest.mark.parametrize("of", ["alone", "product", "quotient"])
def test_geometric_means_keep_their_digits(of, size):
    join = {"alone": lambda x, y: x, "product": lambda x, y: x * y, "quotient": lambda x, y: x / y}[of]
    y = np.array([0.5, 1.25, 2.0, 0.75, 0.375], np.float32)
    x = (np.array([0.3, 1.7, 0.9, 2.2, 1.1]) * size).astype(np.float32)
    mean = lambda x, y: wnp.exp(wnp.mean(wnp.log(join(x, y))))
    want = np.exp(np.mean(np.log(join(x.astype(float), y.astype(float)))))
    np.testing.assert_allclose(weft.jit(mean)(x, y), want, rtol=3e-7)
    np.testing.assert_allclose(weft.grad(mean)(x, y), want / 5 / x.astype(float), rtol=1e-6)


NORMS = {
    "of all": lambda x: wnp.where(wnp.sum(x * x) > 0, wnp.linalg.norm(x), 0.0),
    "direction": lambda x: wnp.where(wnp.sum(x * x) > 0, x / wnp.linalg.norm(x), 0.0).sum(),
    "by the norm": lambda x: wnp.where(wnp.linalg.norm(x) > 0, x / wnp.linalg.norm(x), wnp.zeros(4)).sum(),
    "rows": lambda x: wnp.where(
        wnp.sum(x.reshape(2, 2) ** 2, 1, keepdims=True) > 0,
        x.reshape(2, 2) / wnp.linalg.norm(x.reshape(2, 2), axis=1, keepdims=True),
        0.0,
    ).sum(),
    "kept away twice": lambda x: wnp.where(
        wnp.sum(x * x) > 0, wnp.sqrt(wnp.where(wnp.sum(x * x) > 0, wnp.sum(x * x), 1.0)), 0.0
    ),
    "kept away": lambda x: wnp.sqrt(wnp.where(wnp.sum(x * x) > 0, wnp.sum(x * x), 1.0)),
    "a quotient kept away": lambda x: (1 / wnp.where(x > 0, wnp.exp(x) - 1, 1.0)).sum(),
    "a logarithm kept away": lambda x: wnp.log(wnp.where(x != 0, x**2, 1.0)).sum(),
    "pairs": lambda x: wnp.where(~wnp.eye(4, dtype=bool), wnp.sqrt((x[:, None] + 1 - x[None]) ** 2), 0.0).sum(),
}


@pytest.mark.parametrize("norm", NORMS)
def test_guarded_norms(norm):
    zero = np.zeros(4, np.float32)
    for g in (
        weft.grad(NORMS[norm]),
        weft.jit(weft.grad(NORMS[norm])),
        weft.grad(lambda v: weft.grad(NORMS[norm])(v).sum()),
    ):
        assert np.isfinite(np.asarray(g(zero))).all()
