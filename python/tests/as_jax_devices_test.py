"""weft.as_jax: programs for devices. What is lowered and compiled for which of them, the texts of it, what Python asks
inside of shard_map, and what is refused. Each program runs under JAX, too."""

from as_jax_both import both

DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
HEAD = """
from jax.sharding import AbstractMesh, AxisType, Mesh, SingleDeviceSharding
def words(f, *wanted):
    try:
        return str(f())
    except Exception as error:
        return [isinstance(error, ValueError), *(word in str(error) for word in wanted)]
auto = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
explicit = jax.make_mesh((4, 2), ("x", "y"))
"""


def run(code):
    return both(HEAD + code, **DEVICES)


def test_lowered_once_for_devices_of_one_shape():
    found = run("""
import jax._src.util
counts = {}
def listener(name, *args):
    counts[name] = counts.get(name, 0) + 1
jax._src.util.test_event_listener = listener
f = jax.jit(lambda x: x * 2)
first, second = Mesh(jax.devices()[:2], "x"), Mesh(jax.devices()[2:4], "x")
given = [jax.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, P("x"))) for mesh in (first, second)]
counts.clear()
for x in given:
    f(x)
names = "lower_jaxpr_to_module", "pxla_cached_compilation"
out["devices"] = [counts.get(name) for name in names]
counts.clear()
f(jax.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(first, P())))
out["another sharding"] = [counts.get(name) for name in names]
g = jax.jit(lambda x: x * 3)
counts.clear()
for device in jax.devices()[:2]:
    g(jax.device_put(np.arange(4.0, dtype=np.float32), device))
out["one device"] = [counts.get(name) for name in names]
counts.clear()
jax.device_put(given[0], NamedSharding(second, P("x")))
out["blocks"] = counts.get("batched_copy_array")
""")
    assert found["devices"] == [1, 2] and found["another sharding"] == [1, 1]


def test_what_the_compiler_takes():
    run("""
@jax.jit
def f(x):
    y = jax.lax.with_sharding_constraint(x + 1, NamedSharding(auto, P("x", "y")))
    return y * 2
lowered = f.lower(np.ones((8, 8), np.float32))
text = lowered.as_text(dialect="hlo")
out["shapes"] = "f32[8,8]" in text
hlo = lowered.compiler_ir("hlo").as_hlo_text()
out["tiles"] = "sharding={devices=[4,2]<=[8]}" in hlo
from jax._src.lib import xla_client
tile = xla_client.HloSharding.iota_tile
out["order"] = [
    str(tile(dims, shape, turned, []))
    for dims, shape, turned in (
        ([4, 2], [2, 2, 2], [0, 1, 2]),
        ([4, 2], [2, 2, 2], [2, 0, 1]),
        ([2, 4], [2, 1, 4], [2, 1, 0]),
        ([1, 8], [8], [0]),
        ([2, 2, 2], [2, 2, 2], [1, 0, 2]),
    )
]
h = jax.jit(lambda x: (x / np.float32(-0.0), x * np.float32(2.5), x + np.float32(1e10)))
text = h.lower(np.float32(1)).as_text()
out["numbers"] = [f"dense<{word}>" in text for word in ("-0.000000e+00", "2.500000e+00", "1.000000e+10", "0.0")]
""")


def test_a_mesh_without_devices_around():
    run("""
mesh = AbstractMesh((2,), ("x",), (AxisType.Explicit,))
other = AbstractMesh((1,), ("x",), (AxisType.Explicit,))
struct = lambda mesh: jax.ShapeDtypeStruct((8, 2), np.float32, sharding=NamedSharding(mesh, P("x")))
f = jax.jit(lambda x: x * 2)
with jax.sharding.use_abstract_mesh(mesh):
    out["around"] = str(jax.sharding.get_abstract_mesh())
    out["results"] = [str(f.trace(x).out_info.sharding) for x in (struct(mesh), np.ones((4, 2), np.float32))]
    held = struct(mesh)
    out["like"] = str(jax.jit(lambda: jnp.zeros_like(held)).trace().out_info.sharding)
    lowered = f.trace(struct(mesh)).lower(lowering_platforms=("cpu",))
    out["other"] = words(lambda: f.trace(struct(other)))
open_mesh = AbstractMesh((2,), ("x",), (AxisType.Auto,))
with jax.sharding.use_abstract_mesh(open_mesh):
    twice = lambda x: x * 2
    for name, f in {
        "constraint": lambda x: jax.lax.with_sharding_constraint(x, P("x")),
        "shard_map": jax.shard_map(twice, in_specs=P("x"), out_specs=P("x")),
    }.items():
        out[name] = jax.jit(f).trace(jax.ShapeDtypeStruct((4,), np.float32)).out_info.shape
out["count"] = "mhlo.num_partitions = 2" in lowered.as_text()
out["after"] = jax.sharding.get_abstract_mesh().empty
""")


def test_meshes_that_types_name():
    run("""
with jax.set_mesh(explicit):
    x = jax.device_put(np.arange(8), P("x"))
    looks = jax.jit(lambda x: jax.lax.with_sharding_constraint(x, P("x")))
    out["looks"] = "sharding_constraint" in str(looks.trace(x).jaxpr)
    out["open"] = words(lambda: NamedSharding(explicit, P(P.UNCONSTRAINED)), "UNCONSTRAINED")
    out["lies"] = [str(y.sharding.spec) for y in (jnp.repeat(np.eye(3), np.array((1, 1, 1)), axis=0),
        jnp.repeat(jnp.arange(4), 2), jnp.tensordot(np.eye(2), np.eye(2)), jnp.dot(np.eye(2), np.ones(2)))]
    rows = jax.device_put(jnp.eye(4), P("x"))
    out["repeat"] = str(jnp.repeat(rows, np.array((1, 1, 1, 1)), axis=0, out_sharding=P("x")).sharding.spec)
    named = Mesh(np.array(jax.devices()).reshape(4, 2), ("a", "b"), axis_types=(AxisType.Explicit,) * 2)
    y = jax.device_put(np.arange(8), NamedSharding(named, P()))
    out["another mesh"] = words(lambda: jax.jit(lambda x: x * 2)(y), "context mesh", "aval mesh")
numbered = Mesh(np.array(jax.devices()).reshape(4, 2), [0, 1])
out["numbered"] = [numbered.axis_names, numbered._local_mesh(0).devices.shape]
out["no process"] = words(lambda: numbered._local_mesh(3))[0]
@jax.jit
def constrained(x):
    x = jax.lax.with_sharding_constraint(x, NamedSharding(auto, P("x")))
    out["aval"] = x.aval.sharding.mesh == auto.abstract_mesh
    return x
constrained(jnp.zeros((4, 2)))
""")


def test_options_of_jit():
    run("""
device = jax.devices()[1]
import warnings
@jax.jit(static_argnums=(0,), device=device)
def zeros(shape):
    return jnp.zeros(shape)
out["static"] = [zeros((2, 3)).shape, zeros((2, 3)).devices() == {device}]
@jax.jit(static_argnums=(0,), device=jax.devices()[0])
def cut(shape):
    return jax.lax.with_sharding_constraint(jnp.zeros(shape), NamedSharding(auto, P("x", "y")))
out["cut"] = words(lambda: cut((8, 8)), "Received incompatible devices", "explicit output sharding", "inside jit")
double = jax.jit(lambda x: x * 2, device=device)
there = jax.device_put(np.arange(8), NamedSharding(auto, P("x")))
out["compiled"] = double.lower(jax.ShapeDtypeStruct((8,), np.int32)).compile()(there).devices() == {device}
place = NamedSharding(auto, P("x"))
listed = jax.jit(lambda x, y: x + y, in_shardings=[place, place], out_shardings=place)
out["list"] = str(listed(np.ones(8), np.ones(8)).sharding.spec)
out["length"] = words(lambda: jax.jit(lambda x: x, in_shardings=[place, place])(np.ones(8)),
    "pjit in_shardings specification must be a tree prefix of the positional arguments tuple",
    "got a tuple or list of length 2 for an args tuple of length 1.")
out["no tuple"] = words(lambda: jax.jit(lambda x: x["a"], in_shardings={"a": place})({"a": np.ones(8)}),
    "is not a tuple", "might need to be wrapped in a singleton tuple.")
out["out"] = words(lambda: jax.jit(lambda x: [x], out_shardings=[place, place])(np.ones(8)), "pjit out_shardings")
inner = jax.jit(lambda x: x * 2, compiler_options={"xla_embed_ir_in_executable": True})
out["options"] = [float(inner(2.0)), str(inner.lower(1.0).compile()(2.0))]
traced = lambda: jax.jit(lambda x: inner(x))(1.0), lambda: jax.grad(inner)(3.0)
out["nested"] = [words(f, "can only be passed to top-level") for f in traced]
unknown = jax.jit(lambda x: x, compiler_options={"nothing": 1})
out["unknown"] = words(lambda: unknown(1.0), "No such compile option")
shape = jax.eval_shape(jax.jit(lambda x: x * 2, out_shardings=place), np.ones(8, np.float32))
out["eval_shape"] = str(shape.sharding.spec)
traces = []
def counted(x):
    traces.append(1)
    return x
from jax.experimental.pjit import pjit
for _ in range(2):
    pjit(counted, in_shardings=place, out_shardings=None)(np.ones(8, np.float32))
out["traces"] = len(traces)
""")


def test_layouts_of_what_is_donated():
    run("""
from jax.experimental.layout import Format, Layout
there = lambda: jax.device_put(np.arange(8.0), NamedSharding(auto, P("x")))
f = jax.jit(lambda x: x * 2, donate_argnums=0, in_shardings=Format(Layout.AUTO))
out["in"] = words(lambda: f(jnp.arange(8)), "output layout", "AUTO")
g = jax.jit(lambda x: x * 2, donate_argnums=0, out_shardings=Format(Layout.AUTO))
out["out"] = words(lambda: g(jnp.arange(8)), "input layout", "AUTO")
out["lies"] = np.asarray(g(there())).tolist()
""")


def test_python_asks_inside_of_shard_map():
    found = run("""
mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
cut = dict(mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))
seen = out["seen"] = []
def signed(x):
    total = jax.lax.psum(x.sum(), ("x", "y"))
    if total < 0:
        return x
    if total > 100:
        return x * total
    return -x
x = np.arange(16.0, dtype=np.float32).reshape(4, 4)
for factor in (-1, 0.5, 1):
    out[str(factor)] = np.asarray(jax.shard_map(signed, **cut)(x * factor)).tolist()
def index():
    place = jax.lax.psum(jax.lax.axis_index("x"), "x")
    return 1.0 if place > 0 else -1.0
out["index"] = float(jax.shard_map(index, mesh=mesh, in_specs=(), out_specs=P())())
def shown(x):
    seen.append(["at mesh coordinates (x, y,) = (1, 0)" in str(x), "[[ 8.  9.]" in str(x)])
    return x
jax.shard_map(shown, **cut)(x)
seen[:] = seen[-1:]
out["differs"] = words(lambda: jax.shard_map(lambda x: x if x.sum() > 0 else -x, **cut)(x))[0] is not None
out["jitted"] = words(lambda: jax.jit(jax.shard_map(signed, **cut))(x))[0] is not None
move = lambda x: x + jax.device_put(1, jax.devices()[0])
out["device"] = words(lambda: jax.shard_map(move, **cut)(x), "got device")
out["device in jit"] = np.asarray(jax.jit(jax.shard_map(move, **cut))(x)).tolist()
""")
    assert found["seen"] == [[True, True]]


def test_operands_that_vary_alike():
    run("""
mesh = jax.make_mesh((2,), ("i",))
with jax.set_mesh(mesh):
    x, y = jax.device_put(jnp.ones((2, 2)), P("i", None)), jax.device_put(jnp.ones((2, 2)), P())
    f = jax.shard_map(lambda x, y: x * y, in_specs=(P("i"), P()), out_specs=P("i"))
    g = jax.shard_map(lambda x, y: x * jax.lax.pcast(y, "i", to="varying"), in_specs=(P("i"), P()), out_specs=P("i"))
    from jax._src import config
    with config.auto_pcast(False):
        out["off"] = [words(lambda: f(x, y), "requires varying manual axes to match"), g(x, y).shape]
    out["on"] = f(x, y).shape
""")


def test_shardings_in_the_words_of_xla():
    run("""
from jax._src.sharding_impls import GSPMDSharding
mesh = jax.make_mesh((2, 1), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
named = NamedSharding(mesh, P("x"))
tiles = GSPMDSharding(tuple(mesh.devices.flat), named._to_xla_hlo_sharding(2))
x = jax.device_put(np.arange(8).reshape(8, 1), tiles)
f = jax.jit(lambda x: x * 2)
out["kinds"] = [isinstance(y.sharding, GSPMDSharding) for y in (x, f(x), f(f(x)), jnp.copy(x))]
out["parts"] = [np.asarray(s.data).tolist() for s in f(x).addressable_shards]
whole = GSPMDSharding.get_replicated(tuple(jax.devices()))
out["whole"] = [jax.device_put(np.arange(2), whole).sharding.is_fully_replicated, whole.num_devices]
""")


def test_arrays_and_where_they_are():
    run("""
import warnings
x = jnp.arange(4)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    dtype = np.dtype(x)
out["dtype"] = [str(dtype), [w.category.__name__ for w in caught]]
there = jax.device_put(np.arange(8), jax.devices()[0])
out["elsewhere"] = words(lambda: jnp.array(there, device=jax.devices()[1]), "Received incompatible devices")
out["there"] = jnp.array(there, device=jax.devices()[0]).shape
inner = jax.jit(lambda x: x * 2, in_shardings=NamedSharding(auto, P("x")))
said = "Received incompatible devices", "Got argument x of", "with shape int32[8]", "jit inside jit with device ids"
out["inside"] = words(lambda: jax.jit(lambda x: inner(x + 1))(there), *said)
out["free"] = jnp.array(x, device=jax.devices()[1]).devices() == {jax.devices()[1]}
""")


def test_constraints_that_agree_are_one():
    run("""
mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
def only(closed, found):
    for eqn in closed.jaxpr.eqns if hasattr(closed, "jaxpr") else closed.eqns:
        if eqn.primitive.name == "sharding_constraint":
            found.append([str(eqn.params["sharding"].spec), sorted(eqn.params["unconstrained_dims"])])
        if "jaxpr" in eqn.params:
            only(eqn.params["jaxpr"], found)
    return found
x = jnp.ones((4, 4))
f = lambda x: jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(P.UNCONSTRAINED)))
out["mapped"] = only(jax.make_jaxpr(jax.jit(jax.vmap(f, spmd_axis_name="x")))(x), [])
out["open"] = only(jax.make_jaxpr(jax.jit(jax.vmap(f)))(x), [])
""")


def test_axes_of_several_types():
    run("""
mixed = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Explicit))
spec = lambda x: str(x.sharding.spec)
with jax.set_mesh(mixed):
    x = jax.device_put(np.arange(16.0, dtype=np.float32).reshape(4, 4), P("x", "y"))
    out["reshard"] = spec(jax.jit(lambda x: jax.reshard(x * 2, P(None, "y")))(x))
    out["einsum"] = spec(jax.jit(lambda x: jnp.einsum("ab,bc->ac", x, jnp.eye(4), out_sharding=P(None, "y")))(x))
single = jax.make_mesh((1, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
with jax.set_mesh(single):
    out["single"] = spec(jax.jit(lambda: jnp.ones((2, 2), out_sharding=P("x", None)))())
auto_mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
typed_mesh = jax.make_mesh((2, 2), ("x", "y"))
given = [jax.device_put(np.ones((4, 4)), NamedSharding(mesh, P("x", "y"))) for mesh in (auto_mesh, typed_mesh)]
with jax.set_mesh(typed_mesh):
    through = jax.jit(lambda x, y: (x, y))(*given)
out["through"] = [str(y.sharding.mesh.axis_types) for y in through]
@jax.jit
def alone(x):
    x = jax.lax.with_sharding_constraint(x, NamedSharding(auto_mesh, P("x")))
    y = jax.lax.with_sharding_constraint(x, SingleDeviceSharding(jax.devices()[0]))
    out["alone"] = [x.aval.sharding.mesh.empty, y.aval.sharding.mesh.empty]
    return x
alone(given[0])
""")


def test_what_devices_hold_is_called_with():
    """debug.callback(partitioned=True): each device with its part."""
    run("""
x = jax.device_put(np.arange(16.0, dtype=np.float32).reshape(4, 4), NamedSharding(auto, P("x", "y")))
seen = []
def f(x):
    jax.debug.callback(lambda part: seen.append(np.asarray(part).tolist()), x * 2, partitioned=True)
    return x + 1
with jax.set_mesh(auto):
    jax.block_until_ready(jax.jit(f)(x))
    jax.effects_barrier()
    out["parts"] = sorted(seen)
    seen.clear()
    jax.block_until_ready(jax.jit(jax.vmap(f))(x))
    jax.effects_barrier()
    out["of rows"] = sorted(seen)
""")


def test_convolutions_say_how_they_lie():
    run("""
jax.set_mesh(explicit)
w = np.arange(5 * 8 * 4, dtype=np.float32).reshape(5, 8, 4) % 7
x = np.arange(8 * 16 * 8, dtype=np.float32).reshape(8, 16, 8) % 5
def f(x, where=None):
    return jax.lax.conv_general_dilated(
        x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"), out_sharding=where
    )
features = P("x", None, "y")
for cut, where in ((P("x", "y"), None), (features, None), (features, P("x")), (P("x"), P(None, "y"))):
    a = jax.device_put(x, cut)
    for name, g in (("plain", f), ("jit", jax.jit(f, static_argnums=1))):
        try:
            y = g(a, where)
            out[f"{cut} {where} {name}"] = [str(y.sharding.spec), np.asarray(y).sum().item()]
        except Exception as error:
            out[f"{cut} {where} {name}"] = "`out_sharding`" in str(error)
""")


def test_results_without_values():
    """Arrays of dtype float0 are results of programs over meshes, too."""
    run("""
float0 = jax.dtypes.float0
out["made"] = [list(f(b"", dtype=float0).shape) for f in (jnp.array, jnp.asarray)]
out["of bools"] = list(jnp.asarray(np.zeros(3, bool), dtype=float0).shape)
out["jit"] = list(jax.jit(lambda x: jnp.array(b"", dtype=float0))(1.0).shape)
place = NamedSharding(auto, P("x"))
gradients = jax.grad(lambda x, n: (x * n).sum(), (0, 1), allow_int=True)
f = jax.jit(gradients, out_shardings=NamedSharding(auto, P()))
dx, dn = f(jax.device_put(np.arange(4.0, dtype=np.float32), place), np.arange(4, dtype=np.int32))
out["gradients"] = [np.asarray(dx).tolist(), list(dn.shape)]
jax.pmap(lambda x: jnp.array(b"", dtype=float0))(np.ones(8, np.float32))
""")


def test_the_guard_of_transfers_between_devices():
    found = both(
        """
        x, y = jnp.ones(3), jax.device_put(jnp.ones(3), jax.devices()[1])
        first, second = jax.devices()[:2]
        moves = {"put": lambda: jax.device_put(x, second), "stays": lambda: jax.device_put(y, second),
                 "over two": lambda: jax.device_put(x, jax.sharding.SingleDeviceSharding(second)),
                 "a tree": lambda: jax.device_put({"x": x, "y": y}, first),
                 "jit": lambda: jax.jit(lambda v: v + 1, device=second)(x)}
        for level in ("allow", "log", "disallow", "log_explicit", "disallow_explicit"):
            for name, move in moves.items():
                with jax.transfer_guard_device_to_device(level):
                    try:
                        move()
                        out[f"{level} {name}"] = "moved"
                    except RuntimeError as error:
                        out[f"{level} {name}"] = "refused"
        """,
        XLA_FLAGS="--xla_force_host_platform_device_count=8",
    )
    assert found["disallow put"] == "moved" and found["disallow jit"] == found["disallow_explicit put"] == "refused"
