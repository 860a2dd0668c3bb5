"""A program that does what most programs do: the functions of the native module that it enters lie beside each other
in the module (section_order.py)."""

import numpy as np

import weft
import weft.as_jax

weft.as_jax.install()
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402


def layers(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(jnp.dot(x, w) + b)
    w, b = params[-1]
    return x @ w + b


def loss(params, x, y):
    logits = jax.nn.log_softmax(layers(params, x))
    return -jnp.mean(jnp.take_along_axis(logits, y[:, None], axis=1))


@jax.jit
def step(params, x, y):
    value, gradient = jax.value_and_grad(loss)(params, x, y)
    return value, jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, gradient)


def training() -> None:
    keys = jax.random.split(jax.random.key(0), 4)
    sizes = (8, 16, 16, 4)
    params = [(jax.random.normal(k, (m, n)) / m**0.5, jnp.zeros(n)) for k, m, n in zip(keys, sizes, sizes[1:])]
    x = jax.random.uniform(keys[3], (32, 8))
    y = jnp.argmax(x[:, :4], axis=1)
    for _ in range(3):
        value, params = step(params, x, y)
    assert np.isfinite(float(value))


def loops() -> None:
    def walk(carry, step):
        position, speed = carry
        speed = speed - 0.01 * jnp.sin(position) * step
        return (position + 0.01 * speed, speed), position

    end, path = jax.jit(lambda s: jax.lax.scan(walk, (s, 0.0), jnp.arange(100.0)))(1.0)
    jax.jit(jax.grad(lambda s: jax.lax.scan(walk, (s, 0.0), jnp.arange(10.0))[1].sum()))(1.0)
    jax.lax.while_loop(lambda s: s[0] < 10, lambda s: (s[0] + 1, s[1] * 0.5), (0, 1.0))
    jax.jit(lambda n: jax.lax.fori_loop(0, n, lambda i, s: jnp.where(i % 2 == 0, s + i, s - i), 0))(7)
    jax.jit(lambda x: jax.lax.cond(x > 0, jnp.cos, jnp.exp, x))(2.0)
    assert path.shape == (100,) and np.isfinite(float(end[0]))


def arrays() -> None:
    x = jnp.linspace(0.0, 1.0, 50).reshape(5, 10)
    print(x[1:3, ::2], jnp.sort(x, axis=0)[-1], jnp.cumsum(x, axis=1).max())
    x = x.at[0, 1].set(3.0).at[jnp.array([1, 2])].add(1.0)
    jnp.concatenate([x, jnp.ones_like(x)]).mean(axis=0).block_until_ready()
    jnp.einsum("ij,kj->ik", x, x), jnp.where(x > 0.5, x, 0.0).std(), jnp.argsort(x[0]), jnp.isnan(x).any()
    with jax.enable_x64(True):
        jnp.interp(jnp.array([0.3, 0.7]), jnp.linspace(0, 1, 5), jnp.arange(5.0)).sum()


def transforms() -> None:
    matrix = jnp.eye(6) * 3 + jnp.arange(36.0).reshape(6, 6) / 36

    def energy(v):
        return v @ jnp.linalg.solve(matrix, v) + jnp.sum(jnp.exp(-(v**2)) * jax.scipy.special.erf(v))

    v = jnp.arange(6.0)
    jax.jit(jax.hessian(energy))(v)
    jax.vmap(jax.grad(energy))(jnp.stack([v, v + 1]))
    jax.jvp(energy, (v,), (v,))
    jnp.linalg.cholesky(matrix @ matrix.T), jnp.linalg.eigh(matrix + matrix.T)
    print(jax.make_jaxpr(energy)(v))


for part in (training, loops, arrays, transforms):
    part()
