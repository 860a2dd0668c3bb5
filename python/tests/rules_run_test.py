"""When the rules of custom_jvp and custom_vjp run, how often, with what, and for how long they live."""

import functools
import gc
import itertools
import math
import os
import pickle
import re
import subprocess
import sys
import time
import weakref

import numpy as np
import pytest

os.environ["WEFT_NUM_CPU_DEVICES"] = "4"

import weft
import weft.numpy as wnp
from weft import lax
from weft.custom_derivatives import CustomVJPPrimal, SymbolicZero
from weft.taylor import jet


class Counted:
    """sin(x) * y + w as a function with a rule of its own; `masks` has what each run of the rule was told."""

    def __init__(self, kind):
        self.masks, self.cotangents = [], []
        if kind == "jvp":
            self.f = weft.custom_jvp(lambda x, y, w: wnp.sin(x) * y + w)
            self.f.defjvp(self.jvp, symbolic_zeros=True)
        else:
            self.f = weft.custom_vjp(lambda x, y, w: wnp.sin(x) * y + w)
            self.f.defvjp(self.forward, self.backward, symbolic_zeros=True)
        self.f.__name__ = "f"

    def jvp(self, primals, tangents):
        x, y, w = primals
        self.masks.append("".join("0" if isinstance(t, SymbolicZero) else "1" for t in tangents))
        partials = wnp.cos(x) * y, wnp.sin(x), 1
        moved = [p * t for p, t in zip(partials, tangents) if not isinstance(t, SymbolicZero)]
        return wnp.sin(x) * y + w, sum(moved[1:], moved[0])

    def forward(self, x, y, w):
        assert all(isinstance(v, CustomVJPPrimal) for v in (x, y, w))
        self.masks.append("".join("01"[v.perturbed] for v in (x, y, w)))
        return wnp.sin(x.value) * y.value + w.value, (x.value, y.value)

    def backward(self, residuals, ct):
        x, y = residuals
        self.cotangents.append(isinstance(ct, SymbolicZero))
        return ct * wnp.cos(x) * y, ct * wnp.sin(x), ct


KINDS = ["jvp", "vjp"]
X = (0.5, 2.0, 3.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "use",
    [
        lambda f: weft.jit(f)(*X),
        lambda f: weft.vmap(f, (0, None, None))(wnp.ones(3), *X[1:]),
        lambda f: weft.vmap(weft.jit(f))(wnp.ones(3), wnp.ones(3), wnp.ones(3)),
        lambda f: weft.eval_shape(f, *X),
        lambda f: weft.make_ir(f)(*X),
        lambda f: weft.make_ir(weft.vmap(f, (None, 0, 0)))(1.0, wnp.ones(2), wnp.ones(2)),
        lambda f: lax.scan(lambda c, x: (f(c, x, 1.0), None), 1.0, wnp.ones(3)),
        lambda f: lax.cond(True, lambda: f(*X), lambda: 1.0),
        lambda f: weft.checkpoint(f)(*X),
        lambda f: weft.jit(weft.grad(lambda x: f(weft.stop_gradient(x), 1.0, 1.0) * x))(1.0),
        lambda f: weft.grad(lambda x: f(*X) * x)(1.0),
        lambda f: f(*X),
        lambda f: weft.jit(f).lower(*X).compile(),
    ],
)
def test_no_rule_runs_without_a_derivative(kind, use):
    def raises(*_):
        raise AssertionError("a rule ran")

    f = getattr(weft, f"custom_{kind}")(lambda x, y, w: wnp.sin(x) * y + w)
    f.defjvp(raises) if kind == "jvp" else f.defvjp(raises, raises)
    use(f)
    with pytest.raises(AssertionError, match="a rule ran"):
        weft.grad(f)(*X)
    with pytest.raises(AssertionError, match="a rule ran"):
        weft.grad(weft.jit(lambda x: weft.vmap(f, (0, None, None))(x, 1.0, 2.0).sum()))(wnp.ones(3))


def closed_form(argnums):
    x, y, _ = X
    partials = math.cos(x) * y, math.sin(x), 1.0
    return [partials[i] for i in argnums]


def total(f, argnums):
    """f of arrays of three elements, those in argnums given, summed."""

    def g(*moving):
        given = dict(zip(argnums, moving))
        return f(*[given.get(i, wnp.full(3, X[i])) for i in range(3)]).sum()

    return g


WAYS = {
    "grad": lambda f: lambda args: weft.grad(f, tuple(range(len(args))))(*args),
    "grad of jit": lambda f: lambda args: weft.grad(weft.jit(f), tuple(range(len(args))))(*args),
    "jit of grad": lambda f: lambda args: weft.jit(weft.grad(f, tuple(range(len(args)))))(*args),
    "vjp": lambda f: lambda args: weft.vjp(f, *args)[1](1.0),
    "jvp": lambda f: lambda args: weft.jvp(f, args, [wnp.ones_like(a) for a in args])[1],
    "linearize": lambda f: lambda args: weft.linearize(f, *args)[1](*[wnp.ones_like(a) for a in args]),
    "jet": lambda f: lambda args: jet(f, args, [(wnp.ones_like(a),) for a in args])[1][0],
}
PLACES = {
    "plain": lambda f: f,
    "jit": weft.jit,
    "vmap": lambda f: weft.vmap(f),
    "vmap with a name": lambda f: weft.vmap(lambda *a: f(*a) + 0 * lax.psum(a[0], "i"), axis_name="i"),
    "vmap of vmap": lambda f: lambda *a: weft.vmap(weft.vmap(f))(*[wnp.reshape(v, (1, 3)) for v in a])[0],
    "scan": lambda f: lambda *a: lax.scan(lambda c, xs: (c, f(*xs)), 0.0, a)[1],
    "map": lambda f: lambda *a: lax.map(lambda xs: f(*xs), a),
    "while": lambda f: lambda *a: lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, f(*a)), (0, a[0] * 0))[1],
    "fori": lambda f: lambda *a: lax.fori_loop(0, 2, lambda i, c: wnp.where(i == 1, f(*a), c), a[0] * 0),
    "cond": lambda f: lambda *a: lax.cond(a[0].sum() > 0, f, lambda *b: b[0], *a),
    "remat": weft.checkpoint,
    "remat of jit of vmap": lambda f: weft.checkpoint(weft.jit(weft.vmap(f))),
    "pmap": lambda f: lambda *a: weft.pmap(f)(*a),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", KINDS)
def test_rules_run_where_a_derivative_meets_them(kind, place, way):
    args = {n: wnp.full(3, X[n]) for n in range(3)}
    for argnums in [(0,), (1, 2), (0, 1, 2)]:
        counted = Counted(kind)
        loss = total(PLACES[place](counted.f), argnums)
        got = WAYS[way](loss)([args[n] for n in argnums])
        want = closed_form(argnums)
        if way in ("jvp", "linearize", "jet"):
            np.testing.assert_allclose(got, 3 * sum(want), rtol=1e-5)
        else:
            for g, w in zip(got, want, strict=True):
                np.testing.assert_allclose(g, np.full(3, w), rtol=1e-5)
        mask = "".join("01"[n in argnums] for n in range(3))
        # In a loop the mask is found step by step.
        assert counted.masks[-1] == mask and (len(counted.masks) == 1 or place in ("while", "fori")), counted.masks
        assert len(set(counted.masks)) == len(counted.masks)
        if kind == "vjp":
            assert counted.cotangents in ([False], [False, False][: 1 + (way == "linearize")])


@pytest.mark.parametrize("kind", KINDS)
def test_second_derivatives_in_any_order(kind):
    f = getattr(weft, f"custom_{kind}")(lambda x, y: wnp.sin(x) * y)
    if kind == "jvp":
        f.defjvp(lambda p, t: (f(*p), wnp.cos(p[0]) * p[1] * t[0] + wnp.sin(p[0]) * t[1]))
    else:
        f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda r, ct: (ct * wnp.cos(r[0]) * r[1], ct * wnp.sin(r[0])))
    x, y = 0.5, 2.0
    want = np.array([[-math.sin(x) * y, math.cos(x)], [math.cos(x), 0]])
    v = wnp.array([x, y])
    g = lambda v: f(v[0], v[1])
    for inner, outer in itertools.product([weft.jacfwd, weft.jacrev], repeat=2):
        np.testing.assert_allclose(outer(inner(g))(v), want, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(weft.jit(outer(weft.jit(inner(g))))(v), want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(weft.hessian(g)(v), want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(weft.vmap(weft.hessian(g))(wnp.stack([v, v]))[1], want, rtol=1e-5, atol=1e-6)
    lanes = lambda v: weft.vmap(g)(wnp.stack([v, 2 * v])).sum()
    twice = weft.hessian(g)(2 * v) * 4
    np.testing.assert_allclose(weft.hessian(lanes)(v), want + twice, rtol=1e-4, atol=1e-5)


def nested(depth):
    """sin, 2 sin, 4 sin ...: functions that call one another, with rules that differentiate one another."""

    def around(h):
        k = weft.custom_jvp(lambda x: h(x) * 2)
        k.defjvp(lambda p, t: (k(*p), weft.jvp(h, p, t)[1] * 2))
        return k

    f = weft.custom_jvp(lambda x: wnp.sin(x))
    f.defjvp(lambda p, t: (f(*p), wnp.cos(p[0]) * t[0]))
    for _ in range(depth - 1):
        f = around(f)
    return f


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 10])
def test_nested_functions(depth):
    f = nested(depth)
    for g in (f, weft.jit(f), lambda x: weft.vmap(f)(wnp.array([x]))[0]):
        assert float(weft.grad(g)(1.0)) == pytest.approx(2 ** (depth - 1) * math.cos(1.0), rel=1e-5)


def calling(depth, kind):
    """Functions that call one another, with rules that call their own function and the next one. And how often the
    user's functions run."""
    count = 0

    def around(h):
        def value(x):
            nonlocal count
            count += 1
            return h(x) * 2

        if kind == "custom_jvp":
            k = weft.custom_jvp(value)
            k.defjvp(lambda p, t: (k(*p), h(p[0]) * t[0]))
        elif kind == "custom_vjp":
            k = weft.custom_vjp(value)
            k.defvjp(lambda x: (k(x), x), lambda x, ct: (h(x) * ct,))
        elif kind == "rules that differentiate":
            k = weft.custom_jvp(value)
            k.defjvp(lambda p, t: (k(*p), weft.jvp(h, p, t)[1] * 2))
        return k

    f = wnp.sin
    for _ in range(depth):
        f = around(f)
    return f, lambda: count


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp", "rules that differentiate"])
@pytest.mark.parametrize("transform", [lambda f: f, weft.grad, weft.vmap])
def test_tracing_grows_as_what_it_runs(kind, transform):
    """That is with the depth, unless rules differentiate the next function, whose rule runs inside each."""

    def seconds(depth):
        best, x = math.inf, wnp.ones(3) if transform is weft.vmap else 1.0
        for _ in range(5):
            f, count = calling(depth, kind)
            start = time.thread_time()
            weft.make_ir(transform(f))(x)
            best = min(best, time.thread_time() - start)
        if kind != "rules that differentiate":
            assert count() <= 4 * depth
        return best, count()

    seconds(2)
    (few, calls), (many, more_calls) = seconds(4), seconds(32)
    assert many < 3 * more_calls / calls * few


def test_rules_inside_run_as_often_as_they_are_needed():
    def runs(depth):
        count = 0

        def around(h):
            @weft.custom_vjp
            def k(x):
                return h(x) * 2

            def forward(x):
                nonlocal count
                count += 1
                return k(x), x

            k.defvjp(forward, lambda x, ct: (2 * ct * wnp.cos(x),))
            return k

        f = wnp.sin
        for _ in range(depth):
            f = around(f)
        weft.grad(f)(1.0)
        return count

    assert runs(10) == 1  # the rule of the outermost stands for all inside


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_values_from_around_that_only_the_innermost_rule_uses(depth):
    def value(w, x):
        f = weft.custom_jvp(lambda v: v * 2)
        f.defjvp(lambda p, t: (f(*p), w * t[0]))

        def around(h):
            k = weft.custom_jvp(lambda v: h(v))
            k.defjvp(lambda p, t: weft.jvp(h, p, t))
            return k

        def around_backwards(h):
            k = weft.custom_vjp(lambda v: h(v))
            k.defvjp(lambda v: (h(v), v), lambda v, ct: (weft.grad(h)(v) * ct,))
            return k

        for i in range(depth - 1):
            f = (around, around_backwards)[i % 2](f)
        return f(x)

    slope = weft.grad(value, 1)
    for f in (slope, weft.jit(slope), lambda w, x: weft.vmap(slope)(wnp.array([w]), wnp.array([x]))[0]):
        assert float(f(5.0, 1.0)) == 5.0


def test_rules_of_different_functions_that_use_their_own():
    """Taken to an order that needs each of them several times."""

    def around(inner):
        f = weft.custom_jvp(lambda x: inner(x))
        f.defjvp(lambda p, t: (f(*p), f(*p) * t[0]))
        return f

    d = around(around(around(around(wnp.exp))))
    for _ in range(4):
        d = weft.grad(d)
    assert float(d(0.0)) == 1.0


def test_python_values_among_the_residuals():
    seen = []
    f = weft.custom_vjp(lambda x: x * x)

    def forward(x):
        return x * x, {
            "flag": True,
            "number": 3,
            "text": "a",
            "x": x,
            "function": math.floor,
            "none": None,
            "real": 0.5,
        }

    def backward(residuals, ct):
        seen.append({k: v for k, v in residuals.items() if k != "x"})
        return (7 * ct * residuals["x"] if residuals["flag"] is True else ct,)

    f.defvjp(forward, backward)
    calls = [
        lambda: weft.grad(f)(2.0),
        lambda: weft.jit(weft.grad(f))(2.0),
        lambda: weft.grad(weft.jit(f))(2.0),
        lambda: weft.vmap(weft.grad(f))(wnp.full(1, 2.0))[0],
        lambda: weft.grad(lambda x: weft.vmap(f)(x)[0])(wnp.full(1, 2.0))[0],
        lambda: weft.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0])(2.0),
        lambda: weft.grad(weft.checkpoint(f))(2.0),
    ]
    for call in calls:
        assert float(call()) == 14.0
    want = {"flag": True, "number": 3, "text": "a", "function": math.floor, "none": None, "real": 0.5}
    assert len(seen) == len(calls) and all(s == want for s in seen)
    assert all(s["flag"] is True and type(s["number"]) is int for s in seen)


@pytest.mark.parametrize("kind", KINDS)
def test_fixed_arguments_reach_rules_as_they_were_given(kind):
    fixed = [True, 3, "mode", math.floor, 0.5, None, (1, "a"), np.float64(2)]
    seen = []

    if kind == "jvp":
        f = weft.custom_jvp(lambda kept, x: x * 2, nondiff_argnums=(0,))
        f.defjvp(lambda kept, p, t: (seen.append(kept), (2 * p[0], 5 * t[0]))[1])
    else:
        f = weft.custom_vjp(lambda kept, x: x * 2, nondiff_argnums=(0,))
        f.defvjp(
            lambda kept, x: (seen.append(kept), (2 * x, None))[1], lambda kept, _, ct: (seen.append(kept), (5 * ct,))[1]
        )
    for value in fixed:
        g = lambda x, value=value: f(value, x)
        for d in (
            weft.grad(lambda x, g=g: g(x)),
            weft.grad(weft.jit(lambda x, g=g: g(x))),
            weft.jit(lambda x, g=g: weft.grad(lambda x: g(x))(x)),
        ):
            seen.clear()
            assert float(d(1.0)) == 5.0
            assert seen and all(s is value for s in seen)
    # 0.0 and -0.0, 1 and True are not the same.
    for a, b in [(0.0, -0.0), (1, True), (1, 1.0)]:
        for value in (a, b):
            seen.clear()
            weft.grad(weft.jit(lambda x: f(value, x)))(1.0)  # noqa: B023
            assert all(type(s) is type(value) and repr(s) == repr(value) for s in seen)


def test_symbolic_zeros_of_cotangents_and_results():
    seen = []
    f = weft.custom_vjp(lambda x: {"a": x * 2, "b": x * 3})
    f.defvjp(
        lambda x: ({"a": x.value * 2, "b": x.value * 3}, None),
        lambda _, ct: (seen.append({k: isinstance(v, SymbolicZero) for k, v in ct.items()}), (10 * ct["a"],))[1],
        symbolic_zeros=True,
    )
    assert weft.grad(lambda x: f(x)["a"])(1.0) == 10
    assert seen == [{"a": False, "b": True}]
    plain = weft.custom_vjp(lambda x: {"a": x * 2, "b": x * 3})
    plain.defvjp(lambda x: (plain(x), None), lambda _, ct: (ct["a"] * 10 + ct["b"],))
    assert weft.grad(lambda x: plain(x)["a"])(1.0) == 10

    # A rule may say that a cotangent or a tangent is zero.
    g = weft.custom_vjp(lambda x, y: x * y)
    g.defvjp(lambda x, y: (x * y, y), lambda y, ct: (ct * y, SymbolicZero(weft.ShapeDtype(()))))
    assert weft.grad(g, (0, 1))(2.0, 3.0) == (3.0, 0.0)
    h = weft.custom_jvp(lambda x: (x, x * x))
    h.defjvp(lambda p, t: (h(*p), (t[0], SymbolicZero(weft.ShapeDtype(())))), symbolic_zeros=True)
    assert weft.grad(lambda x: sum(h(x)))(3.0) == 1.0
    zero = SymbolicZero(weft.ShapeDtype((2,)))
    assert zero.shape == (2,) and zero.dtype == np.float32


@pytest.mark.parametrize("kind", KINDS)
def test_integers_have_no_tangents(kind):
    seen = []
    if kind == "jvp":
        f = weft.custom_jvp(lambda n, x: (x * n, n + 1))
        f.defjvp(lambda p, t: (seen.append(t[0]), (f(*p), (t[1] * p[0], t[0])))[1], symbolic_zeros=True)
    else:
        f = weft.custom_vjp(lambda n, x: (x * n, n + 1))
        f.defvjp(
            lambda n, x: (seen.append(n.perturbed), (f(n.value, x.value), n.value))[1],
            lambda n, ct: (None, ct[0] * n),
            symbolic_zeros=True,
        )
    assert weft.grad(lambda x: f(3, x)[0])(2.0) == 3
    assert weft.grad(lambda x: weft.vmap(lambda n: f(n, x)[0])(wnp.arange(3)).sum())(2.0) == 3
    assert all(isinstance(s, SymbolicZero) or s is False for s in seen) and seen


def test_captured_values():
    table = wnp.arange(100.0)  # too large for a literal

    def build(w, kind):
        if kind == "jvp":
            f = weft.custom_jvp(lambda x: x * 2)
            f.defjvp(lambda p, t: (f(*p), t[0] * w * table[3]))
        else:
            f = weft.custom_vjp(lambda x: x * 2)
            f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * w * table[3],))
        return f

    for kind in KINDS:
        # The rules use what their function does not: a traced value of the function around, and a large array.
        g = lambda x, w, kind=kind: build(w, kind)(x)
        assert weft.grad(g)(1.0, 5.0) == 15.0
        assert weft.grad(weft.jit(g))(1.0, 5.0) == 15.0
        assert weft.jit(weft.grad(g))(1.0, 5.0) == 15.0
        assert weft.grad(lambda x, g=g: weft.vmap(g, (0, None))(x, 5.0).sum())(wnp.ones(2)).tolist() == [15.0, 15.0]
        assert weft.vmap(weft.grad(g))(wnp.ones(2), wnp.array([1.0, 2.0])).tolist() == [3.0, 6.0]
        looped = lambda x, g=g: lax.scan(lambda c, w: (g(c, w), None), x, wnp.array([1.0, 2.0]))[0]
        assert weft.grad(looped)(1.0) == 18.0
        assert weft.jit(weft.grad(weft.jit(looped)))(1.0) == 18.0
        assert weft.jvp(lambda x, g=g: g(x, 5.0), (1.0,), (1.0,))[1] == 15.0
        with pytest.raises(weft.DerivativeError, match="differentiated with respect to a value that it captured"):
            weft.jvp(g, (1.0, 5.0), (1.0, 1.0))


TABLES = [np.arange(100.0, dtype=np.float32), np.linspace(1, 2, 70, dtype=np.float32)]  # too large for literals


def with_tables(kind):
    """3 x, with the derivative 12, of a rule that reads two large arrays from around it."""
    first, second = map(wnp.asarray, TABLES)
    slope = lambda x: first[2] * (first[5] + second[0]) + 0 * x * second.sum()
    if kind == "jvp":
        f = weft.custom_jvp(lambda x: x * 3)
        f.defjvp(lambda p, t: (f(*p), t[0] * slope(p[0])))
    else:
        f = weft.custom_vjp(lambda x: x * 3)
        f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * slope(x),))
    return f


@functools.partial(weft.jit, static_argnums=0)
def raised(f, x, n):
    return lax.cond(n < 1, lambda: x, lambda: raised(f, f(x), n - 1))


def batched_by_rule(f):
    g = weft.custom_batching.custom_vmap(lambda x: f(x))
    g.def_vmap(lambda size, batched, x: (weft.vmap(f)(x), True))
    return g


INSIDE = {
    "custom_vmap": lambda f, x: batched_by_rule(f)(x),
    "custom_vmap in scan": lambda f, x: lax.scan(lambda c, _: (batched_by_rule(f)(c), None), x, None, 2)[0],
    "custom_vmap of custom_vmap": lambda f, x: batched_by_rule(batched_by_rule(f))(x),
    "scan": lambda f, x: lax.scan(lambda c, s: (f(c) * s, None), x, wnp.full(2, 0.5))[0] * 4,
    "scan, stacked": lambda f, x: lax.scan(lambda c, s: (c, f(x) * s), x, wnp.full(2, 0.5))[1].sum(),
    "fori": lambda f, x: lax.fori_loop(0, 2, lambda i, c: f(c), x),
    "while": lambda f, x: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, f(c[1])), (0, x))[1],
    "cond": lambda f, x: lax.cond(x > 0, f, lambda x: x, x),
    "switch": lambda f, x: lax.switch(wnp.int32(1), [lambda x: x, f, lambda x: f(f(x))], x),
    "cond in scan": lambda f, x: lax.scan(lambda c, b: (lax.cond(b, f, lambda c: c, c), None), x, wnp.arange(2) > 0)[0],
    "scan in cond": lambda f, x: lax.cond(x > 0, lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 2)[0], f, x),
    "checkpoint": lambda f, x: weft.checkpoint(lambda x: wnp.sin(f(x)) * 0 + f(x))(x),
    "binomial": lambda f, x: weft.fori_loop(0, 3, lambda i, c: f(c) / 3, x, strategy="binomial(2)"),
    "recursion": lambda f, x: raised(f, x, wnp.int32(2)),
    "vmap in scan": lambda f, x: lax.scan(lambda c, _: (weft.vmap(f)(c), None), wnp.stack([x, x]), None, 1)[0].sum(),
    "pmap": lambda f, x: weft.pmap(lambda v: lax.cond(v > 0, f, lambda v: v, v))(wnp.stack([x, x])).sum(),
}


@pytest.mark.parametrize("place", INSIDE)
@pytest.mark.parametrize("kind", KINDS)
def test_large_arrays_of_rules_are_constants_of_loops_and_branches(kind, place):
    f = with_tables(kind)
    run = lambda x: INSIDE[place](f, x)
    h = 1e-2
    plain = lambda x: INSIDE[place](lambda v: v * 12.0, x)  # what the derivative is that of
    want = (plain(1.0 + h) - plain(1.0 - h)) / (2 * h)
    ways = {
        "grad": weft.grad(run),
        "jit of grad": weft.jit(weft.grad(run)),
        "grad of jit": weft.grad(weft.jit(run)),
        "jvp": lambda x: weft.jvp(run, (x,), (wnp.ones_like(x),))[1],
        "vmap": lambda x: weft.vmap(weft.grad(run))(wnp.stack([x, x])).mean(),
    }
    if place == "pmap":
        del ways["vmap"]  # on more devices than there are
    for way in ways.values():
        x = np.float32(1.0)
        np.testing.assert_allclose(way(x), want, rtol=1e-3)
        ir = weft.make_ir(way)(x)
        np.testing.assert_allclose(ir(x), want, rtol=1e-3)
        # Each array once, however often it is read.
        assert len(ir.constants) == 2, ir.text
        assert weft.parse_ir(ir.text).text == ir.text
        np.testing.assert_allclose(weft.deserialize_ir(ir.serialize())(x, *ir.constants), want, rtol=1e-3)


@pytest.mark.parametrize("place", ["plain", "jit", "vmap", "scan", "cond", "remat"])
def test_a_value_that_depends_on_a_tangent_is_the_rules_mistake(place):
    @weft.custom_jvp
    def twice(x):
        return x * 2

    twice.defjvp(lambda p, t: (twice(*p) + 0.5 * t[0], 2 * t[0]))

    def loss(x):
        fine = weft.custom_jvp(lambda x: x)
        fine.defjvp(lambda p, t: (fine(*p), t[0]))
        inside = PLACES[place](lambda x: fine(twice(fine(x))))
        return inside(wnp.stack([x, x, x])).sum() if place != "plain" else inside(x)

    line = loss.__code__.co_firstlineno + 3
    derivatives = [
        weft.grad(loss),
        weft.jit(weft.grad(loss)),
        lambda x: weft.vjp(loss, x),
        lambda x: weft.linearize(loss, x),
        weft.hessian(loss),
    ]
    for derivative in derivatives:
        with pytest.raises(weft.DerivativeError) as error:
            derivative(1.0)
        said = str(error.value)
        assert "the rule of 'twice' gives a value that depends on a tangent" in said and "internal" not in said
        assert f"rules_run_test.py:{line}" in said, said
    assert loss(1.0) == (2.0 if place == "plain" else 6.0)


@pytest.mark.parametrize("kind", KINDS)
def test_rules_run_under_the_settings_of_the_call(kind):
    seen = []

    def slope(x):
        seen.append((wnp.asarray(1.5).dtype, weft.config.jax_enable_x64, weft.mesh.current_mesh()))
        with weft.enable_x64(False):  # one that ends inside leaves what was around it
            assert wnp.asarray(1.5).dtype == "float32"
        seen.append((wnp.asarray(1.5).dtype, weft.config.jax_enable_x64, weft.mesh.current_mesh()))
        return 2.0

    def function():
        if kind == "jvp":
            f = weft.custom_jvp(lambda x: x * 2)
            f.defjvp(lambda p, t: (f(*p), t[0] * slope(p[0])))
        else:
            f = weft.custom_vjp(lambda x: x * 2)
            f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * slope(ct),))
        return f

    def under(x64, mesh, inner):
        with weft.enable_x64(x64), weft._sharding.meshes.mesh_around(mesh):
            return inner()

    mesh = weft.make_mesh((2,), ("x",))
    x = np.float32(1.0)
    for later, other in itertools.product((False, True), (None, mesh)):
        # One function called under several settings, differentiated under others.
        f = function()
        for call, around in itertools.product((True, False), (mesh, None)):
            del seen[:]
            ir = under(call, around, lambda f=f: weft.make_ir(f)(x))
            assert not seen and under(later, other, lambda ir=ir: weft.grad(ir)(x)) == 2.0
            assert seen == [("float64" if call else "float32", call, around)] * 2
            # The scope of the derivative is as it was.
            assert not weft.config.jax_enable_x64 and weft.mesh.current_mesh() is None


def test_batching_rules_run_under_the_settings_of_the_call():
    seen = []
    f = weft.custom_batching.custom_vmap(lambda x: x * 2)

    @f.def_vmap
    def rule(size, batched, x):
        seen.append((wnp.asarray(1.5).dtype, weft.mesh.current_mesh()))
        return x * 2, True

    mesh = weft.make_mesh((2,), ("x",))
    for x64, around in [(True, mesh), (False, None), (True, None)]:
        with weft.enable_x64(x64), weft._sharding.meshes.mesh_around(around):
            ir = weft.make_ir(f)(np.float32(1.0))
        assert weft.vmap(ir)(np.ones(3, np.float32)).tolist() == [2.0] * 3
        assert seen[-1] == ("float64" if x64 else "float32", around)


def test_linear_functions_are_transposed_through():
    f = weft.custom_jvp(lambda a, x: a * x)
    f.defjvp(lambda p, t: (f(*p), f(p[0], t[1]) + f(t[0], p[1])))
    assert weft.linear_transpose(lambda x: f(3.0, x), 1.0)(2.0) == (6.0,)
    assert weft.grad(f, (0, 1))(2.0, 5.0) == (5.0, 2.0)
    lanes = weft.linear_transpose(lambda x: weft.vmap(f, (0, None))(wnp.arange(3.0), x).sum(), 1.0)
    assert lanes(1.0) == (3.0,)
    with pytest.raises(weft.DerivativeError, match="both depend on the linear inputs"):
        weft.linear_transpose(lambda x: f(x, x), 1.0)


def collect():
    """Twice: a program that is collected lets go of rules, which may be parts of cycles in turn."""
    gc.collect()
    gc.collect()


@pytest.mark.parametrize("kind", [*KINDS, "vmap"])
def test_rules_are_released(kind):
    alive = []

    def once(i):
        if kind == "vmap":
            f = weft.custom_batching.custom_vmap(lambda x: x * 2)

            def rule(size, batched, x):
                return x * 2, True

            f.def_vmap(rule)
        elif kind == "jvp":
            f = weft.custom_jvp(lambda x: x * i)

            def rule(p, t):
                return f(*p), i * t[0]

            f.defjvp(rule)
        else:
            f = weft.custom_vjp(lambda x: x * i)

            def rule(x):
                return f(x), x

            f.defvjp(rule, lambda x, ct: (ct * i,))
        alive.append(weakref.ref(rule))
        jitted = weft.jit(lambda x: f(x))
        jitted(1.0)
        ir = weft.make_ir(f)(1.0)
        weft.grad(jitted)(1.0), weft.jit(weft.grad(f))(1.0), weft.grad(weft.grad(ir))(1.0)
        (
            weft.vmap(f)(wnp.ones(3)),
            weft.vmap(jitted)(wnp.ones(3)),
            weft.grad(lambda x: weft.vmap(f)(x).sum())(wnp.ones(2)),
        )
        weft.jvp(jitted, (1.0,), (1.0,)), weft.linearize(f, 1.0)[1](1.0)
        return ir

    kept = once(1)
    collect()
    assert alive[0]() is not None  # a program names it
    weft.vmap(kept)(wnp.ones(2)) if kind == "vmap" else weft.grad(kept)(1.0)
    del kept
    for i in range(50):
        once(i)
    collect()
    assert sum(ref() is not None for ref in alive) == 0


def test_a_rule_lives_as_long_as_what_names_it():
    def program():
        f = weft.custom_jvp(lambda x: x * x)
        f.defjvp(lambda p, t: (f(*p), 7 * t[0] * p[0]))
        return weft.jit(f), weft.make_ir(f)(1.0)

    jitted, ir = program()
    jitted(1.0)
    collect()
    assert weft.grad(jitted)(2.0) == 14 and weft.grad(ir)(2.0) == 14
    assert weft.grad(weft.grad(weft.grad(ir)))(2.0) == 0
    assert weft.grad(weft.grad(jitted))(2.0) == 7


ELSEWHERE = """
import pickle, sys, weft
ir = weft.deserialize_ir(sys.stdin.buffer.read())
print(float(ir(2.0)), float(weft.grad(ir)(2.0)))
try:
    print(float(weft.grad(weft.grad(ir))(2.0)))
except weft.DerivativeError as error:
    print(str(error).splitlines()[0])
"""


def elsewhere(data):
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    out = subprocess.run(
        [sys.executable, "-P", "-c", ELSEWHERE], input=data, capture_output=True, check=True, env=paths
    )
    return out.stdout.decode().splitlines()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ["plain", "vmap", "scan", "cond"])
def test_programs_take_their_rules_along(kind, place):
    def build(own):
        if kind == "jvp":
            f = weft.custom_jvp(lambda x: x**3)
            f.defjvp(lambda p, t: (f(*p) if own else p[0] ** 3, 7 * t[0] * p[0] ** 2))
        else:
            f = weft.custom_vjp(lambda x: x**3)
            f.defvjp(lambda x: (f(x) if own else x**3, (x, True)), lambda r, ct: (7 * ct * r[0] ** 2 * r[1],))
        place_of = {
            "plain": lambda x: f(x),
            "vmap": lambda x: weft.vmap(f)(wnp.stack([x]))[0],
            "scan": lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
            "cond": lambda x: lax.cond(x > 0, f, lambda x: x, x),
        }
        return place_of[place]

    # A rule that uses its function has no derivative of its own there; where its value is not needed, that shows not.
    for own in (False, True) if place in ("plain", "vmap") else (False,):
        ir = weft.make_ir(build(own))(2.0)
        assert elsewhere(ir.serialize()) == ["8.0 28.0", "28.0"]
        assert weft.grad(pickle.loads(pickle.dumps(ir)))(2.0) == 28.0


def test_what_no_program_can_take_along():
    f = weft.custom_jvp(lambda x: x * x)
    f.defjvp(lambda p, t: (f(*p), 2 * f(p[0]) * t[0]))  # its second derivative needs itself
    said = elsewhere(weft.make_ir(f)(2.0).serialize())
    assert said[0] == "4.0 8.0" and "is not part of this program" in said[1]

    def raises(primals, tangents):
        raise ValueError("no derivative here")

    g = weft.custom_jvp(lambda x: x * x)
    g.defjvp(raises)
    data = weft.make_ir(g)(2.0).serialize()
    assert weft.deserialize_ir(data)(2.0) == 4.0
    with pytest.raises(weft.DerivativeError, match="is not part of this program"):
        weft.grad(weft.deserialize_ir(data))(2.0)
    # Text names the rule by its number, which is good here alone.
    text = weft.make_ir(f)(2.0).text
    assert "rule=" in text
    with pytest.raises(weft.DerivativeError, match="belongs to another process, or is gone"):
        weft.grad(weft.parse_ir(text))(2.0)


def test_programs_written_by_hand():
    def program(equation, region="(x: f32[]) -> (f32[]) {\n    return x\n  }"):
        return weft.parse_ir(f"fn f(x: f32[]) -> (f32[]) {{\n  a: f32[] = {equation} x {region}\n  return a\n}}\n")

    callback = weft.make_ir(lambda x: weft.pure_callback(lambda v: v, weft.ShapeDtype(()), x))(1.0)
    number = re.search(r"callback=(\d+)", callback.text).group(1)
    for rule in ("7", number):  # nobody's, and that of something else
        for name in ("custom_jvp", "custom_vjp"):
            f = program(f"{name}[rule={rule}]")
            assert f(2.0) == 2.0
            with pytest.raises(weft.DerivativeError, match="belongs to another process, or is gone"):
                weft.grad(f)(2.0)
        linear = program(f"custom_linear[num_residuals=0, results=types(f32[]), rule={rule}]", "")
        with pytest.raises(weft.DerivativeError, match="a function of the host that was not run"):
            linear(2.0)
        with pytest.raises(weft.DerivativeError, match="belongs to another process, or is gone"):
            weft.grad(linear)(2.0)
    bare = program("custom_jvp")
    assert bare(2.0) == 2.0
    with pytest.raises(weft.DerivativeError, match="is not part of this program"):
        weft.grad(bare)(2.0)
    for bad, message in [
        ('rule=7, sizes=<3>, through=["bad"]', "expected vmap MASK AXIS"),
        ('rule=7, sizes=<3>, through=["vmap 12 "]', "expected vmap MASK AXIS"),
        ('rule=7, sizes=<3>, through=["vmap 11 "]', "a mask of 2 operands; expected 1"),
        ('rule=7, sizes=<3>, through=["vmap 1 "]', "mapped 1 times"),
        ('rule=7, through=["vmap 1 "]', "expected one size for each"),
    ]:
        with pytest.raises(weft.ParseError, match=message):
            program(f"custom_jvp[{bad}]")


def test_exceptions_of_rules_pass_through():
    class Own(Exception):
        pass

    def raises(*_):
        raise Own("from the rule")

    f = weft.custom_jvp(lambda x: x)
    f.defjvp(raises)
    g = weft.custom_vjp(lambda x: x)
    g.defvjp(lambda x: (x, None), raises)
    for h in (f, g):
        for d in (weft.grad(h), weft.jit(weft.grad(h)), weft.grad(weft.jit(h)), lambda x, h=h: weft.vjp(h, x)[1](1.0)):
            with pytest.raises(Own, match="from the rule"):
                d(1.0)
        with pytest.raises(Own):
            weft.grad(lambda x, h=h: lax.scan(lambda c, _: (h(c), None), x, None, length=2)[0])(1.0)
    assert f(1.0) == g(1.0) == 1.0


def test_parameters_of_rules_have_the_names_of_the_arguments():
    f = weft.custom_jvp(lambda price, volume: price * volume)
    f.defjvp(lambda p, t: (f(*p), t[0] * p[1] + p[0] * t[1]))
    text = weft.deserialize_ir(weft.make_ir(f)(1.0, 2.0).serialize()).text
    assert "(price: f32[], volume: f32[], dprice: f32[], dvolume: f32[])" in text


def test_jax_agrees():
    jax = pytest.importorskip("jax")

    # JAX's scan forgets a rule in the second derivative of what it stacks; its loop in Python does not.
    def unrolled(step, c, xs):
        ys = []
        for x in xs:
            c, y = step(c, x)
            ys.append(y)
        return c, jax.numpy.stack(ys)

    def programs(w, np_, l, scan):
        log = []

        @functools.partial(w.custom_jvp, nondiff_argnums=(1,))
        def power(x, n):
            return x**n

        @power.defjvp
        def _(n, p, t):
            log.append(n)
            return power(p[0], n), 3 * n * power(p[0], n - 1) * t[0]

        @w.custom_vjp
        def clipped(x, lo):
            return np_.sin(x) * lo

        clipped.defvjp(lambda x, lo: (clipped(x, lo), (x, lo)), lambda r, g: (g * np_.cos(r[0]) * 2, g * r[0]))
        both = lambda x: power(clipped(x, 2.0), 3) * power(x, 2)
        scanned = lambda x: scan(lambda c, k: (clipped(c, k) + x, power(c, 2)), x, np_.arange(1.0, 4.0))[1].sum()
        branch = lambda x: l.cond(x > 0.5, lambda x: power(x, 2), lambda x: clipped(x, 1.0), x)
        lanes = lambda x: w.vmap(both, 0)(np_.stack([x, 2 * x])).sum()
        one = [both, scanned, branch, lanes, w.checkpoint(both), w.jit(both)]
        values = []
        for f in one:
            for d in (
                w.grad(f),
                w.grad(w.grad(f)),
                w.jit(w.grad(w.jit(f))),
                lambda x, f=f: w.vmap(w.grad(f))(np_.stack([x, x])),
            ):
                values.append(np.asarray(d(0.7)))
        values.append(np.asarray(w.jacrev(lambda x: np_.stack([both(x), scanned(x)]))(0.7)))
        return values, log

    ours, our_log = programs(weft, wnp, lax, lax.scan)
    theirs, their_log = programs(jax, jax.numpy, jax.lax, unrolled)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4)
    assert len(our_log) <= len(their_log)  # no rule runs more often than JAX's
