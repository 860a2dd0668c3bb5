"""Every file of tests belongs to a target: one that no BUILD.bazel names is never run."""

from pathlib import Path

import pytest

from tools import tree


def package_of(path: Path, packages: set[Path]) -> Path:
    """The folder whose BUILD.bazel has the targets of a file."""
    return next(folder for folder in path.parents if folder in packages)


def is_declared(stem: str, build: str) -> bool:
    """Whether the text of a BUILD.bazel names a file of tests, or makes its target of the name without "_test"."""
    return f'"{stem}"' in build or f"{stem}." in build or f'"{stem.removesuffix("_test")}"' in build


def test_files_of_tests_have_targets():
    files = tree.files()
    packages = {path.parent for path in files if path.name == "BUILD.bazel"}
    builds = {folder: (tree.workspace() / folder / "BUILD.bazel").read_text(encoding="utf-8") for folder in packages}
    tests = [path for path in files if path.stem.endswith("_test") and path.suffix in (".py", ".cc", ".cu")]
    assert len(tests) > 250, "the tree was not read"
    missing = [str(path) for path in tests if not is_declared(path.stem, builds[package_of(path, packages)])]
    assert not missing, f"no target runs {missing}"


@pytest.mark.parametrize("build", ['srcs = ["tests/a_test.py"]', 'name = "a_test"', 'for name in ["a", "b"]'])
def test_declared(build):
    assert is_declared("a_test", build)


@pytest.mark.parametrize("build", ['srcs = ["tests/b_test.py"]', 'name = "ab"', ""])
def test_not_declared(build):
    assert not is_declared("a_test", build)
