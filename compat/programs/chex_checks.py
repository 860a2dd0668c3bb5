"""Dataclasses as containers, checks of shapes and numbers, variants of a test."""

import chex
import jax
import jax.numpy as jnp
import numpy as np


@chex.dataclass
class Particle:
    position: chex.Array
    velocity: chex.Array
    mass: float = 1.0


def program():
    def energy(p):
        return 0.5 * p.mass * jnp.sum(p.velocity**2) + jnp.sum(p.position**4)

    @jax.jit
    def step(p):
        force = -jax.grad(lambda x: energy(p.replace(position=x)))(p.position)
        velocity = p.velocity + 0.01 * force / p.mass
        return p.replace(position=p.position + 0.01 * velocity, velocity=velocity)

    p = Particle(position=jnp.array([1.0, 0.5]), velocity=jnp.array([0.0, 0.3]))
    start = energy(p)
    for _ in range(100):
        p = step(p)
    chex.assert_tree_all_finite(p)
    chex.assert_shape([p.position, p.velocity], (2,))
    chex.assert_rank(start, 0)
    chex.assert_type(p.position, jnp.float32)
    chex.assert_trees_all_close(start, energy(p), rtol=1e-1)
    refused = 0
    for check in (
        lambda: chex.assert_shape(p.position, (3,)),
        lambda: chex.assert_equal_shape([p.position, jnp.ones(3)]),
        lambda: chex.assert_trees_all_equal_structs(p, {"a": 1}),
        lambda: chex.assert_scalar_positive(-1.0),
    ):
        try:
            check()
        except AssertionError:
            refused += 1
    counted = chex.assert_max_traces(lambda x: x + 1, n=1)
    once = jax.jit(counted)(jnp.ones(2))
    fake = chex.fake_jit()
    with fake:
        unjitted = jax.jit(lambda x: x * 2)(jnp.arange(3.0))
    return (
        p.position,
        p.velocity,
        start,
        refused,
        once,
        unjitted,
        np.asarray(chex.create_deprecated_function_alias is not None),
    )
