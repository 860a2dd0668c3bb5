"""weft.as_jax: effects of a library's own primitives in functions with rules of their own and on several devices. The
program runs under JAX, too, where it is installed."""

from as_jax_both import both


def test_effects_in_functions_with_rules_and_on_devices():
    found = both(
        """
        from jax._src import core, effects
        from jax.interpreters import mlir

        class Ordered(effects.Effect):
            __str__ = __repr__ = lambda self: "ordered"
        class Allowed(effects.Effect):
            __str__ = __repr__ = lambda self: "allowed"
        effects.lowerable_effects.add_type(Ordered)
        effects.lowerable_effects.add_type(Allowed)
        effects.ordered_effects.add_type(Ordered)
        effects.custom_derivatives_allowed_effects.add_type(Allowed)
        known = {"ordered": Ordered(), "allowed": Allowed()}
        p = core.Primitive("acts")
        p.def_impl(lambda x, which: x)
        p.def_effectful_abstract_eval(lambda x, which: (x, {known[which]}))
        def lowering(ctx, x, which):
            ctx.set_tokens_out(ctx.tokens_in)
            return [x]
        mlir.register_lowering(p, lowering)
        act = lambda which: lambda x: p.bind(x, which=which)

        def forward(which):
            f = jax.custom_jvp(act(which))
            f.defjvp(lambda xs, ts: (xs[0], ts[0]))
            return f
        def reverse(which):
            f = jax.custom_vjp(act(which))
            f.defvjp(lambda x: (x, ()), lambda _, g: (g,))
            return f
        for name, made in {"custom_jvp": forward, "custom_vjp": reverse}.items():
            for which in known:
                for checks in (False, True):
                    with jax.enable_checks(checks):
                        try:
                            found = sorted(map(str, jax.make_jaxpr(made(which))(2.0).effects))
                        except NotImplementedError as error:
                            found = str(error).partition(":")[0]
                    out[f"{name} {which} {checks}"] = found
            out[f"{name} at once"] = float(made("ordered")(2.0))

        x = jnp.arange(8.0)
        for name, run in {"pmap": jax.pmap, "jit of pmap": lambda f: jax.jit(jax.pmap(f))}.items():
            try:
                out[name] = run(act("ordered"))(x).tolist()
            except ValueError as error:
                out[name] = str(error).partition("]")[0]
            out[name + " without an order"] = run(act("allowed"))(x).tolist()
        out["one device"] = jax.jit(act("ordered"))(x).tolist()
        """,
        XLA_FLAGS="--xla_force_host_platform_device_count=8",
    )
    assert found["custom_jvp ordered True"] == "Effects not supported in `custom_jvp`"
    assert found["pmap"].startswith("The following ordered effects are not supported")


def test_effects_of_programs_that_print_call_and_check():
    found = both(
        """
        from jax.experimental import checkify, io_callback
        from jax.interpreters import partial_eval as pe

        programs = {
            "print": lambda x: jax.debug.print("{}", x),
            "callback": lambda x: io_callback(lambda y: None, None, x),
            "check": lambda x: checkify.check(x > 0, "not positive: {}", x),
            "two of a check": lambda x: checkify.check(x > 0, "{} {y}", x, y=jnp.ones(2)),
            "nothing": lambda x: jnp.sin(x),
        }
        around = {
            "as it is": lambda f: f,
            "jit": jax.jit,
            "scan": lambda f: lambda x: lax.scan(lambda c, _: (c, f(c)) and (c, None), x, None, 2),
            "cond": lambda f: lambda x: lax.cond(x > 0, lambda y: (f(y), y)[1], lambda y: y, x),
        }
        for name, f in programs.items():
            for inside, change in around.items():
                closed = jax.make_jaxpr(change(lambda x: (f(x), x)[1]))(jnp.float32(1))
                kept, used = pe.dce_jaxpr(closed.jaxpr, [False] * len(closed.jaxpr.outvars))
                out[f"{name}, {inside}"] = [
                    sorted(type(e).__name__ + str(getattr(e, "shape_dtypes", "")) for e in closed.effects), used]
        """
    )
    assert found["print, jit"] == [["DebugEffect"], [True]] and found["nothing, scan"] == [[], [False]]


def test_programs_with_checks_run_as_they_are_read():
    found = both(
        """
        from jax.experimental import checkify

        for name, check in {"check": checkify.check, "debug": checkify.debug_check}.items():
            def f(x):
                check(jnp.all(x > 0), "not positive: {x}", x=x)
                return x * 2

            closed = jax.make_jaxpr(f)(jnp.ones(()))
            again = checkify.checkify(jax.jit(lambda x: jax.core.eval_jaxpr(closed.jaxpr, closed.consts, x)))
            for x in (1.0, -1.0):
                error, (y,) = again(jnp.float32(x))
                out[f"{name} {x}"] = (error.get() or "").partition("\\n")[0], float(y)
        """
    )
    assert found["check -1.0"] == ["not positive: -1.0 (`check` failed)", -2]
