"""What documents and comments name exists: files, folders, Bazel's targets, and names of the source."""

import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

from tools import tree

# Files that a sentence may name although the tree does not hold them, and why.
ELSEWHERE = {
    "model.py": "stands for a user's program",
    "my.py": "stands for a user's program",
    "script.py": "stands for a user's program",
    "train.py": "stands for a user's program",
    "type_test.cc": "an example of a BUILD file",
    "numpy/lib/format.py": "NumPy's",
    "Python.h": "CPython's",
}

# Folders from whose point of view files may be named, besides the root and the folder of the sentence.
_ROOTS = ("python/", "python/weft/")

_SUFFIXES = "h|cc|cu|py|pyi|md|proto|bzl|bazel|sh|supp"
_FILE = re.compile(rf"(?<![\w./*<>{{}}$@%~-])(?:[\w.+-]+/)*[\w+-][\w.+-]*\.(?:{_SUFFIXES})(?![\w/*-]|\.\w)")
_FOLDER = re.compile(r"`((?:\w+/)+)`")
_TARGET = re.compile(r"(?<![\w:/.])//((?:\w+/)*\w+|)(/\.\.\.|:[\w{},.]*[\w}])?(?![\w/])")
_CAMEL = re.compile(r"(?<![\w.])(?:[A-Z][a-z0-9]+|k(?=[A-Z]))(?:[A-Z][A-Za-z0-9]*)+(?!\w)")
_URL = re.compile(r"\w+://\S+")

# Folders of the table of architecture.md, which stand beside the name of the folder that they are in; others are made.
_UNROOTED = {"docs/architecture.md", "README.md", "docs/environment.md", "docs/testing.md", "docs/trust.md"}

# Pages about programs of others: what they name is JAX's, NumPy's and SciPy's.
_ABOUT_OTHERS = {"docs/differences_from_jax.md"}

# Names of others in our pages.
_OF_OTHERS = {
    "ThreadSanitizer",
    "AddressSanitizer",
    "UndefinedBehaviorSanitizer",
    "GoogleTest",
    "OpenBLAS",
    "MemoryMax",
    "ConcreteArray",
}


@cache
def _texts() -> dict[str, str]:
    """The text of every file that is text."""
    texts = {}
    for path in tree.files():
        content = (tree.workspace() / path).read_bytes()
        if b"\0" not in content and not path.as_posix().startswith("tests/fuzz/corpus/"):
            texts[path.as_posix()] = content.decode("utf-8", "replace")
    return texts


def sentences(name: str, text: str) -> list[tuple[int, str]]:
    """The lines of a file that are for people, by number: of a document all, of a program its comments."""
    lines = list(enumerate(text.split("\n"), 1))
    if name.endswith(".md"):
        return lines
    if name.endswith((".h", ".cc", ".cu", ".c", ".proto")):
        return [(number, line[line.index("//") :]) for number, line in lines if "//" in line]
    if name.endswith((".py", ".pyi")):
        return _of_python(text)
    if name.endswith((".bazel", ".bzl", ".sh")) or name in ("bazelw", ".bazelrc", "tools/format", "tools/tidy"):
        return [(number, line[line.index("#") :]) for number, line in lines if "#" in line]
    return []


def _of_python(text: str) -> list[tuple[int, str]]:
    """Comments and docstrings."""
    found: list[tuple[int, str]] = []
    begins = True  # a statement
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            found.append((token.start[0], token.string))
        elif token.type == tokenize.STRING and begins:
            found += list(enumerate(token.string.split("\n"), token.start[0]))
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            begins = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
    return found


def _is_there(file: str, named_in: str) -> bool:
    """A path from the root, from the folder of the sentence or from one of `_ROOTS`; a name alone may be anywhere."""
    if "/" not in file:
        return file in _basenames()
    here = Path(named_in).parent
    places = [file, (here / file).as_posix(), *(root + file for root in _ROOTS)]
    return any(place in _texts() for place in places) or file.startswith("../")


@cache
def _basenames() -> frozenset[str]:
    return frozenset(Path(name).name for name in _texts())


@cache
def _words_of_programs() -> frozenset[str]:
    words: set[str] = set()
    for name, text in _texts().items():
        if not name.endswith(".md"):
            words.update(re.findall(r"\w+", text))
    return frozenset(words)


def missing_files(name: str, text: str) -> list[str]:
    found = []
    for number, line in sentences(name, text):
        for match in _FILE.finditer(_URL.sub("", line)):
            file = match.group()
            if file not in ELSEWHERE and not _is_there(file, name):
                found.append(f"{name}:{number}: there is no file {file}")
    return found


def missing_folders(name: str, text: str) -> list[str]:
    if not name.endswith(".md") or name in _UNROOTED:
        return []
    return [
        f"{name}:{number}: there is no folder {folder}"
        for number, line in sentences(name, text)
        for folder in _FOLDER.findall(line)
        if not (tree.workspace() / folder).is_dir()
    ]


def missing_targets(name: str, text: str) -> list[str]:
    """Of documents: packages, and targets that no BUILD file has under their name."""
    if not name.endswith(".md"):
        return []
    found = []
    for number, line in sentences(name, text):
        for package, rest in _TARGET.findall(_URL.sub("", line)):
            build = f"{package}/BUILD.bazel".lstrip("/")
            if rest == "/...":
                if not (tree.workspace() / package).is_dir():
                    found.append(f"{name}:{number}: there is no folder {package}")
            elif build not in _texts():
                found.append(f"{name}:{number}: there is no package //{package}")
            elif rest.endswith((".bzl", ".bazel")):
                if f"{package}/{rest[1:]}" not in _texts():
                    found.append(f"{name}:{number}: //{package} has no file {rest[1:]}")
            elif rest and "{" not in rest and rest != ":all" and not _has_target(_texts()[build], rest[1:]):
                found.append(f"{name}:{number}: //{package} has no target {rest}")
    return found


def _has_target(build: str, target: str) -> bool:
    """By a name that is written out, or by one that a list comprehension makes of a pattern."""
    patterns = re.findall(r'"([^"\n]*%s[^"\n]*)" %', build)
    made = any(re.fullmatch(re.escape(p).replace("%s", r"\w+"), target) for p in patterns)
    return made or f'"{target}"' in build or f'"{target.removesuffix("_test")}"' in build


def missing_names(name: str, text: str) -> list[str]:
    """Of documents: names in CamelCase between backticks that no program has."""
    if not name.startswith("docs/") or name in _ABOUT_OTHERS or name == "docs/operations.md":
        return []
    found = []
    for number, line in sentences(name, text):
        for code in re.findall(r"`([^`]+)`", line):
            for match in _CAMEL.finditer(code):
                word = match.group()
                if word not in _words_of_programs() and word not in _OF_OTHERS:
                    found.append(f"{name}:{number}: nothing is called {word}")
    return found


@pytest.mark.parametrize("missing", [missing_files, missing_folders, missing_targets, missing_names])
def test_what_is_named_exists(missing):
    found = [problem for name, text in _texts().items() for problem in missing(name, text)]
    assert not found, "\n" + "\n".join(found)


def test_exceptions_are_needed():
    """Each is named somewhere outside of this file, and is not in the tree."""
    named = {
        match.group()
        for name, text in _texts().items()
        if name != "tools/named_files_test.py"
        for _, line in sentences(name, text)
        for match in _FILE.finditer(line)
    }
    assert set(ELSEWHERE) <= named
    assert not [file for file in ELSEWHERE if file in _texts()]


@pytest.mark.parametrize(
    ("missing", "name", "text"),
    [
        (missing_files, "docs/x.md", "see `ir/" + "nowhere.h`"),
        (missing_files, "docs/x.md", "see [nowhere](nowhere" + ".md)"),
        (missing_files, "ir/x.h", "// As in nowhere" + ".cc.\n"),
        (missing_files, "ir/x.py", '"""As in ir/nowhere' + '.py."""\nx = 1  # nowhere' + ".py\n"),
        (missing_files, "ir/BUILD.bazel", "# nowhere" + ".bzl\n"),
        (missing_folders, "docs/x.md", "`ir/" + "nowhere/` has it"),
        (missing_targets, "docs/x.md", "`./bazelw test //" + "nowhere/...`"),
        (missing_targets, "docs/x.md", "`./bazelw test //" + "nowhere:x`"),
        (missing_targets, "docs/x.md", "`./bazelw test //tools:" + "nowhere_test`"),
        (missing_names, "docs/x.md", "`Quite" + "UnheardOf` does it"),
    ],
)
def test_what_is_missing_is_found(missing, name, text):
    assert len(missing(name, text)) >= 1


@pytest.mark.parametrize(
    ("missing", "name", "text"),
    [
        (missing_files, "docs/x.md", "`ir/fn.h`, [ir](ir.md), fn.h, weft/compiled.py, train.py, https://a.org/b.py"),
        (missing_files, "ir/x.cc", "// See text/parser.h\nInclude(nowhere.h);\n"),
        (missing_files, "ir/x.py", 'x = "nowhere.py"\n'),
        (missing_folders, "docs/x.md", "`lowering/abi/`"),
        (missing_targets, "docs/x.md", "`//tools/...`, `//tools:tree`, `//driver:weft`, https://a/b:c"),
        (missing_names, "docs/x.md", "`FnRef` and `KernelSpec`, but NoCode"),
    ],
)
def test_what_exists_is_not_missed(missing, name, text):
    assert missing(name, text) == []
