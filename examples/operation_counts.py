"""Counting operations: an interpreter whose values are types, so that nothing is computed. Loops of known length count
as often as they run, of branches the most expensive one."""

import collections

import weft
import weft.numpy as wnp


class Counts(weft.ir.Interpreter):
    """A value is the type of an array."""

    def __init__(self):
        self.of = collections.Counter()

    def lift(self, x):
        return weft.ShapeDtype(wnp.shape(x), wnp.asarray(x).dtype)

    def default(self, op, *types):
        out = [weft.ShapeDtype(r.type.shape, r.type.dtype) for r in op.results]
        self.of[op.primitive] += max((t.size for t in [*out, *types]), default=1)
        return out[0] if len(out) == 1 else tuple(out)

    def scan(self, op, *types):
        for name, n in self.inside(op.regions[0]).items():
            self.of[name] += op.trips * n
        return tuple(weft.ShapeDtype(r.type.shape, r.type.dtype) for r in op.results)

    def cond(self, op, index, *types):
        self.of += max((self.inside(region) for region in op.regions), key=lambda counts: counts.total())
        return tuple(weft.ShapeDtype(r.type.shape, r.type.dtype) for r in op.results)

    def inside(self, region):
        counts = Counts()
        counts.run(region, *[weft.ShapeDtype(p.type.shape, p.type.dtype) for p in region.parameters])
        return counts.of


def count(f, *args):
    counts = Counts()
    counts.run(weft.make_ir(f)(*args), *map(counts.lift, args))
    return counts.of


def f(x):
    y = weft.fori_loop(0, 10, lambda i, y: wnp.sin(y) * x, x)
    return weft.cond(y.sum() > 0, lambda: wnp.exp(y), lambda: y).sum()


x = wnp.ones(100)
forwards = count(f, x)
print(dict(forwards))
assert forwards["sin"] == 10 * 100 and forwards["exp"] == 100

# Of what transforms make of the function, too.
gradient = count(weft.grad(f), x)
print("the gradient:", gradient.total(), "operations on elements, the function:", forwards.total())
assert gradient["cos"] == 10 * 100 and forwards.total() < gradient.total() < 6 * forwards.total()
assert count(weft.jit(f), x) == forwards
assert count(weft.vmap(wnp.sin), wnp.ones((7, 3)))["sin"] == 21
