"""Annotations of shapes that are checked while a program is traced."""

import jax
import jax.numpy as jnp
from beartype import beartype
from jaxtyping import Array, Float, Int, PyTree, jaxtyped


@jaxtyped(typechecker=beartype)
def product(a: Float[Array, "n k"], b: Float[Array, "k m"]) -> Float[Array, "n m"]:  # noqa: F722
    return a @ b


@jaxtyped(typechecker=beartype)
def total(tree: PyTree[Float[Array, "..."]], index: Int[Array, ""]) -> Float[Array, ""]:  # noqa: F722
    return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(tree)) + index


def program():
    a, b = jnp.ones((2, 3)), jnp.arange(12.0).reshape(3, 4)
    refused = 0
    for call in (
        lambda: product(a, a),
        lambda: jax.jit(product)(a, a),
        lambda: total({"x": jnp.arange(3)}, jnp.array(1)),
    ):
        try:
            call()
        except Exception as error:
            refused += "type" in type(error).__module__ or "Type" in type(error).__name__
    return (
        product(a, b),
        jax.jit(product)(a, b),
        jax.grad(lambda v: product(v, b).sum())(a),
        total([a, (b,)], jnp.array(3)),
        refused,
    )
