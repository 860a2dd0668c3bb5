"""The mesh around the code: specs without a mesh, types of axes, functions that run over some axes of a mesh, groups of
places along an axis; beside JAX on as many devices."""

import os

os.environ["WEFT_NUM_CPU_DEVICES"] = "8"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import pickle
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import AbstractMesh, AxisType, P, lax

X = np.arange(32.0, dtype="float32").reshape(8, 4)
MESH = weft.make_mesh((4, 2), ("x", "y"))


@pytest.fixture(scope="module")
def theirs():
    return jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)


def both(build, x, theirs):
    """A function of the libraries (module, numpy, lax, P), run on both inside of a mesh."""
    with weft.set_mesh(MESH):
        mine = build(weft, wnp, weft.lax, weft.P)(x)
    with jax.set_mesh(theirs):
        wanted = jax.jit(build(jax, jnp, jax.lax, jax.sharding.PartitionSpec))(x)
    assert jax.tree.structure(wanted).num_leaves == len(weft.tree.leaves(mine))
    for a, b in zip(weft.tree.leaves(mine), jax.tree.leaves(wanted), strict=True):
        assert a.dtype == b.dtype and np.array_equal(np.asarray(a), np.asarray(b))
    return mine


# --- The mesh around the code -----------------------------------------------------------------------------------------


def test_set_mesh():
    assert weft.get_mesh().empty and weft.get_abstract_mesh() == AbstractMesh((), ())
    with weft.set_mesh(MESH) as entered:
        assert entered is MESH and weft.get_mesh() is MESH
        assert weft.get_abstract_mesh() == AbstractMesh((4, 2), ("x", "y")) == MESH.abstract_mesh
        other = weft.make_mesh((8,), ("z",))
        with weft.set_mesh(other):
            assert weft.get_mesh() is other
            weft.set_mesh(MESH)  # from here on
            assert weft.get_mesh() is MESH
        assert weft.get_mesh() is MESH
        with weft.set_mesh(None):
            assert weft.get_mesh().empty
        seen = []
        thread = threading.Thread(target=lambda: seen.append(weft.get_mesh().empty))
        thread.start()
        thread.join()
        assert seen == [True]
    with MESH, other:
        weft.set_mesh(None)
        assert weft.get_mesh().empty
    assert weft.get_mesh().empty
    with pytest.raises(RuntimeError, match="must end in the thread in which it began"):
        MESH.__exit__(None, None, None)
    weft.set_mesh(MESH)
    assert weft.get_mesh() is MESH
    weft.set_mesh(None)
    with pytest.raises(TypeError, match=r"set_mesh: expected a weft.Mesh, got 3"):
        weft.set_mesh(3)
    with pytest.raises(TypeError, match=r"set_mesh: expected a weft.Mesh"):
        weft.set_mesh(AbstractMesh((4,), ("x",)))


def test_specs_without_a_mesh():
    x = wnp.asarray(X)
    with pytest.raises(ValueError, match=r"device_put: PartitionSpec\('x'\): no mesh is given.*set_mesh"):
        weft.device_put(x, P("x"))
    with pytest.raises(ValueError, match="zeros: out_sharding: no mesh is given"):
        wnp.zeros(8, out_sharding=P("x"))
    with weft.set_mesh(MESH):
        placed = weft.device_put({"a": x, "b": x}, {"a": P("x"), "b": P(None, "y")})
        assert placed["a"].sharding == weft.NamedSharding(MESH, P("x"))
        assert placed["b"].sharding.spec == P(None, "y")
        moved = weft.reshard(placed["a"], P("y", "x"))
        assert moved.sharding.spec == P("y", "x") and np.array_equal(moved, X)
        assert weft.jit(lambda x: weft.reshard(x * 2, P(None, "x")))(x).sharding.spec == P(None, "x")
        assert weft.with_sharding_constraint(x, P("x")).sharding.spec == P("x")
        for make in (
            lambda s: wnp.zeros((8, 4), out_sharding=s),
            lambda s: wnp.ones((8, 4), out_sharding=s),
            lambda s: wnp.full((8, 4), 3, out_sharding=s),
            lambda s: wnp.full_like(X, 3, out_sharding=s),
            lambda s: wnp.zeros_like(X, out_sharding=s),
            lambda s: wnp.asarray(X, out_sharding=s),
            lambda s: wnp.array(X, out_sharding=s),
            lambda s: wnp.reshape(wnp.arange(32), (8, 4), out_sharding=s),
        ):
            for run in (lambda f: f, weft.jit):
                out = run(lambda m=make: m(P("x", "y")))()
                assert out.sharding.spec == P("x", "y"), make
                assert np.array_equal(out, make(None))
        assert wnp.arange(8, out_sharding=P("x")).sharding.spec == P("x")
        assert wnp.zeros(8, device=weft.NamedSharding(MESH, P("y"))).sharding.spec == P("y")


def test_constants_that_are_cut():
    """A program that only gives constants gives them block by block, too."""
    array, sharding = wnp.asarray(X), weft.NamedSharding(MESH, P("x", "y"))
    for build in (
        lambda: array,
        lambda: wnp.asarray(X),
        lambda: wnp.arange(32.0).reshape(8, 4),
        lambda: wnp.asarray(X) * 1 + 0,
    ):
        for spec in (P("x", "y"), P("y", "x"), P(None, "x"), P("x"), P(None, ("x", "y")[:1])):
            sharding = weft.NamedSharding(MESH, spec)
            out = weft.jit(lambda f=build, s=sharding: weft.with_sharding_constraint(f(), s))()
            assert out.sharding.spec == spec and np.array_equal(out, X)
            out = weft.jit(build, out_shardings=sharding)()
            assert out.sharding.spec == spec and np.array_equal(out, X)
    whole = weft.shard_map(lambda x: x, MESH, P("x", "y"), P("x", "y"))
    assert np.array_equal(weft.jit(lambda: whole(array))(), X)


# --- Meshes and specs -------------------------------------------------------------------------------------------------


def test_types_of_axes():
    assert MESH.axis_types == (AxisType.Auto, AxisType.Auto) and MESH.auto_axes == ("x", "y")
    mixed = weft.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    assert mixed.explicit_axes == ("x",) and mixed.auto_axes == ("y",) and not mixed.manual_axes
    assert repr(mixed) == "Mesh('x': 4, 'y': 2, axis_types=(Explicit, Auto))" and repr(MESH) == "Mesh('x': 4, 'y': 2)"
    assert mixed != MESH and mixed.same_place(MESH)
    # Arrays lie alike on both: nothing moves.
    on_mixed, on_mesh = weft.NamedSharding(mixed, P("x")), weft.NamedSharding(MESH, P("x"))
    assert on_mixed != on_mesh and on_mixed.is_equivalent_to(on_mesh, 2)
    both_of_them = weft.jit(lambda a, b: a + b)(weft.device_put(X, on_mixed), weft.device_put(X, on_mesh))
    assert both_of_them.sharding.spec == P("x") and np.array_equal(both_of_them, 2 * X)
    assert mixed.axis_sizes == (4, 2) and mixed.shape_tuple == (("x", 4), ("y", 2)) and not mixed.empty
    assert mixed.device_ids.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]] and not mixed.is_multi_process
    with pytest.raises(TypeError, match=r"axis_types are weft\.AxisType, got"):
        weft.make_mesh((4,), ("x",), axis_types=("Auto",))
    with pytest.raises(ValueError, match=r"2 axis_types .* for the axes"):
        weft.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,) * 2)
    # What a program gives lies on the mesh that was meant.
    for mesh in (mixed, MESH):
        with weft.set_mesh(mesh):
            assert weft.jit(lambda x: x + 1)(weft.device_put(X, P("x"))).sharding.mesh == mesh


def test_meshes_without_devices():
    mesh = AbstractMesh((4, 2), ("x", "y"), (AxisType.Explicit, AxisType.Auto))
    assert mesh.shape == {"x": 4, "y": 2} and mesh.size == 8 and mesh.abstract_mesh is mesh
    assert mesh.update(axis_types=(AxisType.Auto,) * 2) == AbstractMesh((4, 2), ("x", "y"))
    assert len({mesh, AbstractMesh((4, 2), ("x", "y"), mesh.axis_types), mesh.update(axis_sizes=(2, 2))}) == 2
    with pytest.raises(ValueError, match="AbstractMesh: sizes"):
        AbstractMesh((4,), ("x", "y"))
    f = weft.shard_map(lambda x: lax.psum(x, "x"), MESH.abstract_mesh, P("x"), P())
    with pytest.raises(ValueError, match="has no devices, and the mesh around the call has not its axes: None"):
        f(wnp.asarray(X))
    with weft.set_mesh(MESH):
        assert np.array_equal(f(wnp.asarray(X)), X.reshape(4, 2, 4).sum(0))


def test_specs_of_sums():
    spec = P("x", unreduced={"y"})
    assert spec.unreduced == {"y"} and spec.reduced == frozenset() and tuple(spec) == ("x",)
    assert P("x").unreduced == frozenset() and spec != P("x") and P("x") != spec and spec == P("x", unreduced="y")
    assert len({spec, P("x"), P("x", unreduced={"y"}), P("x", reduced={"y"})}) == 3
    assert pickle.loads(pickle.dumps(spec)) == spec and pickle.loads(pickle.dumps(P("x"))) == P("x")
    assert repr(spec) == "PartitionSpec('x', unreduced={'y'})"
    assert spec.update(unreduced=()) == P("x") and P(None, "x").update(reduced={"y"}).reduced == {"y"}
    for build in (lambda: P("x", unreduced={"x"}), lambda: P(unreduced={"x"}, reduced={"x"})):
        with pytest.raises(ValueError, match="names the axis 'x', which is there already"):
            build()
    with pytest.raises(ValueError, match="names 'z', which is no axis of"):
        weft.NamedSharding(MESH, P(unreduced={"z"}))
    with weft.set_mesh(MESH):
        a = weft.device_put(X, P(None, "y"))
        out = weft.jit(lambda a: weft.reshard(a @ a.T, P(unreduced={"y"})) * 2)(a)
        np.testing.assert_allclose(out, 2 * X @ X.T)
        # A device's part of what is no sum yet is its block among zeros; a result is the sum.
        sums, rows = P(unreduced={"y"}), P("x")
        whole = weft.shard_map(lambda v: v * 2, in_specs=P("x", unreduced={"y"}), out_specs=P("x", unreduced={"y"}))(a)
        np.testing.assert_array_equal(whole, 2 * X)
        parts = weft.shard_map(lambda v: v, in_specs=P("x", unreduced={"y"}), out_specs=P("x", "y"))(a)
        np.testing.assert_array_equal(np.asarray(parts)[:, :4] + np.asarray(parts)[:, 4:], X)
        for into, out_of in ((sums, P()), (rows, sums)):
            with pytest.raises(ValueError, match="may differ between the devices along"):
                weft.shard_map(lambda v: v, in_specs=into, out_specs=out_of)(a)


def test_types_of_sums_inside_of_functions():
    """Types tell parts of sums from values that differ, through operations and derivatives, and refuse what is not
    linear in them."""
    seen = []

    def mat(v):
        return tuple(map(sorted, weft.typeof(v).mat))

    def on_devices(u, r):
        parts = lax.pcast(u, "y", to="unreduced")
        total = lax.psum(2 * parts + parts, "y")
        slope = weft.grad(lambda r: (u * r).sum())(r)
        seen.extend(map(mat, (u, r, parts, parts.T + parts.T, total, r.reshape(-1), u * r, slope)))
        return total, lax.psum(slope, "y")

    with weft.set_mesh(MESH):
        x = weft.device_put(X, P(None, "y"))
        run = weft.jit(
            weft.shard_map(on_devices, in_specs=(P(None, "y"), P(None, reduced={"y"})), out_specs=(P(), P()))
        )
        total, slope = run(x, weft.device_put(X[:, :2], P()))
        differ, part, whole, shared = ["y"], ([], ["y"], []), ([], [], []), ([], [], ["y"])
        assert seen == [(differ, [], []), shared, part, part, whole, shared, (differ, [], []), part]
        np.testing.assert_allclose(total, 3 * (X[:, :2] + X[:, 2:]))
        np.testing.assert_allclose(slope, X[:, :2] + X[:, 2:])
        for refused in (wnp.sin, lambda v: v * v, lambda v: v + lax.psum(v, "y")):
            with pytest.raises(weft.errors.ShardingTypeError, match="in parts"):
                weft.shard_map(lambda v, f=refused: f(v), in_specs=P(unreduced={"y"}), out_specs=P())(X)
        with pytest.raises(ValueError, match="along some of these axes the value is"):
            weft.shard_map(
                lambda v: lax.pcast(lax.pcast(v, "y", to="unreduced"), ("x", "y"), to="reduced"),
                in_specs=P("x", "y"),
                out_specs=P("x", "y"),
            )(X)


# --- Functions over some axes of a mesh -------------------------------------------------------------------------------


PARTLY = {
    "index": lambda m, n, lax, P: m.shard_map(
        lambda r: r * lax.axis_size("x") + lax.axis_index("x"), in_specs=P("x"), out_specs=P("x"), axis_names={"x"}
    ),
    "psum": lambda m, n, lax, P: m.shard_map(
        lambda r: lax.psum(r, "x"), in_specs=P("x"), out_specs=P(), axis_names={"x"}
    ),
    "over y": lambda m, n, lax, P: m.shard_map(
        lambda r: (lax.psum(r, "y"), r + lax.axis_index("y")),
        in_specs=P(None, "y"),
        out_specs=(P(), P(None, "y")),
        axis_names={"y"},
    ),
    "constraint": lambda m, n, lax, P: m.shard_map(
        lambda r: lax.with_sharding_constraint(r * 2, P(None, "y")),
        in_specs=P("x"),
        out_specs=P("x"),
        axis_names={"x"},
    ),
    "nested": lambda m, n, lax, P: m.shard_map(
        lambda r: m.shard_map(
            lambda q: (lax.psum(q * 2, "y"), q - lax.axis_index("y")),
            in_specs=P(None, "y"),
            out_specs=(P(), P(None, "y")),
            axis_names={"y"},
        )(r),
        in_specs=P("x"),
        out_specs=P("x"),
        axis_names={"x"},
    ),
    "nested with both": lambda m, n, lax, P: m.shard_map(
        lambda r: lax.psum(
            m.shard_map(lambda q: q * lax.axis_index("y"), in_specs=P("y"), out_specs=P("y"), axis_names={"y"})(r),
            "x",
        ),
        in_specs=P(None, "x"),
        out_specs=P(),
        axis_names={"x"},
    ),
    "smap": lambda m, n, lax, P: m.smap(lambda r: r * 2 + lax.axis_index("x"), in_axes=0, out_axes=0, axis_name="x"),
    "smap of dimension 1": lambda m, n, lax, P: m.smap(
        lambda r: lax.psum(r, "y"), in_axes=1, out_axes=None, axis_name="y"
    ),
    "smap of a tree": lambda m, n, lax, P: (
        lambda x: m.smap(
            lambda t, s: {"a": t["a"] + s, "b": lax.psum(t["b"], "x")},
            in_axes=({"a": 0, "b": 0}, None),
            out_axes={"a": 0, "b": None},
            axis_name="x",
        )({"a": x, "b": x + 1}, x[0])
    ),
    "vmap of it": lambda m, n, lax, P: (
        lambda x: m.vmap(
            m.shard_map(lambda r: r + lax.axis_index("x"), in_specs=P("x"), out_specs=P("x"), axis_names={"x"}),
            in_axes=1,
        )(x)
    ),
    "its gradient": lambda m, n, lax, P: m.grad(
        lambda z: (
            m.shard_map(lambda r: lax.psum(r**2, "x"), in_specs=P("x"), out_specs=P(), axis_names={"x"})(z) ** 2
        ).sum()
    ),
}


@pytest.mark.parametrize("name", PARTLY)
@pytest.mark.parametrize("jitted", [False, True])
def test_over_some_axes(name, jitted, theirs):
    build = PARTLY[name]
    both(
        lambda *libraries: weft.jit(build(*libraries)) if jitted and libraries[0] is weft else build(*libraries),
        X,
        theirs,
    )


def test_gradient_of_nested_functions():
    """In closed form: JAX cannot lower it."""

    def inner(r):
        return weft.shard_map(lambda q: lax.psum(q * 2, "y"), in_specs=P(None, "y"), out_specs=P(), axis_names={"y"})(r)

    def loss(z):
        return (weft.shard_map(inner, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})(z) ** 2).sum()

    with weft.set_mesh(MESH):
        for run in (lambda f: f, weft.jit):
            slope = run(weft.grad(loss))(wnp.asarray(X))
            halves = X[:, :2] + X[:, 2:]
            assert np.array_equal(slope, 8 * np.concatenate([halves, halves], 1))


def test_types_inside():
    seen = []

    def look(r):
        seen.append(weft.get_abstract_mesh().axis_types)
        return r

    with weft.set_mesh(MESH):
        weft.shard_map(look, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})(wnp.asarray(X))
        weft.shard_map(look, in_specs=P("x"), out_specs=P("x"))(wnp.asarray(X))
    assert seen == [(AxisType.Manual, AxisType.Auto), (AxisType.Manual, AxisType.Manual)]


def test_what_is_left_alone_is_refused():
    x = wnp.asarray(X)
    over_x = lambda f, ins, outs: weft.shard_map(f, MESH, ins, outs, axis_names={"x"})
    for use in (lambda r: lax.psum(r, "y"), lambda r: r + lax.axis_index("y"), lambda r: lax.all_gather(r, ("x", "y"))):
        with pytest.raises(NameError, match="'y' is an axis that the shard_map around leaves alone"):
            over_x(use, P("x"), P("x"))(x)
    with pytest.raises(ValueError, match=r"in_specs: PartitionSpec\('x', 'y'\) names 'y', over which .* not run"):
        over_x(lambda r: r, P("x", "y"), P("x"))(x)
    with pytest.raises(ValueError, match=r"out_specs: .* names 'y'"):
        over_x(lambda r: r, P("x"), P("x", "y"))(x)
    with pytest.raises(ValueError, match=r"axis_names has \['z'\], which are no axes of"):
        weft.shard_map(lambda r: r, MESH, P("x"), P("x"), axis_names={"z"})(x)
    nested = lambda outs: over_x(
        lambda r: weft.shard_map(lambda q: q, MESH, P(None, "y"), outs, axis_names={"y"})(r), P("x"), P("x")
    )
    with pytest.raises(ValueError, match=r"result 0 of .* may differ between the devices along 'y'"):
        nested(P())(x)
    for bad, message in ((1.5, "must hold integers and None"), (-1, "counted from the front")):
        with pytest.raises((TypeError, ValueError), match=f"smap: in_axes .*{message}|smap: in_axes has -1.*{message}"):
            weft.smap(lambda r: r, in_axes=bad, out_axes=0, axis_name="x")


def test_spmd_axis_name(theirs):
    build = lambda m, n, lax, P: m.vmap(lambda r: lax.with_sharding_constraint(r * 2, P("y")), spmd_axis_name="x")
    assert both(build, X, theirs).sharding.spec == P("x", "y")
    # Without a mesh around: that of an argument; or nothing is said.
    placed = weft.device_put(X, weft.NamedSharding(MESH, P(None, "y")))
    assert weft.vmap(lambda r: r + 1, spmd_axis_name="x")(placed).sharding.spec == P("x", "y")
    assert np.array_equal(weft.vmap(lambda r: r + 1, spmd_axis_name=("x", "y"))(wnp.asarray(X)), X + 1)
    with weft.set_mesh(MESH):
        out = weft.vmap(lambda r, s: r + s, in_axes=(0, None), out_axes=1, spmd_axis_name=("x", "y"))(X, X[0])
        assert out.sharding.spec == P(None, ("x", "y")) and np.array_equal(out, (X + X[0]).T)
    with pytest.raises(TypeError, match="vmap: spmd_axis_name: the name of an axis is a string, got 3"):
        weft.vmap(lambda r: r, spmd_axis_name=3)


# --- Groups of places along an axis -----------------------------------------------------------------------------------

V = np.arange(8.0, dtype="float32")
W = np.arange(64.0, dtype="float32").reshape(8, 2, 4)
HALVES, PARITY, SHUFFLED = [[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 2, 4, 6], [1, 3, 5, 7]], [[5, 0, 3, 6], [7, 2, 1, 4]]
IN_GROUPS = {
    "psum": (lambda lax, z, g: lax.psum(z, "i", axis_index_groups=g), V),
    "psum of booleans": (lambda lax, z, g: lax.psum(z > 3, "i", axis_index_groups=g), V),
    "psum of a number": (lambda lax, z, g: z * lax.psum(2, "i", axis_index_groups=g), V),
    "pmean": (lambda lax, z, g: lax.pmean(z, "i", axis_index_groups=g), W),
    "pmax": (lambda lax, z, g: lax.pmax(z, "i", axis_index_groups=g), W),
    "pmin": (lambda lax, z, g: lax.pmin(z, "i", axis_index_groups=g), V),
    "all_gather": (lambda lax, z, g: lax.all_gather(z, "i", axis_index_groups=g), V),
    "all_gather 1": (lambda lax, z, g: lax.all_gather(z, "i", axis=1, axis_index_groups=g), W),
    "all_gather tiled": (lambda lax, z, g: lax.all_gather(z, "i", axis=1, tiled=True, axis_index_groups=g), W),
    "all_to_all": (lambda lax, z, g: lax.all_to_all(z, "i", 1, 0, axis_index_groups=g), W),
    "all_to_all to the end": (lambda lax, z, g: lax.all_to_all(z, "i", 1, 1, axis_index_groups=g), W),
    "all_to_all tiled": (lambda lax, z, g: lax.all_to_all(z, "i", 1, 0, tiled=True, axis_index_groups=g), W),
    "psum_scatter": (lambda lax, z, g: lax.psum_scatter(z, "i", scatter_dimension=1, axis_index_groups=g), W),
    "psum_scatter tiled": (
        lambda lax, z, g: lax.psum_scatter(z, "i", scatter_dimension=1, tiled=True, axis_index_groups=g),
        W,
    ),
}


@pytest.mark.parametrize("groups", [HALVES, PARITY, SHUFFLED], ids=["halves", "parity", "shuffled"])
@pytest.mark.parametrize("name", IN_GROUPS)
def test_groups(name, groups):
    f, x = IN_GROUPS[name]
    wanted = np.asarray(jax.pmap(lambda z: f(jax.lax, z, groups), axis_name="i")(x))
    mine = {
        "pmap": weft.pmap(lambda z: f(lax, z, groups), axis_name="i")(x),
        "vmap": weft.vmap(lambda z: f(lax, z, groups), axis_name="i")(x),
        "shard_map": weft.jit(
            weft.shard_map(lambda z: f(lax, z[0], groups)[None], weft.make_mesh((8,), ("i",)), P("i"), P("i"))
        )(x),
    }
    for how, out in mine.items():
        assert out.dtype == wanted.dtype and np.array_equal(out, wanted), how


def test_groups_of_several_sizes():
    groups = [[0, 1, 2], [3, 4, 5, 6, 7]]
    for x in (V, W):
        out = weft.vmap(lambda z: lax.psum(z, "i", axis_index_groups=groups), axis_name="i")(x)
        assert np.array_equal(out, np.stack([x[:3].sum(0)] * 3 + [x[3:].sum(0)] * 5))
    sizes = weft.vmap(lambda z: z * lax.psum(1, "i", axis_index_groups=groups), axis_name="i")(V)
    assert np.array_equal(sizes, V * [3, 3, 3, 5, 5, 5, 5, 5])


def test_derivatives_in_groups():
    def loss(q):
        return (weft.vmap(lambda z: lax.psum(z * z, "i", axis_index_groups=HALVES), axis_name="i")(q) * V).sum()

    def same(q):
        return (jax.pmap(lambda z: jax.lax.psum(z * z, "i", axis_index_groups=HALVES), axis_name="i")(q) * V).sum()

    assert np.array_equal(weft.grad(loss)(V), jax.grad(same)(V))


@pytest.mark.parametrize(
    "groups, error, message",
    [
        ([[0, 1, 2], [3, 4, 5, 6]], ValueError, "must have each of the 8 places along 'i' once"),
        ([[0, 1, 2, 3], [3, 4, 5, 6]], ValueError, "each of the 8 places"),
        ("ab", TypeError, "must be lists of integers, got 'ab'"),
        (3, TypeError, "must be lists of integers, got 3"),
    ],
)
def test_groups_that_are_none(groups, error, message):
    with pytest.raises(error, match=message):
        weft.vmap(lambda z: lax.psum(z, "i", axis_index_groups=groups), axis_name="i")(V)


def test_groups_must_fit():
    uneven = [[0, 1, 2], [3, 4, 5, 6, 7]]
    with pytest.raises(ValueError, match="all_gather: groups of one size are needed"):
        weft.vmap(lambda z: lax.all_gather(z, "i", axis_index_groups=uneven), axis_name="i")(V)
    with pytest.raises(ValueError, match=r"all_to_all: dimension . of shape .* must have size 4, as the groups have"):
        weft.vmap(lambda z: lax.all_to_all(z, "i", 0, 0, axis_index_groups=HALVES), axis_name="i")(W)


def test_groups_over_several_axes():
    groups, axes = [[0, 3, 5, 6], [1, 2, 4, 7]], ("x", "y")  # places along both, x the major one
    x = np.arange(32.0, dtype="float32") ** 2  # four numbers for each device

    def part(z):
        taken = lax.psum(z, axes, axis_index_groups=groups), lax.pmax(z, axes, axis_index_groups=groups)
        gathered = lax.all_gather(z[:1], axes, axis_index_groups=groups, tiled=True)
        return *taken, gathered, lax.psum_scatter(z, axes, axis_index_groups=groups, tiled=True)

    blocks, mine = x.reshape(8, 4), [next(g for g in groups if i in g) for i in range(8)]
    wanted = (
        np.concatenate([blocks[g].sum(0) for g in mine]),
        np.concatenate([blocks[g].max(0) for g in mine]),
        np.concatenate([blocks[g, 0] for g in mine]),
        np.array([blocks[g, g.index(i)].sum() for i, g in enumerate(mine)]),
    )
    found = weft.jit(weft.shard_map(part, MESH, P(axes), (P(axes),) * 4))(x)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, want)


# --- What arrays say --------------------------------------------------------------------------------------------------


def test_arrays_on_devices():
    x = weft.device_put(X, weft.NamedSharding(MESH, P("x")))
    assert not x.is_fully_replicated and x.is_fully_addressable
    assert weft.device_put(X, weft.NamedSharding(MESH, P())).is_fully_replicated
    assert np.array_equal(x.addressable_data(2), X[2:4])
    assert x.on_device_size_in_bytes() == 2 * X.nbytes  # the halves of each pair of devices hold the same
    assert wnp.asarray(X).on_device_size_in_bytes() == X.nbytes
    assert x.copy_to_host_async() is None
    moved = x.to_device(weft.NamedSharding(MESH, P(None, "y")))
    assert moved.sharding.spec == P(None, "y") and moved.to_device(weft.devices()[3]).device == weft.devices()[3]
    with pytest.raises(ValueError, match="unsafe_buffer_pointer: the array lies on several devices"):
        x.unsafe_buffer_pointer()
    assert x.addressable_data(0).unsafe_buffer_pointer() % 4 == 0


# --- Types that say how values lie ------------------------------------------------------------------------------------

EXPLICIT = weft.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
SQUARE = np.arange(64.0, dtype="float32").reshape(8, 8)

# Functions of arrays a (cut by x in front), b (cut by y behind), c (cut by y in front), and r (whole): programs that
# both libraries take or refuse.
TYPED = {
    "same": lambda n, lax, P, a, b, c, r: a + a,
    "together": lambda n, lax, P, a, b, c, r: a + b,
    "with whole": lambda n, lax, P, a, b, c, r: a * r + 1,
    "with a row": lambda n, lax, P, a, b, c, r: a + r[0],
    "sum 0": lambda n, lax, P, a, b, c, r: a.sum(0),
    "sum 1": lambda n, lax, P, a, b, c, r: a.sum(1),
    "max": lambda n, lax, P, a, b, c, r: b.max(0),
    "transposed": lambda n, lax, P, a, b, c, r: a.T,
    "product": lambda n, lax, P, a, b, c, r: a @ r,
    "product of both": lambda n, lax, P, a, b, c, r: a @ b,
    "product with out_sharding": lambda n, lax, P, a, b, c, r: n.dot(a.T, a, out_sharding=P("y", None)),
    "einsum": lambda n, lax, P, a, b, c, r: n.einsum("ij,jk->ik", a, b),
    "einsum with out_sharding": lambda n, lax, P, a, b, c, r: n.einsum("ji,jk->ik", a, a, out_sharding=P("x", None)),
    "where": lambda n, lax, P, a, b, c, r: n.where(a > 0, a, 0.0),
    "merged": lambda n, lax, P, a, b, c, r: a.reshape(64),
    "split behind": lambda n, lax, P, a, b, c, r: a.reshape(8, 4, 2),
    "reshape with out_sharding": lambda n, lax, P, a, b, c, r: n.reshape(a, (2, 4, 8), out_sharding=P("y", "x", None)),
    "joined": lambda n, lax, P, a, b, c, r: n.concatenate([a, a], 1),
    "column": lambda n, lax, P, a, b, c, r: a[:, 0],
    "cumsum of the other": lambda n, lax, P, a, b, c, r: n.cumsum(a, 1),
    "sort of the other": lambda n, lax, P, a, b, c, r: n.sort(a, 1),
    "chain": lambda n, lax, P, a, b, c, r: n.tanh(a @ r).sum(1) * 2,
}
TYPED |= {
    "row with out_sharding": lambda n, lax, P, a, b, c, r: b.at[0].get(out_sharding=P("y")),
    "rows with out_sharding": lambda n, lax, P, a, b, c, r: a.at[n.array([0, 3, 0, 1])].get(out_sharding=P("y", None)),
    "set with out_sharding": lambda n, lax, P, a, b, c, r: a.at[:, 1].set(2.0, out_sharding=P("x", None)),
    "broadcast with out_sharding": lambda n, lax, P, a, b, c, r: n.broadcast_to(r[0], (8, 8), out_sharding=P("x", "y")),
    "repeat with out_sharding": lambda n, lax, P, a, b, c, r: n.repeat(r, 2, axis=0, out_sharding=P("x", None)),
    "tensordot with out_sharding": lambda n, lax, P, a, b, c, r: n.tensordot(
        a, a, ((0,), (0,)), out_sharding=P("x", "y")
    ),
}
REFUSED = {
    "row": (lambda n, lax, P, a, b, c, r: a[0], "devices cannot share the 1 of the result"),
    "two ways": (lambda n, lax, P, a, b, c, r: a + c, "operands 0 and 1 lie as P('x', None) and P('y', None)"),
    "sum of products": (lambda n, lax, P, a, b, c, r: a.T @ a, "the dimension that is summed over is cut by 'x'"),
    "split in front": (lambda n, lax, P, a, b, c, r: a.reshape(2, 4, 8), "reshape: "),
    "sort": (lambda n, lax, P, a, b, c, r: n.sort(a, 0), "needs dimension 0 of it whole"),
    "axis twice": (lambda n, lax, P, a, b, c, r: a + a.T, "would cut two dimensions"),
}


def typed_arrays(m, mesh, P):
    spec = {"a": P("x", None), "b": P(None, "y"), "c": P("y", None), "r": P(None, None)}
    sharding = m.NamedSharding if m is weft else m.sharding.NamedSharding
    return [m.device_put(SQUARE, sharding(mesh, s)) for s in spec.values()]


@pytest.fixture(scope="module")
def explicit_jax():
    return jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)


@pytest.mark.parametrize("name", TYPED)
def test_types_follow_operands(name, explicit_jax):
    f = TYPED[name]
    with jax.set_mesh(explicit_jax):
        theirs = jax.sharding.PartitionSpec
        wanted = jax.jit(lambda *v: f(jnp, jax.lax, theirs, *v))(*typed_arrays(jax, explicit_jax, theirs))
    with weft.set_mesh(EXPLICIT):
        mine = weft.jit(lambda *v: f(wnp, lax, P, *v))(*typed_arrays(weft, EXPLICIT, P))
    np.testing.assert_allclose(np.asarray(mine), np.asarray(wanted), rtol=1e-5)
    rank = mine.ndim
    full = lambda spec: (tuple(spec) + (None,) * rank)[:rank]
    assert full(mine.sharding.spec) == full(wanted.sharding.spec)
    assert mine.sharding.mesh == EXPLICIT


@pytest.mark.parametrize("name", REFUSED)
def test_types_that_do_not_go_together(name, explicit_jax):
    f, message = REFUSED[name]
    with jax.set_mesh(explicit_jax), pytest.raises(Exception):  # noqa: B017  # ShardingTypeError, which is private
        theirs = jax.sharding.PartitionSpec
        jax.jit(lambda *v: f(jnp, jax.lax, theirs, *v))(*typed_arrays(jax, explicit_jax, theirs))
    with weft.set_mesh(EXPLICIT):
        for run in (lambda g: g, weft.jit):
            with pytest.raises(ValueError) as error:
                run(lambda *v: f(wnp, lax, P, *v))(*typed_arrays(weft, EXPLICIT, P))
            assert message in str(error.value) and "weft.reshard" in str(error.value)
            assert "ambient_meshes_test.py" in str(error.value)
        # The compiler decides where the types of the axes leave it to.
    f(wnp, lax, P, *typed_arrays(weft, MESH, P))


def test_types_through_loops_and_branches():
    with weft.set_mesh(EXPLICIT):
        a, b, _, r = typed_arrays(weft, EXPLICIT, P)
        out = weft.jit(lambda a: lax.fori_loop(0, 3, lambda i, v: v * 2 + a, a))(a)
        assert out.sharding.spec == P("x") and np.array_equal(out, 15 * SQUARE)
        last, rows = weft.jit(lambda a, r: lax.scan(lambda v, row: (v + row[:, None], v.sum(1)), a, r))(a, r)
        assert last.sharding.spec == P("x") and rows.sharding.spec == P(None, "x")
        out = weft.jit(lambda p, a: lax.cond(p, lambda v: v * 2, lambda v: v + 1, a))(True, a)
        assert out.sharding.spec == P("x")
        out = weft.jit(weft.grad(lambda a: (a * a).sum()))(a)
        assert out.sharding.spec == P("x") and np.array_equal(out, 2 * SQUARE)
        with pytest.raises(ValueError, match="the loop goes over a dimension that 'x' cuts"):
            weft.jit(lambda a: lax.scan(lambda v, row: (v + row, None), wnp.zeros(8), a)[0])(a)
        with pytest.raises(
            ValueError, match=r"carry 0 lies as P\(None, None\) before a trip and as P\('x', None\) after"
        ):
            weft.jit(lambda a, r: lax.fori_loop(0, 3, lambda i, v: v + a, r))(a, r)
        with pytest.raises(ValueError, match=r"result 0 lies as .* in branch 0 and as .* in branch 1"):
            weft.jit(lambda p, a, b: lax.cond(p, lambda a, b: a * 1, lambda a, b: b * 1, a, b))(True, a, b)


def test_some_axes_explicit():
    """Along the others the compiler decides, and refuses nothing."""
    mixed = weft.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    a, b, c, _ = typed_arrays(weft, mixed, P)
    assert np.array_equal(weft.jit(lambda a, c: a + c)(a, c), 2 * SQUARE)
    np.testing.assert_allclose(weft.jit(lambda b: b @ b.T)(b), SQUARE @ SQUARE.T)
    with pytest.raises(ValueError, match="the dimension that is summed over is cut by 'x'"):
        weft.jit(lambda a: a.T @ a)(a)
