"""Normal numbers beside those of jax.random, which is compiled here as its users have it."""

import os

# The other tests' flags have JAX optimise little, which leaves products and sums apart: here only its instructions are
# named, where Weft's are.
os.environ["XLA_FLAGS"] = {"baseline": "--xla_cpu_max_isa=SSE4_2", "avx2": "--xla_cpu_max_isa=AVX2"}.get(
    os.environ.get("WEFT_CPU", ""), ""
)

import numpy as np
import pytest

import weft
import weft.random as wr

jax = pytest.importorskip("jax")


def units_apart(a, b) -> np.ndarray:
    """How many floats lie between two arrays' elements, of equal signs."""
    integers = {4: np.int32, 8: np.int64}[np.asarray(a).dtype.itemsize]
    return np.abs(np.asarray(a).view(integers) - np.asarray(b).view(integers))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("make", ["key", "PRNGKey"])
@pytest.mark.parametrize("seed", [0, 42, 123456789, 2**31 - 1])
def test_same_bits(make, seed, dtype):
    with jax.threefry_partitionable(True), jax.enable_x64(dtype == "float64"):
        want = np.asarray(jax.random.normal(getattr(jax.random, make)(seed), (1000000,), dtype))
    got = wr.normal(getattr(wr, make)(seed), (1000000,), dtype)
    assert got.dtype == want.dtype
    assert units_apart(got, want).max() == 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(dtype):
    if dtype == "float16" and os.environ.get("WEFT_CPU") == "baseline":
        pytest.skip("XLA has no conversions of f16 for such a CPU")
    with jax.threefry_partitionable(True):
        want = np.asarray(jax.random.normal(jax.random.key(3), (10000,), dtype)).view(np.int16)
    got = np.asarray(wr.normal(wr.key(3), (10000,), dtype)).view(np.int16)
    assert np.abs(got - want).max() <= 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_inside_other_programs(dtype):
    """The same numbers whatever is computed around them."""
    keys = wr.split(wr.key(1), 4)
    alone = np.stack([np.asarray(wr.normal(k, (1000,), dtype)) for k in keys])
    together = weft.jit(weft.vmap(lambda k: wr.normal(k, (1000,), dtype)))(keys)
    np.testing.assert_array_equal(np.asarray(together), alone)
