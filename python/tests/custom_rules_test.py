"""Derivative rules that use their own function: right to any order, however the derivatives are taken."""

import functools
import math
import threading

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft.taylor import jet


@weft.custom_jvp
def doubled(x):
    return wnp.exp(x)


@doubled.defjvp
def doubled_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return doubled(x), 2 * doubled(x) * t


@weft.custom_vjp
def doubled_back(x):
    return wnp.exp(x)


doubled_back.defvjp(lambda x: (doubled_back(x), x), lambda x, ct: (2 * doubled_back(x) * ct,))


@weft.custom_jvp
def sine(x):
    return wnp.sin(x)


@weft.custom_jvp
def cosine(x):
    return wnp.cos(x)


sine.defjvp(lambda p, t: (sine(p[0]), 2 * cosine(p[0]) * t[0]))
cosine.defjvp(lambda p, t: (cosine(p[0]), -2 * sine(p[0]) * t[0]))


def orders(function, n, derivative=weft.grad):
    out = []
    for _ in range(n):
        function = derivative(function)
        out.append(function)
    return out


def forward(f):
    return lambda x: weft.jvp(f, (x,), (1.0,))[1]


def back(f):
    return lambda x: weft.vjp(f, x)[1](1.0)[0]


@pytest.mark.parametrize("f", [doubled, doubled_back], ids=["jvp", "vjp"])
@pytest.mark.parametrize("derivative", [weft.grad, forward, back, weft.jacrev], ids=["grad", "jvp", "vjp", "jacrev"])
def test_every_order_uses_the_rule(f, derivative):
    assert [float(d(0.0)) for d in orders(f, 6, derivative)] == [2.0**k for k in range(1, 7)]


@pytest.mark.parametrize("f", [doubled, doubled_back], ids=["jvp", "vjp"])
def test_under_jit_vmap_and_loops(f):
    fifth = orders(f, 5)[-1]
    assert weft.jit(fifth)(0.0) == 32
    assert np.array_equal(weft.vmap(fifth)(wnp.zeros(3)), [32, 32, 32])
    looped = orders(lambda x: weft.fori_loop(0, 1, lambda _, c: f(c), x), 5)[-1]
    assert looped(0.0) == 32
    assert orders(weft.jit(f), 5)[-1](0.0) == 32  # jit traces again where more derivatives are taken ...
    inner = weft.jit(f)
    assert weft.grad(inner)(0.0) == 2
    assert orders(inner, 5)[-1](0.0) == 32  # ... also after it has traced for fewer


def test_rules_that_use_each_other():
    want = [2**k * math.sin(0.3 + k * math.pi / 2) for k in range(1, 9)]
    assert np.allclose([d(0.3) for d in orders(sine, 8)], want, rtol=1e-5)


def test_taylor_mode():
    _, terms = jet(doubled, (0.0,), ((1.0, 0.0, 0.0, 0.0, 0.0, 0.0),))
    assert np.allclose(terms, [2, 4, 8, 16, 32, 64], rtol=1e-5)


def test_a_program_may_be_differentiated_as_often_as_a_function():
    assert [d(0.0) for d in orders(weft.make_ir(doubled)(0.0), 6)] == [2.0**k for k in range(1, 7)]


def test_rules_run_in_several_threads():
    results = {}
    start = threading.Barrier(4)

    def run(i):
        start.wait()
        results[i] = [float(d(0.0)) for d in orders(doubled, 5)]

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(results[i] == [2, 4, 8, 16, 32] for i in range(4))


def test_keywords_of_jax():
    f = weft.custom_jvp(lambda x, y: x * y)

    def rule(primals, tangents):
        (x, y), (t, u) = primals, tangents
        assert not any(isinstance(v, weft.custom_derivatives.SymbolicZero) for v in (t, u))
        return x * y, 3 * y * t + x * u

    f.defjvp(jvp=rule, symbolic_zeros=True)
    assert weft.grad(f, (0, 1))(2.0, 5.0) == (15.0, 2.0)
    g = weft.custom_vjp(lambda x, y: x * y)

    def forward(x, y):
        assert x.perturbed and y.perturbed
        return x.value * y.value, (x.value, y.value)

    g.defvjp(fwd=forward, bwd=lambda r, ct: (7 * ct * r[1], None), symbolic_zeros=True, optimize_remat=True)
    assert weft.grad(g, (0, 1))(2.0, 5.0) == (35.0, 0.0)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda p, t: (p[0]["a"].sum(), t[0]["a"]), r"rule of 'f' gives a tangent float32\[3\], expected float32\[\]"),
        (lambda p, t: (p[0]["a"], t[0]["a"].sum()), r"rule of 'f' gives a value float32\[3\], expected float32\[\]"),
    ],
)
def test_a_jvp_rule_of_the_wrong_shape(rule, message):
    @weft.custom_jvp
    def f(tree):
        return tree["a"].sum()

    f.defjvp(rule)
    assert f({"a": wnp.ones(3)}) == 3  # no rule is asked
    with pytest.raises(TypeError, match=message):
        weft.vjp(f, {"a": wnp.ones(3)})


@pytest.mark.parametrize(
    ("forward", "backward", "message"),
    [
        (
            lambda t: (t["a"].sum(), None),
            lambda _, ct: ({"a": ct},),
            r"backward rule of 'f' gives a cotangent of its arguments \[0\]\['a'\] float32\[\], expected float32\[3\]",
        ),
        (
            lambda t: (t["a"], None),
            lambda _, ct: ({"a": ct},),
            r"forward rule of 'f' gives a value float32\[3\], expected float32\[\]",
        ),
    ],
)
def test_vjp_rules_of_the_wrong_shape(forward, backward, message):
    @weft.custom_vjp
    def f(tree):
        return tree["a"].sum()

    f.defvjp(forward, backward)
    assert f({"a": wnp.ones(3)}) == 3  # no rule is asked
    with pytest.raises(TypeError, match=message):
        weft.vjp(f, {"a": wnp.ones(3)})


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_rule_that_takes_a_derivative_of_what_uses_its_function(order):
    @weft.custom_jvp
    def f(x):
        return wnp.sin(x)

    @f.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return f(x), t * weft.grad(lambda u: wnp.sin(u) * f(x) / f(x))(x)

    g = f
    for _ in range(order):
        g = weft.grad(g)
    assert float(g(1.0)) == pytest.approx(math.sin(1.0 + order * math.pi / 2), rel=1e-5)


def linked(w, np_):
    """Functions whose rules differentiate each other: h by itself, g by h, k by grad of g, v backwards by grad of h."""
    h = w.custom_jvp(lambda x: np_.sin(x))
    h.defjvp(lambda p, t: (h(*p), 3 * p[0] ** 5 * t[0]))
    g = w.custom_jvp(lambda x: h(x))
    g.defjvp(lambda p, t: (g(*p), w.jvp(h, p, t)[1]))
    k = w.custom_jvp(lambda x: g(x))
    k.defjvp(lambda p, t: (k(*p), w.grad(lambda a: w.grad(g)(a) * a)(p[0]) * t[0]))
    v = w.custom_vjp(lambda x: h(x))
    v.defvjp(lambda x: (v(x), x), lambda x, ct: (w.grad(h)(x) * ct,))
    return {"g": g, "k": k, "v": v}


@pytest.mark.parametrize("name", ["g", "k", "v"])
def test_a_rule_that_differentiates_another_function_with_a_rule(name):
    jax = pytest.importorskip("jax")
    ours, theirs = (
        [d(0.7) for d in orders(linked(w, np_)[name], 5, w.grad)] for w, np_ in ((weft, wnp), (jax, jax.numpy))
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)
    inner = weft.jit(linked(weft, wnp)[name])
    np.testing.assert_allclose([d(0.7) for d in orders(inner, 5)], theirs, rtol=1e-4)
    np.testing.assert_allclose(weft.vmap(orders(inner, 2)[-1])(wnp.array([0.7, 0.7])), [theirs[1]] * 2, rtol=1e-4)


def choosing(w, np_):
    f = w.custom_jvp(lambda x: x * x if x > 0 else x)
    f.defjvp(lambda p, t: (f(*p), t[0] * (5 * p[0] if p[0] > 0 else 1.0)))
    g = w.custom_vjp(lambda x: x * x if x > 0 else x)
    g.defvjp(lambda x: (g(x) if x > 0 else x, {"x": x}), lambda r, ct: (ct * (5 * r["x"] if r["x"] > 0 else 1.0),))
    return [f, g]


@pytest.mark.parametrize("which", [0, 1], ids=["jvp", "vjp"])
def test_python_chooses_in_functions_and_rules(which):
    jax = pytest.importorskip("jax")
    f, theirs = choosing(weft, wnp)[which], choosing(jax, jax.numpy)[which]
    for x in (2.0, -2.0):
        assert float(f(x)) == float(theirs(x))
        assert float(weft.grad(f)(x)) == float(jax.grad(theirs)(x))
        assert float(weft.vjp(f, x)[1](1.0)[0]) == float(jax.vjp(theirs, x)[1](1.0)[0])
        h, j = (lambda x: x * f(x)), (lambda x: x * theirs(x))
        assert float(weft.grad(weft.grad(h))(x)) == float(jax.grad(jax.grad(j))(x))
    with pytest.raises(weft.TracerError, match="Inside jit"):
        weft.jit(f)(2.0)
    with pytest.raises(weft.TracerError, match="Inside vmap"):
        weft.vmap(weft.grad(f))(wnp.ones(2))


def test_effects_of_functions_with_rules_happen_once():
    seen = []

    def noted(x):
        return weft.io_callback(lambda v: (seen.append(float(v)), v)[1], weft.ShapeDtype(()), x)

    f = weft.custom_jvp(lambda x: x if noted(x) > 0 else 2 * x)
    f.defjvp(lambda p, t: (3 * p[0], 3 * t[0]))
    assert f(1.0) == 1 and seen == [1.0]
    with pytest.raises(weft.TracerError, match="known only when the compiled code runs"):
        weft.grad(f)(1.0)  # which runs the rule instead


def test_fixed_arguments_of_rules_with_symbolic_zeros_are_as_they_are():
    f = weft.custom_vjp(lambda function, x: function(x), nondiff_argnums=(0,))
    f.defvjp(
        lambda function, x: (function(x.value), x.value),
        lambda function, x, ct: (5 * ct,),
        symbolic_zeros=True,
    )
    assert float(weft.grad(f, argnums=1)(wnp.sin, 2.0)) == 5


def test_defaults_are_arguments_of_the_rules():
    @functools.partial(weft.custom_jvp, nondiff_argnums=(1,))
    def shifted(x, eps=1e-3):
        return x + eps

    @shifted.defjvp
    def _(eps, primals, tangents):
        return shifted(primals[0], eps), tangents[0] * 1000 * eps

    @functools.partial(weft.custom_vjp, nondiff_argnames=("eps",))
    def raised(x, eps=1e-3):
        return x + eps

    raised.defvjp(lambda x, eps: (x + eps, None), lambda eps, _, ct: (ct * 1000 * eps,))
    for g in (shifted, raised):
        assert g(4.0) == g(4.0, 1e-3) == g(x=4.0) == weft.jit(g)(4.0) == wnp.float32(4.001)
        assert weft.grad(g)(4.0) == 1 and weft.grad(lambda x, g=g: g(x, eps=2e-3))(4.0) == 2
        np.testing.assert_allclose(weft.vmap(g)(wnp.ones(2)), 1.001)
        with pytest.raises(TypeError, match="missing a required argument: 'x'"):
            g()

    @weft.custom_vjp
    def product(x, y=2.0):
        return x * y

    product.defvjp(lambda x, y: (x * y, (x, y)), lambda r, ct: (ct * r[1], ct * r[0]))
    assert weft.grad(product)(3.0) == 2 and weft.grad(product)(3.0, 5.0) == 5

    # More of them than the function names, and a wrapper that names none.
    total = weft.custom_jvp(lambda x, *others: x + sum(others))
    total.defjvp(lambda p, t: (sum(p), sum(t)))
    assert weft.grad(total)(1.0) == 1 and weft.grad(total, 2)(1.0, 2.0, 3.0) == 1

    @weft.custom_jvp
    @functools.wraps(product)
    def wrapper(*args):
        return args[0] * args[1]

    wrapper.defjvp(lambda p, t: (p[0] * p[1], t[0] * p[1]))
    assert weft.grad(wrapper)(3.0) == 2

    # What is by keyword alone is the function's own, unless it is given.
    scaled = weft.custom_jvp(lambda x, *, k=2.0: k * x)
    scaled.defjvp(lambda p, t: (scaled(*p), 2 * t[0]))
    assert weft.grad(scaled)(3.0) == 2 and scaled(x=3.0) == 6
    with pytest.raises(TypeError, match="takes 'k' by keyword alone"):
        scaled(3.0, k=1.0)


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_a_solver_that_python_steers_calls_what_is_compiled(kind):
    # Without a derivative the function just runs: equation by equation each step would keep all that it computes.
    step = weft.jit(lambda x: x - (x * x - 2) / (2 * x))
    types = []

    def solve(guess, tolerance):
        types.append(type(guess))
        while abs(float(step(guess)) - float(guess)) > tolerance:
            guess = step(guess)
        return {"root": guess}

    root = getattr(weft, kind)(solve)
    if kind == "custom_jvp":
        root.defjvp(lambda primals, tangents: (solve(*primals), {"root": 0 * tangents[0]}))
    else:
        root.defvjp(lambda *args: (solve(*args), None), lambda _, given: (0 * given["root"], 0.0))
    found = root(1.0, 1e-6)
    assert found["root"] == pytest.approx(2**0.5) and types == [weft.Array]
    assert step.explain()[0]["calls"] > 4
    assert isinstance(found["root"], weft.Array)
    assert weft.grad(lambda x: root(x, 1e-6)["root"])(1.0) == 0


def test_zeros_that_rules_give_have_the_shapes_of_arguments():
    @weft.custom_vjp
    def f(x, y):
        return x, y, 2 * x

    values = weft.custom_derivatives.custom_vjp_primal_tree_values
    f.defvjp(lambda x, y: (f(values(x), values(y)), None), lambda _, cts: (cts[1], None), symbolic_zeros=True)
    two = lambda x, y: f(x, y)[2].sum()
    with pytest.raises(
        ValueError, match=r"gives a cotangent of its arguments \[0\] float32\[2\], expected float32\[1\]; None"
    ):
        weft.grad(two)(wnp.ones(1), wnp.ones(2))
    assert weft.grad(two)(wnp.ones(2), wnp.ones(2)).tolist() == [0, 0]
