"""What documentation shows runs: the README's quickstart, and the examples in docstrings. Everything public has one."""

import contextlib
import doctest
import importlib
import io
import pathlib
import pkgutil
import re

import pytest

import weft
import weft.numpy as wnp

MODULES = ["weft"] + [m.name for m in pkgutil.walk_packages(weft.__path__, "weft.") if "autograph" not in m.name]


@pytest.mark.parametrize("name", [m for m in MODULES if m != "weft._weft"])
def test_docstring_examples(name):
    module = importlib.import_module(name)
    finder, runner = doctest.DocTestFinder(exclude_empty=True), doctest.DocTestRunner(verbose=False)
    for case in finder.find(module, extraglobs={"weft": weft, "wnp": wnp}):
        out = io.StringIO()
        runner.run(case, out=out.write)
        assert not runner.failures, out.getvalue()


def public_functions():
    for name in [
        "weft",
        "weft.numpy",
        "weft.numpy.linalg",
        "weft.numpy.fft",
        "weft.lax",
        "weft.nn",
        "weft.random",
        "weft.tree",
        "weft.debug",
        "weft.ops",
        "weft.scipy.special",
        "weft.scipy.linalg",
    ]:
        module = importlib.import_module(name)
        for member in getattr(module, "__all__", []):
            value = getattr(module, member)
            if callable(value):
                yield f"{name}.{member}", value


@pytest.mark.parametrize("name,value", list(public_functions()))
def test_everything_public_is_described(name, value):
    assert value.__doc__ and len(value.__doc__.strip()) > 1, name


def test_quickstart():
    readme = next(p for p in (pathlib.Path(__file__).parents[i] / "README.md" for i in range(5)) if p.exists())
    code = re.search(r"```python\n(.*?)```", readme.read_text(), re.S)
    assert code is not None
    lines = [line for line in code[1].splitlines() if line.strip()]
    assert len(lines) <= 40
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code[1], "README.md", "exec"), {"__name__": "__main__"})
    assert "(8, 3)" in out.getvalue() and "fn loss" in out.getvalue() and "kernel" in out.getvalue()
