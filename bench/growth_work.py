"""What a pass does for an equation of a long program and of a short one: instructions, and misses of a cache.

    ./bazelw build --config=release //bench:growth
    python3 bench/growth_work.py bazel-bin/bench/growth "all passes of grad" loops     # with valgrind installed

Counted by valgrind's cachegrind, of one run: between programs of 2,000 and 4,000 equations, and of 50,000 and 100,000.
The caches are those of a small machine, 32 KiB and 2 MiB.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile

LENGTHS = ((2000, 4000), (50_000, 100_000))


def counts(*arguments: str) -> dict[str, float]:
    with tempfile.NamedTemporaryFile() as out:
        command = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", "--LL=2097152,16,64", "--D1=32768,8,64"]
        command += [f"--cachegrind-out-file={out.name}", *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        text = out.read().decode()
    names = re.search(r"^events: (.*)$", text, re.MULTILINE)
    total = re.search(r"^summary: (.*)$", text, re.MULTILINE)
    assert names and total
    found = dict(zip(names[1].split(), map(float, total[1].split())))
    return {
        "eqns": float(done.stdout.split()[-1]),
        "instructions": found["Ir"],
        "misses": found["DLmr"] + found["DLmw"],
    }


def work(binary: str, row: str, program: str, length: int) -> dict[str, float]:
    """Without what comes before it."""
    arguments = (binary, row, program, str(length))
    whole, before = counts(*arguments), counts(*arguments, "before")
    return {k: whole[k] - (before[k] if k != "eqns" else 0) for k in whole}


def main() -> None:
    binary, row, program = sys.argv[1:4]
    found = []
    for short, long in LENGTHS:
        a, b = (work(binary, row, program, n) for n in (short, long))
        eqns = b["eqns"] - a["eqns"]
        found.append([(b[k] - a[k]) / eqns for k in ("instructions", "misses")])
    (i0, m0), (i1, m1) = found
    print(f"| {row} | {program} | {i0:.0f} | {i1:.0f} | {i1 / i0:.2f} | {m0:.1f} | {m1:.1f} |")


if __name__ == "__main__":
    main()
