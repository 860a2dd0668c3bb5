"""Random expressions of arrays as texts, and what they are in wider arithmetic that rounds at random.

An expression is a text over `np`, the operands `x`, `y`, `z` and numbers `c(0.59)`: one text for weft.numpy and for the
oracle. The oracle computes in a wider dtype and moves each result by a few units in the last place of the narrow one,
at random (D. S. Parker, Monte Carlo Arithmetic, 1997): what several runs have in common is what any order of roundings
has in common, and their spread is what an implementation may be off by.
"""

from __future__ import annotations

import functools
import random
import re

import ml_dtypes
import numpy as np

NUMBERS = ("0.1", "0.59", "0.3333333333333333", "2.0", "0.5", "3.3", "1.0", "-0.7", "3.141592653589793", "1e-3", "10.0")
REAL = [
    "sqrt", "exp", "log", "sin", "cos", "tanh", "absolute", "floor", "square", "log1p", "expm1", "negative", "round",
    "sign", "reciprocal", "arctan", "sinh", "cosh", "ceil", "trunc", "arcsinh", "exp2", "log2", "cbrt",
]  # fmt: skip
SMOOTH = ["exp", "sin", "cos", "tanh", "square", "expm1", "arctan", "sinh", "arcsinh", "negative"]
COMPLEX = ["sqrt", "exp", "log", "sin", "cos", "tanh", "square", "negative", "reciprocal", "conj", "sinh"]
REDUCTIONS = (
    "np.sum({}, axis=-1, keepdims=True)",
    "np.max({}, axis=0, keepdims=True)",
    "np.mean({}, axis=-1, keepdims=True)",
)
REAL_PAIRS = (
    "({} + {})", "({} - {})", "({} * {})", "({} / {})", "({} % {})", "({} // {})", "np.maximum({}, {})",
    "np.minimum({}, {})", "np.power(np.absolute({}), {})", "np.fmod({}, {})", "np.hypot({}, {})", "np.arctan2({}, {})",
    "np.logaddexp({}, {})", "np.copysign({}, {})", "np.heaviside({}, {})",
)  # fmt: skip
SMOOTH_PAIRS = (
    "({} + {})", "({} - {})", "({} * {})", "({} / (np.square({}) + 1))", "np.log1p(np.square({}) * np.exp({}))",
    "np.logaddexp({}, {})", "np.hypot(np.cosh({}), {})", "np.arctan2({}, np.exp({}))",
    "np.sqrt(np.exp({}) + np.square({}))",
)  # fmt: skip
COMPLEX_PAIRS = ("({} + {})", "({} - {})", "({} * {})", "({} / {})")
INTEGERS = ("np.absolute({})", "np.negative({})", "np.sign({})", "np.square({})", "(~{})")
INTEGER_PAIRS = (
    "({} + {})", "({} - {})", "({} * {})", "({} // ({} | 1))", "({} % ({} | 1))", "({} & {})", "({} | {})", "({} ^ {})",
    "np.maximum({}, {})", "np.minimum({}, {})", "({} << ({} & 7))", "({} >> ({} & 7))", "np.fmod({}, ({} | 1))",
)  # fmt: skip
CHOICES = ("np.where({0} < {1}, {2}, {0})", "np.where({0} > {1}, {1}, {2} + {0})", "np.clip({}, {}, {})")


def expression(r: random.Random, kind: str, depth: int) -> str:
    """A text: of kind 'f', 'c' or 'i' as in numpy.dtype.kind, or 's', smooth functions of floats."""
    if depth == 0:
        number = "c({})".format(r.choice(NUMBERS) if kind != "i" else r.choice(("1", "2", "3", "7", "-5", "16")))
        return r.choice(["x", "x", "y", "y", "z", number])

    def array(depth: int) -> str:
        # Of numbers alone Python makes a number, in its own arithmetic.
        while not re.search(r"\b[xyz]\b", text := expression(r, kind, depth)):
            pass
        return text

    deep = array(depth - 1)
    side = lambda: expression(r, kind, r.randint(0, depth - 1))
    draw = r.random()
    if draw < 0.4:
        if kind == "i":
            return r.choice(INTEGERS).format(deep)
        if kind == "f" and r.random() < 0.1:
            return r.choice(REDUCTIONS).format(deep)
        return f"np.{r.choice({'f': REAL, 'c': COMPLEX, 's': SMOOTH}[kind])}({deep})"
    if draw < 0.5 and kind in "fi":
        return r.choice(CHOICES).format(deep, side(), side())
    pair = r.choice({"f": REAL_PAIRS, "c": COMPLEX_PAIRS, "i": INTEGER_PAIRS, "s": SMOOTH_PAIRS}[kind])
    operands = [deep, side()]
    return pair.format(*(operands if "absolute" in pair else r.sample(operands, 2)))


WIDER = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "float64": "longdouble"}
WIDER |= {"complex64": "complex128", "complex128": "clongdouble"}


class Noisy:
    """An array of a wider dtype whose results are moved by a few units in the last place of a narrow one. `doubtful`
    are elements that implementations may disagree on: they overflow the narrow dtype on the way, or underflow, or are
    made from the sign of what is not a number."""

    __array_ufunc__ = None

    def __init__(self, value, noise, doubtful=False):
        self.value, self.noise, self.doubtful = value, noise, doubtful


def bare(v):
    return v.value if isinstance(v, Noisy) else v


def doubts(v):
    return v.doubtful if isinstance(v, Noisy) else False


# Functions whose results are whole where that is what they are, and not by rounding.
EXACT = {
    "add", "subtract", "multiply", "divide", "remainder", "floor_divide", "fmod", "square", "negative", "absolute",
    "sign", "round", "floor", "ceil", "trunc", "heaviside", "maximum", "minimum", "where", "clip", "copysign",
}  # fmt: skip


def apply(function, *operands, **attributes):
    value = function(*map(bare, operands), **attributes)
    doubtful = np.array(functools.reduce(np.logical_or, map(doubts, operands)))
    if attributes and doubtful.ndim:  # of a reduction
        doubtful = np.any(doubtful, **attributes)
    noise = next(v.noise for v in operands if isinstance(v, Noisy))
    return noise(value, doubtful, function.__name__ in EXACT)


def operator(name, mirrored=False):
    function = getattr(np, name)
    return lambda a, b: apply(function, b, a) if mirrored else apply(function, a, b)


ARITHMETIC = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "mod": "remainder"}
for symbol, name in {**ARITHMETIC, "floordiv": "floor_divide"}.items():
    setattr(Noisy, f"__{symbol}__", operator(name))
    setattr(Noisy, f"__r{symbol}__", operator(name, mirrored=True))
Noisy.__lt__, Noisy.__gt__ = operator("less"), operator("greater")


class NoisyNumpy:
    """numpy's functions, for Noisy arrays."""

    def __getattr__(self, name):
        function = getattr(np, name)
        return lambda *operands, **attributes: apply(function, *operands, **attributes)

    # Each term is rounded, and so is each sum of some of them.
    def sum(self, a, **attributes):
        return apply(np.sum, a.noise(a.value, a.doubtful), **attributes)

    def mean(self, a, **attributes):
        return apply(np.mean, a.noise(a.value, a.doubtful), **attributes)

    def logaddexp(self, a, b):
        return self.maximum(a, b) + self.log1p(self.exp(self.negative(self.absolute(self.subtract(a, b)))))

    def copysign(self, a, b):
        found = apply(np.copysign, a, b)
        return Noisy(found.value, found.noise, found.doubtful | np.isnan(bare(b)))


def noise_of(dtype: str, rng: np.random.Generator, units: float | None):
    """Moves by at most `units`; where that is None, rounds to the narrow dtype."""
    info = ml_dtypes.finfo(dtype)
    eps, least, most = float(info.eps), float(info.tiny), float(info.max)

    def noise(v, doubtful, exact=False):
        v = np.asarray(v)
        if v.dtype == bool:
            return Noisy(v, noise, doubtful)
        size = np.abs(v)
        doubtful = doubtful | (size > most) | ((size < least) & (size > 0))
        if units is None:
            return Noisy(v.astype(dtype).astype(v.dtype), noise, doubtful)
        by = lambda: units * rng.uniform(-1, 1, v.shape)
        if v.dtype.kind == "c":
            return Noisy(v + size * eps * (by() + 1j * by()), noise, doubtful)
        # A rewrite may change the sign of a zero.
        whole = exact & (v == np.round(v)) & (size < 3)
        moved = np.where(whole, v, v + size * eps * by().astype(v.dtype))
        moved = np.where((v == 0) & (by() < 0), -v, moved)
        return Noisy(np.where(size > most, np.sign(v) * np.inf, moved), noise, doubtful)

    return noise


def evaluate(text: str, np_, operands: dict, number):
    """The expression, with the functions of np_ and number(v) for each number."""
    return eval(text, {"np": np_, "c": number, **operands})


def truth(text: str, dtype: str, operands: dict[str, np.ndarray], runs: int = 12, units: float = 3.0):
    """The expression in wider arithmetic, and how far others are from it that round at random: nan for elements that
    are doubtful."""
    wide = np.dtype(WIDER[dtype])
    number = lambda v: wide.type(np.dtype(dtype).type(v))
    rng, found = np.random.default_rng(0), []
    with np.errstate(all="ignore"):
        for size in [0.0, None] + [units] * runs:
            noise = noise_of(dtype, rng, size)
            noisy = {name: Noisy(v.astype(wide), noise) for name, v in operands.items()}
            found.append(evaluate(text, NoisyNumpy(), noisy, number))
        doubtful = functools.reduce(np.logical_or, map(doubts, found))
        exact, *others = map(bare, found)
        spread = np.max([np.abs(v - exact) for v in others], axis=0)
    return exact, np.where(doubtful, np.nan, spread)
