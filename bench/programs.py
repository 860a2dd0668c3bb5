"""Ten programs that benchmarks differentiate, each written once for every library with JAX's names.

    make, = (m for m in PROGRAMS if m.__name__ == "lstm")
    function, arguments = make(jax, jax.numpy)       # or (weft, weft.numpy)
    jax.jit(jax.grad(function))(*arguments)

Each function gives one float32 number; derivatives are with respect to its first argument. Arguments are NumPy arrays
(or dicts of them), drawn from a fixed seed.
"""

from __future__ import annotations

import digits_program
import numpy


def _normal(*shape: int, scale: float | None = None, seed: int = 0) -> numpy.ndarray:
    if scale is None:
        scale = shape[0] ** -0.5
    return (numpy.random.default_rng((seed, *shape)).standard_normal(shape) * scale).astype("float32")


def _labels(count: int, classes: int) -> numpy.ndarray:
    return numpy.random.default_rng(1).integers(0, classes, count).astype("int32")


def _cross_entropy(lib, np, scores, labels):
    log_p = scores - lib.nn.logsumexp(scores, axis=-1, keepdims=True)
    return -np.mean(np.take_along_axis(log_p, labels[:, None], axis=-1))


def digits_step(lib, np):
    """The loss that the digits example trains: one hidden layer, a minibatch of 32."""
    digits = digits_program.of(lib, np)
    return digits.loss, (digits.initial(0), *digits_program.batch())


def mlp(lib, np):
    """784-512-512-10, tanh, squared error, batch 128."""

    def loss(p, x, y):
        h = np.tanh(x @ p["w1"] + p["b1"])
        h = np.tanh(h @ p["w2"] + p["b2"])
        return np.mean((h @ p["w3"] + p["b3"] - y) ** 2)

    p = {"w1": _normal(784, 512), "b1": _normal(512), "w2": _normal(512, 512), "b2": _normal(512, seed=1)}
    p |= {"w3": _normal(512, 10), "b3": _normal(10)}
    return loss, (p, _normal(128, 784, scale=1.0), _normal(128, 10, scale=1.0))


def transformer_block(lib, np):
    """Pre-norm attention (4 heads) and a gelu network; batch 4, 64 places, width 128."""
    heads, width = 4, 128

    def norm(x):
        centred = x - np.mean(x, axis=-1, keepdims=True)
        return centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + 1e-5)

    def split(x):
        b, t, _ = x.shape
        return np.transpose(x.reshape(b, t, heads, width // heads), (0, 2, 1, 3))

    def block(p, x, y):
        h = norm(x)
        q, k, v = split(h @ p["q"]), split(h @ p["k"]), split(h @ p["v"])
        weights = lib.nn.softmax(q @ np.swapaxes(k, -1, -2) / (width // heads) ** 0.5, axis=-1)
        attended = np.transpose(weights @ v, (0, 2, 1, 3)).reshape(x.shape)
        x = x + attended @ p["o"]
        x = x + lib.nn.gelu(norm(x) @ p["up"]) @ p["down"]
        return np.mean((x - y) ** 2)

    p = {name: _normal(width, width, seed=i) for i, name in enumerate("qkvo")}
    p |= {"up": _normal(width, 4 * width), "down": _normal(4 * width, width)}
    return block, (p, _normal(4, 64, width, scale=1.0), _normal(4, 64, width, scale=1.0, seed=1))


def lstm(lib, np):
    """32 steps, batch 16, 64 units."""

    def loss(p, xs, y):
        def step(carry, x):
            h, c = carry
            gates = x @ p["wx"] + h @ p["wh"] + p["b"]
            i, f, g, o = np.split(gates, 4, axis=-1)
            c = lib.nn.sigmoid(f) * c + lib.nn.sigmoid(i) * np.tanh(g)
            h = lib.nn.sigmoid(o) * np.tanh(c)
            return (h, c), None

        zeros = np.zeros(y.shape, "float32")
        (h, _), _ = lib.lax.scan(step, (zeros, zeros), xs)
        return np.mean((h - y) ** 2)

    p = {"wx": _normal(64, 256), "wh": _normal(64, 256, seed=1), "b": _normal(256)}
    return loss, (p, _normal(32, 16, 64, scale=1.0), _normal(16, 64, scale=1.0))


def lenet(lib, np):
    """Two convolutions with average pooling, two dense layers; 16 images of 28 x 28."""

    def conv(x, w):
        return lib.lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=("NCHW", "OIHW", "NCHW"))

    def pool(x):
        b, c, h, w = x.shape
        return np.mean(x.reshape(b, c, h // 2, 2, w // 2, 2), axis=(3, 5))

    def loss(p, images, labels):
        h = pool(np.tanh(conv(images, p["c1"])))
        h = pool(np.tanh(conv(h, p["c2"])))
        h = np.tanh(h.reshape(h.shape[0], -1) @ p["w1"])
        return _cross_entropy(lib, np, h @ p["w2"], labels)

    p = {"c1": _normal(6, 1, 5, 5, scale=0.2), "c2": _normal(16, 6, 5, 5, scale=0.1)}
    p |= {"w1": _normal(256, 84), "w2": _normal(84, 10)}
    return loss, (p, _normal(16, 1, 28, 28, scale=1.0), _labels(16, 10))


def n_body(lib, np):
    """Ten leapfrog steps of 64 bodies with softened gravity; the energy at the end, of the positions at the start."""

    def acceleration(x):
        apart = x[None, :, :] - x[:, None, :]
        r2 = np.sum(apart**2, axis=-1) + 1e-2
        return np.sum(apart * (r2**-1.5)[..., None], axis=1)

    def energy(x, v):
        def step(_, state):
            x, v = state
            v = v + 0.005 * acceleration(x)
            x = x + 0.01 * v
            return x, v + 0.005 * acceleration(x)

        x, v = lib.lax.fori_loop(0, 10, step, (x, v))
        apart = x[None, :, :] - x[:, None, :]
        return 0.5 * np.sum(v**2) - 0.5 * np.sum((np.sum(apart**2, axis=-1) + 1e-2) ** -0.5)

    return energy, (_normal(64, 3, scale=1.0), _normal(64, 3, scale=0.1, seed=1))


def black_scholes(lib, np):
    """The price of 100,000 European calls, of their spots."""

    def price(spot, strike, time):
        rate, volatility = 0.02, 0.3
        spread = volatility * np.sqrt(time)
        d1 = (np.log(spot / strike) + (rate + volatility**2 / 2) * time) / spread
        cumulative = lambda x: 0.5 * (1 + lib.lax.erf(x * 2**-0.5))
        return np.sum(spot * cumulative(d1) - strike * np.exp(-rate * time) * cumulative(d1 - spread))

    rng = numpy.random.default_rng(0)
    draw = lambda low, high: rng.uniform(low, high, 100_000).astype("float32")
    return price, (draw(50, 150), draw(50, 150), draw(0.1, 2))


def newton(lib, np):
    """Ten Newton steps for a system of 32 equations, A x + x^3 = b, with the Jacobian by forward mode; of b."""

    def solve(b, a):
        def residual(x):
            return a @ x + x**3 - b

        def step(_, x):
            return x - np.linalg.solve(lib.jacfwd(residual)(x), residual(x))

        return np.sum(lib.lax.fori_loop(0, 10, step, np.zeros_like(b)))

    a = _normal(32, 32, scale=0.1) + 2 * numpy.eye(32, dtype="float32")
    return solve, (_normal(32, scale=1.0), a)


def logistic_regression(lib, np):
    """1,000 examples of 50 features, with a ridge."""

    def loss(w, x, y):
        margin = (x @ w) * y
        return np.mean(np.logaddexp(0.0, -margin)) + 0.01 * np.sum(w**2)

    y = numpy.sign(_normal(1000, scale=1.0))
    return loss, (_normal(50), _normal(1000, 50, scale=1.0), y)


def softmax(lib, np):
    """Softmax of 1024 rows of 256, weighted and summed."""

    def weighted(x, w):
        return np.sum(lib.nn.softmax(x, axis=-1) * w)

    return weighted, (_normal(1024, 256, scale=1.0), _normal(1024, 256, scale=1.0, seed=1))


PROGRAMS = [
    digits_step,
    mlp,
    transformer_block,
    lstm,
    lenet,
    n_body,
    black_scholes,
    newton,
    logistic_regression,
    softmax,
]
