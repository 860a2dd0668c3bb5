"""What libraries for JAX, by their own tests, ask of weft.as_jax. Each program runs under JAX, too."""

from as_jax_both import both

import weft
import weft.numpy as wnp


def test_logarithms_of_sums_leave_out_what_does_not_count():
    both("""
nan, inf = np.nan, np.inf
for a in ([0.0, nan], [nan, 0.0], [0.0, inf], [0.0, -inf], [nan, nan], [inf, -inf], [-inf, -inf]):
    for b in ([1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 1.0]):
        a, b = jnp.array(a), jnp.array(b)
        out[f"{a} {b}"] = shown([
            jax.scipy.special.logsumexp(a, b=b), jax.nn.logsumexp(a, b=b), jax.nn.logsumexp(a, where=b > 0),
            jax.jit(lambda a, b: jax.nn.logsumexp(jnp.stack([a, a]), axis=1, b=b))(a, b),
        ])
b = jnp.array([1.0, 0.0, 1.0])
out["gradient"] = shown(jax.grad(lambda a: jax.nn.logsumexp(a, b=b))(jnp.array([0.0, 5.0, 0.0])))
""")


def test_classes_that_libraries_look_for():
    both("""
import jax.core
key = jax.random.key(0)
out["key"] = [key.dtype.type.__name__, issubclass(key.dtype.type, jax.dtypes.prng_key), key.dtype.name, str(key.dtype)]
kinds = [jax.random.key(0, impl=name).dtype.type for name in ("rbg", "threefry2x32")]
out["typed"] = [kind is jax.dtypes.prng_key for kind in kinds]
try:
    from jaxlib.xla_extension import PjitFunction
except ModuleNotFoundError as error:
    out["gone"] = error.name
from jaxlib._jax import ArrayImpl, JaxRuntimeError, PjitFunction
out["jitted"] = [isinstance(jax.jit(lambda x: x), PjitFunction), isinstance(lambda x: x, PjitFunction)]
out["array"] = [isinstance(jnp.ones(2), ArrayImpl), issubclass(JaxRuntimeError, RuntimeError)]
names = "Effect Effects no_effects JaxprTypeError jaxprs_in_params new_jaxpr_eqn gensym check_jaxpr find_top_trace"
out["core"] = [hasattr(jax.core, name) for name in names.split()]
""")


def test_numbers_in_signatures_are_names():
    both("""
def tried(f, *args):
    try:
        return f(*args).tolist()
    except ValueError:
        return "ValueError"
both = lambda x, y: x.sum() + y.sum()
for signature, f, shapes in [("(2)->()", jnp.sum, [(4, 3)]), ("(2),(2)->()", both, [(4, 3), (2,)]),
                             ("(2),(2)->()", both, [(4, 3), (3,)]), ("(3)->(2)", lambda x: x[:2], [(4, 4)]),
                             ("(3)->(3)", lambda x: x[:2], [(4, 4)])]:
    out[f"{signature} {shapes}"] = tried(jnp.vectorize(f, signature=signature), *map(jnp.ones, shapes))
""")


def test_one_position_that_is_not_differentiated():
    @weft.custom_vjp
    def plain(x):
        return x

    for rule in (weft.custom_vjp, weft.custom_jvp):
        power = rule(lambda n, x: x**n, nondiff_argnums=0)
        if rule is weft.custom_vjp:
            power.defvjp(lambda n, x: (x**n, x), lambda n, x, ct: (100 * n * ct,))
        else:
            power.defjvp(lambda n, primals, tangents: (primals[0] ** n, 100 * n * tangents[0]))
        gradient = weft.grad(power, argnums=1)
        assert float(gradient(3, 2.0)) == 300
        assert float(weft.jit(gradient, static_argnums=0)(3, 2.0)) == 300
    plain.defvjp(lambda x: (x, None), lambda _, ct: (2 * ct,))
    assert float(weft.grad(plain)(1.0)) == 2


def test_rules_that_call_their_function_inside_of_control_flow():
    """With a function over what the rule has itself: the call captures it, and its rule says what becomes of it."""
    both("""
run = jax.custom_vjp(lambda f, b, args: f(b, *args), nondiff_argnums=(0,))
def forward(f, b, args):
    return run(f, b, args), (b, args)
ways = {
    "plain": lambda f, x: f(x),
    "cond": lambda f, x: jax.lax.cond(x[0] < 1.0, lambda d: d, f, x),
    "switch": lambda f, x: jax.lax.switch(1, [lambda d: d, f, lambda d: 2 * d], x),
    "while": lambda f, x: jax.lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, f(c[1])), (0, x))[1],
    "scan": lambda f, x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
    "jit": lambda f, x: jax.jit(f)(x),
    "branch of a loop": lambda f, x: jax.lax.fori_loop(0, 2, lambda i, c: jax.lax.cond(i == 0, f, lambda d: d, c), x),
}
for name, way in ways.items():
    def backward(f, residuals, ct, way=way):
        b, args = residuals
        inner = lambda u: f(u, *args)
        found = way(lambda d: run(inner, b * d[0], ()), ct)
        return b, jax.grad(lambda a: f(b, *a) @ found)(args)
    run.defvjp(forward, backward)
    def solve(b, a):
        c, args = jax.closure_convert(lambda u: a.T @ u, b)
        return run(c, b, args)
    gradient = jax.grad(lambda b, a: solve(b, a).sum(), (0, 1))
    x = jnp.ones(3), jnp.arange(6.0).reshape(3, 2)
    out[name] = shown([gradient(*x), jax.jit(gradient)(*x), jax.vmap(gradient)(*(jnp.stack([y, 2 * y]) for y in x))])
""")


def test_types_of_arrays_are_made_once():
    """Libraries ask for them in every step."""
    found = both("""
x = jnp.ones((2, 3))
out["same"] = [jax.typeof(x) == jax.typeof(x), x.aval == jax.typeof(x), jax.typeof(x) == jax.typeof(jnp.ones((3, 2)))]
key = jax.random.key(1)
for y in (x, jnp.int32(1), jnp.asarray(2.0), key, jax.random.split(key, 2), jnp.zeros(0, bool)):
    out[str(y.shape) + str(y.dtype)] = [str(jax.typeof(y)), str(y.aval), jax.typeof(y).weak_type]
out["placed"] = str(jax.typeof(jax.device_put(x, jax.devices()[0])))
""")
    assert found["same"] == [True, True, False]


def test_types_where_a_mesh_is_around():
    both(
        """
mesh = jax.make_mesh((2,), ("x",))
a = jnp.ones((2, 4))
out["before"] = str(jax.typeof(a).sharding.mesh.empty)
with jax.set_mesh(mesh):
    out["inside"] = str(jax.typeof(jax.device_put(a, P("x"))).sharding.spec)
out["after"] = str(jax.typeof(a).sharding.mesh.empty)
""",
        XLA_FLAGS="--xla_force_host_platform_device_count=2",
    )


def test_operators_outside_of_jax_refuse_containers():
    for other in ([1, 2], (1,), {}, set()):
        for f in (lambda x, y: x == y, lambda x, y: y != x, lambda x, y: y * x):
            try:
                f(wnp.arange(2), other)
            except TypeError as error:
                assert "make an array of it" in str(error) and "as_jax_interfaces_test.py" in str(error)
            else:
                raise AssertionError(other)


def test_results_of_loops_that_run_in_python():
    both("""
kinds = lambda x: shown(jax.tree.map(lambda v: [str(getattr(v, "dtype", type(v))), getattr(v, "weak_type", None)], x))
with jax.disable_jit():
    for name, f in {
        "while": lambda: lax.while_loop(lambda c: c < 3, lambda c: c + 1.5, 0.0),
        "while of no step": lambda: lax.while_loop(lambda c: c < 3, lambda c: c + 1.5, 5.0),
        "while of a pair": lambda: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, np.float32(1))),
        "fori": lambda: lax.fori_loop(0, 3, lambda i, c: c + 1.5, 0.0),
        "fori of no step": lambda: lax.fori_loop(0, 0, lambda i, c: c + 1.5, 0.0),
        "fori of NumPy's": lambda: lax.fori_loop(0, 3, lambda i, c: c + i, np.float32(0)),
        "scan": lambda: lax.scan(lambda c, x: (c + 1.5, c), 0.0, None, length=3),
        "scan of integers": lambda: lax.scan(lambda c, x: (c + x, c), 0, jnp.arange(3)),
        "scan of NumPy's": lambda: lax.scan(lambda c, x: (c + x, c), np.float32(0), np.arange(3.0)),
        "cond": lambda: lax.cond(True, lambda x: x + 1, lambda x: x, np.float32(1.0)),
        "map": lambda: lax.map(lambda x: x + 1, np.arange(3)),
    }.items():
        out[name] = kinds(f())
""")
