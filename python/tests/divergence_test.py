"""vmap of branches and loops: what runs, how often, in which order, and that it does not touch derivatives."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp

FLOAT = weft.ShapeDtype((), "float32")


class Counter:
    """Counts the evaluations of a branch or body, by the lane's number."""

    def __init__(self):
        self.lanes: list = []

    def __call__(self, tag, lane, x):
        """x, after it was noted that the lane came by."""

        def note(lane, x):
            self.lanes.append((tag, int(lane)))
            return np.asarray(x)

        return weft.io_callback(note, FLOAT, lane, weft.stop_gradient(x))  # pure ones may be dropped

    def taken(self):
        lanes, self.lanes = self.lanes, []
        return lanes


# --- How often branches and bodies are evaluated ---------------------------------------------------------------------

N = 24
LANES = np.arange(N, dtype=np.int32)
X = np.linspace(-2, 3, N).astype(np.float32)


def transforms(f):
    """f(lane, x) -> number in every order of vmap, grad and jit; whether each also gives gradients."""
    slope = weft.grad(f, 1)
    total = weft.grad(lambda lanes, x: weft.vmap(f)(lanes, x).sum(), 1)
    return {
        "vmap": (weft.vmap(f), False),
        "jit vmap": (weft.jit(weft.vmap(f)), False),
        "vmap grad": (weft.vmap(slope), True),
        "jit vmap grad": (weft.jit(weft.vmap(slope)), True),
        "grad vmap": (total, True),
        "jit grad vmap": (weft.jit(total), True),
        "jvp vmap": (lambda lanes, x: weft.jvp(lambda x: weft.vmap(f)(lanes, x), (x,), (wnp.ones(N),))[1], True),
    }


def test_cond_runs_the_taken_branch_once_per_lane():
    count = Counter()

    def f(lane, x):
        return weft.cond(
            x > 1,
            lambda: wnp.sin(x) + 0 * count("true", lane, x),
            lambda: x * x + 0 * count("false", lane, x),
        )

    want = np.where(X > 1, np.sin(X), X * X)
    slope = np.where(X > 1, np.cos(X), 2 * X)
    for name, (g, derivative) in transforms(f).items():
        np.testing.assert_allclose(g(LANES, X), slope if derivative else want, rtol=1e-5, err_msg=name)
        # In the order of the lanes, each through its own branch only.
        assert count.taken() == [("true" if x > 1 else "false", i) for i, x in enumerate(X)], name


def test_switch_runs_one_branch_per_lane():
    count = Counter()

    def f(lane, x):
        branches = [lambda k=k: x**k + 0 * count(k, lane, x) for k in range(5)]
        return weft.switch(lane % 7 - 1, branches)

    k = np.clip(LANES % 7 - 1, 0, 4)
    for name, (g, derivative) in transforms(f).items():
        want = k * X ** np.maximum(k - 1, 0) if derivative else X**k
        np.testing.assert_allclose(g(LANES, X), want, rtol=1e-4, atol=1e-6, err_msg=name)
        assert count.taken() == [(int(k[i]), i) for i in range(N)], name


def test_while_runs_the_body_as_often_as_the_lane_does():
    count = Counter()

    def f(lane, x):
        def body(c):
            k, y = c
            return k - 1, y * x + 0 * count("body", lane, y)

        return weft.while_loop(lambda c: c[0] > 0, body, (lane % 4, x))[1]

    k = LANES % 4
    for name, (g, derivative) in transforms(f).items():
        want = (k + 1) * X**k if derivative else X ** (k + 1)
        np.testing.assert_allclose(g(LANES, X), want, rtol=1e-4, atol=1e-6, err_msg=name)
        assert count.taken() == [("body", i) for i in range(N) for _ in range(k[i])], name


def test_nested_branches_and_loops():
    count = Counter()

    def f(lane, x):
        def body(c):
            k, y = c
            y = weft.cond(
                k % 2 == 0,
                lambda: y * 0.5 + 0 * count("even", lane, y),
                lambda: weft.cond(
                    x > 0,
                    lambda: wnp.sin(y) + 0 * count("odd, positive", lane, y),
                    lambda: y + x + 0 * count("odd, negative", lane, y),
                ),
            )
            return k - 1, y

        return weft.cond(
            lane % 3 == 0,
            lambda: x + 0 * count("none", lane, x),
            lambda: weft.while_loop(lambda c: c[0] > 0, body, (lane % 5, x))[1],
        )

    def tags(lane):
        if lane % 3 == 0:
            return ["none"]
        sign = "positive" if X[lane] > 0 else "negative"
        return ["even" if k % 2 == 0 else f"odd, {sign}" for k in range(lane % 5, 0, -1)]

    want = [(tag, lane) for lane in range(N) for tag in tags(lane)]
    values = None
    for name, (g, _) in transforms(f).items():
        got = np.asarray(g(LANES, X))
        assert count.taken() == want, name
        if name == "vmap":
            values = got
        elif name == "jit vmap":
            np.testing.assert_allclose(got, values, rtol=1e-6)
    each = np.array([float(weft.grad(f, 1)(int(i), float(x))) for i, x in zip(LANES, X)])
    for name, (g, derivative) in transforms(f).items():
        if derivative:
            np.testing.assert_allclose(g(LANES, X), each, rtol=1e-5, err_msg=name)


def test_two_levels_of_lanes():
    count = Counter()

    def f(lane, x):
        return weft.cond(x > 1, lambda: x + 0 * count("true", lane, x), lambda: -x + 0 * count("false", lane, x))

    lanes, x = LANES.reshape(4, 6), X.reshape(4, 6)
    np.testing.assert_allclose(weft.jit(weft.vmap(weft.vmap(f)))(lanes, x), np.where(x > 1, x, -x))
    assert sorted(count.taken()) == sorted(("true" if v > 1 else "false", i) for i, v in enumerate(X))


# --- What would not end for other lanes ------------------------------------------------------------------------------


def test_loops_that_end_only_for_the_lanes_that_enter_them():
    """JAX does not finish this: a cond under vmap whose branches loop until their own kind of number is small."""

    def positive(x):
        return weft.while_loop(lambda y: (y <= 0) | (y > 1e-6), lambda y: y * 0.1, x)

    def negative(x):
        return weft.while_loop(lambda y: y < -1e-6, lambda y: y * 0.1, x)

    def f(x):
        return weft.cond(x >= 0, positive, negative, x)

    x = np.random.default_rng(0).normal(size=10).astype(np.float32)
    want = [float(f(v)) for v in x]
    np.testing.assert_allclose(weft.vmap(f)(x), want, rtol=1e-6)
    np.testing.assert_allclose(weft.jit(weft.vmap(f))(x), want, rtol=1e-6)
    slope = [float(weft.grad(f)(v)) for v in x]
    np.testing.assert_allclose(weft.jit(weft.vmap(weft.grad(f)))(x), slope, rtol=1e-5)
    np.testing.assert_allclose(weft.jit(weft.grad(lambda x: weft.vmap(f)(x).sum()))(x), slope, rtol=1e-5)
    big = np.random.default_rng(1).normal(size=(3, 400)).astype(np.float32)
    got = weft.jit(weft.vmap(weft.vmap(f)))(big)
    assert (np.abs(got) <= 1e-6).all() and (np.sign(got) == np.sign(big)).all()


def test_recursion_under_a_condition():
    @weft.jit
    def down(n):
        return weft.cond(n == 0, lambda: 0.0, lambda: 1.0 + down(n - 1))

    def f(n):
        return weft.cond(n < 0, lambda: -1.0, lambda: down(n))

    np.testing.assert_allclose(weft.vmap(f)(np.array([3, -2, 0, 7, -1])), [3, -1, 0, 7, -1])


# --- Side effects ----------------------------------------------------------------------------------------------------


def printed(capsys, f, *args):
    f(*args)
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("jit", [False, True])
def test_prints_of_taken_lanes(capsys, jit):
    wrap = weft.jit if jit else (lambda f: f)

    def f(x):
        def true():
            weft.debug.print("a {}", x)
            weft.debug.print("b {}", x)
            return x

        return weft.cond(x > 1, true, lambda: -x)

    x = np.array([0.0, 2.0, 1.0, 3.0], np.float32)
    assert printed(capsys, wrap(weft.vmap(f)), x) == ["a 2.0", "b 2.0", "a 3.0", "b 3.0"]
    assert printed(capsys, wrap(weft.vmap(weft.grad(f))), x) == ["a 2.0", "b 2.0", "a 3.0", "b 3.0"]
    assert printed(capsys, wrap(weft.grad(lambda x: weft.vmap(f)(x).sum())), x) == ["a 2.0", "b 2.0", "a 3.0", "b 3.0"]


def test_prints_of_living_lanes(capsys):
    def f(n):
        def body(k):
            weft.debug.print("{} of {}", k, n)
            return k - 1

        return weft.while_loop(lambda k: k > 0, body, n)

    want = ["2 of 2", "1 of 2", "1 of 1"]
    n = np.array([2, 0, 1], np.int32)
    assert printed(capsys, weft.vmap(f), n) == want
    assert printed(capsys, weft.jit(weft.vmap(f)), n) == want


def test_an_effect_of_a_shared_value_fires_for_taken_lanes(capsys):
    def f(p, x):
        return weft.cond(p, lambda: weft.debug.print("x {}", x), lambda: None)

    p = np.array([True, False, True])
    assert printed(capsys, weft.jit(weft.vmap(f, (0, None))), p, 1.5) == ["x 1.5", "x 1.5"]


def test_ordered_callbacks_in_lanes():
    seen = []

    def note(tag, lane):
        seen.append((str(tag), int(lane)))
        return np.int32(len(seen))

    def f(lane):
        def call(tag):
            return weft.io_callback(lambda i: note(tag, i), weft.ShapeDtype((), "int32"), lane, ordered=True)

        first = weft.cond(lane % 2 == 0, lambda: call("even"), lambda: call("odd"))
        return first, weft.cond(lane > 1, lambda: call("late"), lambda: 0)

    first, second = weft.jit(weft.vmap(f))(np.arange(4))
    assert seen == [("even", 0), ("odd", 1), ("even", 2), ("odd", 3), ("late", 2), ("late", 3)]
    assert first.tolist() == [1, 2, 3, 4] and second.tolist() == [0, 0, 5, 6]


def test_pure_and_debug_callbacks_of_taken_lanes():
    pure, debug = [], []

    def f(lane, x):
        def true():
            weft.debug.callback(lambda i: debug.append(int(i)), lane)
            return weft.pure_callback(lambda i, v: (pure.append(int(i)), np.sqrt(np.asarray(v)))[1], FLOAT, lane, x)

        return weft.cond(x > 0, true, lambda: x)

    x = np.array([4.0, -1.0, 9.0, 0.0], np.float32)
    for g in (weft.vmap(f), weft.jit(weft.vmap(f))):
        np.testing.assert_allclose(g(np.arange(4), x), [2, -1, 3, 0])
        assert pure == debug == [0, 2]
        pure.clear(), debug.clear()


def test_checks_of_taken_lanes():
    def f(x):
        def true():
            weft.debug.check(x < 10, "x is {}", x)
            return wnp.sqrt(x)

        return weft.cond(x > 0, true, lambda: x)

    g = weft.jit(weft.vmap(f))
    np.testing.assert_allclose(g(np.array([4.0, -20.0, 9.0], np.float32)), [2, -20, 3])
    with pytest.raises(RuntimeError, match="x is"):
        g(np.array([4.0, 20.0], np.float32))

    def loop(n):
        def body(k):
            weft.debug.check(k > 0, "finished lanes run")
            return k - 1

        return weft.while_loop(lambda k: k > 0, body, n)

    assert weft.jit(weft.vmap(loop))(np.array([3, 0, 1], np.int32)).tolist() == [0, 0, 0]


# --- Derivatives -----------------------------------------------------------------------------------------------------


def test_shared_weights_get_finite_gradients():
    def f(w, x):
        return weft.cond(x > 0, lambda: w * wnp.log(x) + wnp.sqrt(x), lambda: w * x)

    x = np.array([-1.0, 0.0, 2.0, 5.0], np.float32)
    want = float(np.where(x > 0, np.log(np.maximum(x, 1e-9)), x).sum())
    total = lambda w: weft.vmap(f, (None, 0))(w, x).sum()
    np.testing.assert_allclose(weft.grad(total)(2.0), want, rtol=1e-6)
    np.testing.assert_allclose(weft.jit(weft.grad(total))(2.0), want, rtol=1e-6)
    np.testing.assert_allclose(weft.vmap(weft.grad(f), (None, 0))(2.0, x).sum(), want, rtol=1e-6)
    assert float(weft.jit(weft.grad(weft.grad(total)))(2.0)) == 0


def dear(w, x):
    """A branch of matrix products for positive x, by a matrix that lanes share."""

    def true():
        y = wnp.tanh(w @ (x * wnp.arange(16.0)))
        for _ in range(3):
            y = wnp.tanh(w @ y)
        return y.sum()

    return weft.cond(x > 0, true, lambda: x)


def test_dear_branch_in_every_order():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(16, 16)).astype(np.float32) * 0.3
    x = rng.normal(size=50).astype(np.float32)
    assert "while" in str(weft.make_ir(weft.vmap(dear, (None, 0)))(w, x))
    each = [weft.value_and_grad(dear, (0, 1))(w, v) for v in x]
    total = weft.jit(weft.value_and_grad(lambda w, x: weft.vmap(dear, (None, 0))(w, x).sum(), (0, 1)))
    value, (dw, dx) = total(w, x)
    np.testing.assert_allclose(value, sum(float(v) for v, _ in each), rtol=1e-4)
    np.testing.assert_allclose(dw, sum(np.asarray(g[0]) for _, g in each), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(dx, [float(g[1]) for _, g in each], rtol=1e-3, atol=1e-4)
    lanes = weft.jit(weft.vmap(weft.grad(dear, (0, 1)), (None, 0)))(w, x)
    np.testing.assert_allclose(lanes[0], np.stack([np.asarray(g[0]) for _, g in each]), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(lanes[1], dx, rtol=1e-3, atol=1e-5)
    tangent = weft.jvp(lambda x: weft.vmap(dear, (None, 0))(w, x), (x,), (wnp.ones(50),))[1]
    np.testing.assert_allclose(tangent, dx, rtol=1e-3, atol=1e-4)
    # Second order, along one direction.
    hvp = weft.jit(weft.grad(lambda x: (weft.grad(lambda x: weft.vmap(dear, (None, 0))(w, x).sum())(x) ** 2).sum()))(x)
    want = [float(weft.grad(lambda v: weft.grad(dear, 1)(w, v) ** 2)(v)) for v in x]
    np.testing.assert_allclose(hvp, want, rtol=2e-3, atol=1e-3)


def test_dear_branch_inside_a_scan():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(16, 16)).astype(np.float32) * 0.3
    x = rng.normal(size=40).astype(np.float32)

    def f(w, x):
        return weft.scan(lambda c, step: (dear(w, c - step), c), x, wnp.arange(5.0))[0]

    each = [weft.value_and_grad(f, (0, 1))(w, v) for v in x]
    np.testing.assert_allclose(weft.jit(weft.vmap(f, (None, 0)))(w, x), [float(v) for v, _ in each], rtol=1e-4)
    dw, dx = weft.jit(weft.grad(lambda w, x: weft.vmap(f, (None, 0))(w, x).sum(), (0, 1)))(w, x)
    np.testing.assert_allclose(dw, sum(np.asarray(g[0]) for _, g in each), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(dx, [float(g[1]) for _, g in each], rtol=1e-3, atol=1e-3)


def newton(x):
    """The cube root of x."""
    return weft.while_loop(
        lambda c: wnp.abs(c**3 - x) > 1e-4 * wnp.abs(x), lambda c: c - (c**3 - x) / (3 * c**2), wnp.ones_like(x)
    )


@pytest.mark.parametrize("n", [5, 3000])
def test_loops_of_many_lanes(n):
    x = np.geomspace(1e-3, 1e4, n).astype(np.float32)
    np.testing.assert_allclose(weft.jit(weft.vmap(newton))(x), np.cbrt(x), rtol=1e-3)
    slope = 1 / 3 * x ** (-2 / 3)
    np.testing.assert_allclose(weft.jit(weft.vmap(weft.grad(newton)))(x), slope, rtol=0.1)
    np.testing.assert_allclose(
        weft.jit(weft.grad(lambda x: weft.vmap(newton)(x).sum()))(x),
        weft.jit(weft.vmap(weft.grad(newton)))(x),
        rtol=1e-4,
    )


def test_keys_and_trees_in_branches():
    def f(key, p):
        return weft.cond(p, lambda: (key, {"n": 1}), lambda: (weft.random.split(key)[0], {"n": 2}))

    keys = weft.random.split(weft.random.key(0), 6)
    p = np.array([True, False] * 3)
    out, tree = weft.jit(weft.vmap(f))(keys, p)
    for i in range(6):
        want = f(keys[i], bool(p[i]))
        assert weft.random.bits(out[i]).item() == weft.random.bits(want[0]).item()
    assert tree["n"].tolist() == [1, 2, 1, 2, 1, 2]


def test_symbolic_number_of_lanes():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(16, 16)).astype(np.float32) * 0.3
    spec = weft.ShapeDtype(("n",), np.float32)
    program = weft.make_ir(weft.vmap(dear, (None, 0)))(w, spec)
    loops = weft.make_ir(weft.vmap(newton))(spec)
    for n in (0, 1, 7, 100, 2500):
        x = rng.normal(size=n).astype(np.float32)
        want = weft.vmap(dear, (None, 0))(w, x) if n else np.zeros(0)
        np.testing.assert_allclose(program(w, x), want, rtol=1e-5)
        y = np.abs(x) + 0.1
        np.testing.assert_allclose(loops(y), np.cbrt(y), rtol=1e-3)


# --- Per-example gradients -------------------------------------------------------------------------------------------


def primitives(program):
    """How often each primitive occurs in the program after the passes."""
    counts: dict = {}
    for line in program.stage("optimized").splitlines():
        if " = " in line:
            name = line.split(" = ", 1)[1].split("[")[0].split()[0]
            counts[name] = counts.get(name, 0) + 1
    return counts


LOOPS = {"scan", "while", "tape_scan", "cond"}


def test_per_example_gradients_are_batched_products():
    rng = np.random.default_rng(0)
    f32 = lambda *shape: rng.normal(size=shape).astype(np.float32)
    params = [(f32(8, 16), f32(16)), (f32(16, 16), f32(16)), (f32(16, 4), f32(4))]

    def mlp(params, x, y):
        for w, b in params[:-1]:
            x = wnp.tanh(x @ w + b)
        w, b = params[-1]
        return ((x @ w + b - y) ** 2).sum()

    def einsum(w, x, y):
        return (wnp.einsum("ij,jk,k->i", x, w, y) ** 2).sum()

    def conv(w, x, y):
        return (weft.lax.conv(x[None], w, (1, 1), "SAME") ** 2).sum() * y

    cases = {
        # products: two per layer forwards and backwards, but for the input's cotangent; three layers
        "mlp": (mlp, params, f32(32, 8), f32(32, 4), "contract", 8),
        "einsum": (einsum, f32(5, 6), f32(32, 3, 5), f32(32, 6), "contract", 5),
        "conv": (conv, f32(4, 3, 3, 3), f32(8, 3, 10, 10), f32(8), "conv", 2),
    }
    for name, (f, w, x, y, primitive, most) in cases.items():
        lanes = weft.vmap(weft.grad(f), (None, 0, 0))
        counts = primitives(weft.make_ir(lanes)(w, x, y))
        assert not LOOPS & counts.keys(), (name, counts)
        assert 0 < counts[primitive] <= most, (name, counts)
        got = weft.tree_util.tree_leaves(weft.jit(lanes)(w, x, y))
        each = [weft.tree_util.tree_leaves(weft.grad(f)(w, a, b)) for a, b in zip(x, y)]
        for k, leaf in enumerate(got):
            np.testing.assert_allclose(leaf, np.stack([np.asarray(e[k]) for e in each]), rtol=1e-3, atol=1e-3)
