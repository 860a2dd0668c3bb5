"""Arrays of one's own: a matrix of low rank that meets jax.numpy."""

import jax
import jax.numpy as jnp
import quax
from quax.examples import lora


def program():
    import equinox as eqx

    linear = eqx.nn.Linear(4, 3, key=jax.random.key(0))
    adapted = lora.loraify(linear, rank=2, key=jax.random.key(1))
    return quax.quaxify(adapted)(jnp.arange(4.0)), linear(jnp.arange(4.0))
