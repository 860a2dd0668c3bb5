"""What compiled programs do, counted: kernels, library calls, bytes moved and copied. A worse plan fails here, without
a clock."""

import numpy as np
import pytest

import weft
import weft.lax
import weft.numpy as wnp
from examples import digits

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

    # The number 1e-5 is read, too: code does not depend on it.
    c = facts(layernorm, array(64, 100), array(100), array(100))
    assert (c["kernels"], c["kernel_calls"], c["library_calls"]) == (1, 1, 0)
    assert (c["bytes_moved"], c["bytes_copied"], c["arena_bytes"]) == ((2 * 64 * 100 + 2 * 100 + 1) * F, 0, 0)


@pytest.mark.parametrize("columns, fetched", [(1024, True), (100_000, False)])
def test_rows_that_are_read_again_fetch_the_next(columns, fetched):
    """Of rows too long for the caches the next one would be gone again before it is read."""
    assert ("prefetch" in weft.make_ir(weft.nn.softmax)(array(64, columns)).stage("asm")) == fetched


def test_rows_that_are_read_once_fetch_nothing():
    assert "prefetch" not in weft.make_ir(lambda x: x.sum(axis=1))(array(64, 1024)).stage("asm")


@pytest.mark.parametrize("n", [0, 1, 3, 255, 256, 257])
def test_small_and_large_results_are_aligned_and_may_be_donated(n):
    """Results of a KiB or less come from elsewhere than larger ones."""
    step = weft.jit(lambda x: x + 1, donate_argnums=0)
    x = weft.jit(lambda x: x + 1)(array(n))
    address = np.asarray(x).ctypes.data
    assert address % 64 == 0
    want = np.asarray(x) + 1  # a copy: a view of x would forbid the donation
    np.testing.assert_array_equal(step(x), want)
    assert x.is_deleted()


def test_digits_training_step():
    params = digits.initial(0)
    state = digits.Adam(np.float32(0), params, *(weft.tree.map(np.zeros_like, params) for _ in range(2)))
    c = facts(digits.step, state, array(32, 64), wnp.array(np.arange(32, dtype=np.int32) % 10))
    assert c["library_calls"] == 6  # two products forward, three back, one scatter into the scores' gradient
    assert c["bytes_copied"] == 0
    weights = 64 * 128 + 128 + 128 * 10 + 10
    adam = 7 * weights * F  # parameters, both means and the gradient are read, the first three written
    numbers = 33 * F  # learning rate, decays ... in each kernel that uses them; those of the means' correction in f64
    assert adam < c["bytes_moved"] == 556984 + numbers
    assert (c["kernels"], c["kernel_calls"], c["arena_bytes"]) == (11, 11, 35968)


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


def chain(dtype, depth, c=0.75):
    """Branches inside of branches, each with numbers of its own."""

    def f(x, k):
        if depth == 0:
            return x
        inner = chain(dtype, depth - 1, c + 0.25)
        here = np.asarray(c, dtype)
        return weft.lax.cond(k > depth, lambda x: inner(x * here + here, k), lambda x: x * here - here, x)

    return f


@pytest.mark.parametrize("size", [(), (3,), (5000,)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "int32"])
def test_kernels_that_differ_in_numbers_only_are_one(dtype, size):
    with weft.enable_x64():
        x = wnp.arange(np.prod(size, dtype=int)).reshape(size).astype(dtype)
        kernels = []
        for depth in (6, 12):
            f = weft.jit(chain(dtype, depth))
            want = weft.jit(chain(dtype, depth), backend="interpreter")
            for k in (0, depth // 2, depth):
                got, expected = (np.asarray(g(x, k)).astype(np.complex128) for g in (f, want))
                if dtype in ("float16", "bfloat16"):  # fused operations round once
                    np.testing.assert_allclose(got, expected, rtol=2**-6)
                else:
                    np.testing.assert_array_equal(got, expected)
            kernels.append(facts(chain(dtype, depth), x, 0)["kernels"])
        # Of integers only those of a few elements: what a loop divides or shifts by had better be known.
        assert kernels[0] == kernels[1] or (dtype == "int32" and size == (5000,)), kernels


def adam(count, params, means, squares, gradients):
    count = count + 1
    small, large = 1 - wnp.power(0.9, count), 1 - wnp.power(0.999, count)
    means = [0.9 * m + 0.1 * g for m, g in zip(means, gradients)]
    squares = [0.999 * v + 0.001 * g * g for v, g in zip(squares, gradients)]
    step = lambda p, m, v: p - 1e-3 * (m / small) / (wnp.sqrt(v / large) + 1e-8)
    return count, [step(*x) for x in zip(params, means, squares)], means, squares


@pytest.mark.parametrize("donate", [(), (1, 2, 3)])
@pytest.mark.parametrize("leaves", [1, 2, 3, 200])
def test_updates_of_many_parameters_are_one_launch(leaves, donate):
    """Of all sizes, those of one number and of none, too."""
    sizes = [(30_000,), (7,), (64, 500), (0, 3), (), (3, 5, 70)]
    rng = np.random.default_rng(0)
    state = [[rng.random(sizes[i % len(sizes)], dtype=np.float32) for i in range(leaves)] for _ in range(4)]
    step = weft.jit(adam, donate_argnums=donate)
    count, *got = step(np.float32(2), *weft.tree.map(wnp.array, state))
    exactly = weft.tree.map(lambda x: x.astype(np.float64), state)
    _, params, means, squares = adam(np.float64(2), *exactly)
    assert count == 3
    for mine, exact in zip(weft.tree.leaves(got), weft.tree.leaves([params, means, squares])):
        np.testing.assert_allclose(mine, exact, rtol=2e-6, atol=1e-7)
    [c] = step.explain()
    assert (c["launches"], c["library_calls"], c["bytes_copied"]) == (2, 0, 0)  # what corrects the means comes first
    assert c["kernel_calls"] <= leaves + 1


def test_launches_of_sizes_that_are_not_known():
    """Each kernel works on its own elements, whatever share of them all its units are."""
    f = lambda x, y, z: (x * 2, wnp.sin(y), z.sum(axis=1), y - 1)
    types = [weft.ShapeDtype(s, "float32") for s in (("n",), ("m",), ("m", "n"), ("m",))]
    compiled = weft.make_ir(lambda x, y, z: f(x, y, z))(*types[:3])
    for n, m in [(0, 0), (1, 70_000), (300_000, 1), (0, 5), (700, 900)]:
        x, y, z = (np.random.default_rng(1).random(s, dtype=np.float32) for s in ((n,), (m,), (m, n)))
        want = (x * 2, np.sin(y), z.sum(axis=1), y - 1)
        for mine, exact in zip(compiled(x, y, z), want):
            np.testing.assert_allclose(mine, exact, rtol=1e-5)


def test_kernels_that_read_what_another_writes_are_launches_of_their_own():
    def f(x, y):
        scaled = x / x.sum()
        return scaled, y / y.sum(), y - scaled.max()

    c = facts(f, array(400, 500), array(400, 500))
    assert 3 <= c["launches"] < c["kernel_calls"]
