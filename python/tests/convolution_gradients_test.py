"""Convolutions and their gradients, which a library has primitives for, beside sums written out in NumPy.

Windows, strides, dilations, groups, dimensions and batches that divide into blocks evenly or not; operands that lie
transposed, sliced or reversed.
"""

from __future__ import annotations

import itertools

import numpy
import pytest

import weft
import weft.numpy as wnp
from weft import lax

RNG = numpy.random.default_rng(0)


def windows(x, w, stride, dilation, lo, hi):
    """x [n, c, spatial...] under each place of the window: pairs of that place and [n, c, result's spatial...]."""
    spatial = x.ndim - 2
    padded = numpy.pad(x, [(0, 0), (0, 0), *((lo, hi) for _ in range(spatial))])
    sizes = [(padded.shape[d + 2] - (w.shape[d + 2] - 1) * dilation - 1) // stride + 1 for d in range(spatial)]
    for at in itertools.product(*(range(n) for n in w.shape[2:])):
        cut = tuple(slice(a * dilation, a * dilation + (n - 1) * stride + 1, stride) for a, n in zip(at, sizes))
        yield at, (slice(None), slice(None), *cut), padded


def expected(x, w, ct, stride, dilation, lo, hi, groups):
    """The convolution, and the gradients of its product with ct by x and w, all in f64."""
    x, w = x.astype(float), w.astype(float)
    n, c, o = x.shape[0], x.shape[1], w.shape[0]
    y, dw, dpadded = 0, numpy.zeros(w.shape), None
    for at, cut, padded in windows(x, w, stride, dilation, lo, hi):
        here = padded[cut]
        space = here.shape[2:]
        grouped = here.reshape(n, groups, c // groups, *space)
        part = w[(slice(None), slice(None), *at)].reshape(groups, o // groups, c // groups)
        y = y + numpy.einsum("ngc...,goc->ngo...", grouped, part).reshape(n, o, *space)
        if ct is None:
            continue
        g = ct.astype(float).reshape(n, groups, o // groups, -1)
        flat = grouped.reshape(n, groups, c // groups, -1)
        dw[(slice(None), slice(None), *at)] = numpy.einsum("ngcs,ngos->goc", flat, g).reshape(o, c // groups)
        dpadded = numpy.zeros(padded.shape) if dpadded is None else dpadded
        dpadded[cut] += numpy.einsum("ngos,goc->ngcs", g, part).reshape(n, c, *space)
    if ct is None:
        return y, None, None
    inside = tuple(slice(lo, lo + size) for size in x.shape[2:])
    return y, dpadded[(slice(None), slice(None), *inside)], dw


def conv(stride, dilation, lo, hi, groups, spatial):
    return lambda x, w: lax.conv_general_dilated(
        x, w, (stride,) * spatial, [(lo, hi)] * spatial, rhs_dilation=(dilation,) * spatial, feature_group_count=groups
    )


def close(got, want, terms):
    """To the rounding of a sum of so many terms."""
    bound = 4e-7 * (terms**0.5) * max(1.0, float(abs(want).max()))
    numpy.testing.assert_allclose(numpy.asarray(got), want, rtol=0, atol=bound)


def numbers(*shape):
    return RNG.standard_normal(shape).astype(numpy.float32)


SHAPES = [  # images, inputs, outputs, groups, size, window, spatial dimensions
    (3, 4, 6, 1, 9, 3, 1),
    (1, 3, 2, 1, 8, 2, 2),
    (3, 4, 6, 2, 8, 3, 2),
    (5, 6, 6, 6, 9, 3, 2),  # depthwise
    (2, 4, 8, 4, 7, 3, 2),  # ... of two filters each
    (37, 8, 16, 1, 12, 3, 2),  # blocks of images, the last one smaller
    (37, 16, 16, 16, 24, 3, 2),
    (2, 2, 4, 1, 6, 3, 3),
    (2, 3, 5, 1, 5, 1, 2),
    (2, 3, 5, 1, 5, 5, 2),  # a window as large as the array
]


@pytest.mark.parametrize("stride, dilation", [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("lo, hi", [(0, 0), (1, 1), (0, 1), (2, 0)])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_and_gradients(shape, lo, hi, stride, dilation):
    images, inputs, outputs, groups, size, window, spatial = shape
    if size + lo + hi < (window - 1) * dilation + 1:
        pytest.skip("the window is larger than the array")
    x = numbers(images, inputs, *(size for _ in range(spatial)))
    w = numbers(outputs, inputs // groups, *(window for _ in range(spatial)))
    f = conv(stride, dilation, lo, hi, groups, spatial)
    value, vjp = weft.vjp(weft.jit(f), x, w)
    ct = numbers(*value.shape)
    y, dx, dw = expected(x, w, ct, stride, dilation, lo, hi, groups)
    close(value, y, inputs // groups * window**spatial)
    got_x, got_w = weft.jit(lambda x, w, ct: weft.vjp(f, x, w)[1](ct))(x, w, ct)
    close(got_x, dx, outputs // groups * window**spatial)
    close(got_w, dw, images * value.shape[2] ** spatial)
    again_x, again_w = vjp(wnp.asarray(ct))
    close(again_x, dx, outputs // groups * window**spatial)
    close(again_w, dw, images * value.shape[2] ** spatial)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("dilation", [2, 3])
def test_dilated_inputs(groups, dilation):
    """Transposed convolutions: they are computed as the gradients by the input that they are."""
    x, w = numbers(3, 4, 5, 6), numbers(8, 4 // groups, 3, 3)
    for pad in ((2, 2), (1, 1), (0, 0), (2, 1), (3, 3)):
        f = weft.jit(
            lambda x, w, pad=pad: lax.conv_general_dilated(
                x, w, (1, 1), [pad, pad], lhs_dilation=(dilation, dilation), feature_group_count=groups
            )
        )
        spread = numpy.zeros((3, 4, 4 * dilation + 1, 5 * dilation + 1), numpy.float32)
        spread[:, :, ::dilation, ::dilation] = x
        close(f(x, w), expected(spread, w, None, 1, 1, *pad, groups)[0], 36)


@pytest.mark.parametrize("move", ["transposed", "sliced", "reversed", "broadcast", "every second", "rows first"])
def test_operands_that_lie_by_strides(move):
    moves = {
        "transposed": lambda a: wnp.swapaxes(a, 2, 3),
        "sliced": lambda a: a[:, :, 1:, :-1],
        "reversed": lambda a: a[:, :, ::-1],
        "broadcast": lambda a: wnp.broadcast_to(a[:, :1], a.shape),
        "every second": lambda a: a[..., ::2],
        "rows first": lambda a: wnp.transpose(wnp.transpose(a, (2, 0, 3, 1)) * 1, (1, 3, 0, 2)),
    }
    move = moves[move]
    x, w = numbers(20, 6, 12, 12), numbers(6, 6, 4, 4)
    moved_x, moved_w = numpy.asarray(move(wnp.asarray(x))), numpy.asarray(move(wnp.asarray(w)))
    f = conv(1, 1, 1, 1, 1, 2)
    want = expected(moved_x, moved_w, None, 1, 1, 1, 1, 1)[0]
    close(weft.jit(lambda x, w: f(move(x), move(w)))(x, w), want, 96)
    close(weft.jit(lambda x, w: f(move(x), w))(x, moved_w), want, 96)
    close(weft.jit(lambda x, w: f(x, move(w)))(moved_x, w), want, 96)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64", "int32"])
def test_other_dtypes_that_lie_by_strides(dtype):
    x, w = RNG.integers(-3, 4, (3, 4, 7, 6)), RNG.integers(-3, 4, (4, 2, 3, 3))
    f = weft.jit(
        lambda x, w: conv(1, 1, 1, 1, 2, 2)(wnp.swapaxes(x, 2, 3).astype(dtype), wnp.swapaxes(w, 2, 3).astype(dtype))
    )
    want = expected(numpy.swapaxes(x, 2, 3), numpy.swapaxes(w, 2, 3), None, 1, 1, 1, 1, 2)[0]
    numpy.testing.assert_allclose(numpy.asarray(f(x, w).astype("float32")), want, rtol=1e-2)


def test_sizes_that_are_symbols():
    """One program for batches of every size: the strides of what lies transposed depend on it."""
    f = conv(1, 1, 1, 1, 1, 2)
    w = numbers(5, 4, 3, 3)
    g = weft.make_ir(lambda x, w: f(wnp.swapaxes(x, 0, 1), w))(weft.ShapeDtype((4, "n", 7, 7), numpy.float32), w)
    for images in (1, 2, 33):
        x = numbers(4, images, 7, 7)
        close(g(x, w), expected(numpy.swapaxes(x, 0, 1), w, None, 1, 1, 1, 1, 1)[0], 36)


def test_batches_of_gradients():
    """Under vmap: of the weights, the input, and both."""
    x, w = numbers(3, 2, 4, 6, 6), numbers(3, 4, 2, 3, 3)
    f = conv(2, 1, 1, 1, 2, 2)

    def gradients(x, w):
        return weft.grad(lambda x, w: wnp.sum(f(x, w) ** 2), (0, 1))(x, w)

    got = weft.jit(weft.vmap(gradients))(x, w)
    for i in range(3):
        y = expected(x[i], w[i], None, 2, 1, 1, 1, 2)[0]
        _, dx, dw = expected(x[i], w[i], 2 * y, 2, 1, 1, 1, 2)
        close(got[0][i], dx, 300)
        close(got[1][i], dw, 300)
    shared = weft.jit(weft.vmap(gradients, (0, None)))(x, w[0])
    for i in range(3):
        y = expected(x[i], w[0], None, 2, 1, 1, 1, 2)[0]
        close(shared[1][i], expected(x[i], w[0], 2 * y, 2, 1, 1, 1, 2)[2], 300)


def test_many_weights():
    """So many that a sum of them for each block of images would take much memory: they are cut by outputs."""
    x, w, ct = numbers(3, 1500, 3, 3), numbers(3010, 1500, 2, 2), numbers(3, 3010, 2, 2)
    f = conv(1, 1, 0, 0, 1, 2)
    got = weft.jit(lambda x, w, ct: weft.vjp(f, x, w)[1](ct)[1])(x, w, ct)
    close(got, expected(x, w, ct, 1, 1, 0, 0, 1)[2], 12)


def test_the_number_of_threads_changes_no_bit(tmp_path):
    import os
    import subprocess
    import sys

    program = """
import sys, numpy, weft, weft.numpy as wnp
rng = numpy.random.default_rng(1)
x, w = (rng.standard_normal(s).astype("f") for s in ((40, 8, 20, 20), (8, 1, 3, 3)))
f = lambda x, w: wnp.sum(weft.lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=8) ** 3)
g = weft.jit(weft.grad(f, (0, 1)))(x, w)
sys.stdout.buffer.write(b"".join(numpy.asarray(a).tobytes() for a in g))
"""
    bits = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "WEFT_NUM_THREADS": threads, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
            capture_output=True,
        ).stdout
        for threads in ("1", "2", "3")
    }
    assert len(bits) == 1


@pytest.mark.parametrize("window", [1, 3, 4])
@pytest.mark.parametrize("last", [False, True])
def test_which_depthwise_convolutions_are_sums(window, last):
    x, w = numbers(2, 6, 9, 8), numbers(6, 1, window, 3)

    def f(x, w):
        x = wnp.moveaxis(x, -1, 1) if last else x
        return lax.conv_general_dilated(x, w, (1, 1), "VALID", feature_group_count=6)

    given = numpy.moveaxis(x, 1, -1).copy() if last else x
    becomes_sum = window * 3 <= 12 and not last
    assert ("conv[" in weft.jit(f).lower(given, w).as_text("optimized")) != becomes_sum
    close(weft.jit(f)(given, w), expected(x, w, None, 1, 1, 0, 0, 6)[0], window * 3)
    program = weft.jit(f)
    program(given, w)
    assert ("depthwise-as-sum" in str(program.explain("rules"))) == becomes_sum


def test_convolutions_of_booleans():
    x, k = numpy.array([[[1, 0, 1, 1, 0]]], bool), numpy.array([[[1, 1]], [[0, 1]]], bool)
    seen = numpy.lib.stride_tricks.sliding_window_view(x[0, 0], 2)[None] & k[:, 0, None, :]
    got = lax.conv_general_dilated(x, k, (1,), "VALID")
    assert got.dtype == "bool" and numpy.array_equal(got, seen.any(-1)[None])
    counted = lax.conv_general_dilated(x, k, (1,), "VALID", preferred_element_type="int32")
    assert numpy.array_equal(counted, seen.sum(-1)[None])
