"""Normalisations against NumPy in 64 bits."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import nn

RNG = np.random.default_rng(0)
X = (RNG.standard_normal((4, 5, 6)) * 3 + 10).astype(np.float32)
SCALE, BIAS = RNG.standard_normal((2, 6)).astype(np.float32)


def whitened(x, axes, epsilon):
    x = np.asarray(x, np.float64)
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def grouped(x, groups, epsilon):
    parts = x.reshape(*x.shape[:-1], groups, -1)
    axes = tuple(d for d in range(1, parts.ndim) if d != parts.ndim - 2)
    return whitened(parts, axes, epsilon).reshape(x.shape)


def close(got, want, dtype="float32"):
    assert got.dtype == dtype and got.shape == want.shape
    np.testing.assert_allclose(np.asarray(got), want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("transform", [lambda f: f, weft.jit])
def test_values(transform):
    close(transform(nn.layer_norm)(X), whitened(X, -1, 1e-5))
    close(transform(nn.layer_norm)(X, SCALE, BIAS), whitened(X, -1, 1e-5) * SCALE + BIAS)
    close(transform(lambda x: nn.layer_norm(x, axis=(-1, 1), epsilon=0.1))(X), whitened(X, (1, 2), 0.1))
    close(transform(nn.rms_norm)(X, SCALE), X / np.sqrt((X.astype(float) ** 2).mean(-1, keepdims=True) + 1e-6) * SCALE)
    close(transform(nn.batch_norm)(X, SCALE, BIAS), whitened(X, (0, 1), 1e-5) * SCALE + BIAS)
    for groups in (1, 2, 3, 6):
        close(
            transform(lambda x, g=groups: nn.group_norm(x, g, SCALE, BIAS))(X), grouped(X, groups, 1e-5) * SCALE + BIAS
        )


def test_axis_of_channels():
    first = np.moveaxis(X, -1, 1)
    for norm in (
        lambda x, **k: nn.group_norm(x, 3, SCALE, BIAS, **k),
        lambda x, **k: nn.batch_norm(x, SCALE, BIAS, **k),
    ):
        close(norm(first, axis=1), np.moveaxis(np.asarray(norm(X)), -1, 1))


def test_parameters_of_several_axes():
    scale = RNG.standard_normal((4, 6)).astype(np.float32)
    want = whitened(X, (0, 2), 1e-5) * scale[:, None]
    close(nn.layer_norm(X, scale, axis=(2, 0)), want)


def test_statistics_that_are_given():
    mean, variance = X.mean((0, 1)) + 1, X.var((0, 1)) * 2
    close(nn.batch_norm(X, mean=mean, variance=variance), (X - mean) / np.sqrt(variance + 1e-5))
    around = ((X - mean) ** 2).mean((0, 1))
    close(nn.batch_norm(X, mean=mean), (X - mean) / np.sqrt(around + 1e-5))


def test_halves_are_computed_in_floats():
    """Whose squares would overflow."""
    x = (X * 100).astype(np.float16)
    for got, want in (
        (nn.layer_norm(x), whitened(x, -1, 1e-5)),
        (nn.rms_norm(x), x / np.sqrt((x.astype(float) ** 2).mean(-1, keepdims=True))),
        (nn.batch_norm(x), whitened(x, (0, 1), 1e-5)),
        (nn.group_norm(x, 2), grouped(x, 2, 1e-5)),
    ):
        assert got.dtype == "float16"
        np.testing.assert_allclose(np.asarray(got), want, rtol=2e-3, atol=1e-4)
    assert nn.layer_norm(x, SCALE).dtype == "float32"
    assert nn.layer_norm(x, SCALE.astype(np.float16)).dtype == "float16"
    assert nn.rms_norm(X.astype(np.float64)).dtype == "float64"
    assert nn.layer_norm(np.arange(6, dtype=np.int32)).dtype == "float32"


def test_derivatives():
    """Against central differences in 64 bits."""
    x, weights = X[:3, :2].astype(np.float64), RNG.standard_normal((3, 2, 6))
    for norm in (
        nn.layer_norm,
        nn.rms_norm,
        nn.batch_norm,
        lambda x: nn.group_norm(x, 2),
    ):
        loss = lambda x, norm=norm: wnp.sum(norm(x) * weights)
        got = np.asarray(weft.grad(loss)(x))
        for at in np.ndindex(x.shape):
            step = np.zeros_like(x)
            step[at] = 1e-5
            want = (float(loss(x + step)) - float(loss(x - step))) / 2e-5
            assert abs(got[at] - want) < 1e-6 * (1 + abs(want))


def test_batches_and_symbolic_sizes():
    close(weft.vmap(nn.layer_norm)(X), whitened(X, -1, 1e-5))
    program = weft.make_ir(lambda x: nn.group_norm(nn.batch_norm(x), 2))(weft.ShapeDtype(("n", 5, 6), "float32"))
    for n in (1, 3):
        close(program(X[:n]), grouped(whitened(X[:n], (0, 1), 1e-5), 2, 1e-5))
    assert nn.batch_norm(np.zeros((0, 3), np.float32)).shape == (0, 3)


def test_layer_norm_is_one_kernel():
    f = weft.jit(nn.layer_norm, licence="signed-zero")  # in f32 throughout
    f(X, SCALE, BIAS)
    [entry] = f.explain()
    assert (entry["kernels"], entry["library_calls"], entry["arena_bytes"]) == (1, 0, 0)
    assert entry["bytes_moved"] == 4 * (2 * X.size + SCALE.size + BIAS.size + 1)  # and epsilon


@pytest.mark.parametrize(
    "call,error,message",
    [
        (
            lambda: nn.layer_norm(X, SCALE[:5]),
            ValueError,
            r"layer_norm: scale has shape \(5,\); expected \(6,\), axis 2",
        ),
        (
            lambda: nn.layer_norm(X, SCALE, axis=(1, 2)),
            ValueError,
            r"scale has shape \(6,\); expected \(5, 6\), axis \(1, 2\)",
        ),
        (lambda: nn.layer_norm(X, axis=3), IndexError, "layer_norm: axis 3 is out of range"),
        (lambda: nn.layer_norm(X + 1j), TypeError, "layer_norm: x is complex64; real numbers"),
        (lambda: nn.rms_norm(X, BIAS[None]), ValueError, r"rms_norm: scale has shape \(1, 6\)"),
        (lambda: nn.batch_norm(X, mean=0.0), ValueError, r"batch_norm: mean has shape \(\)"),
        (lambda: nn.batch_norm(X, axis=None), TypeError, "batch_norm: axis must be an integer"),
        (lambda: nn.group_norm(X, 4), ValueError, "group_norm: 6 channels do not make 4 groups"),
        (lambda: nn.group_norm(X, 0), ValueError, "group_norm: 6 channels do not make 0 groups"),
        (lambda: nn.group_norm(X, 2.0), TypeError, "group_norm: groups must be an integer"),
        (lambda: nn.group_norm(X, 2, axis=0), ValueError, "group_norm: axis 0 counts examples"),
        (
            lambda: weft.make_ir(lambda x: nn.group_norm(x, 2))(weft.ShapeDtype((3, "n"), "float32")),
            TypeError,
            "group_norm: the number of channels must be known, got n",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
