"""What reverse mode keeps between its passes, as jax.ad_checkpoint lists it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _weft
from .._core.shapes import ShapedArray
from ..ad_checkpoint import kept_and_pullback


def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[Any, str]]:
    """What reverse mode keeps: pairs of a type and where it is from; what is captured first, then arguments, then what
    is computed, in the order of the lines."""
    kept, back = kept_and_pullback(f, args, kwargs)
    order = {"constant": 0, "literal": 0, "argument": 1}
    found = sorted(kept, key=lambda one: (order.get(one.kind, 2), one.position, one.line))
    jitted = getattr(f, "__name__", "<unnamed function>") if hasattr(f, "lower") else ""

    def source(one: Any) -> str:
        if not jitted or one.kind in order:
            return str(one.source)
        where = one.source.partition(" from ")[2]
        return f"output of jitted function '{jitted}'" + (f" from {where}" if where else "")

    # Small arrays stand in the program of the way back itself; in JAX they are captured, too.
    held = {text: _of_literal(text) for eqn in back.eqns for text in eqn["operands"] if text.startswith("[")}
    return [(aval, "from a constant") for aval in held.values() if aval.shape] + [
        (ShapedArray(one.shape, one.dtype), source(one)) for one in found
    ]


def _of_literal(text: str) -> ShapedArray:
    value = _weft.literal(text)
    return ShapedArray(value.shape, value.dtype)
