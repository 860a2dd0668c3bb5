"""What //compat:public_programs makes of a list, a file, and the numbers of two runs. No program is fetched."""

import json
import math
import sys
import time
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import public_programs
import run_public
from public_programs import Program, Run

import weft


def _program(path="a.py", **more):
    return Program(name="a", about="", repository="owner/name", commit="0" * 40, path=path, **more)


def _run(**numbers):
    return Run({name: ("kind", np.asarray(value)) for name, value in numbers.items()}, 1.0, 1.0, 1, "", "")


def test_the_list_names_each_program_once_and_a_whole_commit():
    programs = public_programs.programs()
    names = [program.name for program in programs]
    assert len(names) == len(set(names)) >= 30
    for program in programs:
        assert len(program.commit) == 40 and program.about and not program.path.startswith("/")


def test_cells_of_a_notebook():
    cells = [
        {"cell_type": "markdown", "source": ["words"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "x = 1\n", "if x:\n", "    !pip install y"]},
        {"cell_type": "code", "source": ["%%bash\n", "rm -r ."]},
        {"cell_type": "code", "source": ["left_out()"]},
        {"cell_type": "code", "source": ["%%time\n", "y = x + 1000"]},
    ]
    program = _program("a.ipynb", without=[2], cuts=[["1000", "10"]])
    variables = {}
    exec(public_programs.script(program, json.dumps({"cells": cells})), variables)
    assert (variables["x"], variables["y"]) == (1, 11)


def test_a_later_cell_may_ask_for_annotations_that_are_not_evaluated():
    cells = [{"cell_type": "code", "source": [text]} for text in ("x = 1", "from __future__ import annotations\ny: z")]
    variables = {}
    exec(public_programs.script(_program("a.ipynb"), json.dumps({"cells": cells})), variables)
    assert variables["__annotations__"] == {"y": "z"}


def test_cells_of_a_page():
    first = "```{code-cell} ipython3\n---\ntags: [a]\n---\nx = 1\n```\n"
    text = f"words\n{first}```{{code-cell}}\n:tags: [b]\n\ny = 2\n```\n```\nz\n```\n"
    assert [cell.strip() for cell in public_programs.cells(text, "a.md")] == ["x = 1", "y = 2"]


def test_a_cut_that_is_not_there_is_an_error():
    with pytest.raises(ValueError, match="'n = 5' is not there"):
        public_programs.script(_program(cuts=[["n = 5", "n = 2"]]), "n = 4\n")


def test_what_cannot_be_fetched_is_said(tmp_path):
    row = public_programs.row(_program(), Path(sys.executable), tmp_path, tmp_path)
    assert row.runs.startswith("cannot be fetched") and not row.good and math.isnan(row.time)


def test_differences_are_relative_to_the_largest_number():
    a = np.array([100.0, 1.0, np.nan, np.inf])
    assert public_programs.apart(a, a.copy()) == 0
    assert public_programs.apart(a, a + [0, 0.1, 0, 0]) == pytest.approx(1e-3)
    assert public_programs.apart(a, np.array([100.0, 1.0, 2.0, np.inf])) == math.inf
    assert public_programs.apart(a, a[1:]) == math.inf
    assert public_programs.apart(np.array([True, False]), np.array([True, True])) == 1


def test_numbers_are_compared_as_far_as_jax_agrees_with_itself():
    theirs = _run(steady=[1.0, 2.0], chaotic=[1.0], rough=[1.0], missing=[1.0])
    again = _run(steady=[1.0, 2.0], chaotic=[1.5], rough=[1.0005], missing=[1.0])
    ours = _run(steady=[1.0, 2.5], chaotic=[3.0], rough=[1.004])
    found = public_programs.compare(theirs, [again], ours)
    assert (found.same, found.own) == (1, ["chaotic"])
    assert found.other == {"steady": pytest.approx(0.25), "missing": math.inf}
    nudged = _run(steady=[1.1, 2.0], chaotic=[1.0], rough=[1.0], missing=[1.0])
    found = public_programs.compare(theirs, [again, nudged], ours)
    assert found.own == ["steady", "chaotic"]
    assert public_programs.compare(theirs, [], theirs).same == 4


def test_the_page_counts_what_is_there():
    rows = [
        public_programs.Row(_program(), "yes", "3 of 3, 1e-07", 2.0, 0.5, 0.5, 0.25, True),
        public_programs.Row(_program(), "yes", "2 of 3, 1e-07", 2.0, 2.0, 0.5, 1.0, False),
        public_programs.Row(_program(), "cannot be fetched: no network", ""),
    ]
    page = public_programs.table(rows, "0.0")
    assert "1 of 3 run" in page and "| Weft | 1.00 | 0.50 | 0.50 |" in page and "no network" in page


def test_variables_of_a_program_by_name():
    pytest.importorskip("jax")
    found = run_public.ends_with({"x": {"a": np.ones(2), "b": 3}, "_x": 1, "f": len, "times": [0.5] * 9})
    assert {place: kind for place, (_, kind) in found.items()} == {
        "x['a']": "float64[2]",
        "x['b']": "int64[]",
        "times": "float64[9]",
    }


def test_numbers_of_a_text():
    said = run_public._A_NUMBER.findall("a1 [1.5-2.25j -1.+0.5j] x=-3 1e-5 v2.0.1 7, 8e2")
    assert [float(number) for number in said] == [1.5, -2.25, -1.0, 0.5, -3.0, 1e-5, 7.0, 800.0]


def test_the_last_bit_of_random_numbers_and_grids(tmp_path):
    jax = pytest.importorskip("jax")
    kept = {module: dict(vars(module)) for module in (jax.random, jax.numpy)}
    try:
        run_public.nudge_values()
        moved = np.asarray(jax.numpy.linspace(1.0, 2.0, 3)), np.asarray(jax.random.normal(jax.random.key(0)))
    finally:
        for module, names in kept.items():
            vars(module).update(names)
    grid = np.linspace(1, 2, 3, dtype=np.float32)
    assert (moved[0] == np.nextafter(grid, np.float32(np.inf))).all()
    assert moved[1] == np.nextafter(np.asarray(jax.random.normal(jax.random.key(0))), np.float32(np.inf))


def test_the_last_bit_of_functions():
    jax = pytest.importorskip("jax")
    from jax._src.interpreters import mlir

    tables = [mlir._lowerings, *mlir._platform_specific_lowerings.values()]
    kept = [dict(rules) for rules in tables]

    def found():
        jax.clear_caches()
        f = lambda x: jax.numpy.exp(x) + 0 * x
        some, whole = jax.numpy.ones((2, 2)), jax.numpy.arange(3)
        return [jax.jit(f)(0.0), jax.grad(f)(0.0), (some @ some)[0, 0], jax.numpy.exp(0j), whole @ whole]

    plain = found()
    try:
        run_public.nudge_functions()
        moved = found()
    finally:
        for rules, before in zip(tables, kept):
            rules.update(before)
        jax.clear_caches()
    eps = np.finfo(np.float32).eps
    np.testing.assert_array_equal(plain, [1, 1, 2, 1, 5])
    np.testing.assert_array_equal(moved, [1 + eps, 1 + eps, 2 * (1 + eps), 1, 5])  # not complex numbers and integers


def test_processor_time_of_other_code():
    source = """
def spin():
    start = time.process_time()
    while time.process_time() - start < 0.2:
        pass
"""
    ours = str(Path(weft.__file__).with_name("a_file.py"))
    for file, least, most in (("program.py", 0.1, 0.4), (ours, 0, 0.1)):
        variables = {"time": time}
        exec(compile(source, file, "exec"), variables)
        sampled = run_public.OtherCode()
        variables["spin"]()
        assert least <= sampled.stop() <= most, file


def test_times_are_those_of_the_process(tmp_path):
    """What Python does after the program counts, and what is written about the program does not."""
    program = """
import atexit, time
import jax.numpy as jnp
x, words = jnp.arange(3.0), [3.5] * 300_000
print(x.sum())
atexit.register(time.sleep, 1.0)
"""
    file = tmp_path / "program.py"
    file.write_text(program)
    there = {"PYTHONPATH": str(Path(weft.__file__).parent.parent), "OMP_NUM_THREADS": "1"}
    run = public_programs.run(Path(sys.executable), file, True, there)
    assert not run.error, run.trace
    assert run.seconds > 1 and 0 < run.processor < run.seconds + 1 and run.memory > 10_000
    np.testing.assert_array_equal(run.numbers["x"][1], [0, 1, 2])
    np.testing.assert_array_equal(run.numbers["(printed)"][1], [3])
    file.write_text("raise ValueError('words')")
    assert run.seconds > 1 and "words" in public_programs.run(Path(sys.executable), file, True, there).error
    file.write_text("import os; os._exit(3)")
    assert "ended with 3" in public_programs.run(Path(sys.executable), file, True, there).error
