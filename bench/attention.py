"""Attention as people write it, and its gradient, beside JAX's and, where it is installed, PyTorch's fused kernel.

    ./bazelw run //bench:attention
    ./bazelw run //bench:attention -- --write      # and put the table into docs/benchmarks.md

softmax(q k^T / 8) v of 8 heads of 64 features, in f32. Times are in turns, medians; memory is what the process grew by
at its peak, a new process for each number, beside what the array of all scores takes.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
from functools import partial

import numpy as np
from figures import HERE, measured_on, with_section
from gradients import interleaved

HEADS, FEATURES = 8, 64
TOKENS = (512, 1024, 2048, 4096)
CAUSAL = (False, True)


def operands(tokens: int):
    rng = np.random.default_rng(0)
    return [rng.standard_normal((HEADS, tokens, FEATURES)).astype(np.float32) for _ in range(3)]


def attention(np_, softmax, causal: bool):
    def f(q, k, v):
        scores = np_.einsum("hqd,hkd->hqk", q, k) * 0.125
        if causal:
            scores = np_.where(np_.tril(np_.ones(scores.shape[-2:], bool)), scores, -1e30)
        return np_.einsum("hqk,hkd->hqd", softmax(scores), v)

    return f


def of_library(name: str, causal: bool, gradient: bool):
    """The function of this library, compiled, and what makes its operands of NumPy's arrays."""
    if name == "torch":
        import torch

        def forward(*x):
            with torch.no_grad():
                return torch.nn.functional.scaled_dot_product_attention(*x, is_causal=causal)

        def both(*x):
            leaves = [a.detach().requires_grad_() for a in x]
            y = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=causal)
            return torch.autograd.grad((y * y).sum(), leaves)

        return both if gradient else forward, lambda a: torch.from_numpy(a)[None]
    if name == "weft":
        import weft as lib
        import weft.numpy as np_
    else:
        import jax as lib
        import jax.numpy as np_
    f = attention(np_, lib.nn.softmax, causal)
    run = lib.jit(lib.grad(lambda *x: (f(*x) ** 2).sum(), argnums=(0, 1, 2)) if gradient else f)
    return lambda *x: lib.block_until_ready(run(*x)), np_.asarray


def grown(name: str, tokens: int, causal: bool, gradient: bool) -> int:
    """Bytes, in a new process."""
    told = json.dumps([name, tokens, causal, gradient])
    out = subprocess.run([sys.executable, __file__, "--grown", told], capture_output=True, text=True, check=True)
    return int(out.stdout.split()[-1])


def peak() -> int:
    """Bytes that were resident at most."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024


def measure_grown(name: str, tokens: int, causal: bool, gradient: bool) -> None:
    run, array = of_library(name, causal, gradient)
    run(*[array(x) for x in operands(16)])  # code and libraries are there
    x = [array(a) for a in operands(tokens)]
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew (proc(5)); a child has its parent's
    before = peak()
    run(*x)
    print(peak() - before)


def libraries() -> list[str]:
    try:
        import torch  # noqa: F401
    except ImportError:
        return ["jax"]
    return ["jax", "torch"]


def rows(tokens=TOKENS):
    for causal in CAUSAL:
        for n in tokens:
            for gradient in (False, True):
                what = f"{'causal' if causal else 'full'}, {n}, {'gradient' if gradient else 'value'}"
                mine, array = of_library("weft", causal, gradient)
                x = [array(a) for a in operands(n)]
                cells = []
                for other in libraries():
                    theirs, their_array = of_library(other, causal, gradient)
                    y = [their_array(a) for a in operands(n)]
                    ours, their_time, ratio = interleaved(partial(mine, *x), partial(theirs, *y), 5)
                    cells += [f"{their_time * 1e3:.3g} ms", f"{ratio:.2f}"]
                scores = HEADS * n * n * 4
                memory = grown("weft", n, causal, gradient) / scores
                theirs_too = grown("jax", n, causal, gradient) / scores
                yield [what, f"{ours * 1e3:.3g} ms", *cells, f"{memory:.2f}", f"{theirs_too:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--tokens", type=int, nargs="*", default=list(TOKENS))
    parser.add_argument("--grown", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.grown:
        measure_grown(*json.loads(args.grown))
        return
    heads = ["attention", "Weft"]
    for other in libraries():
        heads += [{"jax": "JAX", "torch": "PyTorch, fused"}[other], "ratio"]
    heads += ["Weft's memory / scores", "JAX's / scores"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    print("\n".join(lines), flush=True)
    for row in rows(args.tokens):
        lines.append(f"| {' | '.join(row)} |")
        print(lines[-1], flush=True)
    if args.write:
        page = HERE.parent / "docs" / "benchmarks.md"
        page.write_text(with_section(page.read_text(), "attention", measured_on() + "\n".join(lines)))


if __name__ == "__main__":
    main()
