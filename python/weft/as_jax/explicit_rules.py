"""What functions refuse where axes of a mesh are of type Explicit: JAX's rules are of whole functions, Weft's of the
operations that these are made of, which take some of it and name another operation in the rest."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import weft.numpy as wnp

from .. import _weft
from .._core import tree as _tree
from .._core.errors import not_implemented, sharding_type_error, value_error
from .._sharding.placing import lying_like, placed
from .._sharding.shardings import PartitionSpec, spec_axes
from .._sharding.typed import place_of
from .._sharding.typing_rules import typing_rules
from ..lax import conv_dimension_numbers


def _cuts(x: Any) -> list[tuple[str, ...]] | None:
    """The axes that cut each dimension; None where types say nothing."""
    place = place_of(x) if isinstance(x, _weft.Array) else None
    return None if place is None else [*spec_axes(place.spec), *[()] * (wnp.ndim(x) - len(place.spec))]


def _spec(out_sharding: Any) -> PartitionSpec:
    spec = getattr(out_sharding, "spec", out_sharding)
    return spec if isinstance(spec, PartitionSpec) else PartitionSpec()


def _cumulative(a: Any, axis: Any = None, **_: Any) -> None:
    if axis is None and any(cuts := _cuts(a) or ()):
        raise sharding_type_error(
            f"The input should be fully replicated where no axis is given: its dimensions are cut by {cuts}"
        )


def _tile(A: Any, reps: Any, **_: Any) -> None:
    cuts, counts = _cuts(A), (reps,) if isinstance(reps, int) else tuple(reps)
    if cuts is None:
        return
    for names, count in zip(reversed(cuts), reversed(counts)):
        if names and count != 1:
            raise sharding_type_error(
                f"tile: operand cannot be sharded on dimensions where tiling is non-trivial: one of {wnp.shape(A)} is "
                f"repeated {count} times and cut by {names}"
            )


def _unstack(x: Any, axis: int = 0, **_: Any) -> None:
    cuts = _cuts(x)
    if cuts and cuts[axis]:
        raise sharding_type_error(
            f"unstack operand cannot be sharded on the unstacking axis: {axis} is cut by {cuts[axis]}"
        )


def _split(operand: Any, sizes: Sequence[int], axis: int = 0, **_: Any) -> None:
    cuts = _cuts(operand)
    if cuts is None or not cuts[axis]:
        return
    place = place_of(operand)
    assert place is not None
    count = place.shard_shape(wnp.shape(operand))[axis]
    parts = wnp.shape(operand)[axis] // count
    if any(size % parts for size in sizes):
        raise sharding_type_error(
            f"split on sharded dims where sizes are not divisible by the mesh axes is not implemented: {tuple(sizes)} "
            f"along dimension {axis}, which is cut by {cuts[axis]}"
        )


def _scan(f: Any, init: Any = None, xs: Any = None, **_: Any) -> None:
    for x in _tree.leaves(xs):
        cuts = _cuts(x)
        if cuts and cuts[0]:
            raise value_error(f"0th dimension of all xs should be replicated: one is cut by {cuts[0]}")


def _groups(before: Sequence[int], after: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The dimensions of two shapes of as many elements, those of size 1 left out, in the smallest groups of the same
    product."""
    ones_away = lambda shape: [n for n in shape if n != 1]
    left, right = ones_away(before), ones_away(after)
    groups: list[tuple[list[int], list[int]]] = []
    while left and right:
        a, b = [left.pop(0)], [right.pop(0)]
        while (difference := math.prod(a) - math.prod(b)) and (right if difference > 0 else left):
            (b if difference > 0 else a).append((right if difference > 0 else left).pop(0))
        groups.append((a, b))
    return groups


def _reshape_of_one(operand: Any, shape: Any) -> None:
    """Raises ShardingTypeError for a reshape of an array that is cut which splits or joins more than one dimension."""
    cuts, sizes = _cuts(operand), (shape,) if isinstance(shape, int) else shape
    if not cuts or not any(cuts) or not isinstance(sizes, (tuple, list)) or not all(isinstance(n, int) for n in sizes):
        return
    known = math.prod(n for n in sizes if n >= 0)
    after = [n if n >= 0 else math.prod(wnp.shape(operand)) // max(known, 1) for n in sizes]
    changed = [(a, b) for a, b in _groups(wnp.shape(operand), after) if a != b]
    if len(changed) > 1 or any(len(a) > 1 and len(b) > 1 for a, b in changed):
        raise sharding_type_error(
            "This reshape is not supported. Please specify the sharding of the output via the `out_sharding` argument "
            f"of jax.lax.reshape. The operand of shape {wnp.shape(operand)} is cut by {cuts}, and {tuple(after)} "
            "splits or joins more than one dimension"
        )


def _reshape(operand: Any, *shape: Any, out_sharding: Any = None, **named: Any) -> None:
    if out_sharding is None:
        given = shape[0] if shape else named.get("new_sizes", named.get("shape"))
        if named.get("dimensions") is None and named.get("order", "C") == "C":
            _reshape_of_one(operand, given)
        return
    place, spec = place_of(operand) if isinstance(operand, _weft.Array) else None, _spec(out_sharding)
    for what in ("unreduced", "reduced"):
        own: frozenset[str] = frozenset() if place is None else getattr(place.spec, what)
        wanted = getattr(spec, what)
        if wanted and not own:
            raise value_error(f"reshape: out_sharding cannot contain {what} axes, as the operand has none: {spec}")
        if wanted != own:
            raise value_error(
                f"reshape: out_sharding must be {what} over the same mesh axes as operand: {spec}, and {sorted(own)}"
            )


def _reduce_sum(operand: Any, axes: Sequence[int] = (), *, out_sharding: Any = None, **_: Any) -> None:
    cuts = _cuts(operand)
    if cuts is None or out_sharding is None:
        return
    summed = {name for d in axes for name in cuts[d]}
    place = place_of(operand)
    if extra := _spec(out_sharding).unreduced - summed - (place.spec.unreduced if place else set()):
        raise sharding_type_error(
            f"out_sharding's unreduced axes should be in operand's specs that were summed over: {sorted(extra)} are "
            f"not, which are {sorted(summed)}"
        )


def _einsum(subscripts: Any, *operands: Any, out_sharding: Any = None, **_: Any) -> None:
    """Of two operands: sums in parts are along what cuts the dimensions that are summed over, in both of them."""
    unreduced = _spec(out_sharding).unreduced
    if not unreduced or not isinstance(subscripts, str) or len(operands) != 2:
        return
    terms, arrow, result = subscripts.replace(" ", "").partition("->")
    if not arrow or "." in terms:
        return
    left, right = (
        {} if cuts is None else dict(zip(term, cuts)) for term, cuts in zip(terms.split(","), map(_cuts, operands))
    )
    summed = [letter for letter in left if letter in right and letter not in result]
    lhs, rhs = [left[letter] for letter in summed], [right[letter] for letter in summed]
    if unreduced != {name for names in lhs for name in names}:
        raise sharding_type_error(
            f"out_sharding's unreduced axes should be equal to the contracting specs: {sorted(unreduced)}, and {lhs}"
        )
    if lhs != rhs:
        raise sharding_type_error(
            f"lhs and rhs contracting dims should be sharded identically where out_sharding is unreduced: {lhs} and "
            f"{rhs}"
        )


def _segments(*_: Any, out_sharding: Any = None, **__: Any) -> None:
    if _spec(out_sharding).unreduced:
        raise not_implemented("an unreduced out_sharding is of sums alone: of segment_sum")


def _of_segments(_: Any, *__: Any, out_sharding: Any = None, **___: Any) -> None:
    if any(spec_axes(_spec(out_sharding))):
        raise sharding_type_error(
            f"the result of a scatter can only be fully replicated or fully unreduced here, got {out_sharding}"
        )


_NUMPY: dict[str, Callable[..., None]] = {
    **dict.fromkeys(["cumsum", "cumprod", "nancumsum", "nancumprod"], _cumulative),
    "bincount": _of_segments,
    "einsum": _einsum,
    "reshape": _reshape,
    "tile": _tile,
    "unstack": _unstack,
}
_LAX: dict[str, Callable[..., None]] = {
    "reduce_sum": _reduce_sum,
    "reshape": _reshape,
    "scan": _scan,
    "split": _split,
}
_RULES: dict[str, dict[str, Callable[..., None]]] = {
    "jax.numpy": _NUMPY,
    "jax.lax": _LAX,
    "jax.ops": dict.fromkeys(["segment_max", "segment_min", "segment_prod"], _segments),
}


def _broadcast_like(function: Callable[..., Any]) -> Callable[..., Any]:
    """broadcast_like, whose result lies as the array whose shape it takes."""

    @functools.wraps(function)
    def called(arr: Any, like_arr: Any) -> Any:
        cuts, like = _cuts(arr), _cuts(like_arr)
        if cuts and like and any(a and a != b for a, b in zip(reversed(cuts), reversed(like))):
            raise value_error(f"Incompatible shardings for broadcasting: {cuts} and {like}")
        return lying_like(function(arr, like_arr), like_arr)

    return called


def _rng_bit_generator(function: Callable[..., Any]) -> Callable[..., Any]:
    """rng_bit_generator, whose bits lie as out_sharding says."""

    @functools.wraps(function)
    def called(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        state, bits = function(*args, **kwargs)
        if out_sharding is None:
            return state, bits
        bits = placed(bits, "rng_bit_generator", None, out_sharding)
        return placed(state, "rng_bit_generator", None, PartitionSpec()), bits

    return called


def _conv_general_dilated(function: Callable[..., Any]) -> Callable[..., Any]:
    """conv_general_dilated, which is told how its result lies where kernels or features are cut."""

    @functools.wraps(function)
    def called(lhs: Any, rhs: Any, *args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        if out_sharding is not None:
            return placed(function(lhs, rhs, *args, **kwargs), "conv_general_dilated", None, out_sharding)
        cuts, of_kernel = (_cuts(lhs), _cuts(rhs)) if typing_rules.in_use else (None, None)
        numbers = args[4] if len(args) > 4 else kwargs.get("dimension_numbers")
        if cuts or of_kernel:
            features = conv_dimension_numbers(wnp.shape(lhs), wnp.shape(rhs), numbers).lhs_spec[1]
            if any(of_kernel or ()) or (cuts and cuts[features]):
                raise sharding_type_error(
                    "Please specify the output sharding via `out_sharding` parameter of `conv_general_dilated`: the "
                    f"operand is cut by {cuts}, of which dimension {features} has the features, and the kernel by "
                    f"{of_kernel}"
                )
        return function(lhs, rhs, *args, **kwargs)

    return called


_OTHERWISE = {
    ("jax.lax", "broadcast_like"): _broadcast_like,
    ("jax.lax", "conv_general_dilated"): _conv_general_dilated,
    ("jax.lax", "rng_bit_generator"): _rng_bit_generator,
}


def with_rules(module: str, name: str, function: Any) -> Any:
    """What a module serves under a name, which refuses what JAX's does."""
    if otherwise := _OTHERWISE.get((module, name)):
        return otherwise(function)
    rule = _RULES.get(module, {}).get(name)
    if rule is None:
        return function

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if not typing_rules.in_use:
            return function(*args, **kwargs)
        try:
            inspect.signature(rule).bind(*args, **kwargs)
        except TypeError:  # the function itself says what is wrong with its arguments
            return function(*args, **kwargs)
        rule(*args, **kwargs)
        return function(*args, **kwargs)

    return called
