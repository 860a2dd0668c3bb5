"""A convolutional network with batch norm, a recurrent network and attention in flax.linen, and the table of a model.

A convolution before a norm has no bias: its gradient is zero, and an optimiser would scale rounding errors up to steps.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax import serialization
from flax.training import train_state


class CNN(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.Conv(8, (3, 3), use_bias=False)(x)
        x = nn.BatchNorm(use_running_average=not train, momentum=0.9)(x)
        x = nn.avg_pool(nn.relu(x), (2, 2), strides=(2, 2))
        x = x.reshape((x.shape[0], -1))
        x = nn.Dropout(0.2, deterministic=not train)(x)
        return nn.Dense(5)(nn.LayerNorm()(x))


class State(train_state.TrainState):
    batch_stats: dict


class Recurrent(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.RNN(nn.OptimizedLSTMCell(6))(x)
        x = nn.Bidirectional(nn.RNN(nn.GRUCell(4)), nn.RNN(nn.GRUCell(4)))(x)
        return nn.MultiHeadDotProductAttention(num_heads=2)(x, x)


def program():
    model = CNN()
    x = jax.random.normal(jax.random.key(1), (16, 8, 8, 1))
    y = jnp.arange(16) % 5
    variables = model.init(jax.random.key(0), x, train=False)
    state = State.create(
        apply_fn=model.apply, params=variables["params"], tx=optax.sgd(0.1, 0.9), batch_stats=variables["batch_stats"]
    )

    @jax.jit
    def step(state, key):
        def loss(params):
            logits, updates = state.apply_fn(
                {"params": params, "batch_stats": state.batch_stats},
                x,
                train=True,
                rngs={"dropout": key},
                mutable=["batch_stats"],
            )
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), updates

        (value, updates), gradients = jax.value_and_grad(loss, has_aux=True)(state.params)
        return state.apply_gradients(grads=gradients, batch_stats=updates["batch_stats"]), value

    losses = []
    for i in range(8):
        state, value = step(state, jax.random.key(i))
        losses.append(value)
    recurrent = Recurrent()
    sequence = jax.random.normal(jax.random.key(2), (2, 7, 3))
    weights = recurrent.init(jax.random.key(3), sequence)
    out = jax.jit(recurrent.apply)(weights, sequence)
    slope = jax.grad(lambda w: recurrent.apply(w, sequence).sum())(weights)
    table = recurrent.tabulate(jax.random.key(0), sequence)
    assert "RNN" in table and "params" in table
    again = serialization.from_bytes(weights, serialization.to_bytes(weights))
    scanned = nn.scan(nn.LSTMCell, variable_broadcast="params", split_rngs={"params": False}, in_axes=1, out_axes=1)(5)
    carry = scanned.initialize_carry(jax.random.key(4), sequence[:, 0].shape)
    (_, ys), _ = scanned.init_with_output(jax.random.key(5), carry, sequence)
    return losses, state.batch_stats, out, jax.tree.map(jnp.sum, slope), jax.tree.map(jnp.sum, again), ys
