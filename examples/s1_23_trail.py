"""What the optimiser did: which rules made an operation, which applied at which line, and how often; a program compiled
without one of them, and without any; which one changes a result."""

import numpy as np

import weft
import weft.numpy as wnp


def f(x):
    y = x - -x
    return wnp.sin(y) * 1


x = wnp.array([0.1, 0.2])
optimized = weft.make_ir(f)(x).optimized()
sine = optimized.results[0].definition
print(optimized.trail(sine.operands[0]))
assert optimized.trail(sine.operands[0]).through == ("sub-neg",)

jitted = weft.jit(f)
jitted(x)
for (rule, line), times in jitted.explain("rules")[0]["rules"].items():
    print(f"{times} x {rule} at {line}")
assert {rule for rule, _ in jitted.explain("rules")[0]["rules"]} == {"sub-neg", "mul-one"}

for how in ({"optimize": "none"}, {"optimize": "fast_compile"}, {"disable": ["sub-neg"]}):
    other = weft.jit(f, **how)
    assert np.allclose(other(x), jitted(x), rtol=1e-6)
    print(how, "leaves", other.lower(x).as_text("optimized").count(" = "), "operations")


@weft.rewrite("sin")
def wrong(x):
    return x


found = weft.ir.bisect(weft.make_ir(f)(x), [x], f(x), passes=["cse", wrong, "optimize"])
print(found)
assert found.rule == "wrong"
