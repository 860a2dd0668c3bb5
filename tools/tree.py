"""The source tree, for tests that check all of it.

They read the workspace itself, not runfiles, so that no package can be left out. Such a test has the tag "external"
(its result is never taken from the cache), since Bazel does not know what it reads.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

# Folders that are not ours or not sources.
_SKIPPED = {"dist", "node_modules", "__pycache__"}


def workspace() -> Path:
    """The root of the workspace that this file was checked out in."""
    root = Path(os.path.realpath(__file__)).parent.parent
    if not (root / "WORKSPACE").exists():
        raise RuntimeError(f"{root} is not the root of the workspace: the test must run unsandboxed (see .bazelrc)")
    return root


def files(*suffixes: str) -> Iterator[Path]:
    """Paths, relative to the root, of the sources whose names end so; committed or not."""
    root = workspace()
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "bazel-")) and f not in _SKIPPED)
        for name in sorted(names):
            if name.endswith(suffixes):
                yield Path(folder, name).relative_to(root)


def tracked() -> list[Path]:
    """Paths, relative to the root, of what git tracks or would track."""
    root = workspace()
    listing = subprocess.run(
        ["git", "-c", f"safe.directory={root}", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    return [Path(name) for name in listing.split("\0") if name and (root / name).is_file()]
