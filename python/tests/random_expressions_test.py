"""Random expressions of three arrays, one operation after the other, compiled, and inside of vmap and scan: each result
is as near to the exact one as any order of the roundings is. Gradients of smooth ones against differences.

    python random_expressions_test.py float32 7 600      # the seventh seed, for ten minutes

runs more of them and prints what differs.
"""

from __future__ import annotations

import random
import re
import sys
import time

import ml_dtypes
import numpy as np
import pytest
from random_expressions import evaluate, expression, truth

import weft
import weft.numpy as wnp

DTYPES = ("float32", "float64", "float16", "complex64", "complex128", "int32", "int64", "int8")
COUNT = 200
ROWS, COLUMNS = 5, 64
SHAPES = {"x": (ROWS, COLUMNS), "y": (COLUMNS,), "z": (ROWS, 1)}


def operands(dtype: str, rng: np.random.Generator, shapes: dict = SHAPES) -> dict[str, np.ndarray]:
    kind = np.dtype(dtype).kind

    def draw(shape):
        if kind == "i":
            return rng.integers(-50, 50, shape)
        v = 2 * rng.standard_normal(shape)
        return v + 2j * rng.standard_normal(shape) if kind == "c" else v

    return {name: draw(shape).astype(dtype) for name, shape in shapes.items()}


def over_rows(f):
    """f of each row: alike unless it reads several."""
    return lambda x, y, z: weft.vmap(f, in_axes=(0, None, 0))(x, y, z)


def in_a_loop(f):
    return lambda x, y, z: weft.scan(lambda carry, row: (carry, f(row[0], y, row[1])), 0.0, (x, z))[1]


WAYS = {
    "outside jit": lambda f: f,
    "jit": weft.jit,
    "jit of vmap": lambda f: weft.jit(over_rows(f)),
    "jit of scan": lambda f: weft.jit(in_a_loop(f)),
}


def expected(text: str, dtype: str, arrays: dict[str, np.ndarray]):
    """What the expression is, and how far from it a result may be: nan for any."""
    if np.dtype(dtype).kind == "i":
        with np.errstate(all="ignore"):
            exact = evaluate(text, np, arrays, np.dtype(dtype).type)
        return exact, np.zeros(exact.shape)
    info = ml_dtypes.finfo(dtype)
    exact, spread = truth(text, dtype, arrays)
    with np.errstate(all="ignore"):
        size = np.abs(exact)
        known = np.isfinite(exact) & (size < float(info.max) / 8) & (spread < 0.05 * size + float(info.tiny))
        return exact, np.where(known, 3 * spread + 6 * float(info.eps) * size + 4 * float(info.tiny), np.nan)


def differences(text: str, dtype: str, arrays: dict[str, np.ndarray]) -> list[str]:
    """What is wrong about the expression, in words. Raises LookupError where it is not of the dtype."""
    f = lambda x, y, z: evaluate(text, wnp, {"x": x, "y": y, "z": z}, lambda v: v)
    exact, allowed = expected(text, dtype, arrays)
    wrong = []
    for way, transform in WAYS.items():
        if "axis=0" in text and "of" in way:
            continue
        result = np.asarray(transform(f)(*map(wnp.asarray, arrays.values())))
        if result.dtype != dtype:
            raise LookupError(text)
        if result.shape != exact.shape and way in ("outside jit", "jit"):
            wrong.append(f"{way}: {text} has shape {result.shape}, not {exact.shape}")
            continue
        with np.errstate(all="ignore"):
            off = np.abs(result.astype(exact.dtype) - exact)
        bad = ~((off <= allowed) | np.isnan(allowed))
        if bad.any():
            at = tuple(int(i[0]) for i in np.nonzero(bad))
            at_operands = {
                name: v[tuple(i if n > 1 else 0 for i, n in zip(at[len(at) - v.ndim :], v.shape, strict=True))]
                for name, v in arrays.items()
                if len(at) == 2
            }
            value = np.broadcast_to(exact, bad.shape)[at]
            got = np.broadcast_to(result, bad.shape)[at]
            wrong.append(f"{way}: {text} is {got}, exactly {value}, for {at_operands} and {bad.sum() - 1} others")
    return wrong


def expressions(kind: str, seed: int):
    r = random.Random(seed)
    while True:
        text = expression(r, kind, r.randint(2, 4))
        if re.search(r"\b[xyz]\b", text):
            yield text


def run(dtype: str, seed: int, count: float, seconds: float = np.inf) -> tuple[int, list[str]]:
    arrays, wrong, n = operands(dtype, np.random.default_rng(seed)), [], 0
    until = time.monotonic() + seconds
    for text in expressions(np.dtype(dtype).kind, seed):
        if n >= count or time.monotonic() > until:
            return n, wrong
        try:
            wrong += differences(text, dtype, arrays)
            n += 1
        except LookupError:
            continue
    raise AssertionError


@pytest.mark.parametrize("dtype", DTYPES)
def test_values(dtype: str) -> None:
    count, wrong = run(dtype, seed=0, count=COUNT)
    assert count == COUNT
    assert not wrong, "\n".join(wrong)


def slopes(f, x, order: int):
    """The derivative by central differences, in the dtype of x, and whether two steps agree on it."""
    step = np.maximum(1, np.abs(x)) * x.dtype.type(1e-5 if order == 1 else 2e-4)

    def by(h):
        if order == 1:
            return (f(x + h) - f(x - h)) / (2 * h)
        return (f(x + h) - 2 * f(x) + f(x - h)) / h**2

    coarse, fine = by(step), by(step / 2)
    return (4 * fine - coarse) / 3, np.abs(fine - coarse) <= 1e-6 * np.abs(fine) + 1e-9


@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_of_smooth_expressions(order: int) -> None:
    """Reverse and forward mode, outside of jit, compiled, and under vmap."""
    arrays = operands("float64", np.random.default_rng(1), dict.fromkeys("xyz", (4, 16)))
    x, y, z = arrays.values()
    wide = np.longdouble
    checked = 0
    for text, _ in zip(expressions("s", order), range(60)):
        if not re.search(r"\bx\b", text):
            continue
        with np.errstate(all="ignore"):
            exact = lambda x, text=text: evaluate(text, np, {"x": x, "y": y.astype(wide), "z": z.astype(wide)}, wide)
            derivative, sure = slopes(exact, x.astype(wide), order)
            value = exact(x.astype(wide))
            sure &= np.isfinite(derivative) & (np.abs(derivative) < 1e6) & (np.abs(value) < 1e6)
        f = lambda x, y, z, text=text: evaluate(text, wnp, {"x": x, "y": y, "z": z}, lambda v: v)
        reverse, forward = f, f
        for _ in range(order):  # elements do not meet: a sum's gradient is what each is alone
            reverse = weft.grad(lambda x, y, z, g=reverse: wnp.sum(g(x, y, z)))
            forward = lambda x, y, z, g=forward: weft.jvp(lambda x: g(x, y, z), (x,), (wnp.ones_like(x),))[1]
        ways = {
            "reverse": reverse,
            "jit of reverse": weft.jit(reverse),
            "jit of vmap of reverse": weft.jit(weft.vmap(reverse)),
            "forward": forward,
            "jit of forward": weft.jit(forward),
            "jit of vmap of forward": weft.jit(weft.vmap(forward)),
        }
        for way, g in ways.items():
            found = np.asarray(g(x, y, z)).astype(wide)
            off = np.abs(found - derivative)
            bad = sure & ~(off <= 1e-5 * np.abs(derivative) + 1e-6 * (1 + np.abs(value)))
            assert not bad.any(), (
                f"{way} of order {order}: {text}: {found[bad][0]}, by differences {derivative[bad][0]}"
            )
        checked += int(sure.sum())
    assert checked > 1000


if __name__ == "__main__":
    done, found = run(sys.argv[1], int(sys.argv[2]), np.inf, float(sys.argv[3]))
    print("\n".join(found))
    print(f"{done} expressions, {len(found)} differences")
