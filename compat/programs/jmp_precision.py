"""Training in half precision with a scale of the loss."""

import jax
import jax.numpy as jnp
import jmp


def program():
    policy = jmp.get_policy("params=float32,compute=bfloat16,output=float32")
    scale = jmp.DynamicLossScale(jnp.array(2.0**10))
    w = jnp.linspace(-1.0, 1.0, 6)
    x = jnp.arange(12.0).reshape(2, 6) / 10

    @jax.jit
    def step(w, scale):
        def loss(w):
            w, v = policy.cast_to_compute((w, x))
            return scale.scale(jnp.mean(policy.cast_to_output(v @ w) ** 2))

        gradient = scale.unscale(jax.grad(loss)(w))
        finite = jmp.all_finite(gradient)
        return jmp.select_tree(finite, w - 0.1 * gradient, w), scale.adjust(finite)

    for _ in range(5):
        w, scale = step(w, scale)
    return w, scale.loss_scale
