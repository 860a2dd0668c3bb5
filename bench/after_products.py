"""What follows a product of matrices: what it costs beside the product, and beside JAX and PyTorch.

    ./bazelw run //bench:after_products                 # the table
    ./bazelw run //bench:after_products -- --write      # into docs/benchmarks.md

Jitted, f32. PyTorch is left out where it is not installed. All run by turns, as in
//bench:vector_products; a ratio is the median of those of neighbouring runs.
"""

from __future__ import annotations

import importlib.util
import pathlib
import statistics
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from figures import measured_on, with_section
from vector_products import by_turns, called

import weft
import weft.numpy as wnp

RNG = np.random.default_rng(1)
SHAPES = (
    (256, 64, 256),
    (1024, 64, 1024),
    (4096, 64, 512),
    (256, 256, 256),
    (512, 512, 512),
    (1024, 1024, 1024),
    (8192, 64, 2048),  # a result that is larger than the last cache
)  # rows, summed, columns


def following():
    """Name, program, whether it takes a row or a matrix besides."""
    yield "maximum(x @ w + b, 0)", lambda np_, x, w, b: np_.maximum(x @ w + b, 0 * b[:1]), "row"
    yield "tanh(x @ w + b)", lambda np_, x, w, b: np_.tanh(x @ w + b), "row"
    yield "0.5 x @ w + 0.3 c", lambda np_, x, w, c: 0.5 * (x @ w) + 0.3 * c, "matrix"


def main() -> None:
    options = dict(a.lstrip("-").partition("=")[::2] for a in sys.argv[1:])
    seconds = float(options.get("seconds", "2"))
    peers = ["JAX"] + (["PyTorch"] if importlib.util.find_spec("torch") else [])
    lines = [
        "| program | rows × summed × columns | product (µs) | all of it (µs) | ratio | to "
        + " | to ".join(peers)
        + " |",
        "|---|---|---|---|---|" + "---|" * len(peers),
    ]
    if "PyTorch" in peers:
        import torch

        torch.set_grad_enabled(False)
    for name, program, extra in following():
        for m, k, n in SHAPES:
            shapes = [(m, k), (k, n), (n,) if extra == "row" else (m, n)]
            arrays = [(RNG.standard_normal(s) / 8).astype(np.float32) for s in shapes]
            forms = [
                called(weft.jit(lambda x, w: x @ w), wnp.asarray, arrays[:2], weft.block_until_ready),
                called(weft.jit(partial(program, wnp)), wnp.asarray, arrays, weft.block_until_ready),
                called(jax.jit(partial(program, jnp)), jnp.asarray, arrays, jax.block_until_ready),
            ]
            if "PyTorch" in peers:
                forms.append(called(partial(program, torch), torch.from_numpy, arrays))
            times = by_turns(forms, seconds)
            ratio = lambda other, own=times[1]: f"{statistics.median(a / b for a, b in zip(own, other)):.2f}"
            product, whole = (1e6 * statistics.median(t) for t in times[:2])
            row = [name, f"{m} × {k} × {n}", f"{product:.0f}", f"{whole:.0f}", ratio(times[0]), *map(ratio, times[2:])]
            lines.append("| " + " | ".join(row) + " |")
            print(lines[-1], flush=True)
    if "write" in options:
        page = pathlib.Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
        page.write_text(with_section(page.read_text(), "after", measured_on() + "\n".join(lines)))


if __name__ == "__main__":
    main()
