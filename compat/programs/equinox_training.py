"""A convolutional network with batch norm and dropout: state, filtered transforms, serialisation.

A convolution before a norm has no bias: its gradient is zero, and an optimiser would scale rounding errors up to steps.
"""

import io

import equinox as eqx
import jax
import jax.numpy as jnp
import optax


class Net(eqx.Module):
    conv: eqx.nn.Conv2d
    norm: eqx.nn.BatchNorm
    pool: eqx.nn.MaxPool2d
    dropout: eqx.nn.Dropout
    mlp: eqx.nn.MLP
    activation: callable = eqx.field(static=True)

    def __init__(self, key):
        k1, k2 = jax.random.split(key)
        self.conv = eqx.nn.Conv2d(1, 4, 3, padding=1, use_bias=False, key=k1)
        self.norm = eqx.nn.BatchNorm(4, axis_name="batch", mode="ema")
        self.activation = jax.nn.gelu
        self.pool = eqx.nn.MaxPool2d(2, 2)
        self.dropout = eqx.nn.Dropout(0.2)
        self.mlp = eqx.nn.MLP(4 * 16, 5, 16, 1, key=k2)

    def __call__(self, x, state, key, inference=False):
        x = self.conv(x)
        x, state = self.norm(x, state, inference=inference)
        x = self.pool(self.activation(x))
        x = self.dropout(x.reshape(-1), key=key, inference=inference)
        return self.mlp(x), state


def program():
    model, state = eqx.nn.make_with_state(Net)(jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (16, 1, 8, 8))
    y = jnp.arange(16) % 5
    optimizer = optax.adam(1e-2)
    opt_state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))

    def loss(model, state, key):
        keys = jax.random.split(key, 16)
        batched = jax.vmap(model, axis_name="batch", in_axes=(0, None, 0), out_axes=(0, None))
        logits, state = batched(x, state, keys)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), state

    @eqx.filter_jit
    def step(model, state, opt_state, key):
        (value, state), gradients = eqx.filter_value_and_grad(loss, has_aux=True)(model, state, key)
        updates, opt_state = optimizer.update(gradients, opt_state)
        return eqx.apply_updates(model, updates), state, opt_state, value

    losses = []
    for i in range(8):
        model, state, opt_state, value = step(model, state, opt_state, jax.random.key(i))
        losses.append(value)
    inference = eqx.Partial(model, inference=True, key=None)
    out, _ = jax.vmap(inference, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(x, state)
    file = io.BytesIO()
    eqx.tree_serialise_leaves(file, model)
    file.seek(0)
    again = eqx.tree_deserialise_leaves(file, model)
    gru = eqx.nn.GRUCell(3, 4, key=jax.random.key(5))
    hidden, _ = jax.lax.scan(lambda h, v: (gru(v, h), None), jnp.zeros(4), jnp.ones((6, 3)))
    attention = eqx.nn.MultiheadAttention(2, 8, key=jax.random.key(6))
    sequence = jax.random.normal(jax.random.key(7), (5, 8))
    checked = eqx.filter_jit(lambda v: eqx.error_if(v, v < 0, "negative"))
    try:
        checked(jnp.array(-1.0))
        raised = False
    except Exception as error:
        raised = "negative" in str(error)
    assert raised
    same = eqx.tree_equal(model, again)
    return losses, out, hidden, attention(sequence, sequence, sequence), checked(jnp.array(2.0)), same
