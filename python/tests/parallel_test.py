"""shard_map and pmap on eight virtual devices: against whole arrays, and JAX with eight host devices."""

import os
import pickle
import subprocess
import sys

os.environ["WEFT_NUM_CPU_DEVICES"] = "8"
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"

import numpy as np
import pytest

import weft
import weft.debug
import weft.lax
import weft.numpy as wnp
from weft import P, lax

rng = np.random.default_rng(0)
LINE = weft.make_mesh((8,), ("x",))
GRID = weft.make_mesh((4, 2), ("x", "y"))


def arrays(*shape):
    return rng.uniform(-2, 2, shape).astype(np.float32)


# --- Devices, meshes, shardings ---------------------------------------------------------------------------------------


def test_devices_and_meshes():
    assert weft.device_count() == len(weft.devices()) == weft.local_device_count() == 8
    assert repr(weft.devices()[3]) == "CpuDevice(id=3)"
    assert pickle.loads(pickle.dumps(weft.devices()[3])) is weft.devices()[3]
    assert GRID.shape == {"x": 4, "y": 2} and GRID.size == 8 and GRID.axis_names == ("x", "y")
    assert weft.Mesh(np.array(weft.devices()).reshape(4, 2), ("x", "y")) == GRID and GRID != LINE
    assert hash(GRID) == hash(weft.make_mesh((4, 2), ("x", "y")))
    for bad, words in [
        (lambda: weft.make_mesh((3, 3), ("x", "y")), "9 devices, but there are 8"),
        (lambda: weft.make_mesh((2,), ("x", "y")), "2 axis names"),
        (lambda: weft.make_mesh((2, 2), ("x", "x")), "named twice"),
        (lambda: weft.make_mesh((2,), ("a b",)), "a word such as"),
        (lambda: weft.Mesh([weft.devices()[0]] * 2, "x"), "there twice"),
        (lambda: weft.devices("tpu"), "no backend 'tpu'"),
    ]:
        with pytest.raises(ValueError, match=words):
            bad()
    for count in ("0", "many", "100000", "+8", "8.0", " 8"):
        code = "import weft; weft.devices()"
        env = {**os.environ, "WEFT_NUM_CPU_DEVICES": count, "PYTHONPATH": os.pathsep.join(sys.path)}
        run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
        assert run.returncode != 0 and f"WEFT_NUM_CPU_DEVICES is '{count}'" in run.stderr


def test_memory_of_devices():
    before = weft.devices()[0].memory_stats()
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for d in weft.devices():
        assert (d.platform, d.device_kind) == ("cpu", "cpu") and repr(d) == f"CpuDevice(id={d.id})"
        assert d.memory_stats()["bytes_limit"] == pages
    # What a program's results lay in is kept for the next one's.
    del before["bytes_limit"]
    big = weft.jit(lambda x: x + 1)(np.zeros(1 << 20, "f4"))
    del big
    assert weft.devices()[3].memory_stats()["bytes_kept"] >= 4 << 20 > 0 and set(before) == {"bytes_kept"}


def test_shardings():
    s = weft.NamedSharding(GRID, P("x", None, "y"))
    assert s.shard_shape((8, 3, 4)) == (2, 3, 2)
    assert s.num_devices == 8 and not s.is_fully_replicated
    places = s.devices_indices_map((8, 3, 4))
    assert places[weft.devices()[5]] == (slice(4, 6), slice(0, 3), slice(2, 4))
    assert weft.NamedSharding(GRID, P(("y", "x"))).devices_indices_map((8,))[weft.devices()[1]] == (slice(4, 5),)
    assert weft.NamedSharding(GRID, P()).is_fully_replicated
    assert P(("x",), ()) == P("x", None) and weft.NamedSharding(GRID, P(["x"])) == weft.NamedSharding(GRID, P("x"))
    assert P("x", ["x", "y"]) == P("x", ("x", "y")) and repr(P("x", None)) == "PartitionSpec('x', None)"
    assert pickle.loads(pickle.dumps(P("x", None))) == P("x", None)
    with pytest.raises(ValueError, match="'z', which is no axis"):
        weft.NamedSharding(GRID, P("z"))
    with pytest.raises(ValueError, match="uses the axis 'x' twice"):
        weft.NamedSharding(GRID, P("x", "x"))
    with pytest.raises(ValueError, match="size 6, which 4 devices cannot share evenly"):
        s.shard_shape((6, 1, 2))


def test_shardings_that_mean_the_same():
    on = lambda mesh, *spec: weft.NamedSharding(mesh, P(*spec))
    one = weft.SingleDeviceSharding(weft.devices()[0])
    first = weft.Mesh(np.array(weft.devices()[:1]), ("x",))
    backwards = weft.Mesh(np.array(weft.devices()[::-1]), ("x",))
    for a, b, ndim, same in [
        (on(LINE, "x"), on(LINE, "x", None), 2, True),
        (on(LINE, "x"), on(GRID, ("x", "y")), 1, True),
        (on(LINE, "x"), on(GRID, ("y", "x")), 1, False),
        (on(LINE, "x"), on(LINE, None, "x"), 2, False),
        (on(LINE, "x"), on(backwards, "x"), 1, False),
        (on(LINE), on(backwards), 1, True),
        (on(first, "x"), one, 3, True),
        (on(LINE), one, 1, False),
    ]:
        assert a.is_equivalent_to(b, ndim) is b.is_equivalent_to(a, ndim) is same, (a, b)
    with pytest.raises(TypeError, match="expected a sharding, got 'x'"):
        one.is_equivalent_to("x", 1)


def test_device_put():
    x = arrays(8, 4)
    y = weft.device_put(x, weft.NamedSharding(GRID, P("x", "y")))
    np.testing.assert_array_equal(np.asarray(y), x)
    assert y.sharding == weft.NamedSharding(GRID, P("x", "y")) and len(y.devices()) == 8
    shards = y.addressable_shards
    assert len(shards) == 8 and shards[3].data.shape == (2, 2) and shards[3].device.id == 3
    np.testing.assert_array_equal(y.addressable_data(3), x[2:4, 2:])
    assert [(s.device, s.index) for s in y.global_shards] == [(s.device, s.index) for s in shards]
    for shard in shards:
        np.testing.assert_array_equal(np.asarray(shard.data), x[shard.index])
        assert shard.data.devices() == {shard.device}
    tree = weft.device_put({"a": x, "b": 1.0}, {"a": weft.NamedSharding(LINE, P("x")), "b": weft.devices()[2]})
    assert tree["b"].devices() == {weft.devices()[2]}
    assert tree["a"].sharding.spec == P("x")
    half = weft.device_put(x, weft.NamedSharding(GRID, P("x")))
    assert [s.replica_id for s in half.addressable_shards] == [0, 1] * 4
    assert weft.device_put(x).sharding == weft.SingleDeviceSharding(weft.devices()[0])
    with pytest.raises(ValueError, match=r"device_put: dimension 0.*cannot share evenly"):
        weft.device_put(arrays(3), weft.NamedSharding(LINE, P("x")))
    with pytest.raises(TypeError, match="expected a device or a sharding"):
        weft.device_put(x, "cpu:0")


def test_picture(capsys):
    picture = weft.debug.visualize_array_sharding(weft.device_put(arrays(4, 4), weft.NamedSharding(GRID, P("x", "y"))))
    assert capsys.readouterr().out == picture + "\n"
    assert picture.splitlines()[1] == "│ CPU 0 │ CPU 1 │" and picture.count("CPU") == 8
    rows = weft.debug.visualize_array_sharding(weft.device_put(arrays(4, 4), weft.NamedSharding(GRID, P("x"))))
    assert "CPU 0,1" in rows and "CPU 6,7" in rows


# --- shard_map: meaning -----------------------------------------------------------------------------------------------


def both(f, *args):
    """f as it is and compiled."""
    a, b = f(*args), weft.jit(f)(*args)
    for x, y in zip(weft.tree.leaves(a), weft.tree.leaves(b)):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
    return a


def test_blocks_go_there_and_back():
    x = arrays(8, 4, 6)
    for spec in (
        P(),
        P("x"),
        P(None, "x"),
        P("x", "y"),
        P(("x", "y")),
        P(("y", "x")),
        P("y", None, None),
        P(None, ("y",), None),
    ):
        f = weft.shard_map(lambda a: 2 * a, GRID, spec, spec)
        np.testing.assert_array_equal(both(f, x), 2 * x)
    out = weft.shard_map(lambda a: a, GRID, P("x", "y"), P("y", "x"))(x)
    assert out.shape == (4, 8, 6) and out.sharding == weft.NamedSharding(GRID, P("y", "x"))


def test_all_gather_everywhere():
    """Each device's number + 100 arrives everywhere."""
    f = weft.shard_map(
        lambda: lax.all_gather(lax.axis_index("x") + 100, "x")[None], LINE, in_specs=(), out_specs=P("x")
    )
    np.testing.assert_array_equal(both(f), np.broadcast_to(np.arange(8) + 100, (8, 8)))


def test_collectives_on_devices():
    x = arrays(8, 16)

    def f(a):
        return (
            lax.psum(a, "x"),
            lax.pmean(a, "x"),
            lax.pmax(a, "x"),
            lax.pmin(a, "x"),
            lax.all_gather(a, "x", axis=1, tiled=True),
            lax.psum_scatter(a, "x", scatter_dimension=1, tiled=True),
            lax.all_to_all(a, "x", 1, 0, tiled=True),
            lax.ppermute(a, "x", [(k, (k + 1) % 8) for k in range(7)]),
            a + lax.axis_index("x"),
        )

    specs = (P(), P(), P(), P(), P("x"), P("x"), P("x"), P("x"), P("x"))
    total, mean, top, low, every, part, swapped, moved, placed = both(weft.shard_map(f, LINE, P("x"), specs), x)
    np.testing.assert_allclose(total, x.sum(0, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(mean, x.mean(0, keepdims=True), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(top, x.max(0, keepdims=True))
    np.testing.assert_array_equal(low, x.min(0, keepdims=True))
    np.testing.assert_array_equal(every, np.broadcast_to(x.reshape(1, -1), (8, 128)))
    np.testing.assert_allclose(part, x.sum(0).reshape(8, 2), rtol=1e-5)
    np.testing.assert_array_equal(swapped, np.concatenate([x[:, 2 * k : 2 * k + 2] for k in range(8)]))
    np.testing.assert_array_equal(moved, np.concatenate([x[7:] * 0, x[:7]]))
    np.testing.assert_array_equal(placed, x + np.arange(8)[:, None].astype(np.float32))


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "int64", "uint8", "complex64"])
def test_sums_of_every_kind(dtype):
    x = (rng.uniform(0, 4, (8, 5)) + (1j if dtype == "complex64" else 0)).astype(dtype)
    total = both(weft.shard_map(lambda a: lax.psum(a, ("x", "y")), GRID, P(("x", "y")), P()), x)
    assert total.dtype == dtype
    np.testing.assert_allclose(np.asarray(total), x.sum(0, keepdims=True, dtype=dtype), rtol=2e-3)


def test_closed_over_values_are_the_same_everywhere():
    w, small = arrays(100), np.float32(3)
    f = weft.shard_map(lambda a: a * w + small, LINE, P("x"), P("x"))
    x = arrays(8, 100)
    np.testing.assert_allclose(both(f, x), x * w + small, rtol=1e-5, atol=1e-6)


def test_trees_and_a_mesh_around():
    f = weft.shard_map(
        lambda tree, n: {"sum": lax.psum(tree["a"].sum() + tree["b"][0].sum(), "x"), "same": n},
        in_specs=({"a": P("x"), "b": P("x")}, P()),
        out_specs=P(),
    )
    with GRID:
        out = f({"a": arrays(8), "b": (np.ones(4, np.float32),)}, 7)
    assert int(out["same"]) == 7
    with pytest.raises(ValueError, match="no mesh is given"):
        f({"a": arrays(8), "b": (np.ones(4, np.float32),)}, 7)


def test_loops_and_branches():
    x = np.arange(8, dtype=np.float32)

    def f(a):
        shifted = lax.fori_loop(0, 3, lambda _, v: lax.ppermute(v, "x", [(k, (k + 1) % 8) for k in range(8)]), a)
        grown = lax.while_loop(lambda v: lax.psum(v, "x")[0] < 1000, lambda v: 2 * v, a)
        own = lax.while_loop(lambda v: v[0] < 100, lambda v: 3 * v + 1, a)
        w = wnp.ones(1)
        chosen = lax.cond(lax.axis_index("x") > 3, lambda v: v + w, lambda v: -v, a)
        total, parts = lax.scan(lambda c, k: (c + lax.psum(a * k, "x")[0], c), 0.0, wnp.arange(3.0))
        return shifted, grown, own, chosen, parts[None], total

    out = both(weft.shard_map(f, LINE, P("x"), (P("x"),) * 4 + (P(), P())), x)
    np.testing.assert_array_equal(out[0], np.roll(x, 3))
    np.testing.assert_array_equal(out[1], x * 64)
    own = x.copy()
    while (own < 100).any():
        own = np.where(own < 100, 3 * own + 1, own)
    np.testing.assert_array_equal(out[2], own)
    np.testing.assert_array_equal(out[3], np.where(np.arange(8) > 3, x + 1, -x))
    np.testing.assert_array_equal(out[4], [[0, 0, 28]])
    assert float(out[5]) == 84


def test_what_a_result_may_not_hide():
    x = arrays(8)
    f = lambda a: {"good": lax.psum(a, "x"), "bad": 2 * a}
    with pytest.raises(
        ValueError, match=r"result\['bad'\] of '<lambda>' may differ between.* along 'x'.*'mul' at .*parallel_test"
    ):
        weft.shard_map(f, LINE, P("x"), P())(x)
    first = weft.shard_map(f, LINE, P("x"), P(), check_vma=False)(x)
    np.testing.assert_allclose(first["bad"], 2 * x[:1], rtol=1e-6)
    assert weft.shard_map(lambda a: a > 0, LINE, P("x"), P(), check_rep=False)(x).dtype == bool


def test_shard_map_errors():
    x = arrays(8, 4)
    with pytest.raises(ValueError, match=r"argument a of 'f'.*size 4, which 8 devices cannot share evenly"):

        def f(a):
            return a

        weft.shard_map(f, LINE, P(None, "x"), P("x"))(x)
    with pytest.raises(ValueError, match="names 'z'"):
        weft.shard_map(f, LINE, P("z"), P())(x)
    with pytest.raises(ValueError, match="3 entries for an array of shape"):
        weft.shard_map(f, LINE, P("x", None, None), P())(x)
    with pytest.raises(ValueError, match="no prefix"):
        weft.shard_map(f, LINE, (P(), P()), P())(x)
    with pytest.raises(NameError, match="nothing binds the axis 'y' here; bound are 'x'"):
        weft.shard_map(lambda a: lax.psum(a, "y"), LINE, P("x"), P("x"))(x)
    with pytest.raises(TypeError, match="devices along 'x' may choose differently"):
        weft.shard_map(
            lambda a: lax.cond(a[0, 0] > 0, lambda v: lax.psum(v, "x"), lambda v: v, a), LINE, P("x"), P("x")
        )(x)


def test_a_failing_device_ends_all():
    def check(a):
        if a[0] > 5:
            raise RuntimeError("device 6 says no")
        return a

    def f(a):
        return lax.psum(weft.pure_callback(check, weft.ShapeDtype((1,), "float32"), a), "x")

    x = np.arange(8, dtype=np.float32)
    for run in (weft.shard_map(f, LINE, P("x"), P()), weft.jit(weft.shard_map(f, LINE, P("x"), P()))):
        with pytest.raises(RuntimeError, match="device 6 says no"):
            run(x)


# --- Transforms -------------------------------------------------------------------------------------------------------


def mlp(w, x):
    return wnp.tanh(x @ w[0]) @ w[1]


def test_gradient_of_shard_map_and_shard_map_of_gradient():
    w, x, t = (arrays(4, 6), arrays(6, 3)), arrays(16, 4), arrays(16, 3)
    whole = lambda w, x, t: ((mlp(w, x) - t) ** 2).sum()
    cut = weft.shard_map(lambda w, x, t: lax.psum(whole(w, x, t), "x"), LINE, (P(), P("x"), P("x")), P())
    np.testing.assert_allclose(both(cut, w, x, t), whole(w, x, t), rtol=1e-5)
    expected = weft.grad(whole, argnums=(0, 1))(w, x, t)
    outside = weft.jit(weft.grad(cut, argnums=(0, 1)))(w, x, t)
    # Inside, the weights are the same on all devices, so that their gradient is summed over them.
    inside = weft.jit(weft.shard_map(weft.grad(whole, argnums=(0, 1)), LINE, (P(), P("x"), P("x")), (P(), P("x"))))(
        w, x, t
    )
    for got in (outside, inside):
        for a, b in zip(weft.tree.leaves(got), weft.tree.leaves(expected)):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_second_order():
    x = arrays(8)
    f = lambda x: weft.shard_map(lambda a: lax.psum(wnp.sin(a) ** 3, "x").sum(), LINE, P("x"), P())(x)
    expected = weft.hessian(lambda x: (wnp.sin(x) ** 3).sum())(x)
    np.testing.assert_allclose(weft.hessian(f)(x), expected, rtol=1e-4, atol=1e-5)


def test_vmap_outside_and_inside():
    w, x = arrays(4, 3), arrays(5, 16, 4)
    f = weft.shard_map(lambda w, a: lax.psum((a @ w).sum(), "x"), LINE, (P(), P("x")), P())
    got = both(weft.vmap(f, in_axes=(None, 0)), w, x)
    np.testing.assert_allclose(got, (x @ w).sum((1, 2)), rtol=1e-4)
    g = weft.shard_map(weft.vmap(lambda a: a - lax.pmean(a, "x")), LINE, P("x"), P("x"))
    y = arrays(16, 3)
    mean = y.reshape(8, 2, 3).mean(0)
    np.testing.assert_allclose(both(g, y), (y.reshape(8, 2, 3) - mean).reshape(16, 3), rtol=1e-4, atol=1e-5)


def test_gradients_of_lanes_inside():
    """vmap(grad(psum)) inside shard_map: types go through vmap, so that nothing is summed twice."""
    x = arrays(16)
    f = lambda a: weft.vmap(weft.grad(lambda v: lax.psum(v**2, "x")))(a)
    np.testing.assert_allclose(both(weft.shard_map(f, LINE, P("x"), P("x")), x), 2 * x, rtol=1e-5)


def test_ir_is_one_equation():
    f = weft.shard_map(lambda a: lax.psum(a, "x"), GRID, P("x"), P())
    ir = weft.make_ir(f)(arrays(4))
    assert [e["name"] for e in ir.eqns] == ["spmd"]
    assert "mesh=mesh(x=4,y=2)" in ir.text and weft.parse_ir(ir.text) == ir
    assert weft.make_ir(f)(weft.ShapeDtype((4,), "float32")).out_types == ["f32[1]"]


# --- Devices that choose differently, and rules of the user's ---------------------------------------------------------


@weft.custom_vjp
def damped(t, w):
    return wnp.sin(t) * w


damped.defvjp(
    lambda t, w: (wnp.sin(t) * w, (t, w)),
    lambda kept, ct: (wnp.cos(kept[0]) * kept[1] * ct, wnp.sin(kept[0]) * ct),
)


@weft.custom_jvp
def rounded(t):
    return wnp.floor(3 * t)


@rounded.defjvp
def _(primals, tangents):
    return rounded(primals[0]), wnp.zeros(2, tangents[0].dtype)


TABLE = wnp.asarray(np.linspace(0.5, 1.5, 6, dtype=np.float32).reshape(3, 2))
tabled = weft.jit(lambda t: lax.scan(lambda c, row: (wnp.sin(c * row), None), t, TABLE)[0])


def sine_at(table):
    return wnp.sin(lax.iota("float32", 3) + table)


# Of the block t of a device, the weights w that all share, and the device's place.
CHOICES = {
    "closure": lambda t, w, i: lax.cond(t.sum() > 0, lambda t: t * t * w, lambda t: wnp.sin(t) * w, t),
    "zeros": lambda t, w, i: lax.cond(t.sum() > 0, lambda: t * t * w, lambda: wnp.zeros_like(t)),
    "shared": lambda t, w, i: lax.cond(t.sum() > 0, lambda: t * t, lambda: w),
    "switch": lambda t, w, i: lax.switch(i % 3, [lambda t: t * w, lambda t: wnp.sin(t * w), lambda t: t**3], t),
    "numbers": lambda t, w, i: lax.cond(
        t.sum() > 0, lambda t: wnp.sin(t) * wnp.cos(lax.iota("float32", 2)), lambda t: t * (i + 1), t
    ),
    "scan": lambda t, w, i: lax.cond(
        t.sum() > 0, lambda t: lax.scan(lambda c, k: (wnp.sin(c * k) * w, None), t, sine_at(1))[0], lambda t: t * t, t
    ),
    "steps": lambda t, w, i: lax.cond(
        t.sum() > 0, lambda t: lax.fori_loop(0, i, lambda k, c: wnp.sin(c + k) * w, t), lambda t: t * t, t
    ),
    "jitted": lambda t, w, i: lax.cond(t.sum() > 0, lambda t: tabled(t) * w, lambda t: w * t, t) + tabled(t),
    "remat": lambda t, w, i: lax.cond(
        t.sum() > 0, weft.checkpoint(lambda t: wnp.sin(wnp.sin(t) * w)), lambda t: w * w * t, t
    ),
    "while": lambda t, w, i: lax.while_loop(
        lambda c: c[0] <= i, lambda c: (c[0] + 1, wnp.sin(c[1] * w) * sine_at(1)[:2]), (0, t)
    )[1],
    "recount": lambda t, w, i: weft.while_loop(
        lambda c: wnp.abs(c).sum() < 9, lambda c: c * c + 1 + wnp.abs(w), t, strategy="recount"
    ),
    "both": lambda t, w, i: lax.while_loop(
        lambda c: c[0] <= i,
        lambda c: (c[0] + 1, lax.cond(c[0] % 2 == 0, lambda t: wnp.sin(t * w), lambda t: t * t, c[1])),
        (0, t),
    )[1],
    "custom_vjp": lambda t, w, i: damped(t, w) + damped(w, t) + damped(w, w) * t,
    "custom_vjp of a number": lambda t, w, i: damped(t, wnp.ones(2)) * w,
    "custom_vjp in a branch": lambda t, w, i: lax.cond(
        t.sum() > 0, lambda t: damped(t, w), lambda t: damped(wnp.ones(2), t) * w, t
    ),
    "custom_vjp in a loop": lambda t, w, i: lax.while_loop(
        lambda c: c[0] <= i, lambda c: (c[0] + 1, damped(c[1], w)), (0, t)
    )[1],
    "custom_jvp": lambda t, w, i: rounded(t) * w + t,
}
FACTORS = np.arange(1.0, 17.0, dtype=np.float32).reshape(8, 2)


@pytest.mark.parametrize("name", CHOICES)
def test_derivatives_where_devices_go_their_own_ways(name):
    f = CHOICES[name]
    rng = np.random.default_rng(0)
    x, w = (rng.uniform(-2, 2, s).astype(np.float32) for s in ((3, 8, 2), (3, 2)))

    def on_device(t, w):
        return wnp.sin(f(t[0], w, lax.axis_index("x")))[None]

    cut = weft.shard_map(on_device, LINE, (P("x"), P()), P("x"))
    lanes = weft.pmap(lambda t, w: on_device(t[None], w)[0], axis_name="x", in_axes=(0, None))
    whole = lambda x, w: wnp.stack([wnp.sin(f(x[i], w, wnp.int32(i))) for i in range(8)])
    loss = lambda g: lambda x, w: (g(x, w) * FACTORS).sum()
    gradient = lambda g: weft.grad(loss(g), (0, 1))

    def device_gradient(t, w):
        mine = wnp.asarray(FACTORS)[lax.axis_index("x")]
        return weft.grad(lambda t, w: (on_device(t, w) * mine).sum(), (0, 1))(t, w)

    inside = weft.shard_map(device_gradient, LINE, (P("x"), P()), (P("x"), P()))
    expected = [gradient(whole)(a, b) for a, b in zip(x, w)]

    def check(got, wanted, tolerance=1e-4):
        for a, b in zip(weft.tree.leaves(got), weft.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)

    for g in (cut, lanes):
        check(both(g, x[0], w[0]), whole(x[0], w[0]))
        check(both(gradient(g), x[0], w[0]), expected[0])
    check(both(inside, x[0], w[0]), expected[0])
    # Lanes of every device that choose differently, too.
    stacked = [np.stack(parts) for parts in zip(*expected)]
    check(weft.vmap(gradient(cut))(x, w), stacked)
    within = weft.shard_map(weft.vmap(device_gradient), LINE, (P(None, "x"), P()), (P(None, "x"), P()))
    check(within(x, w), stacked)
    twice = lambda g: weft.grad(lambda x, w: sum((a * a).sum() for a in g(x, w)), (0, 1))
    for g in (gradient(cut), inside):
        check(twice(g)(x[0], w[0]), twice(gradient(whole))(x[0], w[0]), 2e-3)


def test_gradients_of_a_choice_against_finite_differences():
    f = weft.shard_map(
        lambda t, w: CHOICES["scan"](t[0], w, 0)[None] + CHOICES["while"](t[0], w, lax.axis_index("x"))[None],
        LINE,
        (P("x"), P()),
        P("x"),
    )
    x, w = rng.uniform(-2, 2, (8, 2)), rng.uniform(0.5, 1, 2)
    loss = weft.jit(lambda x, w: (f(x, w) * FACTORS).sum())
    got = weft.grad(loss, (0, 1))(x, w)
    for k, argument in enumerate((x, w)):
        for place in np.ndindex(argument.shape):
            step = np.zeros_like(argument)
            step[place] = 1e-6
            there, back = [(x + s * step, w) if k == 0 else (x, w + s * step) for s in (1, -1)]
            np.testing.assert_allclose(got[k][place], (loss(*there) - loss(*back)) / 2e-6, rtol=1e-5, atol=1e-5)


def test_rules_that_sum_over_devices_themselves():
    """A backward rule may give the sum over devices itself, as JAX asks it to, or leave it to Weft."""
    x, w = arrays(8, 2), arrays(2)
    for sum_up in (lambda ct: ct, lambda ct: lax.psum(ct, "x")):

        @weft.custom_vjp
        def scaled(t, w):
            return t * w

        scaled.defvjp(lambda t, w: (t * w, (t, w)), lambda kept, ct, s=sum_up: (kept[1] * ct, s((kept[0] * ct).sum(0))))
        f = weft.shard_map(lambda t, w: scaled(t, w), LINE, (P("x"), P()), P("x"))
        got = both(weft.grad(lambda x, w, f=f: (wnp.sin(f(x, w))).sum(), (0, 1)), x, w)
        np.testing.assert_allclose(got[0], np.cos(x * w) * w, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(got[1], (np.cos(x * w) * x).sum(0), rtol=1e-4, atol=1e-5)


def test_a_collective_in_a_branch_that_not_all_devices_take_is_refused():
    for inside in (lambda t: lax.psum(t, "x") * t, lambda t: damped(t, lax.psum(t, "x"))):
        with pytest.raises(TypeError, match="devices along 'x' may choose differently"):
            f = lambda t, inside=inside: lax.cond(t.sum() > 0, inside, lambda t: t, t)
            weft.shard_map(f, LINE, P("x"), P("x"))(arrays(8, 2))


# --- pmap -------------------------------------------------------------------------------------------------------------


def test_pmap():
    x = arrays(8, 3)
    np.testing.assert_allclose(weft.pmap(lambda a: a / lax.psum(a, "i"), axis_name="i")(x), x / x.sum(0), rtol=1e-4)
    out = weft.pmap(lambda a, b: a + b, in_axes=(1, None), out_axes=1)(x.T, 2.0)
    np.testing.assert_allclose(out, x.T + 2, rtol=1e-6)
    assert out.sharding.spec == P(None, "devices") and len(out.devices()) == 8
    one = weft.pmap(lambda a: (lax.psum(a, "i"), a), axis_name="i", out_axes=None)(x)
    np.testing.assert_allclose(one[0], x.sum(0), rtol=1e-5)
    np.testing.assert_array_equal(one[1], x[0])
    scaled = weft.pmap(lambda a, n: a * n, static_broadcasted_argnums=1)(x[:3], 4)
    np.testing.assert_allclose(scaled, x[:3] * 4, rtol=1e-6)
    tree = weft.pmap(lambda t: {"y": t["a"] + t["b"]}, in_axes=({"a": 0, "b": None},))({"a": x, "b": x[0]})
    np.testing.assert_allclose(tree["y"], x + x[0], rtol=1e-6)


def test_results_say_where_they_lie():
    """Of plain arguments, jit of a function for devices gives what JAX gives."""
    x, devices = arrays(8, 4), weft.devices()
    rows = weft.NamedSharding(LINE, P("x"))
    double = weft.shard_map(lambda a: 2 * a, LINE, P("x"), P("x"))
    assert weft.jit(double)(x).sharding == rows
    out = weft.jit(lambda x: (double(x) + 1, x * 2, wnp.ones(3), x))(x)
    assert [r.sharding for r in out] == [rows, rows, weft.NamedSharding(LINE, P()), rows]
    np.testing.assert_array_equal(out[0], 2 * x + 1)
    lanes = weft.Mesh(devices, ("devices",))
    for f in (weft.pmap(lambda a: a * 2), weft.jit(weft.pmap(lambda a: a * 2))):
        assert f(x).sharding == weft.NamedSharding(lanes, P("devices"))
    total = weft.jit(weft.pmap(lambda a: lax.psum(a, "i"), axis_name="i", out_axes=None, devices=devices[:4][::-1]))
    assert total(x[:4]).sharding == weft.NamedSharding(weft.Mesh(devices[:4][::-1], "i"), P())
    # On one device, and where functions are for several meshes.
    alone = weft.make_mesh((1,), ("x",), devices=devices[5:])
    one = weft.jit(weft.shard_map(lambda a: a + 1, alone, P("x"), P("x")))(x)
    assert one.sharding == weft.NamedSharding(alone, P("x")) and one.devices() == {devices[5]}
    two = weft.jit(lambda x: (double(x), weft.shard_map(lambda a: 3 * a, GRID, P("y"), P("y"))(x)))(x)
    assert [r.sharding for r in two] == [rows, weft.NamedSharding(GRID, P("y"))]
    np.testing.assert_array_equal(two[1], 3 * x)


def test_functions_for_devices_where_nothing_else_is_cut():
    """What reverse mode records of a loop is no program of one device; the function in it still is."""
    total = weft.shard_map(lambda a: lax.psum(a.sum() ** 2, "x"), LINE, P("x"), P())
    f = lambda v: weft.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * total(c[1]) / 9), (0, v))[1].sum()
    x = wnp.linspace(0.5, 1.5, 8)
    np.testing.assert_allclose(weft.jit(weft.grad(f))(x), weft.grad(f)(x), rtol=1e-5)


def test_meshes_of_other_devices_are_told_apart():
    x, devices = arrays(4), weft.devices()
    meshes = [weft.make_mesh((2,), ("x",), devices=d) for d in (devices[:2], devices[4:6], devices[5:3:-1])]
    texts = set()
    for mesh in meshes:
        there, ids = weft.NamedSharding(mesh, P("x")), [d.id for d in mesh.devices]
        f = weft.shard_map(lambda a: a * (1 + lax.axis_index("x")), mesh, P("x"), P("x"))
        for g, v in (
            (f, x),
            (weft.jit(f), x),
            (weft.jit(lambda v, f=f: weft.jit(f)(v)), x),
            (weft.jit(weft.vmap(f, 1, 1)), x[:, None]),
        ):
            y = g(v)
            assert y.sharding == there and [s.device.id for s in y.addressable_shards] == ids
            np.testing.assert_array_equal(np.ravel(y), x * [1, 1, 2, 2])
        # Derivatives are for the same devices.
        g = weft.jit(weft.grad(lambda v, f=f: lax.sin(f(v)).sum()))(x)
        assert g.devices() == set(mesh.devices.flat)
        texts.add(weft.jit(f).lower(x).as_text())
        assert weft.parse_ir(weft.make_ir(f)(x).text) == weft.make_ir(f)(x)
    assert len(texts) == 3


def test_what_pmap_takes_by_keyword():
    x, y, w = arrays(8, 3), arrays(8, 3), arrays(3)
    f = lambda a, b, *, scale, tree: a * b + scale * tree["t"]
    found = weft.pmap(f, in_axes=(0, None))(x, w, scale=y, tree={"t": x})
    np.testing.assert_allclose(found, x * w + y * x, rtol=1e-5, atol=1e-6)
    with_static = weft.pmap(lambda a, n, scale: a * n * scale, static_broadcasted_argnums=1, backend="cpu")
    np.testing.assert_allclose(with_static(x, 3, scale=y), 3 * x * y, rtol=1e-5)
    with pytest.raises(ValueError, match=r"mapped sizes of '.*' differ: 8 .* and 4 \(axis 0 of argument scale\)"):
        with_static(x, 3, scale=y[:4])


@pytest.mark.filterwarnings("ignore:.*brings nothing")
def test_pmap_takes_memory_that_is_given_away():
    given, kept = wnp.arange(8000.0).reshape(8, 1000), wnp.ones((8, 1000))
    out = weft.pmap(lambda a, b: a + b, donate_argnums=0)(given, kept)
    np.testing.assert_array_equal(out, np.arange(8000.0).reshape(8, 1000) + 1)
    assert given.is_deleted() and not kept.is_deleted()


def test_pmap_under_transforms():
    x, w = arrays(8, 3), arrays(3)
    f = lambda w, x: weft.pmap(lambda a: wnp.tanh(a @ w) - lax.pmean(a @ w, "i"), axis_name="i")(x).sum()
    plain = lambda w, x: (wnp.tanh(x @ w) - (x @ w).mean()).sum()
    np.testing.assert_allclose(weft.grad(f)(w, x), weft.grad(plain)(w, x), rtol=1e-4, atol=1e-5)
    lanes = weft.vmap(weft.pmap(lambda a: lax.psum(a, "i"), axis_name="i"))(arrays(5, 8, 3) * 0 + x)
    np.testing.assert_allclose(lanes, np.broadcast_to(x.sum(0), (5, 8, 3)), rtol=1e-5)


# Reverse mode inside pmap: (function of (module, lax, np) for the arguments W (in_axes=None), X and Y, its axes).
def summed(w, x):
    return ((x * w).sum() - 1.0) ** 2


STEPS = {
    "a step": lambda m, lax, np: lambda w, x, y: lax.pmean(m.grad(summed)(w, x), "i"),
    "value and gradient": lambda m, lax, np: lambda w, x, y: lax.pmean(m.value_and_grad(summed)(w, x), "i"),
    "of the mean": lambda m, lax, np: lambda w, x, y: m.grad(lambda w: lax.pmean(summed(w, x), "i"))(w),
    "of a sum's square": lambda m, lax, np: lambda w, x, y: m.grad(lambda x: (lax.psum(x, "i") ** 2).sum())(x),
    "with aux": lambda m, lax, np: lambda w, x, y: m.grad(lambda w: (summed(w, x), lax.psum(w, "i")), has_aux=True)(w),
    "of what is captured": lambda m, lax, np: lambda w, x, y: m.grad(lambda s: summed(w * s, x))(2.0),
    "of what is made inside": lambda m, lax, np: lambda w, x, y: m.grad(summed)(np.arange(2.0) + 1, x),
    "vjp": lambda m, lax, np: lambda w, x, y: m.vjp(lambda w: np.sin(w * x), w)[1](y),
    "vjp of a sum": lambda m, lax, np: lambda w, x, y: m.vjp(lambda w: lax.psum(np.sin(w * x), "i"), w)[1](w),
    "jacrev": lambda m, lax, np: lambda w, x, y: m.jacrev(lambda w: lax.pmean(np.sin(w * x), "i") * y)(w),
    "hessian": lambda m, lax, np: lambda w, x, y: m.hessian(lambda w: np.sin(lax.pmean(w * x, "i")).sum())(w),
    "grad of grad": lambda m, lax, np: (
        lambda w, x, y: m.grad(lambda w: m.grad(lambda x: lax.psum((np.sin(x) * w) ** 2, "i").sum())(x).sum())(w)
    ),
    "linearize": lambda m, lax, np: lambda w, x, y: m.linearize(lambda w: lax.psum(np.sin(w * x), "i"), w)[1](y),
    "transpose": lambda m, lax, np: lambda w, x, y: m.linear_transpose(lambda v: lax.psum(v * x, "i"), w)(y),
    "all_gather": lambda m, lax, np: lambda w, x, y: m.grad(lambda w: (lax.all_gather(w * x, "i") ** 2).sum())(w),
    "jit inside": lambda m, lax, np: lambda w, x, y: lax.pmean(m.jit(m.grad(summed))(w, x), "i"),
    "vmap inside": lambda m, lax, np: (
        lambda w, x, y: m.vmap(lambda a: m.grad(lambda w: lax.pmean(summed(w, a * x), "i"))(w))(np.stack([x, y]))
    ),
    "checkpoint": lambda m, lax, np: (
        lambda w, x, y: m.grad(m.checkpoint(lambda w: lax.pmean(np.sin(w * x), "i").sum()))(w)
    ),
    "custom_jvp": lambda m, lax, np: (
        lambda w, x, y: m.grad(
            lambda w: lax.psum(m.nn.softplus(w * x) if hasattr(m, "nn") else np.logaddexp(w * x, 0.0), "i").sum()
        )(w)
    ),
    "scan of steps": lambda m, lax, np: (
        lambda w, x, y: lax.scan(
            lambda w, x: (w - 0.01 * lax.pmean(m.grad(summed)(w, x), "i"), summed(w, x)), w, np.stack([x, y])
        )
    ),
    "steps until it is small": lambda m, lax, np: (
        lambda w, x, y: lax.while_loop(
            lambda c: (c[0] > 1e-3) & (c[2] < 5),
            lambda c: (lambda value, slope: (value, c[1] - 0.001 * lax.psum(slope, "i"), c[2] + 1))(
                *m.value_and_grad(lambda w: lax.pmean(summed(w, x), "i"))(c[1])
            ),
            (np.float32(1.0), w, 0),
        )
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_reverse_mode_inside_of_pmap(name):
    """Each device has its own gradient, as each lane of vmap has: pmap and vmap of JAX, vmap of Weft."""
    jax = pytest.importorskip("jax")
    w, x, y = np.array([1.0, 2.0], np.float32), arrays(8, 2) / 2, arrays(8, 2)
    program, axes = STEPS[name], (None, 0, 0)
    theirs = jax.vmap(program(jax, jax.lax, jax.numpy), in_axes=axes, axis_name="i")(w, x, y)
    ours = program(weft, lax, wnp)
    mapped = weft.pmap(ours, "i", in_axes=axes)
    found = [mapped(w, x, y), weft.vmap(ours, in_axes=axes, axis_name="i")(w, x, y)]
    if len(jax.devices()) >= 8:
        found.append(jax.pmap(program(jax, jax.lax, jax.numpy), "i", in_axes=axes)(w, x, y))
    lanes = weft.vmap(mapped, in_axes=(0, None, None))(np.stack([w, 2 * w]), x, y) if "until" not in name else None
    for result in found:
        for a, b in zip(weft.tree.leaves(result), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)
    if lanes is not None:
        for a, b in zip(weft.tree.leaves(lanes), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_allclose(a[0], b, rtol=2e-4, atol=1e-5)


def test_pmap_errors():
    for call, words in [
        (lambda: weft.pmap(lambda a: a)(arrays(9)), "9 devices are needed, but there are 8"),
        (lambda: weft.pmap(lambda a, b: a)(arrays(8), arrays(4)), "mapped sizes of '<lambda>' differ: 8"),
        (lambda: weft.pmap(lambda a: a, in_axes=None)(arrays(8)), "no argument of '<lambda>' is mapped"),
        (lambda: weft.pmap(lambda a: a, in_axes=3)(arrays(8)), "maps axis 3 of argument a"),
        (lambda: weft.pmap(lambda a: a, out_axes=4)(arrays(8)), "out_axes has 4"),
        (lambda: weft.pmap(lambda a: a, backend="tpu"), "pmap: there is no backend 'tpu'"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()
    inner = weft.pmap(lambda a: a, "j")
    with pytest.raises(NotImplementedError, match="'<lambda>' is mapped inside of another pmap, over 'i'"):
        weft.pmap(inner, "i")(arrays(2, 2))
    with pytest.raises(TypeError, match=r"pjit: got in_shardings=.*; weft.pjit takes in_specs"):
        weft.pjit(lambda a: a, LINE, in_shardings=P("x"))


# --- JAX --------------------------------------------------------------------------------------------------------------

# (function of (lax, np), specs in, spec out) on a mesh x=4, y=2; arguments [8, 8] and [8].
PROGRAMS = [
    (lambda lax, np: lambda a, b: lax.psum(a * b, "x"), ("x", None), (), (None,)),
    (lambda lax, np: lambda a, b: np.sin(a) + lax.pmean(b, "y"), ("x", "y"), ("y",), ("x", "y")),
    (
        lambda lax, np: lambda a, b: lax.pmean(lax.all_gather(a, "y", axis=1, tiled=True) @ b, "y"),
        ("x", "y"),
        (),
        ("x",),
    ),
    (
        lambda lax, np: lambda a, b: lax.psum_scatter(np.tanh(a @ np.ones((8, 8))), "x", tiled=True),
        (None, None),
        (),
        ("x",),
    ),
    (lambda lax, np: lambda a, b: lax.all_to_all(a, "y", 1, 0, tiled=True), ("x", None), (), (("x", "y"), None)),
    (lambda lax, np: lambda a, b: lax.ppermute(a * b[0], "x", [(0, 1), (1, 2), (2, 3), (3, 0)]), ("x",), (), ("x",)),
    (lambda lax, np: lambda a, b: a * lax.axis_index("x") + lax.axis_index("y"), ("x", "y"), (), ("x", "y")),
    (
        lambda lax, np: lambda a, b: lax.fori_loop(0, 3, lambda _, v: np.sin(v) + lax.psum(v, "y") / 2, a),
        ("x", "y"),
        (),
        ("x", "y"),
    ),
]


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_beside_jax(number):
    jax = pytest.importorskip("jax")
    if len(jax.devices()) < 8:
        pytest.skip("JAX was loaded with fewer devices")
    program, a_spec, b_spec, out_spec = PROGRAMS[number]
    a, b = arrays(8, 8), arrays(8)
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("x", "y"))
    JP = jax.sharding.PartitionSpec
    theirs = jax.shard_map(
        program(jax.lax, jax.numpy), mesh=mesh, in_specs=(JP(*a_spec), JP(*b_spec)), out_specs=JP(*out_spec)
    )
    ours = weft.shard_map(program(lax, wnp), GRID, (P(*a_spec), P(*b_spec)), P(*out_spec))
    np.testing.assert_allclose(both(ours, a, b), theirs(a, b), rtol=1e-4, atol=1e-5)
    loss = lambda f, sin: lambda a, b: sin(f(a, b)).sum()
    expected = jax.jit(jax.grad(loss(theirs, jax.numpy.sin), argnums=(0, 1)))(a, b)
    for f in (weft.grad(loss(ours, wnp.sin), argnums=(0, 1)), weft.jit(weft.grad(loss(ours, wnp.sin), argnums=(0, 1)))):
        for x, y in zip(f(a, b), expected):
            np.testing.assert_allclose(x, y, rtol=2e-3, atol=2e-4)


def custom_rules_that_reduce(library, x, w):
    """Derivatives in pmap through a custom_vjp function that reduces over the devices, as its rules do."""
    psum, leaves = library.lax.psum, library.tree.leaves

    @library.custom_vjp
    def f(a, w):
        return psum(a * w, "i"), a * w * w

    def backward(residuals, ct):
        a, w = residuals
        total = psum(ct[0], "i")
        return w * total + ct[1] * w * w, a * total + 2 * a * w * ct[1]

    f.defvjp(lambda a, w: (f(a, w), (a, w)), backward)

    def loss(a, w):
        total, own = f(a, w)
        return total * a * a + own * w

    def step(w, a):
        return w - 0.01 * library.lax.pmean(library.grad(lambda w: loss(a, w))(w), "i")

    shared = {"axis_name": "i", "in_axes": (0, None)}
    each = [
        library.pmap(library.grad(loss, (0, 1)), **shared)(x, w),
        library.vmap(library.grad(loss, (0, 1)), **shared)(x, w),
        library.pmap(step, axis_name="i", in_axes=(None, 0), out_axes=None)(w, x),
        library.pmap(lambda a: library.vjp(f, a, a)[1]((a, a)), axis_name="i")(x),
        library.pmap(library.grad(lambda a: f(a, a)[0] * 1.0), axis_name="i")(x),
    ]
    return [np.asarray(leaf) for leaf in leaves(each)]


def test_custom_rules_that_reduce_in_pmap():
    x, w = np.arange(1, 9, dtype=np.float32), np.float32(3)
    got = custom_rules_that_reduce(weft, x, w)
    # The sum of x w over the devices times x^2, and x w^3: each device's own cotangents, summed by the rule.
    np.testing.assert_allclose(got[0], w * (x**2).sum() + 2 * x * (x * w).sum() + w**3, rtol=1e-5)
    np.testing.assert_allclose(got[2:4], got[:2], rtol=1e-5)  # as in a lane of vmap
    jax = pytest.importorskip("jax")
    for a, b in zip(got, custom_rules_that_reduce(jax, x, w), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.parametrize("effect", [False, True])
def test_functions_without_results(effect, capfd):
    # Nothing is left of a program that gives nothing and does nothing.
    mesh = weft.make_mesh((weft.device_count(),), ("i",))

    def f(x):
        if effect:
            weft.debug.print("sum {}", x.sum())

    mapped = weft.shard_map(f, mesh=mesh, in_specs=P(), out_specs=None)
    for call in (mapped, weft.jit(mapped)):
        assert call(wnp.arange(6.0)) is None
    weft.effects_barrier()
    assert capfd.readouterr().out.count("sum 15") == 2 * effect * weft.device_count()
