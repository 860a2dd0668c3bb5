"""Weft beside JAX, PyTorch as it runs line by line, and torch.compile, on the programs of bench/torch_programs.py.

    ./bazelw run //bench:beside_torch                      # needs torch in the environment
    ./bazelw run //bench:beside_torch -- --write           # and put the table into docs/benchmarks.md
    ./bazelw run //bench:beside_torch -- LSTM convolution  # programs whose name has one of these

Every program, and its gradient where it has one, is computed by all of them first and compared. Then they are measured
in turns, in one process, each with its threads awake; a ratio is the median of the ratios of the turns.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
import torch
import torch._dynamo
import torch.nn.functional as F
from figures import HERE, measured_on, with_section
from torch_programs import Program, all_programs

LIBRARIES = ("Weft", "JAX", "PyTorch", "torch.compile")
SECONDS = 3.0  # that a program is measured for, all libraries together
PAUSE = 0.03  # seconds before each turn, for threads of the others that still wait for work with their CPUs,
WARM = 0.02  # and those that calls are made for before they are measured, and then while they are
TURNS = (5, 60)  # at least, at most


def of_jax_names(name: str, program: Program, gradient: bool):
    if name == "Weft":
        import weft as lib
        import weft.numpy as np_
    else:
        import jax as lib
        import jax.numpy as np_
        import jax.scipy.linalg
        import jax.scipy.special
    f = program.shared(lib, np_)
    run = lib.jit(lib.grad(lambda *x: (f(*x) ** 3).sum(), argnums=program.gradient) if gradient else f)
    operands = [np_.asarray(a) for a in program.operands]
    return lambda: lib.block_until_ready(run(*operands))


def of_torch(program: Program, gradient: bool, compiled: bool):
    f = program.torch(torch, F)
    operands = [torch.from_numpy(a.copy()) for a in program.operands]
    if compiled:
        torch._dynamo.reset()
        f = torch.compile(f, dynamic=False)
    if not gradient:

        def run():
            with torch.no_grad():
                return f(*operands)

        return run
    leaves = [operands[i].requires_grad_() for i in program.gradient]
    return lambda: torch.autograd.grad((f(*operands) ** 3).sum(), leaves)


def as_arrays(result) -> list[np.ndarray]:
    parts = result if isinstance(result, (tuple, list)) else [result]
    return [p.detach().numpy() if isinstance(p, torch.Tensor) else np.asarray(p) for p in parts]


def check(program: Program, what: str, results: dict[str, list[np.ndarray]]) -> None:
    for name, arrays in results.items():
        for a, b in zip(arrays, results["PyTorch"], strict=True):
            worst = np.abs(a.astype("float64") - b).max() / (np.abs(b).max() + 1e-30)
            if not worst <= program.tolerance:
                raise SystemExit(f"{program.name}, {what}: {name} and PyTorch are {worst:.1e} apart")


def repeated(call, seconds: float) -> float:
    """Seconds of each of the calls that are begun within so many."""
    begin, count, passed = time.perf_counter(), 0, 0.0
    while passed < seconds:
        call()
        count += 1
        passed = time.perf_counter() - begin
    return passed / count


def measured(calls: dict) -> dict[str, np.ndarray]:
    """Seconds of each turn."""
    for call in calls.values():
        call()
    start = time.perf_counter()
    times: dict[str, list[float]] = {name: [] for name in calls}
    while len(times["Weft"]) < TURNS[1] and (len(times["Weft"]) < TURNS[0] or time.perf_counter() - start < SECONDS):
        for name, call in calls.items():
            # PyTorch's threads wait by spinning, beside whoever is next; and on a virtual machine processors that sleep
            # take as long as a short program to wake up.
            time.sleep(PAUSE)
            repeated(call, WARM)
            times[name].append(repeated(call, WARM))
    return {name: np.array(t) for name, t in times.items()}


def row(program: Program, gradient: bool):
    calls = {name: of_jax_names(name, program, gradient) for name in LIBRARIES[:2]}
    calls |= {name: of_torch(program, gradient, name != "PyTorch") for name in LIBRARIES[2:]}
    try:
        calls["torch.compile"]()
    except (torch._dynamo.exc.BackendCompilerFailed, TypeError):  # not compiled, or to code that fails: an empty cell
        del calls["torch.compile"]
    what = "gradient" if gradient else "value"
    check(program, what, {name: as_arrays(call()) for name, call in calls.items()})
    times = measured(calls)
    ratios = {name: float(np.median(times["Weft"] / times[name])) for name in LIBRARIES[1:] if name in times}
    best = max(ratios, key=lambda name: ratios[name])
    text = f"| {program.name}, {what} | {np.median(times['Weft']) * 1e3:.3g} ms |"
    for name in LIBRARIES[1:]:
        mark = "**" if name == best else ""
        text += f" {mark}{ratios[name]:.2f}{mark} |" if name in ratios else " |"
    return text, ratios, ratios[best]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    torch.set_num_threads(2)
    lines = ["| program | Weft | Weft / JAX | Weft / PyTorch | Weft / torch.compile |", "|---|---|---|---|---|"]
    ratios: list[dict[str, float]] = []
    to_best: list[float] = []
    for program in all_programs():
        if args.names and not any(name in program.name for name in args.names):
            continue
        for gradient in (False, True) if program.gradient else (False,):
            line, of_row, best = row(program, gradient)
            print(line, flush=True)
            lines.append(line)
            ratios.append(of_row)
            to_best.append(best)
    mean = lambda x: float(np.exp(np.mean(np.log(x))))
    lines.append(
        "| **geometric mean** | | "
        + " | ".join(f"{mean([r[name] for r in ratios if name in r]):.2f}" for name in LIBRARIES[1:])
        + " |"
    )
    print(lines[-1])
    above = sum(b > 1.05 for b in to_best)
    words = f"{len(to_best)} rows; beside the best of the three (bold): {mean(to_best):.2f}, {above} above 1.05."
    print(words)
    if args.write:
        page = HERE.parent / "docs" / "benchmarks.md"
        page.write_text(with_section(page.read_text(), "torch", measured_on() + "\n".join([*lines, "", words])))


if __name__ == "__main__":
    sys.exit(main())
