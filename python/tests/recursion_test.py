"""Functions that call themselves, and loops of unknown length in reverse mode: values, derivatives, lanes, errors."""

import math

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


def test_traced_bounds():
    f = weft.jit(weft.grad(lambda x, n: weft.fori_loop(0, n, lambda i, c: c * x, 1.0)))
    assert [f(2.0, n).item() for n in (0, 1, 5)] == [0, 1, 80]


def test_a_tape_that_does_not_end_is_an_error():
    script = (
        "import weft, numpy as np\n"
        "f = lambda x: weft.while_loop(lambda c: c.sum() > 0, lambda c: c * c + 1e-3, x).sum()\n"
        "try:\n    weft.jit(weft.grad(f))(np.full(1000, 0.5, np.float32))\n"
        "except RuntimeError as e: print(e)\n"
    )
    import os
    import subprocess
    import sys

    env = dict(os.environ, WEFT_TAPE_BYTES="20000000", PYTHONPATH=os.pathsep.join(sys.path))
    out = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=60)
    assert "out of memory: the tape of a loop holds" in out.stdout, out.stdout + out.stderr


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
