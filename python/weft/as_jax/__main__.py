"""python -m weft.as_jax script.py arguments: Python's command line, with JAX served by Weft."""

from __future__ import annotations

import gc
import os
import runpy
import sys
import types

from . import install

# Objects from one collection of young ones to the next: what Python has from 3.13 on, and while modules are imported.
_YOUNG_OBJECTS = 2000
_YOUNG_OBJECTS_OF_IMPORTS = 50_000
# How often they become old without a look: a program may do all of its work while it is imported.
_TIMES_NOT_LOOKED_AT = 8
_USAGE = "usage: python -m weft.as_jax (script.py | -m module | -c code) [arguments]"


def _collect_less_often() -> None:
    """Little of what imports of libraries make is garbage: to look through it, again and again, took a tenth of the
    time. What is there in the middle of an import becomes old without a look. The first collection outside of imports
    is the last that comes so late: arrays may hang on garbage."""
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


def main(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help") or (arguments[0] in ("-m", "-c") and len(arguments) < 2):
        print(_USAGE, file=sys.stdout if arguments and arguments[0] in ("-h", "--help") else sys.stderr)
        sys.exit(0 if arguments and arguments[0] in ("-h", "--help") else 2)
    install()
    _collect_less_often()
    # As Python does: what the program sees as its own folder comes first.
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        sys.path[0] = ""
        main_module = sys.modules["__main__"]
        main_module.__dict__.pop("__file__", None)
        names = {"__name__": "__main__", "__builtins__": __builtins__}
        exec(compile(arguments[1], "<string>", "exec"), names)
    else:
        sys.argv = arguments
        if not os.path.exists(arguments[0]):
            sys.exit(f"python -m weft.as_jax: there is no file '{arguments[0]}'\n{_USAGE}")
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
