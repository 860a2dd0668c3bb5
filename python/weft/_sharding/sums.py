"""Sums in parts inside of shard_map: P(unreduced=) and P(reduced=) of its arguments and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _weft
from .._core import tree as _tree
from .shardings import prefix_specs


def first_has_all(x: Any, names: Sequence[str]) -> Any:
    """x as parts of a sum along axes of a mesh: the first device has all of it, and the others nothing."""
    shape, dtype, _, _ = _weft.abstract(x)
    return _weft.where(_weft.axis_index(list(names)) == 0, x, _weft.full(shape, 0, dtype))


def parts_of(x: Any, names: Sequence[str]) -> Any:
    """The parts of a sum along axes of a mesh that the devices have: of a value that may differ between them, what each
    has; of one that is the same on all, all of it on the first."""
    same = [name for name in names if name not in _weft.varying(x)]
    return first_has_all(x, same) if same else x


def with_sums(
    function: Callable[..., Any], args: tuple, in_specs: Sequence[Any], out_specs: Any, what: str, check: bool
) -> Any:
    """function(*args) on one device. Of an argument that is unreduced along some axes the first device along them has
    all, and the others nothing; one that is reduced counts as one that may differ between devices, so that nobody sums
    its cotangent for it. Results that are unreduced are summed: without `check` also those that are the same on all
    devices, which otherwise are what the first one has."""
    leaves, tree = _tree.flatten(args)
    for i, spec in enumerate(in_specs):
        if spec is not None and spec.unreduced:
            leaves[i] = first_has_all(leaves[i], sorted(spec.unreduced))
        if spec is not None and spec.reduced:
            leaves[i] = _weft.pvary(leaves[i], sorted(spec.reduced))
    result = function(*_tree.unflatten(tree, leaves))
    results, out_tree = _tree.flatten(result)
    if not all(map(_weft.is_operand, results)):
        return result  # who takes it says what is wrong with it
    for i, spec in enumerate(prefix_specs(out_specs, _tree.unflatten(out_tree, [0] * len(results)), what)):
        names = (
            [] if spec is None else sorted(spec.unreduced & set(_weft.varying(results[i]) if check else spec.unreduced))
        )
        if names:
            results[i] = _weft.reduce_over_devices("psum", results[i], names)
    return _tree.unflatten(out_tree, results)
