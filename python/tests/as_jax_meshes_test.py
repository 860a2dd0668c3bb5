"""weft.as_jax: meshes, shardings and what is placed by them, on eight devices. Each program runs under JAX, too."""

import pytest
from as_jax_both import both, lines

DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
HEAD = """
from jax.sharding import AbstractMesh, AxisType, Mesh, SingleDeviceSharding
def refused(kind, f):
    try:
        return shown(f())
    except kind as error:
        return True
auto = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
explicit = jax.make_mesh((4, 2), ("x", "y"))
"""


def run(code):
    return both(HEAD + code, **DEVICES)


def test_how_they_look():
    found = run("""
for name, mesh in {"auto": auto, "explicit": explicit, "one": jax.make_mesh((1,), ("x",))}.items():
    out[name] = [str(mesh), repr(mesh)]
out["abstract"] = [str(AbstractMesh((2,), ("x",))), str(NamedSharding(AbstractMesh((2,), ("x",)), P("x")))]
out["specs"] = [repr(P(*dims)) for dims in ((), ("x",), ("x", None), (("x", "y"),), (P.UNCONSTRAINED,))]
out["sums"] = [repr(P("x", unreduced={"y"})), repr(P(unreduced={"x"}, reduced={"y"})), repr(P(None, reduced={"y"}))]
out["named"] = [str(NamedSharding(auto, P("x"))), str(NamedSharding(auto, P(), memory_kind="pinned_host"))]
out["one device"] = str(SingleDeviceSharding(jax.devices()[1]))
out["type"] = str(jax.ShapeDtypeStruct((4,), np.float32, sharding=NamedSharding(auto, P("x"))))
""")
    assert found["auto"][0] == "Mesh('x': 4, 'y': 2, axis_types=(Auto, Auto))"


def test_specs_are_joined():
    run("""
out["joined"] = [repr(P("x") + P("y")), repr(P("x") + (None,)), repr((None,) + P("x"))]
joined = P("x", unreduced={"z"}) + P("a", unreduced={"b"})
out["sums"] = [sorted(joined.unreduced), sorted(set(repr(joined)))]  # sets have no order
out["refused"] = [
    refused(TypeError, lambda: P("x", unreduced={"y"}) + (None,)),
    refused(TypeError, lambda: (None,) + P("x", unreduced={"y"})),
    refused(ValueError, lambda: P("x", unreduced={"x"})),
    refused(ValueError, lambda: P("x", unreduced={None})),
    refused(TypeError, lambda: type("Mine", (P,), {})),
]
""")


def test_what_meshes_and_shardings_refuse():
    run("""
empty = Mesh(np.empty((), dtype=object), [])
out["empty"] = [empty.empty, empty.size, empty.abstract_mesh.empty, AbstractMesh((), ()).size]
out["same"] = Mesh(jax.devices(), "x") is Mesh(jax.devices(), "x")
abstract = NamedSharding(AbstractMesh((2,), ("x",)), P("x"))
out["without devices"] = [abstract.is_equivalent_to(NamedSharding(AbstractMesh((2,), ("x",)), P("x")), 2)]
out["memory"] = [
    abstract.memory_kind,
    NamedSharding(abstract.mesh, P(), memory_kind="pinned_host").memory_kind,
    NamedSharding(auto, P()).memory_kind,
]
out["refused"] = [
    refused(ValueError, f)
    for f in (
        lambda: NamedSharding(abstract.mesh, P(), memory_kind="weird"),
        lambda: NamedSharding(auto, P("x"), memory_kind="hbm"),
        lambda: SingleDeviceSharding(jax.devices()[0], memory_kind="host"),
        lambda: NamedSharding(auto, P(unreduced={"z"})),
        lambda: NamedSharding(auto, P("x", unreduced={"y"})),
        lambda: jax.set_mesh(Mesh(jax.devices(), "x", (AxisType.Manual,))),
        lambda: NamedSharding(auto, P("x", None)).check_compatible_aval((4,)),
    )
]
""")


def test_copies_of_meshes():
    # JAX copies none.
    found = lines(
        HEAD
        + """
import copy, pickle
ours = [auto, explicit, Mesh(jax.devices()[::-1], "z")]
out["same"] = [[m == pickle.loads(pickle.dumps(o)) == copy.copy(o) == copy.deepcopy(o) for m in ours] for o in ours]
""",
        "-m",
        "weft.as_jax",
        **DEVICES,
    )
    assert found["same"] == [[i == k for k in range(3)] for i in range(3)]


def test_arrays_are_made_on_the_mesh_that_is_set():
    run("""
key = jax.random.key(0)
make = {
    "ones": lambda: jnp.ones((4, 2)), "arange": lambda: jnp.arange(3), "array": lambda: jnp.array([1.0, 2.0]),
    "normal": lambda: jax.random.normal(key, (3,)), "asarray": lambda: jnp.asarray(np.ones(3)),
    "eye": lambda: jnp.eye(2), "put": lambda: jax.device_put(np.ones(3)),
}
for name, mesh in {"auto": auto, "explicit": explicit}.items():
    with jax.set_mesh(mesh):
        out[name] = {what: str(f().sharding) for what, f in make.items()}
with auto:
    out["with"] = {what: str(f().sharding) for what, f in make.items()}
out["none"] = {what: str(f().sharding) for what, f in make.items()}
""")


def test_like_another_array_means_lying_as_it_does():
    run("""
x = jax.device_put(np.arange(8.0), NamedSharding(auto, P("x")))
y = jax.device_put(np.ones((2, 2)), jax.devices()[3])
for name, f in {
    "zeros": jnp.zeros_like, "ones": jnp.ones_like, "full": lambda a: jnp.full_like(a, 7),
    "lax": lambda a: lax.full_like(a, 7), "shape": lambda a: lax.full_like(a, 1, shape=()),
}.items():
    out[name] = [[str(f(a).sharding), f(a).tolist()] for a in (x, y)]
with jax.set_mesh(explicit):
    t = jax.ShapeDtypeStruct((8,), np.float32, sharding=NamedSharding(explicit.abstract_mesh, P("x")))
    out["type"] = str(jnp.zeros_like(t).sharding)
s = NamedSharding(auto, P("x"))
out["said"] = [str(lax.full((8,), 1.0, sharding=s).sharding), str(lax.full_like(x, 1, sharding=s).sharding)]
""")


def test_results_lie_in_the_words_of_the_arguments():
    run("""
mesh = jax.make_mesh((1, 8, 1), ("x", "y", "z"), axis_types=(AxisType.Auto,) * 3)
x = jax.device_put(np.arange(32).reshape(1, 32, 1), NamedSharding(mesh, P("x", "y", "z")))
out["axes of size 1"] = str((x + 1).sharding)
y = jax.device_put(np.arange(16).reshape(8, 2), NamedSharding(auto, P("x", None)))
out["dimensions that are not cut"] = str(jax.jit(lambda a: a * 2)(y).sharding)
one = NamedSharding(jax.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,)), P("x"))
out["one device"] = str(jax.jit(lambda a: a * 2)(jax.device_put(np.ones(4), one)).sharding)
""")


def test_devices_of_jit():
    run("""
import warnings
x = jax.device_put(np.ones(2), jax.devices()[2])
f = jax.jit(lambda a, b: a + b, device=jax.devices()[4])
for name, args in {"numbers": (1, 2), "there": (1, x), "elsewhere": (np.ones(2), x)}.items():
    out[name] = [str(f(*args).sharding), f(*args).tolist(), f(*args).committed]
at = SingleDeviceSharding(jax.devices()[1])
out["sharding"] = str(jax.jit(lambda a: a * 2, out_shardings=at)(np.ones(2)).sharding)
out["committed"] = [jnp.ones(2).committed, x.committed, jax.jit(lambda a: a)(np.ones(2)).committed]
some = NamedSharding(auto, P(P.UNCONSTRAINED))
out["refused"] = [
    refused(ValueError, f)
    for f in (
        lambda: jax.jit(lambda a: a, device=jax.devices()[0], backend="cpu"),
        lambda: jax.jit(lambda a: a, device=jax.devices()[0], in_shardings=at),
        lambda: jax.jit(lambda a: a, backend="cpu", out_shardings=at),
        lambda: jax.jit(lambda a: a, in_shardings=some),
        lambda: jax.jit(lambda a: a, out_shardings=some),
        lambda: lax.with_sharding_constraint(jnp.ones(2), None),
    )
]
""")


def test_formats():
    run("""
from jax.experimental.layout import Format, Layout
mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
x = jax.device_put(np.ones((4, 2), np.float32), NamedSharding(mesh, P("x")))
compiled = jax.jit(lambda a, b: (a * 2, b)).lower(x, np.ones(3, np.float32)).compile()
order = lambda formats: shown(jax.tree.map(lambda f: f.layout.major_to_minor, formats))
out["compiled"] = [order(compiled.input_formats), order(compiled.output_formats)]
out["shardings"] = [shown(compiled.output_shardings), shown(compiled.input_shardings)]
out["info"] = [str(t.sharding) for t in compiled.out_info]
out["array"] = x.format == jax.device_put(x, x.format).format
t = jax.ShapeDtypeStruct((4, 2), np.float32, sharding=x.format)
out["type"] = str(t.sharding)
made = jax.make_array_from_callback((4, 2), x.format, lambda i: np.ones((4, 2), np.float32)[i])
out["made"] = str(made.sharding)
short = Format(Layout(major_to_minor=(0, 1, 2)), x.sharding)
automatic = Format(Layout.AUTO, x.sharding)
out["refused"] = [
    refused(ValueError, lambda: jax.device_put(np.ones(8), automatic)),
    refused(ValueError, lambda: jax.device_put(np.ones(8), short)),
    refused(TypeError, lambda: jax.ShapeDtypeStruct((4,), np.float32, sharding=Format(Layout.AUTO))),
    refused(TypeError, lambda: jax.make_array_from_callback((4, 2), automatic, lambda i: None)),
    refused(ValueError, lambda: jax.jit(lambda a: a, in_shardings=Layout.AUTO).lower(x)),
]
""")


def test_arrays_of_what_devices_hold():
    run("""
from jax._src.array import ArrayImpl
mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
s = NamedSharding(mesh, P("x"))
parts = [jax.device_put(np.full((2,), i, np.float32), d) for i, d in enumerate(jax.devices()[:2])]
aval = jax.core.ShapedArray((4,), np.float32)
x = ArrayImpl(aval, s, parts, committed=True)
out["made"] = [x.tolist(), str(x.sharding), isinstance(x, ArrayImpl), isinstance(1, ArrayImpl)]
elsewhere = [jax.device_put(p, jax.devices()[3 + i]) for i, p in enumerate(parts)]
out["refused"] = [
    refused(ValueError, f)
    for f in (
        lambda: ArrayImpl(aval, s, parts[:1], committed=True),
        lambda: ArrayImpl(aval, s, parts[:1] * 2, committed=True),
        lambda: ArrayImpl(aval, s, elsewhere, committed=True),
        lambda: ArrayImpl(jax.core.ShapedArray((4,), np.int32), s, parts, committed=True),
    )
]
""")


def test_programs_for_arrays_that_were_given_away():
    run("""
x = jax.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(auto, P("x")))
f = jax.jit(lambda a: a * 2, donate_argnums=0)
f(x)
out["deleted"] = x.is_deleted()
out["lowered"] = str(f.lower(x).out_info.shape)
out["run"] = f.lower(x).compile()(jax.device_put(np.ones(8, np.float32), NamedSharding(auto, P("x")))).tolist()
out["evaluated"] = str(jax.eval_shape(f, x).shape)
y, z = (jax.device_put(np.arange(8.0), NamedSharding(auto, P("x"))) for _ in range(2))
moved = jax.device_put((y, z), NamedSharding(auto, P("y")), donate=(True, False))
out["some"] = [z.is_deleted(), *(m.tolist() for m in moved)]
""")


def test_shard_map_takes_what_is_no_array():
    run("""
things = object()
def f(o, x, size):
    assert o is things
    return x + jnp.ones(size, x.dtype)
g = jax.shard_map(f, mesh=auto, in_specs=(None, P("x"), None), out_specs=P("x"))
out["plain"] = g(things, np.arange(8.0), (2,)).tolist()
out["jit"] = jax.jit(lambda x: g(things, x, (2,)))(np.arange(8.0)).tolist()
sine = lambda d, x: jnp.sin(x) if d["a"] is things else x
h = jax.shard_map(sine, mesh=auto, in_specs=({"a": None}, P("x")), out_specs=P("x"))
out["inside"] = [str(v)[:6] for v in jax.grad(lambda x: h({"a": things}, x).sum())(np.arange(8.0)).tolist()]
""")


@pytest.mark.parametrize("name", ["inv", "solve"])
def test_solves_inside_shard_map(name):
    run(f"""
rng = np.random.default_rng(0)
a = rng.standard_normal((4, 5, 5)).astype("float32") * 0.1 + np.eye(5, dtype="float32")
b = np.arange(5.0, dtype="float32")
mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
one = dict(
    inv=lambda a: jnp.linalg.inv(a[0])[None],
    solve=lambda a: jnp.linalg.solve(a[0], b)[None],
)[{name!r}]
f = jax.shard_map(one, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
out["value"] = [round(float(v), 2) for v in f(a).ravel()]
out["gradient"] = [round(float(v), 1) for v in jax.jit(jax.grad(lambda a: jnp.sin(f(a)).sum()))(a).ravel()]
""")


def test_keys_of_cut_seeds():
    run("""
from jax._src.random import prng, threefry2x32
seeds = jax.device_put(np.arange(16, dtype=np.uint32).reshape(8, 2), NamedSharding(auto, P("x", "y")))
keys = jax.jit(lambda s: prng.random_seed(s, impl=threefry2x32.threefry_prng_impl).T)(seeds)
out["keys"] = [str(keys.sharding), jax.random.key_data(keys).tolist()]
""")


def test_devices_of_somebodys_own():
    run("""
class Device:
    platform = device_kind = "somebody's"
    process_index = 0
    def __init__(self, id):
        self.id = id
mesh = Mesh(np.array([Device(i) for i in range(4)]).reshape(2, 2), ("x", "y"))
out["shape"] = [dict(mesh.shape), str(mesh)]
out["parts"] = [[d.id, str(i)] for d, i in NamedSharding(mesh, P("x")).devices_indices_map((4, 4)).items()]
""")


def test_what_smap_cuts():
    run("""
with jax.set_mesh(explicit):
    x = jax.device_put(np.arange(8.0).reshape(4, 2), P("x"))
    out["inferred"] = jax.smap(lambda a: a * lax.axis_size("x"), out_axes=0, axis_name="x")(x).tolist()
with jax.set_mesh(auto):
    out["refused"] = refused(TypeError, lambda: jax.smap(lambda a: a, out_axes=0, axis_name="x")(np.arange(4)))
""")


def test_meshes_around_by_their_axes_alone():
    run("""
from jax.sharding import use_abstract_mesh
with jax.set_mesh(explicit):
    with use_abstract_mesh(AbstractMesh((8,), ("z",))):
        out["renamed"] = str(jnp.arange(8).sharding)
    with use_abstract_mesh(AbstractMesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)):
        out["types"] = str(jnp.arange(8).sharding)
    def other():
        with use_abstract_mesh(AbstractMesh((4,), ("x",))):
            return jnp.arange(8)
    out["refused"] = refused(ValueError, other)
    out["after"] = str(jnp.arange(8).sharding)
""")


def test_shards_of_pmap():
    run("""
import warnings
from jax._src import api
parts = [jax.device_put(np.float32(i), d) for i, d in enumerate(jax.devices())]
whole = api.device_put_sharded(parts, jax.devices())
out["whole"] = [whole.tolist(), whole.shape, [s.device.id for s in whole.addressable_shards]]
out["refused"] = [
    refused(ValueError, lambda: api.device_put_sharded(parts[:2], jax.devices())),
    refused(ValueError, lambda: jax.pmap(lambda x: x, devices=[])),
]
""")


def test_iteration_takes_rows_off_what_is_cut():
    found = run("""
for kind in (AxisType.Explicit, AxisType.Auto):
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(kind, kind))
    for spec in (P("x"), P(None, "y"), P(("x", "y")), P("x", "y"), P()):
        x = jax.device_put(jnp.arange(64.0).reshape(8, 8), NamedSharding(mesh, spec))
        rows = [row for row in x]
        out[f"{kind} {spec}"] = [
            [float(row.sum()) for row in rows], len(rows[0].sharding.device_set), rows[0].committed,
            jnp.stack(rows).shape,
        ]
""")
    assert len(found) == 10 and [rows[1:3] for rows in found.values()] == 2 * (4 * [[1, False]] + [[8, True]])


def test_axes_that_cut_what_vmap_maps():
    run("""
f = jax.shard_map(jnp.sin, mesh=auto, in_specs=P("x"), out_specs=P("x"))
x = np.arange(16.0).reshape(2, 8)
out["another"] = jax.vmap(f, spmd_axis_name="y")(x).shape
out["refused"] = refused(ValueError, lambda: jax.vmap(f, spmd_axis_name="x")(x))
""")


def test_axes_twice_and_results_that_differ():
    run("""
def said(f, *parts):
    try:
        f()
    except Exception as error:
        return [part in str(error) for part in parts]
out["twice"] = said(
    lambda: NamedSharding(auto, P("x", "x")), "at most one positional dimension", "duplicate entries for `x`"
)
f = jax.shard_map(lambda a: a * 2, mesh=auto, in_specs=P("x", "y"), out_specs=P("x"))
out["differ"] = said(lambda: f(np.ones((4, 4))), "require replication", "statically inferred given the mesh")
""")


def test_types_inside_shard_map():
    run("""
def f(p, x):
    t = jax.eval_shape(lambda a, b: a.sum() + b.sum(), p, x)
    out["differs"] = [sorted(jax.typeof(t).mat.varying), sorted(jax.typeof(lax.full_like(t, 1)).mat.varying)]
    return x
jax.shard_map(f, mesh=auto, in_specs=(P(), P("x")), out_specs=P("x"))(np.ones(2), np.ones(4))
""")


SAID = """
def said(f, kind, *parts):
    try:
        return shown(f())
    except kind as error:
        return [part in str(error) for part in parts]
"""


def test_programs_under_a_mesh_are_for_its_devices():
    run("""
from jax.experimental.pjit import pjit
lies = lambda x: [str(x.sharding), len(x.devices())]
one = jnp.arange(8.0)
with auto:
    out["of jit"] = lies(jax.jit(jnp.sin)(one))
    out["of pjit"] = [lies(pjit(lambda x: x)(one)), lies(pjit(lambda: 1)()), lies(pjit(pjit(lambda x: x))(one))]
with jax.set_mesh(auto):
    out["auto"] = [lies(jax.jit(jnp.sin)(one)), lies(jax.jit(lambda: 1)())]
with jax.set_mesh(explicit):
    out["explicit"] = lies(jax.jit(lambda: jnp.ones((2, 2)))())
    cut = jax.device_put(one, P("x"))
    out["cut"] = lies(jax.jit(lambda x: (x, x.sum()))(cut)[1])
out["outside"] = lies(jax.jit(jnp.sin)(one))
""")


def test_what_was_put_elsewhere_is_refused():
    run(
        SAID
        + """
first, second = jax.devices()[:2]
a, b = jax.device_put(np.arange(3), first), jax.device_put(np.arange(3), second)
out["committed"] = [a.committed, jnp.arange(3).committed, jnp.arange(3).addressable_shards[0].data.committed]
words = "Received incompatible devices for jitted computation. Got argument"
def two(x, y):
    return x, y
out["two devices"] = said(
    lambda: jax.jit(two)(a, b), ValueError, words, "x of two with shape int32[3]", "device ids [0]", "device ids [1]"
)
out["outside of jit"] = said(lambda: jnp.concatenate([a, b]), ValueError, words, "of concatenate with shape int32[3]")
rows, blocks = NamedSharding(auto, P("x")), NamedSharding(auto, P("x", "y"))
out["constraint"] = said(
    lambda: jax.jit(lambda x: lax.with_sharding_constraint(x, rows))(jax.device_put(np.zeros(8), second)),
    ValueError, words, "sharding_constraint inside jit",
)
x = jax.device_put(np.zeros((8, 2), np.float32), blocks)
f = jax.jit(lambda x: x, in_shardings=rows)
out["in_shardings"] = said(
    lambda: f(x), ValueError, "Sharding passed to jit does not match the sharding on the respective arg"
)
out["not put anywhere"] = str(f(np.zeros((8, 2))).sharding)
compiled = f.lower(jax.ShapeDtypeStruct((8, 2), np.float32)).compile()
out["compiled"] = said(lambda: compiled(x), ValueError, "Computation was compiled for input shardings")
out["as it was compiled for"] = str(compiled(jax.device_put(x, rows)).sharding)
with jax.set_mesh(auto):
    out["mesh around"] = said(lambda: jax.jit(lambda x: x)(b), ValueError, "Received incompatible devices")
out["by keyword"] = said(lambda: f(x=x), ValueError, "does not support kwargs")
"""
    )


def test_specs_without_a_mesh():
    run(
        SAID
        + """
spec = jax.ShapeDtypeStruct((8,), np.float32, sharding=P("x"))
with jax.set_mesh(explicit):
    out["type"] = str(spec.sharding)
    assertion = "acts as an assert when all axes of mesh are of type `Explicit`"
    f = jax.jit(lambda x: lax.with_sharding_constraint(x, P("x")))
    out["as it lies"] = str(f(jax.device_put(np.arange(8), P("x"))).sharding)
    out["otherwise"] = said(lambda: f(jax.device_put(np.arange(8), P())), AssertionError, assertion)
    out["pcast"] = said(lambda: lax.pcast(np.arange(8), "x", to="varying"), ValueError, "pvary should be called under")
out["no mesh"] = [
    said(lambda: spec.sharding, TypeError, "the context mesh cannot be empty"),
    said(lambda: jax.jit(lambda x: lax.with_sharding_constraint(x, P("x")))(np.arange(8)), RuntimeError, "non-empty"),
]
many = lambda: jax.ShapeDtypeStruct((8,), np.float32, sharding=P(None, "x"))
out["too many dimensions"] = said(many, ValueError, "only valid for values of rank at least 2")
"""
    )


def test_loops_and_branches_inside_shard_map_agree():
    run(
        SAID
        + """
fixed = "This might be fixed by"
def shard(f, in_specs, **options):
    return jax.shard_map(f, mesh=auto, in_specs=in_specs, out_specs=P(("x", "y")), **options)
x = jnp.arange(8.0)
def swapped(x, y):
    return lax.scan(lambda c, _: ((c[1], c[0]), ()), (x, y), (), length=3)[0][1]
fits = lambda x, y: swapped(x, lax.pcast(y, "x", to="varying"))
out["scan"] = [said(lambda: shard(swapped, (P("x"), P()))(x, x[:2]), TypeError, fixed, "('x',)", "to the initial")]
out["fixed"] = shard(fits, (P("x"), P()))(x, x[:2]).tolist()
chosen = lambda x, y: lax.cond(True, lambda x, y: x, lambda x, y: y, x, y)
out["cond"] = said(
    lambda: shard(chosen, (P("x"), P("y")))(x, x[:4]), TypeError, "('y',)", "to the output of true_fun"
)
def counted(x):
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + x), (0, jnp.zeros(1)))[1]
out["while"] = said(lambda: shard(counted, P(("x", "y")))(x), TypeError, "equal types")
out["not followed"] = shard(counted, P(("x", "y")), check_vma=False)(x).tolist()
out["loops of the library"] = shard(lambda x: jax.random.poisson(jax.random.key(0), x), P(("x", "y")))(x).shape
"""
    )


def test_meshes_of_shard_map():
    run(
        SAID
        + """
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
sines = lambda mesh: jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
x = np.arange(8.0, dtype=np.float32)
cut = jax.device_put(x, NamedSharding(mesh, P("x")))
out["without devices"] = [
    str(sines(mesh.abstract_mesh)(cut).sharding),
    said(lambda: sines(mesh.abstract_mesh)(x), ValueError, "Please pass `jax.Array`s with a `NamedSharding`"),
    said(lambda: sines(AbstractMesh((4,), ("x",)))(cut), ValueError, "Mesh shape of the input"),
]
with jax.set_mesh(mesh):
    out["around"] = [str(sines(mesh)(x).sharding)]
    out["another"] = said(lambda: sines(explicit)(x), ValueError, "should match the mesh passed to shard_map")
inside = lambda mesh: jax.jit(jax.shard_map(
    lambda x: jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("y"), out_specs=P("y"), axis_names={"y"})(x),
    mesh=auto, in_specs=P("x"), out_specs=P("x"), axis_names={"x"},
))
out["inside"] = [inside(None)(x).shape]
out["inside, with the mesh"] = said(lambda: inside(auto)(x), ValueError, "should match the mesh passed to shard_map")
"""
    )


def test_views_of_shard_map():
    run("""
rows = lambda f: jax.shard_map(f, mesh=auto, in_specs=P("x"), out_specs=P("x"))
inside = lambda f, *args: [str(e.primitive) for e in jax.make_jaxpr(f)(*args).jaxpr.eqns[0].params["jaxpr"].eqns]
x = jnp.arange(8.0)
out["sums"] = inside(rows(lambda x: lax.psum(x, "x")), x)
out["whole and cut"] = inside(
    jax.shard_map(lambda x, y: x * y, mesh=auto, in_specs=(P(), P("x")), out_specs=P("x")), x[:2], x
)
for name, f in {"plain": rows(jnp.exp), "jitted": jax.jit(rows(jnp.exp))}.items():
    first, *_, last = jax.make_jaxpr(jax.grad(lambda x: f(x).sum()))(x).jaxpr.eqns
    out[name] = [len(first.outvars), first.outvars[0] in last.invars]
""")


def test_shardings_in_containers_of_any_class():
    # A state of training whose fields are shardings, as flax has it; None says nothing of a field.
    found = both(
        """
        import dataclasses
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

        @jax.tree_util.register_dataclass
        @dataclasses.dataclass
        class State:
            w: object
            step: object
            name: str = dataclasses.field(default="a", metadata={"static": True})

        mesh = Mesh(np.array(jax.devices()[:2]), ("d",))
        cut, whole = NamedSharding(mesh, P("d")), NamedSharding(mesh, P())
        state, places = State(jnp.ones((2, 2)), jnp.float32(3)), State(cut, whole)
        step = lambda s: State(s.w * 2, s.step + 1)
        specs = lambda s: [str(s.w.sharding.spec), s.w.tolist(), float(s.step)]
        out["jit"] = specs(jax.jit(step, in_shardings=(places,), out_shardings=places)(state))
        out["some"] = specs(jax.jit(step, in_shardings=(State(cut, None),), out_shardings=State(cut, None))(state))
        out["put"] = specs(jax.device_put(state, places)), float(jax.device_put(state, State(cut, None)).step)
        out["devices"] = jax.device_put(state, State(jax.devices()[0], whole)).w.tolist()
        out["constraint"] = jax.jit(lambda s: jax.lax.with_sharding_constraint(s, places))(state).w.tolist()
        spec = State(P("d"), P())
        out["map"] = specs(jax.shard_map(step, mesh=mesh, in_specs=(spec,), out_specs=spec)(state))
        wrong = {}
        for name, f in {
            "jit": lambda: jax.jit(step, in_shardings=(State(cut, 3),))(state),
            "put": lambda: jax.device_put(state, State(cut, 3)),
            "map": lambda: jax.shard_map(step, mesh=mesh, in_specs=(State(P(), 3),), out_specs=spec)(state),
        }.items():
            try:
                f()
            except (TypeError, ValueError):
                wrong[name] = True
        out["wrong"] = sorted(wrong)
        """,
        **DEVICES,
    )
    assert found["jit"] == ["P('d',)", [[2, 2], [2, 2]], 4] and found["wrong"] == ["jit", "map", "put"]


@pytest.mark.parametrize("kind", ["TPU v3", "TPU v4", "TPU v5 lite", "TPU v5p", "TPU7x"])
def test_meshes_on_tori(kind):
    run(
        f"kind = {kind!r}"
        + """
import itertools
from types import SimpleNamespace as Device
from jax.experimental import mesh_utils
def chips(*sizes, cores=1):
    places = itertools.product(*map(range, sizes[::-1]), range(cores))
    return [
        Device(id=n, platform="tpu", device_kind=kind, process_index=0, slice_index=0, coords=place[2::-1],
            core_on_chip=place[3])
        for n, place in enumerate(places)
    ]
def ids(*args, **options):
    try:
        return np.vectorize(lambda device: device.id)(mesh_utils.create_device_mesh(*args, **options)).tolist()
    except (NotImplementedError, AssertionError, ValueError):
        return "refused"
shapes = [(8,), (2, 4), (4, 2), (16,), (4, 4), (2, 8), (1, 16), (32,), (8, 4), (2, 2, 8), (64,), (16, 4), (4, 16),
    (2, 1, 32), (8, 8, 1), (4, 64), (64, 4)]
tori = [chips(2, 2, 2), chips(4, 2, 1), chips(4, 4, 1), chips(2, 2, 4), chips(2, 2, 2, cores=2), chips(4, 4, 4),
    chips(4, 8, 8), chips(2, 2, 1, cores=2), chips(4, 4, 1, cores=2)]
for shape, devices, split in itertools.product(shapes, tori, (False, True)):
    if np.prod(shape) == len(devices):
        out[f"{shape} {len(devices)} {devices[-1].coords} {split}"] = ids(
            shape, devices, allow_split_physical_axes=split
        )
out["contiguous"] = [ids(shape, chips(4, 8, 8), contiguous_submeshes=True) for shape in ((64, 4), (128, 2))]
out["a hole"] = ids((7,), chips(2, 2, 2)[1:])
"""
    )


def test_where_results_of_vmap_lie():
    run("""
cut = lambda x: lax.with_sharding_constraint(x, NamedSharding(auto, P("x")))
rows = jax.shard_map(lambda x: 2 * x, mesh=auto, in_specs=P("x"), out_specs=P("x"))
x = jnp.arange(32.0).reshape(8, 4)
for name, f in {"constraint": cut, "jitted": jax.jit(cut), "rows": rows}.items():
    out[name] = [str(jax.vmap(f)(x).sharding), jax.vmap(f)(x).tolist()]
spmd = lambda f: str(jax.vmap(f, spmd_axis_name="y")(x).sharding)
out["spmd"] = [spmd(jax.jit(cut)), str(jax.jit(jax.vmap(cut, spmd_axis_name="y"))(x).sharding)]
one = SingleDeviceSharding(jax.devices()[0])
out["spmd on one device"] = refused(
    ValueError, lambda: jax.jit(jax.vmap(lambda x: lax.with_sharding_constraint(x, one), spmd_axis_name="x"))(x)
)
with auto:
    from jax.experimental.pjit import pjit
    f = pjit(lambda x, y: (x + y, x), in_shardings=P("x"), out_shardings=P("x"))
    out["pjit"] = [str(r.sharding) for r in jax.vmap(f, in_axes=(None, 0), out_axes=(0, None))(x[0], x)]
""")


def test_constraints_inside_programs():
    run("""
sizes = jax.jit(lambda x: lax.with_sharding_constraint(x[:3] * 2, NamedSharding(auto, P("x"))).sum())
out["not shared evenly"] = float(sizes(jnp.arange(8.0)))
mixed = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
with jax.set_mesh(mixed):
    x = jax.device_put(np.arange(16).reshape(8, 2), P("x"))
    cut = jax.jit(lambda x: lax.with_sharding_constraint(x, P("y")))(x)
    out["besides what types say"] = [cut.sharding.shard_shape(cut.shape), cut.tolist()]
eqn = lambda f, *args: jax.make_jaxpr(f)(*args).eqns[0]
place = NamedSharding(auto, P("x", P.UNCONSTRAINED))
params = eqn(lambda x: lax.with_sharding_constraint(x, place), jnp.ones((4, 2))).params
out["as parameters"] = [str(params["sharding"]), sorted(params["unconstrained_dims"])]
params = eqn(jax.shard_map(jnp.sin, mesh=auto, in_specs=P("x", "y"), out_specs=P("x", "y")), jnp.ones((4, 2))).params
out["of shard_map"] = [str(params["in_specs"]), str(params["out_specs"]), str(params["mesh"])]
""")


def test_devices_when_compiled():
    run(
        SAID
        + """
mesh = jax.make_mesh((2, 1), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
place = NamedSharding(mesh.abstract_mesh, P("x"))
typed = jax.ShapeDtypeStruct((8, 2), np.float32, sharding=place)
f = jax.jit(lambda x: x * 2)
lowered = f.trace(typed).lower(lowering_platforms=("cpu",))
devices = jax.devices()[2:4]
compiled = lowered.compile(device_assignment=tuple(devices))
x = np.arange(16.0, dtype=np.float32).reshape(8, 2)
there = jax.device_put(x, NamedSharding(Mesh(np.array(devices).reshape(2, 1), ("x", "y")), P("x")))
out["on them"] = [sorted(d.id for d in compiled(there).devices()), compiled(there).tolist()]
named = jax.jit(lambda x: x * 2, in_shardings=place, out_shardings=place)
again = named.trace(typed).lower(lowering_platforms=("cpu",))
out["in_shardings"] = [sorted(d.id for d in again.compile(device_assignment=tuple(devices))(there).devices())]
concrete = jax.ShapeDtypeStruct((8, 2), np.float32, sharding=NamedSharding(mesh, P("x")))
out["refused"] = [
    said(lambda: lowered.compile(), RuntimeError, "device_assignment cannot be `None` during compilation"),
    said(lambda: lowered.compile(device_assignment=(jax.devices()[0],)), ValueError, "must match the length of device"),
    said(lambda: f.lower(typed), ValueError, "lowering_platforms"),
    said(
        lambda: f.lower(concrete).compile(device_assignment=(jax.devices()[0],)), ValueError,
        "device_assignment passed to `.compile` must match",
    ),
]
"""
    )


def test_what_functions_refuse_of_cut_dimensions():
    run(
        SAID
        + """
jax.set_mesh(explicit)
x = jax.device_put(np.arange(64.0).reshape(8, 8), P("x", "y"))
jitted = lambda f: lambda: jax.jit(f)(x)
sums = P(None, unreduced={"y"})
pinned = NamedSharding(explicit.abstract_mesh, P("x"), memory_kind="pinned_host")
out["said"] = {
    "cumsum": said(jitted(jnp.cumsum), Exception, "should be fully replicated"),
    "tile": said(jitted(lambda x: jnp.tile(x, (2, 1))), Exception, "tiling is non-trivial"),
    "unstack": said(jitted(lambda x: jnp.unstack(x, axis=0)), Exception, "cannot be sharded on the unstacking axis"),
    "split": said(jitted(lambda x: lax.split(x, (1, 7), axis=0)), Exception, "split on sharded dims"),
    "scan": said(jitted(lambda x: lax.scan(lambda c, x: (c, x), 0.0, x)), ValueError, "0th dimension of all xs"),
    "reduce_sum": said(
        jitted(lambda x: lax.reduce_sum(x, axes=(0,), out_sharding=sums)), Exception, "that were summed over"
    ),
    "einsum": said(
        jitted(lambda x: jnp.einsum("ab,bc->ac", x, x, out_sharding=P("x", unreduced={"y"}))), Exception, "contracting"
    ),
    "reshape": said(
        jitted(lambda x: jnp.reshape(x, (64,), out_sharding=P(unreduced={"x"}))), ValueError, "cannot contain unreduced"
    ),
    "segments": refused(
        NotImplementedError,
        lambda: jax.jit(lambda x: jax.ops.segment_max(
            x, jnp.zeros(8, int), num_segments=2, out_sharding=P(unreduced={"x"})))(x),
    ),
    "memory": said(
        lambda: jnp.full((8,), 0, out_sharding=pinned), ValueError, "memory_kind is not allowed",
    ),
}
like = lax.broadcast_like(np.arange(8.0), x)
out["like"] = [str(like.sharding.spec), str(lax.rng_bit_generator(
    np.arange(4, dtype=np.uint32), (8, 2), out_sharding=P("x"))[1].sharding.spec)]
out["one device"] = jax.typeof(jax.device_put(np.arange(3), SingleDeviceSharding(jax.devices()[0]))).sharding.mesh.empty
lowered = jax.jit(lambda x: x * 2, in_shardings=P("x"), out_shardings=P("x")).lower(np.arange(8))
out["arguments"] = str(lowered.in_avals[0][0].sharding.spec)
"""
    )


def test_axes_of_size_one_that_types_do_not_name():
    run("""
mesh = jax.make_mesh((4, 1), ("x", "y"))
jax.config.update("jax_remove_size_one_mesh_axis_from_type", True)
jax.set_mesh(mesh)
x = jax.device_put(np.arange(32.0).reshape(8, 4), P("x", "y"))
kept = jax.jit(lambda x: lax.with_sharding_constraint(x * 2, P("x", "y")))(x)
out["constraint"] = str(kept.sharding.spec)
y = jax.device_put(np.arange(32.0).reshape(8, 4), P(("x", "y")))
out["vmap"] = str(jax.jit(jax.vmap(lambda x: x * 2, spmd_axis_name=("x", "y")))(y).sharding.spec)
seen = []
def total(x):
    seen.append(sorted(x.aval.mat.varying))
    return lax.psum(x, "x")
result = jax.jit(jax.shard_map(total, in_specs=P("x", "y"), out_specs=P()))(x)
out["shard_map"] = [seen[-1], str(result.sharding.spec), result.tolist()]
""")


def test_arrays_and_keys_and_references_of_devices():
    run("""
order = np.array(jax.devices())[[0, 2, 3, 1, 4, 6, 7, 5]].reshape(4, 2)
place = NamedSharding(Mesh(order, ("x", "y")), P("x", "y"))
whole = np.arange(16.0, dtype=np.float32).reshape(8, 2)
parts = [jax.device_put(whole[place.devices_indices_map((8, 2))[d]], d) for d in jax.devices()]
out["in any order"] = jax.make_array_from_single_device_arrays((8, 2), place, parts).tolist()
with jax.enable_custom_prng():
    out["typed key"] = str(jax.random.PRNGKey(0).dtype)
out["words"] = str(jax.random.PRNGKey(0).dtype)
with jax.set_mesh(explicit):
    ref = jax.new_ref(jnp.zeros(8, "float32", out_sharding=P("x")))
    @jax.jit
    @jax.shard_map(out_specs=None)
    def count(ref):
        ref[...] += lax.axis_index("x").astype("float32")
    count(ref)
    out["reference"] = np.asarray(ref[...]).tolist()
    x = jax.device_put(jnp.arange(8.0), P("x"))
    sums = jax.jit(lambda x: lax.reduce_sum(x, [0], out_sharding=P(unreduced={"x"})))(x)
    out["a sum in parts"] = str(sums).split("sharding=")[0]
f = lambda x: x
out["pmap"] = jax.pmap(f).__wrapped__ is f
""")


def test_a_mesh_hides_the_name_of_a_mapped_axis():
    run("""
x = jnp.arange(32.0).reshape(4, 8)
cut = lambda x: jax.shard_map(lambda x: 2 * x, mesh=auto, in_specs=P("y"), out_specs=P("y"))(x)
out["shard_map"] = jax.vmap(cut, axis_name="x")(x).tolist()
out["pmap"] = jax.vmap(jax.pmap(lambda x: 2 * x, axis_name="i"), axis_name="i")(jnp.ones((3, 2))).tolist()
""")
    found = lines(
        HEAD
        + """
cut = lambda x: jax.shard_map(lambda x: lax.psum(x, "x"), mesh=auto, in_specs=P("x"), out_specs=P())(x)
out["inside"] = jax.vmap(cut, axis_name="x")(jnp.ones((3, 8))).tolist()
out["outside"] = refused(
    NotImplementedError, lambda: jax.vmap(lambda x: lax.psum(cut(x), "x"), axis_name="x")(jnp.ones((3, 8)))
)
""",
        "-m",
        "weft.as_jax",
        **DEVICES,
    )
    assert found == {"inside": [[4.0, 4.0]] * 3, "outside": True}


def test_pictures_of_shardings():
    found = run("""
import contextlib, io
def picture(shape, spec, **options):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        jax.debug.visualize_sharding(shape, NamedSharding(auto, spec), use_color=False, **options)
    return text.getvalue().rstrip().splitlines()
shapes = [((8, 8), P("x", "y")), ((8, 8), P("x")), ((8, 8), P(None, "y")), ((16,), P("x")), ((8, 64), P(("x", "y")))]
out["pictures"] = [picture(shape, spec) for shape, spec in shapes]
out["larger"] = picture((16,), P("x"), scale=8.0)
""")
    assert found["pictures"][0][1] == "│  CPU 0   │  CPU 1   │"


def test_signatures_in_stablehlo():
    found = run("""
import re
jax.set_mesh(explicit)
x = jax.device_put(np.arange(32.0, dtype=np.float32).reshape(8, 4), P("x", "y"))
f = jax.jit(lambda x: (x * 2, lax.reduce_sum(x, axes=(0,), out_sharding=P("y", unreduced={"x"}))))
signature = lambda text: re.findall(r"sdy[.]sharding = #sdy[.]sharding(<.*?>)", text)
out["types"] = signature(f.lower(x).as_text())
jax.set_mesh(auto)
rows = NamedSharding(auto, P("x"))
twice = jax.jit(lambda x: x * 2, in_shardings=rows, out_shardings=rows)
out["out_shardings"] = signature(twice.lower(np.arange(8.0)).as_text())
""")
    assert len(found["types"]) == 3


def test_meshes_for_tests():
    found = lines(
        HEAD
        + """
import unittest
from jax._src import test_util
given = {"two": {}, "in order": {"iota_order": True}, "explicit": {"axis_types": (AxisType.Explicit,)}}
for name, more in given.items():
    mesh = test_util.create_mesh((2,), ("x",), **more)
    out[name] = [str(mesh), [d.id for d in mesh.devices.ravel()]]
try:
    test_util.create_mesh((16,), ("x",))
except unittest.SkipTest as skipped:
    out["many"] = str(skipped)
""",
        "-m",
        "weft.as_jax",
        **DEVICES,
    )  # JAX's module needs packages that JAX does not bring
    assert found["two"] == found["in order"] == ["Mesh('x': 2, axis_types=(Auto,))", [0, 1]]
    assert found["explicit"] == ["Mesh('x': 2, axis_types=(Explicit,))", [0, 1]]
    assert found["many"] == "Test requires 16 global devices and found 8."


def test_memories_of_shardings():
    run("""
named = NamedSharding(auto, P("x"), memory_kind="device")
pinned = named.with_memory_kind("pinned_host")
out["named"] = [str(named), str(pinned), pinned.with_memory_kind("device") == named]
out["array"] = jax.device_put(np.arange(8.0), pinned).sharding.memory_kind
out["unknown"] = refused(ValueError, lambda: named.with_memory_kind("no memory"))
""")


def test_collectives_in_two_parts():
    run("""
from jax._src.lax import parallel
mesh = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,))
def on_devices(f):
    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
x = jnp.arange(32.0).reshape(16, 2)
two = {
    "psum": lambda x: parallel.psum_start(x, "i").done(),
    "all_gather": lambda x: parallel.all_gather_start(x, "i", tiled=True).done(),
    "psum_scatter": lambda x: parallel.psum_scatter_start(x, "i", tiled=True).done(),
    "all_to_all": lambda x: parallel.all_to_all_start(x, "i", 0, 0, tiled=True).done(),
    "ppermute": lambda x: parallel.ppermute_start(x, "i", [(0, 1), (1, 0)]).done(),
}
for name, f in two.items():
    out[name] = on_devices(f)(x).tolist()
""")
