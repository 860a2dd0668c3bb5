"""weft.as_jax: jax.export, programs that are kept as bytes. Each program runs under JAX, too, where it is installed."""

import subprocess
import sys

from as_jax_both import both, environment_of, lines

# JAX serializes by a library that need not be there.
READ = """
from jax import export
def reread(made, vjp_order=0):
    try:
        return export.deserialize(made.serialize(vjp_order=vjp_order))
    except ImportError:
        return made
"""


def test_programs_are_read_and_called():
    found = both(
        READ
        + """
table = jnp.arange(300.0).reshape(3, 100)
functions = {
    "tree": (lambda p, x: {"y": jnp.sin(x @ p["w"]), "n": None, "t": (x, [p["b"]])},
             ({"w": jnp.ones((3, 2)), "b": jnp.float32(2.0)}, jnp.ones((4, 3)))),
    "captured": (lambda x: (x @ table).sum(1), (jnp.ones((2, 3)),)),
    "integers": (lambda i, flag: jnp.where(flag, i * 2, -i), (jnp.arange(3), jnp.array([True, False, True]))),
    "half": (lambda x: x * 2, (jnp.ones(3, jnp.bfloat16),)),
    "loop": (lambda x: jax.lax.fori_loop(0, 5, lambda i, c: c * x, x), (jnp.float32(1.5),)),
}
for name, (f, args) in functions.items():
    made = export.export(jax.jit(f))(*args)
    read = reread(made)
    for at, exported in (("made", made), ("read", read)):
        out[f"{name} {at}"] = [
            str(exported.in_tree), str(exported.out_tree), [str(a) for a in exported.in_avals],
            [str(a) for a in exported.out_avals], exported.fun_name, list(exported.platforms),
            jax.tree.map(lambda x: np.asarray(x, np.float32).tolist(), exported.call(*args)),
            jax.tree.map(lambda x: np.asarray(x, np.float32).tolist(), jax.jit(exported.call)(*args)),
        ]
"""
    )
    assert found["integers read"][6] == [0.0, -1.0, 4.0]


def test_derivatives_and_batches_of_programs():
    both(
        READ
        + """
f = jax.jit(lambda x, y: (jnp.sin(x) * y).sum())
x, y = jnp.arange(3.0), jnp.ones(3)
made = export.export(f)(x, y)
read = reread(made, 2)
rounded = lambda v: np.round(np.asarray(v), 6).tolist()
out["grad"] = rounded(jax.grad(read.call)(x, y))
out["second"] = rounded(jax.grad(lambda x: jax.grad(read.call)(x, y).sum())(x))
out["has"] = [made.has_vjp(), read.has_vjp()]
back = read.vjp()
out["vjp"] = [[str(a) for a in back.in_avals], [rounded(v) for v in back.call(x, y, jnp.float32(2.0))]]
"""
    )


def test_sizes_that_are_open():
    both(
        READ
        + """
sizes = export.symbolic_shape("b, 3")
f = jax.jit(lambda x, y: (x * y).sum(0))
made = export.export(f)(*[jax.ShapeDtypeStruct(sizes, np.float32)] * 2)
read = reread(made)
out["types"] = [str(a) for a in read.in_avals]
for n in (1, 2, 7):
    out[str(n)] = read.call(jnp.ones((n, 3)), 2 * jnp.ones((n, 3))).tolist()
out["like"] = [str(export.symbolic_shape(s, like=(4, 5, 6))) for s in ("_, n, ...", "...", "_, _, 6")]
specs = export.symbolic_args_specs((jnp.ones((2, 3)), {"a": jnp.ones(2)}), ("b, _", None))
out["specs"] = [str(s.shape) for s in jax.tree.leaves(specs)]
out["is"] = [export.is_symbolic_dim(d) for d in sizes]
"""
    )


def test_sizes_are_told_from_several_dimensions():
    # Linear systems, in any order, also of sizes that are open in the program around.
    found = both(
        READ
        + """
words = ["Division had remainder 1", "Expected value >= 1", "Found inconsistency", "Rank mismatch", "expected same"]
specs = {
    "one": ("3, 4, 6*a", [(3, 4, 12), (3, 4, 13), (3, 4, 0), (3, 5, 12), (3, 4)]),
    "shifted": ("a + 1, a", [(4, 3), (4, 4), (1, 0)]),
    "later": ("a + 2*b, a, a + b + c", [(8, 2, 9), (2, 2, 6), (3, 2, 6)]),
    "checked": ("a + 2*b, a, a + b", [(8, 2, 5), (8, 2, 6)]),
}
for name, (spec, shapes) in specs.items():
    f = reread(export.export(jax.jit(lambda x: x * 2))(jax.ShapeDtypeStruct(export.symbolic_shape(spec), np.float32)))
    said = []
    for shape in shapes:
        for call in (f.call, jax.jit(f.call)):
            try:
                said.append(list(call(jnp.ones(shape)).shape))
            except ValueError as error:
                said.append([w for w in words if w in str(error)])
    out[name] = said
inner = export.export(jax.jit(lambda x: x + 1))(jax.ShapeDtypeStruct(export.symbolic_shape("a, a + b"), np.float32))
for n, spec in enumerate(["c, c + 3", "c, 2*c", "4, c + 4", "c, c", "4, c"]):
    try:
        outer = export.export(jax.jit(lambda x: inner.call(x) * 2))(
            jax.ShapeDtypeStruct(export.symbolic_shape(spec), np.float32))
        out[str(n)] = [str(outer.out_avals[0]).replace(" ", "")]
    except ValueError as error:
        out[str(n)] = [w in str(error) for w in ("Expected value >= 1 for dimension variable 'b'", "b + a")]
static = jax.jit(lambda x, n, *, m: x * n + m, static_argnums=1, static_argnames="m")
out["static"] = export.export(static)(2.0, 3, m=4.0).call(2.0).tolist()
"""
    )
    assert found["later"][:2] == [[8, 2, 9], [8, 2, 9]] and found["static"] == 10.0


def test_wrong_uses():
    both(
        READ
        + """
import collections
Point = collections.namedtuple("Point", "x y")
made = export.export(jax.jit(lambda x: x * 2))(jnp.ones((2, 3)))
named = export.export(jax.jit(lambda p: p.x))(Point(jnp.ones(2), 1.0))
tries = {
    "function": (lambda: export.export(lambda x: x), "must be the result of `jit`"),
    "shape": (lambda: made.call(jnp.ones((2, 4))), "hape mismatch"),
    "dtype": (lambda: made.call(jnp.ones((2, 3), "int32")), "type mismatch"),
    "tree": (lambda: made.call(1.0, 2.0), "invocation args and kwargs"),
    "platform": (
        lambda: export.export(jax.jit(jnp.sin), platforms=["tpu"])(1.0).call(1.0), "was exported for platform"),
}
for name, (attempt, words) in tries.items():
    try:
        attempt()
        out[name] = "no error"
    except ValueError as error:
        out[name] = words in str(error)
export.register_namedtuple_serialization(Point, serialized_name="a point of a test")
read = reread(named)
out["named"] = read.call(Point(jnp.ones(2), 1.0)).tolist()
"""
    )


def test_classes_of_a_structure_need_a_name():
    found = lines(
        """
        import collections
        from jax import export
        Point = collections.namedtuple("Point", "x y")
        try:
            export.export(jax.jit(lambda p: p.x))(Point(jnp.ones(2), 1.0)).serialize()
        except ValueError as error:
            out["said"] = str(error)
        """,
        "-m",
        "weft.as_jax",
    )
    assert "register_namedtuple_serialization" in found["said"]


def test_another_process_reads_a_program(tmp_path):
    write = f"""
from jax import export
import jax, jax.numpy as jnp
path = {str(tmp_path / "program")!r}
"""
    run = lambda code: subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "weft.as_jax", "-c", write + code],
        capture_output=True,
        text=True,
        env=environment_of(),
        timeout=600,
    )
    first = run("open(path, 'wb').write(export.export(jax.jit(lambda x: {'y': x + 1}))(jnp.ones(3)).serialize())")
    assert first.returncode == 0, first.stderr
    second = run("print(export.deserialize(open(path, 'rb').read()).call(jnp.arange(3.0))['y'].tolist())")
    assert second.stdout == "[1.0, 2.0, 3.0]\n", second.stderr
    third = run("export.deserialize(b'other bytes')")
    assert "not from weft.as_jax's Exported.serialize()" in third.stderr


def test_composites():
    found = both(
        """
import functools
square = lax.composite(lambda x: x ** 2, name="my.square", version=1)
@functools.partial(lax.composite, name="my.tangent")
def tangent(x, **_): return jnp.sin(x) / jnp.cos(x)
given = {"dtype": np.dtype("float32"), "int": 1, "omit": None, "str": "bar", "flag": True, "real": 0.5,
         "tensor": np.zeros((1, 2), "float32")}
programs = [jax.jit(square).lower(jnp.float32(2)), jax.jit(lambda x: tangent(x, **given)).lower(jnp.ones(4))]
texts = [program.as_text() for program in programs]
out["lines"] = [line.strip().partition(" = ")[2] for text in texts for line in text.splitlines() if "composite" in line]
out["functions"] = [line.split("{")[0].strip() for text in texts for line in text.splitlines() if "private" in line]
out["values"] = [float(square(3.0)), float(jax.jit(square)(3.0))]
try:
    jax.jit(lambda x: tangent(x, tensor=x)).lower(jnp.ones(4))
except Exception as error:
    out["traced"] = [type(error).__name__, "use numpy arrays instead" in str(error)]
"""
    )
    assert found["lines"][0].startswith('stablehlo.composite "my.square" %arg0 {decomposition = @my.square, version')


def test_programs_as_mlir_prints_them():
    found = both(
        """
text = jax.jit(lambda x, y: (x * 0.1 + 1.5) * y).lower(jnp.float32(2), jnp.float32(1)).as_text()
out["head"] = [part in text for part in ("%arg0: tensor<f32>", "%arg1: tensor<f32>")]
out["numbers"] = [part in text for part in ("dense<1.000000e-01> : tensor<f32>", "dense<1.500000e+00> : tensor<f32>")]
"""
    )
    assert all(found["head"] + found["numbers"])
