"""Programs that differ in a number alone share code: the number is a parameter of it."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import _weft


def _generated(program, numbers) -> list[int]:
    """How often code is generated for the program of each number."""
    counts = []
    for n in numbers:
        before = _weft.codes_generated()
        program(n)
        counts.append(_weft.codes_generated() - before)
    return counts


_X = np.linspace(0.5, 2, 1000, dtype=np.float32)
# Programs of a number that are compiled outside of jit, since a transform is applied.
OF_A_NUMBER = {
    "vmap of an integer": lambda n: weft.vmap(lambda x: wnp.sin(x) * n)(_X),
    "vmap of a half": lambda n: weft.vmap(lambda x: wnp.sin(x) * (n + 0.5))(_X),
    "vmap of integers": lambda n: weft.vmap(lambda x: wnp.where(wnp.arange(5) < n, x, wnp.cos(x)))(_X),
    "grad of an integer": lambda n: weft.grad(lambda x: (wnp.sin(x) * n).sum())(_X),
    "grad of a sum": lambda n: weft.grad(lambda x: ((wnp.tanh(x) + n) ** 2).sum())(_X),
    "grad of a quotient": lambda n: weft.grad(lambda x: (wnp.tanh(x) / n).sum())(_X),
    "grad with a number beside": lambda n: weft.grad(lambda x, rate: (wnp.sin(x) * rate).sum())(_X, n),
    "vmap with a number beside": lambda n: weft.vmap(lambda x, k: wnp.sin(x) / k, in_axes=(0, None))(_X, n),
    "value_and_grad by name": lambda n: weft.value_and_grad(lambda x, rate: (x**2 / rate).sum())(_X, rate=n)[1],
    "a loop": lambda n: weft.grad(lambda x: weft.scan(lambda c, t: (wnp.sin(c * n) + t, None), 0.0, x)[0])(_X),
    "a loop of unknown trips": lambda n: weft.vmap(
        lambda x: weft.while_loop(lambda c: c < 100.0 + n, lambda c: c * 2 + n, x)
    )(_X),
    "a branch": lambda n: weft.vmap(
        lambda x: x + weft.cond(_X.sum() > wnp.asarray(x * 0 + 1).sum(), lambda v: v * n, lambda v: v - n, x)
    )(_X[:5]),
    "a loop in a loop": lambda n: weft.grad(
        lambda x: weft.fori_loop(0, 3, lambda i, c: weft.fori_loop(0, 2, lambda k, c: wnp.sin(c) * n, c), x).sum()
    )(_X),
    "functions that are called again": lambda n: weft.grad(
        lambda x: (lambda f: (f(f(x)) + f(x)).sum())(weft.jit(lambda x: wnp.tanh(x / n)))
    )(_X),
    "what is computed again": lambda n: weft.grad(lambda x: weft.checkpoint(lambda x: wnp.sin(x * n))(x).sum())(_X),
    "jit of a captured number": lambda n: weft.jit(lambda x: wnp.exp(x / n) - n)(_X),
}


@pytest.mark.parametrize("name", OF_A_NUMBER)
def test_programs_that_differ_in_a_number_share_code(name):
    numbers = [3, 5, 7, 11, 13, 17, 19, 23, 29]
    counts = _generated(OF_A_NUMBER[name], numbers)
    assert sum(counts[4:]) == 0 and sum(counts) <= 4, counts
    # The shared code has the number of each call.
    program = OF_A_NUMBER[name]
    results = [np.asarray(program(n)) for n in numbers]
    for n, result in zip(numbers, results):
        weft.clear_caches()
        np.testing.assert_allclose(np.asarray(program(n)), result, rtol=1e-6)
