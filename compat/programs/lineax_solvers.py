"""Linear systems of many structures and solvers, and their derivatives."""

import jax
import jax.numpy as jnp
import lineax as lx


def program():
    key = jax.random.key(0)
    a = jax.random.normal(key, (4, 4)) + 4 * jnp.eye(4)
    b = jnp.arange(1.0, 5.0)
    spd = a @ a.T

    def solve(matrix, vector, solver=lx.AutoLinearSolver(well_posed=True), tags=()):  # noqa: B008
        return lx.linear_solve(lx.MatrixLinearOperator(matrix, tags), vector, solver).value

    tall = jax.random.normal(jax.random.key(1), (6, 3))
    tridiagonal = lx.TridiagonalLinearOperator(jnp.full(4, 4.0), jnp.ones(3), jnp.ones(3))
    operator = lx.FunctionLinearOperator(lambda v: a @ v, jax.ShapeDtypeStruct((4,), jnp.float32))
    return (
        solve(a, b),
        jax.grad(lambda m: solve(m, b).sum())(a),
        jax.jit(jax.grad(lambda v: (solve(a, v) ** 2).sum()))(b),
        solve(spd, b, lx.CG(1e-6, 1e-6), lx.positive_semidefinite_tag),
        solve(spd, b, lx.Cholesky(), lx.positive_semidefinite_tag),
        jax.jvp(lambda m: solve(m, jnp.ones(6), lx.QR()), (tall,), (tall * 0.1,)),
        solve(tall, jnp.ones(6), lx.SVD()),
        lx.linear_solve(tridiagonal, b).value,
        lx.linear_solve(operator, b, lx.GMRES(1e-3, 1e-3)).value,
        lx.linear_solve(operator, b, lx.LU()).value,
        jax.vmap(lambda m, v: solve(m, v))(jnp.stack([a, spd]), jnp.stack([b, b])),
        jax.vmap(jax.grad(lambda v, m: solve(m, v).sum()), in_axes=(0, None))(jnp.stack([b, 2 * b]), a),
        jax.hessian(lambda v: solve(a + jnp.outer(v, v), b).sum())(b),
    )
