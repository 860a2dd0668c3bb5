"""Writes the order in which the linker lays out the native module's functions: those that a typical program enters
come first, as they are entered.

Code is mapped into a process in pieces of 64 KB. Spread over all of LLVM, the few functions that a program needs fill
three times the memory that they have beside each other, and each piece is a fault.

python section_order.py --module=_weft.so --watch=libentered.so --packages=FOLDER --program=typical.py --order=out.txt
"""

import argparse
import collections
import os
import pathlib
import subprocess
import sys
import tempfile


def functions(module: pathlib.Path) -> dict[int, list[str]]:
    """Offset -> the names of the function there."""
    names = collections.defaultdict(list)
    listed = subprocess.run(["nm", "--defined-only", module], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        offset, kind, name = line.split(maxsplit=2)
        if kind in "tTwW":
            names[int(offset, 16)].append(name)
    return names


def entered(module: pathlib.Path, watch: pathlib.Path, packages: pathlib.Path, program: pathlib.Path) -> list[str]:
    """The names of the functions that the program enters, in order."""
    names = functions(module)
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        package = root / "packages" / "weft"
        package.mkdir(parents=True)
        for part in packages.iterdir():
            if part.name != "_weft.so":
                (package / part.name).symlink_to(part.resolve())
        (package / "_weft.so").symlink_to(module.resolve())
        (root / "functions").write_text("".join(f"{offset:x}\n" for offset in names))
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "WEFT_", "JAX_"))}
        variables = {
            **clean,
            "PYTHONPATH": os.pathsep.join([str(package.parent), *sys.path[1:]]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "WEFT_CACHE_DIR": "off",
            "LD_AUDIT": str(watch.resolve()),
            "ENTERED_LIBRARY": module.resolve().name,
            "ENTERED_AT": str(root / "functions"),
            "ENTERED_OUT": str(root / "entered"),
        }
        # Breakpoints are signals, which the threads that compile beside the program's own do not take: there are none
        # where there is one processor.
        one = lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        command = [sys.executable, program]
        done = subprocess.run(command, capture_output=True, text=True, env=variables, preexec_fn=one, check=False)
        if done.returncode:
            sys.exit(f"section_order: {program} ended with {done.returncode}\n{done.stderr[-3000:]}")
        found = dict.fromkeys(int(line, 16) for line in (root / "entered").read_text().split())
    return [name for offset in found for name in names[offset]]


def sections(names: list[str]) -> list[str]:
    """The sections of these functions, of a compiler that gives each function its own."""
    found = []
    for name in names:
        function, cold, _ = name.partition(".cold")
        if cold:
            found.append(f".text.unlikely.{function}")
        elif name.startswith("_GLOBAL__sub_I_"):
            found += [f".text.startup.{name}", ".text.startup"]  # one of the file's, where functions have none
        else:
            found.append(f".text.{name}")
    return list(dict.fromkeys(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("module", "watch", "packages", "program", "order"):
        parser.add_argument(f"--{option}", type=pathlib.Path, required=True)
    given = parser.parse_args()
    names = entered(given.module, given.watch, given.packages, given.program)
    given.order.write_text("".join(f"{section}\n" for section in sections(names)))


if __name__ == "__main__":
    main()
