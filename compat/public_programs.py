"""Public programs for JAX, as their authors wrote them, on Weft and beside JAX: writes docs/public_programs.md.

./bazelw run //compat:public_programs                           # all of public_programs.toml, and the page
./bazelw run //compat:public_programs -- lattice_boltzmann ...  # some of them; the page stays
./bazelw run //compat:public_programs -- --clones FOLDER ...    # from clones FOLDER/OWNER/NAME instead of the network
./bazelw run //compat:public_programs -- --others ...           # the part of the time that is neither JAX's nor Weft's

The programs are not part of this repository: the list says which file of which commit is fetched, and which of its
numbers (sizes, steps) are made smaller. Each is run by JAX and by Weft, and where they differ by JAX again, up to five
times, with other rounding errors: where the runs of JAX differ, too, the numbers follow rounding errors (or the clock),
and are not compared.
"""

import argparse
import json
import math
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import environments
import numpy as np

import weft

HERE = Path(__file__).resolve().parent
# Relative to the largest number of the array. Chains of steps in single precision.
TOLERANCE = 1e-3
# Rounding errors are others on Weft than between JAX's two runs, so that these say only how large they are.
_TIMES_ITS_OWN = 10
_LIMIT = 300  # seconds for a run
# Both in double precision: where they agree then, the difference is one of rounding.
_WIDE = {"JAX_ENABLE_X64": "1"}
# JAX again with other rounding errors: random numbers and grids, or results of functions, that are larger by the last
# bit (run_public.py); sums and products in any order; no fused multiply-add and shorter vectors; no optimisation.
_OTHER_ROUNDING = (
    {"NUDGED": "functions"},
    {"NUDGED": "values"},
    {"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"},
    {"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"},
    {"XLA_FLAGS": "--xla_backend_optimization_level=0"},
)


class Program(NamedTuple):
    """An entry of public_programs.toml."""

    name: str
    about: str
    repository: str
    commit: str
    path: str
    files: Sequence[str] = ()  # what it imports from its repository
    cuts: Sequence[Sequence[str]] = ()  # [text, what stands there instead]
    without: Sequence[int] = ()  # cells of a notebook that are left out
    arguments: Sequence[str] = ()  # on its command line
    why: str = ""  # why it does not run, or why numbers differ


class Unavailable(Exception):
    """A file cannot be fetched."""


class Run(NamedTuple):
    """What a program ended with."""

    numbers: dict[str, tuple[str, np.ndarray]]
    seconds: float
    processor: float  # seconds of all its threads
    memory: int
    error: str
    trace: str
    others: float = math.nan  # seconds of code that is neither JAX's nor Weft's, where that was asked for


def programs() -> list[Program]:
    """The list."""
    with open(HERE / "public_programs.toml", "rb") as file:
        content = tomllib.load(file)
    commits = content["commits"]
    return [Program(**entry, commit=commits[entry["repository"]]) for entry in content["program"]]


def fetched(repository: str, commit: str, path: str, clones: Path | None) -> str:
    """The text of a file of a commit. Raises Unavailable."""
    if clones is not None:
        command = ["git", f"--git-dir={clones / repository}", "show", f"{commit}:{path}"]
        if not (clones / repository / "HEAD").exists():
            command[1] = f"--git-dir={clones / repository / '.git'}"
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Unavailable(done.stderr.strip().splitlines()[-1])
        return done.stdout
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weft" / "public_programs"
    kept = cache / repository / commit / path
    if not kept.exists():
        url = f"https://raw.githubusercontent.com/{repository}/{commit}/{urllib.request.quote(path)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                text = answer.read()
        except (urllib.error.URLError, OSError) as error:
            raise Unavailable(str(error)) from None
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(text)
    return kept.read_text(encoding="utf-8")


def cells(text: str, path: str) -> list[str]:
    """The cells of a notebook or of a page of MyST; a script is one."""
    if path.endswith(".ipynb"):
        return ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    if not path.endswith(".md"):
        return [text]
    found = []
    for match in re.finditer(r"^(`{3,})\{code-cell\}[^\n]*\n(.*?)^\1\s*$", text, re.M | re.S):
        body = match.group(2)
        if body.startswith("---"):
            body = body.split("---", 2)[2].lstrip("\n")
        found.append(re.sub(r"\A(:[\w-]+:.*\n)+", "", body))
    return found


def script(program: Program, text: str) -> str:
    """The program as one script. Commands of IPython are left out; the cuts are made."""
    found = []
    for number, cell in enumerate(cells(text, program.path)):
        if number in program.without or re.match(r"\s*%%(?!time\b|capture\b)", cell):
            continue
        if not program.path.endswith(".py"):
            cell = re.sub(r"(?m)^(\s*)%time +", r"\1", cell)
            cell = re.sub(r"(?m)^(\s*)(?:[!%]|\?\w|\w[\w.]*\?$).*$", r"\1pass", cell)
        found.append(f"# Cell {number}\n{cell}\n")
    whole = "\n".join(found)
    if len(found) > 1:  # a cell may begin with what only a file may begin with
        future = re.findall(r"(?m)^from __future__ .*\n", whole)
        whole = "".join(future) + re.sub(r"(?m)^from __future__ .*\n", "", whole)
    for old, instead in program.cuts:
        if old not in whole:
            raise ValueError(f"{program.name}: {old!r} is not there")
        whole = whole.replace(old, instead)
    return whole


def prepared(program: Program, clones: Path | None, folder: Path) -> Path:
    """The script in a folder, with the files that it imports. Raises Unavailable."""
    text = script(program, fetched(program.repository, program.commit, program.path, clones))
    for name in program.files:
        there = folder / name
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(fetched(program.repository, program.commit, name, clones), encoding="utf-8")
    file = folder / "program.py"
    file.write_text(text, encoding="utf-8")
    return file


def run(python: Path, file: Path, on_weft: bool, more: dict[str, str], arguments: Sequence[str] = ()) -> Run:
    """Runs a script in a process of its own, without any cache of compiled programs."""
    path = Path(weft.__file__).parent.parent if on_weft else environments.folder_with_jax()
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "JAX_"))}
    variables = {**clean, "PYTHONPATH": str(path), "JAX_PLATFORMS": "cpu", "WEFT_CACHE_DIR": "off"}
    variables |= {"PYTHONHASHSEED": "0", **more}  # the order of sets is part of what some programs compute
    out = file.parent / "found.npz"
    out.unlink(missing_ok=True)
    how = ["-m", "weft.as_jax"] if on_weft else []
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
    command = [str(python), *how, str(HERE / "run_public.py"), file.name, out.name, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=variables, cwd=file.parent, timeout=_LIMIT)
    except subprocess.TimeoutExpired:
        return Run({}, _LIMIT, math.nan, 0, f"takes more than {_LIMIT} s", "")
    seconds, after = time.time() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    written = re.findall(r'^\{"written": .*\}$', done.stdout, re.M)
    if not written:
        return Run({}, seconds, math.nan, 0, f"ended with {done.returncode}", done.stderr[-3000:])
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    wall_of_writing, of_writing = json.loads(written[-1])["written"]
    with np.load(out) as content:
        report = json.loads(str(content["report"]))
        numbers = {place: (kind, content[f"n{i}"]) for i, (place, kind) in enumerate(report["types"])}
    said = (report.get("error", ""), report.get("trace", ""))
    times = (seconds - wall_of_writing, processor - of_writing)
    return Run(numbers, *times, report["memory"], *said, report.get("others", math.nan))


def apart(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference, relative to the largest number that is finite."""
    if a.shape != b.shape:
        return math.inf
    a, b = (x.astype(complex if x.dtype.kind == "c" else float) for x in (a, b))
    same = (a == b) | ((a != a) & (b != b))
    if same.all():
        return 0.0
    finite = np.isfinite(a)
    largest = np.abs(a[finite]).max(initial=0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        worst = np.abs(a - b)[~same].max() / (largest or 1.0)
    return float(worst) if worst == worst else math.inf


class Comparison(NamedTuple):
    """JAX's numbers beside Weft's."""

    same: int  # arrays
    own: list[str]  # where JAX differs from itself
    other: dict[str, float]  # place -> difference
    worst: float  # of those that are the same


def compare(theirs: Run, others: Sequence[Run], ours: Run) -> Comparison:
    """Compares by names: all of JAX's. others: what JAX gives with other rounding errors."""
    same, own, other, worst = 0, [], {}, 0.0
    for place, (kind, numbers) in theirs.numbers.items():
        again = [other.numbers.get(place, ("", np.zeros(0))) for other in others]
        found_kind, found = ours.numbers.get(place, ("", np.zeros(0)))
        if place == "(printed)" and all(numbers.shape == x.shape for x in (found, *(x for _, x in again))):
            steady = [i for i, a in enumerate(numbers) if all(apart(a, x[i]) <= TOLERANCE for _, x in again)]
            numbers, found, again = numbers[steady], found[steady], [(k, x[steady]) for k, x in again]
        spread = max((apart(numbers, x) if kind == k else math.inf for k, x in again), default=0.0)
        if spread > TOLERANCE:
            own.append(place)
            continue
        difference = apart(numbers, found) if kind == found_kind else math.inf
        if difference <= max(TOLERANCE, _TIMES_ITS_OWN * spread):
            same += 1
            worst = max(worst, difference)
        else:
            other[place] = difference
    return Comparison(same, own, other, worst)


class Row(NamedTuple):
    """A row of the table."""

    program: Program
    runs: str
    numbers: str
    jax: float = math.nan
    time: float = math.nan
    processor: float = math.nan
    memory: float = math.nan
    good: bool = False


def row(program: Program, python: Path, clones: Path | None, folder: Path, repeat: int = 1) -> Row:
    """Runs a program under JAX and on Weft."""
    try:
        file = prepared(program, clones, folder)
    except Unavailable as error:
        return Row(program, f"cannot be fetched: {error}", "")
    theirs = run(python, file, False, {}, program.arguments)
    if theirs.error:
        print(theirs.trace)
        return Row(program, f"fails under JAX: {theirs.error}", "", theirs.seconds)
    ours = run(python, file, True, {}, program.arguments)
    if ours.error:
        print(ours.trace)
        return Row(program, f"does not run: {ours.error}", "", theirs.seconds, ours.seconds / theirs.seconds)
    found, others = compare(theirs, [], ours), []
    for more in _OTHER_ROUNDING:
        if not found.other:
            break
        again = run(python, file, False, more, program.arguments)
        if not again.error:
            others.append(again)
            found = compare(theirs, others, ours)
    wide = 0
    if found.other:
        in_64_bits = [run(python, file, on_weft, _WIDE, program.arguments) for on_weft in (False, True)]
        if not any(each.error for each in in_64_bits):
            differ = compare(in_64_bits[0], [], in_64_bits[1]).other
            there = {place: apart for place, apart in found.other.items() if place in differ}
            wide, found = len(found.other) - len(there), found._replace(other=there)
    for place, difference in [*found.other.items()][:8]:
        kinds = [r.numbers.get(place, ("missing",))[0] for r in (theirs, ours)]
        print(f"    {place}: {difference:.1e} ({kinds[0]}{'' if kinds[0] == kinds[1] else f', on Weft {kinds[1]}'})")
    numbers = f"{found.same} of {found.same + len(found.other)}, {found.worst:.0e}"
    if found.own:
        numbers += f"; {len(found.own)} more differ under JAX itself"
    if wide:
        numbers += f"; {wide} more are the same in 64 bits"
    if found.other and program.why:
        numbers += f"; {program.why}"
    seconds = [(theirs.seconds, ours.seconds)]
    for _ in range(repeat - 1):
        seconds.append(tuple(run(python, file, on_weft, {}, program.arguments).seconds for on_weft in (False, True)))
    jax_s, weft_s = (min(each) for each in zip(*seconds))
    good = found.same > 0 and not found.other
    ratios = (weft_s / jax_s, ours.processor / theirs.processor, ours.memory / theirs.memory)
    return Row(program, "yes", numbers, jax_s, *ratios, good)


def others_part(program: Program, python: Path, clones: Path | None, folder: Path) -> float:
    """The processor time of code that is neither JAX's nor Weft's, as part of that of the program under JAX."""
    file = prepared(program, clones, folder)
    theirs = run(python, file, False, {}, program.arguments)
    ours = run(python, file, True, {"SAMPLED": "1"}, program.arguments)
    return ours.others / theirs.processor


def geometric_mean(values: list[float]) -> float:
    """Of the numbers that are there."""
    known = [value for value in values if value == value]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else math.nan


# What --others found.
_OTHERS = {"others": 0.06, "sampled": 113}
# Which machine it was, and what another one found.
_MACHINES = """Measured on 2 cores of an AMD EPYC
(AVX-512). On Intel processors memory was 0.04 above that of this one, for 84 of the programs: at the start it is the
code of both libraries, of which systems map more or less around what is used. Of the processor's time of these 84 on
Weft 58 % was Python's interpreter (other libraries' imports, the program, tracing, and the end of the process, which
has become shorter since), 12 % the system (memory, files), 9 % LLVM and MLIR, 4 % the compiled programs, 3 % the rest
of Weft's C++ (by `perf`)."""

_HEAD = """# Public programs for JAX on Weft

`./bazelw run //compat:public_programs` fetches these programs from GitHub, runs each under JAX {jax} and under
[`weft.as_jax`](jax_programs.md), and writes this page. `compat/public_programs.toml` says which file of which commit,
and what is cut: sizes, so that each takes some seconds, and what no two runs have in common (unseeded numbers). None of
them is part of this repository.

*Numbers*: how many of the arrays in the program's global variables (and what it printed) are JAX's within
{tolerance:g} of the largest number of the array, and the largest difference of those. Where something differs, JAX
runs the program again with other rounding errors: with random numbers and grids that are larger by the last bit, with
exponentials, logarithms, sines and products of matrices that are (these have no prescribed last bit), with sums in any
order, with instructions of an older processor, without optimisation. Arrays that differ there among the
runs of JAX follow rounding errors or the clock, and are not compared. Where something differs still, both run in 64
bits; what is the same there differs by rounding errors. *JAX*: seconds from the start of Python to the end of its
process, without a cache of compiled programs; *time*, *processor* (time of all threads, which a loaded machine changes
less) and *memory* (at its peak): Weft / JAX.

{good} of {count} run and have JAX's numbers. Geometric means, beside what no compiler goes below, which is the part of
JAX's time that is neither JAX's nor Weft's: other libraries' imports, the program's own Python, NumPy, data, plots
(`-- --others`, by samples of the stack; {sampled} of the programs). {machines}

| | time | processor | memory |
|---|---|---|---|
| neither JAX nor Weft | | {others:.2f} | |
| goal | 0.17 | | 0.40 |
| Weft | {time:.2f} | {processor:.2f} | {memory:.2f} |

| program | about | runs | numbers | JAX (s) | time | processor | memory |
|---|---|---|---|---|---|---|---|
"""


def table(rows: list[Row], jax: str) -> str:
    """docs/public_programs.md."""
    count, good = len(rows), sum(row.good for row in rows)
    ratios = ("time", "processor", "memory")
    means = {ratio: geometric_mean([getattr(row, ratio) for row in rows]) for ratio in ratios}
    text = _HEAD.format(jax=jax, tolerance=TOLERANCE, count=count, good=good, **means, **_OTHERS, machines=_MACHINES)
    for row in rows:
        entry = row.program
        url = f"https://github.com/{entry.repository}/blob/{entry.commit}/{urllib.request.quote(entry.path)}"
        figures = " | ".join(
            "" if x != x else f"{x:.{digits}f}"
            for x, digits in ((row.jax, 1), (row.time, 2), (row.processor, 2), (row.memory, 2))
        )
        runs = row.runs.splitlines()[0][:120].replace("|", "\\|")
        text += f"| [{entry.name}]({url}) | {entry.about} | {runs} | {row.numbers} | {figures} |\n"
    return text


def main(arguments: list[str]) -> int:
    """Runs programs; the exit code says whether all have JAX's numbers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--clones", type=Path)
    parser.add_argument("--repeat", type=int, default=1, help="times are the least of as many runs")
    parser.add_argument("--others", action="store_true", help="what code takes that is neither JAX's nor Weft's")
    options = parser.parse_args(arguments)
    chosen = [program for program in programs() if not options.names or program.name in options.names]
    python = environments.python_with("requirements-programs.txt")
    if options.others:
        parts = []
        for program in chosen:
            with tempfile.TemporaryDirectory() as folder:
                parts.append(others_part(program, python, options.clones, Path(folder)))
            print(f"{program.name}: {parts[-1]:.3f}", flush=True)
        print(f"geometric mean: {geometric_mean(parts):.3f}")
        return 0
    rows = []
    for program in chosen:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(row(program, python, options.clones, Path(folder), options.repeat))
        print(f"{program.name}: {rows[-1][1:]}", flush=True)
    if not options.names:
        import libraries

        page = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", HERE.parent)) / "docs" / "public_programs.md"
        page.write_text(table(rows, libraries.versions()["jax"]), encoding="utf-8")
    print(f"{sum(row.good for row in rows)} of {len(rows)}")
    return 0 if all(row.good or row.program.why for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
