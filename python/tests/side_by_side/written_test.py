"""Written programs beside JAX: values, and transforms by turns; with EVERY_TRANSFORM set, all that apply."""

# ruff: noqa: E402

import os
import pathlib
import sys

import pytest

jax = pytest.importorskip("jax")
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import numpy as np
from side_by_side import for_weft
from written import REAL, TRANSFORMS, VALUES, Call, programs

import weft

THEIRS, OURS = programs(), programs(for_weft)

# Of the largest magnitude among the numbers that belong together.
TOLERANCES = {
    "bfloat16": 3e-2,
    "float16": 4e-3,
    "float32": 5e-5,
    "complex64": 5e-5,
    "float64": 1e-10,
    "complex128": 1e-10,
}


def form(tree, library):
    """The containers of a tree, by name, down to what each leaf is."""
    if isinstance(tree, dict):
        return {key: form(value, library) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree).__name__, [form(value, library) for value in tree]
    if tree is None or isinstance(tree, str):
        return tree
    children = library.tree.leaves(tree)
    if len(children) == 1 and children[0] is tree:
        return f"{np.dtype(tree.dtype)}{list(tree.shape)}{' weak' * tree.weak_type}"
    return type(tree).__name__, [form(value, library) for value in children]


def operations(jaxpr) -> int:
    """How many operations a traced program has, those in its loops and branches included."""
    values = [
        v for eqn in jaxpr.eqns for p in eqn.params.values() for v in (p if isinstance(p, (list, tuple)) else [p])
    ]
    return len(jaxpr.eqns) + sum(operations(getattr(v, "jaxpr", v)) for v in values if hasattr(v, "eqns"))


def applicable(program, moving, results) -> list[str]:
    """The transforms that mean something for the dtypes of inputs and results."""
    if not moving or not any(np.issubdtype(x.dtype, np.inexact) for x in results):
        return list(VALUES)
    is_complex = any(np.issubdtype(x.dtype, np.complexfloating) for x in [*moving, *results])
    return [name for name in TRANSFORMS if name not in program.skips and not (is_complex and name in REAL)]


def in_turn(name: str, names: list[str]) -> list[str]:
    """The values and one transform, a different one for neighbours in the table: XLA takes its time for each."""
    if os.environ.get("EVERY_TRANSFORM"):
        return names
    others = [key for key in names if key != "jit"]
    return ["jit", others[list(THEIRS).index(name) % len(others)]]


def transformed(call: Call, names: list[str]):
    """A function of the program's inputs that gives the results of transforms."""
    return call.library.jit(lambda x, n: {key: TRANSFORMS[key](call, x, n) for key in names})


@pytest.mark.parametrize("name", THEIRS)
def test_program(name):
    program = THEIRS[name]
    with jax.threefry_partitionable(True), jax.enable_x64(program.x64):
        call = Call(jax, name, program)
        inputs = call.inputs()
        jaxpr, shapes = jax.make_jaxpr(call, return_shape=True)(*inputs)
        assert operations(jaxpr.jaxpr) >= 5, "an expression, not a program"
        names = in_turn(name, applicable(program, inputs[0], jax.tree.leaves(shapes)))
        for key in set(names) & set(program.refuses):
            with pytest.raises((TypeError, ValueError, NotImplementedError), match=program.refuses[key]):
                transformed(call, [key])(*inputs)
        names = [key for key in names if key not in program.refuses]
        want = transformed(call, names)(*inputs)
    with weft.enable_x64(program.x64):
        call = Call(weft, name, OURS[name])
        got = transformed(call, names)(*call.inputs())
    tolerance = program.tolerance * coarsest([*inputs[0], *jax.tree.leaves(want["jit"])])
    for key in names:
        mine, theirs = form(got[key], weft), form(want[key], jax)
        assert mine == theirs, f"{key}: {mine}, JAX gives {theirs}"
        for a, b in zip(weft.tree.leaves(got[key]), jax.tree.leaves(want[key])):
            close(a, b, key, tolerance)


def coarsest(arrays) -> float:
    """The tolerance of the narrowest floats among arrays."""
    return max((TOLERANCES.get(np.dtype(x.dtype).name, 0.0) for x in arrays), default=0.0)


def close(got, want, key, tolerance):
    got, want = np.asarray(got), np.asarray(want)
    if want.dtype.name not in TOLERANCES:
        np.testing.assert_array_equal(got, want, err_msg=key)
        return
    finite = np.abs(want[np.isfinite(want)].astype(complex))
    scale = max(float(finite.max(initial=0)), 0.1)
    wide = complex if want.dtype.kind == "c" else float
    np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=0, atol=tolerance * scale, err_msg=key)


def test_how_many():
    assert len(THEIRS) >= 300
    assert list(THEIRS) == list(OURS)
