"""What must work where the wheel is installed: trace, differentiate, vectorise and run."""

import importlib.metadata

import numpy as np

import weft
import weft.numpy as wnp


def loss(w, x, y):
    return wnp.mean((wnp.tanh(x @ w) - y) ** 2)


rng = np.random.default_rng(0)
w, x, y = (rng.standard_normal(shape).astype(np.float32) for shape in [(3,), (8, 3), (8,)])
gradient = weft.jit(weft.grad(loss))(w, x, y)
t = np.tanh(x @ w)
expected = (2 * (t - y) * (1 - t**2)) @ x / 8
np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6)
each = weft.vmap(weft.grad(lambda w, x, y: (wnp.tanh(x @ w) - y) ** 2), in_axes=(None, 0, 0))(w, x, y)
np.testing.assert_allclose(each.mean(0), expected, rtol=1e-4, atol=1e-6)
assert "tanh" in weft.make_ir(loss)(w, x, y).text
[command] = importlib.metadata.distribution("weft").entry_points
assert command.name == "weft" and command.load()(["ops", "sin"]) == 0
print("weft", weft.__version__, "works")
