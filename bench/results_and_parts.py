"""Results side by side and writes in parts, which are few kernels, beside their steps one by one and beside JAX.

    ./bazelw run //bench:results_and_parts                 # the table
    ./bazelw run //bench:results_and_parts -- --write      # into docs/benchmarks.md

Arrays of f32. The steps one by one are jitted functions of their own. The three run by turns, as in vector_products.py.
"""

from __future__ import annotations

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


def rows():
    """Name, program of a library's functions, its steps one by one, shapes of its operands."""
    for n in (1000, 100_000, 1_000_000):
        yield f"sin(x), cos(x), {n:,}", lambda np_, x: (np_.sin(x), np_.cos(x)), separately("sin", "cos"), [(n,)]
    yield "gradients of x y, 1,000,000", lambda np_, g, x, y: (g * y, g * x), products, [(1_000_000,)] * 3
    for n in (1000, 1_000_000):
        yield f"concatenate([sin(x), cos(x)]), {n:,}", joined, joined_in_steps, [(n,)]
    yield "pad(tanh(x) + 1, 3), 1000 × 1000", padded, padded_in_steps, [(1000, 1000)]


def separately(*names):
    def make(jit, np_):
        parts = [jit(getattr(np_, name)) for name in names]
        return lambda x: [f(x) for f in parts]

    return make


def products(jit, np_):
    times = jit(lambda a, b: a * b)
    return lambda g, x, y: (times(g, y), times(g, x))


def joined(np_, x):
    return np_.concatenate([np_.sin(x), np_.cos(x)])


def joined_in_steps(jit, np_):
    sin, cos, join = jit(np_.sin), jit(np_.cos), jit(lambda a, b: np_.concatenate([a, b]))
    return lambda x: join(sin(x), cos(x))


def padded(np_, x):
    return np_.pad(np_.tanh(x) + 1, 3)


def padded_in_steps(jit, np_):
    inside, pad = jit(lambda x: np_.tanh(x) + 1), jit(lambda x: np_.pad(x, 3))
    return lambda x: pad(inside(x))


def main() -> None:
    options = dict(a.lstrip("-").partition("=")[::2] for a in sys.argv[1:])
    lines = ["| program | Weft (µs) | in steps (µs) | ratio | JAX (µs) | ratio |", "|---|---|---|---|---|---|"]
    for name, program, steps, shapes in rows():
        arrays = [RNG.standard_normal(shape).astype(np.float32) for shape in shapes]
        forms = [
            called(weft.jit(partial(program, wnp)), wnp.asarray, arrays),
            called(steps(weft.jit, wnp), wnp.asarray, arrays),
            called(jax.jit(partial(program, jnp)), jnp.asarray, arrays, jax.block_until_ready),
        ]
        own, others, peers = by_turns(forms, float(options.get("seconds", "2")))
        to = lambda times, own=own: statistics.median(a / b for a, b in zip(own, times))
        one, other, peer = (1e6 * statistics.median(t) for t in (own, others, peers))
        lines.append(f"| {name} | {one:.2f} | {other:.2f} | {to(others):.2f} | {peer:.2f} | {to(peers):.2f} |")
        print(lines[-1], flush=True)
    if "write" in options:
        page = pathlib.Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
        page.write_text(with_section(page.read_text(), "parts", measured_on() + "\n".join(lines)))


if __name__ == "__main__":
    main()
