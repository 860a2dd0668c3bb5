"""jax.interpreters.batching.register_vmappable: classes of a library's own whose objects jax.vmap maps, along axes that
they describe themselves."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import weft
import weft.numpy as wnp

from .. import _weft
from .._core import tree as _tree
from .._core.errors import value_error
from .._core.names import wraps
from . import mapped_types
from .core import own_types


class _Kind(NamedTuple):
    to_elt: Callable[..., Any]
    from_elt: Callable[..., Any]


_kinds: dict[type, _Kind] = {}


def register_vmappable(
    data_type: type, spec_type: type, axis_size_type: type, to_elt: Callable, from_elt: Callable, make_iota: Any
) -> None:
    """From now on vmap maps objects of a class: to_elt(element_of, size, object, spec) gives what the function takes,
    from_elt(array_of, size, element, spec) the object of what it returns. element_of(array, axis) and
    array_of(size, element, axis) do so for arrays."""
    del spec_type, axis_size_type, make_iota
    if data_type in _kinds:
        raise value_error(f"{data_type} is registered already")
    _kinds[data_type] = _Kind(to_elt, from_elt)


def unregister_vmappable(data_type: type) -> None:
    """Ends register_vmappable."""
    del _kinds[data_type]


def is_vmappable(cls: type) -> bool:
    """Whether a class is registered."""
    return cls in _kinds


class _Place:
    """Stands in an object for an array that is not there yet."""

    def __init__(self, number: int, shape: tuple[int, ...], dtype: Any):
        self.number, self.shape, self.ndim, self.dtype = number, shape, len(shape), dtype


def _is_object(x: Any) -> bool:
    return type(x) in _kinds


def _spread(axes: Any, tree: Any) -> list[Any]:
    """For each leaf of a tree, where objects are leaves, its entry of a prefix."""
    if not _is_object(tree):
        if isinstance(tree, (tuple, list)) and isinstance(axes, (tuple, list)) and len(axes) == len(tree):
            return [entry for a, part in zip(axes, tree) for entry in _spread(a, part)]
        if isinstance(tree, dict) and isinstance(axes, dict) and axes.keys() == tree.keys():
            return [entry for key in sorted(tree) for entry in _spread(axes[key], tree[key])]
    return [axes] * len(_tree.leaves(tree, is_leaf=_is_object))


def _filled(made: Any, arrays: list[Any]) -> Any:
    """What was made, with arrays in the places."""
    if isinstance(made, _Place):
        return arrays[made.number]
    leaves, tree = _tree.flatten(made)
    if len(leaves) != 1 or leaves[0] is not made:
        return _tree.unflatten(tree, [_filled(leaf, arrays) for leaf in leaves])
    if not hasattr(made, "__dict__"):
        return made
    out = copy.copy(made)
    for name, value in vars(made).items():
        setattr(out, name, _filled(value, arrays))
    return out


def vmap(
    fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, *given: Any, axis_size: Any = None, **options: Any
) -> Callable[..., Any]:
    """weft.vmap, of objects of registered classes, too."""
    if given:  # axis_name, axis_size, spmd_axis_name by position
        names = ("axis_name", "axis_size", "spmd_axis_name")
        by_name = dict(zip(names, given))
        return vmap(fun, in_axes, out_axes, **{"axis_size": axis_size, **options, **by_name})
    if own_types and mapped_types.has_specs(in_axes, out_axes):
        return mapped_types.vmap(fun, in_axes, out_axes, axis_size, **options)
    if not _kinds:
        return weft.vmap(fun, in_axes, out_axes, axis_size=axis_size, **options)

    @wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = _tree.flatten((args, kwargs), is_leaf=_is_object)
        axes = _spread(in_axes, args)
        axes += [0] * (len(leaves) - len(axes))
        arrays: list[Any] = []
        along: list[Any] = []

        def take(array: Any, axis: Any) -> Any:
            arrays.append(array)
            along.append(axis)
            return array if axis is None else weft.lax.index_in_dim(array, 0, axis, keepdims=False)

        size = lambda: axis_size
        for leaf, axis in zip(leaves, axes):
            if _is_object(leaf):
                _kinds[type(leaf)].to_elt(take, size, leaf, axis)
            else:
                take(leaf, axis)
        sizes = [wnp.shape(array)[axis] for array, axis in zip(arrays, along) if axis is not None]
        length = axis_size if axis_size is not None else sizes[0] if sizes else None
        made: list[Any] = []

        def on_elements(*elements: Any) -> tuple[Any, ...]:
            rest = iter(elements)
            inner = [
                _kinds[type(leaf)].to_elt(lambda *_: next(rest), size, leaf, axis) if _is_object(leaf) else next(rest)
                for leaf, axis in zip(leaves, axes)
            ]
            own_args, own_kwargs = _tree.unflatten(tree, inner)
            out = fun(*own_args, **own_kwargs)
            found, out_tree = _tree.flatten(out, is_leaf=_is_object)
            results: list[Any] = []
            outward: list[Any] = []

            def put(count: Any, element: Any, axis: Any) -> _Place:
                shape = list(wnp.shape(element))
                if axis is not None:
                    shape.insert(axis % (len(shape) + 1), count)
                results.append(element)
                outward.append(axis)
                return _Place(len(results) - 1, tuple(shape), _weft.abstract(element)[1])

            whole = [
                _kinds[type(x)].from_elt(put, length, x, axis) if _is_object(x) else put(length, x, axis)
                for x, axis in zip(found, _spread(out_axes, out))
            ]
            made[:] = [out_tree, whole, outward]
            return tuple(results)

        results = weft.vmap(on_elements, tuple(along), 0, axis_size=length, **options)(*arrays)
        out_tree, whole, outward = made
        moved = [x[0] if axis is None else wnp.moveaxis(x, 0, axis) for x, axis in zip(results, outward)]
        return _tree.unflatten(out_tree, [_filled(part, moved) for part in whole])

    return mapped
