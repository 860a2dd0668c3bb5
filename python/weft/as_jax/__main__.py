"""python -m weft.as_jax script.py arguments: Python's command line, with JAX served by Weft."""

from __future__ import annotations

import os
import runpy
import sys

from . import garbage, install

_USAGE = "usage: python -m weft.as_jax (script.py | -m module | -c code) [arguments]"


def main(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help") or (arguments[0] in ("-m", "-c") and len(arguments) < 2):
        print(_USAGE, file=sys.stdout if arguments and arguments[0] in ("-h", "--help") else sys.stderr)
        sys.exit(0 if arguments and arguments[0] in ("-h", "--help") else 2)
    install()
    garbage.look_less_often()
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
