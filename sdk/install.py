"""Writes the SDK below a folder: include/weft, lib/libweft.so, lib/cmake/weft, lib/pkgconfig/weft.pc and bin/weft.

    ./bazelw run -c opt //sdk:install -- --prefix=FOLDER

Nothing in it names the folder, so it may be moved.
"""

import argparse
import os
import shutil
import sys
from pathlib import Path


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)  # the old one may be in use, or read-only as what Bazel makes is
    shutil.copyfile(source, target)
    target.chmod(0o755 if os.access(source, os.X_OK) else 0o644)


def _place_of(header: str) -> Path:
    """Where a header is included from: what the build writes lies below a folder of its own."""
    parts = Path(header).parts
    for start, part in enumerate(parts):
        if part in ("base", "ir", "transforms", "sdk"):
            return Path(*parts[start:])
    raise SystemExit(f"install: {header} lies in no folder of the SDK")


def main() -> int:
    parser = argparse.ArgumentParser(
        "install",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        fromfile_prefix_chars="@",
    )
    parser.add_argument("--version", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--library", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--program", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--cmake", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--prefix", required=True, help="the folder")
    parser.add_argument(
        "--without-program",
        action="store_const",
        const=None,
        dest="program",
        help="leave bin/weft out, as a wheel does",
    )
    parser.add_argument("headers", nargs="+", help=argparse.SUPPRESS)
    here = Path(__file__)
    options = parser.parse_args([f"@{here.with_name('install.arguments')}", *sys.argv[1:]])
    root = here.parent.parent  # what the build lists is named from there
    prefix = Path(os.environ.get("BUILD_WORKING_DIRECTORY", ".")) / Path(options.prefix).expanduser()
    major = options.version.split(".")[0]
    try:
        for header in options.headers:
            _copy(root / header, prefix / "include/weft" / _place_of(header))
        _copy(root / options.library, prefix / f"lib/libweft.so.{major}")
        link = prefix / "lib/libweft.so"
        link.unlink(missing_ok=True)
        link.symlink_to(f"libweft.so.{major}")
        if options.program is not None:
            _copy(root / options.program, prefix / "bin/weft")
        for name, place in (
            ("weft-config.cmake", "lib/cmake/weft"),
            ("weft-config-version.cmake", "lib/cmake/weft"),
            ("weft.pc", "lib/pkgconfig"),
        ):
            text = ((root / options.cmake).parent / f"{name}.in").read_text(encoding="utf-8")
            target = prefix / place / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text.replace("@VERSION@", options.version).replace("@MAJOR@", major), encoding="utf-8")
    except OSError as error:
        print(f"install: cannot write below {prefix}: {error}", file=sys.stderr)
        return 1
    print(f"The SDK, version {options.version}, is in {prefix}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
