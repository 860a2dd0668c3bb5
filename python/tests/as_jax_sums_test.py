"""weft.as_jax: sums in parts inside of shard_map, P(unreduced=) and P(reduced=), as types say them. Each program runs
under JAX, too."""

from as_jax_both import both

DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
HEAD = """
from jax.sharding import AxisType
mesh = jax.make_mesh((2, 2), ("x", "y"))
jax.set_mesh(mesh)
def types(value):
    mat = jax.typeof(value).mat
    return [sorted(axes) for axes in (mat.varying, mat.unreduced, mat.reduced)]
def spec(value):
    place = value.sharding.spec
    cuts = place.update(unreduced=frozenset(), reduced=frozenset())
    return [str(cuts), sorted(place.unreduced), sorted(place.reduced)]
def said(f):
    try:
        f()
    except Exception as error:
        return isinstance(error, NotImplementedError), "rule for sin" in str(error)
numbers = lambda value: np.asarray(value).tolist()
a = jax.device_put(np.arange(8.0, dtype=np.float32).reshape(4, 2), P("x", "y"))
b = jax.device_put(np.arange(12.0, dtype=np.float32).reshape(2, 6), P("y", None))
"""


def run(code):
    return both(HEAD + code, **DEVICES)


def test_types_of_parts():
    found = run("""
seen = out["types"] = []
@jax.shard_map(in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))
def product(u, v):
    z = u @ v
    parts = lax.pcast(z, "y", to="unreduced")
    more = jnp.reshape(parts + parts, (6, 2)).T
    total = lax.psum(more, "y")
    seen.extend(map(types, (u, v, z, parts, more, total)))
    return total.T.reshape(2, 6) / 2
out["product"] = numbers(jax.jit(product)(a, b))
@jax.shard_map(in_specs=P("y", None), out_specs=P(None, None, reduced={"y"}))
def whole(v):
    gathered = lax.all_gather(v, "y", tiled=True, to="reduced")
    seen.extend([types(gathered), types(gathered.astype(jnp.bfloat16)), types(lax.pcast(gathered, "y", to="varying"))])
    return gathered
@jax.shard_map(in_specs=P(unreduced={"x", "y"}), out_specs=P("x", None))
def scattered(v):
    part = lax.psum_scatter(v, "x", tiled=True)
    done = lax.psum(part, "y")
    seen.extend([types(v), types(part), types(done)])
    return done
out["whole"] = spec(jax.jit(whole)(b))
out["scattered"] = numbers(jax.jit(scattered)(jax.reshard(jnp.ones((4, 2)), P(unreduced={"x", "y"}))))
""")
    assert [[], ["y"], []] not in found["types"] and [["x"], ["y"], []] in found["types"]


def test_cotangents_of_reduced_arguments():
    run("""
w = jax.device_put(b, P("y", None, reduced={"x"}))
@jax.shard_map(in_specs=(P("x", "y"), P("y", None, reduced={"x"})), out_specs=P("x", None))
def layer(u, w):
    out["types"] = [types(w), types(w + w), types(u @ w)]
    return lax.psum(u @ w, "y")
loss = lambda u, w: (layer(u, w) ** 2).sum()
gradients = jax.jit(jax.grad(loss, argnums=(0, 1)))(a, w)
out["specs"] = [spec(g) for g in gradients]
out["numbers"] = [numbers(gradients[0]), numbers(jax.reshard(gradients[1], P()))]
def inside(u, w):
    slope = jax.grad(lambda w: (u @ w).sum())(w)
    out["inside"] = types(slope)
    return lax.psum(slope, "x")
out["of one device"] = numbers(
    jax.jit(jax.shard_map(inside, in_specs=(P("x", "y"), P("y", None, reduced={"x"})), out_specs=P("y", None)))(a, w)
)
""")


def test_what_sums_refuse():
    run("""
s = jax.reshard(jnp.ones((4, 2)), P(unreduced={"x"}))
over = lambda f, **specs: lambda: jax.jit(jax.shard_map(f, **specs))
out["sin"] = said(lambda: over(lambda v: jnp.sin(v), out_specs=P())()(s))
out["two"] = said(lambda: over(lambda v: v * v, out_specs=P())()(s))
out["mixed"] = said(
    lambda: over(
        lambda u: lax.pcast(lax.pcast(u, "y", to="unreduced"), ("x", "y"), to="reduced"), out_specs=P("x", None)
    )()(a)
)
out["the same"] = said(
    lambda: over(lambda u: u * 2, in_specs=P("x", None), out_specs=P("x", None, unreduced={"y"}))()(
        jax.device_put(a, P("x", None))
    )
)
def sum_of(u, v):
    return (u * v).sum()
r = jax.device_put(jnp.ones((4, 2)), P("x", reduced={"y"}))
out["replicated"] = said(lambda: jax.jit(jax.shard_map(sum_of, out_specs=P()))(r, jax.device_put(r, P("x", None))))
""")


def test_rules_of_custom_vjp_know_where_their_arguments_lie():
    run("""
show = lambda value: str(jax.typeof(value).sharding.spec)
seen = out["seen"] = []
@jax.custom_vjp
def product(u, v):
    return u @ jax.reshard(v, P(None, None))
def forward(u, v):
    seen.append(["forward", show(u), show(v)])
    return product(u, v), (u, v)
def backward(kept, ct):
    u, v = kept
    seen.append(["backward", show(u), show(v), show(ct)])
    return (
        jax.reshard(ct @ jax.reshard(v, P(None, None)).T, P("x", None)),
        jax.reshard(jnp.dot(jax.reshard(u, P("x", None)).T, ct, out_sharding=P(unreduced={"x"})), P("y", None)),
    )
product.defvjp(forward, backward)
u = jax.device_put(a, P("x", None))
f = jax.jit(jax.grad(lambda u, v: (product(u, v) ** 2).sum(), argnums=(0, 1)))
out["gradients"] = list(map(numbers, f(u, b)))
""")


def test_sums_in_jaxprs():
    run("""
@jax.shard_map(in_specs=P("y", None), out_specs=P("y", None, reduced={"x"}))
def reduced(v):
    return lax.pcast(v, "x", to="reduced")
@jax.shard_map(in_specs=P("y", None, reduced={"x"}), out_specs=P(None, None, reduced={"x", "y"}))
def gathered(v):
    return lax.all_gather(v, "y", tiled=True, to="reduced")
u = jax.device_put(np.arange(16.0, dtype=np.float32).reshape(4, 2, 2), P("x", "y", None))
f = jax.grad(lambda u, v: (jnp.einsum("btd,df->btf", u, gathered(reduced(v))) ** 2).sum(), argnums=(0, 1))
text = str(jax.jit(f).trace(u, b).jaxpr)
out["names"] = [name in text for name in ("unreduced_reduce_scatter", "unreduced_psum")]
out["numbers"] = [numbers(g) for g in jax.jit(f)(u, b)]
""")


PARTS = """
parts = lambda value: [np.asarray(shard.data).tolist() for shard in value.addressable_shards]
"""


def test_each_device_holds_its_part():
    """Of products and sums what it found, of what was cut its block among zeros, and of whole values the first has all;
    programs, shard_map and derivatives pass parts on."""
    run(
        PARTS
        + """
product = jax.jit(lambda u, v: jnp.einsum("ab,bc->ac", u, v, out_sharding=P("x", None, unreduced={"y"})))(a, b)
out["product"] = [spec(product), parts(product), numbers(jax.reshard(product, P()))]
more = jax.jit(lambda p: (p + p).T)(product)
out["more"] = [spec(more), parts(more), numbers(jax.jit(lambda p: jax.reshard(p, P("y", "x")))(more))]
rows = jax.jit(lambda u: jax.lax.reduce_sum(u, axes=(0,), out_sharding=P(None, unreduced={"x"})))(
    jax.device_put(a, P("x", None))
)
out["rows"] = [spec(rows), parts(rows)]
whole = jnp.arange(4, dtype=jnp.float32)
out["whole"] = parts(jax.jit(lambda v: jax.reshard(v, P(unreduced={"x"})))(whole))
out["blocks"] = parts(jax.jit(lambda v: jax.reshard(v, P(unreduced={"x"})))(jax.device_put(whole, P("x"))))
out["put"] = parts(jax.device_put(jax.device_put(whole, P("x")), P(unreduced={"x"})))
counts = jax.jit(lambda v: jnp.bincount(v, length=3, out_sharding=P(unreduced={"x", "y"})))(
    jax.device_put(np.array([0, 1, 1, 2], np.int32), P(("x", "y")))
)
out["counts"] = parts(counts)
found = jax.jit(jax.shard_map(lambda u: u, in_specs=P("x", "y"), out_specs=P("x", None, unreduced={"y"})))(a)
out["found"] = [spec(found), parts(found)]
same = jax.shard_map(lambda p: p, in_specs=P("x", None, unreduced={"y"}), out_specs=P("x", "y"), check_vma=False)
out["back"] = numbers(jax.jit(same)(found))
w = jax.device_put(np.arange(4.0, dtype=np.float32), P(None, reduced={"x"}))
slope = jax.jit(jax.grad(lambda w: (jax.reshard(w, P("x")) ** 2).sum()))(w)
out["slope"] = [spec(slope), parts(slope)]
layer = jax.shard_map(
    lambda u, w: jax.lax.psum((u @ w)[None], ("x", "y")), in_specs=(P(("x", "y"), None), P(None, reduced={"x", "y"})),
    out_specs=P(None),
)
sides = jax.device_put(np.arange(16.0, dtype=np.float32).reshape(4, 4), P(("x", "y"), None))
w = jax.device_put(np.ones(4, np.float32), P(None, reduced={"x", "y"}))
slope = jax.jit(jax.grad(lambda w: layer(sides[:, :4], w).sum()))(w)
out["of a layer"] = [spec(slope), parts(slope)]
for kind in ("int8", "bfloat16", "complex64"):
    made = jax.jit(lambda v: jax.lax.reduce_sum(v, axes=(0,), out_sharding=P(None, unreduced={"x"})))(
        jax.device_put(np.arange(8).reshape(4, 2).astype(kind), P("x", None))
    )
    out[kind] = [str(np.asarray(shard.data).tolist()) for shard in made.addressable_shards]
"""
    )
