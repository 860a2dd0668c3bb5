"""Normal numbers beside those of jax.random, which is compiled here as its users have it."""

import os

os.environ["XLA_FLAGS"] = ""  # the other tests' have it optimise little, which leaves products and sums apart

import numpy as np
import pytest

import weft
import weft.random as wr

jax = pytest.importorskip("jax")


def units_apart(a, b) -> np.ndarray:
    """How many floats lie between two arrays' elements, of equal signs."""
    integers = {4: np.int32, 8: np.int64}[np.asarray(a).dtype.itemsize]
    return np.abs(np.asarray(a).view(integers) - np.asarray(b).view(integers))


@pytest.mark.parametrize("make", ["key", "PRNGKey"])
@pytest.mark.parametrize("seed", [0, 42, 123456789, 2**31 - 1])
def test_single_precision_within_two_units(make, seed):
    with jax.threefry_partitionable(True):
        want = jax.random.normal(getattr(jax.random, make)(seed), (1000000,))
    got = wr.normal(getattr(wr, make)(seed), (1000000,))
    assert got.dtype == want.dtype
    assert units_apart(got, want).max() <= 2


def test_double_precision():
    """The C library's logarithm, which jax.random takes, is not always rounded rightly; hence the rare third unit."""
    with jax.threefry_partitionable(True), jax.enable_x64(True):
        want = np.asarray(jax.random.normal(jax.random.key(7), (1000000,), "float64"))
    units = units_apart(wr.normal(wr.key(7), (1000000,), "float64"), want)
    assert units.max() <= 3
    assert (units > 2).sum() <= 3
    assert (units > 0).mean() < 2e-4


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(dtype):
    with jax.threefry_partitionable(True):
        want = np.asarray(jax.random.normal(jax.random.key(3), (10000,), dtype)).view(np.int16)
    got = np.asarray(wr.normal(wr.key(3), (10000,), dtype)).view(np.int16)
    assert np.abs(got - want).max() <= 2


def test_inside_other_programs():
    """The same numbers whatever is computed around them."""
    keys = wr.split(wr.key(1), 4)
    alone = np.stack([np.asarray(wr.normal(k, (1000,))) for k in keys])
    np.testing.assert_array_equal(np.asarray(weft.jit(weft.vmap(lambda k: wr.normal(k, (1000,))))(keys)), alone)
