"""A step of Adam over 200 parameters, beside what memory can do and beside JAX.

    ./bazelw run //bench:optimizer
    ./bazelw run //bench:optimizer -- --write      # and put the table into docs/benchmarks.md

Parameters, both means and their gradients are lists of arrays of f32; the first three are donated. The step reads 16
bytes and writes 12 for each number. What memory can do is the faster of two streams over as many numbers, x + y and
x + 1 in place, in bytes per second. Times are in turns, medians.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from figures import HERE, measured_on, with_section

LEAVES = 200


def shapes_of(rows: int) -> list[tuple[int, ...]]:
    """Of a transformer's blocks: what normalises, projects and widens, `rows` features."""
    block = [(rows,), (rows, 3 * rows), (3 * rows,), (rows, rows), (rows,), (rows,), (rows, 4 * rows), (4 * rows,)]
    return [block[i % len(block)] for i in range(LEAVES)]


CASES = {
    "200 of 16": [(16,)] * LEAVES,
    "200 of 1,000": [(1000,)] * LEAVES,
    "200 of 50,000": [(50_000,)] * LEAVES,
    "blocks of 256 features": shapes_of(256),
    "blocks of 512 features": shapes_of(512),
}


def adam(np_):
    def step(count, params, means, squares, gradients):
        count = count + 1
        small, large = 1 - np_.power(np_.float32(0.9), count), 1 - np_.power(np_.float32(0.999), count)
        out = []
        for p, m, v, g in zip(params, means, squares, gradients):
            m = 0.9 * m + 0.1 * g
            v = 0.999 * v + 0.001 * g * g
            out.append((p - 1e-3 * (m / small) / (np_.sqrt(v / large) + 1e-8), m, v))
        return count, *(list(x) for x in zip(*out))

    return step


class Peer:
    """A library, its step and the state that the step leaves."""

    def __init__(self, name: str, shapes) -> None:
        if name == "weft":
            import weft as lib
            import weft.numpy as np_
        else:
            import jax as lib
            import jax.numpy as np_
        rng = np.random.default_rng(0)
        arrays = lambda: [np_.asarray(rng.random(s, dtype=np.float32)) for s in shapes]
        self.wait = lib.block_until_ready
        self.step = lib.jit(adam(np_), donate_argnums=(0, 1, 2, 3))
        self.state = [np_.asarray(np.float32(0)), arrays(), arrays(), arrays()]
        self.gradients = arrays()

    def run(self) -> None:
        self.state = list(self.wait(self.step(*self.state, self.gradients)))


class Streams:
    """x + y and x + 1 in place, of arrays of as many numbers."""

    def __init__(self, numbers: int) -> None:
        import weft

        self.wait = weft.block_until_ready
        self.sum = weft.jit(lambda x, y: x + y)
        self.next = weft.jit(lambda x: x + 1, donate_argnums=0)
        self.x, self.y, self.z = (weft.numpy.ones(numbers, "float32") for _ in range(3))

    def run_sum(self) -> None:
        self.wait(self.sum(self.x, self.y))

    def run_next(self) -> None:
        self.z = self.wait(self.next(self.z))


def seconds(run, times: int) -> float:
    begin = time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - begin) / times


def row(name: str, shapes) -> list[str]:
    numbers = sum(int(np.prod(s)) for s in shapes)
    ours, flat, theirs = Peer("weft", shapes), Peer("weft", [(numbers,)]), Peer("jax", shapes)
    streams = Streams(numbers)
    runs = [ours.run, flat.run, theirs.run, streams.run_sum, streams.run_next]
    once = [min(seconds(run, 1) for _ in range(3)) for run in runs]
    times = [[] for _ in runs]
    for _ in range(15):
        for run, first, found in zip(runs, once, times):
            found.append(seconds(run, max(1, int(2e-3 / first))))
    step, one, jax, add, update = map(statistics.median, times)
    limit = numbers * 28 / max(numbers * 12 / add, numbers * 8 / update)
    [facts] = ours.step.explain()
    against = statistics.median(a / b for a, b in zip(times[0], times[2]))
    return [
        name,
        f"{numbers:,}",
        f"{facts['kernel_calls']:.0f} in {facts['launches']:.0f}",
        *(f"{1e6 * t:,.0f} µs" for t in (step, one, limit)),
        f"{limit / step:.2f}",
        f"{1e6 * jax:,.0f} µs",
        f"{against:.2f}",
    ]


HEADS = ["parameters", "numbers", "kernels in launches", "Weft", "as one array", "memory's limit", "limit / Weft"]
HEADS += ["JAX", "ratio"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    lines = [f"| {' | '.join(HEADS)} |", "|" + "---|" * len(HEADS)]
    print("\n".join(lines), flush=True)
    for name, shapes in CASES.items():
        if args.only not in name:
            continue
        lines.append(f"| {' | '.join(row(name, shapes))} |")
        print(lines[-1], flush=True)
    if args.write:
        page = HERE.parent / "docs" / "benchmarks.md"
        page.write_text(with_section(page.read_text(), "optimizer", measured_on() + "\n".join(lines)))


if __name__ == "__main__":
    main()
