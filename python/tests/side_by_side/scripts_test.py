"""Scripts for JAX, training loops in Python among them, run with only their import lines changed."""

# ruff: noqa: E402, E501

import pathlib
import sys

import pytest

jax = pytest.importorskip("jax")
sys.path.insert(0, str(pathlib.Path(__file__).parent))

from side_by_side import compare, for_weft, run

PROGRAMS = {
    "linear_regression": """
import jax
import jax.numpy as jnp
from jax import random
def main():
    key = random.PRNGKey(0)
    k1, k2, k3 = random.split(key, 3)
    x = random.normal(k1, (50, 3))
    w_true = jnp.array([1.0, -2.0, 0.5])
    y = x @ w_true + 0.01 * random.normal(k2, (50,))
    def loss(w):
        return jnp.mean((x @ w - y) ** 2)
    @jax.jit
    def step(w):
        return w - 0.1 * jax.grad(loss)(w)
    w = jnp.zeros(3)
    for _ in range(50):
        w = step(w)
    return w
""",
    "logistic_regression": """
import jax
import jax.numpy as jnp
def main():
    x = jnp.linspace(-2, 2, 40).reshape(20, 2)
    y = (x[:, 0] > 0).astype(jnp.float32)
    def predict(params, x):
        return jax.nn.sigmoid(jnp.dot(x, params['w']) + params['b'])
    def loss(params):
        p = predict(params, x)
        return -jnp.mean(y * jnp.log(p + 1e-7) + (1 - y) * jnp.log(1 - p + 1e-7))
    params = {'w': jnp.zeros(2), 'b': 0.0}
    for _ in range(10):
        g = jax.grad(loss)(params)
        params = jax.tree.map(lambda p, g: p - 0.5 * g, params, g)
    return params
""",
    "mlp": """
import jax
import jax.numpy as jnp
from jax import grad, jit, vmap, random
def init(sizes, key):
    keys = random.split(key, len(sizes))
    return [(random.normal(k, (n, m)) * 0.1, jnp.zeros((n,))) for m, n, k in zip(sizes[:-1], sizes[1:], keys)]
def predict(params, x):
    for w, b in params[:-1]:
        x = jnp.maximum(0, jnp.dot(w, x) + b)
    w, b = params[-1]
    logits = jnp.dot(w, x) + b
    return logits - jax.nn.logsumexp(logits)
batched = vmap(predict, in_axes=(None, 0))
def loss(params, x, y):
    return -jnp.mean(batched(params, x) * y)
@jit
def update(params, x, y):
    grads = grad(loss)(params, x, y)
    return [(w - 0.1 * dw, b - 0.1 * db) for (w, b), (dw, db) in zip(params, grads)]
def main():
    params = init([8, 16, 4], random.PRNGKey(1))
    x = random.normal(random.PRNGKey(2), (10, 8))
    y = jax.nn.one_hot(jnp.arange(10) % 4, 4)
    for _ in range(3):
        params = update(params, x, y)
    return params
""",
    "rnn_scan": """
import jax
import jax.numpy as jnp
from jax import lax
def main():
    w = jnp.eye(3) * 0.5
    def cell(h, x):
        h = jnp.tanh(w @ h + x)
        return h, h.sum()
    xs = jnp.arange(12.0).reshape(4, 3) / 10
    h, ys = lax.scan(cell, jnp.zeros(3), xs)
    g = jax.grad(lambda h0: lax.scan(cell, h0, xs)[1].sum())(jnp.zeros(3))
    return h, ys, g
""",
    "newton": """
import jax
import jax.numpy as jnp
def main():
    f = lambda x: x ** 3 - 2 * x - 5
    def body(state):
        x, i = state
        return x - f(x) / jax.grad(f)(x), i + 1
    return jax.lax.while_loop(lambda s: (jnp.abs(f(s[0])) > 1e-5) & (s[1] < 50), body, (2.0, 0))
""",
    "hessian": """
import jax
import jax.numpy as jnp
def main():
    def rosenbrock(x):
        return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
    x = jnp.array([0.5, 1.5, -0.5])
    return jax.hessian(rosenbrock)(x), jax.jacfwd(jax.grad(rosenbrock))(x), jax.jacrev(jax.grad(rosenbrock))(x)
""",
    "hvp": """
import jax
import jax.numpy as jnp
from jax import grad, jvp
def main():
    f = lambda x: jnp.sum(jnp.sin(x) * x ** 2)
    hvp = lambda x, v: jvp(grad(f), (x,), (v,))[1]
    return hvp(jnp.arange(4.0), jnp.ones(4))
""",
    "fori_matrix_power": """
import jax
import jax.numpy as jnp
def main():
    a = jnp.array([[1.0, 1.0], [1.0, 0.0]])
    return jax.lax.fori_loop(0, 10, lambda i, m: m @ a, jnp.eye(2))
""",
    "cond_relu": """
import jax
import jax.numpy as jnp
from jax import lax
def main():
    f = lambda x: lax.cond(x > 0, lambda x: x ** 2, lambda x: 0.1 * x, x)
    return [jax.value_and_grad(f)(x) for x in (2.0, -3.0)], jax.vmap(jax.grad(f))(jnp.array([1.0, -1.0]))
""",
    "attention": """
import jax
import jax.numpy as jnp
def main():
    k1, k2, k3 = jax.random.split(jax.random.key(0), 3)
    q, k, v = (jax.random.normal(s, (2, 4, 5, 8)) for s in (k1, k2, k3))
    def attend(q, k, v):
        scores = jnp.einsum('bhqd,bhkd->bhqk', q, k) / jnp.sqrt(q.shape[-1])
        mask = jnp.tril(jnp.ones((5, 5), dtype=bool))
        scores = jnp.where(mask, scores, -jnp.inf)
        return jnp.einsum('bhqk,bhkd->bhqd', jax.nn.softmax(scores, axis=-1), v)
    return attend(q, k, v), jax.grad(lambda q: attend(q, k, v).sum())(q)
""",
    "layernorm": """
import jax
import jax.numpy as jnp
@jax.jit
def layernorm(x, g, b, eps=1e-5):
    mu = x.mean(-1, keepdims=True)
    var = x.var(-1, keepdims=True)
    return (x - mu) / jnp.sqrt(var + eps) * g + b
def main():
    x = jnp.arange(12.0).reshape(3, 4)
    return layernorm(x, jnp.ones(4), jnp.zeros(4)), jax.grad(lambda x: (layernorm(x, jnp.ones(4), jnp.zeros(4)) ** 3).sum())(x)
""",
    "kmeans": """
import jax
import jax.numpy as jnp
def main():
    x = jax.random.normal(jax.random.PRNGKey(0), (30, 2))
    c = x[:3]
    @jax.jit
    def step(c):
        d = jnp.sum((x[:, None] - c[None]) ** 2, -1)
        a = jnp.argmin(d, axis=1)
        onehot = jax.nn.one_hot(a, 3)
        return (onehot.T @ x) / jnp.maximum(onehot.sum(0)[:, None], 1), a
    for _ in range(5):
        c, a = step(c)
    return c, a
""",
    "game_of_life": """
import jax
import jax.numpy as jnp
@jax.jit
def step(board):
    n = sum(jnp.roll(board, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return ((n == 3) | ((board == 1) & (n == 2))).astype(jnp.int32)
def main():
    board = jnp.zeros((6, 6), dtype=jnp.int32).at[1, 2].set(1).at[2, 3].set(1).at[3, 1:4].set(1)
    for _ in range(8):
        board = step(board)
    return board
""",
    "mandelbrot": """
import jax
import jax.numpy as jnp
def main():
    y, x = jnp.meshgrid(jnp.linspace(-1, 1, 8), jnp.linspace(-2, 1, 12), indexing='ij')
    c = x + 1j * y
    def body(i, state):
        z, n = state
        z = jnp.where(jnp.abs(z) < 2, z * z + c, z)
        return z, n + (jnp.abs(z) < 2)
    return jax.lax.fori_loop(0, 15, body, (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)))[1]
""",
    "power_iteration": """
import jax
import jax.numpy as jnp
def main():
    a = jnp.array([[2.0, 1.0], [1.0, 3.0]])
    def step(v, _):
        v = a @ v
        return v / jnp.sqrt(v @ v), None
    v, _ = jax.lax.scan(step, jnp.ones(2), None, length=20)
    return v @ a @ v
""",
    "adam_namedtuple": """
from typing import NamedTuple
import jax
import jax.numpy as jnp
class State(NamedTuple):
    step: int
    m: object
    v: object
def main():
    loss = lambda p: jnp.sum((p['a'] - 3) ** 2) + p['b'] ** 4
    params = {'a': jnp.zeros(2), 'b': jnp.array(1.0)}
    zeros = jax.tree.map(jnp.zeros_like, params)
    state = State(0, zeros, zeros)
    @jax.jit
    def update(params, state):
        g = jax.grad(loss)(params)
        t = state.step + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state.m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g ** 2, state.v, g)
        params = jax.tree.map(lambda p, m, v: p - 0.1 * (m / (1 - 0.9 ** t)) / (jnp.sqrt(v / (1 - 0.999 ** t)) + 1e-8), params, m, v)
        return params, State(t, m, v)
    for _ in range(5):
        params, state = update(params, state)
    return params, state
""",
    "per_example_gradients": """
import jax
import jax.numpy as jnp
def main():
    loss = lambda w, x, y: (jnp.tanh(x @ w) - y) ** 2
    w, x, y = jnp.ones(3), jnp.arange(12.0).reshape(4, 3) / 10, jnp.arange(4.0)
    return jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)))(w, x, y)
""",
    "custom_jvp_log1pexp": """
import jax
import jax.numpy as jnp
@jax.custom_jvp
def log1pexp(x):
    return jnp.log(1. + jnp.exp(x))
@log1pexp.defjvp
def log1pexp_jvp(primals, tangents):
    x, = primals
    x_dot, = tangents
    return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * x_dot
def main():
    return jax.grad(log1pexp)(100.), jax.vmap(jax.grad(log1pexp))(jnp.arange(3.))
""",
    "custom_vjp_clip": """
import jax
import jax.numpy as jnp
@jax.custom_vjp
def clip_gradient(lo, hi, x):
    return x
def fwd(lo, hi, x):
    return x, (lo, hi)
def bwd(res, g):
    lo, hi = res
    return (None, None, jnp.clip(g, lo, hi))
clip_gradient.defvjp(fwd, bwd)
def main():
    return jax.vmap(jax.grad(lambda x: jnp.sin(clip_gradient(-0.75, 0.75, x))))(jnp.linspace(0, 6, 7))
""",
    "pytree_class": """
import dataclasses
import functools
import jax
import jax.numpy as jnp
def main():
    def f(tree):
        return jax.tree.map(lambda x: x * 2, tree), sum(jax.tree.leaves(tree))
    return jax.jit(f)({'a': 1.0, 'b': [2.0, (3.0, None)]})
""",
    "monte_carlo_pi": """
import jax
import jax.numpy as jnp
@jax.jit
def estimate(key):
    p = jax.random.uniform(key, (1000, 2))
    return 4 * jnp.mean((p ** 2).sum(1) < 1)
def main():
    return jax.vmap(estimate)(jax.random.split(jax.random.key(0), 3))
""",
    "ising": """
import jax
import jax.numpy as jnp
def energy(s):
    return -jnp.sum(s * jnp.roll(s, 1, 0)) - jnp.sum(s * jnp.roll(s, 1, 1))
def main():
    s = jnp.where(jax.random.bernoulli(jax.random.PRNGKey(3), 0.5, (4, 4)), 1, -1)
    def sweep(s, key):
        k1, k2 = jax.random.split(key)
        i, j = jax.random.randint(k1, (2,), 0, 4)
        new = s.at[i, j].multiply(-1)
        accept = jax.random.uniform(k2) < jnp.exp(-(energy(new) - energy(s)) / 2.0)
        return jnp.where(accept, new, s), energy(s)
    return jax.lax.scan(sweep, s, jax.random.split(jax.random.PRNGKey(4), 10))
""",
    "ode_rk4": """
import jax
import jax.numpy as jnp
def rk4(f, y, t, dt):
    k1 = f(y, t)
    k2 = f(y + dt / 2 * k1, t + dt / 2)
    k3 = f(y + dt / 2 * k2, t + dt / 2)
    k4 = f(y + dt * k3, t + dt)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
def main():
    f = lambda y, t: jnp.array([y[1], -y[0]])
    step = lambda y, t: (rk4(f, y, t, 0.1), y)
    y, path = jax.lax.scan(step, jnp.array([1.0, 0.0]), jnp.arange(20) * 0.1)
    return y, path, jax.jacfwd(lambda y0: jax.lax.scan(step, y0, jnp.arange(20) * 0.1)[0])(jnp.array([1.0, 0.0]))
""",
    "gather_embedding": """
import jax
import jax.numpy as jnp
def main():
    table = jnp.arange(20.0).reshape(5, 4)
    tokens = jnp.array([[0, 3], [4, 0]])
    f = lambda table: (table[tokens] ** 2).sum()
    return table[tokens], jax.grad(f)(table), jnp.take(table, tokens, axis=0)
""",
    "static_argnums": """
from functools import partial
import jax
import jax.numpy as jnp
@partial(jax.jit, static_argnums=(1,))
def power(x, n):
    for _ in range(n):
        x = x * x
    return x
def main():
    return power(jnp.array([1.1, 0.9]), 3), power(2.0, 2)
""",
    "associative_statistics": """
import jax
import jax.numpy as jnp
def main():
    x = jax.random.normal(jax.random.key(9), (6, 5))
    return jnp.cov(x), jnp.percentile(x, 30.0), jnp.median(x, axis=0), jnp.sort(x, axis=1), jnp.argsort(x, axis=0), jnp.cumsum(x, axis=1), jnp.std(x, ddof=1)
""",
    "dynamic_slice_window": """
import jax
import jax.numpy as jnp
from jax import lax
def main():
    x = jnp.arange(10.0)
    windows = jax.vmap(lambda i: lax.dynamic_slice(x, (i,), (3,)))(jnp.arange(8))
    y = lax.dynamic_update_slice(x, jnp.array([-1.0, -2.0]), (8,))
    return windows.mean(1), y, lax.dynamic_index_in_dim(x, 4, keepdims=False)
""",
    "checkpoint_policy": """
import jax
import jax.numpy as jnp
def main():
    f = jax.checkpoint(lambda x: jnp.sin(jnp.sin(jnp.sin(x))))
    return jax.grad(lambda x: f(x).sum())(jnp.arange(3.0)), jax.value_and_grad(jax.remat(lambda x: jnp.exp(x).sum()))(jnp.ones(2))
""",
    "gumbel_categorical": """
import jax
import jax.numpy as jnp
def main():
    logits = jnp.log(jnp.array([0.1, 0.6, 0.3]))
    return jax.random.categorical(jax.random.key(1), logits, shape=(20,)), jax.random.permutation(jax.random.key(2), 10)
""",
    "vjp_linear": """
import jax
import jax.numpy as jnp
def main():
    f = lambda x, w: jnp.tanh(w @ x)
    x, w = jnp.arange(3.0), jnp.arange(6.0).reshape(2, 3) / 5
    y, pull = jax.vjp(f, x, w)
    y2, lin = jax.linearize(f, x, w)
    return y, pull(jnp.ones(2)), lin(jnp.ones(3), jnp.ones((2, 3)))
""",
    "segment_sum_at": """
import jax
import jax.numpy as jnp
def main():
    data, ids = jnp.arange(6.0), jnp.array([0, 1, 0, 2, 1, 0])
    total = jnp.zeros(3).at[ids].add(data)
    return total, jnp.zeros(3).at[ids].max(data), jax.grad(lambda d: (jnp.zeros(3).at[ids].add(d) ** 2).sum())(data)
""",
    "boolean_logic": """
import jax
import jax.numpy as jnp
def main():
    x = jnp.arange(-3, 4)
    return jnp.where((x > 0) & ~(x == 2) | (x < -2), x, 0), jnp.any(x > 2), jnp.all(x < 2), jnp.clip(x, -1, 1), x // 2, x % 2, -x ** 2
""",
}


def test_there_are_thirty():
    assert len(PROGRAMS) >= 30


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    with jax.threefry_partitionable(True):
        want = run(PROGRAMS[name])
    compare(run(for_weft(PROGRAMS[name])), want, rtol=2e-4, atol=2e-5)
