"""Programs in explicit memory form (docs/program_forms.md): weft.ir.verify_memory."""

from __future__ import annotations

from .. import _weft
from .._core.errors import type_error
from ..program import IR

__all__ = ["verify_memory"]


def verify_memory(ir: IR) -> int:
    """Checks a program in explicit memory form: that no value is read after its memory was taken or before something
    was computed into it, and that memory is given back once.

    Args:
        ir: the program, as ir.optimized("explicit-alloc") gives it, or weft.parse_ir.

    Returns: int, the bytes of the arena that its allocations reach to.

    Raises:
        TypeError: ir is no program.
        ValueError: the program is wrong; the error names the operations and their lines.

    Example:
        >>> ir = weft.make_ir(lambda x: (x @ x).sum())(wnp.ones((4, 4))).optimized("optimize", "explicit-alloc")
        >>> weft.ir.verify_memory(ir)
        64
    """
    if not isinstance(ir, IR):
        raise type_error(f"verify_memory: expected a program (weft.IR), got {ir!r} of type '{type(ir).__name__}'")
    return _weft.verify_memory(ir._fn)
