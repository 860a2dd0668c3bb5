"""jax.interpreters.batching: the rules of vmap of primitives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import weft
import weft.numpy as wnp

from .extended_dtypes import moving
from .rule_tables import RuleTable, _Rule
from .user_primitives import AxisData, Primitive

__all__ = [
    "AxisData",
    "axis_primitive_batchers",
    "bdim_at_front",
    "broadcast",
    "defbroadcasting",
    "defreducer",
    "defvectorized",
    "fancy_primitive_batchers",
    "moveaxis",
    "not_mapped",
    "primitive_batchers",
]

# The axis of an operand that is not mapped.
not_mapped = None


def _builtin(primitive: Primitive) -> _Rule:
    def rule(axis_data: AxisData, operands: Sequence[Any], axes: Sequence[Any], /, **params: Any) -> Any:
        size = None if axis_data is None else axis_data.size
        mapped = weft.vmap(lambda *xs: primitive.bind(*xs, **params), in_axes=tuple(axes), axis_size=size)(*operands)
        return mapped, [0] * len(mapped) if primitive.multiple_results else 0

    return rule


def _unless_all_alike(primitive: Primitive, rule: _Rule) -> _Rule:
    """A rule that is not asked where no operand is mapped."""

    def batched(axis_data: AxisData, operands: Sequence[Any], axes: Sequence[Any], /, **params: Any) -> Any:
        if all(axis is None for axis in axes):
            out = primitive.bind(*operands, **params)
            return out, [None] * len(out) if primitive.multiple_results else None
        return rule(operands, axes, **params)

    return batched


def _with_axis(_: Primitive, rule: _Rule) -> _Rule:
    return lambda axis_data, operands, axes, /, **params: rule(
        axis_data.size, axis_data.name, None, operands, axes, **params
    )


# (axis_data, operands, axes, **params) -> (results, axes), without the first, and with its parts.
fancy_primitive_batchers = RuleTable("batch", "batching.fancy_primitive_batchers", _builtin)
primitive_batchers = RuleTable(
    "batch",
    "batching.primitive_batchers",
    lambda primitive: lambda operands, axes, /, **params: _builtin(primitive)(None, operands, axes, **params),
    _unless_all_alike,
)
axis_primitive_batchers = RuleTable(
    "batch",
    "batching.axis_primitive_batchers",
    lambda primitive: (
        lambda size, name, _, operands, axes, /, **params: _builtin(primitive)(
            AxisData(name, size), operands, axes, **params
        )
    ),
    _with_axis,
)


def moveaxis(x: Any, src: int, dst: int) -> Any:
    """The array with an axis at another place."""
    return x if src == dst else moving(wnp.moveaxis)(x, src, dst)


def broadcast(x: Any, sz: int, axis: int, mesh_axis: Any = None) -> Any:
    """The array, repeated along an axis that is added."""
    del mesh_axis
    shape = list(wnp.shape(x))
    shape.insert(axis, sz)
    return wnp.broadcast_to(wnp.expand_dims(x, axis), shape)


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: Any = None) -> Any:
    """The array with its mapped axis in front; repeated, if it has none."""
    return broadcast(x, size, 0, mesh_axis) if bdim is None else moveaxis(x, bdim, 0)


def defvectorized(prim: Primitive) -> None:
    """Says that a primitive treats every element alike, so that its operands may have any further axis."""

    def rule(operands: Sequence[Any], axes: Sequence[Any], /, **params: Any) -> Any:
        size = next(x.shape[axis] for x, axis in zip(operands, axes) if axis is not None)
        # All operands have the axis, at one place.
        return prim.bind(*(bdim_at_front(x, axis, size) for x, axis in zip(operands, axes)), **params), 0

    primitive_batchers[prim] = rule


def defbroadcasting(prim: Primitive) -> None:
    """Says that a primitive treats every element alike, and extends axes of size 1 as NumPy does."""

    def rule(operands: Sequence[Any], axes: Sequence[Any], /, **params: Any) -> Any:
        own = max(wnp.ndim(x) - (axis is not None) for x, axis in zip(operands, axes))
        aligned = []
        for x, axis in zip(operands, axes):
            if axis is not None:
                x = moveaxis(x, axis, 0)
                missing = own + 1 - x.ndim
                x = wnp.reshape(x, (x.shape[0], *[1] * missing, *x.shape[1:]))
            elif wnp.ndim(x):
                x = wnp.reshape(x, (*[1] * (own + 1 - wnp.ndim(x)), *wnp.shape(x)))
            aligned.append(x)
        out = prim.bind(*aligned, **params)
        return (out, [0] * len(out)) if prim.multiple_results else (out, 0)

    primitive_batchers[prim] = rule


def defreducer(prim: Primitive, *_: Any) -> None:
    """Says that a primitive reduces the axes that its parameter `axes` names."""

    def rule(operands: Sequence[Any], mapped: Sequence[Any], /, *, axes: Sequence[int], **params: Any) -> Any:
        (x,), (at,) = operands, mapped
        x = moveaxis(x, at, 0)
        return prim.bind(x, axes=tuple(axis + 1 for axis in axes), **params), 0

    primitive_batchers[prim] = rule
