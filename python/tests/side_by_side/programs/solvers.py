"""Roots, fixed points, linear systems, factorisations, optimisers."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from written import WHILE, program


@program("f32[] 1..5", refuses=WHILE)
def newton_square_root(a):
    def more(state):
        x, before, n = state
        return (jnp.abs(x - before) > 1e-5) & (n < 20)

    def step(state):
        x, _, n = state
        return 0.5 * (x + a / x), x, n + 1

    root, _, n = lax.while_loop(more, step, (a, 0.0 * a, 0))
    return root, n


@program("f32[] 2..9", "f32[] 0.5..1")
def bisection(target, scale):
    def f(x):
        return scale * x**3 + x - target

    def step(bounds, _):
        low, high = bounds
        middle = (low + high) / 2
        below = f(middle) < 0
        return (jnp.where(below, middle, low), jnp.where(below, high, middle)), below

    (low, high), path = lax.scan(step, (0.0, 4.0), None, length=12)
    return lax.stop_gradient(low + high) / 2 * scale, path


@program("f64[2] 0.5..1.5", x64=True)
def newton_system(x):
    def f(z):
        a, b = z
        return jnp.array([a**2 + b**2 - 2.0 * x[0], jnp.exp(a - 1) - b * x[1]])

    def step(z, _):
        z = z - jnp.linalg.solve(jax.jacfwd(f)(z), f(z))
        return z, jnp.linalg.norm(f(z))

    return lax.scan(step, jnp.ones(2), None, length=5)[0]


@program("f64[] 0.5..2", x64=True, tolerance=10)
def halley_cube_root(a):
    f = lambda x: x**3 - a
    first, second = jax.grad(f), jax.grad(jax.grad(f))

    def step(_, x):
        return x - 2 * f(x) * first(x) / (2 * first(x) ** 2 - f(x) * second(x))

    return lax.fori_loop(0, 5, step, 1.0 + 0.0 * a)


@program("f32[] 1..2", "f32[] 3..4")
def secant_method(a, b):
    f = lambda x: jnp.log(x) + x - 3.0

    def step(state, _):
        x0, x1 = state
        slope = (f(x1) - f(x0)) / (x1 - x0)
        return (x1, x1 - f(x1) / slope), f(x1)

    return lax.scan(step, (a, b), None, length=3)


@program("f32[3]", "f32[3,3]")
def root_by_implicit_function(b, a):
    a = a @ a.T + jnp.eye(3)

    def residual(x):
        return a @ x + 0.1 * jnp.tanh(x) - b

    def solve(f, x):
        return lax.fori_loop(0, 8, lambda _, x: x - jnp.linalg.solve(a + 0.1 * jnp.eye(3), f(x)), x)

    def tangent_solve(g, y):
        return jnp.linalg.solve(jax.jacobian(g)(y), y)

    return lax.custom_root(residual, jnp.zeros(3), solve, tangent_solve)


@program("f32[4]", "f32[4,4]", tolerance=4)
def linear_solve_with_own_method(b, a):
    a = a @ a.T + 3 * jnp.eye(4)

    def solve(matvec, b):
        def step(x, _):
            return x + 0.08 * (b - matvec(x)), None

        return lax.scan(step, jnp.zeros(4), None, length=40)[0]

    x = lax.custom_linear_solve(lambda v: a @ v, b, solve, symmetric=True)
    return x, jnp.linalg.norm(a @ x - b) < 1.0


@program("f64[4]", "f64[4,4]", x64=True, tolerance=100)
def conjugate_gradient(b, root):
    a = root @ root.T + 2 * jnp.eye(4)

    def step(state, _):
        x, r, p = state
        ap = a @ p
        alpha = (r @ r) / (p @ ap)
        after = r - alpha * ap
        beta = (after @ after) / (r @ r)
        return (x + alpha * p, after, after + beta * p), alpha

    (x, r, _), alphas = lax.scan(step, (jnp.zeros(4), b, b), None, length=3)
    return x, r, alphas


@program("f32[3]", "f32[3,3]", refuses=WHILE)
def jacobi_iteration_until_converged(b, a):
    a = a * 0.3 + 3 * jnp.eye(3)
    diagonal = jnp.diag(a)

    def step(state):
        x, _, n = state
        after = (b - (a @ x - diagonal * x)) / diagonal
        return after, jnp.abs(after - x).max(), n + 1

    return lax.while_loop(lambda s: (s[1] > 1e-4) & (s[2] < 30), step, (b, 1.0, 0))[::2]


@program("f32[3]", "f32[3,3]")
def gauss_seidel(b, a):
    a = a * 0.3 + 3 * jnp.eye(3)

    def sweep(x, _):
        for i in range(3):
            x = x.at[i].set((b[i] - a[i] @ x + a[i, i] * x[i]) / a[i, i])
        return x, jnp.linalg.norm(a @ x - b)

    return lax.scan(sweep, jnp.zeros(3), None, length=3)


@program("f64[4]", "f64[3]", "f64[3]", x64=True)
def thomas_algorithm(d, lower, upper):
    diagonal = jnp.full(4, 4.0)

    def forward(state, rows):
        c, e = state
        low, up, dia, rhs = rows
        scale = dia - low * c
        c, e = up / scale, (rhs - low * e) / scale
        return (c, e), (c, e)

    rows = jnp.append(0.0, lower), jnp.append(upper, 0.0), diagonal, d
    _, (cs, es) = lax.scan(forward, (0.0, 0.0), rows)

    def back(x, ce):
        x = ce[1] - ce[0] * x
        return x, x

    return lax.scan(back, 0.0, (cs, es), reverse=True)[1]


@program("f32[4,4]", "f32[4]")
def power_iteration_with_deflation(root, v):
    a = root @ root.T + jnp.diag(jnp.arange(4.0))

    def dominant(a):
        def step(v, _):
            v = a @ v
            return v / jnp.linalg.norm(v), None

        v1, _ = lax.scan(step, v / jnp.linalg.norm(v), None, length=5)
        return v1 @ a @ v1, v1

    first, vector = dominant(a)
    second, _ = dominant(a - first * jnp.outer(vector, vector))
    return first, second


@program("f64[5,3]", "f64[5]", x64=True)
def least_squares_by_qr(a, b):
    q, r = jnp.linalg.qr(a)
    x = jax.scipy.linalg.solve_triangular(r, q.T @ b)
    return x, jnp.linalg.norm(a @ x - b)


@program("f64[4,3]", x64=True, tolerance=100)
def gram_schmidt(a):
    columns = []
    for j in range(3):
        v = a[:, j]
        for q in columns:
            v = v - (q @ v) * q
        columns.append(v / jnp.linalg.norm(v))
    q = jnp.stack(columns, 1)
    return q, jnp.triu(q.T @ a)


@program("f64[3,3]", x64=True, tolerance=10)
def householder_reflections(a):
    def reflect(a, k):
        below = jnp.where(jnp.arange(3) >= k, a[:, k], 0.0)
        sign = jnp.where(below[k] < 0, -1.0, 1.0)
        v = below.at[k].add(sign * jnp.linalg.norm(below))
        return a - 2 * jnp.outer(v, v @ a) / (v @ v)

    for k in range(2):
        a = reflect(a, k)
    return jnp.abs(jnp.diag(a)), a[0, 1:]


@program("f64[3,3]", x64=True, tolerance=100)
def cholesky_by_hand(root):
    a = root @ root.T + jnp.eye(3)

    def column(j, low):
        s = a[:, j] - low @ low[j]
        return low.at[:, j].set(jnp.where(jnp.arange(3) >= j, s / jnp.sqrt(s[j]), 0.0))

    low = lax.fori_loop(0, 3, column, jnp.zeros((3, 3)))
    return low, low - jnp.linalg.cholesky(a)


@program("f32[5]", "f32[5]", "f32[2]", "f32[] 0.5..1.5")
def gaussian_process_regression(x, y, test, length):
    def kernel(a, b):
        return jnp.exp(-0.5 * ((a[:, None] - b[None]) / length) ** 2)

    low = jnp.linalg.cholesky(kernel(x, x) + 0.3 * jnp.eye(5))
    alpha = jax.scipy.linalg.cho_solve((low, True), y)
    cross = kernel(test, x)
    v = jax.scipy.linalg.solve_triangular(low, cross.T, lower=True)
    evidence = -0.5 * y @ alpha - jnp.sum(jnp.log(jnp.diag(low)))
    return cross @ alpha, 1 - jnp.sum(v**2, 0), evidence


@program("f64[3,3]", x64=True)
def matrix_exponential_by_squaring(a):
    scaled = a / 8
    term, total = jnp.eye(3), jnp.eye(3)
    for k in range(1, 7):
        term = term @ scaled / k
        total = total + term
    total = lax.fori_loop(0, 3, lambda _, m: m @ m, total)
    return total, jnp.trace(total)


@program("f64[3,3]", x64=True, tolerance=10)
def matrix_square_root(root):
    a = root @ root.T / 4 + jnp.eye(3)

    def step(_, yz):
        y, z = yz
        return 0.5 * (y + jnp.linalg.inv(z)), 0.5 * (z + jnp.linalg.inv(y))

    y, z = lax.fori_loop(0, 4, step, (a, jnp.eye(3)))
    return y, y @ z


@program("f64[4,3]", x64=True, tolerance=1000)
def low_rank_approximation(a):
    u, s, vt = jnp.linalg.svd(a, full_matrices=False)
    best = (u[:, :2] * s[:2]) @ vt[:2]
    return best, s, jnp.linalg.norm(a - best)


@program("f64[3,3]", "f64[3]", x64=True)
def rank_one_update(a, v):
    a = a + 4 * jnp.eye(3)
    inverse = jnp.linalg.inv(a)
    updated = inverse - jnp.outer(inverse @ v, v @ inverse) / (1 + v @ inverse @ v)
    sign, log_det = jnp.linalg.slogdet(a + jnp.outer(v, v))
    return updated, sign, log_det - jnp.log(jnp.abs(1 + v @ inverse @ v))


class Adam(NamedTuple):
    count: object
    mean: object
    square: object


@program({"w": "f32[3]", "b": "f32[]"}, "f32[4,3]", "f32[4]")
def adam(params, x, y):
    def loss(p):
        return jnp.mean((jnp.tanh(x @ p["w"] + p["b"]) - y) ** 2)

    def step(carry, _):
        p, s = carry
        g = jax.grad(loss)(p)
        count = s.count + 1
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, s.mean, g)
        square = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, s.square, g)
        move = lambda p, m, v: p - 0.1 * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.99**count)) + 1e-2)
        return (jax.tree.map(move, p, mean, square), Adam(count, mean, square)), loss(p)

    zeros = jax.tree.map(jnp.zeros_like, params)
    return lax.scan(step, (params, Adam(0.0, zeros, zeros)), None, length=3)


@program("f32[4]", 0.1, 0.8)
def nesterov_momentum(x, rate, momentum):
    def loss(x):
        return jnp.sum(10.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    def step(state, _):
        x, v = state
        g = jax.grad(loss)(x + momentum * v)
        v = momentum * v - rate * 0.01 * g
        return (x + v, v), loss(x)

    return lax.scan(step, (x, jnp.zeros(4)), None, length=3)


@program("f64[3]", x64=True, tolerance=1000)
def lbfgs_two_loop(x):
    def loss(x):
        return jnp.sum(jnp.cosh(x) + 0.2 * x**2) + 0.5 * x[0] * x[1]

    history = []
    g = jax.grad(loss)(x)
    for _ in range(2):
        q, alphas = g, []
        for s, y in reversed(history):
            alpha = (s @ q) / (y @ s)
            alphas.append(alpha)
            q = q - alpha * y
        for (s, y), alpha in zip(history, reversed(alphas)):
            q = q + s * (alpha - (y @ q) / (y @ s))
        after = x - 0.3 * q
        g_after = jax.grad(loss)(after)
        history.append((after - x, g_after - g))
        x, g = after, g_after
    return x, loss(x)


@program("f32[2]", "f32[2]")
def line_search(x, direction):
    def loss(x):
        return jnp.sum(jnp.log(1 + x**2))

    value, slope = jax.value_and_grad(loss)(x)
    d = -slope + 0.01 * direction

    def try_(state, _):
        t, done = state
        good = loss(x + t * d) < value + 0.1 * t * slope @ d
        done = done | good
        return (jnp.where(done, t, t / 2), done), t

    (t, done), tried = lax.scan(try_, (2.0, False), None, length=4)
    return x + t * d, done, tried


@program("f64[2]", x64=True, tolerance=100)
def levenberg_marquardt(p):
    t = jnp.linspace(0.0, 1.0, 5)
    y = 1.5 * jnp.exp(-0.7 * t)

    def residual(p):
        return p[0] * jnp.exp(p[1] * t) - y

    def step(state, _):
        p, damping = state
        j, r = jax.jacfwd(residual)(p), residual(p)
        move = jnp.linalg.solve(j.T @ j + damping * jnp.eye(2), -j.T @ r)
        better = jnp.sum(residual(p + move) ** 2) < jnp.sum(r**2)
        return (jnp.where(better, p + move, p), jnp.where(better, damping / 3, damping * 2)), better

    return lax.scan(step, (p, 0.5), None, length=3)


@program("f32[3]", "f32[4,3]", "f32[4]")
def proximal_gradient_lasso(w, x, y):
    step_size = 0.1

    def shrink(v, t):
        return jnp.sign(v) * jnp.maximum(jnp.abs(v) - t, 0.0)

    def step(w, _):
        w = shrink(w - step_size * x.T @ (x @ w - y) / 4, 0.05)
        return w, jnp.count_nonzero(w)

    return lax.scan(step, w, None, length=4)


@program("f32[4]", "f32[]")
def projection_on_the_simplex(v, shift):
    ordered = jnp.sort(v)[::-1]
    totals = jnp.cumsum(ordered) - 1
    positive = ordered - totals / jnp.arange(1, 5) > 0
    rho = positive.sum()
    threshold = totals[rho - 1] / rho
    return jnp.maximum(v - threshold, 0) + shift, rho


@program("f32[3]", "f32[3]")
def mirror_descent(logits, costs):
    p = jax.nn.softmax(logits)

    def step(p, t):
        p = p * jnp.exp(-0.3 * (costs + t * p))
        p = p / p.sum()
        return p, p @ costs

    return lax.scan(step, p, jnp.arange(4.0))


@program("f32[2]", "f32[2]")
def saddle_point_by_extragradient(x, y):
    game = lambda x, y: x @ y + 0.1 * x @ x - 0.1 * jnp.sum(y**2)

    def step(xy, _):
        x, y = xy
        gx, gy = jax.grad(game, (0, 1))(x, y)
        hx, hy = jax.grad(game, (0, 1))(x - 0.2 * gx, y + 0.2 * gy)
        return (x - 0.2 * hx, y + 0.2 * hy), game(x, y)

    return lax.scan(step, (x, y), None, length=3)


@program({"a": "f32[2]", "b": ("f32[]", "f32[2,2]")}, 0.05)
def meta_learned_step(params, rate):
    flat, unravel = ravel_pytree(params)

    def inner(v):
        p = unravel(v)
        return jnp.sum(jnp.sin(p["a"] @ p["b"][1])) + p["b"][0] ** 2

    adapted = flat - rate * jax.grad(inner)(flat)
    return unravel(adapted), inner(adapted)


@program("f32[3]", "u32[] 0..100")
def stochastic_gradient_langevin(x, seed):
    energy = lambda x: jnp.sum(x**4 / 4 - x**2 / 2)

    def step(x, key):
        noise = jax.random.normal(key, x.shape)
        x = x - 0.1 * jax.grad(energy)(x) + jnp.sqrt(0.02) * noise
        return x, energy(x)

    return lax.scan(step, x, jax.random.split(jax.random.key(seed), 3))


@program("f32[4]", "u32[] 0..100")
def simulated_annealing(x, seed):
    cost = lambda x: jnp.sum(jnp.cos(3 * x) + 0.2 * x**2)

    def step(x, inputs):
        key, temperature = inputs
        k1, k2 = jax.random.split(key)
        proposal = x + jax.random.uniform(k1, x.shape, minval=-0.5, maxval=0.5)
        drop = cost(proposal) - cost(x)
        accept = jax.random.uniform(k2) < jnp.exp(-drop / temperature)
        return lax.select(accept, proposal, x), accept

    keys = jax.random.split(jax.random.key(seed), 4)
    return lax.scan(step, x, (keys, jnp.array([1.0, 0.5, 0.25, 0.1])))


@program("f32[3]", "f32[3]")
def hessian_free_step(x, y):
    def loss(x):
        return jnp.sum(jnp.logaddexp(x, -y)) + 0.5 * x @ x

    def hvp(v):
        return jax.jvp(jax.grad(loss), (x,), (v,))[1]

    def step(state, _):
        p, r = state
        alpha = (r @ r) / (r @ hvp(r) + 1e-6)
        return (p + alpha * r, r - alpha * hvp(r)), None

    (p, r), _ = lax.scan(step, (jnp.zeros(3), -jax.grad(loss)(x)), None, length=2)
    return x + p, r


@program("f32[3]", "f32[3,2]")
def gauss_newton_product(w, x):
    f = lambda w: jnp.tanh(w @ x)
    out, pull = jax.vjp(f, w)
    _, push = jax.linearize(f, w)
    v = jnp.cos(w)
    fisher = pull(push(v))[0]
    return out, fisher, jax.vmap(push)(jnp.eye(3))


@partial(jax.jit, static_argnums=1)
def richardson(x, levels):
    table = [(jnp.sin(x + h) - jnp.sin(x - h)) / (2 * h) for h in (0.4 / 2**k for k in range(levels))]
    for m in range(1, levels):
        table = [b + (b - a) / (4**m - 1) for a, b in zip(table, table[1:])]
    return table[0]


@program("f32[3]", 3)
def richardson_extrapolation(x, levels):
    estimate = richardson(x, levels)
    return estimate, jnp.abs(estimate - jnp.cos(x)) < 1e-2


@program("f32[3] 0.5..2", np.linspace(0.0, 1.0, 5).astype(np.float32))
def simpson_and_trapezoid(c, grid):
    f = lambda t: c[0] * jnp.exp(-c[1] * t) + c[2] * t
    values = f(grid)
    weights = jnp.ones(5).at[1:-1:2].set(4.0).at[2:-1:2].set(2.0)
    return values @ weights / 12, jnp.trapezoid(values, grid), jnp.gradient(values, 0.25)


@program("f64[3] 0.5..2", x64=True)
def gauss_legendre_quadrature(c):
    nodes = jnp.sqrt(jnp.array([3 / 7 - 2 / 7 * np.sqrt(6 / 5), 3 / 7 + 2 / 7 * np.sqrt(6 / 5)]))
    weights = (18 + jnp.array([1, -1]) * np.sqrt(30)) / 36
    x = jnp.concatenate([-nodes[::-1], nodes])
    w = jnp.concatenate([weights[::-1], weights])
    f = jax.vmap(lambda t: jnp.exp(c[0] * t) / (1 + c[1] * t**2))
    return w @ f(x), c[2] * x
