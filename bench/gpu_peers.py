"""The large programs of the GPU selftest beside PyTorch (eager and compiled) and JAX, on a machine with a card.

    python3 bench/gpu_peers.py --weft-run=./weft-run --rounds=5

Needs neither Bazel nor the package `weft`: `weft-run` and `selftest.zip` beside it (./bazelw run
//tests/gpu:pack_selftest), and whichever of PyTorch and JAX is installed there. Rounds of all frameworks alternate; a
time is the median of each round's, a ratio the median of the rounds' ratios. Arrays are those of
tests/gpu/selftest_cases.py: 256 MiB each. Products of f32 are computed in f32 by all, not in TF32.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

ROWS, COLUMNS = 16384, 4096
ROUNDS_OF = 10  # runs between two readings of the clock

Times = dict[str, float]  # milliseconds by the program's name


def programs(np_, norm: Callable, softmax: Callable, product: Callable) -> dict[str, Callable]:
    """As users of PyTorch and JAX write them, with the library's own softmax and layer normalisation."""
    gelu = lambda x, y: 0.5 * x * (1 + np_.tanh(0.7978845608 * (x + 0.044715 * x * x * x))) + y
    return {
        "copy": lambda x: x + 0,
        "large_gelu_float32": gelu,
        "large_gelu_bfloat16": gelu,
        "large_softmax_float32": softmax,
        "large_softmax_bfloat16": softmax,
        "large_layer_norm": norm,
        "large_row_sums": lambda x: x.sum(1),
        "large_column_sums": lambda x: x.sum(0),
        "large_product_float32": product,
        "large_product_bfloat16": product,
    }


def shapes(name: str) -> list[tuple[int, ...]]:
    rows = 2 * ROWS if name.endswith("bfloat16") else ROWS
    if "product" in name:
        return [(COLUMNS, COLUMNS), (COLUMNS, COLUMNS), (COLUMNS,)]
    if "gelu" in name:
        return [(rows, COLUMNS)] * 2
    if "layer_norm" in name:
        return [(rows, COLUMNS), (COLUMNS,), (COLUMNS,)]
    return [(rows, COLUMNS)]


def torch_times(compiled: bool) -> Times:
    import torch
    import torch.nn.functional as F

    norm = lambda x, scale, bias: F.layer_norm(x, (COLUMNS,), scale, bias, 1e-5)
    softmax = lambda x: F.softmax(x, -1)
    product = lambda x, y, b: torch.relu(torch.addmm(b, x, y))
    times = {}
    for name, program in programs(torch, norm, softmax, product).items():
        dtype = torch.bfloat16 if name.endswith("bfloat16") else torch.float32
        arguments = [torch.randn(s, device="cuda", dtype=dtype) for s in shapes(name)]
        if name == "copy":
            out = torch.empty_like(arguments[0])
            f = lambda x, out=out: out.copy_(x)
        else:
            f = torch.compile(program) if compiled else program
        for _ in range(3):
            f(*arguments)
        samples = []
        for _ in range(15):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(ROUNDS_OF):
                f(*arguments)
            end.record()
            end.synchronize()
            samples.append(start.elapsed_time(end) / ROUNDS_OF)
        times[name] = statistics.median(samples)
        del arguments
    return times


def jax_times() -> Times:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_default_matmul_precision", "highest")

    def norm(x, scale, bias):
        centred = x - x.mean(-1, keepdims=True)
        return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + bias

    softmax = lambda x: jax.nn.softmax(x, -1)
    product = lambda x, y, b: jax.nn.relu(x @ y + b)
    times = {}
    for name, program in programs(jnp, norm, softmax, product).items():
        dtype = jnp.bfloat16 if name.endswith("bfloat16") else jnp.float32
        arguments = [jax.random.normal(jax.random.key(i), s, dtype) for i, s in enumerate(shapes(name))]
        f = jax.jit(jnp.copy if name == "copy" else program)
        for _ in range(3):
            jax.block_until_ready(f(*arguments))
        samples = []
        for _ in range(15):
            start = time.perf_counter()
            for _ in range(ROUNDS_OF):
                out = f(*arguments)
            jax.block_until_ready(out)
            samples.append((time.perf_counter() - start) * 1e3 / ROUNDS_OF)
        times[name] = statistics.median(samples)
        del arguments, out
    return times


def weft_times(weft_run: str) -> Times:
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        subprocess.run([weft_run, "selftest", "--gpu", f"--json={report}"], check=False, stdout=subprocess.DEVNULL)
        with open(report) as text:
            cases = json.load(text)["cases"]
    return {c["name"]: c["milliseconds"] for c in cases if "milliseconds" in c}


PEERS: dict[str, Callable[[], Times]] = {
    "torch": lambda: torch_times(False),
    "torch.compile": lambda: torch_times(True),
    "jax": jax_times,
}


def in_new_process(peer: str) -> Times:
    """Each framework alone on the card: they keep memory for themselves."""
    done = subprocess.run([sys.executable, __file__, f"--one={peer}"], check=False, text=True, capture_output=True)
    if done.returncode:
        print(f"{peer} is left out: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return {}
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weft-run", default="./weft-run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one", choices=PEERS, help=argparse.SUPPRESS)
    parser.add_argument("--json", help="a file for all times")
    args = parser.parse_args()
    if args.one:
        print(json.dumps(PEERS[args.one]()))
        return
    rounds: list[dict[str, Times]] = []
    for _ in range(args.rounds):
        rounds.append({"weft": weft_times(args.weft_run)} | {peer: in_new_process(peer) for peer in PEERS})
        if args.json:
            with open(args.json, "w") as out:
                json.dump(rounds, out)
    print("| program | Weft, ms | " + " | ".join(f"{p}, ms (Weft takes)" for p in PEERS) + " |")
    print("|---|---|" + "---|" * len(PEERS))
    for name, first in rounds[0]["weft"].items():
        row = [name, f"{statistics.median(r['weft'].get(name, first) for r in rounds):.4f}"]
        for peer in PEERS:
            pairs = [(r["weft"][name], r[peer][name]) for r in rounds if name in r[peer] and name in r["weft"]]
            if not pairs:
                row.append("-")
                continue
            ratio = statistics.median(ours / theirs for ours, theirs in pairs)
            row.append(f"{statistics.median(theirs for _, theirs in pairs):.4f} ({ratio:.2f})")
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
