"""jax.stages: the kinds of what jit(f), .lower() and .compile() give."""

from __future__ import annotations

from typing import Any, NamedTuple

import weft

from ..compiled import Compiled, Lowered

Wrapped = type(weft.jit(lambda: None))
CompilerOptions = dict[str, Any]

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]


class Traced:
    """What jit(f).trace() gives in JAX; see weft.make_ir."""


class ArgInfo(NamedTuple):
    """An argument of a lowered function."""

    aval: Any
    donated: bool = False
