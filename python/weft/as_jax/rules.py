"""What derivative rules of libraries are given in JAX's interpreters."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from .. import _weft
from .._core import tree as _tree
from .._core.shapes import FLOAT0
from ..custom_derivatives import CustomVJPPrimal, SymbolicZero

__all__ = ["CustomVJPPrimal", "JVPTracer", "SymbolicZero", "UndefinedPrimal", "Zero", "is_undefined_primal"]


class Zero:
    """The tangent of what does not move."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any):
        self.aval = aval

    @staticmethod
    def from_primal_value(x: Any) -> Zero:
        """The tangent of a value that does not move."""
        return Zero(weft.typeof(x).to_tangent_aval())

    def instantiate(self) -> Any:
        """An array of zeros."""
        if self.aval.dtype == FLOAT0:
            return np.zeros(self.aval.shape, FLOAT0)
        return weft.numpy.zeros(self.aval.shape, self.aval.dtype)

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


class UndefinedPrimal:
    """In a rule of transposition: an input that is transposed."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any):
        self.aval = aval

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval})"


# Containers without leaves, so that they pass through transforms.
for _cls in (Zero, UndefinedPrimal):
    _tree.register(_cls, lambda x: ((), x.aval), lambda aval, _, _cls=_cls: _cls(aval))


def is_undefined_primal(x: Any) -> bool:
    """Whether an input of a rule of transposition is transposed."""
    return isinstance(x, UndefinedPrimal)


class _IsDifferentiated(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return _weft.is_traced(x) and _weft.carries_derivative(x)


class JVPTracer(metaclass=_IsDifferentiated):
    """isinstance(x, JVPTracer): whether x is computed from what grad, jvp and the like differentiate, in a function
    that is being traced for them. Others have the tangent zero."""


def zero_from_primal(x: Any, symbolic_zeros: bool = False) -> Any:
    """The tangent zero of a tree of values."""
    zero = Zero.from_primal_value
    return _tree.map(lambda v: SymbolicZero(zero(v).aval) if symbolic_zeros else zero(v).instantiate(), x)


def _maybe_perturbed(x: Any) -> bool:
    """Whether a derivative may be taken with respect to a value: it may of what is traced and has derivatives."""
    return _weft.is_traced(x) and _weft.is_inexact(x.dtype)
