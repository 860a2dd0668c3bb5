"""Operations outside jit, on small arrays: what one call costs, and what it costs the first time.

    ./bazelw run //bench:eager

Beside JAX where it is installed, in one run and interleaved; medians of five rounds of processor time, in microseconds.
The last column is Weft's time over JAX's. What the first use of an operation costs (compiling its kernel, where it has
one) is wall time in milliseconds, of new processes with an empty and with a filled cache.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import weft
import weft.numpy as wnp

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    jax = None

ROUNDS = 5


def of_ten(np: Any) -> Callable:
    """Ten operations."""

    def chain(x, y):
        return np.sum(np.tanh(x * 2.0 + y) * y - x / 3.0 + np.exp(-x))

    return chain


def of_four(np: Any) -> Callable:
    def f(x):
        return np.sum(np.sin(x) * x + 1.0)

    return f


def programs(np: Any, grad: Any) -> dict[str, Callable[[], Any]]:
    x, y = np.ones(16), np.ones(16)
    chain, slope = of_ten(np), grad(of_four(np))
    return {
        "x + y": lambda: x + y,
        "x * 2.5": lambda: x * 2.5,
        "-x": lambda: -x,
        "exp(x)": lambda: np.exp(x),
        "x > y": lambda: x > y,
        "where(x > 0, x, y)": lambda: np.where(x > 0, x, y),
        "sum(x)": lambda: np.sum(x),
        "chain of ten": lambda: chain(x, y),
        "gradient of four": lambda: slope(x),
    }


def once(function: Callable[[], Any], repeat: int) -> float:
    began = time.process_time()
    for _ in range(repeat):
        function()
    return (time.process_time() - began) / repeat * 1e6


FIRST = """
import time, weft, weft.numpy as wnp
x = wnp.ones(16)
weft.jit(lambda v: v + 1)(x)
began = time.perf_counter()
for f in (wnp.exp, wnp.sin, wnp.tanh, wnp.log1p, wnp.arctan2): f(*[x] * (2 if f is wnp.arctan2 else 1))
print((time.perf_counter() - began) / 5 * 1e3)
"""


def main() -> None:
    ours = programs(wnp, weft.grad)
    theirs = programs(jnp, jax.grad) if jax else {}
    print(f"{'microseconds, 16 elements':32s} {'weft':>10s} {'jax':>10s} {'ratio':>8s}")
    for name, mine in ours.items():
        other = theirs.get(name)
        repeat = 1000 if " of " in name else 5000
        for f in (mine, other):
            if f is not None:
                once(f, repeat)
        rounds = [(once(mine, repeat), once(other, repeat // 5) if other else float("nan")) for _ in range(ROUNDS)]
        a, b = (statistics.median(column) for column in zip(*rounds))
        print(f"{name:32s} {a:10.2f} {b:10.2f} {a / b:8.3f}")
    with tempfile.TemporaryDirectory() as folder:
        for state in ("empty", "filled"):
            command = [sys.executable, "-c", FIRST]
            output = subprocess.run(
                command, env=os.environ | {"WEFT_CACHE_DIR": folder}, check=True, capture_output=True, text=True
            )
            print(f"first use of a function, cache {state}: {float(output.stdout):.2f} ms")


if __name__ == "__main__":
    main()
