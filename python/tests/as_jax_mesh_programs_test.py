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
