"""What traced, lowered and compiled programs say of their arguments and results, by the classes that JAX says it by."""

from __future__ import annotations

from typing import Any

from .._core import tree as _tree
from .._core.shapes import ShapedArray
from ..described import ArgInfo, Described
from .treedefs import PyTreeDef


def _of_shaped_arrays(found: property) -> property:
    return property(lambda self: _tree.map(ShapedArray.like, found.__get__(self)), doc=found.__doc__)


def _of_argument(info: ArgInfo) -> ArgInfo:
    return ArgInfo(ShapedArray.like(info.aval), info.donated)


def _of_infos(found: property) -> property:
    return property(lambda self: _tree.map(_of_argument, found.__get__(self)), doc=found.__doc__)


def _never_weak(found: property) -> property:
    """Types of results: JAX keeps of a lowered program which sizes and dtypes they have."""
    of_result = lambda t: t.update(weak_type=False)
    return property(lambda self: _tree.map(of_result, found.__get__(self)), doc=found.__doc__)


def install(lowered: Any, compiled: Any) -> None:
    """From now on programs say it as JAX's."""
    described: Any = Described
    described.in_tree = property(lambda self: PyTreeDef(self._in_tree), doc=Described.in_tree.__doc__)
    described.out_tree = property(lambda self: PyTreeDef(self._result_tree()), doc=Described.out_tree.__doc__)
    described.in_avals, described.args_info = _of_shaped_arrays(described.in_avals), _of_infos(described.args_info)
    lowered.out_info, compiled.out_info = _never_weak(lowered.out_info), _never_weak(compiled.out_info)
    argument: Any = ArgInfo
    argument._aval = property(lambda self: self.aval)
    argument.__repr__ = lambda self: f"ArgInfo(_aval={self.aval!r}, donated={self.donated})"
