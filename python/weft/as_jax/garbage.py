"""When Python looks for garbage in a program that `python -m weft.as_jax` runs.

Little of what imports of libraries make is garbage, and all of it is there until the program ends. To look through it,
again and again, took a tenth of the time of short programs, and to take it apart at their end another fifth.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import os
import sys
import sysconfig
import types
from typing import Any

from .. import _weft

# Objects from one collection of young ones to the next: what Python has from 3.13 on, and while modules are imported.
_YOUNG_OBJECTS = 2000
_YOUNG_OBJECTS_OF_IMPORTS = 50_000
# How often they become old without a look: a program may do all of its work while it is imported.
_TIMES_NOT_LOOKED_AT = 8


def look_less_often() -> None:
    """From here on young objects are looked through less often. What is there in the middle of an import becomes old
    without a look; the first collection outside of imports is the last that comes so late: arrays may hang on garbage.
    What is old when the program ends is left to the system (`_leave_old_objects`)."""
    atexit.register(_leave_old_objects, _collections_of_older())
    young, *older = gc.get_threshold()
    if not 0 < young < _YOUNG_OBJECTS:
        return
    of_imports = (_YOUNG_OBJECTS_OF_IMPORTS, *older)
    gc.set_threshold(*of_imports)
    times = 0

    def collected(phase: str, about: dict[str, int]) -> None:
        nonlocal times
        importing = _importing(sys._getframe())
        if phase == "stop" and not importing:
            gc.callbacks.remove(collected)
            if gc.get_threshold() == of_imports:  # or the program has set its own
                gc.set_threshold(_YOUNG_OBJECTS, *older)
        elif phase == "start" and importing and about["generation"] < 2 and times < _TIMES_NOT_LOOKED_AT:
            times += 1
            if not gc.get_freeze_count():  # or the program has put objects aside
                gc.freeze()
                gc.unfreeze()  # into the oldest generation

    gc.callbacks.append(collected)


def _importing(frame: types.FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _collections_of_older() -> list[int]:
    return [generation["collections"] for generation in gc.get_stats()[1:]]


def _finalizes(kinds: set[type[Any]]) -> bool:
    """Whether any has a finalizer in Python. Those of installed packages give back what goes with the process."""
    packages = tuple(os.path.join(sysconfig.get_path(name), "") for name in ("purelib", "platlib"))
    finalizers = [getattr(kind, "__del__", None) for kind in kinds]
    return any(
        isinstance(each, types.FunctionType) and not each.__code__.co_filename.startswith(packages)
        for each in finalizers
    )


def _leave_old_objects(collections: list[int]) -> None:
    """What imports have made is not looked through and taken apart at exit. What the program has made is, as ever:
    where it may be old, too, nothing changes, nor where something that is old has a finalizer. Files that are old are
    written."""
    if _collections_of_older() != collections or gc.get_freeze_count():
        return
    old = gc.get_objects(generation=2)
    kinds = set(map(type, old))
    if _finalizes(kinds):
        return
    files = {kind for kind in kinds if issubclass(kind, io.IOBase)}
    shown = (sys.stdout, sys.stderr)
    for each in old:
        if type(each) in files and not any(each is file for file in shown):
            with contextlib.suppress(OSError, ValueError):  # it is closed
                # Those of classes in Python may end with more than they have been given, as compressed ones do.
                each.flush() if type(each).__module__ == "_io" else each.close()
    # The program's variables are older than what it imports.
    variables = [each for each in old if type(each) is dict and each.get("__name__") == "__main__"]
    del old
    _weft.freeze_old_objects(variables)
