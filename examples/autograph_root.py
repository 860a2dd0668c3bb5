"""Python's own if, for and while, compiled and differentiated.

    ./bazelw run //examples:autograph_root

Three programs as a person would write them: a square root by Newton's method (a loop whose length depends on the
number), a ball that bounces between walls (branches inside a loop), and a search that stops early. Each runs as plain
Python and as one compiled program; both give the same, and the gradients agree with closed forms or finite differences.
"""

from __future__ import annotations

import math

import numpy as np

import weft
import weft.numpy as wnp


def square_root(a):
    """Newton's method: as many steps as the number needs."""
    x = a
    steps = 0
    while abs(x * x - a) > 1e-6 * a:
        x = 0.5 * (x + a / x)
        steps += 1
    return x, steps


def bounce(position, velocity):
    """A ball between walls at 0 and 1, with some of its speed lost at each of them."""
    for _ in range(60):
        position = position + 0.05 * velocity
        if position > 1:
            position, velocity = 2 - position, -0.9 * velocity
        elif position < 0:
            position, velocity = -position, -0.9 * velocity
    return position


def first_above(values, limit):
    """The first place where a running sum exceeds a limit; -1 if it never does."""
    total = 0.0
    for i, value in enumerate(values):
        total = total + value
        if total > limit:
            return i
    return -1


def main() -> None:
    # A loop of unknown length.
    compiled = weft.jit(square_root, autograph=True)
    for a in (2.0, 144.0, 1e6):
        root, steps = compiled(a)
        print(f"sqrt({a:g}) = {float(root):.6g} after {int(steps)} steps")
        assert math.isclose(float(root), math.sqrt(a), rel_tol=1e-5) and int(steps) == square_root(a)[1]
    _, slope = weft.jvp(lambda a: weft.autograph(square_root)(a)[0], (2.0,), (1.0,))
    assert math.isclose(float(slope), 0.5 / math.sqrt(2.0), rel_tol=1e-4)

    # Branches inside a loop: one scan with a cond in it, whose gradient follows the bounces.
    start, speed = 0.3, 1.7
    gradient = weft.jit(weft.grad(weft.autograph(bounce), argnums=(0, 1)))(start, speed)
    print("d(position)/d(start, speed) =", [round(float(g), 4) for g in gradient])
    for k in range(2):
        up = [start, speed]
        down = [start, speed]
        up[k] += 1e-6
        down[k] -= 1e-6
        assert math.isclose(float(gradient[k]), (bounce(*up) - bounce(*down)) / 2e-6, rel_tol=1e-3)
    speeds = np.linspace(0.57, 2.9, 5, dtype=np.float32)
    ends = weft.vmap(weft.autograph(bounce), (None, 0))(start, speeds)
    np.testing.assert_allclose(np.asarray(ends), [bounce(start, float(v)) for v in speeds], rtol=1e-3)

    # A search that stops early.
    values = wnp.arange(1000.0)
    search = weft.jit(first_above, autograph=True)
    for limit in (10.0, 5000.0, 1e9):
        print(f"the sum of 0, 1, 2, ... exceeds {limit:g} at {int(search(values, limit))}")
        assert int(search(values, limit)) == first_above([float(v) for v in range(1000)], limit)

    print("\nThe conversion of bounce:\n")
    print(weft.autograph.to_source(bounce))
    print("\nIts program:\n")
    print(weft.make_ir(weft.autograph(bounce))(start, speed))


if __name__ == "__main__":
    main()
