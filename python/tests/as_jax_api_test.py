"""weft.as_jax: options, what programs say of themselves, JAX's words in messages, and names that are private to JAX.
Each program runs under JAX, too, where it is installed."""

import pytest
from as_jax_both import both, lines


def test_options_decorate_functions():
    # Every context manager of an option, also those that change nothing; calls inside of calls.
    found = both(
        """
        managers = {
            "enable_x64": jax.enable_x64(True),
            "debug_nans": jax.debug_nans(False),
            "debug_infs": jax.debug_infs(False),
            "disable_jit": jax.disable_jit(False),
            "checking_leaks": jax.checking_leaks(),
            "default_matmul_precision": jax.default_matmul_precision("float32"),
            "default_device": jax.default_device(jax.devices()[0]),
            "numpy_rank_promotion": jax.numpy_rank_promotion("allow"),
            "numpy_dtype_promotion": jax.numpy_dtype_promotion("standard"),
            "transfer_guard": jax.transfer_guard("allow"),
            "mesh": jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",)),
        }
        for name, manager in managers.items():
            def f(n):
                return f"{jnp.asarray([1.0]).dtype}" + (f(n - 1) if n else "")
            f = manager(f)
            out[name] = [f(2), f(0)]
        out["after"] = str(jnp.asarray([1.0]).dtype)
        """
    )
    assert found["enable_x64"] == ["float64" * 3, "float64"] and found["after"] == "float32" and len(found) == 12


def test_threads_call_decorated_functions():
    both(
        """
        import threading
        @jax.enable_x64(True)
        def f(i):
            barrier.wait(60)
            found[i] = str(jnp.asarray([1.0]).dtype)
            barrier.wait(60)
        barrier, found = threading.Barrier(3), {}
        threads = [threading.Thread(target=f, args=(i,)) for i in range(3)]
        for t in threads: t.start()
        for t in threads: t.join()
        out["dtypes"] = sorted(found.values())
        out["here"] = str(jnp.asarray([1.0]).dtype)
        """
    )


def test_variables_of_the_environment_count_though_no_option_is_read():
    code = "out['dtype'] = str((jnp.ones(2) + 1).dtype)"
    assert both(code, JAX_ENABLE_X64="1") == {"dtype": "float64"}
    assert both(code, JAX_ENABLE_X64="0") == {"dtype": "float32"}


@pytest.mark.parametrize(
    "environment, code",
    [
        ({"XLA_FLAGS": "--xla_force_host_platform_device_count=3"}, ""),
        ({"JAX_NUM_CPU_DEVICES": "3"}, ""),
        ({}, "jax.config.update('jax_num_cpu_devices', 3)"),
        ({}, "os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=3'"),
    ],
)
def test_numbers_of_devices(environment, code):
    program = f"""
    jnp.ones(2).dtype if {code[:2] == "os"} is None else None
    {code}
    out["count"] = jax.device_count()
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
    out["sum"] = float(jax.jit(jnp.sum)(jax.device_put(jnp.arange(6.0), NamedSharding(mesh, P("x")))))
    """
    assert both(program, **environment) == {"count": 3, "sum": 15.0}


def test_devices_cannot_be_added_once_they_are_counted():
    found = both(
        """
        jax.devices()
        try:
            jax.config.update("jax_num_cpu_devices", 5)
            out["error"] = "none"
        except RuntimeError as error:
            out["error"] = str(error)[:60]
        """
    )
    assert found["error"] == "jax_num_cpu_devices config should be updated before backends"


def test_what_programs_say_of_arguments_and_results():
    both(
        """
        def f(x, y, *, z):
            return {"a": x["w"] @ y + z, "b": (x["w"].sum(),)}
        args = ({"w": jnp.ones((2, 3))}, jnp.ones((3,)))
        for donated in [{}, {"donate_argnums": 1}, {"donate_argnums": (0, 1)}, {"donate_argnames": "z"}]:
            lowered = jax.jit(f, **donated).lower(*args, z=1.5)
            for stage in (lowered, lowered.compile(), jax.jit(f, **donated).trace(*args, z=1.5)):
                shapes = jax.tree.map(lambda i: [list(i.shape), str(i.dtype)], stage.out_info)
                name = f"{donated} {type(stage).__name__}"
                out[name] = [shown(shapes)]
                if hasattr(stage, "donate_argnums") and not isinstance(stage, jax.stages.Traced):
                    out[name] += [list(stage.donate_argnums), stage.in_tree.num_leaves]
                    out[name] += [shown(jax.tree.map(lambda i: [list(i.shape), i.donated], stage.args_info))]
        """
    )


def test_memory_and_cost():
    # Sizes of arguments and results are counted by hand; of what a program works in there may be more or less.
    both(
        """
        for donated in [(), (0,)]:
            compiled = jax.jit(lambda x, y: (x * y, y.sum()), donate_argnums=donated).lower(
                jnp.ones((8, 4)), jnp.ones((8, 4))).compile()
            found = compiled.memory_analysis()
            out[str(donated)] = [found.argument_size_in_bytes, found.alias_size_in_bytes, found.temp_size_in_bytes >= 0]
            out[str(donated)] += [found.output_size_in_bytes >= 132, "flops" in compiled.cost_analysis()]
        """
    )


def test_compiled_programs_list_all_arguments_that_do_not_fit():
    found = both(
        """
        compiled = jax.jit(lambda x, y: x + y).lower(1.0, jnp.ones(3)).compile()
        for args in [(1, jnp.ones(3)), (1, jnp.ones(4)), (1.0, jnp.ones(3, "int32"))]:
            try:
                compiled(*args)
            except TypeError as error:
                out[str(args)] = [f"Argument '{n}' compiled with" in str(error) for n in "xy"]
        """
    )
    assert list(found.values()) == [[True, False], [True, True], [False, True]]


def test_attributes_of_functions():
    both(
        """
        def f(x):
            return x
        f.author = "me"
        out["jit"] = [jax.jit(f).author, jax.jit(f).__name__]
        g = jax.custom_batching.custom_vmap(jax.custom_jvp(lambda x: x * 2.0))
        @g.def_vmap
        def _(size, batched, x):
            return x * 2.0, batched[0]
        @g.defjvp
        def _(primals, tangents):
            return primals[0] * 2.0, tangents[0] * 5.0
        out["slopes"] = [float(jax.jvp(g, (1.0,), (1.0,))[1]), jax.vmap(g)(jnp.arange(2.0)).tolist()]
        """
    )


def test_zero_cotangents_of_whole_parts():
    both(
        """
        for place in range(3):
            @jax.custom_vjp
            def f(x):
                return x["a"] * x["b"][0] * x["b"][1]
            cts = [{"a": None, "b": (1.0, 2.0)}, {"a": 3.0, "b": None}, {"a": 3.0, "b": (None, 2.0)}][place]
            f.defvjp(lambda x: (f(x), None), lambda _, g: (cts,))
            out[str(place)] = shown(jax.tree.map(float, jax.grad(f)({"a": 1.0, "b": (1.0, 1.0)})))
        values = jax.custom_derivatives.custom_vjp_primal_tree_values
        g = jax.custom_vjp(lambda x: x["a"])
        g.defvjp(lambda x: (values(x)["a"], None), lambda _, ct: ({"a": 3 * ct},), symbolic_zeros=True)
        out["values"] = float(jax.grad(g)({"a": 1.0})["a"])
        """
    )


def test_callbacks_that_give_nothing():
    both(
        """
        from jax.experimental import io_callback
        seen = []
        def tell(x):
            seen.append(float(x))
        for f in [lambda x: io_callback(tell, (), x), jax.jit(lambda x: io_callback(tell, None, x, ordered=True))]:
            out[str(len(seen))] = repr(f(1.0))
            jax.effects_barrier()
        out["seen"] = seen
        """
    )


def test_callbacks_of_whole_batches():
    found = both(
        """
        struct = jax.ShapeDtypeStruct((), jnp.float32)
        for method in ["sequential", "expand_dims", "broadcast_all"]:
            shapes = []
            def add(x, y):
                shapes.append([list(np.shape(x)), list(np.shape(y))])
                return np.asarray(x + y, np.float32)
            f = lambda x, y: jax.pure_callback(add, struct, x, y, vmap_method=method)
            inner = jax.vmap(f, in_axes=(0, None))
            outer = jax.jit(jax.vmap(inner, in_axes=(None, 0)))
            values = [inner(jnp.arange(3.0), 1.0).tolist(), outer(jnp.arange(3.0), jnp.arange(2.0)).tolist()]
            out[method] = [values, shapes]
        out["deeper"] = float(jax.pure_callback(lambda x: {"y": [[np.float32(x)]]}, {"y": [struct]}, 1.0)["y"][0])
        """
    )
    assert found["expand_dims"][1] == [[[3], [1]], [[1, 3], [2, 1]]]


def test_dataclasses_and_other_classes():
    both(
        """
        import dataclasses
        class Plain:
            def __init__(self, a, b):
                self.a, self.b = a, b
        jax.tree_util.register_dataclass(Plain, data_fields=["a"], meta_fields=["b"])
        out["plain"] = [jax.tree.leaves(Plain(1, 2)), jax.tree.map(lambda x: x + 1, Plain(1, 2)).b]
        def made():
            return dataclasses.make_dataclass("Data", [("x", int), ("y", int)])
        calls = {
            "missing": lambda: jax.tree_util.register_dataclass(made(), data_fields=["x"], meta_fields=[]),
            "unknown": lambda: jax.tree_util.register_dataclass(made(), data_fields=["x", "y"], meta_fields=["z"]),
            "twice": lambda: jax.tree_util.register_dataclass(made(), data_fields=["x", "y"], meta_fields=["x"]),
            "neither": lambda: jax.tree_util.register_dataclass(type("Other", (), {})),
        }
        words = ["Missing fields: {'y'}", "Unexpected fields: {'z'}", "Overlapping fields: {'x'}", "are required when"]
        for (name, call), said in zip(calls.items(), words):
            try:
                call()
            except (TypeError, ValueError) as error:
                out[name] = said in str(error)
        """
    )


def test_orders_of_keys():
    both(
        """
        import collections
        kinds = [dict, collections.OrderedDict, lambda d: collections.defaultdict(list, d)]
        for n, kind in enumerate(kinds):
            inner = kind({"z": 1, "y": kind({"d": 2, "c": 3})})
            back = jax.tree.map(lambda x: x * 2, [kind({"b": inner, "a": 4})])[0]
            out[str(n)] = [list(back), list(back["b"]), list(back["b"]["y"]), type(back).__name__]
            out[f"leaves {n}"] = jax.tree.leaves(inner)
        out["default"] = back["none"]
        """
    )


def test_none_as_out_shardings_and_meshes_without_devices():
    found = both(
        """
        mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
        rows = NamedSharding(mesh, P("x"))
        x = jax.device_put(jnp.arange(8.0), rows)
        from jax.experimental.pjit import pjit
        for name, jit in [("jit", jax.jit), ("pjit", pjit)]:
            with mesh:
                y = jit(lambda x: x * 2, in_shardings=rows, out_shardings=None)(x)
            out[name] = [y.is_fully_replicated, y.tolist()]
        with jax.set_mesh(mesh):
            abstract = NamedSharding(mesh.abstract_mesh, P("x"))
            y = jax.jit(lambda x: lax.with_sharding_constraint(x + 1, abstract))(jnp.arange(8.0))
            out["abstract"] = [list(y.sharding.shard_shape(y.shape)), y.tolist()]
        """,
        JAX_NUM_CPU_DEVICES="2",
    )
    assert not found["jit"][0] and found["pjit"][0] and found["abstract"][0] == [4]


def test_checks_are_not_what_the_options_of_promotion_mean():
    both(
        """
        from jax.experimental import checkify
        with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
            x, i = jnp.ones((3, 3)), jnp.array([[0, 1], [1, 7]])
            programs = [
                (lambda: checkify.checkify(lambda x, i: x[i], errors=checkify.index_checks)(x, i)),
                (lambda: checkify.checkify(lambda x, i: x.at[i].add(1.0), errors=checkify.index_checks)(x, i)),
                (lambda: checkify.checkify(lambda x: 1.0 / x, errors=checkify.div_checks)(jnp.zeros(3))),
                (lambda: checkify.checkify(lambda x: jnp.log(x), errors=checkify.nan_checks)(-jnp.ones(3))),
            ]
            for n, program in enumerate(programs):
                out[str(n)] = program()[0].get()[:30]
        # A flag decides what is computed.
        checked = checkify.checkify(lambda flag: 1.0 if flag else 2.0)
        out["flag"] = [float(jax.jit(checked, static_argnums=0)(flag)[1]) for flag in (True, False)]
        out["loop"] = checkify.checkify(
            lambda x: lax.while_loop(lambda v: 0 * jnp.sin(1.0 / v) + v < 2.0, lambda v: v + 1, x),
            errors=checkify.float_checks)(0.0)[0].get()[:16]
        """
    )


# A wrong call, and what JAX's message says: programs look for it.
WRONG = [
    ("jax.jit(3)", "Expected a callable value"),
    ("jax.jit(lambda x: x)('foo')", "Error interpreting argument to"),
    ("jax.grad(lambda x: x)('foo')", "is not a valid JAX type"),
    ("jax.jit(lambda x: float(x))(1.0)", "x.astype(float)"),
    ("jax.jit(lambda x: [0, 1][x])(1)", "The __index__() method was called on traced array"),
    ("jax.jit(lambda x: 1 if x > 0 else 2)(1.0)", "Attempted boolean conversion of traced array"),
    ("jax.jit(lambda x: np.asarray(x))(1.0)", "The numpy.ndarray conversion method __array__() was called on"),
    ("jax.jit(lambda x, n: x, static_argnums=1)(1.0, [1])", "Non-hashable static arguments"),
    ("jax.jit(lambda x: 'text')(1.0)", "is not a valid JAX type"),
    ("jax.grad(lambda x: x)(1)", "grad requires real- or complex-valued inputs"),
    ("jax.grad(lambda x: x * 1j)(1.0)", "grad requires real-valued outputs"),
    ("jax.grad(lambda x: x, holomorphic=True)(1.0)", "grad with holomorphic=True requires inputs with complex dtype"),
    ("jax.jacfwd(lambda x: x, holomorphic=True)(1.0)", "jacfwd with holomorphic=True requires inputs with complex"),
    ("jax.jacrev(lambda x: x, holomorphic=True)(1.0)", "jacrev with holomorphic=True requires inputs with complex"),
    ("jax.grad(lambda x: (x, x, x), has_aux=True)(1.0)", "two-element tuple"),
    ("jax.jvp(lambda x: x, 1.0, (1.0,))", "primal and tangent arguments to jax.jvp must be tuples or lists"),
    ("jax.jvp(lambda x: x, (1.0,), ())", "must have the same tree structure"),
    ("jnp.dot(jnp.ones(3), jnp.ones(4))", "dot_general requires contracting dimensions to have the same shape"),
    ("jax.vmap(lambda x: x, in_axes=-3)(jnp.ones((2, 2)))", "vmap was requested to map its argument along axis -3"),
    ("jax.vmap(lambda x: x, out_axes=(1.5,))(jnp.ones(2))", "vmap out_axes must be an int, None, or"),
    ("jax.vmap(lambda x: x, in_axes=(1.5,))(jnp.ones(2))", "vmap in_axes must be an int, None, or"),
    ("jax.vmap(lambda x, y: x)(jnp.ones(2), jnp.ones(3))", "vmap got inconsistent sizes for array axes to be mapped"),
    ("jax.custom_jvp(lambda x: x)(1.0)", "No JVP defined for custom_jvp function"),
    ("jax.custom_vjp(lambda x: x)(1.0)", "No VJP defined for custom_vjp function"),
    ("jax.tree_util.tree_broadcast((1, 2), [3, 4])", "pytree structure error: different types at key path"),
    ("jax.tree_util.tree_broadcast([(1,)], [(3, 4)])", "pytree structure error: different lengths of tuple"),
    ("jax.tree_util.tree_broadcast({'a': 1}, {'b': 1})", "pytree structure error: different pytree metadata"),
    ("jax.device_put(1.0, 'cpu')", "Received invalid value"),
    ("jnp.arange(2).reshape(2, 3)", "cannot reshape array of shape (2,) (size 2) into shape (2, 3) (size 6)"),
    ("jnp.ones(6).reshape(-1, -1)", "can only specify one unknown axis size with a `-1` value, got (-1, -1)"),
]


@pytest.mark.parametrize("call, words", WRONG)
def test_messages_say_it_in_words_of_jax_too(call, words):
    found = both(
        f"""
        try:
            {call}
        except Exception as error:
            out["said"] = {words!r} in str(error)
        """
    )
    assert found == {"said": True}


def test_words_come_after_those_of_weft_and_before_thelines():
    done = lines(
        """
        try:
            jax.jit(3)
        except TypeError as error:
            out["lines"] = str(error).splitlines()
        """,
        "-m",
        "weft.as_jax",
    )
    first, second, third = done["lines"][:3]
    assert first == "jit: expected a function, got 3 of type 'int'"
    assert second == "JAX says: Expected a callable value, got 3" and third.startswith("  at ")


def test_prints_go_where_the_standard_output_does():
    both(
        """
        import contextlib, io
        def printed(f):
            buffer = io.StringIO()
            with contextlib.redirect_stdout(buffer):
                f()
                jax.effects_barrier()
            return sorted(buffer.getvalue().splitlines())
        def step(x):
            jax.debug.print("x: {x} {} {y:.2f} {z}", "text", x=x, y=jnp.float32(1.5), z=jnp.arange(3.0))
            return x * 2
        calls = {
            "eager": lambda: step(2.0),
            "jit": lambda: jax.jit(step)(2.0),
            "vmap": lambda: jax.vmap(step)(jnp.arange(2.0)),
            "grad": lambda: jax.grad(jax.jit(step))(2.0),
            "scan": lambda: lax.scan(lambda c, x: (c, step(x)), 0.0, jnp.arange(2.0)),
            "ordered": lambda: jax.jit(lambda x: jax.debug.print("{}", x, ordered=True))(jnp.ones((2, 2))),
        }
        for name, call in calls.items():
            out[name] = printed(call)
        """
    )


def test_gradients_into_references():
    found = both(
        """
        x, y = {"a": jnp.arange(3.0)}, jnp.ones(3)
        value, pull = jax.vjp(lambda x, y: (x["a"] * y * y).sum(), x, y)
        total, other = jax.new_ref(jnp.ones(3)), jax.new_ref(jnp.zeros(3))
        names = lambda t: [type(v).__name__ for v in jax.tree.leaves(t)]
        out["both"] = [names(pull.with_refs({"a": total}, other)(1.0)), total[...].tolist(), other[...].tolist()]
        some = pull.with_refs({"a": jax.ad.DontWant()}, jax.ad.GradValue())(2.0)
        out["some"] = [names(some[0]), some[1].tolist()]
        out["again"] = [names(pull.with_refs({"a": total}, jax.ad.DontWant())(1.0)), total[...].tolist()]

        def by_reference(f):
            def run(*args):
                sums = jax.tree.map(lambda x: jax.new_ref(jnp.zeros_like(x)), args)
                value, pull = jax.vjp(f, *args)
                pull.with_refs(*sums)(jnp.ones_like(value))
                return [jax.freeze(s) for s in sums]
            return run

        f = by_reference(lambda x, y: (x * x * y).sum())
        for name, g in [("alone", f), ("jit", jax.jit(f)), ("vmap", jax.vmap(f))]:
            args = (jnp.arange(6.0).reshape(2, 3), jnp.ones((2, 3)))
            out[name] = [v.tolist() for v in g(*args)]
        """
    )
    assert found["again"][1] == [1.0 + 2 * 1.0] * 3


def test_references_read_at_arrays():
    both(
        """
        x = jnp.arange(24.0).reshape(2, 3, 4)
        for n, index in enumerate([(np.array([1, 0]),), (np.array([[0, 1]]), 2), (..., np.array([1])), (...,), ()]):
            out[str(n)] = [jax.new_ref(x)[index].tolist(), jax.vmap(lambda r: r[index])(jax.new_ref(x[None])).tolist()]
        """
    )


def test_types_are_no_arguments_of_jitted_functions():
    both(
        """
        try:
            jax.jit(lambda x: x + 1)(jax.ShapeDtypeStruct((), np.float32))
        except TypeError:
            out["refused"] = True
        try:
            jax.device_put(jnp.arange(3), may_alias=True, donate=True)
        except ValueError:
            out["both"] = True
        x = jax.device_put(jnp.arange(3), jax.sharding.SingleDeviceSharding(jax.devices()[0]))
        out["same"] = [jax.device_put(x, x.sharding, may_alias=m) is x for m in (None, True, False)]
        """
    )


def test_blocks_of_devices_that_are_near():
    both(
        """
        import types
        from jax.experimental import mesh_utils
        def devices(slices, each, by):
            # Of different slices in turn.
            n = slices * each
            made = [dict(id=i, process_index=i % slices, platform="none", device_kind="none") for i in range(n)]
            if by == "slice":
                made = [{**d, "slice_index": d["process_index"]} for d in made]
            return [types.SimpleNamespace(**d) for d in made]
        for by in ("slice", "process"):
            shapes = [((2, 2), (2, 1)), ((2, 2), (1, 2)), ((1, 4), (2, 2)), ((4,), (3,)), ((2, 1, 2), (1, 3, 1))]
            for mesh, outer in shapes:
                count, each = int(np.prod(outer)), int(np.prod(mesh))
                found = mesh_utils.create_hybrid_device_mesh(
                    mesh, outer, devices(count, each, by), process_is_granule=by == "process")
                out[f"{by} {mesh} {outer}"] = np.vectorize(lambda d: d.id)(found).tolist()
        """
    )


def test_corners_of_jax_src():
    both(
        """
        from jax._src import api_util, config, core, dtypes, linear_util, tree_util, util
        from jax._src.interpreters import partial_eval as pe
        import inspect
        f = lambda x, y, z=3: (x, y, z)
        out["kwargs"] = list(api_util.resolve_kwargs(f, (1,), {"y": 2}))
        out["rebased"] = list(api_util.rebase_donate_argnums((2, 3), (0, 1)))
        out["donated"] = list(api_util.donation_vector((0,), (), jax.tree.structure((((1, 2), 3), {"k": 4}))))
        out["names"] = shown(api_util.infer_argnums_and_argnames(inspect.signature(f), None, "y"))
        out["lists"] = [util.tuple_insert((1, 2), 1, 9), util.tuple_update((1, 2), 1, 9)]
        out["lists"] += [util.split_list([1, 2, 3], [1])]
        pairs = [(1, [2]), ((1,), [1]), ([1, (2,)], [1, (2, 3)])]
        out["errors"] = [len(tree_util.prefix_errors(a, b)) for a, b in pairs]
        leaves, tree = jax.tree.flatten([1, 2])
        whole = jax.tree.structure([(0, 0), 0])
        out["prefix"] = tree_util.broadcast_flattened_prefix_with_treedef(leaves, tree, whole)
        out["option"] = [config.enable_checks.value, config.numpy_rank_promotion.value]
        new = config.bool_state("jax_option_of_a_test", default=True, help="")
        with new(False):
            out["own"] = [new.value]
        out["own"] += [new.value]
        info = api_util.debug_info("t", f, (1, 2), {})
        thrice = linear_util.wrap_init(lambda x: [x * 3], debug_info=info)
        out["call"] = [float(v) for v in core.call_p.bind(2.0, subfuns=(thrice,))]
        wrapped = linear_util.wrap_init(lambda x, y: [x + 1, y * 2], debug_info=info)
        jaxpr = pe.trace_to_jaxpr_dynamic(wrapped, [core.ShapedArray((), np.dtype("float32"))] * 2)[0]
        small, used = pe.dce_jaxpr(jaxpr, [False, True])
        out["trimmed"] = [len(small.eqns), used, len(small.invars)]
        out["dtypes"] = [str(dtypes.default_int_dtype()), str(dtypes.to_inexact_dtype(np.dtype("int32")))]
        """
    )


def test_results_that_are_kept_weakly():
    both(
        """
import functools, gc
from jax._src import api_util, linear_util as lu, util
class Key: pass
util.weakref_cache_key_types.add(Key)
@functools.partial(util.multi_weakref_lru_cache, trace_context_in_key=False, maxsize=3)
def made(*args, **kwargs): return [len(args), len(kwargs)]
info = lambda: [made.cache_info().hits, made.cache_info().misses, made.cache_info().currsize]
key, other = Key(), Key()
again = made(1, key, k=(other, other)) is made(1, key, k=(other, other))
out["kept"] = [again, info()]
del other
gc.collect()
out["gone"] = info()
for i in range(5): made(i, key)
out["bounded"] = info()
util.clear_all_caches()
out["cleared"] = info()
@lu.transformation_with_aux2
def by_position(f, store, factor, *args, **kwargs):
    store.store(sorted(kwargs))
    return f(*args, *kwargs.values(), factor=factor)
f = lambda *args, factor: [a * factor for a in args]
wrapped, names = by_position(lu.wrap_init(f, debug_info=api_util.debug_info("test", f, (1,), {})), 2)
out["wrapped"] = [wrapped.call_wrapped(1, b=3), names()]
"""
    )


def test_what_libraries_import_of_private_modules():
    both(
        """
from jax._src import public_test_util, typing, util
from jax._src.scipy import fft, integrate, linalg, ndimage, signal, special
from jax.api_util import shaped_abstractify
x = jnp.arange(3.0)
out["modules"] = [str(linalg.solve_triangular(jnp.eye(3), x)), str(fft.dct(x).shape), str(integrate.trapezoid(x)),
                  str(ndimage.map_coordinates(x, [jnp.array([0.5])], 1)), str(signal.convolve(x, x)),
                  str(special.logsumexp(x).dtype)]
out["aval"] = [str(shaped_abstractify(x)), str(shaped_abstractify(np.ones(2)))]
asked = [x, np.ones(2), np.float32(1), jnp.float32, 1.0, "float32"]
out["dtypes"] = [isinstance(a, typing.SupportsDType) for a in asked]
out["scalars"] = [isinstance(a, typing.StaticScalar) for a in asked]
out["names"] = [typing.DType is np.dtype, str(typing.DeprecatedArg()), int(typing.DLDeviceType.kDLCUDA)]
def f(*args, **kwargs): return [args, sorted(kwargs.items())]
a, b = util.HashablePartial(f, 1, k=2), util.HashablePartial(f, 1, k=2)
out["partial"] = [a == b, hash(a) == hash(b), a == util.HashablePartial(f, 2, k=2), str(a(3, z=4))]
def fails(xs, ys, **how):
    try:
        public_test_util.check_close(xs, ys, **how)
        return False
    except (AssertionError, ValueError):
        return True
ys = {"a": x, "b": (jnp.ones(2),)}
near = jax.tree.map(lambda y: y + 1e-7, ys)
far = jax.tree.map(lambda y: y + 1e-4, ys)
whole = jnp.arange(3)
out["close"] = [fails(ys, near), fails(ys, far), fails(ys, far, atol=1e-3), fails(ys, far, rtol={np.float32: 1e-2}),
                fails(ys, {"a": x}), fails(x, x[:2]), fails(whole, whole), fails(whole, whole + 1)]
"""
    )
