"""docs/environment.md names every environment variable that Weft reads, and no other."""

import re

from tools import tree

_READ = re.compile(
    r'(?:getenv|EnvironmentNumber)\(\s*"(WEFT_\w+)"'
    r'|environ(?:\.get\(|\[)\s*"(WEFT_\w+)"'
)


def _is_program(name: str) -> bool:
    """Whether a file belongs to what users run: not to tests and benchmarks, which set variables."""
    return name.endswith((".cc", ".h", ".py", "bazelw", ".bzl")) and not re.search(
        r"(^|/)(tests|bench|fuzz)/|_test\.", name
    )


def test_documented():
    read = set()
    for path in tree.files():
        if _is_program(path.as_posix()):
            text = (tree.workspace() / path).read_text(encoding="utf-8")
            read |= {variable for found in _READ.findall(text) for variable in found if variable}
    assert read, "no variable was found"
    page = (tree.workspace() / "docs/environment.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`\$?(WEFT_[A-Z_]+)`", page)) == read
