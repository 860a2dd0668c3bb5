"""No source is longer than one can read: split it by idea."""

from tools import tree

LIMIT = 900


def test_no_file_is_too_long():
    lengths = {}
    for path in tree.files(".cc", ".h", ".cu", ".py", ".pyi", ".bzl"):
        lengths[path.as_posix()] = len((tree.workspace() / path).read_text(encoding="utf-8").splitlines())
    assert lengths, "no source was found"
    too_long = [f"{name}: {lines} lines" for name, lines in sorted(lengths.items()) if lines > LIMIT]
    assert not too_long, f"more than {LIMIT} lines:\n" + "\n".join(too_long)
