"""Lists of numbers with integers that have more than 64 bits."""

from __future__ import annotations

from typing import Any

import numpy as np

_MOST_DIMENSIONS = 64  # of NumPy's arrays


def with_large_integers(given: Any) -> Any:
    """Nested lists of Python's and NumPy's numbers, with integers beyond 64 bits as floats where another number is one:
    NumPy would make objects of them. Everything else as it is."""
    large = inexact = False
    levels: list[Any] = [given]
    depth = 0
    while levels and depth <= _MOST_DIMENSIONS:
        below: list[Any] = []
        for level in levels:
            for x in level:
                if isinstance(x, (list, tuple)):
                    below.append(x)
                elif isinstance(x, (float, complex, np.inexact)):
                    inexact = True
                elif isinstance(x, int):
                    large = large or not -(2**63) <= x < 2**64
                elif not isinstance(x, np.number | np.bool):
                    return _as_arrays(given) if _has_others(given) else given
        levels, depth = below, depth + 1
    return _with_floats(given) if large and inexact and not levels else given


def _has_others(given: Any) -> bool:
    if isinstance(given, (list, tuple)):
        return any(map(_has_others, given))
    return hasattr(given, "__jax_array__")


def _as_arrays(given: Any) -> Any:
    """Nested lists in which objects that stand for arrays are these."""
    if isinstance(given, (list, tuple)):
        return [_as_arrays(x) for x in given]
    return given.__jax_array__() if hasattr(given, "__jax_array__") else given


def _with_floats(given: Any) -> Any:
    if isinstance(given, (list, tuple)):
        return [_with_floats(x) for x in given]
    return float(given) if isinstance(given, int) and not -(2**63) <= given < 2**64 else given
