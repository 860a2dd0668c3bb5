"""What programs are made of once the rules of algebra have gone over them. NumPy says what they mean."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.lax as lax
import weft.numpy as wnp

X = np.array([0.5, 1.5, 2.5, 3.5, 0.25, 0.75], np.float32)
A = np.arange(30, dtype=np.float32).reshape(6, 5)
I, J = np.array([1, 3, 2, 0]), np.array([2, 0, 3])


def counts(f, *args):
    """How often each operation stands in the program, regions included."""
    text = weft.jit(f).lower(*args).stage("optimized")
    return lambda name: sum(
        f" = {name}" in line and line.split(" = ")[1].split()[0].split("[")[0] == name for line in text.splitlines()
    )


# A function, its operands, what NumPy says, and how often operations are left.
CASES = {
    "product of exponentials": (
        lambda x, y: wnp.exp(x) * wnp.exp(y),
        (X, -X[::-1]),
        lambda x, y: np.exp(x + y),
        {"exp": 1},
    ),
    "quotient of exponentials": (
        lambda x, y: wnp.exp(x) / wnp.exp(y),
        (X, X[::-1]),
        lambda x, y: np.exp(x - y),
        {"exp": 1, "div": 0},
    ),
    "reciprocal of an exponential": (lambda x: 1 / wnp.exp(x), (X,), lambda x: np.exp(-x), {"div": 0}),
    "power of a power": (lambda x: (x**1.5) ** 2.5, (X,), lambda x: x**3.75, {"pow": 1}),
    "reciprocal of a root": (lambda x: 1 / wnp.sqrt(x), (X,), lambda x: 1 / np.sqrt(x), {"div": 0, "rsqrt": 1}),
    "logarithm of an exponential": (lambda x: wnp.log(wnp.exp(x)), (X,), lambda x: x, {"log": 0, "exp": 0}),
    "square of a root": (lambda x: wnp.sqrt(x) * wnp.sqrt(x), (X,), lambda x: x, {"sqrt": 0, "mul": 0}),
    "rows of rows": (lambda a, i, j: a[i][j], (A, I, J), lambda a, i, j: a[i][j], {}),
    "rows of columns": (lambda a, i, j: a[:, i][j], (A, I, J), lambda a, i, j: a[:, i][j], {}),
    "slice of rows": (lambda a, i: a[i][1:3], (A, I), lambda a, i: a[i][1:3], {}),
    "slice of rows and columns": (lambda a, i: a[i][1:4:2, 1:3], (A, I), lambda a, i: a[i][1:4:2, 1:3], {}),
    "row of rows": (lambda a, i: a[i][2], (A, I), lambda a, i: a[i][2], {}),
}


@pytest.mark.parametrize("case", CASES)
def test_algebra(case):
    f, args, truth, left = CASES[case]
    count = counts(f, *args)
    for name, times in left.items():
        assert count(name) == times, name
    want = truth(*(np.asarray(a, np.float64) if a.dtype == np.float32 else a for a in args))
    np.testing.assert_allclose(weft.jit(f)(*args), want, rtol=1e-6)
    np.testing.assert_allclose(f(*args), want, rtol=1e-6)
    batch = tuple(np.stack([a, a[::-1]]) for a in args)
    for k, got in enumerate(weft.jit(weft.vmap(f))(*batch)):
        wide = (np.asarray(a[k], np.float64) if a.dtype == np.float32 else a[k] for a in batch)
        np.testing.assert_allclose(got, truth(*wide), rtol=1e-6)
    with_grad = weft.grad(lambda x, *rest: f(x, *rest).sum())
    without = weft.jit(with_grad, licence="exact")
    np.testing.assert_allclose(with_grad(*args), without(*args), rtol=1e-5)


def test_indices_are_taken_of_indices():
    gathers = counts(lambda a, i, j: a[i][j], A, I, J)
    text = weft.jit(lambda a, i, j: a[i][j]).lower(A, I, J).stage("optimized")
    assert gathers("gather") == 2 and "f32[4,5] = gather" not in text
    text = weft.jit(lambda a, i: a[i][1:3]).lower(A, I).stage("optimized")
    assert "f32[2,5] = gather" in text and "f32[4,5] = gather" not in text


def test_exponentials_that_others_read_stay():
    def f(x, y):
        p, q = wnp.exp(x), wnp.exp(y)
        return p * q, p + q

    assert counts(f, X, X)("exp") == 2


@pytest.mark.parametrize("branches", [2, 3])
def test_what_all_branches_compute_is_computed_before_them(branches):
    def f(k, x):
        return lax.switch(k, [lambda n=n: wnp.sin(wnp.exp(x)) + n for n in range(branches)])

    k = wnp.asarray(1)
    text = weft.jit(f).lower(k, X).stage("optimized")
    before = text[: text.index(" = cond")]
    assert "= exp" in before and "= sin" in before and text.count("= exp") == 1
    for at in range(branches):
        np.testing.assert_allclose(weft.jit(f)(wnp.asarray(at), X), np.sin(np.exp(X)) + at, rtol=1e-5)
        slope = weft.grad(lambda x, at=at: f(wnp.asarray(at), x).sum())(X)
        np.testing.assert_allclose(slope, np.cos(np.exp(X)) * np.exp(X), rtol=1e-4, atol=1e-5)


def test_what_branches_compute_of_different_values_stays():
    f = lambda p, x, y: lax.cond(p, lambda: wnp.exp(x), lambda: wnp.exp(y) + 1)
    text = weft.jit(f).lower(True, X, X).stage("optimized")
    assert text.count("= exp") == 2
    np.testing.assert_allclose(weft.jit(f)(False, X, 2 * X), np.exp(2 * X) + 1, rtol=1e-6)


def test_what_all_branches_return_is_no_result():
    f = lambda p, x: lax.cond(p, lambda: (1.0, x, x + 1, x * 3), lambda: (1.0, x, x * 2, x * 3))
    text = weft.jit(f).lower(True, X).stage("optimized")
    at = text.index(" = cond")
    assert text[text.rindex("\n", 0, at) : at].count(":") == 1  # one result
    for p, third in ((True, X + 1), (False, X * 2)):
        got = weft.jit(f)(p, X)
        np.testing.assert_array_equal(got[0], 1)
        for value, want in zip(got[1:], (X, third, X * 3)):
            np.testing.assert_allclose(value, want, rtol=1e-6)
