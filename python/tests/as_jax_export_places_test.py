"""weft.as_jax: jax.export of programs over meshes: how arguments and results lie, on whose devices they run. Each
program runs under JAX, too, where it is installed."""

import textwrap

from as_jax_both import both

DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
HEAD = """
from jax import export
from jax.sharding import AbstractMesh, AxisType, Mesh
def reread(made, vjp_order=0):
    try:
        return export.deserialize(made.serialize(vjp_order=vjp_order))
    except ImportError:  # JAX serializes by a library that need not be there
        return made
def lies(x):
    return [[s.device.id, shown(s.index), np.asarray(s.data).shape] for s in x.addressable_shards]
def refused(f):
    try:
        f()
    except ValueError as error:
        return str(error).partition(" was ")[2].partition(";")[0].splitlines()[0].partition(", which")[0]
two, others = Mesh(jax.devices()[:2], "i"), Mesh(jax.devices()[5:3:-1], "j")
x = jnp.arange(32.0).reshape(8, 4)
"""


def _both(code):
    return both(HEAD + textwrap.dedent(code), **DEVICES)


def test_programs_run_on_the_devices_of_their_arguments():
    found = _both(
        """
        sum_of_squares = lambda x: jnp.sum(x**2, axis=1)
        f = jax.jit(sum_of_squares, in_shardings=NamedSharding(two, P("i")), out_shardings=NamedSharding(two, P("i")))
        for name, made in {"made": export.export(f)(x), "read": reread(export.export(f)(x))}.items():
            out[name] = made.nr_devices, *map(str, (*made.in_shardings_jax(two), *made.out_shardings_jax(two)))
            result = made.call(jax.device_put(x, NamedSharding(others, P())))
            out[name + " lies"] = lies(result), np.asarray(result).tolist()
            out[name + " inside"] = np.asarray(jax.jit(made.call)(jax.device_put(x, NamedSharding(two, P())))).tolist()
            out[name + " refused"] = refused(lambda: made.call(x))
            eight = Mesh(jax.devices(), "k")
            out[name + " too many"] = refused(lambda: made.call(jax.device_put(x, NamedSharding(eight, P("k")))))
        """
    )
    assert found["read"][0] == 2 and found["read lies"][0][0][0] == 5
    assert found["read refused"].endswith("exported for 2 devices and is called in a context with 1 devices")


def test_what_is_for_one_device_runs_on_any_number():
    _both(
        """
        one, eight = Mesh(jax.devices()[:1], "i"), Mesh(jax.devices(), "i")
        constrained = lambda x: jnp.sum(jax.lax.with_sharding_constraint(x, NamedSharding(one, P("i"))) ** 2, axis=0)
        programs = {"arguments": jax.jit(lambda x: x.sum(0), in_shardings=NamedSharding(one, P("i"))),
                    "inside": jax.jit(constrained)}
        for name, f in programs.items():
            made = reread(export.export(f)(x))
            result = made.call(jax.device_put(x, NamedSharding(eight, P("i"))))
            out[name] = made.nr_devices, np.asarray(result).tolist()
        """
    )


def test_constraints_of_several_meshes_and_calls_inside():
    found = _both(
        """
        columns = Mesh(np.array(jax.devices()[:2]).reshape(1, 2), ("a", "b"))
        @jax.jit
        def f(x, y):
            inner = jax.jit(lambda z: jax.lax.with_sharding_constraint(z * 2, NamedSharding(columns, P(None, "b"))))
            return inner(jax.lax.with_sharding_constraint(x @ y, NamedSharding(two, P("i"))))
        made = reread(export.export(f)(x, x.T))
        there = [jax.device_put(v, NamedSharding(others, P())) for v in (x, x.T)]
        result = made.call(*there)
        out["result"] = made.nr_devices, sorted(d.id for d in result.devices()), np.asarray(result).tolist()
        """
    )
    assert found["result"][1] == [4, 5]


def test_derivatives_lie_as_the_arguments_do():
    found = _both(
        """
        f = lambda x: jnp.sin(x.T)
        places = {"none": {}, "arguments": {"in_shardings": NamedSharding(two, P(None, "i"))},
                  "results": {"out_shardings": NamedSharding(two, P("i"))}}
        for name, given in places.items():
            back = reread(export.export(jax.jit(f, **given))(x), 2).vjp()
            n = back.nr_devices
            mesh = Mesh(jax.devices()[:n], "e")
            args = [jax.device_put(v, NamedSharding(mesh, P())) for v in (x, x.T)]
            (slope,) = back.call(*args)
            out[name] = n, [str(place) for place in back.in_shardings_jax(two)], np.round(np.asarray(slope), 4).tolist()
            head = back.mlir_module().partition("@main(")[2].partition("{\\n")[0]
            out[name + " said"] = head.count("sdy.sharding = "), "tensor<8x4xf32>" in head, "jax.result_info" in head
            out[name + " again"] = back.vjp().nr_devices
        """
    )
    assert found["arguments"][0] == 2 and found["none said"][0] == 0


def test_types_say_how_values_lie():
    found = _both(
        """
        mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
        jax.set_mesh(mesh)
        rows = jax.device_put(np.asarray(x), NamedSharding(mesh, P("x", None)))
        made = reread(export.export(jax.jit(lambda a: a * 2 + 1))(rows))
        out["types"] = [str(made.in_avals[0].sharding.spec), made.in_avals[0].sharding.mesh == mesh.abstract_mesh,
                        str(made.out_avals[0].sharding.spec), made.nr_devices]
        out["result"] = str(made.call(rows).sharding.spec), np.asarray(made.call(rows)).tolist()
        """
    )
    assert found["types"][3] == 4 and "x" in found["types"][0]


def test_types_on_a_mesh_without_devices():
    _both(
        """
        nowhere = AbstractMesh((2,), ("i",))
        @jax.jit
        def f(a):
            return jax.lax.with_sharding_constraint(a @ a.T, NamedSharding(nowhere, P(None, "i")))
        rows = NamedSharding(nowhere, P("i"))
        made = reread(export.export(f)(jax.ShapeDtypeStruct((8, 4), jnp.float32, sharding=rows)))
        result = made.call(jax.device_put(x, NamedSharding(Mesh(jax.devices()[2:4], "i"), P("i"))))
        out["result"] = made.nr_devices, lies(result), np.asarray(result).tolist()
        """
    )
