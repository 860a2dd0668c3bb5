"""weft.as_jax: JAX's names served by Weft, in processes of their own."""

import json
import os
import pathlib
import sys
import textwrap

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import as_jax_programs
from as_jax_both import run

PROGRAMS = pathlib.Path(as_jax_programs.__file__)


def as_jax(code, check=True, **environment):
    return run("-m", "weft.as_jax", "-c", textwrap.dedent(code), check=check, **environment)


@pytest.fixture(scope="module")
def both():
    """What the programs give under JAX, and on Weft."""
    pytest.importorskip("jax")
    theirs = run(PROGRAMS, JAX_PLATFORMS="cpu")
    ours = run("-m", "weft.as_jax", PROGRAMS)
    return json.loads(theirs.stdout), json.loads(ours.stdout)


@pytest.mark.parametrize("name", [f.__name__ for f in as_jax_programs.PROGRAMS])
def test_programs_give_the_numbers_of_jax(both, name):
    theirs, ours = (results[name] for results in both)
    assert len(theirs) == len(ours)
    for a, b in zip(theirs, ours):
        # Chains of steps: roundings of single precision add up.
        np.testing.assert_allclose(np.asarray(b, float), np.asarray(a, float), rtol=2e-4, atol=2e-5)


def test_ways_to_start(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys, jax, beside\nprint(jax.__version__, sys.argv[1:], __name__, beside.X)\n")
    (tmp_path / "beside.py").write_text("import jax.numpy as jnp\nX = int(jnp.arange(3).sum())\n")
    assert run("-m", "weft.as_jax", script, "a", "-b").stdout == "0.10.2 ['a', '-b'] __main__ 3\n"
    code = "import sys, jax; print(jax.numpy.ones(2).tolist(), sys.argv, __name__)"
    assert run("-m", "weft.as_jax", "-c", code, "x").stdout == "[1.0, 1.0] ['-c', 'x'] __main__\n"
    module = run("-m", "weft.as_jax", "-m", "beside_main", check=False, PYTHONPATH=paths(tmp_path))
    assert "No module named beside_main" in module.stderr
    (tmp_path / "beside_main.py").write_text("import jax, sys\nprint(jax.lax.add(1, 2), sys.argv[1:])\n")
    module = run("-m", "weft.as_jax", "-m", "beside_main", "1", PYTHONPATH=paths(tmp_path))
    assert module.stdout == "3 ['1']\n"


def paths(*first):
    return os.pathsep.join([*map(str, first), *filter(None, sys.path)])


def test_bad_command_lines(tmp_path):
    nothing = run("-m", "weft.as_jax", check=False)
    assert nothing.returncode == 2 and "usage: python -m weft.as_jax" in nothing.stderr
    absent = run("-m", "weft.as_jax", tmp_path / "absent.py", check=False)
    assert absent.returncode == 1 and "there is no file" in absent.stderr
    assert "usage" in run("-m", "weft.as_jax", "--help").stdout
    # What the program raises is its own.
    failing = as_jax("import jax\nraise SystemExit(7)", check=False)
    assert failing.returncode == 7


def test_pytest_plugin(tmp_path):
    test = tmp_path / "test_of_users.py"
    (tmp_path / "conftest.py").write_text("import jax\nASKED = jax.__spec__.origin\n")
    test.write_text(
        "import jax, jax.numpy as jnp, weft\n"
        "def test_it():\n"
        "    assert isinstance(jnp.ones(2), weft.Array) and 'weft.as_jax' in jax.__spec__.origin\n"
    )
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "weft.as_jax", test)
    assert "1 passed" in done.stdout


def test_versions():
    done = as_jax(
        """
        import importlib.metadata as metadata, jax, jaxlib
        print(metadata.version("jax"), metadata.version("jaxlib"), jax.__version__, jaxlib.__version__)
        print(jax.__version_info__, jax.version.__version_info__)
        try:
            metadata.version("surely-not-there")
        except metadata.PackageNotFoundError:
            print("not there")
        """
    )
    assert done.stdout.splitlines() == ["0.10.2 0.10.2 0.10.2 0.10.2", "(0, 10, 2) (0, 10, 2)", "not there"]


def test_without_it_nothing_is_served():
    code = "import weft, sys; assert not any(m.startswith(('weft.as_jax', 'jax')) for m in sys.modules)"
    run("-c", code)


@pytest.mark.parametrize(
    ("statement", "kind", "name", "reason"),
    [
        ("jax.numpy.nothing", "AttributeError", "jax.numpy.nothing", ""),
        ("from jax.numpy import nothing", "ImportError", "jax.numpy.nothing", ""),
        ("import jax.nothing", "ModuleNotFoundError", "jax.nothing", ""),
        ("from jax import linear_util", "ImportError", "jax.linear_util", "use jax.extend.linear_util"),
        ("import jax.experimental.mosaic", "ModuleNotFoundError", "jax.experimental.mosaic", "kernels are written"),
        ("jax.ffi.ffi_call", "AttributeError", "jax.ffi.ffi_call", "jax.pure_callback"),
        ("import jaxlib.mlir.passmanager", "ModuleNotFoundError", "jaxlib.mlir.passmanager", "Weft's own IR"),
    ],
)
def test_missing_names_are_named_and_counted(tmp_path, statement, kind, name, reason):
    log = tmp_path / "log"
    code = f"""
    import jax, jax.export
    for _ in range(2):
        try:
            {statement}
        except Exception as error:
            print(type(error).__name__, error)
    """
    done = as_jax(code, WEFT_AS_JAX_LOG=str(log))
    lines = done.stdout.splitlines()
    assert len(lines) == 2 and lines[0] == lines[1]
    assert lines[0].startswith(f"{kind} weft.as_jax: Weft has no counterpart of {name}") and reason in lines[0]
    assert log.read_text() == f"{name} 2\n"


def test_kernels_that_a_library_has_beside_all_else():
    done = as_jax(
        """
        from jax.experimental import pallas as pl
        from jax.experimental.pallas import triton, tpu
        for kernel in (lambda: pl.BlockSpec((2, 2)), lambda: pl.pallas_call(len, 1), lambda: triton.CompilerParams()):
            try:
                kernel()
            except NotImplementedError as error:
                print(str(error).splitlines()[0])
        print(hasattr(pl, "nothing"), hasattr(tpu, "VMEM"))
        """
    )
    *errors, there = done.stdout.splitlines()
    assert len(errors) == 3 and all("kernels are written by Weft's compiler" in error for error in errors)
    assert there == "False True"


def test_a_log_that_cannot_be_written(tmp_path):
    done = as_jax("import jax\nhasattr(jax, 'nothing')", WEFT_AS_JAX_LOG=str(tmp_path / "no" / "folder"))
    assert done.stderr.startswith("weft.as_jax: WEFT_AS_JAX_LOG is ") and "expected a file" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_hasattr_is_false_for_what_is_missing():
    assert as_jax("import jax\nprint(hasattr(jax, 'nothing'), hasattr(jax, 'jit'))").stdout == "False True\n"


def test_what_is_there_but_not_for_calls(tmp_path):
    log = tmp_path / "log"
    done = as_jax(
        """
        import jax.experimental.pallas
        try:
            jax.experimental.pallas.pallas_call(lambda x: x)
        except NotImplementedError as error:
            print(error)
        """,
        WEFT_AS_JAX_LOG=str(log),
    )
    name = "jax.experimental.pallas.pallas_call"
    assert done.stdout.startswith(f"weft.as_jax: Weft has no counterpart of {name}: ")
    assert log.read_text() == f"{name}() 1\n"


def test_jax_imported_already():
    pytest.importorskip("jax")
    code = """
    import jax, weft.as_jax
    try:
        weft.as_jax.install()
    except RuntimeError as error:
        print(error)
    """
    done = run("-c", textwrap.dedent(code))
    assert "jax has been imported already, from " in done.stdout and "python -m weft.as_jax" in done.stdout


def test_installing_twice():
    code = (
        "import weft.as_jax as a, sys; a.install(); n = len(sys.meta_path); a.install(); assert len(sys.meta_path) == n"
    )
    run("-c", code + "; import jax; assert jax.config.jax_enable_x64 is False")


def test_every_entry_of_the_table_is_there():
    # An entry that names nothing would only be found by the user who needs it.
    done = as_jax(
        """
        import importlib
        import jax
        from weft.as_jax.served import Value
        from weft.as_jax.table import TABLE
        seen, wrong = 0, []
        for module, served in TABLE.items():
            try:
                loaded = importlib.import_module(module)
            except ModuleNotFoundError:
                # A rule for a module that Weft does not have (yet) holds nothing.
                if served.names:
                    wrong.append(module)
                continue
            for name, place in served.names.items():
                seen += 1
                if isinstance(place, str) and place.startswith("weft:Primitive"):
                    continue
                try:
                    getattr(loaded, name)
                except AttributeError:
                    wrong.append(f"{module}.{name}")
        print(seen > 300, wrong)
        """
    )
    assert done.stdout == "True []\n"


def test_public_names_of_jax_are_served_or_have_a_reason():
    jax = pytest.importorskip("jax")
    modules = ["jax", "jax.sharding", "jax.core", "jax.tree", "jax.tree_util", "jax.dtypes", "jax.errors", "jax.typing"]
    modules += ["jax.debug", "jax.test_util", "jax.example_libraries.optimizers", "jax.monitoring", "jax.profiler"]
    names = {}
    for module in modules:
        __import__(module)
        found = sys.modules[module]
        own = [n for n in dir(found) if not n.startswith(("_", "@"))]
        if module.endswith("optimizers"):
            own = [n for n in own if getattr(getattr(found, n), "__module__", "") == "jax.example_libraries.optimizers"]
        names[module] = own
    assert jax.__version__
    done = as_jax(
        f"""
        import importlib
        from weft.as_jax.table import TABLE
        missing = []
        for module, names in {names!r}.items():
            served = importlib.import_module(module)
            for name in names:
                if name not in TABLE[module].absent and not hasattr(served, name):
                    missing.append(f"{{module}}.{{name}}")
        print("\\n".join(missing))
        """
    )
    assert set(done.stdout.split()) <= NOT_SERVED, sorted(set(done.stdout.split()) - NOT_SERVED)


# Without a reason in the table: they are to come.
NOT_SERVED = {
    "jax.ad",
    "jax.image",
    "jax.auto_pcast",
    "jax.jax2tf_associative_scan_reductions",
    "jax.make_user_context",
    "jax.memory",
    "jax.lib",
    "jax.remove_size_one_mesh_axis_from_type",
    "jax.core.ensure_compile_time_eval",
    "jax.sharding.AbstractDevice",
    "jax.sharding.make_single_device_sharding",
    "jax.errors.InconclusiveDimensionOperation",
    "jax.errors.JaxprTypeError",
    "jax.debug.DebugEffect",
    "jax.debug.OrderedDebugEffect",
    "jax.debug.inspect_array_sharding",
    "jax.debug.log",
    "jax.debug.visualize_sharding",
    "jax.tree_util.flatten_one_level_with_keys",
    "jax.profiler.register_subprocess",
}


def test_configuration():
    done = as_jax(
        """
        import jax, jax.numpy as jnp, numpy as np
        print(jnp.asarray(np.ones(1)).dtype, jnp.zeros(1, "float64").dtype, jnp.arange(3).dtype)
        with jax.enable_x64(True):
            print(jnp.asarray(np.ones(1)).dtype, jnp.arange(3).dtype)
        jax.config.update("jax_enable_x64", True)
        print(jnp.asarray(np.ones(1)).dtype, jax.config.jax_enable_x64, jax.config.read("jax_enable_x64"))
        jax.config.update("jax_traceback_filtering", "off")
        print(jax.config.jax_traceback_filtering)
        with jax.default_matmul_precision("float32"), jax.log_compiles(), jax.numpy_rank_promotion("raise"):
            print(jax.config.jax_numpy_rank_promotion)
        print(jax.config.jax_numpy_rank_promotion)
        try:
            jax.config.update("jax_nothing", 1)
        except AttributeError as error:
            print(error)
        """
    )
    assert done.stdout.splitlines() == [
        "float32 float32 int32",
        "float64 int64",
        "float64 True True",
        "off",
        "raise",
        "allow",
        "Unrecognized config option: jax_nothing",
    ]


def test_options_from_the_environment():
    code = "import jax; print(jax.config.jax_enable_x64, jax.config.jax_default_prng_impl)"
    assert as_jax(code, JAX_ENABLE_X64="1", JAX_DEFAULT_PRNG_IMPL="rbg").stdout == "True rbg\n"


def test_programs_as_data():
    done = as_jax(
        """
        import jax, jax.numpy as jnp
        from jax import lax
        from jax.extend.core import ClosedJaxpr, Literal
        table = jnp.arange(100.0)

        def f(x):
            return jnp.exp(jnp.tanh(x)) * 2 + table[3]

        closed = jax.make_jaxpr(f)(1.0)
        assert isinstance(closed, ClosedJaxpr)
        print([eqn.primitive.name for eqn in closed.jaxpr.eqns][:3])
        print(closed.jaxpr.eqns[0].primitive is lax.tanh_p, isinstance(closed.eqns[2].invars[1], Literal))
        print(jax.core.eval_jaxpr(closed.jaxpr, closed.consts, 1.0)[0] == f(1.0))

        # The notebook on custom interpreters: inverses.
        registry = {lax.exp_p: jnp.log, lax.tanh_p: jnp.arctanh}

        def inverse(fun):
            def wrapped(*args):
                closed = jax.make_jaxpr(fun)(*args)
                env = dict(zip(closed.jaxpr.outvars, args))
                for eqn in closed.jaxpr.eqns[::-1]:
                    (x,), (y,) = eqn.invars, eqn.outvars
                    env[x] = registry[eqn.primitive](env[y])
                return [env[v] for v in closed.jaxpr.invars][0]
            return wrapped

        g = lambda x: jnp.exp(jnp.tanh(x))
        slopes = jax.jit(jax.vmap(jax.grad(inverse(g))))(jnp.array([2.0]))
        print(jnp.allclose(inverse(g)(g(0.5)), 0.5), jnp.allclose(slopes, 1 / (2.0 * (1 - jnp.log(2.0) ** 2))))

        def loop(x):
            y = lax.scan(lambda c, t: (c * t, c), x, jnp.arange(3.0))[0]
            return lax.cond(x > 0, lambda: y, lambda: -y) + lax.while_loop(lambda c: c < 5, lambda c: c + 1, x)

        closed = jax.make_jaxpr(loop)(2.0)
        print(jax.core.jaxpr_as_fun(closed)(2.0)[0] == loop(2.0), sorted({e.primitive.name for e in closed.eqns}
              & {"scan", "cond", "while"}))
        """
    )
    assert done.stdout.splitlines() == [
        "['tanh', 'exp', 'mul']",
        "True True",
        "True",
        "True True",
        "True ['cond', 'scan', 'while']",
    ]


def test_lowered_programs_as_text():
    """It is StableHLO, as under JAX, and of 32 bits."""
    done = as_jax(
        """
        import jax, jax.numpy as jnp, numpy as np, weft
        lowered = jax.jit(lambda x, i: (jnp.sort(jnp.sin(x)), jnp.argmax(x) + i)).lower(jnp.ones(4), 1)
        text = lowered.as_text()
        assert text == lowered.as_text("stablehlo") == lowered.as_text(dialect="stablehlo")
        assert "%arg0" in text and "%x" in lowered.as_text(debug_info=True)
        assert "stablehlo.sine" in text and "i64>" not in text.replace("array<i64", ""), text
        assert lowered.as_text("ir").startswith("fn ")
        print(*weft.ir.from_stablehlo(text)(jnp.zeros(4), np.int32(1)))
        """
    )
    assert done.stdout == "[0. 0. 0. 0.] 1\n"


def test_types_of_values():
    done = as_jax(
        """
        import jax, jax.numpy as jnp
        x = jnp.ones((2, 3))
        print(jax.typeof(x), repr(x.aval), x.aval == jax.core.ShapedArray((2, 3), jnp.float32))
        print(isinstance(x, jax.Array), isinstance(x, jax.core.Tracer), isinstance(x.aval, jax.core.AbstractValue))
        s = jax.ShapeDtypeStruct((4,), jnp.int32)
        print(s, s.update(shape=(5,)), isinstance(jax.eval_shape(lambda x: x.sum(0), x), jax.ShapeDtypeStruct))

        @jax.jit
        def f(x):
            print(isinstance(x, jax.core.Tracer), isinstance(x, jax.Array), x.aval.str_short())
            with jax.ensure_compile_time_eval():
                known = jnp.arange(4).sum()
            print(isinstance(known, jax.core.Tracer), int(known))
            return x

        f(x)

        class Mine(jax.core.Tracer):
            pass

        print(isinstance(Mine(), Mine), isinstance(x, Mine))
        print(jnp.issubdtype(jax.random.key(0).dtype, jax.dtypes.prng_key), jnp.issubdtype(x.dtype, jnp.floating))
        """
    )
    assert done.stdout.splitlines() == [
        "float32[2,3] ShapedArray(float32[2,3]) True",
        "True False True",
        "ShapeDtypeStruct(shape=(4,), dtype=int32) ShapeDtypeStruct(shape=(5,), dtype=int32) True",
        "True True float32[2,3]",
        "False 6",
        "True False",
        "True True",
    ]


def test_arguments_of_jax_alone():
    done = as_jax(
        """
        import jax, jax.numpy as jnp
        d = jax.devices()[0]
        print(jnp.zeros(2, device=d).devices() == {d}, jax.lax.exp(0.0, accuracy=None))
        print(jnp.convolve(jnp.ones(2), jnp.ones(2), precision="highest", preferred_element_type="float16").dtype)
        print(jax.grad(lambda x: x * x, reduce_axes=())(3.0), jax.jit(lambda x: x, backend="cpu", device=None)(1))
        try:
            jnp.add(1, 2, where=jnp.array(True))
        except NotImplementedError as error:
            print(str(error).splitlines()[0])
        """
    )
    assert done.stdout.splitlines() == [
        "True 1.0",
        "float16",
        "6.0 1",
        "add: the argument 'where' has no counterpart in Weft, got Array(True, dtype=bool)",
    ]


def test_libraries_of_examples():
    done = as_jax(
        """
        import jax, jax.numpy as jnp
        from jax.example_libraries import optimizers, stax
        init, apply = stax.serial(stax.Conv(4, (3, 3)), stax.Relu, stax.MaxPool((2, 2), (2, 2)), stax.Flatten,
                                  stax.Dense(3), stax.LogSoftmax)
        shape, params = init(jax.random.PRNGKey(0), (2, 8, 8, 1))
        x = jnp.ones((2, 8, 8, 1))
        print(shape, apply(params, x).shape)
        loss = lambda p: -apply(p, x)[:, 0].mean()
        for make in (optimizers.sgd(0.1), optimizers.momentum(0.1, 0.9), optimizers.nesterov(0.1, 0.9),
                     optimizers.adagrad(0.1), optimizers.rmsprop(0.01), optimizers.rmsprop_momentum(0.01),
                     optimizers.adam(0.01), optimizers.adamax(0.01), optimizers.sm3(0.1)):
            start, update, get = make
            state = start(params)
            step = jax.jit(lambda i, s: update(i, jax.grad(loss)(get(s)), s))
            for i in range(3):
                state = step(i, state)
            assert loss(get(state)) < loss(params)
            packed = optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state))
            assert jax.tree.structure(packed) == jax.tree.structure(state)
        """
    )
    assert done.stdout == "(2, 3) (2, 3)\n"


EXAMPLE_LIBRARIES = """
import json
import jax, jax.numpy as jnp, numpy as np
from jax.example_libraries import optimizers, stax
p = {"w": jnp.array([[1.0, -2.0], [0.5, 3.0]]), "b": jnp.array([0.3, 0.1]), "c": jnp.float32(0.7)}
f = lambda p: jnp.sum((p["w"] @ jnp.array([1.0, 2.0]) + p["b"]) ** 2) + (p["c"] - 2) ** 2
out = []
for name, args in dict(sgd=(0.01,), momentum=(0.01, 0.9), nesterov=(0.01, 0.9), adagrad=(0.1,), rmsprop=(0.01,),
                       rmsprop_momentum=(0.01,), adam=(optimizers.exponential_decay(0.1, 2, 0.5),),
                       adamax=(optimizers.polynomial_decay(0.1, 5, 0.01),), sm3=(0.1,)).items():
    init, update, get = getattr(optimizers, name)(*args)
    s = init(p)
    for i in range(4):
        s = update(i, optimizers.clip_grads(jax.grad(f)(get(s)), 5.0), s)
    out.append(jax.tree.leaves(get(s)))
init, apply = stax.serial(stax.FanOut(2), stax.parallel(stax.Conv(2, (2, 2), padding="SAME"), stax.Identity),
                          stax.FanInConcat(), stax.BatchNorm(), stax.AvgPool((2, 2)), stax.Flatten, stax.Dense(2))
shape, params = init(jax.random.PRNGKey(1), (3, 4, 4, 2))
out.append([*jax.tree.leaves(params), apply(params, jax.random.normal(jax.random.PRNGKey(2), (3, 4, 4, 2)))])
print(json.dumps([[np.asarray(x).tolist() for x in group] for group in out]))
"""


def test_libraries_of_examples_give_the_numbers_of_jax():
    pytest.importorskip("jax")
    theirs = json.loads(run("-c", EXAMPLE_LIBRARIES, JAX_PLATFORMS="cpu").stdout)
    ours = json.loads(as_jax(EXAMPLE_LIBRARIES).stdout)
    assert len(theirs) == len(ours) == 10
    for a, b in zip(theirs, ours):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_allclose(y, x, rtol=2e-5, atol=2e-6)


SPARSE = """
import json
import jax, jax.numpy as jnp, numpy as np
from jax.experimental.sparse import BCOO
m = jnp.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
s = BCOO.fromdense(m)
v, w = jnp.array([1.0, 2.0, 3.0]), jnp.ones((3, 2))
t = BCOO((jnp.array([1.0, 2.0, 5.0]), jnp.array([[0, 1], [0, 1], [2, 3]])), shape=(2, 3))  # twice, and outside
out = [s.todense(), s @ v, s @ w, s.T.todense(), jnp.ones(2) @ s, (2 * s).todense(), t.todense(), t @ v]
out += [jax.jit(lambda s, v: s @ v)(s, v), jax.grad(lambda v: ((s @ v) ** 2).sum())(v), (s + s).todense()]
out += [jax.grad(lambda d: (BCOO((d, s.indices), shape=s.shape) @ v).sum())(s.data), s.nse, s.sum()]
print(json.dumps([np.asarray(x).tolist() for x in out]))
"""


def test_sparse_arrays_give_the_numbers_of_jax():
    pytest.importorskip("jax")
    theirs = json.loads(run("-c", SPARSE, JAX_PLATFORMS="cpu").stdout)
    assert theirs == json.loads(as_jax(SPARSE).stdout)


def test_derivatives_are_checked():
    done = as_jax(
        """
        import jax, jax.numpy as jnp
        from jax.test_util import check_grads
        check_grads(lambda x, y: jnp.sin(x) * y**2, (1.0, 2.0), order=2)

        @jax.custom_jvp
        def wrong(x):
            return x**2
        wrong.defjvp(lambda p, t: (wrong(*p), 3 * p[0] * t[0]))
        for modes in (["fwd"], ["rev"]):
            try:
                check_grads(wrong, (1.0,), order=1, modes=modes)
            except AssertionError:
                print("found")
        """
    )
    assert done.stdout == "found\nfound\n"
