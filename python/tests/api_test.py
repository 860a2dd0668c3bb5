"""jit, grad, vmap and their relatives."""

import copy
import dataclasses
import functools
import re
import threading
from typing import NamedTuple

import numpy as np
import pytest

import weft
import weft.numpy as wnp


def f(x):
    return wnp.sin(x) * x**2


def df(x):
    return np.cos(x) * x**2 + 2 * x * np.sin(x)


def ddf(x):
    return -np.sin(x) * x**2 + 4 * x * np.cos(x) + 2 * np.sin(x)


# --- jit -------------------------------------------------------------------------------------------------------------


def test_jit_traces_once_per_signature():
    calls = []

    @weft.jit
    def g(x, y):
        """Adds."""
        calls.append(1)
        return x + y

    assert g(wnp.ones(3), 1).tolist() == [2, 2, 2] and g(wnp.zeros(3), 5).tolist() == [5, 5, 5] and len(calls) == 1
    assert g(wnp.ones(4), 1).shape == (4,) and len(calls) == 2
    g(wnp.ones(4), 1.0)
    assert len(calls) == 3  # a float is another weak type
    assert g.__name__ == "g" and g.__doc__ == "Adds." and g.__wrapped__ is not None
    assert g._cache_size() == 3 and sum(v["calls"] for v in g.explain()) == 4
    g.clear_cache()
    g(wnp.ones(3), 1)
    assert len(calls) == 4


class Point(NamedTuple):
    x: object
    y: object


@dataclasses.dataclass
class State:
    w: object
    n: int = dataclasses.field(metadata={"static": True})


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


weft.tree.register(Pair, lambda p: ((p.a, p.b), None), lambda _, c: Pair(*c))


def test_trees():
    @weft.jit
    def g(tree):
        return weft.tree.map(lambda v: v * 2, tree)

    for tree in [
        [1.0, (2.0, {"b": 3.0, "a": [4.0]})],
        Point(1.0, {"z": 2.0, "y": None}),
        {"x": [], "y": ()},
        None,
        3.0,
        (1.0,),
        Point(1.0, 2.0),
    ]:
        out = g(tree)
        assert weft.tree.structure(out) == weft.tree.structure(tree)
        assert [float(v) for v in weft.tree.leaves(out)] == [2 * v for v in weft.tree.leaves(tree)]
    s = g(State(1.0, 5))
    assert isinstance(s, State) and float(s.w) == 2 and s.n == 5
    p = g(Pair(1.0, [2.0]))
    assert isinstance(p, Pair) and float(p.b[0]) == 4
    assert g({"b": 1.0, "a": 2.0})["a"].item() == 4


def test_dictionary_order_does_not_matter():
    calls = []

    @weft.jit
    def g(d, *, k):
        calls.append(1)
        return d["a"] - d["b"] + k["y"] * 10 + k["x"]

    assert g({"a": 3, "b": 1}, k={"x": 1, "y": 2}).item() == 23
    assert g({"b": 1, "a": 3}, k={"y": 2, "x": 1}).item() == 23
    assert len(calls) == 1


def test_static_arguments():
    calls = []

    @functools.partial(weft.jit, static_argnums=1, static_argnames=("mode",))
    def g(x, n, *, mode="sum"):
        calls.append((n, mode))
        for _ in range(n):
            x = x * 2
        return x.sum() if mode == "sum" else x

    assert g(wnp.ones(3), 2).item() == 12 and g(wnp.ones(3), n=2).item() == 12
    assert g(wnp.ones(3), 3, mode="none").tolist() == [8, 8, 8]
    assert g(wnp.zeros(3), 3, mode="none").tolist() == [0, 0, 0]
    assert calls == [(2, "sum"), (2, "sum"), (3, "none")]
    with pytest.raises(ValueError, match=r"static argument 1 of 'g'.*list.*hashable"):
        g(wnp.ones(3), [1])
    with pytest.raises(ValueError, match="static_argnums has 5"):
        weft.jit(lambda x: x, static_argnums=5)
    with pytest.raises(ValueError, match="no argument"):
        weft.jit(lambda x: x, static_argnames="z")
    h = weft.jit(lambda n, x: x * n, static_argnums=0)
    assert h(2, 3).item() == 6 and h(True, 3).item() == 3 and h(1, 3).item() == 3 and h._cache_size() == 3


@pytest.mark.parametrize("kind", [tuple, list, set, iter, lambda given: (item for item in given)])
def test_positions_and_names_are_read_once(kind):
    """Iterators are empty the second time: when a function is called again, or a decorator is used again."""

    def power(x, n, *, mode="sum"):
        assert isinstance(n, int) and mode == "sum"
        return (x**n).sum()

    x, rows = wnp.full((1, 3), 2.0), weft.P()
    mesh = weft.make_mesh((1,), ("x",))
    ways = {
        "jit": lambda f: weft.jit(f, static_argnums=kind([1]), static_argnames=kind(["mode"])),
        "jit by name": lambda f: weft.jit(f, static_argnames=kind(["mode", "n"])),
        "pjit": lambda f: weft.pjit(f, mesh, rows, None, static_argnums=kind([1]), static_argnames=kind(["mode"])),
        "checkpoint": lambda f: weft.checkpoint(f, static_argnums=kind([1]), static_argnames=kind(["mode"])),
        "make_ir": lambda f: weft.make_ir(f, static_argnums=kind([1])),
        "pmap": lambda f: weft.pmap(f, static_broadcasted_argnums=kind([1]), devices=kind(weft.devices()[:1])),
    }
    decorators = {
        "jit": weft.jit(static_argnums=kind([1]), static_argnames=kind(["mode"])),
        "pjit": weft.pjit(mesh=mesh, static_argnums=kind([1]), static_argnames=kind(["mode"])),
        "checkpoint": weft.checkpoint(static_argnums=kind([1]), static_argnames=kind(["mode"])),
        "pmap": weft.pmap(static_broadcasted_argnums=kind([1]), devices=kind(weft.devices()[:1])),
    }
    for name, way in [*ways.items(), *decorators.items()]:
        for f in [way(power)] + [way(power)] * (name in decorators and way is decorators[name]):
            for n in (2, 3):
                got = f(x, n)
                assert name == "make_ir" or float(wnp.asarray(got).sum()) == 3 * 2**n, name
    vectorized = wnp.vectorize(power, excluded=kind([1]))
    assert vectorized(2.0, 3) == vectorized(2.0, 3) == 8
    donated = weft.jit(donate_argnums=kind([0]))
    for f in (donated(lambda x: x * 2), donated(lambda x: x * 3)):
        given = wnp.ones(1000)
        f(given)
        assert given.is_deleted()


def test_methods_and_partials():
    class Model:
        def __init__(self, k):
            self.k = k

        @functools.partial(weft.jit, static_argnums=0)
        def __call__(self, x):
            return x * self.k

    assert Model(2)(3.0).item() == 6 and Model(5)(3.0).item() == 15
    assert weft.jit(functools.partial(lambda a, x: a * x, 4))(2.0).item() == 8
    bound = weft.jit(Model(7).__call__)
    assert bound(2.0).item() == 14


def test_captured_arrays():
    big, small = np.arange(1000.0, dtype=np.float32), np.float32(3)
    g = weft.jit(lambda x: (x + big + big * small)[:2])
    assert g(1.0).tolist() == [1, 5]
    ir = weft.make_ir(lambda x: x + wnp.asarray(big) + wnp.asarray(big))(1.0)
    assert len(ir.constants) == 1 or len(ir.constants) == 2
    w = wnp.asarray(big)
    ir = weft.make_ir(lambda x: x + w + w * w)(1.0)
    assert len(ir.constants) == 1 and ir(1.0)[2].item() == 7
    small_w = wnp.arange(4.0)
    assert weft.make_ir(lambda x: x + small_w)(1.0).constants == []


def test_jit_inside_jit_and_grad():
    inner = weft.jit(lambda x: wnp.sin(x) * x)
    outer = weft.jit(lambda x: inner(x) + inner(2 * x))
    x = 0.7
    np.testing.assert_allclose(float(outer(x)), np.sin(x) * x + np.sin(2 * x) * 2 * x, rtol=1e-6)
    g = weft.grad(lambda x: inner(x) * 3)
    np.testing.assert_allclose(float(g(x)), 3 * (np.cos(x) * x + np.sin(x)), rtol=1e-6)
    y = wnp.asarray(2.0)
    # A jitted function that uses a value of an outer trace is not cached with it.
    h = weft.grad(lambda y: weft.jit(lambda x: x * y)(3.0) * y)
    assert float(h(y)) == 12
    k = weft.jit(lambda a: a)
    seen = weft.vmap(lambda y: weft.jit(lambda x: x * y)(k(3.0)))(wnp.arange(3.0))
    assert seen.tolist() == [0, 3, 6]


def test_disable_jit():
    seen = []
    g = weft.jit(lambda x: seen.append(float(x)) or x * 2)
    with weft.disable_jit():
        assert float(g(wnp.asarray(3.0))) == 6
    assert seen == [3.0]


def test_threads():
    g = weft.jit(lambda x, n: wnp.sin(x).sum() * n)
    results = {}

    def work(n):
        results[n] = [float(g(wnp.ones(n % 7 + 1), n)) for _ in range(20)]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for n in range(8):
        np.testing.assert_allclose(results[n], [np.sin(1) * (n % 7 + 1) * n] * 20, rtol=1e-5)


# --- make_ir ---------------------------------------------------------------------------------------------------------


def test_make_ir():
    ir = weft.make_ir(lambda x, y: {"z": wnp.sin(x) + y * 2})(wnp.ones(3), 1.0)
    assert (
        "sin" in ir.text
        and ir.eqns[0]["name"] == "sin"
        and ir.in_types == ["f32[3]", "f32[]"]
        and ir.out_types == ["f32[3]"]
    )
    np.testing.assert_allclose(np.asarray(ir(wnp.zeros(3), 1.0)["z"]), [2, 2, 2])
    again = weft.parse_ir(ir.text)
    assert again == ir and again.text == ir.text
    assert weft.grad(lambda x: ir(x, 1.0)["z"].sum())(wnp.zeros(3)).tolist() == [1, 1, 1]
    assert "api_test.py" in ir.eqns[0]["location"]
    assert ir.stage("ir") == ir.text and "fn " in ir.stage("optimized")
    with pytest.raises(ValueError, match="no stage 'nonsense' for a CPU; there are") as error:
        ir.stage("nonsense")
    names = re.search("there are (.*)", str(error.value))[1].split(", ")
    assert re.findall('"([a-z]+)"', weft.IR.stage.__doc__.split("Returns")[0]) == names
    with pytest.raises(TypeError, match=r"a tuple of length|argument"):
        ir(wnp.zeros(3))
    with pytest.raises(weft.ParseError):
        weft.parse_ir("fn f(")


def test_symbolic_sizes():
    w = wnp.ones((784, 10))
    ir = weft.make_ir(lambda x: wnp.tanh(x @ w) + wnp.ones(10))(weft.ShapeDtype(("n", 784), "float32"))
    assert ir.in_types[0] == "f32[n,784]" and ir.out_types == ["f32[n,10]"]
    for n in [1, 5]:
        assert ir(wnp.ones((n, 784))).shape == (n, 10)


def test_eval_shape():
    out = weft.eval_shape(lambda x: {"a": x @ x.T, "b": x > 0}, weft.ShapeDtype((3, 4), "float32"))
    assert out["a"] == weft.ShapeDtype((3, 3), "float32") and out["b"].dtype == bool


# --- Derivatives -----------------------------------------------------------------------------------------------------


def test_grad_of_grad():
    x = 0.7
    np.testing.assert_allclose(float(weft.grad(f)(x)), df(x), rtol=1e-5)
    np.testing.assert_allclose(float(weft.grad(weft.grad(f))(x)), ddf(x), rtol=1e-5)
    np.testing.assert_allclose(float(weft.jit(weft.grad(weft.jit(weft.grad(f))))(x)), ddf(x), rtol=1e-5)


def test_no_perturbation_confusion():
    # d/dx (x * d/dy (x + y)) is 1, not 2.
    assert float(weft.grad(lambda x: x * weft.grad(lambda y: x + y)(1.0))(1.0)) == 1
    assert float(weft.grad(lambda x: weft.grad(lambda y: x * y * y)(2.0) * x)(3.0)) == 24


def test_argnums_trees_and_aux():
    def loss(p, x, scale=1.0):
        y = p["w"] * x + p["b"]
        return (y**2).sum() * scale, {"y": y}

    p, x = {"w": wnp.asarray([1.0, 2.0]), "b": wnp.asarray(1.0)}, wnp.asarray([3.0, 4.0])
    g, aux = weft.grad(loss, has_aux=True)(p, x, scale=2.0)
    y = np.array([4.0, 9.0])
    np.testing.assert_allclose(np.asarray(g["w"]), 4 * y * np.array([3, 4]))
    assert float(g["b"]) == 4 * y.sum() and aux["y"].tolist() == [4, 9]
    (value, _), (gx, gp) = weft.value_and_grad(loss, argnums=(1, 0), has_aux=True)(p, x)
    assert float(value) == 97 and gx.tolist() == [8, 36] and set(gp) == {"w", "b"}
    assert float(weft.grad(lambda a, b: a * b, argnums=-1)(3.0, 4.0)) == 3
    for position in (np.int64(1), np.array(1, np.int32)):
        assert float(weft.grad(lambda a, b: a * b, argnums=position)(3.0, 4.0)) == 3
        assert float(weft.grad(lambda a, b: a * b, argnums=[position])(3.0, 4.0)[0]) == 3
        for jacobian in (weft.jacfwd, weft.jacrev):
            assert float(jacobian(lambda a, b: a * b, argnums=position)(3.0, 4.0)) == 3
        assert float(weft.hessian(lambda a, b: a * b * b, argnums=position)(3.0, 4.0)) == 6


def test_python_control_flow_under_grad():
    def g(x):
        while float(wnp.abs(x)) > 1:
            x = x / 2
        if x > 0:
            return x**2
        return -x

    assert float(weft.grad(g)(6.0)) == 2 * 0.75 / 8
    assert float(weft.grad(g)(-3.0)) == -1 / 4
    value, pull = weft.vjp(g, 6.0)
    assert float(value) == 0.5625 and float(pull(1.0)[0]) == 2 * 0.75 / 8
    assert [float(v) for v in weft.jvp(g, (6.0,), (1.0,))] == [0.5625, 0.1875]


def test_demanded_values_are_computed_once():
    count = []

    def g(x):
        y = wnp.sin(x)
        for _ in range(3):
            count.append(float(y))
        return y

    weft.grad(g)(1.0)
    assert len(set(count)) == 1


def test_jvp_vjp_linearize_agree():
    def g(p):
        return wnp.sin(p["a"]) @ p["b"], wnp.exp(p["a"]).sum()

    rng = np.random.default_rng(0)
    p = {"a": rng.standard_normal(3).astype(np.float32), "b": rng.standard_normal((3, 2)).astype(np.float32)}
    t = {"a": rng.standard_normal(3).astype(np.float32), "b": rng.standard_normal((3, 2)).astype(np.float32)}
    out, dout = weft.jvp(g, (p,), (t,))
    out2, lin = weft.linearize(g, p)
    dout2 = lin(t)
    for a, b in zip(weft.tree.leaves((out, dout)), weft.tree.leaves((out2, dout2))):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5)
    _, pull = weft.vjp(g, p)
    ct = (np.ones(2, np.float32), np.float32(2))
    (back,) = pull(ct)
    left = sum(
        float((np.asarray(a) * np.asarray(b)).sum()) for a, b in zip(weft.tree.leaves(ct), weft.tree.leaves(dout))
    )
    right = sum(float((np.asarray(back[k]) * t[k]).sum()) for k in p)
    np.testing.assert_allclose(left, right, rtol=1e-5)


def test_jacobians_and_hessian():
    a = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    g = lambda x: wnp.sin(a @ x)
    x = np.array([0.1, 0.2, 0.3], np.float32)
    want = np.cos(a @ x)[:, None] * a
    np.testing.assert_allclose(np.asarray(weft.jacfwd(g)(x)), want, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(weft.jacrev(g)(x)), want, rtol=1e-5)
    h = weft.hessian(lambda x: (wnp.sin(x) * x[0]).sum())(x)
    want = np.diag(-np.sin(x) * x[0])
    want[0] += np.cos(x)
    want[:, 0] += np.cos(x)
    np.testing.assert_allclose(np.asarray(h), want, rtol=1e-4, atol=1e-6)


def test_derivative_errors():
    with pytest.raises(TypeError, match="argument x of 'g' is i32"):

        def g(x):
            return x * 1.0

        weft.grad(g)(3)
    with pytest.raises(TypeError, match=r"f32\[3\]"):
        weft.grad(lambda x: x * 2)(wnp.ones(3))
    with pytest.raises(TypeError, match="has_aux"):
        weft.grad(lambda x: (x, x))(1.0)
    with pytest.raises(ValueError, match="argnums has 3"):
        weft.grad(lambda x: x, argnums=3)(1.0)
    with pytest.raises(TypeError, match="tangent of argument"):
        weft.jvp(lambda x: x, (wnp.ones(3),), (wnp.ones(4),))
    with pytest.raises(TypeError, match="cotangent"):
        weft.vjp(lambda x: x, wnp.ones(3))[1](wnp.ones(4))


# --- vmap ------------------------------------------------------------------------------------------------------------


def test_vmap():
    a, b = np.arange(6.0, dtype=np.float32).reshape(2, 3), np.arange(3.0, dtype=np.float32)
    np.testing.assert_array_equal(np.asarray(weft.vmap(lambda x: x * 2)(a)), a * 2)
    np.testing.assert_array_equal(np.asarray(weft.vmap(lambda x, y: x @ y, in_axes=(0, None))(a, b)), a @ b)
    np.testing.assert_array_equal(np.asarray(weft.vmap(lambda x: x.sum(), in_axes=1)(a)), a.sum(0))
    np.testing.assert_array_equal(np.asarray(weft.vmap(lambda x: x * 1, in_axes=1, out_axes=1)(a)), a)
    np.testing.assert_array_equal(np.asarray(weft.vmap(lambda x: x * 1, in_axes=1, out_axes=0)(a)), a.T)
    np.testing.assert_array_equal(
        np.asarray(weft.vmap(weft.vmap(lambda x, y: x * y, (None, 0)), (0, None))(b, b)), np.outer(b, b)
    )
    out = weft.vmap(
        lambda d, x: {"s": d["w"] * x, "c": d["b"]}, in_axes=({"w": 0, "b": None}, 0), out_axes={"s": 0, "c": None}
    )({"w": b, "b": 5.0}, b)
    assert out["s"].tolist() == [0, 1, 4] and float(out["c"]) == 5
    np.testing.assert_array_equal(np.asarray(weft.vmap(lambda x: 3.0 * wnp.ones(2))(b)), np.full((3, 2), 3))
    np.testing.assert_allclose(np.asarray(weft.vmap(weft.grad(lambda x: (x**3).sum()))(a)), 3 * a**2)
    assert weft.vmap(lambda: 1.0, axis_size=3)().tolist() == [1, 1, 1]


def test_jit_keeps_the_structure_of_results():
    for structure in [
        lambda x: (x, {"a": x}),
        lambda x: (x, [x]),
        lambda x: ((x,), x),
        lambda x: (x, None),
        lambda x: (),
    ]:
        want = weft.tree_util.tree_structure(structure(1.0))
        assert weft.tree_util.tree_structure(weft.jit(structure)(1.0)) == want


def test_vmap_knows_what_is_not_mapped():
    def g(x, n):
        return x * 2 if n > 1 else x

    assert weft.vmap(g, in_axes=(0, None))(wnp.arange(3.0), 2).tolist() == [0, 2, 4]
    with pytest.raises(weft.TracerError, match="vmap"):
        weft.vmap(g)(wnp.arange(3.0), wnp.arange(3))


def test_none_in_an_argument_or_a_result_takes_no_axis():
    ones = wnp.ones(3)
    assert weft.vmap(lambda x, n: x, in_axes=(0, None))(ones, None).shape == (3,)
    assert weft.vmap(lambda d: d["a"])({"a": ones, "n": None}).shape == (3,)
    # In in_axes None stands for what is not mapped; at the place of a None it stands for nothing.
    tree = {"a": ones, "b": (2.0, None), "n": None}
    for axes in ({"a": 0, "b": None, "n": None}, {"a": 0, "b": (None, 0), "n": 0}):
        assert weft.vmap(lambda d: d["a"] + d["b"][0], in_axes=(axes,))(tree).tolist() == [3, 3, 3]
    assert weft.vmap(lambda x: (x, None), out_axes=(0, None))(ones)[1] is None
    for axes in (0, (0, 0), (0, {"n": None, "b": 0})):
        x, rest = weft.vmap(lambda x: (x, {"n": None, "b": x}), out_axes=axes)(ones)
        assert x.shape == rest["b"].shape == (3,) and rest["n"] is None
    with pytest.raises(ValueError, match="vmap: in_axes is no prefix of the structure of the values"):
        weft.vmap(lambda d: d["a"], in_axes=({"a": 0},))({"a": ones, "n": None})
    given = {"a": wnp.ones(2), "n": None}
    square = lambda d: (d["a"] ** 2).sum()
    assert weft.jacfwd(square)(given)["a"].tolist() == weft.jacrev(square)(given)["a"].tolist() == [2, 2]
    assert weft.hessian(square)(given)["a"]["a"].tolist() == [[2, 0], [0, 2]]
    one_by_one = weft.custom_batching.sequential_vmap(lambda x, n: (x, n))
    assert weft.vmap(one_by_one, in_axes=(0, None))(ones, None)[1] is None
    assert weft.pmap(lambda x, n: (x, n["n"]))(wnp.ones((1, 3)), {"n": None, "b": wnp.ones(1)})[1] is None


def test_a_tree_is_broadcast_to_one_with_none():
    assert weft.tree.broadcast(0, {"a": 1, "n": None}) == {"a": 0, "n": None}
    assert weft.tree.broadcast({"a": 1, "n": None}, {"a": [1, 2, None], "n": None}) == {"a": [1, 1, None], "n": None}
    assert weft.tree.broadcast(None, [1, 2], is_leaf=lambda x: x is None) == [None, None]
    for prefix in (None, {"a": 1, "n": None}):
        with pytest.raises(ValueError, match=r"tree.broadcast: the prefix is no prefix"):
            weft.tree.broadcast(prefix, {"a": 1, "n": 2})


def test_vmap_errors():
    with pytest.raises(ValueError, match=r"sizes of '<lambda>'|mapped sizes"):
        weft.vmap(lambda x, y: x + y)(wnp.ones(3), wnp.ones(4))
    with pytest.raises(ValueError, match="2 entries"):
        weft.vmap(lambda x: x, in_axes=(0, 0))(wnp.ones(3))
    with pytest.raises(ValueError, match="axis 0 of argument x"):

        def g(x):
            return x

        weft.vmap(g)(1.0)
    with pytest.raises(ValueError, match="no argument"):
        weft.vmap(lambda x: x, in_axes=None)(1.0)
    with pytest.raises(ValueError):
        weft.vmap(lambda x: x, out_axes=None)(wnp.ones(3))
    with pytest.raises(ValueError, match="prefix"):
        weft.vmap(lambda x: x["a"], in_axes=({"b": 0},))({"a": wnp.ones(3)})


# --- Custom rules ----------------------------------------------------------------------------------------------------


def test_custom_jvp():
    @weft.custom_jvp
    def g(x, y):
        return wnp.sin(x) * y

    @g.defjvp
    def _(primals, tangents):
        x, y = primals
        return g(x, y), 10 * tangents[0] + 100 * tangents[1]

    assert float(weft.grad(g)(1.0, 2.0)) == 10 and float(weft.grad(g, 1)(1.0, 2.0)) == 100
    np.testing.assert_allclose(float(g(1.0, 2.0)), np.sin(1) * 2, rtol=1e-6)
    assert weft.vmap(weft.grad(g), (0, None))(wnp.ones(3), 2.0).tolist() == [10, 10, 10]


def test_custom_vjp():
    @weft.custom_vjp
    def clip_gradient(x, limit):
        return x * 1

    clip_gradient.defvjp(lambda x, limit: (x * 1, limit), lambda limit, ct: (wnp.clip(ct, -limit, limit), None))
    assert float(weft.grad(lambda x: clip_gradient(x, 0.5) * 7)(1.0)) == 0.5
    assert weft.jit(weft.vmap(weft.grad(lambda x: clip_gradient(x, 0.5) * 7)))(wnp.ones(2)).tolist() == [0.5, 0.5]


def test_stop_gradient_and_checkpoint():
    assert float(weft.grad(lambda x: x * weft.stop_gradient(x))(3.0)) == 3
    g = weft.checkpoint(lambda x: wnp.sin(wnp.sin(x)))
    np.testing.assert_allclose(float(weft.grad(g)(0.5)), np.cos(np.sin(0.5)) * np.cos(0.5), rtol=1e-6)


def test_copies_of_a_jitted_function():
    f = weft.jit(lambda x: x + 1)
    holder = copy.deepcopy({"step": f, "again": [copy.copy(f)]})
    assert float(holder["step"](1.0)) == float(holder["again"][0](1.0)) == 2.0


class TestEnsureCompileTimeEval:
    """What is known is computed at once, what is traced is recorded."""

    def test_known_values_are_known(self):
        kept = []

        @weft.jit
        def f(x):
            with weft.ensure_compile_time_eval():
                table = wnp.cumsum(wnp.arange(5)) * 2
                whole = wnp.full((2,), table[4])
                kept.append((table, whole))
                assert not isinstance(table, weft.Tracer)
                n = int(table.max())
            return x + n

        assert f(1) == 21
        # They outlive the trace.
        assert kept[0][0].tolist() == [0, 2, 6, 12, 20] and kept[0][1].tolist() == [20, 20]

    @pytest.mark.parametrize("transform", [weft.jit, weft.vmap, weft.grad, lambda f: weft.jit(weft.vmap(weft.grad(f)))])
    def test_traced_values_are_recorded(self, transform):
        def body(x):
            with weft.ensure_compile_time_eval():
                y = x * wnp.ones(3) + wnp.arange(3.0)[2]
                known = wnp.arange(3.0) + 1
                z = wnp.concatenate([y, known]).reshape(2, 3) @ known
                w = (
                    wnp.where(x > 0, x, known[0])
                    + wnp.full((2,), x)[0]
                    + y[1:].sum()
                    + weft.lax.dynamic_index_in_dim(known, x.astype(int) % 3, keepdims=False)
                )
                assert isinstance(z, weft.Tracer) and isinstance(w, weft.Tracer)
                assert not isinstance(known, weft.Tracer)
            return (z.sum() + w) * x

        x = wnp.array([1.5, 2.5]) if transform not in (weft.jit, weft.grad) else wnp.array(1.5)
        ours = transform(body)(x)

        def plain(x):
            known = wnp.arange(3.0) + 1
            z = wnp.concatenate([x * wnp.ones(3) + 2.0, known]).reshape(2, 3) @ known
            w = wnp.where(x > 0, x, 1.0) + x + 2 * (x + 2.0) + known[x.astype(int) % 3]
            return (z.sum() + w) * x

        assert np.allclose(ours, transform(plain)(x))

    def test_scopes_inside_scopes_and_traces_inside_scopes(self):
        @weft.jit
        def f(x):
            with weft.ensure_compile_time_eval():
                a = weft.vmap(lambda v: v * 2)(wnp.arange(3.0))
                with weft.ensure_compile_time_eval():
                    b = weft.grad(lambda v: v**2)(a[2])
                    c = x + b
                d = c * a[1]
            assert not isinstance(a, weft.Tracer) and not isinstance(b, weft.Tracer)
            return d + x

        assert f(1.0) == (1 + 8) * 2 + 1

    def test_it_ends_with_an_error_inside(self):
        @weft.jit
        def f(x):
            try:
                with weft.ensure_compile_time_eval():
                    raise KeyError("mine")
            except KeyError:
                pass
            return x + wnp.ones(2)

        assert f(1.0).tolist() == [2, 2]
        with weft.ensure_compile_time_eval():
            assert float(wnp.ones(2).sum()) == 2  # outside of all traces nothing changes
