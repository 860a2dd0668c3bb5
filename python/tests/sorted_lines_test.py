"""Sorts beside NumPy's: dtypes, lengths around those of vector registers, axes, NaN, zeros of both signs, many keys.

Equal elements keep their order, which shows in the signs of zeros, in the bits of NaN, and in what is sorted with them.
"""

from __future__ import annotations

import functools

import numpy
import pytest

import weft
import weft.numpy as wnp
from weft import lax

RNG = numpy.random.default_rng(0)
LENGTHS = [0, 1, 2, 3, 7, 8, 15, 16, 17, 33, 100, 255, 1000, 4099]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]
FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]


def numbers(dtype, *shape):
    """Many of them equal, with the extremes of the dtype."""
    kind = numpy.dtype(dtype).kind
    if kind == "b":
        return RNG.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        info = numpy.iinfo(dtype)
        x = RNG.integers(max(info.min, -20), 20, shape).astype(dtype)
        x[RNG.random(shape) < 0.05] = info.min
        x[RNG.random(shape) < 0.05] = info.max
        return x
    if kind == "c":
        part = "float32" if dtype == "complex64" else "float64"
        x = numpy.empty(shape, dtype)
        x.real, x.imag = numbers(part, *shape), numbers(part, *shape)
        x[numpy.isnan(x)] = complex(numpy.nan, numpy.nan)  # of one part alone the order is JAX's, not NumPy's
        return x
    x = numpy.round(RNG.standard_normal(shape) * 8).astype(dtype) / numpy.dtype(dtype).type(4)
    for value in (numpy.nan, -numpy.nan, numpy.inf, -numpy.inf, 0.0, -0.0, numpy.finfo(dtype).max):
        x[RNG.random(shape) < 0.04] = value
    return x


def same(got, want):
    """Bit by bit, but for NaN: those are alike."""
    got = numpy.asarray(got)
    assert got.dtype == want.dtype
    numpy.testing.assert_array_equal(got, want)
    if want.dtype.kind == "f":
        numpy.testing.assert_array_equal(numpy.signbit(got), numpy.signbit(want))


def in_order(x):
    """The places of the elements in their order, stable."""
    return numpy.argsort(x, kind="stable")


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, *COMPLEX])
@pytest.mark.parametrize("jit", [False, True])
def test_lines(dtype, jit):
    sort, order = (weft.jit(wnp.sort), weft.jit(wnp.argsort)) if jit else (wnp.sort, wnp.argsort)
    for n in LENGTHS:
        x = numbers(dtype, n)
        same(sort(x), x[in_order(x)] if n else x)
        numpy.testing.assert_array_equal(order(x), in_order(x))


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, *COMPLEX])
def test_axes(dtype):
    x = numbers(dtype, 5, 37, 6)
    for axis in range(3):
        want = numpy.take_along_axis(x, numpy.argsort(x, axis, kind="stable"), axis)
        same(weft.jit(functools.partial(wnp.sort, axis=axis))(x), want)
        got = weft.jit(functools.partial(wnp.argsort, axis=axis))(x)
        numpy.testing.assert_array_equal(got, numpy.argsort(x, axis, kind="stable"))


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_short_floats(dtype):
    x = wnp.asarray(numbers("float32", 3, 200)).astype(dtype)
    known = numpy.asarray(x.astype("float32"))
    got = numpy.asarray(weft.jit(wnp.sort)(x).astype("float32"))
    same(got, numpy.take_along_axis(known, numpy.argsort(known, kind="stable"), -1))
    numpy.testing.assert_array_equal(weft.jit(wnp.argsort)(x), numpy.argsort(known, kind="stable"))


@pytest.mark.parametrize("keys", [1, 2, 3])
@pytest.mark.parametrize("dtypes", [("float32", "int8", "float64"), ("int64", "float16", "bool"), ("complex64",) * 3])
def test_several_keys(dtypes, keys):
    operands = [numbers(dtype, 4, 300) for dtype in dtypes] + [numpy.arange(1200).reshape(4, 300)]
    got = weft.jit(lambda *xs: lax.sort(xs, num_keys=keys))(*operands)
    for row in range(4):
        order = numpy.arange(300)
        for key in reversed(operands[:keys]):
            order = order[in_order(key[row][order])]
        for g, x in zip(got, operands):
            same(g[row], x[row][order])


def test_long_lines_on_several_threads():
    x = RNG.standard_normal((3, 300_000)).astype(numpy.float32)
    same(weft.jit(wnp.sort)(x), numpy.sort(x))
    numpy.testing.assert_array_equal(weft.jit(wnp.argsort)(x), numpy.argsort(x, kind="stable"))
    same(weft.jit(lambda x: wnp.sort(x, axis=0))(x), numpy.sort(x, axis=0))
