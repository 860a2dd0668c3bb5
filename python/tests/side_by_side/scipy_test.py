"""Expressions of scipy, image and of lax's functions that are made of others beside JAX: values at once and compiled,
and gradients. Everything that JAX's modules of these names have stands in some expression."""

# ruff: noqa: E402

import importlib
import pathlib
import sys
import types

import pytest

jax = pytest.importorskip("jax")
sys.path.insert(0, str(pathlib.Path(__file__).parent))

from side_by_side import check_expression, read

MODULES = [
    "scipy.cluster.vq",
    "scipy.fft",
    "scipy.integrate",
    "scipy.interpolate",
    "scipy.ndimage",
    "scipy.optimize",
    "scipy.signal",
    "scipy.sparse.linalg",
    "scipy.spatial.transform",
    "image",
]
for _name in MODULES:
    importlib.import_module(f"jax.{_name}")

LINES = read("scipy_expressions.txt")
ALL = LINES + read("library_expressions.txt")


@pytest.mark.parametrize("line", LINES)
def test_expression(line):
    check_expression(line)


@pytest.mark.parametrize("name", [*MODULES, "scipy.linalg", "scipy.special", "scipy.stats"])
def test_everything_of_a_module_stands_in_an_expression(name):
    module = importlib.import_module(f"jax.{name}")
    text = "\n".join(ALL)
    for member, value in vars(module).items():
        if member.startswith("_") or member in ("OptimizeResults", "ResizeMethod"):  # what others return or take
            continue
        if isinstance(value, types.ModuleType):
            methods = [m for m in vars(value) if not m.startswith("_") and callable(getattr(value, m))]
            lacking = [m for m in methods if f"stats.{member}.{m}(" not in text]
            assert not lacking, f"{name}.{member}: {lacking}"
        else:
            assert f"{name}.{member}" in text, f"{name}.{member}"
