"""The array API standard's own test suite, on weft.numpy.

    ./bazelw run //compat:array_api            # with 32-bit and with 64-bit defaults; writes docs/array_api.md
    ./bazelw run //compat:array_api -- --jax   # and on jax.numpy, with the same options

The published sources come from GitHub at the commits below, and the packages that they need from PyPI, into a folder of
their own. Where GitHub cannot be reached, --tests and --standard name clones of the two repositories.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import Any

TESTS = "https://github.com/data-apis/array-api-tests", "55fcc60179efa2680ddd6cd926ddf17b83530e2b"
STANDARD = "https://github.com/data-apis/array-api", "5f847a3858875c682ae901aa22b0413bf24be9da"
VERSION = "2024.12"
PAGE = f"https://data-apis.org/array-api/{VERSION}/"
PACKAGES = ["ndindex==1.10.1", "pytest-json-report==1.5.0", "pytest-metadata==3.1.1"]

# Tests that do not pass, by how their names begin, and why.
_IMMUTABLE = "arrays never change (`x.at[index].set(value)`); the standard allows it where `__setitem__` is refused"
_NUMPY_NUMBERS = "the limits are NumPy's numbers of the dtype (`numpy.float32`), as NumPy's and JAX's are"
_AS_PYTHON = "as Python, NumPy and JAX: the quotient is rounded down, and of infinities NaN"
APART = {
    "test_setitem": _IMMUTABLE,
    "test_asarray_arrays": "the test writes to the array: " + _IMMUTABLE,
    "test_finfo[float32]": _NUMPY_NUMBERS,
    "test_finfo[complex64]": _NUMPY_NUMBERS,
    "test_unary[sign((x_i is -0 or x_i == +0)) -> 0]": "the sign of zero is kept, as in JAX",
    "test_unary[tanh(real(x_i) is +infinity and isfinite(imag(x_i)) and imag(x_i) > 0) -> 1 + 0j]": (
        "the zero has the sign of sin(2 imag(x)), as in C, NumPy and JAX"
    ),
    "test_binary[floor_divide(": _AS_PYTHON,
    "test_binary[__floordiv__(": _AS_PYTHON,
    "test_iop[__ifloordiv__(": _AS_PYTHON,
}
X64 = "exec('import weft; weft.config.update(\"jax_enable_x64\", True); import weft.numpy as xp')"
MODULES = {"weft.numpy": "weft.numpy", "weft.numpy, x64": X64, "jax.numpy, x64": "jax.numpy"}


def sources(where: pathlib.Path, tests: str | None, standard: str | None) -> pathlib.Path:
    """The folder of the suite, with the standard's text inside of it, both at their commits."""
    suite = where / "array-api-tests"
    _checked_out(suite, tests or TESTS[0], TESTS[1])
    _checked_out(suite / "array-api", standard or STANDARD[0], STANDARD[1])
    return suite


def _checked_out(folder: pathlib.Path, origin: str, commit: str) -> None:
    git = lambda *args: subprocess.run(["git", "-C", str(folder), *args], check=True, capture_output=True, text=True)
    if not (folder / ".git").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        git("init", "--quiet")
    try:
        git("checkout", "--quiet", commit)
    except subprocess.CalledProcessError:
        got = subprocess.run(["git", "-C", str(folder), "fetch", "--quiet", origin, "--tags", "HEAD"])
        if got.returncode:
            sys.exit(f"array_api: {origin} cannot be fetched; --tests and --standard name clones of it")
        git("checkout", "--quiet", commit)


def packages(where: pathlib.Path) -> pathlib.Path:
    """The folder with what the suite needs beyond Weft's own test environment."""
    folder = where / "packages"
    if not (folder / "installed").exists():
        run = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), *PACKAGES]
        subprocess.run(run, check=True)
        (folder / "installed").write_text("\n".join(PACKAGES))
    return folder


def run(suite: pathlib.Path, extra: pathlib.Path, module: str, examples: int, more: list[str]) -> dict[str, Any]:
    """Runs the suite on a module. Returns its report."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        environment = {
            **os.environ,
            "ARRAY_API_TESTS_MODULE": module,
            "ARRAY_API_TESTS_VERSION": VERSION,
            "JAX_ENABLE_X64": "1",
            "JAX_PLATFORMS": "cpu",
            "PYTHONPATH": os.pathsep.join([str(extra), *filter(None, sys.path)]),
        }
        options = ["-q", "-p", "no:cacheprovider", "--derandomize", "--disable-deadline", "--tb=short"]
        options += ["--json-report", f"--json-report-file={report}", f"--max-examples={examples}"]
        command = [sys.executable, "-m", "pytest", *options, *(more or ["array_api_tests"])]
        subprocess.run(command, cwd=suite, env=environment)
        if not report.exists():
            sys.exit("array_api: the suite did not run")
        return json.loads(report.read_text())


def reason(test: str) -> str | None:
    """Why a test is not expected to pass; None: it is."""
    return next((why for start, why in APART.items() if test.startswith(start)), None)


def text(reports: dict[str, dict[str, Any]], examples: int) -> str:
    """docs/array_api.md."""
    names = list(reports)
    lines = [
        "# The array API standard",
        "",
        f"`weft.numpy` is a namespace of the [Python array API standard]({PAGE}), version {VERSION}:",
        "`x.__array_namespace__()` gives it, and `weft.numpy.__array_namespace_info__()` says what it can do.",
        "The standard's own test suite judges it: `./bazelw run //compat:array_api` gets its published sources,",
        "runs it and writes this page; `python/tests/array_api_test.py` has tests of our own that need no network.",
        "",
        f"Sources: {TESTS[0]} at `{TESTS[1][:12]}`,",
        f"{STANDARD[0]} at `{STANDARD[1][:12]}`; {examples} examples per property.",
        "",
        "| tests | " + " | ".join(names) + " |",
        "|---|" + "---|" * len(names),
    ]
    counts = {name: collections.defaultdict(collections.Counter) for name in names}  # type: ignore[var-annotated]
    for name in names:
        for test in reports[name]["tests"]:
            file = test["nodeid"].split("::")[0].rpartition("/")[2].removeprefix("test_").removesuffix(".py")
            counts[name][file.replace("_", " ")][test["outcome"]] += 1
    total = {name: sum(counts[name].values(), collections.Counter()) for name in names}
    show = lambda c: (
        f"{c['passed']} of {c['passed'] + c['failed'] + c['error']}"
        + (f" ({c['skipped']} skipped)" if c["skipped"] else "")
    )
    for file in sorted(counts[names[0]]):
        lines.append(f"| {file} | " + " | ".join(show(counts[name][file]) for name in names) + " |")
    lines.append("| **all** | " + " | ".join(f"**{show(total[name])}**" for name in names) + " |")
    lines += ["", "What does not pass in Weft:", "", "| tests | why |", "|---|---|"]
    left: dict[str, list[str]] = {}
    for name in (n for n in names if n.startswith("weft")):
        for test in reports[name]["tests"]:
            if test["outcome"] in ("failed", "error"):
                short = test["nodeid"].partition("::")[2]
                why = left.setdefault(reason(short) or "**not expected**", [])
                if short not in why:
                    why.append(short)
    for why, tests in left.items():
        begin = sorted({t.split("(")[0].replace("|", "\\|") if "(" in t else t for t in tests})
        lines.append(f"| {len(tests)}: {', '.join(f'`{t}`' for t in begin)} | {why} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", help="a clone of the repository of the suite")
    parser.add_argument("--standard", help="a clone of the repository of the standard")
    parser.add_argument("--examples", type=int, default=20, help="examples for each property")
    parser.add_argument("--jax", action="store_true", help="run it on jax.numpy, too")
    parser.add_argument("more", nargs="*", help="arguments of pytest: tests to run; the page is then not written")
    options = parser.parse_args()
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "weft" / "array_api"
    suite, extra = sources(cache, options.tests, options.standard), packages(cache)
    reports = {}
    for name, module in MODULES.items():
        if options.jax or not name.startswith("jax"):
            print(f"--- {name}", flush=True)
            reports[name] = run(suite, extra, module, options.examples, options.more)
    if not options.more:
        root = pathlib.Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."))
        (root / "docs" / "array_api.md").write_text(text(reports, options.examples))
    unexpected = {
        test["nodeid"]
        for name, report in reports.items()
        if name.startswith("weft")
        for test in report["tests"]
        if test["outcome"] in ("failed", "error") and reason(test["nodeid"].partition("::")[2]) is None
    }
    for test in sorted(unexpected):
        print("not expected:", test)
    sys.exit(bool(unexpected))


if __name__ == "__main__":
    main()
