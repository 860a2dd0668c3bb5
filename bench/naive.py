"""Programs as a newcomer writes them beside an expert's form, in Weft and in JAX.

    ./bazelw run -c opt //bench:naive                    # the table of kinds
    ./bazelw run -c opt //bench:naive -- --each          # every program
    ./bazelw run -c opt //bench:naive -- --only=trace    # those whose name has this in it, with their program
    ./bazelw run -c opt //bench:naive -- --write         # into docs/benchmarks.md

Jitted, f32, the four forms of a program by turns, each turn beginning with another one. A form runs once before it is
timed: what ran before it has its data in the caches, and its threads may still be waiting for work. A ratio is the
median of the ratios of neighbouring runs; a kind's is the geometric mean. All four must agree, or the program is
refused.
"""

from __future__ import annotations

import math
import pathlib
import statistics
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from figures import measured_on, with_section
from naive_programs import PROGRAMS

import weft
import weft.lax
import weft.nn
import weft.numpy as wnp

FORMS = ("naive", "expert", "JAX naive", "JAX expert")


def operand(shape, rng: np.random.Generator):
    if isinstance(shape, int):
        return np.int32(rng.integers(shape))
    if isinstance(shape, list):
        return rng.integers(shape[1], size=shape[0]).astype(np.int32)
    return np.asarray(rng.standard_normal(shape), np.float32)


def forms_of(operands, naive, expert):
    """What runs each of the four forms once, to its end, and the jitted naive form of ours."""
    rng = np.random.default_rng(1)
    given = [operand(shape, rng) for shape in operands]
    ours, theirs = [wnp.asarray(x) for x in given], [jnp.asarray(x) for x in given]
    jitted = [weft.jit(lambda *x, f=f: f(wnp, weft, *x)) for f in (naive, expert)]
    of_jax = [jax.jit(lambda *x, f=f: f(jnp, jax, *x)) for f in (naive, expert)]
    runs = [lambda f=f: weft.block_until_ready(f(*ours)) for f in jitted]
    runs += [lambda f=f: jax.block_until_ready(f(*theirs)) for f in of_jax]
    return runs, jitted[0], ours


def leaves(results) -> list:
    return [np.asarray(x, np.float64) for x in jax.tree_util.tree_leaves(jax.tree_util.tree_map(np.asarray, results))]


def agree(name: str, runs) -> None:
    """Refuses forms that compute something else."""
    want = leaves(runs[-1]())
    for form, run in zip(FORMS, runs):
        for got, w in zip(leaves(run()), want, strict=True):
            scale = max(1.0, float(np.max(np.abs(w)))) if w.size else 1.0
            if got.shape != w.shape or not np.allclose(got, w, atol=2e-2 * scale, rtol=0):
                raise ValueError(f"{name}: {form} gives {got.ravel()[:4]}, JAX's expert form {w.ravel()[:4]}")


def measure(name: str, operands, naive, expert, seconds: float) -> dict[str, float]:
    """Median seconds of each form, and the ratios."""
    runs, _, _ = forms_of(operands, naive, expert)
    agree(name, runs)

    def timed(run, times: int) -> float:
        run()
        begin = time.perf_counter()
        for _ in range(times):
            run()
        return (time.perf_counter() - begin) / times

    once = [timed(run, 1) for run in runs]
    inner = [max(1, math.ceil(1e-4 / t)) for t in once]
    a_turn = sum(t * (n + 1) for t, n in zip(once, inner))
    times: list[list[float]] = [[] for _ in runs]
    for turn in range(max(7, min(60, int(seconds / a_turn)))):
        for k in range(len(runs)):
            form = (turn + k) % len(runs)
            times[form].append(timed(runs[form], inner[form]))
    found = {form: statistics.median(t) for form, t in zip(FORMS, times)}

    def ratio(a: int, b: int) -> float:
        return statistics.median(x / y for x, y in zip(times[a], times[b]))

    return found | {"ours": ratio(0, 1), "theirs": ratio(2, 3), "to expert": ratio(0, 3), "to naive": ratio(0, 2)}


RATIOS = ("ours", "theirs", "to expert", "to naive")


def mean(rows: list[dict[str, float]], which: str) -> float:
    return math.exp(statistics.fmean(math.log(row[which]) for row in rows))


def table(found: dict[str, dict[str, dict[str, float]]]) -> str:
    lines = [
        "| kind | programs | naive / expert | of JAX | naive / JAX's expert | naive / JAX's naive | slower than that |",
        "|---|---|---|---|---|---|---|",
    ]
    rows_of = {kind: list(programs.values()) for kind, programs in found.items()}
    rows_of["all"] = [row for rows in rows_of.values() for row in rows]
    for kind, rows in rows_of.items():
        if not rows:
            continue
        cells = " | ".join(f"{mean(rows, which):.2f}" for which in RATIOS)
        slower = sum(row["to naive"] > 1.05 for row in rows)
        lines.append(f"| {kind} | {len(rows)} | {cells} | {slower} |")
    return "\n".join(lines)


def main() -> None:
    options = dict(a.lstrip("-").partition("=")[::2] for a in sys.argv[1:])
    seconds = float(options.get("seconds", "0.4"))
    found: dict[str, dict[str, dict[str, float]]] = {}
    for kind, programs in PROGRAMS.items():
        found[kind] = {}
        for name, operands, naive, expert in programs:
            if options.get("only", "") not in name:
                continue
            if "only" in options:
                _, jitted, ours = forms_of(operands, naive, expert)
                print(jitted.lower(*ours).stage("optimized"))
            row = found[kind][name] = measure(name, operands, naive, expert, seconds)
            if "each" in options or "only" in options:
                times = ", ".join(f"{form} {1e6 * row[form]:.1f}" for form in FORMS)
                print(f"{row['ours']:6.2f} {row['to naive']:6.2f}  {kind}: {name} ({times} us)", flush=True)
    text = table(found)
    print(text)
    if "write" in options:
        page = pathlib.Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
        page.write_text(with_section(page.read_text(), "naive", measured_on() + text))


if __name__ == "__main__":
    main()
