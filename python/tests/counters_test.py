"""What compiled programs do, counted: kernels, library calls, bytes moved and copied. A worse plan fails here, without
a clock."""

import numpy as np
import pytest

import weft
import weft.lax
import weft.numpy as wnp
from weft.nn import logsumexp

F = 4  # bytes of a float


def facts(function, *args) -> dict:
    f = weft.jit(function)
    f(*args)
    [entry] = f.explain()
    return entry


def array(*shape):
    return wnp.array(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def test_softmax_reads_and_writes_once():
    def softmax(x):
        e = wnp.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    c = facts(softmax, array(64, 100))
    assert (c["kernels"], c["kernel_calls"], c["library_calls"]) == (1, 1, 0)
    assert (c["bytes_moved"], c["bytes_copied"], c["arena_bytes"]) == (2 * 64 * 100 * F, 0, 0)


def test_layernorm_reads_and_writes_once():
    def layernorm(x, gain, bias):
        centered = x - x.mean(1, keepdims=True)
        return centered / wnp.sqrt((centered**2).mean(1, keepdims=True) + 1e-5) * gain + bias

    c = facts(layernorm, array(64, 100), array(100), array(100))
    assert (c["kernels"], c["kernel_calls"], c["library_calls"]) == (1, 1, 0)
    assert (c["bytes_moved"], c["bytes_copied"], c["arena_bytes"]) == ((2 * 64 * 100 + 2 * 100) * F, 0, 0)


def digits_step(state, images, labels):
    """Forward pass, gradient and Adam of a network with one hidden layer."""

    def loss_of_one(params, image, label):
        hidden = wnp.maximum(image @ params["hidden"]["w"] + params["hidden"]["b"], 0)
        scores = hidden @ params["out"]["w"] + params["out"]["b"]
        return logsumexp(scores) - scores[label]

    def loss(params):
        return wnp.mean(weft.vmap(loss_of_one, in_axes=(None, 0, 0))(params, images, labels))

    count, params, mean, square = state
    value, grads = weft.value_and_grad(loss)(params)
    tree_map = weft.tree.map
    count = count + 1
    mean = tree_map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
    square = tree_map(lambda s, g: 0.999 * s + 0.001 * g * g, square, grads)
    rate = 2e-3 * wnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    params = tree_map(lambda p, m, s: p - rate * m / (wnp.sqrt(s) + 1e-8), params, mean, square)
    return (count, params, mean, square), value


def digits_arguments():
    params = {"hidden": {"w": array(64, 128), "b": array(128)}, "out": {"w": array(128, 10), "b": array(10)}}
    zeros = weft.tree.map(lambda p: p * 0, params)
    state = (wnp.array(0.0), params, zeros, weft.tree.map(lambda p: p * 0, params))
    return state, array(32, 64), wnp.array(np.arange(32, dtype=np.int32) % 10)


def test_digits_training_step():
    state, images, labels = digits_arguments()
    c = facts(digits_step, state, images, labels)
    assert c["library_calls"] == 6  # two products forward, three back, one scatter into the scores' gradient
    assert c["bytes_copied"] == 0
    weights = 64 * 128 + 128 + 128 * 10 + 10
    adam = 7 * weights * F  # parameters, both means and the gradient are read, the first three written
    assert adam < c["bytes_moved"] == 559544
    assert (c["kernels"], c["kernel_calls"], c["arena_bytes"]) == (11, 11, 55616)


@pytest.mark.parametrize("size", [1000, 100_000])
@pytest.mark.parametrize("trips", [3, 300])
@pytest.mark.parametrize("loop", ["fori_loop", "while_loop", "scan"])
def test_updates_in_loops_copy_only_what_goes_in(size, trips, loop):
    def body(i, x):
        x = x.at[i].set(i)
        x = x.at[i + 1].add(1)
        return weft.lax.dynamic_update_slice(x, x[:2] * 2, (i,))

    def f(x):
        if loop == "fori_loop":
            return weft.lax.fori_loop(0, trips, body, x)
        if loop == "while_loop":
            return weft.lax.while_loop(lambda c: c[0] < trips, lambda c: (c[0] + 1, body(*c)), (0, x))[1]
        return weft.lax.scan(lambda x, i: (body(i, x), None), x, wnp.arange(trips))[0]

    c = facts(f, wnp.zeros(size) + 1)
    # The counter adds up the copies of a loop's body once: a copy in it would count again.
    assert size * F <= c["bytes_copied"] < size * F + 64


@pytest.mark.parametrize("length", [10, 1000])
def test_scan_outputs_are_written_where_they_stay(length):
    def f(x):
        return weft.lax.scan(lambda c, row: (wnp.tanh(c * 0.5 + row), (c + row, c.sum())), wnp.zeros(64), x)

    c = facts(f, array(length, 64))
    assert c["bytes_copied"] <= 64 * F
    assert c["arena_bytes"] <= 1024


def test_everything_jitted_is_compiled():
    # What is interpreted says so in explain(); nothing that jit runs does, however small.
    x = wnp.arange(4.0)
    for f in (lambda x: x + 1, lambda x: wnp.sort(x), lambda x: x[0], lambda x: x, lambda x: wnp.linalg.norm(x)):
        assert "interpreted" not in facts(f, x) and "kernels" in facts(f, x)
