"""Functions that call themselves inside shard_map and pmap: devices may go to different depths. Closed forms."""

import os

os.environ["WEFT_NUM_CPU_DEVICES"] = "4"

import numpy as np
import pytest

import weft
from weft import lax

P = weft.PartitionSpec
MESH = weft.make_mesh((4,), ("i",))
N = np.arange(4, dtype="int32")
X = np.array([2.0, 3.0, 1.5, 2.5], "float32")


@weft.jit
def power(n, x):
    """x^(n + 1)."""
    return weft.cond(n < 1, lambda: x, lambda: x * power(n - 1, x))


@weft.jit
def fibonacci(n, x):
    return weft.cond(n < 2, lambda: x, lambda: fibonacci(n - 1, x) + fibonacci(n - 2, x * x))


def fibonacci_terms(n):
    """The powers of x that it consists of."""
    if n < 2:
        return np.eye(20)[1]
    squared = np.zeros(20)
    squared[::2] = fibonacci_terms(n - 2)[:10]
    return fibonacci_terms(n - 1) + squared


CUT, SHARED = P("i"), P()


def cut(f, n=CUT, x=CUT):
    return weft.shard_map(f, mesh=MESH, in_specs=(n, x), out_specs=CUT)


def each(f):
    return cut(lambda n, x: f(n[0], x))


def derivatives(f, x):
    """Value, gradient of the sum, and gradient of its sum, by every way."""
    total = lambda x: f(x).sum()
    grad, ones = weft.grad(total), np.ones_like(x)
    second = lambda x: weft.grad(lambda x: grad(x).sum())(x)
    yield f(x), grad(x), second(x)
    yield weft.jit(f)(x), weft.jit(grad)(x), weft.jit(second)(x)
    yield f(x), weft.linear_transpose(lambda t: weft.jvp(total, (x,), (t,))[1], x)(np.float32(1))[0], second(x)
    assert weft.jvp(total, (x,), (ones,))[1] == pytest.approx(float(grad(x).sum()), rel=1e-5)
    np.testing.assert_allclose(weft.jvp(grad, (x,), (ones,))[1], second(x), rtol=1e-5)


def test_depths_that_differ():
    for value, first, second in derivatives(lambda x: each(power)(N, x), X):
        np.testing.assert_allclose(value, X ** (N + 1), rtol=1e-6)
        np.testing.assert_allclose(first, (N + 1) * X**N, rtol=1e-6)
        np.testing.assert_allclose(second, (N + 1) * N * X ** np.maximum(N - 1, 0), rtol=1e-6)


def test_one_depth():
    f = cut(power, SHARED)
    for value, first, second in derivatives(lambda x: f(np.int32(3), x), X):
        np.testing.assert_allclose(value, X**4, rtol=1e-6)
        np.testing.assert_allclose(first, 4 * X**3, rtol=1e-6)
        np.testing.assert_allclose(second, 12 * X**2, rtol=1e-6)


def test_an_argument_that_all_devices_share():
    f = cut(lambda n, x: power(n[0], x)[None], x=SHARED)
    for value, first, second in derivatives(lambda x: f(N, x), np.float32(2)):
        np.testing.assert_allclose(value, [2, 4, 8, 16])
        assert (float(first), float(second)) == (1 + 4 + 12 + 32, 0 + 2 + 12 + 48)


def test_two_calls_in_each():
    n = np.array([2, 5, 3, 4], "int32")
    terms, k = np.array([fibonacci_terms(int(i)) for i in n]), np.arange(20)
    powers = lambda x, by: np.where(k >= by, x[:, None] ** np.maximum(k - by, 0), 0)
    for value, first, second in derivatives(lambda x: each(fibonacci)(n, x), X):
        np.testing.assert_allclose(value, (terms * powers(X, 0)).sum(1), rtol=1e-5)
        np.testing.assert_allclose(first, (terms * k * powers(X, 1)).sum(1), rtol=1e-5)
        np.testing.assert_allclose(second, (terms * k * (k - 1) * powers(X, 2)).sum(1), rtol=1e-5)


def test_under_vmap():
    xs = np.stack([X, X + 1])
    np.testing.assert_allclose(weft.vmap(lambda x: each(power)(N, x))(xs), xs ** (N + 1), rtol=1e-6)
    grad = weft.vmap(weft.grad(lambda x: each(power)(N, x).sum()))
    np.testing.assert_allclose(grad(xs), (N + 1) * xs**N, rtol=1e-6)


def test_pmap():
    np.testing.assert_allclose(weft.pmap(power)(N, X), X ** (N + 1), rtol=1e-6)
    np.testing.assert_allclose(weft.pmap(weft.grad(power, 1))(N, X), (N + 1) * X**N, rtol=1e-6)


def test_the_place_of_a_device_inside():
    @weft.jit
    def f(n, x):
        here = lax.axis_index("i").astype("float32")
        return weft.cond(n < 1, lambda: x + here, lambda: x * f(n - 1, x))

    for value, first, second in derivatives(lambda x: cut(f, SHARED)(np.int32(2), x), X):
        np.testing.assert_allclose(value, X**2 * (X + N), rtol=1e-6)
        np.testing.assert_allclose(first, 3 * X**2 + 2 * X * N, rtol=1e-6)
        np.testing.assert_allclose(second, 6 * X + 2 * N, rtol=1e-6)


def test_devices_meet_in_every_call():
    @weft.jit
    def f(n, x):
        return weft.cond(n < 1, lambda: x, lambda: x * lax.psum(f(n - 1, x), "i"))

    s = X.sum()
    for value, first, second in derivatives(lambda x: cut(f, SHARED)(np.int32(2), x), X):
        np.testing.assert_allclose(value, X * s**2, rtol=1e-6)  # together s^3
        np.testing.assert_allclose(first, np.full(4, 3 * s**2), rtol=1e-5)
        np.testing.assert_allclose(second, np.full(4, 4 * 6 * s), rtol=1e-5)


def test_devices_that_go_to_different_depths_cannot_meet():
    @weft.jit
    def f(n, x):
        return weft.cond(n < 1, lambda: x, lambda: x * lax.psum(f(n - 1, x), "i"))

    with pytest.raises(TypeError, match="devices along 'i' may choose differently, but a region has a collective"):
        each(f)(N, X)


def test_a_linear_solve_whose_product_calls_itself():
    @weft.jit
    def doubled(n, v):
        return weft.cond(n < 1, lambda: v, lambda: 2.0 * doubled(n - 1, v))

    def solve(n, b):
        return lax.custom_linear_solve(lambda v: doubled(n, v), b, lambda _, b: b / 2.0**n, symmetric=True)

    for f in (solve, weft.jit(solve)):
        np.testing.assert_allclose(f(3, X), X / 8)
        np.testing.assert_allclose(weft.grad(lambda b, f=f: f(3, b).sum())(X), np.full(4, 0.125))
