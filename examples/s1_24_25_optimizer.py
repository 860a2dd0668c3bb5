"""The optimiser on and off (S1-24), and naive code beside the form of somebody who knows better (S1-25): times of one
program each, what it computes by the cost model, and how wrong it is. Draws a figure.

./bazelw run //examples:s1_24_25_optimizer
"""

import pathlib
import statistics
import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import mpmath
import numpy as np

import weft
import weft.numpy as wnp

RNG = np.random.default_rng(0)


def normal(*shape):
    return wnp.array(RNG.standard_normal(shape).astype(np.float32))


A, B, V, X = normal(400, 400), normal(400, 400), normal(400), normal(4096, 64)

# What it computes: naive, by somebody who knows better, operands.
PROGRAMS = {
    "(A @ B) @ v": (lambda a, b, v: (a @ b) @ v, lambda a, b, v: a @ (b @ v), (A, B, V)),
    "trace(A @ B)": (lambda a, b: wnp.trace(a @ b), lambda a, b: wnp.sum(a * b.T), (A, B)),
    "(A @ B)[3]": (lambda a, b: (a @ b)[3], lambda a, b: a[3] @ b, (A, B)),
    "inv(A) @ v": (lambda a, v: wnp.linalg.inv(a) @ v, wnp.linalg.solve, (A + 20 * wnp.eye(400), V)),
    "x ** 0.5": (lambda x: x**0.5, wnp.sqrt, (wnp.abs(X),)),
    "log(1 + exp(x))": (lambda x: wnp.log(1 + wnp.exp(x)), weft.nn.softplus, (X * 40,)),
    "sort(x)[-1]": (lambda x: wnp.sort(x)[-1], wnp.max, (X.reshape(-1),)),
}


def seconds(run) -> float:
    run()
    times = []
    for _ in range(9):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def measured(f, operands, **options):
    jitted = weft.jit(f, **options)
    return seconds(lambda: weft.block_until_ready(jitted(*operands))), jitted.lower(*operands).cost_analysis()["flops"]


def main() -> None:
    print(f"{'program':18}{'not optimised':>16}{'optimised':>12}{'by hand':>10}   operations by the cost model")
    rows = {}
    for name, (naive, expert, operands) in PROGRAMS.items():
        off, work_off = measured(naive, operands, optimize="none")
        (on, work_on), (hand, work_hand) = measured(naive, operands), measured(expert, operands)
        rows[name] = off, on, hand
        print(f"{name:18}{1e6 * off:13.0f} µs{1e6 * on:9.0f} µs{1e6 * hand:7.0f} µs", end="   ")
        print(f"{work_off:.2g} {work_on:.2g} {work_hand:.2g}")
        np.testing.assert_allclose(weft.jit(naive)(*operands), expert(*operands), rtol=1e-2, atol=1e-2)
        assert work_on <= 2 * work_hand + 100, name  # naive code does about what that of an expert does

    wrong = {}
    for what, f in {
        "optimised": weft.jit(PROGRAMS["log(1 + exp(x))"][0]),
        "not optimised": weft.jit(PROGRAMS["log(1 + exp(x))"][0], optimize="none"),
    }.items():
        points = [np.float32(p) for p in (-20.0, -5.0, 5.0, 100.0)]
        exact = [float(mpmath.log1p(mpmath.exp(mpmath.mpf(float(p))))) for p in points]
        wrong[what] = max(abs(float(f(p)) - e) / e for p, e in zip(points, exact))
        print(f"log(1 + exp(x)), {what}: wrong by {wrong[what]:.1e} of the value")
    assert wrong["optimised"] < 1e-6 < wrong["not optimised"]

    figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
    for k, what in enumerate(("not optimised", "optimised", "written by hand")):
        axes.barh([i + 0.25 * (1 - k) for i in range(len(rows))], [1e6 * t[k] for t in rows.values()], 0.25, label=what)
    axes.set(xscale="log", xlabel="µs", yticks=range(len(rows)), yticklabels=list(rows))
    axes.legend()
    path = pathlib.Path("optimizer.png").absolute()
    figure.savefig(path)
    print("figure:", path)


if __name__ == "__main__":
    main()
