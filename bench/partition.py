"""How long a training step takes to be cut over a mesh, by the number of its devices.

    ./bazelw run -c opt //bench:partition

A network of eight layers with tensor parallelism along one axis and data parallelism along the other, with its
gradients. The devices need not exist: a program for them is made, not run.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

import weft
import weft.numpy as wnp
from weft import _weft

LAYERS, WIDTH, BATCH, ROUNDS = 8, 4096, 8192, 7
MESHES = ((2, 4), (8, 8), (16, 32), (64, 64))


def step(params, x, t):
    def loss(params):
        h = x
        for up, down in params:
            h = h + wnp.tanh(h @ up) @ down
        return ((h - t) ** 2).mean()

    return weft.tree.map(lambda p, g: p - 0.1 * g, params, weft.grad(loss)(params))


def main() -> None:
    array = weft.ShapeDtype((WIDTH, WIDTH), np.float32)
    batch = weft.ShapeDtype((BATCH, WIDTH), np.float32)
    traced = weft.jit(step).lower([(array, array)] * LAYERS, batch, batch)._traced
    cuts = [[[], ["model"]], [["model"], []]] * LAYERS + [[["data"], []]] * 2
    first = None
    for data, model in MESHES:
        axes = [("data", data), ("model", model)]
        times = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            _, _, _, comms, _ = _weft.partition(traced, axes, cuts, False, False)
            times.append(time.perf_counter() - began)
        median = statistics.median(times)
        first = first or median
        print(f"{data * model:5} devices: {1e3 * median:6.1f} ms, x {median / first:.2f}, {len(comms)} collectives")


if __name__ == "__main__":
    main()
