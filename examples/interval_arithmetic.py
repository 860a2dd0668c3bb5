"""Interval arithmetic as an interpreter: bounds of what a function may return, for all arguments between two bounds.

The interpreted function is a function of arrays like any other: it is jitted, differentiated and mapped below."""

from typing import NamedTuple

import numpy as np

import weft
import weft.numpy as wnp


class Interval(NamedTuple):
    low: weft.Array
    high: weft.Array


class Intervals(weft.ir.Interpreter):
    value_type = Interval

    def lift(self, x):
        x = wnp.asarray(x)
        return Interval(x, x)

    @weft.ir.rule("exp", "log", "tanh", "sqrt", "broadcast", "reshape", "reduce_sum", "convert")
    def grows(self, op, x):
        return Interval(op.bind(x.low), op.bind(x.high))

    @weft.ir.rule("neg")
    def neg(self, op, x):
        return Interval(-x.high, -x.low)

    @weft.ir.rule("add", "sub")
    def add(self, op, x, y):
        if op.name == "sub":
            y = Interval(-y.high, -y.low)
        return Interval(x.low + y.low, x.high + y.high)

    @weft.ir.rule("mul")
    def mul(self, op, x, y):
        products = [a * b for a in x for b in y]
        low = wnp.minimum(wnp.minimum(products[0], products[1]), wnp.minimum(products[2], products[3]))
        high = wnp.maximum(wnp.maximum(products[0], products[1]), wnp.maximum(products[2], products[3]))
        return Interval(low, high)

    @weft.ir.rule("lt", "gt", "le", "ge", "eq")
    def compare(self, op, x, y):
        return self.lift(op.bind(self.primal(x), self.primal(y)))

    def primal(self, value):
        return value.low


def f(x):
    return weft.fori_loop(0, 3, lambda i, y: wnp.tanh(y * x - 1) + weft.cond(i < 1, lambda z: z, lambda z: -z, y), x)


bounds = Intervals()(f)
box = Interval(wnp.array(0.5), wnp.array(0.75))
out = bounds(box)
print(f"f([{box.low}, {box.high}]) lies in [{out.low:.4f}, {out.high:.4f}]")
inside = [float(f(x)) for x in np.linspace(0.5, 0.75, 50, dtype=np.float32)]
assert out.low <= min(inside) and max(inside) <= out.high

# Closed under jit, vmap and grad.
assert np.allclose(weft.jit(bounds)(box), out)
boxes = Interval(wnp.array([0.5, 0.25]), wnp.array([0.75, 0.5]))
assert np.allclose(weft.vmap(bounds)(boxes).low[0], out.low)
width = lambda high: bounds(Interval(box.low, high)).high - bounds(Interval(box.low, high)).low
slope, step = weft.grad(width)(box.high), 1e-2
assert np.isclose(slope, (width(box.high + step) - width(box.high - step)) / (2 * step), rtol=1e-2)
print(f"the width grows by {slope:.4f} of the upper bound")
