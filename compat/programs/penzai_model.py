"""A network whose axes have names, looked at and changed while it stands."""

import jax
import jax.numpy as jnp
from penzai import pz


def program():
    model = pz.nn.Sequential(
        [
            pz.nn.Affine.from_config("layer1", jax.random.key(0), {"features": 4}, {"features": 8}),
            pz.nn.Elementwise(jax.nn.relu),
            pz.nn.Affine.from_config("layer2", jax.random.key(1), {"features": 8}, {"features": 2}),
        ]
    )
    x = pz.nx.wrap(jax.random.normal(jax.random.key(2), (5, 4)), "batch", "features")
    out = model(x)
    frozen, variables = pz.unbind_params(model, freeze=False)

    def loss(values):
        return jnp.sum(pz.bind_variables(frozen, values)(x).unwrap("batch", "features") ** 2)

    doubled = pz.select(model).at_instances_of(pz.nn.Elementwise).apply(lambda _: pz.nn.Elementwise(lambda v: 2 * v))
    names = pz.nx.nmap(jnp.dot)(x.untag("features"), x.untag("features"))
    slopes = jax.grad(lambda w: jnp.sum((pz.nx.wrap(w, "batch", "features") * x).data_array))(jnp.ones((5, 4)))
    return (
        out.unwrap("batch", "features"),
        doubled(x).unwrap("batch", "features"),
        names.unwrap("batch"),
        slopes,
        len(variables),
    )
