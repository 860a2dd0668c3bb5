"""Sparse arrays of weft.as_jax: every operation, in every division of dimensions into batch, sparse and dense ones,
against NumPy on whole arrays; derivatives against those of whole arrays; what is stored against JAX."""

import itertools

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import lax
from weft.as_jax import sparse
from weft.as_jax.sparse.linalg import lobpcg_standard, spsolve

SHAPE = (3, 4, 2)
LAYOUTS = [(b, d) for b in range(4) for d in range(4 - b)]
MATRICES = [sparse.COO, sparse.CSR, sparse.CSC, sparse.BCOO, sparse.BCSR]


def whole(shape=SHAPE, seed=0, dtype="float32"):
    """An array of which half is 0."""
    rng = np.random.default_rng(seed)
    x = rng.integers(1, 9, shape) * rng.integers(0, 2, shape)
    return x.astype(dtype)


def with_twice(x, n_batch, n_dense):
    """A BCOO with each place twice, and places outside; and what it is."""
    mat = sparse.BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense)
    outside = np.array(x.shape[n_batch : x.ndim - n_dense], "int32")
    beyond = np.broadcast_to(outside, (*mat.indices.shape[:-2], 1, mat.n_sparse))
    more = np.full((*mat.data.shape[:n_batch], 1, *mat.data.shape[n_batch + 1 :]), 100, x.dtype)
    n = n_batch
    if not mat.n_sparse:  # nothing is outside of a place that is one
        more = np.zeros_like(more)
    data = wnp.concatenate([mat.data, more, mat.data], axis=n)
    places = wnp.concatenate([mat.indices, beyond, mat.indices], axis=n)
    return sparse.BCOO((data, places), shape=x.shape), 2 * x


def cases(n_batch, n_dense):
    """name -> (function of a sparse array, of a whole one)."""
    end = 3 - n_dense
    kinds = [range(n_batch), range(n_batch, end), range(end, 3)]
    backwards = [d for kind in kinds for d in list(kind)[::-1]]
    out = {
        "todense": (lambda m: m, lambda x: x),
        "transpose": (lambda m: m.transpose(backwards), lambda x: x.transpose(backwards)),
        "rev": (lambda m: sparse.bcoo_rev(m, dimensions=(0, 2)), lambda x: x[::-1, :, ::-1]),
        "slice": (
            lambda m: sparse.bcoo_slice(m, start_indices=(1, 0, 0), limit_indices=(3, 4, 1), strides=(1, 3, 1)),
            lambda x: x[1:3, 0:4:3, 0:1],
        ),
        "dynamic_slice": (lambda m: sparse.bcoo_dynamic_slice(m, (-1, 9, 0), (2, 2, 1)), lambda x: x[1:3, 2:4, 0:1]),
        "concatenate": (lambda m: sparse.bcoo_concatenate([m, m], dimension=0), lambda x: np.concatenate([x, x])),
        "integers": (lambda m: m[1], lambda x: x[1]),
        "negative": (lambda m: m[-1, ::-2], lambda x: x[-1, ::-2]),
        "none": (lambda m: m[None], lambda x: x[None]),
        "sum_duplicates": (lambda m: m.sum_duplicates(), lambda x: x),
        "sorted": (lambda m: m.sort_indices(), lambda x: x),
        "layout": (lambda m: m.update_layout(n_batch=0, n_dense=0), lambda x: x),
        "times": (lambda m: m * np.float32([[1], [2], [3], [4]]), lambda x: x * np.float32([[1], [2], [3], [4]])),
        "over": (lambda m: m / np.float32([2, 4]), lambda x: x / np.float32([2, 4])),
        "squared": (lambda m: m**2, lambda x: x**2),
        "less": (lambda m: m - m * 3, lambda x: -2 * x),
        "product": (lambda m: m * m, lambda x: x * x),
        "abs": (lambda m: abs(-m), lambda x: x),
        "cut": (lambda m: sparse.bcoo_squeeze(m[:, :1], dimensions=(1,)), lambda x: x[:, 0]),
    }
    if n_dense == 3:
        del out["concatenate"]
    for axes in itertools.chain.from_iterable(itertools.combinations(range(3), k) for k in range(4)):
        out[f"sum{axes}"] = (
            lambda m, axes=axes: sparse.bcoo_reduce_sum(m, axes=axes),
            lambda x, axes=axes: x.sum(axes),
        )
    if not n_dense:
        out["array"] = (lambda m: m[:, np.array([[2, -1]]), 1], lambda x: x[:, np.array([[2, -1]]), 1])
        out["mask"] = (lambda m: m[np.array([True, False, True])], lambda x: x[np.array([True, False, True])])
        out["apart"] = (
            lambda m: m[np.array([0, 2]), :, np.array([1, 0])],
            lambda x: x[np.array([0, 2]), :, np.array([1, 0])],
        )
    return out


@pytest.mark.parametrize(("n_batch", "n_dense"), LAYOUTS)
def test_operations(n_batch, n_dense):
    mat, x = with_twice(whole(), n_batch, n_dense)
    for name, (of_sparse, of_whole) in cases(n_batch, n_dense).items():
        expected = of_whole(x)
        for made in (of_sparse, weft.jit(of_sparse)):
            if made is not of_sparse and name == "sum_duplicates":
                continue  # whose size depends on the numbers
            got = made(mat)
            assert got.shape == expected.shape, name
            np.testing.assert_array_equal(sparse.todense(got), expected, err_msg=name)


@pytest.mark.parametrize(("n_batch", "n_dense"), LAYOUTS)
def test_layouts(n_batch, n_dense):
    x = whole()
    for to in LAYOUTS:
        mat = sparse.BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense)
        more = to[0] > n_batch or to[1] > n_dense
        if more:
            with pytest.raises(sparse.SparseEfficiencyError):
                mat.update_layout(n_batch=to[0], n_dense=to[1])
            with pytest.warns(sparse.SparseEfficiencyWarning):
                mat.update_layout(n_batch=to[0], n_dense=to[1], on_inefficient="warn")
        new = mat.update_layout(n_batch=to[0], n_dense=to[1], on_inefficient=None)
        assert (new.n_batch, new.n_dense) == to
        np.testing.assert_array_equal(new.todense(), x)


@pytest.mark.parametrize(("n_batch", "n_dense"), LAYOUTS)
def test_products(n_batch, n_dense):
    mat, x = with_twice(whole(), n_batch, n_dense)
    for contracted in itertools.chain.from_iterable(itertools.combinations(range(3), k) for k in range(4)):
        for batch in itertools.chain.from_iterable(
            itertools.combinations([d for d in range(n_batch) if d not in contracted], k) for k in range(3)
        ):
            y = whole((2, 3, 4), seed=1)
            place = {0: 1, 1: 2, 2: 0}  # of a dimension in y
            numbers = (contracted, [place[d] for d in contracted]), (batch, [place[d] for d in batch])
            swapped = tuple(pair[::-1] for pair in numbers)
            np.testing.assert_allclose(
                sparse.bcoo_dot_general(mat, y, dimension_numbers=numbers), lax.dot_general(x, y, numbers)
            )
            np.testing.assert_allclose(
                weft.jit(lambda m, y, s=swapped: sparse.bcoo_dot_general(y, m, dimension_numbers=s))(mat, y),
                lax.dot_general(y, x, swapped),
            )


@pytest.mark.parametrize(("shape_x", "shape_y", "n_x", "n_y", "numbers"), [
    ((5,), (5,), 0, 0, (([0], [0]), ([], []))),
    ((3, 5), (5, 2), 0, 0, (([1], [0]), ([], []))),
    ((3, 5), (4, 2), 0, 0, (([], []), ([], []))),
    ((2, 3, 4), (2, 4, 3), 1, 1, (([2], [1]), ([0], [0]))),
    ((2, 3, 4), (3, 4), 2, 1, (([2], [1]), ([1], [0]))),
])  # fmt: skip
def test_products_of_two(shape_x, shape_y, n_x, n_y, numbers):
    x, full_x = with_twice(whole(shape_x), n_x, 0)
    y, full_y = with_twice(whole(shape_y, seed=3), n_y, 0)
    expected = lax.dot_general(full_x, full_y, numbers)
    for f in (sparse.bcoo_dot_general, weft.jit(sparse.bcoo_dot_general, static_argnames="dimension_numbers")):
        fixed = tuple(tuple(map(tuple, pair)) for pair in numbers)
        got = f(x, y, dimension_numbers=fixed)
        assert isinstance(got, sparse.BCOO)
        assert got.nse <= np.prod(got.shape[got.n_batch :])
        np.testing.assert_allclose(got.todense(), expected)


@pytest.mark.parametrize(("n_batch", "n_dense"), LAYOUTS)
def test_derivatives(n_batch, n_dense):
    mat = sparse.BCOO.fromdense(whole(), n_batch=n_batch, n_dense=n_dense)
    y = whole((2, 5), seed=2)

    def of_whole(x):
        return wnp.tanh(x[1:] * 0.1).sum(0) @ y

    def of_parts(data):
        m = mat._with(data)
        cut = sparse.bcoo_slice(m, start_indices=(1, 0, 0), limit_indices=SHAPE)
        return wnp.tanh(cut.todense() * 0.1).sum(0) @ y

    for jacobian in (weft.jacfwd, weft.jacrev):
        expected = jacobian(of_whole)(mat.todense())
        got = jacobian(of_parts)(mat.data)
        seen = weft.vmap(weft.vmap(lambda g: sparse.bcoo_extract(mat, g).data))(expected)
        if mat.n_sparse:
            np.testing.assert_allclose(got, seen, rtol=1e-5)
        else:
            np.testing.assert_allclose(got.sum(2 + n_batch), expected, rtol=1e-5)


@pytest.mark.parametrize("kind", MATRICES, ids=lambda kind: kind.__name__)
def test_matrices(kind):
    x, y = whole((4, 6)), whole((6, 3), seed=1)
    mat = kind.fromdense(x)
    assert (mat.shape, mat.ndim, mat.size, mat.nse, len(mat)) == ((4, 6), 2, 24, int((x != 0).sum()), 4)
    for run in (lambda f, *a: f(*a), lambda f, *a: weft.jit(f)(*a)):
        np.testing.assert_array_equal(run(sparse.todense, mat), x)
        np.testing.assert_array_equal(run(lambda m, y: m @ y, mat, y), x @ y)
        np.testing.assert_array_equal(run(lambda m, v: m @ v, mat, y[:, 0]), x @ y[:, 0])
        np.testing.assert_array_equal(run(lambda m: (2 * -m).todense(), mat), -2 * x)
    if kind is not sparse.BCSR:
        np.testing.assert_array_equal(mat.T.todense(), x.T)
        np.testing.assert_array_equal(mat.T @ y[:4], x.T @ y[:4])
    name = kind.__name__.lower()
    for n, m, k in itertools.product((2, 5), (None, 3), (-2, 0, 1)):
        np.testing.assert_array_equal(sparse.eye(n, m, k, sparse_format=name).todense(), np.eye(n, m, k))
    none = sparse.empty((2, 5), sparse_format=name)
    assert isinstance(none, kind)
    np.testing.assert_array_equal(none.todense(), np.zeros((2, 5)))
    with pytest.raises(TypeError):
        hash(mat)
    leaves, structure = weft.tree_util.tree_flatten(mat)
    again = weft.tree_util.tree_unflatten(structure, leaves)
    np.testing.assert_array_equal(again.todense(), x)


@pytest.mark.parametrize("kind", [sparse.BCOO, sparse.BCSR], ids=lambda kind: kind.__name__)
def test_batches_under_vmap(kind):
    x, v = whole((3, 4, 5)), whole((5,), seed=1)
    mat = kind.fromdense(x, n_batch=1)
    got = weft.vmap(lambda m: m @ v)(mat)
    np.testing.assert_array_equal(got, x @ v)
    one = kind.fromdense(x[0])
    np.testing.assert_array_equal(weft.vmap(lambda v: one @ v, 1, 1)(whole((5, 2))), x[0] @ whole((5, 2)))
    made = weft.vmap(lambda row: sparse.empty(row.shape, row.dtype, sparse_format=kind.__name__.lower()))(
        wnp.asarray(x)
    )
    assert (made.n_batch, made.shape) == (1, (3, 4, 5))


def test_gradients_are_sparse():
    x, y = whole((5, 4)), whole((4,), seed=1)
    mat = sparse.BCOO.fromdense(x)
    f = lambda m, y: ((m @ y) ** 2).sum()
    value, (grad, of_y) = sparse.value_and_grad(f, argnums=(0, 1))(mat, y)
    dense, dense_y = weft.grad(f, (0, 1))(wnp.asarray(x), wnp.asarray(y))
    assert isinstance(grad, sparse.BCOO)
    np.testing.assert_allclose(value, ((x @ y) ** 2).sum())
    np.testing.assert_allclose(of_y, dense_y)
    np.testing.assert_allclose(grad.todense(), np.where(x != 0, dense, 0))
    np.testing.assert_allclose(sparse.grad(f)({"m": mat}["m"], y).data, grad.data)
    rows = sparse.jacrev(lambda m: m @ y)(mat)
    assert rows.shape == (5, 5, 4)
    np.testing.assert_allclose(rows.todense(), sparse.jacfwd(lambda m: m @ y)(mat).todense())


PROGRAMS = {
    "tanh": lambda m: -wnp.tanh(m * 3).T,
    "product": lambda m: m.T @ (wnp.arange(4.0) + 1),
    "joined": lambda m: wnp.concatenate([m, m * 2], 1).reshape(3, 4, 4)[0],
    "sums": lambda m: (m.sum(), m.sum(0), (m - 2 * m).sum(1)),
    "loop": lambda m: lax.fori_loop(0, 3, lambda i, a: a * 2, m),
    "chosen": lambda m: lax.cond(m.sum() > 0, lambda m: m, lambda m: 2 * m, m),
    "inside jit": lambda m: weft.jit(lambda m: wnp.sqrt(m) / 2)(m),
    "custom": lambda m: lax.bessel_i1e(m),
    "squeezed": lambda m: m[:, None][::-1, 0, 1:3],
    "whole": lambda m: sparse.todense(m) + 1,
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("kind", [sparse.BCOO, sparse.BCSR], ids=lambda kind: kind.__name__)
def test_functions_of_sparse_arrays(name, kind):
    f, x = PROGRAMS[name], whole((4, 6))[:, :6].reshape(4, 6)
    if name == "joined":
        x = whole((4, 6))
    mat = kind.fromdense(x)
    for transformed in (sparse.sparsify(f), weft.jit(sparse.sparsify(f))):
        got = weft.tree_util.tree_map(
            sparse.todense, transformed(mat), is_leaf=lambda v: isinstance(v, sparse.JAXSparse)
        )
        weft.tree_util.tree_map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), got, f(wnp.asarray(x)))


@pytest.mark.parametrize(("f", "message"), [
    (wnp.cos, "sparse rule for cos is not implemented because it would result in dense output"),
    (lambda m: m**-1, "integer_pow with non-positive exponent"),
    (lambda m: 1 / m, "sparse denominator"),
    (lambda m: wnp.sort(m), "sparse rule for sort is not implemented"),
])  # fmt: skip
def test_what_would_be_whole_is_refused(f, message):
    with pytest.raises(NotImplementedError, match=message):
        sparse.sparsify(f)(sparse.BCOO.fromdense(whole((3, 4))))


def test_what_is_stored_is_what_jax_stores():
    jax_sparse = pytest.importorskip("jax.experimental.sparse")
    for n_batch, n_dense in LAYOUTS:
        ours = sparse.BCOO.fromdense(whole(), n_batch=n_batch, n_dense=n_dense)
        theirs = jax_sparse.BCOO.fromdense(whole(), n_batch=n_batch, n_dense=n_dense)
        assert repr(ours) == repr(theirs)
        np.testing.assert_array_equal(ours.data, theirs.data)
        np.testing.assert_array_equal(ours.indices, theirs.indices)
        for f in (lambda m: m.sum_duplicates(), lambda m: m.sort_indices(), lambda m: m[1]):
            np.testing.assert_array_equal(f(ours).todense(), f(theirs).todense())
            assert (f(ours).n_batch, f(ours).n_dense) == (f(theirs).n_batch, f(theirs).n_dense)


def test_equations_and_eigenvalues():
    x = whole((6, 6)) + 10 * np.eye(6, dtype="float32")
    mat, b = sparse.CSR.fromdense(x), whole((6,), seed=1)
    np.testing.assert_allclose(spsolve(mat.data, mat.indices, mat.indptr, b), np.linalg.solve(x, b), rtol=1e-5)
    values = np.linspace(1, 40, 40).astype("float32")
    start = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
    found, vectors, steps = lobpcg_standard(sparse.BCOO.fromdense(np.diag(values)), start, m=200)
    np.testing.assert_allclose(found, [40, 39, 38], rtol=1e-4)
    np.testing.assert_allclose(abs(vectors[-1:-4:-1]), np.eye(3), atol=1e-3)
    assert 0 < int(steps) < 200
    with pytest.raises(ValueError, match=r"search dim \* 5 < matrix dim"):
        lobpcg_standard(np.eye(5, dtype="float32"), start[:5])


def test_random_arrays():
    mat = sparse.random_bcoo(weft.random.key(0), (3, 10, 10), nse=0.3, n_batch=1)
    assert (mat.nse, mat.n_batch) == (30, 1)
    assert int((mat.todense() != 0).sum()) == 90
