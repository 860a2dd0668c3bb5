"""Spherical harmonics, tensor products and a network that turns with its input."""

import e3nn_jax as e3nn
import jax


def program():
    vectors = jax.random.normal(jax.random.PRNGKey(0), (5, 3))
    harmonics = e3nn.spherical_harmonics("0e + 1o + 2e", vectors, normalize=True)
    product = e3nn.tensor_product(harmonics, harmonics, filter_ir_out=["0e", "1o"])
    x = e3nn.normal("2x0e + 1x1o", jax.random.PRNGKey(1), (4,))
    rotated = e3nn.gate(e3nn.normal("3x0e + 1x1o", jax.random.PRNGKey(2), ()))
    slope = jax.jit(jax.grad(lambda v: e3nn.spherical_harmonics("2e", v, True).array.sum()))(vectors[0])
    matrix = e3nn.Irreps("1o + 2e").D_from_angles(0.1, 0.2, 0.3)
    return harmonics.array, product.array, x.array, rotated.array, slope, matrix, e3nn.clebsch_gordan(1, 1, 2)
