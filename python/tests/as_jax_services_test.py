"""weft.as_jax: what runs beside a program: callbacks, generators with a state, errors that are noted while it runs; and
what functions say of their arguments. Each program runs under JAX, too, where it is installed."""

import pytest
from as_jax_both import both, lines


def test_generators_with_a_state():
    found = both(
        """
        from jax.experimental import random
        rng = random.stateful_rng(42)
        out["drawn"] = [float(rng.uniform()), float(rng.uniform()), float(rng.normal(1.0, 2.0)), int(rng.integers(9))]
        shapes = rng.uniform(np.zeros(3), 2.0).shape, rng.random((2, 3)).shape, rng.key(4).shape
        out["shapes"] = [list(shape) for shape in shapes]
        out["jit"] = [float(jax.jit(rng.uniform)()) for _ in range(2)] + [int(rng._counter[...])]
        out["scan"] = lax.scan(lambda c, _: (c, rng.uniform()), None, length=3)[1].tolist()
        out["given"] = [float(jax.jit(lambda r, x: r.uniform() + x)(rng, 1.0)) for _ in range(2)]
        out["vmap"] = jax.vmap(lambda r, x: x + r.uniform())(rng.split(3), jnp.zeros(3)).tolist()
        out["children"] = [float(child.uniform()) for child in rng.spawn(2)]
        for name, wrong in {
            "no key": lambda: random.StatefulPRNG(jnp.zeros(2, "uint32"), jax.new_ref(0)),
            "no reference": lambda: random.StatefulPRNG(jax.random.key(0), 0),
            "no seed": lambda: jax.jit(lambda: random.stateful_rng().uniform())(),
            "several": lambda: rng.split(2).uniform(),
        }.items():
            try:
                wrong()
            except (TypeError, ValueError) as error:
                out[name] = True
        """
    )
    assert found["jit"][2] == 9 and len(set(found["drawn"] + found["jit"][:2] + found["scan"] + found["given"])) == 11
    assert found["no key"] and found["no reference"] and found["no seed"] and found["several"]


def test_callbacks_that_write_into_buffers():
    found = both(
        """
        from jax.experimental.buffer_callback import buffer_callback, ExecutionStage
        stages = []
        def add(context, out, x, y):
            stages.append(context.stage == ExecutionStage.EXECUTE)
            assert out.writeable and not x.writeable and (out.shape, out.dtype) == (x.shape, x.dtype)
            np.asarray(out)[...] = np.asarray(x) + np.asarray(y)
        x, y = jnp.arange(3.0), jnp.ones(3)
        f = buffer_callback(add, jax.ShapeDtypeStruct((3,), "float32"))
        out["once"] = [f(x, y).tolist(), jax.jit(lambda x, y: f(x, y) * 2)(x, y).tolist()]
        for method in ("sequential", "expand_dims", "broadcast_all"):
            g = buffer_callback(add, jax.ShapeDtypeStruct((), "float32"), vmap_method=method)
            out[method] = jax.vmap(g)(x, y).tolist()
        def two(context, out, x):
            a, b = out["a"], out["b"]
            np.asarray(a)[...], np.asarray(b)[...] = np.asarray(x) + 1, np.asarray(x)[:2] * 3
        spec = {"a": jax.ShapeDtypeStruct((3,), "float32"), "b": jax.ShapeDtypeStruct((2,), "float32")}
        out["tree"] = {name: value.tolist() for name, value in buffer_callback(two, spec)(x).items()}
        def double(context, out, x):
            np.asarray(out)[...] *= 2
        spec = jax.ShapeDtypeStruct((3,), "float32")
        out["alias"] = buffer_callback(double, spec, input_output_aliases={0: 0})(x).tolist()
        out["kept"] = x.tolist()
        seen = []
        jax.block_until_ready(buffer_callback(
            lambda *_: seen.append(1), jax.ShapeDtypeStruct((), "float32"), has_side_effect=True)())
        out["effect"] = seen
        try:
            buffer_callback(double, jax.ShapeDtypeStruct((3,), "float32"), input_output_aliases={2: 0})(x)
        except ValueError as error:
            out["wrong"] = "outside the range" in str(error)
        """
    )
    assert (
        found["tree"] == {"a": [1.0, 2.0, 3.0], "b": [0.0, 3.0]} and found["kept"] == [0.0, 1.0, 2.0] and found["wrong"]
    )


def test_errors_that_are_noted_while_a_program_runs():
    found = both(
        """
        from jax._src import error_check
        def f(x):
            error_check.set_error_if(x < 0, "x must not be negative")
            return jnp.sqrt(x)
        def g(x):
            error_check.set_error_if(x == 0, "x must not be 0")
            return 1 / x
        def asked():
            try:
                error_check.raise_if_error()
            except error_check.JaxValueError as error:
                return str(error)
            return "nothing"
        bad, good, none = jnp.array([1.0, -1.0]), jnp.array([1.0, 4.0]), jnp.zeros(2)
        programs = {
            "plain": lambda h: h,
            "jit": jax.jit,
            "jit twice": lambda h: jax.jit(lambda x: jax.jit(h)(x) + jax.jit(h)(x)),
            "cond": lambda h: lambda x: lax.cond(x.sum() > -5, h, lambda x: x, x),
            "scan": lambda h: lambda x: lax.scan(lambda c, y: (c, h(y)), None, x)[1],
            "while": lambda h: lambda x: lax.while_loop(lambda v: v[0] < 2, lambda v: (v[0] + 1, h(v[1])), (0, x))[1],
        }
        for name, made in programs.items():
            f_, g_ = made(f), made(g)
            out[name] = [asked()]
            for first, second in (((f_, good), (g_, good)), ((f_, bad), (g_, none)), ((g_, none), (f_, bad))):
                first[0](first[1]); second[0](second[1])
                out[name] += [asked(), asked()]
        try:
            jax.jit(error_check.raise_if_error)()
        except ValueError:
            out["inside"] = True
        f(bad)
        with error_check.error_checking_context():
            out["context"] = [asked()]
            g(none)
            out["context"] += [asked(), asked()]
        out["context"] += [asked()]
        """
    )
    first = ["nothing", "nothing", "nothing", "x must not be negative", "nothing", "x must not be 0", "nothing"]
    assert found["plain"] == found["jit"] == found["scan"] == first and found["inside"]
    assert found["context"] == ["nothing", "x must not be 0", "nothing", "x must not be negative"]


@pytest.mark.parametrize("name", ["jax.pure_callback", "jax.experimental.io_callback"])
def test_what_callbacks_raise_is_a_runtime_error(name):
    found = lines(
        f"""
        import jax.experimental
        class Own(Exception):
            def __init__(self, a, b):
                super().__init__(a, b)
                self.pair = a, b
        spec = jax.ShapeDtypeStruct((), "float32")
        def caught(kind, raise_, jitted):
            def callback(x):
                raise raise_()
            f = lambda x: {name}(callback, spec, x)
            try:
                (jax.jit(f) if jitted else f)(1.0)
            except kind as error:
                said = str(error).split(chr(10))[0]
                return [isinstance(error, RuntimeError), said, repr(getattr(error, "pair", None))]
        for jitted in (False, True):
            out[f"{{jitted}}"] = [
                caught(RuntimeError, lambda: RuntimeError("as it is"), jitted),
                caught(RuntimeError, lambda: TypeError("by JAX's class"), jitted),
                caught(TypeError, lambda: TypeError("by its own"), jitted),
                caught(Own, lambda: Own(1, 2), jitted),
                caught(RuntimeError, lambda: Own(1, 2), jitted),
                caught(KeyError, lambda: KeyError("k"), jitted),
            ]
        for n, wrong in enumerate([lambda x: (x, x), lambda: 1.0]):
            try:
                {name}(wrong, spec, 1.0)
            except RuntimeError as error:
                out[f"wrong {{n}}"] = True
        """,
        "-m",
        "weft.as_jax",
    )
    assert found["True"] == found["False"] and all(one[0] for one in found["True"]), found
    assert [one[2] for one in found["True"][3:5]] == ["(1, 2)"] * 2 and found["wrong 0"] and found["wrong 1"]


def test_arrays_of_float0():
    both(
        """
        zeros = np.zeros((2,), jax.dtypes.float0)
        x, n = jnp.float32(2.0), jnp.arange(2)
        f = lambda x, n: (x * n.sum(), n + 1)
        _, pull = jax.vjp(f, x, n)
        ct = jnp.float32(1.0)
        out["pullback"] = [float(pull((ct, zeros))[0]), float(jax.jit(lambda c, z: pull((c, z))[0])(ct, zeros))]
        out["jvp"] = float(jax.jvp(lambda x, n: x * n.sum(), (x, n), (ct, zeros))[1])
        _, lin = jax.linearize(lambda n: n * 2, n)
        lin(zeros)
        for name, wrong in {"add": lambda: zeros + jnp.ones(2), "lax": lambda: lax.add(zeros, jnp.ones(2))}.items():
            try:
                wrong()
            except TypeError as error:
                out[name] = "float0s do not support any operations by design" in str(error)
        """
    )


def test_linearized_functions_refuse_other_tangents():
    both(
        """
        x, n = jnp.ones((2, 3)), jnp.arange(3)
        _, of_x = jax.linearize(jnp.sum, x)
        _, of_n = jax.linearize(jnp.sum, n)
        _, of_both = jax.linearize(lambda a, b: (a * b).sum(), x, jnp.float32(2.0))
        calls = {
            "right": lambda: of_x(x), "numpy": lambda: of_x(np.ones((2, 3))), "shape": lambda: of_x(jnp.ones(3)),
            "dtype": lambda: of_x(jnp.ones((2, 3), "int32")), "integers": lambda: of_n(n),
            "number": lambda: of_both(x, 1.0), "integer": lambda: of_both(x, 1),
            "float16": lambda: of_x(x.astype("float16")),
        }
        for name, call in calls.items():
            try:
                call()
                out[name] = "taken"
            except ValueError as error:
                out[name] = "tangent values inconsistent" in str(error)
        """
    )


def test_names_of_functions_with_several_names():
    found = both(
        """
        names = '''abs absolute acos arccos acosh asin asinh atan arctan atan2 atanh amax max amin around bitwise_invert
        bitwise_left_shift bitwise_not concat concatenate conj degrees divide mod permute_dims pow power'''.split()
        out["names"] = [getattr(jnp, name).__name__ for name in names]
        out["values"] = [
            float(jnp.acos(0.5)), float(jnp.abs(-2.0)), jnp.concat([jnp.ones(1), jnp.zeros(1)]).tolist(),
            float(jax.grad(jnp.atan)(1.0)), int(jax.jit(jnp.amax)(jnp.arange(3))), int(jnp.pow(2, jnp.int32(3))),
        ]
        """
    )
    assert found["names"][:2] == ["abs", "absolute"]


def test_what_static_and_donated_arguments_may_be():
    both(
        """
        class NoSignature:
            @property
            def __signature__(self):
                raise TypeError("no signature")
            def __call__(self, *args):
                return None
        def f(a, *rest): return a
        def g(a, b): return a
        tries = {
            "beyond, with *args": lambda: jax.jit(f, static_argnums=(0, 9)),
            "before, with *args": lambda: jax.jit(f, static_argnums=(0, -9)),
            "beyond": lambda: jax.jit(g, static_argnums=2), "before": lambda: jax.jit(g, donate_argnums=-3),
            "donated by name": lambda: jax.jit(NoSignature(), donate_argnames="a")(1.0),
        }
        for name, made in tries.items():
            try:
                made()
                out[name] = "taken"
            except ValueError:
                out[name] = "refused"
        """
    )


def test_options_of_the_compiler():
    both(
        """
        f = lambda x: x + 1
        several = {"xla_embed_ir_in_executable": True}, {"exec_time_optimization_effort": 0.0}, {"no": 1}
        for n, options in enumerate(several):
            for name, run in {
                "jit": lambda: jax.jit(f, compiler_options=options)(1.0),
                "compile": lambda: jax.jit(f).lower(1.0).compile(compiler_options=options)(1.0),
            }.items():
                try:
                    out[f"{n} {name}"] = float(run())
                except RuntimeError as error:
                    out[f"{n} {name}"] = "No such compile option: 'no'" in str(error)
        lowered = jax.jit(f).lower(1.0)
        out["module"] = "stablehlo.add" in str(lowered.compiler_ir("stablehlo"))
        out["executable"] = lowered.compile().runtime_executable() is not None
        """
    )


def test_why_a_function_is_traced_again():
    found = lines(
        """
        import logging
        said = []
        class Handler(logging.Handler):
            def emit(self, record): said.append(record.getMessage())
        logging.getLogger("jax").addHandler(Handler())
        @jax.jit
        def f(x, y=1.0): return x
        f(jnp.ones(1))
        with jax.explain_cache_misses(True):
            f(jnp.ones(2)); f(np.int32(3)); f(3); f(jnp.ones(1), y=(1.0, 2.0))
        out["said"] = said
        """,
        "-m",
        "weft.as_jax",
    )["said"]
    assert "at x, now f32[2] and before f32[1] (different input types" in found[0]
    assert "now i32[]{weak_type=True} and before i32[]{weak_type=False}" in found[2] and "weak-types" in found[2]
    assert "different input pytree" in found[3] and len(found) == 4


def test_values_stay_what_they_are():
    both(
        """
        x = jnp.arange(3)
        got = jax.device_get([x, 2, 1.5, True, 2j, np.float32(1)])
        out["kinds"] = [type(v).__name__ for v in got[:5]]
        out["same"] = jax.device_put(x) is x
        class Box:
            def __init__(self, value): self.value = value
            def __jax_array__(self): return self.value
        boxes = [Box(jnp.float32(1)), Box(jnp.ones(2)), Box(jnp.ones(2) * 1j)]
        out["asked"] = [[f(b) for b in boxes] for f in (jnp.isscalar, jnp.iscomplexobj, jnp.isrealobj, jnp.size)]
        import jax._src.api
        out["basis"] = jax._src.api._std_basis({"a": 1.0, "b": jnp.zeros(2)})["b"].tolist()
        """
    )


def test_options_of_the_process_and_of_the_thread():
    both(
        """
        option = jax.numpy_rank_promotion
        out["before"] = option.get_global()
        with option("raise"):
            out["inside"] = [option.get_global(), jax.config.jax_numpy_rank_promotion]
            try:
                jnp.ones((2, 2)) + jnp.ones(2)
            except ValueError:
                out["raised"] = True
        option.set_global("warn")
        out["after"] = [option.get_global(), jax.config.jax_numpy_rank_promotion]
        """
    )


def test_listeners_are_listed_and_parts_of_lists_equally_long():
    both(
        """
        from jax._src import dispatch, monitoring, util
        dispatch.xla_primitive_callable.cache_clear()
        out["cache"] = dispatch.xla_primitive_callable.cache_info().misses
        import itertools
        f = lambda *a, **k: None
        n = len(monitoring.get_event_listeners())
        monitoring.register_event_listener(f)
        monitoring.get_event_listeners().clear()
        out["listeners"] = [f in monitoring.get_event_listeners(), len(monitoring.get_event_listeners()) - n]
        monitoring.unregister_event_listener(f)
        out["gone"] = f in monitoring.get_event_listeners()
        arrays = [jnp.ones(2), jnp.zeros(2)]
        sums = util.safe_map(lambda a, b: (a + b).sum(), arrays, arrays)
        out["zip"] = len(util.safe_zip(arrays, (1, 2))), [float(s) for s in sums]
        for n, wrong in enumerate([
            lambda: util.safe_zip(), lambda: util.safe_map(len), lambda: util.safe_zip(range(3), range(4)),
            lambda: util.safe_zip(range(3), itertools.count()), lambda: util.safe_map(len, (), range(2)),
        ]):
            try:
                wrong()
            except (TypeError, ValueError) as error:
                said = str(error).split(chr(10))[0].split(".")[0]
                out[str(n)] = [isinstance(error, TypeError if n < 2 else ValueError), said]
        """
    )


def test_cotangents_in_another_precision_are_rounded():
    # JAX takes them, too, and gives a gradient of another dtype than the argument's.
    found = lines(
        """
        @jax.custom_vjp
        def f(x): return x.astype("float32") * 2
        f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * 2,))
        x = jnp.array([1.0, 3.0], "bfloat16")
        for name, g in {"eager": jax.grad(lambda x: f(x).sum()), "vmap": jax.vmap(jax.grad(f))}.items():
            out[name] = [str(g(x).dtype), str(jax.jit(g)(x).dtype), g(x).astype("float32").tolist()]
        f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * 1j,))
        try:
            jax.grad(lambda x: f(x).sum())(x)
        except TypeError:
            out["complex"] = "refused"
        """,
        "-m",
        "weft.as_jax",
    )
    assert found["eager"] == found["vmap"] == ["bfloat16", "bfloat16", [2.0, 2.0]] and found["complex"] == "refused"


def test_rules_that_are_not_there_and_cotangents_of_containers():
    both(
        """
        @jax.custom_batching.custom_vmap
        def f(x): return x * 2
        for name, call in {"plain": lambda: f(0.5), "vmap": lambda: jax.vmap(f)(jnp.ones(3))}.items():
            try:
                call()
            except AttributeError as error:
                out[name] = "No batching rule defined for custom_vmap function f" in str(error)
        @jax.tree_util.register_pytree_node_class
        class Box:
            def __init__(self, x): self.x = x
            def tree_flatten(self): return [self.x], None
            @classmethod
            def tree_unflatten(cls, _, xs): return cls(*xs)
        @jax.custom_vjp
        def g(box, y): return box.x * y
        g.defvjp(lambda box, y: (g(box, y), (box.x, y)), lambda r, ct: (r[1] * ct, r[0] * ct))
        found = jax.grad(g, argnums=(0, 1))(Box(2.0), 3.0)
        out["box"] = [float(found[0].x), float(found[1]), float(jax.jit(jax.grad(g))(Box(2.0), 3.0).x)]
        """
    )


def test_types_of_values_that_lie_on_no_mesh_say_nothing():
    found = both(
        """
        x, key = jnp.ones((4, 3)), jax.random.key(0)
        here = lambda v: jax.typeof(v).sharding

        def f(x):
            return (
                jax.random.bernoulli(key, 0.5, x.shape, out_sharding=here(x)).sum(),
                jnp.reshape(x, (12,), out_sharding=here(x.ravel())),
                jnp.einsum("ij,kj->ik", x, x, out_sharding=here(x @ x.T)),
                x.at[0].get(out_sharding=here(x[0])),
            )

        out["eager"] = [v.tolist() for v in f(x)]
        out["jit"] = [v.tolist() for v in jax.jit(f)(x)]
        out["gradient"] = jax.grad(lambda x: sum(v.sum() for v in f(x)[1:]))(x).tolist()
        for name, wrong in {"reshard": jax.sharding.reshard, "device_put": jax.device_put}.items():
            try:
                wrong(x, here(x))
            except ValueError:
                out[name] = True
        """
    )
    assert found["eager"] == found["jit"] and found["reshard"] and found["device_put"]


def test_shardings_of_another_spec_or_mesh():
    found = both(
        """
        mesh = jax.make_mesh((1,), ("x",))
        s = jax.sharding.NamedSharding(mesh, jax.P("x", None))
        out["spec"] = [str(s.update(spec=spec).spec) == str(jax.P(*spec)) for spec in (jax.P(None, "x"), (None, "x"))]
        out["mesh"] = s.update(mesh=mesh.abstract_mesh).mesh == mesh.abstract_mesh
        out["of a type"] = len(jax.typeof(jnp.ones((4, 3))).sharding.update(spec=jax.P(None)).spec)
        """
    )
    assert found == {"spec": [True, True], "mesh": True, "of a type": 1}


def test_generators_of_ones_own():
    both(
        """
        from jax.extend.random import define_prng_impl

        impl = define_prng_impl(
            key_shape=(2, 3), seed=lambda seed: jnp.full((2, 3), seed, "uint32"),
            split=lambda key, shape: key + jnp.arange(np.prod(shape), dtype="uint32").reshape(*shape, 1, 1),
            random_bits=lambda key, bits, shape: jnp.full(shape, key.sum(), f"uint{bits}"),
            fold_in=lambda key, data: key + jnp.uint32(data), name="counting", tag="cnt")
        key = jax.random.key(7, impl=impl)
        out["key"] = key.shape, str(key.dtype), jax.random.key_impl(key) == impl, shown(jax.random.key_data(key))
        out["split"] = shown(jax.random.key_data(jax.random.split(key, 2)))
        out["bits"] = shown(jax.random.bits(key, (2,)))
        out["fold_in"] = shown(jax.random.key_data(jax.random.fold_in(key, 3)))
        keys = jax.random.wrap_key_data(jnp.ones((4, 2, 3), "uint32"), impl=impl)
        out["wrapped"] = keys.shape, keys.dtype == jax.random.key_dtype(impl)
        out["own"] = jax.random.key_impl(jax.random.key(0)), shown(jax.random.key_data(jax.random.key(5)))
        """
    )


def test_pickles_of_wide_arrays_and_prints_with_numpys_options():
    found = both(
        """
        import contextlib, io, pickle

        with jax.enable_x64(True):
            texts = [pickle.dumps(jnp.array(4.0, dtype="float64")), pickle.dumps(jnp.arange(3))]
            out["wide"] = [str(pickle.loads(text).dtype) for text in texts]
        out["narrow"] = [str(pickle.loads(text).dtype) for text in texts]

        def f(x):
            with np.printoptions(precision=2, suppress=True):
                jax.debug.print("{}", x)

        x = np.array([1.2345, 2.3456, 1e-7])
        for name, run in {"now": f, "jit": jax.jit(f), "vmap": lambda x: jax.vmap(f)(x[None])}.items():
            with contextlib.redirect_stdout(io.StringIO()) as written:
                run(x)
                jax.effects_barrier()
            out[name] = written.getvalue()
        """
    )
    assert found["narrow"] == ["float32", "int32"] and found["jit"] == "[1.23 2.35 0.  ]\n"


def test_static_arguments_by_position_and_by_name():
    both(
        """
        calls = {"numbers": ({"static_argnums": 1, "static_argnames": ()}, [((2, "a"), {}), ((1,), {"y": 2})]),
                 "names": ({"static_argnums": (), "static_argnames": "y"}, [((2, 3), {}), ((1,), {"y": "a"})]),
                 "one": ({"static_argnums": 1}, [((2, "a"), {}), ((1,), {"y": "b"})])}
        for name, (options, given) in calls.items():
            seen = []

            def f(x, y):
                seen.append([isinstance(v, jax.core.Tracer) for v in (x, y)])

            jitted = jax.jit(f, **options)
            for args, kwargs in given:
                jitted(*args, **kwargs)
            out[name] = seen
        """
    )


def test_uses_that_jax_warns_of():
    both(
        """
        from jax._src import deprecations
        def warned(f):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                f()
            return [w.category.__name__ for w in seen if "NumPy" not in str(w.message)]
        x = jnp.ones(3, "complex64")
        out["array"] = warned(lambda: jnp.array([1, 2], None, False)), warned(lambda: jnp.array([1, 2], copy=False))
        out["real"] = warned(lambda: jnp.astype(x, "float32")), warned(lambda: jnp.astype(x, "complex64"))
        out["one_hot"] = [warned(lambda: jax.nn.one_hot(x, 3)) for x in (jnp.ones(2), jnp.arange(2))]
        for f in (jnp.ndim, jnp.shape, jnp.size):
            out[f.__name__] = sorted(set(warned(lambda: f([1, 2])))), shown(f([1, 2]))
        deprecations.register("mine")
        out["mine"] = [warned(lambda: deprecations.warn("mine", "old", 1)), deprecations.is_accelerated("mine")]
        deprecations.accelerate("mine")
        try:
            deprecations.warn("mine", "old", 1)
        except ValueError as error:
            out["an error"] = str(error)
        try:
            jnp.array([1], None, True, "K", 0, 1)
        except TypeError as error:
            out["too many"] = "array() takes at most 5 positional arguments" in str(error)
        """
    )


def test_what_copies_and_jitted_functions_are():
    both(
        """
        import copy
        x = jnp.arange(3)
        same, other, deep = jnp.asarray(x), copy.copy(x), copy.deepcopy([x])[0]
        x.delete()
        out["deleted"] = same.is_deleted(), other.is_deleted(), deep.is_deleted()
        def function(x):
            return x
        out["text"] = repr(jax.jit(function)) == f"<PjitFunction of {function!r}>"
        out["name"] = jax.jit(function).__getstate__()["function_name"]
        def steps(x):
            yield x
        for name, refused in {"generator": steps, "static": staticmethod(function)}.items():
            try:
                jax.jit(refused)(1)
            except TypeError as error:
                out[name] = "TypeError"
        out["ds"] = [shown(jnp.arange(9)[jax.ds(*at)]) for at in [(4,), (2, 3), (1, 4, 2), (None,)]]
        out["wide"] = str(jax.core.ShapedArray((), np.float64).dtype)
        out["gone"] = hasattr(jnp, "row_stack"), hasattr(jnp, "fix")
        """
    )


def test_errors_that_functions_of_numpy_note():
    both(
        """
        from jax._src import error_check
        from jax._src.numpy import error as numpy_error
        def noted(f, *args):
            f(*args)
            try:
                error_check.raise_if_error()
            except error_check.JaxValueError as error:
                return str(error)
            return ""
        one, zero, infinite = jnp.float32(1.0), jnp.float32(0.0), jnp.float32(jnp.inf)
        log = jax.jit(jnp.log)
        programs = {
            "log": (jnp.log, -one), "jit": (log, -one), "fine": (log, one), "add": (jnp.add, infinite, -infinite),
            "operator": (lambda x: x - x, infinite), "in jit": (jax.jit(lambda x: x - x), infinite),
            "divide": (jnp.divide, one, zero), "remainder": (jnp.remainder, jnp.int32(1), jnp.int32(0)),
            "slash": (lambda x, y: x / y, one, zero), "percent": (jax.jit(lambda x, y: x % y), one, zero),
            "reflected": (lambda x: 1.0 / x, zero), "power": (jnp.power, -one, one / 2),
        }
        every = {"all": "raise"}
        for options in ({}, {"nan": "raise"}, {"divide": "raise"}, every, {**every, "nan": "ignore"}, {}):
            with numpy_error.error_checking_behavior(**options):
                for name, (f, *args) in programs.items():
                    out[f"{options} {name}"] = noted(f, *args)
        with jax.numpy_rank_promotion("raise"):
            with numpy_error.error_checking_behavior(nan="raise"):
                out["with ranks"] = noted(log, -one)
            out["without"] = noted(log, -one)
        out["has its methods"] = [
            shown(f.accumulate(jnp.arange(4))) + str(f.accumulate(jnp.ones(3, kind)).dtype)
            for f in (jnp.add, jnp.subtract) for kind in ("int8", "float32")
        ]
        import inspect
        from jax import export
        out["is exported"] = round(float(export.export(jnp.sin)(one).call(one)), 6)
        out["name"] = [jnp.sin.__name__, list(inspect.signature(jnp.sin).parameters), callable(jnp.sin)]
        """
    )


def test_functions_that_note_errors_are_pickled_by_name():
    found = lines(
        """
        import pickle
        out["same"] = [pickle.loads(pickle.dumps(f)) is f for f in (jnp.sin, jnp.mod, jnp.exp)]
        """,
        "-m",
        "weft.as_jax",
    )
    assert found["same"] == [True, True, True]


def test_colocated_python():
    both(
        """
        from jax.experimental import colocated_python as beside

        mesh = jax.sharding.Mesh(np.array(jax.devices()), ["x"])
        place = NamedSharding(beside.colocated_cpu_devices(mesh), P())
        x = jax.device_put(np.int32(1), place)

        def kind(f, *args):
            try:
                return str(f(*args))
            except ValueError:
                return "ValueError"

        f = beside.colocated_python(lambda x: x + 1)
        y = f(x)
        out["called"] = [int(y), y.sharding == x.sharding]
        typed = f.specialize(
            in_specs=((jax.ShapeDtypeStruct((), np.int32, sharding=place),), {}),
            out_specs_fn=lambda spec: jax.ShapeDtypeStruct((), np.int32, sharding=place),
        )
        out["typed"] = int(typed(x))
        out["twice"] = kind(lambda: typed.specialize(out_specs_fn=lambda x: x))
        out["no devices"] = kind(beside.colocated_python(lambda: None))
        out["devices"] = kind(beside.colocated_python(lambda: None).specialize(devices=mesh.devices.ravel().tolist()))

        class Adder:
            def __init__(self, increment):
                self.increment = increment

            def add(self, x):
                return x + self.increment

        adder = beside.colocated_python_class(Adder)(3)
        out["object"] = [int(adder.add(x)), int(adder.add(y))]
        """
    )
