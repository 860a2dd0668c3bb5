"""What control flow of the host costs (S2-16): time for each iteration of one loop, driven by Python operation by
operation, driven by Python with a compiled step, and inside a program.

./bazelw run //examples:s2_16_cost_of_host_loops
"""

import time

import numpy as np

import weft
import weft.numpy as wnp


def step(s, i):
    return s + wnp.sin(s) * i


def loop(s, n):
    for i in range(n):
        s = step(s, i)
    return s


compiled_step = weft.jit(step)
compiled_loop = weft.jit(loop, autograph=True)  # n is traced: one program for every length


def host_loop(s, n):
    for i in range(n):
        s = compiled_step(s, i)
    return s


def nanoseconds(run, start, n):
    """Of one iteration, the best of three runs."""
    run(start, n)
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        weft.block_until_ready(run(start, n))
        times.append(time.perf_counter() - begin)
    return 1e9 * min(times) / n


start = wnp.array(0.1)
assert np.allclose([run(start, 20) for run in (loop, host_loop)], compiled_loop(start, 20), rtol=1e-4)
ways = {
    "Python, operation by operation": nanoseconds(loop, start, 500),
    "Python, a compiled step": nanoseconds(host_loop, start, 2000),
    "the loop in the program": nanoseconds(compiled_loop, start, 100_000),
}
for name, each in ways.items():
    print(f"{name}: {each:,.0f} ns an iteration")
eager, steps, inside = ways.values()
print(f"in the program {eager / inside:.0f} and {steps / inside:.0f} times as fast")

# How often control passes between Python and compiled code: once for each step, or once.
compiled_step.clear_cache(), compiled_loop.clear_cache()
host_loop(start, 100), compiled_loop(start, 100)
calls = [sum(version["calls"] for version in f.explain()) for f in (compiled_step, compiled_loop)]
print("calls of compiled code for 100 iterations:", calls)
assert calls == [100, 1]
