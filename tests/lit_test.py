"""Runs the lit tests of tests/lit: a `# RUN:` line is a command, `# CHECK` lines are for FileCheck."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path("tests/lit")
SEARCH = os.environ.get("PATH", "") + ":/usr/bin:/bin"
# The module lit.main only defines it.
LIT = "import sys, lit.main; sys.exit(lit.main.main())"


def run(tmp_path: Path, folder: Path) -> tuple[int, dict[str, str], str]:
    """The exit code of lit, its verdict on each file, and what it printed."""
    results = tmp_path / "results.json"
    command = [
        *(sys.executable, "-c", LIT, "-v", "--output", str(results)),
        *("--param", f"weft={Path('driver/weft').resolve()}", "--param", f"output={tmp_path}"),
        str(folder.resolve()),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, "PATH": SEARCH}
    )
    printed = done.stdout + done.stderr
    assert results.exists(), printed
    tests = json.loads(results.read_text())["tests"]
    return done.returncode, {t["name"].rpartition(":: ")[2]: t["code"] for t in tests}, printed


def test_lit(tmp_path: Path) -> None:
    assert shutil.which("FileCheck-19", path=SEARCH), "FileCheck comes with the Debian package llvm-19-tools"
    status, verdicts, printed = run(tmp_path, FOLDER)
    names = sorted(f.name for f in FOLDER.glob("*.weft"))
    assert len(names) >= 3
    assert verdicts == dict.fromkeys(names, "PASS"), printed
    assert status == 0, printed


def test_a_check_that_does_not_hold_fails(tmp_path: Path) -> None:
    folder = tmp_path / "lit"
    folder.mkdir()
    shutil.copy(FOLDER / "lit.cfg.py", folder)
    text = (FOLDER / "print.weft").read_text()
    (folder / "print.weft").write_text(text.replace("CHECK-NEXT: return", "CHECK-NEXT: give back"))
    status, verdicts, _ = run(tmp_path, folder)
    assert status != 0 and list(verdicts.values()) == ["FAIL"]
