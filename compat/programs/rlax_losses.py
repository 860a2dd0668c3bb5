"""Returns, losses and exploration of reinforcement learning."""

import jax
import jax.numpy as jnp
import rlax


def program():
    rewards, discounts = jnp.array([1.0, 0.0, 2.0, -1.0]), jnp.full(4, 0.9)
    values = jnp.array([0.5, 0.1, 0.3, 0.2])
    q = jax.random.normal(jax.random.PRNGKey(0), (4, 3))
    actions = jnp.array([0, 2, 1, 1])
    return (
        rlax.lambda_returns(rewards, discounts, values, 0.8),
        rlax.vtrace(values, values, rewards, discounts, jnp.ones(4)),
        jax.vmap(rlax.q_learning)(q, actions, rewards, discounts, q + 0.1),
        jax.grad(lambda p: rlax.policy_gradient_loss(p, actions, rewards, jnp.ones(4)))(q),
        rlax.categorical_cross_entropy(jnp.array([0.2, 0.3, 0.5]), jnp.array([0.1, 0.2, 0.3])),
        rlax.truncated_generalized_advantage_estimation(rewards, discounts, 0.9, jnp.append(values, 0.1)),
        rlax.epsilon_greedy(0.1).probs(q),
    )
