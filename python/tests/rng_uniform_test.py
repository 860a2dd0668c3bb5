"""lax.rng_uniform: numbers of the process's own generator. Where they lie, how they are spread, that each call gives
others wherever it stands, their derivatives, and what JAX refuses."""

import os
import subprocess
import sys

os.environ["WEFT_NUM_CPU_DEVICES"] = "4"

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import lax

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "int4", "uint2")


def drawn(low, high, dtype, n=20000):
    return lax.rng_uniform(wnp.asarray(low).astype(dtype), wnp.asarray(high).astype(dtype), (n,))


def compiled(low, high, dtype, n=20000):
    f = weft.jit(lambda a, b: lax.rng_uniform(a, b, (n,)))
    return f(wnp.asarray(low).astype(dtype), wnp.asarray(high).astype(dtype))


@pytest.mark.parametrize("draw", [drawn, compiled])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("low, high", [(0, 1), (-3, 5), (100, 101), (-1e4, 1e4)])
def test_floats(draw, dtype, low, high):
    x = draw(low, high, dtype)
    assert (x.dtype, x.shape) == (dtype, (20000,))
    x = np.asarray(x).astype("float64")
    assert low <= x.min() and x.max() < high
    # Kolmogorov's bound at one in 10^6, and half the distance of neighbouring numbers.
    spacing = float(wnp.finfo(dtype).eps) * max(abs(low), abs(high)) / (high - low)
    places = (np.arange(20000) + 0.5) / 20000
    assert np.abs(np.sort((x - low) / (high - low)) - places).max() < 2.7 / np.sqrt(20000) + spacing


@pytest.mark.parametrize("draw", [drawn, compiled])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(draw, dtype):
    info = wnp.iinfo(dtype)
    low, high = max(-3, info.min), min(4, info.max)
    x = np.asarray(draw(low, high, dtype)).astype("int64")
    assert str(draw(low, high, dtype).dtype) == dtype
    counts = np.bincount(x - low, minlength=high - low)
    assert len(counts) == high - low and np.abs(counts - counts.mean()).max() < 6 * np.sqrt(20000 / (high - low))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64", "int16"])
def test_all_integers(dtype):
    info = np.iinfo(dtype)
    x = np.asarray(lax.rng_uniform(info.min, np.array(info.max, dtype), (20000,)) if dtype == "int32" else
                   lax.rng_uniform(np.array(info.min, dtype), np.array(info.max, dtype), (20000,)))  # fmt: skip
    share = (x.astype("float64") - float(info.min)) / (float(info.max) - float(info.min))
    places = (np.arange(20000) + 0.5) / 20000
    assert np.abs(np.sort(share) - places).max() < 2.7 / np.sqrt(20000)


def test_the_ends():
    """Neighbours: all that is drawn is the lower one. Differences that are beyond the dtype."""
    one = np.float32(1)
    x = lax.rng_uniform(one, np.nextafter(one, np.float32(2)), (5000,))
    np.testing.assert_array_equal(x, 1)
    most = np.finfo("float32").max
    x = np.asarray(lax.rng_uniform(-most, most, (5000,)))
    assert np.isfinite(x).all() and (x < most).all() and abs((x / most).mean()) < 0.05
    for n in (np.int32(7), np.uint8(255)):
        np.testing.assert_array_equal(lax.rng_uniform(n - type(n)(1), n, (50,)), n - type(n)(1))
    np.testing.assert_array_equal(lax.rng_uniform(2.0, 2.0, (50,)), 2.0)


def test_each_call_gives_others():
    f = lambda: lax.rng_uniform(0.0, 1.0, (4,))
    g = weft.jit(lambda: (f(), f()))
    seen = [f(), f(), weft.jit(f)(), *g(), *g(), *lax.scan(lambda c, _: (c, f()), 0, None, length=3)[1]]
    seen += [*weft.vmap(lambda a: lax.rng_uniform(a, 1.0, (4,)))(wnp.zeros(3)), lax.cond(True, f, f)]
    seen += [*lax.map(lambda a: lax.rng_uniform(a, 1.0, (4,)), wnp.zeros(2))]
    assert len({tuple(map(float, x)) for x in seen}) == len(seen) == 16
    mesh = weft.make_mesh((4,), ("i",))
    over = weft.shard_map(
        lambda a: lax.rng_uniform(a[0], 1.0, (2,)), mesh=mesh, in_specs=weft.P("i"), out_specs=weft.P("i")
    )
    assert len(set(map(float, weft.jit(over)(wnp.zeros(4))))) == 8
    # As under JAX: all batch elements share what depends on none of them.
    shared = weft.vmap(lambda a: a + f())(wnp.zeros(2))
    np.testing.assert_array_equal(shared[0], shared[1])


def test_threads_get_others():
    import concurrent.futures

    f = weft.jit(lambda: lax.rng_uniform(0, 2**30, ()))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: int(f()), range(200)))) == 200


def test_runs_are_alike():
    """The state begins anew in each process: what it draws in the same order is the same, compiled and not."""
    code = "import weft; f = {}; print([*map(float, [*f(), *f()])])".format
    plain, compiled = (
        "lambda: weft.lax.rng_uniform(0.0, 1.0, (2,))",
        "weft.jit(lambda: weft.lax.rng_uniform(0.0, 1.0, (2,)))",
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    runs = [
        subprocess.run([sys.executable, "-c", code(f)], capture_output=True, text=True, env=environment, timeout=300)
        for f in (plain, plain, compiled)
    ]
    assert all(run.returncode == 0 for run in runs), runs[0].stderr
    assert runs[0].stdout == runs[1].stdout == runs[2].stdout != ""


def test_derivatives():
    """Those of a + u (b - a)."""

    def f(a, b):
        x = lax.rng_uniform(a, b, (3,))
        return x.sum(), x

    for g in (weft.value_and_grad(f, (0, 1), has_aux=True), weft.jit(weft.value_and_grad(f, (0, 1), has_aux=True))):
        (_, x), (by_a, by_b) = g(2.0, 6.0)
        share = (np.asarray(x) - 2) / 4
        np.testing.assert_allclose([by_a, by_b], [(1 - share).sum(), share.sum()], rtol=1e-5)
    (x, dx) = weft.jvp(lambda a: lax.rng_uniform(a, 6.0, (3,)), (2.0,), (1.0,))
    np.testing.assert_allclose(dx, 1 - (np.asarray(x) - 2) / 4, rtol=1e-5)
    assert float(weft.grad(lambda a: a * lax.rng_uniform(1.0, 2.0, ()))(3.0)) != 0


def test_types():
    jax = pytest.importorskip("jax")
    for a, b in ((0.0, 1.0), (np.float32(0), 1.0), (0.0, np.float32(1)), (0, 3), (np.int32(0), 3)):
        for shape in ((), (3,), [2, 0]):
            mine = weft.eval_shape(lambda: lax.rng_uniform(a, b, shape))  # noqa: B023
            theirs = jax.eval_shape(lambda: jax.lax.rng_uniform(a, b, shape))  # noqa: B023
            assert (mine.shape, str(mine.dtype), mine.weak_type) == (theirs.shape, str(theirs.dtype), theirs.weak_type)
    value = lax.rng_uniform(0.0, 1.0, (2,))
    assert value.weak_type and not lax.rng_uniform(np.float32(0), 1.0, (2,)).weak_type


def test_what_does_not_fit():
    jax = pytest.importorskip("jax")
    ones = np.ones(2, "float32")
    for arguments, kind, message in (
        ((0, 1.0, (3,)), ValueError, "must have one dtype, got int32 and float32"),
        ((np.float16(0), 1.0, (3,)), ValueError, "must have one dtype, got float16 and float32"),
        ((ones, ones, (2,)), ValueError, r"must be numbers, got arrays of shapes \(2,\) and \(2,\)"),
        ((0.0, ones, (2,)), ValueError, r"must be numbers, got arrays of shapes \(\) and \(2,\)"),
        ((None, 1.0, (2,)), TypeError, "None"),
        (("a", 1.0, (2,)), TypeError, "'a'"),
    ):
        with pytest.raises(kind, match=message):
            lax.rng_uniform(*arguments)
        with pytest.raises(kind):
            jax.lax.rng_uniform(*arguments)
    for dtype in ("bool", "complex64", "float8_e4m3fn"):  # at which JAX's process ends
        with pytest.raises(TypeError, match=f"integers, or floats of 16 bits or more, got {dtype}"):
            drawn(0, 1, dtype)
    with pytest.raises(ValueError, match="negative size"):
        lax.rng_uniform(0.0, 1.0, (-3,))
