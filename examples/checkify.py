"""Errors as values: which check of a compiled program failed first, with its numbers.

./bazelw run //examples:checkify
"""

import weft
import weft.numpy as wnp
from weft.experimental import checkify


def newton(x, steps):
    """The square root by Newton's method, which must not leave the positive numbers."""

    def step(i, guess):
        checkify.check(guess > 0, "step {i}: the guess {g} is not positive", i=i, g=guess)
        return 0.5 * (guess + x / guess)

    return weft.fori_loop(0, steps, step, x)


checked = weft.jit(checkify.checkify(lambda x: newton(x, 20)))
for x in (2.0, -2.0):
    error, root = checked(wnp.array(x))
    print(f"newton({x}) = {root}: {error.get()}")
assert checked(wnp.array(2.0))[0].get() is None
assert "step 0: the guess -2.0" in checked(wnp.array(-2.0))[0].get()

# One error for each element of a batch.
error, roots = weft.vmap(checkify.checkify(lambda x: newton(x, 20)))(wnp.array([4.0, -1.0, 9.0, -3.0]))
print(error.get())
assert [line[:17] for line in error.get().splitlines()] == ["at mapped index 1", "at mapped index 3"]

# What nobody checked: NaNs, divisions by zero, indices.
table = wnp.array([1.0, 0.0, -1.0])
lookup = weft.jit(checkify.checkify(lambda i: wnp.log(1 / table[i]), errors=checkify.automatic_checks))
found = {i: lookup(i)[0].get() for i in (0, 1, 2, 7)}
for i, message in found.items():
    print(i, message)
assert found[0] is None and found[1] == "division by zero" and "log" in found[2] and "index 7" in found[7]

# Gradients keep what the checks say.
slope, error = weft.grad(lambda x: checkify.checkify(newton)(x, 5)[::-1], has_aux=True)(wnp.array(4.0))
assert error.get() is None and abs(slope - 0.25) < 1e-3

try:
    lookup(7)[0].throw()
except checkify.JaxRuntimeError as error:
    print(f"{type(error).__name__}: {str(error).splitlines()[0]}")
