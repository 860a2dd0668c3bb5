"""vmap of values of types of one's own (hijax): along axes that a MappingSpec names. What a spec means the type says:
dec_rank(size, spec) is the type of one element."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import weft
import weft.numpy as wnp

from .._core import tree as _tree
from .._core.errors import value_error
from .._core.names import wraps
from .core import get_aval, own_types
from .hijax import MappingSpec, arrays_of, types_of_arrays, values_of


class _Infer(MappingSpec):
    """In out_axes: along the leading axis, as the type says it (leading_axis_spec)."""


infer = _Infer()


def _is_own(x: Any) -> bool:
    return type(x) in own_types


def _is_spec(x: Any) -> bool:
    return isinstance(x, MappingSpec)


def _type_of(x: Any) -> Any:
    return get_aval(x)


def has_specs(*axes: Any) -> bool:
    """Whether a type's own axes are among in_axes and out_axes."""
    return any(_is_spec(leaf) for leaf in _tree.leaves(axes, is_leaf=_is_spec))


def _spread(axes: Any, tree: Any) -> list[Any]:
    """For each leaf of a tree, where values of such types are leaves, its entry of a prefix."""
    if not _is_own(tree) and not _is_spec(axes):
        if isinstance(tree, (tuple, list)) and isinstance(axes, (tuple, list)) and len(axes) == len(tree):
            return [entry for a, part in zip(axes, tree) for entry in _spread(a, part)]
        if isinstance(tree, dict) and isinstance(axes, dict) and axes.keys() == tree.keys():
            return [entry for key in sorted(tree) for entry in _spread(axes[key], tree[key])]
    return [axes] * len(_tree.leaves(tree, is_leaf=_is_own))


_MOST = 1000  # ways of placing an axis in the arrays of a value that are tried


def _axes(element: Any, spec: Any) -> list[int | None]:
    """Which axes of its arrays a spec maps, found by asking the type of a value with an axis there for its elements."""
    types = types_of_arrays(element)
    shapes = [tuple(t.shape) for t in types]
    size = next(n for n in itertools.count(2) if all(n not in shape for shape in shapes))
    ways = itertools.product(*[[0, *range(1, len(shape) + 1), None] for shape in shapes])
    for way in itertools.islice(ways, _MOST):
        whole = [shape if d is None else (*shape[:d], size, *shape[d:]) for shape, d in zip(shapes, way)]
        value: Any = values_of(element, [wnp.zeros(shape, t.dtype) for shape, t in zip(whole, types)])
        try:
            found = types_of_arrays(_type_of(value).dec_rank(size, spec))
        except (ValueError, IndexError):
            continue  # the type has no such elements
        if [tuple(t.shape) for t in found] == shapes:
            return list(way)
    raise value_error(f"vmap: {spec} names no axes of a {element}")


def vmap(fun: Callable[..., Any], in_axes: Any, out_axes: Any, axis_size: Any, **options: Any) -> Callable[..., Any]:
    """weft.vmap, of values of types of one's own, too. Raises ValueError without axis_size."""
    if axis_size is None:
        raise value_error("vmap: axis_size must be given where a MappingSpec names axes")

    @wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = _tree.flatten((args, kwargs), is_leaf=_is_own)
        specs = _spread(in_axes, args)
        specs += [0] * (len(leaves) - len(specs))
        arrays: list[Any] = []
        along: list[Any] = []
        kinds: list[Any] = []  # of one element each
        for leaf, spec in zip(leaves, specs):
            if not _is_spec(spec):
                kinds.append(None)
                arrays.append(leaf)
                along.append(spec)
                continue
            whole = _type_of(leaf)
            kinds.append(whole.dec_rank(axis_size, spec))
            arrays += arrays_of(whole, leaf)
            along += _axes(kinds[-1], spec)
        made: list[Any] = []

        def on_elements(*elements: Any) -> tuple[Any, ...]:
            rest = list(elements)
            inner = []
            for kind in kinds:
                count = 1 if kind is None else len(types_of_arrays(kind))
                mine, rest = rest[:count], rest[count:]
                inner.append(mine[0] if kind is None else values_of(kind, mine))
            own_args, own_kwargs = _tree.unflatten(tree, inner)
            found, out_tree = _tree.flatten(fun(*own_args, **own_kwargs), is_leaf=_is_own)
            results: list[Any] = []
            outward: list[Any] = []
            whole: list[Any] = []
            for x, spec in zip(found, _spread(out_axes, _tree.unflatten(out_tree, found))):
                if not _is_spec(spec):
                    whole.append(None)
                    results.append(x)
                    outward.append(spec)
                    continue
                whole.append(get_aval(x))
                results += arrays_of(whole[-1], x)
                outward += _axes(whole[-1], whole[-1].leading_axis_spec() if spec is infer else spec)
            made[:] = [out_tree, whole, outward]
            return tuple(results)

        results = weft.vmap(on_elements, tuple(along), 0, axis_size=axis_size, **options)(*arrays)
        out_tree, whole, outward = made
        moved = [x[0] if axis is None else wnp.moveaxis(x, 0, axis) for x, axis in zip(results, outward)]
        out = []
        for kind in whole:
            count = 1 if kind is None else len(types_of_arrays(kind))
            mine, moved = moved[:count], moved[count:]
            out.append(mine[0] if kind is None else values_of(kind, mine))
        return _tree.unflatten(out_tree, out)

    return mapped
