"""Every element-wise function of numpy and scipy.special beside JAX's, by dtype: which are slower.

    ./bazelw run //bench:functions                        # all dtypes
    ./bazelw run //bench:functions -- complex64 float32   # some

Compiled functions of 200,000 elements, in one process and interleaved, with x64 on. A ratio is the median of the ratios
of nine rounds; below 1 Weft is faster. The functions above 1.05 are printed, and for each dtype the geometric mean.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np

import weft
import weft.numpy as wnp
import weft.scipy.special as wsp

ELEMENTS = 200_000
ROUNDS = 9
DTYPES = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "complex64", "complex128")

OF_ONE = [
    "abs",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "cbrt",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arccosh",
    "arctanh",
    "sinc",
    "sign",
    "floor",
    "round",
    "rint",
    "square",
    "reciprocal",
    "isnan",
    "isfinite",
    "nan_to_num",
    "i0",
    "deg2rad",
    "angle",
    "positive",
    "invert",
]
OF_TWO = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "floor_divide",
    "remainder",
    "power",
    "arctan2",
    "hypot",
    "logaddexp",
    "maximum",
    "fmod",
    "gcd",
    "nextafter",
    "copysign",
    "heaviside",
    "bitwise_xor",
    "left_shift",
]
SPECIAL_OF_ONE = [
    "erf",
    "erfc",
    "erfinv",
    "gammaln",
    "digamma",
    "i0e",
    "i1e",
    "expit",
    "logit",
    "ndtr",
    "log_ndtr",
    "ndtri",
    "entr",
]
SPECIAL_OF_TWO = ["xlogy", "gammainc", "gammaincc"]


def numbers(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Arguments that all functions take: in (0, 1), and in (0, 2) or small integers."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0.05, 0.95, ELEMENTS), rng.uniform(0.1, 2, ELEMENTS)
    kind = jnp.dtype(dtype)
    if kind.kind in "iu":
        return (100 * x + 1).astype(kind), (3 * y + 1).astype(kind)
    if kind.kind == "c":
        return (x + 1j * y).astype(kind), (y - 1j * y[::-1]).astype(kind)
    return x.astype(kind), y.astype(kind)


def seconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call().block_until_ready()
    return time.perf_counter() - began


def ratio(ours: Callable, theirs: Callable, operands: tuple) -> tuple[float, float] | None:
    """Milliseconds of Weft's, and its time over JAX's; None where one of them refuses the dtype."""
    f, g = weft.jit(ours), jax.jit(theirs)
    mine, other = [wnp.asarray(a) for a in operands], [jnp.asarray(a) for a in operands]
    try:
        f(*mine).block_until_ready(), g(*other).block_until_ready()
    except (TypeError, ValueError, NotImplementedError):
        return None
    times = [(seconds(lambda: f(*mine)), seconds(lambda: g(*other))) for _ in range(ROUNDS)]
    return statistics.median(a for a, _ in times) * 1e3, statistics.median(a / b for a, b in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dtypes", nargs="*", default=DTYPES)
    dtypes = parser.parse_args().dtypes
    warnings.simplefilter("ignore")  # of what JAX finds in the functions that it will drop
    jax.config.update("jax_enable_x64", True)
    weft.config.update("jax_enable_x64", True)
    pairs = [(name, wnp, jnp, 1) for name in OF_ONE] + [(name, wnp, jnp, 2) for name in OF_TWO]
    pairs += [(name, wsp, jsp, 1) for name in SPECIAL_OF_ONE] + [(name, wsp, jsp, 2) for name in SPECIAL_OF_TWO]
    print("| dtype | function | Weft | Weft / JAX |\n|---|---|---|---|")
    for dtype in dtypes:
        operands = numbers(dtype)
        ratios = []
        for name, ours, theirs, count in pairs:
            found = ratio(getattr(ours, name), getattr(theirs, name), operands[:count])
            if found is None:
                continue
            ratios.append(found[1])
            if found[1] > 1.05:
                print(f"| {dtype} | {name} | {found[0]:.3g} ms | {found[1]:.2f} |", flush=True)
        mean = statistics.geometric_mean(ratios)
        above = sum(r > 1.05 for r in ratios)
        print(f"| **{dtype}** | {len(ratios)} functions, {above} above 1.05 | | **{mean:.2f}** |", flush=True)


if __name__ == "__main__":
    main()
