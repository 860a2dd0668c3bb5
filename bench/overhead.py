"""What Python costs: tracing one element-wise operation, calling a tiny compiled function, importing.

    ./bazelw run //bench:overhead

Beside JAX where it is installed, in one run and interleaved; medians of processor time (of the whole process, so that a
busy machine disturbs little), but for the last row, which is wall time. The last column is Weft's time over JAX's.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
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


def timed(function, repeat: int) -> float:
    """Seconds per call, of one round."""
    began = time.process_time()
    for _ in range(repeat):
        function()
    return (time.process_time() - began) / repeat


def compare(name: str, ours, theirs, repeat: int, per: int = 1, their_repeat: int | None = None) -> None:
    """Prints one row; `per` operations happen in one call."""
    a, b = [], []
    for _ in range(ROUNDS):
        a.append(timed(ours, repeat) / per)
        if theirs:
            b.append(timed(theirs, their_repeat or repeat) / per)
    mine, other = statistics.median(a) * 1e6, statistics.median(b) * 1e6 if b else float("nan")
    print(f"{name:56s} {mine:10.2f} {other:10.2f} {mine / other:8.3f}")


def chain(x):
    for _ in range(100):
        x = x * 1.5 + 2.0
    return x


def chain_arrays(x, y):
    for _ in range(100):
        x = x * y + y
    return x


def main() -> None:
    print(f"{'microseconds':56s} {'weft':>10s} {'jax':>10s} {'ratio':>8s}")
    x, y = wnp.ones(8), wnp.ones(8)
    jx, jy = (jnp.ones(8), jnp.ones(8)) if jax else (None, None)
    compare(
        "trace one operation (array and number, of 200)",
        lambda: weft.make_ir(chain)(x),
        jax and (lambda: jax.make_jaxpr(lambda x: chain(x))(jx)),
        50,
        200,
        2,
    )
    compare(
        "trace one operation (two arrays, of 200)",
        lambda: weft.make_ir(chain_arrays)(x, y),
        jax and (lambda: jax.make_jaxpr(lambda x, y: chain_arrays(x, y))(jx, jy)),
        50,
        200,
        2,
    )

    f = weft.jit(lambda a, b: a + b)
    g = jax and jax.jit(lambda a, b: a + b)
    f(x, y), g and g(jx, jy)
    compare("call a compiled function, 2 arrays", lambda: f(x, y), g and (lambda: g(jx, jy)), 20000, 1, 5000)
    d, jd = {"a": x, "b": (y, x)}, {"a": jx, "b": (jy, jx)}
    h = weft.jit(lambda d: d["a"] + d["b"][0])
    k = jax and jax.jit(lambda d: d["a"] + d["b"][0])
    h(d), k and k(jd)
    compare("call a compiled function, dict with 3 arrays", lambda: h(d), k and (lambda: k(jd)), 20000, 1, 5000)
    n = np.ones(8, np.float32)
    compare("call a compiled function, 2 NumPy arrays", lambda: f(n, n), g and (lambda: g(n, n)), 20000, 1, 2000)
    compare("one operation at once, 8 elements", lambda: x + y, jax and (lambda: jx + jy), 5000, 1, 2000)

    def process(code: str) -> float:
        times = []
        for _ in range(3):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            times.append(time.perf_counter() - began)
        return statistics.median(times) * 1e6

    ours = process("import weft, numpy as np; weft.jit(lambda x: x * 2 + 1)(np.ones(3, np.float32))")
    theirs = (
        process("import jax, numpy as np; jax.jit(lambda x: x * 2 + 1)(np.ones(3, np.float32)).block_until_ready()")
        if jax
        else float("nan")
    )
    print(f"{'import and first result in a new process':56s} {ours:10.0f} {theirs:10.0f} {ours / theirs:8.3f}")


if __name__ == "__main__":
    main()
