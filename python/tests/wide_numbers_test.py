"""A number that a program computes with in f32 and, where it computes in f64, there: it is the same one. What is found
in f32 (how often a divisor fits) holds for no other."""

from __future__ import annotations

import math

import numpy as np
import pytest

import weft
import weft.numpy as wnp

NUMBERS = (0.1, 0.59, 1 / 3, 0.7, 6.2, math.pi, 2 * math.pi)
PROGRAMS = {
    "mod": lambda np, x, c: x % c,
    "mod of a sum": lambda np, x, c: (x + c) % (2 * c) - c,
    "mod, scaled": lambda np, x, c: (x % c) / c,
    "mod, then a difference": lambda np, x, c: x % c - c,
    "divmod": lambda np, x, c: np.divmod(x, c)[1] - 0.25 * np.divmod(x, c)[0],
    "fmod": lambda np, x, c: np.fmod(x, c) + c,
    "floor": lambda np, x, c: x - c * np.floor(x / c),
    "round": lambda np, x, c: x - c * np.round(x / c),
    "fraction": lambda np, x, c: x / c - np.trunc(x / c),
    "whole part": lambda np, x, c: x // c - x / c,
    "choice": lambda np, x, c: np.where(x < c, x + c, x - c),
}
TRANSFORMS = {
    "jit": lambda f, x: weft.jit(f)(x),
    "vmap": lambda f, x: weft.jit(weft.vmap(f))(x),
    "scan": lambda f, x: weft.jit(lambda x: weft.scan(lambda carry, y: (carry, f(y)), 0.0, x.reshape(4, -1))[1])(x),
    "cond": lambda f, x: weft.jit(lambda x: weft.cond(x.sum() < 1e30, f, lambda x: x, x))(x),
}


def operands(c: float) -> np.ndarray:
    near = np.arange(1, 200, dtype=np.float32) * np.float32(c)
    near = np.concatenate([near, np.nextafter(near, np.float32(0)), near * np.float32(0.5)])
    x = np.concatenate([near, np.random.default_rng(0).standard_normal(4000).astype(np.float32) * 5])
    x = np.concatenate([x, -x])
    return x[: len(x) // 4 * 4]


def errors(found, exact: np.ndarray) -> np.ndarray:
    return np.abs(np.asarray(found, np.float64).reshape(-1) - exact)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_programs_are_as_right_as_their_operations(name, transform):
    program = PROGRAMS[name]
    for c in NUMBERS:
        x = operands(c)
        single = float(np.float32(c))
        eager = np.asarray(program(wnp, wnp.asarray(x), c))
        exact = program(np, x.astype(np.float64), single)
        # Where an operation's rounding decides how often the divisor fits, the result is another one.
        same = errors(eager, exact) < single / 4
        compiled = errors(TRANSFORMS[transform](lambda x, c=c: program(wnp, x, c), x), exact)
        unit = np.finfo(np.float32).eps * np.abs(exact)
        assert np.all((compiled <= 2 * errors(eager, exact) + 2 * unit)[same]), (c, compiled[same].max())


@pytest.mark.parametrize("c", NUMBERS)
def test_remainders_are_rounded_once(c):
    x = operands(c)
    exact = np.mod(x.astype(np.float64), float(np.float32(c)))
    assert np.all(errors(weft.jit(lambda x: x % c)(x), exact) <= np.finfo(np.float32).eps / 2 * exact)
