"""Parts of a program that do not depend on each other run together (S1-26): steps that touch nothing which another of
them writes are one launch, which the threads share. Prints what each program takes with one thread and with two.

./bazelw run //examples:s1_26_scheduling
"""

import os
import statistics
import subprocess
import sys
import time

import numpy as np

import weft
import weft.numpy as wnp

rng = np.random.default_rng(0)


def array(*shape):
    return wnp.asarray(rng.standard_normal(shape, np.float32))


def branches(x, y, z):
    """Three chains that meet at the end."""
    return [wnp.tanh(x) * x, wnp.exp(-y * y), wnp.sin(z) + 1]


def projections(x, q, k, v):
    """Three products that one thread computes each."""
    return x @ q, x @ k, x @ v


def adam(leaves, gradients):
    """One step for many parameters of different shapes."""
    return [p - 1e-3 * g / (wnp.sqrt(g * g) + 1e-8) for p, g in zip(leaves, gradients)]


shapes = [(2000 + 10 * i, 50) for i in range(20)]
PROGRAMS = {
    "three branches": (branches, [array(n) for n in (100_000, 200_000, 300_000)]),
    "Q, K and V": (projections, [array(64, 64), *(array(64, 64) for _ in range(3))]),
    "20 parameters": (adam, [[array(*s) for s in shapes], [array(*s) for s in shapes]]),
}


def microseconds(f, args):
    times = []
    for _ in range(50):
        began = time.perf_counter()
        f(*args)
        times.append(time.perf_counter() - began)
    return 1e6 * statistics.median(times)


def main():
    if "TIMES" in os.environ:  # of a process that was told its threads
        print(*(microseconds(weft.jit(f), args) for f, args in PROGRAMS.values()))
        return
    for name, (f, args) in PROGRAMS.items():
        g = weft.jit(f)
        for found, wanted in zip(weft.tree.leaves(g(*args)), weft.tree.leaves(f(*args))):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
        version = g.explain()[0]
        kernels, products, launches = version["kernel_calls"], version["library_calls"], version["launches"]
        print(f"{name}: {kernels} kernels, {launches} launches of them, {products} calls for products")
        assert launches == (kernels > 0) and kernels + products >= 3, version
    times = {}
    for threads in ("1", "2"):
        environment = {**os.environ, "TIMES": "1", "WEFT_NUM_THREADS": threads, "PYTHONPATH": os.pathsep.join(sys.path)}
        run = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=True)
        times[threads] = [float(x) for x in run.stdout.split()]
    for name, one, two in zip(PROGRAMS, times["1"], times["2"]):
        print(f"{name}: {one:.0f} µs with one thread, {two:.0f} µs with two")


if __name__ == "__main__":
    main()
