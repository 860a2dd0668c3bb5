"""A residual network with batch norm, an LSTM and a transformer's attention in Haiku.

A convolution before a norm has no bias: its gradient is zero, and an optimiser would scale rounding errors up to steps.
"""

import haiku as hk
import jax
import jax.numpy as jnp
import optax


def program():
    def network(x, is_training):
        x = hk.Conv2D(4, 3, with_bias=False)(x)
        x = hk.BatchNorm(True, True, 0.9)(x, is_training)
        x = x + jax.nn.relu(hk.Conv2D(4, 3)(jax.nn.relu(x)))
        return hk.Linear(5)(hk.Flatten()(hk.avg_pool(x, 2, 2, "SAME")))

    net = hk.transform_with_state(network)
    x = jax.random.normal(jax.random.PRNGKey(1), (16, 8, 8, 1))
    y = jnp.arange(16) % 5
    params, state = net.init(jax.random.PRNGKey(0), x, True)
    optimizer = optax.adam(1e-2)
    opt_state = optimizer.init(params)

    @jax.jit
    def step(params, state, opt_state):
        def loss(params):
            logits, new = net.apply(params, state, None, x, True)
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), new

        (value, new), gradients = jax.value_and_grad(loss, has_aux=True)(params)
        updates, opt_state = optimizer.update(gradients, opt_state)
        return optax.apply_updates(params, updates), new, opt_state, value

    losses = []
    for _ in range(8):
        params, state, opt_state, value = step(params, state, opt_state)
        losses.append(value)

    def recurrent(xs):
        core = hk.LSTM(6)
        out, _ = hk.dynamic_unroll(core, xs, core.initial_state(2))
        out = hk.MultiHeadAttention(2, 3, w_init=hk.initializers.VarianceScaling(1.0))(out, out, out)
        return hk.dropout(hk.next_rng_key(), 0.1, out)

    rnn = hk.transform(recurrent)
    xs = jax.random.normal(jax.random.PRNGKey(2), (5, 2, 3))
    weights = rnn.init(jax.random.PRNGKey(3), xs)
    out = jax.jit(rnn.apply)(weights, jax.random.PRNGKey(4), xs)
    table = hk.experimental.tabulate(rnn)(xs)
    assert "lstm" in table
    return losses, params["conv2_d"]["w"], out, hk.data_structures.tree_size(params)
