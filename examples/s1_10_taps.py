"""Theano's scan (S1-10): taps of sequences and outputs, constants, a condition to end, truncated gradients. All of it
is one `scan` of the program.

./bazelw run //examples:s1_10_taps
"""

import numpy as np

import weft
import weft.numpy as wnp

# y[t] = a y[t-1] + b y[t-2] + x[t] - x[t-1], an ARMA process, with parameters to fit.
x = np.sin(np.arange(50, dtype=np.float32))
parameters = wnp.array([0.5, -0.2])


def process(parameters, **how):
    a, b = parameters
    step = lambda x_before, x, y2, y1, a, b: a * y1 + b * y2 + x - x_before
    return weft.recurrence(step, [(x, [-1, 0])], [(wnp.array([0.1, 0.2]), [-2, -1])], [a, b], **how)


y = process(parameters)
expected = [0.1, 0.2]
for t in range(1, 50):
    expected.append(0.5 * expected[-1] - 0.2 * expected[-2] + x[t] - x[t - 1])
assert np.allclose(y, expected[2:], atol=1e-5)
assert [op.name for op in weft.make_ir(process)(parameters).walk(regions=False)].count("scan") == 1

# The gradient of the last value, and of no more than the last three steps.
last = lambda parameters, **how: process(parameters, **how)[-1]
whole, truncated = weft.grad(last)(parameters), weft.grad(lambda p: last(p, truncate_gradient=3))(parameters)
print("gradient", whole, "truncated to three steps", truncated)
step = wnp.array([1e-2, 0.0])
assert np.isclose(whole[0], (last(parameters + step) - last(parameters - step)) / 2e-2, rtol=1e-2)
assert not np.allclose(whole, truncated, rtol=1e-3)

# Powers of two until one is above 1000: outputs behind that are zero.
powers, steps = weft.recurrence(lambda p: 2 * p, initial=[1], length=20, until=lambda p: p > 1000)
print("after", steps, "steps:", powers[steps - 1])
assert int(steps) == 10 and int(powers[9]) == 1024 and int(powers[10]) == 0
