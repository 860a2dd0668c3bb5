"""What a mapped function computes of values that are not mapped, outside of jit: at once, as under JAX."""

import textwrap

import as_jax_both
from as_jax_both import both

# Whether a value is known, and whether it is Python's own or NumPy's.
KNOWN = """
seen = []
def known(x):
    return not isinstance(x, jax.core.Tracer)
def see(*values):
    seen.append([known(v) for v in values])
def lists(x):
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64).round(4).tolist(), x)
x = jnp.arange(3.0)
"""


def check(code):
    return as_jax_both.both(KNOWN + textwrap.dedent(code))


def test_what_depends_on_nothing_mapped_is_known():
    found = check(
        """
        a = jnp.arange(6.0).reshape(2, 3)
        def f(y, a):
            made, inverse = jnp.eye(3) * 2, jnp.linalg.inv(jnp.eye(3) + 1)
            drawn = jax.random.normal(jax.random.split(jax.random.key(0))[1], (3,))
            summed = lax.fori_loop(0, 3, lambda i, s: s + i, 0.0)
            chosen = lax.cond(made.sum() > 0, lambda: 1.0, lambda: 2.0)
            scanned = lax.scan(lambda c, v: (c + v, c), 0.0, jnp.ones(4))[1]
            sliced, put = a[0, 1:], a.at[0, jnp.array(1)].set(7.0)
            jitted, slope = jax.jit(jnp.sin)(a), jax.grad(lambda v: (v**2).sum())(a)
            mapped = jax.vmap(lambda v: v + 1)(a)
            values = (made, inverse, drawn, summed, chosen, scanned, sliced, put, jitted, slope, mapped, a)
            see(*values)
            see(y, y + made, a[0] * y, jax.jit(jnp.sin)(y), scanned * y)
            return [y * v.sum() for v in map(jnp.asarray, values)]
        out["results"] = lists(jax.vmap(f, in_axes=(0, None))(x, a))
        out["seen"] = seen
        """
    )
    assert found["seen"] == [[True] * 12, [False] * 5]


def test_maps_in_maps_capture_what_is_mapped_around_them():
    found = check(
        """
        def f(y):
            table = jnp.eye(2) * 3
            def g(z):
                see(table, table @ table, jnp.ones(2) * 2, y, z, y * 2, table * z)
                inner = lax.scan(lambda c, _: (c + y * table.sum(), None), z, None, length=3)[0]
                return y * z + inner + table[0, 0]
            return jax.vmap(g)(jnp.arange(4.0)), jax.vmap(lambda z: table * z)(jnp.arange(2.0))
        out["results"] = lists(jax.vmap(f)(x))
        out["seen"] = seen
        """
    )
    assert found["seen"] == [[True, True, True, False, False, False, False]]


def test_what_a_cache_keeps_stays_good():
    check(
        """
        import functools
        @functools.lru_cache(None)
        def table():
            return jnp.linspace(0.0, 1.0, 5) ** 2
        out["inside"] = lists(jax.vmap(lambda y: y + table())(x))
        out["afterwards"] = lists(table())
        out["number"] = float(table()[2])
        """
    )


def test_compiled_functions_and_derivatives_record_all():
    found = check(
        """
        def f(y):
            see(jnp.eye(2))
            return y * jnp.eye(2).sum()
        jax.jit(jax.vmap(f))(x)
        jax.vmap(jax.jit(f))(x)
        jax.jit(lambda v: jax.vmap(jax.vmap(f))(v[None]))(x)
        out["slope"] = lists(jax.jacfwd(jax.vmap(f))(x))
        out["seen"] = seen[:3]
        """
    )
    assert found["seen"] == [[False]] * 3


def test_names_of_mapped_axes():
    check(
        """
        def f(y):
            inside = jax.vmap(lambda z: lax.psum(z, "i") + lax.axis_index("i") + jnp.ones(2).sum(), axis_name="i")
            return y + inside(jnp.arange(3.0))
        out["inside"] = lists(jax.vmap(f)(x))
        def g(y):
            whole = lax.psum(jnp.ones(2), "i") + lax.axis_size("i")
            return y + whole + jax.vmap(lambda z: z * lax.axis_index("i") + jnp.eye(2)[0, 0])(jnp.arange(2.0))
        out["around"] = lists(jax.vmap(g, axis_name="i")(x))
        out["gathered"] = lists(jax.vmap(lambda y: lax.all_gather(jnp.arange(2), "i") + y, axis_name="i")(x))
        """
    )


def test_effects_happen_in_the_order_of_the_program(capfd):
    check(
        """
        import io, contextlib
        def f(y):
            jax.debug.print("first {}", jnp.ones(2).sum())
            return y + jax.pure_callback(lambda v: np.float32(v + 1), jax.ShapeDtypeStruct((), jnp.float32),
                                         jnp.float32(3), vmap_method="sequential")
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            out["result"] = lists(jax.vmap(f)(x))
            jax.effects_barrier()
        out["printed"] = sorted(set(text.getvalue().split("\\n")))
        """
    )


def test_other_numbers_are_no_other_program(tmp_path):
    """What is not mapped is no constant of the program: none is compiled for other numbers."""
    code = """
        def f(theta, y):
            step = lambda c, _: (jnp.sin(c * theta["scale"]) + theta["shift"].sum(), None)
            return lax.scan(step, y, None, length=5)[0]
        mapped = jax.vmap(f, in_axes=(None, 0))
        def programs(i):
            mapped({"scale": jnp.float32(i), "shift": jnp.arange(3.0) * i}, x).block_until_ready()
            return len(os.listdir(os.environ["WEFT_CACHE_DIR"]))
        out["programs"] = [programs(i) for i in range(4)]
    """
    first, *more = as_jax_both.lines(KNOWN + textwrap.dedent(code), "-m", "weft.as_jax", WEFT_CACHE_DIR=str(tmp_path))[
        "programs"
    ]
    assert first > 0 and more == [first] * 3


def test_objects_of_registered_classes_are_mapped():
    both(
        """
from jax.interpreters import batching
class Named:
    def __init__(self, names, data): self.names, self.data = names, data
class Plain:
    def __init__(self, data): self.data = data
jax.tree_util.register_pytree_node(Named, lambda x: ((x.data,), tuple(x.names)), lambda names, c: Named(names, *c))
class Along:
    def __init__(self, name, axis): self.name, self.axis = name, axis
def named_elt(cont, _, x, spec):
    return Named([n for n in x.names if n != spec.name], cont(x.data, spec.axis))
def named_of(cont, size, x, spec):
    names = list(x.names)
    names.insert(spec.axis, spec.name)
    return Named(names, cont(size, x.data, spec.axis))
batching.register_vmappable(Named, Along, int, named_elt, named_of, None)
batching.register_vmappable(
    Plain, int, int, lambda cont, _, x, spec: Plain(cont(x.data + 1, spec)),
    lambda cont, size, x, spec: Plain(cont(size, x.data * 2, spec)), None)
try:
    x = Named(["i", "j"], jnp.arange(12.0).reshape(3, 4))
    twice = lambda x: Named(x.names, x.data * 2)
    y = jax.vmap(twice, in_axes=Along("i", 0), out_axes=Along("i", 1), axis_size=3)(x)
    out["named"] = [list(y.names), str(y.data)]
    z = jax.jit(lambda a: jax.vmap(lambda p: p, axis_size=3)(Plain(a)).data)(jnp.arange(3.0))
    out["plain"] = str(z)
    w = jax.vmap(lambda p, k: (p, k * 2), in_axes=(0, None), axis_size=3)(Plain(jnp.arange(3.0)), jnp.ones(2))
    out["beside"] = [str(w[0].data), str(w[1])]
finally:
    batching.unregister_vmappable(Named)
    batching.unregister_vmappable(Plain)
out["others"] = str(jax.vmap(lambda x: x * 2)(jnp.arange(3)))
"""
    )


def test_a_derivative_at_another_point_is_no_other_program(tmp_path):
    code = """
        from jax.experimental.jet import jet
        table = jnp.arange(600.0).reshape(200, 3) / 600
        loss = jax.jit(lambda x: jnp.sum(jnp.log(1 + jnp.exp(-table @ x))) + jnp.sum(x**2))
        basis = jnp.eye(3)
        derivatives = {
            "hessian": jax.hessian(loss),
            "jacfwd": jax.jacfwd(loss),
            "forward over reverse": jax.jacfwd(jax.grad(loss)),
            "jvp": lambda x: jax.vmap(lambda t: jax.jvp(loss, (x,), (t,)))(basis),
            "linearize": lambda x: jax.vmap(lambda t: jax.linearize(loss, x)[1](t))(basis),
            "vjp": lambda x: jax.vmap(lambda t: jax.vjp(lambda v: v * loss(v), x)[1](t))(basis),
            "jet": lambda x: jax.vmap(lambda t: jet(loss, (x,), ((t, x),))[1])(basis),
        }
        def programs(derivative, i):
            jax.block_until_ready(derivative(jnp.arange(3.0) + 0.1 * i))
            return len(os.listdir(os.environ["WEFT_CACHE_DIR"]))
        out["programs"] = {name: [programs(of, i) for i in range(6)] for name, of in derivatives.items()}
    """
    found = as_jax_both.lines(KNOWN + textwrap.dedent(code), "-m", "weft.as_jax", WEFT_CACHE_DIR=str(tmp_path))
    # Not one for each point.
    assert all(counts[5] - counts[1] <= 1 for counts in found["programs"].values()), found["programs"]


def test_values_of_own_types_are_mapped_along_axes_that_a_spec_names():
    both(
        """
        from dataclasses import dataclass
        from jax._src.hijax import HiType, MappingSpec, register_hitype
        @dataclass(frozen=True)
        class Pair:
            a: object
            b: object
        @dataclass(frozen=True)
        class PairType(HiType):
            a: object
            b: object
            def lo_ty(self): return [self.a, self.b]
            def lower_val(self, x): return [x.a, x.b]
            def raise_val(self, a, b): return Pair(a, b)
            def to_tangent_aval(self): return PairType(self.a.to_tangent_aval(), self.b.to_tangent_aval())
            def dec_rank(self, n, spec): return PairType(self.a.dec_rank(n, spec.a), self.b.dec_rank(n, spec.b))
            def inc_rank(self, n, spec): return PairType(self.a.inc_rank(n, spec.a), self.b.inc_rank(n, spec.b))
        register_hitype(Pair, lambda x: PairType(jax.typeof(x.a), jax.typeof(x.b)))
        @dataclass(frozen=True)
        class Axes(MappingSpec):
            a: object
            b: object
        pair = Pair(jnp.arange(9.0).reshape(3, 3), jnp.arange(6.0).reshape(2, 3))
        shapes = []
        def f(x):
            shapes.append([x.a.shape, x.b.shape])
            return x
        found = jax.vmap(f, in_axes=Axes(0, 1), out_axes=Axes(0, 1), axis_size=3)(pair)
        out["same"] = shown([found.a, found.b]), shown(shapes)
        """
    )


def test_rules_of_custom_vmap_of_derivatives_of_which_either_half_is_mapped():
    found = check(
        """
        from jax.custom_batching import custom_vmap
        called = []
        def marked(function, other):
            f = custom_vmap(function)
            @f.def_vmap
            def rule(axis_size, in_batched, *xs):
                called.append([axis_size, *in_batched])
                return other(*xs), any(in_batched)
            return f
        x1, t1, ts = jnp.asarray(0.5), jnp.asarray(4.0), 2 + x
        y1, ys = jnp.asarray(2.0), 3 - x
        one = marked(jnp.sin, jnp.cos)
        two = marked(lambda a, b: jnp.sin(a) * b, lambda a, b: jnp.cos(a) * b)
        linear = marked(lambda v: 7.0 * v, lambda v: 11.0 * v)
        for wrap in (lambda f: f, jax.jit):
            name = "jit" if wrap is jax.jit else "plain"
            along = lambda f, axes, out_axes=0: wrap(jax.vmap(lambda v, t: jax.jvp(f, (v,), (t,)), axes, out_axes))
            out[name, "tangents"] = lists(along(one, (None, 0), (None, 0))(x1, ts))
            out[name, "values"] = lists(along(one, (0, None))(x, t1))
            out[name, "both"] = lists(along(one, (0, 0))(x, ts))
            out[name, "linear"] = lists(along(linear, (0, None), (0, None))(x, t1))
            out[name, "jacfwd"] = lists(wrap(jax.jacfwd(one))(x))
            pair = lambda a, b, s, t: jax.jvp(two, (a, b), (s, t))
            out[name, "two tangents"] = lists(wrap(jax.vmap(pair, (None, None, 0, 0), (None, 0)))(x1, y1, ts, ts))
            out[name, "one of two tangents"] = lists(wrap(jax.vmap(pair, (None, None, 0, None)))(x1, y1, ts, t1))
            out[name, "two values"] = lists(wrap(jax.vmap(pair, (0, 0, None, None)))(x, ys, t1, t1))
        out = {"-".join(key): value for key, value in out.items()}
        out["called"] = called
        """
    )
    assert found["called"][0] == [3, False]


def test_containers_that_take_arrays_alone():
    check("""
class Held:
    def __init__(self, a):
        self.a = jnp.asarray(a)  # refuses what is no array
jax.tree_util.register_pytree_node(Held, lambda held: ((held.a,), None), lambda _, parts: Held(*parts))
held = Held(np.arange(6.0, dtype=np.float32).reshape(2, 3))
out["one axis"] = jax.vmap(lambda x: x)(held).a.tolist()
out["per argument"] = jax.vmap(lambda x, y: Held(x.a + y), in_axes=(1, None), out_axes=1)(held, 2.0).a.tolist()
""")


COLLECTIVES = """
def said(f):
    try:
        return jax.tree.map(lambda v: [np.asarray(v, np.float64).round(4).tolist(), str(jax.typeof(v))], f())
    except (TypeError, ValueError, IndexError):
        return "refused"
    except NameError:
        return "NameError"
x = jnp.arange(6.0).reshape(2, 3) + 1
many = x * jnp.arange(1.0, 5.0).reshape(4, 1, 1)
"""


def test_collectives_over_dimensions():
    """Integers among the axes are dimensions of the array itself; sums of known arrays alone count from the end."""
    found = both(
        COLLECTIVES
        + textwrap.dedent("""
        i, h = jnp.arange(6).reshape(2, 3), jnp.ones((2, 3), jnp.float16)
        values = {"f": x, "np": np.asarray(x), "tree": [x, (i, x > 2, h)], "number": 3.0}
        groups = dict(axis_index_groups=[[0, 1], [2, 3]])
        for axis in (0, -1, 2, (1, 0), (0, 0), (0, -2), (), (0, True)):
            for name in ("psum", "pmax", "pmin")[:2 + (axis == 0)]:
                f, key = getattr(lax, name), f"{name} {axis} "
                g = lambda x: f(x, axis)
                for what, value in values.items():
                    if (what, axis) != ("number", ()):
                        out[key + what] = said(lambda: g(value))
                out[key + "jit"] = said(lambda: jax.jit(g)(x))
                out[key + "vmap"] = said(lambda: jax.vmap(g, in_axes=1)(many))
                out[key + "named vmap"] = said(lambda: jax.vmap(g, axis_name="i")(many))
                if axis != ():
                    out[key + "groups"] = said(lambda: jax.vmap(lambda x: f(x, axis, **groups), axis_name="i")(many))
            out[f"{axis} jvp"] = said(lambda: jax.jvp(lambda x: lax.psum(x, axis), (x,), (x,)))
            out[f"{axis} grad"] = said(lambda: jax.jit(jax.grad(lambda x: (lax.psum(x, axis)**2).sum()))(x))
        """)
    )
    assert found["psum (1, 0) jit"] == [21.0, "float32[]"] and found["psum (0, 0) f"] == "refused"
    assert found["psum -1 f"] == [[6.0, 15.0], "float32[2]"] and found["psum -1 jit"] == "refused"
    assert found["pmax 0 tree"][1][1] == [[1.0, 1.0, 1.0], "bool[3]"] and found["-1 grad"] == "refused"


def test_collectives_over_names_and_dimensions():
    found = both(
        COLLECTIVES
        + textwrap.dedent("""
        for axis in (("i", 0), [1, "i"], ("i", 0, 1), ("i", 2), ("i", -1), ("i", 0, 0)):
            for name in ("psum", "pmax", "pmin")[:2 + (axis == ("i", 0))]:
                f, key = getattr(lax, name), f"{name} {axis} "
                g = lambda x: f(x, axis)
                two = jax.vmap(jax.vmap(lambda x: f(x, (*axis, "j")), axis_name="i"), axis_name="j")
                if not (isinstance(axis, list) and name != "psum"):
                    out[key] = said(lambda: jax.vmap(g, axis_name="i")(many))
                    out[key + "jit"] = said(lambda: jax.jit(jax.vmap(g, axis_name="i", in_axes=1))(many))
                    out[key + "two"] = said(lambda: jax.jit(two)(many.reshape(2, 2, 2, 3)))
                out[key + "unmapped"] = said(lambda: jax.vmap(lambda y: f(x, axis), axis_name="i")(x))
            g = lambda x: lax.psum(x, axis)
            total = lambda x: (jax.vmap(g, axis_name="i")(x) ** 2).sum()
            out[f"{axis} grad"] = said(lambda: jax.jit(jax.grad(total))(many))
            each = jax.vmap(jax.grad(lambda x: (g(x) ** 2).sum()), axis_name="i")
            out[f"{axis} vmap grad"] = said(lambda: jax.jit(each)(many))
        """)
    )
    assert found["psum ('i', 0, 1) "] == [[210.0] * 4, "float32[4]"]
    assert found["psum ('i', -1) jit"] == "refused"


def test_axes_that_nothing_binds():
    both(
        COLLECTIVES
        + textwrap.dedent("""
        named = {
            **{name: getattr(lax, name) for name in ("psum", "pmax", "pmin", "pmean", "all_gather", "psum_scatter")},
            "all_to_all": lambda x, axis: lax.all_to_all(x, axis, 0, 0),
            "pswapaxes": lambda x, axis: lax.pswapaxes(x, axis, 0),
            "axis_index": lambda x, axis: lax.axis_index(axis),
            "axis_size": lambda x, axis: lax.axis_size(axis),
        }
        for name, f in named.items():
            for axis in (None, 1.5, "k", ("i", 1.5), ("i", "k"), ("i", ("k",)), {"i": 0}, object):
                out[f"{name} {axis}"] = said(lambda: jax.vmap(lambda x: f(x, axis), axis_name="i")(many))
            if name not in ("all_to_all", "pswapaxes"):
                out[f"{name} ()"] = said(lambda: jax.vmap(lambda x: f(x, ()), axis_name="i")(many))
        """)
    )


def test_axes_that_count_from_the_front():
    both(
        COLLECTIVES
        + textwrap.dedent("""
        for axes in ((0,), [1], (-1,), (0, 1), (0, 0), (0, -2), (2,)):
            for name in ("sum", "prod", "max", "min", "and", "or", "xor")[:: 1 if axes == (-1,) else 3]:
                f, of = getattr(lax, f"reduce_{name}"), x.astype(int) if name in ("and", "or", "xor") else x
                out[f"{name} {axes}"] = said(lambda: f(of, axes))
        for axis in (0, 2, -1):
            for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"):
                out[f"{name} {axis}"] = said(lambda: getattr(lax, name)(x, axis))
            out[f"argmax {axis}"] = said(lambda: lax.argmax(x, axis, np.int32))
            out[f"argmin {axis}"] = said(lambda: lax.argmin(x, axis, np.int32))
            out[f"rev {axis}"] = said(lambda: lax.rev(x, (axis,)))
            out[f"reduce {axis}"] = said(lambda: lax.reduce(x, 0.0, lax.add, (axis,)))
        out["reduce f"] = said(lambda: lax.reduce(x, 0.0, lambda a, b: a + b * 1, (2,)))
        """)
    )
