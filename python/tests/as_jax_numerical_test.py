"""What JAX's numerical tests ask of weft.as_jax: variables of the environment, devices, ufuncs, choices of algorithms,
tolerances, dtypes of private modules."""

import os
import subprocess
import sys
import textwrap

from as_jax_both import both, lines


def run(*arguments, **environment):
    """Python with these arguments."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done


def as_jax(code, **environment):
    return run("-m", "weft.as_jax", "-c", textwrap.dedent(code), **environment)


def test_the_number_of_devices():
    done = as_jax(
        """
        import jax
        jax.config.update("jax_num_cpu_devices", 2)
        print(jax.device_count(), jax.config.jax_num_cpu_devices, jax.config.read("jax_num_cpu_devices"))
        jax.config.update("jax_num_cpu_devices", 2)
        try:
            jax.config.update("jax_num_cpu_devices", 3)
        except RuntimeError as error:
            print(str(error).splitlines()[0])
        print(jax.config.jax_num_cpu_devices)
        """
    )
    assert done.stdout.splitlines() == [
        "2 2 2",
        "jax_num_cpu_devices config should be updated before backends are initialized i.e. before any JAX operation "
        "is executed: the devices have been counted already",
        "2",
    ]


def test_the_platform_is_named_before_devices_are_counted():
    """The variable of the environment, the option and the question leave the number of devices open."""
    for code in ("", "jax.default_backend()", "jax.config.update('jax_platforms', 'cpu')", "jax.config.jax_platforms"):
        done = as_jax(
            f"import jax; {code or 'pass'}; jax.config.update('jax_num_cpu_devices', 3); print(jax.device_count())",
            JAX_PLATFORMS="cpu",
        )
        assert done.stdout == "3\n", code


def test_ufuncs_and_choices_of_algorithms():
    as_jax(
        """
        import jax, jax.numpy as jnp, numpy as np
        from jax import lax
        assert isinstance(jnp.add, jnp.ufunc) and jnp.add.reduce(jnp.arange(4)) == 6
        assert jnp.add(1, 2, where=None) == 3 and jnp.add.nin == 2 and not isinstance(jnp.sin, jnp.ufunc)
        try:
            jnp.add(1, 2, where=jnp.array(True))
        except NotImplementedError as error:
            assert "'where'" in str(error)
        else:
            raise AssertionError("where= is taken")
        x = jnp.array([[2.0, 1.0], [1.0, 3.0]])
        for algorithm in lax.linalg.SvdAlgorithm:
            np.testing.assert_allclose(lax.linalg.svd(x, algorithm=algorithm)[1], np.linalg.svd(x)[1], rtol=1e-5)
        lax.linalg.eigh(x, implementation=lax.linalg.EighImplementation.QR)
        lax.linalg.eig(x, implementation=lax.linalg.EigImplementation.LAPACK)
        assert lax.exp(1.0, accuracy=lax.AccuracyMode.HIGHEST) == lax.exp(1.0, accuracy=lax.Tolerance(rtol=1e-3))
        for precision in (lax.DotAlgorithmPreset.F32_F32_F32, lax.DotAlgorithm(np.float32, np.float32, np.float32)):
            lax.dot(x, x, precision=precision)
        for given in ({"rtol": -1.0}, {}):
            try:
                lax.Tolerance(**given)
            except ValueError:
                continue
            raise AssertionError(given)
        np.testing.assert_allclose(jnp.linalg.slogdet(x, method="qr")[1], np.log(5), rtol=1e-5)
        """
    )


def test_tolerances_of_derivatives():
    as_jax(
        """
        import jax.numpy as jnp, numpy as np, jax
        from jax.test_util import check_grads
        x = jnp.array([0.5, 1.5])
        for modes in (["fwd"], ["rev"], ["lin"], ["fwd", "rev", "lin"]):
            check_grads(jnp.sin, (x,), 2, modes, atol={np.float32: 1e-2}, rtol={jnp.float32: 1e-2})
            check_grads(lambda x: jnp.log(-jnp.expm1(-x)), (jnp.array([0.08, 3.0]),), 1, modes)
        wrong = jax.custom_jvp(jnp.sin)
        wrong.defjvps(lambda t, out, x: 1.1 * jnp.cos(x) * t)
        for modes in (["fwd"], ["rev"], ["lin"]):
            for tolerances in ({}, {"rtol": {np.float64: 1.0}}, {"rtol": 1e-3}):
                try:
                    check_grads(wrong, (x,), 1, modes, **tolerances)
                except AssertionError:
                    continue
                raise SystemExit(f"{modes} {tolerances}")
        check_grads(wrong, (x,), 1, atol={np.float32: 0.2}, rtol={np.float32: 0.2})
        """
    )


DTYPE_RULES = """
import numpy as np, ml_dtypes, jax, jax.numpy as jnp
from jax._src import dtypes
numbers = [*(np.dtype(d) for d in "bool uint8 int16 int64 float16 float32 float64 complex64 complex128".split())]
numbers += [np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.int4)]
for d in numbers:
    kinds = [f"to_{kind}_dtype" for kind in ("inexact", "floating", "complex", "numeric")]
    for name in [*kinds, "canonicalize_dtype", "itemsize_bits"]:
        if (name, str(d)) != ("to_inexact_dtype", "int4") and str(d) != "int4":
            print(d, name, getattr(dtypes, name)(d))
for on in (False, True):
    with jax.enable_x64(on):
        print([str(dtypes.default_types[kind]()) for kind in "biufc"], dtypes.default_float_dtype())
        print([str(dtypes.dtype(x)) for x in (1, 1.0, 1j, True, int, float, np.float16, np.ones(1, "int8"))])
print([dtypes.is_weakly_typed(x) for x in (1, 1.0, True, np.float32(1), jnp.ones(1), jnp.asarray(1.0) * 1, 1j)])
for a in ("int8", "float16", "float32"):
    print([dtypes.safe_to_cast(a, b) for b in ("int32", "bfloat16", "float32", "complex64")])
with jax.numpy_dtype_promotion("standard"):
    for a in (1, 1.0, "int8", "float16", "uint32"):
        for b in (1, 1j, "bfloat16", "int16"):
            make = lambda v: jnp.zeros((), v) if isinstance(v, str) else v
            print(a, b, *dtypes.lattice_result_type(make(a), make(b)))
print(dtypes.canonicalize_value(np.ones(2)).dtype, dtypes.canonicalize_value(1.5))
"""


def test_dtypes_of_private_modules():
    mine, theirs = as_jax(DTYPE_RULES).stdout, run("-c", DTYPE_RULES).stdout
    assert mine.splitlines() == theirs.splitlines()


def test_errors_say_it_in_jax_words_too():
    done = as_jax(
        """
        import jax, jax.numpy as jnp, re
        from jax import lax
        x = jnp.ones((2, 3))
        for f, words in [
            (lambda: x[0, 0, 0], "Too many indices: array is 2-dimensional, but 3 were indexed"),
            (lambda: x["a"], "JAX does not support string indexing"),
            (lambda: x[jnp.ones(3, bool)], "boolean index did not match shape of indexed array"),
            (lambda: jnp.sum(x, (0, 0)), "duplicate value in 'axis': (0, 0)"),
            (lambda: lax.squeeze(x, (5,)), "axis 5 is out of bounds"),
            (lambda: lax.squeeze(x, (1,)), "cannot select an axis to squeeze out which has size not equal to one"),
            (lambda: jnp.zeros(2, 3), "when you meant `jax.numpy.zeros((2, 3))`"),
            (lambda: jnp.zeros((1.0,)), "Shapes must be 1D sequences of concrete values of integer type"),
            (lambda: jnp.argmax(jnp.zeros(0)), "attempt to get argmax of an empty sequence"),
            (lambda: x * x[0, :2], "Incompatible shapes for broadcasting: shapes=[(2, 3), (2,)]"),
            (lambda: jax.jit(jnp.add)(x, x[:, :2]), "add got incompatible shapes for broadcasting: (2, 3), (2, 2)."),
            (lambda: jnp.where(x > 0, x, x[:, :2]), "Incompatible shapes for broadcasting: shapes=[(2, 3), (2, 2)]"),
            (
                lambda: jax.nn.dot_product_attention(jnp.ones((2, 5, 4)), *[jnp.ones((2, 2, 4))] * 2),
                "The number of query heads must be a multiple of key/value heads, but got 5 vs 2",
            ),
            (lambda: x @ x, "contracting dimensions to have the same shape, got (3,) and (2,)."),
            (lambda: x[0].at[:2].set(x), "fewer dimensions: arr_shape=(2, 3) shape=(2,)"),
            (lambda: jnp.broadcast_to(x, (3, 3)), "broadcasting: (2, 3) and requested shape (3, 3)"),
            (lambda: lax.pad(x, x, [(0, 0, 0)] * 2), "padding_value must be a scalar"),
            (lambda: lax.rem(x + 1j, x + 1j), "rem does not accept dtype complex64"),
            (lambda: lax.population_count(x > 0), "population_count does not accept dtype bool"),
            (lambda: lax.cond(None, lambda: 1, lambda: 2), "cond predicate is None"),
            (lambda: lax.scan(lambda c, a: c, 0, x), "scan body output must be a pair"),
            (lambda: lax.scan(lambda c, a: (c, a), 0, 1.0), "scan got value with no leading axis to scan over"),
            (lambda: jnp.vectorize(lambda a: a, signature="(n)->(n)")(x, x), "wrong number of positional arguments"),
            (lambda: jax.random.key(1.5), "PRNG key seed must be an integer"),
            (lambda: jax.random.key(jnp.arange(3)), "PRNGKey accepts a scalar seed"),
            (lambda: jax.random.bits(jax.random.split(jax.random.key(0))), "bits accepts a single key, but was given"),
            (lambda: jax.random.key(0, impl="mt"), 'unrecognized PRNG implementation "mt"'),
            (lambda: jnp.linalg.norm(x[0], "inf"), "Invalid order 'inf' for vector norm."),
            (lambda: x.astype("float8_e4m3fn") + x, "8-bit floats do not support implicit promotion"),
        ]:
            try:
                f()
                print("no error:", words)
            except Exception as error:
                if words not in str(error):
                    print(words, "|", error)
        """
    )
    assert done.stdout == ""


def test_the_default_generator_of_keys():
    done = as_jax(
        """
        import jax, jax.numpy as jnp
        with jax.default_prng_impl("rbg"):
            key = jax.random.PRNGKey(3)
            print(key.tolist(), jax.random.uniform(key, (2,)).tolist(), jax.random.split(key).shape)
            print(jax.random.key(3).dtype.name, jax.jit(lambda k: jax.random.normal(k, (2,)))(key).shape)
        print(jax.random.PRNGKey(3).tolist())
        jax.config.update("jax_default_prng_impl", "unsafe_rbg")
        print(jax.random.key_impl(jax.random.key(0)), jnp.issubdtype(jax.random.key(0).dtype, jax.dtypes.prng_key))
        print(jax.lax.mulhi(jnp.uint32(2**31), jnp.uint32(6)), jax.lax.mulhi(jnp.int32(-(2**30)), jnp.int32(8)))
        """
    )
    assert done.stdout == (
        "[0, 3, 0, 3] [0.7327027320861816, 0.7895294427871704] (2, 4)\nkey<rbg> (2,)\n[0, 3]\nunsafe_rbg True\n3 -2\n"
    )


def test_strict_promotion_does_not_stop_functions_that_convert_themselves():
    done = as_jax(
        """
        import jax, jax.numpy as jnp
        from jax.scipy import linalg, signal
        x, i = jnp.eye(3) * 4, jnp.arange(8)
        with jax.numpy_dtype_promotion("strict"):
            print(linalg.sqrtm(x).real.tolist()[0], signal.detrend(i, type="constant").tolist()[0])
            print(linalg.solve_sylvester(x, x, x).tolist()[0], signal.fftconvolve(i, i).dtype)
            print(jax.scipy.stats.multinomial.logpmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5])) < 0)
            try:
                jnp.promote_types("int32", "float32")
            except jax.dtypes.TypePromotionError:
                print("strict")
        """
    )
    assert done.stdout == "[2.0, 0.0, 0.0] -3.5\n[0.5, 0.0, 0.0] float32\nTrue\nstrict\n"


def test_dtypes_that_no_array_has():
    done = as_jax(
        """
        import numpy as np, jax, jax.numpy as jnp
        from jax._src import dtypes
        print(dtypes._jax_type(np.dtype("int16"), True), dtypes._jax_type(np.dtype(bool), True), len(dtypes._jax_types))
        print([dtypes.itemsize_bits(d) for d in (jnp.float4_e2m1fn, dtypes.float6_e2m3fn, "f2")])
        print(dtypes.result_type(1.0, return_weak_type_flag=True), dtypes.canonicalize_dtype(dtypes.float6_e3m2fn))
        for name in dtypes._float8_dtypes + dtypes._float4_dtypes:
            x = jnp.array([1.0, 2.0], name)
            assert x.dtype == name and (x + x).tolist() == [2.0, 4.0], name
        """
    )
    assert done.stdout == "<class 'int'> bool 28\n[4, 6, 16]\n(dtype('float32'), True) float6_e3m2fn\n"


def test_objects_that_are_arrays_by_a_method():
    done = as_jax(
        """
        import jax.numpy as jnp
        class Mine:
            def __init__(self, x): self.x = jnp.array(x)
            def __jax_array__(self): return self.x
        square = Mine([[1, 2], [3, 4]])
        print(jnp.diag_indices_from(square)[0], jnp.tril_indices_from(square)[0], jnp.triu_indices_from(square)[1])
        print(jnp.roll(square, Mine([1]), 0).tolist(), jnp.roll(Mine([1, 2, 3]), Mine(1)).tolist())
        """
    )
    assert done.stdout == "[0 1] [0 1 1] [0 1 1]\n[[3, 4], [1, 2]] [3, 1, 2]\n"


def test_functions_that_are_converted_keep_what_no_derivative_is_of():
    done = as_jax(
        """
        import jax, jax.numpy as jnp
        counts = []
        def outer(c, s, x):
            converted, captured = jax.closure_convert(lambda y: jnp.sin(c * y * s), x)
            counts.append(len(captured))
            return converted(x, *captured)
        print(jax.grad(outer)(0.5, jnp.float32(2.0), 0.3).round(5), counts.pop())
        print(jax.grad(lambda c: jax.grad(outer, 2)(c, 2.0, 0.3))(0.5).round(5), counts.pop())
        for wrong in (
            lambda: jax.lax.custom_root(lambda x: (x, x), 0.0, lambda f, x: x, lambda f, x: x),
            lambda: jax.scipy.sparse.linalg.cg([[1]], jnp.zeros(1)),
            lambda: jax.jvp(lambda x, y: x * y, (2.0,), ()),
            lambda: jax.linear_transpose(lambda x: 1j * x, 1.0)(1.0),
        ):
            try: wrong()
            except TypeError as e:
                said = ("f() output", "linear operator", "tree structure", "cotangent type")
                print(*[words in str(e) for words in said])
        """
    )
    lines = done.stdout.splitlines()
    # d/dc sin(c y s) and d/dc d/dx of it.
    assert lines[0] == "0.5732 1" and abs(float(lines[1].split()[0]) - 1.73336) < 1e-4
    assert [line.split().index("True") for line in lines[2:]] == [0, 1, 2, 3]


def test_random_keys_as_arrays():
    done = as_jax(
        """
        import jax, jax.numpy as jnp, numpy as np
        mesh = jax.make_mesh((1,), ("x",))
        place = jax.NamedSharding(mesh, jax.P("x"))
        keys = jax.random.split(jax.random.key(3), 4)
        made = jax.make_array_from_callback((4,), place, lambda index: keys[index])
        print((jax.random.key_data(made) == jax.random.key_data(keys)).all(), made.shape)
        keys.delete()
        print(keys._base_array.is_deleted())
        for wrong in (lambda: jax.random.key(1, impl="rbg") + 1, lambda: -jax.random.key(1, impl="rbg")):
            try: wrong()
            except TypeError as e: print("does not accept dtype" in str(e))
        for dtype, bounds in (("int32", (-2**31 - 1, 5)), ("int32", (0, 2**31 + 1)), ("int8", (-1000, 1000))):
            try: print(jax.random.randint(jax.random.key(0), (2,), *bounds, dtype).shape)
            except OverflowError: print("overflow")
        try: jnp.issubdtype(made, jax.dtypes.prng_key)
        except ValueError as e: print("Could not convert Array" in str(e))
        """
    )
    said = done.stdout.split("\n")
    assert said == ["True (4,)", "True", "True", "True", "overflow", "overflow", "(2,)", "True", ""]


def test_ramps_under_strict_promotion():
    done = as_jax(
        """
        import jax, jax.numpy as jnp
        with jax.numpy_dtype_promotion("strict"):
            print(jnp.pad(jnp.array([4.0, 6.0]), (2, 1), mode="linear_ramp", end_values=0).tolist())
        """
    )
    assert done.stdout == "[0.0, 2.0, 4.0, 6.0, 0.0]\n"


def test_capsules_of_dlpack():
    done = as_jax(
        """
        import numpy as np, jax
        from jax._src.lib import _jax
        print(_jax.dlpack_managed_tensor_to_buffer(np.arange(3.0).__dlpack__(), jax.devices()[0], None).tolist())
        bytes_ = np.zeros(64, np.int8)
        start = (2 - bytes_.ctypes.data) % 4
        try: _jax.dlpack_managed_tensor_to_buffer(bytes_[start:][:20].view(np.float32).__dlpack__(), None, None, False)
        except ValueError as e: print("is not aligned to 4 bytes" in str(e))
        print(hasattr(jax.numpy.ones(2), "__cuda_array_interface__"))
        """
    )
    assert done.stdout == "[0.0, 1.0, 2.0]\nTrue\nFalse\n"


def test_steps_of_difference_quotients_are_those_of_jax():
    """eps is how far a function is moved to each side: tests choose it by the rounding of the dtype, here one of 16
    bits, in which a shorter step rounds more than the tolerance."""
    both(
        """
        from jax.test_util import check_grads
        x = np.linspace(-3, 3, 40).reshape(4, 10).astype("float16")
        check_grads(lambda *xs: jnp.concatenate(xs, 1), (x, x + 1, x - 2), 2, ["fwd", "rev"], eps=1.0)
        for wrong in (lambda a: a * 1.1, lambda a: a + 0.2):
            f = jax.custom_jvp(lambda x: x * 2.0)
            f.defjvp(lambda p, t, wrong=wrong: (f(*p), wrong(2.0 * t[0])))
            try:
                check_grads(f, (np.float16([1.0, 2.0]),), 1, eps=1.0)
            except AssertionError:
                out.setdefault("found", []).append(True)
        """
    )


def test_equations_of_sylvester_inside_and_outside_of_jit():
    """One program in both cases: the same digits."""
    as_jax(
        """
        import jax, jax.numpy as jnp, numpy as np
        rng = np.random.default_rng(0)
        for m, n in ((2, 3), (4, 6), (10, 5)):
            a, b, c = (rng.normal(size=s).astype("float32") for s in ((m, m), (n, n), (m, n)))
            solve = jax.scipy.linalg.solve_sylvester
            inside, outside = jax.jit(solve)(a, b, c), solve(a, b, c)
            np.testing.assert_array_equal(inside, outside)
            np.testing.assert_allclose(a @ outside + outside @ b, c, atol=1e-3)
        """
    )


def test_times_of_istft_and_loops_in_python():
    both(
        """
        x = jnp.sin(jnp.arange(96.0)).reshape(3, 32)
        times, signal = jax.scipy.signal.istft(jax.scipy.signal.stft(x, nperseg=8)[2], nperseg=8)
        out["times"] = [list(times.shape), list(signal.shape)]

        def f(a):
            def body(carry, _):
                with jax.enable_x64():
                    y = (carry + a).astype(jnp.int64)
                return carry, (y, y.astype(jnp.int32))
            return lax.scan(body, jnp.int32(2), jnp.arange(40))
        for off in (False, True):
            with jax.disable_jit(off):
                out[f"wide {off}"] = [str(y.dtype) for y in f(3)[1]]
        try:
            jnp.pad(jnp.ones(2), 1, 1)
        except NotImplementedError:
            out["pad"] = True
        """
    )


def test_numbers_of_jax_before_0_5():
    """Bits, splits and what is made of them with threefry_partitionable off are JAX's with that option off."""
    code = """
key = jax.random.key(7)
def draws(key):
    words = jax.random.PRNGKey(3)
    return {
        **{f"bits {n} {dtype}": jax.random.bits(key, (n,), dtype)
           for n in (1, 2, 3, 7) for dtype in ("uint8", "uint16", "uint32")},
        "split": jax.random.key_data(jax.random.split(key, 3)), "split of words": jax.random.split(words, (2, 2)),
        "uniform": jax.random.uniform(key, (3, 3)), "half": jax.random.uniform(key, (5,), "bfloat16").astype("float32"),
        "integers": jax.random.randint(key, (7,), 0, 100), "order": jax.random.permutation(key, 9),
        "folded": jax.random.bits(jax.random.fold_in(key, 5), (3,)), "none": jax.random.bits(key, (0,)),
        "mapped": jax.vmap(lambda k: jax.random.bits(k, (3,)))(jax.random.split(key, 2)),
        "rbg": jax.random.key_data(jax.random.split(jax.random.key(1, impl="rbg"))),
    }
listed = lambda tree: {name: np.asarray(x).tolist() for name, x in tree.items()}
compiled = jax.jit(draws)
with jax.threefry_partitionable(False):
    out["off"], out["compiled"] = listed(draws(key)), listed(compiled(key))
    out["said"] = jax.config.jax_threefry_partitionable
out["on"] = listed(compiled(key))
jax.config.update("jax_threefry_partitionable", False)
out["process"] = listed(compiled(key))
with jax.enable_x64(True):
    out["wide"] = np.asarray(jax.random.bits(key, (3,), "uint64")).tolist()
jax.config.update("jax_threefry_partitionable", True)
"""
    found = both(code)
    assert found["off"] == found["compiled"] == found["process"] != found["on"]


def test_numbers_of_the_process_and_values_as_arrays():
    found = both(
        """
        f = lambda a, b: lax.rng_uniform(a, b, (1000,))
        def drawn(name, call):
            x = np.asarray(call(), "float64")
            out[name] = [bool((x >= -2).all()), bool((x < 3).all()), len(set(x)) > 4, x.shape]
        drawn("eager", lambda: f(-2.0, 3.0))
        drawn("compiled", lambda: jax.jit(f)(-2.0, 3.0))
        drawn("integers", lambda: f(-2, 3))
        drawn("bound", lambda: lax.rng_uniform_p.bind(-2.0, 3.0, shape=(1000,)))
        closed = jax.make_jaxpr(f)(-2.0, 3.0)
        drawn("again", lambda: jax.core.eval_jaxpr(closed.jaxpr, closed.consts, -2.0, 3.0)[0])
        (eqn,) = closed.eqns
        out["equation"] = [eqn.primitive.name, str(closed.out_avals[0]), str(closed.effects)]
        out["types"] = [str(jax.typeof(lax.rng_uniform(*ab, ()))) for ab in ((0.0, 1.0), (0, 1), (np.float32(0), 1.0))]
        lanes = jax.vmap(lambda x: x + f(0.0, 1.0))(jnp.zeros(3))
        out["shared"] = bool((lanes == lanes[0]).all())
        x = jnp.ones(3)
        values = 3, 2.0, True, np.arange(3.0), np.float64(2), jax.random.key(0)
        out["staged"] = [str(jax.typeof(lax.stage(v))) for v in values]
        out["same"] = lax.stage(x) is x
        out["program"] = str(jax.make_jaxpr(lambda x: (lax.stage(x), lax.stage(3)))(x))
        out["slopes"] = [str(jax.grad(lax.stage)(2.0)), np.asarray(jax.vmap(lax.stage)(x)).tolist()]
        try:
            lax.stage(x=3)
        except TypeError as error:
            out["positional"] = str(error)
        """
    )
    assert found["equation"][0] == "rng_uniform" and found["shared"]
    # A value that is known stays known, which JAX's does not.
    code = 'out["taken"] = jax.jit(lambda x: x + 1 if lax.stage(np.arange(3))[1] == 1 else x)(1).tolist()'
    assert lines(code, "-m", "weft.as_jax") == {"taken": 2}


def test_polar_factors_and_products_with_scales():
    found = both(
        """
        from jax._src.tpu.linalg import qdwh as private
        x = np.random.RandomState(0).randn(6, 4).astype("float32")
        for name, more in {"plain": {}, "few": {"max_iterations": 2}, "padded": {"dynamic_shape": (5, 3)}}.items():
            u, h, n, done = lax.linalg.qdwh(x, **more)
            out[name] = [int(n), bool(done), u.shape, h.shape, bool(np.allclose(u @ h, x if name != "padded" else
                         np.where((np.arange(6)[:, None] < 5) & (np.arange(4) < 3), x, 0), atol=1e-5 if done else 9))]
        out["private"] = int(private.qdwh(x)[2])
        rows, columns = (np.random.RandomState(k).randn(3, 8).astype("float32") for k in range(2))
        narrow = [jnp.asarray(v).astype("float8_e4m3fn") for v in (rows, columns.T)]
        scale = jnp.asarray(np.exp2(np.arange(6).reshape(3, 2))).astype("float8_e8m0fnu")
        dot = lambda x, y, s: lax.scaled_dot(x, y, lhs_scale=s, preferred_element_type="float32")
        out["dot"] = np.round(np.asarray(dot(*narrow, scale)), 3).tolist()
        out["equation"] = [e.primitive.name for e in jax.make_jaxpr(dot)(*narrow, scale).eqns][-1]
        out["mapped"] = np.round(np.asarray(jax.vmap(dot, (None, None, 0))(*narrow, scale[None])), 3).tolist()
        out["whole"] = str(jax.typeof(lax.scaled_dot(*narrow)))
        config = jax.nn.get_scaled_dot_general_config("nvfp4")
        types = [str(np.dtype(t)) for t in (config.data_type, config.scale_type)]
        out["config"] = [config.mode, config.block_size, types, config.global_scale.tolist(), config.infer_only]
        out["name"] = [type(config).__name__, hasattr(jax.nn, "BlockScaleConfig")]
        from jax._src.cudnn.scaled_matmul_stablehlo import BlockScaleConfig
        out["class"] = type(config) is BlockScaleConfig
        numbers = ((1,), (1,)), ((), ())
        out["without"] = np.round(np.asarray(jax.nn.scaled_dot_general(rows, columns, numbers)), 3).tolist()
        cube = jax.ShapeDtypeStruct((2, 3, 8), "float8_e4m3fn")
        scales = jax.ShapeDtypeStruct((2, 3, 2), "float8_e8m0fnu")
        out["product"] = str(jax.eval_shape(jax.nn.scaled_matmul, cube, cube, scales, scales))
        """
    )
    assert found["equation"] == "scaled_dot"


def test_types_of_axes_by_their_public_name():
    both(
        """
        import copy, pickle
        kind = jax.sharding.ManualAxisType
        x, y, z = map(frozenset, "xyz")
        one = kind(varying=x, unreduced=y, reduced=z)
        out["shown"] = [repr(one), repr(kind())]
        out["one object"] = [one is kind(varying=x, unreduced=y, reduced=z), pickle.loads(pickle.dumps(one)) is one,
                             copy.deepcopy(one) is one, one.to_ct_mat().to_ct_mat() is one]
        out["others"] = [repr(one.to_ct_mat()), repr(one.update(varying=frozenset())), sorted(one.vur)]
        out["empty"] = [one.empty, kind().empty]
        mesh = jax.sharding.AbstractMesh((2, 2), ("x", "w"), axis_types=(jax.sharding.AxisType.Manual,) * 2)
        out["same"] = sorted(one.invarying(mesh))
        out["of an array"] = jax.typeof(jnp.ones(2)).manual_axis_type is kind()
        t = jax.ShapeDtypeStruct((2,), "float32", manual_axis_type=kind(varying=x))
        out["types"] = [repr(t), t.manual_axis_type is kind(varying=x), repr(t.update(shape=(3,)))]
        try:
            kind(x)
        except TypeError as error:
            out["positional"] = True
        """
    )
