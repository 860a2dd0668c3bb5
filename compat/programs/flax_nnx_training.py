"""A network with batch norm and dropout in flax.nnx: state that changes, an optimizer, split and merge.

A convolution before a norm has no bias: its gradient is zero, and an optimiser would scale rounding errors up to steps.
"""

import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.conv = nnx.Conv(1, 6, (3, 3), use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(6, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.out = nnx.Linear(6 * 16, 5, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.norm(self.conv(x)))
        x = nnx.avg_pool(x, (2, 2), strides=(2, 2))
        return self.out(self.dropout(x.reshape(x.shape[0], -1)))


def program():
    model = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
    x = jax.random.normal(jax.random.key(1), (16, 8, 8, 1))
    y = jnp.arange(16) % 5

    @nnx.jit
    def step(model, optimizer):
        def loss(model):
            return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()

        value, gradients = nnx.value_and_grad(loss)(model)
        optimizer.update(model, gradients)
        return value

    losses = [step(model, optimizer) for _ in range(8)]
    model.eval()
    out = model(x)
    graph, state = nnx.split(model)
    merged = nnx.merge(graph, state)
    lstm = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(2)))
    return losses, out, merged(x) - out, lstm(jnp.ones((2, 5, 3)))
