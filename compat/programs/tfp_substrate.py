"""TensorFlow Probability on JAX: distributions, bijectors, Hamiltonian Monte Carlo."""

import jax
import jax.numpy as jnp
from tensorflow_probability.substrates import jax as tfp

tfd, tfb = tfp.distributions, tfp.bijectors


def program():
    key = jax.random.PRNGKey(0)
    normal = tfd.MultivariateNormalTriL(jnp.array([1.0, 2.0]), jnp.array([[1.0, 0.0], [0.5, 0.8]]))
    gamma = tfd.Gamma(3.0, 2.0)
    mixture = tfd.MixtureSameFamily(
        tfd.Categorical(probs=[0.3, 0.7]), tfd.Normal(jnp.array([-1.0, 1.0]), jnp.array([0.5, 0.5]))
    )
    flow = tfd.TransformedDistribution(tfd.Normal(0.0, 1.0), tfb.Chain([tfb.Exp(), tfb.Scale(0.5)]))
    kernel = tfp.mcmc.HamiltonianMonteCarlo(normal.log_prob, step_size=0.3, num_leapfrog_steps=3)

    @jax.jit
    def chain(key):
        return tfp.mcmc.sample_chain(
            30, current_state=jnp.zeros(2), kernel=kernel, trace_fn=lambda _, r: r.is_accepted, seed=key
        )

    states, accepted = chain(key)
    nuts = tfp.mcmc.NoUTurnSampler(normal.log_prob, step_size=0.3)
    nuts_states = tfp.mcmc.sample_chain(5, current_state=jnp.zeros(2), kernel=nuts, trace_fn=None, seed=key)
    process = tfd.GaussianProcess(
        tfp.math.psd_kernels.ExponentiatedQuadratic(1.0, 0.5),
        jnp.linspace(0.0, 1.0, 5)[:, None],
        observation_noise_variance=0.1,
    )
    return (
        normal.log_prob(jnp.zeros(2)),
        normal.sample(3, seed=key),
        gamma.log_prob(1.5),
        gamma.sample(3, seed=key),
        mixture.log_prob(0.3),
        flow.log_prob(jnp.array([0.5, 2.0])),
        jax.grad(flow.log_prob)(1.5),
        tfd.kl_divergence(tfd.Normal(0.0, 1.0), tfd.Normal(1.0, 2.0)),
        tfb.Softplus().inverse(jnp.array([0.5, 3.0])),
        states,
        accepted,
        nuts_states,
        process.log_prob(jnp.linspace(-1.0, 1.0, 5)),
    )
