"""Products that use each number of a matrix once, as kernels, beside the library's call and beside JAX.

    ./bazelw run //bench:vector_products                 # the table
    ./bazelw run //bench:vector_products -- --write      # into docs/benchmarks.md

Jitted, f32. The library's call is what Weft makes without the rule "vector-product-as-sum". The three run by turns,
each after a pause and some calls; a ratio is the median of those of neighbouring runs.
"""

from __future__ import annotations

import math
import pathlib
import statistics
import sys
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from figures import measured_on, with_section

import weft
import weft.numpy as wnp

RULE = "vector-product-as-sum"
PAUSE = 0.03  # seconds before each turn: others' threads wait for work by spinning, on a CPU that the next would need
WARM = 0.02  # seconds of calls after it, until threads are awake and operands lie in caches
MEASURED = 0.02  # seconds of calls that are timed
RNG = np.random.default_rng(1)


def rows():
    """Name, program of a library's functions, shapes of its operands."""
    for n in (64, 256, 1024):
        yield f"x @ W, {n} × {n}", lambda np_, x, w: x @ w, [(1, n), (n, n)]
        yield f"W @ x, {n} × {n}", lambda np_, x, w: w @ x, [(n,), (n, n)]
    yield "x @ W, 64 × 4096", lambda np_, x, w: x @ w, [(64,), (64, 4096)]
    yield "W @ x, 4096 × 64", lambda np_, x, w: w @ x, [(64,), (4096, 64)]
    yield "x @ W, 20000 × 16", lambda np_, x, w: x @ w, [(20000,), (20000, 16)]
    yield "x · y, 1000", lambda np_, x, y: x @ y, [(1000,), (1000,)]
    yield "x · y, 1000000", lambda np_, x, y: x @ y, [(1000000,), (1000000,)]
    yield "outer(x, y), 512 × 512", lambda np_, x, y: np_.outer(x, y), [(512,), (512,)]
    yield "8 heads, one token of 2048", attention_of_one, [(8, 64), (8, 2048, 64), (8, 2048, 64)]
    yield "1000 products of 4 × 4", lambda np_, x, w: np_.einsum("bk,bkn->bn", x, w), [(1000, 4), (1000, 4, 4)]
    yield "tanh(x @ W + b), 256 × 256", lambda np_, x, w, b: np_.tanh(x @ w + b), [(1, 256), (256, 256), (256,)]


def attention_of_one(np_, q, k, v):
    scores = np_.exp(np_.einsum("hd,hnd->hn", q, k) / 8)
    return np_.einsum("hn,hnd->hd", scores / scores.sum(-1, keepdims=True), v)


def called(f, array, operands, wait=lambda result: result):
    arrays = [array(x) for x in operands]
    return lambda: wait(f(*arrays))


def timed(run, times: int) -> float:
    begin = time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - begin) / times


def by_turns(runs, seconds: float) -> list[list[float]]:
    """Seconds of each run, turn by turn."""
    for run in runs:
        run()
    inner = [max(1, math.ceil(MEASURED / timed(run, 3))) for run in runs]
    times: list[list[float]] = [[] for _ in runs]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 9:
        for run, n, of_run in zip(runs, inner, times):
            time.sleep(PAUSE)
            warm = time.perf_counter() + WARM
            while time.perf_counter() < warm:
                run()
            of_run.append(timed(run, n))
    return times


def main() -> None:
    options = dict(a.lstrip("-").partition("=")[::2] for a in sys.argv[1:])
    seconds = float(options.get("seconds", "2"))
    head = "| product | a kernel (µs) | a library's call (µs) | ratio | JAX (µs) | ratio |"
    lines = [head, "|---|---|---|---|---|---|"]
    for name, program, shapes in rows():
        arrays = [(RNG.standard_normal(s) / 8).astype(np.float32) for s in shapes]
        forms = [
            called(weft.jit(partial(program, wnp)), wnp.asarray, arrays),
            called(weft.jit(partial(program, wnp), disable=[RULE]), wnp.asarray, arrays),
            called(jax.jit(partial(program, jnp)), jnp.asarray, arrays, jax.block_until_ready),
        ]
        kernel_times, call_times, peer_times = by_turns(forms, seconds)
        ratio = lambda others, own=kernel_times: statistics.median(a / b for a, b in zip(own, others))
        one, other, peers = (1e6 * statistics.median(t) for t in (kernel_times, call_times, peer_times))
        lines.append(
            f"| {name} | {one:.2f} | {other:.2f} | {ratio(call_times):.2f} | {peers:.2f} | {ratio(peer_times):.2f} |"
        )
        print(lines[-1], flush=True)
    if "write" in options:
        page = pathlib.Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
        page.write_text(with_section(page.read_text(), "vectors", measured_on() + "\n".join(lines)))


if __name__ == "__main__":
    main()
