"""Unstable formulas as people write them (S1-21): the rule that makes each stable, and the largest error before and
after, against mpmath, in units in the last place of float32. The gradient is right, too.

./bazelw run //examples:s1_21_stability
"""

import mpmath
import numpy as np

import weft
import weft.numpy as wnp

mpmath.mp.dps = 60
exp, log, sqrt = mpmath.exp, mpmath.log, mpmath.sqrt

# What is written, for Weft and for mpmath; points; the rule.
FORMULAS = {
    "log(1 + x)": (lambda x: wnp.log(1 + x), lambda x: log(1 + x), (1e-10, 1e-3, 2.0), "log1p"),
    "exp(x) - 1": (lambda x: wnp.exp(x) - 1, lambda x: exp(x) - 1, (1e-10, -1e-4, 3.0), "expm1"),
    "log(1 + exp(x))": (lambda x: wnp.log(1 + wnp.exp(x)), lambda x: log(1 + exp(x)), (-30.0, 0.5, 100.0), "softplus"),
    "1 / (1 + exp(-x))": (lambda x: 1 / (1 + wnp.exp(-x)), lambda x: 1 / (1 + exp(-x)), (-80.0, 1.0, 50.0), "sigmoid"),
    "1 - sigmoid(x)": (
        lambda x: 1 - weft.nn.sigmoid(x),
        lambda x: 1 - 1 / (1 + exp(-x)),
        (20.0, 40.0, -3.0),
        "sigmoid-complement",
    ),
    "log(sigmoid(x))": (
        lambda x: wnp.log(weft.nn.sigmoid(x)),
        lambda x: -log(1 + exp(-x)),
        (-200.0, 1.0, 30.0),
        "log-sigmoid",
    ),
    "log(1 - exp(x))": (lambda x: wnp.log(1 - wnp.exp(x)), lambda x: log(1 - exp(x)), (-1e-8, -1.0, -40.0), "log1mexp"),
    "log(x + sqrt(x*x + 1))": (
        lambda x: wnp.log(x + wnp.sqrt(x * x + 1)),
        lambda x: mpmath.asinh(x),
        (1e-6, -3.0, -1e4),
        "log-sqrt-square-plus-one",
    ),
    "sqrt(x + 1) - sqrt(x)": (
        lambda x: wnp.sqrt(x + 1) - wnp.sqrt(x),
        lambda x: sqrt(x + 1) - sqrt(x),
        (1e8, 1e3, 0.5),
        "sqrt-difference",
    ),
    "log(erfc(x))": (
        lambda x: wnp.log(weft.scipy.special.erfc(x)),
        lambda x: log(mpmath.erfc(x)),
        (30.0, 3.0, -1.0),
        "log-erfc",
    ),
}


def units(value: float, exact) -> float:
    if not np.isfinite(value):
        return float("inf")
    return float(abs(mpmath.mpf(value) - exact) / mpmath.mpf(float(np.spacing(np.float32(abs(float(exact)))))))


def main() -> None:
    print(f"{'formula':26}{'rule':28}{'before':>12}{'after':>8}{'gradient':>10}")
    for name, (f, exactly, points, rule) in FORMULAS.items():
        stable, written = weft.jit(f), weft.jit(f, optimize="none")
        slope = weft.jit(weft.grad(f))
        before = after = of_slope = 0.0
        for p in map(np.float32, points):
            exact = exactly(mpmath.mpf(float(p)))
            before = max(before, units(float(written(p)), exact))
            after = max(after, units(float(stable(p)), exact))
            of_slope = max(
                of_slope, units(float(slope(p)), mpmath.diff(exactly, mpmath.mpf(float(p)), h=mpmath.mpf(10) ** -25))
            )
        used = {r for r, _ in stable.explain("rules")[0]["rules"]}
        print(f"{name:26}{rule:28}{before:12.3g}{after:8.2g}{of_slope:10.2g}")
        assert rule in used, (name, used)
        assert after <= 8 and of_slope <= 16 and before >= after, name


if __name__ == "__main__":
    main()
