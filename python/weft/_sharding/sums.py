"""Sums in parts inside of shard_map: P(unreduced=) and P(reduced=) of its arguments and results."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import _weft
from .._core import sums_of_devices
from .._core import tree as _tree
from .._core.errors import value_error
from .._core.sums_of_devices import Sums, counted_as, sums_of
from ..collectives import axes_left_alone
from .meshes import Mesh, current_mesh, mesh_axes
from .shardings import PartitionSpec, prefix_specs
from .typing_rules import typing_rules


def _axes_of_mesh() -> list[tuple[str, int]]:
    mesh, alone = current_mesh(), axes_left_alone()
    if mesh is None or not any(_weft.axis_is_bound(name) and name not in alone for name in mesh.axis_names):
        return []
    return mesh_axes(mesh)


sums_of_devices.axes_of_mesh = _axes_of_mesh


def _is_followed(name: str) -> bool:
    size = _weft.axis_size([name], "shard_map")
    return typing_rules.keeps_axis(size) and size > 1


def axes_beside(mesh: Mesh, spec: PartitionSpec | None) -> list[list[str]]:
    """The axes of the dimensions that an argument of such a spec has in front inside of shard_map (`beside`)."""
    sums = [] if spec is None else [spec.unreduced, spec.reduced]
    return [[name for name in mesh.axis_names if name in names] for names in sums if names]


def beside(x: Any, mesh: Mesh, spec: PartitionSpec | None) -> Any:
    """x as shard_map takes it, with a dimension in front of what devices along the axes of a sum have, side by side:
    the parts of one that is unreduced (those that devices hold already, else x and zeros), and copies of one that is
    reduced, whose cotangents are parts."""
    if spec is None:
        return x
    for names, is_sum in ((spec.reduced, False), (spec.unreduced, True)):
        if not names:
            continue
        shape = _weft.abstract(x)[0]
        along = [name for name in mesh.axis_names if name in names]
        count = math.prod(mesh.shape[name] for name in along)
        x = _weft.reshape(x, (1, *shape))
        x = _weft.parts_beside(x, along, count) if is_sum else _weft.broadcast_to(x, (count, *shape))
    return x


def with_sums(
    function: Callable[..., Any],
    args: tuple,
    in_specs: Sequence[Any],
    out_specs: Any,
    what: str,
    check: bool,
    summed: list[list[str]],
) -> Any:
    """function(*args) on one device. Arguments that are unreduced or reduced along some axes have dimensions of size 1
    in front (`beside`). `summed` is told the axes along which each result is the sum of what devices have: of
    those that are unreduced, without `check` also where they are the same on all devices, which otherwise are what the
    first one has."""
    leaves, tree = _tree.flatten(args)
    for i, spec in enumerate(in_specs):
        if spec is None or not (spec.unreduced or spec.reduced):
            continue
        in_front = bool(spec.unreduced) + bool(spec.reduced)
        leaves[i] = _weft.reshape(leaves[i], _weft.abstract(leaves[i])[0][in_front:])
        leaves[i] = counted_as(leaves[i], Sums(spec.unreduced if check else frozenset(), spec.reduced))
    result = function(*_tree.unflatten(tree, leaves))
    results, out_tree = _tree.flatten(result)
    summed[:] = [[] for _ in results]
    if not all(map(_weft.is_operand, results)):
        return result  # who takes it says what is wrong with it
    for i, spec in enumerate(prefix_specs(out_specs, _tree.unflatten(out_tree, [0] * len(results)), what)):
        if spec is None or not spec.unreduced:
            continue
        differ = set(_weft.varying(results[i]))
        same = [name for name in sorted(spec.unreduced - differ) if _is_followed(name)]
        if check and _tree.jax_semantics() and same:
            raise value_error(
                f"{what}: {spec} says that a result is a sum in parts along {', '.join(map(repr, same))}, along which "
                "it is the same on all devices"
            )
        summed[i] = sorted(spec.unreduced & differ if check else spec.unreduced)
        results[i] = _weft.pvary(results[i], summed[i])
    return _tree.unflatten(out_tree, results)


__all__ = ["Sums", "axes_beside", "beside", "counted_as", "sums_of", "with_sums"]
