"""custom_linear_solve and custom_root: values and derivatives against NumPy's inverse and closed forms."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import lax


def f64(x):
    return wnp.array(x, dtype="float64")


A = np.array([[4.0, 1.0, 0.5], [0.3, 3.0, -0.2], [0.1, 0.7, 5.0]])
B = np.array([1.0, -2.0, 0.5])
DA = np.array([[0.1, -0.3, 0.2], [0.4, 0.2, -0.1], [0.0, 0.5, 0.3]])
DB = np.array([0.3, 0.1, -0.4])


def opaque(x):
    """The same value, through an operation without derivative: what a solver does must not be differentiated."""
    return weft.lax.stop_gradient(x)


def solve(a, b, **options):
    def by_inverse(matrix):
        return lambda matvec, v: opaque(wnp.linalg.inv(matrix)) @ opaque(v)

    return lax.custom_linear_solve(lambda v: a @ v, b, by_inverse(a), by_inverse(a.T), **options)


def test_value_forward_and_reverse():
    inverse = np.linalg.inv(A)
    x = inverse @ B
    np.testing.assert_allclose(solve(f64(A), f64(B)), x)
    dx = inverse @ (DB - DA @ x)
    args, tangents = (f64(A), f64(B)), (f64(DA), f64(DB))
    for wrap in (lambda f: f, weft.jit):
        np.testing.assert_allclose(wrap(lambda *t: weft.jvp(solve, args, t)[1])(*tangents), dx)
        _, pullback = weft.vjp(wrap(solve), *args)
        ct_a, ct_b = pullback(f64(DB))
        np.testing.assert_allclose(ct_b, inverse.T @ DB)
        np.testing.assert_allclose(ct_a, -np.outer(inverse.T @ DB, x))


def test_higher_orders():
    inverse = lambda t: np.linalg.inv(A + t * DA)
    x = lambda t: weft.lax.stop_gradient(0) if t is None else solve(f64(A) + t * f64(DA), f64(B) + t * f64(DB))
    i0 = inverse(0)
    d0 = i0 @ B
    d1 = i0 @ (DB - DA @ d0)
    d2 = i0 @ (-2 * DA @ d1)
    d3 = i0 @ (-3 * DA @ d2)
    first = lambda t: weft.jvp(x, (t,), (f64(1.0),))[1]
    second = lambda t: weft.jvp(first, (t,), (f64(1.0),))[1]
    np.testing.assert_allclose(second(f64(0.0)), d2)
    np.testing.assert_allclose(weft.jacrev(first)(f64(0.0)), d2)
    np.testing.assert_allclose(weft.jacfwd(weft.jacrev(x))(f64(0.0)), d2)
    np.testing.assert_allclose(weft.jacrev(weft.jacrev(x))(f64(0.0)), d2)
    value, terms = weft.jet(x, (f64(0.0),), ([f64(1.0), f64(0.0), f64(0.0)],))
    for got, expected in zip([value, *terms], [d0, d1, d2, d3]):
        np.testing.assert_allclose(got, expected, rtol=1e-10)


def test_jet_solves_once_per_order():
    text = weft.make_ir(lambda t: weft.jet(lambda s: solve(f64(A) + s * f64(DA), f64(B)), (t,), ([t] * 4,)))(
        f64(0.5)
    ).text
    # (The solvers inside them solve by LU, with linear_solves of their own; functions that several use come once.)
    functions = [f.splitlines() for f in text.split("\nfn ")]
    solves = [sum(line.startswith("  ") and "linear_solve[" in line for line in lines) for lines in functions]
    assert max(solves) == 5, solves


def test_lanes():
    many_b = np.stack([B, 2 * B, DB])
    many_a = np.stack([A, A + DA, A - DA])
    one = np.linalg.inv(A)
    np.testing.assert_allclose(weft.vmap(solve, in_axes=(None, 0))(f64(A), f64(many_b)), many_b @ one.T)
    expected = np.stack([np.linalg.solve(a, B) for a in many_a])
    np.testing.assert_allclose(weft.vmap(solve, in_axes=(0, None))(f64(many_a), f64(B)), expected)
    grads = weft.jit(weft.vmap(weft.grad(lambda a, b: solve(a, b).sum(), argnums=(0, 1))))(f64(many_a), f64(many_b))
    for k in range(3):
        inverse = np.linalg.inv(many_a[k])
        ct = inverse.T @ np.ones(3)
        np.testing.assert_allclose(grads[1][k], ct)
        np.testing.assert_allclose(grads[0][k], -np.outer(ct, inverse @ many_b[k]))


def test_symmetric_trees_and_aux():
    s = A @ A.T

    def conjugate_gradients(matvec, b):
        def step(state):
            x, r, p, i = state
            q = matvec(p)
            alpha = sum_of(r, r) / sum_of(p, q)
            x = weft.tree.map(lambda u, v: u + alpha * v, x, p)
            new = weft.tree.map(lambda u, v: u - alpha * v, r, q)
            beta = sum_of(new, new) / sum_of(r, r)
            return x, new, weft.tree.map(lambda u, v: u + beta * v, new, p), i + 1

        def sum_of(u, v):
            return sum((a * b).sum() for a, b in zip(weft.tree.leaves(u), weft.tree.leaves(v)))

        zero = weft.tree.map(wnp.zeros_like, b)
        x, _, _, trips = weft.while_loop(lambda state: sum_of(state[1], state[1]) > 1e-24, step, (zero, b, b, 0))
        return x, trips

    def program(matrix, b):
        split = {"head": b[:1], "tail": b[1:]}
        matvec = lambda v: (lambda out: {"head": out[:1], "tail": out[1:]})(
            matrix @ wnp.concatenate([v["head"], v["tail"]])
        )
        x, trips = lax.custom_linear_solve(matvec, split, conjugate_gradients, symmetric=True, has_aux=True)
        return (x["head"].sum() + (x["tail"] ** 2).sum()), trips

    value, trips = program(f64(s), f64(B))
    x = np.linalg.solve(s, B)
    assert float(value) == pytest.approx(x[0] + (x[1:] ** 2).sum())
    assert 1 <= int(trips) <= 6
    gradient = weft.jit(weft.grad(lambda m, b: program(m, b)[0], argnums=(0, 1)))(f64(s), f64(B))
    ct = np.linalg.solve(s, np.array([1, 2 * x[1], 2 * x[2]]))
    np.testing.assert_allclose(gradient[1], ct, rtol=1e-8)
    np.testing.assert_allclose(gradient[0], -np.outer(ct, x), rtol=1e-8)


def test_inside_loops():
    def program(a):
        return weft.scan(lambda x, _: (solve(a, x) * 10, x), f64(B), length=3)[0].sum()

    def by_hand(a):
        return (1000 * np.linalg.matrix_power(np.linalg.inv(a), 3) @ B).sum()

    h = 1e-6
    for i, j in ((0, 1), (2, 2)):
        unit = np.zeros((3, 3))
        unit[i, j] = h
        difference = (by_hand(A + unit) - by_hand(A - unit)) / (2 * h)
        np.testing.assert_allclose(weft.grad(program)(f64(A))[i, j], difference, rtol=1e-6)


def test_errors():
    identity = lambda v: v
    plain = lambda matvec, b: b
    with pytest.raises(TypeError, match=r"solve returns f64\[2\] where b has f64\[3\]"):
        lax.custom_linear_solve(identity, f64(B), lambda m, b: b[:2])
    with pytest.raises(TypeError, match="matvec returns a"):
        lax.custom_linear_solve(lambda v: (v, v), f64(B), plain)
    with pytest.raises(TypeError, match="with has_aux solve must return"):
        lax.custom_linear_solve(identity, f64(B), plain, has_aux=True)
    with pytest.raises(weft.DerivativeError, match="give transpose_solve="):
        weft.grad(lambda b: lax.custom_linear_solve(identity, b, plain).sum())(f64(B))


def newton(f, x):
    return weft.while_loop(
        lambda v: abs(f(v)) > 1e-13, lambda v: v - f(v) / weft.jvp(f, (v,), (wnp.ones_like(v),))[1], x
    )


def cube_root(a):
    return lax.custom_root(
        lambda x: x**3 - a, f64(1.0), lambda f, x: opaque(newton(f, x)), lambda g, y: y / g(f64(1.0))
    )


def test_root():
    a = f64(5.0)
    np.testing.assert_allclose(cube_root(a), 5 ** (1 / 3))
    slope = 5 ** (-2 / 3) / 3
    np.testing.assert_allclose(weft.grad(cube_root)(a), slope)
    np.testing.assert_allclose(weft.jvp(cube_root, (a,), (f64(2.0),))[1], 2 * slope)
    np.testing.assert_allclose(weft.grad(weft.grad(cube_root))(a), -2 / 9 * 5 ** (-5 / 3))
    np.testing.assert_allclose(weft.jit(weft.vmap(weft.grad(cube_root)))(f64([5.0, 8.0])), [slope, 1 / 12])


def test_root_of_a_system_with_aux():
    def program(a, start):
        def f(x):
            return {"u": x["u"] ** 2 - a[0], "v": x["u"] * x["v"] - a[1]}

        def solver(f, x):
            u = wnp.sqrt(a[0])
            return {"u": opaque(u), "v": opaque(a[1] / u)}, 7

        def tangent(g, y):
            matrix = weft.jacfwd(lambda z: wnp.stack(weft.tree.leaves(g({"u": z[0], "v": z[1]}))))(
                wnp.zeros(2, "float64")
            )
            z = wnp.linalg.solve(matrix, wnp.stack([y["u"], y["v"]]))
            return {"u": z[0], "v": z[1]}

        x, aux = lax.custom_root(f, start, solver, tangent, has_aux=True)
        return x["v"], aux

    start = {"u": f64(1.0), "v": f64(1.0)}
    value, aux = program(f64([4.0, 3.0]), start)
    assert float(value) == pytest.approx(1.5)
    assert int(aux) == 7
    gradient = weft.grad(lambda a: program(a, start)[0])(f64([4.0, 3.0]))
    np.testing.assert_allclose(gradient, [-0.5 * 3 * 4**-1.5, 0.5])
