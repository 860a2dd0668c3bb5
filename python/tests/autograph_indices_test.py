"""The variable of a loop over a range is an int of Python's, converted too: as a key, to isinstance, as an exponent."""

import functools

import numpy as np
import pytest

import weft
import weft.numpy as wnp

TABLE = {0: 1.0, 1: 2.0, 2: 3.0}
PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


@program
def keys(x):
    for i in range(3):
        x = x * TABLE[i] + TABLE.get(i, 7.0) + {(0, 0): 1.0, (1, 1): 2.0, (2, 2): 5.0}[i, i]
    return x


@program
def members(x):
    seen = set()
    for i in range(3):
        seen.add(i)
        x = x + (1 if i in TABLE else 2) + (1 if i in {1, 2} else 3)
    return x + len(seen)


@program
def caches(x):
    @functools.lru_cache
    def f(n):
        return 1 if n < 2 else f(n - 1) + f(n - 2)

    for i in range(5):
        x = x + f(i)
    return x


@program
def keys_under_a_condition(x):
    found = {}
    for i in range(3):
        if x > i:
            x = x + TABLE[i]
        found[i] = x
    return sum(found.values())


@program
def types(x):
    for i in range(3):
        x = x + (1 if isinstance(i, int) else 100) + (1 if isinstance(i, (list, float)) else 2)
        x = x * (2 if type(i) is int else 100)
    return x


@program
def negated_exponents(x):
    for i in range(4):
        x = x + 2**-i + 10 ** (-i) + 2**i + i**2 + (i + 1) ** -i + x**-i
    return x


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("x", [1.5, 0.25])
def test_as_in_python(function, x):
    np.testing.assert_allclose(weft.jit(function, autograph=True)(x), function(x), rtol=1e-5)
    np.testing.assert_allclose(weft.grad(weft.autograph(function))(x), weft.grad(function)(x), rtol=1e-5)


def test_over_a_traced_range():
    def f(x, n):
        for i in range(n):
            x = x + 2**-i + (1 if isinstance(i, int) else 100)
        return x

    assert weft.jit(f, autograph=True)(1.0, 3) == f(1.0, 3)

    def keyed(x, n):
        for i in range(n):
            x = x + TABLE[i]
        return x

    with pytest.raises(TypeError, match="key of a dict"):
        weft.jit(keyed, autograph=True)(1.0, 3)
    with pytest.warns(weft.autograph.FallbackWarning, match="key of a dict"):
        assert weft.script(keyed)(1.0, 3) == keyed(1.0, 3)


def test_arrays_keep_their_own_powers():
    """An array of integers to a traced power is one of integers, whoever asks."""
    f = weft.autograph(lambda a, n: a**-n)
    assert weft.jit(f)(wnp.array([1, 2]), -2).tolist() == [1, 4] and weft.jit(f)(wnp.array([1, 2]), -2).dtype == "int32"
