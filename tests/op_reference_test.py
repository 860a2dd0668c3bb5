"""docs/operations.md is generated."""

import subprocess
from pathlib import Path


def test_the_committed_reference_is_current() -> None:
    now = subprocess.run(["driver/weft", "ops"], capture_output=True, text=True, check=True).stdout
    assert now == Path("docs/operations.md").read_text(encoding="utf-8"), (
        "bazel run //driver:weft -- ops > docs/operations.md"
    )
