"""weft.as_jax: programs as jaxprs: their text, an equation for each jitted function, names of parts, where they come
from. Each program runs under JAX, too, where it is installed."""

from as_jax_both import both, lines

# Programs whose equations are JAX's, one by one.
SHOWN = {
    "one": "lambda x: jnp.sin(x)",
    "several": "lambda x: jnp.sin(x) * 2.0 + jnp.cos(x)",
    "no results": "lambda x: ()",
    "two results": "lambda x: (x, jnp.exp(x))",
    "literal": "lambda x: (x, 1.0)",
    "jit": "jax.jit(lambda x: jnp.sin(x) * 2.0)",
    "nothing reads it": "lambda x: jax.jit(lambda y: (y, jnp.sin(y)))(x)[0]",
    "jit inside of jit": "jax.jit(lambda x: f(x) * 3.0)",
    "short": "lambda x: jnp.sin(jnp.cos(x))",
    "inline": "jax.jit(lambda x: x * 2.0, inline=True)",
    "many": "lambda x: x + x * x - x / x + x * x * x - jnp.sin(x) + jnp.cos(x) - jnp.tanh(x)",
}


def test_texts_of_programs_are_those_of_jax():
    programs = "\n        ".join(f"out[{name!r}] = shown(lambda: {program})" for name, program in SHOWN.items())
    found = both(
        f"""
        @jax.jit
        def f(x):
            return jnp.sin(x) + 1.0
        def shown(make):
            return str(jax.make_jaxpr(make())(jnp.float32(1.0))).replace("<lambda>", "f")
        {programs}
        out["depth"] = [len(jax.make_jaxpr(f)(1.0).eqns), len(jax.make_jaxpr(lambda x: f(f(x)))(1.0).eqns)]
        """
    )
    assert found["one"] == "{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }" and found["depth"] == [1, 2]
    assert "jit[" in found["jit"] and "jit[" not in found["inline"] and found["jit inside of jit"].count("jit[") == 2


# Functions that captured the arrays c, v and w, and the constants of their jaxprs.
CAPTURING = {
    "a number": "lambda x: x * c",
    "numbers of Python and NumPy": "lambda x: x * 2.0 + np.float32(3.0) + np.array(2.0, np.float32)",
    "numbers made inside": "lambda x: x + jnp.ones(()) * jnp.asarray(2.0) + jnp.float32(0.5)",
    "an equal number made inside": "lambda x: x * c + jnp.float32(2.0)",
    "an array": "lambda x: x + v",
    "one array twice": "lambda x: (x + v) * v",
    "a large array": "lambda x: x + w",
    "in a scan": "lambda x: lax.scan(lambda s, _: (s * c, v), x, None, 3)",
    "numbers in a scan": "lambda x: lax.scan(lambda s, y: (s + y, s), 0.0, jnp.ones(3) * x)",
    "in a branch": "lambda x: lax.cond(x > 0, lambda y: y * c, lambda y: y, x)",
    "in a loop": "lambda x: lax.while_loop(lambda y: y < c, lambda y: y + 1.0, x)",
    "under vmap": "lambda x: jax.vmap(lambda y: y * c)(x * v)",
    "in a gradient": "jax.grad(lambda x: jnp.sin(x * c))",
    "functions of jax.nn": "lambda x: jax.nn.softplus(x) + jax.nn.gelu(x)",
    "a result": "lambda x: (x, v)",
}


def test_arrays_that_a_function_captured_are_constants_of_its_jaxpr():
    programs = "\n        ".join(f"out[{name!r}] = consts({program})" for name, program in CAPTURING.items())
    found = both(
        f"""
        c, v, w = jnp.float32(2.0), jnp.arange(3.0), jnp.ones(100)
        def consts(f):
            closed = jax.make_jaxpr(f)(jnp.float32(1.5))
            ran = jax.core.eval_jaxpr(closed.jaxpr, closed.consts, 1.5)
            same = jax.tree.map(np.allclose, ran, jax.tree.leaves(f(1.5)))
            assert all(same) and len(closed.consts) == len(closed.jaxpr.constvars)
            return sorted(f"{{k.dtype}}{{list(k.shape)}}" for k in closed.consts)
        {programs}
        # They may be replaced, and what captured them is not changed by the look.
        closed = jax.make_jaxpr(lambda x: x * c)(1.0)
        out["another"] = float(jax.core.eval_jaxpr(closed.jaxpr, [jnp.float32(5.0)], 3.0)[0])
        out["converted"] = len(jax.closure_convert(lambda x: x * c + v, 1.0)[1])
        """
    )
    assert found["a number"] == ["float32[]"] and found["numbers made inside"] == [] and found["another"] == 15


def test_equations_of_jitted_functions_can_be_looked_at_and_run():
    found = both(
        """
        @jax.jit
        def inner(x, y):
            return x * y, x + y
        import jax.extend
        def f(x):
            a, b = inner(x, 3.0)
            return jax.jit(lambda z: z - 1.0)(a) * b
        for n, g in enumerate([f, jax.grad(f), jax.vmap(f), lambda x: jax.vmap(jax.grad(f))(x)]):
            x = jnp.arange(3.0) if n > 1 else 2.0
            closed = jax.make_jaxpr(g)(x)
            run = jax.core.eval_jaxpr(closed.jaxpr, closed.consts, x)
            out[f"{n} runs"] = bool(np.allclose(run[0], g(x)))
            calls = [eqn for eqn in closed.eqns if eqn.primitive.name == "jit"]
            out[f"{n} calls"] = bool(calls) and all(
                isinstance(eqn.params["name"], str) and len(eqn.params["jaxpr"].jaxpr.invars) > 0 for eqn in calls)
            out[f"{n} again"] = bool(np.allclose(jax.jit(jax.extend.core.jaxpr_as_fun(closed))(x)[0], g(x)))
        eqn = jax.make_jaxpr(f)(1.0).eqns[0]
        out["name"] = [eqn.params["name"], "name" in eqn.params, "jaxpr" in eqn.params, eqn.params.get("none", 5)]
        """
    )
    assert found["name"] == ["inner", True, True, 5] and all(
        value is True for key, value in found.items() if key != "name"
    )


def test_names_of_parts_are_in_equations():
    found = both(
        """
        def stacks(f, *args):
            return [str(eqn.source_info.name_stack) for eqn in jax.make_jaxpr(f)(*args).jaxpr.eqns]
        x, xs = jnp.float32(1.0), jnp.ones(2)
        def nested(x):
            with jax.named_scope("a"):
                y = x + 1
                with jax.named_scope("b"):
                    y = y * 2
                y = y - 1
            return y / 2
        @jax.named_scope("deep")
        def recursive(x, n=2):
            return jnp.sin(x) if n == 0 else recursive(x, n - 1)
        out["none"] = stacks(lambda x: x + 1, x)
        out["nested"] = stacks(nested, x)
        out["decorator"] = stacks(jax.named_scope("f")(nested), x)
        out["recursive"] = stacks(recursive, x)
        out["call"] = stacks(jax.named_call(nested), x), stacks(jax.named_call(nested, name="other"), x)
        out["vmap"] = stacks(jax.vmap(nested), xs)
        out["outside of vmap"] = stacks(jax.named_scope("out")(jax.vmap(nested)), xs)
        out["jvp"] = stacks(lambda x: jax.jvp(jax.named_scope("s")(jnp.sin), (x,), (x,)), x)
        out["vmap of jvp"] = stacks(jax.vmap(lambda x: jax.jvp(jax.named_scope("s")(jnp.sin), (x,), (x,))), xs)
        out["after an exception"] = stacks(broken, x) if False else []
        try:
            with jax.named_scope("lost"):
                raise ValueError
        except ValueError:
            pass
        out["after an exception"] = stacks(lambda x: x + 1, x)
        """
    )
    assert found["none"] == [""] and found["nested"] == ["a", "a/b", "a", ""]
    assert found["vmap"] == ["vmap(a)", "vmap(a)/b", "vmap(a)", "vmap()"]


def test_names_of_the_transpose():
    found = both(
        """
        f = lambda x: jax.named_scope("part")(lambda y: 2.0 * jnp.sin(y))(x)
        stacks = [str(eqn.source_info.name_stack) for eqn in jax.make_jaxpr(jax.grad(f))(1.0).jaxpr.eqns]
        out["stacks"] = sorted({stack for stack in stacks if stack})
        """
    )
    assert found["stacks"] == ["jvp(part)", "transpose(jvp(part))"]


def test_texts_with_names_and_lines():
    found = lines(
        """
        @jax.named_scope("part")
        def f(x):
            return jnp.sin(x)
        jaxpr = jax.make_jaxpr(f)(1.0)
        out["names"] = jaxpr.pretty_print(name_stack=True)
        out["lines"] = jaxpr.pretty_print(source_info=True)
        out["untyped"] = jaxpr.pretty_print(print_shapes=False)
        """,
        "-m",
        "weft.as_jax",
    )
    assert "# [part]" in found["names"] and "named_scope(part)" in found["lines"]
    assert found["untyped"] == "{ lambda ; a. let b = sin a in (b,) }"


def test_a_function_is_traced_and_compiled_once_for_all_its_jits():
    found = both(
        """
        count = [0]
        def f(x, n=2):
            count[0] += 1
            return x * n
        for i in range(5):
            jax.jit(f)(jnp.float32(i))
        out["loop"] = count[0]
        jax.jit(f)(jnp.ones(3)); jax.jit(f)(jnp.ones(3))
        out["another type"] = count[0]
        jax.jit(f, static_argnums=1)(1.0, 3); jax.jit(f, static_argnums=1)(1.0, 4); jax.jit(f, static_argnums=1)(1.0, 3)
        out["static"] = count[0]
        def other(x):
            count[0] += 1
            return x
        import functools
        wrapped = functools.wraps(f)(lambda *a: other(*a))
        out["wrapper"] = [float(jax.jit(wrapped)(2.0)), float(jax.jit(f)(2.0))]
        import gc, weakref
        def g(x): return x + 1
        jax.jit(g)(1.0)
        ref = weakref.ref(g)
        del g
        gc.collect()
        out["freed"] = ref() is None
        """
    )
    assert found["loop"] == 1 and found["another type"] == 2 and found["freed"] and found["wrapper"] == [2.0, 4.0]


def test_what_is_traced_and_compiled_is_told():
    found = lines(
        """
        import jax._src.util, jax.monitoring
        counts, durations, events = {}, [], []
        jax._src.util.test_event_listener = lambda name, *_: counts.update({name: counts.get(name, 0) + 1})
        jax.monitoring.register_event_duration_secs_listener(lambda *a, **k: durations.append((*a, k)))
        jax.monitoring.register_event_listener(lambda *a, **k: events.append((*a, k)))
        @jax.jit
        def f(x):
            return inner(x) * 2
        inner = jax.jit(lambda x: jnp.sin(x))
        for x in (jnp.float32(1.0), jnp.float32(2.0), jnp.ones(3), jnp.ones(3), jnp.ones(2)):
            f(x)
        out["counts"] = dict(counts)
        out["durations"] = [name for name, seconds, more in durations if more["fun_name"] == "f" and seconds > 0]
        out["events"] = [name for name, more in events]
        inner(jnp.ones(2))
        out["one more"] = [counts["trace_to_jaxpr"], counts["pxla_cached_compilation"]]
        """,
        "-m",
        "weft.as_jax",
    )
    # The inner function is traced inside of the outer one; it is compiled where it is called by itself.
    assert found["counts"]["trace_to_jaxpr"] == 6 and found["counts"]["pxla_cached_compilation"] == 3
    assert found["counts"]["jit_cpp_cache_miss"] == 3 and found["one more"] == [6, 4]
    assert found["durations"] == ["/jax/core/compile/jaxpr_trace_duration"] * 3
    assert found["events"] == ["/jax/core/compile/backend_compile"] * 3


def test_equations_say_the_precision_that_is_asked_for():
    both(
        """
        import functools
        x = jnp.ones((3, 3))
        high = lax.Precision.HIGHEST
        def precisions(f, *args):
            found = [e.params["precision"] for e in jax.make_jaxpr(f)(*args).eqns if e.primitive is lax.dot_general_p]
            return [None if p is None else [one.name for one in p] for p in found]
        def product(a, b):
            return jnp.dot(a, b, precision=high)
        out["none"] = precisions(jnp.dot, x, x)
        out["matmul"] = precisions(lambda a: jnp.matmul(a, a, precision="high"), x)
        out["einsum"] = precisions(lambda a: jnp.einsum("ij,jk", a, a, precision=high), x)
        out["lax"] = precisions(lambda a: lax.dot(a, a, precision=high), x)
        out["text"] = "Precision.HIGHEST" in str(jax.make_jaxpr(product)(x, x))
        out["gradient"] = precisions(jax.grad(lambda a: product(a, a).sum()), x)[-2:]
        y, pullback = jax.vjp(product, x, x)
        out["pullback"] = precisions(pullback, y)
        out["batch"] = precisions(jax.vmap(product), x[None], x[None])
        with jax.default_matmul_precision("tensorfloat32"):
            out["by default"] = precisions(lambda a: a @ a, x), precisions(product, x, x)
            out["partial"] = precisions(functools.partial(jnp.dot, precision=high), x, x)
        names = lambda f: [str(e.source_info.name_stack) for e in jax.make_jaxpr(f)(x, x).eqns]
        out["no name"] = names(jax.named_scope("block")(product)), names(product)
        closed = jax.make_jaxpr(product)(x, x)
        again = lambda a, b: jax.core.eval_jaxpr(closed.jaxpr, closed.consts, a, b)
        out["evaluated"] = precisions(again, x, x), float(again(x, x)[0][0, 0])
        numbers = lambda f, *args: str(jax.make_jaxpr(f)(*args).eqns[0].params["dimension_numbers"])
        out["numbers"] = numbers(jnp.dot, x, x), numbers(lambda a: jnp.einsum("bij,bkj->bik", a, a), x[None])
        out["type"] = str(np.dtype(jax.make_jaxpr(jnp.dot)(x, x).eqns[0].params["preferred_element_type"]))
        """
    )


def test_a_product_of_several_dtypes_is_one_equation():
    found = both(
        """
        of = lambda dtype, *shape: jax.ShapeDtypeStruct(shape, dtype)
        def equations(f, *types):
            jaxpr = jax.make_jaxpr(f)(*types).jaxpr
            return [(e.primitive.name, str(np.dtype(e.params["preferred_element_type"]))
                     if e.primitive.name == "dot_general" else "") for e in jaxpr.eqns]
        to = ((1,), (0,)), ((), ())
        dot_to = lambda dtype: lambda x, y: jnp.dot(x, y, preferred_element_type=dtype)
        programs = {
            "dot": (jnp.dot, of("bfloat16", 5), of("float32", 5)),
            "matmul": (jnp.matmul, of("int8", 2, 3), of("float32", 3, 2)),
            "einsum": (lambda x, y: jnp.einsum("ij,jk->ik", x, y), of("float16", 2, 3), of("float32", 3, 2)),
            "wider": (dot_to("float32"), of("bfloat16", 5), of("bfloat16", 5)),
            "narrower": (dot_to("bfloat16"), of("float32", 5), of("float32", 5)),
            "lax": (lambda x, y: lax.dot_general(x, y, to, preferred_element_type=jnp.float32),
                    of("bfloat16", 2, 3), of("bfloat16", 3, 2)),
            "converted by hand": (lambda x, y: jnp.dot(x.astype("float32"), y), of("bfloat16", 5), of("float32", 5)),
        }
        for name, (f, *types) in programs.items():
            out[name] = equations(f, *types)
        from jax.extend import core as jex_core
        x, y = jnp.float32([1.5, 2.5]).astype("bfloat16"), jnp.float32([3.0, 0.1])
        closed = jax.make_jaxpr(jnp.dot)(x, y)
        out["run again"] = str(jex_core.jaxpr_as_fun(closed)(x, y)[0])
        """
    )
    assert found["dot"] == [["dot_general", "float32"]] and len(found["converted by hand"]) == 2


def test_primitives_with_effects_and_no_results_are_equations():
    found = both(
        """
        from jax._src import core, effects
        from jax._src.interpreters import mlir, partial_eval as pe

        class Noted(effects.Effect):
            __repr__ = lambda self: "noted"
        class Read(effects.JaxprInputEffect):
            pass
        noted = Noted()
        for allowed in (effects.lowerable_effects, effects.control_flow_allowed_effects):
            allowed.add_type(Noted)
            allowed.add_type(Read)
        note_p, read_p = core.Primitive("note"), core.Primitive("read")
        note_p.multiple_results = read_p.multiple_results = True
        note_p.def_effectful_abstract_eval(lambda *avals: ([], {noted}))
        read_p.def_effectful_abstract_eval(lambda *avals, index: ([], {Read(index)}))
        mlir.register_lowering(note_p, lambda ctx, *xs: [])

        def f(x, y):
            note_p.bind()
            read_p.bind(x, y, index=1)
            return x + 1

        jaxpr = jax.make_jaxpr(f)(1.0, 2.0).jaxpr
        out["names"] = [eqn.primitive.name for eqn in jaxpr.eqns]
        out["effects"] = [noted in jaxpr.effects, Read(jaxpr.invars[1]) in jaxpr.effects, len(jaxpr.effects)]
        def g(xs, z):
            return lax.scan(lambda z, x: (read_p.bind(x, z, index=0), (z, x))[1], z, xs)
        jaxpr = jax.make_jaxpr(g)(jnp.arange(3), 0).jaxpr
        out["scan"] = [Read(jaxpr.invars[0]) in jaxpr.effects, len(jaxpr.effects)]
        pruned, used = pe.dce_jaxpr(jaxpr, [False, False])
        out["kept"] = len(pruned.eqns), used
        out["run"] = float(jax.jit(lambda x: (note_p.bind(), x + 1)[1])(2.0))
        """
    )
    assert found["names"] == ["note", "read", "add"] and found["run"] == 3.0


def test_programs_are_checked_and_pruned():
    found = both(
        """
        from jax._src import core
        from jax._src.interpreters import partial_eval as pe

        def outcome(change):
            jaxpr = jax.make_jaxpr(lambda x: lax.switch(0, [jnp.sin, jnp.cos], jnp.sin(x)))(1.0).jaxpr
            eqn = next(e for e in jaxpr.eqns if e.primitive.name == "cond")
            try:
                change(jaxpr, eqn)
                core.check_jaxpr(jaxpr)
            except core.JaxprTypeError as error:
                return str(error).replace("check_jaxpr: ", "").split("\\n")[0]
        out["as it is"] = outcome(lambda jaxpr, eqn: None)
        out["branches"] = outcome(lambda jaxpr, eqn: eqn.params.update(branches=(4, 2)))
        def wrong(jaxpr, eqn):
            jaxpr.eqns[0].outvars[0].aval = core.ShapedArray((2,), np.dtype("float32"))
        out["types"] = outcome(wrong).partition(" inconsistently ")[2]

        def f(xs):
            body = lambda c, _: ([c[0]] + [a + b for a, b in zip(c[:-1], c[1:])], None)
            return lax.scan(body, xs, None, length=4)[0]
        jaxpr = jax.make_jaxpr(f)([1.0, 2.0, 3.0, 4.0]).jaxpr
        for used in ([True, True, True, False], [True, True, False, False], [False, False, False, True]):
            pruned, needed = pe.dce_jaxpr(jaxpr, used)
            out[str(used)] = needed, len(pruned.eqns[0].params["jaxpr"].eqns)
        """
    )
    assert found["branches"].startswith("invalid cond param branches") and found["as it is"] is None


def test_choices_by_a_boolean_convert_it():
    found = both(
        """
closed = jax.make_jaxpr(lambda x: lax.cond(x > 0, jnp.sin, lambda y: y * 2, x))(1.0)
eqns = closed.eqns
out["primitives"] = [str(e.primitive) for e in eqns]
out["number"] = [str(eqns[1].params["new_dtype"]), eqns[1].params["weak_type"], str(eqns[2].invars[0].aval)]
out["text"] = "convert_element_type[new_dtype=int32 weak_type=False]" in str(closed)
out["values"] = [float(jax.core.eval_jaxpr(closed.jaxpr, closed.consts, x)[0]) for x in (3.0, -3.0)]
"""
    )
    assert found["primitives"] == ["gt", "convert_element_type", "cond"]


def test_rules_have_names():
    found = both(
        """
f = jax.custom_jvp(lambda x: x + 1)
@f.defjvp
def f_jvp(p, t): return f(*p), t[0]
def g(x): return x * 2
def g_fwd(x): return x * 2, None
def g_bwd(_, ct): return (ct,)
h = jax.custom_vjp(g)
h.defvjp(g_fwd, g_bwd)
out["jvp"], out["vjp"] = (str(jax.make_jaxpr(k)(jnp.ones(1))) for k in (f, h))
from jax._src import core
context, settings = core.JaxprPpContext(), core.JaxprPpSettings()
out["parameters"] = [str(core.pp_kv_pair("p", v, context, settings)) for v in (frozenset("cab"), frozenset(), 3, "x")]
"""
    )
    assert "jvp=f_jvp" in found["jvp"] and "fwd=g_fwd" in found["vjp"]


def test_sums_of_narrow_floats_say_that_they_are_of_32_bits():
    found = both(
        """
        prims = lambda f, dtype: [e.primitive.name for e in jax.make_jaxpr(f)(jnp.ones(10, dtype)).eqns]
        for dtype in ("float16", "bfloat16", "float32"):
            out[dtype] = [
                prims(jnp.sum, dtype),
                prims(jnp.prod, dtype),
                prims(lambda x: jnp.sum(x, dtype=dtype), dtype),
                prims(lambda x: jnp.mean(x, dtype=dtype), dtype),
            ]
        out["values"] = shown(jax.jit(lambda x: (x.sum(), jnp.mean(x, dtype="float16")))(jnp.ones(3000, "float16")))
        """
    )
    assert found["float16"][0] == ["convert_element_type", "reduce_sum", "convert_element_type"]


def test_functions_with_rules_are_shown_without_what_nobody_reads():
    both(
        """
        from jax._src.interpreters import partial_eval as pe
        @jax.custom_jvp
        def f(x, y):
            return jnp.sin(x), x + jnp.cos(y)
        f.defjvp(lambda p, t: (f(*p), (jnp.cos(p[0]) * t[0], t[0] - jnp.sin(p[1]) * t[1])))
        @jax.custom_vjp
        def g(x, y):
            return jnp.sin(x), x + jnp.cos(y)
        g.defvjp(lambda x, y: (g(x, y), (x, y)), lambda res, ct: (ct[0], ct[1]))
        for h in (f, g):
            jaxpr = jax.make_jaxpr(h)(0.1, -1.3).jaxpr
            for used in ([True, False], [False, True], [True, True]):
                new, inputs = pe.dce_jaxpr(jaxpr, used)
                inside = [e.primitive.name for e in new.eqns[0].params["call_jaxpr"].eqns]
                values = jax.core.eval_jaxpr(new, [], 0.1, -1.3)
                out[f"{h.__name__} {used}"] = [sorted(set(inside)), inputs, shown(values)]
        """
    )


def test_equations_of_debugging():
    found = both(
        """
        def f(x):
            jax.debug.print("x = {}", x)
            jax.debug.callback(lambda x: None, x)
            return x
        closed = jax.make_jaxpr(f)(np.float32(1.0))
        out["names"] = [e.primitive.name for e in closed.eqns]
        out["text"] = str(closed.eqns[0]).startswith("debug_print[")
        out["scopes"] = [str(e.source_info.name_stack) for e in jax.make_jaxpr(jax.named_scope("here")(f))(1.0).eqns]
        """
    )
    assert found["names"] == ["debug_print", "debug_callback"]


def test_calls_of_the_host_are_in_texts_of_programs():
    found = lines(
        """
        def f(x):
            jax.debug.print("{}", x)
            return jax.pure_callback(lambda x: x + 1, x, x) * 2
        text = jax.jit(f).lower(jnp.arange(3)).as_text()
        out["calls"] = [line.strip().partition("(")[0] for line in text.splitlines() if "custom_call" in line]
        out["head"] = text.splitlines()[0]
        g = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
        out["barrier"] = ["optimization_barrier" in jax.jit(h).lower(1.0).as_text() for h in (jnp.sin, jax.grad(g))]
        out["compiled"] = ["opt-barrier" in jax.jit(h).lower(1.0).as_text("hlo") for h in (g, jax.grad(g))]
        """,
        "-m",
        "weft.as_jax",
    )
    assert found["calls"] == [
        "stablehlo.custom_call @weft_io_callback",
        "%0 = stablehlo.custom_call @weft_pure_callback",
    ]
    assert "mhlo.num_partitions = 1" in found["head"]
    assert found["barrier"] == [False, True] and found["compiled"] == [False, True]


def test_what_a_program_says_of_its_function():
    found = both(
        """
        def f(x, y, *rest, k=1.0, **more):
            return {"a": x + rest[0], "b": [y["u"][0] * k]}
        args, named = (1.0, {"u": [2.0, 3.0]}, 4.0, 5.0), {"k": 2.0, "z": 3.0}
        def said(closed):
            kind, place, *names = closed.jaxpr.debug_info
            return [kind, place.split(" at ")[0], *names]
        out["make_jaxpr"] = said(jax.make_jaxpr(f)(*args, **named))
        out["static"] = said(jax.make_jaxpr(f, static_argnums=(2,))(*args, **named))
        out["trace"] = said(jax.jit(f).trace(*args, **named).jaxpr)
        out["trace, static"] = said(jax.jit(f, static_argnames="k").trace(*args, **named).jaxpr)
        info = jax.make_jaxpr(lambda *a: a[0])(1.0).jaxpr.debug_info
        out["line"] = info.func_name, info.func_lineno
        out["kept"] = jax.make_jaxpr(f)(*args).jaxpr.replace(eqns=[]).debug_info.arg_names
        """
    )
    assert found["static"][2] == ["x", "y['u'][0]", "y['u'][1]", "rest[1]", "k", "more['z']"]


def test_programs_of_derivatives_that_compute_in_64_bits():
    """What would cancel is computed in a wider dtype, which nobody sees: constants that were taken out as 32 bits."""
    both(
        """
        functions = {"square": lambda y: y**2 - 2.0, "third": lambda y: 0.1 - y * y * 0.3,
                     "exp": lambda y: jnp.exp(y) - 1, "cos": lambda y: 1 - jnp.cos(y),
                     "two": lambda y: (y - 0.7) * (y + 0.3) - y**2,
                     "sum": lambda y: ((y - 1.1) ** 2).sum() - y.sum()}
        for name, f in functions.items():
            for at in (jnp.float32(1.25), jnp.linspace(0.5, 2, 5)):
                for kind, linear in {"linearize": jax.linearize(f, at)[1], "jvp": lambda t: jax.jvp(f, (at,), (t,))[1],
                                     "vjp": lambda t: jax.vjp(f, at)[1](f(at) * 0 + t.sum())[0]}.items():
                    closed = jax.make_jaxpr(linear)(at)
                    consts = [np.asarray(c) for c in closed.consts]
                    found = jax.core.eval_jaxpr(closed.jaxpr, consts, at)
                    again = jax.core.eval_jaxpr(closed.jaxpr, [jnp.asarray(c) for c in consts], np.asarray(at))
                    jitted = jax.jit(lambda *cs: jax.core.eval_jaxpr(closed.jaxpr, cs, at))(*closed.consts)
                    for x in (found, again, jitted):
                        right = bool(np.allclose(x[0], linear(at), 1e-5, 1e-6))
                        out[f"{name} {kind} {at.shape}"] = [str(x[0].dtype), right]
        """
    )
