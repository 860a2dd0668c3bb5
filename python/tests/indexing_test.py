"""Subscripts and x.at[...] against NumPy, in plain calls, under jit, and differentiated."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp

A = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
I = np.array([[0, 1], [1, -1]], np.int32)
J = np.array([1, 0], np.int32)
M2 = np.array([True, False])
M23 = np.array([[True, False, True], [False, True, True]])
KEYS = [
    0,
    -1,
    (1, 2),
    (1, -1, 2, 3),
    (Ellipsis, 0),
    (0, Ellipsis),
    (0, Ellipsis, 1),
    slice(None),
    slice(1, None),
    slice(None, None, -1),
    slice(None, None, 2),
    (slice(None), slice(2, 0, -1)),
    (slice(None), slice(0, 0)),
    (slice(5, 1),),
    (None, 0),
    (0, None, 1),
    (slice(None), None),
    Ellipsis,
    (),
    (Ellipsis, None),
    (slice(None), slice(-2, None), 1),
    (slice(None), slice(None), slice(3, None, -2)),
    (slice(None, None, -1), slice(None), slice(None, None, 3)),
    J,
    I,
    (slice(None), I),
    (slice(None), slice(None), I),
    (J, J),
    (I, J),
    (slice(None), I, J),
    (I, slice(None), J),
    (0, I),
    (0, slice(None), I),
    (I, 0),
    (slice(None), 0, I),
    (slice(None), I, 0),
    (I, None, J),
    # "..." separates also where it stands for no dimension.
    (slice(None), J, Ellipsis, J, J),
    (slice(0, 1), J, Ellipsis, 0, J),
    (slice(None), slice(None), J, Ellipsis, J),
    (J, J, J, Ellipsis, J),
    (slice(None), J, J, J, Ellipsis),
    (None, I),
    (Ellipsis, I),
    (Ellipsis, J, slice(None)),
    (slice(1, None), I, slice(None, None, 2)),
    (slice(None), slice(1, None), J, slice(None, None, -1)),
    M2,
    M23,
    (slice(None), np.array([True, False, True])),
    (M2, 0),
    (M23, I[0][:1]),
    [0, 1],
    [[0, 1], [1, 0]],
    (slice(None), [0, 2]),
    (np.int64(1),),
    (np.array(1),),
    np.zeros((0,), np.int32),
    (slice(None), np.zeros((0, 2), np.int32)),
]


@pytest.mark.parametrize("n", range(len(KEYS)))
def test_read(n):
    key, x = KEYS[n], wnp.asarray(A)
    want = A[key]
    got = x[key]
    assert got.shape == want.shape, key
    np.testing.assert_array_equal(np.asarray(got), want)
    np.testing.assert_array_equal(np.asarray(weft.jit(lambda x: x[key])(x)), want)


@pytest.mark.parametrize("n", range(len(KEYS)))
@pytest.mark.parametrize("kind", ["set", "add", "multiply", "min", "max"])
def test_update(n, kind):
    key, x = KEYS[n], wnp.asarray(A)
    shape = A[key].shape
    rng = np.random.default_rng(n)
    v = rng.integers(-9, 200, shape).astype(np.float32)
    if kind == "set":  # duplicates have no defined winner
        positions = np.arange(A.size).reshape(A.shape)[key].reshape(-1)
        if len(set(positions.tolist())) != positions.size:
            v = np.full(shape, 7, np.float32)
    want = A.copy()
    if kind == "set":
        want[key] = v
    else:
        {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}[kind].at(want, key, v)
    got = getattr(x.at[key], kind)(v)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5)
    np.testing.assert_array_equal(np.asarray(x), A)
    np.testing.assert_allclose(np.asarray(weft.jit(lambda x, v: getattr(x.at[key], kind)(v))(x, v)), want, rtol=1e-5)


def test_update_broadcasts_the_value():
    x = wnp.zeros((3, 4))
    assert x.at[1].set(5).tolist() == [[0] * 4, [5] * 4, [0] * 4]
    assert x.at[:, 1:3].add(np.arange(2.0)).sum().item() == 3
    assert x.at[wnp.array([0, 0])].add(1).tolist() == [[2] * 4, [0] * 4, [0] * 4]
    with pytest.raises(TypeError, match="indexed update"):
        x.at[1].set(np.ones(3))


@pytest.mark.parametrize("kind", ["set", "add", "multiply", "min", "max", "power", "divide"])
def test_update_with_a_list_of_traced_numbers(kind):
    x = np.arange(1.0, 7, dtype=np.float32).reshape(3, 2)

    def from_list(s):
        return getattr(wnp.asarray(x).at[1], kind)([s, s * 2]).sum()

    def from_array(s):
        return getattr(wnp.asarray(x).at[1], kind)(wnp.stack([s, s * 2])).sum()

    for transformed in (weft.jit, weft.grad, weft.vmap):
        s = wnp.array([0.5, 3.0]) if transformed is weft.vmap else 3.0
        np.testing.assert_allclose(transformed(from_list)(s), transformed(from_array)(s), rtol=1e-6)
    nested = weft.jit(lambda s: wnp.zeros((3, 2)).at[:2].set([[s, 1], (2, s)]))(3.0)
    assert nested.tolist() == [[3, 1], [2, 3], [0, 0]]


def test_traced_indices():
    x = wnp.asarray(A)
    f = weft.jit(lambda x, i: x[i])
    g = weft.jit(lambda x, i, j: x[:, i, 1:, j])
    h = weft.jit(lambda x, i: x.at[i].set(0.0))
    for i in [0, 1, -1, -2]:
        np.testing.assert_array_equal(np.asarray(f(x, i)), A[i])
        np.testing.assert_array_equal(np.asarray(g(x, i, 2)), A[:, i, 1:, 2])
        want = A.copy()
        want[i] = 0
        np.testing.assert_array_equal(np.asarray(h(x, i)), want)
    assert f._cache_size() == 1
    np.testing.assert_array_equal(np.asarray(f(x, np.array([0, 1]))), A[[0, 1]])


def test_out_of_bounds():
    x = wnp.arange(5.0)
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 of size 5"):
        x[5]
    with pytest.raises(IndexError, match="too many indices"):
        x[0, 0]
    i = np.array([7, -9, 2])
    assert x[i].tolist() == [4, 0, 2]
    assert x.at[i].get(mode="fill", fill_value=-1).tolist() == [-1, -1, 2]
    assert x.at[np.array([7, 1])].set(9.0).tolist() == [0, 9, 2, 3, 4]
    assert x.at[np.array([7, 1])].set(9.0, mode="clip").tolist() == [0, 9, 2, 3, 9]
    assert weft.jit(lambda x, i: x.at[i].set(9.0))(x, 7).tolist() == [0, 1, 2, 3, 4]
    assert weft.jit(lambda x, i: x[i])(x, 7).item() == 4
    with pytest.raises(IndexError):
        wnp.zeros((0, 3))[0]


def test_against_jax_out_of_bounds():
    jnp = pytest.importorskip("jax.numpy")
    i = np.array([[0, 5], [-1, -7]])
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    for get in [
        lambda x, i: x[i],
        lambda x, i: x[:, i],
        lambda x, i: x[i, i],
        lambda x, i: x.at[i].set(1.0),
        lambda x, i: x.at[:, i].add(2.0),
        lambda x, i: x.at[i, i].multiply(3.0),
        lambda x, i: x.at[1:, i].add(1.0),
        lambda x, i: x.at[::2, i[0]].max(100.0),
    ]:
        np.testing.assert_allclose(np.asarray(get(wnp.asarray(x), i)), np.asarray(get(jnp.asarray(x), i)))


def test_masks():
    x = wnp.arange(6.0)
    assert x[x > 2].tolist() == [3, 4, 5]
    assert x.at[x > 2].set(0).tolist() == [0, 1, 2, 0, 0, 0]
    with pytest.raises(IndexError, match="mask"):
        x[np.array([True, False])]
    with pytest.raises(weft.TracerError, match="where"):
        weft.jit(lambda x: x[x > 2])(x)
    # Known while differentiating outside jit.
    assert weft.grad(lambda x: (x[x > 2] ** 2).sum())(x).tolist() == [0, 0, 0, 6, 8, 10]


def test_bad_indices():
    x = wnp.arange(6.0)
    for key in [1.5, "a", wnp.ones(2), object()]:
        with pytest.raises((TypeError, IndexError)):
            x[key]
    with pytest.raises(ValueError, match="step"):
        x[::0]
    with pytest.raises(IndexError, match="ellipsis"):
        wnp.ones((2, 2))[..., ...]
    with pytest.raises(weft.TracerError, match="dynamic_slice"):
        weft.jit(lambda x, n: x[:n])(x, 3)


def test_gradients():
    x = wnp.asarray(A[0, 0])
    i = np.array([0, 2, 2])
    got = weft.grad(lambda x: (x[i] * np.arange(15.0, dtype=np.float32).reshape(3, 5)).sum())(x)
    want = np.zeros((4, 5), np.float32)
    np.add.at(want, i, np.arange(15.0, dtype=np.float32).reshape(3, 5))
    np.testing.assert_array_equal(np.asarray(got), want)
    g = weft.grad(lambda x, v: (x.at[1].set(v) ** 2).sum(), argnums=(0, 1))(x, wnp.ones(5))
    assert g[0][1].tolist() == [0] * 5 and g[1].tolist() == [2] * 5
    g = weft.grad(lambda v: (x.at[i].add(v) ** 2).sum() / 2)(wnp.zeros((3, 5)))
    np.testing.assert_allclose(np.asarray(g), A[0, 0][i])


def test_take_and_friends():
    x = wnp.asarray(A)
    np.testing.assert_array_equal(np.asarray(wnp.take(x, I, axis=2)), np.take(A, I, 2))
    order = np.argsort(-A, axis=1)
    np.testing.assert_array_equal(np.asarray(wnp.take_along_axis(x, order, 1)), np.take_along_axis(A, order, 1))
    assert [v.tolist() for v in wnp.nonzero(wnp.asarray([[0, 1], [2, 0]]))] == [[0, 1], [1, 0]]
    assert weft.jit(lambda x: wnp.nonzero(x, size=3)[0])(wnp.asarray([0, 4, 0, 5])).tolist() == [1, 3, 0]


def test_bounds_beyond_64_bits():
    """Those of slices are the ends of the array, as in Python; an index is an error."""
    x, big = np.arange(5), 2**70
    for f in (
        lambda v: v[:big],
        lambda v: v[big:],
        lambda v: v[-big:],
        lambda v: v[::big],
        lambda v: v[::-big],
        lambda v: v[big:-big:-1],
        lambda v: v[: 2**63 - 1 : 2**63 - 1],
        lambda v: v[-(2**63) : 2**63 : 2],
    ):
        np.testing.assert_array_equal(f(wnp.asarray(x)), f(x))
        np.testing.assert_array_equal(weft.jit(f)(x), f(x))
    for i in (big, -big):
        with pytest.raises(IndexError, match=r"does not fit 64 bits\n  at .*indexing_test\.py"):
            wnp.asarray(x)[i]


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "float16", "float32", "float64", "complex64"])
def test_downwards(dtype):
    """Vectors read from their last lane to the first; rows of less than one vector, of several, and with a rest."""
    for n in [1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 129]:
        x = (np.arange(3 * n) % 7).reshape(3, n).astype(dtype)
        for y in x, x[:, 1:]:
            np.testing.assert_array_equal(weft.jit(lambda y: y[:, ::-1])(y), y[:, ::-1])
            np.testing.assert_array_equal(weft.jit(lambda y: y[1] + y[1, ::-1])(y), y[1] + y[1, ::-1])
        np.testing.assert_array_equal(weft.jit(lambda x: x[::-1, -2::-1])(x), x[::-1, -2::-1])


def test_nested_lists_that_hold_traced_indices():
    x = np.arange(24).reshape(4, 3, 2)
    lists = {
        "1": lambda i, j: [i, j],
        "2": lambda i, j: [[i, 0], [1, j]],
        "tuples": lambda i, j: [(i, 0), (1, j)],
        "3": lambda i, j: [[[i], [0]], [[1], [j]]],
        "arrays": lambda i, j: [wnp.stack([i, j]) if isinstance(i, weft.Array) else np.stack([i, j]), [0, 1]],
    }
    for name, make in lists.items():
        for f in (lambda x, i, j, m=make: x[m(i, j)], lambda x, i, j, m=make: x[:, m(i, j), 0],
                  lambda x, i, j, m=make: x[m(i, j), m(j, i)]):  # fmt: skip
            want = f(x, 2, 1)
            np.testing.assert_array_equal(weft.jit(f)(x, 2, 1), want, err_msg=name)
            np.testing.assert_array_equal(weft.vmap(f, in_axes=(None, 0, 0))(x, wnp.array([2]), wnp.array([1])), [want])
    with pytest.raises(TypeError, match="stack"):
        weft.jit(lambda x, i: x[[[i], [0, 1]]])(x, 1)
    with pytest.raises(TypeError, match="an index list must hold integers, got 'a'"):
        weft.jit(lambda x, i: x[[i, "a"]])(x, 1)
