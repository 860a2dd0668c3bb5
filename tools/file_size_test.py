"""No source is longer than one can read: split it by idea."""

from tools import tree

LIMIT = 900
# Of folders that have been brought to fewer lines.
LIMITS = {"python/weft/": 600}


def test_no_file_is_too_long():
    lengths = {}
    for path in tree.files(".cc", ".h", ".cu", ".py", ".pyi", ".bzl"):
        lengths[path.as_posix()] = len((tree.workspace() / path).read_text(encoding="utf-8").splitlines())
    assert lengths, "no source was found"
    for folder in LIMITS:
        assert any(name.startswith(folder) for name in lengths), f"no source is in {folder}"
    too_long = []
    for name, lines in sorted(lengths.items()):
        limit = next((limit for folder, limit in LIMITS.items() if name.startswith(folder)), LIMIT)
        if lines > limit and not _is_made(name):
            too_long.append(f"{name}: {lines} lines, more than {limit}")
    assert not too_long, "\n" + "\n".join(too_long)


def _is_made(name: str) -> bool:
    """Whether a tool writes the file: tools/make_stubs.py does."""
    return name.endswith(".pyi")
