"""weft.numpy.linalg and fft against NumPy; gradients against JAX."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft.scipy import linalg as scipy_linalg

RNG = np.random.default_rng(0)
A = (RNG.standard_normal((2, 4, 4)) + 3 * np.eye(4)).astype(np.float32)
S = (A @ A.swapaxes(1, 2)).astype(np.float32)
R = RNG.standard_normal((5, 3)).astype(np.float32)
B = RNG.standard_normal((4, 2)).astype(np.float32)


@pytest.mark.parametrize(
    "name, args",
    [
        ("cholesky", (S,)),
        ("det", (A,)),
        ("slogdet", (A,)),
        ("inv", (A,)),
        ("solve", (A, B)),
        ("solve", (A[0], B[:, 0])),
        ("eigvalsh", (S,)),
        ("svdvals", (R,)),
        ("pinv", (R,)),
        ("matrix_rank", (R,)),
        ("matrix_power", (A[0], 3)),
        ("matrix_power", (A[0], -2)),
        ("norm", (R,)),
        ("norm", (R, 1)),
        ("norm", (R, np.inf)),
        ("norm", (R, 2)),
        ("norm", (R, "nuc")),
        ("norm", (R, 3, 0)),
        ("norm", (R, None, 1)),
        ("cond", (A[0],)),
    ],
)
def test_like_numpy(name, args):
    want, got = getattr(np.linalg, name)(*args), getattr(wnp.linalg, name)(*args)
    for g, w in zip(
        weft.tree.leaves(tuple(got) if isinstance(got, tuple) else got),
        weft.tree.leaves(tuple(want) if isinstance(want, tuple) else want),
    ):
        np.testing.assert_allclose(np.asarray(g), w, rtol=2e-3, atol=2e-4)


def test_factors():
    q, r = wnp.linalg.qr(R)
    np.testing.assert_allclose(np.asarray(q @ r), R, atol=1e-5)
    np.testing.assert_allclose(np.asarray(q.T @ q), np.eye(3), atol=1e-5)
    w, v = wnp.linalg.eigh(S)
    np.testing.assert_allclose(np.asarray(v * w[:, None, :] @ v.mT), S, rtol=1e-3, atol=1e-3)
    u, s, vh = wnp.linalg.svd(R, full_matrices=False)
    np.testing.assert_allclose(np.asarray(u * s @ vh), R, atol=1e-5)


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (4, 4), (3, 0)])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_singular_vectors_of_what_is_not_finite(shape, dtype):
    for value in (np.nan, np.inf):
        parts = wnp.linalg.svd(wnp.full(shape, value, dtype))
        assert [x.shape for x in parts] == [(shape[0],) * 2, (min(shape),), (shape[1],) * 2]
        assert all(np.isnan(x).all() for x in parts if min(shape))


def test_gradients():
    jax = pytest.importorskip("jax")
    for ours, theirs in [
        (lambda m: wnp.linalg.slogdet(m)[1], lambda m: jax.numpy.linalg.slogdet(m)[1]),
        (lambda m: wnp.linalg.inv(m).sum(), lambda m: jax.numpy.linalg.inv(m).sum()),
        (lambda m: (wnp.linalg.solve(m, B) ** 2).sum(), lambda m: (jax.numpy.linalg.solve(m, B) ** 2).sum()),
        (lambda m: wnp.linalg.det(m), lambda m: jax.numpy.linalg.det(m)),
    ]:
        np.testing.assert_allclose(
            np.asarray(weft.grad(ours)(A[0])), np.asarray(jax.grad(theirs)(A[0])), rtol=2e-3, atol=2e-4
        )


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shapes", [((4, 4), (4,)), ((4, 4), (4, 3)), ((5, 4, 4), (5, 4, 2)), ((4, 4), (5, 4, 2))])
def test_solve_is_differentiated_as_an_equation(shapes, dtype):
    """d (A^-1 b) = A^-1 (db - dA A^-1 b), to second order, along random directions; and lane by lane."""
    chance = np.random.default_rng(1)

    def draw(shape):
        x = chance.normal(size=shape)
        return x + 1j * chance.normal(size=shape) if dtype == "complex128" else x

    a, b = draw(shapes[0]) + 4 * np.eye(4), draw(shapes[1])
    da, db = draw(shapes[0]), draw(shapes[1])
    columns = b.ndim > 1
    inverse = np.linalg.inv(a)
    times = lambda m, v: m @ v if columns else (m @ v[:, None])[:, 0]
    x = times(inverse, b)
    dx = times(inverse, db - times(da, x))
    ddx = -2 * times(inverse, times(da, dx))
    got = weft.jvp(wnp.linalg.solve, (a, b), (da, db))
    np.testing.assert_allclose(np.asarray(got[1]), dx, rtol=1e-9, atol=1e-11)
    along = lambda a, b: weft.jvp(wnp.linalg.solve, (a, b), (da, db))[1]
    got = weft.jit(lambda a, b: weft.jvp(along, (a, b), (da, db))[1])(a, b)
    np.testing.assert_allclose(np.asarray(got), ddx, rtol=1e-9, atol=1e-11)
    # The adjoint: <ct, dx> = <ct_a, da> + <ct_b, db>.
    ct = draw(x.shape)
    y, pullback = weft.vjp(wnp.linalg.solve, a, b)
    ct_a, ct_b = (np.asarray(v) for v in pullback(ct))
    np.testing.assert_allclose(np.asarray(y), x, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose((ct * dx).sum(), (ct_a * da).sum() + (ct_b * db).sum(), rtol=1e-9)
    lanes = weft.vmap(weft.grad(lambda a, b: abs(wnp.linalg.solve(a, b)).sum()), in_axes=(0, None))(
        np.stack([a, 2 * a]), b
    )
    alone = weft.grad(lambda a: abs(wnp.linalg.solve(a, b)).sum())(2 * a)
    np.testing.assert_allclose(np.asarray(lanes[1]), np.asarray(alone), rtol=1e-9, atol=1e-11)


def test_the_gradient_of_solve_factorises_once():
    text = str(weft.make_ir(weft.grad(lambda a: wnp.linalg.solve(a, B).sum()))(A[0]))
    assert text.count(" = lu ") == 1  # forwards; backwards and forwards again solve with it


@pytest.mark.parametrize(
    "name, args",
    [
        ("fft", (R,)),
        ("fft", (R, 4)),
        ("fft", (R, 7, 0)),
        ("ifft", (R,)),
        ("rfft", (R, None, 0)),
        ("rfft", (R,)),
        ("fft2", (R,)),
        ("fftn", (S,)),
        ("ifft2", (R,)),
        ("rfftn", (S,)),
        ("fft", (R, None, -1, "ortho")),
        ("fftshift", (R,)),
        ("ifftshift", (R, 0)),
        ("fftfreq", (6,)),
        ("rfftfreq", (7, 0.5)),
    ],
)
def test_fft(name, args):
    np.testing.assert_allclose(
        np.asarray(getattr(wnp.fft, name)(*args)), getattr(np.fft, name)(*args), rtol=1e-4, atol=1e-5
    )


def test_fft_round_trip():
    np.testing.assert_allclose(np.asarray(wnp.fft.irfft(wnp.fft.rfft(R, axis=0), 5, axis=0)), R, atol=1e-5)
    np.testing.assert_allclose(np.asarray(wnp.fft.ifftn(wnp.fft.fftn(S)).real), S, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(5, 3), (3, 3), (2, 4), (2, 5, 3)])
def test_complete_qr(shape):
    a = RNG.standard_normal(shape).astype(np.float32)
    for q, r in (wnp.linalg.qr(a, mode="complete"), weft.lax.linalg.qr(wnp.array(a))):
        m, n = shape[-2:]
        assert q.shape == (*shape[:-2], m, m) and r.shape == (*shape[:-2], m, n)
        np.testing.assert_allclose(np.asarray(q @ r), a, atol=1e-5)
        np.testing.assert_allclose(np.asarray(q.mT @ q), np.broadcast_to(np.eye(m), q.shape), atol=1e-5)
        np.testing.assert_array_equal(np.asarray(r), np.triu(np.asarray(r)))
    with pytest.raises(ValueError, match="qr: there is no mode 'raw'"):
        wnp.linalg.qr(a, mode="raw")


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("trans", [0, 1, 2])
def test_lu_solve(trans, dtype):
    a, b = A[0].astype(dtype), B.astype(dtype)
    if dtype is np.complex64:
        a = a + 1j * A[1]
    x = weft.scipy.linalg.lu_solve(weft.scipy.linalg.lu_factor(a), b, trans)
    op = {0: a, 1: a.T, 2: a.conj().T}[trans]
    np.testing.assert_allclose(op @ np.asarray(x), b, atol=1e-4)
    with pytest.raises(ValueError, match="lu_solve: trans is 0, 1 or 2, got 3"):
        weft.scipy.linalg.lu_solve(weft.scipy.linalg.lu_factor(a), b, 3)


def test_third_derivative_of_det_where_the_rank_lacks_three():
    # t^3 for t times the identity beside ones: the determinant of diag(t, t, t, 1, 1).
    f = lambda t: wnp.linalg.det(wnp.diag(wnp.stack([t, t, t, 1 + 0 * t, 1 + 0 * t])))
    zero = wnp.array(0.0, dtype="float64")
    np.testing.assert_allclose(weft.grad(weft.grad(weft.grad(f)))(zero), 6, rtol=1e-9)
    # Ones beside the diagonal only: the rank lacks one, and every pivot of the factorisation is 0.
    shift = wnp.array(np.eye(8, k=1), dtype="float64")
    wanted = np.zeros((8, 8))
    wanted[7, 0] = -1
    np.testing.assert_allclose(weft.grad(wnp.linalg.det)(shift), wanted, atol=1e-12)


def test_det_in_single_precision_and_as_jax_has_it():
    jax = pytest.importorskip("jax")
    for a in (np.float32([[1, 2], [2, 4]]), np.float32([[1, 2, 3], [4, 5, 6], [7, 8, 9]])):
        np.testing.assert_allclose(weft.grad(wnp.linalg.det)(a), jax.grad(jax.numpy.linalg.det)(a), atol=1e-5)
    np.testing.assert_allclose(weft.grad(wnp.linalg.det)(A[0]), jax.grad(jax.numpy.linalg.det)(A[0]), rtol=1e-3)
    ones = np.diag(np.float32([1, 2, 3, 0]))
    np.testing.assert_allclose(weft.grad(wnp.linalg.det)(ones), np.diag(np.float32([0, 0, 0, 6])), atol=1e-5)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.7, 31.0, 1e4, 2.0**18])
def test_expm_of_a_rotation(angle):
    turn = np.array([[0.0, -angle], [angle, 0.0]])
    for f in (scipy_linalg.expm, weft.jit(scipy_linalg.expm), lambda x: weft.vmap(scipy_linalg.expm)(x[None])[0]):
        wanted = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        np.testing.assert_allclose(np.asarray(f(turn)), wanted, atol=4e-15 * (1 + angle))


def test_eigenvectors_of_complex_tridiagonal_matrices():
    """The elements that are given lie above the diagonal, as in JAX."""
    d, e = np.array([1.0, 0.5, -0.3]), np.array([0.2 + 0.9j, -0.4j])
    matrix = np.diag(d) + np.diag(e, 1) + np.diag(e.conj(), -1)
    w, v = map(np.asarray, weft.scipy.linalg.eigh_tridiagonal(d, e))
    np.testing.assert_allclose(w, np.linalg.eigvalsh(matrix), atol=1e-12)
    np.testing.assert_allclose(matrix @ v, v * w, atol=1e-12)


def test_expm_of_large_and_small_matrices_together():
    x = np.array([-1e5, 0.0, 3.0, 1e9, np.nan])[:, None, None] * np.eye(2)
    given = np.asarray(scipy_linalg.expm(x))
    np.testing.assert_allclose(given[:3, 0, 0], [0, 1, np.exp(3)], rtol=1e-14)
    assert np.isnan(given[3:]).all()
    # The exponential of a triangular matrix of one eigenvalue has a closed form.
    slope = weft.vmap(weft.grad(lambda a: scipy_linalg.expm(a)[0, 1]))(np.array([[[2.0, 5.0], [0.0, 2.0]]] * 2))
    np.testing.assert_allclose(np.asarray(slope)[:, 0, 1], np.exp(2), rtol=1e-13)


def test_residuals_of_least_squares_whatever_the_rank():
    a, b = np.array([[1, 1], [1, 1], [1, 1]], np.float32), np.array([1, 2, 4], np.float32)
    both = np.stack([b, 2 * b], 1)
    for matrix, right in ((a, b), (a, both), (a.T, b[:2]), (a.T, both[:2]), (a[:2], b[:2]), (np.eye(3, 2), b)):
        matrix = matrix.astype(np.float32)
        x, residuals, rank, _ = wnp.linalg.lstsq(matrix, right)
        wanted = np.atleast_1d(((matrix @ np.asarray(x) - right) ** 2).sum(0))
        np.testing.assert_allclose(residuals, wanted, atol=1e-5)
        exact = np.linalg.lstsq(matrix, right, rcond=None)
        given = wnp.linalg.lstsq(matrix, right, numpy_resid=True)[1]
        assert given.shape == exact[1].shape and rank == exact[2]
        np.testing.assert_allclose(given, exact[1], atol=1e-5)
    assert weft.jit(lambda a, b: wnp.linalg.lstsq(a, b)[1])(a, b).shape == (1,)


def test_solve_knows_what_it_may_assume():
    a, b = np.array([[2, 1], [1, 3]], np.float32), np.array([1, 2], np.float32)
    for assumed in ("gen", "sym", "her", "pos"):
        np.testing.assert_allclose(weft.scipy.linalg.solve(a, b, assume_a=assumed), np.linalg.solve(a, b), rtol=1e-5)
    with pytest.raises(ValueError, match="assume_a must be 'gen', 'sym', 'her' or 'pos', got 'bogus'"):
        weft.scipy.linalg.solve(a, b, assume_a="bogus")
