"""Functions whose caller says how the result is cut over a mesh."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _weft
from .._core import tree as _tree
from .._sharding.meshes import AbstractMesh, current_mesh
from .._sharding.placing import placed
from .._sharding.typed import by_the_compiler, mesh_of
from ..compiled import jit


def lying(out_sharding: Any, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """function(*args, **options) as one program with what is said of its result, so that no step before it has to lie
    in a way of its own."""
    what = function.__name__
    mesh = getattr(out_sharding, "mesh", None) or current_mesh()
    if isinstance(mesh, AbstractMesh):
        mesh = mesh_of((args, options))
    leaves, tree = _tree.flatten((args, options))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, (_weft.Array, np.ndarray))]

    def called(*given: Any) -> Any:
        filled = list(leaves)
        for i, x in zip(places, given):
            filled[i] = x
        positional, named = _tree.unflatten(tree, filled)
        return function(*positional, **named)

    def placed_whole(*given: Any) -> Any:
        return placed(by_the_compiler(called, given, {}, mesh), what, None, out_sharding)

    arrays = [leaves[i] for i in places]
    return placed_whole(*arrays) if _weft.is_tracing() else jit(placed_whole)(*arrays)
