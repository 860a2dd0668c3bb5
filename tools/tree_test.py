"""The list of sources is the same with git and without."""

import subprocess

import pytest

from tools import tree

_SOURCES = ["BUILD.bazel", ".ci/run", "a/b.cc", "a/dist/c.py", "a/bazel-x/d.h", "a/.bazelrc.user", "name of spaces.md"]
_OTHERS = [
    ".bazelrc.user",
    "bazel-out/x.cc",
    "dist/w.whl",
    "a/__pycache__/b.py",
    "a/b.so",
    ".cache/x",
    "a/.DS_Store",
    "a.egg-info/PKG-INFO",
    "digits.png",
]


@pytest.mark.parametrize("git", [False, True])
def test_sources_and_nothing_else(tmp_path, git):
    (tmp_path / ".gitignore").write_bytes((tree.workspace() / ".gitignore").read_bytes())
    for name in _SOURCES + _OTHERS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    # As Bazel leaves them: links to folders elsewhere.
    (tmp_path / "bazel-bin").symlink_to(tmp_path / "a")
    if git:
        subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    found = [path.as_posix() for path in tree.files_below(tmp_path)]
    assert found == sorted([".gitignore", *_SOURCES])


def test_workspace():
    assert {"WORKSPACE", "bazelw", ".ci/run", "tools/tree_test.py"} <= {path.as_posix() for path in tree.files()}
    assert all(path.suffix == ".py" for path in tree.files(".py"))
    # The walk, too, understands every line of our .gitignore.
    assert set(tree.files()) <= set(map(tree.Path, tree._without_git(tree.workspace())))


@pytest.mark.parametrize("line", ["!a", "a/b", "**/a"])
def test_lines_that_the_walk_does_not_know(tmp_path, line):
    (tmp_path / ".gitignore").write_text(line + "\n")
    with pytest.raises(ValueError, match=r"tools/tree\.py does not know"):
        tree.files_below(tmp_path)
