"""Axes of jax.lax, which count from the front alone; axes of collectives, which are named or dimensions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import weft.numpy as wnp

from .. import _weft
from .._core import tree as _tree
from .._core.errors import index_error, name_error, type_error, value_error
from .._core.shapes import ShapedArray

# Reductions, and where their dimensions stand among the arguments.
_REDUCTIONS = {
    **dict.fromkeys(["reduce_sum", "reduce_prod", "reduce_max", "reduce_min"], (1, "axes")),
    **dict.fromkeys(["reduce_and", "reduce_or", "reduce_xor"], (1, "axes")),
    "reduce": (3, "dimensions"),
}
_CUMULATIVE = frozenset(["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
# Collectives, of which those that reduce take dimensions, too.
_REDUCING = frozenset(["psum", "pmean", "pmax", "pmin"])
_BETWEEN = frozenset(["all_gather", "psum_scatter", "all_to_all", "ppermute", "pshuffle", "pswapaxes", "pbroadcast"])
_OF_AXES = frozenset(["axis_index", "axis_size"])


def _check_reduced(x: Any, axes: tuple[int, ...]) -> None:
    if any(not 0 <= axis < np.ndim(x) for axis in axes):
        raise index_error(
            f"reduction axes {axes} contains out-of-bounds indices for {ShapedArray.like(x).str_short()}."
        )
    if len(set(axes)) < len(axes):
        raise value_error(f"duplicate value in 'axes' of reduction: {axes}")


def _reduction(function: Callable[..., Any], place: int, name: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        axes = args[place] if len(args) > place else kwargs.get(name, ())
        for x in _tree.leaves(args[0]) if args and isinstance(axes, (tuple, list)) else ():
            _check_reduced(x, tuple(axes))
        return function(*args, **kwargs)

    return called


def _index(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(operand: Any, axis: int, index_dtype: Any) -> Any:
        if not 0 <= axis < np.ndim(operand):
            raise value_error(f"Invalid axis {axis} for operand shape {np.shape(operand)}")
        return function(operand, axis, index_dtype)

    return called


def _cumulative(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
        if axis < 0:
            raise value_error(f"XLA operations do not allow negative axes: got axis={axis}")
        if axis >= np.ndim(operand):
            raise value_error(f"axis {axis} is out of bounds for array of shape {np.shape(operand)}")
        return function(operand, axis, reverse)

    return called


def _rev(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(operand: Any, dimensions: Any) -> Any:
        dims = tuple(dimensions)
        if any(d < 0 for d in dims):
            raise type_error(f"rev dimensions must have every element be nonnegative, got {dims}.")
        if any(d >= np.ndim(operand) for d in dims):
            raise type_error(
                f"rev dimensions must all be less than operand ndim, got dimensions {dims} for operand ndim "
                f"{np.ndim(operand)}."
            )
        return function(operand, dims)

    return called


def _bound(name: str, axis_name: Any) -> tuple[Any, ...]:
    """The axes. Raises where one of them is what can be no name here, so that nothing binds it."""
    axes = tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)
    for axis in axes:
        hash(axis)
        if not isinstance(axis, (str, int)) or (isinstance(axis, int) and name == "axis_index"):
            raise name_error(f"{name}: nothing binds the axis '{axis}' here; names of axes are strings")
    return axes


def _between(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(x: Any, axis_name: Any, *args: Any, **kwargs: Any) -> Any:
        if not _bound(name, axis_name) and name in ("all_gather", "psum_scatter"):
            return x
        return function(x, axis_name, *args, **kwargs)

    return called


def _of_axes(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(axis_name: Any) -> Any:
        if not _bound(name, axis_name):
            return 1 if name == "axis_size" else wnp.asarray(0)
        return function(axis_name)

    return called


def _reducing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
        dims = tuple(axis for axis in _bound(name, axis_name) if isinstance(axis, int))
        for leaf in _tree.leaves(x) if dims and axis_index_groups is None else ():
            # As in JAX, sums of arrays that are known may count from the end.
            if name in ("pmax", "pmin") or _weft.is_traced(leaf):
                _check_reduced(leaf, dims)
        return function(x, axis_name, axis_index_groups=axis_index_groups)

    return called


def from_the_front(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of jax.lax that refuses axes that count from the end, where JAX's does."""
    if name in _REDUCTIONS:
        return _reduction(function, *_REDUCTIONS[name])
    if name in ("argmax", "argmin"):
        return _index(name, function)
    if name in _CUMULATIVE:
        return _cumulative(function)
    if name == "rev":
        return _rev(function)
    for names, strict in ((_REDUCING, _reducing), (_BETWEEN, _between), (_OF_AXES, _of_axes)):
        if name in names:
            return strict(name, function)
    return function
