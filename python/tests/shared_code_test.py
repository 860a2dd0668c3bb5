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
