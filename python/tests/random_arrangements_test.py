"""Random programs of functions, sums and other arrangements of dimensions, on arrays whose dimensions are all of one
size: a rule that takes one dimension for another finds no error of shapes there. NumPy in f64 is right.

More of them: `python random_arrangements_test.py 7 5000` runs 5,000 from seed 7 on.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import weft
import weft.numpy as wnp

N = 3
COUNT = 400

# What one value becomes; `np` is NumPy or weft.numpy, `k` a random number.
OF_ONE: list[tuple[int, Callable]] = [
    (6, lambda np, a, k: np.exp(a)),
    (4, lambda np, a, k: np.log(a)),
    (3, lambda np, a, k: np.sqrt(a)),
    (3, lambda np, a, k: a * a),
    (1, lambda np, a, k: a**2),
    (1, lambda np, a, k: -a),
    (1, lambda np, a, k: 1 / a),
    (1, lambda np, a, k: np.log1p(a)),
    (1, lambda np, a, k: np.tanh(a)),
    (1, lambda np, a, k: np.maximum(a, 0.5)),
    (1, lambda np, a, k: a * 0.5),
    (1, lambda np, a, k: 1 + a),
    (5, lambda np, a, k: np.sum(a, axis=k % a.ndim) if a.ndim else a),
    (3, lambda np, a, k: np.sum(a, axis=k % a.ndim, keepdims=True) if a.ndim else a),
    (3, lambda np, a, k: np.mean(a, axis=k % a.ndim) if a.ndim else a),
    (1, lambda np, a, k: np.max(a, axis=k % a.ndim) if a.ndim else a),
    (1, lambda np, a, k: np.prod(a, axis=k % a.ndim) if a.ndim else a),
    (1, lambda np, a, k: np.sum(a)),
    (2, lambda np, a, k: a.T),
    (2, lambda np, a, k: a[:, None] if a.ndim == 1 else a),
    (2, lambda np, a, k: a[None] if a.ndim == 1 else a),
    (1, lambda np, a, k: a[::-1] if a.ndim else a),
    (1, lambda np, a, k: np.cumsum(a, axis=k % a.ndim) if a.ndim else a),
    (1, lambda np, a, k: a.reshape(-1)[:N] if a.size >= N else a),
    (1, lambda np, a, k: np.broadcast_to(a, (N, N)) if a.ndim else a),
    (1, lambda np, a, k: a[k % N] if a.ndim and len(a) == N else a),
]


def arranged(a, k):
    """A vector along the last dimension, or along the first."""
    return a[:, None] if a.ndim == 1 and k % 2 else a


# Forms that rules look for, with the sum along any dimension.
OF_ONE += [
    (3, lambda np, a, k: a / arranged(np.sum(a, axis=k % a.ndim), k // 2) if a.ndim else a),
    (2, lambda np, a, k: np.exp(a) / arranged(np.sum(np.exp(a), axis=k % a.ndim), k // 2) if a.ndim else a),
    (1, lambda np, a, k: np.exp(a) * arranged(1 / np.sum(np.exp(a.T), axis=k % a.ndim), k // 2) if a.ndim else a),
    (1, lambda np, a, k: np.mean(a * a, axis=0) - arranged(np.mean(a, axis=k % a.ndim) ** 2, k // 2) if a.ndim else a),
    (1, lambda np, a, k: a / arranged(np.sqrt(np.sum(a * a, axis=k % a.ndim)), k // 2) if a.ndim else a),
    (1, lambda np, a, k: a - arranged(np.max(a, axis=k % a.ndim), k // 2) if a.ndim else a),
]
# What two values become. They broadcast, as NumPy has it: a vector lies along the last dimension.
OF_TWO: list[tuple[int, Callable]] = [
    (6, lambda np, a, b, k: a / b),
    (4, lambda np, a, b, k: a * b),
    (4, lambda np, a, b, k: a + b),
    (4, lambda np, a, b, k: a - b),
    (1, lambda np, a, b, k: np.where(np.asarray(MASK), a, 0) + 0 * b),
    (1, lambda np, a, b, k: np.maximum(a, b)),
    (2, lambda np, a, b, k: a @ b if a.ndim and b.ndim and a.shape[-1] == b.shape[0] == N else a * b),
    (1, lambda np, a, b, k: np.einsum("ij,i->ij", a, b) if (a.shape, b.shape) == ((N, N), (N,)) else a - b),
    (1, lambda np, a, b, k: np.einsum("ij,ij->j", a, b) if (a.shape, b.shape) == ((N, N), (N, N)) else a - b),
]
MASK = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 1]], bool)


def drawn(rng: np.random.Generator) -> Callable:
    """f(np, x, y): a dozen operations, each on values made before, the last ones first of all."""
    steps = []
    for i in range(int(rng.integers(4, 14))):
        pick = lambda i=i: int(max(rng.integers(0, i + 2), rng.integers(0, i + 2)))
        k = int(rng.integers(0, 4))
        if rng.random() < 0.65:
            weights = np.array([w for w, _ in OF_ONE], float)
            op = OF_ONE[rng.choice(len(OF_ONE), p=weights / weights.sum())][1]
            steps.append((op, (pick(),), k))
        else:
            weights = np.array([w for w, _ in OF_TWO], float)
            op = OF_TWO[rng.choice(len(OF_TWO), p=weights / weights.sum())][1]
            steps.append((op, (pick(), pick()), k))

    def f(np, x, y):
        values = [x, y]
        for op, of, k in steps:
            values.append(op(np, *(values[i] for i in of), k))
        return values[-1]

    return f


def difference(seed: int) -> str:
    """What is wrong with the compiled program of this seed; nothing where rounding would explain more."""
    rng = np.random.default_rng(seed)
    f = drawn(rng)
    x, y = rng.uniform(0.2, 2, (2, N, N)).astype(np.float32)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        want = np.asarray(f(np, x.astype(float), y.astype(float)))
        moved = [np.asarray(f(np, x * (1 + s * 1e-6), y * (1 - s * 1e-6))) for s in (1.0, -1.0, 0.5)]
    if want.dtype != np.float64:
        return ""
    got = np.asarray(weft.jit(lambda x, y: f(wnp, x, y))(x, y), np.float64)
    if got.shape != want.shape:
        return f"seed {seed}: shape {got.shape}, not {want.shape}"
    with np.errstate(all="ignore"):
        known = np.isfinite(want) & (np.abs(want) < 1e30) & np.isfinite(moved).all(0)
        bound = 1e-4 * np.abs(want) + 1e-5 + 100 * np.abs(np.array(moved) - want).max(0)
        wrong = known & ~(np.abs(got - want) <= bound)
    if wrong.any():
        return f"seed {seed}: {got[wrong]}, not {want[wrong]}"
    return slope_difference(seed, f, x, y) if known.all() else ""


def slope_difference(seed: int, f: Callable, x: np.ndarray, y: np.ndarray) -> str:
    """The same of the derivative in one direction, where central differences with several steps agree."""
    direction = np.random.default_rng(seed).normal(size=x.shape)
    wide = x.astype(float)
    along = lambda h: f(np, wide + h * direction, y.astype(float)).sum()
    with np.errstate(all="ignore"):
        slopes = [(along(h) - along(-h)) / (2 * h) for h in (1e-5, 4e-6, 1e-6)]
    size = max(map(abs, slopes))
    if not np.isfinite(slopes).all() or np.ptp(slopes) > 1e-4 * size or size < 1e-4:
        return ""
    total = lambda x: wnp.sum(f(wnp, x, wnp.asarray(y)))
    got = np.asarray(weft.jit(weft.grad(total))(x), float)
    terms = got * direction
    if abs(terms.sum() - slopes[2]) <= 1e-3 * size + 1e-4 * np.abs(terms).sum() + 1e-4:
        return ""
    if not np.isfinite(np.asarray(weft.jit(weft.grad(total), licence="exact")(x))).all():
        return ""  # as it is written, such as sqrt(0 * x)
    return f"seed {seed}: the slope is {terms.sum()}, not {slopes[2]}"


@pytest.mark.parametrize("part", range(4))
def test_random_arrangements(part):
    wrong = [d for seed in range(part * COUNT // 4, (part + 1) * COUNT // 4) if (d := difference(seed))]
    assert not wrong, "\n".join(wrong)


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    failed = [d for seed in range(first, first + count) if (d := difference(seed))]
    print(*failed, f"{count} programs, {len(failed)} failed", sep="\n")
