"""Solvers of optimisation problems, and derivatives through them."""

import jax
import jax.numpy as jnp
import jaxopt


def program():
    key = jax.random.PRNGKey(0)
    x = jax.random.normal(key, (20, 5))
    y = x @ jnp.arange(5.0) + 0.1

    def ridge(w, penalty):
        return jnp.mean((x @ w - y) ** 2) + penalty * jnp.sum(w**2)

    def solution(penalty):
        return jaxopt.LBFGS(ridge, maxiter=100, tol=1e-6).run(jnp.zeros(5), penalty).params

    lasso = jaxopt.ProximalGradient(lambda w: jnp.mean((x @ w - y) ** 2), jaxopt.prox.prox_lasso, maxiter=200)
    projected = jaxopt.ProjectedGradient(
        lambda w: jnp.sum((w - jnp.array([0.9, 0.4, -0.3])) ** 2), jaxopt.projection.projection_simplex
    )
    root = jaxopt.Bisection(lambda v, c: v**3 - v - c, 1.0, 2.0)
    fixed = jaxopt.FixedPointIteration(lambda v: jnp.cos(v), maxiter=200, tol=1e-6)
    quadratic = jaxopt.OSQP(tol=1e-5)
    q = quadratic.run(
        params_obj=(jnp.array([[4.0, 1.0], [1.0, 2.0]]), jnp.array([1.0, 1.0])),
        params_eq=(jnp.array([[1.0, 1.0]]), jnp.array([1.0])),
    ).params.primal
    return (
        solution(0.1),
        jax.jacobian(solution)(0.1),
        lasso.run(jnp.zeros(5), 0.1).params,
        projected.run(jnp.ones(3) / 3).params,
        root.run(None, 2.0).params,
        fixed.run(jnp.array(1.0)).params,
        q,
        jaxopt.LevenbergMarquardt(lambda p: jnp.array([p[0] ** 2 - 2, p[1] - p[0]])).run(jnp.ones(2)).params,
    )
