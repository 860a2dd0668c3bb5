"""Losses that choose an element of each row, in the ways people write that: their numbers against NumPy in f64, and
that neither they nor their gradients put more arrays of all elements into memory than they need."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import lax

N, M = 60, 40
X = np.random.default_rng(0).normal(size=(N, M)).astype(np.float32) * 3
Y = np.random.default_rng(1).integers(0, M, N).astype(np.int32)

LOSSES = {
    "take_along_axis": lambda x, y: -wnp.take_along_axis(weft.nn.log_softmax(x), y[:, None], 1).mean(),
    "indices": lambda x, y: -weft.nn.log_softmax(x)[wnp.arange(N), y].mean(),
    "indices, clipped": lambda x, y: -weft.nn.log_softmax(x).at[wnp.arange(N), y].get(mode="clip").mean(),
    "mapped": lambda x, y: -weft.vmap(lambda row, i: weft.nn.log_softmax(row)[i])(x, y).mean(),
    "one hot": lambda x, y: -(weft.nn.one_hot(y, M) * weft.nn.log_softmax(x)).sum(1).mean(),
    "by hand": lambda x, y: -wnp.log((wnp.exp(x) / wnp.exp(x).sum(1, keepdims=True))[wnp.arange(N), y]).mean(),
    "difference": lambda x, y: (weft.nn.logsumexp(x, axis=1) - wnp.take_along_axis(x, y[:, None], 1)[:, 0]).mean(),
    "transposed": lambda x, y: -wnp.take_along_axis(weft.nn.log_softmax(x.T, axis=0), y[None], 0).mean(),
}


def _wanted(x, y):
    wide = x.astype(float)
    p = np.exp(wide - wide.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    return -np.log(p[np.arange(N), y]).mean(), (p - np.eye(M)[y]) / N


@pytest.mark.parametrize("name", LOSSES)
def test_values_and_gradients(name):
    f = LOSSES[name]
    value, slope = _wanted(X, Y)
    for run in (weft.value_and_grad(f), weft.jit(weft.value_and_grad(f))):
        got, gradient = run(X, Y)
        np.testing.assert_allclose(got, value, rtol=1e-6)
        np.testing.assert_allclose(gradient, slope, rtol=2e-5, atol=1e-8)
    along = weft.jvp(lambda x: f(x, Y), (X,), (np.ones_like(X),))[1]
    np.testing.assert_allclose(along, 0, atol=1e-6)  # a number added to all changes nothing
    twice = weft.jit(weft.grad(lambda x: (weft.grad(f)(x, Y) * X).sum()))(X)
    p = _wanted(X, Y)[1] * N + np.eye(M)[Y]
    want = p * (X - (p * X).sum(1, keepdims=True)) / N
    np.testing.assert_allclose(twice, want, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("name", [n for n in LOSSES if n not in ("one hot", "by hand")])
def test_memory_and_scattering(name):
    f = LOSSES[name]
    whole = X.nbytes
    run = weft.jit(f)
    run(X, Y)
    [value] = run.explain()
    assert value["bytes_moved"] < 1.6 * whole  # it reads x, and writes no array of its size
    gradient = weft.jit(weft.grad(f))
    gradient(X, Y)
    [facts] = gradient.explain()
    # It reads x, writes what is proportional to the gradient, reads it and writes the gradient.
    assert facts["bytes_moved"] < 5.2 * whole and facts["bytes_copied"] < whole / 2
    assert str(weft.make_ir(weft.grad(f))(X, Y).stage("optimized")).count("= scatter") <= 1


def _text(f, *args):
    return str(weft.make_ir(f)(*args).stage("optimized"))


def test_sums_with_what_is_scattered():
    at = np.array([3, 0, 3, 5], np.int32)
    u = np.array([1.0, 2.0, 4.0, 8.0], np.float32)
    x = np.arange(6, dtype=np.float32)
    scattered = np.array([2.0, 0, 0, 5.0, 0, 8.0], np.float32)
    for f, want in (
        (lambda x, u: x + wnp.zeros_like(x).at[at].add(u), x + scattered),
        (lambda x, u: wnp.zeros_like(x).at[at].add(u) + x, x + scattered),
        (lambda x, u: x - wnp.zeros_like(x).at[at].add(u), x - scattered),
        (lambda x, u: wnp.zeros_like(x).at[at].add(u) - x, scattered - x),
        (lambda x, u: wnp.zeros_like(x).at[at].add(u) + wnp.zeros_like(x).at[at].add(2 * u), 3 * scattered),
        (lambda x, u: wnp.ones_like(x).at[at].add(u) + x, 1 + scattered + x),
    ):
        for dtype in ("float32", "int32", "uint8", "complex64", "float16"):
            for run in (f, weft.jit(f), weft.jit(f, optimize="none")):
                np.testing.assert_array_equal(run(x.astype(dtype), u.astype(dtype)), want.astype(dtype))
    whole = _text(lambda x, u: x - wnp.zeros_like(x).at[at].add(u), x.astype("int32"), u.astype("int32"))
    assert "scatter_add" in whole and "sub" not in whole


def test_where_an_element_is_written_twice_sums_of_floats_keep_their_order():
    many = np.zeros(100_000, np.int32)
    x, u = np.full(4, 2048.0, np.float32), np.full(100_000, 1e-4, np.float32)
    got = weft.jit(lambda x, u: x + wnp.zeros(4).at[many].add(u))(x, u)
    np.testing.assert_allclose(got[0], 2058.0, rtol=1e-5)  # one by one, each of them would be lost
    rows = np.arange(3)
    y = np.array([1, 0, 1])
    x, u = np.ones((3, 2), np.float32), np.arange(3, dtype=np.float32)
    for f in (
        lambda x, u: x - wnp.zeros((3, 2)).at[wnp.arange(3), y].add(u),
        lambda x, u: weft.vmap(lambda row, i, v: row - wnp.zeros(2).at[i].add(v))(x, y, u),
        lambda x, u: x - wnp.zeros((3, 2)).at[rows, y].add(u, unique_indices=True),
    ):
        want = x.copy()
        want[rows, y] -= u
        np.testing.assert_array_equal(weft.jit(f)(x, u), want)
    assert "sub" not in _text(lambda x, u: x - wnp.zeros((3, 2)).at[wnp.arange(3), y].add(u), x, u)
    assert "sub" in _text(lambda x, u: x - wnp.zeros((3, 2)).at[y, y].add(u), x, u)
    # Counting does not help where what is outside is moved to the end.
    clipped = lambda x, u: x + wnp.zeros(2).at[wnp.arange(3)].add(u, mode="clip")
    np.testing.assert_array_equal(weft.jit(clipped)(x[0], u), [1.0, 4.0])


def test_indices_one_below_the_other_are_no_columns():
    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    numbers = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0, 1), start_index_map=(0, 1))

    def f(x):
        rows = lax.broadcasted_iota("int32", (1, 2), 0)  # zeros
        return lax.gather(x, lax.concatenate([rows, rows], 0), numbers, (1, 1), mode="clip")

    for run in (f, weft.jit(f)):
        np.testing.assert_array_equal(run(x), [0.0, 0.0])
