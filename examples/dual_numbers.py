"""Forward mode from outside: an interpreter that computes with dual numbers, value and derivative. Taken twice it gives
second derivatives, and grad of it is reverse over forward."""

from typing import NamedTuple

import numpy as np

import weft
import weft.numpy as wnp


class Dual(NamedTuple):
    value: weft.Array
    slope: weft.Array


class Duals(weft.ir.Interpreter):
    value_type = Dual

    def lift(self, x):
        x = wnp.asarray(x)
        return Dual(x, wnp.zeros_like(x))

    def default(self, op, *x):  # comparisons and integers have no derivative
        out = op.bind(*[v.value for v in x])
        if wnp.issubdtype(out.dtype, wnp.inexact):
            return super().default(op, *x)
        return self.lift(out)

    @weft.ir.rule("add", "sub", "neg", "broadcast", "reduce_sum", "reshape", "convert")
    def linear(self, op, *x):
        return Dual(op.bind(*[v.value for v in x]), op.bind(*[v.slope for v in x]))

    @weft.ir.rule("mul")
    def mul(self, op, x, y):
        return Dual(x.value * y.value, x.slope * y.value + x.value * y.slope)

    @weft.ir.rule("div")
    def div(self, op, x, y):
        value = x.value / y.value
        return Dual(value, (x.slope - value * y.slope) / y.value)

    @weft.ir.rule("sin")
    def sin(self, op, x):
        return Dual(wnp.sin(x.value), wnp.cos(x.value) * x.slope)

    @weft.ir.rule("cos")
    def cos(self, op, x):
        return Dual(wnp.cos(x.value), -wnp.sin(x.value) * x.slope)

    @weft.ir.rule("exp")
    def exp(self, op, x):
        value = wnp.exp(x.value)
        return Dual(value, value * x.slope)


def derivative(f):
    return lambda x: Duals()(f)(Dual(wnp.asarray(x), wnp.ones_like(wnp.asarray(x)))).slope


def f(x):
    y = weft.while_loop(lambda y: y < 5, lambda y: y + y * wnp.sin(x), 1 + x)
    return weft.cond(x > 0, lambda: y / wnp.exp(x), lambda: y)


x = wnp.array(0.7)
print("f' by dual numbers", derivative(f)(x), "by weft.grad", weft.jvp(f, (x,), (1.0,))[1])
assert np.isclose(derivative(f)(x), weft.jvp(f, (x,), (wnp.ones(()),))[1], rtol=1e-5)
assert np.isclose(weft.jit(derivative(f))(x), derivative(f)(x), rtol=1e-5)
g = lambda x: wnp.sin(x) * x / wnp.exp(x)
second = weft.grad(weft.grad(g))(x)
assert np.isclose(derivative(derivative(g))(x), second, rtol=1e-4)
assert np.isclose(weft.grad(derivative(g))(x), second, rtol=1e-4)
xs = wnp.linspace(0.1, 1.0, 5)
assert np.allclose(weft.vmap(derivative(g))(xs), weft.vmap(weft.grad(g))(xs), rtol=1e-4)
