"""A CPU without AVX2: what its instructions lack is computed with those that it has."""

import os

os.environ["WEFT_CPU"] = "baseline"

import numpy as np

import weft
import weft.numpy as wnp


def test_every_half_becomes_a_float():
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    for dtype in ("float32", "float64"):
        got = np.asarray(weft.jit(lambda x, dtype=dtype: x.astype(dtype))(halves))
        np.testing.assert_array_equal(got, halves.astype(dtype))
        np.testing.assert_array_equal(np.signbit(got), np.signbit(halves))


def test_floats_are_rounded_to_halves():
    """Around every half and every middle between two; what overflows, what vanishes, NaN of both signs."""
    halves = np.arange(0x7C01, dtype=np.uint16).view(np.float16).astype(np.float32)
    halves[-1] = 2**16
    middles = (halves[1:] + halves[:-1]) / 2
    floats = np.concatenate([halves, middles])
    floats = np.concatenate([np.nextafter(floats, np.float32(-1)), floats, np.nextafter(floats, np.float32(np.inf))])
    far = np.float32([1e-45, 1e-30, 2**-26, 1e5, 3e38, np.inf, np.nan])
    floats = np.concatenate([floats, far, -floats, -far])
    with np.errstate(over="ignore"):
        want = floats.astype(np.float16)
    got = np.asarray(weft.jit(lambda x: x.astype("float16"))(floats))
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_arithmetic_of_halves_rounds_each_result():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 1000)).astype(np.float16)
    got = weft.jit(lambda x, y: (x * y, x + y, wnp.sqrt(abs(x)), x.astype("float32") * y.astype("float32")))(x, y)
    for g, w in zip(got, (x * y, x + y, np.sqrt(abs(x)), x.astype(np.float32) * y.astype(np.float32)), strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_array_equal(np.asarray(g), w)
    scalar = weft.jit(lambda a: a * 3)(np.float16(0.1))  # outside vectors
    assert np.asarray(scalar) == np.float16(np.float32(np.float16(0.1)) * 3)
