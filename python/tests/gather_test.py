"""lax.gather and scatter with dimension numbers, beside JAX: values, modes, derivatives, batches; and lax.reduce."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import lax

jax = pytest.importorskip("jax")
jnp = jax.numpy

rng = np.random.default_rng(0)

# What it is, operand shape, indices, dimension numbers, sizes of a window.
GATHERS = {
    "rows": ((5, 3), [[2], [0], [4]], ((1,), (0,), (0,)), (1, 3)),
    "columns": ((5, 3), [[1], [2]], ((0,), (1,), (1,)), (5, 1)),
    "elements": ((5, 3), [[1, 2], [4, 0], [0, 0]], ((), (0, 1), (0, 1)), (1, 1)),
    "swapped": ((5, 3), [[2, 1], [0, 4]], ((), (0, 1), (1, 0)), (1, 1)),
    "windows": ((6, 4), [[1, 1], [3, 0]], ((1, 2), (), (0, 1)), (2, 3)),
    "windows first": ((6, 4), [[1, 1], [3, 0]], ((0, 1), (), (0, 1)), (2, 3)),
    "beyond": ((5, 3), [[7], [-1], [4]], ((1,), (0,), (0,)), (1, 3)),
    "partly beyond": ((6, 4), [[5, 3], [-1, 0], [4, 1]], ((1, 2), (), (0, 1)), (2, 3)),
    "one": ((5, 3), [3], ((0,), (0,), (0,)), (1, 3)),
    "none": ((5, 3), np.zeros((0, 1), int), ((1,), (0,), (0,)), (1, 3)),
    "batches": ((2, 5, 3), [[[1], [4]], [[0], [2]]], ((2,), (1,), (1,), (0,), (0,)), (1, 1, 3)),
}
MODES = [None, "clip", "fill"]


def numbers(module, kind, args):
    return getattr(module, f"{kind}DimensionNumbers")(
        *args[:3],
        **dict(
            zip(
                ("operand_batching_dims", "start_indices_batching_dims")
                if kind == "Gather"
                else ("operand_batching_dims", "scatter_indices_batching_dims"),
                args[3:],
            )
        ),
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
@pytest.mark.parametrize("name", GATHERS)
def test_gather(name, dtype, mode):
    shape, indices, dims, sizes = GATHERS[name]
    x = (rng.standard_normal(shape) * 10).astype(dtype)
    indices = np.asarray(indices, np.int32)
    ours = weft.jit(lambda x, i: lax.gather(x, i, numbers(lax, "Gather", dims), sizes, mode=mode))(x, indices)
    theirs = jax.lax.gather(jnp.asarray(x), jnp.asarray(indices), numbers(jax.lax, "Gather", dims), sizes, mode=mode)
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


def test_gather_fills():
    x = wnp.arange(6.0).reshape(3, 2)
    rows = lax.GatherDimensionNumbers((1,), (0,), (0,))
    i = wnp.array([[1], [7]])
    assert lax.gather(x, i, rows, (1, 2), mode="fill", fill_value=-3).tolist() == [[2.0, 3.0], [-3.0, -3.0]]
    assert lax.gather(x, i, rows, (1, 2), mode=lax.GatherScatterMode.CLIP).tolist() == [[2.0, 3.0], [4.0, 5.0]]
    theirs = jax.lax.gather(
        jnp.arange(6.0).reshape(3, 2),
        jnp.array([[1], [7]]),
        jax.lax.GatherDimensionNumbers((1,), (0,), (0,)),
        (1, 2),
        mode="fill",
        fill_value=-3,
    )
    np.testing.assert_array_equal(
        np.asarray(lax.gather(x, i, rows, (1, 2), mode="fill", fill_value=-3)), np.asarray(theirs)
    )


SCATTERS = ["scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", SCATTERS)
@pytest.mark.parametrize("name", GATHERS)
def test_scatter(name, kind, mode):
    shape, indices, dims, sizes = GATHERS[name]
    indices = np.asarray(indices, np.int32)
    x = rng.standard_normal(shape).astype(np.float32)
    window = numbers(jax.lax, "Gather", dims)
    update_shape = jax.eval_shape(lambda: jax.lax.gather(x, indices, window, sizes)).shape
    updates = rng.standard_normal(update_shape).astype(np.float32)
    ours = weft.jit(lambda x, i, u: getattr(lax, kind)(x, i, u, numbers(lax, "Scatter", dims), mode=mode))
    theirs = lambda x, i, u: getattr(jax.lax, kind)(x, i, u, numbers(jax.lax, "Scatter", dims), mode=mode)
    got, expected = ours(x, indices, updates), theirs(jnp.asarray(x), jnp.asarray(indices), jnp.asarray(updates))
    if kind == "scatter" and mode == "clip" and name == "partly beyond":
        return  # moved inside windows overlap, and which of them wins is not said
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("row", [1, 3])
@pytest.mark.parametrize("dtype", ["bool", *(f"{s}int{b}" for s in ("", "u") for b in (8, 16, 32, 64)), "float16",
                                   "bfloat16", "float32", "float64"])  # fmt: skip
@pytest.mark.parametrize("kind", ["add", "multiply", "min", "max"])
def test_many_updates_of_few_places(kind, dtype, row):
    """NumPy's ufunc.at, with the limits of each dtype, NaN and infinities, element by element and row by row."""
    dtype = wnp.zeros(0, dtype).dtype if dtype != "bfloat16" else np.asarray(jnp.zeros(0, dtype)).dtype
    if dtype == "bool" and kind in ("add", "multiply"):
        with pytest.raises(TypeError, match="is bool"):  # as JAX
            getattr(wnp.zeros(3, bool).at[0], kind)(True)
        return
    draws = np.random.default_rng(row)
    if dtype in ("bool", "float16", "bfloat16", "float32", "float64"):
        special = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0] + ([np.nan, np.inf, -np.inf] if kind in ("min", "max") else [])
    else:
        special = [0, 1, 2, 3, np.iinfo(dtype).min, np.iinfo(dtype).max]
    values = np.asarray(special).astype(dtype)
    x, u = (values[draws.integers(0, len(values), (n, row))] for n in (40, 200))
    i = draws.integers(0, 40, 200)
    want = x.copy()
    ufunc = {"min": np.minimum, "max": np.maximum, "add": np.add, "multiply": np.multiply}[kind]
    with np.errstate(all="ignore"):
        ufunc.at(want, i, u)
    got = weft.jit(lambda x, i, u: getattr(x.at[i], kind)(u))(x, i, u)
    got = np.asarray(got)
    assert got.dtype == want.dtype
    if dtype == "bfloat16":  # in which NumPy does not know NaN
        got, want = got.astype(np.float32), want.astype(np.float32)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["rows", "elements", "windows", "beyond", "batches"])
def test_derivatives(name):
    shape, indices, dims, sizes = GATHERS[name]
    x, i = rng.standard_normal(shape).astype(np.float32), np.asarray(indices, np.int32)
    ours = weft.grad(lambda x: (lax.gather(x, i, numbers(lax, "Gather", dims), sizes, mode="clip") ** 2).sum())(x)
    theirs = jax.grad(
        lambda x: (jax.lax.gather(x, i, numbers(jax.lax, "Gather", dims), sizes, mode="clip") ** 2).sum()
    )(x)
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-6)
    windows = jax.eval_shape(lambda: jax.lax.gather(x, i, numbers(jax.lax, "Gather", dims), sizes)).shape
    u = rng.standard_normal(windows).astype(np.float32)
    for argnum in (0, 1):
        f = lambda lib, s: lambda x, u: (lib.scatter_add(x, i, u, numbers(lib, "Scatter", dims)) ** 3).sum()
        np.testing.assert_allclose(
            np.asarray(weft.grad(f(lax, 0), argnum)(x, u)),
            np.asarray(jax.grad(f(jax.lax, 0), argnum)(x, u)),
            rtol=1e-5,
            atol=1e-5,
        )


def test_what_fills_does_not_move():
    """Forward mode agrees with reverse mode: the derivative of the NaN beyond the end is 0."""
    x = np.arange(4.0, dtype=np.float32)
    places = wnp.array([1, 9])
    for f in (
        lambda x: wnp.take(x, places, mode="fill"),
        lambda x: x.at[places].get(mode="fill"),
        lambda x: x.at[places].get(mode="fill", fill_value=7.0),
    ):
        wanted = [[0, 1, 0, 0], [0, 0, 0, 0]]
        for derivative in (weft.jacfwd, weft.jacrev):
            np.testing.assert_array_equal(np.asarray(derivative(f)(x)), wanted)
            np.testing.assert_array_equal(np.asarray(weft.jit(weft.vmap(derivative(f)))(x[None])), [wanted])
        series = weft.experimental.jet.jet(f, (x,), ([wnp.ones(4), wnp.ones(4)],))[1]
        np.testing.assert_array_equal(np.asarray(series), [[1, 0], [1, 0]])


@pytest.mark.parametrize("mode", ["clip", "drop", "promise_in_bounds"])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_updates_of_nothing(shape, mode):
    for method in ("set", "add", "mul", "max"):
        update = lambda x, method=method: getattr(x.at[np.array([0, 3])], method)(2.0, mode=mode)
        for f in (update, weft.jit(update)):
            assert f(wnp.zeros(shape)).shape == shape


def test_vmap():
    x = rng.standard_normal((4, 5, 3)).astype(np.float32)
    i = rng.integers(0, 5, (4, 2, 1)).astype(np.int32)
    dims = ((1,), (0,), (0,))
    ours = weft.vmap(lambda x, i: lax.gather(x, i, numbers(lax, "Gather", dims), (1, 3)))(x, i)
    np.testing.assert_array_equal(np.asarray(ours), np.stack([row[k[:, 0]] for row, k in zip(x, i)]))


def test_mistakes():
    x, rows = wnp.ones((5, 3)), lax.GatherDimensionNumbers((1,), (0,), (0,))
    with pytest.raises(TypeError, match="gather: indices must be integers, got float32"):
        lax.gather(x, wnp.ones((2, 1)), rows, (1, 3))
    with pytest.raises(ValueError, match="gather: there is no mode 'wrap'"):
        lax.gather(x, wnp.array([[1]]), rows, (1, 3), mode="wrap")
    with pytest.raises((TypeError, ValueError), match="gather"):
        lax.gather(x, wnp.array([[1]]), rows, (1, 3, 4))
    with pytest.raises((TypeError, ValueError), match="scatter"):
        lax.scatter(x, wnp.array([[1]]), wnp.ones((1, 7)), lax.ScatterDimensionNumbers((1,), (0,), (0,)))


# --- reduce -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "computation,prim",
    [
        (lambda x, y: x + y, "reduce_sum"),
        (lambda x, y: y * x, "reduce_prod"),
        (lambda x, y: wnp.maximum(x, y), "reduce_max"),
        (lax.min, "reduce_min"),
        (wnp.add, "reduce_sum"),
    ],
)
def test_reduce_by_a_monoid_is_one_reduction(computation, prim):
    x = wnp.array([[3, 1, 2], [4, 1, 5]])
    ir = weft.make_ir(lambda x: lax.reduce(x, 1, computation, (1,)))(x)
    assert next(e["name"] for e in ir.eqns if e["name"] not in ("broadcast", "convert")) == prim
    assert "scan" not in ir.text
    init = {"reduce_sum": 1, "reduce_prod": 1, "reduce_max": 1, "reduce_min": 1}[prim]
    expected = {
        "reduce_sum": np.array([6, 10]) + init,
        "reduce_prod": np.array([6, 20]),
        "reduce_max": np.array([3, 5]),
        "reduce_min": np.array([1, 1]),
    }[prim]
    np.testing.assert_array_equal(np.asarray(lax.reduce(x, init, computation, (1,))), expected)


def test_reduce_by_another_function():
    x = rng.standard_normal((3, 4)).astype(np.float32)
    assert lax.reduce(wnp.array([True, False]), False, lambda x, y: x | y, (0,)).tolist() is True
    ours = lax.reduce(wnp.array(x), 0.0, lambda x, y: wnp.hypot(x, y), (0,))
    np.testing.assert_allclose(np.asarray(ours), np.linalg.norm(x, axis=0), rtol=1e-5)
    # A function that ignores one of its arguments, or uses one twice, is no reduction by a primitive.
    assert lax.reduce(wnp.array([1, 2, 3]), 0, lambda x, y: y + y, (0,)).tolist() in (6, 12, 24)
    first = weft.make_ir(lambda x: lax.reduce(x, 0.0, lambda x, y: x + x, (0,)))(x)
    assert "reduce_sum" not in first.text
