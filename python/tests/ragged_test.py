"""Products of groups: every kind of ragged dimension, against NumPy group by group; what does not fit."""

import itertools

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import lax

RNG = np.random.default_rng(0)


def test_groups_of_rows():
    x, y, sizes = RNG.normal(size=(7, 3)), RNG.normal(size=(3, 3, 2)), np.array([2, 0, 4])
    numbers = lax.RaggedDotDimensionNumbers((([1], [1]), ([], [])), [0], [0])
    expected = np.concatenate([x[:2] @ y[0], x[2:6] @ y[2], np.zeros((1, 2))])
    for f in (lax.ragged_dot_general, weft.jit(lax.ragged_dot_general, static_argnums=3)):
        fixed = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
        np.testing.assert_allclose(f(x, y, sizes, fixed), expected)
    np.testing.assert_allclose(lax.ragged_dot_general(x, y, sizes, numbers), lax.ragged_dot(x, y, sizes))


def test_groups_of_rows_of_batches():
    x, y = RNG.normal(size=(2, 5, 3)), RNG.normal(size=(2, 4, 3, 2))
    for sizes in (np.array([1, 2, 0, 2]), np.array([[1, 2, 0, 2], [0, 0, 5, 0]])):
        numbers = lax.RaggedDotDimensionNumbers((([2], [2]), ([0], [0])), [1], [1])
        got = lax.ragged_dot_general(x, y, sizes, numbers)
        for b, each in enumerate(np.broadcast_to(sizes, (2, 4))):
            which = np.repeat(np.arange(4), each)
            expected = np.stack([x[b, i] @ y[b, which[i]] for i in range(5)])
            np.testing.assert_allclose(got[b], expected)


def test_contracted_groups():
    x, y = RNG.normal(size=(2, 6, 3)), RNG.normal(size=(2, 6, 4))
    numbers = lax.RaggedDotDimensionNumbers((([1], [1]), ([0], [0])), [1], [])
    for sizes in (np.array([2, 0, 3]), np.array([[2, 0, 3], [1, 5, 0]])):
        got = lax.ragged_dot_general(x, y, sizes, numbers)
        assert got.shape == (3, 2, 3, 4)
        for b, each in enumerate(np.broadcast_to(sizes, (2, 3))):
            ends = np.cumsum(each)
            for g, (start, end) in enumerate(zip(ends - each, ends, strict=True)):
                np.testing.assert_allclose(got[g, b], x[b, start:end].T @ y[b, start:end], atol=1e-12)


def test_groups_of_batches():
    x, y, sizes = RNG.normal(size=(5, 2, 3)), RNG.normal(size=(5, 3, 4)), np.array([2, 3])
    numbers = lax.RaggedDotDimensionNumbers((([2], [1]), ([0], [0])), [0], [])
    got = lax.ragged_dot_general(x, y, sizes, numbers)
    expected = np.einsum("bik,bkj->bij", x, y)
    np.testing.assert_allclose(got[0], np.where(np.arange(5)[:, None, None] < 2, expected, 0))
    np.testing.assert_allclose(got[1], np.where(np.arange(5)[:, None, None] >= 2, expected, 0))


def test_derivatives():
    x, y, sizes = RNG.normal(size=(5, 3)), RNG.normal(size=(2, 3, 2)), np.array([2, 3])
    numbers = lax.RaggedDotDimensionNumbers((([1], [1]), ([], [])), [0], [0])
    of_x, of_y = weft.grad(lambda x, y: lax.ragged_dot_general(x, y, sizes, numbers).sum(), (0, 1))(x, y)
    np.testing.assert_allclose(of_x, np.repeat(y.sum(2), sizes, axis=0))
    np.testing.assert_allclose(of_y, np.stack([np.tile(p.sum(0)[:, None], 2) for p in (x[:2], x[2:])]))


@pytest.mark.parametrize(("ragged", "groups", "sizes", "message"), [
    ([0, 1], [0], (3,), "exactly one lhs ragged dimension"),
    ([2], [0], (3,), "nonnegative and less than"),
    ([0], [], (3,), "exactly one rhs group dimension"),
    ([0], [1], (3,), "distinct from contracting and batch"),
    ([1], [0], (3,), "zero group dimensions in the rhs"),
    ([0], [0], (2,), "expected rhs group dimension size to be 2, got 3"),
    ([0], [0], (5, 3), r"expected group_sizes to have shape \(3,\), got \(5, 3\)"),
    ([0], [0], (), "expected group_sizes to have shape"),
])  # fmt: skip
def test_what_does_not_fit(ragged, groups, sizes, message):
    numbers = lax.RaggedDotDimensionNumbers((([1], [1]), ([], [])), ragged, groups)
    with pytest.raises(ValueError, match=message):
        lax.ragged_dot_general(wnp.ones((4, 5)), wnp.ones((3, 5, 2)), np.ones(sizes, int), numbers)


def test_jax_gives_the_same():
    jax = pytest.importorskip("jax")
    for (b, m, k, n), g in itertools.product([(2, 6, 3, 4)], (1, 3)):
        x, y = RNG.normal(size=(b, m, k)).astype("f"), RNG.normal(size=(b, k, n)).astype("f")
        sizes = np.full(g, k // g, "int32")
        dims, ragged = (([2], [1]), ([0], [0])), [2]
        ours = lax.ragged_dot_general(x, y, sizes, lax.RaggedDotDimensionNumbers(dims, ragged, []))
        theirs = jax.lax.ragged_dot_general(x, y, sizes, jax.lax.RaggedDotDimensionNumbers(dims, ragged, []))
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
