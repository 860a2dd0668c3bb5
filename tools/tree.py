"""The source tree, for tests and tools that look at all of it.

    python3 tools/tree.py       prints the path of every file, each ended by a zero byte

They read the workspace itself, not runfiles, so that no package can be left out. Such a test has the tag "external"
(its result is never taken from the cache), since Bazel does not know what it reads.
"""

import os
import subprocess
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path


def workspace() -> Path:
    """The root of the workspace that this file was checked out in."""
    root = Path(os.path.realpath(__file__)).parent.parent
    if not (root / "WORKSPACE").exists():
        raise RuntimeError(f"{root} is not the root of the workspace: the test must run unsandboxed (see .bazelrc)")
    return root


def files(*suffixes: str) -> list[Path]:
    """Paths, relative to the root, of the files whose names end so (all, without suffixes).

    In a checkout it is what git tracks or would track; in an unpacked archive, what .gitignore does not name.
    """
    found = files_below(workspace())
    return [path for path in found if path.name.endswith(suffixes)] if suffixes else found


def files_below(root: Path) -> list[Path]:
    """The same for another root."""
    names = _of_git(root) if (root / ".git").exists() else _without_git(root)
    return [path for path in sorted(map(Path, names)) if (root / path).is_file()]


def _of_git(root: Path) -> list[str]:
    listing = subprocess.run(
        ["git", "-c", f"safe.directory={root}", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    return [name for name in listing.split("\0") if name]


def _without_git(root: Path) -> Iterator[str]:
    lines = (root / ".gitignore").read_text(encoding="utf-8").splitlines()
    patterns = [".git"] + [line for line in lines if line and not line.startswith("#")]
    for folder, folders, names in os.walk(root):
        here = "" if Path(folder) == root else Path(folder).relative_to(root).as_posix() + "/"
        folders[:] = [name for name in folders if not any(_ignores(p, here + name, folder=True) for p in patterns)]
        for name in names:
            if not any(_ignores(p, here + name, folder=False) for p in patterns):
                yield here + name


def _ignores(pattern: str, path: str, folder: bool) -> bool:
    """Whether a line of .gitignore names the path; knows the kinds of lines that ours has, and refuses others."""
    name = pattern.removeprefix("/").removesuffix("/")
    if pattern.startswith("!") or "/" in name or "**" in name:
        raise ValueError(f".gitignore: '{pattern}' is a kind of line that tools/tree.py does not know")
    if pattern.endswith("/") and not folder:
        return False
    if pattern.startswith("/"):
        return fnmatchcase(path, name) and "/" not in path
    return fnmatchcase(path.rpartition("/")[2], name)


if __name__ == "__main__":
    print("".join(f"{path}\0" for path in files()), end="")
