"""Every ordered pair of transforms over every construct: jit, grad, vjp, jvp, linearize, vmap, checkpoint, jet of each
other, over branches, loops, recursion and functions with rules of their own.

Each construct is a function of three numbers to three numbers, and so is each transform of one: grad of a weighted sum,
the pullback of a cotangent, the derivative along a direction, the second derivative along a curve, a difference of two
lanes. So they compose to any depth. The oracle is the same function in plain Python on numbers of 70 digits, and the
transforms' meanings in difference quotients of such numbers: it knows nothing of derivatives.

The table in docs/transforms.md is written by this test:
    WEFT_WRITE_TABLE=1 ./bazelw run //python:transform_matrix_test -- --test_filter=table
Chains of three (a fixed sample of them runs in CI), all of them; or those of some constructs:
    ./bazelw run //python -- python/tests/transform_matrix_test.py 3
    ./bazelw run //python -- python/tests/transform_matrix_test.py 3 scan custom_vjp
"""

import dataclasses
import itertools
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp

import weft
import weft.numpy as wnp

mp.dps = 70
sin, cos, exp = mp.sin, mp.cos, mp.exp

DOCUMENT = Path("docs/transforms.md")
BEGIN, END = "<!-- the table begins -->\n", "<!-- the table ends -->\n"

POINT = [0.61, 0.47, -0.33]
# Two sets of everything, for the outer and the inner transform: no accident makes one look like the other.
DIRECTIONS = [[0.9, -0.4, 0.7], [0.3, 0.8, -0.6], [-0.5, 0.6, 0.4]]
CURVATURES = [[-0.2, 0.5, 0.3], [0.6, -0.1, 0.2], [0.1, 0.4, -0.7]]
WEIGHTS = [[0.7, -0.4, 1.1], [-0.3, 0.9, 0.5], [0.8, 0.2, -0.6]]
SCALE, SHIFT = 0.35, 0.05  # the second lane of vmap is at SCALE * x + SHIFT, where branches and trips differ


def f64(numbers):
    return wnp.array(numbers, dtype="float64")


# --- The transforms, in Weft and in difference quotients --------------------------------------------------------------


def of_vmap(f, k):
    def lanes(x):
        y = weft.vmap(f)(wnp.stack([x, SCALE * x + SHIFT]))
        return y[0] - 0.5 * y[1]

    return lanes


TRANSFORMS: dict[str, Callable] = {
    "jit": lambda f, k: weft.jit(f),
    "grad": lambda f, k: weft.grad(lambda x: (f64(WEIGHTS[k]) * f(x)).sum()),
    "vjp": lambda f, k: lambda x: weft.vjp(f, x)[1](f64(WEIGHTS[k]))[0],
    "jvp": lambda f, k: lambda x: weft.jvp(f, (x,), (f64(DIRECTIONS[k]),))[1],
    "linearize": lambda f, k: lambda x: weft.linearize(f, x)[1](f64(DIRECTIONS[k])),
    "vmap": of_vmap,
    "checkpoint": lambda f, k: weft.checkpoint(f),
    "jet": lambda f, k: lambda x: weft.jet(f, (x,), ((f64(DIRECTIONS[k]), f64(CURVATURES[k])),))[1][1],
}
NAMES = list(TRANSFORMS)
REVERSE, FORWARD = {"grad", "vjp"}, {"jvp", "linearize", "jet"}
STEP = mp.mpf(10) ** -9


def along(x, *terms):
    """x + sum of coefficient * vector."""
    return [xi + sum(c * mp.mpf(v[i]) for c, v in terms) for i, xi in enumerate(x)]


def transposed(f, weights):
    def pullback(x):
        out = []
        for i in range(3):
            unit = [float(i == j) for j in range(3)]
            up, down = f(along(x, (STEP, unit))), f(along(x, (-STEP, unit)))
            out.append(sum(mp.mpf(w) * (u - d) for w, u, d in zip(weights, up, down)) / (2 * STEP))
        return out

    return pullback


def first(f, direction):
    return lambda x: [
        (u - d) / (2 * STEP) for u, d in zip(f(along(x, (STEP, direction))), f(along(x, (-STEP, direction))))
    ]


def second(f, direction, curvature):
    def curve(x):
        bend = (STEP * STEP / 2, curvature)
        parts = f(along(x, (STEP, direction), bend)), f(x), f(along(x, (-STEP, direction), bend))
        return [(u - 2 * m + d) / STEP**2 for u, m, d in zip(*parts)]

    return curve


def two_lanes(f):
    return lambda x: [a - b / 2 for a, b in zip(f(x), f([mp.mpf(SCALE) * xi + mp.mpf(SHIFT) for xi in x]))]


MEANINGS: dict[str, Callable] = {
    "jit": lambda f, k: f,
    "grad": lambda f, k: transposed(f, WEIGHTS[k]),
    "vjp": lambda f, k: transposed(f, WEIGHTS[k]),
    "jvp": lambda f, k: first(f, DIRECTIONS[k]),
    "linearize": lambda f, k: first(f, DIRECTIONS[k]),
    "vmap": lambda f, k: two_lanes(f),
    "checkpoint": lambda f, k: f,
    "jet": lambda f, k: second(f, DIRECTIONS[k], CURVATURES[k]),
}

# --- The constructs, in Weft and in Python ----------------------------------------------------------------------------


@dataclasses.dataclass
class Construct:
    name: str
    weft: Callable
    python: Callable
    # Of a custom_vjp whose rule is no derivative: (x, cotangent) -> cotangent.
    pullback: Callable | None = None


def each(f):
    return lambda x: [f(v) for v in x]


def cond(x):
    return weft.cond(x[0] > 0.3, lambda v: wnp.sin(v) * v[1], lambda v: wnp.exp(v) * v * v[2], x)


def cond_python(x):
    if x[0] > 0.3:
        return [sin(v) * x[1] for v in x]
    return [exp(v) * v * x[2] for v in x]


def switch(x):
    index = (x[0] > 0.2).astype("int32") + (x[0] > 0.4).astype("int32")
    return weft.switch(index, [lambda v: wnp.sin(v), lambda v: v * v.sum(), lambda v: wnp.exp(v * x[1])], x)


def switch_python(x):
    if x[0] > 0.4:
        return [exp(v * x[1]) for v in x]
    return [v * sum(x) for v in x] if x[0] > 0.2 else [sin(v) for v in x]


def while_(x):
    return weft.while_loop(lambda v: (v * v).sum() < 4.0, lambda v: v * 1.4 + 0.3 * wnp.sin(v) * x[1], x)


def while_python(x):
    v = x
    while sum(a * a for a in v) < 4:
        v = [a * mp.mpf(1.4) + mp.mpf(0.3) * sin(a) * x[1] for a in v]
    return v


def fori(x):
    return weft.fori_loop(0, 3, lambda i, v: wnp.sin(v) * (v + i) * x[1], x)


def fori_python(x):
    v = x
    for i in range(3):
        v = [sin(a) * (a + i) * x[1] for a in v]
    return v


def fori_traced(x):
    return weft.fori_loop(0, 1 + (x[0] > 0.3).astype("int32"), lambda i, v: wnp.sin(v) * (v + i), x)


def fori_traced_python(x):
    v = x
    for i in range(2 if x[0] > 0.3 else 1):
        v = [sin(a) * (a + i) for a in v]
    return v


def scan(x):
    return weft.scan(lambda c, v: (wnp.sin(c) * v + x[0], c * v * v), x[2], x)[1]


def scan_python(x):
    c, ys = x[2], []
    for v in x:
        c, y = sin(c) * v + x[0], c * v * v
        ys.append(y)
    return ys


def associative_scan(x):
    combine = lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1])
    return weft.lax.associative_scan(combine, (wnp.sin(x), x * x))[1]


def associative_scan_python(x):
    s, out = mp.mpf(0), []
    for v in x:
        s = s * sin(v) + v * v
        out.append(s)
    return out


def map_(x):
    return weft.map(lambda v: wnp.sin(v) * x[1] + v * v, x)


def map_python(x):
    return [sin(v) * x[1] + v * v for v in x]


@weft.jit
def descend(n, v):
    return weft.cond(n <= 0, lambda: v, lambda: wnp.sin(v) * descend(n - 1, v * 1.1))


def recursion(x):
    return descend(1 + (x[0] > 0.3).astype("int32"), x)


def recursion_python(x):
    def down(n, v):
        return v if n <= 0 else [sin(a) * b for a, b in zip(v, down(n - 1, [a * mp.mpf(1.1) for a in v]))]

    return down(2 if x[0] > 0.3 else 1, x)


@weft.custom_jvp
def custom_jvp(x):
    return x * wnp.sin(x)


@custom_jvp.defjvp
def custom_jvp_rule(primals, tangents):
    (x,), (dx,) = primals, tangents
    return custom_jvp(x), (wnp.sin(x) + x * wnp.cos(x)) * dx


@weft.custom_vjp
def custom_vjp(x):
    return x * wnp.sin(x)


custom_vjp.defvjp(lambda x: (x * wnp.sin(x), x), lambda x, ct: ((wnp.sin(x) + x * wnp.cos(x)) * ct,))


@weft.custom_vmap
def custom_vmap(x):
    return wnp.sin(x) * x.sum()


@custom_vmap.def_vmap
def custom_vmap_rule(axis_size, in_batched, xs):
    return wnp.sin(xs) * xs.sum(axis=-1, keepdims=True), True


@weft.custom_vjp
def clipped(x):
    return x * x


# The cotangent is clipped (smoothly): no linear function of it, so no function's derivative.
clipped.defvjp(lambda x: (x * x, x), lambda x, ct: (2 * x * wnp.sin(ct),))

CONSTRUCTS = [
    Construct("cond", cond, cond_python),
    Construct("switch", switch, switch_python),
    Construct("while", while_, while_python),
    Construct("fori", fori, fori_python),
    Construct("fori, traced bound", fori_traced, fori_traced_python),
    Construct("scan", scan, scan_python),
    Construct("associative_scan", associative_scan, associative_scan_python),
    Construct("map", map_, map_python),
    Construct("call-recursion", recursion, recursion_python),
    Construct("custom_jvp", custom_jvp, each(lambda v: v * sin(v))),
    Construct("custom_vjp", custom_vjp, each(lambda v: v * sin(v))),
    Construct("custom_vmap", custom_vmap, lambda x: [sin(v) * sum(x) for v in x]),
    Construct(
        "custom_vjp, backward rule not linear",
        clipped,
        each(lambda v: v * v),
        lambda x, ct: [2 * v * sin(mp.mpf(c)) for v, c in zip(x, ct)],
    ),
]
BY_NAME = {c.name: c for c in CONSTRUCTS}

# Why a cell is empty. The only reason: there is nothing that the transform could mean.
NOT_LINEAR = "forward mode through custom_vjp needs a backward rule that is linear in the cotangent"
REASONS = {
    NOT_LINEAR: "Forward mode of a `custom_vjp` is the transpose of its backward rule. A rule that is not linear in "
    "the cotangent has no transpose: there is no linear map of tangents whose adjoint it is. Reverse mode, which only "
    "applies the rule, works; so does everything over its result. The error is `DerivativeError: forward mode through "
    "custom_vjp needs a backward rule that is linear in the cotangent`.",
}


def reason(construct: Construct, chain: tuple[str, ...]) -> str | None:
    """Why there is no value, for the first transform of the chain to be applied last."""
    if construct.pullback is None:
        return None
    for name in reversed(chain):
        if name in FORWARD:
            return NOT_LINEAR
        if name in REVERSE:
            return None
    return None


def meaning(construct: Construct, chain: tuple[str, ...]) -> list[float]:
    f = construct.python
    inner = list(enumerate(chain))[::-1]
    if construct.pullback is not None:
        f, inner = _pulled_back(construct, inner)
    for k, name in inner:
        f = MEANINGS[name](f, k)
    return [float(v) for v in f([mp.mpf(v) for v in POINT])]


def _pulled_back(construct: Construct, inner: list):
    """The function after its first reverse mode, which the rule defines; and the transforms that are left."""
    lanes = [([mp.mpf(1), mp.mpf(0)], mp.mpf(1))]  # (x -> scale * x + shift, factor) of each lane so far
    for at, (k, name) in enumerate(inner):
        if name == "vmap":
            more = [([s * mp.mpf(SCALE), t + s * mp.mpf(SHIFT)], -c / 2) for (s, t), c in lanes]
            lanes = lanes + more
        elif name in REVERSE:
            weights = WEIGHTS[k]

            def pulled(x, lanes=lanes, weights=weights):
                total = [mp.mpf(0)] * 3
                for (s, t), c in lanes:
                    ct = construct.pullback([s * v + t for v in x], [c * mp.mpf(w) for w in weights])
                    total = [a + s * b for a, b in zip(total, ct)]
                return total

            return pulled, inner[at + 1 :]
    return construct.python, inner


def value(construct: Construct, chain: tuple[str, ...]) -> np.ndarray:
    f = construct.weft
    for k, name in list(enumerate(chain))[::-1]:
        f = TRANSFORMS[name](f, k)
    return np.asarray(f(f64(POINT)))


def check(construct: Construct, chain: tuple[str, ...]) -> None:
    """A cell: the value, or the error that has a reason."""
    why = reason(construct, chain)
    if why is None:
        np.testing.assert_allclose(value(construct, chain), meaning(construct, chain), rtol=1e-8, atol=1e-8)
        return
    with pytest.raises(weft.DerivativeError, match=why):
        value(construct, chain)


PAIRS = list(itertools.product(NAMES, NAMES))


@pytest.mark.parametrize("outer", NAMES)
@pytest.mark.parametrize("construct", CONSTRUCTS, ids=lambda c: c.name)
def test_pairs(construct, outer):
    for inner in NAMES:
        try:
            check(construct, (outer, inner))
        except BaseException:
            print(f"{outer}({inner}({construct.name}))")
            raise


def sample(depth: int, count: int) -> list[tuple[Construct, tuple[str, ...]]]:
    chance = random.Random(20)
    return [(chance.choice(CONSTRUCTS), tuple(chance.choice(NAMES) for _ in range(depth))) for _ in range(count)]


@pytest.mark.parametrize(
    ("construct", "chain"), sample(3, 256), ids=lambda v: v.name if isinstance(v, Construct) else "-".join(v)
)
def test_chains_of_three(construct, chain):
    check(construct, chain)


def test_every_construct_takes_both_lanes_another_way():
    x, lane = [mp.mpf(v) for v in POINT], [mp.mpf(SCALE) * v + mp.mpf(SHIFT) for v in POINT]
    assert x[0] > 0.4
    assert lane[0] < 0.3
    trips = []
    for v in (x, lane):
        n, factor = 0, mp.mpf(0.3) * v[1]
        while sum(a * a for a in v) < 4:
            v, n = [a * mp.mpf(1.4) + factor * sin(a) for a in v], n + 1
        trips.append(n)
    assert trips[0] != trips[1]


def table() -> str:
    """The table of docs/transforms.md: for each construct and outer transform, the inner transforms without a value."""
    numbers: dict[str, int] = {}
    lines = ["| f | " + " | ".join(f"{outer} of" for outer in NAMES) + " |", "|---" * (1 + len(NAMES)) + "|"]
    for construct in CONSTRUCTS:
        cells = []
        for outer in NAMES:
            empty: dict[str, list[str]] = {}
            for inner in NAMES:
                why = reason(construct, (outer, inner))
                if why is not None:
                    empty.setdefault(why, []).append(inner)
            if not empty:
                cells.append("all 8")
                continue
            count = len(NAMES) - sum(len(inner) for inner in empty.values())
            notes = "; ".join(
                f"not {', '.join(inner)} [{numbers.setdefault(why, len(numbers) + 1)}]" for why, inner in empty.items()
            )
            cells.append(f"{count}: {notes}")
        lines.append(f"| {construct.name} | " + " | ".join(cells) + " |")
    lines.append("")
    lines += [f"[{number}] {REASONS[why]}" for why, number in numbers.items()]
    return "\n".join(lines) + "\n"


def test_table_in_the_documentation_is_current():
    text = DOCUMENT.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    written, after = rest.split(END)
    if os.environ.get("WEFT_WRITE_TABLE"):
        source = Path(os.environ["BUILD_WORKSPACE_DIRECTORY"]) / DOCUMENT
        source.write_text(before + BEGIN + table() + END + after, encoding="utf-8")
    else:
        assert written == table(), "docs/transforms.md is not current; see the head of this file"


def main(depth: int, names: list[str]) -> int:
    unknown = set(names) - {c.name for c in CONSTRUCTS}
    if unknown:
        raise SystemExit(
            f"no construct is called {', '.join(sorted(unknown))}: {', '.join(c.name for c in CONSTRUCTS)}"
        )
    failed = 0
    for construct in [c for c in CONSTRUCTS if not names or c.name in names]:
        for chain in itertools.product(NAMES, repeat=depth):
            try:
                check(construct, chain)
            except BaseException as error:
                failed += 1
                print(
                    f"{' of '.join(chain)} of {construct.name}: {type(error).__name__}: {str(error)[:300]}", flush=True
                )
        print(f"{construct.name}: {len(NAMES) ** depth} chains", flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2, sys.argv[2:]))
