"""python -m weft.as_jax: when Python looks for garbage, and what is there at the end. Processes of their own."""

import gzip
import os
import sys

import pytest
from as_jax_both import run


def paths(*first):
    return os.pathsep.join([*map(str, first), *filter(None, sys.path)])


def test_collections_of_garbage_are_as_rare_as_in_newer_pythons():
    code = "import gc, jax; print(gc.get_threshold()[0])"
    assert int(run("-m", "weft.as_jax", "-c", code).stdout) >= 2000
    assert (
        run("-c", "import weft.as_jax; weft.as_jax.install(); " + code).stdout
        == run("-c", code.replace(", jax", "")).stdout
    )


@pytest.mark.parametrize("own", [None, 70_000])
def test_collections_of_garbage_are_rarer_while_modules_are_imported(tmp_path, own):
    """The first one outside of imports brings them back to what newer Pythons have, if the program has not set that."""
    (tmp_path / "large.py").write_text("kept = [[] for _ in range(120_000)]\n")
    code = "import gc, jax, large; print(gc.get_threshold()[0]); hooks = len(gc.callbacks); "
    code += f"gc.set_threshold({own}); " if own else ""
    code += "more = [[] for _ in range(120_000)]; print(gc.get_threshold()[0], len(gc.callbacks) - hooks)"
    said = run("-m", "weft.as_jax", "-c", code, PYTHONPATH=paths(tmp_path)).stdout.split("\n")
    assert int(said[0]) > 20_000
    assert said[1] == f"{own or 2000} -1"


@pytest.mark.parametrize(
    ("before", "asked", "found"),
    [
        (0, "", "True False 0"),  # old without a look, and looked at by the first full collection
        (0, "gc.collect()", "False False 0"),  # the module asks itself
        (900_000, "", "False False 0"),  # a program may do all of its work while it is imported
        (0, "gc.freeze()", "False True 1"),  # what the module has put aside stays there
    ],
)
def test_objects_of_imports_become_old_without_a_look(tmp_path, before, asked, found):
    module = f"import gc, weakref\nmany = [[] for _ in range({before})]\nclass A: pass\n"
    module += f"a = A(); a.itself = a; there = weakref.ref(a); del a\n{asked}\n"
    module += "b = A(); b.itself = b; here = weakref.ref(b); del b\n" if "freeze" in asked else "here = there\n"
    (tmp_path / "large.py").write_text(module + "more = [[] for _ in range(120_000)]\n")
    code = "import gc, jax, large; is_here = large.here() is not None; gc.collect(); "
    code += "print(is_here, large.there() is not None, min(gc.get_freeze_count(), 1))"
    assert run("-m", "weft.as_jax", "-c", code, PYTHONPATH=paths(tmp_path)).stdout == found + "\n"


# Something that is there until the end, on a cycle: only a collection finds it then.
_KEPT = """
def {name}():
    try:
        yield
    finally:
        print("{name}")
kept = [{name}()]
next(kept[0])
kept.append(kept)
"""
# Enough for a collection in the middle of the import: what is there becomes old.
_MANY = "many = [[] for _ in range(60_000)]\n"


@pytest.mark.parametrize(
    ("imported", "program", "found"),
    [
        ("", "", ["program"]),  # what the import has made is left to the system
        # A finalizer in Python runs, as ever.
        ("class A:\n    def __del__(self): print('A')\na = A(); a.itself = a\n", "", ["A", "imported", "program"]),
        ("", "gc.collect()", ["imported", "program"]),  # what the program has made may be old
        ("", "more = [[[] for _ in range(120_000)] for _ in range(3)]", ["imported", "program"]),
        ("", "gc.freeze()", []),  # the program itself has put all aside
        ("import gc; gc.disable()\n", "", ["imported", "program"]),  # nothing became old
    ],
)
def test_what_imports_have_made_is_left_to_the_system(tmp_path, imported, program, found):
    (tmp_path / "large.py").write_text(imported + _KEPT.format(name="imported") + _MANY)
    code = "import gc, jax, large\n" + _KEPT.format(name="program") + program
    done = run("-m", "weft.as_jax", "-c", code, PYTHONPATH=paths(tmp_path))
    assert sorted(done.stdout.split()) == found and not done.stderr


@pytest.mark.parametrize("kind", ["open", "gzip.open", "open(path, 'r+b', 0) and open"])
def test_files_that_imports_leave_open_are_written(tmp_path, kind):
    path = tmp_path / "file"
    path.touch()
    code = (
        f"import gzip\npath = {str(path)!r}\nkept = [{kind}(path, 'wb')]\nkept[0].write(b'text')\nkept.append(kept)\n"
    )
    (tmp_path / "large.py").write_text(code + _MANY)
    assert not run("-m", "weft.as_jax", "-c", "import jax, large", PYTHONPATH=paths(tmp_path)).stderr
    assert (gzip.decompress(path.read_bytes()) if "gzip" in kind else path.read_bytes()) == b"text"


def test_programs_end_as_they_say(tmp_path):
    (tmp_path / "large.py").write_text(_MANY)
    code = "import atexit, jax, large, sys\natexit.register(print, 'last')\nsys.exit(3)"
    done = run("-m", "weft.as_jax", "-c", code, check=False, PYTHONPATH=paths(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (3, "last\n", "")
