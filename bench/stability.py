"""How many formulas, as people write them, are right: of Weft with its rules and without, and of JAX.

    ./bazelw run -c opt //bench:stability              # the table
    ./bazelw run -c opt //bench:stability -- --wrong    # and every point that is wrong with the rules
    ./bazelw run -c opt //bench:stability -- --alone    # without other libraries

PyTensor, which has rules of the same purpose, is counted where it is installed.

Values, gradients and second derivatives in f32, jitted. Right is what differs from the exact value (by mpmath) by no
more than 8 units in the last place, or than a change of x by 4 units explains. A formula counts where all of its points
are right.
"""

from __future__ import annotations

import collections
import contextlib
import math
import sys
import types
import warnings
from collections.abc import Callable

import exact_series
import mpmath
import numpy as np
from unstable_programs import PROGRAMS, P, V

import weft
import weft.numpy as wnp
import weft.scipy.special

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    jax = None
try:
    import pytensor
    import pytensor.gradient
    import pytensor.tensor
except ImportError:
    pytensor = None

mpmath.mp.dps = 400
ORDERS = ("value", "gradient", "second")
EXACT = types.SimpleNamespace(
    **{name: getattr(exact_series, name) for name in dir(exact_series)},
    V=exact_series.Vector(V),
    P=exact_series.Vector(P),
)


NAMES = [
    "exp",
    "expm1",
    "log",
    "log1p",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "arctan",
    "absolute",
    "sum",
    "mean",
    "prod",
    "max",
    "maximum",
]


def module_of(numpy, special) -> types.SimpleNamespace:
    return types.SimpleNamespace(
        **{name: getattr(numpy, name) for name in NAMES},
        erf=special.erf,
        erfc=special.erfc,
        gammaln=special.gammaln,
        where=lambda condition, x, y: numpy.where(condition, x(), y()),
        V=numpy.asarray(np.array(V, np.float32)),
        P=numpy.asarray(np.array(P, np.float32)),
    )


def digit(x) -> float:
    """A unit in the last place of f32."""
    return math.ldexp(1.0, max(math.frexp(float(x))[1], -125) - 24) if x else math.ldexp(1.0, -149)


def truths(formula, x: np.float32) -> list[tuple[float, float]] | None:
    """(exact, how far a result may be off) of each order; None where there is no value."""
    exact = exact_series.at(lambda t: formula(EXACT, t), float(x))
    if exact is None:
        return None
    step = 4 * digit(abs(x))
    near = [exact_series.at(lambda t: formula(EXACT, t), float(x) + s) for s in (-step, step, -step / 2, step / 2)]
    found = []
    for order in ("value", "first", "second"):
        value = getattr(exact, order)
        moved = max((abs(getattr(n, order) - value) for n in near if n is not None), default=0)
        found.append((value, 8 * digit(abs(value)) + moved))
    return found


def derivatives(grad, jit, formula, module, **options) -> list:
    def f(x):
        return formula(module, x)

    return [jit(f, **options), jit(grad(f), **options), jit(grad(grad(f)), **options)]


def pytensor_module() -> types.SimpleNamespace:
    """Its functions under NumPy's names."""
    pytensor.config.floatX = "float32"  # what Python's numbers become
    tensor = pytensor.tensor
    renamed = {"absolute": "abs"}
    return module_of(
        types.SimpleNamespace(
            asarray=lambda a: tensor.constant(a),
            where=lambda condition, x, y: tensor.switch(condition, x, y),
            **{n: getattr(tensor, renamed.get(n, n)) for n in NAMES},
        ),
        types.SimpleNamespace(erf=tensor.erf, erfc=tensor.erfc, gammaln=tensor.gammaln),
    )


def pytensor_derivatives(formula, module) -> list:
    """With FAST_RUN's rewrites, all together. What it refuses or has no derivative of is wrong."""
    x = pytensor.tensor.fscalar("x")
    outputs: list = []
    refusals = (TypeError, pytensor.gradient.NullTypeGradError, pytensor.gradient.DisconnectedInputError)
    with contextlib.suppress(*refusals):
        outputs.append(formula(module, x))
        for _ in ORDERS[1:]:
            outputs.append(pytensor.grad(outputs[-1], x))
    together = pytensor.function([x], outputs, mode="FAST_RUN", on_unused_input="ignore")
    known: dict = {}

    def result(order: int):
        def at(number: np.float32) -> float:
            if number not in known:
                known[number] = together(number)
            return float(known[number][order]) if order < len(outputs) else math.nan

        return at

    return [result(order) for order in range(3)]


def is_right(got: float, exact, within) -> bool:
    if abs(exact) > np.finfo(np.float32).max:
        return True  # no number of f32
    return math.isfinite(got) and abs(mpmath.mpf(got) - exact) <= within


def count(which: str, functions_of: Callable, show: bool = False) -> dict:
    """kind -> order -> how many formulas are right, and how many are not finite; `which` names the library.
    functions_of(formula): the value and its derivatives, compiled."""
    counts: dict = collections.defaultdict(lambda: collections.Counter())
    for kind, programs in PROGRAMS.items():
        for name, (formula, points) in programs.items():
            wrong, infinite = set(), set()
            functions = functions_of(formula)
            for x in map(np.float32, points):
                known = truths(formula, x)
                if known is None:
                    raise ValueError(f"{kind}, {name}: no exact value at {x}")
                for order, function, (exact, within) in zip(ORDERS, functions, known):
                    got = float(function(x))
                    if is_right(got, exact, within):
                        continue
                    wrong.add(order)
                    if not math.isfinite(got):
                        infinite.add(order)
                    if show:
                        print(f"{which}: {kind}, {name}, {order} at {x}: {got:.9g}, exact {mpmath.nstr(exact, 9)}")
            for order in ORDERS:
                counts[kind]["all"] += order == "value"
                counts[kind][order] += order not in wrong
                counts[kind][order + " infinite"] += order in infinite
    return counts


def print_table(found: dict[str, dict]) -> None:
    total: dict = {
        which: sum((collections.Counter(c) for c in counts.values()), collections.Counter())
        for which, counts in found.items()
    }
    width = max(len(kind) for kind in PROGRAMS)
    print("| kind | formulas | " + " | ".join(found) + " |")
    print("|---" * (2 + len(found)) + "|")
    for kind in [*PROGRAMS, "all"]:
        rows = {which: total[which] if kind == "all" else counts[kind] for which, counts in found.items()}
        number = next(iter(rows.values()))["all"]
        cells = [", ".join(str(row[order]) for order in ORDERS) for row in rows.values()]
        print(f"| {kind:{width}} | {number} | " + " | ".join(cells) + " |")
    cells = [", ".join(str(total[which][order + " infinite"]) for order in ORDERS) for which in found]
    print(f"| {'NaN or infinite where the exact value is not':{width}} | | " + " | ".join(cells) + " |")


def main() -> None:
    warnings.simplefilter("ignore")
    show = "--wrong" in sys.argv
    ours = module_of(wnp, weft.scipy.special)
    found = {
        "Weft": count("Weft", lambda f: derivatives(weft.grad, weft.jit, f, ours), show),
    }
    for licence in ("rounding", "signed-zero"):
        found[f"Weft, licence={licence}"] = count(
            licence, lambda f, licence=licence: derivatives(weft.grad, weft.jit, f, ours, licence=licence)
        )
    if jax is not None and "--alone" not in sys.argv:
        theirs = module_of(jnp, jax.scipy.special)
        found["JAX"] = count("JAX", lambda f: derivatives(jax.grad, jax.jit, f, theirs))
    if pytensor is not None and "--alone" not in sys.argv:
        symbolic = pytensor_module()
        found["PyTensor, FAST_RUN"] = count("PyTensor", lambda f: pytensor_derivatives(f, symbolic))
    print("Right of value, gradient, second derivative\n")
    print_table(found)


if __name__ == "__main__":
    main()
