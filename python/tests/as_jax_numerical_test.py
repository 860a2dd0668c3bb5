"""What JAX's numerical tests ask of weft.as_jax: variables of the environment, devices, ufuncs, choices of algorithms,
tolerances, dtypes of private modules."""

import os
import subprocess
import sys
import textwrap


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
