"""Quantum systems: a damped oscillator, Rabi oscillations and their gradient."""

import dynamiqs as dq
import jax
import jax.numpy as jnp


def program():
    n = 8
    a = dq.destroy(n)
    times = jnp.linspace(0.0, 1.0, 6)
    damped = dq.mesolve(
        a.dag() @ a, [0.5 * a], dq.coherent(n, 1.0), times, exp_ops=[a, dq.number(n)], progress_meter=False
    )

    def excited(omega):
        found = dq.sesolve(
            0.5 * omega * dq.sigmax(), dq.basis(2, 0), times, exp_ops=[dq.sigmaz()], progress_meter=False
        )
        return found.expects[0, -1].real

    return damped.expects, excited(2.0), jax.grad(excited)(2.0), dq.fidelity(dq.coherent(n, 1.0), dq.fock(n, 1))
