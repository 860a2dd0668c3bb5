"""jit(backend=...): every backend runs the same programs; what a backend does not have is an error that says so."""

import os

import numpy as np
import pytest

os.environ.setdefault("WEFT_NUM_CPU_DEVICES", "4")

import weft
import weft.numpy as wnp

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def layer(w, x):
    return wnp.tanh(x @ w).sum()


def count(x):
    return weft.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 1.5), (0, x))[1]


def choose(x):
    return weft.cond(x.sum() > 0, wnp.sin, wnp.cos, x)


def running(x):
    return weft.scan(lambda c, row: (c + row, c * row), wnp.zeros(4, "float32"), x)[1]


PROGRAMS = {
    "elementwise": (lambda x: wnp.exp(x) + 1, (X,)),
    "products": (lambda x, y: (x @ y.T, y.T @ x), (X, X + 1)),
    "while": (count, (X,)),
    "cond": (choose, (X,)),
    "scan": (running, (X,)),
    "gradient": (weft.grad(layer), (X.T.copy(), X)),
    "batched gradient": (weft.vmap(weft.grad(layer), in_axes=(None, 0)), (X.T.copy(), np.stack([X, X + 1, X - 1]))),
    "a tree": (lambda t: {"a": t["b"][0] * 2, "c": (t["b"][1], 3)}, ({"b": (X, X + 1)},)),
}


# Those that run programs in this process, besides the CPU.
BACKENDS = ("interpreter", "operations")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_backend_runs_what_the_cpu_runs(name: str, backend: str) -> None:
    f, args = PROGRAMS[name]
    got, want = weft.jit(f, backend=backend)(*args), weft.jit(f)(*args)
    assert weft.tree.structure(got) == weft.tree.structure(want)
    for a, b in zip(weft.tree.leaves(got), weft.tree.leaves(want)):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-7)


def test_the_interpreter_says_so() -> None:
    f = weft.jit(layer, backend="interpreter")
    f(X.T.copy(), X)
    facts = f.explain()[0]
    assert facts["interpreted"] == 1 and "kernels" not in facts


def test_the_outermost_jit_decides() -> None:
    inner = weft.jit(lambda x: wnp.sin(x) * 2, backend="interpreter")
    outer = weft.jit(lambda x: inner(x) + 1)
    outer(X)
    assert outer.explain()[0]["kernels"] == 1
    other = weft.jit(lambda x: weft.jit(lambda y: y * 2)(x) + 1, backend="interpreter")
    other(X)
    assert other.explain()[0]["interpreted"] == 1


def test_donated_arguments_of_the_interpreter_are_deleted_as_elsewhere() -> None:
    f = weft.jit(lambda x, y: x + y, backend="interpreter", donate_argnums=0)
    x, y = wnp.arange(4.0) + 1, wnp.ones(4)
    np.testing.assert_array_equal(f(x, y), [2, 3, 4, 5])
    with pytest.raises(RuntimeError, match="donate"):
        x + 1
    np.testing.assert_array_equal(y, np.ones(4))


def test_a_backend_that_is_none_is_named() -> None:
    with pytest.raises(
        ValueError, match="there is no target or backend 'tpu'; there are cpu, interpreter, operations, cuda:sm_90a"
    ):
        weft.jit(lambda x: x, backend="tpu")
    with pytest.raises(TypeError, match="jit: backend"):
        weft.jit(lambda x: x, backend=3)
    with pytest.raises(ValueError, match="capture='auto' is for the backend 'cpu', got backend='interpreter'"):
        weft.jit(lambda x: x, capture="auto", backend="interpreter")


def test_programs_for_a_gpu_do_not_run_here() -> None:
    f = weft.jit(lambda x: x + 1, backend="cuda:sm_90a")
    with pytest.raises(NotImplementedError, match="programs for cuda:sm_90a do not run in this process yet"):
        f(X)
    assert ".target sm_90a" in f.lower(X).stage("ptx")
    np.testing.assert_array_equal(f.lower(X).emulate(X), X + 1)


def test_what_a_backend_does_not_have_is_an_error() -> None:
    lowered = weft.jit(lambda x: x + 1, backend="interpreter").lower(X)
    with pytest.raises(
        ValueError, match="there is no stage 'llvm' for the interpreter; there are ir, optimized; 'cpu'"
    ):
        lowered.stage("llvm")
    with pytest.raises(ValueError, match="emulate: the program is for the interpreter"):
        lowered.emulate(X)
    with pytest.raises(NotImplementedError, match="export: the interpreter makes no code"):
        lowered.export("unwritten")
    np.testing.assert_array_equal(lowered.compile()(X), X + 1)


def test_passes_say_what_they_did() -> None:
    def f(x, y):
        return (x + 0) * 1 + wnp.sin(y) * wnp.sin(y)

    one, three = (1.0, 2.0), (np.ones(3, "float32"), np.ones(3, "float32"))
    for transformed, args in ((f, one), (weft.grad(f), one), (weft.vmap(weft.grad(f)), three)):
        ir = weft.make_ir(transformed)(*args)
        records = ir.passes
        assert [r.name for r in records] == weft._weft.default_passes()
        assert records[0].equations_before == len(ir.eqns)
        for before, after in zip(records, records[1:]):
            assert before.equations_after == after.equations_before
        assert all(r.milliseconds >= 0 for r in records)
        assert records[-1].text == ir.stage("optimized")
        for record in records:
            assert weft.parse_ir(record.text).text.splitlines()[0].startswith("fn ")


@pytest.mark.parametrize("backend", ("cpu", *BACKENDS))
@pytest.mark.parametrize("axes", [((4,), ("a",)), ((2, 2), ("a", "b"))])
def test_a_backend_runs_programs_for_a_mesh(axes, backend: str) -> None:
    """... which some take as blocks, and some as whole arrays: two that are cut, and one that is not."""
    mesh = weft.make_mesh(*axes)
    rows = weft.NamedSharding(mesh, weft.PartitionSpec("a"))
    x, y = np.arange(32, dtype=np.float32).reshape(8, 4), np.ones((8, 4), np.float32)
    f = weft.jit(
        lambda x, y, n: (wnp.tanh(x - y) * n, (x * y).sum(0)), in_shardings=(rows, rows, None), backend=backend
    )
    for _ in range(2):
        first, second = f(weft.device_put(x, rows), weft.device_put(y, rows), 2.0)
        np.testing.assert_allclose(first, np.tanh(x - y) * 2, rtol=2e-6)
        np.testing.assert_allclose(second, (x * y).sum(0), rtol=1e-6)
