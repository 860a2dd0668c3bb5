"""weft.as_jax: modules of jax.experimental that are written anew: LSTM networks, what a program costs. Programs run
under JAX, too, where it is installed."""

from as_jax_both import both, lines


def test_lstm():
    both(
        """
        from jax.experimental import rnn

        sizes = 3, 4, 2
        for name, two_ways in {"one way": False, "two ways": True}.items():
            w = rnn.init_lstm_weight(jax.random.key(0), *sizes, two_ways)
            out[name + " count"] = rnn.get_num_params_in_lstm(*sizes, two_ways), w.shape[0]
            layers = 2 * (1 + two_ways)
            draw = lambda n, *shape: jax.random.normal(jax.random.key(n), shape)
            x, h, c = draw(1, 2, 5, 3), draw(2, layers, 2, 4), draw(3, layers, 2, 4)
            lengths = jnp.array([5, 3], "int32")
            parts = rnn.unpack_lstm_weights(w, *sizes, two_ways)
            found = rnn.lstm_ref(x, h, c, *parts, lengths, *sizes, 0.0, two_ways)
            out[name] = [np.round(np.asarray(a, np.float64), 3).tolist() for a in found]
            swapped = rnn.unpack_lstm_weights(rnn.swap_lstm_gates(w, *sizes, two_ways), *sizes, two_ways)
            rows = [np.abs(np.asarray(a - b)).max(-1).reshape(4, 4).max(-1) > 0
                    for a, b in zip(jax.tree.leaves(parts[:2]), jax.tree.leaves(swapped[:2]))]
            out[name + " swapped"] = [row.tolist() for row in rows]
        """
    )


def test_lstm_of_one_vector_and_its_derivative():
    found = lines(
        """
        from jax.experimental import rnn

        sizes = 3, 4, 1
        w = rnn.init_lstm_weight(jax.random.key(0), *sizes, False)
        x, h = jax.random.normal(jax.random.key(1), (2, 5, 3)), jnp.zeros((1, 2, 4))
        lengths = jnp.array([5, 2], "int32")

        def loss(w):
            y, h_n, c_n = rnn.lstm(x, h, h, w, lengths, *sizes, 0.0, False)
            return (y ** 2).sum() + (h_n * c_n).sum()

        direction = jax.random.normal(jax.random.key(2), w.shape)
        slope = float(jax.grad(loss)(w) @ direction)
        difference = float(loss(w + 1e-2 * direction) - loss(w - 1e-2 * direction)) / 2e-2
        out["near"] = abs(slope - difference) < 1e-2 * max(abs(slope), 1)
        y, h_n, _ = rnn.lstm(x, h, h, w, lengths, *sizes, 0.0, False)
        out["padding"] = float(jnp.abs(y[1, 2:]).max()), bool((h_n[0, 1] == y[1, 1]).all())
        """,
        "-m",
        "weft.as_jax",
    )
    assert found == {"near": True, "padding": [0.0, True]}


def test_roofline():
    both(
        """
        import logging, sys, types

        if "absl" not in sys.modules:  # of which JAX's module takes its log alone
            sys.modules["absl"] = types.SimpleNamespace(logging=logging)
        from jax.experimental.roofline import roofline

        dimensions = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
        rows = lambda mode: lambda x, i: lax.gather(
            x, i, dimension_numbers=dimensions, slice_sizes=(1, 8), mode=mode)
        def conv(x, k, **more):
            return lax.conv_general_dilated(x, k, **{"window_strides": (2, 1), "padding": "SAME", **more})

        x, y = jnp.ones((4, 8)), jnp.ones((8, 3))
        image, kernel = jnp.ones((2, 6, 9, 7)), jnp.ones((3, 2, 3, 2))
        index = jnp.zeros((2, 1), "int32")
        programs = {
            "elements": (lambda x: jnp.sin(x) * 2 + x ** 2, x),
            "product": (lambda x, y: jnp.maximum(x @ y, 0.0), x, y),
            "products": (lambda a, b: jnp.einsum("bij,bjk->bk", a, b), jnp.ones((2, 4, 8)), jnp.ones((2, 8, 3))),
            "jit": (lambda x: jax.jit(jnp.exp)(x) + 1, x),
            "sums": (lambda x: (jnp.cumsum(x, 1), x.sum(0)), x),
            "gather": (rows("fill"), x, index),
            "clipped": (rows("clip"), x, index),
            "conv": (lambda x, k: conv(x, k, feature_group_count=3), image, kernel),
            "holes": (lambda x, k: conv(x, k, feature_group_count=3, rhs_dilation=(2, 3), lhs_dilation=(1, 2),
                      padding=((1, 2), (0, 1))), image, kernel),
            "callback": (lambda x: jax.pure_callback(np.sin, x, x), x),
        }
        for name, (f, *args) in programs.items():
            shapes, found = roofline(f)(*args)
            out[name] = shown([s.shape for s in jax.tree.leaves(shapes)]), found.flops, found.unfused_flops, \\
                found.hbm_bytes, found.unfused_hbm_bytes
        out["peak"] = roofline(lambda x, y: jnp.tanh(x @ y))(x, y)[1].peak_hbm_bytes
        """
    )


def test_rooflines_of_what_devices_send():
    found = both(
        """
        import logging, sys, types
        sys.modules.setdefault("absl", types.ModuleType("absl")).logging = logging  # which JAX's imports
        from jax.experimental.roofline import roofline, roofline_and_grad
        from jax.sharding import Mesh
        programs = {
            "pmin": lambda x, along: lax.pmin(x, along), "pmax": lambda x, along: lax.pmax(x, along),
            "psum": lambda x, along: lax.psum(x, along),
            "all_gather": lambda x, along: lax.all_gather(x, along, axis=0, tiled=True),
            "psum_scatter": lambda x, along: lax.psum_scatter(x, along, scatter_dimension=1, tiled=True),
            "all_to_all": lambda x, along: lax.all_to_all(x, along, split_axis=1, concat_axis=0, tiled=True),
        }
        def said(found):
            return [found.ici_bytes, found.ici_latency, found.flops, found.hbm_bytes, found.unfused_hbm_bytes]
        for sizes in ((2, 2, 2), (4, 2, 1), (8, 1, 1)):
            mesh = Mesh(np.array(jax.devices()).reshape(sizes), ("x", "y", "z"))
            for kind in ("float32", "int8", "bfloat16"):
                x = jax.ShapeDtypeStruct((16, 64), jnp.dtype(kind), sharding=NamedSharding(mesh, P(("x", "y"))))
                for along in ("x", ("x", "y"), "z"):
                    for name, f in programs.items():
                        if name == "psum_scatter" and along == ("x", "y") and sizes == (8, 1, 1):
                            continue
                        spec = P(("x", "y"), "z")
                        count = roofline(lambda a: f(a, along), mesh=mesh, in_specs=spec, out_specs=P())
                        try:
                            out[f"{sizes} {kind} {along} {name}"] = said(count(x)[1])
                        except ValueError:
                            out[f"{sizes} {kind} {along} {name}"] = "out_specs"
            n = sizes[0] * sizes[1]
            around, back = [(i, (i + 1) % n) for i in range(n)], [(i, n - 1 - i) for i in range(n)]
            for name, pairs in {"around": around, "back": back, "none": [], "self": [(0, 0)]}.items():
                move = lambda a: lax.ppermute(a, ("x", "y"), perm=pairs)
                count = roofline(move, mesh=mesh, in_specs=P(("x", "y")), out_specs=P(("x", "y")))
                out[f"{sizes} ppermute {name}"] = said(count(x)[1])
            product = lambda a, b: lax.all_gather(a, "x", axis=1, tiled=True) @ b
            for kind in ("float32", "int8", "int32"):
                place = NamedSharding(mesh, P(None, None))
                a = b = jax.ShapeDtypeStruct((8, 8), jnp.dtype(kind), sharding=place)
                specs = dict(mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P("x", None))
                types, forward, back = roofline_and_grad(product, **specs)(a, b)
                out[f"{sizes} {kind} product"] = [said(forward), str(types.sharding.spec), str(types.dtype)]
                if kind != "int32":
                    out[f"{sizes} {kind} back"] = [back.flops, back.hbm_bytes]
        """,
        XLA_FLAGS="--xla_force_host_platform_device_count=8",
    )
    assert len(found) > 100


def test_functions_that_say_how_they_are_cut():
    found = both(
        """
        from jax.experimental.custom_partitioning import (
            BATCHING, ArrayMapping, CompoundFactor, SdyShardingRule, custom_partitioning)
        from functools import partial

        def said(f):
            try:
                return f() and "fine"
            except Exception as error:
                return [kind.__name__ for kind in (ValueError, NotImplementedError) if isinstance(error, kind)]

        @partial(custom_partitioning, static_argnums=(2,))
        def product(x, y, times=1.0):
            return (x @ y) * times

        product.def_partition(
            lambda times, mesh, args, result: (
                mesh, lambda x, y: (x @ y) * times, result.sharding, tuple(a.sharding for a in args)),
            sharding_rule="i j, j k -> i k", reduction_factors=("j",),
        )
        mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        x = jax.device_put(jnp.arange(32.0).reshape(8, 4), NamedSharding(mesh, P("x")))
        y = jnp.arange(12.0).reshape(4, 3)
        out["outside"] = product(x, y, 2.0).tolist()
        out["jit"] = jax.jit(product, static_argnums=2)(x, y, 2.0).tolist()
        out["default"] = jax.jit(lambda a, b: product(a, y=b))(x, y).tolist()

        for rule in ["i j -> i j", "... i -> ... i", "(i k) j -> j", "i j i j", "(i j -> i", "1 j -> j", "(i) -> i",
                     "i ... -> i", "i-j -> i"]:
            whole = custom_partitioning(lambda x: x)
            out[rule] = said(lambda: whole.def_partition(lambda *_: None, sharding_rule=rule))
        out["sizes"] = [
            said(lambda: whole.def_partition(lambda *_: None, sharding_rule="(i k) -> i k", i=2)),
            said(lambda: whole.def_partition(lambda *_: None, sharding_rule="(i k) j -> j", i=2, k=4)),
            said(lambda: whole.def_partition(lambda *_: None, sharding_rule="i -> i", l=2)),
            said(lambda: whole.def_partition(lambda *_: None, sharding_rule="i -> i", reduction_factors=("l",))),
            said(lambda: whole.def_partition(lambda *_: None, i=2)),
        ]
        mapped = ArrayMapping(BATCHING, CompoundFactor("i", "k"))
        out["object"] = said(lambda: SdyShardingRule((mapped,), (mapped,), i=2, k=3))
        out["alone"] = said(lambda: CompoundFactor("i"))
        whole = custom_partitioning(lambda x: x)
        whole.def_partition(lambda *_: None, infer_sharding_from_operands=lambda mesh, args, result: args[0].sharding)
        out["no rule"] = said(lambda: whole(x))
        """,
        XLA_FLAGS="--xla_force_host_platform_device_count=4",
    )
    assert found["no rule"] == ["NotImplementedError"] and found["i j -> i j"] == "fine"
