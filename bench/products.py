"""Products as they are written, beside the form of somebody who tuned them by hand: matrices that lie side by side from
the beginning, in one product; the call that a library has for it; the cheap order.

    ./bazelw run -c opt //bench:products                 # the table
    ./bazelw run -c opt //bench:products -- --only=LSTM
    ./bazelw run -c opt //bench:products -- --write      # into docs/benchmarks.md

Jitted, f32. As in //bench:naive, forms run by turns, once before they are timed; a ratio is the median of those of
neighbouring runs.
"""

from __future__ import annotations

import math
import pathlib
import statistics
import sys
import time

import numpy as np
from figures import measured_on, with_section
from naive_programs import lstm_naive, lstm_scan_naive, lstm_step

import weft
import weft.lax
import weft.nn
import weft.numpy as wnp

RNG = np.random.default_rng(1)


def normal(*shape):
    return (RNG.standard_normal(shape) / 8).astype(np.float32)


def side_by_side(weights):
    return [np.concatenate(weights[:4], 1), np.concatenate(weights[4:], 1)]


def tuned_step(x, h, c, wx, wh):
    return lstm_step(wnp, weft, x, h, c, wnp.split(x @ wx + h @ wh, 4, 1))


def tuned_scan(xs, wx, wh):
    def step(carry, x):
        h, c = tuned_step(x, *carry, wx, wh)
        return (h, c), h

    zero = wnp.zeros((xs.shape[1], wh.shape[0]), np.float32)
    return weft.lax.scan(step, (zero, zero), xs)[1]


def gradient(f):
    """Of the sum of what `f` gives, by all but the first operand."""
    return lambda *x: weft.grad(lambda *y: wnp.sum(f(*y)), argnums=tuple(range(1, len(x))))(*x)


def lstm_rows():
    for batch, size in ((1, 128), (32, 128), (64, 256)):
        weights = [normal(size, size) for _ in range(8)]
        state = [normal(batch, size) for _ in range(3)]
        written = lambda *x: lstm_naive(wnp, weft, *x)
        yield f"LSTM step, {batch} × {size}", written, state + weights, tuned_step, state + side_by_side(weights)
    for batch, size in ((1, 64), (1, 128), (16, 64)):
        weights = [normal(size, size) for _ in range(8)]
        xs = normal(64, batch, size)
        written = lambda *x: lstm_scan_naive(wnp, weft, *x)
        operands, tuned = [xs, *weights], [xs, *side_by_side(weights)]
        yield f"LSTM of 64 steps, {batch} × {size}", written, operands, tuned_scan, tuned
        yield f"its gradient, {batch} × {size}", gradient(written), operands, gradient(tuned_scan), tuned


def attention_rows():
    for rows, size in ((64, 128), (256, 128)):
        x, weights = normal(rows, size), [normal(size, size) for _ in range(3)]
        yield (
            f"q, k, v, {rows} × {size}",
            lambda x, q, k, v: (x @ q, x @ k, x @ v),
            [x, *weights],
            lambda x, w: tuple(wnp.split(x @ w, 3, 1)),
            [x, np.concatenate(weights, 1)],
        )


def matrix_rows():
    a, b, v, x = normal(384, 384), normal(384, 384), normal(384), normal(20000)
    for rows, columns in ((600, 128), (384, 384), (1024, 512)):
        m, n = normal(rows, columns), normal(rows, columns)
        yield f"X.T @ X beside X.T @ Y, {rows} × {columns}", lambda x: x.T @ x, [m], lambda x, y: x.T @ y, [m, n]
    yield "(A @ B) @ v", lambda a, b, v: (a @ b) @ v, [a, b, v], lambda a, b, v: a @ (b @ v), [a, b, v]
    yield "trace(A @ B)", lambda a, b: wnp.trace(a @ b), [a, b], lambda a, b: wnp.sum(a * b.T), [a, b]
    yield "sort(x)[-1]", lambda x: wnp.sort(x)[-1], [x], wnp.max, [x]
    yield "sort(x)[0]", lambda x: wnp.sort(x)[0], [x], wnp.min, [x]
    yield "argsort(x)[-1]", lambda x: wnp.argsort(x)[-1], [x], wnp.argmax, [x]
    yield "argsort(x)[::-1][0]", lambda x: wnp.argsort(x)[::-1][0], [x], wnp.argmax, [x]


def compared(written, operands, tuned, tuned_operands, seconds: float) -> tuple[float, float, float]:
    """Median seconds of both forms, and the ratio."""
    runs = []
    for f, given in ((written, operands), (tuned, tuned_operands)):
        jitted, arrays = weft.jit(f), [wnp.asarray(x) for x in given]
        runs.append(lambda jitted=jitted, arrays=arrays: weft.block_until_ready(jitted(*arrays)))

    def timed(run, times: int) -> float:
        run()
        begin = time.perf_counter()
        for _ in range(times):
            run()
        return (time.perf_counter() - begin) / times

    once = [timed(run, 1) for run in runs]
    inner = [max(1, math.ceil(2e-4 / t)) for t in once]
    turns = max(9, min(80, int(seconds / sum(t * (n + 1) for t, n in zip(once, inner)))))
    times: list[list[float]] = [[], []]
    for turn in range(turns):
        for k in range(2):
            form = (turn + k) % 2
            times[form].append(timed(runs[form], inner[form]))
    return *map(statistics.median, times), statistics.median(a / b for a, b in zip(*times))


def main() -> None:
    options = dict(a.lstrip("-").partition("=")[::2] for a in sys.argv[1:])
    seconds = float(options.get("seconds", "0.5"))
    lines = ["| program | written (µs) | tuned (µs) | ratio |", "|---|---|---|---|"]
    for rows in (lstm_rows, attention_rows, matrix_rows):
        for name, *forms in rows():
            if options.get("only", "") not in name:
                continue
            a, b, ratio = compared(*forms, seconds)
            lines.append(f"| {name} | {1e6 * a:.1f} | {1e6 * b:.1f} | {ratio:.2f} |")
            print(lines[-1], flush=True)
    if "write" in options:
        page = pathlib.Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
        page.write_text(with_section(page.read_text(), "products", measured_on() + "\n".join(lines)))


if __name__ == "__main__":
    main()
