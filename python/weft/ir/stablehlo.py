"""Programs as StableHLO: weft.ir.to_stablehlo, and back: weft.ir.from_stablehlo."""

from __future__ import annotations

from typing import Any

from .._core.errors import type_error
from ..arguments import text as checked_text
from ..program import IR

__all__ = ["from_stablehlo", "to_stablehlo"]


def to_stablehlo(ir: IR) -> str:
    """The program as a module of StableHLO, which JAX, XLA and other compilers read. Arrays that it captured are in it.

    Operations that StableHLO lacks are composites `weft.x`, with what they are made of.

    Args:
        ir: the program, of fixed sizes, for one device, without calls of the host.

    Returns: str.

    Raises:
        TypeError: ir is no weft.IR.
        NotImplementedError: StableHLO has nothing for an operation or a type; the message names it and the line.

    Example:
        >>> print(weft.ir.to_stablehlo(weft.make_ir(lambda x: wnp.sin(x) * 2)(1.0)), end="")
        module @f {
          func.func public @main(%x: tensor<f32>) -> (tensor<f32>) {
            %0 = stablehlo.sine %x : tensor<f32>
            %1 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
            %2 = stablehlo.multiply %0, %1 : tensor<f32>
            return %2 : tensor<f32>
          }
        }
    """
    if not isinstance(ir, IR):
        raise type_error(f"to_stablehlo: expected a weft.IR, as weft.make_ir gives it, got {ir!r}")
    return text_for(ir)


def text_for(ir: IR, devices: int | None = None, signature: Any = None, as_printed: bool = False) -> str:
    """As to_stablehlo. With `devices`, of a program for so many: constraints say where values lie, and a
    _sharding.signatures.Signature where its arguments and results do. `as_printed`: as MLIR prints it."""
    from .._stablehlo.writing import write

    return write(ir, devices, signature, as_printed)


def from_stablehlo(text: str, file: str = "", *, function: str | None = None) -> IR:
    """The program that a text of StableHLO describes, as JAX's `jit(f).lower(x).as_text()` and to_stablehlo give it.

    Args:
        text: the text: generic operations or the usual short forms.
        file: what messages call the text.
        function: the name of the function that is the program; None: `main`, or the only one.

    Returns: weft.IR.

    Raises:
        TypeError: text is no string.
        ValueError: the text is malformed, or has no such function; the message has the line.
        NotImplementedError: Weft has nothing for an operation; the message names it and the line.

    Example:
        >>> text = weft.ir.to_stablehlo(weft.make_ir(lambda x: wnp.sin(x) * 2)(1.0))
        >>> weft.ir.from_stablehlo(text)(0.0)
        Array(0., dtype=float32)
    """
    from .._stablehlo.reading import read

    return read(checked_text(text, "from_stablehlo: text"), checked_text(str(file), "from_stablehlo: file"), function)
