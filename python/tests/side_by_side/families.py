"""Programs made of an operation, control flow around it and transforms of that, as texts for JAX."""

from __future__ import annotations

import itertools

# x is f32[4], m is f32[4, 4].
OPERATIONS = {
    "tanh_matvec": "jnp.tanh(m @ x)",
    "softmax_log": "jax.nn.log_softmax(x * 2.0)",
    "sum_norm": "x / jnp.sqrt(jnp.sum(x ** 2) + 1.0)",
    "gather_scatter": "jnp.zeros(4).at[jnp.array([3, 1, 1, 0])].add(x * m[0])",
    "sort_cumsum": "jnp.cumsum(jnp.sort(x * m[1]))",
    "where_clip": "jnp.where(x > 0, jnp.clip(x, 0.1, 0.9), -x) * m[2]",
    "einsum": "jnp.einsum('i,ij,j->j', x, m, x)",
    "solve": "jnp.linalg.solve(m @ m.T + 4 * jnp.eye(4), x)",
    "fft": "jnp.fft.irfft(jnp.fft.rfft(x) * jnp.array([1.0, 0.5, 0.25]))",
    "reduce_max": "jnp.max(m * x, axis=1) + jnp.min(m, axis=0)",
    "power": "jnp.abs(x) ** 1.5 + 2.0 ** x",
    "roll_flip": "jnp.roll(x, 1) * x[::-1] + jnp.pad(x, (1, 0))[:-1]",
}

# How f(x, m) -> f32[4] is built around an operation.
BODIES = {
    "straight": """
def f(x, m):
    return {op}
""",
    "scan": """
def f(x, m):
    def step(x, row):
        x = x + 0.1 * ({op}) * row
        return x, x.sum()
    x, sums = lax.scan(step, x, m)
    return x + sums
""",
    "fori": """
def f(x, m):
    return lax.fori_loop(0, 3, lambda i, x: 0.5 * x + 0.3 * ({op}) + 0.01 * i, x)
""",
    "cond": """
def f(x, m):
    return lax.cond(jnp.sum(x) > 0.2, lambda x: {op}, lambda x: jnp.sin(x) * m[3], x)
""",
    "switch_map": """
def f(x, m):
    def one(i):
        return lax.switch(i, [lambda: ({op}).sum(), lambda: (x * m[0]).sum(), lambda: x[2] ** 2])
    return lax.map(one, jnp.array([0, 2, 1, 0]))
""",
    "while": """
def f(x, m):
    def more(state):
        return state[0] < 3
    def step(state):
        i, x = state
        return i + 1, 0.5 * x + 0.3 * ({op})
    return lax.while_loop(more, step, (0, x))[1]
""",
    "custom": """
@jax.custom_jvp
def g(x):
    return jnp.sin(x)
@g.defjvp
def g_rule(primals, tangents):
    return g(primals[0]), jnp.cos(primals[0]) * tangents[0] * 1.5
def f(x, m):
    return g({op}) + jax.checkpoint(lambda x: jnp.exp(-x * x))(x)
""",
}

TRANSFORMS = {
    "jit": "jax.jit(f)(X, M)",
    "grad": "jax.jit(jax.grad(lambda x, m: jnp.sum(jnp.sin(f(x, m))), (0, 1)))(X, M)",
    "jvp": "jax.jvp(lambda x: f(x, M), (X,), (T,))",
    "vmap": "jax.jit(jax.vmap(f, in_axes=(0, None), out_axes=1))(XS, M)",
    "vmap_grad": "jax.jit(jax.vmap(jax.grad(lambda x, m: jnp.sum(f(x, m) ** 2)), (None, 0)))(X, MS)",
    "grad_vmap": "jax.jit(jax.grad(lambda xs: jnp.sum(jnp.cos(jax.vmap(f, (0, None))(xs, M)))))(XS)",
    "hessian": "jax.jit(jax.jacfwd(jax.grad(lambda x: jnp.sum(jnp.sin(f(x, M))))))(X)",
    "jacobians": "(jax.jacfwd(f)(X, M), jax.jit(jax.jacrev(f))(X, M))",
    "vjp": "(lambda out, pull: (out, pull(T)))(*jax.vjp(f, X, M))",
}

REVERSE = {"grad", "vmap_grad", "grad_vmap", "hessian", "jacobians", "vjp"}

PROGRAM = """
import numpy as np
import jax
import jax.numpy as jnp
from jax import lax
X = jnp.array([0.3, -0.7, 0.5, 0.9])
T = jnp.array([0.2, 0.1, -0.4, 1.0])
M = jnp.array(np.random.default_rng(1).uniform(-1, 1, (4, 4)).astype(np.float32))
XS = jnp.stack([X, T, X * T + 0.1])
MS = jnp.stack([M, M * 0.5 + 0.1])
{body}
def main():
    return {transform}
"""


def programs() -> dict[str, str]:
    """Every fifth combination: each operation meets each body and each transform."""
    out = {}
    combinations = itertools.product(OPERATIONS, BODIES, TRANSFORMS)
    for n, (op, body, transform) in enumerate(combinations):
        if body == "while" and transform in REVERSE:
            continue  # reverse mode needs a known number of steps, in JAX too
        if n % 5 != hash_of(op, body) % 5:
            continue
        text = BODIES[body].format(op=OPERATIONS[op])
        out[f"{op}-{body}-{transform}"] = PROGRAM.format(body=text, transform=TRANSFORMS[transform])
    return out


def hash_of(*words: str) -> int:
    return sum(ord(c) for word in words for c in word)
