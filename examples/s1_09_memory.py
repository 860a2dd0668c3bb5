"""Memory as a part of the program: allocations, what is computed into them, and what is given back.

    ./bazelw run //examples:s1_09_memory

`y = x + 1` is `Add(x, 1) -> y` in the usual form, and `Allocate -> y_storage; Add(x, 1, y_storage) -> y` in the
explicit one. The pass "explicit-alloc" leads from the first to the second, as the compiler decides it: what is computed
together, what is computed over what nobody reads any more, and where in the arena everything lies.
"""

from __future__ import annotations

import numpy as np

import weft
import weft.numpy as wnp


def layer(w, x):
    h = wnp.tanh(x @ w + 1)
    return (h / h.sum(axis=1, keepdims=True)).max(axis=0)


rng = np.random.default_rng(0)
w, x = (wnp.asarray(rng.standard_normal(shape), "float32") for shape in [(16, 32), (64, 16)])
usual = weft.make_ir(layer)(w, x).optimized()
explicit = usual.optimized("explicit-alloc")
print(usual.text)
print(explicit.text)

kinds = [op.name for op in explicit.walk(regions=False)]
assert kinds.count("allocate") > kinds.count("free") > 0  # results are not given back
# Both mean the same, and the explicit one can be written, read back, and run.
again = weft.parse_ir(explicit.text)
np.testing.assert_array_equal(again(w, x), usual(w, x))

# Its arena is the one that compiled code asks for.
compiled = weft.jit(layer)
compiled(w, x)
planned = compiled.explain()[0]["arena_bytes"]
reached = weft.ir.verify_memory(explicit)
assert -(-reached // 64) * 64 == planned, (reached, planned)
print(f"{planned} bytes of memory beside arguments and results")

# A program that gives memory back too early is refused, with the lines of both operations.
lines = explicit.text.splitlines()
free = next(i for i, line in enumerate(lines) if line.startswith("  free "))
early = [*lines[: free - 1], lines[free], lines[free - 1], *lines[free + 1 :]]
try:
    weft.ir.verify_memory(weft.parse_ir("\n".join(early), "early.weft"))
except ValueError as error:
    print(str(error).splitlines()[0])
else:
    raise SystemExit("a value was read after its memory was given back, and nobody noticed")
