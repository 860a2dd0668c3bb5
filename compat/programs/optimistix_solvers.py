"""Roots, least squares, minima and fixed points, and derivatives through them."""

import jax
import jax.numpy as jnp
import optimistix as optx


def program():
    def residual(p, data):
        x, y = data
        return p["a"] * jnp.exp(-p["b"] * x) - y

    x = jnp.linspace(0.0, 2.0, 11)
    data = (x, 2.0 * jnp.exp(-1.3 * x))
    start = {"a": jnp.array(1.0), "b": jnp.array(1.0)}
    found = optx.least_squares(residual, optx.LevenbergMarquardt(1e-6, 1e-6), start, data).value
    gauss = optx.least_squares(residual, optx.GaussNewton(1e-6, 1e-6), start, data).value

    def root(c):
        return optx.root_find(lambda y, a: y**2 - a, optx.Newton(1e-6, 1e-6), jnp.array(1.0), c).value

    chord = optx.root_find(lambda y, a: jnp.tanh(y) - a, optx.Chord(1e-6, 1e-6), jnp.array(0.1), 0.4).value
    bisected = optx.root_find(
        lambda y, a: y**3 - a, optx.Bisection(1e-5, 1e-5), jnp.array(1.0), 2.0, options={"lower": 0.0, "upper": 2.0}
    ).value
    rosenbrock = lambda z, _: (1 - z[0]) ** 2 + 10 * (z[1] - z[0] ** 2) ** 2
    bfgs = optx.minimise(rosenbrock, optx.BFGS(1e-5, 1e-5), jnp.array([-1.0, 1.0]), max_steps=500).value
    fixed = optx.fixed_point(lambda y, _: jnp.cos(y), optx.FixedPointIteration(1e-6, 1e-6), jnp.array(1.0)).value
    many = jax.vmap(root)(jnp.array([1.0, 2.0, 5.0]))
    return (
        found,
        gauss,
        root(2.0),
        jax.grad(root)(2.0),
        jax.jit(jax.grad(jax.grad(root)))(3.0),
        chord,
        bisected,
        bfgs,
        fixed,
        many,
    )
