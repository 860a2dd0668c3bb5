"""No source names a folder of the machine that it was written on."""

import re

import pytest

from tools import tree

# Spelt in pieces, so that this file does not name them either.
_PLACES = re.compile(
    "|".join(
        [
            r"(?<![\w.$}-])/" + r"work/",
            r"\.\./" + r"shared",
            r"(?<![\w.$}-])/" + r"root/",
            r"(?<![\w.$}-])/" + r"home/\w",
        ]
    )
)


def _places(text: str) -> list[str]:
    return [f"{text.count(chr(10), 0, found.start()) + 1}: {found.group()}" for found in _PLACES.finditer(text)]


def test_tracked_files():
    names = tree.files()
    assert names, "there is no file"
    found = []
    for name in names:
        content = (tree.workspace() / name).read_bytes()
        if b"\0" not in content:
            found += [f"{name}:{place}" for place in _places(content.decode("utf-8", "replace"))]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    "text", ["a\n" + "/wor" + "k/x", "see .." + "/shared/x", "(/roo" + "t/.cache)", "'/hom" + "e/me/x'"]
)
def test_refused(text):
    assert len(_places(text)) == 1


@pytest.mark.parametrize(
    "text", ["docs/wor" + "k/x", "$HOME/wor" + "k/x", "a/roo" + "t/b", "the root/ folder", "/usr/lib"]
)
def test_allowed(text):
    assert _places(text) == []
