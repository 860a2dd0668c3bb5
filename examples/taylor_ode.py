"""Differential equations by Taylor series: jet gives as many derivatives of the solution as one wants.

For y' = f(y), the derivatives of the solution follow one from the other: those of f along the curve up to order k are
the solution's up to order k + 1 (Griewank & Walther, "Evaluating Derivatives", 2nd ed., section 13.2). A step of order
12 is then so long that a planet goes round its sun in 40 of them. The gradient goes back through all steps.
"""

import math

import numpy as np

import weft
import weft.numpy as wnp

ORDER = 12


def kepler(state):
    """A planet around a sun at the origin: position and velocity, in the plane."""
    position, velocity = state[:2], state[2:]
    return wnp.concatenate([velocity, -position / (position**2).sum() ** 1.5])


def taylor_step(f, y, h):
    derivatives = [f(y)]
    for _ in range(ORDER - 1):
        _, more = weft.jet(f, (y,), (derivatives,))
        derivatives = [derivatives[0], *more]
    return y + sum(d * (h**k / math.factorial(k)) for k, d in enumerate(derivatives, 1))


@weft.jit
def travel(y, time):
    return weft.fori_loop(0, 40, lambda _, v: taylor_step(kepler, v, time / 40), y)


def main():
    # An ellipse of eccentricity 0.3 that starts nearest to the sun; its period is 2 pi.
    start = wnp.array([0.7, 0.0, 0.0, math.sqrt(1.3 / 0.7)], dtype="float64")
    period = wnp.array(2 * math.pi, dtype="float64")
    error = float(abs(travel(start, period) - start).max())
    print(f"after one period the planet is {error:.1e} from where it started")
    assert error < 1e-8

    # The period grows with the energy E as (-2 E)^(-3/2), so a faster planet is behind after the same time: where it is
    # changes by minus its velocity times the change of the period.
    slope = weft.jacrev(travel)(start, period)[:, 3]
    speed = float(start[3])
    energy = speed**2 / 2 - 1 / 0.7
    late = 3 * 2 * math.pi * (-2 * energy) ** -2.5 * speed
    expected = np.array([0, 0, 0, 1]) - late * np.asarray(kepler(start))
    print("and moves, for a faster start, by", np.round(slope, 6))
    np.testing.assert_allclose(slope, expected, atol=1e-6)


if __name__ == "__main__":
    main()
