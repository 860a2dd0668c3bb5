"""weft.as_jax: what libraries ask of transforms, in the ways in which they ask. Each program runs under JAX, too,
where it is installed."""

from as_jax_both import both


def test_attributes_of_jitted_functions():
    # haiku marks the functions of a model, and looks for the mark behind jit.
    found = both(
        """
        def f(x):
            return x
        f.original = lambda x: 2 * x
        g = jax.jit(f, static_argnames="x")
        out["found"] = [jax.jit(f).original(3), g.original(4), hasattr(jax.jit(lambda x: x), "original")]
        """
    )
    assert found["found"] == [6, 8, False]


def test_numbers_beside_what_is_differentiated_or_mapped():
    # equinox sorts arguments by whether they are arrays: inside of jit numbers stay Python's.
    found = both(
        """
        kinds = lambda tree: [type(v).__name__ for v in jax.tree.leaves(tree)]
        for name, transform in {
            "grad": lambda f: jax.grad(f, has_aux=True),
            "value_and_grad": lambda f: jax.value_and_grad(f, has_aux=True),
            "vmap": lambda f: jax.vmap(f, in_axes=(0, None)),
        }.items():
            seen = []
            def f(x, rest):
                seen.append(kinds(rest))
                return (x * rest["n"]).sum() ** rest["two"], x
            jax.jit(lambda x: transform(f)(x, {"n": 3, "two": 2.0, "on": True}))(jnp.ones(3))
            out[name] = seen
        @jax.jit
        def steps(x):
            def f(x, n):
                for _ in range(n):
                    x = jax.jit(lambda x, n: x * n, static_argnums=1)(x, n)
                return x
            return jax.grad(f)(x, 3), jax.vmap(f, in_axes=(0, None))(jnp.ones(2), 2)
        out["steps"] = [v.tolist() for v in steps(2.0)]
        """
    )
    assert found["grad"] == [["int", "bool", "float"]]


def test_values_that_a_derivative_goes_through():
    # equinox.filter_jvp tells them from the others by the class of traced values.
    found = both(
        """
        from jax._src.interpreters import ad  # jax.interpreters.ad.JVPTracer is deprecated
        a = jnp.ones(2)
        def kinds(y):
            values = [y, y * 2, 2 * a, jnp.zeros_like(y), jax.lax.stop_gradient(y), y > 0, jnp.stack([y, a])]
            seen.append([isinstance(v, ad.JVPTracer) for v in values])
            return y
        seen = []
        jax.jvp(kinds, (a,), (a,))
        jax.jit(lambda y: jax.jvp(kinds, (y,), (a,)))(a)
        jax.jit(kinds)(a)
        out["seen"] = seen
        """
    )
    assert found["seen"][0] == [True, True, False, False, False, False, True]
