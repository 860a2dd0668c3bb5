"""Each construct of Python's control flow × what jit(capture=...) makes of it: traced, converted from its source, or
recorded. A cell is what happens on all of the row's arguments: the value, which is Python's own, and how it came about.

The table in docs/control_flow.md is written by this test:
    WEFT_WRITE_TABLE=1 ./bazelw run //python:captures_matrix_test -- --test_filter=table
"""

import os
import pathlib
import sys
import warnings

import numpy as np
import pytest

import weft

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from control_flow_programs import Row
from control_flow_programs_of_variables import ROWS

DOCUMENT = pathlib.Path("docs/control_flow.md")
BEGIN, END = "<!-- the captures begin -->\n", "<!-- the captures end -->\n"
CAPTURES = ("trace", "script", "auto")


def twice(x):
    return add_one(x) * 2 if x > 0 else add_one(x)


def add_one(x):
    return x + 1 if x < 3 else x


def depth(x, n):
    return x if n == 0 else depth(x * x / 2, n - 1) + 1


# Calls, beside the constructs that control_flow_matrix_test.py has.
CALLS = [
    Row("calls of functions that call, no condition", lambda x: abs(depth(x, 0)) + depth(x, 2), None, [(1.5,)]),
    Row("calls of functions with conditions that call such", twice, None, [(1.5,), (-1.0,), (4.0,)]),
    Row("recursion that a Python number ends", lambda x: depth(x, 3), None, [(1.5,)]),
]
ALL = [*ROWS, *CALLS]


def jitted(r: Row, capture: str, **options):
    static = tuple(i for i, a in enumerate(r.args[0]) if isinstance(a, str))
    return weft.jit(r.python, capture=capture, static_argnums=static, **options)


def leaves(args):
    return [np.asarray(a) if isinstance(a, float) else a for a in args]


def made_of(function, args) -> str:
    """The operations with regions that a program has."""
    names = {op.name for op in function.lower(*leaves(args))._ir.walk() if op.regions}
    return ", ".join(f"`{name}`" for name in sorted(names))


def run(r: Row, capture: str) -> str:
    """The cell: runs all arguments, and compares values with Python's own."""
    function = jitted(r, capture)
    made: set[str] = set()
    for args in r.args:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", weft.autograph.FallbackWarning)
                value = function(*leaves(args))
        except Exception as error:
            kind = weft.TracerError if isinstance(error, weft.TracerError) else type(error)
            assert len(r.args) == 1 or kind is weft.TracerError
            return f"`{kind.__name__}`"
        np.testing.assert_allclose(float(value), float(r.python(*args)), rtol=1e-5, err_msg=f"{capture} {args}")
        if capture == "trace" or (capture == "script" and not function.explain("fallbacks")):
            made.add(made_of(function, args))
    if capture == "auto":
        paths = function.explain().count("equations, good where")
        return f"value, {paths} recording" + ("s" if paths > 1 else "")
    if capture == "script" and (fallbacks := function.explain("fallbacks")):
        (fallback,) = fallbacks
        assert fallback["calls"] == len(r.args)
        return f"value, by Python: `{fallback['error']}`"
    return "value" + "".join(f", {ops}" for ops in sorted(made) if ops)


@pytest.fixture(scope="module")
def cells():
    return {(r.construct, capture): run(r, capture) for r in ALL for capture in CAPTURES}


def test_python_decides_where_numbers_are_recorded(cells):
    """With capture="auto" every construct has a value, but for those that raise in Python, too."""
    raising = [construct for (construct, capture), cell in cells.items() if capture == "auto" and "value" not in cell]
    assert raising == ["range with a traced step of 0", "`assert` that fails"]


@pytest.mark.parametrize("r", ROWS, ids=lambda r: r.construct.replace("`", ""))
def test_script_falls_back_where_conversion_refuses(r: Row, cells):
    """And nowhere else; with strict=True that is the error of conversion, or one when the program runs."""
    cell, expected = cells[r.construct, "script"], r.errors[1]
    if expected is None:
        assert "by Python" not in cell and cell.startswith("value")
        return
    if not cell.startswith("value"):
        assert cell == f"`{expected[0].__name__}`"  # when the program runs
    else:
        assert "by Python" in cell
    with pytest.raises(expected[0], match=expected[1]):
        for args in r.args:
            jitted(r, "script", strict=True)(*leaves(args))


def table(cells) -> str:
    lines = ["| construct | " + " | ".join(f'`"{c}"`' for c in CAPTURES) + " |", "|---|---|---|---|"]
    lines += [f"| {r.construct} | {' | '.join(cells[r.construct, c] for c in CAPTURES)} |" for r in ALL]
    return "\n".join(lines) + "\n"


def test_table(cells):
    text = DOCUMENT.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    now, after = rest.split(END)
    if os.environ.get("WEFT_WRITE_TABLE"):
        source = pathlib.Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", ".")) / DOCUMENT
        source.write_text(before + BEGIN + table(cells) + END + after, encoding="utf-8")
        return
    assert now == table(cells), "run with WEFT_WRITE_TABLE=1"
