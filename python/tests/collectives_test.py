"""Collectives over the lanes of vmap(axis_name=...): closed forms, finite differences, and JAX side by side."""

import itertools

import numpy as np
import pytest

import weft
import weft.lax
import weft.numpy as wnp
from weft import lax

rng = np.random.default_rng(0)


def arrays(*shape):
    return rng.uniform(-2, 2, shape).astype(np.float32)


# --- Meaning, in NumPy ------------------------------------------------------------------------------------------------


def mapped(f, *args, **kwargs):
    return weft.vmap(f, axis_name="i", **kwargs)(*args)


def test_reductions():
    x = arrays(4, 3)
    total = np.broadcast_to(x.sum(0), x.shape)
    np.testing.assert_allclose(mapped(lambda a: lax.psum(a, "i"), x), total, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(mapped(lambda a: lax.pmean(a, "i"), x), total / 4, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(mapped(lambda a: lax.pmax(a, "i"), x), np.broadcast_to(x.max(0), x.shape))
    np.testing.assert_array_equal(mapped(lambda a: lax.pmin(a, "i"), x), np.broadcast_to(x.min(0), x.shape))


def test_a_reduced_result_is_the_same_for_all_lanes():
    out = mapped(lambda a: lax.psum(a, "i"), arrays(4, 3), out_axes=None)
    assert out.shape == (3,)
    with pytest.raises(ValueError, match="out_axes entry is None"):
        mapped(lambda a: lax.all_to_all(a, "i", 0, 0), arrays(4, 4), out_axes=None)


def test_numbers_fold():
    seen = []

    def f(x):
        seen.append((lax.psum(1, "i"), lax.psum(2.5, "i"), lax.psum(True, "i"), lax.axis_size("i")))
        return x

    mapped(f, arrays(4))
    assert seen == [(4, 10.0, 4, 4)]
    assert all(type(v) is t for v, t in zip(seen[0], (int, float, int, int)))
    assert mapped(lambda x: lax.psum(x > 0, "i"), np.array([1.0, -1.0, 2.0])).dtype == np.int32


def test_gather_scatter_exchange():
    x = arrays(3, 6, 2)
    np.testing.assert_array_equal(mapped(lambda a: lax.all_gather(a, "i"), x, out_axes=None), x)
    np.testing.assert_array_equal(
        mapped(lambda a: lax.all_gather(a, "i", axis=1, tiled=True), x, out_axes=None), np.concatenate(x, 1)
    )
    blocks = x.sum(0).reshape(3, 2, 2)
    np.testing.assert_allclose(mapped(lambda a: lax.psum_scatter(a, "i", tiled=True), x), blocks, rtol=1e-5, atol=1e-6)
    y = arrays(3, 3, 2)
    np.testing.assert_allclose(mapped(lambda a: lax.psum_scatter(a, "i"), y), y.sum(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(mapped(lambda a: lax.all_to_all(a, "i", 0, 0), y), y.swapaxes(0, 1))
    np.testing.assert_array_equal(mapped(lambda a: lax.pswapaxes(a, "i", 0), y), y.swapaxes(0, 1))


def test_permutations():
    x = arrays(4, 2)
    shifted = mapped(lambda a: lax.ppermute(a, "i", [(k, (k + 1) % 4) for k in range(4)]), x)
    np.testing.assert_array_equal(shifted, np.roll(x, 1, 0))
    partial = mapped(lambda a: lax.ppermute(a, "i", [(3, 0)]), x)
    np.testing.assert_array_equal(partial, np.stack([x[3], 0 * x[0], 0 * x[0], 0 * x[0]]))
    np.testing.assert_array_equal(mapped(lambda a: lax.pshuffle(a, "i", [2, 0, 3, 1]), x), x[[2, 0, 3, 1]])
    np.testing.assert_array_equal(mapped(lambda a: lax.pbroadcast(a, "i", 2), x), x[[2, 2, 2, 2]])
    odd = np.array([[np.nan, 1.0], [2.0, np.inf], [0.0, -np.inf], [3.0, -4.0]], np.float32)
    for k in range(4):
        found = mapped(lambda a, k=k: lax.pbroadcast(a, "i", k), odd)
        np.testing.assert_array_equal(found, odd[[k] * 4])
    flags = mapped(lambda a: lax.pbroadcast(a > 0, "i", 3), odd)
    assert flags.dtype == bool and flags.tolist() == [[True, False]] * 4


def test_axis_index_of_several():
    f = lambda x: (lax.axis_index("i"), lax.axis_index(("i", "j")), lax.axis_index(("j", "i")))
    i, ij, ji = weft.vmap(weft.vmap(f, axis_name="j"), axis_name="i")(arrays(2, 3))
    np.testing.assert_array_equal(i, np.repeat([[0], [1]], 3, 1))
    np.testing.assert_array_equal(ij, np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(ji, np.arange(6).reshape(3, 2).T)


def test_an_inner_name_hides_an_outer_one():
    x = arrays(2)
    f = lambda a: weft.vmap(lambda b: lax.psum(a + b, "i"), axis_name="i")(wnp.ones(3))
    np.testing.assert_allclose(weft.vmap(f, axis_name="i")(x), np.repeat(3 * x[:, None] + 3, 3, 1), rtol=1e-6)


def test_trees_and_unmapped_values():
    out = mapped(lambda x: lax.psum({"x": x, "one": 1, "two": wnp.float32(2)}, "i"), arrays(5), out_axes=None)
    assert out["one"] == 5 and float(out["two"]) == 10
    ones = weft.vmap(lambda w: lax.all_gather(w, "i"), in_axes=None, out_axes=None, axis_name="i", axis_size=3)(2.0)
    np.testing.assert_array_equal(ones, [2, 2, 2])


def test_symbolic_number_of_lanes():
    f = weft.jit(weft.vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i"))
    ir = weft.make_ir(f)(weft.ShapeDtype(("n", 2), np.float32))
    for n in (1, 4):
        x = arrays(n, 2)
        np.testing.assert_allclose(ir(x), x - x.mean(0), atol=1e-6)


# --- Under the other transforms ---------------------------------------------------------------------------------------


def test_jit_inside_knows_its_axes():
    """A jitted function that is traced for one size of an axis is traced anew for another."""
    traces = []

    @weft.jit
    def normalised(x):
        traces.append(lax.axis_size("i"))
        return x / lax.psum(x, "i")

    for n in (3, 5, 3):
        x = np.arange(1, n + 1, dtype=np.float32)
        np.testing.assert_allclose(weft.vmap(normalised, axis_name="i")(x), x / x.sum(), rtol=1e-6)
        np.testing.assert_allclose(weft.jit(weft.vmap(normalised, axis_name="i"))(x), x / x.sum(), rtol=1e-6)
    assert traces == [3, 5]
    with pytest.raises(NameError, match="'i'"):
        normalised(1.0)


def test_loops_and_branches():
    def f(x):
        def body(carry, _):
            carry = carry + lax.ppermute(carry, "i", [(0, 1), (1, 2), (2, 0)])
            return carry, lax.pmax(carry, "i")

        last, tops = lax.scan(body, x, None, length=3)
        grown = lax.while_loop(lambda v: lax.psum(v, "i") < 100, lambda v: v * 2, x)
        chosen = lax.cond(lax.psum(x, "i") > 5, lambda v: lax.pmin(v, "i"), lambda v: v, x)
        return last, tops, grown, chosen

    x = np.array([1.0, 2.0, 4.0], np.float32)
    carry, tops = x, []
    for _ in range(3):
        carry = carry + np.roll(carry, 1)
        tops.append(carry.max())
    for run in (weft.vmap(f, axis_name="i"), weft.jit(weft.vmap(f, axis_name="i"))):
        last, got, grown, chosen = run(x)
        np.testing.assert_allclose(last, carry)
        np.testing.assert_allclose(got, np.broadcast_to(tops, (3, 3)))
        np.testing.assert_allclose(grown, [16, 32, 64])
        np.testing.assert_allclose(chosen, [1, 1, 1])


def test_lanes_that_differ_are_refused():
    f = lambda x: lax.cond(x > 0, lambda v: lax.psum(v, "i"), lambda v: v, x)
    with pytest.raises(NotImplementedError, match=r"(?s)collective over the mapped axis 'i'.*collectives_test.py"):
        mapped(f, arrays(3))
    g = lambda x: lax.while_loop(lambda v: v < 3, lambda v: v + 1 + lax.psum(v, "i"), x)
    with pytest.raises(NotImplementedError, match="different numbers of trips"):
        mapped(g, arrays(3))


def index():
    return lax.axis_index("i").astype("float32")


# Programs whose lanes part, each of which asks for its place there; and what a lane does, in Python.
PARTED = {
    "branch": (
        lambda x: lax.cond(x > 2, lambda x: x * index(), lambda x: x, x),
        lambda i, x: x * i if x > 2 else x,
    ),
    "all branches": (
        lambda x: lax.switch(x.astype("int32") % 3, [lambda x: x + index(), lambda x: x - index(), lambda x: x], x),
        lambda i, x: [x + i, x - i, x][int(x) % 3],
    ),
    "body": (
        lambda x: lax.while_loop(lambda v: v[0] < x, lambda v: (v[0] + 1, v[1] + index()), (0.0, x))[1],
        lambda i, x: x + i * np.ceil(x),
    ),
    "condition": (
        lambda x: lax.while_loop(lambda v: v[0] < index(), lambda v: (v[0] + 1, v[1] * 2), (0.0, x))[1],
        lambda i, x: x * 2**i,
    ),
    "branch in a body": (
        lambda x: lax.while_loop(
            lambda v: v[0] < x,
            lambda v: (v[0] + 1, lax.cond(v[0] > 1, lambda c: c + index(), lambda c: c, v[1])),
            (0.0, x),
        )[1],
        lambda i, x: x + i * max(np.ceil(x) - 2, 0),
    ),
    "loop in a branch": (
        lambda x: lax.cond(
            x > 2, lambda x: lax.scan(lambda c, k: (c + k * index(), None), x, wnp.arange(4.0))[0], lambda x: x, x
        ),
        lambda i, x: x + 6 * i if x > 2 else x,
    ),
    "call in a branch": (
        lambda x: lax.cond(x > 2, weft.jit(lambda x: x * index() + index()), lambda x: x, x),
        lambda i, x: x * i + i if x > 2 else x,
    ),
    "checkpoint in a branch": (
        lambda x: lax.cond(x > 2, weft.checkpoint(lambda x: x * x * index()), lambda x: x, x),
        lambda i, x: x * x * i if x > 2 else x,
    ),
}


@pytest.mark.parametrize("name", PARTED)
def test_lanes_know_their_place_wherever_they_part(name):
    f, lane = PARTED[name]
    x = np.array([1.0, 3.0, 2.5, 5.0], np.float32)
    want = [lane(i, v) for i, v in enumerate(x)]
    for run in (weft.vmap(f, axis_name="i"), weft.jit(weft.vmap(f, axis_name="i"))):
        np.testing.assert_allclose(run(x), want)
    # In maps around and inside that have other names, and mapped again.
    two = weft.vmap(weft.vmap(f, axis_name="i"), axis_name="j")(np.stack([x, x[::-1]]))
    np.testing.assert_allclose(two, [want, [lane(i, v) for i, v in enumerate(x[::-1])]])
    outer = weft.vmap(weft.vmap(f, axis_name="j"), axis_name="i", in_axes=1)(np.stack([x, x[::-1]]))
    np.testing.assert_allclose(outer, [[lane(i, v) for v in (x[i], x[-1 - i])] for i in range(4)])
    slope = [(lane(i, v + 1e-3) - lane(i, v - 1e-3)) / 2e-3 for i, v in enumerate(x.astype(float))]
    if name in ("all branches", "body", "branch in a body"):  # they jump at these points
        slope = [1.0] * 4
    np.testing.assert_allclose(weft.grad(lambda x: weft.vmap(f, axis_name="i")(x).sum())(x), slope, rtol=1e-3)


LOSSES = {
    "psum": lambda x: wnp.sin(lax.psum(x * x, "i")).sum(),
    "pmean": lambda x: (lax.pmean(x, "i") ** 2 * x).sum(),
    "pmax": lambda x: (lax.pmax(x, "i") * x).sum(),
    "pmin": lambda x: (lax.pmin(wnp.sin(x), "i") * x).sum(),
    "all_gather": lambda x: wnp.prod(lax.all_gather(x, "i", axis=1) ** 2 + 1),
    "psum_scatter": lambda x: (lax.psum_scatter(x, "i", tiled=True) ** 3).sum(),
    "all_to_all": lambda x: (lax.all_to_all(x, "i", 0, 0, tiled=True) * wnp.sin(x)).sum(),
    "ppermute": lambda x: (lax.ppermute(x, "i", [(0, 2), (1, 0)]) * x).sum(),
    "index": lambda x: (x * lax.axis_index("i") ** 2).sum() * lax.psum(x[0], "i"),
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_against_finite_differences(name):
    """grad(vmap(f)), and vmap(grad(f)): the derivative of the sum over all lanes."""
    f = LOSSES[name]
    x = rng.uniform(0.5, 1.5, (3, 6))
    with weft.enable_x64():
        total = lambda x: weft.vmap(f, axis_name="i")(x).sum()
        expected = np.zeros_like(x)
        for index in itertools.product(*map(range, x.shape)):
            d = np.zeros_like(x)
            d[index] = 1e-6
            expected[index] = (float(total(x + d)) - float(total(x - d))) / 2e-6
        for grad in (weft.grad(total), weft.jit(weft.grad(total)), weft.vmap(weft.grad(f), axis_name="i")):
            np.testing.assert_allclose(grad(x), expected, rtol=1e-5, atol=1e-6)
        tangent = rng.uniform(-1, 1, x.shape)
        each = weft.vmap(lambda x, t: weft.jvp(f, (x,), (t,))[1], axis_name="i")(x, tangent)
        np.testing.assert_allclose(float(np.sum(each)), (expected * tangent).sum(), rtol=1e-5)


def test_second_order():
    f = lambda x: wnp.sin(lax.psum(x**3, "i"))
    x = np.array([0.3, 0.5, 0.7])
    with weft.enable_x64():
        total = lambda x: weft.vmap(f, axis_name="i")(x).sum()
        s, dx = (x**3).sum(), 3 * x**2
        hessian = 3 * (-np.sin(s) * np.outer(dx, dx) + np.cos(s) * np.diag(6 * x))
        np.testing.assert_allclose(weft.hessian(total)(x), hessian, rtol=1e-10)


# --- Dimensions among the axes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, -1, (0, 2), (2, 0, 1), np.int64(1), [0, -1], ()], ids=str)
def test_dimensions_of_the_array_itself(axis):
    x = arrays(2, 3, 4)
    dims = tuple(axis) if isinstance(axis, (tuple, list)) else (int(axis),)
    for through in (lambda f: f, weft.jit):
        np.testing.assert_allclose(through(lambda a: lax.psum(a, axis))(x), x.sum(dims), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(through(lambda a: lax.pmean(a, axis))(x), x.mean(dims), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(through(lambda a: lax.pmax(a, axis))(x), x.max(dims))
        np.testing.assert_array_equal(through(lambda a: lax.pmin(a, axis))(x), x.min(dims))
    slope = weft.grad(lambda a: (lax.pmean(a, axis) ** 2).sum())(x)
    count = np.prod([x.shape[d] for d in dims])
    np.testing.assert_allclose(
        slope, np.broadcast_to(2 * x.mean(dims, keepdims=True) / count, x.shape), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("axis", [("i", 0), (1, "i"), ["i", 0, -1]], ids=str)
def test_names_and_dimensions_together(axis):
    x = arrays(5, 3, 4)
    dims = (0, *(d + 1 if d >= 0 else d for d in axis if isinstance(d, int)))
    for through in (lambda f: f, weft.jit):
        for name in ("sum", "mean", "max", "min"):
            out = through(weft.vmap(lambda a, name=name: getattr(lax, f"p{name}")(a, axis), axis_name="i"))(x)
            want = np.broadcast_to(getattr(x, name)(dims)[None], out.shape)
            np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-6)


def test_extremes_of_booleans_and_complex_numbers():
    flags = np.array([[True, False], [False, False]])
    for name, of in (("pmax", flags.any), ("pmin", flags.all)):
        f = getattr(lax, name)
        for axes in (0, 1, (0, 1)):
            out = f(flags, axes)
            assert out.dtype == bool and np.array_equal(out, of(axes))
        out = mapped(lambda a, f=f: f(a, "i"), flags)
        assert out.dtype == bool and np.array_equal(out, np.broadcast_to(of(0), flags.shape))
        out = mapped(lambda a, f=f: f(a, "i", axis_index_groups=[[1], [0]]), flags)
        assert out.dtype == bool and np.array_equal(out, flags)
    z = np.array([[1 + 2j, 1 + 3j], [0 + 9j, 1 - 3j]], np.complex64)
    for name in ("max", "min"):
        f = getattr(lax, f"p{name}")
        np.testing.assert_array_equal(f(z, 0), getattr(np, name)(z, 0))
        np.testing.assert_array_equal(mapped(lambda a, f=f: f(a, ("i", 0)), z), np.full(2, getattr(np, name)(z)))


def test_wrong_dimensions():
    x = arrays(2, 3)
    for axis in (2, -3, (0, 5), ("i", 1)):
        with pytest.raises(IndexError, match=r"psum: axis -?[0-9] is out of range"):
            mapped(lambda a, axis=axis: lax.psum(a if axis == ("i", 1) else x, axis), x)
    with pytest.raises(ValueError, match=r"pmax: axis \(0, -2\) names an axis twice"):
        lax.pmax(x, (0, -2))
    with pytest.raises(IndexError, match="pmin: axis 0 is out of range for an array of 0 dimensions"):
        lax.pmin(3.0, 0)
    for f in (lax.psum, lax.pmean, lax.pmax, lax.pmin):
        with pytest.raises(ValueError, match=r"axis_index_groups .* but axis_name has the dimensions \(0,\)"):
            mapped(lambda a, f=f: f(a, ("i", 0), axis_index_groups=[[0, 1]]), x)


# --- What is refused --------------------------------------------------------------------------------------------------


def test_errors():
    with pytest.raises(
        NameError, match=r"(?s)psum: nothing binds the axis 'k' here; bound are 'i'.*collectives_test.py"
    ):
        mapped(lambda x: lax.psum(x, "k"), arrays(3))
    with pytest.raises(NameError, match="no axes are bound"):
        lax.axis_index("i")
    with pytest.raises(NameError, match="'i'"):
        weft.jit(lambda x: lax.pmean(x, "i"))(1.0)
    with pytest.raises(NameError, match="'i'"):
        weft.parse_ir('fn f(x: f32[]) -> (f32[]) {\n y: f32[] = psum[axes=["i"]] x\n return y\n}')(1.0)
    with pytest.raises(ValueError, match="3 devices; with tiled=True"):
        mapped(lambda x: lax.psum_scatter(x, "i"), arrays(3, 2))
    with pytest.raises(TypeError, match="not a multiple of 3"):
        mapped(lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True), arrays(3, 4))
    with pytest.raises(ValueError, match="receives twice"):
        mapped(lambda x: lax.ppermute(x, "i", [(0, 1), (2, 1)]), arrays(3))
    with pytest.raises(ValueError, match="numbered from 0"):
        mapped(lambda x: lax.ppermute(x, "i", [(0, 3)]), arrays(3))
    with pytest.raises(ValueError, match="not a permutation"):
        mapped(lambda x: lax.pshuffle(x, "i", [0, 0, 1]), arrays(3))
    with pytest.raises(ValueError, match="source=3; there are 3 places along 'i'"):
        mapped(lambda x: lax.pbroadcast(x, "i", 3), arrays(3))
    for groups in ([[0], [1]], [[0, 1], [1, 2]], [[0], [1, 3]]):
        with pytest.raises(ValueError, match="must have each of the 3 places along 'i' once"):
            mapped(lambda x, groups=groups: lax.psum(x, "i", axis_index_groups=groups), arrays(3))
    with pytest.raises(TypeError, match=r"a string, got 2\.5"):
        mapped(lambda x: lax.psum(x, 2.5), arrays(3))
    with pytest.raises(ValueError, match="a word such as"):
        weft.vmap(lambda x: x, axis_name="a b")(arrays(3))
    with pytest.raises(weft.TracerError, match="axis_index"):
        mapped(lambda x: x if lax.axis_index("i") else -x, arrays(3))


def test_axis_env():
    ir = weft.make_ir(lambda x: lax.all_gather(x, "i"), axis_env=[("i", 4)])(np.ones(2, np.float32))
    assert ir.out_types == ["f32[4,2]"]
    assert 'all_gather[axes=["i"], dim=0, sizes=<4>]' in ir.text
    assert weft.parse_ir(ir.text) == ir
    np.testing.assert_array_equal(
        weft.vmap(ir, out_axes=None, axis_name="i")(np.eye(4, 2, dtype=np.float32)), np.eye(4, 2)
    )


# --- JAX --------------------------------------------------------------------------------------------------------------

# Functions of (lax, np, x) with x: [4, 8] in one lane of 4 along "i" and 3 along "j". (JAX does not gather or scatter
# over several axes under vmap; transforms/shard/spmd_test.cc compares those with the devices of a mesh.)
PROGRAMS = [
    lambda lax, np, x: lax.psum(x, "i"),
    lambda lax, np, x: lax.psum(x, ("i", "j")),
    lambda lax, np, x: lax.pmean(x, ("j", "i")),
    lambda lax, np, x: x - lax.pmax(x, "j"),
    lambda lax, np, x: lax.pmin(np.sin(x), ("i", "j")) * x,
    lambda lax, np, x: lax.all_gather(x, "i"),
    lambda lax, np, x: lax.all_gather(x, "j", axis=-1),
    lambda lax, np, x: lax.all_gather(x, "i", axis=1, tiled=True),
    lambda lax, np, x: lax.psum_scatter(x, "i"),
    lambda lax, np, x: lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
    lambda lax, np, x: lax.all_to_all(x, "i", 0, 1),
    lambda lax, np, x: lax.all_to_all(x, "i", 0, 0),
    lambda lax, np, x: lax.all_to_all(x.T[:4], "i", 0, 0),
    lambda lax, np, x: lax.all_to_all(x, "i", 1, 0, tiled=True),
    lambda lax, np, x: lax.all_to_all(np.concatenate([x, x, x], 1), "j", 1, 0, tiled=True),
    lambda lax, np, x: lax.ppermute(x, "i", [(0, 2), (2, 1), (1, 3), (3, 0)]),
    lambda lax, np, x: lax.pshuffle(x, "j", [2, 0, 1]),
    lambda lax, np, x: x * lax.axis_index("i") + lax.axis_index("j"),
    lambda lax, np, x: x / lax.psum(1, ("i", "j")),
    lambda lax, np, x: x * lax.axis_size("i"),
    lambda lax, np, x: lax.psum(np.sum(x > 0), "i"),
    lambda lax, np, x: lax.psum({"a": x, "b": (x[0], 2)}, "j")["b"][0] + x[0],
    lambda lax, np, x: np.dot(
        lax.all_gather(x, "i", tiled=True).T, lax.all_gather(x, "j", axis=1, tiled=True)[:1, :1].repeat(16, 0)
    ),
    lambda lax, np, x: lax.fori_loop(0, 3, lambda _, v: np.sin(v + lax.pmean(v, "i")), x),
    lambda lax, np, x: lax.scan(lambda c, r: (lax.psum(c * r, "i") / 8, lax.pmax(r, "j")), x[0], x),
    lambda lax, np, x: lax.cond(lax.psum(np.sum(x), ("i", "j")) > 0, lambda v: lax.psum(v, "i"), lambda v: 4 * v, x),
]


def flat_values(tree):
    leaves, _ = weft.tree.flatten(tree)
    return [np.asarray(leaf) for leaf in leaves]


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_beside_jax(number):
    jax = pytest.importorskip("jax")
    program = PROGRAMS[number]
    x = arrays(4, 3, 4, 8)
    twice = lambda vmap, f: vmap(vmap(f, axis_name="j"), axis_name="i")
    ours = lambda x: program(lax, wnp, x)
    theirs = lambda x: program(jax.lax, jax.numpy, x)
    expected = jax.tree_util.tree_leaves(twice(jax.vmap, theirs)(x))
    for f in (twice(weft.vmap, ours), weft.jit(twice(weft.vmap, ours)), twice(weft.vmap, weft.jit(ours))):
        got = flat_values(f(x))
        assert len(got) == len(expected)
        for a, b in zip(got, expected):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_gradients_beside_jax(number):
    """vmap(grad(f)) and grad(vmap(f)), where JAX has them: not for pmax and pmin."""
    jax = pytest.importorskip("jax")
    program = PROGRAMS[number]
    x = arrays(4, 3, 4, 8)
    twice = lambda vmap, f: vmap(vmap(f, axis_name="j"), axis_name="i")

    def loss(lax, np, tree_leaves):
        def f(x):
            return sum(
                np.sum(np.sin(v)) for v in tree_leaves(program(lax, np, x)) if np.issubdtype(v.dtype, np.floating)
            ) + np.sum(x)

        return f

    theirs = loss(jax.lax, jax.numpy, jax.tree_util.tree_leaves)
    ours = loss(lax, wnp, lambda t: weft.tree.flatten(t)[0])
    try:
        expected = twice(jax.vmap, jax.grad(theirs))(x)
        total = jax.grad(lambda x: twice(jax.vmap, theirs)(x).sum())(x)
    except (NotImplementedError, ValueError) as error:
        # JAX has no derivative of pmax and pmin, and its transpose of an all_to_all between two dimensions exchanges
        # them.
        assert any(words in str(error) for words in ("pmax", "pmin", "Expected cotangent type"))
        return
    np.testing.assert_allclose(twice(weft.vmap, weft.grad(ours))(x), expected, rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(
        weft.jit(weft.grad(lambda x: twice(weft.vmap, ours)(x).sum()))(x), total, rtol=2e-4, atol=2e-4
    )
