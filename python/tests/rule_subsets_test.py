"""Every formula that people write unstably × subsets of the rules that apply to it: whatever is left out, a result is
no worse than with all of the rules or with none, and infinite only where one of these is."""

from __future__ import annotations

import math
import random
import types

import exact_series
import mpmath
import numpy as np
import pytest
from unstable_programs import PROGRAMS, P, V

import weft
import weft.numpy as wnp
import weft.scipy.special as special
from weft import _weft

mpmath.mp.dps = 400
MODULE = types.SimpleNamespace(
    **{name: getattr(wnp, name) for name in dir(wnp) if not name.startswith("_")},
    erf=special.erf,
    erfc=special.erfc,
    gammaln=special.gammaln,
    V=wnp.asarray(V, "float32"),
    P=wnp.asarray(P, "float32"),
)
MODULE.where = lambda condition, x, y: wnp.where(condition, x(), y())
EXACT = types.SimpleNamespace(
    **{name: getattr(exact_series, name) for name in dir(exact_series)},
    V=exact_series.Vector(V),
    P=exact_series.Vector(P),
)
CASES = [(kind, name) for kind, programs in PROGRAMS.items() for name in programs]
ORDERS = {"value": lambda f: f, "first": weft.grad}


def error(got: float, exact, explained) -> float:
    """In units of the exact value's last place in f32, beyond what a change of x by 4 of its own explains."""
    if not math.isfinite(got):
        return math.inf
    unit = max(abs(exact), mpmath.mpf(2) ** -126) * mpmath.mpf(2) ** -23
    return float(max(0, abs(mpmath.mpf(got) - exact) - explained) / unit)


def rules_of(ir) -> list[str]:
    """The rules that change the program, and those that do where these are disabled."""
    rules: set[str] = set()
    while more := {rule for _, rule, *_ in _weft.run_passes(ir._fn, ["optimize"], rules)[1]} - rules:
        rules |= more
    return sorted(rules)


@pytest.mark.parametrize(("kind", "name"), CASES, ids=[f"{kind}-{name}" for kind, name in CASES])
def test_no_subset_of_rules_is_worse_than_all_and_none(kind, name):
    formula, points = PROGRAMS[kind][name]
    choose = random.Random(f"{kind} {name}")
    for order, derivative in ORDERS.items():
        function = derivative(lambda x: formula(MODULE, x))
        ir = weft.make_ir(function)(np.float32(points[0]))
        rules = rules_of(ir) + ["widen"]
        subsets = [[], rules, *([rule for rule in rules if choose.random() < 0.5] for _ in range(3))]
        compiled = [weft.jit(function, disable=disabled) for disabled in subsets]
        for x in map(np.float32, points):
            step = 4 * float(np.spacing(np.abs(x)))
            exact, *near = (exact_series.at(lambda t: formula(EXACT, t), float(x) + s) for s in (0, step, -step))
            truth = getattr(exact, order)
            if abs(truth) > np.finfo(np.float32).max:
                continue
            explained = max((abs(getattr(n, order) - truth) for n in near if n is not None), default=0)
            every, none, *some = (error(float(f(x)), truth, explained) for f in compiled)
            worst = max(every, none)
            for disabled, found in zip(subsets[2:], some):
                assert found <= 4 * worst + 64, (
                    f"{order} at {x} without {disabled}: {found} ({every} with all, {none} without any)"
                )
