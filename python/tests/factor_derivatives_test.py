"""Derivatives of higher order through factorisations: their numbers against differences of NumPy's, and what they cost,
counted on the optimised IR. The rules are tested, not compiled code, so the interpreter runs them."""

import os

os.environ["WEFT_INTERPRET"] = "1"

import numpy as np
import pytest

import weft
import weft.numpy as wnp

N = 5


def draw(*shape, dtype="float64", seed=0):
    rng = np.random.default_rng((seed, *shape))
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


W, B = draw(N, N, seed=1), draw(N, 3, seed=2)


def adjoint(lib, x):
    return lib.conj(lib.swapaxes(x, -1, -2))


def positive(lib, x):
    return x @ adjoint(lib, x) + N * np.eye(N)


def system(lib, a, b, lower=True, trans=0):
    if lib is wnp:
        return wnp.linalg.solve_triangular(a, b, lower=lower, trans=trans)
    a = np.tril(a) if lower else np.triu(a)
    return np.linalg.solve([a, np.swapaxes(a, -1, -2), adjoint(np, a)][trans], b)


def number(lib, *arrays):
    """A number that is not linear in them."""
    return sum(lib.sum(lib.sin(i + 1 + x.real + 2 * x.imag)) for i, x in enumerate(arrays))


PROGRAMS = {
    "cholesky": lambda lib, x: number(lib, lib.linalg.cholesky(positive(lib, x)) * W),
    "product of factors": lambda lib, x: (lambda c: number(lib, c @ c @ W @ adjoint(lib, c) @ c / N))(
        lib.linalg.cholesky(positive(lib, x))
    ),
    "sum over a stack": lambda lib, x: (lambda c: number(lib, lib.einsum("amk,amn->kn", c, c * W) / N))(
        lib.linalg.cholesky(positive(lib, lib.stack([x, 2 * x])))
    ),
    "the half that is 0": lambda lib, x: number(
        lib, system(lib, lib.linalg.cholesky(positive(lib, x)), B, lower=False)
    ),
    "qr": lambda lib, x: (lambda f: number(lib, f[0] * W, f[1] * W))(lib.linalg.qr(x)),
    "tall qr": lambda lib, x: (lambda f: number(lib, f[0], f[1] * W))(lib.linalg.qr(lib.concatenate([x, W @ x]))),
    "the lower half of r": lambda lib, x: number(lib, system(lib, lib.linalg.qr(x)[1], B)),
    "slogdet": lambda lib, x: number(lib, *lib.linalg.slogdet(x)),
    "det": lambda lib, x: number(lib, lib.linalg.det(x) / 100),
}
for trans in range(3):
    PROGRAMS |= {
        f"cholesky system {trans}": lambda lib, x, trans=trans: number(
            lib, system(lib, lib.linalg.cholesky(positive(lib, x)), x * W, trans=trans)
        ),
        f"constant right side {trans}": lambda lib, x, trans=trans: number(
            lib, system(lib, lib.linalg.cholesky(positive(lib, x)), B.astype(x.dtype), trans=trans)
        ),
        f"r system {trans}": lambda lib, x, trans=trans: number(
            lib, system(lib, lib.linalg.qr(x)[1], x * W, lower=False, trans=trans)
        ),
    }
    for after in (0, 2):
        PROGRAMS[f"from both sides {trans} {after}"] = lambda lib, x, trans=trans, after=after: (
            lambda c: number(
                lib, adjoint(lib, system(lib, c, adjoint(lib, system(lib, c, x + W, trans=trans)), trans=after))
            )
        )(lib.linalg.cholesky(positive(lib, x)))


def second_difference(f, x, v):
    """d^2 f(x + t v) / dt^2, extrapolated twice."""
    step = lambda h: (f(x + h * v) - 2 * f(x) + f(x - h * v)) / h**2
    a, b, c = (step(h) for h in (4e-3, 2e-3, 1e-3))
    ab, bc = (4 * b - a) / 3, (4 * c - b) / 3
    return (16 * bc - ab) / 15


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_second_and_third_order(name, dtype):
    program = PROGRAMS[name]
    f = lambda x: program(wnp, x)
    x, v = draw(N, N, dtype=dtype) + 2 * np.eye(N), draw(N, N, dtype=dtype, seed=3) / N
    np.testing.assert_allclose(float(f(x)), program(np, x), rtol=1e-9)
    want = second_difference(lambda x: program(np, x), x, v)
    along = lambda f: lambda x: weft.jvp(f, (x,), (v,))[1]
    product = lambda h: np.real(np.sum(np.asarray(h) * v))
    hvp = weft.jit(along(weft.grad(f)))
    got = {
        "forward over reverse": product(hvp(x)),
        "forward over forward": float(weft.jit(along(along(f)))(x)),
        "reverse over forward": product(weft.jit(weft.grad(along(f)))(x)),
        "reverse over reverse": product(weft.jit(weft.grad(lambda x: (weft.grad(f)(x) * v).sum().real))(x)),
    }
    scale = max(1, abs(want))
    for mode, value in got.items():
        assert abs(value - want) < 1e-6 * scale, (mode, value, want)
    # The whole product, beside the differences of gradients; and once more.
    slope = lambda f: (8 * (f(x + 1e-4 * v) - f(x - 1e-4 * v)) - f(x + 2e-4 * v) + f(x - 2e-4 * v)) / 12e-4
    gradient = weft.jit(weft.grad(f))
    for got, below in [(hvp, gradient), (weft.jit(along(hvp)), hvp)]:
        values, differences = np.asarray(got(x)), slope(lambda x: np.asarray(below(x)))  # noqa: B023
        np.testing.assert_allclose(values, differences, atol=1e-7 * max(1, np.abs(values).max()))


def minors(a):
    """The first and second derivatives of the determinant by the elements of a: minors with their signs."""
    n = len(a)
    det = lambda m: np.linalg.det(m) if m.size else 1.0
    first, second = np.zeros((n, n), a.dtype), np.zeros((n, n, n, n), a.dtype)
    for i, j in np.ndindex(n, n):
        first[i, j] = (-1) ** (i + j) * det(np.delete(np.delete(a, i, 0), j, 1))
    for i, j, k, m in np.ndindex(n, n, n, n):
        if i != k and j != m:
            sign = (-1) ** (i + j + k + m) * (1 if (i < k) == (j < m) else -1)
            second[i, j, k, m] = sign * det(np.delete(np.delete(a, [i, k], 0), [j, m], 1))
    return first, second


def of_rank(n, rank, dtype="float64"):
    rng = np.random.default_rng(n + rank)
    a = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, n))
    if dtype == "complex128":
        a = a + 1j * a @ np.diag(rng.standard_normal(n))
    return a.astype(dtype)


SINGULAR = [(n, rank) for n in (1, 2, 3, 4, 6) for rank in (0, n - 2, n - 1, n) if rank >= 0]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("n, rank", sorted(set(SINGULAR)))
def test_derivatives_of_det_at_any_rank(n, rank, dtype):
    a = of_rank(n, rank, dtype)
    first, second = minors(a)
    more = {"holomorphic": True} if dtype == "complex128" else {}
    grad, det = weft.grad(wnp.linalg.det, **more), wnp.linalg.det
    x = wnp.array(a, dtype=dtype)
    close = lambda got, wanted: np.testing.assert_allclose(got, wanted, atol=1e-9 * max(1, np.abs(wanted).max()))
    close(det(x), np.linalg.det(a))
    for f in (grad, weft.jacfwd(det, **more), weft.jit(grad)):
        close(f(x), first)
    for f in (weft.jacfwd(grad, **more), weft.jit(weft.jacrev(grad, **more))):
        close(f(x), second)
    # A batch of several ranks, by vmap and as it is.
    batch = wnp.stack([x, wnp.eye(n, dtype=dtype), 0 * x])
    wanted = [first, np.eye(n), minors(0 * a)[0]]
    close(weft.vmap(grad)(batch), wanted)
    close(weft.grad(lambda v: det(v).sum(), **more)(batch), wanted)
    value, slope = weft.jvp(det, (x,), (wnp.ones((n, n), dtype),))
    close(value, np.linalg.det(a))
    close(slope, first.sum())


def test_slogdet_of_stacks_is_the_inverse():
    a, v = draw(3, N, N), draw(3, N, N, seed=1)
    inverse = np.linalg.inv(a)
    gradient = weft.grad(lambda a: wnp.linalg.slogdet(a)[1].sum())
    got, hvp = weft.jit(lambda a: weft.jvp(gradient, (a,), (v,)))(a)
    np.testing.assert_allclose(got, np.swapaxes(inverse, 1, 2), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(hvp, -np.swapaxes(inverse @ v @ inverse, 1, 2), rtol=1e-9, atol=1e-11)
    lanes = weft.vmap(lambda a, v: weft.jvp(weft.grad(lambda a: wnp.linalg.slogdet(a)[1]), (a,), (v,))[1])(a, v)
    np.testing.assert_allclose(lanes, hvp, rtol=1e-12, atol=1e-13)


SIZE = 64
TALL = 2 * SIZE
# Of the gradient and of the Hessian-vector product: factorisations, triangular systems, products of matrices.
COUNTED = {
    "cholesky": (lambda a, w: wnp.sum(w * wnp.linalg.cholesky(a)), (SIZE, SIZE), (1, 2, 1), (1, 4, 3)),
    "cholesky of a product": (
        lambda a, w: wnp.sum(w * wnp.linalg.cholesky(a @ a.T + SIZE * wnp.eye(SIZE))),
        (SIZE, SIZE),
        (1, 2, 4),
        (1, 6, 10),
    ),
    "log of a determinant by cholesky": (
        lambda a, w: wnp.sum(wnp.log(wnp.diagonal(wnp.linalg.cholesky(a @ a.T + wnp.eye(SIZE))))),
        (SIZE, SIZE),
        (1, 2, 3),
        (1, 6, 9),
    ),
    "slogdet": (lambda a, w: wnp.linalg.slogdet(a)[1], (SIZE, SIZE), (1, 2, 0), (1, 4, 0)),
    "qr": (
        lambda a, w: (lambda f: wnp.sum(w * f[0]) + wnp.sum(w.T * f[1]))(wnp.linalg.qr(a)),
        (SIZE, SIZE),
        (1, 1, 3),
        (1, 2, 10),
    ),
    "tall qr": (
        lambda a, w: (lambda f: wnp.sum(w * f[0]) + wnp.sum(w[:SIZE] * f[1]))(wnp.linalg.qr(a)),
        (TALL, SIZE),
        (1, 1, 3),
        (1, 2, 10),
    ),
    "inv": (lambda a, w: wnp.sum(w * wnp.linalg.inv(a)), (SIZE, SIZE), (1, 4, 0), (1, 8, 4)),
    "solve": (lambda a, w: wnp.sum(wnp.linalg.solve(a, w) ** 2), (SIZE, SIZE), (1, 4, 1), (1, 8, 4)),
    "solve_triangular": (
        lambda a, w: wnp.sum(wnp.linalg.solve_triangular(a, w, lower=True) ** 2),
        (SIZE, SIZE),
        (0, 2, 1),
        (0, 4, 4),
    ),
}


MORE_THAN_THREE = {"inv": 3.3}  # its gradient is two solutions, without a product


@pytest.mark.parametrize("name", COUNTED)
def test_hessian_vector_products_cost_at_most_three_gradients(name):
    function, shape, of_gradient, of_hvp = COUNTED[name]
    w = wnp.asarray(draw(*shape, dtype="float32"))
    gradient = weft.grad(lambda a: function(a, w))
    a, v = draw(*shape, dtype="float32", seed=1), draw(*shape, dtype="float32", seed=2)
    programs = [
        weft.make_ir(gradient)(a),
        weft.make_ir(lambda a, v: weft.jvp(gradient, (a,), (v,))[1])(a, v),
    ]

    def operations(program):
        lines = str(program.stage("optimized")).splitlines()
        count = lambda *names: sum(any(f" = {name}{c}" in line for name in names for c in " [") for line in lines)
        return count("cholesky", "lu", "qr", "svd", "eigh"), count("triangular_solve"), count("contract")

    assert [operations(p) for p in programs] == [of_gradient, of_hvp]
    costs = [p.cost_analysis() for p in programs]
    of_one, of_other = (c["flops"] + c["bytes accessed"] for c in costs)
    assert of_other <= MORE_THAN_THREE.get(name, 3) * of_one, of_other / of_one


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("factor", ["qr", "svd"])
def test_columns_that_complete_a_basis_turn_with_the_others(factor, dtype):
    a, d = draw(5, 3, dtype=dtype, seed=4), draw(5, 3, dtype=dtype, seed=5)

    def basis(a):
        return wnp.linalg.qr(a, "complete")[0] if factor == "qr" else wnp.linalg.svd(a)[0]

    def projection(a):
        added = basis(a)[:, 3:]
        return added @ wnp.conj(added.T)

    q, dq = weft.jvp(basis, (a,), (d,))
    turn = np.asarray(wnp.conj(q.T) @ dq)
    np.testing.assert_allclose(turn, -turn.conj().T, atol=1e-12)  # q stays unitary
    moved = weft.jvp(projection, (a,), (d,))[1]
    h = 1e-6
    np.testing.assert_allclose(moved, (projection(a + h * d) - projection(a - h * d)) / (2 * h), atol=1e-8)
    slope = lambda a: weft.jvp(projection, (a,), (d,))[1]
    second = weft.jvp(slope, (a,), (d,))[1]
    np.testing.assert_allclose(second, (slope(a + h * d) - slope(a - h * d)) / (2 * h), atol=1e-7)
