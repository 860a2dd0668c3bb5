"""vmap of programs whose lanes go different ways.

A particle falls freely until it meets the ground; then, and only then, the time of impact is found by Newton's method
(a loop that would not end for a particle in the air: it has no impact). vmap runs the search for the particles that
need it, prints for those alone, and its gradient is that of each particle by itself.
"""

import numpy as np

import weft
import weft.numpy as wnp

GRAVITY, TIME = 9.81, 1.0


def height(h, v, t):
    return h + v * t - 0.5 * GRAVITY * t * t


def impact(h, v):
    """When a particle from height h with speed v upwards meets the ground."""

    def more(t):
        return wnp.abs(height(h, v, t)) > 1e-5

    return weft.while_loop(more, lambda t: t - height(h, v, t) / (v - GRAVITY * t), wnp.full((), 2 * TIME))


def bounce(h, v):
    """The height after TIME; a particle that met the ground has lost half of its speed in the bounce."""

    def bounced():
        t = impact(h, v)
        rest = TIME - t
        return height(0.0, 0.5 * (GRAVITY * t - v), rest)

    return weft.cond(height(h, v, TIME) < 0, bounced, lambda: height(h, v, TIME))


def exact(h, v):
    free = height(h, v, TIME)
    t = (v + np.sqrt(v * v + 2 * GRAVITY * h)) / GRAVITY
    return np.where(free < 0, height(0.0, 0.5 * (GRAVITY * t - v), TIME - t), free)


def main():
    rng = np.random.default_rng(0)
    h, v = rng.uniform(3, 60, 1000).astype(np.float32), rng.uniform(-1, 5, 1000).astype(np.float32)
    heights = weft.jit(weft.vmap(bounce))
    error = np.abs(np.asarray(heights(h, v)) - exact(h, v)).max()
    print(f"{(height(h, v, TIME) < 0).sum()} of 1000 particles bounced; largest error {error:.1e} m")
    assert error < 1e-3

    # The gradient of the mean, and each particle's own: the same numbers in either order of grad and vmap.
    one = weft.jit(weft.vmap(weft.grad(bounce)))(h, v)
    all_together = weft.jit(weft.grad(lambda h: weft.vmap(bounce)(h, v).sum()))(h)
    step = 1e-3
    slope = (exact(h.astype(np.float64) + step, v) - exact(h.astype(np.float64) - step, v)) / (2 * step)
    print(f"gradients differ by at most {np.abs(np.asarray(one) - np.asarray(all_together)).max():.1e}")
    np.testing.assert_allclose(one, all_together, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(one, slope, rtol=2e-2, atol=2e-2)

    # What is printed in a branch is printed by the lanes that take it, in their order.
    def told(h, v):
        def bounced():
            weft.debug.print("from {:.1f} m: ground after {:.3f} s", h, impact(h, v))
            return bounce(h, v)

        return weft.cond(height(h, v, TIME) < 0, bounced, lambda: bounce(h, v))

    weft.vmap(told)(h[:40], v[:40])


if __name__ == "__main__":
    main()
