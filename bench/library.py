"""What functions of weft.numpy and its neighbours take on long arrays, compiled, beside JAX's.

    ./bazelw run //bench:library
    ./bazelw run //bench:library -- --write        # and put the table into docs/benchmarks.md
    ./bazelw run //bench:library -- --only=fft,interp --size=1000000

Vectors of 100,000 elements and matrices of 300 x 300 unless the name says otherwise. What grows faster than the arrays
shows here: searching each element in all others takes seconds.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy
from figures import HERE, measured_on, with_section
from gradients import interleaved

os.environ["WEFT_CACHE_DIR"] = "off"  # first calls compile

import weft
import weft.numpy as wnp

# By name: the arguments, and the function with the library's numpy as `np` and the library as `lib`.
FUNCTIONS = {
    "searchsorted": ("sorted values", lambda np, lib: lambda s, x: np.searchsorted(s, x)),
    "digitize": ("values sorted", lambda np, lib: lambda x, s: np.digitize(x, s)),
    "interp": ("values sorted other", lambda np, lib: lambda x, s, y: np.interp(x, s, y)),
    "histogram": ("values", lambda np, lib: lambda x: np.histogram(x, bins=100)[0]),
    "bincount": ("labels", lambda np, lib: lambda k: np.bincount(k, length=1000)),
    "unique": ("labels", lambda np, lib: lambda k: np.unique(k, size=1000)),
    "union1d": ("labels places", lambda np, lib: lambda k, i: np.union1d(k, i, size=1000)),
    "intersect1d": ("labels places", lambda np, lib: lambda k, i: np.intersect1d(k, i, size=1000)),
    "setxor1d": ("labels places", lambda np, lib: lambda k, i: np.setxor1d(k, i, size=1000)),
    "repeat": ("values counts", lambda np, lib: lambda x, c: np.repeat(x, c, total_repeat_length=len(x))),
    "sort": ("values", lambda np, lib: np.sort),
    "argsort": ("values", lambda np, lib: np.argsort),
    "lexsort": ("values labels", lambda np, lib: lambda x, k: np.lexsort((x, k))),
    "median": ("values", lambda np, lib: np.median),
    "top 100": ("values", lambda np, lib: lambda x: lib.lax.top_k(x, 100)[0]),
    "nonzero": ("positive", lambda np, lib: lambda b: np.nonzero(b, size=1000)[0]),
    "cumsum": ("values", lambda np, lib: np.cumsum),
    "take": ("values places", lambda np, lib: lambda x, i: np.take(x, i)),
    "at add": ("values places other", lambda np, lib: lambda x, i, y: x.at[i].add(y)),
    "at max": ("values places other", lambda np, lib: lambda x, i, y: x.at[i].max(y)),
    "convolve with 501": ("values other", lambda np, lib: lambda x, y: np.convolve(x, y[:501])),
    "convolve 20,000 with 5,000": ("values other", lambda np, lib: lambda x, y: np.convolve(x[:20000], y[:5000])),
    "fft": ("values", lambda np, lib: np.fft.fft),
    "fft of a prime": ("values", lambda np, lib: lambda x: np.fft.fft(x[:99991])),
    "rfft": ("values", lambda np, lib: np.fft.rfft),
    "fft2": ("matrix", lambda np, lib: np.fft.fft2),
    "flip": ("values other", lambda np, lib: lambda x, y: x[::-1] * y),
    "complex division": ("complexes divisors", lambda np, lib: lambda a, b: a / b),
    "inner products of rows": ("matrix matrix", lambda np, lib: lambda a, b: np.einsum("ij,ij->i", a, b)),
    "inner product": ("values other", lambda np, lib: lambda x, y: np.einsum("i,i->", x, y)),
    "einsum": ("matrix", lambda np, lib: lambda a: np.einsum("ij,jk,kl->il", a, a, a)),
    "inv": ("regular", lambda np, lib: np.linalg.inv),
    "cholesky": ("regular", lambda np, lib: np.linalg.cholesky),
    "qr": ("matrix", lambda np, lib: lambda a: np.linalg.qr(a)[1]),
    "svd": ("matrix", lambda np, lib: lambda a: np.linalg.svd(a)[1]),
    "eigh": ("regular", lambda np, lib: lambda a: np.linalg.eigh(a)[1]),
    "expm": ("regular", lambda np, lib: lib.scipy.linalg.expm),
    "erfinv": ("fractions", lambda np, lib: lib.scipy.special.erfinv),
    "ndtri": ("fractions", lambda np, lib: lib.scipy.special.ndtri),
    "log_ndtr": ("values", lambda np, lib: lib.scipy.special.log_ndtr),
    "gammaln": ("values", lambda np, lib: lib.scipy.special.gammaln),
    "digamma": ("values", lambda np, lib: lib.scipy.special.digamma),
    "i0": ("values", lambda np, lib: np.i0),
    "random.normal": ("values", lambda np, lib: lambda x: lib.random.normal(lib.random.key(0), x.shape)),
    "random.gamma": ("fractions", lambda np, lib: lambda a: lib.random.gamma(lib.random.key(0), a + 0.1)),
    "random.permutation": ("values", lambda np, lib: lambda x: lib.random.permutation(lib.random.key(0), x)),
    "associative_scan": ("values", lambda np, lib: lambda x: lib.lax.associative_scan(lambda a, b: a * b + b, x)),
    "scan": ("values", lambda np, lib: lambda x: lib.lax.scan(lambda c, v: (c * 0.5 + v, c), 0.0, x)[1]),
}


def arrays(n: int) -> dict[str, numpy.ndarray]:
    random = numpy.random.default_rng(0)
    values = random.standard_normal(n).astype("float32")
    matrix = random.standard_normal((300, 300)).astype("float32")
    parts = random.standard_normal((4, n))
    return {
        "values": values,
        "other": random.standard_normal(n).astype("float32"),
        "sorted": numpy.sort(values),
        "fractions": random.uniform(size=n).astype("float32"),
        "positive": values > 0,
        "labels": random.integers(0, 1000, n).astype("int32"),
        "places": random.integers(0, n, n).astype("int32"),
        "complexes": (parts[0] + 1j * parts[1]).astype("complex64"),
        "divisors": (parts[2] + 1j * parts[3]).astype("complex64"),
        "counts": random.integers(0, 3, n).astype("int32"),
        "matrix": matrix,
        "regular": (matrix @ matrix.T / 300 + numpy.eye(300)).astype("float32"),
    }


def first_call(function, arguments, block) -> float:
    begin = time.perf_counter()
    block(function(*arguments))
    return time.perf_counter() - begin


def measure(name: str, data: dict[str, numpy.ndarray], repeats: int) -> str:
    names, make = FUNCTIONS[name]
    ours, theirs = weft.jit(make(wnp, weft)), jax.jit(make(jnp, jax))
    x = [wnp.asarray(data[a]) for a in names.split()]
    y = [jnp.asarray(data[a]) for a in names.split()]
    ours_first = first_call(ours, x, weft.block_until_ready)
    theirs_first = first_call(theirs, y, jax.block_until_ready)
    mine, peer, ratio = interleaved(
        lambda: weft.block_until_ready(ours(*x)), lambda: jax.block_until_ready(theirs(*y)), repeats
    )
    times = " | ".join(f"{1e3 * s:.3g}" for s in (mine, peer))
    return f"| {name} | {times} | {ratio:.2f} | {1e3 * ours_first:.0f} | {1e3 * theirs_first:.0f} |"


HEAD = [
    "| function | Weft, ms | JAX, ms | Weft / JAX | first call, ms | JAX's, ms |",
    "|---|---|---|---|---|---|",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names, comma-separated")
    parser.add_argument("--size", type=int, default=100_000, help="elements of the vectors")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--write", action="store_true", help="rewrite the table in docs/benchmarks.md")
    options = parser.parse_args()
    wanted = list(filter(None, options.only.split(","))) or list(FUNCTIONS)
    data = arrays(options.size)
    rows = []
    print("\n".join(HEAD))
    for name in wanted:
        rows.append(measure(name, data, options.repeats))
        print(rows[-1], flush=True)
    if options.write:
        page = pathlib.Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", HERE.parent)) / "docs" / "benchmarks.md"
        page.write_text(with_section(page.read_text(), "library", measured_on() + "\n".join([*HEAD, *rows])))
        print(f"wrote {page}")


if __name__ == "__main__":
    main()
