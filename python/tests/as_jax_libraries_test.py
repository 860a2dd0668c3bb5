"""weft.as_jax: what libraries ask of transforms, in the ways in which they ask. Each program runs under JAX, too,
where it is installed."""

from as_jax_both import both, lines


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


def test_values_belong_to_the_trace_of_their_function():
    # equinox.filter_jvp: the tangent of a value that an outer function differentiates is None inside.
    found = both(
        """
        import jax.extend
        def inside(x):
            outer = jax.extend.core.find_top_trace(())
            def g(y):
                main = jax.extend.core.find_top_trace(()).main
                seen.append([v._trace.main is main for v in (x, y, x * y)] + [x._trace.main is outer.main])
                return y
            return jax.jvp(g, (x,), (x,))
        seen = []
        jax.jvp(inside, (1.0,), (1.0,))
        out["seen"] = seen
        """
    )
    assert found["seen"] == [[False, True, True, True]]


def test_operations_as_classes():
    # jax.experimental.hijax: rules are methods; types of arguments may be trees.
    found = both(
        """
        from jax.experimental.hijax import ShapedArray, VJPHiPrimitive, Zero, instantiate_zeros

        class Mul(VJPHiPrimitive):
            def __init__(self, x, y):
                self.in_avals, self.out_aval, self.params = (x, y), x, {}
                super().__init__()
            def expand(self, x, y):
                return x * y
            def vjp_fwd(self, moving, x, y):
                seen.append(moving)
                return self(x, y), (x, y)
            def vjp_bwd_retval(self, kept, g):
                x, y = kept
                return 2 * g * y, g * x  # another rule than the function's
            def batch_dim_rule(self, axis, dims):
                return dims[1] if dims[0] is None else dims[0]

        class Accumulated(Mul):
            vjp_bwd_retval = VJPHiPrimitive.vjp_bwd_retval
            def vjp_bwd(self, kept, g, to_x, to_y):
                to_x.accum(g * kept[1])
                to_x.accum(g)
                to_y.accum(g * kept[0])

        class Forward(VJPHiPrimitive):
            def __init__(self, x, k):
                self.in_avals, self.out_aval, self.params = (x,), x, dict(k=k)
                super().__init__()
            def expand(self, x):
                return self.k * x
            def jvp(self, primals, tangents):
                return self(*primals), 5.0 * tangents[0]

        class Tree(VJPHiPrimitive):
            def __init__(self, p):
                self.in_avals, self.out_aval, self.params = (p,), {"a": p["x"], "b": (p["x"], p["y"])}, {}
                super().__init__()
            def expand(self, p):
                return {"a": p["x"] ** 2, "b": (jnp.sin(p["x"]), jnp.cos(p["y"]))}
            def vjp_fwd(self, moving, p):
                return self(p), p
            def vjp_bwd_retval(self, p, g):
                is_zero = lambda v: isinstance(v, Zero)
                zeros.append(sum(map(is_zero, jax.tree.leaves(g, is_leaf=is_zero))))
                g = jax.tree.map(instantiate_zeros, g, is_leaf=is_zero)
                return ({"x": 2 * p["x"] * g["a"] + jnp.cos(p["x"]) * g["b"][0], "y": -jnp.sin(p["y"]) * g["b"][1]},)

        class Rows(VJPHiPrimitive):
            def __init__(self, a, x):
                self.in_avals, self.out_aval, self.params = (a, x), ShapedArray((a.shape[0],), a.dtype), {}
                super().__init__()
            def expand(self, a, x):
                return a @ x
            def batch(self, axis, args, dims):
                seen.append((axis.size, dims))
                return jnp.moveaxis(args[1], dims[1], 0) @ args[0].T + 100, 0

        seen, zeros = [], []
        on = lambda cls, *params: lambda *args: cls(*(jax.tree.map(jax.typeof, a) for a in args), *params)(*args)
        mul = on(Mul)
        out["value"] = [float(mul(2.0, 3.0)), float(jax.jit(mul)(2.0, 3.0))]
        out["slopes"] = [float(v) for v in jax.grad(mul, (0, 1))(2.0, 3.0)] + [float(jax.grad(mul, 1)(2.0, 3.0))]
        out["moving"] = [list(m) for m in seen]
        out["twice"] = float(jax.grad(jax.grad(mul), 1)(2.0, 3.0))
        out["mapped"] = jax.vmap(jax.grad(mul), (0, None))(jnp.arange(3.0), 2.0).tolist()
        out["accumulated"] = [float(v) for v in jax.grad(on(Accumulated), (0, 1))(2.0, 3.0)]
        out["forward"] = [float(v) for v in jax.jvp(on(Forward, 3.0), (2.0,), (1.0,))]
        out["tree"] = [float(v) for v in jax.tree.leaves(jax.grad(lambda p: on(Tree)(p)["a"])({"x": 1.0, "y": 2.0}))]
        out["zeros"] = zeros
        seen.clear()
        a, xs = jnp.arange(6.0).reshape(2, 3), jnp.arange(12.0).reshape(3, 4)
        out["batch"] = jax.vmap(on(Rows), (None, 1))(a, xs).tolist()
        out["told"] = [[size, str(list(dims)[0])] for size, dims in dict.fromkeys(map(tuple, seen))]  # once or twice
        missing = []
        for f in (jax.grad(on(Rows)), jax.grad(lambda x: on(Rows)(a, x).sum())):
            try:
                f(jnp.ones(3))
            except Exception as error:
                missing.append(type(error).__name__)
        out["missing"] = missing[1:]
        one, other = Forward(jax.typeof(1.0), 3.0), Forward(jax.typeof(1.0), 3.0)
        out["same"] = [one == other, hash(one) == hash(other), one == Forward(jax.typeof(1.0), 4.0), repr(one)]
        """
    )
    assert found["slopes"] == [6.0, 2.0, 2.0] and found["zeros"] == [2] and found["missing"] == ["NotImplementedError"]


def test_vectorized_functions_of_containers_that_have_a_shape():
    # dynamiqs' arrays: what a vectorized function gives is asked for its shape, and not made an array.
    found = both(
        """
        @jax.tree_util.register_pytree_node_class
        class Matrix:
            def __init__(self, rows):
                self.rows = rows
            shape = property(lambda self: self.rows.shape)
            def __array__(self, dtype=None, copy=None):
                return np.asarray(self.rows, dtype)
            def tree_flatten(self):
                return (self.rows,), None
            @classmethod
            def tree_unflatten(cls, _, children):
                return cls(*children)
        f = jnp.vectorize(lambda x: Matrix(x[:, None] * x), signature="(n)->(n,n)")
        x = jnp.arange(6.0).reshape(2, 3)
        out["eager"], out["jit"] = f(x).rows.tolist(), jax.jit(f)(x).rows.tolist()
        g = jnp.vectorize(lambda x: Matrix(x), signature="(n)->(n,n)")
        try:
            g(x)
        except ValueError:
            out["other"] = "refused"
        """
    )
    assert found["eager"] == found["jit"] and found["other"] == "refused"


def test_indices_of_einsum_that_are_names():
    # penzai's axes have names, and keep them.
    found = both(
        """
        a, b = jnp.arange(6.0).reshape(2, 3), jnp.arange(12.0).reshape(3, 4)
        out["texts"] = jnp.einsum(a, ["tokens", "in"], b, ["in", "out"], ["out", "tokens"]).tolist()
        out["in order"] = jnp.einsum(a, ["z", "in"], b, ["in", "a"]).shape
        out["large"] = jnp.einsum(a, [1000, 70], b, [70, 5], [5, 1000]).shape
        out["rest"] = jnp.einsum(a, [..., "k"], b, ["k", "m"], [..., "m"]).shape
        out["diagonal"] = float(jnp.einsum(jnp.ones((3, 3)), ["i", "i"], []))
        for name, parts in {"number": (a, 3), "array": (a, [jnp.arange(2)])}.items():
            try:
                jnp.einsum(*parts)
            except (TypeError, ValueError):
                out[name] = "refused"
        """
    )
    assert found["in order"] == [4, 2] and found["number"] == found["array"] == "refused"


def test_types_that_come_later_beside_those_of_arrays():
    found = both(
        """
        import typing
        from jax.typing import ArrayLike
        later = typing.Sequence[ArrayLike | "Matrix"]
        more = "Matrix" | (int | ArrayLike)
        out["origins"] = [str(typing.get_origin(x)) for x in (ArrayLike, ArrayLike | int, ArrayLike | "Matrix", more)]
        out["is"] = [isinstance(x, ArrayLike) for x in (jnp.ones(2), np.ones(2), np.float32(1), 1, 2.5, "a", [1])]
        """
    )
    assert found["is"] == [True] * 5 + [False] * 2


def test_weak_types_of_branches():
    # diffrax's direction of time is a weak 1, and equinox.error_if chooses between it and what a callback gives.
    found = both(
        """
        weak, strong = jnp.asarray(1), jnp.array([1])[0]
        for name, f in {
            "weak first": lambda p: jax.lax.cond(p, lambda: strong, lambda: weak),
            "strong first": lambda p: jax.lax.cond(p, lambda: weak, lambda: strong),
            "callback": lambda p: jax.lax.cond(
                p, lambda: jax.pure_callback(lambda: np.int32(1), jax.ShapeDtypeStruct((), np.int32)), lambda: weak
            ),
            "three": lambda p: jax.lax.switch(1 * p, [lambda: weak, lambda: strong, lambda: strong]),
            "pair": lambda p: jax.lax.cond(p, lambda: (strong, weak), lambda: (weak, strong)),
            "operand": lambda p: jax.lax.cond(p, lambda x: x[0], lambda x: x[1], (strong, weak)),
        }.items():
            out[name] = [[x.weak_type for x in jax.tree.leaves(way(True))] for way in (f, jax.jit(f))]
        """
    )
    assert found["weak first"] == [[True]] * 2 and found["strong first"] == [[False]] * 2


def test_numbers_go_through_functions_with_rules_as_they_are():
    found = both(
        """
        f = jax.custom_jvp(lambda x, y: {"sum": x + y, "x": x})
        f.defjvp(lambda primals, tangents: (f(*primals), f(*tangents)))
        g = jax.custom_vjp(lambda x, y: (x * y, 7))
        g.defvjp(lambda x, y: (g(x, y), None), lambda _, given: given)
        kind = lambda x: "int" if isinstance(x, int) else "float" if isinstance(x, float) else "array"
        kinds = lambda tree: [kind(x) for x in jax.tree.leaves(tree)]
        for name, args in {"numbers": (1, 2), "floats": (1.5, 2), "arrays": (jnp.ones(2), 2.0)}.items():
            out[name] = [kinds(f(*args)), kinds(g(*args))]
        """
    )
    assert found["numbers"] == [["int", "int"], ["int", "int"]]


def test_exceptions_of_callbacks_name_their_class():
    # equinox.error_if looks for its own in the text, and raises EquinoxRuntimeError then.
    found = both(
        """
        import logging
        class Logged(logging.Filter):
            def filter(self, record):
                out.setdefault("logged", [record.name, record.getMessage()])
        logging.getLogger("jax._src.callback").addFilter(Logged())
        class Failed(RuntimeError):
            pass
        def failing(kind):
            def inside(x):
                raise kind("at", 3)
            return lambda x: jax.pure_callback(inside, jax.ShapeDtypeStruct((), np.float32), x)
        def nested(x):
            return jax.pure_callback(lambda y: np.asarray(jax.jit(failing(Failed))(y)), x, x)
        for name, f in {"own": failing(Failed), "key": failing(KeyError), "nested": nested}.items():
            for way in (f, jax.jit(f)):
                try:
                    jax.block_until_ready(way(jnp.float32(1)))
                except jax.errors.JaxRuntimeError as error:
                    kind = "KeyError: " if name == "key" else "Failed: "
                    out.setdefault(name, []).append([kind in str(error), "('at', 3)" in str(error)])
        """
    )
    assert found.pop("logged") == ["jax._src.callback", "jax.pure_callback failed"]
    assert found == {"own": [[True, True]] * 2, "key": [[True, True]] * 2, "nested": [[True, True]] * 2}


def test_scipy_asks_an_array_for_its_namespace():
    found = both(
        """
        import scipy.integrate, scipy.stats
        x = jnp.linspace(0.0, 1.0, 5)
        out["namespace"] = [x.__array_namespace__() is jnp, hasattr(jnp, "__array_namespace_info__")]
        out["version"] = [isinstance(jnp.__array_api_version__, str)]
        out["integrals"] = np.asarray(scipy.integrate.cumulative_trapezoid(x, dx=0.25, initial=0)).tolist()
        out["scores"] = np.asarray(scipy.stats.zscore(x)).round(5).tolist()
        """
    )
    assert found["namespace"] == [True, True]


def test_an_lstm_of_several_layers():
    # Beside the formulas, one sequence and one step at a time.
    found = both(
        """
        from jax.experimental import rnn
        def sigmoid(x):
            return 1 / (1 + np.exp(-x))
        def written_out(xs, h0, c0, parts, lengths, layers, directions):
            outputs, hs, cs = np.zeros((*xs.shape[:2], parts[1][0].shape[1] * directions)), h0.copy(), c0.copy()
            for k, length in enumerate(lengths):
                ys = list(xs[k, :length])
                for layer in range(layers):
                    both_ways = []
                    for place in range(directions * layer, directions * (layer + 1)):
                        Wi, Wh, bi, bh = (part[place] for part in parts)
                        h, c, found = h0[place, k], c0[place, k], []
                        back = place > directions * layer
                        for x in ys[::-1] if back else ys:
                            i, f, g, o = np.split(Wi @ x + bi + Wh @ h + bh, 4)
                            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                            h = sigmoid(o) * np.tanh(c)
                            found.append(h)
                        hs[place, k], cs[place, k] = h, c
                        both_ways.append(found[::-1] if back else found)
                    ys = [np.concatenate(pair) for pair in zip(*both_ways)]
                outputs[k, :length] = ys
            return outputs, hs, cs
        for layers in (1, 2):
            for directions in (1, 2):
                shape = (3, 4, layers, directions == 2)
                keys = jax.random.split(jax.random.key(0), 4)
                x = jax.random.normal(keys[0], (2, 5, 3))
                h, c = (jax.random.normal(key, (layers * directions, 2, 4)) for key in keys[1:3])
                weights = rnn.init_lstm_weight(keys[3], *shape)
                lengths = jnp.array([5, 3], dtype=jnp.int32)
                def run(weights, x, h, c):
                    parts = rnn.unpack_lstm_weights(weights, *shape)
                    return rnn.lstm_ref(x, h, c, *parts, lengths, *shape[:3], 0.0, shape[3])
                parts = rnn.unpack_lstm_weights(weights, *shape)
                parts = [{k: np.asarray(v, float) for k, v in part.items()} for part in parts]
                wanted = written_out(*(np.asarray(v, float) for v in (x, h, c)), parts, [5, 3], layers, directions)
                got = run(weights, x, h, c)
                close = [bool(np.allclose(a, b, atol=1e-5)) for a, b in zip(got, wanted)]
                gradient = jax.grad(lambda w: run(w, x, h, c)[0].sum())(weights)
                step = jnp.cos(jnp.arange(weights.size))
                up, down = (run(weights + e * step, x, h, c)[0].sum() for e in (1e-2, -1e-2))
                twice = rnn.swap_lstm_gates(rnn.swap_lstm_gates(weights, *shape), *shape)
                swapped = rnn.unpack_lstm_weights(rnn.swap_lstm_gates(weights, *shape), *shape)[0]
                out[f"{layers} {directions}"] = [
                    rnn.get_num_params_in_lstm(*shape), weights.shape, close, [v.shape for v in got],
                    bool(abs((up - down) / 2e-2 - gradient @ step) < 1e-2 * (1 + abs(gradient @ step))),
                    bool((twice == weights).all()), [float(swapped[0][8, 0]) == float(parts[0][0][12, 0])],
                ]
        for kind, more in {"lengths": (lengths.astype(jnp.float32), 0.0), "dropout": (lengths, 0.5)}.items():
            try:
                rnn.lstm_ref(x, h, c, *rnn.unpack_lstm_weights(weights, *shape), more[0], *shape[:3], more[1], shape[3])
            except NotImplementedError:
                out[kind] = "refused"
        """
    )
    assert found["2 2"][2:] == [[True] * 3, [[2, 5, 8], [4, 2, 4], [4, 2, 4]], True, True, [True]]
    assert found["lengths"] == found["dropout"] == "refused"


def test_an_lstm_of_parameters_in_one_array():
    # JAX's is cuDNN's, which a processor does not have.
    code = """
    from jax.experimental import rnn
    shape = (3, 4, 2, True)
    x, h, c = jnp.ones((2, 5, 3)), jnp.zeros((4, 2, 4)), jnp.zeros((4, 2, 4))
    weights, lengths = rnn.init_lstm_weight(jax.random.key(0), *shape), jnp.array([5, 3], dtype=jnp.int32)
    one = rnn.lstm(x, h, c, weights, lengths, *shape[:3], 0.0, True)
    other = rnn.lstm_ref(x, h, c, *rnn.unpack_lstm_weights(weights, *shape), lengths, *shape[:3], 0.0, True)
    out["same"] = [bool(jnp.allclose(a, b, atol=1e-6)) for a, b in zip(one, other)]
    """
    assert lines(code, "-m", "weft.as_jax")["same"] == [True] * 3


def test_what_flax_asks_for():
    # The structure of an nnx.Module as a static argument has a hash of its own; nn.ConvLocal names dimensions by their
    # places; nn.with_partitioning takes axes of any name; nnx asks for the types of references and of keys.
    found = both(
        """
        import dataclasses
        @dataclasses.dataclass(frozen=True)
        class Structure:
            nodes: list
            def __hash__(self):
                return hash(tuple(self.nodes))
        traced = []
        @jax.jit(static_argnums=0)
        def f(structure, x):
            traced.append(0)
            return x * structure.nodes[-1]
        out["static"] = [float(f(Structure([1, n]), 2.0)) for n in (3, 4, 3)], len(traced)

        x, kernel = jnp.arange(12.0).reshape(1, 6, 2), jnp.arange(48.0).reshape(4, 6, 2)
        numbers = jax.lax.conv_dimension_numbers(x.shape, (3, 2, 4), ("NWC", "WIO", "NWC"))
        local = lambda dims: jax.lax.conv_general_dilated_local(x, kernel, (1,), "VALID", (3,), dimension_numbers=dims)
        out["local"] = local(numbers).tolist()
        out["by letters"] = local(("NWC", "WIO", "NWC")).tolist()

        spec = jax.P("out-alias", None, ("a b", "c"))
        out["names"] = [list(spec[2]), spec[0], len(spec)]
        aval = jax.typeof(jax.new_ref(jnp.ones(3)))
        out["reference"] = [type(aval).__name__, list(aval.shape), str(aval.dtype)]

        # nnx counts the bytes of a module's arrays, and looks for dtypes that are texts.
        key = jax.random.key(0)
        out["dtype"] = [isinstance(key.dtype, str), repr(key.dtype), key.dtype.itemsize, key.dtype == "float32"]
        # An nnx.Variable may hold a Python number.
        class Variable:
            def __init__(self, value):
                self.value = value
            def __jax_array__(self):
                return self.value
        out["numbers"] = [shown(f(Variable(v))) for v in (2.0, 3, np.ones(2), jnp.ones(2)) for f in (
            lambda v: v.value * jnp.ones(2), lambda v: jnp.ones(2) + v, lambda v: jax.jit(lambda x: x * v)(4.0),
            jnp.asarray)]
        """
    )
    assert found["static"] == [[6, 8, 6], 2] and found["local"] == found["by letters"]


def test_what_has_no_derivative_is_of_dtype_float0():
    both(
        """
f = jax.custom_jvp(lambda x, key, n: x * jax.random.normal(key) * n)
@f.defjvp
def rule(primals, tangents):
    out["jvp"] = [str(t.dtype) for t in tangents[1:]]
    return f(*primals), tangents[0]
out["grad"] = str(jax.grad(f)(2.0, jax.random.key(0), 3))
g = jax.custom_vjp(lambda x, state: state)
g.defvjp(lambda x, state: (state, None), lambda _, ct: (ct[0], (out.setdefault("vjp", str(ct[1].dtype)), ct)[1]))
out["through"] = str(jax.grad(lambda x: g(x, (8.0, jax.random.key(1)))[0])(3.0))
by_both = jax.jit(jax.grad(lambda x, i: x[i], argnums=(0, 1), allow_int=True))
out["jitted"] = [[str(a.dtype), list(a.shape)] for a in by_both(np.ones(2, "float32"), 1)]
out["pullback"] = [str(a.dtype) for a in jax.jit(jax.vjp(lambda x, y: x + y, 2, 1)[1])(np.zeros((), jax.dtypes.float0))]
zeros = np.zeros(2, jax.dtypes.float0)
h, x = lambda a: (zeros, a * 2), np.ones(2, "float32")
again, back = jax.vjp(jax.vjp(lambda i, a: (2 * i, a * a), np.arange(2), x)[1], (zeros, x))
inside = jax.jit(lambda a: jax.vjp(h, a)[0])(x)
found = [again, back(again), jax.vjp(h, x)[0], jax.jvp(h, (x,), (x,)), jax.vmap(h)(x), inside]
out["results"] = [[str(a.dtype), list(a.shape)] for a in jax.tree.leaves(found)]
"""
    )


def test_checkpoint_traces_once():
    both(
        """
counts = {}
def counted(name, **options):
    def f(x, n=2):
        counts[name] = counts.get(name, 0) + 1
        return jnp.sin(x) * n
    return jax.checkpoint(f, **options)
plain, static = counted("plain"), counted("static", static_argnums=(1,))
for x in (1.0, 2.0, 3.0):
    out[str(x)] = [round(float(y), 5) for y in (plain(x), static(x, 3), static(x, 4))]
plain(jnp.ones(3))
out["counts"] = counts
"""
    )


def test_implementations_of_operations_are_watched():
    both(
        """
calls = []
impl = lax.sin_p.impl
_, moved = jax.linearize(jax.checkpoint(lambda x: lax.sin(lax.sin(x))), 2.0)
lax.sin_p.def_impl(lambda x, **kw: calls.append(float(x)) or impl(x, **kw))
try:
    out["value"] = round(float(moved(3.0)), 5)
finally:
    lax.sin_p.def_impl(impl)
out["calls"] = list(calls)
out["after"] = [round(float(moved(3.0)), 5), len(calls)]
"""
    )


def test_transposed_functions_go_through_jit():
    both(
        """
f = lambda x: 2.0 * x
transposed = jax.jit(lambda x: jax.linear_transpose(f, x))(1.0)
out["value"] = [str(v) for v in jax.jit(lambda t, x: t(x))(transposed, 3.0)]
def named(x):
    "Says it."
    return x
out["documentation"] = jax.vmap(named).__doc__
"""
    )
