"""Types as a user sees them: mypy --strict accepts a program that uses the public functions, without an Any in what
they return, and refuses mistakes."""

import importlib.util
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
# What users of an installed package see: only errors in their own files.
OPTIONS = ["--strict", "--follow-imports=silent", "--no-error-summary"]


def errors(name: str, options: list[str]) -> list[str]:
    root = HERE.parent.parent
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(root / "pyproject.toml"), *options, f"python/tests/{name}"],
        capture_output=True,
        text=True,
        cwd=root,
    )
    assert not done.stderr, done.stderr
    return [line for line in done.stdout.splitlines() if ": error:" in line]


def test_a_program_is_accepted():
    found = errors("typed_program.py", OPTIONS)
    assert not found, "\n".join(found)


def test_mistakes_are_refused():
    found = errors("typed_mistakes.py", OPTIONS)
    wrong = {int(match[1]) for line in found if (match := re.search(r"typed_mistakes\.py:(\d+)", line))}
    text = (HERE / "typed_mistakes.py").read_text().splitlines()
    expected = {number for number, line in enumerate(text, 1) if line.endswith("# wrong")}
    assert len(expected) > 20
    assert wrong == expected, "\n".join(found)


def test_the_program_runs():
    spec = importlib.util.spec_from_file_location("typed_program", HERE / "typed_program.py")
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    losses = program.main()
    assert losses[-1] < losses[0]
