"""cond, switch, while_loop, fori_loop, scan, map: meaning, weak carries, captures, derivatives, errors."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp


def test_cond():
    f = weft.jit(lambda p, x: weft.cond(p, lambda x: x * 2, lambda x: x - 1, x))
    assert f(True, 3.0).item() == 6 and f(False, 3.0).item() == 2
    y = wnp.arange(100.0)
    g = weft.jit(lambda p, x: weft.cond(p, lambda: (x * y).sum(), lambda: x))
    assert g(True, 2.0).item() == 2 * 4950 and g(False, 2.0).item() == 2
    assert weft.cond(wnp.asarray(0.0), lambda: 1, lambda: 2).item() == 2
    assert (
        weft.cond(True, lambda: 1.0, lambda: wnp.ones((), "float16")).dtype == np.float16
    )  # a Python number takes the other dtype
    out = weft.cond(True, lambda x: {"a": x}, lambda x: {"a": x + 1}, 3)
    assert out["a"].item() == 3
    older = weft.lax.cond(True, 5.0, lambda x: x + 1, (2.0, 3.0), lambda both: both[0] * both[1])
    assert older == 6 and weft.cond(False, 5.0, lambda x: x + 1, (2.0, 3.0), lambda both: both[0] * both[1]) == 6.0
    assert weft.cond(False, 5.0, lambda x: x + 2, (2.0, 3.0), lambda both: both[0] + both[1]) == 5


@pytest.mark.parametrize("number", [-3, -1, 0, 1, 2, 2**31 - 1, -0.5, 0.0, float("nan")])
def test_cond_of_a_number_asks_whether_it_is_0(number):
    """JAX's lax.cond compares a number with 0; Python's truth is the same."""

    def chosen(pred):
        return weft.cond(pred, lambda: True, lambda: False)

    assert chosen(number).item() is bool(number)
    assert weft.jit(chosen)(number).item() is bool(number)
    assert weft.vmap(chosen)(np.full(3, number)).tolist() == [bool(number)] * 3


def test_cond_errors():
    with pytest.raises(TypeError, match=r"result.*f32\[3\].*f32\[2\]"):
        weft.cond(True, lambda: wnp.ones(3), lambda: wnp.ones(2))
    with pytest.raises(TypeError, match=r"a tuple of length|argument"):
        weft.cond(True, lambda: (1, 2), lambda: 1)
    with pytest.raises(TypeError, match="single"):
        weft.cond(wnp.ones(2) > 0, lambda: 1, lambda: 2)
    with pytest.raises(TypeError, match=r"^switch: result of branch 1"):
        weft.switch(1, [lambda: 1, lambda: True])


def test_switch():
    f = weft.jit(lambda i, x: weft.switch(i, [lambda x: x, lambda x: x * 10, lambda x: -x], x))
    assert [f(i, 2.0).item() for i in (-5, 0, 1, 2, 9)] == [2, 2, 20, -2, -2]
    assert weft.vmap(lambda i: weft.switch(i, [lambda: 1.0, lambda: 2.0, lambda: 3.0]))(wnp.arange(3)).tolist() == [
        1,
        2,
        3,
    ]


def test_cond_derivatives():
    g = weft.grad(lambda x: weft.cond(x > 0, lambda x: x**3, lambda x: -x, x))
    assert float(g(2.0)) == 12 and float(g(-2.0)) == -1 and float(weft.jit(g)(2.0)) == 12
    assert weft.vmap(g)(wnp.asarray([2.0, -2.0])).tolist() == [12, -1]
    k = weft.grad(lambda y: weft.cond(True, lambda x: x * y, lambda x: x, 3.0))
    assert float(k(5.0)) == 3


def test_while_loop():
    i, total = weft.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] + c[0] * 0.5), (0, 0))
    assert i.item() == 5 and total.item() == 5 and total.dtype == np.float32
    limit = wnp.asarray(100.0)
    f = weft.jit(lambda x: weft.while_loop(lambda v: v < limit, lambda v: v * x, x))
    assert f(3.0).item() == 243
    assert weft.vmap(f)(wnp.asarray([2.0, 3.0, 10.0, 200.0])).tolist() == [128, 243, 100, 200]
    out, dout = weft.jvp(lambda x: weft.while_loop(lambda v: v < 100, lambda v: v * v, x), (2.0,), (1.0,))
    assert out.item() == 256 and dout.item() == 8 * 2**7
    with pytest.raises(TypeError, match="shape"):
        weft.while_loop(lambda v: True, lambda v: wnp.ones(3), wnp.ones(2))
    with pytest.raises(TypeError, match="one boolean"):
        weft.while_loop(lambda v: v, lambda v: v, wnp.ones(()))
    with pytest.raises(TypeError, match=r"a tuple of length|argument"):
        weft.while_loop(lambda v: True, lambda v: (v, v), 1.0)


def test_the_condition_of_a_loop_is_one_boolean():
    for condition in (lambda c: (c < 3,), lambda c: [], lambda c: c):
        with pytest.raises(TypeError, match="the condition must return one boolean"):
            weft.while_loop(condition, lambda c: c + 1, 0)


def test_fori_loop():
    assert weft.fori_loop(2, 5, lambda i, c: c + i, 0).item() == 9
    assert weft.jit(lambda n: weft.fori_loop(0, n, lambda i, c: c + i, 0))(5).item() == 10
    assert weft.fori_loop(3, 1, lambda i, c: c + 1, 7).item() == 7
    assert float(weft.grad(lambda x: weft.fori_loop(0, 4, lambda i, c: c * x, 1.0))(2.0)) == 32


def index_of(lower, upper, around=lambda loop: loop):
    """The dtype of the index that a fori_loop gives to its body, and whether it is weak."""
    seen = []
    around(lambda *_: weft.fori_loop(lower, upper, lambda i, c: seen.append((i.dtype.name, i.weak_type)) or c, 1.0))()
    return seen[0]


def test_the_index_of_known_bounds_is_weak():
    assert weft.fori_loop(0, 4, lambda i, c: c + i, np.uint8(0)).dtype == "uint8"
    assert weft.fori_loop(0, 4, lambda i, c: c + i, np.uint8(0), strategy="binomial(2)").dtype == "uint8"
    assert (weft.fori_loop(0, 4, lambda i, c: c + i, 0) + np.int8(1)).dtype == "int8"
    bounds = [4, np.int8(4), np.uint8(4), np.int32(4), wnp.array(4), wnp.array(4, "int16"), np.array(4, "int32")]
    for bound in bounds:
        assert index_of(0, bound) == ("int32", True)
        assert index_of(bound, bound + 1) == ("int32", True)
        assert index_of(0, bound, lambda loop: lambda: weft.grad(lambda x: loop())(1.0)) == ("int32", True)
        assert index_of(0, bound, lambda loop: lambda: weft.vmap(lambda x: loop())(wnp.ones(2))) == ("int32", True)
    assert index_of(0, np.int64(4)) == ("int64", True)
    assert weft.fori_loop(np.uint32(2**32 - 3), np.uint32(2**32 - 1), lambda i, c: i, np.int64(0)) == 2**32 - 2


def test_the_index_of_traced_bounds_is_weak_where_the_lower_one_is():
    def index(lower, upper):
        seen = []
        body = lambda i, c: seen.append((i.dtype.name, i.weak_type)) or c
        weft.jit(lambda a, b: weft.fori_loop(a, b, body, 1.0))(lower, upper)
        return seen[0]

    assert index(0, 4) == ("int32", True) and index(0, np.int32(4)) == ("int32", True)
    assert index(np.int32(0), 4) == ("int32", False) and index(np.int32(0), np.int32(4)) == ("int32", False)
    assert index(0, np.int8(4)) == ("int8", False) and index(np.uint8(0), np.uint8(4)) == ("uint8", False)
    assert weft.jit(lambda n: weft.fori_loop(0, n, lambda i, c: c + i, np.uint8(0)))(4).dtype == "uint8"
    strong = weft.jit(lambda n: weft.fori_loop(np.int32(0), n, lambda i, c: c + i, 0))(4)
    assert not strong.weak_type  # a known lower bound keeps its dtype where the upper one is traced
    with pytest.raises(TypeError, match=r"fori_loop: carry is i32\[\] on entry but f32\[\]"):
        weft.jit(lambda n: weft.fori_loop(0, n, lambda i, c: c + 1.5, np.int32(0)))(3)
    with pytest.raises(TypeError, match=r"lower is i32\[\] and upper is u64\[\]; expected dtypes that one integer"):
        weft.fori_loop(np.int32(0), np.uint64(4), lambda i, c: c, 0)


def test_loops_of_wide_counters():
    count = lambda strategy: weft.fori_loop(0, 100_000, lambda i, s: s + i, 0, strategy=strategy)
    before = weft.config.x64
    weft.config.x64 = True
    try:
        assert [int(count(s)) for s in ("tape", "recount", "binomial(3)")] == [4_999_950_000] * 3
    finally:
        weft.config.x64 = before
    with pytest.raises(ValueError, match=r"binomial\(9{20}\)'; expected .* some k from 1 to 2\^31 - 1"):
        count("binomial(99999999999999999999)")


def test_recursion_that_tracing_follows_without_end():
    def factorial(n):
        return weft.cond(n <= 1, lambda: 1.0, lambda: n * factorial(n - 1))

    with pytest.raises(RecursionError, match=r"tracing '.+' went deeper than .* is decorated with @weft.jit"):
        weft.jit(factorial)(3.0)


def test_scan():
    xs = np.arange(12.0, dtype=np.float32).reshape(4, 3)
    w = wnp.arange(3.0)

    def step(c, x):
        c = c * 0.5 + (x * w).sum()
        return c, {"c": c, "x": x[0]}

    def reference(xs, c=1.0):
        out = []
        for x in xs:
            c = c * 0.5 + (x * np.arange(3.0)).sum()
            out.append(c)
        return c, out

    for f in [weft.scan, weft.jit(weft.scan, static_argnums=0)]:
        c, ys = f(step, 1.0, xs)
        want, all_ = reference(xs)
        np.testing.assert_allclose(float(c), want, rtol=1e-6)
        np.testing.assert_allclose(np.asarray(ys["c"]), all_, rtol=1e-6)
        assert ys["x"].tolist() == [0, 3, 6, 9]
    c, ys = weft.scan(step, 1.0, xs, reverse=True)
    want, all_ = reference(xs[::-1])
    np.testing.assert_allclose(np.asarray(ys["c"]), all_[::-1], rtol=1e-6)
    c, ys = weft.scan(lambda c, _: (c + 1, c), 0, None, length=3)
    assert c.item() == 3 and ys.tolist() == [0, 1, 2]
    assert weft.map(lambda x: x**2, wnp.arange(4.0)).tolist() == [0, 1, 4, 9]
    assert weft.scan(lambda c, x: (c + x, None), 0.0, wnp.zeros((0,)))[0].item() == 0


def test_scan_derivatives():
    def rollout(theta, x0):
        def step(x, _):
            x = x + 0.1 * wnp.sin(theta * x)
            return x, x

        return weft.scan(step, x0, None, length=5)[1].sum()

    def reference(theta, x):
        total = 0.0
        for _ in range(5):
            x = x + 0.1 * np.sin(theta * x)
            total += x
        return total

    e = 1e-4
    want = (reference(1.3 + e, 0.7) - reference(1.3 - e, 0.7)) / (2 * e)
    np.testing.assert_allclose(float(weft.grad(rollout)(1.3, 0.7)), want, rtol=1e-3)
    np.testing.assert_allclose(float(weft.jit(weft.grad(rollout))(1.3, 0.7)), want, rtol=1e-3)
    np.testing.assert_allclose(float(weft.jvp(rollout, (1.3, 0.7), (1.0, 0.0))[1]), want, rtol=1e-3)
    np.testing.assert_allclose(
        np.asarray(weft.vmap(weft.grad(rollout), (0, None))(wnp.asarray([1.3, 1.3]), 0.7)), [want] * 2, rtol=1e-3
    )


def test_scan_errors():
    with pytest.raises(TypeError, match="pair"):
        weft.scan(lambda c, x: c, 0.0, wnp.ones(3))
    with pytest.raises(ValueError, match="slices"):
        weft.scan(lambda c, x: (c, None), 0.0, (wnp.ones(3), wnp.ones(4)))
    with pytest.raises(ValueError, match="length"):
        weft.scan(lambda c, x: (c, None), 0.0)
    with pytest.raises(ValueError, match="first axis"):
        weft.scan(lambda c, x: (c, None), 0.0, 1.0)
    with pytest.raises(TypeError, match=r"carry.*i32.*f32"):
        weft.scan(lambda c, x: (c * 0.5, None), wnp.zeros((), "int32"), wnp.ones(3))
    with pytest.raises(TypeError, match=r"a tuple of length|argument"):
        weft.scan(lambda c, x: ((c, c), None), 0.0, wnp.ones(3))


def test_debug_print(capfd):
    @weft.jit
    def f(x):
        weft.debug.print("x = {} and {y}", x, y=x + 1)
        return x * 2

    f(3.0)
    out = capfd.readouterr().out
    assert "x = 3" in out and "4" in out


def test_branches_that_read_none_of_their_operands():
    for p, expected in [(True, 1.0), (False, 2.0)]:
        assert weft.jit(lambda p, x: weft.cond(p, lambda x: 1.0, lambda x: 2.0, x))(p, 3.0).item() == expected

    @weft.jit
    def fact(n):
        return weft.cond(n <= 1, lambda n: 1.0, lambda n: n * fact(n - 1), n)

    assert fact(3.0).item() == 6
    assert weft.grad(fact)(3.0).item() == 5


def halving(extra, x):
    """Comes to x in five steps, beside something whose derivative is infinite, and which nobody reads."""

    def step(carry, _):
        z, other = carry
        z = z - 0.5 * (z - x)
        return (z, extra(z) + other), extra(z)

    return weft.scan(step, (x * 1.0, 0.0 * x), None, length=5)


def singular(z):
    return wnp.sqrt(0.0 * z)


def recursive_pair(x):
    @weft.jit
    def pair(n, x):
        def deeper():
            value, other = pair(n - 1, x)
            return value, other + singular(x)

        return weft.cond(n < 1, lambda: (x * 1.0, singular(x)), deeper)

    return pair(3, x)


@weft.custom_batching.custom_vmap
def batched_pair(x):
    return x * 1.0, singular(x)


@batched_pair.def_vmap
def _(axis_size, in_batched, x):
    del axis_size
    return (x * 1.0, singular(x)), (in_batched[0], in_batched[0])


def snapshots(x):
    return weft.scan(
        lambda z, _: ((z[0] - 0.5 * (z[0] - x), singular(z[0])), z[1]), (x, x), None, length=5, strategy="binomial(2)"
    )


UNREAD = {
    "recursion": lambda x: recursive_pair(x)[0],
    "binomial": lambda x: snapshots(x)[0][0],
    "custom_vmap": lambda x: batched_pair(x)[0],
    "while": lambda x: weft.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 1.0, singular(c[1])), (0, x, x))[
        1
    ],
    "unread_reader": lambda x: (lambda out: out[0][0] + weft.lax.stop_gradient(out[0][1] + out[1][2]))(
        halving(singular, x)
    ),
    "scan": lambda x: halving(singular, x)[0][0],
    "fori": lambda x: weft.fori_loop(0, 5, lambda _, c: (0.5 * (c[0] + x), c[1] + singular(c[0])), (x, 0 * x))[0],
    "cond": lambda x: weft.cond(x > 0, lambda: (x * 1.0, singular(x)), lambda: (-x, x))[0],
    "jit": lambda x: weft.jit(lambda x: (x * 1.0, singular(x)))(x)[0],
    "remat": lambda x: weft.checkpoint(lambda x: (x * 1.0, singular(x)))(x)[0],
    "nested": lambda x: weft.scan(lambda c, y: (0.5 * (c + halving(singular, y)[0][0]), None), x, x[None])[0],
    "trail": lambda x: weft.scan(lambda c, y: (c, halving(singular, y)[0][0]), x, x[None])[1].sum(),
}


@pytest.mark.parametrize("name", UNREAD)
def test_results_that_nobody_reads_have_no_derivative(name):
    """Not even a NaN, which zero times an infinite one would be. All of these are x."""
    f = UNREAD[name]
    square = lambda x: f(x) ** 2
    x = wnp.asarray(2.0)
    for transform in (weft.grad, weft.jacrev, lambda g: lambda x: weft.vjp(g, x)[1](1.0)[0]):
        assert transform(square)(x) == 4 and weft.jit(transform(square))(x) == 4
        np.testing.assert_array_equal(weft.vmap(transform(square))(wnp.array([1.0, 2.0])), [2, 4])
    assert weft.grad(weft.grad(square))(x) == 2
    batch = lambda xs: weft.vmap(square)(xs).sum()
    np.testing.assert_array_equal(weft.grad(batch)(wnp.array([1.0, 2.0])), [2, 4])
    loop = lambda xs: weft.scan(lambda c, x: (c, c * square(x)), 1.0, xs)[1].sum()
    np.testing.assert_array_equal(weft.grad(loop)(wnp.array([1.0, 2.0])), [2, 4])


def test_auxiliary_results_have_no_derivative():
    f = lambda x: (x**2, (singular(x), halving(singular, x)))
    g = weft.grad(f, has_aux=True)
    for transform in (g, weft.jit(g)):
        slope, (one, _) = transform(2.0)
        assert (slope, one) == (4, 0)
    assert weft.value_and_grad(f, has_aux=True)(2.0)[1] == 4
    assert weft.vjp(f, 2.0, has_aux=True)[1](1.0)[0] == 4


def test_a_loop_between_floats():
    def total(lower, upper):
        return weft.fori_loop(lower, upper, lambda i, x: x + i, 0.0)

    for lower, upper in ((0.0, 3.0), (0.5, 3.0), (2.0, -1.0), (-1.5, 1.5)):
        want, i = 0.0, lower
        while i < upper:
            want, i = want + i, i + 1
        assert float(total(lower, upper)) == want
        assert float(weft.jit(total)(lower, upper)) == want
        with weft.disable_jit():
            assert float(total(lower, upper)) == want
    scaled = lambda a, upper: weft.fori_loop(0.5, upper, lambda i, x: x * a + i, 1.0)
    # ((a + 0.5) a + 1.5) a + 2.5
    for g in (weft.grad(scaled), weft.jit(weft.grad(scaled))):
        assert float(g(2.0, 3.0)) == 3 * 4 + 2 * 0.5 * 2 + 1.5
    for bounds in ((0, 3.0), (0.0, 3), (0, True), (False, 3)):
        with pytest.raises(TypeError, match=r"fori_loop: .*(two floats|single integer or float)"):
            total(*bounds)


def test_what_branches_and_loops_hand_on_stays_unmapped():
    x, y = wnp.arange(3.0), wnp.array(3.0)

    def loop(_, y):
        return weft.lax.scan(lambda c, _: (c, None), y, None, length=2)[0]

    programs = {
        "cond": lambda x, y: weft.cond(x < 1, lambda x, y: (x * 2, y), lambda x, y: (x * 3, y), x, y)[1],
        "switch": lambda x, y: weft.switch(wnp.asarray(x, "int32"), [lambda x, y: y] * 3, x, y),
        "loop in cond": lambda x, y: weft.cond(x < 1, loop, loop, x, y),
        "while": lambda x, y: weft.while_loop(lambda s: s[0] < x, lambda s: (s[0] + 1, s[1]), (0.0, y))[1],
        "cond in scan": lambda x, y: weft.lax.scan(
            lambda c, _: ((c[0] + 1, weft.cond(c[0] > 1, lambda c: c, lambda c: c, c[1])), None), (x, y), None, length=2
        )[0][1],
    }
    for name, f in programs.items():
        assert float(weft.vmap(f, (0, None), None)(x, y)) == 3.0, name
        np.testing.assert_array_equal(weft.vmap(f, (0, None))(x, y), [3.0] * 3)
    swapped = lambda x, y: weft.while_loop(lambda s: s[0] < x, lambda s: (s[0] + 1, s[2], s[1]), (0.0, y, 2 * y))[1:]
    np.testing.assert_array_equal(weft.vmap(swapped, (0, None))(x, y), [[3.0, 6.0, 3.0], [6.0, 3.0, 6.0]])
    with pytest.raises(ValueError, match="out_axes"):
        weft.vmap(swapped, (0, None), None)(x, y)
