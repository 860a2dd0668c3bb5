"""Small programs written for JAX run under Weft after only their import lines are changed, and give the same numbers."""

import pathlib
import re

import numpy as np
import pytest

PROGRAMS = sorted((pathlib.Path(__file__).parent / "jax_programs").glob("*.py"))


def ported(text: str) -> str:
    """The program with its imports changed: `import jax` becomes `import weft as jax`; nothing else is touched."""
    lines = []
    for line in text.splitlines():
        if re.match(r"import jax\b|from jax\b", line):
            line = re.sub(r"^import jax\.(\S+) as (\w+)$", r"import weft.\1 as \2", line)
            line = re.sub(r"^import jax$", "import weft as jax", line)
            line = re.sub(r"^from jax(\S*) import", r"from weft\1 import", line)
        lines.append(line)
    return "\n".join(lines)


def flat(value) -> list:
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in flat(value[key])]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flat(item)]
    return [value]


def run(text: str, name: str) -> list:
    scope: dict = {"__name__": name}
    exec(compile(text, name, "exec"), scope)  # noqa: S102
    return flat(scope["result"])


def test_there_are_thirty():
    assert len(PROGRAMS) >= 30


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_program(path):
    pytest.importorskip("jax")
    text = path.read_text()
    ours, theirs = run(ported(text), path.name), run(text, path.name)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
