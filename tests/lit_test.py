"""Runs the lit tests of tests/lit: a `# RUN:` line is a command, `# CHECK` lines are for FileCheck."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path("tests/lit")


def test_lit(tmp_path: Path) -> None:
    assert len(list(FOLDER.glob("*.weft"))) >= 3
    assert shutil.which("FileCheck-19", path=SEARCH), "FileCheck comes with the Debian package llvm-19-tools"
    command = [
        *(sys.executable, "-m", "lit.main", "-v", "--time-tests"),
        *("--param", f"weft={Path('driver/weft').resolve()}", "--param", f"output={tmp_path}"),
        str(FOLDER.resolve()),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, "PATH": SEARCH}
    )
    assert done.returncode == 0, done.stdout + done.stderr


SEARCH = os.environ.get("PATH", "") + ":/usr/bin:/bin"
