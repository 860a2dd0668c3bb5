"""sort and top_k of values without a plain order: NaN and zeros of both signs, ties, the ends of dtypes."""

import numpy as np
import pytest

import weft
from weft import lax

ml_dtypes = pytest.importorskip("ml_dtypes")

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = ["float16", "bfloat16", "float32", "float64"]


def values(dtype: str, n: int) -> np.ndarray:
    to = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    if dtype in FLOATS:
        special = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-7, -1e-7, 1.5, -1.5, 3e4, -3e4]
    else:
        special = [np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1, 2, np.iinfo(dtype).max - 1]
    special = np.array(special, np.float64 if dtype in FLOATS else dtype).astype(to)
    return special[np.random.default_rng(n).integers(0, len(special), n)]


def place(x) -> tuple:
    """Where it stands in the total order of IEEE 754, in which NaN of one sign are all alike."""
    sign = -1 if np.signbit(np.float64(x)) else 1
    return (2 * sign if np.isnan(np.float64(x)) else 0, 0 if np.isnan(np.float64(x)) else x, sign)


@pytest.mark.parametrize("k", [0, 1, 5, 60, 64])
@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_top_k(dtype, k):
    x = values(dtype, 128).reshape(2, 64)
    got, indices = weft.jit(lambda x: lax.top_k(x, k))(x)
    assert got.dtype == x.dtype and got.shape == indices.shape == (2, k)
    for row, found, at in zip(x, np.asarray(got), np.asarray(indices)):
        order = [place(v) if dtype in FLOATS else int(v) for v in row]
        want = sorted(range(64), key=order.__getitem__, reverse=True)  # which keeps the order of equals
        assert at.tolist() == want[:k]
        assert found.tobytes() == row[at].tobytes()


def test_top_k_of_booleans():
    x = np.array([[False, True, False, True], [False] * 4])
    for got, indices in (
        lax.top_k(x, 3),
        weft.jit(lambda x: lax.top_k(x, 3))(x),
        weft.vmap(lambda x: lax.top_k(x, 3))(x),
    ):
        np.testing.assert_array_equal(got, [[True, True, False], [False] * 3])
        np.testing.assert_array_equal(indices, [[1, 3, 0], [0, 1, 2]])


# The sizes that XLA gives of (shape, k, recall, counted size): jaxlib's approx_top_k_reduction_output_size.
@pytest.mark.parametrize(
    ("shape", "k", "recall", "counted", "left"),
    [((2, 100), 5, 0.9, -1, 100), ((3, 256), 10, 0.9, 2048, 128), ((2, 1000), 1, 0.5, -1, 128),
     ((5000,), 10, 0.95, -1, 2048), ((1, 5000), 77, 0.99, -1, 5000), ((1, 5000), 10, 0.95, -1, 384)],
)  # fmt: skip
def test_what_is_left_of_approximate_extremes(shape, k, recall, counted, left):
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    for f, sign in ((lax.approx_max_k, -1), (lax.approx_min_k, 1)):
        got, at = f(x, k, recall_target=recall, reduction_input_size_override=counted, aggregate_to_topk=False)
        np.testing.assert_array_equal(at, np.argsort(sign * x, -1, kind="stable")[..., :left])
        np.testing.assert_array_equal(got, np.take_along_axis(x, np.asarray(at), -1))


@pytest.mark.parametrize("order", ["ascending", "descending", "shuffled"])
def test_top_k_of_many(order):
    x = np.arange(100_000, dtype=np.float32)
    x = {"ascending": x, "descending": x[::-1], "shuffled": np.random.default_rng(0).permutation(x)}[order].copy()
    got, indices = weft.jit(lambda x: lax.top_k(x, 1000))(x)
    np.testing.assert_array_equal(got, np.arange(99_999, 98_999, -1))
    np.testing.assert_array_equal(x[np.asarray(indices)], got)


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_sort(dtype):
    x = values(dtype, 200)
    number = x.astype(np.float64) if dtype in FLOATS else x
    got = np.asarray(weft.jit(lax.sort)(x))
    np.testing.assert_array_equal(got.astype(number.dtype), np.sort(number))
