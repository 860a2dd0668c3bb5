"""weft.as_jax: what JAX shows to people: structures of trees, tracebacks, effects, programs inside of programs, and
messages. Each program runs under JAX, too, where it is installed."""

import pytest
from as_jax_both import both

KINDS = """
import collections, dataclasses, functools
Point = collections.namedtuple("Point", "x y")
class Node:
    def __init__(self, a, b, name):
        self.a, self.b, self.name = a, b, name
jax.tree_util.register_pytree_node(Node, lambda n: ((n.a, n.b), n.name), lambda name, c: Node(*c, name))
@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Data:
    x: int
    name: str = dataclasses.field(metadata={"static": True})
trees = {
    "leaf": 1, "none": None, "empty": [(), [], {}], "one": (1,), "pair": (1, [2, 3]), "dict": {"b": 1, "a": (2,)},
    "named": Point(1, Point(2, None)), "node": Node(1, [2], "n"), "data": Data(1, "d"),
    "deep": {"k": [Node({"z": 1}, None, 3), (Point(1, 2),)]},
}
"""


def test_structures():
    found = both(
        KINDS
        + """
import pickle
for name, tree in trees.items():
    leaves, s = jax.tree.flatten(tree)
    out[name] = [str(s), s.num_leaves, s.num_nodes, [str(c) for c in s.children()]]
    out[name] += [s == jax.tree.structure(tree), hash(s) == hash(jax.tree.structure(tree))]
    out[name] += [str(s.compose(jax.tree.structure([0, (0,)]))), str(jax.tree.map(str, s.unflatten(leaves)))[:4]]
    out[name] += [str(jax.tree_util.tree_flatten_with_path(tree)[1]), str(jax.tree_util.treedef_tuple([s, s]))]
    if name != "node" and name != "deep":
        out[name] += [pickle.loads(pickle.dumps(s)) == s] if name not in ("named", "data") else []
    seen = []
    s.walk(lambda parts, data: seen.append(str(parts)), lambda leaf: seen.append(str(leaf)), leaves)
    out[name] += [seen]
"""
    )
    inner = "CustomNode(namedtuple[Point], [*, None])"
    assert found["named"][0] == f"PyTreeDef(CustomNode(namedtuple[Point], [*, {inner}]))"
    assert found["dict"][0] == "PyTreeDef({'a': (*,), 'b': *})"


def test_structures_that_do_not_fit():
    # Every kind of container against every other, a leaf, and one of its own kind with more in it.
    found = both(
        KINDS
        + """
others = [7, None, [1], [1, 2, 3], (1,), (1, 2), {"a": 1}, {"a": 1, "c": 2}, Point(1, 2), Node(1, 2, "n")]
for name in ("one", "pair", "dict", "named", "node", "none"):
    for i, other in enumerate(others):
        try:
            jax.tree.structure(trees[name]).flatten_up_to(other)
            said = "fits"
        except ValueError as error:
            # What is shown of an object has its address.
            said = str(error).splitlines()[0]
            said = said if said[:8] in ("Expected", "List ari", "Tuple ar", "Dict key") else said[:22]
        out[f"{name} {i}"] = said.split(" object at")[0] if "Node" not in said else said[:16]
"""
    )
    assert found["pair 2"] == "Expected tuple, got [1]."


def test_functions_of_structures():
    both(
        KINDS
        + """
tree = {"a": [1, 2], "b": [3, 4]}
outer, inner = jax.tree.structure({"a": 0, "b": 0}), jax.tree.structure([0, 0])
out["transposed"] = jax.tree.transpose(outer, inner, tree)
out["inferred"] = jax.tree.transpose(outer, None, tree)
calls = {
    "more": lambda: jax.tree.transpose(jax.tree.structure({"a": 0, "b": 0, "c": 0}), inner, tree),
    "keys": lambda: jax.tree.flatten({"a": 1, 2: 3}),
}
for name, call in calls.items():
    try:
        call()
    except (TypeError, ValueError) as error:
        out[name] = ["Mismatch" in str(error), "'<' not supported" in str(error) or "Comparator" in str(error)]
first, second = functools.partial(max, 1), jax.tree_util.Partial(functools.partial(max, 1), 2)
out["partial"] = [second.args, second(0), second.func == first, hash(second.func) == hash(first)]
from jax import flatten_util
unravel = [flatten_util.ravel_pytree({"a": jnp.ones(n), "b": 1.0})[1] for n in (2, 2, 3)]
traces = []
f = jax.jit(lambda x, u: traces.append(1) or u(x), static_argnums=1)
for u, n in zip(unravel, (3, 3, 4)):
    f(jnp.ones(n), u)
out["traces"] = len(traces)
field = jax.tree.static(default=3, metadata={"more": 1})
out["static"] = [field.default, dict(field.metadata)]
from jax.tree_util import FlattenedIndexKey, SequenceKey
out["keys differ"] = hash(FlattenedIndexKey(1)) != hash(SequenceKey(1))
for bad in ("text", (1, 2, 3), (7, 8)):
    Bad = type("Bad", (), {})
    jax.tree_util.register_pytree_node(Bad, lambda b: bad, lambda data, parts: Bad())
    try:
        jax.tree.leaves(Bad())
    except ValueError as error:
        out[str(bad)] = "The to_iterable function for a custom PyTree node should return" in str(error)
"""
    )


def test_tracebacks_have_the_frames_of_the_user():
    found = both(
        """
        import traceback
        def bad(*_):
            assert False
        jitted = jax.jit(lambda x: bad(x))
        rule = jax.custom_vjp(lambda x: x)
        rule.defvjp(lambda x: (x, None), lambda _, g: (bad(g),))
        calls = {
            "jit": lambda: jitted(1.0),
            "nested": lambda: jax.jit(lambda x: 1 + jax.vmap(jitted)(x))(jnp.ones(2)),
            "vmap": lambda: jax.vmap(bad)(jnp.ones(2)),
            "grad": lambda: jax.grad(bad)(1.0),
            "value_and_grad": lambda: jax.value_and_grad(bad)(1.0),
            "jvp": lambda: jax.jvp(bad, (1.0,), (1.0,)),
            "vjp": lambda: jax.vjp(bad, 1.0),
            "cond": lambda: lax.cond(True, bad, bad, 1.0),
            "scan": lambda: lax.scan(bad, 1.0, jnp.ones(2)),
            "while": lambda: lax.while_loop(lambda x: x < 3, bad, 1.0),
            "fori": lambda: lax.fori_loop(0, 2, bad, 1.0),
            "map": lambda: lax.map(bad, jnp.ones(2)),
            "custom_jvp": lambda: jax.custom_jvp(bad)(1.0),
            "rule": lambda: jax.grad(rule)(1.0),
        }
        for mode in ("quiet_remove_frames", "remove_frames", "off"):
            jax.config.update("jax_traceback_filtering", mode)
            for name, call in calls.items():
                try:
                    call()
                except Exception as error:
                    frames = [f.name for f in traceback.extract_tb(error.__traceback__)]
                    note = any("For simplicity" in n for n in getattr(error, "__notes__", ()))
                    whole = type(error.__cause__).__name__ == "UnfilteredStackTrace"
                    kinds = [isinstance(error, AssertionError), note, whole]
                    out[f"{mode} {name}"] = kinds + (frames if mode != "off" else [])
        """
    )
    assert found["quiet_remove_frames grad"] == [True, True, False, "<module>", "<lambda>", "bad"]
    assert found["remove_frames jit"][:3] == [True, False, True]


def test_effects_of_primitives():
    both(
        """
        from jax._src import core, effects
        from jax.interpreters import mlir
        class Allowed(effects.Effect):
            pass
        class Other(effects.Effect):
            pass
        class Unknown(effects.Effect):
            pass
        for kind in (Allowed, Other):
            effects.lowerable_effects.add_type(kind)
            effects.ordered_effects.add_type(kind)
        effects.control_flow_allowed_effects.add_type(Allowed)
        known = {"allowed": Allowed(), "other": Other(), "unknown": Unknown()}
        p = core.Primitive("acts")
        p.def_effectful_abstract_eval(lambda x, which: (x, {known[which]}))
        tokens = []
        def lowering(ctx, x, which):
            tokens.append([eff is known[which] for eff in ctx.tokens_in.effects()])
            ctx.set_tokens_out(ctx.tokens_in)
            return [x]
        mlir.register_lowering(p, lowering)
        act = lambda which: lambda x: p.bind(x, which=which)
        programs = {
            "alone": lambda which: act(which),
            "cond": lambda which: lambda x: lax.cond(x > 0, act(which), lambda x: x, x),
            "while": lambda which: lambda x: lax.while_loop(lambda x: x < 3, act(which), x),
            "scan": lambda which: lambda x: lax.scan(lambda c, _: (act(which)(c), None), x, None, length=2)[0],
        }
        for name, program in programs.items():
            for which in ("allowed", "other"):
                try:
                    found = jax.make_jaxpr(program(which))(1.0).effects
                    out[f"{name} {which}"] = [sorted(type(eff).__name__ for eff in found)]
                except NotImplementedError as error:
                    out[f"{name} {which}"] = "Effects not supported" in str(error)
        out["run"] = float(jax.jit(act("allowed"))(2.0))
        out["tokens"] = tokens[-1]
        out["none"] = [len(jax.make_jaxpr(lambda x: x + 1)(1.0).effects), core.no_effects == frozenset()]
        try:
            jax.jit(act("unknown")).lower(1.0)
        except ValueError as error:
            out["unknown"] = "Cannot lower jaxpr with effects" in str(error)
        ordered = mlir.TokenSet({"a": 1, "b": 2})
        out["set"] = [len(ordered), ordered.get("b"), list(ordered.update_tokens(mlir.TokenSet({"a": 3})).items())]
        out["same"] = ordered.update_tokens(mlir.TokenSet()) is ordered
        """
    )


def test_primitives_without_a_lowering_stand_in_programs():
    both(
        """
        from jax.extend import core
        p = core.Primitive("nowhere")
        p.def_abstract_eval(lambda x: x)
        out["program"] = [str(eqn.primitive) for eqn in jax.make_jaxpr(lambda x: p.bind(x) + 1)(1.0).eqns]
        try:
            jax.jit(lambda x: p.bind(x))(1.0)
        except NotImplementedError as error:
            out["run"] = "MLIR translation rule for primitive 'nowhere' not found" in str(error)
        """
    )


def test_derivatives_of_integers_are_float0():
    both(
        """
        from jax import dtypes
        def kind(x):
            return [x.dtype == dtypes.float0, list(x.shape)]
        f = lambda x, i: (x * 2, i + 1)
        x, i = jnp.arange(3.0), jnp.arange(3)
        zero = np.zeros(3, dtypes.float0)
        out["grad"] = kind(jax.grad(lambda x, i: x.sum(), argnums=1, allow_int=True)(x, i))
        out["both"] = [kind(g) for g in jax.grad(lambda x, i: x.sum(), argnums=(0, 1), allow_int=True)(x, i)][1]
        out["vjp"] = kind(jax.vjp(f, x, i)[1]((jnp.ones(3), zero))[1])
        out["jvp"] = kind(jax.jvp(f, (x, i), (x, zero))[1][1])
        out["linearize"] = kind(jax.linearize(f, x, i)[1](x, zero)[1])
        """
    )


def test_programs_inside_of_equations():
    both(
        """
        from jax.extend import core
        programs = {
            "scan": (lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=3)[0], ["jaxpr"]),
            "cond": (lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x), ["branches"]),
            "while": (lambda x: lax.while_loop(lambda x: x < 3, jnp.sin, x), ["cond_jaxpr", "body_jaxpr"]),
        }
        for name, (f, params) in programs.items():
            (eqn,) = [e for e in jax.make_jaxpr(f)(1.0).eqns if e.primitive.name == name]
            for param in params:
                inner = eqn.params[param]
                listed = inner if isinstance(inner, tuple) else [inner]
                out[f"{name} {param}"] = [
                    [isinstance(j, core.ClosedJaxpr), [str(e.primitive) for e in j.jaxpr.eqns]] for j in listed]
        for policy in (jax.checkpoint_policies.everything_saveable, None):
            f = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=policy)
            program = str(jax.linearize(f, 1.0)[1].func.args[0])
            out[str(policy is None)] = [" sin " in program, " cos " in program]
        from jax._src.ad_checkpoint import saved_residuals
        kept = saved_residuals(lambda x, y: (jnp.sin(x) * y).sum(), jnp.ones(3), jnp.ones(3))
        out["kept"] = sorted([list(t.shape), s.split(" from ")[0]] for t, s in kept)
        """
    )


def test_operations_of_programs_are_counted():
    both(
        """
        from jax._src import jaxpr_util
        def f(x, y):
            s = jnp.sin(x)
            t = lax.fori_loop(0, 3, lambda i, c: jnp.exp(c), y)
            return jnp.sin(s) + jnp.cos(t)
        jaxpr = jax.make_jaxpr(f)(1.0, 1.0).jaxpr
        wanted = ("sin", "cos", "exp")
        out["names"] = {k: n for k, n in jaxpr_util.primitives(jaxpr).items() if k in wanted}
        out["types"] = {k: n for k, n in jaxpr_util.primitives_by_shape(jaxpr).items() if k.split(" ")[0] in wanted}
        lines = [k for k in jaxpr_util.primitives_by_source(jaxpr) if k.startswith("sin @ ")]
        out["lines"] = len(lines)
        """
    )


def test_options_check_their_values():
    both(
        """
        from jax._src import config
        flag = config.bool_state("jax_flag_of_a_test", default=True, help="")
        word = config.enum_state("jax_word_of_a_test", enum_values=["a", "b"], default="a", help="")
        class NoBool:
            def __bool__(self):
                raise ValueError("no bool")
        tries = {
            "flag": lambda: jax.config.update("jax_flag_of_a_test", NoBool()),
            "flag here": lambda: flag(NoBool()).__enter__(),
            "word": lambda: jax.config.update("jax_word_of_a_test", "c"),
            "word here": lambda: word("c").__enter__(),
        }
        for name, attempt in tries.items():
            try:
                attempt()
            except ValueError as error:
                out[name] = ["no bool" in str(error), "new enum value must be in" in str(error), flag.value, word.value]
        with word("b"):
            out["inside"] = word.value
        out["after"] = word.value
        """
    )


def test_options_of_prints_come_first_or_with_the_rest():
    both(
        """
        import contextlib, io
        buffer = io.StringIO()
        with contextlib.redirect_stdout(buffer):
            jax.debug.print(ordered=True)("x: {x}", x=1)
            jax.debug.print("y: {}", 2, ordered=True)
            jax.debug.callback(ordered=True)(lambda z: print("z:", z), 3)
            jax.effects_barrier()
        out["printed"] = buffer.getvalue().splitlines()
        calls = {"print": lambda: jax.debug.print(a=1), "callback": lambda: jax.debug.callback(None, 1)}
        for name, call in calls.items():
            try:
                call()
            except TypeError as error:
                out[name] = "received unexpected arguments in the two-call form" in str(error)
        """
    )


def test_explicit_axes_say_how_each_dimension_lies():
    both(
        """
        from jax.sharding import AxisType
        mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Explicit,))
        with jax.set_mesh(mesh):
            x = jax.device_put(np.arange(8.0).reshape(4, 2), NamedSharding(mesh, P("x")))
            programs = {
                "mul": lambda x: x * 2, "transposed": lambda x: x.T, "sum": lambda x: x.sum(1),
                "all": lambda x: x.sum(0), "moved": lambda x: jax.sharding.reshard(x, P(None, "x")),
                "whole": lambda x: jax.sharding.reshard(x, P()),
            }
            for name, f in programs.items():
                out[name] = [[str(d) for d in y.sharding.spec] for y in (jax.jit(f)(x), f(x))]
        out["parts"] = [str(s.index) for s in x.addressable_shards]
        out["map"] = [str(i) for i in x.sharding.devices_indices_map((4, 2)).values()]
        """,
        JAX_NUM_CPU_DEVICES="2",
    )


def test_parts_of_references():
    both(
        """
        def run(x):
            r = jax.new_ref(jnp.zeros(5))
            r.at[1:4][...] += x
            r.at[1:][0] = 7.0
            r.addupdate(jnp.ones(5))
            r.addupdate(2.0, 0)
            return r[...]
        x = jnp.arange(3.0)
        out["values"] = jax.jit(run)(x).tolist()
        @jax.jit
        def added(x):
            r = jax.new_ref(jnp.ones(5))
            r.at[1:4][...] += x
            return (r[...] ** 2).sum()
        out["slope"] = jax.grad(added)(x).tolist()
        """
    )


def test_indices_of_several_numbers_that_are_not_known():
    both(
        """
        x = jnp.zeros((2, 3))
        index = ((1, 0), (1, 2))
        programs = {
            "set": lambda x, i: x.at[i].set(2.0), "add": lambda x, i: x.at[i].add(1.0),
            "get": lambda x, i: x.at[i].get(),
            "one": lambda x, i: x.at[(i[0],)].multiply(2.0), "list": lambda x, i: x.at[(list(i[0]), 1)].min(-1.0),
        }
        for name, f in programs.items():
            out[name] = jax.jit(f)(x + 1, index).tolist()
        """
    )


def test_keys_of_many_seeds():
    both(
        """
        from jax._src.random import prng, threefry2x32
        make = lambda seeds: prng.random_seed(seeds, impl=threefry2x32.threefry_prng_impl)
        keys = make(jnp.arange(6).reshape(2, 3))
        words = prng.random_unwrap(keys)
        out["words"] = [list(keys.shape), np.asarray(words).tolist()]
        out["jit"] = np.asarray(jax.jit(lambda s: jax.random.key_data(make(s)))(jnp.arange(2))).tolist()
        again = prng.random_wrap(words, impl=threefry2x32.threefry_prng_impl)
        out["same"] = [bool(jax.random.uniform(a) == jax.random.uniform(b)) for a, b in zip(keys[0], again[0])]
        """
    )


def test_types_say_along_which_axes_values_differ():
    both(
        """
        mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        def kinds(x):
            whole = [lax.psum(x, "x"), lax.all_gather(x, "x"), lax.all_gather(x, "x", to="invarying")]
            out["axes"] = [sorted(v.aval.mat.varying) for v in (x, jnp.sin(x), *whole)]
            out["mesh"] = [str(t) for t in x.aval.sharding.mesh.axis_types]
            return lax.all_gather(x, "x", tiled=True, to="invarying")
        f = jax.jit(jax.shard_map(kinds, mesh=mesh, in_specs=P("x"), out_specs=P()))
        x = jnp.arange(4.0)
        out["whole"] = f(x).tolist()
        out["slope"] = jax.grad(lambda x: (f(x) ** 2).sum())(x).tolist()
        """,
        JAX_NUM_CPU_DEVICES="2",
    )


# A wrong call, and what JAX's message says: programs look for it.
WRONG = [
    ("jax.vmap(lambda x: x)({})", "vmap wrapped function must be passed at least one argument containing an array"),
    ("jax.vmap(lambda x, y: x)(jnp.ones(2), y=jnp.ones(3))", "one axis had size 3: axis 0 of kwargs['y'] of type"),
    ("jax.vmap(lambda x, y, z: x)(*map(jnp.ones, (2, 2, 3)))", "most axes (2 of them) had size 2, e.g. axis 0 of"),
    ("jax.vmap(lambda x: x, axis_size=2)(jnp.ones(3))", "the `axis_size` argument was 2"),
    ("jax.vmap(lambda x: x, in_axes=(0, 0))(jnp.ones(2))", "but got len(in_axes)=2"),
    ("jax.vmap(lambda x: x, in_axes=([0],))((jnp.ones(2),))", "vmap in_axes specification must be a tree prefix"),
    ("jax.jvp(lambda x: x, 1.0, (1.0,))", "must be tuples or lists; found float and tuple"),
    ("jax.vjp(lambda x: x, 1.0)[1](1.0, 2.0)", "was called with 2 arguments"),
    ("jax.vjp(lambda x: x, 1.0)[1]((1.0, 2.0))", "unexpected tree structure"),
    ("jax.vjp(lambda x: x, jnp.ones(2))[1](jnp.ones(3))", "unexpected JAX type"),
    ("jax.vmap(lambda x: x, in_axes=None)(jnp.ones(2))", "vmap must have at least one non-None value in in_axes"),
    ("jax.linear_transpose(lambda x: x * jnp.ones(2), 1.0)(1.0)", "cotangent type does not match"),
    *((f"{kind}(jnp.ones(1))", "Only scalar arrays can be converted") for kind in ("int", "float", "complex")),
    ("jax.jit(float)(jnp.ones(1))", "Only scalar arrays can be converted to Python scalars"),
    ("jax.jit(lambda x: x.item())(1.0)", "Abstract tracer value"),
    ("jax.ShapeDtypeStruct(4, 'float32')", "'int' object is not iterable"),
    ("len(jax.ShapeDtypeStruct((), 'float32'))", "len() of unsized object"),
    ("jax.tree.map(lambda x, y: x, [1], [None, 2])", "pytree structure error"),
    ("jax.sharding.Mesh(np.array(jax.devices()[:1]), ('x', 'y'))", "ndim of its first argument"),
    ("NamedSharding(jax.make_mesh((1,), ('z',)), P('x'))", "Resource axis: x of"),
    ("lax.psum(1.0, 'i')", "unbound axis name: i"),
    ("(lambda x: (x.delete(), x + 1))(jnp.ones(3))", "Array has been deleted"),
    ("jax.debug.print('{x}', x=1, y=2)", "Unused keyword arguments to `jax.debug.print`: ['y']"),
    ("jax.debug.print('x', 1)", "Unused positional arguments"),
    ("lax.custom_linear_solve(lambda v: [v], 1.0, lambda m, b: b)", "matvec() output pytree"),
    (
        "jax.jvp(lambda a: lax.custom_linear_solve(lambda x: a * jnp.ones(2), 1.0, lambda m, b: b), (1.0,), (1.0,))",
        "matvec() output shapes",
    ),
    ("jax.scipy.sparse.linalg.cg(jnp.zeros((3, 2)), jnp.zeros(2))", "must be a square matrix"),
    (
        "jax.device_put({'a': one, 'b': one}, {'a': None, 'b': (None, None)})",
        "device_put device specification must be a tree prefix",
    ),
    ("jax.device_put(jnp.ones(2), P('x'))", "Please set a mesh via `jax.set_mesh`"),
    (
        "jax.make_array_from_single_device_arrays((2,), jnp.ones(2).sharding, jnp.ones(2))",
        "jax.make_array_from_single_device_arrays `arrays` argument",
    ),
    (
        "jax.jit(lambda x: jax.make_array_from_single_device_arrays((2,), one.sharding, [x]))(one)",
        "requires a list of concrete arrays",
    ),
    (
        "jax.make_array_from_single_device_arrays((2,), jnp.ones(2).sharding, [jnp.ones(2)], dtype='int32')",
        "it must match the dtype of the addressable shards",
    ),
]


def test_messages_say_it_in_words_of_jax_too():
    tried = "\n".join(f"tried({n}, lambda: {call}, {words!r})" for n, (call, words) in enumerate(WRONG))
    found = both(
        f"""
one = jnp.ones(2)
def tried(n, call, words):
    try:
        call()
        out[str(n)] = "no error"
    except Exception as error:
        out[str(n)] = True if words in str(error) else str(error)
{tried}
"""
    )
    assert found == {str(n): True for n in range(len(WRONG))}


@pytest.mark.parametrize("jit", [True, False])
def test_numbers_that_are_none_are_named(jit):
    found = both(
        f"""
        f = lambda x: jnp.log(x) * 2
        with jax.debug_nans(True):
            try:
                (jax.jit(f) if {jit} else f)(-1.0)
            except FloatingPointError as error:
                out["said"] = "invalid value (nan) encountered" in str(error)
        """
    )
    assert found == {"said": True}


SAID = """
def said(name, program, *phrases):
    try:
        program()
        out[name] = "nothing is raised"
    except Exception as error:
        out[name] = [isinstance(error, TypeError), *(phrase in str(error) for phrase in phrases)]
one, three = jnp.float32(1.0), jnp.zeros(3, "float32")
"""


def test_what_loops_and_branches_return_wrongly():
    both(
        SAID
        + """
same = "must have the same pytree structure, but they differ"
said("tuple for tuple", lambda: lax.scan(lambda c, x: ((0, 0, 0), x), (1, (2, 3)), jnp.arange(5.0)),
     "scan body function carry input and carry output " + same, "The input carry c is a tuple of length 2 but")
said("list for tuple", lambda: lax.scan(lambda x, _: ([one, one], None), (one, one), None, length=1),
     "The input carry x is a <class 'tuple'> but", "so their Python types differ")
said("keys", lambda: lax.fori_loop(0, 1, lambda i, x: {"T": one}, {"t": one}),
     "with pytree metadata ('t',)", "with pytree metadata ('T',)")
said("inside", lambda: lax.scan(lambda x, _: (({"a": one, "b": one},) * 2, None), ({"a": one},) * 2, None, length=1),
     "  * the input carry component x[0] is a <class 'dict'> with 1 child but the corresponding component of the carry "
     "output is a <class 'dict'> with 2 children")
said("types", lambda: lax.scan(lambda x, _: ((x[0] > 0, three), None), (one, one), None, length=1),
     "carry output must have equal types, but they differ",
     "the input carry component x[1] has type float32[] but the corresponding output carry component has type "
     "float32[3], so the shapes do not match")
said("loop", lambda: lax.while_loop(lambda c: True, lambda c: (one, one), one), "while_loop body function", same)
said("condition", lambda: lax.while_loop(lambda c: one, lambda c: c, one),
     "cond_fun must return a boolean scalar, but got output type(s) [ShapedArray(float32[])].")
said("conditions", lambda: lax.while_loop(lambda c: (one, one), lambda c: c, one), "but got pytree PyTreeDef((*, *)).")
said("no pair", lambda: lax.scan(lambda c, x: one, 0, three), "scan body output must be a pair, got float32[].")
said("branches", lambda: lax.cond(True, lambda: {"a": one}, lambda: {"a": (one, one)}),
     "true_fun output at path ['a'] is a pytree leaf but false_fun output at path ['a'] is a <class 'tuple'>, so their")
said("switch", lambda: lax.switch(1, [lambda: {"a": three}, lambda: {"a": one}]),
     "switch branches must have equal output types but they differ",
     "output of branch 0 at path ['a'] has type float32[3] but the corresponding output of branch1 has type float32[]")
said("bounds", lambda: lax.fori_loop(np.int16(0), jnp.int32(10), lambda i, c: c, 1.0), "must have equal types")
"""
    )


def test_what_rules_return_wrongly():
    both(
        SAID
        + """
in_scan = lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0]
def with_jvp(rule):
    f = jax.custom_jvp(lambda x: x)
    f.defjvp(rule)
    return lambda: jax.jvp(in_scan(f), (one,), (one,))
def trees(p, t): return p[0], [t[0], t[0]]
def values(p, t): return (p[0], p[0]), (t[0], t[0])
def shapes(p, t): return three, t[0]
said("trees", with_jvp(trees), "Custom JVP rule trees for function <lambda> must produce primal and tangent outputs "
     "with equal container (pytree) structures, but got PyTreeDef(*) and PyTreeDef([*, *]) respectively.")
said("values", with_jvp(values),
     "JVP rule output's first element had container/pytree structure:\\n    (float32[], float32[])")
said("shapes", with_jvp(shapes),
     "first element had shapes/dtypes of:\\n    float32[3]\\nwhile the custom_jvp-decorated")
f = jax.custom_vjp(lambda x: x)
f.defvjp(lambda x: (three, None), lambda _, ct: (ct,))
said("forward", lambda: jax.grad(in_scan(f))(one),
     "Custom VJP fwd rule <lambda> for function <lambda> must produce a pair",
     "first element had shapes/dtypes of:\\n    float32[3]\\nwhile")
"""
    )


def test_types_and_their_kinds():
    found = both("""
import pickle, typing
for name in ("bool_", "bool", "int2", "int4", "int8", "int32", "int64", "uint4", "uint16", "float16", "bfloat16",
             "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float4_e2m1fn", "int_", "uint",
             "float_", "complex_", "single", "double", "csingle", "cdouble"):
    kind = getattr(jnp, name)
    out[name] = [repr(kind), str(kind), kind.__name__, kind.__qualname__, kind.__module__, str(kind.dtype)]
    out[name] += [isinstance(kind, type), pickle.loads(pickle.dumps(kind)) is kind, kind == kind.dtype, kind in {kind}]
    out[name] += [str(np.dtype(kind)), str(typing.Optional[kind]), kind == getattr(np, name, kind), callable(kind)]
x = np.float32(1)
out["instances"] = [isinstance(x, jnp.float32), isinstance(x, jnp.float16), isinstance(1, jnp.int32)]
out["made"] = [str(jnp.float16(3).dtype), jnp.int8([1, 2]).tolist(), str(jnp.zeros(2, jnp.bfloat16).dtype)]
out["limits"] = [str(jnp.iinfo(t)) for t in (jnp.int8, "uint4", np.int32, jnp.ones(1, int))]
out["limits"] += [repr(jnp.iinfo("int16")), jnp.iinfo("int16").bits, jnp.iinfo(jnp.int8).max]
out["float limits"] = [str(jnp.finfo(t)) for t in (jnp.float32, jnp.bfloat16)]
out["functions"] = [repr(f) for f in (jnp.add, jnp.logaddexp, jnp.frompyfunc(max, 2, 1))]
""")
    assert found["bool_"][0] == "<class 'jax.numpy.bool'>"


def test_keys():
    both("""
for impl in ("threefry2x32", "rbg", "unsafe_rbg"):
    key = jax.random.key(0, impl=impl)
    for name, keys in {"one": key, "three": jax.random.split(key, 3), "table": jax.random.split(key, (2, 2))}.items():
        out[f"{impl} {name}"] = [repr(keys)[:40], str(keys)[:40], f"{keys}"[:40], str(keys.dtype)]
out["words"] = str(jax.random.split(jax.random.key(7), 2))
""")


def test_meshes_without_devices():
    found = both(
        """
from jax.sharding import AbstractDevice, AbstractMesh, AxisType
auto, explicit = AbstractMesh((2, 4), ("x", "y")), AbstractMesh((2,), ("x",), (AxisType.Explicit,))
mesh = jax.make_mesh((2, 4), ("x", "y"))
show = lambda m: [repr(m), str(m), str(m.abstract_device)]
out["made"] = [show(auto), show(explicit), show(AbstractMesh((), ())), show(auto.update(axis_sizes=(4, 2)))]
out["of devices"] = [show(mesh.abstract_mesh), show(mesh.abstract_mesh.update_axis_types({"x": AxisType.Auto}))]
named = AbstractMesh((2,), ("x",), abstract_device=AbstractDevice("cpu", None, "cpu"))
out["named"] = [show(named), show(named.update(axis_sizes=(4,))), show(explicit.update(abstract_device=None))]
out["nothing"] = [show(jax.sharding.get_abstract_mesh()), str(jax.typeof(jnp.ones(3)).sharding)]
with jax.set_mesh(mesh):
    x = jax.device_put(jnp.ones((8, 4)), P("x"))
    out["around"] = [show(jax.sharding.get_abstract_mesh()), str(jax.typeof(x).sharding)]
    seen = []
    jax.jit(lambda x: seen.append(jax.typeof(x).sharding) or x)(x)
    look = lambda x: seen.append((jax.sharding.get_abstract_mesh(), jax.typeof(x).sharding)) or x
    jax.shard_map(look, in_specs=P("x"), out_specs=P("x"))(x)
    out["traced"] = str(seen)
""",
        XLA_FLAGS="--xla_force_host_platform_device_count=8",
    )
    assert found["nothing"][0][0] == "AbstractMesh((), axis_types=())"


def test_arguments_and_results_of_programs():
    found = both(
        KINDS
        + """
f = jax.jit(lambda x, tree, *, scale=1.0: {"a": x * scale, "b": tree}, donate_argnums=0)
args = (jnp.ones(3), {"z": (2.0, [jnp.arange(2)])})
traced = f.trace(*args, scale=2.0)
for name, stage in {"traced": traced, "lowered": traced.lower(), "compiled": traced.lower().compile()}.items():
    out[name] = [str(stage.in_tree), str(stage.out_tree), str(stage.in_avals), str(stage.args_info)]
    out[name] += [str(stage.donate_argnums), stage.in_tree == jax.tree.structure((args, {"scale": 1.0}))]
    out[name] += [str(type(stage.args_info[0][0]._aval).__name__), str(stage.in_tree.children()[0])]
    out[name] += [str(jax.tree.unflatten(stage.out_tree, range(3))), hash(stage.out_tree) == hash(stage.out_tree)]
out["results"] = [str(traced.out_info), str(traced.lower().out_info)]
stages = traced, traced.lower(), traced.lower().compile()
out["weak"] = [[x.weak_type for x in jax.tree.leaves(stage.out_info)] for stage in stages]
exported = jax.export.export(f)(*args, scale=2.0)
out["exported"] = [str(exported.in_tree), str(exported.out_tree)]
data = lambda tree: str(jax.tree.structure(tree).node_data())
ordered, default = collections.OrderedDict(b=1, a=2), collections.defaultdict(list, b=1)
out["data"] = [data(t) for t in (ordered, default, {"b": 1, "a": 2})]
out["data"] += [data(Point(1, 2))[-6:], data(Node(1, 2, "n"))[-4:], data([1])]
"""
    )
    assert found["lowered"][0] == "PyTreeDef(((*, {'z': (*, [*])}), {'scale': *}))"
