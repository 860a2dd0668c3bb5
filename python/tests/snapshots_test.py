"""Loops that are reversed from a few snapshots: fori_loop and scan with strategy="binomial(k)"."""

import math
import re

import numpy as np
import pytest

import weft
import weft.numpy as wnp

STRATEGIES = ["tape", "binomial(1)", "binomial(2)", "binomial(3)", "binomial(20)"]


def logistic_map(strategy, steps):
    """x -> x + 0.01 x (1 - x), steps times."""
    return lambda x: weft.fori_loop(0, steps, lambda i, c: c + 0.01 * c * (1 - c), x, strategy=strategy)


def derivatives_of_map(x, steps):
    """The value and the first two derivatives, by the chain rule in plain Python."""
    d1, d2 = 1.0, 0.0
    for _ in range(steps):
        slope, curvature = 1 + 0.01 * (1 - 2 * x), -0.02
        d1, d2, x = slope * d1, curvature * d1 * d1 + slope * d2, x + 0.01 * x * (1 - x)
    return x, d1, d2


def advances(steps, snapshots):
    """The least number of steps run again to reverse so many with so many snapshots, and how often each is at most
    (Griewank and Walther 2000, Proposition 1)."""
    r = 0
    while math.comb(snapshots + r, r) < steps:
        r += 1
    return r * steps - (math.comb(snapshots + r, r - 1) if r > 0 else 0), r


def test_thousand_steps_with_ten_snapshots():
    calls = []

    def body(i, c):
        weft.io_callback(lambda i: calls.append(int(i)) or np.float32(0), weft.ShapeDtype((), "float32"), i)
        return c + 0.01 * c * (1 - c)

    with weft.enable_x64(True):
        f = lambda x: weft.fori_loop(0, 1000, body, x, strategy="binomial(10)")
        got = float(weft.grad(f)(np.float64(0.3)))
    assert got == pytest.approx(derivatives_of_map(0.3, 1000)[1], rel=1e-12)
    extra = len(calls) - 1000
    assert extra <= 4 * 1000, f"{extra} more evaluations than one forward pass"
    assert max(calls.count(i) for i in (0, 1, 500, 998, 999)) <= 5
    assert sorted(set(calls)) == list(range(1000))


@pytest.mark.parametrize("snapshots", [1, 2, 3, 4, 7])
def test_no_schedule_takes_fewer_steps(snapshots):
    for steps in (1, 2, 3, 4, 5, 8, 13, 21, 36):
        calls = []

        def body(i, c):
            weft.io_callback(lambda i: calls.append(int(i)) or np.float32(0), weft.ShapeDtype((), "float32"), i)  # noqa: B023
            return wnp.sin(c)

        weft.grad(lambda x: weft.fori_loop(0, steps, body, x, strategy=f"binomial({snapshots})"))(1.0)  # noqa: B023
        least, most = advances(steps, snapshots)
        # One pass forwards, which stores the first snapshots; every step once more when it is turned; and the advances
        # between, but for the way to the last of those snapshots, which the first pass has gone already.
        last = 0
        free = snapshots
        while free > 1 and last < steps - 1:
            r = advances(steps - last, free)[1]
            before = math.comb(free + r - 1, free)
            last += min(before, steps - last - math.comb(free - 1 + r - 1, free - 1))
            free -= 1
        assert len(calls) == steps + steps + least - last, (steps, snapshots)
        assert max(calls.count(i) for i in range(steps)) <= 2 + most


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_orders_one_and_two(strategy):
    steps = 40
    with weft.enable_x64(True):
        f = logistic_map(strategy, steps)
        x = np.float64(0.3)
        value, d1, d2 = derivatives_of_map(0.3, steps)
        assert float(f(x)) == pytest.approx(value, rel=1e-13)
        g = weft.grad(f)
        for first in (g, weft.jit(g), lambda x: weft.jvp(f, (x,), (np.float64(1),))[1]):
            assert float(first(x)) == pytest.approx(d1, rel=1e-12)
        second = [
            weft.grad(g),
            weft.jit(weft.grad(g)),
            weft.grad(weft.jit(g)),
            weft.hessian(f),
            lambda x: weft.jvp(g, (x,), (np.float64(1),))[1],
            weft.jacrev(weft.jacfwd(f)),
        ]
        for h in second:
            assert float(h(x)) == pytest.approx(d2, rel=1e-11)
        xs = np.linspace(-0.5, 1.5, 5)
        many = [derivatives_of_map(v, steps) for v in xs]
        np.testing.assert_allclose(weft.vmap(g)(xs), [m[1] for m in many], rtol=1e-12)
        np.testing.assert_allclose(weft.jit(weft.vmap(weft.grad(g)))(xs), [m[2] for m in many], rtol=1e-11)
        np.testing.assert_allclose(weft.grad(lambda v: weft.vmap(f)(v).sum())(xs), [m[1] for m in many], rtol=1e-12)


def test_third_order():
    with weft.enable_x64(True):
        f = lambda x, s: weft.fori_loop(0, 9, lambda i, c: c + 0.1 * wnp.sin(c * (i + 1)), x, strategy=s)
        third = lambda s: weft.grad(weft.grad(weft.grad(lambda x: f(x, s))))(np.float64(0.4))
        assert float(third("binomial(3)")) == pytest.approx(float(third("tape")), rel=1e-9)


def recurrent(strategy, reverse=False):
    """A recurrent network: constants, two carries, one of them an integer, arrays in and out."""

    def f(w, h, xs):
        def step(carry, x):
            h, n = carry
            h = wnp.tanh(w @ h + x * (1 + n % 2))
            return (h, n + 1), (h * h).sum() + x[0]

        (h, _), ys = weft.scan(step, (h, 0), xs, reverse=reverse, strategy=strategy)
        return (h**2).sum() + (ys * wnp.arange(ys.shape[0])).sum()

    return f


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES[1:])
def test_scan_with_arrays(strategy, reverse):
    rng = np.random.default_rng(3)
    with weft.enable_x64(True):
        w, h, xs = rng.normal(size=(4, 4)) / 2, rng.normal(size=4), rng.normal(size=(11, 4))
        tape, few = recurrent("tape", reverse), recurrent(strategy, reverse)
        for argnums in (0, (0, 1, 2)):
            for a, b in zip(
                *map(weft.tree.leaves, (weft.grad(tape, argnums)(w, h, xs), weft.grad(few, argnums)(w, h, xs)))
            ):
                np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)
        v = rng.normal(size=(4, 4))
        for reverse_over in (
            lambda f: weft.grad(lambda w: (weft.grad(f)(w, h, xs) * v).sum())(w),
            lambda f: weft.jvp(lambda w: weft.grad(f)(w, h, xs), (w,), (v,))[1],
            lambda f: weft.grad(lambda xs: (weft.grad(f)(w, h, xs) * v).sum())(xs),
        ):
            np.testing.assert_allclose(reverse_over(tape), reverse_over(few), rtol=1e-10, atol=1e-12)
        hs = rng.normal(size=(3, 4))
        batched = lambda f: weft.vmap(weft.grad(f, (0, 1)), in_axes=(None, 0, None))(w, hs, xs)
        for a, b in zip(batched(tape), batched(few)):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)
        rows = weft.vmap(few, in_axes=(None, None, 1))(w, h, np.stack([xs, 2 * xs], 1))
        np.testing.assert_allclose(rows, [tape(w, h, xs), tape(w, h, 2 * xs)], rtol=1e-12)


def test_against_jax():
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    def f(lib, np_, x, **how):
        body = lambda i, c: (np_.sin(c[0]) + c[1] * 0.1, c[1] * np_.cos(c[0]) + 0.01 * i)
        a, b = lib.fori_loop(0, 25, body, (x, x * 2), **how)
        return (a * b).sum()

    x = np.linspace(0.1, 1, 3).astype("float32")
    expected = jax.grad(lambda x: f(jax.lax, jnp, x))(x)
    got = weft.grad(lambda x: f(weft, wnp, x, strategy="binomial(4)"))(x)
    np.testing.assert_allclose(got, expected, rtol=2e-5)
    expected = jax.hessian(lambda x: f(jax.lax, jnp, x))(x)
    got = weft.jacrev(weft.grad(lambda x: f(weft, wnp, x, strategy="binomial(4)")))(x)
    np.testing.assert_allclose(got, expected, rtol=2e-4, atol=1e-5)


def test_loops_in_loops_and_branches():
    def f(x, outer, inner):
        def row(i, c):
            c = weft.fori_loop(0, 6, lambda j, d: d + 0.1 * wnp.sin(d + j), c, strategy=inner)
            return weft.cond(c > 1, lambda: c * 0.9, lambda: c * c)

        return weft.fori_loop(0, 7, row, x, strategy=outer)

    with weft.enable_x64(True):
        for x in (0.5, 1.7):
            x = np.float64(x)
            expected = weft.grad(lambda x: f(x, "tape", "tape"))(x)
            h = 1e-6
            difference = (f(x + h, "tape", "tape") - f(x - h, "tape", "tape")) / (2 * h)
            assert float(expected) == pytest.approx(float(difference), rel=1e-6)
            for outer in ("tape", "binomial(2)"):
                for inner in ("tape", "binomial(2)"):
                    g = weft.grad(lambda x: f(x, outer, inner))  # noqa: B023
                    assert float(g(x)) == pytest.approx(float(expected), rel=1e-12)
                    assert float(weft.grad(g)(x)) == pytest.approx(
                        float(weft.grad(weft.grad(lambda x: f(x, "tape", "tape")))(x)), rel=1e-10
                    )


def arena(f, x):
    g = weft.jit(f)
    g(x)
    [version] = g.explain()
    return version["arena_bytes"]


def test_memory_is_that_of_the_snapshots():
    x = np.linspace(0, 1, 4096).astype("float32")
    state = x.nbytes
    loss = lambda strategy, steps: lambda x: (logistic_map(strategy, steps)(x) ** 2).sum()
    tape = arena(weft.grad(loss("tape", 400)), x)
    assert tape >= 400 * state
    few = arena(weft.grad(loss("binomial(8)", 400)), x)
    assert few <= (8 + 4) * state, few / state
    assert arena(weft.grad(loss("binomial(8)", 4000)), x) == few  # whatever the number of steps
    second = lambda steps: lambda x: weft.grad(lambda y: weft.grad(loss("binomial(8)", steps))(y).sum())(x)
    bytes_second = arena(second(400), x)
    assert bytes_second <= 100 * state, bytes_second / state
    assert arena(second(4000), x) == bytes_second


def test_what_is_saved_and_explained():
    f = weft.jit(weft.grad(lambda x: (logistic_map("binomial(5)", 100)(x)).sum()))
    f(np.ones(3, "float32"))
    line = f.explain()[0]["loops"][0]
    where = r"snapshot_scan at .*snapshots_test.py:\d+.*: "
    assert re.search(where + "5 snapshots of 16 bytes, 80 bytes together, for 100 steps", line), line
    saved = weft.saved_residuals(logistic_map("binomial(5)", 100), np.ones(3, "float32"))
    assert sum(r.bytes for r in saved) == 12 + 5 * (12 + 4)  # the argument; snapshots of the state and the counter
    assert any("5 snapshots of 100 steps" in r.repeats for r in saved)
    tape = weft.jit(weft.grad(lambda x: logistic_map("tape", 100)(x).sum()))
    tape(np.ones(3, "float32"))
    assert any("100 steps of 12 bytes, 1200 bytes together" in line for line in tape.explain()[0]["loops"])  # the state
    growing = weft.jit(weft.grad(lambda x: weft.while_loop(lambda c: c < 10, lambda c: c * c, x)))
    growing(2.0)
    assert any("tapes, 4 bytes per trip" in line for line in growing.explain()[0]["loops"])


def test_prints_and_parses():
    ir = weft.make_ir(weft.grad(logistic_map("binomial(5)", 100)))(1.0)
    again = weft.parse_ir(ir.text)
    assert again == ir and "snapshots=5" in ir.text
    assert float(again(0.3)) == pytest.approx(derivatives_of_map(0.3, 100)[1], rel=1e-5)
    assert weft.deserialize_ir(ir.serialize()) == ir


def test_errors():
    with pytest.raises(ValueError, match=r"traced bound.*number of steps"):
        weft.jit(lambda n: weft.fori_loop(0, n, lambda i, c: c, 1.0, strategy="binomial(3)"))(5)
    for bad in ("binomial", "binomial(0)", "binomial(-1)", "revolve", 3):
        with pytest.raises(ValueError, match="expected 'tape', 'recount' or 'binomial"):
            weft.fori_loop(0, 3, lambda i, c: c, 1.0, strategy=bad)
    with pytest.raises(ValueError, match="fori_loop or scan, takes 'binomial"):
        weft.while_loop(lambda c: c < 3, lambda c: c + 1, 0, strategy="binomial(3)")
    assert weft.grad(lambda x: weft.fori_loop(3, 3, lambda i, c: c * 2, x, strategy="binomial(3)"))(1.0).item() == 1
    n = weft.jit(lambda n: weft.grad(lambda x: weft.fori_loop(0, n, lambda i, c: c * 2, x, strategy="recount"))(1.0))
    assert n(5).item() == 32
