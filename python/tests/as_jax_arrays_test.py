"""Methods of arrays and types of weft.as_jax where JAX's own tests found that they differ."""

import warnings

import numpy as np
from as_jax_both import both, lines

import weft
import weft.numpy as wnp


def test_astype_and_item():
    found = both(
        """
        import warnings
        for kind in ("int8", "int32", "float32", "bfloat16", "complex64", "bool"):
            for copy in (True, False):
                for to in ("int32", "float32", kind):
                    x = jnp.arange(5).astype(kind)
                    with warnings.catch_warnings(record=True) as seen:
                        warnings.simplefilter("always")
                        y = x.astype(to, copy=copy)
                        classes = sorted({w.category.__name__ for w in seen})
                    y.delete()
                    out[f"{kind} {to} {copy}"] = [str(y.dtype), x.is_deleted(), classes]
        traced = jax.jit(lambda x: (x.astype("float32", copy=False), x.astype(x.dtype)))(jnp.arange(3))
        out["traced"] = shown(traced)
        out["gradient"] = shown(jax.grad(lambda x: x.astype("float32", copy=False).sum())(jnp.ones(2)))
        out["mapped"] = shown(jax.vmap(lambda x: x.astype("int32"))(jnp.ones(2)))
        out["device"] = str(jnp.ones(2).astype("int32", device=jax.devices()[0]).dtype)
        x = jnp.arange(8).reshape(2, 4)
        out["items"] = [x.item(3), x.item((3,)), x.item(1, 2), x.item((1, 2))]
        out["single"] = [jnp.ones((1, 1)).item(), x[0, :1].item(())]
        """
    )
    assert found["int32 int32 False"][1] and not found["int32 int32 True"][1]


def test_values_that_an_array_does_not_hold():
    both(
        """
        import warnings

        def seen(f):
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                try:
                    made = f()
                except (TypeError, ValueError) as error:
                    return "an error"
            kinds = {w.category.__name__ for w in found if "incompatible types" in str(w.message)}
            return [str(made.dtype), *sorted(kinds)]

        kinds = ("int16", "int32", "float16", "float32", "complex64")
        values = {**{kind: jnp.ones((), kind) for kind in kinds}, "1": 1, "1.5": 1.5}
        for mode in ("standard", "strict"):
            with jax.numpy_dtype_promotion(mode):
                for kind in kinds:
                    x = jnp.zeros(3, kind)
                    for name, value in values.items():
                        for method in ("set", "add", "multiply", "min", "max"):
                            if kind == "complex64" and method in ("min", "max"):
                                continue
                            update = lambda x: getattr(x.at[0], method)(value)
                            out[f"{mode} {kind} {name} {method}"] = seen(lambda: update(x))
                    out[f"{mode} {kind} jit"] = seen(lambda: jax.jit(lambda x, v: x.at[0].set(v))(x, values["float32"]))
        """
    )


def test_ranks_that_vectorize_promotes():
    both(
        """
        import warnings
        shapes = ((), (10,), (10, 10), (1, 10))
        for signature in ("(),()->()", "(n),()->(n)"):
            f = jnp.vectorize(jnp.add, signature=signature)
            for mode in ("raise", "warn", "allow"):
                for a in shapes[signature.startswith("(n)"):]:
                    for b in shapes:
                        with jax.numpy_rank_promotion(mode), warnings.catch_warnings(record=True) as seen:
                            warnings.simplefilter("always")
                            try:
                                found = [str(f(jnp.ones(a), jnp.ones(b)).shape)]
                            except ValueError as error:
                                found = ["require rank promotion" in str(error)]
                        found += ["require rank promotion" in str(w.message) for w in seen][:1]
                        out[f"{signature} {mode} {a} {b}"] = found
        """
    )


def test_loops_in_python_leave_arrays_as_they_are():
    both(
        """
        def run(loop):
            start = np.array(1.0, np.float32)
            found = loop(start)
            return [str(np.asarray(found)), str(start)]

        def body(i, carry):
            x, y = carry
            x += 1
            return x, y + x

        loops = {
            "while": lambda v: lax.while_loop(lambda c: c[0] < 10, lambda c: body(0, c), (v, v))[1],
            "fori": lambda v: lax.fori_loop(0, 5, body, (v, v))[1],
            "scan": lambda v: lax.scan(lambda c, i: (body(i, c), i), (v, v), jnp.arange(4))[0][1],
        }
        for name, loop in loops.items():
            for off in (False, True)[: 1 if name == "scan" else 2]:  # JAX's scan changes them
                with jax.disable_jit(off):
                    out[f"{name} {off}"] = run(loop)
        """
    )


def test_nested_lists_of_what_stands_for_arrays():
    both(
        """
        class Held:
            def __init__(self, value):
                self.value = value
            def __jax_array__(self):
                return self.value
            dtype = property(lambda self: self.value.dtype)
            shape = property(lambda self: self.value.shape)
            ndim = property(lambda self: self.value.ndim)

        for kind in ("int32", "float32", "bool"):
            x = Held(jnp.ones(2, kind))
            for name, nested in {"flat": [x, x], "two": [[x, x], (x, x)], "mixed": [x, jnp.zeros(2)]}.items():
                out[f"{kind} {name}"] = shown(jnp.array(nested)), str(jnp.array(nested).dtype)
        """
    )


def test_places_of_types_and_weak_types():
    both(
        """
        where = jax.sharding.SingleDeviceSharding(jax.devices()[0])
        for name, options in {"none": {}, "out": {"out_shardings": where}, "in": {"in_shardings": where},
                              "both": {"in_shardings": where, "out_shardings": where}}.items():
            f = jax.jit(lambda x: (x * 2, x.sum()), **options)
            out[name] = [x.sharding == where for x in f.eval_shape(jnp.ones(3))]
        weak = jax.jit(lambda x: x + 1)(1)
        for name, place in {"device": jax.devices()[0], "sharding": where, "nowhere": None}.items():
            out["weak " + name] = [jax.device_put(x, place).weak_type for x in (weak, jnp.ones(2), jnp.int8(1))]
        """
    )


def test_parts_that_a_known_number_says():
    both(
        """
        x = jnp.zeros((12, 2))
        counts = lambda f: [len(parts) for parts in jax.tree.leaves(f, is_leaf=lambda x: isinstance(x, list))]
        found = {}
        for name, split in {"split": jnp.split, "array_split": jnp.array_split}.items():
            def f(number):
                found[name] = len(split(x, number))
                return number
            jax.jvp(f, (2.0,), (1.0,))
        out.update(found)
        """
    )


def test_types_as_programs_show_them():
    found = both(
        """
        from jax._src import core
        import pickle
        for kind in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int4", "uint4", "bool", "bfloat16"):
            aval = jax.make_jaxpr(lambda x: x)(jax.ShapeDtypeStruct((2, 3), jnp.dtype(kind))).jaxpr.invars[0].aval
            out[kind] = [str(aval.dtype), aval.str_short(), aval.str_short(True)]
        for space in jax.memory.Space:
            aval = core.ShapedArray((8,), jnp.float32, memory_space=space)
            out[space.name] = [aval.str_short(True), aval.update(shape=(2,)).str_short(True), str(aval.memory_space)]
        out["default"] = str(jax.typeof(jnp.ones(2)).memory_space)
        axes = dict(varying={"x"}, unreduced={"y"}, reduced={"z"})
        one, other = core.ManualAxisType(**axes), core.ManualAxisType(**axes)
        out["one object"] = [one is other, pickle.loads(pickle.dumps(one)) is one, core.ManualAxisType() == one]
        """
    )
    assert found["int8"] == ["int8", "int8[2,3]", "i8[2,3]"]


def test_what_meshes_without_devices_say_of_them():
    both(
        """
        from jax.sharding import AbstractDevice, AbstractMesh, AxisType
        tpu = AbstractDevice("TPU v6 lite", 1, "tpu")
        mesh = AbstractMesh((2,), ("x",), abstract_device=tpu)
        out["said"] = [str(mesh.abstract_device), mesh.update(axis_sizes=(4,)).abstract_device == tpu]
        out["types"] = mesh.update_axis_types({"x": AxisType.Explicit}).abstract_device == tpu
        out["other"] = mesh.update(abstract_device=AbstractDevice("cpu", None, "cpu")).abstract_device.platform
        out["equal"] = [mesh == AbstractMesh((2,), ("x",), abstract_device=tpu), mesh == AbstractMesh((2,), ("x",))]
        own = jax.make_mesh((1,), ("x",)).abstract_mesh
        out["own"] = [str(own.abstract_device), own.update(abstract_device=tpu) == own]
        """
    )


def test_options_under_their_whole_names():
    found = lines(
        """
        from jax._src import config
        with config.jax_ragged_dot_use_ragged_dot_instruction(False):
            out["inside"] = jax.config.jax_ragged_dot_use_ragged_dot_instruction
        out["outside"] = jax.config.jax_ragged_dot_use_ragged_dot_instruction
        """,
        "-m",
        "weft.as_jax",
    )
    assert found == {"inside": False, "outside": True}


def test_without_jax_semantics():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind, value in (("int16", 1.5), ("int32", wnp.float32(2.5)), ("float32", wnp.ones((), "float64"))):
            x = wnp.zeros(3, kind)
            for method in ("set", "add", "multiply", "min", "max"):
                assert getattr(x.at[0], method)(value).dtype == kind
    x = wnp.arange(3)
    assert x.astype("int32") is not x and x.astype("int32", copy=False).dtype == "int32"
    start = np.array(1.0, np.float32)

    def body(carry, x):
        carry += x
        return carry, x

    with weft.disable_jit():
        total, _ = weft.scan(body, start, np.ones(3, np.float32))
        assert weft.while_loop(lambda c: c < 4, lambda c: body(c, 1)[0], start) == 4
    assert total == 4 and start == 1
    try:
        wnp.zeros(3) + wnp.zeros(4)
    except (TypeError, ValueError) as error:
        assert "do not broadcast" in str(error) and not hasattr(error, "__notes__")
    assert wnp.vectorize(lambda a, b: a + b)(wnp.ones((2, 3)), wnp.ones(3)).shape == (2, 3)


def test_types_of_references_say_where_they_lie():
    both(
        """
        from jax.sharding import AxisType
        mesh = jax.make_mesh((1, 1), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
        for name, spec in {"both": P("x", "y"), "one": P(None, "y"), "together": P(("x", "y")), "none": P()}.items():
            found = []
            @jax.jit
            def f(ref):
                found.append(str(jax.typeof(ref).sharding.spec))
                found.append(jax.typeof(ref).sharding.spec == jax.typeof(ref[...]).sharding.spec)
                return ref[...] + 1
            with jax.set_mesh(mesh):
                ref = jax.new_ref(jax.device_put(jnp.zeros((4, 4)), NamedSharding(mesh, spec)))
                found.append(shown(f(ref).sum()))
            out[name] = found
        out["no mesh"] = str(jax.typeof(jax.new_ref(jnp.ones(3))).shape)
        """
    )
