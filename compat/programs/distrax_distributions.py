"""Densities, samples, bijectors and divergences; a flow fitted to data."""

import distrax
import jax
import jax.numpy as jnp


def program():
    key = jax.random.PRNGKey(0)
    normal = distrax.MultivariateNormalDiag(jnp.array([1.0, -1.0]), jnp.array([0.5, 2.0]))
    samples, logs = normal.sample_and_log_prob(seed=key, sample_shape=(5,))
    categorical = distrax.Categorical(logits=jnp.array([0.1, 0.5, -1.0]))
    mixture = distrax.MixtureSameFamily(
        distrax.Categorical(probs=jnp.array([0.3, 0.7])), distrax.Normal(jnp.array([-1.0, 1.0]), jnp.array([0.5, 0.5]))
    )
    flow = distrax.Transformed(
        distrax.Normal(0.0, 1.0), distrax.Chain([distrax.ScalarAffine(1.0, 2.0), distrax.Tanh()])
    )
    data = jnp.linspace(-0.5, 2.5, 7)

    def loss(shift):
        return -distrax.Transformed(distrax.Normal(0.0, 1.0), distrax.ScalarAffine(shift, 2.0)).log_prob(data).mean()

    shift = jnp.array(0.0)
    for _ in range(20):
        shift = shift - 0.5 * jax.jit(jax.grad(loss))(shift)
    hmm = distrax.HMM(
        init_dist=distrax.Categorical(probs=jnp.array([0.5, 0.5])),
        trans_dist=distrax.Categorical(probs=jnp.array([[0.9, 0.1], [0.2, 0.8]])),
        obs_dist=distrax.Normal(jnp.array([0.0, 3.0]), jnp.array([1.0, 1.0])),
    )
    observed = jnp.array([0.1, 2.8, 3.1, -0.2])
    return (
        samples,
        logs,
        categorical.entropy(),
        categorical.sample(seed=key, sample_shape=(10,)),
        categorical.kl_divergence(distrax.Categorical(logits=jnp.zeros(3))),
        mixture.log_prob(data),
        flow.log_prob(jnp.array([0.3, 1.2])),
        flow.sample(seed=key, sample_shape=(4,)),
        shift,
        hmm.forward(observed)[0],
        hmm.viterbi(observed),
        normal.kl_divergence(normal),
    )
