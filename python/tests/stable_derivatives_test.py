"""Formulas as people write them, of one to three values: the value, each gradient and each second derivative in f32,
jitted, under vmap and of arrays, against mpmath over the whole range. Right is what differs from the exact value by no
more than 8 units in the last place, or than a change of the values by 4 units explains."""

from __future__ import annotations

import math
import types

import exact_series
import mpmath
import numpy as np
import pytest
from exact_series import Series

import weft
import weft.numpy as wnp
import weft.scipy.special as special

mpmath.mp.dps = 400
FUNCTIONS = ("exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "sinh", "cosh", "tanh")
MODULE = types.SimpleNamespace(**{name: getattr(wnp, name) for name in FUNCTIONS}, erf=special.erf, erfc=special.erfc)
ROOT_2 = 1.4142135623730951
ROOT_2_PI = 2.5066282746310002
PI = 3.141592653589793
FAR = ((1e-30,), (1e-6,), (1e-3,), (-0.05,), (0.3,), (-3,), (1,), (30,), (90,), (1000,), (-90,), (-1000,))
NEAR = ((1e-30,), (1e-6,), (1e-3,), (0.05,), (-0.3,), (1,), (30,))
LARGE = ((1e-3,), (1,), (1e3,), (1e5,), (1e15,), (1e25,))
TAIL = ((-3,), (0.5,), (4.9,), (5.1,), (9,), (20,), (1e3,))
PLACED = ((1, 2, 0.5), (100, 2, 0.5), (-100, 2, 0.5), (1e4, 1, 2), (-1e4, 1, 2))
RATES = ((1e-30, 3), (100, 3), (30, 40), (200, 150))

# name: (formula of m, x, y, z; points)
FORMULAS = {
    # exp(x) - 1 below
    "bose": (lambda m, x: 1 / (m.exp(x) - 1), (*FAR[1:], (1e20,))),
    "bernoulli": (lambda m, x: x / (m.exp(x) - 1), FAR),
    "bernoulli of -x": (lambda m, x: x / (1 - m.exp(-x)), FAR),
    "bernoulli with exp": (lambda m, x: x * m.exp(x) / (m.exp(x) - 1), FAR),
    "negative bernoulli": (lambda m, x: x / (1 - m.exp(x)), FAR),
    "exp over exp - 1": (lambda m, x: m.exp(x) / (m.exp(x) - 1), FAR[1:]),
    "planck": (lambda m, x: x**3 / (m.exp(x) - 1), ((1e-10,), (1e-2,), (1,), (30,), (90,), (1e3,), (1e20,), (1e35,))),
    "planck of a temperature": (lambda m, x, y: x**3 / (m.exp(x / y) - 1), ((1, 1), (30, 2), (90, 0.5), (1e3, 1))),
    "(exp - 1)/x": (lambda m, x: (m.exp(x) - 1) / x, (*NEAR, (-90,), (-1e4,))),
    # logarithms
    "log sinh": (lambda m, x: m.log(m.sinh(x)), ((1e-30,), (0.5,), (0.88,), (2,), (90,), (1e4,))),
    "log sinh of exp": (lambda m, x: m.log((m.exp(x) - m.exp(-x)) / 2), ((1e-30,), (0.5,), (2,), (90,), (1e4,))),
    "log cosh": (lambda m, x: m.log(m.cosh(x)), ((1e-30,), (0.5,), (2,), (90,), (1e4,), (-90,))),
    "log tanh": (lambda m, x: m.log(m.tanh(x)), ((1e-30,), (0.5,), (2,), (9,), (90,), (1e4,))),
    "log of product": (lambda m, x, y: m.log(x * y), ((1e-30, 1e-30), (1e-30, 1e30), (1e30, 1e30), (3, 4))),
    "log of quotient": (lambda m, x, y: m.log(x / y), ((1e-30, 1e30), (1e30, 1e-30), (0.5, 0.50001), (3, 4))),
    "log of three": (lambda m, x, y, z: m.log(x * y * z), ((1e-30, 1e-30, 2), (1e30, 1e30, 1e-3), (3, 4, 5))),
    "log of two over one": (lambda m, x, y, z: m.log(x * y / z), ((1e-30, 1e-30, 2), (1e30, 1e30, 1e-3), (3, 4, 5))),
    "log of power": (lambda m, x, y: m.log(x**y), ((1e-30, 2.5), (1e30, 3.5), (1.0001, 3.3), (3, -40.5))),
    "log of square times": (lambda m, x, y: m.log(x**2 * y), ((1e-30, 2.5), (1e30, 3.5), (-1e-30, 3.3), (3, 4))),
    "log of sigmoids": (
        lambda m, x: (lambda s: m.log(s**3 * (1 - s)))(1 / (1 + m.exp(-x))),
        ((-100,), (-20,), (0.5,), (20,), (100,)),
    ),
    "log of a high power": (lambda m, x: m.log(x**20 * m.exp(-x)), ((1e20,), (1e-20,), (3,))),
    "log of a power below": (lambda m, x: m.log((1 + x * x / 3) ** -2), ((1e-8,), (0.3,), (2,), (1e15,))),
    # sums of exponentials
    "log of three exps": (
        lambda m, x: m.log(m.exp(x) + m.exp(x / 2) + m.exp(-x)),
        ((100,), (0.3,), (-100,), (1000,), (-1000,)),
    ),
    "log of three by letters": (
        lambda m, x, y, z: m.log(m.exp(x) + 2 * m.exp(y) + m.exp(z)),
        ((100, 100, 100), (1000, -1000, 3), (-1000, -1001, -999), (0.3, 0.2, 0.1)),
    ),
    "log of one and two exps": (lambda m, x: m.log(1 + m.exp(x) + m.exp(2 * x)), ((100,), (-30,), (-100,), (0.5,))),
    "log1p of exps": (lambda m, x, y: m.log1p(m.exp(x) + m.exp(y)), ((100, 90), (-30, -31), (-100, 100), (0.5, 0.5))),
    "log of a small share": (lambda m, x: m.log(1e-3 * m.exp(x) + m.exp(2 * x)), ((100,), (-1,), (-30,))),
    "log of a power of exp": (lambda m, x: m.log(m.exp(x) ** 2 + m.exp(x) * 3 + 5), ((100,), (-1,), (60,), (1,))),
    "log of a difference of exps": (
        lambda m, x, y: m.log(m.exp(x) - m.exp(y)),
        ((1000, 999), (1000, -1000), (-999, -1000), (0.5, 0.4999), (3, 1)),
    ),
    "root as a power": (lambda m, x: (x * x + 16) ** 0.5, ((1e-10,), (0.3,), (5,), (1000,), (-1e5,))),
    "inverse root as a power": (lambda m, x: (1 + x * x) ** -0.5, ((1e-10,), (0.3,), (5,), (1000,), (-1e5,))),
    "log cosh by hand": (
        lambda m, x: x + m.log(1 + m.exp(-2 * x)) - math.log(2),
        ((1e-4,), (-1e-4,), (0.3,), (-3,), (90,), (-90,)),
    ),
    "log mixture": (
        lambda m, x: m.log(0.25 * m.exp(-x * x / 2) + 0.75 * m.exp(-((x - 4) ** 2) / 2)),
        ((-30,), (1,), (30,), (100,)),
    ),
    "quotient by reciprocal": (
        lambda m, x: m.exp(x) * (1 / (1 + m.exp(x))),
        ((100,), (-100,), (1,), (-1000,)),
    ),
    "sigmoid as a power": (lambda m, x: (1 + m.exp(-x)) ** -1, ((100,), (-80,), (1,), (-1000,), (1000,))),
    "log poisson": (lambda m, x, y: m.log(m.exp(-x) * x**y), RATES),
    "log poisson over factorial": (lambda m, x, y: m.log(x**y * m.exp(-x) / 6), RATES),
    "log gamma density": (lambda m, x, y: m.log(x ** (y - 1) * m.exp(-x)), RATES),
    "log(1 + x) - log(1 + 2x)": (
        lambda m, x: m.log(1 + x) - m.log(1 + 2 * x),
        ((1e-10,), (0.3,), (3,), (1e8,), (1e15,)),
    ),
    "log(1 + 3x) - log(1 + x)": (
        lambda m, x: m.log(1 + 3 * x) - m.log(1 + x),
        ((1e-10,), (0.3,), (3,), (1e8,), (1e15,)),
    ),
    "log(1 + 3x) - log(1 + 2x)": (
        lambda m, x: m.log(1 + 3 * x) - m.log(1 + 2 * x),
        ((1e-10,), (0.3,), (3,), (1e8,), (1e15,)),
    ),
    "log(3 (1 + x^2))": (lambda m, x: m.log(3 * (1 + x**2)), LARGE),
    "log(1 + x^2)": (lambda m, x: m.log(1 + x**2), LARGE),
    "log((x + 1)/x)": (lambda m, x: m.log((x + 1) / x), ((0.3,), (3,), (1e8,), (1e20,))),
    "log(x + 2) - log(x)": (lambda m, x: m.log(x + 2) - m.log(x), ((0.3,), (3,), (1e8,), (1e20,))),
    "log(x) - log(x + 2)": (lambda m, x: m.log(x) - m.log(x + 2), ((0.3,), (3,), (1e8,), (1e20,))),
    "log(x + 2) - log(x + 1)": (lambda m, x: m.log(x + 2) - m.log(x + 1), ((0.3,), (3,), (1e8,), (1e20,))),
    "log(1 + x) - log(x + 2)": (lambda m, x: m.log(1 + x) - m.log(x + 2), ((0.3,), (3,), (1e8,), (1e20,))),
    "log(x + 3) - log(x + 2)": (lambda m, x: m.log(x + 3) - m.log(x + 2), ((0.3,), (3,), (1e8,), (1e20,))),
    "asinh of 2 x by hand": (lambda m, x: m.log(2 * x + m.sqrt(4 * x * x + 1)), ((1e-8,), (1e-4,), (0.3,), (3,))),
    "log(1 + x)/x": (lambda m, x: m.log(1 + x) / x, NEAR),
    "x/log(1 + x)": (lambda m, x: x / m.log(1 + x), NEAR),
    "student": (lambda m, x, y: -(y + 1) / 2 * m.log(1 + x**2 / y), ((1e-5, 3), (1, 3), (1e10, 3), (1e25, 3))),
    "log bernoulli": (
        lambda m, x, y: y * m.log(x) + (1 - y) * m.log(1 - x),
        ((1e-30, 0), (1e-40, 0), (1e-30, 1), (0.3, 1), (0.3, 0), (0.7, 0.5), (0.9999999, 0)),
    ),
    "x log x": (lambda m, x: x * m.log(x), ((1e-40,), (1e-30,), (0.3,), (1,), (1e30,))),
    "x log y": (lambda m, x, y: x * m.log(y), ((1e-10, 1e-40), (1e-40, 1e-40), (1, 2), (3, 1e30))),
    # the error function
    "exp(x^2) erfc(x)": (lambda m, x: m.exp(x**2) * m.erfc(x), TAIL),
    "exp(x^2) (1 - erf(x))": (lambda m, x: m.exp(x * x) * (1 - m.erf(x)), TAIL[:-1]),
    "hazard": (lambda m, x: m.exp(-x * x / 2) / m.erfc(x / ROOT_2), TAIL[:-1]),
    "hazard of density": (lambda m, x: m.exp(-0.5 * x**2) / ROOT_2_PI / (0.5 * m.erfc(x / ROOT_2)), TAIL[:-1]),
    "hazard of minus a square": (
        lambda m, x: m.exp(-x * x / 2) / ROOT_2_PI / (0.5 * m.erfc(x / ROOT_2)),
        TAIL[:-1],
    ),
    "mills ratio": (lambda m, x: 1.2533141373155003 * m.exp(x * x / 2) * m.erfc(x / ROOT_2), TAIL[:-1]),
    # hyperbolic functions
    "sech": (lambda m, x: 1 / m.cosh(x), ((0,), (1e-3,), (1,), (60,), (-90,), (1e4,))),
    "sech of exp": (lambda m, x: 2 / (m.exp(x) + m.exp(-x)), ((1e-3,), (1,), (60,), (-90,), (1e4,))),
    "sech squared": (lambda m, x: 1 / m.cosh(x) ** 2, ((1e-3,), (1,), (30,), (-90,), (1e4,))),
    "csch": (lambda m, x: 1 / m.sinh(x), ((1e-3,), (1,), (60,), (-90,), (1e4,))),
    "x/sinh": (lambda m, x: x / m.sinh(x), (*NEAR, (-90,), (1e4,))),
    "x/tanh": (lambda m, x: x / m.tanh(x), (*NEAR, (-90,), (1e4,))),
    "coth - 1/x": (lambda m, x: 1 / m.tanh(x) - 1 / x, ((1e-4,), (0.1,), (0.29,), (0.31,), (5,), (-5,), (1e4,))),
    "tanh/x": (lambda m, x: m.tanh(x) / x, (*NEAR, (1e4,))),
    "sinh/x": (lambda m, x: m.sinh(x) / x, NEAR),
    "(1 - cos)/x^2": (lambda m, x: (1 - m.cos(x)) / x**2, ((1e-15,), (1e-3,), (0.05,), (-0.3,), (1,), (30,))),
    # densities
    "logistic density": (
        lambda m, x, y, z: m.exp(-(x - y) / z) / (z * (1 + m.exp(-(x - y) / z)) ** 2),
        PLACED,
    ),
    "logistic density, factor": (
        lambda m, x, y, z: 1 / z * m.exp(-(x - y) / z) / (1 + m.exp(-(x - y) / z)) ** 2,
        PLACED,
    ),
    "cauchy density": (
        lambda m, x, y, z: 1 / (PI * z * (1 + ((x - y) / z) ** 2)),
        ((1, 2, 0.5), (1e25, 1, 1), (1e15, 1, 1), (-1e12, 3, 2)),
    ),
    "cauchy": (lambda m, x: 1 / (PI * (1 + x**2)), LARGE),
    "bernoulli density": (
        lambda m, x, y: x**y * (1 - x) ** (1 - y),
        ((1e-30, 0), (1e-40, 0), (0, 0), (0, 1), (1, 1), (1, 0), (1e-30, 1), (0.3, 1), (0.3, 0), (0.7, 0.5)),
    ),
    "gelu": (
        lambda m, x: 0.5 * x * (1 + m.tanh(0.7978845608028654 * (x + 0.044715 * x**3))),
        ((1e-5,), (1,), (-4,), (12,), (100,), (-100,), (1e10,), (1e20,), (-1e20,)),
    ),
    # squares and roots
    "1/(1 + x^2)^2": (lambda m, x: 1 / (1 + x**2) ** 2, LARGE),
    "1/(1 + x^2)^3": (lambda m, x: 1 / (1 + x**2) ** 3, LARGE),
    "1/(1 + x^4)": (lambda m, x: 1 / (1 + x**4), LARGE),
    "x/sqrt(1 + x^2)": (lambda m, x: x / m.sqrt(1 + x**2), LARGE[:3]),
    "x^2 - y^2": (lambda m, x, y: x**2 - y**2, ((1e25, 1e25), (1e25, -1e25), (1e4, 1.0001e4), (1e-3, 1e3))),
    "hypot": (lambda m, x, y: m.sqrt(x**2 + y**2), ((1e-25, 1e-25), (1e-25, 2e-25), (3, 4), (1e25, 1e25))),
    "root of three squares": (
        lambda m, x, y, z: m.sqrt(x * x + y**2 + z * z),
        ((1e-25, 1e-25, 2e-25), (3, 4, 12), (1e25, 2e25, 1e20), (1e-3, 1, 1e3)),
    ),
    "sqrt(x + y) - sqrt(x)": (
        lambda m, x, y: m.sqrt(x + y) - m.sqrt(x),
        ((1, 1e-6), (1e10, 3), (3, 1e10), (1e-30, 1), (1e38, 1), (2, -1.5)),
    ),
    "sqrt(x) - sqrt(x - y)": (lambda m, x, y: m.sqrt(x) - m.sqrt(x - y), ((1, 1e-6), (1e10, 3), (1e38, 1), (2, 1.5))),
    "sqrt(x) - sqrt(x + 1)": (lambda m, x: m.sqrt(x) - m.sqrt(x + 1), ((1e-5,), (3,), (1e10,), (1e20,))),
    "sqrt(x) - sqrt(x - 1)": (lambda m, x: m.sqrt(x) - m.sqrt(x - 1), ((1.5,), (3,), (1e10,))),
    "sqrt(x - 1) - sqrt(x)": (lambda m, x: m.sqrt(x - 1) - m.sqrt(x), ((1.5,), (3,), (1e10,))),
    "sqrt(x^2 + 5) - sqrt(x^2 + 2)": (
        lambda m, x: m.sqrt(x * x + 5) - m.sqrt(x * x + 2),
        ((1e-3,), (3,), (1e5,), (1e15,)),
    ),
    "exp - x - 1": (lambda m, x: m.exp(x) - x - 1, ((1e-3,), (-0.05,), (1,), (30,))),
    "sqrt(x + 2) - sqrt(x + 1)": (lambda m, x: m.sqrt(x + 2) - m.sqrt(x + 1), ((1e-5,), (1e5,), (1e15,))),
}
ORDERS = ("value", "first", "second")


def digit(x) -> float:
    """A unit in the last place of f32."""
    return math.ldexp(1.0, max(math.frexp(float(x))[1], -125) - 24) if x else math.ldexp(1.0, -149)


def exact(formula, point, letter: int) -> Series | None:
    """The value and its derivatives by one of the letters; None where there is no value."""
    try:
        made = formula(exact_series, *(Series(v, 1 if i == letter else 0) for i, v in enumerate(point)))
    except (ZeroDivisionError, ValueError, TypeError, OverflowError):
        return None
    return made if all(isinstance(getattr(made, order), mpmath.mpf) for order in ORDERS) else None


def allowed(formula, point, letter: int) -> list[tuple]:
    """(exact value, how far a result may be off) of each order; (None, None) where there is none of f32."""
    truth = exact(formula, point, letter)
    if truth is None:
        return [(None, None)] * 3
    near = []
    for i, v in enumerate(point):
        for steps in (-4, -2, 2, 4):
            moved = [*point]
            moved[i] = v + steps * digit(abs(v))
            near.append(exact(formula, moved, letter))
    found: list[tuple] = []
    for order in ORDERS:
        value = getattr(truth, order)
        if not mpmath.isfinite(value) or abs(value) > np.finfo(np.float32).max:
            found.append((None, None))
            continue
        others = [getattr(n, order) for n in near if n is not None and mpmath.isfinite(getattr(n, order))]
        found.append((value, 8 * digit(abs(value)) + max((abs(o - value) for o in others), default=0)))
    return found


CASES = [(name, letter) for name, (_, points) in FORMULAS.items() for letter in range(len(points[0]))]


@pytest.mark.parametrize(("name", "letter"), CASES, ids=[f"{name}, by {'xyz'[letter]}" for name, letter in CASES])
def test_values_and_derivatives_over_the_whole_range(name, letter):
    formula, given = FORMULAS[name]

    def f(*x):
        return formula(MODULE, *x)

    gradient = weft.grad(f, argnums=letter)
    points = [[np.float32(v) for v in point] for point in given]
    columns = [np.array(column, np.float32) for column in zip(*points)]
    truths = [allowed(formula, [float(v) for v in point], letter) for point in points]
    wrong = []
    for order, function in enumerate((f, gradient, weft.grad(gradient, argnums=letter))):
        alone = weft.jit(function)
        found = {
            "alone": [float(alone(*point)) for point in points],
            "vmap": np.asarray(weft.jit(weft.vmap(function))(*columns)),
        }
        if order == 0:
            found["array"] = np.asarray(weft.jit(f)(*columns))
        if order == 1:
            of_sum = weft.grad(lambda *x: f(*x).sum(), argnums=letter)
            found["array"] = np.asarray(weft.jit(of_sum)(*columns))
        for how, values in found.items():
            for point, got, truth in zip(points, values, truths):
                value, within = truth[order]
                if value is None:
                    continue
                if not math.isfinite(got) or abs(mpmath.mpf(float(got)) - value) > within:
                    wrong.append(f"{ORDERS[order]}, {how}, at {point}: {got}, exactly {mpmath.nstr(value, 9)}")
    assert not wrong, "\n".join(wrong)
