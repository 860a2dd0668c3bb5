"""The arguments of special functions."""

from __future__ import annotations

from .. import _weft
from .. import numpy as wnp
from .._weft import Array


def floats(*xs) -> tuple[Array, ...]:
    """Arrays of the float dtype that the arguments have together: Python's numbers are rounded to that alone."""
    return _weft.promote_all_inexact(*[wnp.asarray(x) if isinstance(x, (list, tuple)) else x for x in xs])
