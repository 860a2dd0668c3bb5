"""Eigenvalues and eigenvectors of general matrices, zeros of polynomials: against NumPy, JAX and differences."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp

RNG = np.random.default_rng(3)


def matrix(dtype, shape=(5, 5)):
    a = RNG.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * RNG.standard_normal(shape)
    return a.astype(dtype)


def by_parts(w):
    return np.array(sorted(w, key=lambda z: (round(z.real, 4), z.imag)))


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_eig(dtype, jitted):
    a = matrix(dtype)
    f = weft.jit(wnp.linalg.eig) if jitted else wnp.linalg.eig
    w, v = (np.asarray(x) for x in f(a))
    tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-12
    assert w.dtype == v.dtype == np.result_type(dtype, np.complex64)
    np.testing.assert_allclose(a @ v, v * w, atol=tolerance * 10)
    np.testing.assert_allclose(np.linalg.norm(v, axis=0), np.ones(5), atol=tolerance)
    largest = v[np.abs(v).argmax(0), np.arange(5)]
    np.testing.assert_allclose(largest.imag, 0, atol=tolerance)
    assert (largest.real > 0).all()
    np.testing.assert_allclose(by_parts(w), by_parts(np.linalg.eigvals(a)), atol=tolerance * 10)
    assert (np.diff(w.real) >= -tolerance).all()
    g = weft.jit(wnp.linalg.eigvals) if jitted else wnp.linalg.eigvals
    np.testing.assert_allclose(by_parts(np.asarray(g(a))), by_parts(w), atol=tolerance * 10)


def test_stacks_and_sizes():
    a = matrix("complex64", (2, 3, 4, 4))
    w, v = wnp.linalg.eig(a)
    assert w.shape == (2, 3, 4) and v.shape == (2, 3, 4, 4)
    np.testing.assert_allclose(a @ np.asarray(v), np.asarray(v) * np.asarray(w)[..., None, :], atol=1e-4)
    mapped = weft.vmap(wnp.linalg.eigvals)(a[0])
    np.testing.assert_allclose(np.asarray(mapped), np.asarray(w[0]), atol=1e-4)
    assert wnp.linalg.eig(np.ones((0, 0), np.float32)).eigenvalues.shape == (0,)
    assert wnp.linalg.eigvals(np.array([[3.0]], np.float32)).tolist() == [3 + 0j]
    assert np.isnan(np.asarray(wnp.linalg.eigvals(np.array([[np.nan, 1], [1, 1]])))).all()
    with pytest.raises(ValueError, match="eig: a square matrix is needed"):
        wnp.linalg.eig(np.ones((2, 3)))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("what", ["values", "vectors"])
def test_derivatives_against_differences(what, dtype):
    a = matrix(dtype, (4, 4)) + np.diag([0, 3, 6, 9])
    d = matrix(dtype, (4, 4))
    if what == "values":
        f = lambda a: wnp.linalg.eigvals(a)
    else:
        f = lambda a: wnp.linalg.eig(a).eigenvectors
    h = 1e-6
    expected = (np.asarray(f(a + h * d)) - np.asarray(f(a - h * d))) / (2 * h)
    for g in (f, weft.jit(f)):
        tangent = weft.jvp(g, (a,), (d,))[1]
        np.testing.assert_allclose(np.asarray(tangent), expected, atol=1e-7)
    # Reverse mode is the transpose: the real pairing of a cotangent with the tangent.
    value, pullback = weft.vjp(f, a)
    ct = matrix("complex128", value.shape)
    back = np.asarray(pullback(wnp.array(ct))[0])
    np.testing.assert_allclose((back * d).sum().real, (ct * expected).sum().real, rtol=1e-5)


def test_second_derivative():
    a, b = matrix("float64", (3, 3)) + np.diag([0.0, 4.0, 8.0]), np.triu(np.ones((3, 3)))
    # The sum of squared eigenvalues is the trace of the square, whose second derivative along b is 2 tr(b^2).
    f = lambda t: wnp.sum(wnp.real(wnp.linalg.eigvals(a + t * b) ** 2))
    t = np.float64(0.3)
    np.testing.assert_allclose(float(weft.grad(f)(t)), 2 * np.trace((a + t * b) @ b), rtol=1e-10)
    np.testing.assert_allclose(float(weft.grad(weft.grad(f))(t)), 2 * np.trace(b @ b), rtol=1e-8)


def test_gradient_of_eigenvalues_as_jax():
    jax = pytest.importorskip("jax")
    a = matrix("float32", (4, 4)) + np.diag([0, 3, 6, 9]).astype(np.float32)
    ours = weft.grad(lambda a: wnp.sum(wnp.abs(wnp.linalg.eigvals(a)) ** 3))(a)
    theirs = jax.grad(lambda a: jax.numpy.sum(jax.numpy.abs(jax.numpy.linalg.eigvals(a)) ** 3))(a)
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize(
    "p",
    [
        [1.0, -6.0, 11.0, -6.0],
        [2.0, 0.0, 2.0],
        [0.0, 0.0, 1.0, -3.0, 2.0, 0.0, 0.0],
        [1.0, 2.0 + 1j, -3j],
        [5.0],
        [0.0],
        [],
        [3, 1],
        [0.0, 4.0, 0.0],
    ],
)
def test_roots(p):
    ours = np.asarray(wnp.roots(np.array(p)))
    theirs = np.roots(np.array(p))
    assert ours.shape == theirs.shape and ours.dtype.kind == "c"
    np.testing.assert_allclose(by_parts(ours), by_parts(theirs.astype(complex)), atol=1e-5)


def test_roots_inside_jit():
    p = np.array([1.0, -6.0, 11.0, -6.0])
    ours = weft.jit(lambda p: wnp.roots(p, strip_zeros=False))(p)
    np.testing.assert_allclose(np.asarray(ours), [1, 2, 3], atol=1e-10)
    with pytest.raises(weft.TracerError):
        weft.jit(wnp.roots)(p)
    # The derivative of a zero x with respect to the coefficient of x^k is -x^k / p'(x).
    gradient = weft.grad(lambda p: wnp.real(wnp.roots(p, strip_zeros=False))[2])(p)
    np.testing.assert_allclose(np.asarray(gradient), [-(3.0**k) / 2 for k in (3, 2, 1, 0)], rtol=1e-8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1, 2, 5, 30])
def test_complex_eigenvalues_of_real_matrices_are_exact_pairs(dtype, size):
    a = matrix(dtype, (3, size, size))
    w, v = (np.asarray(x) for x in wnp.linalg.eig(a))
    for values in (w, np.asarray(wnp.linalg.eigvals(a)), np.asarray(weft.jit(wnp.linalg.eigvals)(a))):
        for row in values:
            assert set(row.tolist()) == set(row.conj().tolist())
    for values, vectors in zip(w, v):
        columns = {z: vectors[:, i] for i, z in enumerate(values.tolist())}
        for z, column in columns.items():
            np.testing.assert_array_equal(column, columns[z.conjugate()].conj())
    roots = np.asarray(wnp.roots(np.array([1, 0, 0, -1], dtype)))
    assert set(roots.tolist()) == set(roots.conj().tolist())
