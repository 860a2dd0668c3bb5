"""Messages that programs compare whole, or by how they begin: weft.as_jax gives JAX's, and Weft's own is a note."""

import textwrap

from as_jax_both import both, lines

ASKED = """
def asked(f, *kinds):
    try:
        f()
    except kinds or (TypeError, ValueError) as error:
        return str(error).split("\\n----")[0]  # JAX says in a note which frames it leaves out
    return None
"""


def test_shapes_that_do_not_broadcast():
    found = both(
        ASKED
        + textwrap.dedent("""
        import operator
        x, y, z = jnp.zeros(3), jnp.zeros(4), jnp.zeros((2, 4))
        operators = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
                     "eq": operator.eq, "lt": operator.lt, "max": jnp.maximum}
        for name, f in operators.items():
            out[name] = asked(lambda: f(x, y))
            out["jit " + name] = asked(lambda: jax.jit(f)(x, y))
            out["ranks " + name] = asked(lambda: f(x, z))
        out["grad"] = asked(lambda: jax.grad(lambda a, b: (a * b).sum())(x, y))
        out["vmap"] = asked(lambda: jax.vmap(lambda a, b: a + b)(jnp.zeros((5, 3)), jnp.zeros((5, 4))))
        """)
    )
    assert None not in found.values()


def test_gradients_of_what_is_no_scalar():
    found = both(
        ASKED
        + textwrap.dedent("""
        x = np.zeros(3, np.float32)
        for name, take in {"grad": jax.grad, "value_and_grad": jax.value_and_grad}.items():
            for shape in ((3,), (1,), (2, 3), (2, 3, 4)):
                out[f"{name} {shape}"] = asked(lambda: take(lambda v: jnp.ones(shape) * v[0])(x))
                out[f"jit {name} {shape}"] = asked(lambda: jax.jit(take(lambda v: jnp.ones(shape) * v[0]))(x))
            for result in ("(v, v)", "[v]", "()", "{'a': v}"):
                said = asked(lambda: take(lambda v: eval(result, {"v": v.sum()}))(x))
                out[f"{name} {result}"] = said.partition("Output")[0]
        """)
    )
    assert None not in found.values()


def test_arguments_of_functions():
    found = both(
        ASKED
        + textwrap.dedent("""
        from jax._src.numpy import hijax
        from jax.extend import core
        x, v = jnp.ones((4, 3)), jnp.arange(10)
        out["pinv"] = asked(lambda: jnp.linalg.pinv(x, rcond=1e-2, rtol=1e-2))
        out["rank"] = asked(lambda: jnp.linalg.matrix_rank(x, rtol=1e-2, tol=1e-2))
        for length in (5, 11, 0):
            out[f"scan {length}"] = asked(lambda: lax.scan(lambda *a: a, 0, v, length=length))
        for name, at in {"above": ([0, 3], [0, 1]), "below": ([0, -1], [0, 1]), "second": ([0, 1], [0, 4])}.items():
            for order in "CF":
                index = tuple(map(jnp.array, at))
                out[f"ravel {name} {order}"] = asked(lambda: jnp.ravel_multi_index(index, (3, 4), order=order))
        two, three = jnp.arange(2.0), jnp.arange(3.0)
        out["interp"] = asked(lambda: jnp.interp(0.0, two, three))
        out["ranks"] = asked(lambda: jnp.interp(0.0, x, x))
        for side in ("left", "right"):
            out[side] = asked(lambda: jnp.interp(0.0, three, three, **{side: "interpolate"}))
        out["complex"] = asked(lambda: jnp.interp(1j, 1j * np.arange(3.0), np.arange(3.0)))
        out["period"] = asked(lambda: jnp.interp(0.0, three, three, period=np.array([1.0]))).partition(";")[0]
        search = lambda a, q, **more: asked(lambda: hijax.searchsorted(a, q, **{**known, **more}))
        known = dict(side="left", method="scan", dimension=0, batch_dims=0, dtype=np.dtype("int32"))
        for name, more in {"side": {"side": "none"}, "method": {"method": "none"}, "batch": {"batch_dims": -1},
                           "dimension": {"dimension": 2}}.items():
            out["searchsorted " + name] = search(three, two, **more)
        for name, many in {"one": False, "several": True}.items():
            p = core.Primitive("foo")
            p.multiple_results = many
            p.def_impl(lambda a: a)
            p.def_abstract_eval(lambda a: a if many else [a])
            out["types " + name] = asked(lambda: jax.jit(p.bind)(1.0)).partition(" or ")[0]
        out["key"] = asked(lambda: jax.random.PRNGKey(jax.random.key(0))).partition(",")[0]
        """)
    )
    assert None not in found.values()


def test_wefts_own_message_is_a_note():
    found = lines(
        """
        import traceback
        try:
            jnp.zeros(3) + jnp.zeros(4)
        except ValueError as error:
            error.add_note("added")
            out["message"], out["notes"] = str(error), error.__notes__
            out["shown"] = "".join(traceback.format_exception_only(error)).splitlines()[:2]
        try:
            jax.jit(3)
        except TypeError as error:
            out["none"] = hasattr(error, "__notes__")
            error.add_note("added")
            out["other"] = error.__notes__
        """,
        "-m",
        "weft.as_jax",
    )
    assert found["message"] == "add got incompatible shapes for broadcasting: (3,), (4,)."
    first, second = found["notes"]
    assert first.startswith("add: shapes (3,) and (4,) do not broadcast: 3 against 4") and "  at " in first
    assert second == "added" and found["shown"][1].startswith("add: shapes")
    assert found["none"] is False and found["other"] == ["added"]


def test_references_that_are_arguments_and_results():
    found = lines(
        """
        x, y = jax.new_ref(jnp.arange(3)), jax.new_ref(jnp.ones(2))
        for name, f, args in (
            ("one", lambda a_ref: a_ref, (x,)),
            ("second", lambda a_ref, b_ref: b_ref, (x, y)),
            ("in a tuple", lambda a_ref, b_ref: (1, a_ref), (x, y)),
            ("in a dictionary", lambda a: a["r"], ({"r": x},)),
        ):
            try:
                jax.jit(f)(*args)
            except ValueError as error:
                out[name] = str(error)
        """,
        "-m",
        "weft.as_jax",
    )
    for name, argument in (("one", "a_ref"), ("second", "b_ref"), ("in a tuple", "a_ref"), ("in a dictionary", "a")):
        assert f"was passed in as the argument {argument}" in found[name], found[name]


def test_functions_of_one_line_are_explained():
    found = lines(
        """
        import logging
        class Kept(logging.Handler):
            def emit(self, record):
                out.setdefault("said", []).append(record.getMessage())
        logging.getLogger().addHandler(Kept())
        logging.getLogger("jax").addHandler(Kept())
        with jax.explain_cache_misses(True):
            for _ in range(2):
                jax.jit(lambda x: 2 * x)(3)
            jax.jit(lambda x: 4 * x)(3)
        """,
        "-m",
        "weft.as_jax",
    )
    again = ["another function defined on the same line" in text for text in found["said"] if "never seen" in text]
    assert again in ([False, True, False], [False, False, True, True, False, False])  # one handler or both


def test_mapped_results_without_an_axis():
    found = lines(
        """
        x = jnp.ones(2)
        for name, options in {"none": {}, "named": {"axis_name": "foo"}}.items():
            for wrap, g in {"plain": lambda f: f, "jit": jax.jit, "twice": jax.vmap}.items():
                f = jax.vmap(lambda v: v, out_axes=None, **options)
                try:
                    g(f)(x if wrap != "twice" else jnp.ones((2, 2)))
                except ValueError as error:
                    out[f"{name} {wrap}"] = str(error)
        """,
        "-m",
        "weft.as_jax",
    )
    assert len(found) == 6
    for name, said in found.items():
        axis = " (axis_name=foo)" if name.startswith("named") else ""
        assert f"vmap has mapped output{axis} but out_axes is None; at vmap out_axes" in said, (name, said)


def test_several_keys_narrow_matrices_and_sizes_of_transforms():
    found = both(
        ASKED
        + textwrap.dedent("""
        from jax import lax, random
        keys = random.split(random.key(0))
        drawn = {"normal": (), "gamma": (1.0,), "chisquare": (1.0,), "permutation": (5,), "split": (), "fold_in": (3,)}
        for name, args in drawn.items():
            said = asked(lambda: getattr(random, name)(keys, *args), ValueError)
            out[name] = f"{name} accepts a single key, but was given a key array of shape" in said
        narrow = jnp.eye(3, dtype="float16")
        for name in ("qr", "cholesky", "svd", "eigh", "inv", "pinv", "slogdet"):
            said = asked(lambda: getattr(jnp.linalg, name)(narrow), NotImplementedError)
            out[name] = "Unsupported dtype float16" in said
        solved = jax.scipy.linalg.solve_triangular(2 * narrow, jnp.ones((3, 2), "float16"))
        out["solve_triangular"] = solved.dtype == "float16" and solved.tolist() == [[0.5] * 2] * 3
        solved = lax.linalg.triangular_solve(2 * narrow.astype("bfloat16"), jnp.ones((2, 3), "bfloat16"))
        out["triangular_solve"] = solved.dtype == "bfloat16" and solved.tolist() == [[0.5] * 3] * 2
        out["fft of real numbers"] = str(lax.fft(np.arange(4.0, dtype="float32"), "fft", (4,)).tolist())
        x = np.ones((2, 14, 15))
        for kind, sizes in {"fft": (14,), "rfft": (14, 12), "irfft": (13, 15)}.items():
            said = asked(lambda: lax.fft(x, kind, sizes), ValueError)
            out[kind] = f"{kind.upper()} input shape (2, 14, 15) m" in said and str(sizes) in said
        """)
    )
    assert {value for name, value in found.items() if name != "fft of real numbers"} == {True}


def test_what_products_with_scales_and_exchanges_refuse():
    """JAX's first words for each, which stand in Weft's message, and the kind of exception."""
    code = """
    def asked(f):
        try:
            f()
        except Exception as error:
            kinds = [kind.__name__ for kind in (TypeError, ValueError, NotImplementedError) if isinstance(error, kind)]
            return [str(error), kinds]
        return None
    x, k, cube = np.ones((3, 8)), np.arange(2), np.ones((1, 2, 4))
    scale = cube[..., :2]
    y = x[:, :5].repeat(3, 0)[:8]
    numbers = lambda *pairs: {"dimension_numbers": pairs}
    dot, product, a2a = lax.scaled_dot, jax.nn.scaled_matmul, lax.ragged_all_to_all
    general = lambda *a, **kw: jax.nn.scaled_dot_general(x, x, (((1,), (1,)), ((), ())), *a, **kw)
    config = jax.nn.get_scaled_dot_general_config
    of_kind = jax.sharding.ManualAxisType
    exchange = lambda *a: jax.make_jaxpr(lambda: a2a(*map(jnp.asarray, a), axis_name="i"), axis_env=[("i", 2)])()
    row = jnp.ones(3)
    calls = {
        "rng dtypes": lambda: lax.rng_uniform(0, 1.0, (2,)),
        "rng shapes": lambda: lax.rng_uniform(0.0, jnp.ones(2), (2,)),
        "rng none": lambda: lax.rng_uniform(None, 1.0, (2,)),
        "rng text": lambda: jax.jit(lambda: lax.rng_uniform(0.0, "a", (2,)))(),
        "stage list": lambda: lax.stage([1]),
        "stage none": lambda: lax.stage(None),
        "float": lambda: exchange(row, row, k * 1.0, k, k, k),
        "cube": lambda: exchange(row, row, k, k, k[:, None], k),
        "none": lambda: exchange(row, row, k, k[:0], k, k),
        "number": lambda: exchange(row, row, k, k, k, 1),
        "1d": lambda: dot(row, row),
        "ranks": lambda: dot(x, y[None]),
        "pairs": lambda: dot(x, y, **numbers(((1,), (0, 1)), ((), ()))),
        "batch pairs": lambda: dot(x, y, **numbers(((1,), (0,)), ((0,), ()))),
        "sizes": lambda: dot(x, y[:4]),
        "batches": lambda: dot(jnp.ones((2, 3, 4)), jnp.ones((3, 4, 3))),
        "lhs divisor": lambda: dot(x, y, lhs_scale=x[:, :3]),
        "rhs divisor": lambda: dot(x, y, rhs_scale=y[:5]),
        "lhs ratio": lambda: dot(x, y, lhs_scale=x),
        "rhs ratio": lambda: dot(x, y, rhs_scale=y),
        "lhs rows": lambda: dot(x, y, lhs_scale=x[:2, :2]),
        "rhs rows": lambda: dot(x, y, rhs_scale=y[:2, :2]),
        "2d": lambda: product(cube[0], cube, scale, scale),
        "k": lambda: product(cube, cube[..., :2], scale, scale),
        "blocks": lambda: product(cube, cube, scale, scale[..., :1]),
        "rows": lambda: product(cube, cube, scale[:, :1], scale),
        "dtype": lambda: general(np.dtype("int32"), configs=[config("mxfp8")] * 3),
        "mode": lambda: config("fp2"),
        "wide": lambda: lax.linalg.qdwh(x),
        "varying": lambda: of_kind(varying=frozenset("x"), unreduced=frozenset("x")),
        "both": lambda: of_kind(varying=frozenset("xy"), reduced=frozenset("y")),
    }
    for name, call in calls.items():
        out[name] = asked(call)
    """
    ours, theirs = lines(code, "-m", "weft.as_jax"), lines(code, JAX_PLATFORMS="cpu")
    assert None not in theirs.values()
    for name, (said, kinds) in theirs.items():
        message, mine = ours[name]
        for end in (", but got ", ". Got ", " and was passed ", "\n"):
            said = said.partition(end)[0]
        assert said in message, name
        assert set(kinds) <= set(mine), name


TREES = """
import collections, dataclasses
from jax.sharding import SingleDeviceSharding
from jax._src.tree_util import prefix_errors
@jax.tree_util.register_pytree_node_class
class Box:
    def __init__(self, inside, label):
        self.inside, self.label = inside, label
    def tree_flatten(self):
        return (self.inside,), self.label
    @classmethod
    def tree_unflatten(cls, label, inside):
        return cls(inside[0], label)
Pair = collections.namedtuple("Pair", "u v")
Ordered, Default = collections.OrderedDict, collections.defaultdict
o, place = np.ones(3, np.float32), SingleDeviceSharding(jax.devices()[0])
everything = lambda *args, **kwargs: (args, kwargs)
# Prefixes of the arguments of a call, and other arguments.
cases = {
    "length": (((0, 1),), ((o, o, o),)),
    "kind": (([0],), ((o,),)),
    "keys": (({"a": 0},), ({"a": o, "b": o},)),
    "other keys": (({"a": 0, "b": 0},), ({"a": o, "c": o},)),
    "named": ((Pair(0, 0),), ((o, o),)),
    "label": ((Box(0, 1),), (Box(o, 2),)),
    "several": ((((0, 0), [0], 0),), (((o,), [o, o], o),)),
    "arguments": ((0, 0, 0), (o, o)),
    "ordered": ((Ordered(a=0),), ({"a": o},)),
    "default": ((Default(int, a=0),), (Default(float, a=o),)),
    "deep": (({"x": [(0, 0)]},), ({"x": [(o, o, o)]},)),
    "empty": (((),), ((o,),)),
}
def words(f, start=""):
    try:
        f()
        return "nothing raised"
    except (TypeError, ValueError) as error:
        said = str(error).split("JAX says: ")[-1].split("\\n  at ")[0].split("\\n----")[0]
        return " ".join(said[said.index(start):].split())
"""


def test_prefixes():
    """Arguments that have to be prefixes: which place of which argument differs, and how."""
    found = both(
        TREES
        + textwrap.dedent("""
        for name, (prefix, full) in cases.items():
            out[f"vmap {name}"] = words(lambda: jax.vmap(everything, in_axes=prefix)(*full))
            out[f"out {name}"] = words(lambda: jax.vmap(lambda x: full, out_axes=prefix)(o))
            out[f"broadcast {name}"] = words(lambda: jax.tree.broadcast(prefix, full))
            out[f"errors {name}"] = [words(lambda: exec("raise e", {"e": e("in_axes")}))
                                     for e in prefix_errors(prefix, full)]
            places = jax.tree.map(lambda _: place, prefix)
            start = "pjit" if name == "arguments" else "Mismatch"
            out[f"jit {name}"] = words(lambda: jax.jit(everything, in_shardings=places)(*full), start)
            out[f"jit out {name}"] = words(lambda: jax.jit(lambda: full, out_shardings=places)(), "Mismatch")
            out[f"device_put {name}"] = words(lambda: jax.device_put(full, places))
            ones = jax.tree.map(lambda x: x[:1], full)
            out[f"pmap {name}"] = words(lambda: jax.pmap(everything, in_axes=prefix)(*ones))
            specs = jax.tree.map(lambda _: P(), prefix)
            mesh = jax.make_mesh((1,), ("x",))
            cut = jax.shard_map(lambda *args: o, mesh=mesh, in_specs=specs, out_specs=P())
            out[f"shard_map {name}"] = words(lambda: cut(*full))
        """)
    )
    assert "different lengths of tuple at key path vmap in_axes[0] At that key path, the prefix" in found["vmap length"]
    assert "with metadata ('a', 'b') but at the same key path" in found["vmap other keys"]
    assert not [name for name, said in found.items() if said == "nothing raised"]


def test_trees_of_another_structure():
    found = both(
        TREES
        + textwrap.dedent("""
        for name, (prefix, full) in cases.items():
            other = jax.tree.map(lambda _: o, prefix)
            out[f"map {name}"] = words(lambda: jax.tree.map(lambda *leaves: 0, prefix, full))
            out[f"third {name}"] = words(lambda: jax.tree_util.tree_map(lambda *leaves: 0, full, full, other))
            out[f"path {name}"] = words(lambda: jax.tree_util.tree_map_with_path(lambda *leaves: 0, prefix, full))
            first = lambda *args: jax.tree.leaves(args)[0]
            out[f"jvp {name}"] = words(lambda: jax.jvp(first, full, other))
            out[f"linearize {name}"] = words(lambda: jax.linearize(first, *full)[1](*other))
            pull = jax.vjp(lambda x: jax.tree.map(lambda leaf: leaf * x, full), o)[1]
            out[f"vjp {name}"] = words(lambda: pull(other), "But the tree")
            out[f"compiled {name}"] = words(lambda: jax.jit(everything).lower(*full).compile()(*other))
            rule = jax.custom_vjp(first)
            rule.defvjp(lambda *args: (first(*args), None), lambda _, ct: tuple(other))
            out[f"backward {name}"] = words(lambda: jax.grad(lambda *args: rule(*args).sum())(*full))
        """)
    )
    assert found["map length"].startswith(
        "pytree structure error: different lengths of tuple at key path tree_map tree"
    )
    assert not [name for name, said in found.items() if said == "nothing raised"]


def test_backends_that_are_not_there():
    both(
        ASKED
        + textwrap.dedent("""
        import jax.extend.backend
        asks = {"devices": jax.devices, "local": lambda b: jax.local_devices(backend=b), "count": jax.device_count,
                "local count": jax.local_device_count, "process": jax.process_index, "processes": jax.process_count,
                "jit": lambda b: jax.jit(lambda x: x, backend=b)(1.0), "get": jax.extend.backend.get_backend}
        for name, f in asks.items():
            for backend in ("foo", "gpu", "cuda", "CPU", ""):
                said = asked(lambda: f(backend), RuntimeError)
                out[f"{name} {backend}"] = said and said[said.index("Unknown"):].split("\\n  at ")[0]
        """)
    )


KINDS = """
from jax.experimental import checkify
def caught(call, kind, words=""):
    try:
        call()
        return "nothing raised"
    except kind as error:
        return words in str(error)
    except Exception as error:
        return type(error).__name__ + ": " + str(error)
"""


def test_memory_that_is_not_there():
    found = both(
        KINDS
        + textwrap.dedent("""
        n = 10**13
        makes = {"zeros": lambda: jnp.zeros(n), "ones": lambda: jnp.ones((n, 2)), "full": lambda: jnp.full(n, 3.5),
                 "jit": lambda: jax.jit(lambda: jnp.zeros(n, "int8"))(), "broadcast": lambda: jnp.broadcast_to(1.0, n)}
        for name, make in makes.items():
            for which, kind in {"Python": RuntimeError, "JAX": jax.errors.JaxRuntimeError}.items():
                words = f"RESOURCE_EXHAUSTED: Out of memory allocating {n * {'ones': 8, 'jit': 1}.get(name, 4)}"
                out[f"{name}, class of {which}"] = caught(make, kind, words)
        """)
    )
    assert set(found.values()) == {True}


def test_values_that_custom_rules_capture():
    found = both(
        KINDS
        + textwrap.dedent("""
        def jvp(y):
            f = jax.custom_jvp(lambda x: x * y)
            f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
            return f(1.0)
        def vjp(y):
            f = jax.custom_vjp(lambda x: x * y)
            f.defvjp(lambda x: (f(x), None), lambda kept, ct: (ct,))
            return f(1.0)
        for name, f in {"jvp": jvp, "vjp": vjp}.items():
            for how, call in {"grad": jax.grad(f), "value": jax.value_and_grad(f), "jit": jax.jit(jax.grad(f)),
                              "jvp": lambda y: jax.jvp(f, (y,), (1.0,)), "linearize": lambda y: jax.linearize(f, y),
                              "vmap": lambda y: jax.vmap(jax.grad(f))(jnp.ones(2))}.items():
                out[f"{name} {how}"] = caught(lambda: call(2.0), jax.errors.UnexpectedTracerError)
        """)
    )
    assert set(found.values()) == {True}


def test_fields_and_arguments_of_checks():
    found = both(
        KINDS
        + textwrap.dedent("""
        one = jnp.ones(1)
        cases = {"name": (KeyError, "{x}", (), {}), "other": (KeyError, "{x}", (), {"y": one}),
                 "place": (IndexError, "{}", (), {}), "second": (IndexError, "{} {}", (one,), {}),
                 "text": (TypeError, "{}", ("abc",), {}), "number": (TypeError, "{} {}", (one, 1.0), {}),
                 "by name": (TypeError, "{x}", (), {"x": "abc"}), "in a tree": (TypeError, "{}", ([one, None, 2],), {})}
        for name, (kind, text, args, kwargs) in cases.items():
            words = "Formatting arguments to checkify.check need to be PyTrees of arrays" if kind is TypeError else ""
            run = checkify.checkify(lambda x: checkify.check(x > 0, text, *args, **kwargs))
            out[name] = caught(lambda: run(jnp.float32(-1.0))[0].get(), kind, words)
            out[f"{name}, at once"] = caught(lambda: checkify.check(False, text, *args, **kwargs), kind, words)
        """)
    )
    assert set(found.values()) == {True}
