"""What derivative rules of libraries are given in JAX's interpreters."""

from __future__ import annotations

from typing import Any

import weft

from ..custom_derivatives import CustomVJPPrimal, SymbolicZero

__all__ = ["CustomVJPPrimal", "JVPTracer", "SymbolicZero", "UndefinedPrimal", "Zero", "is_undefined_primal"]


class Zero:
    """The tangent of what does not move."""

    def __init__(self, aval: Any):
        self.aval = aval

    @staticmethod
    def from_primal_value(x: Any) -> Zero:
        return Zero(weft.typeof(x))


class UndefinedPrimal:
    """In a rule of transposition: an input that is transposed."""

    def __init__(self, aval: Any):
        self.aval = aval


def is_undefined_primal(x: Any) -> bool:
    """Whether an input of a rule of transposition is transposed."""
    return isinstance(x, UndefinedPrimal)


class JVPTracer:
    """A value and its tangent in JAX; no object of this class exists."""


def zero_from_primal(x: Any, symbolic_zeros: bool = False) -> Any:
    """The tangent zero of a value."""
    return SymbolicZero(weft.typeof(x)) if symbolic_zeros else weft.numpy.zeros_like(x)
