"""The libraries that are used most run on Weft: imports, and a program of each, beside the numbers that JAX gave."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import environments
import libraries


@pytest.fixture(scope="module")
def python():
    """Python with these libraries and without JAX; what is installed once stays."""
    try:
        return environments.python_with("requirements-eight.txt")
    except environments.NoNetwork as error:
        pytest.skip(f"the libraries cannot be installed, since PyPI cannot be reached: {error}")


def test_jax_is_not_there(python):
    done = subprocess.run([python, "-c", "import jax"], capture_output=True, text=True, env=libraries.environment(""))
    assert "No module named 'jax'" in done.stderr


@pytest.mark.parametrize("library", libraries.MOST_USED, ids=lambda library: library.module)
def test_programs_give_the_numbers_of_jax(python, library):
    found = libraries.on_weft(python, library.program)
    assert libraries.difference(library.program, found, libraries.references()) <= libraries.TOLERANCE


def test_lists_and_references_are_whole():
    pinned = libraries.versions()
    references = libraries.references()
    for library in libraries.LIBRARIES:
        assert library.distribution in pinned
        entry = references[library.program]
        assert entry["program"] == libraries.mark(library.program), f"run --jax {library.program}"
        assert len(entry["numbers"]) > 1
    programs = {path.stem for path in (libraries.HERE / "programs").glob("*.py")}
    assert programs == {library.program for library in libraries.LIBRARIES}


def test_other_numbers_are_seen():
    reference = libraries.references()["einops_shapes"]
    entry = {"einops_shapes": reference}
    # What is condensed stays as it is when it is condensed again, but for the sum at its end.
    numbers = reference["numbers"][:-1]
    entry = {"einops_shapes": {**reference, "numbers": libraries.condensed(numbers)}}
    assert libraries.difference("einops_shapes", {"numbers": numbers}, entry) == 0
    wrong = [*numbers[:-1], numbers[-1] + 1]
    assert libraries.difference("einops_shapes", {"numbers": wrong}, entry) > libraries.TOLERANCE
    nan = [*numbers[:-1], float("nan")]
    assert libraries.difference("einops_shapes", {"numbers": nan}, entry) > libraries.TOLERANCE
    with pytest.raises(ValueError, match="numbers"):
        libraries.difference("einops_shapes", {"numbers": numbers[1:]}, entry)
    with pytest.raises(ValueError, match="has changed"):
        libraries.difference(
            "einops_shapes", {"numbers": numbers}, {"einops_shapes": {**reference, "program": "other"}}
        )


def test_the_page_is_that_of_the_lists():
    page = (libraries.HERE.parent / "docs" / "compatibility.md").read_text(encoding="utf-8")
    rows = [
        line.split(" | ") for line in page.splitlines() if line.startswith("| ") and not line.startswith("| library")
    ]
    found = {line[0].strip("| "): line[-1].strip(" |") for line in rows}
    assert libraries.table({lib.program: found[lib.module] for lib in libraries.LIBRARIES}) == page
