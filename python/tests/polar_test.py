"""lax.linalg.qdwh: against JAX's, which says how many iterations there are, against SciPy's polar decomposition, and
its derivatives against those by singular values and by differences."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import lax

scipy_linalg = pytest.importorskip("scipy.linalg")
DTYPES = ("float32", "float64", "complex64", "complex128")
OPTIONS = [
    {},
    *({"max_iterations": most} for most in (0, 1, 2, 4, 20)),
    *({"eps": eps} for eps in (0.3, 1e-2, 1e-5)),
    {"is_hermitian": True},
    {"dynamic_shape": (5, 3)},
    {"dynamic_shape": (3, 3)},
    {"dynamic_shape": (6, 4), "max_iterations": 3},
]
SPECIAL = {
    "zeros": np.zeros((4, 3)),
    "ones": np.ones((3, 3)),
    "nearly singular": np.diag([1.0, 1e-5, 0.0]),
    "triangle": np.triu(np.ones((6, 6))),
    "identity": np.eye(5),
    "negative": -np.eye(3),
    "large": np.diag([1e30, 1e25]),
    "small": np.diag([1e-30, 1e-32]),
    "NaN": np.full((3, 2), np.nan),
    "nothing": np.zeros((0, 0)),
    "no columns": np.zeros((3, 0)),
}


def matrix(rows, columns, dtype, condition=10.0, seed=0):
    """Of this quotient of the largest and the smallest singular value."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2, rows, columns)).astype("float64")
    x = x[0] + 1j * x[1] if dtype.startswith("c") else x[0]
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    return ((u * np.geomspace(1, 1 / condition, len(s))) @ vh).astype(dtype)


def eps(dtype):
    return np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows, columns", [(1, 1), (4, 4), (7, 4), (20, 12), (5, 1)])
@pytest.mark.parametrize("condition", [1.0, 1e2, 1e6])
def test_factors(rows, columns, dtype, condition):
    x = matrix(rows, columns, dtype, min(condition, 0.1 / eps(dtype)))
    for f in (lax.linalg.qdwh, weft.jit(lax.linalg.qdwh)):
        u, h, iterations, converged = f(x)
        assert (u.dtype, h.dtype, u.shape, h.shape) == (dtype, dtype, (rows, columns), (columns, columns))
        u, h = np.asarray(u), np.asarray(h)
        bound = 50 * columns * eps(dtype)
        np.testing.assert_allclose(u.conj().T @ u, np.eye(columns), atol=bound)
        np.testing.assert_allclose(u @ h, x, atol=bound)
        np.testing.assert_array_equal(h, h.conj().T)
        assert np.linalg.eigvalsh(h).min() > -bound
        np.testing.assert_allclose(h, scipy_linalg.polar(x)[1], atol=bound)
        assert bool(converged) and 0 < int(iterations) <= 7


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("more", OPTIONS, ids=str)
def test_as_jax(dtype, more):
    jax = pytest.importorskip("jax")
    for k, condition in enumerate((2.0, 1e3)):
        x = matrix(6, 4, dtype, condition, k)
        mine = lax.linalg.qdwh(x, **more)
        with jax.enable_x64(dtype in ("float64", "complex128")):
            theirs = [np.asarray(v) for v in jax.lax.linalg.qdwh(x, **more)]
        assert [str(v.dtype) for v in mine[:2]] == [str(v.dtype) for v in theirs[:2]]
        assert (int(mine[2]), bool(mine[3])) == (int(theirs[2]), bool(theirs[3]))
        for a, b in zip(mine[:2], theirs):
            np.testing.assert_allclose(a, b, atol=200 * eps(dtype) * condition)


@pytest.mark.parametrize("x", SPECIAL.values(), ids=SPECIAL)
def test_special_matrices(x):
    jax = pytest.importorskip("jax")
    x = x.astype("float32")
    mine, theirs = lax.linalg.qdwh(x), jax.lax.linalg.qdwh(x)
    assert bool(mine[3]) == bool(theirs[3])
    np.testing.assert_allclose(mine[1], theirs[1], rtol=1e-4, atol=1e-5 * max(np.abs(x).max(initial=0), 1e-30))
    if x.size == 0 or not np.isfinite(x).all() or not x.any() or np.linalg.cond(x.astype("float64")) < 1e4:
        np.testing.assert_allclose(mine[0], theirs[0], atol=1e-5)
        assert int(mine[2]) == int(theirs[2])
    else:  # of what x maps nearly to 0, u is rounding, and how long that moves, too
        assert abs(int(mine[2]) - int(theirs[2])) <= 2


def test_padding_of_any_size():
    x = matrix(6, 4, "float32")
    f = weft.jit(lambda m, n: lax.linalg.qdwh(x, dynamic_shape=(m, n)))
    for m, n in ((6, 4), (6, 1), (4, 4), (3, 2), (1, 1)):
        u, h, _, converged = f(m, n)
        part = lax.linalg.qdwh(x[:m, :n])
        np.testing.assert_allclose(u[:m, :n], part[0], atol=1e-5)
        np.testing.assert_allclose(h[:n, :n], part[1], atol=1e-5)
        assert bool(converged)
        np.testing.assert_array_equal(np.asarray(u)[m:], 0)
        np.testing.assert_array_equal(np.asarray(u)[:, n:], 0)
        np.testing.assert_array_equal(np.asarray(h)[n:], 0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32"])
def test_other_dtypes(dtype):
    x = wnp.asarray(np.array([[4, 1], [2, 3], [0, 1]])).astype(dtype)
    u, h, *_ = lax.linalg.qdwh(x)
    assert u.dtype == h.dtype == (dtype if dtype != "int32" else "float32")
    np.testing.assert_allclose(np.asarray(u @ h, "float32"), np.asarray(x, "float32"), atol=0.05)


def test_batches():
    x = np.stack([matrix(5, 3, "float32", c, k) for k, c in enumerate((1.0, 1e3, 1e6))])
    u, h, iterations, converged = weft.vmap(lax.linalg.qdwh)(x)
    for k, each in enumerate(x):
        alone = lax.linalg.qdwh(each)
        np.testing.assert_allclose(u[k], alone[0], atol=1e-3)
        np.testing.assert_allclose(h[k], alone[1], atol=1e-5)
        assert int(iterations[k]) == int(alone[2]) and bool(converged[k])


def by_singular_values(x):
    u, s, vh = wnp.linalg.svd(x, full_matrices=False)
    return u @ vh, wnp.conj(vh.T) * s @ vh


@pytest.mark.parametrize("rows, columns", [(3, 3), (6, 4)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives(rows, columns, dtype):
    x, d = matrix(rows, columns, dtype, 20.0), matrix(rows, columns, dtype, 3.0, 1)
    f = lambda x: lax.linalg.qdwh(x)[:2]
    value, tangent = weft.jvp(f, (x,), (d,))
    step = 1e-6
    for k in range(2):
        slope = (np.asarray(f(x + step * d)[k]) - np.asarray(f(x - step * d)[k])) / (2 * step)
        np.testing.assert_allclose(tangent[k], slope, atol=1e-6 * np.abs(slope).max())
    ct = tuple(matrix(*v.shape, dtype, 2.0, 2 + k) for k, v in enumerate(value))
    (gradient,) = weft.jit(lambda x, ct: weft.vjp(f, x)[1](ct))(x, ct)
    (expected,) = weft.vjp(by_singular_values, x)[1](ct)
    np.testing.assert_allclose(gradient, expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(
        sum(np.vdot(c.conj(), t).real for c, t in zip(ct, tangent)), np.vdot(gradient.conj(), d).real, rtol=1e-8
    )
    loss = lambda x: (lax.linalg.qdwh(x)[0] ** 2).real[0].sum()
    if dtype == "float64":
        plain = lambda x: (by_singular_values(x)[0] ** 2)[0].sum()
        np.testing.assert_allclose(weft.hessian(loss)(x), weft.hessian(plain)(x), rtol=1e-6, atol=1e-7)


def test_what_does_not_fit():
    x = matrix(4, 3, "float32")
    for f, kind, message in (
        (lambda: lax.linalg.qdwh(x.T), ValueError, r"as many rows as columns or more, got shape \(3, 4\)"),
        (lambda: lax.linalg.qdwh(x[None]), ValueError, r"must be a matrix .* \(1, 4, 3\)"),
        (lambda: lax.linalg.qdwh(x, max_iterations=2.5), TypeError, "max_iterations must be an integer.*got 2.5"),
        (lambda: weft.jit(lambda k: lax.linalg.qdwh(x, max_iterations=k))(3), TypeError, "known when the program"),
    ):
        with pytest.raises(kind, match=message):
            f()
    assert lax.linalg.qdwh.__module__ == "weft.lax.linalg" and not hasattr(lax, "qdwh")
