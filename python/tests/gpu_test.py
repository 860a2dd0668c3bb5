"""Programs for GPUs, from user functions: their kernels, their errors, and what the kernels compute."""

import os
import re

os.environ["WEFT_NUM_CPU_DEVICES"] = "4"

import numpy as np
import pytest

import weft
import weft.numpy as wnp

TARGETS = ["cuda:sm_80", "cuda:sm_90a"]


def kernels(lowered):
    """The kernel steps of the schedule."""
    return [line for line in lowered.stage("schedule").splitlines() if ": kernel" in line]


def softmax(x):
    e = wnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x, scale, bias):
    centred = x - x.mean(-1, keepdims=True)
    return centred / wnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + bias


def rms_norm(x, scale):
    return x * (1 / wnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)) * scale


def gelu(x, y):
    return 0.5 * x * (1 + wnp.tanh(0.7978845608 * (x + 0.044715 * x**3))) + y


RNG = np.random.default_rng(0)


def normal(*shape, dtype="float32"):
    return wnp.asarray(RNG.normal(size=shape).astype("float32")).astype(dtype)


PROGRAMS = {
    "fused element-wise": (gelu, lambda: (normal(64, 96), normal(64, 96))),
    "softmax, a warp a row": (softmax, lambda: (normal(9, 320),)),
    "softmax, a block a row": (softmax, lambda: (normal(3, 4096),)),
    "softmax, rows of an odd size": (softmax, lambda: (normal(5, 333),)),
    "softmax down columns": (lambda x: softmax(x.T).T, lambda: (normal(40, 70),)),
    "layer norm": (layer_norm, lambda: (normal(6, 768), normal(768), normal(768))),
    "layer norm in bfloat16": (
        layer_norm,
        lambda: tuple(normal(*s, dtype="bfloat16") for s in ((6, 768), (768,), (768,))),
    ),
    "rms norm": (rms_norm, lambda: (normal(6, 1536), normal(1536))),
    "row sums": (lambda x: x.sum(1), lambda: (normal(33, 640),)),
    "column sums": (lambda x: x.sum(0), lambda: (normal(500, 48),)),
    "the largest of rows": (lambda x: wnp.argmax(x * x - x, 1), lambda: (normal(33, 640),)),
    "the smallest of columns": (lambda x: wnp.argmin(x, 0), lambda: (normal(500, 48),)),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_kernel_computes_what_the_cpu_does(name, target):
    f, make = PROGRAMS[name]
    args = make()
    lowered = weft.jit(f).lower(*args, target=target)
    assert len(kernels(lowered)) == 1, lowered.stage("schedule")
    got, want = lowered.emulate(*args), weft.jit(f)(*args)
    assert got.dtype == want.dtype and got.shape == want.shape
    got, want = np.asarray(got.astype("float32")), np.asarray(want.astype("float32"))
    scale = 0.02 if "bfloat16" in name else 3e-6
    np.testing.assert_allclose(got, want, rtol=scale, atol=scale * max(1, np.abs(want).max()))


def test_the_ptx_is_for_the_target_and_moves_sixteen_bytes_at_a_time():
    x = normal(64, 4096)
    for target in TARGETS:
        ptx = weft.jit(softmax).lower(x, target=target).stage("ptx")
        assert f".target {target[5:]}" in ptx
        assert ptx.count(".entry") == 1
        assert "ld.global.nc.v4.f32" in ptx and "st.global.v4.f32" in ptx
        assert ".local" not in ptx
    half = weft.jit(lambda x: x * 2 + 1).lower(normal(1 << 16, dtype="bfloat16"), target="cuda:sm_90a").stage("ptx")
    assert "ld.global.nc.v4" in half and "st.global.v4" in half


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool"])
def test_arrays_of_bytes_are_moved_sixteen_at_a_time(dtype):
    """Of arrays with an end of their own, of rows, of rows that are reduced; eight where no more fit."""

    def accesses(f, *args):
        ptx = weft.jit(f).lower(*args, target="cuda:sm_90a").stage("ptx")
        assert ".local" not in ptx
        return set(re.findall(r"(?:ld|st)\.global\S*", ptx))

    shape = lambda *sizes: weft.ShapeDtype(sizes, dtype)
    combined = lambda x, y: wnp.where(x > y, x, y)
    wide = {"ld.global.nc.v4.u32", "st.global.v4.u32"}
    assert accesses(combined, shape(512, 4096), shape(512, 4096)) == wide
    assert accesses(combined, shape(512, 4096), shape(4096)) == wide
    assert accesses(combined, shape(100003), shape(100003)) == wide | {"ld.global.nc.u8", "st.global.u8"}
    assert accesses(lambda x: x.max(1), shape(4096, 4096)) == {"ld.global.nc.v4.u32", "st.global.u8"}
    assert accesses(combined, shape(512, 1000), shape(1000)) == {"ld.global.nc.v2.u32", "st.global.v2.u32"}
    # Beside wider elements, as many as those have in 16 bytes.
    widened = accesses(lambda x: x.astype("float32"), shape(1 << 16))
    assert widened == {"ld.global.nc.u32", "st.global.v4.f32"}


def test_bytes_are_computed_as_numpy_does():
    rng = np.random.default_rng(5)
    x, y = (rng.integers(0, 256, size=(37, 208)).astype("uint8") for _ in range(2))

    def f(x, y):
        return x * y + 3, (x - y).astype("int8") >> 1, x > y, (x ^ y).max(0), x.min(1), x[:, ::-1]

    got = weft.jit(f).lower(x, y, target="cuda:sm_90a").emulate(x, y)
    for g, w in zip(got, f(x, y), strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint64", "bool"])
@pytest.mark.parametrize("axis", [0, 1, 2, None])
def test_places_of_extremes_are_numpys(dtype, axis):
    x = np.random.default_rng(3).integers(0, 9, size=(7, 41, 24)).astype(dtype)
    if dtype.startswith("float"):
        x[2, 30, 5] = x[2, 31, 5] = x[5, 30, 9] = np.nan
    f = lambda x: (wnp.argmax(x, axis), wnp.argmin(x, axis), weft.vmap(wnp.argmax)(x))
    got = weft.jit(f).lower(x, target="cuda:sm_90a").emulate(x)
    np.testing.assert_array_equal(got[0], x.argmax(axis))
    np.testing.assert_array_equal(got[1], x.argmin(axis))
    np.testing.assert_array_equal(got[2], x.reshape(7, -1).argmax(1))


WORDS = {"float16": "uint16", "bfloat16": "uint16", "float32": "uint32", "float64": "uint64"}


@pytest.mark.parametrize("dtype", WORDS)
def test_neighbours_of_numbers(dtype, monkeypatch):
    """Of all numbers of 16 bits; of wider ones those whose other bits are zero."""
    monkeypatch.setenv("WEFT_LIBDEVICE", "none")
    word = np.dtype(WORDS[dtype])
    bits = np.arange(1 << 16).astype(word) << np.array(8 * word.itemsize - 16, word)
    x = weft.lax.bitcast_convert_type(wnp.asarray(bits), dtype)
    values = np.asarray(x.astype("float64"))
    # NumPy has no bfloat16, and of float16 it does not give the second number where both are zeros. All numbers from
    # the least to the greatest, with one zero:
    negative, positive = bits[values < 0], bits[values > 0]
    line = np.concatenate([negative[::-1], [0], positive])
    place = {int(b): i for i, b in enumerate(line)}

    def neighbours(goal, goal_bits):
        if word.itemsize > 2:
            return np.nextafter(np.asarray(x), np.array(goal, dtype)).view(word)
        out = bits.copy()
        for k in np.flatnonzero(~np.isnan(values) & ~np.isnan(goal)):
            at = place[int(bits[k])] if values[k] else len(negative)
            out[k] = goal_bits if values[k] == goal else line[at + (1 if values[k] < goal else -1)]
            if out[k] == 0 and values[k] < 0 and values[k] != goal:
                out[k] = 0x8000
        return out

    f = weft.jit(wnp.nextafter)
    for towards in (np.inf, -np.inf, 0.0, -0.0, 1.0, np.nan):
        goal = wnp.full((1 << 16,), towards, dtype)
        want = neighbours(towards, np.asarray(weft.lax.bitcast_convert_type(goal, word.name))[0])
        for got in (f.lower(x, goal, target="cuda:sm_80").emulate(x, goal), f(x, goal)):
            nan = np.isnan(np.asarray(got.astype("float64")))
            np.testing.assert_array_equal(nan, np.isnan(values) | np.isnan(towards))
            got = np.asarray(weft.lax.bitcast_convert_type(got, word.name))
            np.testing.assert_array_equal(got[~nan], want[~nan])


def test_several_kernels_are_one_module():
    def f(x, y):
        return softmax(x).sum(), (softmax(y.T) * 2).max(0)

    ptx = weft.jit(f).lower(normal(8, 512), normal(64, 64), target="cuda:sm_90a").stage("ptx")
    assert ptx.count(".entry") > 1 and ptx.count(".version") == 1


def test_products_are_library_calls():
    def mlp(x, w, v):
        return wnp.maximum(x @ w, 0) @ v

    args = normal(16, 24), normal(24, 32), normal(32, 8)
    lowered = weft.jit(mlp).lower(*args, target="cuda:sm_90a")
    steps = [line.split(" (")[0] for line in lowered.stage("schedule").splitlines() if line[:1].isdigit()]
    assert steps == ["0: cublasLt matmul", "1: kernel k0", "2: cublasLt matmul"]
    np.testing.assert_allclose(lowered.emulate(*args), mlp(*map(np.asarray, args)), rtol=1e-5, atol=1e-5)


def test_a_gradient_compiles_like_any_program():
    loss = weft.value_and_grad(lambda w, x: wnp.log(softmax(x @ w)[:, 0]).mean() * -1)
    w, x = normal(12, 7), normal(20, 12)
    value, gradient = weft.jit(loss).lower(w, x, target="cuda:sm_90a").emulate(w, x)
    want = weft.jit(loss)(w, x)
    np.testing.assert_allclose(value, want[0], rtol=1e-5)
    np.testing.assert_allclose(gradient, want[1], rtol=1e-4, atol=1e-6)


def test_constants_that_a_function_captured():
    table = normal(300)
    lowered = weft.jit(lambda x: x * table + table[::-1]).lower(table, target="cuda:sm_90a")
    t = np.asarray(table)
    np.testing.assert_allclose(lowered.emulate(table), t * t + t[::-1], rtol=1e-6)


@pytest.mark.parametrize(
    "f, name",
    [
        (lambda x: wnp.sort(x), "sort"),
        (lambda x: wnp.linalg.cholesky(wnp.outer(x, x) + wnp.eye(4)), "cholesky"),
        (lambda x: weft.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x), "while"),
        (lambda x: weft.cond(x[0] > 0, lambda: x, lambda: -x), "cond"),
        (lambda x: weft.scipy.special.digamma(x), "digamma"),
        (lambda x: wnp.cumsum(x), "cumsum"),
    ],
)
def test_what_has_no_gpu_code_says_so_and_where(f, name):
    lowered = weft.jit(f).lower(wnp.ones(4), target="cuda:sm_90a")
    with pytest.raises(NotImplementedError, match=f"^{name}: has no GPU code") as error:
        lowered.stage("ptx")
    assert "gpu_test.py" in str(error.value)


def test_programs_over_a_mesh_are_refused():
    mesh = weft.make_mesh((4,), ("x",))
    rows = weft.NamedSharding(mesh, weft.P("x"))
    x, whole = np.ones((8, 4), np.float32), weft.ShapeDtype((8, 4), "float32")
    cut = weft.device_put(x, rows)
    f = weft.jit(lambda table, y: table["x"] + y)
    message = (
        r"^lower: argument table\['x'\] lies on 4 devices as NamedSharding\(.*\); a program for cuda:sm_90a is for "
        r"one, programs over meshes have no GPU code yet[^$]*gpu_test\.py:\d+"
    )
    with pytest.raises(NotImplementedError, match=message):
        f.lower({"x": cut}, x, target="cuda:sm_90a")
    f.lower({"x": cut}, x).compile()  # for CPUs
    assert ".entry" in f.lower({"x": whole}, whole, target="cuda:sm_90a").stage("ptx")

    constrained = lambda x: weft.with_sharding_constraint(x * 2, rows) + 1
    mapped = lambda x: weft.shard_map(lambda b: b - weft.lax.psum(b, "x"), mesh, weft.P("x"), weft.P("x"))(x)
    for g, name in [
        (weft.jit(constrained), "sharding_constraint"),
        (weft.jit(lambda x: weft.checkpoint(constrained)(x)), "sharding_constraint"),
        (weft.jit(lambda x: x * 2, in_shardings=rows), "sharding_constraint"),
        (weft.jit(mapped), "spmd"),
    ]:
        lowered = g.lower(whole, target="cuda:sm_80")
        says = rf"^{name}: is for 4 devices; a program for a GPU is for one"
        for method, argument in ("stage", "ptx"), ("emulate", x), ("export", os.devnull):
            with pytest.raises(NotImplementedError, match=says):
                getattr(lowered, method)(argument)

    # One device is no mesh.
    alone = weft.NamedSharding(weft.make_mesh((1,), ("x",), devices=weft.devices()[:1]), weft.P("x"))
    g = weft.jit(lambda x: weft.with_sharding_constraint(x * 2, alone) + 1)
    lowered = g.lower(weft.device_put(x, alone), target="cuda:sm_80")
    np.testing.assert_array_equal(lowered.emulate(x), 2 * x + 1)


def test_bad_targets_and_stages():
    f = weft.jit(lambda x: x + 1)
    for target, message in [
        ("cuda:sm_70", "there is no target"),
        ("tpu", "there is no target"),
        ("cuda sm_90a\nsm_count: many", "line 2 .* no number"),
        ("cuda sm_90a\ncores: 4", "no such key"),
        ("cuda sm_20\n", "expected .cuda sm_80"),
    ]:
        with pytest.raises(ValueError, match=message):
            f.lower(1.0, target=target)
    with pytest.raises(ValueError, match="there is no stage"):
        f.lower(1.0, target="cuda:sm_80").stage("asm")
    with pytest.raises(NotImplementedError, match="do not run in this process"):
        f.lower(1.0, target="cuda:sm_80").compile()
    with pytest.raises(ValueError, match="for a CPU"):
        f.lower(1.0).emulate(1.0)
    with pytest.raises(TypeError, match=r"expected|compiled for"):
        f.lower(1.0, target="cuda:sm_80").emulate(wnp.ones(3))
    with pytest.raises(ValueError, match="fixed sizes"):
        f.lower(weft.ShapeDtype(("n",), "float32"), target="cuda:sm_80").stage("ptx")


def test_a_description_changes_the_plan():
    f = weft.jit(lambda x: x.sum(1))
    x = normal(64, 256)
    large = f.lower(x, target="cuda:sm_90a").stage("schedule")
    small = f.lower(x, target="cuda sm_90a\nsm_count: 4\nhbm_gb_per_s: 100\n").stage("schedule")
    assert "132 multiprocessors" in large and "4 multiprocessors, 100 GB/s" in small
    assert large.split("k0:")[1] != small.split("k0:")[1]


def test_an_argument_called_target_is_the_functions_own():
    f = weft.jit(lambda x, target: x - target)
    assert f.lower(wnp.ones(2), target=wnp.ones(2)).target is None


def test_a_bundle_holds_what_the_function_captured(tmp_path):
    table = normal(300)
    f = weft.jit(lambda x: x * table)
    for target in (None, "cuda:sm_90a"):
        lowered = f.lower(table, target=target) if target else f.lower(table)
        lowered.export(tmp_path / "f.weftb")
        data = (tmp_path / "f.weftb").read_bytes()
        assert data.startswith(b"weft bundle\n") and np.asarray(table).tobytes() in data
        assert (b".target sm_90a" in data) == (target is not None)
    with pytest.raises(ValueError, match="fixed sizes"):
        weft.jit(lambda x: x + 1).lower(weft.ShapeDtype(("n",), "float32")).export(tmp_path / "g.weftb")


def test_a_fixed_order_of_sums_is_for_cpus():
    x, w = np.ones((4, 8), np.float32), np.ones((8, 4), np.float32)
    fixed = weft.jit(lambda x, w: x @ w, deterministic=True).lower(x, w).as_text()
    with pytest.raises(NotImplementedError, match=r"contract: .*deterministic=True is for CPUs"):
        weft.jit(weft.parse_ir(fixed)).lower(x, w, target="cuda:sm_80").stage("schedule")


def test_an_error_names_its_own_line():
    """Two products, of which the second is laid out in a way that cuBLASLt has no words for."""

    def f(x, y, z):
        first = x @ y
        second = wnp.einsum("abk,kn->ban", z, y)
        return first.sum() + second

    args = [np.ones(shape, np.float32) for shape in ((4, 6), (6, 3), (3, 5, 6))]
    line = f.__code__.co_firstlineno + 2
    with pytest.raises(NotImplementedError, match=rf"contract: cuBLASLt cannot read[^$]*gpu_test\.py:{line}\b"):
        weft.jit(f).lower(*args, target="cuda:sm_90a").stage("schedule")

    def g(x, y):
        z = wnp.tanh(x)
        return z + wnp.tanh(y)

    args = [np.ones(4, dtype) for dtype in (np.float32, np.complex64)]
    line = g.__code__.co_firstlineno + 2
    with pytest.raises(NotImplementedError, match=rf"tanh: has no GPU code for c64[^$]*gpu_test\.py:{line}\b"):
        weft.jit(g).lower(*args, target="cuda:sm_90a").stage("ptx")
