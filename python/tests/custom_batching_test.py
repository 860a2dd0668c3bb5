"""custom_vmap and sequential_vmap: when the rule is used, under which transforms, and what it may do."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import lax
from weft.custom_batching import custom_vmap, sequential_vmap


def f64(x):
    return wnp.array(x, dtype="float64")


def marked():
    """sin(x) * w, whose rule gives twice that, to be told apart, and notes how it was called."""
    calls = []

    @custom_vmap
    def f(x, w):
        return wnp.sin(x) * w

    @f.def_vmap
    def rule(axis_size, in_batched, x, w):
        calls.append((axis_size, in_batched))
        return 2 * wnp.sin(x) * w, True

    return f, calls


XS, WS = f64([0.1, 0.2, 0.3]), f64([1.0, 2.0, 3.0])


def test_without_vmap_it_is_the_function():
    f, calls = marked()
    assert float(f(f64(0.5), f64(2.0))) == pytest.approx(2 * np.sin(0.5))
    assert float(weft.jit(f)(f64(0.5), f64(2.0))) == pytest.approx(2 * np.sin(0.5))
    assert float(weft.grad(f)(f64(0.5), f64(2.0))) == pytest.approx(2 * np.cos(0.5))
    assert calls == []


def test_the_rule_is_told_what_is_mapped():
    f, calls = marked()
    np.testing.assert_allclose(weft.vmap(f)(XS, WS), 2 * np.sin(XS) * WS)
    np.testing.assert_allclose(weft.vmap(f, in_axes=(0, None))(XS, f64(2.0)), 4 * np.sin(XS))
    assert calls == [(3, [True, True]), (3, [True, False])]


# Every one of these is twice what it would be without the rule: vmap met the function.
DERIVATIVES = {
    "grad": (lambda f: weft.grad(f), lambda x, w: np.cos(x) * w),
    "grad by the second": (lambda f: weft.grad(f, argnums=1), lambda x, w: np.sin(x)),
    "jvp": (
        lambda f: lambda x, w: weft.jvp(f, (x, w), (f64(1.0), f64(0.5)))[1],
        lambda x, w: np.cos(x) * w + np.sin(x) / 2,
    ),
    "linearize": (lambda f: lambda x, w: weft.linearize(f, x, w)[1](f64(1.0), f64(0.0)), lambda x, w: np.cos(x) * w),
    "second": (lambda f: weft.grad(weft.grad(f)), lambda x, w: -np.sin(x) * w),
    "forward over reverse": (
        lambda f: lambda x, w: weft.jvp(weft.grad(f), (x, w), (f64(1.0), f64(0.0)))[1],
        lambda x, w: -np.sin(x) * w,
    ),
    "reverse over forward": (
        lambda f: weft.grad(lambda x, w: weft.jvp(lambda v: f(v, w), (x,), (f64(1.0),))[1]),
        lambda x, w: -np.sin(x) * w,
    ),
    "jet": (
        lambda f: lambda x, w: weft.jet(lambda v: f(v, w), (x,), ([f64(1.0), f64(0.0)],))[1][1],
        lambda x, w: -np.sin(x) * w,
    ),
    "grad of checkpoint": (lambda f: weft.grad(weft.checkpoint(f)), lambda x, w: np.cos(x) * w),
    "grad of scan": (
        lambda f: weft.grad(lambda x, w: weft.scan(lambda c, _: (c, f(x, w)), 0.0, length=2)[1].sum() / 2),
        lambda x, w: np.cos(x) * w,
    ),
    "grad of cond": (
        lambda f: weft.grad(lambda x, w: weft.cond(True, lambda: f(x, w), lambda: x)),
        lambda x, w: np.cos(x) * w,
    ),
}


@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.parametrize("wrap", [lambda f: f, weft.jit], ids=["plain", "jit"])
def test_vmap_of_derivatives_uses_the_rule(name, wrap):
    transform, expected = DERIVATIVES[name]
    f, calls = marked()
    np.testing.assert_allclose(wrap(weft.vmap(transform(f)))(XS, WS), 2 * expected(np.asarray(XS), np.asarray(WS)))
    assert calls
    # A shared argument has a derivative of its own in every lane.
    np.testing.assert_allclose(
        wrap(weft.vmap(transform(f), in_axes=(0, None)))(XS, f64(2.0)), 2 * expected(np.asarray(XS), 2.0)
    )


def test_derivatives_of_the_batched_function_are_those_of_the_rule():
    f, _ = marked()
    batched = lambda x: weft.vmap(f)(x, WS).sum()
    np.testing.assert_allclose(weft.grad(batched)(XS), 2 * np.cos(XS) * WS)
    np.testing.assert_allclose(weft.hessian(batched)(XS), np.diag(-2 * np.sin(XS) * np.asarray(WS)))


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_the_rule_of_a_derivative_takes_something_mapped(axes):
    f, calls = marked()
    x, t = (XS if axis == 0 else f64(0.5) for axis in axes)
    _, slopes = weft.vmap(lambda x, t: weft.jvp(lambda v: f(v, f64(2.0)), (x,), (t,)), axes)(x, t)
    np.testing.assert_allclose(slopes, 4 * np.cos(x) * np.asarray(t))
    assert calls == [(3, [True, False])]


def test_nested_vmap_uses_the_rule_outside_and_batches_it_inside():
    f, calls = marked()
    x = f64([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    np.testing.assert_allclose(
        weft.vmap(weft.vmap(f, in_axes=(0, None)), in_axes=(0, None))(x, f64(2.0)), 4 * np.sin(x)
    )
    assert calls == [(2, [True, False])]


def test_a_rule_may_call_its_own_function():
    @custom_vmap
    def f(x):
        return wnp.sort(x)

    @f.def_vmap
    def rule(axis_size, in_batched, x):
        return wnp.stack([f(x[i]) for i in range(axis_size)]), True

    np.testing.assert_allclose(weft.vmap(f)(f64([[3, 1, 2], [6, 5, 4]])), [[1, 2, 3], [4, 5, 6]])


def test_trees_and_results_that_are_not_mapped():
    @custom_vmap
    def f(p, y):
        return {"sum": p["a"] + y, "twice": 2 * y}

    @f.def_vmap
    def rule(axis_size, in_batched, p, y):
        assert in_batched == [{"a": True, "b": False}, False]
        return {"sum": p["a"] + y, "twice": 2 * y}, {"sum": True, "twice": False}

    out = weft.vmap(f, in_axes=({"a": 0, "b": None}, None), out_axes={"sum": 0, "twice": None})(
        {"a": XS, "b": f64(0.0)}, f64(5.0)
    )
    np.testing.assert_allclose(out["sum"], np.asarray(XS) + 5)
    assert float(out["twice"]) == 10


def test_what_the_function_captures_the_rule_may_use():
    table = wnp.arange(100.0, dtype="float64")  # too large for a literal

    @weft.jit
    def program(xs, scale):
        @custom_vmap
        def f(x):
            return x * scale + table[3]

        @f.def_vmap
        def rule(axis_size, in_batched, x):
            return 2 * (x * scale + table[3]), True

        return weft.vmap(f)(xs), weft.grad(lambda s: weft.vmap(lambda x: x * s)(xs).sum())(scale)

    np.testing.assert_allclose(program(XS, f64(4.0))[0], 2 * (np.asarray(XS) * 4 + 3))


def test_keyword_arguments():
    f, calls = marked()
    np.testing.assert_allclose(weft.vmap(lambda x: f(w=f64(2.0), x=x))(XS), 4 * np.sin(XS))
    assert calls == [(3, [True, False])]


def test_errors():
    @custom_vmap
    def f(x):
        return x

    with pytest.raises(TypeError, match="'f' has no rule"):
        f(1.0)
    f.def_vmap(lambda n, batched, x: x)
    with pytest.raises(TypeError, match="must return \\(result, out_batched\\)"):
        weft.vmap(f)(XS)
    f.def_vmap(lambda n, batched, x: ((x, x), True))
    with pytest.raises(TypeError, match="returns a"):
        weft.vmap(f)(XS)
    f.def_vmap(lambda n, batched, x: (x[0], True))
    with pytest.raises(TypeError, match=r"returns f64\[\]; expected the shape \(3,\)"):
        weft.vmap(f)(XS)

    def outer(x, y):
        g = custom_vmap(lambda v: v + y)
        g.def_vmap(lambda n, batched, v: (v + y, True))
        return g(x)

    with pytest.raises(Exception, match="captured a value from around it that is mapped"):
        weft.vmap(outer)(XS, WS)


def test_sequential_vmap_runs_lane_after_lane():
    f = sequential_vmap(lambda x, w: (wnp.sin(x) * w, w))
    ys, ws = weft.vmap(f, in_axes=(0, None))(XS, f64(2.0))
    np.testing.assert_allclose(ys, 2 * np.sin(XS))
    np.testing.assert_allclose(ws, [2, 2, 2])
    text = weft.make_ir(weft.vmap(f))(XS, WS).text
    assert "scan[" in text and "f64[3] = sin" not in text
    np.testing.assert_allclose(weft.vmap(weft.grad(lambda x, w: f(x, w)[0]))(XS, WS), np.cos(XS) * WS)
    np.testing.assert_allclose(weft.vmap(weft.vmap(f))(XS[None], WS[None])[0], (np.sin(XS) * WS)[None])
    np.testing.assert_allclose(weft.grad(lambda x: weft.vmap(f)(x, WS)[0].sum())(XS), np.cos(XS) * WS)


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_large_arrays_in_functions_with_rules(kind):
    """What a batching rule reads is inside of a function that has derivative rules, once that is batched."""
    first, second = wnp.arange(100.0), wnp.linspace(1.0, 2.0, 70)  # too large for literals

    def tripled(scale):
        g = custom_vmap(lambda x: x * 3)
        g.def_vmap(lambda size, batched, x: (x * 3 + 0 * (first.sum() + scale * second.sum()), True))
        return g

    def outer(inner):
        if kind == "jvp":
            f = weft.custom_jvp(lambda x: inner(x))
            f.defjvp(lambda p, t: (inner(p[0]) + 0 * second[1], 12 * t[0]))
        else:
            f = weft.custom_vjp(lambda x: inner(x))
            f.defvjp(lambda x: (inner(x) + 0 * second[1], x), lambda x, ct: (12 * ct,))
        return f

    x = np.arange(3, dtype=np.float32)
    for f in (outer(tripled(2)), outer(outer(tripled(3)))):
        ways = {
            "vmap": (weft.vmap(f), 3 * x),
            "jit": (weft.jit(weft.vmap(f)), 3 * x),
            "grad": (weft.grad(lambda v, f=f: weft.vmap(f)(v).sum()), np.full(3, 12)),
            "vmap of grad": (weft.vmap(weft.grad(f)), np.full(3, 12)),
            "jvp": (lambda v, f=f: weft.jvp(weft.vmap(f), (v,), (v,))[1], 12 * x),
            "vmap of vmap": (lambda v, f=f: weft.vmap(weft.vmap(f))(wnp.stack([v, v]))[1], 3 * x),
            "scan": (lambda v, f=f: lax.scan(lambda c, _: (weft.vmap(f)(c), None), v, None, 2)[0], 9 * x),
        }
        for way, (g, want) in ways.items():
            np.testing.assert_allclose(g(x), want, rtol=1e-5, err_msg=way)
            ir = weft.make_ir(g)(x)
            np.testing.assert_allclose(ir(x), want, rtol=1e-5, err_msg=way)
            assert len(ir.constants) <= 2 and weft.parse_ir(ir.text).text == ir.text, way
            loaded = weft.deserialize_ir(ir.serialize())
            np.testing.assert_allclose(loaded(x, *ir.constants), want, rtol=1e-5, err_msg=way)


def test_vmap_over_nothing():
    # Grouped convolutions would make 0 groups of it.
    def conv(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), "VALID", feature_group_count=2)

    x, w, none = wnp.ones((2, 2, 6, 7)), wnp.ones((4, 1, 1, 2)), wnp.zeros((0, 3))
    shape = conv(x, w).shape
    for axes in [(0, None), (None, 0), (0, 0)]:
        args = [wnp.ones((0, *a.shape)) if axis == 0 else a for a, axis in zip((x, w), axes)]
        for f in (weft.vmap(conv, axes), weft.jit(weft.vmap(conv, axes))):
            assert f(*args).shape == (0, *shape)
    both = weft.vmap(lambda row: (row * 2, row.sum()), out_axes=(1, 0))(none)
    assert [b.shape for b in both] == [(3, 0), (0,)]
    assert weft.vmap(lambda _: 2.0)(none).weak_type and not weft.vmap(lambda row: row)(none).weak_type
    assert weft.vmap(lambda _: weft.random.key(0))(none).shape == (0,)
    assert weft.grad(lambda w: weft.vmap(lambda row: row @ w)(none).sum())(wnp.ones(3)).tolist() == [0, 0, 0]
    assert weft.vmap(lambda row: lax.psum(row, "i"), axis_name="i", out_axes=None)(none).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="out_axes"):
        weft.vmap(lambda row: row, out_axes=2)(none)
