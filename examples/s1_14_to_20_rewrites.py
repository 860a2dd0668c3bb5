"""The classical rewrites, each on the program that it is for: S1-14 common subexpressions, S1-15 folding, S1-16
propagation, S1-17 algebra, S1-18 reassociation, S1-19 dead code, S1-20 strength. Prints every program before and after.

./bazelw run //examples:s1_14_to_20_rewrites
"""

import numpy as np

import weft
import weft.numpy as wnp

x, y = wnp.array([0.5, 1.5, 2.5]), wnp.array([1.0, 2.0, 4.0])
i = wnp.array([-17, -8, 0, 7, 64])


def check(what, f, *args, holds=(), lacks=(), licence=None, operations=None):
    """Compiles `f`, compares it with the program as it is written, and looks at the operations that are left."""
    jitted = weft.jit(f, licence=licence) if licence else weft.jit(f)
    lowered = jitted.lower(*args)
    text = lowered.as_text("optimized")
    print(f"\n{what}\n{weft.make_ir(f)(*args)}becomes\n{text}", end="")
    for mine, written in zip(weft.tree.leaves(jitted(*args)), weft.tree.leaves(weft.jit(f, optimize="none")(*args))):
        np.testing.assert_allclose(mine, written, rtol=1e-6, err_msg=what)
    found = [line.split(" = ")[1].split("[")[0].split()[0] for line in text.splitlines() if " = " in line]
    assert all(name in found for name in holds), (what, found)
    assert not any(name in found for name in lacks), (what, found)
    assert operations is None or len(found) == operations, (what, found)


check("S1-14: (x + y) * 2 and (x + y) * 3 share a sum", lambda x, y: ((x + y) * 2, (x + y) * 3), x, y, operations=3)
check("S1-15: sin(2) + 1 is a number", lambda x: x * (wnp.sin(2.0) + 1), x, lacks=("sin", "add"))


def known_branch(x):
    return weft.cond(wnp.array(3) > 2, lambda v: v * 2, lambda v: wnp.exp(v), x)


def constant_carry(x):
    def step(carry, _):
        total, scale = carry
        return (total + scale, scale), None

    return weft.lax.scan(step, (x, wnp.ones(3)), None, length=4)[0][0]


def invariant(x, y):
    return weft.fori_loop(0, 5, lambda k, v: v + wnp.exp(y), x)


check("S1-16: a predicate that is known", known_branch, x, holds=("mul",), lacks=("cond", "exp"))
check("S1-16: a carry that never changes is a constant", constant_carry, x, lacks=("scan",))
check("S1-16: what a loop computes anew each time leaves it", invariant, x, y, holds=("exp",))

check("S1-17: x * 1, x - -y", lambda x, y: x * 1 - -y, x, y, operations=1)
check("S1-17: sum(2 x) = 2 sum(x)", lambda x: wnp.sum(2 * x), x, holds=("reduce_sum", "mul"), operations=2)
check("S1-17: not(x < y) of integers", lambda a, b: ~(a < b), i, i + 1, holds=("ge",), operations=1)
check("S1-17: x / x, for finite numbers", lambda x: x / x, x, licence="no-nan", lacks=("div",))

collected = {"licence": "reassociate"}
check("S1-18: x x x / x", lambda x: x * x * x / x, x, operations=1, **collected)
check("S1-18: x + 2 y - x + 1 + 2", lambda x, y: x + 2 * y - x + 1 + 2, x, y, operations=2, **collected)
check("S1-18: of integers always", lambda a, b: a + 3 + b - a, i, i + 1, operations=1)


def dead_carry(x):
    (kept, _), _ = weft.lax.scan(lambda c, _: ((c[0] + 1, wnp.exp(c[1])), None), (x, x), None, length=5)
    return kept


check("S1-19: a carry that nobody reads", dead_carry, x, lacks=("exp",))

check("S1-20: x ** 2", lambda x: x**2.0, x, lacks=("pow",), operations=1)
check("S1-20: x ** 0.5", lambda x: x**0.5, x, holds=("sqrt",), lacks=("pow",))
check("S1-20: x ** -0.5", lambda x: x**-0.5, x, holds=("rsqrt",), lacks=("pow",))
check(
    "S1-20: i // 8 and i % 8",
    lambda a: (a // 8, a % 8),
    i,
    holds=("shift_right_arithmetic", "and"),
    lacks=("div", "rem"),
)
check("S1-20: unsigned, too", lambda a: (a // 8, a % 8), abs(i).astype("uint32"), lacks=("div", "rem"), operations=2)
