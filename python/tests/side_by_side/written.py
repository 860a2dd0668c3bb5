"""Programs that people write: functions with their inputs, one text for both libraries, and the transforms of them.

The modules in `programs/` are written for JAX. Each of their functions under `@program` runs with JAX and, after only
the import lines of the module have been changed, with Weft: its values, and every transform that JAX can apply to it.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import zlib
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

LANES = 3

_DTYPES = {
    "bool": np.dtype(bool),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    **{f"{k}{n}": np.dtype(f"{name}{n}") for k, name in (("i", "int"), ("u", "uint")) for n in (8, 16, 32, 64)},
    **{f"f{n}": np.dtype(f"float{n}") for n in (16, 32, 64)},
    **{f"c{n}": np.dtype(f"complex{n}") for n in (64, 128)},
}


@dataclasses.dataclass(frozen=True)
class Program:
    """A function and what it is called with: a tree of drawn arrays ("f32[3,4]", "i32[5] 0..9"), arrays and numbers."""

    function: Callable
    inputs: tuple
    x64: bool
    refuses: dict[str, str]
    skips: tuple[str, ...]
    tolerance: float


def program(*inputs, x64: bool = False, refuses: dict[str, str] | None = None, skips=(), tolerance: float = 1.0):
    """Marks a function of a module of programs as one that both libraries run.

    Args:
        *inputs: its arguments. A text is an array that is drawn: normal numbers, or between two bounds.
        x64: whether it runs with 64-bit defaults.
        refuses: transforms that JAX cannot apply, and words of its message.
        skips: transforms whose numbers say nothing, such as slopes where the function jumps.
        tolerance: how many times more than usual results may differ.
    """
    return lambda function: Program(function, inputs, x64, refuses or {}, tuple(skips), tolerance)


def draw(spec: str, seed: str) -> np.ndarray:
    """An array of the described dtype, shape and bounds, the same at every run."""
    match = re.fullmatch(r"(\w+)\[([\d,]*)\](?: (\S+)\.\.(\S+))?", spec)
    assert match is not None, spec
    dtype, shape = _DTYPES[match[1]], tuple(int(n) for n in match[2].split(",") if n)
    rng = np.random.default_rng(zlib.crc32(seed.encode()))
    if dtype.kind in "iu":
        return np.asarray(rng.integers(int(match[3]), int(match[4]), shape), dtype)
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if match[3]:
        return np.asarray(rng.uniform(float(match[3]), float(match[4]), shape)).astype(dtype)
    numbers = np.asarray(rng.standard_normal(shape))
    if dtype.kind == "c":
        numbers = numbers + 1j * rng.standard_normal(shape)
    return numbers.astype(dtype)


class Call:
    """A program with its inputs in one library, seen by transforms as a function of its drawn inputs: the moving ones,
    which are floats, and the others."""

    def __init__(self, library, name: str, program: Program):
        self.library = library
        self.function = program.function
        leaves, self._structure = library.tree.flatten(program.inputs)
        self._leaves = leaves
        self._drawn = [i for i, leaf in enumerate(leaves) if isinstance(leaf, str)]
        self._moving = [i for i in self._drawn if leaves[i].startswith(("f", "bf", "c"))]
        self._name = name

    def _draw(self, which: list[int], lane: str) -> list:
        asarray = self.library.numpy.asarray
        return [asarray(draw(self._leaves[i], f"{self._name} {i} {lane}")) for i in which]

    def inputs(self, lane: int = 0) -> tuple[list, list]:
        """The moving inputs and the other drawn ones."""
        others = [i for i in self._drawn if i not in self._moving]
        return self._draw(self._moving, str(lane)), self._draw(others, str(lane))

    def batch(self) -> tuple[list, list]:
        """The inputs of all lanes, along a leading axis."""
        stack = self.library.numpy.stack
        lanes = [self.inputs(lane) for lane in range(LANES)]
        return tuple([stack(arrays) for arrays in zip(*(lane[part] for lane in lanes))] for part in (0, 1))  # type: ignore

    def tangents(self) -> list:
        return self._draw(self._moving, "tangent")

    def __call__(self, moving: list, others: list):
        """What the program returns."""
        leaves, rest = list(self._leaves), iter(others)
        for i, x in zip(self._moving, moving):
            leaves[i] = x
        for i in self._drawn:
            if i not in self._moving:
                leaves[i] = next(rest)
        return self.function(*self.library.tree.unflatten(self._structure, leaves))

    def floats(self, moving: list, others: list) -> list:
        """Its results of floats, the others have no derivative."""
        leaves = [self.library.numpy.asarray(leaf) for leaf in self.library.tree.leaves(self(moving, others))]
        return [leaf for leaf in leaves if self.library.numpy.issubdtype(leaf.dtype, np.inexact)]

    def loss(self, moving: list, others: list):
        """A number in which every element of every result counts, with curvature."""
        np_ = self.library.numpy
        total: Any = 0.0
        for leaf in self.floats(moving, others):
            if leaf.dtype.itemsize == 2:
                leaf = leaf.astype("float32")
            weights = np.cos(1 + np.arange(leaf.size)).reshape(leaf.shape).astype(leaf.real.dtype)
            for part in [leaf.real, leaf.imag] if leaf.dtype.kind == "c" else [leaf]:
                total = total + np_.sum(weights * (part + 0.1 * part * part))
        return total


def _vjp(c: Call, x, n):
    out, pull = c.library.vjp(lambda x: c.floats(x, n), x)
    return out, pull([c.library.numpy.cos(y) for y in out])


def _linearize(c: Call, x, n):
    out, push = c.library.linearize(lambda x: c.floats(x, n), x)
    return out, push(c.tangents())


def _directional(c: Call, gradient: list, tangents: list):
    return sum((c.library.numpy.sum(g * t).real for g, t in zip(gradient, tangents)), 0.0)


def _first(c: Call, function: Callable, x, n):
    """A function of the first moving input alone, and that input."""
    return (lambda first: function([first, *x[1:]], n)), x[0]


def _apply(transform: Callable, c: Call, function: Callable, x, n):
    function, first = _first(c, function, x, n)
    return transform(function)(first)


def _grad_vmap(c: Call, x, n):
    axes = [0, *([None] * (len(x) - 1))]
    lanes = c.library.vmap(c.loss, in_axes=(axes, None))
    first = c.library.numpy.stack([x[0], x[0] * 0.5, c.tangents()[0]])
    return c.library.grad(lambda x: c.library.numpy.sum(lanes(x, n) ** 2))([first, *x[1:]])


def _grad_scan(c: Call, x, n):
    def step(scale, lane):
        value = c.loss([scale * a for a in lane[0]], lane[1])
        return scale * 0.9, value

    def total(xs, ns, scale):
        return c.library.numpy.sum(c.library.lax.scan(step, scale, (xs, ns))[1])

    return c.library.grad(total)(*c.batch(), 1.0)


# Each is given a call, its moving inputs and the others; all run under jit.
VALUES: dict[str, Callable] = {
    "jit": lambda c, x, n: c(x, n),
    "vmap": lambda c, x, n: c.library.vmap(c)(*c.batch()),
}
FORWARD: dict[str, Callable] = {
    "jvp": lambda c, x, n: c.library.jvp(lambda x: c.floats(x, n), (x,), (c.tangents(),)),
    "linearize": _linearize,
    "jvp_jvp": lambda c, x, n: c.library.jvp(
        lambda x: c.library.jvp(lambda x: c.floats(x, n), (x,), (c.tangents(),))[1], (x,), (c.tangents(),)
    )[1],
    "jacfwd": lambda c, x, n: _apply(c.library.jacfwd, c, c.floats, x, n),
    "vmap_jvp": lambda c, x, n: c.library.vmap(
        lambda x, n: c.library.jvp(lambda x: c.floats(x, n), (x,), (c.tangents(),))[1]
    )(*c.batch()),
}
REVERSE: dict[str, Callable] = {
    "value_and_grad": lambda c, x, n: c.library.value_and_grad(c.loss)(x, n),
    "vjp": _vjp,
    "jacrev": lambda c, x, n: _apply(c.library.jacrev, c, c.floats, x, n),
    "checkpoint": lambda c, x, n: c.library.grad(c.library.checkpoint(c.loss))(x, n),
    "hessian": lambda c, x, n: _apply(c.library.hessian, c, c.loss, x, n),
    "jvp_grad": lambda c, x, n: c.library.jvp(lambda x: c.library.grad(c.loss)(x, n), (x,), (c.tangents(),))[1],
    "grad_grad": lambda c, x, n: c.library.grad(lambda x: _directional(c, c.library.grad(c.loss)(x, n), c.tangents()))(
        x
    ),
    "vmap_grad": lambda c, x, n: c.library.vmap(c.library.grad(c.loss))(*c.batch()),
    "grad_vmap": _grad_vmap,
    "grad_scan": _grad_scan,
}
TRANSFORMS = {**VALUES, **FORWARD, **REVERSE}
# Of complex numbers they ask for a holomorphic function.
REAL = ("jacfwd", "jacrev", "hessian")

# What JAX refuses of loops of unknown length, and of functions with a custom_vjp.
WHILE = dict.fromkeys(REVERSE, "Reverse-mode differentiation does not work for lax.while_loop")
NO_FORWARD = "can't apply forward-mode autodiff|'custom_lin' not implemented"
BACKWARD_ONLY = dict.fromkeys(FORWARD, NO_FORWARD)
BACKWARD_ONLY_IN_LOOP = {**BACKWARD_ONLY, "jvp_grad": NO_FORWARD, "hessian": NO_FORWARD}


def modules() -> dict[str, str]:
    """The texts of the programs, by path."""
    folder = pathlib.Path(__file__).parent / "programs"
    return {str(path): path.read_text() for path in sorted(folder.glob("*.py"))}


def programs(rewrite: Callable[[str], str] = str) -> dict[str, Program]:
    """All programs by name, of rewritten texts."""
    out: dict[str, Program] = {}
    for path, text in modules().items():
        scope: dict = {"__name__": "program"}
        exec(compile(rewrite(text), path, "exec"), scope)
        for name, value in scope.items():
            if isinstance(value, Program):
                assert name not in out, f"two programs have the name {name}"
                out[name] = value
    return out
