"""A network of two layers, trained by AdamW with a schedule, clipping and a mask; L-BFGS on Rosenbrock's function."""

import jax
import jax.numpy as jnp
import optax


def program():
    key = jax.random.key(0)
    k1, k2, k3 = jax.random.split(key, 3)
    params = {
        "w1": jax.random.normal(k1, (4, 16)) * 0.5,
        "b1": jnp.zeros(16),
        "w2": jax.random.normal(k2, (16, 3)) * 0.3,
    }
    x = jax.random.normal(k3, (64, 4))
    y = jnp.argmax(x[:, :3], axis=1)

    def loss(params):
        logits = jnp.tanh(x @ params["w1"] + params["b1"]) @ params["w2"]
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

    schedule = optax.warmup_cosine_decay_schedule(0.0, 0.05, 5, 40)
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(schedule, weight_decay=1e-3, mask=jax.tree.map(lambda p: p.ndim > 1, params)),
    )

    @jax.jit
    def step(params, state):
        value, gradients = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    state = optimizer.init(params)
    losses = []
    for _ in range(40):
        params, state, value = step(params, state)
        losses.append(value)

    def rosenbrock(z):
        return jnp.sum(100.0 * (z[1:] - z[:-1] ** 2) ** 2 + (1 - z[:-1]) ** 2)

    solver = optax.lbfgs()
    z = jnp.array([-1.0, 1.0, 0.5])
    state = solver.init(z)
    value_and_grad = optax.value_and_grad_from_state(rosenbrock)
    for _ in range(25):
        value, gradient = value_and_grad(z, state=state)
        updates, state = solver.update(gradient, state, z, value=value, grad=gradient, value_fn=rosenbrock)
        z = optax.apply_updates(z, updates)
    return losses, params["b1"], z
