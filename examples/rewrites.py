"""Rules and passes from Python: what they match, where they run, what an explanation of them says."""

import numpy as np

import weft
import weft.numpy as wnp


@weft.rewrite("log(add(1, exp(x)))")
def softplus(x):
    return wnp.logaddexp(x, 0.0)


@weft.rewrite("reduce_sum(mul(x, y))")
def sum_of_product(x, y, *, ops, types):
    """Only where all of a vector is summed."""
    if ops[0].attributes["dims"] != [0] or x.ndim != 1:
        return None
    return wnp.dot(x, y)


def loss(w, x):
    return wnp.log(1 + wnp.exp((w * x).sum()))


w, x = wnp.array([60.0, 40.0]), wnp.ones(2)

# On a program: look at it before and after.
ir = weft.make_ir(loss)(w, x)
after = softplus(sum_of_product(ir))
print(after)
assert [op.name for op in ir.walk()][:2] == ["mul", "reduce_sum"]
assert "contract" in [op.name for op in after.walk()]
assert "softplus" in str(after.results[0].definition.location)

# Where a function is compiled, and before its derivative is taken.
assert np.isclose(weft.jit(loss, passes=[softplus, "optimize"])(w, x), 100.0)
assert np.allclose(weft.grad(softplus(loss))(w, x), [1.0, 1.0])


# A pass is a function from programs to programs.
@weft.register_pass("no-dividing")
def no_dividing(program):
    bad = [op for op in program.walk() if op.name == "div"]
    if bad:
        raise ValueError(f"this machine does not divide: {bad[0]!r}\n{bad[0].location.stack}")
    return program


weft.jit(lambda x: x * 2, passes=["no-dividing", "optimize"])(1.0)
try:
    weft.jit(lambda x: 1 / x, passes=["no-dividing", "optimize"])(2.0)
except ValueError as error:
    print(str(error).splitlines()[0])
else:
    raise AssertionError("a division went through")
