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
