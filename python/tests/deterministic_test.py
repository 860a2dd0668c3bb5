"""jit(deterministic=True): the same bits on one device, on meshes of 2, 4 and 8, in one dimension and in two."""

import os

os.environ["WEFT_NUM_CPU_DEVICES"] = "8"

import pathlib
import subprocess
import sys

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import P

rng = np.random.default_rng(0)
MESHES = [weft.make_mesh((n,), ("x",)) for n in (2, 4, 8)] + [weft.make_mesh((4, 2), ("x", "y"))]


def values(*shape, dtype=np.float32):
    """Of sizes that differ by orders of magnitude, so that every order of summation has other bits."""
    x = rng.standard_normal(shape) * 10.0 ** rng.uniform(-3, 3, shape)
    return (
        (x + 1j * rng.permutation(x.ravel()).reshape(shape)).astype(dtype) if dtype == np.complex64 else x.astype(dtype)
    )


def bits(tree):
    return [np.asarray(leaf).tobytes() for leaf in weft.tree.leaves(tree)]


def on_all_meshes(f, args, specs, **options):
    """The results on one device, and on how many meshes they have other bits."""
    jitted = weft.jit(f, **options)
    one = jitted(*args)
    others = 0
    for mesh in MESHES:
        placed = [weft.device_put(a, weft.NamedSharding(mesh, spec)) for a, spec in zip(args, specs)]
        others += bits(jitted(*placed)) != bits(one)
    return one, others


def mlp(params, x, t):
    def loss(params):
        h = wnp.tanh(x @ params["w"] + params["b"])
        h = (h - h.mean(0)) / wnp.sqrt(h.var(0) + 1e-3)
        scores = h @ params["v"]
        return (weft.nn.logsumexp(scores, axis=1) - wnp.take_along_axis(scores, t[:, None], axis=1)[:, 0]).mean()

    value, gradients = weft.value_and_grad(loss)(params)
    return value, weft.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


MLP = {"w": values(24, 20), "b": values(20), "v": values(20, 10)}

PROGRAMS = {
    "sum": (lambda x: x.sum(), [(64, 5)]),
    "sum of an uneven rest": (lambda x: x.sum(), [(8 * 37, 3)]),
    "sums of columns and rows": (lambda x: (x.sum(0), x.sum(1), x.sum((0, 2)), x.mean((1, 2))), [(32, 6, 7)]),
    "product": (lambda x, w: x.T @ w, [(96, 5), (96, 7)]),
    "product of tensors": (lambda x, w: wnp.einsum("abi,abj->ij", x, w), [(16, 6, 5), (16, 6, 3)]),
    "softmax": (lambda x: weft.nn.softmax(x / 100, axis=0), [(64, 9)]),
    "variance": (lambda x: (x.var(), x.std(0)), [(48, 4)]),
    "loop": (lambda x: weft.fori_loop(0, 4, lambda i, c: c / 2 + x.sum(0) * c.sum(), x.mean(0)), [(64, 3)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_bits_on_every_mesh(name):
    f, shapes = PROGRAMS[name]
    args = [values(*shape) for shape in shapes]
    one, others = on_all_meshes(f, args, [P("x")] * len(args), deterministic=True)
    assert others == 0
    for got, want in zip(weft.tree.leaves(one), weft.tree.leaves(weft.jit(f)(*args))):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-4 * float(np.abs(want).max()))


@pytest.mark.parametrize("dtype", [np.float32, "bfloat16", np.float16, np.complex64])
def test_dtypes(dtype):
    x = values(64, 12, dtype=np.complex64 if dtype == np.complex64 else np.float32)
    x = wnp.asarray(x if dtype != np.float16 else x / 100).astype(dtype)
    _, others = on_all_meshes(lambda x: (x.sum(), x.sum(0), x.T @ x), [x], [P("x")], deterministic=True)
    assert others == 0


@pytest.mark.parametrize("data", [P("x"), P(None)])
def test_a_training_step(data):
    x, t = values(64, 24), rng.integers(0, 10, 64).astype(np.int32)
    _, others = on_all_meshes(mlp, [MLP, x, t], [P(), data, P(*data[:1])], deterministic=True)
    assert others == 0


def test_weights_that_are_cut():
    x, t = values(64, 24), rng.integers(0, 10, 64).astype(np.int32)
    jitted = weft.jit(mlp, deterministic=True)
    one = bits(jitted(MLP, x, t))
    for mesh in MESHES[:2]:
        on = lambda *spec, mesh=mesh: weft.NamedSharding(mesh, P(*spec))
        for specs in ({"w": on(None, "x"), "b": on("x"), "v": on("x")}, {"w": on("x"), "b": on(), "v": on()}):
            assert bits(jitted(weft.device_put(MLP, specs), x, t)) == one


def test_without_it_the_bits_differ():
    """So that the tests above say something."""
    x, t = values(64, 24), rng.integers(0, 10, 64).astype(np.int32)
    assert on_all_meshes(mlp, [MLP, x, t], [P(), P("x"), P("x")])[1] > 0


def test_it_is_as_precise():
    x = values(4096, 16)
    exact = np.abs(x.astype(np.float64)).sum()
    total = weft.jit(lambda x: abs(x).sum(), deterministic=True)(x)
    assert abs(float(total) - exact) <= 1e-6 * exact
    product = np.asarray(weft.jit(lambda x: x.T @ x, deterministic=True)(x))
    want = x.T.astype(np.float64) @ x.astype(np.float64)
    scale = np.abs(x.T).astype(np.float64) @ np.abs(x).astype(np.float64)
    assert (np.abs(product - want) <= 1e-6 * scale).all()


def test_sums_are_kernels():
    """Of their own, without a library; what is only added up is never in memory."""
    f = weft.jit(lambda x, w: (x @ w, ((x - 1) ** 2).sum(0)), deterministic=True)
    x, w = values(64, 24), values(24, 40)
    f(x, w)
    [facts] = f.explain()
    assert (facts["kernels"], facts["kernel_calls"], facts["library_calls"]) == (2, 2, 0)
    assert facts["bytes_moved"] == 4 * (2 * x.size + w.size + 64 * 40 + 24)


def test_what_cannot_be_done_is_said():
    for f in (lambda x: wnp.cumsum(x), lambda x: wnp.linalg.inv(x), lambda x: x.prod()):
        with pytest.raises(NotImplementedError, match=r"deterministic: '\w+' has no deterministic form"):
            weft.jit(f, deterministic=True)(values(4, 4))
    np.testing.assert_array_equal(weft.jit(lambda x: wnp.cumsum(x), deterministic=True)(np.arange(4)), [0, 1, 3, 6])
    with pytest.raises(ValueError, match="takes no deterministic"):
        weft.jit(lambda x: x, capture="auto", deterministic=True)


def test_lowered_and_compiled():
    x = values(64, 5)
    lowered = weft.jit(lambda x: x.sum(0), deterministic=True).lower(x)
    assert "leaf=4" in lowered.as_text()
    assert bits(lowered.compile()(x)) == bits(weft.jit(lambda x: x.sum(0), deterministic=True)(x))
    placed = weft.device_put(x, weft.NamedSharding(MESHES[0], P("x")))
    assert [c.operation for c in weft.jit(lambda x: x.sum(0), deterministic=True).lower(placed).comms()] == ["psum"]


def test_whatever_is_made_of_it_keeps_it(tmp_path):
    """a * b + c, rounded once or twice: the bits show which."""
    a, b, c = values(4096), values(4096), values(4096)
    f = lambda a, b, c: a * b + c
    apart = (np.asarray(wnp.multiply(a, b)) + c).tobytes()
    deterministic = weft.jit(f, deterministic=True)
    assert bits(deterministic(a, b, c)) == [apart]
    lowered, plain = deterministic.lower(a, b, c), weft.jit(f).lower(a, b, c)
    assert "vfmadd" not in lowered.stage("asm") and "vfmadd" not in lowered.as_text("asm")
    assert bits(lowered.compile()(a, b, c)) == [apart]
    np.savez(tmp_path / "in.npz", a=a, b=b, c=c)
    results = []
    for i, program in enumerate([lowered, plain]):
        program.export(tmp_path / f"{i}.weftb")
        arguments = [tmp_path / f"{i}.weftb", "--inputs", tmp_path / "in.npz", "--outputs", tmp_path / f"{i}"]
        subprocess.run(["driver/weft", "run", *map(str, arguments)], check=True, timeout=100)
        results.append(np.load(tmp_path / f"{i}" / "0.npy").tobytes())
    assert results[0] == apart
    # So that this says something, where the processor can round once at all.
    if "vfmadd" in plain.stage("asm"):
        assert results[1] != apart


def test_sums_that_are_cut_by_hand():
    """Inside of shard_map the user says what is summed: each device's part, and then those, as a tree of float32."""
    local = weft.jit(lambda part: part.sum(), deterministic=True)
    arrays = [np.random.default_rng(seed).normal(size=4096).astype(np.float32) for seed in range(6)]
    found = [set() for _ in arrays]
    for n in (1, 2, 4, 8):
        line = weft.make_mesh((n,), ("x",))
        total = weft.shard_map(lambda part: weft.lax.psum(part.sum(), "x"), line, P("x"), P())
        total = weft.jit(total, deterministic=True)
        for x, ends in zip(arrays, found):
            parts = [np.asarray(local(part)) for part in np.split(x, n)]
            while len(parts) > 1:
                parts = [a + b for a, b in zip(parts[::2], parts[1::2])]
            assert bits(total(x)) == bits(parts)
            ends.add(parts[0].tobytes())
    assert any(len(ends) > 1 for ends in found)  # so that this says something


@pytest.mark.parametrize(
    "kind, transform",
    [
        ("vmap", lambda f: weft.vmap(f)),
        ("make_ir", lambda f: weft.make_ir(f)),
        ("grad", lambda f: weft.grad(lambda x: f(x).sum())),
    ],
)
def test_what_would_lose_it_is_refused(kind, transform):
    x = values(8, 3)
    f = weft.jit(lambda x: x * 2 + 1, deterministic=True)
    with pytest.raises(NotImplementedError, match=rf"(?s){kind}.*: '.*' is jitted with deterministic=True, which"):
        transform(f)(x)
    # Inside of a jitted function that one decides, and can be asked for it.
    for whole in (weft.jit(weft.vmap(f), deterministic=True), weft.jit(weft.vmap(f))):
        np.testing.assert_array_equal(np.asarray(whole(x)), x * 2 + 1)
        assert "mul" in whole.lower(x).as_text()


def test_gpus_have_no_fixed_order():
    f = weft.jit(lambda x: x * 2 + 1, deterministic=True)
    with pytest.raises(NotImplementedError, match="jit: deterministic=True is for CPUs"):
        f.lower(values(8), target="cuda:sm_90a")


def test_the_example():
    pytest.importorskip("sklearn")
    example = pathlib.Path(__file__).parents[2] / "examples/digits_data_parallel.py"
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    subprocess.run([sys.executable, "-P", str(example), "--deterministic"], env=env, check=True, timeout=300)
