"""What a gradient costs beside its function, for the ten programs of bench/programs.py.

    ./bazelw run //bench:gradients
    ./bazelw run //bench:gradients -- --write      # and put the table into docs/benchmarks.md
    ./bazelw run //bench:gradients -- --only=lstm,mlp

counted: floating-point operations and bytes on the optimised IR (ir/analysis/cost.h), gradient over function;
timed: the same ratio of the compiled programs' times, the median of neighbouring pairs. A gradient is held to at most
four times its function in both. hvp: the same for a Hessian-vector product (forward over reverse) over the gradient,
held to three times. The last columns put the compiled gradient beside JAX's, in the same run, in turns.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import statistics
import time

import jax
import jax.numpy as jnp
import programs
from figures import HERE, with_section

import weft
import weft.numpy as wnp

GRADIENT_LIMIT, HVP_LIMIT = 4.0, 3.0


def seconds(run, inner: int) -> float:
    begin = time.perf_counter()
    for _ in range(inner):
        run()
    return (time.perf_counter() - begin) / inner


def inner_for(run) -> int:
    """Enough calls for about 5 ms."""
    run()
    return max(1, min(200, int(5e-3 / max(seconds(run, 1), 1e-7))))


def interleaved(first, second, repeats: int) -> tuple[float, float, float]:
    """Median seconds of both, and the median of the ratios first / second of neighbouring measurements."""
    n, m = inner_for(first), inner_for(second)
    pairs = [(seconds(first, n), seconds(second, m)) for _ in range(repeats)]
    return (
        statistics.median(a for a, _ in pairs),
        statistics.median(b for _, b in pairs),
        statistics.median(a / b for a, b in pairs),
    )


def cost_of(program) -> float:
    cost = program.cost_analysis()
    return cost["flops"] + cost["bytes accessed"]


def measure(make, repeats: int) -> tuple[str, bool]:
    """The row of one program, and whether it is within its limits."""
    function, arguments = make(weft, wnp)
    arguments = weft.tree.map(wnp.asarray, arguments)
    gradient = weft.grad(function)

    def hvp(p, *rest):
        return weft.jvp(lambda q: gradient(q, *rest), (p,), (p,))[1]

    def ready(f):
        return lambda: weft.block_until_ready(f(*arguments))

    costs = [cost_of(weft.make_ir(f)(*arguments)) for f in (function, gradient, hvp)]
    f, g, h = ready(weft.jit(function)), ready(weft.jit(gradient)), ready(weft.jit(hvp))
    gradient_seconds, function_seconds, gradient_ratio = interleaved(g, f, repeats)
    _, _, hvp_ratio = interleaved(h, g, repeats)
    function, jax_arguments = make(jax, jnp)
    jax_arguments = jax.tree.map(jnp.asarray, jax_arguments)
    theirs = jax.jit(jax.grad(function))
    _, jax_seconds, beside = interleaved(g, lambda: jax.block_until_ready(theirs(*jax_arguments)), repeats)
    ratios = [costs[1] / costs[0], gradient_ratio, costs[2] / costs[1], hvp_ratio]
    row = f"| {make.__name__.replace('_', ' ')} | " + " | ".join(f"{r:.2f}" for r in ratios)
    row += f" | {function_seconds * 1e6:.0f} | {gradient_seconds * 1e6:.0f} | {jax_seconds * 1e6:.0f} | {beside:.2f} |"
    return row, max(ratios[:2]) <= GRADIENT_LIMIT and max(ratios[2:]) <= HVP_LIMIT


HEAD = [
    "| program | counted | timed | hvp counted | hvp timed | function, µs | gradient, µs | JAX's, µs | Weft / JAX |",
    "|---|---|---|---|---|---|---|---|---|",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names, comma-separated")
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--write", action="store_true", help="rewrite the table in docs/benchmarks.md")
    options = parser.parse_args()
    wanted = set(filter(None, options.only.split(",")))
    rows, above = [], []
    print("\n".join(HEAD))
    for make in programs.PROGRAMS:
        if wanted and make.__name__ not in wanted:
            continue
        row, within = measure(make, options.repeats)
        print(row, flush=True)
        rows.append(row)
        if not within:
            above.append(make.__name__)
    print(f"above {GRADIENT_LIMIT:.0f} x (hvp: {HVP_LIMIT:.0f} x): {', '.join(above) or 'none'}")
    if options.write:
        page = pathlib.Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", HERE.parent)) / "docs" / "benchmarks.md"
        page.write_text(with_section(page.read_text(), "gradients", "\n".join([*HEAD, *rows])))
        print(f"wrote {page}")


if __name__ == "__main__":
    main()
