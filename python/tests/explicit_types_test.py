"""What types of traced values say of where they lie along axes of type Explicit: after each operation, through
transforms and loops, and what they refuse; beside JAX on as many devices."""

import os

os.environ["WEFT_NUM_CPU_DEVICES"] = "8"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir

import weft
import weft.numpy as wnp
from weft import AxisType, P, lax
from weft.as_jax.arguments import with_more

SHAPES = ((1, 1), (2, 1), (2, 2), (4, 2))  # 1, 2, 4, 8 devices
SQUARE = (np.arange(64.0, dtype="float32").reshape(8, 8) % 7) - 3
CUBE = (np.arange(8 * 4 * 8, dtype="float32").reshape(8, 4, 8) % 5) - 2
SPECS = {"a": ("x", None), "b": (None, "y"), "r": (None, None), "q": ("x", None, "y")}


class Library:
    """Weft or JAX, with what the tests need of it under the same names."""

    def __init__(self, module, numpy, lax, spec, kinds, mesh):
        self.m, self.n, self.lax, self.P, self.mesh = module, numpy, lax, spec, mesh
        self.explicit = kinds.Explicit
        self.typed = {"reshard": module.sharding.reshard if module is jax else weft.reshard}
        self.named = module.sharding.NamedSharding if module is jax else weft.NamedSharding

    def spec_of(self, x):
        return tuple(self.m.typeof(x).sharding.spec)

    def reshard(self, x, *dims, **sums):
        return self.typed["reshard"](x, self.P(*dims, **sums))

    def arrays(self):
        data = {"a": SQUARE, "b": SQUARE + 1, "r": SQUARE - 1, "q": CUBE}
        return {name: self.m.device_put(x, self.named(self.mesh, self.P(*SPECS[name]))) for name, x in data.items()}

    def run(self, f):
        """f(library, arrays) in a jitted function: the leaves of its result, and what their types say inside."""
        said = []

        def inside(v):
            leaves = self.m.tree.leaves(f(self, v))
            said[:] = [self.spec_of(leaf) for leaf in leaves]
            return leaves

        with self.m.set_mesh(self.mesh):
            results = self.m.jit(inside)(self.arrays())
        return [np.asarray(x) for x in results], said, [x.sharding for x in results]


def libraries(shape):
    mine = weft.make_mesh(shape, ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    theirs = jax.make_mesh(shape, ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    return (
        Library(weft, wnp, lax, P, AxisType, mine),
        Library(jax, jnp, jax.lax, jax.sharding.PartitionSpec, jax.sharding.AxisType, theirs),
    )


OPERATIONS = {
    "element-wise": lambda L, v: [L.n.sin(v["a"]), v["a"] + v["r"], v["a"] * v["b"], v["a"] ** 2, v["a"] > 0],
    "numbers": lambda L, v: [v["a"] * 2, 1 - v["b"], v["r"] / 3],
    "dtypes": lambda L, v: [v["a"].astype("int32"), L.n.abs(v["b"])],
    "chosen": lambda L, v: [L.n.where(v["a"] > 0, v["a"], 0.0), L.lax.select(v["a"] > 0, v["a"], v["a"] * 2)],
    "reductions": lambda L, v: [v["a"].sum(), v["a"].sum(0), v["a"].sum(1), v["q"].max((0, 1)), v["q"].min(2)],
    "of places": lambda L, v: [L.n.argmax(v["a"], 0), L.n.argmin(v["a"], 1)],
    "products": lambda L, v: [v["a"] @ v["r"], v["a"] @ v["b"], v["r"] @ v["r"], v["r"] @ v["b"]],
    "product of one that is cut": lambda L, v: [v["b"] @ v["r"], v["b"] @ v["b"]],
    "batches": lambda L, v: [
        L.lax.dot_general(v["q"], v["q"] * 2, (((1,), (1,)), ((0, 2), (0, 2)))),
        L.n.einsum("bij,bkj->bik", v["q"], v["q"], out_sharding=L.P("x", None, "y")),
    ],
    "turned": lambda L, v: [v["a"].T, L.n.transpose(v["q"], (2, 0, 1)), L.n.swapaxes(v["q"], 0, 2)],
    "broadcast": lambda L, v: [L.n.broadcast_to(v["a"], (3, 8, 8)), v["a"][None], v["a"][:, None]],
    "squeezed": lambda L, v: [L.n.squeeze(v["a"][:, None], 1)],
    "reshaped": lambda L, v: [v["a"].reshape(8, 2, 4), v["a"].reshape(8, 4, 2), v["a"].reshape(64)],
    "reshaped, both cut": lambda L, v: [
        L.reshard(v["r"], "x", "y").reshape(64),
        L.reshard(v["r"], "x", "y").ravel(),
        L.reshard(v["q"], "x", "y", None).reshape(32, 8),
        L.reshard(v["q"], None, "x", "y").reshape(8, 32),
        L.reshard(v["q"], "y", "x", None).reshape(256) * 2,
        L.m.grad(lambda a: (a.reshape(64) ** 3).sum())(L.reshard(v["r"], "x", "y")),
        L.m.vmap(lambda a: a.reshape(32))(L.reshard(v["q"], None, "x", "y")),
    ],
    "joined": lambda L, v: [L.n.concatenate([v["a"], v["a"]], 1), L.n.stack([v["a"], v["a"]])],
    "padded": lambda L, v: [L.lax.pad(v["a"], 0.0, ((0, 0, 0), (1, 2, 0))), L.lax.pad(v["a"], 0.0, ((4, 4, 0),) * 2)],
    "sliced": lambda L, v: [v["a"][:, 1:3], L.lax.slice(v["a"], (0, 0), (8, 3)), L.lax.slice(v["a"], (0, 0), (4, 8))],
    "dynamic slices": lambda L, v: [L.lax.dynamic_slice(v["a"], (0, 1), (8, 2))],
    "updated": lambda L, v: [L.lax.dynamic_update_slice(v["a"], v["a"] * 2, (0, 0))],
    "along": lambda L, v: [L.n.cumsum(v["a"], 1), L.n.sort(v["a"], 1), L.n.flip(v["a"], 1)],
    "taken": lambda L, v: [
        L.n.take_along_axis(v["a"], L.n.argsort(v["a"], 1), 1),
        L.n.take_along_axis(v["a"], L.n.argsort(v["a"], 1)[:, :2] - 8, 1),
        (lambda i: L.m.grad(lambda a: (L.n.take_along_axis(a, i, 1) * a).sum())(v["a"]))(L.n.argsort(v["a"], 1)),
    ],
    "reversed": lambda L, v: [L.lax.rev(v["a"], (0,))],
    "windows": lambda L, v: [L.lax.reduce_window(v["a"], -np.inf, L.lax.max, (1, 2), (1, 2), "VALID")],
    "made": lambda L, v: [L.n.zeros_like(v["a"]) + v["a"], v["a"] + L.n.arange(8.0)],
    "said": lambda L, v: [L.reshard(v["a"], None, "x"), L.reshard(v["r"], ("x", "y")), L.reshard(v["q"])],
    "out_sharding": lambda L, v: [
        L.n.dot(v["a"].T, v["a"], out_sharding=L.P("y", None)),
        L.n.reshape(v["a"], (4, 2, 8), out_sharding=L.P("y", None, "x")),
        L.n.zeros((8, 4), out_sharding=L.P("x", "y")),
        v["a"].reshape(64, out_sharding=L.P(("x", "y"))),
        v["b"].at[0].get(out_sharding=L.P("y")),
    ],
    "calls": lambda L, v: [L.m.jit(lambda x: x * 2)(v["a"]), L.m.jit(lambda x: x * 2)(v["b"])],
    "twice": lambda L, v: [*(lambda g: [g(v["a"]), g(v["b"]), g(v["a"])])(L.m.jit(lambda x: L.n.cos(x)))],
    "checkpoint": lambda L, v: [L.m.checkpoint(lambda x: L.n.sin(x) * 2)(v["b"])],
    "scan": lambda L, v: list(L.lax.scan(lambda c, x: (c + x, c.sum(0)), v["b"], L.n.stack([v["b"]] * 3))),
    "fori": lambda L, v: [L.lax.fori_loop(0, 3, lambda i, x: x * 2, v["a"])],
    "while": lambda L, v: [L.lax.while_loop(lambda x: x.sum() < 0, lambda x: x + 1, v["b"])],
    "cond": lambda L, v: [L.lax.cond(v["r"].sum() > 0, lambda x: x * 2, lambda x: x - 1, v["a"])],
    "gradient": lambda L, v: list(
        L.m.grad(lambda a, b: (L.n.sin(a) @ b).sum(), argnums=(0, 1))(v["a"], v["b"]),
    ),
    "gradient through what is said": lambda L, v: [
        L.m.grad(lambda a: (L.n.dot(a.T, a, out_sharding=L.P("y", None)) ** 2).sum())(v["a"])
    ],
    "gradient of gradients": lambda L, v: [L.m.grad(lambda a: L.m.grad(lambda a: (a**3).sum())(a).sum())(v["a"])],
    "vjp": lambda L, v: list(L.m.vjp(lambda a: a.sum(1), v["a"])[1](L.n.ones_like(v["a"].sum(1)))),
    "jvp": lambda L, v: list(L.m.jvp(L.n.sin, (v["b"],), (v["b"],))),
    "mapped": lambda L, v: [L.m.vmap(lambda x: x * 2)(v["a"]), L.m.vmap(lambda x: x.sum(), in_axes=1)(v["b"])],
    "mapped and kept": lambda L, v: [L.m.vmap(lambda x, y: x + y, in_axes=(0, None))(v["a"], v["r"][0])],
    "mapped gradient": lambda L, v: [L.m.vmap(L.m.grad(lambda x: (x**2).sum()))(v["a"])],
    "on devices": lambda L, v: [
        L.m.shard_map(lambda x: x * 2, mesh=L.mesh, in_specs=L.P("x", None), out_specs=L.P("x", None))(v["a"]) + v["a"]
    ],
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
def test_what_types_say(name, shape):
    (mine, specs, places), (wanted, theirs, their_places) = (
        library.run(OPERATIONS[name]) for library in libraries(shape)
    )
    assert specs == theirs, name
    for got, want in zip(mine, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    # What a function returns lies as its types say.
    full = lambda spec, rank: (tuple(spec) + (None,) * rank)[:rank]
    for place, there, x in zip(places, their_places, mine, strict=True):
        assert full(place.spec, x.ndim) == full(there.spec, x.ndim)


def test_types_inside_follow_the_loop():
    for library in libraries((2, 2)):
        seen = []

        def step(carry, x, seen=seen, library=library):
            seen.append((library.spec_of(carry), library.spec_of(x)))
            return carry * 2, x.sum(0)

        with library.m.set_mesh(library.mesh):
            xs = library.reshard(library.n.stack([library.n.asarray(SQUARE)] * 3), None, "x", "y")
            carry = library.reshard(library.n.asarray(SQUARE), "y", None)
            library.m.jit(lambda c, x, scan=library.lax.scan, step=step: scan(step, c, x))(carry, xs)
        assert seen[-1] == (("y", None), ("x", "y"))


REFUSED = {
    "two ways": lambda L, v: v["a"] + L.reshard(v["a"], "y", None),
    "an axis twice": lambda L, v: v["a"] + L.reshard(v["a"], None, "x"),
    "a sum of products": lambda L, v: v["a"].T @ v["a"],
    "sums that differ": lambda L, v: v["b"] @ L.reshard(v["a"], "x", None),
    "batches": lambda L, v: L.lax.dot_general(v["q"], L.reshard(v["q"], "y", None, None), (((1,), (1,)), ((0,), (0,)))),
    "cases": lambda L, v: L.lax.select(v["a"] > 0, v["a"], L.reshard(v["a"], "y", None)),
    "joined": lambda L, v: L.n.concatenate([v["a"], L.reshard(v["a"], None, "y")]),
    "rows": lambda L, v: L.lax.slice(v["a"], (0, 0), (3, 8)),
    "padded": lambda L, v: L.lax.pad(v["a"], 0.0, ((0, 1, 0), (0, 0, 0))),
    "sorted": lambda L, v: L.n.sort(v["a"], 0),
    "running sums": lambda L, v: L.lax.cumsum(v["a"], 0),
    "split": lambda L, v: L.lax.reshape(v["b"], (64,)),
    "updated": lambda L, v: L.lax.dynamic_update_slice(v["a"], L.reshard(v["a"], None, "y"), (0, 0)),
    "a loop over what is cut": lambda L, v: L.lax.scan(lambda c, x: (c, x), 0.0, v["a"])[1],
    "a carry": lambda L, v: L.lax.scan(lambda c, _: (L.reshard(c, None, "x"), None), v["a"], None, length=2)[0],
    "mapped apart": lambda L, v: L.m.vmap(lambda x, y: x + y)(v["a"], v["r"]),
    "mapped otherwise": lambda L, v: L.m.vmap(lambda x: x * 2, spmd_axis_name="y")(v["a"]),
    "mapped beside": lambda L, v: L.m.vmap(lambda x, y: x + y.sum(0), in_axes=(0, None))(v["a"], v["a"]),
}


@pytest.mark.parametrize("jitted", [True, False])
@pytest.mark.parametrize("name", REFUSED)
def test_what_types_refuse(name, jitted):
    mine, theirs = libraries((2, 2))
    for library, kind in ((theirs, Exception), (mine, weft.errors.ShardingTypeError)):
        with library.m.set_mesh(library.mesh):
            f = lambda v, library=library: REFUSED[name](library, v)
            with pytest.raises(kind) as error:
                (library.m.jit(f) if jitted else f)(library.arrays())
    assert isinstance(error.value, ValueError) and "explicit_types_test.py" in str(error.value)
    assert "weft.reshard" in str(error.value)


def test_one_function_for_two_ways_to_lie():
    library, _ = libraries((2, 2))
    seen = []

    @weft.jit
    def inner(x):
        seen.append(library.spec_of(x))
        return x * 2

    @weft.jit
    def outer(a, b):
        return inner(a), inner(b), inner(a + 1)

    v = library.arrays()
    with weft.set_mesh(library.mesh):
        for _ in range(2):
            results = outer(v["a"], v["b"])
    assert seen == [("x", None), (None, "y")]
    assert [tuple(r.sharding.spec)[:1] for r in results] == [("x",), (None,), ("x",)]


def test_types_without_a_mesh_around():
    library, _ = libraries((4, 2))
    v, seen = library.arrays(), []
    f = weft.jit(lambda a, b: (seen.append(library.spec_of(a @ b)), a @ b)[1])
    np.testing.assert_allclose(f(v["a"], v["b"]), SQUARE @ (SQUARE + 1))
    assert seen == [("x", "y")]


def test_types_of_results():
    library, _ = libraries((2, 2))
    v = library.arrays()
    with weft.set_mesh(library.mesh):
        for f in (lambda a, b: (a.T, a @ b), weft.jit(lambda a, b: (a.T, a @ b))):
            turned, product = weft.eval_shape(f, v["a"], v["b"])
            assert tuple(turned.sharding.spec) == (None, "x") and tuple(product.sharding.spec) == ("x", "y")
    assert weft.eval_shape(lambda x: x * 2, wnp.ones(3)).sharding is None


def test_texts_say_it():
    library, _ = libraries((2, 2))
    v = library.arrays()
    with weft.set_mesh(library.mesh):
        f = weft.jit(lambda a, r: (wnp.sin(a) * 2, wnp.dot(a.T, r, out_sharding=P(None, unreduced={"x"}))))
        lowered = f.lower(v["a"], v["r"])
        text = lowered.as_text("stablehlo")
        compiled, wanted = lowered.compile().as_text(), f(v["a"], v["r"])
    module = ir.Module.parse(text, mlir.make_ir_context())  # JAX's own parser takes it
    assert text.count("sdy.sharding_constraint") >= 4 and 'unreduced={"x"}' in text
    assert "num_partitions = 4" in str(module)
    for got, want in zip(weft.ir.from_stablehlo(text)(SQUARE, SQUARE - 1), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)
    assert "all-reduce" not in compiled  # the devices keep their parts
    # Types alone, on a mesh without devices.
    sharding = weft.NamedSharding(library.mesh.abstract_mesh, P("x"))
    text = weft.jit(lambda x: x + 1).lower(weft.ShapeDtype((8, 2), sharding=sharding)).as_text("stablehlo")
    assert '[{"x"}, {}]' in text


# --- Sums in parts ----------------------------------------------------------------------------------------------------

ROUND_TRIPS = [
    ((), {"unreduced": {"x"}}),
    ((), {"unreduced": {"x", "y"}}),
    (("x", None), {"unreduced": {"y"}}),
    ((None, "y"), {"unreduced": {"x"}}),
    ((), {"reduced": {"x"}}),
    (("x", None), {"reduced": {"y"}}),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dims, sums", ROUND_TRIPS, ids=str)
@pytest.mark.parametrize("jitted", [True, False])
def test_there_and_back(dims, sums, shape, jitted):
    library, _ = libraries(shape)
    there = lambda x: library.reshard(x, *dims, **sums)
    with weft.set_mesh(library.mesh):
        x = library.arrays()["a"]
        y = (weft.jit(there) if jitted else there)(x)
        assert (y.sharding.spec.unreduced, y.sharding.spec.reduced) == (
            frozenset(sums.get("unreduced", ())),
            frozenset(sums.get("reduced", ())),
        )
        # The parts that devices hold add up to it.
        total = np.zeros_like(SQUARE)
        seen = set()
        for shard in y.addressable_shards:
            place = tuple((s.start, s.stop) for s in shard.index)
            if "unreduced" in sums or place not in seen:
                total[shard.index] += np.asarray(shard.data)
            seen.add(place)
        copies = 1
        if "unreduced" in sums:
            cut = {name for dim in dims if dim for name in [dim]}
            copies = np.prod([n for name, n in library.mesh.shape.items() if name not in cut | sums["unreduced"]])
        np.testing.assert_array_equal(total, SQUARE * copies)
        back = library.reshard(y, "x", None)
        assert back.sharding == x.sharding
        np.testing.assert_array_equal(back, SQUARE)


def test_what_is_linear_passes_parts_on():
    library, _ = libraries((2, 2))
    parts = {"unreduced": {"x"}}

    def f(a):
        s = library.reshard(a, **parts)
        results = [s + s, -s, s.T, s.reshape(64), s.sum(0), s * library.reshard(a, reduced={"x"})]
        return results, [weft.typeof(r).sharding.spec.unreduced for r in results]

    kept = []
    with weft.set_mesh(library.mesh):
        results = weft.jit(lambda a: (lambda r: (kept.extend(r[1]), r[0])[1])(f(a)))(library.arrays()["r"])
    wanted = SQUARE - 1
    assert kept == [{"x"}] * 6
    sums = [2 * wanted, -wanted, wanted.T, wanted.reshape(64), wanted.sum(0), wanted**2]
    for got, want in zip(results, sums, strict=True):
        np.testing.assert_allclose(got, want)
        assert got.sharding.spec.unreduced == {"x"}


@pytest.mark.parametrize(
    "f, message",
    [
        (lambda s, w, r: wnp.sin(s), "only what is linear in it takes"),
        (lambda s, w, r: s + w, "some operands are sums in parts and some are whole"),
        (lambda s, w, r: s * w, "is not reduced along the same axes"),
        (lambda s, w, r: s * s, "two factors are sums in parts"),
        (lambda s, w, r: r + w, "is replicated along axes that operand 0 is reduced along"),
        (lambda s, w, r: r * weft.reshard(w, P("x")), "is cut along axes that operand 0 is reduced along"),
    ],
)
def test_parts_that_are_refused(f, message):
    library, _ = libraries((2, 2))
    with weft.set_mesh(library.mesh):
        w = library.arrays()["r"]
        s, r = weft.reshard(w, P(unreduced={"x"})), weft.reshard(w, P(reduced={"x"}))
        for run in (lambda g: g, weft.jit):
            with pytest.raises(weft.errors.ShardingTypeError, match=message):
                run(f)(s, w, r)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cotangents_of_what_is_reduced(shape):
    library, _ = libraries(shape)
    with weft.set_mesh(library.mesh):
        x = weft.reshard(wnp.asarray(SQUARE), P("x", None))
        w = weft.reshard(wnp.ones(8), P(reduced={"x"}))

        def loss(w):
            part = lambda w, x: lax.psum((x @ w).sum(), "x")
            return weft.shard_map(part, in_specs=(P(reduced={"x"}), P("x", None)), out_specs=P())(w, x)

        for run in (lambda g: g, weft.jit):
            slope = run(weft.grad(loss))(w)
            assert slope.sharding.spec.unreduced == {"x"}
            np.testing.assert_allclose(slope, SQUARE.sum(0))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_parts_in_and_out_of_devices(shape):
    library, _ = libraries(shape)
    with weft.set_mesh(library.mesh):
        whole = weft.reshard(wnp.asarray(SQUARE), P())
        parts = weft.reshard(whole, P(unreduced={"x"}))
        scattered = weft.shard_map(
            lambda p: lax.psum_scatter(p, "x", tiled=True), in_specs=P(unreduced={"x"}), out_specs=P("x")
        )
        np.testing.assert_allclose(scattered(parts), SQUARE)
        added = weft.shard_map(
            lambda p: lax.pcast(p, "x", to="unreduced"), in_specs=P("x"), out_specs=P(unreduced={"x"})
        )(weft.reshard(whole, P("x")))
        np.testing.assert_allclose(added, SQUARE.reshape(shape[0], -1, 8).sum(0))
        gathered = weft.shard_map(
            lambda p: lax.all_gather(p, "x", tiled=True, to="reduced"), in_specs=P("x"), out_specs=P(reduced={"x"})
        )
        np.testing.assert_allclose(gathered(weft.reshard(whole, P("x"))), SQUARE)


# --- Functions over some axes -----------------------------------------------------------------------------------------


def test_types_where_some_axes_are_manual():
    library, _ = libraries((2, 2))
    seen = []

    def rows(x):
        seen.append((x.shape, library.spec_of(x), weft.get_abstract_mesh().axis_types))
        y = weft.reshard(x * 2, P(None, "y"))
        seen.append(library.spec_of(y))
        return y

    @weft.jit
    def f(x):
        y = weft.shard_map(rows, out_specs=P("x"), axis_names={"x"})(x)  # the specs of x are those of its type
        seen.append(library.spec_of(y))
        return y

    with weft.set_mesh(library.mesh):
        x = weft.reshard(wnp.asarray(SQUARE), P("x", "y"))
        np.testing.assert_array_equal(f(x), SQUARE * 2)
        assert tuple(f(x).sharding.spec) == ("x", "y")
    assert seen[0] == ((4, 8), (None, "y"), (AxisType.Manual, AxisType.Explicit))
    assert seen[1:] == [(None, "y"), ("x", "y")]


def test_types_over_axes_of_both_kinds():
    mesh = weft.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    seen = []
    f = weft.jit(lambda a: (seen.append(tuple(weft.typeof(a * 2).sharding.spec)), a * 2)[1])
    with weft.set_mesh(mesh):
        np.testing.assert_array_equal(f(weft.device_put(SQUARE, P("x", "y"))), SQUARE * 2)
    assert seen == [("x", None)]


def test_device_of_made_arrays_where_the_compiler_says():
    made = with_more("jax.numpy", "arange", wnp.arange)
    mesh = weft.make_mesh((4, 2), ("x", "y"))
    rows = weft.NamedSharding(mesh, P("x"))
    theirs = jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    asked = jnp.arange(8, device=jax.sharding.NamedSharding(theirs, jax.P("x")))
    for mine in (made(8, device=rows), weft.jit(lambda: made(8, device=rows))()):
        assert mine.sharding == rows and tuple(asked.sharding.spec) == tuple(rows.spec)
        np.testing.assert_array_equal(mine, asked)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_systems_of_equations_on_each_device(shape):
    library, _ = libraries(shape)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(8, 3, 3)).astype("float32"), rng.normal(size=(8, 3, 2)).astype("float32")
    slope = jax.grad(lambda a: jnp.linalg.solve(a, b).sum())(a)
    with weft.set_mesh(library.mesh):
        cut = [weft.reshard(wnp.asarray(x), P("x")) for x in (a, b)]
        for run in (lambda f: f, weft.jit):
            x = run(wnp.linalg.solve)(*cut)
            assert x.sharding.is_equivalent_to(cut[1].sharding, 3)
            np.testing.assert_allclose(x, np.linalg.solve(a, b), 1e-3, 1e-4)
            np.testing.assert_allclose(
                run(weft.grad(lambda a, b: wnp.linalg.solve(a, b).sum()))(*cut), slope, 1e-2, 1e-2
            )
