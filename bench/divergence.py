"""Branches and loops under vmap whose lanes disagree, beside JAX where it is installed.

    ./bazelw run -c opt //bench:divergence

Compiled functions of NumPy arrays; measurements of the two alternate, and the medians are printed. The last column is
the median of the ratios of neighbours (below 1: Weft is faster).
"""

from __future__ import annotations

import functools
import statistics
import time

import numpy as np

import weft
import weft.numpy as wnp

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    jax = None

ROUNDS = 9


def measure(function, repeat: int) -> float:
    """Seconds per call."""
    began = time.perf_counter()
    for _ in range(repeat):
        function()
    return (time.perf_counter() - began) / repeat


def compare(name: str, ours, theirs, arguments: tuple) -> None:
    f, g = weft.jit(ours), jax.jit(theirs) if jax and theirs else None
    x = [wnp.asarray(a) for a in arguments]

    def run_ours():
        np.asarray(f(*x)[:1])

    def run_theirs():
        g(*arguments).block_until_ready()

    run_ours()
    repeat = max(1, int(0.05 / max(1e-5, measure(run_ours, 1))))
    a, b = [], []
    if g:
        run_theirs()
        same = np.isclose(np.asarray(f(*x)), np.asarray(g(*arguments)), rtol=2e-2, atol=1e-3)
        assert same.mean() > 0.99, f"{name}: {(~same).sum()} results differ"  # chaotic orbits may
        their_repeat = max(1, int(0.05 / max(1e-5, measure(run_theirs, 1))))
    for _ in range(ROUNDS):
        a.append(measure(run_ours, repeat))
        if g:
            b.append(measure(run_theirs, their_repeat))
    mine, other = statistics.median(a) * 1e3, statistics.median(b) * 1e3 if b else float("nan")
    ratio = statistics.median(p / q for p, q in zip(a, b)) if b else float("nan")
    print(f"{name:64s} {mine:10.3f} {other:10.3f} {ratio:8.3f}", flush=True)


# --- The programs, for either library: `lib` has cond and while_loop, `np` is its numpy ---


def dear(lib, np, x):
    """For negative x: 50 steps on 64 numbers."""

    def step(_, y):
        return np.sin(y) + 0.1

    def true():
        return lib.fori_loop(0, 50, step, x * np.linspace(0.0, 1.0, 64)).sum()

    return lib.cond(x < 0, true, lambda: x)


def products(lib, np, w, x):
    """For negative x: 8 products of a matrix that lanes share."""

    def true():
        y = x * np.linspace(0.0, 1.0, 256)
        for _ in range(8):
            y = np.tanh(w @ y)
        return y.sum()

    return lib.cond(x < 0, true, lambda: x)


def cheap(lib, np, x):
    return lib.cond(x < 0, lambda: np.sin(x), lambda: x * 2)


def collatz(lib, np, n):
    def body(c):
        n, steps = c
        return np.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    return lib.while_loop(lambda c: c[0] != 1, body, (n, 0))[1]


def newton(lib, np, x):
    """The cube root of x, from 1."""

    def more(c):
        return np.abs(c**3 - x) > 1e-5 * np.abs(x)

    return lib.while_loop(more, lambda c: c - (c**3 - x) / (3 * c**2), np.ones_like(x))


def countdown(lib, np, n):
    """n steps on 64 numbers."""

    def body(c):
        k, y = c
        return k - 1, np.sin(y) + 0.1

    return lib.while_loop(lambda c: c[0] > 0, body, (n, np.linspace(0.0, 1.0, 64)))[1].sum()


def mandelbrot(lib, np, c):
    """Steps until |z| > 2, at most 1000."""

    def body(s):
        x, y, k = s
        return x * x - y * y + c[0], 2 * x * y + c[1], k + 1

    def more(s):
        x, y, k = s
        return (x * x + y * y <= 4) & (k < 1000)

    return lib.while_loop(more, body, (c[0] * 0, c[0] * 0, 0))[2]


def main() -> None:
    rng = np.random.default_rng(0)
    print(f"{'milliseconds':64s} {'weft':>10s} {'jax':>10s} {'ratio':>8s}")
    lax = jax and jax.lax

    def both(f, in_axes=0, transform=lambda lib, f: f):
        ours = transform(weft, weft.vmap(functools.partial(f, weft, wnp), in_axes))
        theirs = transform(jax, jax.vmap(functools.partial(f, lax, jnp), in_axes)) if jax else None
        return ours, theirs

    def lanes(n, taken):
        return np.where(rng.random(n) < taken, -1.0, 1.0).astype(np.float32) * rng.random(n).astype(np.float32)

    def total_slope(lib, f):
        return lib.grad(lambda *a: f(*a).sum())

    w = (rng.normal(size=(256, 256)) / 16).astype(np.float32)
    for taken in (0.01, 0.1, 0.5, 1.0):
        compare(f"cond, dear branch taken by {taken:.0%} of 10,000 lanes", *both(dear), (lanes(10_000, taken),))
    compare(
        "the same with products of a shared matrix, 1% of 10,000", *both(products, (None, 0)), (w, lanes(10_000, 0.01))
    )
    compare("gradient of the sum, dear branch, 1% of 10,000", *both(dear, 0, total_slope), (lanes(10_000, 0.01),))
    compare("cond, both branches cheap, 100,000 lanes", *both(cheap), (lanes(100_000, 0.5),))
    compare("Collatz steps of 1 to 10,000", *both(collatz), (np.arange(1, 10_001, dtype=np.int32),))
    compare("Collatz steps of 1 to 100,000", *both(collatz), (np.arange(1, 100_001, dtype=np.int32),))
    compare(
        "Newton, cube roots of 1e-6 to 1e9, 10,000",
        *both(newton),
        (np.geomspace(1e-6, 1e9, 10_000).astype(np.float32),),
    )
    compare("Mandelbrot, 128 x 128, at most 1000 steps", *both(mandelbrot), (mesh(128),))
    steps = np.minimum(rng.geometric(0.02, 1000), 1000).astype(np.int32)
    compare("steps on 64 numbers, 1000 lanes, 50 on average", *both(countdown), (steps,))
    few = steps[:50].copy()
    compare("the same, 50 lanes", *both(countdown), (few,))


def mesh(n: int) -> np.ndarray:
    x, y = np.meshgrid(np.linspace(-2, 1, n), np.linspace(-1.5, 1.5, n))
    return np.stack([x.ravel(), y.ravel()], 1).astype(np.float32)


if __name__ == "__main__":
    main()
