"""References: a model with batch statistics, a counter, and the gradients inside of it.

./bazelw run //examples:references
"""

import weft
import weft.numpy as wnp


class BatchNorm:
    """Normalises a batch; keeps moving statistics, as a program with state is written everywhere."""

    def __init__(self, size):
        self.mean = weft.new_ref(wnp.zeros(size))
        self.variance = weft.new_ref(wnp.ones(size))

    def __call__(self, x, training):
        if not training:
            return (x - self.mean[...]) / wnp.sqrt(self.variance[...] + 1e-5)
        mean, variance = x.mean(0), x.var(0)
        for ref, new in ((self.mean, mean), (self.variance, variance)):
            ref[...] = 0.9 * ref[...] + 0.1 * weft.lax.stop_gradient(new)
        return (x - mean) / wnp.sqrt(variance + 1e-5)


norm, steps, inside = BatchNorm(4), weft.new_ref(0), weft.new_ref(wnp.zeros((64, 4)))


@weft.custom_vjp
def tap(x):
    """x; its cotangent goes into `inside`."""
    return x


def tap_backward(_, cotangent):
    inside[...] = cotangent
    return (cotangent,)


tap.defvjp(lambda x: (x, None), tap_backward)


def loss(w, x, y):
    hidden = tap(norm(x @ w["in"], training=True))
    return ((wnp.tanh(hidden) @ w["out"] - y) ** 2).mean()


@weft.jit
def step(w, x, y):
    steps[...] += 1
    value, slope = weft.value_and_grad(loss)(w, x, y)
    return weft.tree.map(lambda w, s: w - 0.1 * s, w, slope), value


key = weft.random.key(0)
x = weft.random.normal(key, (64, 3)) * 2 + 1
y = wnp.tanh((x[:, 0] - x[:, 1]) / 2)
w = {"in": weft.random.normal(key, (3, 4)), "out": wnp.zeros(4)}
losses = []
for _ in range(200):
    w, value = step(w, x, y)
    losses.append(float(value))

print(f"{steps[...]} steps, loss {losses[0]:.3f} -> {losses[-1]:.3f}")
print("moving mean of the hidden layer", norm.mean[...])
print("largest gradient in it at the end", wnp.abs(inside[...]).max())

hidden = x @ w["in"]
assert steps[...] == 200 and losses[-1] < 0.5 * losses[0]
assert wnp.allclose(norm.mean[...], hidden.mean(0), atol=0.05)
assert wnp.allclose(norm(hidden, training=False), norm(hidden, training=True), atol=0.1)
# The gradient inside is that of the loss by a value that is added there.
bump = lambda d: ((wnp.tanh(norm(x @ w["in"], True) + d) @ w["out"] - y) ** 2).mean()
weft.grad(loss)(w, x, y)
assert wnp.allclose(inside[...], weft.grad(bump)(wnp.zeros((64, 4))), atol=1e-6)
