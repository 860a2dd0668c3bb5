"""What it costs to run on 8 virtual devices, beside JAX's 8 host devices, in one run and in turns.

    ./bazelw run //bench:mesh
    ./bazelw run //bench:mesh -- --write      # and put the table into docs/benchmarks.md

Dispatch: a call of `x + 1` on 8 numbers for each device, jitted and outside of jit, on arrays of one device and of 8,
with one argument and with two; each call takes what the last one gave. Collectives: of 8 numbers on each device, and an
all-reduce of 4 MiB on each. Deterministic: a training step of a small network in data parallel, beside the same step as
it is.
"""

from __future__ import annotations

import argparse
import os

os.environ["WEFT_NUM_CPU_DEVICES"] = "8"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import pathlib
import statistics

import jax
import numpy as np
from figures import HERE, with_section
from gradients import seconds
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as JaxP

import weft
import weft.numpy as wnp
from weft import P, lax

DEVICES, REPEATS, CALLS = 8, 301, 200
MESH = weft.make_mesh((DEVICES,), ("x",))
THEIRS = Mesh(np.array(jax.devices()).reshape(DEVICES), ("x",))

COLLECTIVES = {
    "psum": lambda lax: lambda v: lax.psum(v, "x"),
    "all_gather": lambda lax: lambda v: lax.all_gather(v, "x"),
    "psum_scatter": lambda lax: lambda v: lax.psum_scatter(v, "x", tiled=True),
    "all_to_all": lambda lax: lambda v: lax.all_to_all(v, "x", 0, 0, tiled=True),
    "ppermute": lambda lax: lambda v: lax.ppermute(v, "x", [(i, (i + 1) % DEVICES) for i in range(DEVICES)]),
}


def in_turns(first, second, repeats: int = REPEATS) -> tuple[float, float, float]:
    """Median seconds of both, and the median of the ratios first / second. Each is measured for so short a time that
    other programs on the machine rarely come between."""
    for _ in range(3):
        first(), second()
    pairs = [(seconds(first, 1), seconds(second, 1)) for _ in range(repeats)]
    mine, theirs = zip(*pairs)
    return statistics.median(mine), statistics.median(theirs), statistics.median(a / b for a, b in pairs)


def beside(f, g, values, repeats: int = REPEATS):
    x = weft.device_put(values, weft.NamedSharding(MESH, P("x")))
    y = jax.device_put(values, NamedSharding(THEIRS, JaxP("x")))
    return in_turns(lambda: f(x), lambda: jax.block_until_ready(g(y)), repeats)


def chained(mine, theirs, place, their_place, values, count):
    """Calls of functions of `count` arrays that take their own result as the first one."""
    xs = [weft.device_put(values, place) if place else wnp.asarray(values) for _ in range(count)]
    ys = [jax.device_put(values, their_place) if their_place else jax.numpy.asarray(values) for _ in range(count)]

    # Written out: unpacking a list of arguments in each call takes Python a fifth as long as the call.
    def of_one(f, x):
        for _ in range(CALLS):
            x = f(x)
        x.block_until_ready()

    def of_two(f, x, y):
        for _ in range(CALLS):
            x = f(x, y)
        x.block_until_ready()

    def run(f, arrays):
        return lambda: (of_one if count == 1 else of_two)(f, *arrays)

    ours, others, ratio = in_turns(run(mine, xs), run(theirs, ys))
    return ours / CALLS, others / CALLS, ratio


def dispatch(values):
    one = lambda x: x + 1
    two = lambda x, y: x + y
    cut = (weft.NamedSharding(MESH, P("x")), NamedSharding(THEIRS, JaxP("x")))
    placed = (weft.SingleDeviceSharding(weft.devices()[3]), jax.sharding.SingleDeviceSharding(jax.devices()[3]))
    for where, (place, their_place), goal in (
        ("on no device in particular", (None, None), "≤ 0.4 µs"),
        ("on one device", placed, "≤ 0.4 µs"),
        ("cut over 8", cut, "≤ 4 µs"),
    ):
        yield f"jit(x + 1), {where}", *chained(weft.jit(one), jax.jit(one), place, their_place, values, 1), goal
        yield f"jit(x + y), {where}", *chained(weft.jit(two), jax.jit(two), place, their_place, values, 2), goal
        yield f"x + y outside of jit, {where}", *chained(two, two, place, their_place, values, 2), ""


def collective(name: str, values, repeats: int = REPEATS):
    out = P() if name == "psum" else P("x")
    mine = weft.jit(weft.shard_map(COLLECTIVES[name](lax), MESH, P("x"), out))
    theirs = jax.jit(
        jax.shard_map(
            COLLECTIVES[name](jax.lax), mesh=THEIRS, in_specs=JaxP("x"), out_specs=JaxP(*out), check_vma=False
        )
    )
    return beside(mine, theirs, values, repeats)


def step(params, x, t):
    loss = lambda p: ((wnp.tanh(x @ p["w"]) @ p["v"] - t) ** 2).mean()
    return weft.tree.map(lambda p, g: p - 0.1 * g, params, weft.grad(loss)(params))


def deterministic():
    rng = np.random.default_rng(0)
    data = weft.NamedSharding(MESH, P("x"))
    params = {
        "w": rng.standard_normal((64, 64)).astype(np.float32),
        "v": rng.standard_normal((64, 10)).astype(np.float32),
    }
    x, t = (weft.device_put(rng.standard_normal((128, n)).astype(np.float32), data) for n in (64, 10))
    slow, fast = weft.jit(step, deterministic=True), weft.jit(step)
    return in_turns(lambda: slow(params, x, t), lambda: fast(params, x, t))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    small = np.arange(DEVICES * DEVICES, dtype=np.float32)
    rows = list(dispatch(small))
    for name in COLLECTIVES:
        rows.append((name, *collective(name, small), ""))
    large = np.ones(DEVICES << 20, np.float32)
    rows.append(("psum of 4 MiB on each", *collective("psum", large, 31), "ratio ≤ 1"))
    rows.append(("deterministic step, beside the same as it is", *deterministic(), ""))
    lines = ["| on 8 virtual devices | Weft, µs | JAX, µs | ratio | to reach |", "|---|---|---|---|---|"]
    for name, mine, theirs, ratio, goal in rows:
        lines.append(f"| {name} | {1e6 * mine:.2f} | {1e6 * theirs:.1f} | {ratio:.3f} | {goal} |")
    print("\n".join(lines))
    if options.write:
        page = pathlib.Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", HERE)) / "docs/benchmarks.md"
        page.write_text(with_section(page.read_text(encoding="utf-8"), "mesh", "\n".join(lines)), encoding="utf-8")


if __name__ == "__main__":
    main()
