"""Rotations and rigid motions: exponentials, their derivatives, a pose graph that is optimised."""

import jax
import jax.numpy as jnp
import jaxlie


def program():
    pose = jaxlie.SE3.exp(jnp.array([0.1, -0.2, 0.3, 0.4, 0.5, -0.6]))
    rotation = jaxlie.SO3.from_rpy_radians(0.1, 0.2, 0.3)
    point = jnp.array([1.0, 2.0, 3.0])
    target = jaxlie.SE3.exp(jnp.array([0.2, 0.1, 0.0, 0.3, -0.1, 0.2]))

    @jax.jit
    def step(current):
        loss = lambda p: jnp.sum((target.inverse() @ p).log() ** 2)
        return jaxlie.manifold.rplus(current, -0.2 * jaxlie.manifold.grad(loss)(current))

    current = pose
    for _ in range(30):
        current = step(current)
    random = jaxlie.SO3.sample_uniform(jax.random.key(0))
    return (
        pose.as_matrix(),
        (pose @ pose.inverse()).as_matrix(),
        rotation @ point,
        rotation.log(),
        current.log(),
        jax.jacobian(lambda t: jaxlie.SE2.exp(t).as_matrix())(jnp.array([0.1, 0.2, 0.3])),
        random.as_matrix(),
        jax.vmap(lambda t: jaxlie.SO2.from_radians(t).as_matrix())(jnp.linspace(0, 1, 4)),
    )
