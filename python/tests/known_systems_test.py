"""Systems of equations and determinants whose matrix is known from its making: they need no LU factorisation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import lax

N = 100
RNG = np.random.default_rng(7)
A = (RNG.normal(size=(N, N)) / 12 + 2 * np.eye(N)).astype(np.float32)
B = RNG.normal(size=(N, 3)).astype(np.float32)
V = RNG.normal(size=N).astype(np.float32)
D = np.abs(V) + np.float32(0.5)

# Matrices made of a [N, N] and d [N], of the module of arrays.
TRIANGLES = {
    "tril": lambda np, a, d: np.tril(a),
    "triu": lambda np, a, d: np.triu(a),
    "strict and identity": lambda np, a, d: np.tril(a, -1) / 4 + 2 * np.eye(N, dtype="float32"),
    "transposed": lambda np, a, d: np.tril(a).T,
    "by where": lambda np, a, d: np.where(np.arange(N)[:, None] >= np.arange(N), a, 0),
    "negated, by a number": lambda np, a, d: -(np.triu(a) * 0.5),
    "sum": lambda np, a, d: np.triu(a) - np.diag(-d),
    "cholesky": lambda np, a, d: np.linalg.cholesky(a @ a.T),
    "upper of cholesky": lambda np, a, d: np.linalg.cholesky(a @ a.T).T,
}
DIAGONALS = {
    "diag": lambda np, a, d: np.diag(d),
    "multiple of eye": lambda np, a, d: d[0] * np.eye(N, dtype="float32"),
    "both triangles": lambda np, a, d: np.tril(np.triu(a)),
}
GRAMS = {
    "ridge": lambda np, a, d: a @ a.T + 0.1 * np.eye(N, dtype="float32"),
    "columns": lambda np, a, d: a.T @ a + np.diag(d),
    "mean": lambda np, a, d: a.T @ a / N + 0.5 * np.eye(N, dtype="float32"),
    "indefinite": lambda np, a, d: a @ a.T + -3 * np.eye(N, dtype="float32"),
}
MATRICES = {**TRIANGLES, **DIAGONALS, **GRAMS}

# Functions of a matrix, and of right sides [N, 3] and [N].
USES = {
    "solve": lambda np, m, b, v: np.linalg.solve(m, b),
    "solve for a vector": lambda np, m, b, v: np.linalg.solve(m, v),
    "inv": lambda np, m, b, v: np.linalg.inv(m),
    "inv@v": lambda np, m, b, v: np.linalg.inv(m) @ v,
    "det": lambda np, m, b, v: np.linalg.det(m / 2),
    "slogdet": lambda np, m, b, v: np.stack(np.linalg.slogdet(m)),
}


def called(make, use, np):
    return lambda a, d, b, v: USES[use](np, MATRICES[make](np, a, d), b, v)


def names(f, *args):
    """Of the operations that run, those of branches apart."""
    return [op.name for op in weft.make_ir(f)(*args).optimized().walk(regions=False)]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("make", MATRICES)
def test_values(make, use):
    got = weft.jit(called(make, use, wnp))(A, D, B, V)
    wide = [x.astype(np.float64) for x in (A, D, B, V)]
    want = np.asarray(called(make, use, np)(*wide))
    if not (use != "det" or 1e-30 < abs(want) < 1e30):
        pytest.skip("a determinant that f32 does not have")
    condition = np.linalg.cond(MATRICES[make](np, *wide[:2]))
    size = np.abs(want).max(0, keepdims=True) if use != "slogdet" else 1 + np.abs(want)
    np.testing.assert_allclose(got / size, want / size, atol=2e-6 * condition)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("make", {**TRIANGLES, **DIAGONALS})
def test_triangles_are_not_factored(make, use):
    found = names(called(make, use, wnp), A, D, B, V)
    assert "lu" not in found
    if make in DIAGONALS:
        assert "triangular_solve" not in found


@pytest.mark.parametrize("use", ["solve", "solve for a vector", "inv"])
@pytest.mark.parametrize("make", GRAMS)
def test_products_with_their_transpose_have_a_cholesky_factor(make, use):
    found = names(called(make, use, wnp), A, D, B, V)
    assert "cholesky" in found and "lu" not in found


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("make", MATRICES)
def test_gradients(make, use):
    def total(np):
        f = called(make, use, np)
        return lambda a, d, b, v: np.sum(np.log(1 + f(a, d, b, v) ** 2))  # determinants are large

    with jax.enable_x64(True), weft.enable_x64(True):
        wide = [x.astype(np.float64) for x in (A, D, B, V)]
        want = jax.grad(total(jnp), (0, 1, 2, 3))(*wide)
        for g in (weft.grad, lambda f, n: weft.jit(weft.grad(f, n))):
            got = g(total(wnp), (0, 1, 2, 3))(*wide)
            for x, y in zip(got, want):
                np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-8 * (1 + np.abs(y).max()))


@pytest.mark.parametrize("make", ["tril", "triu", "diag", "ridge", "indefinite"])
@pytest.mark.parametrize("use", ["solve", "inv", "slogdet"])
def test_under_vmap_and_in_loops(make, use):
    f = called(make, use, wnp)
    stack = np.stack([A, A * 2, A.T])
    want = np.stack([weft.jit(f)(a, D, B, V) for a in stack])
    mapped = weft.jit(weft.vmap(f, in_axes=(0, None, None, None)))(stack, D, B, V)
    looped = weft.jit(lambda s: lax.map(lambda a: f(a, D, B, V), s))(stack)
    for got in (mapped, looped):
        np.testing.assert_allclose(got, want, rtol=3e-4, atol=3e-4 * np.abs(want).max())


def test_no_positive_definite_matrix_is_solved_as_it_is_written():
    """No Cholesky factor: rows that are equal, of whose product with its transpose rounding makes what it likes."""
    singular = np.ones((N, 4), np.float32)
    f = lambda a, v: wnp.linalg.solve(a @ a.T + 1e-12 * wnp.eye(N), v)
    got, want = weft.jit(f)(singular, V), weft.jit(f, licence="exact")(singular, V)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("use", ["solve for a vector", "det", "slogdet"])
def test_diagonals_are_found_without_their_matrix(use):
    for make in (
        lambda d: wnp.diag(d),
        lambda d: wnp.diag(wnp.sin(d)) * 2,
        lambda d: d[1] * wnp.eye(N),
        lambda d: wnp.tril(d[:, None] + 0 * d),
        lambda d: wnp.triu(d[:, None] * d).T,
        lambda d: wnp.diag(d) + wnp.eye(N),
    ):
        f = lambda d, v, make=make: USES[use](wnp, make(d), None, v)
        ir = weft.make_ir(f)(D, V).optimized()
        if "triangular_solve" not in [op.name for op in ir.walk()]:
            assert all(np.prod(r.type.shape) < N * N for op in ir.walk() for r in op.results), ir
        want = USES[use](np, np.asarray(make(wnp.asarray(D))).astype(float), None, V)
        np.testing.assert_allclose(weft.jit(f)(D, V), want, rtol=1e-3)


def test_other_solvers_stay():
    """custom_linear_solve by another algorithm is what somebody asked for."""

    def f(a, b):
        lower = wnp.tril(a)
        steps = lambda matvec, b: lax.fori_loop(0, 40, lambda i, x: x + 0.3 * (b - matvec(x)), wnp.zeros_like(b))
        return lax.custom_linear_solve(lambda x: lower @ x, b, steps)

    assert "triangular_solve" not in names(f, A, B)


NO_TRIANGLES = {
    "one above the diagonal": lambda a: wnp.tril(a, 1),
    "one below the diagonal": lambda a: wnp.triu(a, -1),
    "the other diagonal": lambda a: wnp.where(wnp.arange(N)[:, None] >= wnp.arange(N)[::-1], a, 0),
    "both": lambda a: wnp.tril(a) + wnp.triu(a),
    "mask": lambda a: a * wnp.tril(wnp.ones((N, N)), 2),
    "of two": lambda a: wnp.where(wnp.tril(wnp.ones((N, N))) > 0, a, a.T),
    "exp": lambda a: wnp.exp(wnp.tril(a)) + 3 * wnp.eye(N),
}


@pytest.mark.parametrize("make", NO_TRIANGLES)
def test_what_is_no_triangle(make):
    f = lambda a, v: wnp.linalg.solve(NO_TRIANGLES[make](a), v)
    assert "lu" in names(f, A, V)
    want = np.linalg.solve(np.asarray(NO_TRIANGLES[make](wnp.asarray(A)), np.float64), V)
    np.testing.assert_allclose(weft.jit(f)(A, V), want, rtol=1e-2, atol=1e-2 * np.abs(want).max())


def test_factors_that_are_results_are_as_lapack_has_them():
    """lu() of a lower triangle exchanges rows."""
    a = np.tril(A[:5, :5]) * np.array([0.01, 1, 1, 1, 1], np.float32)
    for got, want in zip(weft.jit(lambda a: lax.linalg.lu(wnp.tril(a)))(a), jax.lax.linalg.lu(jnp.tril(a))):
        np.testing.assert_allclose(got, want, rtol=1e-5)
