"""Differential equations: adaptive steps, gradients by recursion and by the adjoint equation, a stiff one, noise."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import optimistix as optx


def program():
    def field(t, y, args):
        a, b = args
        return jnp.stack([a * y[0] - b * y[0] * y[1], -y[1] + y[0] * y[1]])

    term = dfx.ODETerm(field)
    start = jnp.array([1.0, 0.5])
    times = dfx.SaveAt(ts=jnp.linspace(0.0, 5.0, 6))

    def solved(args, solver=dfx.Tsit5(), adjoint=dfx.RecursiveCheckpointAdjoint(), saveat=times):  # noqa: B008
        return dfx.diffeqsolve(
            term,
            solver,
            0.0,
            5.0,
            0.1,
            start,
            args,
            saveat=saveat,
            adjoint=adjoint,
            stepsize_controller=dfx.PIDController(rtol=1e-5, atol=1e-6),
        ).ys

    args = jnp.array([1.1, 0.7])
    end = lambda args, **more: solved(args, saveat=dfx.SaveAt(t1=True), **more)[0, 0]
    stiff = dfx.diffeqsolve(
        dfx.ODETerm(lambda t, y, args: -50.0 * (y - jnp.cos(t))),
        dfx.Kvaerno5(),
        0.0,
        1.0,
        0.01,
        jnp.array(0.0),
        stepsize_controller=dfx.PIDController(rtol=1e-4, atol=1e-5),
    ).ys
    brownian = dfx.VirtualBrownianTree(0.0, 1.0, tol=1e-3, shape=(), key=jax.random.key(0))
    noisy = dfx.diffeqsolve(
        dfx.MultiTerm(dfx.ODETerm(lambda t, y, a: -y), dfx.ControlTerm(lambda t, y, a: 0.3, brownian)),
        dfx.Heun(),
        0.0,
        1.0,
        0.05,
        jnp.array(1.0),
    ).ys
    event = dfx.Event(lambda t, y, args, **_: y[0] - 2.0, root_finder=optx.Newton(1e-5, 1e-5))
    stopped = dfx.diffeqsolve(
        term,
        dfx.Tsit5(),
        0.0,
        5.0,
        0.1,
        start,
        args,
        event=event,
        stepsize_controller=dfx.PIDController(rtol=1e-5, atol=1e-6),
    )
    return (
        solved(args),
        jax.jit(jax.grad(end))(args),
        jax.grad(lambda a: end(a, adjoint=dfx.BacksolveAdjoint()))(args),
        jax.jvp(lambda a: end(a, adjoint=dfx.ForwardMode()), (args,), (jnp.ones(2),)),
        jax.vmap(end)(jnp.stack([args, args * 1.1])),
        end(args, solver=dfx.Dopri8()),
        stiff,
        noisy,
        stopped.ts,
    )
