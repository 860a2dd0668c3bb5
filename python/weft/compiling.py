"""Programs compiled as they are: weft.compile."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ._core.errors import type_error
from .compiled import Compiled, jit
from .program import IR
from .transforms import arguments_of

__all__ = ["compile"]


def compile(
    ir: IR,
    *,
    optimize: str | None = None,
    passes: Iterable[Any] | None = None,
    disable: Iterable[str] | None = None,
    backend: str = "cpu",
) -> Compiled:
    """Compiles a program for arguments of its types, now.

    Args:
        ir: the program, from weft.make_ir, weft.parse_ir or weft.transforms.
        optimize: as for weft.jit.
        passes: as for weft.jit.
        disable: as for weft.jit.
        backend: as for weft.jit.

    Returns: a function of arrays, with as_text().

    Raises:
        TypeError: ir is no program; when called: an argument has another type.
        ValueError: a size of the program is symbolic.

    Example:
        >>> ir = weft.parse_ir("fn f(x: f32[]) -> (f32[]) { y = mul x x; return y }")
        >>> weft.compile(weft.transforms.grad(ir))(3.0)
        Array(6., dtype=float32)
    """
    if not isinstance(ir, IR):
        raise type_error(f"compile: expected a weft.IR, which weft.make_ir makes, got '{type(ir).__name__}'")
    args, kwargs = arguments_of(ir)
    jitted = jit(ir, optimize=optimize, passes=passes, disable=disable, backend=backend)
    return jitted.lower(*args, **kwargs).compile()
