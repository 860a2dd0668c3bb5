"""NUTS with window adaptation, HMC, and sequential Monte Carlo."""

import blackjax
import jax
import jax.numpy as jnp


def program():
    logdensity = lambda z: -0.5 * jnp.sum((z["x"] - 1.0) ** 2 / jnp.array([1.0, 4.0])) - 0.5 * z["y"] ** 2
    start = {"x": jnp.zeros(2), "y": jnp.array(0.5)}
    key = jax.random.key(0)
    hmc = blackjax.hmc(logdensity, step_size=0.2, inverse_mass_matrix=jnp.ones(3), num_integration_steps=5)
    state = hmc.init(start)
    kernel = jax.jit(hmc.step)
    path = []
    for i in range(5):
        state, info = kernel(jax.random.fold_in(key, i), state)
        path.append((state.position, info.acceptance_rate))
    nuts = blackjax.nuts(logdensity, step_size=0.3, inverse_mass_matrix=jnp.ones(3))
    state = nuts.init(start)
    state, _ = jax.jit(nuts.step)(key, state)
    adapt = blackjax.window_adaptation(blackjax.nuts, logdensity)
    (_, parameters), _ = adapt.run(key, start, num_steps=100)
    assert 0.01 < float(parameters["step_size"]) < 10
    mala = blackjax.mala(logdensity, 0.1)
    moved, _ = jax.jit(mala.step)(key, mala.init(start))
    return path, state.position, moved.position
