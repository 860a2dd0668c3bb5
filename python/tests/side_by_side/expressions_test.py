"""Expressions beside JAX: values at once and compiled, and gradients."""

import pathlib
import sys

import pytest

pytest.importorskip("jax")
sys.path.insert(0, str(pathlib.Path(__file__).parent))

from side_by_side import check_expression, read

LINES = read("numpy_expressions.txt")


@pytest.mark.parametrize("line", LINES)
def test_expression(line):
    check_expression(line)
