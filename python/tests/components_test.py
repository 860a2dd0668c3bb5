"""Programs on points: dimensions of 2 to 4 elements that are summed over, which are compiled as arrays of coordinates.

Values and derivatives beside NumPy in f64, alone, under vmap and in loops; the steps they take.
"""

from __future__ import annotations

import numpy
import pytest

import weft
import weft.numpy as wnp
from weft import lax

RNG = numpy.random.default_rng(0)


def points(*shape, dtype=numpy.float32):
    return RNG.standard_normal(shape).astype(dtype)


def forces(np, x, eps=0.1):
    d = x[:, None] - x[None]
    r = np.sum(d * d, -1) + eps
    return np.sum(d / (r * np.sqrt(r))[..., None], 1)


def directions(np, x):
    return x / np.sqrt(np.sum(x * x, -1, keepdims=True) + 1e-3)


def nearest(np, x):
    return np.min(np.sum(np.abs(x[:, None] - x[None]), -1) + 9 * np.eye(len(x), dtype=x.dtype), 1)


def inertia(np, x):
    square = np.sum(x * x, 1)
    return np.sum(square[:, None, None] * np.eye(x.shape[1], dtype=x.dtype) - x[:, :, None] * x[:, None, :], 0)


def first_axis(np, x):
    y = np.stack([x[:, 0] * 2, x[:, 1] + 1])
    return np.sum(np.sin(y) * y, 0) * np.max(y * np.ones((2, 1), x.dtype), 0)


PROGRAMS = [forces, directions, nearest, inertia, first_axis]


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values_and_gradients(f, size):
    x = points(9000 if f in (directions, inertia, first_axis) else 120, size)
    got = weft.jit(lambda x: f(wnp, x))(x)
    want = f(numpy, x.astype(float))
    numpy.testing.assert_allclose(numpy.asarray(got), want, rtol=1e-4, atol=1e-4 * abs(want).max())

    def loss(x, np=wnp):
        return np.sum(np.tanh(f(np, x)))

    slope = weft.jit(weft.grad(loss))(x)
    toward, h = points(*x.shape, dtype=float), 1e-6
    x64 = x.astype(float)
    if f is not nearest:  # whose slope has steps
        want = (loss(x64 + h * toward, numpy) - loss(x64 - h * toward, numpy)) / (2 * h)
        scale = float(numpy.sum(abs(numpy.asarray(slope) * toward)))
        assert abs(float(numpy.sum(numpy.asarray(slope) * toward)) - want) < 1e-4 * scale + 1e-4
    # Step by step there is nothing to take apart.
    with weft.disable_jit():
        again = loss(wnp.asarray(x))
    assert abs(float(again) - float(weft.jit(loss)(x))) < 1e-7 * x.size + 1e-4


def test_batches_and_loops():
    x = points(3, 70, 3)
    got = weft.jit(weft.vmap(lambda x: forces(wnp, x)))(x)
    for one, alone in zip(numpy.asarray(got), x):
        numpy.testing.assert_allclose(one, forces(numpy, alone.astype(float)), rtol=2e-4, atol=1e-3)

    def step(state, _):
        x, v = state
        v = v + 0.01 * forces(wnp, x, 1.0)
        return (x + 0.01 * v, v), wnp.sum(v * v, 1)

    x0 = points(100, 3)
    (x1, _), squares = weft.jit(lambda x: lax.scan(step, (x, 0 * x), None, 5))(x0)
    x, v = x0.astype(float), numpy.zeros((100, 3))
    for i in range(5):
        v = v + 0.01 * forces(numpy, x, 1.0)
        x = x + 0.01 * v
        numpy.testing.assert_allclose(squares[i], numpy.sum(v * v, 1), rtol=1e-3, atol=1e-5)
    numpy.testing.assert_allclose(x1, x, rtol=1e-4, atol=1e-4)


def test_pairs_are_no_array_in_memory():
    """Forces read points and write forces: nothing of the size of all pairs is stored."""
    x = points(500, 3)
    f = weft.jit(lambda x: forces(wnp, x))
    apart = f.lower(x).compile().memory_analysis().temp_size_in_bytes
    whole = weft.jit(lambda x: forces(wnp, x), disable=["components-apart"]).lower(x).compile()
    assert apart < 100_000 < whole.memory_analysis().temp_size_in_bytes
    numpy.testing.assert_allclose(f(x), whole(x), rtol=1e-4, atol=1e-3)
    assert "components-apart" in str(f.explain("rules"))
