"""What random numbers outside of jit are made by: one program for arrays of all sizes.

A network draws its parameters in a dozen shapes, and compiling takes longer than drawing.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from .. import _weft
from .._sharding.meshes import current_mesh
from .._weft import Array
from ..arguments import licences_of
from ..compiled import jit
from ..program import IR, ShapeDtype, make_ir

# Fewer are drawn without compiling; of more, drawing them takes longer than that.
_FEW, _MANY = 256, 1 << 20


def for_all_sizes(function: Callable[..., Array], licence: str) -> Callable[..., Array]:
    """jit(function, licence=licence) for an array and numbers; the results have the same bits.

    Args:
        function: element-wise.
    """
    jitted = jit(function, licence=licence)
    licences = licences_of(licence)

    @functools.cache
    def program(first: Any, *numbers: Any) -> IR:
        return make_ir(jitted)(ShapeDtype(("n",), first), *(ShapeDtype((), dtype) for dtype in numbers))

    def call(x: Array, *numbers: Array) -> Array:
        if x.ndim == 0 or any(number.ndim for number in numbers) or not _are_here(x, *numbers):
            return jitted(x, *numbers)
        of = program(x.dtype, *(number.dtype for number in numbers))
        out: Array = _weft.with_licences(licences, lambda: of(x.reshape(-1), *numbers))
        return out.reshape(x.shape)

    return call


def drawn_here(draw: Callable[[Any, Any, Any], Array], key: Any, kind: Hashable, shape: tuple[Any, ...]) -> Array:
    """draw(key, kind, shape).

    Args:
        draw: an element that it gives depends on how many come before it, and not on the shape.
    """
    if not isinstance(key, Array) or not _are_here(key) or not _FEW < (size := math.prod(shape)) < _MANY:
        return draw(key, kind, shape)
    of_that_size = _weft.array(np.empty(size, np.bool_), None, False)  # whose elements nobody reads
    out: Array = _drawing(draw, kind, key.dtype, key.shape)(key, of_that_size)
    return out.reshape(shape)


@functools.cache
def _drawing(draw: Callable[[Any, Any, Any], Array], kind: Hashable, *of_key: Any) -> IR:
    dtype, shape = of_key
    return make_ir(lambda key, x: draw(key, kind, x.shape))(ShapeDtype(shape, dtype), ShapeDtype(("n",), np.bool_))


def _are_here(*arrays: Array) -> bool:
    """Whether these are numbers in this process's memory, outside of any program and mesh."""
    if _weft.is_tracing() or current_mesh() is not None:
        return False
    return not any(_weft.is_traced(x) or _weft.sharding_of(x) is not None for x in arrays)
