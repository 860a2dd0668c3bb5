"""Functions whose caller says how the result is cut over a mesh."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _weft
from .._sharding.placing import placed
from ..compiled import jit


def lying(out_sharding: Any, function: Callable[..., Any], *arrays: Any, **options: Any) -> Any:
    """function(*arrays, **options) as one program with what is said of its result, so that no step before it has to
    lie in a way of its own."""
    what = function.__name__
    if _weft.is_tracing():
        return placed(function(*arrays, **options), what, None, out_sharding)
    return jit(lambda *given: placed(function(*given, **options), what, None, out_sharding))(*arrays)
