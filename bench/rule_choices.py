"""Would another choice among the rules be better than their order? The upper bound of what a search could win.

    ./bazelw run -c opt //bench:rule_choices

A search over rewrites (equality saturation, say) chooses among what the same rules can do. Leaving rules out changes
which of them apply, and in which order: for each program, every rule that applies to it is left out by itself, every
pair of them, and random halves. Counted are the formulas of bench/unstable_programs.py that are right with some of
these choices and wrong with all rules, and the programs of bench/naive_programs.py whose optimized form then costs
less: arithmetic at 50 a nanosecond, bytes at 10.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Callable, Iterator

import naive_programs
import numpy as np
import stability
import unstable_programs
from naive import operand

import weft
import weft.numpy as wnp
import weft.scipy.special
from weft import _weft

MOST = 24  # choices of each program, besides leaving out one rule


def rules_of(function: Callable, *arguments) -> list[str]:
    """Those that apply."""
    ir = weft.make_ir(function)(*arguments)
    return sorted({rule for _, rule, *_ in _weft.run_passes(ir._fn, ["optimize"])[1]})


def choices(rules: list[str], seed: str) -> Iterator[list[str]]:
    """What is left out."""
    choose = random.Random(seed)
    yield from ([rule] for rule in rules)
    pairs = [list(pair) for pair in itertools.combinations(rules, 2)]
    halves = [[rule for rule in rules if choose.random() < 0.5] for _ in range(MOST // 2)]
    yield from choose.sample(pairs, min(len(pairs), MOST // 2))
    yield from halves


def right(function: Callable, points, truths, order: int, **options) -> bool:
    compiled = weft.jit(function, **options)
    return all(
        stability.is_right(float(compiled(x)), exact[order][0], exact[order][1]) for x, exact in zip(points, truths)
    )


def formulas() -> None:
    module = stability.module_of(wnp, weft.scipy.special)
    tried = 0
    all_rules, gained = [0, 0, 0], [0, 0, 0]
    names = []
    for kind, programs in unstable_programs.PROGRAMS.items():
        for name, (formula, numbers) in programs.items():
            points = [np.float32(x) for x in numbers]
            truths = [stability.truths(formula, x) for x in points]
            function: Callable = lambda x, formula=formula: formula(module, x)
            for order in range(3):
                if right(function, points, truths, order):
                    all_rules[order] += 1
                else:
                    for left_out in choices(rules_of(function, points[0]), f"{kind} {name}"):
                        tried += 1
                        if right(function, points, truths, order, disable=left_out):
                            gained[order] += 1
                            names.append(f"{kind}, {name}, {stability.ORDERS[order]}: without {', '.join(left_out)}")
                            break
                function = weft.grad(function)
    print(f"right with all rules: {all_rules}; also right with a choice of them: {gained} ({tried} choices tried)")
    print(*names, sep="\n")


def cost(function: Callable, arguments, **options) -> float:
    """Nanoseconds by the cost model."""
    analysis = weft.jit(function, **options).lower(*arguments).cost_analysis()
    return analysis["flops"] / 50 + analysis["bytes accessed"] / 10


def naive() -> None:
    rng = np.random.default_rng(0)
    cheaper, tried, count = [], 0, 0
    for kind, programs in naive_programs.PROGRAMS.items():
        for name, operands, program, _ in programs:
            arguments = [operand(shape, rng) for shape in operands]
            function = lambda *x, program=program: program(wnp, weft, *x)
            count += 1
            best = whole = cost(function, arguments)
            how: list[str] = []
            for left_out in choices(rules_of(function, *arguments), f"{kind} {name}"):
                tried += 1
                other = cost(function, arguments, disable=left_out)
                if other < best:
                    best, how = other, left_out
            if best < 0.98 * whole:
                cheaper.append(f"{kind}, {name}: {best / whole:.2f} without {', '.join(how)}")
    print(f"{len(cheaper)} of {count} programs cost less with a choice of rules ({tried} choices tried)")
    print(*cheaper, sep="\n")


if __name__ == "__main__":
    if "--costs" not in sys.argv:
        formulas()
    naive()
