"""docs/glossary.md: what it refers to is there, and the words that it retires do not come back."""

import re
from functools import cache

import pytest

from tools import tree

_PAGE = "docs/glossary.md"
_CODE = re.compile(r"`([^`]+)`")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def _rows(columns: int) -> list[list[str]]:
    """The rows of the tables that have so many columns, without their heads."""
    text = (tree.workspace() / _PAGE).read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.split("\n") if "|" in line]
    heads = [i + 1 for i, row in enumerate(rows[:-1]) if set("".join(rows[i + 1])) == {"-"}]
    return [row for i, row in enumerate(rows, 1) if len(row) == columns and i not in heads and i - 1 not in heads]


def missing(where: str) -> list[str]:
    """What a cell of the last column names and is not there: a file, then names that it holds."""
    file, *names = _CODE.findall(where)
    if not names:
        return [f"no name in {where}"]
    path = tree.workspace() / file
    if not path.is_file():
        return [f"there is no file {file}"]
    words = set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    return [f"{file} has no {name}" for name in names if name not in words]


@cache
def retired() -> dict[tuple[str, ...], list[str]]:
    """Each retired word, or several in a row, and the beginnings of the paths where it is right."""
    return {tuple(word.split()): _CODE.findall(allowed) for word, _, allowed in _rows(3)}


def words_of(text: str) -> list[str]:
    """In lower case, names in camels and snakes taken apart, without a plural's s."""
    return [word.lower().removesuffix("s") for word in _WORD.findall(text)]


def holds(words: list[str], phrase: tuple[str, ...]) -> bool:
    """Whether the words of a phrase are among these, in a row."""
    return any(tuple(words[i : i + len(phrase)]) == phrase for i in range(len(words)))


def returned(name: str, text: str) -> list[str]:
    """Where retired words stand in a file in which they are not right. A comma stands between words of two phrases."""
    found = []
    lower = text.lower()
    for phrase, allowed in retired().items():
        if name.startswith((*allowed, _PAGE)):
            continue
        plain = tuple(word.removesuffix("s") for word in phrase)
        if plain[0] not in lower:
            continue
        for number, line in enumerate(text.split("\n"), 1):
            if any(holds(words_of(part), plain) for part in line.split(",")):
                found.append(f"{name}:{number}: '{' '.join(phrase)}'")
    return found


def test_entries_refer_to_the_source():
    rows = _rows(4)
    assert len(rows) > 50, "the tables were not read"
    found = [f"{row[0]}: {problem}" for row in rows for problem in missing(row[3])]
    assert not found, "\n" + "\n".join(found)


def test_entries_are_complete_and_single():
    rows = _rows(4)
    assert all(all(row) for row in rows)
    names = [row[0] for row in rows]
    assert sorted(names) == sorted(set(names))


def test_retired_words_stay_away():
    assert retired(), "the table was not read"
    found = []
    for path in tree.files():
        name = path.as_posix()
        content = (tree.workspace() / path).read_bytes()
        if name.startswith(("third_party/", "tests/fuzz/corpus/", "tools/glossary_test.py")) or b"\0" in content:
            continue
        found += returned(name, content.decode("utf-8", "replace"))
    assert not found, "\n" + "\n".join(found)


def test_retired_words_are_right_somewhere():
    """Every path in the last column exists, so that exceptions do not outlive what they were for."""
    for allowed in retired().values():
        assert all((tree.workspace() / path).exists() for path in allowed)


@pytest.mark.parametrize("where", ["`ir/fn.h`", "`ir/nowhere` `Fn`", "`ir/fn.h` `Fn` `NowhereToBeFound`"])
def test_missing(where):
    assert len(missing(where)) == 1


@pytest.mark.parametrize(
    "text",
    ["// its twin", "Twins: two", "class TwinDevice", "weft_twin_table", "kTwin", "a fixed\torder", "FixedOrder("],
)
def test_returned(text):
    assert len(returned("ir/x.h", text)) == 1


@pytest.mark.parametrize(
    "text", ["entwine", "// an order that is fixed", "twinkle", "companionship", "import fixed, order"]
)
def test_not_returned(text):
    assert returned("ir/x.h", text) == []
