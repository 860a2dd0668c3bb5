"""Work that jitted programs save (docs/products.md): values, derivatives and batches of programs as people write them,
beside NumPy in f64, and what is left of them."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft
import weft.lax
import weft.nn
import weft.numpy as wnp

RNG = np.random.default_rng(3)
N = 40


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


A, B, C, V, W = normal(N, N), normal(N, N), normal(N, N), normal(N), normal(N)
ROWS = np.array([3, -1, 0, 39, 3], np.int32)
PERMUTED = np.random.default_rng(5).permutation(N).astype(np.int32)
TABLE = normal(200, N)


def permuted(np, x):
    return x[:, None] * np.ones((N, 7), np.float32)


def loop(lib, n, body, first):
    return lib.lax.fori_loop(0, n, body, first) if lib is not None else _trips(n, body, first)


def _trips(n, body, first):
    for i in range(n):
        first = body(i, first)
    return first


def scan(lib, step, first, xs):
    if lib is not None:
        return lib.lax.scan(step, first, xs)
    ys = []
    for x in xs:
        first, y = step(first, x)
        ys.append(y)
    return first, None if ys[0] is None else np.stack(ys)


def rows_of(lib, f, xs):
    return lib.lax.map(f, xs) if lib is not None else np.stack([f(x) for x in xs])


# name -> (function of the module of arrays, the library (None for NumPy) and operands; operands; rules that it needs)
PROGRAMS = {
    "(A@B)@v": (lambda np, lib, a, b, v: (a @ b) @ v, (A, B, V), ["product-order"]),
    "v@(A@B)": (lambda np, lib, a, b, v: v @ (a @ b), (A, B, V), ["product-order"]),
    "A@B@C@v": (lambda np, lib, a, b, c, v: a @ b @ c @ v, (A, B, C, V), ["product-order"]),
    "thin chain": (lambda np, lib, a, b, c: a @ b @ c, (A[:, :3], B[:3], C[:, :3]), ["product-order"]),
    "x.T@A@B@x": (lambda np, lib, a, b, v: v.T @ (a @ b) @ v, (A, B, V), ["product-order"]),
    "stack of products": (lambda np, lib, a, v: (a @ a) @ v, (normal(3, N, N), normal(3, N, 1)), ["product-order"]),
    "outer@A": (lambda np, lib, u, v, a: np.outer(u, v) @ a, (V, W, A), ["product-order"]),
    "outer@w": (lambda np, lib, u, v: np.outer(u, v) @ u, (V, W), ["product-order"]),
    "kron@v": (lambda np, lib, a, b, v: np.kron(a, b) @ v, (A[:8, :8], B[:5, :5], V), ["product-order"]),
    "einsum": (lambda np, lib, a, b, v: np.einsum("ij,jk,k->i", a, b, v), (A, B, V), ["product-order"]),
    "diag@A": (lambda np, lib, d, a: np.diag(d) @ a, (V, A), ["product-order"]),
    "A@diag": (lambda np, lib, d, a: a @ np.diag(d), (V, A), ["product-order"]),
    "A@diag@B": (lambda np, lib, d, a, b: a @ np.diag(d) @ b, (V, A, B), []),
    "eye@A": (lambda np, lib, a: np.eye(N, dtype=np.float32) @ a, (A,), ["product-order"]),
    "tril@A": (lambda np, lib, a: np.tril(np.ones((N, N), np.float32)) @ a, (A,), ["product-order"]),
    "triu@A": (lambda np, lib, a: np.triu(np.ones((N, N), np.float32)) @ a, (A,), ["product-order"]),
    "A@tril": (lambda np, lib, a: a @ np.tril(np.ones((N, N), np.float32)), (A,), ["product-order"]),
    "strict triangle": (lambda np, lib, a: np.tril(np.ones((N, N), np.float32), -1) @ a, (A,), []),
    "one-hot": (
        lambda np, lib, t: (ROWS[:, None] == np.arange(200)).astype(np.float32) @ t,
        (TABLE,),
        ["product-order"],
    ),
    "trace": (lambda np, lib, a, b: np.trace(a @ b), (A, B), ["product-diagonal"]),
    "trace of three": (lambda np, lib, a, b, c: np.trace(a @ b @ c), (A, B[:, :2], C[:2]), ["product-diagonal"]),
    "diag of product": (lambda np, lib, a, b: np.diag(a @ b), (A, B), ["product-diagonal"]),
    "row norms": (lambda np, lib, a: np.diag(a @ a.T), (A,), ["product-diagonal"]),
    "trace of kron": (
        lambda np, lib, a, b: np.trace(np.kron(a, b)),
        (A[:8, :8], B[:5, :5]),
        ["product-diagonal"],
    ),
    "diag of kron": (lambda np, lib, a, b: np.diag(np.kron(a, b)), (A[:8, :8], B[:5, :5]), ["product-diagonal"]),
    "kron of three": (
        lambda np, lib, a, b, c: np.trace(np.kron(np.kron(a, b), c)),
        (A[:4, :4], B[:3, :3], C[:5, :5]),
        [],
    ),
    "trace of products of kron": (
        lambda np, lib, a, b: np.trace(np.kron(a, b) @ np.kron(b, a).T),
        (A[:6, :6], B[:6, :6]),
        [],
    ),
    "AB+AC": (lambda np, lib, a, b, c: a @ b + a @ c, (A, B, C), ["product-common-factor"]),
    "AC-BC": (lambda np, lib, a, b, c: a @ c - b @ c, (A, B, C), ["product-common-factor"]),
    "low rank": (lambda np, lib, a, u, v: (a + np.outer(u, v)) @ v, (A, V, W), ["product-of-sum"]),
    "sum of outer": (lambda np, lib, u, v: np.sum(np.outer(u, v)), (V, W), ["product-sum"]),
    "by broadcasting": (lambda np, lib, a, b: np.sum(a[:, :, None] * b[None], 1), (A, B), []),
    "sum(0)": (lambda np, lib, a, b: (a @ b).sum(0), (A, B), ["product-sum"]),
    "sum(1)": (lambda np, lib, a, b: (a @ b).sum(1), (A, B), ["product-sum"]),
    "mean": (lambda np, lib, a, b: (a @ b).mean(), (A, B), ["product-sum"]),
    "sum of repeated": (lambda np, lib, x: np.sum(np.repeat(x, 100)), (V,), ["reduce-repeated"]),
    "sum of tiles": (lambda np, lib, x: np.sum(np.tile(x, 100)), (V,), ["reduce-repeated"]),
    "inv@b": (
        lambda np, lib, a, b: np.linalg.inv(a + 9 * np.eye(N, dtype=np.float32)) @ b,
        (A, V),
        ["product-of-solution"],
    ),
    "b@inv": (
        lambda np, lib, a, b: b @ np.linalg.inv(a + 9 * np.eye(N, dtype=np.float32)),
        (A, V),
        ["product-of-solution"],
    ),
    "solve@v": (
        lambda np, lib, a, b, v: np.linalg.solve(a + 9 * np.eye(N, dtype=np.float32), b) @ v,
        (A, B, V),
        ["product-of-solution"],
    ),
    "powers": (lambda np, lib, a: (lambda s: s @ s @ s @ s @ s @ s)(a / 6), (A,), ["power-by-squaring"]),
    "x*x*x*x": (lambda np, lib, x: x * x * x * x, (V,), ["power-by-squaring"]),
    "stacked dots": (
        lambda np, lib, x: np.stack([np.stack([x[i] @ x[j] for j in range(5)]) for i in range(5)]),
        (A[:5],),
        ["stack-of-products"],
    ),
    "row": (lambda np, lib, a, b: (a @ b)[5], (A, B), ["part-of-sum"]),
    "last row": (lambda np, lib, a, b: (a @ b)[-1], (A, B), ["part-of-sum"]),
    "columns": (lambda np, lib, a, b: (a @ b)[:, 3:9:2], (A, B), ["part-of-sum"]),
    "element": (lambda np, lib, a, b: (a @ b)[5, 7], (A, B), ["part-of-sum"]),
    "rows": (lambda np, lib, a, b: (a @ b)[ROWS], (A, B), ["rows-of-sum"]),
    "f of a row": (lambda np, lib, a, b, v: np.tanh((a @ b) / 6 + v)[2], (A, B, V), ["part-of-sum"]),
    "f of a slice": (lambda np, lib, x: np.exp(np.sin(x))[3:11], (V,), ["part-of-sum"]),
    "reversed": (lambda np, lib, x: np.exp(x)[::-1][2:5], (V,), ["part-of-sum"]),
    "of a concatenation": (
        lambda np, lib, x, y: np.concatenate([np.sin(x), np.cos(y)])[35:47],
        (V, np.tile(W, 3)),
        [],
    ),
    "f of a table": (lambda np, lib, t: np.tanh(t)[ROWS], (TABLE,), ["rows-of-sum"]),
    "normalised rows": (
        lambda np, lib, t: (t / np.sqrt(np.sum(t * t, 1, keepdims=True)))[ROWS],
        (TABLE,),
        ["rows-of-sum"],
    ),
    "last of cumsum": (lambda np, lib, x: np.cumsum(x)[-1], (V,), ["part-of-sum"]),
    "first of cumsum": (lambda np, lib, x: np.cumsum(np.sin(x))[:9], (V,), ["part-of-sum"]),
    "least": (lambda np, lib, x: np.sort(x)[0], (V,), ["part-of-sorted"]),
    "largest": (lambda np, lib, x: np.sort(x)[::-1][0], (V,), ["part-of-sorted"]),
    "largest of rows": (lambda np, lib, x: np.sort(x, 0)[-1], (A,), ["part-of-sorted"]),
    "sum of sorted": (lambda np, lib, x: np.sum(np.sort(x)), (V,), ["reduce-sorted"]),
    "repeated": (lambda np, lib, x: np.exp(np.repeat(x, 5)), (V,), ["function-of-repeated"]),
    "spread": (lambda np, lib, x: np.tanh(permuted(np, x) * 1), (V,), ["function-of-repeated"]),
    "dot by scan": (
        lambda np, lib, x, y: scan(lib, lambda c, t: (c + t * 2, None), np.float32(1), x * y)[0],
        (V, W),
        ["loop-without-trips"],
    ),
    "sum by loop": (
        lambda np, lib, x: loop(lib, N, lambda i, s: s + x[i], np.float32(0)),
        (V,),
        ["loop-without-trips"],
    ),
    "prefix sums": (
        lambda np, lib, x: scan(lib, lambda c, t: (c + t, c + t), np.float32(2), x)[1],
        (V,),
        ["loop-without-trips"],
    ),
    "largest by scan": (
        lambda np, lib, x: scan(lib, lambda c, t: (np.maximum(c, t), None), np.float32(-9), x)[0],
        (V,),
        ["loop-without-trips"],
    ),
    "difference by scan": (
        lambda np, lib, x: scan(lib, lambda c, t: (c - t, None), np.float32(1), x)[0],
        (V,),
        ["loop-without-trips"],
    ),
    "rows by map": (lambda np, lib, x, w: rows_of(lib, lambda r: np.tanh(r @ w), x), (A, B), ["loop-without-trips"]),
    "Gram by maps": (
        lambda np, lib, x: rows_of(lib, lambda r: rows_of(lib, lambda s: r @ s, x), x),
        (A,),
        ["loop-without-trips"],
    ),
    "covariance by scan": (
        lambda np, lib, x: scan(lib, lambda c, r: (c + np.outer(r, r), None), np.zeros((N, N), np.float32), x)[0],
        (A,),
        ["loop-without-trips"],
    ),
    "powers by loop": (
        lambda np, lib, a: loop(lib, 11, lambda i, p: p @ (a / 6), np.eye(N, dtype=np.float32)),
        (A,),
        ["loop-without-trips"],
    ),
    "x**7 by loop": (
        lambda np, lib, x: loop(lib, 7, lambda i, p: p * x, np.ones_like(x)),
        (V,),
        ["loop-without-trips"],
    ),
    "a loop that adds a constant": (
        lambda np, lib, x: loop(lib, 7, lambda i, p: p + x, x),
        (V,),
        ["loop-without-trips"],
    ),
    "a product transposed again": (
        lambda np, lib, a, b: a @ b * 3 + (b.T @ a.T).T,
        (A, B),
        ["transposed-product"],
    ),
    "a product of permuted rows": (lambda np, lib, a, v: a[PERMUTED] @ v, (A, V), ["product-of-rows"]),
    "a vector times permuted columns": (lambda np, lib, a, v: v @ a[:, PERMUTED], (A, V), ["product-of-rows"]),
    "the last of what is stacked": (
        lambda np, lib, x, w: scan(lib, lambda c, t: (np.tanh(w @ c + t), np.exp(np.outer(c, c))), x, x)[1][-1],
        (V, A / 9),
        ["last-trip-alone"],
    ),
    "the last of what is stacked, without carry": (
        lambda np, lib, x, w: scan(
            lib, lambda c, t: (np.sin(c * t.sum()), np.sort(np.outer(w * t, w), 0)), np.float32(1), x
        )[1][-1],
        (A, V),
        ["last-trip-alone"],
    ),
    "recurrent": (
        lambda np, lib, xs, w, u: scan(
            lib, lambda h, x: (np.tanh(x @ w + h @ u) * np.tanh(h @ w - x @ u), h), w[0], xs
        )[1],
        (A / 9, B / 9, C / 9),
        ["product-before-loop", "vector-product-as-sum"],
    ),
    "recurrent, of two rows": (
        lambda np, lib, xs, w, u: scan(
            lib, lambda h, x: (np.tanh(x @ w + h @ u) * np.tanh(h @ w - x @ u), h), w[:2], xs
        )[1],
        (A.reshape(20, 2, N) / 9, B / 9, C / 9),
        ["product-before-loop", "products-of-one-operand"],
    ),
    "recurrent, with its weights in the carry": (
        lambda np, lib, xs, w, u: scan(
            lib,
            lambda c, x: (lambda h, w, u: ((np.tanh(x @ w + h @ u) * np.tanh(h @ w), w, u), h))(*c),
            (w[0], w, u),
            xs,
        )[1],
        (A / 9, B / 9, C / 9),
        ["constant-carry", "product-before-loop"],
    ),
    "products summed up by a recurrence": (
        lambda np, lib, xs: scan(
            lib,
            lambda c, x: (lambda h: ((h, c[1] + h.T @ x, c[2] - x.sum(0)), h[0]))(np.tanh(c[0] * 0.5 + x)),
            (xs[0], np.ones((10, 10), np.float32), xs[0, 0]),
            xs,
        )[0][1],
        (A.reshape(N, 4, 10),),
        ["sum-after-loop"],
    ),
    "a loop of one trip": (
        lambda np, lib, xs: scan(lib, lambda c, x: (np.sin(c * x), c + x), xs[1], xs[:1])[1],
        (A,),
        ["few-trips"],
    ),
    "a function of a table, by columns": (
        lambda np, lib, t: np.take(np.exp(t), PERMUTED[:5], axis=1),
        (A,),
        ["elements-of-value"],
    ),
    "a function of a table, by elements": (
        lambda np, lib, t, u: (np.exp(t) * u)[PERMUTED[:5], PERMUTED[2:7]],
        (A, B),
        ["elements-of-value"],
    ),
    "a function of a table, an element of each row": (
        lambda np, lib, t: np.take_along_axis(1 + np.exp(t), PERMUTED[:, None], 1),
        (A,),
        ["elements-of-value"],
    ),
    "an element at a number": (lambda np, lib, t: np.take(t, 3, axis=1) * 2, (A,), ["elements-at-number"]),
    "the largest by an order": (lambda np, lib, x: np.take(np.sort(x), -1), (V,), ["part-of-sorted"]),
    "sums of rows of other shapes": (
        lambda np, lib, a: np.sum(np.reshape(a, (1, *a.shape, 1)), axis=2),
        (A,),
        ["reduce-reshape"],
    ),
    "product of what is transposed": (lambda np, lib, a: np.prod(a.T[:3], 0), (A[:, :5] + 1,), []),
    "a loop that needs its trips": (lambda np, lib, x: loop(lib, 7, lambda i, p: np.sin(p + x[i]), x), (V,), []),
}


def runs(name, module, lib):
    function = PROGRAMS[name][0]
    return lambda *x: function(module, lib, *x)


def applied(f, *x) -> set[str]:
    f(*x)
    return {rule for version in f.explain("rules") for rule, _ in version["rules"]}


def exact(name, operands):
    return np.asarray(runs(name, np, None)(*[np.asarray(x, np.float64) for x in operands]))


def near(got, want):
    scale = max(1.0, float(np.max(np.abs(want))))
    np.testing.assert_allclose(np.asarray(got, np.float64), want, atol=3e-5 * scale, rtol=0)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_rules(name):
    _, operands, rules = PROGRAMS[name]
    f = weft.jit(runs(name, wnp, weft))
    near(f(*operands), exact(name, operands))
    assert set(rules) <= applied(f, *operands)
    plain = weft.jit(runs(name, wnp, weft), licence="exact")
    near(plain(*operands), exact(name, operands))


@pytest.mark.parametrize("name", PROGRAMS)
def test_batches(name):
    _, operands, _ = PROGRAMS[name]
    stacks = [np.stack([x, x[..., ::-1] * np.float32(0.5), x]) for x in operands]
    got = weft.jit(weft.vmap(runs(name, wnp, weft)))(*stacks)
    for k in range(3):
        near(got[k], exact(name, [s[k] for s in stacks]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name):
    _, operands, _ = PROGRAMS[name]
    weights = np.asarray(np.random.default_rng(1).standard_normal(exact(name, operands).shape))

    def total(*x):
        return wnp.sum(runs(name, wnp, weft)(*x) * weights.astype(np.float32))

    direction = [np.random.default_rng(2).standard_normal(x.shape) for x in operands]
    step = 1e-6
    ends = [np.sum(exact(name, [x + s * step * d for x, d in zip(operands, direction)]) * weights) for s in (1.0, -1.0)]
    want = (ends[0] - ends[1]) / (2 * step)
    for gradient in (
        weft.jit(weft.grad(total, argnums=tuple(range(len(operands))))),
        weft.grad(total, tuple(range(len(operands)))),
    ):
        found = [np.asarray(g, np.float64) for g in gradient(*operands)]
        got = sum(np.sum(g * d) for g, d in zip(found, direction))
        size = sum(np.sum(np.abs(g * d)) for g, d in zip(found, direction))
        assert abs(got - want) <= 2e-4 * max(size, 1.0)


def products_in(f, *x) -> int:
    return len(re.findall(r"= contract", f.lower(*x).stage("optimized")))


def test_gradients_of_reordered_products_hold_no_product_of_matrices():
    gradient = weft.jit(weft.grad(lambda a, b, v: wnp.sum(wnp.sin((a @ b) @ v)), argnums=(0, 1, 2)))
    text = gradient.lower(A, B, V).stage("optimized")
    for found in re.findall(r'contract\[spec="(\w+),(\w+)->', text):
        assert min(map(len, found)) == 1, text


def test_what_is_read_elsewhere_is_not_taken_apart():
    f = weft.jit(lambda a, b, v: (lambda c: (c, c @ v))(a @ b))
    assert products_in(f, A, B, normal(N, 2)) == 2
    for factor in (V, normal(N, 2)):
        assert "product-order" not in applied(f, A, B, factor)


def test_regions():
    a, b = A / 9, B / 9  # so that roundings do not grow from trip to trip

    def body(c, x):
        return wnp.tanh((a @ (b @ c[:, None] * x)) @ wnp.ones((1,), wnp.float32)), (wnp.outer(c, c) @ c)[0]

    def step(c, x):
        return weft.lax.cond(x > 0, lambda: body(c, x), lambda: (c, (a @ b)[0, 0]))

    f = weft.jit(lambda c, xs: weft.lax.scan(step, c, xs))
    got = f(V, W)
    plain = weft.jit(lambda c, xs: weft.lax.scan(step, c, xs), licence="exact")(V, W)
    for x, y in zip(got, plain):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-3)
    assert "product-order" in applied(f, V, W)


def test_a_branch_computes_what_it_alone_reads():
    def f(p, a, b):
        c = a @ b
        return weft.lax.cond(p, lambda: wnp.tanh(c), lambda: a)

    A, B = normal(80, 80) / 9, normal(80, 80)
    jitted = weft.jit(f)
    for p in (True, False):
        np.testing.assert_allclose(jitted(p, A, B), np.tanh(A @ B) if p else A, rtol=1e-4, atol=1e-5)
    assert "sink-into-branch" in applied(jitted, True, A, B)
    head = jitted.lower(True, A, B).stage("optimized").split("cond")[0]
    assert "contract" not in head
    # What both read stays.
    both = weft.jit(lambda p, a, b: (lambda c: weft.lax.cond(p, lambda: c, lambda: -c))(a @ b))
    assert "sink-into-branch" not in applied(both, True, A, B)


def test_what_one_branch_reads_sinks_with_all_that_leads_to_it():
    """Also what is read twice on the way, as the factors of a square are."""

    def f(p, x):
        dear = x
        for _ in range(3):
            dear = wnp.tanh(dear @ dear / 100)
        return weft.cond(p, lambda: dear.sum(), lambda: x.sum())

    x = np.random.default_rng(0).random((80, 80), dtype=np.float32)
    before = [o.primitive for o in weft.make_ir(f)(True, x).optimized().walk(regions=False)]
    assert "contract" not in before and "tanh" not in before
    want = x.astype(np.float64)
    for _ in range(3):
        want = np.tanh(want @ want / 100)
    np.testing.assert_allclose(weft.jit(f)(True, x), want.sum(), rtol=1e-5)
    np.testing.assert_allclose(weft.jit(f)(False, x), x.sum(dtype=np.float64), rtol=1e-5)

    def keeps(p, x):  # a part of what is computed on the way is read elsewhere
        first = wnp.tanh(x @ x)
        second = wnp.tanh(first @ first)
        return weft.cond(p, lambda: second.sum(), lambda: x.sum()), first

    before = [o.primitive for o in weft.make_ir(keeps)(True, x).optimized().walk(regions=False)]
    assert before.count("contract") == 1


def test_a_carry_that_never_changes():
    def step(c, _):
        w, x = c
        return (w, wnp.tanh((w @ w) @ wnp.sin(x))), None

    f = weft.jit(lambda w, x: weft.lax.scan(step, (w, x), None, length=5)[0])
    w, x = f(A / 9, V)
    np.testing.assert_array_equal(w, A / np.float32(9))
    want = V.astype(np.float64)
    for _ in range(5):
        want = np.tanh((A / 9.0) @ (A / 9.0) @ np.sin(want))
    np.testing.assert_allclose(x, want, rtol=1e-4, atol=1e-4)
    assert "constant-carry" in applied(f, A / 9, V)


_LONG = np.linspace(0.1, 1, 5000, dtype=np.float32)
# Loops with a condition: (program of x and y, in which exp(y) is the same in every trip; what NumPy says).
CONSTANTS_OF_WHILE = {
    "a carry that stays": lambda x, y: weft.while_loop(
        lambda c: c[0].sum() < 2e4, lambda c: (c[0] + wnp.exp(c[1]), c[1]), (x, y)
    )[0],
    "the condition reads it": lambda x, y: weft.while_loop(
        lambda c: c[1].sum() < 2e4 + 0 * c[0].sum(), lambda c: (c[0], c[1] + wnp.exp(c[0])), (y, x)
    )[1],
    "two that stay": lambda x, y: weft.while_loop(
        lambda c: c[2].sum() < c[0], lambda c: (c[0], c[1], c[2] + wnp.exp(c[1])), (wnp.float32(2e4), y, x)
    )[2],
    "a loop of a traced count": lambda x, y: weft.fori_loop(
        0, (2 + 0 * x[0]).astype(int), lambda i, c: (c[0] + wnp.exp(c[1]), c[1]), (x, y)
    )[0],
    "the condition's own": lambda x, y: weft.while_loop(lambda c: c.sum() < wnp.exp(y).sum() * 2, lambda c: c + 1, x),
}


@pytest.mark.parametrize("name", CONSTANTS_OF_WHILE)
def test_constants_of_loops_with_a_condition_are_computed_before(name):
    f, x, y = CONSTANTS_OF_WHILE[name], _LONG, _LONG[::-1].copy()
    ir = weft.make_ir(f)(x, y).optimized()
    assert "exp" in [o.primitive for o in ir.walk(regions=False)], ir
    want = f(wnp.asarray(x, "float64"), wnp.asarray(y, "float64"))
    np.testing.assert_allclose(weft.jit(f)(x, y), want, rtol=1e-5)
    batched = weft.jit(weft.vmap(f))(np.stack([x, x + 1]), np.stack([y, y]))
    np.testing.assert_allclose(batched[0], want, rtol=1e-5)
    if "count" not in name:
        tangent = weft.jit(lambda x, y: weft.jvp(lambda y: f(x, y), (y,), (wnp.ones_like(y),))[1])(x, y)
        assert np.isfinite(tangent).all()


@pytest.mark.parametrize("columns", [3, 40, 60])
def test_an_inverse_times_a_matrix_is_a_solution(columns):
    rng = np.random.default_rng(0)
    a = (rng.standard_normal((60, 60)) + 20 * np.eye(60)).astype(np.float32)
    b = rng.standard_normal((60, columns)).astype(np.float32)
    f = lambda a, b: wnp.linalg.inv(a) @ b
    ir = weft.make_ir(f)(a, b).optimized()
    assert not [o for o in ir.walk(regions=False) if o.primitive == "contract"], ir
    np.testing.assert_allclose(weft.jit(f)(a, b), np.linalg.solve(a.astype(np.float64), b), rtol=1e-3, atol=1e-5)


def test_products_of_long_chains_are_ordered():
    rng = np.random.default_rng(0)
    for n in (6, 7, 8, 12, 30):
        factors = [(rng.standard_normal((40, 40)) / 7).astype(np.float32) for _ in range(n)]
        vector = rng.standard_normal(40).astype(np.float32)

        def chain(v, *ms):
            product = ms[0]
            for m in ms[1:]:
                product = product @ m
            return product @ v

        ir = weft.make_ir(chain)(vector, *factors).optimized()
        sizes = [o.results[0].type.shape for o in ir.walk(regions=False)]
        products = [
            o for o in ir.walk(regions=False) if o.primitive == "contract" and o.results[0].type.shape == (40, 40)
        ]
        assert not products and sizes.count((40,)) >= n, ir
        want = np.linalg.multi_dot([*(m.astype(np.float64) for m in factors), vector.astype(np.float64)])
        np.testing.assert_allclose(weft.jit(chain)(vector, *factors), want, rtol=1e-3, atol=1e-5)


SINGLE = {
    f"{batch}{x},{batch}{y}->{batch}ac"
    for batch in ("", "n")
    for x, y in (
        *((at, "bc") for at in ("ab1", "a1b", "1ab", "a12b", "1a2b")),
        *(("ab", at) for at in ("bc1", "b1c", "1bc", "1b2c")),
        *(("a1b", "b2c"), ("a1b", "b1c"), ("1a2b", "1bc2"), ("1a3b", "2b3c4")),
    )
}


@pytest.mark.parametrize("spec", sorted(SINGLE))
def test_sums_over_single_elements(spec):
    """Along dimensions of size 1, of one operand or of both: orders of products with such sums did not end."""
    rng = np.random.default_rng(0)
    spec = spec.translate(str.maketrans("1234", "pqrs"))
    sizes = {"n": 20, "a": 24, "b": 33, "c": 17}
    shapes = [[sizes.get(c, 1) for c in part] for part in spec.split("->")[0].split(",")]
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    square = (rng.standard_normal((y.shape[-1],) * 2) / 4).astype(np.float32)
    for name, f in {
        "alone": lambda x, y, z: wnp.einsum(spec, x, y),
        "of a product": lambda x, y, z: wnp.einsum(spec, x, y @ z),
        "scaled": lambda x, y, z: wnp.einsum(spec, 2 * x.reshape(x.shape), wnp.sin(y @ z)),
    }.items():
        with weft.disable_jit():
            want = f(*(v.astype(np.float64) for v in (x, y, square)))
        np.testing.assert_allclose(weft.jit(f)(x, y, square), want, rtol=1e-4, atol=1e-4, err_msg=name)
        gradient = weft.jit(weft.grad(lambda *args, f=f: f(*args).sum(), (0, 1, 2)))(x, y, square)
        assert [g.shape for g in gradient] == [x.shape, y.shape, square.shape]


@pytest.mark.parametrize(
    "special", [[1, np.nan, -2], [np.nan, np.nan], [np.inf, np.nan, np.inf], [0.0, -0.0], [-np.inf, 3]]
)
@pytest.mark.parametrize("at", [0, -1])
def test_extremes_of_sorted_special_numbers(special, at):
    x = np.array(special, np.float32)
    f = weft.jit(lambda x: wnp.sort(x)[at])
    np.testing.assert_array_equal(f(x), np.sort(x)[at])
    assert "part-of-sorted" in applied(f, x)


@pytest.mark.parametrize(
    "special",
    [
        [1, np.nan, -2, 5],
        [np.nan, np.nan],
        [np.inf, np.nan, np.inf],
        [np.nan, np.inf],
        [0.0, -0.0, 0.0],
        [-np.inf, 3, -np.inf],
        [3, 1, 2, 1, 3, 2],
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8])
@pytest.mark.parametrize("at", [0, -1])
def test_ends_of_orders(special, dtype, at):
    if dtype in (np.int32, np.uint8) and not np.all(np.isfinite(special)):
        pytest.skip("integers")
    x = np.array(special).astype(dtype)
    with weft.enable_x64(dtype == np.float64):
        rows = np.stack([x, x[::-1]])
        for f, g in (
            (lambda x: wnp.argsort(x, -1)[..., at], lambda x: np.argsort(x, -1, kind="stable")[..., at]),
            (lambda x: wnp.argsort(x, 0)[at], lambda x: np.argsort(x, 0, kind="stable")[at]),
            (
                lambda x: wnp.argsort(x, -1)[..., ::-1][..., at],
                lambda x: np.argsort(x, kind="stable")[..., ::-1][..., at],
            ),
        ):
            for operand in (x, rows):
                jitted = weft.jit(f)
                np.testing.assert_array_equal(jitted(operand), g(operand))
                assert "part-of-sorted" in applied(jitted, operand)
                assert "= sort" not in jitted.lower(operand).stage("optimized")


def test_other_elements_of_an_order_are_sorted():
    x = normal(9)
    f = weft.jit(lambda x: (wnp.argsort(x)[4], wnp.argsort(x)[:2]))
    np.testing.assert_array_equal(f(x)[0], np.argsort(x)[4])
    np.testing.assert_array_equal(f(x)[1], np.argsort(x)[:2])
    assert "part-of-sorted" not in applied(f, x)


@pytest.mark.parametrize("reverse", [False, True])
def test_the_last_trip_of_either_direction(reverse):
    xs = normal(12, 30)

    def step(c, x):
        return (c * x).sum() * wnp.ones(30) / 9, (wnp.exp(wnp.outer(c, x) / 9), x * 2)

    def f(xs):
        c, (y, _) = weft.lax.scan(step, wnp.ones(30), xs, reverse=reverse)
        return c, y[0 if reverse else -1]

    jitted = weft.jit(f)
    c, last = np.ones(30), None
    for x in xs[::-1] if reverse else xs:
        last = np.exp(np.outer(c, x.astype(np.float64)) / 9)
        c = (c * x).sum() * np.ones(30) / 9
    got = jitted(xs)
    near(got[0], c)
    near(got[1], last)
    assert "last-trip-alone" in applied(jitted, xs)
    # Of other trips, and of all of them, nothing is left out.
    for other in (lambda ys: ys[0 if not reverse else -1], lambda ys: ys.sum(0), lambda ys: ys[3]):
        all_trips = weft.jit(
            lambda xs, other=other: other(weft.lax.scan(step, wnp.ones(30), xs, reverse=reverse)[1][0])
        )
        np.testing.assert_allclose(
            all_trips(xs), weft.jit(all_trips.__wrapped__, licence="exact")(xs), rtol=1e-4, atol=1e-4
        )
        assert "last-trip-alone" not in applied(all_trips, xs)


@pytest.mark.parametrize("rows", [1, 3, 20])
def test_derivatives_of_weights_are_summed_after_the_loop(rows):
    xs, w, u, bias = normal(30, rows, 16) / 4, normal(16, 16) / 4, normal(16, 16) / 4, normal(16) / 4

    def loss(np, lib, xs, w, u, bias):
        def step(h, x):
            h = np.tanh(x @ w + h @ u + bias)
            return h, h * x

        return np.sum(scan(lib, step, xs[0] * 0, xs)[1] ** 2)

    gradient = weft.jit(weft.grad(lambda *x: loss(wnp, weft, *x), argnums=(0, 1, 2, 3)))
    operands = (xs, w, u, bias)
    direction = [np.random.default_rng(2).standard_normal(x.shape) for x in operands]
    ends = [
        loss(np, None, *[x.astype(np.float64) + s * 1e-6 * d for x, d in zip(operands, direction)]) for s in (1.0, -1.0)
    ]
    got = sum(np.sum(np.asarray(g, np.float64) * d) for g, d in zip(gradient(*operands), direction))
    want = (ends[0] - ends[1]) / 2e-6
    assert abs(got - want) <= 1e-3 * max(1.0, abs(want))
    assert "sum-after-loop" in applied(gradient, *operands)
    backward = gradient.lower(*operands).stage("optimized").rsplit("scan[", 1)[1]
    assert "f32[16,16]" not in re.findall(r"-> \(([^)]*)\) \{", backward)[0]


def test_equal_elements_share_no_derivative_that_sorting_gives_to_one():
    x = np.array([2.0, 2.0, 1.0], np.float32)
    np.testing.assert_array_equal(
        weft.jit(weft.grad(lambda x: wnp.sort(x)[-1]))(x), weft.grad(lambda x: wnp.sort(x)[-1])(x)
    )


def test_integers_are_exact():
    a, b = (RNG.integers(-(2**30), 2**30, (N, N)).astype(np.int32) for _ in range(2))
    v = RNG.integers(-(2**30), 2**30, N).astype(np.int32)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(weft.jit(lambda a, b, v: (a @ b) @ v)(a, b, v), (a @ b) @ v)
        np.testing.assert_array_equal(weft.jit(lambda a, b: (a @ b).sum(0))(a, b), (a @ b).sum(0, dtype=np.int32))


@pytest.mark.parametrize("n", [40, 96, 145, 300])
def test_symmetric_products(n):
    """Of large ones half is computed: both halves are the same numbers."""
    for x in (normal(n, 70), normal(70, n), normal(2, n, 80)):
        exact_x = x.astype(np.float64)
        for f, want in (
            (lambda x: x @ wnp.swapaxes(x, -1, -2), exact_x @ np.swapaxes(exact_x, -1, -2)),
            (lambda x: wnp.swapaxes(x, -1, -2) @ x, np.swapaxes(exact_x, -1, -2) @ exact_x),
        ):
            for got in (np.asarray(f(wnp.asarray(x))), np.asarray(weft.jit(f)(x))):
                near(got, want)
                if got.shape[-1] >= 96:
                    np.testing.assert_array_equal(got, np.swapaxes(got, -1, -2))


def test_halves_stay_as_they_are_written():
    h = [x.astype(np.float16) for x in (A, B, V)]
    assert "product-order" not in applied(weft.jit(lambda a, b, v: (a @ b) @ v), *h)


@pytest.mark.parametrize(("rows", "dissolved"), [(64, True), (512, False)])
def test_trips_that_fill_a_cache_stay(rows, dissolved):
    """A product of a mebibyte is worth a trip: all trips at once would take memory, and no less time."""
    f = weft.jit(lambda xs, w: weft.lax.map(lambda x: wnp.tanh(x @ w), xs))
    xs, w = normal(3, rows, 8), normal(8, 512)
    assert ("loop-without-trips" in applied(f, xs, w)) == dissolved
    np.testing.assert_allclose(f(xs, w), np.tanh(xs.astype(np.float64) @ w), atol=2e-6)


def test_attention_and_its_gradient_hold_blocks_of_scores():
    """Besides the operands and results, less than a tenth of the array of all scores."""

    def attention(q, k, v):
        scores = wnp.einsum("hid,hjd->hij", q, k) / 8
        return wnp.einsum("hij,hjd->hid", weft.nn.softmax(scores, -1), v)

    q, k, v = (normal(8, 2048, 64) for _ in range(3))
    scores = 8 * 2048 * 2048 * 4
    value = weft.jit(attention)
    gradient = weft.jit(weft.grad(lambda *x: (attention(*x) ** 2).sum(), argnums=(0, 1, 2)))
    for f in (value, gradient):
        f(q, k, v)
        (version,) = f.explain()
        assert 0 < version["arena_bytes"] < scores / 10


def test_a_step_of_an_lstm_of_one_row_is_one_kernel():
    def step(x, h, c, wi, wf, wg, wo, ui, uf, ug, uo):
        i, f, o = (weft.nn.sigmoid(x @ w + h @ u) for w, u in ((wi, ui), (wf, uf), (wo, uo)))
        c = f * c + i * wnp.tanh(x @ wg + h @ ug)
        return o * wnp.tanh(c), c

    operands = [normal(1, 24) for _ in range(3)] + [normal(24, 24) for _ in range(8)]
    f = weft.jit(step)
    got = f(*operands)
    (version,) = f.explain()
    assert (version["kernels"], version["library_calls"]) == (1, 0)
    plain = weft.jit(step, disable=["vector-product-as-sum"])
    for mine, by_library in zip(got, plain(*operands)):
        np.testing.assert_allclose(mine, by_library, rtol=1e-5, atol=1e-6)
    assert plain.explain()[0]["library_calls"] == 8


SIDE_BY_SIDE = {
    # Of f32 and more than 2**19 multiplications, the products are cut in rows.
    "three": (lambda x, u, v, w: (x @ u, x @ v, x @ w), [(64, 128), (128, 128), (128, 96), (128, 130)]),
    "many rows": (lambda x, u, v: (x @ u, x @ v), [(131, 96), (96, 64), (96, 65)]),
    "of one column more": (lambda x, u, v: (x @ u, x @ v), [(33, 200), (200, 100), (200, 101)]),
    "transposed": (lambda x, u, v: (x.T @ u, (u.T @ x).T, x.T @ v.T), [(128, 80), (128, 96), (96, 128)]),
    "stacks": (lambda x, u, v: (x @ u, x @ v, u @ v[:, :, :64].mT), [(5, 32, 64), (5, 64, 64), (5, 64, 64)]),
    "with kernels": (lambda x, u, v: (x @ u, wnp.sin(x), x @ v, wnp.exp(u)), [(64, 128), (128, 128), (128, 128)]),
    "symmetric": (lambda x, u: (x.T @ x, x @ x.T, x @ u), [(100, 100), (100, 100)]),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("name", SIDE_BY_SIDE)
def test_products_side_by_side_have_the_bits_of_each_alone(name, dtype):
    f, shapes = SIDE_BY_SIDE[name]
    operands = [normal(*s).astype(dtype) for s in shapes]
    with weft.enable_x64():
        operands = [wnp.asarray(x) for x in operands]
        together = weft.jit(f)
        for _ in range(3):
            results = together(*operands)
            for i, result in enumerate(results):
                alone = weft.jit(lambda *x, i=i: f(*x)[i])(*operands)
                np.testing.assert_array_equal(result, alone)
                exact = np.asarray(f(*[np.asarray(x, np.result_type(dtype, np.float64)) for x in operands])[i])
                np.testing.assert_allclose(result, exact, rtol=2e-3, atol=2e-4)


def test_products_with_one_hot_rows_are_gathers_and_their_derivatives_scatters():
    rows = (ROWS[:, None] == np.arange(200)).astype(np.float32)
    total = lambda t: wnp.sum((weft.nn.one_hot(ROWS, 200) @ t) ** 3)
    text = weft.jit(weft.grad(total)).lower(TABLE).stage("optimized")
    assert "gather" in text and "scatter_add" in text and "contract" not in text
    want = rows.T.astype(float) @ (3 * (rows.astype(float) @ TABLE.astype(float)) ** 2)
    near(weft.jit(weft.grad(total))(TABLE), want)
    # Rows that are out of range are 0, and none of the others.
    outside = np.array([-1, 3, 200, 3], np.int32)
    got = weft.jit(weft.grad(lambda t: wnp.sum((weft.nn.one_hot(outside, 200) @ t) ** 2)))(TABLE)
    want = np.zeros_like(TABLE)
    want[3] = 4 * TABLE[3]
    near(got, want)


def test_a_rule_can_be_left_out():
    f = weft.jit(lambda a, b, v: (a @ b) @ v, disable=["product-order"])
    assert "product-order" not in applied(f, A, B, V)
    for rule in (
        "last-trip-alone",
        "sum-after-loop",
        "product-before-loop",
        "products-of-one-operand",
        "constant-carry",
        "loop-without-trips",
        "sink-into-branch",
        "product-order",
    ):
        assert rule in weft.ir.rules()


def test_long_chains_are_cheap():
    def chain(n):
        return weft.jit(lambda a, v: (lambda c: c)(__import__("functools").reduce(lambda c, _: c @ a, range(n), a) @ v))

    text = chain(12).lower(A / 6, V).stage("optimized")
    assert len(re.findall("contract", text)) <= 13
