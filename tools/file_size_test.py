"""No source is longer than one can read: split it by idea."""

from tools import tree

LIMIT = 600
# A test is a list of cases that do not know each other: it may be longer, and so may the programs that tests and
# benchmarks run.
LIMIT_OF_TESTS = 900


def test_no_file_is_too_long():
    lengths = {}
    for path in tree.files(".cc", ".h", ".cu", ".py", ".pyi", ".bzl"):
        lengths[path.as_posix()] = len((tree.workspace() / path).read_text(encoding="utf-8").splitlines())
    assert lengths, "no source was found"
    too_long = []
    for name, lines in sorted(lengths.items()):
        limit = LIMIT_OF_TESTS if _is_of_tests(name) else LIMIT
        if lines > limit and not _is_made(name):
            too_long.append(f"{name}: {lines} lines, more than {limit}")
    assert not too_long, "\n" + "\n".join(too_long)


def _is_of_tests(name: str) -> bool:
    return "_test." in name or name.endswith("_programs.py")


def _is_made(name: str) -> bool:
    """Whether a tool writes the file: tools/make_stubs.py does."""
    return name.endswith(".pyi")
