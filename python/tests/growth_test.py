"""Programs of many levels: branches within branches, functions that call functions twice. Sizes are compared, and a
transform whose time doubled with every level would not end."""

import math
import re
import sys
import time
import warnings

import numpy as np
import pytest

import weft
import weft.numpy as wnp


def elif_chain(levels):
    """sin(x), 2 sin(x), ... by the first k that is above x."""

    def chain(k, x):
        if k == levels:
            return wnp.sin(x) * (levels + 1.0)
        return weft.cond(x < k, lambda x: wnp.sin(x) * (k + 1.0), lambda x: chain(k + 1, x), x)

    return lambda x: chain(0, x)


def nested(levels):
    """x sin(f(cos x)) where x is above a bound, f being the same of one level less."""

    def level(k, x):
        if k == 0:
            return wnp.sin(x)
        return weft.cond(x > -k, lambda x: x * wnp.sin(level(k - 1, wnp.cos(x))), lambda x: 2.0 * x, x)

    return lambda x: level(levels, x)


def nested_slope(levels, x):
    if levels == 0:
        return math.sin(x), math.cos(x)
    inner, slope = nested_slope(levels - 1, math.cos(x))
    return x * math.sin(inner), math.sin(inner) - x * math.cos(inner) * slope * math.sin(x)


def doubling(levels):
    """x sin(x), and each further function the one before it twice."""

    def twice(f):
        return weft.jit(lambda x: f(f(x) * 0.5))

    f = weft.jit(lambda x: x * wnp.sin(x))
    for _ in range(levels):
        f = twice(f)
    return f


def looping(levels):
    """Loops one in the other, each with a branch."""

    def level(k, x):
        if k == 0:
            return wnp.sin(x)
        body = lambda c, _: (weft.cond(c > 0, lambda c: level(k - 1, c) * wnp.cos(c), lambda c: c * 0.5, c), None)
        return weft.lax.scan(body, wnp.sin(x), None, 1)[0]

    return lambda x: level(min(levels, 12), x)


def choosing(levels):
    """One of as many branches."""
    branches = [lambda x, k=k: wnp.sin(x * k) * wnp.exp(-x * x) for k in range(levels)]
    return lambda x: weft.lax.switch(wnp.floor(x).astype("int32"), branches, x)


def size(f, *args):
    return len(str(weft.make_ir(f)(*args)))


X = np.array([-0.5, 0.5, 17.5, 42.25, 200.0])


def factors(levels):
    return np.where(X < 0, 1, np.minimum(np.floor(X) + 2, levels + 1))


class TestBranches:
    def test_a_hundred_levels(self):
        with weft.enable_x64():
            f, k = elif_chain(100), factors(100)
            np.testing.assert_allclose(weft.jit(weft.vmap(f))(X), k * np.sin(X))
            np.testing.assert_allclose(weft.jit(weft.vmap(weft.grad(f)))(X), k * np.cos(X))
            for x, factor in zip(X, k):
                np.testing.assert_allclose(weft.jit(f)(x), factor * np.sin(x))
                np.testing.assert_allclose(weft.jit(weft.grad(f))(x), factor * np.cos(x))

    def test_a_hundred_levels_with_residuals_at_each(self):
        with weft.enable_x64():
            f = nested(100)
            slope = nested_slope(100, 0.3)[1]
            np.testing.assert_allclose(weft.jit(weft.grad(f))(0.3), slope)
            np.testing.assert_allclose(weft.jit(weft.vmap(weft.grad(f)))(np.array([0.3, -200.0])), [slope, 2.0])

    def test_second_derivatives(self):
        with weft.enable_x64():
            f, k = elif_chain(24), factors(24)
            np.testing.assert_allclose(weft.jit(weft.vmap(weft.grad(weft.grad(f))))(X), -k * np.sin(X))

    # Text has an indentation that grows with the depth, so it is counted without.
    @pytest.mark.parametrize("program", [elif_chain, nested])
    def test_the_program_grows_with_its_levels(self, program):
        def words(f, x):
            return len(str(weft.make_ir(f)(x)).split())

        x, lanes = np.float32(0.5), np.ones(4, np.float32)
        for transform, argument in ((weft.grad, x), (lambda f: weft.vmap(weft.grad(f)), lanes)):
            one, two = (words(transform(program(levels)), argument) for levels in (40, 80))
            assert two < 2.6 * one


@pytest.fixture
def deep_python():
    """Room for functions that trace one another, a dozen frames each."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20 * before)
    yield
    sys.setrecursionlimit(before)


class TestFunctions:
    def test_two_hundred_levels_of_doubling(self, deep_python):
        x, lanes = np.float32(0.5), np.ones(4, np.float32)
        transforms = {
            "trace": (lambda f: f, x),
            "jvp": (lambda f: lambda x: weft.jvp(f, (x,), (x,)), x),
            "grad": (weft.grad, x),
            "grad of grad": (lambda f: weft.grad(weft.grad(f)), x),
            "vmap": (weft.vmap, lanes),
            "vmap of grad": (lambda f: weft.vmap(weft.grad(f)), lanes),
            "checkpoint": (lambda f: weft.grad(weft.remat(f)), x),
        }
        for name, (transform, argument) in transforms.items():
            small, one, two = (size(transform(doubling(n)), argument) for n in (8, 108, 208))
            assert two - small < 2.6 * (one - small), name

    def test_compiled_code_of_doubling(self):
        def by_hand(x, levels):
            if levels == 0:
                return x * math.sin(x), math.sin(x) + x * math.cos(x)
            y, dy = by_hand(x, levels - 1)
            z, dz = by_hand(0.5 * y, levels - 1)
            return z, 0.5 * dz * dy

        with weft.enable_x64():
            f = doubling(13)
            for x in (0.4, 2.5):
                y, dy = by_hand(x, 13)
                np.testing.assert_allclose(f(x), y, rtol=1e-9, atol=1e-300)
                np.testing.assert_allclose(weft.jit(weft.grad(f))(x), dy, rtol=1e-9, atol=1e-300)
            np.testing.assert_allclose(weft.jit(weft.vmap(f))(np.array([0.4, 2.5])), [f(0.4), f(2.5)], atol=1e-300)

    def test_a_large_function_is_compiled_once(self):
        def large(x):
            for i in range(300):
                x = wnp.sin(x) + x * (i * 0.01)
            return x / 1e3

        layer = weft.jit(large)

        def calls(x, times):
            for _ in range(times):
                x = layer(x)
            return x

        x = np.linspace(-1, 1, 5, dtype=np.float32)
        want = x
        for _ in range(6):
            want = np.asarray(weft.jit(large)(want))
        np.testing.assert_allclose(weft.jit(lambda x: calls(x, 6))(x), want, rtol=1e-5)
        assert str(weft.make_ir(lambda x: calls(x, 6))(x)).count("call @") == 6
        # Once is no reason for a call.
        once, often = (weft.jit(lambda x, n=n: calls(x, n)).lower(x).stage("schedule") for n in (1, 6))
        assert "function large" not in once
        assert often.count("function large") == 1

    def test_small_functions_fuse(self):
        small = weft.jit(lambda x: wnp.sin(x) + 1)
        assert "call" not in str(weft.make_ir(lambda x: small(small(x)))(np.float32(1)))


class TestLiteralLoops:
    """Loops over literals that would run for ever, or long, where they are compiled."""

    @staticmethod
    def endless(x):
        return weft.while_loop(lambda y: y > 0.0, lambda y: y, wnp.float32(1.0)) + x

    @pytest.mark.parametrize(
        "place",
        [
            lambda branch: branch,
            lambda branch: lambda x: weft.scan(lambda c, _: (branch(c), None), x, None, length=3)[0],
            lambda branch: lambda x: weft.fori_loop(0, 3, lambda i, c: branch(c), x),
            lambda branch: lambda x: weft.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, branch(c[1])), (0, x))[1],
            lambda branch: weft.jit(branch),
            lambda branch: lambda x: weft.vmap(branch)(wnp.stack([x, x]))[0],
            lambda branch: weft.remat(branch),
            lambda branch: lambda x: weft.cond(x < 50.0, branch, lambda x: x, x),
        ],
    )
    def test_a_branch_that_is_not_taken(self, place):
        f = place(lambda x: weft.cond(x > 100.0, self.endless, lambda x: x, x))
        assert weft.jit(f)(np.float32(2.5)) == 2.5
        assert weft.jit(weft.grad(f))(np.float32(2.5)) == 1

    def test_a_loop_of_many_trips_is_compiled(self):
        def f(x):
            return x + weft.fori_loop(0, 10**6, lambda i, c: c + 1, wnp.int32(0)).astype(x.dtype)

        assert weft.jit(f)(np.float32(0)) == 10**6


def largest_function(f, *args):
    """The lines of the largest function of the compiled program, kernels aside."""
    bodies = weft.jit(f).lower(*args).stage("llvm").split("\ndefine ")[1:]
    return max(body.count("\n") for body in bodies if re.search(r"@(weft_main|part\d+)\(", body))


@pytest.mark.parametrize("program", [nested, elif_chain])
@pytest.mark.parametrize("transform", [weft.grad, lambda f: weft.vmap(weft.grad(f))])
def test_no_function_grows_with_the_branches_of_a_program(program, transform):
    x = wnp.ones(3) if transform is not weft.grad else 1.0
    few, many = (largest_function(transform(program(levels)), x) for levels in (20, 60))
    assert many <= 1.5 * few + 200, (few, many)


@pytest.mark.parametrize("levels", [1, 2, 40])
def test_branches_in_functions_of_their_own_compute_the_same(levels):
    for program in (nested, elif_chain, looping, choosing):
        f = program(levels)
        for x in X[:3]:
            want = weft.grad(f)(x)
            np.testing.assert_allclose(weft.jit(weft.grad(f))(x), want, rtol=1e-5)
            np.testing.assert_allclose(weft.jit(weft.vmap(weft.grad(f)))(wnp.stack([x, x + 1]))[0], want, rtol=1e-5)


def test_donation_of_many_arrays_takes_no_longer_for_each():
    def seconds(n):
        f = weft.jit(lambda xs: [x + 1 for x in xs[:2]], donate_argnums=0)
        best = math.inf
        for _ in range(4):
            xs = [wnp.float32(i) + 0 for i in range(n)]
            begin = time.process_time()
            f(xs)
            best = min(best, time.process_time() - begin)
        return best

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert seconds(8000) < 5 * 4 * seconds(2000)


@pytest.mark.parametrize("donate", [(), (0,)])
def test_calls_with_many_arrays_take_no_longer_for_each(donate):
    def seconds(n):
        f = weft.jit(lambda xs: [x + 1 for x in xs], donate_argnums=donate)
        xs = f([wnp.float32(i) + 0 for i in range(n)])
        best = math.inf
        for _ in range(5):
            begin = time.process_time()
            xs = f(xs)
            best = min(best, time.process_time() - begin)
        return best

    assert seconds(4000) < 3 * 8 * seconds(500)
