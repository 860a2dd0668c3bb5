"""Programs of references for references_test.py, which runs them with JAX and with Weft under the name `jax`."""

# ruff: noqa: F821, PLC


def set_scalar_broadcast():
    r = jax.new_ref(jnp.zeros(3))
    r[...] = 1.0
    return r[...]


def set_dtype():
    r = jax.new_ref(jnp.zeros(3, jnp.int32))
    r[...] = jnp.ones(3)
    return r[...]


def set_weak():
    r = jax.new_ref(jnp.zeros(3, jnp.int32))
    r[0] = 1.5
    return r[...]


def set_np():
    r = jax.new_ref(np.zeros(3))
    r[0] = np.float64(1.5)
    return r[...], r.dtype


def pyscalar():
    r = jax.new_ref(1.0)
    r[...] += 1
    return r[...], r[...].weak_type, r.dtype, r.shape, r.ndim, str(r), repr(r), r.size


def iadd():
    r = jax.new_ref(jnp.arange(3.0))
    r[1] += 5.0
    r[...] *= 2
    r[1:] -= 1
    return r[...]


def oob_get():
    r = jax.new_ref(jnp.arange(3.0))
    return r[5]


def neg():
    r = jax.new_ref(jnp.arange(3.0))
    a = r[-1]
    r[-1] = 7.0
    return a, r[...]


def fancy():
    r = jax.new_ref(jnp.arange(12.0).reshape(3, 4))
    i = jnp.array([0, 2])
    a = r[i]
    b = r[i, i]
    c = r[1:3, ::2]
    return a, b, c


def boolmask():
    r = jax.new_ref(jnp.arange(3.0))
    return r[jnp.array([True, False, True])]


def none_idx():
    r = jax.new_ref(jnp.arange(3.0))
    return r[None]


def negstep():
    r = jax.new_ref(jnp.arange(3.0))
    return r[::-1]


def refapi():
    r = jax.new_ref(jnp.arange(3.0))
    a = jax.ref.get(r, 0)
    jax.ref.set(r, 0, 5.0)
    b = jax.ref.swap(r, 1, 9.0)
    jax.ref.addupdate(r, 2, 1.0)
    return a, b, r[...]


def swap_ell():
    r = jax.new_ref(jnp.arange(3.0))
    b = jax.ref.swap(r, ..., jnp.ones(3))
    return b, r[...]


def add_to_array():
    r = jax.new_ref(jnp.arange(3.0))
    return r + 1


def jnp_sin_ref():
    r = jax.new_ref(jnp.arange(3.0))
    return jnp.sin(r)


def np_asarray_ref():
    r = jax.new_ref(jnp.arange(3.0))
    return np.asarray(r)


def jit_closure():
    r = jax.new_ref(jnp.arange(3.0))

    @jax.jit
    def f(x):
        r[0] += x
        return r[0] * 2

    a = f(1.0)
    b = f(2.0)
    return a, b, r[...]


def jit_arg():
    r = jax.new_ref(jnp.arange(3.0))
    s = jax.new_ref(jnp.ones(3))

    @jax.jit
    def f(x, r):
        r[0] += x
        return r[0] * 2

    a = f(1.0, r)
    b = f(2.0, s)
    return a, b, r[...], s[...]


def jit_tree_arg():
    d = {"a": jax.new_ref(0.0), "b": [jax.new_ref(jnp.ones(2))]}

    @jax.jit
    def f(d):
        d["a"][...] += 1.0
        d["b"][0][...] *= d["a"][...]

    f(d)
    f(d)
    return d["a"][...], d["b"][0][...]


def jit_alias():
    r = jax.new_ref(jnp.arange(3.0))
    return jax.jit(lambda a, b: a[0] + b[0])(r, r)


def jit_alias_closure():
    r = jax.new_ref(jnp.arange(3.0))

    def f(a):
        a[...] = r[...] + 1.0

    return jax.jit(f)(r)


def jit_return_ref():
    r = jax.new_ref(jnp.arange(3.0))
    return jax.jit(lambda a: a)(r)


def jit_return_new_ref():
    return jax.jit(lambda x: jax.new_ref(x))(1.0)


def jit_local():
    def f(x):
        r = jax.new_ref(jnp.zeros(3))
        r[1] = x
        return jax.freeze(r)

    return jax.jit(f)(3.0)


def leak():
    out = []

    def f(x):
        out.append(jax.new_ref(x))
        return x

    jax.jit(f)(1.0)
    return out[0][...]


def store_ref_in_ref():
    r = jax.new_ref(jnp.arange(3.0))
    s = jax.new_ref(jnp.arange(3.0))
    r[...] = s


def new_ref_of_ref():
    return jax.new_ref(jax.new_ref(1.0))


def new_ref_tree():
    return jax.new_ref({"a": 1.0})


def scan_closure():
    r = jax.new_ref(0.0)

    def body(c, x):
        r[...] += x
        return c + r[...], r[...]

    out = jax.lax.scan(body, 0.0, jnp.arange(4.0))
    return out, r[...]


def scan_xs_ref():
    r = jax.new_ref(jnp.arange(4.0))

    def body(c, x):
        x[...] = x[...] * 2
        return c + x[...], None

    out = jax.lax.scan(body, 0.0, r)
    return out, r[...]


def scan_carry_ref():
    r = jax.new_ref(jnp.arange(4.0))

    def body(c, x):
        c[0] += x
        return c, None

    jax.lax.scan(body, r, jnp.arange(3.0))
    return r[...]


def scan_index():
    r = jax.new_ref(jnp.zeros(4))

    def body(i, c):
        r[i] = c
        return c * 2

    out = jax.lax.fori_loop(0, 4, body, 1.0)
    return out, r[...]


def fori_traced():
    r = jax.new_ref(jnp.zeros(4))

    def body(i, c):
        r[i] = c
        return c * 2

    out = jax.jit(lambda n: jax.lax.fori_loop(0, n, body, 1.0))(3)
    return out, r[...]


def while_body():
    r = jax.new_ref(0)

    def body(c):
        r[...] += 1
        return c * 2

    out = jax.lax.while_loop(lambda c: c < 100, body, 1)
    return out, r[...]


def while_cond_read():
    r = jax.new_ref(0)

    def body(c):
        r[...] += 1
        return c * 2

    out = jax.lax.while_loop(lambda c: r[...] < 5, body, 1)
    return out, r[...]


def while_cond_write():
    r = jax.new_ref(0)

    def cnd(c):
        r[...] += 1
        return c < 100

    out = jax.lax.while_loop(cnd, lambda c: c * 2, 1)
    return out, r[...]


def while_carry_ref():
    r = jax.new_ref(0)

    def body(c):
        c[0][...] += 1
        return c[0], c[1] * 2

    jax.lax.while_loop(lambda c: c[1] < 100, body, (r, 1))
    return r[...]


def cond_one():
    r = jax.new_ref(1.0)

    def t(x):
        r[...] = x
        return x

    def f(x):
        return x * 2

    a = jax.lax.cond(True, t, f, 5.0)
    b = r[...]
    c = jax.lax.cond(False, t, f, 6.0)
    return a, b, c, r[...]


def cond_arg():
    r = jax.new_ref(1.0)

    def t(r, x):
        r[...] = x

    def f(r, x):
        r[...] = -x

    jax.lax.cond(True, t, f, r, 5.0)
    return r[...]


def cond_return_ref():
    r = jax.new_ref(1.0)
    return jax.lax.cond(True, lambda: r, lambda: r)


def switch_():
    r = jax.new_ref(jnp.zeros(3))

    def mk(i):
        def f():
            r[i] = 1.0 * i + 1

        return f

    jax.lax.switch(2, [mk(0), mk(1), mk(2)])
    return r[...]


def vmap_closure_read():
    r = jax.new_ref(2.0)
    return jax.vmap(lambda x: x * r[...])(jnp.arange(3.0))


def vmap_closure_write():
    r = jax.new_ref(2.0)

    def f(x):
        r[...] = x
        return x

    return jax.vmap(f)(jnp.arange(3.0)), r[...]


def vmap_closure_add():
    r = jax.new_ref(2.0)

    def f(x):
        r[...] += x
        return x

    return jax.vmap(f)(jnp.arange(3.0)), r[...]


def vmap_closure_addupdate():
    r = jax.new_ref(2.0)

    def f(x):
        jax.ref.addupdate(r, ..., x)
        return x

    return jax.vmap(f)(jnp.arange(3.0)), r[...]


def vmap_closure_unbatched_write():
    r = jax.new_ref(2.0)

    def f(x):
        r[...] = 5.0
        return x

    return jax.vmap(f)(jnp.arange(3.0)), r[...]


def vmap_arg():
    r = jax.new_ref(jnp.zeros((3, 2)))

    def f(r, x):
        r[0] = x
        r[1] += 2 * x
        return x

    return jax.vmap(f)(r, jnp.arange(3.0)), r[...]


def vmap_arg_axis1():
    r = jax.new_ref(jnp.zeros((2, 3)))

    def f(r, x):
        r[0] = x
        r[1] += 2 * x
        return x

    return jax.vmap(f, in_axes=(1, 0))(r, jnp.arange(3.0)), r[...]


def vmap_batched_index():
    r = jax.new_ref(jnp.arange(4.0))
    return jax.vmap(lambda i: r[i])(jnp.array([2, 0, 3]))


def vmap_local_unbatched_init_then_batched():
    def f(x):
        r = jax.new_ref(0.0)
        r[...] = x
        return r[...]

    return jax.vmap(f)(jnp.arange(3.0))


def grad_local():
    def f(x):
        r = jax.new_ref(jnp.zeros(3))
        r[0] = jnp.sin(x)
        r[1] = r[0] * x
        return jax.freeze(r).sum()

    return jax.grad(f)(2.0), jax.grad(jax.grad(f))(2.0)


def grad_local_jit_scan():
    def f(x):
        r = jax.new_ref(x)

        def b(i, c):
            r[...] *= jnp.cos(r[...])
            return c + r[...]

        return jax.lax.fori_loop(0, 3, b, 0.0) + r[...]

    return jax.grad(f)(2.0), jax.jit(jax.grad(f))(2.0), jax.jvp(f, (2.0,), (1.0,))


def grad_local_while():
    def f(x):
        r = jax.new_ref(x)

        def b(c):
            r[...] *= 0.5
            return c + 1

        jax.lax.while_loop(lambda c: c < 3, b, 0)
        return r[...]

    return jax.jvp(f, (2.0,), (1.0,))


def grad_closure_read():
    r = jax.new_ref(3.0)
    return jax.grad(lambda x: x * x * r[...])(2.0)


def grad_closure_write_primal():
    r = jax.new_ref(3.0)

    def f(x):
        r[...] = x
        return x * x

    return jax.grad(f)(2.0), r[...]


def grad_closure_write_stopped():
    r = jax.new_ref(3.0)

    def f(x):
        r[...] = jax.lax.stop_gradient(x)
        return x * x

    return jax.grad(f)(2.0), r[...]


def grad_closure_write_const():
    r = jax.new_ref(3.0)

    def f(x):
        r[...] += 1.0
        return x * x * r[...]

    return jax.grad(f)(2.0), r[...]


def grad_arg_other():
    r = jax.new_ref(3.0)

    def f(x, r):
        r[...] += 1.0
        return x * x * r[...]

    return jax.grad(f)(2.0, r), r[...]


def grad_arg_other_write():
    r = jax.new_ref(3.0)

    def f(x, r):
        r[...] = x
        return x * x * r[...]

    return jax.grad(f)(2.0, r), r[...]


def grad_wrt_ref():
    r = jax.new_ref(3.0)

    def f(r):
        return r[...] ** 2

    return jax.grad(f)(r)


def jvp_closure_write():
    r = jax.new_ref(3.0)

    def f(x):
        r[...] = x
        return x * x

    return jax.jvp(f, (2.0,), (1.0,)), r[...]


def vjp_arg_ref():
    r = jax.new_ref(3.0)

    def f(x, r):
        return x * r[...]

    y, g = jax.vjp(f, 2.0, r)
    return y, g(1.0)


def custom_vjp_stash():
    @jax.custom_vjp
    def stash(ref, x):
        return x

    def fwd(ref, x):
        return x, ref

    def bwd(ref, g):
        ref[...] = g
        return None, g

    stash.defvjp(fwd, bwd)
    ref = jax.new_ref(0.0)

    def f(x, ref):
        y = jnp.sin(x)
        z = stash(ref, y)
        return jnp.cos(z) ** 2

    a = jax.grad(f)(2.0, ref)
    return a, ref[...]


def custom_vjp_stash_jit():
    @jax.custom_vjp
    def stash(ref, x):
        return x

    def fwd(ref, x):
        return x, ref

    def bwd(ref, g):
        ref[...] += g
        return None, g

    stash.defvjp(fwd, bwd)
    ref = jax.new_ref(0.0)

    @jax.jit
    def f(x):
        return jax.grad(lambda x: jnp.cos(stash(ref, jnp.sin(stash(ref, x)))) ** 2)(x)

    a = f(2.0)
    return a, ref[...]


def custom_vjp_stash_scan():
    @jax.custom_vjp
    def stash(ref, x):
        return x

    def fwd(ref, x):
        return x, ref

    def bwd(ref, g):
        ref[...] += g
        return None, g

    stash.defvjp(fwd, bwd)
    ref = jax.new_ref(0.0)

    def f(x):
        def b(c, _):
            return stash(ref, jnp.sin(c)), None

        return jax.lax.scan(b, x, None, length=3)[0]

    a = jax.grad(f)(2.0)
    return a, ref[...]


def custom_vjp_fwd_write():
    ref = jax.new_ref(0.0)

    @jax.custom_vjp
    def f(x):
        return jnp.sin(x)

    def fwd(x):
        ref[...] += 1.0
        return jnp.sin(x), x

    def bwd(x, g):
        return (g * jnp.cos(x),)

    f.defvjp(fwd, bwd)
    a = jax.grad(f)(2.0)
    return a, ref[...]


def custom_vjp_primal_write():
    ref = jax.new_ref(0.0)

    @jax.custom_vjp
    def f(x):
        ref[...] += 1.0
        return jnp.sin(x)

    def fwd(x):
        return f(x), x

    def bwd(x, g):
        return (g * jnp.cos(x),)

    f.defvjp(fwd, bwd)
    a = f(2.0)
    return a, ref[...]


def custom_jvp_primal_write():
    ref = jax.new_ref(0.0)

    @jax.custom_jvp
    def f(x):
        ref[...] += 1.0
        return jnp.sin(x)

    f.defjvp(lambda p, t: (jnp.sin(p[0]), t[0] * jnp.cos(p[0])))
    a = f(2.0)
    return a, ref[...]


def custom_jvp_local():
    @jax.custom_jvp
    def f(x):
        r = jax.new_ref(x)
        r[...] *= 2.0
        return r[...]

    f.defjvp(lambda p, t: (f(p[0]), t[0] * 2))
    return f(2.0), jax.grad(f)(2.0)


def checkpoint_write():
    r = jax.new_ref(0.0)

    @jax.checkpoint
    def f(x):
        r[...] += 1.0
        return jnp.sin(x)

    return f(2.0), r[...]


def checkpoint_grad_write():
    r = jax.new_ref(0.0)

    @jax.checkpoint
    def f(x):
        r[...] += 1.0
        return jnp.sin(x)

    return jax.grad(f)(2.0), r[...]


def eval_shape_write():
    r = jax.new_ref(0.0)

    def f(x):
        r[...] = x
        return x

    return jax.eval_shape(f, 2.0), r[...]


def map_ref():
    r = jax.new_ref(0.0)

    def f(x):
        r[...] += x
        return x

    return jax.lax.map(f, jnp.arange(3.0)), r[...]


def nested_jit():
    r = jax.new_ref(0.0)

    @jax.jit
    def inner(x):
        r[...] += x

    @jax.jit
    def outer(x):
        inner(x)
        inner(2 * x)
        return r[...]

    return outer(1.0), outer(1.0), r[...]


def static_ref():
    r = jax.new_ref(1.0)
    return jax.jit(lambda r: r[...], static_argnums=0)(r)


def ref_hash():
    r = jax.new_ref(1.0)
    return hash(r) == hash(r), r == r, isinstance(r, jax.Ref), isinstance(r, jax.Array)


def typeof():
    r = jax.new_ref(1.0)
    return str(jax.typeof(r)), str(r.aval), str(jax.new_ref(jnp.zeros((2, 3), jnp.int32)))


def block():
    r = jax.new_ref(1.0)
    return jax.block_until_ready(r)


def copyinit():
    x = jnp.arange(3.0)
    r = jax.new_ref(x)
    r[0] = 9.0
    return x, r[...]


def ds():
    r = jax.new_ref(jnp.arange(6.0))
    a = r[jax.ds(2, 3)]
    r[jax.ds(1, 2)] = jnp.ones(2)
    return a, r[...]


def weak_add():
    r = jax.new_ref(jnp.zeros(2, jnp.bfloat16))
    r[0] += 1.5
    return r[...]


def addupdate_mismatch():
    r = jax.new_ref(jnp.zeros(2, jnp.int32))
    jax.ref.addupdate(r, 0, jnp.float32(1.5))
    return r[...]


def linearize_ref():
    def f(x):
        r = jax.new_ref(x)
        r[...] = jnp.sin(r[...])
        return r[...]

    y, lin = jax.linearize(f, 2.0)
    return y, lin(1.0)


def vmap_grad_ref():
    def f(x):
        r = jax.new_ref(x)
        r[...] = jnp.sin(r[...]) * x
        return r[...]

    return jax.vmap(jax.grad(f))(jnp.arange(3.0))


def disable_jit():
    r = jax.new_ref(0.0)
    with jax.disable_jit():

        @jax.jit
        def f(x):
            r[...] += x

        f(1.0)

        def b(c, x):
            r[...] += x
            return c, None

        jax.lax.scan(b, 0.0, jnp.arange(3.0))
    return r[...]


def ref_in_class():
    class C:
        def __init__(s):
            s.n = jax.new_ref(0)

        def inc(s):
            s.n[...] += 1
            return s.n[...]

    c = C()
    f = jax.jit(c.inc)
    return f(), f(), c.n[...]


def too_many_idx():
    r = jax.new_ref(jnp.arange(3.0))
    return r[0, 0]


def vmap_none_arg():
    r = jax.new_ref(2.0)
    return jax.vmap(lambda r, x: r[...] * x, in_axes=(None, 0))(r, jnp.arange(3.0))


def grad_has_aux_ref():
    def f(x):
        r = jax.new_ref(x)
        r[...] *= x
        return r[...], r[...] + 1

    return jax.grad(f, has_aux=True)(3.0)


def dice(seed):
    """A random walk of writes, reads, loops and branches over two references."""
    choose = np.random.default_rng(seed)
    a, b = jax.new_ref(jnp.arange(4.0)), jax.new_ref(jnp.zeros(()))
    acts = [int(n) for n in choose.integers(0, 7, 6)]

    def act(n, x):
        if n == 0:
            a[1] = x
        elif n == 1:
            a[1:3] *= 0.5
            b[...] += a[1]
        elif n == 2:
            jax.lax.fori_loop(0, 3, lambda i, c: a.__setitem__(i, c + i) or c * 0.5, x)
        elif n == 3:
            jax.lax.cond(x > 0, lambda: b.__setitem__(..., b[...] * 2 + 1), lambda: a.__setitem__(0, b[...]))
        elif n == 4:
            jax.lax.scan(lambda c, y: (a.__setitem__(3, a[3] + y * c) or c + 1, b[...]), x, jnp.arange(2.0))
        elif n == 5:
            jax.jit(lambda x: a.__setitem__(2, jnp.sin(a[2] + x)))(x)
        else:
            jax.lax.while_loop(lambda c: c < 3, lambda c: b.__setitem__(..., b[...] + x) or c + 1, 0)

    def run(x):
        for n in acts:
            act(n, x)
        return a[...].sum() + b[...]

    return run(0.7), jax.jit(run)(-0.3), a[...], b[...]
