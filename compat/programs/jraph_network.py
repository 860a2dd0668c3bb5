"""A graph network, trained on a batch of padded graphs."""

import haiku as hk
import jax
import jax.numpy as jnp
import jraph
import numpy as np
import optax


def program():
    graph = lambda nodes, senders, receivers: jraph.GraphsTuple(
        n_node=np.array([len(nodes)]),
        n_edge=np.array([len(senders)]),
        nodes=np.array(nodes, np.float32)[:, None],
        edges=np.ones((len(senders), 1), np.float32),
        globals=np.zeros((1, 2), np.float32),
        senders=np.array(senders),
        receivers=np.array(receivers),
    )
    batch = jraph.batch([graph([1, 2, 3], [0, 1, 2], [1, 2, 0]), graph([4, 5], [0, 1], [1, 0])])
    batch = jraph.pad_with_graphs(batch, 8, 8, 3)
    target = jnp.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])

    def network(g):
        update = jraph.concatenated_args(lambda x: hk.nets.MLP([8, 4])(x))
        return jraph.GraphNetwork(
            update_edge_fn=update,
            update_node_fn=update,
            update_global_fn=jraph.concatenated_args(lambda x: hk.nets.MLP([8, 2])(x)),
        )(g)

    net = hk.without_apply_rng(hk.transform(network))
    params = net.init(jax.random.PRNGKey(0), batch)
    optimizer = optax.adam(1e-2)
    state = optimizer.init(params)
    mask = jraph.get_graph_padding_mask(batch)

    @jax.jit
    def step(params, state):
        def loss(p):
            return jnp.sum(jnp.where(mask[:, None], (net.apply(p, batch).globals - target) ** 2, 0))

        value, gradients = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(params, updates), state, value

    losses = []
    for _ in range(20):
        params, state, value = step(params, state)
        losses.append(value)
    gat = jraph.GraphConvolution(lambda n: n @ jnp.ones((1, 3)), add_self_edges=True)(batch)
    return (
        losses,
        net.apply(params, batch).globals,
        gat.nodes,
        jraph.segment_softmax(jnp.arange(5.0), jnp.array([0, 0, 1, 1, 1])),
    )
