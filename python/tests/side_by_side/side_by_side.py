"""Programs that run beside JAX: the same text, with only the imported library changed.

A program is a line of `*_expressions.txt`, evaluated with jax, jnp, lax and the arrays of arrays.py in scope, or a
function `main` of a module text. `compare` holds results to JAX's: structure, shapes, dtypes and values.
"""

from __future__ import annotations

import importlib
import pathlib
import re
from typing import Any

import jax
import numpy as np
from arrays import ARRAYS

import weft

for _name in ["linalg", "special", "stats", "signal", "integrate"]:
    importlib.import_module(f"jax.scipy.{_name}")
importlib.import_module("jax.image")


class Expression:
    """A line: `eager:` in front runs outside jit only, `nograd:` compares no gradients."""

    def __init__(self, line: str):
        match = re.match(r"^((?:eager|nograd): *)?(.*)$", line)
        assert match is not None
        self.mark = (match[1] or "").strip(" :")
        self.text = match[2]
        self.code = compile(self.text, f"<{self.text}>", "eval")
        self.arrays = sorted({n for n in re.findall(r"\b[A-Z]\w*\b", self.text) if n in ARRAYS})

    def function(self, library):
        """The program as a function of its arrays."""

        def program(*values):
            scope = {"jnp": library.numpy, "jax": library, "lax": library.lax, "np": np}
            return eval(self.code, {**scope, **dict(zip(self.arrays, values))})

        return program

    def inputs(self, library) -> list:
        return [library.numpy.asarray(ARRAYS[name]) for name in self.arrays]

    def inexact_inputs(self) -> tuple[int, ...]:
        return tuple(i for i, n in enumerate(self.arrays) if ARRAYS[n].dtype == np.float32 and ARRAYS[n].size)


def read(name: str) -> list[str]:
    """The lines of a file of expressions."""
    text = (pathlib.Path(__file__).parent / name).read_text()
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def with_loss(library, function):
    """The program as a loss with the results beside it: the sum of the sines of all float results, in which every
    element counts."""

    def total(*values):
        results = function(*values)
        out: Any = 0.0
        for leaf in library.tree.leaves(results):
            if is_float(leaf):
                out = out + library.numpy.sum(library.numpy.sin(leaf.astype("float32")))
        return out, results

    return total


def is_float(leaf) -> bool:
    return hasattr(leaf, "dtype") and getattr(leaf.dtype, "kind", "") == "f" and leaf.size > 0


def compare(got, want, rtol: float = 1e-4, atol: float = 2e-5) -> None:
    """Raises AssertionError where a result of Weft differs from JAX's."""
    assert type(got).__name__ == type(want).__name__ or hasattr(want, "dtype") or hasattr(got, "dtype"), (
        f"a {type(got).__name__}, JAX gives a {type(want).__name__}"
    )
    mine, theirs = weft.tree.leaves(got), jax.tree.leaves(want)
    assert len(mine) == len(theirs), f"{len(mine)} arrays, JAX gives {len(theirs)}"
    for a, b in zip(mine, theirs):
        if isinstance(a, str) or isinstance(b, str):
            assert a == b
            continue
        if not hasattr(a, "dtype") and isinstance(a, type(b)):
            a, b = np.asarray(a), np.asarray(b)
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape, f"shape {a.shape}, JAX gives {b.shape}"
        assert a.dtype == b.dtype, f"dtype {a.dtype}, JAX gives {b.dtype}"
        if a.dtype.kind in "OUV":
            assert (a == b).all()
        else:
            np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def check_expression(line: str) -> None:
    """Values at once and compiled, and compiled gradients. JAX runs once, compiled where that is possible."""
    expression = Expression(line)
    theirs, mine = expression.function(jax), expression.function(weft)
    moving = () if expression.mark == "nograd" else expression.inexact_inputs()
    inputs = expression.inputs(weft)
    with jax.threefry_partitionable(True):
        if expression.mark == "eager" or not expression.arrays:
            compare(mine(*inputs), theirs(*inputs_of(expression)))
            return
        floats = bool(moving) and any(
            is_float(x) for x in jax.tree.leaves(jax.eval_shape(theirs, *inputs_of(expression)))
        )
        if not floats:
            want = jax.jit(theirs)(*inputs_of(expression))
            compare(mine(*inputs), want)
            compare(weft.jit(mine)(*inputs), want)
            return
        derivative = jax.value_and_grad(with_loss(jax, theirs), moving, has_aux=True)
        (_, want), gradient = jax.jit(derivative)(*inputs_of(expression))
    compare(mine(*inputs), want)
    derivative = weft.value_and_grad(with_loss(weft, mine), moving, has_aux=True)
    (_, got), got_gradient = weft.jit(derivative)(*inputs)
    compare(got, want)
    compare(got_gradient, gradient)


def inputs_of(expression: Expression) -> list:
    return expression.inputs(jax)


def for_weft(source: str) -> str:
    """A program for JAX with its import lines changed, and nothing else."""
    return re.sub(r"^(import|from) jax\b", r"\1 weft", source, flags=re.M).replace(
        "import weft\n", "import weft as jax\n"
    )


def run(source: str):
    scope: dict = {"__name__": "program"}
    exec(compile(source, "<program>", "exec"), scope)
    return scope["main"]()
