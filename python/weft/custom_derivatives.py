"""Functions with derivative rules of their own, and what their rules meet, under JAX's name for the module."""

from .closure_conversion import closure_convert
from .custom import custom_gradient, custom_jvp, custom_vjp
from .linear_calls import linear_call
from .symbolic_zeros import CustomVJPPrimal, SymbolicZero, custom_vjp_primal_tree_values

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "custom_vjp_primal_tree_values",
    "linear_call",
]
