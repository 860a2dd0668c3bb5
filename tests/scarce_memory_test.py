"""The command line where there is little memory: it does with less, or ends with a sentence and an exit status; it does
not crash, and does not wait for ever."""

import functools
import os
import resource
import subprocess
from pathlib import Path

import numpy as np
import pytest

MEGABYTE = 1 << 20
STEPS = 40
PROGRAM = "\n".join(
    ["fn f(x: f32[8,8]) -> (f32[8,8]) {", "  v0: f32[8,8] = tanh x"]
    + [
        line
        for i in range(STEPS)
        for line in (
            f'  p{i}: f32[8,8] = contract[spec="mk,kn->mn"] v{i} v{i}',
            f"  s{i}: f32[8,8] = sin p{i}",
            f"  v{i + 1}: f32[8,8] = mul s{i} {i + 2}.017:f32",
        )
    ]
    + [f"  return v{STEPS}", "}"]
)


def limited(megabytes: int, *command: object) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes * MEGABYTE, megabytes * MEGABYTE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    environment = {"WEFT_NUM_THREADS": "3", "WEFT_CACHE_DIR": "off"} | os.environ
    environment.pop("OPENBLAS_NUM_THREADS", None)
    return subprocess.run(
        list(map(str, command)),
        preexec_fn=limit,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@functools.cache
def least(*command: str) -> int:
    """How many megabytes a command takes that does hardly more than to load the libraries."""
    too_few, enough = 1, 1024
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if limited(middle, *command).returncode == 0:
            enough = middle
        else:
            too_few = middle
    return enough


def outcomes(*command: object) -> set[str]:
    seen = set()
    begin = least(str(command[0]), "--help")
    for megabytes in [begin - 20, *range(begin, begin + 16, 2), *range(begin + 16, begin + 240, 16)]:
        done = limited(megabytes, *command)
        where = f"{megabytes} MB: {done.returncode}: {done.stderr[-300:]}"
        if done.returncode == 0:
            seen.add("done")
        elif done.returncode == 127:  # the system's loader
            assert "error while loading shared libraries" in done.stderr, where
        else:
            assert done.returncode == 1, where
            reasons = ("out of memory", "annot allocate memory", "failed to map segment")
            assert any(reason in done.stderr for reason in reasons), where
            assert done.stderr.startswith("weft") and done.stderr.count("\n") == 1, where
            seen.add("out of memory")
    return seen


@pytest.fixture(name="program")
def program_file(tmp_path: Path) -> Path:
    file = tmp_path / "program.weft"
    file.write_text(PROGRAM)
    return file


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("stage", ["asm", "optimized"])
def test_stages(program: Path, stage: str, threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_NUM_THREADS", threads)
    seen = outcomes("driver/weft", "dump", program, f"--stage={stage}")
    assert "done" in seen and (stage != "asm" or "out of memory" in seen)


def test_bundles(program: Path, tmp_path: Path) -> None:
    assert outcomes("driver/weft", "export", program, "-o", tmp_path / "it.weftb") >= {"out of memory"}


def test_runs(program: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.full((8, 8), 0.1, np.float32))
    assert outcomes("driver/weft", "run", program, "--inputs", tmp_path / "x.npy") >= {"out of memory"}


@pytest.mark.parametrize("tool", ["driver/weft", "driver/weft-run"])
def test_running_bundles(program: Path, tmp_path: Path, tool: str) -> None:
    np.save(tmp_path / "x.npy", np.full((8, 8), 0.1, np.float32))
    subprocess.run(["driver/weft", "export", program, "-o", tmp_path / "it.weftb"], check=True)
    run = [tool, "run", tmp_path / "it.weftb", "--inputs", tmp_path / "x.npy"]
    assert "done" in outcomes(*run)
