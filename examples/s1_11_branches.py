"""A branch that is not taken is never computed (S1-11): the callbacks in it do not run, its time is not spent, and what
was written before the branch but is read on one side only moves into that side.

./bazelw run //examples:s1_11_branches
"""

import time

import numpy as np

import weft
import weft.numpy as wnp

ran = []


def side(name):
    def branch(x):
        weft.debug.callback(lambda: ran.append(name))
        return x * 2

    return branch


chosen = weft.jit(lambda p, x: weft.cond(p, side("yes"), side("no"), x))
chosen(True, wnp.ones(3)), chosen(False, wnp.ones(3)), chosen(True, wnp.ones(3))
weft.effects_barrier()
print("callbacks that ran:", ran)
assert ran == ["yes", "no", "yes"]

elements = weft.jit(weft.vmap(lambda p, x: weft.cond(p, side("yes"), side("no"), x)))
ran.clear()
elements(wnp.array([True, False, False]), wnp.ones((3, 2)))
weft.effects_barrier()
print("of three batch elements:", ran)
assert sorted(ran) == ["no", "no", "yes"]


def sinks(p, x):
    dear = x
    for _ in range(3):
        dear = wnp.tanh(dear @ dear / 100)  # written before the branch, read on one side
    return weft.cond(p, lambda: dear.sum(), lambda: x.sum())


x = wnp.array(np.random.default_rng(0).random((300, 300), dtype=np.float32))
program = weft.make_ir(sinks)(True, x).optimized()
print(program)
assert "contract" not in {operation.primitive for operation in program.walk(regions=False)}  # all of them in the branch
f = weft.jit(sinks)
assert np.isclose(f(False, x), np.asarray(x).sum(), rtol=1e-4)
times = {}
for p in (True, False):
    f(p, x)
    begin = time.perf_counter()
    for _ in range(20):
        weft.block_until_ready(f(p, x))
    times[p] = (time.perf_counter() - begin) / 20
print(f"with the products {1e3 * times[True]:.2f} ms, without {1e3 * times[False]:.2f} ms")
