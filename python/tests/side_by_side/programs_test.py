"""Programs beside JAX: families of an operation x control flow x transforms."""

# ruff: noqa: E402

import pathlib
import sys

import pytest

jax = pytest.importorskip("jax")
sys.path.insert(0, str(pathlib.Path(__file__).parent))

from families import programs
from side_by_side import compare, for_weft, run

PROGRAMS = programs()


def test_how_many():
    assert len(PROGRAMS) >= 120


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    with jax.threefry_partitionable(True):
        want = run(PROGRAMS[name])
    compare(run(for_weft(PROGRAMS[name])), want, rtol=2e-3, atol=1e-4)
