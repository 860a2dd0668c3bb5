"""weft.as_jax: programs over meshes: what they say of arguments, results and errors. Each runs under JAX, too."""

from as_jax_both import both

DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
HEAD = """
import functools, re
from jax.sharding import AxisType
def words(f, *texts):
    try:
        f()
    except Exception as error:
        return [text in str(error) for text in texts]
    return "no error"
auto = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
explicit = jax.make_mesh((2, 2), ("x", "y"))
mixed = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
"""


def run(code):
    return both(HEAD + code, **DEVICES)


def test_texts_over_axes_of_both_types():
    found = run("""
constraints = lambda f, *args: re.findall("sdy.sharding_constraint [^ ]+ <(.*)> :", f.lower(*args).as_text())
with jax.set_mesh(mixed):
    a = jax.device_put(np.arange(16.0, dtype=np.float32).reshape(8, 2), P(("x", "y"), None))
    b = jax.device_put(np.arange(16.0, dtype=np.float32).reshape(2, 8), P(None, "y"))
    f = jax.jit(lambda a, b: jnp.sin(a * 2) @ b)
    out["mixed"] = constraints(f, a, b)
    out["results"] = [
        str(f(a, b).sharding.spec),
        str(jax.jit(lambda a: lax.with_sharding_constraint(a * 2, P("y")))(jax.device_put(a, P("x"))).sharding.spec),
        str(jax.jit(lambda a: a * 2)(jax.device_put(a, P("x"))).sharding.spec),
    ]
with jax.set_mesh(explicit):
    a = jax.device_put(np.arange(16.0, dtype=np.float32).reshape(8, 2), P("x", "y"))
    out["numbers"] = constraints(jax.jit(lambda a: 3 - a * 2), a)
    donated = jax.jit(lambda a: a * 2, donate_argnums=0, out_shardings=a.sharding).lower(a).as_text()
    out["donated"] = "tf.aliasing_output = 0 : i32" in donated
out["on one device"] = "tf.aliasing_output = 0 : i32" in jax.jit(lambda a: a * 2, donate_argnums=0).lower(a).as_text()
""")
    assert '@mesh, [{"x", ?}, {?}]' in found["mixed"]


def test_captured_arrays_lie_as_their_types_say():
    run("""
with jax.set_mesh(explicit):
    rows = jnp.arange(32 * 5).reshape(32, 5, out_sharding=P("x"))
    made = (lambda: rows * 2, lambda: rows[:, :-1], lambda: rows.sum(1), lambda: rows.T)
    out["captured"] = [str(jax.jit(f)().sharding.spec) for f in made]
""")


def test_reshapes_of_more_than_one_dimension():
    run("""
shapes = [
    ((4, 6, 8), (4, 2, 3, 8)), ((4, 6, 8), (4, 2, 3, 4, 2)), ((4, 6, 8), (4, 4, 2, 6)), ((4, 8, 9), (4, 2, 2, 3, 3, 2)),
    ((4, 1), (2, 2, 1)), ((4, 2, 3, 8), (4, 6, 8)), ((4, 2, 3, 2, 4), (4, 6, 8)), ((4, 6), (4, 1, 6, 1)),
    ((4, 6), (4, -1)),
]
with jax.set_mesh(explicit):
    for shape, wanted in shapes:
        x = jax.device_put(np.arange(np.prod(shape), dtype=np.float32).reshape(shape), P("x"))
        given = lambda: out.update({str((shape, wanted)): str(jnp.reshape(x, wanted).sharding.spec)})
        out[f"{shape} {wanted}"] = words(given, "not supported")
    x = jax.device_put(np.ones((4, 6, 8), np.float32), P("x"))
    out["said"] = str(jnp.reshape(x, (4, 2, 3, 4, 2), out_sharding=P("x")).sharding.spec)
""")


def test_errors_name_arguments_by_their_paths():
    run("""
first, second = (jax.device_put(np.arange(3), d) for d in jax.devices()[:2])
both_devices = ["Received incompatible devices", "device ids [0]", "device ids [1]"]
arguments = "argument x[0] of", "argument x[1] of"
out["tuple"] = words(lambda: jax.jit(lambda *x: x)(first, second), *both_devices, *arguments)
tree = {"a": {"b": first}, "c": [second]}
out["dict"] = words(lambda: jax.jit(lambda tree: tree)(tree), *both_devices, "tree['a']['b']", "tree['c'][0]")
place = NamedSharding(auto, P("x"))
x = jax.device_put(np.zeros(8), jax.devices()[0])
constrained = jax.jit(lambda x: lax.with_sharding_constraint(x, place))
out["constraint"] = words(lambda: constrained(x), "sharding_constraint inside jit with device ids [0, 1, 2, 3]")
out["prefix"] = words(lambda: jax.pmap(lambda x, y: x, in_axes=((0, 0, 0), 0))((x, x), x), "pmap in_axes[0][0]")
out["option"] = words(
    lambda: jax.jit(lambda x: x).lower(x).compile({"xla_embed_ir_in_executable": "maybe"}), "is not a valid bool value"
)
""")


def test_pmap_moves_arrays_to_its_devices():
    run("""
x = jax.pmap(lambda x: x)(np.arange(16.0).reshape(8, 2))
y = jax.pmap(lambda x: x * 2, devices=jax.devices()[::-1])(x)
out["numbers"] = np.asarray(y).tolist()
out["devices"] = [d.id for d in y.sharding.device_set] and [s.device.id for s in y.addressable_shards]
""")


def test_jitted_functions_and_specs_as_objects():
    run("""
f = jax.jit(lambda x: x)
wrapped = functools.wraps(f)(lambda x: f(x + 1))
out["wrapped"] = [hasattr(wrapped, name) for name in ("lower", "trace", "eval_shape")]
out["jitted"] = [hasattr(f, name) for name in ("lower", "trace", "eval_shape")]
out["one object"] = [P(None, "x") is P((), "x"), P("x") is P(("x",)), P("x") is P("y")]
place = NamedSharding(auto, P("x", "y"))
compiled = jax.jit(lambda x, y: x * 2, in_shardings=place).lower(np.ones((4, 4)), np.ones((4, 4))).compile()
out["input_shardings"] = [str(s) for s in compiled.input_shardings[0]][:1]
from jax.experimental.layout import Format, Layout
three = Format(Layout(major_to_minor=(0, 1, 2)), jax.sharding.SingleDeviceSharding(jax.devices()[0]))
out["layout"] = words(lambda: jax.jit(lambda x: x, in_shardings=three)(np.ones(8)), "rank of the value should match")
over = jax.shard_map(lambda x: x, mesh=explicit, in_specs=P("x"), out_specs=P("x"), axis_names={"x", "y"})
x = jax.device_put(np.ones((4, 4)), NamedSharding(explicit, P("x", "y")))
out["mapped"] = words(lambda: jax.jit(jax.vmap(over))(x), "jax.shard_map requires axis_names", "subset of")
""")


def test_default_device():
    """Where arrays are made and programs run that nobody put anywhere; what was put somewhere stays there."""
    run("""
first, second, third = jax.devices()[:3]
where = lambda x: [sorted(d.id for d in x.devices()), bool(x._committed)]
f = jax.jit(lambda x, y: x + y)
a, put = jnp.ones(3), jax.device_put(np.ones(3, np.float32), third)
out["before"] = where(f(a, a))
with jax.default_device(second):
    b = jnp.arange(3.0)
    out["made"] = [where(b), where(jax.random.key_data(jax.random.key(0))), where(jnp.asarray(np.ones(2)))]
    out["computed"] = [where(b + 1), where(f(b, b)), where(f(1.0, 2.0)), where(jax.vmap(jnp.sin)(b))]
    out["put"] = [where(f(b, put)), where(put * 2), where(jax.grad(lambda x: (x * x).sum())(put))]
    out["said"] = jax.config.jax_default_device.id
    with jax.default_device(first):
        out["inner"] = where(jnp.zeros(2))
    out["again"] = where(jnp.zeros(2))
out["after"] = [where(jnp.zeros(2)), where(b), where(f(b, b)), str(jax.config.jax_default_device)]
jax.config.update("jax_default_device", third)
out["of the process"] = [where(jnp.zeros(2)), where(f(b, 1.0))]
with jax.default_device(second):
    out["nearer"] = where(jnp.zeros(2))
jax.config.update("jax_default_device", None)
out["none"] = where(jnp.zeros(2))
""")


def test_lower_uses_the_trace_of_a_call():
    run("""
traces = []
@jax.jit
def f(x, y=1.0):
    traces.append(1)
    return {"sum": x + y + constant}
mesh = jax.make_mesh((2,), ("x",))
constant = jax.device_put(np.arange(4.0, dtype=np.float32), NamedSharding(mesh, P("x")))
x = jax.device_put(np.arange(4.0, dtype=np.float32), NamedSharding(mesh, P("x")))
out["call"] = [np.asarray(f(x, y=2.0)["sum"]).tolist(), len(traces)]
lowered = f.lower(x, y=2.0)
out["lowered"] = [len(traces), np.asarray(lowered.compile()(x, y=3.0)["sum"]).tolist(), len(traces)]
f.lower(x)
out["of another kind"] = len(traces)
""")


def test_donated_where_a_result_fits():
    """What no result has the size of is not given away, and may be used later."""
    run("""
mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
def given(f, *shapes, place=None):
    arrays = [jnp.zeros(shape) if place is None else jax.device_put(np.zeros(shape, np.float32), place)
              for shape in shapes]
    jax.jit(f, donate_argnums=tuple(range(len(shapes))))(*arrays)
    return [x.is_deleted() for x in arrays]
import warnings
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    out["fits"] = given(lambda x: x + 1, (4, 2))
    out["does not"] = given(lambda x: x @ x.T, (4, 2))
    out["cut"] = given(lambda x: x @ x.T, (4, 2), place=NamedSharding(mesh, P("x")))
    out["sum"] = given(lambda x: x.sum(), (4, 2))
    out["one of two"] = given(lambda x, y: (x + 1, y.sum()), (4, 2), (3,))
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    given(lambda x: x.sum(), (4, 2))
out["said"] = [str(w.message).startswith("Some donated buffers were not usable") for w in said]
""")


def test_a_mesh_with_other_names_and_types_inside_of_a_program():
    run("""
from jax.sharding import AxisType, reshard
mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
spec = lambda x: str(jax.typeof(x).sharding.spec)
names = lambda x: list(jax.typeof(x).sharding.mesh.axis_names)
given = np.arange(16.0, dtype=np.float32).reshape(8, 2)
with jax.set_mesh(mesh):
    inner = mesh.abstract_mesh.update(axis_sizes=(4, 1), axis_names=("a", "b"))
    x = jax.device_put(given, P("x", "y"))
    @jax.jit
    def renamed(x):
        x = jnp.sin(x)
        with jax.sharding.use_abstract_mesh(inner):
            y = reshard(x, P(("a", "b"), None))
            y = y * 2
            out["inside"] = [spec(y), names(y)]
        out["before"] = [spec(x), names(x)]
        z = reshard(y, P("y", None))
        out["after"] = [spec(z), names(z)]
        return z
    out["result"] = [str(renamed(x).sharding.spec), np.round(np.asarray(renamed(x)), 4).tolist()]
    out["gradient"] = str(jax.jit(jax.grad(lambda x: renamed(x).sum()))(x).sharding.spec)
    @jax.jit
    def mixed(x, y):
        with jax.sharding.use_abstract_mesh(mesh.abstract_mesh.update_axis_types({"x": AxisType.Auto})):
            return x @ y
    try:
        mixed(x, jax.device_put(given.T, P("y", "x")))
    except ValueError as error:
        out["mixed"] = "For primitive dot_general, context mesh" in str(error)
auto = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
with jax.set_mesh(auto):
    x = jax.device_put(given, P("x", "y"))
    @jax.jit
    def said(x):
        y = x * 2
        types = {"x": AxisType.Explicit, "y": AxisType.Explicit}
        with jax.sharding.use_abstract_mesh(auto.abstract_mesh.update_axis_types(types)):
            y = reshard(y, P(None, "y"))
            out["said"] = [spec(y), spec(jnp.sin(y))]
        return reshard(y, P(None, None)) + 1
    out["auto"] = np.asarray(said(x)).tolist()
""")


def test_shard_map_over_some_axes_as_text():
    run("""
from jax.sharding import AxisType
mesh = jax.make_mesh((2, 2), ("i", "j"), axis_types=(AxisType.Auto,) * 2)
x = jax.device_put(np.arange(32.0, dtype=np.float32).reshape(4, 8), NamedSharding(mesh, P("i", "j")))
def text(**options):
    f = jax.jit(jax.shard_map(lambda x: x * x, mesh=mesh, in_specs=P("i"), out_specs=P("i"), **options))
    lines = f.lower(x).as_text().splitlines()
    (line,) = [line for line in lines if "sdy.manual_computation" in line]
    return line[line.index("in_shardings"):line.index("}", line.index("manual_axes")) + 1]
out["some"] = text(axis_names={"i"})
out["all"] = text()
""")


def test_how_a_value_of_a_program_lies():
    run("""
from jax.sharding import AxisType
mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
seen = []
@jax.jit
def f(x):
    y = jnp.sin(x) * 2
    jax.debug.inspect_array_sharding(y, callback=lambda place: seen.append(place))
    return y
jax.block_until_ready(f(jax.device_put(np.ones((8, 8), np.float32), NamedSharding(mesh, P("x", "y")))))
jax.effects_barrier()
out["cut"] = [len(seen[-1].device_set), list(seen[-1].shard_shape((8, 8)))]
""")


def test_the_axes_that_are_bound():
    run("""
from jax._src import core
def f(x):
    axes = core.get_axis_env()
    out.setdefault("axes", []).append([list(map(str, axes.axis_names())), axes.axis_exists("i"), axes.axis_exists("k")])
    if axes.axis_exists("i"):
        out["size"] = int(axes.axis_size("i"))
    return x * 2
f(1.0)
jax.vmap(f, axis_name="i")(jnp.ones(3))
jax.vmap(jax.vmap(f, axis_name="j"), axis_name="i")(jnp.ones((3, 2)))
""")


def test_device_put_inside_of_programs():
    """Along axes whose types say how values lie it says it; along others the compiler decides."""
    run("""
from jax.sharding import Mesh
first, second = (Mesh(jax.devices()[i : i + 4], "x") for i in (0, 4))
ones = np.ones((8, 8), np.float32)
def lies(f, x):
    place = f(x).sharding
    return [str(getattr(place, "spec", None)), sorted(d.id for d in place.device_set)]
put = lambda place: lambda x: jax.device_put(x * 2, place)
for name, mesh in (("explicit", explicit), ("auto", auto)):
    out[name] = lies(jax.jit(put(NamedSharding(mesh, P("y")))), jax.device_put(ones, NamedSharding(mesh, P("x"))))
with jax.set_mesh(explicit):
    out["spec"] = lies(jax.jit(put(P("y"))), jax.device_put(ones, P("x")))
there = jax.device_put(np.ones(4, np.float32), NamedSharding(first, P("x")))
value, slope = jax.value_and_grad(lambda x: put(NamedSharding(second, P("x")))(x).sum())(there)
out["differentiated"] = [float(value), slope.tolist(), sorted(d.id for d in slope.sharding.device_set)]
""")


def test_where_a_traced_value_lies_is_not_known():
    run("""
def f(x):
    out.setdefault("has", []).append([hasattr(x, "sharding"), hasattr(jax.typeof(x), "sharding")])
    return x * 2
for transform in (jax.jit, jax.vmap, lambda g: jax.grad(lambda x: g(x).sum())):
    transform(f)(jnp.ones(4))
try:
    jax.jit(lambda x: x.sharding)(1.0)
except AttributeError as error:
    out["words"] = "The 'sharding' attribute is not available on" in str(error)
out["device"] = [str(jax.devices()[1]), repr(jax.devices()[1])]
""")


def test_keys_lie_on_the_mesh_that_is_chosen():
    run("""
spec = lambda x: [str(x.sharding.spec), bool(x._committed)]
with jax.set_mesh(explicit):
    key, words = jax.random.key(0), jax.random.PRNGKey(0)
    out["keys"] = [spec(x) for x in (key, words, jax.random.split(key), jax.random.fold_in(key, 3))]
    out["words"] = [spec(x) for x in (jax.random.key_data(key), jax.random.split(words))]
    out["drawn"] = [spec(jax.random.normal(jax.random.split(key)[0], (8,))), spec(jax.jit(jax.random.split)(key))]
with jax.set_mesh(auto):
    out["auto"] = [spec(jax.random.key(0)), spec(jax.random.PRNGKey(0))]
out["no mesh"] = bool(jax.random.key(0)._committed)
""")
