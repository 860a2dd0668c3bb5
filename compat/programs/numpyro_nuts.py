"""NUTS on a hierarchical model (eight schools), variational inference, predictions."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro import infer


def program():
    y = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    sigma = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])

    def schools(y=None):
        mu = numpyro.sample("mu", dist.Normal(0, 5))
        tau = numpyro.sample("tau", dist.HalfCauchy(5))
        with numpyro.plate("schools", 8):
            base = numpyro.sample("base", dist.Normal(0, 1))
            numpyro.sample("obs", dist.Normal(mu + tau * base, sigma), obs=y)

    logs = infer.util.log_density(schools, (y,), {}, {"mu": 1.0, "tau": 2.0, "base": jnp.zeros(8)})[0]
    first = infer.MCMC(infer.NUTS(schools), num_warmup=0, num_samples=2, progress_bar=False)
    first.run(jax.random.key(0), y)
    mcmc = infer.MCMC(infer.NUTS(schools), num_warmup=300, num_samples=1000, progress_bar=False)
    mcmc.run(jax.random.key(0), y)
    samples = mcmc.get_samples()
    # A chain is chaotic: what is compared are its means, to the accuracy that the chain has.
    mean = jnp.round(jnp.array([samples["mu"].mean() / 10, jnp.log(samples["tau"]).mean() / 10]), 0)
    predicted = infer.Predictive(schools, samples)(jax.random.key(1))["obs"].shape

    def model(x, y):
        w = numpyro.sample("w", dist.Normal(0, 1).expand([3]).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)

    x = jax.random.normal(jax.random.key(2), (40, 3))
    labels = (x @ jnp.array([1.0, -2.0, 0.5]) > 0).astype(jnp.int32)
    guide = infer.autoguide.AutoNormal(model)
    svi = infer.SVI(model, guide, numpyro.optim.Adam(0.05), infer.Trace_ELBO())
    result = svi.run(jax.random.key(3), 100, x, labels, progress_bar=False)
    return logs, first.get_samples()["mu"], mean, predicted, result.losses[::10], guide.median(result.params)
