"""What decides how arrays are cut along an axis of a mesh."""

from __future__ import annotations

import enum
from typing import Any

from .._core.errors import type_error, value_error
from .typing_rules import typing_rules


class AxisType(enum.Enum):
    """What decides how arrays are cut along an axis of a mesh: Auto, the compiler; Explicit, the program itself, whose
    types say it (docs/parallel.md); Manual, the function that shard_map runs on every device.

    Example:
        >>> weft.make_mesh((1,), ("x",), axis_types=(weft.AxisType.Explicit,)).axis_types
        (Explicit,)
    """

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name

    # Python's own calls `getattr`.
    def __reduce_ex__(self, protocol: Any) -> tuple:
        return AxisType, (self.value,)


def checked_types(types: Any, names: tuple[str, ...], what: str) -> tuple[AxisType, ...]:
    types = (
        (AxisType.Auto,) * len(names) if types is None else (types,) if isinstance(types, AxisType) else tuple(types)
    )
    if not all(isinstance(t, AxisType) for t in types):
        raise type_error(f"{what}: axis_types are weft.AxisType, got {types!r}")
    if len(types) != len(names):
        raise value_error(f"{what}: {len(types)} axis_types {types} for the axes {names}")
    typing_rules.in_use = typing_rules.in_use or AxisType.Explicit in types
    return types
