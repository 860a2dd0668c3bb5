"""weft.as_jax: functions that are one equation of JAX's and several operations of Weft's, what such an equation costs,
and what reverse mode keeps of a program. Programs run under JAX, too, where it is installed."""

from as_jax_both import both, lines

# Functions of numbers x and arrays of integers i, whose equations have JAX's names.
FUNCTIONS = {
    "bessel": "lambda x: lax.bessel_i0e(lax.bessel_i0e(x)) + lax.bessel_i1e(x)",
    "scipy": "lambda x: jax.scipy.special.i0e(x) * jax.scipy.special.i1e(x)",
    "bound": "lambda x: lax.bessel_i1e_p.bind(x)",
    "under vmap": "lambda x: jax.vmap(lax.bessel_i1e)(jnp.stack([x, x]))[0]",
    "in a branch": "lambda x: lax.cond(x > 0, lax.bessel_i0e, lax.bessel_i1e, x)",
}


def test_functions_that_are_one_equation():
    functions = "\n        ".join(f"functions[{name!r}] = {text}" for name, text in FUNCTIONS.items())
    found = both(
        f"""
        from jax import core
        functions = {{}}
        {functions}
        def names(jaxpr):
            inner = [getattr(j, "jaxpr", j) for eqn in jaxpr.eqns if eqn.primitive.name == "cond"
                     for j in eqn.params["branches"]]
            return [eqn.primitive.name for eqn in jaxpr.eqns], [names(j) for j in inner]
        for name, f in functions.items():
            closed = jax.make_jaxpr(f)(jnp.float32(0.7))
            (again,) = jax.core.eval_jaxpr(closed.jaxpr, closed.consts, jnp.float32(0.7))
            out[name + " value"] = [round(float(v), 5) for v in (f(jnp.float32(0.7)), again)]
            out[name + " slope"] = round(float(jax.grad(f)(jnp.float32(0.7))), 5)
            found = names(closed.jaxpr)
            parts = found[0], *(inner[0] for inner in found[1])
            out[name] = [[n for n in part if n.startswith("bessel")] for part in parts]
        i, r = jnp.array([0, 2, 1]), jnp.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
        choose = lambda i, a, b, c: lax.select_n(i, a, b, c)
        closed = jax.make_jaxpr(choose)(i, *r)
        out["choice"] = [str(closed), [np.asarray(v).tolist() for v in jax.core.eval_jaxpr(closed.jaxpr, [], i, *r)]]
        rows = lax.ScatterDimensionNumbers((1,), (0,), (0,))
        less = lambda x, i, u: lax.scatter_sub(x, i, u, rows)
        args = jnp.ones((3, 2)), jnp.array([[2], [2]]), jnp.ones((2, 2))
        closed = jax.make_jaxpr(less)(*args)
        out["less"] = [[eqn.primitive.name.replace("-", "_") for eqn in closed.eqns], np.asarray(less(*args)).tolist()]
        out["integers"] = str(jax.make_jaxpr(lambda i: lax.cumlogsumexp(i)[0])(i).eqns[0].outvars[0].aval)
        """
    )
    assert found["bessel"] == [["bessel_i0e", "bessel_i0e", "bessel_i1e"]] and found["less"][0] == ["scatter_sub"]
    assert found["in a branch"][1:] == [["bessel_i1e"], ["bessel_i0e"]]


def test_names_of_parts_say_nothing_of_them():
    found = lines(
        """
        def f(x):
            with jax.named_scope("part"):
                return lax.bessel_i1e(x) + 1.0
        out["text"] = jax.make_jaxpr(f)(1.0).pretty_print(name_stack=True)
        """,
        "-m",
        "weft.as_jax",
    )
    assert "bessel_i1e a # [part]" in found["text"] and "equation=" not in found["text"]


def test_what_they_cost():
    both(
        """
        import logging, sys, types

        if "absl" not in sys.modules:  # of which JAX's module takes its log alone
            sys.modules["absl"] = types.SimpleNamespace(logging=logging)
        from jax.experimental.roofline import roofline

        x, i = jnp.ones((3, 8)), jnp.zeros((3, 8), "int32")
        rows = lax.ScatterDimensionNumbers((1,), (0,), (0,))
        programs = {
            "bessel": (lax.bessel_i0e, x), "bessel of order 1": (lax.bessel_i1e, x),
            "choice": (lax.select_n, i, x, x, x),
            "less": (lambda x, i, u: lax.scatter_sub(x, i, u, rows), x, jnp.zeros((2, 1), "int32"), jnp.ones((2, 8))),
            "sums": (lambda i: lax.cumlogsumexp(i, axis=1), i),
            "over no axes": (lambda x: jnp.sum(x, axis=()), x), "over one": (lambda x: jnp.sum(x, axis=1), x),
            "over none of a list": (lambda x: x + jnp.sum(x, []), x),
        }
        for name, (f, *args) in programs.items():
            _, found = roofline(f)(*args)
            out[name] = found.unfused_flops, found.unfused_hbm_bytes
        """
    )


def test_what_reverse_mode_keeps():
    found = both(
        """
        from jax.ad_checkpoint import checkpoint_name
        from jax._src.ad_checkpoint import saved_residuals

        def f(x, y):
            a, b = x
            z = checkpoint_name(jnp.sin(3.0), "z")
            return z * ((a * b) * y) * np.array([3.0, 4.0], np.float32)
        for name, function in {"f": f, "jit": jax.jit(f)}.items():
            kept = saved_residuals(function, (2.0, 3.0), y=4.0)
            out[name] = [[list(aval.shape), " ".join(source.split()[:5 if "jitted" in source else 2])]
                         for aval, source in kept]
        """
    )
    assert found["f"][0] == [[2], "from a"] and found["jit"][-1][1] == "output of jitted function 'f'"


def test_slices_of_all_are_none():
    found = both(
        """
        slices = {"all": lambda x: x[:4], "some": lambda x: x[1:3], "second": lambda x: x[::2],
                  "back": lambda x: x[::-1]}
        for name, f in slices.items():
            closed = jax.make_jaxpr(f)(jnp.arange(4.0))
            (result,) = jax.core.eval_jaxpr(closed.jaxpr, closed.consts, jnp.arange(4.0))
            strides = [eqn.params["strides"] and list(eqn.params["strides"]) for eqn in closed.eqns
                       if eqn.primitive.name == "slice"]
            starts = [list(eqn.params["start_indices"]) for eqn in closed.eqns if eqn.primitive.name == "slice"]
            out[name] = [eqn.primitive.name for eqn in closed.eqns], strides, starts, result.tolist()
        """
    )
    assert found["all"][0] == [] and found["some"][1] == [None] and found["second"][1] == [[2]]


def test_barriers_of_some_arguments():
    found = lines(
        """
        import functools, re
        def barriers(prevent_cse, f, *args):
            layer = jax.checkpoint(f, prevent_cse=prevent_cse)
            loss = lambda *args: jnp.sum(layer(*args) ** 2)
            text = jax.jit(jax.grad(loss, tuple(range(len(args))))).lower(*args).as_text()
            return [len(line.partition(" : ")[0].partition("optimization_barrier")[2].split(","))
                    for line in text.splitlines() if "optimization_barrier" in line]
        w, x = jnp.ones((3, 3)), jnp.ones(3)
        product = lambda w, x: jnp.sin(x @ w)
        out["each"] = barriers((False, True), product, w, x), barriers((True, True), product, w, x)
        out["parts"] = barriers(({"w": False, "x": True},), lambda d: product(d["w"], d["x"]), {"w": w, "x": x})
        out["none"] = barriers((False, False), product, w, x)
        marked = jax.checkpoint(product, prevent_cse=(False, True))
        slope = lambda f: jax.grad(lambda w: f(w, x).sum())
        out["same"] = jnp.allclose(slope(marked)(w), slope(product)(w)).item()
        out["equations"] = str(jax.make_jaxpr(slope(marked))(w)).count("name=")
        """,
        "-m",
        "weft.as_jax",
    )
    (some,), (every,) = found["each"]
    assert some == every - 1 and found["parts"] == [some] and found["none"] == []
    assert found["same"] and found["equations"] == 0


# Programs of one equation each, and the parameters that it is asked for and bound with.
_ASKED = {
    "lambda x: jnp.sum(x, 1)": "axes out_sharding",
    "lambda x: jnp.max(x, (0, 1))": "axes",
    "lambda x: lax.argmin(x, 1, np.int32)": "axes index_dtype",
    "lambda x: x.T": "permutation",
    "lambda x: x.reshape(2, 6)": "new_sizes dimensions sharding",
    "lambda x: lax.broadcast_in_dim(x, (3, 4, 2), (0, 1))": "shape broadcast_dimensions sharding",
    "lambda x: lax.concatenate([x, x], 1)": "dimension",
    "lambda x: lax.pad(x, np.float32(0), ((1, 2, 0), (0, -1, 1)))": "padding_config",
    "lambda x: lax.rev(x, (0,))": "dimensions",
    "lambda x: lax.cumsum(x, 1, reverse=True)": "axis reverse",
    "lambda x: lax.slice(x, (0, 1), (3, 4), (1, 2))": "start_indices limit_indices strides",
    "lambda x: x[:2]": "start_indices limit_indices strides",
    "lambda x: lax.dynamic_slice(x, (i, i), (2, 2))": "slice_sizes",
    "lambda x: lax.sort(x, dimension=0)": "dimension is_stable num_keys",
    "lambda x: lax.top_k(x, 2)": "k axis",
    "lambda x: lax.bitcast_convert_type(x, np.int32)": "new_dtype",
    "lambda x: lax.exp(x)": "accuracy",
    "lambda x: x * x": "out_dtype",
    "lambda x: lax.gather(x, n, by_row, (1, 4), mode='clip')": "dimension_numbers slice_sizes mode fill_value",
    "lambda x: lax.conv_general_dilated(x[None, None], k, (1, 2), 'SAME')": (
        "window_strides padding lhs_dilation rhs_dilation feature_group_count batch_group_count precision"
    ),
    "lambda x: lax.scan(lambda c, y: (c + y.sum(), c), np.float32(0), x)": "length reverse num_consts num_carry unroll",
}


def test_parameters_under_the_names_of_jax():
    programs = "\n        ".join(f"look({source!r}, {source}, {names!r})" for source, names in _ASKED.items())
    found = both(
        f"""
        x, i, n = np.arange(12, dtype=np.float32).reshape(3, 4) / 7, jnp.int32(1), jnp.array([[2], [0]])
        k = np.ones((2, 1, 2, 2), np.float32)
        by_row = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))

        def look(source, f, names):
            closed = jax.make_jaxpr(f)(x)
            eqn = closed.eqns[-1]
            params = {{name: eqn.params[name] for name in names.split()}}
            assert all(name in eqn.params for name in params), source
            kinds = {{name: str(value) for name, value in params.items()}}
            out[source] = [kinds, eqn.params.get("none", 5), eqn.params.get(names.split()[0]) is not None]

        def bound(p, *args, **params):
            found = p.bind(*args, **params)
            return [np.asarray(a, np.float64).round(4).tolist() for a in jax.tree.leaves(found)]

        {programs}
        out["bound"] = [
            bound(lax.reduce_sum_p, x, axes=(0,), out_sharding=None),
            bound(lax.transpose_p, x, permutation=(1, 0)),
            bound(lax.reshape_p, x, new_sizes=(12,), dimensions=None, sharding=None),
            bound(lax.broadcast_in_dim_p, x, shape=(3, 4, 2), broadcast_dimensions=(0, 1), sharding=None),
            bound(lax.concatenate_p, x, x, dimension=0),
            bound(lax.pad_p, x, np.float32(0), padding_config=((1, 0, 0), (0, 0, 1))),
            bound(lax.exp_p, x, accuracy=None),
            bound(lax.convert_element_type_p, x, new_dtype=np.dtype("int32"), weak_type=False, sharding=None),
            bound(lax.dot_general_p, x, x, dimension_numbers=(((1,), (1,)), ((), ())), precision=None,
                  preferred_element_type=np.dtype("float32"), out_sharding=None),
            bound(lax.sort_p, x, x, dimension=1, is_stable=True, num_keys=1),
            bound(lax.top_k_p, x, k=2, axis=1),
            bound(lax.split_p, x, sizes=(1, 3), axis=1),
            bound(lax.squeeze_p, x[:, :1], dimensions=(1,)),
            bound(lax.iota_p, dtype=np.dtype("int32"), shape=(2, 3), dimension=1, sharding=None),
            bound(lax.dynamic_slice_p, x, i, i, slice_sizes=(2, 2)),
            bound(lax.cumsum_p, x, axis=0, reverse=False),
        ]
        jitted = jax.make_jaxpr(lambda x: lax.reduce_max_p.bind(x, axes=(0,)))(x)
        out["traced"] = str(jitted.eqns[0].primitive), list(jitted.eqns[0].params["axes"])
        """
    )
    assert found["lambda x: x.T"][0] == {"permutation": "(1, 0)"} and found["traced"] == ["reduce_max", [0]]
