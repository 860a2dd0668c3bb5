"""A program for JAX, as its user wrote it: a neural network that learns to solve an equation.

    python -m weft.as_jax examples/jax_program.py        # without JAX
    python examples/jax_program.py                       # with JAX: the same numbers

The network's derivative is to be its negative, u' = -u with u(0) = 1, so that it becomes exp(-t)."""

import jax
import jax.numpy as jnp
from jax import random


def init(key, sizes=(1, 32, 32, 1)):
    keys = random.split(key, len(sizes) - 1)
    return [
        {"w": random.normal(k, (m, n)) / jnp.sqrt(m), "b": jnp.zeros(n)} for k, m, n in zip(keys, sizes[:-1], sizes[1:])
    ]


def u(params, t):
    x = t[None]
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return 1 + t * (x @ params[-1]["w"] + params[-1]["b"])[0]


def loss(params, ts):
    residual = lambda t: jax.grad(u, argnums=1)(params, t) + u(params, t)
    return jnp.mean(jax.vmap(residual)(ts) ** 2)


@jax.jit
def train(params, key):
    def step(carry, key):
        params, m, v, i = carry
        g = jax.grad(loss)(params, random.uniform(key, (64,), maxval=2.0))
        i = i + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, v, g)
        adam = lambda p, m, v: p - 1e-2 * (m / (1 - 0.9**i)) / (jnp.sqrt(v / (1 - 0.999**i)) + 1e-8)
        return (jax.tree.map(adam, params, m, v), m, v, i), None

    zeros = jax.tree.map(jnp.zeros_like, params)
    return jax.lax.scan(step, (params, zeros, zeros, 0.0), random.split(key, 1000))[0][0]


params = train(init(random.PRNGKey(0)), random.PRNGKey(1))
ts = jnp.linspace(0.0, 2.0, 9)
solution = jax.vmap(u, (None, 0))(params, ts)
error = jnp.max(jnp.abs(solution - jnp.exp(-ts)))
print(f"u(2) = {solution[-1]:.3f}, exp(-2) = {jnp.exp(-2.0):.3f}")
assert error < 1e-2, error
