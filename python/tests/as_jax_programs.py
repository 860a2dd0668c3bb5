"""Ten programs as users of JAX write them. Run by JAX itself, and by `python -m weft.as_jax`: each prints the same
numbers, as one line of JSON."""

import json
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import grad, jit, lax, random, value_and_grad, vmap
from jax.flatten_util import ravel_pytree
from jax.scipy.special import logsumexp


def mlp():
    """A classifier: grad, jit, vmap, an optimizer of the user's own."""

    def init(key, sizes):
        keys = random.split(key, len(sizes) - 1)
        return [
            {"w": random.normal(k, (m, n)) * jnp.sqrt(2.0 / m), "b": jnp.zeros(n)}
            for k, m, n in zip(keys, sizes[:-1], sizes[1:])
        ]

    def predict(params, x):
        for layer in params[:-1]:
            x = jax.nn.relu(x @ layer["w"] + layer["b"])
        return x @ params[-1]["w"] + params[-1]["b"]

    def loss(params, x, y):
        logits = vmap(predict, in_axes=(None, 0))(params, x)
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(y, 4), axis=-1))

    @jit
    def step(params, moments, x, y, i):
        value, gradients = value_and_grad(loss)(params, x, y)
        moments = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments, gradients)
        scale = 1 / (1 - 0.9 ** (i + 1))
        return jax.tree.map(lambda p, m: p - 0.1 * scale * m, params, moments), moments, value

    key = random.PRNGKey(0)
    x = np.random.default_rng(0).normal(size=(32, 6))  # 64-bit, as NumPy makes it
    y = np.argmax(x[:, :4], axis=1)
    params = init(key, [6, 16, 16, 4])
    moments = jax.tree.map(jnp.zeros_like, params)
    values = []
    for i in range(10):
        params, moments, value = step(params, moments, x, y, i)
        values.append(value)
    return values, params[0]["b"]


def rnn():
    """A GRU over sequences: scan, gradients through it."""
    key = random.key(1)
    keys = random.split(key, 7)
    n, m = 5, 3
    params = {
        name: random.normal(k, shape) * 0.4
        for name, k, shape in zip(["wz", "uz", "wr", "ur", "wh", "uh"], keys, [(m, n), (n, n)] * 3)
    }

    def cell(params, h, x):
        z = jax.nn.sigmoid(x @ params["wz"] + h @ params["uz"])
        r = jax.nn.sigmoid(x @ params["wr"] + h @ params["ur"])
        new = jnp.tanh(x @ params["wh"] + (r * h) @ params["uh"])
        h = (1 - z) * h + z * new
        return h, h

    def loss(params, xs):
        last, hs = lax.scan(partial(cell, params), jnp.zeros(n), xs)
        return jnp.sum(last**2) + jnp.mean(hs)

    xs = random.normal(keys[6], (4, 10, m))
    batched = lambda p: vmap(loss, (None, 0))(p, xs).mean()
    value, gradients = jit(value_and_grad(batched))(params)
    flat, unravel = ravel_pytree(gradients)
    return value, flat, unravel(flat)


class State(NamedTuple):
    mean: jax.Array
    cov: jax.Array


def kalman():
    """A Kalman filter: a namedtuple as the carry, linear algebra, the likelihood's gradient."""
    dt = 0.1
    transition = jnp.array([[1.0, dt], [0.0, 1.0]])
    observe = jnp.array([[1.0, 0.0]])

    def log_likelihood(log_noise, ys):
        q, r = jnp.exp(log_noise[0]) * jnp.eye(2), jnp.exp(log_noise[1]) * jnp.eye(1)

        def step(state, y):
            mean = transition @ state.mean
            cov = transition @ state.cov @ transition.T + q
            innovation = y - observe @ mean
            s = observe @ cov @ observe.T + r
            gain = jax.scipy.linalg.solve(s, observe @ cov, assume_a="pos").T
            _, logdet = jnp.linalg.slogdet(s)
            ll = -0.5 * (innovation @ jnp.linalg.solve(s, innovation) + logdet + jnp.log(2 * jnp.pi))
            return State(mean + gain @ innovation, (jnp.eye(2) - gain @ observe) @ cov), ll

        final, lls = lax.scan(step, State(jnp.zeros(2), jnp.eye(2)), ys)
        return lls.sum(), final

    ys = jnp.sin(jnp.arange(30) * dt)[:, None] + 0.1 * random.normal(random.PRNGKey(2), (30, 1))
    (value, final), gradient = jit(value_and_grad(log_likelihood, has_aux=True))(jnp.array([-3.0, -2.0]), ys)
    return value, gradient, final


def mcmc():
    """Hamiltonian Monte Carlo of several chains: fori_loop, cond by where, vmap over keys."""

    def log_density(x):
        return -0.5 * jnp.sum(x**2 / jnp.array([1.0, 0.5, 2.0])) - 0.1 * jnp.sum(x**4)

    def leapfrog(x, p, eps, steps):
        def body(_, xp):
            x, p = xp
            p = p + 0.5 * eps * grad(log_density)(x)
            x = x + eps * p
            return x, p + 0.5 * eps * grad(log_density)(x)

        return lax.fori_loop(0, steps, body, (x, p))

    def kernel(x, key):
        momentum_key, accept_key = random.split(key)
        p = random.normal(momentum_key, x.shape)
        y, q = leapfrog(x, p, 0.2, 8)
        energy = lambda x, p: -log_density(x) + 0.5 * p @ p
        accept = jnp.log(random.uniform(accept_key)) < energy(x, p) - energy(y, q)
        x = jnp.where(accept, y, x)
        return x, (x, accept)

    def chain(key):
        start, run = random.split(key)
        return lax.scan(kernel, random.normal(start, (3,)), random.split(run, 60))[1]

    xs, accepted = jit(vmap(chain))(random.split(random.PRNGKey(3), 4))
    return xs.mean((0, 1)), accepted.mean(), xs[:, 5]


def ode():
    """A Runge-Kutta solver with error control: while_loop, and a gradient through the fixed-step one."""

    def field(y, t, theta):
        prey, predator = y
        return jnp.array(
            [theta[0] * prey - theta[1] * prey * predator, -theta[2] * predator + theta[3] * prey * predator]
        )

    def rk4(y, t, h, theta):
        k1 = field(y, t, theta)
        k2 = field(y + h / 2 * k1, t + h / 2, theta)
        k3 = field(y + h / 2 * k2, t + h / 2, theta)
        k4 = field(y + h * k3, t + h, theta)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def adaptive(y, theta, until=2.0, tol=1e-4):
        def body(state):
            y, t, h, n = state
            h = jnp.minimum(h, until - t)
            whole = rk4(y, t, h, theta)
            half = rk4(rk4(y, t, h / 2, theta), t + h / 2, h / 2, theta)
            error = jnp.max(jnp.abs(whole - half))
            good = error < tol
            return jnp.where(good, half, y), jnp.where(good, t + h, t), jnp.where(good, h * 1.5, h * 0.5), n + 1

        return lax.while_loop(lambda s: s[1] < until - 1e-6, body, (y, 0.0, 0.5, 0))

    def end(theta):
        return lax.scan(lambda y, t: (rk4(y, t, 0.05, theta), None), jnp.array([1.0, 0.5]), jnp.arange(40) * 0.05)[0]

    theta = jnp.array([1.1, 0.4, 0.4, 0.1])
    return jit(adaptive)(jnp.array([1.0, 0.5]), theta), jax.jacrev(end)(theta), jax.jacfwd(end)(theta)


def gnn():
    """Message passing over a graph: segment_sum, gathers, gradients."""
    rng = np.random.default_rng(4)
    senders, receivers = rng.integers(0, 12, 40), rng.integers(0, 12, 40)
    nodes = jnp.asarray(rng.normal(size=(12, 4)))
    params = {"message": random.normal(random.PRNGKey(4), (8, 4)), "update": random.normal(random.PRNGKey(5), (8, 4))}

    @jit
    def model(params, nodes):
        for _ in range(3):
            messages = jnp.tanh(jnp.concatenate([nodes[senders], nodes[receivers]], axis=1) @ params["message"])
            total = jax.ops.segment_sum(messages, receivers, num_segments=12)
            degree = jnp.zeros(12).at[receivers].add(1.0)
            mean = total / jnp.maximum(degree, 1)[:, None]
            nodes = nodes + jnp.tanh(jnp.concatenate([nodes, mean], axis=1) @ params["update"])
        return jnp.sum(nodes.max(axis=0))

    return model(params, nodes), grad(model)(params, nodes)


def cnn():
    """Convolutions, pooling and batch normalisation with running statistics."""
    key = random.PRNGKey(6)
    x = random.normal(key, (4, 8, 8, 3))
    kernels = jax.nn.initializers.he_normal()(key, (3, 3, 3, 6), jnp.float32)
    dense = jax.nn.initializers.glorot_uniform()(key, (6 * 16, 5))

    def forward(params, stats, x):
        y = lax.conv_general_dilated(x, params["k"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        mean, var = y.mean((0, 1, 2)), y.var((0, 1, 2))
        stats = {"mean": 0.9 * stats["mean"] + 0.1 * mean, "var": 0.9 * stats["var"] + 0.1 * var}
        y = jax.nn.gelu((y - mean) * lax.rsqrt(var + 1e-5))
        y = lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return y.reshape(y.shape[0], -1) @ params["d"], stats

    def loss(params, stats):
        logits, stats = forward(params, stats, x)
        return jnp.mean(logsumexp(logits, axis=1) - logits[:, 0]), stats

    params, stats = {"k": kernels, "d": dense}, {"var": jnp.ones(6), "mean": jnp.zeros(6)}
    (value, stats), gradients = jit(value_and_grad(loss, has_aux=True))(params, stats)
    return value, stats, jax.tree.map(jnp.linalg.norm, gradients)


def transformer():
    """A block of a causal transformer, checkpointed, in bfloat16 and in float32."""
    d, heads, t = 16, 4, 6
    keys = random.split(random.PRNGKey(7), 6)
    shapes = {"q": (d, d), "k": (d, d), "v": (d, d), "o": (d, d), "up": (d, 4 * d), "down": (4 * d, d)}
    params = {name: 0.3 * random.normal(k, s) for k, (name, s) in zip(keys, shapes.items())}

    def norm(x):
        x = x - x.mean(-1, keepdims=True)
        return x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)

    @jax.checkpoint
    def block(params, x):
        h = norm(x)
        q, k, v = (jnp.einsum("td,de->te", h, params[n]).reshape(t, heads, -1).swapaxes(0, 1) for n in "qkv")
        scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), q @ k.swapaxes(1, 2) / (d // heads) ** 0.5, -1e9)
        x = x + (jax.nn.softmax(scores) @ v).swapaxes(0, 1).reshape(t, d) @ params["o"]
        return x + jax.nn.gelu(norm(x) @ params["up"]) @ params["down"]

    def loss(params, x):
        return jnp.mean(block(params, x).astype(jnp.float32) ** 2)

    x = random.normal(random.PRNGKey(8), (3, t, d))
    value, gradients = jit(value_and_grad(lambda p: vmap(loss, (None, 0))(p, x).mean()))(params)
    return value, jax.tree.map(lambda g: jnp.sum(g * g), gradients)


def implicit():
    """A fixed point whose derivative is a rule of the user's own, and a Newton method by while_loop."""

    @partial(jax.custom_vjp, nondiff_argnums=(0,))
    def fixed_point(f, a, x):
        return lax.while_loop(
            lambda c: jnp.max(jnp.abs(c[0] - c[1])) > 1e-6, lambda c: (c[1], f(a, c[1])), (x, f(a, x))
        )[1]

    def forward(f, a, x):
        solution = fixed_point(f, a, x)
        return solution, (a, solution)

    def backward(f, residuals, cotangent):
        a, x = residuals
        _, pull_x = jax.vjp(lambda x: f(a, x), x)
        adjoint = lax.fori_loop(0, 60, lambda _, u: cotangent + pull_x(u)[0], cotangent)
        _, pull_a = jax.vjp(lambda a: f(a, x), a)
        return pull_a(adjoint)[0], jnp.zeros_like(x)

    fixed_point.defvjp(forward, backward)
    newton = lambda a, x: 0.5 * (x + a / x)
    root = lambda a: fixed_point(newton, a, jnp.ones_like(a)).sum()
    a = jnp.array([2.0, 3.0])
    return root(a), grad(root)(a), jit(grad(root))(a)


@jax.tree_util.register_pytree_node_class
class Welford:
    """Running moments, as a registered class."""

    def __init__(self, n, mean, m2):
        self.n, self.mean, self.m2 = n, mean, m2

    def add(self, x):
        n = self.n + 1
        delta = x - self.mean
        mean = self.mean + delta / n
        return Welford(n, mean, self.m2 + delta * (x - mean))

    def tree_flatten(self):
        return (self.n, self.mean, self.m2), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


def bootstrap():
    """Resampling statistics: a registered class in scan, sorting, quantiles, choice, keys split and folded in."""
    data = random.gumbel(random.fold_in(random.PRNGKey(9), 3), (50,))

    @jit
    def moments(xs):
        return lax.scan(lambda w, x: (w.add(x), None), Welford(0, jnp.zeros(()), jnp.zeros(())), xs)[0]

    def resampled(key):
        return jnp.median(data[random.randint(key, (50,), 0, 50)])

    medians = vmap(resampled)(random.split(random.PRNGKey(10), 40))
    w = moments(data)
    order = random.permutation(random.PRNGKey(11), 10)
    return w.n, w.mean, w.m2 / w.n, jnp.quantile(medians, jnp.array([0.1, 0.9])), order, jnp.argsort(data)[:5]


PROGRAMS = [mlp, rnn, kalman, mcmc, ode, gnn, cnn, transformer, implicit, bootstrap]


def main():
    print(json.dumps({f.__name__: [np.asarray(x).tolist() for x in jax.tree.leaves(f())] for f in PROGRAMS}))


if __name__ == "__main__":
    main()
