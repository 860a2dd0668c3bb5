"""Programs of checks for checkify_test.py, which runs them with JAX and with Weft under JAX's names."""

# ruff: noqa: F821, PLC


def get(f, *a, errors=None, **k):
    err, out = C.checkify(f, **({} if errors is None else {"errors": errors}))(*a, **k)
    return err.get(), out


def user():
    def f(x):
        C.check(x > 0, "must be positive {x}", x=x)
        return x

    return get(f, jnp.float32(-1.0)), get(f, jnp.float32(2.0)), get(jax.jit(f), jnp.float32(-3.0))


def jit_outside():
    def f(x):
        C.check(x > 0, "must be positive")
        return x

    e, o = jax.jit(C.checkify(f))(-1.0)
    return e.get(), o


def nan():
    return (
        get(lambda x: jnp.log(x), jnp.float32(-1.0), errors=C.nan_checks),
        get(lambda x: jnp.sin(x), jnp.float32(np.inf), errors=C.float_checks),
        get(lambda x: jnp.sin(x), jnp.float32(1), errors=C.float_checks),
    )


def nanarr():
    return get(lambda x: jnp.sqrt(x) + 1, jnp.array([1.0, -1.0]), errors=C.nan_checks)


def div():
    return (
        get(lambda x, y: x / y, jnp.ones(2), jnp.array([1.0, 0.0]), errors=C.div_checks),
        get(lambda x, y: x / y, jnp.zeros(()), jnp.zeros(()), errors=C.float_checks),
        get(lambda x, y: x // y, jnp.array(3), jnp.array(0), errors=C.div_checks),
        get(lambda x, y: x % y, jnp.array(3), jnp.array(0), errors=C.div_checks),
    )


def oob():
    return (
        get(lambda x, i: x[i], jnp.arange(3.0), jnp.array(5), errors=C.index_checks),
        get(lambda x, i: x[i], jnp.arange(3.0), jnp.array(-5), errors=C.index_checks),
        get(lambda x, i: x[i], jnp.arange(3.0), jnp.array(2), errors=C.index_checks),
        get(lambda x, i: x[:, i], jnp.ones((2, 3)), jnp.array([0, 7]), errors=C.index_checks),
    )


def oob_set():
    return (
        get(lambda x, i: x.at[i].set(1.0), jnp.arange(3.0), jnp.array(5), errors=C.index_checks),
        get(lambda x, i: x.at[i].add(1.0), jnp.arange(3.0), jnp.array([0, 5]), errors=C.index_checks),
        get(lambda x, i: x.at[i].mul(1.0), jnp.arange(3.0), jnp.array([0, 1]), errors=C.index_checks),
    )


def oob_ds():
    return get(
        lambda x, i: lax.dynamic_slice(x, (i,), (2,)), jnp.arange(3.0), jnp.array(2), errors=C.index_checks
    ), get(lambda x, i: lax.dynamic_update_slice(x, x[:2], (i,)), jnp.arange(3.0), jnp.array(2), errors=C.index_checks)


def take():
    return get(lambda x, i: jnp.take(x, i), jnp.arange(3.0), jnp.array([2, 3]), errors=C.index_checks), get(
        lambda x, i: jnp.take_along_axis(x, i, 0), jnp.arange(3.0), jnp.array([2, 3]), errors=C.index_checks
    )


def sets():
    return [
        sorted(e.__name__ for e in s) if all(hasattr(e, "__name__") for e in s) else len(s)
        for s in (
            C.user_checks,
            C.nan_checks,
            C.index_checks,
            C.div_checks,
            C.float_checks,
            C.automatic_checks,
            C.all_checks,
        )
    ]


def not_enabled():
    def f(x):
        C.check(x > 0, "pos")
        return jnp.log(x)

    return get(f, jnp.float32(-1.0), errors=C.div_checks), get(f, jnp.float32(-1.0), errors=C.nan_checks)


def first_of_two():
    def f(x):
        C.check(x > 0, "first")
        C.check(x > 1, "second")
        return x

    return get(f, jnp.float32(-1.0)), get(f, jnp.float32(0.5))


def vmap_in():
    def f(x):
        C.check(x > 0, "bad {}", x)
        return x

    return get(jax.vmap(f), jnp.array([1.0, -2.0, 3.0, -4.0]))


def vmap_out():
    def f(x):
        C.check(x > 0, "bad {}", x)
        return x

    e, o = jax.vmap(C.checkify(f))(jnp.array([1.0, -2.0, 3.0, -4.0]))
    return e.get(), o


def vmap_vmap_out():
    def f(x):
        C.check(x > 0, "bad {}", x)
        return x

    e, o = jax.vmap(jax.vmap(C.checkify(f)))(jnp.array([[1.0, -2.0], [3.0, -4.0]]))
    return e.get(), o


def grad_in():
    def f(x):
        C.check(x > 0, "bad {}", x)
        return jnp.sin(x) * 2

    return (
        get(jax.grad(f), jnp.float32(-1.0)),
        get(jax.grad(lambda x: jnp.sqrt(x)), jnp.float32(0.0), errors=C.all_checks),
        get(jax.value_and_grad(f), jnp.float32(-1.0)),
    )


def grad_out():
    def f(x):
        C.check(x > 0, "bad {}", x)
        return jnp.sin(x) * 2

    def g(x):
        e, o = C.checkify(f)(x)
        return o, e

    gr, e = jax.grad(g, has_aux=True)(-1.0)
    return e.get(), gr


def scan_():
    def b(c, x):
        C.check(x < 2, "x is {}", x)
        return c + x, c

    return get(lambda xs: lax.scan(b, 0.0, xs), jnp.arange(4.0)), get(lambda xs: lax.scan(b, 0.0, xs), jnp.arange(2.0))


def scan_nan():
    return get(
        lambda xs: lax.scan(lambda c, x: (c + jnp.log(x), c), 0.0, xs),
        jnp.array([1.0, -1.0, 2.0]),
        errors=C.float_checks,
    )


def fori():
    def b(i, c):
        C.check(i < 3, "i is {}", i)
        return c * 2.0

    return get(lambda n: lax.fori_loop(0, n, b, 1.0), 5), get(jax.jit(lambda n: lax.fori_loop(0, n, b, 1.0)), 2)


def while_():
    def b(c):
        C.check(c < 10, "c is {}", c)
        return c * 2

    return get(lambda x: lax.while_loop(lambda c: c < 20, b, x), jnp.array(1)), get(
        lambda x: lax.while_loop(lambda c: c < 8, b, x), jnp.array(1)
    )


def while_cond_check():
    def cnd(c):
        C.check(c < 10, "cond c is {}", c)
        return c < 20

    return get(lambda x: lax.while_loop(cnd, lambda c: c * 2, x), jnp.array(1)), get(
        lambda x: lax.while_loop(cnd, lambda c: c * 2, x), jnp.array(12)
    )


def cond_():
    def t(x):
        C.check(x < 5, "in true {}", x)
        return x

    def f(x):
        C.check(x > -5, "in false {}", x)
        return -x

    g = lambda x: lax.cond(x > 0, t, f, x)
    return [get(g, jnp.float32(v)) for v in (1.0, 7.0, -1.0, -7.0)]


def switch_():
    def mk(k):
        def f(x):
            C.check(x != k, "branch {} x {}", jnp.array(k), x)
            return x

        return f

    return [get(lambda i, x: lax.switch(i, [mk(0), mk(1), mk(2)], x), i, jnp.array(1)) for i in range(3)]


def nested():
    def b(c, x):
        def t(v):
            C.check(v < 2.5, "deep {}", v)
            return v

        return lax.cond(x > 1, t, lambda v: v, c + x), None

    return get(lambda xs: lax.scan(b, 0.0, xs)[0], jnp.arange(4.0)), get(
        jax.jit(lambda xs: lax.scan(b, 0.0, xs)[0]), jnp.arange(2.0)
    )


def vmap_scan():
    def b(c, x):
        C.check(c < 3, "c {}", c)
        return c + x, None

    return get(jax.vmap(lambda x: lax.scan(b, x, jnp.ones(3))[0]), jnp.array([0.0, 2.0]))


def throw():
    def f(x):
        C.check(x > 0, "neg")
        return x

    e, _ = C.checkify(f)(jnp.float32(-1.0))
    try:
        e.throw()
    except Exception as x:
        return type(x).__mro__[1].__name__, str(x), isinstance(x, ValueError)


def check_error_eager():
    def f(x):
        C.check(x > 0, "neg")
        return x

    e, _ = jax.jit(C.checkify(f))(jnp.float32(-1.0))
    try:
        C.check_error(e)
    except Exception as x:
        return str(x), isinstance(x, ValueError)


def check_error_inside():
    def f(x):
        C.check(x > 0, "neg {}", x)
        return x

    def g(x):
        e, o = jax.jit(C.checkify(f))(x)
        C.check_error(e)
        return o

    return get(g, jnp.float32(-1.0)), get(jax.jit(g), jnp.float32(-1.0)), get(g, jnp.float32(1.0))


def check_eager():
    try:
        C.check(jnp.array(False), "eager {}", jnp.array(3))
    except Exception as x:
        return str(x), isinstance(x, ValueError)


def debug_check_():
    def f(x):
        C.debug_check(x > 0, "neg")
        return x

    return f(-1.0), jax.jit(f)(-1.0), get(f, jnp.float32(-1.0))


def bad_pred():
    return get(lambda x: C.check(x > 0, "a") or x, jnp.ones(2))


def fmt_py():
    return get(lambda x: C.check(x > 0, "a {}", 3.0) or x, jnp.ones(()))


def fmt_tree():
    return get(lambda x: C.check(x > 0, "a {d}", d={"k": x}) or x, -jnp.ones(()))


def fmt_arr():
    return get(lambda x: C.check(x.sum() > 0, "arr {:} end", x) or x, -jnp.ones(3))


def custom_jvp_():
    @jax.custom_jvp
    def f(x):
        C.check(x > 0, "in jvp {}", x)
        return jnp.sin(x)

    f.defjvp(lambda p, t: (f(*p), t[0]))
    return get(f, jnp.float32(-1.0)), get(jax.grad(f), jnp.float32(-1.0))


def custom_vjp_():
    @jax.custom_vjp
    def f(x):
        C.check(x > 0, "in vjp {}", x)
        return jnp.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda r, g: (g * r,))
    return get(f, jnp.float32(-1.0)), get(jax.grad(f), jnp.float32(-1.0))


def remat():
    @jax.checkpoint
    def f(x):
        C.check(x > 0, "in remat {}", x)
        return jnp.sin(x)

    return get(f, jnp.float32(-1.0)), get(jax.grad(f), jnp.float32(-1.0))


def pytree_err():
    def f(x):
        C.check(x > 0, "neg")
        return x

    e, _ = C.checkify(f)(jnp.float32(-1.0))
    l, t = jax.tree.flatten(e)
    return jax.tree.unflatten(t, l).get()


def kwargs():
    return get(lambda x, *, y: (C.check(y > 0, "y {}", y), x)[1], jnp.float32(1.0), y=jnp.float32(-1.0))


def exc_class():
    def f(x):
        C.check(x > 0, "neg")
        return x

    e, _ = C.checkify(f)(jnp.float32(-1.0))
    x = e.get_exception()
    return type(x).__name__, str(x), repr(str(e))


def all_():
    return get(lambda x, i: jnp.log(x)[i] / 0.0, jnp.array([-1.0, 2.0]), jnp.array(9), errors=C.all_checks)


def no_error_str():
    e, _ = C.checkify(lambda x: x)(1.0)
    return e.get(), str(e), e.throw()


def matmul_nan():
    return get(lambda x: x @ x, jnp.array([[jnp.inf, 0.0], [0.0, 0.0]]), errors=C.nan_checks)


def add_nan():
    return (
        get(lambda x: x - x, jnp.float32(jnp.inf), errors=C.nan_checks),
        get(lambda x: jnp.sum(x), jnp.array([jnp.inf, -jnp.inf]), errors=C.nan_checks),
        get(lambda x: x * 0, jnp.float32(jnp.inf), errors=C.nan_checks),
        get(lambda x: jnp.max(x), jnp.array([jnp.nan]), errors=C.nan_checks),
        get(lambda x: x**0.5, jnp.float32(-1), errors=C.nan_checks),
        get(lambda x: jnp.where(x > 0, jnp.log(x), 0), jnp.float32(-1), errors=C.nan_checks),
    )
