"""Matrix factorisations of every dtype: they reproduce the matrix, their vectors are orthonormal, their values are
LAPACK's through NumPy."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp

DTYPES = ["float32", "float64", "complex64", "complex128"]
SHAPES = [(1, 1), (5, 5), (7, 3), (3, 7), (2, 4, 4), (2, 3, 5, 2), (40, 40), (64, 20)]


def matrix(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def close(got, want, dtype):
    scale = max(1.0, float(np.abs(want).max(initial=0)))
    np.testing.assert_allclose(got, want, atol=scale * (2e-4 if dtype in ("float32", "complex64") else 1e-11), rtol=0)


def both(f):
    """Eager and compiled."""
    return [f, weft.jit(f)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_svd(shape, dtype):
    x = matrix(shape, dtype)
    m, n = shape[-2:]
    k = min(m, n)
    want = np.linalg.svd(x, compute_uv=False)
    for full in [False, True]:
        for f in both(lambda a: wnp.linalg.svd(a, full_matrices=full)):  # noqa: B023
            u, s, vh = (np.asarray(v) for v in f(x))
            assert u.shape == (*shape[:-1], m if full else k) and vh.shape == (*shape[:-2], n if full else k, n)
            assert u.dtype == vh.dtype == x.dtype and s.dtype == want.dtype
            close(s, want, dtype)
            close(u[..., :k] * s[..., None, :] @ vh[..., :k, :], x, dtype)
            close(adjoint(u) @ u, np.broadcast_to(np.eye(u.shape[-1]), (*shape[:-2],) + (u.shape[-1],) * 2), dtype)
            close(vh @ adjoint(vh), np.broadcast_to(np.eye(vh.shape[-2]), (*shape[:-2],) + (vh.shape[-2],) * 2), dtype)
    for f in both(wnp.linalg.svdvals):
        close(np.asarray(f(x)), want, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [s for s in SHAPES if s[-1] == s[-2]])
def test_eigh(shape, dtype):
    x = matrix(shape, dtype)
    x = x + adjoint(x)
    want = np.linalg.eigvalsh(x)
    for f in both(wnp.linalg.eigh):
        w, v = (np.asarray(r) for r in f(x))
        assert w.dtype == want.dtype and v.dtype == x.dtype
        close(w, want, dtype)
        assert (np.diff(w, axis=-1) >= 0).all()
        close(v * w[..., None, :] @ adjoint(v), x, dtype)
        close(adjoint(v) @ v, np.broadcast_to(np.eye(shape[-1]), shape), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_qr(shape, dtype):
    x = matrix(shape, dtype)
    for f in both(wnp.linalg.qr):
        q, r = (np.asarray(v) for v in f(x))
        close(q @ r, x, dtype)
        close(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2],) + (q.shape[-1],) * 2), dtype)
        assert (np.tril(r, -1) == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [s for s in SHAPES if s[-1] == s[-2]])
def test_cholesky(shape, dtype):
    x = matrix(shape, dtype)
    x = (x @ adjoint(x) + shape[-1] * np.eye(shape[-1])).astype(dtype)
    for f in both(wnp.linalg.cholesky):
        got = np.asarray(f(x))
        close(got, np.linalg.cholesky(x), dtype)  # unique
        assert (np.triu(got, 1) == 0).all()


def test_of_matrices_without_full_rank():
    for x in [np.zeros((4, 3), np.float32), np.ones((3, 5), np.float32), np.diag([1.0, 0, 2]).astype(np.float32)]:
        for f in both(lambda a: wnp.linalg.svd(a, full_matrices=True)):
            u, s, vh = (np.asarray(v) for v in f(x))
            k = len(s)
            close(u[:, :k] * s @ vh[:k], x, "float32")
            close(u.T @ u, np.eye(x.shape[0]), "float32")
            close(vh @ vh.T, np.eye(x.shape[1]), "float32")
    x = np.eye(4, dtype=np.float32)  # equal eigenvalues
    w, v = (np.asarray(r) for r in wnp.linalg.eigh(x))
    close(w, np.ones(4), "float32")
    close(v @ v.T, x, "float32")
