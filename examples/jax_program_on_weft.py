"""Runs jax_program.py, which imports jax, on Weft: as `python -m weft.as_jax examples/jax_program.py` does."""

import pathlib

from weft.as_jax.__main__ import main

main([str(pathlib.Path(__file__).with_name("jax_program.py"))])
