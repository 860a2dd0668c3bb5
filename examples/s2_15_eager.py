"""The dynamic graph (S2-15): outside of jit every line computes at once, so Python's own `if` and `for` decide on real
values, and print and a debugger show them. Derivatives follow the path that was taken.

./bazelw run //examples:s2_15_eager
"""

import numpy as np

import weft
import weft.numpy as wnp

lines = []


def foo1(x, y):
    if x < y:  # a number, here and now
        lines.append("then")
        s = x + y
    else:
        lines.append("else")
        s = wnp.square(y)
    return s


def foo2(s):
    for i in range(10):
        s += i
        lines.append(float(s))  # each intermediate value is there
    return s


x, y = wnp.array(1.0), wnp.array(2.0)
assert foo1(x, y) == 3 and foo1(y, x) == 1 and lines == ["then", "else"]
assert weft.grad(foo1, argnums=(0, 1))(x, y) == (1, 1) and weft.grad(foo1, argnums=(0, 1))(y, x) == (0, 2)
print("foo1 took:", lines)

lines.clear()
start = wnp.array(0.5)
assert foo2(start) == 45.5 and lines == [0.5 + n for n in np.cumsum(range(10))]
assert start == 0.5  # s += i makes a new array, and the caller's stays
print("foo2 went through:", lines)


# The values of an array are gone through as well, and Python's data structures hold arrays.
def longest_run(signs):
    best, run, seen = 0, 0, {}
    for i, sign in enumerate(signs):
        run = run + 1 if sign > 0 else 0
        if run > best:
            best, seen["end"] = run, i
    return best, seen


assert longest_run(wnp.array([1, 1, -1, 1, 1, 1, -1])) == (3, {"end": 5})

# Under jit the numbers are not known while the function is traced: the same `if` is an error that says so.
try:
    weft.jit(foo1)(x, y)
except weft.TracerError as error:
    print("jit:", str(error).partition(".")[0])
else:
    raise AssertionError("a traced condition was decided")
