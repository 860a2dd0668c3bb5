"""Sums in parts inside of shard_map: P(unreduced=) and P(reduced=) of its arguments and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _weft
from .._core import tree as _tree
from ..collectives import first_has_all
from .shardings import prefix_specs


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
