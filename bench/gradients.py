"""What a gradient costs beside its function, for the ten programs of bench/programs.py.

    ./bazelw run //bench:gradients
    ./bazelw run //bench:gradients -- --write      # and put the table into docs/benchmarks.md
    ./bazelw run //bench:gradients -- --only=lstm,mlp

counted: floating-point operations and bytes on the optimised IR (ir/cost.h), gradient over function; timed: the same
ratio of the compiled programs' times, the median of neighbouring pairs. A gradient is held to at most four times its
function in both. The last columns put the compiled gradient beside JAX's, in the same run, in turns.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import time

import jax
import jax.numpy as jnp
import programs

import weft
import weft.numpy as wnp

LIMIT = 4.0


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


def counted(function, arguments) -> float:
    cost = weft.make_ir(function)(*arguments).cost_analysis()
    return cost["flops"] + cost["bytes accessed"]


def measure(make, repeats: int) -> tuple[str, float, float]:
    function, arguments = make(weft, wnp)
    arguments = weft.tree.map(wnp.asarray, arguments)
    gradient = weft.grad(function)
    by_count = counted(gradient, arguments) / counted(function, arguments)
    f, g = weft.jit(function), weft.jit(gradient)
    of_gradient, of_function, by_time = interleaved(
        lambda: weft.block_until_ready(g(*arguments)), lambda: weft.block_until_ready(f(*arguments)), repeats
    )
    function, arguments = make(jax, jnp)
    arguments = jax.tree.map(jnp.asarray, arguments)
    theirs = jax.jit(jax.grad(function))
    ours_arguments = weft.tree.map(wnp.asarray, make(weft, wnp)[1])
    _, jaxs, beside = interleaved(
        lambda: weft.block_until_ready(g(*ours_arguments)), lambda: jax.block_until_ready(theirs(*arguments)), repeats
    )
    row = (
        f"| {make.__name__.replace('_', ' ')} | {by_count:.2f} | {by_time:.2f} | {of_function * 1e6:.0f} | "
        f"{of_gradient * 1e6:.0f} | {jaxs * 1e6:.0f} | {beside:.2f} |"
    )
    return row, by_count, by_time


HEAD = [
    "| program | counted | timed | function, us | gradient, us | JAX's gradient, us | Weft / JAX |",
    "| --- | --- | --- | --- | --- | --- | --- |",
]
BEGIN, END = "<!-- gradients: begin -->", "<!-- gradients: end -->"


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
        row, by_count, by_time = measure(make, options.repeats)
        print(row, flush=True)
        rows.append(row)
        if max(by_count, by_time) > LIMIT:
            above.append(make.__name__)
    print(f"above {LIMIT:.0f} x: {', '.join(above) or 'none'}")
    if options.write:
        from figures import workspace_file

        page = workspace_file("docs/benchmarks.md")
        text = page.read_text()
        before, rest = text.split(BEGIN)
        _, after = rest.split(END)
        page.write_text(before + "\n".join([BEGIN, *HEAD, *rows, END]) + after)
        print(f"wrote {pathlib.Path(page).name}")


if __name__ == "__main__":
    main()
