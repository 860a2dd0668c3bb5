"""What rules of custom_jvp and custom_vjp meet, and may give, in the places of zeros."""

from __future__ import annotations

from typing import Any

from ._core import tree as _tree
from ._core.errors import type_error


class SymbolicZero:
    """A tangent or cotangent known to be zero, for rules with symbolic_zeros=True.

    Args:
        aval: shape and dtype.

    Example:
        >>> weft.custom_derivatives.SymbolicZero(weft.ShapeDtype((3,))).shape
        (3,)
    """

    def __init__(self, aval: Any):
        self.aval = aval

    @property
    def shape(self) -> tuple:
        """The dimensions.

        Example:
            >>> weft.custom_derivatives.SymbolicZero(weft.ShapeDtype((3,))).shape
            (3,)
        """
        return tuple(self.aval.shape)

    @property
    def dtype(self) -> Any:
        """The dtype.

        Example:
            >>> weft.custom_derivatives.SymbolicZero(weft.ShapeDtype((3,))).dtype
            float32
        """
        return self.aval.dtype


class CustomVJPPrimal:
    """An argument of the forward rule of a custom_vjp with symbolic_zeros=True.

    Args:
        value: the array.
        perturbed: whether it is differentiated.

    Example:
        >>> weft.custom_derivatives.CustomVJPPrimal(1.0, True).value
        1.0
    """

    def __init__(self, value: Any, perturbed: bool):
        self.value, self.perturbed = value, perturbed


def is_zero(c: Any) -> bool:
    return c is None or isinstance(c, SymbolicZero)


def with_zeros(cts: Any, args: Any, zero: SymbolicZero) -> Any:
    """The cotangents with a zero for each array of what one None, or one SymbolicZero, stands for; as they are where
    they have another structure than the arguments."""
    given, tree = _tree.flatten(cts, is_zero)
    try:
        covered = tree.flatten_up_to(args)
    except ValueError:
        return cts
    return tree.unflatten([_tree.map(lambda _: zero, arg) if is_zero(c) else c for c, arg in zip(given, covered)])


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The arguments of a forward rule under symbolic_zeros=True as plain values.

    Args:
        tree: a tree of CustomVJPPrimal.

    Returns: tree of what they hold.

    Raises:
        TypeError: a leaf is something else.

    Example:
        >>> f = weft.custom_vjp(lambda x: x)
        >>> values = weft.custom_derivatives.custom_vjp_primal_tree_values
        >>> f.defvjp(lambda x: (values(x), None), lambda _, ct: (3 * ct,), symbolic_zeros=True)
        >>> weft.grad(f)(1.0)
        Array(3., dtype=float32, weak_type=True)
    """

    def value(leaf: Any) -> Any:
        if not isinstance(leaf, CustomVJPPrimal):
            raise type_error(
                f"custom_vjp_primal_tree_values: expected a tree of CustomVJPPrimal, got a leaf of type "
                f"'{type(leaf).__name__}'"
            )
        return leaf.value

    return _tree.map(value, tree)
