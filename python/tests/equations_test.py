"""Ordinary differential equations, tridiagonal systems, and QR with column exchanges."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft.experimental.ode import odeint

jax = pytest.importorskip("jax")
scipy_linalg = pytest.importorskip("scipy.linalg")


def pendulum(np_):
    def slope(y, t, damping, g):
        angle, speed = y
        return (speed, -damping * speed - g * np_.sin(angle) + 0.1 * np_.cos(t))

    return slope


def rotation(np_):
    return lambda y, t, rate: rate * y * np_.exp(-t).astype(y.dtype)


def test_exact_solutions():
    t = wnp.array([0.0, 0.5, 2.0])
    np.testing.assert_allclose(odeint(lambda y, t: -y, 1.0, t), np.exp(-np.asarray(t)), rtol=1e-5)
    tree = odeint(lambda y, t: {"a": y["b"], "b": -y["a"]}, {"a": wnp.zeros(2), "b": wnp.ones(2)}, t)
    np.testing.assert_allclose(tree["a"][:, 1], np.sin(t), atol=1e-5)
    np.testing.assert_allclose(tree["b"][:, 0], np.cos(t), atol=1e-5)


def test_jax_gives_the_same():
    with weft.enable_x64(True), jax.enable_x64(True):
        from jax.experimental.ode import odeint as theirs

        ts = np.linspace(0.0, 1.5, 4)
        for slope, y0, args in (
            (pendulum, (3.0, 0.1), (0.25, 9.8)),
            (rotation, 1.0 + 2.0j, (3.0 + 4.0j,)),
        ):
            mine = odeint(slope(wnp), y0, ts, *args)
            same = theirs(slope(jax.numpy), y0, ts, *args)
            for a, b in zip(weft.tree.leaves(mine), weft.tree.leaves(same)):
                np.testing.assert_allclose(a, b, rtol=1e-7)


@pytest.mark.parametrize("transform", ["none", "jit"])
def test_derivatives(transform):
    run = weft.jit if transform == "jit" else lambda f: f
    with weft.enable_x64(True), jax.enable_x64(True):
        from jax.experimental.ode import odeint as theirs

        ts = np.linspace(0.0, 1.0, 3)
        given = (3.0, ts, 0.25)

        def total(np_, solve):
            return lambda y0, ts, damping: solve(pendulum(np_), (y0, 0.0), ts, damping, 9.8)[0].sum()

        mine = run(weft.grad(total(wnp, odeint), (0, 1, 2)))(*given)
        same = jax.grad(total(jax.numpy, theirs), (0, 1, 2))(*given)
        for a, b in zip(mine, same):
            np.testing.assert_allclose(a, b, rtol=1e-6)
        second = run(weft.grad(weft.grad(lambda k: odeint(lambda y, t: -k * y, 1.0, ts)[-1])))(0.7)
        np.testing.assert_allclose(second, np.exp(-0.7), rtol=1e-5)  # of exp(-k)
        batch = weft.vmap(lambda y0: odeint(lambda y, t: -y, y0, ts))(wnp.array([1.0, 2.0]))
        np.testing.assert_allclose(batch, np.outer([1.0, 2.0], np.exp(-ts)), rtol=1e-6)


def test_long_steps():
    def pulse(y, t):
        return wnp.where(t <= 2.0, 1.0, wnp.where((t >= 5.0) & (t <= 7.0), -1.0, 0.0))

    ys = odeint(pulse, wnp.array(0.0), wnp.array([0.0, 5.0, 10.0]), hmax=1.0)
    np.testing.assert_allclose(ys, [0.0, 2.0, 0.0], atol=1e-4)


def test_mistakes():
    with pytest.raises(TypeError, match="t must be an array of floats, but got int32"):
        odeint(lambda y, t: y, 1.0, wnp.arange(3))
    with pytest.raises(TypeError, match="args must be arrays or numbers"):
        odeint(lambda y, t, f: f(y), 1.0, wnp.arange(3.0), abs)
    with pytest.raises(ValueError, match="t must be a vector"):
        odeint(lambda y, t: y, 1.0, wnp.ones((2, 2)))


# --- Tridiagonal systems ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_tridiagonal_systems_that_need_exchanges(dtype, n):
    rng = np.random.default_rng(n)
    make = lambda *shape: (
        rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype[0] == "c" else 0)
    ).astype(dtype)
    low, middle, up, b = make(3, n), make(3, n), make(3, n), make(3, n, 2)
    if n > 1:
        middle[:, 0] = 0
    dense = np.stack([np.diag(m) + np.diag(lo[1:], -1) + np.diag(u[:-1], 1) for lo, m, u in zip(low, middle, up)])
    for run in (lambda f: f, weft.jit, weft.vmap):
        x = run(weft.lax.linalg.tridiagonal_solve)(low, middle, up, b)
        np.testing.assert_allclose(x, np.linalg.solve(dense, b), rtol=1e-7, atol=1e-9)


def test_derivative_of_tridiagonal_systems():
    low, middle, up = (np.array(v) for v in ([0.0, 2.0, -2.0, 3.0], [1.0, 4.0, 1.0, -1.0], [2.0, -1.0, 1.0, 0.0]))
    b = np.array([[1.0], [2.0], [3.0], [4.0]])
    f = lambda *v: weft.lax.linalg.tridiagonal_solve(*v).sum()
    slopes = weft.grad(f, (0, 1, 2, 3))(low, middle, up, b)
    for i, slope in enumerate(slopes):
        for k in np.ndindex(slope.shape):
            moved = [[v.copy() for v in (low, middle, up, b)] for _ in range(2)]
            moved[0][i][k] += 1e-6
            moved[1][i][k] -= 1e-6
            quotient = (float(f(*moved[0])) - float(f(*moved[1]))) / 2e-6
            np.testing.assert_allclose(float(slope[k]), quotient, rtol=1e-5, atol=1e-6)


def test_singular_tridiagonal_systems():
    zero, one = np.zeros(3, np.float32), np.ones((3, 1), np.float32)
    solve = weft.lax.linalg.tridiagonal_solve
    x = np.asarray(solve(zero, zero, zero, one, perturb_singular=True))
    assert np.isfinite(x).all() and (np.abs(x) > 1e6).all()
    assert not np.isfinite(np.asarray(solve(zero, zero, zero, one))).all()


# --- QR ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 4), (3, 3), (6, 4)], ids=str)
def test_column_exchanges(shape, dtype):
    rng = np.random.default_rng(0)
    a = (rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype[0] == "c" else 0)).astype(dtype)
    for mode in ("full", "economic", "r"):
        mine = weft.scipy.linalg.qr(a, mode=mode, pivoting=True)
        for x, y in zip(mine, scipy_linalg.qr(a, mode=mode, pivoting=True), strict=True):
            np.testing.assert_allclose(x, y, atol=1e-12)
    for mode in ("left", "right"):
        k = min(shape)
        c = rng.standard_normal((k, 2) if mode == "left" else (2, shape[0]))
        mine = weft.scipy.linalg.qr_multiply(a, c, mode, pivoting=True)
        for x, y in zip(mine, scipy_linalg.qr_multiply(a, c, mode, pivoting=True), strict=True):
            np.testing.assert_allclose(x, y, atol=1e-12)
    q, r, order = weft.scipy.linalg.qr(np.stack([a, 2 * a[:, ::-1]]), mode="economic", pivoting=True)
    np.testing.assert_allclose(q[1] @ r[1], 2 * a[:, ::-1][:, np.asarray(order[1])], atol=1e-12)


def test_derivative_through_column_exchanges():
    a = np.random.default_rng(0).standard_normal((4, 3))

    def same(a):
        q, r, order = weft.scipy.linalg.qr(a, mode="economic", pivoting=True)
        return (q @ r)[:, wnp.argsort(order)]

    along = np.random.default_rng(1).standard_normal((4, 3))
    np.testing.assert_allclose(weft.jvp(same, (a,), (along,))[1], along, atol=1e-12)


def test_batches_that_broadcast():
    rng = np.random.default_rng(0)
    a = np.tril(rng.standard_normal((3, 4, 4))) + 4 * np.eye(4)
    solve = lambda a, b: weft.scipy.linalg.solve_triangular(a, b, lower=True)
    for left, right in ((a, (4, 2)), (a[0], (3, 4, 2)), (a, (3, 4, 2)), (a[:1], (3, 4, 2))):
        b = rng.standard_normal(right)
        np.testing.assert_allclose(solve(left, b), np.linalg.solve(left, b), rtol=1e-10)
    for b in (rng.standard_normal(4), rng.standard_normal((3, 4))):
        np.testing.assert_allclose(solve(a, b), np.linalg.solve(a, np.broadcast_to(b, (3, 4))[..., None])[..., 0])
    b = rng.standard_normal((3, 4, 2))
    x = weft.scipy.linalg.cho_solve((a[0], True), b)
    np.testing.assert_allclose(a[0] @ a[0].T @ np.asarray(x), b, atol=1e-10)
    left, right, x = rng.standard_normal((3, 3)), rng.standard_normal((2, 4, 4)), rng.standard_normal((2, 3, 4))
    np.testing.assert_allclose(weft.scipy.linalg.solve_sylvester(left, right, left @ x + x @ right), x, atol=1e-8)
    assert weft.scipy.linalg.fiedler_companion(wnp.ones((3, 1))).shape == (3, 0, 0)
