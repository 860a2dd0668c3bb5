"""Functions that call themselves, and loops of unknown length in reverse mode: values, derivatives, lanes, errors."""

import gc
import math
import pickle

import numpy as np
import pytest

import weft
import weft.numpy as wnp


@weft.jit
def fact(n):
    return weft.cond(n <= 1, lambda: 1.0, lambda: n * fact(n - 1))


@weft.jit
def fib(n):
    return weft.cond(n < 2, lambda: n, lambda: fib(n - 1) + fib(n - 2))


@weft.jit
def ackermann(m, n):
    return weft.cond(
        m == 0,
        lambda: n + 1,
        lambda: weft.cond(n == 0, lambda: ackermann(m - 1, 1), lambda: ackermann(m - 1, ackermann(m, n - 1))),
    )


@weft.jit
def even(n):
    return weft.cond(n == 0, lambda: True, lambda: odd(n - 1))


@weft.jit
def odd(n):
    return weft.cond(n == 0, lambda: False, lambda: even(n - 1))


def test_values():
    assert fact(3.0).item() == 6 and fact(5.0).item() == 120
    assert fib(20).item() == 6765
    assert ackermann(2, 3).item() == 9
    assert [even(i).item() for i in range(4)] == [True, False, True, False]
    assert [odd(i).item() for i in range(4)] == [False, True, False, True]


def test_derivatives_of_every_order():
    # x (x - 1) (x - 2) (x - 3) at 4.5, by hand
    x = np.poly1d([1, 0]) * np.poly1d([1, -1]) * np.poly1d([1, -2]) * np.poly1d([1, -3])
    f = fact
    for k in range(4):
        np.testing.assert_allclose(f(4.5).item(), np.polyder(x, k)(4.5) if k else x(4.5), rtol=1e-6)
        f = weft.grad(f)
    np.testing.assert_allclose(weft.hessian(fact)(4.5).item(), np.polyder(x, 2)(4.5), rtol=1e-6)
    _, tangent = weft.jvp(fact, (4.5,), (2.0,))
    np.testing.assert_allclose(tangent.item(), 2 * np.polyder(x, 1)(4.5), rtol=1e-6)
    assert weft.jit(weft.grad(fact))(3.0).item() == 5


def test_lanes_end_where_they_end():
    n = np.array([1.0, 3.0, 5.0, 0.5], np.float32)
    np.testing.assert_allclose(weft.vmap(fact)(n), [1, 6, 120, 1])
    np.testing.assert_allclose(weft.jit(weft.vmap(weft.grad(fact)))(n), [0, 5, 154, 0])  # 154: sum of 120 / factor
    np.testing.assert_allclose(weft.grad(lambda n: weft.vmap(fact)(n).sum())(n), [0, 5, 154, 0])


def test_captured_values_and_arrays():
    big = np.arange(100.0, dtype=np.float32)

    @weft.jit
    def outer(x, k):
        w = wnp.sin(x)

        @weft.jit
        def power(y, n):
            return weft.cond(n == 0, lambda: y + wnp.sum(big), lambda: power(y * w, n - 1))

        return power(x, k)

    x = 2.0
    np.testing.assert_allclose(outer(x, 3).item(), 4950 + x * math.sin(x) ** 3, rtol=1e-6)
    slope = math.sin(x) ** 3 + 3 * x * math.sin(x) ** 2 * math.cos(x)
    np.testing.assert_allclose(weft.grad(outer)(x, 3).item(), slope, rtol=1e-5)


P = weft.checkpoint_policies


@pytest.mark.parametrize(
    "policy",
    [
        None,
        P.nothing_saveable,
        P.dots_saveable,
        P.everything_saveable,
        P.save_only_these_names("product"),
        lambda prim, *_, **__: prim.name == "sin",
    ],
    ids=["none", "nothing", "dots", "everything", "names", "function"],
)
def test_calls_inside_checkpoint(policy):
    """Their results are kept, whatever the policy says: the program that makes the rest again cannot call them."""
    name = weft.ad_checkpoint.checkpoint_name

    def function(body):
        @weft.jit
        def f(n, x):
            inner = weft.checkpoint(lambda m, y: body(f, m, y), policy=policy)
            return weft.cond(n <= 0, lambda: x, lambda: inner(n - 1, x))

        return f

    square = lambda y: y**2
    again = lambda c: c[0] < 1
    bodies = {  # f(n, x) in terms of y = x and f(n - 1, y), and what f(2, x) is: factor x^exponent
        "product": (lambda f, n, y: name(f(n, y) * y, "product"), 1, 3),
        "branch": (lambda f, n, y: weft.cond(y > 0, lambda: 2 * y * f(n, y), lambda: y + f(n, y)), 4, 3),
        "loop after": (lambda f, n, y: weft.fori_loop(0, 3, lambda i, c: c * y, f(n, y)), 1, 7),
        "scan": (lambda f, n, y: weft.scan(lambda c, _: (square(f(n, c)), None), y, None, length=1)[0] * y, 1, 7),
        "while": (lambda f, n, y: weft.while_loop(again, lambda c: (c[0] + 1, square(f(n, c[1]))), (0, y))[1], 1, 4),
        "checkpoint": (lambda f, n, y: weft.checkpoint(f)(n, y) ** 3, 1, 9),
        "two calls": (lambda f, n, y: f(n, y) * f(n, square(y)), 1, 9),
    }
    x = 1.1
    for what, (body, factor, k) in bodies.items():
        f = function(body)
        at = lambda x, f=f: f(2, x)
        slope, curvature = factor * k * x ** (k - 1), factor * k * (k - 1) * x ** (k - 2)
        for how, got, expected in (
            ("grad", weft.grad(f, argnums=1)(2, x), slope),
            ("jit", weft.jit(weft.grad(at))(x), slope),
            ("vmap", weft.vmap(weft.grad(at))(wnp.stack([x, x]))[1], slope),
            (
                "of vmap",
                weft.grad(lambda x, f=f: weft.vmap(f)(wnp.array([0, 2]), wnp.stack([x, x])).sum())(x),
                1 + slope,
            ),
            ("outer checkpoint", weft.grad(weft.checkpoint(at, policy=policy))(x), slope),
            ("grad grad", weft.grad(weft.grad(at))(x), curvature),
            ("hessian", weft.hessian(at)(x), curvature),
        ):
            np.testing.assert_allclose(got, expected, rtol=1e-4, err_msg=f"{what}: {how}")


def test_calls_inside_loops():
    @weft.jit
    def f(x):  # the loop ends when f(c + 5) = c + 5 passes 8
        return weft.cond(x > 5, lambda: x, lambda: weft.while_loop(lambda c: f(c + 5.0) < 8, lambda c: c * 1.5, x) * x)

    for got, expected in ((f(1.0), 3.375), (weft.jvp(f, (1.0,), (1.0,))[1], 6.75), (weft.grad(f)(1.0), 6.75)):
        assert got.item() == pytest.approx(expected)

    @weft.jit
    def g(n, x):
        body = lambda i, c: g(n - 1, c) * x
        return weft.cond(n <= 0, lambda: x, lambda: weft.fori_loop(0, 2, body, x, strategy="binomial(1)"))

    assert g(2, 1.1).item() == pytest.approx(1.1**13)
    assert weft.jvp(lambda x: g(2, x), (1.1,), (1.0,))[1].item() == pytest.approx(13 * 1.1**12, rel=1e-5)
    with pytest.raises(weft.DerivativeError, match="calls the recursive function around the loop cannot be run again"):
        weft.grad(lambda x: g(2, x))(1.1)


def test_calls_inside_custom_vmap():
    @weft.jit
    def f(n, x):  # (2 x)^n x
        @weft.custom_batching.custom_vmap
        def times(n, y):
            return f(n, y) * 2 * y

        @times.def_vmap
        def rule(size, mapped, n, y):
            return weft.vmap(lambda n, y: f(n, y) * 2 * y, [0 if m else None for m in mapped])(n, y), True

        return weft.cond(n <= 0, lambda: x, lambda: times(n - 1, x))

    x, n = 1.5, 3
    slope, curvature = 8 * 4 * x**3, 8 * 4 * 3 * x**2
    at = lambda x: f(n, x)
    for got, expected in (
        (weft.grad(at)(x), slope),
        (weft.jit(weft.grad(at))(x), slope),
        (weft.vmap(weft.grad(at))(wnp.stack([x, x]))[1], slope),
        (weft.grad(lambda x: weft.vmap(f)(wnp.array([0, n]), wnp.stack([x, x])).sum())(x), 1 + slope),
        (weft.grad(weft.checkpoint(at))(x), slope),
        (weft.linear_transpose(weft.linearize(at, x)[1], x)(1.0)[0], slope),
        (weft.grad(weft.grad(at))(x), curvature),
        (weft.hessian(at)(x), curvature),
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_containers_and_arrays_as_results():
    @weft.jit
    def halves(x, n):
        return weft.cond(
            n == 0,
            lambda: {"sum": x.sum(), "x": x},
            lambda: weft.tree.map(lambda leaf: leaf * 0.5, halves(x * 2, n - 1)),
        )

    out = halves(np.ones(3, np.float32), 4)
    assert out["sum"].item() == 3 and out["x"].tolist() == [1, 1, 1]


def test_errors():
    @weft.jit
    def endless(x):
        return endless(x) + 1

    with pytest.raises(TypeError, match="'endless' calls itself, and what it returns cannot be told"):
        endless(1.0)

    @weft.jit
    def deep(x):
        return weft.cond(x < 0, lambda: x, lambda: deep(x + 1))

    with pytest.raises(RuntimeError, match=r"'deep' calls itself .* calls deep"):
        deep(1.0)

    @weft.jit
    def changing(x):
        return weft.cond(x < 0, lambda: wnp.float32(1), lambda: wnp.concatenate([changing(x - 1)[None], x[None]]).sum())

    assert changing(1.0).item() == 2  # 1 + 0 + 1
    with pytest.raises(TypeError, match="same shape"):

        @weft.jit
        def growing(x):
            return weft.cond(x < 0, lambda: x[None], lambda: wnp.concatenate([growing(x - 1), x[None]]))

        growing(1.0)
    assert not weft._weft.is_tracing()


def doubling(x):
    return weft.while_loop(lambda c: c < 10, lambda c: c * 2, x)


def squaring(x):
    return weft.while_loop(lambda c: c < 100.0, lambda c: c * c, x)


def test_reverse_mode_through_while():
    assert weft.grad(doubling)(1.0).item() == 16
    assert weft.jit(weft.grad(doubling))(1.0).item() == 16
    f = squaring  # x ** 8 from 2
    for want in (256, 1024, 3584, 336 * 32):
        assert f(2.0).item() == want
        f = weft.grad(f)
    x = np.array([2.0, 11.0, 200.0, 3.0], np.float32)  # x ** 8, x ** 2, x, x ** 8
    np.testing.assert_allclose(weft.vmap(weft.grad(squaring))(x), [1024, 22, 1, 8 * 2187])
    np.testing.assert_allclose(weft.jit(weft.vmap(weft.grad(weft.grad(squaring))))(x), [3584, 2, 0, 56 * 729])
    np.testing.assert_allclose(weft.grad(lambda x: weft.vmap(squaring)(x).sum())(x), [1024, 22, 1, 8 * 2187])


@pytest.mark.parametrize("strategy", ["tape", "recount"])
def test_strategies(strategy):
    def newton(a):
        # the root of c * c = a; its derivative is 1 / (2 root)
        c = weft.while_loop(lambda c: abs(c * c - a) > 1e-5, lambda c: 0.5 * (c + a / c), a, strategy=strategy)
        return 0.5 * (c + a / c)

    for a in (2.0, 9.0):
        np.testing.assert_allclose(weft.grad(newton)(a).item(), 0.5 / math.sqrt(a), rtol=1e-4)
    with pytest.raises(ValueError, match="strategy='taped'; expected 'tape' or 'recount'"):
        weft.while_loop(lambda c: c < 1, lambda c: c + 1, 0, strategy="taped")


def test_pullbacks_keep_their_tapes():
    value, pullback = weft.vjp(weft.jit(squaring), 2.0)
    assert value.item() == 256 and [pullback(c)[0].item() for c in (1.0, 2.0)] == [1024, 2048]


@weft.jit
def damped(n, x):
    return weft.cond(n <= 0, lambda: x, lambda: wnp.sin(damped(n - 1, x * 1.1)))


def steps(x):
    return 2 + wnp.int32(weft.lax.stop_gradient(x).sum())


def growing(x, bound=100, **strategy):
    return weft.while_loop(lambda c: c.sum() < bound, lambda c: c * c + 1, x, **strategy)


TAPED = {
    "while": growing,
    "recount": lambda x: growing(x, strategy="recount"),
    "lanes": lambda x: weft.vmap(growing)(x),
    "traced bound": lambda x: weft.fori_loop(0, steps(x), lambda i, c: wnp.sin(c) * x[::-1], x),
    "nested": lambda x: weft.fori_loop(0, steps(x), lambda i, c: 0.1 * growing(c, bound=5), x),
    "recursion": lambda x: damped(3, x),
    "branch": lambda x: weft.cond(x.sum() > 0, lambda: growing(x), lambda: x),
}


@pytest.mark.parametrize("name", TAPED)
def test_linear_maps_with_tapes_are_functions_like_others(name):
    """A tape that a pullback or a linear map captured is a constant of whatever program they become part of. Forward
    mode, which needs no tapes, tells what is right."""
    f, x, v = TAPED[name], np.float32([1.1, 0.9]), np.float32([0.5, -2])
    jacobian = np.asarray(weft.jacfwd(f)(x))
    back, along = v @ jacobian, jacobian @ v
    eye = np.eye(2, dtype="float32")
    _, pull = weft.vjp(f, x)
    _, linear = weft.linearize(f, x)
    first = lambda c: pull(c)[0]
    twice = lambda c: weft.scan(lambda c, _: (first(c) / 100, None), c, None, length=2)[0]
    total = lambda x: f(x).sum()
    hessian = weft.hessian(total)(x)
    for got, expected in (
        (weft.jacrev(f)(x), jacobian),
        (weft.vmap(first)(eye), jacobian),
        (weft.vmap(linear)(eye), jacobian.T),
        (weft.jit(pull)(v)[0], back),
        (weft.jit(linear)(v), along),
        (weft.jit(weft.vmap(linear))(eye), jacobian.T),
        (weft.jvp(linear, (v,), (2 * v,))[1], 2 * along),
        (weft.grad(lambda c: linear(c) @ v)(x), back),
        (weft.vjp(pull, v)[1]((v,))[0], along),
        (weft.linear_transpose(linear, x)(v)[0], back),
        (weft.linear_transpose(first, x)(v)[0], along),
        (weft.make_ir(first)(v)(v), back),
        (twice(v), back @ jacobian / 10000),
        (weft.jit(lambda b: weft.cond(b, lambda: first(v), lambda: v))(True), back),
        (weft.checkpoint(first)(v), back),
        (weft.jacrev(weft.jacrev(total))(x), hessian),
        (weft.jacrev(weft.jacfwd(total))(x), hessian),
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def test_the_jacobian_of_a_loop_of_unknown_length():
    # 1, 2, 5, 26, 677: the derivative of c^2 + 1 is 2 c
    np.testing.assert_allclose(weft.jacrev(growing)(np.ones(2, "float32")), 2 * 4 * 10 * 52 * np.eye(2))


def test_tapes_that_programs_captured():
    x = np.ones(2, "float32")
    _, pull = weft.vjp(growing, x)
    ir = weft.make_ir(pull)(x)
    assert "const b: tape[]" in ir.text
    for read in (weft.parse_ir(ir.text), weft.deserialize_ir(ir.serialize())):
        assert read == ir
        assert read(x, *ir.constants).tolist() == pull(x)[0].tolist() == [4160, 4160]
    [tape] = ir.constants
    assert repr(tape) == str(tape) == f"{tape}" == "Array(shape=(), dtype=tape)"
    for refused in (np.asarray, float, pickle.dumps, lambda t: t.item(), lambda t: t.tolist()):
        with pytest.raises(TypeError, match="a tape has no form outside of Weft"):
            refused(tape)
    with pytest.raises(NotImplementedError, match=r"tape .*which a bundle cannot bring along"):
        weft.jit(pull).lower(x).export("tape.weftb")
    [kept] = [r for r in weft.saved_residuals(lambda c: ir(c)[0] ** 2, x) if r.kind == "constant"]
    assert repr(kept) == "tape[] from a constant" and not kept.tape
    assert {r.type for r in weft.saved_residuals(damped, 3, 1.0)} == {"tape[]"}


def test_what_captured_a_tape_keeps_it():
    x = np.ones(2, "float32")

    def jitted():
        _, pull = weft.vjp(growing, x)
        return weft.jit(lambda c: pull(c)[0])

    f = jitted()
    for _ in range(2):
        gc.collect()
        weft.grad(lambda x: growing(x).sum())(2 * x)  # other tapes
        assert f(x).tolist() == [4160, 4160]


def test_traced_bounds():
    f = weft.jit(weft.grad(lambda x, n: weft.fori_loop(0, n, lambda i, c: c * x, 1.0)))
    assert [f(2.0, n).item() for n in (0, 1, 5)] == [0, 1, 80]


def test_a_tape_that_does_not_end_is_an_error():
    script = (
        "import weft, numpy as np\n"
        "f = lambda x: weft.while_loop(lambda c: c.sum() > 0, lambda c: c * c + 1e-3, x).sum()\n"
        "try:\n    weft.jit(weft.grad(f))(np.full(1000, 0.5, np.float32))\n"
        "except MemoryError as e: print(e)\n"
    )
    import os
    import subprocess
    import sys

    env = dict(os.environ, WEFT_TAPE_BYTES="20000000", PYTHONPATH=os.pathsep.join(sys.path))
    out = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=60)
    assert "out of memory: 'f': the tape of a loop holds" in out.stdout, out.stdout + out.stderr


DERIVATIVES = {
    "grad": lambda f, x: weft.grad(f)(x),
    "jvp": lambda f, x: weft.jvp(f, (x,), (1.0,))[1],
    "linearize": lambda f, x: weft.linearize(f, x)[1](1.0),
    "vjp": lambda f, x: weft.vjp(f, x)[1](1.0)[0],
    "jet": lambda f, x: weft.jet(f, (x,), ((1.0,),))[1][0],
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_inside_the_function_that_is_differentiated_are_refused(name):
    @weft.jit
    def f(n, x):
        return weft.cond(n <= 0, lambda: x, lambda: x * DERIVATIVES[name](lambda v: f(n - 1, v), x))

    with pytest.raises(weft.DerivativeError, match=f"{name}: .* calls the recursive function in which"):
        f(2, 3.0)
