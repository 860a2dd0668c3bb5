"""Golden files: input, command and expected output of `weft` in one file.

    # weft: opt - --passes=cse
    fn f(x: f32[3]) -> (f32[3]) {
      ...
    }
    # ----
    what the command prints

The case, from its command line to the line `# ----`, is the standard input; lines `# ====` separate the cases of
one file. A command that fails is expected to: its messages and exit status stand behind its output.
`bazel run //tests:golden_test -- --update-golden` writes what the commands print now.
"""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

COMMAND = "# weft: "
OUTPUT = "# ----\n"
NEXT = "# ====\n"
FOLDER = Path("tests/golden")


def run(command: str, program: str) -> str:
    done = subprocess.run(
        ["driver/weft", *shlex.split(command)], input=program, capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode == 0:
        assert not done.stderr, done.stderr
        return done.stdout
    return f"{done.stdout}{done.stderr}exit status {done.returncode}\n"


def actual(case: str) -> str:
    """The case with the output that its command has now."""
    program = case.split(OUTPUT)[0]
    first = program.lstrip("\n").splitlines()[0]
    assert first.startswith(COMMAND), f"a case begins with a line '{COMMAND}...'"
    return program + OUTPUT + run(first.removeprefix(COMMAND), program)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.weft")), ids=lambda path: path.stem)
def test_golden(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text(encoding="utf-8")
    now = NEXT.join(actual(case) for case in text.split(NEXT))
    if request.config.getoption("--update-golden"):
        source = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", ".")) / path
        if now != text:
            source.write_text(now, encoding="utf-8")
            print(f"rewrote {path}")
        return
    assert now == text, "if the new output is right: bazel run //tests:golden_test -- --update-golden"
