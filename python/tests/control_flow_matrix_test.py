"""Each construct of Python's control flow, three ways: traced on its numbers (un-jitted grad), converted
(weft.autograph), and by hand (cond, scan, while_loop). Every cell has an expected outcome: the value and the gradient,
against central differences of the plain Python function in f64, or an error with a name.

The table in docs/control_flow.md is written by this test:
    WEFT_WRITE_TABLE=1 ./bazelw run //python:control_flow_matrix_test -- --test_filter=table
"""

import os
import pathlib
import sys

import numpy as np
import pytest

import weft

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from control_flow_programs import Row
from control_flow_programs_of_variables import ROWS

DOCUMENT = pathlib.Path("docs/control_flow.md")
BEGIN, END = "<!-- the table begins -->\n", "<!-- the table ends -->\n"
COLUMNS = ("traced on its numbers", "converted", "by hand")


def _static(args):
    return tuple(i for i, a in enumerate(args) if isinstance(a, str))


def _leaves(args):
    """Numbers as arrays, which are traced: Python's own are known to a function that is differentiated."""
    kinds = {float: np.asarray, int: np.int32}
    return [kinds[type(a)](a) if type(a) in kinds else a for a in args]


def outcomes(r: Row, column: int, args):
    """What the cell's ways of computing give: pairs of value and gradient."""
    function = (r.python, weft.autograph(r.python), r.hand)[column]
    if static := _static(args):
        (k,) = static
        inner, value = function, args[k]
        function = lambda *rest: inner(*rest[:k], value, *rest[k:])
        args = tuple(a for i, a in enumerate(args) if i != k)
    ways = [weft.value_and_grad(function)]
    if column:
        ways.append(weft.jit(weft.value_and_grad(function)))
    for way in ways:
        yield way(*_leaves(args))


def expected(r: Row, args):
    """The value, and the slope by central differences in f64 with Richardson's correction."""
    f = lambda x: float(r.python(x, *args[1:]))
    slopes = [(f(args[0] + h) - f(args[0] - h)) / (2 * h) for h in (1e-4, 2e-4)]
    return f(args[0]), (4 * slopes[0] - slopes[1]) / 3


def _reverse_through_while() -> bool:
    try:
        return float(weft.grad(lambda x: weft.while_loop(lambda c: c < 10, lambda c: c * 2, x))(1.0)) == 16
    except weft.DerivativeError:
        return False


REVERSE_THROUGH_WHILE = _reverse_through_while()


@pytest.mark.parametrize("column", range(3), ids=("concrete", "converted", "by_hand"))
@pytest.mark.parametrize("r", ROWS, ids=lambda r: r.construct.replace("`", ""))
def test_cell(r: Row, column: int):
    error = r.errors[column]
    for args in r.args:
        if error is not None:
            kind, words = error
            with pytest.raises(kind, match=words):
                list(outcomes(r, column, args))
            continue
        value, slope = expected(r, args)
        function = (r.python, weft.autograph(r.python), r.hand)[column]
        np.testing.assert_allclose(float(function(*_leaves(args))), value, rtol=1e-5, err_msg=str(args))
        try:
            results = list(outcomes(r, column, args))
        except weft.DerivativeError as lacking:
            if REVERSE_THROUGH_WHILE or "while" not in str(lacking):
                raise
            pytest.xfail("reverse mode through while")
        for got, gradient in results:
            np.testing.assert_allclose(float(got), value, rtol=1e-5, err_msg=str(args))
            np.testing.assert_allclose(float(gradient), slope, rtol=1e-4, atol=1e-6, err_msg=str(args))


@pytest.mark.parametrize(
    "r", [r for r in ROWS if r.same and not any(r.errors)], ids=lambda r: r.construct.replace("`", "")
)
def test_converted_and_by_hand_are_one_program(r: Row):
    args = r.args[0]
    static = _static(args) or None
    ir = weft.make_ir(weft.autograph(r.python), static_argnums=static)(*_leaves(args))
    assert ir == weft.make_ir(r.hand, static_argnums=static)(*_leaves(args)), ir


def table() -> str:
    lines = ["| construct | " + " | ".join(COLUMNS) + " | one IR |", "|---|---|---|---|---|"]
    for r in ROWS:
        cells = []
        for error in r.errors:
            cells.append("value, gradient" if error is None else f"`{error[0].__name__}`")
        one = "" if any(r.errors) else "yes" if r.same else "no"
        lines.append(f"| {r.construct} | {' | '.join(cells)} | {one} |")
    return "\n".join(lines) + "\n"


def test_table(request):
    text = DOCUMENT.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    now, after = rest.split(END)
    if os.environ.get("WEFT_WRITE_TABLE"):
        source = pathlib.Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", ".")) / DOCUMENT
        source.write_text(before + BEGIN + table() + END + after, encoding="utf-8")
        return
    assert now == table(), "WEFT_WRITE_TABLE=1 ./bazelw run //python:control_flow_matrix_test"
