"""What Hessian-vector products of small programs of linear algebra cost beside their gradients.

    ./bazelw run //bench:factors
    ./bazelw run //bench:factors -- --write        # and put the table into docs/benchmarks.md
    ./bazelw run //bench:factors -- --only=qr,cholesky --size=64

As in bench/gradients.py: counted on the optimised IR and timed, in turns, forward over reverse; held to three times the
gradient in both. The last columns put the compiled product beside JAX's, in the same run.
"""

from __future__ import annotations

import argparse
import os
import pathlib

import jax
import jax.numpy as jnp
import numpy
from figures import HERE, with_section
from gradients import HVP_LIMIT, cost_of, interleaved

import weft
import weft.numpy as wnp


def normal(*shape: int) -> numpy.ndarray:
    return numpy.random.default_rng(shape).standard_normal(shape).astype("float32")


def regular(n: int) -> numpy.ndarray:
    return normal(n, n) / n**0.5 + 2 * numpy.eye(n, dtype="float32")


def triangular(np, a, b):
    solve = wnp.linalg.solve_triangular if np is wnp else jax.scipy.linalg.solve_triangular
    return solve(a, b, lower=True)


def cholesky(np, n):
    w = normal(n, n)
    return lambda a: np.sum(w * np.linalg.cholesky(a @ a.T + n * np.eye(n, dtype=a.dtype))), regular(n)


def cholesky_of_symmetric(np, n):
    w, a = normal(n, n), regular(n)
    return lambda a: np.sum(w * np.linalg.cholesky(a)), a @ a.T


def gaussian_process(np, n):
    """The negative logarithm of the likelihood of one set of observations."""
    y = normal(n)

    def loss(a):
        factor = np.linalg.cholesky(a @ a.T + np.eye(n, dtype=a.dtype))
        z = triangular(np, factor, y[:, None])
        return 0.5 * np.sum(z * z) + np.sum(np.log(np.diagonal(factor)))

    return loss, regular(n)


def slogdet(np, n):
    return lambda a: np.linalg.slogdet(a)[1], regular(n)


def det(np, n):
    return np.linalg.det, regular(n) / 1.8


def qr(np, n):
    w, v = normal(n, n), normal(n, n).T

    def loss(a):
        q, r = np.linalg.qr(a)
        return np.sum(w * q) + np.sum(v * r)

    return loss, regular(n)


def tall_qr(np, n):
    w, v = normal(2 * n, n), normal(n, n)

    def loss(a):
        q, r = np.linalg.qr(a)
        return np.sum(w * q) + np.sum(v * r)

    return loss, normal(2 * n, n) / n**0.5


def inv(np, n):
    w = normal(n, n)
    return lambda a: np.sum(w * np.linalg.inv(a)), regular(n)


def solve(np, n):
    b = normal(n, 4)
    return lambda a: np.sum(np.linalg.solve(a, b) ** 2), regular(n)


def triangular_solve(np, n):
    b = normal(n, n)
    return lambda a: np.sum(triangular(np, a, b) ** 2), numpy.tril(regular(n))


def eigh(np, n):
    w, v = normal(n), normal(n, n)

    def loss(a):
        values, vectors = np.linalg.eigh(a)
        return np.sum(w * values) + np.sum(v * vectors**2)

    a = regular(n)
    return loss, a + a.T


def svd(np, n):
    w, v = normal(n), normal(2 * n, n)

    def loss(a):
        u, s, vh = np.linalg.svd(a, full_matrices=False)
        return np.sum(v * u**2) + np.sum(w * s) + np.sum(v[:n] * vh**2)

    return loss, normal(2 * n, n) / n**0.5


def pinv(np, n):
    w = normal(n, 2 * n)
    return lambda a: np.sum(w * np.linalg.pinv(a)), normal(2 * n, n) / n**0.5


def lstsq(np, n):
    b = normal(2 * n, 4)
    return lambda a: np.sum(np.linalg.lstsq(a, b)[0] ** 2), normal(2 * n, n) / n**0.5


PROGRAMS = [
    cholesky,
    cholesky_of_symmetric,
    gaussian_process,
    slogdet,
    det,
    qr,
    tall_qr,
    inv,
    solve,
    triangular_solve,
    eigh,
    svd,
    pinv,
    lstsq,
]


def compiled(lib, function):
    """The gradient, and its derivative along a second argument."""
    gradient = lib.grad(function)
    return lib.jit(gradient), lib.jit(lambda a, v: lib.jvp(gradient, (a,), (v,))[1])


def measure(make, n: int, repeats: int) -> tuple[str, bool]:
    """The row of one program, and whether it is within the limit."""
    function, a = make(wnp, n)
    v = normal(*a.shape[::-1]).T.copy()
    gradient, hvp = compiled(weft, function)
    count = cost_of(weft.make_ir(hvp)(a, v)) / cost_of(weft.make_ir(gradient)(a))
    x, dx = wnp.asarray(a), wnp.asarray(v)
    h = lambda: weft.block_until_ready(hvp(x, dx))
    hvp_seconds, gradient_seconds, ratio = interleaved(h, lambda: weft.block_until_ready(gradient(x)), repeats)
    _, theirs = compiled(jax, make(jnp, n)[0])
    y, dy = jnp.asarray(a), jnp.asarray(v)
    _, jax_seconds, beside = interleaved(h, lambda: jax.block_until_ready(theirs(y, dy)), repeats)
    times = " | ".join(f"{1e6 * s:.0f}" for s in (gradient_seconds, hvp_seconds, jax_seconds))
    row = f"| {make.__name__.replace('_', ' ')} | {count:.2f} | {ratio:.2f} | {times} | {beside:.2f} |"
    return row, max(count, ratio) <= HVP_LIMIT


HEAD = [
    "| program | hvp counted | hvp timed | gradient, µs | hvp, µs | JAX's hvp, µs | Weft / JAX |",
    "|---|---|---|---|---|---|---|",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names, comma-separated")
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--write", action="store_true", help="rewrite the table in docs/benchmarks.md")
    options = parser.parse_args()
    wanted = set(filter(None, options.only.split(",")))
    rows, above = [], []
    print("\n".join(HEAD))
    for make in PROGRAMS:
        if wanted and make.__name__ not in wanted:
            continue
        row, within = measure(make, options.size, options.repeats)
        print(row, flush=True)
        rows.append(row)
        if not within:
            above.append(make.__name__)
    print(f"above {HVP_LIMIT:.0f} x: {', '.join(above) or 'none'}")
    if options.write:
        page = pathlib.Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", HERE.parent)) / "docs" / "benchmarks.md"
        page.write_text(with_section(page.read_text(), "factors", "\n".join([*HEAD, *rows])))
        print(f"wrote {page}")


if __name__ == "__main__":
    main()
