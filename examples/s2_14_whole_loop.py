"""What only a compiler does that sees the whole loop (S2-14): what does not change from step to step is computed once,
before it, and every step lies in the memory of the step before. A loop of Python that calls compiled steps has neither.

./bazelw run //examples:s2_14_whole_loop
"""

import time

import numpy as np

import weft
import weft.numpy as wnp


def step(w, x, h):
    return wnp.tanh(h @ wnp.tanh(w @ w)) + x  # tanh(w @ w) is the same in each step


@weft.script(static_argnums=2)
def whole(w, x, steps):
    h = x
    for _ in range(steps):
        h = step(w, x, h)
    return h


rng = np.random.default_rng(0)
w, x = (wnp.array(rng.standard_normal(shape, np.float32) / 16) for shape in ((256, 256), (8, 256)))

# Hoisted: the loop's body had two products, and has one.
ir = weft.make_ir(whole, static_argnums=2)(w, x, 50)
products = {}
for name, program in (("written", ir), ("optimized", ir.optimized())):
    (loop,) = [op for op in program.walk(regions=False) if op.primitive == "scan"]
    inside = [op for op in program.walk() if op.primitive == "contract" and op.depth]
    flops = sum(flops for flops, _ in program.cost_by_line().values())
    products[name] = len(inside), flops
    print(f"{name}: {len(inside)} products in each step, {flops / 1e6:.0f} million flops")
assert products["written"][0] == 2 and products["optimized"][0] == 1
assert products["optimized"][1] < products["written"][1] / 10
hoisted = next(p.name for p in ir.passes if p.text.index("contract") < p.text.index("scan"))
print("the pass that did it:", hoisted)
assert hoisted == "hoist"

# Reused: explain() has the same memory for 50 steps and for 5000, and the plan has one buffer for the state before and
# after a step, which is the result in the end.
arenas = {}
for steps in (50, 5000):
    whole(w, x, steps)
    arenas[steps] = whole.explain()[-1]["arena_bytes"]
print("bytes beside arguments and results, by steps:", arenas)
assert arenas[50] == arenas[5000] < 2 * w.nbytes + 2 * x.nbytes
shared = [line for line in whole.stage("buffers", w, x, 50).splitlines() if "result 0" in line and line.count("%") >= 3]
print("one buffer:", shared[0].strip())

# The loop in Python computes tanh(w @ w) in each step, and makes an array for each.
one = weft.jit(step)


def in_python(steps):
    h = x
    for _ in range(steps):
        h = one(w, x, h)
    return h


assert np.allclose(whole(w, x, 50), in_python(50), rtol=1e-4, atol=1e-5)
times = {}
for name, run in (("whole", lambda: whole(w, x, 50)), ("steps", lambda: in_python(50))):
    run()
    begin = time.perf_counter()
    weft.block_until_ready(run())
    times[name] = time.perf_counter() - begin
print(f"50 steps: {1e3 * times['whole']:.2f} ms as one program, {1e3 * times['steps']:.2f} ms called from Python")
assert times["whole"] < times["steps"]
